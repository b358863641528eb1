"""Runs that are killed at any moment, and disks that fill up: what is finished stays, --resume ends the same."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import CommandLine, regression_csv
from command_server import CommandServer

import tasksieve as ts
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.folder import OWN

# Everything that is computed; not the seconds, the log, or the digests of these.
ANSWER = (
    "coefficients.csv",
    "coefficients.parquet",
    "intercepts.csv",
    "model.npz",
    "model.json",
    "cv_scores.csv",
)


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    server = CommandServer()
    assert server.run("info") == 0  # everything is imported now
    yield server
    server.close()


def answer(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in ANSWER if (run / name).exists()}


def refuse_corruption(run: Path) -> None:
    """Whatever has happened: every file under its name is whole, and a run that says it is finished is."""
    if not run.exists():
        return
    folder = RunFolder(run)
    for entry in run.iterdir():
        assert entry.name in OWN or entry.name.endswith(".part"), entry
        if entry.suffix == ".json":
            assert isinstance(json.loads(entry.read_bytes()), dict), entry
    if folder.finished:
        folder.verify()
    if (run / "model.json").exists() and (run / "model.npz").exists():
        load_model(folder)


@pytest.mark.parametrize("n_kills", [5, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed(server: CommandServer, tmp_path: Path, n_kills: int) -> None:
    table = tmp_path / "t.npz"
    X, y, task, _ = ts.datasets.make_wang_synthetic(n_tasks=4, n_rows=30, n_features=60, random_state=0)
    np.savez(table, X=X, y=y, task=task)
    fit = (
        "fit",
        table,
        "-y",
        "y",
        "-t",
        "task",
        "--cv",
        5,
        "--alphas",
        12,
        "--no-report",
        "--quiet",
        "--out",
    )
    assert server.run(*fit, tmp_path / "undisturbed") == 0
    requests = server.requests
    truth = answer(tmp_path / "undisturbed")
    assert "coefficients.parquet" in truth
    assert "cv_scores.csv" in truth

    moments = random.Random(2015)
    kills = rounds = resumed = 0
    while kills < n_kills:
        run, how = tmp_path / f"run{rounds % 2}", "--overwrite" if rounds >= 2 else "--resume"
        rounds += 1
        assert rounds < 10 * n_kills
        while True:
            code = server.run(*fit, run, how, kill_at=moments.randrange(requests + requests // 10))
            assert code in (0, -signal.SIGKILL), code
            refuse_corruption(run)
            if code == 0:
                break
            kills += 1
            how = "--resume" if (run / "config.json").exists() or how == "--resume" else how
            resumed += (run / "pieces").is_dir()
            if kills >= n_kills:  # enough: in peace to the end
                assert server.run(*fit, run, how) == 0
                break
        assert server.run(*fit, run, "--resume") == 0  # whatever it was, it is finished now
        RunFolder(run).verify()
        assert answer(run) == truth
    assert resumed > 0  # some kills came between two folds, and the finished ones were used


def test_a_resumed_run_uses_what_was_finished(server: CommandServer, tmp_path: Path) -> None:
    """Killed after each fold in turn: the log tells that no finished fold is solved again."""
    table, run = regression_csv(tmp_path / "t.csv", n=300, d=40), tmp_path / "run"
    fit = (
        "fit",
        table,
        "-y",
        "y",
        "-t",
        "region",
        "--cv",
        3,
        "--alphas",
        20,
        "--no-report",
        "--tol",
        1e-10,
        "--out",
        run,
    )
    for fold in range(3):
        code = server.run(*fit, "--resume", kill_when=run / "pieces" / f"fold-0-{fold}-*.piece")
        assert code == -signal.SIGKILL
        refuse_corruption(run)
    assert server.run(*fit, "--resume") == 0
    log = (run / "log.txt").read_text()
    for fold in range(3):
        # the kill came before the line "finished" was written
        assert re.findall(rf"fold-0-{fold}-\w+: (\w+)", log) == ["taken"] * (3 - fold)
    assert not (run / "pieces").exists()


def test_resume_refuses_another_question(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    fit = ("fit", table, "-y", "y", "-t", "region", "--cv", 3, "--alphas", 5, "--no-report", "--out", run)
    stop_after(monkeypatch, 5)
    cli(*fit, code=4)
    monkeypatch.undo()
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")
    assert "--alphas (was '5', is '6')" in cli(*fit, "--alphas", 6, "--resume", code=1).err
    assert "--threads" in cli(*fit, "--threads", 2, "--resume", code=1).err
    good = table.read_text()
    table.write_text(good.replace("north", "south", 1))
    assert "has changed" in cli(*fit, "--resume", code=1).err
    table.write_text(good)
    moved = tmp_path / "moved.csv"
    table.rename(moved)
    assert "no file" in cli("fit", "--resume", "--no-report", "--out", run, code=1).err
    cli(
        "fit", moved, "--resume", "--out", run, "--no-report"
    )  # the same data elsewhere; options from the run
    RunFolder(run).verify()


def test_an_interrupted_path_keeps_its_values(cli: CommandLine, tmp_path: Path) -> None:
    """Ctrl-C within a path: what is solved is written, the run is not finished, --resume solves it all."""
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    path = ("path", table, "-y", "y", "-t", "region", "--alphas", 10, "--no-report", "--out")
    cli(*path, tmp_path / "undisturbed")

    def stop(progress: ts.Progress) -> None:
        if progress.done == 4:
            raise KeyboardInterrupt

    with ts.watch(stop):
        result = cli(*path, run, code=130)
    assert "--resume" in result.err
    whole = (tmp_path / "undisturbed" / "path.csv").read_text().splitlines()
    part = (run / "path.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in part] == [line.split(",")[:3] for line in whole[:5]]
    assert not RunFolder(run).finished
    cli(*path, run, "--resume")
    assert answer(run) == answer(tmp_path / "undisturbed")


def stop_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> list[int]:
    """A disk that is full after so many files."""
    from tasksieve import atomic

    count = [0]
    sync = os.fsync

    def fsync(handle: int) -> None:
        count[0] += 1
        if count[0] > writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    return count


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_full_disk_at_any_write(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """The n-th write fails, for every n (or every ninth): exit code 4, nothing half written, --resume ends the same."""
    table = regression_csv(tmp_path / "t.csv", n=45)
    fit = (
        "fit",
        table,
        "-y",
        "y",
        "-t",
        "region",
        "--cv",
        3,
        "--alphas",
        4,
        "--no-report",
        "--quiet",
        "--out",
    )
    count = stop_after(monkeypatch, 10**9)
    cli(*fit, tmp_path / "undisturbed")
    truth, n_writes = answer(tmp_path / "undisturbed"), count[0]
    assert n_writes > 20
    for n in range(0, n_writes, every):
        run = tmp_path / f"run{n}"
        with monkeypatch.context() as patch:
            stop_after(patch, n)
            result = cli(*fit, run, code=None)
        if result.code == 0:  # the last thing to be synced is the folder after the manifest
            assert RunFolder(run).finished
        else:
            assert result.code == 4, result.err
            assert "No space left" in result.err
        refuse_corruption(run)
        cli(*fit, run, "--resume")
        RunFolder(run).verify()
        assert answer(run) == truth


def test_a_stream_killed_and_resumed(server: CommandServer, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv", n=2_000)
    learn = ("stream", table, "-y", "y", "-t", "region", "-x", "[a-f]", "--alpha", 0.05, "--gamma", 20, "--quiet",
             "--chunk-rows", 100, "--checkpoint-every", 200, "--out")  # fmt: skip
    assert server.run(*learn, tmp_path / "undisturbed") == 0
    requests = server.requests
    truth = answer(tmp_path / "undisturbed")
    moments, run = random.Random(1), tmp_path / "run"
    for _ in range(3):
        server.run(*learn, run, "--resume", kill_at=moments.randrange(3 * requests // 5))
        refuse_corruption(run)
    assert server.run(*learn, run, "--resume") == 0
    assert answer(run) == truth
    assert (run / "stream.npz").read_bytes() == (tmp_path / "undisturbed" / "stream.npz").read_bytes()
