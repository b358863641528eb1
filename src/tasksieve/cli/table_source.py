"""Tables in files: read as a whole, or in chunks where they are tall."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runs import ModelKind
from ..tables import Table, TableError, TableProblem, prepare
from .chunked_source import ChunkedSource, decide_chunks
from .files import read_content, task_column
from .source import Source


class TableSource(Source):
    """A table in one file, or in several."""

    problem: TableProblem

    @classmethod
    def recognises(cls, config: dict[str, Any]) -> bool:
        return True

    @classmethod
    def open(cls, config: dict[str, Any], kind: ModelKind, whole: bool) -> Source:
        chunks = decide_chunks(config, kind, whole)
        table = cls(config, kind)
        return table if chunks is None else ChunkedSource(config, kind, chunks, table)

    def read(self) -> Source:
        content = read_content(self.config)
        self.problem, self.classes = _prepared(self.kind, self.config, content.table)
        self.problem.notes = [*content.notes, *self.problem.notes]
        self.problem.lacking = content.lacking
        return self


def _prepared(kind: ModelKind, config: dict[str, Any], table: Table) -> tuple[TableProblem, bool]:
    """The problem of a table, and whether its targets are classes."""
    words = any(
        name in table.columns and table.columns[name].kind == "text"
        for name in table.match(config["target"], "--target", list(table.columns))
    )
    classes = kind.wants_classes(config.get("loss"), words)
    if classes:
        _refuse_quantities(config, table)
    problem = prepare(
        table,
        target=config["target"],
        task=task_column(config),
        weights=config.get("weights"),
        offset=config.get("offset"),
        groups=config.get("row_groups"),
        id=config.get("id"),
        features=config.get("features", ()),
        drop=config.get("drop", ()),
        keep=config["keep"],
        categorical=config.get("categorical", ()),
        date_parts=config["date_parts"],
        missing=config["missing"],
        max_categories=config["max_categories"],
        reference=config.get("reference", ()),
        classes=classes,
    )
    return problem, classes


def _refuse_quantities(config: dict[str, Any], table: Table) -> None:
    """A model of classes learns a row of coefficients for every number there is: hours, where they are quantities."""
    for name in table.match(config["target"], "--target", list(table.columns)):
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
