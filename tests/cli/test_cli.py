"""The command line, end to end."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, command, regression_csv

import tasksieve as ts
from tasksieve.report.content import ReportContent
from tasksieve.runs import RunFolder, load_model
from tasksieve.tables import prepare, read_table

Reports = list[ReportContent]
ANSWER = (
    "coefficients.csv",
    "coefficients.parquet",
    "intercepts.csv",
    "model.npz",
    "model.json",
    "cv_scores.csv",
)

BY_HAND = """hospital,ward,dose,age,recovery
A,surgery,1.0,30,1.9
A,surgery,2.0,41,4.1
A,general,3.0,52,5.8
A,general,4.0,39,8.2
A,surgery,5.0,47,9.9
A,general,6.0,33,12.1
B,surgery,1.5,60,1.4
B,general,2.5,45,2.6
B,general,3.5,37,3.4
B,surgery,4.5,58,4.6
B,general,5.5,44,5.4
B,surgery,6.5,50,6.6
"""


# --- fit ---------------------------------------------------------------------------------------------------------


def test_fit_on_a_csv_written_by_hand(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = tmp_path / "trial.csv", tmp_path / "run"
    table.write_text(BY_HAND)
    result = cli(
        "fit", table, "--target", "recovery", "--task", "hospital", "--cv", 3, "--alphas", 20, "--out", run
    )
    assert "strongest: dose" in result.out
    folder = RunFolder(run)
    folder.verify()
    # the same answer as the library's, to the bit
    data = pd.read_csv(table)
    X = np.column_stack([data.ward == "surgery", data.dose, data.age]).astype(float)
    model = ts.MultiTaskLassoCV(n_alphas=20, cv=3, standardize=True).fit(
        X, data.recovery.to_numpy(), task=data.hospital.to_numpy(str)
    )
    coefficients = pd.read_parquet(run / "coefficients.parquet")
    names = ["ward=surgery", "dose", "age"]
    for (task, feature), group in coefficients.groupby(["task", "feature"]):
        assert group.coefficient.item() == model.coef_[["A", "B"].index(task), names.index(feature)]
    assert len(coefficients) == np.count_nonzero(model.coef_)
    pd.testing.assert_frame_equal(coefficients, pd.read_csv(run / "coefficients.csv"), check_dtype=False)
    np.testing.assert_array_equal(pd.read_csv(run / "cv_scores.csv").to_numpy()[:, 1:], model.cv_scores_)
    np.testing.assert_array_equal(pd.read_csv(run / "path.csv").alphas, model.path_.alphas)
    certificate = json.loads((run / "certificate.json").read_text())
    assert certificate["dual_gap"] == model.dual_gap_
    assert certificate["relative_gap"] <= certificate["tol"] == 1e-6
    assert certificate["converged"] is True
    # and what is asked of a run folder
    for name in (
        "config.json",
        "versions.json",
        "timing.json",
        "log.txt",
        "report.html",
        "model.npz",
        "intercepts.csv",
    ):
        assert (run / name).is_file(), name
    content = reports[-1]
    assert content.features.tolist() == names
    assert content.tasks.tolist() == ["A", "B"]
    np.testing.assert_array_equal(content.coef.toarray(), model.coef_)
    assert content.alphas is not None
    assert content.alphas[content.chosen] == model.alpha_
    assert "“recovery”" in content.asked
    assert "2 tasks" in content.asked
    assert content.reproduce.startswith("tasksieve fit ")
    assert content.cv_scores is not None
    assert content.cv_scores.shape == (20, 3)
    assert content.quality[0].rows.tolist() == [6, 6]


def test_the_command_of_the_report_reproduces_the_run(
    cli: CommandLine, reports: Reports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shlex

    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    cli("fit", table, "-y", "y", "-t", "region", "-m", "elastic-net", "--l1-ratio", "0.5,0.9", "--alphas", 8, "--cv", 3,
        "--selection-rule", "1se", "--eps", 0.05, "--standardize", "-x", "[a-d]", "-x", "city", "-o", run)  # fmt: skip
    words = shlex.split(reports[-1].reproduce)
    assert words[:3] == ["tasksieve", "fit", "t.csv"]
    assert words[-1] == "run"
    monkeypatch.chdir(tmp_path)  # a report names files without their folders
    again = tmp_path / "again"
    cli(*words[1:-1], again)
    assert_same_answer(run, again)
    # and so does its configuration
    third = tmp_path / "third"
    cli("fit", "--config", run / "config.json", "--out", third)
    assert_same_answer(run, third)


def assert_same_answer(one: Path, other: Path) -> None:
    for name in ANSWER:
        if (one / name).exists():
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "options", "make"),
    [
        ("lasso", ["--alpha", 0.1], regression_csv),
        (
            "lasso",
            ["--alpha", 0.1, "--positive", "--no-intercept", "--task-weights", "balanced"],
            regression_csv,
        ),
        ("elastic-net", ["--cv", 3, "--alphas", "0.5,0.1", "--l1-ratio", 0.7], regression_csv),
        ("logistic", ["--alpha", 0.05], classification_csv),
        ("logistic", ["--alphas", 5, "--cv", 3], classification_csv),
        ("sparse-group", ["--alpha", 0.1, "--l1", 0.5, "--group", 0.5], regression_csv),
        ("sparse-group", ["--alpha", 0.05, "--loss", "logistic"], classification_csv),
        ("graph-svm", ["--C", 2.0, "--graph", "complete", "--loss", "squared"], regression_csv),
        ("graph-svm", ["--graph", "complete", "--class-weight", "balanced"], classification_csv),
        ("calibrated", ["--alpha", 0.1], regression_csv),
        ("calibrated", ["--alphas", 5, "--cv", 3, "--l2", "0,0.01"], regression_csv),
        ("calibrated", ["--alpha", "universal"], regression_csv),
        ("owl", ["--alpha", 0.1, "--owl-weights", "slope"], regression_csv),
        ("owl", ["--alphas", 5, "--cv", 3], regression_csv),
    ],
)
def test_models_fit_predict_and_come_back(
    cli: CommandLine, reports: Reports, tmp_path: Path, model: str, options: list[Any], make: Any
) -> None:
    table, run = make(tmp_path / "t.csv"), tmp_path / "run"
    target, task = ("y", "region") if make is regression_csv else ("state", "site")
    cli("fit", table, "-y", target, "-t", task, "-m", model, *options, "--out", run)
    saved = load_model(RunFolder(run))
    classes = make is classification_csv
    problem = prepare(read_table(table), target=[target], task=task, classes=classes)
    expected = saved.estimator.predict(problem.X, task=problem.task)
    assert saved.estimator.score(problem.X, problem.y, task=problem.task) > 0.6
    cli("predict", run, table, "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.task.astype(str).tolist() == [str(label) for label in problem.task]
    if classes:
        assert found.prediction.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(found.prediction, expected, rtol=1e-12)
    wide = cli("predict", run, table, "--all-tasks").out.splitlines()
    assert len(wide) == len(expected) + 1
    assert wide[0].count("prediction (") == len(saved.estimator.tasks_)
    assert len(reports) == 1
    assert reports[0].certificate["relative_gap"] <= 1e-6


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "how"),
    [
        *((model, ["--alpha", 0.2]) for model in ("lasso", "calibrated", "logistic")),
        *((model, ["--alphas", 5, "--cv", 3]) for model in ("lasso", "calibrated", "logistic")),
        ("graph-svm", ["--C", 0.2]),
    ],
)
def test_the_certificate_is_in_the_units_of_the_model(
    cli: CommandLine, reports: Reports, tmp_path: Path, model: str, how: list[Any]
) -> None:
    """The gap is measured against the objective of the empty model, each in the model's own units."""
    make, target, task = (regression_csv, "y", "region")
    if model == "logistic":
        make, target, task = (classification_csv, "state", "site")
    table, run = make(tmp_path / "t.csv"), tmp_path / "run"
    cli("fit", table, "-y", target, "-t", task, "-m", model, *how, "-o", run)
    problem = prepare(read_table(table), target=[target], task=task, classes=model == "logistic")
    estimator = load_model(RunFolder(run)).estimator
    fitted = estimator.fit(problem.X, problem.y, task=problem.task)
    certificate = json.loads((run / "certificate.json").read_text())
    if model == "graph-svm":
        null = fitted.null_objective_
    else:
        largest = fitted.alpha_max(problem.X, problem.y, task=problem.task)
        null = fitted.set_params(alpha=1.01 * largest).fit(problem.X, problem.y, task=problem.task).objective_
    assert certificate["null_objective"] == pytest.approx(null, rel=1e-9)
    assert certificate["relative_gap"] == certificate["dual_gap"] / certificate["null_objective"]
    if "--cv" in how:
        words = {"lasso": "squared error", "calibrated": "root mean squared error", "logistic": "logistic loss"}
        assert reports[0].cv_measure == f"held-out {words[model]}"
        assert json.loads((run / "data.json").read_text())["cv_measure"] == reports[0].cv_measure


