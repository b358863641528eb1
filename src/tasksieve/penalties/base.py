"""What the engine needs of a penalty, and what a custom penalty has to define.

A penalty is a norm on the rows of W (one row a feature, one column a task) at one strength. The first section of
`RowPenalty` is what you write; the others have defaults, for a penalty to overrule where it knows more. The mathematics
is in `docs/develop/mathematics.md`, the checks in `tasksieve.checks.check_penalty`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from .._kernels import kernels
from ..described import Described
from .coupling import Coupling

Array = np.ndarray[Any, Any]

REJECT = 1.0 - 1e-9  # a bound below this is below 1 whatever rounding did


def row_norms(rows: Array) -> Array:
    """Euclidean norms of the rows."""
    out = np.empty(len(rows))
    kernels.row_norms(np.ascontiguousarray(rows, dtype=np.float64), out)
    return out


def live_rows(rows: Array) -> Array:
    """Indices of the rows that are not zero."""
    return np.asarray(rows.any(axis=1)).nonzero()[0]


class RowForm(NamedTuple):
    """A norm of rows whose minimiser along one row is compiled (`_kernels/row_update.hpp`).

    Attributes
    ----------
    kind : {"sum", "largest", "split"}
        ``group ||w||_2 + l1 ||w||_1``; ``group max_t |w_t|``; ``min group ||p||_2 + l1 ||q||_1`` over ``p + q = w``.
    group, l1 : arrays, one entry a row
        Strengths.
    """

    kind: Literal["sum", "largest", "split"]
    group: Array
    l1: Array

    @property
    def code(self) -> int:
        """The kind as kernels know it."""
        return ("sum", "largest", "split").index(self.kind)


class BlockForm(NamedTuple):
    """The same for blocks of rows that have one norm together: each block is one long row.

    Attributes
    ----------
    kind : {"sum", "stack"}
        ``group ||W_B||_F + l1 ||W_B||_1``, or with the norms of the block's rows in place of its entries.
    group, l1 : arrays, one entry a block
        Strengths.
    block : array of int, one entry a row
        The block of each row.
    """

    kind: Literal["sum", "stack"]
    group: Array
    l1: Array
    block: Array

    @property
    def code(self) -> int:
        """The kind as kernels know it."""
        return {"sum": 0, "stack": 3}[self.kind]


class RowPenalty(Described):
    """``sum_j u_j N(W_j)`` with a norm N that depends on the sizes of a row's entries only.

    A subclass implements `value`, `gauges`, `prox` and `reach` with the help of `weights`; `on` and `restrict` where it
    keeps other numbers of the features than these. It is made without knowing the data; `on`, `at` and `restrict` make
    copies for given features and strengths. All other methods have defaults; those that a penalty may know better are
    listed by section in `penalties/base.py`.

    Attributes
    ----------
    weights : array, one entry a row
        Strength times feature weight. 0: not penalised.
    positive : bool
        Only W >= 0. The methods of a subclass need not know: they are given positive parts.
    ridge : float
        Strength of ``ridge/2 ||W||_F^2`` beside the norm.
    coupling : Coupling, optional
        A graph of tasks beside it. Together they are the quadratic part ``1/2 <W R, W>``, ``R = ridge I + L``.
    """

    #: words for reports
    label = "rows"
    #: the penalty as a report writes it, "α Σ_j ..."; each class defines its own
    formula: str
    weights: Array
    positive: bool = False
    ridge: float = 0.0
    coupling: Coupling | None = None
    #: dual feasibility is a matter of each row alone
    separable: bool = True
    #: the penalty at unit strength that this one was made of, and the strength, where that is so
    origin: tuple[Any, float] | None = None
    _ridge_ratio: float = 0.0
    _fixed_ridge: float = 0.0

    def __init_subclass__(cls, **options: Any) -> None:
        """A class with a norm of its own takes over no compiled form of its parent's: that stands for another norm."""
        super().__init_subclass__(**options)
        if any(name in vars(cls) for name in ("value", "gauges", "prox")):
            for form in ("thresholds", "row_form", "block_form", "sorted_form"):
                if form not in vars(cls):
                    setattr(cls, form, getattr(RowPenalty, form))

    # -- what every penalty writes --------------------------------------------------------------------------------

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

    # -- on features, at a strength: `on` and `restrict` suit a penalty whose only numbers are `weights` ----------

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
        _require_own(type(self))  # type: ignore[arg-type]
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

    def at(self, lam: float) -> Self:
        """Of a penalty at unit strength: the one at strength lam."""
        scaled = self.times(lam)
        scaled.ridge = lam * self._ridge_ratio + self._fixed_ridge
        scaled.origin = self, lam
        return scaled

    def ridges(self, lams: Array) -> Array:
        """The ridge at each of some strengths."""
        return np.asarray(lams * self._ridge_ratio + self._fixed_ridge)

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

    def _copy(self) -> Self:
        """A shallow copy; several are made for every value of a path, so without `copy`'s ceremony."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("origin", None)
        return other

    # -- with positivity and the quadratic part: rarely overruled -------------------------------------------------

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

    # -- dual feasibility, from the gauges of rows: `Sorted` overrules these, where it joins all rows -------------

    #: names of the tests that find zero rows from bounds, where there are several
    tests: tuple[str, ...] = ()
    #: the part of the largest possible rate at which correlations are taken to move
    rate = 0.7

    def polar(self, gauges: Array) -> float:
        """The smallest v with M/v in the dual ball, from the gauges of its rows."""
        return float(np.maximum.reduce(gauges, initial=0.0))

    def certified(self, upper: Array, known: Array) -> Array:
        """Gauges that are proved by upper bounds, exact where they are known: a bound below 1 says no more than 1."""
        proved = np.maximum(upper, 1.0)
        np.copyto(proved, upper, where=known)
        return proved

    def inactive(self, upper: Array) -> Array:
        """Rows that are zero, from upper bounds of their gauges at the dual optimum."""
        return np.asarray(upper < REJECT)

    def open(self, upper: Array, known: Array) -> Array:
        """Features that are only bounded and could violate feasibility."""
        return ((upper >= 1.0) & ~known).nonzero()[0]

    def leading(self, gauges: Array) -> Array:
        """Rows that exceed their thresholds, worst first."""
        over = np.flatnonzero(gauges > 1.0)
        return over[np.argsort(-gauges[over])]

    def promising(self, levels: Array, last: float, lam: float) -> Array:
        """Rows for the first working set at lam, from `levels`: the strengths at which rows had gauge 1 at `last`.

        They would cross their threshold if correlations moved at 0.7 of the largest possible rate.
        """
        return (levels >= last - self.rate * (last - lam)).nonzero()[0]

    def with_test(self, name: str) -> Self:
        """The same penalty with another of its `tests`."""
        changed = self._copy()
        changed.test = name  # type: ignore[attr-defined]
        return changed

    @property
    def by_threshold(self) -> bool:
        """Whether only gauges near 1 and above matter to all of these: the others need not be known."""
        kind, answers = type(self), ("polar", "certified", "inactive", "open", "leading", "promising")
        return self.separable and all(getattr(kind, name) is getattr(RowPenalty, name) for name in answers)

    # -- blocks of rows that have one norm together, as those of `Groups`: the unit of screening, working sets and
    # feasibility. The gauge and the reach of a block are given to each of its rows.

    def size(self) -> int | None:
        """The number of features, where a penalty fits one number only; called without data."""
        return None

    def whole(self, features: Array) -> Array:
        """These features and all others of their blocks, ascending."""
        return features

    def pieces(self, size: int) -> list[Any]:
        """All rows in pieces of about a size, none of which cuts a block: slices, or arrays of indices; a single piece
        is a slice."""
        return [slice(low, min(low + size, len(self.weights))) for low in range(0, len(self.weights), size)]

    def named_blocks(self) -> tuple[Array, Array] | None:
        """Names of the blocks, and the number of each feature's, where blocks have names; called without data."""
        return None

    def names_of(self, features: Array) -> Array | None:
        """Names of the blocks that hold these features."""
        found = self.named_blocks()
        return None if found is None else np.asarray(found[0][np.unique(found[1][features])])

    # -- forms that compiled kernels and particular algorithms know: say one, and they apply ----------------------

    def thresholds(self) -> tuple[Array, Array | None] | None:
        """(group, l1): the gauge test is ``||soft(m, l1)|| < group``. None: another kind of gauge."""
        return None

    def row_form(self) -> RowForm | None:
        """The norm of a row, if it is one whose exact row updates are compiled: coordinate descent is for those."""
        form = self.thresholds() if self.separable else None
        if form is None:
            return None
        group, l1 = form
        return RowForm("sum", group, np.zeros(len(group)) if l1 is None else l1)

    def block_form(self) -> BlockForm | None:
        """The same for blocks of rows: block coordinate descent is for those."""
        return None

    def sorted_form(self) -> Array | None:
        """Non-increasing weights of the ranks, if the norm is ``sum_k weight_k ||W||_[k]``, rows in the order of their
        norms: its prox is compiled."""
        return None

    def group_form(self) -> Array | None:
        """The strengths g, if the norm is ``sum_j g_j ||W_j||_2``: Newton's method in the row norms is for that."""
        form = self.thresholds() if self.separable else None
        return None if form is None or form[1] is not None else form[0]

    # -- what makes screening sharper or a proof shorter ----------------------------------------------------------

    #: single entries of a row may be zero while the others are not
    has_entries: bool = False
    #: relative error of a computed gauge
    gauge_error: float = 1e-12

    def steepest(self, products: Array) -> tuple[Array, Array] | None:
        """One row of coefficients that attains the polar of M, as (feature, row): None if there is no formula."""
        return None

    def zero_entries(self, centre: Array, errors: Array, norms: Array, radius: float) -> Array | None:
        """Single coefficients that are zero over such a ball; None where entries are never zero by themselves.

        Never with a `coupling`: neighbours pull an entry away from zero that has no correlation of its own.
        """
        return None

    @property
    def euclid(self) -> Array | float | None:
        """K with gauge(m) <= K ||m||_2 for a row m; None where nothing but the gauge itself is to be used."""
        return None

    @property
    def outer(self) -> Array | None:
        """Largest Euclidean norm of a row of gauge 1; None if unknown."""
        return None

    # -- what fitted models show, and how certificates are written ------------------------------------------------

    def ties(self, features: Array, rows: Array) -> list[Array] | None:
        """Features grouped by equal norms of their rows, where the penalty draws rows together."""
        return None

    def split(self, rows: Array) -> dict[str, Array] | None:
        """Parts by name whose sum the rows are, where the penalty is a minimum over such parts; called without data."""
        return None

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Of a penalty on features at unit strength: the same in the words of the certificate's format
        (`docs/certificate-format.md`), the header's `penalty` and arrays.

        A class defines it for itself, not for those derived from it (`proof.forms.form_of`).
        """
        raise NotImplementedError


@cache
def _require_own(kind: type[RowPenalty]) -> None:
    """Refuse a penalty that lacks what a certificate needs: without it there is no proof, only a number."""
    for name in ("value", "gauges", "prox", "reach"):
        if getattr(kind, name) is getattr(RowPenalty, name):
            raise ValueError(
                f"{kind.__name__} does not define `{name}`: a penalty needs value, gauges, prox and reach. "
                "Without them nothing can be certified (docs: Adding a penalty)."
            )
