"""One storage that several designs read: the same numbers, fewer readings, and an honest count of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import tasksieve as ts
from tasksieve.design import Design, SharedReading, SomeRows, as_storage
from tasksieve.design.storage import ProductRequest, ScaledStorage, together


def storages(x, tmp_path):
    by_columns = np.memmap(tmp_path / "f", dtype=x.dtype, mode="w+", shape=x.shape, order="F")
    by_rows = np.memmap(tmp_path / "c", dtype=x.dtype, mode="w+", shape=x.shape)
    by_columns[:] = by_rows[:] = x
    return {
        "dense": as_storage(np.asfortranarray(x)),
        "columns": as_storage(by_columns),
        "rows": as_storage(by_rows),
        "sparse": as_storage(sparse.csr_array(x)),
        "scaled": ScaledStorage(as_storage(x), 3),
    }


KINDS = ("dense", "columns", "rows", "sparse", "scaled")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
@pytest.mark.parametrize("kind", KINDS)
def test_read_is_the_products_of_each(rng, tmp_path, kind, dtype):
    """More columns than one block or thread takes, vectors that cut the rows in different ways."""
    x = rng.integers(-9, 9, (40, 1100)).astype(dtype)
    storage = storages(x, tmp_path)[kind]
    tasks, one, shared = np.array([0, 13, 40]), np.array([0, 40]), np.array([0, 40, 80, 120])
    asked = [
        *(ProductRequest(rng.standard_normal(40), tasks, False, None, k == 2) for k in range(5)),
        ProductRequest(rng.standard_normal(40), one, False, None, True),
        *(ProductRequest(rng.standard_normal(120), shared, True, None, k == 0) for k in range(3)),
    ]
    for threads in (1, 2):
        products, spent = storage.read(asked, threads)
        for a, found in zip(asked, products, strict=True):
            alone = storage.products(a.vector, a.offsets, a.shared, None, a.squares, threads)
            np.testing.assert_allclose(found, alone, rtol=1e-12, atol=1e-12 * np.abs(alone).max())
        assert spent == (5.0 if kind == "sparse" else 1.0)  # a reading for each way to cut the rows, one for squares


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_of_several_designs_is_one_reading(rng, tmp_path, kind):
    x = rng.standard_normal((40, 300))
    storage, offsets = storages(x, tmp_path)[kind], np.array([0, 15, 40])
    weights = [(rng.random(40) > 0.2).astype(float) for _ in range(3)]
    shared, waiting = SharedReading(storage), []
    shared.meet = lambda request: waiting.append(request) or shared.serve([request])[0]
    vectors = rng.standard_normal((3, 40))
    alone = [Design(storage, offsets, weights=w).correlate(r) for w, r in zip(weights, vectors, strict=True)]
    designs = [Design(shared.reader(), offsets, weights=w) for w in weights]
    together_ = [design.correlate(r) for design, r in zip(designs, vectors, strict=True)]
    for mine, other in zip(together_, alone, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert shared.spent == pytest.approx(sum(design.passes for design in designs))
    before = shared.spent
    answers = shared.serve(waiting)  # the three first passes at once
    assert len(answers) == 3
    assert shared.spent - before == (2.0 if kind == "sparse" else 1.0)
    assert sum(answer.spent for answer in answers) == pytest.approx(shared.spent - before)


@pytest.mark.parametrize("kind", ["columns", "rows"])
def test_columns_that_were_read_are_kept(rng, tmp_path, kind, monkeypatch):
    x = rng.standard_normal((20, 50)).astype(np.float32)
    storage = storages(x, tmp_path)[kind]
    shared = SharedReading(storage)
    first, second = shared.reader(), shared.reader()
    chosen = np.array([7, 3, 30])
    assert first.unread(chosen) == 3
    np.testing.assert_array_equal(first.take(chosen), x[:, chosen])
    assert second.unread(np.array([3, 7, 8])) == 1
    taken = second.take(np.array([3, 7, 8]))
    np.testing.assert_array_equal(taken, x[:, [3, 7, 8]])
    taken[:] = 0.0  # what was given away is not what is kept
    np.testing.assert_array_equal(first.take(np.array([8])), x[:, [8]])
    assert shared.spent == pytest.approx(4 / 50)
    vector, offsets = rng.standard_normal(20), np.array([0, 11, 20])
    some = ProductRequest(vector, offsets, False, np.array([30, 8, 9]))
    products, spent = second.read([some], 1)
    expected = storage.products(vector, offsets, False, some.columns, False, 1)
    if kind == "columns":  # summed in the same order
        np.testing.assert_array_equal(products[0], expected)
    np.testing.assert_allclose(products[0], expected, rtol=1e-12, atol=1e-12)
    assert spent == pytest.approx(1 / 50)
    monkeypatch.setattr(together, "_KEPT_BYTES", 4 * 20 * 8)  # four columns
    first = SharedReading(storage).reader()
    for j in range(40, 50):
        np.testing.assert_array_equal(first.take(np.array([j])), x[:, [j]])
    assert first.unread(np.arange(50)) == 46
    assert first.unread(np.arange(46, 50)) == 0
    mixed = np.array([49, 2, 46, 3])  # two that are kept, and in whose places the others come
    np.testing.assert_array_equal(first.take(mixed), x[:, mixed])
    np.testing.assert_array_equal(first.take_rows(mixed, np.array([4, 9])), x[[4, 9]][:, mixed])
    many = np.arange(11, 50, 3)  # more than are kept
    np.testing.assert_array_equal(first.take(many), x[:, many])
    np.testing.assert_array_equal(first.take(many[::-1]), x[:, many[::-1]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
@pytest.mark.parametrize("shared", [False, True])
def test_some_rows_are_a_storage_of_their_own(rng, dtype, shared):
    """Products and columns of a copy of the rows; designs of other rows share a reading."""
    x = np.asfortranarray(rng.integers(-9, 9, (40, 30)).astype(dtype))
    offsets, rows = np.array([0, 13, 40]), np.sort(rng.permutation(40)[:21])
    own = np.searchsorted(rows, offsets)
    whole = SharedReading(as_storage(x))
    some, copy = SomeRows(whole.reader(), rows, offsets, own), as_storage(np.asfortranarray(x[rows]))
    cuts = [np.array([0, 21, 42])] if shared else [own, np.array([0, 21]), np.array([0, 4, 9, 21])]
    for cut in cuts:
        for columns in (None, np.array([7, 3, 29])):
            for squares in (False, True):
                a = (rng.standard_normal(cut[-1]), cut, shared, columns, squares, 1)
                np.testing.assert_allclose(some.products(*a), copy.products(*a), rtol=1e-12, atol=1e-12)
    assert some.unread(np.array([3, 4])) == 1
    np.testing.assert_array_equal(some.take(np.array([4, 3])), x[rows][:, [4, 3]])
    before, waiting = whole.spent, []
    whole.meet = lambda request: waiting.append(request) or whole.serve([request])[0]
    other = SomeRows(whole.reader(), np.setdiff1d(np.arange(40), rows), offsets, offsets - own)
    for storage in (some, other):
        storage.products(rng.standard_normal(storage.n_rows), np.array([0, storage.n_rows]), False, None, False, 1)
    assert whole.spent == before + 2.0
    whole.serve(waiting)
    assert whole.spent == before + 3.0


def test_some_rows_are_checked_as_storages_are():
    def halved(x):
        twice = np.repeat(np.asfortranarray(x), 2, axis=0)
        offsets = np.array([0, len(x)])
        return SomeRows(as_storage(np.asfortranarray(twice)), 2 * np.arange(len(x)), 2 * offsets, offsets)

    ts.checks.check_storage(halved)


def test_a_reader_is_a_storage():
    ts.checks.check_storage(lambda x: SharedReading(as_storage(x)).reader())
    ts.checks.check_storage(lambda x: SharedReading(as_storage(sparse.csc_array(x))).reader())


def test_a_shared_matrix_is_measured_in_one_reading(rng):
    storage = as_storage(np.asfortranarray(rng.standard_normal((30, 12))))
    design = Design(storage, np.array([0, 30, 60, 90]), shared=True, weights=np.ones(90))
    design.correlate(rng.standard_normal(90))
    assert design.passes == 1.0


def test_what_is_dear_to_read(rng, tmp_path):
    x = rng.standard_normal((6, 5))
    found = {kind: storage.costly_reads for kind, storage in storages(x, tmp_path).items()}
    assert found == {"dense": False, "columns": True, "rows": True, "sparse": False, "scaled": False}
