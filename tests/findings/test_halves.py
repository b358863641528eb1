"""Complementary halves: what is halved, and what the draw depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.findings.halves import Halves, draw_halves
from tasksieve.tasks import TaskData, read_tasks


def some_tasks(seed: int = 0, sizes: tuple[int, ...] = (9, 12, 7), d: int = 4) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(sizes)), sizes)
    return rng.standard_normal((len(task), d)), rng.standard_normal(len(task)), task


def masks(halves: Halves, data: TaskData) -> np.ndarray:
    """(halves, samples)"""
    return np.array([halves.weights(h, data.weights) > 0 for h in range(len(halves))])


def by_row(halves: Halves, data: TaskData) -> np.ndarray:
    """The same, samples in the order in which the rows were given."""
    found = masks(halves, data)
    back = np.empty_like(found)
    back[:, slice(None) if data.order is None else data.order] = found
    return back


def test_halves_are_complementary_and_halve_every_task() -> None:
    data = read_tasks(*some_tasks())
    found = masks(draw_halves(data, 30), data)
    assert found.shape == (60, 28)
    np.testing.assert_array_equal(found[::2], ~found[1::2])
    counts = np.add.reduceat(found, data.offsets[:-1], axis=1)
    assert np.all((counts[:, 1] == 6) & np.isin(counts[:, 0], (4, 5)) & np.isin(counts[:, 2], (3, 4)))
    assert set(counts[::2, 0]) == {4, 5}  # a fair coin, not always the first half
    assert len(np.unique(found, axis=0)) == 60


def test_every_pair_of_rows_is_as_often_together() -> None:
    data = read_tasks(*some_tasks(sizes=(4, 4)))
    found = masks(draw_halves(data, 4000, 1), data)[::2].astype(float)
    together = found.T @ found / len(found)
    expected = np.full((8, 8), 0.25)  # independent tasks
    expected[:4, :4] = expected[4:, 4:] = 1 / 6
    np.fill_diagonal(expected, 0.5)
    np.testing.assert_allclose(together, expected, atol=0.03)


def test_tasks_with_equal_labels_draw_on_their_own() -> None:
    """Two classification tasks with equal class counts differ in X only."""
    rng = np.random.default_rng(0)
    X, y, task = rng.standard_normal((40, 3)), np.tile([0, 1], 20), np.repeat([0, 1], 20)
    data = read_tasks(X, y, task, targets="classes")
    found = masks(draw_halves(data, 200), data)[::2]
    order = np.argsort(data.y[:20], kind="stable")
    agreement = np.mean(found[:, :20][:, order] == found[:, 20:][:, order])
    assert abs(agreement - 0.5) < 0.05


def test_identical_tasks_have_halves_of_their_own() -> None:
    X, y, _ = some_tasks(sizes=(12,))
    data = read_tasks([X, X], [y, y])
    found = masks(draw_halves(data, 20), data)
    assert not np.array_equal(found[:, :12], found[:, 12:])


def test_classes_are_halved_within_tasks() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((50, 3)), np.repeat(["a", "b"], 25)
    y = np.where(np.arange(50) % 25 < 6, "case", "control")
    data = read_tasks(X, y, task, targets="classes")
    found = masks(draw_halves(data, 20), data)
    cases = data.y < 0
    for part in data.per_task():
        assert np.all(found[:, part][:, cases[part]].sum(axis=1) == 3)
        assert np.all(np.isin(found[:, part].sum(axis=1), (12, 13)))


def test_a_task_of_two_rows_of_different_classes_is_halved() -> None:
    data = read_tasks(np.eye(4), [0, 1, 0, 1], [0, 0, 1, 1], targets="classes")
    found = masks(draw_halves(data, 20), data)
    np.testing.assert_array_equal(found[:, 0], ~found[:, 1])
    assert set(found[::2, 0]) == {True, False}


def test_rows_of_a_shared_matrix_are_the_units() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((21, 4)), rng.standard_normal((21, 3))
    data = read_tasks(X, Y)
    found = masks(draw_halves(data, 10), data).reshape(20, 3, 21)
    assert np.all(found == found[:, :1])
    assert np.all(np.isin(found[:, 0].sum(axis=1), (10, 11)))


def test_labels_that_are_missing_are_not_drawn_and_change_no_other_task() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((30, 3))
    Y[:15, 2] = np.nan
    data = read_tasks(X, Y)
    found = masks(draw_halves(data, 10), data).reshape(20, 3, 30)
    assert not found[:, 2, :15].any()
    assert np.all(np.isin(found[:, 2].sum(axis=1), (7, 8)))
    assert np.all(found[:, 0].sum(axis=1) == 15)


def test_groups_stay_whole() -> None:
    X, y, task = some_tasks(sizes=(12, 12))
    groups = np.array([f"family {i % 6}" for i in range(24)])  # each in both tasks
    data = read_tasks(X, y, task)
    found = masks(draw_halves(data, 10, groups=groups), data)
    for name in np.unique(groups):
        assert np.all(np.ptp(found[:, groups == name].astype(int), axis=1) == 0)
    assert np.all(found.sum(axis=1) == 12)


def test_a_group_for_each_row_is_no_group() -> None:
    X, y, task = some_tasks()
    data = read_tasks(X, y, task)
    with_groups = draw_halves(data, 5, 3, groups=np.arange(len(y)) * 7)
    np.testing.assert_array_equal(masks(with_groups, data), masks(draw_halves(data, 5, 3), data))


def test_rows_of_weight_zero_are_absent() -> None:
    X, y, task = some_tasks()
    weights = np.ones(len(y))
    weights[[0, 5, 11, 20]] = 0.0
    kept = weights > 0
    data, less = read_tasks(X, y, task, weights), read_tasks(X[kept], y[kept], task[kept])
    found = masks(draw_halves(data, 6), data)
    assert not found[:, ~kept].any()
    np.testing.assert_array_equal(found[:, kept], masks(draw_halves(less, 6), less))


def invariant(first: np.ndarray, X: Any, y: Any, task: Any = None, **options: Any) -> None:
    data = read_tasks(X, y, task, targets=options.pop("targets", "values"))
    np.testing.assert_array_equal(by_row(draw_halves(data, 8, 5, **options), data), first)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_invariances(classes: bool, grouped: bool) -> None:
    X, y, task = some_tasks(sizes=(10, 13, 10))
    X = np.round(X)  # many ties
    groups = np.arange(33) // 2 if grouped else None
    options = {"targets": "classes" if classes else "values"}
    y = (y > 0).astype(float) if classes else np.round(y)
    data = read_tasks(X, y, task, **options)
    first = by_row(draw_halves(data, 8, 5, groups=groups), data)
    assert not np.array_equal(first, by_row(draw_halves(data, 8, 6, groups=groups), data))
    # task names, which change the order of the tasks; group names
    names = np.array(["z", "b", "m"])[task]
    renamed = None if groups is None else np.array([f"g{(7 * g) % 17}" for g in groups])
    invariant(first, X, y, names, groups=renamed, **options)
    # the form of X
    invariant(first, X.astype(np.float32), y, task, groups=groups, **options)
    invariant(first, scipy.sparse.csr_array(X), y, task, groups=groups, **options)
    parts = [task == t for t in range(3)]
    listed = [groups[part] for part in parts] if grouped else None
    invariant(first, [X[part] for part in parts], [y[part] for part in parts], groups=listed, **options)
    # the order of the rows; a row that is the same as another may change places with it
    mixed = np.random.default_rng(1).permutation(33)
    other = read_tasks(X[mixed], y[mixed], task[mixed], **options)
    found = by_row(draw_halves(other, 8, 5, groups=None if groups is None else groups[mixed]), other)
    rows = np.column_stack([task, y, X])
    for half, again in zip(first, found, strict=True):
        np.testing.assert_array_equal(np.unique(rows[half], axis=0), np.unique(rows[mixed][again], axis=0))


def test_columns_of_labels_may_change_places() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 3)), (rng.random((20, 4)) < 0.5).astype(float)
    data, other = (read_tasks(X, labels, targets="classes") for labels in (Y, Y[:, [2, 0, 3, 1]]))
    np.testing.assert_array_equal(
        masks(draw_halves(data, 5), data)[:, :20], masks(draw_halves(other, 5), other)[:, :20]
    )


def test_one_column_of_labels_is_one_task() -> None:
    X, y, _ = some_tasks(sizes=(15,))
    one, column = read_tasks(X, y), read_tasks(X, y[:, None])
    np.testing.assert_array_equal(masks(draw_halves(one, 5), one), masks(draw_halves(column, 5), column))


def test_only_so_many_columns_are_read_as_tell_rows_apart() -> None:
    class Counting(ts.Storage):
        def __init__(self, x: np.ndarray) -> None:
            self.x, self.taken = x, 0
            self.n_rows, self.n_features, self.dtype = *x.shape, x.dtype

        def products(self, vectors: Any, features: Any = None, squares: bool = False) -> Any:
            raise AssertionError("not needed")

        def take(self, features: np.ndarray) -> np.ndarray:
            self.taken = max(self.taken, int(features.max()) + 1)
            return self.x[:, features]

    X, y, _ = some_tasks(sizes=(20,), d=500)
    numbers, classes = Counting(X), Counting(X)
    draw_halves(read_tasks(numbers, y), 2)
    draw_halves(read_tasks(classes, y > 0, targets="classes"), 2)
    assert numbers.taken == 0
    assert classes.taken == 1


def test_small_tasks() -> None:
    X, y, task = some_tasks(sizes=(9, 1, 7, 1))
    data = read_tasks(X, y, np.array(["a", "b", "c", "d"])[task])
    with pytest.raises(ValueError, match=r"Task 'b' has one row.*1 more \('d'\).*small_tasks='drop'"):
        draw_halves(data, 5)
    halves = draw_halves(data, 5, small_tasks="drop")
    assert halves.dropped == ["b", "d"]
    found = masks(halves, data)
    assert not found[:, (data.task_of_sample == 1) | (data.task_of_sample == 3)].any()
    with pytest.raises(ValueError, match="nothing to halve"):
        draw_halves(read_tasks(X[:1], y[:1]), 5, small_tasks="drop")
    with pytest.raises(ValueError, match="'small_tasks' parameter"):
        draw_halves(data, 5, small_tasks="skip")  # type: ignore[arg-type]


def test_groups_that_span_tasks_oddly() -> None:
    X, y, task = some_tasks(sizes=(4, 4))
    data = read_tasks(X, y, task)
    with pytest.raises(ValueError, match=r"groups: all rows of task 1 are of one group \('x'\).*small_tasks"):
        draw_halves(data, 3, groups=list("abcdxxxx"))
    # three groups, and each two of them are a task: two of them are always in the same half
    X, y, task = some_tasks(sizes=(2, 2, 2))
    with pytest.raises(ValueError, match="groups: no draw put groups of every task into both halves"):
        draw_halves(read_tasks(X, y, task), 3, groups=list("abbcac"))
    # but where there is such a split it is found
    found = read_tasks(*some_tasks(sizes=(2, 2, 2, 2)))
    assert len(draw_halves(found, 3, groups=list("abbccdda"))) == 6
