"""Certified paths of every loss from sums over sites, against the pooled model of the same rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from federated.sites import assert_same_path

import tasksieve as ts
from tasksieve.federated.in_memory import SitesInMemory
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.path import FederatedPath
from tasksieve.federated.together import follow

MODELS: dict[str, Any] = {
    "squared": ts.MultiTaskRegressor,
    "huber": ts.MultiTaskHuber,
    "quantile": partial(ts.MultiTaskQuantile, smoothing=0.5),
    "expectile": partial(ts.MultiTaskRegressor, loss="expectile"),
    "log_cosh": partial(ts.MultiTaskRegressor, loss="log_cosh"),
    "logistic": ts.MultiTaskLogisticRegression,
    "poisson": ts.MultiTaskPoisson,
    "negative_binomial": partial(ts.MultiTaskRegressor, loss="negative_binomial"),
    "gamma": partial(ts.MultiTaskRegressor, loss="gamma"),
    "tweedie": partial(ts.MultiTaskRegressor, loss="tweedie"),
    "cox": ts.MultiTaskCox,
    "ordinal": ts.MultiTaskOrdinal,
}


def labels(name: str, z: Any, rng: np.random.Generator) -> Any:
    if name == "logistic":
        return (rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(int)
    if name in ("poisson", "negative_binomial", "tweedie"):
        return rng.poisson(np.exp(0.4 * z + 0.5)).astype(float)
    if name == "gamma":
        return rng.gamma(2.0, np.exp(0.4 * z))
    if name == "ordinal":
        return np.digitize(z + rng.logistic(size=len(z)), [-0.5, 1.0])
    if name == "cox":
        death, end = rng.exponential(np.exp(-z)), rng.exponential(3.0, len(z))
        return ts.survival(np.round(np.minimum(death, end), 2) + 0.01, death <= end)
    return z + rng.normal(size=len(z))


@pytest.mark.parametrize(("name", "rich"), [("ordinal", False)])
def test_the_path_is_that_of_the_pooled_model(name: str, rich: bool) -> None:
    check(name, rich)


@pytest.mark.slow
@pytest.mark.parametrize("rich", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_paths_of_every_loss(name: str, rich: bool) -> None:
    check(name, rich)


def check(name: str, rich: bool) -> None:
    """`rich`: two tasks at the first site, a covariate, weights of rows, and columns standardised by task."""
    rng = np.random.default_rng(4)
    X = [rng.normal(size=(n, 25)) * rng.uniform(0.5, 1.5, 25) for n in (30, 26, 34, 28)]
    y = [labels(name, x[:, 0] - 0.8 * x[:, 1] + 0.5 * x[:, 2], rng) for x in X]
    weights = [rng.uniform(0.5, 2.0, len(x)) if rich else np.ones(len(x)) for x in X]
    free, options = [7], {"tol": 1e-8}
    if rich:
        options |= {"standardize": True, "feature_weights": np.where(np.arange(25) == 7, 0.0, 1.0)}
    model = MODELS[name](**options)
    sites = []
    for own in ([0, 1], [2], [3]) if rich else ([0], [1], [2], [3]):
        part = [[whole[t] for t in own] for whole in (X, y, weights)]
        data = model._read_with(part[0], part[1], None, part[2], None)
        how = {"standardize": "task", "unpenalised": free} if rich else {}
        sites.append(LocalProblem(data, model._loss_of(data), **how))
    path = FederatedPath(
        25, loss=sites[0].loss, n_values=6, eps=0.2, weights=options.get("feature_weights"), tol=1e-6
    )
    rounds = follow([path], SitesInMemory(sites).ask)
    unit = float(np.sum(np.concatenate(weights))) / 4
    pooled = model.path(X, y, sample_weight=weights, alphas=path.lams / unit)
    assert rounds <= 25
    assert_same_path(path, pooled, unit)
