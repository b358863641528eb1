"""Whole paths: every gap recomputed from raw data and coefficients, for all solvers, rules, storages and options."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import Case, Judge, dense_coefficients, memory_map, predictions, random_case, random_weights
from scipy import sparse

import tasksieve as ts
import tasksieve.path.policy
import tasksieve.path.strategies
from tasksieve.design import as_storage
from tasksieve.path.engine import Engine
from tasksieve.path.sieve import Sieve
from tasksieve.path.solve import solve_path
from tasksieve.screening import DPC, Ball, PublishedDPC
from tasksieve.solvers import VariationalNewton
from tasksieve.solvers.newton_forms import FeatureForm, SampleForm

CASES = {
    "stacked": {},
    "shared": {"shared": True},
    "no intercept": {"fit_intercept": False},
    "weights": {"weighted": True},
    "shared, missing labels": {"shared": True, "weighted": True},
    "ridge": {"ridge_ratio": 0.5},
    "l1": {"l1": 1.0, "group": 0.0},
    "sparse group": {"l1": 0.4},
    "positive": {"positive": True},
    "positive sparse group and ridge": {"positive": True, "l1": 0.3, "ridge_ratio": 0.2, "weighted": True},
    "feature weights": {"features_weighted": True},
    "standardize": {"standardize": True},
    "unpenalised, standardize": {
        "standardize": True,
        "features_weighted": True,
        "unpenalised": np.array([3, 50]),
    },
    "one task": {"tasks": 1, "rows": 60},
    "one task, shared": {"tasks": 1, "rows": 60, "shared": True},
}


def build(rng, features=400, weighted=False, features_weighted=False, tasks=8, rows=20, **options) -> Case:
    """A medium problem: too many features for all to be in the working set."""
    case = random_case(rng, tasks=tasks, rows=rows, features=features, active=0.05, **options)
    if weighted:
        case = case.but(weights=random_weights(rng, case))
    if features_weighted:
        u = rng.uniform(0.5, 2.0, features)
        u[case.unpenalised] = 0.0
        case = case.but(feature_weights=u)
    return case


def grid(problem, count=30, ratio=0.05):
    return problem.lambda_max() * np.geomspace(1.0, ratio, count)


def verify(case: Case, solution, tol: float, judge: Judge | None = None, every: int = 1) -> None:
    """Every point of a path (or every so manyth) is as good as it says, by definitions alone."""
    judge = Judge(case) if judge is None else judge
    scale = solution.null_objective
    for point in solution.points[::every]:
        w = dense_coefficients(case, point)
        objective, gap = judge.objective_and_gap(point.lam, w, point.intercept)
        assert point.objective == pytest.approx(objective, abs=1e-11 * scale)
        if gap > point.dual_gap * (1 + 1e-6) + 1e-12 * scale:
            # The certificate has a better dual point than the residual: then by the optimum itself.
            tight = solve_path(case.problem(), [point.lam], tol=1e-13, screening=None).points[0]
            least = judge.gap(point.lam, dense_coefficients(case, tight), tight.intercept)
            assert least <= 1e-6 * scale
            assert point.objective - tight.objective <= point.dual_gap * (1 + 1e-6) + 1e-12 * scale
        if point.converged:
            assert point.dual_gap <= tol * scale
        if case.positive:
            assert (w[case.penalty_weights > 0] >= 0).all()
        assert len(point.features) == len(set(point.features.tolist()))
        assert point.rows.shape == (len(point.features), case.n_tasks)


def fits(case: Case, solution) -> np.ndarray:
    """Weighted fitted values of all points, (points, samples): unique even where W is not."""
    found = [predictions(case, dense_coefficients(case, p), p.intercept) for p in solution.points]
    return np.sqrt(case.s) * np.array(found).astype(float)


def assert_same_fits(case: Case, first, second, tol: float) -> None:
    """Two solutions with gaps below tol * scale: the strong convexity of the loss bounds their distance."""
    reach = 2.0 * np.sqrt(2.0 * tol * first.null_objective) + 1e-9 * np.sqrt(first.null_objective)
    distance = np.linalg.norm(fits(case, first) - fits(case, second), axis=1)
    assert np.all(distance <= reach)


# --- every gap is true -----------------------------------------------------------------------------------------------


#: with both losses in the slow run
SQUARED_ALONE = {"shared", "no intercept", "l1", "feature weights", "standardize", "one task", "one task, shared"}
GAPS = [
    pytest.param(loss, options, id=f"{loss}-{name}", marks=pytest.mark.slow if slow else ())
    for loss in ("squared", "logistic")
    for name, options in CASES.items()
    for slow in [loss == "logistic" and name in SQUARED_ALONE]
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("loss", "options"), GAPS)
def test_every_gap_is_true(rng, loss, options):
    case = build(rng, loss=loss, **options)
    problem = case.problem()
    solution = solve_path(problem, grid(problem, 20 if loss == "squared" else 12, 0.05), tol=1e-7)
    assert all(point.converged for point in solution.points)
    assert not solution.interrupted
    verify(case, solution, 1e-7)


def solvers_for(case: Case) -> list[str]:
    if case.loss == "logistic":
        return ["auto", "prox-newton", "apgd"]
    plain = not case.l1 and not case.positive
    return ["auto", "cd", "apgd", *(["newton"] if plain else [])]


@pytest.mark.parametrize(
    "options",
    [
        {"shared": True},
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in ({}, {"loss": "logistic"}, {"ridge_ratio": 0.5}, {"l1": 0.4})
        ),
    ],
)
def test_every_solver_and_rule(rng, options):
    case = build(rng, features=300, tasks=4, **options)
    judge, problem = Judge(case), case.problem()
    lams = grid(problem, 3, 0.1)
    plain = case.loss == "squared" and not case.l1 and not case.ridge_ratio
    rules = (
        [None, "auto", "gap"]
        + (["dpc"] if case.loss == "squared" else [])
        + (["dpc-published"] if plain else [])
    )
    first = None
    for solver in solvers_for(case):
        for rule in rules:
            solution = solve_path(case.problem(), lams, tol=1e-7, solver=solver, screening=rule)
            assert all(point.converged for point in solution.points), (solver, rule)
            verify(case, solution, 1e-7, judge)
            first = solution if first is None else first
            if case.loss == "squared":
                assert_same_fits(case, first, solution, 1e-7)
            if rule is None:
                assert not any(p.n_rejected or p.n_rejected_dynamic for p in solution.points)


@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
def test_every_storage_gives_the_same_path(rng, tmp_path, shared):
    case = random_case(rng, tasks=6, rows=20, features=350, active=0.05, kind="integers", shared=shared)
    x = case.matrix
    shuffled = rng.permutation(len(x))
    order = np.argsort(shuffled)
    storages = {
        "float64": as_storage(np.asfortranarray(x)),
        "float32": as_storage(x.astype(np.float32)),
        "int8": as_storage(x.astype(np.int8)),
        "sparse": as_storage(sparse.csr_array(x)),
        "F memory map": as_storage(memory_map(tmp_path, x.astype(np.float32), "f", "F")),
        "C memory map": as_storage(memory_map(tmp_path, x.astype(np.float32), "c", "C")),
        "unsorted memory map": as_storage(memory_map(tmp_path, x[shuffled], "u", "C"), row_order=order),
        "blocks": as_storage([x[:31], x[31:]] if not shared else [x[:7], x[7:]]),
    }
    judge, first = Judge(case), None
    for storage in storages.values():
        problem = case.problem(storage)
        solution = solve_path(problem, grid(problem, 12), tol=1e-9)
        verify(case, solution, 1e-9, judge, every=1 if first is None else 4)
        first = solution if first is None else first
        assert_same_fits(case, first, solution, 1e-9)
        assert [len(p.features) for p in solution.points] == [len(p.features) for p in first.points]


def test_degenerate_columns_in_a_large_problem(rng):
    """Zero, constant, duplicate and huge-mean columns among hundreds, with working sets and screening at work."""
    for options in ({}, {"standardize": True}, {"loss": "logistic", "weighted": True}):
        case = build(rng, **options)
        case.matrix[:, 0:4] = 0.0
        case.matrix[:, 4:8] = 7.0
        case.matrix[:, 8:12] = case.matrix[:, 12:16]
        case.matrix[case.rows[2], 20] = 0.0
        case.matrix[:, 30] += 1e4
        problem = case.problem()
        solution = solve_path(problem, grid(problem, 10), tol=1e-7)
        assert all(point.converged for point in solution.points)
        verify(case, solution, 1e-7)
        assert not np.isin(solution.points[-1].features, np.arange(8)).any()


# --- tolerances and limits -------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options", [{}, {"shared": True}, {"l1": 0.4}, {"ridge_ratio": 0.4}, {"loss": "logistic"}]
)
def test_a_tolerance_of_1e_12_is_reached(rng, options):
    case = build(rng, tasks=4, **options)
    problem = case.problem()
    tol = 1e-11 if "l1" in options else 1e-12  # gauges with an l1 part are found by iteration, to 1e-12
    solution = solve_path(problem, grid(problem, 8, 0.1), tol=tol)
    assert all(point.converged for point in solution.points)
    verify(case, solution, tol)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("solver", ["cd", "newton", "apgd", "auto"])
@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_too_few_iterations_still_give_a_true_gap(rng, solver, allowed):
    case = build(rng)
    problem = case.problem()
    solution = solve_path(problem, grid(problem, 6, 0.05), tol=1e-12, max_iter=allowed, solver=solver)
    assert len(solution.points) == 6
    assert not solution.points[-1].converged
    assert all(point.n_iter <= max(allowed, 1) for point in solution.points)
    verify(case, solution, 1e-12)


@pytest.mark.parametrize("allowed", [0, 2])
def test_too_few_iterations_logistic(rng, allowed):
    case = build(rng, loss="logistic", tasks=4)
    problem = case.problem()
    for solver in ("prox-newton", "apgd"):
        solution = solve_path(problem, grid(problem, 4, 0.1), tol=1e-12, max_iter=allowed, solver=solver)
        assert not solution.points[-1].converged
        verify(case, solution, 1e-12)


def test_quadratic_tolerance(rng):
    case = build(rng)
    problem = case.problem()
    lams = grid(problem, 10, 0.05)
    solution = solve_path(problem, lams, tol=1e-6, tol_scaling="quadratic")
    for point in solution.points:
        assert point.dual_gap <= max(1e-6 * (point.lam / lams[0]) ** 2, 1e-15) * solution.null_objective * (
            1 + 1e-9
        )
    verify(case, solution, 1e-6)


# --- special strengths and labels ------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("features", [40, 400])
def test_at_and_above_the_largest_strength(rng, features, loss):
    case = build(rng, features=features, loss=loss, unpenalised=np.array([3]))
    problem = case.problem()
    lam_max = problem.lambda_max()
    factors = np.array([1e6, 2.0, 1.0, 1.0 - 1e-9, 0.999, 0.9])
    solution = solve_path(problem, lam_max * factors, tol=1e-10)
    for point in solution.points[:3]:
        assert point.features.tolist() == [3]  # the unpenalised one alone
        assert point.objective == pytest.approx(solution.null_objective)
        assert point.dual_gap <= 1e-12 * solution.null_objective
        assert point.converged
    assert len(solution.points[-1].features) > 1
    verify(case, solution, 1e-10)
    # from the definitions: at lam_max every gauge is at most 1, and one reaches it
    gauges = Judge(case).gauges(
        lam_max, dense_coefficients(case, solution.points[2]), solution.points[2].intercept
    )
    assert gauges.max() == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("value", [0.0, 3.7, 1e8])
@pytest.mark.parametrize("features", [40, 400])
def test_labels_without_variation(rng, features, value):
    case = build(rng, features=features, tasks=3)
    case = case.but(y=np.full_like(case.y, value))
    for lams in ([1.0], [2.0, 1.0, 0.1]):
        solution = solve_path(case.problem(), lams, tol=1e-6)
        for point in solution.points:
            assert point.converged
            assert np.isfinite(point.dual_gap)
            np.testing.assert_allclose(point.intercept, value, rtol=1e-12)
            assert len(point.features) == 0


def test_no_labels_at_all_in_one_task(rng):
    for loss in ("squared", "logistic"):
        case = build(rng, loss=loss)
        case = case.but(weights=random_weights(rng, case, task_missing=True))
        problem = case.problem()
        solution = solve_path(problem, grid(problem, 8, 0.1), tol=1e-7)
        assert all(point.converged for point in solution.points)
        assert not any(point.rows[:, -1].any() for point in solution.points)
        assert all(np.isfinite(point.intercept).all() for point in solution.points)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options", [{}, {"shared": True}, {"loss": "logistic"}, {"l1": 0.5}, {"tasks": 1, "rows": 50}]
)
def test_a_single_small_strength_from_nothing(rng, options):
    case = build(rng, **options)
    problem = case.problem()
    lam = 0.01 * problem.lambda_max()
    solution = solve_path(problem, [lam], tol=1e-6)
    assert solution.points[0].converged
    verify(case, solution, 1e-6)


def test_strengths_in_any_order(rng):
    """Decreasing is what is fast; repeated or rising values are still right."""
    case = build(rng)
    problem = case.problem()
    lams = problem.lambda_max() * np.array([0.5, 0.5, 0.2, 0.6, 1.5, 0.3, 0.3])
    solution = solve_path(problem, lams, tol=1e-8)
    assert all(point.converged for point in solution.points)
    verify(case, solution, 1e-8)
    assert solution.points[0].objective == pytest.approx(solution.points[1].objective, rel=1e-8)
    assert len(solution.points[4].features) == 0


def test_no_strengths_and_no_features(rng):
    case = build(rng, features=10)
    assert solve_path(case.problem(), []).points == []
    empty = case.but(matrix=case.matrix[:, :0])
    problem = empty.problem()
    assert problem.lambda_max() == 0.0
    solution = solve_path(problem, [1.0, 0.5])
    assert [len(p.features) for p in solution.points] == [0, 0]
    assert all(p.converged for p in solution.points)


def test_only_unpenalised_features(rng):
    case = build(rng, features=4, unpenalised=np.arange(4), tasks=3)
    solution = solve_path(case.problem(), [1.0, 0.1], tol=1e-10)
    for point in solution.points:
        assert point.features.tolist() == [0, 1, 2, 3]
        for t, rows in enumerate(case.rows):
            z = np.column_stack([np.ones(rows.stop - rows.start), case.blocks[t]])
            best = np.linalg.lstsq(z, case.y[rows], rcond=None)[0]
            np.testing.assert_allclose(point.intercept[t], best[0], atol=1e-9)
            np.testing.assert_allclose(point.rows[:, t], best[1:], atol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_the_units_of_the_data_do_not_matter(rng, scale):
    """Products of the data may lie far outside single precision, in which past passes are kept."""
    case = build(rng)
    solutions = []
    for factor in (1.0, scale):
        scaled = case.but(matrix=factor * case.matrix, y=factor * case.y)
        problem = scaled.problem()
        solution = solve_path(problem, grid(problem, 8), tol=1e-7)
        assert all(point.converged for point in solution.points)
        verify(scaled, solution, 1e-7)
        solutions.append(solution)
    for first, second in zip(*[s.points for s in solutions], strict=True):
        assert second.objective == pytest.approx(first.objective * scale**2, rel=1e-6)


# --- starts, interruptions, progress ---------------------------------------------------------------------------------


def test_a_warm_start_saves_the_work(rng):
    for options in ({}, {"standardize": True}, {"loss": "logistic"}, {"l1": 0.4}):
        case = build(rng, **options)
        problem = case.problem()
        lam = 0.1 * problem.lambda_max()
        cold = solve_path(problem, [lam], tol=1e-8).points[0]
        rows = cold.rows * Judge(case).scales[cold.features]  # a start is in units of the scaled columns
        warm = solve_path(problem, [lam], tol=1e-8, start=(cold.features, rows)).points[0]
        assert warm.converged
        assert warm.n_iter <= 2
        assert warm.objective == pytest.approx(cold.objective, rel=1e-7)


def test_any_start_is_allowed(rng):
    case = build(rng)
    problem = case.problem()
    lams = grid(problem, 4, 0.1)[1:]
    features = rng.permutation(400)[:30]  # in no order
    start = (features, 100.0 * rng.standard_normal((30, case.n_tasks)))
    for solver in ("cd", "newton", "apgd"):
        solution = solve_path(problem, lams, tol=1e-8, solver=solver, start=start)
        assert all(point.converged for point in solution.points)
        verify(case, solution, 1e-8)


@pytest.mark.parametrize("when", [0, 4, 9])
def test_an_interruption_keeps_what_is_finished(rng, when):
    case = build(rng)
    problem = case.problem()
    lams = grid(problem, 10)
    seen = []

    def progress(k, count, point):
        seen.append((k, count, point.lam))
        if k == when:
            raise KeyboardInterrupt

    solution = solve_path(problem, lams, tol=1e-7, progress=progress)
    assert solution.interrupted
    assert len(solution.points) == when + 1
    assert seen == [(k, 10, lams[k]) for k in range(when + 1)]
    assert solution.passes > 0
    verify(case, solution, 1e-7)


def test_an_interruption_within_a_value_drops_that_value(rng, monkeypatch):
    case = build(rng)
    problem = case.problem()
    lams = grid(problem, 8)
    original = Engine._certify

    def certify(self, step, *args):
        if step.lam < lams[5]:
            raise KeyboardInterrupt
        return original(self, step, *args)

    monkeypatch.setattr(Engine, "_certify", certify)
    solution = solve_path(problem, lams, tol=1e-7)
    assert solution.interrupted
    assert len(solution.points) == 6
    verify(case, solution, 1e-7)


def test_other_exceptions_pass_through(rng):
    case = build(rng)

    def progress(k, count, point):
        raise RuntimeError("from outside")

    with pytest.raises(RuntimeError, match="from outside"):
        solve_path(case.problem(), [1.0], progress=progress)


# --- repeatability, passes -------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{}, {"shared": True}, {"loss": "logistic"}, {"l1": 0.4}])
@pytest.mark.parametrize("threads", [1, 2])
def test_runs_are_repeatable_to_the_last_bit(rng, options, threads):
    case = build(rng, features=600, **options)
    results = []
    for _ in range(2):
        problem = case.problem(n_threads=threads)
        results.append(solve_path(problem, grid(problem, 8), tol=1e-7))
    for first, second in zip(*[r.points for r in results], strict=True):
        np.testing.assert_array_equal(first.features, second.features)
        assert first.rows.tobytes() == second.rows.tobytes()
        assert first.intercept.tobytes() == second.intercept.tobytes()
        assert (first.objective, first.dual_gap, first.n_iter) == (
            second.objective,
            second.dual_gap,
            second.n_iter,
        )
    assert results[0].passes == results[1].passes


def test_a_long_path_needs_few_passes(rng):
    """One hundred certified values with less than a third of one hundred passes over the data."""
    case = build(rng, features=3000, tasks=10, rows=30, fit_intercept=False)
    problem = case.problem()
    solution = solve_path(problem, grid(problem, 100, 0.01), tol=1e-6)
    assert all(point.converged for point in solution.points)
    assert 2.0 <= solution.passes <= 33.0
    verify(case, solution, 1e-6, every=11)


def test_one_combination_of_anchors_for_all_tasks(rng, monkeypatch):
    """Bounds from inner products, as large problems have them: every gap is true, and rejected rows are zero."""
    case = build(rng, features=600, tasks=6, rows=20)
    usual = case.problem()
    strengths = grid(usual, 40, 0.02)
    expected = solve_path(usual, strengths, tol=1e-7)
    monkeypatch.setattr(tasksieve.path.policy, "JOINT_BOUNDS", 0)
    problem = case.problem()
    solution = solve_path(problem, strengths, tol=1e-7)
    assert problem.design.shard._anchors()._inner
    assert all(point.converged for point in solution.points)
    assert solution.passes <= 1.5 * expected.passes
    verify(case, solution, 1e-7)
    assert_same_fits(case, expected, solution, 1e-7)


def test_many_columns_come_and_go(rng, monkeypatch):
    """A cache of packed columns that forgets, and working sets that outgrow their first size."""
    case = build(rng, features=1200, tasks=3, rows=40)
    problem = case.problem()
    expected = solve_path(problem, grid(problem, 10, 0.02), tol=1e-9)
    original = tasksieve.path.strategies.PackedColumns.positions
    forgotten = []

    def positions(self, features):
        if len(self.features) > len(features):
            forgotten.append(len(self.features) - len(features))
            self._keep(features[self._position[features] >= 0])
        return original(self, features)

    monkeypatch.setattr(tasksieve.path.strategies.PackedColumns, "positions", positions)
    solution = solve_path(case.problem(), grid(problem, 10, 0.02)[[0, 5, 9, 2, 4, 9]], tol=1e-9)
    assert forgotten
    assert all(point.converged for point in solution.points)
    verify(case, solution, 1e-9)
    assert solution.points[2].objective == pytest.approx(expected.points[9].objective, rel=1e-8)


# --- screening -------------------------------------------------------------------------------------------------------


def spy_on_masks(monkeypatch):
    """Records (strength, rows rejected before or during the solve) of every value."""
    masks = []
    screen, screen_now = Sieve.before, Sieve.during

    def before(self, last, lam, *asked):
        count = screen(self, last, lam, *asked)
        masks.append((lam, self._ledger.rejected.copy()))
        return count

    def during(self, iterate, *asked):
        count = screen_now(self, iterate, *asked)
        masks.append((iterate.lam, self._ledger.rejected.copy()))
        return count

    monkeypatch.setattr(Sieve, "before", before)
    monkeypatch.setattr(Sieve, "during", during)
    return masks


SCREENED = {
    **CASES,
    "logistic": {"loss": "logistic"},
    "logistic, ridge": {"loss": "logistic", "ridge_ratio": 0.5, "weighted": True},
    "logistic, shared, l1": {"loss": "logistic", "shared": True, "l1": 0.4},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", SCREENED.values(), ids=SCREENED)
def test_no_safe_rule_rejects_an_active_row(rng, monkeypatch, options):
    """Every mask of every value against a solution without screening, solved far more accurately."""
    monkeypatch.setenv("TASKSIEVE_PATH_SOLVER", "rows")  # the engine screens
    case = build(rng, features=300, **options)
    lams = grid(case.problem(), 20, 0.3)
    exact = {
        point.lam: dense_coefficients(case, point).any(axis=1)
        for point in solve_path(case.problem(), lams, tol=1e-13, screening=None).points
    }
    masks = spy_on_masks(monkeypatch)
    for rule in ("auto", "gap"):
        for tol in (1e-2, 1e-4, 1e-8):  # sloppy solutions must not make it unsafe
            masks.clear()
            solution = solve_path(case.problem(), lams, tol=tol, screening=rule)
            assert not any(np.any(mask & exact[lam]) for lam, mask in masks)
            if rule == "auto" or tol < 1e-3:  # and yet they reject
                assert any(mask.any() for lam, mask in masks if lam < lams[0])
            first = dict(reversed(masks))
            for point in solution.points:
                assert point.lam not in first or point.n_rejected == np.count_nonzero(first[point.lam])


def test_counters_of_rules(rng):
    case = build(rng)
    problem = case.problem()
    lams = grid(problem, 10)
    rule = DPC()
    solution = solve_path(problem, lams, tol=1e-8, screening=rule)
    assert solution.points[0].n_rejected == case.n_features  # at the largest strength nothing is left
    assert rule.sequential_counts == [point.n_rejected for point in solution.points[1:]]
    assert sum(rule.dynamic_counts) >= sum(point.n_rejected_dynamic for point in solution.points)
    for point in solution.points:
        assert point.n_rejected + point.n_rejected_dynamic + len(point.features) <= case.n_features
    assert solution.wrong_rejections == 0


class TooBold(PublishedDPC):
    """Takes the last residual for the new dual optimum: rejects rows that matter."""

    def ball(self, state, lam):
        return Ball(0.0, residual_coef=0.8 * lam / state.lam)


def test_wrong_rejections_of_an_unsafe_rule_are_found_and_mended(rng):
    case = build(rng, fit_intercept=False)
    problem = case.problem()
    lams = grid(problem, 12, 0.1)
    solution = solve_path(problem, lams, tol=1e-8, screening=TooBold())
    assert all(point.converged for point in solution.points)
    verify(case, solution, 1e-8)
    assert 0 < solution.wrong_rejections <= sum(point.n_rejected for point in solution.points)
    assert sum(point.n_rejected_dynamic for point in solution.points) == 0
    published = solve_path(case.problem(), lams, tol=1e-8, screening="dpc-published")
    verify(case, published, 1e-8)
    assert sum(point.n_rejected for point in published.points[1:]) > 0


def test_a_pass_at_every_value_makes_screening_sharper(rng):
    case = build(rng, features=600)
    problem = case.problem()
    lams = grid(problem, 20, 0.2)
    lazy = solve_path(case.problem(), lams, tol=1e-8)
    eager = solve_path(case.problem(), lams, tol=1e-8, lazy=False)
    verify(case, eager, 1e-8)
    assert eager.passes > lazy.passes
    assert sum(p.n_rejected for p in eager.points) >= sum(p.n_rejected for p in lazy.points)


@pytest.mark.parametrize("options", [{"l1": 0.7, "group": 0.0}, {"l1": 0.4, "group": 0.6}])
def test_with_one_task_all_norms_are_the_same(rng, options):
    case = build(rng, tasks=1, rows=50)
    problem = case.problem()
    strength = options["l1"] + options["group"]
    lams = grid(problem, 6, 0.1)
    expected = solve_path(problem, lams, tol=1e-10)
    solution = solve_path(case.but(**options).problem(), lams / strength, tol=1e-10)
    for first, second in zip(expected.points, solution.points, strict=True):
        assert second.objective == pytest.approx(first.objective, rel=1e-9)
    verify(case.but(**options), solution, 1e-10)


def test_paths_in_several_threads(rng):
    """The kernels run without the interpreter's lock: paths beside each other are the same as one after the other."""
    cases = [build(np.random.default_rng(seed), features=500) for seed in range(4)]

    def run(case):
        problem = case.problem(n_threads=2)
        return solve_path(problem, grid(problem, 8), tol=1e-8)

    alone = [run(case) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, cases))
    for first, second in zip(alone, together, strict=True):
        for a, b in zip(first.points, second.points, strict=True):
            np.testing.assert_array_equal(a.features, b.features)
            np.testing.assert_array_equal(a.rows, b.rows)


