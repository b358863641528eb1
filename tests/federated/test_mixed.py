"""Sites with losses of their own: the problem of `MultiTaskMixed`, from sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve import verify
from tasksieve.federated.certify import part_of
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.fitting import fit
from tasksieve.federated.keys import PrivateKeys
from tasksieve.federated.plan import Plan, PlanError
from tasksieve.federated.policy import Rules
from tasksieve.federated.site import Site
from tasksieve.federated.site_rows import SiteRows
from tasksieve.federated.statement import check_signatures
from tasksieve.federated.transport import InProcess

FEATURES = [f"x{j}" for j in range(10)]
LOSSES = {"east": "squared", "north": "logistic", "south": "poisson", "west": "huber:delta=0.8"}


def labels(loss: str, z: Any, rng: np.random.Generator) -> Any:
    if loss == "logistic":
        return (z + rng.logistic(size=len(z)) > 0.0).astype(float)
    return rng.poisson(np.exp(0.4 * z)).astype(float) if loss == "poisson" else z + 0.5 * rng.standard_normal(len(z))


def rows(n: int = 41) -> dict[str, tuple[Any, Any]]:
    rng, found = np.random.default_rng(3), {}
    for site, loss in LOSSES.items():
        X = rng.standard_normal((n, len(FEATURES)))
        found[site] = X, labels(loss, X[:, :3] @ rng.normal(1.0, 0.2, 3), rng)
    return found


def plan_of(**given: Any) -> Plan:
    others = {site: loss for site, loss in LOSSES.items() if loss != "squared"}
    options = {"sites": dict.fromkeys(LOSSES, "..."), "standardize": "no", "n_alphas": 5, "eps": 0.1}
    return Plan("Mixed", features=FEATURES, **{"site_losses": others, **options, **given})


def stacked(data: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    return [X for X, _ in data.values()], [y for _, y in data.values()]


def test_the_path_and_the_choice_are_those_of_the_pooled_model() -> None:
    data = rows()
    plan = plan_of(cv=3, n_alphas=4)
    found = ts.federated.simulate(plan, data)
    assert found.converged.all()
    losses = [ts.losses.Huber(delta=0.8) if own.startswith("huber") else own for own in LOSSES.values()]
    model = ts.MultiTaskMixed(losses, loss_weights=1.0, target_scales=1.0, tol=1e-10)
    path = model.path(*stacked(data), alphas=found.alphas)
    room = 1e-9 * found.null_objective
    assert found.null_objective == pytest.approx(path.null_objective, rel=1e-9)
    assert np.all(found.objectives >= path.objectives - path.dual_gaps - room)
    assert np.all(path.objectives >= found.objectives - found.dual_gaps - room)
    for k in range(4):
        np.testing.assert_array_equal(path.features(k), found.features(k))
    # held-out rows are scored in the units of the losses, as the pooled model's cross-validation does
    assert found.held_out is not None
    sites = [SiteRows(plan.at(site), X, y, np.full(len(y), site)) for site, (X, y) in data.items()]
    trains = [[one.problems(one.data())[f"fold {k}"] > 0 for one in sites] for k in range(3)]
    folds = [(np.flatnonzero(np.concatenate(own)), np.flatnonzero(~np.concatenate(own))) for own in trains]
    X, y = stacked(data)
    chosen = ts.MultiTaskMixedCV(
        losses, loss_weights=1.0, target_scales=1.0, tol=1e-9, fold_tol=1e-9, alphas=found.alphas, cv=folds
    )
    task = np.repeat(list(data), [len(own) for own in y])
    chosen.fit(np.vstack(X), np.concatenate(y), task=task)
    np.testing.assert_allclose(found.held_out.scores, chosen.cv_scores_, rtol=1e-3)
    assert found.alphas[found.chosen] == chosen.alpha_


@pytest.mark.parametrize("answers", ["masked", "open"])
def test_a_fit_between_sites_is_proved(tmp_path: Path, answers: str) -> None:
    data, sites = rows(), {}
    for site, (X, y) in data.items():
        table, header = np.column_stack([X, y]), ",".join([*FEATURES, "y"])
        np.savetxt(tmp_path / f"{site}.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
        settings = {"table": f"../{site}.csv", "target": "y"}
        sites[site] = Site.create(tmp_path / site, site, settings, Rules(open=True))
    keys = PrivateKeys.create()
    lines = {name: site.public_line() for name, site in sites.items()}
    plan = plan_of(sites=lines, coordinator=keys.public().line(), answers=answers, n_alphas=2)
    for site in sites.values():
        site.agree(plan)
    found = fit(plan, InProcess({name: site.node().reply for name, site in sites.items()}), keys)
    assert found.statement is not None
    check_signatures(found.statement.to_bytes(), plan)
    halves = [half.to_bytes() for half in found.halves.values()]
    assert len(halves) == (4 if answers == "open" else 0)
    told = verify.verify_statement(found.statement.to_bytes(), halves)
    assert told, told.words
    assert "poisson at 'south'" in told.words
    proved = verify.verify_part(part_of(sites["north"]).to_bytes(), [data["north"][0]], [data["north"][1]])
    assert proved, proved.words
    kinds = {name: type(site.model(found, 1)).__name__ for name, site in sites.items()}
    assert kinds == {name: "MultiTaskClassifier" if name == "north" else "MultiTaskRegressor" for name in LOSSES}
    # another plan: the same sites with other losses
    with pytest.raises(FederatedError):
        check_signatures(found.statement.to_bytes(), plan_of(sites=lines, site_losses={"north": "logistic"}))
    if answers == "open":
        forged = found.statement.header["problem"]["loss"]["losses"]
        forged["south"], forged["east"] = forged["east"], forged["south"]
        assert not verify.verify_statement(found.statement.to_bytes(), halves)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"centre": "logistic"}, "of sites of this plan"),
        ({"north": "square-root"}, "must be one of squared"),
        ({"north": "huber:d=1"}, "no option of huber"),
        ({"north": 3}, "must be one of"),
    ],
)
def test_losses_of_sites_are_checked(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        plan_of(site_losses=given)


def test_the_plan_in_its_file(tmp_path: Path) -> None:
    plan = plan_of()
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    assert Plan.read(tmp_path / "plan.toml").digest == plan.digest
    assert plan.at("west").make_loss().delta == 0.8
    assert plan.at("east") is plan
