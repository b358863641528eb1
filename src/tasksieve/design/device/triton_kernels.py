"""Triton kernels for a GPU; `passes` has their twins in torch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

_TILE = 4096  # entries that one program holds in double precision


@cache
def _kernels() -> Any:
    """The compiled kernels, or None without Triton."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    @triton.jit
    def segments(  # type: ignore[no-untyped-def]
        x, pitch, columns, count, vectors, n_rows, cut, n_tasks, out,
        CHOSEN: tl.constexpr, SQUARES: tl.constexpr, MAGIC: tl.constexpr, FEATURES: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        places = tl.program_id(0).to(tl.int64) * FEATURES + tl.arange(0, FEATURES)
        inside = places < count
        feature = tl.load(columns + places, mask=inside, other=0) if CHOSEN else places
        vector = vectors + tl.program_id(1).to(tl.int64) * n_rows
        target = out + (tl.program_id(1).to(tl.int64) * count + places) * n_tasks
        for t in range(n_tasks):
            start, stop = tl.load(cut + t), tl.load(cut + t + 1)
            total = tl.zeros((FEATURES, ROWS), dtype=tl.float64)
            # From a place where 16 bytes can be read at once; rows of other tasks meet zeros of the vector.
            for first in range(start // 16 * 16, stop, ROWS):
                rows = tl.multiple_of(first, 16) + tl.arange(0, ROWS)
                entries = tl.load(
                    x + feature[:, None] * pitch + rows[None, :], mask=inside[:, None] & (rows < pitch)[None, :], other=0
                )
                if MAGIC:  # a conversion of integers by an addition: four times as fast
                    bits = (entries.to(tl.int32) + 128).to(tl.int64) | 0x4330000000000000
                    doubles = bits.to(tl.float64, bitcast=True) - 4503599627370624.0
                else:
                    doubles = entries.to(tl.float64)
                if SQUARES:
                    doubles = doubles * doubles
                own = tl.load(vector + rows, mask=(rows >= start) & (rows < stop), other=0.0)
                total += doubles * own[None, :]
            tl.store(target + t, tl.sum(total, axis=1), mask=inside)

    return triton, segments


def usable(x: torch.Tensor) -> bool:
    """Whether a tensor lies where Triton's kernels run."""
    return bool(x.is_cuda) and _kernels() is not None


def segment_products(
    x: torch.Tensor,
    vectors: torch.Tensor,
    offsets: Array,
    cut: torch.Tensor,
    columns: torch.Tensor | None,
    squares: bool,
) -> torch.Tensor:
    """See `passes.segment_products`."""
    triton, segments = _kernels()
    count, tasks = int(x.shape[0]) if columns is None else len(columns), len(offsets) - 1
    out = torch.empty((len(vectors), count, tasks), dtype=torch.float64, device=x.device)
    rows = min(max(triton.next_power_of_2(int(np.max(np.diff(offsets)))), 16), 256)
    features = max(_TILE // rows, 1)
    with torch.cuda.device(x.device):
        segments[(triton.cdiv(count, features), len(vectors))](
            x, x.stride(0), x if columns is None else columns, count, vectors, vectors.stride(0), cut, tasks, out,
            CHOSEN=columns is not None, SQUARES=squares, MAGIC=x.dtype in (torch.int8, torch.uint8), FEATURES=features, ROWS=rows, num_warps=4,
        )  # fmt: skip
    return out
