"""The core of a penalty: what it knows of itself, the methods that every one writes, and what follows from them.

`value`, `gauges`, `prox` and `reach` have no default. `on` and `restrict` have one that suits a penalty whose only
numbers are `weights`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import numpy as np

from .._kernels import kernels
from ..described import Described
from ..messages import ParameterError
from .coupling import Coupling

Array = np.ndarray[Any, Any]

_OWN = f"{__name__.partition('.')[0]}."  # modules of this package, whose tests try its penalties


def row_norms(rows: Array) -> Array:
    """Euclidean norms of the rows."""
    out = np.empty(len(rows))
    kernels.row_norms(np.ascontiguousarray(rows, dtype=np.float64), out)
    return out


def live_rows(rows: Array) -> Array:
    """Indices of the rows that are not zero."""
    return np.asarray(rows.any(axis=1)).nonzero()[0]


def refuse_signs(penalty: Any, n_tasks: int) -> None:
    """Refuse a penalty of others whose value sees signs and that does not say so: rules would reject what is in use."""
    if type(penalty).__module__.startswith(_OWN):
        return
    some = penalty.whole(np.flatnonzero(penalty.penalised)[:3])
    if penalty.signed or not len(some):
        return
    rows = np.random.default_rng(0).standard_normal((len(some), n_tasks))
    part = penalty.restrict(some)
    value, turned = float(part.value(rows)), float(part.value(-rows))
    if not abs(value - turned) <= 1e-9 * (abs(value) + abs(turned)):
        name = type(penalty).__name__
        raise ParameterError(
            "penalty",
            f"{name} is no norm: value(-W) is {turned:.6g} where value(W) is {value:.6g}. Screening and gaps take "
            f"values that do not see signs. Say `signed = True` in {name} if its `gauges` and `reach` hold for either "
            "sign, which check_penalty tries",
        )


class RowNorm(Described):
    """A norm of rows on some features, at one strength. `RowPenalty` is this with everything that follows from it."""

    #: words for reports
    label = "rows"
    #: the penalty as a report writes it, "α Σ_j ..."; each class defines its own
    formula: str
    weights: Array
    positive: bool = False
    ridge: float = 0.0
    coupling: Coupling | None = None
    #: whether the value sees signs, ``value(-W) != value(W)``: `reach` must then bound gauges of entries of either sign
    signed: bool = False
    #: dual feasibility is a matter of each row alone
    separable: bool = True
    #: the penalty at unit strength that this one was made of, and the strength, where that is so
    origin: tuple[Any, float] | None = None
    _ridge_ratio: float = 0.0
    _fixed_ridge: float = 0.0

    def value(self, rows: Array) -> float:
        """The norm of some rows of W."""
        raise NotImplementedError

    def gauges(self, products: Array) -> Array:
        """Dual gauge of each row of M: the smallest v >= 0 with ``<M_j, w> <= v weights_j N(w)`` for all w."""
        raise NotImplementedError

    def prox(self, rows: Array, step: float) -> Array:
        """``argmin_V 1/2 ||V - rows||^2 + step value(V)``."""
        raise NotImplementedError

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        """Upper bound of each row's gauge over ``{centre + norms * v : v >= 0, ||v|| <= radius}``, centre >= 0.

        One bound serves spheres, ellipsoids and bounded errors: gauges grow with the size of every entry. Rows of one
        block have one v.
        """
        raise NotImplementedError

    def on(
        self,
        weights: Array,
        n_tasks: int,
        *,
        positive: bool = False,
        ridge_ratio: float = 0.0,
        fixed_ridge: float = 0.0,
        coupling: Coupling | None = None,
    ) -> Self:
        """The penalty of given features at unit strength.

        Parameters
        ----------
        weights : array
            Feature weights u_j.
        n_tasks : int
        positive : bool
        ridge_ratio, fixed_ridge : float
            The ridge at strength lam is ``lam ridge_ratio + fixed_ridge``.
        coupling : Coupling, optional
            Whatever the strength.
        """
        require_own(type(self))  # type: ignore[arg-type]
        bound = self._copy()
        bound.weights = np.asarray(weights, dtype=np.float64)
        bound.positive = positive
        bound._ridge_ratio, bound._fixed_ridge = ridge_ratio, fixed_ridge
        bound.ridge = ridge_ratio + fixed_ridge
        bound.coupling = coupling
        return bound

    def restrict(self, features: Array) -> Self:
        """The same penalty on some features."""
        smaller = self._copy()
        smaller.weights = self.weights[features]
        return smaller

    def _copy(self) -> Self:
        """A shallow copy; several are made for every value of a path, so without `copy`'s ceremony."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("origin", None)
        return other


