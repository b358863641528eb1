"""Columns of small whole numbers times a power of two: dosages of genotypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import LARGE, ColumnStorage, ProductRequest, Reading, for_kernels
from .computed import ComputedStorage
from .dense import DenseStorage

Array = np.ndarray[Any, Any]


class StepStorage(ColumnStorage):
    """``step * whole``, exactly: passes read the whole numbers, and products are multiplied by the step.

    - `whole` (uint8 or uint16 array of shape (n, d), Fortran order): Rows in task order. Kernels read 8 bits; 16 are
      converted block by block.
    - `step`: A power of two.
    - `fills` (array of shape (d, T)): What stands for missing entries, already among the numbers.
    """

    def __init__(self, whole: Array, step: float, fills: Array) -> None:
        self._whole, self._step, self._fills = whole, step, fills
        self.n_rows, self.n_features = whole.shape
        self.dtype, self.taken = whole.dtype, np.dtype(np.float64)
        self.costly_reads = whole.nbytes >= LARGE
        self._read: ColumnStorage = DenseStorage(whole) if for_kernels(whole.dtype) else _Converted(self)

    @property
    def nbytes(self) -> int:
        return int(self._whole.nbytes + self._fills.nbytes)

    def fills(self, features: Array) -> Array:
        """Fill values of missing entries, used or not: (features, tasks)."""
        return self._fills[features]

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        found, spent = self._read.read(asked, threads)
        factors = [self._step * self._step if a.squares else self._step for a in asked]
        return Reading([products * factor for products, factor in zip(found, factors, strict=True)], spent)

    def whole_columns(self, features: Array) -> Array:
        return np.asarray(self._whole[:, features], dtype=np.float64, order="F")

    def take(self, features: Array) -> Array:
        return np.asfortranarray(self.whole_columns(features) * self._step)


class _Converted(ComputedStorage):
    """The whole numbers of 16 bits as float64, a block at a time."""

    def __init__(self, steps: StepStorage) -> None:
        super().__init__(steps)
        self._steps = steps

    def take(self, features: Array) -> Array:
        return self._steps.whole_columns(features)
