"""Which strategy serves a problem: by name, or the fastest that loss and penalty allow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..losses import DataLoss
from ..solvers import (
    Accelerated,
    ClippedPoint,
    CoordinateDescent,
    ManifoldNewton,
    ProximalNewton,
    ProximalPoint,
    SortedFista,
    StochasticGradient,
    VariationalNewton,
)
from .calibrated import PUBLISHED, Calibrated
from .problem import Problem
from .strategies import CoordinateOrNewton, Predicting, Strategy


def _bends_by_rows(loss: DataLoss) -> bool:
    """Whether the second derivative of a loss is known, and has no entries between rows."""
    between = type(loss).quadratic_model is not DataLoss.quadratic_model
    return loss.squared or (loss.null.curvature is not None and not between)


def _first_order(problem: Problem, solver: Any) -> Strategy:
    if _unmet(ManifoldNewton, problem) is None and _bends_by_rows(problem.loss):
        solver = ManifoldNewton(solver)
    return Strategy(problem, solver, screens_single=not problem.penalty.separable)


Choice = tuple[Any, Callable[[Problem], Strategy]]

# What must be met, and what is made then; the first whose needs are met is the fastest.
_AUTOMATIC: tuple[Choice, ...] = (
    (CoordinateDescent, partial(CoordinateOrNewton, solver="auto")),
    (Calibrated, partial(Calibrated, solver="auto")),
    (ProximalPoint, lambda problem: Predicting(problem, ProximalPoint())),
    (ClippedPoint, lambda problem: Predicting(problem, ClippedPoint())),
    (ProximalNewton, lambda problem: Strategy(problem, ProximalNewton())),
    (SortedFista, lambda problem: _first_order(problem, SortedFista())),
    (Accelerated, lambda problem: _first_order(problem, Accelerated(adaptive=True))),
)
_BY_NAME: dict[str, Choice] = {
    "cd": (CoordinateDescent, partial(CoordinateOrNewton, solver="cd")),
    "newton": (VariationalNewton, partial(CoordinateOrNewton, solver="newton")),
    "prox-newton": (ProximalNewton, lambda problem: Strategy(problem, ProximalNewton())),
    "apgd": (Accelerated, lambda problem: Strategy(problem, Accelerated(), whole=True)),
    "spgd": (StochasticGradient, lambda problem: Strategy(problem, StochasticGradient(), whole=True)),
}
_CALIBRATED: dict[str, Choice] = {
    name: (Calibrated, partial(Calibrated, solver=name)) for name in ("newton", *PUBLISHED)
}


def _unmet(kind: Any, problem: Problem) -> str | None:
    packed = problem.penalty.separable or not problem.design.sparse
    return kind.needs.unmet(problem.loss, problem.penalty, packed)


def fastest(problem: Problem) -> Callable[[Problem], Strategy]:
    """What makes the strategy that "auto" stands for; a ValueError names the loss where there is none."""
    for kind, make in _AUTOMATIC:
        if _unmet(kind, problem) is None:
            return make
    loss, penalty = problem.loss, problem.penalty
    if not loss.has_slope:
        raise ValueError(
            f"no solver for the {loss.name} loss: its smoothness is infinite. A loss with a slope everywhere says so "
            "with `differentiable = True`; one with kinks is not solved, a smoothed one comes as near as you like."
        )
    beside = "" if penalty.coupling is None else " and a task graph"
    raise ValueError(
        f"no solver for the {loss.name} loss with the penalty {type(penalty).__name__}{beside}: choose another loss"
        f"{', or leave task_graph out' if beside else ''}"
    )


def choose_strategy(problem: Problem, solver: str) -> Strategy:
    """The strategy of a name, refused where it needs what loss or penalty do not have; "auto" is the fastest."""
    if solver == "auto":
        return fastest(problem)(problem)
    loss = problem.loss
    by_name = _CALIBRATED if loss.name == "square-root" else _BY_NAME
    if solver not in by_name:
        raise ValueError(f"solver must be one of {('auto', *by_name)}; got {solver!r}")
    kind, make = by_name[solver]
    reason = _unmet(kind, problem)
    if reason is not None:
        others = [name for name, (other, _) in by_name.items() if _unmet(other, problem) is None]
        raise ValueError(f"solver={solver!r} {reason}; use {', '.join(map(repr, ['auto', *others]))}")
    return make(problem)
