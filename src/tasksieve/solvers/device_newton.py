"""Variational Newton (`newton`) on a device: the same program in torch, all in double precision.

Tasks are padded to the longest, so that one batched call serves all: a row of zeros adds 1 to the diagonal of K and
nothing else. The linear algebra is in the form that is smaller (`newton_forms`): as large as the tasks have rows, or as
there are features in play.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..design import PackedColumns
from ..penalties import row_norms
from .needs import Needs
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_JITTER = 1e-13  # of M's mean diagonal
_DAMPING = (0.0, 1e-6, 1e-4, 1e-2, 1.0, 100.0)
_HALVINGS = 30
_PIVOTS = 20  # rounds of deciding which rows sit at their bound
_STALLED = 20


class _Point:
    """Phi and everything that belongs to it at one vector a."""

    __slots__ = ("a", "factor", "gap", "products", "residual", "sizes", "value")

    def __init__(self, a: Any, factor: Any, residual: Any, products: Any, sizes: Any, value: float, gap: float) -> None:
        self.a, self.factor, self.residual, self.products = a, factor, residual, products
        self.sizes, self.value, self.gap = sizes, value, gap


class DeviceNewton:
    """Keeps the columns of one path on the device as they come into play.

    Parameters
    ----------
    packed : PackedColumns
        Where they come from.
    device : torch.device
    """

    name = "newton"
    needs = Needs(losses=("squared",), plain=True, packed=True)

    def __init__(self, packed: PackedColumns, device: Any) -> None:
        self._packed, self._device = packed, device
        lengths = np.diff(packed.offsets)
        self._rows = int(lengths.max()) if not packed.shared else len(packed.x)
        self._matrices = 1 if packed.shared else packed.n_tasks
        # where each sample stands in the padded tasks
        within = np.arange(int(packed.offsets[-1])) - np.repeat(packed.offsets[:-1], lengths)
        self._flat = torch.from_numpy(np.repeat(np.arange(packed.n_tasks), lengths) * self._rows + within).to(device)
        self._layout, self._known = packed.layout, 0
        self._columns = torch.zeros((self._matrices, self._rows, 64), dtype=torch.float64, device=device)
        self._target: tuple[Array | None, Any] = (None, None)

    def fits(self, count: int) -> bool:
        """Whether the padded tasks, and the systems of so many rows, are affordable."""
        packed = self._packed
        padded = self._matrices * self._rows <= 4 * (len(packed.x) if packed.shared else int(packed.offsets[-1]))
        return padded and self._matrices * float(min(count, self._rows)) ** 2 <= 2**29

    def _padded(self, vector: Any) -> Any:
        """A flat vector over samples as (tasks, rows)."""
        out = torch.zeros(self._packed.n_tasks * self._rows, dtype=torch.float64, device=self._device)
        out[self._flat] = vector
        return out.reshape(self._packed.n_tasks, self._rows)

    def _chosen(self, places: Array) -> Any:
        """Columns on the device, (matrices, rows, len(places)); those that are missing are sent."""
        packed = self._packed
        if self._layout != packed.layout:
            self._layout, self._known = packed.layout, 0
        total = packed.x.shape[1]
        if total > self._known:
            if total > self._columns.shape[2]:
                room = max(total, 2 * self._columns.shape[2])
                grown = torch.zeros((self._matrices, self._rows, room), dtype=torch.float64, device=self._device)
                grown[:, :, : self._known] = self._columns[:, :, : self._known]
                self._columns = grown
            fresh = torch.from_numpy(packed.x[:, self._known : total].T.copy()).to(self._device)
            if packed.shared or self._matrices == 1:
                self._columns[0, :, self._known : total] = fresh.T
            else:
                flat = self._columns.view(self._matrices * self._rows, -1)
                flat[self._flat, self._known : total] = fresh.T
            self._known = total
        return self._columns[:, :, torch.from_numpy(places).to(self._device)]

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        """As `VariationalNewton.solve`; a gap of infinity says that the device found no way on."""
        if problem.loss.target is not self._target[0]:
            self._target = problem.loss.target, self._padded(torch.from_numpy(problem.loss.target).to(self._device))
        x, y = self._chosen(problem.places), self._target[1]
        lam = torch.from_numpy(np.ascontiguousarray(problem.penalty.group)).to(self._device)
        ridge, sizes = float(problem.penalty.ridge), row_norms(start)
        a = torch.from_numpy(sizes / (problem.penalty.group + ridge * sizes)).to(self._device)
        point = self._evaluate(x, y, a, lam, ridge)
        if point is None:
            return Solution(start, 0, np.inf)
        steps, least, stalled = 0, point.gap, 0
        while point.gap > tol and steps < max_iter and stalled < _STALLED:
            following = self._step(point, x, y, lam, ridge)
            steps += 1
            if following is None:
                break
            point = following
            stalled = stalled + 1 if point.gap > 0.999 * least else 0
            least = min(point.gap, least)
        rows = (point.a[:, None] * point.products).cpu().numpy()
        return Solution(rows, steps, point.gap)

    # -- one point ------------------------------------------------------------------------------------------------

    def _evaluate(self, x: Any, y: Any, a: Any, lam: Any, ridge: float) -> _Point | None:
        """Residual, products, Phi and gap; None where a factorisation failed. One message from the device."""
        by_features = x.shape[2] < self._rows
        if by_features:  # B = I + D G D
            root = a.sqrt()
            scaled = x * root
            inner = scaled.mT @ scaled
            inner.diagonal(dim1=1, dim2=2).add_(1.0)
            factor, info = torch.linalg.cholesky_ex(inner)
            against = self._times(scaled, y)
            residual = y - self._combine(scaled, self._solve(factor, against))
        else:  # K = I + X diag(a) X'
            outer = (x * a) @ x.mT
            outer.diagonal(dim1=1, dim2=2).add_(1.0)
            factor, info = torch.linalg.cholesky_ex(outer)
            residual = self._solve(factor, y)
        products = self._times(x, residual).mT.contiguous()  # (columns, tasks)
        sizes = torch.linalg.vector_norm(products, dim=1)
        rest, squares = 1.0 - ridge * a, sizes * sizes
        penalties, weights = lam * a * sizes, a * squares
        found = torch.stack([
            (residual * y).sum(), (lam * lam * a / rest).sum(), (residual * residual).sum(), (a * weights).sum(),
            (weights * rest).sum(), penalties.sum(), (sizes * rest / lam).max(), info.max().to(torch.float64),
        ]).tolist()  # fmt: skip
        along, strength, residual2, ridged, inner_sum, norm, polar, failed = found
        value = 0.5 * along + 0.5 * strength
        if failed or not np.isfinite(value):
            return None
        residual2 += ridge * ridged
        scale = (residual2 + inner_sum) / residual2 if residual2 > 0.0 else 1.0
        if polar > 0.0:
            scale = min(scale, 1.0 / polar)
        gap = 0.5 * (1.0 - scale) ** 2 * residual2 + max(norm - scale * inner_sum, 0.0)
        return _Point(a, factor, residual, products, sizes, value, gap)

    def _times(self, x: Any, vectors: Any) -> Any:
        """``x_t' v_t``: (tasks, columns), one matrix for all tasks or one each."""
        if len(x) == 1:
            return vectors @ x[0]
        return (vectors[:, None, :] @ x)[:, 0]

    def _combine(self, x: Any, rows: Any) -> Any:
        """``x_t w_t`` for rows (tasks, columns): (tasks, rows)."""
        if len(x) == 1:
            return rows @ x[0].T
        return (x @ rows[:, :, None])[:, :, 0]

    def _solve(self, factor: Any, right: Any) -> Any:
        """``(L L')^-1 b_t``: (tasks, size)."""
        if len(factor) == 1:
            return torch.cholesky_solve(right.mT, factor[0]).mT
        return torch.cholesky_solve(right[:, :, None], factor)[:, :, 0]

    # -- one step -------------------------------------------------------------------------------------------------

    def _step(self, point: _Point, x: Any, y: Any, lam: Any, ridge: float) -> _Point | None:
        for damping in _DAMPING:
            direction = self._direction(point, x, lam, ridge, damping)
            if direction is None:
                return None
            following = self._search(point, direction, x, y, lam, ridge)
            if following is not None:
                return following
        return None

    def _search(self, point: _Point, direction: Any, x: Any, y: Any, lam: Any, ridge: float) -> _Point | None:
        slope = 0.5 * ((lam / (1.0 - ridge * point.a)) ** 2 - point.sizes**2)
        decrease = float(slope @ direction)
        slack = 1e-13 * abs(point.value)
        if not decrease <= slack:
            return None
        step = 1.0
        for _ in range(_HALVINGS):
            a = point.a + step * direction
            a = torch.where(a <= 1e-12 * point.a, torch.zeros_like(a), a)
            if ridge:
                a = torch.minimum(a, 0.5 * (point.a + 1.0 / ridge))
            candidate = self._evaluate(x, y, a, lam, ridge)
            if candidate is not None and candidate.value <= point.value + 1e-4 * step * decrease + slack:
                return candidate
            step *= 0.5
        return None

    def _direction(self, point: _Point, x: Any, lam: Any, ridge: float, damping: float) -> Any:
        """The secular form's direction, or with damping that of the plain form, over the rows that may move."""
        active = point.a > 0.0
        entering = ~active & (point.sizes > lam)
        ratio = torch.where(entering, point.sizes / lam, torch.zeros_like(lam))
        chosen = ((active | entering) & (point.sizes > 0.0)).nonzero()[:, 0]
        if not len(chosen):
            return None
        room = max(100, int(active.sum())) if len(chosen) > 100 else len(chosen)
        if len(chosen) > 2 * room:  # the strongest of the new ones only: too many false rows would fill M
            least = torch.topk(ratio, room).values[-1]
            chosen = ((active | (entering & (ratio >= least))) & (point.sizes > 0.0)).nonzero()[:, 0]
        size, a, strength = point.sizes[chosen], point.a[chosen], lam[chosen]
        m = self._system(point, x, chosen, point.products[chosen] / size[:, None])
        if m is None:
            return None
        if damping == 0.0:
            diagonal = ridge * size / strength
            right = size * (size * (1.0 - ridge * a) / strength - 1.0)
        else:
            rest = strength / (1.0 - ridge * a)
            diagonal = ridge * (rest / size) ** 2 / (1.0 - ridge * a)
            diagonal = diagonal + damping * (m.diagonal() + diagonal).mean()
            right = 0.5 * (size - rest) * (size + rest) / size
        m.diagonal().add_(diagonal)
        m.diagonal().add_(_JITTER * m.diagonal().mean())
        v = self._bounded(m, right, -a * size)
        if v is None:
            return None
        direction = torch.zeros_like(point.a)
        direction[chosen] = v / size
        gone = active & (point.sizes == 0.0)
        return torch.where(gone, -point.a, direction)

    def _system(self, point: _Point, x: Any, chosen: Any, u: Any) -> Any:
        """``M = sum_t (u_t u_t') o X_t' K_t^-1 X_t`` on some columns."""
        if point.factor.shape[1] == self._rows and x.shape[2] >= self._rows:
            whitened = torch.linalg.solve_triangular(point.factor, x[:, :, chosen], upper=False)
            if len(whitened) == 1:  # one matrix for all tasks
                return (whitened[0].T @ whitened[0]) * (u @ u.T)
            z = (whitened * u.T[:, None, :]).reshape(-1, len(chosen))
            return z.T @ z
        # X'K^-1X = G - G D B^-1 D G on these columns, B of all columns in play
        own = x[:, :, chosen]
        gram = own.mT @ own
        cross = torch.linalg.solve_triangular(point.factor, (x * point.a.sqrt()).mT @ own, upper=False)
        inside = gram - cross.mT @ cross
        if len(inside) == 1:
            return inside[0] * (u @ u.T)
        return (inside * (u.T[:, :, None] * u.T[:, None, :])).sum(dim=0)

    def _bounded(self, m: Any, right: Any, lower: Any) -> Any:
        """``argmin 1/2 v'Mv - b'v`` over ``v >= lower``: rows at their bound are left out of the factor."""
        fixed = torch.zeros_like(right, dtype=torch.bool)
        for attempt in range(_PIVOTS):
            if attempt == 0:
                factor, info = torch.linalg.cholesky_ex(m)
                v = torch.cholesky_solve(right[:, None], factor)[:, 0]
                release = fixed
            else:
                free = (~fixed).to(m.dtype)
                held = torch.where(fixed, lower, torch.zeros_like(lower))
                masked = m * free[:, None] * free[None, :]
                masked.diagonal().add_(fixed.to(m.dtype))
                factor, info = torch.linalg.cholesky_ex(masked)
                v = torch.cholesky_solve(((right - m @ held) * free)[:, None], factor)[:, 0] + held
                pull = right - m @ v
                release = fixed & (pull > 0.0) if attempt < _PIVOTS // 2 else torch.zeros_like(fixed)
            below = ~fixed & (v < lower)
            counts = torch.stack([below.sum(), release.sum(), info.sum()]).tolist()
            if counts[2]:
                return None
            if not counts[0] and not counts[1]:
                break
            fixed = (fixed & ~release) | below
        return torch.maximum(v, lower)


