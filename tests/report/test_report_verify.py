"""A report that checks itself, in a real browser: it believes the right file, and no other."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.proof.certificate import Certificate
from tasksieve.report import content_from_model, render
from tasksieve.report.proof import carry, one_value

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
try:
    from playwright.sync_api import Error, Page, sync_playwright
except ImportError:
    pytest.skip("the browser tests need Playwright: pip install playwright", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("the browser tests need Chromium: apt-get install chromium", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::tasksieve.ScaleWarning")
HANGS = 600_000  # milliseconds after which a page has stopped for good
NAMES = [f"x{j}" for j in range(6)]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=flags)
        except Error as error:
            pytest.skip(f"Chromium ({CHROMIUM}) does not start here: {str(error).splitlines()[0]}")
        context = browser.new_context()
        context.set_default_timeout(HANGS)
        seen: list[str] = []
        page = context.new_page()
        page.on("console", lambda message: seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("request", lambda request: None if request.url[:5] in ("file:", "blob:") else seen.append(request.url))
        yield page
        browser.close()
        assert seen == []


Data = dict[str, np.ndarray]


def example(rng: np.random.Generator, n: int = 60) -> Data:
    """Columns at odd places and scales, tasks of different sizes, in mixed order."""
    X = rng.standard_normal((n, 6)) * [1.0, 3.0, 0.1, 1.0, 20.0, 1.0] + [0.0, 5.0, 0.0, -1e6, 0.0, 2.0]
    task = rng.choice(["a", "b", "b"], n)
    y = 2.0 * X[:, 0] - 5.0 * X[:, 2] * (task == "b") + 0.3 * rng.standard_normal(n)
    return {"X": X, "y": y, "task": task}


def write_csv(file: Path, data: Data, order: list[int] | None = None, names: list[str] = NAMES) -> Path:
    """A table: numbers in full, tasks in quotes, columns perhaps in another order."""
    others = [name for name in data if name != "X"]
    order = list(range(len(names))) if order is None else order
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow([*(names[j] for j in order), *others])
        for i, row in enumerate(data["X"]):
            writer.writerow([*(float(row[j]) for j in order), *(data[name][i].item() for name in others)])
    return file


def write_npz(file: Path, data: Data) -> Path:
    np.savez(file, **data)
    return file


def proved(model: Any, data: Data, change: Any = None) -> str:
    """The page of a fitted model that carries its certificate, changed before."""
    certificate = model.certificate(**data)
    certificate.header["features"] = NAMES
    given = {"sample_weight": "weight", "offset": "offset"}
    certificate.header["table"] = {
        "columns": [{"source": name} for name in NAMES], "target": "y", "task": "task",
        **{key: name if name in data else None for name, key in given.items()},
        "missing": ["", "NA"], "drop": False, "separator": ",",
    }  # fmt: skip
    if change is not None:
        change(certificate)
    content = content_from_model(model, n_alphas=0, feature_names=NAMES)
    carry(content, certificate.to_bytes(), 0, "tasksieve verify RUN")
    return render(content)


def opened(page: Page, text: str, folder: Path) -> None:
    report = folder / "report.html"
    report.write_text(text, encoding="utf-8")
    page.goto(report.as_uri())


def verdict(page: Page, file: Path) -> tuple[str, str]:
    """What the open page says of a file: the kind and the words."""
    page.evaluate("delete document.documentElement.dataset.verified")
    page.set_input_files("#verify-file", [])
    page.set_input_files("#verify-file", file)
    page.wait_for_selector("html[data-verified]", state="attached")
    return page.evaluate("document.documentElement.dataset.verified"), page.inner_text("#verify-verdict")


def logistic(**options: Any) -> Any:
    return ts.MultiTaskLogisticRegression(alpha=0.02, tol=1e-9, **options)


def squared(**options: Any) -> Any:
    return ts.MultiTaskLasso(alpha=0.05, tol=1e-10, **options)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (squared(), ()),
        (squared(standardize=True), ("sample_weight", "offset")),
        (squared(fit_intercept=False, task_weights={"a": 2.0, "b": 0.5}), ()),
        (ts.MultiTaskSparseGroupLasso(alpha=0.05, l1=0.5, tol=1e-10), ()),
        (ts.MultiTaskElasticNet(alpha=0.05, l1_ratio=0.7, standardize=True, tol=1e-10), ()),
        (squared(positive=True), ()),
        (squared(feature_weights=[1.0, 0.0, 2.0, 1.0, 1.0, 0.5]), ()),
        (logistic(class_weight="balanced"), ("sample_weight",)),
        (logistic(standardize=True, feature_weights=[1.0, 0.0, 2.0, 1.0, 1.0, 0.5]), ("offset",)),
    ],
    ids=str,
)
def test_the_right_file_is_verified(page: Page, tmp_path: Path, model: Any, more: tuple[str, ...]) -> None:
    rng = np.random.default_rng(3)
    data = example(rng)
    if isinstance(model, ts.MultiTaskLogisticRegression):
        data["y"] = np.where(data["y"] > 0, "yes", "no")
    data |= {name: rng.choice([0.0, 0.5, 1.0, 2.0], 60) for name in more}
    opened(page, proved(model.fit(**data), data), tmp_path)
    for file in (write_csv(tmp_path / "data.csv", data), write_npz(tmp_path / "data.npz", data)):
        kind, words = verdict(page, file)
        assert kind == "verified", words
        assert f"Verified on this computer, from this file ({file.name})" in words


def test_other_files_are_refused(page: Page, tmp_path: Path) -> None:
    data = example(np.random.default_rng(5))
    opened(page, proved(squared().fit(**data), data), tmp_path)

    def said(file: Path) -> str:
        kind, words = verdict(page, file)
        assert kind == "differs", words
        assert "Verified" not in words
        return words

    digit = {**data, "X": data["X"].copy()}
    digit["X"][7, 4] = np.nextafter(digit["X"][7, 4], np.inf)
    named = f"task “{data['task'][7]}”: the features"
    assert named in said(write_csv(tmp_path / "data.csv", digit))
    assert named in said(write_npz(tmp_path / "data.npz", digit))
    label = {**data, "y": data["y"] + np.eye(60)[3] * 1e-9}
    assert f"task “{data['task'][3]}”: labels" in said(write_npz(tmp_path / "data.npz", label))
    # columns under other names are other data; columns in another order, under their names, are the same
    mixed = [1, 0, 2, 3, 4, 5]
    assert "that of the columns" in said(write_npz(tmp_path / "data.npz", {**data, "X": data["X"][:, mixed]}))
    assert "the features" in said(write_csv(tmp_path / "data.csv", {**data, "X": data["X"][:, mixed]}))
    assert verdict(page, write_csv(tmp_path / "data.csv", data, mixed))[0] == "verified"
    assert "has 0 columns “x0”" in said(write_csv(tmp_path / "data.csv", data, names=["z", *NAMES[1:]]))
    fewer = {name: values[:-1] for name, values in data.items()}
    assert "rows" in said(write_csv(tmp_path / "data.csv", fewer))
    (tmp_path / "data.csv").write_bytes(b"\xff\xfe\x00" * 100)
    assert "UTF-8" in said(tmp_path / "data.csv")


def _tighter(certificate: Certificate) -> None:
    certificate.arrays["gap"] = certificate.arrays["gap"] / 1e3


def _lower(certificate: Certificate) -> None:
    certificate.arrays["objective"] = certificate.arrays["objective"] * 0.9


def _coefficient(certificate: Certificate) -> None:
    certificate.arrays["coef"] = certificate.arrays["coef"] * 1.01


def _dual(certificate: Certificate) -> None:
    certificate.arrays["dual"] = certificate.arrays["dual"][:, ::-1]  # a multiple would still do: it is scaled


def _strength(certificate: Certificate) -> None:
    certificate.arrays["alpha"] = certificate.arrays["alpha"] * 1.01


def _more_zeros(certificate: Certificate) -> None:
    certificate.arrays["open"] = certificate.arrays["open"][:1]
    certificate.arrays["open_start"] = np.array([0, 1])


def _all_sure(certificate: Certificate) -> None:
    d = certificate.header["n_features"]
    certificate.arrays |= {"sure": np.arange(d), "sure_start": np.array([0, d])}


@pytest.mark.parametrize("change", [_more_zeros, _all_sure])
@pytest.mark.parametrize("ridge", [False, True])
def test_features_that_are_not_proved_are_refused(page: Page, tmp_path: Path, change: Any, ridge: bool) -> None:
    data = example(np.random.default_rng(5))
    model = ts.MultiTaskElasticNet(alpha=0.5, l1_ratio=0.7, tol=1e-10) if ridge else squared()
    model.fit(**data)

    def claimed(certificate: Certificate) -> None:
        certificate.arrays.setdefault("open", np.arange(6))
        certificate.arrays.setdefault("open_start", np.array([0, 6]))
        change(certificate)

    certificate = model.certificate(**data)
    claimed(certificate)
    assert not certificate.verify(**data)
    content = content_from_model(model, n_alphas=0, feature_names=NAMES)
    content.proof = one_value(certificate.to_bytes())  # without marks: these would be refused before
    opened(page, render(content), tmp_path)
    kind, words = verdict(page, write_npz(tmp_path / "data.npz", data))
    assert kind == "unproved", words
    assert f"not proved to be {'zero' if change is _more_zeros else 'non-zero'} in every solution" in words


def test_marks_are_proved_and_must_be_the_certificates(page: Page, tmp_path: Path) -> None:
    data = example(np.random.default_rng(5))
    model = squared().fit(**data)
    opened(page, proved(model, data), tmp_path)
    file = write_npz(tmp_path / "data.npz", data)
    kind, words = verdict(page, file)
    assert kind == "verified", words
    sure, never = int(model.proven_nonzero_.sum()), int(model.proven_zero_.sum())
    assert sure > 0
    assert f"proved, too: {sure} feature{'s' * (sure != 1)} in every solution, {never} in none" in words
    assert page.get_by_role("button", name="Needed by this optimum").count() == 1
    assert page.locator("#feature-table td", has_text="yes").count() == sure
    assert page.locator("#feature-table td.good, #feature-table td.bad").count() == 0
    content = content_from_model(model, n_alphas=0, feature_names=NAMES)
    carry(content, model.certificate(**data).to_bytes(), 0, "")
    content.proven_nonzero = np.zeros(6, dtype=bool)
    opened(page, render(content), tmp_path)
    kind, words = verdict(page, file)
    assert kind == "differs"
    assert "marks" in words


def test_a_file_that_is_dropped(page: Page, tmp_path: Path) -> None:
    data = example(np.random.default_rng(5))
    opened(page, proved(squared().fit(**data), data), tmp_path)
    content = list(write_npz(tmp_path / "data.npz", data).read_bytes())
    page.evaluate(
        """(content) => {
            const files = new DataTransfer(), target = document.getElementById("verify-drop");
            files.items.add(new File([new Uint8Array(content)], "dropped.npz"));
            for (const kind of ["dragover", "drop"]) {
                target.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
            }
        }""",
        content,
    )
    page.wait_for_selector("html[data-verified]", state="attached")
    assert "from this file (dropped.npz)" in page.inner_text("#verify-verdict")
    assert not page.locator("#verify-drop.over").count()


def shared_example(classes: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 6)) + 3.0
    Y = X[:, :2] - 3.0 + 0.3 * rng.standard_normal((40, 2))
    return {"X": X, "y": (Y > 0.0) * 1.0 if classes else Y}


@pytest.mark.parametrize("classes", [False, True])
def test_one_matrix_for_all_tasks(page: Page, tmp_path: Path, classes: bool) -> None:
    data = shared_example(classes)
    data["y"][3, 1] = np.nan  # not observed
    model = (logistic() if classes else squared(standardize=True)).fit(**data)
    certificate = model.certificate(**data)
    certificate.header["features"] = NAMES
    certificate.header["table"] = {
        "columns": [{"source": name} for name in NAMES], "target": ["p", "q"], "task": None, "weight": None,
        "offset": None, "missing": ["nan"], "drop": False, "separator": ",",
    }  # fmt: skip
    content = content_from_model(model, n_alphas=0, feature_names=NAMES)
    carry(content, certificate.to_bytes(), 0, "")
    opened(page, render(content), tmp_path)
    wide = {"X": data["X"], "p": data["y"][:, 0], "q": data["y"][:, 1]}
    for file in (write_npz(tmp_path / "data.npz", data), write_csv(tmp_path / "data.csv", wide)):
        kind, words = verdict(page, file)
        assert kind == "verified", words
    wide["X"] = data["X"] + np.eye(40, 6)
    kind, words = verdict(page, write_csv(tmp_path / "data.csv", wide))
    assert kind == "differs"
    assert "the features (X) are not those" in words


@pytest.mark.parametrize("drop", [False, True])
def test_cells_that_are_missing(page: Page, tmp_path: Path, drop: bool) -> None:
    """Filled, or their rows dropped; a word as a column of zeros and ones."""
    rng = np.random.default_rng(4)
    X, colour = rng.standard_normal((50, 2)), rng.choice(["red", "blue", "NA"], 50)
    y, gone = X[:, 0] + (colour == "red") + 0.1 * rng.standard_normal(50), rng.random(50) < 0.2
    recipe = [{"source": "a"}, {"source": "b", "fill": 0.5}, {"source": "colour", "equals": "red", "fill": 0.0}]
    if drop:
        recipe = [{"source": "a"}, {"source": "b"}, {"source": "colour", "equals": "red"}]
    kept = ~gone & (colour != "NA") if drop else np.full(50, True)
    filled = np.column_stack([X[:, 0], np.where(gone & (not drop), 0.5, X[:, 1]), (colour == "red") * 1.0])
    data = {"X": filled[kept], "y": y[kept]}
    model = ts.MultiTaskLasso(alpha=0.02, tol=1e-10).fit(**data)
    certificate = model.certificate(**data)
    certificate.header["table"] = {
        "columns": recipe, "target": "y", "task": None, "weight": None, "offset": None, "missing": ["", "NA"],
        "drop": drop, "separator": ";",
    }  # fmt: skip
    lines = ["a;b;colour;y"]
    for i in range(50):
        b = ("", "NA")[i % 2] if gone[i] else repr(float(X[i, 1]))
        lines.append(f"{float(X[i, 0])!r};{b};{colour[i]};{float(y[i])!r}")
    (tmp_path / "data.csv").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    content = content_from_model(model, n_alphas=0)
    carry(content, certificate.to_bytes(), 0, "")
    opened(page, render(content), tmp_path)
    kind, words = verdict(page, tmp_path / "data.csv")
    assert kind == "verified", words


def test_cells_that_tasks_fill_and_indicators(page: Page, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    a, gone, task = rng.standard_normal(50), rng.random(50) < 0.2, np.array(["u", "v"])[np.arange(50) % 2]
    y = a + 0.1 * rng.standard_normal(50)
    filled = np.where(gone, np.where(task == "u", 0.5, -2.0), a)
    data = {"X": np.column_stack([filled, gone * 1.0]), "y": y, "task": task}
    model = ts.MultiTaskLasso(alpha=0.02, tol=1e-10).fit(**data)
    lines = [f"{'' if gone[i] else repr(float(a[i]))};{task[i]};{float(y[i])!r}" for i in range(50)]
    (tmp_path / "data.csv").write_text("\n".join(["a;task;y", *lines]) + "\n", encoding="utf-8")
    for fill, expected in (([0.5, -2.0], "verified"), ([-2.0, 0.5], "differs")):
        certificate = model.certificate(**data)
        certificate.header["table"] = {
            "columns": [{"source": "a", "fill": fill}, {"source": "a", "missing": True}], "target": "y", "task": "task",
            "weight": None, "offset": None, "missing": [""], "drop": False, "separator": ";",
        }  # fmt: skip
        content = content_from_model(model, n_alphas=0)
        carry(content, certificate.to_bytes(), 0, "")
        opened(page, render(content), tmp_path)
        kind, words = verdict(page, tmp_path / "data.csv")
        assert (kind == "verified") == (expected == "verified"), words


@pytest.mark.parametrize("change", [_tighter, _lower, _coefficient, _dual, _strength])
def test_a_tampered_certificate_is_refused(page: Page, tmp_path: Path, change: Any) -> None:
    data = example(np.random.default_rng(5))
    model = squared().fit(**data)
    opened(page, proved(model, data, change), tmp_path)
    kind, words = verdict(page, write_npz(tmp_path / "data.npz", data))
    assert kind == "unproved", words
    assert "claim" in words


@pytest.mark.parametrize("covariate", [False, True])
def test_coefficients_that_are_shown_are_the_certificates(page: Page, tmp_path: Path, covariate: bool) -> None:
    data = example(np.random.default_rng(5))
    model = squared(**({"feature_weights": [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]} if covariate else {})).fit(**data)
    certificate = model.certificate(**data)
    factors = np.where(np.arange(model.coef_.shape[1]) == 1, 1.01, 1.0) if covariate else 1.01
    model.coef_ = model.coef_ * factors
    content = content_from_model(model, n_alphas=0, feature_names=NAMES)
    content.proof = one_value(certificate.to_bytes())
    opened(page, render(content), tmp_path)
    kind, words = verdict(page, write_npz(tmp_path / "data.npz", data))
    assert kind == "differs"
    assert "another coefficient" in words


@pytest.mark.parametrize("claim", ["objective", "dual_gap"])
def test_numbers_that_are_told_are_the_certificates(page: Page, tmp_path: Path, claim: str) -> None:
    data = example(np.random.default_rng(5))
    model = squared().fit(**data)
    content = content_from_model(model, n_alphas=0, feature_names=NAMES)
    content.certificate = {**content.certificate, claim: 0.5 * content.certificate[claim]}
    content.proof = one_value(model.certificate(**data).to_bytes())
    opened(page, render(content), tmp_path)
    kind, words = verdict(page, write_npz(tmp_path / "data.npz", data))
    assert kind == "differs"
    assert "the report is not that of its certificate" in words


def test_what_the_browser_cannot_check(page: Page, tmp_path: Path) -> None:
    data = example(np.random.default_rng(5))
    huber = ts.MultiTaskHuber(alpha=0.05).fit(**data)
    opened(page, proved(huber, data), tmp_path)
    kind, words = verdict(page, write_npz(tmp_path / "data.npz", data))
    assert kind == "unsupported"
    assert "tasksieve verify" in words


def test_pages_without_a_certificate_carry_no_checker() -> None:
    data = example(np.random.default_rng(5))
    text = render(content_from_model(squared().fit(**data), n_alphas=0))
    assert not [word for word in ("verify-file", "Sha256", "worker-src") if word in text]
