"""Triton kernels for a GPU; `passes` has their twins in torch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

_TILE = 4096  # entries that one program holds in double precision
_DIGIT_FEATURES = 256  # of a program that multiplies digits
_LIST_BLOCK = 1024  # features of a program that lists those that reach a level
_MOST_ROWS = 256  # of a matrix whose columns one program centres
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
                # digits of the task's tile, zeros beside its rows: without a mask they are read 16 at a time
                plane = planes + t * (4 * VECTORS * ROWS) + vector[None, :] * ROWS + tl.arange(0, ROWS)[:, None]
                first_digit = tl.dot(entries, tl.load(plane), out_dtype=tl.int32)
                second_digit = tl.dot(entries, tl.load(plane + VECTORS * ROWS), out_dtype=tl.int32)
                third_digit = tl.dot(entries, tl.load(plane + 2 * VECTORS * ROWS), out_dtype=tl.int32)
                fourth_digit = tl.dot(entries, tl.load(plane + 3 * VECTORS * ROWS), out_dtype=tl.int32)
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
            if ONE:  # so few rows that two digits fit into 32 bits
                high = (first_digit * 128 + second_digit).to(tl.float64)
                low = (third_digit * 128 + fourth_digit).to(tl.float64)
            else:
                high = first_digit.to(tl.float64) * 128.0 + second_digit.to(tl.float64)
                low = third_digit.to(tl.float64) * 128.0 + fourth_digit.to(tl.float64)
            product = (high * 16384.0 + low) * tl.load(units + t * VECTORS + vector)[None, :]
            square += product * product
        target = out + vector[None, :].to(tl.int64) * count + positions[:, None]
        tl.store(target, tl.sqrt(square), mask=inside[:, None])

    @triton.jit
    def listing(  # type: ignore[no-untyped-def]
        lengths, count, lost, group, reach, levels, out, room,
        BLOCK: tl.constexpr,
    ):  # fmt: skip
        p = tl.program_id(1)
        features = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = features < count
        found = tl.load(lengths + p.to(tl.int64) * count + features, mask=inside, other=0.0)
        found = found / tl.load(group + features, mask=inside, other=1.0)
        own = tl.load(reach + features, mask=inside, other=0.0)
        found += tl.load(lost + p) * own
        hit = (inside & (found >= tl.load(levels + p))).to(tl.int32)
        total = tl.sum(hit, axis=0)
        into = out + p.to(tl.int64) * 3 * (room + 1)
        if total > 0:
            # a number in double precision counts exactly
            first = tl.atomic_add(into, total.to(tl.float64)).to(tl.int32)
            place = first + tl.cumsum(hit, axis=0)
            kept = (hit > 0) & (place <= room)
            tl.store(into + place, features.to(tl.float64), mask=kept)
            tl.store(into + room + 1 + place, found, mask=kept)
            tl.store(into + 2 * (room + 1) + place, own, mask=kept)

    @triton.jit
    def planes(  # type: ignore[no-untyped-def]
        vectors, count, n_rows, cut, digits_out, pitch, units, PARTS: tl.constexpr, ROWS: tl.constexpr,
        VECTORS: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        t, v = tl.program_id(0), tl.program_id(1)
        start, stop = tl.load(cut + t), tl.load(cut + t + 1)
        tops = tl.zeros((ROWS,), dtype=tl.float64) + 1e-250
        for first in range(start, stop, ROWS):
            rows = first + tl.arange(0, ROWS)
            own = tl.load(vectors + v * n_rows + rows, mask=(rows < stop) & (v < count), other=0.0)
            tops = tl.maximum(tops, tl.abs(own))
        unit = tl.max(tops, axis=0) / PARTS
        tl.store(units + t * VECTORS + v, tl.where(v < count, unit, 0.0))
        for first in range(start, stop, ROWS):
            rows = first + tl.arange(0, ROWS)
            inside = rows < stop
            own = tl.load(vectors + v * n_rows + rows, mask=inside & (v < count), other=0.0)
            rest = tl.floor(own / unit + 0.5)
            for k in tl.static_range(4):
                digit = tl.floor(rest / (1 << (21 - 7 * k)) + 0.5)
                rest -= digit * (1 << (21 - 7 * k))
                if TILE > 0:  # task by task
                    position = ((t * 4 + k) * VECTORS + v) * TILE + rows - start // 16 * 16
                else:
                    position = (k * VECTORS + v) * pitch + rows
                tl.store(digits_out + position, digit.to(tl.int8), mask=inside)

    @triton.jit
    def columns_of(  # type: ignore[no-untyped-def]
        x, pitch, count, features, width, starts, n, root, basis, scale, scales, matrices, out, loadings, lengths,
        DEPTH: tl.constexpr, SCALED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    ):  # fmt: skip
        cell = tl.program_id(0).to(tl.int64)  # a matrix of a problem
        t = cell % matrices
        w = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        known = w < width
        feature = tl.load(features + cell // matrices * width + w, mask=known, other=count).to(tl.int64)
        inside = feature < count
        i = tl.arange(0, ROWS)
        rows = tl.load(starts + t * n) + i
        real = (i < n) & (rows < pitch)
        entries = tl.load(x + feature[None, :] * pitch + rows[:, None], mask=real[:, None] & inside[None, :], other=0)
        column = entries.to(tl.float64) * tl.load(root + cell * n + i, mask=i < n, other=0.0)[:, None]
        if DEPTH:
            own = tl.load(basis + cell * n + i, mask=i < n, other=0.0)[:, None]
            first = tl.sum(column * own, axis=0)
            column -= own * first[None, :]
            second = tl.sum(column * own, axis=0)  # what rounding leaves of a large mean
            column -= own * second[None, :]
            tl.store(loadings + cell * width + w, first + second, mask=known)
        if SCALED:
            column /= tl.load(scale + feature * scales + t % scales, mask=inside, other=1.0)[None, :]
        tl.store(lengths + cell * width + w, tl.sqrt(tl.sum(column * column, axis=0)), mask=known)
        tl.store(out + (cell * n + i[:, None]) * width + w[None, :], column, mask=(i < n)[:, None] & known[None, :])

    return triton, segments, digits, listing, planes, columns_of


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
    triton, segments, *_ = _kernels()
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
    x: torch.Tensor, planes: torch.Tensor, units: torch.Tensor, cut: torch.Tensor, tile: int
) -> torch.Tensor:
    """See `digits.lengths`; of all vectors of the planes."""
    triton, _, digits, *_ = _kernels()
    vectors, n_rows = planes.shape[-2:]
    out = torch.empty((vectors, len(x)), dtype=torch.float64, device=x.device)
    with torch.cuda.device(x.device):
        digits[(triton.cdiv(len(x), _DIGIT_FEATURES),)](
            x, x.stride(0), len(x), planes, n_rows, units, cut, len(cut) - 1, out,
            ONE=tile > 0, FEATURES=_DIGIT_FEATURES, ROWS=tile or 64, VECTORS=vectors, num_warps=4,
        )  # fmt: skip
    return out


def digit_tile(offsets: Array) -> int:
    """Rows of a tile that holds any task, from where 16 bytes can be read at once; 0 where tasks are too long."""
    span = int(np.max(offsets[1:] - offsets[:-1] // 16 * 16))
    return max(64, 1 << (span - 1).bit_length()) if span <= 128 else 0


def digit_planes(
    vectors: torch.Tensor, offsets: Array, cut: torch.Tensor, parts: float, most: int, pitch: int, tile: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Digits and units of `digits.planes_of`, of at most so many vectors; with a `tile` by tasks, (tasks, 4, most,
    tile)."""
    triton, *_, planes, _ = _kernels()
    n_tasks, n_rows = len(offsets) - 1, vectors.shape[1]
    shape = (n_tasks, 4, most, tile) if tile else (4, most, pitch)
    out = torch.zeros(shape, dtype=torch.int8, device=vectors.device)
    units = torch.empty((n_tasks, most), dtype=torch.float64, device=vectors.device)
    rows = min(max(triton.next_power_of_2(int(np.max(np.diff(offsets)))), 32), 1024)
    with torch.cuda.device(vectors.device):
        planes[(n_tasks, most)](
            vectors, len(vectors), n_rows, cut, out, pitch, units, PARTS=parts, ROWS=rows, VECTORS=most, TILE=tile,
            num_warps=1,
        )  # fmt: skip
    return out, units


