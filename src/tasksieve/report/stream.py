"""How an online model came about: its losses, and which features it used, along the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .words import number

MOST_CURVES = 40  # features drawn along the rows


@dataclass
class StreamHistory:
    """A stream as it was looked at, after 1, 2, 4, ... rows and at its end."""

    rows: np.ndarray
    losses: np.ndarray  # mean loss of the rows so far, each predicted before it was learned
    seen: np.ndarray | None = None  # numbers of rows at which the coefficients were looked at
    n_selected: np.ndarray | None = None  # features in use then
    strengths: np.ndarray | None = None  # lengths over all tasks then, a column for each of `features`
    features: np.ndarray | None = None  # those that were in use at any time
    loss: str = "loss"  # its name

    def data(self, names: Sequence[Any]) -> dict[str, Any]:
        """For the page; of the features the strongest at the end, then those that were strongest before."""
        found: dict[str, Any] = {
            "rows": [int(n) for n in self.rows],
            "losses": [number(value) for value in self.losses],
            "loss": self.loss,
            "seen": None,
        }
        if self.seen is not None and self.strengths is not None and self.features is not None and len(self.seen):
            assert self.n_selected is not None
            peak = self.strengths.max(axis=0, initial=0.0)
            order = np.lexsort((-peak, -self.strengths[-1]))[:MOST_CURVES]
            found |= {
                "seen": [int(n) for n in self.seen],
                "nSelected": [int(n) for n in self.n_selected],
                "names": [str(names[self.features[j]]) for j in order],
                "curves": [[number(value) for value in self.strengths[:, j]] for j in order],
                "nEver": int(np.count_nonzero(peak)),
            }
        return found
