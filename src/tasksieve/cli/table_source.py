"""Tables in files: read as a whole, or in chunks where they are tall."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..runs import ModelKind
from ..tables import Table, TableError, TableProblem, prepare
from ..tables.row_columns import RowColumns
from .chunked_source import CHOICE, open_chunked
from .exit_codes import UsageError
from .files import read_content, task_column
from .outcomes import has_tasks, mixed_labels, survival_of
from .related import group_related, judged_ids, named_groups
from .source import Source, named
from .trust import asks_comparison

# Options that `prepare` knows by the same name.
PREPARED = (
    "target", "weights", "offset", "id", "missing", "pattern_rows", "exclude_task", "exclude_class", "min_rows",
    *CHOICE,
)  # fmt: skip


class TableSource(Source):
    """A table in one file, or in several."""

    problem: TableProblem

    @classmethod
    def recognises(cls, config: dict[str, Any]) -> bool:
        return True

    @classmethod
    def open(cls, config: dict[str, Any], kind: ModelKind, whole: bool) -> Source:
        return open_chunked(config, kind, cls(config, kind), whole)

    def read(self) -> Source:
        if self.config.get("missing") == "patterns" and asks_comparison(self.config):
            raise UsageError(
                "--missing patterns: does not go with compare, fitting one model to the rows of all tasks, too: these "
                "need the same columns. --missing task-mean fills them in, from the training rows of each fold; "
                "--missing drop leaves incomplete rows out"
            )
        config, content = self.config, read_content(self.config)
        roles: dict[str, Any] = {"task": task_column(config), "groups": named_groups(config)}
        roles |= asked_labels(config, self.kind, content.table)
        self.problem = prepare(content.table, **roles, ids=judged_ids(config), **named(config, *PREPARED))
        self.problem.notes = [*content.notes, *self.problem.notes]
        self.problem.lacking = content.lacking
        if (name := group_related(config, self.problem)) is not None:
            self.decided["row_groups"] = name
        return self


def asked_labels(config: dict[str, Any], kind: ModelKind, table: Table) -> dict[str, Any]:
    """What `prepare` must know of the labels that are asked for."""
    survival = survival_of(config)
    if kind.targets == "mixed":
        columns = RowColumns.of(table, config["target"], survival=survival) if not has_tasks(config) else None
        found = mixed_labels(config, [] if columns is None else columns.targets)
        _refuse_quantities(config, table, found.get("classes", ()))
        return found
    if survival:
        return {"survival": survival}
    targets = table.match(config["target"], "--target", list(table.columns))
    words = any(name in table.columns and table.columns[name].kind == "text" for name in targets)
    classes = kind.wants_classes(config.get("loss"), words)
    if classes:
        _refuse_quantities(config, table, targets)
    return {"classes": classes}


def _refuse_quantities(config: dict[str, Any], table: Table, names: Iterable[str]) -> None:
    """A model of classes learns a row of coefficients for every number there is: hours, where they are quantities."""
    for name in names:
        column = table.columns[name]
        if column.kind != "number":
            continue
        numbers = np.unique(column.values)
        n_classes = int(np.count_nonzero(~np.isnan(numbers.astype(np.float64))))
        if n_classes > config["max_categories"]:
            raise TableError(
                f"--target: column {name!r} of {table.source} holds {n_classes} different numbers, and this model "
                "would take each for a class. Quantities are for --model lasso; if they are classes, raise "
                f"--max-categories ({config['max_categories']})"
            )
