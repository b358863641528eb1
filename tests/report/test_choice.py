"""Sets of features on the first screen (best score, one standard error, stable), and what "proved" is said of."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine
from report_examples import example_content
from trust_examples import example_stability

import tasksieve as ts
from tasksieve.fitted.shown import certificate_rows
from tasksieve.report import ReportContent, content_from_model, render
from tasksieve.report.choice import choice_of, set_tiles
from tasksieve.report.packing import pack
from tasksieve.report.page import observations, tiles
from tasksieve.report.trust import Trust

README = Path(__file__).parents[2] / "README.md"
T, N, D = 5, 40, 60
NAMES = [f"x{j}" for j in range(D)]


def rows() -> dict[str, np.ndarray]:
    """Five tasks of 40 rows, 3 features of 60 that matter."""
    rng = np.random.default_rng(0)
    W = np.zeros((T, D))
    W[:, :3] = rng.uniform(0.5, 1.0, (T, 3)) * rng.choice([-1.0, 1.0], (1, 3))
    X, task = rng.standard_normal((T * N, D)), np.repeat(np.arange(T), N)
    return {"X": X, "y": np.einsum("ij,ij->i", X, W[task]) + rng.standard_normal(T * N), "task": task}


@pytest.fixture(scope="module")
def chosen() -> tuple[Any, ReportContent]:
    data = rows()
    model = ts.MultiTaskLassoCV(n_alphas=30, eps=0.1, tol=1e-8).fit(**data)
    return model, content_from_model(model, **data, feature_names=NAMES)


def by_hand(model: Any) -> tuple[list[str], list[str]]:
    """Names of the features at one standard error and at the best score, strongest first, from the scores alone."""
    scores = model.path_scores_
    means = scores.mean(axis=1)
    best = int(np.argmin(means))
    limit = means[best] + scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    careful = min(k for k in range(len(means)) if means[k] <= limit)
    found = []
    for k in (careful, best):
        lengths = np.linalg.norm(np.asarray(model.path_.coef(k).todense()), axis=0)
        found.append([NAMES[j] for j in np.argsort(-lengths, kind="stable") if lengths[j] > 0])
    assert careful < best
    return found[0], found[1]


def text_of(page: str) -> str:
    """What can be read: no scripts, no data, no tags."""
    without = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", without).split())


def test_the_first_screen_has_three_counts_and_leads_with_the_careful_one(chosen: tuple[Any, ReportContent]) -> None:
    model, content = chosen
    careful, best = by_hand(model)
    assert best == [NAMES[j] for j in np.argsort(-np.linalg.norm(model.coef_, axis=0))][: len(best)]
    assert len(best) > len(careful) >= 3
    assert content.answered.startswith(f"At one standard error {len(careful)} of 60 features are used: {careful[0]}, ")
    assert f"At the best score, which predictions use, {len(best)} of 60 features are used." in content.answered
    shown = tiles(content, pack(content))[:3]
    assert [tile[:2] for tile in shown] == [
        (f"{len(careful)}", "features at one standard error"),
        (f"{len(best)}", "features at the best score"),
        ("not asked", "stable features"),
    ]
    assert 'selection_rule="1se"' in shown[0][2]
    assert "predictions use these" in shown[1][2]
    assert "ts.StabilitySelection" in shown[2][2]
    (warning,) = (words for words in observations(content) if "noise" in words)
    assert warning.startswith("The best score keeps noise, as a rule")
    assert f"at one standard error {len(careful)}" in warning
    assert f"At the best score {len(best)} features are in use, at one standard error {len(careful)}" in content.methods


def test_with_stability_it_leads(chosen: tuple[Any, ReportContent]) -> None:
    _, content = chosen
    stability = example_stability(D, [0, 1, 2])
    content = replace(content, trust=Trust(stability=stability))
    assert set_tiles(content)[0][:2] == (f"{stability.n_stable}", "stable features")
    assert "features at one standard error" in set_tiles(content)[1][1]
    assert "not asked" not in render(content).split("<script")[0]


def test_the_careful_rule_predicts_where_it_was_asked(chosen: tuple[Any, ReportContent]) -> None:
    careful, best = by_hand(chosen[0])
    data = rows()
    model = ts.MultiTaskLassoCV(n_alphas=30, eps=0.1, tol=1e-8, selection_rule="1se").fit(**data)
    content = content_from_model(model, **data, feature_names=NAMES)
    assert content.answered.startswith(f"At one standard error, which predictions use, {len(careful)} of 60 features")
    assert f"At the best score: {len(best)}." in content.answered
    assert not [words for words in observations(content) if "noise" in words]
    assert ("features at one standard error; predictions use them", f"{len(careful)} of 60") in certificate_rows(model)


def test_one_alpha_has_no_scores_and_says_so() -> None:
    data = rows()
    content = content_from_model(ts.MultiTaskLasso(alpha=0.3).fit(**data), **data, n_alphas=3)
    assert choice_of(content) is None
    assert tiles(content, pack(content))[0][1] == "features selected"
    (warning,) = observations(content)
    assert "not chosen by cross-validation: there are no scores" in warning
    assert "ts.StabilitySelection" in warning


def test_scores_that_are_greater_where_better() -> None:
    data = rows()
    model = ts.MultiTaskLassoCV(n_alphas=30, eps=0.1, scoring="r2").fit(**data)
    found = choice_of(content_from_model(model, **data))
    assert found is not None
    assert found.best == int(np.argmax(model.path_scores_.mean(axis=1)))
    assert model.path_.alphas[found.best] == model.alpha_
    assert found.careful <= found.best


def test_a_model_that_scores_have_not_chosen_shows_its_features() -> None:
    content = example_content()
    assert choice_of(content) is None  # the last value, which neither rule takes
    assert tiles(content, pack(content))[0][1] == "features selected"


def test_notebooks(chosen: tuple[Any, ReportContent]) -> None:
    model, _ = chosen
    careful, best = by_hand(model)
    shown = dict(certificate_rows(model))
    assert shown['features at one standard error; selection_rule="1se" predicts with them'] == f"{len(careful)} of 60"
    assert shown["features at the best score, which keeps noise; predictions use them"] == f"{len(best)} of 60"
    assert "StabilitySelection" in shown["which would be found again"]
    assert "prove" not in " ".join([*shown, *shown.values(), repr(model)]).lower()


def test_nothing_says_proved_beside_a_feature(chosen: tuple[Any, ReportContent]) -> None:
    page = render(chosen[1])
    table = page[page.index('id="feature-table"') : page.index('id="needed-note"')]
    assert "Needed by this optimum</th>" in table
    assert not re.search(r"prove|always|✓|class=\"(good|bad)", table, re.IGNORECASE)
    assert "no other coefficients of this kind have a smaller penalised loss by more than" in text_of(page)
    columns = page[page.index("const featureColumns") :]
    assert not re.search(r"Proved|✓ always", columns)


def test_a_click_shows_the_careful_set(chosen: tuple[Any, ReportContent], open_report: Any) -> None:
    careful, best = by_hand(chosen[0])
    page = open_report(chosen[1])
    names = page.locator("#feature-table tbody button")
    assert names.count() == min(len(best), 25)
    assert f"the {len(best)} features at the best score, which predictions use" in page.inner_text("#shown-set")
    page.get_by_role("button", name=f"At one standard error ({len(careful)}): show them").click()
    assert names.all_inner_texts() == careful
    assert page.inner_text("#shown-set").startswith(f"Shown are the {len(careful)} features at one standard error")
    page.get_by_role("button", name="Back to the chosen model").click()
    assert names.count() == min(len(best), 25)


def test_a_run_says_the_same_and_its_files_prove_no_feature(cli: CommandLine, tmp_path: Path) -> None:
    data, table = rows(), tmp_path / "table.csv"
    with table.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["site", *NAMES, "y"])
        lines.writerows([f"s{t}", *x, y] for t, x, y in zip(data["task"], data["X"], data["y"], strict=True))
    asked = ("fit", table, "-y", "y", "-t", "site", "--as-is", "--alphas", 30, "--eps", 0.1, "--tol", 1e-8)
    told = cli(*asked, "-o", tmp_path / "run")
    model = ts.MultiTaskLassoCV(n_alphas=30, eps=0.1, tol=1e-8).fit(**data)
    careful, best = by_hand(model)
    few = ", ".join(careful[:10]) + (", ..." if len(careful) > 10 else "")
    assert f"at one standard error: {len(careful)} features ({few}); --rule 1se predicts with them\n" in told.out
    assert f"at the best score: {len(best)} features; predictions use them; the best score keeps noise\n" in told.out
    assert "stable: not asked; --stability" in told.out
    assert "no other coefficients of this kind have a smaller penalised loss" in told.out
    methods = (tmp_path / "run" / "methods.txt").read_text(encoding="utf-8")
    assert f"At the best score {len(best)} features are in use, at one standard error {len(careful)}" in methods
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "a click, or --rule 1se" in page
    for file in (tmp_path / "run").glob("*.csv"):
        assert "prove" not in file.read_text(encoding="utf-8").lower(), file.name
    for ending in ("json", "sql", "py"):
        cli("export", tmp_path / "run", "-o", tmp_path / f"model.{ending}")
        assert "prove" not in (tmp_path / f"model.{ending}").read_text(encoding="utf-8").lower()
    told = cli(*asked, "--rule", "1se", "-o", tmp_path / "careful")
    assert f"at one standard error: {len(careful)} features ({few}); predictions use them\n" in told.out
    written = (tmp_path / "careful" / "features.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in written[1:]] == careful
    assert '"selection_rule": "1se"' in (tmp_path / "careful" / "config.json").read_text(encoding="utf-8")


def test_the_first_example_of_the_readme_prints_what_it_says(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    exec(compile(found[1], "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == found[2]
    assert (tmp_path / "report.html").is_file()
