"""Lines to copy from a report: they are run, and give what the command line gives."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

from tasksieve.report.content import CodeSample
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.content import run_content

RSCRIPT = os.environ.get("RSCRIPT") or shutil.which("Rscript")
QUIET = ("--no-report", "--quiet")


def counts_csv(file: Path) -> Path:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 3))
    frame = pd.DataFrame(X, columns=["a b", 'c"d', "e"]).assign(site=rng.choice(["x", "y"], 80), days=1.0)
    frame["n"] = rng.poisson(np.exp(0.5 * X[:, 0]))
    frame.to_csv(file, index=False)
    return file


def targets_csv(file: Path) -> Path:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 4))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y1=X[:, 0] + 1, y2=X[:, 0] - 2 * X[:, 1])
    frame.to_csv(file, index=False)
    return file


def unlike_csv(file: Path) -> Path:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 3))
    z = X[:, 0] + rng.logistic(0.0, 0.4, 50)
    pain = np.array(["none", "mild", "severe"])[np.digitize(z, [-0.5, 0.5])]
    frame = pd.DataFrame(X, columns=list("abc")).assign(size=z, sick=np.where(z > 0, "yes", "no"), pain=pain)
    frame["n"], frame["days"], frame["died"] = rng.poisson(np.exp(z)), np.exp(-z).round(2), rng.choice([0, 1], 50)
    frame.to_csv(file, index=False)
    return file


UNLIKE = ("--outcome", "size=value", "--outcome", "sick=binary", "--outcome", "n=count", "--outcome", "pain=ordered",
          "--outcome", "death=survival", "--time", "death=days", "--event", "death=died", "--categories",
          "pain=none,mild,severe", "--alpha", 0.2)  # fmt: skip
CASES = {
    "lasso": (regression_csv, ("-y", "y", "-t", "region", "--cv", 3, "--alphas", 10)),
    "logistic": (classification_csv, ("-y", "state", "-t", "site", "-m", "logistic", "--alpha", 0.05)),
    "graph-svm": (classification_csv, ("-y", "state", "-t", "site", "-m", "graph-svm", "--graph", "complete")),
    "poisson": (counts_csv, ("-y", "n", "-t", "site", "-m", "poisson", "--alpha", 0.05, "--offset", "days")),
    "targets": (targets_csv, ("-y", "y1", "-y", "y2", "--alpha", 0.1)),
    "unlike": (unlike_csv, UNLIKE),
    "unlike tasks": (unlike_csv, ("--outcome", "yes=count", "--outcome", "value", "-y", "n", "-t", "sick", "-x",
                                  "[abc]", "--alpha", 0.1)),
    "ordinal": (unlike_csv, ("-m", "ordinal", "-y", "pain", "-t", "sick", "-x", "[abc]", "--categories",
                             "none,mild,severe", "--alpha", 0.05)),
    "one task": (targets_csv, ("-y", "y1", "--drop", "y2", "--alpha", 0.1)),
}  # fmt: skip


@pytest.fixture
def fitted(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def fit(case: str) -> tuple[Path, list[CodeSample], Any]:
        make, words = CASES[case]
        make(tmp_path / "t.csv")
        monkeypatch.chdir(tmp_path)
        cli("fit", "t.csv", *words, *QUIET, "--out", "the run")
        shutil.copy("t.csv", "new.csv")
        cli("predict", "the run", "new.csv", "--out", "p.csv", "--quiet")
        table = pd.read_csv("p.csv").drop(columns="task", errors="ignore")
        return tmp_path / "the run", list(run_content(RunFolder("the run")).code), table

    return fit


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_python_lines_fit_and_predict(case: str, fitted: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run, samples, expected = fitted(case)
    again, predict = (sample for sample in samples if sample.language == "Python")
    space: dict[str, Any] = {}
    exec(predict.text, space)
    told = space["predictions"].reshape(len(expected), -1)
    for t, column in enumerate(expected):
        if told.dtype.kind == "f":
            np.testing.assert_array_equal(told[:, t], expected[column])
        else:
            assert told[:, t].tolist() == expected[column].tolist()
    exec(again.text, space)
    old, new = load_model(RunFolder(run)).estimator, space["model"]
    assert abs(new.objective_ - old.objective_) <= new.dual_gap_ + old.dual_gap_
    np.testing.assert_allclose(new.coef_, old.coef_, atol=1e-3 * np.abs(old.coef_).max())
    capsys.readouterr()


@pytest.mark.skipif(RSCRIPT is None, reason="no Rscript here (RSCRIPT names one)")
@pytest.mark.parametrize("case", CASES)
def test_r_lines_predict(case: str, fitted: Any) -> None:
    _, samples, expected = fitted(case)
    (sample,) = (sample for sample in samples if sample.language == "R")
    script = f"{sample.text}\noptions(digits = 15)\nwrite.csv(data.frame(p = prediction), 'r.csv', row.names = FALSE)\n"
    Path("run.R").write_text(script, encoding="utf-8")
    assert RSCRIPT is not None
    done = subprocess.run([RSCRIPT, "run.R"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv("r.csv")
    for ours, theirs in zip(expected, found, strict=True):
        if expected[ours].dtype.kind == "f":
            np.testing.assert_allclose(found[theirs], expected[ours], rtol=1e-9)
        else:
            assert found[theirs].tolist() == expected[ours].tolist()


def test_r_lines_are_balanced(fitted: Any) -> None:
    """Where there is no R: brackets and quotes close, names of columns are strings of R."""
    _, samples, _ = fitted("poisson")
    (sample,) = (sample for sample in samples if sample.language == "R")
    outside, inside, previous = [], False, ""
    for sign in sample.text:
        if sign == '"' and previous != "\\":
            inside = not inside
        elif not inside:
            outside.append(sign)
        previous = sign
    assert not inside
    for opening, closing in ("()", "{}", "[]"):
        assert outside.count(opening) == outside.count(closing)
    assert 'new[["days"]]' in sample.text


def test_a_stream_has_lines_too(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    regression_csv(tmp_path / "new.csv")
    cli("stream", "new.csv", "-y", "y", "-t", "region", "-x", "[a-f]", "--alpha", 0.1, *QUIET, "--out", "online")
    cli("predict", "online", "new.csv", "--out", "p.csv", "--quiet")
    samples = list(run_content(RunFolder("online")).code)
    assert [sample.language for sample in samples] == ["Python", "R"]
    space: dict[str, Any] = {}
    exec(samples[0].text, space)
    np.testing.assert_allclose(space["predictions"], pd.read_csv("p.csv").prediction, rtol=1e-12)


SEVERAL = {
    "files": (["north.csv", "south.csv"], ()),
    "a folder each": (["north/data.csv", "south/data.csv"], ("--task-name", "{}/data.csv", "--weights", "w")),
    "sheets": (["book.xlsx"], ("--sheet", "*")),
    "parts of a table": (["north.csv", "south.csv"], ("-t", "ward")),
    "union": (["north.csv", "south.csv"], ("--columns", "union")),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", SEVERAL)
def test_several_files_have_lines_too(
    case: str, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines that are shown give the coefficients and the predictions of the command line."""
    monkeypatch.chdir(tmp_path)
    files, words = SEVERAL[case]
    rng, parts = np.random.default_rng(6), {}
    for k, name in enumerate(("north", "south")):
        X = rng.standard_normal((40, 4))
        own = pd.DataFrame(X, columns=list("abcz")).assign(y=X[:, 0] - k * X[:, 1] + rng.standard_normal(40))
        own = own.assign(w=rng.uniform(0.5, 2.0, 40), ward=rng.choice(["x", "y"], 40))
        parts[name] = own.drop(columns="z") if case == "union" and k else own
    if case == "sheets":
        pytest.importorskip("openpyxl")
        with pd.ExcelWriter("book.xlsx") as book:
            for name, own in parts.items():
                own.to_excel(book, sheet_name=name, index=False)
    else:
        for file, own in zip(files, parts.values(), strict=True):
            Path(file).parent.mkdir(exist_ok=True)
            own.to_csv(file, index=False)
    cli("fit", *files, "-y", "y", "--alpha", 0.1, *words, *QUIET, "--out", "run")
    parts["north"].to_csv("new.csv", index=False)
    samples = list(run_content(RunFolder("run")).code)
    assert [sample.language for sample in samples][:2] == ["Python", "Python"]
    space: dict[str, Any] = {}
    exec(samples[0].text, space)
    old = load_model(RunFolder("run")).estimator
    np.testing.assert_allclose(space["model"].coef_, old.coef_, atol=1e-4 * np.abs(old.coef_).max())
    assert space["model"].tasks_.tolist() == old.tasks_.tolist()
    as_task = () if case == "parts of a table" else ("--task-name", "north")
    cli("predict", "run", "new.csv", *as_task, "--out", "p.csv", "--quiet")
    exec(samples[1].text, space)
    np.testing.assert_allclose(space["predictions"], pd.read_csv("p.csv").prediction, rtol=1e-12)
    assert str(tmp_path) not in samples[0].text + samples[1].text
