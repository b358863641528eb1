"""Variational Newton (`newton`) on a device: the same program in torch, all in double precision.

Tasks are padded to the longest, and columns to one of a few widths, so that one batched call serves all tasks and the
same calls serve all values: a row of zeros adds 1 to the diagonal of K and nothing else, a column of zeros nothing at
all. The linear algebra is in the form that is smaller (`newton_forms`): as large as the tasks have rows, or as there
are features in play. On a GPU each of the two halves of a step, a direction and the point that it leads to, is one
recorded graph of kernels; a step then waits for the device once.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from ..design import PackedColumns
from ..penalties import row_norms
from .newton import DAMPING, gap_of_sums
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_JITTER = 1e-13  # of M's mean diagonal
_PIVOTS = 20  # rounds of deciding which rows sit at their bound
_STALLED = 20
_MOST_RECORDED = 1 << 28  # bytes of columns, for which graphs are kept


def _width(count: int) -> int:
    """Columns of a room for so many, one of them a spare."""
    if count < 256:
        return max(64, 1 << count.bit_length())
    return (count // 256 + 1) * 256


class _Slot:
    """Phi and everything that belongs to it at one vector a, where a graph leaves it."""

    def __init__(self, width: int, device: Any) -> None:
        self.a = torch.zeros(width, dtype=torch.float64, device=device)
        self.factor: Any = None
        self.residual: Any = None
        self.products: Any = None
        self.sizes: Any = None
        self.mask: Any = None
        self.rank: Any = None
        self.found: Any = None
        self.graph: Any = None
        self.directions: dict[int, _Direction] = {}


class _Direction:
    """A direction from a slot, over so many rows, and what it was made of."""

    def __init__(self) -> None:
        self.graph: Any = None
        self.chosen: Any = None
        self.m: Any = None
        self.right: Any = None
        self.lower: Any = None
        self.size: Any = None
        self.following: Any = None
        self.found: Any = None


class _Room:
    """Columns of one width and the two points that take turns."""

    def __init__(self, matrices: int, rows: int, tasks: int, width: int, device: Any) -> None:
        def numbers(*shape: int) -> Any:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        self.width, self.rows = width, rows
        self.x, self.y = numbers(matrices, rows, width), numbers(tasks, rows)
        self.lam, self.ridge = numbers(width) + 1.0, numbers()
        self.slots = (_Slot(width, device), _Slot(width, device))
        self.recording = device.type == "cuda" and self.x.numel() * 8 <= _MOST_RECORDED

    def run(self, holder: Any, work: Any) -> None:
        """Do some work that leaves its results in a holder: recorded the first time, replayed from then on. Only the
        main thread records: torch does not record in several threads at once."""
        if not self.recording or (holder.graph is None and threading.current_thread() is not threading.main_thread()):
            work()
            return
        if holder.graph is None:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):  # libraries allocate what they need
                work()
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    work()
            except RuntimeError:  # a library that cannot be recorded: the same calls, one by one
                self.recording = False
                work()
                return
            holder.graph = graph
        holder.graph.replay()

    # -- one point ------------------------------------------------------------------------------------------------

    def evaluate(self, slot: _Slot) -> None:
        self.run(slot, lambda: self._evaluate(slot))

    def _evaluate(self, slot: _Slot) -> None:
        x, y, a, lam, ridge = self.x, self.y, slot.a, self.lam, self.ridge
        if self.width < self.rows:  # B = I + D G D
            scaled = x * a.sqrt()
            inner = scaled.mT @ scaled
            inner.diagonal(dim1=1, dim2=2).add_(1.0)
            slot.factor, info = torch.linalg.cholesky_ex(inner)
            slot.residual = y - _combine(scaled, _solve(slot.factor, _times(scaled, y)))
        else:  # K = I + X diag(a) X'
            outer = (x * a) @ x.mT
            outer.diagonal(dim1=1, dim2=2).add_(1.0)
            slot.factor, info = torch.linalg.cholesky_ex(outer)
            slot.residual = _solve(slot.factor, y)
        slot.products = _times(x, slot.residual).mT.contiguous()  # (columns, tasks)
        slot.sizes = sizes = torch.linalg.vector_norm(slot.products, dim=1)
        active = a > 0.0
        slot.mask = ((active | (sizes > lam)) & (sizes > 0.0)).to(torch.float64)
        # first the rows that are not zero, then the strongest of those that come in
        slot.rank = slot.mask * torch.where(active, torch.inf, sizes / lam).nan_to_num()
        rest, weights = 1.0 - ridge * a, a * sizes * sizes
        terms = [lam * lam * a / rest, a * weights, weights * rest, lam * a * sizes, slot.mask, active]
        along, square = (slot.residual * y).sum(), (slot.residual * slot.residual).sum()
        sums, ends = torch.stack(terms).sum(dim=1), torch.stack([along, square, (sizes * rest / lam).max()])
        slot.found = torch.cat([sums, ends, info.max().to(torch.float64)[None]])

    # -- one direction --------------------------------------------------------------------------------------------

    def direct(self, slot: _Slot, count: int) -> _Direction:
        """The secular form's direction over the rows that may move, at most `count`, and the point it leads to."""
        found = slot.directions.setdefault(count, _Direction())
        self.run(found, lambda: self._direct(slot, count, found))
        return found

    def _direct(self, slot: _Slot, count: int, out: _Direction) -> None:
        order = torch.argsort(slot.rank, descending=True, stable=True)
        out.chosen = chosen = order[:count]
        inside = slot.mask[chosen]
        out.size = size = torch.where(inside > 0.0, slot.sizes[chosen], torch.ones_like(inside))
        a, strength = slot.a[chosen], self.lam[chosen]
        # rows that only fill the room up: an identity of their own
        out.m = m = self.system(slot, chosen, slot.products[chosen] * (inside / size)[:, None])
        out.right = inside * size * (size * (1.0 - self.ridge * a) / strength - 1.0)
        out.lower = -inside * a * size
        m.diagonal().add_(inside * self.ridge * size / strength)
        m.diagonal().add_(_JITTER * m.diagonal().sum() / inside.sum().clamp(min=1.0) + (1.0 - inside))
        factor, info = torch.linalg.cholesky_ex(m)
        v = torch.cholesky_solve(out.right[:, None], factor)[:, 0]
        # rows below their bound stay at it, and the others are solved for once more: a direction need not be exact
        v, again = _with_fixed(m, out.right, out.lower, ~(v >= out.lower))
        out.following, decrease = self.follow(slot, out, torch.maximum(v, out.lower), 1.0)
        out.found = torch.stack([torch.maximum(info, again).to(torch.float64), decrease])

    def follow(self, slot: _Slot, along: _Direction, v: Any, step: float) -> tuple[Any, Any]:
        """The point at the end of a step, and how much Phi should fall."""
        direction = torch.zeros_like(slot.a).index_copy(0, along.chosen, v / along.size)
        direction = torch.where((slot.a > 0.0) & (slot.sizes == 0.0), -slot.a, direction)
        slope = 0.5 * ((self.lam / (1.0 - self.ridge * slot.a)) ** 2 - slot.sizes**2)
        a = slot.a + step * direction
        a = torch.where(a <= 1e-12 * slot.a, torch.zeros_like(a), a)
        # a < 1/ridge is the domain of Phi
        a = torch.where(self.ridge > 0.0, torch.minimum(a, 0.5 * (slot.a + 1.0 / self.ridge)), a)
        return a, slope @ direction

    def system(self, slot: _Slot, chosen: Any, u: Any) -> Any:
        """``M = sum_t (u_t u_t') o X_t' K_t^-1 X_t`` on some columns."""
        own = self.x[:, :, chosen]
        if self.width >= self.rows:
            whitened = torch.linalg.solve_triangular(slot.factor, own, upper=False)
            if len(whitened) == 1:  # one matrix for all tasks
                return (whitened[0].T @ whitened[0]) * (u @ u.T)
            z = (whitened * u.T[:, None, :]).reshape(-1, len(chosen))
            return z.T @ z
        # X'K^-1X = G - G D B^-1 D G, B of all columns in play
        cross = torch.linalg.solve_triangular(slot.factor, (self.x * slot.a.sqrt()).mT @ own, upper=False)
        inside = own.mT @ own - cross.mT @ cross
        if len(inside) == 1:
            return inside[0] * (u @ u.T)
        return (inside * (u.T[:, :, None] * u.T[:, None, :])).sum(dim=0)


