"""Losses: one small class a file, the mathematics in its docstring.

`RowLoss` is the base of a loss of your own.
"""

from .base import DataLoss, Evaluation, Loss
from .logistic import Logistic
from .multinomial import Multinomial
from .rowwise import RowLoss
from .square_root import SquareRoot, TaskNorms
from .squared import Squared

#: losses by the names that estimators take
BY_NAME: dict[str, type[Loss]] = {
    "squared": Squared,
    "square-root": SquareRoot,
    "logistic": Logistic,
    "multinomial": Multinomial,
}

__all__ = [
    "BY_NAME",
    "DataLoss",
    "Evaluation",
    "Logistic",
    "Loss",
    "Multinomial",
    "RowLoss",
    "SquareRoot",
    "Squared",
    "TaskNorms",
]
