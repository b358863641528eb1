"""Which solver follows a path, pinned: a change of a threshold is seen here, and so is what it changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import Case

import tasksieve as ts
from tasksieve.linear import row_folds
from tasksieve.path import policy
from tasksieve.path.gram_folds import fold_moments
from tasksieve.path.policy import Facts, Kind, choose_for_data, choose_for_problem
from tasksieve.path.walks import problem_facts

MB, GB = 1 << 20, 1 << 30


@pytest.fixture(autouse=True)
def roomy(monkeypatch):
    monkeypatch.setattr(policy, "free_memory", lambda: 16.0 * GB)


# rows, features, tasks, matrices, values, bytes -> kind
GIVEN = [
    (200, 10, 1, 1, 1, 16_000, "sums"),
    (200, 10, 1, 1, 100, 16_000, "sums"),
    (200, 101, 1, 1, 100, 161_600, "rows"),  # fewer than two rows a feature
    (5_000, 100, 1, 1, 1, 4_000_000, "rows"),  # a Gram matrix for one value
    (5_000, 100, 1, 1, 2, 4_000_000, "sums"),
    (1_300, 5, 65, 65, 1, 52_000, "rows"),  # sums of 65 matrices for one value
    (1_300, 5, 65, 65, 2, 52_000, "sums"),
    (10_000, 100, 1, 1, 100, 8_000_000, "rows"),  # neither small nor tall: later, on the problem
    (100_000, 50, 1, 1, 1, 40_000_000, "sums-in-blocks"),
    (100_000, 257, 1, 1, 1, 205_600_000, "rows"),  # many features for one value
    (100_000, 257, 1, 1, 100, 205_600_000, "sums-in-blocks"),
    (1_000_000, 3_000, 1, 1, 100, 24_000_000_000, "rows"),  # too much work
    (100_000, 3_001, 1, 1, 100, 2_400_800_000, "rows"),
    (100_000, 200, 200, 200, 100, 160_000_000, "rows"),  # 500 rows a task, 200 features
]


@pytest.mark.parametrize(("rows", "features", "tasks", "matrices", "values", "size", "kind"), GIVEN)
def test_for_data_as_they_are_given(rows, features, tasks, matrices, values, size, kind):
    facts = Facts(values, rows, features, tasks, matrices, n_bytes=size)
    assert choose_for_data(facts).kind == kind
    assert choose_for_data(replace(facts, by_sums=False)).kind == "rows"
    assert choose_for_data(replace(facts, dense=False)).kind == "rows"


def test_small_data_that_sums_are_not_taken_of_at_once():
    small = Facts(100, 200, 10, n_bytes=16_000)
    assert choose_for_data(replace(small, n_covariates=1)).kind == "rows"
    assert choose_for_data(replace(small, unlike=True)).kind == "rows"


def test_for_rows_in_blocks_what_is_moved_counts():
    facts = Facts(100, 10_000_000, 50, n_bytes=4 * GB, dense=False, location="blocks", n_blocks=(100,))
    assert choose_for_data(facts).kind == "sums-in-blocks"
    assert choose_for_data(replace(facts, n_blocks=(1,))).kind == "rows"
    assert choose_for_data(replace(facts, n_blocks=(100, 0))).kind == "rows"  # a matrix whose columns are cut
    assert choose_for_data(replace(facts, n_blocks=(1_000_000,))).kind == "rows"


# rows, features, tasks, matrices, values -> kind
SOLVED = [
    (100, 1_000, 5, 1, 100, "sums"),
    (100, 1_201, 5, 1, 100, "rows"),  # twelve times as wide as it is long
    (20, 256, 5, 1, 100, "sums"),  # few features always may
    (500, 3_001, 5, 5, 100, "rows"),
    (500, 1_000, 5, 5, 1, "rows"),  # matrices of tasks, for one value
    (39, 1_024, 1, 1, 1, "rows"),
    (400, 99, 1, 1, 1, "rows"),  # over before sums pay
    (400, 101, 1, 1, 1, "sums"),
    (2_000, 101, 1, 1, 1, "rows"),  # 20 million multiplications are the most for one value
    (200_000, 3_000, 1, 1, 100, "rows"),
]


@pytest.mark.parametrize(("rows", "features", "tasks", "matrices", "values", "kind"), SOLVED)
def test_for_a_problem_in_memory(rows, features, tasks, matrices, values, kind):
    facts = Facts(values, rows, features, tasks, matrices)
    assert choose_for_problem(facts).kind == kind
    for other in ({"by_sums": False}, {"dense": False}, {"location": "device"}):
        assert choose_for_problem(replace(facts, **other)).kind == "rows"


def test_a_deep_path_with_many_features_is_worth_more():
    """Working sets grow with the features in play, a Gram matrix does not."""
    deep = Facts(100, 10_000, 2_000, n_expected=501, depth=0.03)
    assert choose_for_problem(deep).kind == "sums"
    for shallow in ({"n_expected": 500}, {"depth": 0.04}, {"n_matrices": 5, "n_tasks": 5}, {"n_rows": 60_000}):
        assert choose_for_problem(replace(deep, **shallow)).kind == "rows"
    wide = replace(deep, n_values=5, n_rows=500, n_features=2_500, n_expected=2_500)
    assert choose_for_problem(wide).kind == "rows"
    assert choose_for_problem(replace(wide, n_rows=1_500, n_features=1_500)).kind == "sums"


def test_what_is_expected_of_a_path():
    """Of independent features about as many come into play as would at W = 0."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((400, 60)))
    problem = Case(X, np.array([0, 400]), X[:, :3].sum(axis=1) + rng.standard_normal(400)).problem()
    top = problem.lambda_max()
    unknown, deep, shallow = (problem_facts(problem, 10, least) for least in (None, 0.01 * top, 0.5 * top))
    assert (unknown.n_expected, unknown.depth) == (0, 1.0)
    assert (shallow.n_expected, shallow.depth) == (3, 0.5)
    assert 30 < deep.n_expected <= 60
    assert deep.depth == pytest.approx(0.01)


