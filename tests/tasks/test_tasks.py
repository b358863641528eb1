"""The task container: every form of input becomes the same flat sample space, and bad input is refused clearly."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from tasksieve.tasks import (
    is_task_list,
    linear_scores,
    read_feature_weights,
    read_labels,
    read_matrix,
    read_tasks,
    task_codes,
)

NAN = float("nan")


@pytest.fixture
def stacked(rng):
    """X, y, task: three ragged tasks, rows out of order."""
    task = np.array(["b", "a", "c", "a", "b", "b", "a", "c", "b"])
    return rng.standard_normal((9, 4)), rng.standard_normal(9), task


# --- forms -----------------------------------------------------------------------------------------------


def test_stacked_rows_are_sorted_by_task(stacked):
    X, y, task = stacked
    data = read_tasks(X, y, task)
    assert data.form == "stacked"
    assert data.tasks.tolist() == ["a", "b", "c"]
    assert data.offsets.tolist() == [0, 3, 7, 9]
    np.testing.assert_array_equal(data.y, np.concatenate([y[task == t] for t in "abc"]))
    np.testing.assert_array_equal(data.make_storage().take(np.arange(4)), np.vstack([X[task == t] for t in "abc"]))
    np.testing.assert_array_equal(data.flatten(y), data.y)
    np.testing.assert_array_equal(data.flatten_rows(y), data.y)
    assert data.n_bar == 3.0
    assert data.task_of_sample.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_sorted_rows_need_no_permutation(stacked):
    X, y, task = stacked
    data = read_tasks(X, y, np.sort(task))
    assert data.order is None
    assert data.offsets.tolist() == [0, 3, 7, 9]
    assert data.tasks.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([7, -2, 30]),
        np.array([5.0, -1.0, 2.0]),
        np.array(["x", "yy", "z"]),
        np.array(["x", "yy", "z"], dtype=object),
        np.array([True, False, True]),
        pd.Series(["u", "v", "w"], dtype="category"),
        pd.Series(["u", "v", "w"]),
        ["u", "v", "w"],
        (3, 1, 2),
        np.array([[3], [1], [2]]),
        np.array(["2020-01-03", "2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    ],
    ids=lambda labels: f"{type(labels).__name__}-{np.asarray(labels).dtype}",
)
def test_any_labels_name_a_task(labels, rng):
    data = read_tasks(rng.standard_normal((3, 2)), np.arange(3.0), labels)
    flat = np.asarray(labels).ravel()
    assert data.tasks.tolist() == sorted(set(flat.tolist()))
    for code, value in zip(data.task_of_sample, data.y, strict=True):
        assert flat.tolist()[int(value)] == data.tasks.tolist()[code]


def test_list_of_matrices(rng):
    X = [rng.standard_normal((n, 3)) for n in (2, 4)]
    y = [rng.standard_normal(2), rng.standard_normal((4, 1))]
    data = read_tasks(X, y)
    assert (data.form, data.tasks.tolist(), data.offsets.tolist()) == ("list", [0, 1], [0, 2, 6])
    np.testing.assert_array_equal(data.make_storage().take(np.arange(3)), np.vstack(X))
    np.testing.assert_array_equal(data.y, np.concatenate([y[0], y[1][:, 0]]))


def test_shared_matrix_is_stored_once(rng):
    X, Y = rng.standard_normal((5, 3)), rng.standard_normal((5, 4))
    data = read_tasks(X, Y)
    assert (data.form, data.shared, data.n_rows, data.make_storage().n_rows) == ("shared", True, 5, 5)
    np.testing.assert_array_equal(data.y, Y.ravel(order="F"))
    np.testing.assert_array_equal(data.flatten(Y), data.y)
    np.testing.assert_array_equal(data.flatten_rows(np.arange(5)), np.tile(np.arange(5), 4))
    assert data.n_bar == 5.0


def test_one_dimensional_y_without_task_is_one_task(rng):
    data = read_tasks(rng.standard_normal((5, 3)), rng.standard_normal(5))
    assert (data.form, data.tasks.tolist(), data.offsets.tolist()) == ("single", [0], [0, 5])


def test_a_list_is_a_list_of_tasks_only_if_its_items_are_matrices():
    rows = [[1.0, 2.0], [3.0, 4.0]]
    assert not is_task_list(rows)
    assert not is_task_list([np.ones(3), np.ones(3)])
    assert not is_task_list([])
    assert not is_task_list(np.ones((2, 2, 2)))
    assert is_task_list([np.ones((2, 2))])
    assert is_task_list((pd.DataFrame(rows), pd.DataFrame(rows)))
    assert is_task_list([scipy.sparse.csr_array(np.eye(2))])
    assert is_task_list([rows, rows])
    assert read_tasks(rows, [1.0, 2.0]).form == "single"
    assert read_tasks([rows, rows], [[1.0, 2.0], [3.0, 4.0]]).form == "list"


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_any_order_of_rows_gives_the_same_tasks(labels, random):
    task = np.array(labels)
    y = np.arange(len(task), dtype=float)
    shuffled = np.array(random.sample(range(len(task)), len(task)))
    one, other = read_labels(len(task), y, task), read_labels(len(task), y[shuffled], task[shuffled])
    np.testing.assert_array_equal(one.tasks, other.tasks)
    np.testing.assert_array_equal(one.offsets, other.offsets)
    for part in one.per_task():
        assert sorted(one.y[part]) == sorted(other.y[part])


# --- labels that are not observed ------------------------------------------------------------------------


def test_missing_labels_have_weight_zero_in_every_form(rng):
    X = rng.standard_normal((4, 2))
    Y = np.array([[1.0, NAN], [2.0, 3.0], [NAN, 4.0], [5.0, 6.0]])
    shared = read_tasks(X, Y)
    listed = read_tasks([X, X], [Y[:, 0], Y[:, 1]])
    stacked = read_tasks(np.vstack([X, X]), Y.ravel(order="F"), np.repeat([0, 1], 4))
    for data in (shared, listed, stacked):
        np.testing.assert_array_equal(data.y, [1, 2, 0, 5, 0, 3, 4, 6])
        np.testing.assert_array_equal(data.weights, [1, 1, 0, 1, 0, 1, 1, 1])
        assert data.n_bar == 3.0
    assert read_tasks(X, [1.0, NAN, 2.0, 3.0]).n_bar == 3.0


@pytest.mark.parametrize(
    "y",
    [
        [1.0, None, 3.0],
        np.array([1, None, 3], dtype=object),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.0, None, 3.0]),
        np.array([1.0, NAN, 3.0], dtype=np.float32),
    ],
)
def test_all_spellings_of_a_missing_label(y):
    data = read_tasks(np.ones((3, 1)), y)
    np.testing.assert_array_equal(data.y, [1, 0, 3])
    np.testing.assert_array_equal(data.weights, [1, 0, 1])
    assert data.y.dtype == np.float64


# --- weights ---------------------------------------------------------------------------------------------


def test_sample_weights_follow_the_rows(stacked):
    X, y, task = stacked
    weights = np.arange(9.0)
    data = read_tasks(X, y, task, weights)
    np.testing.assert_array_equal(data.weights, weights[data.order])
    assert data.n_bar == weights.sum() / 3
    np.testing.assert_array_equal(read_tasks(X, y, task, 2.0).weights, np.full(9, 2.0))
    np.testing.assert_array_equal(read_tasks(X, y, task, pd.Series(weights)).weights, data.weights)


def test_sample_weights_of_other_forms(rng):
    X, Y = rng.standard_normal((3, 2)), rng.standard_normal((3, 2))
    rows = np.array([1.0, 2.0, 0.0])
    np.testing.assert_array_equal(read_tasks(X, Y, sample_weight=rows).weights, np.tile(rows, 2))
    both = rng.uniform(size=(3, 2))
    np.testing.assert_array_equal(read_tasks(X, Y, sample_weight=both).weights, both.ravel(order="F"))
    listed = read_tasks([X, X], [Y[:, 0], Y[:, 1]], sample_weight=[both[:, 0], both[:, 1]])
    np.testing.assert_array_equal(listed.weights, both.ravel(order="F"))


def test_task_weights(stacked):
    X, y, task = stacked
    assert read_tasks(X, y, task).task_weights.tolist() == [1, 1, 1]
    assert read_tasks(X, y, task, task_weights=[1, 2, 3]).task_weights.tolist() == [1, 2, 3]
    by_label = read_tasks(X, y, task, task_weights={"c": 5.0})
    assert by_label.task_weights.tolist() == [1, 1, 5]
    np.testing.assert_array_equal(by_label.sample_weights, [1] * 7 + [5] * 2)
    balanced = read_tasks(X, y, task, task_weights="balanced")
    np.testing.assert_allclose(balanced.task_weights, [3 / 3, 3 / 4, 3 / 2])
    # every task counts once
    np.testing.assert_allclose(np.add.reduceat(balanced.sample_weights, balanced.offsets[:-1]), balanced.n_bar)


def test_other_weights_on_the_same_storage(stacked):
    X, y, task = stacked
    data = read_tasks(X, y, task, task_weights="balanced")
    fold = data.with_weights(data.weights * (np.arange(9) % 2))
    assert fold.make_storage() is data.make_storage()
    assert fold.n_bar == 4 / 3
    np.testing.assert_allclose(fold.task_weights, fold.n_bar / np.array([1, 2, 1]))
    assert data.n_bar == 3.0


# --- the matrix ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_kept_types_are_not_copied(dtype, order):
    X = np.array(np.arange(6).reshape(2, 3), dtype=dtype, order=order)
    assert read_matrix(X) is X
    sparse = scipy.sparse.csc_array(X)
    assert read_matrix(sparse) is sparse
    frame = pd.DataFrame(X)
    assert read_matrix(frame).dtype == dtype


def test_other_types_become_float64():
    for dtype in (np.int64, np.int16, np.float16, object, ">f8"):
        matrix = read_matrix(np.arange(6).reshape(2, 3).astype(dtype))
        assert matrix.dtype == np.float64
        assert matrix.dtype.isnative
    flags = np.array([[True, False], [False, True]])
    assert read_matrix(flags).dtype == np.uint8
    assert np.shares_memory(read_matrix(flags), flags)
    assert read_matrix(scipy.sparse.csr_array(flags)).dtype == np.uint8
    assert read_matrix([[1, 2], [3, 4]]).dtype == np.float64
    assert read_matrix(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})).dtype == np.float64


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_sparse_format(form, kind, rng):
    dense = np.where(rng.uniform(size=(6, 4)) < 0.4, rng.standard_normal((6, 4)), 0.0)
    make = scipy.sparse.csr_array if kind == "array" else scipy.sparse.csr_matrix
    X = make(dense).asformat(form)
    assert scipy.sparse.issparse(read_matrix(X))
    np.testing.assert_array_equal(read_matrix(X).toarray(), dense)


def test_sparse_duplicates_are_summed_in_a_copy():
    X = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    csr = scipy.sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    for matrix in (X, csr):
        np.testing.assert_array_equal(read_matrix(matrix).toarray(), [[3, 0], [0, 4]])
    assert csr.nnz == 3


def test_sparse_data_frame():
    columns = {"a": [0, 1.0], "b": [2.0, 0]}
    frame = pd.DataFrame({name: pd.arrays.SparseArray(c, fill_value=0) for name, c in columns.items()})
    assert scipy.sparse.issparse(read_matrix(frame))
    np.testing.assert_array_equal(read_matrix(frame).toarray(), [[0, 2], [1, 0]])
    other = pd.DataFrame({name: pd.arrays.SparseArray(c, fill_value=2.0) for name, c in columns.items()})
    np.testing.assert_array_equal(read_matrix(other), [[0, 2], [1, 0]])


def test_memory_map_is_never_copied(tmp_path, rng):
    for order in ("C", "F"):
        X = np.memmap(tmp_path / order, dtype=np.float32, mode="w+", shape=(7, 5), order=order)
        X[:] = rng.standard_normal((7, 5))
        assert read_matrix(X) is X
        data = read_tasks(X, np.arange(7.0), [0, 1, 0, 1, 0, 1, 0])
        np.testing.assert_array_equal(data.make_storage().take(np.arange(5)), np.asarray(X)[[0, 2, 4, 6, 1, 3, 5]])


def test_x_is_not_modified(rng):
    X = rng.standard_normal((6, 3))
    X.flags.writeable = False
    read_tasks(X, np.arange(6.0), [0, 1, 0, 1, 0, 1])


def views(X):
    wide = np.zeros((X.shape[0] * 2, X.shape[1] * 3))
    wide[::2, ::3] = X
    return {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": wide[::2, ::3],
        "reversed": X[::-1][::-1],
        "float32": X.astype(np.float32),
    }


@pytest.mark.parametrize("value", [NAN, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["C", "F", "strided", "reversed", "float32"])
def test_nan_is_found_and_named(value, name, rng, monkeypatch):
    monkeypatch.setattr("tasksieve.tasks.matrix.BLOCK_ENTRIES", 16)
    X = rng.standard_normal((20, 11))
    X[13, 7] = value
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity).*row 14 .*\[:, 7\].*(Impute|drop)"):
        read_matrix(views(X)[name])


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_nan_in_a_sparse_matrix_is_found_and_named(form, rng):
    X = np.where(rng.uniform(size=(20, 11)) < 0.3, 1.0, 0.0)
    X[13, 7] = NAN
    with pytest.raises(ValueError, match=r"row 14 .*\[:, 7\]"):
        read_matrix(scipy.sparse.csr_array(X).asformat(form))


def test_large_numbers_are_not_infinite(monkeypatch):
    monkeypatch.setattr("tasksieve.tasks.matrix.BLOCK_ENTRIES", 4)
    for dtype in (np.float64, np.float32):
        X = np.full((10, 3), np.finfo(dtype).max, dtype=dtype)
        assert read_matrix(X) is X


def test_search_for_nan_needs_no_memory():
    X = np.zeros((2000, 4000), dtype=np.float32)  # 32 MB
    for matrix in (X, X.T):
        tracemalloc.start()
        read_matrix(matrix)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2e6


# --- predictions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "int8", "csr", "csc", "memmap"])
def test_linear_scores(kind, rng, tmp_path, monkeypatch):
    monkeypatch.setattr("tasksieve.tasks.scores.PACKED_ENTRIES", 20)
    X = rng.integers(-3, 4, size=(30, 8)).astype(float)
    coef = rng.standard_normal((3, 8)) * (rng.uniform(size=8) < 0.5)
    intercept, codes = rng.standard_normal(3), rng.integers(0, 3, size=30)
    if kind in ("csr", "csc"):
        matrix = scipy.sparse.csr_array(X).asformat(kind)
    elif kind == "memmap":
        matrix = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=X.shape)
        matrix[:] = X
    else:
        matrix = X.astype(kind)
    expected = X @ coef.T + intercept
    np.testing.assert_allclose(linear_scores(matrix, coef, intercept), expected, atol=1e-12)
    own = linear_scores(matrix, coef, intercept, codes)
    np.testing.assert_allclose(own, expected[np.arange(30), codes], atol=1e-12)
    zero = linear_scores(matrix, 0 * coef, intercept)
    np.testing.assert_array_equal(zero, np.tile(intercept, (30, 1)))


def test_no_rows_no_scores():
    assert linear_scores(np.zeros((0, 3)), np.ones((2, 3)), np.zeros(2)).shape == (0, 2)
    assert linear_scores(np.zeros((0, 3)), np.ones((2, 3)), np.zeros(2), np.zeros(0, dtype=int)).shape == (0,)


def test_task_codes():
    tasks = np.array(["a", "b", "c"])
    assert task_codes(["c", "a", "a"], tasks, 3).tolist() == [2, 0, 0]
    assert task_codes([], tasks, 0).tolist() == []
    assert task_codes(np.array([1.0, 0.0]), np.array([0, 1]), 2).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"task 'd' in row 2 .*is unknown.*'a', 'b', 'c'"):
        task_codes(["c", "d"], tasks, 2)


# --- classes ---------------------------------------------------------------------------------------------


def test_the_larger_label_is_plus_one(rng):
    X = rng.standard_normal((6, 2))
    for small, large in ((0, 1), (-1, 1), (1, 2), ("no", "yes"), (False, True)):
        y = np.array([small, large, large, small, small, large])
        data = read_tasks(X, y, [0, 0, 0, 1, 1, 1], targets="classes")
        assert data.classes.tolist() == [small, large]
        np.testing.assert_array_equal(data.y, [-1, 1, 1, -1, -1, 1])


def test_missing_classes(rng):
    y = np.array(["no", None, "yes", "no"], dtype=object)
    data = read_tasks(rng.standard_normal((4, 2)), y, targets="classes")
    assert data.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(data.y * data.weights, [-1, 0, 1, -1])
    weighted = read_tasks(np.ones((3, 1)), [0, 1, 2], sample_weight=[1, 1, 0], targets="classes")
    assert weighted.classes.tolist() == [0, 1]  # a row of weight 0 is absent


def test_tasks_with_different_pairs():
    X = np.ones((2, 1))
    data = read_tasks([X, X], [np.array(["a", "b"]), np.array(["d", "c"])], targets="classes")
    assert [pair.tolist() for pair in data.classes] == [["a", "b"], ["c", "d"]]
    np.testing.assert_array_equal(data.y, [-1, 1, 1, -1])


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        ([1, 1, 1, 1], None, "one class only"),
        ([0, 1, 2, 0], None, "Only binary classification is supported"),
        ([0, 1, 2, 2], [0, 0, 1, 1], r"Task 1 has 1 class"),
        ([0.5, 1.5, 2.25, 0.0], None, "Unknown label type: continuous"),
        ([0.0, 1.0, np.inf, 1.0], None, "infinity.*row 3"),
    ],
)
def test_bad_classes(y, task, message):
    with pytest.raises(ValueError, match=message):
        read_tasks(np.ones((4, 1)), np.array(y), task, targets="classes")


# --- bad input: the argument, the place, and what to do ----------------------------------------------------

X6 = np.ones((6, 2))
Y6 = np.arange(6.0)
T6 = np.array(["a", "a", "b", "b", "c", "c"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": None}, "requires y to be passed, but the target y is None"),
        ({"y": Y6[:4]}, "X has 6 rows, y has 4"),
        ({"X": np.ones(6)}, "Expected 2D array, got 1D array instead.*Reshape your data"),
        ({"X": np.ones((2, 3, 4))}, r"3D array.*list\(X\)"),
        ({"X": np.ones((6, 0))}, r"0 feature\(s\) \(shape=\(6, 0\)\) while a minimum of 1 is required"),
        ({"X": np.ones((0, 2)), "y": []}, r"0 sample\(s\)"),
        ({"X": np.ones((6, 2), dtype=complex)}, "Complex data not supported"),
        ({"X": np.full((6, 2), "a")}, r"X: column X\[:, 0\] holds text: 'a' in row 1"),
        ({"X": [[1.0, 2.0], [3.0]]}, "X is neither a matrix nor a list"),
        ({"X": np.ma.masked_equal(np.arange(12.0).reshape(6, 2), 3)}, r"X is masked in row 2 .*, column X\[:, 1\]"),
        ({"y": np.ones((6, 2, 2))}, r"y should be a 1d array or an array of shape \(n, T\)"),
        ({"y": np.ones((6, 0)), "task": None}, "no columns"),
        ({"y": Y6 * 1j}, "Complex"),
        ({"y": ["a"] * 6}, "y must hold numbers"),
        ({"y": np.where(Y6 == 4, np.inf, Y6)}, "y contains infinity.*row 5.*NaN"),
        ({"y": scipy.sparse.csr_array(np.ones((6, 2))), "task": None}, "y is sparse"),
        ({"y": [[1.0], [2.0, 3.0]], "task": None}, "y is a list of arrays of different lengths"),
        ({"y": np.ones((6, 2))}, r"task was given with a y of 2 columns.*stack the rows"),
        ({"task": T6[:5]}, r"X has 6 rows, task has shape \(5,\)"),
        ({"task": np.array([0, 1, 2, NAN, 0, 1])}, "task has no label in row 4"),
        ({"task": np.array(["a", None, "a", "b", "b", "b"], dtype=object)}, "task has no label in row 2"),
        ({"task": np.array(["a", 1, "a", "b", "b", "b"], dtype=object)}, "cannot be sorted"),
        ({"y": np.where(T6 == "b", NAN, Y6)}, r"task 'b' has no rows.*missing \(NaN\) in y"),
        ({"sample_weight": np.where(T6 == "b", 0.0, 1.0)}, "task 'b' has no rows.*zero sample_weight"),
        ({"sample_weight": np.ones(5)}, r"sample_weight.shape == \(5,\), expected \(6,\)"),
        ({"sample_weight": np.ones((6, 2))}, "sample_weight.shape"),
        ({"sample_weight": [1, 1, 1, -1, 1, 1]}, r"sample_weight must be finite and >= 0, got -1.0 in row 4"),
        ({"sample_weight": [1, NAN, 1, 1, 1, 1]}, "sample_weight must be finite.*row 2"),
        ({"task_weights": [1.0, 2.0]}, "task_weights has shape.*3 tasks"),
        ({"task_weights": [1.0, -2.0, 1.0]}, "task_weights must be finite and positive.*'b'"),
        ({"task_weights": {"d": 1.0}}, "task_weights names the task 'd'"),
        ({"task_weights": "equal"}, "'balanced'"),
        ({"X": [X6, X6]}, r"task was given with a list of matrices"),
        ({"X": [X6, X6], "task": None}, "y must be a list of 2 1-D arrays"),
        ({"X": [X6, X6], "task": None, "y": [Y6]}, "got a list of 1"),
        ({"X": [X6, X6], "task": None, "y": [Y6, Y6[:3]]}, r"y\[1\] has 3 entries, but X\[1\] has 6 rows"),
        ({"X": [X6, X6[:, :1]], "task": None, "y": [Y6, Y6]}, r"X\[1\] has 1 features, X\[0\] has 2"),
        ({"X": [X6, X6[:0]], "task": None, "y": [Y6, Y6[:0]]}, r"X\[1\] has 0 sample\(s\)"),
        ({"X": [X6, X6 * NAN], "task": None, "y": [Y6, Y6]}, r"Input X\[1\] contains NaN: row 1 .*\[:, 0\]"),
        ({"X": [X6, X6], "task": None, "y": [Y6, np.where(Y6 == 2, np.inf, Y6)]}, r"y\[1\], row 3"),
        ({"y": np.where(np.eye(6) > 0, np.inf, 0.0)[:, :3], "task": None}, "row 1 .*, task 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_named(arguments, message):
    call = {"X": X6, "y": Y6, "task": T6, **arguments}
    with pytest.raises(ValueError, match=f"(?s){message}"):
        read_tasks(call.pop("X"), call.pop("y"), **call)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0], "shape"), ([1.0, -1.0], r"_weights\[1\] = -1.0"), ([NAN, 1.0], "finite"), ([1.0, np.inf], "finite")],
)
def test_bad_feature_weights(weights, message):
    with pytest.raises(ValueError, match=f"feature_weights.*{message}"):
        read_feature_weights(weights, 2)


def test_mixed_lists_are_made_alike():
    dense, sparse = np.eye(2), scipy.sparse.csr_array(np.eye(2))
    storage = read_tasks([dense, sparse], [[1, 2], [3, 4]]).make_storage()
    assert storage.take(np.arange(2)).tolist() == [[1, 0], [0, 1]] * 2
    small, large = np.eye(2, dtype=np.int8), 0.5 * np.eye(2)
    assert read_tasks([small, large], [[1, 2], [3, 4]]).make_storage().dtype == np.float64
