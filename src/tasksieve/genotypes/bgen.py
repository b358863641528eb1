"""BGEN files of layout 2 (version 1.2 and later): probabilities of two alleles in two copies, 8 or 16 bits each."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .files import people_table, text_lines, variant_table
from .held import BLOCK_CALLS, CallSource

Array = np.ndarray[Any, Any]

LAYOUT = 2
PLAIN, ZLIB = 0, 1  # of the blocks of probabilities
KINDS: dict[int, np.dtype[Any]] = {8: np.dtype("u1"), 16: np.dtype("<u2")}  # of a probability


class BgenFile(CallSource):
    """Dosages of the second allele of each variant; variants with other than two alleles are left out and counted.

    - `prefix`: Path of the file, with or without .bgen. People are those of the .sample file beside it, if there is
      one, else those that it names itself.
    """

    suffix = ".bgen"
    words = "a .bgen file"

    def __init__(self, prefix: str) -> None:
        self.prefix = str(prefix).removesuffix(".bgen")
        self.require(".bgen")
        self._name = self.prefix + ".bgen"
        if not Path(self._name).stat().st_size:
            raise ValueError(f"{self._name} is empty.")
        with open(self._name, "rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._read_tables()
        except (struct.error, UnicodeDecodeError, IndexError):
            raise ValueError(f"{self._name} is no whole BGEN file: it is cut short.") from None

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a BGEN file is read once, and not sent to other processes")

    def _other(self, what: str) -> ValueError:
        return ValueError(
            f"{self._name} {what}, which is not read here. plink2 --bgen {self._name} ref-first --make-pgen --out "
            f"{self.prefix} makes a .pgen of it."
        )

    def _read_tables(self) -> None:
        content = self._bytes
        first, length, n_variants, self._n_people = struct.unpack_from("<4I", content, 0)
        if content[16:20] not in (b"bgen", b"\0\0\0\0") or length < 20:
            raise ValueError(f"{self._name} is no BGEN file: bytes 17 to 20 are not 'bgen'.")
        (flags,) = struct.unpack_from("<I", content, length)
        self._compression, layout = flags & 3, flags >> 2 & 15
        if layout != LAYOUT:
            raise self._other(f"has layout {layout}")
        if self._compression not in (PLAIN, ZLIB):
            raise self._other("is compressed by zstd")
        self.people = self._people(length + 4 if flags >> 31 else None)
        columns: list[list[Any]] = [[], [], [], [], []]
        alleles: list[int] = []
        self._blocks, at = np.empty((n_variants, 2), dtype=np.int64), first + 4
        for j in range(n_variants):
            at = self._variant(at, columns, alleles)
            (size,) = struct.unpack_from("<I", content, at)
            self._blocks[j], at = (at + 4, size), at + 4 + size
            if at > len(content):
                raise IndexError
        if not n_variants:
            raise ValueError(f"{self._name} has no variants.")
        chromosome, positions, ids, effect, other = columns
        table = variant_table(chromosome, np.array(positions, dtype=np.int64), ids, effect, other)
        self.two_alleles(table, np.array(alleles))

    def _variant(self, at: int, columns: list[list[Any]], alleles: list[int]) -> int:
        """Add the variant that is described at a place; where its probabilities begin."""
        content, words = self._bytes, []
        for _ in range(3):
            (size,) = struct.unpack_from("<H", content, at)
            words.append(content[at + 2 : at + 2 + size].decode())
            at += 2 + size
        position, count = struct.unpack_from("<IH", content, at)
        at, found = at + 6, []
        for _ in range(count):
            (size,) = struct.unpack_from("<I", content, at)
            found.append(content[at + 4 : at + 4 + size].decode())
            at += 4 + size
        name, rsid, chromosome = words
        first, second = (*found, "", "")[:2]
        place = f"{chromosome}:{position}:{first}:{second}"
        called = next((one for one in (rsid, name) if one not in ("", ".")), place)
        for column, value in zip(columns, (chromosome, position, called, second, first), strict=True):
            column.append(value)
        alleles.append(count if count != 1 else 3)  # one allele alone is of no use, either
        return at

    def _people(self, at: int | None) -> Any:
        """Of the .sample file, else those at a place of the file."""
        beside = self.prefix + ".sample"
        if Path(beside).is_file():
            rows = [(number, line.split()) for number, line in text_lines(beside, beside)][2:]
            if any(len(row) < 2 for _, row in rows) or len(rows) != self._n_people:
                raise ValueError(
                    f"{beside} has {len(rows):,} people below its two lines of names, {self._name} has "
                    f"{self._n_people:,}; a line begins with ID_1 and ID_2."
                )
            return people_table(beside, rows[0][0], [row[0] for _, row in rows], [row[1] for _, row in rows])
        if at is None:
            raise ValueError(f"{self._name} does not name its people: put {Path(beside).name} beside it.")
        names, at = [], at + 8
        for _ in range(self._n_people):
            (size,) = struct.unpack_from("<H", self._bytes, at)
            names.append(self._bytes[at + 2 : at + 2 + size].decode())
            at += 2 + size
        return people_table(self._name, 1, ["0"] * len(names), names)

    def read(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        raise ValueError(f"{self._name} holds probabilities, no calls: read dosages.")

    def read_dosages(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        step = max(1, BLOCK_CALLS // (8 * self.n_people))
        for low in range(0, len(indices), step):
            own = np.arange(low, min(low + step, len(indices)))
            yield own, np.array([self._dosages(int(j)) for j in indices[own]]).reshape(len(own), self.n_people)

    def _dosages(self, j: int) -> Array:
        """Expected copies of the second allele: 2 - 2 P(first, first) - P(first, second)."""
        at, size = self._blocks[self._lines[j]].tolist()
        name, n = self.variants["id"][j], self.n_people
        block = self._bytes[at + 4 : at + size] if self._compression == ZLIB else self._bytes[at : at + size]
        try:
            block = zlib.decompress(block) if self._compression == ZLIB else block
        except zlib.error as error:
            raise ValueError(f"{self._name}: variant {name} is broken: {error}.") from None
        if len(block) < 10 + n or struct.unpack_from("<IH", block, 0) != (n, 2):
            raise ValueError(f"{self._name}: the probabilities of variant {name} are not of {n:,} people.")
        ploidy, (phased, bits) = np.frombuffer(block, np.uint8, n, 8), block[8 + n : 10 + n]
        if phased or (ploidy & 63 != 2).any():
            raise self._other(f"has {'phased' if phased else 'haploid'} probabilities of variant {name}")
        if bits not in KINDS:
            raise self._other(f"has probabilities of {bits} bits of variant {name}")
        if len(block) != 10 + n + 2 * n * bits // 8:
            raise ValueError(f"{self._name}: the probabilities of variant {name} are cut short.")
        both, one = np.frombuffer(block, KINDS[bits], 2 * n, 10 + n).reshape(n, 2).T.astype(np.float64)
        most = float((1 << bits) - 1)
        if (both + one > most).any():
            raise ValueError(f"{self._name}: probabilities of variant {name} add up to more than 1.")
        return np.where(ploidy >> 7, np.nan, (2.0 * (most - both) - one) / most)
