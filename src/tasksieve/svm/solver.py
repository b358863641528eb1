r"""Solvers of graph-regularised tasks, and the gap that certifies their answers.

.. math::

    P(W) = \tfrac12 \sum_{st} (I + L)_{st}\, w_s \cdot w_t + \sum_i c_i\, \ell(x_i \cdot w_{t(i)}; y_i), \qquad
    D(\beta) = -\sum_i c_i\, \ell^*(-\beta_i / c_i) - \tfrac12 \sum_{st} m_{st}\, v_s \cdot v_t

with :math:`M = (I + L)^{-1}` and :math:`v_t = \sum_{i \in t} \beta_i x_i`. For every W and every feasible beta

.. math::

    P(W) - D(\beta) = \sum_i \bigl[c_i \ell(z_i) + c_i \ell^*(-\beta_i / c_i) + \beta_i z_i\bigr]
    + \tfrac12 \lVert W - M V \rVert^2_{I + L},

a sum of terms that are all >= 0: no digits are lost in a difference, and W and beta need not belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from .._kernels import kernels
from ..design.threads import one_blas_thread
from ..losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from ..losses.hinge import Hinge, SquaredHinge
from ..losses.logistic import Logistic
from ..losses.rowwise import RowLoss
from ..path.status import Status
from .certificate import dual_sizes, is_measured, rebuilt_distance

# The number by which the kernels know a loss, and the loss; as in LIBLINEAR, squares have no factor 1/2.
LOSSES: dict[str, tuple[int, Callable[[float], RowLoss]]] = {
    "hinge": (0, lambda epsilon: Hinge()),
    "squared_hinge": (1, lambda epsilon: SquaredHinge(factor=1.0)),
    "logistic": (2, lambda epsilon: Logistic()),
    "epsilon_insensitive": (3, EpsilonInsensitive),
    "squared_epsilon_insensitive": (4, lambda epsilon: SquaredEpsilonInsensitive(epsilon, factor=1.0)),
    "squared": (4, lambda epsilon: SquaredEpsilonInsensitive(0.0, factor=1.0)),
}

# Newton's method factors a matrix of (tasks x features)², and pays only where rows are many times more.
LARGEST_NEWTON = 1500
ROWS_PER_UNKNOWN = {True: 100, False: 10}  # kinked losses, smooth ones
NEWTON_STEPS = 60
PATIENCE = 1000  # epochs of the descent before Newton is tried
FIRST_ROWS = 10_000  # rows of the first, coarse problem
BLOCK = 1 << 16  # rows gathered at a time
COLUMNS = 1 << 13  # columns of all tasks that are worked on together: they stay in the processor's cache


@dataclass
class GraphProblem:
    """Rows, targets and weights in the flat sample space, and the coupling of the tasks.

    - `source`: ndarray, CSR matrix, or a prepared string source (see `StringSource`)
    - `offsets` (int64 ndarray of shape (T + 1,)): Task t is the slice ``offsets[t]:offsets[t + 1]`` of the samples.
    - `row_of` (int64 ndarray or None): Row of the source that each sample is; None: the sample's own number.
    - `y`, `c`: Targets (-1 / +1 for classes) and weights, C included; 0 leaves a sample out.
    - `coupling`, `similarity` (ndarrays of shape (T, T)): I + L and its inverse M.
    - `bias`: Size of the constant feature; 0: none.
    - `rows`, `squares`: `kernel_rows` of the source and `row_squares`, where another problem on the same rows has them
      already.
    """

    source: Any
    offsets: np.ndarray
    row_of: np.ndarray | None
    y: np.ndarray
    c: np.ndarray
    coupling: np.ndarray
    similarity: np.ndarray
    loss: str
    epsilon: float = 0.0
    bias: float = 0.0
    threads: int = 1
    rows: Any = None
    squares: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.loss == "squared":
            self.epsilon = 0.0
        self.code, loss = LOSSES[self.loss]
        self.row_loss = loss(self.epsilon)
        self._null: float | None = None
        if self.rows is None:
            self.rows = kernel_rows(self.source, self.threads)
        self.handle = kernels.graph_problem(
            self.rows,
            self.code,
            self.epsilon,
            self.bias,
            self.offsets,
            self.row_of,
            self.y,
            self.c,
            self.similarity,
        )
        self.dtype = np.float32 if isinstance(self.source, StringSource) else np.float64
        self.width = self.source.shape[1] + (self.bias > 0)

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @property
    def n_entries(self) -> int:
        """The most entries that a row can have."""
        return self.source.n_entries if isinstance(self.source, StringSource) else self.width

    @property
    def dense(self) -> bool:
        return isinstance(self.source, np.ndarray)

    @property
    def kinked(self) -> bool:
        """Whether Newton's method sees the loss rounded."""
        return not np.isfinite(self.row_loss.smoothness)

    def null_objective(self) -> float:
        """The objective at W = 0."""
        if self._null is None:
            with np.errstate(over="ignore"):
                self._null = float(np.dot(self.c, self.row_loss.value(self.y, np.zeros_like(self.y))))
        return self._null

    def row_squares(self) -> np.ndarray:
        """Squared norms of the rows, constant feature included."""
        if self.squares is None:
            self.squares = np.empty(self.source.shape[0])
            kernels.row_squares(self.rows, self.threads, self.squares)
            self.squares += self.bias**2
        return self.squares

    def sample_squares(self) -> np.ndarray:
        """The same of every sample; of strings, where features collide in the table, an upper bound."""
        if isinstance(self.source, StringSource):
            return np.full(self.n_samples, self.source.largest_size() ** 2 + self.bias**2)
        squares = self.row_squares()
        return squares[: self.n_samples] if self.row_of is None else squares[self.row_of]

    def scores(self, w: np.ndarray) -> np.ndarray:
        out = np.empty(self.n_samples)
        self._pass(w, None, out, None)
        return out

    def combine(self, beta: np.ndarray) -> np.ndarray:
        """V: v_t = the sum of beta_i x_i over task t."""
        v = np.empty((self.n_tasks, self.width))
        self._pass(None, beta, None, v)
        return v

    def _pass(self, w: Any, beta: Any, scores: Any, v: Any) -> None:
        run = kernels.graph_pass_single if self.dtype == np.float32 else kernels.graph_pass
        run(self.handle, w, beta, self.threads, scores, v)

    def rebuild(self, beta: np.ndarray, w: np.ndarray) -> float:
        """W = M V(beta), in place; of strings the norm of V."""
        v_square, _ = kernels.rebuild_table(self.handle, beta, self.threads, w)
        return float(np.sqrt(v_square))

    def certify_rebuilt(self, w: np.ndarray, beta: np.ndarray) -> Certificate:
        """Objective and gap of W = M V(beta), which is written to w: nothing of the size of W is needed besides."""
        length = self.rebuild(beta, w)
        scores = self.scores(w)
        loss, terms = kernels.fenchel_sums(self.handle, scores, beta)
        if self.dtype == np.float64:  # at W = M V: (I + L) W = V, and <W, V> is the sum of beta_i z_i
            return Certificate(0.5 * float(np.dot(beta, scores)) + loss, terms, scores)
        penalty = self.penalty(w)
        apart = rebuilt_distance(self, dual_sizes(self, beta), length, penalty)
        return Certificate(penalty + loss, terms + 0.5 * apart * apart, scores, length)

    def penalty(self, w: np.ndarray) -> float:
        """½ <W, (I + L) W>, in blocks of columns."""
        total = 0.0
        for start in range(0, self.width, COLUMNS):
            block = w[:, start : start + COLUMNS].astype(np.float64)
            total += 0.5 * float(np.sum(block * (self.coupling @ block)))
        return total