@pytest.mark.parametrize(("last", "kind"), [(0.5, "rows"), (0.02, "sums")])
def test_paths_and_folds_say_how_deep_they_go(last, kind, rng, monkeypatch):
    """The same data, with limits that only a deep path may pass: its folds then share Gram matrices, too."""
    X = rng.standard_normal((120, 30))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(120)
    for name, limit in (("WORK_AT_ONCE", 0.0), ("WORK_A_VALUE", 1e3), ("WORK_A_VALUE_IF_FULL", 1e5)):
        monkeypatch.setattr(policy, name, limit)
    shared = []
    monkeypatch.setattr(row_folds, "fold_moments", lambda *given: shared.append(fold_moments(*given)) or shared[-1])
    grid = ts.MultiTaskLasso().alpha_max(X, y) * np.geomspace(1.0, last, 20)
    path = ts.MultiTaskLasso().path(X, y, alphas=grid)
    fitted = ts.MultiTaskLassoCV(alphas=grid, cv=3).fit(X, y)
    assert path.choice.kind == fitted.choice_.kind == kind
    assert [found is not None for found in shared] == [kind == "sums"]
    assert np.all(path.dual_gaps <= 1e-6 * path.null_objective)


def test_on_a_device():
    facts = Facts(100, 800, 500_000, 20, 20, column_bytes=6_400, location="device", by_device=True)
    assert choose_for_problem(facts).kind == "device"
    assert choose_for_problem(replace(facts, column_bytes=policy.MOST_COLUMN_BYTES + 1)).kind == "rows"
    assert choose_for_problem(replace(facts, by_device=False)).kind == "rows"


def test_memory_is_looked_at(monkeypatch):
    facts = Facts(100, 3_000, 2_500)
    assert choose_for_problem(facts).kind == "sums"
    monkeypatch.setattr(policy, "free_memory", lambda: 400.0 * MB)
    assert "memory" in choose_for_problem(facts).reason
    assert choose_for_problem(facts).kind == "rows"
    assert not policy.memory_allows(facts)
    assert policy.memory_allows(Facts(100, 300, 250))  # little is always there


def test_halves_and_folds():
    assert policy.sums_pay_on_halves(Facts(10, 100, 400))
    assert not policy.sums_pay_on_halves(Facts(10, 100, 401))
    assert not policy.sums_pay_on_halves(Facts(10, 100, 398, n_covariates=5))
    assert policy.walks_share_readings(True, 11, 500_000, 20, 8 * GB)
    assert not policy.walks_share_readings(True, 11, 500_000, 20, GB)
    assert not policy.walks_share_readings(False, 11, 500_000, 20, 8 * GB)
    assert policy.walks_that_fit(500_000, 20, 0) == GB // (500_000 * 736)
    assert policy.table_is_tall(1_000_000, 10)
    assert not policy.table_is_tall(800_000, 10)


def test_the_environment_decides_where_it_can(monkeypatch):
    wide, narrow = Facts(100, 50, 1_000), Facts(100, 5_000, 100)
    assert [choose_for_problem(facts).kind for facts in (wide, narrow)] == ["rows", "sums"]
    monkeypatch.setenv(policy.VARIABLE, "rows")
    assert [choose_for_problem(facts).kind for facts in (wide, narrow)] == ["rows", "rows"]
    assert choose_for_data(Facts(100, 200, 10, n_bytes=16_000)).kind == "rows"
    monkeypatch.setenv(policy.VARIABLE, "sums")
    assert [choose_for_problem(facts).kind for facts in (wide, narrow)] == ["sums", "sums"]
    assert choose_for_problem(replace(wide, by_sums=False)).kind == "rows"
    assert policy.sums_pay_on_halves(wide)
    monkeypatch.setenv(policy.VARIABLE, "device")  # there is none: as without it
    assert [choose_for_problem(facts).kind for facts in (wide, narrow)] == ["rows", "sums"]
    there = replace(wide, by_sums=False, by_device=True, location="device", column_bytes=10**6)
    assert choose_for_problem(there).kind == "device"
    monkeypatch.setenv(policy.VARIABLE, "fast")
    with pytest.raises(ValueError, match="TASKSIEVE_PATH_SOLVER must be rows, sums or device; got 'fast'"):
        choose_for_problem(narrow)


@pytest.mark.parametrize("shape", [(300, 8), (60, 100)])
def test_models_tell_it_and_answer_the_same(rng, monkeypatch, capsys, shape):
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    found = {}
    for solver in ("", "rows", "sums"):
        monkeypatch.setenv(policy.VARIABLE, solver)
        model = ts.MultiTaskLasso(alpha=0.05, tol=1e-8).fit(X, Y)
        path = ts.MultiTaskLasso(verbose=2).path(X, Y, n_alphas=5)
        found[solver] = model
        if solver:
            assert model.choice_.kind == path.choice.kind == solver
        assert model.choice_.reason
        assert path.model(2).choice_ == path.choice
    said = capsys.readouterr().err
    assert "sums over rows" in said
    assert "working set" in said
    assert found[""].choice_.kind is (Kind.SUMS if shape[0] == 300 else Kind.ROWS)
    for model in found.values():
        np.testing.assert_allclose(model.coef_, found["rows"].coef_, atol=1e-4)
        assert model.objective_ - model.dual_gap_ <= found["rows"].objective_
