"""Norms of columns under other weights of the rows: for dual points that are known better in some rows than in others.

A ball may know of each row how far the dual optimum can be, ``sum_i e_i^2/k_i <= R^2`` with a *row metric* k, and e is
orthogonal to the nuisance columns Z of its task. So for every b the correlation of a column moves by at most R times

    a_jt = sqrt( sum_i k_i s_i (x_ij - (Z b)_i)^2 ),

and the best b makes it the norm of the column under the weights ``k s``, measured as any other norm is. Rows with
``k_i = 0`` are left out of it.

A measurement is a reading of the data, and k moves with every gap. Let M be the metric of the last measurement and
b_M its best b. Whatever ``k <= alpha + beta M`` (by task: `Cover`), with that b

    a_jt^2 <= alpha c_jt^2 + beta m_jt^2,    c_jt^2 = sum_i s_i (x_ij - (Z b_M)_i)^2,    m_jt = a_jt for k = M.

Two numbers an entry are kept, m and c. Of the nuisance fits ``U U' q x`` and ``U_M U_M' q_M x`` that are taken off the
columns, with ``q_M = sqrt(s M)``, both loadings come from the same reading, and so

    c^2 = ||x~||^2 + || U' q x - K U_M' q_M x ||^2,    K = U' diag(q) Z R_M^-1,    diag(q_M) Z = U_M R_M.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .samples import Samples
from .storage import ProductRequest

Array = np.ndarray[Any, Any]

#: c is at most this many norms of a column: where rounding or a few heavy rows make it larger, m and c are bounds with
#: the b of the ordinary norm. What a ball's centre lacks in orthogonality to Z counts so many times.
MOST_SHIFTED = 100.0


class Cover(NamedTuple):
    """By task: ``k <= alpha + beta M`` in all of its rows."""

    alpha: Array
    beta: Array


class Region(NamedTuple):
    """Around a vector: the ball of a radius, by default the vector alone.

    - `stretch`: One positive number a task, which make it an ellipsoid: e belongs to it if
      ``sum_t ||e_t||^2 / stretch_t^2 <= radius^2``.
    - `cover`: There is a row metric, too, which the one that was measured last covers.
    """

    radius: float = 0.0
    stretch: Array | None = None
    cover: Cover | None = None


POINT = Region()


class MetricRequest:
    """One measurement: what is requested of a storage, and what follows from it.

    - `metric`: M, flat, in units of the weights.
    - `rounding`: Of a product of columns: |error| <= rounding * size.
    """

    def __init__(self, samples: Samples, metric: Array, rounding: float) -> None:
        self._samples, self._other, self._rounding = samples, samples.reweighted(metric), rounding
        self._top = np.maximum.reduceat(metric, samples.offsets[:-1])

    def products(self) -> list[ProductRequest]:
        samples, other = self._samples, self._other
        vectors = [*(other.weighted(row) for row in other.basis), *(samples.weighted(row) for row in samples.basis)]
        squares = ProductRequest(other.root * other.root, samples.offsets, samples.shared, None, True)
        return [squares, *(ProductRequest(vector, samples.offsets, samples.shared) for vector in vectors)]

    def squares(self, found: list[Any], norms: Any, scale: Any, there: Any) -> tuple[Any, Any]:
        """``m^2`` and ``c^2`` from these products, (columns, tasks), beside the columns: arrays, or tensors there.

        - `norms`, `scale`: The ordinary norms, and what columns were divided by (None: nothing).
        - `there`: Brings a vector over tasks to where the columns are.
        """
        other, rounding = self._other, self._rounding
        raw, count = found[0], 1 + len(other.basis)
        own, before = found[1:count], found[count:]
        inverse = 1.0 if scale is None else 1.0 / scale
        ordinary = norms * norms + 0.0 * raw  # by task also where all tasks agree
        least = raw * (1.0 + rounding)
        for loading in own:
            least = least - loading * loading
        shifted, sizes = ordinary, raw**0.5
        whole = norms / inverse + sum(abs(loading) for loading in before)
        unsafe = there(rounding / np.maximum(other.independence, 1e-300))
        for loading, moves, reaches in zip(before, *self._between(), strict=True):
            apart, error = loading, whole
            for part, move, reach in zip(own, moves, reaches, strict=True):
                apart = apart - there(move) * part
                error = error + there(reach) * (abs(part) + sizes)
            shifted = shifted + ((abs(apart) + unsafe * error) * inverse) ** 2
        least = least * (inverse * inverse)
        least[least < 0.0] = 0.0
        wide = ~(shifted <= MOST_SHIFTED**2 * ordinary)
        if wide.any():
            shifted[wide] = ordinary[wide]
            least[wide] = (ordinary * there(self._top))[wide]
        return least, shifted

    def _between(self) -> tuple[list[list[Array]], list[list[Array]]]:
        """K, and the same of absolute values: by ordinary basis vector and other basis vector, over tasks."""
        samples, other = self._samples, self._other
        moves, reaches = [], []
        for mine in samples.basis:
            weighted = samples.weighted(mine)
            move, reach = [], []
            for c in range(len(other.basis)):
                columns = zip(other.nuisance_columns, other.from_basis[:, :, c].T, strict=True)
                parts = [column * samples.per_sample(coef) for column, coef in columns]
                move.append(samples.task_sums(weighted * sum(parts)))
                reach.append(samples.task_sums(np.abs(weighted) * sum(np.abs(part) for part in parts)))
            moves.append(move)
            reaches.append(reach)
        return moves, reaches
