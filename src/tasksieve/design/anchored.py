"""Anchored correlations, the features' half: bounds on all of X'r from a few past passes over the data.

Keep ``C_m = X~' R_m`` for a few past vectors ``R_m``, the *anchors*. A new vector is, task by task, a combination of
the anchors plus a remainder, ``r_t = sum_m a_mt R_mt + e_t`` (found in sample space: `path.anchors`), and so

    || c_j(r) || <= || ( sum_m a_mt C_m[j, t] )_t || + sqrt( sum_t ||x_jt||^2 ||e_t||^2 ).

Only features whose bound reaches their threshold have to touch the data. Two roundings are part of the bound:

* C_m is stored in float32: ``|C_m[j,t] - stored| <= 2^-24 |C_m[j,t]| <= 2^-24 ||x_jt|| ||R_mt||`` (Cauchy-Schwarz);
* every correlation was summed in float64 with error at most ``rounding ||x_jt|| ||R_mt||`` (`LocalShard.rounding`).

Both have the form of the remainder term, so they are added to ``||e_t||``. The range of float32 is narrow, too:
correlations and norms are stored in units of (a power of two near) their largest, and no norm below 2^-100 of that. A
correlation below the range then loses at most 2^-150 of the largest one, which is 2^-49 of the anchor's largest task
times such a norm, and part of the bound.

How a penalty's gauge follows from bounds on the entries of a row is the penalty's own answer (`RowPenalty.reach`); for
gauges of the form ``||soft(m, l1)||/group`` it is compiled.

One combination may serve all tasks, ``r = sum_m a_m R_m + e``. Of the products only the inner products of a feature's
rows are needed then, ``||sum_m a_m C_m[j]||^2 = sum_ml a_m a_l <C_m[j], C_l[j]>``: a few numbers a feature instead of
a few rows over the tasks. Along a path the remainder is hardly longer for it.

A ball often has its centre on the line from the last vector r to the first anchor, the target y. When r was judged,
``||c_j(r)||^2`` and ``<c_j(r), c_j(y)>`` were noted on the way; with ``||c_j(y)||^2`` they give the norm of any
combination of the two in a few operations a feature, and only features that this leaves open look at the anchors again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._kernels import kernels
from .row_metric import POINT, Cover, Region

Array = np.ndarray[Any, Any]

FLOAT32_UNIT = 2.0**-24 * 1.01  # the margin covers the float64 arithmetic of the combination
FLOAT32_RANGE = 2.0**-49  # with the least norm below: covers what numbers below single precision's range lose
FLOAT32_SMALL = 2.0**-100
METRIC_SMALL = 2.0**-50  # the same for norms under a row metric, whose squares have to stay in the range
UPWARDS = 1.0 + 2.0**-22  # more than the product and its rounding to single precision can lose
UPWARDS_SQUARED = 1.0 + 2.0**-20  # the same where squares are added up in single precision
# of inner products, relative to their factors' sizes: stored in single precision, summed in double
INNER_ROUNDING = FLOAT32_UNIT + 2.0**-40
INNER_SMALLEST = 2.0**-140  # more than numbers below single precision's range lose, in units of the anchors
_SMALL_BOUND = 200_000  # products of a bound that a second thread is not worth waking for
_BLOCK = 4096  # features at a time where a penalty is evaluated in NumPy


def _unit_of(values: Array, threads: int) -> float:
    """A power of two near the largest of these numbers."""
    largest = kernels.largest_magnitude(values, threads)
    return float(2.0 ** np.clip(np.frexp(largest)[1], -1000, 1000)) if np.isfinite(largest) else 1.0


@dataclass
class Anchored:
    """A vector in terms of the anchors: coefficients (anchors, tasks) and a bound on the remainder of each task.

    `joint`: The coefficients of an anchor are the same in all tasks.
    """

    coef: Array
    remainder: Array
    spectral: float  # largest singular value of the remainder, n x T, or more: for one matrix shared by all
    joint: bool = False

    def __add__(self, other: Anchored) -> Anchored:
        coef, remainder = self.coef + other.coef, self.remainder + other.remainder
        return Anchored(coef, remainder, self.spectral + other.spectral, self.joint and other.joint)

    def scaled(self, factor: float) -> Anchored:
        size = abs(factor)
        return Anchored(factor * self.coef, size * self.remainder, size * self.spectral, self.joint)

    def loosened(self, slack: Array) -> Anchored:
        """The same with a larger remainder in each task."""
        spectral = self.spectral + math.sqrt(slack @ slack)
        return Anchored(self.coef, self.remainder + slack, spectral, self.joint)


class AnchorStore:
    """Products of the anchors with the features of a shard."""

    def __init__(self, norms: Array, n_tasks: int, n_threads: int) -> None:
        self._threads, self._tasks = n_threads, n_tasks
        self._unit = _unit_of(norms, n_threads)
        self._norms = self._upwards(norms, 1.0 / self._unit)
        self._products: list[Array] = []
        self._units = np.empty((0, 1))
        # inner products of the anchors' rows, of each with those before it and itself; made when they are needed
        self._inner: list[list[Array]] = []
        # Memory of anchors that are gone: fresh pages cost as much as filling them.
        self._spare: list[Array] = []
        count = len(norms)
        self._estimate, self._upper = np.empty(count), np.empty(count)
        # ||c_j||^2, <c_j, first anchor> and the remainder's bound: of the vector judged last, and of the first anchor
        self._moments = np.empty((0, 3))
        self._first_moments: Array | None = None
        # norms under a row metric, and of the ordinary columns centred alike (`row_metric`: m and c)
        self._metric: tuple[Array, Array] | None = None
        self._metric_unit = 1.0

    def store(self, products: Array) -> None:
        unit = _unit_of(products, self._threads)
        stored = self._room(unit)
        kernels.store_single(products, 1.0 / unit, -np.inf, self._threads, stored)

    def _room(self, unit: float) -> Array:
        """For one more anchor, in units of the largest of its products, or of a bound of it."""
        shape = len(self._norms), self._tasks
        self._products.append(self._spare.pop() if self._spare else np.empty(shape, dtype=np.float32))
        self._units = np.append(self._units, [[unit]], axis=0)
        return self._products[-1]

    def store_in_parts(self, length: float) -> Callable[[slice, Array], None]:
        """The same for a vector whose tasks are no longer than this, as the products of some features come: what puts
        them into their places. None is larger than the largest norm times that length."""
        unit = self._unit * float(2.0 ** np.clip(np.frexp(length)[1], -900, 900))
        stored = self._room(unit)
        return lambda rows, products: kernels.store_single(
            products, 1.0 / unit, -np.inf, self._threads, stored[rows]
        )

    def drop(self, m: int) -> None:
        self._spare.append(self._products.pop(m))
        self._units = np.delete(self._units, m, axis=0)
        if m < len(self._inner):
            del self._inner[m]
            for row in self._inner[m:]:
                del row[m]

    def keep_metric(self, least: Array, shifted: Array) -> None:
        """Squares of the norms under a row metric, and of those under the ordinary weights with the same centring."""
        least, shifted = (np.ascontiguousarray(np.sqrt(squares)) for squares in (least, shifted))
        self._metric_unit = _unit_of(least, self._threads)
        self._metric = (
            self._upwards(least, 1.0 / self._metric_unit, METRIC_SMALL),
            self._upwards(shifted, 1.0 / self._unit, METRIC_SMALL),
        )

    def metric_norms(self, cover: Cover) -> Array:
        """``sqrt(alpha c^2 + beta m^2)``, or more."""
        norms, unit = self._under(cover, None)
        return norms * (unit * self._unit)

    def _under(self, cover: Cover, stretch: Array | None) -> tuple[Array, float]:
        """These norms in single precision and the power of two they are in, beside the unit; none of them is larger
        than the `stretch` of an ellipsoid that holds the ball makes it."""
        assert self._metric is not None
        least, shifted = self._metric
        factors = np.sqrt(cover.beta) * (self._metric_unit / self._unit), np.sqrt(cover.alpha)
        unit = float(2.0 ** np.frexp(max(float(np.max(factors)), 1e-300))[1])
        first, second = ((factor / unit).astype(np.float32) for factor in factors)
        out, more = least * first, shifted * second
        np.square(out, out=out)
        np.square(more, out=more)
        out += more
        np.sqrt(out, out=out)
        out *= np.float32(UPWARDS_SQUARED)
        if stretch is not None:
            np.multiply(self._norms, (stretch * (UPWARDS / unit)).astype(np.float32), out=more)
            np.minimum(out, more, out=out)
        return np.maximum(out, np.float32(METRIC_SMALL), out=out), unit

    def _upwards(self, norms: Array, factor: float = 1.0, least: float = FLOAT32_SMALL) -> Array:
        """Norms in single precision, none of them smaller than ``factor norms``: a bound must not lose by that."""
        out = np.empty(norms.shape, dtype=np.float32)
        kernels.store_single(np.ascontiguousarray(norms), factor * UPWARDS, least, self._threads, out)
        return out

    def bound(
        self, vector: Anchored, penalty: Any, region: Region = POINT, note: bool = False
    ) -> tuple[Array, Array]:
        """Each feature's gauge: an estimate, and an upper bound over a region around a vector. `note`: keep the moments
        for `ball_bound`."""
        plain = plain_thresholds(penalty)
        if vector.joint and plain is not None and region.stretch is None and region.cover is None:
            self._fill_jointly(vector, plain, region.radius)
            return self._estimate, self._upper
        moments = None
        if note:
            if len(self._moments) != len(self._upper):
                self._moments = np.empty((len(self._upper), 3))
            moments = self._moments
        self._fill(vector, penalty, region, self._estimate, self._upper, moments=moments)
        return self._estimate, self._upper

    def ball_bound(
        self, first: Anchored, centre: Anchored, coefs: tuple[float, float], penalty: Any, radius: float
    ) -> Array:
        """Upper bounds as of `bound` around ``coefs[0] * (the vector noted) + coefs[1] * first``, the first anchor."""
        group, _ = penalty.thresholds()
        if self._first_moments is None:
            self._first_moments = np.empty_like(self._moments)
            wasted = np.empty_like(self._estimate), np.empty_like(self._upper)
            self._fill(first, penalty, POINT, *wasted, moments=self._first_moments)
        upper = np.empty_like(self._longest)
        kernels.moment_bounds(
            self._moments,
            self._first_moments,
            self._longest,
            group,
            *coefs,
            float(self._units[0, 0]),
            radius * self._unit,
            4.0 * (self._tasks + 16) * np.finfo(np.float64).eps,
            upper,
        )
        if self._norms.shape[1] > 1:  # norms differ between tasks: a sharper bound exists
            left = np.flatnonzero(upper >= 1.0)
            sharper = np.empty(len(left))
            self._fill(centre, penalty, Region(radius), np.empty(len(left)), sharper, chosen=left)
            upper[left] = sharper
        return upper

    @cached_property
    def _longest(self) -> Array:
        """Largest norm of each feature over the tasks, in units of `_unit`."""
        return np.asarray(np.max(self._norms, axis=1).astype(np.float64))

    def _inner_products(self) -> list[Array]:
        """Those of the rows of all pairs of anchors."""
        for m in range(len(self._inner), len(self._products)):
            own = [np.empty(len(self._norms), dtype=np.float32) for _ in range(m + 1)]
            for other, out in zip(self._products, own, strict=False):
                kernels.row_inner_products(self._products[m], other, self._threads, out)
            self._inner.append(own)
        return [one for row in self._inner for one in row]

    def _fill_jointly(self, vector: Anchored, group: Array, radius: float) -> None:
        """`_fill` for one combination of the anchors in all tasks; a ball is taken as if all norms of a feature were
        its largest: what the exact maximum over it rejects beside that is not worth another look at the anchors."""
        coef = vector.coef[:, 0] * self._units[:, 0]
        kernels.joint_bounds(
            self._inner_products(),
            coef,
            self._norms,
            self._longest,
            vector.remainder * self._unit,
            radius * self._unit,
            group,
            INNER_ROUNDING,
            INNER_SMALLEST * float(np.sum(np.abs(coef))) ** 2,
            self._threads,
            self._estimate,
            self._upper,
        )

    def _fill(
        self,
        vector: Anchored,
        penalty: Any,
        region: Region,
        estimate: Array,
        upper: Array,
        *,
        chosen: Array | None = None,
        moments: Array | None = None,
    ) -> None:
        norms, remainder, spectral = self._norms, vector.remainder, vector.spectral
        radius, stretch, cover = region
        if cover is not None:
            norms, unit = self._under(cover, stretch)
            radius, remainder, spectral = radius * unit, np.zeros(self._tasks), 0.0
        elif stretch is not None and norms.shape[1] > 1:
            norms, remainder = self._upwards(norms * stretch), remainder / stretch
        elif stretch is not None:  # one norm a feature: the ball around the ellipsoid
            radius = radius * float(np.max(stretch))
        thresholds = penalty.thresholds()
        if thresholds is None:
            off = None if cover is None else vector.remainder
            self._ask(replace(vector, remainder=remainder), penalty, radius, norms, off, estimate, upper)
            return
        kernels.anchored_ratios(
            self._products,
            vector.coef * self._units,
            norms,
            remainder * self._unit,
            spectral * self._unit,
            radius * self._unit,
            *thresholds,
            penalty.positive,
            self._threads if estimate.size * vector.coef.size > _SMALL_BOUND else 1,
            estimate,
            upper,
            chosen,
            moments,
        )
        if cover is not None:
            upper += self._remainders(vector, *thresholds)

    def _remainders(self, vector: Anchored, group: Array, l1: Array | None) -> Array:
        """What the remainder of a vector adds to each gauge at most: the ordinary norms count for it."""
        if self._norms.shape[1] == 1:
            errors = self._norms[:, 0] * vector.spectral
        else:
            errors = np.sqrt(np.square(self._norms, dtype=np.float64) @ np.square(vector.remainder))
        least = group if l1 is None else np.where(group > 0.0, group, l1)
        return np.divide(errors * (UPWARDS * self._unit), least, out=np.zeros(len(errors)), where=least > 0.0)

    def _ask(
        self,
        vector: Anchored,
        penalty: Any,
        radius: float,
        norms: Array,
        off: Array | None,
        estimate: Array,
        upper: Array,
    ) -> None:
        """The same through the penalty's own methods, a block of features at a time. `off`: the remainder, where the
        ordinary norms count for it."""
        everything, pieces = np.arange(len(norms)), penalty.pieces(_BLOCK)
        for block in pieces:
            part = penalty if len(pieces) == 1 else penalty.restrict(everything[block])
            centre = np.zeros((len(norms[block]), self._tasks))
            for products, own in zip(self._products, vector.coef * self._units, strict=True):
                centre += own * products[block]
            sizes = norms[block].astype(np.float64) * self._unit
            errors = None if off is None else self._norms[block] * (off * self._unit)
            estimate[block], upper[block] = row_reaches(
                part, centre, sizes, vector.remainder, vector.spectral, radius, errors
            )


def plain_thresholds(penalty: Any) -> Array | None:
    """Thresholds of a penalty whose gauge is the length of a row; None for others."""
    found = penalty.thresholds()
    return None if found is None or found[1] is not None or penalty.positive else np.asarray(found[0])


def row_reaches(
    penalty: Any,
    centre: Array,
    sizes: Array,
    remainder: Array,
    spectral: float,
    radius: float,
    off: Array | None = None,
) -> tuple[Array, Array]:
    """Estimates and upper bounds of the gauges of some rows, by the penalty's own methods. `off`: what the entries may
    be off, in place of what the remainder says."""
    if off is not None:
        upper = penalty.row_reach(centre, off, sizes, radius)
    elif sizes.shape[1] == 1:  # the remainder moves the row within a ball of its own
        upper = penalty.row_reach(centre, 0.0, np.broadcast_to(sizes, centre.shape), radius + spectral)
    else:
        upper = penalty.row_reach(centre, sizes * remainder, sizes, radius)
    return np.asarray(penalty.row_gauges(centre)), np.asarray(upper)
