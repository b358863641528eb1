"""Rows of a problem with a graph of tasks, in coordinates in which their curvature is diagonal.

The curvature of row j is ``diag(h_j) + L``, h_j the squared norms of its columns. For the group norm, which does not
change in rotations, the eigenvectors of that matrix make the row update exact (mathematics 2.7): however strong the
graph, an update moves all tasks together. Other norms take majorised steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..penalties import RowPenalty

Array = np.ndarray[Any, Any]

_MOST_TASKS = 64  # beyond, decompositions cost more than they save
_MOST_BYTES = 256 << 20

#: what the kernel takes: weights of the graph, eigenvalues and eigenvectors
Coupled = tuple[Array, Array | None, Array | None]


def coupled_rows(penalty: RowPenalty, squares: Array) -> Coupled:
    """What coordinate descent needs to know of the graph of tasks, for rows with these squared norms of columns."""
    assert penalty.coupling is not None
    if not _rotates(penalty, squares):
        return penalty.coupling.weights, None, None
    return penalty.coupling.weights, *_decomposed(penalty, squares)


def _rotates(penalty: RowPenalty, squares: Array) -> bool:
    tasks = squares.shape[1]
    small = tasks <= _MOST_TASKS and 8 * squares.size * tasks <= _MOST_BYTES
    return small and penalty.group_form() is not None and not penalty.positive


def _decomposed(penalty: RowPenalty, squares: Array) -> tuple[Array, Array]:
    assert penalty.coupling is not None
    matrices = np.tile(penalty.coupling.laplacian(), (len(squares), 1, 1))
    np.einsum("jtt->jt", matrices)[:] += squares
    values, vectors = np.linalg.eigh(matrices)
    return np.maximum(values, 0.0), vectors


class Rotations:
    """`coupled_rows` for columns that come again: what is known of them is kept."""

    def __init__(self) -> None:
        self._layout = -1
        self._known = np.empty(0, dtype=bool)
        self._values, self._vectors = np.empty((0, 0)), np.empty((0, 0, 0))

    def of(self, penalty: RowPenalty, squares: Array, positions: Array, layout: int) -> Coupled:
        """Of the columns at these positions; other positions hold them in another layout."""
        assert penalty.coupling is not None
        if not _rotates(penalty, squares) or not len(positions):
            return coupled_rows(penalty, squares)
        tasks, needed = squares.shape[1], int(positions.max()) + 1
        if layout != self._layout:
            self._layout, self._known = layout, np.empty(0, dtype=bool)
        if needed > len(self._known):
            kept = len(self._known)
            known, values, vectors = (np.zeros((2 * needed, *more)) for more in ((), (tasks,), (tasks, tasks)))
            if kept:
                known[:kept], values[:kept], vectors[:kept] = self._known, self._values[:kept], self._vectors[:kept]
            self._known, self._values, self._vectors = known.astype(bool), values, vectors
        fresh = ~self._known[positions]
        if fresh.any():
            self._values[positions[fresh]], self._vectors[positions[fresh]] = _decomposed(penalty, squares[fresh])
            self._known[positions] = True
        return penalty.coupling.weights, self._values[positions], self._vectors[positions]
