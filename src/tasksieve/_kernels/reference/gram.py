"""NumPy twins of `gram.cpp`: Newton's systems from Gram matrices."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky

from .passes import segments


def extend_grams(x, offsets, columns, known, threads, gram):
    """``X_t' X_t`` of some columns into the leading corner of each ``gram[t]``; the first `known` are there already."""
    total = len(columns)
    for t, rows in enumerate([slice(0, x.shape[0])] if len(gram) == 1 else segments(offsets)):
        block = x[rows][:, columns]
        gram[t, known:total, :total] = block[:, known:].T @ block
        gram[t, :known, known:total] = gram[t, known:total, :known].T


def gram_factor(gram, slots, a, products, threads, factors, w):
    """Factors of ``B_t = I + D G_t D``, ``D = diag(sqrt a)``, and ridge fits ``w_t = D B_t^-1 D c_t``."""
    root = np.sqrt(a)
    try:
        for g, matrix in enumerate(gram):
            mine = slice(None) if len(gram) == 1 else slice(g, g + 1)
            lower = cholesky(
                np.eye(len(root)) + root[:, None] * matrix[np.ix_(slots, slots)] * root, lower=True
            )
            factors[g] = lower.T  # column after column
            w[:, mine] = root[:, None] * cho_solve((lower, True), root[:, None] * products[:, mine])
    except np.linalg.LinAlgError:
        return False
    return True


def gram_normal(factors, a, u, threads, m):
    """``sum_t (u_t u_t') o X_t' K_t^-1 X_t`` from ``D^-1 (I - B_t^-1) D^-1``."""
    identity = np.eye(len(a))
    scaled = u / np.sqrt(a)[:, None]
    m[...] = 0.0
    for g, upper in enumerate(factors):
        side = scaled if len(factors) == 1 else scaled[:, g : g + 1]
        m += (side @ side.T) * (identity - cho_solve((upper.T, True), identity))
    return True
