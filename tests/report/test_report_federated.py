"""The page of a federated fit: what was found, what was proved, and what was exchanged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.federated.part import Archive
from tasksieve.report import write_report

NAMES = ("north", "south", "west")


def fitted(**given: Any) -> tuple[ts.federated.FederatedFit, ts.federated.Plan]:
    rng, rows = np.random.default_rng(1), {}
    for name in NAMES:
        X = rng.standard_normal((40, 9))
        rows[name] = X, X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.standard_normal(40)
    features = [f"marker {j} <b>" for j in range(8)]
    options = {"n_alphas": 6, "eps": 0.1, "covariates": ["age"], **given}
    plan = ts.federated.Plan("Three & hospitals", dict.fromkeys(NAMES, "..."), features, **options)
    return ts.federated.simulate(plan, rows), plan


def plain(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<(script|style)[^>]*>.*?</\\1>", "", page, flags=re.S))


def test_what_it_says(tmp_path: Path) -> None:
    fit, plan = fitted(cv=3, n_pairs=3, q=3)
    page = plain(write_report(fit, tmp_path / "report.html", plan=plan).read_text(encoding="utf-8"))
    assert "<h1>Three &amp; hospitals</h1>" in page
    assert "marker 0 &lt;b&gt;" in page
    assert "<b>marker" not in page
    assert "Which of 8 features matter for 3 tasks at 3 sites that keep their rows?" in page
    assert f"{100.0 * fit.explained[fit.chosen]:.1f} % less than without features" in page
    for name in ("path", "cv", "count", "gap"):
        assert f'id="plot-{name}"' in page
    assert "6 halves has 3 features at most" in page
    assert "masked: the coordinator learns sums over all sites" in page
    for _, questions, down, up in fit.exchanges.tolist():
        cells = "".join(f'<td class="number">{n:,}</td>' for n in (questions, down, up))
        assert cells in page
    assert "is not part of this page" in page  # nobody has signed a statement


def test_the_statement_is_what_counts(tmp_path: Path) -> None:
    fit = fitted()[0]
    arrays = {"gap": np.array([1.5e-5]), "objective": fit.objectives[-1:]}
    fit.statement = Archive({"masked": True}, arrays)
    page = plain(write_report(fit, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Answers were masked" in page
    assert page.count("1.5 × 10⁻⁵") >= 2
    assert "The plan that all sites have agreed to" not in page
    with pytest.raises(ValueError, match="not the plan of this fit"):
        write_report(fit, tmp_path / "report.html", plan=fitted(cv=2)[1])
    # one value, nothing selected
    single, _ = fitted(n_alphas=1)
    page = plain(write_report(single, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "No feature is selected." in page
    assert "plot-path" not in page


def test_in_a_browser(tmp_path: Path, open_report: Any) -> None:
    fit, plan = fitted(cv=3, n_pairs=2, q=3)
    page = open_report(write_report(fit, tmp_path / "report.html", plan=plan))
    for plot in ("path", "cv", "count", "gap"):
        assert page.locator(f"#plot-{plot} svg").is_visible(), plot

    def listed() -> int:
        return page.locator("#feature-table tbody tr").count()

    assert listed() == fit.n_selected[fit.chosen]
    page.locator("#alpha").fill("1")
    assert listed() == max(fit.n_selected[1], 1)
    page.locator("#back").click()

    assert listed() == fit.n_selected[fit.chosen]
    for width in (1300, 400):
        page.set_viewport_size({"width": width, "height": 900})
        sizes = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert sizes[0] <= sizes[1]
