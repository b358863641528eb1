"""Every estimator of the engine on tensors finds what it finds on arrays, with gaps that are true."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES, KEPT, tensor, untouched
from helpers import Case, Judge, random_case, random_weights
from sklearn.base import clone

import tasksieve as ts
from tasksieve.checks.estimator_data import rows_for
from tasksieve.checks.registry import ESTIMATORS
from tasksieve.tasks import kind_of

ENGINE = {name: model for name, model in ESTIMATORS.items() if "device" in model.get_params(deep=False)}
ONE_TASK = [name for name in ENGINE if name.startswith("multinomial OWL")]


def test_all_estimators_of_the_engine_are_here() -> None:
    from tasksieve.linear.base import PathEstimator
    from tasksieve.linear.cross_validation import PathEstimatorCV

    own = {name for name, model in ESTIMATORS.items() if isinstance(model, PathEstimator | PathEstimatorCV)}
    assert own == set(ENGINE)
    assert len(ENGINE) >= 41


def fitted(model: Any, X: Any, rows: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about scales and folds: on both sides
        return clone(model).set_params(**options).fit(X, rows.y, **rows.arguments)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ENGINE)
def test_tensors_of_every_type(name: str, device: str) -> None:
    model = ENGINE[name]
    rows = rows_for(model, many_tasks=name not in ONE_TASK)
    expected = fitted(model, rows.X, rows)
    chosen = KEPT if "cross-validated" not in name else [KEPT[len(name) % 4]]
    for dtype in chosen:
        X = tensor(rows.X, dtype, device)
        with untouched(X):
            found = fitted(model, X, rows)
            predicted = found.predict(X, **rows.arguments)
        agree(found, expected)
        assert kind_of(predicted).location == "device"
        assert np.allclose(predicted.cpu().numpy(), expected.predict(rows.X, **rows.arguments), atol=1e-2)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ENGINE)
def test_arrays_moved_by_the_estimator(name: str) -> None:
    model = ENGINE[name]
    rows = rows_for(model, many_tasks=name not in ONE_TASK)
    found = fitted(model, rows.X.astype(np.int8), rows, device="cpu")
    agree(found, fitted(model, rows.X, rows))
    assert isinstance(found.predict(rows.X, **rows.arguments), np.ndarray)


def agree(found: Any, expected: Any) -> None:
    """Certified fits of one problem: the same set; neither is below the other by more than its gap allows."""
    assert np.array_equal(found.get_support(), expected.get_support())
    gaps = found.dual_gap_ + expected.dual_gap_
    if hasattr(found, "alpha_"):
        assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-9)
    if hasattr(found, "cv_scores_"):
        assert np.allclose(found.cv_scores_, expected.cv_scores_, rtol=2e-2)
    assert abs(found.objective_ - expected.objective_) <= gaps + 1e-9 * abs(expected.objective_)
    for key, value in vars(found).items():
        assert kind_of(value).location != "device", key


# --- gaps, recomputed in forty digits from raw data ------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {"weighted": True},
    "standardised": {"standardize": True},
    "standardised, weights": {"standardize": True, "weighted": True},
    "no intercept": {"fit_intercept": False},
    "ridge": {"ridge_ratio": 0.5},
    "l1": {"l1": 0.4},
    "l1, ridge, weights": {"l1": 0.2, "ridge_ratio": 0.3, "weighted": True},
    "positive": {"positive": True},
    "unpenalised": {"unpenalised": np.array([1, 5])},
    "unpenalised, standardised": {"unpenalised": np.array([1, 5]), "standardize": True},
    "shared": {"shared": True},
    "shared, weights": {"shared": True, "weighted": True},
    "fragile": {"fragile": 1e6},
    "fragile, standardised, weights": {"fragile": 1e6, "standardize": True, "weighted": True},
    "logistic": {"loss": "logistic"},
    "logistic, weights": {"loss": "logistic", "weighted": True},
    "one row a task": {"rows": 1, "tasks": 4, "fit_intercept": False},
}


def case_of(weighted: bool = False, fragile: float = 0.0, rows: int = 11, **options: Any) -> Case:
    rng = np.random.default_rng(len(str(options)) + rows)
    case = random_case(rng, rows=rows, features=40, **options)
    if rows == 1:
        case = case.but(
            matrix=case.matrix[:4], offsets=np.arange(5), y=rng.standard_normal(4)
        )
    if fragile:
        matrix = case.matrix.copy()
        matrix[:, 2:5] += fragile
        case = case.but(matrix=matrix)
    return case.but(weights=random_weights(rng, case)) if weighted else case


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPTIONS)
def test_gaps_are_true(name: str, device: str) -> None:
    case = case_of(**OPTIONS[name])
    judge = Judge(case)
    X = tensor(case.matrix, device=device)
    model, unit, arguments = estimator_of(case)
    largest = model.alpha_max(X, **arguments)
    assert largest == pytest.approx(model.alpha_max(case.matrix, **arguments), rel=1e-7)
    with untouched(X):
        path = model.path(X, **arguments, alphas=[0.5 * largest, 0.1 * largest])
    plain = model.path(case.matrix, **arguments, alphas=path.alphas)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so close that it may not be proved
        closer = clone(model).set_params(tol=1e-12).path(case.matrix, **arguments, alphas=path.alphas)
    assert np.all(path.relative_gaps <= 1e-6)
    for k, alpha in enumerate(path.alphas):
        lam, w, b = alpha * unit, path.coef(k).toarray().T, path.intercept(k)
        objective = judge.objective(lam, w, b)
        scale = abs(objective) + path.null_objective * unit
        assert path.objectives[k] * unit == pytest.approx(objective, abs=1e-7 * scale)
        best = judge.objective(lam, closer.coef(k).toarray().T, closer.intercept(k))
        assert objective - best <= path.dual_gaps[k] * unit + 1e-12 * scale
        if not OPTIONS[name].get("fragile") and not case.positive:  # where the judge has digits for a dual point
            assert judge.gap(lam, w, b) <= 1e-4 * scale
        assert np.array_equal(path.features(k), plain.features(k))


def estimator_of(case: Case) -> tuple[Any, float, dict[str, Any]]:
    """The estimator of a case, what the engine's objective is divided by, and y, task, weights as `fit` takes them."""
    weights = np.ones(case.n_features)
    weights[case.unpenalised] = 0.0
    options: dict[str, Any] = {
        "fit_intercept": case.fit_intercept,
        "standardize": case.standardize,
        "positive": case.positive,
        "feature_weights": weights if len(case.unpenalised) else None,
    }
    model: Any = ts.MultiTaskSparseGroupLasso(l1=case.l1, loss=case.loss, **options)
    if case.ridge_ratio:
        model = _WithRidge(l1=case.l1, loss=case.loss, ridge=case.ridge_ratio, **options)
    y, s = case.y, case.s
    if case.shared:
        shape = (case.n_tasks, -1)
        return model, s.sum() / case.n_tasks, {"y": y.reshape(shape).T, "sample_weight": s.reshape(shape).T}
    task = np.repeat(np.arange(case.n_tasks), np.diff(case.offsets))
    return model, s.sum() / case.n_tasks, {"y": y, "task": task, "sample_weight": s}


class _WithRidge(ts.MultiTaskSparseGroupLasso):
    """A ridge in proportion to alpha, as the elastic net has, beside the sparse group penalty."""

    def __init__(
        self,
        *,
        ridge: float = 0.0,
        l1: Any = 0.0,
        loss: str = "squared",
        fit_intercept: bool = True,
        standardize: bool = False,
        positive: bool = False,
        feature_weights: Any = None,
        tol: float = 1e-6,
    ) -> None:
        super().__init__(
            l1=l1, loss=loss, fit_intercept=fit_intercept, standardize=standardize, positive=positive,
            feature_weights=feature_weights, tol=tol,
        )  # fmt: skip
        self.ridge = ridge

    def _penalty(self) -> dict[str, Any]:
        return {**super()._penalty(), "ridge_ratio": self.ridge}
