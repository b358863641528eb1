"""Check a certificate against data, without any other line of tasksieve.

    python verify.py certificate.npz table.csv            (a table, if the certificate says how it was read)
    python verify.py certificate.npz data.npz             (arrays X, y and, if used, task, sample_weight, offset)
    python verify.py certificate.npz --matrix X.npy --y y.npy --task task.npy
    python verify.py certificate.npz --bfile PREFIX --pheno FILE --covar FILE       (PLINK's .bed, .bim and .fam files)
    ... --exact        rational arithmetic: no floating point is trusted (slow)

    python verify.py part certificate-part.npz DATA       (what one site of several says of its rows; DATA as above)
    python verify.py statement statement.npz half.npz ... (what the halves of all sites add up to; no data)

This one file needs Python 3.11 and NumPy, may be copied anywhere, and imports nothing else. The format and what is
proved are `docs/certificate-format.md`; why rounding cannot fool it is `docs/howto/check-it-yourself.md`. Exit codes:
0 proved, 1 not proved, 2 could not be read.

Every formula is written once, on boxes: pairs of bounds that hold the true number. With floating point each operation
moves its bounds outwards (`Box`); with ``--exact`` bounds are fractions, and only roots, logarithms and exponentials
have a width at all. """

from __future__ import annotations

import argparse
import csv
import hashlib
import heapq
import hmac
import io
import json
import math
import os
import sys
import time
import weakref
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

VERSION = 1  # of the format
# of this file; 1 accepted forged certificates where numbers underflow (SECURITY.md), 2 knows fewer losses, 3 proves no
# zeros of counts, positive numbers and survival, 4 nothing of survival where a column nearly orders the events
PROGRAM = 5
UNIT = 2.0**-53  # of rounding
_PHI, _ETA = UNIT * (1.0 + 2.0 * UNIT), 2.0**-1074  # of `up` and `down`
_TINY = 2.0**-1070  # what a product may lose by underflow, and a little more
_ENTRIES = 1 << 22  # of a block of columns in memory
_SHORT = 1 << 15  # of products in twice the precision: the processor's own memory
_PRODUCTS = 1 << 25  # features x outputs x values in memory
_MOST_PAIRS = 1 << 27  # of terms of a partial likelihood and a row, one after the other
_WIDE = 1024  # columns of a sum that is exact in any order
_LOST = 2.0**-460  # what squares and products lose by underflow, of a length
_CACHED = 1 << 16  # entries that the processor's own memory holds while several things are done with them


# What a prediction of a run depends on, and what says so: the certificate, the data read again as they were (means,
# patterns, baseline hazards, categories), what was asked of the fit. tasksieve has the same list of what it writes
# (`PredictionBasis`), and a test compares the two: a field that is not here is refused.
PREDICTION = {
    **dict.fromkeys(("coef", "intercept", "thresholds", "tasks", "classes"), "certificate and data"),
    **dict.fromkeys(("targets", "task", "offset", "needs_offset", "single", "patterns"), "certificate and data"),
    **dict.fromkeys(("encoding", "fill", "fills", "baseline_hazard", "covariates", "lacking"), "data"),
    **dict.fromkeys(("survival", "label", "files", "sheets", "file_tasks", "task_name"), "data and what was asked"),
    **dict.fromkeys(("missing", "value_labels", "id", "choice"), "data and what was asked"),
    **dict.fromkeys(("loss_weights", "target_scales", "model"), "certificate and what was asked"),
    **dict.fromkeys(("estimator", "params"), "certificate and what was asked"),
}


class Unreadable(Exception):
    """The file is not a certificate that this program can read (exit code 2)."""


class Mismatch(Exception):
    """The data are not those of the certificate, or a claim makes no sense (exit code 1)."""


class Undecided(Exception):
    """Numbers too large for any arithmetic here (exit code 1)."""


# --- boxes: numbers between two bounds ----------------------------------------------------------------------


def gamma(n: int) -> float:
    """``n u / (1 - n u)``, rounded up: the most that n roundings in a row, or a sum of n terms in any order, can
    lose."""
    return n * UNIT / (1.0 - n * UNIT) * (1.0 + 4.0 * UNIT)


def _is_float(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.float64


def up(x: Any) -> Any:
    """The next float64 above, where a rounded result may lie below the truth (of numbers below 2^-1020, perhaps the one
    after that). Fractions are left alone.

    ``fl(x + fl(phi |x| + eta))`` with ``phi = u (1 + 2u)``, eta the smallest number, is at least the successor of x
    (Rump, Zimmermann, Boldo and Melquiond 2009), and several times faster than `np.nextafter`. What is not
    finite is not a number afterwards, or stays on its side. """
    return x + (abs(x) * _PHI + _ETA) if _is_float(x) else x


def down(x: Any) -> Any:
    return x - (abs(x) * _PHI + _ETA) if _is_float(x) else x


def _add(a: Any, b: Any) -> tuple[Any, Any]:
    """Bounds of a + b: the sum itself where it is exact (Knuth's TwoSum finds the error of a rounded sum exactly)."""
    s = a + b
    if not _is_float(s):
        return s, s
    part = s - a
    error = (a - (s - part)) + (b - part)
    return np.where(error >= 0.0, s, down(s)), np.where(error <= 0.0, s, up(s))


def _multiply(a: Any, b: Any) -> tuple[Any, Any]:
    """Bounds of a b: one step outwards, but for factors of 0, 1 and -1."""
    p = a * b
    if not _is_float(p):
        return p, p
    clear = (a == 0) | (b == 0) | (np.abs(a) == 1) | (np.abs(b) == 1)
    return np.where(clear, p, down(p)), np.where(clear, p, up(p))


class Box:
    """Arrays `lo <= truth <= hi`, of float64 (results are moved outwards by a step, so one rounding is always
    covered, underflow included; what overflows or is not a number proves nothing, because every comparison with it
    fails), or of fractions, where all but roots, logarithms and exponentials are exact, and `lo is hi` where nothing
    has a width."""

    __slots__ = ("hi", "lo")
    __array_ufunc__ = None

    def __init__(self, lo: Any, hi: Any = None) -> None:
        self.lo, self.hi = lo, lo if hi is None else hi

    @property
    def point(self) -> bool:
        return self.lo is self.hi and not _is_float(self.lo)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.lo))

    def _ends(self) -> tuple[Any, ...]:
        return (self.lo,) if self.lo is self.hi else (self.lo, self.hi)

    def __getitem__(self, place: Any) -> Box:
        lo = self.lo[place]
        return Box(lo, lo if self.lo is self.hi else self.hi[place])

    def __neg__(self) -> Box:
        lo = -self.hi
        return Box(lo, lo if self.lo is self.hi else -self.lo)

    def __add__(self, other: Box) -> Box:
        if self.point and other.point:
            return Box(self.lo + other.lo)
        return Box(_add(self.lo, other.lo)[0], _add(self.hi, other.hi)[1])

    def __sub__(self, other: Box) -> Box:
        return self + -other

    def __mul__(self, other: Box) -> Box:
        if self.point and other.point:
            return Box(self.lo * other.lo)
        bounds = [_multiply(a, b) for a in self._ends() for b in other._ends()]
        lo, hi = bounds[0]
        for low, high in bounds[1:]:
            lo, hi = np.minimum(lo, low), np.maximum(hi, high)
        return Box(lo, hi)

    def __truediv__(self, other: Box) -> Box:
        """By what is positive; elsewhere nothing is known."""
        if not _is_float(self.lo):
            if np.any(other.lo <= 0):
                raise Undecided("a division by what may be 0")
            return self * (Box(1 / other.lo) if other.point else Box(1 / other.hi, 1 / other.lo))
        sound = other.lo > 0.0
        lo = np.minimum(down(self.lo / other.lo), down(self.lo / other.hi))
        hi = np.maximum(up(self.hi / other.lo), up(self.hi / other.hi))
        return Box(np.where(sound, lo, -np.inf), np.where(sound, hi, np.inf))

    def __abs__(self) -> Box:
        if self.point:
            return Box(abs(self.lo))
        low, high = abs(self.lo), abs(self.hi)
        around = (self.lo <= 0) & (self.hi >= 0)
        return Box(np.where(around, 0 * low, np.minimum(low, high)), np.maximum(low, high))

    def square(self) -> Box:
        size = abs(self)
        return size * size

    def positive(self) -> Box:
        """``max(., 0)``."""
        lo = np.maximum(self.lo, 0 * self.lo)
        return Box(lo, lo if self.point else np.maximum(self.hi, 0 * self.hi))

    def at_most(self, other: Box) -> Box:
        lo = np.minimum(self.lo, other.lo)
        return Box(lo, lo if self.point and other.point else np.minimum(self.hi, other.hi))

    def sum(self, axis: int) -> Box:
        """Along an axis."""
        if not _is_float(self.lo):
            lo = self.lo.sum(axis=axis)
            return Box(lo, lo if self.point else self.hi.sum(axis=axis))
        sizes = np.maximum(np.abs(self.lo), np.abs(self.hi)).sum(axis=axis)
        return _plain_sum(self.lo.sum(axis=axis), self.hi.sum(axis=axis), sizes, self.shape[axis])

    def total(self) -> Box:
        """Of all entries: each bound by `math.fsum`, which rounds once, or exactly."""
        if _is_float(self.lo):
            lo, hi = _fsum(self.lo), _fsum(self.hi)
            return Box(lo if lo == 0.0 else down(lo), hi if hi == 0.0 else up(hi))  # a sum that rounds to 0 is 0
        lo = _exact_sum(self.lo)
        return Box(lo, lo if self.point else _exact_sum(self.hi))


def _plain_sum(lo: Array, hi: Array, sizes: Array, n: int) -> Box:
    """From computed sums of n lower bounds, upper bounds and sizes: each is within gamma_n of the sum of sizes."""
    off = np.where(sizes == 0.0, 0.0, up(sizes * (gamma(n + 8) * (1.0 + 2.0 * gamma(n + 8)))))
    return Box(np.where(off == 0.0, lo, down(lo - off)), np.where(off == 0.0, hi, up(hi + off)))


def choose(where: Array, a: Box, b: Box) -> Box:
    lo = np.where(where, a.lo, b.lo)
    return Box(lo, lo if a.point and b.point else np.where(where, a.hi, b.hi))


def _fsum(values: Any) -> Any:
    try:
        return np.float64(math.fsum(np.ravel(values).tolist()))
    except (OverflowError, ValueError):  # too large; infinities of both signs
        return np.float64(np.nan)


def _exact_sum(values: Any) -> Fraction:
    total = sum(np.ravel(np.asarray(values, dtype=object)).tolist(), Fraction(0))
    if not isinstance(total, Fraction):
        raise AssertionError("floating point in exact arithmetic")
    return total


# --- the two arithmetics ------------------------------------------------------------------------------------



def _shift(columns: Array) -> Array:
    """About the middle of each column. Any number will do: dual points are orthogonal to constants."""
    if not len(columns):
        return np.zeros(columns.shape[1])
    middle = np.clip(columns.mean(axis=0), columns.min(axis=0), columns.max(axis=0))
    return np.where(np.isfinite(middle), middle, 0.0)


class Floating:
    """float64 with bounds.

    Sums of n products in the processor's order: at most ``gamma_n sum |x||v|`` off, whatever the order, with or
    without fused operations (Higham 2002, section 3.1). Few products whose sum cancels: TwoProduct and TwoSum, see
    `_dot2`. `exp` and `log` of NumPy are taken to be right within 4 units in the last place; ``--exact`` does not.
    If `quick`, sums are wider than need be, and most of what is true is proved in a fraction of the time.
    """

    exact = False
    words = "in floating point, with every rounding counted"

    def __init__(self, quick: bool = False) -> None:
        self.quick = self.plain = quick  # bounds of features by `read_lengths`; sums without care
        if np.array([_ETA]) + 0.0 <= 0.0 or np.array([2.0**-1000]) * 2.0**-70 <= 0.0:
            raise Undecided("this process takes the smallest numbers for 0, so that no bound is sure: --exact decides")

    def numbers(self, values: Any) -> Box:
        return Box(np.asarray(values, dtype=np.float64))

    def one(self, value: float) -> Box:
        return Box(np.float64(value))

    def sqrt(self, x: Box) -> Box:
        return Box(np.maximum(down(np.sqrt(np.maximum(x.lo, 0.0))), 0.0), up(np.sqrt(x.hi)))

    def exp(self, x: Box) -> Box:
        low, high = np.exp(x.lo), np.exp(x.hi)
        lo = np.maximum(down(low - 4.0 * np.spacing(low)), 0.0)
        return Box(np.where(low == np.inf, np.finfo(float).max, lo), up(high + 4.0 * np.spacing(high)))

    def _log(self, function: Callable[..., Any], x: Box) -> Box:
        low, high = function(x.lo), function(x.hi)
        return Box(down(low - 4.0 * np.spacing(np.abs(low))), up(high + 4.0 * np.spacing(np.abs(high))))

    def log(self, x: Box) -> Box:
        """Of what is positive."""
        return self._log(np.log, x)

    def log1p(self, x: Box) -> Box:
        return self._log(np.log1p, x)

    def scores(self, columns: Array, coef: Array, extras: Sequence[Array]) -> Box:
        """``columns @ coef + sum(extras)``."""
        return self.all_scores([(columns, coef, extras)])[0]

    def all_scores(self, tasks: Sequence[tuple[Array, Array, Sequence[Array]]]) -> list[Box]:
        """`scores` of several tasks."""
        large = [self.plain and coef.shape[1] * columns.size > _SHORT >> 3 for columns, coef, _ in tasks]
        sliced = [_sliced(*one) if here else None for one, here in zip(tasks, large, strict=True)]
        return [self._narrowed(*one, box) for one, box in zip(tasks, _added(sliced), strict=True)]

    def _narrowed(self, columns: Array, coef: Array, extras: Sequence[Array], found: Box | None) -> Box:
        n, m = len(columns), coef.shape[1]
        lo, hi = (np.empty((n, m)), np.empty((n, m))) if found is None else (found.lo, found.hi)
        wide = np.arange(m)
        if found is not None:  # where it cancels by more than half of the digits that it has
            wide = np.flatnonzero(~((hi - lo).max(axis=0) <= 2.0**-46 * np.abs(hi + lo).max(axis=0)))
        step = max(1, _SHORT // (columns.shape[1] + len(extras) + 1))
        for q in wide.tolist():
            for rows in (slice(a, a + step) for a in range(0, n, step)):
                part = _dot2(columns[rows], coef[None, :, q], [e[rows, q] for e in extras])
                lo[rows, q], hi[rows, q] = part.lo, part.hi
        return Box(lo, hi)

    def products(self, columns: Array, vectors: Box, centred: bool) -> Box:
        """``columns' vectors``, for vectors that are orthogonal to constants if `centred`.

        Entries ``x^ = fl(x - m)`` are right within u; then, with v the middles of the vectors and r their half widths,

            |fl(x^'v) - x'v*| <= |x^| ((gamma_n + 2u) |v| + (1 + 2u) |r|)        by Cauchy and Schwarz, in any order
            of summation.

        Columns and vectors are scaled by powers of two first, so that what underflows is below u times these norms.
        """
        x, size = _centred(columns, _shift(columns) if centred else None)
        v, reach, power = _middle(vectors, len(columns))
        back = size[1][:, None] + power
        error = up(_times_power(up(size[0][:, None] * reach(gamma(len(x) + 16))), back))
        found = _times_power(x.T @ v, back)
        return Box(down(found - error), up(found + error))

    def refined(self, columns: Array, vectors: Box, centred: bool) -> Box:
        """`products` with sums in twice the precision: gamma_n becomes 4u."""
        x, size = _centred(columns, _shift(columns) if centred else None)
        v, reach, power = _middle(vectors, len(columns))
        found, error = self.scores(np.ascontiguousarray(x.T), v, []), up(size[0][:, None] * reach(gamma(8)))
        back = size[1][:, None] + power
        return Box(down(np.ldexp(down(found.lo - error), back)), up(np.ldexp(up(found.hi + error), back)))

    def spreads(self, columns: Array, weights: Box, centred: bool) -> Box:
        """``sum s (x - mean)^2`` of each column (about 0 if not `centred`), the mean weighted.

        About a shift m that is close to the mean: ``sum s (x - m)^2 - (sum s (x - m))^2 / sum s``, each sum within
        gamma of the sum of its sizes, and within what the weights' own boxes leave open; the first sum alone is a
        bound from above. A row counts unless its weight is exactly 0: a weight that underflows is a weight. Columns
        that are constant where rows count are found by comparing, and have exactly 0. """
        counts = weights.hi > 0.0
        here = columns[counts]
        x, (_, power) = _centred(here, _shift(here) if centred else None)
        scale = np.frexp(weights.hi.max(initial=0.0))[1]
        s, least = (np.ldexp(np.maximum(end[counts], 0.0), -scale) for end in (weights.hi, weights.lo))
        g, tiny = gamma(len(x) + 16), len(x) * _TINY
        most = (s[:, None] * x * x).sum(axis=0) * (1.0 + 2.0 * g) + tiny
        found = Box((least[:, None] * x * x).sum(axis=0) * (1.0 - 2.0 * g) - tiny, most)
        nothing = ~x.any(axis=0)
        if centred and len(here):
            first, sizes = s @ x, (s * g + up(s - least)) @ np.abs(x) * (1.0 + 2.0 * g) + tiny
            mass = Box(least.sum() * (1.0 - g) - tiny, s.sum() * (1.0 + g) + tiny)
            found = found - Box(down(first - sizes), up(first + sizes)).square() / mass
            found = Box(found.lo, np.fmin(found.hi, most))
            nothing = here.min(axis=0) == here.max(axis=0)
        lo, hi = (np.ldexp(np.maximum(b, 0.0), 2 * power + scale) for b in (found.lo, found.hi))
        return Box(np.where(nothing, 0.0, np.maximum(down(lo), 0.0)), np.where(nothing, 0.0, up(hi)))

    def prefix(self, values: Array) -> Box:
        """Sums of the first 0, 1, 2, ... of some numbers.

        Of each addition of the running sum TwoSum gives what it has lost; adding n such numbers loses gamma_n of the
        sum of their sizes. """
        n = len(values)
        sums, rest, lost = _running(values)
        sizes = np.fromiter(accumulate(map(abs, lost), initial=0.0), np.float64, n + 1)
        reach = np.where(sizes == 0.0, 0.0, up(2.0 * gamma(n + 8) * sizes))
        lo, hi = _add(sums, rest)
        return Box(_add(lo, -reach)[0], _add(hi, reach)[1])

    def narrowed(self, x: Box) -> Box:
        return x

    def free_column(self, column: Array, centred: bool) -> Box:
        """A column that costs nothing, by a power of two, and shifted if the constant is one, too: the space is the
        same."""
        x = self.numbers(column)
        if centred:
            x = x - self.numbers(np.full(len(column), _shift(column[:, None])[0]))
        power = -int(np.frexp(np.abs(x.hi).max())[1])
        lo, hi = np.ldexp(x.lo, power), np.ldexp(x.hi, power)
        exact = (np.ldexp(lo, -power) == x.lo).all() and (np.ldexp(hi, -power) == x.hi).all()  # nothing underflows
        return Box(lo, hi) if exact and abs(power) < 500 else x

    def ratio(self, right: Box, left: Box) -> tuple[Box, Array]:
        """The solutions of ``left c = right``, one by one, and whether they are known; left is not negative."""
        nothing = (right.lo == 0.0) & (right.hi == 0.0)
        found = choose(nothing, Box(0.0 * right.lo), right / left)
        return found, nothing | (left.lo > 0.0)

    def solve(self, matrix: list[list[Box]], right: list[Box]) -> list[Box] | None:
        """With R about the inverse and c about the solution: if ``|I - R H| <= e < 1`` (largest row sum), H is
        regular, and the solution is within ``|R (right - H c)| / (1 - e)`` of c."""
        if all(b.lo == 0.0 == b.hi for b in right):
            return right
        try:
            about = np.array([[0.5 * (h.lo + h.hi) for h in row] for row in matrix])
            inverse = np.linalg.inv(about)
        except np.linalg.LinAlgError:
            return None
        n = range(len(right))
        guess = inverse @ np.array([0.5 * (b.lo + b.hi) for b in right])
        off, rest = np.float64(0.0), np.float64(0.0)
        left = [right[i] - _sum([matrix[i][j] * self.one(guess[j]) for j in n]) for i in n]
        for i in n:
            row = [_sum([self.one(inverse[i, k]) * matrix[k][j] for k in n]) for j in n]
            sizes = [abs(self.one(float(i == j)) - row[j]) for j in n]
            off = np.maximum(off, _sum(sizes).hi)
            rest = np.maximum(rest, abs(_sum([self.one(inverse[i, k]) * left[k] for k in n])).hi)
        if not off < 0.5:
            return None
        reach = up(rest / down(1.0 - off))
        return [Box(down(c - reach), up(c + reach)) for c in map(np.float64, guess)]


def _sum(boxes: Sequence[Box]) -> Box:
    total = boxes[0]
    for box in boxes[1:]:
        total = total + box
    return total


def _centred(columns: Array, shift: Array | None) -> tuple[Array, tuple[Array, Array]]:
    """Columns less their shift, by powers of two: x, (norms of these from above, the powers). Largest entries in
    [1/2, 1)."""
    x = columns if shift is None else columns - shift
    power = np.frexp(np.maximum(x.max(axis=0, initial=0.0), -x.min(axis=0, initial=0.0)))[1]
    x = _times_power(x, -power)
    norms = np.sqrt(np.einsum("ij,ij->j", x, x) * (1.0 + gamma(len(x) + 8))) * (1.0 + 8.0 * UNIT)
    return x, (norms, power)


def _times_power(x: Array, power: Array) -> Array:
    """`np.ldexp`, by products with powers of two, which are as exact and faster, where these are numbers."""
    if np.abs(power).max(initial=0) > 1000:
        return np.ldexp(x, power)
    return x * np.ldexp(1.0, power)


def _middle(vectors: Box, n: int) -> tuple[Array, Callable[[float], Array], Array]:
    """Middles of vectors by powers of two; what multiplies the norm of a column in the error of a product; powers."""
    largest = np.maximum(np.abs(vectors.lo), np.abs(vectors.hi)).max(axis=0, initial=0.0)
    power = np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1]
    lo, hi = np.ldexp(vectors.lo, -power), np.ldexp(vectors.hi, -power)
    v = lo + 0.5 * (hi - lo)
    wide = 1.0 + gamma(n + 16)
    size = np.sqrt((v * v).sum(axis=0)) * wide
    half = np.sqrt((np.maximum(up(hi - v), up(v - lo)) ** 2).sum(axis=0) * wide + n * _TINY) * wide
    return v, lambda g: up((g * size + half) * (1.0 + 16.0 * UNIT)), power


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """``a b = p + e`` exactly (Dekker, Veltkamp), but for underflow; not a number beyond 2^995."""
    p = a * b
    x, y = 134217729.0 * a, 134217729.0 * b
    ah, bh = x - (x - a), y - (y - b)
    al, bl = a - ah, b - bh
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def _dot2(columns: Array, coef: Array, extras: Sequence[Array], error: Array | None = None) -> Box:
    """``sum(columns coef) + sum(extras)`` of each row in twice the precision; `error` is added to what it may be off.

    The products are p + e exactly, and the sum of the K terms p and extras by a tree of TwoSums is s + (the errors of
    its nodes) exactly. These errors are at most ``u sum |p|`` and ``gamma_K sum |terms|`` in sum, so adding up 2K of
    them, in any order, loses ``gamma_2K (gamma_K + u) sum |terms| <= gamma_2K^2 sum |terms|``; and each product
    2^-1070 by underflow. """
    products, errors = two_product(columns, coef)
    terms = np.concatenate([products, *(e[:, None] for e in extras)], axis=1)
    k = terms.shape[1]
    if k == 0:
        return Box(np.zeros(len(columns)))
    sizes = np.abs(terms).sum(axis=1)
    rest = errors.sum(axis=1)
    while terms.shape[1] > 1:
        if terms.shape[1] % 2:
            terms = np.concatenate([terms, np.zeros((len(terms), 1))], axis=1)
        a, b = terms[:, 0::2], terms[:, 1::2]
        s = a + b
        part = s - a
        rest = rest + ((a - (s - part)) + (b - part)).sum(axis=1)
        terms = s
    reach = up(gamma(2 * k + 8) ** 2 * sizes * (1.0 + 2.0 * gamma(k + 8)) + products.shape[1] * _TINY)
    if error is not None:
        reach = up(reach + error)
    lo, hi = _add(terms[:, 0], rest)
    return Box(_add(lo, -reach)[0], _add(hi, reach)[1])


def _slices(x: Array, bits: int, axis: int) -> tuple[Array, Array] | None:
    """``x = h + l`` exactly, with ``|h| <= 2^e`` and multiples of 2^(e - bits) along an axis; None beyond 2^+-400."""
    top = np.abs(x).max(axis=axis, keepdims=True, initial=0.0)
    e = np.frexp(top)[1]
    if not (np.isfinite(top).all() and np.abs(e[top > 0.0]).max(initial=0) < 400):
        return None
    sigma = np.ldexp(1.5, e + 52 - bits)
    h = (x + sigma) - sigma
    return h, x - h


def _sliced(x: Array, w: Array, extras: Sequence[Array]) -> tuple[list[Array], Array] | None:
    """``x @ w + sum(extras)`` in more than the precision, by three matrix products: parts of it, and what their sum may
    be off; None where numbers are too large or small.

    With both cut in two, ``x w = h h' + h l' + l w``. Of k columns all partial sums of h h' are multiples of 2^(e + f -
    2 bits) and at most ``k 2^(e + f) <= 2^53`` of these: exact in any order. The others are right within ``gamma_k (|h|
    |l'| + |l| |w|)``, 2^-bits of what a plain product loses, and products that underflow. `_added` adds them up. """
    parts, error = list(extras), np.zeros((len(x), w.shape[1]))
    for a in range(0, x.shape[1], _WIDE):
        xs, ws = x[:, a : a + _WIDE], w[a : a + _WIDE]
        k = xs.shape[1]
        bits = (53 - math.ceil(math.log2(max(k, 2)))) // 2
        cut, other = _slices(xs, bits, 1), _slices(ws, bits, 0)
        if cut is None or other is None:
            return None
        (xh, xl), (wh, wl) = cut, other
        parts += [xh @ wh, xh @ wl]
        off = np.multiply.outer(_norms(xh, 1), _norms(wl, 0))
        if xl.any():
            parts.append(xl @ ws)
            off += np.multiply.outer(_norms(xl, 1), _norms(ws, 0))
        error = up((error + off * gamma(k + 16) + k * _TINY) * (1.0 + 16.0 * UNIT))
    return parts, error


def _norms(x: Array, axis: int) -> Array:
    """From above, squares that underflow included."""
    return np.sqrt(np.einsum("ij,ij->i" if axis else "ij,ij->j", x, x)) * (1.0 + gamma(x.shape[axis] + 16)) + _LOST


def _added(sums: Sequence[tuple[list[Array], Array] | None]) -> list[Box | None]:
    """The sums of `_sliced` by `_dot2`, those with as many parts together."""
    found: list[Box | None] = [None] * len(sums)
    known = [(i, *one) for i, one in enumerate(sums) if one is not None]
    for count in {len(parts) for _, parts, _ in known}:
        each = [one for one in known if len(one[1]) == count]
        flat = [np.concatenate([np.ravel(parts[k]) for _, parts, _ in each]) for k in range(count)]
        off = np.concatenate([error.ravel() for _, _, error in each])
        lo, hi, step = np.empty(len(off)), np.empty(len(off)), _SHORT // (count + 1)
        for some in (slice(a, a + step) for a in range(0, len(off), step)):
            box = _dot2(np.zeros((len(off[some]), 0)), np.zeros((1, 0)), [part[some] for part in flat], off[some])
            lo[some], hi[some] = box.lo, box.hi
        stops = np.cumsum([error.size for _, _, error in each])[:-1]
        for (i, _, error), low, high in zip(each, np.split(lo, stops), np.split(hi, stops), strict=True):
            found[i] = Box(low.reshape(error.shape), high.reshape(error.shape))
    return found


