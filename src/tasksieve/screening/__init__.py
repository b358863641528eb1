"""Which features cannot matter.

`screen` answers for a design, targets and a dual candidate. The path asks a `Rule` (`get_rule`) with a `DualState`
before and while it solves each value. Below them: balls that hold the dual optimum (`rigorous_ball`, `published_ball`,
`gap_sphere`, `midpoint_ball`), the largest correlations over such a ball (`row_maximum`), and the tests of each penalty
(`zero_rows`, `zero_entries`).
"""

from .ball import rejects, row_maximum, zero_entries, zero_rows
from .dpc import published_ball, rigorous_ball
from .gap import gap_sphere, midpoint_ball, squared_gap
from .polar import polar, steepest_row
from .rules import DPC, GapSafe, Midpoint, NoScreening, PublishedDPC, Rule, get_rule
from .standalone import screen
from .state import Ball, Cut, DualState

__all__ = [
    "DPC", "Ball", "Cut", "DualState", "GapSafe", "Midpoint", "NoScreening", "PublishedDPC", "Rule",
    "gap_sphere", "get_rule", "midpoint_ball", "polar", "published_ball", "rejects", "rigorous_ball",
    "row_maximum", "screen", "squared_gap", "steepest_row", "zero_entries", "zero_rows",
]  # fmt: skip
__dir__ = __all__.copy  # TAB shows these alone
