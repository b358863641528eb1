"""Degrees of freedom: against finite differences of the fitted values, and where coefficients are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts

Array = np.ndarray[Any, Any]

TASKS = np.repeat([0, 1, 2], 10)


def data(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((len(TASKS), 7)) * rng.uniform(0.5, 2.0, 7) + 1.0
    return x, x[:, 0] - 0.7 * x[:, 1] * (TASKS + 0.5) + rng.standard_normal(len(TASKS))


def differences(model: Any, x: Array, y: Array, **rows: Any) -> Array:
    """``sum_i d yhat_i / d y_i`` of each task, by central differences."""
    h, found = 1e-3, np.zeros(3)
    for i in range(len(y)):
        up, down = y.copy(), y.copy()
        up[i] += h
        down[i] -= h
        ends = [model.fit(x, each, task=TASKS, **rows).predict(x, task=TASKS)[i] for each in (up, down)]
        found[TASKS[i]] += (ends[0] - ends[1]) / (2.0 * h)
    return found


def used(model: Any, x: Array, y: Array, **rows: Any) -> Array:
    """What the constant errors have taken for it: their noise is ``||r||^2 / (n - df)``, and of a model that selects
    nothing ``||r||^2 / (n - 1)``."""
    model.fit(x, y, task=TASKS, **rows)
    asked = {"task": TASKS, "features": [0], "errors": "constant", "nodewise_penalty": 0.1, **rows}
    found = ts.debiased_inference(model, x, y, **asked)
    nothing = ts.debiased_inference(NOTHING.fit(x, y, task=TASKS, **rows), x, y, **asked)
    weight = rows.get("sample_weight", np.ones(len(y)))
    df = np.empty(3)
    for t in range(3):
        own = t == TASKS
        sums = [weight[own] @ (y[own] - each.predict(x, task=TASKS)[own]) ** 2 for each in (model, NOTHING)]
        noise = sums[1] / 9.0 * (found.std_error[t] / nothing.std_error[t]) ** 2
        df[t] = 10.0 - sums[0] / noise
    return df


NOTHING = ts.MultiTaskLasso(1e6)
TIGHT: dict[str, Any] = {"tol": 1e-11}
MODELS = {
    "l21": ts.MultiTaskLasso(0.4, **TIGHT),
    "standardize": ts.MultiTaskLasso(0.4, standardize=True, **TIGHT),
    "positive": ts.MultiTaskLasso(0.1, positive=True, **TIGHT),
    "task weights": ts.MultiTaskLasso(0.4, task_weights=[1.0, 3.0, 0.5], **TIGHT),
    "unpenalised": ts.MultiTaskLasso(0.4, feature_weights=[0.0, 1, 1, 1, 1, 1, 2.0], **TIGHT),
    "entries": ts.MultiTaskRegressor(penalty="l11", alpha=0.3, **TIGHT),
    "sparse group": ts.MultiTaskSparseGroupLasso(0.2, l1=0.5, **TIGHT),
    "square root": ts.CalibratedMultiTaskLasso(0.4, **TIGHT),
}


class TestDivergence:
    @pytest.mark.parametrize("name", MODELS)
    def test_it_is_that_of_finite_differences(self, name: str) -> None:
        x, y = data()
        model = MODELS[name]
        expected = differences(model, x, y)
        np.testing.assert_allclose(used(model, x, y), expected, atol=2e-3)
        counted = np.count_nonzero(model.coef_, axis=1) + 1.0
        if name == "entries":
            np.testing.assert_allclose(expected, counted, atol=2e-3)
        else:
            assert expected.sum() < counted.sum() - 0.3

    def test_it_is_counted_where_the_curvature_is_not_known(self) -> None:
        x, y = data()
        graph = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        for model in (
            ts.MultiTaskRegressor(penalty="linf", alpha=0.3),
            ts.MultiTaskRegressor(alpha=0.3, task_graph=graph),
            ts.MultiTaskRegressor(penalty=ts.penalties.Dirty(), alpha=0.3),
        ):
            counted = np.count_nonzero(model.fit(x, y, task=TASKS).coef_, axis=1) + 1.0
            np.testing.assert_allclose(used(model, x, y), counted, rtol=1e-9)
            assert counted.min() > 1.0

    def test_a_ridge_leaves_it_too_large_and_no_larger_than_the_count(self) -> None:
        x, y = data()
        model = ts.MultiTaskElasticNet(0.4, l1_ratio=0.7, **TIGHT)
        expected, found = differences(model, x, y), used(model, x, y)
        assert np.all(found > expected)
        assert np.all(found < np.count_nonzero(model.coef_, axis=1) + 1.0)

    def test_a_model_by_cross_validation_has_that_of_its_choice(self) -> None:
        x, y = data()
        many = np.column_stack([y, y[::-1] + x[:, 2]])
        chosen = ts.MultiTaskLassoCV(n_alphas=5, cv=3).fit(x, many)
        same = ts.MultiTaskLasso(chosen.alpha_).fit(x, many)
        errors = [ts.debiased_inference(each, x, many, features=[0]).std_error for each in (chosen, same)]
        np.testing.assert_allclose(*errors, rtol=1e-2)
