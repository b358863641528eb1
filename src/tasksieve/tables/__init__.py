"""Tables on disk (CSV, Parquet, Arrow, workbooks, Stata, SPSS, SAS, npz, libsvm) as matrices, targets and task labels.

``text_form.py`` finds out how a file of text is written, ``wide.py`` reads very many columns into one matrix,
``stack.py`` several files as one table, ``chunked.py`` tables of which only sums are kept.
"""

from .encode import Encoding
from .frames import FORMATS, table_format
from .labels_by_task import LabelsByTask
from .npz import read_arrays
from .problem import TableProblem, prepare, prepare_rows
from .read import read_table
from .sheets import read_sheets
from .survival_columns import SurvivalColumns
from .table import Column, Table, TableError
from .write import write_arrays, write_table

__all__ = [
    "FORMATS",
    "Column",
    "Encoding",
    "LabelsByTask",
    "SurvivalColumns",
    "Table",
    "TableError",
    "TableProblem",
    "prepare",
    "prepare_rows",
    "read_arrays",
    "read_sheets",
    "read_table",
    "table_format",
    "write_arrays",
    "write_table",
]
