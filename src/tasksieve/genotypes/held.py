"""Calls of files that are not read where they lie: packed to 2 bits once, and kept in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from .files import CallFile
from .table import Table

Array = np.ndarray[Any, Any]

BLOCK_CALLS = 1 << 24  # calls unpacked at a time
#: steps of a copy in dosages of so many bits; 16: as .pgen files have them
STEPS = {8: 64, 16: 16384}


class HeldCalls(CallFile):
    """Some variants of a file, in memory: packed calls, or dosages in steps (variants x people)."""

    def __init__(self, prefix: str, people: Table, variants: Table, calls: Array) -> None:
        self.prefix, self.people, self.variants, self.calls = prefix, people, variants, calls


class CallSource(CallFile, ABC):
    """A file whose tables are known, and whose calls are read when it is clear which of them are needed. `dropped` has
    its variants that are not in `variants`, by reason; `unusable` says why `read` leaves out others."""

    dropped: dict[str, int]
    unusable = ""

    def two_alleles(self, variants: Table, n_alleles: Array) -> None:
        """Leave out and count variants with more."""
        self._lines = np.flatnonzero(n_alleles <= 2)
        self.variants = variants.take(self._lines)
        self.dropped = {"variants with more than two alleles": len(variants) - len(self._lines)}
        if not len(self._lines):
            raise ValueError(f"{self.prefix}: every variant has more than two alleles. Split them first.")

    @abstractmethod
    def read(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        """(which of `indices`, copies of the effect allele: int8 of shape (variants, people), negative: missing).

        Places are rows of `variants` in ascending order; one that does not come is of no use, see `unusable`.
        """

    def read_dosages(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        """(which of `indices`, expected copies of the effect allele: (variants, people), NaN: missing)."""
        raise ValueError(f"{self.prefix} has no dosages: they are read from .pgen and .bgen files and VCF-Zarr stores.")

    def held(self, indices: Array, people: Array, bits: int | None = None) -> tuple[HeldCalls, Array]:
        """Some variants of some people, packed or as dosages of so many bits, and flags of those that were read; others
        are missing for all."""
        if bits is not None:
            return self._held_dosages(indices, people, bits)
        packed = np.empty((len(indices), (len(people) + 3) // 4), dtype=np.uint8)
        given = np.zeros(len(indices), dtype=bool)
        for own, copies in self.read(indices):
            packed[own] = pack_calls(copies if len(people) == self.n_people else copies[:, people])
            given[own] = True
        packed[~given] = pack_calls(np.full((1, len(people)), -1, dtype=np.int8))
        return HeldCalls(self.prefix, self.people.take(people), self.variants.take(indices), packed), given

    def _held_dosages(self, indices: Array, people: Array, bits: int) -> tuple[HeldCalls, Array]:
        nothing = in_steps(np.array(np.nan), bits, "")
        steps = np.full((len(indices), len(people)), nothing, dtype=nothing.dtype)
        given = np.zeros(len(indices), dtype=bool)
        for own, copies in self.read_dosages(indices):
            steps[own] = in_steps(copies[:, people], bits, self.prefix)
            given[own] = True
        return HeldCalls(self.prefix, self.people.take(people), self.variants.take(indices), steps), given


def in_steps(copies: Array, bits: int, name: str) -> Array:
    """Copies (NaN: missing) as whole numbers of steps, the nearest ones; the largest number where one is missing."""
    kind: Any = {8: np.uint8, 16: np.uint16}[bits]
    missing = np.isnan(copies)
    if ((copies < 0.0) | (copies > 2.0))[~missing].any():
        raise ValueError(f"{name}: a dosage is not between 0 and 2.")
    steps = np.rint(np.where(missing, 0.0, copies).astype(np.float64) * STEPS[bits])
    return np.where(missing, np.iinfo(kind).max, steps).astype(kind)


def pack_calls(copies: Array) -> Array:
    """Copies of the effect allele (variants x people; negative: missing) as the bytes of a .bed file."""
    codes = np.zeros((len(copies), 4 * ((copies.shape[1] + 3) // 4)), dtype=np.uint8)
    own = codes[:, : copies.shape[1]]
    own[copies == 0], own[copies == 1], own[copies < 0] = 3, 2, 1
    first, second, third, fourth = (codes[:, k::4] for k in range(4))
    return first | second << 2 | third << 4 | fourth << 6
