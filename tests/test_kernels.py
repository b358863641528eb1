"""Every compiled kernel against its NumPy twin, on ordinary and degenerate input.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`),
where reading or writing past an array ends the process.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tasksieve._kernels import compiled, kernels, reference

pytestmark = pytest.mark.skipif(
    not compiled, reason="no compiled kernels here to compare with their NumPy twins"
)

DTYPES = (np.float64, np.float32, np.int8, np.uint8)
THREADS = (1, 2, 3, 8)

# Rows of each task: ordinary, rows of one, a single task, a task without rows, no rows at all.
TASKS = {
    "uneven": (5, 17, 1, 9),
    "one-row": (1, 1, 1),
    "one-task": (23,),
    "empty-task": (4, 0, 7),
    "no-rows": (0, 0),
    "long": (300, 211),
}


def draw(rng, shape, dtype=np.float64, order="F"):
    """Random numbers over the whole range of a small integer type, with a zero column."""
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, size=shape, endpoint=True, dtype=dtype)
    else:
        x = rng.standard_normal(shape).astype(dtype)
    if shape[1] > 2:
        x[:, 1] = 0
    return np.require(x, requirements=order)


def layout(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def both(name, out_shape, *args, order="C", dtype=np.float64, fill=np.nan):
    """The result array of a kernel and of its twin; `args` is a function of the array to write into."""
    results = []
    for module in (kernels, reference):
        out = np.full(out_shape, fill, dtype=dtype, order=order)
        getattr(module, name)(*args, out)
        results.append(out)
    return results


def column_choices(rng, features):
    """All columns, none, and some in no order with a repetition."""
    some = rng.integers(0, features, size=min(features, 7)) if features else np.empty(0, dtype=np.int64)
    return {"all": None, "none": np.empty(0, dtype=np.int64), "some": some}


def same_bytes(results):
    first = results[0]
    return all(np.array_equal(first.view(np.uint8), other.view(np.uint8)) for other in results[1:])


# --- passes over the data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", TASKS.values(), ids=TASKS)
def test_segment_products(rng, lengths, dtype, squares):
    offsets = layout(lengths)
    x = draw(rng, (offsets[-1], 11), dtype)
    r = rng.standard_normal(offsets[-1])
    for columns in column_choices(rng, 11).values():
        shape = (11 if columns is None else len(columns), len(lengths))
        ours, twin = both("segment_products", shape, x, columns, r, offsets, squares, 1)
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12 * (1 + np.abs(twin).max(initial=0)))


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "tasks"), [(13, 4), (1, 3), (40, 1), (700, 2)])
def test_shared_products(rng, rows, tasks, dtype, squares):
    x = draw(rng, (rows, 19), dtype)
    r = np.asfortranarray(rng.standard_normal((rows, tasks)))
    for columns in column_choices(rng, 19).values():
        shape = (19 if columns is None else len(columns), tasks)
        ours, twin = both("shared_products", shape, x, columns, r, squares, 1)
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12 * (1 + np.abs(twin).max(initial=0)))


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("density", [0.3, 0.0])
def test_sparse_products(rng, dtype, index, squares, density):
    offsets = layout((6, 1, 10))
    x = draw(rng, (17, 9), dtype)
    x[rng.random(x.shape) >= density] = 0
    csc = sparse.csc_array(x)
    parts = (csc.data, csc.indices.astype(index), csc.indptr.astype(index))
    task_of = np.repeat(np.arange(3), np.diff(offsets))
    stacked, shared = rng.standard_normal((17, 1)), rng.standard_normal((17, 5))
    for columns in column_choices(rng, 9).values():
        count = 9 if columns is None else len(columns)
        for r, owner, tasks in ((stacked, task_of, 3), (shared, None, 5)):
            ours, twin = both("sparse_products", (count, tasks), *parts, columns, r, owner, tasks, squares, 1)
            np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12 * (1 + np.abs(twin).max(initial=0)))


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [0, 1, 12])
def test_row_products_add_to_what_is_there(rng, rows, dtype, squares):
    x = draw(rng, (rows, 21), dtype, order="C")
    r = rng.standard_normal(rows)
    r[: rows // 4] = 0.0
    task_of = rng.integers(0, 3, size=rows)
    ours, twin = both("row_products", (3, 21), x, r, task_of, squares, 1, fill=0.25)
    np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12 * (1 + np.abs(twin).max(initial=0)))
    if rows == 0:
        assert np.all(ours == 0.25)


def test_dense_and_sparse_and_row_passes_agree(rng):
    offsets = layout((30, 1, 44))
    x = draw(rng, (75, 33), np.int8)
    x[rng.random(x.shape) < 0.5] = 0
    r = rng.standard_normal(75)
    dense, by_sparse, by_row = np.empty((33, 3)), np.empty((33, 3)), np.zeros((3, 33))
    kernels.segment_products(x, None, r, offsets, False, 1, dense)
    csc, task_of = sparse.csc_array(x), np.repeat(np.arange(3), np.diff(offsets))
    kernels.sparse_products(
        csc.data, csc.indices, csc.indptr, None, r[:, None], task_of, 3, False, 1, by_sparse
    )
    kernels.row_products(np.ascontiguousarray(x), r, task_of, False, 1, by_row)
    np.testing.assert_allclose(by_sparse, dense, atol=1e-10)
    np.testing.assert_allclose(by_row.T, dense, atol=1e-10)


def test_read_only_input_is_accepted(rng):
    x, r = draw(rng, (8, 5)), rng.standard_normal(8)
    for array in (x, r):
        array.flags.writeable = False
    out = np.empty((5, 1))
    kernels.segment_products(x, None, r, layout((8,)), False, 1, out)
    np.testing.assert_allclose(out[:, 0], x.T @ r)


# --- bounds from past passes -----------------------------------------------------------------------------------------


def anchored_input(rng, features, tasks, anchors, one_norm, scale=1.0):
    return {
        "anchors": [
            (scale * rng.standard_normal((features, tasks))).astype(np.float32) for _ in range(anchors)
        ],
        "coef": rng.standard_normal((anchors, tasks)) / max(anchors, 1),
        "norms": np.abs(scale * rng.standard_normal((features, 1 if one_norm else tasks))).astype(np.float32),
        "remainder": 0.1 * rng.random(tasks),
        "shared_remainder": 0.1 * rng.random(),
    }


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1", ["none", "some", "all", "only"])
@pytest.mark.parametrize("radius", [0.0, 0.3])
@pytest.mark.parametrize("one_norm", [False, True])
@pytest.mark.parametrize("tasks", [1, 4])
def test_anchored_ratios(rng, tasks, one_norm, radius, l1, positive):
    features = 60
    for anchors in (0, 1, 3):
        given = anchored_input(rng, features, tasks, anchors, one_norm)
        given["norms"][::7] = 0.0
        group = rng.uniform(0.5, 3.0, features)
        group[::11] = 0.0
        entries = rng.uniform(0.1, 1.0, features)
        entries[::5] = 0.0
        strength = {
            "none": None,
            "some": entries,
            "all": np.full(features, 0.4),
            "only": np.full(features, 0.9),
        }[l1]
        if l1 == "only":
            group[:] = 0.0
        results = []
        for module in (kernels, reference):
            estimate, upper = np.full(features, np.nan), np.full(features, np.nan)
            module.anchored_ratios(*given.values(), radius, group, strength, positive, 1, estimate, upper)
            results.append((estimate, upper))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-11, atol=1e-14)


def test_anchored_upper_bound_holds_over_the_ball(rng):
    """No point of the ball, and no remainder of the allowed size, exceeds the bound."""
    features, tasks, rows, radius = 40, 3, 6, 0.4
    x = rng.standard_normal((tasks, rows, features))
    anchor = rng.standard_normal((tasks, rows))
    products = np.einsum("tnd,tn->dt", x, anchor)
    norms = np.linalg.norm(x, axis=1).T.astype(np.float32, order="C") * np.float32(1 + 1e-6)
    remainder = rng.uniform(0.01, 0.2, tasks)
    group = rng.uniform(1.0, 6.0, features)
    for l1, positive in ((0.0, False), (0.3, False), (0.3, True), (0.0, True)):
        estimate, upper = np.empty(features), np.empty(features)
        kernels.anchored_ratios(
            [products.astype(np.float32, order="C")], np.ones((1, tasks)), norms, remainder + 1e-5, 0.0, radius, group,
            np.full(features, l1) if l1 else None, positive, 1, estimate, upper,
        )  # fmt: skip
        for trial in range(300):
            step = rng.standard_normal((tasks, rows))
            if trial % 2:  # along the hardest directions, too
                j, only = trial % features, np.arange(tasks) == trial % tasks
                step = x[:, :, j] * (only * np.sign(products[j]))[:, None]
            step *= radius / np.linalg.norm(step)
            rest = rng.standard_normal((tasks, rows))
            rest *= (remainder / np.linalg.norm(rest, axis=1))[:, None]
            m = np.einsum("tnd,tn->dt", x, anchor + step + rest)
            size = np.maximum(m, 0.0) if positive else np.abs(m)
            reached = np.linalg.norm(np.maximum(size - l1, 0.0), axis=1) / group
            # a bound below 1 must be a bound; above 1 it only says "not excluded"
            assert np.all((reached <= upper * (1 + 1e-12)) | (upper >= 1.0))


# --- rows of W -------------------------------------------------------------------------------------------------------

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
    ours, twin = both("row_gauges", 50, m, np.full(50, group), np.full(50, l1), positive)
    np.testing.assert_allclose(ours, twin, rtol=1e-12)
    if group + l1 == 0.0:
        assert np.isinf(ours[5]) or positive
        return
    # on the boundary of the dual ball, and not above it
    size = np.maximum(m, 0.0) if positive else np.abs(m)
    rest = np.linalg.norm(np.maximum(size - ours[:, None] * l1, 0.0), axis=1)
    assert np.all(np.abs(rest - ours * group) <= 1e-9 * ours * group + 1e-14 * size.max(axis=1))


# --- coordinate descent ----------------------------------------------------------------------------------------------


def row_problem(rng, lengths, shared, count, extra=3):
    """Packed columns with a zero and a duplicate column, and targets."""
    offsets = layout(lengths)
    if shared:
        rows = lengths[0]
        offsets = rows * np.arange(len(lengths) + 1)
    else:
        rows = offsets[-1]
    x = np.asfortranarray(rng.standard_normal((rows, count + extra)))
    columns = rng.permutation(count + extra)[:count]
    if count > 3:
        x[:, columns[0]] = 0.0
        x[:, columns[2]] = x[:, columns[1]]
    tasks = len(lengths)
    h = np.empty((count, tasks))
    for t in range(tasks):
        block = x[:, columns] if shared else x[offsets[t] : offsets[t + 1], columns]
        h[:, t] = np.sum(block * block, axis=0)
    return x, offsets.astype(np.int64), columns, h, rng.standard_normal(offsets[-1])


def blocks_of(x, offsets, shared, columns):
    if shared:
        return [x[:, columns]] * (len(offsets) - 1)
    return [x[a:b, columns] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


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
    if use_gram:
        own = blocks[:1] if shared else blocks
        gram = np.concatenate([(b.T @ b).ravel() for b in own])
        y_products = np.concatenate([b.T @ p for b, p in zip(blocks, parts, strict=True)])
    objectives, solutions = [], []
    for module in (kernels, reference):
        w = np.zeros((count, tasks))
        state = y.copy() if gram is None else y_products.copy()
        epochs, gap, objective = module.coordinate_descent(
            x, offsets, shared, columns, h, groups, l1s, ridge, positive, w, state, 20_000, 1e-13,
            gram, y_products, float(y @ y),
        )  # fmt: skip
        assert epochs >= 1
        # the state is kept in step with w
        residual = y - np.concatenate([b @ w[:, t] for t, b in enumerate(blocks)])
        pieces = [residual[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        products = np.concatenate([b.T @ p for b, p in zip(blocks, pieces, strict=True)])
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


# --- dense algebra of Newton's method --------------------------------------------------------------------------------

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


# --- sizes around the blocks in which kernels work -------------------------------------------------------------------


@pytest.mark.parametrize("features", [*range(1, 10), 255, 256, 257, 259, 511, 512, 513, 1027])
def test_passes_over_any_number_of_columns(rng, features):
    offsets = layout((3, 1, 5))
    x = draw(rng, (9, features), np.float32)
    r = rng.standard_normal(9)
    ours, twin = both("segment_products", (features, 3), x, None, r, offsets, False, 2)
    np.testing.assert_allclose(ours, twin, atol=1e-10)
    block = np.asfortranarray(rng.standard_normal((9, 3)))
    for given in (x, x.astype(np.float64)):
        ours, twin = both("shared_products", (features, 3), given, None, block, False, 2)
        np.testing.assert_allclose(ours, twin, atol=1e-10)
    task_of = np.repeat(np.arange(3), np.diff(offsets))
    ours, twin = both("row_products", (3, features), np.ascontiguousarray(x), r, task_of, False, 2, fill=0.0)
    np.testing.assert_allclose(ours, twin, atol=1e-10)


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


@pytest.mark.parametrize("features", [1, 3, 1023, 1025, 8191, 8193])
def test_anchored_ratios_of_any_number_of_features(rng, features):
    for tasks, one_norm in ((1, True), (1, False), (3, False), (3, True)):
        given = anchored_input(rng, features, tasks, 2, one_norm)
        group = rng.uniform(0.5, 3.0, features)
        results = []
        for threads in (1, 3):
            estimate, upper = np.full(features, np.nan), np.full(features, np.nan)
            kernels.anchored_ratios(*given.values(), 0.2, group, None, False, threads, estimate, upper)
            results.append((estimate, upper))
        np.testing.assert_array_equal(results[0], results[1])
        ends = np.unique(np.clip([0, 1, features // 2, features - 2, features - 1], 0, features - 1))
        small = {**given, "anchors": [a[ends] for a in given["anchors"]], "norms": given["norms"][ends]}
        estimate, upper = np.empty(len(ends)), np.empty(len(ends))
        reference.anchored_ratios(*small.values(), 0.2, group[ends], None, False, 1, estimate, upper)
        np.testing.assert_allclose(results[0][0][ends], estimate, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(results[0][1][ends], upper, rtol=1e-11, atol=1e-14)


# --- threads ---------------------------------------------------------------------------------------------------------


def threaded_calls(rng):
    """One call of every threaded kernel, large enough for several chunks: name -> function of (threads, out)."""
    lengths = (40, 1, 25)
    offsets = layout(lengths)
    rows, features, tasks = int(offsets[-1]), 1500, 3
    x = draw(rng, (rows, features))
    r = rng.standard_normal(rows)
    columns = rng.permutation(features)[:900]
    task_of = np.repeat(np.arange(tasks), lengths)
    block = np.asfortranarray(rng.standard_normal((rows, 4)))
    csc = sparse.csc_array(np.where(rng.random(x.shape) < 0.3, x, 0.0))
    wide = np.ascontiguousarray(rng.standard_normal((6, 20_000)).astype(np.float32))
    given = anchored_input(rng, 5000, tasks, 3, False)
    some, a = columns[:400], rng.random(400)
    u = rng.standard_normal((400, tasks))
    z = np.asfortranarray(rng.standard_normal((rows, 400)), dtype=np.float32)
    v = rng.standard_normal(400).astype(np.float32)
    flat, solved = np.empty(sum(n * n for n in lengths)), np.empty(rows)
    kernels.factor(x, offsets, False, some, a, r, 1, flat, solved)
    whole, together = np.empty(rows * rows), np.empty(4 * rows)
    shared_offsets = rows * np.arange(5)
    kernels.factor(x, shared_offsets, True, some, a, block.ravel(order="F"), 1, whole, together)
    outer = rng.standard_normal((400, 4)).astype(np.float32)
    weights, unit = rng.random(rows), np.zeros((1, rows))
    single = np.float32

    def factor(shared):
        def call(k, out):
            first = rows * rows if shared else len(flat)
            y, own = (block.ravel(order="F"), shared_offsets) if shared else (r, offsets)
            kernels.factor(x, own, shared, some, a, y, k, out[:first], out[first:])

        return call

    return {
        "segment": (
            (features, tasks),
            lambda k, o: kernels.segment_products(x, None, r, offsets, False, k, o),
        ),
        "segment-some": (
            (900, tasks),
            lambda k, o: kernels.segment_products(x, columns, r, offsets, True, k, o),
        ),
        "shared": ((features, 4), lambda k, o: kernels.shared_products(x, None, block, False, k, o)),
        "shared-some": ((900, 4), lambda k, o: kernels.shared_products(x, columns, block, False, k, o)),
        "sparse": (
            (features, tasks),
            lambda k, o: kernels.sparse_products(
                csc.data, csc.indices, csc.indptr, None, r[:, None], task_of, tasks, False, k, o
            ),
        ),
        "rows": ((2, 20_000), lambda k, o: kernels.row_products(wide, r[:6], task_of[:6] % 2, False, k, o)),
        "anchored": (
            (2, 5000),
            lambda k, o: kernels.anchored_ratios(
                *given.values(), 0.3, np.ones(5000), None, False, k, o[0], o[1]
            ),
        ),
        "factor": (len(flat) + rows, factor(False)),
        "factor-shared": (rows * rows + 4 * rows, factor(True)),
        "whiten": (
            (rows, 400),
            lambda k, o: kernels.whiten(x, offsets, False, some, u, flat, k, o),
            "F",
            single,
        ),
        "whiten-shared": (
            (rows, 400),
            lambda k, o: kernels.whiten(x, shared_offsets, True, some, outer.astype(float), whole, k, o),
            "F",
            single,
        ),
        "normal": ((400, 400), lambda k, o: kernels.normal_matrix(z, None, k, o), "C", single),
        "normal-shared": ((400, 400), lambda k, o: kernels.normal_matrix(z, outer, k, o), "C", single),
        "product": (400, lambda k, o: kernels.normal_product(z, None, v, k, o), "C", single),
        "product-shared": (400, lambda k, o: kernels.normal_product(z, outer, v, k, o), "C", single),
        "combine": (rows, lambda k, o: kernels.combine(x, offsets, False, some, u, k, o)),
        "combine-shared": (
            4 * rows,
            lambda k, o: kernels.combine(x, shared_offsets, True, some, outer.astype(float), k, o),
        ),
        "reweight": (
            (rows, 400),
            lambda k, o: kernels.reweight(
                x, offsets, False, some, weights, unit, k, o, np.empty((400, tasks))
            ),
            "F",
        ),
    }


# Their blocks follow the number of threads: equal bytes for an equal number, equal up to rounding otherwise.
SPLIT_BY_THREADS = ("normal", "normal-shared", "product", "product-shared")


def test_results_do_not_depend_on_the_number_of_threads(rng):
    for name, (shape, call, *rest) in threaded_calls(rng).items():
        order, dtype = (rest + ["C", np.float64][len(rest) :])[:2]
        results = []
        for threads in (*THREADS, 1, 2):
            out = np.zeros(shape, dtype=dtype, order=order)
            call(threads, out)
            results.append(out.ravel(order="K"))
        assert results[0].any(), name
        assert same_bytes(results) or name in SPLIT_BY_THREADS, name
        for again, threads in ((results[-2], 1), (results[-1], 2)):
            assert same_bytes([again, results[THREADS.index(threads)]]), name
        for other in results[1:]:
            np.testing.assert_allclose(other, results[0], rtol=2e-5, atol=1e-5 * np.abs(results[0]).max())


def test_a_thread_count_below_one_means_one(rng):
    for name, (shape, call, *rest) in threaded_calls(rng).items():
        order, dtype = (rest + ["C", np.float64][len(rest) :])[:2]
        results = []
        for threads in (1, 0, -3):
            out = np.zeros(shape, dtype=dtype, order=order)
            call(threads, out)
            results.append(out.ravel(order="K"))
        assert same_bytes(results), name


# --- what is refused -------------------------------------------------------------------------------------------------


def wrong_calls(rng):
    x, r, offsets = draw(rng, (10, 6)), rng.standard_normal(10), layout((4, 6))
    six, two = np.ones(6), np.empty((6, 2))
    columns = np.arange(6)
    outside, below = np.array([6]), np.array([-1])
    csc = sparse.csc_array(x)
    task_of = np.repeat(np.arange(2), (4, 6))
    h, w, flat = np.ones((6, 2)), np.zeros((6, 2)), np.empty(16 + 36)
    z = np.asfortranarray(np.empty((10, 6), dtype=np.float32))
    single, square = np.ones(6, dtype=np.float32), np.empty((6, 6), dtype=np.float32)
    block = np.asfortranarray(np.ones((10, 3)))
    anchor = np.ones((6, 2), dtype=np.float32)
    k = kernels
    return {
        "segment: r": lambda: k.segment_products(x, None, r[:9], offsets, False, 1, two),
        "segment: out rows": lambda: k.segment_products(x, None, r, offsets, False, 1, np.empty((5, 2))),
        "segment: out tasks": lambda: k.segment_products(x, None, r, offsets, False, 1, np.empty((6, 3))),
        "segment: offsets end": lambda: k.segment_products(x, None, r, layout((4, 5)), False, 1, two),
        "segment: offsets fall": lambda: k.segment_products(x, None, r, np.array([0, 12, 10]), False, 1, two),
        "segment: offsets start": lambda: k.segment_products(x, None, r, np.array([1, 4, 10]), False, 1, two),
        "segment: no offsets": lambda: k.segment_products(
            x, None, r, np.empty(0, dtype=np.int64), False, 1, np.empty((6, 0))
        ),
        "segment: column": lambda: k.segment_products(x, outside, r, offsets, False, 1, np.empty((1, 2))),
        "segment: column below": lambda: k.segment_products(x, below, r, offsets, False, 1, np.empty((1, 2))),
        "shared: rows": lambda: k.shared_products(
            x, None, block[:9].copy(order="F"), False, 1, np.empty((6, 3))
        ),
        "shared: out": lambda: k.shared_products(x, None, block, False, 1, two),
        "shared: column": lambda: k.shared_products(x, outside, block, False, 1, np.empty((1, 3))),
        "sparse: data": lambda: k.sparse_products(
            csc.data[:-1], csc.indices, csc.indptr, None, r[:, None], task_of, 2, False, 1, two
        ),
        "sparse: r": lambda: k.sparse_products(
            csc.data, csc.indices, csc.indptr, None, np.ones((10, 3)), None, 2, False, 1, two
        ),
        "sparse: task_of": lambda: k.sparse_products(
            csc.data, csc.indices, csc.indptr, None, r[:, None], task_of[:9], 2, False, 1, two
        ),
        "sparse: column": lambda: k.sparse_products(
            csc.data, csc.indices, csc.indptr, outside, r[:, None], task_of, 2, False, 1, np.empty((1, 2))
        ),
        "rows: r": lambda: k.row_products(np.ones((3, 6)), r[:2], task_of[:3], False, 1, np.zeros((2, 6))),
        "rows: task": lambda: k.row_products(
            np.ones((3, 6)), r[:3], task_of[:3] + 2, False, 1, np.zeros((2, 6))
        ),
        "rows: out": lambda: k.row_products(np.ones((3, 6)), r[:3], task_of[:3], False, 1, np.zeros((2, 5))),
        "anchored: anchor": lambda: k.anchored_ratios(
            [anchor[:5].copy()],
            np.ones((1, 2)),
            anchor,
            np.ones(2),
            0.0,
            0.0,
            six,
            None,
            False,
            1,
            six,
            six,
        ),
        "anchored: coef": lambda: k.anchored_ratios(
            [anchor], np.ones((2, 2)), anchor, np.ones(2), 0.0, 0.0, six, None, False, 1, six, six
        ),
        "anchored: remainder": lambda: k.anchored_ratios(
            [anchor], np.ones((1, 2)), anchor, np.ones(1), 0.0, 0.0, six, None, False, 1, six, six
        ),
        "anchored: out": lambda: k.anchored_ratios(
            [anchor],
            np.ones((1, 2)),
            anchor,
            np.ones(2),
            0.0,
            0.0,
            six,
            None,
            False,
            1,
            six,
            six[:5].copy(),
        ),
        "descent: h": lambda: k.coordinate_descent(
            x, offsets, False, columns, h[:5].copy(), six, six, 0.0, False, w, r, 1, 0.0, None, None, 0.0
        ),
        "descent: state": lambda: k.coordinate_descent(
            x, offsets, False, columns, h, six, six, 0.0, False, w, r[:9].copy(), 1, 0.0, None, None, 0.0
        ),
        "descent: shared state": lambda: k.coordinate_descent(
            x, offsets, True, columns, h, six, six, 0.0, False, w, r, 1, 0.0, None, None, 0.0
        ),
        "descent: gram": lambda: k.coordinate_descent(
            x,
            offsets,
            False,
            columns,
            h,
            six,
            six,
            0.0,
            False,
            w,
            np.ones(12),
            1,
            0.0,
            np.ones(36),
            np.ones(12),
            0.0,
        ),
        "descent: gram alone": lambda: k.coordinate_descent(
            x,
            offsets,
            False,
            columns,
            h,
            six,
            six,
            0.0,
            False,
            w,
            np.ones(12),
            1,
            0.0,
            np.ones(72),
            None,
            0.0,
        ),
        "descent: column": lambda: k.coordinate_descent(
            x, offsets, False, columns + 1, h, six, six, 0.0, False, w, r, 1, 0.0, None, None, 0.0
        ),
        "gauges": lambda: k.row_gauges(h, six, six[:5].copy(), False, np.empty(6)),
        "solve: c": lambda: k.solve_rows(h, h[:, :1].copy(), six, six, 0.0, False, w),
        "factor: size": lambda: k.factor(x, offsets, False, columns, six, r, 1, flat[:-1].copy(), r.copy()),
        "factor: shared size": lambda: k.factor(
            x, offsets, True, columns, six, np.ones(20), 1, flat, np.empty(20)
        ),
        "factor: a": lambda: k.factor(x, offsets, False, columns, six[:5].copy(), r, 1, flat, r.copy()),
        "factor: r": lambda: k.factor(x, offsets, False, columns, six, r, 1, flat, np.empty(9)),
        "whiten: u": lambda: k.whiten(x, offsets, False, columns, h[:5].copy(), flat, 1, z),
        "whiten: z": lambda: k.whiten(x, offsets, False, columns, h, flat, 1, z[:, :5].copy(order="F")),
        "whiten: factors": lambda: k.whiten(x, offsets, False, columns, h, flat[:-1].copy(), 1, z),
        "whiten: shared factors": lambda: k.whiten(x, offsets, True, columns, h, flat, 1, z),
        "whiten: offsets": lambda: k.whiten(x, layout((4, 7)), False, columns, h, flat, 1, z),
        "normal: m": lambda: k.normal_matrix(z, None, 1, square[:5].copy()),
        "normal: u": lambda: k.normal_matrix(z, square[:5].copy(), 1, square),
        "product: v": lambda: k.normal_product(z, None, single[:5].copy(), 1, single.copy()),
        "product: u": lambda: k.normal_product(z, square[:5].copy(), single, 1, single.copy()),
        "combine: w": lambda: k.combine(x, offsets, False, columns, h[:5].copy(), 1, np.empty(10)),
        "combine: out": lambda: k.combine(x, offsets, True, columns, h, 1, np.empty(10)),
        "reweight: w": lambda: k.reweight(
            x, offsets, False, columns, r[:9].copy(), np.empty((0, 10)), 1, np.empty((10, 6), order="F"), two
        ),
        "reweight: basis": lambda: k.reweight(
            x, offsets, False, columns, r, np.zeros((1, 9)), 1, np.empty((10, 6), order="F"), two
        ),
        "reweight: out": lambda: k.reweight(
            x, offsets, False, columns, r, np.empty((0, 10)), 1, np.empty((10, 5), order="F"), two
        ),
    }


def test_wrong_shapes_raise(rng):
    for name, call in wrong_calls(rng).items():
        with pytest.raises(ValueError):
            call()
            pytest.fail(f"{name}: accepted")


@pytest.mark.parametrize(
    "change",
    [
        lambda x, r, out: (np.ascontiguousarray(x), r, out),
        lambda x, r, out: (x.astype(np.int16), r, out),
        lambda x, r, out: (x, r.astype(np.float32), out),
        lambda x, r, out: (x, r, np.asfortranarray(out)),
        lambda x, r, out: (x, r, out.astype(np.float32)),
        lambda x, r, out: (x[:, ::2], r, out[::2]),
    ],
    ids=["C-order", "int16", "float32 r", "F-order out", "float32 out", "strided"],
)
def test_wrong_layouts_raise_rather_than_being_copied(rng, change):
    x, r, out = change(draw(rng, (10, 6)), rng.standard_normal(10), np.zeros((6, 2)))
    with pytest.raises(TypeError):
        kernels.segment_products(x, None, r, layout((4, 6)), False, 1, out)
