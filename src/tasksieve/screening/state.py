"""What a screening rule knows: a pair of primal and dual points, seen through correlations.

Everything is in the scale of the residual u (not theta = u/lambda). The problem at strength lam is

    1/2 ‖y - XW‖² + lam sum_j weight_j (l1_j ‖W_j‖₁ + group ‖W_j‖₂) + ridge/2 ‖W‖²,   ridge = lam ridge_ratio,

or the same with another smooth loss. The ridge is a block of extra samples, never formed: with it the residual is
(y - XW, -sqrt(ridge) W), its correlations are X'(y - XW) - ridge W, and the squared column norms grow by ridge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .ball import zero_rows
from .polar import polar

Array = NDArray[np.float64]

STRENGTH = """
lam : float
    Strength of the problem to be screened.
"""

# Rows tested at a time: temporary arrays stay in the cache, and small beside the data.
_BLOCK = 4096
_ALL = slice(None)
# Scaling a dual point by 1/polar must not leave the dual set by rounding.
_SHRINK = 1e-12


@dataclass(frozen=True, eq=False)
class Cut:
    """Coefficients that bound the dual set: <XW, u> <= Omega(W) for every feasible u, whatever W is.

    Attributes
    ----------
    features : int array of shape (k,)
        Rows of W that are not zero.
    rows : array of shape (k, T)
        Those rows.
    image : array of shape (N,)
        XW.
    correlations : array of shape (d, T)
        Correlations of the image with every feature.
    """

    features: NDArray[np.intp]
    rows: Array
    image: Array
    correlations: Array


@dataclass(frozen=True, eq=False)
class DualState:
    """A primal point W, its residual, and the residual's correlations with every feature.

    The arrays may hold a part of the features only: a problem from which rows were rejected for `lam` has the same
    solution at `lam`, so that dynamic rules may be asked about the rest. A sequential rule needs all features.

    Attributes
    ----------
    y : array of shape (N,)
        Targets. For other losses than the squared one only their size is used.
    residual : array of shape (N,)
        Minus the gradient of the loss: y - XW for the squared loss. Any other vector is also allowed where
        `features` is empty and a `cut` is given.
    correlations : array of shape (d, T)
        <x_jt, residual_t>.
    norms : array of shape (d, T)
        Column norms ‖x_jt‖; may be a broadcast view.
    lam : float
        Strength at which the pair was obtained.
    y_correlations : array of shape (d, T), optional
        <x_jt, y_t>; what the rules with a cut need beside `correlations`.
    features, rows : arrays of shape (k,) and (k, T)
        The non-zero rows of W. Rows that are not penalised are projected out of the design and do not belong here.
    feature_weights : array of shape (d,), optional
        Weights of the rows in the penalty; 0 = not penalised (never rejected).
    l1 : float or array of shape (d,)
        Strength of ‖W_j‖₁.
    group : float
        Strength of ‖W_j‖₂.
    positive : bool
        Whether W >= 0 is required.
    ridge_ratio : float
        Ridge strength divided by lam.
    coupled : callable, optional
        ``coupled(rows)``: ``<W L, W>`` where ``1/2 <W L, W>`` joins the ridge, L positive semidefinite.
    correlation_errors : array of shape (d,), optional
        Proven bounds on the Euclidean error of each row of `correlations`, where those are approximate.
    rounding : float, optional
        Bound on |computed <x, r> - <x, r>|/(‖x‖ ‖r‖) in `correlations` and `y_correlations`. By default 8 + 2 sqrt(N)
        units of rounding, which inner products of N terms exceed with vanishing probability only (Higham and
        Mary 2019).
    squared : bool
        Whether the loss is 1/2 (z - y)².
    smoothness : float
        Lipschitz constant of the loss's derivative: 1 (squared), 1/4 (logistic).
    gap, dual_scale, gap_lam : float, optional
        A duality gap, and the factor c for which c * residual is the feasible dual point of that gap, at the
        strength `gap_lam` (by default `lam`). Needed for other losses than the squared one; for that they are
        computed where they are not given, and a given `dual_scale` is trusted to be feasible. For a sequential
        rule give the gap of the old pair at the new strength:
        ``dataclasses.replace(state, gap=..., dual_scale=..., gap_lam=new)``.
    cut : Cut, optional
        Used in place of W where W = 0, for example `steepest_row` at the smallest lam whose solution is zero.
    norm : callable, optional
        ``norm(features, rows)``: the penalty, where it is another one than `group` and `l1` say.
    outliers : (cost, unexplained), optional
        The loss is the squared one with an outlier in each row (`losses.clipped`): what these cost at W, and the norm
        of what they leave of ``y - XW - residual``. y is then free of what intercepts explain.
    """

    y: Array
    residual: Array
    correlations: Array
    norms: Array
    lam: float
    y_correlations: Array | None = None
    features: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    rows: Array | None = None
    feature_weights: Array | None = None
    l1: float | Array = 0.0
    group: float = 1.0
    positive: bool = False
    ridge_ratio: float = 0.0
    coupled: Callable[[Array], float] | None = None
    correlation_errors: Array | None = None
    rounding: float | None = None
    squared: bool = True
    smoothness: float = 1.0
    gap: float | None = None
    dual_scale: float | None = None
    gap_lam: float | None = None
    cut: Cut | None = None
    norm: Callable[[NDArray[np.intp], Array], float] | None = None
    outliers: tuple[float, float] | None = None

    @property
    def has_l1(self) -> bool:
        return bool(np.any(self.l1))

    def strengths(self, lam: float) -> tuple[Array, Array]:
        """What multiplies ‖W_j‖₂ and ‖W_j‖₁ at strength lam, each of shape (d,)."""
        weights = np.ones(self.norms.shape[0]) if self.feature_weights is None else self.feature_weights
        weights = lam * weights
        return self.group * weights, self.l1 * weights

    def penalty(self, features: NDArray[np.intp], rows: Array, lam: float) -> float:
        """The penalty of some rows at strength lam, without its ridge; infinite outside W >= 0 if that is required."""
        if self.positive and (rows < 0.0).any():
            return np.inf
        if self.norm is not None:
            return self.norm(features, rows)
        group, l1 = self.strengths(lam)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return float(group[features] @ lengths + l1[features] @ np.abs(rows).sum(axis=1))

    @cached_property
    def coefficients(self) -> Array:
        """The non-zero rows of W."""
        return np.empty((0, self.norms.shape[1])) if self.rows is None else self.rows

    @cached_property
    def coefficient_square(self) -> float:
        """‖W‖²."""
        return float(np.vdot(self.coefficients, self.coefficients))

    @cached_property
    def y_square(self) -> float:
        """‖y‖²."""
        return float(self.y @ self.y)

    def quadratic(self, rows: Array, lam: float) -> float:
        """Squared norm of the ridge's block for some rows, and of what joins it."""
        square = self.ridge(lam) * float(np.vdot(rows, rows))
        return square if self.coupled is None else square + self.coupled(rows)

    def ridge(self, lam: float) -> float:
        return lam * self.ridge_ratio

    def residual_square(self, lam: float) -> float:
        """Squared norm of the residual, its ridge part included."""
        return float(self.residual @ self.residual) + self.ridge(lam) * self.coefficient_square

    def effective_norms(self, lam: float, block: slice = _ALL) -> Array:
        """sqrt(L ‖x_jt‖² + ridge): how far correlations move when the dual point moves by 1 in the norm of its gap."""
        ridge, norms = self.ridge(lam), self.norms[block]
        if ridge == 0.0 and self.smoothness == 1.0:
            return norms
        distinct = norms[:, :1] if norms.strides[1] == 0 else norms
        return np.broadcast_to(np.sqrt(self.smoothness * distinct**2 + ridge), norms.shape)

    @cached_property
    def largest_norms(self) -> Array:
        """max_t ‖x_jt‖, of shape (d,)."""
        return self.norms[:, 0] if self.norms.strides[1] == 0 else self.norms.max(axis=1)

    @cached_property
    def rounding_bound(self) -> float:
        if self.rounding is not None:
            return self.rounding
        return (8.0 + 2.0 * np.sqrt(self.y.size)) * float(np.finfo(np.float64).eps)

    def errors(self, lam: float, size: float, scale: float) -> Array:
        """Error bounds for the correlations of a sum of vectors: scale * residual and others, of total norm `size`."""
        bound = self.rounding_bound * size * np.sqrt(self.largest_norms**2 + self.ridge(lam))
        if self.correlation_errors is not None:
            bound += abs(scale) * self.correlation_errors
        return bound

    def feasible_scale(self, lam: float) -> float:
        """The best multiple of the residual in the dual set at strength lam: clip(<y, u>/‖u‖², -1/polar, 1/polar)."""
        if self.dual_scale is not None and (self.lam if self.gap_lam is None else self.gap_lam) == lam:
            return self.dual_scale
        square = self.residual_square(lam)
        if square == 0.0:
            return 0.0
        correlations = self.correlations
        if self.ridge(lam) > 0.0 and self.features.size:
            correlations = Ball(0.0, residual_coef=1.0).correlations(self, lam)
        group, l1 = self.strengths(lam)
        q = polar(correlations, group, l1, self.positive, self.errors(lam, np.sqrt(square), 1.0))
        best = float(self.y @ self.residual) / square
        if q == 0.0:
            return best
        largest = 1.0 / (q * (1.0 + _SHRINK))
        return min(max(best, 0.0 if self.positive else -largest), largest)


