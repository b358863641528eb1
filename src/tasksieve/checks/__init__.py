"""Checks for members of your own, and for every member of the package: each failure names the property that is broken.

    >>> import tasksieve as ts
    >>> ts.checks.check_penalty(ts.penalties.SparseGroup(0.2))
"""

from .estimator import check_estimator
from .federated import check_transport
from .loss import check_loss
from .penalty import check_penalty
from .storage import check_storage

__all__ = ["check_estimator", "check_loss", "check_penalty", "check_storage", "check_transport"]
__dir__ = __all__.copy  # TAB shows these alone
