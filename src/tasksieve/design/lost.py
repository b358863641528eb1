"""Data that cannot be reached any more."""

from __future__ import annotations


class DataLost(RuntimeError):
    """Columns of X are gone, for good as far as anybody knows: a path ends with the values that are finished."""
