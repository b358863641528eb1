"""Parquet and Arrow files of very many columns, some columns at a time into one matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .frames import broken_file, check_header, need
from .table import UNNAMED, Array
from .wide import LARGEST_WHOLE, WIDE

# Columns that are read at a time: a file of Arrow's takes kilobytes for each that is open.
AT_ONCE = 8192

NUMBERS: dict[str, np.dtype[Any]] = {
    "double": np.dtype(np.float64), "float": np.dtype(np.float32),
    **{kind: np.dtype(kind) for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip
# Types of which a whole matrix may consist (`encode.KEPT`).
KEPT = {"double", "float", "int8", "uint8"}

Wide = tuple[list[str], Array, Array, Any]


def read_wide_arrow(path: Path, format: str) -> Wide | None:
    """Names, numbers, which of them are whole, and a data frame of the other columns (None where there are none).

    None for a file of few columns, or few columns of numbers.

    - `format`: {"parquet", "arrow"}
    """
    with broken_file(str(path), format):
        if format == "parquet":
            file = need("pyarrow.parquet").ParquetFile(path, pre_buffer=False)
            n_columns, schema = file.metadata.num_columns, file.schema_arrow
            if n_columns <= WIDE or n_columns != len(schema):  # a column of columns is none of numbers
                return None
            named = schema.names
            return _read(path, schema, lambda some: _named(file.read([named[k] for k in some], use_threads=False)))
        with need("pyarrow").OSFile(str(path), "rb") as opened:
            if len(need("pyarrow.ipc").open_file(opened).schema) <= WIDE:
                return None
        table = need("pyarrow.feather").read_table(path, memory_map=False, use_threads=False)
        return _read(path, table.schema, lambda some: _named(table.select(some)))


def _read(path: Path, schema: Any, read: Callable[[list[int]], Any]) -> Wide | None:
    names = check_header(list(schema.names), str(path))
    kinds = [str(kind) for kind in schema.types]
    numbers = [k for k, kind in enumerate(kinds) if kind in NUMBERS]
    if len(numbers) <= WIDE:
        return None
    plain = {kinds[k] for k in numbers}
    block: Array = np.empty((0, 0))
    whole = np.zeros(len(names), dtype=bool)
    apart = set(range(len(names))) - set(numbers)
    for low in range(0, len(numbers), AT_ONCE):
        some = numbers[low : low + AT_ONCE]
        table = read(some)
        table.validate(full=True)  # a crafted file may point outside its buffers
        if not table.num_rows:
            return None
        [batch] = table.combine_chunks().to_batches()
        if not low:
            kept = next(iter(plain)) if len(plain) == 1 and plain <= KEPT else "double"
            block = np.empty((table.num_rows, len(names)), dtype=NUMBERS[kept], order="F")
        for kind in sorted({kinds[k] for k in some}):  # one type at a time: nothing is rounded
            own = [i for i, k in enumerate(some) if kinds[k] == kind]
            positions = np.array(some)[own]
            values = _matrix(batch.select(own))
            if values.dtype.kind == "f" and block.dtype.kind != "f":  # a value is missing
                block = block.astype(np.float64)
            if NUMBERS[kind].kind in "iu":
                whole[positions] = ~np.isnan(values).any(axis=0) if values.dtype.kind == "f" else True
                apart.update(positions[(np.abs(values.astype(np.float64)) >= LARGEST_WHOLE).any(axis=0)].tolist())
            block[:, positions] = values
    whole[list(apart)] = False
    others = None
    if apart:
        table = read(sorted(apart))
        table.validate(full=True)
        others = table.to_pandas(ignore_metadata=True)
    return names, block, whole, others


def _named(table: Any) -> Any:
    """With names as `check_header` has them."""
    return table.rename_columns([name.strip() or UNNAMED for name in table.column_names])


def _matrix(batch: Any) -> Array:
    """Columns of one type side by side, whole numbers as floats where one is missing."""
    try:
        return np.asarray(batch.to_tensor(row_major=False).to_numpy())
    except need("pyarrow").ArrowException:
        return np.asarray(batch.to_tensor(null_to_nan=True, row_major=False).to_numpy())
