"""Columns that lie on a device, feature by feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..storage.base import Asked, ColumnStorage, Reading, part_read, split_asked
from .blocks import block_columns, block_products, on_the_device

Array = np.ndarray[Any, Any]

KEPT_TYPES = {torch.float64: np.float64, torch.float32: np.float32, torch.int8: np.int8, torch.uint8: np.uint8}
_ALIGNED = 16  # bytes at which every column begins


def padded_rows(n_rows: int, itemsize: int) -> int:
    """Rows with which a column ends on a multiple of 16 bytes."""
    unit = _ALIGNED // itemsize
    return -(-n_rows // unit) * unit


def empty_columns(n_rows: int, n_features: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Room for columns, (features, rows), each beginning on 16 bytes; what pads them is zero."""
    width = padded_rows(n_rows, dtype.itemsize)
    whole = torch.empty((n_features, width), dtype=dtype, device=device)
    whole[:, n_rows:] = 0
    return whole[:, :n_rows]


class DeviceStorage(ColumnStorage):
    """A tensor of shape (features, rows), rows in task order, on a device.

    Parameters
    ----------
    x : tensor
        float64, float32, int8 or uint8, each feature in one piece.
    """

    dear = True
    sparse = False

    def __init__(self, x: torch.Tensor) -> None:
        self.x, self.device = x, x.device
        self.n_features, self.n_rows = x.shape
        self.dtype = np.dtype(KEPT_TYPES[x.dtype])

    @classmethod
    def of(cls, parts: list[torch.Tensor], row_order: Array | None, device: torch.device) -> DeviceStorage:
        """Tensors, (rows, features) each, on top of each other; used where they lie if columns lie as they should."""
        types = {part.dtype for part in parts}
        dtype = types.pop() if len(types) == 1 else torch.float64
        dtype = dtype if dtype in KEPT_TYPES else torch.float64
        first = parts[0]
        here = len(parts) == 1 and first.dtype == dtype and first.device == device
        if here and row_order is None and _lies_well(first):
            return cls(first.T)
        n_rows, n_features = sum(len(part) for part in parts), first.shape[1]
        out = empty_columns(n_rows, n_features, dtype, device)
        order = None if row_order is None else torch.as_tensor(np.ascontiguousarray(row_order), device=device)
        step = block_columns(n_rows)
        for low in range(0, n_features, step):
            block = [part[:, low : low + step].T.to(device=device, dtype=dtype) for part in parts]
            rows = block[0] if len(block) == 1 else torch.cat(block, dim=1)
            out[low : low + step] = rows if order is None else rows[:, order]
        return cls(out)

    def products(
        self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool, threads: int
    ) -> Array:
        return self.read([Asked(vector, offsets, shared, columns, squares)], threads).products[0]

    def read(self, asked: Sequence[Asked], threads: int) -> Reading:
        products: list[Any] = [None] * len(asked)
        vectors = on_the_device(asked, self.device)
        everything, some = split_asked(asked)
        step = block_columns(self.n_rows)
        groups = [(everything, self.x)] if everything else []
        groups += [([k], self.x[self._places(asked[k].columns)]) for k in some]
        for group, x in groups:
            parts = [
                block_products(x[low : low + step], [asked[k] for k in group], [vectors[k] for k in group])
                for low in range(0, max(len(x), 1), step)
            ]
            for m, k in enumerate(group):
                products[k] = torch.cat([part[m] for part in parts]).cpu().numpy()
        return Reading(products, part_read(asked, self.n_features))

    def take(self, features: Array) -> Array:
        return np.asarray(self.x[self._places(features)].to(torch.float64).cpu().numpy().T)

    def _places(self, features: Array | None) -> torch.Tensor:
        return torch.as_tensor(np.asarray(features, dtype=np.int64), device=self.device)


def _lies_well(x: torch.Tensor) -> bool:
    """Whether columns lie in one piece, each beginning on 16 bytes."""
    rows, columns = x.stride()
    stride = columns * x.element_size()
    return rows == 1 and columns >= len(x) and stride % _ALIGNED == 0 and x.data_ptr() % _ALIGNED == 0
