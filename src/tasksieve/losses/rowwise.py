"""Losses that are a sum over rows, each given by what it does to one row.

    F(z) = min_b sum_i s_i f(y_i, z_i + b_task(i))        (and over the coefficients of unpenalised features)

A subclass of `RowLoss` says `value`, `slope` and `conjugate` of one row; weights, intercepts, the gap and the ball that
holds the dual optimum follow here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..design import Design
from ..renamed import accept_old_methods
from .base import UNIT, DataLoss, Evaluation, Loss, centred_labels, gamma
from .tensor_formulas import TensorFormula

Array = np.ndarray[Any, Any]

# A task whose best intercept is infinite stops where every row is this well explained. The same happens where
# unpenalised features separate the classes: there a task counts as done at this mean loss.
_CONFIDENT = 30.0
_NEGLIGIBLE = 2e-13
_TRUSTING = 8  # steps of Newton's method with a loss's own curvature, before it is looked at more closely
_TAKEN = ("squared", "square-root", "multinomial")  # names by which solvers know losses that are no sums over rows
TILTED = 0.5  # of its room: how far a dual point may be moved to become orthogonal to the nuisance columns


class RowLoss(Loss):
    """A loss ``f(y, z)`` of one label and one prediction; methods take and return arrays.

    Attributes
    ----------
    smoothness : float
        L: ``f'`` is L-Lipschitz in z.
    """

    smoothness = 1.0
    #: whether the loss falls to zero along a ray, so that unpenalised features may explain everything
    vanishing = False
    #: whether only the difference of label and prediction counts: a large offset of the labels is then no burden
    translates = False
    #: whether the loss has a slope everywhere though no finite smoothness: then it has a `ball` of its own on data
    differentiable = False

    #: the same in tensors, where solvers of a device may use it
    tensor_formula: TensorFormula | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "tensor_formula" not in vars(cls) and {"value", "slope"} & vars(cls).keys():
            cls.tensor_formula = None  # that of another loss
        accept_old_methods(cls, {"runaway": "diverging_intercepts"})

    def value(self, y: Array, z: Array) -> Array:
        """f(y, z), convex in z."""
        raise NotImplementedError

    def slope(self, y: Array, z: Array) -> Array:
        """p = minus the derivative of f in z."""
        raise NotImplementedError

    def conjugate(self, y: Array, p: Array) -> Array:
        """``f*(-p) = sup_z -p z - f(y, z)`` for p in the domain."""
        raise NotImplementedError

    def domain(self, y: Array) -> tuple[Array | float, Array | float]:
        """(low, high): the conjugate is finite where ``low <= p <= high``. Zero must lie in it."""
        return -np.inf, np.inf

    def curvature(self, y: Array, z: Array) -> Array:
        """The second derivative of f in z, or something between it and the smoothness; where that is infinite, by
        differences of the slope unless a loss defines it."""
        if np.isfinite(self.smoothness):
            return np.full(np.shape(z), self.smoothness)
        return self._bent(y, z)

    def _derivatives(self, y: Array, z: Array) -> tuple[Array, Array, Array] | None:
        """`value`, `slope` and `curvature`, where all together take less time."""
        return None

    def _bent(self, y: Array, z: Array) -> Array:
        """The second derivative by central differences of the slope."""
        h = 1e-6 * (1.0 + np.abs(z))
        return np.asarray((self.slope(y, z - h) - self.slope(y, z + h)) / (2.0 * h))

    def second(self, y: Array, z: Array) -> Array | None:
        """The second derivative itself, where `curvature` says more and parabolas with that lie above the loss.
        Newton's method then goes as far towards it as steps succeed."""
        return None

    def information(self, y: Array, z: Array) -> Array | None:
        """The second derivative that the distribution of the loss expects at z, to which the variance of slopes is
        proportional; None where there is no distribution: slopes then vary alike."""
        return None if self.labels == "values" else self.curvature(y, z)

    def deviance(self, y: Array, z: Array) -> Array:
        """What a held-out row counts in cross-validation: the loss itself unless said otherwise."""
        return self.value(y, z)

    def constant(self, y: Array) -> Array:
        """What is missing in `value`, so that a perfect fit has 0: reported objectives have it added."""
        return np.zeros(np.shape(y))

    def excess(self, y: Array, z: Array, p: Array) -> tuple[Array, Array]:
        """``value(z) + conjugate(p) + p z``, and the size of the numbers that it was made of, for their rounding.

        A loss that knows a form in which less cancels may say so here.
        """
        value, conjugate, product = self.value(y, z), self.conjugate(y, p), p * z
        return value + conjugate + product, np.abs(value) + np.abs(conjugate) + np.abs(product)

    def rooms(self, y: Array, p: Array) -> tuple[Array, Array]:
        """How far p can be moved down and up: to the end of its domain, and no further than the smoothness, or than its
        own size and 1 where there is no finite one."""
        low, high = self.domain(y)
        far = self.smoothness if np.isfinite(self.smoothness) else 1.0 + np.abs(p)
        return np.minimum(p - low, far), np.minimum(high - p, far)

    def diverging_intercepts(self, y: Array, weights: Array, design: Design) -> Array:
        """Tasks whose best intercept is infinite: its sign, times how much further out than that of `Poisson` the loss
        vanishes; 0 for the others."""
        return np.zeros(design.n_tasks)

    def intercepts(
        self, y: Array, z: Array, weights: Array, design: Design, guess: Array | None
    ) -> Array | None:
        """The best intercept of each task beside the prediction z, where there is a method for it that is better than
        Newton's method."""
        return None

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        for name in ("value", "slope", "conjugate"):
            if getattr(type(self), name) is getattr(RowLoss, name):
                raise ValueError(
                    f"{type(self).__name__} does not define `{name}`: a loss needs value, slope and conjugate. "
                    "Without them nothing can be certified (docs: Adding a loss)."
                )
        return RowLossOnData(self, design, y, offset)


