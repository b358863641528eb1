"""Parts of dates in SQL that SQLite, DuckDB and PostgreSQL share: digits of text, and arithmetic."""

from __future__ import annotations


def date_parts(column: str, way: str, part: str) -> str:
    """A part of a column that holds dates, times without a zone, or text as 2024-01-31 10:30:00 (with `way` %Y%m%d
    numbers as 20240131); NULL of anything else."""
    text = f"CAST({column} AS VARCHAR(40))"
    digits = way == "%Y%m%d"
    year = _digits(text, 1, 4)
    month = _digits(text, 5 if digits else 6, 2)
    day = _digits(text, 7, 2) if digits else f"CASE WHEN length({text}) > 7 THEN {_digits(text, 9, 2)} ELSE 1 END"
    hours = "0e0" if digits else _hours(text)
    if part in ("year", "month", "day"):
        found = {"year": year, "month": month, "day": day}[part]
    elif part == "hour":
        found = hours
    else:
        days = _days(year, month, f"({day})")
        found = f"{days} + {hours} / 24e0" if part == "days" else f"(({days} + 3) % 7 + 7) % 7"
    return f"CASE WHEN {_is_date(text, digits)} THEN CAST({found} AS DOUBLE PRECISION) END"


def _is_date(text: str, digits: bool) -> str:
    if digits:
        return f"{text} LIKE '________'"
    zone = f"substr({text}, 12) LIKE '%+%' OR substr({text}, 12) LIKE '%-%' OR {text} LIKE '%Z'"
    return f"({text} LIKE '____-__' OR {text} LIKE '____-__-__%') AND NOT ({zone})"


def _digits(text: str, first: int, count: int) -> str:
    return f"CAST(substr({text}, {first}, {count}) AS INTEGER)"


def _hours(text: str) -> str:
    seconds = f"CASE WHEN length({text}) > 18 THEN CAST(substr({text}, 18) AS DOUBLE PRECISION) ELSE 0e0 END"
    clock = f"{_digits(text, 12, 2)} + {_digits(text, 15, 2)} / 60e0 + {seconds} / 3600e0"
    return f"CASE WHEN length({text}) > 15 THEN {clock} ELSE 0e0 END"


def _days(year: str, month: str, day: str) -> str:
    """Since 1970-01-01, of years that begin in March; a number less its remainder is divided without one."""
    years = f"({year} - CASE WHEN {month} < 3 THEN 1 ELSE 0 END)"
    months = f"(153 * (({month} + 9) % 12) + 2)"
    leaps = " ".join(f"{sign} ({years} - {years} % {n}) / {n}" for sign, n in (("+", 4), ("-", 100), ("+", 400)))
    return f"(365 * {years} {leaps} + ({months} - {months} % 5) / 5 + {day} - 719469)"
