"""The support vector classifier for tasks on a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..fitted.arguments import warn_column
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import TaskClassification
from ..messages import value_error
from ..tasks import TaskLabels, observed_classes
from ..tasks.named import takes_named_tasks
from .cross_validation import GraphModelCV
from .model import GraphModel


class GraphSVC(TaskClassification, GraphModel):
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
        The objective at the stored coefficients and intercepts (summed over the classes of one-vs-rest).
    dual_gap_ : float
        ``objective_`` minus the optimum is at most this, all rounding included. A model that has not converged (there
        was a warning) is never worse than W = 0. Both take one pass over the rows at the end of a fit.
    null_objective_ : float
        The objective of the empty model; ``dual_gap_`` is at most ``tol`` times this, or there was a warning.
    n_iter_ : int
        Epochs of the descent, or Newton steps.
    status_ : Status
        How the solution ended: "converged", or why not.
    n_visits_ : int
        Rows that the descent has read, in all epochs and classes.
    solver_ : str
        The method that found the answer.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had them.
    hasher_ : WeightedDegreeHasher
        The hasher fitted to the length of the strings, where there is one.

    See Also
    --------
    GraphSVCCV : C and graph_strength by cross-validation.

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
        keep_parameters(self, locals())

    @takes_named_tasks
    def fit(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None) -> Self:
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

    def _encode(self, labels: TaskLabels) -> list[np.ndarray]:
        present, y = labels.weights > 0, labels.y
        classes = observed_classes(labels)
        if classes is None:
            raise value_error("{y} mixes labels that cannot be sorted (numbers and strings, say).")
        if len(classes) == 2:
            self.classes_ = classes
            return [_signs(y == classes[1], present)]
        pairs = [np.unique(y[part][present[part]]) for part in labels.per_task()]
        if len(pairs) > 1 and all(len(pair) == 2 for pair in pairs):
            tasks, position, _ = self._read_graph(labels)
            self.classes_ = [None] * len(tasks)
            signs = np.zeros(len(y))
            for t, (pair, part) in enumerate(zip(pairs, labels.per_task(), strict=True)):
                self.classes_[position[t]] = pair
                signs[part] = _signs(y[part] == pair[1], present[part])
            return [signs]
        self.classes_ = classes
        return [_signs(y == label, present) for label in classes]

    def _class_factors(self, labels: TaskLabels, weights: np.ndarray) -> np.ndarray | None:
        rule = self.class_weight
        if rule is None:
            return None
        classes = observed_classes(labels)
        assert classes is not None  # `_encode` has refused what cannot be sorted
        present = labels.weights > 0
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
            total = np.bincount(code[present], weights=weights[present], minlength=len(classes))
            share = np.count_nonzero(total) * total
            factor = np.divide(total.sum(), share, out=np.ones(len(classes)), where=total > 0)
        else:
            raise value_error("{class_weight} must be a dict, 'balanced' or None, got {rule!r}.", rule=rule)
        return factor[code]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


class GraphSVCCV(TaskClassification, GraphModelCV):
    r"""Support vector classifier for tasks on a graph, with C and graph_strength chosen by cross-validation.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(y_i\, x_i \cdot w_{t(i)}\bigr), \qquad y_i = \pm 1

    the objective of `GraphSVC`, with the pair of values whose held-out score is best.

    Parameters
    ----------
    graph, graph_tasks
        As in `GraphSVC`.
    graph_strengths : array, optional
        Values of ``graph_strength`` that are compared; by default 0.1, 1 and 10, without a graph 0.
    Cs : int or array, default=10
        Values of C that are compared. A whole number: so many, evenly spaced in their logarithms, over a range that
        follows from the lengths of the rows: from where the rows of a task together hardly reach their margin to a
        hundred times what one of them needs to reach it alone.
    cv : int, splitter or iterable, optional
        A number of folds, by default 5: shuffled within tasks, stratified by class, whole ``groups`` together. A
        splitter or (train, test) pairs of row indices may hold out whole tasks if there is a graph: their neighbours
        then predict them.
    scoring : str or callable, optional
        A scorer of scikit-learn, or ``scorer(estimator, X, y)``: the larger, the better; its mean over tasks. By
        default the loss of held-out rows, the smaller the better.
    selection_rule : {"min", "1se"}, default="min"
        The best mean over the folds; or with the same strength the smallest C within one standard error of it.
    fold_tol : float, optional
        What folds are solved to, relative to the objective at W = 0; by default max(tol, 1e-4).
    loss, fit_intercept, intercept_scaling, class_weight, hasher, tol, max_iter, solver
        As in `GraphSVC`.
    random_state : int, RandomState instance, optional
        Seed of the folds, and of the order in which rows are visited; None is 0.
    n_jobs : int, optional
        Folds that are solved at the same time, in threads; the processors available are shared among them.
    verbose : int, default=0
        Report progress on stderr, about once a second.

    Attributes
    ----------
    C_, graph_strength_ : float
        The values chosen.
    Cs_, graph_strengths_ : ndarrays
        The values compared, increasing.
    cv_scores_ : ndarray of shape (number of strengths, number of Cs, number of folds)
        Held-out losses with ``class_weight`` in them (the smaller, the better), or with ``scoring`` scores (the
        larger, the better): means over tasks, and over the machines of one-vs-rest.
    cv_predictions_ : ndarray, or list of ndarray, in the form of y
        For each row what the fold that held it out predicted with the values chosen: ``decision_function``, with the
        logistic loss ``predict_proba``, with their last axis for classes. The mean where a row was held out twice, NaN
        where it never was.
    cv_quality_ : HeldOutQuality
        How good these are, task by task and overall, with standard errors: R², or accuracy and AUC, and the loss. The
        values were chosen by the same rows, and it says so.
    cv_folds_ : str
        How the folds were made, in words.
    cv_measure : str
        What ``cv_scores_`` are, in words.
    coef_, intercept_, tasks_, classes_, dual_coef_, support_, objective_, dual_gap_, null_objective_
        Of the machine fitted to all rows with the values chosen, as are ``n_iter_``, ``status_``, ``n_visits_``,
        ``solver_``, ``n_features_in_``, ``feature_names_in_`` and ``hasher_``: see `GraphSVC`.

    See Also
    --------
    GraphSVC.path : all values on all rows.

    Notes
    -----
    The folds share the rows as they were read. In each of them a solution starts from its neighbour's dual variables.
    Ctrl-C ends the fit and leaves the model as it was.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((90, 5)), np.repeat([0, 1, 2], 30)
    >>> y = np.where(X[:, 0] + 0.3 * task * X[:, 1] > 0, "yes", "no")
    >>> graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> model = ts.GraphSVCCV(graph, Cs=4, scoring="accuracy").fit(X, y, task=task)
    >>> model.cv_scores_.shape, model.cv_folds_
    ((3, 4, 5), '5 folds, shuffled within tasks, stratified by class, seed 0')
    >>> model.C_ in model.Cs_, model.graph_strength_ in model.graph_strengths_
    (True, True)
    >>> model.predict(X[:2], task=[0, 2]).tolist()
    ['yes', 'yes']
    """

    _estimator = GraphSVC

    def __init__(
        self,
        graph: Any = None,
        *,
        graph_tasks: Any = None,
        graph_strengths: Any = None,
        Cs: Any = 10,
        cv: Any = None,
        scoring: Any = None,
        selection_rule: Literal["min", "1se"] = "min",
        fold_tol: float | None = None,
        loss: Literal["hinge", "squared_hinge", "logistic"] = "hinge",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        hasher: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        solver: Literal["auto", "dual", "newton"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def _signs(positive: np.ndarray, present: np.ndarray) -> np.ndarray:
    """+1 / -1, and +1 where there is no label (its weight is 0)."""
    return np.where(positive | ~present, 1.0, -1.0)
