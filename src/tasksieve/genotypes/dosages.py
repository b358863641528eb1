"""Dosages as X: expected copies of the effect allele, kept as whole numbers of 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..design import BesideStorage, DenseStorage, StepStorage
from ..messages import value_error
from .held import STEPS
from .matrix import Genotypes, task_order

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 16 << 20  # dosages handled at a time


class Dosages(Genotypes):
    """What the readers give with ``dosages=``; pass it as X to any batch estimator, as `Genotypes`.

    A column is the expected number of copies of a variant's effect allele, rounded to the nearest step when it is
    read: 1/16384 with 16 bits, as .pgen files keep them, and 1/64 with 8. A missing one is the mean of its task's
    rows, rounded in the same way (halves up), so that all numbers are whole steps.
    """

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self._cohorts[0].files[0].calls.dtype

    @property
    def step(self) -> float:
        """A power of two, so that nothing is rounded by it."""
        return 1.0 / STEPS[8 * self.dtype.itemsize]

    def __repr__(self) -> str:
        return super().__repr__().replace("Genotypes of", f"Dosages ({8 * self.dtype.itemsize} bits) of")

    def _steps(self, variants: Array, rows: Array) -> Array:
        """(variants, rows), the largest number where one is missing."""
        missing = np.iinfo(self.dtype).max
        out = np.full((len(variants), len(rows)), missing, dtype=self.dtype)
        whole = 2 * STEPS[8 * self.dtype.itemsize]
        for k, cohort in enumerate(self._cohorts):
            here = np.flatnonzero(self._cohort_of[rows] == k)
            for m, (file, lines) in enumerate(zip(cohort.files, cohort.rows, strict=True)):
                own = np.flatnonzero(cohort.home[variants] == m)
                if len(here) and len(own):
                    chosen = variants[own]
                    found = file.calls[cohort.index[chosen]][:, lines[self._person[rows[here]]]]
                    turned = (cohort.flip[chosen] == 1)[:, None] & (found != missing)
                    out[np.ix_(own, here)] = np.where(turned, whole - found, found)
        return out

    def _blocks(self, variants: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
        step = max(1, BLOCK_BYTES // (self.dtype.itemsize * max(len(rows), 1)))
        for low in range(0, len(variants), step):
            own = variants[low : low + step]
            yield own, self._steps(own, rows)

    def calls(self, variants: Array) -> Array:
        """Copies of the effect allele, NaN where they are missing: (people, variants)."""
        variants = np.asarray(variants, dtype=np.int64)
        out = np.empty((self.n_rows, len(variants)), order="F")
        low = 0
        for own, steps in self._blocks(variants, np.arange(self.n_rows)):
            part = out[:, low : low + len(own)]
            part[:] = steps.T * self.step
            part[(steps == np.iinfo(self.dtype).max).T] = np.nan
            low += len(own)
        return out

    def count_blocks(self, *, task: Any = None, variants: Array | None = None) -> Iterator[tuple[Array, Array]]:
        """(variants, three numbers of each task), some at a time: 0, all copies, and missing ones, so that frequencies
        are what they are of `Genotypes`."""
        order, offsets = task_order(self.n_rows, task)
        chosen = np.arange(self.n_variants) if variants is None else np.asarray(variants, dtype=np.int64)
        for own, steps in self._blocks(chosen, order):
            copies, holes = self._sums(steps, offsets)
            yield own, np.stack([np.zeros(copies.shape), copies * self.step, holes], axis=2)

    def _sums(self, steps: Array, offsets: Array) -> tuple[Array, Array]:
        """Steps of each task, and how many are missing: (variants, tasks), whole numbers."""
        missing = steps == np.iinfo(self.dtype).max
        known = np.where(missing, 0, steps).astype(np.int64)
        starts = np.asarray(offsets[:-1], dtype=np.int64)
        return np.add.reduceat(known, starts, axis=1), np.add.reduceat(missing.astype(np.int64), starts, axis=1)

    def _filling(self, steps: Array, offsets: Array) -> tuple[Array, Array]:
        """The step that stands for missing ones in each task (variants, tasks), and how many are missing."""
        copies, holes = self._sums(steps, offsets)
        known = np.diff(offsets) - holes
        uncalled = known == 0
        copies = np.where(uncalled, copies.sum(axis=1, keepdims=True), copies)
        known = np.where(uncalled, known.sum(axis=1, keepdims=True), known)
        return np.where(known > 0, (2 * copies + known) // np.maximum(2 * known, 1), 0), holes

    def fill_values(self, variants: Array, codes: Array) -> Array:
        order, offsets = task_order(self.n_rows, codes)
        found = [self._filling(steps, offsets)[0] for _, steps in self._blocks(np.asarray(variants), order)]
        return np.concatenate([np.empty((0, len(offsets) - 1)), *found]) * self.step

    def holes_by_person(self) -> Array:
        """Missing dosages of each person."""
        found = np.zeros(self.n_rows, dtype=np.int64)
        for _, steps in self._blocks(np.arange(self.n_variants), np.arange(self.n_rows)):
            found += (steps == np.iinfo(self.dtype).max).sum(axis=0)
        return found

    def packed_blocks(self, order: Array | None = None, variants: Array | None = None) -> Iterator[tuple[Array, Array]]:
        raise value_error("{X} has dosages, which 2 bits do not hold: read the files without {dosages} for hard calls.")

    def _means(self, calls: Array) -> Array:
        known = ~np.isnan(calls)
        total = np.where(known, calls, 0.0).sum(axis=0) / self.step  # whole numbers
        count = known.sum(axis=0)
        return np.where(count > 0, (2 * total + count) // np.maximum(2 * count, 1), 0.0) * self.step

    def _make(self, order: Array, offsets: Array) -> Any:
        steps = np.empty((self.n_rows, self.n_variants), dtype=self.dtype, order="F")
        fills = np.empty((self.n_variants, len(offsets) - 1))
        missing, lengths = np.iinfo(self.dtype).max, np.diff(offsets)
        for own, part in self._blocks(np.arange(self.n_variants), order):
            filling, holes = self._filling(part, offsets)
            some = np.flatnonzero(holes.any(axis=1))
            means = np.repeat(filling[some], lengths, axis=1).astype(self.dtype)
            part[some] = np.where(part[some] == missing, means, part[some])
            steps[:, own], fills[own] = part.T, filling * self.step
        columns = StepStorage(steps, self.step, fills)
        if not self.n_covariates:
            return columns
        return BesideStorage([DenseStorage(np.asfortranarray(self.covariates[order])), columns])
