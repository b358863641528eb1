"""The sorted norm: prox and polar against cvxpy, bad weights; compiled kernels against their twins."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sorted_norms import random_weights, sorted_norm_expression

from tasksieve._kernels import kernels, reference
from tasksieve.penalties.sorted import (
    Sorted,
    oscar_weights,
    read_sorted_weights,
    slope_weights,
    tied_rows,
)


def random_rows(rng, count, tasks):
    rows = rng.standard_normal((count, tasks)) * 10.0 ** rng.integers(-1, 2)
    if count > 3:
        rows[1] = -rows[0]  # a tie
        rows[2] = 0.0
    return rows


def sorted_penalty(weights, positive=False):
    return Sorted(weights).on(np.ones(len(weights)), 2, positive=positive)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("positive", [False, True])
def test_prox_is_the_minimiser(seed, positive):
    rng = np.random.default_rng(seed)
    count, tasks = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    rows, weights, step = (
        random_rows(rng, count, tasks),
        random_weights(rng, count),
        float(rng.uniform(0.1, 2.0)),
    )
    V = cp.Variable((count, tasks))
    objective = 0.5 * cp.sum_squares(V - rows) + step * sorted_norm_expression(V, weights)
    cp.Problem(cp.Minimize(objective), [V >= 0] if positive else []).solve(solver="CLARABEL")
    found = sorted_penalty(weights, positive).proximal(rows, step)
    np.testing.assert_allclose(found, V.value, atol=2e-4 * max(1.0, np.abs(rows).max()))
    # the optimality condition itself, to rounding: rows - found is step times a subgradient
    penalty, gradient = sorted_penalty(weights, positive), (rows - found) / step
    assert penalty.polar(penalty.row_gauges(gradient)) <= 1.0 + 1e-9
    assert np.vdot(gradient, found) == pytest.approx(penalty.value(found), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_polar_is_the_dual_norm(seed):
    rng = np.random.default_rng(seed)
    count, tasks = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    products, weights = random_rows(rng, count, tasks), random_weights(rng, count)
    W = cp.Variable((count, tasks))
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(products, W))), [sorted_norm_expression(W, weights) <= 1.0]
    )
    problem.solve(solver="CLARABEL")
    penalty = sorted_penalty(weights)
    assert penalty.polar(penalty.row_gauges(products)) == pytest.approx(problem.value, rel=1e-6, abs=1e-8)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("positive", [False, True])
def test_compiled_norm_and_its_twin(seed, positive):
    rng = np.random.default_rng(seed)
    compiled, twin = kernels.SortedNorm(), reference.SortedNorm()
    for count in (1, 5, 130, 130, 131):  # the same size twice: the last order is where sorting starts
        tasks = int(rng.integers(1, 5))
        rows, weights = random_rows(rng, count, tasks), random_weights(rng, count)
        one, two = np.empty_like(rows), np.empty_like(rows)
        for step in (1e-3, 0.5, 3.0):
            compiled.prox(rows, weights, step, positive, one)
            twin.prox(rows, weights, step, positive, two)
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-13)
        assert compiled.polar(rows, weights, positive) == pytest.approx(
            twin.polar(rows, weights, positive), rel=1e-12
        )
        assert compiled.value(rows, weights) == pytest.approx(twin.value(rows, weights), rel=1e-12)


def test_exact_ties_of_the_prox():
    rows = np.array([[3.0], [-2.9], [0.1], [0.0]])
    weights = np.array([2.0, 1.0, 0.5, 0.0])
    rows = sorted_penalty(weights).prox(rows, 1.0)
    assert rows[0, 0] == -rows[1, 0] == 1.45
    assert not rows[2:].any()
    assert [group.tolist() for group in tied_rows(rows)] == [[0, 1]]


@pytest.mark.parametrize("layout", ["one task", "shared", "separate"])
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_compiled_fista_and_its_twin(layout, gram, positive):
    rng = np.random.default_rng(1)
    if gram and layout == "separate":
        pytest.skip("one Gram matrix needs one matrix")
    tasks = 1 if layout == "one task" else 3
    n, count = 20, 30
    rows = n if layout != "separate" else n * tasks
    x = np.asfortranarray(rng.standard_normal((rows, count)))
    offsets = n * np.arange(tasks + 1)
    target = rng.standard_normal(n * tasks)
    products = (
        np.stack([x[n * t : n * t + n].T @ target[n * t : n * t + n] for t in range(tasks)], axis=1)
        if layout == "separate"
        else x.T @ target.reshape(tasks, n).T
    )
    weights = 0.3 * np.sort(np.linalg.norm(products, axis=1))[::-1][0] * oscar_weights(count)
    results = []
    for module in (kernels, reference):
        w, dual = np.zeros((count, tasks)), np.zeros((count, tasks))
        spent, gap, curvature = module.SortedFista().solve(
            x, offsets, layout == "shared", target, x.T @ x if gram else None, np.ascontiguousarray(products),
            float(target @ target), weights, positive, w, dual, 1e-9, 5000, 5, 50.0, 1,
        )  # fmt: skip
        assert gap <= 1e-9
        results.append((spent, w, dual, curvature))
    (spent, w, dual, curvature), (spent2, w2, dual2, curvature2) = results
    assert (
        abs(spent - spent2) <= 10
    )  # when the gap is met is a matter of rounding, and so is the last curvature
    np.testing.assert_allclose(w, w2, atol=1e-6)
    np.testing.assert_allclose(dual, dual2, atol=1e-6)
    assert curvature == pytest.approx(curvature2, rel=0.2)


@pytest.mark.parametrize("case", ["dense", "dense tasks", "sparse", "sparse centred"])
@pytest.mark.parametrize("loss", ["squared", "multinomial", "multinomial intercept"])
def test_compiled_svrg_and_its_twin(case, loss):
    if case == "dense tasks" and loss != "squared":
        pytest.skip("classes share their rows")
    rng = np.random.default_rng(2)
    n, count, tasks, size = 24, 7, 3, 4
    x = rng.standard_normal((n, count)) * (rng.random((n, count)) < 0.5)
    root = np.sqrt(rng.random(n))
    root[3] = 0.0
    csr = sparse.csr_array(x)
    task_of = np.repeat(np.arange(tasks), n // tasks) if case == "dense tasks" else None
    is_sparse = case.startswith("sparse")
    centre = x.mean(axis=0) if case == "sparse centred" else None
    seen = root[:, None] * (x - centre) if centre is not None else root[:, None] * x
    start = rng.standard_normal((count, tasks))
    z = seen @ start
    reference_z = z[np.arange(n), task_of][:, None].copy() if task_of is not None else np.ascontiguousarray(z)
    b = rng.standard_normal(tasks)
    batches = rng.permutation(n).reshape(-1, size)
    results = []
    for module in (kernels, reference):
        w, own_b = start.copy(), b.copy()
        module.SortedSvrg().epoch(
            None if is_sparse else np.ascontiguousarray(seen),
            csr.data if is_sparse else None,
            csr.indices.astype(np.int32) if is_sparse else None,
            csr.indptr.astype(np.int64) if is_sparse else None,
            centre,
            task_of,
            loss != "squared",
            root if is_sparse or loss != "squared" else None,
            oscar_weights(count),
            False,
            loss == "multinomial intercept",
            w,
            own_b,
            reference_z,
            rng.standard_normal((count, tasks)) * 0 + 0.3,
            b.copy(),
            np.full(tasks, 0.1),
            batches,
            0.02,
        )
        results.append((w, own_b))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12)


def test_svrg_correction_is_unbiased():
    """The mean over all batches of the corrected gradient is the gradient: the factor is n/l, not 1/l."""
    rng = np.random.default_rng(0)
    n, count = 6, 3
    x, target = rng.standard_normal((n, count)), rng.standard_normal(n)
    w0, w1 = rng.standard_normal((count, 1)), rng.standard_normal((count, 1))
    full = x.T @ (x @ w0 - target[:, None])
    steps = []
    for i in range(n):
        w = w1.copy()
        kernels.SortedSvrg().epoch(
            x, None, None, None, None, None, False, None, np.zeros(count), False, False, w, np.zeros(1), x @ w0, full,
            np.zeros(1), np.zeros(1), np.array([[i]]), 1.0,
        )  # fmt: skip
        steps.append(w1 - w)
    np.testing.assert_allclose(np.mean(steps, axis=0), x.T @ (x @ w1 - target[:, None]), atol=1e-12)


def test_weights_of_the_papers():
    np.testing.assert_allclose(oscar_weights(4, 1.0), np.array([1.75, 1.5, 1.25, 1.0]) / 1.75)
    np.testing.assert_allclose(oscar_weights(4, 0.0), np.ones(4))
    from scipy.stats import norm

    np.testing.assert_allclose(slope_weights(5, 0.2), norm.ppf(1 - np.arange(1, 6) * 0.02) / norm.ppf(0.98))
    assert (slope_weights(50, 1.0) >= 0.0).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 0.5, 0.7], "increase from 0.5 at rank 1 to 0.7 at rank 2"),
        ([1.0, 0.5, -0.1], r"weights\[2\] is -0.1"),
        ([1.0, 0.5], "3 features"),
        ([1.0, np.nan, 0.5], r"weights\[1\] is nan"),
        ([np.inf, 1.0, 0.5], r"weights\[0\] is inf"),
        ([0.0, 0.0, 0.0], "all zero"),
        ([[1.0], [1.0], [1.0]], "shape"),
        ("bh", "'oscar', 'slope'"),
        (None, "MultiTaskLasso"),
        (2.0, "MultiTaskLasso"),
        (["a", "b", "c"], "array of numbers"),
    ],
)
def test_bad_weights_get_a_clear_error(weights, words):
    with pytest.raises(ValueError, match=words):
        read_sorted_weights(weights, 3)
