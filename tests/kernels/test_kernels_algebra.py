"""The dense algebra of Newton's method: compiled kernels against their NumPy twins.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`),
where reading or writing past an array ends the process.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_helpers import both, needs_kernels, row_problem

from tasksieve._kernels import kernels, reference

pytestmark = needs_kernels

LAYOUTS = {
    "tasks": ((6, 1, 9), False),
    "one": ((12,), False),
    "empty-task": ((5, 0, 4), False),
    "shared": ((7, 7, 7), True),
    "shared-one-row": ((1, 1), True),
}


def factor_size(lengths, shared):
    return lengths[0] ** 2 if shared else sum(n * n for n in lengths)


def lower_triangles(flat, lengths, shared):
    start, found = 0, []
    for n in lengths[:1] if shared else lengths:
        found.append(np.tril(flat[start : start + n * n].reshape(n, n, order="F")))
        start += n * n
    return found


@pytest.mark.parametrize("count", [0, 1, 8, 300])
@pytest.mark.parametrize(("lengths", "shared"), LAYOUTS.values(), ids=LAYOUTS)
def test_factor_whiten_and_normal_matrix(rng, lengths, shared, count):
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, count)
    tasks, rows = len(lengths), x.shape[0]
    a = rng.random(count)
    factors, residuals = [], []
    for module in (kernels, reference):
        flat, r = np.full(factor_size(lengths, shared), np.nan), np.full(len(y), np.nan)
        assert module.factor(x, offsets, shared, columns, a, y, 1, flat, r)
        factors.append(flat)
        residuals.append(r)
    for ours, twin in zip(*[lower_triangles(f, lengths, shared) for f in factors], strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(residuals[0], residuals[1], rtol=1e-8, atol=1e-10)

    # Newton's matrix is formed in single precision
    u = rng.standard_normal((count, tasks))
    ours, twin = both(
        "whiten", (rows, count), x, offsets, shared, columns, u, factors[0], 1, order="F", dtype=np.float32
    )
    np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-6)
    outer = u.astype(np.float32) if shared else None
    ours, twin = both("normal_matrix", (count, count), ours, outer, 1, dtype=np.float32)
    scale = np.abs(twin).max(initial=1e-30)
    np.testing.assert_allclose(ours, twin, atol=1e-5 * scale)
    assert np.array_equal(ours, ours.T)


@pytest.mark.parametrize(("count", "known"), [(0, 0), (1, 0), (8, 8), (30, 11)])
@pytest.mark.parametrize(("lengths", "shared"), LAYOUTS.values(), ids=LAYOUTS)
def test_grams_and_what_is_made_of_them(rng, lengths, shared, count, known):
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, count)
    tasks, matrices = len(lengths), 1 if shared else len(lengths)
    grams = []
    for module in (kernels, reference):
        gram = np.full((matrices, count + 3, count + 3), np.nan)
        module.extend_grams(x, offsets, columns[:known].copy(), 0, 2, gram)
        module.extend_grams(x, offsets, columns, known, 2, gram)
        grams.append(gram)
    np.testing.assert_allclose(grams[0], grams[1], rtol=1e-10, atol=1e-10)
    blocks = [slice(0, len(x))] if shared else map(slice, offsets[:-1], offsets[1:])
    for gram, rows in zip(grams[0], blocks, strict=True):
        np.testing.assert_allclose(
            gram[:count, :count], x[rows][:, columns].T @ x[rows][:, columns], atol=1e-9
        )

    slots = rng.permutation(count)[: (3 * count + 3) // 4].astype(np.int64)
    a = 0.1 + rng.random(len(slots))
    products = rng.standard_normal((len(slots), tasks))
    found = []
    for module in (kernels, reference):
        factors, w = np.zeros((matrices, len(slots), len(slots))), np.zeros(products.shape)
        assert module.gram_factor(grams[0], slots, a, products, 2, factors, w)
        found.append((np.triu(factors), w))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-8, atol=1e-10)

    # Newton's matrix is the one that the samples' factors give
    u = rng.standard_normal((len(slots), tasks))
    ours, twin = both("gram_normal", (len(slots), len(slots)), found[0][0], a, u, 2, dtype=np.float32)
    scale = np.abs(twin).max(initial=1e-30)
    np.testing.assert_allclose(ours, twin, atol=1e-5 * scale)
    chosen = columns[slots]
    flat, r = np.empty(factor_size(lengths, shared)), np.empty(len(y))
    assert reference.factor(x, offsets, shared, chosen, a, y, 1, flat, r)
    z = np.empty((len(x), len(slots)), dtype=np.float32, order="F")
    reference.whiten(x, offsets, shared, chosen, u, flat, 1, z)
    whitened = np.empty((len(slots), len(slots)), dtype=np.float32)
    reference.normal_matrix(z, u.astype(np.float32) if shared else None, 1, whitened)
    np.testing.assert_allclose(ours, whitened, atol=1e-4 * scale)


@pytest.mark.parametrize("count", [0, 1, 8, 300])
@pytest.mark.parametrize(("lengths", "shared"), LAYOUTS.values(), ids=LAYOUTS)
def test_factor_shifted_and_whiten_each(rng, lengths, shared, count):
    """A diagonal for each task; the factors, and so the whitened columns, are then each task's own."""
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, count)
    a, diagonal = rng.random(count), rng.uniform(0.1, 3.0, len(lengths))
    size = factor_size(lengths, False)
    factors, solved = [], []
    for module in (kernels, reference):
        flat, r = np.full(size, np.nan), np.full(len(y), np.nan)
        assert module.factor_shifted(x, offsets, shared, columns, a, diagonal, y, 2, flat, r)
        factors.append(flat)
        solved.append(r)
    for ours, twin in zip(*[lower_triangles(f, lengths, False) for f in factors], strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(solved[0], solved[1], rtol=1e-8, atol=1e-10)
    u = rng.standard_normal((count, len(lengths)))
    for dtype, tol in ((np.float32, 1e-5), (np.float64, 1e-11)):
        ours, twin = both(
            "whiten_each",
            (len(y), count),
            x,
            offsets,
            shared,
            columns,
            u,
            factors[0],
            2,
            order="F",
            dtype=dtype,
        )
        np.testing.assert_allclose(ours, twin, rtol=tol, atol=tol)
    with pytest.raises(ValueError, match="one diagonal a task"):
        kernels.factor_shifted(
            x, offsets, shared, columns, a, diagonal[:-1].copy(), y, 1, factors[0], solved[0]
        )
    with pytest.raises(ValueError, match="factors has the wrong size"):
        kernels.factor_shifted(
            x, offsets, shared, columns, a, diagonal, y, 1, factors[0][:-1].copy(), solved[0]
        )


@pytest.mark.parametrize("tasks", [None, 1, 5])
@pytest.mark.parametrize(("rows", "count"), [(10, 7), (1, 1), (3, 400), (520, 20)])
def test_normal_product(rng, rows, count, tasks):
    z = np.asfortranarray(rng.standard_normal((rows, count)), dtype=np.float32)
    u = None if tasks is None else rng.standard_normal((count, tasks)).astype(np.float32)
    v = rng.standard_normal(count).astype(np.float32)
    ours, twin = both("normal_product", count, z, u, v, 1, dtype=np.float32)
    np.testing.assert_allclose(ours, twin, atol=1e-4 * np.abs(twin).max())
    matrix = np.empty((count, count), dtype=np.float32)
    kernels.normal_matrix(z, u, 1, matrix)
    np.testing.assert_allclose(ours, matrix @ v, atol=1e-4 * np.abs(twin).max())


def test_a_matrix_that_is_not_positive_is_reported(rng):
    """Columns so long that the identity in K drowns leave a singular matrix: a factor may fail, but says so."""
    verdicts = []
    for shared, lengths in ((False, (5, 4)), (True, (5, 5))) * 10:
        x, offsets, columns, _, y = row_problem(rng, lengths, shared, 3)
        flat, r = np.empty(factor_size(lengths, shared)), np.empty(len(y))
        verdicts.append(kernels.factor(x, offsets, shared, columns, np.full(3, 1e40), y, 1, flat, r))
        assert np.isfinite(r).all() or not verdicts[-1]
    assert not all(verdicts)


@pytest.mark.parametrize("count", [0, 1, 20, 300])
@pytest.mark.parametrize(("lengths", "shared"), LAYOUTS.values(), ids=LAYOUTS)
def test_combine(rng, lengths, shared, count):
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, count)
    w = rng.standard_normal((count, len(lengths))) * (rng.random((count, 1)) < 0.7)
    ours, twin = both("combine", len(y), x, offsets, shared, columns, w, 1)
    np.testing.assert_allclose(ours, twin, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("n_basis", [0, 1, 3])
@pytest.mark.parametrize(("lengths", "shared"), LAYOUTS.values(), ids=LAYOUTS)
def test_reweight(rng, lengths, shared, n_basis):
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, 9)
    basis = np.zeros((n_basis, len(y)))
    for a, b in zip(offsets[:-1], offsets[1:], strict=True):
        rank = min(n_basis, b - a)  # a task with few rows has fewer nuisance directions
        basis[:rank, a:b] = np.linalg.qr(rng.standard_normal((b - a, rank)))[0].T
    w = rng.random(len(y))
    results = []
    for module in (kernels, reference):
        out = np.full((len(y), len(columns)), np.nan, order="F")
        h = np.full((len(columns), len(lengths)), np.nan)
        module.reweight(x, offsets, shared, columns, w, basis, 1, out, h)
        results.append((out, h))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-13)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-13)
    np.testing.assert_allclose(basis @ results[0][0], 0.0, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 95, 96, 97, 127, 128, 129, 193, 257])
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_factors_of_any_size(rng, rows, shared):
    lengths = (rows, rows) if shared else (rows, 3)
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, 20)
    a = rng.random(20)
    results = []
    for module in (kernels, reference):
        flat, r = np.full(factor_size(lengths, shared), np.nan), np.full(len(y), np.nan)
        assert module.factor(x, offsets, shared, columns, a, y, 2, flat, r)
        results.append((lower_triangles(flat, lengths, shared), r, flat))
    for ours, twin in zip(results[0][0], results[1][0], strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-7, atol=1e-9)
    u = rng.standard_normal((20, 2))
    shape = (x.shape[0], 20)
    ours, twin = both(
        "whiten", shape, x, offsets, shared, columns, u, results[0][2], 2, order="F", dtype=np.float32
    )
    np.testing.assert_allclose(ours, twin, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 400, 513])
