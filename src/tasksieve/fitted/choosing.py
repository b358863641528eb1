"""What cross-validation solves folds to, and what it chooses by their scores: the same rules for all models."""

from __future__ import annotations

from typing import Literal

import numpy as np

# What folds are solved to unless `fold_tol` or `tol` says otherwise: at 1e-3 choices change, at 1e-4 none was seen to.
FOLD_TOL = 1e-4


def fold_tolerance(tol: float, fold_tol: float | None) -> float:
    """The relative gap that folds are solved to."""
    return max(tol, FOLD_TOL) if fold_tol is None else fold_tol


def select(scores: np.ndarray, rule: Literal["min", "1se"]) -> tuple[int, int]:
    """Which model and which value of its path to take, from held-out losses (models x values x folds).

    "min": the smallest mean over folds. "1se": with the same model, the strongest penalty (smallest index) whose mean
    is within one standard error of it. Values without a score are out.
    """
    means = scores.mean(axis=2)  # NaN past an early stop
    best, k = np.unravel_index(np.nanargmin(means), means.shape)
    n_folds = scores.shape[2]
    if rule == "1se" and n_folds > 1:
        error = scores[best, k].std(ddof=1) / np.sqrt(n_folds)
        k = np.flatnonzero(means[best] <= means[best, k] + error)[0]
    return int(best), int(k)
