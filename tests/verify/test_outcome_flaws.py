"""Flaws put on purpose into what the verifier knows of outcomes: each is shown by a certificate of the battery, whose
vector proves too much then, or whose objective is too low."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from certificate_oracle import Content
from flawed_verifier import flawed
from outcome_cases import COX, WORDS, Outcome, Outcomes
from outcome_vectors import bound_of, problem, size_of, wild_vectors

from tasksieve import verify as verifier

Array = np.ndarray[Any, Any]

# --- the battery --------------------------------------------------------------------------------------------


@cache
def solved(number: int, seed: int) -> Outcomes:
    case = problem(number, seed)
    assert np.isfinite(case.solution[0])
    return case


def certificates(number: int, first: int = 0) -> Iterator[tuple[Outcomes, Content]]:
    """Of a few problems: the solution with the vector that belongs to it, then with others."""
    for seed in range(first, first + 3):
        case, rng = solved(number, seed), np.random.default_rng(seed)
        _, coef, intercept, places = case.solution
        good = case.duals(coef, intercept, places)
        for dual in (good, *wild_vectors(case, rng, 8)):
            yield case, case.content(coef, intercept, places, dual, 0.0)


@cache
def forged(name: str) -> tuple[Outcomes, Content]:
    """A vector that is no dual point, of a problem without coefficients (alpha is large) in which a verifier that does
    not see it gains by the offsets of some rows."""
    kind, y, offset, dual = FORGED[name]
    n = len(y)
    labels = np.array(y, dtype=float)
    if kind in COX:  # time and event
        labels = np.column_stack([labels, np.full(n, -np.inf), np.zeros(n)])
    classes = ["a", "b", "c"][: int(labels.max()) + 1] if kind == "ordinal" else None
    x = np.random.default_rng(0).standard_normal((n, 2))
    part = Outcome(kind, dict(WORDS[kind]), x, labels, np.ones(n), np.array(offset, dtype=float), classes)
    case = Outcomes([part], alpha=1000.0, intercept=False, unit=1.0)
    _, _, _, places = case.solution
    coef, intercept = np.zeros((2, 1)), np.zeros(1)
    return case, case.content(coef, intercept, places, np.array(dual, dtype=float), 0.0)


# kind, labels (of Cox's loss times and events), offsets, vector
FORGED: dict[str, tuple[str, Any, list[float], list[float]]] = {
    # the second event needs an expected one of its own row, and has half of it
    "parts without a place": ("cox efron", [(1, 1), (2, 1)], [50, -50], [-0.5, 0.5]),
    "expected events below 0": ("cox efron", [(1, 1), (2, 1), (3, 0)], [0, 0, -1e5], [0.3, -0.301, 0.001]),
    "more expected events than events": ("cox efron", [(1, 1), (2, 1), (3, 0)], [0, 0, 50], [1, 1, -2.6]),
    "all die at once": ("cox efron", [(1, 1)] * 4, [0, 0, 0, 0], [0, 0, 0, 0]),
    "slopes of more than 1": ("ordinal", [0, 0, 1, 1], [2, 2, -2, -2], [-2, -2, 2, 2]),
    "thresholds that fall": ("ordinal", [0, 1, 1, 1, 1, 2], [0, 3, 3, -3, -3, 0], [0, -0.99, -0.99, 0.99, 0.99, 0]),
    "gamma means below 0": ("gamma", [0.05, 1.0], [0, 0], [-6, 0]),
    "residuals below 0": ("expectile", [-5.0, -5.0], [0, 0], [-4, -4]),
    "a slope where there is nothing": ("tweedie", [0.0, 1.0], [-9, 0], [3, 0]),
}


def shows(case: Outcomes, content: Content, module: Any) -> bool:
    """Whether a verifier proves a bound above the optimum, or takes the objective for less than it is."""
    best, size = case.solution[0], size_of(case)
    told = float(content.arrays["objective"][0])
    content.arrays |= {"gap": np.array([1e300]), "dual_value": np.array([-1e300])}
    values = module.verify(content.pack(), **content.data()).values
    return any(one.dual_value > best + 1e-5 * size or one.objective < told - 1e-6 * size for one in values)


# --- the flaws ----------------------------------------------------------------------------------------------

Where = int | tuple[int, int] | str
# where it shows (a number of `problem`, perhaps with a seed, or a name of FORGED), and what is replaced
FLAWS: dict[str, tuple[Where, list[tuple[str, str]]]] = {
    # Cox's dual
    "parts that need not have the sums of their terms": (
        "parts without a place",
        [("some = np.asarray(handed.hi != 0, dtype=bool)\n", "some = np.zeros(len(rows), dtype=bool)\n")],
    ),
    "parts that are changed by more than themselves": (
        "parts without a place",
        [
            (
                "        if not np.asarray((share * ratio).lo >= (moved + moved).hi, dtype=bool).all():\n",
                "        if False:\n",
            )
        ],
    ),
    "weights of the terms that are counted twice": (
        0,
        [("(arith.log(increments) - arith.log(self.w))", "(arith.log(increments) - arith.log(self.w + self.w))")],
    ),
    "expected events below 0": (
        "expected events below 0",
        [("outside = np.flatnonzero(~np.asarray(natural.lo >= 0, dtype=bool))", "outside = np.zeros(0, int)")],
    ),
    "no projection on what is orthogonal to constants": (
        "more expected events than events",
        [("return choose(self.alive, c[self.block], Box(0 * v.lo)), [] if", "return Box(0 * v.lo), [] if")],
    ),
    "ties that are forgotten where there is no vector": (
        "all die at once",
        [
            (
                "logs = self.arith.log(self.deaths[self.group]) + self.arith.log(self.share)",
                "logs = self.arith.log(self.deaths[self.group])",
            )
        ],
    ),
    # ordered classes
    "no room between thresholds": (
        4,
        [
            (
                "            total = total - self._merged(left, s[mine].total())\n",
                "            total = total - self._merged(left, s[mine].total()) - s[mine].total()\n",
            )
        ],
    ),
    "thresholds that need not rise": (
        "thresholds that fall",
        [
            ("            if not left.lo >= 0:\n", "            if False:\n"),
            (
                "        if not all(np.all(one.lo >= 0) for one in self._left(natural, natural.positive())):\n",
                "        if False:\n",
            ),
        ],
    ),
    "slopes that are counted twice": (
        4,
        [("self.binary(a) + self.binary(b)", "self.binary(a) + self.binary(b) + self.binary(b)")],
    ),
    "slopes beyond 0 and 1": (
        "slopes of more than 1",
        [
            (
                "known = np.asarray((a.lo >= 0) & (b.lo >= 0) & (a.hi <= 1) & (b.hi <= 1), dtype=bool)",
                "known = np.ones(len(a.lo), dtype=bool)",
            ),
            (
                "outside = np.flatnonzero(~np.asarray((natural.lo >= low.lo) & (natural.hi <= high.lo), dtype=bool))",
                "outside = np.zeros(0, int)",
            ),
        ],
    ),
    "logarithms of the thresholds' distance that are forgotten": (
        4,
        [("            total = total - (weights * arith.log(shares)).total()\n", "")],
    ),
    # weights and units of unlike losses
    "a weight of Cox's loss that its vector does not have": (
        11,
        [
            (
                "_columns([_like(self.factor, natural) * self._events_less(natural)])",
                "_columns([self._events_less(natural)])",
            )
        ],
    ),
    "a weight of Cox's loss that its conjugate does not have": (
        (11, 2),
        [("_stack([-(self.factor * cost)])", "_stack([-cost])")],
    ),
    "a weight of Cox's loss that its value does not have": (
        11,
        [("_stack([self.factor * (total - (self.rows.s", "_stack([self.arith.one(1.0) * (total - (self.rows.s")],
    ),
    "labels in other units than their scores": (
        11,
        [("        return self.scaled(found)[:, 0]\n", "        return found[:, 0]\n")],
    ),
    "coefficients in other units than the penalty's": (
        11,
        [
            (
                "np.broadcast_to(np.array(problem.scales)[problem.task_of], w.shape)",
                "np.full(w.shape, max(problem.scales))",
            )
        ],
    ),
    # conjugates of rows
    "gamma without the logarithms of labels": (
        6,
        [("self.entropy(mean) - mean - mean * self.logs", "self.entropy(mean) - mean")],
    ),
    "gamma means below 0": (
        "gamma means below 0",
        [("        return np.asarray(natural.lo >= 0)\n", "        return np.asarray(natural.lo <= natural.hi)\n")],
    ),
    "Tweedie's powers that change places": (
        7,
        [("/ self.k + (self.entropy(b) - b) / self.l", "/ self.l + (self.entropy(b) - b) / self.k")],
    ),
    "Tweedie's slopes where there is nothing": (
        "a slope where there is nothing",
        [
            ("self.some | np.asarray(natural.hi <= 0, dtype=bool)", "self.some | True"),
            ("_where_known(np.asarray((a.lo >= 0) & (b.lo >= 0), dtype=bool), found)", "found"),
        ],
    ),
    "negative binomial without its size": (
        8,
        [("self.mass * self.binary(share) + mean * self.log_size", "self.mass * self.binary(share)")],
    ),
    "log-cosh without log 2": (9, [("(self.one + c * natural)) + self._log_two()", "(self.one + c * natural))")]),
    "expectiles that change places": (
        "residuals below 0",
        [
            (
                "p.positive().square() / above + (-p).positive().square() / below",
                "p.positive().square() / below + (-p).positive().square() / above",
            )
        ],
    ),
}


def battery(where: Where) -> Iterator[tuple[Outcomes, Content]]:
    if isinstance(where, str):
        return iter([forged(where)])
    return certificates(where) if isinstance(where, int) else certificates(*where)


@pytest.mark.parametrize("name", FLAWS)
def test_the_battery_shows_a_flaw(name: str) -> None:
    where, changes = FLAWS[name]
    module = flawed(*changes)
    assert any(shows(case, content, module) for case, content in battery(where)), f"nothing has shown: {name}"


@pytest.mark.parametrize("where", FORGED)
def test_the_battery_shows_nothing_of_the_verifier_itself(where: str) -> None:
    case, content = forged(where)
    assert not shows(case, content, verifier)
    assert bound_of(content, exact=True) <= case.solution[0] + 1e-5 * size_of(case)
