"""The R package where it meets Python: names, versions, and the functions that R asks, called without R."""

import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.messages import ParameterError
from tasksieve.parameters import CROSS_VALIDATED, STABILITY

HERE = Path(__file__).parents[1]
PACKAGE = HERE / "r"


@cache
def _helper():
    spec = importlib.util.spec_from_file_location(
        "tasksieve_for_r", PACKAGE / "inst/python/tasksieve_for_r.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _field(name):
    return re.search(rf"^{name}: (.*)$", (PACKAGE / "DESCRIPTION").read_text(), re.M)[1]


def test_version_and_licence_are_the_projects():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    assert project["version"] == ts.__version__
    assert _field("Version") == _helper().in_r(ts.__version__) == _helper().health()["version_in_r"]
    assert (PACKAGE / "NEWS.md").read_text().startswith(f"# tasksieve {_field('Version')}\n")
    assert (project["license"], _field("License")) == ("BSD-3-Clause", "BSD_3_clause + file LICENSE")


def test_versions_as_r_spells_them():
    spelled = {"1.0.0.dev0": "1.0.0.9000", "1.0.0.dev12": "1.0.0.9012", "1.0.0": "1.0.0", "1.2.10": "1.2.10"}
    assert {ours: _helper().in_r(ours) for ours in spelled} == spelled


def test_what_r_asks_is_there():
    asked = {
        name for file in PACKAGE.glob("R/*.R") for name in re.findall(r'ask\(\s*"(\w+)"', file.read_text())
    }
    assert len(asked) > 12
    assert {name for name in asked if not callable(getattr(_helper(), name, None))} == set()


def test_parameters_under_rs_names_exist():
    known = {
        *CROSS_VALIDATED,
        *STABILITY,
        "alpha",
        "alphas",
        "ridge",
        "task_graph",
        "graph_strength",
        "X",
        "sample_weight",
    }
    assert set(_helper().NAMES) <= known


def test_numpy_pin_is_one_that_the_library_takes():
    pin = re.search(r"numpy>=([\d.]+),<2", (PACKAGE / "inst/python/requirements.txt").read_text())[1]
    assert f"numpy>={pin}" in (HERE / "pyproject.toml").read_text()


@pytest.mark.parametrize("loss", ["squared", "poisson", "logistic"])
def test_a_growing_ridge_is_that_of_each_value(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, 0] + rng.standard_normal(60)
    y = {"squared": y, "poisson": np.exp(y).round(), "logistic": (y > 0).astype(float)}[loss]
    options = {"penalty": "l21", "ridge": 1.5, "tol": 1e-10, "standardize": True}
    helper = _helper()
    found = helper.path(loss, options, {"X": X, "y": y}, {"n_alphas": 5, "eps": 0.05})
    for k, alpha in enumerate(found["strength"]):
        one = helper.one(loss, {**options, "alpha": alpha, "ridge": 1.5 * alpha}, {"X": X, "y": y})
        row = found["rows"][0]
        values = np.zeros(8)
        values[row["i"][row["p"][k] : row["p"][k + 1]]] = row["x"][row["p"][k] : row["p"][k + 1]]
        np.testing.assert_allclose(values, one.coef_[0], atol=1e-4)
        np.testing.assert_allclose(found["intercept"][:, k], one.intercept_, atol=1e-4)
    assert found["path"].certificate(X, y).verify(X, y).proved


def test_rows_of_classes_are_told_task_by_task():
    rng = np.random.default_rng(1)
    X, task = rng.standard_normal((90, 4)), np.repeat(["a", "b"], 45)
    y = np.tile([0.0, 1.0, 2.0], 30)
    found = _helper().path(
        "logistic",
        {"penalty": "l21", "ridge": 0.0},
        {"X": X, "y": y, "task": task},
        {"n_alphas": 4, "eps": 0.05},
    )
    np.testing.assert_array_equal(found["task"], [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(found["kind"], [0, 1, 2, 0, 1, 2])
    model, row = found["path"].model(3), found["rows"][4]  # class 1 of task b
    values = np.zeros(4)
    values[row["i"][row["p"][3] :]] = row["x"][row["p"][3] :]
    np.testing.assert_array_equal(values, model.coef_[1, 1])
    np.testing.assert_array_equal(found["intercept"][4, 3], model.intercept_[1, 1])


def test_errors_and_warnings_speak_r():
    helper = _helper()
    X, y = np.eye(4), np.arange(4.0)
    options = {"penalty": "l21", "ridge": 0.0}
    answer = helper.ask("path", ["squared", {**options, "max_iter": 0}, {"X": X, "y": y}, {}])
    assert answer["kinds"][0] == ParameterError.__name__
    assert answer["error"].startswith("maxit must be")
    rng = np.random.default_rng(2)
    data = {"X": rng.standard_normal((30, 60)), "y": rng.standard_normal(30)}
    answer = helper.ask("path", ["huber", {**options, "max_iter": 1}, data, {"n_alphas": 3, "eps": 1e-3}])
    [(words, kind)] = answer["warnings"]
    assert kind == "ConvergenceWarning"
    assert "maxit = 1" in words
    assert words.startswith("Tasksieve did")
    assert answer["error"] is None


@pytest.mark.parametrize("penalty", ["l21", "sparse_group", "dirty", "owl"])
def test_what_is_explained_is_that_of_the_predictions(penalty):
    rng = np.random.default_rng(3)
    X, task, weights = rng.standard_normal((60, 5)), np.repeat(["a", "b"], 30), rng.uniform(0.5, 2.0, 60)
    y = rng.poisson(np.exp(X[:, 0] / 2)).astype(float)
    options = {"penalty": penalty, "ridge": 0.5, "tol": 1e-8, "standardize": True, "task_graph": "chain"}
    if penalty == "l21":
        options["feature_weights"] = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    data = {"X": X, "y": y, "task": task, "sample_weight": weights}
    found = _helper().path("poisson", options, data, {"n_alphas": 4, "eps": 0.05})
    loss = ts.losses.Poisson()
    means = {label: np.average(y[task == label], weights=weights[task == label]) for label in "ab"}
    null = weights @ loss.deviance(y, np.log([means[label] for label in task]))
    for k in range(4):
        left = weights @ loss.deviance(y, found["path"].predict(X, k, task=task))
        assert abs(found["explained"][k] - (1.0 - left / null)) < 1e-12
    assert abs(found["half_deviance"] * weights.sum() / 2 - null / 2) < 1e-9
