"""Run folders: files that are never half written, and models that run no code when they are loaded."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
import shutil
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.atomic import write_atomically
from tasksieve.fitted.restore import set_state
from tasksieve.report.rows import row_labels, rows_are_classes
from tasksieve.runs import RunError, RunFolder, SavedModel, load_model, save_model
from tasksieve.runs.arrays import pack_names
from tasksieve.tables import Encoding

# --- atomic files, locks, manifests ------------------------------------------------------------------------------


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_atomically(file, lambda out: out.write(b"old"))

    def fail(out: Any) -> None:
        out.write(b"ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_atomically(file, fail)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_has_the_mode_of_any_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask is the whole process's: other threads would make files that anybody may write while it is changed."""
    (tmp_path / "plain").write_bytes(b"")
    monkeypatch.setattr("os.umask", None)
    write_atomically(tmp_path / "file", lambda out: out.write(b"new"))
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "plain"]


def test_a_lock_is_held_once_and_leftovers_are_swept(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder:
        (folder / ".model.npz.abc.part").write_bytes(b"half")
        with pytest.raises(RunError, match="in use"):
            RunFolder(tmp_path / "run").lock()
    with folder:
        assert not (folder / ".model.npz.abc.part").exists()


def test_the_manifest_notices_changes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(RunError, match="no run folder"):
        folder.verify()
    with folder:
        with pytest.raises(RunError, match="not a finished run"):
            folder.verify()
        folder.write_json("config.json", {"a": 1})
        folder.finish()
        folder.verify()
        folder.write_json("config.json", {"a": 2})
        with pytest.raises(RunError, match="has changed"):
            folder.verify()
        (folder / "config.json").unlink()
        with pytest.raises(RunError, match="missing"):
            folder.verify()


def test_manifests_cannot_point_elsewhere(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder:
        folder.write_json("manifest.json", {"format": 1, "files": {"../../etc/passwd": {"sha256": ""}}})
        with pytest.raises(RunError, match="not a manifest"):
            folder.verify()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b"{",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
        b"null",
    ],
    ids=["empty", "list", "open", "bytes", "deep list", "deep object", "long number", "null"],
)
def test_json_bombs_are_errors(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(RunError, match="not readable"):
        RunFolder(tmp_path).read_json("config.json")


# --- models ------------------------------------------------------------------------------------------------------


def fitted(kind: str) -> tuple[Any, np.ndarray, np.ndarray | None, str]:
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((60, 5)), np.repeat(["ä", "b", "c"], 20)
    y = X[:, 0] * np.where(task == "b", 2.0, 1.0) + 0.1 * rng.standard_normal(60)
    if kind == "lasso":
        return ts.MultiTaskLasso(alpha=0.1).fit(X, y, task=task), X, task, "lasso"
    if kind == "single":
        return ts.MultiTaskLasso(alpha=0.1, feature_weights=np.ones(5)).fit(X, y), X, None, "lasso"
    if kind == "logistic":
        return (
            ts.MultiTaskLogisticRegression(alpha=0.05).fit(X, np.sign(y).astype(int), task=task),
            X,
            task,
            "logistic",
        )
    if kind == "pairs":
        words = np.where(y > 0, "high", "low") + task.astype(object)
        return (
            ts.MultiTaskLogisticRegression(alpha=0.05).fit(X, words.astype(str), task=task),
            X,
            task,
            "logistic",
        )
    if kind == "many classes":
        model = ts.MultiTaskLogisticRegression(alpha=0.05, class_weight={2: 2.0, 0: 0.5})
        return model.fit(X, np.digitize(y, [-0.5, 0.5]), task=task), X, task, "logistic"
    if kind == "classes of each task":
        words = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])] + task.astype(object)
        words[task == "b"] = np.where(y > 0, "yes", "no")[task == "b"]
        return ts.MultiTaskLogisticRegression(alpha=0.05).fit(X, words.astype(str), task=task), X, task, "logistic"
    if kind == "several classes":
        model = ts.GraphSVC(ts.graph.complete_graph(3), graph_tasks=["ä", "b", "c"])
        return model.fit(X, rng.integers(0, 3, 60), task=task), X, task, "graph-svm"
    return ts.GraphSVR(ts.graph.complete_graph(3)).fit(X, y, task=task), X, task, "graph-svm"


