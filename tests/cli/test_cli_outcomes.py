"""Ordered and unlike outcomes on the command line: columns, tasks, files, genotypes; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.datasets import write_toy_genotypes
from tasksieve.runs import RunFolder, load_model

PAIN = ["none", "mild", "severe"]
LOSSES = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "pain": "ordinal", "death": "cox"}
KINDS = {"pressure": "value", "diabetes": "binary", "visits": "count", "pain": "ordered", "death": "survival"}
OUTCOMES = [word for name, kind in KINDS.items() for word in ("--outcome", f"{name}={kind}")]
WIDE = [*OUTCOMES, "--time", "death=days", "--event", "death=died", "--categories", "pain=none,mild,severe", "-x", "x*"]
STACKED = [*OUTCOMES, "-t", "kind", "-y", "label", "--time", "days", "--event", "died", "--categories",
           "pain=none,mild,severe", "-x", "x*"]  # fmt: skip


@pytest.fixture
def frame() -> pd.DataFrame:
    """Five outcomes of the same rows, some not observed; column x0 matters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    z = X[:, 0] + rng.logistic(0.0, 0.4, 60)
    found = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(
        pressure=np.round(120 + 10 * z, 1),
        diabetes=np.where(z > 0, "yes", "no"),
        visits=rng.poisson(np.exp(0.5 * z)),
        pain=np.array(PAIN)[np.digitize(z, [-0.6, 0.6])],
        days=np.round(50 * np.exp(-z) + 0.1, 1),
        died=rng.choice([0, 1], 60),
    )
    found.loc[:3, "pressure"] = np.nan
    found.loc[8:10, "pain"] = None
    return found


def outcomes(frame: pd.DataFrame) -> dict[str, object]:
    found: dict[str, object] = {name: frame[name].to_numpy() for name in LOSSES if name != "death"}
    return {**found, "death": ts.survival(frame.days, frame.died)}


def stacked(frame: pd.DataFrame) -> pd.DataFrame:
    """A part of the rows for each outcome, with one column of labels beside times and events."""
    parts = []
    for k, name in enumerate(LOSSES):
        own = frame.iloc[k::2].copy()
        own["kind"] = name
        own["label"] = None if name == "death" else own[name].astype(object)
        if name != "death":
            own[["days", "died"]] = np.nan
        parts.append(own[["kind", "label", "days", "died", "x0", "x1", "x2", "x3"]])
    found = pd.concat(parts)
    return found[(found.kind == "death") | found.label.notna()].reset_index(drop=True)


def labels_of(rows: pd.DataFrame) -> np.ndarray:
    """Labels of stacked rows, as Python takes them."""
    y = np.empty(len(rows), dtype=object)
    records = ts.survival(rows.days, rows.died)
    for i, (kind, label) in enumerate(zip(rows.kind, rows.label, strict=True)):
        y[i] = records[i] if kind == "death" else label if kind in ("diabetes", "pain") else float(label)
    return y


