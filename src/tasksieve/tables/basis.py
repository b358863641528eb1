"""All that a prediction of a saved model depends on, in one place: runs write and read it, and `verify` compares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..fitted.baseline_hazard import BaselineHazard
from ..tasks import Fills, Patterns
from .encode import Encoding
from .table import Array


@dataclass(frozen=True)
class PredictionBasis:
    """All that a prediction depends on. `verify.py` has a list of its own of these fields, and how each is proved.

    How rows become features and columns beside them:

    - `encoding`: How columns become features.
    - `fill`, `missing`: What missing values are replaced by, (d,) or (T, d), and the fit's ``--missing`` for that.
    - `targets`, `task`, `offset`, `id`: Names of columns.
    - `survival`, `label`: The columns of times to an event, by the name of the outcome; of stacked rows with outcomes
      of unlike kinds, the column of the labels.
    - `files`, `sheets`, `file_tasks`, `task_name`, `lacking`: Where each file or sheet is a task, what the tasks are
      called, by which pattern, and which columns each does not have.
    - `value_labels`: False: words that stand for numbers in the file were not read.
    - `covariates`: How many of the first features are covariates, of a fit of genotypes.

    What is made of them:

    - `model`, `estimator`, `params`: The model's name on the command line, its class and parameters.
    - `coef`, `intercept`, `thresholds`: The numbers, in the form that the estimator has them in.
    - `tasks`, `classes`: Labels, in the order of the numbers.
    - `single`, `needs_offset`: Whether it was fitted to a 1-D y without tasks, and with an offset.
    - `loss_weights`, `target_scales`: Of outcomes of unlike kinds, by task.
    - `fills`: What stands for missing genotypes.
    - `patterns`: Of present columns, where these are the tasks.
    - `baseline_hazard`: Of times to an event.
    - `choice`: Whether a value of the path was chosen, to predict with.
    """

    encoding: Encoding
    fill: Array | None
    missing: str | None
    targets: list[str]
    task: str | None
    offset: str | None
    id: str | None
    survival: dict[str, Any] | None
    label: str | None
    files: bool
    sheets: bool
    file_tasks: list[str] | None
    task_name: str | None
    lacking: dict[str, Any] | None
    value_labels: bool | None
    covariates: int
    model: str
    estimator: str
    params: dict[str, Any]
    coef: Any
    intercept: Any
    thresholds: Any
    tasks: Array | None
    classes: Any
    single: bool
    needs_offset: bool
    loss_weights: Array | None
    target_scales: Array | None
    fills: Fills | None
    patterns: Patterns | None
    baseline_hazard: BaselineHazard | None
    choice: bool


#: fields that a file keeps only where they are something, and what they are otherwise
UNSAID: dict[str, Any] = {
    "offset": None, "id": None, "missing": None, "survival": None, "label": None, "files": False, "sheets": False,
    "file_tasks": None, "task_name": None, "lacking": None, "value_labels": None, "covariates": 0, "choice": True,
}  # fmt: skip


def basis_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Those fields, from what is said."""
    return {name: otherwise if facts.get(name) is None else facts[name] for name, otherwise in UNSAID.items()}
