"""Losses: one small class a file, the mathematics in its docstring."""

from .base import Evaluation, Loss
from .logistic import Logistic
from .multinomial import Multinomial
from .square_root import SquareRoot
from .squared import Squared

__all__ = ["Evaluation", "Logistic", "Loss", "Multinomial", "SquareRoot", "Squared"]
