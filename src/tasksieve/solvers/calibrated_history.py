"""What an algorithm for the calibrated model has reached: the best pair so far, and the history for study."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .calibrated import CalibratedSolution, PrimalDual, primal_dual
from .working import WorkingProblem

Array = np.ndarray[Any, Any]


@dataclass
class History:
    """One entry an iteration: P(W), D(u) of the iterates, their certified gap so far, seconds since the start."""

    objective: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def add(self, pair: PrimalDual, gap: float) -> None:
        self.objective.append(pair.objective)
        self.dual.append(pair.dual_value)
        self.gap.append(gap)
        self.seconds.append(time.perf_counter() - self.began)


class Record:
    """The best primal and the best dual point seen: together they are the certificate."""

    def __init__(
        self,
        problem: WorkingProblem,
        tol: float,
        history: History | None = None,
        hopeless: Callable[[list[float]], bool] | None = None,
    ) -> None:
        """`hopeless` is called after each pair with the gaps so far: whether to give up."""
        self._problem, self._tol, self._history, self._hopeless = problem, tol, history, hopeless
        self._gaps: list[float] = []
        self._given_up = False
        self.iterations = 0
        self.last: PrimalDual
        self._primal: PrimalDual | None = None
        self._dual: PrimalDual | None = None

    def see(
        self, rows: Array, dual: Array, products: Array | None = None, image: Array | None = None
    ) -> bool:
        """Takes note of a pair; True when the gap is small enough."""
        self.last = primal_dual(self._problem, rows, dual, products, image=image)
        if self._primal is None or self.last.objective <= self._primal.objective:
            self._primal = self.last
        if self._dual is None or self.last.dual_value >= self._dual.dual_value:
            self._dual = self.last
        if self._history is not None:
            self._history.add(self.last, self.gap)
        if self._hopeless is not None:
            self._gaps.append(self.gap)
            self._given_up = self._hopeless(self._gaps)
        return self.done

    @property
    def gap(self) -> float:
        """Of the best primal and the best dual point."""
        if self._primal is None or self._dual is None:
            return np.inf
        own = min(self._primal.gap, self._dual.gap)  # free of cancellation
        return max(min(own, self._primal.objective - self._dual.dual_value), 0.0)

    @property
    def objective(self) -> float:
        """The lowest so far."""
        return np.inf if self._primal is None else self._primal.objective

    @property
    def done(self) -> bool:
        return self._given_up or self.gap <= self._tol

    def solution(self) -> CalibratedSolution:
        assert self._primal is not None and self._dual is not None
        best, other = self._primal, self._dual
        if self.last.gap <= self.gap:  # one pair is as good as the best of both
            best = other = self.last
        return CalibratedSolution(best.rows, self.iterations, self.gap, dual=other.dual, noise=best.sizes)
