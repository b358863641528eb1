"""A graph of tasks beside a penalty: neighbours get similar coefficients.

    1/2 sum_j W_j L W_j' = 1/2 sum_j sum_{s<t} A_st (W_js - W_jt)^2,      L = diag(sum_s A_ts) - A

It is a block of squared loss with a row for every feature and edge, never formed, so nothing about the norm changes:
its residual ``-sqrt(A_st) (W_js - W_jt)`` takes ``W L`` from the correlations (mathematics, section 2.9). Everything is
computed from differences along the edges: nothing cancels where tasks are drawn close together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]

_UNIT = 1.01 * 2.0**-53
_ENTRIES = 1 << 22  # features times edges at a time


class Coupling:
    """``1/2 <W L, W>`` with L the Laplacian of a graph of tasks.

    - `weights` (array of shape (T, T)): A: symmetric, >= 0; the diagonal is not looked at.
    """

    def __init__(self, weights: Array) -> None:
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        first, second = np.nonzero(np.triu(self.weights, 1))
        self._first, self._second, self._own = first, second, self.weights[first, second]
        edges, n_tasks = np.arange(len(first)), len(self.weights)
        ones = np.ones(len(first))
        plus, minus = (sparse.csr_array((ones, (side, edges)), shape=(n_tasks, len(first))) for side in (first, second))
        self._signed, self._either = plus - minus, plus + minus
        #: row sums of A
        self.degrees = np.asarray(self._either @ self._own)

    @property
    def steepest(self) -> float:
        """At least the largest eigenvalue of L."""
        return 2.0 * float(np.max(self.degrees, initial=0.0))

    def times(self, factor: float) -> Coupling:
        """The same graph, stronger."""
        return Coupling(factor * self.weights)

    def laplacian(self) -> Array:
        """L as a matrix."""
        off = np.array(self.weights)
        np.fill_diagonal(off, 0.0)
        return np.diag(self.degrees) - off

    def pull(self, rows: Array) -> Array:
        """``W L``."""
        out = np.empty(rows.shape)
        for part, apart, _ in self._differences(rows):
            out[part] = (self._signed @ (apart * self._own).T).T
        return out

    def quadratic(self, rows: Array) -> float:
        """``<W L, W>``."""
        return float(sum(np.einsum("je,je,e->", apart, apart, self._own) for _, apart, _ in self._differences(rows)))

    def errors(self, rows: Array) -> tuple[Array, float]:
        """What rounding may have done to `pull`, entry by entry, and to `quadratic`; rows may have lost a rounding."""
        busiest = np.max(np.diff(self._either.indptr), initial=0)
        far, total = np.empty(rows.shape), 0.0
        for part, apart, sizes in self._differences(rows):
            apart, lost = np.abs(apart), 4.0 * _UNIT * sizes
            far[part] = (self._either @ ((_UNIT * (busiest + 8.0) * apart + lost) * self._own).T).T
            depth = _UNIT * (len(rows) * len(self._own) + 24.0)
            total += float(((depth * apart + 2.0 * lost) * apart + lost * lost).sum(axis=0) @ self._own)
        return far * (1.0 + 1e-6), total * (1.0 + 1e-6)

    def _differences(self, rows: Array) -> Any:
        """Blocks of rows: which, their differences along the edges, and the sizes of what was subtracted."""
        step = max(1, _ENTRIES // max(1, len(self._own)))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            one, other = rows[part][:, self._first], rows[part][:, self._second]
            yield part, one - other, np.abs(one) + np.abs(other)
