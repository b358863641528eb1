"""What a solver needs of loss and penalty; one that does not have it is refused before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass

from ..losses import DataLoss
from ..penalties import RowPenalty


@dataclass(frozen=True)
class Needs:
    """What must hold for a solver.

    Attributes
    ----------
    losses : tuple of str
        Names of losses; empty: any.
    smooth : bool
        A loss with a derivative everywhere.
    curved : bool
        A loss whose second derivative varies: a quadratic model of it is worth making.
    thresholds : bool
        A penalty of the form ``sum_j group_j ||W_j|| + l1_j ||W_j||_1``.
    plain : bool
        The group norm alone, coefficients of any sign.
    group : bool
        The group norm alone.
    sorted_rows : bool
        A penalty that sorts the rows.
    packed : bool
        Columns packed in memory.
    """

    losses: tuple[str, ...] = ()
    smooth: bool = False
    curved: bool = False
    thresholds: bool = False
    plain: bool = False
    group: bool = False
    sorted_rows: bool = False
    packed: bool = False

    def unmet(self, loss: DataLoss, penalty: RowPenalty, packed: bool = True) -> str | None:
        """What is missing, in words; None if nothing is."""
        form = penalty.thresholds() if penalty.separable else None
        group = form is not None and form[1] is None
        if self.losses and loss.name not in self.losses:
            return f"is for the {' or '.join(self.losses)} loss"
        if self.smooth and not (loss.differentiable or loss.smoothness < float("inf")):
            return "is for smooth losses"
        if self.curved and (loss.null.curvature is None or loss.squared):
            return "is for other losses than the squared one"
        if self.thresholds and form is None:
            return "is for L2,1, L1,1 and sparse group penalties"
        if self.plain and not (group and not penalty.positive):
            return "is for the group penalty without l1 and positivity"
        if self.group and not group:
            return "is for the group penalty without l1"
        if self.sorted_rows and penalty.separable:
            return "is for penalties that sort the rows"
        if self.packed and not packed:
            return "is for dense columns"
        return None
