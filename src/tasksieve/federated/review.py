"""Plans and questions in plain words, for the person at a site who must say yes or no."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .answer import size
from .plan import Plan
from .question import Question, Round

_NAMED = 8  # features in a line


def plan_in_words(plan: Plan) -> list[str]:
    """What a plan asks of a site, a line for each thing."""
    penalty = "features are selected for all tasks together"
    penalty += f", and within them tasks ({plan.l1_ratio:g} of the strength)" if plan.l1_ratio else ""
    penalty += f", beside a ridge of {plan.ridge:g}" if plan.ridge else ""
    options = "".join(f", {name} {value}" for name, value in plan.loss_options.items())
    intercept = "an intercept for each task" if plan.fit_intercept else "no intercepts"
    scale = "columns standardised within tasks" if plan.standardize == "task" else "columns as they are"
    masked = "masked: the coordinator learns sums over all sites, never the numbers of one"
    answers = masked if plan.masked else "OPEN: the coordinator sees the numbers of each site"
    weights = [f"{name} {weight:g}" for name, weight in plan.feature_weights.items()]
    lines = [
        plan.title,
        f"number of the plan: {_groups(plan.digest)}; it must be the same at all sites",
        f"sites, with the number of their tasks: {', '.join(f'{n} {plan.n_tasks.get(n, 1)}' for n in plan.names)}",
        f"answers: {answers}",
        f"model: {plan.loss} loss{options}; {penalty}; {intercept}; {scale}",
        f"features: {named(plan.features)}",
        *([f"weights in the penalty: {named(weights)}; 1 for all others"] if weights else []),
        *([f"covariates, whose coefficients stay at the site: {named(plan.covariates)}"] if plan.covariates else []),
        f"strengths of the penalty: {plan.n_alphas}, down to {plan.eps:g} of the largest; gaps of at most {plan.tol:g}",
    ]
    if plan.cv:
        lines.append(f"cross-validation: {plan.cv} folds, seed {plan.random_state}")
    if plan.n_pairs:
        first = f"the first {plan.q} features of each count"
        lines.append(f"stability: {plan.n_pairs} pairs of halves of the rows, {first}, seed {plan.random_state}")
    return [*lines, *([f"units: {plan.units}"] if plan.units else [])]


def _groups(digest: bytes) -> str:
    """128 bits to be read on the telephone: who makes two plans cannot find two with the same."""
    found = digest.hex()[:32]
    return " ".join(found[k : k + 4] for k in range(0, 32, 4))


def named(names: Sequence[str]) -> str:
    """Some names, and how many there are."""
    more = f", ... ({len(names):,})" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def question_in_words(question: Question, plan: Plan) -> str:
    """What a question asks for, and how much leaves."""
    sent = f"{size(question, plan.n_features):,} bytes"
    rows = {"all": "all rows"}.get(question.problem, f"the rows of {question.problem!r}")
    if question.kind == "sizes":
        return f"{rows}: how large numbers are, as counts of powers of two; {sent}"
    if question.kind == "norms":
        return f"{rows}: lengths of all {plan.n_features:,} columns; {sent}"
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
