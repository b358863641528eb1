"""Penalties on the rows of W: one small class a file, the mathematics in its docstring."""

from .rows import PenaltyShape, RowPenalty, l11, l21, row_norms, sparse_group
from .sorted import SortedPenalty, oscar_weights, read_sorted_weights, slope_weights, tied_rows

__all__ = [
    "PenaltyShape",
    "RowPenalty",
    "SortedPenalty",
    "l11",
    "l21",
    "oscar_weights",
    "read_sorted_weights",
    "row_norms",
    "slope_weights",
    "sparse_group",
    "tied_rows",
]
