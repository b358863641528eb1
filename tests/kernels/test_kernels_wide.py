"""Products with a small side, with and without registers of 512 bits; the first pass and the bounds of a path.

Like `test_kernels`, this needs nothing but `tasksieve._kernels`, so that it runs under the sanitizers too.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_helpers import layout

from tasksieve._kernels import compiled, kernels, reference

pytestmark = pytest.mark.skipif(
    not compiled, reason="no compiled kernels here to compare with their NumPy twins"
)

SIZES = (1, 3, 7, 8, 9, 16, 47, 48, 49, 50, 57, 97)


@pytest.fixture(params=[True, False], ids=["wide", "plain"])
def width(request):
    """Wide registers as the processor has them, then forbidden."""
    if request.param and not kernels.wide_registers():
        pytest.skip("this processor has no registers of 512 bits")
    kernels.allow_wide_registers(request.param)
    yield
    kernels.allow_wide_registers(True)


def test_wide_registers_can_be_forbidden():
    kernels.allow_wide_registers(False)
    try:
        assert not kernels.wide_registers()
    finally:
        kernels.allow_wide_registers(True)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("tasks", SIZES)
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 130])
def test_a_few_vectors_at_once(width, rng, tasks, rows):
    x = np.asfortranarray(rng.standard_normal((rows, 23)))
    r = np.asfortranarray(rng.standard_normal((rows, tasks)))
    for columns in (None, np.array([5, 5, 0, 22, 7, 6, 8]), np.empty(0, dtype=np.int64)):
        chosen = x if columns is None else x[:, columns]
        for squares in (False, True):
            out = np.full((chosen.shape[1], tasks), np.nan)
            kernels.shared_products(x, columns, r, squares, 2, out)
            np.testing.assert_allclose(out, (chosen**2 if squares else chosen).T @ r, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_other_numbers_are_widened(width, rng, dtype):
    x = np.asfortranarray((100 * rng.random((40, 37))).astype(dtype))
    r = np.asfortranarray(rng.standard_normal((40, 11)))
    out = np.empty((37, 11))
    kernels.shared_products(x, None, r, False, 3, out)
    np.testing.assert_allclose(out, x.astype(float).T @ r, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("n", [*SIZES, 129])
def test_factors_and_whitening_of_tasks(width, rng, n):
    """Twins: ``K = I + sum_j a_j x_j x_j'``, its factor and ``L^-1 (u o x)``, tasks of n rows and of 2 n."""
    offsets, count = np.array([0, n, 3 * n]), 70
    x = np.asfortranarray(rng.standard_normal((3 * n, 90)))
    columns = rng.permutation(90)[:count]
    a, y, u = rng.random(count), rng.standard_normal(3 * n), rng.standard_normal((count, 2))
    results = []
    for module in (kernels, reference):
        factors, r = np.empty(5 * n * n), np.empty(3 * n)
        z = np.empty((3 * n, count), dtype=np.float32, order="F")
        assert module.factor(x, offsets, False, columns, a, y, 2, factors, r)
        module.whiten(x, offsets, False, columns, u, factors, 2, z)
        lower = [
            np.tril(block.T)
            for block in (factors[: n * n].reshape(n, n), factors[n * n :].reshape(2 * n, 2 * n))
        ]
        results.append((lower[0], lower[1], r, z))
    for mine, twin in zip(*results, strict=True):
        np.testing.assert_allclose(mine, twin, rtol=2e-5, atol=2e-5 if mine.dtype == np.float32 else 1e-9)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8])
