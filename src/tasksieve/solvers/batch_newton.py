"""Variational Newton (`newton`) on a device for several problems at once: the same X, each with its own training rows.

Every array carries the problems as its first axis P. Held-out rows stay in place with weight 0: columns are 0 there, so
such a row adds 1 to the diagonal of K and nothing else. Columns of the working sets are gathered where X lies, centred
and weighted there; a column past the end of a working set is zero. One call of a library serves all problems and tasks,
and a problem whose step would not lower its Phi keeps its point, and takes a damped one in the plain form next time.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable
from typing import Any

import torch

from ..design.device import triton_kernels
from .recorded import Recorded

_JITTER = 1e-6  # of M's mean diagonal, which is held in single precision
_BORDER = 1e30  # more than the square of any L^-1 b
_FIRST_DAMPING, _MORE_DAMPING = 1e-6, 100.0  # of M's mean diagonal, where a step did not lower Phi; then times this


class _Room:
    """Working sets of one width, and what belongs to their point: views of memory that serves several widths."""

    def __init__(
        self, memory: Recorded, problems: int, matrices: int, n: int, tasks: int, depth: int, width: int
    ) -> None:
        most = _capacity(width)

        def numbers(name: str, *shape: int, room: int) -> Any:
            flat = memory.numbers(f"{name} {most}", room)
            return flat[: math.prod(shape)].view(shape)

        small = min(width, n)
        self.columns = numbers("columns", problems, matrices, n, width, room=problems * matrices * n * most)
        self.lam, self.a, self.sizes, self.lengths = (
            numbers(name, problems, width, room=problems * most) for name in ("lam", "a", "sizes", "lengths")
        )
        self.damping = numbers("damping", problems, room=problems)
        self.value = numbers("value", problems, room=problems)
        # the inverse of the factor of K or of B, whichever is smaller; residuals' products with the columns
        large = min(most, n)
        self.inverse = numbers("inverse", problems, matrices, small, small, room=problems * matrices * large * large)
        self.eye = memory.numbers(f"eye {most}", large, large).fill_diagonal_(1.0)[:small, :small]
        self.products = numbers("products", problems, width, tasks, room=problems * most * tasks)
        # what is given: features, strengths and a start; what the basis explains of the columns
        self.given = numbers("given", 3 * problems * width + 2 * problems, room=3 * problems * most + 2 * problems)
        self.staged = torch.empty(self.given.shape, dtype=torch.float64, pin_memory=self.given.is_cuda)
        self.loadings = numbers("loadings", problems, matrices, depth, width, room=problems * matrices * depth * most)
        self.by_matrix = numbers("by matrix", problems, matrices, width, room=problems * matrices * most)
        # what was found: rows of W, their residual and sums
        self.rows = numbers("rows", problems, width, tasks, room=problems * most * tasks)
        self.residual = numbers("residual", problems, tasks, n, room=problems * tasks * n)
        self.sums = numbers("sums", 4, problems, room=4 * problems)


def _capacity(width: int) -> int:
    return max(512, 1 << (width - 1).bit_length())


class BatchNewton:
    """Problems on columns `x` (features, padded rows), whose rows are those of X in task order.

    - `rows` (int64 tensor, (matrices, n)): Where the rows of each matrix are; those that fill up have weight 0.
    - `root` (tensor, (P, matrices, n)): Roots of the weights of the training rows of each problem.
    - `labels` (tensor, (P, tasks, n)): Weighted, free of what the basis explains; 0 where the weight is.
    - `basis` (tensor, (P, matrices, n, k)): Orthonormal; what it explains is taken from the weighted columns.
    - `scale` (tensor, (features, matrices or 1) or None): What columns are divided by then.
    - `key`: Of whatever else is recorded in the same `memory`.

    One matrix for all tasks, or one for each.
    """

    def __init__(
        self, x: Any, rows: Any, root: Any, labels: Any, basis: Any, scale: Any = None, key: Hashable = None
    ) -> None:
        self._x = x
        self.problems, self.matrices, self.n = root.shape
        self.tasks, depth = labels.shape[1], basis.shape[3]
        self._one, self._depth = self.matrices == 1, depth
        place = (x.data_ptr(), tuple(x.shape), x.stride(0), x.dtype, key)
        scales = None if scale is None else tuple(scale.shape)
        shape = (*place, scales, self.problems, self.matrices, self.n, self.tasks, depth)
        self.memory = memory = Recorded.borrow(shape, x.device)
        weakref.finalize(self, memory.give_back)
        # right-hand sides of a matrix: (P, matrices, n, its tasks)
        self._y = memory.keep("y", labels.mT[:, None] if self._one else labels[..., None])
        self._rows, self._root = memory.keep("rows", rows), memory.keep("root", root)
        self._basis = memory.keep("basis", basis)
        #: as it is kept: what is recorded may read nothing else
        self.scale = None if scale is None else memory.keep("scale", scale)
        self.ridge, self.levels = memory.numbers("ridge", self.problems), memory.numbers("levels", self.problems)
        self._fused = triton_kernels.fuses_columns(x, self.n, depth) and bool((rows[:, 1:] - rows[:, :-1]).eq(1).all())
        self._room: _Room

    def bytes_of(self, width: int) -> float:
        """Of memory, for working sets of so many columns."""
        small = min(width, self.n)
        per_matrix = 3.0 * self.n * width + 3.0 * small * small + float(width) * small
        return 8.0 * self.problems * (self.matrices * per_matrix + 2.0 * width * width)

    # -- a working set --------------------------------------------------------------------------------------------

    def staging(self, width: int) -> Any:
        """Where to write working sets of a width, an array: features (P, width), with the number of features where
        there is none, their strengths, a start; then by problem its ridge, and its level, which is carried along."""
        rooms = self.memory.rooms
        if width not in rooms:
            rooms[width] = _Room(
                self.memory, self.problems, self.matrices, self.n, self.tasks, self._depth, width
            )
        return rooms[width].staged.numpy()

    def begin(self, width: int) -> None:
        """The working sets that were written."""
        self._room = room = self.memory.rooms[width]
        room.given.copy_(room.staged, non_blocking=True)
        self.memory.run(("begin", width), self._begin)

    def _begin(self) -> None:
        room = self._room
        features, lam, a = room.given[: -2 * self.problems].view(3, *room.lam.shape)
        self.ridge.copy_(room.given[-2 * self.problems : -self.problems])
        self.levels.copy_(room.given[-self.problems :])
        if self._fused:
            triton_kernels.centred_columns(
                self._x, features, self._rows, self._root, self._basis, self.scale, room.columns, room.loadings,
                room.by_matrix,
            )  # fmt: skip
        else:
            self._gather(features)
        room.lengths.copy_(room.by_matrix.amax(dim=1))
        room.damping.zero_()
        room.lam.copy_(lam)
        room.a.copy_(torch.where(features < len(self._x), a, 0.0))
        for kept, found in zip(_of_point(room), self._evaluate(room.a), strict=True):
            kept.copy_(found)

    def _gather(self, features: Any) -> None:
        """Columns of the working sets, weighted, freed of what the basis explains, and scaled."""
        room, inside = self._room, features < len(self._x)
        chosen = torch.where(inside, features, 0.0).to(torch.int64)
        raw = self._x[chosen][:, :, self._rows.flatten()]
        raw = raw.reshape(*features.shape, self.matrices, self.n).permute(0, 2, 3, 1)  # (P, matrices, n, width)
        room.columns.copy_(raw * (self._root[..., None] * inside[:, None, None, :]))
        room.loadings.zero_()
        for _ in range(2 if self._depth else 0):  # what rounding leaves of a large mean goes the second time
            explained = self._basis.mT @ room.columns
            room.columns.sub_(self._basis @ explained)
            room.loadings.add_(explained)
        if self.scale is not None:
            room.columns.div_(self.scale[chosen].mT[:, :, None, :])
        room.by_matrix.copy_(torch.linalg.vector_norm(room.columns, dim=2))

    def _evaluate(self, a: Any) -> tuple[Any, Any, Any, Any]:
        """The inverse factor of K or of B, products of the residual with the columns, their sizes by row, and Phi."""
        x, y, lam = self._room.columns, self._y, self._room.lam
        if x.shape[3] < self.n:  # B = I + D G D
            scaled = x * a.sqrt()[:, None, None, :]
            inverse, info = self._inverse_factor(scaled.mT @ scaled)
            residual = y - scaled @ (inverse.mT @ (inverse @ (scaled.mT @ y)))
        else:  # K = I + X diag(a) X'
            inverse, info = self._inverse_factor((x * a[:, None, None, :]) @ x.mT)
            residual = inverse.mT @ (inverse @ y)
        products = self._by_row(x.mT @ residual)
        sizes = torch.linalg.vector_norm(products, dim=2)
        ridge = self.ridge[:, None]
        strengths = (lam * lam * a / (1.0 - ridge * a)).sum(dim=1)
        value = 0.5 * ((residual * y).sum(dim=(1, 2, 3)) + strengths)
        value = torch.where(info.amax(dim=1) > 0, torch.inf, value)
        return inverse, products, sizes, value.nan_to_num(nan=torch.inf)

    def _inverse_factor(self, inner: Any) -> tuple[Any, Any]:
        """``L^-1``, where ``L L' = I + inner``."""
        eye = self._room.eye
        factor, info = torch.linalg.cholesky_ex(inner + eye)
        return torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False), info

    def _by_row(self, products: Any) -> Any:
        """(P, matrices, width, right-hand sides) -> (P, width, tasks)."""
        return products[:, 0] if self._one else products[..., 0].mT

    def _by_matrix(self, rows: Any) -> Any:
        """The other way round."""
        return rows[:, None] if self._one else rows.mT[..., None]

    # -- a step ---------------------------------------------------------------------------------------------------

    def step(self, count: int, again: bool = True) -> None:
        """Newton's step over at most so many rows of each problem: those that are not zero, then the strongest. Where
        rows turn zero the system is solved `again` without these, or they are cut off there."""
        self.memory.run(("step", self._room.lam.shape[1], count, again), lambda: self._step(count, again))

    def _step(self, count: int, again: bool) -> None:
        room, ridge = self._room, self.ridge[:, None]
        a, sizes, lam = room.a, room.sizes, room.lam
        rank = torch.where(a > 0.0, torch.inf, torch.where(sizes > lam, sizes / lam, -1.0))
        rank, chosen = rank.sort(dim=1, descending=True, stable=True)
        chosen, inside = chosen[:, :count], (rank[:, :count] > 0.0) & (sizes.gather(1, chosen[:, :count]) > 0.0)
        own, strength = a.gather(1, chosen), lam.gather(1, chosen)
        size = torch.where(inside, sizes.gather(1, chosen), 1.0)
        live = inside.to(torch.float64)
        m = self._system(chosen, live / size)
        diagonal = m.diagonal(dim1=1, dim2=2)
        damping, rest = room.damping[:, None], strength / (1.0 - ridge * own)
        damped = damping > 0.0
        more = torch.where(damped, (rest / size) ** 2 / (1.0 - ridge * own), size / strength)
        diagonal.add_((live * ridge * more).to(m.dtype))
        mean = (live * diagonal).sum(dim=1, keepdim=True) / live.sum(dim=1, keepdim=True).clamp(min=1.0)
        diagonal.add_((1.0 - live + (_JITTER + damping) * mean).to(m.dtype))  # rows that fill up: an identity
        right = torch.where(damped, 0.5 * (size - rest) * (size + rest) / size, size * (size / rest - 1.0))
        right, lower = (live * right).to(m.dtype), (-live * own * size).to(m.dtype)
        v, failed = _bounded(m, right, lower, again)
        v = v.to(torch.float64)
        direction = torch.zeros_like(a).scatter_(1, chosen, live * v / size)
        direction = torch.where((a > 0.0) & (sizes == 0.0), -a, direction)
        following = a + direction
        following = torch.where(following <= 1e-12 * a, 0.0, following)
        # a < 1/ridge is the domain of Phi
        following = torch.where(ridge > 0.0, torch.minimum(following, 0.5 * (a + 1.0 / ridge)), following)
        there = self._evaluate(following)
        lower_phi = ~failed & (there[-1] <= room.value + 1e-13 * room.value.abs())
        less, more = room.damping / _MORE_DAMPING, (_MORE_DAMPING * room.damping).clamp(min=_FIRST_DAMPING)
        # a step that leads nowhere, with rows at their bounds that hinder each other, is no better than one uphill
        onward = lower_phi & (there[-1] < room.value - 1e-13 * room.value.abs())
        room.damping.copy_(torch.where(onward, torch.where(less < _FIRST_DAMPING, 0.0, less), more))
        for kept, found in zip((a, *_of_point(room)), (following, *there), strict=True):
            kept.copy_(torch.where(lower_phi.reshape((-1,) + (1,) * (kept.dim() - 1)), found, kept))

    def _system(self, chosen: Any, factor: Any) -> Any:
        """``M = sum_t (u_t u_t') o X_t' K_t^-1 X_t`` of some columns, in single precision."""
        room, x = self._room, self._room.columns
        u = room.products.gather(1, chosen[:, :, None].expand(-1, -1, self.tasks)) * factor[:, :, None]
        own = x.gather(3, chosen[:, None, None, :].expand(-1, *x.shape[1:3], -1))
        if x.shape[3] >= self.n:
            if self._one:
                flat = room.inverse[:, 0].to(torch.float32) @ own[:, 0].to(torch.float32)
                return (flat.mT @ flat) * (u @ u.mT).to(torch.float32)
            z = (room.inverse.to(torch.float32) @ (own * u.mT[:, :, None, :]).to(torch.float32)).flatten(1, 2)
            return z.mT @ z
        # X'K^-1X = G - G D B^-1 D G, B of all columns in play
        cross = room.inverse @ ((x * room.a.sqrt()[:, None, None, :]).mT @ own)
        within = own.mT @ own - cross.mT @ cross
        if self._one:
            return (within[:, 0] * (u @ u.mT)).to(torch.float32)
        return (within * (u.mT[:, :, :, None] * u.mT[:, :, None, :])).sum(dim=1).to(torch.float32)

    # -- what was found -------------------------------------------------------------------------------------------

    def offsets(self, rows: Any) -> Any:
        """What the first column of the basis takes of the scores of rows of W, (P, tasks)."""
        taken = self._room.loadings[:, :, 0]
        return (taken[:, 0, :, None] * rows).sum(dim=1) if self._one else (taken * rows.mT).sum(dim=2)

    def find(self, rounding: float) -> None:
        """Of the point: rows of W (`rows`, (P, width, tasks)), their `residual` (P, tasks, n), orthogonal to the basis,
        and `sums`: problem by problem the square of the residual (that of the ridge included), its product with the
        fit, the penalty, and a bound of the largest gauge.
        Products are off by at most `rounding` times the lengths of column and residual."""
        room, columns = self._room, self._room.columns
        room.rows.copy_(room.a[:, :, None] * room.products)
        rows = room.rows
        residual = self._y - columns @ self._by_matrix(rows)
        if self._basis.shape[3]:
            residual = residual - self._basis @ (self._basis.mT @ residual)
        ridge = self.ridge[:, None, None]
        products = self._by_row(columns.mT @ residual) - ridge * rows
        square = (residual * residual).sum(dim=(1, 2, 3)) + self.ridge * (rows * rows).sum(dim=(1, 2))
        inner = (products * rows).sum(dim=(1, 2))
        norm = (room.lam * torch.linalg.vector_norm(rows, dim=2)).sum(dim=1)
        off = rounding * room.lengths * square.sqrt()[:, None]
        polar = ((torch.linalg.vector_norm(products, dim=2) + off) / room.lam).amax(dim=1)
        room.residual.copy_(residual[:, 0].mT if self._one else residual[..., 0])
        room.sums.copy_(torch.stack([square, inner, norm, polar]))

    @property
    def found(self) -> _Room:
        """Where `find` leaves its results."""
        return self._room


