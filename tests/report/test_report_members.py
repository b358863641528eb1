"""What a report shows of particular losses and penalties."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.report import content_from_model
from tasksieve.report.page import render


@pytest.fixture
def rows(rng):
    X, task = rng.standard_normal((90, 6)), np.repeat(["a", "b", "c"], 30)
    z = X[:, 0] * np.repeat([2.0, 1.0, 1.0], 30) + (task == "b") * X[:, 3]
    return X, z, task, rng


def test_dirty_has_two_tables_that_add_up(rows):
    X, z, task, _ = rows
    model = ts.MultiTaskRegressor(penalty="dirty", alpha=0.05, standardize=True).fit(X, z, task=task)
    shared, specific = content_from_model(model, X, z, task, n_alphas=0).tables
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
    content = content_from_model(model, X, z, task, n_alphas=0)
    (table,) = content.tables
    assert [row[0] for row in table.rows] == list(model.selected_groups_)
    assert [name for name, _ in table.inside[0]] == ["x0", "x1"]
    page = render(content)
    assert "<details><summary>g1</summary>" in page


def test_rates(rows):
    X, z, task, rng = rows
    counts = rng.poisson(np.exp(0.3 * z))
    model = ts.MultiTaskPoisson(alpha=0.05).fit(X, counts, task=task, offset=np.zeros(90))
    content = content_from_model(model, X, counts, task, offset=np.zeros(90), n_alphas=3)
    (table,) = content.tables
    assert table.title == "Rate ratios"
    name, *cells = table.rows[0]
    np.testing.assert_allclose([float(cell) for cell in cells], np.exp(model.coef_[:, int(name[1:])]), rtol=1e-3)
    assert content.quality[0].measure.startswith("D²")


def test_a_table_for_each_class(rows):
    X, z, task, _ = rows
    labels = np.array(["low", "mid", "high"])[np.digitize(z, [-1.0, 1.0])]
    model = ts.MultiTaskClassifier(alpha=0.05).fit(X, labels, task=task)
    content = content_from_model(model, X, labels, task, n_alphas=3)
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
    assert not content_from_model(ts.MultiTaskLasso(alpha=0.1).fit(X, z, task=task), X, z, task, n_alphas=0).tables
