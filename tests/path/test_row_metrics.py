"""Balls with a row metric hold the dual optimum, their rejections are right, and there are more of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import Design, Region, as_storage, one_blas_thread
from tasksieve.outcomes import SURVIVAL
from tasksieve.path import policy
from tasksieve.path.pair import Point, point_gap
from tasksieve.path.problem import Problem
from tasksieve.path.walks import PathWalk

Array = np.ndarray[Any, Any]


def poisson_problem(rng: np.random.Generator, tasks: int, rows: int, count: int, uneven: float = 1.0) -> Problem:
    return random_problem("poisson", rng, tasks, rows, count, uneven)


def random_problem(
    kind: str, rng: np.random.Generator, tasks: int, rows: int, count: int, uneven: float = 1.0
) -> Problem:
    """With uneven offsets; some problems have weights, a few of them 0, some an unpenalised column."""
    n = tasks * rows
    x = np.asfortranarray(rng.standard_normal((n, count)) * rng.choice([0.2, 1.0, 3.0], count))
    offset = uneven * rng.standard_normal(n)
    task = np.repeat(np.arange(tasks), rows)
    effects = 0.4 * rng.standard_normal((tasks, count)) * (np.arange(count) % 11 == 0)
    z = np.clip(0.5 + offset + np.einsum("ij,ij->i", x, effects[task]), -20.0, 6.0)
    weights = None
    if rng.random() < 0.3:
        weights = rng.uniform(0.2, 3.0, n) * (rng.random(n) > 0.1)
    free = np.array([1]) if rng.random() < 0.3 else np.empty(0, dtype=np.int64)
    if kind == "mixed":
        loss, y = mixed(rng, z.reshape(tasks, rows))
    else:
        loss, y = labelled(kind, rng, z)
    design = Design(as_storage(x), np.arange(tasks + 1) * rows, weights=weights, unpenalised=free, n_threads=1)
    return Problem(design, y, offset=offset, loss=loss, unit=float(rows))


def labelled(kind: str, rng: np.random.Generator, z: Array) -> tuple[ts.losses.Loss, Array]:
    """A loss, and labels at given scores."""
    if kind == "poisson":
        return ts.losses.Poisson(), rng.poisson(np.exp(z)).astype(float)
    if kind == "gamma":
        return ts.losses.Gamma(), np.exp(z) * rng.gamma(2.0, 0.5, len(z)) + 1e-6
    if kind == "tweedie":
        return ts.losses.Tweedie(), np.exp(z) * rng.gamma(2.0, 0.5, len(z)) * (rng.random(len(z)) < 0.7)
    if kind == "negative binomial":
        return ts.losses.NegativeBinomial(2.0), rng.poisson(rng.gamma(2.0, np.exp(z) / 2.0)).astype(float)
    if kind == "ordinal":
        classes = np.digitize(z + rng.logistic(size=len(z)), [-0.5, 1.0]).astype(float)
        classes[:3] = [0.0, 1.0, 2.0]
        return ts.losses.Ordinal(), classes
    if kind == "logistic":
        return ts.losses.Logistic(), np.where(z + rng.logistic(size=len(z)) > 0.5, 1.0, -1.0)
    y = np.zeros(len(z), dtype=SURVIVAL)
    time = np.round(rng.exponential(size=len(z)) / np.exp(z), 3) + 1e-3
    censored = rng.exponential(size=len(z)) * 3.0 * np.median(time)
    y["time"], y["event"] = np.minimum(time, censored), time <= censored
    y["entry"], y["stratum"] = -np.inf, rng.integers(0, 2, len(z))
    return ts.losses.Cox(), y


def mixed(rng: np.random.Generator, z: Array) -> tuple[ts.losses.Loss, Array]:
    """A loss for each task, Cox's for the first; the labels of the others are times of its records."""
    kinds = ["cox", *rng.choice(["ordinal", "poisson", "gamma", "logistic"], len(z) - 1)]
    parts = [labelled(kind, rng, own) for kind, own in zip(kinds, z, strict=True)]
    y = np.zeros(z.size, dtype=SURVIVAL)
    y["time"], y["entry"] = np.concatenate([own["time"] if own.dtype.names else own for _, own in parts]), -np.inf
    y[: z.shape[1]] = parts[0][1]
    return ts.losses.Mixed([loss for loss, _ in parts], rng.uniform(0.3, 3.0, len(z)).tolist()), y


