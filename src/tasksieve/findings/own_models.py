"""Models of single tasks, each with a strength of its own chosen by cross-validation, found together.

Of one task alone the L2,1 norm is the L1 norm, and so

    sum_t (1 / lam_t) F_t(w_t) + sum_t |w_t|_1

has the solutions of all tasks, each at its strength lam_t: it is one problem with the L1,1 norm, in which the rows of a
task are weighted by 1 / lam_t. Where the grids of tasks differ by a factor each, one path of it is the path of every
task. Its gap is a sum of gaps that are not negative: where it is below the goal of every task, each is solved as
required. A hundred small tasks then take about the time of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import PackedColumns
from ..fitted.arguments import default_grid, given_grid
from ..fitted.choosing import fold_tolerance, select
from ..linear.cross_validation import PathEstimatorCV
from ..linear.units import Units
from ..losses import Loss
from ..path.problem import Problem
from ..path.values import Value
from ..path.walks import PathWalk, sets_options
from ..penalties import L11, L21
from ..tasks import TaskData, TaskLabels

Array = np.ndarray[Any, Any]

MOST_FEATURES, MOST_ENTRIES = 256, 1 << 16  # of X, a task: larger problems keep a solver busy on their own


@dataclass(frozen=True)
class OwnModel:
    """The model of one task, as far as its predictions."""

    loss: Loss
    classes_: Any
    features: Array
    rows: Array
    intercept: float
    tasks_: tuple[int] = (0,)

    def _scores(self, X: Array, task: Any = None) -> Array:
        return np.asarray(X[:, self.features] @ self.rows + self.intercept)

    def predict(self, X: Array) -> Array:
        """The label of each row."""
        z = self._scores(X)
        return self.loss.link(z) if self.classes_ is None else np.asarray(self.classes_[(z > 0.0).astype(np.intp)])

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of two classes."""
        p = self.loss.link(self._scores(X))
        return np.column_stack([1.0 - p, p])


class OwnModels:
    """A model for each task of some rows; `made` says where they can be found together.

    - `model`: Cross-validated, for one task.
    - `parts`: X and labels of each task.
    """

    def __init__(self, model: Any, parts: list[tuple[Any, Any]], labels: TaskLabels) -> None:
        self._model, self._labels = model, labels
        self._estimator = model._candidates()[0].set_params(task_weights=None, verbose=0)
        self._estimator.__dict__["_penalty"] = lambda: {"penalty": L11()}
        X, y = np.concatenate([part for part, _ in parts]), np.concatenate([own for _, own in parts])
        task = np.repeat(np.arange(labels.n_tasks), [len(own) for _, own in parts])
        self._data: TaskData = self._estimator._read_with(X, y, task, labels.weights, None)

    @classmethod
    def made(cls, model: Any, parts: list[tuple[Any, Any]], labels: TaskLabels) -> OwnModels | None:
        """None where the models are better found one by one."""
        if not isinstance(model, PathEstimatorCV) or model._early or len(model._candidates()) > 1:
            return None
        if labels.y.dtype.names is not None:  # survival
            return None
        estimator, classes = model._candidates()[0], labels.classes
        if model.scoring is not None or getattr(model, "class_weight", None) is not None or labels.known is not None:
            return None
        if classes is not None and (isinstance(classes, list) or len(classes) != 2 or labels.ordered):
            return None
        if sets_options(estimator._engine_options()) or getattr(model, "feature_weights", None) is not None:
            return None
        penalty = estimator._penalty()
        if type(penalty.pop("penalty", L21())) not in (L21, L11) or any(penalty.values()):
            return None
        small = all(
            type(X) is np.ndarray and X.shape[1] <= MOST_FEATURES and X.size <= MOST_ENTRIES for X, _ in parts
        )
        return cls(model, parts, labels) if small and estimator._norm_share() == 1.0 else None

    def fit(self, weights: Array, fold: Array) -> list[OwnModel] | None:
        """Given the weights of the rows and the folds in which they are held out (-1: never); None where a value was
        not solved as required."""
        model, data, rule = self._model, self._data, self._model.selection_rule
        tops, falls = self._grids(weights)
        folds = [(weights * (fold != f), weights * (fold == f)) for f in np.unique(fold[fold >= 0]).tolist()]
        judge, scores = self._estimator._judge(data, None, folds), list[Array]()
        for train, test in folds:
            points = self._path(train, tops, falls, fold_tolerance(model.tol, model.fold_tol))
            if points is None:
                return None
            scores.append(judge.by_task(data, train, test, points))
        points = self._path(weights, tops, falls, model.tol)
        if points is None:
            return None
        held_out = np.stack(scores, axis=2)  # tasks x values x folds
        loss, found = self._estimator._loss_of(data), []
        for t, own in enumerate(held_out):
            used = ~np.isnan(own).any(axis=0)
            if not used.any():
                return None
            point = points[select(own[None, :, used], rule)[1]]
            live = np.flatnonzero(point.rows[:, t])
            classes = None if data.classes is None else data.classes_of(t)
            found.append(OwnModel(loss, classes, point.features[live], point.rows[live, t], float(point.intercept[t])))
        return found

    def _grids(self, weights: Array) -> tuple[Array, Array]:
        """The largest alpha of each task, and how all grids fall from there."""
        model, given = self._model, self._model.alphas
        if not model._automatic:
            grid = given_grid(given)
            return np.full(self._data.n_tasks, grid[0]), grid / grid[0]
        problem = self._problem(weights)
        columns = PackedColumns(problem.design)
        products = columns.correlate(problem.loss.null.residual, columns.positions(np.arange(self._data.n_features)))
        tops = np.abs(products).max(axis=0, initial=0.0) / self._sizes(weights)
        falls = default_grid(1.0, model.n_alphas if given is None else int(given), model.eps)
        return np.where(tops > 0.0, tops, 1.0), falls

    def _sizes(self, weights: Array) -> Array:
        """What an alpha is multiplied by in each task: strengths are of sums over rows."""
        totals = np.add.reduceat(weights, self._data.offsets[:-1])
        return np.array([self._estimator._loss.unit(total) for total in totals.tolist()])

    def _problem(self, weights: Array) -> Problem:
        return self._estimator._problem(self._data.with_weights(weights))

    def _path(self, weights: Array, tops: Array, falls: Array, tol: float) -> list[Value] | None:
        """The values of all tasks on some rows; None where one was not solved as required."""
        strengths = tops * self._sizes(weights)
        if not np.all(strengths > 0.0):
            return None
        usual = float(np.exp(np.mean(np.log(strengths))))
        problem = self._problem(weights * np.repeat(usual / strengths, np.diff(self._data.offsets)))
        null = problem.loss.by_task(problem.loss.null)
        if null is None or not np.min(null) > 0.0 or problem.units != Units():
            return None
        lams, goals = usual * falls, np.full(len(falls), tol * float(np.min(null)))
        options = self._estimator._engine_options()
        walk = PathWalk(problem, len(lams), least=lams.min(), max_iter=self._model.max_iter, **options)
        values = list[Value]()
        while len(values) < len(lams):
            found = walk.values(lams[len(values) :], goals[len(values) :])
            if not all(value.converged for value in found):
                return None
            values += found
        return values
