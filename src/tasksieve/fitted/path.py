"""A regularisation path as a thing to look at, to tabulate and to predict with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse

from ..docstrings import described_by
from ..optional import data_frame
from ..path.policy import Choice
from ..path.status import statuses_of
from ..path.values import Values
from ..plotting import axes_or_new
from ..tasks import Fills, Patterns, label_array, like, outcomes_in_order
from ..tasks.named import pattern_rows
from .covariates import covariates_of
from .parameters import unfitted
from .predictions import Predictions
from .restore import DataFacts, set_state
from .solved_values import SolvedValues
from .state import LinearState

if TYPE_CHECKING:
    from pandas import DataFrame


# Features drawn in the panel of coefficients: more lines than this cannot be distinguished.
DRAWN_FEATURES = 200


#: what columns were divided by, (features, tasks), None where they were not; and the exponent of the units of X
Scale = tuple[np.ndarray | None, int]


# Columns with an entry for every value of a path, and their types.
_POINT_COLUMNS = {
    "objective": np.float64,
    "dual_gap": np.float64,
    "seconds": np.float64,
    "n_iter": np.int64,
    "converged": bool,
    "n_rejected": np.float64,
    "n_rejected_entries": np.int64,
}


POSITION = """
k : int
    Position in ``alphas``; negative numbers count from the end.
