"""Models of outcomes of every kind write certificates that prove what the fit has claimed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.report.proof import one_value
from tasksieve.verify import verify

Array = np.ndarray[Any, Any]


def matrices(seed: int, n: int = 30, d: int = 8, tasks: int = 2) -> tuple[Any, list[Array]]:
    rng = np.random.default_rng(seed)
    return rng, [rng.standard_normal((n + 3 * t, d)) for t in range(tasks)]


def times(rng: Any, x: Array, entry: bool = False, strata: bool = False) -> Array:
    n = len(x)
    time = np.ceil(6.0 * rng.exponential(np.exp(-x[:, 0] + 0.5 * x[:, 1])))
    event = rng.random(n) < 0.7
    event[0] = True
    known: dict[str, Any] = {}
    if entry:
        known["entry"] = np.where(rng.random(n) < 0.4, time - np.ceil(3.0 * rng.exponential(1.0, n)), -np.inf)
    if strata:
        known["strata"] = rng.choice(["b", "a"], n)
    return ts.survival(time, event, **known)


def proved(model: Any, X: Any, y: Any, exact: bool = False, **rows: Any) -> None:
    """The certificate has the gap of the fit, and is proved; with other labels it is not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = model.certificate(X, y, **rows)
    verdict = certificate.verify(X, y, exact=exact, **rows)
    assert verdict.proved, verdict.words
    assert abs(float(certificate.objectives[0]) - model.objective_) <= 1e-11 * abs(model.objective_)
    assert float(certificate.gaps[0]) <= 1.01 * model.dual_gap_ + 1e-11 * model.null_objective_


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("options", ["plain", "strata", "entry", "free"])
def test_survival(ties: str, options: str) -> None:
    rng, X = matrices(len(ties + options))
    y = [times(rng, x, entry=options in ("entry", "free"), strata=options == "strata") for x in X]
    weight = [rng.uniform(0.5, 2.0, len(x)) for x in X]
    offset = [0.3 * rng.standard_normal(len(x)) for x in X]
    free = np.where(np.arange(8) == 7, 0.0, 1.0) if options == "free" else None
    for tol in (1e-6, 1e-8):
        model = ts.MultiTaskCox(0.05, ties=ties, tol=tol, feature_weights=free)
        model.fit(X, y, sample_weight=weight, offset=offset)
        assert model.dual_gap_ <= tol * model.null_objective_
        proved(model, X, y, sample_weight=weight, offset=offset)


def test_survival_in_fractions() -> None:
    rng, X = matrices(4, n=10, d=4)
    y = [times(rng, x, entry=True, strata=True) for x in X]
    proved(ts.MultiTaskCox(0.05, tol=1e-8).fit(X, y), X, y, exact=True)


def test_survival_of_one_matrix_and_a_path() -> None:
    rng, (x, _) = matrices(1)
    y = [times(rng, x), times(rng, x)]
    model = ts.MultiTaskCox(0.05, standardize=True).fit(x, y)
    proved(model, x, y)
    path = model.path(x, y, n_alphas=5)
    verdict = path.certificate(x, y).verify(x, y)
    assert verdict.proved, verdict.words
    assert len(verdict.values) == 5


def test_names_of_strata_mean_nothing_and_their_members_do() -> None:
    rng, (x, _) = matrices(2)
    y = times(rng, x, strata=True)
    certificate = ts.MultiTaskCox(0.05).fit(x, y).certificate(x, y)
    other = y.copy()
    other["stratum"] = np.where(y["stratum"] == "a", "z", "y")
    assert certificate.verify(x, other).proved
    other["stratum"][0] = "y" if other["stratum"][0] == "z" else "z"
    assert not certificate.verify(x, other).proved
    other = y.copy()
    other["event"][0] = ~other["event"][0]
    assert not certificate.verify(x, other).proved
    assert not certificate.verify(x, (y["time"], y["event"])).proved


def test_a_loss_for_each_task() -> None:
    rng, X = matrices(3, tasks=4)
    z = [x[:, 0] - 0.7 * x[:, 1] for x in X]
    y = {
        "pressure": 120.0 + 15.0 * z[0] + rng.standard_normal(len(z[0])),
        "diabetes": np.where(z[1] + 0.5 * rng.standard_normal(len(z[1])) > 0.0, "yes", "no"),
        "visits": rng.poisson(np.exp(0.5 * z[2])),
        "cost": np.exp(0.5 * z[3]) * rng.gamma(2.0, 0.5, len(z[3])),
    }
    x = dict(zip(y, X, strict=True))
    weight = {task: rng.uniform(0.5, 2.0, len(part)) for task, part in x.items()}
    losses = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "cost": "gamma"}
    for tol, more in ((1e-6, {}), (1e-8, {"task_weights": [1.0, 2.0, 0.5, 1.5], "ridge": 0.1})):
        model = ts.MultiTaskMixed(losses=losses, alpha=0.05, tol=tol, **more)
        model.fit(x, y, sample_weight=weight)
        proved(model, x, y, sample_weight=weight)
    proved(model, x, y, exact=True, sample_weight=weight)
    header = model.certificate(x, y, sample_weight=weight).header
    scales = dict(zip(header["tasks"], header["loss"]["scales"], strict=True))
    assert scales.pop("pressure") > 5.0
    assert set(scales.values()) == {1.0}
    assert dict(zip(header["tasks"], header["classes"], strict=True)) == {
        "pressure": None, "diabetes": ["no", "yes"], "visits": None, "cost": None
    }  # fmt: skip


