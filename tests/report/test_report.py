"""Reports: what they hold, that names cannot become markup, that sizes are bounded, that parts may be missing."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from report_examples import example_content

import tasksieve as ts
from tasksieve.report import ReportContent, content_from_model, packing, render, task_quality, write_report
from tasksieve.report.page import HERE, optimum_interval
from tasksieve.report.words import quantity, small


def page_data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def unpacked(part: dict[str, str], width: int) -> np.ndarray:
    scale = np.frombuffer(base64.b64decode(part["scale"]), "<f4")
    values = np.frombuffer(base64.b64decode(part["values"]), "<i2").reshape(-1, width)
    return values * scale[:, None].astype(float)


class Elements(HTMLParser):
    """Tags and attribute names of a page, scripts and styles counted."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 12))
    task = np.repeat(["a", "b", "c"], 30)
    y = X[:, 0] * np.where(task == "b", -1.0, 2.0) + X[:, 5] + 0.3 * rng.standard_normal(90)
    return X, y, task


# --- the numbers travel unharmed -------------------------------------------------------------------------------------


def test_packed_numbers_are_the_models() -> None:
    content = example_content(n_selected=12, n_tasks=4, n_values=10)
    data = page_data(render(content))
    names = list(content.features)
    order = [names.index(name) for name in data["features"]]
    strength = np.array([np.sqrt(coef.power(2).sum(axis=0)) for coef in content.path_coefs])[:, order].T
    np.testing.assert_allclose(
        unpacked(data["strengths"], 10), strength, rtol=0, atol=strength.max() / 30_000
    )
    assert np.all(np.diff(strength[:, -1]) <= 0), "strongest first"
    # the blocks of the path: for each value, the rows of its features
    scale = np.frombuffer(base64.b64decode(data["pathCoefficients"]["scale"]), "<f4")
    values = np.frombuffer(base64.b64decode(data["pathCoefficients"]["values"]), "<i2").reshape(-1, 4)
    start = 0
    for k, coef in enumerate(content.path_coefs):
        present = np.flatnonzero(strength[:, k])
        block = values[start : start + len(present)] * scale[present, None]
        truth = coef[:, np.array(order)[present]].toarray().T
        np.testing.assert_allclose(block, truth, rtol=0, atol=strength.max() / 30_000)
        start += len(present)
    assert start == len(values)
    assert data["path"]["nSelected"] == content.n_selected.tolist()
    np.testing.assert_allclose(data["path"]["cv"]["mean"], content.cv_scores.mean(axis=1), rtol=1e-5)


def test_only_exact_zeros_are_packed_as_zero() -> None:
    content = example_content(2, 3, n_values=1, n_features=5)
    content.coef = scipy.sparse.csr_array(
        np.array([[0, 1.0, 0, 0, 0], [0, 1e-9, 0, 0, 0], [0, 0, 0, 0, 1.0]])
    )
    data = page_data(render(content))
    values = np.frombuffer(base64.b64decode(data["coefficients"]["values"]), "<i2").reshape(2, 3)
    np.testing.assert_array_equal(values != 0, [[True, True, False], [False, False, True]])


def test_what_does_not_fit_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    content = example_content(n_selected=30, n_tasks=4, n_values=10)
    monkeypatch.setattr(packing, "MAX_PATH_COEFFICIENTS", 100)
    page = render(content)
    assert page_data(page)["pathCoefficients"] is None
    assert "for the chosen model only" in page
    monkeypatch.setattr(packing, "MAX_COEFFICIENTS", 80)
    page = render(content)
    assert "the 20 strongest are in this file" in page
    assert len(page_data(page)["features"]) == 20
    assert page_data(page)["nSelected"] == 30
    monkeypatch.setattr(packing, "MAX_TASKS", 3)
    page = render(content)
    assert len(page_data(page)["tasks"]) == 3
    assert "Of the 4 tasks the 3" in page


