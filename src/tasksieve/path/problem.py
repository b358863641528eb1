"""A problem: design, loss and penalty, in sum units."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from ..losses import Logistic, Loss, Squared, SquareRoot
from ..losses.multinomial import Multinomial
from ..penalties import PenaltyShape
from ..penalties.sorted import SortedPenalty

Array = np.ndarray[Any, Any]

_LOSSES: dict[str, type[Squared] | type[SquareRoot] | type[Logistic] | type[Multinomial]] = {
    "squared": Squared,
    "square-root": SquareRoot,
    "logistic": Logistic,
    "multinomial": Multinomial,
}


class Problem:
    """``sum of losses + lam sum_j u_j (l1_j ||W_j||_1 + group ||W_j||_2) + ridge/2 ||W||_F^2``.

    ``ridge = lam ridge_ratio + unit fixed_ridge``.

    Parameters
    ----------
    design : Design
        Knows the weights, the intercepts and the unpenalised features.
    y : array
        Flat labels: numbers for "squared" and "square-root", +-1 for "logistic", one-hot columns for "multinomial".
    loss : {"squared", "square-root", "logistic", "multinomial"}
    feature_weights : array, optional
        ``u_j``; features with weight 0 must be the design's unpenalised ones.
    l1, group, ridge_ratio, positive
        The penalty's shape.
    fixed_ridge : float
        A ridge that does not grow with lam, in public units.
    unit : float
        Public objectives are sum units divided by this (the mean number of rows a task, or its root).
    """

    def __init__(
        self,
        design: Design,
        y: Array,
        *,
        loss: str = "squared",
        feature_weights: Array | None = None,
        l1: float | Array = 0.0,
        group: float = 1.0,
        ridge_ratio: float = 0.0,
        positive: bool = False,
        fixed_ridge: float = 0.0,
        unit: float = 1.0,
    ) -> None:
        if loss not in _LOSSES:
            raise ValueError(f"loss must be one of {sorted(_LOSSES)}; got {loss!r}")
        self.design = design
        self.y = np.asarray(y, dtype=np.float64)
        self.loss: Loss = _LOSSES[loss](design, self.y)
        weights = np.ones(design.n_features) if feature_weights is None else np.array(feature_weights, dtype=float)
        weights[design.unpenalised] = 0.0
        if design.n_tasks == 1:  # of one number both norms are the same
            weights, group, l1 = weights * (group + l1), 1.0, 0.0
        free = np.setdiff1d(np.flatnonzero(weights * (group + l1) == 0.0), design.unpenalised)
        if free.size:
            raise ValueError(f"feature {free[0]} is not penalised: name it in the design's `unpenalised` as well")
        self.shape = PenaltyShape(weights, group, l1, ridge_ratio, positive, fixed_ridge * unit)
        self.unit = unit
        self._null_products: Array | None = None

    @property
    def squared(self) -> bool:
        return isinstance(self.loss, Squared)

    def null_products(self) -> Array:
        """Correlations of the residual of W = 0 (with the best intercepts), one full pass, kept."""
        if self._null_products is None:
            products = self.design.correlate(self.loss.null.residual)
            products[self.design.unpenalised] = 0.0
            self._null_products = products
        return self._null_products

    def forget_null_products(self) -> None:
        """Frees the d x T array once nobody needs it."""
        self._null_products = None

    def lambda_max(self) -> float:
        """The smallest strength whose solution is zero."""
        return float(np.max(self.shape.at(1.0).gauges(self.null_products()), initial=0.0))

    def intercepts(self, rows: Array, loadings: Array, nuisance: Array) -> tuple[Array, Array]:
        """Intercepts, and coefficients of the unpenalised features, given rows in original units.

        The loss has minimised them out in the projected geometry, where every column was freed of its nuisance part
        (`loadings`): what the columns were freed of is taken back here.
        """
        design = self.design
        projected = isinstance(self.loss, Squared | SquareRoot)  # the same least-squares fit minimises both
        own = design.nuisance_fit(self.y) if projected else nuisance
        coefficients = own - np.einsum("zjt,jt->zt", loadings, rows)
        first = 1 if design.fit_intercept else 0
        intercept = coefficients[0] if first else np.zeros(design.n_tasks)
        return intercept, coefficients[first:]


class SortedProblem(Problem):
    """``sum of losses + lam sum_k shape_k ||W||_[k]``, rows of W sorted by norm (Group OWL).

    Parameters
    ----------
    design, y, loss, positive, unit
        As in `Problem`.
    sorted_weights : array
        ``shape_k``, one for each rank, non-increasing.
    """

    def __init__(
        self,
        design: Design,
        y: Array,
        *,
        sorted_weights: Array,
        loss: str = "squared",
        positive: bool = False,
        unit: float = 1.0,
    ) -> None:
        super().__init__(design, y, loss=loss, positive=positive, unit=unit)
        self.sorted_weights = np.asarray(sorted_weights, dtype=np.float64)

    def penalty(self, lam: float) -> SortedPenalty:
        """The penalty at one strength."""
        return SortedPenalty(lam * self.sorted_weights, self.shape.positive)

    def lambda_max(self) -> float:
        """The smallest strength whose solution is zero."""
        unit = self.penalty(1.0)
        return unit.polar(unit.sizes(self.null_products()))
