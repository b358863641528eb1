"""Whether a feature matters in any task: one test of its estimates in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2, norm
from scipy.stats import f as fisher
from scipy.stats import t as student

Array = np.ndarray[Any, Any]

_LEAST_P = 1e-300


def independent_rows(pvalues: Array) -> Array:
    """P-values of features (rows) whose tasks (columns) have no rows in common, from those of single coefficients.

    Each becomes the normal score with the same p-value; the sum of their squares is chi-squared with as many degrees of
    freedom as there are tasks. NaN is a task without an estimate.
    """
    known = np.isfinite(pvalues)
    scores = norm.isf(0.5 * np.maximum(np.where(known, pvalues, 1.0), _LEAST_P))
    count = known.sum(axis=1)
    found = chi2.sf(np.sum(np.square(scores) * known, axis=1), np.maximum(count, 1))
    return np.where(count > 0, found, np.nan)


def related_rows(estimates: Array, covariances: Array, freedom: Array) -> Array:
    """The same for tasks that have rows or groups in common, from covariances (features, tasks, tasks).

    Hotelling's: ``b' V^-1 b (nu - k + 1) / (nu k)`` has the F distribution with k and nu - k + 1 degrees of freedom, nu
    being the fewest of a task: `freedom` (features, tasks). Where fewer than 2 k are left, the sum of squared scores is
    compared with a multiple of chi-squared that has its first two moments.
    """
    found = np.full(len(estimates), np.nan)
    for j, (own, covariance, degrees) in enumerate(zip(estimates, covariances, freedom, strict=True)):
        errors = np.sqrt(np.diag(covariance))
        known = np.flatnonzero(np.isfinite(own) & np.isfinite(errors) & (errors > 0.0))
        k = len(known)
        if not k:
            continue
        scores = own[known] / errors[known]
        related = covariance[np.ix_(known, known)] / np.outer(errors[known], errors[known])
        nu = float(np.min(degrees[known]))
        if nu >= 2 * k and np.linalg.eigvalsh(related)[0] > 1e-8:
            statistic = float(scores @ np.linalg.solve(related, scores))
            found[j] = fisher.sf(statistic * (nu - k + 1.0) / (nu * k), k, nu - k + 1.0)
            continue
        pvalues = 2.0 * student.sf(np.abs(scores), degrees[known])
        squares = np.square(norm.isf(0.5 * np.maximum(pvalues, _LEAST_P)))
        spread = float(np.sum(np.square(related))) / k
        found[j] = chi2.sf(float(squares.sum()) / spread, k / spread)
    return found
