"""Passes over the data, and bounds from past passes: compiled kernels against their NumPy twins.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`),
where reading or writing past an array ends the process.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_helpers import anchored_input, both, draw, layout, needs_kernels
from scipy import sparse

from tasksieve._kernels import kernels, reference

pytestmark = needs_kernels

DTYPES = (np.float64, np.float32, np.int8, np.uint8)

# Rows of each task: ordinary, rows of one, a single task, a task without rows, no rows at all.
TASKS = {
    "uneven": (5, 17, 1, 9),
    "one-row": (1, 1, 1),
    "one-task": (23,),
    "empty-task": (4, 0, 7),
    "no-rows": (0, 0),
    "long": (300, 211),
}


def column_choices(rng, features):
    """All columns, none, and some in no order with a repetition."""
    some = rng.integers(0, features, size=min(features, 7)) if features else np.empty(0, dtype=np.int64)
    return {"all": None, "none": np.empty(0, dtype=np.int64), "some": some}


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("lengths", [*TASKS.values(), (50,) * 20, (7, 250, 3, 600, 0, 13)], ids=str)
def test_products_of_many_byte_columns_are_exact(rng, lengths, dtype):
    """Columns side by side: vectors of small integers, whose products with bytes are exact in any order of summation.
    Extreme bytes, counts that fill the places and that do not, rows that fill squares and that do not."""
    offsets = layout(lengths)
    limits = np.iinfo(dtype)
    x = np.asfortranarray(rng.integers(limits.min, limits.max, (offsets[-1], 331), dtype=dtype, endpoint=True))
    x[:: max(len(x) // 3, 1)] = limits.min
    vectors = [np.rint(1000 * rng.standard_normal(offsets[-1])) for _ in range(5)]
    columns = rng.integers(0, 331, 67)
    wide = x.astype(np.int64)

    def exact(chosen, vector, power):
        parts = [slice(*offsets[t : t + 2]) for t in range(len(lengths))]
        return np.stack([(wide[rows][:, chosen] ** power).T @ vector[rows].astype(np.int64) for rows in parts], axis=1)

    everything = np.arange(331)
    for chosen in (None, columns, columns[:32]):
        for squares in (False, True):
            out = np.empty((331 if chosen is None else len(chosen), len(lengths)))
            kernels.segment_products(x, chosen, vectors[0], offsets, squares, 1, out)
            np.testing.assert_array_equal(out, exact(everything if chosen is None else chosen, vectors[0], 1 + squares))
    for squares in (0, 1, 5):
        found = [np.empty((331, len(lengths))) for _ in vectors]
        kernels.many_products(x, vectors, squares, offsets, 2, found)
        for k, out in enumerate(found):
            np.testing.assert_array_equal(out, exact(everything, vectors[k], 1 + (k < squares)))


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
        for r, owner, tasks, width in ((stacked, task_of, 3, 3), (shared, None, 5, 5), (shared, task_of, 3, 15)):
            ours, twin = both("sparse_products", (count, width), *parts, columns, r, owner, tasks, squares, 1)
            np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12 * (1 + np.abs(twin).max(initial=0)))


@pytest.mark.parametrize("squares", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [0, 1, 12, 50])
def test_row_products_add_to_what_is_there(rng, rows, dtype, squares):
    x = draw(rng, (rows, 21), dtype, order="C")
    r = rng.standard_normal(rows)
    r[: rows // 4] = 0.0
    task_of = rng.integers(0, 3, size=rows)
    other, others = rng.standard_normal(rows), rng.integers(0, 2, size=rows)
    found = []
    for module in (kernels, reference):
        out = [np.full((3, 21), 0.25), np.full((2, 21), 0.25)]
        module.row_products(x, [r, other], squares, [task_of, others], 1, out)
        found.append(out)
    for ours, twin in zip(*found, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-12 * (1 + np.abs(twin).max(initial=0)))
        assert rows or np.all(ours == 0.25)
    alone = np.full((3, 21), 0.25)  # what several vectors give is what each of them gives
    kernels.row_products(x, [r], min(squares, 1), [task_of], 2, [alone])
    np.testing.assert_array_equal(alone, found[0][0])


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
    kernels.row_products(np.ascontiguousarray(x), [r], 0, [task_of], 1, [by_row])
    np.testing.assert_allclose(by_sparse, dense, atol=1e-10)
    np.testing.assert_allclose(by_row.T, dense, atol=1e-10)


def test_read_only_input_is_accepted(rng):
    x, r = draw(rng, (8, 5)), rng.standard_normal(8)
    for array in (x, r):
        array.flags.writeable = False
    out = np.empty((5, 1))
    kernels.segment_products(x, None, r, layout((8,)), False, 1, out)
    np.testing.assert_allclose(out[:, 0], x.T @ r)


@pytest.mark.sampled(6)
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
    ours, twin = np.zeros((3, features)), np.zeros((3, features))
    kernels.row_products(np.ascontiguousarray(x), [r], 0, [task_of], 2, [ours])
    reference.row_products(x, [r], 0, [task_of], 2, [twin])
    np.testing.assert_allclose(ours, twin, atol=1e-10)


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


@pytest.mark.parametrize("radius", [0.0, 0.3])
@pytest.mark.parametrize(("features", "anchors"), [(1, 1), (513, 2), (1500, 4)])
def test_joint_bounds(rng, features, anchors, radius):
    """As its twin, whatever the threads, and never below what the anchors themselves say."""
    given = anchored_input(rng, features, 3, anchors, False)
    products, norms, coef = given["anchors"], given["norms"], np.ascontiguousarray(given["coef"][:, 0])
    inner = [np.empty(features, dtype=np.float32) for _ in range(anchors * (anchors + 1) // 2)]
    for m in range(anchors):
        for k in range(m + 1):
            own = inner[m * (m + 1) // 2 + k]
            kernels.row_inner_products(products[m], products[k], 2, own)
            exact = np.sum(products[m].astype(np.float64) * products[k], axis=1)
            np.testing.assert_allclose(own, exact, rtol=2.0**-23, atol=1e-14)
    longest = norms.max(axis=1).astype(np.float64)
    group = rng.uniform(0.5, 3.0, features)
    group[::11] = 0.0
    results = []
    for module, threads in ((kernels, 1), (kernels, 3), (reference, 1)):
        estimate, upper = np.full(features, np.nan), np.full(features, np.nan)
        module.joint_bounds(
            inner, coef, norms, longest, given["remainder"], radius, group, 1e-7, 1e-40, threads, estimate, upper
        )
        results.append((estimate, upper))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0][1], results[2][1], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(results[0][0], results[2][0], rtol=1e-6, atol=1e-7)
    centre = np.tensordot(coef, np.array(products, dtype=np.float64), axes=1)
    length = np.linalg.norm(centre, axis=1) + np.linalg.norm(norms * given["remainder"], axis=1) + longest * radius
    live = group > 0.0
    upper = results[0][1]
    assert np.all(upper[live] >= length[live] / group[live] * (1 - 1e-12))
    open_ones = live & (upper >= 1.0)
    assert np.all(upper[open_ones] <= length[open_ones] / group[open_ones] * (1 + 1e-3) + 1e-3)
    assert not upper[~live].any()
