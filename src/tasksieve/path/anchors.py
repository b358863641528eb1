"""Anchored correlations: bounds on all of X'r from a few past passes over the data.

Keep ``C_m = X~' R_m`` for a few past residuals ``R_m``, the *anchors*. A new vector is, task by task, a combination of
the anchors plus a remainder, ``r_t = sum_m a_mt R_mt + e_t``, and so

    || c_j(r) || <= || ( sum_m a_mt C_m[j, t] )_t || + sqrt( sum_t ||x_jt||^2 ||e_t||^2 ).

Only features whose bound reaches their threshold have to touch the data. Two roundings are part of the bound:

* C_m is stored in float32: ``|C_m[j,t] - stored| <= 2^-24 |C_m[j,t]| <= 2^-24 ||x_jt|| ||R_mt||`` (Cauchy-Schwarz);
* every correlation was summed in float64 with error at most ``rounding ||x_jt|| ||R_mt||`` (`Design.rounding`).

Both have the form of the remainder term, so they are added to ``||e_t||``. The range of float32 is narrow, too:
correlations and norms are stored in units of (a power of two near) their largest, and no norm below 2^-125 of that, so
that what a tiny correlation loses by being stored stays within the bound.

A rule's ball has its centre on the line from the last vector r to the first anchor, the target y. When r was judged,
``||c_j(r)||^2`` and ``<c_j(r), c_j(y)>`` were noted on the way; with ``||c_j(y)||^2`` they give the norm of any
combination of the two in a few operations a feature, and only features that this leaves open look at the anchors again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import Design
from ..penalties import RowPenalty

Array = np.ndarray[Any, Any]

_FLOAT32_UNIT = 2.0**-24 * 1.01  # the margin covers the float64 arithmetic of the combination
_FLOAT32_SMALL = 2.0**-125
_UPWARDS = 1.0 + 2.0**-22  # more than the product and its rounding to single precision can lose
_SMALL_BOUND = 200_000  # products of a bound that a second thread is not worth waking for


def _unit_of(values: Array, threads: int) -> float:
    """A power of two near the largest of these numbers."""
    largest = kernels.largest_magnitude(values, threads)
    return float(2.0 ** np.clip(np.frexp(largest)[1], -1000, 1000)) if np.isfinite(largest) else 1.0


@dataclass
class Anchored:
    """A vector in terms of the anchors: coefficients (anchors, tasks) and a bound on the remainder of each task."""

    coef: Array
    remainder: Array
    spectral: (
        float  # bound on the largest singular value of the remainder, n x T; for one matrix shared by all
    )

    def __add__(self, other: Anchored) -> Anchored:
        return Anchored(
            self.coef + other.coef, self.remainder + other.remainder, self.spectral + other.spectral
        )

    def scaled(self, factor: float) -> Anchored:
        return Anchored(factor * self.coef, abs(factor) * self.remainder, abs(factor) * self.spectral)


class AnchoredCorrelations:
    """A few past passes over the data, and what they say about a new vector.

    Parameters
    ----------
    design : Design
    capacity : int
        Anchors kept; the first one stays for ever, of the others the oldest goes.
    """

    def __init__(self, design: Design, capacity: int = 5) -> None:
        self._design = design
        self._capacity = capacity
        self.vectors = np.empty((0, design.n_samples))
        self._gram = np.empty((design.n_tasks, 0, 0))  # inner products of the anchors, task by task
        self._products: list[Array] = []
        self.current: Anchored  # the vector that was followed last; of the first anchor at the beginning
        # Memory of anchors that are gone: fresh pages cost as much as filling them.
        self._spare: list[Array] = []
        norms = np.ascontiguousarray(design.norms()[:, :1] if design.uniform else design.norms())
        self._unit = _unit_of(norms, design.n_threads)
        self._units: list[float] = []
        self._norms = self._upwards(norms, 1.0 / self._unit)
        self._ridge = 0.0
        self._ridge_norms = self._norms
        self._estimate = np.empty(design.n_features)
        self._upper = np.empty(design.n_features)
        # ||c_j||^2, <c_j, first anchor> and the remainder's bound: of the vector judged last, and of the first anchor
        self._judged: Anchored | None = None
        self._moments = np.empty((design.n_features, 3))
        self._first_moments: Array | None = None
        self._longest: Array | None = None  # largest norm of each feature over the tasks

    def __len__(self) -> int:
        return len(self.vectors)

    def follow(self, vector: Array) -> Anchored:
        """`express` a vector and remember it as `current`."""
        self.current = self.express(vector)
        return self.current

    def stand_at(self, m: int) -> None:
        """Anchor m is `current`."""
        self.current = self.anchor(m)

    def add(self, vector: Array, products: Array) -> None:
        """A new anchor: a flat vector and its correlations with all features."""
        if len(self) == self._capacity:
            self._remove(1)
        self.vectors = np.vstack([self.vectors, vector])
        count = len(self)
        gram = np.empty((self._design.n_tasks, count, count))
        gram[:, :-1, :-1] = self._gram
        gram[:, -1, :] = gram[:, :, -1] = self._task_products(vector)
        self._gram = gram
        if count == 1:
            self.stand_at(0)
        threads = self._design.n_threads
        unit = _unit_of(products, threads)
        stored = self._spare.pop() if self._spare else np.empty(products.shape, dtype=np.float32)
        kernels.store_single(products, 1.0 / unit, -np.inf, threads, stored)
        self._products.append(stored)
        self._units.append(unit)

    def place_of(self, vector: Array) -> int | None:
        """Which anchor this very vector is, if any."""
        same = np.flatnonzero((self.vectors == vector).all(axis=1))
        return int(same[-1]) if len(same) else None

    def _remove(self, m: int) -> None:
        self.vectors = np.delete(self.vectors, m, axis=0)
        self._gram = np.delete(np.delete(self._gram, m, axis=1), m, axis=2)
        self._spare.append(self._products.pop(m))
        del self._units[m]

    def _upwards(self, norms: Array, factor: float = 1.0) -> Array:
        """Norms in single precision, none of them smaller than ``factor norms``: a bound must not lose by that."""
        out = np.empty(norms.shape, dtype=np.float32)
        kernels.store_single(norms, factor * _UPWARDS, _FLOAT32_SMALL, self._design.n_threads, out)
        return out

    def _task_products(self, vector: Array) -> Array:
        """Inner products of the anchors with a vector, (tasks, anchors)."""
        if self._design.n_tasks == 1:
            return (self.vectors @ vector)[None, :]
        return np.add.reduceat(self.vectors * vector, self._design.offsets[:-1], axis=1).T

    def express(self, vector: Array) -> Anchored:
        """Task by task, the best combination of the anchors, and what it leaves."""
        design = self._design
        sums = design.task_sums
        count, tasks = len(self), design.n_tasks
        gram, right = self._gram, self._task_products(vector)[:, :, None]
        sizes = np.sqrt(np.maximum(np.einsum("tmm->tm", gram), 0.0))
        # Scaled to unit diagonal and slightly regularised: anchors of neighbouring values are nearly parallel.
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        scaled = gram * inverse[:, :, None] * inverse[:, None, :]
        scaled += 1e-13 * np.eye(count)
        solved = np.linalg.solve(scaled, right * inverse[:, :, None])[:, :, 0] * inverse
        coef = np.ascontiguousarray(solved.T)
        spread = np.repeat(coef, np.diff(design.offsets), axis=1)
        rest = vector - np.einsum("mi,mi->i", spread, self.vectors)
        length = np.sqrt(sums(vector * vector))
        used = np.sum(np.abs(coef) * sizes.T, axis=0)
        rounding = _FLOAT32_UNIT * used + design.rounding * (length + used)
        remainder = np.sqrt(sums(rest * rest)) * (1.0 + 1e-10) + rounding
        spectral = 0.0
        if self._norms.shape[1] == 1:  # one norm a feature: one matrix for all tasks, or a single task
            block = rest.reshape(tasks, -1)
            small = block @ block.T if tasks <= block.shape[1] else block.T @ block
            largest = np.linalg.eigvalsh(small)[-1] if len(small) > 1 else small[0, 0]
            spectral = float(np.sqrt(max(largest, 0.0)) * (1.0 + 1e-8) + np.linalg.norm(rounding))
        return Anchored(coef, remainder, spectral)

    def anchor(self, m: int) -> Anchored:
        """Anchor m in terms of the anchors."""
        design = self._design
        coef = np.zeros((len(self), design.n_tasks))
        coef[m] = 1.0
        length = np.sqrt(self._gram[:, m, m])
        rounding = (_FLOAT32_UNIT + design.rounding) * length
        return Anchored(coef, rounding, float(np.linalg.norm(rounding)))

    def ratios(
        self,
        vector: Anchored,
        penalty: RowPenalty,
        *,
        radius: float = 0.0,
        ridge: float = 0.0,
        stretch: Array | None = None,
    ) -> tuple[Array, Array]:
        """How close each feature comes to its threshold: an estimate, and an upper bound over a ball around `vector`.

        A feature whose bound stays below 1 cannot be active. With a ridge the ball lives in the augmented space,
        whose column norms are ``sqrt(||x||^2 + ridge)``; rows of the current support need the ridge's correction
        too and are not judged here. `stretch` (one positive number a task) makes the ball an ellipsoid: a vector e
        belongs to it if ``sum_t ||e_t||^2 / stretch_t^2 <= radius^2``.
        """
        estimate, upper = self._estimate, self._upper
        notes = None
        if vector is self.current and radius == 0.0 and self._can_note(penalty, ridge):
            self._judged, notes = vector, self._moments
        self._bounds(vector, penalty, radius, ridge, estimate, upper, stretch=stretch, moments=notes)
        return estimate, upper

    def ball_bounds(
        self,
        current_coef: float,
        first_coef: float,
        penalty: RowPenalty,
        *,
        radius: float,
        ridge: float = 0.0,
    ) -> Array:
        """The upper bound of `ratios` for the ball around ``current_coef * current + first_coef * first anchor``."""
        centre = self.current.scaled(current_coef) + self.anchor(0).scaled(first_coef)
        if self._judged is not self.current or not self._can_note(penalty, ridge):
            return self.ratios(centre, penalty, radius=radius, ridge=ridge)[1]
        if self._first_moments is None or self._longest is None:
            self._first_moments = np.empty_like(self._moments)
            wasted = np.empty_like(self._estimate), np.empty_like(self._upper)
            self._bounds(self.anchor(0), penalty, 0.0, 0.0, *wasted, moments=self._first_moments)
            self._longest = np.max(self._norms, axis=1).astype(np.float64) * self._unit
        upper = np.empty_like(self._longest)
        kernels.moment_bounds(
            self._moments,
            self._first_moments,
            self._longest,
            penalty.group,
            current_coef,
            first_coef,
            self._units[0],
            radius,
            4.0 * (self._design.n_tasks + 16) * np.finfo(np.float64).eps,
            upper,
        )
        if self._norms.shape[1] > 1:  # norms differ between tasks: a sharper bound exists
            left = np.flatnonzero(upper >= 1.0)
            sharper = np.empty(len(left))
            self._bounds(centre, penalty, radius, ridge, np.empty(len(left)), sharper, chosen=left)
            upper[left] = sharper
        return upper

    def _can_note(self, penalty: RowPenalty, ridge: float) -> bool:
        """Whether norms of combinations follow from inner products; for a single task they are cheap anyway."""
        return self._design.n_tasks > 1 and ridge == 0.0 and not penalty.has_l1 and not penalty.positive

    def _bounds(
        self,
        vector: Anchored,
        penalty: RowPenalty,
        radius: float,
        ridge: float,
        estimate: Array,
        upper: Array,
        *,
        stretch: Array | None = None,
        chosen: Array | None = None,
        moments: Array | None = None,
    ) -> None:
        if ridge != self._ridge:
            wide = np.sqrt(np.square(self._norms, dtype=np.float64) + ridge / self._unit**2)
            self._ridge_norms = self._upwards(wide)
            self._ridge = ridge
        norms = self._ridge_norms if ridge else self._norms
        remainder = vector.remainder
        if stretch is not None and norms.shape[1] > 1:
            norms = self._upwards(norms * stretch)
            remainder = remainder / stretch
        elif stretch is not None:  # one norm a feature: the ball around the ellipsoid
            radius = radius * float(np.max(stretch))
        kernels.anchored_ratios(
            self._products,
            vector.coef * np.array(self._units)[:, None],
            norms,
            remainder * self._unit,
            vector.spectral * self._unit,
            radius * self._unit,
            penalty.group,
            penalty.l1 if penalty.has_l1 else None,
            penalty.positive,
            self._design.n_threads if estimate.size * vector.coef.size > _SMALL_BOUND else 1,
            estimate,
            upper,
            chosen,
            moments,
        )
