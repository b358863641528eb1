"""What the engine needs of a loss, in the weighted, projected geometry of a design.

A loss is evaluated at ``z~ = X~ W`` (flat). Intercepts and unpenalised coefficients are minimised out, so that the
*residual* ``r`` (minus the gradient in z~) is orthogonal to the nuisance columns, and every multiple of it is a
candidate dual point. For the row weights ``s`` the mathematics note's dual variable is ``u = sqrt(s) r``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..described import Described
from ..design import Design
from ..screening.state import Ball
from .tensor_formulas import TensorFormula

Array = np.ndarray[Any, Any]

#: half the distance from 1 to the next number: the largest relative error of one operation
UNIT = 2.0**-53


def check_positive(value: float, name: str) -> None:
    """Refuse a parameter of a loss that is no positive number."""
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number; got {value!r}.")


def gamma(operations: float) -> float:
    """Bound of the relative error that so many operations in a row leave (Higham 2002, lemma 3.1)."""
    return 1.01 * UNIT * operations


def centred_labels(design: Design, y: Array, offset: Array | None) -> tuple[Array, Array]:
    """Shifts, about the means of the tasks' labels less an offset, and these labels less the shifts.

    What rounding has left out of the first difference is added, exactly (Knuth's two-sum): a large offset costs no
    digits.
    """
    rest = y if offset is None else y - offset
    shift = design.means(rest)
    centred = rest - design.per_sample(shift)
    if offset is not None:
        back = rest - y
        centred += (y - (rest - back)) - (offset + back)
    return shift, centred


@dataclass
class Evaluation:
    """A loss at one point: its value, minus its gradient, the nuisance coefficients that minimise it."""

    value: float
    residual: Array  # minus the gradient; a solver may put a better dual point of the same W in its place
    nuisance: Array  # (n_nuisance, n_tasks); below them, what a loss has beside the coefficients of columns
    curvature: Array | None = None  # second derivative in z~, flat; None where it is 1 everywhere
    margin: Any = None  # what the loss needs to remember of the point
    #: by task, for a column of length 1: how far its product with the residual is from that with the exact dual point
    leak: Array | None = None
    #: by task: how far the exact dual point is from the residual, in units that the loss knows
    tilt: Array | None = None
    #: by task: norms of the residual; of a settled point always
    lengths: Array | None = None
    #: minus the gradient itself, also where another dual point has taken the residual's place
    slope: Any = None
    #: the second derivative itself, where `curvature` is that of parabolas above the loss
    second: Array | None = None

    def __post_init__(self) -> None:
        if self.slope is None:
            self.slope = self.residual


class Loss(Described):
    """A loss by its parameters alone; `on` puts it on data."""

    #: what a held-out score of this loss is, in words
    label = "loss"
    #: the loss of all rows as a report writes it, "1/n̄ Σ_t Σ_i ..."; each class defines its own
    formula: str
    #: what labels are: "values" (any numbers), "signs" (-1 and +1), "counts" (from 0), "positive" (above 0), "one-hot"
    #: (a column a class), "ordered" (the codes 0, 1, .. of ordered classes), "survival" (`outcomes.SURVIVAL`)
    labels = "values"
    #: held-out rows are judged one by one (`deviance`); False: beside the rows that were learned from (`held_out`)
    by_row = True
    #: a held-out score is the root of the mean `deviance`
    rooted = False
    #: predictions are log-odds of classes
    probabilities = False
    #: labels and predictions multiplied by a > 0 multiply the loss by a to this power; 0: they have no common units
    degree = 0
    #: only the difference of label and prediction counts: labels have a location and units
    translates = False
    #: why it cannot stand beside losses of other tasks (`losses.mixed`), as a sentence; empty: it can
    alone: Any = ""
    #: without a penalty its coefficients estimate those of a regression, errors of which are known
    estimates = False
    #: whether it is half the squared error
    squared = False
    #: L: of rows with weight 1 its derivative is L-Lipschitz in z; infinite: not known for all data
    smoothness: float = math.inf

    @classmethod
    def of_classes(cls) -> bool:
        """Whether labels are classes, not numbers."""
        return cls.labels in ("signs", "one-hot", "ordered")

    def deviance(self, y: Array, z: Array) -> Array:
        """What a held-out row counts in cross-validation."""
        raise NotImplementedError

    def held_out(self, y: Array, z: Array, train: Array, test: Array) -> Array:
        """What rows of a task add to the deviance of a fold's held-out rows, (n, K); it is also what they add to
        first-order changes of its sum. That is divided by `held_out_size`.

        - `y`, `z`: Labels (n,) of rows that were learned from and of those held out, and columns of predictions (n, K).
        - `train`, `test`: Weights of the rows (n,); 0 where a row is not of that kind.
        """
        held = np.flatnonzero(test > 0.0)
        found = np.zeros(z.shape)
        found[held] = test[held, None] * self.deviance(y[held][:, None], z[held])
        return found

    def held_out_size(self, y: Array, test: Array) -> float:
        """How much was held out: the weight of the rows, or that of their events."""
        return float(np.sum(test))

    def link(self, z: Array) -> Array:
        """A prediction in the units of y, from ``x . w + b``."""
        return z

    def with_classes(self) -> Loss | None:
        """The loss where labels are of more than two classes, a column of scores for each; None: there is none."""
        return None

    def best_constant(self, y: Array, weights: Array) -> float | None:
        """The z that is best for all of these labels, where scores are the part of the deviance explained, D²; None
        where they are R²."""
        return None

    def sizes(self, y: Array) -> Array:
        """Of labels, in the units of `deviance`: what its rounding is relative to."""
        return np.abs(y)

    def of_task(self, t: int) -> Loss:
        """The loss of one task: itself, unless each has a loss of its own."""
        return self

    def unit(self, mean_rows: float) -> float:
        """Public objectives are sum units divided by this; `mean_rows` is the mean weight of a task."""
        return mean_rows

    def row_weights(self, samples: Array, tasks: Array) -> Array:
        """Weights of the rows in the sum, from those of samples and of their tasks."""
        return samples * tasks

    def certificate_form(self) -> dict[str, Any]:
        """The loss in the words of the certificate's format (`docs/certificate-format.md`): the header's `loss`.

        A class defines it for itself, not for those derived from it (`proof.forms.form_of`).
        """
        raise NotImplementedError

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        """The loss of given labels; predictions are ``x . w + b + offset``."""
        raise NotImplementedError


class DataLoss:
    """A loss on data, as the engine uses it.

    Attributes
    ----------
    null : Evaluation
        At W = 0, with the best intercepts.
    smoothness : float
        L: the derivative in z is L-Lipschitz. Infinite: the loss is not smooth.
    shift : array of shape (n_tasks,)
        What was subtracted from the labels: scores are less this as well.
    constant : float
        What is missing in all values, so that a perfect fit has 0: reported objectives have it added.
    """

    name = ""
    smoothness = np.inf
    constant = 0.0
    null: Evaluation
    shift: Array
    target: Array  # of losses that are about a residual ``target - z``
    #: what a quadratic model takes for the curvature of rows where the loss is flat, so that it stays bounded
    least_curvature = 1e-5

    #: by task, whether there is an intercept to store; None: in all. A loss that does not change with a constant has
    #: none, though columns are centred; one with `thresholds` has these instead
    has_intercept: Array | None = None

    def __init__(self, design: Design) -> None:
        self.design = design
        self.shift = np.zeros(design.n_tasks)

    #: that of its rows (`RowLoss.tensor_formula`), or of the squared loss
    tensor_formula: TensorFormula | None = None
    #: whether the loss has a derivative everywhere, though no finite smoothness
    differentiable = False
    #: whether the loss is the squared one with an outlier in each row (`losses.clipped`), whose cost `outliers` gives
    clipped = False

    #: whether the loss is one of a residual alone, whose prox is known (`dual_step`)
    has_dual_step = False

    def free_residual(self, at: Evaluation) -> Array:
        """What labels and scores differ by, flat and weighted, for a loss that `has_dual_step`."""
        raise NotImplementedError

    def dual_step(self, pulled: Array, step: Array) -> tuple[Array, Array, Array | None]:
        """``argmin_r F(r) + sum_t ||r_t - pulled_t||^2/(2 step_t)`` and its derivative ``diag(d) + w_t w_t'`` in each
        task: r, d and w, or None. Where there is w, d is one number in each task."""
        raise NotImplementedError

    def inside(self, residual: Array) -> Array:
        """A dual point near a flat vector."""
        raise NotImplementedError

    @property
    def has_slope(self) -> bool:
        """Whether steps along the slope can be taken: the loss has one everywhere."""
        return self.differentiable or math.isfinite(self.smoothness)

    @property
    def squared(self) -> bool:
        """Whether the loss is ``1/2 ||target - z||^2``."""
        return False

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        """The loss at z, intercepts and unpenalised coefficients at their best; `start` is a guess of these."""
        raise NotImplementedError

    def sketch(self, z: Array, start: Array | None = None) -> Evaluation:
        """`evaluate`, good enough for a step of a solver, not for a certificate."""
        return self.evaluate(z, start)

    def at_scores(self, raw: Array) -> Evaluation:
        """The loss at given ``x . w + b`` in the units of y, less the `shift`: nothing is fitted."""
        raise NotImplementedError

    def at_thresholds(self, raw: Array, thresholds: Array) -> Evaluation:
        """The same for a loss that compares scores with `thresholds` (m, n_tasks), each known to one rounding."""
        raise NotImplementedError

    def value_at(self, raw: Array) -> float:
        """The loss of `at_scores`."""
        return self.at_scores(raw).value

    def thresholds(self, nuisance: Array) -> Array | None:
        """What scores are compared with, (m, n_tasks), from `Evaluation.nuisance`: stored and certified beside the
        coefficients. Infinite where a task has no class on one side, NaN where it has no thresholds."""
        return None

    def settled(self, at: Evaluation) -> Evaluation:
        """The same with a dual point that is exactly orthogonal to the nuisance columns, and in the domain.

        That point is never formed: it is so near to the residual that `leak` and `tilt` say all there is to know.
        Where a task has no such point its residual is zero, which always is one.
        """
        raise NotImplementedError

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        """Upper bound of ``F(z) + F*(-u) + <u, z>``, rounding included: what the loss adds to a certificate.

        Parameters
        ----------
        primal : Evaluation
            Of `at_scores` or `evaluate`.
        error : array of shape (n_tasks,)
            Norms of what the weighted scores may be off.
        dual : Evaluation
            A `settled` one; u is `scale` times its exact dual point.
        """
        raise NotImplementedError

    def terms(self, at: Evaluation, scale: float) -> float:
        """``F(z) + F*(-u) + <u, z>`` for ``u`` = scale times the residual: what the loss adds to the gap, >= 0."""
        raise NotImplementedError

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        """The multiple of the residual, at most `limit`, with the largest dual value; `product` is <r, z~>."""
        return max(min(1.0, limit), 0.0)

    def ball(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        """A set that holds the dual optimum, given a gap with the dual point ``scale residual``: the smallest known.

        The midpoint ball. The loss has an L-Lipschitz derivative, so with r minus the gradient and u the dual point

            ||r - u*||^2/(2L) <= P(W) - P*,    ||u - u*||^2/(2L) <= P* - D(u),

        and both together are ``||u* - (r + u)/2||^2 <= L gap - ||r - u||^2/4``: at most 1/sqrt(2) of the radius of the
        gap-safe sphere, which holds it. The centre taken is a multiple of the residual; where a better dual point has
        taken its place, the radius grows by the difference.
        """
        metric = self.metric(at, scale, self.floored_gap(gap))
        if metric is not None:
            return self._ellipsoid(at, scale, self.floored_gap(gap), metric)
        sphere = self.sphere(at, scale, gap)
        if sphere is None or not math.isfinite(self.smoothness):
            return sphere
        apart = at.slope - scale * at.residual
        square = self.smoothness * self.floored_gap(gap)
        square -= 0.25 * (1.0 - gamma(len(apart) + 32)) * float(apart @ apart)
        radius = math.sqrt(max(square, gamma(64) * self.smoothness * self.floored_gap(gap)))
        if at.slope is not at.residual:
            radius += 0.5 * float(np.linalg.norm(at.slope - at.residual))
        if radius >= sphere.radius:
            return sphere
        return Ball(radius, residual_coef=0.5 * (1.0 + scale))

    def metric(self, at: Evaluation, scale: float, gap: float) -> Array | None:
        """By row: k such that the gap bounds the dual optimum in both halves,

            sum_i (r - u*)_i^2/(2 k_i) <= P(W) - P*,    sum_i (u - u*)_i^2/(2 k_i) <= P* - D(u),

        in units of the residual, with r minus the gradient and u = scale residual. 0 where u* is known to be 0. None:
        the smoothness is all that is known. A loss that has no finite one, or whose curvature differs much between
        rows, says so here; `gap` has been through `floored_gap`.
        """
        return None

    def _ellipsoid(self, at: Evaluation, scale: float, gap: float, metric: Array) -> Ball | None:
        """Both halves together: ``sum_i (u* - (r + u)/2)_i^2/k_i <= gap - 1/4 sum_i (r - u)_i^2/k_i``."""
        design = self.design
        # the exact dual point is a little off the residual (`settled`), and its means with it
        tilt = np.zeros(design.n_tasks) if at.tilt is None else 3.0 * at.tilt
        metric = metric * (1.0 + 64.0 * UNIT + design.per_sample(tilt))
        steepest = np.maximum.reduceat(metric, design.offsets[:-1])
        if not np.all(np.isfinite(steepest)):
            return None
        dual = scale * at.residual
        # what rounding may have added to a difference does not count
        apart = np.maximum(np.abs(at.slope - dual) - 8.0 * UNIT * (np.abs(at.slope) + np.abs(dual)), 0.0)
        with np.errstate(over="ignore"):
            shares = np.divide(np.square(apart), metric, out=np.zeros_like(apart), where=metric > 0.0)
        mass = metric if design.weights is None else design.weights * metric
        off = float(np.max(tilt)) * math.sqrt(float(np.sum(mass)))
        between = max(math.sqrt(float(np.sum(shares))) - off, 0.0) ** 2
        square = gap - 0.25 * (1.0 - gamma(design.n_samples + 32)) * between
        radius = math.sqrt(max(square, gamma(64) * gap))
        centre = np.where(metric > 0.0, 0.5 * (at.slope + dual), 0.0)
        return Ball(radius, vector=centre, stretch=np.sqrt(np.maximum(steepest, 1e-300)), metric=metric)

    def sphere(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        """The gap-safe sphere: the dual objective is 1/L-strongly concave, so ``||u - u*||^2 <= 2 L gap`` (Ndiaye,
        Fercoq, Gramfort and Salmon 2017). Losses that are not smooth have their own `ball` in its place."""
        if not math.isfinite(self.smoothness):
            own = type(self).ball is not DataLoss.ball or type(self).metric is not DataLoss.metric
            return self.ball(at, scale, gap) if own else None
        radius = np.sqrt(2.0 * self.smoothness * self.floored_gap(gap))
        return Ball(float(radius), residual_coef=scale)

    def floored_gap(self, gap: float) -> float:
        """A gap that may serve as a radius: with what rounding may have taken from it."""
        return gap + gamma(4 * self.design.n_samples + 256) * self.null.value

    def objective_error(self, at: Evaluation, error: Array) -> float:
        """How far the loss at given scores may be from its value there; `error` as in `young`."""
        steep = self.design.task_norms(at.residual) if at.lengths is None else at.lengths
        return float(steep @ error) + self.second_order_error(at, error)

    def second_order_error(self, at: Evaluation, error: Array) -> float:
        """How far the loss may lie above its tangent, where scores are off by an `error` as in `young`."""
        return 0.5 * self.smoothness * float(error @ error) if math.isfinite(self.smoothness) else float(error.sum())

    @property
    def curved(self) -> bool:
        """Whether a quadratic model of it is worth making: its second derivative is known, and varies."""
        return self.null.curvature is not None and not self.squared

    #: whether tasks of the design are classes, whose second derivatives `class_model` has
    of_classes = False

    def class_model(self, at: Evaluation) -> Any | None:
        """The second derivative in z~ where tasks of the design are classes: ``diag(p) - p p'`` for the classes of each
        row (`multinomial.ClassModel`)."""
        return None

    def quadratic_model(self, at: Evaluation) -> Any | None:
        """The second derivative in z~ at a point as ``L L'``, where L' times a vector costs no more than the vector
        (`risk_models.RiskModel`); None: `Evaluation.curvature` is all that is known of it."""
        return None

    def threshold_model(self, at: Evaluation) -> tuple[Array, Array, Array] | None:
        """Of one task, where the loss has thresholds: arrays a, b (n,) and C, so that its second derivative in z~ and
        in the thresholds t is that of ``1/2 ||(a z~, b z~, 0) + C t||^2``."""
        return None

    def outliers(self, at: Evaluation) -> tuple[float, float]:
        """What the outliers of a `clipped` loss cost at a point, and the norm of what they leave unexplained."""
        raise NotImplementedError

    def label_sizes(self) -> Array:
        """By task: the norm of the weighted labels or offsets, where a score is compared with the ones or added to the
        others; each has lost a rounding."""
        return np.zeros(self.design.n_tasks)

    @property
    def size(self) -> float:
        """How large predictions are that matter at all: for what is rounding beside them."""
        return math.sqrt(2.0 * self.null.value)

    def least_goal(self) -> float:
        """A gap that counts as none: where labels are constant nothing but their last digit is left to explain."""
        if self.null.value > 0.0:
            return 0.0
        design = self.design
        weights = np.ones(design.n_samples) if design.weights is None else design.weights
        return gamma(8) ** 2 * float(design.task_sums(weights) @ np.square(self.shift))

    def nuisance_hessian(self, at: Evaluation) -> tuple[Array, float] | None:
        """Of one task, where the loss is no sum over rows: its second derivative in coefficients of the columns that it
        depends on, and a scale beside which an eigenvalue is nothing. None: the curvatures of the rows give it."""
        return None

    def by_task(self, at: Evaluation) -> Array | None:
        """The value of each task, where the loss is a sum over these."""
        return None

    def explained(self, at: Evaluation) -> Array:
        """Tasks whose rows nuisance columns explain ever better, without an end: there is no finite optimum."""
        return np.zeros(self.design.n_tasks, dtype=bool)

    def residual_norms(self, at: Evaluation) -> Array | None:
        """Norm of the residual in each task, where the loss is made of them."""
        return None


def null_value(loss: DataLoss) -> float:
    """The objective at W = 0: zero where it is rounding, and the empty model explains y."""
    return 0.0 if loss.null.value <= loss.least_goal() else loss.null.value
