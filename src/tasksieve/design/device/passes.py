"""Products of all columns on a device with a vector per task: Triton kernels on a GPU, torch elsewhere.

All of them convert entries to double precision and add up in it: on a GPU made for computing that is as fast as memory
delivers bytes, and any order of summation is within the bound that `LocalShard.rounding` states.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from . import triton_kernels

Array = np.ndarray[Any, Any]

_BLOCK_ENTRIES = 1 << 24  # converted to double precision at a time


def segment_products(
    x: torch.Tensor,
    n_rows: int,
    vectors: torch.Tensor,
    offsets: Array,
    cut: torch.Tensor,
    columns: torch.Tensor | None = None,
    squares: bool = False,
    lengths: bool = False,
) -> torch.Tensor:
    """``out[v, j, t] = sum_i x[columns[j], i]^p vectors[v, i]`` over the rows of task ``t``; p = 2 with `squares`.
    With `lengths`, ``out[v, j]``: the length of these over the tasks; they are not kept.

    - `x`: tensor, (features, padded rows)
    - `vectors`: tensor of float64, (V, n_rows)
    - `offsets`, `cut` (array and tensor of int64): Where each task starts, here and on the device.
    """
    if triton_kernels.usable(x):
        return triton_kernels.segment_products(x, vectors, offsets, cut, columns, squares, lengths)
    found = plain_segment_products(x, n_rows, vectors, offsets, columns, squares)
    return torch.linalg.vector_norm(found, dim=2) if lengths else found


def plain_segment_products(
    x: torch.Tensor, n_rows: int, vectors: torch.Tensor, offsets: Array, columns: torch.Tensor | None, squares: bool
) -> torch.Tensor:
    """The same in torch alone."""
    count = int(x.shape[0]) if columns is None else len(columns)
    out = torch.empty((len(vectors), count, len(offsets) - 1), dtype=torch.float64, device=x.device)
    lengths = np.diff(offsets)
    equal = bool(np.all(lengths == lengths[0]))
    for part, block in _blocks(x, n_rows, columns, squares):
        if equal:
            cells = block.reshape(len(block), len(lengths), -1)
            out[:, part] = torch.einsum("btl,vtl->vbt", cells, vectors.reshape(len(vectors), len(lengths), -1))
            continue
        for t, (start, stop) in enumerate(pairwise(offsets.tolist())):
            out[:, part, t] = vectors[:, start:stop] @ block[:, start:stop].T
    return out


def shared_products(
    x: torch.Tensor, n_rows: int, vectors: torch.Tensor, columns: torch.Tensor | None, squares: bool
) -> torch.Tensor:
    """``out[j, v] = sum_i x[columns[j], i]^p vectors[v, i]`` over all rows."""
    count = int(x.shape[0]) if columns is None else len(columns)
    out = torch.empty((count, len(vectors)), dtype=torch.float64, device=x.device)
    for part, block in _blocks(x, n_rows, columns, squares):
        torch.matmul(block, vectors.T, out=out[part])
    return out


def _blocks(x: torch.Tensor, n_rows: int, columns: torch.Tensor | None, squares: bool) -> Any:
    """(positions, columns in double precision), some at a time; never the data themselves where they are written to."""
    count = int(x.shape[0]) if columns is None else len(columns)
    step = max(1, _BLOCK_ENTRIES // max(n_rows, 1))
    for low in range(0, count, step):
        part = slice(low, min(low + step, count))
        block = (x[part] if columns is None else x[columns[part]])[:, :n_rows].to(torch.float64)
        yield part, block * block if squares else block
