"""What a reader takes away from a page: tables, pictures, code. And pages that compare runs, in a browser."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from report_examples import example_content
from trust_examples import example_trust

from tasksieve.report import FitQuality
from tasksieve.report.compared import write_compared
from tasksieve.report.content import CodeSample
from tasksieve.report.stream import StreamHistory
from tasksieve.runs.compared import ComparedRun, compare_runs

Opener = Callable[..., Any]
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"


def saved(page: Any, button: Any) -> tuple[str, bytes]:
    with page.expect_download() as waiting:
        button.click()
    download = waiting.value
    return download.suggested_filename, Path(download.path()).read_bytes()


def rows_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


def test_the_table_of_features_as_csv(open_report: Opener) -> None:
    content = example_content(n_selected=30, n_tasks=3)
    content.features[:] = [f'=cmd("{j}"), x' for j in range(len(content.features))]
    page = open_report(content)
    name, text = saved(page, page.locator("#feature-table .save button").first)
    assert name == "selected-features.csv"
    head, *lines = rows_of(text)
    assert head[1:3] == ["Feature", "Strength"]
    assert len(lines) == 30  # all pages of it
    coef = content.coef.toarray()
    for line in lines:
        assert line[1].startswith("'=")  # no spreadsheet takes it for a formula
        j = list(content.features).index(line[1][1:])
        values = [float(line[head.index(f"task {task}")]) for task in content.tasks]
        np.testing.assert_allclose(values, coef[:, j], atol=1e-4 * np.abs(coef[:, j]).max())
    name, text = saved(page, page.locator("#choice-save button"))
    assert rows_of(text)[0][:2] == ["alpha", "features selected"]
    assert [float(line[0]) for line in rows_of(text)[1:]] == pytest.approx(content.alphas.tolist(), rel=1e-5)  # type: ignore[union-attr]
    name, text = saved(page, page.locator("#certificate .save button"))
    assert ["Duality gap (distance to the best, at most)", "1.0e-7"] in rows_of(text)


@pytest.mark.slow
def test_every_picture_can_be_saved_and_has_words(open_report: Opener) -> None:
    content = example_content(n_selected=60, n_tasks=3)
    content.trust = example_trust(content)
    page = open_report(content, color_scheme="dark")
    pictures = page.locator("figure:visible")
    assert pictures.count() >= 8
    for i in range(pictures.count()):
        figure = pictures.nth(i)
        image = figure.locator("> svg, > canvas").first
        assert image.get_attribute("role") == "img"
        assert len(image.get_attribute("aria-label") or "") > 10
        assert figure.locator("figcaption").count() == 1
        assert figure.get_by_role("button", name="as SVG").count() == 1
        assert figure.get_by_role("button", name="as PNG").count() == 1
    for label in page.locator("canvas").evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))"):
        assert label
    for position in ("#plot-path", "#map", "#feature-table .save"):
        name, text = saved(page, page.locator(position).get_by_role("button", name="as SVG"))
        root = ElementTree.fromstring(text)
        assert name.endswith(".svg")
        assert root.tag.endswith("svg")
        assert b"var(" not in text  # its styles are its own
        assert b"class=" not in text
        assert root[1].get("fill") == "#ffffff"  # day, though the page is dark
        assert len(root.findall(".//{http://www.w3.org/2000/svg}path")) > 3
        name, image_bytes = saved(page, page.locator(position).get_by_role("button", name="as PNG"))
        assert name.endswith(".png")
        assert image_bytes.startswith(b"\x89PNG")
        assert len(image_bytes) > 2_000


def test_code_is_copied_as_it_stands(open_report: Opener) -> None:
    content = example_content(n_selected=3, n_tasks=2)
    text = "x <- 1\nif (x < 2) print('<script>alert(1)</script>')\n"
    content.code = [CodeSample("Predict", "R", text, "A note.")]
    page = open_report(content, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: Predict, in R").click()
    page.locator("#code .copy [role=status]").first.get_by_text("Copied").wait_for()
    assert page.locator("#code-text-1").inner_text() == text
    assert page.evaluate("navigator.clipboard.readText()").strip() == text.strip()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.slow
def test_numbers_stay_in_their_cards(open_report: Opener, width: int) -> None:
    content = example_content(n_selected=0, n_tasks=3, n_values=1, n_features=8)
    content.quality = [FitQuality("R² on the training rows", np.array([-5.55e-17, 0.0, 1e-17]), np.full(3, 30))]
    content.certificate = {**content.certificate, "relative_gap": 1.2345e-117}
    page = open_report(content, viewport={"width": width, "height": 800})
    numbers = page.locator(".tiles b").all_inner_texts()
    assert numbers[1] == "0"  # not what rounding has left
    wider = "(all) => all.map((one) => one.scrollWidth - one.parentElement.clientWidth)"
    assert max(page.locator(".tiles b").evaluate_all(wider)) <= 0
    assert "the model is empty" in page.locator("#feature-table").inner_text()


def test_a_stream_is_drawn(open_report: Opener) -> None:
    content = example_content(n_selected=4, n_tasks=2, n_values=1, n_features=9)
    content.certificate = {}
    strengths = np.array([[0.0, 0.0, 1.0], [0.5, 0.0, 2.0], [1.0, 0.2, 0.0]])
    rows, losses = np.array([1, 2, 4]), np.array([3.0, 2.0, 1.5])
    content.stream = StreamHistory(rows, losses, rows, np.array([1, 2, 2]), strengths, np.array([0, 3, 5]))
    page = open_report(content)
    assert page.locator("#plot-losses .point").count() == 3
    assert page.locator("#plot-strengths path.curve").count() == 3
    assert page.locator("#plot-strengths path.curve.in").count() == 2  # in use at the end
    assert "not a regret" in page.locator("#stream").inner_text()
    _, text = saved(page, page.locator("#plot-strengths").get_by_role("button", name="as CSV"))
    assert rows_of(text)[0] == ["rows", str(content.features[0]), str(content.features[3]), str(content.features[5])]
    assert rows_of(text)[-1] == ["4", "1", "0.2", "0"]


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.slow
def test_runs_side_by_side(open_report: Opener, tmp_path: Path, width: int, scheme: str) -> None:
    contents = [example_content(n_selected=12, n_tasks=4, seed=seed, n_features=27) for seed in range(3)]
    contents[1] = replace(contents[1], features=np.array([f"<b>{name}" for name in contents[1].features], dtype=object))
    names = ["<script>alert(1)</script>", "second", "a rather long name of a run that a user has chosen"]
    runs = [
        ComparedRun(name, content, {"alpha": name}, {"rows": 9, "name": "t.csv", "sha256": "1"})
        for name, content in zip(names, contents, strict=True)
    ]
    file = write_compared(compare_runs(runs), contents, tmp_path / "runs.html")
    assert "<script>alert" not in file.read_text(encoding="utf-8")
    page = open_report(file, viewport={"width": width, "height": 900}, color_scheme=scheme)
    wide, window = page.evaluate(WIDTHS)
    assert wide <= window
    assert page.locator("#plot-scatter-0 .dot").count() == 0  # no feature in common
    assert page.locator("#plot-scatter-1 .dot").count() > 0
    assert page.locator("#plot-scores .dot").count() == 12
    assert page.locator("#plot-curves .trace").count() == 3
    assert page.locator("h1").inner_text().startswith("<script>")
