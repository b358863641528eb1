"""The equations of a Newton step on the dual of a proximal point problem (`dual_newton`).

With ``J = diag(a) + sum_b k_b v_b v_b'`` the derivative of the penalty's prox, and ``diag(d) + w w'`` in each task that
of the loss's, multiplied by their weights,

    ( P (diag(d) + w w') P + sigma X J X' ) du = lack,

P the projection off the nuisance columns, in whose directions any curvature will do, as `lack` has no part there. The
diagonal of J leaves a block for each task; matrices of rank one couple tasks, one for each row or cluster that lives.
Where these are few, and no task is fitted exactly (there d is 0, and a block by itself may be singular), they are
eliminated; else all blocks are one matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from .prox_derivative import Derivative, RankOnes

Array = np.ndarray[Any, Any]

_LEAST = 1e-10  # of the mean diagonal: added to it
_OPEN = 1e-6  # of the largest d: tasks whose entries are above have blocks that are safely positive definite
_MOST = 1e9  # cubes of rows: 1,000 of coupled tasks, or of one; more where tasks are many and not coupled


def small_enough(offsets: Array, coupled: bool) -> bool:
    """Whether the equations are cheap beside anything else that could be done."""
    rows = offsets[[-1]] if coupled else np.diff(offsets)
    return float(np.sum(rows.astype(np.float64) ** 3)) <= _MOST


def newton_direction(
    columns: Any, positions: Array, found: Derivative, sigma: float, d: Array, w: Array | None, lack: Array
) -> Array | None:
    """du; None where the matrix is singular.

    - `positions`: Of all rows that `found` is about, among the columns.
    """
    design, offsets = columns.design, columns.offsets.tolist()
    own = [slice(low, high) for low, high in zip(offsets, offsets[1:], strict=False)]
    # where w is there, d is one number in each task: it may stand for any curvature, too
    basis = design.nuisance_basis if w is None else design.nuisance_basis[:0]
    x, positions = columns.x, positions[found.live]
    blocks, strip, signs = [], None, np.ones(0)
    if found.parts:
        factors = np.concatenate([part.factors for part in found.parts])
        signs = np.sign(factors)
        strip = np.empty((offsets[-1], len(factors)), order="F")
        sizes = np.sqrt(sigma * np.abs(factors))
    for t, rows in enumerate(own):
        some = x[:, positions] if columns.shared else x[rows][:, positions]
        diagonal = found.diagonal[:, t]
        moving = np.flatnonzero(diagonal)
        block = blas.dsyrk(1.0, some[:, moving] * np.sqrt(sigma * diagonal[moving]), lower=1)
        _add_loss(block, d[rows], None if w is None else w[rows], basis[:, rows])
        blocks.append(block)
        if strip is not None:
            strip[rows] = _vectors(some, found.parts, t) * sizes
    if strip is not None:
        strip, signs = strip[:, signs != 0.0], signs[signs != 0.0]
    if strip is None or not len(signs):
        change = _by_task(blocks, own, lack)
    else:
        few = 2 * len(signs) <= 3 * len(lack) and bool(np.all(signs > 0.0))
        if few and float(np.min(d)) > _OPEN * float(np.max(d)):
            change = _eliminated(blocks, own, strip, lack)
        else:
            change = _together(blocks, own, strip, signs, lack)
    return None if change is None else np.asarray(design.project(change))


def _add_loss(block: Array, d: Array, w: Array | None, basis: Array) -> None:
    """Adds ``P diag(d) P``, ``w w'``, and something in the directions of the basis to the lower part of a block."""
    diagonal = np.einsum("ii->i", block)
    diagonal += d
    if w is not None:
        blas.dsyr(1.0, w, lower=1, a=block, overwrite_a=1)
    free = float(np.mean(d))
    for z in basis:
        dz = d * z
        blas.dsyr2(-1.0, z, dz - 0.5 * (z @ dz + free) * z, lower=1, a=block, overwrite_a=1)
    diagonal += _LEAST * float(np.mean(diagonal))


def _vectors(x: Array, parts: list[RankOnes], t: int) -> Array:
    """``X_t v_b`` for all b."""
    found = []
    for part in parts:
        products = x * part.vectors[:, t]
        if len(part.factors) < len(part.labels):
            order = np.argsort(part.labels, kind="stable")
            ranked = part.labels[order]
            starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
            products = np.add.reduceat(products[:, order], starts, axis=1)
        found.append(products)
    return np.concatenate(found, axis=1) if len(found) > 1 else found[0]


def _factored(matrix: Array) -> Array | None:
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    return None if failed else factor


def _by_task(blocks: list[Array], own: list[slice], lack: Array) -> Array | None:
    change = np.empty_like(lack)
    for block, rows in zip(blocks, own, strict=True):
        factor = _factored(block)
        if factor is None:
            return None
        change[rows] = lapack.dpotrs(factor, lack[rows], lower=1)[0]
    return change


def _eliminated(blocks: list[Array], own: list[slice], strip: Array, lack: Array) -> Array | None:
    """``(K + Z Z')^-1`` by ``I + Z' K^-1 Z``."""
    both = np.empty((len(lack), strip.shape[1] + 1), order="F")
    factors = []
    for block, rows in zip(blocks, own, strict=True):
        factor = _factored(block)
        if factor is None:
            return None
        both[rows, :-1], both[rows, -1] = strip[rows], lack[rows]
        both[rows] = blas.dtrsm(1.0, factor, both[rows], lower=1)
        factors.append(factor)
    inner = blas.dsyrk(1.0, both, trans=1, lower=1)
    right = inner[-1, :-1].copy()
    inner = np.asfortranarray(inner[:-1, :-1])
    inner[np.diag_indices(len(inner))] += 1.0
    factor = _factored(inner)
    if factor is None:
        return None
    change = both[:, -1] - both[:, :-1] @ lapack.dpotrs(factor, right, lower=1)[0]
    for factor, rows in zip(factors, own, strict=True):
        change[rows] = lapack.dtrtrs(factor, change[rows], lower=1, trans=1)[0]
    return change


def _together(blocks: list[Array], own: list[slice], strip: Array, signs: Array, lack: Array) -> Array | None:
    """``K + Z S Z'`` as one matrix."""
    matrix = np.zeros((len(lack), len(lack)), order="F")
    for block, rows in zip(blocks, own, strict=True):
        matrix[rows, rows] = block
    for sign in (1.0, -1.0):
        chosen = signs == sign
        if chosen.any():
            matrix = blas.dsyrk(sign, strip[:, chosen], beta=1.0, c=matrix, lower=1, overwrite_c=1)
    factor = _factored(matrix)
    return None if factor is None else np.asarray(lapack.dpotrs(factor, lack, lower=1)[0])
