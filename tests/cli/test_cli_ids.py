"""Patient numbers on the command line: no features, in files, sheets and tasks; rows of one patient in one fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

from tasksieve.runs import RunFolder, load_model

FEW = ("--cv", 3, "--alphas", 6, "--eps", 0.05, "--no-report")
SURVIVAL = ("--time", "days", "--event", "died")


def cohort(rng: np.random.Generator, n: int, first: int) -> pd.DataFrame:
    """Patients numbered as they came (with gaps): the first were followed the longest. Age matters, too."""
    pid = np.sort(rng.permutation(np.arange(first, first + n + n // 20))[:n])
    age = rng.standard_normal(n)
    event = np.exp(-0.5 * age) * rng.exponential(30.0, n)
    followed = 3.0 * (n - np.arange(n)) / n * 30.0 + 1.0
    days = np.round(np.minimum(event, followed) + (n - np.arange(n)) / n * 60.0, 2)
    return pd.DataFrame({"pid": pid, "age": age, "noise": rng.standard_normal(n), "days": days,
                         "died": (event <= followed).astype(int)})  # fmt: skip


def visits(rng: np.random.Generator, n: int = 40) -> pd.DataFrame:
    """Three rows of each patient, who has a level of his own; two sites."""
    who = np.repeat(np.arange(n), 3)
    X = rng.standard_normal((3 * n, 3))
    y = X[:, 0] + 2.0 * rng.standard_normal(n)[who] + 0.1 * rng.standard_normal(3 * n)
    frame = pd.DataFrame(X, columns=list("abc")).assign(site=np.where(who % 2, "s", "t"), patient=who + 1, y=y)
    return frame.sample(frac=1.0, random_state=1).reset_index(drop=True)


def read(run: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((run / name).read_text()))


def features(run: Path) -> list[str]:
    return load_model(RunFolder(run)).feature_names


def concordance(run: Path) -> float:
    scores = pd.read_csv(run / "cv_quality.csv")
    [value] = scores[(scores.task == "all tasks") & (scores.measure == "concordance")].value
    return float(value)


def folds_of(run: Path, who: Any) -> pd.Series:
    """How many folds the rows of each patient are held out in, as the run has stored them."""
    fold = pd.read_csv(run / "out_of_fold.csv").fold
    assert fold.notna().all()
    return fold.groupby(np.asarray(who)).nunique()


def test_patient_numbers_of_two_files(cli: CommandLine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, frame in (("one", cohort(rng, 100, 1)), ("two", cohort(rng, 80, 1))):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = tmp_path / "one.csv", tmp_path / "two.csv"
    said = cli("fit", *files, *SURVIVAL, *FEW, "-o", tmp_path / "run").err
    assert "note: column 'pid' is left out: it looks like an id" in said
    assert "--keep pid learns from it" in said
    assert "related" not in said  # each number once in a task
    assert features(tmp_path / "run") == ["age", "noise"]
    cli("fit", *files, *SURVIVAL, *FEW, "--drop", "pid", "-q", "-o", tmp_path / "dropped")
    cli("fit", *files, *SURVIVAL, *FEW, "--keep", "pid", "-q", "-o", tmp_path / "kept")
    assert features(tmp_path / "kept") == ["pid", "age", "noise"]
    one, other = (load_model(RunFolder(tmp_path / name)).estimator.coef_ for name in ("run", "dropped"))
    np.testing.assert_array_equal(one, other)
    assert concordance(tmp_path / "run") == concordance(tmp_path / "dropped")
    assert concordance(tmp_path / "kept") > concordance(tmp_path / "run") + 0.05  # what it would have looked like
    cli("predict", tmp_path / "run", *files, "-o", tmp_path / "with.csv", "-q")
    for file in files:
        pd.read_csv(file).drop(columns="pid").to_csv(file, index=False)
    cli("predict", tmp_path / "run", *files, "-o", tmp_path / "without.csv", "-q")
    assert (tmp_path / "with.csv").read_bytes() == (tmp_path / "without.csv").read_bytes()
    cli("evaluate", tmp_path / "run", *files, "-q")


def test_rows_of_a_patient_are_held_out_together(cli: CommandLine, tmp_path: Path) -> None:
    frame = visits(np.random.default_rng(0))
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", *FEW)
    said = cli(*fit, "-o", tmp_path / "run").err
    assert "column 'patient' is left out" in said
    assert "rows that share a value of column 'patient' are related" in said
    assert "--row-groups patient" in said
    assert features(tmp_path / "run") == ["a", "b", "c"]
    assert (folds_of(tmp_path / "run", frame.patient) == 1).all()
    config = read(tmp_path / "run", "config.json")
    assert config["row_groups"] == "patient"
    assert "row_groups" in config["by_default"]
    data = read(tmp_path / "run", "data.json")
    assert data["cv_folds"] == "3 folds of 40 whole groups, shuffled, seed 0"
    assert "--row-groups" not in data["reproduce"]
    # the same as being asked for
    cli(*fit, "--row-groups", "patient", "-q", "-o", tmp_path / "asked")
    for name in ("cv_scores.csv", "coefficients.csv", "out_of_fold.csv"):
        assert (tmp_path / "asked" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    # and not where the user says otherwise
    said = cli(*fit, "--row-groups", "none", "-o", tmp_path / "none").err
    assert "related" not in said
    assert features(tmp_path / "none") == ["a", "b", "c"]
    assert (folds_of(tmp_path / "none", frame.patient) > 1).any()
    assert "--row-groups none" in read(tmp_path / "none", "data.json")["reproduce"]
    cli("report", tmp_path / "none")
    assert "whole groups" not in (tmp_path / "none" / "report.html").read_text()
    said = cli(*fit, "--no-shuffle", "-o", tmp_path / "stretches").err
    assert "may be in different folds: --no-shuffle" in said
    # a configuration and a run that is resumed decide it anew, by the table
    cli("fit", "--config", tmp_path / "run" / "config.json", "-q", "-o", tmp_path / "again")
    assert (folds_of(tmp_path / "again", frame.patient) == 1).all()
    other = tmp_path / "other.csv"
    frame.assign(patient=np.arange(len(frame))).to_csv(other, index=False)
    cli("fit", other, "--config", tmp_path / "run" / "config.json", "-q", "-o", tmp_path / "new")
    assert "row_groups" not in read(tmp_path / "new", "config.json")
    (tmp_path / "run" / "manifest.json").unlink()
    cli(*fit, "--resume", "-q", "-o", tmp_path / "run")
    assert (folds_of(tmp_path / "run", frame.patient) == 1).all()


def test_files_sheets_and_formats(cli: CommandLine, tmp_path: Path) -> None:
    """One table in every form has the same folds and coefficients."""
    frame = visits(np.random.default_rng(1)).sort_values("site", kind="stable").reset_index(drop=True)
    parts = {site: part.drop(columns="site") for site, part in frame.groupby("site")}
    for site, part in parts.items():
        part.to_csv(tmp_path / f"{site}.csv")  # with row names
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        for site, part in parts.items():
            part.to_excel(book, sheet_name=str(site))
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    forms = {
        "files": [tmp_path / "s.csv", tmp_path / "t.csv"],
        "sheets": [tmp_path / "book.xlsx", "--sheet", "*"],
        "parquet": [tmp_path / "t.parquet", "-t", "site"],
    }
    for form, words in forms.items():
        said = cli("fit", *words, "-y", "y", *FEW, "-o", tmp_path / form).err
        assert "column 'patient' is left out" in said
        assert features(tmp_path / form) == ["a", "b", "c"]
        assert (folds_of(tmp_path / form, frame.patient) == 1).all()
        scores = pd.read_csv(tmp_path / form / "cv_scores.csv")
        np.testing.assert_allclose(scores, pd.read_csv(tmp_path / "files" / "cv_scores.csv"), rtol=1e-12)
    cli("predict", tmp_path / "files", tmp_path / "s.csv", "-q", "-o", tmp_path / "p.csv")
    parts["s"].to_csv(tmp_path / "s.csv", index=False)
    cli("predict", tmp_path / "files", tmp_path / "s.csv", "-q", "-o", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()


def test_findings_keep_patients_together(cli: CommandLine, tmp_path: Path) -> None:
    frame = visits(np.random.default_rng(2)).assign(d=0.3)
    frame["d"] = np.random.default_rng(3).standard_normal(len(frame))
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = (tmp_path / "t.csv", "-y", "y", "-t", "site", "--no-report", "-q")
    stability = ("stability", *words, "--pairs", 12, "--permutations", 0, "--q", 2, "--assumption", "none", "-o")
    compare = ("compare", *words, "--cv", 2, "--outer-folds", 3, "--alphas", 4, "-o")
    for command, name in ((stability, "stability.csv"), (compare, "comparison.csv")):
        cli(*command, tmp_path / "run", "--overwrite")
        cli(*command, tmp_path / "asked", "--overwrite", "--row-groups", "patient")
        cli(*command, tmp_path / "none", "--overwrite", "--row-groups", "none")
        found, asked, single = ((tmp_path / run / name).read_bytes() for run in ("run", "asked", "none"))
        assert found == asked
        assert found != single


def test_where_groups_cannot_be(cli: CommandLine, tmp_path: Path) -> None:
    """Too few persons for the folds, and no folds at all: said, and no error."""
    frame = visits(np.random.default_rng(3), 4)
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-x", "[abc]", "--no-report", "-o", tmp_path / "run", "--overwrite")
    said = cli(*fit, "--cv", 5, "--alphas", 4).err
    assert "may be in different folds: 4 of them are too few" in said
    said = cli(*fit, "--alpha", 0.1).err
    assert "where there are folds (--cv), --row-groups patient" in said
    assert "row_groups" not in read(tmp_path / "run", "config.json")


def test_tall_tables(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks leave out the same columns; where they keep no rows together, that is said, or the table read whole."""
    frame = visits(np.random.default_rng(4))
    frame["n"] = frame.groupby("site").cumcount() + 1
    frame.to_csv(tmp_path / "t.csv")
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", *FEW, "-o", tmp_path / "run", "--overwrite")
    said = cli(*fit, "--chunk-rows", 50).err
    assert all(f"column {name!r} is left out" in said for name in ("Unnamed: 0", "patient", "n"))
    assert "related, and folds of chunks may part them" in said
    assert "--chunk-rows 0 keeps them together" in said
    assert features(tmp_path / "run") == ["a", "b", "c"]
    assert "related" not in cli(*fit, "--chunk-rows", 50, "--row-groups", "none").err
    monkeypatch.setattr("tasksieve.cli.chunked_source.table_is_tall", lambda rows, columns: True)
    monkeypatch.setattr("tasksieve.cli.chunked_source.sums_are_smaller", lambda *_, **__: True)
    said = cli(*fit).err
    assert "held out together" in said
    assert (folds_of(tmp_path / "run", frame.patient) == 1).all()
    cli(*fit, "--row-groups", "none", "-q")
    assert not (tmp_path / "run" / "out_of_fold.csv").is_file()  # rows went by


