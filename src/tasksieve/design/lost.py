"""Data that cannot be reached any more."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """A cluster that is not there, or not as it should be."""


class DataLost(ClusterError):
    """Columns of X are lost and cannot be read again: a path ends with the values that are finished."""
