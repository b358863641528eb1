"""Saved online models: those of version 0.1, and files that are not what they claim to be."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tasksieve as ts

FILES = Path(__file__).parent / "files"


def rows():
    rng = np.random.default_rng(0)
    X = 0.5 * rng.standard_normal((120, 4))
    task = np.array(["a", "b", "c"])[rng.integers(0, 3, 120)]
    return X, 4.0 * X[:, 0] + rng.standard_normal(120), task


# --- version 0.1 -------------------------------------------------------------------------------------------------

# What version 0.1 printed for the model in the file, and after the last 20 rows.
SAVED = [
    [2.649108767374756, 0.22136668757884093, 0.4352111004113538, 0.33138232839563647],
    [2.081923412056495, -0.10576986662825294, -0.10844156248932167, -0.25587452797961885],
    [1.4816474408184963, 0.15694527579639297, 0.008146378115950972, -0.6840404270268943],
]
WENT_ON = [
    [2.4501359378882617, 0.09505981810678163, 0.16020216354456385, 0.42664896830548354],
    [1.948747940958351, -0.044588165097286775, 0.015954681605003445, -0.10109354844416106],
    [2.0765085277583695, 0.11238281153325225, -0.16476790184758405, -0.5589348649120686],
]


def test_a_regressor_of_version_0_1_goes_on(tmp_path):
    X, y, task = rows()
    model = ts.OnlineMultiTaskRegressor.load(FILES / "regressor-0.1.npz")
    assert model.gamma == 1.0  # its default then, which it keeps
    np.testing.assert_allclose(model.coef_, SAVED, rtol=1e-12)
    assert np.isnan(model.progressive_loss_)  # it kept no losses
    model.partial_fit(X[100:], y[100:], task=task[100:])
    np.testing.assert_allclose(model.coef_, WENT_ON, rtol=1e-12)
    assert np.isfinite(model.progressive_loss_)
    assert model.progress().weight.sum() == 20
    model.save(tmp_path / "again.npz")
    again = ts.OnlineMultiTaskRegressor.load(tmp_path / "again.npz")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.progressive_loss_ == model.progressive_loss_


def test_a_classifier_of_version_0_1_goes_on():
    model = ts.OnlineMultiTaskClassifier.load(FILES / "classifier-0.1.npz")
    assert model.classes_.tolist() == ["down", "up"]
    assert sorted(model.feature_index_) == ["x0", "x1", "x2", "x3"]
    np.testing.assert_allclose(
        model.coef_[0], [0.4482564222186013, 0.06905889804050877, 0.14490634379271555, -0.16320662693790308], rtol=1e-12
    )
    model.learn_one({"x0": 1.0, "new": 2.0}, "up", task="d")
    assert model.coef_.shape == (4, 5)


# --- untrusted files -------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    X, y, task = rows()
    model = ts.OnlineMultiTaskClassifier(0.01, missing="rounds")
    for i in range(50):
        model.learn_one({f"x{j}": X[i, j] for j in range(4)}, "up" if y[i] > 0 else "down", task=str(task[i]))
    path = tmp_path / "model.npz"
    model.save(path)
    with np.load(path) as content:
        return path, dict(content)


def write(path, arrays, **changes):
    np.savez(path, **{name: array for name, array in {**arrays, **changes}.items() if array is not None})


def refused(path, words="", cls=ts.OnlineMultiTaskClassifier):
    with pytest.raises(ValueError, match=words) as caught:
        cls.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_missing_or_of_another_type_is_named(saved):
    path, arrays = saved
    for name in arrays:
        if name.startswith("state_seen") or name == "state_automatic":
            continue  # version 0.1 had none
        write(path, arrays, **{name: None})
        refused(path, name.removeprefix("state_") if name != "meta" else "not a saved online model")
    for name in (name for name in arrays if name.startswith("state_")):
        short = name.removeprefix("state_")
        for changed in (arrays[name].astype(np.float32), arrays[name].astype(str), arrays[name].reshape(1, -1)):
            write(path, arrays, **{name: changed})
            refused(path, short)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(saved, bad):
    path, arrays = saved
    for name, array in arrays.items():
        if array.dtype == np.float64 and array.size:
            changed = array.copy()
            changed[0] = bad
            write(path, arrays, **{name: changed})
            refused(path, f"{name.removeprefix('state_')!r} holds NaN or infinity at position 0")


def test_sizes_are_not_believed(saved):
    path, arrays = saved
    for position in range(2):
        for value in (-1, 2, 2**31, 2**40, 2**62):
            shape = arrays["state_shape"].copy()
            shape[position] = value
            write(path, arrays, state_shape=shape)
            tracemalloc.start()
            refused(path, "declared, which the arrays do not bear out")
            assert tracemalloc.get_traced_memory()[1] < 2**22
            tracemalloc.stop()
    # a compressed file can be a thousand times smaller than what is in it
    np.savez_compressed(path, **{**arrays, "state_sums": np.zeros(2**21)})
    assert path.stat().st_size < 2**16
    refused(path, "compressed")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 3}, "format 3"),
        ({"format": None}, "format None"),
        ({"class": "OnlineMultiTaskRegressor"}, "holds a OnlineMultiTaskRegressor"),
        ({"labels": [["str", "a"]]}, "1 task labels for 3 tasks"),
        ({"labels": [["str", "a"]] * 3}, "same twice"),
        ({"labels": [["eval", "a"]] * 3}, "not a type and a value"),
        ({"labels": 7}, "iterable"),
        ({"n_features": 10**12}, "features declared"),
        ({"n_features": -1}, "n_features"),
        ({"places": [0, 1, 2, 9]}, "place"),
        ({"places": [0]}, "no place"),
        ({"averages": "yes"}, "averages"),
        ({"named": 1}, "named"),
        ({"stream_rows": -5}, "stream_rows"),
        ({"params": {"alpga": 1.0}}, "alpga"),
        ({"params": {"alpha": [1.0]}}, "alpha"),
        ({"params": {"alpha": -1.0}}, "alpha"),
        ({"params": []}, "parameters"),
        ({"classes": {"all": [], "of_task": [], "signs": [[]]}}, "more tasks"),
        ({"classes": {"all": [], "of_task": [[["str", "a"]]], "signs": [[]]}}, "unknown ones"),
        ({"classes": {"all": [["str", "a"]], "of_task": [[["str", "a"]]], "signs": [[[["str", "a"], 7]]]}}, "neither"),
    ],
)
def test_descriptions_that_do_not_fit(saved, change, words):
    path, arrays = saved
    meta = {**json.loads(arrays["meta"].tobytes()), **change}
    write(path, arrays, meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8))
    refused(path, words)


def test_files_that_are_none(saved, tmp_path):
    path, arrays = saved
    for content in (b"", b"PK", b"no model", path.read_bytes()[:200]):
        (tmp_path / "other").write_bytes(content)
        refused(tmp_path / "other", "npz")
    write(path, arrays, meta=np.frombuffer(b"{not json", dtype=np.uint8))
    refused(path, "no usable model")
    with pytest.raises(FileNotFoundError):
        ts.OnlineMultiTaskRegressor.load(tmp_path / "none.npz")
    np.savez(path, **arrays, extra=np.array([print], dtype=object))  # a pickle
    refused(path, "pickle")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../meta.npy", b"")
    refused(path, "unexpected entry")
