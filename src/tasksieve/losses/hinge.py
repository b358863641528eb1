"""The hinge, smoothed or squared: losses of the margin y z, labels -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import check_positive
from .clipped import Clipped

Array = np.ndarray[Any, Any]


class Hinge(Clipped):
    """``max(0, 1 - y z)``; conjugate ``-a``, a = y p in [0, 1]; it has a kink."""

    label = "hinge loss"
    labels = "signs"
    vanishing = True
    mu = 0.0

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(y, 0.0), np.maximum(y, 0.0)

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "clipped", "mu": 0.0, "high": 1.0, "labels": "classes"}


@dataclass(frozen=True)
class SmoothedHinge(Hinge):
    r"""The hinge with its kink rounded over `kappa`.

    .. math:: f(y, z) = h^2/(2\kappa) \text{ for } 0 \le h \le \kappa, \quad h - \kappa/2 \text{ beyond},
        \qquad h = 1 - y z

    At most :math:`\kappa/2` below the hinge. Conjugate :math:`\kappa a^2/2 - a`, a = y p in [0, 1]; smoothness
    :math:`1/\kappa`.

    Parameters
    ----------
    kappa : float, default=0.5
        Positive.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.losses.SmoothedHinge(kappa=0.5).value(1.0, -1.0)
    array(1.75)
    """

    label = "smoothed hinge loss"
    formula = "1/n̄ Σ_t Σ_i h(y_i (x_i·w_t + b_t)), h the smoothed hinge loss,"

    kappa: float = 0.5

    def __post_init__(self) -> None:
        check_positive(self.kappa, "kappa")

    @property
    def mu(self) -> float:  # type: ignore[override]
        return self.kappa

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "clipped", "mu": float(self.kappa), "high": 1.0, "labels": "classes"}


@dataclass(frozen=True)
class SquaredHinge(Clipped):
    r"""``factor max(0, 1 - y z)²``; conjugate ``a² / (4 factor) - a``, a = y p >= 0; smoothness ``2 factor``.

    Parameters
    ----------
    factor : float, default=0.5
        1 is LIBLINEAR's convention.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.losses.SquaredHinge().value(1.0, -1.0)
    array(2.)
    """

    label = "squared hinge loss"
    formula = "1/(2n̄) Σ_t Σ_i max(0, 1 − y_i (x_i·w_t + b_t))²"
    labels = "signs"
    vanishing = True

    factor: float = 0.5

    @property
    def mu(self) -> float:
        return 0.5 / self.factor

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0.0, 0.0, -np.inf), np.where(y > 0.0, np.inf, 0.0)

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "clipped", "mu": float(self.mu), "high": None, "labels": "classes"}
