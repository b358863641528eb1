"""`tasksieve stream`: online models from files and standard input."""

from __future__ import annotations

import contextlib
import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

import tasksieve as ts
from tasksieve.runs import RunError, RunFolder
from tasksieve.runs.stream_history import read_looks
from tasksieve.runs.stream_run import load_online

LEARN = ("--alpha", 0.05, "--gamma", 20, "--quiet")


def coefficients(run: Path) -> pd.DataFrame:
    return pd.read_csv(run / "coefficients.csv").sort_values(["task", "feature"]).reset_index(drop=True)


def expected(table: Path, **params: Any) -> Any:
    frame = pd.read_csv(table)
    X = frame[[name for name in frame.columns if name in "abcdef"]].to_numpy()
    model = ts.OnlineMultiTaskRegressor(alpha=0.05, gamma=20, **params)
    return model.partial_fit(X, frame.y.to_numpy(), task=frame.region.to_numpy(str)), X, frame


def test_a_stream_equals_the_library(cli: CommandLine, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=500), tmp_path / "run"
    model, X, frame = expected(table)
    columns = ("-y", "y", "-t", "region", "-x", "[a-f]")
    cli("stream", table, *columns, *LEARN, "--chunk-rows", 37, "--out", run)
    again = load_online(RunFolder(run))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.tasks_.tolist() == model.tasks_.tolist()
    RunFolder(run).verify()
    cli("predict", run, table, "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv").prediction
    np.testing.assert_allclose(found, model.predict(X, task=frame.region.to_numpy(str)), rtol=1e-12)
    cli("report", run)
    page = (run / "report.html").read_text()
    assert "before it was learned" in page
    assert "carries no certificate" in page
    assert f"{model.progressive_loss_:.6g}" in page
    RunFolder(run).verify()
    # the same from Parquet, from standard input, and in two goes
    frame.to_parquet(tmp_path / "t.parquet")
    cli("stream", tmp_path / "t.parquet", *columns, *LEARN, "--out", tmp_path / "parquet")
    cli("stream", table, *columns, *LEARN, "--chunk-rows", 50, "--max-rows", 200, "--out", tmp_path / "two")
    assert not coefficients(tmp_path / "two").equals(coefficients(run))
    cli("stream", table, *columns, *LEARN, "--chunk-rows", 50, "--resume", "--out", tmp_path / "two")
    for other in ("parquet", "two"):
        pd.testing.assert_frame_equal(coefficients(run), coefficients(tmp_path / other))
    assert "other options" in cli("stream", table, *columns, "--alpha", 9, "--resume", "-o", run, code=1).err


def test_gamma_by_itself_and_what_is_said(cli: CommandLine, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=500), tmp_path / "run"
    columns = ("-y", "y", "-t", "region", "-x", "[a-f]", "--alpha", 0.05)
    out = cli("stream", table, *columns, "--out", run).out
    model = load_online(RunFolder(run))
    assert model.gamma == "auto"
    assert f"mean loss of rows before they were learned: {model.progressive_loss_:.4g}; gamma {model.gamma_:.4g}" in out
    assert f"R2 of rows before they were learned: {model.progress().score.mean():.3f} (mean over tasks)" in out
    # in two goes, to the bit
    cli("stream", table, *columns, "--chunk-rows", 50, "--max-rows", 200, "--out", tmp_path / "two")
    cli("stream", table, *columns, "--chunk-rows", 70, "--resume", "--out", tmp_path / "two")
    again = load_online(RunFolder(tmp_path / "two"))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.progressive_loss_ == model.progressive_loss_
    assert "--gamma: a number, or auto" in cli("stream", table, *columns, "--gamma", "x", "-o", run, code=2).err


def test_a_run_of_version_0_1_keeps_its_gamma(cli: CommandLine, tmp_path: Path) -> None:
    """Its default was 1, written into config.json: --resume without --gamma keeps it."""
    table, run = regression_csv(tmp_path / "t.csv", n=300), tmp_path / "run"
    columns = ("-y", "y", "-t", "region", "-x", "[a-f]", "--alpha", 0.05, "--chunk-rows", 50)
    cli("stream", table, *columns, "--gamma", 40, "--max-rows", 100, "--out", run)
    cli("stream", table, *columns, "--resume", "--out", run)
    assert load_online(RunFolder(run)).gamma == 40.0
    assert load_online(RunFolder(run)).n_rows_seen_ == 300
    assert "other options" in cli("stream", table, *columns, "--gamma", "auto", "--resume", "-o", run, code=1).err


def test_an_absurd_row_ends_a_stream_with_its_number(cli: CommandLine, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=100), tmp_path / "run"
    frame = pd.read_csv(table)
    frame.loc[70, "a"] = 1e170
    frame.to_csv(table, index=False)
    learn = ("stream", table, "-y", "y", "-t", "region", "-x", "[a-f]", "--alpha", 0.05, "--chunk-rows", 20)
    err = cli(*learn, "--checkpoint-every", 20, "--out", run, code=1).err
    assert "Row 71 (row 1 is the first) was not learned" in err
    assert load_online(RunFolder(run)).n_rows_seen_ == 60


