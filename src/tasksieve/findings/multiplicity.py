"""P-values of many tests, adjusted for their number."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def holm(pvalues: Array, n_tests: int) -> Array:
    """Holm's (1979): at most one false rejection with probability alpha, whatever the tests have to do with each other.

    `n_tests` counts all tests that were meant; those whose p-values are not here (or NaN) have 1, which is never too
    small.
    """
    order, ranked = _ranked(pvalues)
    steps = np.maximum.accumulate(ranked * (n_tests - np.arange(len(ranked))))
    return _back(pvalues, order, steps)


def benjamini_yekutieli(pvalues: Array, n_tests: int) -> Array:
    """Benjamini and Yekutieli's (2001): the expected share of false rejections, whatever the tests have to do with each
    other. `n_tests` as in `holm`."""
    order, ranked = _ranked(pvalues)
    harmonic = float(np.sum(1.0 / np.arange(1, n_tests + 1)))
    steps = ranked * (n_tests * harmonic) / np.arange(1, len(ranked) + 1)
    return _back(pvalues, order, np.minimum.accumulate(steps[::-1])[::-1])


def _ranked(pvalues: Array) -> tuple[Array, Array]:
    """Where the known p-values are, from small to large, and these."""
    known = np.flatnonzero(np.isfinite(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    return order, pvalues[order]


def _back(pvalues: Array, order: Array, adjusted: Array) -> Array:
    found = np.full(len(pvalues), np.nan)
    found[order] = np.minimum(adjusted, 1.0)
    return found
