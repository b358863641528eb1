"""PLINK 2 files: .pgen through pgenlib, .pvar and .psam read here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..optional import require
from .files import people_table, refuse_empty, text_lines, variant_table, whole_numbers
from .held import BLOCK_CALLS, CallSource
from .table import Table

Array = np.ndarray[Any, Any]

#: what a file without a header has, by PLINK 2's rules: as in a .bim file, with or without centimorgans
PLAIN = {5: ("CHROM", "ID", "POS", "ALT", "REF"), 6: ("CHROM", "ID", "CM", "POS", "ALT", "REF")}
PLAIN_PEOPLE = {5: ("FID", "IID", "PAT", "MAT", "SEX"), 6: ("FID", "IID", "PAT", "MAT", "SEX", "PHENO1")}
COLUMNS = ("CHROM", "POS", "ID", "REF", "ALT")
SEXES = {"1": "1", "M": "1", "2": "2", "F": "2"}


class PgenFile(CallSource):
    """Hard calls of a .pgen file; variants with more than two alleles are left out and counted."""

    suffix = ".pgen"
    words = "a .pgen, a .pvar and a .psam file"

    def __init__(self, prefix: str) -> None:
        self.prefix = str(prefix).removesuffix(".pgen")
        if Path(self.prefix + ".pvar.zst").is_file() and not Path(self.prefix + ".pvar").is_file():
            raise ValueError(
                f"{self.prefix}.pvar.zst is compressed, which is not read here: plink2 --zst-decompress "
                f"{self.prefix}.pvar.zst > {self.prefix}.pvar (or zstd -d)."
            )
        self.require(".pgen", ".pvar", ".psam")
        self._library = require("pgenlib", ".pgen files need", "'tasksieve[genotypes]'")
        self.people = read_psam(self.prefix + ".psam")
        every = read_pvar(self.prefix + ".pvar")
        self._n_lines = len(every)
        self.two_alleles(every, np.array([2 + alleles.count(",") for alleles in every["effect_allele"].tolist()]))
        self._open().close()  # errors are raised now, not at the first reading

    def _open(self) -> Any:
        name = self.prefix + ".pgen"
        self.first_bytes(".pgen", "plink2 --make-pgen")
        try:
            reader = self._library.PgenReader(name.encode(), raw_sample_ct=self.n_people, variant_ct=self._n_lines)
        except (RuntimeError, OSError, ValueError) as error:
            raise ValueError(
                f"{name} cannot be read with {self.n_people:,} people of the .psam file and {self._n_lines:,} variants "
                f"of the .pvar file ({error}): a file is cut short, or they do not belong together."
            ) from None
        if (reader.get_raw_sample_ct(), reader.get_variant_ct()) != (self.n_people, self._n_lines):
            raise ValueError(
                f"{name} has {reader.get_raw_sample_ct():,} people and {reader.get_variant_ct():,} variants, the .psam "
                f"and .pvar files have {self.n_people:,} and {self._n_lines:,}: they do not belong together."
            )
        return reader

    def read(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        step = max(1, BLOCK_CALLS // self.n_people)
        with self._open() as reader:
            for low in range(0, len(indices), step):
                own = np.arange(low, min(low + step, len(indices)))
                copies = np.empty((len(own), self.n_people), dtype=np.int8)
                try:
                    reader.read_list(self._lines[indices[own]].astype(np.uint32), copies)
                except RuntimeError as error:
                    raise ValueError(f"{self.prefix}.pgen is broken: {error}") from None
                yield own, copies

    def read_dosages(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        """As the file has them, in 1/16384; of people without one the hard call."""
        step = max(1, BLOCK_CALLS // (4 * self.n_people))
        with self._open() as reader:
            for low in range(0, len(indices), step):
                own = np.arange(low, min(low + step, len(indices)))
                copies = np.empty((len(own), self.n_people), dtype=np.float32)
                try:
                    reader.read_dosages_list(self._lines[indices[own]].astype(np.uint32), copies)
                except RuntimeError as error:
                    raise ValueError(f"{self.prefix}.pgen is broken: {error}") from None
                yield own, np.where(copies == -9.0, np.nan, copies)


def read_pvar(name: str) -> Table:
    """Chromosome, position, identifier, ALT (the counted allele) and REF."""
    names, rows, _ = _table(name, "#CHROM", PLAIN, COLUMNS)
    cells = {column: [row[names.index(column)] for row in rows] for column in COLUMNS}
    positions = whole_numbers(cells["POS"], name)
    return variant_table(cells["CHROM"], positions, cells["ID"], cells["ALT"], cells["REF"])


def read_psam(name: str) -> Table:
    """The columns of a .fam file; an absent FID is 0, as in PLINK 2, and the phenotype is the first one there is."""
    names, rows, first = _table(name, ("#FID", "#IID"), PLAIN_PEOPLE, ("IID",))

    def column(key: str, default: str = "0") -> list[str]:
        return [row[names.index(key)] for row in rows] if key in names else [default] * len(rows)

    others = [key for key in names if key not in ("FID", "IID", "SID", "PAT", "MAT", "SEX")]
    sex = [SEXES.get(word.upper(), "0") for word in column("SEX")]
    phenotype = ["-9" if word.upper() in ("NA", "NAN", "") else word for word in column((*others, "")[0], "-9")]
    return people_table(name, first, column("FID"), column("IID"), column("PAT"), column("MAT"), sex, phenotype)


def _table(
    name: str, header: str | tuple[str, ...], plain: dict[int, tuple[str, ...]], needed: tuple[str, ...]
) -> tuple[list[str], list[list[str]], int]:
    """Names of columns, rows, and the line of the first row; ## lines are passed over, and what is long: INFO."""
    names: list[str] = []
    rows: list[list[str]] = []
    first = 0
    for number, line in text_lines(name, name):
        row = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
        if line.startswith("#"):
            names = [row[0].removeprefix("#"), *row[1:]] if line.startswith(header) else names
            continue
        if not names:
            if min(len(row), 6) not in plain:
                raise ValueError(f"{name}, line {number}: {len(row)} fields and no header line before it.")
            names = list(plain[min(len(row), 6)])
        if len(row) < len(names):
            raise ValueError(f"{name}, line {number}: {len(row)} fields where {len(names)} are expected.")
        first = first or number
        rows.append(["" if column == "INFO" else cell for column, cell in zip(names, row, strict=False)])
    refuse_empty(rows, name)
    if absent := [column for column in needed if column not in names]:
        raise ValueError(f"{name} has no column {', '.join(absent)}; it has {', '.join(names)}.")
    return names, rows, first
