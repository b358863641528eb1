"""The graph models' kernels against their NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tasksieve._kernels import compiled, kernels, reference

pytestmark = pytest.mark.skipif(
    not compiled, reason="no compiled kernels here to compare with their NumPy twins"
)

LOSSES = range(5)


def both_rows(kind, rng, n=30, d=150):
    if kind == "strings":
        text = np.frombuffer(b"ACGTN", dtype=np.uint8)[rng.choice(5, p=[0.24] * 4 + [0.04], size=(n, 12))]
        letters = np.full(256, 255, dtype=np.uint8)
        letters[[65, 67, 71, 84]] = range(4)
        offset = np.array([0, 48, 240, 240, 240], dtype=np.int64)
        args = (text, letters, 2, 2, offset, np.array([0.4, 0.3, 0.2, 0.1], dtype=np.float32), 512)
        return kernels.string_rows(*args), reference.string_rows(*args), 512, args
    dtype = {"f": np.float32, "b": np.int8, "u": np.uint8}.get(kind[-1], np.float64)
    x = rng.standard_normal((n, d)) * 2
    if kind.startswith(("dense", "block")):
        if kind.startswith("block"):  # mostly zeros, in runs: the kernels pack such rows
            x[np.repeat(rng.random((n, d // 5)) < 0.8, 5, axis=1)] = 0
            x[3] = 0
        x = np.abs(x).astype(dtype) if kind[-1] == "u" else x.astype(dtype)
        return kernels.dense_rows(x, 2), reference.dense_rows(x, 2), d, (x,)
    x[rng.random((n, d)) < 0.8] = 0
    matrix = sparse.csr_matrix(np.abs(x).astype(dtype) if kind[-1] == "u" else x.astype(dtype))
    index = np.int64 if "64" in kind else np.int32
    args = (matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index), d)
    return kernels.sparse_rows(*args), reference.sparse_rows(*args), d, args


KINDS = (
    "dense-d",
    "dense-f",
    "dense-b",
    "dense-u",
    "block-d",
    "block-f",
    "block-b",
    "block-u",
    "sparse-d",
    "sparse64-d",
    "sparse-f",
    "sparse-u",
    "sparse64-b",
    "strings",
)


def problems(kind, loss, rng, bias=0.5):
    ours, twin, d, keep = both_rows(kind, rng)
    row_of = rng.permutation(30).astype(np.int64)
    offsets = np.array([0, 12, 12, 30], dtype=np.int64)
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0) if loss <= 2 else rng.standard_normal(30)
    c = rng.random(30) + 0.1
    m = np.linalg.inv(np.eye(3) + np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]))
    args = (loss, 0.1, bias, offsets, row_of, y, c, m)
    return (
        (kernels.graph_problem(ours, *args), ours),
        (reference.graph_problem(twin, *args), twin),
        d + (bias > 0),
        (args, keep),
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_descent(kind, loss, rng):
    (ours, rows), (twin, twin_rows), width, keep = problems(kind, loss, rng)
    _, _, c = keep[0][4], keep[0][5], keep[0][6]
    results = []
    for module, problem, source in ((kernels, ours, rows), (reference, twin, twin_rows)):
        squares = np.empty(30)
        module.row_squares(source, 1, squares)
        squares += 0.25
        beta = 0.5 * c * keep[0][5] if loss == 2 else np.zeros(30)
        w = np.zeros((3, width), dtype=np.float32 if kind == "strings" else np.float64)
        active, counts = np.arange(30), np.array([12, 0, 18])
        report = module.dual_descent(problem, squares, beta, w, active, counts, 7, 0.0, -np.inf, np.inf, 3)
        results.append((beta, w, counts, np.array(report)))
    tolerance = 1e-4 if kind == "strings" else 1e-8
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_passes(kind, threads, rng):
    (ours, _), (twin, _), width, _ = problems(kind, 0, rng)
    w = rng.standard_normal((3, width)).astype(np.float32 if kind == "strings" else np.float64)
    beta = np.where(rng.random(30) < 0.3, 0, rng.standard_normal(30))
    results = []
    for module, problem in ((kernels, ours), (reference, twin)):
        scores, v = np.full(30, np.nan), np.full((3, width), np.nan)
        run = module.graph_pass_single if kind == "strings" else module.graph_pass
        run(problem, w, beta, threads, scores, v)
        results.append((scores, v))
    np.testing.assert_allclose(
        results[0][0], results[1][0], rtol=1e-5, atol=1e-5 if kind == "strings" else 1e-10
    )
    np.testing.assert_allclose(
        results[0][1], results[1][1], rtol=1e-6, atol=1e-6 if kind == "strings" else 1e-10
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_measured_rows(kind, threads, rng):
    """To one rounding, though nearly all of a score cancels."""
    (ours, _), (twin, _), width, _ = problems(kind, 0, rng)
    w = rng.standard_normal((3, width)).astype(np.float32 if kind == "strings" else np.float64)
    beta = np.where(rng.random(30) < 0.3, 0, rng.standard_normal(30))
    plain = np.empty(30)
    (kernels.graph_pass_single if kind == "strings" else kernels.graph_pass)(ours, w, None, 1, plain, None)
    intercept = np.array([-plain[3], 2.0, 1e8])
    results = []
    for module, problem in ((kernels, ours), (reference, twin)):
        scores, sizes, v = np.full(30, np.nan), np.full(30, np.nan), np.full((3, width), np.nan)
        module.measure_rows(problem, w, intercept, beta, threads, scores, sizes, v)
        results.append((scores, sizes, v))
    (scores, sizes, v), (true_scores, true_sizes, true_v) = results
    assert np.all(np.abs(scores - true_scores) <= 4e-16 * np.abs(true_scores) + 1e-28 * true_sizes)
    np.testing.assert_allclose(sizes, true_sizes, rtol=1e-13)
    # the twin adds up strings' features that meet in one place before it multiplies
    np.testing.assert_allclose(v, true_v, rtol=1e-12 if kind == "strings" else 4e-16, atol=1e-15)


def test_which_rows_are_packed(rng):
    full = rng.standard_normal((50, 130))
    empty = np.where(np.repeat(rng.random((50, 13)) < 0.7, 10, axis=1), 0.0, full)
    for x, packed in ((full, False), (empty, True), (empty[:, :40].copy(), False), (empty[:0], False)):
        for dtype in (np.float64, np.float32):
            assert kernels.dense_rows(x.astype(dtype), 2).packed is packed
    squares = np.empty(50)
    kernels.row_squares(kernels.dense_rows(empty, 2), 2, squares)
    np.testing.assert_allclose(squares, np.sum(empty**2, axis=1))


def test_naps_end(rng):
    """A sample held at its bound is asked again: the descent with naps ends where every sample is optimal."""
    x, y = rng.standard_normal((40, 5)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    rows = kernels.dense_rows(x, 1)
    problem = kernels.graph_problem(
        rows, 0, 0.0, 0.0, np.array([0, 40]), None, y, np.full(40, 0.3), np.eye(1)
    )
    squares, beta, w = np.sum(x * x, axis=1), np.zeros(40), np.zeros((1, 5))
    active, counts = np.arange(40), np.array([40])
    epochs, visits, *_ = kernels.dual_descent(
        problem, squares, beta, w, active, counts, 3000, -1.0, -np.inf, np.inf, 0
    )
    assert epochs == 3000
    assert visits < 3000 * 40 * 0.8
    gap = kernels.fenchel_sums(problem, x @ w[0], beta)[1]
    assert gap <= 1e-9


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_rebuilt_table(kind, threads, rng):
    (ours, _), (twin, _), width, _ = problems(kind, 0, rng)
    beta = np.where(rng.random(30) < 0.3, 0, rng.standard_normal(30))
    dtype = np.float32 if kind == "strings" else np.float64
    found = []
    for module, problem in ((kernels, ours), (reference, twin)):
        w = np.full((3, width), np.nan, dtype=dtype)
        squares = module.rebuild_table(problem, beta, threads, w)
        found.append((w, np.array(squares)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6 if kind == "strings" else 1e-10, atol=1e-7)
    if kind == "strings":  # elsewhere nothing is rounded to single precision, and V's norm is not asked for
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss, rng):
    (ours, _), (twin, _), _, _keep = problems("dense-d", loss, rng)
    z, q = 2 * rng.standard_normal(30), rng.standard_normal(30)
    out = []
    for module, problem in ((kernels, ours), (reference, twin)):
        beta, curvature = np.empty(30), np.empty(30)
        sums = module.smoothed_loss(problem, z, 0.7, 2, beta, curvature)
        totals = module.fenchel_sums(problem, z, beta)
        out.append(
            (
                beta,
                curvature,
                np.array([*sums, *totals, *module.smoothed_slope(problem, z, q, 0.3, 0.7, 2)]),
            )
        )
    for one, other in zip(*out, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert out[0][2][1] >= -1e-12
    assert out[0][2][3] >= 0


def test_hashing(rng):
    ours, twin, _, _ = both_rows("strings", rng)
    found = []
    for module, rows in ((kernels, ours), (reference, twin)):
        counts = np.empty(30, dtype=np.int64)
        module.count_hashed(rows, 2, counts)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
        module.hash_rows(rows, 2, indptr, indices, values)
        found.append((counts, indices, values))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other)


def test_bad_arguments_are_refused(rng):
    x = rng.standard_normal((4, 2))
    rows = kernels.dense_rows(x, 1)
    one, y = np.eye(1), np.ones(4)
    offsets = np.array([0, 4])
    with pytest.raises(ValueError, match="row out of range"):
        kernels.graph_problem(rows, 0, 0.0, 0.0, offsets, np.array([0, 1, 2, 9]), y, y, one)
    with pytest.raises(ValueError, match="column index"):
        kernels.sparse_rows(np.ones(1), np.array([5], dtype=np.int32), np.array([0, 1], dtype=np.int32), 3)
    problem = kernels.graph_problem(rows, 0, 0.0, 0.0, offsets, None, y, y, one)
    with pytest.raises(ValueError, match="active"):
        kernels.dual_descent(
            problem,
            y,
            np.zeros(4),
            np.zeros((1, 2)),
            np.array([0, 1, 2, 7]),
            np.array([4]),
            1,
            0.0,
            -np.inf,
            np.inf,
            0,
        )
