"""Triton kernels for a GPU; `passes` has their twins in torch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

_TILE = 4096  # entries that one program holds in double precision
_DIGIT_FEATURES = 256  # of a program that multiplies digits
_AHEAD = 2  # tasks whose loads are in flight at once, where each is one tile


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
        CHOSEN: tl.constexpr, SQUARES: tl.constexpr, LENGTHS: tl.constexpr, AHEAD: tl.constexpr,
        FEATURES: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        positions = tl.program_id(0).to(tl.int64) * FEATURES + tl.arange(0, FEATURES)
        inside = positions < count
        feature = tl.load(columns + positions, mask=inside, other=0) if CHOSEN else positions
        vector = vectors + tl.program_id(1).to(tl.int64) * n_rows
        target = out + (tl.program_id(1).to(tl.int64) * count + positions) * (1 if LENGTHS else n_tasks)
        square = tl.zeros((FEATURES,), dtype=tl.float64)
        if AHEAD > 0:  # every task is one tile: several are under way at once
            for base in range(0, n_tasks, AHEAD):
                for ahead in tl.static_range(AHEAD):
                    t = tl.minimum(base + ahead, n_tasks - 1)
                    start, stop = tl.load(cut + t), tl.load(cut + t + 1)
                    rows = tl.multiple_of(start // 16 * 16, 16) + tl.arange(0, ROWS)
                    entries = tl.load(
                        x + feature[:, None] * pitch + rows[None, :],
                        mask=inside[:, None] & (rows < pitch)[None, :],
                        other=0,
                    )
                    own = tl.load(vector + rows, mask=(rows >= start) & (rows < stop), other=0.0)
                    found = tl.sum(entries.to(tl.float64) * own[None, :], axis=1)
                    square += tl.where(base + ahead < n_tasks, found * found, 0.0)
            n_tasks = 0
        for t in range(n_tasks):
            start, stop = tl.load(cut + t), tl.load(cut + t + 1)
            total = tl.zeros((FEATURES, ROWS), dtype=tl.float64)
            # From a place where 16 bytes can be read at once; rows of other tasks meet zeros of the vector.
            for first in range(start // 16 * 16, stop, ROWS):
                rows = tl.multiple_of(first, 16) + tl.arange(0, ROWS)
                entries = tl.load(
                    x + feature[:, None] * pitch + rows[None, :],
                    mask=inside[:, None] & (rows < pitch)[None, :],
                    other=0,
                )
                doubles = entries.to(tl.float64)
                if SQUARES:
                    doubles = doubles * doubles
                own = tl.load(vector + rows, mask=(rows >= start) & (rows < stop), other=0.0)
                total += doubles * own[None, :]
            found = tl.sum(total, axis=1)
            if LENGTHS:
                square += found * found
            else:
                tl.store(target + t, found, mask=inside)
        if LENGTHS:
            tl.store(target, tl.sqrt(square), mask=inside)

    @triton.jit
    def digits(  # type: ignore[no-untyped-def]
        x, pitch, count, planes, n_rows, units, cut, n_tasks, out,
        ONE: tl.constexpr, FEATURES: tl.constexpr, ROWS: tl.constexpr, VECTORS: tl.constexpr,
    ):  # fmt: skip
        positions = tl.program_id(0).to(tl.int64) * FEATURES + tl.arange(0, FEATURES)
        inside = positions < count
        vector = tl.arange(0, VECTORS)
        square = tl.zeros((FEATURES, VECTORS), dtype=tl.float64)
        step = VECTORS * n_rows
        for t in range(n_tasks):
            start, stop = tl.load(cut + t), tl.load(cut + t + 1)
            if ONE:  # every task is one tile: loads of the next are under way
                rows = tl.multiple_of(start // 16 * 16, 16) + tl.arange(0, ROWS)
                entries = tl.load(
                    x + positions[:, None] * pitch + rows[None, :],
                    mask=inside[:, None] & (rows < pitch)[None, :],
                    other=0,
                )
                own = ((rows >= start) & (rows < stop))[:, None]
                plane = planes + vector[None, :] * n_rows + rows[:, None]
                first_digit = tl.dot(entries, tl.load(plane, mask=own, other=0), out_dtype=tl.int32)
                second_digit = tl.dot(entries, tl.load(plane + step, mask=own, other=0), out_dtype=tl.int32)
                third_digit = tl.dot(entries, tl.load(plane + 2 * step, mask=own, other=0), out_dtype=tl.int32)
                fourth_digit = tl.dot(entries, tl.load(plane + 3 * step, mask=own, other=0), out_dtype=tl.int32)
            else:
                first_digit = tl.zeros((FEATURES, VECTORS), dtype=tl.int32)
                second_digit = tl.zeros((FEATURES, VECTORS), dtype=tl.int32)
                third_digit = tl.zeros((FEATURES, VECTORS), dtype=tl.int32)
                fourth_digit = tl.zeros((FEATURES, VECTORS), dtype=tl.int32)
                for first in range(start // 16 * 16, stop, ROWS):
                    rows = tl.multiple_of(first, 16) + tl.arange(0, ROWS)
                    entries = tl.load(
                        x + positions[:, None] * pitch + rows[None, :],
                        mask=inside[:, None] & (rows < pitch)[None, :],
                        other=0,
                    )
                    own = ((rows >= start) & (rows < stop))[:, None]
                    plane = planes + vector[None, :] * n_rows + rows[:, None]
                    first_digit += tl.dot(entries, tl.load(plane, mask=own, other=0), out_dtype=tl.int32)
                    second_digit += tl.dot(entries, tl.load(plane + step, mask=own, other=0), out_dtype=tl.int32)
                    third_digit += tl.dot(entries, tl.load(plane + 2 * step, mask=own, other=0), out_dtype=tl.int32)
                    fourth_digit += tl.dot(entries, tl.load(plane + 3 * step, mask=own, other=0), out_dtype=tl.int32)
            high = first_digit.to(tl.float64) * 128.0 + second_digit.to(tl.float64)
            low = third_digit.to(tl.float64) * 128.0 + fourth_digit.to(tl.float64)
            product = (high * 16384.0 + low) * tl.load(units + t * VECTORS + vector)[None, :]
            square += product * product
        target = out + vector[None, :].to(tl.int64) * count + positions[:, None]
        tl.store(target, tl.sqrt(square), mask=inside[:, None])

    return triton, segments, digits


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
    lengths: bool = False,
) -> torch.Tensor:
    """See `passes.segment_products`."""
    triton, segments, _ = _kernels()
    count = int(x.shape[0]) if columns is None else len(columns)
    shape = (len(vectors), count) if lengths else (len(vectors), count, len(offsets) - 1)
    out = torch.empty(shape, dtype=torch.float64, device=x.device)
    rows = min(max(triton.next_power_of_2(int(np.max(np.diff(offsets)))), 32), 256)
    short = rows <= 64
    starts = offsets[:-1] // 16 * 16
    ahead = _AHEAD if lengths and not squares and int(np.max(offsets[1:] - starts)) <= rows else 0
    features = (_TILE // 2 if short else _TILE) // rows
    with torch.cuda.device(x.device):
        segments[(triton.cdiv(count, features), len(vectors))](
            x, x.stride(0), x if columns is None else columns, count, vectors, vectors.stride(0), cut, len(offsets) - 1,
            out, CHOSEN=columns is not None, SQUARES=squares, LENGTHS=lengths, AHEAD=ahead, FEATURES=features,
            ROWS=rows,
            num_warps=2 if short else 4,
        )  # fmt: skip
    return out


def digit_lengths(
    x: torch.Tensor, planes: torch.Tensor, units: torch.Tensor, offsets: Array, cut: torch.Tensor
) -> torch.Tensor:
    """See `digits.lengths`; of all vectors of the planes."""
    triton, _, digits = _kernels()
    vectors, n_rows = planes.shape[1:]
    out = torch.empty((vectors, len(x)), dtype=torch.float64, device=x.device)
    span = int(np.max(offsets[1:] - offsets[:-1] // 16 * 16))
    one = span <= 128
    with torch.cuda.device(x.device):
        digits[(triton.cdiv(len(x), _DIGIT_FEATURES),)](
            x, x.stride(0), len(x), planes, n_rows, units, cut, len(cut) - 1, out,
            ONE=one, FEATURES=_DIGIT_FEATURES, ROWS=max(64, triton.next_power_of_2(span)) if one else 64,
            VECTORS=vectors, num_warps=4,
        )  # fmt: skip
    return out
