"""`checkpoint`: a cross-validation that is interrupted continues where it was, and ends with the same bits."""

from __future__ import annotations

import base64
import hashlib
import json

import numpy as np
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.fitted import checkpoint as module
from tasksieve.fitted.checkpoint import HEADER, FolderStore

GRID = [1.0, 0.3, 0.1]
RNG = np.random.default_rng(0)
X, TASK = RNG.standard_normal((60, 8)), np.tile(["a", "b", "c"], 20)
Y = X[:, 0] * (1.0 + (TASK == "b")) + 0.1 * RNG.standard_normal(60)


class Heard:
    """The folds that are solved; Ctrl-C in the middle of one of them."""

    def __init__(self, stop_in=None):
        self.stop_in = stop_in
        self.folds = []

    def __call__(self, progress):
        fold = progress.label.partition(", ")[2]
        if fold == self.stop_in and progress.done == 2:
            raise KeyboardInterrupt
        if progress.done == progress.total and fold != "all rows":
            self.folds.append(fold)


def solved(folder, model=None, X=X, Y=Y, **rows):
    """The folds that a fit within a checkpoint has to solve, and the model."""
    heard = Heard()
    model = ts.MultiTaskLassoCV(GRID, cv=3) if model is None else model
    rows = rows or {"task": TASK}
    with ts.watch(heard), ts.checkpoint(folder):
        model.fit(X, Y, **rows)
    return sorted(heard.folds), model


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskLassoCV(GRID),
        ts.MultiTaskElasticNetCV(GRID, l1_ratio=[0.5, 0.9]),
        ts.CalibratedMultiTaskLassoCV(GRID),
    ],
    ids=lambda model: type(model).__name__,
)
def test_interrupted_and_resumed(tmp_path, model, n_jobs):
    model.set_params(cv=4, n_jobs=n_jobs)
    whole = {name: np.copy(getattr(model.fit(X, Y, task=TASK), name)) for name in ("cv_scores_", "coef_", "alpha_")}
    heard = Heard("fold 3")
    with pytest.raises(KeyboardInterrupt), ts.watch(heard), ts.checkpoint(tmp_path):
        model.fit(X, Y, task=TASK)
    again, model = solved(tmp_path, model)
    n_folds = np.size(whole["cv_scores_"]) // len(GRID)
    if n_jobs is None:
        assert len(heard.folds) == 2
        assert len(again) == n_folds - 2
    else:  # a fold that was half done in another thread when the fit was stopped may have been kept, too
        assert len(again) < n_folds
    for name, value in whole.items():
        np.testing.assert_array_equal(getattr(model, name), value)
    assert solved(tmp_path, model)[0] == []


def test_folds_of_anything_else_are_not_used(tmp_path):
    """Whatever changes the numbers, or might: every fold is solved again."""
    folds = ["fold 1", "fold 2", "fold 3"]
    assert solved(tmp_path)[0] == folds
    assert solved(tmp_path)[0] == []
    assert solved(tmp_path, ts.MultiTaskLassoCV(GRID, cv=3, verbose=0))[0] == []
    one = X.copy()
    one[17, 3] += 1e-9
    other = Y.copy()
    other[5] += 1e-9
    for options, data in (
        ({}, {"X": one}),
        ({}, {"X": X[:, ::-1]}),
        ({}, {"Y": other}),
        ({}, {"task": np.tile(["a", "b"], 30)}),
        ({}, {"task": TASK, "sample_weight": np.linspace(0.5, 1, 60)}),
        ({"alphas": [1.0, 0.3, 0.2]}, {}),
        ({"cv": ts.TaskKFold(3, shuffle=True, random_state=1)}, {}),
        ({"fold_tol": 1e-5}, {}),
            ({"tol": 1e-3}, {}),
        ({"feature_weights": np.arange(1.0, 9.0)}, {}),
        ({"task_weights": "balanced"}, {"task": np.repeat(["a", "b", "c"], [10, 20, 30])}),
        ({"fit_intercept": False}, {}),
    ):
        model = ts.MultiTaskLassoCV(GRID, cv=3).set_params(**options)
        assert solved(tmp_path, model, **data)[0] == folds, options or list(data)
        assert solved(tmp_path, model, **data)[0] == []  # several fits share a folder
    assert solved(tmp_path, ts.MultiTaskOWLCV(alphas=GRID, cv=3))[0] == folds
    assert solved(tmp_path)[0] == []


