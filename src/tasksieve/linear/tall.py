"""Fits from sufficient statistics: rows that were read once, in blocks, or at once where they are few.

Tall and small data in memory come here by themselves (`tall_fit`), sums that the user has made (`TaskMoments`)
always do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..design.memory import free_memory
from ..design.sums import Gathered
from ..fitted.arguments import kernel_threads
from ..fitted.path import RegularizationPath
from ..fitted.progress import reporter
from ..fitted.scales import SMALL_TYPES, warn_norms
from ..losses import Squared
from ..path.gram import PATIENCE
from ..path.tall import TallProblem, Unusable
from ..penalties import L21, SparseGroup
from ..penalties.sparse_group import is_sparse_group
from ..tasks import TaskData, gather_at_once, gather_rows, is_dask, is_zarr, one_matrix, read_feature_weights
from .units import Units

_TALL_BYTES = 32 << 20  # X smaller than this may be copied
_FEWEST_ROWS = 4.0  # of a matrix, to a feature
_SMALL_BYTES = 4 << 20  # X up to this is copied gladly
_FEWEST_SMALL = 2.0  # rows of a matrix then, to a feature
_MOST_MATRICES = 64  # for a single value: with more, sums of each cost more than a few passes over all rows
_WORK_AT_ONCE = 2e7  # multiplications that are done before anybody can count them
_MOST_FEATURES = 3000
_MOST_AT_ONCE = 256  # features, where a single value is asked for: a few passes over X cost less than more of them
_MOST_WORK = 5e10  # multiplications to form the Gram matrices, and
_WORK_A_VALUE = 2e8  # of these, for every value
_MOST_BYTES = 1 << 30


def alpha_of(largest: float, unit: float) -> float:
    """The alpha of a strength in sum units: rounding must not leave it a hair below the truth."""
    alpha = largest / unit
    while alpha * unit < largest:
        alpha = np.nextafter(alpha, np.inf)
    return float(alpha)


class Tall:
    """A model, and what its data amount to.

    Parameters
    ----------
    model : PathEstimator
        With squared loss and a penalty of the sparse group family.
    gathered : Gathered
        Under the sample weights alone.
    facts : TaskData or DataFacts
    names : array of str, optional
        Of the features.
    small : bool
        Whether the columns are indicators or counts, whose scales say nothing.
    readings : int
        Of the rows, for the path to tell.
    n_threads : int, optional
        By default the model's.
    patience : int, optional
        As of `GramWalk`.
    """

    def __init__(
        self,
        model: Any,
        gathered: Gathered,
        facts: Any,
        names: np.ndarray | None = None,
        *,
        small: bool = False,
        readings: int = 1,
        n_threads: int | None = None,
        patience: int | None = None,
    ) -> None:
        self.model, self.facts, self._names, self._readings = model, facts, names, readings
        penalty = penalty_of(model, facts)
        if model.task_weights is not None:
            gathered = gathered.weighted(np.asarray(facts.task_weights))
        self.problem = TallProblem(
            gathered,
            penalty,
            fit_intercept=model.fit_intercept,
            standardize=model.standardize,
            n_threads=kernel_threads(model.n_jobs) if n_threads is None else n_threads,
            patience=patience,
        )
        self._small = small
        self._unit: float = model._unit(facts)

    @property
    def serves(self) -> bool:
        """Whether the statistics tell what the rows would."""
        problem = self.problem
        return problem.ordinary and problem.dependent is None and problem.usable

    def alpha_max(self) -> float:
        """The smallest alpha whose solution is zero."""
        return alpha_of(self.problem.lambda_max(), self.model._strength() * self._unit)

    def solve(self, alphas: np.ndarray, *, exact: bool, progress: Any = None) -> Any:
        """A `PathSolution`; it ends before a value that the statistics do not prove to `tol` where that is asked for
        (`exact`)."""
        model = self.model
        lams = model._inward(self.facts, Units(), np.asarray(alphas, dtype=np.float64))
        solution = self.problem.solve(
            lams, tol=model.tol, max_iter=model.max_iter, progress=progress, settle=not exact
        )
        solution.passes = float(self._readings)
        return solution

    def fit(self, exact: bool = False) -> bool:
        """Makes the model a fitted one, but for its features; False where `solve` finds no value."""
        model, facts = self.model, self.facts
        solution = self.solve(np.array([model.alpha]), exact=exact, progress=model._progress())
        if solution.interrupted and not len(solution.points):
            raise KeyboardInterrupt
        if not len(solution.points):
            return False
        point = solution.points[0]
        model._set_solution(facts, point)
        self.set_measures(model, solution)
        self.warn_scales(stacklevel=3)
        if not point.converged:
            model._warn_not_converged(solution, facts)
        return True

    def set_measures(self, model: Any, solution: Any) -> None:
        """What a fitted model tells of the problem."""
        model.null_objective_ = float(solution.null_objective) / self._unit
        model._set_scale(self.problem.scale, 0)

    def as_path(self, solution: Any, alphas: np.ndarray, stacklevel: int) -> RegularizationPath:
        """A solution as a path of the model; warnings are about a line so far up."""
        if not solution.interrupted:
            self.warn_scales(stacklevel)
        return self.model._as_path(self.facts, (self.problem.scale, 0), solution, alphas, self._names)

    def warn_scales(self, stacklevel: int) -> None:
        """Once a fit, never in its folds."""
        if self.model.standardize or self._small:
            return
        norms = np.sqrt(self.problem.spread.max(axis=0))
        weights = read_feature_weights(self.model.feature_weights, len(norms))
        counted = np.ones(len(norms), dtype=bool) if weights is None else weights == 1.0
        warn_norms(norms, counted, self._names, stacklevel + 1)


def penalty_of(model: Any, facts: Any) -> SparseGroup:
    """The penalty of all features at unit strength; a ValueError where it is none of the family."""
    options = model._penalty()
    penalty = options.pop("penalty", None) or L21()
    if type(model._member) is not Squared or not is_sparse_group(penalty):
        raise ValueError(
            f"{type(model).__name__} cannot be fitted from moments: sums of products determine the squared loss with "
            f"the l21, l11, sparse group and ridge penalties only, and this is the {model._member.label} with the "
            f"{penalty.label} penalty. Fit it to the rows."
        )
    if np.ndim(penalty.l1_ratio) and len(np.asarray(penalty.l1_ratio)) != facts.n_features:
        raise ValueError(
            f"l1 has {len(np.asarray(penalty.l1_ratio))} entries, but there are {facts.n_features} features: one per "
            "feature, or a number."
        )
    weights = read_feature_weights(model.feature_weights, facts.n_features)
    if weights is not None and model.positive and not np.all(weights):
        raise ValueError("positive=True cannot be combined with feature_weights of 0: give them a small weight.")
    fixed = options.pop("fixed_ridge", 0.0) * model._unit(facts)
    known = np.ones(facts.n_features) if weights is None else weights
    return penalty.on(known, facts.n_tasks, positive=model.positive, fixed_ridge=fixed, **options)


def may_be_tall(X: Any) -> bool:
    """Whether it is worth a look: told before anything is read."""
    parts = X if isinstance(X, list | tuple) else [X]
    if any(is_dask(part) or is_zarr(part) for part in parts):
        return True
    return sum(int(np.prod(getattr(part, "shape", (0,)))) for part in parts) >= _TALL_BYTES // 8


def tall_fit(model: Any, data: TaskData, n_values: int, names: np.ndarray | None = None) -> Tall | None:
    """The model on tall data, after one reading of them; None where its rows are better left where they are."""
    if data.known is not None or data.source is None or not suits(model):
        return None
    few = is_small(model, data, n_values)
    if not few and not is_tall(model, data, n_values):
        return None
    threads = kernel_threads(model.n_jobs)
    say_where(model, data)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # sizes that are not ordinary are no good
        if few:
            gathered, readings = gather_at_once(data, model.fit_intercept, threads), 1
        else:
            gathered, readings = gather_rows(data, model.fit_intercept, threads)
        indicators = data.source.dtype.type in SMALL_TYPES
        patience = PATIENCE if few else None  # rows that are at hand are another way
        try:
            found = Tall(
                model, gathered, data, names, small=indicators, readings=readings, n_threads=threads, patience=patience
            )
        except Unusable:
            return None
    problem = found.problem
    if not problem.finite:
        data.refuse_not_finite()
    # Squares that are all zero may be those of numbers too small to be squared: whoever has the rows can tell.
    known = found.serves and problem.null_value > 0.0 and problem.spread.any()
    return found if known else None


def say_where(model: Any, data: TaskData) -> None:
    """Tell those who watch that the rows of a cluster stay where they are."""
    tell = reporter(type(model).__name__, "pass", model.verbose)
    if tell is None or data.source is None or not data.source.elsewhere:
        return
    blocks = sum(part.tall_blocks for part in data.source.matrices)
    size = 8e-6 * (data.n_features + 2.0) ** 2 * data.n_tasks
    tell(0, None, f"rows stay where they are: sums of products of {blocks} blocks, {size:.3g} MB each, are gathered")


def suits(model: Any) -> bool:
    """Whether a model is one of those that moments determine, solved in the way that was meant for it."""
    if type(model._member) is not Squared or model.warm_start or model._engine_options() != {"screening": "auto"}:
        return False
    if model.task_graph is not None and model.graph_strength > 0.0:
        return False
    return is_sparse_group(model._penalty().get("penalty", L21()))


def is_small(model: Any, data: TaskData, n_values: int) -> bool:
    """Whether rows are so few that a copy of them is nothing, and yet many beside the features: with the sums of their
    products the answer is near, and fixed costs would be most of any other way to it."""
    source = data.source
    if source is None or not source.dense or source.nbytes > _SMALL_BYTES:
        return False
    one = data.n_tasks == 1 or (data.shared and one_matrix(data))
    if data.shared and not one:
        return False
    weights = read_feature_weights(model.feature_weights, data.n_features)
    if weights is not None and not weights.all():
        return False  # what unpenalised columns explain has more digits by residuals
    matrices = 1 if one and model.task_weights is None else data.n_tasks
    if n_values == 1 and matrices > _MOST_MATRICES:
        return False
    rows = data.n_rows if one else len(data.y)
    work = float(rows) * data.n_features * data.n_features
    return rows >= _FEWEST_SMALL * data.n_features * matrices and work <= _WORK_AT_ONCE + _WORK_A_VALUE * (n_values - 1)


def is_tall(model: Any, data: TaskData, n_values: int) -> bool:
    """By counted work and memory."""
    source = data.source
    if source is None or not (source.elsewhere or (source.dense and source.nbytes >= _TALL_BYTES)):
        return False
    count = data.n_features
    matrices = 1 if one_matrix(data) and model.task_weights is None else data.n_tasks
    rows = data.n_rows if matrices == 1 else len(data.y)
    most = _MOST_FEATURES if n_values > 1 else _MOST_AT_ONCE
    work = float(rows) * count * count
    if count > most:
        return False
    if source.elsewhere:  # there are more than two hands: what counts is what has to be moved
        blocks = [part.tall_blocks for part in source.matrices]
        moved = 8.0 * matrices * (count + 2.0) ** 2 * sum(blocks)
        if sum(blocks) < 2 or not all(blocks) or moved > sum(part.nbytes for part in source.matrices):
            return False
    elif count > _MOST_AT_ONCE and work > min(_MOST_WORK, _WORK_A_VALUE * n_values):
        return False
    return sums_serve(rows, count, matrices)


def sums_serve(rows: int, n_features: int, matrices: int, cells: int = 4) -> bool:
    """Whether rows are so many that sums over them say the same in less memory, `cells` of them for each matrix."""
    if rows < _FEWEST_ROWS * n_features * matrices:
        return False
    return 8.0 * cells * matrices * (n_features + 64.0) ** 2 <= min(_MOST_BYTES, 0.25 * free_memory())

