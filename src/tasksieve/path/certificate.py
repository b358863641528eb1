"""What is certified are the numbers that a model stores: their objective and their gap, rounding included.

The engine works on shifted, weighted, centred, scaled columns; what a user holds are coefficients of raw columns and
intercepts. Both meet in one number a task,

    c_t = b_t + sum_j shift_jt w_jt - shift of the labels,

the only place where large numbers cancel, summed in twice the precision. All the rest is arithmetic on numbers without
offsets, whose rounding is bounded and part of the gap (docs: The certificate).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import NOISE, Design
from ..losses import DataLoss, Evaluation, gamma
from ..penalties import RowPenalty
from ..solvers.working import Rounding, duality_gap

Array = np.ndarray[Any, Any]

NOT_FINITE = (
    "The duality gap is not a number: products of X, y, weights and strengths leave the range of double precision. "
    "Bring the columns of X, y, sample_weight and alpha to ordinary sizes."
)
LOST = 2.0**-520  # more than the length of a column whose squares are all lost
FINAL = 64.0  # operations that turn sums into the numbers a user sees, and made the weights and strengths they hold


@dataclass
class StoredSolution:
    """What a model stores, in the units of the data: coefficients `rows` of the penalised `features`, and `free` ones.

    - `constant` ((constant, error), arrays of shape (n_tasks,)): Intercepts of the shifted columns and labels, and how
      far they may be off, where they are known.
    - `known`: What the nuisance basis takes of the rows' columns, and their sizes times those of the coefficients, by
      task, where they are known.
    - `thresholds` (array of shape (m, n_tasks)): What the loss compares scores with, where it does; infinite where a
      task has no class on one side, NaN where it has no thresholds.
    - `level` (array of shape (n_tasks,)): In place of an intercept, for tasks that store none
      (`DataLoss.has_intercept`): with it the scores of the shifted columns are small. Their loss does not change with
      it, or compares with thresholds that have moved as far.
    """

    features: Array
    rows: Array
    intercept: Array
    free: Array
    constant: tuple[Array, Array] | None = None
    known: tuple[Array, Array] | None = None
    thresholds: Array | None = None
    level: Array | None = None


@dataclass
class CertifiedPoint:
    """Stored numbers in the geometry of the design, objectives in sum units.

    - `rows`: Coefficients of the scaled columns.
    - `primal`: The loss at the scores of the numbers.
    - `error` (array of shape (n_tasks,)): Norms of what the weighted scores may be off.
    """

    rows: Array
    primal: Evaluation
    error: Array
    objective: float
    objective_error: float


def stored_solution(
    loss: DataLoss, columns: Any, positions: Array, features: Array, rows: Array, nuisance: Array
) -> StoredSolution:
    """What to store for rows of the scaled columns and coefficients of the nuisance columns."""
    design, samples, tasks = loss.design, loss.design.samples, loss.design.n_tasks
    raw, of_columns = design.original_units(features, rows), nuisance[: samples.n_nuisance]
    pulled, left = np.empty((len(samples.basis), tasks)), np.empty((samples.n_nuisance, tasks))
    facts = np.empty((4, tasks))
    kernels.stored_rows(
        np.ascontiguousarray(rows), np.ascontiguousarray(raw), columns.shifts(positions), columns.sizes(positions),
        columns.loadings(positions), samples.from_basis, np.ascontiguousarray(of_columns), samples.nuisance_shifts,
        design.fit_intercept, loss.shift, pulled, left, facts,
    )  # fmt: skip
    intercept, rest, spread, reach = facts
    known = (pulled, reach) if raw is rows else None
    level = thresholds = None
    if loss.has_intercept is not None:
        level, intercept = (
            np.where(loss.has_intercept, 0.0, intercept),
            np.where(loss.has_intercept, intercept, 0.0),
        )
        within = loss.thresholds(nuisance)
        thresholds = None if within is None else within - level
    if not design.fit_intercept:
        return StoredSolution(features, raw, intercept, left, None, known, thresholds, level)
    lost = gamma(2) * np.abs(rest) + gamma(2 * (len(left) + len(rows)) + 10) ** 2 * spread
    # The stored intercept is what the exact one was rounded to: so much is missing where the shifts are taken back.
    constant = left[0] - rest, lost + gamma(2) * (np.abs(left[0]) + np.abs(rest))
    return StoredSolution(features, raw, intercept, left[1:], constant, known, thresholds, level)


def scores_of(
    loss: DataLoss, columns: Any, positions: Array, numbers: StoredSolution, image: Array | None = None
) -> tuple[Array, Array, Array]:
    """Of stored numbers: their rows in units of the scaled columns, ``x . w_t + b_t`` less the shift of the labels
    (with the `level` where there is no b_t), flat, and norms of what these scores, weighted, may be off in each task.
    `image` is ``X~ W`` where it is known."""
    design, first = loss.design, int(loss.design.fit_intercept)
    rows = design.scaled_units(numbers.features, numbers.rows)
    if numbers.known is not None:
        pulled, reach = numbers.known
    else:
        pulled = np.add.reduce(columns.loadings(positions) * rows, axis=1)
        reach = np.add.reduce(columns.sizes(positions) * np.abs(rows), axis=0)
    if numbers.constant is not None:
        constant, lost = numbers.constant
    else:
        constants = numbers.intercept if numbers.level is None else numbers.intercept + numbers.level
        terms = np.array([constants, -loss.shift])
        constant, lost = _exact_sums(design, terms, columns.shifts(positions), numbers.rows, numbers.free)
    weighted = columns.combine(positions, rows) if image is None else image
    root, lengths = design.root_weights, design.samples.root_totals
    if first and len(pulled) == 1:  # the basis is the weighted constant, of length 1
        level = constant + design.coefficients(pulled)[0]
    else:
        level = constant
        for basis, part in zip(design.nuisance_basis, pulled, strict=True):
            weighted = weighted + basis * design.per_sample(part)
    raw = weighted if root is None else np.divide(weighted, root, out=np.zeros_like(weighted), where=root > 0)
    raw = raw + design.per_sample(level)
    error = (2 * len(pulled) + 2) * reach + np.abs(constant) * lengths
    for column, length, part in zip(
        design.nuisance_columns[first:], design.samples.nuisance_lengths[first:], numbers.free, strict=True
    ):
        raw = raw + column * design.per_sample(part)
        error = error + length * np.abs(part)
    operations = len(rows) + 2 * len(pulled) + len(numbers.free) + 24
    error = gamma(operations) * error + lost * lengths + gamma(4) * loss.label_sizes()
    return rows, raw, error + 2.0 * NOISE * reach if len(pulled) > 1 else error


def certified_point(
    loss: DataLoss,
    penalty: RowPenalty,
    columns: Any,
    positions: Array,
    numbers: StoredSolution,
    image: Array | None = None,
) -> CertifiedPoint:
    """Stored numbers evaluated; `penalty` is that of their features."""
    numbers = _levelled(loss, columns, positions, numbers)
    rows, raw, error = scores_of(loss, columns, positions, numbers, image)
    thresholds = numbers.thresholds
    if thresholds is not None and numbers.level is not None:
        thresholds = thresholds + numbers.level
    primal = loss.at_scores(raw) if thresholds is None else loss.at_thresholds(raw, thresholds)
    total = penalty.total(rows)
    objective = primal.value + total
    objective_error = loss.objective_error(primal, error) + gamma(rows.size + 24) * total
    if penalty.coupling is not None:
        objective_error += penalty.coupling.errors(rows)[1]
    return CertifiedPoint(rows, primal, error, objective, objective_error + gamma(FINAL) * abs(objective))


def _levelled(loss: DataLoss, columns: Any, positions: Array, numbers: StoredSolution) -> StoredSolution:
    """The same with its `level`, where tasks have no intercept: about minus the products of shifts and coefficients."""
    if loss.has_intercept is None or numbers.level is not None or not loss.design.fit_intercept:
        return numbers
    nothing = np.zeros((1, loss.design.n_tasks))
    sums, _ = _exact_sums(loss.design, nothing, columns.shifts(positions), numbers.rows, numbers.free)
    return replace(numbers, level=np.where(loss.has_intercept, 0.0, -sums))


def certified_gap(
    loss: DataLoss,
    penalty: RowPenalty,
    columns: Any,
    positions: Array,
    features: Array,
    standing: CertifiedPoint,
    dual: Evaluation,
    gauges: Array,
    own: RowPenalty,
    known: tuple[Array, Array] | None = None,
) -> float:
    """Upper bound of what stored numbers are above the optimum, and their objective as it is computed, too.

    - `dual`: A settled one: where the dual point comes from.
    - `gauges`: Upper bounds, errors included, of the gauges of its correlations, for all features that are not
      certainly zero.
    - `own`: That of the features.
    - `known`: The dual point's correlations with the features, and what they may be off, where they are known.
    """
    if known is None:
        known = columns.correlate(dual.residual, positions), product_errors(loss, columns, positions, dual)
    products, errors = known
    rounding = Rounding(standing.primal, standing.error, errors)
    gap, _ = duality_gap(loss, own, standing.rows, dual, products, (penalty, gauges, features), rounding)
    if not math.isfinite(gap) and dual.residual.any():  # zero is a dual point as well
        none = np.zeros(loss.design.n_tasks)
        nothing = replace(dual, residual=np.zeros_like(dual.residual), leak=none, tilt=none, lengths=none)
        return certified_gap(
            loss, penalty, columns, positions, features, standing, nothing, np.zeros_like(gauges), own
        )
    gap = gap * (1.0 + gamma(FINAL)) + standing.objective_error
    if not math.isfinite(gap):
        raise ValueError(NOT_FINITE)
    return gap


def product_errors(loss: DataLoss, columns: Any, positions: Array, dual: Evaluation) -> Array:
    """How far correlations of packed columns with a settled dual point may be off: (len(positions), n_tasks)."""
    design, lengths = loss.design, dual.lengths
    assert dual.leak is not None and lengths is not None
    errors = correlation_rounding(design)
    # Squares below the range of double precision are lost to the sizes, not to the correlations.
    return columns.sizes(positions) * (errors * lengths + dual.leak) + LOST * lengths


def correlation_rounding(design: Design) -> float:
    """Relative rounding error of a packed column's correlation, beside the column's size and the vector's length."""
    return gamma(design.samples.depth + 4 * len(design.nuisance_basis) + 24) + 2.0 * NOISE


def pass_errors(loss: DataLoss, dual: Evaluation) -> Array:
    """The same for products of raw columns in a pass, by task, for a column of norm 1 (`Design.norms`)."""
    design = loss.design
    assert dual.leak is not None and dual.lengths is not None
    return design.rounding * dual.lengths + (2e3 if len(design.nuisance_basis) else 1.0) * dual.leak


def _exact_sums(design: Design, terms: Array, shifts: Array, rows: Array, free: Array) -> tuple[Array, Array]:
    """By task: the terms and the products of shifts and coefficients, summed, and what the sums may be off. `free` are
    the coefficients of unpenalised columns, which have shifts of their own."""
    if len(free):
        shifts = np.vstack([shifts, design.nuisance_shifts[-len(free) :]])
        rows = np.vstack([rows, free])
    out, rest, sizes = np.empty((3, design.n_tasks))
    kernels.exact_columns(terms, np.ascontiguousarray(shifts), np.ascontiguousarray(rows), out, rest, sizes)
    return out, gamma(2) * np.abs(rest) + gamma(2 * (len(terms) + len(rows)) + 8) ** 2 * sizes
