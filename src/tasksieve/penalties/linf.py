"""The largest entry of every row: tasks share the *size* of a coefficient, whatever its sign.

    Omega(W) = sum_j u_j max_t |W_jt|

Its dual ball is ``{M : ||M_j||_1 <= u_j for all j}``. Entries of a row are drawn to one size, ties are the rule, and a
zero inside a row that is not zero is an accident: single entries are never screened.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from .base import RowForm, RowPenalty, row_norms

Array = np.ndarray[Any, Any]


class LInf(RowPenalty):
    """``sum_j u_j max_t |W_jt|``: a feature is in for all tasks or out for all, mostly with one size of coefficient.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[1.0, -1.0, 1.0], noise=0.3)
    >>> model = ts.MultiTaskRegressor(penalty="linf", alpha=0.5).fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> abs(model.coef_[:, 0]).round(3)
    array([0.802, 0.802, 0.802])
    """

    label = "L1,inf"
    formula = "α Σ_j max_t |W_jt|"
    _n_tasks = 1

    def on(self, weights: Array, n_tasks: int, **options: Any) -> Self:
        bound = super().on(weights, n_tasks, **options)
        bound._n_tasks = n_tasks
        return bound

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"name": "largest"}, {"feature_weights": self.weights}

    def value(self, rows: Array) -> float:
        return float(self.weights @ np.max(np.abs(rows), axis=1, initial=0.0))

    def gauges(self, products: Array) -> Array:
        return np.asarray(np.add.reduce(np.abs(products), axis=1) / self.weights)

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        """The sum of centre + norms * v grows fastest along v = norms: exact."""
        return np.asarray((np.add.reduce(centre, axis=1) + radius * row_norms(norms)) / self.weights)

    def prox(self, rows: Array, step: float) -> Array:
        """Entries are cut at the height where what is cut off sums to the strength: one sort a row."""
        if not rows.size:
            return rows.copy()
        sizes = np.sort(np.abs(rows), axis=1)[:, ::-1]
        counts = np.arange(1, rows.shape[1] + 1)
        heights = (np.cumsum(sizes, axis=1) - step * self.weights[:, None]) / counts
        following = np.hstack([sizes[:, 1:], np.zeros((len(rows), 1))])
        first = np.argmax(heights >= following, axis=1)
        height = np.maximum(heights[np.arange(len(rows)), first], 0.0)[:, None]
        return np.clip(rows, -height, height)

    def steepest(self, products: Array) -> tuple[Array, Array] | None:
        hardest = np.array([int(np.argmax(self.row_gauges(products)))])
        row = np.sign(products[hardest])
        return hardest, np.maximum(row, 0.0) if self.positive else row

    def row_form(self) -> RowForm | None:
        return RowForm("largest", self.weights, np.zeros_like(self.weights))

    @property
    def euclid(self) -> Array | float | None:
        """``||m||_1 <= sqrt(T) ||m||_2``."""
        return np.divide(
            math.sqrt(self._n_tasks), self.weights, out=np.zeros_like(self.weights), where=self.weights > 0.0
        )

    @property
    def outer(self) -> Array | None:
        return self.weights
