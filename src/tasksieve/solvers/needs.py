"""What a solver needs of loss and penalty; one that does not have it is refused before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..losses import DataLoss
from ..penalties import RowPenalty


@dataclass(frozen=True)
class Needs:
    """What must hold for a solver.

    - `losses`: Names of losses; empty: any.
    - `smooth`: A loss with a derivative everywhere.
    - `curved`: A loss whose second derivative varies: a quadratic model of it is worth making.
    - `row_form`: A penalty with compiled updates of rows or blocks of rows (`RowPenalty.row_form`, `block_form`).
    - `plain`: The group norm alone, coefficients of any sign.
    - `group`: The group norm alone (`RowPenalty.group_form`).
    - `sorted_rows`: A sorted norm of rows with a compiled prox (`RowPenalty.sorted_form`).
    - `packed`: Columns packed in memory.
    - `quadratic` ({"none", "ridge", "graph"}): How much of a quadratic part beside the norm the solver can handle.
    """

    losses: tuple[str, ...] = ()
    smooth: bool = False
    curved: bool = False
    row_form: bool = False
    plain: bool = False
    group: bool = False
    sorted_rows: bool = False
    packed: bool = False
    quadratic: Literal["none", "ridge", "graph"] = "ridge"

    def unmet(self, loss: DataLoss, penalty: RowPenalty, packed: bool = True) -> str | None:
        """What is missing, in words; None if nothing is."""
        group = penalty.group_form() is not None
        if self.losses and loss.name not in self.losses:
            return f"is for the {' or '.join(self.losses)} loss"
        if self.smooth and not loss.has_slope:
            return "is for smooth losses"
        if self.curved and (loss.null.curvature is None or loss.squared):
            return "is for other losses than the squared one"
        if self.row_form and penalty.row_form() is None and penalty.block_form() is None:
            return "is for penalties with row updates: L2,1, L1,1, sparse group, L1,inf, dirty and groups"
        if self.plain and not (group and not penalty.positive):
            return "is for the group penalty without l1 and positivity"
        if self.group and not group:
            return "is for the group penalty without l1"
        if self.sorted_rows and penalty.sorted_form() is None:
            return "is for sorted norms of rows (Group OWL)"
        if self.packed and not packed:
            return "is for dense columns"
        if penalty.ridge and self.quadratic == "none":
            return "is for problems without a ridge"
        if penalty.coupling is not None and self.row_form and penalty.row_form() is None:
            return "knows a task graph beside penalties on rows only"
        if penalty.coupling is not None and self.quadratic != "graph":
            return "is for problems without a task graph"
        return None
