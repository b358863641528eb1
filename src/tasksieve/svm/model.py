"""What the machines on a graph share: reading rows and graph, solving, scoring rows."""

from __future__ import annotations

import time
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..docstrings import described_by
from ..fitted.arguments import check_choice, check_number, kernel_threads, warn_column
from ..fitted.documented import DATA
from ..fitted.fold_assignment import read_seed
from ..fitted.model import FittedModel
from ..fitted.parameters import check_common
from ..fitted.progress import reporter, tells_callbacks
from ..messages import Message, either, estimator_name, value_error
from ..parameters import Parameter
from ..tasks import TaskLabels, label_array, read_graph, read_labels, read_stacked, some_of
from ..tasks.many_tasks import warn_many_tasks
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .certified import CertifiedMachine
from .grids import read_Cs, read_strengths
from .hashing import read_strings
from .parameters import MACHINE, MACHINE_DATA, PATH_VALUES
from .path import GraphPath, GraphPoint
from .problem import Solution, StringSource
from .ranges import refuse_scaling
from .reading import GraphData, Shape, row_major
from .string_scores import string_scores
from .walk import Walk, stacked, totals, worst_of

SOLVERS = ("auto", "dual", "newton")


class GraphRows(CertifiedMachine, FittedModel):
    """A fitted machine on a graph, and the rows that it answers: matrices, or strings if there is a hasher."""

    graph: Any
    hasher: Any
    loss: str
    tol: float
    random_state: Any
    n_jobs: int | None
    verbose: int

    def _check_targets(self, y: Any, task: Any) -> None:
        if task is None and self._targets == "classes":
            warn_column(y)

    def _read_matrix(self, X: Any, name: str = "X") -> Any:
        return super()._read_matrix(X, name) if self.hasher is None else self.hasher_.source(X)

    def _score_rows(
        self, rows: Any, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None
    ) -> np.ndarray:
        score = string_scores if isinstance(rows, StringSource) else super()._score_rows
        return score(rows, coef, intercept, codes)


