"""How many rows and columns a table on disk has, estimated without reading it."""

from __future__ import annotations

import itertools
from pathlib import Path

from .frames import PACKED, csv_separator, need, read_header

_FIRST_LINES = 1000  # of a CSV file: as long as the others, on the average
_UNPACKED = 5.0  # times the size of a compressed file


def counted_size(path: str, format: str, separator: str | None = None) -> tuple[int, int] | None:
    """Rows and columns; None where the file cannot be read: its reader raises.

    - `format` ({"csv", "parquet", "arrow"}): A Parquet file says how many rows it has. Of an Arrow file the first batch
      is taken for all of them, of a CSV file the first lines.
    """
    try:
        if format == "parquet":
            known = need("pyarrow.parquet").read_metadata(path)
            return known.num_rows, known.num_columns
        if format == "arrow":
            with need("pyarrow").OSFile(path, "rb") as opened:
                file = need("pyarrow.ipc").open_file(opened)
                batches = file.num_record_batches
                return (file.get_batch(0).num_rows if batches else 0) * batches, len(file.schema)
        size, ending = Path(path).stat().st_size, Path(path).suffix.lower()
        columns = len(read_header(Path(path), csv_separator(path, separator)))
        with PACKED.get(ending, open)(path, "rb") as lines:
            next(lines)  # the header
            first = [len(line) for line in itertools.islice(lines, _FIRST_LINES)]
    except Exception:
        return None
    per_row = sum(first) / max(1, len(first))
    return int(size * (_UNPACKED if ending in PACKED else 1.0) / per_row) if first else 0, columns
