"""The support vector classifier for tasks on a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from ..fitted.documented import documented
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import TaskClassification
from ..messages import value_error
from ..tasks import TaskLabels, observed_classes
from .cross_validation import GraphModelCV
from .model import GraphModel
from .parameters import CLASS_LOSS, SVCCVOptions, SVCOptions, of_cross_validation, of_machine


class ManyClasses(TaskClassification):
    """Classes of machines: more than two are one-vs-rest."""

    _multi_class = True
    class_weight: Any


@documented
class GraphSVC(ManyClasses, GraphModel):
    r"""Support vector classifier for tasks that are neighbours on a graph.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(y_i\, x_i \cdot w_{t(i)}\bigr), \qquad y_i = \pm 1

    with L = ``graph_strength`` times the Laplacian of the graph, so that the second term is half the sum of
    :math:`A_{st} \lVert w_s - w_t \rVert^2` over edges: neighbours are drawn together (Widmer et al. 2012).

    Attributes
    ----------
    classes_ : ndarray, or list of pairs
        Sorted labels over all tasks; of two, the larger is +1. Where every task has two labels, but not all the same,
        a list of pairs in the order of ``tasks_`` (None for a task without rows).
    coef_ : ndarray of shape (T, d), with more than two classes (n_classes, T, d)
        A row per task of the graph, also for those without rows. One-vs-rest for more than two classes.
    intercept_ : ndarray of shape (T,), with more than two classes (n_classes, T)
    dual_coef_ : ndarray of shape (n,) or (n, T), or list of ndarray, in the form of y
        :math:`y_i \alpha_i` of each row; with more than two classes one more axis in front.
    objective_ : float
        The objective at the stored coefficients and intercepts (summed over the classes of one-vs-rest).

    See Also
    --------
    GraphSVCCV : C and graph_strength by cross-validation.

    Notes
    -----
    With :math:`M = (I + L)^{-1}`, whose rows sum to 1, :math:`w_t = \sum_s m_{ts} v_s`: each task is a mixture of
    what the rows of all tasks have to say. A task without rows of its own is predicted by its neighbours in that way.
    `tasksieve.graph.task_similarity` gives M.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(["no", "yes"], effects=(1.0, 1.0, 2.0))
    >>> graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> model = ts.GraphSVC(graph, C=0.5).fit(X, y, task=task)
    >>> model.coef_.shape, model.dual_gap_ <= 1e-6 * model.null_objective_
    ((3, 8), True)
    >>> model.predict(X[:2], task=["a", "c"]).tolist()
    ['yes', 'no']
    """

    _losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "logistic")

    _parameters = of_machine(*CLASS_LOSS)

    def __init__(self, graph: Any = None, **options: Unpack[SVCOptions]) -> None:
        keep_parameters(self, locals())

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
        rule, present = self.class_weight, labels.weights > 0
        if rule is None:
            return None
        code = np.zeros(len(labels.y), dtype=np.int64)
        classes, code[present] = np.unique(labels.y[present], return_inverse=True)
        if isinstance(rule, Mapping):
            unknown = [label for label in rule if label not in classes.tolist()]
            if unknown:
                raise ValueError(f"class_weight names the class {unknown[0]!r}, which is not in y.")
            factor = np.array([float(rule.get(label, 1.0)) for label in classes.tolist()])
            if not np.all((factor > 0) & np.isfinite(factor)):
                raise ValueError("class_weight must hold finite numbers > 0.")
        else:  # "balanced"
            total = np.bincount(code[present], weights=weights[present], minlength=len(classes))
            share = np.count_nonzero(total) * total
            factor = np.divide(total.sum(), share, out=np.ones(len(classes)), where=total > 0)
        return factor[code]


@documented
class GraphSVCCV(ManyClasses, GraphModelCV):
    r"""Support vector classifier for tasks on a graph, with C and graph_strength chosen by cross-validation.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(y_i\, x_i \cdot w_{t(i)}\bigr), \qquad y_i = \pm 1

    the objective of `GraphSVC`, with the pair of values whose held-out score is best.

    See Also
    --------
    GraphSVC : for one pair of values.
    GraphSVC.path : all values on all rows.

    Notes
    -----
    The folds share the rows as they were read. In each of them a solution starts from its neighbour's dual variables.
    Ctrl-C ends the fit and leaves the model as it was.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(["no", "yes"], effects=(1.0, 1.0, 2.0))
    >>> graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> model = ts.GraphSVCCV(graph, Cs=4, scoring="accuracy").fit(X, y, task=task)
    >>> model.cv_scores_.shape, model.cv_folds_
    ((3, 4, 5), '5 folds, shuffled within tasks, stratified by class, seed 0')
    >>> model.C_ in model.Cs_, model.graph_strength_ in model.graph_strengths_
    (True, True)
    """

    _estimator = GraphSVC
    _parameters = of_cross_validation(*CLASS_LOSS)

    def __init__(self, graph: Any = None, **options: Unpack[SVCCVOptions]) -> None:
        keep_parameters(self, locals())


def _signs(positive: np.ndarray, present: np.ndarray) -> np.ndarray:
    """+1 / -1, and +1 where there is no label (its weight is 0)."""
    return np.where(positive | ~present, 1.0, -1.0)
