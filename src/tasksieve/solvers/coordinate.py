"""Coordinate descent with exact updates and Anderson acceleration, for the squared loss: by rows, or by blocks of rows
that have one norm together.

A block of rows W_B has the quadratic part ``1/2 <W_t, H_t W_t>`` in each task, ``H_t = X_Bt' X_Bt``, and row updates
want H_t diagonal. Where the norm is ``||W_B||_F`` alone, W may be turned within each task: in the eigenvectors of H_t
the columns are orthogonal, and the update of the whole block is exact. Other norms, and W >= 0, do not turn; there H_t
is replaced by its largest eigenvalue, so that a visit is a proximal gradient step on the block with its own length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import ColumnBlock, PackedColumns
from ..penalties import BlockForm, RowForm, RowPenalty, live_rows
from .rotations import Rotations
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_GRAM_BYTES = 64 << 20
_ROOM = 1.5  # columns for each one that takes part: beyond that theirs are copied out of the Gram matrix
_EMPTY = 1e-14  # of the largest eigenvalue of a block: what is below is rounding


class CoordinateDescent:
    """One row of W at a time, each solved exactly, or one block of rows, positivity included. An epoch costs
    ``4 N |A|`` operations on the residual, or, on a Gram matrix if that is cheaper, ``2 T |A|`` per *changed* row."""

    name = "cd"
    needs = Needs(losses=("squared",), row_form=True, packed=True, quadratic="graph")

    def __init__(self) -> None:
        #: operations spent on the last problem, for choosing between solvers
        self.work = 0.0
        self._target: Array | None = None
        self._layout = 0
        self._targets = np.empty((0, 0))
        self._rotations: Rotations | None = None
        self._turned: TurnedColumns | None = None

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        columns, positions, penalty, target = problem.columns, problem.positions, problem.penalty, problem.loss.target
        return self.minimise(columns, positions, penalty, target, start, tol, max_iter, problem.zero)

    def minimise(
        self,
        packed: PackedColumns,
        positions: Array,
        penalty: RowPenalty,
        target: Array,
        start: Array,
        tol: float,
        max_iter: int,
        zero: Array | None = None,
    ) -> Solution:
        """``1/2 ||target - X W||^2 + Omega(W)`` over some columns; `zero` where W is known to be zero."""
        rows = np.ascontiguousarray(start)
        tasks, count = packed.n_tasks, len(positions)
        squares = packed.squared_norms[positions]
        if zero is not None:
            squares = np.where(zero, 0.0, squares)  # as if those columns were empty
        if penalty.block_form() is not None:
            if self._turned is None or self._turned.layout != packed.layout:
                self._turned = TurnedColumns(packed)
            by_gram, one = self.prefers_gram(packed, count), packed.shared or tasks == 1
            residual = target if by_gram and one else self._residual(packed, positions, target, rows)
            sums = (lambda: (packed.grams(), self._target_products(packed, target))) if one else None
            epochs, gap = block_descent(
                packed, positions, squares, penalty, rows, residual, max_iter, tol, by_gram, self._turned, target, sums
            )
            return Solution(rows, epochs, gap)
        form = penalty.row_form()
        assert form is not None
        coupled: Any = ()
        if penalty.coupling is not None:
            self._rotations = self._rotations or Rotations()
            coupled = self._rotations.of(penalty, squares, positions, packed.layout)
        if self.prefers_gram(packed, count):
            gram, chosen, y_products = self._gram(packed, positions, target)
            known, state = (gram, y_products, float(target @ target)), np.empty(y_products.size)
            epoch = 2.0 * tasks * count * count
        else:
            chosen, known, state = positions, None, self._residual(packed, positions, target, rows)
            epoch = 4.0 * len(target) * count
        epochs, gap = descend(
            packed, chosen, squares, form, penalty, rows, state, max_iter, tol, known, coupled=coupled
        )
        self.work = epochs * epoch
        return Solution(rows, epochs, gap)

    @staticmethod
    def _residual(packed: Any, positions: Array, target: Array, rows: Array) -> Array:
        live = live_rows(rows)
        return target - packed.combine(positions[live], rows[live]) if len(live) else target.copy()

    @staticmethod
    def prefers_gram(packed: Any, count: int) -> bool:
        """Whether epochs on a Gram matrix of so many columns cost less."""
        if packed.shared or packed.n_tasks == 1:
            return count <= 2 * len(packed.x)
        if packed.n_tasks * count * count * 8 > _GRAM_BYTES:
            return False
        return count <= 0.7 * len(packed.x) / packed.n_tasks

    def _gram(self, packed: Any, positions: Array, target: Array) -> tuple[Array, Array, Array]:
        """A Gram matrix, a matrix for each task where they differ; where the columns lie in it; and their products with
        the target. One matrix for all packed columns serves where most of them take part: no copy is made of it."""
        if packed.shared or packed.n_tasks == 1:
            grams, total = packed.grams(), len(packed.features)
            if total <= _ROOM * len(positions):
                return grams, positions, self._target_products(packed, target)
            grams = np.ascontiguousarray(packed.gram(positions))[None]
        else:
            x = packed.x if np.array_equal(positions, np.arange(len(packed.features))) else packed.x[:, positions]
            grams = np.array([x[own].T @ x[own] for own in _segments(packed, len(x))])
        y_products = np.ascontiguousarray(packed.correlate(target, positions).T)
        return grams, np.arange(len(positions)), y_products

    def _target_products(self, packed: Any, target: Array) -> Array:
        """Products of all packed columns with the target, (tasks, columns): they come and stay with the columns."""
        known, total = self._targets.shape[1], len(packed.features)
        if self._target is not target or self._layout != packed.layout:
            self._target, self._layout, known = target, packed.layout, 0
        if known < total:
            more = packed.correlate(target, np.arange(known, total)).T
            grown = np.concatenate([self._targets[:, :known], more], axis=1) if known else more
            self._targets = np.ascontiguousarray(grown)
        return self._targets


class TurnedColumns:
    """Columns of blocks in the eigenvectors of their Gram matrices, task by task; each block is turned once."""

    def __init__(self, columns: ColumnBlock) -> None:
        self.offsets, self.shared, self.layout = columns.offsets, columns.shared, columns.layout
        self._tasks, self.n_threads = columns.n_tasks, columns.n_threads
        self.x = np.empty((0, 0), order="F")
        self.h = np.empty((0, self._tasks))
        self._slot = np.empty(0, dtype=np.int64)
        self._bases: dict[int, Array] = {}  # by size: (blocks, tasks or 1, size, size)
        self._gram, self._products = np.zeros((1, 0, 0)), np.zeros((self._tasks, 0))
        self._target: Array | None = None  # whose products they are
        self._multiplied = np.empty(0, dtype=np.int64)  # columns whose inner products are known
        self._width = 0  # columns there are
        self._waiting: list[Array] = []  # columns that were turned since

    def prepare(self, x: Array, positions: Array, starts: Array) -> None:
        """Turn those of some blocks that are new: ``positions[starts[k]:starts[k + 1]]`` are the columns of block k."""
        self._width = x.shape[1]
        self._grow(*x.shape)
        for members in _alike(starts):
            own = positions[members]
            own = own[self._slot[own[:, 0]] < 0]
            if len(own):
                self._turn(x, own)

    def _grow(self, n_rows: int, width: int) -> None:
        known = self.x.shape[1]
        if known >= width:
            return
        room = max(width, 2 * known)
        x, h = np.zeros((n_rows, room), order="F"), np.zeros((room, self._tasks))
        slot = np.full(room, -1, dtype=np.int64)
        if known:
            x[:, :known], h[:known], slot[:known] = self.x, self.h, self._slot
        self.x, self.h, self._slot = x, h, slot

    def _turn(self, x: Array, positions: Array) -> None:
        count, size = positions.shape
        bases = np.empty((count, 1 if self.shared else self._tasks, size, size))
        for t, own in enumerate(_segments(self, len(x))):
            blocks, grams = _inner(x[own], positions)
            values, bases[:, t] = np.linalg.eigh(grams) if size > 1 else (grams[:, 0], 1.0)
            self.x[own, positions.ravel()] = (blocks @ bases[:, t]).transpose(1, 0, 2).reshape(-1, positions.size)
            values = np.where(values > _EMPTY * values[:, -1:], values, 0.0)
            self.h[positions, slice(None) if self.shared else slice(t, t + 1)] = values[:, :, None]
        known = self._bases.get(size)
        self._slot[positions[:, 0]] = np.arange(count) + (0 if known is None else len(known))
        self._bases[size] = bases if known is None else np.concatenate([known, bases])
        self._waiting.append(positions.ravel())

    def sums(self, target: Array) -> tuple[Array, Array]:
        """Inner products of all turned columns with each other, (1, room, room), and with the target, (tasks, columns),
        where all tasks have the same columns; 0 for columns that were not turned. They grow as columns are."""
        room, known = self.x.shape[1], self._gram.shape[1]
        if room > known:
            gram, products = np.zeros((1, room, room)), np.zeros((self._tasks, room))
            gram[0, :known, :known], products[:, :known] = self._gram[0], self._products
            self._gram, self._products = gram, products
        if self._waiting:
            new, gram = np.concatenate(self._waiting), self._gram[0]
            self._waiting, self._multiplied = [], np.concatenate([self._multiplied, new])
            columns = self.x[:, new]
            inner = columns.T @ self.x[:, self._multiplied]
            gram[np.ix_(new, self._multiplied)] = inner
            gram[np.ix_(self._multiplied, new)] = inner.T
            if target is self._target:
                self._products[:, new] = target.reshape(self._tasks, -1) @ columns
        if target is not self._target:
            self._target = target
            self._products[:, self._multiplied] = target.reshape(self._tasks, -1) @ self.x[:, self._multiplied]
        return self._gram, np.ascontiguousarray(self._products[:, : self._width])

    def turn(self, rows: Array, positions: Array, starts: Array, *, back: bool = False) -> Array:
        """Rows of W turned as their columns are, or back."""
        out = np.empty_like(rows)
        for members in _alike(starts):
            bases = self._bases[members.shape[1]][self._slot[positions[members[:, 0]]]]
            own = rows[members].transpose(0, 2, 1)[..., None]
            found = (bases if back else bases.transpose(0, 1, 3, 2)) @ own
            out[members] = found[..., 0].transpose(0, 2, 1)
        return out


def descend(
    columns: Any,
    positions: Array,
    squares: Array,
    form: RowForm | BlockForm,
    penalty: RowPenalty,
    rows: Array,
    state: Array,
    max_epochs: int,
    tol: float,
    sums: tuple[Array, Array, float] | None = None,
    starts: Array | None = None,
    coupled: tuple[Array | None, ...] = (),
    classes: dict[str, Array] | None = None,
) -> tuple[int, float]:
    """Coordinate descent on some columns, from given rows on, which are overwritten; returns epochs and gap.

    - `squares`: The curvature of each coefficient.
    - `state`: The residual of the rows, overwritten; of the size of the products where there are `sums`.
    - `sums`: Gram matrices, products with the target and its square: they take the place of the residual.
    - `coupled`: What is known of a graph of tasks.
    - `classes`: Which tasks are classes, and what of their residuals is free.
    """
    gram, y_products, y_squared = (None, None, 0.0) if sums is None else sums
    threads = {"threads": columns.n_threads} if columns.n_threads > 1 else {}
    epochs, gap, _ = kernels.coordinate_descent(
        columns.x, columns.offsets, columns.shared, positions, squares, form.group, form.l1, penalty.ridge,
        penalty.positive, rows, state, max_epochs, tol, gram, y_products, y_squared, form.code, starts, *coupled,
        **threads, **(classes or {}),
    )  # fmt: skip
    return int(epochs), float(gap)


def block_descent(
    columns: ColumnBlock,
    positions: Array,
    squares: Array,
    penalty: RowPenalty,
    rows: Array,
    residual: Array,
    max_epochs: int,
    tol: float,
    by_gram: bool = False,
    turned: TurnedColumns | None = None,
    target: Array | None = None,
    sums: Callable[[], tuple[Array, Array]] | None = None,
    classes: dict[str, Array] | None = None,
) -> tuple[int, float]:
    """`descend` for a penalty with a norm of blocks.

    - `squares`: Squared norms of the columns; 0: the coefficient is known to be 0.
    - `residual`: Of the given rows; overwritten. Not looked at where `sums` serve.
    - `by_gram`: Work on inner products of the columns.
    - `sums`: Gives the inner products of all columns, (1, room, room), and their products with the target, (tasks,
      columns), where all tasks have the same columns.
    """
    form = penalty.block_form()
    assert form is not None
    order = np.argsort(form.block, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(form.block, minlength=len(form.group))))
    positions = positions[order]
    w = np.ascontiguousarray(rows[order])
    block: Any = columns
    turns = form.kind == "sum" and not penalty.positive and not form.l1.any()
    if turns:
        if turned is None:
            turned, sums = TurnedColumns(columns), None
        elif sums is not None:
            assert target is not None
            sums = partial(turned.sums, target)
        turned.prepare(columns.x, positions, starts)
        w = turned.turn(w, positions, starts)
        block, h = turned, turned.h[positions]
    else:
        h = _majorised(columns, positions, starts, squares[order], each_task=form.kind == "sum")
    known, state, used = None, residual, positions
    if by_gram:
        if sums is None:
            known = inner_products(block.x[:, positions], block, w, residual)
            used = np.arange(len(positions))
        else:
            assert target is not None
            gram, y_products = sums()
            if y_products.shape[1] > _ROOM * len(positions):
                gram = gram[:, positions[:, None], positions]
                y_products = np.ascontiguousarray(y_products[:, positions])
                used = np.arange(len(positions))
            known = gram, y_products, float(target @ target)
        state = np.empty(known[1].size)
    epochs, gap = descend(block, used, h, form, penalty, w, state, max_epochs, tol, known, starts, classes=classes)
    if turns:
        assert turned is not None
        w = turned.turn(w, positions, starts, back=True)
    rows[order] = w
    return epochs, gap


def _alike(starts: Array) -> list[Array]:
    """Blocks of the same size: (blocks, size) positions of their columns, for every size there is."""
    sizes = np.diff(starts)
    return [starts[:-1][sizes == size][:, None] + np.arange(size) for size in np.unique(sizes)]


def _segments(columns: Any, n_rows: int) -> list[slice]:
    """The rows of columns in each task, or all of them for all."""
    if columns.shared:
        return [slice(0, n_rows)]
    return [slice(int(low), int(high)) for low, high in pairwise(columns.offsets)]


def _inner(part: Array, members: Array) -> tuple[Array, Array]:
    """The columns of blocks alike, (blocks, rows, size), and their Gram matrices."""
    blocks = part[:, members.ravel()].reshape(len(part), *members.shape).transpose(1, 0, 2)
    return blocks, blocks.transpose(0, 2, 1) @ blocks


def _majorised(
    columns: ColumnBlock, positions: Array, starts: Array, squares: Array, *, each_task: bool
) -> Array:
    """The largest eigenvalues of blocks in place of squared norms, in each task or over all."""
    x, h = columns.x, np.empty_like(squares)
    for members in _alike(starts):
        for t, own in enumerate(_segments(columns, len(x))):
            _, grams = _inner(x[own], positions[members])
            largest = (1.0 + 1e-12) * (np.linalg.eigvalsh(grams)[:, -1] if grams.shape[1] > 1 else grams[:, 0, 0])
            h[members, slice(None) if columns.shared else slice(t, t + 1)] = largest[:, None, None]
        if not each_task:
            h[members] = np.max(h[members], axis=(1, 2), keepdims=True)
    h[squares == 0.0] = 0.0
    return h


def gram_matrices(x: Array, block: Any) -> Array:
    """Of some columns with the layout of a block: (tasks or 1, columns, columns)."""
    return np.array([x[own].T @ x[own] for own in _segments(block, len(x))])


def inner_products(x: Array, block: Any, rows: Array, residual: Array) -> tuple[Array, Array, float]:
    """Gram matrices of some columns, their products with ``y = residual + X W``, (tasks, columns), and ``||y||^2``."""
    segments, grams = _segments(block, len(x)), gram_matrices(x, block)
    if block.shared:
        targets = residual.reshape(rows.shape[1], -1) + (x @ rows).T
        return grams, np.ascontiguousarray(targets @ x), float(np.vdot(targets, targets))
    parts = [residual[own] + x[own] @ rows[:, t] for t, own in enumerate(segments)]
    products = np.array([x[own].T @ part for own, part in zip(segments, parts, strict=True)])
    return grams, products, float(sum(part @ part for part in parts))