class RowLossOnData(DataLoss):
    """A `RowLoss` on data. `Evaluation.margin` is the prediction z, nuisance part and offset included."""

    def __init__(self, loss: RowLoss, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(design)
        self.of, self._y, self._offset = loss, y, offset
        if loss.translates:
            self.shift, self._y = centred_labels(design, y, offset)
            self._offset = None
        name = type(loss).__name__.lower()
        self.name = f"{name} of one's own" if name in _TAKEN else name
        self.smoothness = float(loss.smoothness)
        self.differentiable = loss.differentiable
        self._weights = np.ones(design.n_samples) if design.weights is None else design.weights
        self._root = root = design.samples.root
        self._inverse_root = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        # What intercepts and unpenalised features can add to a prediction, task by task, in an orthonormal basis: so
        # neither the units of these features nor dependence among them matter.
        self._directions = design.nuisance_basis * self._inverse_root
        self._columns = design.nuisance_columns
        self._one_way = design.fit_intercept and design.n_nuisance == 1
        self._signs = np.zeros(design.n_tasks)
        if design.fit_intercept:
            self._signs = loss.diverging_intercepts(self._y, self._weights, design)
        self._negligible = (_NEGLIGIBLE if loss.vanishing else -1.0) * design.task_sums(self._weights)
        self.constant = float(design.exact_products(self._weights, loss.constant(self._y)).sum())
        self._domain = loss.domain(self._y)
        self.tensor_formula = loss.tensor_formula
        self.null = self.settled(self.evaluate(np.zeros(design.n_samples)))

    @property
    def rows(self) -> tuple[Array, Array, Array | None]:
        """Labels, weights and offsets of the samples."""
        return self._y, self._weights, self._offset

    @property
    def diverges(self) -> bool:
        """Whether the best intercept of a task is infinite."""
        return bool(self._signs.any())

    def summed_error(self) -> float:
        """What rounding adds to any objective beside `DataLoss.objective_error`."""
        return 0.0

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        design, loss = self.design, self.of
        raw = z * self._inverse_root
        if self._offset is not None:
            raw += self._offset
        nuisance = np.empty((0, design.n_tasks))
        if len(self._directions):
            part = self._best_nuisance(raw, start)
            raw = raw + part
            nuisance = design.nuisance_fit(part)
        known = loss._derivatives(self._y, raw)
        values = self._weights * (loss.value(self._y, raw) if known is None else known[0])
        total = float(values.sum())
        if not np.isfinite(total):  # too far out: no iterate stays here
            none = np.zeros(design.n_samples)
            return Evaluation(np.inf, none, nuisance, none, raw)
        slope = loss.slope(self._y, raw) if known is None else known[1]
        residual = self._root * self.balanced(self.inside_domain(slope))
        if len(self._directions):
            # Zero is a feasible dual point, and the right one where nuisance columns explain everything.
            done = (self._signs != 0.0) | (design.task_sums(values) <= self._negligible)
            if done.any():
                residual[design.per_sample(done)] = 0.0
        curvature = loss.curvature(self._y, raw) if known is None else known[2]
        second = loss.second(self._y, raw)
        return Evaluation(total, residual, nuisance, curvature, raw, slope=self._root * slope, second=second)

    def at_scores(self, raw: Array) -> Evaluation:
        if self._offset is not None:
            raw = raw + self._offset
        values = self.of.value(self._y, raw)
        total = float(self.design.exact_products(self._weights, values).sum())
        return Evaluation(total, self._root * self.of.slope(self._y, raw), np.empty(0), margin=raw)

    def by_task(self, at: Evaluation) -> Array:
        assert at.margin is not None
        return self.design.task_sums(self._weights * self.of.value(self._y, at.margin))

    def label_sizes(self) -> Array:
        beside = self._y if self.of.translates else self._offset
        if beside is None:
            return super().label_sizes()
        return self.design.task_norms(self._root * beside)

    def explained(self, at: Evaluation) -> Array:
        nothing = self.design.task_sums(np.abs(at.residual)) == 0.0
        return nothing & (self.of.vanishing and len(self._directions) > 0)

    # -- dual points: of one flat vector, or of several in rows where a method returns arrays ------------------------

    def inside(self, residual: Array) -> Array:
        """A dual point near a flat vector: in the domain of the conjugates, and about orthogonal to the nuisance."""
        return self._root * self.balanced(self.inside_domain(residual * self._inverse_root))

    def inside_domain(self, p: Array) -> Array:
        """Each entry moved into the domain of its conjugate."""
        return np.clip(p, *self._domain)

    def rooms(self, p: Array) -> tuple[Array, Array]:
        """How far each entry can be moved down and up. Unpenalised features move entries of a task both ways, so that
        only the smaller of the two is to be had there."""
        down, up = self.of.rooms(self._y, p)
        if self._one_way:
            return down, up
        least = np.minimum(down, up)
        return least, least

    def balanced(self, p: Array) -> Array:
        """p moved towards one that is orthogonal to the nuisance columns, each entry in proportion to its room.

        So boundaries of the domain are never crossed, and saturated rows stay where they are. What cannot be moved
        that way stays as it is: `settled` judges it.
        """
        directions, design = self._directions, self.design
        if not len(directions):
            return p
        down, up = self.rooms(p)
        if len(directions) == 1:
            (direction,) = directions
            off = design.task_sums(direction * (self._weights * p))
            room = np.where(design.per_sample(off > 0.0), down, up) if self._one_way else down
            curvature = design.task_sums(self._weights * room * direction**2)
            step = np.divide(off, curvature, out=np.zeros_like(curvature), where=curvature > 0.0)
            move = direction * design.per_sample(step)
        else:
            room, off = down, design.task_sums(directions * (self._weights * p))
            gram = np.empty((design.n_tasks, len(directions), len(directions)))
            for a, first in enumerate(directions):
                for b, second in enumerate(directions[: a + 1]):
                    gram[:, a, b] = gram[:, b, a] = design.task_sums(self._weights * room * first * second)
            move = self._combine(directions, np.einsum("tab,bt->at", np.linalg.pinv(gram, hermitian=True), off))
        far = np.maximum.reduceat(np.abs(move), design.offsets[:-1], axis=-1) > TILTED
        return p - room * np.where(design.per_sample(far), 0.0, move)

    def settled(self, at: Evaluation) -> Evaluation:
        leak, tilt = self.leak_and_tilt(at.residual)
        if np.any(tilt > 1e-12):  # worth another step
            again = self.inside(at.residual)
            nearer = self.leak_and_tilt(again)
            if np.max(nearer[1]) < np.max(tilt):
                at, (leak, tilt) = replace(at, residual=again), nearer
        lost = ~(tilt <= TILTED)
        if lost.any():
            residual = np.where(self.design.per_sample(lost), 0.0, at.residual)
            at, leak, tilt = replace(at, residual=residual), np.where(lost, 0.0, leak), np.where(lost, 0.0, tilt)
        return replace(at, leak=leak, tilt=tilt, lengths=self.design.task_norms(at.residual))

    def leak_and_tilt(self, residual: Array) -> tuple[Array, Array]:
        """By task: the exact dual point is ``p - room o (Z c)`` with ``|Z c| <= tilt``."""
        design = self.design
        if not len(self._directions):
            none = np.zeros((*residual.shape[:-1], design.n_tasks))
            return none, none
        used = np.isfinite(design.nuisance_sizes)
        off = design.samples.orthogonality(residual)[0] * np.where(used, design.nuisance_sizes, 0.0)
        rooms = self.rooms(self.inside_domain(residual * self._inverse_root))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self._one_way:
                tilt = np.max([off[0] / design.task_sums(self._weights * room) for room in rooms], axis=0)
            else:
                tilt = largest_tilt(design, self._weights * rooms[0], off, used)
            spread = [design.task_norms(self._root * room) for room in rooms]
            tilt = tilt * (1.0 + gamma(design.n_samples + 16))
            leak = tilt * np.max(spread, axis=0) * (1.0 + gamma(design.n_samples + 16))
        exact = (off == 0.0).all(axis=0)  # a residual of zero
        tilt, leak = np.where(exact, 0.0, tilt), np.where(exact, 0.0, leak)
        return leak, np.where(np.isfinite(tilt) & np.isfinite(leak), tilt, np.inf)

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        """Row by row at both ends of where the exact dual point may be: the sum is convex in it.

        The error of the scores is seen through the derivative, slope minus dual point, and the smoothness.
        """
        assert primal.margin is not None and dual.tilt is not None
        return float(self.young_bounds(primal.margin, error, dual.residual, dual.tilt, scale))

    def young_bounds(
        self, z: Array, error: Array, residual: Array, tilt: Array, scale: Array | float
    ) -> Array:
        """`young` at scores z, of several rows at once or of one; `scale` has a column."""
        loss, s = self.of, self._weights
        p = self.inside_domain(residual * self._inverse_root)
        leaning, least = self.design.per_sample(tilt), 4.0 * UNIT * np.abs(p)
        down, up = (room * leaning + least for room in self.rooms(p))
        slope = loss.slope(self._y, z)
        worst = np.zeros_like(z)
        with np.errstate(over="ignore", invalid="ignore"):
            for end in (p - down, p + up):
                excess, sizes = loss.excess(self._y, z, scale * self.inside_domain(end))
                worst = np.maximum(worst, excess + 16.0 * UNIT * sizes)
        worst[..., s == 0.0] = 0.0
        rounding = np.maximum(down, up) + 8.0 * UNIT * (np.abs(slope) + np.abs(p))
        away = self._root * (np.abs(slope - scale * p) + rounding)
        turned = np.linalg.norm(away, axis=-1) * np.linalg.norm(error, axis=-1)
        total = worst @ s + turned + self.beyond_tangent(z, error)
        return np.asarray(total * (1.0 + gamma(len(s) + 32)))

    def terms(self, at: Evaluation, scale: float) -> float:
        z = at.margin
        assert z is not None
        p = self.inside_domain(scale * at.residual * self._inverse_root)  # moves by rounding at most
        excess, _ = self.of.excess(self._y, z, p)
        return float(self._weights @ np.maximum(excess, 0.0))

    def second_order_error(self, at: Evaluation, error: Array) -> float:
        assert at.margin is not None
        return float(self.beyond_tangent(at.margin, error))

    def beyond_tangent(self, z: Array, error: Array) -> Array:
        """`second_order_error` at scores z, of several rows at once or of one. Without a finite smoothness, by slopes
        at both ends of where a score may be: they fall with it."""
        if np.isfinite(self.smoothness):
            return np.asarray(0.5 * self.smoothness * np.sum(np.square(error), axis=-1))
        live = self._weights > 0.0
        away = np.where(live, self.design.per_sample(error) * self._inverse_root, 0.0)
        slope = self.of.slope(self._y, z)
        turned = np.maximum(self.of.slope(self._y, z - away) - slope, slope - self.of.slope(self._y, z + away))
        turned += 16.0 * UNIT * np.abs(slope)
        return np.asarray(np.sum((self._weights * turned * away)[..., live], axis=-1)) * (1.0 + gamma(len(live) + 16))

    def _combine(self, columns: Iterable[Array], coefficients: Array) -> Array:
        """A flat vector from coefficients (columns, tasks)."""
        total = np.zeros(self.design.n_samples)
        for column, values in zip(columns, coefficients, strict=True):
            total += column * self.design.per_sample(values)
        return total

    def _second(self, z: Array) -> Array:
        """The second derivative of the loss: as the loss says, or by differences where it says clearly too much.

        A loss may give any curvature that keeps a quadratic above it, or the smoothness for want of better; Newton's
        method is slow with these.
        """
        loss = self.of
        known = loss.second(self._y, z)
        if known is not None:
            return known
        said = loss.curvature(self._y, z)
        seen = loss._bent(self._y, z)
        return np.where(said - seen > 1e-4 * self.smoothness, np.maximum(seen, 0.0), said)

    def _newton_step(self, gradient: Array, curvature: Array) -> Array:
        """By direction and task, from the gradient there and the second derivative by row."""
        design, directions, k = self.design, self._directions, len(self._directions)
        if k == 1:
            hessian = design.task_sums(np.square(directions) * curvature)
            return np.asarray(gradient / (hessian + (1e-14 * hessian + 1e-12)))
        hessian = np.empty((design.n_tasks, k, k))
        for a in range(k):
            hessian[:, a, : a + 1] = design.task_sums(directions[a] * directions[: a + 1] * curvature).T
            hessian[:, : a + 1, a] = hessian[:, a, : a + 1]
        diagonal = np.einsum("taa->ta", hessian)
        diagonal += 1e-14 * diagonal.max(axis=1, keepdims=True) + 1e-12
        return np.asarray(np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T)

    def _best_nuisance(self, raw: Array, start: Array | None) -> Array:
        """What intercepts and unpenalised features add to the prediction `raw` at their optimum, a flat vector.

        Newton's method in each task over its few directions, with steps that neither leave the range of the
        predictions nor raise the loss: where all rows are classified beyond doubt there is no curvature to go by.
        """
        design, loss = self.design, self.of
        live = self._signs == 0.0
        part = np.zeros(design.n_samples) if start is None else self._combine(self._columns, start)
        if not live.all():
            reach = np.maximum.reduceat(np.abs(raw), design.offsets[:-1])
            confident = design.per_sample(self._signs * (_CONFIDENT + reach))
            part = np.where(design.per_sample(live), part, confident)
        if not live.any():
            return part
        if design.fit_intercept:
            guess = start[0] if self._one_way and start is not None else None
            before = np.where(design.per_sample(live), raw if self._one_way else raw + part, 0.0)
            exact = loss.intercepts(self._y, before, self._weights, design, guess)
            if exact is not None:
                level = design.per_sample(exact)
                part = np.where(design.per_sample(live), level if self._one_way else part + level, part)
                if self._one_way:
                    return part

        def value_of(candidate: Array) -> tuple[Array, Array]:
            z = raw + candidate
            return z, design.task_sums(self._weights * loss.value(self._y, z))

        z, value = value_of(part)
        for count in range(100):
            pulls = self._directions * (self._weights * loss.slope(self._y, z))
            gradient, size = design.task_sums(pulls), design.task_sums(np.abs(pulls))
            open_ = live & (np.abs(gradient) > 4e-16 * len(raw) ** 0.5 * size).any(axis=0)
            open_ &= value > self._negligible
            if not open_.any():
                break
            curvature = self._weights * (loss.curvature(self._y, z) if count < _TRUSTING else self._second(z))
            step = self._newton_step(gradient, curvature)
            step[:, ~open_] = 0.0
            move = self._combine(self._directions, step)
            longest = np.maximum.reduceat(np.abs(move), design.offsets[:-1])
            reach = 10.0 + 2.0 * np.maximum.reduceat(np.abs(z), design.offsets[:-1])
            scale = np.minimum(1.0, reach / np.maximum(longest, 1e-300))
            for _ in range(60):
                candidate = part + design.per_sample(scale) * move
                new_z, new_value = value_of(candidate)
                worse = open_ & (new_value > value + 1e-15 * np.abs(value))
                if not worse.any():
                    break
                scale[worse] *= 0.5
            if worse.any():  # even tiny steps do not help: rounding has been reached there
                scale[worse] = 0.0
                candidate = part + design.per_sample(scale) * move
                new_z, new_value = value_of(candidate)
            gain = np.abs(value - new_value) > 1e-17 * np.abs(value)
            moved = scale * longest > 4e-16 * reach
            part, z, value = candidate, new_z, new_value
            if not np.any(open_ & (gain | moved)):
                break
        return part


def largest_tilt(design: Design, weights: Array, off: Array, used: Array) -> Array:
    """By task: the largest ``|Z c|``, at most, for ``Z' diag(weights) Z c = off``, Z the nuisance columns that are
    `used`."""
    count, root, tilt = design.n_nuisance, np.sqrt(weights), np.zeros(design.n_tasks)
    for t in range(design.n_tasks):
        rows, here = slice(design.offsets[t], design.offsets[t + 1]), np.flatnonzero(used[:, t])
        if not len(here):
            continue
        columns = np.stack([design.nuisance_columns[k][rows] for k in here], axis=1)
        block = root[rows, None] * columns
        sizes = np.linalg.norm(block, axis=0)
        if not np.all(sizes > 0.0) or len(block) < len(here):
            tilt[t] = np.inf
            continue
        found = np.linalg.svd(block / sizes, compute_uv=False)
        least = float(found[-1]) - gamma(8 * (len(block) + 8) * count)
        longest = float(np.max(np.linalg.norm(columns / sizes, axis=1)))
        far = longest * float(np.linalg.norm(off[here, t] / sizes))
        tilt[t] = far / least**2 if least > 0.0 else np.inf
    return tilt
