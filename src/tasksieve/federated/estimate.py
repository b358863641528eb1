"""What a plan will take: rounds and bytes, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .answer import size
from .plan import Plan
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
        """In a line.

        Returns
        -------
        str
        """
        low, high = (_amount(number) for number in self.bytes_up)
        return f"to be expected: {self.rounds[0]} to {self.rounds[1]} rounds, {low} to {high} from each site"


def estimate(plan: Plan) -> Estimate:
    """What a plan will take; how much is known only when it is done, for nobody knows how many features matter.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Estimate
    """
    d, problems = plan.n_features, len(plan.problems())
    once = size(Question(kind="sizes", hessian=False), d) + problems * size(Question(kind="norms"), d)
    once += problems * size(Question(hessian=False), d)
    low, high = (_question(plan, features) for features in _FEATURES)
    values = plan.n_alphas * problems
    return Estimate(_ROUNDS[plan.loss == "squared"], (once + values * low, once + values * _TRIES * high))


# Wider than what was measured (benchmarks/README.md, "Sites that keep their rows"; examples/three_sites.py).
#: rounds of least squares, and of other losses, with that of the proof
_ROUNDS = {True: (10, 18), False: (12, 25)}
#: features in a question: of a sparse model and of one with many
_FEATURES = (10, 250)
#: questions a value, at most
_TRIES = 4


def _question(plan: Plan, n_features: int) -> int:
    """Bytes of an answer about so many features, with a look at ten times as many."""
    d = plan.n_features
    asked, looked = min(n_features, d), min(10 * n_features, d)
    question = Question(features=np.arange(asked), s=np.zeros(asked), levels=np.arange(looked))
    return size(question, d)


def _amount(number: float) -> str:
    """Bytes as a person would write them."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000.0 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.3g} {unit}"
        number /= 1000.0
    raise AssertionError
