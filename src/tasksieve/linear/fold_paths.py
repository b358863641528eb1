"""The paths of all folds of a cross-validation, which are made of rows or of sums over rows.

A fold is solved on its own, or all folds walk in step (`design.lockstep`): where reads of X are costly, so that one
reading serves all, and with early stopping, so that all stop at the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from ..design import Lockstep, SharedReading, one_blas_thread
from ..fitted.arguments import kernel_threads
from ..fitted.progress import carried
from ..path.follow import Pace, PathSolution
from ..path.values import Value
from .base import PathEstimator
from .early_stopping import PATIENCE, MeanCurve
from .held_out import pack_points, used_features
from .path_solver import PathSolver, solve_along

# With early stopping: values that are scored together, which reads the columns they use once; and the lookahead, by how
# many values, perhaps in vain, a fold may be ahead of the slowest one: more where folds in step share readings.
SCORED_TOGETHER = 4
LOOKAHEAD, LOOKAHEAD_READING = SCORED_TOGETHER, PATIENCE
_SCORING = 4  # folds scored side by side, if nothing else is left to do: more of them wait for each other


@dataclass
class Fold:
    """What follows the path on the training rows of a fold, and the held-out losses of values of this path."""

    solver: PathSolver
    score: Callable[[Sequence[Any]], np.ndarray]


class FoldSource(Protocol):
    """What the folds of a cross-validation are made of; `models`, `facts` and `names` are of all rows.

    - `exact`: Whether folds that do not converge, or held-out losses that are not known, need another source.
    - `unsure`: What share of the smallest held-out loss may be rounding, so far.
    - `n_jobs`: Of joblib: folds that are solved at the same time; in step so many as there are `slots`.
    - `side_by_side`: The same for folds that `n_jobs` does not limit; 0: as `n_jobs`.
    - `solved_with_first`: Whether the first fold's path brings those of all others: what is left of these are scores.
    - `shared`: Of the columns, for folds that walk in step.
    - `whole_in_step`: Whether the path over all rows walks with the folds of an only model.
    """

    models: list[PathEstimator]
    facts: Any
    names: np.ndarray | None
    words: str
    n_folds: int
    exact: bool = False
    unsure: float = 0.0
    n_jobs: int | None = 1
    slots: int = 1
    side_by_side: int = 0
    solved_with_first: bool = False
    shared: SharedReading | None = None
    whole_in_step: bool = False

    def whole(self, m: int, n_values: int) -> PathSolver:
        """What follows the path of model m over all rows."""

    def prepare(self, models: list[PathEstimator], grids: list[np.ndarray]) -> None:
        """Get ready for the models as folds solve them, each along its alphas."""

    def fold(self, m: int, f: int, alone: bool) -> Fold:
        """Fold f of model m, on its own or in step with others."""

    def keep(
        self, m: int, f: int, alphas: np.ndarray, early: bool, compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """What a `checkpoint` remembers of a fold, or computes."""
        return compute()

    def readings(self, results: Sequence[FoldResult]) -> float:
        """Of the data, for all folds and the path over all rows."""


@dataclass
class FoldResult:
    """Held-out losses along a path (NaN past an early stop), where the solver did not converge, readings of X, and what
    predictions need of the values (`pack_points`)."""

    scores: np.ndarray
    open: np.ndarray
    passes: float
    points: dict[str, np.ndarray]


@dataclass
class Compared:
    """All folds of all models, model after model; how many values of each model count; the path over all rows if it
    walked with them."""

    folds: list[FoldResult]
    n_scored: list[int]
    whole: PathSolution | None = None


class _InStep(Pace):
    """The pace of early stopping: not far ahead of the slowest fold, and no further than their mean curve allows."""

    most = SCORED_TOGETHER

    def __init__(
        self,
        steps: Lockstep,
        curve: MeanCurve,
        lookahead: int,
        score: Callable[[list[Value]], np.ndarray] | None = None,
        fold: int = -1,
    ) -> None:
        self._steps, self._curve, self._lookahead, self._score, self._fold = steps, curve, lookahead, score, fold
        self._first, self._unscored = 0, list[Value]()

    def goes_on(self, k: int) -> bool:
        self._steps.wait_until(lambda: self._curve.near(k, self._lookahead))
        return not self._curve.ended(k)

    def reached(self, first: int, values: Sequence[Value]) -> None:
        self._unscored += values
        if len(self._unscored) >= SCORED_TOGETHER:
            self.ended()

    def ended(self) -> None:
        if self._score is not None and self._unscored:
            self._curve.add(self._fold, self._first, self._score(self._unscored))
        self._first, self._unscored = self._first + len(self._unscored), []


class FoldPaths:
    """The paths of all folds of all models, each along its grid of alphas."""

    def __init__(
        self, name: str, source: FoldSource, models: list[PathEstimator], grids: list[np.ndarray]
    ) -> None:
        self._name, self._source, self._models, self._grids = name, source, models, grids
        source.prepare(models, grids)

    def solve(self, early: bool) -> Compared:
        """All of them."""
        if self._source.shared is None and not early:
            return Compared(self._one_by_one(), [len(grid) for grid in self._grids])
        found = Compared([], [])
        for m in range(len(self._models)):
            self._in_step(m, early, found)
        return found

    def _one_by_one(self) -> list[FoldResult]:
        """Each fold of each model on its own, in threads."""
        source = self._source
        folds = [(m, f) for m in range(len(self._models)) for f in range(source.n_folds)]
        if source.side_by_side:
            works = [partial(self._solve, *fold) for fold in folds]
            side_by_side: list[FoldResult] = Lockstep(source.side_by_side).run(works)
            return side_by_side
        n_jobs, first = source.n_jobs, list[FoldResult]()
        if source.solved_with_first:
            first, folds = [self._solve(*folds[0])], folds[1:]
            n_jobs = min(kernel_threads(), _SCORING) if n_jobs is None else n_jobs
        # require="sharedmem" means threads: the kernels let them run side by side, and X is in memory once
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem")
        solve = carried(self._solve)
        found: list[FoldResult] = parallel(delayed(solve)(*fold) for fold in folds)
        return first + found

    def _in_step(self, m: int, early: bool, found: Compared) -> None:
        """All folds of a model at the same time, and the path over all rows with those of an only model."""
        source, alphas = self._source, self._grids[m]
        with_whole = source.whole_in_step and len(self._models) == 1
        shared, n_folds = source.shared, source.n_folds
        steps = Lockstep(source.slots, None if shared is None else shared.serve)
        curve = MeanCurve(len(alphas), n_folds) if early else None
        lookahead = LOOKAHEAD if shared is None else LOOKAHEAD_READING

        def all_rows() -> PathSolution:
            pace = None if curve is None else _InStep(steps, curve, lookahead)
            report = source.models[m]._progress(f"{self._name}, all rows")
            whole = solve_along(source.whole(m, len(alphas)), alphas, report, pace)
            whole.raise_interrupt()
            return whole

        works: list[Callable[[], Any]] = [partial(self._solve, m, f, steps, curve, lookahead) for f in range(n_folds)]
        if shared is not None:
            shared.meet = steps.ask
        try:
            with one_blas_thread():
                results = steps.run([*works, all_rows] if with_whole else works)
        finally:
            if shared is not None:
                shared.meet = None
        n_scored = len(alphas) if curve is None else curve.n_scored
        for result in results[:n_folds]:
            result.scores[n_scored:] = np.nan
            result.open[n_scored:] = False
        found.folds += results[:n_folds]
        found.n_scored.append(n_scored)
        if with_whole:
            found.whole = results[-1]
            found.whole.points = found.whole.points[:n_scored]

    def _solve(
        self, m: int, f: int, steps: Lockstep | None = None, curve: MeanCurve | None = None, lookahead: int = 0
    ) -> FoldResult:
        """A fold, or what the `checkpoint` block around the fit remembers of it."""
        spent: list[float] = []

        def compute() -> dict[str, np.ndarray]:
            arrays, passes = self._follow(m, f, steps, curve, lookahead)
            spent.append(passes)
            return arrays

        found = self._source.keep(m, f, self._grids[m], curve is not None, compute)
        if curve is not None and not spent:
            curve.add_remembered(f, found["scores"])
        return FoldResult(found["scores"], found["open"], sum(spent), found)

    def _follow(
        self, m: int, f: int, steps: Lockstep | None, curve: MeanCurve | None, lookahead: int
    ) -> tuple[dict[str, np.ndarray], float]:
        """What is kept of a fold, and readings of X."""
        alphas = self._grids[m]
        with one_blas_thread():
            fold = self._source.fold(m, f, steps is None)
            pace = None
            if curve is not None:
                assert steps is not None
                pace = _InStep(steps, curve, lookahead, fold.score, f)
            report = self._models[m]._progress(f"{self._name}, fold {f + 1}")
            found = solve_along(fold.solver, alphas, report, pace)
        found.raise_interrupt()
        points = list(found.points)  # made once: they are gone through several times
        scores, open_ = np.full(len(alphas), np.nan), np.zeros(len(alphas), dtype=bool)
        scores[: len(points)] = fold.score(points) if curve is None else curve.scores[: len(points), f]
        open_[: len(points)] = [not point.converged for point in points]
        n_features = self._source.facts.n_features
        passes = found.passes + len(used_features(points, n_features)) / max(n_features, 1)
        return {"scores": scores, "open": open_, **pack_points(points)}, passes
