"""Losses: one small class a file, the mathematics in its docstring.

`RowLoss` is the base of a loss of your own.
"""

from collections.abc import Callable

from ..docstrings import described_by
from ..members import LOSSES, Registry
from .base import DataLoss, Evaluation, Loss, gamma
from .clipped import Huber, Quantile
from .cox import Cox
from .expectile import Expectile
from .gamma_loss import Gamma
from .hinge import SmoothedHinge, SquaredHinge
from .log_cosh import LogCosh
from .logistic import Logistic
from .mixed import Mixed
from .multinomial import Multinomial
from .negative_binomial import NegativeBinomial
from .ordinal import Ordinal
from .poisson import Poisson
from .rowwise import RowLoss
from .square_root import SquareRoot, TaskNorms
from .squared import Squared, TargetLoss
from .tweedie import Tweedie

#: losses by name (`members.LOSSES`); a name of your own is one line, or an entry point of your package
BY_NAME: Registry[Loss] = LOSSES


def as_loss(loss: str | Loss | type[Loss]) -> Loss:
    """A loss as it is, or that of a name or class with its defaults."""
    return BY_NAME.make(loss)


@described_by("name : str", returns="decorator\n    Of a class derived from `Loss`.")
def register(name: str) -> Callable[[type[Loss]], type[Loss]]:
    """Give a loss of your own a name, by which `MultiTaskRegressor`, `MultiTaskClassifier` and `grade` take it.

    For this process. An entry point of your package, ``name = "module:Class"`` in the group ``tasksieve.losses``, is
    for every process of an installation, the command line among them. A name stands for the class with its defaults.

    Examples
    --------
    >>> import tasksieve as ts
    >>> @ts.losses.register("upper_decile")
    ... class UpperDecile(ts.losses.Quantile):
    ...     def __init__(self):
    ...         super().__init__(q=0.9)
    >>> ts.losses.as_loss("upper_decile").q
    0.9
    >>> del ts.losses.BY_NAME["upper_decile"]
    """
    return BY_NAME.register(name)


__all__ = [
    "BY_NAME", "Cox", "DataLoss", "Evaluation", "Expectile", "Gamma", "Huber", "LogCosh", "Logistic", "Loss",
    "Mixed", "Multinomial", "NegativeBinomial", "Ordinal", "Poisson", "Quantile", "RowLoss", "SmoothedHinge",
    "SquareRoot", "Squared", "SquaredHinge", "TargetLoss", "TaskNorms", "Tweedie", "as_loss", "gamma",
    "register",
]  # fmt: skip
__dir__ = __all__.copy  # TAB shows these alone
