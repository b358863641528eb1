"""What models chosen by cross-validation have in common: what folds are solved to, and what their scores choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..messages import Message
from ..user_warnings import warn
from .quality import HeldOutQuality

# What folds are solved to unless `fold_tol` or `tol` says otherwise: at 1e-3 choices change, at 1e-4 none was seen to.
FOLD_TOL = 1e-4
GREATER = "(greater is better)"  # end of the words for scores that are no losses

# Parameters that say how tasks are related, or how much each counts: none of them has a meaning for one task.
BETWEEN_TASKS = ("task_weights", "task_graph", "graph", "graph_tasks", "graph_strengths")


def fold_tolerance(tol: float, fold_tol: float | None) -> float:
    """The relative gap that folds are solved to."""
    return max(tol, FOLD_TOL) if fold_tol is None else fold_tol


class CrossValidated:
    """A model that names the one it repeats in ``_estimator``, and stores its parameters and those of the folds."""

    _estimator: ClassVar[Any]

    #: what `checks.check_estimator` leaves out, and why
    _skip_checks: ClassVar[dict[str, str]] = {
        "row_order": "the fold of a row depends on its place, so that rows in another order have other folds",
    }

    cv: Any
    random_state: Any
    scoring: Any = None
    selection_rule: Literal["min", "1se"]
    fold_tol: float | None
    tol: float
    n_jobs: int | None
    verbose: int
    get_params: Any

    cv_quality_: HeldOutQuality

    @property
    def _loss_label(self) -> str:
        """The name of the loss of held-out rows."""
        raise NotImplementedError

    def _model(self, **changed: Any) -> Any:
        """The model repeated, with the parameters that both have, and others changed."""
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in self._estimator._get_param_names() if name in own}
        return self._estimator(**{**shared, **changed})

    @property
    def cv_measure(self) -> str:
        """What ``cv_scores_`` are, in words: the smaller, the better, but for those of ``scoring``."""
        if self.scoring is None:
            return f"held-out {self._loss_label}"
        name = self.scoring if isinstance(self.scoring, str) else getattr(self.scoring, "__name__", "score")
        return f"held-out {name} {GREATER}"

    def _best_of_each(
        self, compared: Mapping[str, np.ndarray], strengths: Mapping[str, Sequence[np.ndarray]], scores: np.ndarray
    ) -> dict[str, np.ndarray]:
        """What would be chosen with each value of a parameter, given by name: the strength, of a grid for each value,
        with its mean over the folds and the standard error of that."""
        losses = scores if self.scoring is None else -scores
        each = [select(losses[m : m + 1], self.selection_rule)[1] for m in range(len(scores))]
        at_each = np.array([scores[m, k] for m, k in enumerate(each)])
        chosen = {
            name: np.array([grid[k] for grid, k in zip(grids, each, strict=True)]) for name, grids in strengths.items()
        }
        return {**compared, **chosen, "score": at_each.mean(axis=1), "error": standard_errors(at_each)}

    def _warn_open_folds(self, n_open: int, total: int, max_iter: int) -> None:
        if n_open:
            words = Message(
                "{n_open} of {total} solutions in the folds did not reach {fold_tol=:g} within {max_iter=}: raise "
                "{max_iter} or {fold_tol}.",
                n_open=n_open,
                total=total,
                fold_tol=fold_tolerance(self.tol, self.fold_tol),
                max_iter=max_iter,
            )
            warn(words, ConvergenceWarning)


def select(scores: np.ndarray, rule: Literal["min", "1se"]) -> tuple[int, int]:
    """Which model and which value of its path to take, from held-out losses (models x values x folds).

    "min": the smallest mean over folds. "1se": with the same model, the strongest penalty (smallest index) whose mean
    is within one standard error of it. Values without a score are out.
    """
    means = scores.mean(axis=2)  # NaN past an early stop
    best, k = np.unravel_index(np.nanargmin(means), means.shape)
    n_folds = scores.shape[2]
    if rule == "1se" and n_folds > 1:
        k = np.flatnonzero(means[best] <= means[best, k] + standard_errors(scores[best, k]))[0]
    return int(best), int(k)


def two_rules(scores: np.ndarray, measure: str) -> tuple[int, int]:
    """Choices of each rule on one path, from scores (values x folds) and their words: the best mean, and the strongest
    penalty within one standard error of it."""
    losses = (-scores if measure.endswith(GREATER) else scores)[None]
    return select(losses, "min")[1], select(losses, "1se")[1]


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Of means over folds, the last axis; NaN where there is one fold."""
    n_folds = scores.shape[-1]
    if n_folds == 1:
        return np.full(scores.shape[:-1], np.nan)
    found: np.ndarray = scores.std(axis=-1, ddof=1) / np.sqrt(n_folds)
    return found


def for_one_task(model: Any) -> Any:
    """The same kind of model for one task; what is about several tasks is left out."""
    own = model.get_params(deep=False)
    changed = {name: None for name in BETWEEN_TASKS if name in own}
    if isinstance(own.get("task_weights"), str):  # a rule
        changed.pop("task_weights")
    if "graph_strength" in own:  # several are for a graph
        changed["graph_strength"] = type(model)().graph_strength
    return clone(model).set_params(**changed)
