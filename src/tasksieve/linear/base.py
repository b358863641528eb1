"""Fitting one value or a path: what all linear models with a penalty strength share.

A model is the loss it is mixed with (`TaskRegression` or `TaskClassification`), a constructor, and where its
penalty is not the plain L2,1 norm, two short methods, `PathEstimator._penalty` and `PathEstimator._norm_share`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..design import Design, ScaledStorage, one_blas_thread
from ..docstrings import described_by
from ..fitted.arguments import (
    check_choice,
    check_number,
    default_grid,
    feature_names,
    given_grid,
    kernel_threads,
)
from ..fitted.documented import DATA, FITTED
from ..fitted.model import TaskLinearModel
from ..fitted.parameters import check_common
from ..fitted.path import RegularizationPath
from ..fitted.progress import reporter, tells_callbacks
from ..fitted.restore import DataFacts
from ..members import is_vouched
from ..messages import Message, estimator_name, value_error
from ..parameters import PARAMETERS, Parameter
from ..path.follow import PathSolution
from ..path.problem import Problem
from ..penalties.core import refuse_signs
from ..proof.certificate import Certificate
from ..proof.prove import Proof, prove
from ..tasks import TaskData, lay_out, read_feature_weights, read_task_graph
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .certified import CertifiedModel, Statement
from .held_out import Judge, mean_held_out
from .path_solver import PathSolver, RowSolver, SumsThenRows, memory_in_words, solve_along
from .sums import sums_of_rows
from .units import Units, exponent_of, measured_exponent, refuse_vanished

SCREENING: tuple[str | None, ...] = ("auto", "dpc", "dpc-published", "midpoint", "gap", None)


# Warnings of a gap that is larger than requested: no iteration would help, or more of them may.
_LIMITED = (
    "{model} is certified to {relative:.1e} of the objective at W = 0{several}, not to {tol=:g}{proviso}: {limit}."
)
_EXPLAINED = (
    "{model} is certified to a gap of {gap:.1e}{several}{proviso}, and the objective at W = 0 is rounding: the empty "
    "model explains y, and there is nothing to learn."
)
_UNFINISHED = (
    "{model} did not reach {tol=:g} in {spent} iterations{several} ({max_iter=}): dual gap {gap:.3e}, relative gap "
    "{relative:.3e}. The gap is a true bound on the distance to the optimum{proviso}; raise {max_iter}, or {tol} if "
    "that is enough."
)
# Of members that nobody has checked: what a gap rests on.
_IF_LOSS = "the loss is convex and its conjugate right (ts.checks)"
_IF_PENALTY = "the penalty is a norm and its gauges are right (ts.checks)"


class PathEstimator(CertifiedModel, TaskLinearModel):
    """Model with one penalty strength ``alpha``: `fit`, `path`, `alpha_max`.

    A subclass mixes in its loss, stores its parameters in the constructor and, where its penalty is not the
    L2,1 norm, says so in `_penalty` and `_norm_share`.
    """

    _parameters: ClassVar[dict[str, Parameter]] = PARAMETERS
    _attributes: ClassVar[str] = FITTED
    _screening_rules: ClassVar[tuple[str | None, ...]] = SCREENING

    alpha: Any
    fit_intercept: bool
    standardize: bool
    positive: bool
    feature_weights: Any
    task_weights: Any
    tol: float
    max_iter: int
    screening: str | None
    warm_start: bool
    n_jobs: int | None
    device: Any
    verbose: int
    #: of models that take them: a graph of tasks beside the penalty
    task_graph: Any = None
    graph_strength: float = 1.0

    def _penalty(self) -> dict[str, Any]:
        """Arguments of `Problem` that describe the penalty: by default the L2,1 norm."""
        return {}

    def _norm_share(self) -> float:
        """The share of alpha that the norm gets: in an elastic net ``l1_ratio``."""
        return 1.0

    def _row_weights(self, data: TaskData) -> np.ndarray:
        """Weights of the rows in the loss of the problem."""
        if data.task_weights_rule is None:
            return data.weights
        return self._loss.row_weights(data.weights, np.repeat(data.task_weights, np.diff(data.offsets)))

    def _units(self, data: TaskData, weights: np.ndarray) -> Units:
        """Units of the labels in which the problem is solved."""
        return Units.of(self._loss, data, weights)

    def _judge(self, data: TaskData, scoring: Any, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> Judge:
        """How held-out rows of folds (weights of training rows, of held-out rows) are scored."""
        loss = self._loss_of(data)
        return Judge(loss, scoring, mean_held_out(data, loss, folds))

    def _engine_options(self) -> dict[str, Any]:
        """Further arguments of `solve_path`."""
        return {"screening": self.screening}

    def _check_alpha(self) -> None:
        check_number(self.alpha, "alpha", low=0, closed=False)

    def _chosen_alpha(self, data: TaskData, problem: Problem) -> float:
        return self.alpha

    @tells_callbacks
    @takes_named_tasks
    @described_by(DATA, returns="self")
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit the model."""
        self._check_alpha()
        self._check_parameters()
        data = self._read_with(X, y, task, sample_weight, offset)
        with one_blas_thread():  # for problem and solution together: for a small fit, asking for it takes time
            solver = self._path_solver(data, 1, warm=self.warm_start)
            solution = self._solve_one(solver, self._chosen_alpha(data, solver.problem))
        self._set_features(X, data)
        return self._set_fit(solver, solution)

    def _solve_one(self, solver: PathSolver, alpha: float) -> PathSolution:
        solution = solve_along(solver, np.array([alpha], dtype=np.float64), self._progress())
        if not len(solution.points):
            raise solution.reason or KeyboardInterrupt
        return solution

    def _fit_from(self, X: Any, data: TaskData, coef: np.ndarray) -> Self:
        """Fit to data that were read, from some coefficients as a start."""
        with one_blas_thread():
            problem = self._problem(data)
            solver = RowSolver(self, data, problem, 1, start=self._as_start(problem, coef))
            solution = self._solve_one(solver, self._chosen_alpha(data, problem))
        self._set_features(X, data)
        return self._set_fit(solver, solution)

    def _set_fit(self, solver: PathSolver, solution: PathSolution) -> Self:
        """Attributes of a model whose features are known, and warnings."""
        facts, point = solver.facts, solution.points[0]
        self._set_solution(facts, point)
        self.choice_ = solution.choice
        self.null_objective_ = float(solution.null_objective) / self._unit(facts)
        self._set_scale(*solver.scale)
        solver.warn_scales(getattr(self, "feature_names_in_", None))
        if not point.converged:
            self._warn_not_converged(solution, facts)
        return self

    @takes_named_tasks
    @described_by(DATA)
    def path(
        self,
        X: Any,
        y: Any = None,
        *,
        task: Any = None,
        sample_weight: Any = None,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-2,
        offset: Any = None,
    ) -> RegularizationPath:
        """Solve for a whole sequence of penalty strengths; the model itself is not changed.

        Parameters
        ----------
        alphas : array, optional
            Penalty strengths, solved in decreasing order. By default ``n_alphas`` values, geometrically from
            `alpha_max` to ``eps`` times that.
        n_alphas : int, default=100
        eps : float, default=1e-2

        Returns
        -------
        RegularizationPath
            After Ctrl-C it holds the values solved until then (``interrupted`` is True).
        """
        self._check_parameters()
        data = self._read_with(X, y, task, sample_weight, offset)
        chosen = None if alphas is None else given_grid(alphas)
        with one_blas_thread():
            solver = self._path_solver(data, n_alphas if chosen is None else len(chosen))
            return self._follow(solver, chosen, n_alphas, eps, feature_names(X))

    def _follow(
        self, solver: PathSolver, alphas: np.ndarray | None, n_alphas: int, eps: float, names: np.ndarray | None
    ) -> RegularizationPath:
        grid = default_grid(solver.alpha_max(), n_alphas, eps) if alphas is None else alphas
        solution = solve_along(solver, grid, self._progress())
        return self._as_path(solver.facts, solver, solution, grid, names)

    @takes_named_tasks
    @described_by(DATA, returns="float")
    def alpha_max(
        self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> float:
        """The smallest alpha whose solution is zero (but for features that are never penalised)."""
        self._check_parameters()
        data = self._read_with(X, y, task, sample_weight, offset)
        return self._path_solver(data, 1).alpha_max()

    def _check_parameters(self) -> None:
        check_common(self)
        check_choice(self.screening, "screening", self._screening_rules)

    def _progress(self, label: str | None = None) -> Callable[[int, int, Any], None] | None:
        """The callback for each value of a path; None if progress is neither watched nor printed."""
        notify = reporter(label or type(self).__name__, "value", self.verbose)
        if notify is None:
            return None
        free = 0 if self.feature_weights is None else int(np.count_nonzero(np.asarray(self.feature_weights) == 0.0))
        closely = self.verbose >= 2

        def report(k: int, n_values: int, point: Any) -> None:
            selected = len(point.features) - free  # covariates are in every value, and not selected
            notify(k + 1, n_values, f"{selected} features selected" + (f", {_account(point)}" if closely else ""))

        return report

    def _path_solver(self, data: TaskData, n_values: int, *, warm: bool = False) -> PathSolver:
        """What follows the path of this model on some data: sums over the rows where these are less work, then rows."""
        sums = sums_of_rows(self, data, n_values)
        if sums is not None:
            return SumsThenRows(
                sums,
                lambda after: RowSolver(self, data, self._problem(data), n_values, after=after, by_sums=False),
            )
        problem = self._problem(data)
        start = self._last_solution(problem) if warm else None
        return RowSolver(self, data, problem, n_values, start=start, note=True)

    def _problem(self, data: TaskData, n_threads: int | None = None) -> Problem:
        feature_weights = read_feature_weights(self.feature_weights, data.n_features, self.positive)
        free = np.empty(0, dtype=np.int64) if feature_weights is None else np.flatnonzero(feature_weights == 0)
        if len(free):
            data.refuse_not_finite()  # unpenalised columns are used before their norms are known
        weights = self._row_weights(data)
        if not np.all(np.isfinite(weights)) or (data.task_weights_rule is not None and not weights.any()):
            raise value_error(
                "{task_weights} times {sample_weight} leaves the range of double precision: divide them by a "
                "constant."
            )
        units, layout = self._units(data, weights), lay_out(data, weights)

        joined, align = self._penalty().get("penalty"), getattr(layout.storage, "keep_together", None)
        if align is not None and joined is not None:
            align(joined.whole)  # groups of features are not to be cut apart

        def build(exponent: int) -> Problem:
            with np.errstate(over="ignore", invalid="ignore"), one_blas_thread(), memory_in_words():
                design = layout.design(
                    layout.storage if exponent == 0 else ScaledStorage(layout.storage, exponent),
                    fit_intercept=self.fit_intercept,
                    unpenalised=free,
                    standardize=self.standardize,
                    n_threads=kernel_threads(self.n_jobs) if n_threads is None else n_threads,
                )
                found = self._state(design, data, layout.y, feature_weights, units.on(exponent, self.standardize))
                found.lambda_max()  # norms come along in the same reading of the data
            return found

        try:
            problem = build(0)
            exponent = measured_exponent(problem.design, data.make_storage())
        except np.linalg.LinAlgError:  # unpenalised columns whose squares overflow
            exponent = exponent_of(data.make_storage())
            if not exponent:
                raise
        if exponent:
            problem = build(exponent)
        if not problem.design.finite:
            data.refuse_not_finite()
            raise ValueError("X has entries whose squares overflow: divide its columns by a common factor.")
        if problem.units.x:
            refuse_vanished(problem.design, data.make_storage())
        self._warn_dependent(problem.design, data)
        return problem

    def _state(
        self, design: Design, data: TaskData, y: np.ndarray, feature_weights: np.ndarray | None, units: Units
    ) -> Problem:
        """The problem on a design, X and y in some units."""
        penalty = self._penalty()
        inward = {"ridge_ratio": units.ratio, "fixed_ridge": units.ridge}
        penalty |= {name: convert(penalty[name]) for name, convert in inward.items() if name in penalty}
        if self.task_graph is not None and self.graph_strength > 0.0:
            penalty["task_graph"] = units.ridge(float(self.graph_strength)) * self._edges(data)
        problem = Problem(
            design,
            units.labels(y),
            offset=None if data.known is None else units.labels(data.known),
            loss=self._loss_of(data),
            feature_weights=feature_weights,
            positive=self.positive,
            unit=self._unit(data),
            **penalty,
        )
        problem.units = units
        if not self.positive:
            refuse_signs(problem.penalty, design.n_tasks)
        return problem

    def _edges(self, data: TaskData) -> np.ndarray:
        """Weights of the graph of tasks, or of the classes of tasks: each beside the same class of a neighbour."""
        if data.patterns is not None and not data.patterns.complete:
            raise value_error(
                "{task_graph}: neighbours pull at each other's coefficients, and an absent feature would not stay at "
                "0. With patterns of present columns leave the graph out (the penalty ties tasks together), or fill in "
                "what is missing."
            )
        graph, counts = read_task_graph(self.task_graph, data.tasks), data.class_counts
        if counts is None:
            return graph
        if isinstance(data.classes, list):
            raise value_error(
                "{task_graph}: neighbours must have the same classes, and here tasks have different ones."
            )
        return np.kron(graph, np.eye(int(counts[0])))

    def _warn_dependent(self, design: Design, data: TaskData) -> None:
        for found in design.samples.dependent[:1]:
            more = len({other.column for other in design.samples.dependent}) - 1
            warn(
                f"Unpenalised feature {design.unpenalised[found.column]} is a combination of others in task "
                f"{data.tasks.tolist()[found.task]!r} to {max(found.left, 1e-16):.0e}: its coefficient is fixed at 0 "
                f"there{f', and so it is for {more} more' if more else ''}. Leave it out, or give it a feature weight.",
                UserWarning,
            )

    def _inward(self, data: TaskData, units: Units, alphas: np.ndarray) -> np.ndarray:
        """Penalty strengths on some rows, in some units."""
        with np.errstate(over="ignore"):
            return units.inward(alphas * (self._norm_share() * self._unit(data)))

    def _solve(self, data: TaskData, problem: Problem, alphas: np.ndarray) -> PathSolution:
        """Values on the rows of a problem that is known."""
        return solve_along(RowSolver(self, data, problem, len(alphas), note=True), alphas)

    def _proof_of(self, data: TaskData, coef: np.ndarray, intercept: np.ndarray) -> Proof:
        """What is certain about any coefficients and intercepts, in sum units; a row for each class of each task where
        there are more than two."""
        problem = self._problem(data)
        if len(coef) != problem.design.n_tasks:
            raise ValueError("y must have the classes that the model was fitted to.")
        units = problem.units
        lam = self._inward(data, units, np.array([self.alpha]))[0]
        found = prove(problem, float(lam), units.rows(coef.T).T, units.constants(intercept))
        if units == Units():
            return found
        objective, best, gap = np.ldexp([found.objective, found.best_objective, found.dual_gap], units.f).tolist()
        return replace(found, objective=objective, best_objective=best, dual_gap=gap)

    def _stated(self) -> tuple[PathEstimator, float]:
        """Whose problem the certificate is about, and its strength."""
        return self, float(getattr(self, "alpha_", self.alpha))

    def _certificate_of_path(self, path: Any, points: Any, need: int | None, *given: Any) -> Certificate:
        """Of solutions of a path, on X, y, task, sample_weight, offset; `need`: of which it is proved what it needs."""
        found = [
            (float(alpha), point.features, point.rows, point.intercept, float(gap), point.thresholds)
            for alpha, gap, point in zip(path.alphas, path.dual_gaps, points, strict=True)
        ]
        return Statement(self, *given).certificate(found, need)

    def _last_solution(self, problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
        """Selected features and their rows in the units of the solver, where the last fit has the same shape."""
        coef = self._learned().rows if hasattr(self, "coef_") else None
        if coef is None or coef.shape != (problem.design.n_tasks, problem.design.n_features):
            return None
        return self._as_start(problem, coef) if np.all(np.isfinite(coef)) else None

    def _as_start(self, problem: Problem, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features and rows of coefficients in the units of the solver."""
        design = problem.design
        features = np.setdiff1d(np.flatnonzero(coef.any(axis=0)), design.unpenalised)
        rows = problem.units.rows(np.ascontiguousarray(coef[:, features].T))
        if self.standardize:
            design.norms()  # measures the scales
            rows /= design.original_units(features, np.ones_like(rows))
        return features, np.maximum(rows, 0.0) if self.positive else rows

    def _alpha_max(self, problem: Problem, data: TaskData) -> float:
        return RowSolver(self, data, problem, 1).alpha_max()

    def _path_rows(self, data: TaskData) -> dict[str, Any]:
        """What a path's rows of coefficients belong to."""
        return {"tasks": data.tasks, "classes": None if data.class_counts is None else data.classes}

    def _as_path(
        self, data: Any, solver: PathSolver, solution: PathSolution, alphas: np.ndarray, names: np.ndarray | None
    ) -> RegularizationPath:
        """A solution as a path."""
        n_solved = len(solution.points)
        if not solution.interrupted:
            solver.warn_scales(names)
        path = RegularizationPath(
            solution.points,
            alphas=alphas[:n_solved],
            unit=self._unit(data),
            **self._path_rows(data),
            n_features=data.n_features,
            feature_names=names,
            null_objective=solution.null_objective,
            passes=solution.passes,
            interrupted=solution.interrupted,
            estimator=self,
            facts=DataFacts.of(data, (point.features for point in solution.points)),
            scale=solver.scale,
            choice=solution.choice,
        )
        if solution.interrupted:
            why = "" if isinstance(solution.reason, KeyboardInterrupt | None) else f" {solution.reason}"
            warn(f"The path was interrupted: {n_solved} of {len(alphas)} values are solved.{why}")
        if not path.converged.all():
            self._warn_not_converged(solution, data)
        return path

    def _warn_not_converged(self, solution: PathSolution, data: Any) -> None:
        left = [point for point in solution.points if not point.converged]
        n_values, worst = len(solution.points), max(point.dual_gap for point in left)
        template = _LIMITED if all(point.limit for point in left) else _UNFINISHED
        words = Message(
            template if solution.null_objective > 0.0 else _EXPLAINED,
            model=estimator_name(self),
            tol=self.tol,
            max_iter=self.max_iter,
            spent=max(point.n_iter for point in left),
            several=f" at {len(left)} of {n_values} values" if n_values > 1 else "",
            gap=worst / self._unit(data),
            relative=worst / solution.null_objective if solution.null_objective > 0 else np.inf,
            limit=left[-1].limit,
            proviso=self._proviso(data),
        )
        warn(words, ConvergenceWarning)

    def _proviso(self, data: Any) -> str:
        """Condition that a gap rests on, where a loss or a penalty is of others and has not passed its battery."""
        loss = self._loss_of(data)
        losses = [*getattr(loss, "losses", ()), loss]
        said = [] if all(map(is_vouched, losses)) else [_IF_LOSS]
        penalty = self._penalty().get("penalty")
        said += [] if penalty is None or is_vouched(penalty) else [_IF_PENALTY]
        return f" if {', and '.join(said)}" if said else ""


def _account(point: Any) -> str:
    """What a value has cost, and how it ended."""
    gap = point.dual_gap / max(abs(point.objective), 1e-300)
    return (
        f"{point.status}, gap {gap:.1e} of the objective, {point.n_iter} iterations in {point.n_rounds} rounds by "
        f"{point.algorithm}, working set {point.n_working}, open bounds {point.n_open}, passes {point.passes:.2f}"
    )
