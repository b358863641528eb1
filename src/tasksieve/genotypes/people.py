"""Lists of people and tables about them: FID and IID, as PLINK writes them, matched with the rows of genotypes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..row_names import row_name
from .files import refuse_empty, text_lines
from .table import Table

Array = np.ndarray[Any, Any]

#: words for a value that is not there
MISSING_WORDS = frozenset({"NA", "N/A", "NAN", "", "."})
#: PLINK's number for it in phenotypes and covariates, however it is written: -9, -9.0 (as R and pandas do), -9e0
MISSING_CODE = -9.0


def read_words(source: Any, name: str) -> list[str]:
    """One word a line of a file (variant identifiers), or the words of a list."""
    if not isinstance(source, str | Path):
        return [str(word) for word in source]
    return [line[0] for line in _lines(source, name)]


def read_ids(source: Any, name: str) -> list[tuple[str, str] | str]:
    """(FID, IID) pairs, or IIDs alone: of a file with or without a header line, or as they are given."""
    if not isinstance(source, str | Path):
        return [str(one) if isinstance(one, str) else (str(one[0]), str(one[1])) for one in source]
    lines, width = _without_header(_lines(source, name))
    return [line[0] if width == 1 or len(line) == 1 else (line[0], line[1]) for line in lines]


def _without_header(lines: list[list[str]]) -> tuple[list[list[str]], int]:
    """Lines, and how many fields name a person in each: 2 where no header says otherwise."""
    head = lines[0][0].upper().removeprefix("#")
    return (lines[1:], 1 if head == "IID" else 2) if head in ("FID", "IID") else (lines, 2)


def flag_people(samples: Table, wanted: Iterable[tuple[str, str] | str], name: str) -> Array:
    """Which rows are named; a ValueError if none is."""
    pairs = {one for one in wanted if not isinstance(one, str)}
    single = {one for one in wanted if isinstance(one, str)}
    flags = np.array([(f, i) in pairs or i in single for f, i in samples.pairs("fid", "iid")], dtype=bool)
    if not flags.any():
        raise ValueError(
            f"{name} names no person of the genotypes, whose first person is FID {samples['fid'][0]}, IID "
            f"{samples['iid'][0]}: it must have a FID and an IID in each line, or an IID alone."
        )
    return flags


def align_people(samples: Table, source: Any, name: str, columns: Sequence[str] | None = None) -> dict[str, Array]:
    """Columns of a file of FID, IID and values, in the order of people; None where a person is not in it.

    Parameters
    ----------
    samples : Table
        With fid and iid.
    source : path
        With a header line (FID IID name ... or #IID name ...), or without: then columns are PHENO1, PHENO2, ...
    name : str
        What to call it in messages.
    columns : list of str, optional
        By default all.

    Returns
    -------
    dict of name -> object array of words
    """
    lines = _lines(source, name)
    rows, width = _without_header(lines)
    names = [f"PHENO{k + 1}" for k in range(len(lines[0]) - 2)] if rows is lines else lines[0][width:]
    wanted = names if columns is None else list(columns)
    for column in wanted:
        if column not in names:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(names) or 'none'}.")
    found: dict[Any, list[str]] = {}
    for line in rows:
        if len(line) != width + len(names):
            fields = f"{len(line)} fields where {width + len(names)} are expected"
            raise ValueError(f"{name}: {fields}: {' '.join(line[:4])}.")
        key = line[0] if width == 1 else (line[0], line[1])
        if key in found:
            raise ValueError(f"{name}: {' '.join(line[:width])} is there twice. Remove one of the lines.")
        found[key] = line[width:]
    keys: list[Any] = samples["iid"].tolist() if width == 1 else samples.pairs("fid", "iid")
    if len(set(keys)) < len(keys):
        raise ValueError(
            f"{name}: two people of the genotypes go by the same identifier. Give cohorts different FIDs."
        )
    if not any(key in found for key in keys):
        first = keys[0] if width == 1 else " ".join(keys[0])
        raise ValueError(
            f"{name} and the genotypes have no person in common: their first person is {first}, that of "
            f"{name} is {' '.join(rows[0][:width]) if rows else 'none'}."
        )
    index = {column: names.index(column) for column in wanted}
    return {
        column: np.array([found[key][k] if key in found else None for key in keys], dtype=object)
        for column, k in index.items()
    }


def are_coded_missing(words: Array) -> Array:
    """Which words are PLINK's number for a missing value."""
    return np.array([word is not None and as_number(word) == MISSING_CODE for word in words.tolist()], dtype=bool)


def are_missing(words: Array) -> Array:
    """Which words stand for a value that is not there; None (of a person who is in no line) does."""
    missing = [word is None or word.upper() in MISSING_WORDS for word in words.tolist()]
    return np.array(missing, dtype=bool) | are_coded_missing(words)


def as_numbers(words: Array, name: str) -> Array:
    """Words as numbers, NaN where missing; a ValueError that names the first that is none."""
    out = np.full(len(words), np.nan)
    for i in np.flatnonzero(~are_missing(words)).tolist():
        number = as_number(words[i])
        if number is None:
            raise ValueError(f"{name}: {words[i]!r} in {row_name(i)} is no number.")
        out[i] = number
    return out


def as_number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def are_numbers(words: Array) -> bool:
    try:
        as_numbers(words, "")
    except ValueError:
        return False
    return True


def _lines(source: Any, name: str) -> list[list[str]]:
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"{name}: there is no file {path}.")
    lines = [_cells(line) for _, line in text_lines(path, f"{name}: {path}") if not line.startswith("##")]
    refuse_empty(lines, f"{name}: {path}")
    return lines


def _cells(line: str) -> list[str]:
    """Between tabs, where cells may be empty, or between any blanks."""
    cells = [cell.strip() for cell in line.split("\t")]
    return line.split() if len(cells) == 1 or any(" " in cell for cell in cells) else cells