@pytest.mark.parametrize("absent", [False, True])
def test_ordered_classes(absent: bool) -> None:
    rng, X = matrices(5)
    levels = np.array(["none", "mild", "severe", "worst"])
    y = [levels[np.digitize(x[:, 0] + 0.5 * rng.standard_normal(len(x)), [-0.7, 0.2, 0.9])] for x in X]
    if absent:  # one class in the middle, and one at an end
        y = [np.where(y[0] == "mild", "severe", y[0]), np.where(y[1] == "worst", "severe", y[1])]
    weight = [rng.uniform(0.5, 2.0, len(x)) for x in X]
    offset = [0.3 * rng.standard_normal(len(x)) for x in X]
    for tol in (1e-6, 1e-8):
        model = ts.MultiTaskOrdinal(0.05, categories=levels.tolist(), tol=tol)
        model.fit(X, y, sample_weight=weight, offset=offset)
        proved(model, X, y, sample_weight=weight, offset=offset)
    proved(model, X, y, exact=True, sample_weight=weight, offset=offset)
    certificate = model.certificate(X, y, sample_weight=weight, offset=offset)
    assert certificate.arrays["thresholds"].shape == (1, 4 if absent else 6)
    path = model.path(X, y, n_alphas=4)
    assert path.certificate(X, y).verify(X, y).proved


def test_ordered_classes_of_one_matrix_with_weights_of_classes() -> None:
    rng, (x, _) = matrices(6)
    y = np.stack([np.digitize(x[:, t] + 0.5 * rng.standard_normal(len(x)), [-0.5, 0.5]) for t in (0, 1)], axis=1)
    free = np.where(np.arange(8) == 7, 0.0, 1.0)
    proved(ts.MultiTaskOrdinal(0.05, class_weight="balanced", feature_weights=free).fit(x, y), x, y)


def test_times_and_ordered_classes_beside_others() -> None:
    rng, X = matrices(7, tasks=3)
    y = {
        "pressure": 120.0 + 15.0 * X[0][:, 0] + rng.standard_normal(len(X[0])),
        "death": times(rng, X[1], strata=True, entry=True),
        "pain": np.digitize(X[2][:, 0] + 0.5 * rng.standard_normal(len(X[2])), [-0.5, 0.5]),
    }
    x = dict(zip(y, X, strict=True))
    weight = {task: rng.uniform(0.5, 2.0, len(part)) for task, part in x.items()}
    losses = {"pressure": "squared", "death": "cox", "pain": "ordinal"}
    model = ts.MultiTaskMixed(losses=losses, alpha=0.05, tol=1e-8).fit(x, y, sample_weight=weight)
    proved(model, x, y, sample_weight=weight)
    proved(model, x, y, exact=True, sample_weight=weight)


def test_one_value_of_a_path_of_ordered_classes() -> None:
    """A page carries the certificate of one value: its thresholds are that value's."""
    rng, (x, _) = matrices(8)
    y = np.digitize(x[:, 0] + 0.5 * rng.standard_normal(len(x)), [-0.5, 0.5])
    path = ts.MultiTaskOrdinal(0.05).path(x, y, n_alphas=3)
    alone = one_value(path.certificate(x, y).to_bytes(), 2)
    assert verify(alone, x, y).proved


def test_parts_of_the_likelihood_that_are_as_small_as_rounding() -> None:
    """Two sites of 15 rows, nearly separated: whether the parts of a dual point are found hung on its last digits."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((30, 2))
    time = np.ceil(6.0 * rng.exponential(np.exp(-x[:, 0]))) + 1.0
    rng.standard_normal(30)
    event = rng.random(30) < 0.7
    entry = np.where(rng.random(30) < 0.4, time - np.ceil(3.0 * rng.random(30)), -1.0)
    y, site = ts.survival(time, event, entry, rng.integers(1, 3, 30)), np.resize(["north", "south"], 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of certificates that prove less than the fit
        for seed in range(3):
            near = x * (1.0 + 1e-15 * np.random.default_rng(seed).standard_normal(x.shape))
            certificate = ts.MultiTaskCox(0.02).fit(near, y, task=site).certificate(near, y, task=site)
            assert verify(certificate.to_bytes(), near, y, task=site).proved
            assert float(certificate.arrays["gap"][0]) < 1e-2
