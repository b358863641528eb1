"""Units of the integers that sites send: powers of two that the coordinator names from sums it knows already.

A number v travels as the integer v / 2^e, rounded up, down or to the nearest. Sums of integers modulo 2^64 or 2^32 are
exact as long as nothing wraps: T sites each keep below 2^62 / T, or 2^30 / T. Numbers that are larger are not sent: a
site says by a flag, which is itself a sum, that some did not fit, and the question is asked again in larger units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .errors import FederatedError
from .packing import Array

GROUPS = ("sums", "squares", "levels", "hessian")  # numbers that share a unit, and a flag that some did not fit
BINS = 512  # of a histogram of exponents: from 2^-256, where all that is smaller is put, to 2^255
_LEAST = -256
NORM_POWER = 16
_NAMES = ("sites", "sums", "squares", "levels", "norms", "base")
_MOST = 4000  # no exponent of a double is beyond
# Powers of two by which numbers may exceed the largest of the first exchange before a question is asked again.
_ROOM = {"sums": 10, "squares": 14, "levels": 3, "hessian": 2}
_LARGER = {"sums": 8, "squares": 8, "levels": 4, "hessian": 4}
# Of the model without features, which is asked about before sizes are known: numbers of a site up to 2 to these powers
# fit. With `_DIGITS`, of 8 sites losses from 6e-8 to 1e15 do, and correlations x'u from 0.02 to 3e7.
_WIDEST = {"sums": 50, "levels": 50}
_DIGITS = {"sums": 40, "levels": 24}  # that the largest number must have before the point


def exponent(value: Any) -> Any:
    """The least e with value < 2^e; for zero the least that there is a bin for."""
    value = np.asarray(value, dtype=np.float64)
    powers = np.frexp(value)[1].astype(np.int64)
    return np.where(value > 0.0, np.maximum(powers, _LEAST), _LEAST)


def bits(ring: int, n_sites: int) -> int:
    """Numbers of one site are at most two to this power, so that T of them stay within a quarter of the ring."""
    return ring - 2 - (n_sites - 1).bit_length()


def histogram(sizes: Any) -> Array:
    """One row of `BINS` zeros and a one for each size. Sites send less (`masks.largest_only`)."""
    powers = exponent(sizes)
    if not np.isfinite(sizes).all() or (powers >= _LEAST + BINS).any():
        raise FederatedError("range", "numbers of this site are infinite, or larger than 2^255")
    found = np.zeros((len(powers), BINS), np.int64)
    found[np.arange(len(powers)), powers - _LEAST] = 1
    return found


def largest(counts: Array) -> list[int]:
    """The largest exponent of each row of a sum of histograms, or of what sites send in their place."""
    if not counts.any(axis=1).all():
        raise FederatedError("range", "the sizes that the sites have sent do not add up")
    return [int(np.flatnonzero(row)[-1]) + _LEAST for row in counts]


@dataclass(frozen=True, eq=False)
class Units:
    """Exponents of two: numbers of an answer are integers in units of 2 to these powers.

    Parameters
    ----------
    sites : int
        How many sites there are, and so how large integers may be.
    sums : int
        Of phi, loss, yr, rr, dual values, held-out losses; strict bounds likewise.
    squares : int
        Of squared products in 64 bits: z, c2; w2 of feature j has 2^(squares + 2 e_j) with s_j < 2^e_j.
    levels : int
        Of those in 32 bits.
    norms : int
        Of sums of the columns' norms to the power `NORM_POWER`.
    base : int
        Entry j, k of the Hessian has the unit 2^(hessian_j + hessian_k + base).
    hessian : array of int16
        One for each feature of the question. Sums of columns have the unit 2^(hessian_j + sums), sums of their squares
        2^(2 hessian_j + squares).
    """

    sites: int
    sums: int = 0
    squares: int = 0
    levels: int = 0
    norms: int = 0
    base: int = 0
    hessian: Array = field(default_factory=lambda: np.empty(0, np.int16))

    def __post_init__(self) -> None:
        given = [getattr(self, name) for name in _NAMES]
        if not all(type(number) is int and abs(number) <= _MOST for number in given[1:]):
            raise FederatedError("format", "units are powers of two")
        if type(self.sites) is not int or not 1 <= self.sites <= 1 << 16:
            raise FederatedError("format", "between 1 and 65536 sites")
        powers = np.asarray(self.hessian)
        if powers.dtype != np.int16 or powers.ndim != 1:
            raise FederatedError("format", "units of second derivatives are 16-bit powers of two")

    def exponents(self) -> dict[str, int]:
        """All but those of the Hessian, by name."""
        return {name: getattr(self, name) for name in _NAMES}

    def larger(self, group: str) -> Units:
        """The units after numbers of a group did not fit."""
        more = _LARGER[group]
        if group == "squares":  # of products and of columns
            return replace(self, squares=self.squares + more, norms=self.norms + NORM_POWER * more // 2)
        name = "base" if group == "hessian" else group
        return replace(self, **{name: getattr(self, name) + more})

    @classmethod
    def for_sizes(cls, n_sites: int) -> Units:
        """Of the first exchange: histograms are counted in ones."""
        return cls(n_sites)

    @classmethod
    def for_null(cls, n_sites: int) -> Units:
        """Of questions of kind "null"."""
        long, short, several = bits(64, n_sites), bits(32, n_sites), (n_sites - 1).bit_length()
        return cls(
            n_sites,
            sums=_WIDEST["sums"] - (2 * long - 1 - several),  # half as large, and by the number of sites, as in `units`
            levels=_WIDEST["levels"] - (long + short),
        )


@dataclass(frozen=True, eq=False)
class Sizes:
    """How large the sites' numbers are: the largest exponent of any site, from the first exchange.

    Parameters
    ----------
    sites : int
    total, level, norm : int
        Of losses and other sums at s = 0, of the largest c^2 there, of the largest norm of a column.
    norms : array of float or None
        Bounds of the columns' norms, once these are known; until then `norm` stands for all.
    """

    sites: int
    total: int
    level: int
    norm: int
    norms: Array | None = None

    @classmethod
    def from_histogram(cls, n_sites: int, counts: Array) -> Sizes:
        """From the sum over sites."""
        total, level, norm = largest(counts)
        return cls(n_sites, total, level, norm)

    def of_moments(self, roots: Array, root_weight: int) -> Units:
        """Of sums of columns and of their squares.

        - `roots`: For each column the exponent of the root of the largest sum of squares of a site.
        - `root_weight`: Exponent of the root of the weight of its rows.
        """
        long = bits(64, self.sites)
        return Units(self.sites, sums=root_weight - long, squares=-long, hessian=roots.astype(np.int16))

    def shows(self, units: Units) -> bool:
        """Whether the largest of losses and levels have enough digits in these units of kind "null"."""
        return units.sums <= self.total - _DIGITS["sums"] and units.levels <= self.level - _DIGITS["levels"]

    def units(self, features: Array, s: Array, reach: float) -> Units:
        """Of a question at s on some features, where c^2 of a site is expected to be at most `reach` (0: as at 0).

        Entries of the Hessian are c_j c_k x_j' M x_k with x_j' M x_j at most 1/s_j, and at most ||x_j||^2 times the
        largest curvature.
        """
        long, short = bits(64, self.sites), bits(32, self.sites)
        level = int(exponent(reach)) if reach > 0.0 else self.level
        norms = np.full(len(features), self.norm) if self.norms is None else exponent(self.norms[features])
        steep = np.where(s > 0.0, -(exponent(s) - 1) // 2 + 1, norms)
        return Units(
            self.sites,
            # dual values below zero may be larger than any loss: they have one bit more, and one for each doubling of T
            sums=self.total + _ROOM["sums"] - (long - 1 - (self.sites - 1).bit_length()),
            squares=max(level, self.level) + _ROOM["squares"] - long,
            levels=level + _ROOM["levels"] - short,
            norms=NORM_POWER * self.norm - long,
            base=level + _ROOM["hessian"] - short,
            hessian=np.minimum(norms, steep).astype(np.int16),
        )
