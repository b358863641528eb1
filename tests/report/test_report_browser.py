"""The report in a real browser: it loads without errors or requests, and its controls do what they say.

Chromium comes from the operating system (``apt-get install chromium``; CHROMIUM names another), its driver is
Playwright from PyPI; no browser is downloaded. Without either these tests are skipped.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_examples import example_content
from trust_examples import example_trust

import tasksieve as ts
from tasksieve.report import FitQuality, ReportContent, write_report
from tasksieve.report.genome import Genome

try:
    from playwright.sync_api import Page, expect
except ImportError:
    pytest.skip("the browser tests need Playwright: pip install playwright", allow_module_level=True)

Opener = Callable[..., Page]


def first_names(page: Page) -> list[str]:
    return page.locator("#feature-table tbody button").all_inner_texts()


def blue_curves(page: Page) -> int:
    return page.locator("#plot-path .curve.in").count()


def test_loads_and_shows_every_part(open_report: Opener) -> None:
    page = open_report(example_content(n_selected=12, n_tasks=4))
    for plot in ("path", "cv", "count", "rejection", "gap"):
        assert page.locator(f"#plot-{plot} svg").is_visible(), plot
    assert page.locator("#plot-path .curve").count() == 12
    assert len(first_names(page)) == 12
    assert page.locator("#task-table tbody tr").count() == 4
    expect(page.locator("#selected-now")).to_have_text("12 features selected")
    assert page.locator("#certificate").inner_text().count("1.0\u00a0×\u00a010⁻⁷") >= 1


def test_the_heat_map_has_the_coefficients_colours(open_report: Opener) -> None:
    content = example_content(n_selected=3, n_tasks=2, n_values=1)
    page = open_report(content)
    names = first_names(page)
    pixels = page.evaluate(
        """() => [...document.querySelectorAll("td.heat canvas")].map((canvas) => {
            const line = canvas.getContext("2d").getImageData(0, canvas.height / 2, canvas.width, 1).data;
            return [0, 1].map((t) => [...line.slice(4 * Math.floor((t + 0.5) * canvas.width / 2)).slice(0, 4)]);
        })"""
    )
    coef = content.coef.toarray()
    for name, row in zip(names, pixels, strict=True):
        for t, (red, _, blue, level) in enumerate(row):
            value = coef[t, list(content.features).index(name)]
            assert (blue > red) == (value > 0), (name, t)
            assert level > 20


def test_slider_changes_plot_count_and_table(open_report: Opener) -> None:
    content = example_content(n_selected=12, n_tasks=4)
    assert content.n_selected is not None
    page = open_report(content)
    slider = page.locator("#alpha")
    cursor = page.locator("#plot-path .cursor")
    before = cursor.get_attribute("x1"), blue_curves(page), len(first_names(page))
    strength = page.locator("#feature-table tbody tr").first.inner_text()
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    count = int(content.n_selected[4])
    expect(page.locator("#selected-now")).to_have_text(f"{count} features selected")
    assert cursor.get_attribute("x1") != before[0]
    assert blue_curves(page) == count < before[1]
    assert len(first_names(page)) == count < before[2]
    assert page.locator("#feature-table tbody tr").first.inner_text() != strength
    assert f"{count} features selected" in (slider.get_attribute("aria-valuetext") or "")
    page.keyboard.press("Home")
    expect(page.locator("#selected-now")).to_have_text("0 features selected")
    expect(page.locator("#feature-table tbody")).to_contain_text("No feature is selected")
    page.locator("#back").click()
    expect(page.locator("#selected-now")).to_have_text("12 features selected")
    assert page.locator("#back").is_disabled()


@pytest.mark.slow
def test_a_click_in_a_plot_moves_the_slider(open_report: Opener) -> None:
    page = open_report(example_content())
    box = page.locator("#plot-cv svg").bounding_box()
    assert box is not None
    page.locator("#plot-cv svg").click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert 3 <= int(page.locator("#alpha").input_value()) <= 6


@pytest.mark.slow
def test_coefficients_of_one_task_along_the_path(open_report: Opener) -> None:
    page = open_report(example_content())
    before = page.locator("#plot-path .curve").first.get_attribute("d")
    page.select_option("#pick", label="task site 002")
    expect(page.locator("#plot-path figcaption")).to_contain_text("Coefficients in task site 002")
    assert page.locator("#plot-path .curve").first.get_attribute("d") != before


def test_table_sorts(open_report: Opener) -> None:
    page = open_report(example_content(n_selected=12))
    heads = page.locator("#feature-table thead button")
    names = first_names(page)
    feature = heads.filter(has_text="Feature")
    feature.click()
    assert first_names(page) == sorted(names)
    feature.click()
    assert first_names(page) == sorted(names, reverse=True)
    assert page.locator("#feature-table th[aria-sort=descending]").inner_text().startswith("Feature")
    heads.filter(has_text="Strength").click()
    assert first_names(page) == names
    heads.filter(has_text="Rank").focus()  # by keyboard, too
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert first_names(page) == names[::-1]


@pytest.mark.slow
def test_table_filters_and_turns_pages(open_report: Opener) -> None:
    content = example_content(n_selected=60, n_tasks=3)
    page = open_report(content)
    assert len(first_names(page)) == 25
    pager = page.locator("#feature-table .pager")
    pager.get_by_role("button", name="Next").click()
    pager.get_by_role("button", name="Next").click()
    assert len(first_names(page)) == 10
    assert pager.get_by_role("button", name="Next").is_disabled()
    name = first_names(page)[-1]
    page.get_by_label("Filter features").fill(name[-3:])
    assert name in first_names(page)
    assert all(name[-3:] in other for other in first_names(page))
    expect(page.locator("#feature-table .status")).to_have_text(re.compile(r"^\d+ of 60 features$"))
    page.get_by_label("Filter features").fill("no such gene")
    expect(page.locator("#feature-table tbody")).to_contain_text("Nothing matches")
    page.get_by_label("Filter features").fill("")
    pager.locator("select").select_option("100")
    assert len(first_names(page)) == 60


def test_a_feature_opens_by_keyboard(open_report: Opener) -> None:
    content = example_content(n_selected=5, n_tasks=3)
    page = open_report(content)
    button = page.locator("#feature-table tbody button").nth(1)
    button.focus()
    page.keyboard.press("Enter")
    opened = page.locator("#feature-table tbody button").nth(1)
    assert opened.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.textContent") == opened.inner_text(), "the focus stays"
    detail = page.locator("#feature-table tr.detail")
    assert detail.locator("li").count() == 3
    for task in content.tasks:
        expect(detail).to_contain_text(task)
    page.keyboard.press("Enter")
    assert detail.count() == 0


@pytest.mark.slow
def test_everything_can_be_reached_by_tab(open_report: Opener) -> None:
    page = open_report(example_content(n_selected=12))
    wanted = {"alpha", "back", "pick"}
    reached, filters = set(), 0
    page.locator("#alpha").focus()
    page.keyboard.press("ArrowLeft")  # so that "back" is enabled
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        page.keyboard.press("Tab")
        identity, kind = page.evaluate("[document.activeElement.id, document.activeElement.type || '']")
        reached.add(identity)
        filters += kind == "search"
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert identity == "" or outline != "none", f"focus on {identity} cannot be seen"
    assert wanted <= reached
    assert filters >= 1


def test_names_are_shown_as_they_are_and_run_nothing(open_report: Opener) -> None:
    content = example_content(n_selected=10, n_tasks=4, n_features=10)
    content.features[0] = "<img src=x onerror=\"document.title='broken'\">"
    content.tasks[1] = "</script><script>document.title='broken'</script>"
    content.title = "<b>bold</b>"
    page = open_report(content)
    titles = [button.get_attribute("title") for button in page.locator("#feature-table tbody button").all()]
    assert content.features[0] in titles
    assert any(name.startswith("<img src=x") for name in first_names(page))
    assert page.title() == "<b>bold</b>"
    page.locator("#feature-table tbody button").first.click()
    page.locator("#feature-table td.heat canvas").first.hover()
    assert page.title() == "<b>bold</b>"
    assert page.locator("main img").count() == 0


def test_words_for_screen_readers_do_not_widen_the_page(open_report: Opener) -> None:
    """In a table that scrolls they scroll with it; placed by the page, they reach beyond the edge of a phone."""
    page = open_report(example_content(n_tasks=3), viewport={"width": 390, "height": 800})
    placed = "all => all.map(one => one.closest('.scroll').contains(one.offsetParent))"
    found = page.eval_on_selector_all(".scroll span.hidden", placed)
    assert found
    assert all(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.slow
def test_nothing_is_wider_than_the_window(open_report: Opener, width: int, scheme: str) -> None:
    content = example_content(n_selected=30, n_tasks=60)
    content.title = content.asked = content.reproduce = "/a/very/long/path" * 20
    content.warnings = ["x" * 300]
    content.features[::2] = [
        f"chr17:43044295-43125483 insertion, {'heterozygous ' * 6}{j}" for j in range(32)
    ]
    content.tasks[:] = [
        f"University Hospital of Saint-Étienne, building {t // 10}, ward {t}" for t in range(60)
    ]
    page = open_report(content, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_tables_fit_a_wide_window_and_scroll_in_a_narrow_one(open_report: Opener) -> None:
    """Seven tasks in five measures, each with its error and the null model: nothing is cut off at 1,400 px."""
    content = example_content(n_selected=12, n_tasks=7)
    content.tasks[:] = [f"High school graduate {t}" for t in range(7)]
    content.features[:] = [f"region=Northeast, {j}" for j in range(len(content.features))]
    values, spread, rows = np.linspace(0.4, 0.9, 7), np.full(7, 0.091), np.full(7, 192)
    content.quality = [
        FitQuality(measure, values, rows, errors, unseen=errors is not None, null=np.full(7, 0.224))
        for measure, errors in (
            ("Accuracy out of fold", spread), ("Accuracy on the training rows", None), ("AUC out of fold", spread),
            ("Mean absolute error out of fold", spread), ("Ordinal deviance out of fold", spread),
        )
    ]  # fmt: skip
    page = open_report(content, viewport={"width": 1400, "height": 900})
    beyond = "all => all.map((e) => [e.innerText.slice(0, 40), e.scrollWidth - e.clientWidth]).filter((e) => e[1])"
    assert page.eval_on_selector_all(".scroll", beyond) == []
    assert "null 0.224" in page.locator("#task-table tbody tr").first.inner_text()
    for width in (1000, 420):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => document.documentElement.clientWidth === width", arg=width)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.slow
def test_nightfall_changes_the_heat_map(open_report: Opener) -> None:
    page = open_report(example_content(n_selected=60, n_tasks=5), color_scheme="light")
    picture = "document.querySelector('td.heat canvas').toDataURL() + document.querySelector('#map canvas').toDataURL()"
    day = page.evaluate(picture)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        same = "===" if scheme == "light" else "!=="
        page.wait_for_function(f"day => {picture} {same} day", arg=day)  # the page hears of it with its next frame


@pytest.mark.slow
def test_five_thousand_features_and_five_hundred_tasks(open_report: Opener, tmp_path: Path) -> None:
    """Loads, and follows the slider: what the browser lays out does not grow with features and tasks."""
    content = example_content(n_selected=5_000, n_tasks=500, n_values=20, n_features=20_000)
    file = write_report(content, tmp_path / "large.html")
    page = open_report(file)
    assert page.evaluate("document.querySelectorAll('*').length") < 5_000
    assert page.locator("#map canvas").is_visible()
    assert page.locator("#plot-quality rect").count() > 3
    page.locator("#alpha").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#selected-now")).not_to_have_text("5,000 features selected")
    page.get_by_label("Filter features").fill("gene_00")
    assert 0 < len(first_names(page)) <= 25


@pytest.mark.parametrize(
    ("n_selected", "n_tasks", "n_values"),
    [(1, 1, 1), (0, 2, 1), *(pytest.param(*few, marks=pytest.mark.slow) for few in ((3, 2, 1), (3, 1, 5), (2, 2, 2)))],
)
@pytest.mark.slow
def test_small_reports(open_report: Opener, n_selected: int, n_tasks: int, n_values: int) -> None:
    page = open_report(example_content(n_selected, n_tasks, n_values, n_features=6))
    assert len(first_names(page)) == n_selected


@pytest.mark.slow
def test_prints_to_pdf(open_report: Opener) -> None:
    page = open_report(example_content(n_selected=30, n_tasks=40))
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page[^s]", pdf)) <= 6
    page.emulate_media(media="print")
    assert not page.locator("#alpha").is_visible()
    assert not page.locator("nav").is_visible()
    for part in ("#path svg", "#plot-cv svg", "#certificate", "#reproduce-text", "#feature-table table"):
        assert page.locator(part).first.is_visible(), part


def test_without_scripts_the_essentials_are_there(browser: Any, tmp_path: Path) -> None:
    content = example_content(n_selected=12)
    file = write_report(content, tmp_path / "plain.html")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#feature-table tbody tr").count() == 12
    assert "duality gap" in page.locator("#certificate").inner_text()
    assert "Scripts are off" in page.locator("body").inner_text()
    context.close()


def test_the_report_of_a_real_model(open_report: Opener, tmp_path: Path) -> None:
    """End to end: digits, cross-validation, report, browser."""
    X, y, task, _ = ts.datasets.load_digits_tasks(n_each=30)
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=12, eps=0.05, cv=3).fit(X, y, task=task)
    page = open_report(ts.write_report(model, tmp_path / "digits.html", X=X, y=y, task=task))
    expect(page.locator("#selected-now")).to_have_text(
        f"{np.count_nonzero(model.get_support())} features selected"
    )
    strongest = int(np.argmax(np.linalg.norm(model.coef_, axis=0)))
    assert first_names(page)[0] == f"x{strongest}"


TABLE = """clinic,age,smoker,dose,marker,<b>bmi</b>,response
North,61,yes,0.2,1.1,22.0,1.9
North,45,no,1.4,0.3,25.1,4.1
North,70,yes,0.9,0.8,23.4,3.2
North,52,no,0.1,0.2,29.9,1.4
North,38,no,1.9,1.3,21.7,5.2
North,66,yes,1.1,0.5,24.8,3.6
South,49,no,0.4,0.9,26.3,0.9
South,57,yes,1.6,0.1,22.6,3.4
South,63,no,0.7,1.2,27.0,1.6
South,41,no,1.2,0.6,23.9,2.5
South,72,yes,0.3,0.4,25.5,0.8
South,55,no,1.8,0.7,28.1,3.7
"""


@pytest.mark.slow
def test_from_a_table_to_the_browser(open_report: Opener, tmp_path: Path) -> None:
    """A table written by hand, `tasksieve fit`, and its report."""
    pytest.importorskip("tasksieve.cli", reason="no command line in this version")
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    options = ["-y", "response", "-t", "clinic", "--cv", "3", "--alphas", "20", "--standardize", "--out", "run"]
    subprocess.run(
        [sys.executable, "-m", "tasksieve", "fit", "table.csv", *options], cwd=tmp_path, check=True
    )
    page = open_report(tmp_path / "run" / "report.html")
    assert "dose" in first_names(page)
    assert page.locator("#task-table tbody tr").count() == 2
    expect(page.locator("#task-table")).to_contain_text("North")
    expect(page.locator("#reproduce-text")).to_contain_text("tasksieve fit")
    count = page.locator("#selected-now").inner_text()
    page.locator("#alpha").focus()
    page.keyboard.press("Home")
    expect(page.locator("#selected-now")).not_to_have_text(count)


# --- can this be trusted? ----------------------------------------------------------------------------------------


def test_the_section_on_trust(open_report: Opener) -> None:
    content = example_content(n_selected=12, n_tasks=4)
    content.trust = example_trust(content)
    page = open_report(content)
    assert page.locator("#plot-null svg rect.bar").count() > 5
    assert page.locator("#plot-stability .curve").count() == content.coef.shape[1]
    assert page.locator("#plot-stability .curve.in").count() == 2  # the stable ones
    first = page.locator("#stable-table tbody tr").first
    assert first.inner_text().split() == [str(content.features[0]), "97", "%", "yes"]
    box = page.locator("#plot-stability svg").bounding_box()
    assert box is not None
    page.locator("#plot-stability svg").hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.5})
    assert page.locator("#stable-table").get_by_text("Stable").count() >= 1
    # the table of features has the shares, too
    shares = page.locator("#feature-table thead").get_by_text("Stable in % of halves")
    assert shares.count() == 1
    # and sorts by them
    shares.click()
    assert page.locator("#feature-table tbody tr").count() == 12


@pytest.mark.slow
def test_methods_can_be_copied(open_report: Opener) -> None:
    content = example_content(n_selected=3, n_tasks=2)
    content.methods = "We used the multi-task lasso."
    page = open_report(content)
    page.locator("#methods .copy button").click()
    expect(page.locator("#methods .copy [role=status]")).to_have_text(re.compile("Copied|Selected"))


@pytest.mark.slow
def test_findings_alone(open_report: Opener) -> None:
    content = example_content(n_selected=3, n_tasks=2)
    trust = example_trust(content)
    alone = ReportContent(
        title="Alone",
        asked="?",
        answered="!",
        tasks=np.zeros(0, dtype=object),
        features=content.features,
        coef=content.coef[:0],
        intercept=np.zeros(0),
        certificate={},
        trust=trust,
        fitted=False,
    )
    page = open_report(alone)
    assert page.locator("#plot-stability svg").is_visible()
    assert page.locator("#feature-table").count() == 0
    for width in (390, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_variants_along_the_genome(open_report: Opener) -> None:
    """A point for each variant in use; those selected move with the slider, and a feature without a place has none."""
    content = example_content(n_selected=12, n_tasks=4)
    names = [str(name) for name in content.features]
    positions = {name: (("1", "2", "X")[j % 3], 1000 * j) for j, name in enumerate(names) if j != 3}
    content.genome = Genome([("1", 0, 90_000), ("2", 0, 70_000), ("X", 0, 40_000)], positions)
    page = open_report(content)
    used = [str(content.features[j]) for j in np.flatnonzero(abs(content.coef).sum(axis=0))]
    expected = sum(name in positions for name in used)
    assert page.locator("#plot-genome circle").count() == expected
    expect(page.locator("#plot-genome output")).to_have_text(f"{expected} variants")
    assert page.locator("#plot-genome .stripe").count() == 2
    page.locator("#alpha").fill("0")
    assert page.locator("#plot-genome circle").count() < expected
