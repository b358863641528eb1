"""Tables written as CSV or Parquet, and arrays as npz: a file is the old one or the new one, never a part."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import write_atomically, write_bytes
from .frames import need
from .table import TableError

PARQUET = (".parquet", ".pq")
WRITTEN = (".csv", *PARQUET)


def table_bytes(columns: Mapping[str, Any]) -> bytes:
    """Columns of the same length as a CSV file; floats are written so that they can be read back exactly."""
    lists = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns.values()]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([list(columns), *zip(*lists, strict=True)])
    return text.getvalue().encode("utf-8", "backslashreplace")


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns of the same length (lists or arrays) in the format that the ending says."""
    ending = path.suffix.lower()
    if ending in PARQUET:
        pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
        # an empty list says nothing about its type: no words
        empty = [key for key, values in columns.items() if not len(values) and not isinstance(values, np.ndarray)]
        types = dict.fromkeys(empty, pyarrow.string())
        table = pyarrow.table({key: pyarrow.array(columns[key], type=types.get(key)) for key in columns})
        write_atomically(path, lambda file: parquet.write_table(table, file))
    elif ending == ".csv":
        write_bytes(path, table_bytes(columns))
    else:
        raise TableError(f"{path}: tables are written as {', '.join(WRITTEN)}")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as an npz file, without compression."""
    write_atomically(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
