"""NumPy twins of `genotypes.cpp`: PLINK's 2-bit calls, a variant's bytes in each row of ``packed``.

A call counts copies of the variant's first allele: 00 is 2, 10 is 1, 11 is 0, 01 is missing; the first row is in the
lowest bits. Missing calls of variant j and task t are ``means[hole_of[j], t]``, where ``hole_of[j] >= 0``.
"""

from __future__ import annotations

import numpy as np

from .passes import segments

COPIES = np.array([2.0, 0.0, 1.0, 0.0])
MISSING = 1


def calls(packed, rows, columns=None):
    """The codes, variants x rows."""
    chosen = np.asarray(packed if columns is None else packed[columns])
    codes = (chosen[:, :, None] >> np.array([0, 2, 4, 6], dtype=np.uint8)) & 3
    return codes.reshape(len(chosen), 4 * chosen.shape[1])[:, :rows]


def genotype_columns(packed, rows, hole_of, means, columns, offsets, threads, out):
    """Columns as numbers: ``out[:, k]``."""
    codes = calls(packed, rows, columns)
    out[...] = COPIES[codes].T
    if hole_of is None:
        return
    holes = hole_of if columns is None else hole_of[columns]
    for t, own in enumerate(segments(offsets)):
        for k in np.flatnonzero(holes >= 0):
            out[own, k][codes[k, own] == MISSING] = means[holes[k], t]


def genotype_products(packed, rows, hole_of, means, columns, r, squares, offsets, threads, out):
    """``out[m][k, t] = sum_i x_ij^p r[m][i]`` over the rows of task t; p = 2 for the first `squares` vectors."""
    x = np.empty((rows, len(packed) if columns is None else len(columns)), order="F")
    genotype_columns(packed, rows, hole_of, means, columns, offsets, threads, x)
    for m, vector in enumerate(r):
        for t, own in enumerate(segments(offsets)):
            part = x[own]
            out[m][:, t] = (part * part if m < squares else part).T @ vector[own]


def genotype_shared_products(packed, rows, hole_of, means, columns, r, squares, threads, out):
    """``out = (X^p)' R``, all rows being one task."""
    x = np.empty((rows, len(packed) if columns is None else len(columns)), order="F")
    genotype_columns(packed, rows, hole_of, means, columns, np.array([0, rows]), threads, x)
    out[...] = (x * x if squares else x).T @ r


def genotype_counts(packed, rows, columns, offsets, threads, out):
    """``out[k, t]``: calls of 2 copies, of 1 copy, and missing ones."""
    codes = calls(packed, rows, columns)
    for t, own in enumerate(segments(offsets)):
        for position, code in enumerate((0, 2, MISSING)):
            out[:, t, position] = np.count_nonzero(codes[:, own] == code, axis=1)


def genotype_row_holes(packed, rows, columns, threads, out):
    """Missing calls of each row."""
    out[...] = np.count_nonzero(calls(packed, rows, columns) == MISSING, axis=0)


def copy_genotypes(packed, rows, sources, flips, targets, order, first, threads, out):
    """Calls of rows ``order`` in columns ``sources`` to rows ``first``, ... of columns ``targets``, whose bits are 0.

    -1 in ``order`` leaves the position alone, -1 in ``sources`` is a variant all of whose calls are missing; flipped
    variants count their other allele.
    """
    for k, (source, target) in enumerate(zip(sources, targets, strict=True)):
        codes = np.full(rows, MISSING) if source < 0 else calls(packed, rows, np.array([source]))[0]
        if flips is not None and flips[k]:
            codes = np.array([3, MISSING, 2, 0])[codes]
        for i, row in enumerate(order):
            if row >= 0:
                position = first + i
                out[target, position // 4] |= np.uint8(int(codes[row]) << (2 * (position % 4)))
