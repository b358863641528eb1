"""PLINK 2 files: .pgen through pgenlib, .pvar and .psam read here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .files import refuse_repeated_people, whole_numbers
from .held import BLOCK_CALLS, CallSource
from .table import Table

Array = np.ndarray[Any, Any]

INSTALL = "pip install 'tasksieve[genotypes]'"
#: what a file without a header has, by PLINK 2's rules: as in a .bim file, with or without centimorgans
PLAIN = {5: ("CHROM", "ID", "POS", "ALT", "REF"), 6: ("CHROM", "ID", "CM", "POS", "ALT", "REF")}
PLAIN_PEOPLE = {5: ("FID", "IID", "PAT", "MAT", "SEX"), 6: ("FID", "IID", "PAT", "MAT", "SEX", "PHENO1")}
COLUMNS = ("CHROM", "POS", "ID", "REF", "ALT")
SEXES = {"1": "1", "M": "1", "2": "2", "F": "2"}


class PgenFile(CallSource):
    """Hard calls of a .pgen file; variants with more than two alleles are left out and counted.

    - `prefix`: Of the three files; ``.pgen`` at its end is left out.
    """

    suffix = ".pgen"
    words = "a .pgen, a .pvar and a .psam file"

    def __init__(self, prefix: str) -> None:
        self.prefix = str(prefix).removesuffix(".pgen")
        for suffix in (".pgen", ".pvar", ".psam"):
            if not Path(self.prefix + suffix).is_file():
                self._refuse_absent(suffix)
        self._library = _pgenlib()
        self.people = read_psam(self.prefix + ".psam")
        every = read_pvar(self.prefix + ".pvar")
        self._n_lines = len(every)
        two = np.array(["," not in alleles for alleles in every["effect_allele"].tolist()], dtype=bool)
        self._lines = np.flatnonzero(two)
        self.variants = every.take(self._lines)
        self.dropped = {"variants with more than two alleles": int(np.count_nonzero(~two))}
        if not len(self._lines):
            raise ValueError(f"{self.prefix}.pvar: every variant has more than two alleles. Split them first.")
        self._open().close()  # errors are raised now, not at the first reading

    def _refuse_absent(self, suffix: str) -> None:
        if suffix == ".pvar" and Path(self.prefix + ".pvar.zst").is_file():
            raise ValueError(
                f"{self.prefix}.pvar.zst is compressed, which is not read here: plink2 --zst-decompress "
                f"{self.prefix}.pvar.zst > {self.prefix}.pvar (or zstd -d)."
            )
        raise ValueError(
            f"there is no file {self.prefix}{suffix}: give the prefix of {self.words} (@ in it stands for the "
            "chromosome)."
        )

    def _open(self) -> Any:
        name = self.prefix + ".pgen"
        with open(name, "rb") as file:
            head = file.read(3)
        if len(head) < 3 or head[:2] != b"\x6c\x1b":
            raise ValueError(
                f"{name} is no .pgen file: it begins with {head.hex(' ') or 'nothing'}, not with 6c 1b. Make one with "
                "plink2 --make-pgen."
            )
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


def _pgenlib() -> Any:
    try:
        import pgenlib
    except ImportError as error:
        raise ImportError(f".pgen files need pgenlib: {INSTALL}") from error
    return pgenlib


def read_pvar(name: str) -> Table:
    """Chromosome, position, identifier, ALT (the counted allele) and REF."""
    names, rows, _ = _table(name, "#CHROM", PLAIN, COLUMNS)
    cells = {column: [row[names.index(column)] for row in rows] for column in COLUMNS}
    return Table(
        {
            "chr": np.array(cells["CHROM"], dtype=object),
            "pos": whole_numbers(cells["POS"], name),
            "id": np.array(cells["ID"], dtype=object),
            "effect_allele": np.array(cells["ALT"], dtype=object),
            "other_allele": np.array(cells["REF"], dtype=object),
        }
    )


def read_psam(name: str) -> Table:
    """The columns of a .fam file; an absent FID is 0, as in PLINK 2, and the phenotype is the first one there is."""
    names, rows, first = _table(name, ("#FID", "#IID"), PLAIN_PEOPLE, ("IID",))

    def column(key: str, default: str) -> list[str]:
        return [row[names.index(key)] for row in rows] if key in names else [default] * len(rows)

    fid, iid = column("FID", "0"), column("IID", "")
    refuse_repeated_people(name, fid, iid, first)
    others = [key for key in names if key not in ("FID", "IID", "SID", "PAT", "MAT", "SEX")]
    phenotype = column(others[0], "-9") if others else ["-9"] * len(rows)
    columns = {
        "fid": fid,
        "iid": iid,
        "father": column("PAT", "0"),
        "mother": column("MAT", "0"),
        "sex": [SEXES.get(word.upper(), "0") for word in column("SEX", "0")],
        "phenotype": ["-9" if word.upper() in ("NA", "NAN", "") else word for word in phenotype],
    }
    return Table({key: np.array(values, dtype=object) for key, values in columns.items()})


def _table(
    name: str, header: str | tuple[str, ...], plain: dict[int, tuple[str, ...]], needed: tuple[str, ...]
) -> tuple[list[str], list[list[str]], int]:
    """Names of columns, rows, and the line of the first row; ## lines are passed over, and what is long: INFO."""
    names: list[str] = []
    rows: list[list[str]] = []
    first = 0
    try:
        with open(name, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip() or (line.startswith("#") and not line.startswith(header)):
                    continue
                row = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
                if line.startswith("#"):
                    names = [row[0].removeprefix("#"), *row[1:]]
                    continue
                if not names:
                    if min(len(row), 6) not in plain:
                        raise ValueError(f"{name}, line {number}: {len(row)} fields and no header line before it.")
                    names = list(plain[min(len(row), 6)])
                if len(row) < len(names):
                    raise ValueError(f"{name}, line {number}: {len(row)} fields where {len(names)} are expected.")
                if not first:
                    first = number
                    if absent := [column for column in needed if column not in names]:
                        raise ValueError(f"{name} has no column {', '.join(absent)}; it has {', '.join(names)}.")
                rows.append(["" if column == "INFO" else cell for column, cell in zip(names, row, strict=False)])
    except UnicodeDecodeError:
        raise ValueError(f"{name} is no text file.") from None
    if not rows:
        raise ValueError(f"{name} is empty.")
    return names, rows, first
