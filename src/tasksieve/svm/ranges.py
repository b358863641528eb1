"""Numbers so large or so small that the objective of a graph model, or squares in it, leave double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..messages import Message, value_error
from .problem import GraphProblem

LARGEST = 1000.0  # powers of two
SMALLEST = -900.0


def refuse_costs(C: float, cost: np.ndarray, weights: np.ndarray) -> None:
    """Products of C and weights that are infinite, or zero where the weight is not."""
    if np.all(np.isfinite(cost)) and np.all((cost > 0) == (weights > 0)):
        return
    raise value_error(
        "{C} = {cost:g} times {sample_weight} (up to {largest:g}) leaves the range of double precision: bring {C} "
        "and {sample_weight} to ordinary sizes.",
        cost=C,
        largest=float(np.max(weights)),
    )


def refuse_scaling(scaling: float) -> None:
    if not SMALLEST <= 2.0 * _log(scaling) <= 0.5 * LARGEST:
        raise value_error(
            "{intercept_scaling} = {scaling:g} is too large or too small: its square must be a number of ordinary "
            "size.",
            scaling=scaling,
        )


def refuse_ranges(problem: GraphProblem) -> None:
    """Raise a ValueError that names the argument whose squares, or whose product with the others, cannot be held."""
    used = problem.c > 0
    x = 0.0
    if not problem.rows.strings:
        x = max(0.5 * _log(np.max(problem.sample_squares()[used], initial=0.0)), 0.0)
    cost = _log(np.sum(problem.c))
    target = 0.0
    if problem.code >= 3:
        size = float(np.max(np.abs(problem.y[used])))
        target = _log(max(size, problem.epsilon)) if size > 0.0 else 0.0
    squared = problem.loss.startswith("squared")
    pull = cost + x + (max(target, 0.0) + 1.0 if squared else 0.0)
    fits = 2.0 * x <= LARGEST and 2.0 * abs(target) <= -SMALLEST and 2.0 * pull <= LARGEST
    fits = fits and cost + 2.0 * x <= LARGEST and (problem.null == 0.0 or SMALLEST <= _log(problem.null) <= LARGEST)
    if fits:
        return
    sizes = (("{X}", x), ("{y}", target), ("{C} times {sample_weight}", cost))
    name, log = max(sizes, key=lambda one: abs(one[1]))
    raise value_error(
        "{name} is {size}: squares of products of {X}, {y}, {C} and {sample_weight} leave the range of double "
        "precision. Bring {name} to ordinary sizes.",
        name=Message(name),
        size=_words(log),
    )


def _words(log: float) -> str:
    return "beyond 1e+154" if np.isinf(log) else f"about 1e{log * np.log10(2.0):+.0f}"


def _log(value: Any) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log2(value))
