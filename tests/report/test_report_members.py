"""What a report shows of particular losses and penalties."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.report import content_from_model
from tasksieve.report.packing import pack
from tasksieve.report.page import render, static_rows


@pytest.fixture
def rows(rng):
    X, task = rng.standard_normal((90, 6)), np.repeat(["a", "b", "c"], 30)
    z = X[:, 0] * np.repeat([2.0, 1.0, 1.0], 30) + (task == "b") * X[:, 3]
    return X, z, task, rng


def test_dirty_has_two_tables_that_add_up(rows):
    X, z, task, _ = rows
    model = ts.MultiTaskRegressor(penalty="dirty", alpha=0.05, standardize=True).fit(X, z, task=task)
    shared, specific = content_from_model(model, X, z, task=task, n_alphas=0).tables
    assert shared.title == "What tasks share"
    assert specific.title == "What single tasks add"
    assert list(shared.columns) == ["Feature", "a", "b", "c"]
    both = {}
    for table in (shared, specific):
        for name, *cells in table.rows:
            both[name] = both.get(name, 0.0) + np.array([float(cell.replace("−", "-")) for cell in cells])
    for name, total in both.items():
        np.testing.assert_allclose(total, model.coef_[:, int(name[1:])], rtol=2e-3, atol=2e-4)


def test_groups_open_to_their_features(rows):
    X, z, task, _ = rows
    groups = ["g1", "g1", "g2", "g2", "g3", "g3"]
    model = ts.MultiTaskGroupLasso(alpha=0.3, feature_groups=groups).fit(X, z, task=task)
    content = content_from_model(model, X, z, task=task, n_alphas=0)
    (table,) = content.tables
    assert [row[0] for row in table.rows] == list(model.selected_groups_)
    assert [name for name, _ in table.inside[0]] == ["x0", "x1"]
    page = render(content)
    assert "<details><summary>g1</summary>" in page


def test_rates(rows):
    X, z, task, rng = rows
    counts = rng.poisson(np.exp(0.3 * z))
    model = ts.MultiTaskPoisson(alpha=0.05).fit(X, counts, task=task, offset=np.zeros(90))
    content = content_from_model(model, X, counts, task=task, offset=np.zeros(90), n_alphas=3)
    (table,) = content.tables
    assert table.title == "Rate ratios"
    name, *cells = table.rows[0]
    np.testing.assert_allclose([float(cell) for cell in cells], np.exp(model.coef_[:, int(name[1:])]), rtol=1e-3)
    assert content.quality[0].measure.startswith("D²")


def test_a_table_for_each_class(rows):
    X, z, task, _ = rows
    labels = np.array(["low", "mid", "high"])[np.digitize(z, [-1.0, 1.0])]
    model = ts.MultiTaskClassifier(alpha=0.05).fit(X, labels, task=task)
    content = content_from_model(model, X, labels, task=task, n_alphas=3)
    quality, *classes = content.tables
    assert [table.title for table in classes] == ["Class “high”", "Class “low”", "Class “mid”"]
    assert quality.title == "How well each task is fitted"  # its rows are not those of the coefficients
    assert [row[0] for row in quality.rows] == ["a", "b", "c"]
    right = model.predict(X, task=task) == labels
    assert float(quality.rows[0][2]) == pytest.approx(right[task == "a"].mean(), abs=1e-3)
    assert content.coef.shape == (9, 6)
    assert content.tasks[0] == "high / a"
    np.testing.assert_array_equal(content.coef.toarray()[1], model.coef_[0, 1])
    np.testing.assert_allclose(content.path_coefs[-2].toarray().shape, (9, 6))
    assert any(name.startswith("Accuracy") for name, _ in content.facts)
    assert "9" in render(content)


def test_other_models_have_none(rows):
    X, z, task, _ = rows
    assert not content_from_model(ts.MultiTaskLasso(alpha=0.1).fit(X, z, task=task), X, z, task=task, n_alphas=0).tables


def test_unlike_outcomes_on_one_page(rng):
    """Each task in its own measures, ratios where they mean something, thresholds, weights; survival by risk."""
    names, words = ("death", "diabetes", "pain", "pressure", "visits"), ["none", "mild", "severe"]
    X = {task: rng.standard_normal((45, 5)) for task in names}
    z = {task: own[:, 0] for task, own in X.items()}
    y = {
        "pressure": 1e6 * (z["pressure"] + rng.normal(0.0, 0.5, 45)),  # in small units
        "diabetes": np.where(z["diabetes"] + rng.logistic(size=45) > 0.0, "yes", "no"),
        "visits": rng.poisson(np.exp(0.5 * z["visits"])),
        "pain": np.array(words)[np.digitize(z["pain"] + rng.logistic(size=45), [-0.8, 0.8])],
        "death": ts.survival(rng.exponential(np.exp(-z["death"])), rng.random(45) < 0.8),
    }
    losses = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "pain": "ordinal", "death": "cox"}
    model = ts.MultiTaskMixedCV(losses, categories={"pain": words}, alphas=[0.5, 0.3], cv=3).fit(X, y)
    content = content_from_model(model, X, y, held_out=(X, y))
    tables = {table.title: table for table in content.tables}
    assert list(model.tasks_) == list(names)
    own = {(row[0], row[1]): row[2] for row in tables["Each task in its own measures"].rows}
    assert {task for task, measure in own if measure == "D²"} == set(names)
    assert {measure for task, measure in own if task == "pain"} == {
        "D²", "accuracy", "mean absolute error", "ordinal deviance"
    }  # fmt: skip
    where = ("on the training rows", "on held-out rows", "out of fold")
    assert [part.measure for part in content.quality] == [f"D² {words}" for words in where]
    np.testing.assert_array_equal(content.quality[0].values, content.quality[1].values)

    ratios = tables["Ratios"]
    assert list(ratios.columns[1:]) == [
        "death, hazard ratio", "diabetes, odds ratio", "pain, odds ratio", "visits, rate ratio"
    ]  # fmt: skip
    assert "the class “yes”" in ratios.note
    rows = [names.index(head.split(",")[0]) for head in ratios.columns[1:]]
    for name, *cells in ratios.rows:
        np.testing.assert_allclose([float(cell) for cell in cells], np.exp(model.coef_[rows, int(name[1:])]), rtol=1e-3)
    thresholds = tables["Thresholds between classes"]
    assert [row[:2] for row in thresholds.rows] == [["pain", "none | mild"], ["pain", "mild | severe"]]
    assert thresholds.is_text(1)
    assert not thresholds.is_text(2)
    assert [row[0] for row in tables["Loss of each task"].rows] == list(names)
    assert list(content.risk.tasks) == ["death"]
    assert "Calibration of each task" in tables

    # what is compared is what the penalty compares; what is shown are the units of the data
    packed = pack(content)
    scaled = model.coef_ / model.target_scales_[:, None]
    np.testing.assert_allclose(packed.strengths, np.linalg.norm(scaled, axis=0)[packed.order])
    at = int(np.argmax(np.abs(scaled[:, packed.order[0]])))
    (first, *_) = static_rows(content, packed)
    assert first["largest"].endswith(f" in {names[at]}")
    page = render(content)
    assert "5 outcomes, each with a loss that fits it" in page
    assert "squared of pressure; logistic of diabetes" in page
    assert "loss mixed" not in page
    assert content.answered.count("D²") == 2  # on the rows kept apart, and out of fold
