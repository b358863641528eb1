"""Arrow's tables as ours: numbers are not copied, words are known by their codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frames import need
from .read import from_series
from .table import CodedColumn, Column, Table


def from_arrow(table: Any, source: str) -> Table:
    """As `from_frame` of the same table in pandas.

    - `source`: Name of the file, for messages.
    """
    types = need("pyarrow.types")
    columns = {name: _column(column, types) for name, column in zip(table.column_names, table.columns, strict=True)}
    return Table(source, table.num_rows, columns)


def _column(column: Any, types: Any) -> Column:
    kind = column.type
    if (types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind)) and not column.null_count:
        return Column("number", column.to_numpy())
    words = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(words) or types.is_large_string(words):
        coded = (column if types.is_dictionary(kind) else column.dictionary_encode()).unify_dictionaries()
        coded = coded.combine_chunks()
        if not coded.dictionary.null_count:
            codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            if not len(codes) or np.any(codes >= 0):
                return CodedColumn(coded.dictionary.to_numpy(zero_copy_only=False), codes)
    return from_series(column.to_pandas())
