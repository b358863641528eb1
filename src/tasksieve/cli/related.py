"""``--row-groups``: rows of one patient, family, ..., which folds and halves keep together."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from ..tables.ids import Ids
from ..tables.problem import TableProblem
from ..tables.row_columns import groups_column
from .trust import asks_comparison, findings_asked


def named_groups(config: dict[str, Any]) -> str | None:
    """The column that the user has named; one that a run took by default is found anew."""
    return None if "row_groups" in config.get("by_default", ()) else groups_column(config.get("row_groups"))


def judged_ids(config: dict[str, Any]) -> Ids:
    """Rule that ids are known by; configurations of version 0.2 do not say."""
    return "values" if config.get("ids", "values") == "values" else "names"


def unanswered(config: dict[str, Any]) -> bool:
    """Return whether nothing is said of related rows."""
    return "row_groups" not in config or "row_groups" in config.get("by_default", ())


def group_related(config: dict[str, Any], problem: TableProblem) -> str | None:
    """Make groups of the rows that one value of an id relates, where nothing is said of it and there are folds or
    halves to keep them together. The column, if so; a note says what was done."""
    if problem.related is None or not unanswered(config):
        return None
    name, labels = problem.related
    same, word = f"rows that share a value of column {name!r} are related", shlex.quote(name)
    if "cv" not in config and not findings_asked(config):
        problem.notes.append(f"{same}: where there are folds (--cv), --row-groups {word} holds them out together")
        return None
    why_not = _why_not(config, problem, labels)
    if why_not is not None:
        problem.notes.append(f"{same}, and may be in different folds: {why_not}")
        return None
    problem.groups = labels
    problem.notes.append(
        f"{same}: they are held out together, as with --row-groups {word} (--row-groups none: they are not related)"
    )
    return name


def _why_not(config: dict[str, Any], problem: TableProblem, labels: Any) -> str | None:
    """Reason that keeps folds and halves from whole groups, and what helps."""
    if config.get("shuffle") is False:
        return "--no-shuffle takes consecutive rows; without it they are held out together"
    groups, codes = np.unique(labels, return_inverse=True)
    tasks = np.zeros(len(codes), dtype=np.int64)
    if problem.task is not None:
        tasks = np.unique(problem.task, return_inverse=True)[1]
    pairs = np.unique(tasks * len(groups) + codes)
    groups_of_task = np.bincount(pairs // len(groups))
    if findings_asked(config) and groups_of_task.min() < 2:
        return "all rows of a task are of one, and cannot be halved"
    alone = pairs[groups_of_task[pairs // len(groups)] == 1] % len(groups)
    n_free, n_folds = len(groups) - len(np.unique(alone)), config.get("cv", 2)
    if asks_comparison(config):  # folds of what other folds leave
        n_folds = 2 * max(n_folds, config["outer_folds"])
    if n_free < n_folds:
        return f"{n_free} of them are too few for so many folds (--cv 2 needs the fewest)"
    return None
