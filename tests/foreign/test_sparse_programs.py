"""celer, skglm, skein-glm and statsmodels: their tightest answers are optimal in our words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foreign_cases import Rows, same

import tasksieve as ts

ROWS = Rows()
GROUPS = [[0, 1, 2], [3, 5], [4, 6, 7, 8], [9, 10, 11]]
LABELS = np.array([0, 0, 0, 1, 2, 1, 2, 2, 2, 3, 3, 3])
SHARES = np.array([1.0, 2.0, 0.5, 1.5])
LABELS_OF: dict[str, Any] = {"y": ROWS.y, "Y": ROWS.Y, "two": ROWS.two, "three": ROWS.three}
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "options", "y"),
    [
        ("Lasso", {"alpha": 0.1}, "y"),
        ("Lasso", {"alpha": 0.1, "weights": ROWS.factors, "fit_intercept": False}, "y"),
        ("ElasticNet", {"alpha": 0.1, "l1_ratio": 0.4, "weights": ROWS.factors}, "y"),
        ("LogisticRegression", {"C": 0.3}, "two"),
        ("GroupLasso", {"groups": GROUPS, "alpha": 0.1}, "y"),
        ("GroupLasso", {"groups": GROUPS, "alpha": 0.1, "weights": SHARES}, "y"),
        ("GroupLasso", {"groups": 3, "alpha": 0.1}, "y"),
    ],
)
def test_celer(name: str, options: dict[str, Any], y: str) -> None:
    celer = pytest.importorskip("celer")
    model = getattr(celer, name)(tol=1e-14, max_iter=1000, **options).fit(ROWS.X, LABELS_OF[y])
    same(ts.grade(model, ROWS.X, LABELS_OF[y]))


@pytest.mark.parametrize(
    ("name", "options", "y"),
    [
        ("Lasso", {"alpha": 0.1, "positive": True}, "y"),
        ("WeightedLasso", {"alpha": 0.1, "weights": np.r_[0.0, ROWS.factors[1:]]}, "y"),
        ("ElasticNet", {"alpha": 0.1, "l1_ratio": 0.4}, "y"),
        ("MultiTaskLasso", {"alpha": 0.1}, "Y"),
        ("GroupLasso", {"groups": GROUPS, "alpha": 0.1, "weights": SHARES}, "y"),
        ("SparseLogisticRegression", {"alpha": 0.05, "l1_ratio": 0.6}, "two"),
    ],
)
def test_skglm(name: str, options: dict[str, Any], y: str) -> None:
    skglm = pytest.importorskip("skglm")
    model = getattr(skglm, name)(tol=1e-13, **options).fit(ROWS.X, LABELS_OF[y])
    same(ts.grade(model, ROWS.X, LABELS_OF[y]))


def test_the_root_of_squares_of_skglm() -> None:
    pytest.importorskip("skglm")
    from skglm.experimental import SqrtLasso

    same(ts.grade(SqrtLasso(alpha=1.0, tol=1e-10).fit(ROWS.X, ROWS.y), ROWS.X, ROWS.y))


@pytest.mark.parametrize(
    ("name", "options", "y"),
    [
        ("ElasticNetRegressor", {"alpha": 0.4, "weights": ROWS.factors}, "y"),
        ("GroupLassoRegressor", {"groups": LABELS}, "y"),
        ("GroupElasticNetRegressor", {"groups": LABELS, "alpha": 0.4, "weights": SHARES}, "y"),
        ("MultiTaskLassoRegressor", {}, "Y"),
        ("MultiTaskElasticNetRegressor", {"alpha": 0.4}, "Y"),
        ("LogisticElasticNetRegressor", {"alpha": 0.4}, "two"),
        ("MultinomialElasticNetClassifier", {"alpha": 0.4}, "three"),
        ("PoissonElasticNetRegressor", {"alpha": 0.4}, "three"),
    ],
)
def test_skein_glm(name: str, options: dict[str, Any], y: str) -> None:
    skein = pytest.importorskip("skein_glm")
    close: dict[str, Any] = {"tol": 1e-12, "max_iter": 100_000}
    if "outer_tol" in getattr(skein, name)(**options).get_params():
        close |= {"max_outer": 500, "outer_tol": 1e-13}
    labels = LABELS_OF[y]
    numbers = labels if y == "three" and "Multinomial" in name else labels * 1.0
    fitted = getattr(skein, name)(lambda_=0.04, **options, **close).fit(ROWS.X, numbers)
    same(ts.grade(fitted, ROWS.X, labels))


def test_survival_in_skein_glm() -> None:
    skein = pytest.importorskip("skein_glm")
    close = {"tol": 1e-12, "max_iter": 100_000, "max_outer": 500, "outer_tol": 1e-13}
    model = skein.CoxGroupLassoRegressor(LABELS, 0.05, **close).fit(ROWS.X, ROWS.time, ROWS.event.astype(float))
    same(ts.grade(model, ROWS.X, ROWS.survival))


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize(
    ("name", "family", "y", "L1_wt"),
    [
        ("OLS", "", "y", 1.0),
        ("OLS", "", "y", 0.5),
        ("GLM", "Binomial", "two", 0.5),
        ("GLM", "Poisson", "three", 1.0),
        ("Logit", "", "two", None),
        ("Poisson", "", "three", None),
    ],
)
def test_statsmodels(name: str, family: str, y: str, L1_wt: float | None, each: bool) -> None:
    api = pytest.importorskip("statsmodels.api")
    X = np.column_stack([np.ones(ROWS.n), ROWS.X])
    alpha: Any = 0.1
    if each:  # the first is the intercept, which a ridge cannot leave out
        alpha = np.r_[0.0 if L1_wt == 1.0 or L1_wt is None else 0.01, ROWS.factors / 10.0]
    # zero_tol=0: by default a coefficient that is zero once is never looked at again
    close: dict[str, Any] = {"L1_wt": L1_wt, "maxiter": 10_000, "cnvrg_tol": 1e-15, "zero_tol": 0.0}
    parameters: dict[str, Any] = {"model": name, "L1_wt": L1_wt}
    if L1_wt is None:
        alpha = alpha * ROWS.n
        close = {"acc": 1e-14, "disp": 0, "maxiter": 10_000, "trim_mode": "off"}
    options = {}
    if family:
        options, parameters["family"] = {"family": getattr(api.families, family)()}, family
    model = getattr(api, name)(LABELS_OF[y], X, **options).fit_regularized(alpha=alpha, **close)
    parameters["alpha"] = alpha
    same(ts.grade(model.params, None, X, LABELS_OF[y], problem="statsmodels", parameters=parameters))