def test_a_mistake_does_not_overwrite_a_run(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    fit = ("fit", table, "-y", "y", "-t", "region", "--out", run)
    cli(*fit, "--alpha", 0.1)
    for words in (["--tol", -1, "--alpha", 0.1], ["--alpha", -1], ["--screening", "magic"]):
        assert " must be " in cli(*fit, *words, "--overwrite", code=1).err
        RunFolder(run).verify()
    stream = ("stream", table, "-y", "y", "-x", "a", "--overwrite", "--out", run)
    for words, code in ((["--gamma", 0], 1), (["--checkpoint-every", 0], 2)):
        cli(*stream, *words, code=code)
        RunFolder(run).verify()


def test_multinomial_owl(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    cli("fit", table, "-y", "region", "-m", "multinomial-owl", "--alpha", 0.01, "--out", run)
    predictions = cli("predict", run, table).out.split()[1:]
    assert set(predictions) <= {"north", "south", "east"}
    assert len(predictions) == 90
    assert reports[0].tasks.tolist() == ["east", "north", "south"]
    cli("fit", table, "-y", "region", "-t", "city", "-m", "multinomial-owl", "--out", tmp_path / "x", code=2)
    cli(
        "path",
        table,
        "-y",
        "region",
        "-m",
        "multinomial-owl",
        "--alphas",
        "0.1,0.01",
        "--out",
        tmp_path / "path",
    )
    again = cli("predict", tmp_path / "path", table, "--alpha", 0.01).out.split()[1:]
    assert again == predictions
    cli(
        "fit",
        table,
        "-y",
        "region",
        "-m",
        "multinomial-owl",
        "--alphas",
        5,
        "--cv",
        3,
        "--out",
        tmp_path / "cv",
    )
    assert reports[-1].row_noun == "class"


def test_several_targets_share_a_matrix(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    frame = pd.read_csv(table)
    frame["z"] = -frame.y
    frame.loc[3, "z"] = np.nan
    frame.to_csv(table, index=False)
    cli("fit", table, "-y", "y", "-y", "z", "-x", "[a-f]", "--alpha", 0.1, "-o", run)
    assert reports[0].tasks.tolist() == ["y", "z"]
    assert any("not observed" in warning for warning in reports[0].warnings)
    predicted = pd.read_csv(run / "coefficients.csv").pivot(
        index="feature", columns="task", values="coefficient"
    )
    np.testing.assert_allclose(predicted.y, -predicted.z, atol=0.05)
    header = cli("predict", run, table).out.splitlines()[0]
    assert header == "prediction (y),prediction (z)"


def test_weights_and_missing_values(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    frame = pd.read_csv(table)
    frame["w"] = 1.0
    double = frame.assign(w=2.0)
    double.loc[0, "a"] = np.nan
    double.to_csv(tmp_path / "holes.csv", index=False)
    fit = ("fit", tmp_path / "holes.csv", "-y", "y", "-t", "region", "--weights", "w", "--alpha", 0.1)
    refused = cli(*fit, "--out", tmp_path / "r", code=1)
    assert "row 1, column 'a'" in refused.err
    assert not (tmp_path / "r").exists()
    cli(*fit, "--out", tmp_path / "drop", "--missing", "drop")
    frame.drop(index=0).to_csv(tmp_path / "short.csv", index=False)
    cli("fit", tmp_path / "short.csv", "-y", "y", "-t", "region", "-x", "[a-f]", "-x", "city", "--alpha", 0.1,
        "--out", tmp_path / "short")  # fmt: skip
    one, other = (
        pd.read_csv(tmp_path / name / "coefficients.csv").sort_values(["task", "feature"])
        for name in ("drop", "short")
    )
    np.testing.assert_allclose(one.coefficient, other.coefficient, rtol=1e-6)
    cli(*fit, "--out", tmp_path / "mean", "--missing", "mean")
    result = cli("predict", tmp_path / "mean", tmp_path / "holes.csv", "--missing", "mean")
    assert all(line.split(",")[1] for line in result.out.splitlines())
    result = cli("predict", tmp_path / "mean", tmp_path / "holes.csv", "--missing", "drop")
    assert result.out.splitlines()[1].endswith(",")  # aligned: the row is there, its prediction is empty
    assert "1 of 90 rows" in result.err


def test_graph_from_files(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    (tmp_path / "edges.csv").write_text("from,to,weight\nnorth,south,1\nsouth,east,0.5\n")
    (tmp_path / "matrix.csv").write_text("east,north,south\n0,0,0.5\n0,0,1\n0.5,1,0\n")
    fit = ("fit", table, "-y", "y", "-t", "region", "-m", "graph-svm", "--C", 0.1)
    cli(*fit, "--graph", tmp_path / "edges.csv", "--out", tmp_path / "one")
    cli(*fit, "--graph", tmp_path / "matrix.csv", "--out", tmp_path / "two")
    cli(*fit, "--graph", "none", "--out", tmp_path / "three")
    one, two, three = (pd.read_csv(tmp_path / name / "coefficients.csv") for name in ("one", "two", "three"))
    one, two, three = (frame.sort_values(["task", "feature"]).coefficient for frame in (one, two, three))
    np.testing.assert_allclose(one, two, atol=1e-3)
    assert np.abs(one.to_numpy() - three.to_numpy()).max() > 0.01
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    assert "square matrix" in cli(*fit, "--graph", tmp_path / "bad.csv", "-o", tmp_path / "r", code=1).err
    assert (
        "no such file"
        in cli(*fit, "--graph", tmp_path / "none.csv", "-o", tmp_path / "r", code=1).err.lower()
    )


# --- path, report, other commands --------------------------------------------------------------------------------


def test_path_and_prediction_with_one_of_its_values(
    cli: CommandLine, reports: Reports, tmp_path: Path
) -> None:
    table, run = classification_csv(tmp_path / "t.csv"), tmp_path / "run"
    cli("path", table, "-y", "state", "-t", "site", "-m", "logistic", "--alphas", 12, "-o", run)
    path = pd.read_csv(run / "path.csv")
    alphas = path.alphas
    assert path.status.tolist() == ["converged"] * 12
    assert load_model(RunFolder(run)).estimator.status_ is ts.Status.CONVERGED
    assert reports[0].chosen == 11
    assert "without a choice" in cli("predict", run, table, code=2).err
    assert "nearest is" in cli("predict", run, table, "--alpha", 1e9, code=1).err
    found = cli("predict", run, table, "--alpha", alphas[8], "--probabilities").out.splitlines()
    assert found[0] == "task,prediction,probability of sick,probability of well"
    problem = prepare(read_table(table), target=["state"], task="site", classes=True)
    model = ts.MultiTaskLogisticRegression(alpha=alphas[8], standardize=True)
    model.fit(problem.X, problem.y, task=problem.task)
    expected = model.predict_proba(problem.X, task=problem.task)
    np.testing.assert_allclose([float(line.split(",")[2]) for line in found[1:]], expected[:, 0], atol=1e-3)
    assert [line.split(",")[1] for line in found[1:]] == model.predict(problem.X, task=problem.task).tolist()


def test_report_is_rebuilt_and_checked(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    cli("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--out", run, "--no-report")
    assert reports == []
    assert not (run / "report.html").exists()
    assert cli("report", run).out.strip() == str(run / "report.html")
    assert len(reports) == 1
    RunFolder(run).verify()
    (run / "model.npz").write_bytes(b"other")
    assert "has changed" in cli("report", run, code=1).err
    assert "no run folder" in cli("report", tmp_path / "none", code=1).err


def test_without_a_report_writer_nothing_is_begun(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    fit = ("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--out", run)
    result = cli(*fit, code=1)
    assert "tasksieve[report]" in result.err
    assert not run.exists()
    cli(*fit, "--no-report")
    assert "tasksieve[report]" in cli("report", run, code=1).err


def test_a_real_report(cli: CommandLine, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    cli("fit", table, "-y", "y", "-t", "region", "--alphas", 10, "--cv", 3, "--out", run)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<html" in page
    selected = set(pd.read_csv(run / "coefficients.csv").feature)
    assert selected & {"city=Oslo", "city=Bonn"}  # the rarer of them is there
    assert all(name in page for name in selected)
    RunFolder(run).verify()


def test_datasets_are_listed_and_written(cli: CommandLine, tmp_path: Path) -> None:
    assert "load-digits-tasks" in cli("datasets").out
    assert "Parameters" in cli("datasets", "make-wang-synthetic").out
    for ending in ("csv", "parquet", "npz"):
        file = tmp_path / f"w.{ending}"
        cli("datasets", "make-wang-synthetic", "-o", file, "--set", "n_tasks=3", "--set", "n_rows=5",
            "--set", "n_features=7", "--set", "random_state=0")  # fmt: skip
        problem = prepare(read_table(file), target=["y"], task="task")
        expected = ts.datasets.make_wang_synthetic(n_tasks=3, n_rows=5, n_features=7, random_state=0)
        np.testing.assert_array_equal(problem.X, expected.X)
        np.testing.assert_array_equal(problem.y, expected.y)
        np.testing.assert_array_equal(problem.task, expected.task)
    windows = ts.datasets.make_dna_windows(8, random_state=0).X
    for ending in ("csv", "parquet"):
        file = tmp_path / f"windows.{ending}"
        cli("datasets", "make-dna-windows", "-o", file, "--set", "n_rows=8", "--set", "random_state=0")
        frame = pd.read_csv(file) if ending == "csv" else pd.read_parquet(file)
        assert frame["text"].tolist() == [text.decode() for text in windows]
    assert "strings" in cli("datasets", "make-dna-windows", "-o", tmp_path / "windows.npz", code=2).err
    assert "no data set" in cli("datasets", "nonsense", code=2).err
    assert "--set" in cli("datasets", "make-wang-synthetic", "-o", file, "--set", "rows=5", code=2).err


@pytest.mark.slow
def test_demo(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    result = cli("demo", "--out", tmp_path / "demo")
    assert "10 tasks, 64 features" in result.out
    assert reports[0].tasks.tolist() == [str(digit) for digit in range(10)]
    RunFolder(tmp_path / "demo" / "run").verify()


def test_info_and_version(cli: CommandLine) -> None:
    out = cli("info").out
    for words in (ts.__version__, "kernels", "threads", "model          lasso", "extra cli"):
        assert words in out
    assert cli("--version").out.strip() == ts.__version__


PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"^\$ tasksieve (.*)$", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_commands_of_the_documentation_have_these_options(words: list[str]) -> None:
    """As the command line reads them; that they work is seen in the slow run."""
    name, *rest = words
    found = command().commands[name].make_context(name, rest, resilient_parsing=False)
    assert found.params


@pytest.mark.slow
def test_the_commands_of_the_documentation_work(
    cli: CommandLine, reports: Reports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = re.search(r"^```text\n(hospital,.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert table is not None
    (tmp_path / "trial.csv").write_text(table[1])
    later = re.search(r"^```text\n(patient,.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert later is not None
    (tmp_path / "later.csv").write_text(later[1])
    (tmp_path / "another.csv").write_text(table[1].replace("9.9", "9.8"))  # as the page does, with sed
    header, *rows = table[1].strip().split("\n")
    (tmp_path / "hospitals").mkdir()
    for name in "AB":  # the same rows, a file for each task
        own = [line.partition(",")[2] for line in (header, *rows) if line.startswith(("hospital,", name))]
        (tmp_path / "hospitals" / f"{name}.csv").write_text("\n".join(own) + "\n")
    assert len(COMMANDS) >= 8
    for words in COMMANDS:
        cli(*words, code=1 if "another.csv" in words else 0)


def test_options_are_in_the_documentation() -> None:
    for key in OPTIONS_IN_DOCS:
        assert f"`{key}" in PAGE, key


OPTIONS_IN_DOCS = (
    "--target",
    "--alpha",
    "--missing drop",
    "--resume",
    "--overwrite",
    "--graph complete",
    "--weights",
    "--seed",
    "--row-groups",
    "--no-shuffle",
    "--pairs",
    "--pfer",
    "--threshold",
    "--assumption none",
    "--permutations",
    "--outer-folds",
)


# --- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--target", "y"], 2, "--out"),
        (["--out", "r"], 2, "--target"),
        (["-y", "y", "-o", "r", "--l1-ratio", "0.5"], 2, "--model lasso has no such option"),
        (["-y", "y", "-o", "r", "--graph", "complete"], 2, "has no such option"),
        (["-y", "y", "-o", "r", "-m", "graph-svm", "--cv", "5"], 2, "has no path"),
        (["-y", "y", "-o", "r", "-m", "graph-svm", "--alpha", "5"], 2, "--alpha"),
        (["-y", "y", "-o", "r", "--alpha", "1", "--cv", "5"], 2, "--alpha gives one value"),
        (["-y", "y", "-o", "r", "--alphas", "a,b"], 2, "--alphas"),
        (["-y", "y", "-o", "r", "--alpha", "universal"], 2, "--alpha"),
        (["-y", "y", "-o", "r", "--alpha", "1,2"], 2, "Several are for --alphas"),
        (["-y", "y", "-o", "r", "--cv", "1"], 2, "at least 2"),
        (["-y", "y", "-o", "r", "--resume", "--overwrite"], 2, "one or the other"),
        (
            ["-y", "y", "-o", "r", "-m", "elastic-net", "--l1-ratio", "0.1,0.5", "--alpha", "1"],
            2,
            "--cv to choose",
        ),
        (["-y", "q", "-o", "r"], 1, "no column 'q'"),
        (["-y", "y", "-t", "q", "-o", "r"], 1, "no column 'q'"),
        (["-y", "y", "-t", "region", "-o", "r", "--alpha", "-1"], 1, "alpha"),
        (["-y", "y", "-t", "region", "-o", "r", "--cv", "200"], 1, "too many"),
        (["-y", "y", "-o", "r", "--screening", "magic"], 1, "screening"),
        (["-y", "y", "-o", "r", "-m", "logistic"], 1, "class"),
        (["-y", "region", "-o", "r"], 1, "holds words"),
        (["-y", "y", "-o", "r", "--model", "magic"], 2, ""),
        (["-y", "y", "-o", "r", "--magic"], 2, ""),
        (["-y", "y", "-o", "r", "--config", "none.json"], 1, "no file"),
    ],
)
def test_mistakes_have_messages_and_codes(
    cli: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("fit", regression_csv(tmp_path / "t.csv"), *words, "--no-report", code=code)
    assert said in result.err
    assert not (tmp_path / "r").exists()


def test_not_converged_has_its_own_code(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=60, d=20), tmp_path / "run"
    fit = ("fit", table, "-y", "y", "-t", "region", "--tol", 1e-12, "--max-iter", 1)
    result = cli(*fit, "--alpha", 0.001, "--out", run, code=3)
    assert "NOT CONVERGED" in result.out
    assert reports[0].certificate["converged"] is False
    assert any("did not reach --tol" in warning for warning in reports[0].warnings)
    RunFolder(run).verify()
    cli(*fit, "--alpha", 0.001, "--out", run, "--resume", code=3)
    cli("path", *fit[1:], "--alphas", 5, "--out", tmp_path / "path", code=3)


def test_folders_are_respected(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    fit = ("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--out", run)
    cli(*fit)
    assert "--overwrite" in cli(*fit, code=1).err
    assert "nothing to resume" in cli(*fit, "--resume").err
    assert "other options" in cli(*fit, "--resume", "--tol", 0.1, code=1).err
    cli(*fit, "--overwrite", "--tol", 0.1)
    (run / "thesis.tex").write_text("years of work")
    assert "thesis.tex" in cli(*fit, "--overwrite", code=1).err
    assert (run / "thesis.tex").read_text() == "years of work"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "photo.jpg").touch()
    assert "photo.jpg" in cli(*fit[:-1], foreign, "--overwrite", code=1).err
    assert "not a folder" in cli(*fit[:-1], table, code=1).err


def test_two_processes_cannot_share_a_folder(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    with RunFolder(run):
        result = cli(
            "fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--out", run, "--overwrite", code=1
        )
    assert "in use by another process" in result.err


def test_internal_errors_say_so(
    cli: CommandLine, reports: Reports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(ts.MultiTaskLasso, "fit", broken)
    result = cli(
        "fit", regression_csv(tmp_path / "t.csv"), "-y", "y", "--alpha", 1, "-o", tmp_path / "r", code=70
    )
    assert "internal error, RuntimeError: no such luck" in result.err


# --- as a process ------------------------------------------------------------------------------------------------


# Tests that run in the background of a shell inherit that SIGINT is ignored; a command at a terminal does not.
PROCESS = """
import os, signal, sys
import tasksieve as ts
from tasksieve.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
number = int(sys.argv.pop(1))

def send(progress):
    if number and progress.label.endswith("fold 2") and progress.done == 3:
        os.kill(os.getpid(), number)

with ts.watch(send):
    main()
"""


def process(*words: Any, signal_in_fold: int = 0) -> subprocess.Popen[str]:
    """The command as a process of its own, which may send itself a signal in the second fold."""
    command = [sys.executable, "-c", PROCESS, str(int(signal_in_fold)), *(str(word) for word in words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


# folds that stop together are finished together; with --full-path one after another
@pytest.mark.parametrize(
    ("number", "code", "how", "kept"),
    [
        (signal.SIGTERM, 143, ("--full-path",), 1),
        pytest.param(signal.SIGINT, 130, (), 0, marks=pytest.mark.slow),
    ],
)
def test_interrupts_have_their_codes_and_can_be_resumed(
    cli: CommandLine, tmp_path: Path, number: int, code: int, how: tuple[str, ...], kept: int
) -> None:
    table = tmp_path / "t.npz"
    X, y, task, _ = ts.datasets.make_wang_synthetic(n_tasks=4, n_rows=40, n_features=80, random_state=0)
    np.savez(table, X=X, y=y, task=task)
    fit = (
        "fit",
        table,
        "-y",
        "y",
        "-t",
        "task",
        "--alphas",
        10,
        "--cv",
        4,
        "--no-report",
        "--tol",
        1e-8,
        "-o",
    )
    run = tmp_path / f"run{code}"
    child = process(*fit, run, *how, signal_in_fold=number)
    _, err = child.communicate()
    assert child.returncode == code, err
    assert len(list((run / "pieces").glob("*"))) == kept
    assert "interrupted" in err
    assert "Traceback" not in err
    assert not RunFolder(run).finished
    cli(*fit, run, *how, "--resume")
    RunFolder(run).verify()


def test_without_its_libraries_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('no typer here', name='typer')")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tasksieve.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "pip install 'tasksieve[cli]'" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_output_to_a_closed_pipe_is_quiet(cli: CommandLine, tmp_path: Path) -> None:
    table, run = regression_csv(tmp_path / "t.csv", n=4000), tmp_path / "run"
    cli("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--out", run, "--no-report")
    child = process("predict", run, table)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == ""
    child.wait()


def test_completion_scripts_exist() -> None:
    environment = {**os.environ, "_TASKSIEVE_COMPLETE": "source_bash"}
    code = "import sys; sys.argv[0] = 'tasksieve'; from tasksieve.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert "complete" in run.stdout
