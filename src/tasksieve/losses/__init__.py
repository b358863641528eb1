"""Losses: one small class a file, the mathematics in its docstring.

`RowLoss` is the base of a loss of your own.
"""

from .base import DataLoss, Evaluation, Loss, gamma
from .clipped import Huber, Quantile
from .hinge import SmoothedHinge, SquaredHinge
from .logistic import Logistic
from .multinomial import Multinomial
from .poisson import Poisson
from .rowwise import RowLoss
from .square_root import SquareRoot, TaskNorms
from .squared import Squared, TargetLoss

#: losses by the names that estimators take
BY_NAME: dict[str, type[Loss]] = {
    "squared": Squared,
    "square-root": SquareRoot,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "huber": Huber,
    "quantile": Quantile,
    "poisson": Poisson,
    "squared_hinge": SquaredHinge,
    "smoothed_hinge": SmoothedHinge,
}


def as_loss(loss: str | Loss) -> Loss:
    """A loss, or the one of a name."""
    if isinstance(loss, Loss):
        return loss
    if loss not in BY_NAME:
        raise ValueError(f"loss must be one of {sorted(BY_NAME)} or a tasksieve.losses.Loss; got {loss!r}")
    return BY_NAME[loss]()


__all__ = [
    "BY_NAME",
    "DataLoss",
    "Evaluation",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "Poisson",
    "Quantile",
    "RowLoss",
    "SmoothedHinge",
    "SquareRoot",
    "Squared",
    "SquaredHinge",
    "TargetLoss",
    "TaskNorms",
    "as_loss",
    "gamma",
]


def __dir__() -> list[str]:
    return list(__all__)
