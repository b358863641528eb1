r"""Estimates divided by errors, and how large they must be.

An error from nu degrees of freedom of residuals that do not know the estimate gives Student's distribution. Where the
estimate is itself a sum of the residuals, :math:`\sum_i a_i p_i`, as it is for a coefficient that a model has left at
zero, and its error is that of one noise of all residuals, it is in its own error, and the ratio is *internally*
studentised: never above :math:`\sqrt\nu`. With

.. math::

    t = T \sqrt{\frac{\nu - 1}{\nu - T^2}}

it is the t test of a least-squares fit that has this feature as well, on one degree of freedom less (Thompson 1935).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student

Array = np.ndarray[Any, Any]


def two_sided(ratios: Array, freedom: Array, internal: Array) -> Array:
    """P-values; `internal` says which ratios have their estimate in their error."""
    rest, inner = freedom - 1.0, internal & (freedom > 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(ratios) * np.sqrt(rest / np.maximum(freedom - np.square(ratios), 0.0))
    return np.asarray(2.0 * student.sf(np.where(inner, moved, np.abs(ratios)), np.where(inner, rest, freedom)))


def half_width(level: float, freedom: Array, internal: Array) -> Array:
    """Errors between an estimate and the ends of its interval: where `two_sided` is 1 - level."""
    inner = internal & (freedom > 1.0)
    nu = np.where(inner, freedom - 1.0, freedom)
    found = student.isf(0.5 * (1.0 - level), nu)
    return np.asarray(np.where(inner, found * np.sqrt(freedom / (nu + np.square(found))), found))