def test_streams(cli: CommandLine, tmp_path: Path) -> None:
    frame = visits(np.random.default_rng(5))
    frame.to_csv(tmp_path / "t.csv")
    learn = ("stream", tmp_path / "t.csv", "-y", "y", "-t", "site", "--no-report")
    said = cli(*learn, "-o", tmp_path / "run").err
    assert "column 'patient' is left out: it looks like an id" in said
    assert read(tmp_path / "run", "data.json")["feature_names"] == ["a", "b", "c"]
    cli(*learn, "--keep", "patient", "-q", "-o", tmp_path / "kept")
    assert read(tmp_path / "kept", "data.json")["feature_names"] == ["a", "b", "c", "patient"]
    # a stream that was begun before ids were looked for goes on with what it has learned from
    everything = ("Unnamed: 0", "patient")
    words = [word for name in everything for word in ("--keep", name)]
    cli(*learn, *words, "--max-rows", 60, "-q", "-o", tmp_path / "old")
    config = read(tmp_path / "old", "config.json")
    del config["keep"]
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    cli(*learn, "--resume", "-q", "-o", tmp_path / "old")
    assert set(everything) < set(read(tmp_path / "old", "data.json")["feature_names"])


def test_inspect_says_the_same(cli: CommandLine, tmp_path: Path) -> None:
    visits(np.random.default_rng(6)).to_csv(tmp_path / "t.csv")
    lines = cli("inspect", tmp_path / "t.csv").out.splitlines()
    words = {line.split("  ")[1].strip(): line for line in lines if line.startswith("  ")}
    assert "looks like an id (row names" in words["Unnamed: 0"]
    assert "looks like an id (by its name; 40 different values in 120 rows)" in words["patient"]
    assert "related (--row-groups)" in words["patient"]
    assert "looks like an id" not in words["a"]