@pytest.mark.slow
def test_without_working_sets(rng):
    """All rows that screening leaves, as in the papers: same answers, with every solver and with dynamic screening."""
    for options in ({}, {"l1": 0.4}, {"loss": "logistic", "ridge_ratio": 0.3}):
        case = build(rng, features=300, tasks=4, **options)
        problem = case.problem()
        lams = grid(problem, 8, 0.1)
        for solver in solvers_for(case):
            for rule in ("auto", None):
                solution = solve_path(
                    case.problem(), lams, tol=1e-7, solver=solver, screening=rule, working_set=False
                )
                assert all(point.converged for point in solution.points)
                verify(case, solution, 1e-7)


def test_dynamic_screening_of_the_gradient_method(rng):
    rule = DPC()
    case = build(rng, features=300, tasks=4)
    problem = case.problem()
    solution = solve_path(
        problem, grid(problem, 8, 0.2), tol=1e-8, solver="apgd", screening=rule, working_set=False
    )
    assert sum(rule.dynamic_counts) > 0
    verify(case, solution, 1e-8)


def test_rows_of_rounding_are_not_selected(rng):
    """Complementary columns, centred, are each other's negatives: one may carry the effect, none a speck of 1e-15."""
    for _ in range(30):
        flag = (rng.random(60) < 0.5).astype(float)
        X = np.column_stack([rng.standard_normal((60, 3)), flag, 1.0 - flag])
        Y = np.outer(X[:, 0] + flag, [2.0, -1.0, 0.5]) + 0.1 * rng.standard_normal((60, 3))
        path = ts.MultiTaskLasso().path(X, Y, n_alphas=10, eps=0.05)
        assert np.all(path.relative_gaps <= 1e-6)
        for k in range(10):
            sizes = np.sqrt(path.coef(k).power(2).sum(axis=0))
            assert not np.any((sizes > 0) & (sizes < 1e-14))


