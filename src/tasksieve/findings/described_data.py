"""Entries of docstrings that functions and selectors of this package share."""

from __future__ import annotations

from ..fitted.documented import DATA

#: of results that depend on the rows as a set
SEED = """
random_state : int, default=0
    The result depends on nothing else: not on the order of rows, on names of tasks, on the form of the data.
"""

#: data of a finding, and its seed
FINDING = f"{DATA}{SEED}"
