"""Genotypes as a certificate is about them: columns with missing calls filled task by task, rows, a digest."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from .. import verify
from ..tasks.readable import digest_of

Array = np.ndarray[Any, Any]

_ENTRIES = 1 << 24  # of a block of rows in memory


class GenotypeRows(verify.Matrix):
    """Covariates and calls of people, whose tasks are `codes` (whole numbers); by default all are one task.

    A missing call is C / K, rounded once: C copies in the K calls of its variant among all people of the task, or of
    all tasks where that has none; 0 where no person has one (of dosages rounded to their steps). Taking rows does not
    change the means.
    """

    def __init__(self, genotypes: Any, codes: Array | None = None) -> None:
        self._whole = self._part = genotypes
        self._codes = np.zeros(genotypes.n_rows, dtype=np.int64) if codes is None else codes
        self._rows, self._labels = np.arange(genotypes.n_rows), np.unique(self._codes)
        self._means = np.full((genotypes.n_variants, len(self._labels)), np.nan)
        self.shape = tuple(genotypes.shape)

    def take_rows(self, rows: Array) -> GenotypeRows:
        part = copy(self)
        part._rows, part.shape = self._rows[rows], (len(rows), self.shape[1])
        part._part = self._whole.with_people(part._rows)
        return part

    def columns(self, features: Any) -> Array:
        features = np.arange(self.shape[1])[features]
        n_free = self._whole.n_covariates
        free = features < n_free
        out = np.empty((len(self._rows), len(features)), order="F")
        out[:, free] = self._part.covariates[:, features[free]]
        own = np.flatnonzero(~free)
        step = max(1, _ENTRIES // max(len(self._rows), 1))
        for some in (own[a : a + step] for a in range(0, len(own), step)):
            variants = features[some] - n_free
            calls = self._part.calls(variants)
            holes = np.flatnonzero(np.isnan(calls).any(axis=0))
            if len(holes):
                means = self._known_means(variants[holes])[:, np.searchsorted(self._labels, self._codes[self._rows])].T
                calls[:, holes] = np.where(np.isnan(calls[:, holes]), means, calls[:, holes])
            out[:, some] = calls
        return out

    def digest(self) -> str:
        def blocks() -> Iterator[Array]:
            height = max(1, _ENTRIES // max(self.shape[1], 1))
            for a in range(0, len(self._rows), height):
                rows = np.arange(a, min(a + height, len(self._rows)))
                yield self.take_rows(rows).columns(slice(None))

        return digest_of(blocks())

    def _known_means(self, variants: Array) -> Array:
        """Of each task (variants x tasks)."""
        unknown = variants[np.isnan(self._means[variants, 0])]
        if len(unknown):
            self._means[unknown] = self._whole.fill_values(unknown, self._codes)
        return self._means[variants]
