"""How far correlations lie outside the dual set, in rows of shape (d, T).

A dual vector u is feasible for the penalty sum_j l1_j ‖W_j‖₁ + group_j ‖W_j‖₂ if every row m_j of its correlations
satisfies ‖soft(m_j, l1_j)‖ <= group_j. The polar is the smallest q such that u/q is feasible:

    q = max_j q_j,   ‖soft(m_j, q_j l1_j)‖ = q_j group_j        (l1 = 0: q_j = ‖m_j‖/group_j).

With the constraint W >= 0 the negative part of m is ignored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_MAX_ITER = 100


def polar(
    correlations: Array,
    group: ArrayLike,
    l1: ArrayLike = 0.0,
    positive: bool = False,
    errors: ArrayLike | None = None,
) -> float:
    """Smallest q for which correlations/q lie in the dual set; never too small.

    Parameters
    ----------
    correlations : array of shape (d, T)
        Correlations m of the dual vector with each feature in each task.
    group, l1 : float or array of shape (d,)
        Strengths of the penalty. Rows where both are 0 are not penalised and set no bound.
    positive : bool
        Whether the coefficients are constrained to be non-negative.
    errors : array of shape (d,), optional
        Proven bounds on the Euclidean error of each row: q then serves for all correlations within them.

    Returns
    -------
    float
        The polar; 0 where nothing bounds the dual vector.
    """
    value, _ = _polar(correlations, group, l1, positive, errors)
    return value


def steepest_row(
    correlations: Array, group: ArrayLike, l1: ArrayLike = 0.0, positive: bool = False
) -> tuple[NDArray[np.intp], Array]:
    """The single row of coefficients that pulls hardest against the dual set: argmax <m, W>/Omega(W), ‖W‖ = 1.

    At the smallest penalty whose solution is zero, this row stands in for the solution when a cut is wanted
    (Wang & Ye 2015, Theorem 5, the case lambda0 = lambda_max).

    Returns
    -------
    features : array of shape (1,)
    rows : array of shape (1, T)
        Empty, (0,) and (0, T), where all correlations vanish.
    """
    value, feature = _polar(correlations, group, l1, positive, None)
    n_tasks = correlations.shape[1]
    if value <= 0.0:
        return np.empty(0, dtype=np.intp), np.empty((0, n_tasks))
    m = correlations[feature]
    height = np.maximum(m, 0.0) if positive else np.abs(m)
    tau = value * np.broadcast_to(np.asarray(l1, dtype=np.float64), correlations.shape[:1])[feature]
    row = np.maximum(height - tau, 0.0)
    if not row.any():  # no group part: the largest entry alone
        row = (height == height.max()).astype(np.float64)
    row = np.copysign(row, m)
    return np.array([feature], dtype=np.intp), (row / np.linalg.norm(row))[None, :]


def _polar(
    correlations: Array, group: ArrayLike, l1: ArrayLike, positive: bool, errors: ArrayLike | None
) -> tuple[float, int]:
    """The polar and a row that attains it."""
    shape = correlations.shape[:1]
    group = np.broadcast_to(np.asarray(group, dtype=np.float64), shape)
    l1 = np.broadcast_to(np.asarray(l1, dtype=np.float64), shape)
    error = np.broadcast_to(np.asarray(0.0 if errors is None else errors, dtype=np.float64), shape)
    height = np.maximum(correlations, 0.0) if positive else correlations
    penalised = group + l1 > 0.0
    if not penalised.any():
        return 0.0, 0
    if not l1.any():
        length = np.sqrt(np.einsum("ij,ij->i", height, height)) + error
        ratio = np.divide(length, group, out=np.zeros(shape), where=penalised)
        best = int(ratio.argmax())
        return float(ratio[best]), best

    # f_j(q) = ‖soft(m_j, q l1_j)‖ + error_j - q group_j is convex and falls, so Newton's method from the left is
    # monotone. All rows share the largest q found so far: a row with f_j(q) <= 0 there is done.
    height = np.abs(height)
    start = np.divide(height.max(axis=1) + error, group + l1, out=np.zeros(shape), where=penalised)
    best = int(start.argmax())
    q = float(start[best])
    rows = np.flatnonzero(penalised)
    for _ in range(_MAX_ITER):
        soft = np.maximum(height[rows] - (q * l1[rows])[:, None], 0.0)
        length = np.sqrt(np.einsum("ij,ij->i", soft, soft))
        # inside the box q was already large enough: start bounds max|m| + error <= q (group + l1)
        value = np.where(length > 0.0, length + error[rows] - q * group[rows], 0.0)
        alive = value > 4.0 * np.finfo(float).eps * q * (group[rows] + l1[rows])
        if not alive.any():
            break
        rows, soft, length, value = rows[alive], soft[alive], length[alive], value[alive]
        step = value / (group[rows] + l1[rows] * soft.sum(axis=1) / length)
        best = int(rows[step.argmax()])
        q += float(step.max())
    else:  # not met in practice; the dual set holds the Euclidean ball of radius group + l1
        bound = np.linalg.norm(height[rows], axis=1) + error[rows]
        q = max(q, float((bound / (group + l1)[rows]).max()))
    return q * (1.0 + 1e-14), best
