"""Streams larger than memory: every format, checkpoints, resuming bit for bit, and a run that is killed."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

import tasksieve as ts


@pytest.fixture
def rows(rng):
    X = np.round(rng.standard_normal((1000, 5)) * (rng.random((1000, 5)) < 0.6), 3)
    task = rng.integers(0, 3, 1000)
    y = np.round(X[:, 0] * (task + 1.0) + 0.1 * rng.standard_normal(1000), 3)
    return X, y, task


def model(**params):
    return ts.OnlineMultiTaskRegressor(0.05, gamma=15.0, **params)


def test_files_equal_the_array(rows, tmp_path):
    X, y, task = rows
    expected = model().partial_fit(X, y, task=task)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(target=y, school=task)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "rows.csv.gz", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.csv.gz", "rows.parquet"):
        for chunk in (7, 1000, 5000):
            found = model().fit_stream(tmp_path / name, target="target", task="school", chunk_rows=chunk)
            assert np.array_equal(found.coef_, expected.coef_)
            assert found.feature_names_in_.tolist() == list("abcde")
    dump_svmlight_file(X, y, str(tmp_path / "rows.libsvm"), query_id=task, zero_based=False)
    sparse = model().partial_fit(scipy.sparse.csr_array(X), y, task=task)
    found = model().fit_stream(tmp_path / "rows.libsvm", task="qid", n_features=5, chunk_rows=13)
    np.testing.assert_allclose(found.coef_, sparse.coef_, atol=1e-12)
    chosen = model().fit_stream(
        tmp_path / "rows.parquet", target="target", task="school", features=["b", "a"]
    )
    assert chosen.n_features_in_ == 2


def test_iterators_of_chunks_and_of_rows(rows):
    X, y, task = rows
    expected = model().partial_fit(X, y, task=task)
    seen = []
    chunks = ((X[i : i + 50], y[i : i + 50], task[i : i + 50]) for i in range(0, 1000, 50))
    found = model().fit_stream(chunks, progress=lambda n, seconds: seen.append(n))
    assert np.array_equal(found.coef_, expected.coef_)
    assert seen == list(range(50, 1001, 50))
    single = ((dict(enumerate(x)), float(v), int(t)) for x, v, t in zip(X, y, task, strict=True))
    by_row = model().fit_stream(single)
    np.testing.assert_allclose(by_row.coef_, expected.coef_, atol=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("missing", ["per-task", "importance", "rounds"])
@pytest.mark.parametrize("penalty", ["l21", "l1+l21"])
def test_resume_bit_for_bit(rows, tmp_path, missing, penalty):
    X, y, task = rows
    params = {"missing": missing, "penalty": penalty, "l1": np.linspace(0.0, 0.5, 5)}

    def chunks(size):
        return ((X[i : i + size], y[i : i + size], task[i : i + size]) for i in range(0, 1000, size))

    whole = model(**params).fit_stream(chunks(100))
    path = tmp_path / "state.npz"
    first = model(**params).fit_stream(chunks(70), max_rows=420, checkpoint=path, checkpoint_every=100)
    assert first.n_rows_seen_ == 420
    second = model(**params).fit_stream(chunks(90), checkpoint=path, checkpoint_every=100)
    assert second.n_rows_seen_ == 1000
    assert np.array_equal(second.coef_, whole.coef_)
    assert np.array_equal(second.averaged_coef_, whole.averaged_coef_)
    again = model(**params).fit_stream(chunks(100), checkpoint=path)  # nothing is left to do
    assert np.array_equal(again.coef_, whole.coef_)
    assert again.n_rows_seen_ == 1000
    with pytest.raises(ValueError, match="other parameters"):
        model(**{**params, "l2": 1.0}).fit_stream(chunks(100), checkpoint=path)


def test_saved_classifier_goes_on(rows, tmp_path):
    X, y, task = rows
    labels, names = np.where(y > 0, "up", "down"), np.array(["u", "v", "w"])[task]
    whole = ts.OnlineMultiTaskClassifier(0.02, gamma=5.0)
    half = ts.OnlineMultiTaskClassifier(0.02, gamma=5.0)
    for i in range(1000):
        row = {f"x{j}": v for j, v in enumerate(X[i]) if v}
        whole.learn_one(row, labels[i], task=names[i])
        if i < 500:
            half.learn_one(row, labels[i], task=names[i])
    half.save(tmp_path / "half.npz")
    loaded = ts.OnlineMultiTaskClassifier.load(tmp_path / "half.npz")
    for i in range(500, 1000):
        loaded.learn_one({f"x{j}": v for j, v in enumerate(X[i]) if v}, labels[i], task=names[i])
    assert np.array_equal(loaded.coef_, whole.coef_)
    assert loaded.classes_.tolist() == ["down", "up"]
    assert loaded.tasks_.tolist() == whole.tasks_.tolist()
    assert loaded.feature_index_ == whole.feature_index_
    with pytest.raises(ValueError, match="holds a OnlineMultiTaskClassifier"):
        ts.OnlineMultiTaskRegressor.load(tmp_path / "half.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["half.npz"]


def test_a_failed_save_leaves_the_old_file(rows, tmp_path, monkeypatch):
    X, y, task = rows
    one = model().partial_fit(X, y, task=task)
    one.save(tmp_path / "state.npz")
    before = (tmp_path / "state.npz").read_bytes()

    def full(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        one.partial_fit(X, y, task=task).save(tmp_path / "state.npz")
    assert (tmp_path / "state.npz").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


KILLED = """
import os, signal, sys
import numpy as np
import tasksieve as ts