@pytest.mark.parametrize("tasks", [None, 3, 17])
def test_normal_matrices_of_any_size(rng, count, tasks):
    rows = 270 if count < 100 else 7
    z = np.asfortranarray(rng.standard_normal((rows, count)), dtype=np.float32)
    u = None if tasks is None else rng.standard_normal((count, tasks)).astype(np.float32)
    ours, twin = both("normal_matrix", (count, count), z, u, 2, dtype=np.float32)
    np.testing.assert_allclose(ours, twin, atol=1e-5 * np.abs(twin).max())
    v = rng.standard_normal(count).astype(np.float32)
    ours, twin = both("normal_product", count, z, u, v, 2, dtype=np.float32)
    np.testing.assert_allclose(ours, twin, atol=1e-5 * np.abs(twin).max() * np.sqrt(count))


@pytest.mark.parametrize(("rows", "count"), [(511, 3), (512, 255), (513, 256), (1030, 257), (2, 600)])
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_combinations_of_any_size(rng, rows, count, shared):
    lengths = (rows, rows) if shared else (rows, 5)
    x, offsets, columns, _, y = row_problem(rng, lengths, shared, count)
    w = rng.standard_normal((count, 2)) * (rng.random((count, 1)) < 0.8)
    ours, twin = both("combine", len(y), x, offsets, shared, columns, w, 2)
    np.testing.assert_allclose(ours, twin, atol=1e-10 * np.sqrt(count))
