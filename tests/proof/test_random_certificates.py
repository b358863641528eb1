"""Certificates of random fits with weights of every kind: proved, and not much wider than what the fit has proved."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hand_cases import CLASSES, LOSSES, NUMBERS, PENALTIES, penalty_of

import tasksieve as ts
from tasksieve import verify
from tasksieve.proof.claims import inside_domain

PAIRS = [(loss, penalty) for penalty in PENALTIES for loss in LOSSES]


def random_fit(seed: int) -> tuple[Any, dict[str, Any]]:
    """A weighted fit, and its data."""
    rng = np.random.default_rng(seed)
    loss, penalty = PAIRS[seed % len(PAIRS)]
    n_tasks, d = int(rng.integers(1, 4)), int(rng.integers(3, 12))
    n_rows = rng.integers(8, 25, n_tasks).tolist()
    X = [rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d) + rng.normal(0, 3, d) for n in n_rows]
    truth = rng.standard_normal((d, n_tasks)) * (rng.random((d, 1)) < 0.4)
    z = [(x - x.mean(axis=0)) / x.std(axis=0) @ truth[:, t] for t, x in enumerate(X)]
    if loss in NUMBERS:
        member, make = NUMBERS[loss][0], ts.MultiTaskRegressor
        y = [v + 0.5 * rng.standard_normal(len(v)) for v in z]
        if loss in ("gamma", "tweedie"):
            y = [np.exp(np.clip(0.4 * v, -3, 3)) for v in z]
        elif loss in ("poisson", "negative_binomial"):
            y = [rng.poisson(np.exp(np.clip(0.4 * v, -3, 3))).astype(float) for v in z]
    else:
        member, make = CLASSES[loss][0], ts.MultiTaskClassifier
        levels = 3 if loss == "multinomial" else 2
        noisy = [v + 0.5 * rng.standard_normal(len(v)) for v in z]
        y = [np.digitize(v, np.quantile(v, np.arange(1, levels) / levels)) for v in noisy]
        for labels in y:
            labels[:levels] = np.arange(levels)
    options: dict[str, Any] = {
        "ridge": 0.1 if rng.random() < 0.3 else 0.0,
        "standardize": bool(rng.random() < 0.3),
        "positive": bool(rng.random() < 0.2),
        "task_weights": rng.uniform(0.3, 3.0, n_tasks) if rng.random() < 0.3 else None,
        "fit_intercept": bool(rng.random() < 0.8),
        "tol": 10.0 ** -int(rng.integers(4, 10)),
    }
    data = {"X": X, "y": y, "sample_weight": [np.exp(rng.standard_normal(n)) for n in n_rows]}
    model = make(loss=member, penalty=penalty_of(penalty, d, rng)[0], **options)
    largest = model.alpha_max(**data) or 1.0  # 0 where no coefficient may be positive
    model.set_params(alpha=float(largest * 10.0 ** rng.uniform(-1.5, -0.05)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(**data), data


@pytest.mark.parametrize("seeds", [range(27), pytest.param(range(27, 354), marks=pytest.mark.slow)])
def test_weighted_fits_are_proved_as_the_fit_was(seeds: range) -> None:
    for seed in seeds:
        model, data = random_fit(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            certificate = model.certificate(**data)
        verdict = certificate.verify(**data)
        assert verdict, (seed, verdict.words)
        assert certificate.gaps[0] <= 2.0 * model.dual_gap_ + 1e-9 * abs(model.objective_), seed


def test_a_residual_that_rounds_beyond_its_bound_is_brought_back() -> None:
    """A huber residual at its bound, times the root of a weight and divided by it, is the next number beyond."""
    bound, rng = 1.35, np.random.default_rng(0)
    root = next(r for r in np.sqrt(rng.uniform(0.1, 3.0, 1000)) if bound * r / r > bound)
    n, X = 12, np.linspace(-1.0, 1.0, 12)[:, None]
    y = 3.0 * X[:, 0] + 20.0 * (np.arange(n) % 3 == 0) - 20.0 * (np.arange(n) % 3 == 1)
    data = {"X": X, "y": y, "sample_weight": np.full(n, root**2)}
    model = ts.MultiTaskHuber(alpha=0.01, delta=bound, tol=1e-9).fit(**data)
    certificate = model.certificate(**data)
    assert np.abs(certificate.arrays["dual"]).max() == bound
    assert certificate.gaps[0] <= 2.0 * model.dual_gap_ + 1e-9 * model.objective_
    problem = verify.Problem(
        read := verify.read_certificate(certificate.to_bytes()),
        verify.arrange(read, X, y, None, data["sample_weight"], None),
        verify.Floating(),
    )
    beyond = np.nextafter(certificate.arrays["dual"][0], np.sign(certificate.arrays["dual"][0]) * np.inf)
    assert np.abs(inside_domain(problem, beyond)).max() == bound


def test_a_certificate_that_proves_little_says_so() -> None:
    """Coefficients that belong to other data: the gap there is nothing like that of the fit."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    model = ts.MultiTaskLasso(alpha=0.05, tol=1e-9).fit(X, y)
    with pytest.warns(UserWarning, match="the certificate proves a gap of .* only, the fit's is .*: the dual point"):
        model.certificate(X, -3.0 * y)


@pytest.mark.parametrize("kind", [list, dict])
def test_weights_of_tasks_with_different_rows(kind: Any) -> None:
    rng = np.random.default_rng(1)
    X, y = [rng.standard_normal((n, 4)) for n in (8, 11)], [rng.standard_normal(n) for n in (8, 11)]
    weights = [rng.uniform(0.5, 2.0, n) for n in (8, 11)]
    if kind is dict:
        X, y, weights = (dict(zip("ab", part, strict=True)) for part in (X, y, weights))
    model = ts.MultiTaskLasso(alpha=0.1).fit(X, y, sample_weight=weights)
    assert model.certificate(X, y, sample_weight=weights).verify(X, y, sample_weight=weights)
