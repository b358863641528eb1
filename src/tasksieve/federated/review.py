"""Questions in plain words, for the person at a site who must say yes or no."""

from __future__ import annotations

import numpy as np

from .answer import size
from .plan import Plan
from .plan_words import named
from .question import Question, Round


def question_in_words(question: Question, plan: Plan) -> str:
    """What a question asks for, and how much leaves."""
    sent = f"{size(question, plan.n_features):,} bytes"
    rows = {"all": "all rows"}.get(question.problem, f"the rows of {question.problem!r}")
    if question.kind == "sizes":
        return f"{rows}: how large numbers are, as counts of powers of two; {sent}"
    if question.kind == "null" and question.levels is not None and not len(question.levels):
        return f"{rows}: the weight of the rows, and the loss of the model without features; {sent}"
    if question.kind == "norms":
        return f"{rows}: lengths of all {plan.n_features:,} columns; {sent}"
    if question.kind == "moments":
        columns = [plan.columns[j] for j in question.features.tolist()]
        return f"{rows}: sums of {len(columns):,} columns and of their squares ({named(columns)}); {sent}"
    used = [plan.columns[j] for j in question.features[question.s > 0.0].tolist()]
    model = f"a model with {len(used)} features ({named(used)})" if used else "the model without features"
    if question.kind == "part":
        return f"{rows}, {model}: bounds for the certificate; {sent}"
    looked = plan.n_features if question.levels is None else len(question.levels)
    asked = [f"its loss, how strongly {looked:,} columns would still matter"]
    if question.hessian and len(question.features):
        n_pairs = len(question.features) * (len(question.features) + 1) // 2
        asked.append(f"second derivatives of {len(question.features)} features ({n_pairs:,} numbers)")
    if question.held_out:
        asked.append("the loss of rows that were held out" if question.problem != "all" else "the weight of the rows")
    return f"{rows}, {model}: {', '.join(asked)}; {sent}"


#: what an exchange asks for, by the kind of its first question
EXCHANGES = {
    "sizes": "how large numbers are, the model without features",
    "moments": "means and variances of columns",
    "norms": "lengths of columns",
    "point": "models along the path",
    "part": "bounds for the certificate, signed",
    "null": "the model without features",
}


def round_in_words(asked: Round, plan: Plan) -> list[str]:
    """The questions of a round, a line for each, and what leaves altogether."""
    total = sum(size(question, plan.n_features) for question in asked.questions)
    most = int(np.max([len(question.features) for question in asked.questions], initial=0))
    how = "masked, so that they mean something only when all sites' are added up" if plan.masked else "OPEN"
    count = f"{len(asked.questions)} questions, at most {most} features each"
    return [
        f"round {asked.number}: {count}; {total:,} bytes leave, {how}",
        *(f"{k + 1}. {question_in_words(question, plan)}" for k, question in enumerate(asked.questions)),
    ]
