"""Penalties on the rows of W: one small class a file, the mathematics in its docstring.

`RowPenalty` is the base of a penalty of your own.
"""

from .base import BlockForm, RowForm, RowPenalty, live_rows, row_norms
from .dirty import Dirty
from .groups import Groups
from .linf import LInf
from .sorted import Sorted, oscar_weights, slope_weights, tied_rows
from .sparse_group import L11, L21, SparseGroup

__all__ = [
    "L11",
    "L21",
    "BlockForm",
    "Dirty",
    "Groups",
    "LInf",
    "RowForm",
    "RowPenalty",
    "Sorted",
    "SparseGroup",
    "live_rows",
    "oscar_weights",
    "row_norms",
    "slope_weights",
    "tied_rows",
]


def __dir__() -> list[str]:
    return list(__all__)
