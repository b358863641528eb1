"""`tasksieve stability`, `tasksieve compare`, and the same beside a fit."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.report.content import ReportContent
from tasksieve.report.page import render
from tasksieve.runs import RunFolder

Reports = list[ReportContent]
NAMES = [f"v{j}" for j in range(20)]


def table_csv(file: Path, signal_size: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Three sites of 30 rows in 45 families; v3 and v7 matter everywhere, if anything does."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 20))
    data = pd.DataFrame(X, columns=NAMES)
    data.insert(0, "site", np.repeat(["a", "b", "c"], 30))
    data.insert(1, "family", np.arange(90) // 2)
    data["y"] = signal_size * (X[:, 3] - X[:, 7]) + rng.standard_normal(90)
    data.to_csv(file, index=False)
    return data


DATA = ("-y", "y", "-t", "site", "-x", "v*")


def test_stability_is_that_of_the_library(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    data, run = table_csv(tmp_path / "t.csv"), tmp_path / "run"
    words = ("--pairs", 10, "--pfer", 2, "--threshold", 0.8, "--permutations", 50, "--seed", 3)
    result = cli("stability", tmp_path / "t.csv", *DATA, *words, "-o", run)
    X, y, task = data[NAMES].to_numpy(), data.y.to_numpy(), data.site.to_numpy(str)
    model = ts.MultiTaskLasso(standardize=True)
    found = ts.StabilitySelection(model, n_pairs=10, pfer=2, threshold=0.8, random_state=3).fit(X, y, task=task)
    shares = pd.read_csv(run / "stability.csv").set_index("feature")
    np.testing.assert_array_equal(shares.selection_probability[NAMES], found.selection_probabilities_)
    np.testing.assert_array_equal(shares.stable[NAMES] == "yes", found.get_support())
    told = json.loads((run / "stability.json").read_text())
    assert (told["q"], told["threshold"], told["bound"]) == (found.q_, found.threshold_, found.pfer_bound_)
    test = ts.permutation_test(model, X, y, task=task, n_permutations=50, random_state=3)
    assert json.loads((run / "permutation.json").read_text())["pvalue"] == test.pvalue
    RunFolder(run).verify()
    assert "it holds findings and no model" in cli("verify", run, code=2).err
    assert "run is the folder of a run; what is needed here is a table" in cli("compare", run, "-o", "x", code=1).err
    # what the user reads
    assert "In none of 50 permutations of the labels within tasks" in result.out
    assert "stable: v3 (100%), v7 (100%)" in result.out
    assert "at most 2 are called stable" in result.out or f"at most {found.pfer_bound_:.2g} are" in result.out
    content = reports[-1]
    assert not content.fitted
    assert content.trust is not None
    assert content.trust.stability is not None
    np.testing.assert_array_equal(content.trust.stability.probabilities, found.selection_probabilities_)
    assert content.answered.startswith("2 features are stable (v3, v7)")
    page = render(content)
    assert "Can this be trusted?" in page
    assert page.index("Does anything matter?") < page.index("Which features would be found again?")
    assert "can be marked in its place" in page
    assert "Certificate" not in page
    # it can be asked for again, from its report and its configuration
    assert "--q" not in content.reproduce
    cli("stability", "--config", run / "config.json", "-o", tmp_path / "again")
    for name in ("stability.csv", "stability.json", "permutation.json"):
        assert (run / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


@pytest.mark.slow
def test_a_report_can_be_drawn_again(cli: CommandLine, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    run = tmp_path / "run"
    cli("fit", tmp_path / "t.csv", *DATA, "--alphas", 10, "--cv", 3, "--stability", "--pairs", 5, "--permutations", 20,
        "-o", run)  # fmt: skip
    first = (run / "report.html").read_bytes()
    cli("report", run)
    assert (run / "report.html").read_bytes() == first
    page = first.decode()
    assert "Stable in % of halves" in page
    # numbers of this run, in words for an article, in the page and in a file
    text = (run / "methods.txt").read_text()
    paragraph = text.partition("\n\n")[0]
    assert "5 pairs of complementary halves" in paragraph
    assert "20 permutations of the labels within tasks" in paragraph
    assert "3 tasks with 90 rows in all and 20 features" in paragraph
    assert paragraph.startswith("We used the multi-task lasso (squared loss")
    assert "Shah, R. J. Samworth (2013)" in text
    assert paragraph[:100] in page
    (run / "stability.json").write_text("{}")
    assert "has changed since the run" in cli("report", run, code=1).err


def test_groups_of_rows_and_q(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    data = table_csv(tmp_path / "t.csv")
    words = ("--pairs", 5, "--permutations", 0, "--row-groups", "family", "--q", 4, "--assumption", "none", "--jobs", 1)
    cli("stability", tmp_path / "t.csv", *DATA, *words, "-o", tmp_path / "run")
    found = ts.StabilitySelection(ts.MultiTaskLasso(standardize=True), n_pairs=5, q=4, assumption="none").fit(
        data[NAMES].to_numpy(), data.y.to_numpy(), task=data.site.to_numpy(str), groups=data.family.to_numpy()
    )
    shares = pd.read_csv(tmp_path / "run" / "stability.csv").set_index("feature").selection_probability
    np.testing.assert_array_equal(shares[NAMES], found.selection_probabilities_)
    assert not (tmp_path / "run" / "permutation.json").exists()
    assert "groups" in json.loads((tmp_path / "run" / "stability.json").read_text())["halves"]
    assert "--features-per-half 4" in reports[-1].reproduce


def test_nothing_stable_is_said_first(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv", signal_size=0.0, seed=4)
    words = ("--stability", "--pairs", 10, "--permutations", 60, "--alpha", 0.05)
    result = cli("fit", tmp_path / "t.csv", *DATA, *words, "-o", tmp_path / "run")
    content = reports[-1]
    assert content.answered.startswith("Nothing found that chance would not give (permutation test, p = ")
    assert "No feature is stable: none comes back in at least 75% of 20 random halves" in content.answered[:250]
    assert "Nothing found: chance alone gives relations as strong" in result.out
    assert "not to be relied on" in result.out
    # a model was fitted nevertheless, and its features carry their shares
    assert content.fitted
    assert content.trust is not None
    assert content.trust.stability is not None
    assert len(content.trust.stability.probabilities) == 20


def test_compare_is_that_of_the_library(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    data, run = table_csv(tmp_path / "t.csv"), tmp_path / "run"
    words = ("--alphas", 8, "--cv", 3, "--outer-folds", 3, "--level", 0.8, "--seed", 1)
    result = cli("compare", tmp_path / "t.csv", *DATA, *words, "-o", run)
    model = ts.MultiTaskLassoCV(n_alphas=8, cv=3, standardize=True, early_stopping=True, random_state=1)
    found = ts.compare(
        model,
        data[NAMES].to_numpy(),
        data.y.to_numpy(),
        task=data.site.to_numpy(str),
        cv=3,
        level=0.8,
        random_state=1,
    )
    frame = pd.read_csv(run / "comparison.csv")
    pd.testing.assert_frame_equal(frame, found.to_frame(), check_dtype=False)
    assert "on rows that no model had seen" in result.out.lower()
    content = reports[-1]
    assert content.trust is not None
    assert content.trust.sharing is not None
    assert content.trust.sharing.verdict in result.out
    page = render(content)
    assert "Does sharing help?" in page
    assert "One per task" in page
    assert "Holm" in (run / "methods.txt").read_text()


def test_a_fit_with_everything(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    words = ("--stability", "--pairs", 3, "--permutations", 10, "--compare", "--outer-folds", 3)
    cli("fit", tmp_path / "t.csv", *DATA, "--alphas", 6, "--cv", 3, *words, "-o", tmp_path / "run")
    page = render(reports[-1])
    order = ["Does anything matter?", "Which features would be found again?", "Does sharing help?", "Selected features"]
    assert [page.index(f">{title}<") for title in order] == sorted(page.index(f">{title}<") for title in order)
    # the model is the one of a fit without all this
    cli("fit", tmp_path / "t.csv", *DATA, "--alphas", 6, "--cv", 3, "--no-report", "-o", tmp_path / "plain")
    for name in ("coefficients.csv", "cv_quality.csv", "out_of_fold.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes(), name


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("command", "words", "code", "said"),
    [
        ("fit", ["--pairs", "5"], 2, "--pairs: is for --stability"),
        ("fit", ["--outer-folds", "5"], 2, "--outer-folds: is for --compare"),
        ("fit", ["--compare", "--alpha", "1"], 2, "--compare: is for --cv"),
        ("fit", ["--stability", "-m", "graph-svm"], 2, "has no path"),
        ("fit", ["--stability", "--offset", "v0"], 2, "--stability: is not for models with --offset"),
        ("fit", ["--stability", "--chunk-rows", "10"], 2, "need all rows in memory"),
        ("stability", ["--threshold", "0.5"], 2, "--threshold: above 0.5"),
        ("stability", ["--pairs", "0"], 2, "--pairs: at least 1"),
        ("stability", ["--permutations", "-1"], 2, "--permutations: at least 0"),
        ("stability", ["--pfer", "0"], 2, "--pfer: must be positive"),
        ("stability", ["-m", "graph-svm"], 2, "has no path"),
        ("stability", ["--q", "30"], 1, "q"),
        ("stability", ["--seed", "-1"], 2, "--seed"),
        ("compare", ["--outer-folds", "2"], 2, "--outer-folds: at least 3"),
        ("compare", ["--level", "1"], 2, "--level"),
    ],
)
def test_mistakes_are_named(
    cli: CommandLine, reports: Reports, tmp_path: Path, command: str, words: list[str], code: int, said: str
) -> None:
    table_csv(tmp_path / "t.csv")
    assert said in cli(command, tmp_path / "t.csv", *DATA, *words, "-o", tmp_path / "run", code=code).err
    assert not (tmp_path / "run").exists()


def test_one_task_has_nothing_to_share(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    err = cli("compare", tmp_path / "t.csv", "-y", "y", "-x", "v*", "-o", tmp_path / "run", code=1).err
    assert "several tasks" in err


def test_small_tasks_are_named_and_can_be_dropped(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    data = table_csv(tmp_path / "t.csv")
    data.loc[0, "site"] = "alone"
    data.to_csv(tmp_path / "t.csv", index=False)
    words = (*DATA, "--pairs", 3, "--permutations", 0)
    assert "alone" in cli("stability", tmp_path / "t.csv", *words, "-o", tmp_path / "run", code=1).err
    cli("stability", tmp_path / "t.csv", *words, "--small-tasks", "drop", "-o", tmp_path / "run")
    assert "Too small to be halved, and left out: alone" in render(reports[-1])


# --- interruptions -----------------------------------------------------------------------------------------------

PROCESS = """
import os, signal, sys
import tasksieve as ts
from tasksieve.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
number = int(sys.argv.pop(1))

