"""The solver of graph-regularised tasks: dual coordinate descent, and where Newton's method takes its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._kernels import kernels
from .certificate import is_measured
from .newton import newton_fits, newton_pays, smoothed_newton
from .problem import GraphProblem, Progress, Solution

PATIENCE = 1000  # epochs of the descent before Newton is tried


def solve(
    problem: GraphProblem,
    *,
    tol: float,
    max_iter: int,
    solver: str = "auto",
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Solve to ``gap <= tol * (objective at W = 0)``, from a feasible dual point `start` if there is one."""
    null = problem.null
    if null <= 0.0 or not problem.n_samples:
        beta = np.zeros(problem.n_samples)
        w = np.zeros((problem.n_tasks, problem.width), dtype=problem.dtype)
        return Solution(w, beta, max(null, 0.0), 0.0, null, 1, True, "none")
    goal = tol * null

    def descend(epochs: int, start: np.ndarray | None) -> Solution:
        return dual_coordinate_descent(problem, goal, epochs, seed, start, progress)

    if solver == "newton" or (solver == "auto" and newton_pays(problem)):
        tried = smoothed_newton(problem, goal, progress)
        if tried.converged or solver == "newton":
            return tried
        found = descend(max_iter, tried.beta)
        found.n_iter += tried.n_iter
        return found
    if not (solver == "auto" and newton_fits(problem) and max_iter > PATIENCE):
        return descend(max_iter, start)
    # Badly scaled features can hold the descent up for ever; where Newton's matrix is small, it is tried in between.
    runs = [descend(PATIENCE, start)]
    if not runs[0].converged:
        runs.append(smoothed_newton(problem, goal, progress, runs[0].w))
    if not runs[-1].converged:
        better = min(runs, key=lambda run: run.gap)
        runs.append(descend(max_iter - PATIENCE, better.beta))
    return replace(
        min(reversed(runs), key=lambda run: run.gap),
        n_iter=sum(run.n_iter for run in runs),
        visits=sum(run.visits for run in runs),
        solver=runs[-1].solver,
        seen=min((run.seen for run in runs if run.seen is not None), key=lambda seen: seen[0], default=None),
    )


def dual_coordinate_descent(
    problem: GraphProblem,
    tol: float,
    max_iter: int,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Task-blocked dual coordinate descent with shrinking (Widmer et al. 2012, Algorithm 1; mathematics 8).

    Samples held at a bound are skipped for a few epochs (see the kernel), so that most visits change something.

    The kernel runs epochs over the active samples until the gap that it estimates on the way is small, then one pass
    over all rows computes the true gap. If that is too large, samples that no longer rest at their bounds come back;
    those which the gap proves to stay there (`proven`) never do.
    """
    beta = np.zeros(problem.n_samples) if start is None else start.copy()
    null = problem.null
    # strings count their features at every visit anyway
    squares = None if problem.rows.strings else problem.rows.squares
    w = np.zeros((problem.n_tasks, problem.width), dtype=problem.dtype)
    if start is None and problem.loss == "logistic":  # the entropy's gradient is infinite at 0
        beta[:] = problem.c * problem.row_loss.slope(problem.y, np.zeros_like(problem.y))
        start = beta
    if start is not None:
        problem.rebuild(beta, w)
    proven = problem.c <= 0.0
    active, counts = _active(proven, problem.offsets)
    target = tol
    epochs = visits = 0
    seen: tuple[float, np.ndarray] | None = None
    while True:
        done, read, _, lowest, highest = kernels.dual_descent(
            problem.handle, squares, beta, w, active, counts, max(1, max_iter - epochs), target, -np.inf, np.inf,
            (seed + 1) * 1_000_003 + epochs,
        )  # fmt: skip
        epochs, visits = epochs + done, visits + read
        # this also sheds the rounding that increments have gathered
        objective, gap, scores, length = problem.certify_rebuilt(w, beta)
        if progress is not None:
            progress("dual coordinate descent", epochs, gap / null)
        if gap <= tol or epochs >= max_iter:
            break
        if is_measured(problem) and objective < (seen[0] if seen else null):
            seen = objective, w.copy()
        slack = bound_slack(problem, scores, beta)
        # m_tt ||x||²: its square root is how far a score moves where W moves by 1
        reach = problem.sample_squares() * np.repeat(np.diag(problem.similarity), np.diff(problem.offsets))
        proven |= slack > np.sqrt(2.0 * gap * reach) * (1 + 1e-9)
        bound = max(highest if highest < np.inf else 0.0, -lowest if lowest > -np.inf else 0.0)
        active, counts = _active(proven | (slack > bound), problem.offsets)
        if not counts.any():
            active, counts = _active(proven, problem.offsets)
        target = max(0.85 * target, 0.1 * tol)  # the estimate was too low
    return Solution(w, beta, objective, gap, null, epochs, gap <= tol, "dual", visits, length, seen)


def _active(resting: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The samples that do not rest, in front of their task's part; and how many they are."""
    active = np.zeros(len(resting), dtype=np.int64)
    counts = np.zeros(len(offsets) - 1, dtype=np.int64)
    for t, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        awake = np.flatnonzero(~resting[begin:end]) + begin
        active[begin : begin + len(awake)] = awake
        counts[t] = len(awake)
    return active, counts


def bound_slack(problem: GraphProblem, scores: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """How far the score of a sample may move before it leaves its bound; -inf for samples that are at none.

    By strong convexity no score moves further than sqrt(2 gap m_tt ||x||²) from here to the optimum, so a larger slack
    proves that the sample stays at its bound.
    """
    slack = np.full(len(beta), -np.inf)
    if problem.loss in ("hinge", "squared_hinge"):
        a, g = problem.y * beta, problem.y * scores - 1.0
        low = a <= 0.0
        slack[low] = g[low]
        if problem.loss == "hinge":
            high = a >= problem.c
            slack[high] = -g[high]
        return slack
    g = scores - problem.y
    if problem.epsilon > 0:
        zero = beta == 0.0
        slack[zero] = problem.epsilon - np.abs(g[zero])
    if problem.loss == "epsilon_insensitive":
        for sign in (1.0, -1.0):
            at = (sign * beta >= problem.c) & (problem.c > 0)
            slack[at] = -sign * g[at] - problem.epsilon
    return slack