def reaching(
    lengths: torch.Tensor, lost: torch.Tensor, group: torch.Tensor, reach: torch.Tensor, levels: torch.Tensor, room: int
) -> torch.Tensor:
    """See `lists.reaching`."""
    triton, *_, listing, _, _ = _kernels()
    problems, count = lengths.shape
    out = torch.zeros((problems, 3, room + 1), dtype=torch.float64, device=lengths.device)
    with torch.cuda.device(lengths.device):
        listing[(triton.cdiv(count, _LIST_BLOCK), problems)](
            lengths, count, lost, group, reach, levels, out, room, BLOCK=_LIST_BLOCK, num_warps=4,
        )  # fmt: skip
    return out


def fuses_columns(x: torch.Tensor, n: int, depth: int) -> bool:
    """Whether `centred_columns` takes matrices of so many rows, and a basis of so many columns."""
    return usable(x) and n <= _MOST_ROWS and depth <= 1


def centred_columns(
    x: torch.Tensor,
    features: torch.Tensor,
    starts: torch.Tensor,
    root: torch.Tensor,
    basis: torch.Tensor,
    scale: torch.Tensor | None,
    out: torch.Tensor,
    loadings: torch.Tensor,
    lengths: torch.Tensor,
) -> None:
    """Columns of working sets (P, width), whose rows begin at ``starts[:, 0]``, weighted, freed of what a basis
    explains, scaled: (P, matrices, n, width); what was explained of them, and their lengths."""
    triton, *_, columns_of = _kernels()
    problems, matrices, n, width = out.shape
    rows = max(triton.next_power_of_2(n), 16)
    block = max(16, 2048 // rows)
    with torch.cuda.device(x.device):
        columns_of[(problems * matrices, triton.cdiv(width, block))](
            x, x.stride(0), len(x), features, width, starts, n, root, basis, x if scale is None else scale,
            1 if scale is None else scale.shape[1], matrices, out, loadings, lengths,
            DEPTH=basis.shape[3] > 0, SCALED=scale is not None, ROWS=rows, COLUMNS=block, num_warps=4,
        )  # fmt: skip
