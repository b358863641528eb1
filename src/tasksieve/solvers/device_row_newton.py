"""Variational Newton on a device for losses of rows, and for L1 beside the group norm.

As in `newton`, in as many unknowns as there are rows of W: with ``W_j = a_j c'_j`` and ``c'_j = soft(c_j, l1_j)``,

    Phi(a) = min_W f(X W) + sum_j l1_j ||W_j||_1 + 1/2 sum_j ||W_j||^2/a_j + sum_j lam_j^2/2 a_j/(1 - ridge a_j),
    dPhi/da_j = 1/2 ( lam_j^2/(1 - ridge a_j)^2 - ||c'_j||^2 ),    c_jt = x_jt' r_t,    r = -f'(v),    v = X W + U b,

U the columns of the nuisance, b their best coefficients. The minimum is found task by task, by Newton's method in r:
with the second derivatives ``w^2`` of f at v, the entries S with ``|c_jt| > l1_j`` and ``g = r + w^2 v``,

    K_t = I + w X_S diag(a) X_S' w,    K_t m_t = w (X_S diag(a) (X_S' g - l1 sign c) + U b),    r = g - w m,   U'r = 0.

Rows whose loss is linear have w = 0, which is no exception. The system of a step is that of `newton`, with ``L_t^-1 w
x_jt`` less what ``L_t^-1 w U`` explains of it, and ``u_j = c'_j/||c'_j||``. Whether a point is good enough is decided
here, by the loss itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..design import PackedColumns
from ..losses.tensor_formulas import TensorFormula
from ..penalties import row_norms
from ..penalties.sparse_group import is_sparse_group
from .device_newton import DeviceNewton, _combine, _Facts, _Room, _Rooms, _Slot, _times, _width
from .working import Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_LENGTHS = (1.0, 0.6, 0.3, 0.1, 0.02)  # of one of them
_STALLED = 4  # steps in a row that do not lower the gap
_REFINED = 3  # times that the search for the best W goes on where no step is found
_FAR = 100.0  # times the tolerance: an estimate of the gap beyond which another step is due
_MOST_ROWS = 2048  # of a task: K is as wide
_TINY = 1e-250


class _RowRoom(_Room):
    """A room with the rows of a loss."""

    def __init__(
        self,
        matrices: int,
        rows: int,
        tasks: int,
        width: int,
        device: Any,
        basis: int,
        formula: TensorFormula,
        entries: bool,
    ) -> None:
        super().__init__(matrices, rows, tasks, width, device)
        shape = {"dtype": torch.float64, "device": device}
        self.formula, self.entries, self.owner = formula, entries, None
        #: of each row: root of its weight and the inverse, the offset, ends of the slope; of each feature its l1
        self.root, self.inverse, self.offset, self.low, self.high = torch.zeros((5, tasks, rows), **shape)
        self.real, self.mu = torch.zeros((tasks, rows), **shape), torch.ones((), **shape)
        self.l1, self.u = torch.zeros(width, **shape), torch.zeros((tasks, rows, basis), **shape)
        # where the search for the best W begins
        self.r, self.b = self.y.clone(), torch.zeros((tasks, basis), **shape)
        self.lengths = torch.tensor(_LENGTHS, **shape)

    def _slopes(self, v: Any) -> tuple[Any, Any]:
        """Minus the derivative of the loss, and its second derivative, in v."""
        z = v * self.inverse + self.offset
        slope, second = self.formula.slopes(self.y, z, self.low, self.high, self.mu)
        return self.root * slope, self.real * second

    def _losses(self, v: Any) -> Any:
        """The loss of each task, at one v or at several."""
        z, weight = v * self.inverse + self.offset, self.root * self.root
        return (weight * self.formula.value(self.y, z, self.low, self.high, self.mu)).sum(dim=-1)

    def _length(self, a: Any, before: tuple[Any, Any], after: tuple[Any, Any]) -> Any:
        """How far to go in each task between two points, (c', v) each: to where Phi is least, of a few lengths."""
        (c, v), (other, there) = before, after
        c_step, v_step = other - c, there - v
        s = self.lengths[:, None]
        squares = [(a * one * two).sum(dim=1) for one, two in ((c, c), (c, c_step), (c_step, c_step))]
        value = self._losses(v + s[:, :, None] * v_step) + 0.5 * squares[0] + s * squares[1] + 0.5 * s * s * squares[2]
        if self.entries:
            value = value + (a * self.l1 * (c + s[:, :, None] * c_step).abs()).sum(dim=2)
        return self.lengths[value.nan_to_num(torch.inf).argmin(dim=0)][:, None]

    def _soft(self, c: Any) -> Any:
        return torch.sign(c) * (c.abs() - self.l1).clamp(min=0.0) if self.entries else c

    def _evaluate(self, slot: Any) -> None:
        x, a, u = self.x, slot.a, self.u
        r, b = self.r, self.b
        c = _times(x, r)  # (tasks, columns)
        v = self._scores(a * self._soft(c), b)
        worst = torch.zeros((), dtype=torch.int32, device=x.device)
        for _ in range(self.formula.n_inner):
            slope, second = self._slopes(v)
            w, g = second.sqrt(), slope + second * v
            part, share = _times(x, g), a
            if self.entries:
                inside = (c.abs() > self.l1).to(a.dtype)
                part, share = part - self.l1 * torch.sign(c), a * inside
            scaled = x * w[:, :, None]
            outer = (scaled * (share[:, None, :] if self.entries else share)) @ scaled.mT
            outer.diagonal(dim1=1, dim2=2).add_(1.0)
            factor, info = torch.linalg.cholesky_ex(outer)
            worst = torch.maximum(worst, info.max())
            right = torch.cat([(w * _combine(x, share * part))[:, :, None], w[:, :, None] * u], dim=2)
            half = torch.linalg.solve_triangular(factor, right, upper=False)
            found = torch.linalg.solve_triangular(factor.mT, half, upper=True)
            m = found[:, :, 0]
            if u.shape[2]:  # U'(g - w m) = 0
                pull = ((g - w * m)[:, None, :] @ u)[:, 0]
                steep = half[:, :, 1:].mT @ half[:, :, 1:]
                room = steep.diagonal(dim1=1, dim2=2)
                held = room <= 1e-12  # no row of the task says anything about it
                steep.diagonal(dim1=1, dim2=2).add_(held.to(a.dtype) + 1e-13 * room)
                level = torch.where(held, b, torch.linalg.solve_ex(steep, pull)[0])
                m = m + (found[:, :, 1:] @ level[:, :, None])[:, :, 0]
            else:
                level = b
            step = g - w * m - r
            ahead = _times(x, r + step)
            after = self._soft(ahead), self._scores(a * self._soft(ahead), level)
            far = self._length(a, (self._soft(c), v), after)
            r, b = r + far * step, b + far * (level - b)
            c = _times(x, r)
            rows = a * self._soft(c)  # W, (tasks, columns)
            v = self._scores(rows, b)
        slot.v, slot.r, slot.b, slot.w, slot.factor = v, r, b, w, factor
        if u.shape[2]:
            slot.explained = _orthonormal(half[:, :, 1:])
        slot.products = self._soft(c).mT.contiguous()
        self._report(slot, rows, worst)

    def _scores(self, rows: Any, b: Any) -> Any:
        """``X W + U b``."""
        v = _combine(self.x, rows)
        return v + (self.u @ b[:, :, None])[:, :, 0] if self.u.shape[2] else v

    def _report(self, slot: Any, rows: Any, worst: Any) -> None:
        """What `_Facts` has to know, with Phi of this loss, and a gap as if the loss were squared: no more than an
        estimate."""
        a, lam = slot.a, self.lam
        slot.sizes = sizes = torch.linalg.vector_norm(slot.products, dim=1)
        active = a > 0.0
        slot.mask = ((active | (sizes > lam)) & (sizes > 0.0)).to(torch.float64)
        slot.rank = slot.mask * torch.where(active, torch.inf, sizes / lam).nan_to_num()
        rest, weights = 1.0 - self.ridge * a, a * sizes * sizes
        terms = [lam * lam * a / rest, a * weights, weights * rest, lam * a * sizes, slot.mask, active, weights]
        *sums, curved = torch.stack(terms).sum(dim=1).unbind()
        value = 2.0 * self._losses(slot.v).sum() + curved
        if self.entries:
            value = value + 2.0 * (rows.abs() * self.l1).sum()
        square, polar = (slot.r * slot.r).sum(), (sizes * rest / lam).max()
        slot.found = torch.stack([*sums, value, square, polar, worst.to(torch.float64)])

    def system(self, slot: Any, chosen: Any, u: Any) -> Any:
        whitened = torch.linalg.solve_triangular(
            slot.factor, self.x[:, :, chosen] * slot.w[:, :, None], upper=False
        )
        if self.u.shape[2]:
            whitened = whitened - slot.explained @ (slot.explained.mT @ whitened)
        z = (whitened * u.T[:, None, :]).reshape(-1, len(chosen))
        return z.T @ z


def _orthonormal(columns: Any) -> Any:
    """A basis of what a few columns of each task span; 0 for those that are 0."""
    sizes = torch.linalg.vector_norm(columns, dim=1, keepdim=True)
    columns = columns / torch.where(sizes > 1e-100, sizes, torch.ones_like(sizes))
    if columns.shape[2] == 1:
        return columns
    inner = columns.mT @ columns
    inner.diagonal(dim1=1, dim2=2).add_(1e-12)
    return torch.linalg.solve_triangular(torch.linalg.cholesky_ex(inner)[0], columns.mT, upper=False).mT


class _RowRooms(_Rooms):
    """The same of these rooms."""

    _kept: dict[Any, list[_Rooms]] = {}  # noqa: RUF012

    def of(self, count: int) -> Any:
        width = _width(count)
        if width not in self._rooms:
            key: Any = self.key
            matrices, rows, tasks, device, basis, formula, entries = key
            self._rooms[width] = _RowRoom(matrices, rows, tasks, width, device, basis, formula, entries)
        return self._rooms[width]


class DeviceRowNewton(DeviceNewton):
    """Keeps the columns of one path, the rows of its loss, and where it stands."""

    dampings = (0.0, 1e-2, 1.0)
    halvings = 5

    @staticmethod
    def serves(loss: Any, penalty: Any) -> bool:
        """Whether loss and penalty are known here."""
        if not is_sparse_group(penalty) or penalty.positive or penalty.coupling is not None:
            return False
        return loss.tensor_formula is not None and penalty.group_ratio > 0.0

    def __init__(self, packed: PackedColumns, device: Any, loss: Any, entries: bool) -> None:
        super().__init__(packed, device)
        formula = loss.tensor_formula
        assert formula is not None
        self._squared = loss.squared
        basis = packed.design.nuisance_basis[:0] if self._squared else packed.design.nuisance_basis
        key: Any = (self._matrices, self._rows, packed.n_tasks, device, len(basis), formula, entries)
        self._key, self._entries = key, entries
        self._stands: tuple[Any, Any] | None = None
        self._read(loss, basis)

    def _read(self, loss: Any, basis: Array) -> None:
        """The rows of the loss, padded, on the device."""
        design, tasks = self._packed.design, self._packed.n_tasks
        flat, count = self._flat, design.n_samples
        names = ("labels", "root", "inverse", "offset", "low", "high", "real", "v", "r")
        ends = np.zeros(count)
        if self._squared:
            given = [loss.target, ends + 1.0, ends + 1.0, ends, ends - np.inf, ends + np.inf, ends + 1.0, ends]
            given.append(loss.target)
            self._mu = 1.0
        else:
            root, null = loss._root, loss.null
            alive = design.per_sample(design.task_sums(np.abs(null.residual)) > 0.0) & (root > 0.0)
            root = np.where(alive, root, 0.0)
            inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
            offset = ends if loss._offset is None else loss._offset
            low, high = loss.of.domain(loss._y)
            start = root * (null.margin - offset)
            given = [loss._y, root, inverse, offset, ends + low, ends + high, alive * 1.0, start, null.residual]
            self._mu = 1.0 / float(loss.of.smoothness) if np.isfinite(loss.of.smoothness) else 1.0
        stacked = np.concatenate([np.stack(given), basis])
        padded = torch.zeros((len(stacked), tasks * self._rows), dtype=torch.float64, device=self._device)
        padded[:, flat] = torch.from_numpy(stacked).to(self._device)
        padded = padded.reshape(len(stacked), tasks, self._rows)
        self._given = dict(zip(names, padded[: len(names)], strict=True))
        self._given["u"] = padded[len(names) :].permute(1, 2, 0).contiguous() * self._given["real"][:, :, None]

    def fits(self, count: int) -> bool:
        return self._rows <= _MOST_ROWS and super().fits(max(count, self._rows))

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        """As `DeviceNewton.solve`."""
        rooms = _RowRooms.borrow(self._key)
        try:
            return self._solve_in(rooms.of(len(problem.positions)), problem, start, tol, max_iter)
        finally:
            rooms.give_back()

    def _enter(self, room: Any, problem: WorkingProblem, start: Array) -> None:
        """Columns, strengths and the start into a room; the rows of the loss where others were there before."""
        self._send()
        count, penalty = len(problem.positions), problem.penalty
        group, l1 = penalty.thresholds()
        ridge, sizes = float(penalty.ridge), row_norms(start)
        sent = np.zeros((4, room.width))
        sent[1] = 1.0
        sent[0, :count], sent[1, :count] = problem.positions, group
        sent[2, :count] = sizes / np.maximum(group + ridge * sizes, _TINY)
        if l1 is not None:
            sent[3, :count] = l1
        here = torch.from_numpy(sent).to(self._device)
        room.x[:, :, :count] = self._columns[:, :, here[0, :count].to(torch.int64)]
        room.x[:, :, count:] = 0.0
        room.lam.copy_(here[1])
        room.l1.copy_(here[3])
        room.ridge.fill_(ridge)
        room.slots[0].a.copy_(here[2])
        if room.owner is not self:
            given, room.owner = self._given, self
            for name in ("root", "inverse", "offset", "low", "high", "real", "u"):
                getattr(room, name).copy_(given[name])
            room.y.copy_(given["labels"])
            room.mu.fill_(self._mu)
        if self._stands is None:
            given = self._given
            self._stands = given["r"], (given["v"][:, :, None] * given["u"]).sum(dim=1)
        self._begin_at(room, *self._stands)

    @staticmethod
    def _begin_at(room: Any, r: Any, b: Any) -> None:
        room.r.copy_(r)
        room.b.copy_(b)

    def _solve_in(
        self, room: Any, problem: WorkingProblem, start: Array, tol: float, max_iter: int
    ) -> Solution:
        self._enter(room, problem, start)
        ridge = float(problem.penalty.ridge)
        now, other = room.slots
        room.evaluate(now)
        facts = _Facts(now.found.tolist(), ridge)
        if not facts.sound:
            return Solution(start, 0, np.inf)
        best = self._judged(now, problem, 0) if not facts.count else Solution(start, 0, np.inf)
        steps = stalled = refined = 0
        passed = False
        while best.gap > tol and steps < max_iter and stalled < _STALLED and facts.count:
            self._begin_at(room, now.r, now.b)
            following = self._step(room, now, other, facts, ridge)
            steps += 1
            if following is None:  # what looks like a rise of Phi may be coefficients that are not yet the best
                if refined == _REFINED:
                    break
                refined += 1
                self._begin_at(room, now.r, now.b)
                room.evaluate(now)
                facts = _Facts(now.found.tolist(), ridge)
            else:
                now, other, facts = other, now, following
                if facts.gap > _FAR * tol and not passed:  # by far: not worth a look
                    passed = True
                    continue
            passed = False
            found = self._judged(now, problem, steps)
            stalled = stalled + 1 if found.gap > 0.9 * best.gap else 0
            best = found if found.gap < best.gap else best
        self._stands = now.r.clone(), now.b.clone()
        best.n_iter = steps
        return best

    @staticmethod
    def _judged(slot: _Slot, problem: WorkingProblem, steps: int) -> Solution:
        """The rows of a point, and what the loss says about them."""
        count = len(problem.positions)
        rows = (slot.a[:count, None] * slot.products[:count]).cpu().numpy()
        at = problem.evaluate(rows, problem.nuisance)
        if not np.isfinite(at.value):
            return Solution(rows, steps, np.inf)
        products = problem.correlate(at.residual)
        gap, _ = problem.gap(rows, at, products)
        return Solution(rows, steps, gap, at, products)
