"""A whole path: decreasing strengths, each solved to a certified duality gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..design import one_blas_thread
from ..screening.rules import Rule, get_rule
from .calibrated_engine import CalibratedEngine
from .engine import Engine, Point
from .problem import Problem

Array = np.ndarray[Any, Any]

__all__ = ["PathSolution", "Point", "run_path", "solve_path"]


@dataclass
class PathSolution:
    """All values of a path that were finished."""

    null_objective: float
    points: list[Point] = field(default_factory=list)
    passes: float = 0.0
    #: the square-root loss: P, D, gap and time of every iteration of an algorithm for study, at the last value
    history: Any = None
    interrupted: bool = False
    #: rows that an unsafe screening rule rejected and the certificate brought back
    wrong_rejections: int = 0


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
    progress: Callable[[int, int, Point], None] | None = None,
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
    solver : {"auto", "cd", "newton", "prox-newton", "apgd"}
        "auto" begins with coordinate descent and moves to the variational Newton method where the counted work
        says so; for the logistic loss it is the proximal Newton method. The square-root loss has solvers of its
        own, `calibrated_engine.SOLVERS`.
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
        ``progress(k, K, point)`` after each value.

    Returns
    -------
    PathSolution
        After a KeyboardInterrupt: the finished values, marked `interrupted`.
    """
    engine_of_loss = CalibratedEngine if problem.loss.name == "square-root" else Engine
    if solver not in engine_of_loss.solvers:
        raise ValueError(f"solver must be one of {engine_of_loss.solvers}; got {solver!r}")
    if tol_scaling not in ("fixed", "quadratic"):
        raise ValueError(f"tol_scaling must be 'fixed' or 'quadratic'; got {tol_scaling!r}")
    shape = problem.shape
    rule = get_rule(
        screening, loss=problem.loss.name, l1=shape.l1, positive=shape.positive, ridge_ratio=shape.ridge_ratio
    )

    def start_engine() -> Engine:
        return engine_of_loss(
            problem, rule, solver, working_set, lazy, max_iter, single=len(lams) == 1, start=start
        )

    return run_path(problem, start_engine, lams, tol=tol, tol_scaling=tol_scaling, progress=progress)


class Stepper(Protocol):
    """An engine: solves one value after another."""

    lam_max: float
    wrong_rejections: int

    def step(self, lam: float, goal: float) -> Point: ...


def run_path(
    problem: Problem,
    start_engine: Callable[[], Stepper],
    lams: Sequence[float] | Array,
    *,
    tol: float,
    tol_scaling: str = "fixed",
    progress: Callable[[int, int, Point], None] | None = None,
) -> PathSolution:
    """Step an engine through decreasing strengths; the parameters are those of `solve_path`."""
    solution = PathSolution(problem.loss.null.value)
    with one_blas_thread():
        engine = start_engine()
        try:
            for k, lam in enumerate(lams):
                goal = tol * problem.loss.null.value
                if tol_scaling == "quadratic":
                    goal *= min(lam / engine.lam_max, 1.0) ** 2 if engine.lam_max > 0 else 1.0
                goal = max(goal, problem.loss.floor)
                point = engine.step(float(lam), goal)
                solution.points.append(point)
                if progress is not None:
                    progress(k, len(lams), point)
        except KeyboardInterrupt:
            solution.interrupted = True
    solution.passes = problem.design.passes
    solution.wrong_rejections = engine.wrong_rejections
    solution.history = getattr(engine, "history", None)
    return solution
