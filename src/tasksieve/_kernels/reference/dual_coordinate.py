"""NumPy twins of `dual_coordinate.cpp`: descent, passes and smoothed losses of the graph models.

The twins draw the same random numbers as the compiled kernels, so their iterates agree up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .centring import exact_products
from .graph_rows import WORD
from .losses import log1p_exp, sigmoid

HINGE, SQUARED_HINGE, LOGISTIC, EPSILON, SQUARED_EPSILON = range(5)


@dataclass
class GraphProblem:
    rows: Any
    loss: int
    epsilon: float
    bias: float
    offsets: np.ndarray
    row_of: np.ndarray | None
    y: np.ndarray
    c: np.ndarray
    m: np.ndarray

    def row(self, i):
        """Row of sample i, with its constant feature."""
        index, values = self.rows.row(i if self.row_of is None else self.row_of[i])
        if self.bias > 0:
            if isinstance(index, slice):
                index = np.arange(self.rows.features)
            index, values = np.append(index, self.rows.features), np.append(values, self.bias)
        return index, values


def graph_problem(rows, loss, epsilon, bias, offsets, row_of, y, c, m):
    return GraphProblem(rows, loss, epsilon, bias, offsets, row_of, y, c, m)


def _x_log_x(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


def _fenchel(loss, epsilon, z, y, c, beta):
    """``c l(z) + c l*(-beta / c) + beta z``: the part of one sample in the gap."""
    a = y * beta
    if loss == HINGE:
        return a * (y * z - 1) + c * np.maximum(1 - y * z, 0)
    if loss == SQUARED_HINGE:
        return c * np.maximum(1 - y * z, 0) ** 2 - a * (1 - y * z) + a * a / (4 * c)
    if loss == LOGISTIC:
        return c * (log1p_exp(-y * z) + _x_log_x(a / c) + _x_log_x(1 - a / c)) + a * y * z
    over = np.maximum(np.abs(z - y) - epsilon, 0)
    base = beta * (z - y) + epsilon * np.abs(beta)
    return c * over + base if loss == EPSILON else c * over**2 + base + beta**2 / (4 * c)


def _logistic_root(margin, q, c, share):
    """Root u of ``margin + q c (sigma(u) - share) + u``."""
    reach = q * c
    low, high = -margin - reach * (1 - share), -margin + reach * share
    u = np.log(share / (1 - share)) if 0 < share < 1 else 0.5 * (low + high)
    if not low < u < high:
        u = 0.5 * (low + high)
    for _ in range(100):
        s = sigmoid(u)
        h = margin + reach * (s - share) + u
        low, high = (low, u) if h > 0 else (u, high)
        following = u - h / (1 + reach * s * (1 - s))
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - u) <= 1e-13 * (1 + abs(u)):
            return following
        u = following
    return u


def _step(loss, epsilon, z, y, c, q, beta, lowest, highest):
    """Minimiser along one coordinate, the projected gradient before it, whether the sample rests at a bound (shrinking
    takes it out), and whether it is held there for now."""
    a = y * beta
    if loss == HINGE:
        g = y * z - 1
        if a <= 0:
            projected, rests = min(g, 0.0), g > highest
        elif a >= c:
            projected, rests = max(g, 0.0), g < lowest
        else:
            projected, rests = g, False
        held = (a <= 0 or a >= c) and projected == 0
        return y * (min(max(a - g / q, 0.0), c) if q > 0 else c), projected, rests, held
    if loss == SQUARED_HINGE:
        k = 0.5 / c
        g = y * z - 1 + a * k
        new, projected = y * max(a - g / (q + k), 0.0), min(g, 0.0) if a <= 0 else g
        return new, projected, a <= 0 and g > highest, a <= 0 and g >= 0
    if loss == LOGISTIC:
        return y * c * sigmoid(_logistic_root(y * z, q, c, a / c)), 0.0, False, False
    k, top = (0.0, c) if loss == EPSILON else (0.5 / c, np.inf)
    g, h = z - y + beta * k, q + k
    up, down = g + epsilon, g - epsilon
    if beta == 0:
        projected, rests = (up if up < 0 else down if down > 0 else 0.0), up > highest and down < lowest
    elif beta >= top:
        projected, rests = max(up, 0.0), up < lowest
    elif beta <= -top:
        projected, rests = min(down, 0.0), down > highest
    else:
        projected, rests = (up if beta > 0 else down), False
    if h > 0:
        free = beta - g / h
        new = float(np.clip(np.sign(free) * max(abs(free) - epsilon / h, 0.0), -top, top))
    else:
        new = c if y > epsilon else -c if y < -epsilon else 0.0
    return new, projected, rests, (beta == 0 or abs(beta) >= top) and projected == 0


class _Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed & WORD

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return ((z ^ (z >> 31)) * n) >> 64

    def shuffle(self, values):
        for k in range(len(values) - 1, 0, -1):
            other = self.below(k + 1)
            values[k], values[other] = values[other], values[k]


def dual_descent(problem, squares, beta, w, active, counts, max_epochs, target, lowest, highest, seed):
    """Epochs of dual coordinate descent over the active samples, task by task (mathematics 8).

    A visit moves ``w_t`` alone, by ``m_tt dbeta x``; the other tasks follow at the end of the block,
    ``w_s += m_st dv_t``. A sample held at its bound is left out of the next epoch, then of three, then of seven each
    time, until a visit moves it. Returns epochs, visits, the estimated gap and the thresholds of shrinking.
    """
    random, order = (
        _Random(seed),
        [t for t in range(len(counts)) if problem.offsets[t + 1] > problem.offsets[t]],
    )
    epochs = visits = 0
    estimate = 0.0
    times, skip = (
        np.zeros(len(beta), dtype=int),
        np.zeros(len(beta), dtype=int),
    )  # of naps; epochs left of this one
    while epochs < max_epochs:
        epochs += 1
        estimate, least, most = 0.0, np.inf, -np.inf
        random.shuffle(order)
        for t in order:
            ids = active[problem.offsets[t] :][: int(counts[t])]
            awake = [i for i in ids if not skip[i]]
            skip[ids] = np.maximum(skip[ids] - 1, 0)
            random.shuffle(awake)
            resting = np.zeros(len(beta), dtype=bool)
            before = w[t].astype(np.float64)
            mtt = problem.m[t, t]
            for i in awake:
                index, values = problem.row(i)
                z = float(values @ w[t, index])
                visits += 1
                y, c = problem.y[i], problem.c[i]
                estimate += float(_fenchel(problem.loss, problem.epsilon, z, y, c, beta[i]))
                square = float(values @ values)
                if squares is not None:
                    square = squares[i if problem.row_of is None else problem.row_of[i]]
                new, projected, rests, held = _step(
                    problem.loss, problem.epsilon, z, y, c, mtt * square, beta[i], lowest, highest
                )
                if rests:
                    resting[i] = True
                    continue
                least, most = min(least, projected), max(most, projected)
                times[i] = min(times[i] + 1, 3) if held else 0
                skip[i] = 2 ** times[i] - 1
                if new != beta[i]:
                    np.add.at(w[t], index, (mtt * (new - beta[i]) * values).astype(w.dtype))
                    beta[i] = new
            counts[t] = np.count_nonzero(~resting[ids])
            ids[:] = ids[np.argsort(resting[ids], kind="stable")]
            for s in range(len(counts)):
                if s != t and problem.m[s, t] != 0:
                    w[s] += (problem.m[s, t] / mtt * (w[t] - before)).astype(w.dtype)
        highest = most if most > 0 else np.inf
        lowest = least if least < 0 else -np.inf
        if estimate <= target:
            break
    return epochs, visits, estimate, lowest, highest


def graph_pass(problem, w, beta, threads, scores, v):
    """``scores[i] = <w_t(i), x_i>`` where w is given, ``v_t = sum_i beta_i x_i`` where beta is given."""
    if v is not None:
        v[...] = 0.0
    for t in range(len(problem.offsets) - 1):
        for i in range(problem.offsets[t], problem.offsets[t + 1]):
            index, values = problem.row(i)
            if w is not None:
                scores[i] = values @ w[t, index]
            if beta is not None:
                np.add.at(v[t], index, beta[i] * values)


graph_pass_single = graph_pass


def measure_rows(problem, w, intercept, beta, threads, scores, sizes, v):
    """Scores, the sizes in them, and (where requested) V, each rounded once."""
    one, features = np.empty(1), problem.rows.features
    for t in range(len(problem.offsets) - 1):
        samples = range(problem.offsets[t], problem.offsets[t + 1])
        for i in samples:
            index, values = problem.rows.row(i if problem.row_of is None else problem.row_of[i])
            own = np.append(w[t, index].astype(np.float64), intercept[t])
            values = np.append(values, 1.0)
            exact_products(values, own, [0, len(own)], one, np.empty(1))
            scores[i], sizes[i] = one[0], np.sum(np.abs(values * own))
        if v is None:
            continue
        dense = np.zeros((len(samples), w.shape[1]))
        for k, i in enumerate(samples):
            index, values = problem.row(i)
            np.add.at(dense[k], index, values)
        for j in range(features + (problem.bias > 0)):
            exact_products(beta[samples.start : samples.stop], dense[:, j], [0, len(samples)], one, np.empty(1))
            v[t, j] = one[0]


def rebuild_table(problem, beta, threads, w):
    """``w = M V`` with ``v_t = sum_i beta_i x_i``; the squared norms of V and W."""
    v = np.empty(w.shape)
    graph_pass(problem, None, beta, threads, None, v)
    table = problem.m @ v.astype(w.dtype).astype(np.float64)
    w[...] = table
    return float(np.sum(v * v)), float(np.sum(table * table))


def fenchel_sums(problem, scores, beta):
    """Sum of the weighted losses, and of the Fenchel-Young terms of all samples."""
    used = problem.c > 0
    args = problem.loss, problem.epsilon, scores[used], problem.y[used], problem.c[used], beta[used]
    return float(np.sum(problem.c * _loss(problem, scores))), float(np.sum(np.maximum(_fenchel(*args), 0.0)))


def _ramp(u, mu):
    return np.clip(u / mu + 0.5, 0.0, 1.0)


def _derivatives(problem, z, mu):
    """First and second derivative of the loss, kinks rounded over a width mu."""
    y, e = problem.y, problem.epsilon
    if problem.loss == HINGE:
        s = _ramp(1 - y * z, mu)
        return -y * s, ((s > 0) & (s < 1)) / mu
    if problem.loss == SQUARED_HINGE:
        u = 1 - y * z
        return np.where(u > 0, -2 * y * u, 0.0), np.where(u > 0, 2.0, 0.0)
    if problem.loss == LOGISTIC:
        s = sigmoid(-y * z)
        return -y * s, s * (1 - s)
    r = z - y
    if problem.loss == EPSILON:
        up, down = _ramp(r - e, mu), _ramp(-r - e, mu)
        return up - down, (((up > 0) & (up < 1)) * 1.0 + ((down > 0) & (down < 1))) / mu
    over = np.sign(r) * np.maximum(np.abs(r) - e, 0)
    return 2 * over, np.where((np.abs(r) > e) | (e == 0), 2.0, 0.0)


def _loss(problem, z):
    if problem.loss in (HINGE, SQUARED_HINGE):
        u = np.maximum(1 - problem.y * z, 0)
        return u if problem.loss == HINGE else u * u
    if problem.loss == LOGISTIC:
        return log1p_exp(-problem.y * z)
    over = np.maximum(np.abs(z - problem.y) - problem.epsilon, 0)
    return over if problem.loss == EPSILON else over * over


def smoothed_loss(problem, scores, mu, threads, beta, curvature):
    """``beta = -c l_mu'(z)`` and ``c l_mu''(z)``; returns the sums of the true loss and of the Fenchel-Young terms."""
    first, second = _derivatives(problem, scores, mu)
    beta[...] = -problem.c * first
    curvature[...] = problem.c * second
    return fenchel_sums(problem, scores, beta)


def smoothed_slope(problem, scores, direction, step, mu, threads):
    """First and second derivative of ``sum_i c_i l_mu(z_i + step q_i)`` in the step."""
    first, second = _derivatives(problem, scores + step * direction, mu)
    return float(np.sum(problem.c * first * direction)), float(np.sum(problem.c * second * direction**2))