def test_a_feature_without_a_name_is_verified(cli: CommandLine, tmp_path: Path) -> None:
    """The certificate names the columns as the file has them."""
    visits(np.random.default_rng(7)).to_csv(tmp_path / "t.csv")
    words = ("-y", "y", "-t", "site", "--alpha", 0.01, "--keep", "Unnamed: 0", "--no-report", "-q")
    cli("fit", tmp_path / "t.csv", *words, "-o", tmp_path / "run")
    assert features(tmp_path / "run")[0] == "Unnamed: 0"
    assert "proved" in cli("verify", tmp_path / "run").out
    recipe = cli("verify", tmp_path / "run" / "certificate.npz", "--data", tmp_path / "t.csv").out
    assert "proved" in recipe


def test_grading_takes_the_columns_that_coefficients_are_of(cli: CommandLine, tmp_path: Path) -> None:
    frame = visits(np.random.default_rng(8))
    frame.to_csv(tmp_path / "t.csv", index=False)
    coefficients = pd.Series({"a": 1.0, "b": 0.0, "c": 0.0})
    words = ("-y", "y", "--drop", "site", "--alpha", 0.5, "--json")
    coefficients.rename("coefficient").rename_axis("feature").to_csv(tmp_path / "c.csv")
    told = cli("grade", tmp_path / "c.csv", tmp_path / "t.csv", *words)
    assert "column 'patient' is left out" in told.err
    assert json.loads(told.out)["features"] == 3
    coefficients["patient"] = 0.1
    coefficients.rename("coefficient").rename_axis("").to_csv(tmp_path / "c.csv")  # as R has it
    told = cli("grade", tmp_path / "c.csv", tmp_path / "t.csv", *words)
    assert json.loads(told.out)["features"] == 4


