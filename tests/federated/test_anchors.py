"""Bounds of levels that were not asked for lie above the levels, whatever was guessed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from federated.sites import simulated, sites_of

from tasksieve.federated.anchors import Around
from tasksieve.federated.path import FederatedPath
from tasksieve.federated.question import Question
from tasksieve.federated.together import follow
from tasksieve.losses import as_loss


@pytest.mark.parametrize("l1", [0.0, 1.5])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_bounds_are_never_below_the_levels(loss: str, l1: float) -> None:
    """Points of all kinds, and anchors that know all levels, some, or those of single entries at less."""
    rng, d = np.random.default_rng(0), 40
    sites = sites_of(simulated(loss, seed=2), loss)
    path = FederatedPath(d, loss=loss)
    path.begin(sites.ask(path.first()))
    path._measure(np.asarray(np.max([site.problem("all").design.norms() for site in sites.sites], axis=0)).ravel())
    assert path.norms is not None
    lengths = np.sqrt(as_loss(loss).smoothness) * path.norms
    points, near = [path._null], 0
    for k in range(18):
        features = np.sort(rng.choice(d, rng.integers(1, 12), replace=False))
        s = rng.uniform(0.0, 0.05, len(features)) * (rng.random(len(features)) < 0.8)
        if k % 3 and len(points) > 1:  # beside one that is known
            base = points[-1]
            features, s = base.features, base.s * rng.uniform(0.97, 1.03, len(base.s))
        strength = l1 * float(rng.random() < 0.5)
        question = Question(features=features, s=s, l1=strength, hessian=True, dual=loss != "squared")
        point = path._point(question, sites.ask([question])[0])
        phi = point.answer.phi + point.answer.sum_slack
        bounds = Around(points, features, s, strength, phi).bounds(lengths, 1e-14 * path.null_loss)
        assert np.isfinite(bounds).all()
        assert np.all(bounds >= point.levels * (1.0 - 1e-9))
        near += bool(np.median(bounds / np.maximum(point.levels, 1e-300)) < 1.3)
        if rng.random() < 0.5:
            looked = np.union1d(features, np.flatnonzero(rng.random(d) < 0.5))
            answer = replace(point.answer, levels=np.square(point.levels[looked]))
            point = path._point(replace(question, levels=looked), answer)
        points.append(point)
    assert near >= 3  # some are worth something: bounds of any size would not do


@pytest.mark.parametrize(("loss", "part"), [("squared", 0.97), ("logistic", 0.73)])
def test_bounds_are_nearly_attained(loss: str, part: float) -> None:
    """A column along which the residual moves from that of the anchor, to which it is orthogonal: with radii that are
    a little shorter its bound would lie below its level. (The logistic one moves along another column, 45 degrees
    away.)"""
    X = np.zeros((4, 2))
    X[0, 0], X[:2, 1] = 1.0, np.array([-1.0, 1.0]) / np.sqrt(2.0)
    sites = sites_of([(X, np.array([1.0, 1.0, 0.0, 0.0]))], loss, fit_intercept=False)
    path = FederatedPath(2, loss=loss, norms=np.ones(2))
    path.begin(sites.ask(path.first()))
    question = Question(features=np.array([0]), s=np.array([0.05]), dual=loss != "squared")
    point = path._point(question, sites.ask([question])[0])
    around = Around([path._null], question.features, question.s, 0.0, point.answer.phi + point.answer.sum_slack)
    assert path._bounds(around)[1] >= point.levels[1] > 0.0
    assert path._bounds(around, part)[1] < point.levels[1]


def test_an_anchor_that_thresholds_more_says_nothing() -> None:
    sites = sites_of(simulated())
    path = FederatedPath(40)
    path.begin(sites.ask(path.first()))
    question = Question(features=np.array([0, 3]), s=np.array([0.1, 0.2]), l1=2.0)
    point = path._point(question, sites.ask([question])[0])
    assert not Around([point], question.features, question.s, 1.0, 5.0).anchors
    assert Around([point], question.features, question.s, 2.0, 5.0).anchors


def test_few_levels_travel_where_features_are_many() -> None:
    """The same path as when all are asked for, from a part of the levels."""
    tasks = simulated(d=4000, sizes=(30, 30, 30), seed=3)
    looked = []

    def ask(questions: list[Question]) -> list[object]:
        looked.extend(question.n_levels(4000) for question in questions if question.kind == "point")
        return sites.ask(questions)

    sites = sites_of(tasks)
    path = FederatedPath(4000, n_values=20, eps=0.2)
    follow([path], ask)
    assert path.converged.all()
    assert np.mean(looked) < 0.25 * 4000
    every = sites.ask(path.final_questions("point"))  # all levels, at the solutions
    for value, answer in zip(path.values, every, strict=True):
        rest = np.delete(answer.levels, value.features)
        assert np.sqrt(rest.max()) <= value.lam * (1.0 + 1e-3)
        scale = min(1.0, value.lam / np.sqrt(answer.levels.max()))
        dual = scale * answer.yr - 0.5 * scale**2 * answer.rr
        assert value.objective - dual <= 1.02e-6 * path.null_loss