@dataclass
class Certificate:
    """As a solver sees it on the way: sums of double precision taken for exact."""

    objective: float
    gap: float
    scores: np.ndarray
    length: float = 0.0


@dataclass
class StringSource:
    """Strings of one length and what turns them into hashed features: arguments of ``string_rows``."""

    text: np.ndarray
    letters: np.ndarray
    bits: int
    direct: int
    offset: np.ndarray
    weight: np.ndarray
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.text), self.n_features

    @property
    def n_entries(self) -> int:
        return len(self.weight) * self.text.shape[1]

    def largest_size(self) -> float:
        """The most that the features of one string can add up to."""
        positions = np.maximum(self.text.shape[1] - np.arange(len(self.weight)), 0)
        return float(self.weight.astype(np.float64) @ positions)

    def square(self) -> float:
        """Squared length of a row where no two features collide in the table."""
        positions = np.maximum(self.text.shape[1] - np.arange(len(self.weight)), 0)
        return float(self.weight.astype(np.float64) ** 2 @ positions)

    def rows(self) -> Any:
        return kernels.string_rows(
            self.text, self.letters, self.bits, self.direct, self.offset, self.weight, self.n_features
        )


def kernel_rows(source: Any, threads: int = 1) -> Any:
    """The rows as kernels read them: as they lie in memory; dense ones that are mostly zeros are packed."""
    if isinstance(source, StringSource):
        return source.rows()
    if scipy.sparse.issparse(source):
        return kernels.sparse_rows(source.data, source.indices, source.indptr, source.shape[1])
    return kernels.dense_rows(source, threads)