def test_a_report_of_thousands_of_features_and_hundreds_of_tasks_is_bounded(tmp_path: Path) -> None:
    content = example_content(n_selected=5_000, n_tasks=500, n_values=4, n_features=20_000)
    file = write_report(content, tmp_path / "report.html")
    assert file.stat().st_size < 20e6


def test_a_report_of_very_many_features_is_bounded(tmp_path: Path) -> None:
    content = example_content(n_selected=60_000, n_tasks=1, n_values=1, n_features=60_000)
    content.features = np.array([f"{j} {'long ' * 40}" for j in range(60_000)], dtype=object)
    file = write_report(content, tmp_path / "report.html")
    assert file.stat().st_size < 20e6
    assert "Of the 60,000 selected features the 20,000 strongest" in file.read_text(encoding="utf-8")


# --- names are text, never markup ------------------------------------------------------------------------------------

NASTY = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "\"' onmouseover='alert(4)",
    "{{ 7 * 7 }}{% raw %}",
    "a & b &lt; c",
    "\u2028\u2029\x00 <!--",
    "\ud800 lone",
]


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    content = example_content(n_selected=10, n_tasks=4, n_values=5, n_features=10)
    plain = Elements()
    plain.feed(render(content))
    for j, name in enumerate(NASTY):
        content.features[j] = name
    content.tasks[:4] = NASTY[:4]
    content.title = content.asked = content.answered = content.reproduce = NASTY[1]
    content.facts = [(NASTY[0], NASTY[1])]
    content.versions = {"tasksieve": NASTY[1]}
    content.cv_measure = NASTY[1]
    content.quality[0].measure = NASTY[1]
    content.warnings = []
    page = render(content)
    seen = Elements()
    seen.feed(page)
    assert seen.tags == plain.tags
    assert seen.handlers == []
    assert "{{ 7 * 7 }}" in page
    data = page_data(page)
    assert set(NASTY[:6]) <= set(data["features"])
    file = write_report(content, tmp_path / "nasty.html")  # a lone surrogate has no place in a file: replaced
    file.read_text(encoding="utf-8")


def test_only_our_own_script_may_run() -> None:
    page = render(example_content())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "script-src 'sha256-" in policy[1]
    without_data = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", without_data)
    assert all(link.startswith("#") for link in links), links
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", without_data)


# --- parts that are missing, parts that do not fit -------------------------------------------------------------------


def test_parts_may_be_missing() -> None:
    content = example_content(n_selected=3, n_tasks=2, n_values=1)
    content.quality, content.facts, content.versions = [], [], {}
    content.certificate = {"objective": 1.0, "dual_gap": None, "relative_gap": None}  # type: ignore[dict-item]
    content.reproduce = ""
    page = render(content)
    assert "carries no certificate" in page
    assert 'id="alpha"' not in page
    assert "Details" not in page


def test_an_empty_model_says_so() -> None:
    content = example_content(n_selected=3, n_tasks=2, n_values=1)
    content.coef = scipy.sparse.csr_array(content.coef.shape)
    page = render(content)
    assert "No feature is selected" in page


def test_a_careful_reader_is_warned() -> None:
    content = example_content()
    content.certificate = {**content.certificate, "converged": False}
    content.cv_scores = np.linspace(2.0, 1.0, 10)[:, None] + np.zeros((10, 5))
    page = render(content)
    assert "before it reached the tolerance" in page
    assert "smallest alpha tried" in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("features", np.array(["one"], dtype=object)),
        ("tasks", np.array(["one"], dtype=object)),
        ("n_selected", np.arange(3)),
        ("cv_scores", np.zeros((3, 2))),
        ("path_coefs", []),
        ("chosen", 77),
        ("alphas", np.zeros(10)),
    ],
)
def test_content_that_does_not_fit_is_refused_by_name(name: str, value: Any) -> None:
    content = example_content()
    setattr(content, name, value)
    with pytest.raises(ValueError, match=name):
        render(content)


