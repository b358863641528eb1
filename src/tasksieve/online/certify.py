"""From stream to proof: how far an online model is from the optimum of the batch problem, and what is certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..design import PackedColumns
from ..fitted.arguments import kernel_threads
from ..fitted.state import LinearState
from ..linear.classifier import MultiTaskLogisticRegression
from ..linear.lasso import MultiTaskElasticNet, MultiTaskLasso
from ..linear.sparse_group import MultiTaskSparseGroupLasso
from ..losses import gamma
from ..losses.hinge import Hinge, SmoothedHinge
from ..path.certificate import StoredSolution, scores_of
from ..path.problem import Problem
from ..path.solve import solve_path
from ..penalties import SparseGroup
from ..proof.prove import prove
from ..tasks import TaskData, lay_out, read_tasks
from .base import OnlineLinearModel

# How wide the hinge is smoothed to find dual points; the best one counts.
SMOOTHING = (1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# A feature whose row is forced to zero by this weight is out of the problem.
OUT = 1e9


@dataclass(frozen=True)
class Certificate:
    """What is proved about a model on given data.

    The problem is the sum over tasks of the mean loss, plus the penalty: batch models with
    ``task_weights="balanced"``.

    Attributes
    ----------
    objective : float
        The problem's objective at the model.
    dual_gap : float
        Upper bound on ``objective`` minus the optimum.
    null_objective : float
        The objective at W = 0 with the best intercepts.
    zero : boolean ndarray of shape (d,), or None
        Features whose row is zero at every optimum. None for the hinge loss, which allows no such test.
    needed : boolean ndarray of shape (d,), or None
        Features without which the optimum cannot be reached: every solution uses them.
    zero_coefficients : boolean ndarray of shape (T, d), or None
        Single coefficients that are zero at every optimum; tasks as in ``tasks``.
    tasks : ndarray
        The tasks of the data.
    """

    objective: float
    dual_gap: float
    null_objective: float
    zero: np.ndarray | None
    needed: np.ndarray | None
    zero_coefficients: np.ndarray | None
    tasks: np.ndarray

    @property
    def relative_gap(self) -> float:
        """The gap / the objective at W = 0."""
        return self.dual_gap / self.null_objective if self.null_objective > 0 else np.inf

    @property
    def undecided(self) -> np.ndarray | None:
        """Features of which neither is proved."""
        if self.zero is None or self.needed is None:
            return None
        return ~(self.zero | self.needed)


class Certifying(OnlineLinearModel):
    """`certify` and `batch_model` of the online models."""

    def certify(
        self,
        X: Any,
        y: Any,
        *,
        task: Any = None,
        sample_weight: Any = None,
        weights: Literal["last", "averaged"] = "last",
        needed: bool = True,
    ) -> Certificate:
        """Duality gap of the model on given data, and the features it decides.

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes; tasks must be known to the model.
        weights : {"last", "averaged"}, default="last"
            Which iterate to certify.
        needed : bool, default=True
            Also look for features that are provably needed: one batch problem without each selected feature.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self)
        if weights not in ("last", "averaged"):
            raise ValueError(f"weights must be 'last' or 'averaged'; got {weights!r}.")
        if not self.alpha > 0:
            raise ValueError("certify needs alpha > 0: without a penalty there is nothing to be proved zero.")
        with self._guard:  # one state, while learning continues
            state = self._learned()
            coef, intercept = state.coef, state.intercept
            if weights == "averaged":
                coef, intercept = self.averaged_coef_, self.averaged_intercept_
        data = self._read_balanced(X, y, task, sample_weight, state)
        known = {label: code for code, label in enumerate(state.tasks.tolist())}
        unknown = [label for label in data.tasks.tolist() if label not in known]
        if unknown:
            raise ValueError(
                f"task {unknown[0]!r} is unknown: the model has learned {list(known)[:5]} (see tasks_)."
            )
        positions = [known[label] for label in data.tasks.tolist()]
        coef, intercept = np.ascontiguousarray(coef[positions]), intercept[positions]
        lam = self.alpha * data.n_bar
        unit = data.n_bar
        if self.loss == "hinge":
            problem = self._balanced_problem(data, "squared")
            objective, gap, null = hinge_gap(problem, data.y, lam, coef, intercept)
            return Certificate(objective / unit, gap / unit, null / unit, None, None, None, data.tasks)
        problem = self._balanced_problem(data, self.loss)
        proof = prove(problem, lam, coef, intercept)
        return Certificate(
            proof.objective / unit,
            proof.dual_gap / unit,
            problem.loss.null.value / unit,
            proof.zero_rows,
            self._needed(problem, lam, coef, proof.best_objective) if needed else None,
            proof.zero_entries,
            data.tasks,
        )

    def certificate(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Certificate:
        """Refused: `certify` gives what an online model proves, and a file of it is the batch problem's.

        Parameters
        ----------
        X, y, task, sample_weight
            As in `certify`.
        """
        raise ValueError(
            "An online model's certificate is that of certify(X, y, ...). A file that others can check is the "
            "certificate of these coefficients for the batch problem: model.batch_model().certificate(X, y, ...)."
        )

    def batch_model(self, **params: Any) -> Any:
        """The batch estimator of the same problem, set up to start from this model.

        Parameters
        ----------
        **params
            Further parameters of that estimator (``tol``, ``n_jobs``, ...).

        Returns
        -------
        estimator
            `MultiTaskLasso`, `MultiTaskElasticNet`, `MultiTaskLogisticRegression` or `MultiTaskSparseGroupLasso`, with
            ``task_weights="balanced"`` and ``warm_start=True``: its `fit` begins at ``coef_``.
        """
        check_is_fitted(self)
        common = {"task_weights": "balanced", "warm_start": True, "fit_intercept": self.fit_intercept, **params}
        model: Any
        if self.loss == "hinge" or (self.loss == "squared" and self._targets == "classes"):
            raise ValueError(f"There is no batch classifier with loss={self.loss!r}: use loss='logistic'.")
        if self.l2 > 0:
            if self.penalty != "l21" or self.loss != "squared":
                raise ValueError(
                    "With a ridge (l2 > 0) there is a batch model for penalty='l21', loss='squared' only."
                )
            total = self.alpha + self.l2
            model = MultiTaskElasticNet(alpha=total, l1_ratio=self.alpha / total, **common)
        elif self.penalty != "l21":
            l1, group = (1.0, 0.0) if self.penalty == "l11" else (self.l1, 1.0)
            model = MultiTaskSparseGroupLasso(self.alpha, l1=l1, group=group, loss=self.loss, **common)
        elif self.loss == "logistic":
            model = MultiTaskLogisticRegression(self.alpha, **common)
        else:
            model = MultiTaskLasso(self.alpha, **common)
        with self._guard:
            state = self._learned()
            if self._targets == "classes":
                model.classes_ = self.classes_
        order = np.argsort(state.tasks, kind="stable")
        model.coef_, model.intercept_ = state.coef[order], state.intercept[order]
        model.tasks_, model._single = state.tasks[order], state.single
        model.n_features_in_ = state.coef.shape[1]
        return model

    # -- the batch problem --------------------------------------------------------------------------------------------

    def _read_balanced(self, X: Any, y: Any, task: Any, sample_weight: Any, state: LinearState) -> TaskData:
        data = read_tasks(X, y, task, sample_weight, task_weights="balanced", targets=self._targets)
        if data.n_features != state.coef.shape[1]:
            raise ValueError(f"X has {data.n_features} features, but the model has {state.coef.shape[1]}.")
        if self._targets == "classes" and not isinstance(data.classes, list):
            classes = state.classes
            if isinstance(classes, list) or classes.tolist() != data.classes.tolist():
                raise ValueError(
                    f"y has the classes {data.classes.tolist()}, the model has {classes!r}: the same are needed."
                )
        return data

    def _balanced_problem(self, data: TaskData, loss: str) -> Problem:
        layout = lay_out(data, data.sample_weights)
        design = layout.design(fit_intercept=self.fit_intercept, n_threads=kernel_threads())
        l1, group = {"l21": (0.0, 1.0), "l11": (1.0, 0.0), "l1+l21": (self.l1, 1.0)}[self.penalty]
        return Problem(
            design,
            data.y,
            loss=loss,
            penalty=SparseGroup(l1 if np.ndim(l1) == 0 else np.asarray(l1, dtype=np.float64), group),
            ridge_ratio=self.l2 / self.alpha,
            unit=data.n_bar,
        )

    def _needed(self, problem: Problem, lam: float, coef: np.ndarray, reached: float) -> np.ndarray:
        """Features j for which the problem without row j has a dual value above the primal value reached."""
        needed = np.zeros(coef.shape[1], dtype=bool)
        support = np.flatnonzero(coef.any(axis=0))
        for j in support:
            weights = np.ones(coef.shape[1])
            weights[j] = OUT
            without = problem.reweighted(weights)
            rest = support[support != j]
            start = rest, np.ascontiguousarray(coef[:, rest].T)
            for tol in (1e-2, 1e-3, 1e-4, 1e-6):
                point = solve_path(without, [lam], tol=tol, start=start, max_iter=2000).points[0]
                kept = point.features != j
                start = point.features[kept], np.ascontiguousarray(point.rows[kept])
                if point.objective - point.dual_gap > reached:
                    needed[j] = True
                    break
                if point.objective <= reached:
                    break
        return needed


def hinge_gap(
    problem: Problem, y: np.ndarray, lam: float, coef: np.ndarray, intercept: np.ndarray
) -> tuple[float, float, float]:
    """Objective, duality gap and objective at W = 0 of the hinge loss, in sum units.

    Dual points: ``u = y a`` = s times the slope of the hinge rounded over a width kappa, for several kappa; classes
    balanced within each task (the intercept's constraint), and scaled into the dual set.
    """
    design, penalty = problem.design, problem.penalty.at(lam)
    features = np.flatnonzero(coef.any(axis=0))
    packed = PackedColumns(design)
    numbers = StoredSolution(
        features, np.ascontiguousarray(coef[:, features].T), intercept, np.empty((0, design.n_tasks))
    )
    rows, z, off = scores_of(problem.loss, packed, packed.positions(features), numbers)
    z = z + design.per_sample(problem.loss.shift)
    s = np.ones(design.n_samples) if design.weights is None else design.weights
    root = np.sqrt(s)
    objective = float(s @ Hinge().value(y, z)) + penalty.restrict(features).total(rows)
    positive, negative = design.task_sums(s * (y > 0)), design.task_sums(s * (y < 0))
    null = float(np.sum(2.0 * np.minimum(positive, negative))) if design.fit_intercept else float(s.sum())
    best, slack = 0.0, gamma(4 * design.n_samples + 64)
    for kappa in SMOOTHING:
        a = s * y * SmoothedHinge(kappa).slope(y, z)
        if design.fit_intercept:
            above, below = design.task_sums(a * (y > 0)), design.task_sums(a * (y < 0))
            least = np.minimum(above, below)
            up = np.divide(least, above, out=np.zeros_like(least), where=above > 0)
            down = np.divide(least, below, out=np.zeros_like(least), where=below > 0)
            # Sums of the classes are equal up to rounding; a factor this near to 1 makes them so, and stays below s.
            a = a * np.where(y > 0, design.per_sample(up), design.per_sample(down)) * (1.0 - slack)
        residual = np.divide(y * a, root, out=np.zeros_like(a), where=root > 0)
        lengths = np.sqrt(design.task_sums(residual * residual))
        products = np.abs(design.correlate(residual)) + design.norms() * (2.0 * design.rounding * lengths)
        best = max(best, _hinge_dual(penalty, products, float(a.sum()) * (1.0 - 2.0 * slack)))
    # The loss changes by no more than the scores do.
    objective_error = float(np.sqrt(design.task_sums(s)) @ off) + slack * objective
    return objective, max(objective - best, 0.0) + objective_error, null


def _hinge_dual(penalty: Any, products: np.ndarray, total: float) -> float:
    """The largest dual value on the ray through a point with these correlations: ``c total - Omega*(c M)``, c <= 1."""
    if penalty.ridge == 0.0:
        polar = float(np.max(penalty.row_gauges(products), initial=0.0))
        return total * min(1.0, 1.0 / (polar * (1.0 + 1e-12))) if polar > 0 else total

    def value(c: float) -> float:
        left = np.maximum(np.abs(c * products) - penalty.l1[:, None], 0.0)
        over = np.maximum(np.sqrt(np.einsum("ij,ij->i", left, left)) - penalty.group, 0.0)
        return c * total - float(over @ over) / (2.0 * penalty.ridge)

    low, high = 0.0, 1.0
    for _ in range(60):  # concave in c
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if value(a) < value(b) else (low, b)
    return max(value(low), value(high), 0.0)
