"""A whole path: decreasing strengths, each solved to a certified duality gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..screening.rules import Rule
from .follow import PathSolution, Progress, follow
from .problem import Problem
from .values import Value
from .walks import PathWalk

Array = np.ndarray[Any, Any]

__all__ = ["PathSolution", "Progress", "Value", "solve_path"]


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
    progress: Progress | None = None,
) -> PathSolution:
    """Solve a problem at decreasing strengths, each to a certified duality gap.

    - `lams`: decreasing strengths, in sum units
    - `tol`: A value is done when its gap is at most `tol` times the objective at W = 0 with the best intercepts.
    - `max_iter`: Inner iterations (epochs or Newton steps) for each value.
    - `screening` ({"auto", "dpc", "dpc-published", "midpoint", "gap", None} or Rule): For penalties that sort the rows
      {"auto", "cumulative", "bao", None}: the test of Bao et al. (2025, eq. 20), or the stronger one of
      `screening.owl`, which is "auto".
    - `solver`: "auto" is the fastest that loss and penalty allow (`strategies`). By name: "cd", "newton" (squared
      loss), "prox-newton" (other smooth losses), "apgd" (any smooth loss and penalty), "spgd" (sorted penalties), and
      for the square-root loss "newton" and the algorithms of its paper.
    - `working_set`: False: every row that screening leaves is solved for, as in the papers on screening.
    - `lazy`: False: a full pass over the data at every value; screening then sees exact correlations where it otherwise
      has bounds from past passes, and rejects more. "dpc-published" has its own, and no working sets, in any case.
    - `tol_scaling` ({"fixed", "quadratic"}): "quadratic" multiplies `tol` by (lam/lam_max)^2, which keeps sequential
      screening sharp (mathematics 2.6).
    - `start`: A first guess, in units of the scaled columns.
    - `progress`: ``progress(k, K, value)`` after each value.
    - returns: after a KeyboardInterrupt: the finished values, marked `interrupted`.
    """
    if tol_scaling not in ("fixed", "quadratic"):
        raise ValueError(f"tol_scaling must be 'fixed' or 'quadratic'; got {tol_scaling!r}")
    solution = PathSolution(problem.loss.null.value)
    lams = np.asarray(lams, dtype=np.float64)
    goals = np.full(len(lams), tol * problem.loss.null.value)
    if tol_scaling == "quadratic" and problem.lambda_max() > 0.0:
        goals *= np.square(np.minimum(lams / problem.lambda_max(), 1.0))
    with one_blas_thread():
        walk = PathWalk(
            problem,
            len(lams),
            least=lams.min(initial=np.inf),
            max_iter=max_iter,
            screening=screening,
            solver=solver,
            working_set=working_set,
            lazy=lazy,
            start=start,
        )
        follow(solution, lambda k: walk.values(lams[k:], goals[k:]), len(lams), progress)
    solution.passes = problem.design.passes
    solution.wrong_rejections = walk.wrong_rejections
    solution.history, solution.choice = walk.history, walk.choice
    return solution
