"""Missing values filled by remembered means, with indicators."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import tasksieve as ts


def holed(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)) + [0.0, 1.0, 2.0, 3.0]
    task = np.array(["north", "south"])[rng.integers(0, 2, rows)]
    X[task == "south"] += 10.0
    y = X[:, 0] + rng.standard_normal(rows)
    X[rng.random(rows) < 0.3, 1] = np.nan
    X[rng.random(rows) < 0.2, 3] = np.nan
    return X, y, task


def test_means_are_those_of_scikit_learns_imputer_task_by_task():
    X, _, task = holed()
    filled = ts.FillMissing().fit_transform(X, task=task)
    for name in ("north", "south"):
        np.testing.assert_allclose(filled[task == name], SimpleImputer().fit_transform(X[task == name]), rtol=1e-12)
    over_all = ts.FillMissing("mean").fit(X, task=task)
    np.testing.assert_allclose(over_all.transform(X, task=task), SimpleImputer().fit_transform(X), rtol=1e-12)
    np.testing.assert_array_equal(over_all.missing_.sum(axis=0), np.isnan(X).sum(axis=0))


def test_indicators_are_in_the_group_of_their_column():
    X, y, task = holed()
    fill = ts.FillMissing("indicator").fit(X, task=task)
    out = fill.transform(X, task=task)
    np.testing.assert_array_equal(out[:, 4:], np.isnan(X)[:, [1, 3]])
    assert fill.feature_groups_.tolist() == [0, 1, 2, 3, 1, 3]
    assert fill.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3", "missing(x1)", "missing(x3)"]
    for name in ("north", "south"):  # the filled column and its indicator are orthogonal, once centred
        part = out[task == name] - out[task == name].mean(axis=0)
        assert abs(part[:, 1] @ part[:, 4]) < 1e-9
    model = ts.MultiTaskGroupLasso(alpha=0.1, feature_groups=fill.feature_groups_).fit(out, y, task=task)
    assert not {4, 5} & set(model.get_support(indices=True)) - {j + 3 for j in model.get_support(indices=True)}


def test_what_was_learned_is_remembered():
    X, _, task = holed()
    fill = ts.FillMissing().fit(X, task=task)
    new = fill.transform([[np.nan, np.nan, 1.0, np.nan]], task=["south"])
    np.testing.assert_array_equal(new[0], [fill.means_[1, 0], fill.means_[1, 1], 1.0, fill.means_[1, 3]])
    with pytest.raises(ValueError, match=r"task 'west' in row 1 .* is unknown"):
        fill.transform(X[:1], task=["west"])
    with pytest.raises(ValueError, match="had no missing value in the data of fit"):
        ts.FillMissing("indicator").fit(X, task=task).transform([[np.nan, 0.0, 0.0, 0.0]], task=["north"])


def test_a_column_without_values_has_no_mean():
    X, _, task = holed()
    X[task == "north", 2] = np.nan
    with pytest.raises(ts.ParameterError, match=r"all values of column 2 of task 'north' are missing.*by_pattern"):
        ts.FillMissing().fit(X, task=task)
    assert np.isfinite(ts.FillMissing("mean").fit(X, task=task).means_).all()
    with pytest.raises(ValueError, match="is sparse"):
        ts.FillMissing().fit(scipy.sparse.csr_array(np.nan_to_num(X)))
    with pytest.raises(ValueError, match="holds infinity"):
        ts.FillMissing().fit(np.full((2, 2), np.inf))
    with pytest.raises(ts.ParameterError, match="how"):
        ts.FillMissing("median").fit(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_a_column_of_tasks_go_through_pipelines(library):
    pytest.importorskip("narwhals")
    module = pytest.importorskip(library)
    X, y, task = holed()
    frame = module.DataFrame({"a": X[:, 0], "b": X[:, 1], "hospital": task, "c": X[:, 2], "d": X[:, 3]})
    fill = ts.FillMissing("indicator", task="hospital")
    out = fill.fit_transform(frame)
    assert type(out) is module.DataFrame
    assert list(out.columns) == ["a", "b", "hospital", "c", "d", "missing(b)", "missing(d)"]
    assert list(out["hospital"]) == task.tolist()
    np.testing.assert_array_equal(out["missing(b)"].to_numpy(), np.isnan(X[:, 1]))
    pipeline = make_pipeline(fill, ts.MultiTaskLasso(alpha=0.1, task="hospital"))
    folds = ts.TaskKFold(3, shuffle=True, random_state=0, task="hospital")
    scores = cross_val_score(pipeline, frame, y, cv=folds, scoring="r2")
    assert np.isfinite(scores).all()
    assert scores.mean() > 0.5
