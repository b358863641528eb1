"""Online learning: the sparse models of several tasks, one row at a time."""

from .certify import Certificate
from .estimators import OnlineMultiTaskClassifier, OnlineMultiTaskRegressor

__all__ = ["Certificate", "OnlineMultiTaskClassifier", "OnlineMultiTaskRegressor"]


def __dir__() -> list[str]:
    return list(__all__)
