"""The one reader of files of rows: CSV, Parquet and Arrow as data frames, libsvm as matrices, whole or in chunks.

A file may be anything: random bytes, half a file, lies about sizes. Whatever the libraries underneath say to that
becomes a `TableError`.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..optional import require
from .packed import PACKED, open_packed, unpacked_name
from .table import TableError, column_names
from .text_form import TextForm, find_form, for_pandas, open_text

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow",
    ".feather": "arrow", ".npz": "npz", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
    ".xlsx": "excel", ".xlsm": "excel", ".ods": "ods", ".dta": "stata", ".sav": "spss", ".zsav": "spss",
    ".sas7bdat": "sas", ".xpt": "xport",
}  # fmt: skip
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
# Tables that are not read, and how they become ones that are.
REMEDIES = {
    ".xls": "save it as .xlsx", ".xlsb": "save it as .xlsx", ".numbers": "export it as .xlsx or .csv",
    ".por": "save it as .sav", ".rds": "write it from R by write.csv or arrow::write_parquet",
    ".rdata": "write its table from R by write.csv or arrow::write_parquet",
    ".rda": "write its table from R by write.csv or arrow::write_parquet",
    ".pkl": "write it from pandas by to_parquet: pickles are never loaded, they could run code",
    ".pickle": "write it from pandas by to_parquet: pickles are never loaded, they could run code",
    ".json": "write it as .csv or .parquet", ".sqlite": "export the table as .csv", ".db": "export the table as .csv",
    ".mat": "write the matrices as .npz or .csv", ".h5": "write the table as .parquet or .npz",
}  # fmt: skip
TEXT = ("csv", "libsvm")  # formats that may be packed
# Of a Parquet file that is read in chunks: of each column so many bytes at a time, and nothing kept. Otherwise all
# groups of rows that were read stay in memory until the last one is.
BUFFER_BYTES = 1 << 20
_FIRST_LINES = 1000  # of a CSV file: as long as the others, on the average
_UNPACKED = 5.0  # times the size of a compressed file


def need(module: str) -> Any:
    """An optional library, or an error that says which extra brings it."""
    return require(module, "tables on disk need", "'tasksieve[files]'", TableError)


def table_format(path: str | os.PathLike[str]) -> str:
    """The format of a file, from its name."""
    name = unpacked_name(path)
    ending = Path(name).suffix.lower()
    found = ENDINGS.get(ending)
    if found is None:
        if ending in REMEDIES:
            raise TableError(f"{path}: {ending} files are not read: {REMEDIES[ending]}")
        raise TableError(
            f"{path}: the format cannot be inferred from the name; known endings are {', '.join(ENDINGS)}. "
            f"Give it with --format ({', '.join(FORMATS)})."
        )
    if found not in TEXT and name != os.path.basename(path):
        raise TableError(f"{path}: only files of text are read packed; unpack it")
    return found


class NotUtf8(TableError):
    """A file of text in another encoding."""


@contextmanager
def broken_file(name: str, format: str) -> Iterator[None]:
    """Whatever a parser raises becomes one kind of error, with the file's name and the parser's first line."""
    try:
        yield
    except (TableError, FileNotFoundError, PermissionError):
        raise
    except UnicodeDecodeError as error:
        raise NotUtf8(
            f"{name} is not {error.encoding.upper()} text (byte {error.start}): is it really {format}? --encoding "
            "names another encoding (cp1252 is that of Windows)"
        ) from None
    except Exception as error:
        lines = str(error).strip().splitlines()
        said = lines[0][:300] if lines else type(error).__name__
        if isinstance(error, MemoryError) or "out of memory" in said:
            raise TableError(
                f"{name}: not enough memory to read it ({said}). fit and path read CSV, Parquet and Arrow in chunks: "
                "--chunk-rows 100000, or fewer"
            ) from None
        raise TableError(f"{name} cannot be read as {format}: {said}") from None


def read_frames(
    source: Any,
    format: str,
    *,
    name: str | None = None,
    form: TextForm | None = None,
    chunk_rows: int | None = None,
    only: Sequence[str] | None = None,
    text: Sequence[str] = (),
) -> Iterator[Any]:
    """The rows of a file as pandas data frames.

    - `source`: path, or binary file (CSV)
    - `name`: For messages; by default the path.
    - `form`: How a CSV file is written; by default as `find_form` says, of a binary file as most are.
    - `chunk_rows`: Rows at a time; by default all.
    - `only`: Columns that are wanted: a Parquet file gives no others.
    - `text`: Columns of a CSV file whose cells are words, whatever they look like.
    """
    name = str(source) if name is None else name
    if format == "csv":
        if form is None:
            form = TextForm() if hasattr(source, "readline") else text_form(source)
        yield from _guarded(_csv_frames(source, name, form, chunk_rows, text), name, format)
        return
    need("pandas")
    tables = _arrow_tables(source, name, format, chunk_rows, only)
    yield from _guarded((table.to_pandas(ignore_metadata=True) for table in tables), name, format)


def read_arrow(
    source: Any, format: str, *, chunk_rows: int, only: Sequence[str] | None = None
) -> Iterator[Any]:
    """The rows of a Parquet or Arrow file as Arrow's tables, each of at most so many rows; as `read_frames`."""
    return _guarded(_arrow_tables(source, str(source), format, chunk_rows, only), str(source), format)


