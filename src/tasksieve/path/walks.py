"""Along the path of one problem, from the largest strength to the smallest, as far as values are requested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..screening.rules import DPC, Midpoint, NoScreening, Rule, get_rule
from ..solvers import VariationalNewton
from . import device_path, gram
from .choose import choose_strategy
from .engine import Engine
from .policy import Facts, Kind, choose_for_problem, handed_over
from .problem import Problem
from .values import Value

Array = np.ndarray[Any, Any]


class Walk(Protocol):
    """Values of a path, as many at a time as are best found together."""

    def values(self, lams: Sequence[float] | Array, goals: Sequence[float] | Array) -> Sequence[Value]:
        """The first of the values at the next strengths, at least one, each solved until its gap is at most its goal.

        No callback runs, and no interrupt is seen, in between.
        """
        ...


class EngineWalk(Walk):
    """A walk with the engine, for every loss and penalty.

    - `max_iter`, `screening`, `solver`, `working_set`, `lazy`, `start`: As in `solve_path`.
    - `single`: Only one value will be requested.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        max_iter: int = 10_000,
        screening: str | Rule | None = "auto",
        solver: str = "auto",
        working_set: bool = True,
        lazy: bool = True,
        single: bool = False,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        rules = _screening(problem, screening)
        self.strategy = choose_strategy(problem, solver)
        self.engine = Engine(
            problem,
            rules,
            self.strategy,
            working_set=working_set,
            lazy=lazy,
            max_iter=max_iter,
            single=single,
            start=start,
        )

    def values(self, lams: Sequence[float] | Array, goals: Sequence[float] | Array) -> Sequence[Value]:
        next_lam = float(lams[1]) if len(lams) > 1 else None
        return [self.engine.step(float(lams[0]), float(goals[0]), next_lam)]


def problem_facts(problem: Problem, n_values: int, *, by_sums: bool = True, by_device: bool = True) -> Facts:
    """What the choice of a solver depends on; False for those that are not wanted."""
    design = problem.design
    shard = design.shards[0]
    storage = shard.storage
    here, dense = storage.shard_class is None, not storage.sparse
    n_matrices = 1 if design.uniform or design.n_tasks == 1 else design.n_tasks
    return Facts(
        n_values,
        design.n_rows if n_matrices == 1 else design.n_samples,
        design.n_features - len(design.unpenalised),
        design.n_tasks,
        n_matrices,
        column_bytes=storage.n_rows * storage.dtype.itemsize,
        dense=dense,
        location="memory" if here else "device",
        by_sums=by_sums and here and dense and gram.determined(problem),
        by_device=by_device and _passes_are_cheap(problem),
        n_covariates=len(design.unpenalised),
    )


def _passes_are_cheap(problem: Problem) -> bool:
    """Whether a problem's columns lie on a device that makes passes, the loss is squared, and rows are penalised."""
    shards = problem.design.shards
    if len(shards) != 1 or not shards[0].cheap_passes:
        return False
    return not VariationalNewton.needs.unmet(problem.loss, problem.penalty)


class PathWalk(Walk):
    """A walk with the solver that `policy` chooses; where sums end, with the engine from there on.

    - `n_values`: Number of values that will be requested.
    - `after`: A value found by another solver, from which to go on.
    - `by_gram`: False: with the engine alone.
    - `options`: Of `EngineWalk`; the Gram solver is used only where none is set.
    """

    def __init__(
        self,
        problem: Problem,
        n_values: int,
        *,
        max_iter: int = 10_000,
        after: Value | None = None,
        by_gram: bool = True,
        **options: Any,
    ) -> None:
        self._problem, self._max_iter, self._options = problem, max_iter, options
        self._single = n_values == 1
        self._gram: gram.GramWalk | None = None
        self._engine: EngineWalk | device_path.DevicePath | None = None
        self._last = after
        by_sums = by_gram and after is None and not sets_options(options)
        by_device = not sets_options({**options, "start": None})
        #: which solver, and why
        self.choice = choose_for_problem(problem_facts(problem, n_values, by_sums=by_sums, by_device=by_device))
        if self.choice.kind is Kind.SUMS:
            self._gram = gram.gram_walk(problem)
            if self._gram is None:
                self.choice = handed_over(self.choice)
        if self._gram is None:
            self._begin_engine()

    def _begin_engine(self) -> EngineWalk | device_path.DevicePath:
        if self.choice.kind is Kind.DEVICE:
            start = self._options.get("start")
            self._engine = device_path.DevicePath(
                self._problem, max_iter=self._max_iter, single=self._single, start=start
            )
        else:
            self._engine = EngineWalk(self._problem, max_iter=self._max_iter, single=self._single, **self._options)
        if self._last is not None:
            self._engine.engine.resume(self._last)
        return self._engine

    @property
    def wrong_rejections(self) -> int:
        """Rows that an unsafe rule rejected and the certificate brought back."""
        return 0 if self._engine is None else self._engine.engine.wrong_rejections

    @property
    def history(self) -> Any:
        """What an algorithm for study has kept."""
        return None if self._engine is None else self._engine.engine.strategy.history

    def values(self, lams: Sequence[float] | Array, goals: Sequence[float] | Array) -> Sequence[Value]:
        if self._gram is not None:
            found = self._gram.values(np.asarray(lams), np.asarray(goals), self._max_iter)
            if len(found):
                self._last = found[-1]
                return found
            self._gram, self.choice = None, handed_over(self.choice)
        return (self._engine or self._begin_engine()).values(lams, goals)


def sets_options(options: dict[str, Any]) -> bool:
    """Whether any option of `EngineWalk` differs from its default."""
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
