"""Whatever vector and coefficients a certificate holds, what is proved is true: no bound exceeds the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hand_cases import LOSSES, MACHINES, PENALTIES, make_case, make_machine
from hand_certificates import Case, pack

from tasksieve.verify import verify

PAIRS = [(loss, penalty) for loss in LOSSES for penalty in PENALTIES]
OPTIONS = ("weights", "task_weights", "ridge", "graph", "standardize", "offset", "free", "positive", "shared")


def judged(case: Case, rng: np.random.Generator) -> None:
    """Other coefficients, their residuals, and worse: a vector that is no residual at all."""
    best = case.loss_value() + case.alpha * case.penalty_value() + case.quadratic()
    size = max(1.0, abs(best))
    good, intercept, good_duals = case.coef, case.intercept, case.duals()
    for kind in range(4):
        case.coef, case.intercept = good, intercept
        if kind:
            noise = rng.standard_normal(good.shape) * (rng.random(good.shape) < 0.5)
            case.coef = np.abs(good + 0.3 * noise) if case.positive else good + 0.3 * noise
            if case.fit_intercept:
                case.intercept = intercept + 0.3 * rng.standard_normal(len(intercept))
        duals = [case.residual(t) for t in range(case.n_tasks)] if kind < 2 else good_duals
        if kind == 3:
            duals = [p + 0.1 * rng.standard_normal(p.shape) for p in duals]
            if case.loss["name"] == "clipped":
                duals = [np.clip(p[:, 0], *case.bounds(t))[:, None] for t, p in enumerate(duals)]
            elif case.loss["name"] == "logistic":
                duals = [case.sign(t)[:, None] * np.clip(case.sign(t)[:, None] * p, 0, 1) for t, p in enumerate(duals)]
        header, arrays = case.content(1.0, duals)
        huge = {"gap": np.array([1e9]), "dual_value": np.array([-1e9])}
        verdict = verify(pack(header, {**arrays, **huge}), **case.data())
        assert verdict.proved, verdict.words
        value = verdict.values[0]
        primal = case.loss_value() + case.alpha * case.penalty_value() + case.quadratic()
        assert value.dual_value <= best + 1e-12 * size
        assert value.objective >= primal - 1e-12 * max(1.0, abs(primal))
        assert value.gap >= primal - best - 1e-12 * max(1.0, abs(primal))
    case.coef, case.intercept = good, intercept


def one(number: int) -> None:
    rng = np.random.default_rng(number)
    options = {name: bool(rng.random() < 0.35) for name in OPTIONS}
    options["intercept"] = bool(rng.random() < 0.7)
    loss, penalty = PAIRS[number % len(PAIRS)]
    judged(make_case(loss, penalty, number, rows=8, d=5, tol=1e-9, **options), rng)


@pytest.mark.parametrize("number", range(0, len(PAIRS), 8))
def test_no_bound_exceeds_the_optimum(number: int) -> None:
    one(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PAIRS), 4 * len(PAIRS)))
def test_no_bound_exceeds_the_optimum_on_many(number: int) -> None:
    one(number)


@pytest.mark.parametrize("loss", MACHINES)
def test_machines(loss: str) -> None:
    judged(make_machine(loss, 5), np.random.default_rng(0))
