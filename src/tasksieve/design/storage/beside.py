"""Features from several storages, side by side: covariates beside genotypes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from .base import Asked, ColumnStorage, Reading

Array = np.ndarray[Any, Any]


class BesideStorage(ColumnStorage):
    """One storage of the features of several, which have the same rows."""

    sparse = False

    def __init__(self, parts: Sequence[ColumnStorage]) -> None:
        self.parts = list(parts)
        largest = max(self.parts, key=lambda part: part.n_features)
        self.n_rows, self.dtype, self.dear = largest.n_rows, largest.dtype, any(part.dear for part in parts)
        self.taken = np.dtype(np.float64)
        self._starts = np.array([0, *accumulate(part.n_features for part in parts)])
        self.n_features = int(self._starts[-1])
        if any(hasattr(part, "fills") for part in self.parts):  # asked only where calls can be missing
            self.fills = self._fills

    def _homes(self, features: Array) -> list[tuple[ColumnStorage, Array, Array]]:
        """(part, places in `features`, features as that part counts them)."""
        owner = np.searchsorted(self._starts, features, side="right") - 1
        places = [np.flatnonzero(owner == k) for k in range(len(self.parts))]
        return [(self.parts[k], own, features[own] - self._starts[k]) for k, own in enumerate(places)]

    def read(self, asked: Sequence[Asked], threads: int) -> Reading:
        chosen = [None if a.columns is None else self._homes(a.columns) for a in asked]
        products = [
            np.empty((self.n_features if a.columns is None else len(a.columns), len(a.offsets) - 1)) for a in asked
        ]
        spent = 0.0
        for k, part in enumerate(self.parts):
            own = [
                a if homes is None else replace(a, columns=homes[k][2]) for a, homes in zip(asked, chosen, strict=True)
            ]
            found, cost = part.read(own, threads)
            spent += cost * part.n_features / max(self.n_features, 1)
            for out, homes, answer in zip(products, chosen, found, strict=True):
                out[slice(*self._starts[k : k + 2]) if homes is None else homes[k][1]] = answer
        return Reading(products, spent)

    def unread(self, features: Array) -> int:
        return sum(part.unread(own) for part, _, own in self._homes(features))

    def take(self, features: Array) -> Array:
        out = np.empty((self.n_rows, len(features)), order="F")
        for part, places, own in self._homes(features):
            if len(own):
                out[:, places] = part.take(own)
        return out

    def _fills(self, features: Array) -> Array:
        """What stands for missing calls, by task; NaN where a part has nothing of the kind."""
        found = [(places, getattr(part, "fills", None), own) for part, places, own in self._homes(features)]
        known = [(places, fills(own)) for places, fills, own in found if fills is not None]
        out = np.full((len(features), known[0][1].shape[1]), np.nan)
        for places, means in known:
            out[places] = means
        return out