def saved_run(folder: Path, kind: str = "lasso") -> tuple[RunFolder, Any, np.ndarray, np.ndarray | None]:
    model, X, task, name = fitted(kind)
    encoding = Encoding([(word, None) for word in ["a", "ß", "c,d", 'e"f', ""]])
    run = RunFolder(folder)
    run.path.mkdir(exist_ok=True)
    save_model(run, SavedModel(model, name, encoding, np.arange(5.0), ["y"], "site", {"chosen": 1}))
    return run, model, X, task


@pytest.mark.parametrize(
    "kind",
    [
        "lasso",
        "single",
        "logistic",
        "pairs",
        "many classes",
        "classes of each task",
        "several classes",
        "regression on a graph",
    ],
)
def test_models_come_back_as_they_were(tmp_path: Path, kind: str) -> None:
    run, model, X, task = saved_run(tmp_path / "run", kind)
    saved = load_model(run)
    again = saved.estimator
    assert type(again) is type(model)
    keywords = {} if task is None else {"task": task}
    np.testing.assert_array_equal(again.predict(X, **keywords), model.predict(X, **keywords))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    same_coefficients(again, model)
    assert (again.objective_, again.dual_gap_, again.n_iter_) == (
        model.objective_,
        model.dual_gap_,
        model.n_iter_,
    )
    assert saved.feature_names == ["a", "ß", "c,d", 'e"f', ""]
    np.testing.assert_array_equal(saved.fill, np.arange(5.0))
    assert (saved.targets, saved.task, saved.facts) == (["y"], "site", {"chosen": 1})
    save_model(run, saved)  # and once more: nothing is lost
    same_coefficients(load_model(run).estimator, model)
    if kind == "many classes":
        assert again.class_weight == {2: 2.0, 0: 0.5}


def same_coefficients(again: Any, model: Any) -> None:
    assert isinstance(again.coef_, list) == isinstance(model.coef_, list)
    for own, other in zip(again.coef_, model.coef_, strict=True):
        np.testing.assert_array_equal(own, other)
    for own, other in zip(again.intercept_, model.intercept_, strict=True):
        np.testing.assert_array_equal(own, other)


def test_models_remember_that_they_need_an_offset(tmp_path: Path) -> None:
    run, model, X, task = saved_run(tmp_path / "run")
    y = X[:, 0] + np.arange(60.0)
    model.fit(X, y, task=task, offset=np.arange(60.0))
    save_model(run, SavedModel(model, "lasso", Encoding([(word, None) for word in "abcde"]), None, ["y"], "site", {}))
    again = load_model(run).estimator
    with pytest.raises(ValueError, match="fitted with an offset"):
        again.predict(X, task=task)
    np.testing.assert_array_equal(again.predict(X, task=task, offset=1.0), model.predict(X, task=task, offset=1.0))


