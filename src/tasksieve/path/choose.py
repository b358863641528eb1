"""Which strategy serves a problem: by name, or the fastest that loss and penalty allow."""

from __future__ import annotations

from typing import Any

from ..solvers import (
    Accelerated,
    CoordinateDescent,
    ProximalNewton,
    SortedFista,
    StochasticGradient,
    VariationalNewton,
)
from .calibrated import PUBLISHED, Calibrated
from .problem import Problem
from .strategies import CoordinateOrNewton, Proximal, Sorted, Strategy, Whole


def choose_strategy(problem: Problem, solver: str) -> Strategy:
    """The strategy of a name; "auto" is the fastest that loss and penalty allow.

    Raises
    ------
    ValueError
        If the solver needs what loss or penalty do not have.
    """
    loss, penalty = problem.loss, problem.penalty
    by_name: dict[str, tuple[Any, Any]] = {
        "cd": (CoordinateDescent, lambda: CoordinateOrNewton(problem, "cd")),
        "newton": (VariationalNewton, lambda: CoordinateOrNewton(problem, "newton")),
        "prox-newton": (ProximalNewton, lambda: Proximal(problem)),
        "apgd": (Accelerated, lambda: Whole(problem, Accelerated())),
        "spgd": (StochasticGradient, lambda: Whole(problem, StochasticGradient())),
    }
    if loss.name == "square-root":
        by_name = {name: (Calibrated, lambda name=name: Calibrated(problem, name)) for name in ("newton", *PUBLISHED)}
    automatic: list[tuple[Any, Any]] = [
        (CoordinateDescent, lambda: CoordinateOrNewton(problem, "auto")),
        (Calibrated, lambda: Calibrated(problem, "auto")),
        (ProximalNewton, lambda: Proximal(problem)),
        (SortedFista, lambda: Sorted(problem, SortedFista())),
        (Accelerated, lambda: (Strategy if penalty.separable else Sorted)(problem, Accelerated(adaptive=True))),
    ]

    def unmet(kind: Any) -> str | None:
        packed = penalty.separable or not problem.design.sparse
        return kind.needs.unmet(loss, penalty, packed)

    if solver == "auto":
        for kind, make in automatic:
            if unmet(kind) is None:
                return make()
        raise ValueError(f"no solver for the {loss.name} loss with the penalty {type(penalty).__name__}")
    if solver not in by_name:
        raise ValueError(f"solver must be one of {('auto', *by_name)}; got {solver!r}")
    kind, make = by_name[solver]
    reason = unmet(kind)
    if reason is not None:
        others = [name for name, (other, _) in by_name.items() if unmet(other) is None]
        raise ValueError(f"solver={solver!r} {reason}; use {', '.join(map(repr, ['auto', *others]))}")
    return make()
