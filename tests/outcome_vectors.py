"""Small problems with outcomes of every kind, and vectors that are poor dual points of them, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
from certificate_oracle import Content
from outcome_cases import Outcomes, make_outcomes

from tasksieve import verify as verifier

Array = np.ndarray[Any, Any]

SMALL = {"n": 7, "d": 3, "strength": 0.05}
KINDS: list[tuple[list[str], dict[str, Any]]] = [
    (["cox efron"], {"weights": True}),
    (["cox breslow"], {"weights": True, "strata": True}),
    (["cox efron"], {"entry": True, "strata": True}),
    (["cox breslow"], {"entry": True, "weights": True, "free": True}),
    (["ordinal", "ordinal"], {"weights": True}),
    (["ordinal"], {"free": True}),
    (["gamma"], {}),
    (["tweedie"], {"weights": True}),
    (["negative_binomial"], {}),
    (["log_cosh"], {"no_intercept": True}),
    (["expectile"], {"weights": True}),
    (["squared", "cox efron", "ordinal"], {"mixed": True, "weights": True}),
    (["log_cosh", "gamma", "cox breslow"], {"mixed": True, "entry": True}),
    (["gamma", "logistic"], {"mixed": True}),
]


def problem(number: int, seed: int = 0) -> Outcomes:
    kinds, options = KINDS[number % len(KINDS)]
    return make_outcomes(kinds, 100 * seed + number, **{**SMALL, **options})


def size_of(case: Outcomes) -> float:
    return max(1.0, abs(case.solution[0]))


def wild_vectors(case: Outcomes, rng: Any, count: int) -> list[Array]:
    """Vectors that are no dual points, or poor ones: outside the domain, not balanced, of other rows, huge, tiny."""
    _, coef, intercept, places = case.solution
    good, found = case.duals(coef, intercept, places), []
    for k in range(count):
        noise, some, way = rng.standard_normal(len(good)), rng.random(len(good)) < 0.3, k % 8
        if way == 7:
            found.append(case.duals(coef + 0.5 * rng.standard_normal(coef.shape), intercept, places))
            continue
        found.append([
            good * (1.0 + 0.3 * noise),
            -good,
            good[rng.permutation(len(good))],
            good + 10.0 ** rng.uniform(-8, 3) * noise,
            good * 10.0 ** rng.uniform(-12, 12),
            np.where(some, 1.0, good),
            np.where(some, np.sign(noise), good),
        ][way])  # fmt: skip
    return found


def bound_of(content: Content, module: Any = verifier, exact: bool = False) -> float:
    """The lower bound of all objectives that a verifier finds; minus infinity if none."""
    content.arrays |= {"gap": np.array([1e300]), "dual_value": np.array([-1e300])}
    verdict = module.verify(content.pack(), **content.data(), exact=exact)
    return verdict.values[0].dual_value if verdict.values else -np.inf
