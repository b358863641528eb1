"""Pooled standardisation: standard deviations over the rows of all sites, from sums, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federated.site_tables import Tables, make, transport
from federated.sites import Rows, assert_same_path, pooled_path, simulated, sites_of

import tasksieve as ts
from tasksieve import verify
from tasksieve.federated.asking import Asking
from tasksieve.federated.certify import certify, part_of
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.fitted import FederatedFit
from tasksieve.federated.fitting import fit
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.messages import seal_round
from tasksieve.federated.path import FederatedPath
from tasksieve.federated.question import Question, Round
from tasksieve.federated.scales import find_scales
from tasksieve.federated.statement import check_signatures
from tasksieve.federated.together import follow
from tasksieve.federated.units import Units
from tasksieve.tasks import read_tasks


def hard_columns() -> Rows:
    """Of sizes from 1e-9 to 1e9; the last ones are a column of a large mean, one that is the same everywhere, zeros,
    and one that differs between sites alone."""
    tasks = []
    for k, (X, y) in enumerate(simulated(sizes=(24, 20, 28), d=12)):
        X = (X + np.arange(12)) * np.geomspace(1e-9, 1e9, 12)
        X[:, 8] = 1e7 + np.arange(len(y)) % 7
        X[:, 9] = 0.1
        X[:, 10] = 0.0
        X[:, 11] = float(k)
        tasks.append((X, y))
    return tasks


def test_scales_are_the_standard_deviations_of_all_rows() -> None:
    tasks = hard_columns()
    sites = sites_of(tasks, standardize="pooled")
    features = np.setdiff1d(np.arange(12), [2])
    scales = find_scales(sites, features, centred=True)
    whole = np.vstack([X for X, _ in tasks])
    expected = np.array([np.sqrt(np.mean((column - column.mean()) ** 2)) for column in whole.T])
    expected[[2, 9, 10]] = 1.0  # not penalised; the same everywhere
    np.testing.assert_allclose(scales, expected, rtol=1e-10)
    assert sites.scales is scales
    assert sites.rounds <= 6  # sizes, and three questions for columns of such sizes; one where they are alike
    alike = sites_of([(X[:, :1], y) for X, y in tasks], standardize="pooled")
    find_scales(alike, np.array([0]), centred=True)
    assert alike.rounds == 2


def test_row_weights_count() -> None:
    X, y = simulated(sizes=(30,), d=5)[0]
    weights = np.linspace(0.0, 2.0, 30)
    site = LocalProblem(read_tasks([X], [y], sample_weight=[weights]), "squared", standardize="pooled")
    answer = site.answer(Question(features=np.array([0, 2]), s=np.array([-1.0, 0.5]), kind="moments"))
    less = X[:, [0, 2]] - [-1.0, 0.5]
    assert answer.weight == pytest.approx(weights.sum())
    np.testing.assert_allclose(answer.first, weights @ less)
    np.testing.assert_allclose(answer.second, weights @ less**2)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_path_is_that_of_divided_columns(intercept: bool) -> None:
    tasks = [(X * np.geomspace(1e-3, 1e3, 40), y) for X, y in simulated()]
    sites = sites_of(tasks, standardize="pooled", fit_intercept=intercept)
    scales = find_scales(sites, np.arange(40), centred=intercept)
    path = FederatedPath(40, n_values=6, eps=0.1)
    follow([path], sites.ask)
    model = ts.MultiTaskLasso(tol=1e-10, fit_intercept=intercept)
    assert_same_path(path, pooled_path(model, [(X / scales, y) for X, y in tasks], path.lams), 24.0)


def test_questions_before_scales_are_known() -> None:
    site = sites_of(simulated(), standardize="pooled").sites[0]
    with pytest.raises(FederatedError, match="scales of columns"):
        site.answer(Question())
    with pytest.raises(FederatedError, match="not penalised"):
        sites_of(simulated(), standardize="pooled", unpenalised=[1]).sites[0].answer(
            Question(features=np.array([1]), s=np.zeros(1), kind="moments")
        )


def test_a_fit_with_its_proof_and_its_file(tmp_path: Path) -> None:
    tables = Tables(spread=True)
    plan, keys, sites = make(tmp_path, tables, n_alphas=3, standardize="pooled", covariates=["age"])
    found = fit(plan, transport(sites), keys, folder=tmp_path / "run")
    assert found.column_scale is not None
    found.save(tmp_path / "result.npz")
    read = FederatedFit.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(read.column_scale, found.column_scale)
    np.testing.assert_array_equal(sites["west"].model(read, 2).coef_, sites["west"].model(found, 2).coef_)
    again = fit(plan, transport(sites), keys, folder=tmp_path / "run")  # from the exchanges that were kept
    np.testing.assert_array_equal(again.objectives, found.objectives)
    statement, _ = certify(read, plan, transport(sites), keys, [2])
    check_signatures(statement.to_bytes(), plan)
    assert verify.verify_statement(statement.to_bytes(), exact=True)
    X, y = np.column_stack([tables.X["north"], tables.age["north"]]), tables.y["north"]
    proved = verify.verify_part(part_of(sites["north"]).to_bytes(), [X], [y])
    assert proved, proved.words
    # the model's own parameters say the same penalty
    model = sites["west"].model(found, 2)
    np.testing.assert_array_equal(model.feature_weights, np.where(plan.weights > 0.0, found.column_scale, 0.0))
    # scales that the sites were not given
    statement.arrays["column_scale"] = 2.0 * statement.arrays["column_scale"]
    with pytest.raises(FederatedError, match="scales of columns are not those"):
        check_signatures(statement.to_bytes(), plan)


@pytest.mark.parametrize(
    ("standardize", "kind", "scales", "words"),
    [
        ("task", "moments", None, "does not pool them"),
        ("task", "point", np.ones(13), "the plan does not have"),
        ("pooled", "point", None, "name no scales"),
        ("pooled", "point", np.ones(3), "the plan does not have"),
        ("pooled", "point", np.ones(13), ""),
        ("pooled", "moments", None, ""),
    ],
)
def test_a_site_answers_as_the_plan_standardises(
    tmp_path: Path, standardize: str, kind: str, scales: Any, words: str
) -> None:
    plan, keys, sites = make(tmp_path, Tables(), standardize=standardize, covariates=["age"])
    node = sites["north"].node()
    question = Question(kind=kind, hessian=False)
    asked = Round(0, plan.digest, (question,), (Units(3, -40, -40, -10),), scales)
    if words:
        with pytest.raises(FederatedError, match=words):
            node.reply(seal_round(asked, keys))
        return
    assert node.reply(seal_round(asked, keys))
    if scales is not None:
        assert node.reply(seal_round(replace(asked, number=1), keys))
        with pytest.raises(FederatedError, match="scales: columns were divided by other numbers"):
            node.reply(seal_round(replace(asked, number=2, scales=2.0 * scales), keys))


def test_moments_are_of_all_rows(tmp_path: Path) -> None:
    plan, keys, sites = make(tmp_path, Tables(), standardize="pooled", cv=2)
    question = Question("fold 0", kind="moments")
    with pytest.raises(FederatedError, match="those of all rows"):
        Asking(plan, keys, transport(sites)).ask([question])


def test_review_says_what_pooling_reveals(tmp_path: Path) -> None:
    plan, keys, sites = make(tmp_path, Tables(), standardize="pooled")
    question = Question(features=np.arange(2), s=np.zeros(2), kind="moments")
    asked = Round(0, plan.digest, (question,), (Units(3, hessian=np.zeros(2, np.int16)),))
    lines = sites["west"].review(seal_round(asked, keys))
    assert "sums of 2 columns and of their squares (x0, x1)" in lines[1]
