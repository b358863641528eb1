"""Support vector machines for tasks on a graph."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linear.base import (
    TaskRegression,
    accuracy,
    check_number,
    feature_names,
    kernel_threads,
    mean_over_tasks,
    stack_pairs,
    warn_column,
)
from ..tasks import TaskLabels, is_task_list, linear_scores, read_labels, read_matrix, task_codes
from .graphs import read_graph, similarity_of
from .hashing import read_strings
from .solver import GraphProblem, Solution, StringSource, solve

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
        matrix = read_matrix(X)
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
        # samples in the order of the graph's tasks
        code = place[labels.task_of_sample]
        order = None if np.all(code[1:] >= code[:-1]) else np.argsort(code, kind="stable")
        row_of = (
            labels.flatten_rows(np.arange(labels.n_rows)) if labels.form != "list" else np.arange(len(code))
        )
        if order is not None:
            code, row_of = code[order], row_of[order]
        offsets = np.searchsorted(code, np.arange(len(tasks) + 1)).astype(np.int64)
        straight = len(row_of) == labels.n_rows and np.array_equal(row_of, np.arange(len(row_of)))
        cost = self.C * weights
        threads = kernel_threads(self.n_jobs)
        seed = 0 if self.random_state is None else int(_seed(self.random_state))
        old = getattr(self, "_warm", None) if self.warm_start else None
        solutions, warm, squares = [], [], None
        for k, target in enumerate(signs):
            problem = GraphProblem(
                source, offsets, None if straight else np.ascontiguousarray(row_of, dtype=np.int64),
                np.ascontiguousarray(target if order is None else target[order]),
                np.ascontiguousarray(cost if order is None else cost[order]),
                coupling, similarity, self.loss, float(getattr(self, "epsilon", 0.0)),
                float(self.intercept_scaling) if self.fit_intercept else 0.0, threads, squares,
            )  # fmt: skip
            start = None
            if old is not None and len(old) == len(signs) and len(old[k][0]) == len(target):
                start = _rescaled(problem, *old[k])
            solutions.append(
                solve(
                    problem, tol=float(self.tol), max_iter=int(self.max_iter), solver=self.solver,
                    seed=seed, start=start,
                    progress=_Progress(type(self).__name__) if self.verbose else None,
                )
            )  # fmt: skip
            squares = problem.squares
            warm.append((solutions[-1].beta, problem.c))
        self._set_solution(labels, tasks, order, solutions)
        if self.warm_start:
            self._warm = warm
        return self

    def _set_solution(
        self, labels: TaskLabels, tasks: np.ndarray, order: np.ndarray | None, solutions: list[Solution]
    ) -> None:
        bias = self.intercept_scaling if self.fit_intercept else 0.0
        width = self.n_features_in_
        coef = [np.ascontiguousarray(found.w[:, :width]) for found in solutions]
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
        self._null_objective = float(sum(found.null for found in solutions))
        self.n_iter_ = max(found.n_iter for found in solutions)
        self.solver_ = solutions[0].solver
        flat = np.stack([found.beta for found in solutions])
        if order is not None:
            back = np.empty_like(flat)
            back[:, order] = flat
            flat = back
        self.dual_coef_, self.support_ = _as_given(labels, flat if several else flat[0])
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
        score = _string_scores if isinstance(matrix, StringSource) else linear_scores
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


class GraphSVC(ClassifierMixin, GraphModel):
    r"""Support vector classifier for tasks that are neighbours on a graph.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(y_i\, x_i \cdot w_{t(i)}\bigr), \qquad y_i = \pm 1

    with L = ``graph_strength`` times the Laplacian of the graph, so that the second term is half the sum of
    :math:`A_{st} \lVert w_s - w_t \rVert^2` over edges: neighbours are drawn together (Widmer et al. 2012).

    Parameters
    ----------
    graph : array or sparse matrix of shape (T, T), networkx graph, optional
        Weights :math:`A_{st} \ge 0`, symmetric. None: independent machines. Helpers: `tasksieve.graph.complete_graph`,
        `~tasksieve.graph.tree_graph`, `~tasksieve.graph.nearest_neighbor_graph`, `~tasksieve.graph.distance_graph`.
    graph_tasks : sequence of T labels, optional
        The task of each row of ``graph``. By default 0, ..., T - 1 where all labels in the data are integers in that
        range,
        else the sorted labels, of which there must then be T. A networkx graph uses the names of its nodes.
    graph_strength : float, default=1.0
        Factor of the Laplacian; 0: independent machines.
    C : float, default=1.0
        Weight of the loss, > 0.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        max(0, 1 - m), max(0, 1 - m)², log(1 + exp(-m)) of the margin m. "logistic" gives `predict_proba`.
    fit_intercept : bool, default=True
        One more feature, constant and of size ``intercept_scaling``: its coefficients are regularised and coupled as
        the
        others are, and counted in the objective.
    intercept_scaling : float, default=1.0
        The larger, the less the intercept is regularised.
    class_weight : dict or "balanced", optional
        Factor of ``sample_weight`` by class; "balanced": total weight / (number of classes x weight of the class).
    hasher : WeightedDegreeHasher, optional
        X is then strings of one length, hashed on the fly inside the solver: their features are never stored.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times the objective at W = 0.
    max_iter : int, default=10000
        Epochs of the descent after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.
    solver : {"auto", "dual", "newton"}, default="auto"
        Dual coordinate descent, or Newton's method on the loss with rounded kinks. "auto" takes Newton for dense rows
        many
        times more numerous than tasks x features, and falls back on the descent where it stalls.
    warm_start : bool, default=False
        Start from the dual solution of the last `fit`, rescaled if C has changed.
    random_state : int, RandomState instance, optional
        Seed of the order in which rows are visited; None is 0, so that the same input gives the same answer.
    n_jobs : int, optional
        Threads of the passes over the data; by default all processors available (see ``TASKSIEVE_NUM_THREADS``).
    verbose : int, default=0
        Report progress on stderr, about once a second.

    Attributes
    ----------
    classes_ : ndarray, or list of pairs
        Sorted labels over all tasks; of two, the larger is +1. Where every task has two labels, but not all the same,
        a list
        of pairs in the order of ``tasks_`` (None for a task without rows).
    coef_ : ndarray of shape (T, d), with more than two classes (n_classes, T, d)
        A row per task of the graph, also for those without rows. One-vs-rest for more than two classes.
    intercept_ : ndarray of shape (T,), with more than two classes (n_classes, T)
    tasks_ : ndarray of shape (T,)
        Task labels in the order of the graph.
    dual_coef_ : ndarray of shape (n,) or (n, T), or list of ndarray, in the form of y
        :math:`y_i \alpha_i` of each row; with more than two classes one more axis in front.
    support_ : ndarray, or list of ndarray
        Rows whose dual coefficient is not 0 in some task or class.
    objective_ : float
        The objective at the fitted model (summed over the classes of one-vs-rest).
    dual_gap_ : float
        ``objective_`` minus the optimum is at most this.
    n_iter_ : int
        Epochs of the descent, or Newton steps.
    solver_ : str
        The method that found the answer.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had them.
    hasher_ : WeightedDegreeHasher
        The hasher fitted to the length of the strings, where there is one.

    Notes
    -----
    With :math:`M = (I + L)^{-1}`, whose rows sum to 1, :math:`w_t = \sum_s m_{ts} v_s`: each task is a mixture of
    what the rows
    of all tasks have to say. A task without rows of its own is predicted by its neighbours in that way.
    `tasksieve.graph.task_similarity` gives M.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 5)), np.repeat([0, 1, 2], 20)
    >>> y = np.where(X[:, 0] + 0.3 * task * X[:, 1] > 0, "yes", "no")
    >>> graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> model = ts.GraphSVC(graph, C=0.5).fit(X, y, task=task)
    >>> model.coef_.shape, model.dual_gap_ <= 1e-6 * 0.5 * 60
    ((3, 5), True)
    >>> model.predict(X[:2], task=[0, 2]).tolist()
    ['yes', 'yes']
    """

    _targets: ClassVar[Literal["values", "classes"]] = "classes"
    _losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "logistic")

    def __init__(
        self,
        graph: Any = None,
        *,
        graph_tasks: Any = None,
        graph_strength: float = 1.0,
        C: float = 1.0,
        loss: Literal["hinge", "squared_hinge", "logistic"] = "hinge",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        hasher: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        solver: Literal["auto", "dual", "newton"] = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.graph_tasks = graph_tasks
        self.graph_strength = graph_strength
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.hasher = hasher
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> GraphSVC:
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
            Rows of all tasks stacked (with ``task``), one matrix per task (a list), or one matrix shared by all tasks
            (with y of shape (n, T)). C-ordered float64, float32, int8 and uint8 arrays and CSR matrices are read as
            they lie in memory, in any order of tasks; never modified.
        y : array of shape (n,) or (n, T), or list of 1-D arrays
            Class labels. NaN (None) is a label that is not observed. 1-D without ``task``: one task.
        task : array of shape (n,), optional
            The task of each row: any labels, in any order.
        sample_weight : array or list in the form of y, or float, optional
            Weights >= 0 of the rows in the loss; 0 leaves a row out.

        Returns
        -------
        self
        """
        if task is None:
            warn_column(y)
        result: GraphSVC = self._solve_all(X, y, task, sample_weight)
        return result

    def _encode(self, labels: TaskLabels) -> tuple[list[np.ndarray], np.ndarray]:
        present, y = labels.weights > 0, labels.y
        weights = labels.weights
        try:
            classes = np.unique(y[present])
        except TypeError as error:
            raise ValueError("y mixes labels that cannot be sorted (numbers and strings, say).") from error
        if len(classes) == 1:
            raise ValueError(
                f"y has one class only ({classes.tolist()[0]!r}): a classifier needs two classes."
            )
        if y.dtype.kind == "f" and len(classes) > 2 and np.any(y[present] != np.floor(y[present])):
            raise ValueError(
                "Unknown label type: continuous. y holds real numbers, a classifier needs classes."
            )
        weights = weights * self._class_weights(labels, classes, present)
        if len(classes) == 2:
            self.classes_: Any = classes
            return [_signs(y == classes[1], present)], weights
        pairs = [np.unique(y[part][present[part]]) for part in labels.per_task()]
        if len(pairs) > 1 and all(len(pair) == 2 for pair in pairs):
            tasks, place, *_ = self._read_coupling(labels)
            self.classes_ = [None] * len(tasks)
            signs = np.zeros(len(y))
            for t, (pair, part) in enumerate(zip(pairs, labels.per_task(), strict=True)):
                self.classes_[place[t]] = pair
                signs[part] = _signs(y[part] == pair[1], present[part])
            return [signs], weights
        self.classes_ = classes
        return [_signs(y == label, present) for label in classes], weights

    def _class_weights(
        self, labels: TaskLabels, classes: np.ndarray, present: np.ndarray
    ) -> np.ndarray | float:
        rule = self.class_weight
        if rule is None:
            return 1.0
        code = np.zeros(len(labels.y), dtype=np.int64)
        code[present] = np.searchsorted(classes, labels.y[present])
        if isinstance(rule, Mapping):
            unknown = [label for label in rule if label not in classes.tolist()]
            if unknown:
                raise ValueError(f"class_weight names the class {unknown[0]!r}, which is not in y.")
            factor = np.array([float(rule.get(label, 1.0)) for label in classes.tolist()])
            if not np.all((factor > 0) & np.isfinite(factor)):
                raise ValueError("class_weight must hold finite numbers > 0.")
        elif isinstance(rule, str) and rule == "balanced":
            total = np.bincount(code[present], weights=labels.weights[present], minlength=len(classes))
            factor = total.sum() / (len(classes) * total)
        else:
            raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {rule!r}.")
        return factor[code]

    def decision_function(self, X: Any, task: Any = None) -> Any:
        """Score of the larger class, x . w_t + b_t; with more than two classes the scores of all.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
        task : array of shape (n,), optional

        Returns
        -------
        ndarray of shape (n,) with ``task``, (n, T) without; a list for a list
            More than two classes: one more axis, in the order of ``classes_``.
        """
        return self._scores(X, task)

    def predict(self, X: Any, task: Any = None) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
            Rows to predict; in a list, item t belongs to ``tasks_[t]``.
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to a
            1-D y without task); a list for a list.
        """
        scores = self._scores(X, task)
        if isinstance(scores, list):
            return [self._labels(part, np.full(len(part), t)) for t, part in enumerate(scores)]
        return self._labels(scores, None if task is None else task_codes(task, self.tasks_, len(scores)))

    def _labels(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        if self.coef_.ndim == 3:
            return self.classes_[np.argmax(scores, axis=-1)]
        upper = (scores > 0).astype(np.intp)
        if not isinstance(self.classes_, list):
            return self.classes_[upper]
        used = range(len(self.classes_)) if codes is None else np.unique(codes).tolist()
        missing = [t for t in used if self.classes_[t] is None]
        if missing:
            raise ValueError(
                f"task {self.tasks_[missing[0]]!r} had no rows, and the other tasks have different "
                f"pairs of classes: its "
                "classes are not known. Use decision_function."
            )
        known = next(pair for pair in self.classes_ if pair is not None)
        pairs = stack_pairs([known if pair is None else pair for pair in self.classes_])
        return pairs[np.arange(len(pairs)) if codes is None else codes, upper]

    def _gives_probabilities(self) -> bool:
        if self.loss != "logistic":
            raise AttributeError(f"predict_proba needs loss='logistic'; the loss is {self.loss!r}.")
        return True

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any, task: Any = None) -> Any:
        """Probabilities of the classes; logistic loss only.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
        task : array of shape (n,), optional

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
            The last axis follows ``classes_``; with more than two, the one-vs-rest probabilities divided by their sum.
        """
        scores = self._scores(X, task)
        if isinstance(scores, list):
            return [self._probabilities(part) for part in scores]
        return self._probabilities(scores)

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if self.coef_.ndim == 3:
            each = np.maximum(expit(scores), 1e-300)
            return each / each.sum(axis=-1, keepdims=True)
        return np.stack([expit(-scores), expit(scores)], axis=-1)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Mean over tasks of the accuracy.

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.

        Returns
        -------
        float
            Between 0 and 1. Labels that are missing are left out, and so are tasks without any.
        """
        predictions = self.predict(X, task)
        labels = self._read_test_labels(X, y, task, sample_weight)
        return mean_over_tasks(labels, labels.flatten(predictions), accuracy, least=1)


