"""A .bed file with its .bim and .fam: checked before it is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .table import Table

Array = np.ndarray[Any, Any]

MAGIC = bytes([0x6C, 0x1B])
#: what @ in a prefix stands for, in the order of the genome
CHROMOSOMES = (*(str(k) for k in range(1, 27)), "X", "Y", "XY", "MT")


class CallFile:
    """What a cohort needs of a file: its people, its variants, and its calls (variants x bytes) as in a .bed file."""

    suffix = ""
    words = ""
    prefix: str
    people: Table
    variants: Table
    calls: Array

    @property
    def n_people(self) -> int:
        return len(self.people)

    def require(self, *suffixes: str) -> None:
        """A ValueError where one of the files is not there."""
        for suffix in suffixes:
            if not Path(self.prefix + suffix).is_file():
                raise ValueError(
                    f"there is no file {self.prefix}{suffix}: give the prefix of {self.words} (@ in it stands for the "
                    "chromosome)."
                )

    def first_bytes(self, kind: str, remedy: str) -> bytes:
        """Of the file with the calls, which begins as all of PLINK's do."""
        name = self.prefix + self.suffix
        with open(name, "rb") as file:
            head = file.read(3)
        if len(head) < 3 or head[:2] != MAGIC:
            raise ValueError(
                f"{name} is no {kind} file: it begins with {head.hex(' ') or 'nothing'}, not with 6c 1b. Make one with "
                f"{remedy}."
            )
        return head


class BedFile(CallFile):
    """Calls of a .bed file, mapped, not read; people and variants of the .fam and the .bim file beside it."""

    suffix = ".bed"
    words = "a .bed, a .bim and a .fam file"

    def __init__(self, prefix: str) -> None:
        self.prefix = str(prefix).removesuffix(".bed")
        self.require(".bed", ".bim", ".fam")
        people, variants = self.prefix + ".fam", self.prefix + ".bim"
        self.people = people_table(people, 1, *_fields(people, "family, person, father, mother, sex and phenotype"))
        words = "chromosome, identifier, centimorgans, position and two alleles"
        chromosome, ids, _, positions, effect, other = _fields(variants, words)
        self.variants = variant_table(chromosome, whole_numbers(positions, variants), ids, effect, other)
        self.calls = self._map()

    def _map(self) -> Array:
        name, width = self.prefix + ".bed", (self.n_people + 3) // 4
        expected, size = 3 + width * len(self.variants), os.path.getsize(name)
        head = self.first_bytes("PLINK 1 .bed", "plink2 --make-bed")
        if head[2] != 1:
            raise ValueError(f"{name} is sample-major (its third byte is not 01): rewrite it with plink --make-bed.")
        if size != expected:
            raise ValueError(
                f"{name} has {size:,} bytes, but {self.n_people:,} people in the .fam file and {len(self.variants):,} "
                f"variants in the .bim file make {expected:,}: a file is cut short, or they do not belong together."
            )
        return np.memmap(name, dtype=np.uint8, mode="r", offset=3, shape=(len(self.variants), width))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "calls": None}  # a copy in another process maps the file itself

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.calls = self._map()


def matching_prefixes(prefix: str, suffix: str = ".bed") -> list[str]:
    """The prefix itself, or with @ those of the chromosomes that have such a file, in the order of the genome."""
    prefix = str(prefix)
    if "@" not in Path(prefix).name:
        return [prefix]
    found = [prefix.replace("@", name) for name in CHROMOSOMES]
    found = [name for name in found if Path(name.removesuffix(suffix) + suffix).exists()]
    if not found:
        raise ValueError(
            f"prefix {prefix!r}: there is no {suffix or 'Zarr'} file with a chromosome (1 to 26, X, Y, XY, MT) in "
            "place of @."
        )
    return found


def variant_table(chromosome: Any, pos: Any, ids: Any, effect: Any, other: Any) -> Table:
    return Table({"chr": chromosome, "pos": pos, "id": ids, "effect_allele": effect, "other_allele": other})


def people_table(name: str, first: int, fid: list[str], iid: list[str], *others: list[str]) -> Table:
    """People as in a .fam file, no two the same, the first of them in line `first`; father, mother, sex and phenotype
    are not known where they are not given."""
    seen: dict[tuple[str, str], int] = {}
    for line, person in enumerate(zip(fid, iid, strict=True), start=first):
        if person in seen:
            raise ValueError(
                f"{name}, line {line}: person {' '.join(person)} is in line {seen[person]} already. Remove one of them "
                "or give it another identifier."
            )
        seen[person] = line
    unknown = [[word] * len(iid) for word in ("0", "0", "0", "-9")]
    columns = (fid, iid, *(others or unknown))
    return Table(dict(zip(("fid", "iid", "father", "mother", "sex", "phenotype"), columns, strict=True)))


def text_lines(path: str | Path, name: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, and their numbers; `name` is what to call the file in messages."""
    try:
        with open(path, encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except UnicodeDecodeError:
        raise ValueError(f"{name} is no text file.") from None


def refuse_empty(rows: list[Any], name: str) -> None:
    if not rows:
        raise ValueError(f"{name} is empty.")


def _fields(name: str, words: str) -> list[list[str]]:
    """The six columns of a file without a header."""
    rows = []
    for number, line in text_lines(name, name):
        rows.append(line.split())
        if len(rows[-1]) != 6:
            raise ValueError(f"{name}, line {number}: {len(rows[-1])} fields where 6 are expected: {words}.")
    refuse_empty(rows, name)
    return [list(column) for column in zip(*rows, strict=True)]


def whole_numbers(words: list[str], name: str) -> Array:
    """Positions; a ValueError that names the first that is none."""
    try:
        return np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        for line, word in enumerate(words, start=1):
            if not word.lstrip("-").isdigit() or len(word) > 18:
                raise ValueError(f"{name}, line {line}: the position {word!r} is no whole number.") from None
        raise
