"""How each value of a path ended, and the lines that tell what it has cost."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import tasksieve as ts


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((60, 30))
    y = x[:, :3] @ rng.standard_normal((3, 2)) + 0.3 * rng.standard_normal((60, 2))
    return x, y


def quietly(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)


def test_values_that_converge_say_so(data):
    for model in (ts.MultiTaskLasso(), ts.MultiTaskRegressor("huber", "owl")):
        path = model.path(*data, n_alphas=5, eps=0.3)
        assert (path.status == "converged").all()
        assert (path.status == ts.Status.CONVERGED).all()
        assert path.to_frame()["status"].tolist() == ["converged"] * 5
        assert path.model(2).status_ is ts.Status.CONVERGED


@pytest.mark.parametrize("way", [ts.MultiTaskLasso(), ts.MultiTaskRegressor("huber", "owl")])
def test_spent_iterations_are_told(data, way):
    way = type(way)(**way.get_params())
    alpha = 0.01 * way.alpha_max(*data)
    with pytest.warns(match="did not reach"):
        way.set_params(alpha=alpha, tol=1e-12, max_iter=2).fit(*data)
    assert way.status_ == "iterations"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = way.path(*data, alphas=[1e6 * alpha, alpha])
    assert path.status.tolist() == ["converged", "iterations"]


def test_what_no_iteration_would_change_is_told(data):
    """Whether the solver or the stored numbers are the first to end is a matter of the last digits."""
    x, y = data
    model = ts.MultiTaskRegressor("huber", alpha=0.1, tol=1e-300)
    assert quietly(model, x, y + 1e9).status_ in ("rounding", "stalled")


def test_labels_without_an_optimum_are_told(data):
    x, y = data
    labels = (y[:, 0] > 0.0).astype(int)
    x = np.column_stack([x, np.where(labels == 1, 1.0, -1.0)])
    weights = np.ones(31)
    weights[30] = 0.0  # an unpenalised feature that separates the classes
    model = ts.MultiTaskLogisticRegression(alpha=0.01, feature_weights=weights, tol=1e-14)
    assert quietly(model, x, labels).status_ == "no_optimum"


def test_a_line_for_each_value(data, capsys):
    ts.MultiTaskRegressor("huber", "l21", verbose=2).path(*data, n_alphas=4, eps=0.3)
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 4
    for k, line in enumerate(lines):
        assert f"value {k + 1} of 4" in line
        for what in ("converged", "gap", "iterations", "rounds by prox-newton", "working set", "open bounds", "passes"):
            assert what in line
    assert int(re.search(r"working set (\d+)", lines[-1]).group(1)) > 0
    ts.MultiTaskLasso(verbose=1).path(*data, n_alphas=4)
    assert "working set" not in capsys.readouterr().err


def test_machines_on_a_graph_tell_it(data):
    x, y = data
    model = ts.GraphSVC(solver="dual").fit(x, y[:, 0] > 0.0)
    assert model.status_ is ts.Status.CONVERGED
    with pytest.warns(match="did not reach"):
        model.set_params(tol=1e-12, max_iter=1).fit(x, y[:, 0] > 0.0)
    assert model.status_ is ts.Status.ITERATIONS
    path = ts.GraphSVR(solver="dual").path(x, y[:, 0], Cs=[0.01, 0.1])
    assert path.status.tolist() == path.to_frame()["status"].tolist() == ["converged"] * len(path)

