"""What a solver needs, what it is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..losses import DataLoss, Evaluation, gamma
from ..penalties import RowPenalty, live_rows
from .prox_derivative import has_derivative

Array = np.ndarray[Any, Any]

#: ``shrink(rows, evaluation, products, gap, scale, least)``: which rows a safe test drops for good; none if they are
#: less than this share of the rows
Shrink = Callable[[Array, Evaluation, Array, float, float, float], Array]


@dataclass(frozen=True)
class Needs:
    """What must hold of loss and penalty for a solver; where it does not, it is refused before anything is computed.

    - `losses`: Names of losses; empty: any.
    - `smooth`: A loss with a derivative everywhere.
    - `curved`: A loss whose second derivative varies: a quadratic model of it is worth making.
    - `clipped`: A clipped loss (`losses.clipped`).
    - `row_form`: A penalty with compiled updates of rows or blocks of rows (`RowPenalty.row_form`, `block_form`).
    - `plain`: The group norm alone, coefficients of any sign.
    - `group`: The group norm alone (`RowPenalty.group_form`).
    - `sorted_rows`: A sorted norm of rows with a compiled prox (`RowPenalty.sorted_form`).
    - `manifold`: A norm that knows where it is smooth (`RowPenalty.manifold`).
    - `dual_step`: A loss whose prox is known (`DataLoss.dual_step`).
    - `derivative`: A penalty with a form of which the derivative of the prox is known (`prox_derivative`).
    - `packed`: Columns packed in memory.
    - `quadratic` ({"none", "ridge", "graph"}): How much of a quadratic part beside the norm the solver can handle.
    """

    losses: tuple[str, ...] = ()
    smooth: bool = False
    curved: bool = False
    clipped: bool = False
    row_form: bool = False
    plain: bool = False
    group: bool = False
    sorted_rows: bool = False
    manifold: bool = False
    dual_step: bool = False
    derivative: bool = False
    packed: bool = False
    quadratic: Literal["none", "ridge", "graph"] = "ridge"

    def unmet(self, loss: DataLoss, penalty: RowPenalty, packed: bool = True) -> str | None:
        """What is missing, in words; None if nothing is."""
        group = penalty.group_form() is not None
        if self.losses and loss.name not in self.losses:
            return f"is for the {' or '.join(self.losses)} loss"
        if self.smooth and not loss.has_slope:
            return "is for smooth losses"
        if self.curved and not loss.curved:
            return "is for other losses than the squared one"
        if self.curved and loss.of_classes and penalty.coupling is not None:
            return "knows no task graph beside classes"
        if self.clipped and not loss.clipped:
            return "is for clipped losses: Huber, quantiles, hinges"
        if self.row_form and penalty.row_form() is None and penalty.block_form() is None:
            return "is for penalties with row updates: L2,1, L1,1, sparse group, L1,inf, dirty and groups"
        if self.plain and not (group and not penalty.positive):
            return "is for the group penalty without l1 and positivity"
        if self.group and not group:
            return "is for the group penalty without l1"
        if self.sorted_rows and penalty.sorted_form() is None:
            return "is for sorted norms of rows (Group OWL)"
        if self.manifold and type(penalty).manifold is RowPenalty.manifold:
            return "is for norms that know where they are smooth: sorted norms of rows and L1,inf"
        if self.dual_step and not loss.has_dual_step:
            return "is for losses whose prox is known: the square-root loss, and clipped ones"
        if self.derivative and not has_derivative(penalty):
            return "is for built-in penalties, without a task graph"
        if self.packed and not packed:
            return "is for dense columns"
        if penalty.ridge and self.quadratic == "none":
            return "is for problems without a ridge"
        if penalty.coupling is not None and self.row_form and penalty.row_form() is None:
            return "knows a task graph beside penalties on rows only"
        if penalty.coupling is not None and self.quadratic != "graph":
            return "is for problems without a task graph"
        return None


@dataclass
class WorkingProblem:
    """The problem on a few columns, those at `positions`, with the penalty of those rows.

    - `zero` (boolean array, a row for each of them and a column for each task): Coefficients that are known to be zero:
      a solver may leave them out.
    - `nuisance`: A guess of the nuisance coefficients.
    - `shrink`: Dynamic screening, for a solver that works on all rows not yet rejected.
    """

    columns: Any
    positions: Array
    penalty: Any
    loss: Any
    zero: Array | None = None
    nuisance: Array | None = None
    shrink: Shrink | None = None

    def image(self, rows: Array) -> Array:
        """``X~ W`` as a flat vector."""
        live = live_rows(rows)
        return np.asarray(self.columns.combine(self.positions[live], rows[live]))

    def evaluate(self, rows: Array, nuisance: Array | None = None) -> Evaluation:
        """The loss at ``X~ W``."""
        return self.loss.evaluate(self.image(rows), nuisance)

    def correlate(self, residual: Array) -> Array:
        return np.asarray(self.columns.correlate(residual, self.positions))

    def gap(self, rows: Array, at: Evaluation, products: Array) -> tuple[float, float]:
        """Duality gap of this restricted problem at W, given the correlations of its residual, and the dual scale."""
        return duality_gap(self.loss, self.penalty, rows, at, products)

    def keep(self, chosen: Array) -> WorkingProblem:
        """The problem on some of its rows."""
        return WorkingProblem(
            self.columns, self.positions[chosen], self.penalty.restrict(np.flatnonzero(chosen)), self.loss
        )


@dataclass
class Solution:
    """Rows of W for the working columns, and how the solver got there.

    - `evaluation`, `products`: The loss at `rows`, and the correlations of its residual with the working columns, where
      the solver has them.
    - `dual`: A flat vector that is a better dual point than the residual.
    - `dual_rows`: Rows whose residual is a better dual point.
    - `noise`: Norms of the residual in each task, where the square-root loss is solved for them.
    - `alive`: Rows that dynamic screening left, where there was any: the others are zero for good.
    - `steps` (list of (iteration, rows left, gap)): What was seen at every check.
    """

    rows: Array
    n_iter: int
    gap: float
    evaluation: Evaluation | None = None
    products: Array | None = None
    dual: Array | None = None
    dual_rows: Array | None = None
    alive: Array | None = None
    steps: list[tuple[int, int, float]] = field(default_factory=list)
    noise: Array | None = None

    def on(self, kept: Array) -> Solution:
        """The same on some of the rows; the others are zero."""
        dual_rows = None if self.dual_rows is None else self.dual_rows[kept]
        products = None if self.products is None else self.products[kept]
        return Solution(
            self.rows[kept], self.n_iter, self.gap, self.evaluation, products, self.dual, dual_rows, None, self.steps
        )


@dataclass
class Rounding:
    """What is known of the numbers that a certificate is about.

    - `primal`: The loss at the scores of these very numbers.
    - `error` (array of shape (n_tasks,)): Norms of what the weighted scores may be off.
    - `products`: What the correlations of the dual point with the rows' features may be off.
    """

    primal: Evaluation
    error: Array
    products: Array


def duality_gap(
    loss: DataLoss,
    penalty: RowPenalty,
    rows: Array,
    at: Evaluation,
    products: Array,
    whole: tuple[RowPenalty, Array, Array] | None = None,
    rounding: Rounding | None = None,
) -> tuple[float, float]:
    """Duality gap at W with the best multiple of its residual as the dual point.

    The quadratic part ``1/2 <W R, W>``, ``R = B'B``, is one more block of squared loss with residual ``-W B'``: scaled
    with the rest, it subtracts ``W R`` from the correlations and adds its own non-negative term (mathematics, sections
    2.2, 2.9 and 4). Or the dual point of a ridge is the best one for the scaled residual, a distance to the dual ball;
    the smaller gap counts.

    - `penalty`: Of the rows.
    - `products`: Correlations of the residual with the rows' features.
    - `whole`: The penalty of all features, their gauges (or upper bounds) for the residual, and which ones the rows
      are.
    - `rounding`: The rows are stored numbers with scores of their own, `at` is only the dual point, and the gap is to
      be one that no rounding has made too small. Gauges then are upper bounds with all errors in them.
    """
    ridge, coupling = penalty.ridge, penalty.coupling
    augmented = products - penalty.pull(rows) if penalty.curved else products
    inner = float(np.vdot(augmented, rows))
    far, lost = np.zeros(1), 0.0
    if coupling is not None:  # its two parts may cancel: each is summed by itself
        inner = float(np.vdot(products, rows)) - penalty.quadratic(rows)
        far, lost = (far, lost) if rounding is None else coupling.errors(rows)
    everything, gauges, features = whole if whole is not None else (penalty, None, None)
    if penalty.curved or gauges is None:
        if rounding is None:
            own = penalty.row_gauges(augmented)
        else:
            sizes = np.abs(products) + ridge * np.abs(rows) + (0.0 if coupling is None else np.abs(augmented))
            own = penalty.upper_gauges(augmented, rounding.products + gamma(4) * sizes + far)
        polar_of = own if gauges is None else gauges.copy()
        if gauges is not None:
            polar_of[features] = own
    else:
        polar_of = gauges
    polar = everything.polar(polar_of)
    # Shrunk by more than rounding can have added to the gauges: the scaled point is feasible.
    slack = everything.gauge_error + gamma(0 if everything.separable else len(polar_of))
    limit = 1.0 / (polar * (1.0 + slack)) if polar > 0.0 else np.inf
    if penalty.curved:
        limit = min(limit, 1.0)
    scale = loss.best_scale(at, inner, limit)
    norm = penalty.value(rows)

    def terms(c: float) -> float:
        if rounding is None:
            return loss.terms(at, c)
        # sums of one row, then of all; products of the dual point with the columns
        sizes = np.abs(rows)
        known = gamma(rows.size + 24) * (norm + c * float(np.vdot(np.abs(products), sizes)))
        if ridge:
            known += gamma(rows.size + 24) * ridge * float(np.vdot(rows, rows))
        known += c * float(np.vdot(rounding.products, sizes)) + 2.0 * lost
        return loss.young(rounding.primal, rounding.error, at, c) + known

    gap = terms(scale) + max(norm - scale * inner, 0.0)
    if coupling is not None:
        return gap + 0.5 * (1.0 - scale) ** 2 * penalty.quadratic(rows), scale
    if not ridge:
        return gap, scale
    squares = float(np.vdot(rows, rows))
    gap += 0.5 * ridge * (1.0 - scale) ** 2 * squares
    outer = everything.outer
    if gauges is not None and outer is not None and len(outer) != len(gauges):
        outer = None  # one gauge above 1 stands for many (`Pair.whole`)
    if outer is not None and not (loss.squared or loss.clipped):  # their cut ball is about the augmented dual point
        plain = penalty.row_gauges(products) if gauges is None else gauges
        over = np.flatnonzero(plain > 1.0)
        fixed = norm + 0.5 * ridge * squares
        along = float(np.vdot(products, rows))
        other = _ridge_gap(terms, loss.best_scale(at, along, np.inf), fixed, along, plain[over], outer[over], ridge)
        if other[0] < gap:
            return other
    return gap, scale


def _ridge_gap(
    terms: Callable[[float], float],
    largest: float,
    fixed: float,
    along: float,
    gauges: Array,
    outer: Array,
    ridge: float,
) -> tuple[float, float]:
    """``terms(c) + Omega(W) + ridge/2 ||W||^2 - c <M, W> + dist(c M, dual ball)^2/(2 ridge)``, at the best c.

    A row of gauge v is at most ``(v - 1) outer`` away from its dual ball. Every c up to the largest gives a bound; the
    one taken is best where the loss's own terms are linear in c, as those of the square-root loss are.
    """
    squares = outer * outer / ridge * (1.0 + gamma(16))

    def value(c: float, own: float) -> float:
        away = np.maximum(c * gauges * (1.0 + 1e-12) - 1.0, 0.0)
        return own + max(fixed - c * along + 0.5 * float(squares @ (away * away)), 0.0)

    at_most = terms(largest)
    slope = 100.0 * (at_most - terms(0.99 * largest)) / largest - along if largest > 0.0 else 0.0
    c = largest
    for _ in range(50):  # Newton's method from the right on a piecewise linear, increasing derivative
        over = c * gauges > 1.0
        pull = squares[over] * gauges[over]
        steep = float(pull @ gauges[over])
        if slope + c * steep - float(pull.sum()) <= 1e-12 * abs(slope) or steep == 0.0:
            break
        c = max((float(pull.sum()) - slope) / steep, 0.0)
    best = (value(largest, at_most), largest)
    return min(best, (value(c, terms(c)), c)) if c < largest else best