class Derived(RowNorm):
    """What follows from the core: positivity, a quadratic part, any strength. Rarely written by a penalty."""

    # -- strengths ------------------------------------------------------------------------------------------------

    def at(self, lam: float) -> Self:
        """Of a penalty at unit strength: the one at strength lam."""
        scaled = self.times(lam)
        scaled.ridge = lam * self._ridge_ratio + self._fixed_ridge
        scaled.origin = self, lam
        return scaled

    def ridges(self, lams: Array, factors: Array | float = 1.0) -> Array:
        """The ridge at each of some strengths, where that which does not grow with these is multiplied by factors."""
        return np.asarray(lams * self._ridge_ratio + factors * self._fixed_ridge)

    def times(self, factor: float) -> Self:
        """The norm multiplied by a factor, the ridge as it is."""
        scaled = self._copy()
        scaled.weights = factor * self.weights
        return scaled

    def with_fixed_ridge(self, factor: float) -> Self:
        """The same penalty with the ridge that does not grow with the strength multiplied by a factor."""
        changed = self._copy()
        changed._fixed_ridge = factor * self._fixed_ridge
        return changed

    def without_ridge(self) -> Self:
        """The norm alone."""
        plain = self._copy()
        plain.ridge, plain.coupling = 0.0, None
        return plain

    @property
    def penalised(self) -> Array:
        """Which rows are penalised at all."""
        return self.weights > 0.0

    # -- with positivity and the quadratic part -------------------------------------------------------------------

    @property
    def curved(self) -> bool:
        """Whether there is a quadratic part: a ridge, a graph of tasks."""
        return self.ridge != 0.0 or self.coupling is not None

    def pull(self, rows: Array) -> Array:
        """``W R``: what the quadratic part takes from the correlations."""
        pulled = self.ridge * rows
        return pulled if self.coupling is None else pulled + self.coupling.pull(rows)

    def quadratic(self, rows: Array) -> float:
        """``<W R, W>``."""
        square = self.ridge * float(np.vdot(rows, rows)) if self.ridge else 0.0
        return square if self.coupling is None else square + self.coupling.quadratic(rows)

    def total(self, rows: Array) -> float:
        """The norm and the quadratic part."""
        value = self.value(rows)
        return value + 0.5 * self.quadratic(rows) if self.curved else value

    def row_gauges(self, products: Array) -> Array:
        """Gauge of each row; 0 if unpenalised. With W >= 0 negative parts do not count."""
        products = np.maximum(products, 0.0) if self.positive else products
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.penalised, self.gauges(products), 0.0)

    def upper_gauges(self, products: Array, errors: Array) -> Array:
        """`row_gauges` of any products within these errors, at most."""
        return self.row_gauges((products if self.positive else np.abs(products)) + errors)

    def proximal(self, rows: Array, step: float) -> Array:
        """``argmin_V 1/2 ||V - rows||^2 + step (value(V) + ridge/2 ||V||^2)``: a norm's prox commutes with scaling.

        A graph of tasks belongs to the smooth part of a problem.
        """
        rows = self.prox(np.maximum(rows, 0.0) if self.positive else rows, step)
        return rows / (1.0 + step * self.ridge) if self.ridge else rows

    def row_reach(self, centre: Array, errors: Array | float, norms: Array, radius: float) -> Array:
        """`reach` around signed correlations that are known up to `errors`."""
        if not self.positive:
            start, steps = np.abs(centre) + errors, norms
        else:
            start = centre + errors
            below = np.minimum(start, 0.0)
            # what lies below zero has to be climbed before it counts
            steps = np.maximum(norms + below / radius, 0.0) if radius > 0.0 else norms
            start = np.maximum(start, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.penalised, self.reach(start, steps, radius), 0.0)


@cache
def require_own(kind: type[RowNorm]) -> None:
    """Refuse a penalty that lacks what a certificate needs: without it there is no proof, only a number."""
    for name in ("value", "gauges", "prox", "reach"):
        if getattr(kind, name) is getattr(RowNorm, name):
            raise ValueError(
                f"{kind.__name__} does not define `{name}`: a penalty needs value, gauges, prox and reach. "
                "Without them nothing can be certified (docs: Adding a penalty)."
            )
