"""Paths from sums over sites, against the pooled fit of the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from federated.sites import assert_same_path, pooled_path, simulated, sites_of

import tasksieve as ts
import tasksieve.federated.path as path_module
from tasksieve.federated.answer import GRID as SCALES
from tasksieve.federated.answer import Answer
from tasksieve.federated.path import FederatedPath, norm_bounds
from tasksieve.federated.question import Question
from tasksieve.federated.together import follow

GRID: dict[str, Any] = {"n_values": 8, "eps": 0.15}
CLASSES = {"logistic"}


def pooled_model(loss: str, **options: Any) -> Any:
    kind = ts.MultiTaskClassifier if loss in CLASSES else ts.MultiTaskRegressor
    return kind(loss=loss, **options)


def check(loss: str, penalty: str, **shape: Any) -> FederatedPath:
    tasks = simulated(loss, **shape)
    d, unit = tasks[0][0].shape[1], float(np.mean([len(y) for _, y in tasks]))
    weights = np.where(np.arange(d) % 3 == 0, 0.5, 1.5)
    ours: dict[str, Any] = {
        "l21": {}, "weights": {"weights": weights}, "ridge": {"ridge": 0.3 * unit}, "entries": {"l1_ratio": 0.4},
    }[penalty]  # fmt: skip
    theirs: dict[str, Any] = {
        "l21": {}, "weights": {"feature_weights": weights}, "ridge": {"ridge": 0.3},
        "entries": {"penalty": ts.penalties.SparseGroup(l1=0.4, group=1.0)},
    }[penalty]  # fmt: skip
    path = FederatedPath(d, loss=loss, **ours, **GRID)
    follow([path], sites_of(tasks, loss).ask)
    assert_same_path(path, pooled_path(pooled_model(loss, **theirs), tasks, path.lams), unit)
    return path


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("squared", "weights"), ("squared", "entries"), ("logistic", "ridge")],
)
def test_paths_are_those_of_the_pooled_rows(loss: str, penalty: str) -> None:
    check(loss, penalty)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "huber"])
@pytest.mark.parametrize("penalty", ["l21", "weights", "ridge", "entries"])
@pytest.mark.parametrize("sizes", [(30, 24, 40), (20,) * 8])
def test_losses_penalties_and_numbers_of_sites(loss: str, penalty: str, sizes: tuple[int, ...]) -> None:
    check(loss, penalty, sizes=sizes, d=80, seed=1)


def test_the_path_begins_where_nothing_is_selected() -> None:
    for options in ({}, {"l1_ratio": 0.4}):
        path = FederatedPath(40, n_values=6, eps=0.5, **options)
        follow([path], sites_of(simulated()).ask)
        assert len(path.features(0)) == 0
        assert len(path.features(1)) > 0
        assert path.lams[0] == path.lam_max


def test_sums_of_doubles_and_of_integers_select_the_same() -> None:
    tasks = simulated()
    sites = sites_of(tasks)
    exact = FederatedPath(40, **GRID)
    follow([exact], lambda questions: [sum(site.answer(q) for site in sites.sites) for q in questions])
    words = FederatedPath(40, lams=exact.lams)
    follow([words], sites.ask)
    for k in range(8):
        assert np.array_equal(exact.features(k), words.features(k))
        allowed = max(exact.gaps[k], words.gaps[k]) + 1e-12 * exact.null_loss
        assert abs(exact.objectives[k] - words.objectives[k]) <= allowed


def test_few_rounds_for_many_values() -> None:
    tasks = simulated(d=100, sizes=(30,) * 4, used=6)
    sites = sites_of(tasks)
    path = FederatedPath(100, n_values=30)
    rounds = follow([path], sites.ask)
    assert path.converged.all()
    assert rounds <= 12
    assert sites.rounds == rounds  # how large numbers are is asked in the first


def test_answers_come_back_to_the_values_they_were_asked_for() -> None:
    """The solution's own question has the objective and a dual point that proves the tolerance."""
    tasks = simulated("logistic")
    sites = sites_of(tasks, "logistic")
    path = FederatedPath(40, loss="logistic", n_values=4, eps=0.3)
    follow([path], sites.ask)
    answers = sites.ask(path.final_questions("point"))
    for value, answer in zip(path.values, answers, strict=True):
        norms = value.s * np.sqrt(answer.z)
        assert np.allclose(norms, value.row_norms, rtol=1e-6)
        assert answer.loss + value.lam * norms.sum() == pytest.approx(value.objective, abs=1e-8 * path.null_loss)
        scale = min(1.0, value.lam / np.sqrt(answer.levels.max()))
        dual = np.interp(scale, SCALES[::-1], answer.dual[::-1])
        assert value.objective - dual <= 1.02e-6 * path.null_loss


def test_gaps_need_all_features() -> None:
    """A question about some features proves nothing about the others, be it at the optimum."""
    sites = sites_of(simulated())
    solved = FederatedPath(40, lams=[15.0])
    follow([solved], sites.ask)
    every = solved.final_questions("point")[0]
    few = replace(every, levels=every.features)
    path = FederatedPath(40, lams=[15.0], norms=np.full(40, 1e6))  # with such norms nothing is rejected
    path.begin(sites.ask(path.first()))
    before = path.values[0].best_dual
    for question, proves in ((few, False), (every, True)):
        path._asked = [(question, [0], None)]
        path.take(sites.ask([question]))
        assert (path.values[0].best_dual > before) == proves
        assert path.converged[0] == proves


