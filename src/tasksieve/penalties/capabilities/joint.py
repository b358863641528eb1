"""Dual feasibility, from the gauges of rows: where it is a matter of all rows together a penalty writes these.

The defaults are for penalties of which every row is feasible or not by itself. `Sorted` is an example of others.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core import RowNorm

Array = np.ndarray[Any, Any]

REJECT = 1.0 - 1e-9  # a bound below this is below 1 whatever rounding did


class Feasibility(RowNorm):
    """Which rows violate feasibility, which are zero, which to begin with."""

    #: names of the tests that find zero rows from bounds, where there are several
    tests: tuple[str, ...] = ()
    #: the part of the largest possible rate at which correlations are taken to move
    rate = 0.7

    def polar(self, gauges: Array) -> float:
        """The smallest v with M/v in the dual ball, from the gauges of its rows."""
        return float(np.maximum.reduce(gauges, initial=0.0))

    def certified(self, upper: Array, known: Array) -> Array:
        """Gauges that are proved by upper bounds, exact where they are known: a bound below 1 says no more than 1."""
        proved = np.maximum(upper, 1.0)
        np.copyto(proved, upper, where=known)
        return proved

    def inactive(self, upper: Array) -> Array:
        """Rows that are zero, from upper bounds of their gauges at the dual optimum."""
        return np.asarray(upper < REJECT)

    def open(self, upper: Array, known: Array) -> Array:
        """Features that are only bounded and could violate feasibility."""
        return ((upper >= 1.0) & ~known).nonzero()[0]

    def leading(self, gauges: Array) -> Array:
        """Rows that exceed their thresholds, worst first."""
        over = np.flatnonzero(gauges > 1.0)
        return over[np.argsort(-gauges[over])]

    def promising(self, levels: Array, last: float, lam: float) -> Array:
        """Rows for the first working set at lam, from `levels`: the strengths at which rows had gauge 1 at `last`.

        They would cross their threshold if correlations moved at 0.7 of the largest possible rate.
        """
        return (levels >= last - self.rate * (last - lam)).nonzero()[0]

    def with_test(self, name: str) -> Self:
        """The same penalty with another of its `tests`."""
        changed = self._copy()
        changed.test = name  # type: ignore[attr-defined]
        return changed

    @property
    def by_threshold(self) -> bool:
        """Whether only gauges near 1 and above matter to all of these: the others need not be known."""
        kind, answers = type(self), ("polar", "certified", "inactive", "open", "leading", "promising")
        return self.separable and all(getattr(kind, name) is getattr(Feasibility, name) for name in answers)
