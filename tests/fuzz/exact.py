"""Scores of stored numbers without rounding: sums of products of float64 in integers, rounded once at the end.

Offsets of 1e13 cancel here exactly, whatever the width of long double. What comes after, squares and logarithms of
scores and their sums, has no cancellation: there the 64 bits of x86-64 suffice (relative error about 1e-17 for the
hundred rows of a case), as do the 113 of aarch64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Wide = np.longdouble

#: what the judge itself may be wrong by, relative to the sizes that it adds up
ROUNDING = 64 * float(np.finfo(Wide).eps)

#: without a long double wider than double (Windows, macOS on ARM) there is no judge
IS_WIDE = float(np.finfo(Wide).eps) < 2.0**-60

_CHUNK = 40  # bits; three chunks cover more than any long double


def wide(values: Any) -> Array:
    return np.asarray(values, dtype=Wide)


def scores(x: Array, coef: Array, *offsets: Any) -> Array:
    """``x @ coef + sum(offsets)``, each rounded once to long double; an offset is a number or one for each row."""
    n = len(x)
    used = np.flatnonzero(coef)
    x_digits, x_places = _split(x[:, used])
    w_digits, w_places = _split(coef[used])
    more = [_split(np.broadcast_to(np.asarray(o, dtype=np.float64), (n,))) for o in offsets]
    sums, places = [], []
    for i in range(n):
        terms = [
            (a * b, p + q)
            for a, b, p, q in zip(x_digits[i], w_digits, x_places[i], w_places, strict=True)
            if a
        ]
        terms += [(digits[i], place[i]) for digits, place in more if digits[i]]
        low = min((place for _, place in terms), default=0)
        sums.append(sum(digits << (place - low) for digits, place in terms))
        places.append(low)
    return _join(sums, places)


def _split(values: Array) -> tuple[list[Any], list[Any]]:
    """Integers and exponents: ``values == integers * 2**exponents``."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.ldexp(mantissa, 53).astype(np.int64).tolist(), (exponent - 53).tolist()


def _join(integers: list[int], exponents: list[int]) -> Array:
    """``integers * 2**exponents`` in long double, from the leading bits of each."""
    out = np.zeros(len(integers), dtype=Wide)
    for i, (number, exponent) in enumerate(zip(integers, exponents, strict=True)):
        size = abs(number)
        drop = max(size.bit_length() - 3 * _CHUNK, 0)
        size >>= drop
        value = Wide(0.0)
        for k in (2, 1, 0):
            part = (size >> (k * _CHUNK)) & ((1 << _CHUNK) - 1)
            value += np.ldexp(Wide(float(part)), k * _CHUNK + drop + exponent)
        out[i] = -value if number < 0 else value
    return out
