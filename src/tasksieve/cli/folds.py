"""``--cv``, ``--seed``, ``--no-shuffle`` and ``--row-groups``: the folds of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.folds import ShuffledFolds
from ..fitted.model_selection import TaskKFold
from ..tables import TableProblem
from .exits import UsageError
from .options import BY_KEY

FOLD_OPTIONS = ("seed", "shuffle", "row_groups")


def replace_folds(config: dict[str, Any], asked: dict[str, Any]) -> None:
    """Leave out the options of ``--config`` that those given here replace."""
    replaced: tuple[str, ...] = ()
    if "alpha" in asked and "cv" not in asked:  # one strength, nothing to choose
        replaced = ("cv", *FOLD_OPTIONS)
    elif asked.get("shuffle") is False:
        replaced = ("seed", "row_groups")
    elif "seed" in asked or "row_groups" in asked:
        replaced = ("shuffle",)
    for key in replaced:
        if key not in asked:
            config.pop(key, None)


def settle_folds(config: dict[str, Any]) -> None:
    """Refuse options of folds that do not go together, and write down those that were not given."""
    if "cv" not in config:
        for key in FOLD_OPTIONS:
            if key in config:
                raise UsageError(f"{BY_KEY[key].long}: is for --cv, the cross-validation that chooses alpha")
        return
    if config.setdefault("shuffle", True):
        seed = config.setdefault("seed", 0)
        if not 0 <= seed < 2**32:
            raise UsageError(f"--seed: a whole number from 0 to 2**32 - 1, got {seed}")
        return
    for key in ("seed", "row_groups"):
        if key in config:
            raise UsageError(f"{BY_KEY[key].long} and --no-shuffle: one or the other")


def fold_parameters(config: dict[str, Any], problem: TableProblem) -> dict[str, Any]:
    """Parameters of an estimator that make the folds of a configuration."""
    n_folds = config["cv"]
    if "shuffle" not in config:
        return {"cv": first_folds(n_folds, problem)}
    if not config["shuffle"]:
        return {"cv": TaskKFold(n_folds)}
    return {"cv": ShuffledFolds(n_folds), "random_state": config["seed"]}


def first_folds(n_folds: int, problem: TableProblem) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds of version 0.1, whose runs have no word about them: consecutive rows of each class of each task."""
    rows = np.zeros((problem.X.shape[0], 1))
    strata = np.zeros(len(rows), dtype=np.int64)
    if problem.y.ndim == 1:
        if problem.task is not None:
            strata = np.unique(problem.task, return_inverse=True)[1]
        if problem.classes:
            classes, codes = np.unique(problem.y, return_inverse=True)
            strata = strata * len(classes) + codes
    return list(TaskKFold(n_folds).split(rows, groups=strata))
