"""``tasksieve site`` and ``tasksieve federate``: three sites on one computer, files between them."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import CommandLine

from tasksieve.federated.fitted import FederatedFit
from tasksieve.federated.folders import SiteFolder
from tasksieve.federated.plan import Plan
from tasksieve.federated.site import Site

NAMES = ("north", "south", "west")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def write_tables(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name in NAMES:
        X = rng.standard_normal((25, 6))
        y = 2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(25)
        rows = np.column_stack([X, y]).tolist()
        lines = ["a,b,c,d,e,age,y", *(",".join(f"{value:.6f}" for value in row) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def begin(cli: CommandLine, folder: Path, *more: str, **options: str) -> Path:
    """Keys and folders of all, and the plan; sites have not agreed."""
    write_tables(folder)
    top = cli("federate", "--new-keys", "--keys", folder / "coordinator.json").out
    lines = [
        cli("site", "init", folder / name, "--name", name, "--table", folder / f"{name}.csv", "-y", "y", *more).out
        for name in NAMES
    ]
    plan = folder / "plan.toml"
    plan.write_text(
        f'format = 1\ntitle = "Test"\n{top}{options.get("top", "")}\n'
        "[path]\nn_alphas = 6\neps = 0.1\n[checks]\ncv = 2\n"
        f'[data]\nfeatures = ["a", "b", "c", "d", "e"]\ncovariates = ["age"]\n[sites]\n{"".join(lines)}'
    )
    return plan


def federate(cli: CommandLine, folder: Path, plan: Path, *more: str, code: int = 0) -> str:
    where = ("--keys", folder / "coordinator.json", "--out", folder / "out", "--folders", folder / "exchange")
    result = cli("federate", plan, *where, *more, code=code)
    return result.out + result.err


def test_three_sites_by_files(cli: CommandLine, tmp_path: Path) -> None:
    plan = begin(cli, tmp_path)
    told = cli("federate", plan, "--check").out
    assert re.search(r"to be expected: \d+ to \d+ rounds, .* from each site", told)
    for name in NAMES:
        assert "no plan was agreed to" in cli("site", "show", tmp_path / name).out
        said = cli("site", "agree", tmp_path / name, plan).out
        assert "masked: the coordinator learns sums" in said
        assert f"{name} has agreed" in said
    # without patience: questions are left, people carry files
    assert "no answer yet from north, south, west" in federate(cli, tmp_path, plan, "--patience", "0", code=5)
    exchange = tmp_path / "exchange"
    told = cli("site", "review", tmp_path / "north", exchange / "north").out
    assert "how large numbers are" in told
    assert "no rule refuses it" in told
    for name in NAMES:
        assert "answer-0001" in cli("site", "answer", tmp_path / name, exchange / name).out
    assert "no question waits" in cli("site", "answer", tmp_path / "west", exchange / "west").err
    # the rest by processes that watch their folders
    stop = threading.Event()
    watchers = [
        threading.Thread(
            target=SiteFolder(exchange / name).serve,
            args=(Site(tmp_path / name).node().reply,),
            kwargs={"stop": stop, "pause": 0.01},
        )
        for name in NAMES
    ]
    for watcher in watchers:
        watcher.start()
    try:
        told = federate(cli, tmp_path, plan)
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()
    assert "3 sites, 3 tasks, 6 columns: 6 values of alpha" in told
    assert "chosen by cross-validation" in told
    assert "strongest: a, b" in told
    found = FederatedFit.load(tmp_path / "out" / "result.npz")
    assert found.converged.all()
    lines = (tmp_path / "out" / "path.csv").read_text().splitlines()
    assert lines[0] == "alpha,objective,dual_gap,n_selected,converged,held_out_loss,explained"
    assert len(lines) == 7
    # called again: nothing is asked, the same bytes
    before = (tmp_path / "out" / "result.npz").read_bytes()
    federate(cli, tmp_path, plan, "--patience", "0", "--quiet")
    assert (tmp_path / "out" / "result.npz").read_bytes() == before
    assert re.search(r"\n\d+ questions answered", cli("site", "show", tmp_path / "north").out)
    part_of_a_site(cli, tmp_path)
    model_of_a_site(cli, tmp_path, found)


def part_of_a_site(cli: CommandLine, folder: Path) -> None:
    """Every site can prove its half from its rows; other rows do not."""
    part = folder / "north-part.npz"
    for name in ("south", "north"):
        words = ("--out", part, "--rows", folder / f"{name}.npz", "--overwrite")
        assert "stays here" in cli("site", "part", folder / name, *words).err
    assert "exists: --overwrite" in cli("site", "part", folder / "north", "--out", part, code=1).err
    cli("verify", part, "--data", folder / "north.npz")
    cli("verify", part, "--data", folder / "north.npz", "--exact")
    assert cli("verify", part, "--data", folder / "south.npz", code=None).code != 0


def model_of_a_site(cli: CommandLine, folder: Path, found: FederatedFit) -> None:
    """An ordinary run: predictions are those of the model in Python."""
    run = folder / "north-run"
    told = cli("site", "model", folder / "north", folder / "out" / "result.npz", "--out", run).out
    assert f"alpha = {found.alphas[found.chosen]:.6g}" in told
    cli("predict", run, folder / "north.csv", "--out", folder / "predicted.csv")
    site = Site(folder / "north")
    lines = (folder / "predicted.csv").read_text().splitlines()[1:]
    got = np.array([float(line.rpartition(",")[2]) for line in lines])
    want = site.model(found).predict(site.rows.X, task=site.rows.task)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert "north" in cli("inspect", run).out
    assert "exists: --overwrite" in cli(
        "site", "model", folder / "north", folder / "out" / "result.npz", "--out", run, code=1
    ).err  # fmt: skip


def test_refusals(cli: CommandLine, tmp_path: Path) -> None:
    plan = begin(cli, tmp_path, "--min-rows", "20")
    assert "refused by the rule min-rows: a task has 12 rows in 'fold 0'" in cli(
        "site", "agree", tmp_path / "north", plan, code=1
    ).err.replace("13 rows", "12 rows")
    assert "has not agreed to a plan" in cli("site", "review", tmp_path / "north", tmp_path, code=1).err
    # a table that was changed after its line was sent
    table = tmp_path / "south.csv"
    table.write_text(table.read_text().replace("a,b,c", "a,c,b"))
    assert "rule keys: the line of south" in cli("site", "agree", tmp_path / "south", plan, code=1).err
    assert "exists; it is never replaced" in cli(
        "federate", "--new-keys", "--keys", tmp_path / "coordinator.json", code=2
    ).err
    assert "one of them says how sites are reached" in cli(
        "federate", plan, "--keys", tmp_path / "coordinator.json", "--out", tmp_path / "out", code=2
    ).err
    assert "folder of a site already" in cli(
        "site", "init", tmp_path / "west", "--name", "west", "--table", tmp_path / "west.csv", "-y", "y", code=1
    ).err
    assert "there is no file" in cli(
        "site", "init", tmp_path / "new", "--name", "new", "--table", tmp_path / "none.csv", "-y", "y", code=2
    ).err
    assert "no folder of a site" in cli("site", "show", tmp_path, code=1).err
    plan.write_text(plan.read_text().replace("n_alphas", "n_alpha"))
    assert "n_alphas in [path] is perhaps meant" in cli("federate", plan, "--check", code=1).err


def test_open_answers_are_a_choice_of_the_site(cli: CommandLine, tmp_path: Path) -> None:
    plan = begin(cli, tmp_path, top='answers = "open"\n')
    assert "OPEN" in cli("federate", plan, "--check").out
    assert "refused by the rule open" in cli("site", "agree", tmp_path / "north", plan, code=1).err
    site = tmp_path / "north" / "site.toml"
    site.write_text(site.read_text().replace("open = false", "open = true"))
    cli("site", "agree", tmp_path / "north", plan)
    assert Site(tmp_path / "north").agreed().digest == Plan.read(plan).digest
