"""What the machines on a graph share: reading rows and graph, solving, scoring rows."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..fitted.arguments import check_choice, check_number, kernel_threads
from ..fitted.model import FittedModel
from ..fitted.progress import reporter
from ..losses import gamma
from ..tasks import TaskLabels, label_array, read_labels, read_stacked, refuse_not_finite, some_of
from .finish import solve_and_certify
from .graphs import read_graph, similarity_of
from .hashing import read_strings
from .ranges import refuse_costs, refuse_ranges, refuse_scaling
from .solver import GraphProblem, Solution, StringSource
from .string_scores import string_scores

SOLVERS = ("auto", "dual", "newton")


class GraphModel(FittedModel):
    """What the two models share: reading, coupling, solving, scoring rows."""

    _losses: ClassVar[tuple[str, ...]]

    graph: Any
    graph_tasks: Any
    graph_strength: float
    C: float
    loss: str
    fit_intercept: bool
    intercept_scaling: float
    hasher: Any
    tol: float
    max_iter: int
    solver: str
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    verbose: int

    # --- reading -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number(self.C, "C", low=0, closed=False)
        check_number(self.graph_strength, "graph_strength", low=0, closed=True)
        check_number(self.tol, "tol", low=0, closed=True)
        check_number(self.max_iter, "max_iter", low=1, closed=True, integer=True)
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
        return _row_major(matrix), rows

    def _read_coupling(self, labels: TaskLabels) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Tasks of the model, position of each of the data's tasks among them, I + L, M."""
        found = labels.tasks.tolist()
        if self.graph is None:
            if self.graph_tasks is not None:
                raise ValueError("graph_tasks names the rows of graph, but graph is None.")
            n_tasks = len(found)
            return labels.tasks, np.arange(n_tasks), np.eye(n_tasks), np.eye(n_tasks)
        weights, names = read_graph(self.graph)
        n_tasks = len(weights)
        if self.graph_tasks is not None:
            if names is not None:
                raise ValueError(
                    "graph_tasks was given with a networkx graph, whose nodes have names already."
                )
            names = np.asarray(self.graph_tasks).tolist()
            if len(names) != n_tasks or len(set(names)) != n_tasks:
                raise ValueError(
                    f"graph_tasks must name each of the {n_tasks} rows of graph once; it has {len(names)} names, "
                    f"{len(set(names))} of them different."
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
        place = {name: k for k, name in enumerate(names)}
        unknown = [name for name in found if name not in place]
        if unknown:
            raise ValueError(f"task {unknown[0]!r} is not on the graph, whose tasks are {some_of(names)}.")
        tasks = labels.tasks if names == found else label_array(names)
        coupling, similarity = similarity_of(weights, float(self.graph_strength))
        return tasks, np.array([place[name] for name in found], dtype=np.int64), coupling, similarity

    # --- solving -----------------------------------------------------------------------------------------------

    def _solve_all(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Any:
        self._check_parameters()
        source, rows = self._read_source(X)
        labels = read_labels(rows, y, task, sample_weight, targets=self._raw_targets, allow_empty=True)
        if not np.any(labels.weights > 0):
            raise ValueError("No row is left to fit: every label is missing or has zero sample_weight.")
        signs, weights = self._encode(labels)
        tasks, place, coupling, similarity = self._read_coupling(labels)
        self._remember_features(X if self.hasher is None else source.text, source.shape[1])
        order, offsets = _graph_order(labels, place, len(tasks))
        row_of = _row_of_sample(labels, order)
        with np.errstate(over="ignore", under="ignore"):
            cost = self.C * weights
        refuse_costs(float(self.C), cost, weights)
        threads = kernel_threads(self.n_jobs)
        seed = 0 if self.random_state is None else int(_seed(self.random_state))
        old = getattr(self, "_warm", None) if self.warm_start else None
        solutions, warm, kept, squares = [], [], None, None
        for k, target in enumerate(signs):
            problem = GraphProblem(
                source, offsets, row_of,
                np.ascontiguousarray(target if order is None else target[order]),
                np.ascontiguousarray(cost if order is None else cost[order]),
                coupling, similarity, self.loss, float(getattr(self, "epsilon", 0.0)),
                float(self.intercept_scaling) if self.fit_intercept else 0.0, threads, kept, squares,
            )  # fmt: skip
            unsearched = kept is None and not isinstance(source, StringSource)
            if unsearched and not get_config()["assume_finite"]:
                _refuse_not_finite_rows(problem)
            refuse_ranges(problem)
            start = None
            if old is not None and len(old) == len(signs) and len(old[k][0]) == len(target):
                start = _rescaled(problem, *old[k])
            solutions.append(
                solve_and_certify(
                    problem, tol=float(self.tol), max_iter=int(self.max_iter), solver=self.solver,
                    seed=seed, start=start,
                    progress=self._progress(),
                )
            )  # fmt: skip
            kept, squares = problem.rows, problem.squares
            warm.append((solutions[-1].beta, problem.c))
        self._set_solution(labels, tasks, order, solutions)
        if self.warm_start:
            self._warm = warm
        return self

    def _progress(self) -> Any:
        tell = reporter(type(self).__name__, "step", self.verbose)
        if tell is None:
            return None
        return lambda method, step, gap: tell(step, None, f"{method}, relative gap {gap:.1e}")

    def _set_solution(
        self, labels: TaskLabels, tasks: np.ndarray, order: np.ndarray | None, solutions: list[Solution]
    ) -> None:
        width = self.n_features_in_
        coef = [found.w[:, :width] for found in solutions]  # a view: tables of hashed strings are large
        intercept = [found.intercept for found in solutions]
        several = len(solutions) > 1
        self.coef_ = np.stack(coef) if several else coef[0]
        self.intercept_ = np.stack(intercept) if several else intercept[0]
        self.tasks_ = tasks
        self._single = labels.form == "single" and len(tasks) == 1
        self.objective_ = math.fsum(found.objective for found in solutions)
        gap = math.fsum(found.gap for found in solutions)
        self.dual_gap_ = gap + gamma(2) * (gap + self.objective_) if several else gap
        self.null_objective_ = float(sum(found.null for found in solutions))
        self.n_iter_ = max(found.n_iter for found in solutions)
        self.n_visits_ = sum(found.visits for found in solutions)
        self.solver_ = solutions[0].solver
        flat = np.stack([found.beta for found in solutions]) if several else solutions[0].beta
        if order is not None:
            back = np.empty_like(flat)
            back[..., order] = flat
            flat = back
        self.dual_coef_, self.support_ = _as_given(labels, flat)
        if not all(found.converged for found in solutions):
            worst = max(solutions, key=lambda found: found.gap / max(found.null, 1e-300))
            if worst.floored:
                warnings.warn(
                    f"{type(self).__name__} is certified to {worst.gap / worst.null:.1e} of the objective at W = 0, "
                    f"not tol={self.tol:g}: the rounding of double precision is in the way, more iterations will not "
                    "help. Subtract large means from the columns of X (and from y), or raise tol.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                return
            warnings.warn(
                f"{type(self).__name__} did not reach tol={self.tol:g} within max_iter={self.max_iter}: dual gap "
                f"{worst.gap:.3e}, relative gap {worst.gap / max(worst.null, 1e-300):.3e}. The gap "
                f"is a true bound on the "
                "distance to the optimum; raise max_iter, or tol if that is enough. Features of very different "
                "scales slow the descent: scale them (sklearn.preprocessing.StandardScaler).",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _encode(self, labels: TaskLabels) -> tuple[list[np.ndarray], np.ndarray]:
        """Targets of each problem to solve, and the weights of the samples."""
        return [labels.y], labels.weights

    # --- scoring rows ------------------------------------------------------------------------------------------

    def _read_matrix(self, X: Any, name: str = "X") -> Any:
        return super()._read_matrix(X, name) if self.hasher is None else self.hasher_.source(X)

    def _score_rows(
        self, rows: Any, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None
    ) -> np.ndarray:
        score = string_scores if isinstance(rows, StringSource) else super()._score_rows
        return score(rows, coef, intercept, codes)


# --- small helpers -----------------------------------------------------------------------------------------------


def _graph_order(labels: TaskLabels, place: np.ndarray, n_tasks: int) -> tuple[np.ndarray | None, np.ndarray]:
    """The samples task after task as the graph has them (None: as they are already), and where each task begins."""
    counts = np.zeros(n_tasks, dtype=np.int64)
    counts[place] = np.diff(labels.offsets)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if np.all(np.diff(place) > 0):
        return None, offsets
    parts = list(labels.per_task())
    return np.concatenate([np.arange(parts[k].start, parts[k].stop) for k in np.argsort(place)]), offsets


def _row_of_sample(labels: TaskLabels, order: np.ndarray | None) -> np.ndarray | None:
    """The row of X that each sample is; None where sample i is row i."""
    if order is None and labels.order is None and not labels.shared:
        return None
    rows = np.arange(labels.n_rows)
    rows = rows if labels.form == "list" else labels.flatten_rows(rows)
    return np.ascontiguousarray(rows if order is None else rows[order], dtype=np.int64)


def _refuse_not_finite_rows(problem: GraphProblem) -> None:
    """The norms of the rows, which are needed anyway, show NaN and infinity too: X is not read twice."""
    if not np.isfinite(np.sum(problem.row_squares())):
        refuse_not_finite(problem.source, "X")


def _row_major(matrix: Any) -> Any:
    """Rows contiguous in memory: a copy only of what is not."""
    if scipy.sparse.issparse(matrix):
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    return np.ascontiguousarray(matrix)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state) & 0x7FFFFFFF
    return int(random_state.randint(0x7FFFFFFF))


def _rescaled(problem: GraphProblem, beta: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The dual point of another C, made feasible for this one."""
    low, high = problem.row_loss.domain(problem.y)
    inside = 1e-12 if problem.loss == "logistic" else 0.0  # of the open interval, where the entropy is smooth
    slopes = np.divide(beta, c, out=np.zeros_like(beta), where=c > 0)
    return problem.c * np.clip(slopes, low + inside, high - inside)


def _as_given(labels: TaskLabels, flat: np.ndarray) -> tuple[Any, Any]:
    """Dual coefficients in the form of y, and the rows where they are not 0."""
    used = flat != 0 if flat.ndim == 1 else np.any(flat != 0, axis=0)
    if labels.form == "list":
        parts = list(labels.per_task())
        return [flat[..., part] for part in parts], [np.flatnonzero(used[part]) for part in parts]
    if labels.shared:
        wide = flat.reshape(*flat.shape[:-1], labels.n_tasks, labels.n_rows).swapaxes(-1, -2)
        return np.ascontiguousarray(wide), np.flatnonzero(
            used.reshape(labels.n_tasks, labels.n_rows).any(axis=0)
        )
    if labels.order is None:
        return flat, np.flatnonzero(used)
    back, rows = np.empty_like(flat), np.empty_like(used)
    back[..., labels.order] = flat
    rows[labels.order] = used
    return back, np.flatnonzero(rows)
