"""What a plan will take: rounds and bytes, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .answer import size
from .plan import HALF_VALUES, Plan
from .question import Question


@dataclass(frozen=True)
class Estimate:
    """Rounds, and bytes that each site sends; lowest and highest.

    Attributes
    ----------
    rounds : (int, int)
    bytes_up : (int, int)
    """

    rounds: tuple[int, int]
    bytes_up: tuple[int, int]

    def words(self) -> str:
        """As part of a sentence.

        Returns
        -------
        str
        """
        low, high = (_amount(number) for number in self.bytes_up)
        return f"{low} to {high} from each site"


def in_words(plan: Plan) -> str:
    """What a plan will take, in a line."""
    many = min(100, len(plan.features))
    few, more = (estimate(plan, selected) for selected in (min(10, many), many))
    said = f"to be expected: {more.rounds[0]} to {more.rounds[1]} rounds, {few.words()} if {min(10, many)} features "
    return f"{said}are selected in the end" + (f", {more.words()} if {many} are" if many > 10 else "")


def estimate(plan: Plan, selected: int = 100) -> Estimate:
    """What a plan will take if its last value selects so many features, which is not known beforehand.

    Parameters
    ----------
    plan : Plan
    selected : int, default=100

    Returns
    -------
    Estimate
        Wider than what was measured: every row of "Sites that keep their rows" in benchmarks/README.md lies within.
    """
    d, n_folds, n_halves = plan.n_features, plan.cv, 2 * plan.n_pairs
    once = size(Question(kind="sizes"), d) + size(Question(kind="norms"), d) + size(Question(kind="part"), d)
    squared = plan.loss == "squared" and not plan.mixed
    once += (1 + n_folds + n_halves) * size(Question(kind="null", dual=not squared), d)
    more = 0
    if plan.standardize == "pooled":
        features = np.arange(len(plan.features))
        once, more = once + size(Question(features=features, s=np.zeros(len(features)), kind="moments"), d), 1
    paths = [(1 + n_folds, plan.n_alphas, selected), (n_halves, HALF_VALUES, selected // _EARLY)]
    found = [
        once + sum(int(n * questions(values) * _question(plan, m, looked)) for n, values, m in paths)
        for questions, looked in ((_fewest, _LOOKED[0]), (_most, _LOOKED[1]))
    ]
    low, high = _ROUNDS[squared]
    low = low if plan.n_alphas >= _FEW else _FEW // 2
    return Estimate((low + more, high + 3 * more + bool(plan.ridge)), (found[0], found[1]))


# Lowest and highest, around what was measured (benchmarks/README.md, "Sites that keep their rows").
#: rounds of least squares, and of other losses, with that of the proof; with fewer values than _FEW there may be less
_ROUNDS = {True: (10, 18), False: (12, 25)}
_FEW = 12
#: share of all features whose levels a question asks for, on average
_LOOKED = (0.05, 0.8)
#: halves end early in their path: with so many times fewer features
_EARLY = 3


def _fewest(n_values: int) -> float:
    """Questions of a path."""
    return 1.5 * n_values


def _most(n_values: int) -> float:
    """Values that are few have no near neighbours to start from."""
    return 3.5 * n_values + 75.0


def _question(plan: Plan, selected: int, looked: float) -> float:
    """Bytes of an answer, on average over a path on which the number of features grows evenly to `selected`: those of
    second derivatives are in its square. A question has some more features than are selected in the end."""
    d = len(plan.features)
    most, dual = min(1.1 * selected, d), plan.loss != "squared" or plan.mixed
    least = size(Question(levels=np.empty(0, np.int64), dual=dual), d)
    return least + 4.0 * most + 2.0 * most * most / 3.0 + 4.0 * looked * d


def _amount(number: float) -> str:
    """Bytes as a person would write them."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000.0 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.3g} {unit}"
        number /= 1000.0
    raise AssertionError
