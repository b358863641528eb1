"""What makes screening sharper or a proof shorter, where a penalty knows more than its gauges and their reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import RowNorm

Array = np.ndarray[Any, Any]


class SharperScreening(RowNorm):
    """Nothing beyond gauges and reach, unless a penalty says so."""

    #: single entries of a row may be zero while the others are not
    has_entries: bool = False
    #: relative error of a computed gauge
    gauge_error: float = 1e-12

    def steepest(self, products: Array) -> tuple[Array, Array] | None:
        """One row of coefficients that attains the polar of M, as (feature, row): None if there is no formula."""
        return None

    def zero_entries(self, centre: Array, errors: Array, norms: Array, radius: float) -> Array | None:
        """Single coefficients that are zero over such a ball; None where entries are never zero by themselves.

        Never with a `coupling`: neighbours pull an entry away from zero that has no correlation of its own.
        """
        return None

    @property
    def euclid(self) -> Array | float | None:
        """K with gauge(m) <= K ||m||_2 for a row m; None where nothing but the gauge itself is to be used."""
        return None

    @property
    def outer(self) -> Array | None:
        """Largest Euclidean norm of a row of gauge 1; None if unknown."""
        return None
