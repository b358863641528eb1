"""The certificate of a federated fit: one more exchange, of strict bounds, and the files that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .asking import Asking
from .errors import FederatedError
from .fitted import FederatedFit
from .keys import PrivateKeys
from .messages import unseal_round
from .packing import Array
from .part import Archive
from .plan import Plan
from .question import Question
from .site import Site
from .statement import loss_form, make_statement
from .transport import Transport


def certify(
    result: FederatedFit, plan: Plan, transport: Transport, keys: PrivateKeys, values: Sequence[int] | None = None
) -> tuple[Archive, dict[str, Archive]]:
    """Ask all sites for strict bounds at values of a fit, and state what they prove.

    Parameters
    ----------
    result : FederatedFit
    plan : Plan
    transport : Transport
    keys : PrivateKeys
        Of the coordinator.
    values : sequence of int, optional
        Positions in ``result.alphas``; by default the value chosen.

    Returns
    -------
    statement : Archive
        ``statement.save("statement.npz")``.
    halves : dict of str to Archive
        Of each site, if answers are open.
    """
    chosen = [result.chosen] if values is None else [range(len(result.alphas))[k] for k in values]
    questions = [replace(result._questions[k], kind="part", hessian=False) for k in chosen]
    asking = Asking(plan, keys, transport)
    asking.scales = result.column_scale
    return state(asking, plan, questions, np.asarray(result.alphas)[chosen], result.unit)


def state(
    asking: Asking, plan: Plan, questions: Sequence[Question], alphas: Array, unit: float
) -> tuple[Archive, dict[str, Archive]]:
    """Ask for strict bounds at given points, and state what they prove; objectives are sums divided by `unit`."""
    asking.ask(questions)
    problem = {
        "loss": loss_form(plan),
        "intercept": bool(plan.fit_intercept),
        "standardize": str(plan.standardize),
    }
    return make_statement(
        plan, asking.strict, questions, problem=problem, alpha=alphas, ridge=plan.ridge, unit=unit,
        feature_weights=plan.weights, column_scale=asking.scales, names=plan.columns,
    )  # fmt: skip


def part_of(site: Site) -> Archive:
    """``certificate-part.npz`` of a site: what proves its answers to the last questions for a certificate that are in
    its log. It stays at the site.

    Parameters
    ----------
    site : Site

    Returns
    -------
    Archive
        ``part.save("certificate-part.npz")``.
    """
    plan, log = site.agreed(), site.node().log
    for entry in reversed(log.rounds(plan.digest).values()):
        asked = unseal_round(log.message(entry), plan)
        every = zip(asked.questions, asked.units, strict=True)
        pairs = [pair for pair in every if (pair[0].kind, pair[0].problem) == ("part", "all")]
        if pairs and entry["answer"] is not None:
            questions, units = zip(*pairs, strict=True)
            local = site.local_with(asked.scales)
            return local.part(site.name, site.keys.salt, questions, units, names=plan.columns)
    raise FederatedError("part", "nobody has asked this site for bounds of a certificate")
