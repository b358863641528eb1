"""Accelerated proximal gradient, with safe screening on the way: any smooth loss, any penalty with a prox.

For Group OWL it is Algorithm 1 of Bao et al. (2025); for row penalties the kind of solver that the screening papers
speed up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..losses import DataLoss
from .best_dual import BestDual
from .curvature import estimate_curvature, packed_if_few, pass_work
from .fixed_point import polished
from .working import Needs, Solution, WorkingProblem

Array = np.ndarray[Any, Any]

CHECK_EVERY = 10
_CRAWLING = 200  # steps after which Newton's method is tried on the fixed points, and again after each doubling
_ROUNDING = 1e-15
_CALLS = 3e6  # operations in the time that the calls of a step take


class Accelerated:
    """FISTA with restarts; keeps what one solve learned about the curvature for the next.

    The step is 1/curvature times the loss's smoothness, the momentum a sequence of its own (the paper uses one
    symbol for both); it starts again where it points uphill and when rows are dropped that were not yet zero. With
    `adaptive` the curvature follows what the steps see, downwards as well.
    """

    name = "apgd"
    needs = Needs(smooth=True, quadratic="graph")

    def __init__(self, adaptive: bool = False) -> None:
        self._adaptive = adaptive
        self._curvature: float | None = None

    def solve(self, working: WorkingProblem, start: Array, tol: float, max_iter: int) -> Solution:
        if self._curvature is None:
            self._curvature = estimate_curvature(working)
        curvature, adaptive = self._curvature, self._adaptive  # raised where a step shows that it is too low
        shrink, nuisance = working.shrink, working.nuisance
        working = packed_if_few(working)
        loss = working.loss
        alive = np.arange(len(working.positions))
        rows = start.copy()
        image = working.image(rows)
        previous, previous_image = rows, image
        squared = loss.squared
        # Of a loss that has no finite smoothness the steps themselves find out how steep it is.
        tame = math.isfinite(loss.smoothness)
        steepness = loss.smoothness if tame else _steepness(loss, image, nuisance)
        bound = steepness * curvature
        sketch = loss.sketch  # a step needs less than a certificate
        coupling = working.penalty.coupling  # part of what is smooth
        momentum, beta = 1.0, 0.0
        decay = 0.9 if squared else 0.75
        every = 5 if adaptive else CHECK_EVERY
        best = BestDual(start)
        iterations, gap, measured = 0, np.inf, len(alive)
        at: Any = None
        known, scratch = False, np.empty_like(image)
        crawling, look = _CRAWLING if adaptive and shrink is None else max_iter, False
        while True:
            # Once more early on: the first steps from W = 0 show the most, and the first rows dropped save the most.
            early = iterations == 4 and shrink is not None
            if iterations % every == 0 or early or look or iterations >= max_iter:
                at = loss.evaluate(image, nuisance)
                nuisance = at.nuisance
                products, known = working.correlate(at.residual), True
                pair_gap, scale = working.gap(rows, at, products)
                gap = best.update(iterations, alive, rows, at.value + working.penalty.total(rows), pair_gap)
                # At least one step: what is returned went through the prox, so its ties are exact.
                if (gap <= tol and iterations > 0) or iterations >= max_iter:
                    break
                look = False
                if iterations >= crawling:
                    nearer = polished(replace(working, nuisance=nuisance), rows, bound)
                    crawling = 2 * iterations if nearer is None else iterations
                    if nearer is not None:
                        rows, spent = nearer
                        iterations, image, look = iterations + spent, working.image(rows), True
                        previous, previous_image, momentum, beta = rows, image, 1.0, 0.0
                        continue
                if shrink is not None:
                    gone = shrink(rows, at, products, pair_gap, scale, 0.0)
                    if gone.any():
                        # Dropping rows that are zero changes nothing; where others go, the momentum starts again.
                        moved = rows[gone].any() or previous[gone].any()
                        alive, rows, previous = alive[~gone], rows[~gone], previous[~gone]
                        working, products = packed_if_few(working.keep(~gone)), products[~gone]
                        if moved:
                            image, known = working.image(rows), False
                            previous, previous_image, momentum, beta = rows, image, 1.0, 0.0
                        if 2 * len(alive) <= measured:  # fewer columns are less steep: longer steps
                            measured = len(alive)
                            bound = min(bound, steepness * estimate_curvature(working))
            if beta == 0.0 and known:  # the check has looked at this very point
                point, point_image, here = rows, image, at
            else:
                point = _extrapolated(rows, previous, beta)
                point_image = _extrapolated(image, previous_image, beta)
                here = sketch(point_image, nuisance)
                if not math.isfinite(here.value):  # the momentum leads out of range
                    momentum, beta = 1.0, 0.0
                    point, point_image, here = rows, image, sketch(image, nuisance)
                nuisance = here.nuisance
                products = working.correlate(here.residual)
            known = False
            slopes = products if coupling is None else products - coupling.pull(point)
            # The descent test of other losses than the squared one costs an evaluation, or a pass over the predictions
            # of all classes: every third step stands for all.
            probe, raised = iterations % 3 == 0 or not tame, False
            for _ in range(60):
                following = working.penalty.proximal(point + slopes / bound, 1.0 / bound)
                following_image = working.image(following)
                move = following - point
                length = float(np.vdot(move, move))
                if length == 0.0 or not (squared or probe):
                    break
                image_step = np.subtract(following_image, point_image, out=scratch)
                if squared or (tame and not adaptive):
                    # less what rounding of the images may have added: tiny steps must not look steep
                    size = np.linalg.norm(image_step) - _ROUNDING * np.linalg.norm(point_image)
                    risen = steepness * max(float(size), 0.0) ** 2
                else:
                    there = sketch(following_image, nuisance)
                    risen = 2.0 * (there.value - here.value + float(here.residual @ image_step))
                if coupling is not None:
                    risen += coupling.quadratic(move)
                if risen <= bound * length * (1.0 + 1e-9) + 1e-14 * abs(here.value):
                    break
                bound = max(1.02 * risen / length, 1.1 * bound) if math.isfinite(risen) else 4.0 * bound
                raised = True
            if adaptive and (squared or probe):
                # Downwards fast until a step is refused, then gently: a refused step costs as much as it can save.
                decay = (0.985 if squared else 0.96) if raised else decay
                bound = max(decay * bound, 1e-6 * steepness * curvature)
            if float(np.vdot(point - following, following - rows)) > 0.0:
                momentum, beta = 1.0, 0.0  # the momentum points uphill: start again
            else:
                grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
                momentum, beta = grown, (momentum - 1.0) / grown
            previous, previous_image = rows, image
            rows, image = following, following_image
            iterations += 1
        seen = bound / steepness
        self._curvature = 1.2 * seen if adaptive else max(curvature, seen)
        return best.solution(iterations, alive, rows, gap, shrink is not None)

    @staticmethod
    def step_work(working: WorkingProblem) -> float:
        """Operations of one step, what calls take included."""
        return 2.5 * pass_work(working.columns, len(working.positions)) + _CALLS


def _steepness(loss: DataLoss, image: Array, nuisance: Array | None) -> float:
    """The largest second derivative at a point."""
    found = loss.evaluate(image, nuisance).curvature
    return max(float(np.max(found, initial=0.0)), 1e-8) if found is not None else 1.0


def _extrapolated(now: Array, before: Array, beta: float) -> Array:
    """``now + beta (now - before)`` with one array, not three."""
    out = np.subtract(now, before)
    out *= beta
    out += now
    return out
