"""Storages that people compose: X made of other matrices, passed to any batch estimator. `Storage` is their base.

    >>> import tasksieve as ts
    >>> ts.storages.OneHot(["a", "b", "a"]).shape
    (3, 2)
"""

from .design.storage import Beside, Interactions, OneHot, RowVectors, Scaled, Storage

__all__ = ["Beside", "Interactions", "OneHot", "RowVectors", "Scaled", "Storage"]
__dir__ = __all__.copy  # TAB shows these alone