def solved(problem: Problem, lam: float, tol: float = 1e-12, **options: Any) -> Any:
    walk = PathWalk(problem, 1, screening=None, **options)
    return walk.values([lam], [tol * problem.loss.null.value])[0]


def at_rows(problem: Problem, lam: float, features: Array, rows: Array) -> tuple[Any, float, float, Array]:
    """The loss at some rows, the gap over all features, the scale of the dual point, and correlations."""
    design, penalty = problem.design, problem.penalty.at(lam)
    image = np.zeros(design.n_samples)
    for j, row in zip(features, rows, strict=True):
        image += packed(design, j) * design.per_sample(row)
    at = problem.loss.settled(problem.loss.evaluate(image))
    products = design.correlate(at.residual)
    products[design.unpenalised] = 0.0
    point, gauges = Point(features, rows, at, products[features]), penalty.row_gauges(products)
    gap, scale = point_gap(problem.loss, penalty, point, gauges)
    return at, gap, scale, products


def packed(design: Design, j: int) -> Array:
    return np.asarray(design.take(np.array([j])).columns[:, 0])


def points(problem: Problem, best: Any, lam: float, rng: np.random.Generator) -> Any:
    """Points near and far from the optimum: its rows shrunk, disturbed, or of another strength."""
    penalised = np.setdiff1d(best.features, problem.design.unpenalised)
    rows = best.rows[: len(penalised)]
    yield penalised[:0], rows[:0]
    for size in (0.3, 0.03, 1e-3):
        yield penalised, rows * (1.0 + size * rng.standard_normal(rows.shape))


def norms_under(design: Design, metric: Array) -> Array:
    """``min_b sum_i k_i s_i (x_ij - (Z b)_i)^2``, from the columns of X~, which differ from raw ones by some b."""
    columns = design.take(np.arange(design.n_features)).columns
    found = np.empty((design.n_features, design.n_tasks))
    for t in range(design.n_tasks):
        rows = slice(design.offsets[t], design.offsets[t + 1])
        root = np.sqrt(metric[rows])[:, None]
        z = np.array([design.root_weights[rows] * c[rows] if design.root_weights is not None else c[rows]
                      for c in design.nuisance_columns]).T  # fmt: skip
        x = root * columns[rows]
        if z.size:
            b = np.linalg.lstsq(root * z, x, rcond=1e-12)[0]
            x = x - root * z @ b
        found[:, t] = np.linalg.norm(x, axis=0)
    return found


