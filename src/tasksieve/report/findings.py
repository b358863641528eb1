"""Which features would be found again: the numbers of a stability selection, and plain words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .words import are, count

Array = np.ndarray

ASSUMPTIONS = {
    "none": "without any assumption",
    "unimodal": "if chance selections are unimodal",
    "r-concave": "if chance selections are r-concave",
}


@dataclass
class StabilityFinding:
    """Which features would be found again?"""

    probabilities: Array  # share of the halves on which each feature was selected
    stable: Array
    threshold: float  # the share from which on a feature is called stable
    n_pairs: int
    q: int  # features selected on each half, at most
    n_candidates: int  # features (or groups) that compete
    assumption: str
    bound: float  # expected number of false selections, at most, under the assumption
    bounds: Mapping[str, float]  # under each assumption; NaN where there is none
    path: Array  # (K, features kept): share of the halves that have used a feature when they come to alphas[k]
    alphas: Array  # falling
    path_features: Array  # columns of the features kept
    halves: str = ""  # how they were drawn, in words
    noun: str = "feature"  # what competes: "feature", or "group"
    dropped: Sequence[str] = ()  # tasks too small to be halved, which were left out
    groups: Sequence[str] | None = None  # of each feature, where groups compete

    @property
    def n_stable(self) -> int:
        return int(np.count_nonzero(self.stable))

    def sentence(self) -> str:
        """How many are stable, in plain words."""
        d, halves = len(self.stable), 2 * self.n_pairs
        first = f"among the first {self.q:,} {self.noun}s" if self.q > 1 else f"the first {self.noun}"
        rule = f"{first} to be used in at least {self.threshold:.0%} of {halves} random halves of the data"
        if self.n_stable == 0:
            best = float(np.max(self.probabilities, initial=0.0))
            return (
                f"No feature is stable: none of the {d:,} is {rule}; the most frequent one is in {best:.0%}. Single "
                "features that a model selects on these data are not to be relied on."
            )
        which = f"{self.n_stable:,} of {count(d, 'feature')} {are(self.n_stable)} stable"
        return f"{which}: {rule}."

    def guarantee(self) -> str:
        """What is guaranteed, under which assumption."""
        chance = f"selected on a half no more often than by chance ({self.q:,} of {self.n_candidates:,})"
        assumed = ASSUMPTIONS[self.assumption]
        if not np.isfinite(self.bound):
            return f"Nothing is guaranteed {assumed}: the threshold is too low for these halves."
        others = [
            f"{ASSUMPTIONS[name]} at most {self.bounds[name]:.2g}"
            for name in ASSUMPTIONS
            if name != self.assumption and np.isfinite(self.bounds.get(name, np.nan))
        ]
        more = f" ({', '.join(others)})" if others else ""
        return (
            f"What is guaranteed: of the {self.noun}s that are {chance}, at most {self.bound:.2g} are called stable on "
            f"average, {assumed}{more}."
        )

    def caution(self) -> str:
        return (
            "Stable means: found again on half of these data. A feature that resembles one that matters can be marked "
            "in its place, and neither is shown to be a cause. Features that resemble each other share their halves, "
            "so that none of them may be stable although one of them matters. Unimodal and r-concave say how "
            "selections by chance are spread: with one peak, and with a tail that is not too heavy; one data set "
            "cannot prove either."
        )
