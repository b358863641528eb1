"""Products of PLINK's 2-bit calls: compiled kernels against their NumPy twins, and the twins against plain numbers.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernel_helpers import layout, needs_kernels

from tasksieve._kernels import kernels, reference
from tasksieve._kernels.reference.genotypes import calls

pytestmark = needs_kernels

TASKS = {
    "uneven": (5, 17, 1, 9),
    "whole-bytes": (8, 4, 12),
    "one-row": (1, 1, 1),
    "one-task": (23,),
    "empty-task": (4, 0, 7),
    "no-rows": (0, 0),
    "long": (300, 211),
}
VALUES = np.array([2.0, np.nan, 1.0, 0.0])


def drawn(rng, rows, variants, spare=0):
    """Codes (variants x rows) and their bytes, with `spare` bytes of anything behind each variant's."""
    codes = rng.choice(4, size=(variants, rows), p=[0.3, 0.1, 0.3, 0.3])
    codes[::3][codes[::3] == 1] = 2  # every third variant is complete
    width = (rows + 3) // 4
    filled = rng.integers(0, 4, size=(variants, 4 * (width + spare)))  # padding may hold anything
    filled[:, :rows] = codes
    parts = filled.reshape(variants, -1, 4)
    return codes, np.ascontiguousarray((parts << np.array([0, 2, 4, 6])).sum(axis=2).astype(np.uint8))


def holes(rng, codes, tasks):
    """A stand-in for each missing call, by task, and columns with them as plain numbers."""
    with_holes = (codes == 1).any(axis=1)
    hole_of = np.where(with_holes, np.cumsum(with_holes) - 1, -1).astype(np.int64)
    return hole_of, rng.uniform(0.0, 2.0, size=(int(with_holes.sum()), tasks))


def plain(codes, hole_of, means, offsets):
    x = VALUES[codes].T.copy()
    for t in range(len(offsets) - 1):
        for j in range(len(codes)):
            own = x[offsets[t] : offsets[t + 1], j]
            own[np.isnan(own)] = means[hole_of[j], t] if hole_of[j] >= 0 else np.nan
    return x


def portable_products(*arguments):
    """As on a processor without byte look-ups."""
    kernels.genotype_products(*arguments, portable=True)


@pytest.mark.parametrize("squares", [0, 1])
@pytest.mark.parametrize("multiply", [lambda *a: kernels.genotype_products(*a), portable_products])
def test_rounding_is_that_of_a_sum_of_products(rng, multiply, squares):
    """Against exact fractions: at most one rounding a row, one of the product and one of the squared mean."""
    lengths = (61, 5, 130)
    offsets = layout(lengths)
    rows = int(offsets[-1])
    codes, packed = drawn(rng, rows, 9)
    hole_of, means = holes(rng, codes, 3)
    x, r = plain(codes, hole_of, means, offsets), rng.standard_normal(rows) * 10.0 ** rng.integers(-6, 6, rows)
    out = [np.empty((9, 3))]
    multiply(packed, rows, hole_of, means, None, [r], squares, offsets, 1, out)
    for j in range(9):
        for t, (low, high) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
            terms = [Fraction(x[i, j]) ** (1 + squares) * Fraction(r[i]) for i in range(low, high)]
            allowed = (high - low + 2) * Fraction(1, 2**53) * sum(map(abs, terms))
            assert abs(Fraction(out[0][j, t]) - sum(terms)) <= allowed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spare", [0, 3])
@pytest.mark.parametrize("lengths", TASKS.values(), ids=TASKS)
def test_products_and_columns(rng, lengths, spare):
    offsets = layout(lengths)
    rows, tasks, variants = int(offsets[-1]), len(lengths), 301
    codes, packed = drawn(rng, rows, variants, spare)
    hole_of, means = holes(rng, codes, tasks)
    x = plain(codes, hole_of, means, offsets)
    vectors = [rng.standard_normal(rows) for _ in range(7)]
    for columns in (None, np.empty(0, dtype=np.int64), np.array([300, 2, 2, 0, 77], dtype=np.int64)):
        chosen = x if columns is None else x[:, columns]
        for squares, count in ((0, 1), (1, 1), (1, 2), (0, 3), (2, 7)):
            for multiply in (kernels.genotype_products, portable_products, reference.genotype_products):
                out = [np.full((chosen.shape[1], tasks), np.nan) for _ in range(count)]
                multiply(packed, rows, hole_of, means, columns, vectors[:count], squares, offsets, 2, out)
                for m in range(count):
                    power = chosen**2 if m < squares else chosen
                    for t in range(tasks):
                        own = slice(offsets[t], offsets[t + 1])
                        np.testing.assert_allclose(out[m][:, t], power[own].T @ vectors[m][own], rtol=0, atol=1e-11)
        for module in (kernels, reference):
            found = np.full(chosen.shape, np.nan, order="F")
            module.genotype_columns(packed, rows, hole_of, means, columns, offsets, 2, found)
            np.testing.assert_array_equal(found, chosen)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 13, 700])
