"""Tables on disk (CSV, Parquet, Arrow, npz, libsvm) as matrices, targets and task labels."""

from .encode import Encoding
from .npz import read_arrays
from .problem import TableProblem, prepare, prepare_rows
from .read import FORMATS, read_table, table_format
from .table import Column, Table, TableError

__all__ = [
    "FORMATS",
    "Column",
    "Encoding",
    "Table",
    "TableError",
    "TableProblem",
    "prepare",
    "prepare_rows",
    "read_arrays",
    "read_table",
    "table_format",
]
