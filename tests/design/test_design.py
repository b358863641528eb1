"""The three verbs of a design against an explicit dense construction of ``X~``, for every storage and option."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import Case, every_storage, memory_map, random_case, random_weights, read_only
from scipy import sparse

import tasksieve.design.shard
from tasksieve.design import (
    DenseStorage,
    Design,
    MappedRowStorage,
    PackedColumns,
    SparseStorage,
    as_storage,
    one_blas_thread,
    thread_count,
)
from tasksieve.design import storage as storage_module
from tasksieve.path.anchors import Anchors
from tasksieve.penalties import L21

OPTIONS = {
    "plain": {"fit_intercept": False},
    "intercept": {},
    "weights": {"fit_intercept": False, "weighted": True},
    "intercept, weights": {"weighted": True},
    "unpenalised": {"unpenalised": np.array([2, 7])},
    "unpenalised alone": {"fit_intercept": False, "unpenalised": np.array([5]), "weighted": True},
    "standardize": {"standardize": True},
    "standardize, no intercept": {"standardize": True, "fit_intercept": False},
    "everything": {"standardize": True, "unpenalised": np.array([0, 3]), "weighted": True},
}


def build(rng, shared, weighted=False, same=False, **options) -> Case:
    case = random_case(rng, tasks=3, rows=9, features=11, shared=shared, kind="integers", **options)
    case.matrix[:, 4] = 0.0  # an empty column
    case.matrix[:, 6] = 3.0  # a constant one
    case.matrix[:, 8] = case.matrix[:, 1]  # a duplicate
    if weighted:
        weights = random_weights(rng, case)
        if same:  # a shared matrix whose tasks have equal weights
            weights = np.tile(weights[: len(case.matrix)], case.n_tasks)
        case = case.but(weights=weights)
    return case


def check(case: Case, design: Design, rng, atol=1e-11) -> None:
    """norms, correlate and take against the explicit X~."""
    tilde = [x.astype(float) for x in case.tilde()]
    expected = np.stack([np.linalg.norm(x, axis=0) for x in tilde], axis=1)
    norms = design.norms()
    assert norms.shape == (case.n_features, case.n_tasks)
    # Norms are bounds: of a column that unpenalised features explain, a thousandth may be left.
    whole = np.stack([np.sqrt(case.s[rows] @ np.square(x)) for rows, x in zip(case.rows, case.blocks, strict=True)], 1)
    whole = (whole / case.scales()).astype(float)
    explained = expected <= 1e-9 * whole
    assert np.all(norms[explained] <= (2e-3 if len(case.unpenalised) else 0.0) * whole[explained])
    np.testing.assert_allclose(norms[~explained], expected[~explained], atol=atol, rtol=1e-9)
    # Squares are differences of what is whole and what is explained: known to that many digits of the whole.
    assert np.all(np.square(norms) >= np.square(expected) - 1e-14 * np.square(whole))

    r = rng.standard_normal(design.n_samples)
    products = np.stack([x.T @ r[rows] for x, rows in zip(tilde, case.rows, strict=True)], axis=1)
    sizes = np.stack([np.linalg.norm(r[rows]) for rows in case.rows])
    error = np.abs(design.correlate(r) - products)
    assert np.all(error <= atol + 1e-10 * sizes * expected)
    assert np.all(error <= design.rounding * sizes * norms + 1e-25)
    some = rng.permutation(case.n_features)[:5]
    np.testing.assert_allclose(design.correlate(r, some), products[some], atol=1e-9)

    columns = design.take(some).columns
    assert columns.flags.f_contiguous
    assert columns.dtype == np.float64
    if design.uniform:
        assert columns.shape == (design.n_rows, 5)
        columns = np.tile(columns, (case.n_tasks, 1))
    assert columns.shape == (design.n_samples, 5)
    np.testing.assert_allclose(columns, np.vstack([x[:, some] for x in tilde]), atol=1e-10)
    assert design.take(np.empty(0, dtype=np.int64)).columns.shape[1] == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_every_storage_and_option(rng, tmp_path, shared, options):
    case = build(rng, shared, **options)
    for name, storage in every_storage(case, tmp_path, rng).items():
        assert (storage.n_rows, storage.n_features) == case.matrix.shape, name
        try:
            check(case, case.design(storage, n_threads=2), np.random.default_rng(0))
        except AssertionError as error:
            raise AssertionError(f"storage {name!r}") from error


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_one_matrix_with_equal_weights_is_treated_as_one(rng, options):
    case = build(rng, True, same=True, **options)
    design = case.design()
    assert design.uniform
    assert design.norms().strides[1] == 0
    check(case, design, rng)


@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_masked_labels_are_absent_rows(rng, shared):
    """Zero weights give what the data without those rows give."""
    case = build(rng, shared, weighted=True, standardize=True)
    keep = case.s > 0
    lengths = [int(keep[rows].sum()) for rows in case.rows]
    stacked = np.vstack([block[keep[rows]] for block, rows in zip(case.blocks, case.rows, strict=True)])
    small = Case(
        stacked,
        np.concatenate([[0], np.cumsum(lengths)]),
        case.y[keep],
        weights=case.s[keep],
        standardize=True,
    )
    np.testing.assert_allclose(case.design().norms(), small.design().norms(), atol=1e-10)
    r = rng.standard_normal(len(keep))
    np.testing.assert_allclose(case.design().correlate(r), small.design().correlate(r[keep]), atol=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_a_task_without_a_single_label(rng, shared, standardize):
    case = build(rng, shared, standardize=standardize)
    case = case.but(weights=random_weights(rng, case, task_missing=True))
    design = case.design()
    assert np.isfinite(design.norms()).all()
    assert not design.norms()[:, -1].any()
    check(case, design, rng)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_tasks_of_one_row(rng, options):
    case = build(rng, False, **options)
    matrix = case.matrix[:5]
    case = case.but(matrix=matrix, offsets=np.arange(6), y=case.y[:5], weights=None)
    if options.get("weighted"):
        case = case.but(weights=rng.uniform(0.5, 2.0, 5))
    design = case.design()
    if case.fit_intercept:
        assert not design.norms().any()  # one row minus its mean is nothing
    check(case, design, rng)


# --- numerical care --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
@pytest.mark.parametrize("standardize", [False, True])
def test_columns_far_from_zero(rng, standardize, shared, weighted):
    """A mean of 1e6 spreads: what is left after centring keeps its digits."""
    case = random_case(rng, tasks=3, rows=20, features=9, shared=shared, standardize=standardize)
    case.matrix[:, 1] += 1e6
    case.matrix[:, 3] = 1e-3 * case.matrix[:, 3] - 1e3
    case.matrix[:, 5] += 900.0  # on the near side of the limit where columns are centred explicitly
    case.matrix[:, 6] += 1100.0  # and on the far side
    if weighted:
        case = case.but(weights=random_weights(rng, case))
    design = case.design()
    tilde = [x.astype(float) for x in case.tilde()]
    expected = np.stack([np.linalg.norm(x, axis=0) for x in tilde], axis=1)
    np.testing.assert_allclose(design.norms(), expected, rtol=2e-8)
    r = rng.standard_normal(design.n_samples)
    products = np.stack([x.T @ r[rows] for x, rows in zip(tilde, case.rows, strict=True)], axis=1)
    sizes = np.array([np.linalg.norm(r[rows]) for rows in case.rows])
    for features in (None, np.array([1]), np.array([6, 3, 0, 1, 5])):
        chosen = slice(None) if features is None else features
        error = np.abs(design.correlate(r, features) - products[chosen])
        # The mean itself is rounded to 1e-16 of the column's size: that much no arithmetic can win back.
        assert np.all(error <= 1e-8 * sizes * expected[chosen])


def test_the_stated_rounding_error_of_correlations_is_a_bound(rng):
    for trial in range(12):
        case = random_case(
            rng, tasks=2, rows=40, features=30, shared=bool(trial % 2), fit_intercept=bool(trial % 3)
        )
        case.matrix[:, :10] += rng.choice([0.0, 10.0, 500.0, 1e5], 10)
        design = case.design()
        # a residual nearly orthogonal to the columns: all digits cancel
        r = rng.standard_normal(design.n_samples)
        tilde = case.tilde()
        expected = np.stack([x.T @ r[rows] for x, rows in zip(tilde, case.rows, strict=True)], axis=1)
        sizes = np.array([np.linalg.norm(r[rows]) for rows in case.rows])
        error = np.abs(design.correlate(r) - expected.astype(float))
        assert np.all(error <= design.rounding * design.norms() * sizes)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e6 / 3, -1e-12])
@pytest.mark.parametrize("rows", [7, 100, 20_000])
@pytest.mark.parametrize("standardize", [False, True])
def test_constant_columns_are_zero(rng, standardize, rows, value):
    """Whatever centring leaves of a constant column is rounding, also where it would be blown up by scaling."""
    matrix = rng.standard_normal((2 * rows, 4))
    matrix[:, 1] = value
    matrix[rows:, 2] = value  # constant in one task only
    for weights in (None, rng.uniform(0.1, 3.0, 2 * rows)):
        case = Case(
            matrix,
            np.array([0, rows, 2 * rows]),
            np.zeros(2 * rows),
            weights=weights,
            standardize=standardize,
        )
        design = case.design()
        norms = design.norms()
        assert not norms[1].any()
        assert norms[2, 0] > 0
        assert norms[2, 1] == 0
        products = design.correlate(rng.standard_normal(2 * rows))
        assert not products[1].any()
        assert products[2, 1] == 0
        assert not design.take(np.array([1])).columns.any()


def test_columns_in_the_span_of_unpenalised_ones_are_zero(rng):
    for shared in (False, True):
        case = random_case(rng, tasks=2, rows=12, features=8, shared=shared, unpenalised=np.array([0, 1]))
        case.matrix[:, 2] = case.matrix[:, 0]
        case.matrix[:, 3] = 2.0 * case.matrix[:, 1] - 5.0
        design = case.design()
        whole = np.linalg.norm(case.matrix, axis=0)[:4, None]
        assert np.all(design.norms()[:4] <= 2e-3 * whole)
        r = rng.standard_normal(design.n_samples)
        assert np.all(np.abs(design.correlate(r)[:4]) <= 1e-14 * whole * np.linalg.norm(r))
        assert design.norms()[4:].all()


def test_dependent_nuisance_columns(rng):
    """A constant and a duplicate among the unpenalised features, and more of them than rows in a task."""
    case = random_case(rng, tasks=3, rows=6, features=14, unpenalised=np.arange(8))
    case.matrix[:, 1] = 7.0
    case.matrix[:, 2] = case.matrix[:, 0]
    check(case, case.design(), rng)
    fitted = case.design().nuisance_fit(case.y)
    assert fitted.shape == (9, 3)
    assert np.isfinite(fitted).all()


# --- sample space ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_projection_removes_intercepts_and_unpenalised_features(rng, shared):
    case = build(rng, shared, weighted=True, unpenalised=np.array([2, 7]))
    design = case.design()
    r = rng.standard_normal(design.n_samples)
    projected = design.project(r)
    q = np.sqrt(case.s)
    for t, rows in enumerate(case.rows):
        nuisance = q[rows][:, None] * case.nuisance(t).astype(float)
        np.testing.assert_allclose(nuisance.T @ projected[rows], 0.0, atol=1e-11)
        columns = np.stack([column[rows] for column in design.nuisance_columns], axis=1)
        np.testing.assert_allclose(columns + design.nuisance_shifts[:, t], case.nuisance(t).astype(float), atol=1e-14)
        fitted = q[rows] * (columns @ design.nuisance_fit(case.y)[:, t])
        best = np.linalg.lstsq(nuisance, q[rows] * case.y[rows], rcond=None)[0]
        np.testing.assert_allclose(fitted, nuisance @ best, atol=1e-9)
    np.testing.assert_allclose(design.project(projected), projected, atol=1e-13)
    np.testing.assert_allclose(design.correlate(r), design.correlate(projected), atol=1e-10)


def test_sums_and_repetition(rng):
    design = build(rng, False).design()
    v = rng.standard_normal(design.n_samples)
    cuts = zip(design.offsets[:-1], design.offsets[1:], strict=True)
    np.testing.assert_allclose(design.task_sums(v), [v[a:b].sum() for a, b in cuts])
    np.testing.assert_array_equal(
        design.per_sample(np.arange(3)), np.repeat(np.arange(3), np.diff(design.offsets))
    )


# --- no copies, no changes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8])
@pytest.mark.parametrize("mapped", [False, True])
def test_column_major_data_are_used_where_they_lie(rng, tmp_path, dtype, mapped):
    x = np.asfortranarray(rng.integers(0, 3, size=(30, 40)), dtype=dtype)
    given = memory_map(tmp_path, x, "x", "F") if mapped else read_only(x)
    storage = as_storage(given)
    assert isinstance(storage, DenseStorage)
    assert np.shares_memory(storage.x, given)
    assert storage.dtype == dtype


def test_a_shared_matrix_is_stored_once(rng):
    x = read_only(np.asfortranarray(rng.standard_normal((30, 40))))
    weights = (rng.random(30 * 50) < 0.9).astype(float)  # labels missing here and there: still one matrix
    for s in (None, weights):
        design = Design(as_storage(x), 30 * np.arange(51), shared=True, weights=s)
        assert design.shard.storage.x.size == x.size
        assert np.shares_memory(design.shard.storage.x, x)
        assert design.norms().shape == (40, 50)
    assert Design(as_storage(x), 30 * np.arange(51), shared=True).take(np.arange(40)).columns.shape == (30, 40)


def test_sparse_columns_are_used_where_they_lie(rng):
    x = sparse.csc_array(rng.random((30, 40)) * (rng.random((30, 40)) < 0.2))
    storage = as_storage(x)
    assert isinstance(storage, SparseStorage)
    assert np.shares_memory(storage.x.data, x.data)
    assert np.shares_memory(storage.x.indices, x.indices)


def test_rows_of_a_file_are_read_in_blocks(rng, tmp_path, monkeypatch):
    """Bounded memory: with a tiny budget the file is read a few rows at a time, with the same result."""
    case = build(rng, False)
    mapped = memory_map(tmp_path, case.matrix, "x", "C")
    r = rng.standard_normal(len(mapped))
    expected = case.design().correlate(r)
    for budget in (1, 8 * 11 * 4, 1 << 20):
        monkeypatch.setattr(storage_module.mapped, "BLOCK_BYTES", budget)
        storage = as_storage(mapped)
        assert isinstance(storage, MappedRowStorage)
        assert all(np.shares_memory(block, mapped) for block in storage.blocks)
        np.testing.assert_allclose(case.design(storage).correlate(r), expected, atol=1e-10)
        np.testing.assert_allclose(
            as_storage([case.matrix[:5], case.matrix[5:]]).take(np.arange(3)), mapped[:, :3]
        )


def test_the_data_are_never_changed(rng, tmp_path):
    """Read-only data pass through every verb, and sparse data of any form are left as they were."""
    case = build(rng, False, weighted=True, standardize=True, unpenalised=np.array([2]))
    x = read_only(np.asfortranarray(case.matrix))
    untidy = sparse.csc_array(case.matrix)
    untidy.indices[: untidy.indptr[1]] = untidy.indices[: untidy.indptr[1]][::-1].copy()
    untidy.has_sorted_indices = untidy.has_canonical_format = False
    before = [part.copy() for part in (untidy.data, untidy.indices, untidy.indptr)]
    r = read_only(rng.standard_normal(len(x)))
    for given in (
        x,
        untidy,
        memory_map(tmp_path, case.matrix, "x", "F"),
        memory_map(tmp_path, case.matrix, "y", "C"),
    ):
        design = case.design(as_storage(given))
        packed = PackedColumns(design)
        packed.positions(np.arange(6))
        first = design.correlate(r)
        design.take(np.arange(4)).columns[...] = np.nan  # what is handed out is the caller's
        np.testing.assert_array_equal(design.correlate(r), first)
    for part, old in zip((untidy.data, untidy.indices, untidy.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


# --- packed columns --------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_packed_columns(rng, shared, options):
    case = build(rng, shared, **options)
    design = case.design()
    packed = PackedColumns(design)
    free = np.setdiff1d(np.arange(case.n_features), case.unpenalised)
    for features in (free[[3, 1]], free[[1, 5, 3]], np.empty(0, dtype=np.int64), free):
        positions = packed.positions(features)
        r = rng.standard_normal(design.n_samples)
        expected = design.correlate(r)[features]
        r = design.project(r)
        np.testing.assert_allclose(packed.correlate(r, positions), expected, atol=1e-9)
        np.testing.assert_allclose(packed.squared_norms[positions], design.norms()[features] ** 2, atol=1e-9)
        rows = rng.standard_normal((len(features), case.n_tasks))
        z = np.concatenate([x[:, features].astype(float) @ rows[:, t] for t, x in enumerate(case.tilde())])
        np.testing.assert_allclose(packed.combine(positions, rows), z, atol=1e-9)
        several = rng.standard_normal((3, len(packed.features), case.n_tasks))  # of all columns at once
        every = np.arange(len(packed.features))
        images = packed.combine_many(several)
        np.testing.assert_allclose(images, [packed.combine(every, one) for one in several], atol=1e-9)
        expected = [packed.correlate(one, every) for one in images]
        np.testing.assert_allclose(packed.correlate_many(images), expected, atol=1e-9)
        if packed.shared and len(features):
            gram = case.tilde()[0][:, features].T @ case.tilde()[0][:, features]
            np.testing.assert_allclose(packed.gram(positions), gram.astype(float), atol=1e-9)


def test_packed_loadings_take_back_what_centring_removed(rng):
    """Weighted raw column = shift + nuisance basis times loadings + what is left."""
    case = build(rng, False, weighted=True, unpenalised=np.array([2, 7]))
    design = case.design()
    packed = PackedColumns(design)
    features = np.array([0, 3, 9])
    positions = packed.positions(features)
    loadings = packed.loadings(positions)
    assert loadings.shape == (3, 3, case.n_tasks)
    q = np.sqrt(case.s)
    for t, rows in enumerate(case.rows):
        raw = q[rows][:, None] * case.blocks[t][:, features]
        rebuilt = (
            q[rows][:, None] * packed.shifts(positions)[:, t]
            + design.nuisance_basis[:, rows].T @ loadings[:, :, t]
            + packed.x[rows][:, positions]
        )
        np.testing.assert_allclose(rebuilt, raw, atol=1e-10)


def test_the_cache_of_packed_columns_forgets_what_is_not_used(rng):
    case = random_case(rng, tasks=2, rows=5, features=6000)
    design = case.design()
    packed = PackedColumns(design)
    packed.positions(np.arange(5000))
    assert packed.x.shape[1] == 5000
    chosen = np.arange(4990, 5010)  # ten known, ten new
    positions = packed.positions(chosen)
    assert packed.x.shape[1] == 20
    np.testing.assert_allclose(packed.x[:, positions], design.take(chosen).columns)
    np.testing.assert_allclose(packed.squared_norms[positions], design.norms()[chosen] ** 2)
    r = design.project(rng.standard_normal(design.n_samples))
    np.testing.assert_allclose(packed.correlate(r, positions), design.correlate(r, chosen), atol=1e-10)
    positions = packed.positions(np.arange(30))
    np.testing.assert_allclose(packed.x[:, positions], design.take(np.arange(30)).columns)


# --- counting and threads --------------------------------------------------------------------------------------------


def test_passes_are_counted(rng):
    case = random_case(rng, features=40)
    design = case.design()
    r = rng.standard_normal(design.n_samples)
    assert design.passes == 0.0
    design.norms()
    first = design.passes
    assert first == 1.0  # squares and the products with one nuisance column, read together
    design.correlate(r)
    assert design.passes == first + 1.0
    design.correlate(r, np.arange(10))
    assert design.passes == first + 1.25
    packed = PackedColumns(design)
    packed.positions(np.arange(20))
    packed.positions(np.arange(10))
    assert design.passes == first + 1.75


@pytest.mark.parametrize("form", ["dense", "sparse", "rows", "shared"])
def test_threads_do_not_change_a_bit(rng, tmp_path, form):
    shared = form == "shared"
    case = random_case(rng, tasks=4, rows=30, features=9000, shared=shared, kind="integers")
    x = np.asfortranarray(case.matrix, dtype=np.float32)
    given = {"sparse": lambda: sparse.csc_array(x), "rows": lambda: memory_map(tmp_path, x, "x", "C")}
    storage = as_storage(given.get(form, lambda: x)())
    r = rng.standard_normal(len(case.y))
    results = [case.design(storage, n_threads=k).correlate(r) for k in (1, 2, 5)]
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_thread_count(monkeypatch):
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "3")
    assert thread_count() == 3
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv("TASKSIEVE_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match="positive integer"):
            thread_count()
    monkeypatch.delenv("TASKSIEVE_NUM_THREADS")
    assert thread_count() >= 1


def test_blas_is_held_to_one_thread_and_released():
    from threadpoolctl import ThreadpoolController, threadpool_limits

    def limits():
        return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]

    with threadpool_limits(2, user_api="blas"):  # more than one, whatever the environment says
        before = limits()
        with one_blas_thread():
            assert set(limits()) <= {1}
            with one_blas_thread():
                assert set(limits()) <= {1}
            assert set(limits()) <= {1}
        assert limits() == before


def test_blas_is_held_to_one_thread_from_any_thread():
    """threadpoolctl listens to the thread that came first: here the main one, which sets the limit to 2."""
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import ThreadpoolController, threadpool_limits

    def limits():
        return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]

    def inside():
        with one_blas_thread():
            return limits()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        before = limits()
        if 2 not in before:  # a BLAS without threads
            pytest.skip("BLAS has one thread only")
        assert set(pool.submit(inside).result()) == {1}
        assert limits() == before
        assert set(inside()) == {1}
        assert limits() == before


def test_wrong_storage_is_refused(rng):
    with pytest.raises(ValueError, match="Fortran"):
        DenseStorage(rng.standard_normal((4, 5)))
    with pytest.raises(ValueError, match="Fortran"):
        DenseStorage(np.asfortranarray(rng.integers(0, 3, (4, 5))))


def test_a_task_without_rows_is_refused(rng):
    storage = as_storage(np.asfortranarray(rng.standard_normal((6, 3))))
    for offsets in ([0, 3, 3, 6], [0, 6, 6], [0, 4, 2, 6]):
        with pytest.raises(ValueError, match="at least one row"):
            Design(storage, np.array(offsets))


@pytest.mark.parametrize("dtype", [np.int8, np.float64])
@pytest.mark.parametrize("standardize", [False, True])
def test_large_shards_are_read_in_parts(rng, monkeypatch, dtype, standardize):
    """Norms, scales, products, gauges and anchors of a shard in parts are those of the whole; a fragile column, a
    constant one and an unpenalised one are among them."""
    offsets, features = np.array([0, 9, 20, 31]), 90
    x = np.asfortranarray(rng.integers(0, 3, (31, features)).astype(dtype))
    x[:, 40] = 1
    if dtype == np.float64:
        x[:, 70] += 1e7
    weights = np.ones(features)
    weights[33] = 0.0
    penalty = L21().on(weights, 3, positive=False, ridge_ratio=0.0, fixed_ridge=0.0, coupling=None).at(2.0)
    first, second, new = (rng.standard_normal(31) for _ in range(3))
    found = []
    for part in (1 << 20, 30):
        monkeypatch.setattr(tasksieve.design.shard, "_PART", part)
        monkeypatch.setattr(tasksieve.design.shard, "_FEW_FEATURES", 1)
        design = Design(as_storage(x), offsets, standardize=standardize, unpenalised=np.array([33]))
        assert len(design.shard._parts) == (0 if part > 30 else 9)
        anchors = Anchors(design, joint=True)
        gauges = [anchors.remember(design.project(first), penalty)]
        anchors.add(design.project(second), design.project(first))
        gauges.append(design.shard.remember(design.project(second), penalty, np.full(3, 1e-3)))
        bounds = [bound.copy() for bound in design.shard.bound(anchors.express(design.project(new)), penalty)]
        scale = design.shard.scale(np.arange(features)) if standardize else np.ones(1)
        found.append([design.norms(), *gauges, *bounds, scale, design.correlate(new), [design.passes, design.rounding]])
    for whole, parts in zip(*found, strict=True):
        np.testing.assert_allclose(parts, whole, rtol=1e-6, atol=1e-9)