class Exact:
    """Fractions; roots, logarithms and exponentials between fractions that are about 2^-bits apart."""

    exact, plain = True, False
    words = "in exact arithmetic"

    def __init__(self, bits: int, quick: bool = False) -> None:
        self.bits, self.quick = bits, quick
        self._one = 1 << bits  # fixed point
        self._log2 = self._log_of_two()

    def numbers(self, values: Any) -> Box:
        values = np.asarray(values, dtype=np.float64)
        found = np.empty(values.shape, dtype=object)
        found.ravel()[:] = [Fraction(v) for v in values.ravel().tolist()]
        return Box(found)

    def one(self, value: float | Fraction) -> Box:
        return Box(Fraction(value))

    # -- enclosures: each gives integers lo, hi with lo <= value 2^bits <= hi, or bounds of another form -----

    def _each(self, x: Box, bounds: Callable[[Fraction], tuple[Fraction, Fraction]]) -> Box:
        """A rising function of every entry."""
        if np.ndim(x.lo) == 0:
            return Box(bounds(x.lo)[0], bounds(x.hi)[1])
        lo, hi = np.empty(x.shape, dtype=object), np.empty(x.shape, dtype=object)
        if x.point:
            pairs = [bounds(v) for v in x.lo.ravel()]
            lo.ravel()[:], hi.ravel()[:] = [p[0] for p in pairs], [p[1] for p in pairs]
        else:
            lo.ravel()[:] = [bounds(v)[0] for v in x.lo.ravel()]
            hi.ravel()[:] = [bounds(v)[1] for v in x.hi.ravel()]
        return Box(lo, hi)

    def _sqrt(self, q: Fraction) -> tuple[Fraction, Fraction]:
        """``isqrt(n d 4^k) / (d 2^k)`` and one more, k such that this is `bits` bits; exact for squares."""
        if q <= 0:
            return Fraction(0), Fraction(0)
        k = max(0, self.bits - (q.numerator.bit_length() + q.denominator.bit_length()) // 2)
        inside = (q.numerator * q.denominator) << (2 * k)
        root = math.isqrt(inside)
        low = Fraction(root, q.denominator << k)
        return low, low if root * root == inside else Fraction(root + 1, q.denominator << k)

    def sqrt(self, x: Box) -> Box:
        return self._each(x, self._sqrt)

    def _atanh(self, t: int) -> tuple[int, int]:
        """``atanh(t)`` for a fixed-point t, |t| <= 1/3: at most 2 units lost in each term, and the tail below the
        last."""
        square, power, total, k = t * t >> self.bits, t, 0, 1
        while abs(power) > 1:
            total += power // k
            power = power * square >> self.bits
            k += 2
        return total - 2 * k - 4, total + 2 * k + 4

    def _log_of_two(self) -> tuple[int, int]:
        third = self._one // 3
        low, high = self._atanh(third)[0], self._atanh(third + 1)[1]
        return 2 * low, 2 * high

    def _log(self, q: Fraction) -> tuple[Fraction, Fraction]:
        """``log q = k log 2 + 2 atanh((m - 1)/(m + 1))`` with ``q = m 2^k``, m in [2/3, 4/3]."""
        if q == 1:
            return Fraction(0), Fraction(0)
        k = q.numerator.bit_length() - q.denominator.bit_length()
        top, bottom = (q.numerator, q.denominator << k) if k >= 0 else (q.numerator << -k, q.denominator)
        if 3 * top > 4 * bottom:
            k, bottom = k + 1, 2 * bottom
        elif 3 * top < 2 * bottom:
            k, top = k - 1, 2 * top
        t = ((top - bottom) << self.bits) // (top + bottom)
        low, high = self._atanh(t)  # of (t, t + 1): the slope is at most 9/8 for |t| <= 1/3
        low, high = 2 * low, 2 * (high + 2)
        ends = k * self._log2[0], k * self._log2[1]
        return Fraction(low + min(ends), self._one), Fraction(high + max(ends), self._one)

    def log(self, x: Box) -> Box:
        return self._each(x, self._log)

    def log1p(self, x: Box) -> Box:
        return self._each(x, lambda q: self._log(1 + q))

    def _exp(self, x: Fraction) -> tuple[Fraction, Fraction]:
        """``2^k exp(r)``, r in about [-0.35, 0.35], by its series at r/256, squared eight times."""
        if x == 0:
            return Fraction(1), Fraction(1)
        if abs(x) > 100_000:
            if x < 0:
                return Fraction(0), Fraction(1, 1 << 100_000)
            raise Undecided("an exponential of more than 100000")
        fixed = (x.numerator << self.bits) // x.denominator
        k = (2 * fixed + self._log2[0]) // (2 * self._log2[0])
        ends = k * self._log2[0], k * self._log2[1]
        low, high = self._series(fixed - max(ends), 0), self._series(fixed + 1 - min(ends), 1)
        scale = Fraction(1 << k) if k >= 0 else Fraction(1, 1 << -k)
        return low * scale, high * scale

    def _series(self, r: int, upwards: int) -> Fraction:
        """A bound of exp(r/2^bits): terms are off by 2 units each; a squaring doubles that, in relative terms."""
        r = (r >> 8) + upwards
        term, total, k = self._one, self._one, 1
        while abs(term) > 1 and k < 10_000:
            term = (term * r >> self.bits) // k
            total += term
            k += 1
        total += (4 * k + 8) if upwards else -(4 * k + 8)
        for _ in range(8):
            total = (total * total >> self.bits) + upwards
        return Fraction(total, self._one)

    def exp(self, x: Box) -> Box:
        return self._each(x, self._exp)

    # -- sums of products: integers by powers of two, a common denominator for fractions ---------------------

    def scores(self, columns: Array, coef: Array, extras: Sequence[Array]) -> Box:
        total = np.full((len(columns), coef.shape[1]), Fraction(0), dtype=object)
        if columns.shape[1] and len(columns):
            x, power = _integers(columns)
            w, other = _integers(coef)
            total = np.dot(x, w) * _power(power + other)
        for extra in extras:
            total = total + self.numbers(extra).lo
        return Box(total)

    def all_scores(self, tasks: Sequence[tuple[Array, Array, Sequence[Array]]]) -> list[Box]:
        return [self.scores(*one) for one in tasks]

    def products(self, columns: Array, vectors: Box, centred: bool) -> Box:
        if not len(columns):
            return Box(np.full((columns.shape[1], vectors.shape[1]), Fraction(0), dtype=object))
        x, power = _integers(columns)
        v, denominator = _common(vectors.lo)
        return Box(np.dot(x.T, v) * (_power(power) / denominator))

    refined = products

    def spreads(self, columns: Array, weights: Box, centred: bool) -> Box:
        if not len(columns):
            return Box(np.full(columns.shape[1], Fraction(0), dtype=object))
        x, power = _integers(columns)
        s, denominator = _common(weights.lo)
        found = np.dot(s, x * x) * (_power(2 * power) / denominator)
        if centred:
            first = np.dot(s, x) * (_power(power) / denominator)
            found = found - first * first / _exact_sum(weights.lo)
        return Box(found)

    def prefix(self, values: Array) -> Box:
        whole, denominator = _common(np.asarray(values, dtype=object))
        found = np.empty(len(values) + 1, dtype=object)
        found[:] = [Fraction(one, denominator) for one in accumulate(whole.tolist(), initial=0)]
        return Box(found)

    def _narrow(self, q: Fraction) -> tuple[Fraction, Fraction]:
        """Fractions of a power of two around one of any denominator."""
        k = self.bits - q.numerator.bit_length() + q.denominator.bit_length()
        scale = _power(k)
        low = math.floor(q * scale)
        return low / scale, math.ceil(q * scale) / scale

    def narrowed(self, x: Box) -> Box:
        """A little wider, by numbers that are shorter."""
        return self._each(x, self._narrow)

    def free_column(self, column: Array, centred: bool) -> Box:
        return self.numbers(column)

    def ratio(self, right: Box, left: Box) -> tuple[Box, Array]:
        there = np.asarray(left.lo != 0, dtype=bool)
        safe = left.lo + ~there  # 1 where it is 0
        return Box(np.where(there, right.lo / safe, 0 * right.lo)), there | np.asarray(right.lo == 0, dtype=bool)

    def solve(self, matrix: list[list[Box]], right: list[Box]) -> list[Box] | None:
        """Elimination. The matrix is positive semidefinite: a pivot of 0 leaves an equation that says 0 = right, or
        nothing."""
        a = [[h.lo for h in row] + [b.lo] for row, b in zip(matrix, right, strict=True)]
        n = len(a)
        free = []
        for k in range(n):
            if a[k][k] == 0:
                if a[k][n] != 0 or any(a[i][k] != 0 for i in range(k + 1, n)):
                    return None
                free.append(k)
                continue
            for i in range(k + 1, n):
                if a[i][k]:
                    factor = a[i][k] / a[k][k]
                    a[i] = [x - factor * y for x, y in zip(a[i], a[k], strict=True)]
        found = [Fraction(0)] * n
        for k in reversed(range(n)):
            if k not in free:
                found[k] = (a[k][n] - sum((a[k][j] * found[j] for j in range(k + 1, n)), Fraction(0))) / a[k][k]
        return [Box(c) for c in found]


def _independent(columns: Array) -> list[int]:
    """Columns none of which is a combination of those before it: pivots of the matrix of products, in integers."""
    whole = [_integers(column)[0] for column in columns.T]
    rows = [[Fraction(int(np.dot(a, b))) for b in whole] for a in whole] if len(columns) else []
    kept = []
    for k, pivot in enumerate(rows):
        if pivot[k] == 0:
            continue
        kept.append(k)
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot[k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], pivot, strict=True)]
    return kept


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def _integers(values: Array) -> tuple[Array, int]:
    """Python integers and a power of two, ``values = integers 2^power`` exactly."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    exponent = exponent.astype(np.int64) - 53
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # zeros at the end
    there = whole != 0
    if not there.any():
        return np.zeros(np.shape(values), dtype=object) + 0, 0
    power = int((exponent + last)[there].min())
    move = np.where(there, exponent - power, 0)
    whole = whole >> np.maximum(-move, 0)
    if (there & (move > 0)).any():
        return np.left_shift(whole.astype(object), np.maximum(move, 0).astype(object)), power
    return whole.astype(object), power


def _common(values: Array) -> tuple[Array, int]:
    """Numerators over a common denominator."""
    denominator = math.lcm(*{v.denominator for v in values.ravel()})
    found = np.empty(values.shape, dtype=object)
    found.ravel()[:] = [v.numerator * (denominator // v.denominator) for v in values.ravel()]
    return found, denominator


# --- the file -----------------------------------------------------------------------------------------------


@dataclass
class Certificate:
    """What the file says, read and checked for sense; nothing of it is believed."""

    header: dict[str, Any]
    arrays: dict[str, Array]
    tasks: list[Any] = field(init=False)
    outputs: list[tuple[int, int]] = field(init=False)  # task and class of each

    def __post_init__(self) -> None:
        _check_header(self.header)
        self.tasks = self.header["tasks"]
        self.outputs = [(t, 0) for t in range(len(self.tasks))]
        if self.header["loss"]["name"] == "multinomial":
            self.outputs = [(t, c) for t in range(len(self.tasks)) for c in range(len(self.classes(t)))]
        _check_arrays(self)

    def __getitem__(self, name: str) -> Any:
        return self.header[name]

    @property
    def n_features(self) -> int:
        return int(self.header["n_features"])

    @property
    def n_values(self) -> int:
        return len(self.arrays["alpha"])

    def loss(self, t: int) -> dict[str, Any]:
        """The loss of a task."""
        loss: dict[str, Any] = self.header["loss"]
        return loss["losses"][t] if loss["name"] == "mixed" else loss

    def classes(self, t: int) -> list[Any]:
        classes = self.header["classes"]
        return classes if _is_flat(classes) else classes[t]

    def absent(self, t: int) -> Array:
        """Features that a task does not have, as a mask: their coefficients are 0, and so are their columns."""
        found = np.zeros(self.n_features, dtype=bool)
        if "absent" in self.arrays:
            found[self.arrays["absent"][slice(*self.arrays["absent_start"][t : t + 2])]] = True
        return found

    def n_thresholds(self, t: int) -> int:
        return len(self.classes(t)) - 1 if self.loss(t)["name"] == "ordinal" else 0

    def name(self, feature: int) -> str:
        names = self.header.get("features")
        return f"feature {feature}" + (f" ({names[feature]!r})" if names else "")


def read_certificate(source: Any) -> Certificate:
    """A certificate from a path or from bytes."""
    return Certificate(*_read_archive(source))


def format_of(source: Any) -> str:
    """Which of the formats a file is said to have: of certificates, parts, halves, statements, or another one."""
    header = _read_archive(source)[0]
    return str(header.get("format")) if isinstance(header, dict) else ""


def _read_archive(source: Any) -> tuple[Any, dict[str, Array]]:
    """Header and arrays. Nothing is executed, nothing larger than the file is allocated."""
    try:
        raw = bytes(source) if isinstance(source, bytes | bytearray) else Path(source).read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot read {source}: {error.strerror or error}") from None
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > len(raw):
                raise Unreadable("the archive claims to hold more than its own size")
            if len({member.filename for member in members}) != len(members):
                raise Unreadable("the archive holds two files of the same name")
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise Unreadable("the archive is compressed: format 1 is not")
            files = {member.filename: archive.read(member) for member in members}
    except Unreadable:
        raise
    except Exception as error:  # the archive may be anything: whatever the reader of archives says of it is our answer
        raise Unreadable(f"not a whole certificate file: {error}") from None
    if "header.json" not in files:
        raise Unreadable("not a certificate: it has no header.json")
    try:
        header = json.loads(files.pop("header.json").decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"header.json is not valid: {error}") from None
    arrays = {}
    for name, content in files.items():
        if not name.endswith(".npy"):
            raise Unreadable(f"unexpected file {name!r} in the archive")
        arrays[name.removesuffix(".npy")] = _read_array(name, content)
    return header, arrays


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not allowed")


def _read_array(name: str, content: bytes) -> Array:
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("not version 1.0 of the npy format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:
        raise Unreadable(f"array {name!r}: {error}") from None
    if dtype.str not in ("<f8", "<i8", "|u1") or (fortran and len(shape) > 1):
        raise Unreadable(f"array {name!r} must be little-endian float64 or int64 in C order")
    body = content[stream.tell() :]
    if any(isinstance(n, bool) or n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(body):
        raise Unreadable(f"array {name!r} has shape {shape} and {len(body)} bytes")
    found = np.frombuffer(body, dtype=dtype).reshape(shape)
    if dtype.kind == "f" and not np.isfinite(found).all():
        raise Unreadable(f"array {name!r} holds NaN or infinite numbers")
    return found


def _number(value: Any, what: str, low: float = -np.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e308 or not value >= low:
        raise Unreadable(f"header: {what} must be a number{'' if low == -np.inf else f' >= {low:g}'}; got {value!r}")
    if isinstance(value, int) and int(float(value)) != value:
        raise Unreadable(f"header: {what} is not a float64: {value}")
    return float(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_flat(classes: list[Any]) -> bool:
    """Whether classes are those of all tasks, not a list (or null) for each."""
    return not any(one is None or isinstance(one, list) for one in classes)


_PENALTIES = ("rows", "largest", "split", "groups", "sorted", "none")
_KEYS: dict[str, Any] = {
    "format": str,
    "version": int,
    "tasks": list,
    "rows": list,
    "n_features": int,
    "shared": bool,
    "offset": bool,
    "digests": dict,
    "unit": (int, float),
    "intercept": (bool, int, float),
    "standardize": bool,
    "positive": bool,
    "loss": dict,
    "penalty": dict,
}


_OTHER_KEYS = {"classes", "task_weights", "class_weights", "features", "table", "about", "patterns", "genotypes"}
_LISTS = {"start": ("feature", "output", "coef"), "open_start": ("open",), "sure_start": ("sure",)}
_ARRAYS = {"alpha", "ridge", "objective", "dual_value", "gap", "intercept", "dual", "edges", "feature_weights", "l1"}
_ARRAYS |= {"thresholds", "group_of", "group_weights", "sorted_weights", "absent", "absent_start", *_LISTS}
_ARRAYS |= {name for part in _LISTS.values() for name in part}
_NEED = ("need_value", "need_start", "need", "need_delta", "need_dual")  # claims that features are needed
_ARRAYS |= {*_NEED}
_PARAMETERS = {
    "clipped": {"mu", "epsilon", "low", "high", "labels"},
    "tweedie": {"power"},
    "negative_binomial": {"size"},
    "expectile": {"level"},
    "cox": {"ties"},
    "mixed": {"losses", "weights", "scales"},
    "rows": {"group", "l1"},
    "split": {"group", "l1"},
    "groups": {"group", "l1", "inside"},
}


def _check_header(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != "tasksieve-certificate":
        raise Unreadable("not a certificate: the header does not say format 'tasksieve-certificate'")
    if header.get("version") != VERSION:
        raise Unreadable(f"format version {header.get('version')!r}: this program reads {VERSION}; get a newer one")
    for key, kind in _KEYS.items():
        if key not in header:
            raise Unreadable(f"header: {key!r} is missing")
        if not isinstance(header[key], kind) or (kind is int and isinstance(header[key], bool)):
            raise Unreadable(f"header: {key!r} must not be {header[key]!r}")
    unknown = set(header) - set(_KEYS) - _OTHER_KEYS  # what is not understood might change the problem
    unknown |= set(header["penalty"]) - {"name"} - _PARAMETERS.get(str(header["penalty"].get("name")), set())
    if unknown:
        raise Unreadable(f"header: {sorted(unknown)[0]!r} is not known to this version")
    tasks, rows, d = header["tasks"], header["rows"], header["n_features"]
    if not tasks or any(isinstance(label, list | dict) or label is None for label in tasks):
        raise Unreadable("header: 'tasks' must be a list of labels")
    if len({_key(label) for label in tasks}) != len(tasks):
        raise Unreadable("header: 'tasks' names a task twice")
    if len(rows) != len(tasks) or not all(type(n) is int and 0 <= n < 1 << 48 for n in rows):
        raise Unreadable("header: 'rows' must give the number of rows of each task")
    if header["shared"] and len(set(rows)) != 1:
        raise Unreadable("header: tasks that share a matrix have the same rows")
    if not 0 < d < 1 << 48:
        raise Unreadable(f"header: n_features must be positive; got {d}")
    names = header.get("features")
    if names is not None and not (_texts(names) and len(names) == d):
        raise Unreadable("header: 'features' must name every feature")
    if _number(header["unit"], "unit", 0.0) <= 0.0:
        raise Unreadable("header: unit must be positive")
    digests = header["digests"]
    for key, count in (("matrices", 1 if header["shared"] else len(tasks)), ("labels", len(tasks))):
        found = digests.get(key)
        if not _texts(found) or len(found) != count or any(len(one) != 64 for one in found):
            raise Unreadable(f"header: digests.{key} must hold {count} SHA-256 digests")
    _check_loss(header)
    penalty = header["penalty"]
    if penalty.get("name") not in _PENALTIES:
        raise Unreadable(f"header: unknown penalty {penalty.get('name')!r}")
    if penalty["name"] in ("rows", "split", "groups"):
        penalty["group"] = _number(penalty.get("group", 1.0), "penalty.group", 0.0)
        penalty["l1"] = _number(penalty.get("l1", 0.0), "penalty.l1", 0.0)
    if penalty["name"] == "groups" and penalty.get("inside") not in (None, "rows", "entries"):
        raise Unreadable(f"header: penalty.inside must be null, 'rows' or 'entries'; got {penalty.get('inside')!r}")
    sized = not isinstance(header["intercept"], bool)
    if sized and (_number(header["intercept"], "intercept", 0.0) <= 0.0 or penalty["name"] != "none"):
        raise Unreadable("header: intercept must be true, false or, for the penalty 'none', a number > 0")
    if header["positive"] and penalty["name"] == "none":
        raise Unreadable("header: penalty 'none' cannot be combined with positive")
    _check_patterns(header)
    _check_table(header)
    _check_genotypes(header)


def _check_patterns(header: dict[str, Any]) -> None:
    """Tasks that are patterns of present columns: of which task each is a part, and how many values are left out."""
    patterns = header.get("patterns")
    if patterns is None:
        return
    if not isinstance(patterns, dict) or set(patterns) != {"of", "dropped"}:
        raise Unreadable("header: 'patterns' must have 'of' and 'dropped'")
    of, dropped = patterns["of"], patterns["dropped"]
    listed = isinstance(of, list) and len(of) == len(header["tasks"])
    if of is not None and (not listed or any(isinstance(label, list | dict) or label is None for label in of)):
        raise Unreadable("header: patterns.of must be null or name a task for each pattern")
    if type(dropped) is not int or not 0 <= dropped < 1 << 48:
        raise Unreadable("header: patterns.dropped must be a number of values")
    if header["shared"]:
        raise Unreadable("header: tasks that share a matrix have the same columns")


def kind_of(loss: dict[str, Any]) -> str:
    """What the labels of a loss are: numbers; classes; two of them, -1 and +1; ordered ones; times with an event."""
    if loss["name"] == "logistic" or (loss["name"] == "clipped" and loss["labels"] == "classes"):
        return "signs"
    return {"multinomial": "classes", "ordinal": "ordered", "cox": "survival"}.get(loss["name"], "numbers")


def _check_one_loss(loss: Any) -> None:
    """Name and parameters."""
    name = loss.get("name") if isinstance(loss, dict) else None
    if not isinstance(name, str) or name not in LOSSES:
        raise Unreadable(f"header: unknown loss {name!r}")
    unknown = set(loss) - {"name"} - _PARAMETERS.get(name, set())
    if unknown:
        raise Unreadable(f"header: {sorted(unknown)[0]!r} is not known to this version")
    for key, ends in (("power", (1.0, 2.0)), ("size", (0.0, np.inf)), ("level", (0.0, 1.0))):
        if key in _PARAMETERS.get(name, ()):
            loss[key] = _number(loss.get(key), f"loss.{key}")
            if not ends[0] < loss[key] < ends[1]:
                raise Unreadable(f"header: loss.{key} must be between {ends[0]:g} and {ends[1]:g}; got {loss[key]!r}")
    if name == "cox" and loss.get("ties") not in ("efron", "breslow"):
        raise Unreadable("header: loss.ties must be 'efron' or 'breslow'")
    if name == "clipped":
        loss["mu"] = _number(loss.get("mu"), "loss.mu", 0.0)
        loss["epsilon"] = _number(loss.get("epsilon", 0.0), "loss.epsilon", 0.0)
        if loss.get("labels") not in ("numbers", "classes"):
            raise Unreadable("header: loss.labels must be 'numbers' or 'classes'")
        for key in ("high",) if loss["labels"] == "classes" else ("high", "low"):
            if key not in loss:
                raise Unreadable(f"header: loss.{key} is missing (null where there is no bound)")
            if loss[key] is not None and _number(loss[key], f"loss.{key}") * (1.0 if key == "high" else -1.0) < 0.0:
                raise Unreadable("header: the loss must have low <= 0 <= high")


def _check_mixed(loss: dict[str, Any], n_tasks: int) -> None:
    """A loss of its own for each task, and what it is multiplied by."""
    unknown = set(loss) - {"name"} - _PARAMETERS["mixed"]
    if unknown:
        raise Unreadable(f"header: {sorted(unknown)[0]!r} is not known to this version")
    losses, weights = loss.get("losses"), loss.get("weights")
    if not isinstance(losses, list) or not isinstance(weights, list) or not len(losses) == len(weights) == n_tasks:
        raise Unreadable("header: a mixed loss must have 'losses' and 'weights', one for each task")
    for own in losses:
        _check_one_loss(own)
        if own["name"] in ("multinomial", "square-root"):
            raise Unreadable(f"header: the loss {own['name']!r} cannot be that of one task")
    scales = loss.get("scales", [1.0] * n_tasks)
    if not isinstance(scales, list) or len(scales) != n_tasks:
        raise Unreadable("header: loss.scales must have a number for each task")
    for key, values in (("weights", weights), ("scales", scales)):
        loss[key] = [_number(value, f"loss.{key}", 0.0) for value in values]
        if min(loss[key]) <= 0.0:
            raise Unreadable(f"header: loss.{key} must be positive")
    for own, scale in zip(losses, loss["scales"], strict=True):
        if scale != 1.0 and not (LOSSES[own["name"]].residual and kind_of(own) == "numbers"):
            raise Unreadable(f"header: the labels of the loss {own['name']!r} have no scale")


def _check_loss(header: dict[str, Any]) -> None:
    loss, classes, tasks = header["loss"], header.get("classes"), header["tasks"]
    mixed = loss.get("name") == "mixed"
    if mixed:
        _check_mixed(loss, len(tasks))
    else:
        _check_one_loss(loss)
    kinds = [kind_of(own) for own in (loss["losses"] if mixed else [loss] * len(tasks))]
    wanted = [kind not in ("numbers", "survival") for kind in kinds]
    header.setdefault("classes", None)
    if (classes is not None) != any(wanted):
        raise Unreadable(f"header: 'classes' {'is missing' if any(wanted) else 'must be null'} for this loss")
    lists: list[Any] = [None] * len(tasks)
    if classes is not None:
        if not isinstance(classes, list) or not classes:
            raise Unreadable("header: 'classes' must be a list")
        lists = [classes] * len(tasks) if _is_flat(classes) and not mixed else classes
        good = len(lists) == len(tasks)
        if not good or any(not (isinstance(one, list) and one) if some else one is not None
                           for one, some in zip(lists, wanted, strict=True)):  # fmt: skip
            raise Unreadable("header: 'classes' must be a list of labels, or one such list for each task that has any")
        for one, kind in zip(lists, kinds, strict=True):
            if one is None:
                continue
            if any(isinstance(c, list | dict) or c is None for c in one) or len({_key(c) for c in one}) != len(one):
                raise Unreadable("header: 'classes' names a class twice, or what is no label")
            if (kind == "signs" and len(one) != 2) or (kind == "classes" and len(one) < 2):
                raise Unreadable("header: this loss has two classes" + (" or more" if kind == "classes" else ""))
    weights = header.setdefault("task_weights", None)
    if weights is not None:
        if not isinstance(weights, list) or len(weights) != len(tasks):
            raise Unreadable("header: task_weights must be null or a number for each task")
        header["task_weights"] = [_number(w, "task_weights", 0.0) for w in weights]
    weights = header.setdefault("class_weights", None)
    if weights is not None:
        if not all(wanted) or mixed or not isinstance(weights, list) or len(weights) != len(tasks):
            raise Unreadable("header: class_weights must be null or a list for each task")
        for t, one in enumerate(weights):
            if not isinstance(one, list) or len(one) != len(lists[t]):
                raise Unreadable("header: class_weights must give a number for each class")
            weights[t] = [_number(w, "class_weights", 0.0) for w in one]


def _getter(arrays: dict[str, Array], known: set[str]) -> Callable[..., Array]:
    """Arrays by name, of one kind and shape; what is not known might change the problem."""
    if set(arrays) - known:
        raise Unreadable(f"array {sorted(set(arrays) - known)[0]!r} is not known to this version")

    def get(name: str, kind: str, shape: tuple[int, ...], low: float = -np.inf) -> Array:
        if name not in arrays:
            raise Unreadable(f"array {name!r} is missing")
        found = arrays[name]
        if found.dtype.kind != kind or found.shape != shape:
            wanted = {"f": "float64", "i": "int64", "u": "bytes"}[kind]
            raise Unreadable(f"array {name!r} must be {wanted} of shape {shape}; it is {found.dtype} of {found.shape}")
        if found.size and found.min() < low:
            raise Unreadable(f"array {name!r} holds {found.min()}, less than {low:g}")
        return found

    return get


def _check_arrays(self: Certificate) -> None:
    arrays, d, q = self.arrays, self.n_features, len(self.outputs)
    get = _getter(arrays, _ARRAYS)
    if "alpha" not in arrays or arrays["alpha"].ndim != 1:
        raise Unreadable("array 'alpha' is missing")
    k = len(arrays["alpha"])
    none = self.header["penalty"]["name"] == "none"
    if k == 0 or (get("alpha", "f", (k,), 0.0).min() <= 0.0 and not none):
        raise Unreadable("array 'alpha' must hold positive numbers")
    if get("ridge", "f", (k,), 0.0).min() <= 0.0 and none:
        raise Unreadable("penalty 'none' needs a positive ridge")
    for name in ("objective", "dual_value", "gap"):
        get(name, "f", (k,), 0.0 if name == "gap" else -np.inf)
    get("intercept", "f", (k, q))
    get("dual", "f", (k, sum(self.header["rows"][t] for t, _ in self.outputs)))
    steps = [self.n_thresholds(t) for t in range(len(self.tasks))]
    if sum(steps):
        within = np.diff(get("thresholds", "f", (k, sum(steps))), axis=1)
        if (np.delete(within, np.cumsum([n for n in steps if n])[:-1] - 1, axis=1) <= 0.0).any():
            raise Unreadable("array 'thresholds' must rise within each task")
    elif "thresholds" in arrays:
        raise Unreadable("array 'thresholds' belongs to the ordinal loss")
    for start, lists in _LISTS.items():
        if start != "start" and start not in arrays and lists[0] not in arrays:
            continue
        bounds = get(start, "i", (k + 1,), 0)
        if bounds[0] != 0 or (np.diff(bounds) < 0).any():
            raise Unreadable(f"array {start!r} must rise from 0")
        for name in lists:
            found = get(name, "f" if name == "coef" else "i", (int(bounds[-1]),), -np.inf if name == "coef" else 0)
            if name != "coef" and len(found) and found.max() >= (q if name == "output" else d):
                raise Unreadable(f"array {name!r} holds {found.max()}, which is too large")
    for value in range(k):
        here = slice(*arrays["start"][value : value + 2])
        places = np.sort(arrays["feature"][here] * q + arrays["output"][here])
        if (places[1:] == places[:-1]).any():
            raise Unreadable(f"value {value}: a coefficient is given twice")
    if self.header["intercept"] is False and arrays["intercept"].any():
        raise Unreadable("there are intercepts, but the header says that there are none")
    if "absent" in arrays or "absent_start" in arrays or self.header.get("patterns") is not None:
        _check_absent(self, get)
    if "feature_weights" in arrays:
        free = get("feature_weights", "f", (d,), 0.0) == 0.0
        if free.any() and self.header["positive"]:
            raise Unreadable("positive cannot be combined with features that are never penalised")
        weighted = self.header["penalty"]["name"] not in ("groups", "sorted", "none")
        if not weighted and not np.isin(arrays["feature_weights"], (0, 1)).all():
            raise Unreadable("this penalty takes no feature_weights but 0 and 1")
    if "edges" in arrays:
        edges = get("edges", "f", (q, q), 0.0)
        if (edges != edges.T).any() or edges.diagonal().any():
            raise Unreadable("array 'edges' must be symmetric, with zeros on its diagonal")
    if "l1" in arrays:
        get("l1", "f", (d,), 0.0)
        if self.header["penalty"]["name"] != "rows":
            raise Unreadable("array 'l1' belongs to the penalty 'rows'")
    if self.header["penalty"]["name"] == "groups":
        count = len(arrays.get("group_weights", ()))
        get("group_weights", "f", (count,), 0.0)
        if get("group_of", "i", (d,), 0).max() >= count or arrays["group_weights"].min() <= 0.0:
            raise Unreadable("group_of and group_weights do not belong together, or a weight is not positive")
    if self.header["penalty"]["name"] == "sorted" and (np.diff(get("sorted_weights", "f", (d,), 0.0)) > 0.0).any():
        raise Unreadable("array 'sorted_weights' must be falling")
    if any(name in arrays for name in _NEED):
        _check_need_arrays(self, get)


def _check_need_arrays(self: Certificate, get: Callable[..., Array]) -> None:
    """Claims of need: the value each is about, its features, by how much models without them are worse, a vector."""
    count = len(self.arrays.get("need_value", ()))
    if self.header["penalty"]["name"] == "none":
        raise Unreadable("array 'need' cannot be combined with the penalty 'none'")
    if count and get("need_value", "i", (count,), 0).max() >= self.n_values:
        raise Unreadable(f"array 'need_value' holds {self.arrays['need_value'].max()}, which is too large")
    bounds = get("need_start", "i", (count + 1,), 0)
    if bounds[0] != 0 or (np.diff(bounds) <= 0).any():
        raise Unreadable("array 'need_start' must rise from 0: each claim is about a feature or more")
    features = get("need", "i", (int(bounds[-1]),), 0)
    if len(features) and features.max() >= self.n_features:
        raise Unreadable(f"array 'need' holds {features.max()}, which is too large")
    if any((np.diff(features[slice(*bounds[i : i + 2])]) <= 0).any() for i in range(count)):
        raise Unreadable("array 'need' must rise within each claim")
    if count and get("need_delta", "f", (count,), 0.0).min() <= 0.0:
        raise Unreadable("array 'need_delta' must be positive")
    get("need_value", "i", (count,))
    get("need_delta", "f", (count,))
    get("need_dual", "f", (count, self.arrays["dual"].shape[1]))


def _check_absent(self: Certificate, get: Callable[..., Array]) -> None:
    """Features that tasks do not have: listed once, without coefficients, and not where tasks pull at each other."""
    if self.header.get("patterns") is None:
        raise Unreadable("array 'absent' needs 'patterns' in the header")
    bounds = get("absent_start", "i", (len(self.tasks) + 1,), 0)
    if bounds[0] != 0 or (np.diff(bounds) < 0).any():
        raise Unreadable("array 'absent_start' must rise from 0")
    features = get("absent", "i", (int(bounds[-1]),), 0)
    if len(features) and features.max() >= self.n_features:
        raise Unreadable(f"array 'absent' holds {features.max()}, which is too large")
    if any((np.diff(features[slice(*bounds[t : t + 2])]) <= 0).any() for t in range(len(self.tasks))):
        raise Unreadable("array 'absent' must rise within each task")
    if len(features) and ("edges" in self.arrays or self.header["penalty"]["name"] == "none"):
        raise Unreadable("array 'absent' cannot be combined with edges between tasks, nor with the penalty 'none'")
    used = np.zeros((len(self.tasks), self.n_features), dtype=bool)
    task_of = np.array([t for t, _ in self.outputs], dtype=np.int64)
    nonzero = self.arrays["coef"] != 0.0
    used[task_of[self.arrays["output"][nonzero]], self.arrays["feature"][nonzero]] = True
    for t, label in enumerate(self.tasks):
        wrong = np.flatnonzero(used[t] & self.absent(t))
        if len(wrong):
            raise Unreadable(f"task {label!r} does not have {self.name(int(wrong[0]))}, which has a coefficient there")

# --- the data -----------------------------------------------------------------------------------------------


def _key(label: Any) -> str:
    """Labels are compared as words; whole numbers without a point."""
    label = label.item() if isinstance(label, np.generic) else label
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _missing(label: Any) -> bool:
    """None, NaN, NaT, or a value of another library that says of itself that it is not known."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):
        return True


def _keys(labels: Array) -> list[str | None]:
    """Labels as words, None where one is missing: rows are many, and labels few."""
    listed = labels.tolist()
    if labels.dtype.kind not in "biuU":
        return [None if _missing(label) else _key(label) for label in listed]
    words = {label: _key(label) for label in set(listed)}
    return [words[label] for label in listed]


def _named(values: Any, what: str, keys: list[str]) -> list[Any]:
    """The entries of a dict in the order of the certificate's tasks."""
    if not isinstance(values, dict):
        raise Mismatch(f"{what} must be a dict of tasks, as X is")
    found = {_key(label): part for label, part in values.items()}
    if len(found) != len(values):
        raise Mismatch(f"{what} has two tasks of the same name: labels are compared as words")
    if set(found) != set(keys):
        raise Mismatch(f"{what} has tasks {sorted(found)}, the certificate has {keys}")
    return [found[k] for k in keys]