@dataclass(frozen=True, eq=False)
class Ball:
    """A set that holds the dual optimum: mostly a ball around a combination of vectors whose correlations are known.

    centre = y_coef * y + residual_coef * residual + cut_coef * cut.image (ridge parts alike), or any `vector`.

    Attributes
    ----------
    vector : array of shape (N,), optional
        The centre, where it is none of these combinations.
    stretch : array of shape (T,), optional
        An ellipsoid: e belongs to it if ``sum_t ‖e_t‖²/stretch_t² <= radius²``.
    metric : array of shape (N,), optional
        Of each row: e belongs to the set only if ``sum_i e_i²/metric_i <= radius²``, too, with e_i = 0 where the metric
        is 0. `stretch` is then the root of its largest entry in each task, so that it says less.
    slack : array of shape (T,), optional
        In each task the centre is known up to a vector of this length.
    """

    radius: float
    y_coef: float = 0.0
    residual_coef: float = 0.0
    cut_coef: float = 0.0
    vector: Array | None = None
    stretch: Array | None = None
    slack: Array | None = None
    metric: Array | None = None

    def centre(self, state: DualState) -> Array:
        """The centre in sample space, without a ridge part."""
        centre = self.residual_coef * state.residual
        if self.y_coef:
            centre += self.y_coef * state.y
        if self.cut_coef and state.cut is not None:
            centre += self.cut_coef * state.cut.image
        return centre

    def correlations(self, state: DualState, lam: float, block: slice = _ALL) -> Array:
        """Correlations of the centre with the features of a block, without touching the data."""
        result = self.residual_coef * state.correlations[block]
        _add_rows(result, block, state.features, -self.residual_coef * state.ridge(lam), state.coefficients)
        if self.y_coef:
            if state.y_correlations is None:
                raise ValueError("this rule needs the correlations of y: DualState(y_correlations=...)")
            result += self.y_coef * state.y_correlations[block]
        if self.cut_coef and state.cut is not None:
            result += self.cut_coef * state.cut.correlations[block]
            _add_rows(result, block, state.cut.features, self.cut_coef * state.ridge(lam), state.cut.rows)
        return result

    def errors(self, state: DualState, lam: float) -> Array:
        """Bounds on the Euclidean error of each row of the centre's correlations."""
        size = abs(self.residual_coef) * np.sqrt(state.residual_square(lam))
        size += abs(self.y_coef) * np.sqrt(state.y_square)
        if self.cut_coef and state.cut is not None:
            cut = state.cut
            square = cut.image @ cut.image + state.ridge(lam) * np.vdot(cut.rows, cut.rows)
            size += abs(self.cut_coef) * float(np.sqrt(square))
        return state.errors(lam, size, self.residual_coef)

    def rejects(self, state: DualState, lam: float) -> NDArray[np.bool_]:
        """Rows that are zero in every solution at strength lam."""
        group, l1 = state.strengths(lam)
        errors = self.errors(state, lam)
        rejected = np.zeros(len(errors), dtype=bool)
        for start in range(0, len(errors), _BLOCK):
            block = slice(start, start + _BLOCK)
            rejected[block] = zero_rows(
                self.correlations(state, lam, block),
                state.effective_norms(lam, block),
                self.radius,
                group[block],
                l1[block],
                state.positive,
                errors[block],
            )
        return rejected


def _add_rows(target: Array, block: slice, features: NDArray[np.intp], factor: float, rows: Array) -> None:
    """target += factor * rows, at those of the features that lie in the block that target holds."""
    if factor == 0.0 or features.size == 0:
        return
    positions = features - (block.start or 0)
    inside = (positions >= 0) & (positions < len(target))
    target[positions[inside]] += factor * rows[inside]
