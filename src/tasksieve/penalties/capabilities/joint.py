"""Rows that belong together: all of them, in dual feasibility, or blocks that have one norm.

The defaults are for penalties of which every row is feasible or not by itself. `Sorted` joins all rows. The unit of
screening, working sets and feasibility is a block of rows: a row by itself, unless a penalty joins some. It then gives
the gauge (and reach) of a block to each of its rows, and needs whole blocks. `Groups` is the example.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core import RowNorm

Array = np.ndarray[Any, Any]

REJECT = 1.0 - 1e-9  # a bound below this is below 1 whatever rounding did


class JointRows(RowNorm):
    """Each row by itself, unless a penalty says otherwise."""

    # -- which rows violate feasibility, which are zero, which to begin with --------------------------------------

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
        return self.separable and all(getattr(kind, name) is getattr(JointRows, name) for name in answers)

    @property
    def by_row(self) -> bool:
        """Whether every row is a block by itself: then there is a penalty of any of them."""
        return type(self).whole is JointRows.whole

    # -- blocks of rows -------------------------------------------------------------------------------------------

    def size(self) -> int | None:
        """The number of features, where a penalty fits one number only; called without data."""
        return None

    def whole(self, features: Array) -> Array:
        """These features and all others of their blocks, ascending."""
        return features

    def pieces(self, size: int) -> list[Any]:
        """All rows in pieces of about a size, none of which cuts a block: slices, or arrays of indices; a single piece
        is a slice."""
        return [slice(low, min(low + size, len(self.weights))) for low in range(0, len(self.weights), size)]

    def named_blocks(self) -> tuple[Array, Array] | None:
        """Names of the blocks, and the number of each feature's, where blocks have names; called without data."""
        return None

    def names_of(self, features: Array) -> Array | None:
        """Names of the blocks that hold these features."""
        found = self.named_blocks()
        return None if found is None else np.asarray(found[0][np.unique(found[1][features])])

    def ties(self, features: Array, rows: Array) -> list[Array] | None:
        """Features grouped by equal norms of their rows, where the penalty draws rows together."""
        return None
