"""Variational Newton: second order in the row norms, for the squared loss and the L2,1 penalty (plus ridge).

With ``s_j = ||W_j|| / lam_j`` and ``a = s/(1 + ridge s)`` the problem becomes a smooth convex program in as many
unknowns as there are rows, whatever the number of tasks:

    Phi(a) = 1/2 sum_t y_t' K_t(a)^-1 y_t + sum_j lam_j^2/2 a_j/(1 - ridge a_j),   a >= 0,
    K_t = I + sum_j a_j x_jt x_jt',
    r_t = K_t^-1 y_t,   c_jt = x_jt' r_t,   W_j = a_j c_j,   y - XW = r,
    dPhi/da_j = 1/2 ( lam_j^2/(1 - ridge a_j)^2 - ||c_j||^2 ),

the last line being the optimality condition of the group penalty itself. a_j = 0 is an ordinary point: rows enter and
leave through the bound of a quadratic program, never by thresholding. The Newton system, in its secular form (Newton's
method on ``1/||c_j|| = (1 - ridge a_j)/lam_j``), with ``u_j = c_j/||c_j||`` and ``K_t = L_t L_t'``, is

    M v = b,  M = Z'Z + diag(ridge ||c_j||/lam_j),  Z_j = (L_t^-1 x_jt u_jt)_t,
    b_j = ||c_j|| ( ||c_j|| (1 - ridge a_j)/lam_j - 1 ),  da_j = v_j/||c_j||;

the plain form (Newton's method on Phi itself) has, with ``l_j = lam_j/(1 - ridge a_j)``,

    b_j = (||c_j||^2 - l_j^2)/(2 ||c_j||),  and ridge l_j^2/((1 - ridge a_j) ||c_j||^2) on the diagonal.

M is formed and factored in single precision: an error of the direction is corrected by the next step, while K, r and c,
which decide where the iteration ends, stay in double.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..design import ColumnBlock
from ..penalties import row_norms
from .newton_forms import FeatureForm, SampleForm
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

_JITTER = 1e-6  # of M's mean diagonal: more rows than samples leave M singular
_JITTER_DOUBLE = 1e-13  # where M is held in double precision
DAMPING = (1e-6, 1e-4, 1e-2, 1.0, 100.0)  # of M's mean diagonal, where the undamped step fails
_ACCURACY = 3e-3  # of conjugate gradients, relative
_STALLED = 100  # steps in a row that do not lower the gap: no progress is possible in double precision


@dataclass
class _Point:
    """Phi and everything that belongs to it at one vector a."""

    a: Array
    residual: Array
    products: Array
    sizes: Array  # ||c_j||
    value: float


class VariationalNewton:
    """Keeps the work arrays of one path, for both forms of the algebra."""

    name = "newton"
    needs = Needs(losses=("squared",), plain=True, packed=True)

    def __init__(self, packed: ColumnBlock) -> None:
        self._packed = packed
        self._forms: tuple[SampleForm | FeatureForm, ...] = (SampleForm(packed), FeatureForm(packed))
        self._form: SampleForm | FeatureForm = self._forms[0]
        # the problem at hand
        self._positions = np.empty(0, dtype=np.int64)
        self._target = self._lam = np.empty(0)
        self._ridge = 0.0

    def fits(self, count: int) -> bool:
        """Whether the matrices to be factored are affordable for so many rows of W."""
        return any(form.fits(count) for form in self._forms)

    def step_work(self, count: int) -> float:
        """Operations of one Newton step with this many rows."""
        return min((form.work(count) for form in self._forms if form.fits(count)), default=np.inf)

    def solve(self, problem: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        return self.minimise(problem.positions, problem.penalty, problem.loss.target, start, tol, max_iter)

    def minimise(
        self, positions: Array, penalty: Any, target: Array, start: Array, tol: float, max_iter: int
    ) -> Solution:
        """``1/2 ||target - X W||^2 + Omega(W)`` over some columns."""
        self._positions, self._target = positions, target
        self._lam, self._ridge = penalty.group_form(), float(penalty.ridge)
        sizes = row_norms(start)
        live = int(np.count_nonzero(sizes))
        fitting = [form for form in self._forms if form.fits(live)]
        self._form = min(fitting or self._forms, key=lambda form: form.work(live))
        self._form.begin(positions, target)
        point = self._evaluate(sizes / (self._lam + self._ridge * sizes))
        if not np.isfinite(point.value):  # no factors: this start is of no use
            return Solution(start, 0, np.inf)
        steps, gap = 0, self._gap(point)
        least, stalled = gap, 0
        while gap > tol and steps < max_iter and stalled < _STALLED:
            following = self._step(point)
            steps += 1
            if following is None:  # rounding has been reached
                break
            point = following
            gap = self._gap(point)
            stalled = stalled + 1 if gap > 0.999 * least else 0
            least = min(gap, least)
        return Solution(point.a[:, None] * point.products, steps, gap)

    def _step(self, point: _Point) -> _Point | None:
        """One step: in the secular form, or else damped more and more. Where rows are nearly dependent the secular
        form's direction may lead uphill: its right-hand side is not the gradient. That of the plain form is, and
        damping bends it towards steepest descent."""
        for damping in (None, *DAMPING):
            direction = self._direction(point, damping)
            if direction is None:
                return None
            following = self._search(point, direction)
            if following is not None:
                return following
        return None

    def _evaluate(self, a: Array) -> _Point:
        positions, target = self._positions, self._target
        residual = self._form.residual(positions, a, target)
        if residual is None:
            return _Point(a, target, np.empty((0, 0)), np.empty(0), np.inf)
        products = self._packed.correlate(residual, positions)
        strengths = np.sum(self._lam * self._lam * a / (1.0 - self._ridge * a))
        value = 0.5 * float(target @ residual) + 0.5 * float(strengths)
        return _Point(a, residual, products, row_norms(products), value)

    def _gap(self, point: _Point) -> float:
        lam, ridge = self._lam, self._ridge
        rest = 1.0 - ridge * point.a
        z = point.sizes * point.sizes
        residual2 = float(point.residual @ point.residual) + ridge * float(np.sum(point.a * point.a * z))
        inner = float(np.sum(point.a * z * rest))
        penalties = float(np.sum(lam * point.a * point.sizes))
        polar = float(np.max(point.sizes * rest / lam, initial=0.0))
        return gap_of_sums(residual2, inner, penalties, polar)

    def _search(self, point: _Point, direction: Array) -> _Point | None:
        """Backtracking on Phi; the full step is nearly always taken."""
        slope = 0.5 * (np.square(self._lam / (1.0 - self._ridge * point.a)) - np.square(point.sizes))
        decrease = float(slope @ direction)

        def candidate(step: float) -> _Point:
            return self._evaluate(moved(point.a, step * direction, self._ridge))

        return backtracked(point.value, decrease, candidate, 40)

    def _direction(self, point: _Point, damping: float | None) -> Array | None:
        chosen = rows_of_step(point.a, point.sizes, self._lam)
        if len(chosen) == 0:
            return None
        count = len(chosen)
        size, a, strength = point.sizes[chosen], point.a[chosen], self._lam[chosen]
        system = self._form.system(self._positions[chosen], a, point.products[chosen] / size[:, None])
        if system is None:
            return None
        diagonal, right = sides(size, a, strength, self._ridge, plain=damping is not None)
        if damping is not None:
            diagonal = diagonal + damping * float(np.mean(system.squares + diagonal))
        lower = -a * size
        v: Array | None = None
        if self._form.direct_work(count) > self._form.iterative_work(count):
            shifted = diagonal + _JITTER * float(np.mean(system.squares + diagonal))
            v = _bounded_iterative(
                lambda vector: system.product(vector) + shifted * vector, system.squares + shifted, right, lower
            )
        if v is None:
            m = system.matrix()
            m[np.diag_indices(count)] += diagonal
            v = bounded_direct(m, right, lower)
        direction = np.zeros_like(point.a)
        direction[chosen] = v / size
        # A row that has no correlation left carries nothing.
        gone = point.sizes == 0.0
        direction[gone] = -point.a[gone]
        return direction


def gap_of_sums(square: float, inner: float, norm: float, polar: float) -> float:
    """The gap, given the square of the residual (that of the ridge included), its product with the fit, the penalty and
    the largest gauge."""
    scale = (square + inner) / square if square > 0.0 else 1.0
    if polar > 0.0:
        scale = min(scale, 1.0 / polar)
    return 0.5 * (1.0 - scale) ** 2 * square + max(norm - scale * inner, 0.0)


def rows_of_step(a: Array, sizes: Array, lam: Array) -> Array:
    """The rows that a step moves: those in use and those that enter, of which not too many."""
    active = a > 0.0
    entering = ~active & (sizes > lam)
    room = max(100, int(active.sum()))
    if entering.sum() > room:  # take the strongest only: too many false rows would fill M
        ratio = np.where(entering, sizes / lam, 0.0)
        entering = entering & (ratio >= np.partition(ratio, -room)[-room])
    return np.flatnonzero((active | entering) & (sizes > 0.0))


def moved(a: Array, change: Array, ridge: float) -> Array:
    """a after a step, inside the domain of Phi."""
    following = a + change
    following[following <= 1e-12 * a] = 0.0  # what rounding leaves of a row that goes
    return np.minimum(following, 0.5 * (a + 1.0 / ridge)) if ridge else following  # a < 1/ridge


def sides(size: Array, a: Array, strength: Array, ridge: float, *, plain: bool) -> tuple[Array, Array]:
    """What the ridge adds to the diagonal of M, and b: of the secular form, or of the plain one."""
    if not plain:
        return ridge * size / strength, size * (size * (1.0 - ridge * a) / strength - 1.0)
    rest = strength / (1.0 - ridge * a)
    return ridge * np.square(rest / size) / (1.0 - ridge * a), 0.5 * (size - rest) * (size + rest) / size


def backtracked(value: float, decrease: float, candidate: Callable[[float], Any], halvings: int) -> Any:
    """The point at the end of the first of the steps 1, 1/2, 1/4, ... that lowers Phi as its slope lets expect; None if
    there is none."""
    slack = 1e-13 * abs(value)
    if not decrease <= slack:
        return None
    step = 1.0
    for _ in range(halvings):
        found = candidate(step)
        if found.value <= value + 1e-4 * step * decrease + slack:
            return found
        step *= 0.5
    return None


def _solve_symmetric(matrix: Array, right: Array) -> Array:
    """``matrix^-1 right`` for a positive matrix that rounding may have spoilt."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix, lower=True, check_finite=False), right))
    except linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-14)[0])