@dataclass
class Solution:
    """W with its certificate; ``visits`` counts rows read by the descent, ``checks`` the certificates computed.

    - `length`: The norm of V(beta) where W is a table of single precision.
    - `seen`: The lowest objective on the way and its W: dual methods do not go downhill in it.
    - `intercept` (ndarray of shape (n_tasks,)): As it is stored.
    - `limited_by_rounding`: The solver has met its goal, but not with the rounding of the stored numbers.
    """

    w: np.ndarray
    beta: np.ndarray
    objective: float
    gap: float
    null: float
    n_iter: int
    converged: bool
    solver: str
    visits: int = 0
    checks: int = 0
    length: float = 0.0
    seen: tuple[float, np.ndarray] | None = None
    intercept: np.ndarray = field(default_factory=lambda: np.zeros(0))
    limited_by_rounding: bool = False

    @property
    def status(self) -> Status:
        """How it ended; Newton's method ends where it finds no better step, the descent by its epochs."""
        if self.converged:
            return Status.CONVERGED
        if self.limited_by_rounding:
            return Status.ROUNDING
        return Status.STALLED if self.solver == "newton" else Status.ITERATIONS


Progress = Callable[[str, int, float], None]


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
    """Solve to ``gap <= tol * (objective at W = 0)``.

    - `max_iter`: Epochs of the descent.
    - `solver`: {"auto", "dual", "newton"}
    - `seed`: Of the random orders.
    - `start` (float64 ndarray of shape (N,)): A feasible dual point to start from.
    - `progress`: Called with the name of the method, its step and the relative gap.
    """
    null = problem.null_objective()
    if null <= 0.0 or not problem.n_samples:
        beta = np.zeros(problem.n_samples)
        w = np.zeros((problem.n_tasks, problem.width), dtype=problem.dtype)
        return Solution(w, beta, max(null, 0.0), 0.0, null, 1, True, "none")
    newton = solver == "newton" or (solver == "auto" and newton_pays(problem))
    steps = 0
    if newton:
        found = smoothed_newton(problem, tol * null, progress)
        steps = found.n_iter
        if found.converged or solver == "newton":
            return found
        start = found.beta
    # Badly scaled features can hold the descent up for ever; where Newton's matrix is small, it is tried in between.
    rescue = solver == "auto" and not newton and problem.dense and max_iter > PATIENCE
    rescue = rescue and problem.n_tasks * problem.width <= LARGEST_NEWTON
    found = dual_coordinate_descent(
        problem, tol * null, PATIENCE if rescue else max_iter, seed, start, progress
    )
    if rescue and not found.converged:
        tried = smoothed_newton(problem, tol * null, progress, found.w)
        tried.n_iter, tried.visits = tried.n_iter + found.n_iter, found.visits
        if tried.converged:
            return tried
        better = tried if tried.gap < found.gap else found
        earlier = found.seen, (tried.objective, tried.w)
        found = dual_coordinate_descent(problem, tol * null, max_iter - PATIENCE, seed, better.beta, progress)
        steps, found.visits = tried.n_iter, found.visits + tried.visits
        lowest = min(
            (one for one in (*earlier, found.seen) if one is not None), key=lambda one: one[0], default=None
        )
        if better.gap < found.gap:
            found.w, found.beta, found.objective, found.gap = (
                better.w,
                better.beta,
                better.objective,
                better.gap,
            )
        found.seen = lowest
    found.n_iter += steps
    return found