class _Rooms:
    """Rooms of one shape of data; those of the last path are kept for the next, with their graphs."""

    _kept: dict[Any, list[_Rooms]] = {}  # noqa: RUF012
    _lock = threading.Lock()

    def __init__(self, key: tuple[int, int, int, Any]) -> None:
        self.key = key
        self._rooms: dict[int, _Room] = {}

    @classmethod
    def borrow(cls, key: tuple[int, int, int, Any]) -> _Rooms:
        with cls._lock:
            kept = cls._kept.get(key)
            return kept.pop() if kept else cls(key)

    def give_back(self) -> None:
        with self._lock:
            if self.key not in self._kept:
                self._kept.clear()  # of another shape
            self._kept.setdefault(self.key, []).append(self)

    def of(self, count: int) -> _Room:
        width = _width(count)
        if width not in self._rooms:
            matrices, rows, tasks, device = self.key
            self._rooms[width] = _Room(matrices, rows, tasks, width, device)
        return self._rooms[width]


class _Facts:
    """What the host has to know of a point."""

    def __init__(self, found: list[float], ridge: float) -> None:
        strength, ridged, inner, norm, count, active, along, residual2, polar, failed = found
        self.count, self.active = int(count), int(active)
        self.value = 0.5 * (along + strength)
        self.sound = not failed and bool(np.isfinite(self.value))
        self.gap = gap_of_sums(residual2 + ridge * ridged, inner, norm, polar)