class GraphModel(GraphRows):
    """What the two models share: reading, coupling, solving."""

    _losses: ClassVar[tuple[str, ...]]
    _parameters: ClassVar[dict[str, Parameter]]
    _attributes: ClassVar[str] = MACHINE

    graph_tasks: Any
    graph_strength: float
    C: float
    fit_intercept: bool
    intercept_scaling: float
    max_iter: int
    solver: str
    warm_start: bool

    # --- reading -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_common(self)
        if self.fit_intercept:
            check_number(self.intercept_scaling, "intercept_scaling", low=0, closed=False)
            refuse_scaling(float(self.intercept_scaling))
        check_choice(self.loss, "loss", self._losses)
        check_choice(self.solver, "solver", SOLVERS)

    def _read_source(self, X: Any) -> tuple[Any, Any]:
        """The rows as the solver reads them, and how many there are (a list: per task)."""
        if self.hasher is not None:
            text = read_strings(X)
            self.hasher_ = clone(self.hasher).fit(text)
            return self.hasher_.source(text), len(text)
        matrix, rows = read_stacked(X, search=False)  # for NaN and infinity: with the norms of the rows
        return row_major(matrix), rows

    def _read_graph(self, labels: TaskLabels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tasks of the model, position of each of the data's tasks among them, weights of the graph."""
        found = labels.tasks.tolist()
        if self.graph is None:
            if self.graph_tasks is not None:
                raise value_error("{graph_tasks} names the rows of {graph}, but {graph} is None.")
            n_tasks = len(found)
            return labels.tasks, np.arange(n_tasks), np.zeros((n_tasks, n_tasks))
        weights, names = read_graph(self.graph)
        n_tasks = len(weights)
        if self.graph_tasks is not None:
            if names is not None:
                raise ValueError(
                    "graph_tasks was given with a networkx graph, whose nodes have names already."
                )
            names = np.asarray(self.graph_tasks).tolist()
            if len(names) != n_tasks or len(set(names)) != n_tasks:
                raise value_error(
                    "{graph_tasks} must name each of the {n_tasks} rows of {graph} once; it has {n} names, "
                    "{different} of them different.",
                    n_tasks=n_tasks,
                    n=len(names),
                    different=len(set(names)),
                )
        if names is None:
            whole = all(isinstance(name, int) and not isinstance(name, bool) for name in found)
            if whole and min(found) >= 0 and max(found) < n_tasks:
                names = list(range(n_tasks))
            elif len(found) == n_tasks:
                names = found
            else:
                raise ValueError(
                    f"graph has {n_tasks} rows, but the data have {len(found)} tasks ({some_of(found)}): pass "
                    "graph_tasks, the task of each row."
                )
        position = {name: k for k, name in enumerate(names)}
        unknown = [name for name in found if name not in position]
        if unknown:
            raise ValueError(f"task {unknown[0]!r} is not on the graph, whose tasks are {some_of(names)}.")
        tasks = labels.tasks if names == found else label_array(names)
        return tasks, np.array([position[name] for name in found], dtype=np.int64), weights

    def _read_data(self, X: Any, y: Any, task: Any, sample_weight: Any) -> GraphData:
        """All that C and the strength of the graph do not change; sets attributes about features and classes."""
        source, rows = self._read_source(X)
        labels = read_labels(rows, y, task, sample_weight, targets=self._raw_targets, allow_empty=True)
        if not np.any(labels.weights > 0):
            raise value_error("No row is left to fit: every label is missing or has zero {sample_weight}.")
        warn_many_tasks(labels)
        targets = self._encode(labels)
        tasks, position, graph = self._read_graph(labels)
        self._remember_features(X if self.hasher is None else source.text, source.shape[1])
        bias = float(self.intercept_scaling) if self.fit_intercept else 0.0
        shape = Shape(self.loss, float(getattr(self, "epsilon", 0.0)), bias, kernel_threads(self.n_jobs))
        return GraphData(source, labels, targets, tasks, position, graph, shape)

    def _stated(self) -> GraphModel:
        """Whose problem the certificate is about."""
        return self

    def _encode(self, labels: TaskLabels) -> list[np.ndarray]:
        """Targets of each problem to solve."""
        return [labels.y]

    def _class_factors(self, labels: TaskLabels, weights: np.ndarray) -> np.ndarray | None:
        """Factors of the weights in the loss, where these are the weights of the training rows."""
        return None

    def _weigh(self, labels: TaskLabels, weights: np.ndarray) -> np.ndarray:
        """Weights in the loss of samples that have these weights in the data."""
        factors = self._class_factors(labels, weights)
        return weights if factors is None else weights * factors

    # --- solving -----------------------------------------------------------------------------------------------

    @tells_callbacks
    @takes_named_tasks
    @described_by(MACHINE_DATA, DATA)
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Returns
        -------
        self
        """
        self._check_targets(y, task)
        self._check_parameters()
        return self._solve_data(self._read_data(X, y, task, sample_weight))

    def _solve_data(self, data: GraphData, label: str | None = None) -> Self:
        walk = Walk(data, self._weigh(data.labels, data.labels.weights), self._options())
        if self.warm_start:
            walk.last = getattr(self, "_warm", None)
        solutions = walk.solve(float(self.C), float(self.graph_strength), self._progress(label))
        self._set_solution(data, solutions)
        self._warn_open(solutions)
        if self.warm_start:
            self._warm = walk.last
        return self

    @takes_named_tasks
    @described_by(MACHINE_DATA, DATA, PATH_VALUES)
    def path(
        self,
        X: Any,
        y: Any = None,
        *,
        task: Any = None,
        sample_weight: Any = None,
        Cs: Any = 10,
        graph_strengths: Any = None,
    ) -> GraphPath:
        """Solve for many values of C and of the strength of the graph; the model itself is not changed.

        Each solution starts from the dual variables of its neighbour, scaled with C, which keeps them feasible: the
        next larger C, or the smallest one where the strength is another.

        Returns
        -------
        GraphPath
            After Ctrl-C it holds the values solved until then (``interrupted`` is True). Coefficients are dense: K
            tables of tasks x features.
        """
        self._check_parameters()
        strengths = self._strengths(graph_strengths, (self.graph_strength,))
        model = clone(self)
        data = model._read_data(X, y, task, sample_weight)
        weights = model._weigh(data.labels, data.labels.weights)
        grid = read_Cs(Cs, data, weights)
        total = len(strengths) * len(grid)
        progress = reporter(type(self).__name__, "value", self.verbose)
        points: list[GraphPoint] = []
        interrupted = False
        walk = Walk(data, weights, self._options())
        try:
            for C, strength in walk.values(grid, strengths):
                began = time.monotonic()
                solutions = walk.solve(C, strength)
                for found in solutions:
                    found.seen = None
                points.append(GraphPoint(C, strength, solutions, time.monotonic() - began))
                if progress is not None:
                    progress(len(points), total, f"C = {C:.3g}, graph_strength = {strength:.3g}")
        except KeyboardInterrupt:
            interrupted = True
            warn(f"The path was interrupted: {len(points)} of {total} values are solved.")
        self._warn_open([found for point in points for found in point.solutions])
        return GraphPath(points, model=model, data=data, interrupted=interrupted)

    def _strengths(self, given: Any, otherwise: Any) -> np.ndarray:
        """Values of graph_strength; without a graph there is nothing to vary."""
        if given is None:
            return read_strengths(otherwise)
        if self.graph is None:
            raise ValueError("graph_strengths was given, but graph is None: there is no graph penalty.")
        return read_strengths(given)

    def _options(self) -> dict[str, Any]:
        """How problems are solved, whatever the values of C and the strength."""
        seed = read_seed(self.random_state) & 0x7FFFFFFF
        return {"tol": float(self.tol), "max_iter": int(self.max_iter), "solver": self.solver, "seed": seed}

    def _progress(self, label: str | None = None) -> Any:
        progress = reporter(label or type(self).__name__, "step", self.verbose)
        if progress is None:
            return None
        return lambda method, step, gap: progress(step, None, f"{method}, relative gap {gap:.1e}")

    def _as_fitted(self, data: GraphData, coef: np.ndarray, intercept: np.ndarray) -> Any:
        """A copy that answers with other coefficients."""
        model = copy(self)
        model.coef_, model.intercept_, model.tasks_, model._single = coef, intercept, data.tasks, False
        if hasattr(model, "feature_names_in_"):  # it predicts rows of arrays
            del model.feature_names_in_
        return model

    def _set_solution(self, data: GraphData, solutions: list[Solution]) -> None:
        labels = data.labels
        self.coef_, self.intercept_ = stacked(solutions, self.n_features_in_)
        self.tasks_ = data.tasks
        self._single = labels.form == "single" and len(data.tasks) == 1
        self.objective_, self.dual_gap_ = totals(solutions)
        self.null_objective_ = float(sum(found.null for found in solutions))
        self.n_iter_ = max(found.n_iter for found in solutions)
        self.status_ = worst_of(solutions).status
        self.n_visits_ = sum(found.visits for found in solutions)
        self.solver_ = solutions[0].solver
        self._set_dual(data, [found.beta for found in solutions])

    def _set_dual(self, data: GraphData, points: list[np.ndarray]) -> None:
        """Dual coefficients in the form of y, those of several machines stacked, and the rows where they are not 0."""
        given, used = [data.in_form_of_y(beta) for beta in points], data.in_form_of_y(np.any(points, axis=0))
        if data.labels.form == "list":
            self.support_: Any = [np.flatnonzero(part) for part in used]
            given = [[np.stack(parts) for parts in zip(*given, strict=True)]] if len(given) > 1 else given
        else:
            self.support_ = np.flatnonzero(used.any(axis=1) if data.labels.shared else used)
        self.dual_coef_ = given[0] if len(given) == 1 else np.stack(given)

    def _warn_open(self, solutions: list[Solution]) -> None:
        """Warn of problems whose gap is above the tolerance."""
        worst = worst_of(solutions)
        if worst.converged:
            return
        if worst.limited_by_rounding:
            words = Message(
                "{model} is certified to {relative:.1e} of the objective at W = 0, not {tol=:g}: the rounding "
                "of double precision limits it, more iterations will not help. Subtract large means from the columns "
                "of {X} (and from {y}), or raise {tol}.",
                model=estimator_name(self),
                relative=worst.gap / worst.null,
                tol=self.tol,
            )
        else:
            words = Message(
                "{model} did not reach {tol=:g} within {max_iter=}: dual gap {gap:.3e}, relative gap {relative:.3e}. "
                "The gap is a true bound on the distance to the optimum; raise {max_iter}, or {tol} if that is enough. "
                "Features of very different scales slow the descent: scale them{how}.",
                model=estimator_name(self),
                tol=self.tol,
                max_iter=self.max_iter,
                gap=worst.gap,
                relative=worst.gap / max(worst.null, 1e-300),
                how=either(" (sklearn.preprocessing.StandardScaler)"),
            )
        warn(words, ConvergenceWarning)
