"""Rows of W and coordinate descent: compiled kernels against their NumPy twins.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`),
where reading or writing past an array ends the process.
"""

from __future__ import annotations

import ctypes
import os
from itertools import pairwise

import numpy as np
import pytest
from kernel_helpers import both, needs_kernels, row_problem

from tasksieve._kernels import kernels, reference

pytestmark = needs_kernels

PENALTIES = [
    (1.0, 0.0, 0.0),
    (0.8, 0.0, 0.6),
    (0.0, 0.7, 0.0),
    (0.6, 0.3, 0.0),
    (0.5, 0.4, 0.9),
    (0.0, 0.0, 0.2),
]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("group", "l1", "ridge"), PENALTIES)
@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_solve_rows(rng, tasks, group, l1, ridge, positive):
    count = 80
    c, h = 2 * rng.standard_normal((count, tasks)), rng.random((count, tasks)) * 3
    c[0] = 0.0
    h[1] = 2.0  # equal curvatures: closed form
    h[2, 0] = c[2, 0] = 0.0  # an empty column in one task
    h[3] = c[3] = 0.0  # and in all
    h[4] *= np.geomspace(1e-8, 1e8, tasks)
    h[5] = 1e-300
    groups, l1s = np.full(count, group), np.full(count, l1)
    groups[6:9] *= [1e-12, 1e12, 1.0]
    ours, twin = both("solve_rows", (count, tasks), c, h, groups, l1s, ridge, positive)
    np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-12)
    assert not (positive and (ours < 0).any())
    # optimality: the gradient of the smooth part is minus a subgradient of the penalty
    ordinary = slice(9, None)
    w, slope = ours[ordinary], (c - (h + ridge) * ours)[ordinary]
    size = np.linalg.norm(w, axis=1)
    live = size > 0
    wanted = group * w[live] / size[live][:, None] + l1 * np.sign(w[live])
    on = w[live] != 0
    np.testing.assert_allclose(slope[live][on], wanted[on], atol=1e-9)
    off = np.maximum(slope, 0.0) if positive else np.abs(slope)
    assert np.all(off[live][~on] <= l1 + 1e-9)
    assert np.all(np.linalg.norm(np.maximum(off[~live] - l1, 0.0), axis=1) <= group + 1e-9)


def norm_of(kind, w, group, l1):
    """The norms of rows, from their definitions."""
    return np.array([reference.coordinate.row_norm(row, group, l1, kind) for row in w])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize(("kind", "group", "l1"), [(1, 1.1, 0.0), (2, 1.2, 0.8), (2, 0.5, 0.8), (2, 3.0, 0.8)])
