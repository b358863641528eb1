"""NumPy twins of `moments.cpp`: sums over rows beside Gram matrices, and what is made of them around a path."""

from __future__ import annotations

import numpy as np

from .gram_path import square, subtract_outer
from .passes import segments

_UNIT = 2.0**-53


def add_products(x, y, z, offsets, threads, cross, labels, beside, nuisance, explained):
    """``cross += X'y``, ``labels += y'y``, ``beside += Z'X``, ``nuisance += Z'Z`` and ``explained += Z'y``: of all rows
    with the labels of all tasks, or of the rows between two offsets with their own."""
    if len(beside) == 1:
        cross += y.T @ x
        labels += np.einsum("it,it->t", y, y)
        beside[0] += z @ x
        nuisance[0] += z @ z.T
        explained += y.T @ z.T
        return
    for t, rows in enumerate(segments(offsets)):
        xt, yt, zt = x[rows], y[rows, 0], z[:, rows]
        cross[t] += yt @ xt
        labels[t] += yt @ yt
        beside[t] += zt @ xt
        nuisance[t] += zt @ zt.T
        explained[t] += zt @ yt


def take_out_constant(
    gram, cross, labels, beside, nuisance, explained, limit, threads, coefficients, fit, sizes, label_sizes,
    nuisance_sizes,
):
    """Lengths from squares, whether all but zeros lie between ``1/limit`` and ``limit``, and, where there is one
    nuisance column, the moments of what it does not explain, in place: ``coefficients = (Z'Z)^-1 Z'X`` and
    ``fit = (Z'Z)^-1 Z'y``, 0 where Z is."""
    of_task = np.zeros(len(cross), dtype=np.int64) if len(gram) == 1 else np.arange(len(cross))
    diagonals = np.array([np.diagonal(square(panels, cross.shape[1])) for panels in gram])
    sizes[:] = np.sqrt(np.maximum(diagonals, 0.0))
    nuisance_sizes[:] = np.sqrt(np.maximum(np.einsum("mzz->mz", nuisance), 0.0))
    label_sizes[:] = np.sqrt(np.maximum(labels, 0.0))
    lengths = np.concatenate([sizes.ravel(), nuisance_sizes.ravel(), label_sizes])
    live = lengths[lengths != 0.0]
    if beside.shape[1] == 1:
        squares = nuisance[:, 0, 0]
        inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)
        coefficients[:] = beside * inverse[:, None, None]
        fit[:] = explained * inverse[of_task, None]
        subtract_outer(beside, coefficients, threads, gram)
        cross -= explained * coefficients[of_task, 0]
        labels -= explained[:, 0] * fit[:, 0]
        np.maximum(labels, 0.0, out=labels)
    return bool(np.all((live < limit) & (live > 1.0 / limit)))


def storing_loss(counts, facts, label_sizes, totals, sums, n_nuisance, intercept, added, lost):
    """What the objective of each value gains by rounding its numbers, and at most gains, given the `facts` of
    `stored_values`; for at most one nuisance column."""
    _, rest, total, reach = facts
    away = np.zeros_like(rest)
    if n_nuisance:  # one column is independent: the best coefficient is a quotient of sums, with their errors
        terms = _gamma(int(counts.max(initial=0)) + 2 * n_nuisance + 16) + sums
        away = 2.0 * terms * (label_sizes + reach)
    added[:] = 0.0
    if intercept:  # where large numbers cancel it was summed in twice the precision
        rest, root = np.abs(rest), np.sqrt(totals)
        unsure = _gamma(2) * rest + np.square(_gamma(1) * (2 * (counts + 2) + 8))[:, None] * total
        added[:] = 0.5 * np.square(root * rest).sum(axis=1)
        away = away + root * (rest + unsure)
    lost[:] = (0.5 * np.square(away) * (1.0 + _gamma(16))).sum(axis=1)


def _gamma(operations):
    return 1.01 * _UNIT * operations