# --- the choice of solvers -------------------------------------------------------------------------------------------


def test_auto_moves_to_newton_where_that_is_cheaper(rng, monkeypatch):
    solved = []
    original = VariationalNewton.solve
    monkeypatch.setattr(
        VariationalNewton, "solve", lambda self, *args: solved.append(1) or original(self, *args)
    )
    for shared in (False, True):
        solved.clear()
        case = random_case(rng, tasks=20, rows=40, features=700, active=0.2, shared=shared, noise=0.05)
        problem = case.problem()
        solution = solve_path(problem, grid(problem, 8, 0.01), tol=1e-7)
        assert solved
        assert all(point.converged for point in solution.points)
        verify(case, solution, 1e-7)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "options", [{}, {"shared": True}, {"ridge_ratio": 0.3}, {"shared": True, "ridge_ratio": 0.3}]
)
@pytest.mark.parametrize("form", [SampleForm, FeatureForm])
@pytest.mark.parametrize("iterative", [False, True])
def test_newton_in_both_forms_with_direct_and_iterative_systems(rng, monkeypatch, iterative, form, options):
    work = 0.0 if iterative else np.inf
    for each in (SampleForm, FeatureForm):
        monkeypatch.setattr(each, "fits", lambda self, count, each=each: each is form)
    monkeypatch.setattr(form, "iterative_work", lambda self, count: work)
    case = random_case(rng, tasks=5, rows=25, features=300, active=0.2, **options)
    problem = case.problem()
    solution = solve_path(problem, grid(problem, 8, 0.01), tol=1e-9, solver="newton")
    assert all(point.converged for point in solution.points)
    verify(case, solution, 1e-9)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shared", [False, True], ids=["stacked", "shared"])
