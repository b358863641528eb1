"""Columns in very different units: the penalty is one number for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from ..user_warnings import warn

# Columns whose deviations differ by more than this factor are not in comparable units.
COMPARABLE = 100.0
# In these types columns are indicators, genotypes or small counts: their deviations show how rare an entry is.
SMALL_TYPES = (np.int8, np.uint8, np.uint16)


class ScaleWarning(UserWarning):
    """The columns of X differ in scale by more than 100x, and `standardize` is False.

    A penalty of the same strength for all coefficients then decides by units: divide a column by 1,000, and its
    feature is selected last or never. ``standardize=True`` makes units irrelevant; coefficients stay in the original
    ones.

    The scale of a column is its weighted standard deviation within tasks, the largest over the tasks, each weighed by
    the root of its weights: what the solver has measured anyway. Not counted are constant columns, features that are
    not penalised, and features with a weight other than 1 in ``feature_weights``. Sparse matrices and matrices of int8
    or uint8 are not examined: there the deviation of a column says how rare its entries are, not what their unit is.

    Attributes
    ----------
    ratio : float
        Of the largest to the smallest scale.
    largest, smallest : int
        The features that have them.

    Examples
    --------
    >>> import warnings
    >>> import tasksieve as ts
    >>> warnings.simplefilter("ignore", ts.ScaleWarning)  # the scales are meant as they are
    """

    def __init__(self, message: str, ratio: float = np.inf, largest: int = -1, smallest: int = -1) -> None:
        super().__init__(message)
        self.ratio, self.largest, self.smallest = ratio, largest, smallest


def warn_scales(design: Design, storage: Any, feature_weights: np.ndarray | None, names: np.ndarray | None) -> None:
    """Warn of columns whose scales are not comparable; after a solve, so that all norms are known."""
    if not (storage.sparse or storage.dtype.type in SMALL_TYPES or _comparable(*design.norm_range())):
        warn_norms(design.longest(), feature_weights, names)


def _comparable(least: float, largest: float) -> bool:
    """Whether all norms are, as in most data."""
    return bool(largest <= COMPARABLE * least)


def warn_norms(norms: np.ndarray, feature_weights: np.ndarray | None, names: np.ndarray | None) -> None:
    """The same for norms of columns about their means."""
    if _comparable(norms.min(initial=np.inf), norms.max(initial=0.0)):
        return
    counted = norms > 0.0
    if feature_weights is not None:
        counted &= feature_weights == 1.0
    features = np.flatnonzero(counted)
    if len(features) < 2:
        return
    scales = norms[features]
    small, large = features[scales.argmin()], features[scales.argmax()]
    if norms[large] <= COMPARABLE * norms[small]:
        return
    with np.errstate(over="ignore"):
        ratio = norms[large] / norms[small]
    large_name, small_name = (
        f"feature {j}" if names is None else f"feature {j} ({str(names[j])[:60]!r})" for j in (large, small)
    )
    message = (
        f"The columns of X differ in scale: {large_name} varies {ratio:.2g} times as much as {small_name}, and alpha "
        "penalises coefficients alike in any units, so that features of small scale are selected last. Use "
        "standardize=True; coefficients stay in the original units. If the scales are meant, say so by "
        "feature_weights, or ignore ts.ScaleWarning."
    )
    warn(ScaleWarning(message, float(ratio), int(large), int(small)))
