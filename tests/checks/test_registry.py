"""Every member of the package passes its battery, and every public class of the package is in the registry."""

from __future__ import annotations

import inspect
import pkgutil
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator, MetaEstimatorMixin

import tasksieve as ts
from tasksieve.checks import check_estimator, check_loss, check_penalty, check_storage, registry
from tasksieve.design import Design, PackedColumns, as_storage
from tasksieve.losses import Loss
from tasksieve.losses.clipped import Clipped
from tasksieve.losses.mean_divergence import MeanDivergence
from tasksieve.path.problem import Problem
from tasksieve.penalties import RowPenalty, SparseGroup
from tasksieve.solvers import WorkingProblem, duality_gap

#: members whose battery takes seconds, and that tests of their own compare with other libraries: in the slow run
DEAR = ("cox", "ordinal", "negative_binomial", "tweedie", "log_cosh", "logistic")  # tests/losses
#: members that differ from another one by their parameters alone: in the slow run
VARIANTS = (
    "Huber, narrow",
    "quantile, one-sided",
    "expectile, one-sided",
    "negative binomial, small",
    "Tweedie, near gamma",
    "squared_hinge",
    "dirty, near L1,1",
    "sparse group, mostly entries",
    "groups, not side by side",
    "smoothed_hinge",
    "groups, rows inside",
    "sorted, SLOPE",
    "sorted, Bao's test",
)


def members(known):
    return [pytest.param(name, marks=pytest.mark.slow if name in (*DEAR, *VARIANTS) else ()) for name in known]


def test_variants_are_members():
    assert {*DEAR, *VARIANTS} <= {*registry.PENALTIES, *registry.LOSSES}


@pytest.mark.parametrize("name", members(registry.PENALTIES))
def test_penalties(name):
    check_penalty(registry.PENALTIES[name], draws=12)


def test_a_penalty_of_given_features():
    check_penalty(SparseGroup(np.array([0.0, 0.3, 1.0, 0.1])), n_features=4)


@pytest.mark.parametrize("draws", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", members(registry.LOSSES))
def test_losses(name, draws):
    check_loss(registry.LOSSES[name], draws=draws)


@pytest.mark.parametrize("name", registry.STORAGES)
def test_storages(name):
    make, values = registry.STORAGES[name]
    check_storage(make, values=values)


def slow_where_alpha_is_chosen(name):
    """The model inside is checked by itself; one cross-validation is enough for the quick run."""
    chosen = name.endswith("cross-validated") and name != "lasso, cross-validated"
    return pytest.param(name, marks=pytest.mark.slow) if chosen else name


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [slow_where_alpha_is_chosen(name) for name in registry.ESTIMATORS])
def test_estimators(name):
    check_estimator(registry.ESTIMATORS[name], quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.ESTIMATORS)
