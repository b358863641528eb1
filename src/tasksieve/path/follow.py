"""The one loop along a path, whatever solves it: on rows, on sums over them, on a device, in folds and on halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..design import DataLost
from .policy import Choice
from .values import Value

Progress = Callable[[int, int, Value], None]


@dataclass
class PathSolution:
    """All values of a path that were finished."""

    null_objective: float
    points: Sequence[Value] = field(default_factory=list)
    passes: float = 0.0
    #: the square-root loss: P, D, gap and time of every iteration of an algorithm for study, at the last value
    history: Any = None
    interrupted: bool = False
    #: what interrupted it
    reason: BaseException | None = None
    #: which solver found them, and why
    choice: Choice | None = None
    #: rows that an unsafe screening rule rejected and the certificate brought back
    wrong_rejections: int = 0

    def add(self, values: Sequence[Value], n_values: int, progress: Progress | None) -> None:
        """Further values, of so many; the callback is called for each, and may interrupt."""
        if progress is None:
            self.points = [*self.points, *values] if len(self.points) else values
            return
        self.points = points = list(self.points)
        for value in values:
            points.append(value)
            progress(len(points) - 1, n_values, value)

    def raise_interrupt(self) -> None:
        """For callers to whom a part of a path is of no use."""
        if self.interrupted:
            raise self.reason or KeyboardInterrupt


class Pace:
    """How far a path is followed: to its end by default, `most` values at a time before `goes_on` is called again."""

    most: int | None = None

    def goes_on(self, k: int) -> bool:
        """Whether value k is wanted; may wait for others."""
        return True

    def reached(self, first: int, values: Sequence[Value]) -> None:
        """Values from the first one on are solved."""

    def ended(self) -> None:
        """No more values come."""


def follow(
    solution: PathSolution,
    solve: Callable[[int], Sequence[Value]],
    n_values: int,
    progress: Progress | None = None,
    pace: Pace | None = None,
) -> PathSolution:
    """Follow a path to its end, or until its solver, its pace or an interrupt ends it.

    - `solution`: Filled with the values.
    - `solve`: ``solve(k)``: values from position k on, as many as are best found together; none where the solver is at
      its end.
    - `progress`: A callback, ``progress(k, n_values, value)``, after each value.
    - returns: the one given. After a KeyboardInterrupt, or where data were lost: the finished values, marked
      `interrupted`.
    """
    pace = Pace() if pace is None else pace
    try:
        while (done := len(solution.points)) < n_values and pace.goes_on(done):
            values = solve(done)
            if not len(values):
                break
            pace.reached(done, values)
            solution.add(values, n_values, progress)
        pace.ended()
    except (KeyboardInterrupt, DataLost) as reason:
        solution.interrupted, solution.reason = True, reason
    return solution
