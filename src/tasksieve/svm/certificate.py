r"""The certificate of the numbers that a graph model stores: coefficients, intercepts, dual coefficients.

.. math::

    P(W) - \min P \le \sum_i \bigl[c_i \ell(z_i) + c_i \ell^*(-\beta_i / c_i) + \beta_i z_i\bigr]
    + \tfrac12 \lVert W - M V(\beta) \rVert^2_{I + L}

holds for every W and every feasible beta, so none of the solver's sums need be trusted. One pass over the rows computes
scores z and V in twice the precision; what is left of rounding is bounded and part of the gap:

- rows: `row_terms`, over the interval in which each score is known;
- the distance: with :math:`R = (I + L) W - V` it is :math:`\langle R, M R \rangle \le \lVert R \rVert^2`, and the error
  of R is added to its length;
- the penalty is summed as :math:`\tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{s<t} A_{st} \lVert w_s - w_t
  \rVert^2`, where nothing cancels;
- 64 units of the objective: weights C s_i and edges are products that were rounded, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels import kernels
from ..losses import gamma
from .row_terms import row_terms

Array = np.ndarray[Any, Any]

NOT_FINITE = (
    "The duality gap is not a number: products of X, y, C, sample_weight and graph weights leave the range of double "
    "precision. Bring the columns of X, y, C and sample_weight to ordinary sizes."
)
BLOCK = 1 << 16  # rows at a time
COLUMNS = 1 << 13  # columns at a time
LARGEST_MEASURED = 1 << 18  # entries of W up to which V is computed again
_FINAL = 64.0
_LOST = 2.0**-960  # more than all products below the range of double precision can lose


@dataclass
class StoredCertificate:
    """`dual_gap` bounds what the stored numbers are above the optimum, and what `objective` is above it, too."""

    objective: float
    dual_gap: float


def is_measured(problem: Any) -> bool:
    """Whether V(beta) is computed again, in twice the precision; else W is known to be M V(beta), rounded."""
    return (
        problem.dtype == np.float64
        and problem.width <= COLUMNS
        and problem.n_tasks * problem.width <= LARGEST_MEASURED
    )


def certify_stored(
    problem: Any, w: Array, intercept: Array, beta: Array, apart: float | None = None
) -> StoredCertificate:
    """Certify coefficients, intercepts and a dual point in one pass over the rows.

    - `w` (array of shape (n_tasks, width)): Its last column is not read where there is a constant feature: the
      intercepts show.
    - `intercept`: array of shape (n_tasks,)
    - `beta` (array of shape (n_samples,)): Feasible (`feasible`).
    - `apart`: Only for tables too large to be measured (`is_measured`): bound of ``||W - M V||`` in the metric of I +
      L.
    """
    scores, sizes = np.empty(problem.n_samples), np.empty(problem.n_samples)
    v = np.empty(w.shape) if is_measured(problem) else None
    kernels.measure_rows(problem.handle, w, intercept, beta, problem.threads, scores, sizes, v)
    loss, loss_error, terms = _row_sums(problem, scores, sizes, beta)
    penalty = stored_penalty(problem, w, intercept)
    objective = loss + penalty
    if v is not None:
        apart = _distance(problem, w, intercept, v, dual_sizes(problem, beta))
    assert apart is not None
    gap = (terms + 0.5 * apart * apart) * (1.0 + gamma(_FINAL))
    gap += loss_error + gamma(min(problem.width, COLUMNS) + problem.n_tasks + 32) * penalty
    gap += gamma(_FINAL) * objective + _LOST
    if not np.isfinite(gap):
        raise ValueError(NOT_FINITE)
    return StoredCertificate(objective, gap)


def _row_sums(problem: Any, scores: Array, sizes: Array, beta: Array) -> tuple[float, float, float]:
    """The loss, how far it may be off, and the sum of the bounds of the Fenchel-Young terms."""
    entries = problem.n_entries + 16
    loss, error, terms = [], [], []
    for start in range(0, problem.n_samples, BLOCK):
        part = slice(start, start + BLOCK)
        used = problem.c[part] > 0.0
        z, size, y, c, b = (values[part][used] for values in (scores, sizes, problem.y, problem.c, beta))
        off = gamma(3) * np.abs(z) + gamma(entries) ** 2 * size + entries * 2.0**-1070
        found = row_terms(problem.loss, problem.epsilon, z, off, y, c, b)
        total = np.empty(1)
        kernels.exact_products(c, found.loss, np.array([0, len(c)]), total, np.empty_like(total))
        loss.append(float(total[0]))
        error.append(float(c @ found.error))
        terms.append(float(np.sum(found.term)))
    up = 1.0 + gamma(min(problem.n_samples, BLOCK) + 16)
    return math.fsum(loss), math.fsum(error) * up, math.fsum(terms) * up


# --- the penalty -------------------------------------------------------------------------------------------------


def stored_penalty(problem: Any, w: Array, intercept: Array) -> float:
    """½ <W, (I + L) W> without cancellation, in blocks of columns."""
    edges = -problem.coupling
    width = problem.width - (problem.bias > 0)
    parts = [
        _energy(edges, w[:, start : min(start + COLUMNS, width)].astype(np.float64))
        for start in range(0, width, COLUMNS)
    ]
    if problem.bias > 0:
        parts.append(_energy(edges, intercept[:, None]) / problem.bias / problem.bias)
    return 0.5 * math.fsum(parts)


def _energy(edges: Array, block: Array) -> float:
    parts = [float(np.vdot(block, block))]
    for t in range(len(block) - 1):
        near = t + 1 + np.flatnonzero(edges[t, t + 1 :])
        if len(near):
            apart = block[near] - block[t]
            parts.append(float(edges[t, near] @ np.einsum("sj,sj->s", apart, apart)))
    return math.fsum(parts)


# --- how far W is from M V(beta) -----------------------------------------------------------------------------------


def dual_sizes(problem: Any, beta: Array) -> float:
    """Sum of abs(beta_i) ||x_i||: bounds the length of V, and of what its sums are made of."""
    return float(np.abs(beta) @ np.sqrt(problem.sample_squares() + 2.0**-1000)) * (1.0 + 1e-9)


def _distance(problem: Any, w: Array, intercept: Array, v: Array, sizes: float) -> float:
    """Upper bound of ``||W - M V||`` in the metric of I + L, from R = (I + L) W - V."""
    table, edges = w, -problem.coupling
    if problem.bias > 0:
        table = np.column_stack([w[:, :-1], intercept / problem.bias])
    rest, error = np.empty_like(table), np.empty_like(table)
    for t, row in enumerate(table):
        near = np.flatnonzero((edges[t] != 0.0) & (np.arange(len(table)) != t))
        pulls = edges[t, near, None] * (row - table[near])
        rest[t] = row + np.sum(pulls, axis=0) - v[t]
        error[t] = np.abs(row) + np.sum(np.abs(pulls), axis=0) + np.abs(v[t])
        if (
            problem.bias > 0
        ):  # coefficients of the constant feature were divided: their differences are not exact
            error[t, -1] += edges[t, near] @ (np.abs(row[-1]) + np.abs(table[near, -1]))
    longest = float(np.max(np.diff(problem.offsets), initial=0))
    square = float(np.vdot(rest, rest))
    metric = float(np.vdot(rest, problem.similarity @ rest))
    # what the inverse may be off, relative to its largest eigenvalue, which is 1
    off = gamma(32 * len(table) ** 2) * float(np.max(np.sum(np.abs(edges), axis=1)))
    shorter = math.sqrt(max(min(metric + off * square, square), 0.0)) * (1.0 + gamma(rest.size + 16))
    blur = gamma(len(table) + 12) * math.sqrt(float(np.vdot(error, error)))
    return shorter + blur * (1.0 + 1e-9) + gamma(longest + 64) ** 2 * sizes


def rebuilt_distance(problem: Any, sizes: float, length: float, penalty: float) -> float:
    """The same for a W that `GraphProblem.rebuild` has made of beta, by the operations that it took.

    V, then M V are computed and rounded; the inverse M itself is off by as much as (I + L) M is off the identity.

    - `sizes`: `dual_sizes` of beta.
    - `length`: Upper bound of the norm of V.
    - `penalty`: ½ <W, (I + L) W>.
    """
    unit = 2.0**-24 if problem.dtype == np.float32 else 2.0**-53
    coupling, similarity, tasks = problem.coupling, problem.similarity, problem.n_tasks
    largest = math.sqrt(float(np.max(np.sum(np.abs(coupling), axis=1))))
    depth = float(np.max(np.diff(problem.offsets), initial=0)) + 16
    wrong = float(np.linalg.norm(coupling @ similarity - np.eye(tasks)))
    wrong += gamma(2 * tasks + 16) * float(np.linalg.norm(np.abs(coupling) @ similarity))
    mixed = 1.01 * unit * largest * math.sqrt(2.0 * penalty) + gamma(tasks + 16) * largest * length
    return (mixed + (1.01 * unit + wrong) * length + gamma(depth) * sizes) * (1.0 + 1e-9)
