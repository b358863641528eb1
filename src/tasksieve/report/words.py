"""Numbers and nouns as a person would write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plural(noun: str) -> str:
    return noun + ("es" if noun.endswith("s") else "s")


def count(n: int, noun: str) -> str:
    """ "1 feature", "5,000 features" """
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def are(n: int) -> str:
    """ "1 is", "2 are" """
    return "is" if n == 1 else "are"


def few(names: Iterable[object], most: int) -> str:
    """ "a, b, c, ..." """
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def capital(text: str) -> str:
    """The first letter large, the others as they are."""
    return text[:1].upper() + text[1:]


def number(value: Any) -> float | None:
    """A number for JSON: six digits, None where it is missing or not finite."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{float(value):.6g}")


def numbers(values: Any) -> list[float | None]:
    """Numbers for JSON."""
    return [number(value) for value in np.asarray(values, dtype=np.float64).ravel()]


def quantity(value: Any, sign: bool = False) -> str:
    """A number with three significant digits, as a person would write it."""
    value = number(value)
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    before = "−" if value < 0 else "+" if sign else ""
    if 1e-4 <= size < 1e5:
        return f"{before}{size:,.{max(0, 2 - int(np.floor(np.log10(size))))}f}"
    return before + _power(size, 2)


def score(value: Any) -> str:
    """R², an accuracy or a difference of such: what is only rounding about zero is zero."""
    return "0" if value is not None and abs(value) < 1e-9 else quantity(value)


def small(value: Any) -> str:
    """A small number in powers of ten."""
    if value is None or not np.isfinite(value):
        return "–"
    return "0" if value == 0 else ("−" if value < 0 else "") + _power(abs(float(value)), 1)


def _power(size: float, digits: int) -> str:
    factor, exponent = f"{size:.{digits}e}".split("e")
    return f"{factor}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10{str(int(exponent)).translate(RAISED)}"
