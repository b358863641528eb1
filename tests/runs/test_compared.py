"""Several runs beside each other, and what is in one: `tasksieve diff`, `tasksieve inspect`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, regression_csv

from tasksieve.cli.app import app
from tasksieve.runs import RunError
from tasksieve.runs.compared import compare_runs, read_runs, run_names

FIT = ("-y", "y", "-t", "region", "--no-report", "--quiet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two fits of one table, a stream of it, and findings alone."""
    position = tmp_path_factory.mktemp("runs")
    table = regression_csv(position / "t.csv", n=120)

    def run(*words: object) -> None:
        with pytest.raises(SystemExit) as end:
            app([str(word) for word in words], prog_name="tasksieve")
        assert not end.value.code

    run("fit", table, *FIT, "--alpha", 0.05, "--out", position / "weak")
    run("fit", table, *FIT, "--alpha", 2.0, "--out", position / "strong")
    run("stream", table, *FIT, "-x", "[a-f]", "--alpha", 0.1, "--out", position / "online")
    run("stability", table, *FIT, "--pairs", 10, "--permutations", 9, "--out", position / "found")
    return position


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """Copies, which a test may spoil."""
    names = ("weak", "strong", "online")
    for name in (*names, "found"):
        shutil.copytree(made / name, tmp_path / name)
    return tuple(tmp_path / name for name in names)  # type: ignore[return-value]


def test_what_differs_is_what_the_files_say(runs: tuple[Path, Path, Path]) -> None:
    weak, strong, _ = runs
    found = compare_runs(read_runs([str(weak), str(strong)]))
    assert found["settings"] == [{"setting": "alpha", "values": ["0.05", "2.0"]}]
    assert found["same_data"] is True
    tables = [pd.read_csv(run / "coefficients.csv") for run in (weak, strong)]
    used = [set(table.feature) for table in tables]
    assert set(found["features"]["in_all"]) == used[0] & used[1]
    assert set(found["features"]["only"]["weak"]) == used[0] - used[1] != set()
    assert found["features"]["only"]["strong"] == []
    wide = [table.pivot(index="task", columns="feature", values="coefficient") for table in tables]
    gap = wide[0].sub(wide[1], fill_value=0.0).fillna(0.0).abs().to_numpy()
    (pair,) = found["coefficients"]
    assert pair["largest_difference"] == pytest.approx(gap.max())
    assert pair["mean_difference"] == pytest.approx(gap.mean())
    for run, line in zip((weak, strong), found["runs"], strict=True):
        stated = json.loads((run / "certificate.json").read_text())
        assert (line["objective"], line["dual_gap"]) == (stated["objective"], stated["dual_gap"])
    scores = [pd.read_csv(run / "quality.csv").set_index("task").iloc[:, 1] for run in (weak, strong)]
    for row in found["tasks"]:
        np.testing.assert_allclose(row["scores"], [own[row["task"]] for own in scores])


def test_the_table_the_json_and_the_page(cli: CommandLine, runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    weak, strong, stream = runs
    out = cli("diff", weak, strong).out
    for words in ("settings that differ", "--alpha", "the data are the same", "only in weak", "by task"):
        assert words in out, words
    assert json.loads(cli("diff", weak, strong, "--json").out)["settings"][0]["setting"] == "--alpha"
    assert "to read" in cli("diff", weak, strong, stream, "--html", tmp_path / "d.html").out
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "a stream keeps no digest" in page
    assert 'src="' not in page


def test_what_cannot_be_compared_is_refused(cli: CommandLine, runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    weak, strong, _ = runs
    assert "two or more" in cli("diff", weak, code=2).err
    assert "twice" in cli("diff", weak, weak, code=1).err
    assert ".html" in cli("diff", weak, strong, "--html", tmp_path / "d.csv", code=2).err
    assert "no folder" in cli("diff", weak, strong, "--html", tmp_path / "none" / "d.html", code=2).err
    assert "no run folder" in cli("diff", weak, tmp_path / "none", code=1).err
    assert "findings and no model" in cli("diff", weak, tmp_path / "found", code=1).err


def test_runs_have_names_that_tell_them_apart(tmp_path: Path) -> None:
    assert run_names(["a/run", "b/other"]) == ["run", "other"]
    assert run_names(["a/run", "b/run"]) == ["a/run", "b/run"]
    with pytest.raises(RunError, match="twice"):
        run_names(["a/run", "a/../a/run"])


def test_inspect_says_what_is_there(cli: CommandLine, runs: tuple[Path, Path, Path]) -> None:
    weak, _, stream = runs
    found = json.loads(cli("inspect", weak, "--json").out)
    assert found["finished"]
    assert found["settings"]["--alpha"] == "0.05"
    assert found["data"]["digest (sha256)"] == json.loads((weak / "data.json").read_text())["sha256"]
    table = pd.read_csv(weak / "coefficients.csv")
    sizes = pd.read_csv(weak / "features.csv").set_index("feature").strength_per_standard_deviation
    assert {one["feature"]: one["strength"] for one in found["selected"]["strongest"]} == pytest.approx(dict(sizes))
    assert set(sizes.index) == set(table.feature)
    assert {file["state"] for file in found["files"]} == {"as written", ""}
    out = cli("inspect", weak).out
    for words in ("minimises", "gap, at most", "features in use", "tasksieve verify", "scikit-learn"):
        assert words in out, words
    assert "not a proved optimum" in cli("inspect", stream).out
    # a certificate and an online model by themselves
    certificate = json.loads(cli("inspect", weak / "certificate.npz", "--json").out)
    assert certificate["certificate"]["objective"] == pytest.approx(found["certificate"]["objective"], rel=1e-9)
    assert {one["feature"] for one in certificate["selected"]["strongest"]} == set(table.feature)
    assert "rows learned" in cli("inspect", stream / "stream.npz").out


def test_inspect_sees_what_has_changed(cli: CommandLine, runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    weak, strong, _ = runs
    with open(weak / "coefficients.csv", "a") as file:
        file.write("east,a,7\n")
    (weak / "quality.csv").unlink()
    found = json.loads(cli("inspect", weak, "--json").out)
    states = {file["file"]: file["state"] for file in found["files"]}
    assert (states["coefficients.csv"], states["quality.csv"]) == ("CHANGED", "MISSING")
    assert "model" not in found  # nothing is told of a model that may not be the run's
    (strong / "manifest.json").unlink()
    assert "--resume" in cli("inspect", strong).out
    assert "neither" in cli("inspect", strong / "model.npz", code=1).err
    assert "no run folder or file" in cli("inspect", tmp_path / "none", code=1).err
    shutil.rmtree(strong)
    strong.mkdir()
    assert "no config.json" in cli("inspect", strong, code=1).err