def test_missing_jinja_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'tasksieve\[report\]'"):
        render(example_content())


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_report(example_content(), tmp_path / "report.html")
    before = file.read_bytes()

    def full_disk(handle: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_report(example_content(seed=1), file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["report.html"]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    one = write_report(example_content(), tmp_path / "one.html").read_bytes()
    two = write_report(example_content(), tmp_path / "two.html").read_bytes()
    assert one == two


# --- from a model ----------------------------------------------------------------------------------------------------


def test_from_a_model(problem: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    X, y, task = problem
    model = ts.MultiTaskLasso(alpha=0.3).fit(X, y, task=task)
    content = content_from_model(model, X, y, task=task, n_alphas=7, held_out=(X[::2], y[::2], task[::2]))
    assert content.alphas is not None
    assert len(content.alphas) == 7
    assert content.alphas[-1] == 0.3
    np.testing.assert_array_equal(content.path_coefs[-1].toarray(), model.coef_)
    assert content.certificate["converged"]
    assert content.certificate["dual_gap"] == model.dual_gap_
    null = np.mean([np.sum((y[task == t] - y[task == t].mean()) ** 2) for t in "abc"]) * 3 / (2 * 30)
    np.testing.assert_allclose(content.certificate["null_objective"], null, rtol=1e-9)
    assert np.mean(content.quality[0].values) == pytest.approx(model.score(X, y, task=task))
    assert content.quality[0].rows.tolist() == [30, 30, 30]
    assert content.quality[1].measure == "R² on held-out rows"
    file = ts.write_report(model, tmp_path / "report.html", X=X, y=y, task=task)
    assert "3 related regressions" in file.read_text(encoding="utf-8")


def test_from_cross_validation(problem: tuple[np.ndarray, ...]) -> None:
    X, y, task = problem
    model = ts.MultiTaskLassoCV(n_alphas=8, eps=0.05, cv=3).fit(X, y, task=task)
    content = content_from_model(model, X, y, task=task, feature_names=[f"f{j}" for j in range(12)])
    np.testing.assert_array_equal(content.cv_scores, model.cv_scores_)
    assert content.alphas is not None
    assert content.alphas[content.chosen] == model.alpha_
    np.testing.assert_allclose(content.path_coefs[content.chosen].toarray(), model.coef_)
    assert "f0" in render(content)


@pytest.mark.parametrize("screening", ["auto", "dpc", None, "dpc-published"])
def test_rejection_ratios_are_drawn_of_a_rule_that_is_run_at_every_value(
    problem: tuple[np.ndarray, ...], screening: str | None
) -> None:
    X, y, task = problem
    path = ts.MultiTaskLasso(screening=screening).path(X, y, task=task, n_alphas=6, eps=0.05)
    page = render(content_from_model(path))
    drawn = screening == "dpc-published"
    assert ('id="plot-rejection"' in page) == drawn
    assert (page_data(page)["path"]["rejection"] is not None) == drawn


def test_from_a_path(problem: tuple[np.ndarray, ...]) -> None:
    X, y, task = problem
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=6, eps=0.05)
    content = content_from_model(path)
    np.testing.assert_array_equal(content.coef.toarray(), path.coef(-1).toarray())
    page = render(content)
    assert "6 models" in page
    assert page_data(page)["path"]["chosen"] == 5


def test_from_models_of_every_kind(problem: tuple[np.ndarray, ...]) -> None:
    """Shared matrices, lists, classes, graphs, streams: whatever has coefficients can be reported."""
    X, y, task = problem
    labels = np.where(y > 0, "yes", "no")
    shared = ts.MultiTaskLasso(alpha=0.2).fit(X, np.c_[y, -y])
    parts = [X[:30], X[30:]], [y[:30], y[30:]]
    cases = [
        (shared, X, np.c_[y, -y], None),
        (ts.MultiTaskLasso(alpha=0.2).fit(*parts), *parts, None),
        (ts.MultiTaskLogisticRegression(alpha=0.1).fit(X, labels, task=task), X, labels, task),
        (ts.MultiTaskElasticNet(alpha=0.2).fit(X, y), X, y, None),
        (ts.MultiTaskSparseGroupLasso(alpha=0.2).fit(X, y, task=task), X, y, task),
        (ts.GraphSVC(np.ones((3, 3)) - np.eye(3)).fit(X, labels, task=task), X, labels, task),
        (ts.OnlineMultiTaskRegressor(alpha=0.01).partial_fit(X, y, task=task), X, y, task),
    ]
    for model, rows, targets, tasks in cases:
        content = content_from_model(model, rows, targets, task=tasks, n_alphas=3)
        assert np.all(np.isfinite(content.quality[0].values)), model
        assert page_data(render(content))["nTasks"] == len(content.tasks)


def test_the_rows_of_a_multinomial_model_are_classes(problem: tuple[np.ndarray, ...]) -> None:
    from sklearn.linear_model import LogisticRegression

    X, y, _ = problem
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1.0, 1.0])]
    model = LogisticRegression().fit(X, labels)
    content = content_from_model(model, X, labels)
    assert content.row_noun == "class"
    assert list(content.tasks) == ["high", "low", "middle"]
    assert content.quality[0].rows.tolist() == [int(np.sum(labels == name)) for name in content.tasks]
    np.testing.assert_allclose(
        content.quality[0].values @ content.quality[0].rows / len(labels), model.score(X, labels)
    )
    page = render(content)
    assert "3 classes: which of the 12 features tell them apart?" in page
    assert "How well each class is fitted" in page
    assert "carries no certificate" in page