def test_standard_input(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=200), tmp_path / "run"
    model, *_ = expected(table)

    class Standard:
        buffer = io.BytesIO(table.read_bytes())

    monkeypatch.setattr(sys, "stdin", Standard())
    cli("stream", "-", "-y", "y", "-t", "region", "-x", "[a-f]", *LEARN, "--chunk-rows", 64, "--out", run)
    np.testing.assert_array_equal(load_online(RunFolder(run)).coef_, model.coef_)


def test_classes_and_weights(cli: CommandLine, tmp_path: Path) -> None:
    table, run = classification_csv(tmp_path / "t.csv", n=400), tmp_path / "run"
    frame = pd.read_csv(table).assign(w=0.5)
    frame.to_csv(table, index=False)
    cli(
        "stream",
        table,
        "-y",
        "state",
        "-t",
        "site",
        "-m",
        "classifier",
        "--alpha",
        0.01,
        "--weights",
        "w",
        "-o",
        run,
    )
    model = ts.OnlineMultiTaskClassifier(alpha=0.01)
    X = frame[["a", "b", "c", "d"]].to_numpy()
    model.partial_fit(
        X, frame.state.to_numpy(str), task=frame.site.to_numpy(), sample_weight=frame.w.to_numpy()
    )
    np.testing.assert_array_equal(load_online(RunFolder(run)).coef_, model.coef_)
    lines = cli("predict", run, table, "--probabilities").out.splitlines()
    assert lines[0] == "task,prediction,probability of sick,probability of well"
    assert [line.split(",")[1] for line in lines[1:]] == model.predict(X, task=frame.site.to_numpy()).tolist()


def test_libsvm(cli: CommandLine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"{a - 2 * b:.4f} qid:{rng.integers(1, 3)} 1:{a:.4f} 3:{b:.4f}"
        for a, b in rng.standard_normal((300, 2))
    ]
    (tmp_path / "t.libsvm").write_text("\n".join(lines) + "\n")
    learn = ("stream", tmp_path / "t.libsvm", "--task", "qid", *LEARN, "--out", tmp_path / "run")
    assert "--n-features" in cli(*learn, code=1).err
    cli(*learn, "--n-features", 3, "--overwrite")
    assert set(coefficients(tmp_path / "run").feature) == {"f1", "f3"}
    assert (
        len(cli("predict", tmp_path / "run", tmp_path / "t.libsvm", "--task", "qid").out.splitlines()) == 301
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.assign(a=frame.a.where(frame.index != 70)), "1 missing value(s): row 71, column 'a'"),
        (
            lambda frame: frame.assign(a=frame.a.astype(object).where(frame.index != 70, "x")),
            "row 71, column 'a' is 'x'",
        ),
        (lambda frame: frame.assign(y=frame.y.where(frame.index != 70)), "1 missing value(s): row 71, column 'y'"),
        (
            lambda frame: frame.assign(a=frame.a.where(frame.index != 70, np.inf)),
            "row 71, column 'a' is infinite",
        ),
        (lambda frame: frame.rename(columns={"y": "z"}), "no column 'y'"),
        (lambda frame: frame.iloc[:0], "no rows"),
        (
            lambda frame: frame.assign(region=np.where(frame.index < 64, "a", "7")),
            "held words first, and numbers",
        ),
    ],
)
def test_mistakes_are_named(cli: CommandLine, tmp_path: Path, change: Any, words: str) -> None:
    table = regression_csv(tmp_path / "t.csv", n=100)
    change(pd.read_csv(table)).to_csv(table, index=False)
    learn = ("stream", table, "-y", "y", "-t", "region", "-x", "[a-f]", *LEARN, "--chunk-rows", 32)
    assert words in cli(*learn, "--out", tmp_path / "run", code=1).err
    assert not (tmp_path / "run").exists()


