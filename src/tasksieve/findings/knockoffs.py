"""Knockoffs: features that beat copies of themselves, with a bound on the share of false ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..design import DenseStorage, one_blas_thread
from ..docstrings import described_by
from ..fitted.arguments import check_number, default_grid
from ..fitted.choosing import fold_tolerance
from ..fitted.documented import DATA
from ..fitted.fold_assignment import read_seed
from ..fitted.model import FeatureSelector
from ..fitted.parameters import check_common
from ..fitted.progress import reporter, tells_callbacks
from ..linear.path_solver import RowSolver, solve_along
from ..optional import data_frame
from ..path.follow import Pace
from ..path.values import Value
from ..tasks import TaskData, read_feature_weights
from ..tasks.named import refuse_patterns, takes_named_tasks
from .canonical import canonical
from .gaussian_copies import GaussianCopies
from .path_model import path_model

if TYPE_CHECKING:
    from pandas import DataFrame

Array = np.ndarray[Any, Any]

_VALUES, _EPS = 60, 1e-2  # of a path, if it is followed to its end


class KnockoffSelection(MetaEstimatorMixin, FeatureSelector):
    r"""Features that beat copies of themselves, a false one among them with a small share (experimental).

    .. math::

        W_j = \lVert w_j \rVert - \lVert \tilde w_j \rVert, \qquad
        \tau = \min \Bigl\{ t > 0 : \frac{1 + \#\{j : W_j \le -t\}}{\max(1, \#\{j : W_j \ge t\})}
        \le \text{fdr} \Bigr\}, \qquad \hat S = \{ j : W_j \ge \tau \}

    Every feature gets a copy that is related to the other features as the feature is, but not to y. The model's path is
    followed on features and copies together, in random order, until it uses a number of them that depends on the
    size of the data only; :math:`w_j`, :math:`\tilde w_j` are the coefficients of feature j and of its copy there,
    in all tasks. A feature that does not matter is as likely to lose against its copy as to win: losses show how many
    wins are false. The expected share of features in :math:`\hat S` that have no relation to y in any task, given all
    other features, is at most ``fdr`` (Candès, Fan, Janson and Lv 2018) *if* rows within tasks are normal with the
    covariance that was used. That is an assumption about X; with an estimated covariance it holds approximately.

    Experimental: numbers, attributes and defaults may change.

    Parameters
    ----------
    model : estimator with ``path``
        Its ``alpha`` plays no part. Of a ``...CV`` model the one that it repeats. Penalties that name features
        (`MultiTaskGroupLasso`) cannot have copies.
    fdr : float, default=0.2
        Bound of the expected share of false features. To select anything at least 1/fdr features have to be found.
    covariance : "shrunk" or array of shape (d, d), default="shrunk"
        Of the features within a task. "shrunk": one correlation matrix for all tasks, pooled within them and shrunk
        (Ledoit and Wolf), between the standard deviations of each task; it takes two rows a feature. An array is taken
        as it is, in the units of X.
    n_draws : int, default=1
        Copies are random: another draw may select others. With several draws each feature gets an e-value, the mean
        over draws of ``d 1{W_j >= tau} / (1 + #{W <= -tau})`` at ``fdr/2``, and the e-BH procedure selects (Ren and
        Barber 2022): less depends on chance.
    random_state : int, default=0
        The result depends on nothing else: not on the order of rows, nor on names of tasks.

    Attributes
    ----------
    W_ : array of shape (d,)
        Of each feature, in units in which columns have deviation 1; the mean over draws.
    threshold_ : float
        Of ``W_``, or with several draws of ``evalues_``; infinite where nothing is selected.
    evalues_ : array of shape (d,)
        With several draws only.
    n_used_ : int
        Features and copies that the path was followed to use.
    n_features_in_, feature_names_in_

    See Also
    --------
    StabilitySelection : needs no assumption about X.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((400, 50)), np.repeat(np.arange(4), 100)
    >>> y = X[:, :8].sum(axis=1) + rng.standard_normal(400)
    >>> found = ts.KnockoffSelection(ts.MultiTaskLasso()).fit(X, y, task=task)
    >>> found.get_support(indices=True)
    array([ 0,  1,  2,  3,  4,  5,  6,  7, 22])
    """

    W_: np.ndarray
    threshold_: float
    evalues_: np.ndarray
    n_used_: int

    def __init__(
        self,
        model: Any,
        *,
        fdr: float = 0.2,
        covariance: Any = "shrunk",
        n_draws: int = 1,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.fdr = fdr
        self.covariance = covariance
        self.n_draws = n_draws
        self.random_state = random_state

    @tells_callbacks
    @takes_named_tasks
    @described_by(DATA, returns="self")
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Make copies, follow the path, and compare. X is made dense, twice."""
        refuse_patterns(X, type(self).__name__)
        model = clone(path_model(self.model, type(self).__name__))
        check_common(self)
        check_number(self.fdr, "fdr", low=0, closed=False, high=1.0)
        check_number(self.n_draws, "n_draws", low=1, closed=True, integer=True)
        seed = read_seed(self.random_state)
        model._check_parameters()
        model.tol = fold_tolerance(model.tol, None)
        data = model._read_with(X, y, task, sample_weight, offset)
        count = data.n_features
        self._refuse(model, count)
        data.refuse_not_finite()
        order = canonical(data)
        columns = np.asarray(data.take(np.arange(count)), dtype=np.float64)
        tasks = sorted(range(len(order.rows)), key=order.seeds.__getitem__)
        copies = GaussianCopies(columns, self.covariance, order)
        self.n_used_ = _most_used(data, count, self.fdr)
        report = reporter(type(self).__name__, "draw")
        draws = np.empty((int(self.n_draws), count))
        for m in range(len(draws)):
            positions = order.stream(seed, *tasks, more=(m, 1)).permutation(2 * count)
            both = np.empty((len(columns), 2 * count), order="F")
            both[:, positions[:count]], both[:, positions[count:]] = columns, copies.draw(seed, m)
            draws[m] = self._compare(model, data, both, positions)
            if report is not None:
                report(m + 1, len(draws))
        self._remember_features(X, count)
        self._select(draws)
        return self

    def _refuse(self, model: Any, count: int) -> None:
        if self.fdr * count < 1.0:
            raise ValueError(
                f"fdr={self.fdr:g} with {count} feature(s): nothing can be selected, as fewer than 1/fdr = "
                f"{math.ceil(1.0 / self.fdr)} discoveries say nothing about their share of false ones."
            )
        penalty = model._penalty().get("penalty")
        sizes: list[Any] = [getattr(model, name, None) for name in ("l1", "weights", "feature_groups")]
        if (penalty is not None and penalty.size() is not None) or any(np.ndim(size) for size in sizes):
            raise ValueError(
                f"model: the penalty of {type(model).__name__} has parameters for single features or groups of them, "
                "which copies do not have. Give one that treats all features alike."
            )
        weights = read_feature_weights(model.feature_weights, count)
        if weights is not None and not np.all(weights):
            raise ValueError(
                "feature_weights: features that are never penalised cannot be compared with copies. Give them a weight."
            )

    def _compare(self, model: Any, data: TaskData, both: Array, positions: Array) -> Array:
        """W of every feature, from the first value of the path at which so many of both kinds are used."""
        count = len(positions) // 2
        weights = read_feature_weights(model.feature_weights, count)
        if weights is not None:
            doubled = np.empty(2 * count)
            doubled[positions] = np.tile(weights, 2)
            model = clone(model).set_params(feature_weights=doubled)
        data = replace(data, X=DenseStorage(both), n_features=2 * count, unsearched=())
        with one_blas_thread():
            problem = model._problem(data)
            alphas = default_grid(model._alpha_max(problem, data), _VALUES, _EPS)
            pace = _UntilUsed(self.n_used_)
            solution = solve_along(RowSolver(model, data, problem, len(alphas)), alphas, pace=pace)
            solution.raise_interrupt()
            point = solution.points[-1]
            sizes, scale = np.ldexp(problem.design.norms(point.features), problem.units.x), problem.design.scale
        if scale is not None:
            sizes = sizes * scale[point.features]
        # each by its own column, so that a feature and its copy are measured alike
        norms = np.zeros(2 * count)
        norms[point.features] = np.linalg.norm(point.rows * sizes, axis=1) / math.sqrt(data.n_bar)
        return norms[positions[:count]] - norms[positions[count:]]

    def _select(self, draws: Array) -> None:
        self.W_ = draws.mean(axis=0)
        self.__dict__.pop("evalues_", None)
        if len(draws) == 1:
            self.threshold_ = knockoff_threshold(self.W_, self.fdr)
            self._selected = self.threshold_ <= self.W_
            return
        count = draws.shape[1]
        values = np.zeros(count)
        for own in draws:
            limit = knockoff_threshold(own, 0.5 * self.fdr)
            values += count * (own >= limit) / (1.0 + np.count_nonzero(own <= -limit))
        self.evalues_ = values / len(draws)
        ranked = np.sort(self.evalues_)[::-1]
        enough = np.flatnonzero(ranked * self.fdr * np.arange(1, count + 1) >= count * (1.0 - 1e-12))
        self.threshold_ = float(ranked[enough[-1]]) if len(enough) else math.inf
        self._selected = self.evalues_ >= self.threshold_

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "W_")
        return self._selected

    def to_frame(self) -> DataFrame:
        """All features as a pandas data frame, those with the largest W first.

        Returns
        -------
        pandas.DataFrame
            feature (its name, or its number), W, evalue (with several draws), selected.
        """
        check_is_fitted(self, "W_")
        judged = getattr(self, "evalues_", self.W_)
        order = np.lexsort((-self.W_, -judged))
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        columns = {"feature": names[order], "W": self.W_[order]}
        if hasattr(self, "evalues_"):
            columns["evalue"] = self.evalues_[order]
        return data_frame(self, {**columns, "selected": self._selected[order]})

    def summary(self) -> str:
        """The finding in plain words."""
        check_is_fitted(self, "W_")
        found = int(np.count_nonzero(self._selected))
        if found:
            return (
                f"{found} of {len(self.W_)} features beat their copies. On average at most {self.fdr:.0%} of such a "
                "list are false, if the rows of X within tasks are normal with the covariance used."
            )
        return (
            f"Nothing selected: at fdr={self.fdr:g} at least {math.ceil(1.0 / self.fdr)} features have to be found "
            "together, and these were not. That does not say that nothing matters (permutation_test tests that)."
        )


class _UntilUsed(Pace):
    """Follow a path, value by value, until so many features have coefficients."""

    most = 1

    def __init__(self, n_wanted: int) -> None:
        self._n_wanted, self._n_used = n_wanted, 0

    def goes_on(self, k: int) -> bool:
        return k == 0 or self._n_used < self._n_wanted

    def reached(self, first: int, values: Sequence[Value]) -> None:
        self._n_used = len(values[-1].features)


def knockoff_threshold(w: Array, fdr: float) -> float:
    """The smallest t > 0 with ``(1 + #{W <= -t}) / max(1, #{W >= t}) <= fdr``; infinite if there is none."""
    candidates = np.unique(np.abs(w[w != 0.0]))
    for t in candidates.tolist():
        lost, won = int(np.count_nonzero(w <= -t)), int(np.count_nonzero(w >= t))
        if 1 + lost <= fdr * max(1, won) * (1.0 + 1e-12):
            return float(t)
    return math.inf


def _most_used(data: TaskData, count: int, fdr: float) -> int:
    """Features and copies that the path is followed to use: a function of the size of the data alone."""
    rows = float(np.mean([np.count_nonzero(data.weights[part] > 0.0) for part in data.per_task()]))
    return int(min(max(4.0 / fdr, rows), count))