@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_solve_rows_of_other_kinds(rng, tasks, kind, group, l1, ridge, positive):
    count = 60
    c, h = 2 * rng.standard_normal((count, tasks)), rng.random((count, tasks)) * 3
    c[0] = 0.0
    h[1] = 2.0
    h[2, 0] = c[2, 0] = 0.0
    h[3] = c[3] = 0.0
    h[4] *= np.geomspace(1e-2, 1e2, tasks)
    c[5] = 1.5  # ties
    groups, l1s = np.full(count, group), np.full(count, l1)
    ours, twin = (np.empty((count, tasks)) for _ in range(2))
    kernels.solve_rows(c, h, groups, l1s, ridge, positive, ours, kind)
    reference.solve_rows(c, h, groups, l1s, ridge, positive, twin, kind)
    np.testing.assert_allclose(ours, twin, rtol=1e-10, atol=1e-12)
    assert not (positive and (ours < 0).any())
    # optimality: the slope lies in the dual ball, and is attained
    slope = c - (h + ridge) * ours
    gauges = [reference.row_gauge(row, group, l1, positive, kind) for row in slope]
    assert np.all(np.array(gauges) <= 1.0 + 1e-10)
    np.testing.assert_allclose(np.sum(slope * ours, axis=1), norm_of(kind, ours, group, l1), atol=1e-9)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("use_gram", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    ("kind", "group", "l1", "ridge"), [(1, 1.5, 0.0, 0.1), (2, 0.7, 0.55, 0.0), (2, 0.7, 0.55, 0.4)]
)
def test_coordinate_descent_of_other_kinds(rng, kind, group, l1, ridge, positive, use_gram):
    count, lengths = 5, (6, 7, 9)
    x, offsets, columns, h, y = row_problem(rng, lengths, False, count)
    blocks = blocks_of(x, offsets, False, columns)
    parts = [y[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    groups, l1s = np.full(count, group), np.full(count, l1)
    gram = np.array([b.T @ b for b in blocks]) if use_gram else None
    y_products = np.array([b.T @ p for b, p in zip(blocks, parts, strict=True)]) if use_gram else None
    positions = np.arange(count) if use_gram else columns
    values = []
    for module in (kernels, reference):
        w = np.zeros((count, 3))
        state = np.empty(3 * count) if use_gram else y.copy()
        _, gap, objective = module.coordinate_descent(
            x, offsets, False, positions, h, groups, l1s, ridge, positive, w, state, 20_000, 1e-9,
            gram, y_products, float(y @ y), kind,
        )  # fmt: skip
        residual = y - np.concatenate([b @ w[:, t] for t, b in enumerate(blocks)])
        value = 0.5 * residual @ residual + norm_of(kind, w, group, l1).sum() + 0.5 * ridge * np.sum(w * w)
        assert objective == pytest.approx(value, rel=1e-11)
        assert gap <= 1e-9
        values.append(value)
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize(("kind", "in_blocks"), [(0, False), (1, False), (2, False), (0, True)])
def test_coordinate_descent_over_classes(rng, kind, in_blocks):
    """A quadratic model of softmax, two tasks of 3 and 2 classes: as one of all free directions, written out."""
    lengths, classes, count = (5, 5, 5, 7, 7), np.array([0, 3, 5]), 4
    x, offsets, columns, h, y = row_problem(rng, lengths, False, count)
    shares, levels, parts = rng.uniform(0.1, 1.0, len(y)), rng.uniform(0.5, 1.5, len(y)), []
    directions = []  # of each row, and of each class
    for low, high in zip(classes[:-1], classes[1:], strict=True):
        own = slice(offsets[low], offsets[high])
        q = shares[own].reshape(high - low, -1)
        q /= np.linalg.norm(q, axis=0)
        for i in range(q.shape[1]):
            directions.append(np.zeros(len(y)))
            directions[-1][own].reshape(q.shape)[:, i] = q[:, i]
        free = np.array(directions[-q.shape[1] :])
        raised = np.zeros((high - low, len(y)))
        for k, t in enumerate(range(low, high)):
            raised[k, offsets[t] : offsets[t + 1]] = levels[offsets[t] : offsets[t + 1]]
        directions += list(raised)
        raised = raised - (raised @ free.T) @ free
        parts.append(np.linalg.pinv(raised @ raised.T).ravel())
    basis = np.linalg.qr(np.array(directions).T)[0]
    y = y - basis @ (basis.T @ y)
    strengths, starts = (np.full(count, 0.6), np.full(count, 0.4)), None
    if in_blocks:
        starts, strengths = np.array([0, 3, 4]), (np.full(2, 0.9), np.full(2, 0.3))
        h = 3.0 * np.broadcast_to(h.sum(axis=0), h.shape)
    values = []
    for module in (kernels, reference):
        w, state = np.zeros((count, 5)), y.copy()
        _, gap, objective = module.coordinate_descent(
            x, offsets, False, columns, h, *strengths, 0.1, False, w, state, 5000, 1e-9, None, None, 0.0, kind, starts,
            classes=classes, shares=shares, levels=levels, inverse=np.concatenate(parts),
        )  # fmt: skip
        image = np.concatenate([x[a:b][:, columns] @ w[:, t] for t, (a, b) in enumerate(pairwise(offsets))])
        residual = y - image
        residual -= basis @ (basis.T @ residual)
        np.testing.assert_allclose(state, residual, atol=1e-9)
        rows = w if starts is None else [w[:3].ravel(), w[3:].ravel()]
        norms = sum(float(norm_of(kind, row[None, :], strengths[0][0], strengths[1][0])[0]) for row in rows)
        assert objective == pytest.approx(0.5 * residual @ residual + norms + 0.05 * np.sum(w * w), rel=1e-10)
        assert gap <= 1e-9
        values.append(objective)
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    ("group", "l1"), [(1.3, 0.0), (0.0, 0.4), (0.7, 0.5), (1e-6, 2.0), (2.0, 1e-6), (0.0, 0.0)]
)
@pytest.mark.parametrize("tasks", [1, 6])
def test_row_gauges(rng, tasks, group, l1, positive):
    m = rng.standard_normal((50, tasks)) * np.geomspace(1e-12, 1e12, 50)[:, None]
    m[0] = 0.0
    m[1] = -1.0
    m[2, 1:] = 0.0
    weights = np.full(50, group), np.full(50, l1)
    ours, twin = both("row_gauges", 50, m, None, *weights, positive)
    np.testing.assert_allclose(ours, twin, rtol=1e-12)
    if group + l1 == 0.0:
        assert not ours.any()
        return
    # products that may be off: no more than the gauge of any products within these errors
    errors = rng.random(m.shape) * np.abs(m)
    upper, twin = both("row_gauges", 50, m, errors, *weights, positive)
    np.testing.assert_allclose(upper, twin, rtol=1e-12)
    for _ in range(10):
        inside = m + errors * rng.uniform(-1.0, 1.0, m.shape)
        assert np.all(both("row_gauges", 50, inside, None, *weights, positive)[0] <= upper * (1.0 + 1e-12))
    # on the boundary of the dual ball, and not above it
    size = np.maximum(m, 0.0) if positive else np.abs(m)
    rest = np.linalg.norm(np.maximum(size - ours[:, None] * l1, 0.0), axis=1)
    assert np.all(np.abs(rest - ours * group) <= 1e-9 * ours * group + 1e-14 * size.max(axis=1))


@pytest.mark.parametrize("tasks", [0, 1, 2, 9])
def test_row_norms(rng, tasks):
    rows = rng.standard_normal((30, tasks)) * np.geomspace(1e-9, 1e9, 30)[:, None]
    ours, twin = both("row_norms", 30, rows)
    np.testing.assert_allclose(ours, twin, rtol=1e-15)


@pytest.mark.parametrize("tasks", [1, 3])
def test_pick_rows(rng, tasks):
    for known, wanted in (([], []), ([], [3]), ([2, 5, 7], []), ([1, 4, 6, 9], [0, 4, 5, 9, 12]), ([3], [3])):
        rows = rng.standard_normal((len(known), tasks))
        lists = np.array(known, dtype=np.int64), rows, np.array(wanted, dtype=np.int64)
        ours, twin = both("pick_rows", (len(wanted), tasks), *lists)
        np.testing.assert_array_equal(ours, twin)
        for feature, row in zip(wanted, ours, strict=True):
            assert np.array_equal(row, rows[known.index(feature)] if feature in known else np.zeros(tasks))


def blocks_of(x, offsets, shared, columns):
    if shared:
        return [x[:, columns]] * (len(offsets) - 1)
    return [x[a:b, columns] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("use_gram", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("group", "l1", "ridge"), PENALTIES[:5])
@pytest.mark.parametrize(
    ("lengths", "shared"),
    [((6, 1, 9), False), ((11,), False), ((8, 8, 8, 8), True)],
    ids=["tasks", "one", "shared"],
)
def test_coordinate_descent(rng, lengths, shared, group, l1, ridge, positive, use_gram):
    count = 10
    x, offsets, columns, h, y = row_problem(rng, lengths, shared, count)
    blocks, tasks = blocks_of(x, offsets, shared, columns), len(lengths)
    parts = [y[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    strongest = max(np.abs(b.T @ p).max() for b, p in zip(blocks, parts, strict=True))
    groups, l1s = np.full(count, 0.3 * strongest * group), np.full(count, 0.3 * strongest * l1)
    gram = y_products = None
    if use_gram:  # of all columns, those that take part and others, in a matrix with room for more
        wide = blocks_of(x, offsets, shared, np.arange(x.shape[1]))
        own = wide[:1] if shared else wide
        gram = np.full((len(own), x.shape[1] + 2, x.shape[1] + 2), np.nan)
        gram[:, : x.shape[1], : x.shape[1]] = [b.T @ b for b in own]
        y_products = np.array([b.T @ p for b, p in zip(wide, parts, strict=True)])
    objectives, solutions = [], []
    for module in (kernels, reference):
        w = np.zeros((count, tasks))
        w[3] = 0.5 + np.arange(tasks)  # a start
        if gram is None:
            state = y - np.concatenate([b[:, 3] * w[3, t] for t, b in enumerate(blocks)])
        else:
            state = np.full(y_products.size, np.nan)
        epochs, gap, objective = module.coordinate_descent(
            x, offsets, shared, columns, h, groups, l1s, ridge, positive, w, state, 20_000, 1e-13,
            gram, y_products, float(y @ y),
        )  # fmt: skip
        assert epochs >= 1
        # the state is kept in step with w
        residual = y - np.concatenate([b @ w[:, t] for t, b in enumerate(blocks)])
        pieces = [residual[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        if use_gram:
            products = np.concatenate([b.T @ p for b, p in zip(wide, pieces, strict=True)])
        np.testing.assert_allclose(state, residual if gram is None else products, atol=1e-10)
        # the objective and the gap are what they are called
        size = np.linalg.norm(w, axis=1)
        value = (
            0.5 * residual @ residual
            + groups @ size
            + l1s @ np.abs(w).sum(axis=1)
            + 0.5 * ridge * np.sum(w * w)
        )
        assert objective == pytest.approx(value, rel=1e-11)
        assert gap <= 1e-12
        assert not (positive and (w < 0).any())
        assert not w[0].any()  # the zero column
        objectives.append(value)
        solutions.append(residual)
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-10)
    np.testing.assert_allclose(solutions[0], solutions[1], atol=1e-5)  # the fit is unique, W need not be


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("use_gram", "strength"), [(False, 1e3), (True, 0.1)])
@pytest.mark.parametrize(
    ("group", "l1", "positive", "kind"),
    [
        (1.0, 0.0, False, 0), (1.0, 0.0, True, 0), (0.5, 0.5, False, 0), (0.0, 1.0, False, 0),
        (1.0, 0.0, False, 1), (0.6, 0.5, False, 2), (0.6, 0.5, True, 2),
    ],
)  # fmt: skip
def test_coordinate_descent_with_a_graph_of_tasks(rng, group, l1, positive, kind, use_gram, strength):
    """Both twins reach the gap that was asked for, rotated or majorised, and it is that of the problem as written."""
    count, tasks, ridge = 8, 3, 0.2
    x, offsets, columns, h, y = row_problem(rng, (6, 1, 9), False, count)
    blocks = blocks_of(x, offsets, False, columns)
    parts = [y[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    strongest = max(np.abs(b.T @ p).max() for b, p in zip(blocks, parts, strict=True))
    groups, l1s = np.full(count, 0.5 * strongest * group), np.full(count, 0.5 * strongest * l1)
    coupling = strength * np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]])
    laplacian = np.diag(coupling.sum(axis=1)) - coupling
    curvatures = rotations = None
    if l1 == 0.0 and not positive and kind == 0:
        curvatures, rotations = np.linalg.eigh(laplacian + np.array([np.diag(row) for row in h]))
    gram = y_products = None
    if use_gram:
        columns = np.arange(count)
        gram = np.array([b.T @ b for b in blocks])
        y_products = np.array([b.T @ p for b, p in zip(blocks, parts, strict=True)])
    objectives, tol = [], 1e-4 if kind == 0 else 0.02  # majorised steps are many, and the twin is slow
    for module in (kernels, reference):
        w, state = np.zeros((count, tasks)), y.copy() if gram is None else np.empty(y_products.size)
        _, gap, objective = module.coordinate_descent(
            x, offsets, False, columns, h, groups, l1s, ridge, positive, w, state, 2_000, tol,
            gram, y_products, float(y @ y), kind, None, coupling, curvatures, rotations,
        )  # fmt: skip
        residual = y - np.concatenate([b @ w[:, t] for t, b in enumerate(blocks)])
        norms = [reference.coordinate.row_norm(w[k], groups[k], l1s[k], kind) for k in range(count)]
        value = 0.5 * residual @ residual + sum(norms)
        value += 0.5 * ridge * np.sum(w * w) + 0.5 * np.sum((w @ laplacian) * w)
        assert objective == pytest.approx(value, rel=1e-9)
        assert gap <= tol
        assert w.any()
        assert not (positive and (w < 0).any())
        objectives.append(value)
    assert objectives[0] == pytest.approx(objectives[1], abs=tol)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("shared", [False, True])
def test_coordinate_descent_on_several_threads(rng, kind, shared):
    """Long columns: tasks are shared among threads, which changes no digit. Columns may be in single precision."""
    lengths = [1500, 40, 1800, 1, 1700] if not shared else [1300] * 4
    tasks, count = len(lengths), 7
    offsets = np.append(0, np.cumsum(lengths))
    x = np.asfortranarray(rng.standard_normal((1300 if shared else offsets[-1], 9)).astype(kind))
    columns = np.array([2, 0, 5, 8, 1, 7, 4])
    own = blocks_of(x.astype(float), offsets, shared, columns)
    h = np.ascontiguousarray(np.array([np.sum(np.square(block), axis=0) for block in own]).T)
    h[1, 2] = 0.0  # a coefficient that is known to be 0
    y = rng.standard_normal(offsets[-1])
    y += np.concatenate([block[:, 0] - block[:, 4] for block in own])
    found = []
    for module, threads in ((kernels, 1), (kernels, 2), (kernels, 3), (reference, 1)):
        w, state = np.zeros((count, tasks)), y.copy()
        _, gap, objective = module.coordinate_descent(
            x, offsets, shared, columns, h, np.full(count, 60.0), np.full(count, 5.0), 0.0, False, w, state, 1000, 1e-9,
            None, None, 0.0, threads=threads,
        )  # fmt: skip
        assert gap <= 1e-9
        assert w[1, 2] == 0.0
        assert w[0].any()
        found.append((w, state, objective))
    for w, state, objective in found[1:3]:
        np.testing.assert_array_equal(w, found[0][0])
        np.testing.assert_array_equal(state, found[0][1])
        assert objective == found[0][2]
    assert found[0][2] == pytest.approx(found[3][2], rel=1e-11)
    np.testing.assert_allclose(found[0][0], found[3][0], atol=1e-6)


def test_coordinate_descent_stops_early_with_a_true_gap(rng):
    x, offsets, columns, h, y = row_problem(rng, (9, 12), False, 15)
    groups, zeros = np.full(15, 0.5), np.zeros(15)
    best = np.inf
    for epochs in (5000, 1, 2, 3, 7):
        w, state = np.zeros((15, 2)), y.copy()
        spent, gap, objective = kernels.coordinate_descent(
            x, offsets, False, columns, h, groups, zeros, 0.0, False, w, state, epochs, 1e-12, None, None, 0.0
        )
        assert spent <= epochs
        best = min(best, objective)
        assert objective - best <= gap + 1e-12


@pytest.mark.skipif(os.name == "nt", reason="asks the C library for memory by name")
def test_coordinate_descent_wherever_its_memory_lies(rng):
    """The kernel's own rows right behind its curvatures in memory, or further away: the same bits."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    tasks, vector, held = 4, 64, []
    for _ in range(100):
        x, offsets, columns, squares, y = row_problem(rng, tasks * [25], False, 1)
        products = np.add.reduceat(x[:, columns[0]] * y, offsets[:-1])
        group = np.array([0.8 * np.linalg.norm(products)])  # so strong that every bit of a row's norm shows
        for _ in range(1000):
            here, beside, _, away = cells = [libc.malloc(squares.nbytes) for _ in range(4)]
            held += cells
            if squares.nbytes <= beside - here < vector <= away - here:
                break
        else:
            pytest.skip("memory is not given out in a row")
        h = np.frombuffer((ctypes.c_char * squares.nbytes).from_address(here)).reshape(squares.shape)
        h[:] = squares
        found = []
        for cell in (away, beside):
            w, state = np.zeros(squares.shape), y.copy()
            args = x, offsets, False, columns, h, group, np.zeros(1), 0.0, False, w, state, 3, 0.0, None, None, 0.0
            held.remove(cell)
            libc.free(cell)  # what is freed last is given out first
            kernels.coordinate_descent(*args)
            found.append(np.concatenate([w.ravel(), state]))
        np.testing.assert_array_equal(*found)
    for cell in held:
        libc.free(cell)


def test_coordinate_descent_of_nothing(rng):
    x, offsets, _, _, y = row_problem(rng, (4, 5), False, 6)
    none, empty = np.empty(0, dtype=np.int64), np.empty((0, 2))
    for module in (kernels, reference):
        state = y.copy()
        _, gap, objective = module.coordinate_descent(
            x, offsets, False, none, empty, np.empty(0), np.empty(0), 0.0, False, empty.copy(), state, 3, 0.0,
            None, None, 0.0,
        )  # fmt: skip
        assert gap == pytest.approx(0.0, abs=1e-12)
        assert objective == pytest.approx(0.5 * y @ y)
        assert np.array_equal(state, y)
    # no epoch allowed: nothing is touched, and the gap is that of the start
    columns = np.arange(6)
    w = rng.standard_normal((6, 2))
    before, state = w.copy(), y.copy()
    found = []
    for module in (kernels, reference):
        epochs, gap, _ = module.coordinate_descent(
            x, offsets, False, columns, np.ones((6, 2)), np.ones(6), np.zeros(6), 0.0, False, w, state, 0, 0.0,
            None, None, 0.0,
        )  # fmt: skip
        assert epochs == 0
        found.append(gap)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0] > 0.0
    assert np.array_equal(w, before)
    assert np.array_equal(state, y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("use_gram", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("kind", "l1", "ridge"), [(0, 0.0, 0.0), (0, 0.3, 0.2), (3, 0.4, 0.0), (3, 0.4, 0.3)])
def test_coordinate_descent_of_blocks(rng, kind, l1, ridge, positive, use_gram):
    """Columns joined to blocks, the curvature of each bounded by its largest eigenvalue."""
    count, lengths, starts = 10, (9, 7, 12), np.array([0, 1, 4, 6, 10])
    x, offsets, columns, h, y = row_problem(rng, lengths, False, count)
    blocks = blocks_of(x, offsets, False, columns)
    parts = [y[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    for low, high in zip(starts[:-1], starts[1:], strict=True):
        largest = max(np.linalg.norm(b[:, low:high], 2) ** 2 for b in blocks)
        h[low:high] = np.where(h[low:high] > 0.0, largest, 0.0)
    groups, l1s = np.full(4, 1.0), np.full(4, l1)
    gram = np.array([b.T @ b for b in blocks]) if use_gram else None
    y_products = np.array([b.T @ p for b, p in zip(blocks, parts, strict=True)]) if use_gram else None
    positions = np.arange(count) if use_gram else columns
    values = []
    for module in (kernels, reference):
        w = np.zeros((count, 3))
        state = np.empty(3 * count) if use_gram else y.copy()
        _, gap, objective = module.coordinate_descent(
            x, offsets, False, positions, h, groups, l1s, ridge, positive, w, state, 20_000, 1e-11,
            gram, y_products, float(y @ y), kind, starts,
        )  # fmt: skip
        residual = y - np.concatenate([b @ w[:, t] for t, b in enumerate(blocks)])
        value = 0.5 * residual @ residual + 0.5 * ridge * np.sum(w * w)
        for low, high in zip(starts[:-1], starts[1:], strict=True):
            own = w[low:high]
            value += np.linalg.norm(own)
            value += l1 * (np.linalg.norm(own, axis=1).sum() if kind == 3 else np.abs(own).sum())
        assert objective == pytest.approx(value, rel=1e-11)
        assert gap <= 1e-11
        assert not (positive and (w < 0).any())
        values.append(value)
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_blocks_must_hold_all_columns(rng):
    x, offsets, columns, h, y = row_problem(rng, (5, 6), False, 4)
    two = np.ones(2)
    for starts, kind in (([0, 2, 3], 0), ([1, 2, 4], 0), ([0, 4, 4], 0), ([0, 2, 4], 1)):
        with pytest.raises(ValueError, match="block"):
            kernels.coordinate_descent(
                x, offsets, False, columns, h, two, two, 0.0, False, np.zeros((4, 2)), y.copy(), 3, 0.0,
                None, None, 0.0, kind, np.array(starts),
            )  # fmt: skip
