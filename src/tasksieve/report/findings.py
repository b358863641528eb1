"""How far the findings of a report can be trusted: numbers of tests that were run, and plain words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .words import count, quantity

Array = np.ndarray

# A p-value up to this is called a finding.
LEVEL = 0.05
ASSUMPTIONS = {
    "none": "without any assumption",
    "unimodal": "if chance selections are unimodal",
    "r-concave": "if chance selections are r-concave",
}


@dataclass
class PermutationFinding:
    """Does anything matter?

    Attributes
    ----------
    statistic : float
        The strongest relation of any feature with the labels (alpha_max).
    null : array
        The same for shuffled labels.
    pvalue : float
    moved : str
        What was shuffled, in words.
    approximate : bool
    """

    statistic: float
    null: Array
    pvalue: float
    moved: str = "labels within tasks"
    approximate: bool = False

    @property
    def found(self) -> bool:
        return self.pvalue <= LEVEL

    def sentence(self) -> str:
        """Whether anything matters, in plain words."""
        n = len(self.null)
        reached = int(np.count_nonzero(np.asarray(self.null) >= self.statistic * (1.0 - 1e-10)))
        times = "never" if reached == 0 else "once" if reached == 1 else f"{reached:,} times"
        verdict = "Yes, something matters." if self.found else "Nothing can be told from chance."
        rest = (
            "This says that something matters, not which feature."
            if self.found
            else "Whatever is selected below may be noise."
        )
        how = " (approximate: what is never penalised was taken off first)" if self.approximate else ""
        return (
            f"{verdict} After {n:,} shuffles of {self.moved} the strongest relation of a feature with them was {times} "
            f"as strong as in the data: p = {self.pvalue:.2g}{how}. {rest}"
        )


@dataclass
class StabilityFinding:
    """Which features would be found again?

    Attributes
    ----------
    probabilities : array of shape (d,)
        Share of the halves on which a feature was selected.
    stable : bool array of shape (d,)
    threshold : float
        The share from which on a feature is called stable.
    n_pairs : int
        Pairs of complementary halves.
    q : int
        Features selected on each half, at most.
    n_candidates : int
        Features (or groups) that compete.
    assumption : {"none", "unimodal", "r-concave"}
    bound : float
        Expected number of false selections, at most, under the assumption.
    bounds : mapping of assumption to float
        NaN where a bound does not exist.
    path : array of shape (K, features kept)
        Shares of the halves when only the first ``path_counts[k]`` features of each half count.
    path_counts : int array of shape (K,)
    path_features : int array
        Columns of the features kept.
    halves : str
        How the halves were drawn, in words.
    noun : str
        What competes: "feature", or "group".
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
    path_counts: Array
    path_features: Array
    halves: str = "halves of the rows of each task"
    noun: str = "feature"

    @property
    def n_stable(self) -> int:
        return int(np.count_nonzero(self.stable))

    def sentence(self) -> str:
        """How many are stable, in plain words."""
        d, halves = len(self.stable), 2 * self.n_pairs
        rule = (
            f"among the first {count(self.q, self.noun)} to be used in at least {self.threshold:.0%} of {halves} "
            f"random {self.halves}"
        )
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
        assumed = ASSUMPTIONS.get(self.assumption, self.assumption)
        others = [
            f"{quantity(value)} {ASSUMPTIONS[name]}"
            for name, value in self.bounds.items()
            if name != self.assumption and np.isfinite(value)
        ]
        more = f" (at most {', '.join(others)})" if others else ""
        return (
            f"What is guaranteed: on average over data sets like this one, at most {quantity(self.bound)} "
            f"{self.noun if self.bound <= 1 else self.noun + 's'} that a half selects no more often than one drawn by "
            f"lot (probability {self.q:,}/{self.n_candidates:,}) {'is' if self.bound <= 1 else 'are'} called stable, "
            f"{assumed}{more}."
        )

    def caution(self) -> str:
        return (
            "Stable means: found again on half of these data. A feature that resembles one that matters can be marked "
            "in its place, and neither is shown to be a cause. Features that resemble each other share their halves, "
            "so that none of them may be stable although one of them matters."
        )


@dataclass
class SharingFinding:
    """Does sharing between tasks help?

    Attributes
    ----------
    answer : str
        A few plain sentences.
    columns : names of the columns
    rows : cells as text, the first of each row the task
    note : str
        What the columns are.
    """

    answer: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass
class Trust:
    """All that was found about the findings.

    Attributes
    ----------
    permutation, stability, sharing : optional
    methods : str
        A paragraph for an article.
    citations : sequence of str
    """

    permutation: PermutationFinding | None = None
    stability: StabilityFinding | None = None
    sharing: SharingFinding | None = None
    methods: str = ""
    citations: Sequence[str] = field(default_factory=tuple)

    def headline(self) -> str:
        """What must be read first: nothing where all is well and said below."""
        said = []
        if self.permutation is not None and not self.permutation.found:
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
                said.append(
                    f"{count(n, 'feature')} {'is' if n == 1 else 'are'} stable: found again in at least "
                    f"{self.stability.threshold:.0%} of {halves} random halves of the data."
                )
        return " ".join(said)