class DeviceNewton:
    """Keeps the columns of one path on the device as they come into play."""

    name = "newton"
    needs = Needs(losses=("squared",), plain=True, packed=True)
    #: of M's mean diagonal, where a step fails, and how often it is halved
    dampings: tuple[float, ...] = (0.0, *DAMPING)
    halvings = 30

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

    def _send(self) -> None:
        """Columns that came into play since the last call."""
        packed = self._packed
        if self._layout != packed.layout:
            self._layout, self._known = packed.layout, 0
        total = packed.x.shape[1]
        if total <= self._known:
            return
        if total > self._columns.shape[2]:
            room = max(total, 2 * self._columns.shape[2])
            grown = torch.zeros((self._matrices, self._rows, room), dtype=torch.float64, device=self._device)
            grown[:, :, : self._known] = self._columns[:, :, : self._known]
            self._columns = grown
        fresh = torch.from_numpy(packed.x[:, self._known : total].T.copy()).to(self._device).T
        if self._matrices == 1:
            self._columns[0, :, self._known : total] = fresh
        else:
            self._columns.view(self._matrices * self._rows, -1)[self._flat, self._known : total] = fresh
        self._known = total

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        """As `VariationalNewton.solve`; a gap of infinity says that the device stalled."""
        rooms = _Rooms.borrow((self._matrices, self._rows, self._packed.n_tasks, self._device))
        try:
            return self._solve_in(rooms.of(len(problem.positions)), problem, start, tol, max_iter)
        finally:
            rooms.give_back()

    def _solve_in(
        self, room: _Room, problem: WorkingProblem, start: Array, tol: float, max_iter: int
    ) -> Solution:
        self._send()
        if problem.loss.target is not self._target[0]:
            padded = torch.zeros(self._packed.n_tasks * self._rows, dtype=torch.float64, device=self._device)
            padded[self._flat] = torch.from_numpy(problem.loss.target).to(self._device)
            self._target = problem.loss.target, padded.reshape(self._packed.n_tasks, self._rows)
        count, penalty = len(problem.positions), problem.penalty
        ridge, sizes = float(penalty.ridge), row_norms(start)
        # one message: positions, strengths and the start
        sent = np.zeros((3, room.width))
        sent[1] = 1.0
        sent[0, :count], sent[1, :count] = problem.positions, penalty.group_form()
        sent[2, :count] = sizes / (penalty.group_form() + ridge * sizes)
        here = torch.from_numpy(sent).to(self._device)
        room.x[:, :, :count] = self._columns[:, :, here[0, :count].to(torch.int64)]
        room.x[:, :, count:] = 0.0
        room.y.copy_(self._target[1])
        room.lam.copy_(here[1])
        room.ridge.fill_(ridge)
        now, other = room.slots
        now.a.copy_(here[2])
        room.evaluate(now)
        facts = _Facts(now.found.tolist(), ridge)
        if not facts.sound:
            return Solution(start, 0, np.inf)
        steps, least, stalled = 0, facts.gap, 0
        while facts.gap > tol and steps < max_iter and stalled < _STALLED and facts.count:
            following = self._step(room, now, other, facts, ridge)
            steps += 1
            if following is None:  # rounding has been reached
                break
            now, other, facts = other, now, following
            stalled = stalled + 1 if facts.gap > 0.999 * least else 0
            least = min(facts.gap, least)
        rows = (now.a[:count, None] * now.products[:count]).cpu().numpy()
        return Solution(rows, steps, facts.gap)

    def _step(self, room: _Room, now: _Slot, other: _Slot, facts: _Facts, ridge: float) -> _Facts | None:
        """One step: the full one in the secular form, or else shorter ones, or damped ones."""
        most = min(facts.count, facts.active + max(100, facts.active))  # the rest waits: too many would fill M
        along = room.direct(now, min(_width(most - 1), room.width))
        other.a.copy_(along.following)
        room.evaluate(other)
        both = torch.cat([along.found, other.found]).tolist()
        failed, decrease = both[:2]
        slack = 1e-13 * abs(facts.value)
        if not failed and decrease <= slack:
            following = _Facts(both[2:], ridge)
            if following.sound and following.value <= facts.value + 1e-4 * decrease + slack:
                return following
        for damping in self.dampings:
            v = self._bounded(room, now, along, damping)
            found = None if v is None else self._search(room, now, other, facts, along, v, ridge)
            if found is not None:
                return found
        return None

    def _search(
        self, room: _Room, now: _Slot, other: _Slot, facts: _Facts, along: _Direction, v: Any, ridge: float
    ) -> _Facts | None:
        """Backtracking on Phi."""
        step, slack = 1.0, 1e-13 * abs(facts.value)
        for _ in range(self.halvings):
            a, fall = room.follow(now, along, v, step)
            other.a.copy_(a)
            room.evaluate(other)
            decrease, *found = torch.cat([fall[None], other.found]).tolist()
            if not decrease <= slack:
                return None
            following = _Facts(found, ridge)
            if following.sound and following.value <= facts.value + 1e-4 * step * decrease + slack:
                return following
            step *= 0.5
        return None

    def _bounded(self, room: _Room, now: _Slot, along: _Direction, damping: float) -> Any:
        """``argmin 1/2 v'Mv - b'v`` over ``v >= lower``: rows at their bound are left out of the factor."""
        m, right, lower = along.m, along.right, along.lower
        if damping:  # the plain form, bent towards steepest descent
            size, a, strength = along.size, now.a[along.chosen], room.lam[along.chosen]
            inside = now.mask[along.chosen]
            rest = strength / (1.0 - room.ridge * a)
            plain = room.ridge * ((rest / size) ** 2 / (1.0 - room.ridge * a) - size / strength)
            m = m.clone()
            m.diagonal().add_(inside * plain)
            m.diagonal().add_(damping * m.diagonal().mean())
            right = inside * 0.5 * (size - rest) * (size + rest) / size
        fixed = torch.zeros_like(right, dtype=torch.bool)
        for attempt in range(_PIVOTS):
            v, info = _with_fixed(m, right, lower, fixed)
            release = fixed & (right - m @ v > 0.0) if attempt < _PIVOTS // 2 else torch.zeros_like(fixed)
            below = ~fixed & (v < lower)
            counts = torch.stack([below.sum(), release.sum(), info]).tolist()
            if counts[2]:
                return None
            if not counts[0] and not counts[1]:
                break
            fixed = (fixed & ~release) | below
        return torch.maximum(v, lower)


