"""Workbooks, files of statistics programs and text of other places, from the file to predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from cli_helpers import CommandLine
from file_writers import write_workbook

from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.trust_content import without_folders

SITES = ("North", "South", "West")
OPTIONS = ("--alpha", 0.1, "--no-report")


def trial(n: int = 30) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    found = {}
    for t, site in enumerate(SITES):
        own = pd.DataFrame({"patient": [f"{t}{k:04d}" for k in range(n)], "dose": (rng.random(n) * 10).round(2)})
        own["bmi"] = (20 + 5 * rng.standard_normal(n)).round(1)
        own["smoker"] = rng.choice(["no", "yes"], n, p=[0.7, 0.3])
        own["recovery"] = (2 * own["dose"] - (t == 0) * own["bmi"] / 5 + rng.standard_normal(n)).round(2)
        found[site] = own
    return found


def as_rows(own: pd.DataFrame) -> list[list[Any]]:
    return [list(own.columns), *own.astype(object).values.tolist()]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    tables = trial()
    write_workbook(tmp_path / "sites.xlsx", {**{site: as_rows(own) for site, own in tables.items()}, "Notes": []})
    every = pd.concat([own.assign(site=site) for site, own in tables.items()], ignore_index=True)
    every.to_csv(tmp_path / "plain.csv", index=False)
    every.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    codes = {"North": 1.0, "South": 2.0, "West": 3.0}
    coded = every.assign(smoker=(every["smoker"] == "yes") * 1.0, site=every["site"].map(codes))
    labels = {"smoker": {0: "no", 1: "yes"}, "site": dict(enumerate(SITES, start=1))}
    pyreadstat.write_dta(coded, str(tmp_path / "trial.dta"), variable_value_labels=labels)
    pyreadstat.write_sav(coded, str(tmp_path / "trial.sav"), variable_value_labels=labels)
    return tmp_path


def predictions(path: Path) -> np.ndarray:
    return pd.read_csv(path)["prediction"].to_numpy()


def test_the_same_table_in_other_files(cli: CommandLine, files: Path) -> None:
    """Coefficients and predictions do not depend on the file, and a model of one predicts another."""
    known = files / "known"
    cli("fit", files / "plain.csv", "-y", "recovery", "-t", "site", *OPTIONS, "-o", known)
    cli("predict", known, files / "plain.csv", "-o", files / "known.csv")
    for name in ("german.csv", "trial.dta", "trial.sav"):
        run = files / f"run-{name}"
        cli("fit", files / name, "-y", "recovery", "-t", "site", *OPTIONS, "-o", run)
        one, other = (load_model(RunFolder(path)) for path in (run, known))
        assert one.feature_names == other.feature_names == ["dose", "bmi", "smoker=yes"]
        np.testing.assert_array_equal(one.estimator.coef_, other.estimator.coef_)
        assert cli("verify", run).out.startswith("proved")
        cli("predict", known, files / name, "-o", files / "p.csv")
        np.testing.assert_array_equal(predictions(files / "p.csv"), predictions(files / "known.csv"))
    said = (files / "run-german.csv" / "log.txt").read_text()
    assert "verify.py knows CSV files in UTF-8" in said
    assert "german.csv has decimal commas" in said


def test_a_sheet_for_each_task(cli: CommandLine, files: Path) -> None:
    book, run = files / "sites.xlsx", files / "run"
    said = cli("fit", book, "-y", "recovery", *OPTIONS, "-o", run, code=1).err
    assert "3 sheets: 'North', 'South', 'West'. --sheet" in said
    told = cli("fit", book, "--sheet", "*", "-y", "recovery", *OPTIONS, "-o", run)
    assert "sheets without a cell are left out: 'Notes'" in told.err
    cli("fit", files / "plain.csv", "-y", "recovery", "-t", "site", *OPTIONS, "-o", files / "known")
    one, other = (load_model(RunFolder(path)) for path in (run, files / "known"))
    assert one.estimator.tasks_.tolist() == list(SITES)
    np.testing.assert_array_equal(one.estimator.coef_, other.estimator.coef_)
    assert cli("verify", run).out.startswith("proved")
    cli("predict", run, book, "--sheet", "*", "-o", files / "all.csv")
    cli("predict", run, book, "--sheet", "South", "-o", files / "south.csv")
    assert pd.read_csv(files / "south.csv")["task"].unique().tolist() == ["South"]
    np.testing.assert_array_equal(predictions(files / "south.csv"), predictions(files / "all.csv")[30:60])
    assert "R²" in cli("evaluate", run, book, "--sheet", "*").out
    # one sheet is a table, and several are parts of one where a column names the tasks
    cli("fit", book, "--sheet", "West", "-y", "recovery", "-t", "smoker", *OPTIONS, "-o", files / "west")
    two = ("--sheet", "West", "--sheet", "North")
    cli("fit", book, *two, "-y", "recovery", "-t", "smoker", *OPTIONS, "-o", files / "two")
    assert load_model(RunFolder(files / "two")).estimator.tasks_.tolist() == ["no", "yes"]
    for words, why in (
        (["--sheet", "East"], "no sheet 'East'"),
        (["--sheet", "*", "--encoding", "cp1252"], "--encoding"),
        (["--sheet", "*", "--chunk-rows", "10"], "--chunk-rows"),
    ):
        assert why in cli("fit", book, "-y", "recovery", *words, *OPTIONS, "-o", files / "none", code=None).err
    assert "--skip: is for what a folder or a glob holds" in cli(
        "fit", book, "--sheet", "*", "--skip", "Notes", "-y", "recovery", "-o", files / "none", code=2
    ).err
    several = (book, files / "plain.csv", "--sheet", "*")
    assert "not both" in cli("fit", *several, "-y", "recovery", "-o", files / "none", code=2).err


def test_a_sheet_that_is_no_site(cli: CommandLine, tmp_path: Path) -> None:
    tables = {site: as_rows(own) for site, own in trial(12).items()}
    tables["South"] = [[*tables["South"][0][:2], "bmi", *tables["South"][0][3:]], *tables["South"][1:]]
    for row in tables["South"][1:]:
        row[2] = 25
    write_workbook(tmp_path / "sites.xlsx", {"About": [["Contact"], ["A. Smith"]], **tables})
    said = cli("fit", tmp_path / "sites.xlsx", "--sheet", "*", "-y", "recovery", "-o", tmp_path / "run", code=1).err
    assert "not in sites.xlsx [About]; every sheet needs it (it is in 3 of 4)" in said
    assert "name the sheets to read, --sheet North --sheet South ..." in said
    said = cli("inspect", tmp_path / "sites.xlsx").out
    assert "sheet 'About': 1 row, 1 column\n" in said
    assert "sheet 'South': 12 rows, 5 columns\n  the columns of sheet 'North'" in said


def ordered_trial(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    dose = rng.standard_normal(n)
    pain = np.digitize(dose + 0.5 * rng.standard_normal(n), [-0.7, 0.7])
    site, age = np.repeat(["A", "B"], n // 2), rng.standard_normal(n)
    return pd.DataFrame({"site": site, "dose": dose, "age": age, "pain": pain})


@pytest.mark.parametrize("ending", ["dta", "sav", "parquet"])
def test_ordered_classes_stand_in_the_order_of_the_file(cli: CommandLine, tmp_path: Path, ending: str) -> None:
    """Labels of numbers, and ordered categories, are not sorted by the alphabet."""
    frame, words = ordered_trial(), {0: "none", 1: "mild", 2: "bad"}
    path, run = tmp_path / f"t.{ending}", tmp_path / "run"
    if ending == "parquet":
        named = frame["pain"].map(words)
        frame.assign(pain=pd.Categorical(named, ["none", "mild", "bad", "worst"], ordered=True)).to_parquet(path)
    else:
        write = pyreadstat.write_dta if ending == "dta" else pyreadstat.write_sav
        write(frame.astype({"pain": float}), str(path), variable_value_labels={"pain": words})
    said = cli("fit", path, "-m", "ordinal", "-y", "pain", "-t", "site", *OPTIONS, "-o", run).err
    assert "note: classes of 'pain' in the order that the table gives them: none < mild < bad" in said
    assert "alphabet" not in said
    assert load_model(RunFolder(run)).estimator.classes_.tolist() == ["none", "mild", "bad"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    cli("fit", tmp_path / "t.csv", "-m", "ordinal", "-y", "pain", "-t", "site", *OPTIONS, "-o", tmp_path / "numbers")
    one, other = (load_model(RunFolder(path)) for path in (run, tmp_path / "numbers"))
    np.testing.assert_allclose(one.estimator.coef_, other.estimator.coef_, atol=1e-7)
    assert cli("verify", run).out.startswith("proved")
    asked = ("--categories", "bad,mild,none")
    cli("fit", path, "-m", "ordinal", "-y", "pain", "-t", "site", *OPTIONS, *asked, "-o", run, "--overwrite")
    assert load_model(RunFolder(run)).estimator.classes_.tolist() == ["bad", "mild", "none"]


def test_words_without_an_order_are_warned_of_once(cli: CommandLine, tmp_path: Path) -> None:
    frame = ordered_trial()
    frame.assign(pain=frame["pain"].map({0: "none", 1: "mild", 2: "bad"})).to_csv(tmp_path / "t.csv", index=False)
    asked = ("-m", "ordinal", "-y", "pain", "-t", "site", *OPTIONS, "-o", tmp_path / "r")
    said = cli("fit", tmp_path / "t.csv", *asked).err
    assert said.count("order of the alphabet: bad < mild < none") == 1


def test_numbers_without_their_labels(cli: CommandLine, files: Path) -> None:
    """What becomes of labels is a matter of the model: new tables are read as those of the fit."""
    run = files / "run"
    options = ("-y", "recovery", "--categorical", "smoker", "--no-value-labels", "-t", "site")
    cli("fit", files / "trial.dta", *options, *OPTIONS, "-o", run)
    assert load_model(RunFolder(run)).feature_names[-1] == "smoker=1"
    cli("predict", run, files / "trial.sav", "-o", files / "p.csv")
    assert pd.read_csv(files / "p.csv")["task"].unique().tolist() == [1, 2, 3]


def test_a_table_is_inspected(cli: CommandLine, files: Path) -> None:
    said = cli("inspect", files / "german.csv").out
    assert "encoding utf-16, separator semicolon, decimal comma" in said
    assert "patient   looks like an id (90 words, all different)" in said
    assert "smoker    words, 2 different: 'no', 'yes'" in said
    said = cli("inspect", files / "sites.xlsx").out
    assert "a workbook of 3 sheets" in said
    assert "sheet 'South': 30 rows, 5 columns\n  the columns of sheet 'North'\n" in said
    found = json.loads(cli("inspect", files / "trial.dta", "--json").out)["tables"][""]
    assert found["columns"]["site"] == "words, 3 different, labels of numbers: 'North', 'South', 'West'"
    assert "numbers from" in cli("inspect", files / "trial.dta", "--no-value-labels").out
    np.savez(files / "t.npz", X=np.eye(3), y=np.arange(3.0))
    assert "X: 3 x 3" in cli("inspect", files / "t.npz").out
    assert "is for a table" in cli("inspect", files, "--sheet", "A", code=2).err


def test_commands_without_folders() -> None:
    assert without_folders("tasksieve fit /home/me/a.csv -y y --out /tmp/x/run") == "tasksieve fit a.csv -y y --out run"
    assert without_folders("tasksieve fit /d/a/t.csv /d/b/t.csv --out run") == "tasksieve fit a/t.csv b/t.csv --out run"
    assert without_folders("tasksieve fit a.csv --out run") == "tasksieve fit a.csv --out run"