"""


class RegularizationPath(SolvedValues):
    r"""Solutions for a decreasing sequence of penalty strengths, each with its certificate.

    .. math:: \text{objective}_k - \text{optimum}_k \le \text{dual gap}_k \qquad k = 0, \ldots, K - 1

    Made by the ``path`` method of an estimator.

    Parameters
    ----------
    points : sequence of solutions, in the units of the engine
    alphas : array of shape (K,)
    unit : float
        What the engine's objective is divided by to give the estimator's.
    tasks : array of shape (T,)
    n_features : int
    feature_names : array of str, optional
    null_objective : float
        The objective without any penalised coefficient, in the units of the engine.
    passes : float
    interrupted : bool
    estimator : estimator with ``alpha``, optional
        Whose path it is, and with it ``facts`` about the data: what `model` makes estimators of.
    facts : DataFacts, optional
    classes : array of labels, or list of such (one per task), optional
        Of more than two: there is a row of coefficients for each class of each task.

    Attributes
    ----------
    alphas : ndarray of shape (K,)
        Penalty strengths, decreasing.
    objectives : ndarray of shape (K,)
        The estimator's objective at each solution.
    dual_gaps : ndarray of shape (K,)
        Bounds on objective minus optimum, in the same units; always computed, always true.
    relative_gaps : ndarray of shape (K,)
        ``dual_gaps`` / the objective at zero coefficients with the best intercepts: what ``tol`` bounds.
    n_selected : int ndarray of shape (K,)
        Penalised features with a non-zero row of coefficients; those of weight 0 in ``feature_weights`` do not count.
    rejection_ratios : ndarray of shape (K,)
        Rows proved zero before value k was solved / zero rows of its solution, by whatever proves them; with
        ``screening="dpc-published"``, by that rule, which is run at every value. By default bounds from past readings
        of X prove them, and the ratio jumps: it falls until X is read again. On small paths of logistic and Poisson
        loss, which are one compiled call, rows that the value's own gap proves to be zero (for Poisson none: its
        curvature has no bound). 1 where no row is zero: there was nothing to reject.
    rejected_entries : int ndarray of shape (K,)
        Where the penalty has an l1 part: single coefficients, in rows that were solved for, that the safe rule proved
        to be zero and that were left out of the (last) solve of value k.
    seconds : ndarray of shape (K,)
        Time spent on each value.
    n_iter : int ndarray of shape (K,)
        Iterations of the solver at each value.
    converged : bool ndarray of shape (K,)
        Whether the gap came under the tolerance.
    status : str ndarray of shape (K,)
        How each value ended, one of `Status`: "converged", "iterations" (``max_iter`` was spent), "stalled",
        "rounding" (double precision resolves no smaller gap), "no_optimum".
    choice : Choice
        Which solver followed the path to its end (``choice.kind``: "rows", "sums", "sums-in-blocks", "device"), and why
        (``choice.reason``).
    passes : float
        Full passes over X spent, in equivalents: a pass over a tenth of the columns counts 0.1.
    interrupted : bool
        Whether the user stopped the path (Ctrl-C): then it holds the values solved until then.
    tasks : ndarray of shape (T,)
    n_features : int
    feature_names : ndarray of str or None

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=5, eps=0.1)
    >>> path
    RegularizationPath of 5 values, 2 tasks, 8 features
    >>> path.n_selected
    array([0, 1, 1, 1, 1])
    >>> path.coef(4).shape
    (2, 8)
    >>> bool(path.relative_gaps.max() <= 1e-6)
    True
    """

    _columns: ClassVar[dict[str, str]] = {
        "alpha": "alphas", "objective": "objectives", "dual_gap": "dual_gaps", "n_selected": "n_selected",
        "rejection_ratio": "rejection_ratios", "seconds": "seconds", "n_iter": "n_iter", "converged": "converged",
        "status": "status",
    }  # fmt: skip

    #: of paths that version 0.2 has pickled
    choice: Choice | None = None

    def __init__(
        self,
        points: Sequence[Any],
        *,
        alphas: np.ndarray,
        unit: float,
        tasks: np.ndarray,
        n_features: int,
        feature_names: np.ndarray | None = None,
        null_objective: float = np.nan,
        passes: float = 0.0,
        interrupted: bool = False,
        estimator: Any = None,
        facts: DataFacts | None = None,
        classes: Any = None,
        scale: Scale = (None, 0),
        choice: Choice | None = None,
    ) -> None:
        self.choice = choice
        self.alphas = np.asarray(alphas, dtype=np.float64)
        self.tasks = tasks
        self.n_features = n_features
        self.feature_names = feature_names
        self.passes = float(passes)
        self.interrupted = interrupted
        columns = [_column(points, name, kind) for name, kind in _POINT_COLUMNS.items()]
        objectives, dual_gaps, self.seconds, self.n_iter, self.converged, rejected, self.rejected_entries = columns
        if isinstance(points, Values):  # these end by their iterations, or are solved again by another solver
            self.status, live = statuses_of(self.converged), points.live_rows()
        else:
            self.status = np.array([str(point.status) for point in points], dtype=str)
            live = np.array([np.count_nonzero(point.rows.any(axis=1)) for point in points], dtype=np.int64)
        self.objectives, self.dual_gaps = objectives / unit, dual_gaps / unit
        self.null_objective = float(null_objective) / unit
        zero_rows = n_features - live
        self._covariates = covariates_of(estimator, n_features)
        self.n_selected = live - _live_covariates(points, self._covariates)
        self.rejection_ratios = np.where(zero_rows > 0, rejected / np.maximum(zero_rows, 1), 1.0)
        self._points = points if isinstance(points, Values) else tuple(points)
        self._estimator = None if estimator is None else unfitted(estimator)
        self._facts = facts
        self._classes = classes
        self._scale = scale
        #: the place of each row of `coef` in a solution, which has task after task
        self._order: Any = slice(None)
        if classes is not None and not isinstance(classes, list):
            self._order = np.arange(len(tasks) * len(classes)).reshape(len(tasks), -1).T.ravel()

    @property
    def relative_gaps(self) -> np.ndarray:
        # y constant: nothing to explain, the objective and every gap are 0
        return self.dual_gaps / (self.null_objective or 1.0)

    def features(self, k: int) -> np.ndarray:
        """Indices of the features selected at value k."""
        return self._points[k].features

    @described_by(POSITION)
    def coef(self, k: int) -> scipy.sparse.csr_array:
        """Coefficients at value k.

        Returns
        -------
        scipy.sparse.csr_array of shape (T, d)
            More than two classes: the rows of ``coef_``, class after class, and in each task after task; different
            ones per task: task after task.
        """
        point = self._points[k]
        n_rows, n_selected = point.rows.shape[1], len(point.features)
        columns = np.tile(np.asarray(point.features, dtype=np.int64), n_rows)
        starts = n_selected * np.arange(n_rows + 1)
        coef = scipy.sparse.csr_array(
            (np.asarray(point.rows, dtype=np.float64).T[self._order].ravel(), columns, starts),
            shape=(n_rows, self.n_features),
        )
        coef.eliminate_zeros()  # a task may have a zero in a selected row (positive=True)
        return coef

    def intercept(self, k: int) -> np.ndarray:
        """Intercepts at value k, of shape (T,); more than two classes: in the order of the rows of `coef`."""
        return np.array(self._points[k].intercept, dtype=np.float64)[self._order]

    @described_by(POSITION)
    def thresholds(self, k: int) -> Any:
        """Thresholds between ordered classes at value k.

        Returns
        -------
        ndarray of shape (T, K - 1), or list of T arrays
            As ``thresholds_`` of the model.
        """
        if self._points[k].thresholds is None:
            raise ValueError("this path has no thresholds: its classes are not ordered ones.")
        return self.model(k).thresholds_

    @described_by(POSITION)
    def model(self, k: int) -> Any:
        """The fitted estimator of value k.

        Returns
        -------
        estimator
            Of the class whose path this is (of a cross-validation: the model that was repeated), with that alpha and
            the solution on the path: `predict`, `score` and all attributes of a fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> import tasksieve as ts
        >>> X = np.random.default_rng(0).standard_normal((30, 4))
        >>> path = ts.MultiTaskLasso().path(X, X[:, 0], alphas=[1.0, 0.5, 0.1])
        >>> path.model(1)
        MultiTaskLasso(alpha=0.5)
        >>> path.model(1).predict(X).shape
        (30,)
        """
        if self._estimator is None or self._facts is None:
            raise ValueError("this path was not made by an estimator: it has coef(k) and intercept(k) only.")
        model = unfitted(self._estimator).set_params(alpha=float(self.alphas[k]))
        model._chosen_alpha(self._facts, None)  # some keep it as an attribute, too
        model._set_solution(self._facts, self._points[k])
        model._set_scale(*self._scale)
        if self.feature_names is not None:
            model.feature_names_in_ = self.feature_names
        known = {"null_objective": self.null_objective, "choice": self.choice}
        return set_state(model, n_features=self.n_features, **known)

    @property
    def patterns_(self) -> Patterns | None:
        """Which features tasks have, where X came from `by_pattern`; None elsewhere."""
        return None if self._facts is None else self._facts.patterns

    def certificate(
        self,
        X: Any,
        y: Any,
        *,
        task: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        need: int | None = None,
    ) -> Any:
        """The proof of all values, which an independent program can check.

        Parameters
        ----------
        X, y, task, sample_weight, offset
            The data of the path.
        need : int, optional
            A value of which it is proved, too, that the features in use are needed (`Certificate.needs`).

        Returns
        -------
        Certificate
            Its ``save`` writes the file: beside the coefficients one float64 for each row and value.

        Examples
        --------
        >>> import numpy as np
        >>> import tasksieve as ts
        >>> X = np.random.default_rng(0).standard_normal((30, 4))
        >>> path = ts.MultiTaskLasso().path(X, X[:, 0], n_alphas=5)
        >>> path.certificate(X, X[:, 0]).verify(X, X[:, 0]).proved
        True
        """
        if self._estimator is None or not len(self):
            raise ValueError("a certificate needs a path of an estimator with at least one value.")
        X, task = pattern_rows(X, task, self)
        if need is not None and not -len(self) <= need < len(self):
            raise ValueError(f"need={need}: the path has {len(self)} values.")
        y = outcomes_in_order(y, self.tasks)
        return self._estimator._certificate_of_path(self, self._points, need, X, y, task, sample_weight, offset)

    def predict(self, X: Any, k: int, *, task: Any = None, offset: Any = None) -> Predictions:
        """Linear predictions x . w_t + b_t + offset of the solution at value k.

        Parameters
        ----------
        X : matrix, or list of matrices (one per task)
        k : int
            Position in ``alphas``.
        task : array of shape (n,), optional
            The task of each row.
        offset : float, or array or list in the form of the predictions, optional
            Needed if the path was fitted with one.

        Returns
        -------
        ndarray of shape (n,) with ``task``, (n, T) without; a list of 1-D arrays for a list
            More than two classes: as `decision_function` of the model.
        """
        X, task = pattern_rows(X, task, self)
        if self._classes is not None:
            return self.model(k).decision_function(X, task=task)
        state = LinearState(
            self.coef(k).toarray(),
            self.intercept(k),
            self.tasks,
            owner=type(self).__name__,
            needs_offset=self._facts is not None and self._facts.has_offset,
            fills=None if self._facts is None else self._facts.fills(self.features(k)),
        )
        return like(X, state.scores(X, task, offset=offset))

    def to_frame(self, kind: str = "values") -> DataFrame:
        """The path as a pandas data frame.

        Parameters
        ----------
        kind : {"values", "coefficients"}
            "values": one row per value of alpha: alpha, objective, dual_gap, n_selected, rejection_ratio,
            seconds, n_iter, converged, status.
            "coefficients": one row per non-zero coefficient: alpha, task, feature, coefficient; with more than two
            classes there is a column class, too.

        Returns
        -------
        pandas.DataFrame
        """
        if kind == "values":
            return self._frame()
        if kind != "coefficients":
            raise ValueError(f"kind must be 'values' or 'coefficients', got {kind!r}.")
        names = np.arange(self.n_features) if self.feature_names is None else np.asarray(self.feature_names)
        entries = [self.coef(k).tocoo() for k in range(len(self))]
        counts = [coef.nnz for coef in entries]

        def joined(parts: list[np.ndarray]) -> np.ndarray:
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

        rows = joined([coef.row for coef in entries])
        named = {"task": self.tasks[rows]} if self._classes is None else self._row_names(rows)
        columns = {
            "alpha": np.repeat(self.alphas, counts),
            **named,
            "feature": names[joined([coef.col for coef in entries])],
            "coefficient": joined([coef.data for coef in entries]),
        }
        return data_frame(self, columns)

    def _row_names(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Task and class of some rows of coefficients."""
        n_tasks = len(self.tasks)
        classes = self._classes if isinstance(self._classes, list) else [self._classes] * n_tasks
        tasks = np.repeat(np.arange(n_tasks), [len(own) for own in classes])[self._order]
        labels = label_array([label for own in classes for label in own.tolist()])[self._order]
        return {"task": self.tasks[tasks[rows]], "class": labels[rows]}

    def plot(self, axes: Any = None) -> Any:
        """Draw the path in four panels: coefficient row norms, selected features, rejection ratio, gap.

        What the ratio counts: see ``rejection_ratios``.

        Parameters
        ----------
        axes : array of four matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ndarray of four matplotlib axes
        """
        panels: dict[str, Any] = {"nrows": 2, "ncols": 2, "figsize": (9, 6), "sharex": True}
        axes = np.asarray(axes_or_new(axes, self, "plot", **panels)).ravel()
        if len(axes) != 4:
            raise ValueError(f"axes must hold four axes, got {len(axes)}.")
        norms, selected, rejected, gaps = axes
        norms.plot(self.alphas, self._row_norms(), linewidth=1)
        norms.set_ylabel("coefficient row norms")
        selected.step(self.alphas, self.n_selected, where="mid", color="C0")
        selected.set_ylabel("selected features")
        rejected.plot(self.alphas, self.rejection_ratios, color="C1")
        rejected.set(ylabel="rejection ratio", ylim=(-0.05, 1.05), xlabel="alpha")
        gaps.plot(self.alphas, np.maximum(self.dual_gaps, np.finfo(float).tiny), color="C2")
        gaps.set(ylabel="dual gap", yscale="log", xlabel="alpha")
        norms.set_xscale("log")
        if not norms.xaxis_inverted():
            norms.invert_xaxis()  # the path runs from left to right
        for panel in axes[1:]:
            panel.set_xscale("log")
            panel.set_xlim(norms.get_xlim())
        return axes

    def _row_norms(self) -> np.ndarray:
        """Row norms along the path of the penalised features whose row grows largest, of shape (K, m)."""
        if not len(self):
            return np.zeros((0, 0))
        ever = np.unique(np.concatenate([point.features for point in self._points]))
        norms = np.zeros((len(self), len(ever)))
        for k, point in enumerate(self._points):
            norms[k, np.searchsorted(ever, point.features)] = np.linalg.norm(point.rows, axis=1)
        norms = norms[:, ~np.isin(ever, self._covariates)]
        largest = np.argsort(-norms.max(axis=0, initial=0.0), kind="stable")[:DRAWN_FEATURES]
        return norms[:, np.sort(largest)]


def _column(points: Sequence[Any], name: str, kind: Any) -> np.ndarray:
    """A number of all points."""
    found = points.column(name) if isinstance(points, Values) else [getattr(point, name) for point in points]
    return np.asarray(found, dtype=kind)


def _live_covariates(points: Sequence[Any], covariates: np.ndarray) -> np.ndarray:
    """How many of the rows that are not zero belong to covariates."""
    if not len(covariates):
        return np.zeros(len(points), dtype=np.int64)
    live = (point.features[point.rows.any(axis=1)] for point in points)
    return np.array([np.count_nonzero(np.isin(features, covariates)) for features in live], dtype=np.int64)


def fills_along(path: RegularizationPath) -> Fills | None:
    """What stands for missing calls of features that any value uses; None where nothing can be missing."""
    used = (path.features(k) for k in range(len(path)))
    return None if path._facts is None else path._facts.fills(*used)
