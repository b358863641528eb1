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

from .._kernels import kernels
from ..losses.base import UNIT, gamma
from ..losses.mean_divergence import MeanDivergenceOnData
from ..losses.rowwise import TILTED, RowLossOnData
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
        values = self._exact_sums(loss.of.value(self._labels, raw))
        slope = loss.of.slope(self._labels, raw)
        p = self._balanced(loss.inside_domain(slope))
        tilt, leak = self._distance(self._root * p)
        norms, inner, known, scale, gauges = self._duals(self._root * p, leak, rows, places, penalties)
        with np.errstate(invalid="ignore", over="ignore"):
            gap = self._young(raw, slope, error, p, tilt, scale) + known + np.maximum(norms - scale * inner, 0.0)
            objective = values + norms
            off = np.sum(np.sqrt(self._sums(np.square(self._root * slope))) * error, axis=1)
            off += self._second_order(raw, error)
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

    def _sums(self, values: Array) -> Array:
        """By task, (values, tasks)."""
        return self._design.task_sums(values)

    def _spread(self, values: Array) -> Array:
        """One number a task, for each of its samples."""
        return np.repeat(values, self._design.samples.lengths, axis=1)

    def _tiled(self, count: int) -> Array:
        """Offsets of so many flat vectors, one after another."""
        starts = self._design.offsets[:-1] + self._design.n_samples * np.arange(count)[:, None]
        return np.append(starts.ravel(), count * self._design.n_samples)

    def _exact_sums(self, values: Array) -> Array:
        """Weighted sums, each task's as if summed in twice the precision."""
        count = len(values)
        weights = np.tile(self._weights, count)
        found = self._design.samples.exact_cut(weights, values.ravel(), self._tiled(count))
        return np.asarray(found.reshape(count, -1).sum(axis=1))

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
        raw = raw / self._divisor + self._spread(level)
        lengths = design.samples.root_totals
        operations = np.array([len(own) for own in rows]) + (2 * design.n_nuisance + 24)
        error = (2 * design.n_nuisance + 2) * reach + np.abs(constant) * lengths
        error = gamma(1) * operations[:, None] * error + lost * lengths + gamma(4) * self._loss.label_sizes()
        return raw, error

    def _balanced(self, p: Array) -> Array:
        """`RowLossOnData._balanced`."""
        if not self._design.n_nuisance:
            return p
        off = self._sums(self._weights * p)
        down, up = self._loss.rooms(p)
        room = np.where(self._spread(off > 0.0), down, up)
        whole = self._sums(self._weights * room)
        step = np.divide(off, whole, out=np.zeros_like(whole), where=whole > 0.0)
        return p - room * self._spread(np.where(np.abs(step) > TILTED, 0.0, step))

    def _distance(self, residual: Array) -> tuple[Array, Array]:
        """`RowLossOnData.settled`: `tilt` and `leak`."""
        design, loss, count = self._design, self._loss, len(residual)
        if not design.n_nuisance:
            return np.zeros((count, design.n_tasks)), np.zeros((count, design.n_tasks))
        found, lengths = np.empty((1, count * design.n_tasks)), np.empty(count * design.n_tasks)
        samples = design.samples
        inverse, rounding = samples.judged_by
        kernels.measure_against(
            np.tile(samples.weighted_nuisance, count), residual.ravel(), self._tiled(count),
            np.tile(inverse, count), np.tile(rounding, count), found, lengths,
        )  # fmt: skip
        used = np.isfinite(design.nuisance_sizes)
        off = found.reshape(count, -1) * np.where(used, design.nuisance_sizes, 0.0)
        rooms = loss.rooms(loss.inside_domain(residual / self._divisor))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            tilt = np.max([off / self._sums(self._weights * room) for room in rooms], axis=0)
            spread = np.max([np.sqrt(self._sums(np.square(self._root * room))) for room in rooms], axis=0)
            tilt = tilt * (1.0 + gamma(design.n_samples + 16))
            leak = tilt * spread * (1.0 + gamma(design.n_samples + 16))
        exact = off == 0.0
        tilt, leak = np.where(exact, 0.0, tilt), np.where(exact, 0.0, leak)
        return np.where(np.isfinite(tilt) & np.isfinite(leak), tilt, np.inf), leak

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
        lengths = np.sqrt(self._sums(np.square(residual)))
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

    def _young(self, z: Array, slope: Array, error: Array, p: Array, tilt: Array, scale: Array) -> Array:
        """`RowLossOnData.young`."""
        loss, s = self._loss, self._weights
        p = loss.inside_domain(self._root * p / self._divisor)
        least, leaning = 4.0 * UNIT * np.abs(p), self._spread(tilt)
        down, up = (room * leaning + least for room in loss.rooms(p))
        worst = np.zeros_like(z)
        for end in (p - down, p + up):
            excess, sizes = loss.of.excess(self._labels, z, scale[:, None] * loss.inside_domain(end))
            worst = np.maximum(worst, excess + 16.0 * UNIT * sizes)
        worst[:, s == 0.0] = 0.0
        rounding = np.maximum(down, up) + 8.0 * UNIT * (np.abs(slope) + np.abs(p))
        away = self._root * (np.abs(slope - scale[:, None] * p) + rounding)
        moved = np.sqrt(np.sum(np.square(error), axis=1))
        total = worst @ s + np.sqrt(np.sum(np.square(away), axis=1)) * moved + self._second_order(z, error)
        return total * (1.0 + gamma(z.shape[1] + 32))

    def _second_order(self, z: Array, error: Array) -> Array:
        """`DataLoss.second_order_error`."""
        moved = np.sum(np.square(error), axis=1)
        if np.isfinite(self._loss.smoothness):
            return 0.5 * self._loss.smoothness * moved
        assert isinstance(self._loss, MeanDivergenceOnData)
        steepest = self._loss.steepest_within(z, self._spread(error) / self._divisor)
        return np.where(moved > 0.0, 0.5 * steepest * moved, 0.0)