def test_quality_of_tasks_that_are_absent(problem: tuple[np.ndarray, ...]) -> None:
    X, y, task = problem
    model = ts.MultiTaskLasso(alpha=0.3).fit(X, y, task=task)
    rows = task != "b"
    quality = task_quality(model, X[rows], y[rows], task=task[rows])
    assert np.isnan(quality.values[1])
    assert quality.rows.tolist() == [30, 0, 30]


def test_what_cannot_be_reported_is_refused(problem: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    X, y, task = problem
    with pytest.raises(ValueError, match="not fitted"):
        content_from_model(ts.MultiTaskLasso())
    model = ts.MultiTaskLasso(alpha=0.3).fit(X, y, task=task)
    with pytest.raises(ValueError, match="X and y come together"):
        content_from_model(model, X)
    with pytest.raises(ValueError, match="feature_names holds 1 names, but there are 12"):
        content_from_model(model, feature_names=["one"])
    with pytest.raises(TypeError, match="title"):
        write_report(example_content(), tmp_path / "report.html", title="other")


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1.00"),
        (-0.25, "−0.250"),
        (1234.5, "1,234"),
        (12345678, "1.23\u00a0×\u00a010⁷"),
        (2.5e-7, "2.50\u00a0×\u00a010⁻⁷"),
        (float("nan"), "–"),
    ],
)
def test_quantity(value: float, text: str) -> None:
    assert quantity(value) == text


def test_small() -> None:
    assert small(3.14e-8) == "3.1\u00a0×\u00a010⁻⁸"
    assert small(0.0) == "0"
    assert small(float("inf")) == "–"


@pytest.mark.parametrize(
    ("objective", "gap"),
    [(1.7219689, 2.5e-7), (0.5, 0.0), (272.8819, 4e-3), (1e-9, 1e-12), (3e20, 1.0), (5.0, 70.0)],
)
def test_the_printed_interval_holds_the_true_one(objective: float, gap: float) -> None:
    ends = optimum_interval({"objective": objective, "dual_gap": gap})
    assert ends is not None
    if "×" not in ends[0] + ends[1]:
        low, high = (Decimal(end.replace(",", "")) for end in ends)
        assert low <= Decimal(max(0.0, objective - gap))
        assert high >= Decimal(objective)