def bounded_direct(m: Array, right: Array, lower: Array) -> Array:
    """``argmin 1/2 v'Mv - b'v`` over ``v >= lower``, by block pivoting on one factor of M.

    A set B of rows sits at its bound; the others follow from the factor of the whole M and the small system
    ``(M^-1)_BB``, whose solution also holds the multipliers that decide which rows to release.
    """
    count = len(right)
    single = m.dtype == np.float32
    factorise, substitute = (lapack.spotrf, lapack.spotrs) if single else (lapack.dpotrf, lapack.dpotrs)
    jitter = (_JITTER if single else _JITTER_DOUBLE) * float(np.mean(np.diag(m)))
    for _ in range(30):  # the last is far beyond any M
        m[np.diag_indices(count)] += jitter
        factor, info = factorise(m.T, lower=1)  # symmetric: the transpose is the Fortran view
        if info == 0:
            break
        jitter *= 30.0

    def solve(b: Array) -> Array:
        return np.asarray(substitute(factor, b, lower=1)[0], dtype=np.float64)

    free = solve(right)
    fixed = np.flatnonzero(free < lower)
    if len(fixed) == 0:
        return free
    inverse = np.empty((count, 0))
    known = np.empty(0, dtype=np.int64)
    for attempt in range(30):
        missing = np.setdiff1d(fixed, known)
        if len(missing):
            unit = np.zeros((count, len(missing)))
            unit[missing, np.arange(len(missing))] = 1.0
            inverse = np.hstack([inverse, solve(unit)])
            known = np.concatenate([known, missing])
        position = {int(j): i for i, j in enumerate(known)}
        columns = inverse[:, [position[int(j)] for j in fixed]]
        small = columns[fixed]
        multipliers = _solve_symmetric(small, lower[fixed] - free[fixed])
        v = free + columns @ multipliers
        v[fixed] = lower[fixed]
        below = np.setdiff1d(np.flatnonzero(v < lower), fixed)
        release = fixed[multipliers < 0.0] if attempt < 20 else np.empty(0, dtype=np.int64)
        if len(below) == 0 and len(release) == 0:
            break
        fixed = np.union1d(np.setdiff1d(fixed, release), below)
        if len(fixed) == 0:
            return free
    return np.maximum(v, lower)


