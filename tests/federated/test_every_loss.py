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

FREE = 7  # the covariate
MODELS: dict[str, Any] = {
    "squared": ts.MultiTaskRegressor,
    "huber": partial(ts.MultiTaskRegressor, loss="huber"),
    "quantile": partial(ts.MultiTaskRegressor, loss=ts.losses.Quantile(smoothing=0.5)),
    "expectile": partial(ts.MultiTaskRegressor, loss="expectile"),
    "log_cosh": partial(ts.MultiTaskRegressor, loss="log_cosh"),
    "logistic": partial(ts.MultiTaskClassifier, loss="logistic"),
    "poisson": partial(ts.MultiTaskRegressor, loss="poisson"),
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


@pytest.mark.parametrize(("name", "case"), [("ordinal", "l21")])
def test_the_path_is_that_of_the_pooled_model(name: str, case: str) -> None:
    check(name, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["l21", "ridge", "entries", "rich", "20 sites"])
@pytest.mark.parametrize("name", MODELS)
def test_paths_of_every_loss(name: str, case: str) -> None:
    check(name, case)


def check(name: str, case: str) -> None:
    """With a ridge, with entries penalised too, with 20 sites, or "rich": two tasks at the first site, a covariate,
    weights of rows, and columns standardised by task."""
    rng, rich = np.random.default_rng(4), case == "rich"
    sizes = [int(n) for n in rng.integers(24, 36, 20)] if case == "20 sites" else [30, 26, 34, 28]
    X = [rng.normal(size=(n, 25)) * rng.uniform(0.5, 1.5, 25) for n in sizes]
    y = [labels(name, x[:, 0] - 0.8 * x[:, 1] + 0.5 * x[:, 2], rng) for x in X]
    weights = [rng.uniform(0.5, 2.0, len(x)) if rich else np.ones(len(x)) for x in X]
    unit = float(np.sum(np.concatenate(weights))) / len(X)
    options: dict[str, Any] = {"tol": 1e-8}
    ours: dict[str, Any] = {}
    if rich:
        ours["weights"] = np.where(np.arange(25) == FREE, 0.0, 1.0)
        options |= {"standardize": True, "feature_weights": ours["weights"]}
    if case == "ridge":
        options["ridge"], ours["ridge"] = 0.1, 0.1 * unit
    if case == "entries":
        options["penalty"], ours["l1_ratio"] = ts.penalties.SparseGroup(l1=0.4, group=1.0), 0.4
    model = MODELS[name](**options)
    each = [[t] for t in range(len(X))]
    sites = []
    for own in [[0, 1], *each[2:]] if rich else each:
        part = [[whole[t] for t in own] for whole in (X, y, weights)]
        data = model._read_with(part[0], part[1], None, part[2], None)
        how = {"standardize": "task", "unpenalised": [FREE]} if rich else {}
        sites.append(LocalProblem(data, model._loss_of(data), **how))
    path = FederatedPath(25, loss=sites[0].loss, n_values=6, eps=0.2, tol=1e-6, **ours)
    rounds = follow([path], SitesInMemory(sites).ask)
    pooled = model.path(X, y, sample_weight=weights, alphas=path.lams / unit)
    assert rounds <= 25
    assert_same_path(path, pooled, unit)
