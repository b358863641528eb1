"""Along the path of one problem, from the largest strength to the smallest, as far as values are requested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..penalties.sparse_group import is_sparse_group
from ..screening.rules import DPC, Midpoint, NoScreening, Rule, get_rule
from . import device_path, gram, smooth_walk
from .choose import choose_strategy
from .engine import Engine
from .policy import Facts, Kind, choose_for_problem, handed_over
from .problem import Problem
from .values import Value

Array = np.ndarray[Any, Any]


def problem_facts(
    problem: Problem, n_values: int, least: float | None = None, *, by_sums: bool = True, by_device: bool = True
) -> Facts:
    """What the choice of a solver depends on; `least`: the smallest strength, where it is known; False for solvers that
    are not wanted."""
    design = problem.design
    shard = design.shard
    storage = shard.storage
    here, dense = storage.shard_class is None, not storage.sparse
    n_matrices = 1 if design.uniform or design.n_tasks == 1 else design.n_tasks
    by_sums = by_sums and here and dense and _sums_determine(problem)
    expected, depth = 0, 1.0
    if by_sums and least is not None and n_values > 1:  # a single value is too few for it to matter
        expected, depth = int(np.count_nonzero(problem.null_levels() > least)), least / problem.lambda_max()
    return Facts(
        n_values,
        design.n_rows if n_matrices == 1 else design.n_samples,
        design.n_features - len(design.unpenalised),
        design.n_tasks,
        n_matrices,
        column_bytes=storage.n_rows * storage.dtype.itemsize,
        dense=dense,
        location="memory" if here else "device",
        by_sums=by_sums,
        by_device=by_device
        and shard.cheap_passes
        and device_path.by_passes(problem),
        n_covariates=len(design.unpenalised),
        n_expected=expected,
        depth=depth,
    )


def _sums_determine(problem: Problem) -> bool:
    """Whether sums of products of its columns determine a problem, and can be taken of them here."""
    design, penalty = problem.design, problem.penalty
    if problem.loss.name != "squared" or not is_sparse_group(penalty):
        return False
    if penalty.coupling is not None or design.samples.dependent or not problem.lambda_max() > 0.0:
        return False
    return design.n_nuisance <= 1 or bool(np.all(np.isfinite(design.nuisance_sizes)))


class PathWalk:
    """Values of a path with the solver that `policy` chooses; where sums end, with the engine from there on.

    - `least`: The smallest strength that will be requested, where it is known.
    - `after`: A value found by another solver, from which to go on.
    - `options`: Further ones of `solve_path`; sums are used only where none is set.
    """

    def __init__(
        self,
        problem: Problem,
        n_values: int,
        *,
        least: float | None = None,
        max_iter: int = 10_000,
        after: Value | None = None,
        by_gram: bool = True,
        **options: Any,
    ) -> None:
        self._problem, self._max_iter, self._options = problem, max_iter, options
        self._single = n_values == 1
        self._compiled: gram.GramWalk | smooth_walk.SmoothWalk | None = None
        self._engine: Engine | None = None
        self._last = after
        by_sums = by_gram and after is None and not sets_options(options)
        by_device = not sets_options({**options, "start": None})
        facts = problem_facts(problem, n_values, least, by_sums=by_sums, by_device=by_device)
        #: which solver, and why
        self.choice = choose_for_problem(facts)
        if self.choice.kind is Kind.SUMS:
            self._compiled = gram.gram_walk(problem)
            if self._compiled is None:
                self.choice = handed_over(self.choice)
        elif self.choice.kind is Kind.ROWS and n_values > 1 and by_sums:
            self._compiled = smooth_walk.smooth_walk(problem)
        if self._compiled is None:
            self._begin_engine()

    def _begin_engine(self) -> Engine:
        problem, options = self._problem, dict(self._options)
        screening, solver = options.pop("screening", "auto"), options.pop("solver", "auto")
        common: Any = {"max_iter": self._max_iter, "single": self._single, **options}
        if self.choice.kind is Kind.DEVICE:
            self._engine = device_path.DeviceEngine(problem, **common)
        else:
            rules = _screening(problem, screening)
            self._engine = Engine(problem, rules, choose_strategy(problem, solver), **common)
        if self._last is not None:
            self._engine.resume(self._last)
        return self._engine

    @property
    def wrong_rejections(self) -> int:
        """Rows that an unsafe rule rejected and the certificate brought back."""
        return 0 if self._engine is None else self._engine.wrong_rejections

    @property
    def history(self) -> Any:
        """What an algorithm for study has kept."""
        return None if self._engine is None else self._engine.strategy.history

    def values(self, lams: Sequence[float] | Array, goals: Sequence[float] | Array) -> Sequence[Value]:
        """The first of the values at the next strengths, as many as are best found together, each solved until its gap
        is at most its goal. No callback runs, and no interrupt is seen, in between."""
        if self._compiled is not None:
            found = self._compiled.values(np.asarray(lams), np.asarray(goals), self._max_iter)
            if len(found):
                self._last = found[-1]
                return found
            self._compiled = None
            if self.choice.kind is Kind.SUMS:
                self.choice = handed_over(self.choice)
        engine = self._engine or self._begin_engine()
        return [engine.step(float(lams[0]), float(goals[0]), float(lams[1]) if len(lams) > 1 else None)]


def sets_options(options: dict[str, Any]) -> bool:
    """Whether any option of the engine differs from its default."""
    plain = {"screening": "auto", "solver": "auto", "working_set": True, "lazy": True, "start": None}
    return any(options.get(name, usual) != usual for name, usual in plain.items())


def _screening(problem: Problem, screening: str | Rule | None) -> list[Rule]:
    """The rules of a name; a penalty with tests of its own takes the best balls there are."""
    loss, penalty = problem.loss, problem.penalty
    if penalty.tests:
        allowed = ("auto", *penalty.tests, None)
        if screening not in allowed:
            raise ValueError(f"screening must be one of {allowed}; got {screening!r}")
        if screening is None:
            return []
        if screening != "auto":
            problem.penalty = penalty.with_test(str(screening))
        return [Midpoint(), DPC()] if loss.squared else [Midpoint()]
    thresholds = penalty.thresholds()
    rule = get_rule(
        screening,
        loss="squared" if loss.squared else loss.name,
        clipped=loss.clipped,
        l1=float(penalty.has_entries),
        positive=penalty.positive,
        ridge_ratio=float(penalty.curved),
        plain=thresholds is not None and thresholds[1] is None,
    )
    return [] if isinstance(rule, NoScreening) else [rule]