def test_another_version_computes_anew(tmp_path, monkeypatch):
    solved(tmp_path)
    known = module.versions()
    monkeypatch.setattr(module, "versions", lambda: {**known, "numpy": "9"})
    assert len(solved(tmp_path)[0]) == 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["sparse", "list", "shared", "float32", "map"])
def test_every_form_of_x_is_known_again(tmp_path, form):
    def forms(X):
        if form == "sparse":
            return scipy.sparse.csc_array(np.where(np.abs(X) > 1, X, 0.0)), Y, {"task": TASK}
        if form == "list":
            return [X[:30], X[30:]], [Y[:30], Y[30:]], {"sample_weight": None}
        if form == "shared":
            return X, np.column_stack([Y, -Y]), {"sample_weight": None}
        if form == "map":
            np.save(tmp_path / "X.npy", X)
            return np.load(tmp_path / "X.npy", mmap_mode="r"), Y, {"task": TASK}
        return X.astype(np.float32), Y, {"task": TASK}

    other = X.copy()
    other[3] *= 2.0
    for matrix, n_solved in ((X, 3), (X, 0), (other, 3)):
        rows, labels, more = forms(matrix)
        assert len(solved(tmp_path / "folds", None, rows, labels, **more)[0]) == n_solved


def test_a_store_of_ones_own():
    class Memory(dict):
        def recall(self, name):
            return self.get(name)

        def keep(self, name, arrays):
            self[name] = arrays

    store = Memory()
    assert isinstance(store, ts.FoldStore)
    assert len(solved(store)[0]) == 3
    assert [sorted(arrays) for arrays in store.values()] == [
        ["ends", "features", "intercept", "open", "rows", "scores"]
    ] * 3
    assert all(name.startswith("fold-0-") for name in store)
    assert solved(store)[0] == []
    with pytest.raises(TypeError, match="store must be a folder"), ts.checkpoint(3):
        pass


def test_files_are_used_only_if_they_are_whole_and_ours(tmp_path):
    store = FolderStore(tmp_path / "folds")
    arrays = {"scores": np.array([1.0, np.pi, np.nan]), "open": np.array(2), "few": np.zeros((0, 3), np.int8)}
    assert store.recall("fold-0-0") is None
    store.keep("fold-0-0", arrays)
    found = store.recall("fold-0-0")
    assert found is not None
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
    (file,) = (tmp_path / "folds").iterdir()
    good = file.read_bytes()
    for k in range(0, len(good), 7):
        file.write_bytes(good[:k])
        assert store.recall("fold-0-0") is None
        file.write_bytes(good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :])
        assert store.recall("fold-0-0") is None
    packed = {"dtype": "<f8", "shape": [1], "content": base64.b64encode(bytes(8)).decode()}
    types, shapes = [{"dtype": "O"}, {"dtype": "<f8,<f8"}], [{"shape": [2**40]}, {"shape": 1.5}]
    for change in (*types, *shapes, {"content": "?"}, {"x": 1}):
        write(file, {"scores": {**packed, **change}})
        assert store.recall("fold-0-0") is None
    for content in ([], "scores", 3, {"scores": None}, {"scores": []}):
        write(file, content)
        assert store.recall("fold-0-0") is None
    write(file, {"scores": packed})
    assert store.recall("fold-0-0") == {"scores": 0.0}
    with pytest.raises(ValueError, match="name:"):
        store.recall("../../x")
    with pytest.raises(TypeError, match="numbers"):
        store.keep("fold-0-0", {"scores": np.array([object()])})


def write(file, content):
    payload = json.dumps(content).encode()
    file.write_bytes(HEADER + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)


def test_what_cannot_be_pickled_cannot_be_known_again(tmp_path):
    class Weights(np.ndarray):
        def __reduce__(self):
            raise TypeError("not me")

    model = ts.MultiTaskLassoCV(GRID, cv=3, feature_weights=np.ones(8).view(Weights))
    with pytest.raises(ValueError, match="checkpoint: a parameter"):
        solved(tmp_path, model)
