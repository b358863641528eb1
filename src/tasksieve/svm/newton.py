"""Newton's method for many rows of few features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from .._kernels import kernels
from ..design.threads import one_blas_thread
from .certificate import BLOCK
from .problem import GraphProblem, KernelRows, Progress, Solution

# A matrix of (tasks x features)² is factored: that pays only where rows are many times more.
LARGEST = 1500
ROWS_PER_UNKNOWN = {True: 100, False: 10}  # kinked losses, smooth ones
STEPS = 60
FIRST_ROWS = 10_000  # rows of the first, coarse problem


def newton_fits(problem: GraphProblem) -> bool:
    """Whether rows are dense and unknowns few."""
    return problem.rows.dense and problem.n_tasks * problem.width <= LARGEST


def newton_pays(problem: GraphProblem) -> bool:
    """Many rows for each unknown: counted, not timed, so that an input always takes the same solver."""
    enough = ROWS_PER_UNKNOWN[problem.kinked] * problem.n_tasks * problem.width
    return newton_fits(problem) and problem.n_samples >= enough


def smoothed_newton(
    problem: GraphProblem, tol: float, progress: Progress | None = None, start: np.ndarray | None = None
) -> Solution:
    """Newton's method on the loss with its kinks rounded over a width mu, which shrinks as far as the gap requires.

    At any W the point beta_i = -c_i l_mu'(z_i) is feasible, and what rounding adds to the gap falls with mu²: the
    wanted gap is certified at a mu that is far from tiny, where only the few rows near a kink enter the Hessian. A
    coarse problem of every k-th row gives the start. Kinked losses may stall where very many rows crowd one kink; then
    ``converged`` is False and the descent takes over from ``beta``.
    """
    scale = 1.0 if problem.code <= 2 else float(np.max(np.abs(problem.y), initial=1e-300))
    mu = 2.5 * scale
    w = np.zeros((problem.n_tasks, problem.width)) if start is None else start
    steps, stride = 0, problem.n_samples // FIRST_ROWS
    while stride >= 4 and start is None:
        coarse = _every(problem, stride)
        part, reached = _newton(coarse, max(tol, 3e-3 * coarse.null / stride**0.25), w, mu, scale, None)
        if not np.all(np.isfinite(part.w)):
            break
        w, mu, steps = part.w, min(mu, max(reached, 0.05 * scale)), steps + part.n_iter
        stride //= 12
    found, _ = _newton(problem, tol, w, mu, scale, progress)
    found.n_iter = max(1, steps + found.n_iter)
    return found


def _every(problem: GraphProblem, stride: int) -> GraphProblem:
    """Every stride-th sample, with its weight times stride."""
    chosen = np.arange(0, problem.n_samples, stride)
    source = problem.source[slice(0, problem.n_samples, stride) if problem.row_of is None else problem.row_of[chosen]]
    return replace(
        problem,
        rows=KernelRows(np.ascontiguousarray(source), problem.rows.shape),
        offsets=np.searchsorted(chosen, problem.offsets).astype(np.int64),
        row_of=None,
        y=problem.y[chosen],
        c=problem.c[chosen] * stride,
    )


def _newton(
    problem: GraphProblem, tol: float, w: np.ndarray, mu: float, scale: float, progress: Progress | None
) -> tuple[Solution, float]:
    """Newton steps from w: the best pair on the way, and mu at the end."""
    coupling, handle, threads = problem.coupling, problem.handle, problem.threads
    w = w.copy()
    z = problem.scores(w)
    beta, curvature = np.empty(problem.n_samples), np.empty(problem.n_samples)
    best = (np.inf, w, np.zeros(problem.n_samples), problem.null)
    step = 0
    while step < STEPS:
        loss, rounding = kernels.smoothed_loss(handle, z, mu, threads, beta, curvature)
        v = problem.combine(beta)
        rest = w - problem.similarity @ v
        stationarity = 0.5 * max(float(np.sum(rest * (coupling @ rest))), 0.0)
        gap = max(rounding, 0.0) + stationarity
        if gap < best[0]:
            best = (gap, w.copy(), beta.copy(), loss)
        if progress is not None:
            progress("Newton", step, gap / problem.null)
        if gap <= tol:
            break
        if problem.kinked and stationarity < 2.0 * rounding and rounding > 0.6 * tol:
            mu *= max(0.25, np.sqrt(0.5 * tol / rounding))
            if mu < 1e-9 * scale:
                break
            if stationarity < 0.02 * rounding:
                continue  # nothing to be gained at the old mu
            _, rounding = kernels.smoothed_loss(handle, z, mu, threads, beta, curvature)
            v = problem.combine(beta)
        crowded = np.count_nonzero(curvature) > 0.2 * problem.n_samples
        if problem.kinked and step > 8 and mu < 0.2 * scale and crowded:
            break  # at the kink
        gradient = coupling @ w - v
        with one_blas_thread():  # a small matrix: threads of BLAS would wait for each other
            direction = _direction(problem, curvature, gradient)
        if direction is None:
            break
        q = problem.scores(direction)
        length = _line_search(problem, w, z, direction, q, gradient, mu)
        if length <= 0.0:
            break
        w = w + length * direction
        z += length * q
        step += 1
    gap, w, beta, loss = best
    objective = problem.penalty(w) + loss
    seen = objective, w
    return Solution(w, beta, objective, gap, problem.null, step, gap <= tol, "newton", seen=seen), mu


def _direction(problem: GraphProblem, curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
    """Solve (I + L) P + blockdiag(X' curvature X) P = -gradient."""
    tasks, width = gradient.shape
    hessian = np.kron(problem.coupling, np.eye(width))
    for t in range(tasks):
        begin, end = problem.offsets[t], problem.offsets[t + 1]
        band = np.flatnonzero(curvature[begin:end]) + begin
        block = hessian[t * width : (t + 1) * width, t * width : (t + 1) * width]
        for start in range(0, len(band), BLOCK):
            chosen = band[start : start + BLOCK]
            rows = problem.source[chosen if problem.row_of is None else problem.row_of[chosen]]
            scaled = np.empty((len(chosen), width))
            scaled[:, : rows.shape[1]] = rows
            if problem.bias > 0:
                scaled[:, -1] = problem.bias
            scaled *= np.sqrt(curvature[chosen])[:, None]
            block += scaled.T @ scaled
    try:
        factor = scipy.linalg.cho_factor(hessian, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    solution = -scipy.linalg.cho_solve(factor, gradient.ravel(), check_finite=False)
    return solution.reshape(tasks, width) if np.all(np.isfinite(solution)) else None


def _line_search(
    problem: GraphProblem, w: np.ndarray, z: np.ndarray, p: np.ndarray, q: np.ndarray, gradient: np.ndarray, mu: float
) -> float:
    """A step where the slope along p has lost most of its size: Newton in one dimension, kept in a bracket."""
    start = float(np.sum(gradient * p))
    if not start < 0.0:
        return 0.0
    curvature = float(np.sum(p * (problem.coupling @ p)))
    base = float(np.sum(p * (problem.coupling @ w)))
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(25):
        first, second = kernels.smoothed_slope(problem.handle, z, q, length, mu, problem.threads)
        slope = first + base + length * curvature
        if abs(slope) <= 0.1 * -start:
            return length
        if slope > 0:
            high = length
        else:
            low = length
        following = length - slope / max(second + curvature, 1e-300)
        if not low < following < high:
            following = 0.5 * (low + high) if high < np.inf else 2.0 * length
        length = following
    return low if low > 0 else length