def test_columns_of_unlike_kinds(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    table, run = tmp_path / "t.csv", tmp_path / "r"
    frame.to_csv(table, index=False)
    told = cli("fit", table, *WIDE, "--alpha", 0.15, "-o", run, "--loss-weights", "death=2")
    assert "MultiTaskMixed: 60 rows, 5 tasks, 4 features" in told.out
    assert "7 of 300 labels are not observed" in told.err
    X, y = frame[["x0", "x1", "x2", "x3"]].to_numpy(), outcomes(frame)
    options = {"categories": {"pain": PAIN}, "loss_weights": {"death": 2.0}, "standardize": True}
    model = ts.MultiTaskMixed(LOSSES, alpha=0.15, **options).fit(X, y)
    saved = load_model(RunFolder(run))
    np.testing.assert_array_equal(saved.estimator.coef_, model.coef_)
    assert saved.estimator.losses == LOSSES
    assert saved.estimator.loss_weights_[-1] == 2.0
    command = json.loads((run / "data.json").read_text())["reproduce"]
    assert "--outcome pressure=value" in command
    assert "--target" not in command
    assert cli("verify", run).out.startswith("proved")
    assert "--outcome" in cli("inspect", run).out
    assert "MultiTaskMixed" in (run / "report.html").read_text(encoding="utf-8")

    cli("predict", run, table, "--probabilities", "-o", tmp_path / "p.csv")
    found, wanted = pd.read_csv(tmp_path / "p.csv"), model.predict(X)
    assert found.columns[:5].tolist() == [f"prediction ({name})" for name in LOSSES]
    assert found["prediction (diabetes)"].tolist() == wanted[:, 1].tolist()
    np.testing.assert_array_equal(found["prediction (death)"], wanted[:, 4].astype(float))
    chances = found[[f"probability of {name} (pain)" for name in PAIN]]
    np.testing.assert_array_equal(chances, model.predict_proba(X)[3])
    assert found.columns[5:7].tolist() == ["probability of no (diabetes)", "probability of yes (diabetes)"]

    new = frame.rename(columns={"pain": "ache", "days": "time"})
    new.to_csv(tmp_path / "new.csv", index=False)
    told = cli("evaluate", run, tmp_path / "new.csv", "-y", "pressure", "-y", "diabetes", "-y", "visits", "-y", "ache",
               "--time", "death=time", "-o", tmp_path / "s.csv", "--predictions", tmp_path / "e.csv")  # fmt: skip
    scores = pd.read_csv(tmp_path / "s.csv").set_index(["task", "measure"]).value
    explained = model.deviance_explained(X, y)
    for name, value in zip(LOSSES, explained, strict=True):
        assert scores[name, "D²"] == pytest.approx(value)
    assert scores["all tasks", "D²"] == pytest.approx(explained.mean())
    assert not scores.isna().any()
    assert {"observed (pain)", "prediction (pain)", "time (death)"} <= {*pd.read_csv(tmp_path / "e.csv").columns}
    assert "--target: the model predicts pressure, diabetes, visits, pain" in cli(
        "evaluate", run, table, "-y", "pressure", code=2).err  # fmt: skip


def test_tasks_of_unlike_kinds(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    table, run, rows = tmp_path / "t.csv", tmp_path / "r", stacked(frame)
    rows.to_csv(table, index=False)
    cli("fit", table, *STACKED, "--cv", 2, "--alphas", 4, "-o", run, "--no-report")
    X, y, task = rows[["x0", "x1", "x2", "x3"]].to_numpy(), labels_of(rows), rows.kind.to_numpy()
    saved = load_model(RunFolder(run)).estimator
    model = ts.MultiTaskMixed(LOSSES, alpha=saved.alpha, categories={"pain": PAIN}, standardize=True)
    model.fit(X, y, task=task)
    np.testing.assert_allclose(saved.coef_, model.coef_, atol=1e-4)
    assert cli("verify", run).out.startswith("proved")
    held_out = pd.read_csv(run / "out_of_fold.csv")
    assert held_out.columns.tolist() == ["row", "task", "observed", "time", "event", "fold", "prediction"]
    np.testing.assert_array_equal(held_out.time, rows.days)
    assert held_out.observed[held_out.task == "pain"].tolist() == rows.label[rows.kind == "pain"].tolist()
    cli("predict", run, table, "--probabilities", "-o", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    here = (rows.kind == "pain").to_numpy()
    np.testing.assert_array_equal(
        found.loc[here, [f"probability of {name} (pain)" for name in PAIN]], saved.predict_proba(X, task=task)[3 - 1]
    )
    assert found["probability of mild (pain)"][~here].isna().all()
    cli("evaluate", run, table, "-o", tmp_path / "s.csv")
    scores = pd.read_csv(tmp_path / "s.csv").set_index(["task", "measure"]).value
    for name, value in zip(saved.tasks_, saved.deviance_explained(X, y, task=task), strict=True):
        assert scores[name, "D²"] == pytest.approx(value)
    rows.loc[rows.kind == "visits", "label"] = "many"
    rows.to_csv(table, index=False)
    told = cli("fit", table, *STACKED, "--alpha", 0.1, "-o", tmp_path / "n", code=1)
    assert "column 'label' is 'many'; task 'visits' predicts numbers" in told.err


def test_a_file_for_each_task(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    rows = stacked(frame)
    for name, own in rows.groupby("kind"):
        unused = "label" if name == "death" else ["days", "died"]
        own.drop(columns="kind").drop(columns=unused).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [tmp_path / f"{name}.csv" for name in LOSSES]
    words = [word for word in STACKED if word not in ("-t", "kind")]
    cli("fit", *files, *words, "--alpha", 0.1, "-o", tmp_path / "r", "--no-report")
    X, task = rows[["x0", "x1", "x2", "x3"]].to_numpy(), rows.kind.to_numpy()
    model = ts.MultiTaskMixed(LOSSES, alpha=0.1, categories={"pain": PAIN}, standardize=True)
    model.fit(X, labels_of(rows), task=task)
    saved = load_model(RunFolder(tmp_path / "r")).estimator
    np.testing.assert_allclose(saved.coef_, model.coef_, atol=1e-12)
    assert cli("verify", tmp_path / "r").out.startswith("proved")
    told = cli("evaluate", tmp_path / "r", files[3], files[4])  # some of the tasks
    assert [line.split()[0] for line in told.out.splitlines()[1:3]] == ["death", "pain"]


def test_ordered_classes(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame = frame.dropna(subset="pain").assign(site=lambda own: np.where(own.index % 2, "a", "b"))
    table, run = tmp_path / "t.csv", tmp_path / "r"
    frame.to_csv(table, index=False)
    words = ("-m", "ordinal", "-y", "pain", "-t", "site", "-x", "x*")
    order = ("--categories", ",".join(PAIN))
    cli("path", table, *words, *order, "--alphas", "0.2,0.05", "-o", run, "--no-report")
    X, pain, site = frame[["x0", "x1", "x2", "x3"]].to_numpy(), frame.pain.to_numpy(), frame.site.to_numpy()
    for alpha in (0.2, 0.05):
        model = ts.MultiTaskOrdinal(alpha, categories=PAIN, standardize=True, tol=1e-10).fit(X, pain, task=site)
        cli("predict", run, table, "--alpha", alpha, "--probabilities", "-o", tmp_path / "p.csv")
        found = pd.read_csv(tmp_path / "p.csv")
        assert found.columns.tolist() == ["task", "prediction", *(f"probability of {name}" for name in PAIN)]
        np.testing.assert_allclose(found.to_numpy()[:, 2:].astype(float), model.predict_proba(X, task=site), atol=1e-3)
    assert cli("verify", run, "--all").out.startswith("proved")
    assert "accuracy" in cli("evaluate", run, table, "--alpha", 0.05).out
    told = cli("fit", table, *words, "--alpha", 0.1, "-o", tmp_path / "w", "--no-report")
    assert "the order of the alphabet: mild < none < severe. If they mean another order, pass --categories" in told.err
    cli("fit", table, *words, "--categories", "a=none,mild,severe", "--categories", "b=none,mild,severe,worst",
        "--cv", 2, "--alphas", 3, "-o", tmp_path / "o", "--no-report")  # fmt: skip
    assert [len(own) for own in load_model(RunFolder(tmp_path / "o")).estimator.thresholds_] == [2, 3]
    frame["pain"] = frame.pain.map({"none": 0, "mild": 1, "severe": 2})
    frame.to_csv(table, index=False)
    cli("fit", table, *words, "--categories", "2,1,0", "--alpha", 0.05, "-o", tmp_path / "n", "--no-report")
    np.testing.assert_allclose(load_model(RunFolder(tmp_path / "n")).estimator.coef_, -model.coef_, atol=1e-3)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--outcome", "pressure=values"], 2, "--outcome: 'values' is no kind of outcome among others; kinds are "
         "value, binary, count, ordered, survival; or a loss: squared, huber"),
        (["--outcome", "pressure"], 2, "--outcome: NAME=KIND, --outcome pressure=count for example"),
        (["--outcome", "pressure=square-root"], 2, "'square-root' is no kind of outcome among others"),
        (["--outcome", "pressure=tweedie:size=2"], 2, "'size' is no option of tweedie"),
        (["--outcome", "pressure=value", "--outcome", "pressure=count"], 2, "--outcome: two kinds for 'pressure'"),
        (["--outcome", "nowhere=value"], 1, "--target: "),
        (["--outcome", "pressure=value", "-y", "visits"], 2, "--outcome: target 'visits' has no kind"),
        (["--outcome", "death=survival"], 2, "--time: name the column of outcome 'death'"),
        (["--outcome", "pressure=value", "--time", "days"], 2, "--time: is for survival outcomes: --outcome "
         "NAME=survival"),
        (["--outcome", "death=survival", "--time", "x=days", "--event", "died"], 2, "there is no survival outcome 'x'"),
        (["--outcome", "pain=ordered"], 1, "are words ('mild', 'none', 'severe'), whose order is not known: pass "
         "--categories"),
        (["--outcome", "pain=ordered", "--categories", "none,mild"], 1, "which is none of the classes"),
        (["--outcome", "visits=ordered", "--categories", "few,many"], 2, "--categories: the labels are numbers"),
        (["--outcome", "visits=count", "--categories", "0,1"], 2, "--categories: no outcome has ordered classes"),
        (["--outcome", "visits=count", "--loss-weights", "0"], 2, "--loss-weights: a number above 0; got '0'"),
        (["--outcome", "visits=count", "--loss-weights", "x=1"], 2, "--loss-weights: there is no task 'x'"),
        (["--outcome", "count", "--outcome", "visits=value", "-t", "diabetes", "-y", "visits"], 2,
         "--outcome: there is no task 'visits'; there are 'no', 'yes'"),
        (["--outcome", "no=count", "-t", "diabetes", "-y", "visits"], 1, "--outcome: task 'yes' has no kind"),
        (["--outcome", "count", "-t", "diabetes"], 2, "--target: name the column with the labels"),
        (["--outcome", "count", "-y", "visits", "--chunk-rows", "9"], 2, "--model mixed needs all rows in memory"),
        (["-m", "mixed", "-y", "visits"], 2, "--outcome: say of each outcome what it is, NAME=KIND"),
        (["-m", "lasso", "-y", "visits", "--outcome", "count"], 2, "--outcome: is for --model mixed"),
        (["-m", "lasso", "-y", "visits", "--categories", "1,2"], 2, "--categories: is for --model ordinal"),
        (["-m", "ordinal", "-y", "visits", "--loss-weights", "2"], 2, "--loss-weights: is for --model mixed"),
        (["-m", "ordinal", "-y", "visits", "--categories", "1"], 2, "--categories: two different classes or more"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(
    cli: CommandLine, frame: pd.DataFrame, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    frame.drop(columns="pressure" if "nowhere" in words else []).to_csv(tmp_path / "t.csv", index=False)
    rest = ("-x", "x*", "--missing", "drop", "--alpha", 0.1, "-o", tmp_path / "r", "--no-report")
    told = cli("fit", tmp_path / "t.csv", *words, *rest, code=code)
    assert said in told.err
    assert not (tmp_path / "r" / "model.json").exists()


def test_one_kind_for_all(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("-x", "x*", "--alpha", 0.1, "--no-report", "-o")
    kind = ("--outcome", "tweedie:power=1.3")
    cli("fit", tmp_path / "t.csv", *kind, "-y", "visits", "-y", "died", *words, tmp_path / "r")
    saved = load_model(RunFolder(tmp_path / "r"))
    assert [vars(loss)["power"] for loss in saved.estimator.losses_] == [1.3, 1.3]
    cli("fit", tmp_path / "t.csv", "--outcome", "survival", "--time", "days", "--event", "died", *words, tmp_path / "s")
    assert load_model(RunFolder(tmp_path / "s")).targets == ["died"]
    assert cli("diff", tmp_path / "r", tmp_path / "s").out


def test_findings(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    halves = ("--permutations", 5, "--pairs", 3, "--no-report", "-o")
    told = cli("stability", tmp_path / "t.csv", *WIDE, *halves, tmp_path / "s")
    assert "stable: x0 (100%)" in told.out
    told = cli("compare", tmp_path / "t.csv", *WIDE, "--no-report", "-o", tmp_path / "c", code=1)
    assert "unlike outcomes have none in common" in told.err
    words = ("--time", "days", "--event", "died", "-t", "diabetes", "-x", "x*", "--alphas", "0.3,0.1", "--cv", 2)
    told = cli("compare", tmp_path / "t.csv", *words, "--outer-folds", 3, "--no-report", "-o", tmp_path / "d")
    assert "over 2 tasks" in told.out
    graded = ("grade", tmp_path / "c.csv", tmp_path / "t.csv", "-y", "visits", "--alpha", 1, "--loss", "ordinal")
    assert "grade in Python takes them" in cli(*graded, code=2).err


def test_streams_refuse_these_outcomes(cli: CommandLine, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    for word in ("time", "event", "outcome", "categories"):
        told = cli("stream", tmp_path / "t.csv", "-y", "visits", f"--{word}", "days", "-o", tmp_path / "s", code=2)
        assert f"--{word}: a stream learns numbers or two classes, row by row" in told.err
    assert "'cox' is not one of" in cli("stream", tmp_path / "t.csv", "-m", "cox", "-o", tmp_path / "s", code=2).err


def test_genotypes(cli: CommandLine, tmp_path: Path) -> None:
    prefix = write_toy_genotypes(tmp_path, n_rows=40, n_variants=60)
    pheno = pd.read_csv(tmp_path / "toy.pheno", sep="\t")
    rng = np.random.default_rng(0)
    n = len(pheno)
    pheno = pheno.assign(years=rng.exponential(5, n).round(2), status=rng.choice([1, 2], n), visits=rng.poisson(2, n),
                         stage=np.resize([2, 10, 3], n), size=rng.normal(size=n).round(3))  # fmt: skip
    first, *others = pheno.cohort.unique()
    pheno["label"] = np.where(pheno.cohort == first, pheno.visits, pheno["size"])
    pheno.loc[2, "visits"] = -9
    pheno.to_csv(tmp_path / "toy.pheno", sep="\t", index=False)
    words = ("fit", "--bfile", prefix, "--pheno", tmp_path / "toy.pheno", "--alpha", 0.2, "--no-report")
    cli(*words, "--outcome", "visits=count", "--outcome", "stage=ordered", "--outcome", "death=survival", "--time",
        "death=years", "--event", "death=status==2", "-o", tmp_path / "r")  # fmt: skip
    X = ts.read_plink(str(prefix))
    y = {
        "visits": pheno.visits.where(pheno.visits >= 0).to_numpy(),
        "stage": pheno.stage.to_numpy(),
        "death": ts.survival(pheno.years, pheno.status == 2),
    }
    losses = {"visits": "poisson", "stage": "ordinal", "death": "cox"}
    model = ts.MultiTaskMixed(losses, alpha=0.2, standardize=True).fit(X, y)
    np.testing.assert_allclose(load_model(RunFolder(tmp_path / "r")).estimator.coef_, model.coef_, atol=1e-12)
    cli(*words, "-m", "ordinal", "--pheno-name", "stage", "-o", tmp_path / "o")
    assert load_model(RunFolder(tmp_path / "o")).estimator.classes_.tolist() == [2, 3, 10]
    cli(*words, "--pheno-name", "label", "-t", "cohort", "--outcome", f"{first}=count", "--outcome", "value", "-o",
        tmp_path / "t")  # fmt: skip
    losses = {first: "poisson", **dict.fromkeys(others, "squared")}
    model = ts.MultiTaskMixed(losses, alpha=0.2, standardize=True)
    model.fit(X, pheno.label.to_numpy(), task=pheno.cohort.to_numpy())
    np.testing.assert_allclose(load_model(RunFolder(tmp_path / "t")).estimator.coef_, model.coef_, atol=1e-12)
