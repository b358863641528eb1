"""`tasksieve evaluate`: a run's model on a table that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv
from sklearn.metrics import log_loss, mean_poisson_deviance, r2_score, roc_auc_score

from tasksieve.runs import RunFolder, load_model

CLASSES = ("-y", "state", "-t", "site", "-m", "logistic", "--alpha", 0.05, "--no-report")


@pytest.fixture
def fitted(cli: CommandLine, tmp_path: Path) -> tuple[Path, Path]:
    """A run, and a table of other rows."""
    train, test = regression_csv(tmp_path / "train.csv"), regression_csv(tmp_path / "test.csv", n=60, seed=1)
    cli("fit", train, "-y", "y", "-t", "region", "--alpha", 0.1, "--no-report", "-o", tmp_path / "run")
    return tmp_path / "run", test


def value(scores: pd.DataFrame, task: Any, measure: str, column: str = "value") -> float:
    return float(scores[(scores.task == task) & (scores.measure == measure)][column].item())


def test_scores_are_those_of_the_predictions(cli: CommandLine, fitted: tuple[Path, Path], tmp_path: Path) -> None:
    run, test = fitted
    result = cli("evaluate", run, test, "--out", tmp_path / "scores.csv", "--predictions", tmp_path / "rows.csv")
    scores, rows, data = pd.read_csv(tmp_path / "scores.csv"), pd.read_csv(tmp_path / "rows.csv"), pd.read_csv(test)
    assert rows.columns.tolist() == ["task", "observed", "prediction"]
    np.testing.assert_array_equal(rows.observed, data.y)
    cli("predict", run, test, "--out", tmp_path / "p.csv")
    np.testing.assert_array_equal(rows.prediction, pd.read_csv(tmp_path / "p.csv").prediction)
    found = []
    for task, own in rows.groupby("task"):
        found.append(r2_score(own.observed, own.prediction))
        assert value(scores, task, "R²") == pytest.approx(found[-1], abs=1e-12)
        errors = (own.observed - own.prediction) ** 2
        assert value(scores, task, "squared error") == pytest.approx(errors.mean())
        spread = errors.std(ddof=1) / np.sqrt(len(own))
        assert value(scores, task, "squared error", "error") == pytest.approx(spread)
        assert value(scores, task, "R²", "low") < found[-1] < value(scores, task, "R²", "high")
    assert value(scores, "all tasks", "R²") == pytest.approx(np.mean(found), abs=1e-12)
    assert "60 rows of test.csv" in result.out
    assert "flatter" not in result.err
    assert result.out.splitlines()[0].split() == ["task", "rows", "R²", "squared", "error"]
    data[data.region == "north"].to_csv(tmp_path / "north.csv", index=False)  # tasks without a row are counted
    few = cli("evaluate", run, tmp_path / "north.csv").out.splitlines()
    assert [line.split()[0] for line in few[:3]] == ["task", "north", "all"]
    assert "2 tasks of the model without a row here" in few[3]


def test_classes_have_accuracy_auc_and_log_loss(cli: CommandLine, tmp_path: Path) -> None:
    train, test = classification_csv(tmp_path / "train.csv"), classification_csv(tmp_path / "test.csv", seed=3)
    cli("fit", train, *CLASSES, "-o", tmp_path / "r")
    cli("evaluate", tmp_path / "r", test, "--out", tmp_path / "s.parquet")
    scores, data = pd.read_parquet(tmp_path / "s.parquet"), pd.read_csv(test)
    model = load_model(RunFolder(tmp_path / "r")).estimator
    X = data[list("abcd")].to_numpy()
    chances = model.predict_proba(X, task=data.site.to_numpy())
    for site, own in data.groupby("site"):
        here = own.index.to_numpy()
        assert value(scores, str(site), "accuracy") == pytest.approx(
            np.mean(model.classes_[np.argmax(chances[here], axis=1)] == own.state)
        )
        assert value(scores, str(site), "AUC") == pytest.approx(roc_auc_score(own.state == "well", chances[here, 1]))
        assert value(scores, str(site), "log loss") == pytest.approx(log_loss(own.state, chances[here]))


def test_counts_have_the_deviance(cli: CommandLine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, days = rng.standard_normal((80, 3)), rng.uniform(1, 5, 80)
    table = pd.DataFrame(X, columns=list("abc")).assign(
        ward=np.repeat(["x", "y"], 40), log_days=np.log(days), falls=rng.poisson(days * np.exp(0.5 * X[:, 0]))
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    cli("fit", tmp_path / "t.csv", "-y", "falls", "-t", "ward", "-m", "poisson", "--offset", "log_days",
        "--alpha", 0.05, "--no-report", "-o", tmp_path / "r")  # fmt: skip
    files = ("-o", tmp_path / "s.csv", "--predictions", tmp_path / "p.csv")
    result = cli("evaluate", tmp_path / "r", tmp_path / "t.csv", *files)
    scores, rows = pd.read_csv(tmp_path / "s.csv"), pd.read_csv(tmp_path / "p.csv")
    assert "t.csv is the table that the run was fitted to" in result.err
    own = rows[rows.task == "x"]
    assert value(scores, "x", "Poisson deviance") == pytest.approx(mean_poisson_deviance(own.observed, own.prediction))
    assert 0 < value(scores, "x", "D²") < 1


def test_several_targets_and_several_classes(cli: CommandLine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(
        first=X[:, 0] + 0.1 * rng.standard_normal(50),
        second=X[:, 1],
        kind=np.array(["u", "v", "w"])[np.argmax(X, axis=1)],
    )
    table.loc[:9, "second"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    cli("fit", tmp_path / "t.csv", "-y", "first", "-y", "second", "-x", "[abc]", "--alpha", 0.05, "--no-report", "-o",
        tmp_path / "r")  # fmt: skip
    cli("evaluate", tmp_path / "r", tmp_path / "t.csv", "-o", tmp_path / "s.csv", "--predictions", tmp_path / "p.csv")
    scores, rows = pd.read_csv(tmp_path / "s.csv"), pd.read_csv(tmp_path / "p.csv")
    assert scores[scores.measure == "R²"].rows.tolist() == [50, 40, 90]
    assert rows["observed (second)"].isna().sum() == 10
    for name in ("logistic", "multinomial-owl"):
        run = tmp_path / name
        words = ("-y", "kind", "-x", "[abc]", "-m", name, "--alpha", 0.02, "--no-report", "-o", run)
        cli("fit", tmp_path / "t.csv", *words)
        cli("evaluate", run, tmp_path / "t.csv", "-o", tmp_path / "c.csv")
        found = pd.read_csv(tmp_path / "c.csv")
        model = load_model(RunFolder(run)).estimator
        assert found.measure.tolist() == ["accuracy", "AUC", "log loss"]
        assert found.value[2] == pytest.approx(log_loss(table.kind, model.predict_proba(X)))
        assert found.value[1] == pytest.approx(roc_auc_score(table.kind, model.predict_proba(X), multi_class="ovr"))


def test_ids_weights_and_other_names(cli: CommandLine, fitted: tuple[Path, Path], tmp_path: Path) -> None:
    run, test = fitted
    data = pd.read_csv(test).rename(columns={"y": "Y", "region": "area"})
    data["name"] = [f"p{i}" for i in range(len(data))]
    data["w"] = np.where(np.arange(len(data)) < 30, 1.0, 0.0)
    data.loc[3, "Y"] = np.nan
    data.to_csv(tmp_path / "other.csv", index=False)
    words = ("evaluate", run, tmp_path / "other.csv", "-y", "Y", "-t", "area", "--id", "name")
    assert "row 4, column 'Y'" in cli(*words, code=1).err
    files = ("-o", tmp_path / "s.csv", "--predictions", tmp_path / "p.csv")
    result = cli(*words, "--weights", "w", "--missing", "drop", *files)
    rows, scores = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(tmp_path / "s.csv")
    assert rows.name.tolist() == data.name.tolist()
    assert rows.prediction.isna().tolist() == [i == 3 for i in range(60)]
    assert scores[scores.task == "all tasks"].rows.tolist() == [29, 29]
    assert "1 of 60 rows" in result.err


def test_related_rows_count_as_one(cli: CommandLine, fitted: tuple[Path, Path], tmp_path: Path) -> None:
    run, test = fitted
    data = pd.read_csv(test)
    twice = pd.concat([data, data], ignore_index=True)  # the same rows again say nothing new
    twice["person"] = np.tile(np.arange(len(data)), 2)
    twice.to_csv(tmp_path / "twice.csv", index=False)
    cli("evaluate", run, test, "-o", tmp_path / "once.csv")
    said = cli("evaluate", run, tmp_path / "twice.csv", "-o", tmp_path / "rows.csv").err
    assert "share a value of column 'person' are related" in said
    assert "--row-groups person" in said
    said = cli("evaluate", run, tmp_path / "twice.csv", "--row-groups", "none", "-o", tmp_path / "none.csv").err
    assert "related" not in said
    assert (tmp_path / "none.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()
    cli("evaluate", run, tmp_path / "twice.csv", "--row-groups", "person", "-o", tmp_path / "people.csv")
    once, rows, people = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("once", "rows", "people"))
    np.testing.assert_allclose(people.value, once.value)
    np.testing.assert_allclose(people.error, once.error)
    assert (rows.error < 0.8 * once.error).all()


def test_a_stream_and_a_value_of_a_path(cli: CommandLine, tmp_path: Path) -> None:
    train, test = regression_csv(tmp_path / "train.csv"), regression_csv(tmp_path / "test.csv", seed=1)
    columns = ("-x", "a", "-x", "b")
    cli("stream", train, "-y", "y", "-t", "region", *columns, "--alpha", 0.01, "-o", tmp_path / "s")
    assert "R²" in cli("evaluate", tmp_path / "s", test).out
    cli("path", train, "-y", "y", "-t", "region", *columns, "--alphas", "1,0.1", "--no-report", "-o", tmp_path / "p")
    assert "--alpha names the value" in cli("evaluate", tmp_path / "p", test, code=2).err
    strong, weak = (cli("evaluate", tmp_path / "p", test, "--alpha", alpha, "-o", "-").out for alpha in (1, 0.1))
    assert strong != weak


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "words", "code", "said"),
    [
        ({}, ["-y", "u"], 1, "has no column 'u'"),
        ({}, ["-y", "y", "-y", "a"], 2, "name as many columns"),
        ({}, ["-t", "place"], 1, "no task column 'place'"),
        ({}, ["--weights", "w"], 1, "has no column 'w'"),
        ({}, ["-o", "scores.txt"], 2, "--out: a .csv or .parquet file"),
        ({}, ["--predictions", "nowhere/p.csv"], 1, "there is no folder nowhere"),
        ({}, ["--level", "1.5"], 2, "--level"),
        ({"region": "west"}, [], 1, "row 3 is 'west'. It knows 'east', 'north', 'south'"),
        ({"y": None}, ["--missing", "drop"], 1, "no row with a label is left"),
    ],
)
def test_mistakes_are_named(
    cli: CommandLine,
    fitted: tuple[Path, Path],
    change: dict[str, Any],
    words: list[str],
    code: int,
    said: str,
) -> None:
    run, test = fitted
    data = pd.read_csv(test)
    for name, wrong in change.items():
        data[name] = np.nan if wrong is None else data[name].where(data.index != 2, wrong)
    data.to_csv(test, index=False)
    assert said in cli("evaluate", run, test, *words, code=code).err


def test_a_class_that_the_model_does_not_know(cli: CommandLine, tmp_path: Path) -> None:
    train = classification_csv(tmp_path / "train.csv")
    cli("fit", train, *CLASSES, "-o", tmp_path / "r")
    data = pd.read_csv(train)
    data.loc[1, "state"] = "dead"
    data.to_csv(train, index=False)
    err = cli("evaluate", tmp_path / "r", train, code=1).err
    assert "without this class: row 2 is 'dead'. It knows 'sick', 'well'" in err