def _guarded(parts: Iterator[Any], name: str, format: str) -> Iterator[Any]:
    while True:
        with broken_file(name, format):
            part = next(parts, None)
        if part is None:
            return
        yield part


def text_form(path: str | os.PathLike[str], **said: str | None) -> TextForm:
    """`find_form`, with the errors of a reader."""
    with broken_file(str(path), "csv"):
        return find_form(path, **said)


def _csv_frames(
    source: Any, name: str, form: TextForm, chunk_rows: int | None, text: Sequence[str]
) -> Iterator[Any]:
    pandas = need("pandas")
    if hasattr(source, "readline"):
        line = source.readline().decode("utf-8-sig")
        header, first = next(csv.reader([line], delimiter=form.separator), []), None
    else:
        header, first = read_header(Path(source), form), 0
        source = for_pandas(source, form)
    names = check_header(header, name)
    words = [one for one in names if one in {*text, *form.words}]
    found = pandas.read_csv(
        source,
        sep=form.separator,
        decimal=form.decimal,
        header=first,
        names=names,
        chunksize=chunk_rows,
        low_memory=False,
        **_nearest(pandas),
        dtype=dict.fromkeys(words, str) or None,
    )
    with nullcontext([found]) if chunk_rows is None else found as frames:
        for frame in frames:
            # pandas takes surplus fields at the start of every row for an index: here they are a mistake
            if frame.shape[1] != len(names) or type(frame.index).__name__ != "RangeIndex":
                raise TableError(f"{name}: rows have more fields than the header has names ({len(names)})")
            yield frame.reset_index(drop=True)


def _nearest(pandas: Any) -> dict[str, Any]:
    """Options for numbers to be the nearest ones, as any other reader has them (digests are of these): from pandas 3.1
    on they are anyway."""
    version = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


def _arrow_tables(
    source: Any, name: str, format: str, chunk_rows: int | None, only: Sequence[str] | None
) -> Iterator[Any]:
    if format == "arrow" and chunk_rows is not None:
        tables = _arrow_batches(source, chunk_rows)
    elif format == "arrow":
        tables = iter([need("pyarrow.feather").read_table(source, memory_map=False, use_threads=False)])
    elif chunk_rows is None:
        wanted = None if only is None else _as_written(need("pyarrow.parquet").read_schema(source).names, only)
        tables = iter([need("pyarrow.parquet").read_table(source, columns=wanted, use_threads=False)])
    else:
        file = need("pyarrow.parquet").ParquetFile(source, pre_buffer=False, buffer_size=BUFFER_BYTES)
        check_header(list(file.schema_arrow.names), name)
        wanted = None if only is None else _as_written(file.schema_arrow.names, only)
        batches = file.iter_batches(batch_size=chunk_rows, columns=wanted, use_threads=False)
        tables = (need("pyarrow").Table.from_batches([batch]) for batch in batches)
    for table in tables:
        names = check_header(list(table.column_names), name)
        table.validate(full=True)  # a crafted file may point outside its buffers
        table = table if names == table.column_names else table.rename_columns(names)
        yield _exact_wholes(table)


