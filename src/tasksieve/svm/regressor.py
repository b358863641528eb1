"""Support vector regression for tasks on a graph."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from ..fitted.documented import documented
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import TaskRegression
from .cross_validation import GraphModelCV
from .model import GraphModel
from .parameters import RESIDUAL_LOSS, SVRCVOptions, SVROptions, of_cross_validation, of_machine


@documented
class GraphSVR(TaskRegression, GraphModel):
    r"""Support vector regression for tasks that are neighbours on a graph.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(x_i \cdot w_{t(i)} - y_i\bigr)

    with L = ``graph_strength`` times the Laplacian of the graph, as in `GraphSVC`. The intercept is
    regularised: centre y, or raise ``intercept_scaling``, where its mean is far from 0.

    See Also
    --------
    GraphSVRCV : C and graph_strength by cross-validation.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(1.0, 1.0, 1.0))
    >>> model = ts.GraphSVR(ts.graph.complete_graph(3), C=0.5).fit(X, y, task=task)
    >>> model.coef_[:, 0].round(1).tolist()
    [1.0, 1.0, 1.0]
    """

    _losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")

    _parameters = of_machine(*RESIDUAL_LOSS)

    epsilon: float

    def __init__(self, graph: Any = None, **options: Unpack[SVROptions]) -> None:
        keep_parameters(self, locals())


@documented
class GraphSVRCV(TaskRegression, GraphModelCV):
    r"""Support vector regression for tasks on a graph, with C and graph_strength chosen by cross-validation.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(x_i \cdot w_{t(i)} - y_i\bigr)

    the objective of `GraphSVR`, with the pair of values whose held-out score is best. With the epsilon-insensitive
    loss, values of C that are not given are in the unit of y, too.

    See Also
    --------
    GraphSVR : for one pair of values.
    GraphSVR.path : all values on all rows.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(1.0, 1.0, 1.0))
    >>> model = ts.GraphSVRCV(ts.graph.complete_graph(3), Cs=[0.01, 0.1, 1.0]).fit(X, y, task=task)
    >>> model.C_, model.graph_strength_
    (1.0, 10.0)
    >>> model.cv_predictions_.shape
    (90,)
    """

    _estimator = GraphSVR
    _parameters = of_cross_validation(*RESIDUAL_LOSS)

    def __init__(self, graph: Any = None, **options: Unpack[SVRCVOptions]) -> None:
        keep_parameters(self, locals())
