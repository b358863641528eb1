"""Blocks of rows that have one norm together.

The unit of screening, working sets and feasibility is a block of rows: a row by itself, unless a penalty joins some. It
then gives the gauge (and reach) of a block to each of its rows, and needs whole blocks. `Groups` is the example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import RowNorm

Array = np.ndarray[Any, Any]


class Blocks(RowNorm):
    """Which rows belong together; each by itself unless said otherwise."""

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
