"""A federated fit from a plan: all rows, the folds and the halves are followed in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .answer import Answer
from .asking import Asking
from .certify import state
from .fitted import FederatedFit
from .keys import PrivateKeys
from .path import FederatedPath
from .plan import Plan
from .question import Question
from .together import follow, held_out, selection_frequencies
from .transport import Transport

#: values of a half of the rows, and the last of them as a part of the first: stability is about what is used early
HALF_VALUES, HALF_EPS = 15, 0.3
_ROWS = Question("all", levels=np.empty(0, np.int64), hessian=False, held_out=True)


@dataclass(frozen=True)
class RoundProgress:
    """What is known after a round.

    Attributes
    ----------
    rounds, questions, bytes_up, bytes_down : int
        So far.
    solved, values : int
        Values of all problems whose gap is small enough, and how many there are.
    worst_gap : float
        Largest gap of a value of all rows, as a part of the loss of the empty model.
    """

    rounds: int
    questions: int
    bytes_up: int
    bytes_down: int
    solved: int
    values: int
    worst_gap: float


def fit(
    plan: Plan | str | Path,
    transport: Transport,
    keys: PrivateKeys | str | Path,
    *,
    folder: str | Path | None = None,
    progress: Callable[[RoundProgress], Any] | None = None,
) -> FederatedFit:
    r"""Fit the model of all sites' rows, which stay where they are.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t)
        + \alpha \sum_j u_j \bigl(\lVert W_j \rVert_2 + \rho \lVert W_j \rVert_1\bigr)
        + \frac{\text{ridge}}{2} \lVert W \rVert_F^2

    Parameters
    ----------
    plan : Plan, or path of a plan.toml
    transport : Transport
        The way to the sites: `Folders`, `Https`, `InProcess`, or one of your own.
    keys : PrivateKeys, or path of their file
        Of the coordinator.
    folder : str or Path, optional
        Where exchanges are kept. A fit that was stopped goes on from there, to the same bytes.
    progress : callable, optional
        Called with a `RoundProgress` after every round.

    Returns
    -------
    FederatedFit
        A path with the lengths of the rows of coefficients; `Site.model` makes a model of it, at a site.
    """
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    keys = keys if isinstance(keys, PrivateKeys) else PrivateKeys.read(keys)
    return _Fit(plan, Asking(plan, keys, transport, folder), progress).run()


class _Fit:
    """A fit that is under way."""

    def __init__(self, plan: Plan, asking: Asking, progress: Callable[[RoundProgress], Any] | None) -> None:
        self.plan, self.asking, self.progress = plan, asking, progress
        self.unit = self.null_loss = 0.0

    def run(self) -> FederatedFit:
        plan = self.plan
        if plan.ridge:  # in the units of the sum it must be known before the paths begin
            self._weigh(self.asking.ask([_ROWS])[0])
        ridge = plan.ridge * self.unit
        whole = self._path("all", ridge=ridge, n_values=plan.n_alphas, eps=plan.eps)
        # a fold learns from all rows but one in so many: the same alpha is so much smaller a strength
        part = 1.0 - 1.0 / max(plan.cv, 2)
        folds = [
            self._path(f"fold {k}", ridge=part * ridge, leader=whole, part=part, held_out=True) for k in range(plan.cv)
        ]
        early = {"n_values": HALF_VALUES, "eps": HALF_EPS, "leader": whole, "own_values": True}
        halves = [self._path(f"half {k}", ridge=0.5 * ridge, **early) for k in range(2 * plan.n_pairs)]
        paths = [whole, *folds, *halves]
        follow(paths, self._ask, None if self.progress is None else lambda rounds: self._report(paths))
        found = self._result(whole, folds, halves)
        self._prove(whole, found)
        return found

    def _path(self, problem: str, **options: Any) -> FederatedPath:
        plan = self.plan
        common: dict[str, Any] = {"tol": plan.tol, "weights": plan.weights, "l1_ratio": plan.l1_ratio}
        return FederatedPath(plan.n_features, problem=problem, loss=plan.make_loss(), **common, **options)

    def _ask(self, questions: list[Question]) -> Sequence[Answer]:
        """The first round also asks how much all rows weigh."""
        if self.unit:
            return self.asking.ask(questions)
        *answers, rows = self.asking.ask([*questions, _ROWS])
        self._weigh(rows)
        return answers

    def _weigh(self, rows: Answer) -> None:
        """What the sum is divided by to give the estimators' objective; and the loss of the model without features."""
        assert rows.held_out is not None
        self.unit = float(self.plan.make_loss().unit(float(rows.held_out[2]) / self.plan.total_tasks))
        self.null_loss = rows.loss

    def _report(self, paths: Sequence[FederatedPath]) -> None:
        assert self.progress is not None
        traffic, known = self.asking.traffic, [path for path in paths if path.values]
        solved = sum(int(np.count_nonzero(path.converged)) for path in known)
        plan = self.plan
        values = plan.n_alphas * (1 + plan.cv) + HALF_VALUES * 2 * plan.n_pairs
        worst = float(np.max(paths[0].gaps, initial=0.0)) / (self.null_loss or 1.0)
        sent = (traffic.rounds, traffic.questions, traffic.up, traffic.down)
        self.progress(RoundProgress(*sent, solved, values, worst))

    def _prove(self, whole: FederatedPath, found: FederatedFit) -> None:
        """One more round, about the chosen value: bounds with all rounding, which every site signs."""
        plan, k = self.plan, found.chosen
        question = whole.final_questions("part")[k]
        found.statement, found.halves = state(self.asking, plan, [question], found.alphas[k : k + 1], self.unit)
        found.count(self.asking.traffic)

    def _result(
        self, whole: FederatedPath, folds: Sequence[FederatedPath], halves: Sequence[FederatedPath]
    ) -> FederatedFit:
        plan, unit = self.plan, self.unit
        return FederatedFit(
            plan_digest=plan.digest,
            title=plan.title,
            columns=plan.columns,
            sites=plan.names,
            n_tasks=plan.total_tasks,
            tol=plan.tol,
            unit=unit,
            null_objective=self.null_loss / unit,
            alphas=whole.lams / unit,
            objectives=whole.objectives / unit,
            dual_gaps=whole.gaps / unit,
            questions_asked=[Question("all", v.features, v.s, l1=v.l1, hessian=False) for v in whole.values],
            norms=[value.row_norms for value in whole.values],
            held_out=held_out(folds) if folds else None,
            selection_probabilities=selection_frequencies(halves, plan.q) if halves else None,
        )
