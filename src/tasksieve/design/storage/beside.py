"""Features from several storages, side by side: covariates beside genotypes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from .base import ColumnStorage, ProductRequest, Reading, asked_by_part, by_part, empty_products

Array = np.ndarray[Any, Any]


class BesideStorage(ColumnStorage):
    """One storage of the features of several, which have the same rows."""

    def __init__(self, parts: Sequence[ColumnStorage]) -> None:
        self.parts = list(parts)
        largest = max(self.parts, key=lambda part: part.n_features)
        self.n_rows, self.dtype = largest.n_rows, largest.dtype
        self.costly_reads = any(part.costly_reads for part in parts)
        self.taken = np.dtype(np.float64)
        self._starts = np.array([0, *accumulate(part.n_features for part in parts)])
        self.n_features = int(self._starts[-1])
        if any(hasattr(part, "fills") for part in self.parts):  # only where calls can be missing
            self.fills = self._fills

    def _cut(self, features: Array) -> list[tuple[ColumnStorage, Array, Array]]:
        """(part, positions in `features`, features as that part counts them)."""
        cut = by_part(self._starts, features)
        return [(part, positions, own) for part, (positions, own) in zip(self.parts, cut, strict=True)]

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        products = empty_products(asked, self.n_features)
        spent = 0.0
        for part, own in zip(self.parts, asked_by_part(asked, self._starts), strict=True):
            if own:
                found, cost = part.read([a for _, _, a in own], threads)
                spent += cost * part.n_features / max(self.n_features, 1)
                for (m, positions, _), answer in zip(own, found, strict=True):
                    products[m][positions] = answer
        return Reading(products, spent)

    def unread(self, features: Array) -> int:
        return sum(part.unread(own) for part, _, own in self._cut(features))

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        for part, positions, own in self._cut(features):
            if len(own):
                out[:, positions] = part.take(own)
        return out

    def _fills(self, features: Array) -> Array:
        """Fill values of missing calls, by task; NaN where a part has nothing of the kind."""
        found = [(positions, getattr(part, "fills", None), own) for part, positions, own in self._cut(features)]
        known = [(positions, fills(own)) for positions, fills, own in found if fills is not None]
        out = np.full((len(features), known[0][1].shape[1]), np.nan)
        for positions, means in known:
            out[positions] = means
        return out