class GraphSVR(TaskRegression, GraphModel):
    r"""Support vector regression for tasks that are neighbours on a graph.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(x_i \cdot w_{t(i)} - y_i\bigr)

    with L = ``graph_strength`` times the Laplacian of the graph, as in `GraphSVC`.

    Parameters
    ----------
    graph, graph_tasks, graph_strength, C
        As in `GraphSVC`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "squared"}, default="epsilon_insensitive"
        max(0, abs(r) - epsilon), its square, r² of the residual r (no factor 1/2).
    epsilon : float, default=0.1
        Half the width of the tube in which residuals cost nothing, >= 0. The squared loss has no tube.
    fit_intercept, intercept_scaling, hasher, tol, max_iter, solver, warm_start, random_state, n_jobs, verbose
        As in `GraphSVC`. The intercept is regularised: centre y, or raise ``intercept_scaling``, where its mean is
        far from 0.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
    intercept_ : ndarray of shape (T,)
    tasks_ : ndarray of shape (T,)
        Task labels in the order of the graph.
    dual_coef_ : ndarray of shape (n,) or (n, T), or list of ndarray, in the form of y
    support_ : ndarray, or list of ndarray
        Rows whose dual coefficient is not 0.
    objective_, dual_gap_ : float
        The objective at the fitted model; it minus the optimum is at most the gap.
    n_iter_ : int
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had them.
    hasher_ : WeightedDegreeHasher
        Where there is one.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 5)), np.repeat(["a", "b", "c"], 20)
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(60)
    >>> model = ts.GraphSVR(ts.graph.complete_graph(3), C=10.0).fit(X, y, task=task)
    >>> model.coef_[:, 0].round(1).tolist()
    [1.0, 1.0, 1.0]
    """

    _targets: ClassVar[Literal["values", "classes"]] = "values"
    _losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")

    def __init__(
        self,
        graph: Any = None,
        *,
        graph_tasks: Any = None,
        graph_strength: float = 1.0,
        C: float = 1.0,
        loss: Literal[
            "epsilon_insensitive", "squared_epsilon_insensitive", "squared"
        ] = "epsilon_insensitive",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        hasher: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        solver: Literal["auto", "dual", "newton"] = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.graph_tasks = graph_tasks
        self.graph_strength = graph_strength
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.hasher = hasher
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> GraphSVR:
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
            As in `GraphSVC.fit`.
        y : array of shape (n,) or (n, T), or list of 1-D arrays
            Targets. NaN is a label that is not observed. 1-D without ``task``: one task.
        task : array of shape (n,), optional
            The task of each row: any labels, in any order.
        sample_weight : array or list in the form of y, or float, optional
            Weights >= 0 of the rows in the loss; 0 leaves a row out.

        Returns
        -------
        self
        """
        check_number(self.epsilon, "epsilon", low=0, closed=True)
        result: GraphSVR = self._solve_all(X, y, task, sample_weight)
        return result


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


def _row_major(matrix: Any) -> Any:
    """Rows contiguous in memory: a copy only of what is not."""
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    return np.ascontiguousarray(matrix)


def _signs(positive: np.ndarray, present: np.ndarray) -> np.ndarray:
    """+1 / -1, and +1 where there is no label (its weight is 0)."""
    return np.where(positive | ~present, 1.0, -1.0)


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


def _string_scores(
    source: StringSource, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None = None
) -> np.ndarray:
    """`tasksieve.tasks.linear_scores` of strings: their features are computed on the way."""
    n = len(source.text)
    threads = kernel_threads()

    def scores(offsets: np.ndarray, row_of: np.ndarray | None, table: np.ndarray) -> np.ndarray:
        one = np.eye(len(table))
        nothing = np.zeros(n)
        problem = GraphProblem(source, offsets, row_of, nothing, nothing, one, one, "hinge", threads=threads)
        return problem.scores(np.ascontiguousarray(table, dtype=np.float32))

    if codes is None:
        ends = np.array([0, n], dtype=np.int64)
        out = np.stack([scores(ends, None, coef[t : t + 1]) for t in range(len(coef))], axis=1)
        return out + intercept
    order = np.argsort(codes, kind="stable").astype(np.int64)
    offsets = np.searchsorted(codes[order], np.arange(len(coef) + 1)).astype(np.int64)
    out = np.empty(n)
    out[order] = scores(offsets, order, coef)
    return out + intercept[codes]


class _Progress:
    """Progress on stderr: about one line per second."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.start = self.last = time.monotonic()

    def __call__(self, method: str, step: int, gap: float) -> None:
        now = time.monotonic()
        if now - self.last >= 1.0:
            self.last = now
            print(
                f"{self.label}: {method}, step {step}, relative gap {gap:.1e}, {now - self.start:.1f} s",
                file=sys.stderr,
                flush=True,
            )