def send(progress):
    if progress.label.startswith("StabilitySelection") and progress.done == 5:
        os.kill(os.getpid(), number)

with ts.watch(send):
    main()
"""


@pytest.mark.slow
def test_an_interrupted_stability_goes_on(cli: CommandLine, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    levels = ("--pairs", 6, "--permutations", 10, "--threads", 1)
    words: tuple[Any, ...] = ("stability", tmp_path / "t.csv", *DATA, *levels)
    cli(*words, "--no-report", "-o", tmp_path / "whole")
    run = tmp_path / "run"
    command = [sys.executable, "-c", PROCESS, str(int(signal.SIGINT)), *map(str, words), "--no-report", "-o", str(run)]
    child = subprocess.run(command, capture_output=True, text=True, start_new_session=True, check=False)
    assert child.returncode == 130, child.stderr
    assert "pairs of halves finished so far are counted in" in child.stderr
    assert not RunFolder(run).finished
    assert len(list((run / "pieces").glob("half-*"))) >= 4
    assert json.loads((run / "stability.json").read_text())["n_pairs"] >= 2
    cli(*words, "--no-report", "-o", run, "--resume")
    assert "taken from the interrupted run" in (run / "log.txt").read_text()
    for name in ("stability.csv", "stability.json", "permutation.json"):
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


# --- a comparison beside a fit ----------------------------------------------------------------------------------------

COMPARED = ("--alphas", 6, "--cv", 3, "--threads", 1, "--no-report")


def stop_at(done: int) -> Any:
    def stop(progress: ts.Progress) -> None:
        if progress.label == "compare" and progress.done == done:
            raise KeyboardInterrupt

    return ts.watch(stop)


def test_what_a_comparison_refuses_is_refused_before_the_fit(cli: CommandLine, tmp_path: Path) -> None:
    data = table_csv(tmp_path / "t.csv")
    data["state"] = np.where(data.y > data.y.median(), "ill", "well")
    data.loc[data.site == data.site[0], "state"] = "ill"
    data.to_csv(tmp_path / "t.csv", index=False)
    words = ("-y", "state", "-t", "site", "-x", "v*", "-m", "logistic", *COMPARED, "-o", tmp_path / "run")
    with ts.watch(lambda progress: pytest.fail(f"{progress} before the refusal")):
        told = cli("fit", tmp_path / "t.csv", *words, "--compare", code=1)
    assert f"--compare: Task {str(data.site[0])!r} has rows of one class only" in told.err
    assert not (tmp_path / "run").exists()
    cli("fit", tmp_path / "t.csv", *words)  # the fit itself can be had


@pytest.mark.slow
def test_a_comparison_that_fails_leaves_the_model(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_csv(tmp_path / "t.csv")
    fit, run = ("fit", tmp_path / "t.csv", *DATA, *COMPARED), tmp_path / "run"
    cli(*fit, "-o", tmp_path / "plain")

    def fail(*args: Any, **options: Any) -> None:
        raise ValueError("no comparison today.")

    with monkeypatch.context() as patched:
        patched.setattr(ts, "compare", fail)
        told = cli(*fit, "--compare", "-o", run, code=1)
        assert "no comparison today" in told.err
        assert f"the model is in {run}" in told.err
        assert (run / "coefficients.csv").read_bytes() == (tmp_path / "plain" / "coefficients.csv").read_bytes()
        assert not RunFolder(run).finished
        assert "no comparison today" in cli(*fit, "--compare", "-o", run, "--resume", code=1).err
        assert "no comparison today" in cli("fit", "-o", run, "--resume", code=1).err  # as it was begun
        cli(*fit, "-o", run, "--resume")
    RunFolder(run).verify()
    assert "compare" not in json.loads((run / "config.json").read_text())
    assert not (run / "comparison.csv").exists()
    assert (run / "coefficients.csv").read_bytes() == (tmp_path / "plain" / "coefficients.csv").read_bytes()


@pytest.mark.slow
def test_an_interrupted_comparison_goes_on_or_is_left_out(cli: CommandLine, tmp_path: Path) -> None:
    table_csv(tmp_path / "t.csv")
    fit = ("fit", tmp_path / "t.csv", *DATA, *COMPARED)
    asked = (*fit, "--compare", "--outer-folds", 3, "--level", 0.8)
    cli(*asked, "-o", tmp_path / "whole")
    with stop_at(9):
        told = cli(*asked, "-o", tmp_path / "on", code=130)
    assert "2 of 3 outer folds finished so far" in told.err
    assert "Interrupted: only the rows of 2 of 3 folds" in (tmp_path / "on" / "comparison.json").read_text()
    assert (tmp_path / "on" / "coefficients.csv").is_file()
    for name in ("out", "no"):
        shutil.copytree(tmp_path / "on", tmp_path / name)
    heard: list[ts.Progress] = []
    with ts.watch(heard.append):
        cli(*asked, "-o", tmp_path / "on", "--resume")
    fitted = [progress.detail for progress in heard if progress.label == "compare" and "own, task" in progress.detail]
    assert {detail.split(",")[0] for detail in fitted} == {"fold 3 of 3"}
    assert "compare-1-own" in (tmp_path / "on" / "log.txt").read_text()
    for name in ("comparison.csv", "comparison.json", "coefficients.csv"):
        assert (tmp_path / "on" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    for name, words in (("out", fit), ("no", ("fit", "--no-compare"))):
        with ts.watch(lambda progress: pytest.fail("compared again") if progress.label == "compare" else None):
            cli(*words, "-o", tmp_path / name, "--resume")
        RunFolder(tmp_path / name).verify()
        assert not (tmp_path / name / "comparison.json").exists()
        assert not {"outer_folds", "level"} & set(json.loads((tmp_path / name / "config.json").read_text()))
