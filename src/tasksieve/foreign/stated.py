"""A problem that another program has stated, in our words: what `grade` is to be given in place of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from ..penalties import Groups, RowPenalty

Array = np.ndarray[Any, Any]


@dataclass
class GivenData:
    """The data that come with coefficients, as far as conversions ask for them."""

    X: Any
    y: Any
    n_features: int
    sample_weight: Any = None
    offset: Any = None
    #: whether coefficients have an axis more than those of one model with one output
    is_path: bool = False

    @cached_property
    def weights(self) -> Array:
        """Of rows, summing to 1."""
        n = self.n_rows
        given = np.ones(n) if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)
        found = np.broadcast_to(given, (n,))
        return np.asarray(found / found.sum())

    @cached_property
    def n_rows(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    @cached_property
    def matrix(self) -> Any:
        """X as numbers, dense or sparse columns: of conversions that work on columns."""
        if scipy.sparse.issparse(self.X):
            return scipy.sparse.csc_array(self.X)
        return np.asarray(self.X, dtype=np.float64)

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Weighted means and variances of columns."""
        X, w = self.matrix, self.weights
        mean = np.asarray(w @ X).ravel()
        if scipy.sparse.issparse(X):
            square = X.copy()
            square.data = square.data**2
            return mean, np.maximum(np.asarray(w @ square).ravel() - mean * mean, 0.0)
        return mean, np.asarray(w @ np.square(X - mean)).ravel()

    def deviations(self) -> Array:
        """Standard deviations of columns about their means; 1 for a constant column."""
        found = np.sqrt(self.moments[1])
        found[found <= 1e-12 * np.abs(self.moments[0])] = 1.0
        return np.where(found > 0.0, found, 1.0)

    def spread_of_y(self, centred: bool) -> float:
        """Of what is left of y beside the offset: its weighted standard deviation, or its root mean square."""
        y = np.asarray(self.y, dtype=np.float64)
        y = y if self.offset is None else y - np.asarray(self.offset, dtype=np.float64)
        left = y - self.weights @ y if centred else y
        return float(np.sqrt(self.weights @ np.square(left)))


@dataclass
class StatedProblem:
    """A problem in our words.

    - `alphas`: Strengths of the norm, () or (K,); the ridge is ``ridge_ratio`` times these.
    - `options`: What `grade` takes beside: loss, penalty, fit_intercept, standardize, ...
    - `columns`: What columns of X are multiplied by to become ours (coefficients are divided); 0 leaves one out.
    - `constant`: The number in a column that stands for a penalised intercept.
    - `note`: What a reader should know: what of theirs is not graded as it is.
    """

    alphas: Array
    ridge_ratio: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    columns: Array | None = None
    constant: float | None = None
    note: str = ""

    def inward(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Their coefficients (..., d) and intercepts as those of our problem."""
        rows = np.asarray(coef, dtype=np.float64)
        if self.columns is not None:
            out = self.columns == 0.0
            if rows[..., out].any():
                left = int(np.flatnonzero(rows[..., out].reshape(-1, int(out.sum())).any(axis=0))[0])
                raise ValueError(f"coef of feature {np.flatnonzero(out)[left]} must be 0: the problem leaves it out.")
            rows = np.divide(rows, self.columns, out=np.zeros_like(rows), where=~out)
        if self.constant is not None:
            rows = np.concatenate([rows, intercept[..., None] / self.constant], axis=-1)
            intercept = np.zeros_like(intercept)
        return rows, intercept

    def outward(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients and intercepts of our problem as theirs."""
        if self.constant is not None:
            coef, intercept = coef[..., :-1], coef[..., -1] * self.constant
        return (coef if self.columns is None else coef * self.columns), intercept

    def design(self, data: GivenData) -> Any:
        """X of our problem: as it is where the columns stay what they are."""
        if self.columns is None and self.constant is None:
            return data.X
        X = data.matrix
        if self.columns is not None:
            X = X * self.columns[None, :] if isinstance(X, np.ndarray) else X @ scipy.sparse.diags_array(self.columns)
        if self.constant is None:
            return X
        extra = np.full((data.n_rows, 1), self.constant)
        return np.hstack([X, extra]) if isinstance(X, np.ndarray) else scipy.sparse.hstack([X, extra], format="csc")


#: columns as they are; by their standard deviations, times a number; or by numbers of their own
Scales = float | Array | None


def penalised(
    error: Callable[[str], ValueError],
    data: GivenData,
    strengths: Array,
    *,
    l1_ratio: float = 1.0,
    factors: Array | None = None,
    scales: Scales = None,
    about_mean: bool = True,
    penalty: str | RowPenalty = "l21",
    ridge: float = 1.0,
    left_out: Array | None = None,
    constant: float | None = None,
    note: str = "",
    **options: Any,
) -> StatedProblem:
    r"""The elastic net of other programs in our words.

    .. math:: \lambda \sum_j v_j \Bigl(r\, \lVert c_j W_j \rVert + \frac{1 - r}{2}\, \text{ridge}\,
        \lVert c_j W_j \rVert_2^2\Bigr)

    - `factors`: v, for features or, with `Groups`, for groups in the order of their labels.
    - `scales`: c: None for 1, a number to be multiplied with the columns' standard deviations, or an array.
    - `about_mean`: Whether our own deviations are about the means: they are not without an intercept.
    - `ridge`: What the quadratic part has beside.
    - `left_out`: Features whose coefficients are held at 0.
    """
    if not 0.0 < l1_ratio <= 1.0:
        raise error(
            "with a ridge alone nothing is selected, and there is no norm whose dual ball proves a zero: only problems "
            "with a sparse penalty are graded."
        )
    own = None if factors is None or np.all(factors == 1.0) else np.asarray(factors, dtype=np.float64)
    ratio = ridge * (1.0 - l1_ratio) / l1_ratio
    columns: Array | None = None
    alphas, standardize = strengths * l1_ratio, False
    grouped = isinstance(penalty, Groups)
    plain = own is None or ratio == 0.0
    if isinstance(scales, float) and plain and about_mean and constant is None and left_out is None:
        alphas, ratio, standardize = alphas * scales, ratio * scales, True
    elif scales is not None:
        columns = 1.0 / (scales * data.deviations() if isinstance(scales, float) else np.asarray(scales))
    if own is not None and not plain:
        if (own == 0.0).any():
            raise error(
                "features (or groups) without a penalty beside a ridge: theirs have no ridge, and ours is of all "
                "features. Fit with l1_ratio (alpha) = 1, or with factors > 0."
            )
        # w = g / root(v): the ridge v w^2 is g^2, and the norm v |w| is root(v) |g|
        roots = np.sqrt(own)
        spread = roots[np.unique(penalty.labels, return_inverse=True)[1]] if grouped else roots
        own, columns = roots, (1.0 if columns is None else columns) / spread
    if left_out is not None and len(left_out):
        columns = np.ones(data.n_features) if columns is None else np.array(columns)
        columns[left_out] = 0.0
    if own is not None and grouped:
        if (own == 0.0).any():
            raise error("groups without a penalty are not graded: their weights must be > 0.")
        penalty = Groups(penalty.labels, penalty.inside, mix=penalty.mix, weights=own)
    elif own is not None:
        options["feature_weights"] = own
    if constant is not None and columns is not None:
        raise error("a penalised intercept goes with columns as they are.")
    if constant is not None and own is not None and not grouped:
        options["feature_weights"] = np.append(own, 1.0)
    return StatedProblem(
        np.asarray(alphas),
        float(ratio),
        {"penalty": penalty, "standardize": standardize, **options},
        columns,
        constant,
        note,
    )