def test_configurations_of_version_0_2_mean_what_they_did(cli: CommandLine, tmp_path: Path) -> None:
    """They say nothing of ids, and learned from a number that comes again; what they left out they leave out."""
    frame = visits(np.random.default_rng(9))
    frame["visit"] = np.random.default_rng(0).permutation(len(frame))
    frame.to_csv(tmp_path / "t.csv", index=False)
    cli("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", *FEW, "-q", "-o", tmp_path / "new")
    config = read(tmp_path / "new", "config.json")
    del config["ids"], config["row_groups"]
    config["by_default"].remove("row_groups")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    for n, words in enumerate(([], ["--chunk-rows", 50])):
        more = ("--config", tmp_path / "old" / "config.json", "--no-report", "-o", tmp_path / f"{n}")
        said = cli("fit", *more, *words).err
        assert "column 'visit' is left out" in said
        assert "related" not in said
        assert features(tmp_path / f"{n}") == ["a", "b", "c", "patient"]
    assert (folds_of(tmp_path / "0", frame.patient) > 1).any()
    config = read(tmp_path / "0", "config.json")
    del config["ids"]  # as that version has written it
    run = RunFolder(tmp_path / "0")
    with run:
        (run / "config.json").write_text(json.dumps(config))
        run.finish()
    assert "proved" in cli("verify", tmp_path / "0").out
