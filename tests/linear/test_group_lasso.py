"""The estimators of groups of features: thin faces of the penalty."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import tasksieve as ts


@pytest.fixture
def data(rng):
    x, task = rng.standard_normal((80, 20)), np.repeat(["u", "v"], 40)
    y = (x[:, 0] + x[:, 1] - x[:, 3]) * np.where(task == "u", 2.0, -1.0) + 0.3 * rng.standard_normal(80)
    return x, y, task, np.arange(20) // 4


@pytest.mark.parametrize("inside", [None, "rows", "entries"])
def test_it_is_the_penalty_on_groups(data, inside):
    x, y, task, groups = data
    model = ts.MultiTaskGroupLasso(0.2, feature_groups=groups, inside=inside, mix=0.3).fit(x, y, task=task)
    penalty = ts.penalties.Groups(groups, inside, mix=0.3)
    same = ts.MultiTaskRegressor(penalty=penalty, alpha=0.2).fit(x, y, task=task)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.dual_gap_ == same.dual_gap_
    assert model.selected_groups_.tolist() == same.selected_groups_.tolist() == [0]
    assert model.get_support().sum() == (4 if inside is None else 3)


def test_copies_and_paths(data):
    x, y, task, groups = data
    names = {f"group {k}": np.flatnonzero(groups == k).tolist() for k in range(5)}
    model = ts.MultiTaskGroupLasso(0.2, feature_groups=names).fit(x, y, task=task)
    other = pickle.loads(pickle.dumps(model))
    assert other.selected_groups_.tolist() == ["group 0"]
    np.testing.assert_array_equal(clone(model).fit(x, y, task=task).coef_, model.coef_)
    path = model.path(x, y, task=task, n_alphas=8, eps=0.1)
    assert path.converged.all()
    assert np.all(path.n_selected % 4 == 0)
    assert path.model(3).selected_groups_.tolist() == ["group 0"]
    warm = ts.MultiTaskGroupLasso(0.3, feature_groups=names, warm_start=True).fit(x, y, task=task)
    warm.set_params(alpha=0.2).fit(x, y, task=task)
    np.testing.assert_allclose(warm.coef_, model.coef_, atol=1e-4)


def test_cross_validation(data):
    x, y, task, groups = data
    options = {"feature_groups": groups, "n_alphas": 8, "eps": 0.05, "cv": 3}
    model = ts.MultiTaskGroupLassoCV(**options).fit(x, y, task=task)
    assert 0 in model.selected_groups_
    assert model.cv_scores_.shape == (8, 3)
    final = ts.MultiTaskGroupLasso(model.alpha_, feature_groups=groups).fit(x, y, task=task)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-3)
    both = ts.MultiTaskGroupLassoCV(**options, inside="rows", group_weights=None).fit(x, y, task=task)
    assert both.get_support().sum() >= 3


@pytest.mark.parametrize(
    ("inside", "other"),
    [
        (None, ts.MultiTaskLasso(0.2)),
        ("rows", ts.MultiTaskLasso(0.2)),
        ("entries", ts.MultiTaskSparseGroupLasso(0.2, l1=0.5, group=0.5)),
    ],
)
def test_without_groups_every_feature_is_one(data, inside, other):
    x, y, task, _ = data
    model = ts.MultiTaskGroupLasso(0.2, inside=inside).fit(x, y, task=task)
    np.testing.assert_allclose(model.coef_, other.fit(x, y, task=task).coef_, atol=1e-5)
    np.testing.assert_array_equal(model.selected_groups_, model.get_support(indices=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"feature_groups": [0, 0, 1]}, "groups are of 3 features, but X has 20"),
        ({"feature_groups": {"a": [0, 1], "b": [1]}}, "must not overlap"),
        ({"inside": "columns"}, "'inside' must be"),
        ({"inside": "rows", "mix": 0}, "'mix' must lie strictly between"),
        ({"group_weights": [1.0]}, "group_weights need feature_groups"),
    ],
)
def test_bad_parameters(data, options, words):
    x, y, task, _ = data
    with pytest.raises(ValueError, match=words):
        ts.MultiTaskGroupLasso(0.2, **options).fit(x, y, task=task)
