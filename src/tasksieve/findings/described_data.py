"""Entries of docstrings that functions and selectors of this package share."""

from __future__ import annotations

from ..fitted.documented import DATA

#: data of a finding that depends on the rows as a set, and its seed
FINDING = f"""{DATA}
random_state : int, default=0
    The result depends on nothing else: not on the order of rows, on names of tasks, on the form of the data.
"""
