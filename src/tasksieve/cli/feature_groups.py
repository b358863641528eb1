"""The groups of features of a group lasso: from a file, or the words of each column."""

from __future__ import annotations

from pathlib import Path

from ..report.words import few
from ..tables import Encoding, TableError, read_table
from ..tables.encode import as_words
from .exit_codes import UsageError

GROUP_WORDS = ("column",)  # for which there is no file


def read_feature_groups(named: str, encoding: Encoding) -> list[str]:
    """The group of each feature: "column", what one column of the table became; or as a CSV file with the columns
    feature and group says, of a feature, or of a column and all its words. Others are groups of their own."""
    columns = encoding.sources
    if named == "column":
        return columns
    if not Path(named).is_file():
        raise UsageError(f"--feature-groups: 'column' or a file; there is no file {named}")
    table = read_table(named)
    if not {"feature", "group"} <= set(table.columns):
        has = few(map(repr, table.columns), 3)
        raise TableError(f"--feature-groups: {named} needs the columns feature and group; it has {has}")
    features, groups = as_words(table.columns["feature"]), as_words(table.columns["group"])
    group_of: dict[str, str] = {}
    for row, (feature, group) in enumerate(zip(features, groups, strict=True), start=1):
        if feature is None or group is None:
            raise TableError(f"--feature-groups: row {row} of {named} is incomplete")
        if group_of.setdefault(feature, group) != group:
            raise TableError(
                f"--feature-groups: {named} puts {feature!r} into {group_of[feature]!r} and, in row {row}, into "
                f"{group!r}: groups must not overlap"
            )
    names = encoding.feature_names
    references = [f"{column}={coding.reference}" for column, coding in encoding.categories.items() if coding.reference]
    unknown = [feature for feature in group_of if feature not in {*names, *columns, *references}]
    if unknown:
        raise TableError(f"--feature-groups: {named} names {few(map(repr, unknown), 3)}: the table has no such feature")
    return [
        group_of.get(name, group_of.get(column, f"{name} (alone)"))
        for name, column in zip(names, columns, strict=True)
    ]
