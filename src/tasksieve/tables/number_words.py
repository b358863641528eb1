"""Numbers as people write them in text: decimal commas, signs between thousands, percent signs, leading zeros."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..tasks.refusals import is_number
from .table import Array, TableError

# A number as much of Europe writes it; thousands are apart by points, if at all.
DECIMAL_COMMA = re.compile(r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][-+]?\d+)?\s*")
# Digits of a name: a postal code, the number of a patient.
LEADING_ZEROS = re.compile(r"\s*0\d+\s*")
#: what pandas reads as no value (`read_csv`, na_values)
MISSING_WORDS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
# What spreadsheets show where a formula has no result. #N/A says that a value is missing.
ERROR_CELLS = frozenset((
    "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!",
    "#CONNECT!", "#UNKNOWN!", "#GETTING_DATA",
))  # fmt: skip
_POINT_GROUPS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")
_COMMA_GROUPS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_BETWEEN = ",.'’ \u00a0\u202f"  # thousands
_SAMPLE = 20  # words that are looked at before a whole column is


def _grammar(between: str, decimal: str) -> re.Pattern[str]:
    whole = rf"(\d+|[1-9]\d{{0,2}}({re.escape(between)}\d{{3}})+)" if between else r"\d+"
    return re.compile(rf"\s*[-+]?{whole}({re.escape(decimal)}\d*)?([eE][-+]?\d+)?\s*%?\s*")


_GRAMMARS = {
    (between, decimal): _grammar(between, decimal)
    for decimal in ".,"
    for between in ("", *_BETWEEN.replace(decimal, ""))
}


def are_digits(words: Iterable[str]) -> bool:
    """Whether all words are digits, as names of people and places may be."""
    return all(word.isdigit() for word in words)


def is_plain_number(word: str) -> bool:
    """Whether a word is a number and no name of digits such as 007."""
    return is_number(word) and not LEADING_ZEROS.fullmatch(word)


def find_decimal(columns: Iterable[Sequence[str]], *, commas_between: bool = False) -> tuple[str, str | None]:
    """The sign between whole numbers and their fractions, "." or ",", from the words of columns; and a word that leaves
    it open (1,234), if nothing else decides.

    - `commas_between`: Such a word is taken for a whole number, as where commas are between the cells as well.
    """
    commas: list[str] = []
    points = False
    for words in columns:
        if not words or not all(_either(word) for word in words[:_SAMPLE]):
            continue
        stripped = [word.strip().removesuffix("%").rstrip() for word in words]
        if not all(_either(word) for word in stripped):
            continue
        with_comma = [word for word in stripped if "," in word]
        if with_comma and all(DECIMAL_COMMA.fullmatch(word) or _COMMA_GROUPS.fullmatch(word) for word in with_comma):
            commas += with_comma
        points |= any(
            "." in word and not DECIMAL_COMMA.fullmatch(word) and not _POINT_GROUPS.fullmatch(word)
            for word in stripped
        )
    if not commas or points:
        return ".", None
    if not all(_COMMA_GROUPS.fullmatch(word) for word in commas):
        # 1,234,567 cannot have two decimal commas
        return (".", None) if any(word.count(",") > 1 for word in commas) else (",", None)
    if commas_between or any(word.count(",") > 1 for word in commas):
        return ".", None
    return ".", commas[0]


def _either(word: str) -> bool:
    """Whether a word may be a number, whatever its commas and points mean."""
    return is_number(word) or any(pattern.fullmatch(word) for pattern in _GRAMMARS.values())


def numbers_in_words(words: Sequence[str], decimal: str) -> tuple[Array, str] | None:
    """The numbers that words stand for, and what they have beside digits, in words; None where one is something else,
    or where all are digits alone, which may be names.

    - `decimal` ({".", ","}): Percentages become fractions, as spreadsheets keep them.
    """
    for between in ("", *_BETWEEN.replace(decimal, "")):
        pattern = _GRAMMARS[between, decimal]
        if not all(pattern.fullmatch(word) for word in words[:_SAMPLE]):
            continue
        if all(pattern.fullmatch(word) for word in words):
            percents = sum(word.rstrip().endswith("%") for word in words)
            if percents not in (0, len(words)) or all(word.strip().lstrip("+-").isdigit() for word in words):
                return None
            plain = [word.replace(between, "") if between else word for word in words]
            numbers = np.array([_number(word, decimal) for word in plain])
            beside = [f"{between!r} between thousands"] if between else []
            beside += ["percent signs (read as fractions)"] if percents else []
            return numbers, " and ".join(beside) or f"{decimal!r} before decimals"
    return None


def _number(word: str, decimal: str) -> float:
    bare = word.strip().replace(decimal, ".")
    if not bare.endswith("%"):
        return float(bare)
    bare = bare[:-1].rstrip()
    digits, _, exponent = bare.lower().partition("e")
    return float(f"{digits}e{int(exponent or 0) - 2}")  # the nearest double of the fraction


def looks_like_numbers(words: Iterable[str]) -> bool:
    """Whether all words are numbers, some of which have more than a plain number has."""
    found = list(words)
    return any(numbers_in_words(found, decimal) is not None for decimal in ".,")


def is_beyond_doubles(word: str) -> bool:
    """Whether a word is a whole number that no double holds."""
    digits = word.strip().lstrip("+-").lstrip("0")
    return digits.isdigit() and (len(digits) > 16 or int(digits) > 2**53)


def beyond_doubles(word: Any) -> str:
    """Why a whole number is refused."""
    return (
        f"{str(word)[:40]} is a whole number beyond 2^53, which arithmetic would round: an identifier? --id carries it "
        "into predictions, --drop leaves it out"
    )


def refuse_open_decimal(name: str, word: str) -> None:
    raise TableError(
        f"{name}: numbers such as {word!r}: is the comma before decimals, or between thousands? Say --decimal ',' or "
        "--decimal '.'"
    )
