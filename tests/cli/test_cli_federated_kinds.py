"""``tasksieve site`` and ``tasksieve federate`` with survival, ordered classes and pooled scales; and over HTTPS."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.federated.fitted import FederatedFit
from tasksieve.federated.folders import SiteFolder
from tasksieve.federated.site import Site

NAMES = ("north", "south", "west")
FEATURES = list("abcde")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def write_tables(folder: Path) -> dict[str, Any]:
    """Columns of each site: features, a number y, days and death, and pain in words."""
    rng, found = np.random.default_rng(5), {}
    for name in NAMES:
        X = np.round(rng.standard_normal((40, 5)), 6)
        z = 1.5 * X[:, 0] - X[:, 1]
        death, end = rng.exponential(np.exp(-z)), rng.exponential(3.0, 40)
        pain = np.array(["none", "mild", "severe"])[np.digitize(z + rng.logistic(size=40), [-0.5, 1.0])]
        own = {"X": X, "y": np.round(z + 0.3 * rng.standard_normal(40), 6), "pain": pain}
        own |= {"days": np.round(np.minimum(death, end), 4) + 0.01, "died": (death <= end).astype(int)}
        columns = [*X.T, own["y"], own["days"], own["died"], pain]
        lines = [",".join(map(str, row)) for row in zip(*(column.tolist() for column in columns), strict=True)]
        header = ",".join([*FEATURES, "y", "days", "died", "pain"])
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
        found[name] = own
    return found


def begin(cli: CommandLine, folder: Path, model: str, *columns: str) -> Path:
    """Keys and folders of all, and a plan to which all have agreed."""
    top = cli("federate", "--new-keys", "--keys", folder / "coordinator.json").out
    words = ("--table", "--name")
    lines = []
    for name in NAMES:
        given = zip(words, (folder / f"{name}.csv", name), strict=True)
        lines.append(cli("site", "init", folder / name, *(word for pair in given for word in pair), *columns).out)
    plan = folder / "plan.toml"
    plan.write_text(
        f'format = 1\ntitle = "Test"\n{top}\n[model]\n{model}\n[path]\nn_alphas = 4\neps = 0.2\n'
        f"[data]\nfeatures = {FEATURES!r}\n[sites]\n{''.join(lines)}".replace("'", '"')
    )
    for name in NAMES:
        cli("site", "agree", folder / name, plan)
    return plan


@contextmanager
def watching(folder: Path) -> Iterator[Path]:
    """Sites that answer what arrives in their folders."""
    stop, exchange = threading.Event(), folder / "exchange"
    watchers = []
    for name in NAMES:
        (exchange / name).mkdir(parents=True)
        node, options = Site(folder / name).node(), {"stop": stop, "pause": 0.01}
        watchers.append(threading.Thread(target=SiteFolder(exchange / name).serve, args=(node.reply,), kwargs=options))
    for watcher in watchers:
        watcher.start()
    try:
        yield exchange
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()


def federated(cli: CommandLine, folder: Path, plan: Path) -> FederatedFit:
    with watching(folder) as exchange:
        where = ("--keys", folder / "coordinator.json", "--out", folder / "out", "--folders", exchange)
        cli("federate", plan, *where, "--no-report")
    assert not (folder / "out" / "report.html").exists()
    return FederatedFit.load(folder / "out" / "result.npz")


KINDS: dict[str, Any] = {
    "cox": ('loss = "cox"', ("--time", "days", "--event", "died==1")),
    "ordinal": ('loss = "ordinal"', ("--target", "pain", "--categories", "none,mild,severe")),
    "pooled": ('standardize = "pooled"', ("--target", "y")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_from_tables_to_the_model_of_all_rows(cli: CommandLine, tmp_path: Path, kind: str) -> None:
    tables = write_tables(tmp_path)
    model, columns = KINDS[kind]
    found = federated(cli, tmp_path, begin(cli, tmp_path, model, *columns))
    assert found.converged.all()
    X = [tables[name]["X"] for name in NAMES]
    common: dict[str, Any] = {"tol": 1e-9, "standardize": kind != "pooled"}
    if kind == "cox":
        pooled: Any = ts.MultiTaskCox(**common)
        y = [ts.survival(tables[name]["days"], tables[name]["died"] == 1) for name in NAMES]
    elif kind == "ordinal":
        pooled = ts.MultiTaskOrdinal(**common, categories=["none", "mild", "severe"])
        y = [tables[name]["pain"] for name in NAMES]
    else:
        pooled, y = ts.MultiTaskRegressor(**common), [tables[name]["y"] for name in NAMES]
        scales = np.vstack(X).std(axis=0)
        np.testing.assert_allclose(found.column_scale, scales, rtol=1e-9)
        X = [own / scales for own in X]
    path = pooled.path(X, y, alphas=found.alphas)
    room = 1e-9 * found.null_objective
    assert np.all(found.objectives >= path.objectives - path.dual_gaps - room)
    assert np.all(path.objectives >= found.objectives - found.dual_gaps - room)
    for k in range(4):
        np.testing.assert_array_equal(path.features(k), found.features(k))
    # an ordinary run of a site
    run = tmp_path / "west-run"
    cli("site", "model", tmp_path / "west", tmp_path / "out" / "result.npz", "--out", run, "--no-report")
    cli("predict", run, tmp_path / "west.csv", "--out", tmp_path / "predicted.csv")
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 41


def test_a_site_names_the_columns_that_its_loss_needs(cli: CommandLine, tmp_path: Path) -> None:
    write_tables(tmp_path)
    with pytest.raises(AssertionError, match="must name columns time and event"):
        begin(cli, tmp_path, 'loss = "cox"', "--target", "y")


@pytest.mark.slow
def test_https_between_processes(cli: CommandLine, tmp_path: Path) -> None:
    """Every site is a process that serves, with a certificate of its own; the coordinator's is made by its command."""
    write_tables(tmp_path)
    plan = begin(cli, tmp_path, 'standardize = "task"', "--target", "y")
    own, key = cli("federate", "--new-certificate", "--keys", tmp_path / "coordinator.json").out.split()
    assert "it is never replaced" in cli(
        "federate", "--new-certificate", "--keys", tmp_path / "coordinator.json", code=2
    ).err
    serving, addresses, trusted = [], [], []
    try:
        for name in NAMES:
            made = cli("site", "serve", tmp_path / name, "--new-certificate", "localhost").out.split()
            words = ["--certificate", made[0], "--private-key", made[1], "--trusted", own, "--port", "0"]
            command = [sys.executable, "-m", "tasksieve", "site", "serve", str(tmp_path / name), *words]
            serving.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            trusted += ["--trusted", made[0]]
        for name, process in zip(NAMES, serving, strict=True):
            assert process.stderr is not None
            port = re.search(r"answers at port (\d+)", process.stderr.readline())
            assert port is not None
            addresses += ["--addresses", f"{name}=https://localhost:{port[1]}"]
        where = ("--keys", tmp_path / "coordinator.json", "--out", tmp_path / "out", "--patience", "120")
        told = cli("federate", plan, *where, *addresses, "--certificate", own, "--private-key", key, *trusted).out
    finally:
        for process in serving:
            process.terminate()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()
    assert "signed by all sites" in told
    assert FederatedFit.load(tmp_path / "out" / "result.npz").converged.all()
    assert "What was exchanged" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    cli("verify", tmp_path / "out" / "statement.npz", "--plan", plan)
