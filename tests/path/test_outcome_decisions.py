"""Decisions about features along paths of the outcome losses, counted: none is wrong, and no gap is false.

Every value is solved twice: on a path with screening, to some accuracy, and by itself to the last digits without any.
What the path has rejected must be zero there, and no objective may be lower than a gap allows. Run as a script, it
prints the counts: ``python tests/path/test_outcome_decisions.py 400``.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tasksieve.design import Design, as_storage, one_blas_thread
from tasksieve.losses import Expectile, Gamma, LogCosh, Loss, NegativeBinomial, Poisson, Tweedie
from tasksieve.path.problem import Problem
from tasksieve.path.walks import PathWalk
from tasksieve.penalties import L11, L21, Dirty, Groups, LInf, Sorted, SparseGroup

Array = np.ndarray[Any, Any]
COUNT = 180  # features
VALUES = 5

LOSSES: dict[str, Loss] = {
    "gamma": Gamma(),
    "negative binomial": NegativeBinomial(1.5),
    "negative binomial, small": NegativeBinomial(0.1),
    "tweedie": Tweedie(1.5),
    "tweedie, near gamma": Tweedie(1.9),
    "expectile": Expectile(0.9),
    "log-cosh": LogCosh(),
    "poisson": Poisson(),
}
PENALTIES: dict[str, Any] = {
    "l21": L21(),
    "l11": L11(),
    "sparse group": SparseGroup(0.4, 0.8),
    "linf": LInf(),
    "dirty": Dirty(),
    "groups": Groups(np.arange(COUNT) // 3),
    "owl": Sorted(),
}
QUADRATIC = ("plain", "ridge", "graph")


@dataclass
class Counts:
    decided: int = 0
    rejected: int = 0
    wrong: int = 0
    gaps: int = 0
    false_gaps: int = 0

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def labels_of(loss: Loss, z: Array, rng: np.random.Generator) -> Array:
    if loss.labels == "positive":
        return rng.gamma(0.8, np.exp(z)) + 1e-9
    if isinstance(loss, Tweedie):
        return rng.gamma(1.0, 1.0, len(z)) * rng.poisson(np.exp(z))
    if loss.labels == "counts":
        return rng.poisson(rng.gamma(1.0, np.exp(z))).astype(float)
    return z + rng.standard_t(2, len(z))


def arguments(seed: int, loss: Loss, penalty: Any, quadratic: str) -> tuple[Any, ...]:
    """A design's and a problem's: weights, offsets, an unpenalised column, awkward columns, each in some problems."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(8, 30, int(rng.integers(1, 4)))
    n, tasks = int(rows.sum()), len(rows)
    x = rng.standard_normal((n, COUNT)) * 10.0 ** rng.choice([-1.0, 0.0, 0.0, 1.0], COUNT)
    x[:, 3], x[:, 4], x[:, 5] = x[:, 0], 0.0, x[:, 5] + 30.0
    z = 0.3 * x[:, 0] + 0.4 * rng.standard_normal() * x[:, 7] / np.std(x[:, 7]) + 0.3 * rng.standard_normal(n)
    offset = rng.uniform(-1.0, 1.0, n) if rng.random() < 0.5 else None
    y = labels_of(loss, np.clip(z if offset is None else z + offset, -4.0, 4.0), rng)
    weights = rng.uniform(0.2, 3.0, n) * (rng.random(n) > 0.1) if rng.random() < 0.4 else None
    penalised = rng.random() < 0.7 or isinstance(penalty, Sorted | Groups)
    made = {
        "weights": weights,
        "fit_intercept": bool(rng.random() < 0.85),
        "unpenalised": np.empty(0, dtype=np.int64) if penalised else np.array([9]),
    }
    more: dict[str, Any] = {"offset": offset, "loss": loss, "penalty": penalty, "unit": n / tasks}
    if quadratic == "ridge":
        more["fixed_ridge"] = 0.05
    if quadratic == "graph" and tasks > 1:
        more["task_graph"] = 0.1 * (np.ones((tasks, tasks)) - np.eye(tasks))
    return np.asfortranarray(x), np.concatenate([[0], np.cumsum(rows)]), y, made, more


def problem_of(x: Array, offsets: Array, y: Array, made: dict[str, Any], more: dict[str, Any]) -> Problem:
    return Problem(Design(as_storage(x), offsets, n_threads=1, **made), y, **more)


def decisions(seed: int, loss: Loss, penalty: Any, quadratic: str) -> Counts:
    """Of one problem, along its path."""
    given = arguments(seed, loss, penalty, quadratic)
    problem, found = problem_of(*given), Counts()
    null, most = problem.loss.null.value, problem.lambda_max()
    if not most > 0.0:
        return found
    rng = np.random.default_rng([seed, 1])
    lams = most * np.geomspace(rng.uniform(0.6, 0.98), rng.uniform(0.05, 0.3), VALUES)
    goal = float(rng.choice([1e-2, 1e-4, 1e-6])) * null
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        walk = PathWalk(problem, VALUES, by_gram=False)
        for k, lam in enumerate(lams):
            value = walk.values([lam, *lams[k + 1 : k + 2]], [goal] * 2)[0]
            rejected = walk._engine.ledger.rejected.copy()  # type: ignore[union-attr]
            alone = PathWalk(problem_of(*given), 1, screening=None)
            best = alone.values([lam], [1e-12 * null])[0]
            used = np.setdiff1d(best.features[best.rows.any(axis=1)], problem.design.unpenalised)
            found.add(
                Counts(
                    int(problem.penalty.penalised.sum()),
                    int(np.count_nonzero(rejected)),
                    int(np.count_nonzero(rejected[used])),
                    1,
                    int(value.objective - value.dual_gap > best.objective + 1e-15 * abs(best.objective)),
                )
            )
    return found


def judged(names: Any, seeds: range) -> Counts:
    total = Counts()
    for seed in seeds:
        for name in names:
            penalty = list(PENALTIES)[seed % len(PENALTIES)]
            quadratic = QUADRATIC[(seed // len(PENALTIES)) % len(QUADRATIC)]
            total.add(decisions(seed, LOSSES[name], PENALTIES[penalty], quadratic))
    return total


@pytest.mark.parametrize("name", LOSSES)
def test_no_wrong_rejection_and_no_false_gap(name: str) -> None:
    found = judged([name], range(2))
    assert found.decided > 1_600
    assert found.wrong == 0
    assert found.false_gaps == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_a_hundred_thousand_decisions(name: str) -> None:
    """Of all losses together."""
    found = judged([name], range(3, 3 + len(QUADRATIC) * len(PENALTIES)))
    assert found.decided > 15_000
    assert found.rejected > 0.1 * found.decided
    assert found.wrong == 0
    assert found.false_gaps == 0


if __name__ == "__main__":
    total = Counts()
    for chosen in LOSSES:
        own = judged([chosen], range(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
        total.add(own)
        print(f"{chosen:26s} {own}", flush=True)
    print(f"{'all':26s} {total}")
