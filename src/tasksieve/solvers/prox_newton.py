"""Proximal Newton for smooth losses: quadratic models solved by block coordinate descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import ColumnBlock, Design, PackedColumns
from ..penalties import RowPenalty
from .accelerated import Accelerated
from .coordinate import block_descent, descend
from .newton import VariationalNewton
from .rotations import coupled_rows
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_PATIENCE = 200  # epochs of coordinate descent on one model
_SHARE, _ROUGH_SHARE = 0.03, 0.3  # of the gap: how well a model is solved, and one of a loss with corners
_ROUGH_PATIENCE = 30
_STALLED = 12  # models in a row that do not halve the gap
_SMALL = 1e-9  # of the objective at W = 0: gaps that rounding may hold up
_BOLDER, _BOLDEST = 0.3, 1e-3  # how much less of the parabola above the loss after a full step, and the least
_RISE, _NOISE = 1e-3, 1e-12  # of the gap and of the objective: a rise of the latter that may be rounding
_NARROW = 1e-7  # of the objective at W = 0: gaps down to which models may be held in single precision
_WIDE = 2**20  # entries of a model: smaller ones lie near the processor as they are
_MOST_ENTRIES = 2**24  # of a model with a copy of the columns for each class
_NEAR = 0.85  # rows whose gauge is below this do not enter in one step; if one should, the next model has it


class ProximalNewton:
    """Reweighted least squares with the penalty kept, the intercepts eliminated from each model, and a line search.

    At W with residual r and curvature ``w^2`` (in z~) the model is ``1/2 ||r^ - X^ (V - W)||^2 + Omega(V)`` with
    ``X^ = P (w o X~)``, ``r^ = r/w``, P the projection off the reweighted nuisance columns: the same form as the
    squared loss, so the same row updates solve it.
    """

    name = "prox-newton"
    needs = Needs(smooth=True, curved=True, row_form=True, packed=True, quadratic="graph")

    def __init__(self, caution: float = 1.0) -> None:
        self._buffers: dict[type, Array] = {}
        self._caution = caution
        self._first_order = Accelerated(adaptive=True)

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        packed, positions, penalty = problem.columns, problem.positions, problem.penalty
        rows = start
        at = problem.evaluate(rows, problem.nuisance)
        value = at.value + penalty.total(rows)
        # a model is solved to this share of the gap: another model costs more than a few epochs
        rough = at.second is not None  # models of a loss with corners do not reach far
        share, patience = (_ROUGH_SHARE, _ROUGH_PATIENCE) if rough else (_SHARE, _PATIENCE)
        epochs = 0
        gap = least = np.inf
        stalled = 0
        may_use_newton = Needs(plain=True).unmet(problem.loss, penalty) is None and not problem.loss.of_classes
        while True:
            products = packed.correlate(at.residual, positions)
            gap, _ = problem.gap(rows, at, products)
            if gap <= tol or epochs >= max_iter:
                break
            stalled = stalled + 1 if gap > 0.5 * least else 0
            least = min(gap, least)
            if stalled >= _STALLED and gap <= _SMALL * problem.loss.null.value:
                break  # as far as double precision goes
            classes = problem.loss.class_model(at)
            near = penalty.row_gauges(products - penalty.pull(rows)) >= _NEAR
            chosen = penalty.whole(np.flatnonzero(near | rows.any(axis=1)))
            part = penalty.restrict(chosen)
            own = problem.loss.quadratic_model(at)
            if classes is not None:
                if packed.design.n_samples * len(chosen) > _MOST_ENTRIES:
                    return self._first_order_steps(problem, rows, tol, max_iter, epochs)
                columns, squares, right = self._model(packed, positions[chosen], classes.root, at.residual)
            elif own is None:
                assert at.curvature is not None
                curvature = at.curvature
                if at.second is not None:  # between the second derivative and a parabola above the loss
                    curvature = np.maximum(at.second, self._caution * curvature)
                w = np.sqrt(np.maximum(curvature, problem.loss.least_curvature))
                columns, squares, right = self._model(packed, positions[chosen], w, at.residual)
            else:
                narrow = tol >= _NARROW * problem.loss.null.value and not stalled and part.block_form() is None
                columns, squares, right = self._own_model(own, packed, positions[chosen], narrow)
            block = ColumnBlock(columns, packed.offsets, False, packed.n_threads)
            free = None
            if classes is not None:
                free = {"classes": classes.classes, "shares": classes.shares, "levels": classes.levels,
                        "inverse": classes.inverse}  # fmt: skip
                above = block.norms_under(classes.excess, np.arange(len(chosen)))
                assert above is not None
                squares = np.square(above) * (squares > 0.0)
            if problem.zero is not None:
                squares[problem.zero[chosen]] = 0.0  # as if those columns were empty
            proposal = np.ascontiguousarray(rows[chosen])
            allowed = min(max_iter - epochs, patience)
            spent, reached = self._descend(part, block, squares, proposal, right, allowed, share * gap, free)
            epochs += max(spent, 1)
            if spent == 0:  # the model is already solved as well as required: require more
                share *= 0.1
                continue
            if reached > share * gap and may_use_newton:
                # Ill-conditioned: second order in the row norms, on the same model.
                everything = np.arange(len(chosen))
                if columns.dtype != np.float64:
                    block = ColumnBlock(columns.astype(np.float64), packed.offsets, False, packed.n_threads)
                target = right + block.combine(everything, proposal)
                newton = VariationalNewton(block)
                if newton.fits(int(np.count_nonzero(proposal.any(axis=1)))):
                    polished = newton.minimise(everything, part, target, proposal, share * gap, 50)
                    proposal = polished.rows
                    epochs += polished.n_iter
            proposed = np.zeros_like(rows)
            proposed[chosen] = proposal
            moved, step = self._search(problem, rows, proposed, value, at.nuisance, gap)
            if moved is None:
                break
            rows, at, value = moved
            self._caution = min(max(self._caution * (_BOLDER if step == 1.0 else 1.0 / step), _BOLDEST), 1.0)
        return Solution(rows, epochs, gap, at, products)

    @staticmethod
    def _descend(
        part: RowPenalty,
        block: ColumnBlock,
        squares: Array,
        rows: Array,
        right: Array,
        max_epochs: int,
        tol: float,
        classes: dict[str, Array] | None,
    ) -> tuple[int, float]:
        """Coordinate descent on a model, by rows or by blocks of them; returns epochs and gap."""
        everything, form = np.arange(len(rows)), part.row_form()
        if part.block_form() is not None:
            return block_descent(block, everything, squares, part, rows, right, max_epochs, tol, classes=classes)
        assert form is not None
        coupled: Any = () if part.coupling is None else coupled_rows(part, squares)
        return descend(
            block, everything, squares, form, part, rows, right, max_epochs, tol, coupled=coupled, classes=classes
        )

    def _first_order_steps(
        self, problem: WorkingProblem, rows: Array, tol: float, max_iter: int, spent: int
    ) -> Solution:
        """Where a model, with a copy of the columns for each class, would be too large."""
        solved = self._first_order.solve(problem, rows, tol, max_iter - spent)
        solved.n_iter += spent
        return solved

    def _model(
        self, packed: PackedColumns, positions: Array, w: Array, residual: Array
    ) -> tuple[Array, Array, Array]:
        return reweighted(packed, positions, w, residual, self._room(packed.design, len(positions)))

    def _room(self, design: Design, count: int, kind: type = np.float64) -> Array:
        """The buffer is kept: fresh memory of this size costs as much as filling it."""
        known = self._buffers.get(kind)
        if known is None or len(known) != design.n_samples or known.shape[1] < count:
            known = self._buffers[kind] = np.empty((design.n_samples, 2 * count), dtype=kind, order="F")
        return known[:, :count]

    def _own_model(
        self, own: Any, packed: PackedColumns, positions: Array, narrow: bool
    ) -> tuple[Array, Array, Array]:
        """The same where the loss has a factor of its second derivative (`DataLoss.quadratic_model`).

        - `narrow`: Single precision will do. Reading columns is most of the work on a large model. Rounding them moves
          its minimum by no more than a gap of about 1e-9 of the objective at W = 0.
        """
        design, right = packed.design, own.right
        free = np.asfortranarray(design.nuisance_basis[int(design.fit_intercept) :].T)
        narrow = narrow and not free.shape[1] and design.n_samples * len(positions) >= _WIDE
        columns = self._room(design, len(positions), np.float32 if narrow else np.float64)
        squares = own.columns(packed.x, positions, packed.shared, columns)
        if free.shape[1]:
            turned = np.empty_like(free, order="F")
            own.columns(free, np.arange(free.shape[1]), False, turned)
            for unit in 2 * list(orthonormal(design, list(turned.T))):  # twice for columns of which little is left
                for column in columns.T:
                    column -= unit * design.per_sample(design.task_sums(unit * column))
                right = right - unit * design.per_sample(design.task_sums(unit * right))
            squares = np.ascontiguousarray(np.add.reduceat(np.square(columns), design.offsets[:-1], axis=0).T)
        return columns, squares, right

    @staticmethod
    def _search(
        problem: WorkingProblem, rows: Array, proposal: Array, value: float, nuisance: Array, gap: float
    ) -> tuple[tuple[Array, Any, float] | None, float]:
        """The point reached, with its evaluation and its value, and the step that led there.

        Near the optimum the gap is far above what is left of the objective, whose rounding then says nothing about a
        step: one that is small beside the gap does not stop it.
        """
        step = 1.0
        slack = 1e-15 * abs(value) + min(_RISE * gap, _NOISE * abs(value))
        for _ in range(30):
            candidate = proposal if step == 1.0 else rows + step * (proposal - rows)
            at = problem.evaluate(candidate, nuisance)
            total = at.value + problem.penalty.total(candidate)
            if total <= value + slack:
                return (candidate, at, total), step
            step *= 0.5
        return None, step


def reweighted(
    packed: PackedColumns, positions: Array, w: Array, residual: Array, columns: Array | None = None
) -> tuple[Array, Array, Array]:
    """Columns multiplied by w and freed of the nuisance columns, their squares, and what is to be explained: the
    second-order model of a smooth loss at a residual, for w the roots of second derivatives.

    - `columns` (rows, len(positions)): Where they are written.
    """
    design = packed.design
    basis = orthonormal(design, [w * column for column in design.nuisance_basis])
    if columns is None:
        columns = np.empty((design.n_samples, len(positions)), order="F")
    squares = np.empty((len(positions), packed.n_tasks))
    kernels.reweight(
        packed.x, packed.offsets, packed.shared, positions, w, basis, design.n_threads, columns, squares
    )
    right = residual / w
    for unit in basis:
        right = right - unit * design.per_sample(design.task_sums(unit * right))
    return columns, squares, right


def orthonormal(design: Design, columns: list[Array]) -> Array:
    """Gram-Schmidt within each task, twice for accuracy."""
    basis: list[Array] = []
    for column in columns:
        original = np.sqrt(design.task_sums(column * column))
        for _ in range(2):
            for unit in basis:
                column = column - unit * design.per_sample(design.task_sums(unit * column))
        size = np.sqrt(design.task_sums(column * column))
        inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 1e-10 * original)
        basis.append(column * design.per_sample(inverse))
    return np.array(basis) if basis else np.empty((0, design.n_samples))
