r"""Ordered classes: the proportional odds model, its thresholds minimised out.

With ``P(y <= k) = sigma(theta_k - z)`` a row of class k costs

    -log P(y = k) = softplus(z - theta_k) + softplus(theta_{k-1} - z) - log(1 - exp(-(theta_k - theta_{k-1}))),

two logistic losses and a function of the thresholds alone (end classes: one softplus, no last term). So the dual
variables of a row are two numbers in [0, 1], `over` p and `under` q, and u = s (q - p); those of the distances between
thresholds are n_k nu_k >= 0, n_k the weight of a middle class. Stationarity in the thresholds is

    n_k nu_k = sum_{y < k} s p - sum_{y <= k} s q,    sum u = 0,

so that p and q at *any* thresholds are a dual point once their sum is right and these cumulative sums are not negative.
All conditions are homogeneous: multiples with c in [0, 1] are dual points, too. With phi(x) = x log x the conjugate is

    F*(-u) = sum s (phi(p) + phi(1-p) + phi(q) + phi(1-q)) + sum_k n_k (phi(nu_k) - phi(1 + nu_k)).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from ..design import Design
from ..messages import value_error
from .base import UNIT, DataLoss, Evaluation, Loss, gamma
from .rowwise import TILTED, largest_tilt
from .thresholds import Classes, Margins, ThresholdNewton, width_cost

Array = np.ndarray[Any, Any]

LARGEST_OFFSET = 1e10  # of log odds: double precision resolves them to 2e-6 there, and Newton's steps no longer end
_LEAST = 2.0**-52  # the probability that a held-out class has at least: a fold may have had no row of it


class Ordinal(Loss):
    r"""Minus the log-likelihood of ordered classes (proportional odds); smoothness 1/2.

    .. math:: -\log\bigl(\sigma(\theta_y - z) - \sigma(\theta_{y-1} - z)\bigr), \qquad
        \theta_{-1} = -\infty < \theta_0 < \ldots < \theta_{K-2} < \theta_{K-1} = \infty

    Labels are the codes 0, 1, .. of the classes. The thresholds of each task are at their best for its scores; they
    stand in place of an intercept. With two classes this is the logistic loss, the threshold minus its intercept.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> loss = ts.losses.Ordinal()
    >>> margins = np.array([[-1.0, 1.0]])  # thresholds less the score
    >>> loss.class_probabilities(margins).round(3)
    array([[0.269, 0.462, 0.269]])
    >>> loss.deviance(np.array([1]), margins).round(3)
    array([1.544])
    """

    label = "ordinal deviance"
    formula = "1/n̄ Σ_t Σ_i −log(σ(θ_t,y − x_i·w_t) − σ(θ_t,y−1 − x_i·w_t))"
    labels = "ordered"
    probabilities = True

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "ordinal"}

    def class_probabilities(self, z: Array) -> Array:
        """Of the classes on a last axis, from thresholds less the score."""
        first, last = np.full((*z.shape[:-1], 1), -np.inf), np.full((*z.shape[:-1], 1), np.inf)
        return interval_probabilities(np.concatenate([first, z], axis=-1), np.concatenate([z, last], axis=-1))

    def deviance(self, y: Array, z: Array) -> Array:
        """``-2 log P(y)`` of codes y, given on a last axis of z the thresholds less the score. A class that no row of a
        fit had counts as if it had the probability 2e-16."""
        codes = np.broadcast_to(np.asarray(y).astype(np.intp), z.shape[:-1])[..., None]
        count = z.shape[-1]
        upper = np.where(codes < count, np.take_along_axis(z, np.minimum(codes, count - 1), axis=-1), np.inf)
        lower = np.where(codes > 0, np.take_along_axis(z, np.maximum(codes - 1, 0), axis=-1), -np.inf)
        return -2.0 * np.log(np.maximum(interval_probabilities(lower, upper)[..., 0], _LEAST))

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return OrdinalOnData(design, y, offset)


def interval_probabilities(lower: Array, upper: Array) -> Array:
    """``sigma(upper) - sigma(lower)``, by whichever of both tails cancels less."""
    with np.errstate(invalid="ignore"):
        flip = lower + upper > 0.0
    low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    with np.errstate(over="ignore"):
        small, large = np.exp(np.minimum(low, 0.0)), np.exp(-np.abs(high))
        first = np.where(low <= 0.0, small / (1.0 + small), 1.0 / (1.0 + np.exp(-np.maximum(low, 0.0))))
        second = np.where(high >= 0.0, 1.0, large) / (1.0 + large)
    return np.asarray(np.maximum(second - first, 0.0))


class OrdinalOnData(DataLoss):
    """`Ordinal` on data. `Evaluation.margin` are `Margins`; below the coefficients of the design's nuisance columns, of
    which that of the constant is 0, `Evaluation.nuisance` has the thresholds between the classes of each task."""

    name = "ordinal"
    smoothness = 0.5

    def __init__(self, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(design)
        if not design.fit_intercept:
            raise value_error(
                "the ordinal loss has thresholds, which take up any constant: {fit_intercept} must be True"
            )
        weights = np.ones(design.n_samples) if design.weights is None else design.weights
        largest = 0.0 if offset is None else float(np.max(np.abs(offset), initial=0.0, where=weights > 0.0))
        if largest > LARGEST_OFFSET:
            raise value_error(
                "{offset} is as large as {largest:.3g}: the ordinal loss adds it to the log odds, which double "
                "precision resolves to {step:.0e} there. Use numbers of at most {most:g}; odds beyond a log of some "
                "hundreds are certain.",
                largest=largest,
                step=float(np.spacing(largest)),
                most=LARGEST_OFFSET,
            )
        if np.any((y < 0.0) | (y != np.round(y))):
            raise value_error("{y}: labels of the ordinal loss are the codes 0, 1, .. of ordered classes")
        self._weights, self._offset, self._root = weights, offset, design.samples.root
        self._inverse_root = np.divide(1.0, self._root, out=np.zeros_like(self._root), where=self._root > 0)
        self._classes = Classes(design, y, weights)
        self.has_intercept = np.zeros(design.n_tasks, dtype=bool)
        self._columns = design.nuisance_columns
        # The thresholds take up the constant, which comes first in the basis.
        self._newton = ThresholdNewton(self._classes, (design.nuisance_basis * self._inverse_root)[1:])
        low, high = self._classes.bounds(self._newton.null)
        ridits = Margins.at(self._classes, np.zeros(design.n_samples), low, high)
        #: a dual point all of whose forces are positive: that of scores of 0, n F (1 - F') with the shares below a
        #: class and up to it
        self._reserve = ridits.over, ridits.under
        sides = 0.25 * np.isfinite(low) + 0.25 * np.isfinite(high)
        live = np.arange(self._classes.shape[1]) < self._classes.counts[:, None]
        self._metric = np.where(weights > 0.0, self._classes.of_rows(np.where(live, sides, 0.0)), 0.0)
        self.null = self.settled(self.evaluate(np.zeros(design.n_samples)))

    def label_sizes(self) -> Array:
        if self._offset is None:
            return super().label_sizes()
        return self.design.task_norms(self._root * self._offset)

    def thresholds(self, nuisance: Array) -> Array:
        return self._classes.between_labels(nuisance[self.design.n_nuisance :].T)

    # -- points ---------------------------------------------------------------------------------------------------

    def sketch(self, z: Array, start: Array | None = None) -> Evaluation:
        return self.evaluate(z, start, accuracy=1e-9)

    def evaluate(self, z: Array, start: Array | None = None, accuracy: float = 0.0) -> Evaluation:
        design, newton, count = self.design, self._newton, self.design.n_nuisance
        raw = z * self._inverse_root
        if self._offset is not None:
            raw += self._offset
        known, part = None, np.zeros_like(raw)
        if start is not None and start.shape == (count + self._classes.shape[1] - 1, design.n_tasks):
            known = np.ascontiguousarray(start[count:].T)
            for column, values in zip(self._columns[1:], start[1:count], strict=True):
                part += column * design.per_sample(values)
        thresholds, part, at = newton.solve(raw, known, part, accuracy)
        by_task = newton.value_of(at)
        nuisance = np.zeros((count, design.n_tasks))
        if count > 1:
            nuisance = design.nuisance_fit(part)
            thresholds = thresholds - nuisance[0][:, None]
            nuisance[0] = 0.0
        slope, curvature = self._root * (at.under - at.over), at.curvature
        done = newton.explained(by_task)
        if done.any():  # zero is a dual point, and the right one where nothing is left to explain
            gone = design.per_sample(done)
            at = replace(at, over=np.where(gone, 0.0, at.over), under=np.where(gone, 0.0, at.under))
        at = self._with_positive_forces(at)
        residual = self._root * (at.under - at.over)
        nuisance = np.vstack([nuisance, thresholds.T])
        return Evaluation(float(by_task.sum()), residual, nuisance, curvature, at, slope=slope)

    def at_thresholds(self, raw: Array, thresholds: Array) -> Evaluation:
        classes = self._classes
        if self._offset is not None:
            raw = raw + self._offset
        lower, upper = classes.stored_bounds(thresholds)
        at = Margins.at(classes, raw, lower, upper)
        with np.errstate(invalid="ignore"):
            apart = np.where(classes.codes[:, 1:] >= 0, lower[:, 1:] - upper[:, :-1], 0.0)
        below, above = (
            np.where(np.isfinite(lower), np.abs(lower), 0.0),
            np.where(np.isfinite(upper), np.abs(upper), 0.0),
        )
        rows = [np.where(np.isfinite(part), 2.0 * np.abs(part), 0.0) for part in (at.above, at.below)]
        blurs = (
            2.0 * UNIT * (rows[0] + classes.of_rows(above)),
            2.0 * UNIT * (rows[1] + classes.of_rows(below)),
            2.0 * UNIT * (below + above),
        )
        apart = np.pad(np.nan_to_num(apart, nan=0.0), ((0, 0), (1, 0)))
        at = replace(at, apart=apart, blurs=blurs)
        total = float(self.design.exact_products(self._weights, at.values).sum())
        total += float(np.sum(np.where(classes.mass > 0.0, classes.mass * width_cost(at.width), 0.0)))
        if np.any(apart < 0.0):  # thresholds that are not in order
            total = math.inf
        return Evaluation(total, self._root * (at.under - at.over), np.empty(0), margin=at)

    def objective_error(self, at: Evaluation, error: Array) -> float:
        """And what the rounding of thresholds adds."""
        found = super().objective_error(at, error)
        if not isinstance(at.margin, Margins) or at.margin.blurs is None:
            return found
        point, (first, second, wide) = at.margin, at.margin.blurs
        with np.errstate(invalid="ignore"):
            rise = np.where(
                self._classes.mass > 0.0, width_cost(point.width - wide) - width_cost(point.width), 0.0
            )
        rows = point.over * first + point.under * second + 0.125 * (np.square(first) + np.square(second))
        return (
            found
            + float(self._weights @ rows)
            + 2.0 * float(np.sum(self._classes.mass * np.nan_to_num(rise)))
        )

    def explained(self, at: Evaluation) -> Array:
        nothing = self.design.task_sums(np.abs(at.residual)) == 0.0
        return nothing & (self._classes.counts > 1) & (self.design.n_nuisance > 1)

    def threshold_model(self, at: Evaluation) -> tuple[Array, Array, Array]:
        """Two terms a row, on either side of its class, and the widths of the classes between two others."""
        point, classes = at.margin, self._classes
        bent = [np.exp(-np.abs(side)) / np.square(1.0 + np.exp(-np.abs(side))) for side in (point.above, point.below)]
        over, under = (np.where(self._weights > 0.0, np.sqrt(part), 0.0) for part in bent)
        n, count = len(over), int(classes.counts[0])
        odds = np.where(classes.middle, point.odds, 0.0)[0]
        stiff = np.sqrt(classes.mass[0] * odds * (1.0 + odds))
        own, middle = classes.cell, np.flatnonzero(classes.middle[0])
        columns = np.zeros((2 * n + len(middle), max(count - 1, 0)))
        above, below = np.flatnonzero(own < count - 1), np.flatnonzero(own > 0)
        columns[above, own[above]] = -(self._root * over)[above]
        columns[n + below, own[below] - 1] = (self._root * under)[below]
        columns[2 * n + np.arange(len(middle)), middle] = stiff[middle]
        columns[2 * n + np.arange(len(middle)), middle - 1] = -stiff[middle]
        return over, -under, columns

    # -- dual points ----------------------------------------------------------------------------------------------

    def _forces(self, over: Array, under: Array) -> tuple[Array, Array]:
        """By middle class the cumulative sums n_k nu_k of a dual point, 0 for others, and how far rounding may have
        them off."""
        classes = self._classes
        first, second = classes.exact_sums(over), classes.exact_sums(under)
        before = np.cumsum(first, axis=1) - first
        after = np.cumsum(second, axis=1)
        slack = gamma(2 * classes.shape[1] + 8) * (before + first + after)
        return np.where(classes.middle, before - after, 0.0), np.where(classes.middle, slack, 0.0)

    def _with_positive_forces(self, at: Margins, spare: Array | float = 0.0) -> Margins:
        """The margins with a dual point whose forces are above `spare`: where one is not, as much of the reserve is
        mixed in as raises it. A negative force is never rounded up to 0: the point would not be in the domain."""
        classes = self._classes
        for _ in range(3):
            force, slack = self._forces(at.over, at.under)
            low = force - 4.0 * slack - 2.0 * spare
            lacking = classes.middle & (low <= 0.0) & (classes.mass > 0.0)
            busy = self.design.task_sums(at.over + at.under) > 0.0
            lacking &= busy[:, None]
            if not lacking.any():
                break
            reserve = self._forces(*self._reserve)[0]
            share = (
                np.where(lacking, -low / np.maximum(reserve - low, 1e-300), 0.0).max(axis=1) * 1.001
                + 4.0 * UNIT
            )
            share = np.where(lacking.any(axis=1), np.minimum(share, 1.0), 0.0)
            by_row = self.design.per_sample(share)
            over, under = self._reserve
            at = replace(
                at, over=at.over + by_row * (over - at.over), under=at.under + by_row * (under - at.under)
            )
        return replace(at, force=force, slack=slack)

    def settled(self, at: Evaluation) -> Evaluation:
        """The exact dual point has ``over + a over (1 - over)`` and ``under - a under (1 - under)``, `a` a combination
        of the nuisance columns with ``|a| <= tilt``, so that it stays in [0, 1]; its forces move as little."""
        point: Margins = at.margin
        tilt, leak, slack = self._distance(point)
        if np.any(tilt > 1e-12):  # worth a step
            again = self._with_positive_forces(self._balanced(point))
            nearer = self._distance(again)
            if np.max(nearer[0]) < np.max(tilt):
                point, (tilt, leak, slack) = again, nearer
        assert point.force is not None
        short = np.any(self._classes.middle & (point.force - slack < 0.0), axis=1)
        if np.any(short & (tilt <= TILTED)):  # a force that what is left of the tilt could make negative
            again = self._with_positive_forces(point, slack)
            nearer = self._distance(again)
            point, (tilt, leak, slack) = again, nearer
            short = np.any(self._classes.middle & (point.force - slack < 0.0), axis=1)
        lost = short | ~(tilt <= TILTED)
        if lost.any():
            gone = self.design.per_sample(lost)
            point = replace(
                point, over=np.where(gone, 0.0, point.over), under=np.where(gone, 0.0, point.under)
            )
            keep = ~lost[:, None]
            point = replace(point, force=np.where(keep, self._forces(point.over, point.under)[0], 0.0))
            tilt, leak, slack = (
                np.where(lost, 0.0, tilt),
                np.where(lost, 0.0, leak),
                np.where(keep, slack, 0.0),
            )
        residual = self._root * (point.under - point.over)
        if np.array_equal(residual, at.residual):
            residual = at.residual
        point = replace(point, slack=slack)
        lengths = self.design.task_norms(residual)
        return replace(
            at, residual=residual, margin=point, leak=leak + gamma(4) * lengths, tilt=tilt, lengths=lengths
        )

    def _distance(self, point: Margins) -> tuple[Array, Array, Array]:
        """`tilt` and `leak` of a dual point, and how far the exact forces may be from its own."""
        design, classes = self.design, self._classes
        residual = self._root * (point.under - point.over)
        used = np.isfinite(design.nuisance_sizes)
        sizes = np.where(used, design.nuisance_sizes, 0.0)
        found, lengths = design.samples.orthogonality(residual)
        off = (found + gamma(4) * lengths) * sizes
        rooms = point.over * (1.0 - point.over), point.under * (1.0 - point.under)
        room = rooms[0] + rooms[1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if design.n_nuisance == 1:
                tilt = off[0] / design.task_sums(self._weights * room)
            else:
                tilt = largest_tilt(design, self._weights * room, off, used)
            tilt = tilt * (1.0 + gamma(design.n_samples + 16))
            leak = (
                tilt
                * design.task_norms(self._root * room)
                * (1.0 + gamma(design.n_samples + 16))
            )
        nothing = design.task_sums(np.abs(point.over) + np.abs(point.under)) == 0.0
        tilt, leak = np.where(nothing, 0.0, tilt), np.where(nothing, 0.0, leak)
        tilt = np.where(np.isfinite(tilt) & np.isfinite(leak), tilt, np.inf)
        force, slack = self._forces(point.over, point.under)
        moved = np.cumsum(classes.sums(self._weights * room), axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            slack = slack + np.where(nothing, 0.0, tilt)[:, None] * moved * (
                1.0 + gamma(design.n_samples + 16)
            )
        return tilt, leak, np.where(classes.middle, slack + gamma(8) * np.abs(force), 0.0)

    def _balanced(self, point: Margins) -> Margins:
        """The dual point moved towards one that is orthogonal to the nuisance columns."""
        design = self.design
        directions = design.nuisance_basis * self._inverse_root
        rooms = point.over * (1.0 - point.over), point.under * (1.0 - point.under)
        s = self._weights * (rooms[0] + rooms[1])
        off = design.task_sums(directions * (self._weights * (point.under - point.over)))
        gram = np.stack([design.task_sums(directions * (row * s)) for row in directions]).transpose(2, 0, 1)
        step = np.einsum("tab,bt->at", np.linalg.pinv(gram, hermitian=True), off)
        move = np.zeros(design.n_samples)
        for row, values in zip(directions, step, strict=True):
            move += row * design.per_sample(values)
        far = np.maximum.reduceat(np.abs(move), design.offsets[:-1]) > TILTED
        move = np.where(design.per_sample(far), 0.0, move)
        return replace(point, over=point.over + rooms[0] * move, under=point.under - rooms[1] * move)

    # -- the gap --------------------------------------------------------------------------------------------------

    def terms(self, at: Evaluation, scale: float) -> float:
        point: Margins = at.margin
        assert point.force is not None
        classes = self._classes
        if np.any(point.force < 0.0):
            return math.inf
        rows = _excess(scale * point.over, point.above, point.costs[0])[0]
        rows += _excess(scale * point.under, point.below, point.costs[1])[0]
        odds = np.divide(scale * point.force, classes.mass, out=np.zeros(classes.shape), where=classes.middle)
        wide = np.where(classes.middle, _width_excess(odds, point.width)[0], 0.0)
        return float(self._weights @ np.maximum(rows, 0.0)) + float(
            np.sum(classes.mass * np.maximum(wide, 0.0))
        )

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        """Row by row and class by class at both ends of where the exact dual point, and the width of a class, may be:
        the sums are convex in each. Errors of scores and thresholds are seen through the derivatives."""
        here, there, classes, s = primal.margin, dual.margin, self._classes, self._weights
        assert isinstance(here, Margins) and isinstance(there, Margins) and dual.tilt is not None
        assert there.force is not None and there.slack is not None
        tilt, total = self.design.per_sample(dual.tilt), 0.0
        nothing = np.zeros(1)
        blurs = (nothing, nothing, nothing) if here.blurs is None else here.blurs
        for p, margin, cost, slope, blur in (
            (there.over, here.above, here.costs[0], here.over, blurs[0]),
            (there.under, here.below, here.costs[1], here.under, blurs[1]),
        ):
            move = p * (1.0 - p) * tilt + 4.0 * UNIT * p
            rows = np.zeros_like(p)
            for end in (np.maximum(p - move, 0.0), np.minimum(p + move, 1.0)):
                excess, sizes = _excess(scale * end, margin, cost)
                rows = np.maximum(rows, excess + 16.0 * UNIT * sizes)
            rows += (np.abs(slope - scale * p) + move + 8.0 * UNIT * slope) * blur + 0.25 * np.square(blur)
            total += float(s @ np.where(s > 0.0, rows, 0.0))
        total += self._widths(here, there, blurs[2], dual.tilt, scale)
        moved = float(np.linalg.norm(error))
        away = np.abs((here.under - here.over) - scale * (there.under - there.over))
        away += tilt * (there.over * (1.0 - there.over) + there.under * (1.0 - there.under))
        away += 16.0 * UNIT * (here.under + here.over + there.under + there.over)
        total += float(np.linalg.norm(self._root * away)) * moved + moved**2 * self.smoothness
        return total * (1.0 + gamma(self.design.n_samples + 32)) if classes.counts.any() else total

    def _widths(self, here: Margins, there: Margins, blur: Array, tilt: Array, scale: float) -> float:
        """What the widths of classes add, and gaps between the bounds of neighbours."""
        classes = self._classes
        assert there.force is not None and there.slack is not None
        worst = np.zeros(classes.shape)
        mass = np.where(classes.mass > 0.0, classes.mass, 1.0)
        for force in (np.maximum(there.force - there.slack, 0.0), there.force + there.slack):
            for width in (here.width - blur, here.width + blur):
                excess, sizes = _width_excess(scale * force / mass, width)
                worst = np.maximum(worst, excess + 16.0 * UNIT * sizes)
        total = float(np.sum(np.where(classes.mass > 0.0, classes.mass * worst, 0.0)))
        if here.apart is not None and here.apart.any():
            # between two classes with rows: classes without any, whose dual variable is the flow from one to the other
            over, under = (np.cumsum(classes.exact_sums(part), axis=1) for part in (there.over, there.under))
            flow = np.maximum(over - under, 0.0) + (tilt[:, None] + gamma(64 + classes.shape[1])) * (over + under)
            total += scale * float(np.sum(flow[:, :-1] * here.apart[:, 1:])) * (1.0 + gamma(64))
        return total

    def metric(self, at: Evaluation, scale: float, gap: float) -> Array:
        """A quarter for each threshold beside the class of a row: each half of the gap holds one softplus of it, whose
        derivative has the Lipschitz constant 1/4. So for any thresholds, not only the best ones."""
        return self._metric


def _excess(p: Array, margin: Array, cost: Array) -> tuple[Array, Array]:
    """``softplus(m) + phi(p) + phi(1 - p) - p m``, the binary divergence of p from sigma(m), and the sizes of its
    parts; `cost` is the first."""
    entropy = xlogy(p, p) + xlogy(1.0 - p, 1.0 - p)
    with np.errstate(invalid="ignore"):
        product = np.where(p > 0.0, p * margin, 0.0)
    return cost + entropy - product, cost - entropy + np.abs(product)


def _width_excess(odds: Array, width: Array) -> tuple[Array, Array]:
    """``-log(1 - exp(-d)) + phi(a) - phi(1 + a) + a d``, for odds a and a width d, and the sizes of its parts."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(odds > 0.0, odds * np.log1p(1.0 / odds), 0.0)
        along = np.where(odds > 0.0, odds * width, 0.0)
    level, cost = np.log1p(odds), width_cost(width)
    return (cost - level) + (along - own), cost + level + along + own