def _bounded_iterative(
    product: Callable[[Array], Array], diagonal: Array, right: Array, lower: Array
) -> Array | None:
    """The same by preconditioned conjugate gradients on the free rows: M is nearly diagonal when tasks are many. None
    where it turns out to be too far from that."""
    free = np.ones(len(right), dtype=bool)
    v = np.zeros_like(right)
    residual = right.copy()  # right - M v, for fixed rows too: there its sign says which to release
    # Rows that stand at their bound and would go beyond it say nothing about how well the others are solved.
    goal = _ACCURACY * float(np.linalg.norm(np.maximum(right, lower * diagonal)))
    for _ in range(12):
        inside = np.where(free, residual, 0.0)
        preconditioned = inside / diagonal
        conjugate = preconditioned.copy()
        power = float(inside @ preconditioned)
        for _ in range(60):
            if power <= 0.0 or float(np.linalg.norm(inside)) <= goal:
                break
            image = product(conjugate)
            curvature = float(conjugate @ image)
            if not curvature > 0.0:  # lost to rounding
                return None
            length = power / curvature
            v = v + length * conjugate
            residual = residual - length * image
            inside = np.where(free, residual, 0.0)
            preconditioned = inside / diagonal
            following = float(inside @ preconditioned)
            conjugate = preconditioned + (following / power) * conjugate
            power = following
        else:
            return None
        below = free & (v < lower)
        release = ~free & (residual > 0.0)
        if not below.any() and not release.any():
            break
        if below.any():
            correction = np.where(below, lower - v, 0.0)
            v = v + correction
            residual = residual - product(correction)
        free = (free & ~below) | release
    return np.maximum(v, lower)
