"""A storage in other units: entries so large or so small that their squares leave the range of double precision."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .base import ColumnStorage
from .computed import ComputedStorage

Array = np.ndarray[Any, Any]


class ScaledStorage(ComputedStorage):
    """``2^-exponent X``."""

    def __init__(self, storage: ColumnStorage, exponent: int) -> None:
        super().__init__(storage)
        self._exponent = exponent
        #: where the columns live, it is there that they are scaled
        self.shard_class = self.wrapped_shard_class = storage.wrapped_shard_class
        self.inner, self.around = storage, partial(ScaledStorage, exponent=exponent)

    def take(self, features: Array) -> Array:
        return np.asfortranarray(np.ldexp(self._of.take(features), -self._exponent))
