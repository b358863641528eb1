"""Stability selection: features that are found again and again on halves of the rows, with a bound on false ones."""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..fitted.arguments import check_choice, check_number, feature_names, kernel_threads
from ..fitted.choosing import fold_tolerance
from ..fitted.documented import DATA, documented
from ..fitted.fill_missing import FillMissing
from ..fitted.model import FeatureSelector
from ..fitted.parameters import check_common
from ..fitted.progress import reporter, tells_callbacks
from ..linear.base import PathEstimator
from ..linear.cross_validation import PathEstimatorCV
from ..linear.path_solver import RowSolver
from ..messages import Message
from ..optional import data_frame
from ..parameters import STABILITY, Parameter
from ..plotting import AXES, DRAWN_ON, stability_curves
from ..tasks.named import takes_named_tasks
from ..tasks.task_means import HoledRows
from ..user_warnings import warn
from .bounds import ASSUMPTIONS, Assumption, Levels, complete_levels, halves_of
from .half_paths import HalfPaths, Selectable
from .halves import SmallTasks, draw_halves
from .imputation import MultipleImputation
from .imputed_halves import CompletedHalfPaths, by_imputation, by_means, refuse_imputation
from .path_model import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["StabilitySelection"]

_DRAWN = 50  # values of alpha in a picture
_ABOVE = 1.02  # where it begins: above the first entry