def _of_point(room: _Room) -> tuple[Any, Any, Any, Any]:
    return room.inverse, room.products, room.sizes, room.value


def _systems(m: Any, right: Any) -> tuple[Any, Any]:
    """``M_p^-1 b_p`` of symmetric positive definite systems, and which were none. With b as one more row the factor has
    ``L^-1 b`` as its last one: no substitution is needed for it."""
    size = m.shape[1]
    bordered = m.new_zeros((len(m), size + 1, size + 1))
    bordered[:, :size, :size], bordered[:, size, :size], bordered[:, size, size] = m, right, _BORDER
    factor, info = torch.linalg.cholesky_ex(bordered)
    half = factor[:, size, :size, None]
    return torch.linalg.solve_triangular(factor[:, :size, :size].mT, half, upper=True)[..., 0], info > 0


def _bounded(m: Any, right: Any, lower: Any, again: bool) -> tuple[Any, Any]:
    """About ``argmin 1/2 v'Mv - b'v`` over ``v >= lower``: solved, and with `again` once more with the rows below their
    bound at it; a direction need not be exact. And whether rounding has left nothing of M."""
    v, failed = _systems(m, right)
    if not again:
        return torch.maximum(v, lower).nan_to_num(), failed
    fixed = ~(v >= lower)
    free = (~fixed).to(m.dtype)
    held = torch.where(fixed, lower, 0.0)
    masked = m * free[:, :, None] * free[:, None, :]
    masked.diagonal(dim1=1, dim2=2).add_(1.0 - free)
    left = (right - (m @ held[..., None])[..., 0]) * free
    again, failed_again = _systems(masked, left)
    return torch.maximum(again + held, lower).nan_to_num(), failed | failed_again
