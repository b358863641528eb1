"""Solutions for many values of C and graph_strength as a thing to look at, to tabulate and to predict with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..docstrings import described_by
from ..fitted.predictions import Predictions
from ..fitted.solved_values import SolvedValues
from .problem import Solution
from .reading import GraphData
from .walk import stacked, totals, worst_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..proof.certificate import Certificate


_POSITION = """
k : int
    Position in ``Cs`` and ``graph_strengths``; negative numbers count from the end.
"""


@dataclass
class GraphPoint:
    """What was found for one pair of values: a solution for each machine, and the time that took."""

    C: float
    graph_strength: float
    solutions: list[Solution]
    seconds: float


class GraphPath(SolvedValues):
    r"""Machines on a graph for many values of ``C`` and ``graph_strength``, each with its certificate.

    .. math:: \text{objective}_k - \text{optimum}_k \le \text{dual gap}_k \qquad k = 0, \ldots, K - 1

    Made by the ``path`` method of `GraphSVC` and `GraphSVR`. Nothing is selected along it: every value has a
    coefficient for every feature. The strengths follow one another, and within each of them C grows.

    Parameters
    ----------
    points : sequence of solutions
    model : GraphSVC or GraphSVR
        Whose path it is, with what was read of features and classes.
    data : rows and labels as they were read; the rows are not kept
    interrupted : bool

    Attributes
    ----------
    Cs, graph_strengths : ndarrays of shape (K,)
        The pair of values of each point.
    objectives : ndarray of shape (K,)
    dual_gaps : ndarray of shape (K,)
        Bounds on objective minus optimum; always computed, always true. More than two classes: of the sum over the
        machines.
    relative_gaps : ndarray of shape (K,)
        ``dual_gaps`` / the objective at W = 0 for that C: what ``tol`` bounds.
    n_iter, n_visits : int ndarrays of shape (K,)
        Epochs of the descent or Newton steps, and rows that the descent has read.
    solvers : ndarray of str of shape (K,)
    seconds : ndarray of shape (K,)
    converged : bool ndarray of shape (K,)
        Whether the gap came under the tolerance.
    status : ndarray of str of shape (K,)
        How each point ended, one of `Status`: "converged", "iterations", "stalled" or "rounding".
    interrupted : bool
        Whether the user stopped the path (Ctrl-C): then it holds the values solved until then.
    tasks : ndarray of shape (T,)
        In the order of the graph.
    n_features : int
    feature_names : ndarray of str or None

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(["no", "yes"], effects=(1.0, 1.0, 2.0))
    >>> graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> path = ts.GraphSVC(graph).path(X, y, task=task, Cs=[0.01, 0.1, 1.0], graph_strengths=[0.1, 10.0])
    >>> path
    GraphPath of 6 values, 3 tasks, 8 features
    >>> path.Cs.tolist(), path.graph_strengths.tolist()
    ([0.01, 0.1, 1.0, 0.01, 0.1, 1.0], [0.1, 0.1, 0.1, 10.0, 10.0, 10.0])
    >>> path.coef(2).shape, bool((path.relative_gaps <= 1e-6).all())
    ((3, 8), True)
    >>> path.model(2).predict(X[:2], task=["a", "c"]).tolist()
    ['yes', 'no']
    """

    _columns: ClassVar[dict[str, str]] = {
        "C": "Cs", "graph_strength": "graph_strengths", "objective": "objectives", "dual_gap": "dual_gaps",
        "relative_gap": "relative_gaps", "n_iter": "n_iter", "n_visits": "n_visits", "solver": "solvers",
        "seconds": "seconds", "converged": "converged", "status": "status",
    }  # fmt: skip

    def __init__(self, points: list[GraphPoint], *, model: Any, data: GraphData, interrupted: bool = False) -> None:
        self.Cs = np.array([point.C for point in points])
        self.graph_strengths = np.array([point.graph_strength for point in points])
        found = np.array([totals(point.solutions) for point in points]).reshape(-1, 2)
        self.objectives, self.dual_gaps = found[:, 0].copy(), found[:, 1].copy()
        null = np.array([sum(one.null for one in point.solutions) for point in points])
        self.relative_gaps = self.dual_gaps / np.where(null > 0, null, 1.0)
        self.n_iter = np.array([max(one.n_iter for one in point.solutions) for point in points], dtype=np.int64)
        self.n_visits = np.array([sum(one.visits for one in point.solutions) for point in points], dtype=np.int64)
        self.solvers = np.array([point.solutions[0].solver for point in points], dtype=np.str_)
        self.seconds = np.array([point.seconds for point in points])
        self.converged = np.array([all(one.converged for one in point.solutions) for point in points], dtype=bool)
        self.status = np.array([str(worst_of(point.solutions).status) for point in points], dtype=np.str_)
        self.interrupted = interrupted
        self.tasks = data.tasks
        self.n_features = int(model.n_features_in_)
        self.feature_names = getattr(model, "feature_names_in_", None)
        self._points, self._model, self._data = points, model, data.without_rows()

    @described_by(_POSITION)
    def coef(self, k: int) -> np.ndarray:
        """Coefficients at value k.

        Returns
        -------
        ndarray of shape (T, d), with more than two classes (n_classes, T, d)
        """
        return stacked(self._points[k].solutions, self.n_features)[0]

    def intercept(self, k: int) -> np.ndarray:
        """Intercepts at value k, of shape (T,), with more than two classes (n_classes, T)."""
        return stacked(self._points[k].solutions, self.n_features)[1]

    @described_by(_POSITION)
    def model(self, k: int) -> Any:
        """The fitted estimator of value k: `predict`, `score` and all attributes of a fitted model.

        Returns
        -------
        GraphSVC or GraphSVR
        """
        point = self._points[k]
        model = clone(self._model).set_params(C=point.C, graph_strength=point.graph_strength)
        for name, value in vars(self._model).items():
            if name.endswith("_"):  # features, classes, hasher
                setattr(model, name, value)
        model._set_solution(self._data, point.solutions)
        return model

    @described_by(_POSITION)
    def certificate(self, X: Any, y: Any, k: int, *, task: Any = None, sample_weight: Any = None) -> Certificate:
        """The proof of one value, to be checked with the data: another C, or another strength, is another problem.

        Parameters
        ----------
        X, y, task, sample_weight
            The data of the path.

        Returns
        -------
        Certificate
            Its ``save`` writes the file.
        """
        return self.model(k).certificate(X, y, task=task, sample_weight=sample_weight)

    @described_by(_POSITION)
    def predict(self, X: Any, k: int, *, task: Any = None) -> Predictions:
        """Predictions of the model at value k.

        Parameters
        ----------
        X : matrix, list of matrices (one per task), or strings where the model has a hasher
        task : array of shape (n,), optional
            The task of each row.

        Returns
        -------
        What ``predict`` of the estimator returns
        """
        return self.model(k).predict(X, task=task)

    def to_frame(self) -> DataFrame:
        """The path as a pandas data frame, a row for each pair of values.

        Returns
        -------
        pandas.DataFrame
            C, graph_strength, objective, dual_gap, relative_gap, n_iter, n_visits, solver, seconds, converged,
            status.
        """
        return self._frame()
