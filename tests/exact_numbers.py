"""Numbers of forty digits on every machine, for the oracles of the tests.

``numpy.longdouble`` has 113 bits on some processors, 64 on others and 53 on the rest, so what a test judges with it
depends on where it runs. `wide` makes object arrays of binary floating point numbers of mpmath instead, of unlimited
range; float64 becomes one of them without rounding, and NumPy's arithmetic, ``@``, ``sum``, comparisons, ``np.abs``,
``np.sqrt``, ``np.exp``, ``np.expm1``, ``np.log`` and ``np.log1p`` work on them as on any other array. Two things
differ: a division by 0 raises, and `finite` stands for ``np.isfinite``.

An operation takes about a microsecond: fine for some ten thousand of them, so oracles are for small problems.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import MPContext

Array = np.ndarray[Any, Any]

# A context of its own: neither its digits nor the methods added below are seen by other users of mpmath.
_CONTEXT = MPContext()
_CONTEXT.dps = 40

#: one number
Wide = _CONTEXT.mpf

#: relative distance of neighbouring numbers
EPS = float(2.0 ** (1 - _CONTEXT.prec))

# NumPy's functions of object arrays call the method of the same name.
def _method(function: Any) -> Any:
    return lambda number: function(number)


def _log1p(number: Any) -> Any:
    """To a few units of rounding, as W. Kahan does it; mpmath's own takes ten times as long."""
    rounded = 1 + number
    return number if rounded == 1 else _CONTEXT.log(rounded) * number / (rounded - 1)


for _name in ("sqrt", "exp", "expm1", "log"):
    setattr(Wide, _name, _method(getattr(_CONTEXT, _name)))
Wide.log1p = _log1p

_each = np.frompyfunc(Wide, 1, 1)
_finite = np.frompyfunc(_CONTEXT.isfinite, 1, 1)


def wide(values: Any) -> Any:
    """Numbers of forty digits that equal the given ones: an object array, or one number."""
    with np.errstate(invalid="ignore"):  # of NaN, which stays what it is
        return _each(np.asarray(values))


def as_fraction(number: Any) -> Fraction:
    """A wide number, exactly."""
    sign, digits, exponent, _ = number._mpf_
    return (-1) ** sign * Fraction(int(digits)) * Fraction(2) ** int(exponent)


def finite(values: Any) -> Any:
    return np.asarray(_finite(values), dtype=bool)


def dot(x: Any, w: Any) -> Any:
    """``x @ w`` of float64, summed in integers and rounded once; ten times as fast as the product of wide numbers."""
    (a, low), (b, other) = _integers(x), _integers(w)
    return np.frompyfunc(lambda total: Wide((total, low + other)), 1, 1)(a @ b)


def _integers(values: Any) -> tuple[Array, int]:
    """Integers and one exponent: ``values == integers * 2**exponent``."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    digits, exponent = np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64) - 53
    low = int(np.min(exponent, where=digits != 0, initial=2000))
    return digits.astype(object) << np.where(digits != 0, exponent - low, 0).astype(object), low


def soft_plus(m: Any) -> Any:
    """``log(1 + exp(m))``, the logistic loss of a margin ``-m``."""
    return np.maximum(m, 0) + np.log1p(np.exp(-np.abs(m)))