# --- dual coordinate descent -------------------------------------------------------------------------------------


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
    n, offsets = problem.n_samples, problem.offsets
    beta = np.zeros(n) if start is None else start.copy()
    null = problem.null_objective()
    # strings count their features at every visit anyway
    squares = None if isinstance(problem.source, StringSource) else problem.row_squares()
    w = np.zeros((problem.n_tasks, problem.width), dtype=problem.dtype)
    if start is None and problem.loss == "logistic":  # the entropy's gradient is infinite at 0
        beta[:] = problem.c * problem.row_loss.slope(problem.y, np.zeros_like(problem.y))
        start = beta
    if start is not None:
        problem.rebuild(beta, w)
    resting = problem.c <= 0.0
    proven = resting.copy()
    active, counts = _active(resting, offsets)
    lowest, highest, target = -np.inf, np.inf, tol
    epochs = visits = checks = 0
    seen: tuple[float, np.ndarray] | None = None
    while True:
        done, read, _, lowest, highest = kernels.dual_descent(
            problem.handle, squares, beta, w, active, counts, max(1, max_iter - epochs), target, lowest, highest,
            (seed + 1) * 1_000_003 + epochs,
        )  # fmt: skip
        epochs, visits, checks = epochs + done, visits + read, checks + 1
        certificate = problem.certify_rebuilt(
            w, beta
        )  # which also sheds the rounding that increments have gathered
        if progress is not None:
            progress("dual coordinate descent", epochs, certificate.gap / null)
        if certificate.gap <= tol or epochs >= max_iter:
            break
        if is_measured(problem) and certificate.objective < (seen[0] if seen else null):
            seen = certificate.objective, w.copy()
        slack = bound_slack(problem, certificate.scores, beta)
        proven |= slack > np.sqrt(2.0 * certificate.gap * score_reach(problem)) * (1 + 1e-9)
        resting = proven | (
            slack > max(highest if highest < np.inf else 0.0, -lowest if lowest > -np.inf else 0.0)
        )
        active, counts = _active(resting, offsets)
        if not counts.any():
            active, counts = _active(proven, offsets)
        target = max(0.85 * target, 0.1 * tol)  # the estimate was too low
        lowest, highest = -np.inf, np.inf
    return Solution(
        w,
        beta,
        certificate.objective,
        certificate.gap,
        null,
        epochs,
        certificate.gap <= tol,
        "dual",
        visits,
        checks,
        certificate.length,
        seen,
    )


