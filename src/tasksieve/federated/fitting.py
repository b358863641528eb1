"""A federated fit from a plan: all rows, the folds and the halves are followed in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..user_warnings import warn
from .answer import Answer
from .asking import Asking
from .certify import state
from .fitted import FederatedFit
from .in_memory import SitesInMemory
from .keys import PrivateKeys
from .path import FederatedPath
from .plan import HALF_EPS, HALF_VALUES, Plan
from .question import Question
from .scales import find_scales
from .together import follow, held_out, selection_frequencies
from .transport import Transport


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

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        Where gaps are larger than ``plan.tol``.
    """
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    keys = keys if isinstance(keys, PrivateKeys) else PrivateKeys.read(keys)
    return FitUnderWay(plan, Asking(plan, keys, transport, folder), progress).run()


def unsolved(plan: Plan) -> str:
    """What is to be said of values whose gap is larger than the plan asks for, and what helps."""
    flat = any(loss.startswith("quantile") for loss in (plan.loss, *plan.site_losses.values()))
    why = " (quantile is nearly made of straight lines, on which steps may end early)" if flat else ""
    said = f"did not reach tol={plan.tol:g}; their gaps are larger, and true{why}: ask for a larger tol"
    return f"{said}, or for more strengths (n_alphas), so that each has nearer ones to start from."


class FitUnderWay:
    """A fit of a plan, whoever is asked."""

    def __init__(
        self, plan: Plan, asking: Asking | SitesInMemory, progress: Callable[[RoundProgress], Any] | None = None
    ) -> None:
        self.plan, self.asking, self.progress = plan, asking, progress
        self.unit = self.null_loss = 0.0
        self.folds: list[FederatedPath] = []
        #: of all rows that each fold learns from: the same alpha is so much smaller a strength
        self.parts = [1.0] * plan.cv
        self._first: Sequence[Answer] = ()  # the answers to the first questions, where they are here before the paths

    def run(self) -> FederatedFit:
        plan = self.plan
        if plan.standardize == "pooled":
            find_scales(self.asking, np.flatnonzero(plan.weights > 0.0), centred=plan.centred)
        if plan.ridge:  # in the units of the sum, which are known only after the first exchange
            whole, folds, halves = self._paths(0.0)
            self._first = self._ask([question for path in (whole, *folds, *halves) for question in path.first()])
        whole, folds, halves = self._paths(plan.ridge * self.unit)
        paths = [whole, *folds, *halves]
        follow(paths, self._ask, None if self.progress is None else lambda rounds: self._report(paths))
        found = self._result(whole, folds, halves)
        if isinstance(self.asking, Asking):  # nobody has signed anything in one process
            question = whole.final_questions("part")[found.chosen]
            self._prove(self.asking, question, found)
        found.count(self.asking.traffic)
        n_open = sum(int(np.count_nonzero(~path.converged)) for path in paths)
        if n_open:
            warn(f"{n_open} of {sum(len(path.values) for path in paths)} values {unsolved(plan)}", ConvergenceWarning)
        return found

    def _paths(self, ridge: float) -> tuple[FederatedPath, list[FederatedPath], list[FederatedPath]]:
        """Of all rows, the folds, the halves."""
        plan = self.plan
        whole = self._path("all", ridge=ridge, n_values=plan.n_alphas, eps=plan.eps)
        self.folds = folds = [
            self._path(f"fold {k}", ridge=part * ridge, leader=whole, part=part, held_out=True)
            for k, part in enumerate(self.parts)
        ]
        early = {"n_values": HALF_VALUES, "eps": HALF_EPS, "leader": whole, "own_values": True}
        return whole, folds, [self._path(f"half {k}", ridge=0.5 * ridge, **early) for k in range(2 * plan.n_pairs)]

    def _path(self, problem: str, **options: Any) -> FederatedPath:
        plan = self.plan
        common: dict[str, Any] = {"tol": plan.tol, "weights": plan.weights, "l1_ratio": plan.l1_ratio}
        return FederatedPath(plan.n_features, problem=problem, loss=plan.loss_of_all(), **common, **options)

    def _ask(self, questions: list[Question]) -> Sequence[Answer]:
        """The first round also asks how much all rows weigh."""
        if self._first:
            answers, self._first = self._first, ()
            return answers
        if self.unit:
            return self.asking.ask(questions)
        answers = self.asking.ask([*questions, *self._about_rows()])
        self._weigh(answers[len(questions) :])
        return answers[: len(questions)]

    def _about_rows(self) -> list[Question]:
        """How much all rows weigh, and those that each fold learns from."""
        names = ["all", *(f"fold {k}" for k in range(self.plan.cv))]
        none = np.empty(0, np.int64)
        return [Question(name, kind="null", levels=none, held_out=True, dual=False) for name in names]

    def _weigh(self, rows: Sequence[Answer]) -> None:
        """What the sum is divided by to give the estimators' objective; and the loss of the model without features."""
        weights = [float(answer.held_out[3]) for answer in rows if answer.held_out is not None]
        self.unit = float(self.plan.loss_of_all().unit(weights[0] / self.plan.total_tasks))
        self.null_loss = rows[0].loss
        self.parts = [weight / weights[0] for weight in weights[1:]]
        for fold, part in zip(self.folds, self.parts, strict=False):
            fold.part = part

    def _report(self, paths: Sequence[FederatedPath]) -> None:
        assert self.progress is not None
        traffic, known = self.asking.traffic, [path for path in paths if path.values]
        solved = sum(int(np.count_nonzero(path.converged)) for path in known)
        plan = self.plan
        values = plan.n_alphas * (1 + plan.cv) + HALF_VALUES * 2 * plan.n_pairs
        worst = float(np.max(paths[0].gaps, initial=0.0)) / (self.null_loss or 1.0)
        sent = (traffic.rounds, traffic.questions, traffic.up, traffic.down)
        self.progress(RoundProgress(*sent, solved, values, worst))

    def _prove(self, asking: Asking, question: Question, found: FederatedFit) -> None:
        """One more round, about the chosen value: bounds with all rounding, which every site signs."""
        alpha = found.alphas[found.chosen : found.chosen + 1]
        found.statement, found.halves = state(asking, self.plan, [question], alpha, self.unit)

    def _result(
        self, whole: FederatedPath, folds: Sequence[FederatedPath], halves: Sequence[FederatedPath]
    ) -> FederatedFit:
        plan, unit = self.plan, self.unit
        return FederatedFit(
            plan_digest=plan.digest,
            title=plan.title,
            columns=plan.columns,
            n_covariates=len(plan.covariates),
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
            column_scale=self.asking.scales,
        )
