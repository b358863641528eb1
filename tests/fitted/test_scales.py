"""Columns in very different units are told of: once a fit, and nowhere else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.fitted.scales import warn_scales


def warned(fit: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(warning.message) for warning in caught if issubclass(warning.category, ts.ScaleWarning)]


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Feature 2 is in units a thousand times too large for its numbers."""
    X, task = rng.standard_normal((60, 6)), np.repeat([0, 1, 2], 20)
    y = X[:, 0] + X[:, 2] + 0.1 * rng.standard_normal(60)
    X[:, 2] /= 1000
    return X, y, task


MODELS = [
    ts.MultiTaskLasso(0.1),
    ts.MultiTaskElasticNet(0.1),
    ts.CalibratedMultiTaskLasso(0.1),
    ts.MultiTaskSparseGroupLasso(0.1),
    ts.MultiTaskOWL(0.1),
    ts.MultiTaskRegressor(alpha=0.1),
    ts.MultiTaskLassoCV(n_alphas=4, cv=3),
    ts.MultiTaskElasticNetCV(n_alphas=4, cv=3, l1_ratio=[0.5, 0.9]),
    ts.MultiTaskLassoCV(n_alphas=4, cv=3, n_jobs=2),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:60])
def test_one_warning_for_each_fit(model: Any, data: Any) -> None:
    X, y, task = data
    [said] = warned(lambda: model.fit(X, y, task=task))
    assert "feature 2" in said
    assert "standardize=True" in said
    model.set_params(standardize=True)
    assert warned(lambda: model.fit(X, y, task=task)) == []
    model.set_params(standardize=False)


def test_classifiers_and_paths_warn_too(data: Any) -> None:
    X, y, task = data
    labels = np.where(y > 0, "high", "low")
    assert len(warned(lambda: ts.MultiTaskLogisticRegression(0.01).fit(X, labels, task=task))) == 1
    assert len(warned(lambda: ts.MultinomialOWL(0.01).fit(X, labels))) == 1
    assert len(warned(lambda: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=3))) == 1
    assert warned(lambda: ts.MultiTaskLasso().alpha_max(X, y, task=task)) == []


def test_the_warning_is_right_and_its_advice_works(data: Any) -> None:
    X, y, task = data
    with pytest.warns(ts.ScaleWarning):
        lost = ts.MultiTaskLassoCV(cv=3).fit(X, y, task=task)
    found = ts.MultiTaskLassoCV(cv=3, standardize=True).fit(X, y, task=task)
    assert not lost.get_support()[2]
    assert found.get_support()[2]
    assert found.coef_[:, 2].mean() == pytest.approx(1000, rel=0.1)  # in the units of X


def test_names_of_a_data_frame_are_said(data: Any) -> None:
    X, y, task = data
    frame = pd.DataFrame(X, columns=["age", "bmi", "dose in kg", "d", "e", "f"])
    [said] = warned(lambda: ts.MultiTaskLasso(0.1).fit(frame, y, task=task))
    assert "feature 2 ('dose in kg')" in said


def test_what_does_not_count(data: Any) -> None:
    X, y, task = data
    weights = np.ones(6)
    for own in (0.0, 0.001):  # not penalised, or weighed on purpose
        weights[2] = own
        model = ts.MultiTaskLasso(0.1, feature_weights=weights)
        assert warned(lambda model=model: model.fit(X, y, task=task)) == []
    weights[2] = 1.0
    assert len(warned(lambda: ts.MultiTaskLasso(0.1, feature_weights=weights).fit(X, y, task=task))) == 1
    constant = X.copy()
    constant[:, 2] = 1e-9
    assert warned(lambda: ts.MultiTaskLasso(0.1).fit(constant, y, task=task)) == []
    moderate = X.copy()
    moderate[:, 2] *= 20  # a factor of about 50
    assert warned(lambda: ts.MultiTaskLasso(0.1).fit(moderate, y, task=task)) == []
    # a mean is no scale, and a column that varies in one task only has that task's
    shifted = X.copy()
    shifted[:, 2] = 1e6 + X[:, 0]
    shifted[task > 0, 1] = 3.0
    assert warned(lambda: ts.MultiTaskLasso(0.1).fit(shifted, y, task=task)) == []


def test_rare_things_are_no_units(rng: np.random.Generator) -> None:
    """Indicators differ in deviation because some are rare: sparse and small-integer matrices are not examined."""
    n = 60_000
    words = np.zeros((n, 3), dtype=np.int8)
    words[::2, 0] = 1
    words[:: n // 4, 1] = 1
    words[:1, 2] = 1
    y = rng.standard_normal(n)
    for X in (words, words.astype(np.uint8), scipy.sparse.csc_array(words.astype(float))):
        assert warned(lambda X=X: ts.MultiTaskLasso(0.1).fit(X, y)) == []
    assert len(warned(lambda: ts.MultiTaskLasso(0.1).fit(words.astype(float), y))) == 1
    # in fewer than 40,000 rows indicators alone never differ so much, whatever their storage
    assert warned(lambda: ts.MultiTaskLasso(0.1).fit(words[:39_000].astype(float), y[:39_000])) == []


def test_looking_costs_no_reading_of_the_data(data: Any, tmp_path: Any) -> None:
    X, y, task = data
    file = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=X.shape, fortran_order=True)
    file[:] = X
    model = ts.MultiTaskLasso(0.1)
    read = model._read(np.load(tmp_path / "X.npy", mmap_mode="r"), y, task, None)
    problem = model._problem(read)
    model._solve(read, problem, np.array([0.1]))
    passes = problem.design.passes
    with pytest.warns(ts.ScaleWarning):
        warn_scales(problem.design, read.make_storage(), None, None)
    assert problem.design.passes == passes


def test_the_warning_points_at_the_users_line(data: Any) -> None:
    X, y, task = data
    for fit in (
        lambda: ts.MultiTaskLasso(0.1).fit(X, y, task=task),
        lambda: ts.MultiTaskLassoCV(n_alphas=3, cv=3).fit(X, y, task=task),
        lambda: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=3),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        assert [w.filename for w in caught if issubclass(w.category, ts.ScaleWarning)] == [__file__]
