"""Models on sums over rows that were read once, in blocks or, where they are few, at once; or summed by the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..design.sums import Gathered
from ..fitted.arguments import kernel_threads, refuse_l1_length
from ..fitted.progress import reporter
from ..fitted.scales import SMALL_TYPES
from ..losses import Squared
from ..path.gram import PATIENCE
from ..path.policy import Choice, Facts, Kind, choose_for_data
from ..path.sums import SumProblem, Unusable
from ..penalties import L21, SparseGroup
from ..penalties.sparse_group import is_sparse_group
from ..tasks import TaskData, gather_at_once, gather_rows, one_matrix, read_feature_weights
from .path_solver import GIVEN_SUMS, SumSolver


def sum_solver(
    model: Any,
    gathered: Gathered,
    facts: Any,
    *,
    small: bool = False,
    readings: int = 1,
    patience: int | None = None,
    choice: Choice = GIVEN_SUMS,
    settle: bool = True,
    copy: bool = True,
) -> SumSolver:
    """A model with squared loss and a penalty of the sparse group family on what its data amount to, under the sample
    weights alone; what else is said of it as of `SumSolver` and `SumProblem`."""
    penalty = penalty_of(model, facts)
    if model.task_weights is not None:
        gathered = gathered.weighted(np.asarray(facts.task_weights))
    problem = SumProblem(
        gathered,
        penalty,
        fit_intercept=model.fit_intercept,
        standardize=model.standardize,
        n_threads=kernel_threads(model.n_jobs),
        patience=patience,
        settle=settle,
        copy=copy,
    )
    return SumSolver(model, facts, problem, choice=choice, readings=readings, small=small)


def solver_of_rows(
    model: Any,
    gathered: Gathered,
    data: TaskData,
    readings: int,
    choice: Choice,
    patience: int | None = None,
    copy: bool = True,
) -> SumSolver | None:
    """The same where the rows are at hand; None where the sums are no good."""
    assert data.source is not None
    kind: dict[str, Any] = {"small": data.source.dtype.type in SMALL_TYPES, "choice": choice, "settle": False}
    try:
        found = sum_solver(model, gathered, data, readings=readings, patience=patience, copy=copy, **kind)
    except Unusable:
        return None
    if not found.problem.finite:
        data.refuse_not_finite()
    return found if found.problem.serves else None


def penalty_of(model: Any, facts: Any) -> SparseGroup:
    """The penalty of all features at unit strength; a ValueError where it is none of the family."""
    options = model._penalty()
    penalty = options.pop("penalty", None) or L21()
    if type(model._loss) is not Squared or not is_sparse_group(penalty):
        raise ValueError(
            f"{type(model).__name__} cannot be fitted from moments: sums of products determine the squared loss with "
            f"the l21, l11, sparse group and ridge penalties only, and this is the {model._loss.label} with the "
            f"{penalty.label} penalty. Fit it to the rows."
        )
    refuse_l1_length(penalty.l1_ratio, facts.n_features)
    weights = read_feature_weights(model.feature_weights, facts.n_features, model.positive)
    fixed = options.pop("fixed_ridge", 0.0) * model._unit(facts)
    known = np.ones(facts.n_features) if weights is None else weights
    return penalty.on(known, facts.n_tasks, positive=model.positive, fixed_ridge=fixed, **options)


def sums_of_rows(model: Any, data: TaskData, n_values: int) -> SumSolver | None:
    """The model on sums over the rows, after one reading of them; None where the rows are less work."""
    if data.known is not None or data.source is None or not suits(model):
        return None
    choice = choose_for_data(facts_of_data(model, data, n_values))
    if choice.kind is Kind.ROWS:
        return None
    report_location(model, data)
    threads = kernel_threads(model.n_jobs)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # sizes that are not ordinary are no good
        if choice.kind is Kind.SUMS:  # rows that are at hand are an alternative to patience
            at_once = gather_at_once(data, model.fit_intercept, threads)
            found = solver_of_rows(model, at_once, data, 1, choice, PATIENCE, copy=False)
        else:
            read = gather_rows(data, model.fit_intercept, threads)
            found = solver_of_rows(model, read.whole, data, read.readings, choice, copy=False)
    # Squares that are all zero may be those of numbers too small to be squared: only the rows show it.
    known = found is not None and found.problem.null_value > 0.0 and found.problem.spread.any()
    return found if known else None


def report_location(model: Any, data: TaskData) -> None:
    """Report that the rows of a cluster stay where they are."""
    report = reporter(type(model).__name__, "pass", model.verbose)
    if report is None or data.source is None or data.source.location != "cluster":
        return
    blocks = sum(data.source.n_row_blocks)
    size = 8e-6 * (data.n_features + 2.0) ** 2 * data.n_tasks
    report(0, None, f"rows stay where they are: sums of products of {blocks} blocks, {size:.3g} MB each, are gathered")


def suits(model: Any) -> bool:
    """Whether a model is one of those that moments determine, with its default solver."""
    if type(model._loss) is not Squared or model.warm_start or model._engine_options() != {"screening": "auto"}:
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
        location="blocks" if source.location == "cluster" else "memory",
        n_blocks=source.n_row_blocks,
        by_sums=suits(model),
        n_covariates=0 if weights is None else int(np.count_nonzero(weights == 0.0)),
    )
