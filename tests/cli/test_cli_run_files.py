"""What a run folder holds is one list: whatever a command has written, it can take up again and overwrite."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

from tasksieve.runs import RunError, RunFolder
from tasksieve.runs.folder import LOCK, LOG, MANIFEST, OWN, RESULTS
from tasksieve.runs.registry import MODELS

FEATURES = ["-x", "[abcd]"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((72, 4))
    score = X[:, 0] + 0.5 * rng.standard_normal(72)
    event, censored = 100 * np.exp(-score) * rng.exponential(1, 72), rng.exponential(150, 72)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        site=rng.choice(["A", "B"], 72),
        y=score,
        state=np.where(score > 0, "sick", "well"),
        kind=np.array(["p", "q", "r"])[np.digitize(score, [-0.5, 0.5])],
        visits=rng.poisson(np.exp(0.3 * score)),
        days=np.round(np.minimum(event, censored) + 0.1, 1),
        died=(event <= censored).astype(int),
    )
    file = tmp_path_factory.mktemp("table") / "t.csv"
    frame.to_csv(file, index=False)
    frame.assign(c=np.where(np.arange(72) % 7 == 0, np.nan, X[:, 2])).to_csv(file.with_name("holes.csv"), index=False)
    file.with_name("groups.csv").write_text("feature,group\na,g\nb,g\nc,h\nd,h\n")
    return file


@pytest.fixture
def beside_the_table(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)


SURVIVAL = ["--time", "days", "--event", "died"]
TARGETS = {
    "logistic": ["-y", "state"],
    "poisson": ["-y", "visits"],
    "cox": SURVIVAL,
    "ordinal": ["-y", "kind", "--categories", "p,q,r"],
    "mixed": ["--outcome", "y=value", "--outcome", "state=binary", "--outcome", "visits=count"],
    "group-lasso": ["-y", "y", "--feature-groups", "groups.csv"],
    "any": ["-y", "state", "--loss", "squared_hinge"],
    "multinomial-owl": ["-y", "kind"],
}


def holds_together(run: Path) -> set[str]:
    """The names of its files, all of them on the list, all results in the manifest."""
    names = {entry.name for entry in run.iterdir()}
    assert names <= OWN
    stated = set(json.loads((run / MANIFEST).read_text())["files"])
    assert names - {LOCK, LOG, MANIFEST} <= stated | {"report.html"}
    RunFolder(run).verify()
    return names


def taken_up_again(cli: CommandLine, words: list[object], run: Path, code: int = 0) -> set[str]:
    """A command, resumed when it is finished, and started anew; the names of its files."""
    cli(*words, "-o", run, "-q", code=code)
    names = holds_together(run)
    assert "finished; nothing to resume" in cli(*words, "-o", run, "--resume", code=code).err
    cli(*words, "-o", run, "--overwrite", "-q", code=code)
    assert holds_together(run) == names
    return names


QUICK = {"cox", "mixed", "ordinal", "graph-svm", "report", "findings", "kept folds"}


def _some_slow(names: Iterable[str]) -> list[Any]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("model", _some_slow(MODELS))
@pytest.mark.usefixtures("beside_the_table")
def test_every_outcome(cli: CommandLine, tmp_path: Path, model: str) -> None:
    kind, words = MODELS[model], ["fit", "t.csv", "-m", model, *TARGETS.get(model, ["-y", "y"]), *FEATURES]
    words += [] if not kind.tasks or model == "mixed" else ["-t", "site"]
    words += ["--alphas", "3", "--cv", "2"] if kind.has_path else ["--C", "0.1"]
    names = taken_up_again(cli, [*words, "--tol", "1e-4", "--no-report"], tmp_path / "run")
    assert ("risk_groups.json" in names) == (model == "cox")


COMMANDS = {
    "report": ["fit", "t.csv", *SURVIVAL, "-t", "site", "--alphas", "3", "--cv", "2"],
    "findings": ["fit", "t.csv", "-y", "y", "-t", "site", "--alphas", "3", "--cv", "2", "--stability", "--pairs", "4",
                 "--permutations", "9", "--no-report"],
    "stability": ["stability", "t.csv", *SURVIVAL, "-t", "site", "--pairs", "3", "--no-report"],
    "compare": ["compare", "t.csv", *SURVIVAL, "-t", "site", "--alphas", "3", "--outer-folds", "3", "--cv", "2",
                "--no-report"],
    "missing": ["fit", "holes.csv", "-y", "state", "-m", "logistic", "-t", "site", "--missing", "patterns",
                "--min-rows", "3", "--alphas", "3", "--cv", "2", "--no-report"],
    "intervals": ["fit", "t.csv", "-y", "y", "-t", "site", "--alphas", "3", "--cv", "2", "--intervals", "--no-report"],
    "kept folds": ["fit", "t.csv", "-y", "y", "-t", "site", "--alphas", "3", "--cv", "2", "--keep-folds", "tuned",
                   "--no-report"],
}  # fmt: skip


@pytest.mark.parametrize("name", _some_slow(COMMANDS))
@pytest.mark.usefixtures("beside_the_table")
def test_every_command(cli: CommandLine, tmp_path: Path, name: str) -> None:
    taken_up_again(cli, [*COMMANDS[name], *FEATURES], tmp_path / "run")


def test_a_stream_and_a_new_task(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    """A finished stream goes on with --resume; a transferred task cannot be resumed, but overwritten."""
    run, new = tmp_path / "stream", tmp_path / "new.csv"
    words = ["stream", table, "-y", "y", "-t", "site", *FEATURES, "-o", run, "--no-report", "-q"]
    cli(*words)
    names = holds_together(run)
    cli(*words, "--resume")
    cli(*words, "--overwrite")
    assert holds_together(run) == names
    source = tmp_path / "run"
    cli("fit", table, "-y", "y", "-t", "site", *FEATURES, "--alphas", "3", "--no-report", "-q", "-o", source)
    frame = pd.read_csv(table).iloc[:30].assign(site="C")
    frame.to_csv(new, index=False)
    transfer = ["transfer", source, new, "--name", "C", "-o", tmp_path / "C", "-q"]
    cli(*transfer)
    names = holds_together(tmp_path / "C")
    cli(*transfer, "--overwrite")
    assert holds_together(tmp_path / "C") == names


def test_what_is_no_file_of_a_run_is_neither_written_nor_read(tmp_path: Path) -> None:
    """Writers reach files through the folder, which refuses names that readers would refuse."""
    with RunFolder(tmp_path / "run") as folder:
        for name in ("risks.json", "../model.json", "", "half-a.npz"):
            for ask in (lambda: folder / name, lambda: folder.write_json(name, {}), lambda: folder.read_json(name),  # noqa: B023
                        lambda: folder.replace(name, b"")):  # noqa: B023  # fmt: skip
                with pytest.raises(KeyError, match="is no file of a run"):
                    ask()
        for name in RESULTS:
            folder.write_json(name, {})
        folder.finish()
        assert set(json.loads((folder / MANIFEST).read_text())["files"]) == set(RESULTS)
        folder.clear()
        assert {entry.name for entry in folder.path.iterdir()} == {LOCK}
        (folder.path / "thesis.doc").write_bytes(b"")
        with pytest.raises(RunError, match=r"holds 'thesis\.doc', which is no part of a run"):
            folder.clear()
