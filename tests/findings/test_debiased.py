"""Debiased coefficients: formulas by hand, least squares as a limit, other programs, the proved factor of the bias."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
import statsmodels.api as sm
from plink_files import write_plink
from scipy.special import expit
from scipy.stats import chi2, norm
from scipy.stats import f as fisher
from scipy.stats import t as student
from sklearn.linear_model import Lasso, MultiTaskLassoCV
from statsmodels.stats.multitest import multipletests

import tasksieve as ts
from tasksieve.findings.multiplicity import benjamini_yekutieli, holm
from tasksieve.findings.nodewise import NodewiseTask

Array = np.ndarray[Any, Any]


def data(kind: str = "values", n: int = 40, d: int = 25, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    task = rng.permutation(np.repeat(["b", "a", "c"], n))
    x = rng.standard_normal((3 * n, d)) * rng.uniform(0.5, 3.0, d) + rng.uniform(-2.0, 2.0, d)
    x[:, 1:] += 0.4 * x[:, :-1]
    z = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.5
    if kind == "signs":
        return x, np.where(rng.random(3 * n) < expit(z), "yes", "no"), task
    if kind == "counts":
        return x, rng.poisson(np.exp(0.3 * (z - z.mean()))), task
    return x, z + rng.standard_normal(3 * n) * (0.5 + np.abs(x[:, 2])), task


MODELS = {
    "values": ts.MultiTaskLasso(0.3),
    "entries": ts.MultiTaskRegressor(penalty="l11", alpha=0.2),
    "calibrated": ts.CalibratedMultiTaskLasso(0.3),
    "no intercept": ts.MultiTaskLasso(0.3, fit_intercept=False),
    "signs": ts.MultiTaskLogisticRegression(0.1),
    "counts": ts.MultiTaskPoisson(0.3),
}


def own_degrees(shares: Array) -> float:
    """Bell and McCaffrey's degrees of freedom of a sum of squares, by the matrices: unit noise without its part along a
    direction with these squared entries, entries of which are divided by what is left of them."""
    u = np.sqrt(shares)
    rest = np.eye(len(u)) - np.outer(u, u)
    form = rest @ np.diag(shares / (1.0 - shares)) @ rest
    return float(np.trace(form) ** 2 / np.sum(form**2))


def by_hand(
    x: Array, slope: Array, bend: Array, s: Array, coef: Array, lam: float, intercept: bool, k: float
) -> tuple[Array, Array, Array, Array]:
    """Estimates, robust errors, their degrees of freedom and bias factors of all features of a task, nodewise Lassos by
    scikit-learn."""
    q = s * bend
    centred = x - q @ x / q.sum() * intercept
    scaled = np.sqrt(q)[:, None] * centred
    lengths = np.linalg.norm(scaled, axis=0)
    unit, deviations = scaled / lengths, lengths / np.sqrt(q.sum())
    n, d = x.shape
    estimates, errors, degrees, factors = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for j in range(d):
        others = np.delete(np.arange(d), j)
        lasso = Lasso(alpha=lam / n, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
        z = unit[:, j] - unit[:, others] @ lasso.fit(unit[:, others], unit[:, j]).coef_
        a = s * z / np.sqrt(q) / (z @ scaled[:, j])
        estimates[j] = coef[j] + a @ slope
        u = z / np.linalg.norm(z)
        working = np.sqrt(s / bend) * slope  # residuals of the weighted least squares that the loss is near the model
        e = np.sqrt(bend / s) * (working - u * (u @ working))
        left = n - k - (coef[j] == 0.0)
        errors[j] = np.sqrt(n / (left + 1.0) * np.sum((a * e) ** 2 / (1.0 - u**2)))
        degrees[j] = own_degrees(u**2) * left / (n - 1)
        factors[j] = np.max(np.abs((a * bend) @ centred[:, others]) / deviations[others])
    return estimates, errors, degrees, factors


def prepared(model: Any, x: Array, y: Array, coef: Array, intercept: float) -> tuple[Array, Array]:
    """Slopes and curvatures of rows at coefficients."""
    z = x @ coef + intercept
    if hasattr(model, "classes_"):
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        return sign * expit(-sign * z), expit(z) * expit(-z)
    if isinstance(model, ts.MultiTaskPoisson):
        return y - np.exp(z), np.exp(z)
    return y - z, np.ones(len(y))


def recalibrated(model: Any, x: Array, y: Array, weight: Array, t: int) -> tuple[Array, float]:
    """Coefficients and intercept with the slope that fits the task best, by statsmodels."""
    coef, intercept = model.coef_[t], float(np.ravel(model.intercept_)[t])
    family = sm.families.Binomial() if hasattr(model, "classes_") else sm.families.Poisson()
    if not hasattr(model, "classes_") and not isinstance(model, ts.MultiTaskPoisson):
        return coef, intercept
    label = (y == model.classes_[1]).astype(float) if hasattr(model, "classes_") else y
    glm = sm.GLM(label, sm.add_constant(x @ coef), family=family, freq_weights=weight)
    level, slope = glm.fit(tol=1e-14, maxiter=100).params
    return slope * coef, float(level)


def degrees_of_freedom(model: Any, x: Array, y: Array, weight: Array, task: Array) -> Array:
    """Of each task, its intercept included: the whole second derivative of the objective, inverted."""
    used, n_tasks = np.flatnonzero(model.coef_.any(axis=0)), len(model.tasks_)
    size, w = len(used), model.coef_[:, used]
    hessian, grams, pulls = np.zeros((n_tasks, size, n_tasks, size)), [], []
    for t, label in enumerate(model.tasks_):
        rows = task == label
        slope, bend = prepared(model, x[rows], y[rows], model.coef_[t], float(np.ravel(model.intercept_)[t]))
        s, own = weight[rows], x[rows][:, used]
        own = own - (s * bend) @ own / np.sum(s * bend) * model.fit_intercept
        grams.append(own.T @ np.diag(s * bend) @ own)
        pulls.append(own.T @ (s * slope))
        if isinstance(model, ts.CalibratedMultiTaskLasso):
            length = np.sqrt(s @ slope**2)
            pulls[-1] /= length
            grams[-1] = grams[-1] / length - np.outer(pulls[-1], pulls[-1]) / length
        hessian[t, :, t, :] = grams[-1]
    counted = np.count_nonzero(w, axis=1)
    if not isinstance(model, ts.MultiTaskRegressor):
        for j in range(size):
            length = np.linalg.norm(w[:, j])
            u = w[:, j] / length
            strength = np.array(pulls)[:, j] @ u
            hessian[:, j, :, j] += strength / length * (np.eye(n_tasks) - np.outer(u, u))
        inverse = np.linalg.inv(hessian.reshape(n_tasks * size, -1)).reshape(hessian.shape)
        found = np.array([np.trace(inverse[t, :, t, :] @ grams[t]) for t in range(n_tasks)])
        assert np.all(found < counted - 0.1)
        if hasattr(model, "classes_") or isinstance(model, ts.MultiTaskPoisson):
            found = np.minimum(found + 1.0, counted)
    else:
        found = counted.astype(float)
    return found + model.fit_intercept


class TestNumbers:
    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_by_hand(self, name: str, weighted: bool) -> None:
        x, y, task = data(name if name in ("signs", "counts") else "values", d=12)
        weight = np.random.default_rng(1).uniform(0.3, 2.0, len(y)) if weighted else np.ones(len(y))
        model = MODELS[name].fit(x, y, task=task, sample_weight=weight)
        options = {"sample_weight": weight if weighted else None, "nodewise_penalty": 0.1, "level": 0.8}
        found = ts.debiased_inference(model, x, y, task=task, features="all", **options)
        used = degrees_of_freedom(model, x, y, weight, task)
        for t, label in enumerate(model.tasks_):
            rows, own = task == label, found.task == label
            coef, intercept = recalibrated(model, x[rows], y[rows], weight[rows], t)
            slope, bend = prepared(model, x[rows], y[rows], coef, intercept)
            estimates, errors, freedom, factors = by_hand(
                x[rows], slope, bend, weight[rows], coef, 0.1, model.fit_intercept, used[t]
            )
            np.testing.assert_allclose(found.estimate[own], estimates, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(found.std_error[own], errors, rtol=1e-6)
            np.testing.assert_allclose(found.bias_factor[own], factors, rtol=1e-6)
            width = student.ppf(0.9, freedom) * errors
            expected = 2.0 * student.sf(np.abs(estimates) / errors, freedom)
            np.testing.assert_allclose(found.lower[own], estimates - width, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.upper[own], estimates + width, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.pvalue[own], expected, rtol=1e-5, atol=1e-10)
        assert np.array_equal(found.feature, np.repeat(np.arange(12), 3))
        assert np.all(found.penalty == 0.1)
        np.testing.assert_allclose(found.tolerated_error * found.bias_factor * 10.0, found.std_error, rtol=1e-12)

    @pytest.mark.parametrize("grouped", [False, True])
    def test_least_squares_is_a_limit(self, grouped: bool) -> None:
        x, y, task = data(n=60, d=6)
        groups = np.arange(len(y)) % 17 if grouped else None
        model = ts.MultiTaskLasso(1e-7, tol=1e-7).fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task, features="all", nodewise_penalty=1e-9, groups=groups)
        for label in model.tasks_:
            rows, own = task == label, found.task == label
            least = sm.OLS(y[rows], sm.add_constant(x[rows]))
            fit = least.fit()
            np.testing.assert_allclose(found.estimate[own], fit.params[1:], rtol=1e-6, atol=1e-8)
            unit = np.arange(60) if groups is None else np.unique(groups[rows], return_inverse=True)[1]
            for j in range(6):
                others = sm.add_constant(np.delete(x[rows], j, axis=1))
                u = sm.OLS(x[rows][:, j], others).fit().resid  # Frisch, Waugh and Lovell
                length = np.linalg.norm(u)
                u /= length
                scores, shares = np.bincount(unit, u * fit.resid), np.bincount(unit, u**2)
                factor = 60 / 54  # of the other features and the intercept
                if groups is not None:
                    factor *= 17 / 16 * 59 / 60
                error = np.sqrt(factor * np.sum(scores**2 / (1.0 - shares))) / length
                np.testing.assert_allclose(found.std_error[own][j], error, rtol=1e-6)
            constant = ts.debiased_inference(
                model, x, y, task=task, features="all", nodewise_penalty=1e-9, errors="constant"
            )
            np.testing.assert_allclose(constant.std_error[constant.task == label], least.fit().bse[1:], rtol=1e-6)

    def test_one_task_agrees_with_skein(self) -> None:
        skein = pytest.importorskip("skein_glm", reason="the package skein-glm is not installed")
        x, y, _ = data(n=20, d=30)
        theirs = skein.debiased_lasso(x, y, lambda_=0.3, lambda_nodewise=0.15, tol=1e-12, max_iter=100_000)
        model = ts.MultiTaskLasso(0.3, standardize=True, tol=1e-12).fit(x, y)
        found = ts.debiased_inference(model, x, y, features="all", nodewise_penalty=0.15, errors="constant")
        np.testing.assert_allclose(found.estimate, theirs.coef_debiased, rtol=1e-5, atol=1e-6)
        left = len(y) - np.count_nonzero(model.coef_)  # they count no degree of freedom for the intercept
        np.testing.assert_allclose(found.std_error, theirs.se * np.sqrt(left / (left - 1)), rtol=1e-5)

    def test_one_shared_matrix_agrees_with_hidimstat(self) -> None:
        hidimstat = pytest.importorskip("hidimstat", reason="the package hidimstat is not installed")
        rng = np.random.default_rng(0)
        x = rng.standard_normal((40, 20))
        x[:, 1:] += 0.5 * x[:, :-1]
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        y = x[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((40, 2))
        y -= y.mean(axis=0)
        lasso = MultiTaskLassoCV(alphas=[0.2], cv=3, fit_intercept=False, tol=1e-12, max_iter=100_000)
        nodewise = Lasso(alpha=0.1, tol=1e-13, max_iter=1_000_000)
        theirs = hidimstat.DesparsifiedLasso(estimator=lasso, model_x=nodewise, noise_method="median").fit(x, y)
        model = ts.MultiTaskLasso(0.2, fit_intercept=False, tol=1e-13).fit(x, y)
        found = ts.debiased_inference(model, x, y, features="all", nodewise_penalty=0.1, errors="constant")
        np.testing.assert_allclose(found.estimate.reshape(20, 2), theirs.importances_, rtol=1e-5, atol=1e-6)
        ours = found.std_error.reshape(20, 2)
        same = np.sqrt(theirs.precision_diagonal_.astype(float) / 40)
        noise = ours[0] / same[0]  # they estimate a covariance of the noise in ways of their own
        np.testing.assert_allclose(ours, same[:, None] * noise, rtol=1e-5)
        rest = y - model.predict(x)
        used = degrees_of_freedom(model, np.vstack([x, x]), y.T.ravel(), np.ones(80), np.repeat(model.tasks_, 40))
        np.testing.assert_allclose(noise, np.sqrt(np.sum(rest**2, axis=0) / (40 - used)), rtol=1e-9)

    def test_all_units_of_a_task_alike(self) -> None:
        """Units of X and y change units of estimates, and nothing else."""
        x, y, task = data()
        model = MODELS["values"].fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task, features=[0, 3])
        scales = np.exp2(np.arange(x.shape[1]) % 5 - 2.0)
        other = ts.MultiTaskLasso(0.3 * 8.0, feature_weights=scales).fit(x * scales, 8.0 * y, task=task)
        again = ts.debiased_inference(other, x * scales, 8.0 * y, task=task, features=[0, 3])
        unit = np.repeat(8.0 / scales[[0, 3]], 3)
        np.testing.assert_allclose(again.estimate, unit * found.estimate, rtol=2e-2)  # the fits are not exact
        np.testing.assert_allclose(again.bias_factor, found.bias_factor / np.repeat(scales[[0, 3]], 3), rtol=1e-7)
        np.testing.assert_allclose(again.row_pvalue, found.row_pvalue, rtol=2e-2)


class TestBiasFactor:
    @pytest.mark.parametrize("fit_intercept", [False, True])
    def test_it_is_never_below_that_of_the_numbers(self, fit_intercept: bool) -> None:
        """In fractions: the largest |sum a c (x - m)| over a standard deviation, the constant column included."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((9, 6)) + 1e3
        x[:, 4] = 5.0
        weights, bend = rng.uniform(0.5, 2.0, 9), rng.uniform(0.1, 0.25, 9)
        design = NodewiseTask(x.copy(), weights, bend, fit_intercept)
        targets = np.arange(6)
        a, _ = design.rows(targets, np.full(6, 0.2))
        bounds = design.bias_factors(targets, a)
        q = weights * bend
        means = q @ x / q.sum() if fit_intercept else np.zeros(6)
        exact = [[Fraction(v) - Fraction(m) for v, m in zip(row, means.tolist(), strict=True)] for row in x.tolist()]
        constant = 4 if fit_intercept else None
        for j in targets:
            if j == constant:
                assert bounds[j] == np.inf
                assert not a[j].any()
                continue
            weighed = [Fraction(u) * Fraction(c) for u, c in zip(a[j].tolist(), bend.tolist(), strict=True)]
            off = []
            for k in range(6):
                if k == constant:
                    continue
                product = sum(u * row[k] for u, row in zip(weighed, exact, strict=True)) - (k == j)
                squares = sum(Fraction(v) * row[k] ** 2 for v, row in zip(q.tolist(), exact, strict=True))
                off.append(product**2 * Fraction(float(q.sum())) / squares)
            if fit_intercept:
                off.append(sum(weighed) ** 2)
            truth = max(off)
            assert truth <= Fraction(bounds[j]) ** 2
            assert bounds[j] <= float(truth) ** 0.5 * (1.0 + 1e-7)

    def test_without_noise_the_error_stays_below_it(self) -> None:
        x, _, task = data(n=30, d=40)
        beta = np.zeros((3, 40))
        beta[:, :5] = np.random.default_rng(1).standard_normal((3, 5))
        codes = np.searchsorted(["a", "b", "c"], task)
        y = np.einsum("ij,ij->i", x, beta[codes]) + 2.0
        model = ts.MultiTaskLasso(0.5).fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task, features="all")
        for t, label in enumerate(model.tasks_):
            own, rows = found.task == label, task == label
            away = x[rows].std(axis=0) * np.abs(model.coef_[t] - beta[t])
            level = abs(model.intercept_[t] - 2.0 + x[rows].mean(axis=0) @ (model.coef_[t] - beta[t]))
            off = np.abs(found.estimate[own] - beta[t])
            assert np.all(off <= found.bias_factor[own] * (away.sum() + level) + 1e-12)
            assert off.max() > 1e-3  # the bias is real
            assert off.mean() < np.abs(model.coef_[t] - beta[t])[:5].mean()

    def test_a_smaller_penalty_has_a_smaller_factor_and_larger_errors(self) -> None:
        x, y, task = data(d=60)
        model = ts.MultiTaskLasso(2.0).fit(x, y, task=task)
        some = [
            ts.debiased_inference(model, x, y, task=task, features=[0, 7], nodewise_penalty=lam) for lam in (0.3, 0.1)
        ]
        assert np.all(some[1].bias_factor < some[0].bias_factor)
        assert some[1].std_error.mean() > some[0].std_error.mean()

    def test_a_copy_cannot_be_told_from_its_original(self) -> None:
        x, y, task = data()
        x[:, 9] = 2.0 * x[:, 0]
        model = MODELS["values"].fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task, features=[0, 9])
        deviations = np.array([x[task == label][:, j].std() for j in (0, 9) for label in model.tasks_])
        np.testing.assert_allclose(found.bias_factor * deviations, 1.0, rtol=1e-6)


