"""Certificates of outcomes of every kind: what is proved is true by a conic solver, in both arithmetics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from certificate_oracle import Content
from outcome_cases import WORDS, Outcomes, make_outcomes

from tasksieve.verify import Unreadable, Verdict, verify

Array = np.ndarray[Any, Any]

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"weights": True, "entry": True, "strata": True},
    {"weights": True, "entry": True, "ridge": True, "strata": True, "no_intercept": True},
    {"weights": True, "free": True, "strata": True, "entry": True},
)
CASES = [([kind] * 2, k) for kind in WORDS for k in range(len(OPTIONS))]
CASES += [(["squared", "logistic", "poisson", "cox efron", "ordinal"], k) for k in range(len(OPTIONS))]
CASES += [(["gamma", "tweedie", "cox breslow", "log_cosh"], 1), (["expectile", "negative_binomial", "cox efron"], 3)]


def problem(number: int, **more: Any) -> Outcomes:
    kinds, k = CASES[number]
    return make_outcomes(kinds, number, **{**OPTIONS[k], "mixed": len(set(kinds)) > 1, **more})


def checked(content: Content, exact: bool = False) -> Verdict | None:
    try:
        return verify(content.pack(), **content.data(), exact=exact)
    except Unreadable:
        return None


def generous(content: Content) -> Content:
    """With claims that are true of anything, so that what is proved is told."""
    content.arrays |= {"gap": np.array([1e9]), "dual_value": np.array([-1e9])}
    return content


def judged(case: Outcomes, exact: bool) -> float:
    """A gap near that of the solver is proved, the solver's objective is none below what is proved, and no claim is
    proved that is not so. Gives the gap, relative to the objective without coefficients."""
    best, coef, intercept, places = case.solution
    dual = case.duals(coef, intercept, places)
    null = float(case.objective(0 * coef, intercept, places))
    objective = float(case.objective(coef, intercept, places))
    size = max(abs(null), abs(objective), 1.0)
    verdict = checked(generous(case.content(coef, intercept, places, dual, 0.0)), exact)
    assert verdict is not None
    assert verdict.proved, verdict.words
    value = verdict.values[0]
    assert abs(value.objective - objective) <= 1e-12 * size
    assert value.objective >= objective - 1e-15 * size
    assert value.dual_value <= best + 2e-8 * size  # what the solver finds is the least but for its tolerance
    true = case.content(coef, intercept, places, dual, value.gap * (1 + 1e-9) + 1e-14 * size)
    proved = checked(true, exact)
    assert proved is not None
    assert proved.proved, proved.words
    # beside a ridge more may be proved than was asked for
    for share in (0.5, 0.99) if value.gap > 1e-9 * size and not case.ridge else ():
        false = checked(case.content(coef, intercept, places, dual, value.gap * share), exact)
        assert false is not None
        assert not false.proved
    return value.gap / size


QUICK = [*range(0, len(CASES), 3)]


def test_every_loss_comes_up() -> None:
    assert {kind for number in QUICK for kind in CASES[number][0]} == set(WORDS)


@pytest.mark.parametrize("number", QUICK)
def test_solutions_are_proved(number: int) -> None:
    assert judged(problem(number), exact=False) < 2e-6


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_all_solutions_are_proved(number: int) -> None:
    assert judged(problem(number), exact=False) < 2e-6
    # six rows can be separated by an unpenalised feature: no solution, and a dual point at the edge of the domain
    rows = 8 if OPTIONS[CASES[number][1]].get("free") else 6
    assert judged(problem(number, n=rows, d=3), exact=True) < 2e-6


@pytest.mark.parametrize("number", [18, 33, 39, 43, 45])
def test_solutions_are_proved_in_fractions(number: int) -> None:
    assert judged(problem(number, n=6, d=3), exact=True) < 2e-6