def decisions(seed: int, kind: str, metric: Any = None, count: int = 40) -> tuple[int, int, int, float]:
    """Of one problem at all of its points: decisions, rejections, wrong ones, and how far the dual optimum was from a
    ball's centre at most, in radii. `metric` may replace the loss's own."""
    rng = np.random.default_rng(seed)
    tasks, rows = int(rng.integers(1, 4)), int(rng.integers(12, 40))
    problem = random_problem(kind, rng, tasks, rows, count, rng.uniform(0.0, 2.0))
    loss, design = problem.loss, problem.design
    if metric is not None:
        loss.metric = lambda at, scale, gap: metric(loss, at, scale, gap)  # type: ignore[method-assign]
    lam = problem.lambda_max() * rng.uniform(0.1, 0.9)
    penalty = problem.penalty.at(lam)
    with one_blas_thread():
        best = solved(problem, lam)
        penalised = np.setdiff1d(best.features, design.unpenalised)
        exact, least, _, _ = at_rows(problem, lam, penalised, best.rows[: len(penalised)])
        n = rejected = wrong = 0
        farthest = 0.0
        for features, rows in points(problem, best, lam, rng):
            at, gap, scale, _ = at_rows(problem, lam, features, rows)
            ball = loss.ball(at, scale, gap)
            assert ball is not None
            assert ball.metric is not None
            live = ball.metric > 0.0
            apart = np.square(exact.residual - ball.vector)
            # the optimum is known up to a gap of its own
            room = ball.radius + 2.0 * np.sqrt(2.0 * max(least, 1e-14 * loss.null.value))
            farthest = max(farthest, float(np.sqrt(np.sum(apart[live] / ball.metric[live]))) / room)
            centre = design.correlate(ball.vector)
            upper = penalty.row_reach(centre, 1e-9, norms_under(design, ball.metric), ball.radius)
            # the same from norms that were measured under the metric of another point
            problem.metric.before_reading(loss.metric(exact, 1.0, loss.floored_gap(1e-3 * loss.null.value)))
            problem.anchors.remember(ball.vector, problem.penalty)
            cover = problem.metric.cover(ball.metric)
            kept = problem.anchors.express(ball.vector).loosened(problem.metric.drift(ball.vector))
            stored = design.shard.bound(kept, penalty, Region(ball.radius, ball.stretch, cover))[1]
            wide = design.shard.bound(kept, penalty, Region(ball.radius, ball.stretch))[1]
            assert metric is not None or not np.any(penalty.inactive(stored) & ~penalty.inactive(upper))
            if cover is not None:
                assert np.all(stored <= wide * (1.0 + 1e-5) + 1e-5)
            for bound in (upper, stored):
                gone = penalty.inactive(bound) & penalty.penalised
                n, rejected = n + int(penalty.penalised.sum()), rejected + int(gone.sum())
                wrong += int(gone[penalised].sum())
    return n, rejected, wrong, farthest


def judged(seeds: range, kind: str, metric: Any = None, count: int = 40) -> tuple[int, int, int, float]:
    found = [decisions(seed, kind, metric, count) for seed in seeds]
    n, rejected, wrong = (sum(part[k] for part in found) for k in range(3))
    return n, rejected, wrong, max(part[3] for part in found)


KINDS = ("poisson", "gamma", "tweedie", "negative binomial", "cox", "ordinal", "mixed")


@pytest.mark.parametrize("kind", KINDS)
def test_no_wrong_rejection_and_the_optimum_in_every_ball(kind: str) -> None:
    n, rejected, wrong, farthest = judged(range(10), kind)
    assert n > 2_500
    assert rejected > 0.1 * n
    assert wrong == 0
    assert farthest <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_wrong_rejection_in_many_decisions(kind: str) -> None:
    """100,000 of a feature at a point, each made by norms under its own metric and by stored ones."""
    n, rejected, wrong, farthest = judged(range(100, 400), kind, count=100)
    assert n > 200_000
    assert rejected > 0.3 * n
    assert wrong == 0
    assert farthest <= 1.0


def too_small(loss: Any, at: Any, scale: float, gap: float) -> Array:
    return np.asarray(0.4 * type(loss).metric(loss, at, scale, gap))


def test_a_metric_that_is_too_small_is_seen() -> None:
    """One that does not grow with the gap is seen by L8 of `check_loss`, whose gaps have nothing to spare."""
    _, _, wrong, farthest = judged(range(8), "poisson", too_small)
    assert farthest > 1.05 or wrong


def path(problem: Problem, values: int = 12, low: float = 0.1, **options: Any) -> tuple[list[Any], Problem]:
    lams = problem.lambda_max() * np.geomspace(1.0, low, values)
    goals = [1e-6 * problem.loss.null.value] * 2
    with one_blas_thread():
        walk = PathWalk(problem, values, by_gram=False, **options)
        return [walk.values(lams[k : k + 2], goals)[0] for k in range(values)], problem


def with_exposures(tasks: int, rows: int, count: int) -> Problem:
    """Counts with uneven exposures, columns of one size."""
    rng, n = np.random.default_rng(3), tasks * rows
    x, offset = np.asfortranarray(rng.standard_normal((n, count))), rng.standard_normal(n)
    effects = np.where(np.arange(count) < 8, 0.3, 0.0)
    y = rng.poisson(np.exp(0.5 + offset + x @ effects)).astype(float)
    design = Design(as_storage(x), np.arange(tasks + 1) * rows, n_threads=1)
    return Problem(design, y, offset=offset, loss=ts.losses.Poisson(), unit=float(rows))


