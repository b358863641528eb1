"""Where a norm is smooth around some rows of W: what Newton's method needs to know of a norm with kinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Manifold:
    """The W near given ones that are zero, and tied, where those are.

    Its rows fall into blocks with one size each, in which the norm is linear: ``N(W) = sum_b slopes_b sizes_b``. A
    change of W is ``directions_j d`` with the change d of its block's size, plus a change across that leaves the size
    as it is, along which the norm with its multipliers has the second derivative ``H_j`` (that of the Lagrangian), and
    ``H_j^-1 = diag(compliance_j) - across_j across_j'``.

    Attributes
    ----------
    live : array of int
        Rows that are not zero, block after block.
    starts : array of int
        Where in `live` each block starts.
    sizes, slopes : arrays, one entry a block
    ordered : bool
        Sizes must not increase from block to block: where they would, blocks become one.
    rows, directions, compliance : arrays of shape (len(live), n_tasks)
    across : array of the same shape, optional
        None: zero.
    """

    live: Array
    starts: Array
    sizes: Array
    slopes: Array
    ordered: bool
    rows: Array
    directions: Array
    compliance: Array
    across: Array | None

    @property
    def block(self) -> Array:
        """The block of each live row."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.live)))

    def moved(self, sizes: Array, change: Array) -> Array:
        """The live rows of a point nearby on the manifold, or beyond its end where sizes are negative.

        Parameters
        ----------
        sizes : array, one entry a block
        change : array of shape (len(live), n_tasks)
            Across.
        """
        raise NotImplementedError
