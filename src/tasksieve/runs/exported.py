"""The description of a run's model: with the recipe of its table."""

from __future__ import annotations

from ..exports.columns import Columns
from ..exports.description import Description
from ..exports.from_model import describe
from .model_file import SavedModel


def describe_run(saved: SavedModel) -> Description:
    """What an export of the model of a run says."""
    said = saved.said
    columns = Columns.of_table(
        saved.encoding,
        saved.fill,
        said["missing"],
        task=saved.task,
        offset=said["offset"],
        names=saved.targets if len(saved.targets) > 1 else [],
    )
    return describe(saved.estimator, columns=columns)
