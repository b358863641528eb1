"""What follows from the core: other strengths, positivity, the quadratic part. Rarely written by a penalty."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core import RowNorm

Array = np.ndarray[Any, Any]


class Derived(RowNorm):
    """A norm of rows with positivity and a quadratic part, at any strength."""

    # -- strengths ------------------------------------------------------------------------------------------------

    def at(self, lam: float) -> Self:
        """Of a penalty at unit strength: the one at strength lam."""
        scaled = self._copy()
        scaled.weights = lam * self.weights
        scaled.ridge = lam * self._ridge_ratio + self._fixed_ridge
        scaled.origin = self, lam
        return scaled

    def ridges(self, lams: Array) -> Array:
        """The ridge at each of some strengths."""
        return np.asarray(lams * self._ridge_ratio + self._fixed_ridge)

    def times(self, factor: float) -> Self:
        """The norm multiplied by a factor, the ridge as it is."""
        scaled = self._copy()
        scaled.weights = factor * self.weights
        return scaled

    def with_fixed_ridge(self, factor: float) -> Self:
        """The same penalty with the ridge that does not grow with the strength multiplied by a factor."""
        changed = self._copy()
        changed._fixed_ridge = factor * self._fixed_ridge
        return changed

    def without_ridge(self) -> Self:
        """The norm alone."""
        plain = self._copy()
        plain.ridge, plain.coupling = 0.0, None
        return plain

    @property
    def penalised(self) -> Array:
        """Which rows are penalised at all."""
        return self.weights > 0.0

    # -- with positivity and the quadratic part -------------------------------------------------------------------

    @property
    def curved(self) -> bool:
        """Whether there is a quadratic part: a ridge, a graph of tasks."""
        return self.ridge != 0.0 or self.coupling is not None

    def pull(self, rows: Array) -> Array:
        """``W R``: what the quadratic part takes from the correlations."""
        pulled = self.ridge * rows
        return pulled if self.coupling is None else pulled + self.coupling.pull(rows)

    def quadratic(self, rows: Array) -> float:
        """``<W R, W>``."""
        square = self.ridge * float(np.vdot(rows, rows)) if self.ridge else 0.0
        return square if self.coupling is None else square + self.coupling.quadratic(rows)

    def total(self, rows: Array) -> float:
        """The norm and the quadratic part."""
        value = self.value(rows)
        return value + 0.5 * self.quadratic(rows) if self.curved else value

    def row_gauges(self, products: Array) -> Array:
        """Gauge of each row; 0 if unpenalised. With W >= 0 negative parts do not count."""
        products = np.maximum(products, 0.0) if self.positive else products
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.penalised, self.gauges(products), 0.0)

    def upper_gauges(self, products: Array, errors: Array) -> Array:
        """`row_gauges` of any products within these errors, at most."""
        return self.row_gauges((products if self.positive else np.abs(products)) + errors)

    def proximal(self, rows: Array, step: float) -> Array:
        """``argmin_V 1/2 ||V - rows||^2 + step (value(V) + ridge/2 ||V||^2)``: a norm's prox commutes with scaling.

        A graph of tasks belongs to the smooth part of a problem.
        """
        rows = self.prox(np.maximum(rows, 0.0) if self.positive else rows, step)
        return rows / (1.0 + step * self.ridge) if self.ridge else rows

    def row_reach(self, centre: Array, errors: Array | float, norms: Array, radius: float) -> Array:
        """`reach` around signed correlations that are known up to `errors`."""
        if not self.positive:
            start, steps = np.abs(centre) + errors, norms
        else:
            start = centre + errors
            below = np.minimum(start, 0.0)
            # what lies below zero has to be climbed before it counts
            steps = np.maximum(norms + below / radius, 0.0) if radius > 0.0 else norms
            start = np.maximum(start, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.penalised, self.reach(start, steps, radius), 0.0)
