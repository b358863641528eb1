"""From tables at three sites to a certified path, and to ordinary models at the sites: against the pooled fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federated.site_tables import NAMES, Tables, make, transport

import tasksieve as ts
from tasksieve import verify
from tasksieve.federated.certify import certify, part_of
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.fitted import FederatedFit
from tasksieve.federated.fitting import fit
from tasksieve.federated.part import published_half
from tasksieve.federated.plan import Plan
from tasksieve.federated.statement import check_signatures
from tasksieve.federated.transport import InProcess


def pooled_path(plan: Plan, tables: Tables, fit: FederatedFit) -> Any:
    weights = plan.weights if plan.covariates else None
    penalty = ts.penalties.SparseGroup(l1=plan.l1_ratio, group=1.0) if plan.l1_ratio else "l21"
    given: dict[str, Any] = {
        "penalty": penalty, "ridge": plan.ridge, "standardize": plan.standardize == "task", "feature_weights": weights,
        "tol": 1e-10, "fit_intercept": plan.fit_intercept,
    }  # fmt: skip
    model = (ts.MultiTaskClassifier if plan.loss == "logistic" else ts.MultiTaskRegressor)(plan.loss, **given)
    X, y, task = tables.pooled(bool(plan.covariates))
    return model.path(X / pooled_scales(plan, X), y, task=task, alphas=fit.alphas)


def pooled_scales(plan: Plan, X: Any) -> Any:
    """Standard deviations over all rows, where the plan divides by these; 1 for covariates."""
    return np.where(plan.weights > 0.0, X.std(axis=0), 1.0) if plan.standardize == "pooled" else np.ones(X.shape[1])


CASES = {
    "squared": {},
    "covariate": {"covariates": ["age"]},
    "ridge": {"ridge": 0.5, "standardize": "no"},
    "logistic": {"loss": "logistic"},
    "poisson": {"loss": "poisson", "covariates": ["age"]},
    "sparse group": {"l1_ratio": 0.5},
    "pooled scales": {"standardize": "pooled", "covariates": ["age"]},
    "pooled scales, no intercept": {"standardize": "pooled", "fit_intercept": False, "ridge": 0.2, "l1_ratio": 0.3},
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in ("ridge", "poisson") else case for case in CASES]
)
def test_the_model_of_all_rows(tmp_path: Path, case: str) -> None:
    several, given = case == "squared", CASES[case]
    tables = Tables(given.get("loss", "squared"), several, spread=given.get("standardize") == "pooled")
    plan, keys, sites = make(tmp_path, tables, several, n_alphas=4, **given)
    found = fit(plan, transport(sites), keys)
    assert found.converged.all()
    path = pooled_path(plan, tables, found)
    room = 1e-9 * found.null_objective
    assert found.null_objective == pytest.approx(path.null_objective, rel=1e-9)
    assert np.all(found.objectives >= path.objectives - path.dual_gaps - room)
    assert np.all(path.objectives >= found.objectives - found.dual_gaps - room)
    free = np.flatnonzero(plan.weights == 0.0)
    for k in (1, 3):
        own = path.coef(k).toarray()
        np.testing.assert_array_equal(np.setdiff1d(path.features(k), free), found.features(k))
        models = [sites[name].model(found, k) for name in NAMES]
        coef = np.vstack([model.coef_ for model in models]) * pooled_scales(plan, tables.pooled(len(free) > 0)[0])
        # the gap bounds the distance: an objective with a curvature near 1 a row
        np.testing.assert_allclose(coef, own, atol=20.0 * np.sqrt(found.dual_gaps[k]) + 1e-6)
    statement = found.statement
    assert statement is not None
    objective, dual_value, gap = (float(statement.arrays[name][0]) for name in ("objective", "dual_value", "gap"))
    assert objective == pytest.approx(found.objectives[-1], abs=1e-6 * found.null_objective)
    assert dual_value <= path.objectives[-1] + room
    assert objective - dual_value <= gap <= 1.1e-6 * found.null_objective
    check_signatures(statement.to_bytes(), plan)
    model = models[-1]
    assert model.tasks_.tolist() == np.unique(tables.task["west"]).tolist()
    assert model.objective_ == pytest.approx(found.objectives[-1])
    assert model.dual_gap_ == pytest.approx(found.dual_gaps[-1])
    X = np.column_stack([tables.X["west"], tables.age["west"]]) if plan.covariates else tables.X["west"]
    scales = pooled_scales(plan, tables.pooled(len(free) > 0)[0])
    direct = path.predict(X / scales, len(path) - 1, task=tables.task["west"])
    got = model.decision_function(X, task=tables.task["west"]) if plan.loss == "logistic" else None
    if got is None:
        got = model.predict(X, task=tables.task["west"])
        direct = np.exp(direct) if plan.loss == "poisson" else direct
    np.testing.assert_allclose(got, direct, atol=0.05)


@pytest.mark.parametrize("given", [{}, pytest.param({"loss": "logistic"}, marks=pytest.mark.slow)])
def test_folds(tmp_path: Path, given: dict[str, Any]) -> None:
    """Scores and choice are those of the pooled rows' cross-validation: tasks count alike, though "west" has two of
    them, and folds that differ in size have their own strengths."""
    tables = Tables(given.get("loss", "squared"), several=True, n=31)
    plan, keys, sites = make(tmp_path, tables, several=True, cv=3, **given)
    reports: list[Any] = []
    found = fit(plan, transport(sites), keys, progress=reports.append)
    assert reports[-1].solved == reports[-1].values == 8 * 4
    assert found.rounds == reports[-1].rounds + 1  # the last one is about the proof
    assert [one.rounds for one in reports] == sorted({one.rounds for one in reports})
    held = found.held_out
    assert held is not None
    assert held.n_tasks.tolist() == [4, 4, 4]
    X, y, task = tables.pooled(False)
    problems = [sites[n].rows.problems(sites[n].local.data) for n in NAMES]
    trains = [np.concatenate([own[f"fold {k}"] for own in problems]) > 0 for k in range(3)]
    folds = [(np.flatnonzero(train), np.flatnonzero(~train)) for train in trains]
    assert len({len(test) for _, test in folds}) > 1
    kind = ts.MultiTaskClassifierCV if plan.loss == "logistic" else ts.MultiTaskRegressorCV
    model = kind(plan.loss, standardize=True, tol=1e-9, fold_tol=1e-9, alphas=found.alphas, cv=folds)
    model.fit(X, y, task=task)
    np.testing.assert_allclose(held.scores, model.cv_scores_, rtol=1e-3)
    assert found.alphas[found.chosen] == model.alpha_
    assert sites["north"].model(found).alpha == found.alphas[found.chosen]


def test_halves(tmp_path: Path) -> None:
    plan, keys, sites = make(tmp_path, Tables(), n_pairs=2, q=3, n_alphas=2)
    found = fit(plan, transport(sites), keys)
    chances = found.selection_probabilities
    assert chances is not None
    weights = sites["west"].rows.problems(sites["west"].local.data)
    for pair in range(2):
        np.testing.assert_array_equal(weights[f"half {2 * pair}"] + weights[f"half {2 * pair + 1}"], weights["all"])
    assert np.count_nonzero(weights["half 0"] != weights["half 2"])
    assert chances.sum() <= 3.0 + 1e-12
    assert set(np.argsort(-chances)[:3].tolist()) == {0, 1, 2}


def test_its_file(tmp_path: Path) -> None:
    plan, keys, sites = make(tmp_path, Tables(), cv=2)
    found = fit(plan, transport(sites), keys)
    found.save(tmp_path / "result.npz")
    read = FederatedFit.load(tmp_path / "result.npz")
    for name in ("alphas", "objectives", "dual_gaps", "n_selected", "converged"):
        np.testing.assert_array_equal(getattr(read, name), getattr(found, name))
    assert (read.columns, read.rounds, read.bytes_up, read.chosen) == (
        found.columns, found.rounds, found.bytes_up, found.chosen,
    )  # fmt: skip
    for k in range(len(found)):
        np.testing.assert_array_equal(read.row_norms(k), found.row_norms(k))
        assert read.question(k).digest() == found.question(k).digest()
    np.testing.assert_array_equal(
        sites["south"].model(tmp_path / "result.npz", 5).coef_, sites["south"].model(found, 5).coef_
    )
    # row norms are those of all sites' coefficients
    rows = np.vstack([site.model(found, -1).coef_ * site.model(found, -1).scale_ for site in sites.values()])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=0)[read.features(-1)], read.row_norms(-1), rtol=1e-6)
    assert repr(read) == "FederatedFit of 8 values, 3 tasks, 12 features"
    assert read.to_frame("features").shape[0] == found.n_selected.sum()


def test_a_stopped_fit_goes_on(tmp_path: Path) -> None:
    plan, keys, sites = make(tmp_path, Tables())
    class Stop(Exception):
        pass

    class Stopping(InProcess):
        left = 4

        def exchange(self, message: bytes) -> Any:
            if not self.left:
                raise Stop
            self.left -= 1
            return super().exchange(message)

    nodes = {name: site.node().reply for name, site in sites.items()}
    with pytest.raises(Stop):
        fit(plan, Stopping(nodes), keys, folder=tmp_path / "run")
    stopping = Stopping(nodes)
    stopping.left = 100
    resumed = fit(plan, stopping, keys, folder=tmp_path / "run")
    whole = fit(plan, transport(sites), keys)
    assert 100 - stopping.left == whole.rounds - 4
    resumed.save(tmp_path / "one.npz")
    whole.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("given", [{"ridge": 0.5}, pytest.param({"l1_ratio": 0.5}, marks=pytest.mark.slow),
                                   pytest.param({"loss": "logistic"}, marks=pytest.mark.slow)])  # fmt: skip
def test_a_fit_is_proved(tmp_path: Path, given: dict[str, Any]) -> None:
    tables = Tables(given.get("loss", "squared"))
    plan, keys, sites = make(tmp_path, tables, n_alphas=3, covariates=["age"], **given)
    with pytest.raises(FederatedError, match="nobody has asked"):
        part_of(sites["north"])
    result = fit(plan, transport(sites), keys)
    statement, halves = certify(result, plan, transport(sites), keys, range(3))
    assert not halves  # masked
    check_signatures(statement.to_bytes(), plan)
    assert verify.verify_statement(statement.to_bytes(), exact=True)
    room = 1e-9 * result.null_objective
    assert (statement.arrays["gap"] <= 1.5 * result.dual_gaps + room).all()
    assert np.abs(statement.arrays["objective"] - result.objectives).max() <= result.dual_gaps.max() + room
    for name in NAMES:
        part = part_of(sites[name])
        X, y = np.column_stack([tables.X[name], tables.age[name]]), tables.y[name]
        found = verify.verify_part(part.to_bytes(), [X], [y])
        assert found, found.words
    words = sum(published_half(part_of(sites[name])).arrays["c2"] for name in NAMES)
    np.testing.assert_array_equal(words, statement.arrays["c2"])
