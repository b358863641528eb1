"""Two first-order methods for ``f + g`` with f smooth and g easy: SpaRSA and FISTA, as the papers use them.

The calibrated model uses both on its dual (g: the unit balls) and on its smoothed primal (g: the L2,1 norm).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Smooth:
    """f at one point: its value, its gradient, and whatever else was computed on the way."""

    point: Array
    value: float
    gradient: Array
    more: Any = None


@dataclass
class Composite:
    """``f + g``: ``smooth(x)`` gives f, ``simple(x)`` g, and ``prox(x, eta)`` = argmin_v g(v) + eta/2 ||v - x||^2."""

    smooth: Callable[[Array], Smooth]
    prox: Callable[[Array, float], Array]
    simple: Callable[[Array], float]


# Callback after each iteration: the new point, and where the last gradient was taken. True stops the method.
Watch = Callable[[Smooth, Smooth], bool]


def sparsa(problem: Composite, start: Array, bound: float, watch: Watch, max_iter: int) -> tuple[Smooth, int]:
    """Spectral proximal gradient with a non-monotone line search (Wright, Nowak and Figueiredo 2009).

    ``x+ = prox(x - g/al, al)``, accepted when ``F(x+) <= max of the last 10 F - 1e-4/2 al ||x+ - x||^2``, else al
    doubles; the next al is ``<dx, dg>/<dx, dx>`` (Barzilai and Borwein) within ``[1e-6 L, 100 L]``.

    - `bound`: L, or an estimate of it: it only fixes the scale of the steps.
    """
    at = problem.smooth(start)
    recent = deque([at.value + problem.simple(at.point)], maxlen=10)
    al = bound
    for iteration in range(1, max_iter + 1):
        for _ in range(60):
            following = problem.smooth(problem.prox(at.point - at.gradient / al, al))
            change = following.point - at.point
            square = float(np.vdot(change, change))
            value = following.value + problem.simple(following.point)
            if value <= max(recent) - 0.5e-4 * al * square + 1e-15 * abs(value):
                break
            al *= 2.0
        recent.append(value)
        product = float(np.vdot(change, following.gradient - at.gradient))
        before, at = at, following
        if watch(at, before) or square == 0.0:
            return at, iteration
        al = float(np.clip(product / square, 1e-6 * bound, 100.0 * bound))
    return at, max_iter


def fista(problem: Composite, start: Array, bound: float, watch: Watch, max_iter: int) -> tuple[Smooth, int]:
    """Accelerated proximal gradient with backtracking (Beck and Teboulle 2009), without restarts.

    ``v = x_k + (t_{k-1} - 1)/t_k (x_k - x_{k-1})``, ``x_{k+1} = prox(v - g(v)/eta, eta)``, accepted when
    ``f(x_{k+1}) <= f(v) + <g(v), x_{k+1} - v> + eta/2 ||x_{k+1} - v||^2``, else eta doubles (Gong et al., Algorithm 1).

    - `bound`: The first eta; at most twice the Lipschitz constant of the gradient.
    """
    last, now, t_last, t_now, eta = start, start, 1.0, 1.0, bound
    at = problem.smooth(start)
    for iteration in range(1, max_iter + 1):
        v = at if t_last == 1.0 else problem.smooth(now + (t_last - 1.0) / t_now * (now - last))
        for _ in range(60):
            following = problem.smooth(problem.prox(v.point - v.gradient / eta, eta))
            change = following.point - v.point
            model = v.value + float(np.vdot(v.gradient, change)) + 0.5 * eta * float(np.vdot(change, change))
            if following.value <= model + 1e-14 * abs(model):
                break
            eta *= 2.0
        last, now, at = now, following.point, following
        t_last, t_now = t_now, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t_now * t_now))
        if watch(at, v):
            return at, iteration
    return at, max_iter