def test_more_rows_are_rejected_on_a_path_and_no_reading_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    found, problem = path(with_exposures(2, 250, 1500), 20)
    monkeypatch.setattr(policy, "HELPFUL_LENGTH", 0.0)  # never: the largest k of each task
    before, plain = path(with_exposures(2, 250, 1500), 20)
    assert problem.metric._measured is not None
    assert plain.metric._measured is None
    assert problem.design.passes == pytest.approx(plain.design.passes)
    for now, then in zip(found, before, strict=True):
        assert now.converged
        assert now.n_rejected >= then.n_rejected
        np.testing.assert_array_equal(now.features, then.features)
        np.testing.assert_allclose(now.rows, then.rows, atol=1e-3)
    counts = [sum(v.n_rejected + v.n_rejected_dynamic for v in values) for values in (found, before)]
    assert counts[0] > 1.2 * counts[1]


def test_rejected_rows_of_a_path_are_zero() -> None:
    """Against a long solve of each value without screening: what the ledger holds at the end of a value is right."""
    rng = np.random.default_rng(12)
    problem = poisson_problem(rng, 2, 60, 300, 1.5)
    lams = problem.lambda_max() * np.geomspace(1.0, 0.15, 8)
    decided = 0
    with one_blas_thread():
        walk = PathWalk(problem, len(lams), by_gram=False)
        for k, lam in enumerate(lams):
            walk.values([lam, *lams[k + 1 : k + 2]], [1e-5 * problem.loss.null.value] * 2)
            rejected = walk._engine.ledger.rejected.copy()  # type: ignore[union-attr]
            best = solved(poisson_like(problem), lam)
            assert not rejected[best.features].any()
            decided += int(rejected.sum())
    assert problem.metric._measured is not None
    assert decided > 500


def poisson_like(problem: Problem) -> Problem:
    """The same problem with nothing known yet."""
    design = problem.design
    other = Design(
        design.shard.storage, design.offsets, weights=design.weights, unpenalised=design.unpenalised, n_threads=1
    )
    loss: Any = problem.loss
    return Problem(other, loss._y, offset=loss._offset, loss=ts.losses.Poisson(), unit=problem.unit)


@pytest.mark.parametrize("penalty", [ts.penalties.SparseGroup(0.5, 0.5), ts.penalties.LInf()])
def test_other_penalties_and_solvers_reject_with_row_metrics(penalty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries, rows inside a solver that works on all of them, and penalties without thresholds."""

    def rejected(solver: str) -> tuple[int, list[Any]]:
        problem = with_exposures(2, 60, 300)
        problem.penalty = penalty.on(problem.penalty.weights, 2)
        values, _ = path(problem, 4, 0.3, solver=solver)
        return sum(v.n_rejected + v.n_rejected_dynamic + v.n_rejected_entries for v in values), values

    for solver in ("auto", "apgd"):
        with monkeypatch.context() as context:
            many, values = rejected(solver)
            context.setattr(policy, "HELPFUL_LENGTH", 0.0)
            few, plain = rejected(solver)
        assert many >= few
        assert all(value.converged for value in values)
        for one, other in zip(values, plain, strict=True):
            assert abs(one.objective - other.objective) <= 2e-6 * problem_size(plain)


def problem_size(values: list[Any]) -> float:
    return max(abs(value.objective) for value in values)


def test_a_metric_that_vanishes_leaves_rows_out() -> None:
    """Rows whose dual variable is known to be 0 move no correlation."""
    problem = poisson_problem(np.random.default_rng(5), 1, 40, 30, 1.0)
    loss = problem.loss
    own = loss.metric(loss.null, 0.9, 1.0)
    own[:7] = 0.0
    ball = loss._ellipsoid(replace(loss.null), 0.9, 1.0, own)
    assert ball is not None
    assert ball.vector is not None
    assert not ball.vector[:7].any()
    assert np.isfinite(ball.radius)


if __name__ == "__main__":
    for chosen in KINDS:
        counted, gone, false, most = judged(range(100, 400), chosen, count=100)
        print(f"{chosen:18s} {counted:,} decisions, {gone:,} rejections, {false} wrong, {most:.3f} radii", flush=True)