def _with_fixed(m: Any, right: Any, lower: Any, fixed: Any) -> tuple[Any, Any]:
    """``M v = b`` over the rows that are not fixed, the others being at their bound, and whether that failed."""
    free = (~fixed).to(m.dtype)
    held = torch.where(fixed, lower, torch.zeros_like(lower))
    masked = m * free[:, None] * free[None, :]
    masked.diagonal().add_(fixed.to(masked.dtype))
    factor, info = torch.linalg.cholesky_ex(masked)
    return torch.cholesky_solve(((right - m @ held) * free)[:, None], factor)[:, 0] + held, info


def _times(x: Any, vectors: Any) -> Any:
    """``x_t' v_t``: (tasks, columns), one matrix for all tasks or one each."""
    return vectors @ x[0] if len(x) == 1 else (vectors[:, None, :] @ x)[:, 0]


def _combine(x: Any, rows: Any) -> Any:
    """``x_t w_t`` for rows (tasks, columns): (tasks, rows)."""
    return rows @ x[0].T if len(x) == 1 else (x @ rows[:, :, None])[:, :, 0]


def _solve(factor: Any, right: Any) -> Any:
    """``(L L')^-1 b_t``: (tasks, size). By two substitutions, which can be recorded."""
    wide = right.mT if len(factor) == 1 else right[:, :, None]
    half = torch.linalg.solve_triangular(factor, wide, upper=False)
    whole = torch.linalg.solve_triangular(factor.mT, half, upper=True)
    return whole[0].mT if len(factor) == 1 else whole[:, :, 0]