def test_colours_can_be_read() -> None:
    """WCAG AA by day and by night: text 4.5 : 1 on its ground."""
    style = (HERE / "report.css").read_text(encoding="utf-8")
    themes = re.findall(r":root(?:, \.paper)? \{(.*?)color-scheme", style, re.DOTALL)
    assert len(themes) == 3  # day, night, paper
    day = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", themes[0]))
    for theme in themes:
        colours = {**day, **dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", theme))}
        for text in ("ink", "muted", "accent", "warm", "good", "bad"):
            for ground in ("page", "panel", "faint"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["ink"], colours["notice"]) >= 4.5


def contrast(one: str, two: str) -> float:
    levels = sorted((luminance(one), luminance(two)))
    return (levels[1] + 0.05) / (levels[0] + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_report_content_is_plain() -> None:
    """The contract with the command line: everything but the model itself has a default."""
    content = example_content(3, 2, n_values=1)
    least = ReportContent(
        "t", "a", "b", content.tasks, content.features, content.coef, content.intercept, content.certificate
    )
    assert render(least).startswith("<!doctype html>")


@pytest.mark.slow
def test_the_demo_leaves_its_reports(tmp_path: Path) -> None:
    demo = Path(__file__).parents[2] / "examples" / "demo.py"
    run = subprocess.run(
        [sys.executable, demo, "--out", tmp_path, "--features", "300"], capture_output=True, text=True, check=True
    )
    assert "accuracy on the test images" in run.stdout
    assert "Which pixels tell ten digits apart?" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "A path of 100 models" in (tmp_path / "path.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskElasticNetCV(l1_ratio=[0.5, 0.9], n_alphas=4, cv=3),
        ts.CalibratedMultiTaskLassoCV(l2=[0.0, 0.1], n_alphas=4, cv=3),
        ts.MultiTaskRegressorCV(task_graph=np.zeros((1, 1)), graph_strength=[0.5, 2.0], n_alphas=4, cv=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_several_values_compared(model: Any, tmp_path: Path) -> None:
    """Of several paths that were compared, the report and the picture show the chosen one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    model.fit(X, X[:, 0] + 0.1 * rng.standard_normal(60))
    assert model.cv_scores_.shape == (2, 4, 3)
    name = model._compared
    best = list(getattr(model, name)).index(getattr(model, f"{name}_"))
    content = content_from_model(model)
    np.testing.assert_array_equal(content.cv_scores, model.cv_scores_[best])
    np.testing.assert_array_equal(content.cv_scores, model.path_scores_)
    assert content.cv_measure == model.cv_measure
    table = content.tables[0]
    assert table.title == f"Values of {name} that were compared"
    assert [row[0] for row in table.rows] == [f"{value:g}" for value in getattr(model, name)]
    assert [row[-1] for row in table.rows] == ["yes" if m == best else "no" for m in range(2)]
    assert f"{name} = {getattr(model, f'{name}_'):g} (among " in content.methods
    write_report(model, tmp_path / "report.html")
    pytest.importorskip("matplotlib").use("agg")
    assert model.plot_scores().get_ylabel() == model.cv_measure


def test_a_dict_of_pairs_as_fit_takes_it(tmp_path: Path) -> None:
    X, y, task, _ = ts.datasets.make_wang_synthetic(n_features=20, n_tasks=3, n_rows=15, random_state=0)
    pairs = {f"site {t}": (X[task == t], y[task == t]) for t in np.unique(task)}
    model = ts.MultiTaskLasso(alpha=1.0).fit(pairs)
    named = ts.report.content_from_model(model, pairs, n_alphas=3)
    stacked = ts.report.content_from_model(model, X, y, task=np.array([f"site {t}" for t in task]), n_alphas=3)
    assert named.quality[0].measure == stacked.quality[0].measure
    np.testing.assert_array_equal(named.quality[0].values, stacked.quality[0].values)
    assert ts.write_report(model, tmp_path / "report.html", X=pairs).exists()
