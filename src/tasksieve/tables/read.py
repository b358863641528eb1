"""Readers: CSV, Parquet, Arrow, npz and libsvm files as a `Table`.

A file may be anything: random bytes, half a file, lies about sizes. Whatever the libraries underneath say to that
becomes a `TableError`.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .npz import read_arrays
from .table import Column, Table, TableError

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow",
    ".feather": "arrow", ".npz": "npz", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
FORMATS = ("csv", "parquet", "arrow", "npz", "libsvm")
PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# A feature number beyond this is taken for a mistake: names are kept, and coefficients are dense.
LARGEST_INDEX = 1 << 24


def need(module: str) -> Any:
    """An optional library, or an error that says which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise TableError(
            f"reading tables needs {module.partition('.')[0]}: pip install 'tasksieve[files]'"
        ) from error


def table_format(path: str | os.PathLike[str]) -> str:
    """The format of a file, from its name."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    while endings and endings[-1] in PACKED:
        endings.pop()
    found = ENDINGS.get(endings[-1]) if endings else None
    if found is None:
        raise TableError(
            f"{path}: the format cannot be told from the name; known endings are {', '.join(ENDINGS)}. "
            f"Say it with --format ({', '.join(FORMATS)})."
        )
    return found


def read_table(
    path: str | os.PathLike[str], format: str | None = None, separator: str | None = None
) -> Table:
    """Read a whole file.

    Parameters
    ----------
    path : path
    format : {"csv", "parquet", "arrow", "npz", "libsvm"}, optional
        By default from the name of the file; CSV may be compressed (.gz, .bz2, .xz).
    separator : str, optional
        Of a CSV file: a comma by default, a tab where the name ends in .tsv.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        For a file that is missing, empty, broken or of another format.
    """
    path = Path(path)
    format = format or table_format(path)
    if format not in FORMATS:
        raise TableError(f"format must be one of {', '.join(FORMATS)}; got {format!r}")
    if not path.is_file():
        raise TableError(f"{path} is a folder, not a file" if path.is_dir() else f"there is no file {path}")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    readers: dict[str, Callable[[Path], Table]] = {
        "csv": lambda path: read_csv(path, separator),
        "parquet": read_parquet,
        "arrow": read_arrow,
        "npz": read_npz,
        "libsvm": read_libsvm,
    }
    if separator is not None and format != "csv":
        raise TableError(f"a separator is for CSV files; {path} is read as {format}")
    table = readers[format](path)
    if table.n_rows == 0:
        raise TableError(f"{path} has no rows")
    return table


@contextmanager
def broken_file(path: Path, format: str) -> Iterator[None]:
    """Whatever a parser raises becomes one kind of error, with the file's name and the parser's first line."""
    try:
        yield
    except (TableError, PermissionError):
        raise
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not UTF-8 text (byte {error.start}): is it really {format}?") from None
    except Exception as error:
        lines = str(error).strip().splitlines()
        said = lines[0][:300] if lines else type(error).__name__
        raise TableError(f"{path} cannot be read as {format}: {said}") from None


# --- text and Arrow ----------------------------------------------------------------------------------------------


def csv_separator(path: str | os.PathLike[str], separator: str | None) -> str:
    if separator is not None:
        separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if len(separator) != 1:
            raise TableError(f"the separator must be one character (or 'tab'), got {separator!r}")
        return separator
    return "\t" if ".tsv" in str(path).lower() else ","


def check_header(names: list[Any], source: str) -> list[str]:
    """Column names as strings, each once."""
    words = [str(name) for name in names]
    seen: set[str] = set()
    for k, word in enumerate(words):
        if not word.strip():
            raise TableError(f"{source}: column {k + 1} has no name in the header")
        if word in seen:
            raise TableError(f"{source}: column {word!r} occurs twice in the header")
        seen.add(word)
    if len(words) == 1 and (other := next((sign for sign in ";\t|" if sign in words[0]), None)):
        raise TableError(f"{source}: the header is one column, {words[0][:60]!r}; try --separator '{other}'")
    return words


def read_csv(path: Path, separator: str | None = None) -> Table:
    pandas = need("pandas")
    sep = csv_separator(path, separator)
    with broken_file(path, "csv"):
        names = check_header(read_header(path, sep), str(path))
        frame = pandas.read_csv(path, sep=sep, low_memory=False)
        check_width(frame, len(names), str(path))
        frame.columns = names
        return from_frame(frame, str(path))


def read_header(path: Path, separator: str) -> list[str]:
    """The first record of a CSV file, unpacked where it must be."""
    with PACKED.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=separator), [])


def check_width(frame: Any, width: int, source: str) -> None:
    """pandas takes surplus fields at the start of every row for an index: here they are a mistake."""
    if frame.shape[1] != width or type(frame.index).__name__ != "RangeIndex":
        raise TableError(f"{source}: rows have more fields than the header has names ({width})")


def read_parquet(path: Path) -> Table:
    parquet = need("pyarrow.parquet")
    need("pandas")
    with broken_file(path, "parquet"):
        table = parquet.read_table(path, use_threads=False)
        return from_arrow(table, str(path))


def read_arrow(path: Path) -> Table:
    feather = need("pyarrow.feather")
    need("pandas")
    with broken_file(path, "arrow"):
        table = feather.read_table(path, memory_map=False, use_threads=False)
        return from_arrow(table, str(path))


def from_arrow(table: Any, source: str) -> Table:
    check_header(list(table.column_names), source)
    table.validate(full=True)  # a crafted file may point outside its buffers
    return from_frame(table.to_pandas(ignore_metadata=True), source)


def from_frame(frame: Any, source: str) -> Table:
    """A pandas data frame as a `Table`."""
    columns = {str(name): from_series(series) for name, series in frame.items()}
    return Table(source, len(frame), columns)


def from_series(series: Any) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind == "b":
            return Column("number", series.to_numpy().view(np.uint8))
        if dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize >= 4):
            return Column("number", series.to_numpy())
        if dtype.kind == "f":
            return Column("number", series.to_numpy().astype(np.float32))
        if dtype.kind != "O":
            return Column("other", series.to_numpy())
    elif getattr(dtype, "kind", "O") in "biuf" and hasattr(
        dtype, "numpy_dtype"
    ):  # with a mask for missing values
        return Column("number", series.to_numpy(dtype=np.float64, na_value=np.nan))
    pandas = need("pandas")
    if type(dtype).__name__ in ("DatetimeTZDtype", "PeriodDtype", "IntervalDtype"):
        return Column("other", series.to_numpy())
    values = series.astype(object).to_numpy(copy=True)
    try:
        missing = np.asarray(pandas.isna(values), dtype=bool)
        kinds = {type(value) for value in values[~missing]}
    except (TypeError, ValueError):
        return Column("other", values)
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
    values[~missing] = [str(value) for value in values[~missing]]
    return Column("text", values)


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
        data, indices, indptr, shape = (
            arrays.pop(f"X_{part}") for part in ("data", "indices", "indptr", "shape")
        )
    except KeyError as error:
        raise TableError(
            f"{source}: a sparse X needs X_data, X_indices, X_indptr and X_shape; {error} is missing"
        ) from None
    try:
        size = tuple(int(n) for n in shape)
        if (
            len(size) != 2
            or indices.dtype.kind not in "iu"
            or indptr.dtype.kind not in "iu"
            or data.dtype.kind not in "biuf"
        ):
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
    from sklearn.datasets import load_svmlight_file

    with broken_file(path, "libsvm"):
        matrix, label, qid = load_svmlight_file(str(path), zero_based=True, query_id=True)
        if matrix.shape[1] >= LARGEST_INDEX:
            raise TableError(f"{path}: feature number {matrix.shape[1] - 1} is too large")
        matrix.check_format(full_check=True)
    columns = {"label": Column("number", label)}
    if len(qid) == len(label) and np.any(qid != 0):
        columns["qid"] = Column("number", np.asarray(qid, dtype=np.int64))
    first = (
        0 if matrix.shape[1] and matrix[:, [0]].nnz else min(1, matrix.shape[1])
    )  # most files count from 1
    names = [f"f{j}" for j in range(first, matrix.shape[1])]
    return Table(str(path), matrix.shape[0], columns, matrix[:, first:], names)
