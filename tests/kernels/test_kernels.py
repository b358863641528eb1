"""What holds for every kernel: threads change nothing, wrong shapes and layouts are refused.

Needs nothing of the package but `tasksieve._kernels`, so that it also runs under the sanitizers (`make sanitize`),
where reading or writing past an array ends the process.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_helpers import anchored_input, draw, layout, needs_kernels
from scipy import sparse

from tasksieve._kernels import kernels

pytestmark = needs_kernels

THREADS = (1, 2, 3, 8)


def same_bytes(results):
    first = results[0]
    return all(np.array_equal(first.view(np.uint8), other.view(np.uint8)) for other in results[1:])


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
        "rows": ((2, 20_000), lambda k, o: kernels.row_products(wide, [r[:6]], 0, [task_of[:6] % 2], k, [o])),
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
        "rows: r": lambda: k.row_products(np.ones((3, 6)), [r[:2]], 0, [task_of[:3]], 1, [np.zeros((2, 6))]),
        "rows: task": lambda: k.row_products(
            np.ones((3, 6)), [r[:3]], 0, [task_of[:3] + 2], 1, [np.zeros((2, 6))]
        ),
        "rows: out": lambda: k.row_products(np.ones((3, 6)), [r[:3]], 0, [task_of[:3]], 1, [np.zeros((2, 5))]),
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
        "inner: out": lambda: k.row_inner_products(anchor, anchor, 1, np.empty(5, dtype=np.float32)),
        "joint: inner": lambda: k.joint_bounds(
            [anchor[:, 0].copy()] * 2, np.ones(2), anchor, six, np.ones(2), 0.0, six, 0.0, 0.0, 1, six, six
        ),
        "joint: remainder": lambda: k.joint_bounds(
            [anchor[:, 0].copy()], np.ones(1), anchor, six, np.ones(1), 0.0, six, 0.0, 0.0, 1, six, six
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
            np.ones((1, 6, 6)),
            np.ones((2, 6)),
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
            np.ones((2, 6, 6)),
            None,
            0.0,
        ),
        "descent: gram column": lambda: k.coordinate_descent(
            x, offsets, False, columns + 1, h, six, six, 0.0, False, w, np.ones(12), 1, 0.0,
            np.ones((2, 6, 6)), np.ones((2, 6)), 0.0,
        ),
        "descent: column": lambda: k.coordinate_descent(
            x, offsets, False, columns + 1, h, six, six, 0.0, False, w, r, 1, 0.0, None, None, 0.0
        ),
        "gauges": lambda: k.row_gauges(h, None, six, six[:5].copy(), False, np.empty(6)),
        "gauges: errors": lambda: k.row_gauges(h, h[:5].copy(), six, six, False, np.empty(6)),
        "norms": lambda: k.row_norms(h, np.empty(5)),
        "pick: rows": lambda: k.pick_rows(columns[:5].copy(), h, columns, np.empty((6, 2))),
        "pick: out": lambda: k.pick_rows(columns, h, columns, np.empty((5, 2))),
        "express: gram": lambda: k.express(
            np.ones((3, 10)), np.ones((2, 2, 2)), r, offsets, 0.0, 0.0, 0.0, np.empty((3, 2)), np.empty(10),
            np.empty(2), np.empty(2),
        ),
        "express: vector": lambda: k.express(
            np.ones((3, 10)), np.ones((2, 3, 3)), r[:9].copy(), offsets, 0.0, 0.0, 0.0, np.empty((3, 2)),
            np.empty(9), np.empty(2), np.empty(2),
        ),
        "exact columns": lambda: k.exact_columns(
            np.ones((1, 2)), np.ones((4, 2)), np.ones((3, 2)), np.empty(2), np.empty(2), np.empty(2)
        ),
        "solve: kind": lambda: k.solve_rows(h, h, six, six, 0.0, False, w, 4),
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
