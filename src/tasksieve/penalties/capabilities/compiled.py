"""Forms of a norm that compiled kernels and particular algorithms know: say one, and they apply."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ..core import RowNorm
from .manifold import Manifold

Array = np.ndarray[Any, Any]


class RowForm(NamedTuple):
    """A norm of rows whose minimiser along one row is compiled (`_kernels/row_update.hpp`).

    Attributes
    ----------
    kind : {"sum", "largest", "split"}
        ``group ||w||_2 + l1 ||w||_1``; ``group max_t |w_t|``; ``min group ||p||_2 + l1 ||q||_1`` over ``p + q = w``.
    group, l1 : arrays, one entry a row
        Strengths.
    """

    kind: Literal["sum", "largest", "split"]
    group: Array
    l1: Array

    @property
    def code(self) -> int:
        """The kind as kernels know it."""
        return ("sum", "largest", "split").index(self.kind)


class BlockForm(NamedTuple):
    """The same for blocks of rows that have one norm together: each block is one long row.

    Attributes
    ----------
    kind : {"sum", "stack"}
        ``group ||W_B||_F + l1 ||W_B||_1``, or with the norms of the block's rows in place of its entries.
    group, l1 : arrays, one entry a block
        Strengths.
    block : array of int, one entry a row
        The block of each row.
    """

    kind: Literal["sum", "stack"]
    group: Array
    l1: Array
    block: Array

    @property
    def code(self) -> int:
        """The kind as kernels know it."""
        return {"sum": 0, "stack": 3}[self.kind]


class CompiledForms(RowNorm):
    """None of them, unless a penalty says so."""

    def __init_subclass__(cls, **options: Any) -> None:
        """A class with a norm of its own takes over no compiled form of its parent's: that stands for another norm."""
        super().__init_subclass__(**options)
        if any(name in vars(cls) for name in ("value", "gauges", "prox")):
            for form in ("thresholds", "row_form", "block_form", "sorted_form", "manifold"):
                if form not in vars(cls):
                    setattr(cls, form, getattr(CompiledForms, form))

    def thresholds(self) -> tuple[Array, Array | None] | None:
        """(group, l1): the gauge test is ``||soft(m, l1)|| < group``. None: another kind of gauge."""
        return None

    def row_form(self) -> RowForm | None:
        """The norm of a row, if it is one whose exact row updates are compiled: coordinate descent is for those."""
        form = self.thresholds() if self.separable else None
        if form is None:
            return None
        group, l1 = form
        return RowForm("sum", group, np.zeros(len(group)) if l1 is None else l1)

    def block_form(self) -> BlockForm | None:
        """The same for blocks of rows: block coordinate descent is for those."""
        return None

    def sorted_form(self) -> Array | None:
        """Non-increasing weights of the ranks, if the norm is ``sum_k weight_k ||W||_[k]``, rows in the order of their
        norms: its prox is compiled."""
        return None

    def manifold(self, rows: Array, products: Array) -> Manifold | None:
        """Where the norm is smooth around W, given the correlations less the pull of the ridge: `ManifoldNewton` is for
        that. None where all of W is zero."""
        return None

    def group_form(self) -> Array | None:
        """The strengths g, if the norm is ``sum_j g_j ||W_j||_2``: Newton's method in the row norms is for that."""
        form = self.thresholds() if self.separable else None
        return None if form is None or form[1] is not None else form[0]
