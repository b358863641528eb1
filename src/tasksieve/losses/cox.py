r"""Cox's proportional hazards: the partial likelihood of times to an event, with risk sets per task and stratum.

    F(z) = sum_g d_g log sum_{k at risk at t_g} s_k exp(z_k) - sum_k e_k z_k,    e_k = s_k if row k ends with an event,

over the event times t_g of every stratum, d_g the weight of the events there (Breslow); Efron's treatment of ties is in
`risk_sets`. A constant added to a stratum changes nothing: there is no intercept, and minus the gradient, ``u = e - M``
with the expected events M, sums to zero at every z.

The gap is in `risk_gaps`. It bounds the dual optimum as that of a Poisson model does: by the log-sum inequality
``sum_k KL(M_k || M_k*) + sum_k KL(M_k* || m_k) <= G`` for the expected events of the dual point, of the optimum and of
the primal point, and no M_k exceeds the events at which row k is at risk. Rows in no risk set have u = 0.

Rounding, and unpenalised features Z. The dual point is *defined* as the exact ``e - M(theta)`` at ``theta = z + Z g``,
g such that ``Z'u = 0`` exactly. It lies in the domain and is balanced in every stratum; what is computed is near to it:

- The logarithms of all computed sums at z are off by no more than `RiskPoint.rounding`.
- Along a direction v the second derivative of F changes at most by the factor exp(range of v in a risk set). So F grows
  beyond its tangent in g by at least ``(1/2 - tilt/3) g'Hg`` wherever ``|Z g| <= tilt``, with H the second derivative
  in g. Its minimum lies there if that exceeds ``|Z'u|_{H^-1} |g|_H`` on the boundary, where ``|g|_H`` is at least
  ``tilt/max_k |Z_k|_{H^-1}``: so ``tilt = 2.2 max_k |Z_k|_{H^-1} |Z'u|_{H^-1}`` is enough if it is at most 0.05.
- Moving scores by at most tilt changes the logarithm of every M and every other sum by at most 2 tilt.

So columns of length 1 see a difference of at most ``(exp(2 tilt + rounding) - 1) ||M/sqrt(s)||``, the `leak`, and the
gap changes as `risk_gaps.Excess` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..design import Design
from ..messages import value_error
from ..outcomes import SURVIVAL
from ..user_warnings import warn
from .base import DataLoss, Evaluation, Loss, gamma
from .divergence import poisson_metric
from .partial_likelihood import held_out_contributions
from .risk_gaps import nested_excess, scaled_point, softmax_excess
from .risk_models import RiskModel
from .risk_sets import RiskPoint, RiskSets, risk_sets

Array = np.ndarray[Any, Any]

TIES = ("efron", "breslow")
_TILTED = 0.05  # the largest move of a score that `tilt` may stand for
_ROOM = 2e-13  # relative to the expected events: what Newton's method for scaled points with entry times may leave


class Cox(Loss):
    r"""Cox's partial likelihood of times to an event.

    .. math:: F = \sum_g d_g \log \sum_{k \in R_g} s_k e^{z_k} - \sum_{k: \text{event}} s_k z_k

    over the event times of each task and stratum, with the rows at risk :math:`R_g`, row weights s and the weight d of
    the events. Inside, the value of a saturated model is subtracted, so that a perfect fit costs nothing: that is half
    the deviance, and `tol` is relative to that of the empty model. Labels are arrays of `tasksieve.outcomes.SURVIVAL`.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default="efron"
        How events at the same time are treated.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.losses.Cox(), ts.losses.Cox(ties="breslow").certificate_form()
    (Cox(ties='efron'), {'name': 'cox', 'ties': 'breslow'})
    """

    label = "partial-likelihood deviance"
    formula = "1/n̄ Σ_t Σ_events (log Σ_at risk exp(x_k·w_t) − x_i·w_t)"
    labels = "survival"
    by_row = False

    def __init__(self, ties: str = "efron") -> None:
        if ties not in TIES:
            raise ValueError(f"ties must be one of {TIES}; got {ties!r}")
        self.ties = ties

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "cox", "ties": self.ties}

    def held_out(self, y: Array, z: Array, train: Array, test: Array) -> Array:
        return held_out_contributions(y, z, train, test, self.ties)

    def held_out_size(self, y: Array, test: Array) -> float:
        return float(np.sum(test[y["event"]]))

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return CoxOnData(self, design, y, offset)


@dataclass
class CoxPoint:
    """What `Evaluation.margin` is: scores with offset and nuisance part, flat, expected events, flat, and the risk sets
    at these scores."""

    scores: Array
    mean: Array
    parts: list[RiskPoint]


class CoxOnData(DataLoss):
    """`Cox` on data."""

    name = "cox"
    differentiable = True

    def __init__(self, loss: Cox, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(design)
        if y.dtype != SURVIVAL:
            raise TypeError(f"Cox's loss needs labels of dtype tasksieve.outcomes.SURVIVAL; got {y.dtype}")
        self.has_intercept = np.zeros(design.n_tasks, dtype=bool)
        self._offset = offset
        self._weights = np.ones(design.n_samples) if design.weights is None else design.weights
        root = design.samples.root
        self._inverse_root = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        self._sets = risk_sets(y, self._weights, design.offsets, loss.ties == "efron")
        self._events, self._most = np.zeros((2, design.n_samples))
        self._live = np.zeros(design.n_samples, dtype=bool)
        for sets in self._sets:
            self._events[sets.rows], self._most[sets.rows] = sets.events, sets.largest
            self._live[sets.rows] = True
        self._flat = [self._inverse_root[sets.rows] for sets in self._sets]
        # directions in which unpenalised features move scores, in an orthonormal basis; constants change nothing
        first = int(design.fit_intercept)
        self._directions = design.nuisance_basis[first:] * self._inverse_root
        self._columns = design.nuisance_columns[first:]
        self._n_events = float(self._events.sum())
        self._with_events = design.task_sums(self._events) > 0.0
        self._check(design)
        self.constant = float(sum(sets.saturated.sum() for sets in self._sets))
        self.null = self.settled(self.evaluate(np.zeros(design.n_samples)))
        if self.null.value <= self._value_error(self.null):  # every event is the only row at risk
            nothing = np.zeros(design.n_samples)
            self.null = self.settled(replace(self.null, residual=nothing, slope=nothing))

    def _check(self, design: Design) -> None:
        without = np.flatnonzero(~self._with_events)
        if len(without) == design.n_tasks:
            raise value_error("no row that counts ends with an event: there is nothing to fit")
        if len(without):
            many = f"tasks {', '.join(map(str, without))} (of tasks_) have" if len(without) > 1 else ""
            words = many or f"task {without[0]} (of tasks_) has"
            warn(f"{words} no events: nothing of it counts in the loss", UserWarning)

    # -- values ---------------------------------------------------------------------------------------------------

    def _at(self, scores: Array) -> tuple[float, CoxPoint]:
        parts = [sets.at(scores[sets.rows]) for sets in self._sets]
        mean = np.zeros(self.design.n_samples)
        for sets, part in zip(self._sets, parts, strict=True):
            mean[sets.rows] = part.mean
        return float(sum(part.values.sum() for part in parts)), CoxPoint(scores, mean, parts)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        return self._evaluated(z, start, 4e-16)

    def sketch(self, z: Array, start: Array | None = None) -> Evaluation:
        return self._evaluated(z, start, 1e-8)

    def _evaluated(self, z: Array, start: Array | None, accuracy: float) -> Evaluation:
        design = self.design
        scores = z * self._inverse_root
        if self._offset is not None:
            scores = scores + self._offset
        nuisance = np.zeros((design.n_nuisance, design.n_tasks))
        if len(self._directions):
            part = self._best_nuisance(scores, start, accuracy)
            scores = scores + part
            nuisance = design.nuisance_fit(part)
        value, point = self._at(scores)
        if not np.isfinite(value):  # too far out: no iterate stays here
            none = np.zeros(design.n_samples)
            return Evaluation(np.inf, none, nuisance, none, point)
        residual = (self._events - point.mean) * self._inverse_root
        return Evaluation(value, residual, nuisance, point.mean * np.square(self._inverse_root), point)

    def quadratic_model(self, at: Evaluation) -> RiskModel | None:
        point: CoxPoint = at.margin
        if not RiskModel.serves(self._sets, point.parts):
            return None
        return RiskModel(self.design, self._sets, point.parts, at.residual, self._inverse_root)

    def at_scores(self, raw: Array) -> Evaluation:
        value, point = self._at(raw if self._offset is None else raw + self._offset)
        return Evaluation(value, (self._events - point.mean) * self._inverse_root, np.empty(0), margin=point)

    def label_sizes(self) -> Array:
        if self._offset is None:
            return super().label_sizes()
        live = np.where(self._live, self.design.samples.weighted(self._offset), 0.0)
        return self.design.task_norms(live)

    # -- unpenalised features ---------------------------------------------------------------------------------------

    def _hessians(self, point: CoxPoint, columns: Any) -> tuple[Array, Array]:
        """By task: the second derivative in coefficients of columns, and the diagonal with diag(M) in its place."""
        count, tasks = len(columns), self.design.n_tasks
        hessian, sides = np.zeros((tasks, count, count)), np.zeros((tasks, count))
        for sets, part in zip(self._sets, point.parts, strict=True):
            own, above = sets.hessian_of(part, np.array([column[sets.rows] for column in columns]), tasks)
            hessian, sides = hessian + own, sides + above
        return hessian, sides

    def _task_values(self, point: CoxPoint) -> Array:
        values = np.zeros(self.design.n_tasks)
        for sets, part in zip(self._sets, point.parts, strict=True):
            np.add.at(values, sets.task_of_block, part.values)
        return values

    def _best_nuisance(self, raw: Array, start: Array | None, accuracy: float) -> Array:
        """What unpenalised features add to scores at their optimum: Newton's method in every task, with steps that do
        not raise the loss."""
        design, directions = self.design, self._directions
        part = np.zeros(design.n_samples)
        if start is not None and start.shape == (design.n_nuisance, design.n_tasks):
            for column, values in zip(self._columns, start[-len(self._columns) :], strict=True):
                part += column * design.per_sample(values)
        _, point = self._at(raw + part)
        value = self._task_values(point)
        for _ in range(100):
            pulls = directions * (self._events - point.mean)
            gradient = design.task_sums(pulls)
            size = design.task_sums(np.abs(directions) * (self._events + point.mean))
            open_ = (np.abs(gradient) > accuracy * math.sqrt(len(raw)) * size).any(axis=0)
            if not open_.any():
                break
            hessian, sides = self._hessians(point, directions)
            diagonal = np.einsum("taa->ta", hessian)
            diagonal += 1e-14 * sides.max(axis=1, keepdims=True) + 1e-300
            step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
            step[:, ~open_] = 0.0
            move = np.einsum("an,an->n", directions, np.repeat(step, design.samples.lengths, axis=1))
            longest = np.maximum.reduceat(np.abs(move), design.offsets[:-1])
            length = np.minimum(1.0, 5.0 / np.maximum(longest, 1e-300))
            for _ in range(40):
                candidate = part + design.per_sample(length) * move
                _, there = self._at(raw + candidate)
                found = self._task_values(there)
                worse = open_ & ~(found <= value + 4e-15 * (np.abs(value) + 1.0))
                if not worse.any():
                    break
                length[worse] *= 0.5
            else:
                break  # rounding has been reached
            part, point, value = candidate, there, found
            if not np.any(length * longest > 1e-15):
                break
        return part

    def nuisance_hessian(self, at: Evaluation) -> tuple[Array, float]:
        hessian, sides = self._hessians(at.margin, self._directions)
        return hessian[0], float(sides[0].max(initial=0.0))

    def explained(self, at: Evaluation) -> Array:
        nothing = self.design.task_sums(np.abs(at.residual)) == 0.0
        return nothing & self._with_events & (len(self._directions) > 0)

    def _tilts(self, point: CoxPoint, residual: Array, off: Array) -> Array:
        """By task: how far a score must be moved at most so that the exact residual is orthogonal to the unpenalised
        features; `off` is how far the exact residual is from the computed one, in norm. Infinite where that is not
        known to be possible."""
        design, tasks = self.design, self.design.n_tasks
        tilt = np.zeros(tasks)
        if not len(self._directions):
            return tilt
        first = int(design.fit_intercept)
        sizes = design.nuisance_sizes[first:]
        apart = design.samples.orthogonality(residual)[0][first:] + off
        hessians, sides = self._hessians(point, self._columns)
        rounding = self._rounding(point)
        for t in range(tasks):
            here = np.flatnonzero(np.isfinite(sizes[:, t]))
            rows = slice(design.offsets[t], design.offsets[t + 1])
            if not len(here) or not self._events[rows].any():
                continue
            long = np.sqrt(sides[t, here])
            tilt[t] = np.inf
            if not np.all(long > 0.0) or any(part.weights is None for part in point.parts):
                continue
            scaled = hessians[t][np.ix_(here, here)] / np.outer(long, long)
            least = float(np.linalg.eigvalsh(scaled)[0]) - len(here) * (8.0 * rounding[t] + gamma(64))
            if least <= 0.0:
                continue
            reach = np.stack([self._columns[k][rows] for k in here], axis=1)[self._live[rows]] / long
            farthest = float(np.max(np.linalg.norm(reach, axis=1)))
            found = 2.2 * farthest * float(np.linalg.norm(apart[here, t] * sizes[here, t] / long)) / least
            tilt[t] = found if found <= _TILTED else np.inf
        return tilt * (1.0 + gamma(256))

    # -- certificates -----------------------------------------------------------------------------------------------

    def _rounding(self, point: CoxPoint) -> Array:
        """By task: how far logarithms of the sums at a point may be off."""
        rounding = np.zeros(self.design.n_tasks)
        for sets, part in zip(self._sets, point.parts, strict=True):
            np.maximum.at(rounding, sets.task_of_block, part.rounding)
        return rounding

    def settled(self, at: Evaluation) -> Evaluation:
        point: CoxPoint = at.margin
        rounding, spread = self._rounding(point), self.design.task_norms(point.mean * self._inverse_root)
        lengths = self.design.task_norms(at.residual)
        own = np.expm1(np.minimum(rounding, 1.0)) * spread + gamma(4) * lengths
        tilt = self._tilts(point, at.residual, own)
        lost = ~(tilt + rounding <= 2.0 * _TILTED)
        if lost.any():
            at = replace(at, residual=np.where(self.design.per_sample(lost), 0.0, at.residual))
            tilt = np.where(lost, 0.0, tilt)
        nothing = self.design.task_sums(np.abs(at.residual)) == 0.0
        leak = np.expm1(2.0 * tilt + rounding) * spread + gamma(8) * lengths
        for sets in self._sets:
            if not sets.nested:  # room for Newton's method that finds scaled points
                own_tasks, room = np.unique(sets.task_of_block), 40.0 if len(self._directions) else 16.0
                leak[own_tasks] = room * leak[own_tasks] + _ROOM * spread[own_tasks]
        leak = np.where(nothing, 0.0, leak)
        return replace(at, leak=leak, tilt=tilt, lengths=np.where(nothing, 0.0, lengths))

    def _scales(self, dual: Evaluation, scale: float) -> Array:
        """By task: the scale, and 0 where the dual point is zero."""
        return np.where(self.design.task_sums(np.abs(dual.residual)) > 0.0, scale, 0.0)

    def terms(self, at: Evaluation, scale: float) -> float:
        scales = self._scales(at, scale)
        if np.all(scales[self._with_events] == 1.0):
            return 0.0
        point: CoxPoint = at.margin
        room = 4.0 * _ROOM * scales * self.design.task_norms(point.mean * self._inverse_root)
        total = 0.0
        for k, (sets, part) in enumerate(zip(self._sets, point.parts, strict=True)):
            if sets.nested:
                total += nested_excess(sets, part, part, scales).value
                continue
            there = self._scaled(k, part, scales, room)
            if there is None:
                total += self._convex(sets, part, part, scales)
                continue
            away = (there.scores - part.scores) / self._flat[k]
            total += softmax_excess(sets, part, there).value + float(np.max(room) * np.linalg.norm(away))
        return total

    def _scaled(self, k: int, dual: RiskPoint, scales: Array, room: Array) -> RiskPoint | None:
        """Of risk sets with entry times: where the gradient is the scaled one but for `room`; None: not found."""
        own = scales[self._sets[k].task_of_block]
        if np.all(own == 1.0):
            return dual
        return scaled_point(self._sets[k], dual, scales, room, self._flat[k]) if np.all(own > 0.0) else None

    @staticmethod
    def _convex(
        sets: RiskSets, primal: RiskPoint, dual: RiskPoint, scales: Array, delta: float = 0.0
    ) -> float:
        """What the loss adds to the gap is convex along the ray from zero, where it is the value itself, to the dual
        point."""
        least = float(np.min(scales[sets.task_of_block]))
        most = float(np.max(scales[sets.task_of_block]))
        value = float(primal.values.sum()) + delta * float(primal.sizes.sum())
        whole = softmax_excess(sets, primal, dual).upper(delta) if most > 0.0 else 0.0
        return most * whole + (1.0 - least) * max(value, 0.0)

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        assert dual.leak is not None and dual.tilt is not None
        scales, here, there = self._scales(dual, scale), primal.margin, dual.margin
        total = 0.0
        for k, sets in enumerate(self._sets):
            p, d = here.parts[k], there.parts[k]
            tilt = 2.0 * float(np.max(dual.tilt[sets.task_of_block]))
            small = float(np.min(scales, where=scales > 0.0, initial=1.0))
            logs = float(np.max(np.abs(p.log_mean)) + np.max(np.abs(d.log_mean))) - math.log(small)
            delta = float(np.max(p.rounding) + np.max(d.rounding)) + tilt + gamma(8.0 * logs + 64.0)
            if sets.nested:
                total += nested_excess(sets, p, d, scales).upper(delta)
                continue
            near = None
            # what is missing along unpenalised features is divided by their curvature: a step more, if there are any
            for share in (1e-3, 0.25) if len(self._directions) else (0.25,):
                near = self._scaled(k, d, scales, share * scales * dual.leak) if near is None else near
            if near is not None and near is not d:
                near, more = self._within(k, there, near, scales, dual.leak)
                delta += more
            if near is None:
                total += self._convex(sets, p, d, scales, delta)
            else:
                total += softmax_excess(sets, p, near).upper(delta)
        away = self.design.task_norms(primal.residual - scale * dual.residual) * (1.0 + gamma(len(error) + 64))
        away += scale * dual.leak + np.expm1(np.minimum(self._rounding(here), 1.0)) * self.design.task_norms(
            here.mean * self._inverse_root
        )
        total += float(away @ error) + self.second_order_error(primal, error)
        return total * (1.0 + gamma(self.design.n_samples + 64)) + 1e-290

    def _within(
        self, k: int, dual: CoxPoint, near: RiskPoint, scales: Array, leak: Array
    ) -> tuple[RiskPoint | None, float]:
        """A point of `_scaled`, if its exact residual is as near to the scaled one as `leak` says, and what its
        logarithms may be off more than those of the dual point."""
        sets, parts = self._sets[k], list(dual.parts)
        parts[k] = near
        mean = dual.mean.copy()
        mean[sets.rows] = near.mean
        point = CoxPoint(dual.scores, mean, parts)
        residual = (self._events - mean) * self._inverse_root
        rounding, spread = self._rounding(point), self.design.task_norms(mean * self._inverse_root)
        own = np.expm1(np.minimum(rounding, 1.0)) * spread + gamma(4) * self.design.task_norms(residual)
        tilt = self._tilts(point, residual, own)
        tasks = np.unique(sets.task_of_block)
        c, rest = scales[sets.task_of_row], np.zeros_like(mean)
        rest[sets.rows] = (1.0 - c) * sets.events + c * dual.parts[k].mean - near.mean
        missing = self.design.task_norms(rest * self._inverse_root)
        with np.errstate(over="ignore"):
            off = (
                missing
                + np.expm1(2.0 * tilt + rounding) * spread
                + gamma(8) * (spread + self.design.task_norms(residual))
            )
        more = float(np.max(2.0 * tilt[tasks] + rounding[tasks]))
        return (near, more) if np.all(off[tasks] <= scales[tasks] * leak[tasks]) else (None, 0.0)

    def second_order_error(self, at: Evaluation, error: Array) -> float:
        """On the way to scores that are off the second derivative is at most diag(M), with M at most ``e^(2 d)`` times
        what it is here for scores off by d, and at most half of the events at risk."""
        if not np.any(error > 0.0):
            return 0.0
        design, square = self.design, np.square(self._inverse_root)
        starts = design.offsets[:-1]
        farthest = error * np.maximum.reduceat(np.where(self._live, self._inverse_root, 0.0), starts)
        steep = np.maximum.reduceat(at.margin.mean * square, starts) * np.exp(
            np.minimum(2.0 * farthest, 700.0)
        )
        steep = np.minimum(steep * (1.0 + 1e-6), 0.5 * np.maximum.reduceat(self._most * square, starts))
        return 0.5 * float(steep @ np.square(error)) * (1.0 + gamma(64))

    def _value_error(self, at: Evaluation) -> float:
        """What rounding may have done to the value."""
        return float(sum(part.rounding @ part.sizes for part in at.margin.parts)) + gamma(64) * abs(
            self.constant
        )

    def objective_error(self, at: Evaluation, error: Array) -> float:
        return super().objective_error(at, error) + self._value_error(at)

    def floored_gap(self, gap: float) -> float:
        return super().floored_gap(gap) + gamma(64) * self._n_events

    def least_goal(self) -> float:
        """Where nothing is left to explain: rounding."""
        return 0.0 if self.null.residual.any() else 8.0 * self._value_error(self.null) + 1e-290

    @property
    def size(self) -> float:
        return math.sqrt(self._n_events)

    def metric(self, at: Evaluation, scale: float, gap: float) -> Array:
        """That of a Poisson model with the expected events as means; 0 for rows in no risk set."""
        here = at.margin.mean
        c = self.design.per_sample(self._scales(at, scale))
        dual = (1.0 - c) * self._events + c * here
        weighted = poisson_metric(dual, here, gap, self._most)
        return np.where(self._live, weighted, 0.0) * np.square(self._inverse_root)
