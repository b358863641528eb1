"""A problem as one file: the same bytes back, and nothing but a clear error from a file that is something else."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cli_helpers import CommandLine, regression_csv
from sklearn.base import clone

import tasksieve as ts
from tasksieve.checks.estimator_data import rows_for
from tasksieve.checks.registry import ESTIMATORS


def same(a: Any, b: Any) -> bool:
    """Type, shape, order and bytes."""
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if sp.issparse(a):
        parts = ("data", "indices", "indptr")
        return type(a) is type(b) and a.shape == b.shape and all(same(getattr(a, p), getattr(b, p)) for p in parts)
    if isinstance(a, pd.DataFrame):
        return isinstance(b, pd.DataFrame) and a.equals(b)
    if isinstance(a, np.ndarray) and a.dtype == object:
        return a.tolist() == b.tolist() and b.dtype == object
    return (
        isinstance(b, np.ndarray)
        and (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
        and a.flags.f_contiguous == b.flags.f_contiguous
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_comes_back_with_its_parameters(name: str, tmp_path: Path) -> None:
    model, X = ESTIMATORS[name], np.arange(12.0).reshape(6, 2)
    ts.save_problem(tmp_path / "p.npz", model, X, X[:, 0])
    found = ts.load_problem(tmp_path / "p.npz")
    assert type(found.model) is type(model)
    assert repr(found.model.get_params()) == repr(clone(model).get_params())


def test_the_same_bytes_and_the_same_fit(tmp_path: Path) -> None:
    rows = rows_for(ts.MultiTaskLasso(), True)
    X, y, task = rows.X, rows.y, rows.task
    weight = np.linspace(0.0, 1.0, len(y))
    words = np.array(["a", "b", None], dtype=object)[np.arange(len(y)) % 3]
    for data, labels, given in (
        (X, y, {"task": task, "sample_weight": weight, "offset": weight}),
        (np.asfortranarray(X, dtype=np.float32), y, {"task": task.astype(str)}),
        (X.astype(np.int8), y, {"task": task, "sample_weight": 2.0}),
        (sp.csc_array(X), y, {"task": task}),
        (sp.csr_matrix(X), y, {"task": task}),
        (pd.DataFrame(X, columns=list("abcdefg")), y, {"task": task}),
        (*rows.as_list(), {}),
        (X, words, {}),
    ):
        file = tmp_path / "p.npz"
        ts.save_problem(file, ts.MultiTaskLasso(0.1), data, labels, **given)
        found = ts.load_problem(file)
        assert same(data, found.X)
        assert same(labels, found.y)
        assert set(found.arguments) == set(given)
    ts.save_problem(file, ts.MultiTaskLasso(0.1), X, y, task=task, sample_weight=weight)
    first = ts.MultiTaskLasso(0.1).fit(X, y, task=task, sample_weight=weight)
    assert ts.load_problem(file).fit().coef_.tobytes() == first.coef_.tobytes()


def test_members_graphs_and_weights_by_name(tmp_path: Path) -> None:
    X = np.arange(12.0).reshape(6, 2)
    penalty = ts.penalties.Groups({"x": [0], "y": [1]}, "entries", mix=0.3)
    model = ts.MultiTaskRegressor(
        ts.losses.Huber(0.7), penalty, alpha=0.1, task_weights={"a": 2.0}, feature_weights=np.array([1.0, 0.5])
    )
    ts.save_problem(tmp_path / "p.npz", model, X, X[:, 0], task=list("aabbab"))
    found = ts.load_problem(tmp_path / "p.npz").model
    assert repr(found.loss) == repr(model.loss)
    assert repr(found.penalty) == repr(model.penalty)
    assert found.task_weights == {"a": 2.0}
    machine = ts.GraphSVC([[0, 1], [1, 0]], hasher=ts.WeightedDegreeHasher())
    ts.save_problem(tmp_path / "p.npz", machine, ["ACGT", "TTTT"], [0, 1], task=[0, 1])
    found = ts.load_problem(tmp_path / "p.npz")
    assert found.X == ["ACGT", "TTTT"]
    assert repr(found.model) == repr(machine)


class Mine(ts.losses.Huber):
    """A loss outside of the library."""


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    X = np.zeros((4, 2))
    for model, data, words in (
        (ts.MultiTaskRegressor(Mine()), X, "loss: a Mine cannot be written"),
        (ts.MultiTaskLassoCV(scoring=print), X, "scoring: a builtin"),
        (ts.MultiTaskLasso(), np.ma.masked_array(X), "X: masked"),
        (ts.MultiTaskLasso(), sp.coo_array(X), "X: a coo_array"),
        (object(), X, "model: object"),
    ):
        with pytest.raises(ValueError, match=words):
            ts.save_problem(tmp_path / "p.npz", model, data, X[:, 0])


# --- hostile files --------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    X = np.arange(12.0).reshape(6, 2)
    ts.save_problem(tmp_path / "p.npz", ts.MultiTaskLasso(0.1), sp.csr_array(X), X[:, 0])
    return tmp_path / "p.npz"


def rewrite(file: Path, change: Any, arrays: dict[str, np.ndarray] | None = None) -> None:
    with np.load(file) as found:
        content = {name: found[name] for name in found.files}
    header = json.loads(content["problem"].tobytes())
    change(header)
    content["problem"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(file, **{**content, **(arrays or {})})


HOSTILE = {
    "another model": lambda h: h.update(model="os.system"),
    "a model that is none": lambda h: h.update(model="WeightedDegreeHasher"),
    "a newer version": lambda h: h.update(version=99),
    "another format": lambda h: h.update(format="pickle"),
    "a parameter that is none": lambda h: h["parameters"].update(nothing=1),
    "a member that is none": lambda h: h["parameters"].update(alpha={"member": "Popen", "parameters": {}}),
    "an array that is not there": lambda h: h.update(X={"array": "nothing"}),
    "a kind that is none": lambda h: h.update(X={"pickle": "x"}),
    "an argument that is none": lambda h: h["arguments"].update(groups=None),
    "a sparse matrix of lies": lambda h: h["X"].update(shape=[1 << 40, 2]),
    "another kind of matrix": lambda h: h["X"].update(sparse="_data_matrix"),
    "nothing": lambda h: h.clear(),
    "a deep nest": lambda h: h.update(y=_nest(200)),
}


def _nest(depth: int) -> Any:
    return {"list": [_nest(depth - 1)]} if depth else 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_refused(file: Path, name: str) -> None:
    rewrite(file, HOSTILE[name])
    with pytest.raises(ValueError, match="problem file"):
        ts.load_problem(file)


def test_truncated_changed_and_swollen_files(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="npz"):
            ts.load_problem(file)
    np.savez_compressed(file, problem=np.zeros(100_000_000, dtype=np.uint8))  # small on disk
    with pytest.raises(ValueError, match=r"compressed|larger than the file"):
        ts.load_problem(file)
    objects = io.BytesIO()
    np.save(objects, np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("problem.npy", objects.getvalue())
    with pytest.raises(ValueError, match="never loaded"):
        ts.load_problem(file)
    with pytest.raises(ValueError, match="there is no file"):
        ts.load_problem(tmp_path / "nothing.npz")


def test_bit_flips_never_crash(file: Path) -> None:
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    for _ in range(150):
        changed = bytearray(whole)
        changed[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(changed))
        try:
            ts.load_problem(file)
        except ValueError:
            continue


def test_the_command_line_saves_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli, table = CommandLine(capsys), regression_csv(tmp_path / "data.csv")
    words = ("--target", "y", "--task", "region", "--alpha", "0.1", "--out", tmp_path / "run", "--no-report", "--quiet")
    cli("fit", table, *words, "--save-problem", tmp_path / "p.npz")
    found = ts.load_problem(tmp_path / "p.npz").fit()
    saved = ts.verify.read_certificate(tmp_path / "run" / "certificate.npz")
    assert found.objective_ == pytest.approx(saved.arrays["objective"][0], rel=1e-12)
