"""Variational Newton for the calibrated model: second order in the row norms and in the noise, jointly.

The model is a group basis pursuit: ``y_t = X_t w_t + r_t`` with groups ``W_j`` (weight lam_j) and ``r_t`` (weight 1).
So the noise ``sigma_t = ||r_t||`` is one more unknown of the kind ``a_j`` (`newton`), and needs no special treatment:

    Phi(a, sigma) = 1/2 sum_t y_t' K_t^-1 y_t + 1/2 sum_t sigma_t + sum_j lam_j^2/2 a_j/(1 - ridge a_j),
    K_t = sigma_t I + sum_j a_j x_jt x_jt',        a >= 0, sigma >= 0, jointly convex,
    u_t = K_t^-1 y_t,   c_jt = x_jt' u_t,   W_j = a_j c_j,   y_t - X_t w_t = sigma_t u_t,
    dPhi/da_j = 1/2 ( lam_j^2/(1 - ridge a_j)^2 - ||c_j||^2 ),     dPhi/dsigma_t = 1/2 ( 1 - ||u_t||^2 ).

u is the dual point itself. A task that is fitted exactly is sigma_t = 0 with ``||u_t|| < 1``: a bound like any other.
The Newton system in its secular form (on ``1/||c_j|| = (1 - ridge a_j)/lam_j`` and ``1/||u_t|| = 1``) is, with
``K_t = L_t L_t'``,

    M v = b,  v >= lower,   M = Z'Z + diag(ridge ||c_j||/lam_j ; 0),
    Z_j = (L_t^-1 x_jt c_jt)_t / ||c_j||,     b_j = ||c_j|| ( ||c_j|| (1 - ridge a_j)/lam_j - 1 ),  da_j = v_j/||c_j||,
    Z_t = L_t^-1 u_t / ||u_t||,               b_t = ||u_t|| ( ||u_t|| - 1 ),               dsigma_t = v_t/||u_t||.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._kernels import kernels
from ..design import ColumnBlock, PackedColumns
from ..losses import TaskNorms
from ..penalties import row_norms
from .calibrated import best_multiple, row_gaps
from .newton import DAMPING, backtracked, bounded_direct, moved, rows_of_step, sides
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_FLOOR = 1e-3  # of the tolerance: sigma below this cannot be seen in the gap
_SMALLEST = 1e-12  # of ||y_t||: what K can still be factored with
_FALL = 0.01  # of the relative gap: sigma falls with the gap, never ahead of it
_STALL = 12  # steps without halving the gap: give up, another start will do better


@dataclass
class _Point:
    """Phi and everything that belongs to it at one (a, sigma)."""

    a: Array
    noise: Array
    dual: Array
    lengths: Array  # ||u_t||
    products: Array
    sizes: Array  # ||c_j||
    value: float


class CalibratedNewton:
    """Keeps the work arrays of one path."""

    _MOST_CELLS = 25_000_000  # of the matrices K_t, all tasks together

    @classmethod
    def fits(cls, packed: PackedColumns, count: int) -> bool:
        """Whether the matrices K_t, as large as tasks have rows (or columns, if fewer), are affordable."""
        lengths = np.diff(packed.offsets)
        if ReducedNewton.pays(packed, count):
            lengths = np.minimum(lengths, count + 1)
        return int(np.sum(lengths * lengths)) <= cls._MOST_CELLS

    def __init__(self, packed: ColumnBlock, loss: TaskNorms | _Rotated) -> None:
        self._packed, self._loss = packed, loss
        self._lengths = np.diff(packed.offsets)
        self._starts = np.concatenate([[0], np.cumsum(self._lengths * self._lengths)])
        self._factors = np.empty(int(self._starts[-1]))
        self._whitened = np.empty((int(packed.offsets[-1]), 0), dtype=np.float32, order="F")
        self._sizes = loss.sizes(loss.target)  # ||y_t||
        self._noisy = np.flatnonzero(self._sizes > 0.0)
        self._threads = packed.n_threads
        # the problem at hand
        self._positions = np.empty(0, dtype=np.int64)
        self._penalty: Any = None
        self._lam, self._ridge = np.empty(0), 0.0
        self._lowest = np.empty(0)  # that sigma may become in a step

    @staticmethod
    def step_work(packed: PackedColumns, working: int, count: int) -> float:
        """Operations of one Newton step with this many rows of W out of `working`."""
        lengths = np.diff(packed.offsets).astype(float)
        if ReducedNewton.pays(packed, working):
            lengths = np.minimum(lengths, working + 1.0)
        squares, cubes = float(np.sum(lengths**2)), float(np.sum(lengths**3))
        unknowns = count + len(lengths)
        return 2.0 * cubes + 4.0 * count * squares + unknowns**2 * float(lengths.sum()) + float(unknowns) ** 3

    def solve(
        self, problem: WorkingProblem, start: Array, noise: Array, tol: float, max_iter: int
    ) -> Solution:
        """From the row norms of `start` and the residual norms `noise`, until the gap is at most `tol`."""
        self._positions, self._penalty = problem.positions, problem.penalty
        self._lam, self._ridge = lam, ridge = problem.penalty.group_form(), problem.penalty.ridge
        sizes = row_norms(start)
        a = sizes / (lam + ridge * sizes)
        whole = float(self._sizes.sum())
        floor = np.maximum(_FLOOR * tol / whole, _SMALLEST) * self._sizes
        sigma = np.where(self._sizes > 0.0, np.maximum(noise, np.maximum(floor, 1e-6 * self._sizes)), 1.0)
        point = self._evaluate(a, sigma)
        while not np.isfinite(point.value):  # K not positive to rounding
            sigma = np.where(self._sizes > 0.0, np.maximum(100.0 * sigma, 1e-6 * self._sizes), 1.0)
            point = self._evaluate(a, sigma)
        gap = self._gap(point)
        best, gap_then, waited, steps = point, gap, 0, 0
        best_gap = gap
        while gap > tol and steps < max_iter:
            self._lowest = np.maximum(floor, np.minimum(_FALL * gap / whole, 1.0) * self._sizes)
            following = self._step(point)
            steps += 1
            if following is None:  # rounding has been reached
                break
            point = following
            gap = self._gap(point)
            if gap < best_gap:
                best, best_gap = point, gap
            if gap <= 0.5 * gap_then:
                gap_then, waited = gap, 0
            else:
                waited += 1
                if waited >= _STALL:
                    break
        rows = best.a[:, None] * best.products
        return Solution(rows, steps, best_gap, dual=best.dual, noise=best.noise)

    def _evaluate(self, a: Array, noise: Array) -> _Point:
        packed, loss, positions = self._packed, self._loss, self._positions
        lam, ridge = self._lam, self._ridge
        live = np.flatnonzero(a > 0.0)
        dual = np.empty_like(loss.target)
        ok = kernels.factor_shifted(
            packed.x, packed.offsets, packed.shared, positions[live], a[live], noise, loss.target, self._threads,
            self._factors, dual,
        )  # fmt: skip
        if not ok:
            return _Point(a, noise, dual, np.empty(0), np.empty((0, 0)), np.empty(0), np.inf)
        # Where sigma is small, rounding grows along the directions that intercepts explain: it does not belong to u.
        dual = loss.project(dual)
        products = packed.correlate(dual, positions)
        value = 0.5 * float(loss.target @ dual) + 0.5 * float(noise[self._noisy].sum())
        value += 0.5 * float(np.sum(lam * lam * a / (1.0 - ridge * a)))
        return _Point(a, noise, dual, loss.sizes(dual), products, row_norms(products), value)

    def _gap(self, point: _Point) -> float:
        """The gap over the working columns; the residual is taken to be sigma u, as it is but for rounding."""
        penalty = self._penalty
        shrink = 1.0 / np.maximum(point.lengths, 1.0)
        if np.any(point.lengths > 1.0):
            scaled = point.products * shrink
            sizes = row_norms(scaled)
        else:
            scaled, sizes = point.products, point.sizes
        noise = np.where(self._sizes > 0.0, point.noise, 0.0)
        residual = noise * point.lengths
        along = float(np.sum(shrink * self._loss.task_products(point.dual, self._loss.target)))
        scale = best_multiple(along, sizes, penalty.group_form(), penalty.ridge)
        row_sizes = point.a * point.sizes
        inner = point.a * np.einsum("jt,jt->j", scaled, point.products)
        gap = float(np.sum(residual * (1.0 - scale * point.lengths * shrink)))
        return gap + row_gaps(penalty, sizes, inner, row_sizes, scale)

    def _step(self, point: _Point) -> _Point | None:
        """One step: in the secular form, or else damped more and more (see `newton`)."""
        for damping in (None, 0.0, *DAMPING) if self._ridge else (None, *DAMPING):
            direction = self._direction(point, damping)
            if direction is None:
                continue
            following = self._search(point, direction)
            if following is not None:
                return following
        return None

    def _search(self, point: _Point, direction: tuple[Array, Array]) -> _Point | None:
        """Backtracking on Phi; the full step is nearly always taken."""
        da, dnoise = direction
        slope = 0.5 * (np.square(self._lam / (1.0 - self._ridge * point.a)) - np.square(point.sizes))
        decrease = float(slope @ da) + 0.5 * float((1.0 - np.square(point.lengths)) @ dnoise)

        def candidate(step: float) -> _Point:
            noise = point.noise + step * dnoise
            if step < 1e-2:
                # Jammed: with sigma at its floor and K nearly singular the model holds in a tiny region only.
                noise = np.maximum(noise, np.where(self._sizes > 0.0, 4.0 * self._lowest, 0.0))
            return self._evaluate(moved(point.a, step * da, self._ridge), noise)

        return backtracked(point.value, decrease, candidate, 30)

    def _direction(self, point: _Point, damping: float | None) -> tuple[Array, Array] | None:
        lam, ridge = self._lam, self._ridge
        chosen = rows_of_step(point.a, point.sizes, lam)
        tasks = self._noisy
        count = len(chosen) + len(tasks)
        if count == 0:
            return None
        # Without a ridge M is nearly singular wherever tasks are fitted exactly: single precision would cost steps.
        precise = damping is not None or ridge == 0.0
        size = np.concatenate([point.sizes[chosen], point.lengths[tasks]])
        z = self._columns(point, chosen, tasks, precise)
        m: Array
        if not precise:
            m = np.empty((count, count), dtype=np.float32)
            kernels.normal_matrix(z, None, self._threads, m)
        else:
            m = z.T @ z
        # the noise of a task is a row of strength 1, without a ridge
        rows, none = slice(0, len(chosen)), np.zeros(len(tasks))
        a, strength = np.concatenate([point.a[chosen], none]), np.concatenate([lam[chosen], none + 1.0])
        diagonal, right = sides(size, a, strength, ridge, plain=bool(damping))
        diagonal[len(chosen) :] = 0.0
        m[np.diag_indices(count)] += diagonal.astype(m.dtype)
        if damping:
            m[np.diag_indices(count)] += damping * float(np.mean(np.diag(m)))
        # Scaled to unit diagonal: that of a task's noise grows without bound as the task is fitted exactly.
        unit = np.sqrt(np.maximum(np.diag(m).astype(np.float64), 1e-300))
        m /= unit.astype(m.dtype)[:, None]
        m /= unit.astype(m.dtype)[None, :]
        if not np.all(np.isfinite(m)):
            return None
        lower = -a * size
        lower[len(chosen) :] = np.minimum(self._lowest - point.noise, 0.0)[tasks] * point.lengths[tasks]
        v = bounded_direct(m, right / unit, lower * unit) / unit
        da, dnoise = np.zeros_like(point.a), np.zeros_like(point.noise)
        da[chosen] = v[rows] / size[rows]
        dnoise[tasks] = v[len(chosen) :] / point.lengths[tasks]
        # A row that has no correlation left carries nothing.
        gone = point.sizes == 0.0
        da[gone] = -point.a[gone]
        return da, dnoise

    def _columns(self, point: _Point, chosen: Array, tasks: Array, precise: bool) -> Array:
        """Z: a column for each row of W, then one for the noise of each task."""
        packed, offsets = self._packed, self._packed.offsets
        u = point.products[chosen] / point.sizes[chosen][:, None]
        count, samples = len(chosen) + len(tasks), int(offsets[-1])
        kind = np.float64 if precise else np.float32
        # Kept between steps: fresh memory of this size costs as much as filling it.
        if self._whitened.dtype != kind or self._whitened.shape[1] < count:
            self._whitened = np.empty((samples, 2 * count), dtype=kind, order="F")
        z = self._whitened[:, :count]
        kernels.whiten_each(
            packed.x, offsets, packed.shared, self._positions[chosen], u, self._factors, self._threads,
            z[:, : len(chosen)],
        )  # fmt: skip
        z[:, len(chosen) :] = 0.0
        for k, t in enumerate(tasks):
            own, n = slice(offsets[t], offsets[t + 1]), int(self._lengths[t])
            lower = self._factors[self._starts[t] : self._starts[t + 1]].reshape(n, n, order="F")
            whitened, _ = lapack.dtrtrs(lower, point.dual[own], lower=1)
            z[own, len(chosen) + k] = whitened / point.lengths[t]
        return z


class _Rotated:
    """Tasks in coordinates of their own: what the Newton method needs of a loss."""

    def __init__(self, target: Array, offsets: Array) -> None:
        self.target, self._offsets = target, offsets

    def task_products(self, first: Array, second: Array) -> Array:
        return np.asarray(np.add.reduceat(first * second, self._offsets[:-1]))

    def sizes(self, vector: Array) -> Array:
        return np.sqrt(self.task_products(vector, vector))

    def project(self, vector: Array) -> Array:
        return vector  # all of it lies in the span of columns and target, which are projected


class ReducedNewton:
    """The same for tasks with many more rows than there are working columns.

    Everything happens in the span of a task's columns and its target: ``X_t = Q R`` and ``y_t = Q c + rho q`` turn n_t
    rows into one more than there are columns, and all norms and inner products stay what they are.
    """

    _RATIO = 1.5

    @classmethod
    def pays(cls, packed: PackedColumns, count: int) -> bool:
        return bool(np.mean(np.diff(packed.offsets)) > cls._RATIO * (count + 1))

    def __init__(self, problem: WorkingProblem) -> None:
        packed, loss = problem.columns, problem.loss
        self._positions = np.arange(len(problem.positions))
        self._bases: list[tuple[slice, Array, Array]] = []
        columns, targets = [], []
        whole = np.linalg.qr(packed.x[:, problem.positions]) if packed.shared else None
        for start, stop in zip(packed.offsets[:-1], packed.offsets[1:], strict=True):
            rows = slice(int(start), int(stop))
            y = loss.target[rows]
            q, r = whole if whole is not None else np.linalg.qr(packed.x[rows][:, problem.positions])
            part = q.T @ y
            rest = y - q @ part
            rest = rest - q @ (q.T @ rest)  # little may be left of it
            length = float(np.linalg.norm(rest))
            rest = rest / length if length > 0.0 else rest
            columns.append(np.vstack([r, np.zeros((1, r.shape[1]))]))
            targets.append(np.append(part, length))
            self._bases.append((rows, q, rest))
        lengths = [len(part) for part in targets]
        self._offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        block = ColumnBlock(np.asfortranarray(np.vstack(columns)), self._offsets, False, packed.n_threads)
        self._newton = CalibratedNewton(block, _Rotated(np.concatenate(targets), self._offsets))
        self._samples = int(packed.offsets[-1])

    def solve(
        self, problem: WorkingProblem, start: Array, noise: Array, tol: float, max_iter: int
    ) -> Solution:
        """As `CalibratedNewton.solve`, for the columns this was made with."""
        small = WorkingProblem(problem.columns, self._positions, problem.penalty, problem.loss)
        solved = self._newton.solve(small, start, noise, tol, max_iter)
        assert solved.dual is not None
        dual = np.empty(self._samples)
        for t, (rows, q, rest) in enumerate(self._bases):
            own = solved.dual[self._offsets[t] : self._offsets[t + 1]]
            dual[rows] = q @ own[:-1] + own[-1] * rest
        solved.dual = dual
        return solved
