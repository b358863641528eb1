"""Fill values of missing genotypes where a model was fitted: the same are used for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Fills:
    """Means of some features (ascending), task by task; NaN where nothing can be missing."""

    features: Array
    means: Array

    def of(self, features: Array) -> Array:
        """The means of some features; NaN for those that are not known."""
        out = np.full((len(features), self.means.shape[1]), np.nan)
        positions = np.searchsorted(self.features, features)
        known = np.flatnonzero(positions < len(self.features))
        known = known[self.features[positions[known]] == features[known]]
        out[known] = self.means[positions[known]]
        return out

    def tasks(self, tasks: slice) -> Fills:
        return Fills(self.features, self.means[:, tasks])

    def fills(self, *features: Array) -> Fills:
        """These for the features in some arrays only."""
        chosen = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *features]))
        return Fills(chosen, self.of(chosen))