@documented
class StabilitySelection(MetaEstimatorMixin, FeatureSelector):
    r"""Features that are selected again and again on random halves of the rows, and how many of them are false.

    .. math:: \hat S = \Bigl\{ j : \frac{1}{2B} \sum_{h=1}^{2B} 1\{ j \in S_h \} \ge \tau \Bigr\}, \qquad
        \lvert S_h \rvert \le q, \qquad \mathbb E\, \lvert \{ j \in \hat S : \Pr(j \in S_h) \le q / p \} \rvert
        \le \text{bound}(q, \tau, B, p)

    with :math:`S_h` the first q features that the path of the estimator uses on half h of the rows, p the number of
    penalised features, and B pairs of complementary halves (Shah and Samworth 2013; `pfer_bound`). The bound is on the
    expected number of stable features that a half selects no more often than it would by picking at random (the
    per-family error rate). It needs no assumption about noise, correlation or the estimator. It does not say that a
    stable feature is a cause: one that resembles a feature that matters can be selected in its place.

    Parameters
    ----------
    estimator : estimator with ``path``
        Any linear model with ``alpha``: `MultiTaskLasso`, `MultiTaskLogisticRegression`, `CalibratedMultiTaskLasso`,
        `MultiTaskOWL`, `MultiTaskRegressor` with any loss and penalty, ...; its ``alpha`` plays no part. With
        `MultiTaskGroupLasso` (or ``penalties.Groups``) p and q count groups.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the halves; None is 0. The result is a function of it and of the data as a set of rows: not of their
        order, of the names of tasks, of the form of the data or of ``n_jobs``.
    n_jobs : int, optional
        Threads; by default all processors available. They share X.

    Attributes
    ----------
    selection_probabilities_ : ndarray of shape (d,)
        Share of the halves that selected each feature (or its group); NaN for features that are never penalised.
    threshold_ : float
        The share from which a feature is stable: a multiple of 1 / (2 B).
    q_ : int
        Features selected on each half, at most.
    pfer_bound_ : float
        Bound on the expected number of false selections under the assumption.
    pfer_bounds_ : dict
        The same under each assumption, by name; NaN where there is none.
    stability_path_ : scipy.sparse.csr_array of shape (K, d)
        Share of the halves that have used each feature by the time they come to ``alphas_[k]``, as far as q features.
    alphas_ : ndarray of shape (K,)
        Decreasing, from above the first entry on any half to the last.
    n_selectable_ : int
        p: features that are penalised, or groups of such.
    groups_ : ndarray of shape (d,)
        The name of each feature's group; only where the penalty has groups of features.
    n_pairs_ : int
        Pairs that were finished.
    interrupted_ : bool
        Whether the user stopped the fit (Ctrl-C): then everything is about the pairs finished until then.
    dropped_tasks_ : list
        Labels of the tasks that were left out (``small_tasks="drop"``).
    halves_ : str
        How the halves were drawn, in words.
    passes_ : float
        Readings of X, in equivalents.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X is a data frame.

    See Also
    --------
    pfer_bound : the bounds as a function.
    MultiTaskLassoCV : chooses alpha by prediction, which says nothing about false selections.

    Notes
    -----
    Halves are drawn within tasks (of classifications: within the classes of a task); of a matrix that tasks share, row
    by row; and whole ``groups`` of rows together. They are row weights, so X is neither copied nor cut, and where
    reads are costly all halves share every reading. Features that are never penalised (``feature_weights`` of
    0) are in every model, are not counted, and are never called stable.

    Each half is followed down its own path, at values of alpha that depend on its rows alone, each solved to a duality
    gap of at most ``max(tol, 1e-4)`` times the objective of the empty model; of several features that enter at one
    value those with the larger coefficients count as first.

    Within a `checkpoint` block finished halves are kept, and used again by the same fit after an interruption; within a
    `watch` block the callback is called after each half.

    References
    ----------
    .. [1] N. Meinshausen, P. Bühlmann, "Stability selection", Journal of the Royal Statistical Society B 72 (2010).
    .. [2] R. D. Shah, R. J. Samworth, "Variable selection with error control: another look at stability selection",
       Journal of the Royal Statistical Society B 75 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((120, 200)), np.repeat(["a", "b", "c"], 40)
    >>> y = X[:, 3] - X[:, 7] * (task == "b") + rng.standard_normal(120)
    >>> stable = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=20).fit(X, y, task=task)
    >>> stable.get_support(indices=True)
    array([3, 7])
    >>> stable.q_, stable.threshold_, round(stable.pfer_bound_, 2)
    (13, 0.75, 0.89)
    >>> stable.change(threshold=1.0).get_support(indices=True)
    array([3])
    """

    _parameters: ClassVar[dict[str, Parameter]] = STABILITY
    _attributes = ""
    selection_probabilities_: np.ndarray
    stability_path_: Any
    pfer_bounds_: dict[str, float]
    groups_: np.ndarray

    def __init__(
        self,
        estimator: Any,
        n_pairs: int = 50,
        threshold: float | None = None,
        pfer: float | None = None,
        q: int | None = None,
        assumption: Assumption = "unimodal",
        small_tasks: SmallTasks = "error",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.pfer = pfer
        self.q = q
        self.assumption = assumption
        self.small_tasks = small_tasks
        self.random_state = random_state
        self.n_jobs = n_jobs

    @tells_callbacks
    @takes_named_tasks
    @described_by(DATA)
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Follow the path of every half, and count.

        Parameters
        ----------
        groups : array of shape (n,), or list of such, optional
            Any labels, one per row of X (a list of matrices: or a list): rows of one group, relatives say, are in the
            same half, in all tasks.

        Returns
        -------
        self
            After Ctrl-C with the pairs finished until then (``interrupted_``), if there are any.
        """
        model = _path_model(self.estimator)
        self._check_parameters()
        model._check_parameters()
        model.tol = fold_tolerance(model.tol, None)
        n_jobs = kernel_threads(self.n_jobs)
        imputation = self.estimator if isinstance(self.estimator, MultipleImputation) else None
        holed = X
        if imputation is not None:
            refuse_imputation(imputation, X, y)
            X = FillMissing("mean").fit_transform(X)  # in the place of imputations until halves are drawn
        elif isinstance(holed, HoledRows):
            X = holed.filled()
        data = model._read_with(X, y, task, sample_weight, None)
        halves = draw_halves(data, self.n_pairs, self.random_state, groups=groups, small_tasks=self.small_tasks)
        data = data.with_weights(np.where(halves.unit < 0, 0.0, data.weights))
        problem = model._problem(data, n_jobs)
        selectable = Selectable(problem)
        if selectable.count < 2:
            raise ValueError(
                f"There is nothing to select from: X has {selectable.count} feature(s), or group(s) of features, that "
                "are penalised; it takes at least 2."
            )
        asked: dict[str, Any] = {"threshold": self.threshold, "pfer": self.pfer, "q": self.q}
        levels = complete_levels(selectable.count, self.n_pairs, **asked, assumption=self.assumption)
        names = feature_names(X)
        RowSolver(model, data, problem, 1).warn_scales(names)
        kind = HalfPaths if X is holed else CompletedHalfPaths
        found = kind(model, data, selectable, levels.q, halves, n_jobs)
        if isinstance(found, CompletedHalfPaths):
            how = by_means(holed) if imputation is None else by_imputation(imputation, holed, len(halves))
            found.complete_by(*how, (y, task, sample_weight))
        spent = problem.design.passes
        del problem
        found.follow(reporter(type(self).__name__, "half"))
        pairs = [pair for pair in zip(found.entries[::2], found.entries[1::2], strict=True) if None not in pair]
        if found.interrupted and not pairs:
            raise KeyboardInterrupt
        self._remember_features(X, data.n_features)
        self._entries = [entries for pair in pairs for entries in pair if entries is not None]
        self._code = selectable.code
        self.interrupted_, self.n_pairs_ = found.interrupted, len(pairs)
        self.n_selectable_, self.dropped_tasks_, self.halves_ = selectable.count, halves.dropped, halves.words
        self.passes_ = spent + found.passes
        self.__dict__.pop("groups_", None)
        if selectable.groups is not None:
            self.groups_ = selectable.groups[np.maximum(selectable.code, 0)]
        self._followed_to = levels.q
        if self.n_pairs_ < self.n_pairs:  # fewer pairs than planned have other bounds
            m = halves_of(levels.threshold, self.n_pairs_)
            levels = Levels.at(selectable.count, levels.q, m, self.n_pairs_, self.assumption)
        self._take_levels(levels)
        if found.interrupted:
            warn(
                f"The stability selection was interrupted: {len(pairs)} of {self.n_pairs} pairs are finished, and "
                "probabilities and bounds are those of these.",
            )
        n_open = sum(entries.n_open for entries in self._entries)
        if n_open:
            warn(
                Message(
                    "{n_open} values on the paths of the halves did not reach {tol=:g} within {max_iter=}: raise "
                    "{max_iter}, or {tol}, of the estimator.",
                    n_open=n_open,
                    tol=model.tol,
                    max_iter=model.max_iter,
                ),
                ConvergenceWarning,
            )
        return self

    def change(
        self,
        *,
        threshold: float | None = None,
        pfer: float | None = None,
        q: int | None = None,
        assumption: Assumption | None = None,
    ) -> StabilitySelection:
        """The same halves under other levels, without a new fit.

        Parameters
        ----------
        threshold, pfer, q : numbers, optional
            Two of them give the third. With one: a threshold, or q, is combined with the other of these two as it is;
            to ``pfer`` belongs the smallest threshold at the present q. q can only become smaller.
        assumption : {"none", "unimodal", "r-concave"}, optional
            By default as it is.

        Returns
        -------
        StabilitySelection
            A changed copy; this one stays as it is.

        Examples
        --------
        >>> import tasksieve as ts
        >>> X, y, _, _ = ts.datasets.make_small_tasks(effects=[1.0], noise=1.0, n_rows=60, n_features=100)
        >>> stable = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=10).fit(X, y)
        >>> other = stable.change(q=4, assumption="r-concave")
        >>> other.q_, other.threshold_, round(other.pfer_bound_, 3)
        (4, 0.75, 0.073)
        """
        check_is_fitted(self, "selection_probabilities_")
        assumption = self.assumption if assumption is None else assumption
        size = self.n_selectable_, self.n_pairs_
        if q is not None:
            check_number(q, "q", low=1, closed=True, integer=True)
            if q > self._followed_to:
                raise ValueError(
                    f"The halves were followed until q={self._followed_to} features were used: q={q} needs a new fit."
                )
        elif threshold is not None and pfer is not None:
            q = complete_levels(*size, threshold=threshold, pfer=pfer, assumption=assumption).q
            q = min(q, self._followed_to)
        q = self.q_ if q is None else int(q)
        if threshold is None and pfer is None:
            threshold = self.threshold_
        levels = complete_levels(*size, threshold=threshold, pfer=pfer, q=q, assumption=assumption)
        other = copy(self)
        other.set_params(threshold=levels.threshold, pfer=pfer, q=levels.q, assumption=assumption)
        other._take_levels(levels)
        return other

    def _check_parameters(self) -> None:
        check_common(self)
        check_number(self.n_pairs, "n_pairs", low=1, closed=True, integer=True)
        check_choice(self.small_tasks, "small_tasks", ("error", "drop"))
        check_choice(self.assumption, "assumption", ASSUMPTIONS)
        if self.threshold is not None:
            halves_of(self.threshold, self.n_pairs)

    def _take_levels(self, levels: Levels) -> None:
        self.q_, self.threshold_ = levels.q, levels.threshold
        self.pfer_bound_, self.pfer_bounds_ = levels.bound, levels.bounds
        numbers = np.concatenate([entries.numbers[: levels.q] for entries in self._entries])
        counts = np.bincount(numbers, minlength=int(self._code.max()) + 1)  # of halves that selected each
        self._stable = np.where(self._code >= 0, counts[self._code] >= levels.halves, False)
        self.selection_probabilities_ = np.where(self._code >= 0, counts[self._code] / len(self._entries), math.nan)
        self.alphas_, self.stability_path_ = self._path(levels.q, numbers)

    def _path(self, q: int, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        """Values of alpha, and the share of the halves that have used each feature by then."""
        entered = np.concatenate([entries.alphas[:q] for entries in self._entries])
        if not len(numbers):
            return np.ones(1), scipy.sparse.csr_array((1, len(self._code)))
        alphas = np.geomspace(_ABOVE * entered.max(), entered.min(), _DRAWN)
        alphas[-1] = entered.min()
        used = np.unique(numbers)
        first = np.searchsorted(-alphas, -entered)  # the first value that is not larger
        counts = np.zeros((len(alphas), len(used)))
        np.add.at(counts, (first, np.searchsorted(used, numbers)), 1.0)
        shares = np.cumsum(counts, axis=0) / len(self._entries)
        features = np.flatnonzero(np.isin(self._code, used))
        columns = shares[:, np.searchsorted(used, self._code[features])]
        rows, positions = np.nonzero(columns)
        shape = (len(alphas), len(self._code))
        return alphas, scipy.sparse.csr_array((columns[rows, positions], (rows, features[positions])), shape=shape)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "selection_probabilities_")
        return self._stable

    def to_frame(self) -> DataFrame:
        """All features that can be selected as a pandas data frame, those selected most often first.

        Returns
        -------
        pandas.DataFrame
            feature (its name, or its number), group (where the penalty has groups), selection_probability, stable.
        """
        check_is_fitted(self, "selection_probabilities_")
        shares = self.selection_probabilities_
        kept = np.flatnonzero(~np.isnan(shares))
        order = kept[np.argsort(-shares[kept], kind="stable")]
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        columns = {"feature": names[order]}
        if hasattr(self, "groups_"):
            columns["group"] = self.groups_[order]
        return data_frame(self, {**columns, "selection_probability": shares[order], "stable": self._stable[order]})

    @described_by(AXES, returns=DRAWN_ON)
    def plot(self, ax: Any = None, *, most: int = 200) -> Axes:
        """Draw the stability path: the share of the halves that have used a feature, by alpha.

        Parameters
        ----------
        most : int, default=200
            Features drawn, those selected most often; stable ones are all drawn, in colour.
        """
        check_is_fitted(self, "selection_probabilities_")
        return stability_curves(self, ax, most)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None and not isinstance(self.estimator, type):
            tags.target_tags = inner().target_tags
        return tags


def _path_model(estimator: Any) -> PathEstimator:
    """A fresh copy of the estimator; refused where it has no path along which features enter."""
    name = name_of(estimator)
    if isinstance(estimator, type):
        raise ValueError(f"estimator must be an estimator, not a class: pass {name}().")
    if isinstance(estimator, MultipleImputation):
        return _path_model(estimator.model)
    if isinstance(estimator, PathEstimator):
        return clone(estimator)
    if isinstance(estimator, PathEstimatorCV):
        inner = estimator._estimator.__name__
        raise ValueError(
            f"estimator: {name} chooses alpha by cross-validation and has no method path. Pass the model that it "
            f"repeats, {inner}(...)."
        )
    if hasattr(estimator, "path"):
        raise ValueError(
            f"estimator: features do not enter the path of {name} one by one, so that there is nothing to count. "
            "Use a model that selects features: MultiTaskLasso(), or MultiTaskClassifier() and MultiTaskRegressor(), "
            "which take a task_graph."
        )
    raise ValueError(
        f"estimator: {name} has no path. Use a model with alpha, MultiTaskLasso() or MultiTaskLogisticRegression() say."
    )
