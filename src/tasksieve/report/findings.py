"""Which features would be found again: the numbers of a stability selection, and plain words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .words import count

Array = np.ndarray

ASSUMPTIONS = {
    "none": "without any assumption",
    "unimodal": "if chance selections are unimodal",
    "r-concave": "if chance selections are r-concave",
}


@dataclass
class StabilityFinding:
    """Which features would be found again?

    - `probabilities` (array of shape (d,)): Share of the halves on which a feature was selected.
    - `stable`: bool array of shape (d,)
    - `threshold`: The share from which on a feature is called stable.
    - `n_pairs`: Pairs of complementary halves.
    - `q`: Features selected on each half, at most.
    - `n_candidates`: Features (or groups) that compete.
    - `assumption`: {"none", "unimodal", "r-concave"}
    - `bound`: Expected number of false selections, at most, under the assumption.
    - `bounds` (mapping of assumption to float): NaN where a bound does not exist.
    - `path` (array of shape (K, features kept)): Share of the halves that have used a feature by the time they come to
      ``alphas[k]``.
    - `alphas` (array of shape (K,)): Falling.
    - `path_features`: Columns of the features kept.
    - `halves`: How the halves were drawn, in words.
    - `noun`: What competes: "feature", or "group".
    - `dropped`: Tasks too small to be halved, which were left out.
    - `groups`: The group of each feature, where groups compete.
    """

    probabilities: Array
    stable: Array
    threshold: float
    n_pairs: int
    q: int
    n_candidates: int
    assumption: str
    bound: float
    bounds: Mapping[str, float]
    path: Array
    alphas: Array
    path_features: Array
    halves: str = ""
    noun: str = "feature"
    dropped: Sequence[str] = ()
    groups: Sequence[str] | None = None

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
        which = f"{self.n_stable:,} of {count(d, 'feature')} {'is' if self.n_stable == 1 else 'are'} stable"
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
