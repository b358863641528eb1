"""The rules of a site: what it answers, and what it refuses, each with a name.

A site refuses before it reads a row. Rules are the site's own (``site.toml``), not the plan's: the coordinator cannot
change them, and a refusal names the rule, so that people can talk about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..messages import ParameterError
from .errors import FederatedError
from .plan import Plan
from .question import Question


@dataclass(frozen=True)
class Rules:
    """The rules of a site; their defaults are those of a site that has said nothing.

    Parameters
    ----------
    min_sites : int, default=3
        Fewest sites of a plan. Of two sites each sees the other's numbers by subtraction, masked or not.
    min_rows : int, default=10
        Fewest rows of each task here, in each problem that may be asked about (a fold, a half).
    max_questions : int, default=5000
        Most different questions that are answered for one plan. Many questions reveal more than one.
    open : bool, default=False
        Whether numbers may leave without masks. The coordinator then sees this site's own.
    open_share : float, default=0.33
        Without masks: most features whose second derivatives are asked for, as a part of the rows of the smallest task.
    masked_share : float, default=0.0
        The same under masks; 0: no limit. A coordinator can find out where it ends, and so this number of rows.
    min_held_out : int, default=3
        Fewest rows of each task here that a fold leaves out: sums with and without them show what they add.

    Examples
    --------
    >>> import tasksieve as ts
    >>> rules = ts.federated.Rules(min_rows=20)
    >>> rules.min_sites, rules.open
    (3, False)
    """

    min_sites: int = 3
    min_rows: int = 10
    max_questions: int = 5000
    open: bool = False
    open_share: float = 0.33
    masked_share: float = 0.0
    min_held_out: int = 3

    def __post_init__(self) -> None:
        for name, least in {"min_sites": 2, "min_rows": 2, "max_questions": 1, "min_held_out": 1}.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ParameterError(name, f"must be a whole number of at least {least}", value)
        if not isinstance(self.open, bool):
            raise ParameterError("open", "must be true or false", self.open)
        for name in ("open_share", "masked_share"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value < 1e9:
                raise ParameterError(name, "must be a number of at least 0", value)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Rules:
        """From a table of a site.toml, whose words have "-" for "_".

        Parameters
        ----------
        given : dict

        Returns
        -------
        Rules
        """
        known = {rule_name(one.name): one.name for one in fields(cls)}
        for name in given:
            if name not in known:
                raise ValueError(f"[rules] has no {name!r}; rules are {', '.join(known)}")
        return cls(**{known[name]: value for name, value in given.items()})

    def listed(self) -> dict[str, Any]:
        """Name of each rule and its value.

        Returns
        -------
        dict
        """
        return {rule_name(one.name): getattr(self, one.name) for one in fields(self)}

    def check_plan(self, plan: Plan, rows: Mapping[str, Sequence[int]]) -> None:
        """Refuse a plan as a whole.

        Parameters
        ----------
        plan : Plan
        rows : dict of str to sequence of int
            Problem -> rows of each task here that it learns from.
        """
        if plan.n_sites < self.min_sites:
            words = f"the plan has {plan.n_sites} sites, this site wants at least {self.min_sites}"
            raise FederatedError("min-sites", words)
        if not plan.masked and not self.open:
            raise FederatedError("open", "the plan has open answers, and this site sends masked ones only")
        for problem in plan.problems():
            least = min(rows[problem], default=0)
            if least < self.min_rows:
                where = "" if problem == "all" else f" in {problem!r}"
                raise FederatedError(
                    "min-rows", f"a task has {least} rows{where}, this site wants at least {self.min_rows}"
                )
            left = [every - own for every, own in zip(rows["all"], rows[problem], strict=True)]
            if problem != "all" and min(left) < self.min_held_out:
                words = f"{problem!r} leaves out {min(left)} rows of a task, this site wants at least "
                raise FederatedError("min-held-out", f"{words}{self.min_held_out}")

    def check_questions(
        self, plan: Plan, questions: Sequence[Question], answered: int, rows: Mapping[str, Sequence[int]]
    ) -> None:
        """Refuse a round of questions.

        Parameters
        ----------
        plan : Plan
        questions : sequence of Question
        answered : int
            Different questions of this plan that were answered before, less those of this round.
        rows : dict of str to sequence of int
            As for `check_plan`.
        """
        known = set(plan.problems())
        for question in questions:
            if question.problem not in known:
                raise FederatedError("plan", f"the plan has no problem {question.problem!r}")
            if question.kind == "moments" and question.problem != "all":
                raise FederatedError("plan", "means and variances of columns are those of all rows")
        if answered + len(questions) > self.max_questions:
            raise FederatedError(
                "max-questions",
                f"{answered} questions were answered and {len(questions)} more are asked, this site answers "
                f"{self.max_questions}",
            )
        name = "masked_share" if plan.masked else "open_share"
        share = getattr(self, name)
        if share == 0.0 and plan.masked:
            return
        for question in questions:
            n_rows = min(rows[question.problem])
            if question.hessian and len(question.features) > share * n_rows:
                words = f"second derivatives of {len(question.features)} features are asked for"
                raise FederatedError(rule_name(name), f"{words}, more than {share:g} of the rows of this site")


def rule_name(field: str) -> str:
    """The name of a rule as it is written and said."""
    return field.replace("_", "-")