def test_models_remember_their_quality(tmp_path: Path) -> None:
    run, _, X, task = saved_run(tmp_path / "run")
    y = np.where(np.asarray(task) == "c", 1.0, X[:, 0])  # R² of constant labels is not known
    chosen = ts.MultiTaskLassoCV(n_alphas=4).fit(X, y, task=task)
    model = set_state(chosen.path_.model(2), cv_quality=chosen.cv_quality_)
    save_model(run, SavedModel(model, "lasso", Encoding([(word, None) for word in "abcde"]), None, ["y"], "site", {}))
    again, found = load_model(run).estimator.cv_quality_, model.cv_quality_
    for name in ("tasks", "values", "errors", "overall", "overall_errors", "n_rows", "n_units"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert repr(again) == repr(found)
    assert np.isnan(again.values).any()
    content = run.read_json("model.json")
    for broken in ({"values": [1.0]}, {"errors": ["one"] * 6}, {"measures": [1, 2]}, {"tasks": 1}, {"n_rows": [1]}):
        run.write_json("model.json", {**content, "cv_quality": {**content["cv_quality"], **broken}})
        with pytest.raises(RunError):
            load_model(run)


@pytest.mark.parametrize("name", ["coef_data", "intercept", "fill"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(tmp_path: Path, name: str, bad: float) -> None:
    run, *_ = saved_run(tmp_path / "run")
    with np.load(run / "model.npz") as file:
        arrays = dict(file)
    arrays[name][1] = bad
    np.savez(run / "model.npz", **arrays)
    with pytest.raises(RunError, match=r"model\.npz.*NaN or infinity at position 1"):
        load_model(run)


def test_a_small_file_makes_no_large_model(tmp_path: Path) -> None:
    """Sparse coefficients of many features and tasks: dense, they would be thousands of times the file."""
    run, *_ = saved_run(tmp_path / "run")
    wide, tasks = 20_000, 2_000
    names = pack_names([""] * wide)
    with np.load(run / "model.npz") as file:
        arrays = dict(file)
    arrays.update(
        coef_shape=np.array([tasks, wide]),
        coef_data=np.ones(1),
        coef_indices=np.zeros(1, dtype=np.int64),
        coef_indptr=np.concatenate([[0], np.ones(tasks, dtype=np.int64)]),
        intercept=np.zeros(tasks),
        feature_names=names[0],
        feature_ends=names[1],
        fill=np.zeros(wide),
    )
    np.savez(run / "model.npz", **arrays)
    content = run.read_json("model.json")
    content["tasks"] = [["int", t] for t in range(tasks)]
    run.write_json("model.json", content)
    tracemalloc.start()
    with pytest.raises(RunError, match=r"305 MiB.*--max-memory"):
        load_model(run)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()
    with pytest.raises(RunError, match="more than is allocated for a file"):
        load_model(run, max_bytes=2**28)
    with pytest.raises(RunError, match="features") as caught:  # allowed, and then refused for its columns
        load_model(run, max_bytes=2**30)
    assert "more than is made" not in str(caught.value)


class Evil:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (Path.touch, (self.file,))


def test_a_crafted_model_executes_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    run, *_ = saved_run(tmp_path / "run")
    objects = np.empty(1, dtype=object)
    objects[0] = Evil(mark)
    with np.load(run / "model.npz") as file:
        arrays = dict(file)
    for name in arrays:
        np.savez(run / "model.npz", **{**arrays, name: objects})
        with pytest.raises(RunError):
            load_model(run)
    with zipfile.ZipFile(run / "model.npz", "w") as out:
        out.writestr("coef_data.npy", pickle.dumps(Evil(mark)))
    with pytest.raises(RunError):
        load_model(run)
    (run / "model.npz").write_bytes(pickle.dumps(Evil(mark)))
    with pytest.raises(RunError):
        load_model(run)
    assert not mark.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change",
    [
        {"class": "system"},
        {"class": "MultiTaskLogisticRegression"},
        {"model": "os"},
        {"model": "graph-svm"},
        {"model": "owl"},
        {"format": 99},
        {"params": {"alpha": {"labels": [["eval", "1"]]}}},
        {"params": {"alpha": [1]}},
        {"params": {"__class__": 1}},
        {"params": {"self": 1}},
        {"params": 3},
        {"tasks": [["str", "a"]]},
        {"tasks": [["__import__", "os"]] * 3},
        {"tasks": "abc"},
        {"tasks": None},
        {"classes": {"all": 5}},
        {"targets": [1]},
        {"task": ["a"]},
        {"encoding": {"columns": [["../x", None]]}},
        {"encoding": {"columns": [[1, 2]]}},
        {"encoding": 5},
        {"objective": "x"},
        {"n_iter": None},
        {"facts": 1},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_changed_description_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    run, *_ = saved_run(tmp_path / "run")
    content = {**run.read_json("model.json"), **change}
    (run / "model.json").write_text(json.dumps(content))
    with pytest.raises(RunError):
        load_model(run)


def test_changed_arrays_are_refused(tmp_path: Path) -> None:
    run, *_ = saved_run(tmp_path / "run")
    with np.load(run / "model.npz") as file:
        arrays = dict(file)
    huge = np.array([2**40, 2**40])
    for name, value in [
        ("coef_shape", huge),
        ("coef_shape", np.array([3, -5])),
        ("coef_shape", np.array([3, 5, 1])),
        ("coef_indices", arrays["coef_indices"] + 100),
        ("coef_indices", arrays["coef_indices"].astype(float)),
        ("coef_indptr", arrays["coef_indptr"][::-1]),
        ("coef_indptr", np.array([0, 2**60, 1, 1])),
        ("coef_data", arrays["coef_data"].astype(str)),
        ("intercept", arrays["intercept"][:1]),
        ("feature_ends", arrays["feature_ends"][::-1]),
        ("feature_ends", arrays["feature_ends"] + 1),
        ("feature_names", arrays["feature_names"][:-1]),
        ("fill", np.zeros(3)),
    ]:
        np.savez(run / "model.npz", **{**arrays, name: value})
        with pytest.raises(RunError):
            load_model(run)


def test_fuzzed_models_give_clean_errors(tmp_path: Path) -> None:
    """Bits turned, files cut, random bytes: a `RunError`, or (where nothing that matters was hit) a model."""
    run, *_ = saved_run(tmp_path / "run")
    draw = random.Random(0)
    for name in ("model.npz", "model.json"):
        good = (run / name).read_bytes()
        for trial in range(250):
            spoilt = bytearray(good)
            if trial % 5 == 0:
                spoilt = spoilt[: draw.randrange(len(spoilt))]
            elif trial % 5 == 1:
                spoilt = bytearray(draw.randbytes(draw.randrange(400)))
            else:
                for _ in range(draw.choice([1, 2, 10])):
                    spoilt[draw.randrange(len(spoilt))] = draw.randrange(256)
            (run / name).write_bytes(bytes(spoilt))
            with contextlib.suppress(RunError):
                load_model(run)
        (run / name).write_bytes(good)
    load_model(run)


def test_missing_files_are_named(tmp_path: Path) -> None:
    run, *_ = saved_run(tmp_path / "run")
    for name in ("model.json", "model.npz"):
        other = tmp_path / "other"
        shutil.copytree(run.path, other)
        (other / name).unlink()
        with pytest.raises(RunError, match=name):
            load_model(RunFolder(other))
        shutil.rmtree(other)


# --- names of the rows of coefficients ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "tasks", "classes", "targets", "by_class", "labels"),
    [
        ((2, 5), ["0", "1"], ["0", "1"], ["y"], False, ["0", "1"]),  # tasks that are called like the classes
        ((3, 5), None, ["a", "b", "c"], ["y"], True, ["a", "b", "c"]),
        ((3, 5), ["a", "b", "c"], ["a", "b", "c"], ["y"], True, ["a", "b", "c"]),  # a multinomial model
        ((1, 5), ["0"], ["a", "b"], ["y"], False, ["y"]),
        ((2, 5), ["0", "1"], None, ["u", "v"], False, ["u", "v"]),
        ((2, 1, 5), ["0"], ["a", "b"], ["y"], True, ["a", "b"]),
        ((2, 2, 5), ["s", "t"], ["a", "b"], ["y"], False, ["a / s", "a / t", "b / s", "b / t"]),
    ],
)
def test_rows_of_coefficients_are_tasks_targets_or_classes(shape, tasks, classes, targets, by_class, labels):
    model = SimpleNamespace(coef_=np.zeros(shape), predict=lambda X, task=None: X)
    if by_class:
        model.predict = lambda X: X
    if tasks is not None:
        model.tasks_ = np.array(tasks)
    if classes is not None:
        model.classes_ = np.array(classes)
    assert rows_are_classes(model, targets) == by_class
    assert row_labels(model, targets) == labels
