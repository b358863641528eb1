"""Units of X, y and the weights: powers of two that bring them to ordinary sizes, and results back.

A common factor of X, of y or of the weights changes nothing but the units of the answer. Where squares of the numbers
would leave the range of double precision they are scaled by powers of two first, which costs no digit:

    X = 2^x X',  y = 2^y y',  W = 2^(y - x) W',  objective = 2^f objective',

with f = 2y for squared errors, y for norms of residuals, 0 where labels have no units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..design import Design
from ..losses import Loss
from ..messages import value_error
from ..tasks import TaskData

_ORDINARY = 100  # exponents up to this need no care: fourth powers, and sums of them, stay inside the range
_LARGEST = 960  # of objectives and coefficients
_STRONGEST = 2.0**960  # no penalty needs to be stronger


@dataclass(frozen=True)
class Units:
    """The exponents x, y and f; `penalised` is x, or 0 where columns are standardised: then it is not their units that
    the penalty sees."""

    x: int = 0
    y: int = 0
    f: int = 0
    penalised: int = 0

    @classmethod
    def of(cls, loss: Loss, data: TaskData, weights: np.ndarray) -> Units:
        """Those of the labels, less their offset; X is measured later (`exponent_of`)."""
        if not loss.degree:
            return cls()
        y = data.y
        if data.known is not None and data.class_counts is None:  # codes of classes have no units
            y = y - data.known
        exponent = _exponent(y[weights > 0.0])
        if abs(exponent) <= _ORDINARY:
            return cls()
        f = loss.degree * exponent
        if abs(f) > _LARGEST:
            raise value_error(
                "{y}: entries are as large as {largest:.0e}, and the objective made of them is outside the range "
                "of double precision. Divide {y} by a constant.",
                largest=np.max(np.abs(y[weights > 0.0])),
            )
        return cls(0, exponent, f)

    def on(self, exponent: int, standardize: bool) -> Units:
        """With X in units of this power of two."""
        return replace(self, x=exponent, penalised=0 if standardize else exponent)

    def inward(self, lams: np.ndarray) -> np.ndarray:
        """Strengths in these units; what is out of range is as strong, or as weak, as can be."""
        exponent = self.y - self.penalised - self.f
        if exponent:
            with np.errstate(over="ignore", under="ignore"):
                lams = np.ldexp(lams, exponent)
        return np.minimum(np.maximum(lams, 1.0 / _STRONGEST), _STRONGEST)

    def outward(self, lam: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.ldexp(lam, self.f - self.y + self.penalised))

    def ratio(self, ridge_ratio: float) -> float:
        """Ridge / strength in these units."""
        return float(np.ldexp(ridge_ratio, self.y - self.penalised))

    def ridge(self, ridge: float) -> float:
        return float(np.ldexp(ridge, 2 * (self.y - self.penalised) - self.f))

    def labels(self, y: np.ndarray) -> np.ndarray:
        """Labels or offsets in these units."""
        return np.ldexp(y, -self.y) if self.y else y

    def constants(self, intercept: np.ndarray) -> np.ndarray:
        """Intercepts in these units."""
        return np.ldexp(intercept, -self.y) if self.y else intercept

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Coefficients, (features, tasks), in these units."""
        return np.ldexp(rows, self.x - self.y)

    def solution(self, rows: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts in the units of the data."""
        return np.ldexp(rows, self.y - self.x), np.ldexp(intercept, self.y)

    def values(self, points: Any) -> Any:
        """Values of a path in the units of the data."""
        return points if self == Units() else [self.value(point) for point in points]

    def value(self, point: Any) -> Any:
        """A value of a path in the units of the data."""
        with np.errstate(over="ignore", under="ignore"):
            rows, intercept = self.solution(point.rows, point.intercept)
            found = replace(
                point,
                lam=self.outward(point.lam),
                rows=rows,
                intercept=intercept,
                objective=float(np.ldexp(point.objective, self.f)),
                dual_gap=float(np.ldexp(point.dual_gap, self.f)),
            )
        sizes = np.abs(rows[point.rows != 0.0])
        if np.any(~np.isfinite(sizes) | (sizes < 2.0**-1000)):
            raise ValueError(
                "X and y: coefficients leave the range of double precision. Multiply X or y by a constant that brings "
                "them to similar sizes."
            )
        return found


@dataclass(frozen=True, eq=False)
class TargetUnits(Units):
    """The same where the labels of each task are divided by a scale of their own: a task's coefficients and intercept
    are multiplied by it.

    - `scales` (array of shape (T,)): Of the labels of each task.
    - `lengths` (int array of shape (T,)): Rows of each task.
    """

    scales: Any = 1.0
    lengths: Any = 1

    def labels(self, y: np.ndarray) -> np.ndarray:
        factor = np.repeat(self.scales, self.lengths)
        if y.dtype.names is None:
            return super().labels(y) / factor
        found = y.copy()
        found["time"] = y["time"] / factor
        return found

    def constants(self, intercept: np.ndarray) -> np.ndarray:
        return super().constants(intercept) / self.scales

    def rows(self, rows: np.ndarray) -> np.ndarray:
        return super().rows(rows) / self.scales

    def solution(self, rows: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, intercept = super().solution(rows, intercept)
        return rows * self.scales, intercept * self.scales


def exponent_of(storage: Any) -> int:
    """The exponent of the largest entry; 0 if it is ordinary, or not a number."""
    found = 0.0
    step = max(1, (1 << 22) // max(storage.n_rows, 1))
    for low in range(0, storage.n_features, step):
        block = storage.take(np.arange(low, min(low + step, storage.n_features)))
        found = max(found, float(np.max(np.abs(block), initial=0.0)))
    exponent = int(np.frexp(found)[1]) if np.isfinite(found) and found > 0.0 else 0
    return exponent if abs(exponent) > _ORDINARY else 0


def measured_exponent(design: Design, storage: Any) -> int:
    """The same where the columns' lengths, as they were measured, may have left the range; else 0."""
    longest = design.norm_range()[1]
    if len(design.unpenalised):
        longest = max(longest, float(np.max(design.samples.nuisance_lengths[int(design.fit_intercept) :])))
    ordinary = math.isfinite(longest) and 2.0**-_ORDINARY < longest < 2.0**_ORDINARY
    return 0 if ordinary else exponent_of(storage)


def refuse_vanished(design: Design, storage: Any) -> None:
    """Refuse columns that are nothing beside the largest entry of X, but not constant."""
    if design.norm_range()[0] > 0.0:
        return
    for j in np.flatnonzero(design.longest() == 0.0):
        column = storage.take(np.array([j]))[:, 0]
        if np.any(column != column[0]):
            raise ValueError(
                f"X: the entries of feature {j} are smaller than the largest of X by more than double precision can "
                "square. Multiply the columns by factors that bring them to similar sizes."
            )


def _exponent(values: np.ndarray) -> int:
    largest = float(np.maximum.reduce(np.abs(values), initial=0.0))
    return math.frexp(largest)[1] if math.isfinite(largest) and largest > 0.0 else 0
