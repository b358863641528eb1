"""A plan in plain words, for the person at a site who must say yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_NAMED = 8  # features in a line
_SCALES = {
    "no": "columns as they are",
    "task": "columns standardised within tasks",
    "pooled": "columns standardised over the rows of all sites, whose means and variances become known",
}


def plan_in_words(plan: Any) -> list[str]:
    """What a plan asks of a site, a line for each thing."""
    penalty = "features are selected for all tasks together"
    penalty += f", and within them tasks ({plan.l1_ratio:g} of the strength)" if plan.l1_ratio else ""
    penalty += f", beside a ridge of {plan.ridge:g}" if plan.ridge else ""
    options = "".join(f", {name} {value}" for name, value in plan.loss_options.items())
    others = "".join(f", {own} at {site}" for site, own in sorted(plan.site_losses.items()))
    intercept = "an intercept for each task" if plan.fit_intercept else "no intercepts"
    scale = _SCALES[plan.standardize]
    masked = "masked: the coordinator learns sums over all sites, never the numbers of one"
    answers = masked if plan.masked else "OPEN: the coordinator sees the numbers of each site"
    weights = [f"{name} {weight:g}" for name, weight in plan.feature_weights.items()]
    lines = [
        plan.title,
        f"number of the plan: {_groups(plan.digest)}; it must be the same at all sites",
        f"sites, with the number of their tasks: {', '.join(f'{n} {plan.n_tasks.get(n, 1)}' for n in plan.names)}",
        f"answers: {answers}",
        f"model: {plan.loss} loss{options}{others}; {penalty}; {intercept}; {scale}",
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
