"""The dirty model: every row is a sum of a shared part and a task-specific part, each with a norm of its own.

    Omega(W) = sum_j u_j min { g ||P_j||_2 + l ||Q_j||_1 : P_j + Q_j = W_j }

Its dual ball is the intersection of the two parts' own: ``||M_j||_2 <= u_j g`` and ``|M_jt| <= u_j l``. Only
``l < g < sqrt(T) l`` is new: with ``g <= l`` nothing is cheaper than the shared part (g L2,1), with ``g >= sqrt(T) l``
nothing is cheaper than the specific one (l L1,1).

The best parts of a row are its entries cut at a height, ``P = clip(w, -h, h)``, and the rest. The height is
``h = l tau`` with ``||min(|w|/tau, l)||_2 = g``; 0 where the row has so few entries that all of it is specific.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from ..screening.ball import rejects, sphere_norms, zero_entries
from ..user_warnings import warn
from .base import RowForm, RowPenalty, row_norms

Array = np.ndarray[Any, Any]


class Dirty(RowPenalty):
    """``sum_j u_j min(g ||P_j||_2 + l ||Q_j||_1)`` over ``P + Q = W``: features for all tasks, and for some.

    After Jalali, Ravikumar, Sanghavi and Ruan, "A Dirty Model for Multi-task Learning" (NIPS 2010), with the L2,1 norm
    for the shared part. Fitted models have the parts as ``shared_coef_`` and ``specific_coef_``.

    Parameters
    ----------
    shared : float, optional
        g, what a shared row costs. By default ``specific * T**0.25``, in the middle between the two ends.
    specific : float, default=1.0
        l, what a coefficient of one task costs.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((160, 8)), np.repeat([0, 1, 2, 3], 40)
    >>> y = X[:, 0] + 3 * X[:, 1] * (task == 2) + 0.1 * rng.standard_normal(160)
    >>> model = ts.MultiTaskRegressor(penalty="dirty", alpha=0.2).fit(X, y, task=task)
    >>> np.flatnonzero(model.shared_coef_.any(axis=0)), np.argwhere(model.specific_coef_).tolist()
    (array([0]), [[2, 1]])
    """

    label = "dirty"
    formula = "α (shared Σ_j ‖P_j‖₂ + specific Σ_j ‖Q_j‖₁), W = P + Q,"
    has_entries = True

    def __init__(self, shared: float | None = None, specific: float = 1.0) -> None:
        self.shared = shared
        self.specific = specific

    def _costs(self, n_tasks: int) -> tuple[float, float]:
        """g and l, for so many tasks."""
        for name in ("shared", "specific"):
            cost = getattr(self, name)
            if not (cost is None and name == "shared") and not (
                isinstance(cost, int | float | np.number) and 0.0 < cost < math.inf
            ):
                raise ValueError(f"Dirty's {name!r} must be a positive number; got {cost!r}.")
        specific = float(self.specific)
        return specific * n_tasks**0.25 if self.shared is None else float(self.shared), specific

    def on(self, weights: Array, n_tasks: int, **options: Any) -> Self:
        g, l1 = self._costs(n_tasks)
        if n_tasks > 1 and not l1 < g < math.sqrt(n_tasks) * l1:
            other = f"{g:g} times L2,1: no part is ever specific" if g <= l1 else f"{l1:g} times L1,1: none is shared"
            warn(
                f"Dirty(shared={g:g}, specific={l1:g}) is {other}. With {n_tasks} tasks choose shared between "
                f"{l1:g} and {math.sqrt(n_tasks) * l1:g}.",
                UserWarning,
            )
        bound = super().on(weights, n_tasks, **options)
        bound._g, bound._l, bound._n_tasks = g, l1, n_tasks
        bound.has_entries = n_tasks > 1
        return bound

    _g: float
    _l: float
    _n_tasks: int

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"name": "split", "group": self._g, "l1": self._l}, {"feature_weights": self.weights}

    def value(self, rows: Array) -> float:
        # By the parts: at any height a true upper bound, and at the best one rounding of the height does not matter.
        shared = self._cut(rows, cut_heights(rows, self._g, self._l))
        rest = np.add.reduce(np.abs(rows - shared), axis=1)
        return float(self.weights @ (self._g * row_norms(shared) + self._l * rest))

    @staticmethod
    def _cut(rows: Array, heights: Array) -> Array:
        return np.clip(rows, -heights[:, None], heights[:, None])

    def gauges(self, products: Array) -> Array:
        largest = np.max(np.abs(products), axis=1, initial=0.0)
        return np.asarray(np.maximum(row_norms(products) / self._g, largest / self._l) / self.weights)

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        together = sphere_norms(centre, norms, radius, self._g * self.weights) / self._g
        single = np.max(centre + radius * norms, axis=1, initial=0.0) / self._l
        return np.asarray(np.maximum(together, single) / self.weights)

    def prox(self, rows: Array, step: float) -> Array:
        """What is taken away is the row cut and shortened: the nearest point of the dual ball."""
        limit = step * self._l * self.weights
        tau = cut_heights(rows, self._g, self._l) / self._l
        factor = np.maximum(tau, step * self.weights)
        away = rows * np.divide(step * self.weights, factor, out=np.zeros_like(factor), where=factor > 0.0)[:, None]
        return rows - np.clip(away, -limit[:, None], limit[:, None])

    def split(self, rows: Array) -> dict[str, Array] | None:
        heights = cut_heights(rows, *self._costs(rows.shape[1]))
        shared = self._cut(rows, heights)
        return {"shared": shared, "specific": rows - shared}

    def steepest(self, products: Array) -> tuple[Array, Array] | None:
        hardest = np.array([int(np.argmax(self.row_gauges(products)))])
        row = np.maximum(products[hardest], 0.0) if self.positive else products[hardest]
        sizes = np.abs(row)
        if np.max(sizes) / self._l > row_norms(row)[0] / self._g:
            row = np.where(sizes == np.max(sizes), row, 0.0)
        return hardest, row

    def zero_entries(self, centre: Array, errors: Array, norms: Array, radius: float) -> Array | None:
        if not self.has_entries:
            return None
        # A coefficient is zero where its row has no shared part and it has no part of its own.
        start = np.maximum(centre, 0.0) if self.positive else centre
        alone = rejects(start, norms, radius, self._g * self.weights, math.sqrt(self._n_tasks) * errors)
        entries = zero_entries(centre, norms, radius, self._l * self.weights, self.positive, errors)
        return alone[:, None] & entries

    def row_form(self) -> RowForm | None:
        return RowForm("split", self._g * self.weights, self._l * self.weights)

    @property
    def euclid(self) -> Array | float | None:
        factor = max(1.0 / self._g, 1.0 / self._l)
        return np.divide(factor, self.weights, out=np.zeros_like(self.weights), where=self.weights > 0.0)

    @property
    def outer(self) -> Array | None:
        return min(self._g, math.sqrt(self._n_tasks) * self._l) * self.weights


def cut_heights(rows: Array, g: float, l1: float) -> Array:
    """Where each row is cut into its parts: at 0 if all of it is specific, at its largest entry or above if none is.

    Found from above: each step cuts what was too high for the last one, so that there are as many as entries at most.
    """
    sizes = np.abs(rows)
    heights = np.full(len(rows), np.inf)
    squares = np.square(sizes)
    few = np.count_nonzero(sizes, axis=1) * (l1 * l1) <= g * g
    heights[few] = 0.0
    open_ = np.flatnonzero(~few)
    while len(open_):
        above = sizes[open_] > heights[open_, None]
        left = g * g - np.count_nonzero(above, axis=1) * (l1 * l1)
        kept = np.add.reduce(np.where(above, 0.0, squares[open_]), axis=1)
        found = l1 * np.sqrt(np.divide(kept, left, out=np.zeros_like(kept), where=left > 0.0))
        lower = found < heights[open_]
        open_, found = open_[lower], found[lower]
        heights[open_] = found
    return heights