def _exact_wholes(table: Any) -> Any:
    """Whole numbers of 64 bits that lack some are doubles for pandas: as words, where these would be rounded."""
    for k, field in enumerate(table.schema):
        if str(field.type) in ("int64", "uint64") and table.column(k).null_count:
            ends = need("pyarrow.compute").min_max(table.column(k)).as_py()
            if ends["max"] is not None and max(ends["max"], -ends["min"]) > 2**53:
                table = table.set_column(k, field.name, table.column(k).cast("string"))
    return table


def _as_written(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Names of columns as a file has them, with spaces at their ends."""
    written = dict(zip(column_names(names), names, strict=True))
    return [written.get(name, name) for name in wanted]


def _arrow_batches(source: Any, chunk_rows: int) -> Iterator[Any]:
    arrow, ipc = need("pyarrow"), need("pyarrow.ipc")
    with arrow.OSFile(str(source), "rb") as opened:
        file = ipc.open_file(opened)
        for k in range(file.num_record_batches):
            batch = file.get_batch(k)
            for low in range(0, batch.num_rows, chunk_rows):
                yield arrow.Table.from_batches([batch.slice(low, chunk_rows)])


def read_libsvm_rows(
    path: str | os.PathLike[str],
    *,
    chunk_rows: int | None = None,
    n_features: int | None = None,
    zero_based: bool = True,
) -> Iterator[tuple[Any, Any, Any]]:
    """Rows of a libsvm (svmlight) file, all or so many at a time: CSR matrix, labels, query ids."""
    from sklearn.datasets import load_svmlight_file

    def load(source: Any) -> tuple[Any, Any, Any]:
        with broken_file(str(path), "libsvm"):
            found = load_svmlight_file(source, n_features=n_features, zero_based=zero_based, query_id=True)
            found[0].check_format(full_check=True)
        return found

    if chunk_rows is None:
        if Path(path).suffix.lower() in PACKED:
            with open_packed(path) as file:
                yield load(file)
        else:
            yield load(str(path))
        return
    with open_packed(path) as file:
        while lines := list(itertools.islice(file, chunk_rows)):
            found = load(io.BytesIO(b"".join(lines)))
            if found[0].shape[0]:
                yield found


def counted_size(path: str, format: str, form: TextForm | None = None) -> tuple[int, int] | None:
    """How many rows and columns there are, estimated without reading them; None where the file cannot be read.

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
        form = form or find_form(path)
        columns = len(read_header(Path(path), form))
        with open_text(path, form) as lines:
            next(lines)  # the header
            first = [len(line) for line in itertools.islice(lines, _FIRST_LINES)]
    except Exception:
        return None
    per_row = sum(first) / max(1, len(first))
    return int(size * (_UNPACKED if ending in PACKED else 1.0) / per_row) if first else 0, columns


# --- CSV ---------------------------------------------------------------------------------------------------------


def check_header(names: list[Any], source: str) -> list[str]:
    """Column names as strings without spaces at their ends, each once. A first column without a name holds row names,
    as R and pandas write them."""
    words = column_names(names)
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


def read_header(path: Path, form: TextForm) -> list[str]:
    """The first record of a CSV file, unpacked where it must be."""
    with open_text(path, form) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        return next(csv.reader(text, delimiter=form.separator), [])