def _active(resting: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The samples that do not rest, in front of their task's part; and how many they are."""
    active = np.zeros(len(resting), dtype=np.int64)
    counts = np.zeros(len(offsets) - 1, dtype=np.int64)
    for t, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        awake = np.flatnonzero(~resting[begin:end]) + begin
        active[begin : begin + len(awake)] = awake
        counts[t] = len(awake)
    return active, counts


def score_reach(problem: GraphProblem) -> np.ndarray:
    """m_tt ||x||² of every sample: its square root is how far a score moves where W moves by 1."""
    return problem.sample_squares() * np.repeat(np.diag(problem.similarity), np.diff(problem.offsets))


def bound_slack(problem: GraphProblem, scores: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """How far the score of a sample may move before it leaves its bound; -inf for samples that are at none.

    By strong convexity no score moves further than sqrt(2 gap m_tt ||x||²) from here to the optimum, so a larger slack
    proves that the sample stays at its bound.
    """
    slack = np.full(len(beta), -np.inf)
    if problem.code in (0, 1):
        a, g = problem.y * beta, problem.y * scores - 1.0
        low = a <= 0.0
        slack[low] = g[low]
        if problem.code == 0:
            high = a >= problem.c
            slack[high] = -g[high]
    elif problem.code in (3, 4) and problem.epsilon > 0:
        g = scores - problem.y
        zero = beta == 0.0
        slack[zero] = problem.epsilon - np.abs(g[zero])
    if problem.code == 3:
        g = scores - problem.y
        for sign in (1.0, -1.0):
            at = (sign * beta >= problem.c) & (problem.c > 0)
            slack[at] = -sign * g[at] - problem.epsilon
    return slack


# --- Newton's method for many rows of few features -----------------------------------------------------------------


def newton_pays(problem: GraphProblem) -> bool:
    """Dense rows, few unknowns, many rows for each: counted, not timed: an input always takes the same solver."""
    unknowns = problem.n_tasks * problem.width
    if not problem.dense or unknowns > LARGEST_NEWTON:
        return False
    return problem.n_samples >= ROWS_PER_UNKNOWN[problem.kinked] * unknowns


def smoothed_newton(
    problem: GraphProblem, tol: float, progress: Progress | None = None, start: np.ndarray | None = None
) -> Solution:
    """Newton's method on the loss with its kinks rounded over a width mu, which shrinks as far as the gap requires.

    At any W the point beta_i = -c_i l_mu'(z_i) is feasible, and what rounding adds to the gap falls with mu²: the
    wanted gap
    is certified at a mu that is far from tiny, where only the few rows near a kink enter the Hessian. A coarse problem
    of every k-th row gives the start. Kinked losses may stall where very many rows crowd one kink; then ``converged``
    is
    False and the descent takes over from ``beta``.
    """
    null = problem.null_objective()
    scale = 1.0 if problem.code <= 2 else float(np.max(np.abs(problem.y), initial=1e-300))
    mu = 2.5 * scale
    w = np.zeros((problem.n_tasks, problem.width)) if start is None else start
    steps = 0
    strides = []
    stride = problem.n_samples // FIRST_ROWS
    while stride >= 4 and start is None:
        strides.append(stride)
        stride //= 12
    for stride in strides:
        coarse = _every(problem, stride)
        part = _newton(coarse, max(tol, 3e-3 * coarse.null_objective() / stride**0.25), w, mu, scale, None)
        if not np.all(np.isfinite(part[0])):
            break
        w, mu, steps = part[0], min(mu, max(part[2], 0.05 * scale)), steps + part[3]
    w, beta, mu, taken, certificate = _newton(problem, tol, w, mu, scale, progress)
    converged = certificate.gap <= tol
    return Solution(
        w, beta, certificate.objective, certificate.gap, null, max(1, steps + taken), converged, "newton"
    )


def _every(problem: GraphProblem, stride: int) -> GraphProblem:
    """Every stride-th sample, with its weight times stride."""
    chosen = np.arange(0, problem.n_samples, stride)
    rows = slice(0, problem.n_samples, stride) if problem.row_of is None else problem.row_of[chosen]
    return GraphProblem(
        np.ascontiguousarray(problem.source[rows]), np.searchsorted(chosen, problem.offsets).astype(np.int64), None,
        problem.y[chosen], problem.c[chosen] * stride, problem.coupling, problem.similarity, problem.loss,
        problem.epsilon, problem.bias, problem.threads,
    )  # fmt: skip


def _newton(
    problem: GraphProblem, tol: float, w: np.ndarray, mu: float, scale: float, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray, float, int, Certificate]:
    """Newton steps from w: W, beta, mu, steps, certificate of the pair that is returned."""
    kinked = problem.kinked
    null = problem.null_objective()
    coupling, similarity, handle, threads = (
        problem.coupling,
        problem.similarity,
        problem.handle,
        problem.threads,
    )
    w = w.copy()
    z = problem.scores(w)
    beta, curvature = np.empty(problem.n_samples), np.empty(problem.n_samples)
    best = (np.inf, w, np.zeros(problem.n_samples), null)
    step = 0
    while step < NEWTON_STEPS:
        loss, rounding = kernels.smoothed_loss(handle, z, mu, threads, beta, curvature)
        v = problem.combine(beta)
        rest = w - similarity @ v
        stationarity = 0.5 * max(float(np.sum(rest * (coupling @ rest))), 0.0)
        gap = max(rounding, 0.0) + stationarity
        if gap < best[0]:
            best = (gap, w.copy(), beta.copy(), loss)
        if progress is not None:
            progress("Newton", step, gap / null)
        if gap <= tol:
            break
        if kinked and stationarity < 2.0 * rounding and rounding > 0.6 * tol:
            mu *= max(0.25, np.sqrt(0.5 * tol / rounding))
            if mu < 1e-9 * scale:
                break
            if stationarity < 0.02 * rounding:
                continue  # nothing to be gained at the old mu
            _, rounding = kernels.smoothed_loss(handle, z, mu, threads, beta, curvature)
            v = problem.combine(beta)
        if kinked and step > 8 and mu < 0.2 * scale and np.count_nonzero(curvature) > 0.2 * problem.n_samples:
            break  # a crowd at the kink
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
    return w, beta, mu, step, Certificate(problem.penalty(w) + loss, gap, z)


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
    solution: np.ndarray = -scipy.linalg.cho_solve(factor, gradient.ravel(), check_finite=False).reshape(
        tasks, width
    )
    return solution if np.all(np.isfinite(solution)) else None


def _line_search(
    problem: GraphProblem,
    w: np.ndarray,
    z: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    gradient: np.ndarray,
    mu: float,
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
