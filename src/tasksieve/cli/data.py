"""The table of a run: read, prepared as was asked, and known again by its digest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from ..runs import ModelKind, RunError, RunFolder
from ..runs.folder import DATA, file_digest
from ..tables import Table, TableError, TableProblem, prepare
from ..tables.chunked import ChunkedProblem
from .feature_groups import GROUP_WORDS
from .files import read_content, tables_digest, task_column, title
from .genotypes import GenotypeProblem, genotype_files
from .graph_file import GRAPH_WORDS

Problem = TableProblem | ChunkedProblem


def data_digest(config: dict[str, Any]) -> str:
    """One digest for the table and the files beside it."""
    digest = tables_digest(config["table"])
    for key, words in (("graph", GRAPH_WORDS), ("task_graph", GRAPH_WORDS), ("feature_groups", GROUP_WORDS)):
        named = config.get(key)
        if named is not None and named not in words:
            digest = hashlib.sha256((digest + file_digest(Path(named))).encode()).hexdigest()
    for path in genotype_files(config):
        digest = hashlib.sha256((digest + file_digest(path)).encode()).hexdigest()
    return digest


def read_problem(kind: ModelKind, config: dict[str, Any]) -> tuple[TableProblem, bool]:
    """The problem of a configuration, and whether its targets are classes."""
    content = read_content(config)
    problem, classes = prepare_problem(kind, config, content.table)
    problem.notes, problem.lacking = [*content.notes, *problem.notes], content.lacking
    return problem, classes


def prepare_problem(kind: ModelKind, config: dict[str, Any], table: Table) -> tuple[TableProblem, bool]:
    words = any(
        name in table.columns and table.columns[name].kind == "text"
        for name in table.match(config["target"], "--target", list(table.columns))
    )
    classes = kind.wants_classes(config.get("loss"), words)
    if classes:
        refuse_quantities(config, table)
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


def refuse_quantities(config: dict[str, Any], table: Table) -> None:
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


def row_arguments(problem: TableProblem) -> dict[str, Any]:
    """What `fit` is told of the rows beside X and y."""
    rows = {
        "task": problem.task,
        "sample_weight": problem.sample_weight,
        "groups": problem.groups,
        "offset": problem.offset,
    }
    return {name: values for name, values in rows.items() if values is not None}


def refuse_other_data(folder: RunFolder, digest: str) -> None:
    if (folder / DATA).is_file() and folder.read_json(DATA).get("sha256") != digest:
        raise RunError(
            "--resume: the table (or the graph) has changed since the run was begun; --overwrite starts anew"
        )


def describe_data(
    folder: RunFolder, config: dict[str, Any], problem: Problem, digest: str, reproduce: str
) -> None:
    """Write what is known of the data before the fit."""
    data: dict[str, Any] = {
        "name": problem.source if isinstance(problem, GenotypeProblem) else title(config["table"]),
        "sha256": digest,
        "table_rows": problem.n_rows,
        "rows": problem.n_used,
        "features": problem.n_features,
        "tasks": len(problem.tasks),
        "notes": list(problem.notes),
        "reproduce": reproduce,
    }
    folder.write_json(DATA, data)
