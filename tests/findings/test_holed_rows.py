"""Missing values in halves and outer folds: filled with means of the rows that are learned from, and of no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

import tasksieve as ts
from tasksieve.findings.nested_folds import NestedFolds
from tasksieve.tasks import read_tasks
from tasksieve.tasks.task_means import FilledCells, HoledRows


def data(n: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X with its holes and filled with task means, y and tasks of different levels."""
    rng = np.random.default_rng(4)
    task = np.repeat([0, 1, 2], n // 3)
    X = rng.standard_normal((n, 6)) + 5.0 * task[:, None]
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, filled_by_hand(X, task, np.ones(n, dtype=bool)), y, task


def filled_by_hand(X: np.ndarray, task: np.ndarray, inside: np.ndarray) -> np.ndarray:
    out = np.empty_like(X)
    for t in np.unique(task):
        out[task == t] = SimpleImputer().fit(X[(task == t) & inside]).transform(X[task == t])
    return out


def test_means_are_those_of_the_rows_inside() -> None:
    X, filled, _, task = data()
    holed = FilledCells(*np.nonzero(np.isnan(X)), task).holed(filled)
    np.testing.assert_array_equal(holed.values, X)
    inside = np.arange(90) % 2 == 0
    np.testing.assert_allclose(holed.filled(inside), filled_by_hand(X, task, inside), rtol=1e-14)
    np.testing.assert_allclose(holed.filled(), filled, rtol=1e-14)
    X[(task == 1) & inside, 2] = np.nan  # no value of this task: the mean of all others; of none at all: 0
    X[inside, 3] = np.nan
    found = HoledRows(X, task).filled(inside)
    np.testing.assert_allclose(found[(task == 1) & np.isnan(X[:, 2]), 2], np.nanmean(X[inside, 2]))
    assert not found[np.isnan(X[:, 3]), 3].any()
    absent = np.zeros(X.shape, dtype=bool)
    absent[task == 0] = True  # a task without the columns: its zeros are no values
    found = HoledRows(np.where(absent, 0.0, X), np.zeros(90, dtype=int), absent).filled()
    np.testing.assert_allclose(found[np.isnan(X[:, 0]) & (task > 0), 0], np.nanmean(X[task > 0, 0]))


def test_halves_are_filled_from_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, y, task = data()
    masks: list[np.ndarray] = []
    plain = HoledRows.filled

    def spy(self: HoledRows, inside: Any = None) -> np.ndarray:
        masks.append(inside)
        return plain(self, inside)

    monkeypatch.setattr(HoledRows, "filled", spy)
    model = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=3, threshold=0.9, q=2)
    model.fit(HoledRows(X, task), y, task=task)
    assert masks[0] is None  # in the place of halves until they are drawn
    assert len(masks) == 7
    for first, second in zip(masks[1::2], masks[2::2], strict=True):
        assert np.array_equal(first, ~second)
        assert np.bincount(task[first]).tolist() == [15, 15, 15]
    # one task: what an imputer of means does in each half
    one = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=5, threshold=0.9, q=2)
    other = ts.StabilitySelection(ts.MultipleImputation(ts.MultiTaskLasso(), SimpleImputer(), m=1), **{
        name: value for name, value in one.get_params(deep=False).items() if name != "estimator"
    })  # fmt: skip
    one.fit(HoledRows(X, np.zeros(90, dtype=int)), y)
    np.testing.assert_array_equal(one.selection_probabilities_, other.fit(X, y).selection_probabilities_)
    # two targets of the same rows
    both = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=2, threshold=0.9, q=2)
    both.fit(HoledRows(X, np.zeros(90, dtype=int)), np.column_stack([y, -y]))
    assert masks[-1].sum() == 45


def test_folds_of_a_comparison_are_filled_from_their_training_rows() -> None:
    """The shared model by hand, its outer folds filled by scikit-learn."""
    X, filled, y, task = data()
    options = {"n_alphas": 5, "eps": 0.1, "cv": 3}
    found = ts.compare(ts.MultiTaskLassoCV(**options), HoledRows(X, task), y, task=task, cv=3)
    nest = NestedFolds(read_tasks(filled, y, task), None, 0)
    outer = nest.assign(np.ones(90, dtype=bool), 3, 0)
    errors = np.empty(90)
    for f in range(3):
        held = outer == f
        inner = nest.assign(~held, 3, 1, f)
        splits = [(np.flatnonzero(inner != k), np.flatnonzero(inner == k)) for k in range(3)]
        own = filled_by_hand(X, task, ~held)
        model = ts.MultiTaskLassoCV(**{**options, "cv": splits}).fit(own, y, task=task, sample_weight=1.0 * ~held)
        errors[held] = (y - model.predict(own, task=task))[held] ** 2
    means = [errors[task == t].mean() for t in range(3)]
    np.testing.assert_allclose(found.quality["shared"].values[:, 1], means, rtol=1e-6)
    leaked = ts.compare(ts.MultiTaskLassoCV(**options), filled, y, task=task, cv=3)
    assert not np.allclose(leaked.quality["shared"].values[:, 1], means, rtol=1e-3)
