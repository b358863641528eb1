"""Newton's method on the manifold that a first-order method has found: sorted norms of rows, L1,inf, any smooth loss.

A penalty with kinks is smooth among the W that are zero, and tied, where the solution is, and a first-order method
arrives there long before it arrives at the solution. A penalty says where it is smooth (`RowPenalty.manifold`): blocks
of rows with one size each, whose changes are d, and changes E across. With the residual r and the curvature ``w^2`` of
the loss, ``X^ = P (w o X)`` (P the projection off the reweighted nuisance columns), ``Z = X^ directions`` with a column
a block, ``A = H^-1`` across, ``M = X' r - ridge W``, the model

    1/2 ||r^ - Z d - X^ E||^2 + sum_b slopes_b d_b + 1/2 <E, A^-1 E> - <M - X' r, directions d + E> + ridge/2 (...)

is least where, with ``s`` the change of the residual of the model,

    (I + X^ A X^') s + Z d = -X^ A M,    Z' s - ridge D d = slopes - directions' M,    E = A (M + X^' s).

The parts of ``X^ A X^'`` inside each task are factored, as large as a task has rows; what lies between tasks is left to
conjugate gradients, of which one or two steps suffice. Sizes that would change their order, or their sign, are tied, or
zero, before that (an active-set method on the sizes alone). A step counts only if the objective falls; then the
first-order method puts zeros and ties where they belong now, and its gap decides whether another step is needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ..losses import Evaluation
from ..penalties import Manifold
from .accelerated import Accelerated
from .curvature import pass_work
from .prox_newton import orthonormal
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_SETTLING = 2  # first-order steps after a Newton step
_FALL = 0.3  # of the gap: a Newton step that leaves more calls for more first-order steps before the next
_PASSES = 24  # over the columns, of a Newton step and what comes with it
_RATE = 16.0  # operations of a matrix product in the time of one of a pass
_FIXED, _FIXED_A_TASK = 2e7, 1e6  # operations of a pass in the time that calls take
_DEAR, _CRAWLING = 18, 3.5  # first-order steps in the time of a Newton step, beyond which it waits so many times longer
_WORN = 4  # corrections that a factor of an earlier step may take: more, and the next step makes its own
_HALVINGS = 6
_CORRECTIONS = 12  # conjugate gradient steps
_ACCURACY = 1e-3  # of conjugate gradients: the gap is of first order in what is left
_RIDGE = 1e-12  # of the mean diagonal: blocks whose columns are dependent
_PIECE = 2**16  # numbers of the columns that are read twice in a row


class ManifoldNewton:
    """A first-order method until it has done as much work as a Newton step is; then both in turn.

    - `first`: The first-order method, a solver; `Accelerated` unless there is a faster one.
    """

    needs = Needs(smooth=True, manifold=True, packed=True)

    def __init__(self, first: Any = None) -> None:
        self._first = Accelerated(adaptive=True) if first is None else first
        self._used = self._ready = False
        self._blocks = 0  # of the last Newton step
        self._factors: list[Array] | None = None  # of an earlier one
        # where the tasks begin, and the sums of their rows, of the squares and of the cubes
        self._offsets: Array | None = None
        self._lengths = (0.0, 0.0, 0.0)

    @property
    def name(self) -> str:
        """The first-order method's, as long as it has been enough."""
        return "manifold-newton" if self._used else str(self._first.name)

    def solve(self, working: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        patience = min(self._patience(working), max_iter)
        solved = self._first.solve(working, start, tol, patience)
        spent, self._ready = solved.n_iter, False
        while solved.gap > tol and spent < max_iter and solved.n_iter >= min(patience, _SETTLING):
            moved = self._step(working, solved.rows)
            spent += 1
            if moved is not None:
                self._used = True
                settled = self._first.solve(working, moved, tol, min(_SETTLING, max(max_iter - spent, 1)))
                spent += settled.n_iter
                enough = settled.gap <= max(_FALL * solved.gap, tol)
                solved = settled
                self._ready = enough
                if enough:
                    continue
            patience = min(2 * patience, max(max_iter - spent, 1))
            solved = self._first.solve(working, solved.rows, tol, patience)
            spent += solved.n_iter
        return solved if spent == solved.n_iter else replace(solved, n_iter=spent)

    def _patience(self, working: WorkingProblem) -> int:
        """How many first-order steps to take at first, by counted work. A Newton step that costs as much as a few of
        them follows soon, the sooner where the last problem needed one; one that costs more waits until they crawl."""
        columns, count = working.columns, len(working.positions)
        if columns.offsets is not self._offsets:
            self._offsets, lengths = columns.offsets, np.diff(columns.offsets).astype(float)
            self._lengths = lengths.sum(), lengths @ lengths, np.sum(lengths**3)
        rows, squares, cubes = self._lengths
        factors = squares * (2.0 * count + self._blocks) + cubes + 2.0 * self._blocks**2 * rows
        newton = _PASSES * pass_work(columns, count) + factors / _RATE + _FIXED + _FIXED_A_TASK * columns.n_tasks
        steps = newton / self._first.step_work(working)
        if steps > _DEAR:
            return int(_CRAWLING * steps)
        return max(round(steps / 3.0 if self._ready else steps), 2 * _SETTLING)

    def _step(self, working: WorkingProblem, rows: Array) -> Array | None:
        """Rows with a lower objective; None where a Newton step finds none."""
        penalty, loss = working.penalty, working.loss
        at = working.evaluate(rows, working.nuisance)
        products = working.correlate(at.residual) - penalty.pull(rows)
        manifold = penalty.manifold(rows, products)
        if manifold is None or (at.curvature is None and not loss.squared):
            return None
        system = _System(working, manifold, at, products[manifold.live], self._factors)
        found = system.solve()
        self._blocks = len(manifold.starts)
        self._factors = system.factors if system.corrections <= _WORN else None
        if found is None:
            return None
        sizes, change = found
        value = at.value + penalty.total(rows)
        step = 1.0
        for _ in range(_HALVINGS):
            candidate = np.zeros_like(rows)
            moved = manifold.moved(manifold.sizes + step * (sizes - manifold.sizes), step * change)
            candidate[manifold.live] = np.maximum(moved, 0.0) if penalty.positive else moved
            if working.evaluate(candidate, at.nuisance).value + penalty.total(candidate) < value:
                return candidate
            step *= 0.5
        return None


class _System:
    """The equations of one step.

    - `factors`: Those of an earlier step, with which conjugate gradients take a correction or two more.
    """

    def __init__(
        self, working: WorkingProblem, manifold: Manifold, at: Evaluation, products: Array, factors: list[Array] | None
    ) -> None:
        self._columns, self._manifold, self._products = working.columns, manifold, products
        self._positions = working.positions[manifold.live]
        self._ridge = working.penalty.ridge
        softness = 1.0 + self._ridge * manifold.compliance
        self._compliance = manifold.compliance / softness
        self._across = None if manifold.across is None else manifold.across / np.sqrt(softness)
        self._root: Array | None = None
        self._basis = np.empty((0, 0))
        if not working.loss.squared:
            assert at.curvature is not None
            curvature = at.curvature if at.second is None else np.maximum(at.second, 1e-3 * at.curvature)
            self._root = np.sqrt(np.maximum(curvature, working.loss.least_curvature))
            design = working.columns.design
            self._basis = orthonormal(design, [self._root * column for column in design.nuisance_basis])
        self.factors = [] if factors is None else factors
        self.corrections = 0
        self._z = np.empty((0, 0))

    def solve(self) -> tuple[Array, Array] | None:
        """Sizes after the step, and the change across; None where a factorisation failed."""
        manifold, products = self._manifold, self._products
        if not self.factors and not self._factor():
            return None
        self._z = self._tied_columns()
        push = -self._combine(self._spread(products))
        lack = manifold.slopes - np.add.reduceat(np.add.reduce(manifold.directions * products, axis=1), manifold.starts)
        whitened = self._forward(self._z)
        inner = whitened.T @ whitened
        if self._ridge:
            squares = np.add.reduce(np.square(manifold.directions), axis=1)
            inner[np.diag_indices(len(inner))] += self._ridge * np.add.reduceat(squares, manifold.starts)
        inner[np.diag_indices(len(inner))] += _RIDGE * float(np.trace(inner)) / len(inner)
        reduced = _Sizes(manifold, inner, whitened.T @ self._forward(push) - lack)
        if not reduced.settle():
            return None
        change, d = self._iterate(push, whitened, reduced)
        across = self._spread(products + self._correlate(change))
        return manifold.sizes + d, across

    def _iterate(self, push: Array, whitened: Array, reduced: _Sizes) -> tuple[Array, Array]:
        """s and d, by conjugate gradients on the space where the tied sizes meet their equations."""
        half = self._forward(push)
        d = reduced.start()
        s = self._backward(half - whitened @ d)
        left = push - self._apply(s) - self._z @ d
        goal = _ACCURACY * float(np.linalg.norm(half))
        direction: Array | None = None
        along, last = np.zeros_like(d), 0.0
        for _ in range(_CORRECTIONS):
            half = self._forward(left)
            more = reduced.solve(whitened.T @ half)
            following = self._backward(half - whitened @ more)
            square = float(left @ following)
            if square <= goal * goal:
                break
            if direction is None:
                direction, along = following, more
            else:
                direction, along = following + square / last * direction, more + square / last * along
            image = self._apply(direction) + self._z @ along
            bend = float(direction @ image)
            if bend <= 0.0:
                break
            self.corrections += 1
            step, last = square / bend, square
            s, d, left = s + step * direction, d + step * along, left - step * image
        return s, d

    # -- X^ and what is made of it --------------------------------------------------------------------------------

    def _spread(self, rows: Array, part: slice = slice(None)) -> Array:
        """``A`` times rows."""
        out = self._compliance[part] * rows
        if self._across is not None:
            across = self._across[part]
            out -= across * np.einsum("jt,jt->j", across, rows)[:, None]
        return np.asarray(out)

    def _projected(self, vector: Array) -> Array:
        design = self._columns.design if len(self._basis) else None
        for unit in self._basis:
            assert design is not None
            vector = vector - unit * design.per_sample(design.task_sums(unit * vector))
        return vector

    def _combine(self, rows: Array, part: slice = slice(None)) -> Array:
        image = self._columns.combine(self._positions[part], rows)
        return np.asarray(image if self._root is None else self._projected(self._root * image))

    def _correlate(self, vector: Array, part: slice = slice(None)) -> Array:
        weighted = vector if self._root is None else self._root * self._projected(vector)
        return np.asarray(self._columns.correlate(weighted, self._positions[part]))

    def _apply(self, vector: Array) -> Array:
        """``(I + X^ A X^')`` times a vector, on pieces of the columns that stay near the processor."""
        weighted = vector if self._root is None else self._root * self._projected(vector)
        image = np.zeros_like(vector)
        width = max(_PIECE // len(self._columns.x), 16)
        for low in range(0, len(self._positions), width):
            part = slice(low, low + width)
            own = self._positions[part]
            image += self._columns.combine(own, self._spread(self._columns.correlate(weighted, own), part))
        return vector + (image if self._root is None else self._projected(self._root * image))

    def _factor(self) -> bool:
        """Factors of ``I + X^ A X^'`` inside each task."""
        columns = self._columns
        inside = self._compliance if self._across is None else self._compliance - np.square(self._across)
        roots = np.sqrt(np.maximum(inside, 0.0))
        held = columns.x.T
        for t in range(columns.n_tasks):
            own = slice(int(columns.offsets[t]), int(columns.offsets[t + 1]))
            moving = np.flatnonzero(roots[:, t])
            x = (held if columns.shared else held[:, own])[self._positions[moving]]
            x *= roots[moving, t, None]
            inner = x.T @ x
            if self._root is not None:
                inner *= np.outer(self._root[own], self._root[own])
                for unit in self._basis[:, own]:
                    inner -= np.outer(unit, unit @ inner)
                    inner -= np.outer(inner @ unit, unit)
            inner[np.diag_indices(len(inner))] += 1.0
            factor, failed = lapack.dpotrf(inner, lower=1, overwrite_a=1)
            if failed:
                return False
            self.factors.append(factor)
        return True

    def _tied_columns(self) -> Array:
        """Z."""
        manifold, columns = self._manifold, self._columns
        starts, directions = manifold.starts, manifold.directions
        counts = np.diff(starts, append=len(manifold.live))
        z = np.empty((int(columns.offsets[-1]), len(starts)), order="F")
        single = np.flatnonzero(counts == 1)
        x = columns.x[:, self._positions[starts[single]]]
        for t in range(columns.n_tasks):
            own = slice(int(columns.offsets[t]), int(columns.offsets[t + 1]))
            z[own, single] = (x if columns.shared else x[own]) * directions[starts[single], t]
        for block in np.flatnonzero(counts > 1):
            part = slice(int(starts[block]), int(starts[block] + counts[block]))
            z[:, block] = columns.combine(self._positions[part], directions[part])
        if self._root is not None:
            z *= self._root[:, None]
            design = columns.design
            for unit in self._basis:
                loads = np.add.reduceat(unit[:, None] * z, design.offsets[:-1], axis=0)
                z -= unit[:, None] * np.repeat(loads, np.diff(design.offsets), axis=0)
        return z

    def _forward(self, vectors: Array) -> Array:
        """``L^-1`` times vectors."""
        return self._whiten(vectors, 0)

    def _backward(self, vector: Array) -> Array:
        return self._whiten(vector, 1)

    def _whiten(self, vectors: Array, transposed: int) -> Array:
        out, offsets = np.empty_like(vectors), self._columns.offsets.tolist()
        for factor, low, high in zip(self.factors, offsets, offsets[1:], strict=False):
            out[low:high] = lapack.dtrtrs(factor, vectors[low:high], lower=1, trans=transposed)[0]
        return out


class _Sizes:
    """The changes d of the sizes, ``S d = b``, where some are tied to each other and some end at zero."""

    def __init__(self, manifold: Manifold, matrix: Array, right: Array) -> None:
        self._manifold, self._matrix, self._right = manifold, matrix, right
        self._group = np.arange(len(right))  # -1: zero
        self._shift = np.zeros(len(right))
        self._factor: Array | None = None

    def settle(self) -> bool:
        """Tie sizes, or make them zero, until the rest keep their order and sign; False where that fails."""
        sizes = self._manifold.sizes
        while True:
            if not self._refactor():
                return False
            following, left = sizes + self.start(), np.flatnonzero(self._group >= 0)
            if self._manifold.ordered:  # where a size would be above the one before, both are one from here on
                rising = np.flatnonzero(following[left[1:]] > following[left[:-1]] * (1.0 + 1e-12))
                rising = rising[self._group[left[rising]] != self._group[left[rising + 1]]]
                for k in rising[::-1]:
                    self._group[self._group == self._group[left[k + 1]]] = self._group[left[k]]
                if len(rising):
                    self._level(left)
                    continue
            gone = left[following[left] < 0.0]
            if not len(gone):
                return True
            self._group[gone], self._shift[gone] = -1, -sizes[gone]

    def _level(self, left: Array) -> None:
        """One size for each group: the mean of its blocks', by rows."""
        sizes, group = self._manifold.sizes, self._group[left]
        counts = np.diff(self._manifold.starts, append=len(self._manifold.live)).astype(float)[left]
        _names, where = np.unique(group, return_inverse=True)
        means = np.bincount(where, counts * sizes[left]) / np.bincount(where, counts)
        self._shift[left] = means[where] - sizes[left]
        single = np.bincount(where)[where] == 1
        self._shift[left[single]] = 0.0

    def _refactor(self) -> bool:
        names, self._where = np.unique(self._group, return_inverse=True)
        first = int(names[0] < 0)
        self._where = self._where - first  # -1: zero
        self._count = len(names) - first
        if not self._count:
            return False
        self._spread = np.zeros((len(self._group), self._count))
        live = np.flatnonzero(self._where >= 0)
        self._spread[live, self._where[live]] = 1.0
        tied = self._count < len(self._group)
        matrix = self._spread.T @ self._matrix @ self._spread if tied else self._matrix
        factor, failed = lapack.dpotrf(matrix, lower=1)
        self._factor = factor
        return not failed

    def _expand(self, values: Array) -> Array:
        return np.asarray(self._spread @ values)

    def _solve(self, right: Array) -> Array:
        return np.asarray(lapack.dpotrs(self._factor, self._spread.T @ right, lower=1)[0])

    def start(self) -> Array:
        """d without what lies between tasks."""
        return self._shift + self._expand(self._solve(self._right - self._matrix @ self._shift))

    def solve(self, right: Array) -> Array:
        """d of a correction, whose second right-hand side is zero."""
        return self._expand(self._solve(right))