def test_rows_with_holes_can_be_left_out(cli: CommandLine, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv", n=100)
    frame = pd.read_csv(table)
    frame.loc[[5, 70], "a"] = np.nan
    frame.to_csv(tmp_path / "holes.csv", index=False)
    frame.dropna().to_csv(tmp_path / "short.csv", index=False)
    for name in ("holes", "short"):
        cli("stream", tmp_path / f"{name}.csv", "-y", "y", "-t", "region", "-x", "[a-f]", *LEARN, "--chunk-rows", 32,
            "--missing", "drop", "--out", tmp_path / name)  # fmt: skip
    pd.testing.assert_frame_equal(coefficients(tmp_path / "holes"), coefficients(tmp_path / "short"))


def test_text_columns_and_bad_options(cli: CommandLine, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=50), tmp_path / "run"
    assert "column 'city' is" in cli("stream", table, "-y", "y", "-t", "region", "-o", run, code=1).err
    for words, code in (
        (["--gamma", 0], 1),
        (["--chunk-rows", 0], 2),
        (["--checkpoint-every", 0], 2),
        (["--format", "npz"], 2),
    ):
        cli("stream", table, "-y", "y", "-x", "a", "-o", tmp_path / "other", *words, code=code)


@pytest.mark.slow
def test_fuzzed_checkpoints_give_clean_errors(cli: CommandLine, tmp_path: Path) -> None:
    """A state of the online learner goes into compiled code: nothing in the file is believed there either."""
    table, run = regression_csv(tmp_path / "t.csv", n=60), tmp_path / "run"
    cli("stream", table, "-y", "y", "-t", "region", "-x", "[a-f]", *LEARN, "--scheme", "rounds", "--out", run)
    folder, file = RunFolder(run), run / "stream.npz"
    good = file.read_bytes()
    with np.load(file) as content:
        arrays = dict(content)
    draw = random.Random(0)
    shape = arrays["state_shape"]
    for k in range(len(shape)):
        for value in (-1, 2**31, 2**40, 2**62, -(2**63), 3):
            changed = shape.copy()
            changed[k] = value
            np.savez(file, **{**arrays, "state_shape": changed})
            with contextlib.suppress(RunError):
                model = load_online(folder)
                assert model.coef_.size < 10**6
    for name, array in arrays.items():
        if name == "meta":
            continue
        for value in (
            array[:0],
            array[:-1],
            np.repeat(array, 2),
            -array - 1,
            array.astype(str),
            array.reshape(1, -1),
        ):
            np.savez(file, **{**arrays, name: value})
            with contextlib.suppress(RunError):
                load_online(folder).predict(np.zeros((1, 6)))
    for trial in range(300):
        spoilt = bytearray(good)
        if trial % 4 == 0:
            spoilt = spoilt[: draw.randrange(len(spoilt))]
        else:
            for _ in range(draw.choice([1, 2, 10])):
                spoilt[draw.randrange(len(spoilt))] = draw.randrange(256)
        file.write_bytes(bytes(spoilt))
        with contextlib.suppress(RunError):
            load_online(folder)
    meta = arrays["meta"].tobytes()
    for old, new in (
        (b"OnlineMultiTaskRegressor", b"OnlineMultiTaskClassifier"),
        (b'"str"', b'"eval"'),
        (b"alpha", b"alpga"),
    ):
        np.savez(file, **{**arrays, "meta": np.frombuffer(meta.replace(old, new), dtype=np.uint8)})
        with pytest.raises(RunError):
            load_online(folder)
    file.write_bytes(good)
    load_online(folder)


def test_looks_along_the_stream(cli: CommandLine, tmp_path: Path) -> None:
    """Features in use after 1, 2, 4, ... rows: those of the library, whatever the chunks and interruptions."""
    table, run = regression_csv(tmp_path / "t.csv", n=300), tmp_path / "run"
    columns = ("-y", "y", "-t", "region", "-x", "[a-f]", *LEARN)
    cli("stream", table, *columns, "--chunk-rows", 37, "--out", run)
    looks = read_looks(RunFolder(run))
    assert sorted(looks) == [2**k for k in range(9)]
    _, X, frame = expected(table)
    model = ts.OnlineMultiTaskRegressor(alpha=0.05, gamma=20)
    done = 0
    for rows, (n, features, strengths) in sorted(looks.items()):
        part = slice(done, rows)
        model.partial_fit(X[part], frame.y.to_numpy()[part], task=frame.region.to_numpy(str)[part])
        done = rows
        sizes = np.linalg.norm(model.coef_, axis=0)
        assert n == np.count_nonzero(sizes)
        np.testing.assert_array_equal(features, np.flatnonzero(sizes))
        np.testing.assert_array_equal(strengths, sizes[features])
    cli("stream", table, *columns, "--chunk-rows", 50, "--max-rows", 200, "--out", tmp_path / "two")
    cli("stream", table, *columns, "--chunk-rows", 90, "--resume", "--out", tmp_path / "two")
    assert (tmp_path / "two" / "history.npz").read_bytes() == (run / "history.npz").read_bytes()
    page = (run / "report.html").read_text()
    assert "Along the stream" in page
    assert "not a regret" in page
    cli("stream", table, *columns, "--no-report", "--out", tmp_path / "bare")
    assert not (tmp_path / "bare" / "report.html").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["rows", "start", "feature", "strength"])
def test_a_spoilt_history_is_named(cli: CommandLine, tmp_path: Path, name: str) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=60), tmp_path / "run"
    cli("stream", table, "-y", "y", "-t", "region", "-x", "[a-f]", *LEARN, "--no-report", "--out", run)
    arrays = dict(np.load(run / "history.npz"))
    arrays[name] = arrays[name][:-1] if name != "feature" else arrays[name] - 1_000
    np.savez(run / "history.npz", **arrays)
    with pytest.raises(RunError, match=r"history\.npz is not readable"):
        read_looks(RunFolder(run))
