"""Times to an event on the command line: columns, messages, predictions, scores; of tables and of genotypes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve import verify
from tasksieve.datasets import write_toy_genotypes
from tasksieve.runs import RunFolder, load_model

FEATURES = ["-x", "[abcd]"]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Two sites; column a matters. Statuses in several codes, two endpoints, delayed entry."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 4))
    event, censored = 100 * np.exp(-X[:, 0]) * rng.exponential(1, 70), rng.exponential(150, 70)
    days = np.round(np.minimum(event, censored) + 0.1, 1)
    died = (event <= censored).astype(int)
    return pd.DataFrame(X, columns=list("abcd")).assign(
        site=rng.choice(["A", "B"], 70),
        sex=rng.choice(["f", "m"], 70),
        days=days,
        died=died,
        status=died + 1,
        fate=np.where(died, "dead", "alive"),
        since=0.3 * days,
        months=np.round(days / 30, 2),
        relapsed=rng.choice([0, 1], 70),
    )


@pytest.fixture
def table(frame: pd.DataFrame, tmp_path: Path) -> Path:
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_a_fit_is_that_of_python(cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    words = (
        "--time",
        "days",
        "--event",
        "status==2",
        "--entry",
        "since",
        "--strata",
        "sex",
        "-t",
        "site",
        *FEATURES,
    )
    told = cli("fit", table, *words, "--ties", "breslow", "--alpha", 0.1, "-o", tmp_path / "r", "--no-report")
    assert "MultiTaskCox: 70 rows, 2 tasks, 4 features" in told.out
    y = ts.survival(frame.days, frame.died, frame.since, frame.sex)
    X, site = frame[list("abcd")].to_numpy(), frame.site.to_numpy()
    model = ts.MultiTaskCox(0.1, ties="breslow", standardize=True).fit(X, y, task=site)
    saved = load_model(RunFolder(tmp_path / "r"))
    np.testing.assert_allclose(saved.estimator.coef_, model.coef_, atol=1e-12)
    assert saved.estimator.ties == "breslow"
    assert saved.targets == ["status"]
    command = json.loads((tmp_path / "r" / "data.json").read_text())["reproduce"]
    assert "--time days --event status==2 --entry since --strata sex" in command
    assert "--target" not in command
    words = words[2:]  # the model is meant by --event, and the words of another column say the same
    cli("fit", table, "--time", "days", "--event", "fate==dead", *words[2:], "--ties", "breslow", "--alpha", 0.1, "-o",
        tmp_path / "w", "--no-report")  # fmt: skip
    np.testing.assert_array_equal(
        load_model(RunFolder(tmp_path / "w")).estimator.coef_, saved.estimator.coef_
    )


def test_probabilities_proof_and_grade(cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    run, words = tmp_path / "r", ("--time", "days", "--event", "died", "--strata", "sex", "-t", "site", *FEATURES)
    cli("fit", table, *words, "--alpha", 0.1, "-o", run, "--no-report", "--save-problem", tmp_path / "p.npz")
    assert cli("verify", run).out.startswith("proved")
    problem = ts.load_problem(tmp_path / "p.npz")
    assert problem.y.dtype.names == ("event", "time", "stratum")
    X, site = frame[list("abcd")].to_numpy(), frame.site.to_numpy()
    model = problem.fit()
    cli("predict", run, table, "--times", "20,100", "-o", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.columns.tolist() == ["task", "prediction", "survival at 20", "survival at 100"]
    wanted = model.predict_survival_function(X, task=site, times=[20.0, 100.0], strata=frame.sex.to_numpy())
    np.testing.assert_allclose(found.to_numpy()[:, 2:].astype(float), wanted)
    told = cli("grade", run / "coefficients.csv", table, "--loss", "cox", *words, "--alpha", 0.1, "--standardize")
    assert f"objective {model.objective_:.6g}"[:14] in told.out
    assert "--times: finite and not negative" in cli("predict", run, table, "--times", "-1", code=2).err
    assert "--time: is for --loss cox" in cli("grade", run / "coefficients.csv", table, "-y", "a", "--time", "days",
                                              "--alpha", 0.1, code=2).err  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        ("--time", "days", "--event", "status==2", "--entry", "since", "--strata", "sex", "-t", "site"),
        ("--time", "death=days", "--event", "death=fate==dead", "--time", "back=months", "--event", "back=relapsed"),
        ("--time", "days", "--event", "truly", "--weights", "months"),
    ],
)
def test_the_certificate_says_how_the_table_was_read(
    cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path, words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    frame["truly"] = frame.died == 1
    frame["relapsed"] = frame.relapsed.astype(object).where(frame.index != 3, "NA")
    frame.to_csv(table, index=False)
    run = tmp_path / "r"
    cli("fit", table, *words, *FEATURES, "--alphas", 3, "-o", run, "--no-report")
    proof = str(run / "certificate.npz")
    assert verify.main([proof, str(table)]) == 0, capsys.readouterr().out
    cli("verify", run, "--all")
    frame.loc[0, "days"] += 0.1
    frame.to_csv(tmp_path / "later.csv", index=False)
    assert verify.main([proof, str(tmp_path / "later.csv")]) == 1
    assert "y, weights or offsets are not those" in capsys.readouterr().out


def test_held_out_rows_and_new_rows(
    cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path
) -> None:
    run = tmp_path / "r"
    cli(
        "fit",
        table,
        "--time",
        "days",
        "--event",
        "died",
        "-t",
        "site",
        *FEATURES,
        "--cv",
        2,
        "--alphas",
        5,
        "-o",
        run,
    )
    rows = pd.read_csv(run / "out_of_fold.csv")
    assert rows.columns.tolist() == ["row", "task", "time", "event", "fold", "prediction"]
    np.testing.assert_array_equal(rows.time, frame.days)
    np.testing.assert_array_equal(rows.event, frame.died)
    assert "concordance" in pd.read_csv(run / "cv_quality.csv").measure.tolist()
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "What predicts died?" in page
    assert "SurvivalColumns(time=" in page
    frame.rename(columns={"days": "time", "died": "death"}).to_csv(tmp_path / "new.csv", index=False)
    told = cli("evaluate", run, tmp_path / "new.csv", "--time", "time", "--event", "death", "-o", tmp_path / "s.csv",
               "--predictions", tmp_path / "p.csv")  # fmt: skip
    assert "null model (baseline hazards only)" in cli("evaluate", run, table).out
    assert "flatter" not in told.err
    found, scores = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(tmp_path / "s.csv")
    for site, own in found.groupby("task"):
        earlier = (own.time.to_numpy()[:, None] < own.time.to_numpy()) & (own.event.to_numpy()[:, None] == 1)
        z = own.prediction.to_numpy()
        right = np.where(z[:, None] > z, 1.0, np.where(z[:, None] == z, 0.5, 0.0))
        value = scores[(scores.task == site) & (scores.measure == "concordance")].value.item()
        assert value == pytest.approx(right[earlier].mean())


def test_held_out_rows_have_entries_and_strata(
    cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path
) -> None:
    words = ("--time", "days", "--event", "died", "--entry", "since", "--strata", "sex", *FEATURES)
    cli("fit", table, *words, "--cv", 2, "--alphas", "0.3,0.1", "-o", tmp_path / "r", "--no-report")
    rows = pd.read_csv(tmp_path / "r" / "out_of_fold.csv")
    assert rows.columns.tolist() == ["row", "time", "event", "entry", "stratum", "fold", "prediction"]
    np.testing.assert_array_equal(rows.entry, frame.since)
    assert rows.stratum.tolist() == frame.sex.tolist()


def test_several_endpoints_are_tasks(
    cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.loc[:4, "months"] = np.nan
    frame.to_csv(table, index=False)
    words = ("--time", "death=days", "--event", "death=died", "--time", "relapse=months", "--event",
             "relapse=relapsed", *FEATURES, "--alpha", 0.1, "--no-report")  # fmt: skip
    told = cli("fit", table, *words, "-o", tmp_path / "r")
    assert "5 of 140 labels are not observed" in told.err
    y = [ts.survival(frame.days, frame.died), ts.survival(frame.months, frame.relapsed)]
    model = ts.MultiTaskCox(0.1, standardize=True).fit(frame[list("abcd")].to_numpy(), y)
    saved = load_model(RunFolder(tmp_path / "r"))
    np.testing.assert_allclose(saved.estimator.coef_, model.coef_, atol=1e-12)
    assert saved.targets == ["death", "relapse"]
    assert pd.read_csv(tmp_path / "r" / "intercepts.csv").task.tolist() == ["death", "relapse"]
    cli("predict", tmp_path / "r", table, "-o", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv").columns.tolist() == ["prediction (death)", "prediction (relapse)"]
    assert cli("evaluate", tmp_path / "r", table).out.splitlines()[1].split()[:2] == ["death", "70"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--time", "days"], 2, "--event: name the column that says whether a time is that of an event"),
        (["--event", "died"], 2, "--time: name the column with the times of events"),
        (["--time", "days", "--event", "status"], 1, "holds 1 and 2, as R's survival and PLINK write a status (2 is an "
         "event): --event 'status==2'"),
        (["--time", "days", "--event", "fate"], 1, "holds words ('alive', 'dead'): say which of them is an event, "
         "--event 'fate==alive' or --event 'fate==dead'"),
        (["--time", "days", "--event", "fate==gone"], 1, "no row of column 'fate' of"),
        (["--time", "a", "--event", "died"], 1, "times are not negative"),
        (["--time", "days", "--event", "died", "--entry", "days"], 1, "which must be before its time ('days')"),
        (["--time", "days", "--event", "died", "-y", "a"], 2, "--target: --model cox has --time and --event in its "
         "place"),
        (["--time", "days", "--time", "x=months", "--event", "died"], 2, "--time: say of which outcome, --time "
         "NAME=days"),
        (["--time", "x=days", "--event", "y=died"], 2, "--event: name the column of outcome 'x'"),
        (["--time", "days", "--event", "died", "--strata", "z=sex"], 2, "--strata: there is no outcome 'z'"),
        (["--time", "days", "--event", "nowhere"], 1, "--event: "),
        (["-y", "a", "--model", "lasso", "--time", "days"], 2, "--time: is for --model cox"),
        (["--time", "days", "--event", "died", "--chunk-rows", "10"], 2, "compares every row with all that are at "
         "risk"),
        (["--time", "days", "--event", "died", "--task", "days"], 1, "--task: column 'days' is also the time"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(
    cli: CommandLine, table: Path, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    told = cli(
        "fit", table, *words, *FEATURES, "--alpha", 0.1, "-o", tmp_path / "r", "--no-report", code=code
    )
    assert said in told.err
    assert not (tmp_path / "r" / "model.json").exists()


def test_rows_without_a_time(cli: CommandLine, table: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.loc[3, "days"] = np.nan
    frame.loc[6, "died"] = np.nan
    frame.to_csv(table, index=False)
    words = (
        "fit",
        table,
        "--time",
        "days",
        "--event",
        "died",
        *FEATURES,
        "--alpha",
        0.1,
        "--no-report",
        "-o",
    )
    told = cli(*words, tmp_path / "r", code=1)
    assert "2 missing value(s): row 4, column 'days'; row 7, column 'died'. --missing drop" in told.err
    told = cli(*words, tmp_path / "r", "--missing", "drop")
    assert "2 of 70 rows left out for missing values: row 4, 7" in told.err


def test_what_a_run_of_another_model_refuses(cli: CommandLine, table: Path, tmp_path: Path) -> None:
    cli("fit", table, "-y", "days", *FEATURES, "--alpha", 0.1, "-o", tmp_path / "r", "--no-report")
    assert "--times: is for --model cox" in cli("predict", tmp_path / "r", table, "--times", "1", code=2).err
    assert "--strata: is for --times" in cli("predict", tmp_path / "r", table, "--strata", "sex", code=2).err
    assert (
        "--event: is for a survival model"
        in cli("evaluate", tmp_path / "r", table, "--event", "died", code=2).err
    )


def test_genotypes(cli: CommandLine, tmp_path: Path) -> None:
    prefix = write_toy_genotypes(tmp_path, n_rows=40, n_variants=60)
    pheno = pd.read_csv(tmp_path / "toy.pheno", sep="\t")
    rng = np.random.default_rng(0)
    pheno["years"], pheno["status"] = rng.exponential(5, len(pheno)).round(2), rng.choice([1, 2], len(pheno))
    pheno.loc[2, "years"] = -9
    pheno.to_csv(tmp_path / "toy.pheno", sep="\t", index=False)
    words = (
        "--bfile",
        prefix,
        "--pheno",
        tmp_path / "toy.pheno",
        "-t",
        "cohort",
        "--alpha",
        0.3,
        "--no-report",
    )
    told = cli("fit", *words, "--time", "years", "--event", "status", "-o", tmp_path / "r", code=1)
    assert "column 'status' of --pheno holds 1 and 2" in told.err
    told = cli("fit", *words, "--time", "years", "--event", "status==2", "-o", tmp_path / "r")
    assert "left out: 1 people without a phenotype" in told.err
    used = pheno.drop(index=2)
    X = ts.read_plink(str(prefix), keep=used.IID.astype(str).tolist())
    assert X.samples["iid"].astype(str).tolist() == used.IID.astype(str).tolist()
    y = ts.survival(used.years, used.status == 2)
    model = ts.MultiTaskCox(0.3, standardize=True).fit(X, y, task=used.cohort.to_numpy())
    np.testing.assert_allclose(load_model(RunFolder(tmp_path / "r")).estimator.coef_, model.coef_, atol=1e-12)
    pheno.loc[5, "years"] = -3
    pheno.to_csv(tmp_path / "toy.pheno", sep="\t", index=False)
    told = cli("fit", *words, "--time", "years", "--event", "status==2", "-o", tmp_path / "n", code=1)
    person = f"{pheno.FID[5]} {pheno.IID[5]}" if "FID" in pheno else str(pheno.IID[5])
    assert f"--time: --pheno: {person}, column 'years' is -3; times are not negative" in told.err
