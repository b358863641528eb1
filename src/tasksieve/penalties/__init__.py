"""Penalties on the rows of W: one small class a file, the mathematics in its docstring.

`RowPenalty` is the base of a penalty of your own.
"""

from collections.abc import Callable

from ..docstrings import described_by
from ..members import PENALTIES, Registry
from .base import BlockForm, Manifold, RowForm, RowPenalty, live_rows, row_norms
from .dirty import Dirty
from .groups import Groups
from .linf import LInf
from .sorted import Sorted, oscar_weights, slope_weights, tied_rows
from .sparse_group import L11, L21, SparseGroup

#: penalties by name (`members.PENALTIES`); a name of your own is one line, or an entry point of your package
BY_NAME: Registry[RowPenalty] = PENALTIES


def as_penalty(penalty: str | RowPenalty | type[RowPenalty]) -> RowPenalty:
    """A penalty as it is, or that of a name or class with its defaults."""
    return BY_NAME.make(penalty)


@described_by("name : str", returns="decorator\n    Of a class derived from `RowPenalty`.")
def register(name: str) -> Callable[[type[RowPenalty]], type[RowPenalty]]:
    """Give a penalty of your own a name, as `tasksieve.losses.register` does a loss; entry points are in the group
    ``tasksieve.penalties``.
    """
    return BY_NAME.register(name)


__all__ = [
    "BY_NAME", "L11", "L21", "BlockForm", "Dirty", "Groups", "LInf", "Manifold", "RowForm", "RowPenalty", "Sorted",
    "SparseGroup", "as_penalty", "live_rows", "oscar_weights", "register", "row_norms", "slope_weights",
    "tied_rows",
]  # fmt: skip
__dir__ = __all__.copy  # TAB shows these alone
