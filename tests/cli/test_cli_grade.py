"""tasksieve grade."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from cli_helpers import CommandLine, regression_csv
from sklearn.linear_model import Lasso

import tasksieve as ts


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return regression_csv(tmp_path / "data.csv")


WORDS = ("--target", "y", "--features", "[a-f]", "--alpha", "0.1")


def test_long_and_wide_tables_of_coefficients(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    data = pd.read_csv(table)
    model = ts.MultiTaskLasso(0.1).fit(data[list("abcdef")], data.y, task=data.region)
    rows = [
        {"task": task, "feature": name, "coefficient": value}
        for task, coef, b in zip(model.tasks_, model.coef_, model.intercept_, strict=True)
        for name, value in [("(Intercept)", b), *zip("abcdef", coef, strict=True)]
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "long.csv", index=False)
    wide = pd.DataFrame(model.coef_.T, columns=model.tasks_, index=list("abcdef"))
    wide.loc["(Intercept)"] = model.intercept_
    wide.to_csv(tmp_path / "wide.csv", index_label="feature")
    found = cli("grade", tmp_path / "long.csv", table, *WORDS, "--task", "region")
    assert "our solution is lower by" in found.out
    assert "provably right" in found.out
    assert cli("grade", tmp_path / "wide.csv", table, *WORDS, "--task", "region").out == found.out
    file = tmp_path / "proof.npz"
    alone = cli("grade", tmp_path / "long.csv", table, *WORDS, "--task", "region", "--no-solve", "--certificate", file)
    assert "our solution" not in alone.out
    task = data.region.to_numpy(str)
    assert ts.verify.verify(file, data[list("abcdef")].to_numpy(), data.y.to_numpy(), task=task)


def test_one_task_of_scikit_learn(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    data = pd.read_csv(table)
    model = Lasso(alpha=0.1).fit(data[list("abcdef")], data.y)
    entries = {"feature": [*"abcdef", "Intercept"], "coefficient": [*model.coef_, model.intercept_]}
    pd.DataFrame(entries).to_csv(tmp_path / "c.csv", index=False)
    assert "at most" in cli("grade", tmp_path / "c.csv", table, *WORDS).out


def test_the_coefficients_of_a_run(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    run = tmp_path / "run"
    cli("fit", table, *WORDS, "--task", "region", "--as-is", "--out", run, "--no-report", "--quiet")
    files = (run / "coefficients.csv", table, "--intercepts", run / "intercepts.csv")
    found = cli("grade", *files, *WORDS, "--task", "region")
    gap = float(found.out.partition("at most ")[2].split()[0])
    assert 0.0 < gap < 1e-4


def test_what_does_not_go_together(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    file = tmp_path / "c.csv"
    for content, words in (
        ("feature,coefficient\nnothing,1\n", "feature 'nothing' is not in the data"),
        ("feature,coefficient\na,1\na,2\n", "twice"),
        ("feature,coefficient\na,x\n", "must hold numbers"),
        ("name,coefficient\na,1\n", "no column 'feature'"),
    ):
        file.write_text(content)
        assert words in cli("grade", file, table, *WORDS, code=1).err
    file.write_text("feature,coefficient\na,1\n")
    assert "column 'task'" in cli("grade", file, table, *WORDS, "--task", "region", code=1).err
    file.write_text("task,feature,coefficient\nwest,a,1\n")
    assert "task 'west'" in cli("grade", file, table, *WORDS, "--task", "region", code=1).err


def test_a_path_of_glmnet_as_r_writes_it(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    data = pd.read_csv(table)
    X, lambdas = data[list("abcdef")], [0.3, 0.1]
    models = [Lasso(alpha=value, tol=1e-12).fit(X, data.y) for value in lambdas]
    columns = {f"s{k}": [model.intercept_, *model.coef_] for k, model in enumerate(models)}
    pd.DataFrame(columns, index=["(Intercept)", *"abcdef"]).to_csv(
        tmp_path / "r.csv"
    )  # no name above the row names
    words = (
        "--target",
        "y",
        "--features",
        "[a-f]",
        "--problem",
        "glmnet",
        "--parameter",
        "standardize=FALSE",
    )
    proof = tmp_path / "proof.npz"
    found = cli(
        "grade", tmp_path / "r.csv", table, *words, "--parameter", "lambda=0.3,0.1", "--certificate", proof
    )
    assert len(found.out.splitlines()) == 3
    assert ts.verify.verify(proof, X.to_numpy(), data.y.to_numpy())
    pd.DataFrame({"s0": columns["s0"]}, index=["(Intercept)", *"abcdef"]).to_csv(tmp_path / "one.csv")
    found = cli("grade", tmp_path / "one.csv", table, *words, "--parameter", "lambda=0.3")
    assert "0 provably wrong" in found.out
    assert float(found.out.partition("at most ")[2].split()[0]) < 1e-9


def test_what_a_problem_does_not_go_with(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    file, words = tmp_path / "c.csv", ("--target", "y", "--features", "[a-f]")
    file.write_text("feature,coefficient\na,1\n")
    for more, text in (
        (("--alpha", "0.1", "--problem", "glmnet"), "--alpha"),
        (("--alpha", "0.1", "--parameter", "lambda=1"), "is for --problem"),
        ((), "--alpha: name the strength"),
        (("--problem", "glmnet", "--parameter", "lambda"), "NAME=VALUE"),
        (("--problem", "glmnet", "--parameter", "lambda=1", "--parameter", "lambda=2"), "twice"),
        (("--problem", "glmnet", "--parameter", "lambda=1", "--loss", "huber"), "its own words"),
    ):
        assert text in cli("grade", file, table, *words, *more, code=2).err
    assert "must hold 'lambda'" in cli("grade", file, table, *words, "--problem", "glmnet", code=1).err
    for name in ("model.pkl", "model.joblib", "model.rds"):
        (tmp_path / name).write_bytes(b"\x80\x04.")
        assert "not opened" in cli("grade", tmp_path / name, table, *WORDS, code=2).err