@pytest.mark.parametrize(("squares", "vectors"), [(0, 1), (1, 3), (2, 7), (3, 3), (0, 9), (0, 0)])
@pytest.mark.parametrize("lengths", [(5, 17, 1, 9), (23,), (4, 0, 7), (300, 211)])
def test_many_products(rng, dtype, squares, vectors, lengths):
    """Several vectors in one reading are what each is alone."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = offsets[-1]
    x = np.asfortranarray((100 * rng.random((rows, 29))).astype(dtype))
    r = [*rng.standard_normal((vectors, rows))]
    results = []
    for module, threads in ((kernels, 1), (kernels, 3), (reference, 1)):
        out = [np.full((29, len(lengths)), np.nan) for _ in r]
        module.many_products(x, r, squares, offsets, threads, out)
        results.append(out)
    for k, vector in enumerate(r):
        np.testing.assert_allclose(results[0][k], results[2][k], rtol=1e-11, atol=1e-10)
        np.testing.assert_array_equal(results[1][k], results[0][k])
        alone = np.empty_like(results[0][k])
        kernels.segment_products(x, None, vector, offsets, k < squares, 1, alone)
        np.testing.assert_allclose(results[0][k], alone, rtol=1e-14, atol=1e-12 * np.abs(alone).max())


def test_many_products_refuse_wrong_shapes(rng):
    x, offsets = np.asfortranarray(rng.random((6, 4))), np.array([0, 2, 6])
    good, out = np.ones(6), np.empty((4, 2))
    for r, squares, target in (
        ([np.ones(5)], 0, [out]),
        ([good, good], 0, [out]),
        ([good], 2, [out]),
        ([good], -1, [out]),
        ([good], 0, [np.empty((4, 3))]),
        ([good], 0, []),
    ):
        with pytest.raises(ValueError):
            kernels.many_products(x, r, squares, offsets, 1, target)


@pytest.mark.parametrize("features", [0, 1, 1025])
def test_moment_bounds(rng, features):
    moments, first = rng.random((features, 3)), rng.random((features, 3))
    moments[:, 1] *= rng.choice([-1.0, 1.0], features)
    longest, group = rng.random(features), rng.random(features)
    group[::3] = 0.0
    for alpha, beta in ((0.7, 0.3), (-1.2, 2.0), (1.0, 0.0)):
        mine, twin = np.empty(features), np.empty(features)
        for module, out in ((kernels, mine), (reference, twin)):
            module.moment_bounds(moments, first, longest, group, alpha, beta, 4.0, 0.25, 1e-13, out)
        np.testing.assert_allclose(mine, twin, rtol=1e-13)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4001, 53)])
def test_magnitudes_and_single_precision(rng, shape):
    values = 1e3 * rng.standard_normal(shape)
    for threads in (1, 4):
        assert kernels.largest_magnitude(values, threads) == np.max(np.abs(values), initial=0.0)
        for least in (-np.inf, 0.5):
            out = np.empty(shape, dtype=np.float32)
            kernels.store_single(values, 0.125, least, threads, out)
            np.testing.assert_array_equal(
                out, np.maximum((0.125 * values).astype(np.float32), np.float32(least))
            )


@pytest.mark.parametrize("position", [0, 70_000, -1])
@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -np.inf])
def test_largest_magnitude_of_what_is_no_number(rng, position, spoilt):
    values = rng.standard_normal((3000, 50))
    values.ravel()[position] = spoilt
    found = kernels.largest_magnitude(values, 2)
    assert not np.isfinite(found)
    assert np.isnan(found) == np.isnan(spoilt)


@pytest.mark.parametrize("lengths", [(30,), (12, 1, 20), (7, 7, 7, 7)])
@pytest.mark.parametrize("anchors", [1, 3, 16])
def test_express(rng, lengths, anchors):
    offsets, samples = layout(lengths), sum(lengths)
    vectors = rng.standard_normal((anchors, samples))
    if anchors > 1:
        vectors[1] = vectors[0] * (1.0 + 1e-9 * rng.standard_normal(samples))  # nearly parallel
    if anchors > 2:
        vectors[2, offsets[-2] :] = 0.0  # nothing in the last task
    vector = vectors[0] + 0.1 * rng.standard_normal(samples)
    pieces = [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    gram = np.array([vectors[:, rows] @ vectors[:, rows].T for rows in pieces])
    lefts = []
    for module in (kernels, reference):
        coef, rest = np.full((anchors, len(lengths)), np.nan), np.full(samples, np.nan)
        errors, remainder = np.full((2, len(lengths)), np.nan)
        module.express(vectors, gram, vector, offsets, 1e-3, 1e-4, 1e-5, coef, rest, errors, remainder)
        largest = np.max([np.linalg.norm(vectors[:, rows], axis=1) for rows in pieces], axis=0)
        for t, rows in enumerate(pieces):
            np.testing.assert_allclose(rest[rows], vector[rows] - coef[:, t] @ vectors[:, rows], atol=1e-6)
            sizes = np.abs(coef[:, t])
            used = sizes @ np.linalg.norm(vectors[:, rows], axis=1)
            expected = 1e-3 * used + 1e-4 * np.linalg.norm(vector[rows]) + 1e-5 * (sizes @ largest)
            assert errors[t] == pytest.approx(expected, rel=1e-9)
            assert remainder[t] == pytest.approx(np.linalg.norm(rest[rows]) + errors[t], rel=1e-9)
            best = np.linalg.lstsq(vectors[:, rows].T, vector[rows], rcond=1e-7)[0]
            least = np.linalg.norm(vector[rows] - best @ vectors[:, rows])
            assert np.linalg.norm(rest[rows]) <= least + 1e-4 * np.linalg.norm(vector[rows])
        lefts.append(remainder - errors)
    np.testing.assert_allclose(*lefts, atol=1e-4)
