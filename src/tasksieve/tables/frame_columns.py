"""Columns of data frames and of Arrow's tables."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from .frames import need
from .number_words import beyond_doubles
from .table import CodedColumn, Column, Table


def from_frame(frame: Any, source: str, *, coded: bool = False) -> Table:
    """A pandas data frame as a `Table`; words may be known by their codes."""
    read = _coded if coded else from_series
    return Table(source, len(frame), {str(name): read(series) for name, series in frame.items()})


def _coded(series: Any) -> Column:
    if type(series.dtype).__name__ == "StringDtype":  # else a column of objects may hold anything
        codes, words = series.factorize()
        if np.any(codes >= 0):
            return CodedColumn(np.asarray(words, dtype=object), codes.astype(np.int64, copy=False))
    return from_series(series)


def from_series(series: Any) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind == "b":
            return Column("number", series.to_numpy().view(np.uint8))
        if dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize >= 4):
            return Column("number", series.to_numpy())
        if dtype.kind == "f":
            return Column("number", series.to_numpy().astype(np.float32))
        if dtype.kind == "M":
            return Column("date", series.to_numpy().astype("datetime64[us]"))
        if dtype.kind != "O":
            return Column("other", series.to_numpy())
    elif getattr(dtype, "kind", "O") in "biuf" and hasattr(dtype, "numpy_dtype"):  # with a mask for missing values
        return Column("number", series.to_numpy(dtype=np.float64, na_value=np.nan))
    pandas = need("pandas")
    kind = type(dtype).__name__
    if kind == "DatetimeTZDtype":  # the time that the clock on the wall shows
        return Column("date", series.dt.tz_localize(None).to_numpy().astype("datetime64[us]"))
    if kind == "PeriodDtype":
        return Column("date", series.dt.to_timestamp().to_numpy().astype("datetime64[us]"))
    if kind == "IntervalDtype":
        return Column("other", series.to_numpy())
    values = series.astype(object).to_numpy(copy=True)
    try:
        missing = np.asarray(pandas.isna(values), dtype=bool)
        kinds = {type(value) for value in values[~missing]}
    except (TypeError, ValueError):
        return Column("other", values)
    if kinds and all(issubclass(kind, datetime.date) for kind in kinds):
        return dates_column(values, missing)
    if not kinds <= {str, bool, int, float, np.bool_} and not all(
        issubclass(kind, np.number) for kind in kinds - {str}
    ):
        return Column("other", values)
    if kinds and str not in kinds and not kinds & {bool, np.bool_}:
        beyond = next((one for one in values[~missing] if isinstance(one, int) and abs(one) > 2**53), None)
        if beyond is not None:
            words = [None if gone else str(one) for one, gone in zip(values, missing, strict=True)]
            return Column("text", np.array(words, dtype=object), refusal=beyond_doubles(beyond))
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = values[~missing].astype(np.float64)
        return Column("number", numbers)
    if len(missing) and missing.all():  # nothing at all: numbers, all of them missing
        return Column("number", np.full(len(values), np.nan))
    values[missing] = None
    if kinds != {str}:
        values[~missing] = [str(value) for value in values[~missing]]
    ordered = dtype.categories.astype(str).tolist() if getattr(dtype, "ordered", None) is True else ()
    return Column("text", values, ordered=tuple(ordered))


def dates_column(values: np.ndarray, missing: np.ndarray) -> Column:
    """Python's dates and times, on the wall's clock."""
    dates = np.full(len(values), "NaT", dtype="datetime64[us]")
    dates[~missing] = [
        np.datetime64(value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value, "us")
        for value in values[~missing].tolist()
    ]
    return Column("date", dates)


# --- tables of Arrow: numbers are not copied, words are known by their codes ----------------------------------------


def from_arrow(table: Any, source: str) -> Table:
    """As `from_frame` of the same table in pandas."""
    types = need("pyarrow.types")
    named = zip(table.column_names, table.columns, strict=True)
    return Table(source, table.num_rows, {name: _arrow_column(column, types) for name, column in named})


def _arrow_column(column: Any, types: Any) -> Column:
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
