"""Tasks by name: {task: (X, y)}."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import tasksieve as ts

TASKS = ("west", "east", "north")


def rows(classes: bool = False) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    found = {}
    for t, name in enumerate(TASKS):
        X = rng.standard_normal((14 + t, 6))
        y = X[:, 0] - t * X[:, 1] + 0.1 * rng.standard_normal(len(X))
        found[name] = X, np.where(y > 0, "yes", "no") if classes else y
    return found


def stacked(tasks: dict[str, Any]) -> tuple[Any, Any, Any]:
    X, y = (np.concatenate([np.asarray(pair[k]) for pair in tasks.values()]) for k in (0, 1))
    return X, y, np.repeat(list(tasks), [len(pair[1]) for pair in tasks.values()])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskLasso(alpha=0.1),
        ts.MultiTaskLassoCV(cv=3, n_alphas=5),
        ts.MultiTaskPoisson(alpha=0.1),
        ts.MultiTaskSparseGroupLasso(alpha=0.1),
        ts.GraphSVR(C=1.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_same_as_stacked_rows(model: Any) -> None:
    tasks = rows()
    if isinstance(model, ts.MultiTaskPoisson):
        tasks = {name: (X, np.round(np.exp(y / 2))) for name, (X, y) in tasks.items()}
    X, y, task = stacked(tasks)
    known = clone(model).fit(X, y, task=task)
    found = clone(model).fit(tasks)
    assert found.tasks_.tolist() == sorted(TASKS)
    np.testing.assert_array_equal(found.coef_, known.coef_)
    answers = found.predict({name: pair[0] for name, pair in tasks.items()})
    assert list(answers) == list(TASKS)
    np.testing.assert_allclose(np.concatenate(list(answers.values())), known.predict(X, task=task), rtol=1e-12)
    some = found.predict({"north": tasks["north"][0]})
    np.testing.assert_array_equal(some["north"], answers["north"])
    assert found.score(tasks) == known.score(X, y, task=task)


def test_classes_and_probabilities() -> None:
    tasks = rows(classes=True)
    X, y, task = stacked(tasks)
    model = ts.MultiTaskLogisticRegression(alpha=0.05).fit(tasks)
    known = model.predict_proba(X, task=task)
    found = model.predict_proba({name: pair[0] for name, pair in tasks.items()})
    np.testing.assert_array_equal(np.concatenate(list(found.values())), known)
    assert model.score(tasks) == model.score(X, y, task=task)


def test_weights_offsets_and_y_by_name() -> None:
    tasks = rows()
    X, y, task = stacked(tasks)
    weights = {name: np.linspace(0.5, 1.5, len(pair[1])) for name, pair in tasks.items()}
    flat = np.concatenate(list(weights.values()))
    known = ts.MultiTaskLasso(alpha=0.1).fit(X, y, task=task, sample_weight=flat, offset=flat)
    found = ts.MultiTaskLasso(alpha=0.1).fit(
        {name: pair[0] for name, pair in tasks.items()}, {name: pair[1] for name, pair in tasks.items()},
        sample_weight=weights, offset=weights,
    )  # fmt: skip
    np.testing.assert_array_equal(found.coef_, known.coef_)
    answers = found.predict({name: pair[0] for name, pair in tasks.items()}, offset=weights)
    found_flat = np.concatenate(list(answers.values()))
    np.testing.assert_allclose(found_flat, known.predict(X, task=task, offset=flat), rtol=1e-12)


def test_frames_are_matched_by_name() -> None:
    tasks = rows()
    X, y, task = stacked(tasks)
    known = ts.MultiTaskLasso(alpha=0.1).fit(pd.DataFrame(X, columns=list("abcdef")), y, task=task)
    frames = {
        name: (pd.DataFrame(own, columns=list("abcdef")), pd.Series(label)) for name, (own, label) in tasks.items()
    }
    frames["east"] = frames["east"][0][list("fdbace")], frames["east"][1]
    found = ts.MultiTaskLasso(alpha=0.1).fit(frames)
    assert found.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(found.coef_, known.coef_)
    answers = found.predict({"east": frames["east"][0]})
    expected = known.predict(frames["east"][0][list("abcdef")], task=["east"] * 15)
    np.testing.assert_allclose(answers["east"], expected, rtol=1e-12)


def test_sparse_matrices_and_findings() -> None:
    tasks = rows()
    X, y, task = stacked(tasks)
    sparse = {name: (scipy.sparse.csr_array(pair[0]), pair[1]) for name, pair in tasks.items()}
    path = ts.MultiTaskLasso().path(sparse, n_alphas=4)
    known = ts.MultiTaskLasso().path(scipy.sparse.csr_array(X), y, task=task, n_alphas=4)
    np.testing.assert_array_equal(path.model(-1).coef_, known.model(-1).coef_)
    test = ts.permutation_test(ts.MultiTaskLasso(), tasks, n_permutations=9, random_state=0)
    again = ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=9, random_state=0)
    assert test.pvalue == again.pvalue


def test_a_sparse_matrix_that_is_a_dict_is_a_matrix() -> None:
    X, y, task = stacked(rows())
    known = ts.MultiTaskLasso(alpha=0.1).fit(scipy.sparse.csr_array(X), y, task=task)
    found = ts.MultiTaskLasso(alpha=0.1).fit(scipy.sparse.dok_array(X), y, task=task)
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-9)
    predicted = found.predict(scipy.sparse.dok_array(X), task=task)
    np.testing.assert_allclose(predicted, known.predict(X, task=task), rtol=1e-9)


def test_what_is_refused() -> None:
    tasks: dict[Any, Any] = dict(rows())
    frames = {name: (pd.DataFrame(pair[0], columns=list("abcdef")), pair[1]) for name, pair in tasks.items()}
    fit = ts.MultiTaskLasso(alpha=0.1).fit
    with pytest.raises(ValueError, match="X is an empty dict"):
        fit({})
    with pytest.raises(ValueError, match="its keys are the tasks"):
        fit(tasks, task=[0])
    with pytest.raises(ValueError, match=r"X\['west'\] must be a pair"):
        fit({name: pair[0] for name, pair in tasks.items()})
    with pytest.raises(ValueError, match="y must be a dict"):
        fit(tasks, np.zeros(45))
    with pytest.raises(ValueError, match="'north' is in X only"):
        fit({n: p[0] for n, p in tasks.items()}, {n: p[1] for n, p in tasks.items() if n != "north"})
    with pytest.raises(ValueError, match=r"y\['east'\] must be 1-D, one entry per row of X: 15 rows, shape \(3,\)"):
        fit({**tasks, "east": (tasks["east"][0], [1.0, 2.0, 3.0])})
    with pytest.raises(ValueError, match=r"X\['east'\] has shape \(15, 5\)"):
        fit({**tasks, "east": (tasks["east"][0][:, :5], tasks["east"][1])})
    with pytest.raises(ValueError, match="make all of them data frames, or none"):
        fit({**frames, "east": tasks["east"]})
    other = frames["east"][0].drop(columns="b").assign(z=1.0)
    with pytest.raises(ValueError, match=r"X\['east'\] lacks 'b' and has 'z', which X\['west'\] has not"):
        fit({**frames, "east": (other, frames["east"][1])})
    with pytest.raises(ValueError, match="the target y is None"):
        fit(tasks["east"][0], None)
