"""Refits: each task's features by the model's own loss without a penalty, against other people's solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.special import expit
from sklearn.base import clone

import tasksieve as ts
from tasksieve.losses import Huber, Poisson

Array = np.ndarray[Any, Any]


def data(kind: str = "values", seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    task = np.repeat([2, 0, 1], [60, 45, 70])
    x = rng.standard_normal((len(task), 12)) + rng.uniform(-5, 5, 12)
    z = 0.8 * (x[:, 0] - x[:, 0].mean()) - 0.5 * (x[:, 1] - x[:, 1].mean()) * (task > 0) + 0.3 * task
    if kind == "signs":
        return x, np.where(rng.random(len(z)) < expit(z), "yes", "no"), task
    if kind == "counts":
        return x, rng.poisson(np.exp(z)), task
    return x, z + rng.standard_normal(len(z)), task


def newton_free(objective: Any, size: int) -> Array:
    """A minimiser from another library."""
    best = np.zeros(size)
    for _ in range(3):
        best = minimize(objective, best, method="BFGS", options={"gtol": 1e-10}).x
    return best


def row_loss(kind: str, y: Array, z: Array) -> Array:
    if kind == "logistic":
        return np.logaddexp(0.0, -np.where(y == "yes", 1.0, -1.0) * z)
    if kind == "poisson":
        return np.exp(z) - y * z
    if kind == "huber":
        size = np.abs(y - z)
        return np.where(size <= 1.35, 0.5 * size**2, 1.35 * size - 0.5 * 1.35**2)
    return 0.5 * (y - z) ** 2


MODELS = {
    "squared": (ts.MultiTaskLasso(0.3), "values"),
    "squared, standardised": (ts.MultiTaskLasso(0.3, standardize=True), "values"),
    "squared, no intercept": (ts.MultiTaskLasso(0.3, fit_intercept=False), "values"),
    "squared, entries": (ts.MultiTaskRegressor(penalty="l11", alpha=0.15), "values"),
    "square-root": (ts.CalibratedMultiTaskLasso(0.3), "values"),
    "huber": (ts.MultiTaskRegressor(Huber(), alpha=0.2), "values"),
    "poisson": (ts.MultiTaskRegressor(Poisson(), alpha=0.3), "counts"),
    "logistic": (ts.MultiTaskLogisticRegression(0.08), "signs"),
}


class TestRefit:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_minimises_the_loss_on_the_support(self, name: str, weighted: bool) -> None:
        model, kind = MODELS[name]
        x, y, task = data(kind)
        rng = np.random.default_rng(1)
        weight = rng.uniform(0.2, 2.0, len(y)) if weighted else np.ones(len(y))
        offset = 0.3 * rng.standard_normal(len(y)) if weighted else np.zeros(len(y))
        if weighted:
            weight[::7] = 0.0
        options: dict[str, Any] = {"offset": offset} if weighted else {}
        model = clone(model).fit(x, y, task=task, sample_weight=weight, **options)
        found = ts.refit(model, x, y, task=task, sample_weight=weight, **options)
        assert type(found) is type(model)
        np.testing.assert_array_equal(found.coef_ != 0, model.coef_ != 0)
        assert 2 <= model.get_support().sum() < 12
        loss = name.split(",")[0]
        for t, label in enumerate(model.tasks_):
            rows, own = task == label, np.flatnonzero(model.coef_[t])
            columns = x[rows][:, own]
            centre = columns.mean(axis=0) if model.fit_intercept else 0.0

            def objective(
                v: Array, rows: Array = rows, columns: Array = columns, centre: Any = centre
            ) -> float:
                z = (columns - centre) @ v[1:] + v[0] * model.fit_intercept + offset[rows]
                return float(weight[rows] @ row_loss(loss, y[rows], z)) / 50.0

            best = newton_free(objective, 1 + len(own))
            np.testing.assert_allclose(found.coef_[t, own], best[1:], rtol=1e-4, atol=1e-5)
            if model.fit_intercept:
                assert found.intercept_[t] == pytest.approx(best[0] - centre @ best[1:], abs=1e-4)
        predicted = found.predict(x, task=task, **options)
        assert len(predicted) == len(y)
        if kind == "values":
            rows = {"task": task, "sample_weight": weight, **options}
            assert found.score(x, y, **rows) > model.score(x, y, **rows)

    def test_of_a_cross_validated_model_on_other_rows(self) -> None:
        x, y, task = data()
        model = ts.MultiTaskLassoCV(cv=3, n_alphas=10).fit(x[::2], y[::2], task=task[::2])
        found = ts.refit(model, x[1::2], y[1::2], task=task[1::2])
        own = np.flatnonzero(model.coef_[0])
        rows = np.flatnonzero(task == model.tasks_[0])
        rows = rows[rows % 2 == 1]
        truth = np.linalg.lstsq(np.column_stack([np.ones(len(rows)), x[np.ix_(rows, own)]]), y[rows], rcond=None)[0]
        np.testing.assert_allclose(found.coef_[0, own], truth[1:], rtol=1e-9)
        assert found.alpha_ == model.alpha_
        for name in ("dual_gap_", "objective_", "path_", "cv_scores_"):
            assert not hasattr(found, name)

    @pytest.mark.parametrize("form", ["list", "shared"])
    def test_other_forms(self, form: str) -> None:
        x, y, task = data()
        if form == "list":
            parts = [task == t for t in range(3)]
            xs, ys = [x[own] for own in parts], [y[own] for own in parts]
            found = ts.refit(ts.MultiTaskLasso(0.3).fit(xs, ys), xs, ys)
            truth = ts.refit(ts.MultiTaskLasso(0.3).fit(x, y, task=task), x, y, task=task)
            np.testing.assert_allclose(found.coef_, truth.coef_, rtol=1e-9)
            return
        wide = np.stack([y, y**2], axis=1)
        wide[3, 1] = np.nan
        model = ts.MultiTaskLasso(0.5).fit(x, wide)
        found, own = ts.refit(model, x, wide), np.flatnonzero(model.coef_[1])
        keep = np.arange(len(y)) != 3
        columns = np.column_stack([np.ones(keep.sum()), x[keep][:, own]])
        truth = np.linalg.lstsq(columns, wide[keep, 1], rcond=None)[0]
        np.testing.assert_allclose(found.coef_[1, own], truth[1:], rtol=1e-9)
        assert found.predict(x).shape == wide.shape

    def test_nothing_selected(self) -> None:
        x, y, task = data()
        found = ts.refit(ts.MultiTaskLasso(100.0).fit(x, y, task=task), x, y, task=task)
        assert not found.coef_.any()
        np.testing.assert_allclose(found.intercept_, [y[task == t].mean() for t in range(3)])

    def test_ridge(self) -> None:
        x, y, task = data()
        rng = np.random.default_rng(3)
        weight = rng.uniform(0.5, 2.0, len(y))
        model = ts.MultiTaskLasso(0.3).fit(x, y, task=task, sample_weight=weight)
        found, own = ts.refit(model, x, y, task=task, sample_weight=weight, ridge=0.4), np.flatnonzero(model.coef_[0])
        rows = task == 0
        s = weight[rows] / weight[rows].sum()
        centred = x[rows][:, own] - s @ x[rows][:, own]
        right = centred.T @ (s * (y[rows] - s @ y[rows]))
        truth = np.linalg.solve(centred.T @ (s[:, None] * centred) + 0.4 * np.eye(len(own)), right)
        np.testing.assert_allclose(found.coef_[0, own], truth, rtol=1e-9)
        assert found.intercept_[0] == pytest.approx(s @ y[rows] - s @ x[rows][:, own] @ truth)

    def test_positive(self) -> None:
        x, y, task = data()
        model = ts.MultiTaskLasso(0.05, positive=True).fit(x, y, task=task)
        found, own = ts.refit(model, x, y, task=task), np.flatnonzero(model.coef_[0])
        rows = task == 0
        centred = x[rows][:, own] - x[rows][:, own].mean(axis=0)
        np.testing.assert_allclose(found.coef_[0, own], nnls(centred, y[rows] - y[rows].mean())[0], atol=1e-9)

    def test_more_features_than_rows(self) -> None:
        """The smallest coefficients of all that fit, columns being of one length."""
        rng = np.random.default_rng(4)
        x, task = rng.standard_normal((46, 10)), np.repeat(["few", "many"], [6, 40])
        x[:, 1] = x[:, 0]
        y = x[:, 0] + x[:, 2] + rng.standard_normal(46)
        model = ts.MultiTaskLasso(0.02).fit(x, y, task=task)
        model.coef_[:] = 1.0
        with pytest.warns(UserWarning, match=r"2 task\(s\) have no unique fit \('few', 'many'\)"):
            found = ts.refit(model, x, y, task=task)
        for t, name in enumerate(["few", "many"]):
            rows = task == name
            centred = x[rows] - x[rows].mean(axis=0)
            sizes = np.linalg.norm(centred, axis=0)
            truth = np.linalg.pinv(centred / sizes, rcond=1e-10) @ (y[rows] - y[rows].mean()) / sizes
            np.testing.assert_allclose(found.coef_[t], truth, atol=1e-7)
        np.testing.assert_allclose(found.predict(x[:6], task=task[:6]), y[:6], atol=1e-7)

    def test_a_combination_with_another_loss(self) -> None:
        x, y, task = data("signs")
        x[:, 1] = 2.0 * x[:, 0] + 3.0
        model = ts.MultiTaskLogisticRegression(0.05).fit(x, y, task=task)
        model.coef_[:] = 0.0
        model.coef_[:, :2] = 1.0
        with pytest.warns(UserWarning, match="no unique fit"):
            both = ts.refit(model, x, y, task=task)
        model.coef_[:, 1] = 0.0
        alone = ts.refit(model, x, y, task=task)
        np.testing.assert_allclose(both.coef_[:, 0] + 2.0 * both.coef_[:, 1], alone.coef_[:, 0], rtol=1e-6)
        np.testing.assert_allclose(both.decision_function(x), alone.decision_function(x), rtol=1e-6, atol=1e-8)


class TestBadInput:
    def test_models(self) -> None:
        x, y, task = data()
        with pytest.raises(ValueError, match="GraphSVR selects nothing"):
            ts.refit(ts.GraphSVR(), x, y, task=task)
        with pytest.raises(ValueError, match="not fitted"):
            ts.refit(ts.MultiTaskLasso(), x, y, task=task)
        three = ts.MultiTaskClassifier(alpha=0.05).fit(x, task)
        with pytest.raises(ValueError, match="more than two classes"):
            ts.refit(three, x, task)
        logistic = ts.MultiTaskLogisticRegression(0.05).fit(x, y > 0, task=task)
        with pytest.raises(ValueError, match="ridge is for least squares"):
            ts.refit(logistic, x, y > 0, task=task, ridge=1.0)
        with pytest.raises(ValueError, match="ridge"):
            ts.refit(logistic, x, y > 0, task=task, ridge=-1.0)

    @pytest.mark.parametrize("kind", ["all", "some"])
    def test_separated_classes(self, kind: str) -> None:
        """Also where they are separated but for a tie."""
        x, y, task = data("signs")
        own = task == 1
        y[own] = np.where(x[own, 3] > x[own, 3].mean(), "yes", "no")
        if kind == "some":
            first = np.flatnonzero(own)[:2]
            x[first, 3] = x[own, 3].mean()
            y[own] = np.where(x[own, 3] > x[first[0], 3], "yes", "no")
            y[first] = ["yes", "no"]
        model = ts.MultiTaskLogisticRegression(0.05).fit(x, y, task=task)
        model.coef_[:] = 0.0
        model.coef_[:, 3] = 1.0
        with pytest.raises(ValueError, match=r"task 1 \(1 features, 70 rows\): its rows are explained ever better"):
            ts.refit(model, x, y, task=task)

    def test_counts_that_run_away(self) -> None:
        x, y, task = data("counts")
        x[:, 3] = np.arange(len(y)) % 2
        y[(task == 0) & (x[:, 3] == 1)] = 0
        model = ts.MultiTaskPoisson(0.3).fit(x, y, task=task)
        model.coef_[:] = 0.0
        model.coef_[:, 3] = 1.0
        with pytest.raises(ValueError, match=r"task 0 .* does not exist"):
            ts.refit(model, x, y, task=task)

    def test_other_tasks_features_and_classes(self) -> None:
        x, y, task = data()
        model = ts.MultiTaskLasso(0.3).fit(x, y, task=task)
        with pytest.raises(ValueError, match="does not know 7"):
            ts.refit(model, x, y, task=np.where(task == 1, 7, task))
        with pytest.raises(ValueError, match="1 of the model have no rows"):
            ts.refit(model, x[task != 1], y[task != 1], task=task[task != 1])
        with pytest.raises(ValueError, match="X has 5 features, but the model was fitted to 12"):
            ts.refit(model, x[:, :5], y, task=task)
        x, y, task = data("signs")
        model = ts.MultiTaskLogisticRegression(0.05).fit(x, y, task=task)
        with pytest.raises(ValueError, match="classes of task"):
            ts.refit(model, x, y == "yes", task=task)