class TestRows:
    def test_tasks_of_their_own_rows(self) -> None:
        x, y, task = data()
        y = y + 4.0 * x[:, 0]
        model = MODELS["values"].fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task, features="all")
        scores = norm.isf(0.5 * found.pvalue.reshape(-1, 3))
        np.testing.assert_allclose(found.row_pvalue[::3], chi2.sf(np.sum(scores**2, axis=1), 3), rtol=1e-6)
        row = found.row_pvalue[::3]
        np.testing.assert_allclose(found.row_holm[::3], multipletests(row, method="holm")[1], rtol=1e-12)
        np.testing.assert_allclose(found.row_by[::3], multipletests(row, method="fdr_by")[1], rtol=1e-12)
        assert found.n_tests == 25
        assert found.row_holm[0] < 0.05 < found.row_holm[30:].min()

    def test_tasks_that_share_rows(self) -> None:
        """Hotelling's test by hand."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((50, 30))
        noise = rng.standard_normal((50, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
        y = np.outer(x[:, 0], [1.0, 0.5]) + noise
        model = ts.MultiTaskLasso(0.3).fit(x, y)
        found = ts.debiased_inference(model, x, y, features=[0, 4], nodewise_penalty=0.2)
        assert len(found) == 4
        stacked = ts.debiased_inference(
            model, [x, x], [y[:, 0], y[:, 1]], features=[0, 4], nodewise_penalty=0.2
        )  # the same rows, taken for others
        np.testing.assert_allclose(found.estimate, stacked.estimate, rtol=1e-9)
        np.testing.assert_allclose(found.std_error, stacked.std_error, rtol=1e-9)
        rest = y - model.predict(x)
        unit = (x - x.mean(axis=0)) / np.linalg.norm(x - x.mean(axis=0), axis=0)
        for i, j in enumerate((0, 4)):
            others = np.delete(np.arange(30), j)
            lasso = Lasso(alpha=0.2 / 50, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
            z = unit[:, j] - unit[:, others] @ lasso.fit(unit[:, others], unit[:, j]).coef_
            used = degrees_of_freedom(model, np.vstack([x, x]), y.T.ravel(), np.ones(100), np.repeat(model.tasks_, 50))
            shares = z**2 / (z @ z)
            rest_of_two = rest - np.outer(z, z @ rest) / (z @ z)
            left = 50 - used - (model.coef_[:, j] == 0.0)
            each = z[:, None] * rest_of_two / (z @ (x[:, j] - x[:, j].mean()))
            each *= np.sqrt(50 / (left + 1.0)) / np.sqrt(1.0 - shares)[:, None]
            covariance = each.T @ each
            b, nu = found.estimate[2 * i : 2 * i + 2], own_degrees(shares) * left.min() / 49
            statistic = b @ np.linalg.solve(covariance, b)
            expected = fisher.sf(statistic * (nu - 1) / (2 * nu), 2, nu - 1)
            np.testing.assert_allclose(found.row_pvalue[2 * i], expected, rtol=1e-5)
        assert found.row_pvalue[2] != pytest.approx(stacked.row_pvalue[2], rel=1e-3)

    def test_more_tasks_than_rows_have_a_test_too(self) -> None:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((15, 8))
        y = 4.0 * x[:, [0]] + rng.standard_normal((15, 12)) + rng.standard_normal((15, 1))
        model = ts.MultiTaskLasso(0.5).fit(x, y)
        found = ts.debiased_inference(model, x, y, features="all")
        row = found.row_pvalue[::12]
        assert np.all((row > 0.0) & (row < 1.0))
        assert np.argmin(row) == 0

    def test_selected_features_are_corrected_for_all(self) -> None:
        x, y, task = data()
        model = MODELS["values"].fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task)
        assert set(found.feature.tolist()) == set(model.get_support(indices=True).tolist())
        assert found.n_tests == x.shape[1]
        named = ts.debiased_inference(model, x, y, task=task, features=np.unique(found.feature))
        assert named.n_tests == len(named) // 3 < found.n_tests
        np.testing.assert_allclose(found.row_pvalue, named.row_pvalue, rtol=1e-10)
        assert np.all(found.row_holm >= named.row_holm)
        assert np.all(found.row_by >= named.row_by)

    def test_p_values_that_are_not_there_count_as_one(self) -> None:
        some = np.array([0.02, np.nan, 0.001, 0.4])
        full = np.concatenate([some[[0, 2, 3]], np.ones(6)])
        for ours, method in ((holm, "holm"), (benjamini_yekutieli, "fdr_by")):
            expected = multipletests(full, method=method)[1][:3]
            found = ours(some, 9)
            np.testing.assert_allclose(found[[0, 2, 3]], expected)
            assert np.isnan(found[1])


class TestData:
    def test_forms_do_not_matter(self) -> None:
        x, y, task = data()
        frame = pandas.DataFrame(x, columns=[f"f{j}" for j in range(x.shape[1])])
        model = ts.MultiTaskLasso(0.3).fit(frame, y, task=task)
        found = ts.debiased_inference(model, frame, y, task=task, features=["f3", "f0"])
        assert found.feature.tolist() == ["f0"] * 3 + ["f3"] * 3
        assert found.task.tolist() == ["a", "b", "c"] * 2
        parts = {label: (frame[task == label], y[task == label]) for label in ("a", "b", "c")}
        named = ts.debiased_inference(model, parts, features=[0, 3])
        order = np.argsort(task, kind="stable")
        mixed = ts.debiased_inference(model, frame.iloc[order], y[order], task=task[order], features=["f0", "f3"])
        for again in (named, mixed):
            np.testing.assert_allclose(again.estimate, found.estimate, rtol=1e-9)
            np.testing.assert_allclose(again.upper, found.upper, rtol=1e-9)
        table = found.to_frame()
        assert list(table.columns)[-6:] == [
            "row_pvalue", "row_holm", "row_by", "bias_factor", "tolerated_error", "penalty"
        ]  # fmt: skip
        assert "Holm" in found.summary()
        assert "2 feature(s)" in repr(found)

    @pytest.mark.parametrize("kind", ["csr", "csc", "int8", "mapped", "dask", "genotypes"])
    def test_storages_do_not_matter(self, kind: str, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        x, task = rng.integers(0, 3, (90, 12)).astype(np.int8), rng.permutation(np.repeat(["a", "b"], 45))
        y = x[:, 0] - x[:, 1] + rng.standard_normal(90)
        model = ts.MultiTaskLasso(0.2).fit(x.astype(float), y, task=task)
        expected = ts.debiased_inference(
            model, x.astype(float), y, task=task, features="all", groups=np.arange(90) // 2
        )
        stored: Any = x
        if kind in ("csr", "csc"):
            stored = scipy.sparse.csr_array(x.astype(float)).asformat(kind)
        elif kind == "mapped":
            np.save(tmp_path / "x.npy", x)
            stored = np.load(tmp_path / "x.npy", mmap_mode="r")
        elif kind == "dask":
            stored = pytest.importorskip("dask.array").from_array(x.astype(float), chunks=(40, 5))
        elif kind == "genotypes":
            stored = ts.read_plink(write_plink(tmp_path / "cohort", x.astype(float)))
            model = ts.MultiTaskLasso(0.2).fit(stored, y, task=task)
        found = ts.debiased_inference(model, stored, y, task=task, features="all", groups=np.arange(90) // 2)
        for name in ("estimate", "std_error", "bias_factor", "row_pvalue"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-7)

    def test_columns_that_do_not_fit_into_memory_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        x, y, task = data()
        model = MODELS["values"].fit(x, y, task=task)
        monkeypatch.setattr("tasksieve.findings.debiased.free_memory", lambda: 16.0 * x.size - 1.0)
        with pytest.raises(ValueError, match="Take fewer columns"):
            ts.debiased_inference(model, x, y, task=task)

    def test_rows_without_labels_do_not_count(self) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((40, 10)), rng.standard_normal((40, 2))
        y[:, 0] += x[:, 0]
        y[30:, 1] = np.nan
        model = ts.MultiTaskLasso(0.2).fit(x, y)
        found = ts.debiased_inference(model, x, y, features=[0])
        again = ts.debiased_inference(model, [x, x[:30]], [y[:, 0], y[:30, 1]], features=[0])
        np.testing.assert_allclose(found.estimate, again.estimate, rtol=1e-9)
        np.testing.assert_allclose(found.std_error, again.std_error, rtol=1e-9)

    def test_an_offset_is_no_feature(self) -> None:
        x, y, task = data("counts")
        known = 0.1 * x[:, 5]
        model = ts.MultiTaskPoisson(0.3).fit(x, y, task=task, offset=known)
        found = ts.debiased_inference(model, x, y, task=task, features=[0], offset=known)
        slope = [y[task == label] - model.predict(x, task=task, offset=known)[task == label] for label in model.tasks_]
        assert np.all(np.isfinite(found.estimate))
        moved = np.sign(found.estimate - model.coef_[:, 0])
        pulls = [own @ (x[task == label][:, 0] - x[task == label][:, 0].mean()) for own, label in
                 zip(slope, model.tasks_, strict=True)]  # fmt: skip
        assert moved[0] == np.sign(pulls[0])

    def test_a_feature_that_does_not_vary_is_not_known(self) -> None:
        x, y, task = data()
        x[task == "b", 4] = 1.7
        model = MODELS["values"].fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task, features=[4])
        assert np.isnan(found.estimate[1])
        assert np.isnan(found.upper[1])
        assert found.bias_factor[1] == np.inf
        assert np.all(np.isfinite(found.estimate[[0, 2]]))
        assert np.isfinite(found.row_pvalue[0])

    def test_a_model_of_as_many_features_as_rows_has_no_errors(self) -> None:
        x, y, task = data(n=8, d=40)
        model = ts.MultiTaskLasso(1e-4, tol=1e-8).fit(x, y, task=task)
        with pytest.warns(UserWarning, match="3 task.* no standard errors"):
            found = ts.debiased_inference(model, x, y, task=task)
        assert np.isnan(found.std_error).all()
        assert np.isfinite(found.estimate).all()

    def test_nothing_selected(self) -> None:
        x, y, task = data()
        model = ts.MultiTaskLasso(1e3).fit(x, y, task=task)
        found = ts.debiased_inference(model, x, y, task=task)
        assert len(found) == 0
        assert "none" in found.summary()

    def test_refusals(self) -> None:
        x, y, task = data()
        model = MODELS["values"].fit(x, y, task=task)
        for options, words in (
            ({"features": "some"}, "features"),
            ({"features": [25]}, "no feature 25"),
            ({"features": ["f0"]}, "no feature 'f0'"),
            ({"features": 3}, "features"),
            ({"level": 1.0}, "level"),
            ({"errors": "HC3"}, "errors"),
            ({"nodewise_penalty": 0.0}, "above 0"),
            ({"nodewise_penalty": [0.1, 0.2]}, "nodewise_penalty"),
        ):
            with pytest.raises(ValueError, match=words):
                ts.debiased_inference(model, x, y, task=task, **options)
        with pytest.raises(ValueError, match="24 features"):
            ts.debiased_inference(model, x[:, :24], y, task=task)
        with pytest.raises(ValueError, match="not fitted"):
            ts.debiased_inference(ts.MultiTaskLasso(), x, y, task=task)
        with pytest.raises(ValueError, match="Huber"):
            ts.debiased_inference(ts.MultiTaskHuber(0.3).fit(x, y, task=task), x, y, task=task)
        with pytest.raises(ValueError, match=r"Cox|partial"):
            times = ts.survival(np.exp(y / 10.0), np.ones(len(y)))
            ts.debiased_inference(ts.MultiTaskCox(0.05).fit(x, times, task=task), x, times, task=task)
        x, y, task = data("signs")
        with pytest.raises(ValueError, match="errors"):
            ts.debiased_inference(MODELS["signs"].fit(x, y, task=task), x, y, task=task, errors="constant")
        with pytest.raises(ValueError, match="more than two classes"):
            several = ts.MultiTaskClassifier(alpha=0.1).fit(x, np.arange(len(y)) % 3, task=task)
            ts.debiased_inference(several, x, np.arange(len(y)) % 3, task=task)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["values", "signs"])
def test_intervals_cover(kind: str) -> None:
    """A sparse truth, independent features: 90 % of the intervals of inactive and of active features, within two and a
    half errors of the simulation (tasks and features of a set are nearly independent)."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    n, d, sets, strength = (100, 60, 60, 0.5) if kind == "values" else (300, 20, 160, 0.8)
    task = np.repeat(np.arange(3), n)
    for k in range(sets):
        rng = np.random.default_rng(k)
        x, beta = rng.standard_normal((3 * n, d)), np.zeros((3, d))
        beta[:, :2] = strength
        z = np.einsum("ij,ij->i", x, beta[task])
        if kind == "values":
            y, model = z + rng.standard_normal(3 * n), ts.MultiTaskLasso(0.2)
        else:
            y, model = rng.random(3 * n) < expit(z), ts.MultiTaskLogisticRegression(0.06)
        found = ts.debiased_inference(model.fit(x, y, task=task), x, y, task=task, features=range(8), level=0.9)
        truth = beta[found.task, found.feature]
        inside = (found.lower <= truth) & (truth <= found.upper)
        for active in (True, False):
            hits[active] += inside[(truth != 0.0) == active].tolist()
    for own in hits.values():
        assert abs(np.mean(own) - 0.9) < 2.5 * np.sqrt(0.09 / len(own))
