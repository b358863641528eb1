"""The core of a penalty: what it knows of itself, and the methods that every one writes.

`value`, `gauges`, `prox` and `reach` have no default. `on` and `restrict` have one that suits a penalty whose only
numbers are `weights`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import numpy as np

from .._kernels import kernels
from ..described import Described
from .coupling import Coupling

Array = np.ndarray[Any, Any]


def row_norms(rows: Array) -> Array:
    """Euclidean norms of the rows."""
    out = np.empty(len(rows))
    kernels.row_norms(np.ascontiguousarray(rows, dtype=np.float64), out)
    return out


def live_rows(rows: Array) -> Array:
    """Indices of the rows that are not zero."""
    return np.asarray(rows.any(axis=1)).nonzero()[0]


class RowNorm(Described):
    """A norm of rows on some features, at one strength. `RowPenalty` is this with everything that follows from it."""

    #: words for reports
    label = "rows"
    #: the penalty as a report writes it, "α Σ_j ..."; each class defines its own
    formula: str
    weights: Array
    positive: bool = False
    ridge: float = 0.0
    coupling: Coupling | None = None
    #: dual feasibility is a matter of each row alone
    separable: bool = True
    #: the penalty at unit strength that this one was made of, and the strength, where that is so
    origin: tuple[Any, float] | None = None
    _ridge_ratio: float = 0.0
    _fixed_ridge: float = 0.0

    def value(self, rows: Array) -> float:
        """The norm of some rows of W."""
        raise NotImplementedError

    def gauges(self, products: Array) -> Array:
        """Dual gauge of each row of M: the smallest v >= 0 with ``<M_j, w> <= v weights_j N(w)`` for all w."""
        raise NotImplementedError

    def prox(self, rows: Array, step: float) -> Array:
        """``argmin_V 1/2 ||V - rows||^2 + step value(V)``."""
        raise NotImplementedError

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        """Upper bound of each row's gauge over ``{centre + norms * v : v >= 0, ||v|| <= radius}``, centre >= 0.

        One bound serves spheres, ellipsoids and bounded errors: gauges grow with the size of every entry. Rows of one
        block have one v.
        """
        raise NotImplementedError

    def on(
        self,
        weights: Array,
        n_tasks: int,
        *,
        positive: bool = False,
        ridge_ratio: float = 0.0,
        fixed_ridge: float = 0.0,
        coupling: Coupling | None = None,
    ) -> Self:
        """The penalty of given features at unit strength.

        Parameters
        ----------
        weights : array
            Feature weights u_j.
        n_tasks : int
        positive : bool
        ridge_ratio, fixed_ridge : float
            The ridge at strength lam is ``lam ridge_ratio + fixed_ridge``.
        coupling : Coupling, optional
            Whatever the strength.
        """
        require_own(type(self))  # type: ignore[arg-type]
        bound = self._copy()
        bound.weights = np.asarray(weights, dtype=np.float64)
        bound.positive = positive
        bound._ridge_ratio, bound._fixed_ridge = ridge_ratio, fixed_ridge
        bound.ridge = ridge_ratio + fixed_ridge
        bound.coupling = coupling
        return bound

    def restrict(self, features: Array) -> Self:
        """The same penalty on some features."""
        smaller = self._copy()
        smaller.weights = self.weights[features]
        return smaller

    def _copy(self) -> Self:
        """A shallow copy; several are made for every value of a path, so without `copy`'s ceremony."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("origin", None)
        return other


@cache
def require_own(kind: type[RowNorm]) -> None:
    """Refuse a penalty that lacks what a certificate needs: without it there is no proof, only a number."""
    for name in ("value", "gauges", "prox", "reach"):
        if getattr(kind, name) is getattr(RowNorm, name):
            raise ValueError(
                f"{kind.__name__} does not define `{name}`: a penalty needs value, gauges, prox and reach. "
                "Without them nothing can be certified (docs: Adding a penalty)."
            )