def test_shared_products(rng, rows, squares):
    codes, packed = drawn(rng, rows, 40)
    hole_of, means = holes(rng, codes, 1)
    x = plain(codes, hole_of, means, layout((rows,)))
    r = np.asfortranarray(rng.standard_normal((rows, 6)))
    for columns in (None, np.array([39, 0, 5], dtype=np.int64)):
        chosen = x if columns is None else x[:, columns]
        for module in (kernels, reference):
            out = np.full((chosen.shape[1], 6), np.nan)
            module.genotype_shared_products(packed, rows, hole_of, means, columns, r, squares, 2, out)
            np.testing.assert_allclose(out, (chosen**2 if squares else chosen).T @ r, rtol=0, atol=1e-11)


@pytest.mark.parametrize("lengths", TASKS.values(), ids=TASKS)
def test_counts(rng, lengths):
    offsets = layout(lengths)
    rows = int(offsets[-1])
    codes, packed = drawn(rng, rows, 29, 9)
    for columns in (None, np.array([28, 3, 3], dtype=np.int64)):
        chosen = codes if columns is None else codes[columns]
        for module in (kernels, reference):
            out = np.full((len(chosen), len(lengths), 3), -1, dtype=np.int32)
            module.genotype_counts(packed, rows, columns, offsets, 2, out)
            for t in range(len(lengths)):
                own = chosen[:, offsets[t] : offsets[t + 1]]
                np.testing.assert_array_equal(out[:, t], np.stack([(own == c).sum(axis=1) for c in (0, 2, 1)], axis=1))
            by_row = np.full(rows, -1, dtype=np.int64)
            module.genotype_row_holes(packed, rows, columns, 2, by_row)
            np.testing.assert_array_equal(by_row, (chosen == 1).sum(axis=0))


def test_copies_from_two_files(rng):
    """Rows of two files at alternating positions, with flipped and absent variants."""
    (codes, packed), (others, other_packed) = drawn(rng, 13, 6), drawn(rng, 10, 6)
    file_of = rng.permutation(np.repeat([0, 1], [11, 8]))
    rows = np.empty(19, dtype=np.int64)
    rows[file_of == 0], rows[file_of == 1] = rng.permutation(13)[:11], rng.permutation(10)[:8]
    sources = [np.array([0, 5, -1, 2], dtype=np.int64), np.array([3, 3, 1, 0], dtype=np.int64)]
    flips = np.array([0, 1, 1, 0], dtype=np.uint8)
    targets = np.array([3, 0, 1, 2], dtype=np.int64)
    for module in (kernels, reference):
        out = np.zeros((4, 7), dtype=np.uint8)
        for k, (file, n) in enumerate(((packed, 13), (other_packed, 10))):
            order = np.where(file_of == k, rows, -1)
            module.copy_genotypes(file, n, sources[k], flips if k else None, targets, order, 4, 2, out)
        found = calls(out, 28)
        assert not found[:, :4].any()
        assert not found[:, 23:].any()
        for k, target in enumerate(targets):
            first = np.full(13, 1) if sources[0][k] < 0 else codes[sources[0][k]]
            second = others[sources[1][k]]
            second = np.array([3, 1, 2, 0])[second] if flips[k] else second
            expected = np.where(file_of == 0, first[np.minimum(rows, 12)], second[np.minimum(rows, 9)])
            np.testing.assert_array_equal(found[target, 4:23], expected)


def test_what_does_not_fit_is_refused(rng):
    codes, packed = drawn(rng, 9, 5)
    hole_of, means = holes(rng, codes, 1)
    r, out, offsets = np.zeros(9), np.empty((5, 1)), layout((9,))
    wrong = [
        (packed, 13, None, means, None, [np.zeros(13)], 0, layout((13,)), 1, [out]),  # too few bytes
        (packed, 9, None, means, None, [np.zeros(8)], 0, offsets, 1, [out]),
        (packed, 9, hole_of + 9, means, None, [r], 0, offsets, 1, [out]),
        (packed, 9, hole_of, means, np.array([5]), [r], 0, offsets, 1, [np.empty((1, 1))]),
        (packed, 9, hole_of, means, None, [r], 2, offsets, 1, [out]),
        (packed, 9, hole_of, means, None, [r], 0, layout((8,)), 1, [out]),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError):
            kernels.genotype_products(*arguments)
    none, one = np.array([-1]), np.array([0])
    target = np.zeros((1, 3), dtype=np.uint8)
    for sources, targets, order, first in (
        (np.array([5]), one, one, 0),
        (none, np.array([1]), one, 0),
        (one, one, np.array([9]), 0),
        (one, one, one, 2),
        (one, one, np.zeros(13, dtype=np.int64), 0),
    ):
        with pytest.raises(ValueError):
            kernels.copy_genotypes(packed, 9, sources, None, targets, order, first, 1, target)
