r"""Score vectors of a task for single features: columns with what the other columns say of them taken away.

Rows have the metric ``q = s c`` of their weights s and of the loss's curvature c at the model. With centred columns
:math:`x_k` of weighted length :math:`\sqrt{\sum q}\,\sigma_k`, the Lasso of column j on the others leaves a residual
:math:`z_j`, and coefficients :math:`a_i` of the rows with :math:`\sum_i a_i c_i x_{ij} = 1` that weigh the model's
residuals in the debiased estimate. What the model's errors :math:`\delta` of the other coefficients (and of the
intercept at the mean row, k = 0, :math:`x_0 = 1`, :math:`\sigma_0 = 1`) add to it is, for least squares exactly,

.. math::

    \Bigl|\sum_k \delta_k \bigl(\sum_i a_i c_i x_{ik} - 1_{k=j}\bigr)\Bigr|
    \le \eta_j \sum_k \sigma_k |\delta_k|, \qquad
    \eta_j = \max_k \frac{|\sum_i a_i c_i x_{ik} - 1_{k=j}|}{\sigma_k}.

The :math:`a_i` are the numbers that the computer has, not those of an optimum: eta_j is a property of these numbers,
and whatever the Lasso has left undone is in it. Its computed value is raised by all rounding: a sum of n products of
entries with relative errors of a few units is off by :math:`\gamma_{n+6} \sum_i |a_i c_i x_{ik}|` at most, which is
:math:`\gamma_{n+6} \lVert a c / \sqrt q \rVert \lVert \sqrt q x_k \rVert` at most (Cauchy and Schwarz).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import qr

from .._kernels import kernels
from ..design.threads import one_blas_thread, thread_count
from ..losses.base import gamma

Array = np.ndarray[Any, Any]

# Strengths that fall from sqrt(2 log d / n) until the noise factor has grown by a quarter (Zhang and Zhang 2014), or
# the bias factor hardly falls any more, as it does where there are many more columns than rows.
_RATIO, _VALUES, _GROWTH = 0.8, 16, 1.25
_TOLERANCE, _ROUNDS = 1e-9, 50
_LEAST_CURVATURE = 1e-8  # of the largest: rows of less count as much in the Lasso


class NodewiseTask:
    """The columns of one task in the metric of its rows.

    - `columns` (n, d): As they are; overwritten with the centred ones.
    - `weights`, `curvature` (n,): s > 0 and c >= 0.
    """

    def __init__(self, columns: Array, weights: Array, curvature: Array, fit_intercept: bool) -> None:
        metric = weights * np.maximum(curvature, _LEAST_CURVATURE * float(curvature.max()))
        self._total = float(metric.sum())
        self._curvature, self._root, self._weights = curvature, np.sqrt(metric), weights
        self._has_intercept = fit_intercept
        if fit_intercept:
            constant = np.ptp(columns, axis=0) == 0.0
            columns -= np.where(constant, columns[0], metric @ columns / self._total)
        self._columns = columns
        scaled = self._root[:, None] * columns
        lengths = np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
        #: standard deviations of the columns in the metric; 0: nothing is known of such a feature
        self.deviations = lengths / math.sqrt(self._total)
        scaled /= np.where(lengths > 0.0, lengths, 1.0)
        self._lengths, self._basis = lengths, None
        n, d = scaled.shape
        if n > d:  # the Lassos depend on the products of columns alone: a square matrix has the same
            self._basis, scaled = qr(scaled, mode="economic", check_finite=False)
        self._scaled = np.asfortranarray(scaled)
        self._start = math.sqrt(2.0 * math.log(max(d, 2)) / n)

    def rows(self, targets: Array, penalty: Array | None) -> tuple[Array, Array]:
        """The a_i (targets, n) and the strengths of the Lassos, `penalty` or the rule's; zeros where a feature does not
        vary. Columns have length 1 there: strengths are correlations."""
        start = np.full(len(targets), min(self._start, 1.0)) if penalty is None else penalty
        z, strengths = np.empty((len(targets), len(self._scaled))), np.empty(len(targets))
        values = _VALUES if penalty is None else 1
        with one_blas_thread():
            kernels.nodewise(
                self._scaled, targets, np.ascontiguousarray(start), values, _RATIO, self._start, _GROWTH, _TOLERANCE,
                _ROUNDS, thread_count(), z, strengths,
            )  # fmt: skip
        if self._basis is not None:
            z = z @ self._basis.T
        a = z * (self._weights / self._root)
        along = np.einsum("ij,ji->i", a * self._curvature, self._columns[:, targets])
        return a / np.where(along > 0.0, along, np.inf)[:, None], strengths

    def bias_factors(self, targets: Array, a: Array) -> Array:
        """eta of every target, at most, all rounding included; infinite where there is no a."""
        n = len(self._root)
        weighed = a * self._curvature
        off = weighed @ self._columns
        off[np.arange(len(targets)), targets] -= 1.0
        rounding = gamma(n + 6) * np.linalg.norm(weighed / self._root, axis=1) * (1.0 + gamma(n + 6))
        varies = self.deviations > 0.0
        # the error of a product over the length of its column is at most `rounding`, and |1 - product| is rounded once
        worst = np.max(np.abs(off[:, varies]) / self._lengths[varies], axis=1, initial=0.0) + rounding
        found = worst * math.sqrt(self._total)
        if self._has_intercept:
            found = np.maximum(found, np.abs(weighed.sum(axis=1)) + rounding * math.sqrt(self._total))
        return np.where(a.any(axis=1), found * (1.0 + gamma(2 * n + 16)), np.inf)
