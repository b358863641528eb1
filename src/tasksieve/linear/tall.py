"""Fits from sufficient statistics: rows that were read once, in blocks, or at once where they are few.

Tall and small data in memory come here by themselves (`tall_fit`), sums that the user has made (`TaskMoments`)
always do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..design.sums import Gathered
from ..fitted.arguments import kernel_threads
from ..fitted.path import RegularizationPath
from ..fitted.progress import reporter
from ..fitted.scales import SMALL_TYPES, warn_norms
from ..losses import Squared
from ..path import policy
from ..path.gram import PATIENCE
from ..path.policy import Choice, Facts, Kind, choose_for_data
from ..path.tall import TallProblem, Unusable
from ..penalties import L21, SparseGroup
from ..penalties.sparse_group import is_sparse_group
from ..tasks import TaskData, gather_at_once, gather_rows, kind_of, one_matrix, read_feature_weights
from .units import Units

GIVEN_SUMS = Choice(Kind.SUMS, "only sums over the rows are known")


def alpha_of(largest: float, unit: float) -> float:
    """The alpha of a strength in sum units: rounding must not leave it a hair below the truth."""
    alpha = largest / unit
    while alpha * unit < largest:
        alpha = np.nextafter(alpha, np.inf)
    return float(alpha)


class Tall:
    """A model, and what its data amount to.

    - `model`: With squared loss and a penalty of the sparse group family.
    - `gathered`: Under the sample weights alone.
    - `names`: Of the features.
    - `small`: Whether the columns are indicators or counts, whose scales say nothing.
    - `readings`: Of the rows, for the path to tell.
    - `n_threads`: By default the model's.
    - `patience`: As of `GramWalk`.
    - `choice`: Why sums.
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
        choice: Choice = GIVEN_SUMS,
    ) -> None:
        self.choice = choice
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
        solution.passes, solution.choice = float(self._readings), self.choice
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
        model.choice_ = self.choice
        self.set_measures(model, solution)
        self.warn_scales()
        if not point.converged:
            model._warn_not_converged(solution, facts)
        return True

    def set_measures(self, model: Any, solution: Any) -> None:
        """What a fitted model tells of the problem."""
        model.null_objective_ = float(solution.null_objective) / self._unit
        model._set_scale(self.problem.scale, 0)

    def as_path(self, solution: Any, alphas: np.ndarray) -> RegularizationPath:
        """A solution as a path of the model."""
        if not solution.interrupted:
            self.warn_scales()
        return self.model._as_path(self.facts, (self.problem.scale, 0), solution, alphas, self._names)

    def warn_scales(self) -> None:
        """Once a fit, never in its folds."""
        if self.model.standardize or self._small:
            return
        norms = np.sqrt(self.problem.spread.max(axis=0))
        weights = read_feature_weights(self.model.feature_weights, len(norms))
        counted = np.ones(len(norms), dtype=bool) if weights is None else weights == 1.0
        warn_norms(norms, counted, self._names)


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
    if any(kind_of(part).place == "cluster" for part in parts):
        return True
    return sum(int(np.prod(getattr(part, "shape", (0,)))) for part in parts) >= policy.TALL_BYTES // 8


def tall_fit(model: Any, data: TaskData, n_values: int, names: np.ndarray | None = None) -> Tall | None:
    """The model on tall data, after one reading of them; None where its rows are better left where they are."""
    if data.known is not None or data.source is None or not suits(model):
        return None
    choice = choose_for_data(facts_of_data(model, data, n_values))
    if choice.kind is Kind.ROWS:
        return None
    few = choice.kind is Kind.SUMS
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
                model,
                gathered,
                data,
                names,
                small=indicators,
                readings=readings,
                n_threads=threads,
                patience=patience,
                choice=choice,
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
    if tell is None or data.source is None or data.source.place != "cluster":
        return
    blocks = sum(data.source.n_row_blocks)
    size = 8e-6 * (data.n_features + 2.0) ** 2 * data.n_tasks
    tell(0, None, f"rows stay where they are: sums of products of {blocks} blocks, {size:.3g} MB each, are gathered")


def suits(model: Any) -> bool:
    """Whether a model is one of those that moments determine, solved in the way that was meant for it."""
    if type(model._member) is not Squared or model.warm_start or model._engine_options() != {"screening": "auto"}:
        return False
    if model.task_graph is not None and model.graph_strength > 0.0:
        return False
    return is_sparse_group(model._penalty().get("penalty", L21()))


def facts_of_data(model: Any, data: TaskData, n_values: int) -> Facts:
    """What the choice of a solver depends on."""
    source = data.source
    assert source is not None
    one = data.n_tasks == 1 or one_matrix(data)
    weights = read_feature_weights(model.feature_weights, data.n_features)
    n_matrices = 1 if one and model.task_weights is None else data.n_tasks
    return Facts(
        n_values,
        data.n_rows if n_matrices == 1 else len(data.y),
        data.n_features,
        data.n_tasks,
        n_matrices,
        n_bytes=source.nbytes,
        dense=source.dense,
        unlike=data.shared and not one,
        place="blocks" if source.place == "cluster" else "memory",
        n_blocks=source.n_row_blocks,
        by_sums=suits(model),
        n_covariates=0 if weights is None else int(np.count_nonzero(weights == 0.0)),
    )