def test_estimators_on_every_storage(name):
    check_estimator(registry.ESTIMATORS[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_members_on_other_draws(seed):
    for penalty in registry.PENALTIES.values():
        check_penalty(penalty, seed=seed)
    for loss in registry.LOSSES.values():
        check_loss(loss, seed=seed)
    for make, values in registry.STORAGES.values():
        check_storage(make, values=values, seed=seed)


@pytest.mark.parametrize("name", registry.SOLVERS)
def test_solvers(name, rng):
    """Every solver closes the gap of a problem that it says it is for, and nothing found elsewhere beats its bound."""
    solver, loss, penalty = registry.SOLVERS[name]
    x = rng.standard_normal((40, 6))
    y = x[:, 0] - x[:, 3] + 0.5 * rng.standard_normal(40)
    design = Design(as_storage(x), np.array([0, 18, 40]), n_threads=1)
    labels = {"signs": np.sign(y), "counts": np.abs(np.round(y)), "positive": np.exp(y)}.get(loss.labels, y)
    problem = Problem(design, labels, loss=loss, penalty=penalty)
    at = problem.penalty.at(0.2 * problem.lambda_max())
    assert solver.needs.unmet(problem.loss, at) is None
    packed = PackedColumns(design)
    work = WorkingProblem(packed, packed.positions(np.arange(6)), at, problem.loss)
    made = solver(packed) if "packed" in inspect.signature(solver.__init__).parameters else solver()
    goal = 1e-7 * problem.loss.null.value
    found = made.solve(work, np.zeros((6, 2)), goal, 20_000)
    rows = found.rows
    evaluation = work.evaluate(rows)
    if found.dual is not None:
        evaluation = replace(evaluation, residual=found.dual)
    gap, _ = duality_gap(problem.loss, at, rows, evaluation, work.correlate(evaluation.residual))
    assert 0.0 <= gap <= 1.01 * goal
    value = evaluation.value + at.total(rows)
    for size in (1e-4, 1e-2, 1.0):
        other = rows + size * rng.standard_normal(rows.shape)
        assert work.evaluate(other).value + at.total(other) >= value - gap


# --- nothing is missing ---------------------------------------------------------------------------------------------


def classes_of(package: str) -> set[type]:
    """Classes that the modules of a package define and that do not begin with an underscore."""
    found = set()
    parent = import_module(package)
    for module in pkgutil.walk_packages(parent.__path__, package + "."):
        for name, thing in vars(import_module(module.name)).items():
            own = inspect.isclass(thing) and thing.__module__ == module.name
            if own and not name.startswith("_"):
                found.add(thing)
    return found


def test_every_penalty_is_checked():
    have = {type(penalty) for penalty in registry.PENALTIES.values()}
    need = {c for c in classes_of("tasksieve.penalties") if issubclass(c, RowPenalty)} - {RowPenalty}
    assert need == have


def test_every_loss_is_checked():
    have = {type(loss) for loss in registry.LOSSES.values()}
    # a mixture is checked by the models that have one
    bases = {Loss, ts.losses.RowLoss, Clipped, MeanDivergence, ts.losses.Mixed}
    need = {c for c in classes_of("tasksieve.losses") if issubclass(c, Loss)} - bases
    assert need == have


def test_every_storage_is_checked():
    x = np.zeros((2, 2))
    have = {type(make(x)) for make, _ in registry.STORAGES.values()}
    protocols = {"ColumnStorage", "Storage"}
    found = {c for c in classes_of("tasksieve.design.storage") if c.__name__.endswith("Storage")}
    assert {c for c in found if c.__name__ not in protocols} <= have
    assert any(issubclass(c, ts.Storage) for c in have)


def test_every_solver_is_checked():
    have = {solver for solver, _, _ in registry.SOLVERS.values()}
    public = {getattr(ts.solvers, name) for name in ts.solvers.__all__}
    assert {c for c in public if inspect.isclass(c) and hasattr(c, "needs")} == have


def test_every_estimator_is_checked():
    have = {type(estimator) for estimator in registry.ESTIMATORS.values()}
    public = {getattr(ts, name) for name in ts.__all__}
    need = {c for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator) and hasattr(c, "predict")}
    need = {c for c in need if not issubclass(c, MetaEstimatorMixin)}  # they are as the model that they hold
    assert need == have


# --- what the batteries say of those that are asked wrongly ---------------------------------------------------------


def test_skips_are_names_with_reasons():
    class Unknown(ts.MultiTaskLasso):
        _skip_checks = {"no such check": "none"}  # noqa: RUF012

    class Silent(ts.MultiTaskLasso):
        _skip_checks = {"gap": ""}  # noqa: RUF012

    with pytest.raises(ValueError, match="no such check"):
        check_estimator(Unknown(0.1))
    with pytest.raises(ValueError, match="must say why"):
        check_estimator(Silent(0.1))


def test_arguments_of_the_batteries():
    with pytest.raises(ValueError, match="labels must be one of"):
        check_loss(ts.losses.Squared, labels="letters")
    with pytest.raises(ValueError, match="values must be"):
        check_storage(as_storage, values="letters")
