"""Products of columns of int8 with several vectors in one reading: the vectors as digits, multiplied exactly.

A vector of a task is a unit times integers of four digits to the base 128, each in int8; integers are multiplied and
added without rounding, on a GPU by its tensor cores. What is lost is the rest of each entry, at most half a unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import triton_kernels

Array = np.ndarray[Any, Any]

ALIGNED = 16  # entries, and so at least bytes, at which columns begin: a pass over others takes twice as long
VECTORS = 16  # multiplied together: what a tensor core takes at least
_LEAST = 3  # vectors: fewer are read one after the other in less time
_PARTS = 2.0**26  # of the largest entry, that a unit is
_REST = 0.51  # of a unit: what an entry loses, and the rounding of the quotient
_PLACES = (2.0**21, 2.0**14, 2.0**7, 1.0)
_MOST_ROWS = 1 << 18  # of a task, whose sums of products stay within 32 bits


def usable(x: torch.Tensor, offsets: Array, count: int) -> bool:
    """Whether columns lie where digits are multiplied, and with so many vectors it pays."""
    return (
        count >= _LEAST
        and x.dtype == torch.int8
        and triton_kernels.usable(x)
        and int(np.max(np.diff(offsets))) < _MOST_ROWS
    )


def planes_of(
    vectors: torch.Tensor, offsets: Array, cut: torch.Tensor, tile: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Digits (4, 16, padded rows) of up to 16 vectors (V, n_rows), units (tasks, 16), and how long what is lost is
    (V,); with a `tile` digits by task, (tasks, 4, 16, tile), on a GPU."""
    count, n_rows = vectors.shape
    n_tasks, pitch = len(offsets) - 1, -(-n_rows // ALIGNED) * ALIGNED
    lengths = cut[1:] - cut[:-1]
    if triton_kernels.usable(vectors):
        planes, padded = triton_kernels.digit_planes(vectors, offsets, cut, _PARTS, VECTORS, pitch, tile)
    else:
        of_row = torch.repeat_interleave(torch.arange(n_tasks, device=vectors.device), lengths, output_size=n_rows)
        tops = torch.zeros((count, n_tasks), dtype=torch.float64, device=vectors.device)
        tops.scatter_reduce_(1, of_row.expand(count, -1), vectors.abs(), "amax")
        padded = torch.zeros((n_tasks, VECTORS), dtype=torch.float64, device=vectors.device)
        padded[:, :count] = (tops.clamp(min=1e-250) / _PARTS).T
        rest = torch.round(vectors / padded[of_row, :count].T)
        planes = torch.zeros((4, VECTORS, pitch), dtype=torch.int8, device=vectors.device)
        for plane, place in zip(planes, _PLACES, strict=True):
            digit = torch.round(rest / place)
            rest = rest - digit * place
            plane[:count, :n_rows] = digit
    units = padded[:, :count]
    return planes, padded, _REST * (lengths[:, None] * units * units).sum(dim=0).sqrt()


def lengths(
    x: torch.Tensor, vectors: torch.Tensor, offsets: Array, cut: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Lengths over the tasks of the products of all columns with vectors, (V, features), and (V,): times the longest
    part of a column in a task, what these may be off."""
    found, lost, tile = [], [], triton_kernels.digit_tile(offsets)
    for low in range(0, len(vectors), VECTORS):
        part = vectors[low : low + VECTORS]
        planes, units, off = planes_of(part, offsets, cut, tile)
        found.append(triton_kernels.digit_lengths(x, planes, units, cut, tile)[: len(part)])
        lost.append(off)
    return (found[0], lost[0]) if len(found) == 1 else (torch.cat(found), torch.cat(lost))