class Matrix:
    """Columns and rows of a matrix as float64, from an array, a memory map or anything sparse that has `tocsc`."""

    def __init__(self, given: Any) -> None:
        self._sparse = hasattr(given, "tocsc")
        if not self._sparse:
            given = _plain(given.to_numpy() if hasattr(given, "to_numpy") else given, "X")
        if given.ndim != 2 or given.dtype.kind not in "fiub":
            raise Mismatch("X must be a matrix of numbers")
        self._given = given
        self._by_column = given.tocsc() if self._sparse else given
        _demand_doubles(self._by_column.data if self._sparse else given, "X")
        self.shape: tuple[int, int] = tuple(given.shape)

    def columns(self, features: Any) -> Array:
        found = self._by_column[:, features]
        return np.asarray(found.toarray() if self._sparse else found, dtype=np.float64)

    def take_rows(self, rows: Array) -> Matrix:
        stretch = not len(rows) or bool((np.diff(rows) == 1).all())
        if stretch and len(rows) == self.shape[0]:
            return self
        if stretch and len(rows) and not self._sparse:
            return Matrix(self._given[rows[0] : rows[-1] + 1])
        return Matrix((self._given.tocsr() if self._sparse else self._given)[rows])

    @property
    def read(self) -> bool:
        """Whether its digest is known already."""
        kept = None if self._sparse else _kept_digests(self._given)
        return kept is not None and kept[1] in kept[0]

    def digest(self) -> str:
        """SHA-256 over the entries, row after row, as little-endian float64, no negative zeros."""
        if not self._sparse:
            return _kept_digest(self._given)
        found, step = hashlib.sha256(), max(1, _ENTRIES // (self.shape[1] + 1))
        source = self._given.tocsr()
        for a in range(0, self.shape[0], step):
            found.update(_bytes(source[a : a + step].toarray()))
        return found.hexdigest()


def _digest(given: Array) -> str:
    """`Matrix.digest` of an array: rows are put one after another by strips that the processor's memory holds."""
    (n, d), found = given.shape, hashlib.sha256()
    height = max(1, min(n, _ENTRIES // (d + 1)))
    rows = np.empty((height, d), dtype="<f8")
    for a in range(0, n, height):
        part = rows[: min(height, n - a)]
        for b in range(0, d, 256):
            np.add(given[a : a + height, b : b + 256], 0.0, out=part[:, b : b + 256])
        found.update(part.data)
    return found.hexdigest()


def frozen(values: Any) -> Array:
    """The same numbers in memory that nothing can write to: digests of it are computed once in a process.

    An array that is marked as read-only may be marked otherwise, changed, and marked again: there is no knowing that it
    is what it was. What is written in `bytes` is. """
    values = np.asarray(values)
    order: Any = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
    return np.frombuffer(values.tobytes(order), values.dtype).reshape(values.shape, order=order)


_digests: dict[int, tuple[Any, dict[Any, str]]] = {}  # of the arrays that `frozen` has made, while these are there


def _kept_digests(given: Array) -> tuple[dict[Any, str], Any] | None:
    """The digests that are kept for memory that nothing can write to, and the name of this part of it there."""
    root: Any = given
    while isinstance(root.base, np.ndarray):
        root = root.base
    if type(root.base) is not bytes:
        return None
    key = id(root)
    if key not in _digests or _digests[key][0]() is not root:
        _digests[key] = weakref.ref(root, lambda _: _digests.pop(key, None)), {}
    return _digests[key][1], (given.__array_interface__["data"][0], given.shape, given.strides, given.dtype.str)


def _kept_digest(given: Array) -> str:
    kept = _kept_digests(given)
    if kept is None:
        return _digest(given)
    known, place = kept
    if place not in known:
        known[place] = _digest(given)
    return known[place]


class PartialMatrix(Matrix):
    """Rows of a task that does not have all columns: those that it lacks are zero. `left_out` counts values that are
    there all the same; where nothing may be left out that is a `Mismatch`."""

    def __init__(self, matrix: Matrix, absent: Array, where: str, may_leave_out: bool, checked: bool = False) -> None:
        self._whole, self._absent, self._where, self._may = matrix, absent, where, may_leave_out
        self.shape, self.left_out = matrix.shape, 0
        for features in () if checked else _some(np.flatnonzero(absent), matrix.shape[0]):
            there = ~np.isnan(matrix.columns(features))
            self.left_out += int(there.sum())
            if there.any() and not may_leave_out:
                j = int(features[np.argmax(there.any(axis=0))])
                raise Mismatch(f"{where}: feature {j} is absent in the certificate, and the data have values of it")

    def columns(self, features: Any) -> Array:
        found = np.array(self._whole.columns(features), dtype=np.float64)
        found[:, self._absent[features]] = 0.0
        return found

    def take_rows(self, rows: Array) -> Matrix:
        part = PartialMatrix(self._whole.take_rows(rows), self._absent, self._where, self._may, True)
        part.left_out = self.left_out
        return part

    def digest(self) -> str:
        found, step = hashlib.sha256(), max(1, _ENTRIES // (self.shape[1] + 1))
        for a in range(0, self.shape[0], step):
            rows = np.arange(a, min(a + step, self.shape[0]))
            found.update(_bytes(self.take_rows(rows).columns(slice(None))))
        return found.hexdigest()


def _some(features: Array, n_rows: int) -> list[Array]:
    """Features in blocks whose columns fit into memory."""
    step = max(1, _ENTRIES // (n_rows + 1))
    return [features[a : a + step] for a in range(0, len(features), step)]


def _bytes(values: Any) -> bytes:
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0, dtype="<f8").tobytes()


@dataclass
class Task:
    """The rows of one task: its matrix, labels (numbers, places of classes, or the four columns of `survival_table`),
    sample weights and offsets."""

    matrix: Matrix
    y: Array
    weight: Array
    offset: Array | None

    def digest(self) -> str:
        labels = [self.y] if self.y.ndim == 1 else list(self.y.T)
        columns = [*labels, self.weight] + ([] if self.offset is None else [self.offset])
        return hashlib.sha256(_bytes(np.stack(columns, axis=1))).hexdigest()


def _all_survival(cert: Certificate) -> bool:
    return all(kind_of(cert.loss(t)) == "survival" for t in range(len(cert.tasks)))


def _by_task(cert: Certificate, X: Any, task: Any) -> tuple[list[Any], Callable[[Any, str], list[Any]]]:
    """Matrices in the order of the certificate's tasks, and a function that cuts y and weights in the same way."""
    keys = [_key(label) for label in cert.tasks]
    survival = _all_survival(cert)
    several = isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2
    named = isinstance(X, dict) and not hasattr(X, "tocsc")  # a kind of sparse matrix is a dict, too
    if task is not None and (several or named):
        raise Mismatch("X is given task by task: a task of each row may say something else")
    if named:
        return [Matrix(x) for x in _named(X, "X", keys)], lambda values, what: _named(values, what, keys)
    if several:
        if len(X) != len(keys):
            raise Mismatch(f"the data have {len(X)} tasks, the certificate has {len(keys)}")

        def in_order(values: Any, what: str) -> list[Any]:
            if len(values) != len(keys):
                raise Mismatch(f"{what} has {len(values)} tasks, the certificate has {len(keys)}")
            return list(values)

        return [Matrix(x) for x in X], in_order
    matrix = X if isinstance(X, Matrix) else Matrix(X)
    if cert.header.get("patterns") is not None:
        task = _patterns_of_rows(cert, matrix, task)
    if task is None:
        if len(keys) != 1:
            raise Mismatch(f"the certificate has {len(keys)} tasks: give the task of each row")
        timed = survival and len(keys) == 1
        return [matrix], lambda values, what: [values if timed and what == "y" else _plain(values, what)]
    given = _plain(task, "task").ravel()
    _refuse_merged(given, "task")
    labels = _keys(given)
    if None in labels:
        raise Mismatch("task is missing for some rows")
    if len(labels) != matrix.shape[0]:
        raise Mismatch(f"task has {len(labels)} labels, X has {matrix.shape[0]} rows")
    place: dict[str | None, int] = {key: t for t, key in enumerate(keys)}
    unknown = [label for label in labels if label not in place]
    if unknown:
        raise Mismatch(f"the data have task {min(map(str, unknown))!r}, the certificate does not")
    which = np.array([place[label] for label in labels], dtype=np.int64)
    rows = [np.flatnonzero(which == t) for t in range(len(keys))]

    def split(values: Any, what: str) -> list[Any]:
        timed = what == "y" and survival
        values = _plain(np.stack(values, axis=1) if timed and isinstance(values, tuple) else values, what)
        if values.shape != (len(labels),) and not (timed and values.shape == (len(labels), 2)):
            raise Mismatch(f"{what} has shape {values.shape}, X has {len(labels)} rows")
        return [values[r] for r in rows]

    return [matrix.take_rows(r) for r in rows], split


def _patterns_of_rows(cert: Certificate, matrix: Matrix, task: Any) -> Any:
    """The pattern of each row, by its label: as it was given, or found by the row's task and the columns that it has.
    Where values may be left out, a pattern is also found by the largest part of these columns."""
    of, keys = cert["patterns"]["of"], [_key(label) for label in cert.tasks]
    given = None if task is None else [_key(label) for label in _plain(task, "task").ravel().tolist()]
    if given is not None and (of is None or not set(given) <= {_key(label) for label in of}):
        return task  # labels of patterns, or a refusal later on
    if given is None and of is not None:
        raise Mismatch("the certificate has tasks: give the task of each row")
    if given is not None and len(given) != matrix.shape[0]:
        raise Mismatch(f"task has {len(given)} labels, X has {matrix.shape[0]} rows")
    if matrix.shape[1] != cert.n_features:
        raise Mismatch(f"X has {matrix.shape[1]} features, the certificate has {cert.n_features}")
    present = np.array([~cert.absent(t) for t in range(len(keys))])
    family = ["" if of is None else _key(of[t]) for t in range(len(keys))]
    known: dict[tuple[str, bytes], Any] = {}
    found, step = [], max(1, _ENTRIES // (cert.n_features + 1))
    for a in range(0, matrix.shape[0], step):
        rows = np.arange(a, min(a + step, matrix.shape[0]))
        for i, there in zip(rows.tolist(), ~np.isnan(matrix.take_rows(rows).columns(slice(None))), strict=True):
            pair = ("" if given is None else given[i], there.tobytes())
            if pair not in known:
                inside = [t for t, own in enumerate(family) if own == pair[0] and not (present[t] & ~there).any()]
                best = max(inside, key=lambda t: int(present[t].sum()), default=None)
                if best is None or ((present[best] != there).any() and not cert["patterns"]["dropped"]):
                    raise Mismatch(f"row {i}: the certificate has no task with the columns that it has")
                known[pair] = cert.tasks[best]
            found.append(known[pair])
    labels = np.empty(len(found), dtype=object)
    labels[:] = found
    return labels


def _plain(values: Any, what: str) -> Array:
    """An array without a mask: only in y there is a meaning for one, namely that a label is not there."""
    values = np.asanyarray(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if what != "y" and np.ma.getmaskarray(values).any():
        raise Mismatch(f"{what} is masked: only labels may be")
    if what != "y" or not np.ma.getmaskarray(values).any():
        return np.asarray(values.data)
    _demand_doubles(values.data[~np.ma.getmaskarray(values)], what)
    found = values.data.astype(np.float64 if values.dtype.kind in "iuf" else object)
    found[np.ma.getmaskarray(values)] = np.nan
    return np.asarray(found)


def _real(values: Any, what: str) -> Array:
    """Real numbers, or a refusal in words."""
    values = _plain(values, what)
    if values.dtype.kind not in "fiubO" or any(isinstance(v, complex | np.complexfloating) for v in _objects(values)):
        raise Mismatch(f"{what} must be numbers, and real ones; got {values.dtype}")
    _demand_doubles(values, what)
    try:
        return values.astype(np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise Mismatch(f"{what} must be numbers, and real ones") from None


def _demand_doubles(values: Array, what: str) -> None:
    """Numbers that float64 would round are other numbers than those that were signed."""
    wide = values.dtype.kind == "f" and values.dtype.itemsize > 8
    whole = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size
    if whole and (values.max() > 1 << 53 or values.min() < -(1 << 53)):
        raise Mismatch(f"{what} holds whole numbers beyond 2^53, which float64 does not")
    if wide and (values.astype(np.float64) != values)[~np.isnan(values)].any():
        raise Mismatch(f"{what} holds numbers with more digits than float64 has")
    if any(isinstance(v, int) and abs(v) > 1 << 53 for v in _objects(values)):
        raise Mismatch(f"{what} holds whole numbers beyond 2^53, which float64 does not")


def _refuse_merged(labels: Array, what: str) -> None:
    """Words and numbers that differ, and would be taken for one label."""
    words = {v for v in _objects(labels) if isinstance(v, str)}
    both = words & {_key(v) for v in _objects(labels) if not isinstance(v, str) and not _missing(v)}
    if both:
        raise Mismatch(f"{what} holds {min(both)!r} as a word and as a number: labels are compared as words")


def _objects(values: Array) -> list[Any]:
    return values.ravel().tolist() if values.dtype.kind == "O" else []


def survival_table(values: Any) -> tuple[Array, Array]:
    """Columns time, event (0 or 1), entry (minus infinity where there is none) and stratum of labels that are a
    structured array with such fields, (time, event) or a matrix of these two; and which labels are there."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == object:  # beside those of other tasks
        records = values.tolist()
        if records and all(isinstance(label, np.void) for label in records):
            values = np.array(records, dtype=records[0].dtype)
    names = getattr(getattr(values, "dtype", None), "names", None)
    if names is not None:
        kinds = [values.dtype[name].kind for name in names]
        if not {"time", "event"} <= set(names):  # two fields of any names: one of truth values, one of numbers
            if len(names) != 2 or sorted(kind == "b" for kind in kinds) != [False, True]:
                raise Mismatch("y must have fields 'event' and 'time'")
            names = ["event" if kind == "b" else "time" for kind in kinds]
        names = ["stratum" if name == "strata" else name for name in names]
        if set(names) - {"time", "event", "entry", "stratum"} or len(set(names)) != len(names):
            raise Mismatch(f"y has the fields {', '.join(names)}: known are time, event, entry and stratum")
        given = {name: values[field] for name, field in zip(names, values.dtype.names, strict=True)}
    elif isinstance(values, tuple) and len(values) == 2:
        given = dict(zip(("time", "event"), values, strict=True))
    else:
        values = _plain(values, "y")
        if values.ndim != 2 or values.shape[1] != 2:
            raise Mismatch("y must hold times and events: a structured array, (time, event), or two columns")
        given = {"time": values[:, 0], "event": values[:, 1]}
    time, event = _real(given["time"], "time"), _real(given["event"], "event")
    n = len(time)
    entry = _real(given["entry"], "entry") if "entry" in given else np.full(n, -np.inf)
    stratum = _plain(given["stratum"], "stratum").ravel() if "stratum" in given else np.zeros(n)
    if not len(event) == len(entry) == len(stratum) == n:
        raise Mismatch("time, event, entry and stratum differ in their rows")
    there = ~(np.isnan(time) | np.isnan(event))
    if not np.isin(event[there], (0.0, 1.0)).all():
        raise Mismatch("an event is neither 0 nor 1")
    if not (entry < time)[there].all():
        raise Mismatch("an entry is not before its time")
    _refuse_merged(stratum, "stratum")
    labels = [_key(label) for label in stratum.tolist()]
    if any(_missing(label) for label, here in zip(stratum.tolist(), there.tolist(), strict=True) if here):
        raise Mismatch("a stratum is missing")
    return np.stack([time, event, entry, _codes(labels, there)], axis=1), there


def _codes(labels: list[str], there: Array) -> Array:
    """0, 1, ... in the order in which labels come first: names of strata mean nothing."""
    known: dict[str, float] = {}
    return np.array([known.setdefault(one, float(len(known))) if here else 0.0
                     for one, here in zip(labels, there.tolist(), strict=True)])  # fmt: skip


def listed_labels(labels: Array, there: Array) -> Array:
    """Labels as the format lists them, 0 where they are not there; strata are those that are."""
    if labels.ndim == 1:
        return np.where(there, labels, 0.0)
    found = np.where(there[:, None], labels, 0.0)
    found[:, 3] = _codes(list(map(_key, found[:, 3].tolist())), there)
    return found


def _labels(cert: Certificate, t: int, values: Any) -> tuple[Array, Array]:
    """y as the certificate counts it, and which labels are there."""
    kind = kind_of(cert.loss(t))
    if kind == "survival":
        return survival_table(values)
    if getattr(getattr(values, "dtype", None), "names", None):  # labels of unlike kinds in one array
        values = values["time"]
    if kind == "numbers":
        y = _real(values, "y")
        return np.where(np.isnan(y), 0.0, y), ~np.isnan(y)
    values = _plain(values, "y").ravel()
    if values.dtype.kind == "c" or any(isinstance(v, complex | np.complexfloating) for v in _objects(values)):
        raise Mismatch("y holds complex numbers, which are no labels")
    _refuse_merged(values, "y")
    place = {_key(label): float(c) for c, label in enumerate(cert.classes(t))}
    keys = _keys(values)
    for key in keys:
        if key is not None and key not in place:
            raise Mismatch(f"task {cert.tasks[t]!r}: y has the class {key!r}, the certificate has {sorted(place)}")
    return np.array([0.0 if k is None else place[k] for k in keys]), np.array([k is not None for k in keys], dtype=bool)


def arrange(cert: Certificate, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any) -> list[Task]:
    """The data task by task, as the format lists them: rows without a label, or of weight 0, are not there (with a
    shared matrix they are, with weight 0 and y = 0)."""
    if (offset is not None) != cert["offset"]:
        raise Mismatch(f"the certificate is for a model {'with' if cert['offset'] else 'without'} offset")
    n_tasks = len(cert.tasks)
    survival = _all_survival(cert)
    if cert["shared"]:
        if task is not None:
            raise Mismatch("the tasks of the certificate share a matrix: a task of each row means something else")
        matrix = X if isinstance(X, Matrix) else Matrix(X)
        parts = [matrix] * n_tasks

        def cut(values: Any, what: str) -> list[Any]:
            if isinstance(values, dict):
                return _named(values, what, [_key(label) for label in cert.tasks])
            if what == "y" and isinstance(values, list) and len(values) == n_tasks and np.ndim(values[0]):
                return values  # task by task: labels of unlike kinds, or times with events
            if survival and n_tasks == 1 and (isinstance(values, tuple) or np.shape(values) == (matrix.shape[0], 2)):
                return [values]
            values = _plain(values, what)
            if values.shape == (matrix.shape[0],) and (n_tasks == 1 or what == "sample_weight"):
                return [values] * n_tasks
            if values.shape != (matrix.shape[0], n_tasks):
                raise Mismatch(f"{what} has shape {values.shape}, not {(matrix.shape[0], n_tasks)}: one column a task")
            return list(values.T)
    else:
        parts, cut = _by_task(cert, X, task)  # type: ignore[assignment]
    ys = cut(y, "y")
    weights = [None] * n_tasks if sample_weight is None else cut(sample_weight, "sample_weight")
    offsets = [None] * n_tasks if offset is None else cut(offset, "offset")
    tasks = []
    for t, matrix in enumerate(parts):
        labels, there = _labels(cert, t, ys[t])
        weight = np.ones(len(labels)) if weights[t] is None else _real(weights[t], "sample_weight")
        added = None if offsets[t] is None else _real(offsets[t], "offset")
        if len({matrix.shape[0], len(labels), len(weight)} | (set() if added is None else {len(added)})) != 1:
            raise Mismatch(f"task {cert.tasks[t]!r}: X, y, sample_weight or offset differ in their rows")
        there &= weight != 0.0
        labels = listed_labels(labels, there)
        if cert["shared"]:
            weight = np.where(there, weight, 0.0)
        elif not there.all():
            rows = np.flatnonzero(there)
            matrix, labels, weight = matrix.take_rows(rows), labels[rows], weight[rows]
            added = None if added is None else added[rows]
        if cert.absent(t).any() and matrix.shape[1] == cert.n_features:
            matrix = PartialMatrix(matrix, cert.absent(t), f"task {cert.tasks[t]!r}", cert["patterns"]["dropped"] > 0)
        known = labels if labels.ndim == 1 else labels[:, (0, 1, 3)]
        if not (np.isfinite(weight).all() and (weight >= 0.0).all() and np.isfinite(known).all()):
            raise Mismatch(f"task {cert.tasks[t]!r}: weights must be numbers >= 0, y finite")
        if added is not None and not np.isfinite(added).all():
            raise Mismatch(f"task {cert.tasks[t]!r}: offset must be finite")
        if matrix.shape != (cert["rows"][t], cert.n_features):
            raise Mismatch(
                f"task {cert.tasks[t]!r} has {matrix.shape[0]} rows and {matrix.shape[1]} features, "
                f"in the certificate {cert['rows'][t]} and {cert.n_features}"
            )
        tasks.append(Task(matrix, labels, weight, added))
    return tasks


def matrix_digests(tasks: list[Task], shared: bool) -> list[str]:
    """Of the matrices, several at a time: hashing lets other threads go on."""
    matrices = [part.matrix for part in (tasks[:1] if shared else tasks)]
    if any(type(one) is not Matrix for one in matrices) or all(one.read for one in matrices):  # others may read files
        return [one.digest() for one in matrices]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda one: one.digest(), matrices))


def check_digests(cert: Certificate, tasks: list[Task], salt: bytes | None = None) -> list[str]:
    """What differs from the data of the certificate."""
    wrong, matrices = [], [salted(one, salt) for one in matrix_digests(tasks, cert["shared"])]
    for t, part in enumerate(tasks):
        where = f"task {cert.tasks[t]!r}"
        if t < len(matrices) and matrices[t] != cert["digests"]["matrices"][t].lower():
            which = "X" if cert["shared"] else f"{where}: X"
            wrong.append(f"{which} is not the matrix of the certificate (its digest differs)")
        if salted(part.digest(), salt) != cert["digests"]["labels"][t].lower():
            wrong.append(f"{where}: y, weights or offsets are not those of the certificate (their digest differs)")
    return wrong


def salted(digest: str, salt: bytes | None) -> str:
    """A digest that confirms no guess of the data to those who do not know the salt: HMAC-SHA-256 of its bytes."""
    return digest if salt is None else hmac.new(salt, bytes.fromhex(digest), hashlib.sha256).hexdigest()


# --- the problem --------------------------------------------------------------------------------------------


@dataclass
class Rows:
    """Rows that one loss is a function of, one task after the other: all of them where it is a sum over rows, else
    those of one task."""

    tasks: list[int]
    starts: Array  # of the tasks among the rows, and their number
    s: Box
    y: Array
    code: Array  # as the file lists it: of classes their places
    weight: Array
    offset: Array | None
    plain: bool  # whether sums may be wider than need be

    def part(self, i: int) -> slice:
        return slice(self.starts[i], self.starts[i + 1])

    def totals(self, box: Box) -> Box:
        """Of each task."""
        n = np.diff(self.starts)
        if self.plain and len(n) > 1 and n.min() > 0 and n.max() <= 256:
            ends = box.lo, box.hi, np.maximum(np.abs(box.lo), np.abs(box.hi))
            lo, hi, sizes = (np.add.reduceat(x, self.starts[:-1]) for x in ends)
            return _plain_sum(lo, hi, sizes, int(n.max()))
        return _stack([box[self.part(i)].total() for i in range(len(self.tasks))])

    def spread(self, values: Any) -> Any:
        """A number of each task for its rows."""
        return np.repeat(values, np.diff(self.starts), axis=0)

    def each(self, box: Box) -> Box:
        lo = self.spread(box.lo)
        return Box(lo, lo if box.point else self.spread(box.hi))

    def middle(self, values: Array) -> Array:
        """For every row a number near those of its task."""
        return self.spread([float(_shift(values[self.part(i), None])[0]) for i in range(len(self.tasks))])


@dataclass
class Dual:
    """The exact projection of a stored vector: `natural` (p, or the probabilities or rates it stands for) and ``v = s
    p``, as `Problem.losses` have them; and v task by task."""

    natural: list[Box]
    joined: list[Box]
    v: list[Box]
    dropped: list[str]  # tasks whose vector has no projection in the domain, and counts as 0


class Problem:
    """Data and objective of a certificate in one of the two arithmetics."""

    def __init__(self, cert: Certificate, tasks: list[Task], arith: Any) -> None:
        self.cert, self.tasks, self.arith = cert, tasks, arith
        self.loss = cert["loss"]["name"]
        self.centred = cert["intercept"] is True
        self.unit = arith.one(cert["unit"])
        weights = cert.arrays.get("feature_weights", np.ones(cert.n_features))
        self.free, self.penalised = np.flatnonzero(weights == 0.0), weights > 0.0
        shared = bool(cert["shared"])
        self.together = [list(range(len(tasks)))] if shared else [[t] for t in range(len(tasks))]  # with one matrix
        self.outputs_of = [[q for q, (task, _) in enumerate(cert.outputs) if task == t] for t in range(len(tasks))]
        self.task_of = np.array([t for t, _ in cert.outputs])
        words = [cert.loss(t) for t in range(len(tasks))]
        self.s = [self._weights(t) for t in range(len(tasks))]
        self.scales: list[float] = cert["loss"]["scales"] if self.loss == "mixed" else [1.0] * len(tasks)
        self.y = [2.0 * part.y - 1.0 if kind_of(own) == "signs" else part.y
                  for part, own in zip(tasks, words, strict=True)]  # fmt: skip
        every = range(len(tasks))
        joint = self.loss != "mixed" and LOSSES[self.loss].joint
        self.losses: list[Loss] = [
            LOSSES[words[which[0]]["name"]](self, self._join(which), words[which[0]])
            for which in ([list(every)] if joint else [[t] for t in every])
        ]
        self._free_columns: dict[int, list[Box]] = {}
        self._scores: dict[int, list[Box]] = {}  # of each value, by loss
        self.spread: Box | None = None  # of all columns, once they have been read
        self.deviations: Box | None = None  # the same of standard deviations, by `read_lengths`

    def _join(self, which: list[int]) -> Rows:
        parts = [self.tasks[t] for t in which]
        offsets = [part.offset for part in parts if part.offset is not None]
        return Rows(
            which,
            np.cumsum([0, *(len(part.y) for part in parts)]),
            _joined([self.s[t] for t in which]),
            np.concatenate([self.y[t] for t in which]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate(offsets) if offsets else None,
            self.arith.plain,
        )

    @property
    def squared(self) -> bool:
        loss = self.cert["loss"]
        plain = self.loss == "clipped" and loss["labels"] == "numbers" and loss["low"] is None and loss["high"] is None
        return plain and loss["epsilon"] == 0.0 and loss["mu"] > 0.0

    def modulus(self, point: Dual, c: Box, gap: Box) -> Box | None:
        """The least by which the conjugates are strongly convex, where all of them are: `Loss.modulus`."""
        found = [loss.modulus(natural, c, gap) for loss, natural in zip(self.losses, point.natural, strict=True)]
        if any(one is None for one in found):
            return None
        return min((one for one in found if one is not None), key=lambda one: one.lo)

    def _weights(self, t: int) -> Box:
        part = self.tasks[t]
        s = self.arith.numbers(part.weight)
        if self.cert["task_weights"] is not None:
            factor = self.arith.one(self.cert["task_weights"][t])
            s = s * (factor * factor if self.loss == "square-root" else factor)
        if self.cert["class_weights"] is not None:
            s = s * self.arith.numbers(np.array(self.cert["class_weights"][t])[part.y.astype(np.int64)])
        if self.loss == "mixed" and LOSSES[self.cert.loss(t)["name"]].homogeneous:
            s = s * self.arith.one(self.cert["loss"]["weights"][t])
        return s

    def coefficients(self, k: int) -> tuple[Array, Array]:
        """Features that are not zero, and their rows."""
        arrays = self.cert.arrays
        here = slice(*arrays["start"][k : k + 2])
        features, place = np.unique(arrays["feature"][here], return_inverse=True)
        rows = np.zeros((len(features), len(self.cert.outputs)))
        rows[place, arrays["output"][here]] = arrays["coef"][here]
        return features, rows

    # -- primal ----------------------------------------------------------------------------------------------

    def read_scores(self, values: Sequence[int]) -> None:
        """Scores z of some values, all at a time: y - z where the loss sees that alone, because y, offset and intercept
        may be huge and cancel."""
        arrays, n_values = self.cert.arrays, len(values)
        entries = [np.arange(*arrays["start"][k : k + 2]) for k in values]
        which, at = np.repeat(np.arange(n_values), list(map(len, entries))), np.concatenate(entries)
        order = np.argsort(arrays["output"][at], kind="stable")
        which, at = which[order], at[order]
        feature, output, coef = (arrays[name][at] for name in ("feature", "output", "coef"))
        self._scores = {k: [] for k in values}
        for loss in self.losses:
            rows, found, parts = loss.rows, list[Box](), list[tuple[Array, Array, list[Array]]]()
            for i, t in enumerate(rows.tasks):
                outputs, here = self.outputs_of[t], rows.part(i)
                mine = slice(*np.searchsorted(output, (outputs[0], outputs[-1] + 1)))
                support, place = feature[mine], np.arange(mine.stop - mine.start)
                if len(outputs) * n_values > 1:  # else every feature is there once
                    support, place = np.unique(support, return_inverse=True)
                w = np.zeros((len(support), len(outputs), n_values))
                w[place, output[mine] - outputs[0], which[mine]] = coef[mine]
                shape = (here.stop - here.start, len(outputs), n_values)
                extras = [np.broadcast_to(arrays["intercept"][list(values)][:, outputs].T, shape)]
                if rows.offset is not None:
                    extras.append(np.broadcast_to(rows.offset[here, None, None], shape))
                if loss.residual:
                    y = np.broadcast_to(rows.y[here, None, None], shape)
                    w, extras = -w, [y, *(-e for e in extras)]
                m = len(outputs) * n_values
                flat = [e.reshape(len(e), m) for e in extras]
                parts.append((self.tasks[t].matrix.columns(support), w.reshape(len(w), m), flat))
                if i + 1 == len(rows.tasks) or sum(x.size + 8 * len(x) * m for x, _, _ in parts) > _ENTRIES:
                    found += self.arith.all_scores(parts)
                    parts = []
            whole = _joined(found)
            for i, k in enumerate(values):
                self._scores[k].append(whole[:, i::n_values])

    def primal_losses(self, k: int) -> Box:
        """F of each task at the stored coefficients, divided by the unit."""
        if k not in self._scores:
            self.read_scores([k])
        scores = zip(self.losses, self._scores[k], strict=True)
        return _joined([loss.values(loss.scaled(z), k) for loss, z in scores]) / self.unit

    # -- dual ------------------------------------------------------------------------------------------------

    def free_columns(self, t: int, loss: Loss) -> list[Box]:
        """Columns Z that cost nothing. Those that are combinations of others in this task (dummies of a category,
        what is constant) are left out: what is orthogonal to the others is orthogonal to them."""
        if t not in self._free_columns:
            raw = self.tasks[t].matrix.columns(self.free)
            if not np.isfinite(raw).all():
                raise Mismatch("X holds NaN or infinite numbers")
            constants = loss.constants(len(raw))
            kept = _independent(np.hstack([constants, raw])[loss.live(self.tasks[t].weight)])
            n, centred = constants.shape[1], bool(constants.shape[1])
            found = [self.arith.numbers(constants[:, k]) for k in kept if k < n]
            found += [self.arith.free_column(raw[:, k - n], centred) for k in kept if k >= n]
            self._free_columns[t] = found
        return self._free_columns[t]

    def project(self, k: int) -> Dual:
        point = Dual([], [], [], [])
        start, dual = 0, self.cert.arrays["dual"][k]
        for loss in self.losses:
            rows = loss.rows
            n, width = len(rows.y), len(self.outputs_of[rows.tasks[0]])
            p = dual[start : start + n * width].reshape(width, n).T
            start += n * width
            p = np.where(loss.live(rows.weight)[:, None], p, 0.0)
            natural, why = loss.project(p)
            if why:
                nothing = loss.natural(np.zeros(p.shape))
                lost = np.isin(np.arange(len(rows.tasks)), list(why))
                gone = np.broadcast_to(rows.spread(lost).reshape((n,) + (1,) * (len(nothing.shape) - 1)), nothing.shape)
                natural = choose(gone, nothing, natural)
                point.dropped += [f"task {self.cert.tasks[rows.tasks[i]]!r}: {words}" for i, words in why.items()]
            v = loss.vector(natural)
            point.natural.append(natural)
            point.joined.append(v)
            point.v += [v[rows.part(i)] for i in range(len(rows.tasks))]
        return point

    def dual_losses(self, point: Dual, c: Box) -> Box:
        """``(-F*(-c v) - c sum v o) / N`` of each task, from below."""
        each = zip(self.losses, point.natural, point.joined, strict=True)
        return _joined([loss.gains(natural, v, c) for loss, natural, v in each]) / self.unit


# --- losses -------------------------------------------------------------------------------------------------

_NO_PROJECTION = "its vector has no projection orthogonal to what costs nothing"


class Loss:
    """A loss F on rows, and what a dual point costs: `words` are those of the header.

    A dual point is stored as p, ``v = s p``; it is used in a variable of the loss in which its domain is simple, the
    `natural` one. Whatever is stored, F(z) >= -<v, z> - cost for all z is what `project` and `gains` must make true.
    """

    joint = True  # a sum over rows: of all tasks at a time
    residual = False  # whether F is a function of y - z
    homogeneous = True  # whether a multiple of F is F of multiplied weights: not of logarithms of their sums
    always_constant = False  # whether F is minimised over a constant, with an intercept or without
    laborious = False  # whether a dual value takes long

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        self.problem, self.rows, self.words, self.arith = problem, rows, words, problem.arith
        self.one = self.numbers(1.0)

    def numbers(self, value: float) -> Box:
        return self.arith.numbers(np.full(len(self.rows.y), value))

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box | None:
        """By which the conjugates of rows are strongly convex, beside the weights s, between c times a dual point and
        every dual optimum, if its dual value is at most `gap` below theirs (of the sum, not of the mean over rows);
        None: not known."""
        return None

    def modulus_of_means(self, mean: Box, gap: Box, most: Box | None = None) -> Box:
        """Of losses whose dual points are means m >= 0 that fall short of the optimum, at m*, by ``sum s KL(m || m*)``
        or more, which therefore is at most `gap`: by ``KL(m || m*) >= (m - m*)^2/(2 k)``, ``k = m/3 + 2 m*/3``, no m*
        is more than ``2 g/3 + (4 g^2/9 + 2 g m)^(1/2)``, g = gap/s, above m. `most`: what no k need exceed. """
        rows, one, arith = self.rows, self.one, self.arith
        there = np.asarray(self.live(rows.weight) & (rows.s.hi > 0), dtype=bool)
        third = (one + one) / self.numbers(3.0)
        g = third * (_like(gap, one) / choose(there, rows.s, one))
        k = mean + third * (g + arith.sqrt(g.square() + self.numbers(3.0) * g * mean))
        if most is not None:
            k = k.at_most(most)
        nothing = np.broadcast_to(arith.one(2.0**-500).lo, k.shape)  # of rows that have no part
        return arith.one(1.0) / Box(np.max(np.where(there, k.hi, nothing), initial=nothing[:1].max(initial=0)))

    def live(self, weight: Array) -> Array:
        """Rows that may have a dual point other than 0."""
        return np.asarray(weight > 0.0)

    def constants(self, n: int) -> Array:
        """Constant columns among those that cost nothing, of a task."""
        return np.ones((n, int(self.problem.centred or self.always_constant)))

    def scaled(self, x: Box) -> Box:
        """y - z, or a part of it, in the unit of the task's labels."""
        scale = self.problem.scales[self.rows.tasks[0]]
        return x if scale == 1.0 else x / _like(self.arith.one(scale), x)

    def values(self, z: Box, k: int) -> Box:
        """F of each task."""
        raise NotImplementedError

    def natural(self, p: Array) -> Box:
        raise NotImplementedError

    def vector(self, natural: Box) -> Box:
        """``v = s p``, a column for each output."""
        raise NotImplementedError

    def ends(self) -> tuple[Array, Array]:
        """Of the domain of p."""
        n = len(self.rows.y)
        return np.full(n, -np.inf), np.full(n, np.inf)

    def nearest(self, p: Array) -> Array:
        """In the domain: for writers of certificates."""
        return np.clip(p, *(end[:, None] for end in self.ends()))

    def inner(self) -> Array:
        """A vector well inside the domain: for writers of certificates."""
        return np.zeros(len(self.rows.y))

    def spare(self) -> Any:
        """By how much what is found of a dual value may differ between two arithmetics, beside rounding: for writers of
        certificates."""
        return 0.0

    def project(self, p: Array) -> tuple[Box, dict[int, str]]:
        """A dual point near p, and the tasks for which there is none, with the reason."""
        raise NotImplementedError

    def gains(self, natural: Box, v: Box, c: Box) -> Box:
        """``-F*(-c v) - c <v, o>`` of each task, from below."""
        raise NotImplementedError

    def offsets(self, v: Box, c: Box) -> Box | None:
        """``c <v, o>``, less a shift of o where v is orthogonal to constants."""
        rows, arith = self.rows, self.arith
        if rows.offset is None:
            return None
        o = arith.numbers(rows.offset)
        if self.problem.centred or self.always_constant:
            o = o - arith.numbers(rows.middle(rows.offset))
        return _sum([rows.totals(c * v[:, q] * o) for q in range(v.shape[1])])

    def moves(self, sh: Box, v: Box) -> tuple[Box, list[int]]:
        """``Z c`` of every row with ``Z' diag(s h) Z c = Z' v``, and the tasks without a solution (zeros there)."""
        rows, arith, problem = self.rows, self.arith, self.problem
        if not len(problem.free):
            return self.constant_moves(sh, v)
        found, unsolved = [], []
        for i, t in enumerate(rows.tasks):
            part, columns = rows.part(i), problem.free_columns(t, self)
            nothing = arith.numbers(np.zeros(part.stop - part.start))
            if not columns or not len(problem.y[t]):
                found.append(nothing)
                continue
            matrix = [[(a * b * sh[part]).total() for b in columns] for a in columns]
            c = arith.solve(matrix, [(a * v[part]).total() for a in columns])
            if c is None:
                unsolved.append(i)
            moved = nothing if c is None else _sum([a * _like(b, a) for a, b in zip(columns, c, strict=True)])
            found.append(moved)
        return _joined(found), unsolved

    def constant_moves(self, sh: Box, v: Box) -> tuple[Box, list[int]]:
        """`moves` where Z is the constant alone."""
        c, solved = self.arith.ratio(self.rows.totals(v), self.rows.totals(sh))
        return self.rows.each(c), np.flatnonzero(~solved).tolist()

    def entropy(self, x: Box) -> Box:
        """``x log x`` from above (0 at 0), for numbers that are known to be >= 0: it is convex, so largest at an
        end."""
        ends = []
        for end in (np.maximum(x.lo, 0 * x.lo), x.hi) if x.lo is not x.hi else (x.lo,):
            there = end > 0
            safe = Box(np.where(there, end, 0 * end + 1))
            ends.append(np.where(there, (safe * self.arith.log(safe)).hi, 0 * end))
        top = ends[0] if len(ends) == 1 else np.maximum(*ends)
        return Box(top)

    def binary(self, x: Box) -> Box:
        """``x log x + (1 - x) log(1 - x)`` from above, for numbers between 0 and 1."""
        return self.entropy(x) + self.entropy(self.one[: len(x.lo)] - x)

    def softplus(self, x: Box) -> Box:
        """``log(1 + e^x)``."""
        return x.positive() + self.arith.log1p(self.arith.exp(-abs(x)))


class RowLoss(Loss):
    """A sum over rows, ``sum s f(y, z)``; p is ``-f'``.

    The stored vector is moved to ``p - h (Z c)``, ``Z' diag(s h) Z c = Z'(s p)``, h the `room` that p has.
    """

    @property
    def y(self) -> Box:
        return self.arith.numbers(self.rows.y)

    def values(self, z: Box, k: int) -> Box:
        return self.rows.totals(self.rows.s * self.row_values(z[:, 0]))

    def row_values(self, z: Box) -> Box:
        """f, of y - z if `residual`."""
        raise NotImplementedError

    def natural(self, p: Array) -> Box:
        return self.arith.numbers(p.reshape(-1))

    def stored(self, natural: Box) -> Box:
        """p."""
        return natural

    def room(self, natural: Box) -> Box:
        return self.one

    def moved(self, natural: Box, move: Box) -> Box:
        """Of p - move."""
        return natural - move

    def inside(self, natural: Box) -> Array:
        return np.asarray(natural.lo <= natural.hi)

    def cost(self, natural: Box, c: Box) -> Box:
        """``f*(-c p)`` from above; without ``-c p y`` if `residual`."""
        raise NotImplementedError

    def vector(self, natural: Box) -> Box:
        return _columns([self.rows.s * self.stored(natural)])

    def project(self, p: Array) -> tuple[Box, dict[int, str]]:
        rows, natural, why = self.rows, self.natural(p), dict[int, str]()
        if (self.problem.centred or self.always_constant or len(self.problem.free)) and len(p):
            h = self.room(natural)
            move, unsolved = self.moves(rows.s * h, self.vector(natural)[:, 0])
            why = dict.fromkeys(unsolved, _NO_PROJECTION)
            natural = self.moved(natural, move * h)
        inside = np.asarray(self.inside(natural), dtype=bool)
        if not inside.all():
            for i in range(len(rows.tasks)):
                first = np.flatnonzero(~inside[rows.part(i)])
                if len(first):
                    why.setdefault(i, f"its vector leaves the loss's domain, first in row {first[0] + 1}")
        return natural, why

    def gains(self, natural: Box, v: Box, c: Box) -> Box:
        rows, c = self.rows, _like(c, self.one)
        if self.residual:
            return rows.totals(rows.s * (c * natural * self.target - self.cost(natural, c)))
        total, along = -rows.totals(rows.s * self.cost(natural, c)), self.offsets(v, c)
        return total if along is None else total - along

    @cached_property
    def target(self) -> Box:
        """``y - offset``, less a shift where p is orthogonal to constants."""
        rows = self.rows
        extras = [rows.y] + ([] if rows.offset is None else [-rows.offset])
        if self.problem.centred:
            extras.append(-rows.middle(sum(extras[1:], extras[0])))
        n = len(rows.y)
        found = self.arith.scores(np.zeros((n, 0)), np.zeros((0, 1)), [e[:, None] for e in extras])
        return self.scaled(found)[:, 0]


class Clipped(RowLoss):
    """``max p r - mu p^2/2 - epsilon |p|`` over p between two ends, r = y - z."""

    residual = True

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box | None:
        return self.arith.one(self.words["mu"]) if self.words["mu"] > 0.0 else None

    def ends(self) -> tuple[Array, Array]:
        loss, y = self.words, self.rows.y
        high = np.inf if loss["high"] is None else loss["high"]
        if loss["labels"] == "classes":
            return np.where(y > 0.0, 0.0, -high), np.where(y > 0.0, high, 0.0)
        return np.full(len(y), -np.inf if loss["low"] is None else loss["low"]), np.full(len(y), high)

    def row_values(self, z: Box) -> Box:
        arith, mu, epsilon = self.arith, self.numbers(self.words["mu"]), self.numbers(self.words["epsilon"])
        value = Box(0 * z.lo)
        for r, end in ((z, 1), (-z, 0)):
            over, bound = (r - epsilon).positive(), self.ends()[end]
            height = arith.numbers(np.where(np.isinf(bound), 0.0, np.abs(bound)))
            if self.words["mu"] == 0.0:
                if np.isinf(bound).any():
                    raise Mismatch("a clipped loss without mu needs bounds")
                value = value + height * over
            else:
                bent = mu * height
                cut = choose(np.isinf(bound), over, over.at_most(bent))
                value = value + cut * (over + over - cut) / (mu + mu)
        return value

    def values(self, z: Box, k: int) -> Box:
        if self.words["labels"] == "classes" or np.isfinite(self.ends()).any() or self.words["epsilon"] > 0.0:
            return super().values(z, k)
        if self.words["mu"] == 0.0:
            raise Mismatch("a clipped loss without mu needs bounds")
        mu = self.arith.one(self.words["mu"])
        return self.rows.totals(self.rows.s * z[:, 0].square()) / (mu + mu)

    def _bounds(self) -> tuple[Array, Array, list[Box]]:
        low, high = self.ends()
        return low, high, [self.arith.numbers(np.where(np.isinf(b), 0.0, b)) for b in (low, high)]

    def room(self, natural: Box) -> Box:
        low, high, ends = self._bounds()
        above = choose(np.isinf(low), self.one, natural - ends[0])
        below = choose(np.isinf(high), self.one, ends[1] - natural)
        return choose(np.isinf(low), below, choose(np.isinf(high), above, above.at_most(below))).positive()

    def inside(self, natural: Box) -> Array:
        low, high, ends = self._bounds()
        return (np.isinf(low) | (natural.lo >= ends[0].lo)) & (np.isinf(high) | (natural.hi <= ends[1].lo))

    def cost(self, natural: Box, c: Box) -> Box:
        p = c * natural
        found = _like(_half(self.arith, self.words["mu"]), self.one) * p.square()
        return found if self.words["epsilon"] == 0.0 else found + self.numbers(self.words["epsilon"]) * abs(p)


class SquareRoot(RowLoss):
    """The root of ``sum s r^2`` of each task; that ``c^2 sum s p^2 <= 1`` is for the scale c (`Checker._in_domain`)."""

    residual = True

    def values(self, z: Box, k: int) -> Box:
        return self.arith.sqrt(self.rows.totals(self.rows.s * z[:, 0].square()))

    def cost(self, natural: Box, c: Box) -> Box:
        return Box(0 * natural.lo)


class Expectile(RowLoss):
    """``w r^2/2`` with w = level above and 1 - level below 0."""

    residual = True

    @cached_property
    def sides(self) -> tuple[Box, Box]:
        level = self.numbers(self.words["level"])
        return level, self.one - level

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        level, one = self.arith.one(self.words["level"]), self.arith.one(1.0)
        return one / (level if self.words["level"] >= 0.5 else one - level)

    def row_values(self, z: Box) -> Box:
        above, below = self.sides
        half = self.numbers(0.5)
        return half * (above * z.positive().square() + below * (-z).positive().square())

    def cost(self, natural: Box, c: Box) -> Box:
        above, below = self.sides
        p, half = c * natural, self.numbers(0.5)
        return half * (p.positive().square() / above + (-p).positive().square() / below)


class LogCosh(RowLoss):
    """``log cosh r``; p = tanh r, and ``(1 + p)/2`` is a probability."""

    residual = True

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        return self.arith.one(1.0)

    def ends(self) -> tuple[Array, Array]:
        n = len(self.rows.y)
        return np.full(n, -1.0), np.full(n, 1.0)

    def _log_two(self) -> Box:
        return self.arith.log(self.numbers(2.0))

    def row_values(self, z: Box) -> Box:
        size = abs(z)
        return size + self.arith.log1p(self.arith.exp(-(size + size))) - self._log_two()

    def room(self, natural: Box) -> Box:
        return self.one - natural.square()

    def inside(self, natural: Box) -> Array:
        return np.asarray(abs(natural).hi <= 1)

    def cost(self, natural: Box, c: Box) -> Box:
        return self.binary(self.numbers(0.5) * (self.one + c * natural)) + self._log_two()


class Logistic(RowLoss):
    """``log(1 + e^(-y z))``; natural: ``pi = y p`` in [0, 1]."""

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        return self.arith.one(4.0)

    def ends(self) -> tuple[Array, Array]:
        return np.minimum(self.rows.y, 0.0), np.maximum(self.rows.y, 0.0)

    def row_values(self, z: Box) -> Box:
        return self.softplus(-(self.y * z))

    def natural(self, p: Array) -> Box:
        return self.y * super().natural(p)

    def stored(self, natural: Box) -> Box:
        return self.y * natural

    def room(self, natural: Box) -> Box:
        return natural * (self.one - natural)

    def moved(self, natural: Box, move: Box) -> Box:
        return natural - self.y * move

    def inside(self, natural: Box) -> Array:
        return (natural.lo >= 0) & (natural.hi <= 1)

    def cost(self, natural: Box, c: Box) -> Box:
        return self.binary(c * natural)


class Means(RowLoss):
    """Losses whose natural variable is a mean ``m = a - p >= 0`` of a label a."""

    @property
    def label(self) -> Box:
        return self.y

    def natural(self, p: Array) -> Box:
        return self.label - super().natural(p)

    def stored(self, natural: Box) -> Box:
        return self.label - natural

    def room(self, natural: Box) -> Box:
        return natural

    def moved(self, natural: Box, move: Box) -> Box:
        return natural + move

    def inside(self, natural: Box) -> Array:
        return np.asarray(natural.lo >= 0)

    def mean(self, natural: Box, c: Box) -> Box:
        """At a scale c."""
        return (self.one - c) * self.label + c * natural

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        return self.modulus_of_means(self.mean(natural, _like(c, self.one)), gap)


class Poisson(Means):
    """``e^z - y z``."""

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        super().__init__(problem, rows, words)
        if (rows.y < 0.0).any():
            raise Mismatch("the Poisson loss needs y >= 0")

    def ends(self) -> tuple[Array, Array]:
        return np.full(len(self.rows.y), -np.inf), self.rows.y

    def row_values(self, z: Box) -> Box:
        return self.arith.exp(z) - self.y * z

    def cost(self, natural: Box, c: Box) -> Box:
        mean = self.mean(natural, c)
        return self.entropy(mean) - mean


class Gamma(Means):
    """``y e^(-z) + z``: Poisson's of label 1 and margin log y - z, but that p has the other sign, ``m = 1 + p``."""

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        super().__init__(problem, rows, words)
        if (rows.y[rows.weight > 0.0] <= 0.0).any():
            raise Mismatch("the gamma loss needs y > 0")
        self.logs = self.arith.log(self.arith.numbers(np.where(rows.y > 0.0, rows.y, 1.0)))

    @property
    def label(self) -> Box:
        return self.one

    def ends(self) -> tuple[Array, Array]:
        n = len(self.rows.y)
        return np.full(n, -1.0), np.full(n, np.inf)

    def row_values(self, z: Box) -> Box:
        return self.y * self.arith.exp(-z) + z

    def natural(self, p: Array) -> Box:
        return super().natural(-p)

    def stored(self, natural: Box) -> Box:
        return natural - self.one

    def moved(self, natural: Box, move: Box) -> Box:
        return natural - move

    def cost(self, natural: Box, c: Box) -> Box:
        mean = self.mean(natural, c)
        return self.entropy(mean) - mean - mean * self.logs


class NegativeBinomial(Means):
    """``(y + size) log(1 + e^z/size) - y z``; m = (y + size) times a probability."""

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        super().__init__(problem, rows, words)
        if (rows.y < 0.0).any():
            raise Mismatch("the negative binomial loss needs y >= 0")
        size = self.numbers(words["size"])
        self.mass, self.log_size = self.y + size, self.arith.log(size)

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        """At most a quarter of the mass, that of a logistic row."""
        return self.modulus_of_means(self.mean(natural, _like(c, self.one)), gap, self.mass / self.numbers(4.0))

    def ends(self) -> tuple[Array, Array]:
        return np.full(len(self.rows.y), -self.words["size"]), self.rows.y

    def row_values(self, z: Box) -> Box:
        return self.mass * self.softplus(z - self.log_size) - self.y * z

    def room(self, natural: Box) -> Box:
        return natural * (self.mass - natural)

    def inside(self, natural: Box) -> Array:
        return (natural.lo >= 0) & (natural.hi <= self.mass.lo)

    def cost(self, natural: Box, c: Box) -> Box:
        mean = self.mean(natural, c)
        share = (mean / self.mass).at_most(self.one)
        return self.mass * self.binary(share) + mean * self.log_size


class Tweedie(RowLoss):
    """``y e^(-k z)/k + e^(l z)/l``, k = power - 1, l = 2 - power: p = a - b with ``a = y e^(-k z)``, ``b = e^(l z)``.

    ``f*(-p)`` is the least ``(a log(a/y) - a)/k + (b log b - b)/l`` over all a, b >= 0 with a - b = p, so that any
    such a and b will do. Where y = 0 there is no a.
    """

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        super().__init__(problem, rows, words)
        if (rows.y < 0.0).any():
            raise Mismatch("the Tweedie loss needs y >= 0")
        power = self.numbers(words["power"])
        self.k, self.l = power - self.one, self.one + self.one - power
        self.some = rows.y > 0.0
        self.logs = self.arith.log(self.arith.numbers(np.where(self.some, rows.y, 1.0)))

    def ends(self) -> tuple[Array, Array]:
        return np.full(len(self.rows.y), -np.inf), np.where(self.some, np.inf, 0.0)

    def row_values(self, z: Box) -> Box:
        exp, nothing = self.arith.exp, Box(0 * z.lo)
        return choose(self.some, self.y * exp(-(self.k * z)) / self.k, nothing) + exp(self.l * z) / self.l

    def room(self, natural: Box) -> Box:
        size = abs(natural)
        return choose(self.some, self.one + size, size)

    def inside(self, natural: Box) -> Array:
        return self.some | np.asarray(natural.hi <= 0, dtype=bool)

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        """``p - p* = (a - a*) - (b - b*)``, and both parts are means, of the weights s/k and s/l: by Cauchy and Schwarz
        the curvatures are added."""
        a, b = self.parts(_like(c, self.one) * natural)
        one, power = self.arith.one(1.0), self.arith.one(self.words["power"])
        shares = power - one, one + one - power
        curved = [share / self.modulus_of_means(m, share * gap) for share, m in zip(shares, (a, b), strict=True)]
        return one / (curved[0] + curved[1])

    def cost(self, natural: Box, c: Box) -> Box:
        a, b = self.parts(c * natural)
        found = (self.entropy(a) - a - a * self.logs) / self.k + (self.entropy(b) - b) / self.l
        return _where_known(np.asarray((a.lo >= 0) & (b.lo >= 0), dtype=bool), found)

    def parts(self, p: Box) -> tuple[Box, Box]:
        """About the best a and b with the difference p, exactly."""
        about, positive = self._smaller(_floats(p)), np.asarray(p.lo >= 0, dtype=bool)
        less = self.arith.numbers(np.where(self.some, about, 0.0))
        a = choose(self.some, choose(positive, less + p, less), Box(0 * p.lo))
        return a, choose(self.some & positive, less, choose(self.some, less - p, -p))

    def _smaller(self, p: Array) -> Array:
        """About the smaller one of the best a and b: they are as above, with some number for z."""
        y, power = np.where(self.some, self.rows.y, 1.0), self.words["power"]
        low, high = np.full(len(p), -1e4), np.full(len(p), 1e4)
        for _ in range(120):
            z = 0.5 * (low + high)
            over = y * np.exp(-(power - 1.0) * z) - np.exp((2.0 - power) * z) > p
            low, high = np.where(over, z, low), np.where(over, high, z)
        found = np.where(p >= 0.0, np.exp((2.0 - power) * high), y * np.exp(-(power - 1.0) * high))
        return np.where(np.isfinite(found), found, 0.0)


class Multinomial(Loss):
    """``log sum_q e^(z_q) - z_c``; natural: the probabilities ``[q = c] - p_q``."""

    joint = False

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        return self.arith.one(2.0)

    @cached_property
    def onehot(self) -> Array:
        classes = len(self.problem.outputs_of[self.rows.tasks[0]])
        return (self.rows.code[:, None] == np.arange(classes)).astype(np.float64)

    def nearest(self, p: Array) -> Array:
        return self.onehot - np.clip(self.onehot - p, 0.0, 1.0)

    def values(self, z: Box, k: int) -> Box:
        own = z[np.arange(len(self.rows.y)), self.rows.y.astype(np.int64)]
        top = Box(z.hi.max(axis=1)) if z.shape[0] else own
        powers = _sum([self.arith.exp(z[:, c] - top) for c in range(z.shape[1])])
        return self.rows.totals(self.rows.s * (self.arith.log(powers) + top - own))

    def natural(self, p: Array) -> Box:
        return self.arith.numbers(self.onehot) - self.arith.numbers(p)

    def vector(self, natural: Box) -> Box:
        p = self.arith.numbers(self.onehot) - natural
        return _columns([self.rows.s * p[:, c] for c in range(natural.shape[1])])

    def project(self, p: Array) -> tuple[Box, dict[int, str]]:
        """``pi_q (1 + Z c_q - sum_r pi_r Z c_r)``: probabilities whose sums over the rows are those of the labels."""
        arith, s, one, labels = self.arith, self.rows.s, self.one, self.onehot
        n, classes = p.shape
        pi = [self.natural(p)[:, c] for c in range(classes)]
        largest = np.argmax(labels - p, axis=1)
        for c in range(classes):  # the largest of a row is one minus the others
            rest = one - _sum([pi[r] for r in range(classes) if r != c])
            mine = largest == c  # one class a row, so the others are as stored
            pi[c] = choose(mine, rest, pi[c])
        columns = self.problem.free_columns(self.rows.tasks[0], self)
        if columns and n:
            places = [(q, k) for q in range(classes - 1) for k in range(len(columns))]
            matrix, right = [], []
            for q, k in places:
                row = []
                for r, j in places:
                    weight = pi[q] * (one - pi[q]) if q == r else -(pi[q] * pi[r])
                    row.append((s * weight * columns[k] * columns[j]).total())
                matrix.append(row)
                target = arith.numbers(labels[:, q]) - pi[q]
                right.append((s * target * columns[k]).total())
            c = arith.solve(matrix, right)
            if c is None:
                return _columns(pi), {0: _NO_PROJECTION}
            moves = [
                _sum([columns[k] * _like(b, one) for (r, k), b in zip(places, c, strict=True) if r == q])
                for q in range(classes - 1)
            ]
            mean = _sum([pi[q] * moves[q] for q in range(classes - 1)])
            pi = [pi[q] * (one + ((moves[q] - mean) if q < classes - 1 else -mean)) for q in range(classes)]
        for q in range(classes):
            if not np.all(pi[q].lo >= 0):
                first = int(np.flatnonzero(~np.asarray(pi[q].lo >= 0, dtype=bool))[0])
                return _columns(pi), {0: f"its vector leaves the loss's domain, first in row {first + 1}"}
        return _columns(pi), {}

    def gains(self, natural: Box, v: Box, c: Box) -> Box:
        c, labels = _like(c, self.one), self.arith.numbers(self.onehot)
        mixed = [(self.one - c) * labels[:, q] + c * natural[:, q] for q in range(natural.shape[1])]
        total, along = -self.rows.totals(self.rows.s * _sum([self.entropy(x) for x in mixed])), self.offsets(v, c)
        return total if along is None else total - along


class Cox(Loss):
    """Cox's partial likelihood of one task: ``sum_r w_r log S_r - sum e z``, e = s in rows with an event, 0 elsewhere.

    The events of one time and stratum, of weight d together, are one term r of weight d (Breslow), or as many terms as
    there are events, m, of weight d/m (Efron). ``S_r = sum_k a_rk s_k e^(z_k)`` over the rows at risk (entry < time of
    the events <= own time); a = 1, but in Efron's term l = 0, 1, ... for the events themselves ``1 - l/m``.

    Natural: ``mu = M/s`` with ``M = e - v``. If M is the sum of any parts ``P_rk >= 0`` of rows at risk that have the
    sums ``sum_k P_rk = w_r``, then ``F*(-v) <= sum P log(P/(w_r a_rk s_k))``, because log S_r is at least
    ``sum q (z - log(q/(a s)))`` for all probabilities q. The parts are ``a_rk lambda_r M_k/Lambda_k`` with
    ``Lambda_k = sum_r a_rk lambda_r``, and numbers lambda_r > 0 that `_increments` finds: whatever they are, the sums
    over r are M_k, and those over k, rho_r, are about w_r. What they are off is handed on, from each term to the next
    one, in a row that is at risk in both: ``E_r = sum_{r' <= r} (rho - w)`` of it, which is 0 after the last term.
    A part P that this changes by less than half of itself costs at most ``|E| (|log(P/(w a s))| + 1 + log 2)`` more.
    """

    joint = homogeneous = False
    laborious = True
    always_constant = True
    in_pieces = False  # whether sums over groups and rows at risk are added up without a subtraction: slower

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        super().__init__(problem, rows, words)
        t = rows.tasks[0]
        self.factor = self.arith.one(problem.cert["loss"]["weights"][t] if problem.loss == "mixed" else 1.0)
        time, event, entry, stratum = rows.y.T
        weights = problem.cert["task_weights"]
        there = (rows.weight > 0.0) & (weights is None or weights[t] > 0.0)
        self.event = np.where(there, event, 0.0)
        n = len(time)
        # a row is at risk in the groups `first` to `last` - 1 of events, and, if it is one itself, in its `own`
        self.first, self.last, self.own = np.zeros(n, int), np.zeros(n, int), np.full(n, -1)
        self.stratum, self.ends_of_strata = np.zeros(n, int), [0]
        for label in np.unique(stratum[there]):
            here = np.flatnonzero(there & (stratum == label))
            times, start = np.unique(time[here][event[here] == 1.0]), self.ends_of_strata[-1]
            if not len(times):
                continue
            self.stratum[here] = len(self.ends_of_strata) - 1
            self.first[here] = start + np.searchsorted(times, entry[here], side="right")
            self.last[here] = start + np.searchsorted(times, time[here], side="right")
            dead = here[event[here] == 1.0]
            self.last[dead] -= 1
            self.own[dead] = self.last[dead]
            self.ends_of_strata.append(start + len(times))
        self.n_groups = self.ends_of_strata[-1]
        self.alive = (self.first < self.last) | (self.own >= 0)
        starts = np.array(self.ends_of_strata)[self.stratum]
        self.nested = bool((self.first == starts)[self.alive].all())  # no row comes to be at risk after the first event
        self._arrange_terms()
        self._arrange_windows()
        self._find_blocks()

    def _arrange_terms(self) -> None:
        arith = self.arith
        order = np.argsort(self.own, kind="stable")
        order = order[self.own[order] >= 0]
        count = np.bincount(self.own[order], minlength=self.n_groups)
        self.dead = np.split(order, np.cumsum(count)[:-1]) if self.n_groups else []
        terms = np.ones(self.n_groups, int) if self.words["ties"] == "breslow" else count
        self.group = np.repeat(np.arange(self.n_groups), terms)
        number = np.arange(len(self.group)) - np.repeat(np.cumsum(terms) - terms, terms)
        whole = arith.numbers(terms[self.group])
        self.share = (whole - arith.numbers(number)) / whole
        self.deaths = self._of_deaths(self.rows.s)
        self.w = self.deaths[self.group] / whole

    def _arrange_windows(self) -> None:
        """Rows in the order in which they come to be at risk, from the last event back to the first, and go."""
        self.windows = []
        for start, stop in zip(self.ends_of_strata[:-1], self.ends_of_strata[1:], strict=True):
            mine = (self.first >= start) & (self.last <= stop) & (self.first < self.last)
            comes, goes = np.flatnonzero(mine), np.flatnonzero(mine & (self.first > start))
            when = np.concatenate([self.last[comes] - 1, self.first[goes] - 1])
            order = np.argsort(-when, kind="stable")
            members = np.concatenate([comes, goes])[order]
            signs = np.repeat([1, -1], [len(comes), len(goes)])[order]
            upto = np.searchsorted(-when[order], -np.arange(start, stop), side="right")
            self.windows.append((members, signs, upto))

    def _find_blocks(self) -> None:
        """Groups of events that are linked by rows at risk in both: M has the mass of the events in each block."""
        begins = np.zeros(self.n_groups, bool)
        begins[self.ends_of_strata[:-1]] = True
        until = np.where(self.own >= 0, self.own, self.last - 1)  # the last group in which a row is at risk
        furthest = np.full(self.n_groups, -1)
        np.maximum.at(furthest, self.first[self.alive], until[self.alive])
        begins[1:] |= np.maximum.accumulate(furthest)[:-1] < np.arange(1, self.n_groups)
        blocks = np.cumsum(begins) - 1
        self.block = np.full(len(self.first), -1)
        self.block[self.alive] = blocks[self.first[self.alive]]
        self.n_blocks, ends = int(begins.sum()), np.flatnonzero(np.diff(blocks[self.group], append=-1))
        self.blocks_of_terms = np.split(np.arange(len(self.group)), ends + 1)[:-1]
        self.until = until

    def live(self, weight: Array) -> Array:
        return self.alive

    def constants(self, n: int) -> Array:
        return (self.block[:, None] == np.arange(self.n_blocks)).astype(np.float64)

    def constant_moves(self, sh: Box, v: Box) -> tuple[Box, list[int]]:
        if not self.n_blocks:
            return Box(0 * v.lo), []
        mine = [np.flatnonzero(self.block == k) for k in range(self.n_blocks)]
        c, solved = self.arith.ratio(*(_stack([box[one].total() for one in mine]) for box in (v, sh)))
        return choose(self.alive, c[self.block], Box(0 * v.lo)), [] if solved.all() else [0]

    def ends(self) -> tuple[Array, Array]:
        return np.full(len(self.event), -np.inf), self.event

    def inner(self) -> Array:
        """That of equal hazards of all rows at risk."""
        if not self.n_groups:
            return super().inner()
        s, one = _floats(self.rows.s), self.arith.numbers(self.alive.astype(np.float64))
        hazards = _floats(self._hazards(self.arith.numbers(_floats(self.w / self._at_risk(one)))))
        return np.where(self.alive, self.event - hazards / np.where(s > 0.0, s, 1.0), 0.0)

    # -- sums over rows at risk, and over the terms at which a row is ----------------------------------------

    def _of_deaths(self, x: Box) -> Box:
        """By group, over its events."""
        return _stack([x[one].total() for one in self.dead]) if self.dead else self.arith.numbers(np.zeros(0))

    def _of_others(self, x: Box) -> Box:
        """By group, over the rows at risk that are no events of it."""
        if self.in_pieces and self._pieces:
            rows, nodes = (np.concatenate(part) for part in zip(*self._pieces, strict=True))
            order = np.argsort(nodes, kind="stable")
            parts = np.split(rows[order], np.searchsorted(nodes[order], np.arange(1, 2 * self._leaves)))
            whole = _stack([x[part].total() for part in parts])
            down, n = whole[1:2], 1
            while n < self._leaves:
                n *= 2
                down = down[np.arange(n) // 2] + whole[n : 2 * n]
            return down[: self.n_groups]
        ends: list[list[Any]] = [[], []]
        for members, signs, upto in self.windows:
            for found, end in zip(ends, (x.lo, x.hi), strict=True):
                sums = self.arith.prefix(signs * end[members])
                found.append((sums.lo if found is ends[0] else sums.hi)[upto])
        return Box(*map(np.concatenate, ends))

    def _at_risk(self, x: Box) -> Box:
        """``S_r`` of numbers x in the place of s e^z, by term."""
        return self._of_others(x)[self.group] + self.share * self._of_deaths(x)[self.group]

    def _hazards(self, increments: Box) -> Box:
        """``Lambda_k`` of numbers lambda_r, by row."""
        by_group, own = self._by_group(increments), self._by_group(self.share * increments)[np.maximum(self.own, 0)]
        if self.in_pieces:
            nothing = Box(0 * by_group.lo[:1])
            levels = [_joined([by_group, *[nothing] * (self._leaves - self.n_groups)])]
            while len(levels[0].lo) > 1:
                levels.insert(0, levels[0][::2] + levels[0][1::2])
            tree, found = _joined([nothing, *levels]), Box(0 * own.lo)
            for rows, nodes in self._pieces:
                there = np.zeros(len(self.first), dtype=np.int64)
                there[rows] = nodes
                found = found + tree[there]
            return choose(self.own >= 0, found + own, found)
        sums = _joined([self.arith.prefix(by_group.lo[a:b]) for a, b in zip(self.ends_of_strata[:-1],
                        self.ends_of_strata[1:], strict=True)])  # fmt: skip
        found = sums[self.last + self.stratum] - sums[self.first + self.stratum]
        return choose(self.own >= 0, found + own, found)

    @cached_property
    def _leaves(self) -> int:
        """Of a tree over the groups of events: a power of two."""
        return 1 << max(self.n_groups - 1, 0).bit_length()

    @cached_property
    def _pieces(self) -> list[tuple[Array, Array]]:
        """The groups at which rows are at risk, those of their own event apart, as nodes of the tree (node 1 the root,
        2i and 2i + 1 below i): sums over them need no subtraction. Of each pair of arrays, rows and one node each."""
        low, high, found = self.first + self._leaves, np.maximum(self.first, self.last) + self._leaves, []
        while (low < high).any():
            left, right = (low < high) & (low % 2 == 1), (low < high) & (high % 2 == 1)
            found += [(np.flatnonzero(left), low[left]), (np.flatnonzero(right), high[right] - 1)]
            low, high = (low + left) // 2, (high - right) // 2
        return found

    def _by_group(self, x: Box) -> Box:
        return _stack([x[a:b].total() for a, b in zip(*self._spans(), strict=True)])

    def _spans(self) -> tuple[Array, Array]:
        edges = np.searchsorted(self.group, np.arange(self.n_groups + 1))
        return edges[:-1], edges[1:]

    # -- primal ----------------------------------------------------------------------------------------------

    def values(self, z: Box, k: int) -> Box:
        """With the largest z of a stratum taken out of its logarithms: the terms have the weight of the events."""
        if not self.n_groups:
            return _stack([self.arith.one(0.0)])
        z = z[:, 0]
        about, tops = _floats(z), np.zeros(len(self.first))
        for label in range(len(self.windows)):
            mine = self.alive & (self.stratum == label)
            tops[mine] = about[mine].max()
        z = choose(self.alive, z - self.arith.numbers(tops), Box(0 * z.lo))
        risk = self._at_risk(choose(self.alive, self.rows.s * self.arith.exp(z), Box(0 * z.lo)))
        clear = np.asarray((risk.lo > 0) & ((risk.hi - risk.lo) * (1 << 30) <= risk.lo), dtype=bool)
        logs = self.arith.log(choose(clear, risk, self.w))
        for r in np.flatnonzero(~clear).tolist():  # what is small beside rows that are not at risk
            logs.lo[r], logs.hi[r] = self._log_at_risk(r, z)
        total = (self.w * logs).total()
        return _stack([self.factor * (total - (self.rows.s * self.arith.numbers(self.event) * z).total())])

    def _log_at_risk(self, r: int, z: Box) -> tuple[Any, Any]:
        """``log S_r``, from the rows at risk alone and beside the largest of them."""
        group, dead = self.group[r], self.dead[self.group[r]]
        others = np.flatnonzero((self.first <= group) & (group < self.last))
        rows = np.concatenate([others, dead])
        top = self.arith.one(_floats(z)[rows].max())
        sizes = self.rows.s[rows] * self.arith.exp(z[rows] - _like(top, z[rows]))
        share = choose(np.arange(len(rows)) < len(others), self.one[rows], _like(self.share[r], sizes))
        found = self.arith.log(_stack([(share * sizes).total()]))[0] + top
        return found.lo, found.hi

    # -- dual ------------------------------------------------------------------------------------------------

    def natural(self, p: Array) -> Box:
        return self.arith.numbers(self.event) - self.arith.numbers(p.reshape(-1))

    def vector(self, natural: Box) -> Box:
        return _columns([_like(self.factor, natural) * self._events_less(natural)])

    def _events_less(self, natural: Box) -> Box:
        """``e - M``."""
        return self.rows.s * (self.arith.numbers(self.event) - natural)

    def project(self, p: Array) -> tuple[Box, dict[int, str]]:
        """``mu (1 + Z c)``: Z has the constant of each block."""
        natural = self.natural(p)
        if not len(p):
            return natural, {}
        move, unsolved = self.moves(self.rows.s * natural, self._events_less(natural))
        if unsolved:
            return natural, {0: _NO_PROJECTION}
        natural = natural + natural * move
        outside = np.flatnonzero(~np.asarray(natural.lo >= 0, dtype=bool))
        if len(outside):
            return natural, {0: f"its vector leaves the loss's domain, first in row {outside[0] + 1}"}
        return natural, {}

    def mean(self, natural: Box, c: Box) -> Box:
        """``mu`` at a scale c."""
        scale = _like(c, self.one)
        return (self.one - scale) * self.arith.numbers(self.event) + scale * natural

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        """Of the events that are expected of each row: by the log sum inequality the loss, a sum of divergences between
        the probabilities of terms, is at least that between their sums over terms. """
        return self.modulus_of_means(self.mean(natural, c), gap / self.factor) / self.factor

    def gains(self, natural: Box, v: Box, c: Box) -> Box:
        if not self.n_groups:
            return _stack([self.arith.one(0.0)])
        cost = self._cost_at(natural, v, c)
        if cost is None:
            cost = _where_known(np.zeros(1, bool), _stack([self.arith.one(0.0)]))[0]
        total, along = _stack([-(self.factor * cost)]), self.offsets(v, _like(c, self.one))
        return total if along is None else total - along

    def _cost_at(self, natural: Box, v: Box, c: Box) -> Box | None:
        if c.hi <= 0 or (np.all(v.lo == 0) and np.all(v.hi == 0)):  # v = 0: the parts are those of the events
            logs = self.arith.log(self.deaths[self.group]) + self.arith.log(self.share)
            return -(self.w * logs).total()
        one = self.arith.one(1.0)
        found = self._cost(self.mean(natural, c))
        if found is None and c.lo < 1:  # F* is convex, and this is a point between two others
            ends = [self._cost_at(natural, v, end) for end in (one, self.arith.one(0.0))]
            found = None if ends[0] is None or ends[1] is None else c * ends[0] + (one - c) * ends[1]
        return found

    def _cost(self, mu: Box) -> Box | None:
        """None where no parts are found that are near enough to what they should be."""
        best: Box | None = None
        enough = self._enough()
        for increments in self._increments(_floats(self.rows.s * mu)):
            for pieces in (False,) if self.nested or self.arith.exact else (False, True):
                self.in_pieces = pieces
                found = self._cost_of(mu, self.arith.numbers(increments))
                self.in_pieces = False
                if found is None:
                    continue
                cost, handing = found
                if cost.hi < (math.inf if best is None else best.hi):
                    best = cost
                if (cost.hi - cost.lo) + handing.hi <= enough:  # little would be won
                    return best
        return best

    def spare(self) -> Any:
        return self.factor.hi * self._enough()

    def _enough(self) -> Any:
        """What a cost may be too large by: a few roundings of all weight for each term."""
        return self.deaths.total().hi * len(self.group) / (1 << 46)

    def _cost_of(self, mu: Box, increments: Box) -> tuple[Box, Box] | None:
        """With the parts that some increments give; and what of it is the cost of handing on."""
        arith, s = self.arith, self.rows.s
        mass, some = s * mu, np.asarray(mu.hi > 0, dtype=bool)
        if not np.all(increments.lo > 0):
            return None
        hazards = choose(some, self._hazards(increments), self.one)
        if not np.all(hazards.lo > 0):
            return None
        parts = arith.narrowed(mass / hazards)
        given = increments * self._at_risk(parts)
        handing = self._handing_on(increments, parts, given - self.w)
        if handing is None:
            return None
        cost = (s * self.entropy(mu)).total() - (mass * arith.log(hazards)).total()
        return cost + (given * (arith.log(increments) - arith.log(self.w))).total() + handing, handing

    def _handing_on(self, increments: Box, parts: Box, over: Box) -> Box | None:
        """What it costs to hand on, from term to term, what the parts of each are `over` its weight: along the order of
        the events, or where these parts are too small along a tree of the largest ones."""
        for way in (self._by_order, self._by_tree):
            terms, rows, handed = way(increments, parts, over)
            some = np.asarray(handed.hi != 0, dtype=bool)
            cost = self._cost_of_handing(terms[some], rows[some], handed[some], increments, parts)
            if cost is not None:
                return cost
        return None

    def _cost_of_handing(self, terms: Array, rows: Array, handed: Box, increments: Box, parts: Box) -> Box | None:
        """Of `handed` from one of two terms to the other in a row; None where the parts there are not twice as much as
        is taken from them or added to them in all."""
        arith, cost = self.arith, self.arith.one(0.0)
        if not len(rows):
            return cost
        if (rows < 0).any():
            return None
        ends, rows = terms.T.reshape(-1), np.tile(rows, 2)
        handed = _joined([handed, handed])
        share = choose(self.own[rows] == self.group[ends], self.share[ends], self.one[rows])
        ratio = increments[ends] * parts[rows]
        _, place = np.unique(ends * len(self.first) + rows, return_inverse=True)
        moved = _stack([handed[np.flatnonzero(place == k)].total() for k in range(place.max() + 1)])[place]
        if not np.asarray((share * ratio).lo >= (moved + moved).hi, dtype=bool).all():
            return None
        logs = arith.log(ratio) - arith.log(self.w[ends] * self.rows.s[rows])
        return cost + (handed * (abs(logs) + arith.numbers(np.full(len(rows), 1.75)))).total()

    def _by_order(self, increments: Box, parts: Box, over: Box) -> tuple[Array, Array, Box]:
        """Pairs of terms, a row at risk in both, and what is handed on there at most: from each term to the next."""
        arith = self.arith
        handed = arith.numbers(np.zeros(len(self.group))).lo
        for terms in self.blocks_of_terms:
            lo, hi = arith.prefix(over.lo[terms]).lo, arith.prefix(over.hi[terms]).hi
            handed[terms[:-1]] = np.maximum(abs(lo), abs(hi))[1:-1]  # after the last one nothing is left
        here = np.arange(len(self.group))
        return np.stack([here, here + 1], axis=1), self._links(_floats(parts)), Box(handed)

    def _by_tree(self, increments: Box, parts: Box, over: Box) -> tuple[Array, Array, Box]:
        """The same along a tree of the terms of each block in which the parts that are changed are as large as they can
        be: from every term towards the root, what it and those beyond it are over."""
        pairs, rows, handed = list[tuple[int, int]](), list[int](), list[Box]()
        size = len(self.group) * len(self.first)
        known = _floats(increments)[:, None] * _floats(parts)
        for terms in self.blocks_of_terms if size <= _ENTRIES and size * len(self.group) <= _MOST_PAIRS else ():
            sizes = known[terms] * self._at_risk_in(terms)
            beyond, left = {int(i): [int(i)] for i in terms}, np.ones(len(terms), dtype=bool)
            best, row, to, order = np.full(len(terms), -1.0), np.full(len(terms), -1), np.zeros(len(terms), int), []
            newest = int(np.argmax(_floats(self.w)[terms]))
            for _ in range(len(terms) - 1):
                left[newest] = False
                common = np.minimum(sizes[newest], sizes)
                where = common.argmax(axis=1)
                most = common[np.arange(len(terms)), where]
                better = left & (most > best)
                best[better], row[better], to[better] = most[better], where[better], newest
                newest = int(np.argmax(np.where(left, best, -2.0)))
                order.append(newest)
            for i in reversed(order):
                here, there = int(terms[i]), int(terms[to[i]])
                pairs.append((here, there))
                rows.append(int(row[i]))
                handed.append(abs(over[np.array(beyond[here])].total()))
                beyond[there] += beyond[here]
        if not pairs:
            return np.zeros((1, 2), int), np.full(1, -1), Box(self.arith.one(1.0).lo[None])
        return np.array(pairs), np.array(rows), Box(_stack(handed).hi)

    def _at_risk_in(self, terms: Array) -> Array:
        """What the rows at risk count there: ``a_rk``."""
        group = self.group[terms][:, None]
        inside = (self.first <= group) & (group < self.last)
        found: Array = inside + _floats(self.share)[terms][:, None] * (self.own == group)
        return found

    def _links(self, parts: Array) -> Array:
        """For each term but the last of a block: of the rows at risk there and in the next, that of the largest part;
        -1 where none has any."""
        found, heap, come = np.full(len(self.group), -1), list[tuple[float, int]](), 0
        order = np.argsort(self.first, kind="stable")
        order = order[self.alive[order] & (parts[order] > 0.0)]
        for r, (here, next_one) in enumerate(zip(self.group[:-1].tolist(), self.group[1:].tolist(), strict=True)):
            while come < len(order) and self.first[order[come]] <= here:
                heapq.heappush(heap, (-float(parts[order[come]]), int(order[come])))
                come += 1
            while heap and self.until[heap[0][1]] < next_one:
                heapq.heappop(heap)
            if heap:
                found[r] = heap[0][1]
        return found

    def _increments(self, mass: Array) -> Iterator[Array]:
        """About the lambda for which all terms give out their weight, found in several ways, the quick ones first. How
        they are found is no part of the proof."""
        if self.nested:
            yield _centred_exp(self._one_by_one(mass), self.blocks_of_terms)
        found = self._by_sweeps(mass)
        yield found
        if len(self.group) ** 2 * len(mass) <= _MOST_PAIRS:
            yield self._by_elimination(mass, found)

    def _one_by_one(self, mass: Array) -> Array:
        """Logarithms of the increments of nested risk sets, from the first group of a stratum to its last one.

        Of the mass of the rows at risk in a group, events before it have b: what is more than the weight of the events
        from here on. With L the sum of the increments before it, and S that of M/Lambda at risk, ``b = L S``, and an
        event of weight d has ``lambda S = d``. Tied events (Efron), which have A of the mass, have a share rho of S,
        ``rho b + w sum (1 - f) rho/(1 - f rho) = A``, and ``lambda = w/(S (1 - f rho))``. """
        share, found = np.log(_floats(self.share)), np.log(_floats(self.w))
        edges, dead = np.stack(self._spans(), axis=1).tolist(), [mass[one].sum() for one in self.dead]
        deaths = _floats(self.deaths)
        for start, stop in zip(self.ends_of_strata[:-1], self.ends_of_strata[1:], strict=True):
            mine = np.flatnonzero(self.alive & (self.until >= start) & (self.until < stop))
            mine = mine[np.argsort(-self.until[mine], kind="stable")]
            count = np.searchsorted(-self.until[mine], -np.arange(start, stop), side="right")  # at risk, by group
            sums, lost = (x[count] for x in _running(mass[mine])[:2])
            events, more = (x[:0:-1] for x in _running(deaths[start:stop][::-1])[:2])
            before, level = (sums - events) + (lost - more), -np.inf  # b, and log L
            leave = np.bincount(self.until[mine] - start, np.where(self.own[mine] >= 0, 0.0, mass[mine]), stop - start)
            left = np.append(before[1:], 0.0) + leave  # mass that events up to here have, of those who live on
            for g, b, others, n in zip(range(start, stop), before.tolist(), left.tolist(), count.tolist(), strict=True):
                terms, d = slice(*edges[g]), deaths[g]
                b = max(b, UNIT * d) if g > start else 0.0
                if terms.stop - terms.start > 1:
                    odds = np.inf
                    if n > len(self.dead[g]):
                        low = UNIT * (b + d)
                        w = d / (terms.stop - terms.start)
                        odds = _log_odds(b, w, share[terms], max(dead[g], low), max(others, low))
                    found[terms] -= np.logaddexp(-np.logaddexp(0.0, odds), share[terms] - np.logaddexp(0.0, -odds))
                if g > start:
                    found[terms] += level - math.log(b)
                level = np.logaddexp(level, np.logaddexp.reduce(found[terms]))
        return found

    def _by_elimination(self, mass: Array, start: Array) -> Array:
        """Increments by Newton's method, whose equations, ``sum_r' C_rr' (x_r - x_r') = w_r - given_r``, are solved
        without a subtraction (Grassmann, Taksar and Heyman 1985): groups of events that only a small part of the mass
        links are no harder than others. For as many terms as there is memory for all pairs of them."""
        w = _floats(self.w)
        with np.errstate(all="ignore"):
            found = np.log(start)
            for mine in self.blocks_of_terms:
                at_risk = self._at_risk_in(mine)
                rows = np.flatnonzero((at_risk.sum(axis=0) > 0.0) & (mass > 0.0))
                if np.isfinite(found[mine]).all() and len(rows):
                    found[mine] = _newton(found[mine], w[mine], mass[rows], np.log(at_risk[:, rows]))
        return _centred_exp(found, self.blocks_of_terms)

    def _by_sweeps(self, mass: Array) -> Array:
        """Increments of any risk sets: each in turn is given what it should have (the method of Sinkhorn), or all
        together (Newton's, by conjugate gradients)."""
        w, share, group, own = _floats(self.w), _floats(self.share), self.group, np.maximum(self.own, 0)
        edges, dead = list(zip(self.ends_of_strata[:-1], self.ends_of_strata[1:], strict=True)), self.own >= 0

        def hazards(x: Array) -> Array:
            by_group = np.bincount(group, x, self.n_groups)
            sums = np.concatenate([np.cumsum(np.append(0.0, by_group[a:b])) for a, b in edges])
            found = sums[self.last + self.stratum] - sums[self.first + self.stratum]
            return np.asarray(found + dead * np.bincount(group, share * x, self.n_groups)[own])

        def at_risk(x: Array) -> Array:
            sums = [np.cumsum(np.append(0.0, signs * x[members]))[upto] for members, signs, upto in self.windows]
            deaths = np.bincount(own[dead], x[dead], self.n_groups)
            return np.asarray(np.concatenate(sums)[group] + share * deaths[group])

        def quotient(x: Array, y: Array) -> Array:
            return np.divide(x, y, out=np.zeros_like(x), where=mass > 0.0)

        def newton(found: Array, total: Array, parts: Array, given: Array) -> Array:
            """The change of log lambda: ``(diag(given) - P diag(1/M) P') x = w - given``."""
            x, rest = np.zeros_like(w), w - given
            way, size = rest / w, float(rest @ (rest / w))
            for _ in range(60):
                if not size > 1e-40:
                    break
                image = given * way - found * at_risk(parts * quotient(hazards(found * way), total))
                bend = float(way @ image)
                if not bend > 0.0:
                    break
                step = size / bend
                x, rest = x + step * way, rest - step * image
                size, before = float(rest @ (rest / w)), size
                if not size < 1e-28 * float((w - given) @ ((w - given) / w)):
                    way = rest / w + size / before * way
            return x

        found, best, least, plain = w / at_risk(self.alive.astype(np.float64)), w, np.inf, 0
        before, polished = np.inf, 0  # what was left some steps ago
        for number in range(400):
            if number % 40 == 39:
                if least > 0.5 * before:
                    break
                before = least
            total = hazards(found)
            parts = quotient(mass, total)
            given = found * at_risk(parts)
            off = float(np.abs(given / w - 1.0).max())
            if off < 0.5 * least or plain > 0:
                plain = max(plain - 1, 0)
            elif polished == 3:
                break
            else:  # Newton's method has not helped; near the end rounding may be why
                found, plain, polished = best, 10, polished + (least < 1e-12)
                continue
            if off < least:
                best, least = found, off
            if off <= 8.0 * UNIT or not np.isfinite(off):
                break
            change = np.log(w / given) if plain or off > 1.0 else newton(found, total, parts, given)
            found = found * np.exp(np.clip(change, -2.0, 2.0))
        return np.where(np.isfinite(best) & (best > 0.0), best, 0.0)


def _running(values: Array) -> tuple[Array, Array, list[float]]:
    """Sums of the first 0, 1, 2, ... of some numbers, about what these have lost by rounding, and exactly what each
    addition has (Knuth's TwoSum)."""
    n = len(values)
    sums = np.fromiter(accumulate(values.tolist(), initial=0.0), np.float64, n + 1)
    part = sums[1:] - sums[:-1]
    lost = ((sums[:-1] - (sums[1:] - part)) + (values - part)).tolist()
    return sums, np.fromiter(accumulate(lost, initial=0.0), np.float64, n + 1), lost


def _centred_exp(logs: Array, blocks: Sequence[Array]) -> Array:
    """Increments from their logarithms: a factor of each block is free."""
    found = logs.copy()
    for mine in blocks:
        found[mine] -= 0.5 * (found[mine].max() + found[mine].min())
    return np.where(np.abs(found) < 700.0, np.exp(np.clip(found, -700.0, 700.0)), 0.0)


def _log_odds(b: float, w: float, share: Array, died: float, left: float) -> float:
    """t with ``b s(t) + w sum s(t + share) = died``, the rest being `left`, s the logistic function: by Newton's method
    for the logarithm of the smaller side, between bounds."""
    sign, goal = (1.0, math.log(died)) if died <= left else (-1.0, math.log(left))
    weights, moved = np.log(np.append(np.full(len(share), w), max(b, 2.0**-1000))), np.append(share, 0.0)
    low, high, t = -1500.0, 1500.0, 0.0
    for _ in range(200):
        at = sign * (t + moved)
        sizes = weights - np.logaddexp(0.0, -at)
        total = float(np.logaddexp.reduce(sizes))
        low, high = (t, high) if (total < goal) == (sign > 0.0) else (low, t)
        steep = sign * float(np.exp(sizes - total) @ np.exp(-np.logaddexp(0.0, at)))
        step = (goal - total) / steep if steep else np.inf
        t, before = (t + step if low < t + step < high else 0.5 * (low + high)), t
        if abs(t - before) <= 4.0 * UNIT * max(abs(t), 1.0):
            break
    return t


def _newton(x: Array, w: Array, mass: Array, factors: Array) -> Array:
    """The largest ``w x - sum M log sum_r e^(x_r + factors_r)``, as good as rounding allows."""
    best, least, worse, value, step = x, np.inf, 0, -np.inf, np.zeros_like(x)
    for _ in range(300):
        logits = x[:, None] + factors
        top = logits.max(axis=0)
        parts = np.exp(logits - top)
        whole = parts.sum(axis=0)
        parts *= mass / whole
        now = float(w @ x - mass @ (top + np.log(whole)))
        if now < value - 1e-9 * (abs(value) + 1.0) and np.abs(step).max() > 1e-6:  # too far
            step = 0.5 * step
            x = x - step
            continue
        value, rest = now, w - parts.sum(axis=1)
        step = _without_subtraction((parts / mass) @ parts.T, rest)
        left = float(rest @ step)
        worse = 0 if left < 0.5 * least else worse + 1
        if left < least:
            best, least = x, left
        if not left > 0.0 or worse == 8:
            break
        apart = np.clip(np.diff(step), -3.0, 3.0)  # from term to term
        step = np.append(0.0, np.cumsum(apart))
        x = x + step
    return best


def _without_subtraction(links: Array, rest: Array) -> Array:
    """x with ``sum_j links_ij (x_i - x_j) = rest_i``, up to a constant."""
    links, x, n = links.copy(), rest.copy(), len(rest)
    sums = np.ones(n)
    for k in range(n - 1):
        row = links[k, k + 1 :]
        sums[k] = row.sum()
        if sums[k] > 0.0:
            links[k + 1 :, k + 1 :] += np.outer(row / sums[k], row)
            x[k + 1 :] += x[k] * (row / sums[k])
    x[-1] = 0.0
    for k in range(n - 2, -1, -1):
        x[k] = (x[k] + links[k, k + 1 :] @ x[k + 1 :]) / sums[k] if sums[k] > 0.0 else 0.0
    return x


class Ordinal(Loss):
    """Proportional odds of one task, thresholds t_1 < t_2 < ... between its ordered classes:

        f = log(1 + e^(z - t_above)) + log(1 + e^(t_below - z)) - log(1 - e^-(t_above - t_below))

    (of the first class and the last one a single term each). With p = b - a, where a, b in [0, 1] are the slopes of the
    two logarithms, and for every class in the middle, of weight n,

        N = -(sum of s p of the classes below) - (sum of s b of its own)  >=  0,       sum of all s p = 0,

    F*(-v) is at most the sum of ``s (binary(a) + binary(b))`` and, of each such class, ``-(N log(1 + n/N) + n log(1 +
    N/n))``: for any such a and b, of which `_smaller` finds about the best.
    """

    joint = False
    always_constant = True

    def __init__(self, problem: Problem, rows: Rows, words: dict[str, Any]) -> None:
        super().__init__(problem, rows, words)
        t = rows.tasks[0]
        self.classes, self.code = len(problem.cert.classes(t)), rows.code.astype(np.int64)
        self.first_threshold = sum(map(problem.cert.n_thresholds, range(t)))
        self.up, self.down = self.code < self.classes - 1, self.code > 0
        self.middle = [np.flatnonzero(self.code == k) for k in range(1, self.classes - 1)]

    def modulus(self, natural: Box, c: Box, gap: Box) -> Box:
        return self.arith.one(2.0 if self.middle else 4.0)

    def ends(self) -> tuple[Array, Array]:
        return np.where(self.up, -1.0, 0.0), np.where(self.down, 1.0, 0.0)

    def values(self, z: Box, k: int) -> Box:
        arith, s, z = self.arith, self.rows.s, z[:, 0]
        if self.classes == 1:
            return _stack([arith.one(0.0)])
        stop = self.first_threshold + self.classes - 1
        places = arith.numbers(self.problem.cert.arrays["thresholds"][k][self.first_threshold : stop])
        nothing = Box(0 * z.lo)
        above = self.softplus(z - places[np.minimum(self.code, self.classes - 2)])
        below = self.softplus(places[np.maximum(self.code - 1, 0)] - z)
        total = (s * (choose(self.up, above, nothing) + choose(self.down, below, nothing))).total()
        if self.middle:
            weights = _stack([s[mine].total() for mine in self.middle])
            shares = arith.numbers(np.ones(len(self.middle))) - arith.exp(places[:-1] - places[1:])
            if not np.all(shares.lo > 0):
                raise Undecided("thresholds that are too close to each other")
            total = total - (weights * arith.log(shares)).total()
        return _stack([total])

    def natural(self, p: Array) -> Box:
        return self.arith.numbers(p.reshape(-1))

    def vector(self, natural: Box) -> Box:
        return _columns([self.rows.s * natural])

    def project(self, p: Array) -> tuple[Box, dict[int, str]]:
        natural = self.natural(p)
        if not len(p):
            return natural, {}
        size = abs(natural)
        h = choose(self.up & self.down, self.one - natural.square(), size * (self.one - size))
        move, unsolved = self.moves(self.rows.s * h, self.rows.s * natural)
        if unsolved:
            return natural, {0: _NO_PROJECTION}
        natural = natural - move * h
        low, high = map(self.arith.numbers, self.ends())
        outside = np.flatnonzero(~np.asarray((natural.lo >= low.lo) & (natural.hi <= high.lo), dtype=bool))
        if len(outside):
            return natural, {0: f"its vector leaves the loss's domain, first in row {outside[0] + 1}"}
        if not all(np.all(one.lo >= 0) for one in self._left(natural, natural.positive())):
            return natural, {0: "its vector has no thresholds"}
        return natural, {}

    def inner(self) -> Array:
        """That of the thresholds without features: the share of the classes below, less that of those above."""
        shares: Array = np.bincount(self.code, _floats(self.rows.s), self.classes)
        shares = shares / max(float(shares.sum()), 2.0**-1000)
        below = np.append(0.0, np.cumsum(shares))
        return (below[:-1] + below[1:] - 1.0)[self.code]

    def _left(self, p: Box, b: Box) -> list[Box]:
        """N of the classes in the middle."""
        v, found, before = self.rows.s * p, list[Box](), self.arith.one(0.0)
        for k, mine in enumerate(self.middle):
            before = before - v[self.code == k].total()
            found.append(before - (self.rows.s[mine] * b[mine]).total())
        return found

    def gains(self, natural: Box, v: Box, c: Box) -> Box:
        arith, s, c = self.arith, self.rows.s, _like(c, self.one)
        p = c * natural
        positive = np.asarray(p.lo >= 0, dtype=bool)
        less = arith.numbers(self._smaller(_floats(p), _floats(s)))
        a, b = choose(positive, less, less - p), choose(positive, less + p, less)
        lefts = self._left(p, b)
        if not all(left.lo >= 0 for left in lefts):  # by rounding: with nothing more than p needs, N is known as it is
            a, b = (-p).positive(), p.positive()
            lefts = [c[0] * left for left in self._left(natural, natural.positive())]
        known = np.asarray((a.lo >= 0) & (b.lo >= 0) & (a.hi <= 1) & (b.hi <= 1), dtype=bool)
        total = (s * _where_known(known, self.binary(a) + self.binary(b))).total()
        for left, mine in zip(lefts, self.middle, strict=True):
            if not left.lo >= 0:
                return -_where_known(np.zeros(1, bool), _stack([total]))
            total = total - self._merged(left, s[mine].total())
        total, along = _stack([-total]), self.offsets(v, c)
        return total if along is None else total - along

    def _merged(self, a: Box, b: Box) -> Box:
        """``a log(1 + b/a) + b log(1 + a/b)`` from below: it rises with both."""
        if not (a.lo > 0 and b.lo > 0):
            return self.arith.one(0.0)
        a, b = Box(a.lo), Box(b.lo)
        return Box((a * self.arith.log1p(b / a) + b * self.arith.log1p(a / b)).lo)

    def _smaller(self, p: Array, s: Array) -> Array:
        """About the smaller one of the best a and b: ``a b e^gap = (1 - a)(1 - b)`` with the gap of the class's
        thresholds, for which ``e^-gap = N/(n + N)``. Of the classes at the ends the smaller one is 0."""
        found, before, size = np.zeros(len(p)), 0.0, np.minimum(np.abs(p), 1.0)
        for k, mine in enumerate(self.middle):
            before -= float((s * p)[self.code == k].sum())
            own, n, low, high = size[mine], float(s[mine].sum()), -50.0, 6.5
            rest = before - float((s * np.maximum(p, 0.0))[mine].sum())
            if not rest > 0.0:
                continue
            for _ in range(100):  # by the logarithm of the gap
                middle = 0.5 * (low + high)
                more = np.expm1(np.exp(middle))
                half = 0.5 * more * own + 1.0
                less = (1.0 - own) / (half + np.sqrt(half * half + more * (1.0 - own)))
                left = rest - float(s[mine] @ less)
                wide = left * more > n  # N > n e^-gap/(1 - e^-gap)
                low, high = (low, middle) if wide else (middle, high)
            found[mine] = less if left >= 0.0 else 0.0
        return found


LOSSES: dict[str, type[Loss]] = {
    "clipped": Clipped,
    "logistic": Logistic,
    "poisson": Poisson,
    "multinomial": Multinomial,
    "square-root": SquareRoot,
    "gamma": Gamma,
    "tweedie": Tweedie,
    "negative_binomial": NegativeBinomial,
    "log_cosh": LogCosh,
    "expectile": Expectile,
    "cox": Cox,
    "ordinal": Ordinal,
}


def _where_known(known: Array, cost: Box) -> Box:
    """A cost from above; infinite where its formula does not hold."""
    if known.all():
        return cost
    if not _is_float(cost.hi):
        raise Undecided("a dual point that may leave the domain")
    return Box(cost.lo, np.where(known, cost.hi, np.inf))


def _half(arith: Any, number: float) -> Box:
    """Exact but for the smallest numbers."""
    return arith.one(0.5 * number) if number > 2.0**-1000 else arith.one(number) * arith.one(0.5)


def _joined(boxes: Sequence[Box]) -> Box:
    """One after the other."""
    if len(boxes) == 1:
        return boxes[0]
    lo = np.concatenate([b.lo for b in boxes])
    return Box(lo, lo if all(b.point for b in boxes) else np.concatenate([b.hi for b in boxes]))


def _stack(numbers: Sequence[Box]) -> Box:
    """Single numbers as one box."""
    kind = np.float64 if _is_float(numbers[0].lo) else object
    lo = np.array([b.lo for b in numbers], dtype=kind)
    return Box(lo, lo if all(b.point for b in numbers) else np.array([b.hi for b in numbers], dtype=kind))


def _spread(value: Any, like: Box) -> Any:
    """One number for every row."""
    if _is_float(value):
        return np.full(like.shape, value)
    found = np.empty(like.shape, dtype=object)
    found[...] = value
    return found


def _columns(boxes: Sequence[Box]) -> Box:
    lo = np.stack([b.lo for b in boxes], axis=1)
    return Box(lo, lo if all(b.point for b in boxes) else np.stack([b.hi for b in boxes], axis=1))


# --- what the data say of every feature ---------------------------------------------------------------------


@dataclass
class Reading:
    """What a pass over the data says of one value.

    `products` M of some `features` (rising; all of them, or those near the edge of the dual ball) with the dual point,
    divided by the standard deviations; these deviations, `scales` (features x tasks); where zeros are claimed, bounds
    of the largest `norms` of columns. `levels` of penalised features: at most 1 proves that one is in the dual ball at
    every scale c <= 1, and if `linear` c times the level is that at c; 0 where the products are known. None if all are.
    `lost`: about the part of levels that is rounding.
    """

    features: Array
    products: Box
    scales: Box | None
    norms: Array | None
    levels: Any = None
    linear: bool = False
    lost: float = 0.0


def read_features(
    problem: Problem, points: list[Dual], norms: bool, progress: Callable[[str], None]
) -> list[Reading]:
    """One pass over the data, in blocks of columns: products of all features as boxes."""
    arith, cert, d = problem.arith, problem.cert, problem.cert.n_features
    n_tasks, n_outputs = len(problem.tasks), len(cert.outputs)
    kind = object if arith.exact else np.float64
    low = np.empty((len(points), n_outputs, d), dtype=kind)
    high = low if arith.exact else np.empty_like(low)
    known = problem.spread
    spread = known
    if spread is None:
        spread = Box(np.empty((n_tasks, d), dtype=kind).T, np.empty((n_tasks, d), dtype=kind).T)
    wanted = (norms or cert["standardize"]) and known is None
    rows = max(part.matrix.shape[0] for part in problem.tasks)
    step = max(1, _CACHED // (rows + 1))
    for a in range(0, d, step):
        block = slice(a, min(a + step, d))
        for members in problem.together:
            columns = problem.tasks[members[0]].matrix.columns(block)
            if not np.isfinite(columns).all():
                raise Mismatch("X holds NaN or infinite numbers")
            places = [(k, t) for k in range(len(points)) for t in members]
            vectors = [points[k].v[t] for k, t in places]
            lo = np.concatenate([v.lo for v in vectors], axis=1)
            both = Box(lo, lo if arith.exact else np.concatenate([v.hi for v in vectors], axis=1))
            found = arith.products(columns, both, problem.centred)
            start = 0
            for k, t in places:
                outputs = problem.outputs_of[t]
                part = slice(start, start + len(outputs))
                low[k, outputs[0] : outputs[-1] + 1, block] = found.lo[:, part].T
                high[k, outputs[0] : outputs[-1] + 1, block] = found.hi[:, part].T
                start += len(outputs)
            for t in members if wanted else ():
                about = arith.spreads(columns, problem.s[t], problem.centred)
                spread.lo[block, t], spread.hi[block, t] = about.lo, about.hi
        progress(f"{block.stop} of {d} features")
    scales = _deviations(problem, spread) if cert["standardize"] else None
    size = arith.sqrt(spread) if norms else None
    if size is not None and scales is not None:
        size = size / scales
    if wanted:  # the same for all values
        problem.spread = spread
    products = [Box(low[k].T) if arith.exact else Box(low[k].T, high[k].T) for k in range(len(points))]
    if scales is not None:
        products = [m / scales[:, problem.task_of] for m in products]
    largest = None if size is None else size.hi.max(axis=1)
    return [Reading(np.arange(d), m, scales, largest) for m in products]


def _deviations(problem: Problem, spread: Box) -> Box:
    """Standard deviations, 1 where they are 0."""
    return _columns([_deviation(problem, t, spread[:, t]) for t in range(len(problem.tasks))])


def _deviation(problem: Problem, t: int, spread: Box) -> Box:
    mass = problem.s[t].total() if len(problem.y[t]) else problem.arith.one(1.0)
    constant = np.asarray(spread.hi <= 0, dtype=bool)
    ones = problem.arith.numbers(np.ones(len(constant)))
    return choose(constant, ones, problem.arith.sqrt(spread / _like(mass, ones)))


def read_more(
    problem: Problem, penalty: Penalty, reading: Reading, point: Dual, features: Array, twice: bool = False
) -> None:
    """The products of a few features (rising): for the first time, or again, in twice the precision."""
    arith = problem.arith
    fresh = features[~np.isin(features, reading.features, assume_unique=True)]
    known = not len(fresh) and (arith.exact or not twice)
    if not len(features) or known or (twice and not len(features) * sum(map(len, problem.y)) <= 1 << 24):
        return
    if len(fresh):
        old, reading.features = reading.features, np.union1d(reading.features, fresh)
        kind = object if arith.exact else np.float64
        lo, hi = (np.full((len(reading.features), len(problem.task_of)), end, dtype=kind) for end in (-np.inf, np.inf))
        at = np.searchsorted(reading.features, old)
        lo[at], hi[at] = reading.products.lo, reading.products.hi
        reading.products = Box(lo, hi)
        rows = penalty.place[fresh]
        reading.levels[rows[rows >= 0]] = 0
    if arith.exact:
        reading.products = Box(reading.products.lo)
    m, at = reading.products, np.searchsorted(reading.features, features)
    for t, part in enumerate(problem.tasks):
        columns = part.matrix.columns(features)
        if not np.isfinite(columns).all():
            raise Mismatch("X holds NaN or infinite numbers")
        found = (arith.refined if twice else arith.products)(columns, point.v[t], problem.centred)
        if reading.scales is not None:
            found = found / _columns([reading.scales[features, t]] * found.shape[1])
        place = np.ix_(at, np.array(problem.outputs_of[t]))
        if arith.exact:
            m.lo[place] = found.lo
        else:
            m.lo[place], m.hi[place] = np.fmax(m.lo[place], found.lo), np.fmin(m.hi[place], found.hi)


# --- all values in one pass: how far rows are from the edge of the dual ball ---------------------------------

_SMALL, _LARGE = 2.0**-700, 2.0**900  # squares of norms of columns between which nothing under- or overflows here
_FLOOR = 2.0**-400  # of what multiplies the norm of a column: its square must not underflow


@dataclass
class _Vectors:
    """Middles of dual points of some tasks with one matrix (rows x outputs, values), by one power of two a value, after
    them a column of ones; and `reach` (outputs x values): the error of a product is at most that times the norm of the
    column, see `Floating.products`."""

    tasks: list[int]
    middle: Array
    reach: Array


def _vectors(problem: Problem, points: list[Dual]) -> tuple[list[_Vectors], Array]:
    """Of all tasks, and the powers of values."""
    tops = [[np.maximum(np.abs(v.lo), np.abs(v.hi)).max(initial=0.0) for v in point.joined] for point in points]
    top = np.array(tops).max(axis=1)
    power = np.frexp(np.where(np.isfinite(top), top, 1.0))[1]
    middles, reaches = {}, {}
    for i, loss in enumerate(problem.losses):
        boxes = [point.joined[i] for point in points]
        lo = np.ldexp(np.stack([box.lo for box in boxes], axis=-1), -power)  # rows x outputs x values
        hi = np.ldexp(np.stack([box.hi for box in boxes], axis=-1), -power)
        v = lo + 0.5 * (hi - lo)
        half = np.maximum(up(hi - v), up(v - lo)) + _TINY
        for j, t in enumerate(loss.rows.tasks):
            part = loss.rows.part(j)
            n = part.stop - part.start
            wide = 1.0 + gamma(n + 16)
            size, width = (np.sqrt((x[part] * x[part]).sum(axis=0)) * wide + _LOST for x in (v, half))
            middles[t] = v[part].reshape(n, v.shape[1] * v.shape[2])
            reaches[t] = up((gamma(n + 16) * size + width * wide) * (1.0 + 16.0 * UNIT)) + _FLOOR
    found = []
    for members in problem.together:
        ones = np.ones((len(middles[members[0]]), int(problem.centred)))
        both = np.hstack([*(middles[t] for t in members), ones])
        found.append(_Vectors(members, both, np.concatenate([reaches[t] for t in members])))
    return found, power


def _squares(x: Array) -> Array:
    """Sums of squares of columns, in any order: the faster one for the way they lie in memory."""
    if x.strides[0] == x.itemsize and len(x):
        return np.matmul(x.T[:, None, :], x.T[:, :, None])[:, 0, 0]
    return np.einsum("ij,ij->j", x, x)


def _batches(vectors: list[_Vectors], most: int) -> list[list[_Vectors]]:
    """Matrices whose products with as many vectors are looked at together, at most so many."""
    found: list[list[_Vectors]] = []
    for one in vectors:
        if found and len(found[-1]) < most and found[-1][0].middle.shape[1] == one.middle.shape[1]:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _read_batch(problem: Problem, some: list[_Vectors], block: slice, m: Array, unsure: Array) -> tuple[Array, Array]:
    """Columns of some matrices: products with their vectors, written to `m` (matrices x columns x vectors), squares of
    norms from above, and those about the means; columns whose norms are not known become `unsure`."""
    square, g = np.empty(m.shape[:2]), np.array([[gamma(len(one.middle) + 16)] for one in some])
    for i, one in enumerate(some):
        x = problem.tasks[one.tasks[0]].matrix.columns(block)
        np.matmul(x.T, one.middle, out=m[i])
        square[i] = _squares(x)
    odd = ~((square > _SMALL) & (square < _LARGE))
    for i in np.flatnonzero(odd.any(axis=1)).tolist():
        x = problem.tasks[some[i].tasks[0]].matrix.columns(block)[:, odd[i]]
        if not np.isfinite(x).all():
            raise Mismatch("X holds NaN or infinite numbers")
        unsure[odd[i]] |= x.any(axis=0)
    about = square * (1.0 + g)
    if problem.centred:
        sums, n = m[:, :, -1], np.array([[max(len(one.middle), 1)] for one in some])
        rest = square - sums * sums / n
        far = (rest < 1e-6 * square).any(axis=1)
        about = np.minimum(about, (rest + square * (4.0 * g)) * (1.0 + 8.0 * UNIT))
        for i in np.flatnonzero(far).tolist():
            x = problem.tasks[some[i].tasks[0]].matrix.columns(block)
            z = x - _shift(x)
            np.matmul(z.T, some[i].middle, out=m[i])
            square[i] = _squares(z)
            unsure |= ~((square[i] > _SMALL) & (square[i] < _LARGE)) & z.any(axis=0)
            about[i] = square[i] * (1.0 + g[i])
    return square * (1.0 + g), about


def _read_spreads(problem: Problem, some: list[_Vectors], block: slice, scales: Box | None) -> Array:
    """``sum s (x - mean)^2`` of columns from above (tasks x columns); divided by the squares of the standard deviations
    where these are asked for, as `scales`."""
    found = []
    for one in some:
        x = problem.tasks[one.tasks[0]].matrix.columns(block)
        for t in one.tasks:
            spread = problem.arith.spreads(x, problem.s[t], problem.centred)
            if scales is not None:
                sd = _deviation(problem, t, spread)
                scales.lo[block, t], scales.hi[block, t] = sd.lo, sd.hi
                spread = spread / sd.square()
            found.append(spread.hi)
    return np.array(found)


def read_lengths(
    problem: Problem, penalty: Penalty, points: list[Dual], values: Sequence[int], norms: bool,
    progress: Callable[[str], None],
) -> list[Reading]:  # fmt: skip
    """One pass over the data for some values: of each row m_j of M an upper bound of its level, and no products.

    With x a column in a task, v^ a computed middle and rho as in `_Vectors`, every entry is right within |x| rho, so a
    row within e, ``e^2 = sum_t |x_t|^2 rho_t^2``; sizes, positive parts and soft thresholds move by no more. Lengths:

        |(|m| - l)_+| <= (1 + gamma_{Q + 24}) (fl |(|m^| - l)_+| + e),    |m|_1 <= (1 + gamma_{Q + 24}) (fl |m^|_1 + sum
        |x_t| rho_t),    max |m_q| likewise,

    where gamma covers these few operations on them, too. What underflows is below `_LOST`, and the norm of a column is
    known within gamma if its square is between `_SMALL` and `_LARGE`, or all of it is 0: else the level is infinite. So
    it is where anything is not a number. The norm about any number is at least that about the mean: ``|x|^2 - (sum
    x)^2 / n`` is computed within ``4 gamma_{n + 16} |x|^2``; if little is left of it, columns are shifted. """
    cert, arith, d, n_values = problem.cert, problem.arith, problem.cert.n_features, len(points)
    vectors, power = _vectors(problem, points)
    n_tasks, n_outputs = len(problem.tasks), len(cert.outputs)
    kind, limit, cut = penalty.measure()
    strength = np.array([float((problem.unit * arith.one(cert.arrays["alpha"][k])).lo) for k in values])
    strength = np.minimum(np.ldexp(strength, -power), 2.0**500)
    strength = np.where(strength > 2.0**-900, strength, 0.0)  # in the units of the vectors
    levels = np.empty((n_values, len(penalty.features)))
    largest = np.zeros(d) if norms else None
    scales = Box(np.empty((d, n_tasks)), np.empty((d, n_tasks))) if cert["standardize"] else None
    known = problem.deviations if scales is not None and not norms else None  # of the same columns and weights
    scales = known or scales
    reach = np.concatenate([one.reach for one in vectors])  # outputs x values
    even = all(bool((s.lo == 1.0).all() and (s.hi == 1.0).all()) for s in problem.s)
    rows, columns = max(len(one.middle) for one in vectors), max(one.middle.shape[1] for one in vectors)
    step = max(64, min(_CACHED // (rows + 1), _CACHED // columns + 64))
    batches = _batches(vectors, max(1, 2 * _CACHED // (step * columns)))
    room, lost = np.empty(step * max(len(some) * some[0].middle.shape[1] for some in batches)), np.zeros(n_values)
    more = 1.0 + gamma(n_outputs + 24)
    for a in range(0, d, step):
        block = slice(a, min(a + step, d))
        width = block.stop - a
        total, top = np.zeros((width, n_values)), np.zeros((width, n_values))
        squares, unsure = np.empty((width, n_tasks)), np.zeros(width, dtype=bool)
        for some in batches:
            count, columns = len(some), some[0].middle.shape[1]
            m = room[: count * width * columns].reshape(count, width, columns)
            square, about = _read_batch(problem, some, block, m, unsure)
            for one, own in zip(some, square, strict=True):
                squares[:, one.tasks] = own[:, None]
            if known is None and (scales is not None or (norms and not even)):
                about = _read_spreads(problem, some, block, scales)
            if largest is not None:
                np.maximum(largest[block], about.max(axis=0), out=largest[block])
            outputs = [q for one in some for t in one.tasks for q in problem.outputs_of[t]]
            members = problem.task_of[outputs]
            own = m[:, :, : columns - problem.centred].reshape(count, width, len(outputs) // count, n_values)
            if scales is not None:
                inverse = up(1.0 / scales.lo[block])
                own *= inverse[:, members].reshape(width, count, -1).swapaxes(0, 1)[..., None]
                every = np.unique(members)
                squares[:, every] *= inverse[:, every] * inverse[:, every] * (1.0 + 8.0 * UNIT)
            if cert["positive"]:
                np.maximum(own, 0.0, out=own)
            elif kind != "squares" or cut is not None:
                np.abs(own, out=own)
            if kind in ("top", "both"):
                sizes = np.sqrt(squares[:, members]).reshape(width, count, -1).swapaxes(0, 1)[..., None]
                entries = own + sizes * reach[outputs].reshape(count, 1, -1, n_values)
                np.maximum(top, entries.max(axis=(0, 2)), out=top)
            if cut is not None:
                own -= np.multiply.outer(cut[block], strength * (1.0 - 8.0 * UNIT))[:, None]
                np.maximum(own, 0.0, out=own)
            if kind in ("squares", "both"):
                np.multiply(own, own, out=own)
            total += own[0, :, 0] if len(outputs) == 1 else own.sum(axis=(0, 2))
        if kind == "sums":
            off = np.sqrt(squares)[:, problem.task_of] @ reach
        else:
            off = np.sqrt(squares[:, problem.task_of] @ reach**2)
            np.sqrt(total, out=total)
        if kind == "top":
            total, off = top, 0.0 * off
        held = penalty.place[block] >= 0
        at = penalty.place[block][held]
        total = ((total + off)[held] * more + _LOST) * ((1.0 / strength) * (1.0 + 8.0 * UNIT))
        total /= (limit[0][at] * (1.0 - 8.0 * UNIT))[:, None]
        if kind == "both":
            other = (top[held] * more + _LOST) * ((1.0 / strength) * (1.0 + 8.0 * UNIT))
            total = np.fmax(total, other / (limit[1][at] * (1.0 - 8.0 * UNIT))[:, None])
        total[unsure[held]] = np.inf
        np.copyto(total, np.inf, where=~(total >= 0.0))
        levels[:, at] = total.T
        if largest is not None:
            largest[block][unsure] = np.inf
        lost = np.fmax(lost, ((off[held] / limit[0][at][:, None]).max(axis=0, initial=0.0)) / strength)
        progress(f"{block.stop} of {d} features")
    levels = penalty.unit_levels(levels)
    problem.deviations = scales
    size = None if largest is None else up(np.sqrt(largest))
    nothing = np.zeros((0, n_outputs))
    return [
        Reading(np.arange(0), Box(nothing, nothing), scales, size, levels[i], penalty.linear, float(lost[i]))
        for i in range(n_values)
    ]


def _whole(x: Array, bits: int) -> tuple[Array, Array]:
    """Whole numbers X and powers e of columns, ``0 <= x - X 2^e < 2^e`` and ``|X| <= 2^bits``: mantissas, shifted."""
    mantissa, exponent = np.frexp(x)
    whole, exponent = np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64)
    top = np.where(whole != 0, exponent, -5000).max(axis=0, initial=-5000)
    return whole >> np.clip(top - exponent + (53 - bits), 0, 62), top - bits


def _aligned(parts: list[tuple[Array, Array]], bits: int) -> tuple[list[Array], Array]:
    """Numbers ``m 2^e`` (m >= 0) as ``m 2^g`` with m at most 2^bits, or a little more, rounded up."""
    power = np.max([np.frexp(m.astype(np.float64))[1] + e for m, e in parts], axis=0) - bits
    found = []
    for m, e in parts:
        shift = power - e
        low, high = np.clip(shift, 0, 62), np.clip(-shift, 0, 62)
        found.append(np.where(shift > 0, (m >> low) + 1, m << high))
    return found, power


def _root_up(squares: Array) -> Array:
    """Whole numbers whose squares are at least these, below 2^62: about the least ones, and products tell."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64) + 2
    if (root * root < squares).any():
        raise Undecided("roots that are wrong")
    return root


def read_whole(
    problem: Problem, penalty: Penalty, point: Dual, k: int, norms: bool, progress: Callable[[str], None]
) -> Reading | None:
    """`read_lengths` for one value in whole numbers of 64 bits, where no floating point is trusted; None for what it
    does not know. With x a column and v a vector of a task,

        x = (X + a) 2^e,  v = (W + b) 2^f,  0 <= a, b < 1:    |x'v| <= (|X'W| + sum (|X| + |W| + 1)) 2^(e + f),
        |x - mean| <= (|X - mean| + root of n) 2^e.
    """
    cert, d, name = problem.cert, problem.cert.n_features, penalty.name
    least = penalty.g.lo if name == "rows" else min(penalty.g.lo, penalty.l.lo) if name == "split" else Fraction(1)
    even = all((s.lo == 1).all() and (s.hi == 1).all() for s in problem.s)
    known = name in ("rows", "split", "largest") and least > 0 and not cert["standardize"] and (even or not norms)
    rows = max(map(len, problem.y))
    small = rows.bit_length()
    if not known or small > 20:
        return None
    bits = min(24, 30 - small), min(30, 60 - small - min(24, 30 - small))
    vectors = []
    for v in point.v:
        tops = [max((abs(q) for q in column), default=Fraction(0)) for column in v.lo.T]
        powers = [top.numerator.bit_length() - top.denominator.bit_length() + 1 - bits[1] for top in tops]
        columns = [[math.floor(q / _power(f)) for q in one] for one, f in zip(v.lo.T, powers, strict=True)]
        vectors.append((np.array(columns, dtype=np.int64).reshape(len(tops), len(v.lo)).T, powers))
    count = (60 - len(cert.outputs).bit_length()) // (1 if name == "largest" else 2)
    lengths, largest, step = [Fraction(0)] * d, np.full(d, Fraction(0), dtype=object), max(1, _ENTRIES // (rows + 1))
    for a in range(0, d, step):
        block, parts, sizes = slice(a, min(a + step, d)), [], []
        for members in problem.together:
            x = problem.tasks[members[0]].matrix.columns(block)
            if not np.isfinite(x).all():
                raise Mismatch("X holds NaN or infinite numbers")
            n = len(x)
            whole, power = _whole(x, bits[0])
            turned, total = np.ascontiguousarray(whole.T), np.abs(whole).sum(axis=0)
            for t in members:
                w, powers = vectors[t]
                m = np.abs(turned @ w) + total[:, None] + (np.abs(w).sum(axis=0) + n)
                parts += [(m[:, q], power + f) for q, f in enumerate(powers)]
            square, first = (whole * whole).sum(axis=0), whole.sum(axis=0)
            if problem.centred and n:
                square = square - first * first // n
            sizes.append((_root_up(square) + math.isqrt(n) + 1, power))
        found, power = _aligned(parts, count)
        length = np.sum(found, axis=0) if name == "largest" else _root_up(np.sum([m * m for m in found], axis=0))
        lengths[block] = [m * _power(e) for m, e in zip(length.tolist(), power.tolist(), strict=True)]
        found, power = _aligned(sizes, 60)
        largest[block] = [m * _power(e) for m, e in zip(np.max(found, axis=0).tolist(), power.tolist(), strict=True)]
        progress(f"{block.stop} of {d} features")
    strength = problem.unit.lo * Fraction(cert.arrays["alpha"][k]) * least
    levels = np.array(lengths, dtype=object)[penalty.features] / (penalty.weights.lo * strength)
    nothing = np.zeros((0, len(cert.outputs)), dtype=object)
    return Reading(np.arange(0), Box(nothing), None, largest if norms else None, levels)


# --- penalties ----------------------------------------------------------------------------------------------


def _total_up(x: Any, axis: int) -> Any:
    """Sums of non-negative numbers, from above; of zeros 0."""
    total = x.sum(axis=axis)
    return np.where(total == 0.0, 0.0, up(total * (1.0 + gamma(x.shape[axis] + 4)))) if _is_float(x) else total


def _square_up(x: Any) -> Any:
    return np.where(x == 0.0, 0.0, up(x * x)) if _is_float(x) else x * x


class Penalty:
    """Omega, and its dual ball: `levels` gives for rows |m| (bounds from above, in units of N alpha) numbers that
    must not exceed those of `limits`. Rows are those of penalised features; a unit is a row, or a group of them."""

    def __init__(self, problem: Problem) -> None:
        self.problem, arrays = problem, problem.cert.arrays
        header, arith = problem.cert["penalty"], problem.arith
        self.name, self.inside = header["name"], header.get("inside")
        self.features = np.flatnonzero(problem.penalised)
        self.place = np.full(problem.cert.n_features, -1)
        self.place[self.features] = np.arange(len(self.features))
        self.g, self.l = arith.one(header.get("group", 1.0)), arith.one(header.get("l1", 0.0))
        each = arrays["l1"] if "l1" in arrays else np.full(problem.cert.n_features, header.get("l1", 0.0))
        self.l_rows = arith.numbers(each[self.features])
        self.plain = self.name == "rows" and not each[self.features].any()
        self.units = np.arange(len(self.features))
        weights = arrays.get("feature_weights", np.ones(problem.cert.n_features))[self.features]
        if self.name == "groups":
            groups, self.units = np.unique(arrays["group_of"][self.features], return_inverse=True)
            self.unit_weights = arith.numbers(arrays["group_weights"][groups])
            self.plain = self.inside is None or header["l1"] == 0.0
            weights = arrays["group_weights"][groups][self.units]
        self.weights = arith.numbers(weights)
        if self.name == "sorted":
            self.ranks = arith.numbers(arrays["sorted_weights"][: len(self.features)])

    def of_rows(self, box: Box, rows: Array, width: int) -> Box:
        return _columns([box[rows]] * width)

    def value(self, features: Array, w: Box) -> Box:
        """Omega of rows that are not zero."""
        arith = self.problem.arith
        rows = self.place[features]
        w, rows = w[rows >= 0], rows[rows >= 0]
        if not len(rows) or self.name == "none":
            return arith.one(0.0)
        sizes = abs(w)
        norms = arith.sqrt(sizes.square().sum(1))
        if self.name == "rows":
            return (self.weights[rows] * (_like(self.g, norms) * norms + self.l_rows[rows] * sizes.sum(1))).total()
        if self.name == "largest":
            top = Box(sizes.lo.max(axis=1), sizes.hi.max(axis=1))
            return (self.weights[rows] * top).total()
        if self.name == "split":
            shared = arith.numbers(_shared_part(_floats(w), float(self.g.lo), float(self.l.lo)))
            norms, rest = arith.sqrt(shared.square().sum(1)), abs(w - shared).sum(1)
            return (self.weights[rows] * (_like(self.g, norms) * norms + _like(self.l, rest) * rest)).total()
        if self.name == "sorted":
            ranks = self.ranks[: len(rows)]
            return (ranks * Box(np.sort(norms.lo)[::-1], np.sort(norms.hi)[::-1])).total()
        total = arith.one(0.0)
        for unit in np.unique(self.units[rows]):
            mine = self.units[rows] == unit
            size = arith.sqrt(sizes[mine].square().total()) * self.g
            if self.inside is not None:
                size = size + (norms[mine] if self.inside == "rows" else sizes[mine]).total() * self.l
            total = total + size * self.unit_weights[unit]
        return total

    def levels(self, size: Any, rows: Array, c: Any) -> Any:
        """Of the units of these rows, from above: sums of squares (of entries above l) for `rows`, `groups` and
        `split`, sums for `largest`. `size` holds |m| / (N alpha) of the rows; it is multiplied by c and divided by
        the weights here."""
        u = self.weights.lo[rows][:, None]
        x = up(up(c * size) / u)
        if self.name == "largest":
            return _total_up(x, 1)
        if self.name == "groups":
            if self.inside == "rows":
                x = self.problem.arith.sqrt(Box(_total_up(_square_up(x), 1))).hi[:, None]
            if self.inside is not None:
                x = np.maximum(up(x - self.l.lo), 0 * x)
            squares = _total_up(_square_up(x), 1)
            units, place = np.unique(self.units[rows], return_inverse=True)
            return self._by_unit(squares, place, len(units))[place]
        if self.name == "rows":
            x = np.maximum(up(x - self.l_rows.lo[rows][:, None]), 0 * x)
        return _total_up(_square_up(x), 1)

    def _by_unit(self, values: Any, place: Array, count: int) -> Any:
        """Sums of non-negative numbers of rows over the units they are in, from above."""
        total = self.problem.arith.numbers(np.zeros(count)).lo
        np.add.at(total, place, values)
        return np.where(total == 0.0, 0.0, up(total * (1.0 + gamma(len(values) + 4)))) if _is_float(total) else total

    def within(self, size: Any, rows: Array, c: Any) -> Array:
        """Which rows (of whole groups) are proved to be in the dual ball when multiplied by c."""
        levels = self.levels(size, rows, c)
        limit = self.problem.arith.one(1.0) if self.name == "largest" else self.g * self.g
        found = np.asarray(levels <= limit.lo, dtype=bool)
        if self.name == "split":
            u = self.weights.lo[rows][:, None]
            found &= np.all(up(up(c * size) / u) <= self.l.lo, axis=1)
        return found

    def scale(self, size: Any, rows: Array, reading: Reading) -> tuple[Any, int | None]:
        """A c <= 1, about the largest, for which c M is in the dual ball, and the feature that stands in the way of
        more: of rows whose sizes are known, and of others by their levels."""
        arith = self.problem.arith
        if self.name == "sorted":
            norms = arith.sqrt(Box(_total_up(up(size * size), 1))).hi
            if reading.levels is not None:
                norms, own = reading.levels.copy(), norms
                norms[rows] = own
            return self._sorted_scale(norms, arith.one(1.0).lo)
        c, limit = self._scale(size, rows)
        top = 0 if reading.levels is None else reading.levels.max(initial=0)
        if top > 1:
            least = np.maximum(down(down(1.0 / top)), 0.0) if reading.linear else np.float64(0.0)
            if least < c:
                c, limit = least, int(self.features[int(np.argmax(reading.levels))])
        return c, limit

    def _scale(self, size: Any, rows: Array) -> tuple[Any, int | None]:
        arith = self.problem.arith
        one, zero = arith.one(1.0).lo, arith.one(0.0).lo
        outside = np.flatnonzero(~self.within(size, rows, one))
        if not len(outside):
            return one, None
        size, rows = size[outside], rows[outside]
        if self.plain:
            levels = self.levels(size, rows, one)
            worst = int(np.argmax(levels))
            if arith.exact:  # levels are c^2 times those at 1: all are in
                return arith.sqrt(self.g * self.g / Box(levels[worst])).lo, int(self.features[rows[worst]])
            c = np.maximum((self.g / arith.sqrt(Box(levels[worst]))).lo * (1.0 - 16.0 * UNIT), 0.0)
            if bool(np.all(self.within(size, rows, c))):
                return c, int(self.features[rows[worst]])
        low, high = zero, one
        for _ in range(arith.bits if arith.exact else 200):
            middle = (low + high) / 2
            if not arith.exact and not low < middle < high:
                break
            inside = self.within(size, rows, middle)
            if np.all(inside):
                low = middle
            else:  # bounds of levels rise with c, operation by operation: those that are inside are so below
                high, size, rows = middle, size[~inside], rows[~inside]
        return low, int(self.features[rows[0]])

    def measure(self) -> tuple[str, list[Array], Array | None]:
        """How `read_lengths` measures rows: by sums of "squares" of entries, by "sums", the "top" entry or "both" (the
        first and the last); what a length of 1 is divided by, in units of N alpha; what is taken off of each entry of a
        feature before. """
        u, g, each = self.weights.lo, float(self.g.lo), self.l_rows.lo
        kind, limits, off = "squares", [u * g], None
        if self.name == "largest":
            kind, limits = "sums", [u]
        elif self.name == "split":
            kind, limits = "both", [u * g, u * float(self.l.lo)]
        elif self.name in ("sorted", "groups"):
            limits, off = [u], u * float(self.l.lo) if self.inside == "entries" else None
        elif g == 0.0:
            kind, limits = "top", [u * each]
        elif each.any():
            off = u * each
        cut = None
        if off is not None:
            cut = np.zeros(len(self.place))
            cut[self.features] = np.where(off > 2.0**-1000, off, 0.0)  # smaller ones may have been rounded up
        return kind, [np.where(one > 2.0**-1000, one, 0.0) for one in limits], cut

    @property
    def linear(self) -> bool:
        """Whether the ball is that of a norm whose value `read_lengths` finds: levels at c are c times those at 1."""
        entries = self.name == "rows" and float(self.g.lo) == 0.0
        return self.name in ("largest", "split") or entries or (self.plain and self.name != "sorted")

    def unit_levels(self, lengths: Array) -> Array:
        """Levels of rows from their lengths: of groups that of the group (values x features)."""
        if self.name != "groups":
            return lengths
        count, most = int(self.units.max(initial=-1)) + 1, int(np.bincount(self.units).max(initial=0))
        for own in lengths:
            x = np.maximum(up(own - float(self.l.lo)), 0.0) if self.inside == "rows" else own
            size = np.sqrt(np.bincount(self.units, x * x, count)) * (1.0 + gamma(most + 16)) + _LOST
            own[:] = up(size / float(self.g.lo))[self.units]
        return lengths

    def shares(self, size: Any, rows: Array) -> Any:
        """Of each of these rows (of whole groups, not for `sorted`) about the largest c <= 2 for which it is in."""
        zero, two = self.problem.arith.one(0.0).lo, self.problem.arith.one(2.0).lo
        low, high = np.full(len(rows), zero), np.full(len(rows), two)
        for _ in range(60):
            middle = (low + high) / 2
            inside = self.within(size, rows, middle[:, None])
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return low

    def _sorted_scale(self, norms: Any, one: Any) -> tuple[Any, int | None]:
        """Cumulative sums of row norms, largest first, as whole numbers of 2^-100 of the largest weight."""
        arith = self.problem.arith
        if not np.all(norms < np.inf):
            return arith.one(0.0).lo, int(self.features[int(np.argmax(norms))])
        order = np.argsort(norms)[::-1]
        if arith.plain and len(order):  # in floating point, the sum of m numbers within gamma_m
            wide, all_norms = 2.0 * UNIT * np.arange(8.0, len(order) + 8.0), np.cumsum(norms[order])
            shares = np.cumsum(self.ranks.lo) / all_norms * (1.0 - 2.0 * wide)
            shares = np.where(all_norms == 0.0, 2.0, np.where(shares >= 0.0, shares, 0.0))
            least = int(np.argmin(shares))
            return (one, None) if shares[least] >= 1.0 else (down(shares[least]), int(self.features[order[least]]))
        top = Fraction(norms[order[0]]) if len(order) else Fraction(0)
        scale = max(top, Fraction(self.ranks.lo[0])) if len(order) else Fraction(1)
        grid = Fraction(1 << 160) / scale if scale else Fraction(1)
        sums = accumulate(math.ceil(Fraction(norms[j]) * grid) for j in order)
        limits = accumulate(math.floor(Fraction(w) * grid) for w in self.ranks.lo)
        best, worst = Fraction(1), None
        for rank, (total, limit) in enumerate(zip(sums, limits, strict=True)):
            if total > limit and best * total > limit:
                best, worst = Fraction(limit, total), rank
        if worst is None:
            return one, None
        c = best if arith.exact else np.maximum(down(np.float64(float(best))), 0.0)
        return c, int(self.features[order[worst]])

    def _moved(self, moved: Any) -> Any:
        """Of the units that features are in."""
        if self.name != "groups":
            return moved
        squares = self._by_unit(up(moved * moved), self.units, len(self.unit_weights.lo))
        return self.problem.arith.sqrt(Box(squares)).hi[self.units]

    def clear(self, reading: Reading, c: Any, moved: Any, wider: Any) -> Array:
        """Which penalised features are zero in every solution by their levels (and these times `wider`), if |m| may be
        off by `moved` in length (of the row): that much is in the ball if it is at most its inner radius."""
        arith, g, entry = self.problem.arith, self.g.lo, self.l.lo
        push = up(self._moved(moved) / self.weights.lo)
        if self.name == "largest":
            push = up(push * arith.sqrt(arith.one(float(len(self.problem.task_of)))).hi)
        elif self.name == "split":
            push = up(push / min(g, entry))
        else:
            push = up(push / (g if g > 0 else self.l_rows.lo))
        level = up((up(c * wider) if reading.linear else wider) * reading.levels)
        return np.asarray(up(level + push) < 1, dtype=bool)

    def zeros(self, size: Any, rows: Array, c: Any, moved: Any) -> Array:
        """Which of these rows (of whole groups) are zero in every solution, `moved` as in `clear`."""
        arith, u, moved = self.problem.arith, self.weights.lo[rows], self._moved(moved)[rows]
        moved = up(moved / u)
        length = moved if self.name != "largest" else up(moved * arith.sqrt(arith.one(float(size.shape[1]))).hi)
        levels = self.levels(size, rows, c)
        if self.name == "largest":
            return np.asarray(up(levels + length) < 1, dtype=bool)
        found = np.asarray(up(arith.sqrt(Box(levels)).hi + length) < self.g.lo, dtype=bool)
        largest = up(up(up(c * size) / u[:, None]).max(axis=1) + moved)
        if self.name == "split":
            found &= np.asarray(largest < self.l.lo, dtype=bool)
        elif self.name == "rows":
            found |= np.asarray(largest < self.l_rows.lo[rows], dtype=bool)
        return found


def _like(number: Box, rows: Box) -> Box:
    """One number for every row."""
    lo = _spread(number.lo, rows)
    return Box(lo, lo if number.point else _spread(number.hi, rows))


def _floats(box: Box) -> Array:
    return np.array(box.lo, dtype=np.float64)


def _shared_part(w: Array, g: float, l1: float) -> Array:
    """About the best p of ``min g |p|_2 + l |w - p|_1``: the entries cut at a height h with ``g h = l |cut|_2``. Any
    p will do."""
    low, high = np.zeros(len(w)), np.abs(w).max(axis=1)
    for _ in range(200):
        h = 0.5 * (low + high)
        cut = np.minimum(np.abs(w), h[:, None])
        over = g * h > l1 * np.sqrt((cut * cut).sum(axis=1))
        high, low = np.where(over, h, high), np.where(over, low, h)
    return np.clip(w, -high[:, None], high[:, None])


# --- the claims ---------------------------------------------------------------------------------------------


@dataclass
class Value:
    """What was found for one value of a path."""

    index: int
    alpha: float
    objective: float  # at most this
    dual_value: float  # at least this
    gap: float  # at most this: no model of this kind is better by more
    scale: float  # c
    failures: list[str]
    close: bool = False  # a comparison failed by so little that narrower bounds may decide it


@dataclass
class Need:
    """What was found for one claim that features are needed: every model in which all of them are zero is worse than
    the coefficients of the value by `delta` at least."""

    value: int
    features: list[int]
    claimed: float
    delta: float
    failures: list[str]


@dataclass
class Verdict:
    """`proved`, `words` for people, `failures` (why not), the `values` that were looked at, and the claims of `needs`
    about them. False if not proved."""

    proved: bool
    words: str
    failures: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.proved

    def __str__(self) -> str:
        return self.words


def _float(x: Any, upwards: bool) -> float:
    """A float64 on the safe side, for printing."""
    if not isinstance(x, Fraction):
        return float(x)
    try:
        found = np.float64(float(x))
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    if upwards:
        return float(up(found) if Fraction(found) < x else found)
    return float(down(found) if Fraction(found) > x else found)


def _claims(arith: Any, arrays: dict[str, Array], k: int, primal: Box, dual: Box) -> list[tuple[str, Any, Any]]:
    """Words for a claim that fails, and two numbers: it holds if the second is not above the first."""
    claimed, objective, dual_value = (arith.one(arrays[name][k]) for name in ("gap", "objective", "dual_value"))
    gap, above, below = (primal - dual).hi, (objective - dual).hi, (primal - objective).hi
    return [
        ("the dual value is proved to be {0:.17g} only, claimed {1:.17g}", dual.lo, dual_value.lo),
        ("the gap is proved to be at most {1:.6g} only, claimed {0:.6g}", claimed.lo, gap),
        ("the claimed objective may exceed the dual value by {1:.6g}, the gap is {0:.6g}", claimed.lo, above),
        ("the objective may exceed the claimed one by {1:.6g}, the gap is {0:.6g}", claimed.lo, below),
    ]


def _compared(
    arith: Any, arrays: dict[str, Array], k: int, primal: Box, dual: Box, c: Any, failures: list[str]
) -> Value:
    """What is found beside what is claimed; claims that fail are added to the failures."""
    close = False
    for words, most, least in _claims(arith, arrays, k, primal, dual):
        if not least <= most:
            failures.append(words.format(_float(most, False), _float(least, True)))
            narrow = _power(-90) if arith.exact else 1e-10
            close |= bool(least - most < (abs(dual.lo) + abs(primal.hi)) * narrow)
    bounds = _float(primal.hi, True), _float(dual.lo, False), _float((primal - dual).hi, True)
    return Value(k, float(arrays["alpha"][k]), *bounds, _float(c, False), failures, close)


class Checker:
    """All claims about one value, given what one pass over the data said."""

    hasty = False  # whether zeros that need products in twice the precision are given up

    def __init__(self, problem: Problem) -> None:
        self.problem, self.penalty = problem, Penalty(problem)
        edges = problem.cert.arrays.get("edges")
        self.edges: list[tuple[int, int, Box]] = []
        if edges is not None:
            self.edges = [(q, r, problem.arith.one(edges[q, r])) for q, r in np.argwhere(edges).tolist()]

    def check(self, k: int, point: Dual, reading: Reading) -> Value:
        problem, arith = self.problem, self.problem.arith
        arrays = problem.cert.arrays
        features, rows = problem.coefficients(k)
        w = arith.numbers(rows)
        if reading.scales is not None:
            w = w * reading.scales[features][:, problem.task_of]
        if any(scale != 1.0 for scale in problem.scales):
            w = w / arith.numbers(np.broadcast_to(np.array(problem.scales)[problem.task_of], w.shape))
        failures: list[str] = []
        if problem.cert["positive"] and (rows < 0.0).any():
            j, q = np.argwhere(rows < 0.0)[0]
            failures.append(f"{problem.cert.name(int(features[j]))} has a negative coefficient, {rows[j, q]:g}")
        held = problem.penalised[features]  # those that the penalty, the ridge and the graph see
        ridged, places = w[held], features[held]
        if not isinstance(problem.cert["intercept"], bool):
            constant = arith.numbers(arrays["intercept"][k][None, :]) / arith.numbers(
                np.full((1, len(problem.task_of)), problem.cert["intercept"])
            )
            ridged = _joined([ridged, constant])
        quadratic = self._quadratic(k, ridged)
        losses = problem.primal_losses(k)
        primal = losses.total() + arith.one(arrays["alpha"][k]) * self.penalty.value(features, w) + quadratic
        pulled = self._pulled(k, ridged)
        if self.penalty.name == "none":
            c, limit = arith.one(1.0).lo, None
            if not self._in_domain(point, c) >= c:  # here there is no scale that could help
                failures.append("the vector leaves the domain of the square-root loss")
            dual, parts = self._without_penalty(k, point, reading, places, ridged, pulled, quadratic)
        else:
            self._read_open(k, point, reading, places)
            for again in (False, True):  # products in twice the precision are asked for where they may matter
                if again:
                    close = self._close(k, reading, places, pulled)
                    read_more(problem, self.penalty, reading, point, close, twice=True)
                size = self._sizes(k, reading, places, pulled)
                c, limit = self.penalty.scale(size, self._rows(reading), reading)
                c = self._in_domain(point, c)
                scale = Box(c)
                parts = problem.dual_losses(point, scale)
                dual = parts.total() - scale * scale * quadratic
                if arith.exact or not self._unsettled(k, primal, dual, reading):
                    break
            if arrays["ridge"][k] > 0.0 and self._falls_short(k, primal, dual):
                other = self._leaning(k, point, reading, places, ridged, size, c)
                if other is not None and other[0].lo > dual.lo:
                    dual, parts, c, limit = other
        value = self._compare(k, primal, dual, c, failures)
        if failures and not arith.quick:  # else the reasons are found when narrower bounds fail, too
            if self.penalty.name != "none" and not self._strength(k) > 0:
                failures.append("unit times alpha is too small for floating point: --exact decides")
            read_more(problem, self.penalty, reading, point, features)
            along = _floats(reading.products[np.searchsorted(reading.features, features)]) * _floats(w)
            along = along.sum(axis=0) / _float(problem.unit.lo, True) * _float(c, True)
            failures += self._reasons(losses, parts, along, point, c, limit)
        elif not failures:
            self._check_zeros(k, point, reading, c, failures)
            self._check_sure(k, features, rows, ridged[: len(places)], places, failures)
        return value

    def without(self, k: int, point: Dual, reading: Reading, features: Array, wanted: Any = None) -> Box:
        """The dual value of a point for the problem without some features: at most the objective of every model in
        which they are zero. Their rows of M are in no constraint, and so they count as 0. (All norms here are no larger
        where rows become zero: the dual ball of what is left is the part of the ball with zeros there.)

        `wanted`: What the value should be. Products are read in twice the precision where it is less. """
        problem, penalty, nothing = self.problem, self.penalty, features[:0]
        empty = problem.arith.numbers(np.zeros((0, len(problem.task_of))))
        mine = np.isin(penalty.features, features)
        if reading.levels is not None:
            beside = self._whole(mine)  # what is left of their groups
            read_more(problem, penalty, reading, point, beside[~np.isin(beside, features)])
            reading.levels[mine] = 0
        for again in (False, True):
            if again:
                read_more(problem, penalty, reading, point, self._close(k, reading, nothing, empty), twice=True)
            else:
                self._read_open(k, point, reading, nothing)
            gone = np.isin(reading.features, features)
            for end in (reading.products.lo, reading.products.hi):
                end[gone] = problem.arith.one(0.0).lo
            size = self._sizes(k, reading, nothing, empty)
            c, _ = penalty.scale(size, self._rows(reading), reading)
            scale = Box(self._in_domain(point, c))
            dual = problem.dual_losses(point, scale).total()
            if problem.cert.arrays["ridge"][k] > 0.0:
                other = self._leaning(k, point, reading, nothing, empty, size, c)
                if other is not None and other[0].lo > dual.lo:
                    dual = other[0]
            if problem.arith.exact or wanted is None or dual.lo >= wanted:
                break
        return dual

    # -- pieces ----------------------------------------------------------------------------------------------

    def _quadratic(self, k: int, w: Box) -> Box:
        """``rho/2 |W|^2 + 1/2 sum_{q<r} A_qr |w_q - w_r|^2``."""
        arith = self.problem.arith
        total = arith.one(0.0)
        if not w.shape[0] or not self.moves(k):
            return total
        total = _half(arith, self.problem.cert.arrays["ridge"][k]) * w.square().total()
        for q, r, strength in self.edges:
            if q < r:
                total = total + strength * (w[:, q] - w[:, r]).square().total() * arith.one(0.5)
        return total

    def _pulled(self, k: int, w: Box) -> Box:
        """Rows of R W."""
        arith = self.problem.arith
        if not self.moves(k):
            return arith.numbers(np.zeros(w.shape))
        pulled = _like(arith.one(self.problem.cert.arrays["ridge"][k]), w) * w
        if self.edges:
            columns = [pulled[:, q] for q in range(w.shape[1])]
            for q, r, strength in self.edges:
                columns[q] = columns[q] + _like(strength, w[:, 0]) * (w[:, q] - w[:, r])
            pulled = _columns(columns)
        return _like(self.problem.unit, pulled) * pulled

    def moves(self, k: int) -> bool:
        """Whether there is a ridge or a graph."""
        return bool(self.problem.cert.arrays["ridge"][k] > 0.0 or self.edges)

    def _rows(self, reading: Reading) -> Array:
        """The penalised features whose products are known, by their places."""
        rows = self.penalty.place[reading.features]
        return rows[rows >= 0]

    def _whole(self, rows: Array) -> Array:
        """Features of the groups of some penalised ones, given as a mask."""
        if self.penalty.name == "groups":
            rows = np.isin(self.penalty.units, self.penalty.units[rows])
        return self.penalty.features[rows]

    def _read_open(self, k: int, point: Dual, reading: Reading, places: Array) -> None:
        """Products of features that are not known to be in the ball."""
        if reading.levels is None:
            return
        scaled = reading.linear or self.penalty.name == "sorted"  # levels say what c is
        wanted = ~(reading.levels < np.inf) if scaled else ~(reading.levels <= 1)
        if self.moves(k):
            wanted[self.penalty.place[places]] = True
        read_more(self.problem, self.penalty, reading, point, self._whole(wanted))

    def _sizes(self, k: int, reading: Reading, places: Array, pulled: Box) -> Any:
        """``|M - R W| / (N alpha)`` of the penalised features that are known, from above; with positive, negative
        entries are 0. R W is that of `places`."""
        held = self.penalty.place[reading.features] >= 0
        lo, hi = reading.products.lo[held], reading.products.hi[held]
        if len(places) and self.moves(k):
            at = np.searchsorted(reading.features[held], places)
            moved = Box(lo[at], hi[at]) - pulled[: len(places)]
            lo[at], hi[at] = moved.lo, moved.hi
        size = np.maximum(hi, 0 * hi) if self.problem.cert["positive"] else np.maximum(abs(lo), abs(hi))
        return up(size / self._strength(k))

    def _strength(self, k: int) -> Any:
        """``N alpha`` from below, for divisions: positive, or not a number, with which nothing is proved."""
        strength = self.problem.unit * self.problem.arith.one(self.problem.cert.arrays["alpha"][k])
        return strength.lo if strength.lo > 0 else np.float64(np.nan)

    def _leaning(
        self, k: int, point: Dual, reading: Reading, places: Array, w: Box, size: Any, c: Any
    ) -> tuple[Box, Box, Any, int | None] | None:
        """The dual value with another matrix U in the place of W, and what belongs to it.

        The proof holds for every U with ``c (M - R U)`` in the dual ball, not for W alone, and the best U is the one
        for which rows of M - R U are on its boundary (or, where U = 0, inside): c < 1 would draw all of M. How U is
        found is no part of the proof.
        """
        penalty, cert, arith = self.penalty, self.problem.cert, self.problem.arith
        known = self._rows(reading)
        outside = ~penalty.within(size, known, arith.one(1.0).lo)
        outside |= np.isin(known, penalty.place[places])
        outside = np.isin(penalty.units[known], penalty.units[known[outside]]) | (penalty.name == "sorted")
        rows = known[outside]
        features = penalty.features[rows]
        about, m = np.zeros((len(rows), w.shape[1])), reading.products[np.searchsorted(reading.features, features)]
        about[np.searchsorted(features, places)] = _floats(w[: len(places)])
        away = _floats(m) - _floats(self._pulled(k, arith.numbers(about)))
        if cert["positive"]:
            away = np.maximum(away, 0.0)
        if penalty.name == "sorted":
            share = np.full((len(rows), 1), _float(c, False))
        else:
            share = _floats(Box(penalty.shares(size[outside], rows)))[:, None]
            own = self._sizes(k, reading, places[:0], w[:0])[outside]
            idle = penalty.within(own, rows, arith.one(1.0).lo)
        matrix = np.full((w.shape[1],) * 2, 0.0)
        for q, r, strength in self.edges:
            matrix[q, q] += float(strength.lo)
            matrix[q, r] -= float(strength.lo)
        matrix[np.diag_indices(len(matrix))] += cert.arrays["ridge"][k]
        try:
            about += np.linalg.solve(cert["unit"] * matrix, ((1.0 - share) * away).T).T
        except np.linalg.LinAlgError:
            return None
        if penalty.name != "sorted":
            about[idle] = 0.0
        if not np.isfinite(about).all():
            return None
        u = arith.numbers(about)
        c, limit = penalty.scale(self._sizes(k, reading, features, self._pulled(k, u)), known, reading)
        scale = Box(self._in_domain(point, c))
        parts = self.problem.dual_losses(point, scale)
        return parts.total() - scale * scale * self._quadratic(k, u), parts, scale.lo, limit

    def _close(self, k: int, reading: Reading, places: Array, pulled: Box) -> Array:
        """Features whose products decide: those of the model, and those not proved to be in the ball."""
        if self.problem.arith.exact or self.penalty.name == "sorted":
            return places
        wanted = np.zeros(len(self.penalty.features), dtype=bool)
        if reading.levels is not None:
            wanted |= reading.levels > 1.0 - 1e-9
        rows = self._rows(reading)
        wanted[rows] = ~self.penalty.within(self._sizes(k, reading, places, pulled), rows, np.float64(1.0 - 1e-9))
        wanted[self.penalty.place[places]] = True
        return self._whole(wanted)

    def _in_domain(self, point: Dual, c: Any) -> Any:
        """The square-root loss: ``c^2 sum s p^2 <= 1`` in every task."""
        problem, arith = self.problem, self.problem.arith
        if problem.loss != "square-root":
            return c
        for rows, p in zip((loss.rows for loss in problem.losses), point.natural, strict=True):
            norms = rows.totals(rows.s * p.square())
            for norm in (norms[i] for i in range(len(rows.tasks))):
                if not up(up(c * c) * norm.hi) <= 1:
                    most = (arith.one(1.0) / arith.sqrt(norm)).lo
                    c = np.minimum(c, most if arith.exact else np.maximum(most * (1.0 - 8.0 * UNIT), 0.0))
        return c

    def _without_penalty(
        self, k: int, point: Dual, reading: Reading, places: Array, w: Box, pulled: Box, quadratic: Box
    ) -> tuple[Box, Box]:
        """D of the penalty `none`: ``(-sum s f* - v'o - <V, W> + <R W, W>/2 - |R W - V|^2/(2 N rho)) / N``."""
        problem, arith = self.problem, self.problem.arith
        read_more(problem, self.penalty, reading, point, places, twice=True)
        m = reading.products
        rest = Box(m.lo.copy(), m.lo.copy() if m.point else m.hi.copy())
        mine = m[places]
        if not isinstance(problem.cert["intercept"], bool):
            sums = [point.v[t][:, c].total() for t, c in problem.cert.outputs]
            row = _columns([Box(_spread(b.lo, w[:1, 0]), _spread(b.hi, w[:1, 0])) for b in sums])
            row = row * arith.numbers(np.full(row.shape, problem.cert["intercept"]))
            mine = _joined([mine, row])
        left = pulled - mine
        missed = left.square().total() if left.shape[0] else arith.one(0.0)
        others = problem.penalised.copy()
        others[places] = False
        if others.any():
            missed = missed + rest[others].square().total()
        parts = problem.dual_losses(point, arith.one(1.0))
        along = (mine * w).total() if w.shape[0] else arith.one(0.0)
        ridge = arith.one(problem.cert.arrays["ridge"][k])
        minus = (along + missed / (ridge * problem.unit) * arith.one(0.5)) / problem.unit
        return parts.total() - minus + quadratic, parts

    def _falls_short(self, k: int, primal: Box, dual: Box) -> bool:
        """Whether a claim fails."""
        claims = _claims(self.problem.arith, self.problem.cert.arrays, k, primal, dual)
        return any(not least <= most for _, most, least in claims)

    def _unsettled(self, k: int, primal: Box, dual: Box, reading: Reading) -> bool:
        """Whether products in twice the precision are asked for."""
        return self._falls_short(k, primal, dual)

    def _compare(self, k: int, primal: Box, dual: Box, c: Any, failures: list[str]) -> Value:
        return _compared(self.problem.arith, self.problem.cert.arrays, k, primal, dual, c, failures)

    def _reasons(
        self, losses: Box, parts: Box, along: Array, point: Dual, c: Any, limit: int | None
    ) -> list[str]:
        """What may be behind a failure: no part of the proof. A task's part is ``F + sum s f* + <v, z>``."""
        found = list(point.dropped)
        if limit is not None and _float(c, False) < 1.0 - 1e-9:
            name = self.problem.cert.name(limit)
            found.append(f"{name} is outside the dual ball: the dual point is scaled by {_float(c, False):.12g}")
        if losses.shape[0] > 1:
            excess = [_float(a, True) - _float(b, False) for a, b in zip(losses.hi, parts.lo, strict=True)]
            excess = np.nan_to_num(excess + np.bincount(self.problem.task_of, along), nan=np.inf)
            worst = int(np.argmax(excess))
            name = self.problem.cert.tasks[worst]
            found.append(f"task {name!r} has the largest part of the loss's, {excess[worst]:.6g}")
        return found

    # -- zeros and non-zeros ---------------------------------------------------------------------------------

    def _listed(self, name: str, k: int) -> Array | None:
        arrays = self.problem.cert.arrays
        return None if name not in arrays else arrays[name][slice(*arrays[name + "_start"][k : k + 2])]

    def _radius(self, k: int, point: Dual, reading: Reading, c: Any) -> Any:
        """How far from c times the point a dual optimum is at most, by which zeros are proved; None if that is not
        known."""
        problem, arith = self.problem, self.problem.arith
        if self.penalty.name in ("sorted", "none") or self.moves(k) or reading.norms is None:
            return None
        gap = arith.one(problem.cert.arrays["gap"][k]) * problem.unit
        modulus = problem.modulus(point, Box(c), gap)
        return None if modulus is None else arith.sqrt((gap + gap) / modulus).hi

    def _zero_rows(self, k: int, point: Dual, reading: Reading, c: Any, moved: Any, wanted: Array, wider: Any) -> Array:
        """Which penalised features are zero in every solution, if |m| may be off by `moved` in length, and be larger by
        the factor `wider`: by levels, and where these do not prove what is wanted by products."""
        penalty, nothing = self.penalty, self.problem.arith.numbers(np.zeros((0, 0)))
        zero = np.zeros(len(penalty.features), dtype=bool)
        if reading.levels is not None:
            zero = penalty.clear(reading, c, moved, wider)
            zero[self._rows(reading)] = False
        for twice in (False, True):
            if reading.levels is not None or twice:
                left = self._whole(wanted & ~zero)
                read_more(self.problem, penalty, reading, point, left, twice)
            rows = self._rows(reading)
            asked = np.isin(penalty.features[rows], self._whole(wanted & ~zero))
            rows, size = rows[asked], self._sizes(k, reading, penalty.features[:0], nothing)[asked]
            zero[rows] = penalty.zeros(size * wider, rows, c, moved)
            if self.problem.arith.exact or self.hasty or zero[wanted].all():
                break
        return zero

    def _check_zeros(self, k: int, point: Dual, reading: Reading, c: Any, failures: list[str]) -> None:
        problem, arith = self.problem, self.problem.arith
        listed = self._listed("open", k)
        if listed is None:
            return
        claimed = np.ones(problem.cert.n_features, dtype=bool)
        claimed[listed] = False
        if not claimed.any():
            return
        radius = self._radius(k, point, reading, c)
        if radius is None or reading.norms is None:
            failures.append(f"nothing proves that the {int(claimed.sum())} features not listed as open are zero")
            return
        moved = up(up(reading.norms[self.penalty.features] * radius) / self._strength(k))
        zero, wanted = np.zeros(problem.cert.n_features, dtype=bool), claimed[self.penalty.features]
        one = arith.one(1.0).lo
        zero[self.penalty.features] = self._zero_rows(k, point, reading, c, moved, wanted, one)
        wrong = np.flatnonzero(claimed & ~zero)
        if len(wrong):
            failures.append(
                f"{problem.cert.name(int(wrong[0]))} is not proved to be zero in every solution"
                + (f", nor are {len(wrong) - 1} others" if len(wrong) > 1 else "")
            )

    def _check_sure(
        self, k: int, features: Array, rows: Array, scaled: Box, places: Array, failures: list[str]
    ) -> None:
        problem, arith, arrays = self.problem, self.problem.arith, self.problem.cert.arrays
        listed = self._listed("sure", k)
        if listed is None or not len(listed):
            return
        proved = np.zeros(problem.cert.n_features, dtype=bool)
        twice = arith.one(2.0 * arrays["gap"][k])
        if arrays["ridge"][k] > 0.0 and len(places):
            level = scaled.square().sum(1) * _like(arith.one(arrays["ridge"][k]), scaled[:, 0])
            proved[places] = np.asarray(level.lo > twice.hi, dtype=bool)
        loss, named = problem.cert["loss"], self._listed("open", k)
        if problem.squared and named is not None and not proved[listed].all():
            support = np.union1d(named, problem.free)
            if np.isin(features, support).all():
                reach = twice * problem.unit * arith.one(loss["mu"])
                for t in range(len(problem.tasks)):
                    if proved[listed].all():
                        break
                    absent = problem.cert.absent(t)  # zero in every solution
                    own, here = support[~absent[support]], np.flatnonzero(~absent[features])
                    bound = least_eigenvalue(problem, t, own)
                    if bound is None:
                        continue
                    kappa, d = bound
                    at = np.searchsorted(own, features[here])
                    for q in problem.outputs_of[t]:
                        size = (arith.numbers(rows[here, q]) / arith.numbers(d[at])).square()
                        size = size * _like(kappa, size)
                        proved[features[here]] |= np.asarray(size.lo > reach.hi, dtype=bool)
        wrong = [int(j) for j in listed if not proved[j]]
        if wrong:
            failures.append(
                f"{problem.cert.name(wrong[0])} is not proved to be non-zero in every solution"
                + (f", nor are {len(wrong) - 1} others" if len(wrong) > 1 else "")
            )


def least_eigenvalue(problem: Problem, t: int, features: Array) -> tuple[Box, Array] | None:
    """A bound from below of the least eigenvalue of ``D X' diag(s) X D`` in a task, and the numbers of the diagonal D,
    powers of two near the inverse norms of the columns: any will do. The constant is projected out if there are
    intercepts of any kind, penalised ones too: what they do is not in X.

    Floating: sums of n products are within gamma of the product of their columns' norms, so the matrix, with its
    trace tau, is within ``16 gamma_{n+32} tau`` of the computed one in norm; and Cholesky's method runs to its end
    for A - kappa I only if the least eigenvalue of A is at least ``kappa - 4 gamma_{k+4} tau`` (Rump 2006). Exact:
    with L any factor of about A - kappa I, ``A >= kappa I - |A - kappa I - L L'|``. """
    arith, part = problem.arith, problem.tasks[t]
    n, k = part.matrix.shape[0], len(features)
    if not n or not k or k > n:
        return None
    columns, s = part.matrix.columns(features), problem.s[t]
    centred = problem.cert["intercept"] is not False
    weight = np.array(s.hi, dtype=np.float64)
    x = columns - _shift(columns[weight > 0.0]) if centred else columns
    norms = np.sqrt((weight[:, None] * x * x).sum(axis=0))
    if not ((norms > 2.0**-900) & (norms < 2.0**900)).all():
        return None
    if weight[weight > 0.0].min() < 2.0**-900:
        return None
    powers = -np.frexp(norms)[1]
    d = np.ldexp(1.0, powers)
    x = x * d
    gram = (weight[:, None] * x).T @ x
    if centred:
        first = weight @ x
        gram = gram - np.outer(first, first) / weight.sum()
    if not np.isfinite(gram).all():
        return None
    trace = float(np.trace(gram))
    try:
        kappa = 0.9 * float(np.linalg.eigvalsh(gram)[0])
        factor = np.linalg.cholesky(gram - kappa * np.eye(k)) if kappa > 0.0 else None
    except np.linalg.LinAlgError:
        factor = None
    if factor is None:
        return None
    if not arith.exact:
        mass = float((weight[:, None] * x * x).sum())
        kappa -= (16.0 * gamma(n + 32) + 4.0 * gamma(k + 4)) * (trace + mass) * (1.0 + 1e-9)
        return (Box(np.float64(kappa)), d) if kappa > 0.0 else None
    whole, power = _integers(columns)
    whole, power = np.left_shift(whole, (powers - powers.min()).astype(object)), power + int(powers.min())
    lower, other = _integers(factor)
    weights, denominator = _common(s.lo)
    matrix = np.dot(whole.T * weights, whole) * (_power(2 * power) / denominator)
    if centred:
        first = np.dot(weights, whole) * (_power(power) / denominator)
        matrix = matrix - np.multiply.outer(first, first) / _exact_sum(s.lo)
    rest = matrix - np.dot(lower, lower.T) * _power(2 * other)
    rest[np.arange(k), np.arange(k)] -= Fraction(kappa)
    bound = Fraction(kappa) - max(abs(rest).sum(axis=1))
    return (Box(bound), d) if bound > 0 else None


# --- all of it ----------------------------------------------------------------------------------------------


def verify(
    certificate: Any,
    X: Any,
    y: Any,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    value: int | None = None,
    exact: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Whether the data prove what a certificate claims.

    Parameters
    ----------
    certificate : path, bytes or Certificate
    X, y, task, sample_weight, offset
        The data as they were fitted: rows stacked with the task of each, lists or dicts of tasks, or one shared
        matrix.
    value : int, optional
        One value of a path; by default all.
    exact : bool
        Fractions in place of floating point.
    progress : callable, optional
        Is told how far a long check is.

    Returns
    -------
    Verdict

    Raises
    ------
    Unreadable
        The certificate cannot be read.
    """
    cert = certificate if isinstance(certificate, Certificate) else read_certificate(certificate)
    if value is not None and not -cert.n_values <= value < cert.n_values:
        raise Unreadable(f"the certificate has {cert.n_values} values: there is no value {value}")
    values = range(cert.n_values) if value is None else [value % cert.n_values]
    say = progress or (lambda words: None)
    with np.errstate(all="ignore"):
        try:
            tasks = arrange(cert, X, y, task, sample_weight, offset)
            wrong = check_digests(cert, tasks)
            if wrong:
                return _refuse(wrong)
            found: list[Value] = []
            for bits in (160, 640) if exact else (0,):
                arith: Any = Exact(bits, quick=True) if exact else Floating(quick=True)
                found = _check_values(cert, tasks, values, arith, say)
                if not any(one.close for one in found):
                    break
            good = {one.index: one.objective for one in found if not one.failures}
            needs = _check_needs(cert, tasks, good, Exact(160, quick=True) if exact else Floating(quick=True), say)
        except (Mismatch, Undecided) as error:
            return _refuse([str(error)])
        except (MemoryError, OverflowError, ZeroDivisionError) as error:
            return _refuse([f"the numbers are too large to be checked here ({type(error).__name__})"])
    failures = [f"value {one.index} (alpha = {one.alpha:g}): {words}" for one in found for words in one.failures]
    if any(one.close for one in found) and not exact:
        failures.append(_CLOSE)
    failures += [f"value {need.value}: {words}" for need in needs for words in need.failures]
    if failures:
        return Verdict(False, "\n".join(["not proved:", *failures]), failures, found, needs)
    worst = max(one.gap for one in found)
    what = "no model of this kind is better" if len(found) == 1 else f"none of {len(found)} models can be better"
    words = f"proved: {what} by more than {_upwards(worst)} ({(Exact if exact else Floating).words})"
    told = [words, *_need_words(cert, needs), *described(cert, tasks, found), f"verify.py {PROGRAM}"]
    return Verdict(True, "\n".join(told), [], found, needs)


_CLOSE = "so little is missing that rounding may be the reason: exact arithmetic (--exact) decides"


_NEEDS_TOLD = 20


def _need_words(cert: Certificate, needs: list[Need]) -> list[str]:
    """What is needed, the strongest first."""
    if not needs:
        return []
    found = [f"{len(needs)} claim{'s' * (len(needs) != 1)} that this optimum needs features (not that these matter): "
             "models without them are worse than these coefficients, by at least"]  # fmt: skip
    for need in sorted(needs, key=lambda one: -one.claimed)[:_NEEDS_TOLD]:
        names = ", ".join(cert.name(j) for j in need.features)
        several = "" if len(need.features) == 1 else f" (one of {len(need.features)})"
        found.append(f"  {need.claimed:.6g} without {names}{several}")
    return found + [f"  ... and {len(needs) - _NEEDS_TOLD} more"] * (len(needs) > _NEEDS_TOLD)


def _upwards(number: float) -> str:
    """Six digits, no less than the number."""
    words = f"{number:.6g}"
    return words if float(words) >= number else f"{number * (1.0 + 1e-5):.6g}"


def described(cert: Certificate, tasks: list[Task], values: list[Value]) -> list[str]:
    """What was proved, of which problem: words about the header and the data, so that no other is taken for it."""
    loss, penalty, arrays = cert["loss"], dict(cert["penalty"]), cert.arrays
    told = _loss_words(loss)
    if loss["name"] == "mixed":
        each = zip(cert.tasks, loss["losses"], loss["weights"], loss["scales"], strict=True)
        told = "mixed: " + ", ".join(
            f"{task!r} {weight:g} x {_loss_words(own)}" + (f" of labels in units of {scale:g}" if scale != 1.0 else "")
            for task, own, weight, scale in each
        )
    alphas = [one.alpha for one in values]
    span = f"{alphas[0]:g}" if len(alphas) == 1 else f"{max(alphas):g} to {min(alphas):g}"
    ridge = max(float(arrays["ridge"][one.index]) for one in values)
    if "l1" in arrays:
        penalty["l1"] = "by feature"
    parts = [
        f"loss {told}",
        f"penalty {_with(penalty.pop('name'), penalty)}",
        f"alpha = {span}",
        f"ridge up to {ridge:g}" if ridge and len(alphas) > 1 else f"ridge {ridge:g}" if ridge else "",
        f"objective divided by N = {cert['unit']:g}",
        _intercept_words(cert["intercept"]),
        "columns standardised" if cert["standardize"] else "",
        "coefficients >= 0" if cert["positive"] else "",
        "a graph between tasks" if "edges" in arrays else "",
    ]
    target = (cert.header.get("table") or cert.header.get("genotypes") or {}).get("target")
    targets = [_target_words(one) for one in (target if isinstance(target, list) else [target]) if one is not None]
    n_free = int((arrays.get("feature_weights", np.ones(1)) == 0.0).sum())
    given = any((part.weight[part.weight > 0.0] != 1.0).any() for part in tasks)
    n_absent = len(arrays.get("absent", ()))
    left_out = sum(getattr(part.matrix, "left_out", 0) for part in tasks)
    data = [
        f"target{'s' * (len(targets) > 1)} {', '.join(targets)}" if targets else "",
        f"{len(cert.tasks)} task{'s' * (len(cert.tasks) != 1)}",
        f"{sum(int((part.weight > 0.0).sum()) for part in tasks)} labels used",
        f"{cert.n_features} features" + (f", {n_free} of them never penalised" if n_free else ""),
        f"tasks are patterns of present columns, {n_absent} columns of tasks are absent" if n_absent else "",
        f"{left_out} values that are there are left out" if left_out else "",
        "feature weights as given" if not np.isin(arrays.get("feature_weights", 1.0), (0.0, 1.0)).all() else "",
        "sample weights as given" if given else "no sample weights",
        "weights of tasks" if cert["task_weights"] is not None else "",
        "weights of classes" if cert["class_weights"] is not None else "",
        "with offsets" if cert["offset"] else "",
        getattr(tasks[0].matrix, "words", ""),
    ]
    return ["problem: " + "; ".join(filter(None, parts)), "data: " + "; ".join(filter(None, data)), *_orders(cert)]


def _orders(cert: Certificate) -> list[str]:
    """Ordered classes from the lowest to the highest: of all tasks, or of each that has any."""
    each = {label: " < ".join(map(str, cert.classes(t)))
            for t, label in enumerate(cert.tasks) if kind_of(cert.loss(t)) == "ordered"}  # fmt: skip
    if len(each) == len(cert.tasks) and len(set(each.values())) == 1:
        return [f"order of the classes: {each[cert.tasks[0]]}"]
    return [f"order of the classes of task {label!r}: {order}" for label, order in each.items()]


def _target_words(target: str | dict[str, Any]) -> str:
    if isinstance(target, str):
        return repr(target)
    wanted = f" == {target['equals']!r}" if "equals" in target else ""
    beside = "".join(f", {key} {target[key]!r}" for key in ("entry", "strata") if target.get(key) is not None)
    return f"(time {target['time']!r}, event {target['event']!r}{wanted}{beside})"


def _loss_words(loss: dict[str, Any]) -> str:
    plain = loss["name"] == "clipped" and loss["labels"] == "numbers" and loss["low"] is None and loss["high"] is None
    name = "squared" if plain and loss["epsilon"] == 0.0 and loss["mu"] == 1.0 else loss["name"]
    return _with(name, {key: v for key, v in loss.items() if key not in ("name", "labels") and name != "squared"})


def _intercept_words(intercept: Any) -> str:
    if isinstance(intercept, bool):
        return "with intercepts" if intercept else "without intercepts"
    return f"with penalised intercepts (constant column {intercept:g})"


def _with(name: str, options: dict[str, Any]) -> str:
    told = {key: f"{v:g}" if isinstance(v, int | float) else v for key, v in options.items() if v is not None}
    return f"{name} ({', '.join(f'{key} {v}' for key, v in told.items())})" if told else name


def _refuse(reasons: list[str]) -> Verdict:
    return Verdict(False, "\n".join(["not proved:", *reasons]), reasons)


def read_values(
    checker: Checker, values: Sequence[int], norms: bool, say: Callable[[str], None]
) -> Iterator[tuple[int, Dual, Reading]]:
    """Values, their dual points and what passes over the data say of them, several in one pass."""
    problem, cert = checker.problem, checker.problem.cert
    bent = checker.penalty.name == "sorted" and any(map(checker.moves, values))
    quick = problem.arith.plain and not bent and checker.penalty.name != "none"
    size = cert.n_features * len(cert.outputs)
    if quick:
        rows = sum(len(y) * len(own) for y, own in zip(problem.y, problem.outputs_of, strict=True))
        size = max(cert.n_features, 4 * rows, 128 * len(cert.outputs))
    together = max(1, _PRODUCTS // size)
    for a in range(0, len(values), together):
        some = list(values[a : a + together])
        points = [problem.project(k) for k in some]
        if quick:
            readings = read_lengths(problem, checker.penalty, points, some, norms, say)
        else:
            pairs = zip(some, points, strict=True) if problem.arith.exact and problem.arith.quick else ()
            whole = [read_whole(problem, checker.penalty, point, k, norms, say) for k, point in pairs]
            readings = [one for one in whole if one is not None] or read_features(problem, points, norms, say)
        if quick and len(cert.arrays["coef"]):
            problem.read_scores(some)
        yield from zip(some, points, readings, strict=True)
        say(f"{a + len(some)} of {len(values)} values")


def _check_values(
    cert: Certificate, tasks: list[Task], values: Sequence[int], arith: Any, say: Callable[[str], None]
) -> list[Value]:
    checker = Checker(Problem(cert, tasks, arith))
    found = [checker.check(*one) for one in read_values(checker, values, "open" in cert.arrays, say)]
    if arith.quick:  # what has failed is checked again, value by value, with the narrowest bounds
        for i, one in enumerate(found):
            if one.failures:
                narrow = Exact(arith.bits) if arith.exact else Floating()
                found[i] = _check_values(cert, tasks, [one.index], narrow, say)[0]
    return found


def reduced_problems(cert: Certificate, at: Array, duals: Array) -> Certificate:
    """Values of a certificate, each as often as it is listed, without coefficients and with other vectors."""
    arrays = cert.arrays
    own = ("alpha", "ridge", "objective", "dual_value", "gap", "intercept", "thresholds")
    others = {"dual", *own, *_NEED, *_LISTS, *(name for part in _LISTS.values() for name in part)}
    found = {name: values for name, values in arrays.items() if name not in others}
    found |= {name: arrays[name][at] for name in own if name in arrays}
    nothing = np.zeros(0, dtype=np.int64)
    found |= {"start": np.zeros(len(at) + 1, dtype=np.int64), "feature": nothing, "output": nothing}
    return Certificate(cert.header, found | {"coef": np.zeros(0), "dual": duals})


def _check_needs(
    cert: Certificate, tasks: list[Task], objectives: dict[int, float], arith: Any, say: Callable[[str], None]
) -> list[Need]:
    """The claims of need about some values, given upper bounds of the objectives of their coefficients."""
    arrays = cert.arrays
    which = np.flatnonzero(np.isin(arrays.get("need_value", ()), list(objectives)))
    if not len(which):
        return []
    found: list[Need] = []
    reduced = reduced_problems(cert, arrays["need_value"][which], arrays["need_dual"][which])
    checker = Checker(Problem(reduced, tasks, arith))
    for i, point, reading in read_values(checker, range(len(which)), False, say):
        one, k = which[i], int(arrays["need_value"][which[i]])
        features = arrays["need"][slice(*arrays["need_start"][one : one + 2])]
        top, claimed = arith.one(objectives[k]), arith.one(arrays["need_delta"][one])
        least = (top + claimed).hi
        dual = checker.without(i, point, reading, features, least)
        need = Need(k, features.tolist(), float(arrays["need_delta"][one]), _float((dual - top).lo, False), [])
        if not least <= dual.lo:
            names = ", ".join(map(cert.name, need.features))
            need.failures.append(
                f"models without {names} are proved to be worse by {need.delta:.6g} only, claimed {need.claimed:.6g}"
            )
        found.append(need)
    if arith.quick:  # what has failed is checked again, with the narrowest bounds
        for i, need in enumerate(found):
            if need.failures:
                narrow = Exact(640) if arith.exact else Floating()
                found[i] = _check_needs(_one_need(cert, int(which[i])), tasks, objectives, narrow, say)[0]
    return found


def _one_need(cert: Certificate, i: int) -> Certificate:
    """The certificate with one of its claims of need."""
    arrays = dict(cert.arrays)
    here = slice(*arrays["need_start"][i : i + 2])
    arrays |= {name: arrays[name][i : i + 1] for name in ("need_value", "need_delta", "need_dual")}
    arrays |= {"need": arrays["need"][here], "need_start": np.array([0, here.stop - here.start])}
    return Certificate(cert.header, arrays)


# --- files of data ------------------------------------------------------------------------------------------


def _cell(word: str, recipe: dict[str, Any], missing: set[str], where: str) -> float | None:
    """One entry of X from one word of a table; None where it is missing and nothing fills it; NaN: the task does."""
    if "missing" in recipe:
        return float(word in missing)
    if word in missing:
        if "fill" in recipe:
            return np.nan if isinstance(recipe["fill"], list) else float(recipe["fill"])
        return 0.0 if "equals" in recipe and recipe["equals"] in missing else None
    if "equals" in recipe:
        wanted = recipe["equals"]
        if isinstance(wanted, str):
            return float(word == wanted)
        return float(_word_number(word, where + repr(recipe["source"])) == wanted)
    return _word_number(word, where + repr(recipe["source"]))


def _word_number(word: str, where: str) -> float:
    try:
        found = float(word if "_" not in word else "no")
    except ValueError:
        raise Mismatch(f"{where}: {word!r} is not a number") from None
    if not math.isfinite(found):
        raise Mismatch(f"{where}: {word!r} is not a finite number")
    return found


_OUTCOME = ("time", "event", "entry", "strata")  # columns of times to an event


def _columns_of(target: str | dict[str, Any]) -> list[str]:
    """The columns that labels are read from."""
    return [target] if isinstance(target, str) else [target[key] for key in _OUTCOME if target.get(key) is not None]


def read_table(cert: Certificate, path: str) -> dict[str, Any]:
    """X, y, task, ... of a table of text, by the recipe in the certificate's header."""
    table = cert.header.get("table")
    if table is None:
        raise Unreadable("the certificate does not say how a table was read: give arrays (--matrix, --y, --task)")
    recipes, missing, several = table["columns"], set(table["missing"]), isinstance(table["target"], list)
    targets = table["target"] if several else [table["target"]]
    others = _others(table)
    x: list[list[float | None]] = []
    needed = [name for target in targets for name in _columns_of(target)]
    words: dict[str, list[str | None]] = {name: [] for name in [*needed, *others.values()]}
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, delimiter=table["separator"])
            names = next(rows, [])
            place, counts = {name: k for k, name in enumerate(names)}, Counter(names)
            for name in [*(recipe["source"] for recipe in recipes), *words]:
                if counts[name] != 1:
                    raise Mismatch(f"{path} has {counts[name]} columns {name!r}, the certificate needs one")
            for number, row in enumerate(filter(None, rows), start=1):  # rows of data, empty lines left out
                if len(row) != len(names):
                    raise Mismatch(f"{path}, row {number}: {len(row)} cells, not {len(names)}")
                where = f"{path}, row {number}, column "
                entries = [_cell(row[place[one["source"]]], one, missing, where) for one in recipes]
                if cert.header.get("patterns") is not None:  # what is missing is absent
                    entries = [np.nan if one is None else one for one in entries]
                cells = {name: None if row[place[name]] in missing else row[place[name]] for name in words}
                if several and all(None in map(cells.get, _columns_of(target)) for target in targets):
                    continue  # no label at all
                if None in entries or None in map(cells.get, others.values()):
                    if table["drop"]:
                        continue
                    raise Mismatch(f"{path}, row {number}: a value is missing, and nothing fills it")
                x.append(entries)
                for name, column in words.items():
                    column.append(cells[name])
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise Mismatch(f"{path} is not the table of the certificate: {error}") from None

    found: dict[str, Any] = {"X": np.array(x, dtype=np.float64).reshape(len(x), len(recipes))}
    found |= _by_role(cert, table, words, len(x), path)
    _fill_by_task(cert, recipes, found, path)
    return found


def _by_role(
    cert: Certificate, recipe: dict[str, Any], words: dict[str, list[str | None]], n: int, path: str
) -> dict[str, Any]:
    """y, and task, sample_weight and offset where there are any, of n rows whose cells are words."""
    found: dict[str, Any] = {}
    given = (cert.header.get("patterns") or {}).get("of") or cert.tasks  # the tasks of the table
    for key, name in _others(recipe).items():
        labels = [None if word is None else _tidy(word, given) for word in words[name]]
        where = f"{path}, column {name!r}"
        own = np.array(labels, dtype=object) if key == "task" else _word_numbers(words[name], where)
        found["sample_weight" if key == "weight" else key] = own
    place = {_key(label): t for t, label in enumerate(given)}
    which = [place.get(_key(label), 0) for label in found["task"]] if "task" in found else [0] * n
    several = isinstance(recipe["target"], list)
    targets = recipe["target"] if several else [recipe["target"]]
    ys = [_labels_of(cert, target, words, [t] * n if several else which, path) for t, target in enumerate(targets)]
    plain = several and len({one.dtype for one in ys}) == 1 and ys[0].dtype.names is None
    found["y"] = np.stack(ys, axis=1) if plain else dict(zip(cert.tasks, ys, strict=True)) if several else ys[0]
    return found


def _others(recipe: dict[str, Any]) -> dict[str, str]:
    """The columns beside features and labels."""
    return {key: recipe[key] for key in ("task", "weight", "offset") if recipe.get(key) is not None}


def _fill_by_task(cert: Certificate, recipes: list[dict[str, Any]], found: dict[str, Any], path: str) -> None:
    """Missing entries that the task of their row fills."""
    place = {_key(label): t for t, label in enumerate(cert.tasks)}
    for j, one in enumerate(recipes):
        if not isinstance(one.get("fill"), list):
            continue
        for i in np.flatnonzero(np.isnan(found["X"][:, j])).tolist():
            label = found["task"][i]
            if _key(label) not in place:
                raise Mismatch(f"{path}: task {label!r} is not in the certificate")
            found["X"][i, j] = one["fill"][place[_key(label)]]


def _word_numbers(words: list[str | None], where: str) -> Array:
    """NaN where there is nothing."""
    return np.array([np.nan if word is None else _word_number(word, where) for word in words], dtype=np.float64)


def _labels_of(
    cert: Certificate, target: str | dict[str, Any], words: dict[str, list[str | None]], which: list[int], path: str
) -> Array:
    """Labels of a target in rows whose tasks are `which`: of classes None where there are none, of numbers NaN; of
    times to an event records."""
    columns = _columns_of(target)
    there = [None not in row for row in zip(*(words[name] for name in columns), strict=True)]

    def seen(name: str) -> list[str | None]:
        return [word if here else None for word, here in zip(words[name], there, strict=True)]

    where, first = f"{path}, column {columns[0]!r}", seen(columns[0])
    classes = [[] if kind_of(cert.loss(t)) in ("numbers", "survival") else cert.classes(t)
               for t in range(len(cert.tasks))]  # fmt: skip
    if any(classes[t] for t in set(which)):
        labels = np.empty(len(which), dtype=object)
        labels[:] = [None if word is None else _tidy(word, classes[t]) if classes[t] else _word_number(word, where)
                     for word, t in zip(first, which, strict=True)]  # fmt: skip
    else:
        labels = _word_numbers(first, where)
    if isinstance(target, str):
        return labels
    parts = {"time": labels}
    event, wanted, where = target["event"], target.get("equals"), f"{path}, column {target['event']!r}"
    if isinstance(wanted, str):
        parts["event"] = np.array([np.nan if word is None else float(word == wanted) for word in seen(event)])
    else:
        parts["event"] = _word_numbers(seen(event), where)
        if wanted is not None:
            parts["event"] = np.where(np.isnan(parts["event"]), np.nan, parts["event"] == wanted)
    if target.get("entry") is not None:
        entry = _word_numbers(seen(target["entry"]), f"{path}, column {target['entry']!r}")
        parts["entry"] = np.where(there, entry, -np.inf)
    if target.get("strata") is not None:
        strata = [word or "" for word in seen(target["strata"])]
        parts["stratum"] = np.array(_as_numbers(strata, there) or strata)
    found = np.empty(len(which), dtype=[(name, values.dtype) for name, values in parts.items()])
    for name, values in parts.items():
        found[name] = values
    return found


def _as_numbers(words: list[str], there: list[bool]) -> list[float]:
    """Labels as numbers where all of them are: 1 and 1.0 are one stratum; else nothing."""
    try:
        return [_word_number(word, "") if here else 0.0 for word, here in zip(words, there, strict=True)]
    except Mismatch:
        return []


def _tidy(word: str, labels: list[Any]) -> Any:
    """A word as a label: as a number where all labels are."""
    if all(isinstance(label, int | float) for label in labels):
        try:
            return _word_number(word, "")
        except Mismatch:
            return word
    return word


def _is_target(target: Any, kinds: Sequence[str]) -> bool:
    """Whether labels of these kinds can be read from it."""
    if isinstance(target, str):
        return "survival" not in kinds
    return (
        isinstance(target, dict)
        and "survival" in kinds
        and set(target) <= {*_OUTCOME, "equals"}
        and all(isinstance(target.get(key), str) for key in ("time", "event"))
        and all(isinstance(target.get(key), str | None) for key in ("entry", "strata"))
        and isinstance(target.get("equals", ""), str | int | float)
    )


def _are_roles(header: dict[str, Any], recipe: dict[str, Any]) -> bool:
    """Whether a recipe says which columns labels, tasks, weights and offsets are."""
    loss, target = header["loss"], recipe.get("target")
    kinds = [kind_of(own) for own in (loss["losses"] if loss["name"] == "mixed" else [loss] * len(header["tasks"]))]
    if isinstance(target, list):
        readable = header["shared"] and len(target) == len(kinds)
        readable = readable and all(_is_target(one, [kind]) for one, kind in zip(target, kinds, strict=True))
    else:
        readable = _is_target(target, kinds)
    return bool(readable) and all(isinstance(recipe.get(key), str | None) for key in ("task", "weight", "offset"))


def _check_table(header: dict[str, Any]) -> None:
    table = header.get("table")
    if table is None:
        return
    sound = (
        isinstance(table, dict)
        and set(table) <= {"columns", "missing", "separator", "drop", "target", "task", "weight", "offset"}
        and isinstance(table.get("columns"), list)
        and len(table["columns"]) == header["n_features"]
        and all(
            isinstance(one, dict)
            and isinstance(one.get("source"), str)
            and set(one) <= {"source", "equals", "fill", "missing"}
            and isinstance(one.get("equals", ""), str | int | float)
            and ("missing" not in one or (one["missing"] is True and len(one) == 2))
            for one in table["columns"]
        )
        and _texts(table.get("missing"))
        and isinstance(table.get("separator"), str)
        and len(table["separator"]) == 1
        and isinstance(table.get("drop"), bool)
        and _are_roles(header, table)
    )
    if not sound:
        raise Unreadable("header: 'table' does not say how a table is read")
    for one in table["columns"]:
        if isinstance(one.get("fill"), list):  # a number for each task
            if header["shared"] or table.get("task") is None or len(one["fill"]) != len(header["tasks"]):
                raise Unreadable("header: table.columns.fill must have a number for each task of the column of tasks")
            one["fill"] = [_number(value, "table.columns.fill") for value in one["fill"]]
        elif "fill" in one:
            one["fill"] = _number(one["fill"], "table.columns.fill")


def read_arrays(path: str) -> dict[str, Any]:
    """X, y, task, sample_weight and offset of an npz file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # zipfile, zlib and NumPy each have errors of their own
        raise Unreadable(f"{path} is not a file of arrays: {error}") from None
    if "X" not in found or "y" not in found:
        raise Unreadable(f"{path} must hold arrays X and y (and task, sample_weight, offset if used)")
    return {name: found[name] for name in ("X", "y", "task", "sample_weight", "offset") if name in found}


def _load(path: str) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Unreadable(f"cannot read {path}: {error}") from None


# --- files of genotypes -------------------------------------------------------------------------------------

_MISSING = 1  # by the two bits of a call; 0, 2 and 3: two copies of the first allele, one, none
_TURNED = np.array([3, 1, 2, 0], dtype=np.uint8)  # the same call, counting the other allele
_OTHER_STRAND = str.maketrans("ACGT", "TGCA")
_CHROMOSOMES = {"23": "X", "24": "Y", "25": "XY", "26": "MT", "M": "MT"}
_ELSEWHERE = (
    "genotypes are read from .bed files, which plink2 --pfile PREFIX --make-bed --out PREFIX makes of PLINK 2 files "
    "(--vcf, --bgen in its place: of others)"
)


class BedFile:
    """Calls of a .bed file, mapped; people ("FID IID") of the .fam file, variants of the .bim file beside it."""

    def __init__(self, prefix: str, name: str) -> None:
        self.name = name
        self.people = [" ".join(row[:2]) for row in _six_fields(f"{prefix}.fam")]
        self.variants = [_variant(row[0], row[3], row[1], row[4], row[5]) for row in _six_fields(f"{prefix}.bim")]
        if len(set(self.people)) != len(self.people):
            raise Mismatch(f"{prefix}.fam lists a person twice")
        path, width = f"{prefix}.bed", (len(self.people) + 3) // 4
        try:
            with open(path, "rb") as file:
                head, size = file.read(3), file.seek(0, 2)
            if head != b"\x6c\x1b\x01":
                raise Mismatch(f"{path} is no .bed file with a variant after another: {_ELSEWHERE}")
            if size != 3 + width * len(self.variants):
                raise Mismatch(
                    f"{path} has {size} bytes; {len(self.people)} people and {len(self.variants)} variants make "
                    f"{3 + width * len(self.variants)}: it is cut short, or another .bim or .fam file lies beside it"
                )
            self.calls: Array = np.memmap(path, dtype=np.uint8, mode="r", offset=3, shape=(len(self.variants), width))
        except OSError as error:
            raise Unreadable(f"cannot read {path}: {error.strerror or error}") from None

    def place(self, people: dict[str, int], wanted: list[tuple[str, int, str, str, str]]) -> None:
        """Find people and variants of a certificate: lines of each here, -1 where it is not here, and whether the
        other allele is the first one. A variant is found by chromosome, position and alleles, either way round, on
        either strand; by its name, too, where that leaves several."""
        self.person = np.full(len(people), -1, dtype=np.int64)
        for line, name in enumerate(self.people):
            if name in people:
                self.person[people[name]] = line
        at: dict[tuple[str, int], list[int]] = {}
        for line, (chromosome, position, *_) in enumerate(self.variants):
            at.setdefault((chromosome, position), []).append(line)
        self.line, self.turned = np.full(len(wanted), -1, dtype=np.int64), np.zeros(len(wanted), dtype=bool)
        for j, (chromosome, position, name, first, second) in enumerate(wanted):
            turned = {(first, second): False, (second, first): True}
            strand = [allele.translate(_OTHER_STRAND)[::-1] for allele in (first, second)]
            if strand[0] != second:
                turned |= {(strand[0], strand[1]): False, (strand[1], strand[0]): True}
            fitting = [line for line in at.get((chromosome, position), ()) if self.variants[line][3:] in turned]
            if len(fitting) > 1:
                fitting = [line for line in fitting if self.variants[line][2] == name]
            if len(fitting) > 1:
                raise Mismatch(f"{self.name}.bim has the variant {name} ({chromosome}:{position}) several times")
            if fitting:
                self.line[j], self.turned[j] = fitting[0], turned[self.variants[fitting[0]][3:]]


def _variant(chromosome: str, position: str, name: str, first: str, second: str) -> tuple[str, int, str, str, str]:
    """``chr7`` is 7, 23 is X; alleles in capitals."""
    bare = chromosome[3:] if chromosome[:3].lower() == "chr" else chromosome
    bare = _CHROMOSOMES.get(bare.upper(), bare.upper() if len(bare) <= 2 else bare)
    if not (position.removeprefix("-").isdecimal() and position.isascii() and len(position) < 19):
        raise Mismatch(f"variant {name}: the position {position!r} is no whole number")
    return bare, int(position), name, first.upper(), second.upper()


def _text_lines(path: str) -> list[str]:
    """Lines that are not blank."""
    try:
        with open(path, encoding="utf-8") as file:
            return [line for line in file if line.strip()]
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise Mismatch(f"{path} is no text in UTF-8: {error}") from None


def _six_fields(path: str) -> list[list[str]]:
    rows = [line.split() for line in _text_lines(path)]
    for row in rows:
        if len(row) != 6:
            raise Mismatch(f"{path}: {len(row)} fields where 6 are expected: {' '.join(row[:4])}")
    if not rows:
        raise Mismatch(f"{path} is empty")
    return rows


def _bed_files(prefix: str) -> list[BedFile]:
    """Of a prefix, in which @ stands for a chromosome."""
    names = [str(k) for k in range(1, 27)] + ["X", "Y", "XY", "MT"] if "@" in Path(prefix).name else [""]
    found = [prefix.replace("@", name).removesuffix(".bed") for name in names]
    if len(found) > 1:
        found = [one for one in found if Path(f"{one}.bed").exists()]
    if not found:
        raise Unreadable(f"there is no .bed file with a chromosome in the place of @ in {prefix}")
    return [BedFile(one, Path(prefix).name) for one in found]


class GenotypeMatrix(Matrix):
    """Covariates, then the copies (0, 1, 2) of each variant's counted allele. A missing call of a person of task t is

        fl(C / K),   C the copies in all calls of the variant among the listed people of task t, K the number of calls

    one rounding of whole numbers, the same everywhere; over all listed people where the task has no call, and 0 where
    no person has one. `codes` are the tasks of people; means are of all of them, whichever rows are taken."""

    def __init__(self, files: list[BedFile], covariates: Array, codes: Array) -> None:
        self._files, self._covariates, self._codes, self._rows = files, covariates, codes, np.arange(len(codes))
        self._means: dict[int, Array] = {}
        self.shape = (len(codes), covariates.shape[1] + len(files[0].line))
        n_people = len({person for file in files for person in file.people})
        n_variants = sum(len(file.variants) for file in files if file.name == files[0].name)
        self.words = (
            f"{len(codes)} of {n_people} people and {len(files[0].line)} of {n_variants} variants of "
            f"{', '.join(dict.fromkeys(file.name for file in files))}, missing calls filled by the means of their tasks"
        )

    def take_rows(self, rows: Array) -> GenotypeMatrix:
        part = copy(self)
        part._rows, part.shape = self._rows[rows], (len(rows), self.shape[1])
        return part

    def columns(self, features: Any) -> Array:
        features = np.arange(self.shape[1])[features]
        first = self._covariates.shape[1]
        free = features < first
        out = np.empty((len(self._rows), len(features)))
        out[:, free] = self._covariates[self._rows][:, features[free]]
        own = np.flatnonzero(~free)
        for some in _some(own, len(self._rows)):
            variants = features[some] - first
            out[:, some] = self._counts(self._calls(self._rows, variants), self._rows, variants).T
        return out

    def digest(self) -> str:
        """Rows after rows, while the calls lie variant after variant: so many rows at a time as 2^27 calls are."""
        found, n_variants = hashlib.sha256(), len(self._files[0].line)
        variants, height = np.arange(n_variants), max(1, (1 << 27) // n_variants)
        for a in range(0, len(self._rows), height):
            rows = self._rows[a : a + height]
            calls = np.empty((n_variants, len(rows)), dtype=np.uint8)
            for some in _some(variants, len(self._files[0].people)):
                calls[some] = self._calls(rows, some)
            step = max(1, _ENTRIES // self.shape[1])
            for b in range(0, len(rows), step):
                part = rows[b : b + step]
                counts = self._counts(calls[:, b : b + step], part, variants)
                found.update(_bytes(np.hstack([self._covariates[part], counts.T])))
        return found.hexdigest()

    def _calls(self, people: Array, variants: Array) -> Array:
        """The two bits of each call (variants x people), the counted allele first."""
        out = np.full((len(variants), len(people)), _MISSING, dtype=np.uint8)
        for file in self._files:
            here, own = np.flatnonzero(file.person[people] >= 0), np.flatnonzero(file.line[variants] >= 0)
            if len(here) and len(own):
                person = file.person[people[here]]
                calls = np.take(file.calls[file.line[variants[own]]], person >> 2, axis=1)
                calls = calls >> (2 * (person & 3)).astype(np.uint8) & 3
                turned = file.turned[variants[own]]
                calls[turned] = _TURNED[calls[turned]]
                out[np.ix_(own, here)] = calls
        return out

    def _counts(self, calls: Array, people: Array, variants: Array) -> Array:
        """Calls (variants x people) as numbers, the missing ones filled."""
        found = ((4 - calls) >> 1).astype(np.float64)  # 0, 2, 3: 2, 1, 0
        holes, rows = np.nonzero(calls == _MISSING)
        codes = self._codes[people[rows]]
        for t in np.unique(codes).tolist():
            here = np.flatnonzero(codes == t)
            own, place = np.unique(holes[here], return_inverse=True)
            found[holes[here], rows[here]] = self._mean(t, variants[own])[place]
        return found

    def _mean(self, t: int, variants: Array) -> Array:
        """What fills missing calls of a task."""
        known = self._means.setdefault(t, np.full(len(self._files[0].line), np.nan))
        for some in _some(variants[np.isnan(known[variants])], len(self._codes)):
            copies, called = self._sums(np.flatnonzero(self._codes == t), some)
            uncalled = np.flatnonzero(called == 0)
            if len(uncalled):
                copies[uncalled], called[uncalled] = self._sums(np.arange(len(self._codes)), some[uncalled])
            known[some] = np.where(called > 0, copies / np.maximum(called, 1), 0.0)
        return known[variants]

    def _sums(self, people: Array, variants: Array) -> tuple[Array, Array]:
        """Copies in the calls of each variant, and the number of these."""
        calls = self._calls(people, variants)
        return 2 * (calls == 0).sum(axis=1) + (calls == 2).sum(axis=1), (calls != _MISSING).sum(axis=1)


class PeopleFile:
    """A file of text about people: FID, IID and columns, with a line of names that begins with FID or IID (then IIDs
    alone name people), or without: PHENO1, PHENO2, ..."""

    def __init__(self, path: str, people: list[str]) -> None:
        self.path = path
        lines = [_blank_cells(line) for line in _text_lines(path) if not line.startswith("##")]
        if not lines:
            raise Mismatch(f"{path} is empty")
        head = lines[0][0].upper().removeprefix("#")
        width = 1 if head == "IID" else 2
        self.names = [f"PHENO{k + 1}" for k in range(len(lines[0]) - 2)]
        if head in ("FID", "IID"):
            self.names, lines = lines[0][width:], lines[1:]
        known: dict[str, list[str]] = {}
        for row in lines:
            key = " ".join(row[:width])
            if len(row) != width + len(self.names) or key in known:
                raise Mismatch(f"{path}: {key} has {len(row)} fields, or is there twice")
            known[key] = row[width:]
        self._rows = [known.get(name if width == 2 else name.split(" ")[1]) for name in people]

    def column(self, name: str) -> list[str | None]:
        """In the order of people; None where a person is not there, or the word is no value."""
        if self.names.count(name) != 1:
            raise Mismatch(f"{self.path} has {self.names.count(name)} columns {name!r}, the certificate needs one")
        k = self.names.index(name)
        return [None if row is None or _no_value(row[k]) else row[k] for row in self._rows]


def _no_value(word: str) -> bool:
    """As PLINK has it: NA and the like, and the number -9 however it is written."""
    try:
        return word.upper() in ("NA", "N/A", "NAN", "", ".") or float(word) == -9.0
    except ValueError:
        return False


def _blank_cells(line: str) -> list[str]:
    """Between tabs, where cells may be empty, or between any blanks."""
    cells = [cell.strip() for cell in line.split("\t")]
    return line.split() if len(cells) == 1 or any(" " in cell for cell in cells) else cells


def read_genotypes(cert: Certificate, prefixes: Sequence[str], pheno: str, covar: str | None = None) -> dict[str, Any]:
    """X, y, task, ... of .bed files and files of phenotypes and covariates, by the certificate's header."""
    recipe = cert.header.get("genotypes")
    if recipe is None:
        raise Unreadable("the certificate does not say how genotypes were read: give arrays (--matrix, --y, --task)")
    people: list[str] = recipe["people"]
    wanted = [_variant(*one.split(" ")) for one in recipe["variants"]]
    files = [file for prefix in prefixes for file in _bed_files(prefix)]
    for file in files:
        file.place({name: i for i, name in enumerate(people)}, wanted)
    _check_places(files, people, recipe["variants"])
    cohorts = [next(file.name for file in files if file.person[i] >= 0) for i in range(len(people))]
    data = people_of(cert, pheno, covar, cohorts if len(prefixes) > 1 else None)
    place = {_key(label): t for t, label in enumerate(cert.tasks)}
    codes = np.array([place.get(_key(label), 0) for label in data.get("task", [cert.tasks[0]] * len(people))])
    return {"X": GenotypeMatrix(files, data.pop("covariates"), codes), **data}


def people_of(cert: Certificate, pheno: str, covar: str | None, cohorts: Sequence[str] | None) -> dict[str, Any]:
    """Covariates, y, task, ... of the certificate's people; `cohorts` are the studies that people are of, where there
    are several: a column of that name, if the files have none."""
    recipe = cert.header["genotypes"]
    people: list[str] = recipe["people"]
    tables = [PeopleFile(path, people) for path in (pheno, covar) if path is not None]
    targets = recipe["target"] if isinstance(recipe["target"], list) else [recipe["target"]]
    words: dict[str, list[str | None]] = {}
    for name in [*(name for target in targets for name in _columns_of(target)), *_others(recipe).values()]:
        table = next((one for one in tables if name in one.names), None)
        if table is None and name == "cohort" and cohorts is not None:
            words[name] = list(cohorts)
            continue
        words[name] = (table or tables[0]).column(name)
    for i, person in enumerate(people):
        if all(any(words[name][i] is None for name in _columns_of(target)) for target in targets):
            raise Mismatch(f"{pheno}: person {person} of the certificate has no phenotype")
    covariates = np.empty((len(people), len(recipe["covariates"])))
    for k, one in enumerate(recipe["covariates"]):
        for i, word in enumerate(tables[-1].column(one["source"])):
            if word is None:
                raise Mismatch(f"{tables[-1].path}: person {people[i]} of the certificate has no {one['source']!r}")
            covariates[i, k] = _cell(word, one, set(), f"{tables[-1].path}, person {people[i]}, column ")
    return {"covariates": covariates, **_by_role(cert, recipe, words, len(people), pheno)}


def _check_places(files: list[BedFile], people: list[str], variants: list[str]) -> None:
    """Every call is in one file: those of a study cut by chromosomes, those of several studies, or both."""
    names = ", ".join(file.name for file in files)
    for found, wanted, what in ((lambda f: f.person, people, "person"), (lambda f: f.line, variants, "variant")):
        absent = np.flatnonzero(np.all([found(file) < 0 for file in files], axis=0))
        if len(absent):
            raise Mismatch(f"{what} {wanted[absent[0]]} of the certificate is not in {names} ({len(absent)} are not)")
    calls = sum(int((file.person >= 0).sum()) * int((file.line >= 0).sum()) for file in files)
    for k, file in enumerate(files):
        for other in files[:k]:
            twice = ((file.person >= 0) & (other.person >= 0)).any() and ((file.line >= 0) & (other.line >= 0)).any()
            if twice:
                raise Mismatch(f"{other.name} and {file.name} both have calls of the same people and variants")
    if calls != len(people) * len(variants):
        raise Mismatch(f"{names}: some people of the certificate lack some of its variants")


def _check_genotypes(header: dict[str, Any]) -> None:
    recipe = header.get("genotypes")
    if recipe is None:
        return
    keys = {"people", "variants", "covariates", "target", "task", "weight", "offset"}
    sound = (
        isinstance(recipe, dict)
        and set(recipe) <= keys
        and header.get("table") is None
        and header.get("patterns") is None
        and all(_texts(recipe.get(key)) and recipe[key] for key in ("people", "variants"))
        and all(len(one.split()) == 2 and one == " ".join(one.split()) for one in recipe["people"])
        and all(len(one.split()) == 5 and one == " ".join(one.split()) for one in recipe["variants"])
        and all(len(set(recipe[key])) == len(recipe[key]) for key in ("people", "variants"))
        and isinstance(recipe.get("covariates"), list)
        and len(recipe["covariates"]) + len(recipe["variants"]) == header["n_features"]
        and all(
            isinstance(one, dict)
            and set(one) <= {"source", "equals"}
            and isinstance(one.get("source"), str)
            and isinstance(one.get("equals", ""), str)
            for one in recipe["covariates"]
        )
        and (header["shared"] or len(header["tasks"]) == 1 or recipe.get("task") is not None)
        and not (header["shared"] and recipe.get("task") is not None)
        and _are_roles(header, recipe)
    )
    if not sound:
        raise Unreadable("header: 'genotypes' does not say how genotypes are read")
    called = [f"{name}_{allele}" for _, _, name, allele, _ in map(str.split, recipe["variants"])]
    if header.get("features") is not None and header["features"][len(recipe["covariates"]) :] != called:
        raise Unreadable("header: 'features' are not the variants of 'genotypes' with their counted alleles")


# --- parts: what one site of several says of its rows, and what all of them add up to -----------------------

PART, HALF, STATEMENT = "tasksieve-certificate-part", "tasksieve-certificate-half", "tasksieve-statement"
AGREED = ("l1", "scale", "exponent", "w2_exponent", "active_start", "active", "free", "column_scale")  # by all sites
WORDS = ("loss", "gain", "w2", "c2")  # whole numbers, in units of powers of two
_STANDARDIZED = {"no": "", "task": "columns standardised by task", "pooled": "columns divided by pooled scales"}
_WORD_LIMIT = 1 << 62  # of a sum over all sites
_OWN_ARRAYS = {"start", "feature", "output", "coef", "intercept", "thresholds", "dual"}  # stay at the site


@dataclass
class Words:
    """Bounds in whole numbers, of one site or of all of them together: read and checked for sense, not believed.

    At each value k, in units of 2 to the powers `exponent` and `w2_exponent`: at least the `loss` (with l1 times the
    sizes of coefficients), at most the dual value (`gain`) at each `scale`, at least the squared norms `w2` of the rows
    of coefficients of the `active` features, and `c2` of the products of all features with the dual point,
    soft-thresholded by l1. """

    header: dict[str, Any]
    arrays: dict[str, Array]
    n_sites: int = 1

    def __post_init__(self) -> None:
        _check_words(self.header, self.arrays, self.n_sites)

    @property
    def n_values(self) -> int:
        return len(self.arrays["l1"])

    @property
    def n_features(self) -> int:
        return int(self.header["n_features"])

    def active(self, k: int) -> Array:
        return np.asarray(self.arrays["active"][slice(*self.arrays["active_start"][k : k + 2])])

    def words(self, name: str, k: int) -> Array:
        """Of one value, as the file has them."""
        found = self.arrays[name]
        by_feature = name in ("w2", "w2_exponent")
        return np.asarray(found[slice(*self.arrays["active_start"][k : k + 2])] if by_feature else found[k])

    def box(self, arith: Any, name: str, k: int) -> Box:
        """The same as numbers."""
        words = self.words(name, k)
        power = self.words("w2_exponent", k) if name == "w2" else self.arrays["exponent"][k, int(name == "c2")]
        found = Box(*_ends_of(arith, np.atleast_1d(words), power))
        return found if words.ndim else found[0]


def _ends_of(arith: Any, words: Array, powers: Array) -> tuple[Any, ...]:
    """Of whole numbers times powers of two."""
    if arith.exact:
        found, each = np.empty(words.shape, dtype=object), np.broadcast_to(powers, words.shape)
        found[:] = [Fraction(word) * _power(power) for word, power in zip(words.tolist(), each.tolist(), strict=True)]
        return (found,)
    near = words.astype(np.float64)  # rounded beyond 2^53
    sure = np.abs(words) <= 1 << 53
    return tuple(np.ldexp(np.where(sure, near, end(near)), powers) for end in (down, up))


def _check_words(header: dict[str, Any], arrays: dict[str, Array], n_sites: int) -> None:
    """What sites must agree on, and words that cannot have wrapped around."""
    d, get = header["n_features"], _getter(arrays, set(arrays))
    if type(d) is not int or not 0 < d < 1 << 48:
        raise Unreadable(f"header: n_features must be positive; got {d!r}")
    lengths = {name: len(one) if one.ndim else 0 for name, one in arrays.items()}
    k, m = lengths.get("l1", 0), lengths.get("scale", 0)
    if not k or not m:
        raise Unreadable("arrays 'l1' and 'scale' must not be missing, nor empty")
    get("l1", "f", (k,), 0.0)
    scale = get("scale", "f", (m,), 0.0)
    if scale[0] > 1.0 or scale[-1] <= 0.0 or (np.diff(scale) >= 0.0).any():
        raise Unreadable("array 'scale' must fall from at most 1, and stay positive")
    bounds = get("active_start", "i", (k + 1,), 0)
    if bounds[0] != 0 or (np.diff(bounds) < 0).any():
        raise Unreadable("array 'active_start' must rise from 0")
    powers: dict[str, tuple[int, ...]] = {"exponent": (k, 2), "w2_exponent": (int(bounds[-1]),)}
    for name, sizes in powers.items():
        if get(name, "i", sizes, -900).max(initial=0) > 900:
            raise Unreadable(f"array {name!r} holds what is too large")
    for name, lists in (("active", np.split(get("active", "i", (int(bounds[-1]),), 0), bounds[1:-1])),
                        ("free", [get("free", "i", (lengths.get("free", 0),), 0)])):  # fmt: skip
        if any(len(one) and (one[-1] >= d or (np.diff(one) <= 0).any()) for one in lists):
            raise Unreadable(f"array {name!r} must hold features, rising")
    if np.isin(arrays["active"], arrays["free"]).any():
        raise Unreadable("array 'active' holds a feature that is never penalised")
    if "column_scale" in arrays and get("column_scale", "f", (d,), 0.0).min() <= 0.0:
        raise Unreadable("array 'column_scale' must be positive")
    shapes = {"loss": (k,), "gain": (k, m), "w2": (int(bounds[-1]),), "c2": (k, d)}
    for name, shape in shapes.items():
        found = get(name, "i", shape, 0 if name in ("w2", "c2") else -np.inf)
        if found.size and max(int(found.max()), -int(found.min())) > _WORD_LIMIT // n_sites:
            raise Unreadable(f"array {name!r} holds words beyond 2^62 / {n_sites}: sums of these may wrap around")


def check_losses(loss: Any, sites: Sequence[str]) -> None:
    """The loss of all sites, or where they have their own, of each: of a half that of its site."""
    each = [loss]
    if isinstance(loss, dict) and loss.get("name") == "by-site" and sites:
        own = loss.get("losses")
        if set(loss) != {"name", "losses"} or not isinstance(own, dict) or set(own) != set(sites):
            raise Unreadable("header: the loss 'by-site' must have 'losses', one for each site")
        each = list(own.values())
    for one in each:
        _check_one_loss(one)
        if one["name"] == "square-root":
            raise Unreadable("header: the loss 'square-root' has no parts")


def problem_of_site(problem: dict[str, Any], site: str) -> dict[str, Any]:
    """That of a half: with the loss of its site."""
    loss = problem["loss"]
    return {**problem, "loss": loss["losses"][site]} if loss["name"] == "by-site" else problem


def _check_problem(problem: Any, sites: Sequence[str] = ()) -> None:
    """What kind of problem all sites have."""
    if not isinstance(problem, dict) or set(problem) != {"loss", "intercept", "standardize"}:
        raise Unreadable("header: 'problem' must have 'loss', 'intercept' and 'standardize'")
    check_losses(problem["loss"], sites)
    if not isinstance(problem["intercept"], bool) or problem["standardize"] not in [*_STANDARDIZED]:
        raise Unreadable("header: 'problem' has an intercept, or a standardisation, that is not known")


def _check_file(header: Any, kind: str, keys: set[str], optional: set[str]) -> None:
    if not isinstance(header, dict) or header.get("format") != kind:
        raise Unreadable(f"the header does not say format {kind!r}")
    if header.get("version") != VERSION:
        raise Unreadable(f"format version {header.get('version')!r}: this program reads {VERSION}; get a newer one")
    wrong = (keys | {"format", "version"}) - set(header) or set(header) - keys - optional - {"format", "version"}
    if wrong:
        raise Unreadable(f"header: {min(wrong)!r} is missing, or not known to this version")


def names_digest(names: list[str] | None) -> str | None:
    """Of the names of features in their order: SHA-256 of the JSON list, in UTF-8."""
    if names is None:
        return None
    return hashlib.sha256(json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


@dataclass
class Part:
    """``certificate-part.npz``: what a site keeps. `cert` is the problem of its tasks in the words of certificates."""

    header: dict[str, Any]
    arrays: dict[str, Array]
    cert: Certificate = field(init=False)
    half: Words = field(init=False)
    salt: bytes = field(init=False)

    def __post_init__(self) -> None:
        header, arrays = self.header, self.arrays
        own = set(_KEYS) - {"format", "version", "unit", "penalty", "positive"}
        _check_file(header, PART, own | {"site", "salt"}, _OTHER_KEYS - {"patterns"})
        try:
            self.salt = bytes.fromhex(header["salt"])
        except (TypeError, ValueError):
            raise Unreadable("header: 'salt' must be hexadecimal digits") from None
        if len(self.salt) < 16:
            raise Unreadable("header: 'salt' must be at least 16 bytes")
        if set(arrays) - _OWN_ARRAYS - {*AGREED, *WORDS}:
            raise Unreadable(f"array {min(set(arrays) - _OWN_ARRAYS - {*AGREED, *WORDS})!r} is not known")
        names = header.get("features")
        if names is not None and not _texts(names):
            raise Unreadable("header: 'features' must name every feature")
        standardize = "pooled" if "column_scale" in arrays else "task" if header["standardize"] else "no"
        if header["standardize"] and standardize == "pooled":
            raise Unreadable("array 'column_scale': the header says that columns are standardised by task")
        problem = {"loss": header["loss"], "intercept": header["intercept"], "standardize": standardize}
        published = {name: arrays[name] for name in (*AGREED, *WORDS) if name in arrays}
        words = {"format": HALF, "version": VERSION, "site": header["site"], "n_features": header["n_features"]}
        words |= {"names": names_digest(names), "problem": problem}
        self.half = read_half((words, published))
        plain = {key: header[key] for key in (own | _OTHER_KEYS) & set(header)}
        plain |= {"format": "tasksieve-certificate", "version": VERSION, "unit": 1.0, "positive": False}
        weights = np.ones(header["n_features"])
        weights[arrays["free"]] = 0.0
        zeros = np.zeros(self.half.n_values)
        beside = {"alpha": zeros + 1.0, "feature_weights": weights}
        beside |= dict.fromkeys(("ridge", "objective", "dual_value", "gap"), zeros)
        here = {name: arrays[name] for name in _OWN_ARRAYS & set(arrays)}
        self.cert = Certificate({**plain, "penalty": {"name": "rows"}}, {**here, **beside})


def read_part(source: Any) -> Part:
    return source if isinstance(source, Part) else Part(*_read_archive(source))


def read_half(source: Any) -> Words:
    """The published half of a part: a path, bytes, or header and arrays."""
    header, arrays = source if isinstance(source, tuple) else _read_archive(source)
    _check_file(header, HALF, {"site", "n_features", "names", "problem"}, {"about"})
    _check_problem(header["problem"])
    if not isinstance(header["site"], str) or not header["site"]:
        raise Unreadable("header: 'site' must be a name")
    if set(arrays) - {*AGREED, *WORDS}:
        raise Unreadable(f"array {min(set(arrays) - {*AGREED, *WORDS})!r} is not known to this version")
    return Words(header, arrays)


@dataclass
class Bounds:
    """What the words of a half are about, as numbers: `loss`, `gain`, `w2`, `c2` of one value."""

    loss: Box
    gain: Box
    w2: Box
    c2: Box
    dropped: list[str]


def part_bounds(problem: Problem, k: int, agreed: dict[str, Array], say: Callable[[str], None]) -> Bounds:
    """At the stored coefficients and dual point of a value; `agreed` are the arrays that sites share."""
    arith, point = problem.arith, problem.project(k)
    (reading,) = read_features(problem, [point], False, say)
    features, rows = problem.coefficients(k)
    held = problem.penalised[features]
    features, w, m = features[held], arith.numbers(rows[held]), abs(reading.products)
    if reading.scales is not None:
        w = w * reading.scales[features][:, problem.task_of]
    if "column_scale" in agreed:
        scales = arith.numbers(np.repeat(agreed["column_scale"][:, None], m.shape[1], axis=1))
        w, m = w * scales[features], m / scales
    w, strength = abs(w), arith.one(agreed["l1"][k])
    over = (m - _like(strength, m)).positive() if agreed["l1"][k] else m
    active = agreed["active"][slice(*agreed["active_start"][k : k + 2])]
    place = np.searchsorted(active, features)
    if not np.array_equal(active[np.minimum(place, len(active) - 1)] if len(active) else active, features):
        raise Mismatch(f"value {k}: a penalised feature has a coefficient and is not in 'active'")
    loss = problem.primal_losses(k).total()
    if agreed["l1"][k]:
        loss = loss + strength * w.total()
    c2, own, w2 = over.square().sum(1), w.square().sum(1), []
    for end in (own.lo, own.hi):
        w2.append(arith.numbers(np.zeros(len(active))).lo)
        w2[-1][place] = end
    nothing = arith.numbers(np.zeros(len(problem.penalised)))  # the dual point is orthogonal to what is free
    gains = _gains(problem, point, agreed["scale"].tolist())
    return Bounds(loss, gains, Box(*w2), choose(problem.penalised, c2, nothing), point.dropped)


def _gains(problem: Problem, point: Dual, scales: list[float]) -> Box:
    """Dual values at falling scales, from below; where one takes long, at every seventh, and by chords between these:
    they are concave in the scale."""
    arith, last = problem.arith, len(scales) - 1
    step = 7 if any(loss.laborious for loss in problem.losses) else 1
    at = sorted({*range(0, last + 1, step), last})
    known = {i: problem.dual_losses(point, arith.one(scales[i])).total() for i in at}
    for high, low in zip(at[:-1], at[1:], strict=True):
        for i in range(high + 1, low):
            upper, lower = arith.one(scales[high]), arith.one(scales[low])
            share = (arith.one(scales[i]) - lower) / (upper - lower)
            known[i] = share * known[high] + (arith.one(1.0) - share) * known[low]
    return _stack([known[i] for i in range(last + 1)])


def verify_part(
    part: Any,
    X: Any,
    y: Any,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    value: int | None = None,
    exact: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Whether the rows of a site prove its half: that what it has published of them are bounds.

    `part` is a path, bytes or `Part`; the rest as in `verify`. """
    part = read_part(part)
    values, say = _chosen(part.half, value), progress or (lambda words: None)
    site = part.header["site"]
    with np.errstate(all="ignore"):
        try:
            tasks = arrange(part.cert, X, y, task, sample_weight, offset)
            wrong = check_digests(part.cert, tasks, part.salt)
            if wrong:
                return _refuse(wrong)
            problem = Problem(part.cert, tasks, Exact(160) if exact else Floating())
            failures: list[str] = []
            for k in values:
                found = part_bounds(problem, k, part.arrays, say)
                failures += [f"value {k}: {words}" for words in _compare_half(part.half, problem.arith, k, found)]
                failures += [f"value {k}: {words}" for words in found.dropped if failures]
                say(f"{k + 1} of {len(values)} values")
        except (Mismatch, Undecided) as error:
            return _refuse([str(error)])
        except (MemoryError, OverflowError, ZeroDivisionError) as error:
            return _refuse([f"the numbers are too large to be checked here ({type(error).__name__})"])
    if failures:
        return _refuse(failures)
    count = f"{len(values)} value{'s' * (len(values) != 1)}"
    first = f"proved: the half of site {site!r}, {count}, holds for these rows ({problem.arith.words})"
    return Verdict(True, "\n".join([first, *_part_words(part, tasks), f"verify.py {PROGRAM}"]))


def _chosen(words: Words, value: int | None) -> list[int]:
    if value is not None and not -words.n_values <= value < words.n_values:
        raise Unreadable(f"there are {words.n_values} values: there is no value {value}")
    return list(range(words.n_values)) if value is None else [value % words.n_values]


def _compare_half(half: Words, arith: Any, k: int, found: Bounds) -> list[str]:
    """Words that are no bounds of what was found."""
    failures = []
    for name, above in (("loss", True), ("gain", False), ("w2", True), ("c2", True)):
        claimed, true = half.box(arith, name, k), getattr(found, name)
        held = np.atleast_1d(claimed.lo >= true.hi if above else claimed.hi <= true.lo)
        wrong = np.flatnonzero(~held.astype(bool))
        if len(wrong):
            j = int(wrong[0])
            said, least = (np.atleast_1d(end)[j] for end in ((claimed.lo, true.hi) if above else (claimed.hi, true.lo)))
            place = {"loss": "", "gain": f" at scale {j}"}.get(name)
            if place is None:
                place = f" of feature {int(half.active(k)[j]) if name == 'w2' else j}"
            side = "most" if above else "least"
            words = f"{name}{place} is proved to be at {side} {_float(least, above):.17g} only"
            failures.append(f"{words}, claimed {_float(said, not above):.17g}")
            refuted = claimed.hi < true.lo if above else claimed.lo > true.hi
            if not arith.exact and not np.any(refuted):
                failures.append(_CLOSE)
    return failures


def _part_words(part: Part, tasks: list[Task]) -> list[str]:
    """Of which problem and data: so that no other is taken for it."""
    problem, cert = part.half.header["problem"], part.cert
    parts = [f"loss {_loss_words(problem['loss'])}", _intercept_words(problem["intercept"])]
    parts.append(_STANDARDIZED[problem["standardize"]])
    n = sum(int((one.weight > 0.0).sum()) for one in tasks)
    data = [f"{len(tasks)} task{'s' * (len(tasks) != 1)}", f"{n} labels used", f"{cert.n_features} features"]
    data += [f"{len(part.arrays['free'])} of them never penalised"] if len(part.arrays["free"]) else []
    data += ["with offsets"] if cert["offset"] else []
    return ["problem: " + "; ".join(filter(None, parts)), "data: " + "; ".join(data)]


@dataclass
class Statement:
    """``statement.npz``: sums over all sites, and the gap that follows from them."""

    header: dict[str, Any]
    arrays: dict[str, Array]
    sums: Words = field(init=False)

    def __post_init__(self) -> None:
        header, arrays = self.header, self.arrays
        keys = {"unit", "n_features", "names", "problem", "sites", "masked"}
        _check_file(header, STATEMENT, keys, {"features", "about"})
        sites = header["sites"]
        keys = {"name"} if header["masked"] else {"name", "half"}
        if not isinstance(sites, list) or not sites or any(
            not isinstance(one, dict) or set(one) != keys or not all(isinstance(v, str) and v for v in one.values())
            for one in sites
        ):  # fmt: skip
            raise Unreadable("header: 'sites' must have a name each, and the digest of its half unless 'masked'")
        if not isinstance(header["masked"], bool) or len({one["name"] for one in sites}) != len(sites):
            raise Unreadable("header: 'sites' names one twice, or 'masked' is neither true nor false")
        _check_problem(header["problem"], [one["name"] for one in sites])
        if _number(header["unit"], "unit", 0.0) <= 0.0:
            raise Unreadable("header: unit must be positive")
        claims = {"alpha", "ridge", "objective", "dual_value", "gap", "feature_weights"}
        claims |= {"message", "message_start", "answered"}  # who has signed what: not read here
        self.sums = Words(header, {name: a for name, a in arrays.items() if name not in claims})
        get = _getter(arrays, {*AGREED, *WORDS, *claims})
        for name in ("alpha", "ridge", "objective", "dual_value", "gap"):
            get(name, "f", (self.n_values,), -np.inf if name in ("objective", "dual_value") else 0.0)
        if arrays["alpha"].min() <= 0.0:
            raise Unreadable("array 'alpha' must hold positive numbers")
        if "message" in arrays or "message_start" in arrays:
            starts = arrays.get("message_start", np.zeros(0))
            starts = get("message_start", "i", (starts.size,), 0)
            count = int(starts[-1]) if len(starts) else -1
            if get("message", "u", (max(count, 0),)).size != count or starts[0] != 0 or (np.diff(starts) < 0).any():
                raise Unreadable("arrays 'message' and 'message_start' do not belong together")
            get("answered", "i", (self.n_values,), 0)
        if ("column_scale" in arrays) != (header["problem"]["standardize"] == "pooled"):
            raise Unreadable("array 'column_scale' belongs to pooled standardisation")
        weights = get("feature_weights", "f", (self.sums.n_features,), 0.0)
        if not np.array_equal(np.flatnonzero(weights == 0.0), arrays["free"]):
            raise Unreadable("array 'feature_weights' must be 0 for features in 'free', and for no other")
        names = header.get("features")
        if names is not None and not (_texts(names) and len(names) == self.sums.n_features):
            raise Unreadable("header: 'features' must name every feature")
        if names is not None and names_digest(names) != header["names"]:
            raise Unreadable("header: 'features' are not those of 'names'")

    @property
    def n_values(self) -> int:
        return self.sums.n_values


def read_statement(source: Any) -> Statement:
    return source if isinstance(source, Statement) else Statement(*_read_archive(source))


def statement_bounds(statement: Statement, arith: Any, k: int) -> tuple[Box, Box, Any]:
    """Primal value from above and dual value from below, divided by the unit, and the scale of the dual point.

    With S = unit, L_j = S alpha u_j, and rows c_j of products whose squared norms are at most c2_j, the dual value at a
    scale c <= 1 is the gain there, concave in c, if ``c |c_j| <= L_j`` for all j; with a ridge it is the gain less
    ``sum_j (c |c_j| - L_j)_+^2 / (2 S ridge)`` at any c. Soft thresholds of c times a product are at most c times those
    of the product. """
    arrays, sums = statement.arrays, statement.sums
    unit, alpha, ridge = (arith.one(x) for x in (statement.header["unit"], arrays["alpha"][k], arrays["ridge"][k]))
    w2, gains, scale = sums.box(arith, "w2", k), sums.box(arith, "gain", k), arrays["scale"]
    weights = arrays["feature_weights"]
    norms = (arith.numbers(weights[sums.active(k)]) * arith.sqrt(w2)).total()
    primal = sums.box(arith, "loss", k) / unit + alpha * norms + ridge * arith.one(0.5) * w2.total()
    held = np.flatnonzero(weights > 0.0)
    size, limit = arith.sqrt(sums.box(arith, "c2", k)[held]), arith.numbers(weights[held])
    limit = limit * _like(unit * alpha, limit)
    most = arith.one(1.0).lo
    touched = np.flatnonzero(sums.words("c2", k)[held] > 0)
    if len(touched):  # the largest scale that is inside for sure
        ratio = down(np.minimum(limit.lo[touched] / size.hi[touched], 2 + 0 * limit.lo[touched]))
        most = min(most, ratio.min()) if not np.any(ratio != ratio) else 0 * most
    candidates = [(arith.one(c), gains[i]) for i, c in enumerate(scale.tolist()) if arrays["ridge"][k] > 0 or c <= most]
    for i in range(len(scale) - 1):
        high, low = arith.one(scale[i]), arith.one(scale[i + 1])
        if low.lo < most < high.lo:  # between two scales a concave function is above its chord
            share = (Box(most) - low) / (high - low)
            candidates.append((Box(most), share * gains[i] + (arith.one(1.0) - share) * gains[i + 1]))
    best, at = None, 0 * most
    for c, gain in candidates:
        if arrays["ridge"][k] > 0:
            over = (_like(c, size) * size - limit).positive()
            gain = gain - over.square().total() / (unit * ridge * arith.one(2.0))
        if best is None or gain.lo > best.lo:
            best, at = gain, c.lo
    if best is None:
        raise Mismatch(f"value {k}: products are so far outside of the dual ball that the sums have no dual value")
    return primal, best / unit, at


def verify_statement(
    statement: Any, halves: Sequence[Any] = (), *, value: int | None = None, exact: bool = False
) -> Verdict:
    """Whether the sums of a statement prove its gap, and whether halves (all of them, or none) add up to the sums.

    What is proved is a conclusion: the halves are the premise, and each is proved by who has the rows (`verify_part`).
    """
    statement = read_statement(statement)
    values, sites = _chosen(statement.sums, value), statement.header["sites"]
    arith: Any = Exact(160) if exact else Floating()
    with np.errstate(all="ignore"):
        try:
            if halves:
                wrong = compare_halves(statement, halves)
                if wrong:
                    return _refuse(wrong)
            found = []
            for k in values:
                primal, dual, c = statement_bounds(statement, arith, k)
                found.append(_compared(arith, statement.arrays, k, primal, dual, c, []))
        except (Mismatch, Undecided) as error:
            return _refuse([str(error)])
        except (MemoryError, OverflowError, ZeroDivisionError) as error:
            return _refuse([f"the numbers are too large to be checked here ({type(error).__name__})"])
    failures = [f"value {one.index} (alpha = {one.alpha:g}): {words}" for one in found for words in one.failures]
    if any(one.close for one in found) and not exact:
        failures.append(_CLOSE)
    if failures:
        return Verdict(False, "\n".join(["not proved:", *failures]), failures, found)
    worst = _upwards(max(one.gap for one in found))
    names = ", ".join(repr(one["name"]) for one in sites)
    if halves:
        premise = "if each site's half holds for its rows (verify.py part proves that, at the site)"
    elif statement.header["masked"]:
        premise = (
            "if the sums are those of halves that hold (masked: who signed what is checked by tasksieve verify, "
            "each half by its site)"
        )
    else:
        premise = "if the sums are those of halves that hold (no halves were given)"
    what = "no model of this kind is better" if len(found) == 1 else f"none of {len(found)} models can be better"
    first = f"proved: {what} by more than {worst} ({arith.words}),\n{premise}"
    told = _statement_words(statement, values, names)
    return Verdict(True, "\n".join([first, *told, f"verify.py {PROGRAM}"]), [], found)


def compare_halves(statement: Statement, halves: Sequence[Any]) -> list[str]:
    """Why halves are not those of the statement; nothing if they are, and add up."""
    if statement.header["masked"]:
        raise Mismatch("the halves of a masked statement stay at the sites: it has their sums alone")
    wanted = {one["name"]: one["half"].lower() for one in statement.header["sites"]}
    seen: dict[str, Words] = {}
    for source in halves:
        raw = source if isinstance(source, bytes) else _bytes_of(source)
        half = read_half(raw)
        name = half.header["site"]
        if name not in wanted:
            return [f"there is a half of site {name!r}, which is not in the statement"]
        if name in seen:
            return [f"there are two halves of site {name!r}"]
        if hashlib.sha256(raw).hexdigest() != wanted[name]:
            return [f"the half of site {name!r} is not that of the statement (its digest differs)"]
        Words(half.header, half.arrays, len(wanted))  # words so small that their sums are exact
        seen[name] = half
        own = {**statement.header, "problem": problem_of_site(statement.header["problem"], name)}
        for key in ("n_features", "names", "problem"):
            if half.header[key] != own[key]:
                return [f"site {name!r}: {key!r} differs from the statement's"]
        for key in AGREED:
            mine, common = half.arrays.get(key), statement.arrays.get(key)
            same = mine is common if mine is None or common is None else np.array_equal(mine, common)
            if not same:
                return [f"site {name!r}: array {key!r} differs from the statement's"]
    missing = [name for name in wanted if name not in seen]
    if missing:
        return [f"the half of site {missing[0]!r} is missing"]
    wrong = []
    for key in WORDS:
        if not np.array_equal(sum(half.arrays[key] for half in seen.values()), statement.arrays[key]):
            wrong.append(f"array {key!r} of the halves does not add up to the statement's")
    return wrong


def _bytes_of(path: Any) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror or error}") from None


def _statement_words(statement: Statement, values: list[int], names: str) -> list[str]:
    problem, arrays = statement.header["problem"], statement.arrays
    alphas, ridge = arrays["alpha"][values], float(arrays["ridge"][values].max())
    l1 = float(arrays["l1"][values].max())
    span = f"{alphas[0]:g}" if len(alphas) == 1 else f"{alphas.max():g} to {alphas.min():g}"
    weights, loss = arrays["feature_weights"], problem["loss"]
    by_site = loss["losses"].items() if loss["name"] == "by-site" else ()
    told = ", ".join(f"{_loss_words(own)} at {site!r}" for site, own in by_site) or _loss_words(loss)
    parts = [
        f"loss {told}",
        "penalty rows",
        f"alpha = {span}",
        f"ridge up to {ridge:g}" if ridge else "",
        f"l1 up to {l1:g} in sums" if l1 else "",
        f"objective divided by N = {statement.header['unit']:g}",
        _intercept_words(problem["intercept"]),
        _STANDARDIZED[problem["standardize"]],
        f"{statement.sums.n_features} features",
        f"{int((weights == 0.0).sum())} of them never penalised" if (weights == 0.0).any() else "",
        "feature weights as given" if not np.isin(weights, (0.0, 1.0)).all() else "",
    ]
    return ["problem: " + "; ".join(filter(None, parts)), f"sites: {names}"]


# --- the command line ---------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    modes = {"part": _main_part, "statement": _main_statement}
    try:
        verdict = modes[given[0]](given[1:]) if given and given[0] in modes else _main_certificate(given)
    except Unreadable as error:
        print(f"cannot be read: {error}", file=sys.stderr)
        return 2
    except Mismatch as error:
        print(f"not proved:\n{error}")
        return 1
    print(verdict.words)
    return 0 if verdict.proved else 1


def _main_certificate(arguments: Sequence[str]) -> Verdict:
    parser = argparse.ArgumentParser(
        prog="verify.py",
        description="Check a certificate against data.",
        epilog="verify.py part --help, verify.py statement --help: where sites keep their rows",
    )
    parser.add_argument("certificate")
    _data_options(parser)
    given = parser.parse_args(arguments)
    cert = read_certificate(given.certificate)
    data, say = _read_data(cert, given), _reporter() if given.exact else None
    return verify(cert, data.pop("X"), data.pop("y"), value=given.value, exact=given.exact, progress=say, **data)


def _main_part(arguments: Sequence[str]) -> Verdict:
    parser = argparse.ArgumentParser(
        prog="verify.py part", description="Check what a site of several says of its rows against these rows."
    )
    parser.add_argument("part", help="certificate-part.npz, which stays at the site")
    _data_options(parser)
    given = parser.parse_args(arguments)
    part = read_part(given.part)
    data, say = _read_data(part.cert, given), _reporter() if given.exact else None
    return verify_part(part, data.pop("X"), data.pop("y"), value=given.value, exact=given.exact, progress=say, **data)


def _main_statement(arguments: Sequence[str]) -> Verdict:
    parser = argparse.ArgumentParser(
        prog="verify.py statement", description="Check that the halves of sites add up to a gap. No data are needed."
    )
    parser.add_argument("statement")
    parser.add_argument("halves", nargs="*", metavar="half", help="what the sites have published: all of them, or none")
    _mode_options(parser)
    given = parser.parse_args(arguments)
    return verify_statement(given.statement, given.halves, value=given.value, exact=given.exact)


def _data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", help="a table of text, or an npz file with X and y")
    for name in ("matrix", "y", "task", "sample-weight", "offset"):
        parser.add_argument(f"--{name}", metavar="FILE.npy", help="an array, in place of DATA")
    parser.add_argument("--bfile", action="append", metavar="PREFIX", help=".bed, .bim and .fam files; @: a chromosome")
    parser.add_argument("--pheno", metavar="FILE", help="phenotypes of these people")
    parser.add_argument("--covar", metavar="FILE", help="their covariates")
    _mode_options(parser)


def _mode_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="version", version=f"verify.py {PROGRAM}, certificates of format {VERSION}")
    parser.add_argument("--exact", action="store_true", help="rational arithmetic: trust no floating point")
    parser.add_argument("--value", type=int, metavar="K", help="one value of a path, counted from 0; by default all")


def _read_data(cert: Certificate, given: argparse.Namespace) -> dict[str, Any]:
    """X, y, task, ... of the files that were given."""
    if given.bfile or given.pheno or given.covar:
        if not (given.bfile and given.pheno) or given.data or given.matrix or given.y:
            raise Unreadable("genotypes are given by --bfile and --pheno, and --covar if there are covariates")
        return read_genotypes(cert, given.bfile, given.pheno, given.covar)
    if cert.header.get("genotypes") is not None and not (given.matrix or (given.data or "").endswith(".npz")):
        raise Unreadable(f"it is about genotypes: give --bfile, --pheno and --covar; {_ELSEWHERE}")
    if given.data is not None:
        return read_arrays(given.data) if given.data.endswith(".npz") else read_table(cert, given.data)
    if not (given.matrix and given.y):
        raise Unreadable("give a file of data, or --matrix and --y")
    data = {"X": _load(given.matrix), "y": _load(given.y)}
    for name in ("task", "sample_weight", "offset"):
        if getattr(given, name):
            data[name] = _load(getattr(given, name))
    return data


def _reporter() -> Callable[[str], None]:
    """Tells stderr how far it is, every few seconds."""
    last = time.monotonic()

    def say(words: str) -> None:
        nonlocal last
        if time.monotonic() - last > 5.0:
            last = time.monotonic()
            print(f"verify.py: {words}", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
