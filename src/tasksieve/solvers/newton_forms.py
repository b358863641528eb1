"""The two forms of the variational program and its Newton system (`newton`).

Both need, at weights ``a``, the residual ``r_t = K_t^-1 y_t`` with ``K_t = I + X_t diag(a) X_t'`` and the matrix
``M = sum_t (u_t u_t') o X_t' K_t^-1 X_t``:

* `SampleForm` factors ``K_t``, as large as the tasks have rows: for few rows, however many features;
* `FeatureForm` factors ``B_t = I + D G_t D`` with ``D = diag(sqrt a)`` and ``G_t = X_t' X_t``, as large as there are
  features in play: for tasks with more rows than that. There ``r_t = y_t - X_t D B_t^-1 D X_t' y_t`` and
  ``X_t' K_t^-1 X_t = D^-1 (I - B_t^-1) D^-1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import ColumnBlock

Array = np.ndarray[Any, Any]

_MOST_CELLS = 25_000_000  # of all the matrices to be factored, where the working columns are not larger anyway
_SMALLEST = 1e-3  # of ``a_j G_jj``: below that ``I - B^-1`` would lose its digits in single precision


class WhitenedSystem:
    """``M = Z'Z``; for one matrix shared by all tasks ``(Z'Z) o (U U')``."""

    def __init__(self, z: Array, outer: Array | None, threads: int) -> None:
        self._z, self._outer, self._threads = z, outer, threads
        self.squares = np.einsum("ij,ij->j", z, z)  # rows of U have norm 1
        self._work = np.empty(z.shape[1], dtype=np.float32)

    def matrix(self) -> Array:
        m = np.empty((self._z.shape[1], self._z.shape[1]), dtype=np.float32)
        kernels.normal_matrix(self._z, self._outer, self._threads, m)
        return m

    def product(self, vector: Array) -> Array:
        kernels.normal_product(self._z, self._outer, vector.astype(np.float32), self._threads, self._work)
        return self._work


class DenseSystem:
    """``M`` as it is."""

    def __init__(self, m: Array) -> None:
        self._m = m
        self.squares = np.diag(m).astype(np.float64)

    def matrix(self) -> Array:
        return self._m

    def product(self, vector: Array) -> Array:
        return np.asarray(self._m @ vector.astype(np.float32))


class SampleForm:
    """Factors of ``K_t``."""

    def __init__(self, packed: ColumnBlock) -> None:
        self._packed = packed
        rows = len(packed.x)
        lengths = np.diff(packed.offsets).astype(float)
        self._cells = rows * rows if packed.shared else int(np.sum(lengths * lengths))
        self._factors = np.empty(0)
        self._whitened = np.empty((rows, 0), dtype=np.float32, order="F")
        self._cubes = float(rows) ** 3 / 3 if packed.shared else float(np.sum(lengths**3)) / 3

    def fits(self, count: int) -> bool:
        """Whether the matrices are affordable."""
        return self._cells <= _MOST_CELLS

    def work(self, count: int) -> float:
        """Operations of one Newton step with this many rows of W."""
        system = min(self.direct_work(count), self.iterative_work(count))
        return self._cubes + 2.0 * count * self._cells + system

    def direct_work(self, count: int) -> float:
        """Forming and factoring M; the factorisation runs at a third of the speed of a product."""
        height = len(self._packed.x) + (self._packed.n_tasks if self._packed.shared else 0)
        return count * count * height + float(count) ** 3

    def iterative_work(self, count: int) -> float:
        """Conjugate gradients: some 15 products with Z and its transpose. With one matrix for all tasks these are
        matrix products, at full speed; otherwise they run at memory speed, twelve times slower."""
        if self._packed.shared:
            return 15 * 4.0 * count * len(self._packed.x) * self._packed.n_tasks
        return 15 * 12 * 4.0 * count * len(self._packed.x)

    def begin(self, positions: Array, target: Array) -> None:
        if len(self._factors) == 0:
            self._factors = np.empty(self._cells)

    def residual(self, positions: Array, a: Array, target: Array) -> Array | None:
        """``K_t^-1 y_t``, flat; None where a factorisation failed."""
        packed = self._packed
        live = np.flatnonzero(a > 0.0)
        residual = np.empty_like(target)
        ok = kernels.factor(
            packed.x, packed.offsets, packed.shared, positions[live], a[live], target, packed.n_threads,
            self._factors, residual,
        )  # fmt: skip
        return residual if ok else None

    def system(self, positions: Array, a: Array, u: Array) -> WhitenedSystem | None:
        """M on some columns, at the weights of the last `residual`."""
        packed, count = self._packed, len(positions)
        # Kept between steps: fresh memory of this size costs as much as filling it.
        if self._whitened.shape[1] < count:
            self._whitened = np.empty((len(packed.x), 2 * count), dtype=np.float32, order="F")
        z = self._whitened[:, :count]
        kernels.whiten(packed.x, packed.offsets, packed.shared, positions, u, self._factors, packed.n_threads, z)
        return WhitenedSystem(z, u.astype(np.float32) if packed.shared else None, packed.n_threads)


class FeatureForm:
    """Factors of ``B_t``, from Gram matrices that are kept and extended as columns come into play."""

    def __init__(self, packed: ColumnBlock) -> None:
        self._packed = packed
        self._matrices = 1 if packed.shared else packed.n_tasks
        self._layout = packed.layout
        #: columns whose products the Gram matrices hold, slot after slot
        self._positions = np.empty(0, dtype=np.int64)
        self._gram = np.empty((self._matrices, 0, 0))
        self._target = np.empty((0, packed.n_tasks))  # X_t' y_t for the columns of the problem at hand
        self._factors = np.empty((self._matrices, 0, 0))
        self._factored = (self._positions, np.empty(0))  # columns and weights they belong to

    def fits(self, count: int) -> bool:
        """Whether the matrices are affordable: no larger than the columns themselves, or small."""
        cells = self._matrices * float(count) ** 2
        return cells <= max(_MOST_CELLS, len(self._packed.x) * float(count))

    def work(self, count: int) -> float:
        """A factorisation, at a third of a product's speed, and an inverse."""
        return self._matrices * 2.0 * float(count) ** 3 + self.direct_work(count)

    def direct_work(self, count: int) -> float:
        """Factoring M, which is formed anyway."""
        return float(count) ** 3

    def iterative_work(self, count: int) -> float:
        """Some 15 products with M, at memory speed."""
        return 15 * 12 * 2.0 * float(count) ** 2

    def begin(self, positions: Array, target: Array) -> None:
        self._target = self._packed.correlate(target, positions)

    def residual(self, positions: Array, a: Array, target: Array) -> Array | None:
        """``y_t - X_t D B_t^-1 D X_t' y_t``, flat; None where a factorisation failed."""
        live = np.flatnonzero(a > 0.0)
        weights = self._factor(positions[live], a[live], np.ascontiguousarray(self._target[live]))
        return None if weights is None else np.asarray(target - self._packed.combine(positions[live], weights))

    def system(self, positions: Array, a: Array, u: Array) -> DenseSystem | None:
        """M on some columns at the weights ``a``; None where a factorisation failed."""
        slots = self._slots(positions)
        largest = np.max(self._gram[:, slots, slots], axis=0)
        floor = np.divide(_SMALLEST, largest, out=np.ones_like(largest), where=largest > 0.0)
        a = np.maximum(a, floor)
        factored = np.array_equal(positions, self._factored[0]) and np.array_equal(a, self._factored[1])
        if not factored and self._factor(positions, a, np.zeros_like(u)) is None:
            return None
        m = np.empty((len(positions), len(positions)), dtype=np.float32)
        ok = kernels.gram_normal(self._factors, a, u, self._packed.n_threads, m)
        return DenseSystem(m) if ok else None

    def _factor(self, positions: Array, a: Array, products: Array) -> Array | None:
        """Factors of ``B_t`` on some columns, and the ridge fits ``D B_t^-1 D products_t``."""
        count = len(positions)
        slots = self._slots(positions)
        if self._factors.shape[1] != count:
            self._factors = np.empty((self._matrices, count, count))
        weights = np.empty((count, self._packed.n_tasks))
        self._factored = (positions, a)
        ok = kernels.gram_factor(self._gram, slots, a, products, self._packed.n_threads, self._factors, weights)
        return weights if ok else None

    def _slots(self, positions: Array) -> Array:
        """Where these columns are in the Gram matrices, which are extended by those that are missing."""
        packed = self._packed
        if self._layout != packed.layout:  # the columns have been moved
            self._layout, self._positions = packed.layout, np.empty(0, dtype=np.int64)
            self._factored = (self._positions, np.empty(0))
        missing = np.setdiff1d(positions, self._positions)
        if len(missing):
            kept = np.arange(len(self._positions))
            if len(kept) + len(missing) > 1.5 * len(positions):
                kept = np.flatnonzero(np.isin(self._positions, positions))
            total = len(kept) + len(missing)
            if total > self._gram.shape[1] or len(kept) < len(self._positions):
                capacity = max(64, int(1.2 * total))
                gram = np.empty((self._matrices, capacity, capacity))
                for mine, theirs in zip(gram, self._gram, strict=True):
                    mine[: len(kept), : len(kept)] = theirs[np.ix_(kept, kept)]
                self._gram = gram
            self._positions = np.concatenate([self._positions[kept], missing])
            kernels.extend_grams(packed.x, packed.offsets, self._positions, len(kept), packed.n_threads, self._gram)
        order = np.argsort(self._positions)
        return np.asarray(order[np.searchsorted(self._positions, positions, sorter=order)])
