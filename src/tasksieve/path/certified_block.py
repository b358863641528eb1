"""The certificates of many values of a small problem at once: those of `certificate`, each array with a row a value.

A path of a small problem is a hundred values of a few hundred samples: one by one, the calls that make a certificate
take longer than its arithmetic. Here are the same bounds, term by term, for losses that are sums over rows beside an
intercept at most, and for L2,1, L1,1 and sparse groups without a quadratic part. The dual points are the slopes
at the stored numbers' own scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..losses.base import gamma
from ..losses.rowwise import RowLossOnData
from ..penalties.base import REJECT
from ..penalties.sparse_group import SparseGroup
from .certificate import FINAL, LOST, StoredSolution, correlation_rounding

Array = np.ndarray[Any, Any]

_SETTLED = 1e-12  # how far a dual point may be tilted before it is worth another step, which is not made here


class CertifiedBlock:
    """Values of one problem, certified together.

    - `features`: All that are penalised, `positions` in the packed columns.
    """

    def __init__(self, loss: RowLossOnData, columns: Any, features: Array) -> None:
        self._loss, self._design, self._columns = loss, loss.design, columns
        self._positions = columns.positions(features)
        self._sizes = columns.sizes(self._positions)
        self._longest = self._design.longest(features)
        samples = self._design.samples
        self._root, self._divisor = samples.root, np.where(samples.root > 0.0, samples.root, np.inf)
        self._labels, self._weights, self._offset = loss.rows
        self._errors = correlation_rounding(self._design)

    def certify(
        self, numbers: Sequence[StoredSolution], penalties: Sequence[SparseGroup], places: Sequence[Array]
    ) -> tuple[Array, Array, Array]:
        """Objectives of stored numbers; upper bounds of what they are above the optimum, infinite where this way finds
        none; and how many rows the gap proves to be zero at the optimum (the gap-safe sphere).

        - `penalties`: Of all features, at the strength of each value.
        - `places`: Where the features of the numbers are among all.
        """
        loss, design = self._loss, self._design
        rows = [design.scaled_units(own.features, own.rows) for own in numbers]
        raw, error = self._scores(numbers, rows, places)
        if self._offset is not None:
            raw = raw + self._offset
        values = np.sum(design.exact_products(self._weights, loss.of.value(self._labels, raw)), axis=1)
        slope = loss.of.slope(self._labels, raw)
        residual = self._root * loss.balanced(loss.inside_domain(slope))
        leak, tilt = loss.leak_and_tilt(residual)
        norms, inner, known, scale, gauges = self._duals(residual, leak, rows, places, penalties)
        with np.errstate(invalid="ignore", over="ignore"):
            gap = loss.young_bounds(raw, error, residual, tilt, scale[:, None])
            gap = gap + known + np.maximum(norms - scale * inner, 0.0)
            objective = values + norms
            off = np.sum(design.task_norms(self._root * slope) * error, axis=1) + loss.beyond_tangent(raw, error)
            terms = np.array([own.size + 24 for own in rows])
            objective_error = off + gamma(1) * terms * norms + loss.summed_error() + gamma(FINAL) * np.abs(objective)
            gap = gap * (1.0 + gamma(FINAL)) + objective_error
        settled = np.max(tilt, axis=1, initial=0.0) <= _SETTLED
        gap = np.where(settled & np.isfinite(gap), gap, np.inf)
        return objective, gap, self._rejected(gap, scale, gauges, penalties)

    def _rejected(self, gap: Array, scale: Array, gauges: Array, penalties: Sequence[SparseGroup]) -> Array:
        """Rows whose gauges stay below 1 on the sphere around the dual point; none without a finite smoothness."""
        counts = np.zeros(len(gap), dtype=np.int64)
        if not np.isfinite(self._loss.smoothness):
            return counts
        for k, penalty in enumerate(penalties):
            if np.isfinite(gap[k]):
                radius = np.sqrt(2.0 * self._loss.smoothness * self._loss.floored_gap(float(gap[k])))
                # a column of norm 1 along a row's steepest entry moves its gauge by 1/(group + l1) at most
                moved = radius * self._longest / (penalty.group + penalty.l1)
                counts[k] = np.count_nonzero(scale[k] * gauges[k] + moved < REJECT)
        return counts

    def _scores(
        self, numbers: Sequence[StoredSolution], rows: list[Array], places: Sequence[Array]
    ) -> tuple[Array, Array]:
        """`certificate.scores_of`."""
        design, count = self._design, len(numbers)
        raw = np.empty((count, design.n_samples))
        pulled, reach, constant, lost = np.zeros((4, count, design.n_tasks))
        for k, (own, scaled, place) in enumerate(zip(numbers, rows, places, strict=True)):
            positions = self._positions[place]
            raw[k] = self._columns.combine(positions, scaled)
            if own.known is not None:
                taken, reach[k] = own.known
            else:
                taken = np.add.reduce(self._columns.loadings(positions) * scaled, axis=1)
                reach[k] = np.add.reduce(self._sizes[place] * np.abs(scaled), axis=0)
            if len(taken):
                pulled[k] = taken[0]
            if own.constant is not None:
                constant[k], lost[k] = own.constant
        level = constant + design.coefficients(pulled[None])[0] if design.n_nuisance else constant
        raw = raw / self._divisor + design.per_sample(level)
        lengths = design.samples.root_totals
        operations = np.array([len(own) for own in rows]) + (2 * design.n_nuisance + 24)
        error = (2 * design.n_nuisance + 2) * reach + np.abs(constant) * lengths
        error = gamma(1) * operations[:, None] * error + lost * lengths + gamma(4) * self._loss.label_sizes()
        return raw, error

    def _duals(
        self,
        residual: Array,
        leak: Array,
        rows: list[Array],
        places: Sequence[Array],
        penalties: Sequence[SparseGroup],
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Of each value: the norm of its rows, their products with the dual point, what rounding adds to the gap beside
        the loss, the dual point's scale, and upper bounds of the gauges of all features before it."""
        lengths = self._design.task_norms(residual)
        errors_of = self._errors * lengths + leak
        norms, inner, known, scales = np.empty((4, len(rows)))
        gauges = np.empty((len(rows), len(self._positions)))
        for k, (own, place, penalty) in enumerate(zip(rows, places, penalties, strict=True)):
            products = self._columns.correlate(residual[k], self._positions)
            errors = self._sizes * errors_of[k] + LOST * lengths[k]
            gauges[k] = penalty.upper_gauges(products, errors)
            polar = penalty.polar(gauges[k])
            limit = 1.0 / (polar * (1.0 + penalty.gauge_error)) if polar > 0.0 else np.inf
            scale = scales[k] = min(1.0, limit)
            products, errors, sizes = products[place], errors[place], np.abs(own)
            norms[k], inner[k] = penalty.restrict(place).value(own), np.vdot(products, own)
            known[k] = gamma(own.size + 24) * (norms[k] + scale * np.vdot(np.abs(products), sizes))
            known[k] += scale * np.vdot(errors, sizes)
        return norms, inner, known, scales, gauges
