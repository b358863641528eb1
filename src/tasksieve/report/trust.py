"""All that was found about the findings of a report, and what must be read first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .findings import StabilityFinding
from .sharing import SharingFinding
from .words import are, count, few

LEVEL = 0.05  # of the permutation test, as its summary has it
NAMED = 5  # stable features that are named first


@dataclass
class Trust:
    """All that was found about the findings."""

    permutation: Any = None  # a `PermutationTest`
    stability: StabilityFinding | None = None
    sharing: SharingFinding | None = None
    intervals: Any = None  # a `SplitInference`

    @property
    def any_found(self) -> bool:
        return any(part is not None for part in (self.permutation, self.stability, self.sharing, self.intervals))

    def headline(self, features: Sequence[str]) -> str:
        """What must be read first; `features` are names of all of them."""
        said = []
        if self.permutation is not None and self.permutation.pvalue > LEVEL:
            said.append(
                f"Nothing found that chance would not give (permutation test, p = {self.permutation.pvalue:.2g})."
            )
        if self.stability is not None:
            n, halves = self.stability.n_stable, 2 * self.stability.n_pairs
            if n == 0:
                said.append(
                    f"No feature is stable: none comes back in at least {self.stability.threshold:.0%} of {halves} "
                    "random halves of the data."
                )
            else:
                order = np.argsort(-np.where(self.stability.stable, self.stability.probabilities, -1.0), kind="stable")
                named = few((features[j] for j in order[:n]), NAMED)
                said.append(
                    f"{count(n, 'feature')} {are(n)} stable ({named}): found again in at least "
                    f"{self.stability.threshold:.0%} of {halves} random halves of the data."
                )
        if self.sharing is not None:
            said.append(f"{self.sharing.verdict} (p = {self.sharing.overall['pvalue']:.2g}).")
        return " ".join(said)
