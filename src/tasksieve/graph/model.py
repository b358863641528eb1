"""What the machines on a graph share: reading rows and graph, solving, scoring rows."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..fitted.progress import reporter
from ..linear.base import (
    check_number,
    feature_names,
    kernel_threads,
)
from ..tasks import (
    TaskLabels,
    is_task_list,
    linear_scores,
    read_labels,
    read_matrix,
    refuse_not_finite,
    task_codes,
)
from .graphs import read_graph, similarity_of
from .hashing import read_strings
from .solver import GraphProblem, Solution, StringSource, solve
from .string_scores import string_scores

SOLVERS = ("auto", "dual", "newton")


class GraphModel(BaseEstimator):
    """What the two models share: reading, coupling, solving, scoring rows."""

    _targets: ClassVar[Literal["values", "classes"]]
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
    coef_: np.ndarray
    intercept_: np.ndarray
    tasks_: np.ndarray
    n_features_in_: int
    _single: bool

    # --- reading -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number(self.C, "C", low=0, closed=False)
        check_number(self.graph_strength, "graph_strength", low=0, closed=True)
        check_number(self.tol, "tol", low=0, closed=True)
        check_number(self.max_iter, "max_iter", low=1, closed=True, integer=True)
        if self.fit_intercept:
            check_number(self.intercept_scaling, "intercept_scaling", low=0, closed=False)
        for name, value, allowed in (("loss", self.loss, self._losses), ("solver", self.solver, SOLVERS)):
            if value not in allowed:
                raise ValueError(
                    f"The {name!r} parameter must be one of {', '.join(map(repr, allowed))}; got {value!r}."
                )

    def _read_source(self, X: Any) -> tuple[Any, Any]:
        """The rows as the solver reads them, and how many there are (a list: per task)."""
        if self.hasher is not None:
            text = read_strings(X)
            self.hasher_ = clone(self.hasher).fit(text)
            return self.hasher_.source(text), len(text)
        if is_task_list(X):
            parts = [read_matrix(item, f"X[{t}]") for t, item in enumerate(X)]
            for t, part in enumerate(parts):
                if part.shape[1] != parts[0].shape[1]:
                    raise ValueError(
                        f"X[{t}] has {part.shape[1]} features, X[0] has {parts[0].shape[1]}: all tasks need the same "
                        "features in the same order."
                    )
            sparse = any(scipy.sparse.issparse(part) for part in parts)
            stacked = scipy.sparse.vstack(parts, format="csr") if sparse else np.concatenate(parts)
            return _row_major(stacked), [part.shape[0] for part in parts]
        matrix = read_matrix(X, search=False)  # for NaN and infinity: with the norms of the rows
        return _row_major(matrix), matrix.shape[0]

    def _set_features(self, X: Any, source: Any) -> None:
        self.n_features_in_ = source.shape[1]
        items = X if is_task_list(X) else [X]
        names = None if self.hasher is not None else feature_names(items[0])
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

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
                    f"graph has {n_tasks} rows, but the data have {len(found)} tasks "
                    f"({_shown(found)}): pass graph_tasks, "
                    "the task of each row."
                )
        place = {name: k for k, name in enumerate(names)}
        unknown = [name for name in found if name not in place]
        if unknown:
            raise ValueError(f"task {unknown[0]!r} is not on the graph, whose tasks are {_shown(names)}.")
        tasks = labels.tasks if names == found else _label_array(names)
        coupling, similarity = similarity_of(weights, float(self.graph_strength))
        return tasks, np.array([place[name] for name in found], dtype=np.int64), coupling, similarity

    # --- solving -----------------------------------------------------------------------------------------------

    def _solve_all(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Any:
        self._check_parameters()
        source, rows = self._read_source(X)
        targets: Literal["values", "labels"] = "values" if self._targets == "values" else "labels"
        labels = read_labels(rows, y, task, sample_weight, targets=targets, allow_empty=True)
        if not np.any(labels.weights > 0):
            raise ValueError("No row is left to fit: every label is missing or has zero sample_weight.")
        signs, weights = self._encode(labels)
        tasks, place, coupling, similarity = self._read_coupling(labels)
        self._set_features(X, source)
        order, offsets = _graph_order(labels, place, len(tasks))
        row_of = _row_of_sample(labels, order)
        cost = self.C * weights
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
            start = None
            if old is not None and len(old) == len(signs) and len(old[k][0]) == len(target):
                start = _rescaled(problem, *old[k])
            solutions.append(
                solve(
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
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        width = self.n_features_in_
        coef = [found.w[:, :width] for found in solutions]  # a view: tables of hashed strings are large
        intercept = [
            bias * found.w[:, width].astype(np.float64) if bias else np.zeros(len(tasks))
            for found in solutions
        ]
        several = len(solutions) > 1
        self.coef_ = np.stack(coef) if several else coef[0]
        self.intercept_ = np.stack(intercept) if several else intercept[0]
        self.tasks_ = tasks
        self._single = labels.form == "single" and len(tasks) == 1
        self.objective_ = float(sum(found.objective for found in solutions))
        self.dual_gap_ = float(sum(found.gap for found in solutions))
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
        if self.hasher is not None:
            return self.hasher_.source(X)
        if not isinstance(X, np.ndarray | list) or hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        matrix = read_matrix(X, name, min_rows=0)
        if matrix.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {matrix.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return matrix

    def _scores(self, X: Any, task: Any) -> Any:
        """x . w_t + b_t: (n,), (n, T) or a list; with more than two classes one more axis for them."""
        check_is_fitted(self, "coef_")
        if self.hasher is None and is_task_list(X):
            n_tasks = len(self.tasks_)
            if task is not None:
                raise ValueError(
                    "task was given with a list of matrices: there, item t belongs to tasks_[t]."
                )
            if len(X) != n_tasks:
                raise ValueError(
                    f"X is a list of {len(X)} matrices, but the model has {n_tasks} tasks: pass one "
                    f"matrix per task (of 0 "
                    "rows where there is nothing to predict), or stacked rows with task."
                )
            parts = []
            for t, item in enumerate(X):
                matrix = self._read_matrix(item, f"X[{t}]")
                parts.append(self._score_rows(matrix, np.full(matrix.shape[0], t)))
            return parts
        matrix = self._read_matrix(X)
        codes = None if task is None else task_codes(task, self.tasks_, matrix.shape[0])
        scores = self._score_rows(matrix, codes)
        return scores[:, 0] if codes is None and self._single else scores

    def _score_rows(self, matrix: Any, codes: np.ndarray | None) -> np.ndarray:
        score = string_scores if isinstance(matrix, StringSource) else linear_scores
        if self.coef_.ndim == 2:
            return score(matrix, self.coef_, self.intercept_, codes)
        each = [score(matrix, coef, b, codes) for coef, b in zip(self.coef_, self.intercept_, strict=True)]
        return np.stack(each, axis=-1)

    def _read_test_labels(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskLabels:
        """Labels to score against; a task without observed labels has weight 0."""
        if self.hasher is None and is_task_list(X):
            rows: Any = [len(item) if isinstance(item, list) else item.shape[0] for item in X]
        else:
            rows = len(X) if isinstance(X, list | tuple) else X.shape[0]
        targets: Literal["values", "labels"] = "values" if self._targets == "values" else "labels"
        labels = read_labels(rows, y, task, sample_weight, targets=targets, allow_empty=True)
        if labels.form == "single" and len(self.tasks_) > 1:
            raise ValueError(
                f"The model has {len(self.tasks_)} tasks: pass task, the task of each row, to score."
            )
        if labels.form in ("list", "shared") and labels.n_tasks != len(self.tasks_):
            raise ValueError(f"y has {labels.n_tasks} tasks, the model has {len(self.tasks_)}.")
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


# --- small helpers -----------------------------------------------------------------------------------------------


def _shown(names: list[Any]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")


def _label_array(names: list[Any]) -> np.ndarray:
    """Labels as an array; labels of different kinds stay what they are."""
    if len({type(name) for name in names}) > 1 or any(isinstance(name, tuple) for name in names):
        labels = np.empty(len(names), dtype=object)
        labels[:] = names
        return labels
    return np.array(names)


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
        matrix = matrix.tocsr()
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
    start = np.where(c > 0, beta * problem.c / np.where(c > 0, c, 1.0), 0.0)
    if problem.code <= 2:
        a = np.maximum(problem.y * start, 0.0)
        if problem.code == 0:
            a = np.minimum(a, problem.c)
        elif problem.code == 2:  # inside (0, c), where the entropy is smooth
            a = np.clip(a, 1e-12 * problem.c, (1 - 1e-12) * problem.c)
        return problem.y * a
    return np.clip(start, -problem.c, problem.c) if problem.code == 3 else np.where(problem.c > 0, start, 0.0)


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