@pytest.mark.parametrize(("tasks", "rows"), [(1, 10), (2, 4), (5, 6)])
def test_newton_where_columns_are_nearly_dependent(rng, tasks, rows, shared):
    """Far more columns than rows, and all nearly parallel: the Newton system is singular to single precision."""
    case = random_case(rng, tasks=tasks, rows=rows, features=400, active=0.1, noise=0.01, shared=shared)
    case.matrix[:, 1:] = case.matrix[:, :1] + 0.03 * case.matrix[:, 1:]
    for options in ({}, {"ridge_ratio": 1e-3}):
        hard = case.but(**options)
        problem = hard.problem()
        for solver in ("newton", "auto"):
            for lams in (grid(problem, 6, 0.01), [0.01 * problem.lambda_max()]):
                solution = solve_path(hard.problem(), lams, tol=1e-8, solver=solver, max_iter=2000)
                assert all(point.converged for point in solution.points), (solver, options)
                verify(hard, solution, 1e-8)


def test_wrong_arguments_are_refused(rng):
    case = build(rng, features=10)
    logistic = build(rng, features=10, loss="logistic")
    for wrong, options, message in (
        (case, {"solver": "simplex"}, "solver must be one of"),
        (case, {"tol_scaling": "cubic"}, "tol_scaling"),
        (case, {"screening": "magic"}, "screening must be one of"),
        (logistic, {"solver": "cd"}, "squared loss"),
        (logistic, {"solver": "newton"}, "squared loss"),
        (case, {"solver": "prox-newton"}, "prox-newton"),
        (case.but(l1=0.3), {"solver": "newton"}, "group penalty"),
        (case.but(positive=True), {"solver": "newton"}, "group penalty"),
        (logistic, {"screening": "dpc"}, "squared, Huber, quantile and hinge losses only"),
        (case.but(l1=0.3), {"screening": "dpc-published"}, "plain group penalty"),
    ):
        with pytest.raises(ValueError, match=message):
            solve_path(wrong.problem(), [1.0, 0.5], **options)
    with pytest.raises(ValueError, match="loss must be one of"):
        case.but(loss="absolute").problem()
    for options in (
        {"feature_weights": np.arange(10.0)},
        {"group": 0.0},
        {"group": 0.0, "l1": np.arange(10.0)},
    ):
        with pytest.raises(ValueError, match="feature 0 is not penalised"):
            case.but(**options).problem()
