"""Online learning: the sparse models of several tasks, one row at a time."""

from .certify import Certificate
from .estimators import OnlineMultiTaskClassifier, OnlineMultiTaskRegressor

__all__ = ["Certificate", "OnlineMultiTaskClassifier", "OnlineMultiTaskRegressor"]
__dir__ = __all__.copy  # TAB shows these alone
