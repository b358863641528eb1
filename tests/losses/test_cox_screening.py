"""What Cox's loss rejects is zero, and deliberately wrong losses are seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from cox_reference import draw

from tasksieve.checks.data_loss import l4_terms
from tasksieve.checks.loss_cases import data_cases, survival_labels
from tasksieve.design import Design, as_storage
from tasksieve.losses import cox
from tasksieve.losses.cox import Cox, CoxOnData
from tasksieve.path import Problem, solve_path
from tasksieve.path.pair import Point, point_gap

D = 60


@dataclass
class Count:
    decisions: int = 0
    rejected: int = 0
    wrong: int = 0
    outside: int = 0  # dual optima outside the ball


def problem_of(rng, entry):
    """One to three tasks, ties, strata, weights, an offset; columns that are copies, shifted, badly scaled."""
    tasks, n = int(rng.integers(1, 4)), int(rng.integers(12, 40))
    offsets, rows = n * np.arange(tasks + 1), n * tasks
    x = rng.standard_normal((rows, D))
    x[:, 5], x[:, 6], x[:, 7] = x[:, 0], 0.0, 1e-3 * x[:, 7]
    x[:, 8] += 5.0
    y = draw(rng, rows, entry, int(rng.integers(1, 3)), rng.random() < 0.5, rng.choice([0.2, 0.6, 0.95]))
    score = x[:, 0] - x[:, 1]
    y["time"] = y["time"] if rng.random() < 0.5 else np.ceil(4.0 * rng.exponential(np.exp(-score)))
    y["entry"] = np.where(y["entry"] < y["time"], y["entry"], -np.inf)
    y["event"][offsets[:-1]] = y["event"][offsets[:-1] + 1] = True
    s = rng.uniform(0.2, 2.0, rows) if rng.random() < 0.5 else np.ones(rows)
    offset = rng.standard_normal(rows) if rng.random() < 0.3 else None
    design = Design(as_storage(x), offsets, weights=s, n_threads=1)
    loss = Cox(rng.choice(["efron", "breslow"]))
    return Problem(design, y, offset=offset, loss=loss), x


def count(seeds) -> Count:
    """Rejections by the row metric from sloppy points, as the L2,1 norm has them."""
    total = Count()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        problem, x = problem_of(rng, entry=seed % 4 == 3)
        design, loss = problem.design, problem.loss
        if problem.lambda_max() < 1e-3:
            continue
        lam = float(rng.choice([0.7, 0.4, 0.2])) * problem.lambda_max()
        best = solve_path(problem, [lam], tol=1e-11, screening=None).points[0]
        truth = np.zeros((D, design.n_tasks))
        truth[best.features] = best.rows
        penalty = problem.penalty.at(lam)
        root, spans = design.samples.root, list(zip(design.offsets[:-1], design.offsets[1:], strict=True))

        def image(rows, design=design, root=root, spans=spans, x=x):
            return design.project(root * np.concatenate([x[a:b] @ rows[:, t] for t, (a, b) in enumerate(spans)]))

        optimum = loss.evaluate(image(truth)).residual
        carries = np.linalg.norm(truth, axis=1) > 1e-5 * np.abs(truth).max()
        for blur in (0.0, 0.02, 0.3, 1.0):
            rows = truth * ((1.0 - blur) if blur == 1.0 else 1.0 + blur * rng.standard_normal(truth.shape))
            at = loss.settled(loss.evaluate(image(rows)))
            products = design.correlate(at.residual)
            features = np.flatnonzero(rows.any(axis=1))
            point = Point(features, rows[features], at, products[features])
            gap, scale = point_gap(loss, penalty, point, penalty.row_gauges(products))
            ball = loss.ball(at, scale, gap)
            away = optimum - ball.vector
            live = ball.metric > 0.0
            far = np.sqrt(np.sum(np.square(away[live]) / ball.metric[live]))
            slack = 1.5 * np.sqrt(2.0 * best.dual_gap) + 1e-7
            known = np.abs(away[~live]).max(initial=0.0) <= 1e-9
            total.outside += not (known and far <= ball.radius * (1.0 + 1e-6) + slack)
            centre = design.correlate(ball.vector)
            reach = np.empty_like(centre)
            for t, (a, b) in enumerate(spans):
                weight = np.where(live[a:b], ball.metric[a:b], 0.0) * np.square(root[a:b])
                middle = weight @ x[a:b] / weight.sum() if weight.any() else 0.0
                reach[:, t] = np.sqrt(weight @ np.square(x[a:b] - middle))
            zero = np.linalg.norm(centre, axis=1) + ball.radius * reach.max(axis=1) < lam * (1.0 - 1e-9)
            total.decisions += D
            total.rejected += int(zero.sum())
            total.wrong += int(np.count_nonzero(zero & carries))
    return total


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 24))])
def test_nothing_is_rejected_that_matters(part):
    """24 parts of 20 problems, four points and 60 features each: 115,200 decisions in all."""
    found = count(range(20 * part, 20 * part + 20))
    assert found.decisions >= 20 * 4 * D - 4 * D
    assert found.wrong == found.outside == 0
    assert found.rejected > 0.15 * found.decisions


# coarse ones: rejections have much to spare, test_metric_claims.py has the problems that see a metric x 0.95
MUTANTS = {
    "metric x 0.15": lambda metric, mean: 0.15 * metric,
    "metric of the means alone": lambda metric, mean: mean,
    "metric of a logistic loss": lambda metric, mean: np.where(metric > 0.0, 0.25, 0.0),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_metrics_are_seen(monkeypatch, name):
    plain = CoxOnData.metric

    def metric(self, at, scale, gap):
        return MUTANTS[name](plain(self, at, scale, gap), at.margin.mean / self._weights)

    monkeypatch.setattr(CoxOnData, "metric", metric)
    found = count(range(40))
    assert found.wrong + found.outside > 0


@pytest.mark.parametrize("name", ["without the brackets", "halved"])
def test_wrong_terms_are_seen(monkeypatch, name):
    plain = cox.nested_excess

    def wrong(sets, primal, dual, scale):
        found = plain(sets, primal, dual, scale)
        if name == "halved":
            found.value *= 0.5
        else:  # the lower bound by divergences of rows
            c = scale[sets.task_of_row]
            mixed = (1.0 - c) * sets.events + c * dual.mean
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.where(mixed > 0.0, mixed * (np.log(mixed) - primal.log_mean), 0.0)
            found.value = float(np.sum(logs - mixed + primal.mean))
        return found

    monkeypatch.setattr(cox, "nested_excess", wrong)

    def labels(rng, n):
        y = survival_labels(rng, n)
        y["entry"] = -np.inf
        return y

    case = next(iter(data_cases(Cox(), labels, 0)))
    with pytest.raises(AssertionError, match="L4"):
        l4_terms(case, case.point(1.0))
