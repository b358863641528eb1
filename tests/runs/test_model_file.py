"""Models of every kind of outcome as files: the model that is read predicts to the bit what the fitted one did."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.linear.null_model import fit_null
from tasksieve.runs import RunError, RunFolder, SavedModel, load_model, save_model
from tasksieve.runs.results import read_path, write_path
from tasksieve.tables import read_arrays, write_arrays
from tasksieve.tables.encode import Encoding

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 5))
Z = X[:, 0] + RNG.logistic(0.0, 0.4, 60)
TASK = RNG.choice(["a", "b"], 60)
GRADE = np.digitize(Z, [-0.7, 0.6])
WORDS = np.array(["low", "mid", "high"])[GRADE]
UNLIKE = {
    "pressure": 120.0 + 10.0 * Z,
    "diabetes": np.where(Z > 0.0, "yes", "no"),
    "visits": RNG.poisson(np.exp(0.5 * Z)),
    "pain": WORDS,
    "death": ts.survival(np.round(np.exp(-Z), 2) + 0.1, RNG.choice([0, 1], 60)),
}
LOSSES = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "pain": "ordinal", "death": "cox"}
ORDER = {"pain": ["low", "mid", "high"]}
# as many classes as tasks, which are no rows of coefficients by class
PAIR = {"sick": UNLIKE["diabetes"], "visits": UNLIKE["visits"]}

CASES: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "cox": ("cox", ts.MultiTaskCox(0.05), UNLIKE["death"], {"task": TASK}),
    "ordinal": ("ordinal", ts.MultiTaskOrdinal(0.05), GRADE, {"task": TASK}),
    "ordinal, one task": ("ordinal", ts.MultiTaskOrdinal(0.05, categories=ORDER["pain"]), WORDS, {}),
    "ordinal, own classes": (
        "ordinal",
        ts.MultiTaskOrdinal(0.05, categories={"a": ["low", "mid", "high"], "b": ["none", "low", "mid", "high"]}),
        WORDS,
        {"task": TASK},
    ),
    "mixed": ("mixed", ts.MultiTaskMixed(LOSSES, alpha=0.2, categories=ORDER), UNLIKE, {}),
    "mixed, weights": (
        "mixed",
        ts.MultiTaskMixed({"sick": "logistic", "visits": "tweedie:power=1.3"}, alpha=0.1, loss_weights={"sick": 2.0}),
        PAIR,
        {},
    ),
    "mixed, one loss": ("mixed", ts.MultiTaskMixed("huber:delta=0.7", alpha=0.1), UNLIKE["pressure"], {"task": TASK}),
}

ATTRIBUTES = ("coef_", "intercept_", "tasks_", "classes_", "thresholds_", "loss_weights_", "target_scales_")


def saved_as(folder: RunFolder, kind: str, model: Any, null: Any = None) -> SavedModel:
    encoding = Encoding([(name, None) for name in "abcde"])
    folder.path.mkdir(exist_ok=True)
    save_model(folder, SavedModel(model, kind, encoding, None, ["y"], "t", {}, null))
    return load_model(folder)


def same(first: Any, second: Any) -> None:
    """Equal to the bit, and of the same type, whatever it is."""
    assert type(first) is type(second)
    if isinstance(first, list):
        assert len(first) == len(second)
        for own, other in zip(first, second, strict=True):
            same(own, other)
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)
    else:
        assert first == second


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_is_read_is_the_one_that_was_written(name: str, tmp_path: Path) -> None:
    kind, model, y, rows = CASES[name]
    model = model.fit(X, y, **rows)
    null = fit_null(model, X, y, **rows)
    found = saved_as(RunFolder(tmp_path / "r"), kind, model, null)
    for own, other in ((model, found.estimator), (null, found.null)):
        for attribute in ATTRIBUTES:
            assert hasattr(own, attribute) == hasattr(other, attribute)
            if hasattr(own, attribute):
                same(getattr(own, attribute), getattr(other, attribute))
        for method in ("predict", "decision_function", "predict_proba"):
            if hasattr(own, method):
                same(getattr(own, method)(X, **rows), getattr(other, method)(X, **rows))
        if hasattr(own, "losses_"):
            assert [vars(loss) for loss in own.losses_] == [vars(loss) for loss in other.losses_]
        assert own.score(X, y, **rows) == other.score(X, y, **rows)
    if name == "cox":
        times = {"times": [0.5, 2.0], **rows}
        same(model.predict_survival_function(X, **times), found.estimator.predict_survival_function(X, **times))
    assert found.estimator.get_params() == model.get_params()


@pytest.mark.parametrize("name", ["ordinal", "ordinal, own classes", "mixed"])
def test_a_path_keeps_its_thresholds(name: str, tmp_path: Path) -> None:
    kind, model, y, rows = CASES[name]
    path = model.path(X, y, **rows, n_alphas=4, eps=0.1)
    folder = RunFolder(tmp_path / "r")
    saved_as(folder, kind, path.model(0))
    write_path(folder, path)
    found = read_path(folder)
    for k in range(len(path)):
        same(found.thresholds(k, path.model(k).classes_), path.model(k).thresholds_)
        same(found.thresholds(k, path.model(k).classes_), path.thresholds(k))


@pytest.mark.parametrize(
    ("array", "change", "said"),
    [
        ("thresholds", lambda own: own[::-1].copy(), "thresholds that rise"),
        ("thresholds", lambda own: np.full_like(own, np.nan), "thresholds that rise"),
        ("thresholds", lambda own: own[:-1], "number of thresholds"),
        ("threshold_counts", lambda own: own[:-1], "tasks with thresholds"),
        ("threshold_counts", lambda own: np.array([-1, -1, -1, 1, 1]), "thresholds between the classes"),
        ("null_thresholds", lambda own: own[::-1].copy(), "thresholds that rise"),
        ("loss_weights", lambda own: -own, "loss weights above 0"),
        ("target_scales", lambda own: own[:2], "shape of the target scales"),
    ],
)
def test_what_no_fit_has_found_is_refused(array: str, change: Any, said: str, tmp_path: Path) -> None:
    kind, model, y, rows = CASES["mixed"]
    folder = RunFolder(tmp_path / "r")
    model = model.fit(X, y, **rows)
    saved_as(folder, kind, model, fit_null(model, X, y, **rows))
    arrays = dict(read_arrays(folder / "model.npz", stored=True))
    write_arrays(folder / "model.npz", {**arrays, array: change(arrays[array])})
    with pytest.raises(RunError, match=said):
        load_model(folder)


def test_a_model_that_is_read_knows_its_features_by_name(tmp_path: Path) -> None:
    model = ts.MultiTaskLasso(0.05).fit(X, Z, task=TASK)
    read = saved_as(RunFolder(tmp_path), "lasso", model).estimator
    assert read.feature_names_in_.tolist() == list("abcde")
    assert read.get_feature_names_out().tolist() == np.array(list("abcde"))[model.get_support()].tolist()
    frame, wanted = pd.DataFrame(X, columns=list("abcde")), model.predict(X, task=TASK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, scipy.sparse.csr_array(X), X.tolist(), frame):
            np.testing.assert_allclose(read.predict(rows, task=TASK), wanted, rtol=1e-12)
        np.testing.assert_allclose(read.predict([X, X])[0], model.predict([X, X])[0])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- z"):
        read.predict(frame.rename(columns={"a": "z"}), task=TASK)
    with pytest.raises(ValueError, match="must be in the same order"):
        read.predict(frame[list("bacde")], task=TASK)
    with pytest.raises(ValueError, match="4 features"):
        read.predict(X[:, :4], task=TASK)
    # a fit is one as any other
    read.fit(X, Z, task=TASK)
    assert not hasattr(read, "feature_names_in_")
    read.fit(frame, Z, task=TASK)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        read.predict(X, task=TASK)
