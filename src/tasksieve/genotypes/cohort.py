"""The people of one study: one file, or one a chromosome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._kernels import kernels
from .files import CallFile, matching_prefixes
from .held import CallSource
from .table import Table, stacked

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cohort:
    """People, and where their calls of each variant lie.

    - `rows` (list of int arrays): For each file the lines of its .fam, in the cohort's order of people.
    - `home`, `index` (int arrays of shape (d,)): The file of each variant, and its line in the .bim there; -1: it is in
      none.
    - `flip` (uint8 array of shape (d,)): 1 where the file counts the other allele.
    """

    name: str
    files: Sequence[CallFile]
    rows: Sequence[Array]
    home: Array
    index: Array
    flip: Array

    @property
    def n_rows(self) -> int:
        return len(self.rows[0])

    @property
    def people(self) -> Table:
        return self.files[0].people.take(self.rows[0])

    @property
    def variants(self) -> Table:
        """Of all files, one after the other."""
        return stacked([file.variants for file in self.files])

    def with_variants(self, chosen: Array) -> Cohort:
        return replace(self, home=self.home[chosen], index=self.index[chosen], flip=self.flip[chosen])

    def among(self, places: Array, count: int) -> Cohort:
        """The variants in these places of `count`; the others are in no file."""
        home, index, flip = np.full(count, -1), np.full(count, -1), np.zeros(count, dtype=np.uint8)
        home[places], index[places], flip[places] = self.home, self.index, self.flip
        return replace(self, home=home, index=index, flip=flip)

    def lies_as(self, people: Array) -> bool:
        """Whether these are all people of the files, in their order, and all variants as they are counted there."""
        if self.flip.any() or (self.home < 0).any() or (np.diff(self.home) < 0).any():
            return False
        return all(
            len(people) == file.n_people and np.array_equal(rows[people], np.arange(file.n_people))
            for rows, file in zip(self.rows, self.files, strict=True)
        )

    def copy(self, variants: Array, people: Array, first: int, threads: int, out: Array) -> None:
        """Calls of some variants, each in a row of `out`, of people (-1: of another cohort) from place `first` on."""
        home, index, flip = self.home[variants], self.index[variants], self.flip[variants]
        for k, (file, rows) in enumerate(zip(self.files, self.rows, strict=True)):
            own = np.flatnonzero((home == k) | (home < 0) if k == 0 else home == k)  # the first: also those in no file
            if len(own):
                kernels.copy_genotypes(
                    file.calls.view(np.ndarray), file.n_people, np.where(home[own] < 0, -1, index[own]),
                    np.ascontiguousarray(flip[own]), own, np.where(people < 0, -1, rows[people]), first, threads, out,
                )  # fmt: skip

    def held(self, people: Array, bits: int | None = None) -> tuple[Cohort, Array]:
        """These people alone, their calls (or dosages of so many bits) of variants in use read to memory; and flags of
        variants that a file turns out not to give, which are then missing for all people."""
        files, rows, home, index = list(self.files), list(self.rows), self.home.copy(), self.index.copy()
        for k, file in enumerate(self.files):
            assert isinstance(file, CallSource)  # others are read where they lie
            own, lines = np.flatnonzero(self.home == k), np.sort(self.rows[k][people])
            used, at = np.unique(self.index[own], return_inverse=True)
            files[k], given = file.held(used, lines, bits)
            rows[k] = np.searchsorted(lines, self.rows[k][people])
            index[own] = np.where(given[at], at, -1)
            home[own[~given[at]]] = -1
        left = replace(self, files=files, rows=rows, home=home, index=index)
        return left, (home < 0) & (self.home >= 0)

    def holes_by_person(self, threads: int) -> Array:
        """Missing calls of each person; a variant in no file is missing."""
        found = np.full(self.n_rows, np.count_nonzero(self.home < 0), dtype=np.int64)
        for k, (file, rows) in enumerate(zip(self.files, self.rows, strict=True)):
            counts = np.empty(file.n_people, dtype=np.int64)
            indices = np.ascontiguousarray(self.index[self.home == k])
            kernels.genotype_row_holes(file.calls.view(np.ndarray), file.n_people, indices, threads, counts)
            found += counts[rows]
        return found


def open_cohort(prefix: str, name: str, kind: Any) -> Cohort:
    """All people and all variants of a prefix; `kind` is the class of its files."""
    files: list[CallFile] = [kind(found) for found in matching_prefixes(prefix, kind.suffix)]
    people = files[0].people.pairs("fid", "iid")
    rows = [np.arange(len(people))]
    for file in files[1:]:
        lines = {person: i for i, person in enumerate(file.people.pairs("fid", "iid"))}
        if len(lines) != len(people) or any(person not in lines for person in people):
            raise ValueError(
                f"{file.prefix} and {files[0].prefix} list different people: files of one prefix with @ must "
                "be of the same. Give several studies as a list."
            )
        rows.append(np.array([lines[person] for person in people]))
    sizes = [len(file.variants) for file in files]
    home = np.repeat(np.arange(len(files)), sizes)
    index = np.concatenate([np.arange(size) for size in sizes])
    return Cohort(name, files, rows, home, index, np.zeros(len(home), dtype=np.uint8))