def chunks():
    rng = np.random.default_rng(0)
    for k in range(60):
        X = rng.standard_normal((100, 8))
        task = rng.integers(0, 4, 100)
        if k == 23 and sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        yield X, X[:, 0] * (task + 1.0), task

model = ts.OnlineMultiTaskRegressor(0.05, gamma=20.0)
model.fit_stream(chunks(), checkpoint=sys.argv[1], checkpoint_every=500)
np.save(sys.argv[1] + ".coef.npy", model.coef_)
print(model.n_rows_seen_)
"""


@pytest.mark.slow
def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    path, other = tmp_path / "killed.npz", tmp_path / "whole.npz"
    command = [sys.executable, "-c", KILLED, str(path), "killed"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert ts.OnlineMultiTaskRegressor.load(path).n_rows_seen_ == 2000  # of 2300 learned
    for file in (path, other):
        subprocess.run(
            [sys.executable, "-c", KILLED, str(file), "whole"], check=True, stdout=subprocess.DEVNULL
        )
    assert np.array_equal(np.load(f"{path}.coef.npy"), np.load(f"{other}.coef.npy"))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"source": "rows.csv"}, "target"),
        ({"source": "rows.dat"}, "format"),
        ({"source": "rows.libsvm"}, "n_features"),
        ({"source": "rows.libsvm", "n_features": 3, "task": "t"}, "qid"),
        ({"source": [1, 2]}, "tuples"),
        ({"source": [], "chunk_rows": 0}, "chunk_rows"),
    ],
)
def test_bad_streams(arguments, match):
    with pytest.raises(ValueError, match=match):
        model().fit_stream(**arguments)


def test_a_missing_column_is_named(rows, tmp_path):
    pd.DataFrame(rows[0], columns=list("abcde")).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="'school'"):
        model().fit_stream(tmp_path / "rows.csv", target="a", task="school")


def test_files_are_read_as_on_the_command_line(tmp_path):
    """Compressed and tab-separated files, and mistakes in them, as `tasksieve stream` reads them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)).round(6)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0])
    frame.to_csv(tmp_path / "t.tsv.gz", index=False, sep="\t")
    lines = [f"{row[0]} 1:{row[0]} 2:{row[1]} 3:{row[2]}" for row in X]
    with gzip.open(tmp_path / "t.libsvm.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    expected = ts.OnlineMultiTaskRegressor(0.05).partial_fit(X, X[:, 0]).coef_
    options = {"t.tsv.gz": {"target": "y"}, "t.libsvm.gz": {"n_features": 3}}
    for name, more in options.items():
        model = ts.OnlineMultiTaskRegressor(0.05).fit_stream(tmp_path / name, chunk_rows=7, **more)
        np.testing.assert_array_equal(model.coef_, expected)
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,3\n")
    with pytest.raises(ValueError, match="'a' occurs twice"):
        ts.OnlineMultiTaskRegressor().fit_stream(tmp_path / "twice.csv", target="y")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match=r"broken\.parquet cannot be read as parquet"):
        ts.OnlineMultiTaskRegressor().fit_stream(tmp_path / "broken.parquet", target="y")
    with pytest.raises(FileNotFoundError):
        ts.OnlineMultiTaskRegressor().fit_stream(tmp_path / "none.csv", target="y")
