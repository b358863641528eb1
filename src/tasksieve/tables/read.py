"""Whole files, CSV, Parquet, Arrow, npz and libsvm, as a `Table`."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .frames import (
    FORMATS,
    broken_file,
    check_header,
    csv_separator,
    need,
    read_frames,
    read_header,
    read_libsvm_rows,
    table_format,
)
from .npz import read_arrays
from .table import CodedColumn, Column, Table, TableError
from .wide import WIDE, WideColumns
from .wide_arrow import read_wide_arrow
from .wide_csv import NotPlain, read_odd_columns, read_wide_csv

# A feature number beyond this is taken for a mistake: names are kept, and coefficients are dense.
LARGEST_INDEX = 1 << 24


def read_table(
    path: str | os.PathLike[str], format: str | None = None, separator: str | None = None
) -> Table:
    """Read a whole file; a `TableError` for one that is missing, empty, broken or of another format.

    - `format` ({"csv", "parquet", "arrow", "npz", "libsvm"}): By default from the name of the file; CSV may be
      compressed (.gz, .bz2, .xz).
    - `separator`: Of a CSV file: a comma by default, a tab where the name ends in .tsv.
    """
    path = Path(path)
    format = format or table_format(path)
    if format not in FORMATS:
        raise TableError(f"format must be one of {', '.join(FORMATS)}; got {format!r}")
    if not path.is_file():
        raise TableError(f"{path} is a folder, not a file" if path.is_dir() else f"there is no file {path}")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    if separator is not None and format != "csv":
        raise TableError(f"a separator is for CSV files; {path} is read as {format}")
    if format == "npz":
        table = read_npz(path)
    elif format == "libsvm":
        table = read_libsvm(path)
    else:
        wide = _read_wide(path, format, separator)
        if wide is None:
            [frame] = read_frames(path, format, separator=separator)
            wide = from_frame(frame, str(path))
        table = wide
    if table.n_rows == 0:
        raise TableError(f"{path} has no rows")
    return table


def _read_wide(path: Path, format: str, separator: str | None) -> Table | None:
    """A file of very many columns; None where it is narrow, or hardly any of them are numbers."""
    if format == "csv":
        sign = csv_separator(str(path), separator)
        with broken_file(str(path), format):
            header = read_header(path, sign)
        if len(header) <= WIDE:
            return None
        names = check_header(header, str(path))
        try:
            block, whole, odd = read_wide_csv(path, sign, len(names))
        except NotPlain:
            return None
        frame = read_odd_columns(path, sign, names, odd) if len(odd) else None
    else:
        found = read_wide_arrow(path, format)
        if found is None:
            return None
        names, block, whole, frame = found
    others = {} if frame is None else from_frame(frame, str(path)).columns
    return Table(str(path), len(block), WideColumns(names, block, whole, others))


# --- data frames -----------------------------------------------------------------------------------------------


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
        return _from_dates(values, missing)
    if not kinds <= {str, bool, int, float, np.bool_} and not all(
        issubclass(kind, np.number) for kind in kinds - {str}
    ):
        return Column("other", values)
    if kinds and str not in kinds and not kinds & {bool, np.bool_}:
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = values[~missing].astype(np.float64)
        return Column("number", numbers)
    if len(missing) and missing.all():  # nothing at all: numbers, all of them missing
        return Column("number", np.full(len(values), np.nan))
    values[missing] = None
    if kinds != {str}:
        values[~missing] = [str(value) for value in values[~missing]]
    return Column("text", values)


def _from_dates(values: np.ndarray, missing: np.ndarray) -> Column:
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


# --- matrices ----------------------------------------------------------------------------------------------------


def read_npz(path: Path) -> Table:
    """``X`` (n, d), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` (CSR); and arrays of n rows as columns.

    A 2-D array ``y`` gives columns ``y[0]``, ``y[1]``, ..., and the name ``y`` stands for all of them.
    ``feature_names`` names the columns of X, which are else ``x0``, ``x1``, ...
    """
    arrays = read_arrays(path)
    matrix = _sparse_from(arrays, str(path)) if "X_indptr" in arrays else arrays.pop("X", None)
    if matrix is None or matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TableError(
            f"{path}: a numeric array X of shape (rows, features) is needed (or X_data, X_indices, X_indptr, X_shape "
            f"of a sparse one); the file has {', '.join(sorted(arrays)) or 'nothing'}"
        )
    n_rows, n_features = matrix.shape
    names: Any = arrays.pop("feature_names", None)
    if names is None:
        names = [f"x{j}" for j in range(n_features)]
    elif names.shape != (n_features,) or names.dtype.kind != "U" or len(set(names.tolist())) < n_features:
        raise TableError(f"{path}: feature_names must be {n_features} different strings")
    else:
        names = names.tolist()
    columns: dict[str, Column] = {}
    groups: dict[str, list[str]] = {}
    for name, array in arrays.items():
        if array.ndim == 1 and len(array) == n_rows:
            columns[name] = _from_array(array)
        elif array.ndim == 2 and array.shape[0] == n_rows:
            groups[name] = [f"{name}[{t}]" for t in range(array.shape[1])]
            columns.update({column: _from_array(array[:, t].copy()) for t, column in enumerate(groups[name])})
    return Table(str(path), n_rows, columns, matrix, names, groups)


def _from_array(array: np.ndarray) -> Column:
    if array.dtype.kind in "US":
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "replace")
        values = array.astype(object)
        values[values == ""] = None
        return Column("text", values)
    return Column("number", array.view(np.uint8) if array.dtype.kind == "b" else array)


def _sparse_from(arrays: dict[str, np.ndarray], source: str) -> Any:
    try:
        data, indices, indptr, shape = (arrays.pop(f"X_{part}") for part in ("data", "indices", "indptr", "shape"))
    except KeyError as error:
        raise TableError(
            f"{source}: a sparse X needs X_data, X_indices, X_indptr and X_shape; {error} is missing"
        ) from None
    try:
        size = tuple(int(n) for n in shape)
        whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
        if len(size) != 2 or not whole or data.dtype.kind not in "biuf":
            raise ValueError("types or shape")
        if indptr.shape != (size[0] + 1,) or size[1] >= LARGEST_INDEX:
            raise ValueError("shape")
        matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise TableError(
            f"{source}: X_data, X_indices, X_indptr, X_shape are no sparse matrix: {error}"
        ) from None
    return matrix


def read_libsvm(path: Path) -> Table:
    """Columns ``label`` and, where rows have them, ``qid``; features are called ``f`` and their number in the file."""
    [(matrix, label, qid)] = read_libsvm_rows(path)
    if matrix.shape[1] >= LARGEST_INDEX:
        raise TableError(f"{path}: feature number {matrix.shape[1] - 1} is too large")
    columns = {"label": Column("number", label)}
    if len(qid) == len(label) and np.any(qid != 0):
        columns["qid"] = Column("number", np.asarray(qid, dtype=np.int64))
    # most files count from 1
    first = 0 if matrix.shape[1] and matrix[:, [0]].nnz else min(1, matrix.shape[1])
    names = [f"f{j}" for j in range(first, matrix.shape[1])]
    return Table(str(path), matrix.shape[0], columns, matrix[:, first:], names)
