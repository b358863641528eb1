"""A whole path: decreasing strengths, each solved to a certified duality gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..design import one_blas_thread
from ..screening.rules import DPC, GapSafe, NoScreening, Rule, get_rule
from .choose import choose_strategy
from .engine import Engine, Value
from .problem import Problem

Array = np.ndarray[Any, Any]

__all__ = ["EngineWalk", "PathSolution", "Value", "Walk", "solve_path"]


@dataclass
class PathSolution:
    """All values of a path that were finished."""

    null_objective: float
    points: list[Value] = field(default_factory=list)
    passes: float = 0.0
    #: the square-root loss: P, D, gap and time of every iteration of an algorithm for study, at the last value
    history: Any = None
    interrupted: bool = False
    #: rows that an unsafe screening rule rejected and the certificate brought back
    wrong_rejections: int = 0


class Walk(Protocol):
    """Along the path of one problem, from the largest strength to the smallest, as far as somebody asks.

    Attributes
    ----------
    stride : int
        Values that are best asked for together: nobody hears of them, and nothing can stop them, in between.
    """

    stride: int

    def values(self, lams: Sequence[float] | Array, goals: Sequence[float] | Array) -> list[Value]:
        """The values at the next strengths, each solved until its gap is at most its goal."""
        ...


class EngineWalk(Walk):
    """A walk with the engine, for every loss and penalty.

    Parameters
    ----------
    problem : Problem
    max_iter, screening, solver, working_set, lazy, start
        As in `solve_path`.
    single : bool
        Only one value will be asked for.
    """

    stride = 1

    def __init__(
        self,
        problem: Problem,
        *,
        max_iter: int = 10_000,
        screening: str | Rule | None = "auto",
        solver: str = "auto",
        working_set: bool = True,
        lazy: bool = True,
        single: bool = False,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        rules = _screening(problem, screening)
        self.strategy = choose_strategy(problem, solver)
        self.engine = Engine(
            problem,
            rules,
            self.strategy,
            working_set=working_set,
            lazy=lazy,
            max_iter=max_iter,
            single=single,
            start=start,
        )

    def values(self, lams: Sequence[float] | Array, goals: Sequence[float] | Array) -> list[Value]:
        return [self.engine.step(float(lam), float(goal)) for lam, goal in zip(lams, goals, strict=True)]


def solve_path(
    problem: Problem,
    lams: Sequence[float] | Array,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    screening: str | Rule | None = "auto",
    solver: str = "auto",
    working_set: bool = True,
    lazy: bool = True,
    tol_scaling: str = "fixed",
    start: tuple[Array, Array] | None = None,
    progress: Callable[[int, int, Value], None] | None = None,
) -> PathSolution:
    """Solve a problem at decreasing strengths, each to a certified duality gap.

    Parameters
    ----------
    problem : Problem
    lams : decreasing strengths, in sum units
    tol : float
        A value is done when its gap is at most `tol` times the objective at W = 0 with the best intercepts.
    max_iter : int
        Inner iterations (epochs or Newton steps) for each value.
    screening : {"auto", "dpc", "dpc-published", "gap", None} or Rule
        For penalties that sort the rows {"auto", "cumulative", "bao", None}: the test of Bao et al. (2025, eq. 20), or
        the stronger one of `screening.owl`, which is "auto".
    solver : str
        "auto" is the fastest that loss and penalty allow (`strategies`). By name: "cd", "newton" (squared loss),
        "prox-newton" (other smooth losses), "apgd" (any smooth loss and penalty), "spgd" (sorted penalties), and for
        the square-root loss "newton" and the algorithms of its paper.
    working_set : bool
        False: every row that screening leaves is solved for, as in the papers on screening.
    lazy : bool
        False: a full pass over the data at every value, as in the papers; screening then sees exact correlations
        where it otherwise has bounds from past passes, and rejects more.
    tol_scaling : {"fixed", "quadratic"}
        "quadratic" multiplies `tol` by (lam/lam_max)^2, which keeps sequential screening sharp (mathematics 2.6).
    start : (features, rows), optional
        A first guess, in units of the scaled columns.
    progress : callable, optional
        ``progress(k, K, value)`` after each value.

    Returns
    -------
    PathSolution
        After a KeyboardInterrupt: the finished values, marked `interrupted`.
    """
    if tol_scaling not in ("fixed", "quadratic"):
        raise ValueError(f"tol_scaling must be 'fixed' or 'quadratic'; got {tol_scaling!r}")
    solution = PathSolution(problem.loss.null.value)
    with one_blas_thread():
        walk = EngineWalk(
            problem,
            max_iter=max_iter,
            screening=screening,
            solver=solver,
            working_set=working_set,
            lazy=lazy,
            single=len(lams) == 1,
            start=start,
        )
        engine = walk.engine
        try:
            for k, lam in enumerate(lams):
                goal = tol * problem.loss.null.value
                if tol_scaling == "quadratic":
                    goal *= min(lam / engine.lam_max, 1.0) ** 2 if engine.lam_max > 0 else 1.0
                [value] = walk.values([lam], [goal])
                solution.points.append(value)
                if progress is not None:
                    progress(k, len(lams), value)
        except KeyboardInterrupt:
            solution.interrupted = True
    solution.passes = problem.design.passes
    solution.wrong_rejections = engine.wrong_rejections
    solution.history = walk.strategy.history
    return solution


def _screening(problem: Problem, screening: str | Rule | None) -> list[Rule]:
    """The rules of a name; a penalty with tests of its own takes the best balls there are."""
    loss, penalty = problem.loss, problem.penalty
    if penalty.tests:
        allowed = ("auto", *penalty.tests, None)
        if screening not in allowed:
            raise ValueError(f"screening must be one of {allowed}; got {screening!r}")
        if screening is None:
            return []
        if screening != "auto":
            problem.penalty = penalty.with_test(str(screening))
        return [GapSafe(), DPC()] if loss.squared else [GapSafe()]
    thresholds = penalty.thresholds()
    rule = get_rule(
        screening,
        loss="squared" if loss.squared else loss.name,
        l1=float(penalty.has_entries),
        positive=penalty.positive,
        ridge_ratio=penalty.ridge,
        plain=thresholds is not None and thresholds[1] is None,
    )
    return [] if isinstance(rule, NoScreening) else [rule]