def test_last_steps_ask_for_no_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take those that they started from: fewer bytes and the same path, in as many rounds."""
    found = []
    for last in (0.0, path_module.LAST):
        monkeypatch.setattr(path_module, "LAST", last)
        sites, path = sites_of(simulated()), FederatedPath(40, n_values=20, eps=0.1)
        follow([path], sites.ask)
        assert path.converged.all()
        found.append((path, sites))
    (every, asked), (few, spared) = found
    assert spared.up < asked.up
    assert spared.rounds <= asked.rounds
    assert np.all(np.abs(every.objectives - few.objectives) <= np.maximum(every.gaps, few.gaps))


def test_second_derivatives_are_lent_once() -> None:
    """To a point on some of the features, of which the same are in use: those of these features."""
    sites, path = sites_of(simulated()), FederatedPath(40)
    path.begin(sites.ask(path.first()))
    features, s = np.array([0, 2, 3, 7]), np.array([0.1, 0.0, 0.2, 0.0])
    questions = [Question(features=features, s=s), Question(features=features[:3], s=1.01 * s[:3], hessian=False)]
    base, point = (path._point(*each) for each in zip(questions, sites.ask(questions), strict=True))
    used = np.array([0, 3])
    assert base.lends(point.features, used)
    assert not base.lends(np.array([0, 3, 5]), used)  # of one there are none
    assert not base.lends(point.features, np.array([0, 2, 3]))  # one more is in use
    assert not point.lends(point.features, used)
    point.borrow(base)
    assert np.array_equal(point.hessian, base.hessian[:3, :3])
    assert not point.lends(point.features, used)


def test_a_tolerance_beyond_the_units_ends() -> None:
    path = FederatedPath(40, n_values=3, eps=0.3, tol=1e-17)
    follow([path], sites_of(simulated()).ask)
    assert not path.converged[1:].any()
    assert np.all(path.gaps < 1e-8 * path.null_loss)


@pytest.mark.slow
def test_a_loss_that_is_nearly_flat_ends_with_true_gaps() -> None:
    """The quantile loss has hardly any second derivatives: what does not converge says so."""
    tasks = simulated(sizes=(14, 12, 16), d=10)
    path = FederatedPath(10, loss="quantile", n_values=3, eps=0.5)
    follow([path], sites_of(tasks, "quantile").ask)
    pooled = pooled_path(ts.MultiTaskQuantile(), tasks, path.lams)
    unit = float(np.mean([len(y) for _, y in tasks]))
    assert np.all(np.isfinite(path.gaps))
    assert np.all(path.objectives - pooled.objectives * unit <= path.gaps + 1e-9 * path.null_loss)
    assert np.array_equal(path.converged, path.gaps <= 1e-6 * path.null_loss)


def test_features_without_a_penalty_are_left_to_the_sites() -> None:
    tasks = simulated()
    weights = np.ones(40)
    weights[[0, 7]] = 0.0
    path = FederatedPath(40, weights=weights, **GRID)
    follow([path], sites_of(tasks, unpenalised=[0, 7]).ask)
    pooled = pooled_path(ts.MultiTaskLasso(feature_weights=weights), tasks, path.lams)
    unit = float(np.mean([len(y) for _, y in tasks]))
    assert np.all(path.objectives - pooled.objectives * unit <= path.gaps + 1e-9)
    assert not any({0, 7} & set(path.features(k).tolist()) for k in range(8))


def test_norms_are_bounded_from_above() -> None:
    norms = np.random.default_rng(0).uniform(0.1, 5.0, (6, 40))
    bounds = norm_bounds(Answer(norms=np.sum(norms**16, axis=0)))
    assert np.all(bounds >= norms.max(axis=0))
    assert np.all(bounds <= 6 ** (1 / 16) * norms.max(axis=0) * 1.001)


@pytest.mark.parametrize(
    "options",
    [{"weights": np.ones(3)}, {"weights": np.zeros(4)}, {"weights": [1, 2, 1, 1], "l1_ratio": 0.5},
     {"lams": [1.0, 2.0]}, {"ridge": -1.0}, {"tol": 0.0}, {"lams": []}],
)  # fmt: skip
def test_what_is_no_path_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"weights|lams|ridge"):
        FederatedPath(4, **options)


def test_large_counts_whose_objectives_are_below_zero() -> None:
    """Gaps are relative to the loss of the empty model without the constant that objectives have beside it."""
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(3):
        X = rng.standard_normal((30, 12))
        tasks.append((X, rng.poisson(np.exp(2.5 + 0.3 * X[:, 0] - 0.2 * X[:, 1])).astype(float)))
    path = FederatedPath(12, loss="poisson", n_values=6, eps=0.1)
    rounds = follow([path], sites_of(tasks, "poisson").ask)
    assert path.objectives.max() < 0.0 < path.null_loss
    assert rounds <= 15
    assert_same_path(path, pooled_path(pooled_model("poisson"), tasks, path.lams), 30.0)
