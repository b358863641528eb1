"""Screening rules: which rows of W are certainly zero at a strength lam, given a `DualState`.

A rule is asked before a value of the path is solved (`sequential`, with the pair of the last value) and, as often as
the solver likes, while it is being solved (`dynamic`, with the current pair). It counts what it rejected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..messages import value_error
from .dpc import published_ball, rigorous_ball
from .gap import gap_sphere, midpoint_ball
from .state import Ball, DualState

Mask = NDArray[np.bool_]


class Rule:
    """A screening rule. Subclasses give the ball that holds the dual optimum.

    Attributes
    ----------
    name : str
        As in the `screening` option of the estimators.
    safe : bool
        Whether a rejected row is certainly zero. If not, the rule is for study: a path follows it as in its paper
        (exact products at every value, and every row that is left is solved for), and its results are checked.
    sequential_counts, dynamic_counts : list of int
        Rows rejected by each call so far.
    entry_counts : list of int
        Single entries, in rows that carry weight, rejected by each call so far.
    """

    name: str | None = None
    safe = True
    #: the ball is the loss's own answer (`losses.DataLoss.ball`) on the path
    of_loss = False

    def __init__(self) -> None:
        self.sequential_counts: list[int] = []
        self.dynamic_counts: list[int] = []
        self.entry_counts: list[int] = []

    def supports(self, state: DualState) -> bool:
        """Whether the rule holds for this kind of problem."""
        raise NotImplementedError

    def ball(self, state: DualState, lam: float) -> Ball | None:
        """A ball that holds the dual optimum at strength lam; None if the rule knows of none."""
        raise NotImplementedError

    def ball_of(self, loss: Any, at: Any, scale: float, gap: float) -> Ball | None:
        """The loss's own answer, of rules that are `of_loss`: from an evaluation, its dual scale and its gap."""
        raise NotImplementedError

    def sequential(self, state: DualState, lam: float) -> Mask:
        """Rows that are zero at strength `lam`, from a pair obtained at `state.lam`. `state` holds all features."""
        mask = self._mask(state, lam)
        self.sequential_counts.append(int(np.count_nonzero(mask)))
        return mask

    def dynamic(self, state: DualState) -> Mask:
        """Rows that are zero at `state.lam`. `state` may hold only the rows not yet rejected at this strength."""
        mask = self._mask(state, state.lam)
        self.dynamic_counts.append(int(np.count_nonzero(mask)))
        return mask

    def _mask(self, state: DualState, lam: float) -> Mask:
        if not self.supports(state):
            raise ValueError(f"screening rule {self.name!r} does not hold for this loss or penalty")
        ball = self.ball(state, lam)
        if ball is None:
            return np.zeros(state.norms.shape[0], dtype=bool)
        return ball.rejects(state, lam)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DPC(Rule):
    """The rigorous cut ball: as strong as DPC where the last value was solved well, safe wherever it was not.

    Squared loss, and losses that are the squared one with outliers (`losses.clipped`); any of the penalties. As a
    dynamic rule its radius is at most 1/sqrt(2) of the gap-safe one's.
    """

    name = "dpc"

    def supports(self, state: DualState) -> bool:
        return state.squared or state.outliers is not None

    def ball(self, state: DualState, lam: float) -> Ball:
        return rigorous_ball(state, lam)


class PublishedDPC(Rule):
    """DPC as published (Wang & Ye 2015, Theorems 5 and 8): for study. It holds for exact solutions only.

    Squared loss and the group penalty, without ridge. A sequential rule: as a dynamic one it rejects nothing.
    """

    name = "dpc-published"
    safe = False

    def supports(self, state: DualState) -> bool:
        return state.squared and not state.has_l1 and not state.positive and state.ridge_ratio == 0.0

    def ball(self, state: DualState, lam: float) -> Ball | None:
        return published_ball(state, lam)

    def dynamic(self, state: DualState) -> Mask:
        self.dynamic_counts.append(0)
        return np.zeros(state.norms.shape[0], dtype=bool)


class GapSafe(Rule):
    """The gap-safe sphere: any smooth loss, any of the penalties.

    For other losses than the squared one a sequential call needs the gap of the old pair at the new strength; see
    `DualState`.
    """

    name = "gap"
    of_loss = True

    def supports(self, state: DualState) -> bool:
        return bool(np.isfinite(state.smoothness))

    def ball(self, state: DualState, lam: float) -> Ball:
        return gap_sphere(state, lam)

    def ball_of(self, loss: Any, at: Any, scale: float, gap: float) -> Ball | None:
        return loss.sphere(at, scale, gap)


class Midpoint(GapSafe):
    """The midpoint ball: any smooth loss, any of the penalties; its radius is at most 1/sqrt(2) of the gap-safe one's.

    The residual must be minus the gradient of the loss at W.
    """

    name = "midpoint"

    def ball(self, state: DualState, lam: float) -> Ball:
        return midpoint_ball(state, lam)

    def ball_of(self, loss: Any, at: Any, scale: float, gap: float) -> Ball | None:
        return loss.ball(at, scale, gap)


class NoScreening(Rule):
    """Reject nothing."""

    def supports(self, state: DualState) -> bool:
        return True

    def ball(self, state: DualState, lam: float) -> None:
        return None


_RULES: tuple[type[Rule], ...] = (DPC, PublishedDPC, Midpoint, GapSafe, NoScreening)


def get_rule(
    name: str | Rule | None,
    *,
    loss: str = "squared",
    clipped: bool = False,
    l1: ArrayLike = 0.0,
    positive: bool = False,
    ridge_ratio: float = 0.0,
    plain: bool = True,
) -> Rule:
    """The rule of a name, refused early where it does not hold.

    Parameters
    ----------
    name : {"auto", "dpc", "dpc-published", "gap", "midpoint", None} or Rule
        "auto" is the rigorous DPC where that holds and the midpoint ball for other losses. A Rule is returned as it is.
    loss : str
        "squared" or the name of another loss.
    clipped : bool
        Whether that other loss is the squared one with outliers.
    l1, positive, ridge_ratio
        The penalty, as in `DualState`.
    plain : bool
        Whether the penalty is the group norm.

    Returns
    -------
    Rule
    """
    if isinstance(name, Rule):
        return name
    squared = loss == "squared"
    if name == "auto":
        name = "dpc" if squared or clipped else "midpoint"
    rules = {rule.name: rule for rule in _RULES}
    if name not in rules:
        known = ", ".join(repr(known) for known in ("auto", *rules))
        raise value_error("{screening} must be one of {known}; got {name!r}", known=known, name=name)
    if (name == "dpc" and not (squared or clipped)) or (name == "dpc-published" and not squared):
        kinds = "the squared, Huber, quantile and hinge losses" if name == "dpc" else "the squared loss"
        raise value_error(
            "{screening=!r} holds for {kinds} only, not for {loss!r}; use 'auto', 'midpoint' or 'gap'",
            screening=name,
            kinds=kinds,
            loss=loss,
        )
    if name == "dpc-published" and (np.any(l1) or positive or ridge_ratio or not plain):
        raise value_error(
            "{screening=!r} holds for the plain group penalty only (no l1, no ridge, no positivity); use 'dpc', "
            "which covers them",
            screening=name,
        )
    return rules[name]()
