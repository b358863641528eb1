"""The page of a federated fit: what was found of the rows of all sites, its proof, and what was exchanged for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..versions import versions
from .choice import looks, set_tiles
from .content import ReportContent
from .packing import pack, shorten
from .page import STATIC_ROWS, fill, observations, optimum_interval
from .words import count, few, numbers, quantity, small

SCRIPT = ("helpers", "axes", "saving", "basics", "plots", "table", "federated", "ready")
OF_A_PATH = ("path",)
STABLE_ROWS = 50  # in the table of stability
THRESHOLD = 0.75  # of the halves: above it features are counted as found again

def federated_page(fit: Any, plan: Any = None) -> str:
    """The page as one HTML document.

    - `fit`: A `FederatedFit`.
    - `plan`: The plan of the fit; with it the page says what all sites have agreed to.
    """
    if plan is not None and plan.digest != fit.plan_digest:
        raise ValueError("plan is not the plan of this fit.")
    content = _content(fit)
    packed = pack(content)
    data: dict[str, Any] = packed.data
    # the coefficients of tasks are not known: there are lengths alone
    data |= {"tasks": [""] * len(fit.tasks), "coefficients": None, "pathCoefficients": None}
    shares = fit.selection_probabilities
    data["stable"] = None if shares is None else numbers(shares[packed.order])
    k = fit.chosen
    signed = None if fit.statement is None else float(fit.statement.arrays["gap"][0])
    gap = float(fit.dual_gaps[k]) if signed is None else signed
    objective = fit.objectives[k] if fit.statement is None else fit.statement.arrays["objective"][0]
    parts = [name for name in (*SCRIPT[:5], *OF_A_PATH, *SCRIPT[5:]) if data["path"] or name not in OF_A_PATH]
    return fill(
        "federated.html",
        parts,
        fit=fit,
        version=versions()["tasksieve"],
        data=data,
        asked=f"Which of {count(_n_penalised(fit), 'feature')} matter for {count(len(fit.tasks), 'task')} at "
        f"{count(len(fit.sites), 'site')} that keep their rows?",
        answered=_answered(fit),
        tiles=_tiles(fit, content, gap),
        looks=looks(content),
        warnings=_warnings(fit, content),
        rows=_rows(fit, packed.order),
        left_out=packed.left_out,
        per=", per standard deviation of the column" if _standardised(fit, plan) else "",
        stability=None if shares is None else _stability(fit, plan),
        interval=optimum_interval({"objective": float(objective), "dual_gap": gap}),
        gap=gap,
        signed=None if signed is None else _signed(fit),
        facts=_facts(fit, signed),
        exchanges=_exchanges(fit),
        plan_lines=[] if plan is None else plan.in_words(),
        count=count,
    )


def _content(fit: Any) -> ReportContent:
    """The lengths of rows as if they were the coefficients of one task: what is drawn and packed of any path."""
    d = len(fit.columns)

    def lengths(k: int) -> scipy.sparse.csr_array:
        places = fit.features(k)
        return scipy.sparse.csr_array((fit.row_norms(k), places, [0, len(places)]), shape=(1, d))

    held = fit.held_out
    return ReportContent(
        title=fit.title, asked="", answered="",
        tasks=np.array([""], dtype=object),
        features=np.array(fit.columns, dtype=object),
        coef=lengths(fit.chosen),
        intercept=np.zeros(1),
        certificate={"tol": fit.tol, "converged": bool(fit.converged[fit.chosen])},
        alphas=np.asarray(fit.alphas),
        path_coefs=[lengths(k) for k in range(len(fit))],
        n_selected=fit.n_selected,
        relative_gaps=fit.relative_gaps,
        chosen=fit.chosen,
        cv_scores=None if held is None else held.scores,
        cv_measure="loss of held-out rows",
        rule_command='fit.held_out.best("1se")',
        covariates=np.arange(d - fit.n_covariates, d),
    )  # fmt: skip


def _n_penalised(fit: Any) -> int:
    return len(fit.columns) - fit.n_covariates


def _standardised(fit: Any, plan: Any) -> bool:
    return fit.column_scale is not None or (plan is not None and plan.standardize == "task")


def _strongest(fit: Any, k: int) -> list[str]:
    order = np.argsort(-fit.row_norms(k), kind="stable")
    return [fit.columns[j] for j in fit.features(k)[order].tolist()]


def _answered(fit: Any) -> str:
    k, names = fit.chosen, _strongest(fit, fit.chosen)
    how = "the last value of the path" if fit.held_out is None else "chosen by cross-validation at the sites"
    if not names:
        return f"None, at α = {quantity(fit.alphas[k])} ({how})."
    listed = few(shorten(names), 8).removesuffix(".")
    said = f"{count(len(names), 'feature')} at α = {quantity(fit.alphas[k])} ({how}): {listed}."
    if fit.held_out is not None:
        said += f" The loss of held-out rows is {100.0 * fit.explained[k]:.1f} % less than without features."
    return said


def _tiles(fit: Any, content: ReportContent, gap: float) -> list[tuple[str, str, str]]:
    k = fit.chosen
    found = set_tiles(content)
    if fit.selection_probabilities is not None:
        often = int(np.count_nonzero(fit.selection_probabilities >= THRESHOLD))
        found.insert(0, (f"{often:,}", f"features in {THRESHOLD:.0%} of the halves", f"of {_n_penalised(fit):,}"))
    if fit.held_out is not None:
        remark = "optimistic: α was chosen by these rows"
        found.append((f"{100.0 * fit.explained[k]:.1f} %", "less loss of held-out rows", remark))
    found += [
        (f"{len(fit.sites):,}", "sites", f"{count(len(fit.tasks), 'task')}; rows stay there"),
        (quantity(fit.alphas[k]), "penalty strength α", f"{fit.alphas[k] / fit.alphas[0]:.2g} × the largest"),
        (small(gap / (fit.null_objective or 1.0)), "distance to the optimum, at most", "of the empty model's loss"),
        (f"{fit.rounds:,}", "exchanges", f"{fit.bytes_up:,} bytes from a site"),
    ]
    return found


def _warnings(fit: Any, content: ReportContent) -> list[str]:
    found = observations(content)
    n_open = int(np.count_nonzero(~fit.converged))
    if n_open:
        found.append(f"{count(n_open, 'value')} with a larger gap than the plan asks for; all gaps are true.")
    return found


def _rows(fit: Any, order: np.ndarray) -> list[tuple[str, float, float]]:
    """The strongest features of the chosen value, for readers without the script."""
    k, shares = fit.chosen, fit.selection_probabilities
    length = dict(zip(fit.features(k).tolist(), fit.row_norms(k).tolist(), strict=True))
    kept = [j for j in order.tolist() if j in length][:STATIC_ROWS]
    names = shorten([fit.columns[j] for j in kept])
    return [
        (name, length[j], 0.0 if shares is None else float(shares[j])) for name, j in zip(names, kept, strict=True)
    ]


def _stability(fit: Any, plan: Any) -> dict[str, Any]:
    shares = fit.selection_probabilities
    assert shares is not None
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0.0]
    often = int(np.count_nonzero(shares >= THRESHOLD))
    words = (
        f"{count(often, 'feature')} of {_n_penalised(fit):,} among the first that are used in at least {THRESHOLD:.0%} "
        "of random halves of the rows, which each site draws from its own."
    )
    if plan is not None:
        bound = plan.q**2 / ((2.0 * THRESHOLD - 1.0) * _n_penalised(fit))  # without any assumption
        words += (
            f" Each of the {2 * plan.n_pairs} halves has {plan.q} features at most: of those that a half selects no "
            f"more often than by chance, at most {bound:.2g} would come so often, on average."
        )
    names = shorten([fit.columns[j] for j in order[:STABLE_ROWS].tolist()])
    rows = list(zip(names, shares[order[:STABLE_ROWS]].tolist(), strict=True))
    return {"words": words, "rows": rows, "more": max(len(order) - STABLE_ROWS, 0)}


def _signed(fit: Any) -> str:
    assert fit.statement is not None
    if fit.statement.header["masked"]:
        return "Answers were masked: the statement carries their sums and what each site has signed, not its numbers."
    return "Answers were open: the bounds of each site are in files of their own, and anybody can add them up."


def _facts(fit: Any, signed: float | None) -> list[tuple[str, str]]:
    k = fit.chosen
    facts = [
        ("Objective", quantity(fit.objectives[k])),
        ("Duality gap from the sums of answers", small(fit.dual_gaps[k])),
        *([("Duality gap with all rounding, signed by all sites", small(signed))] if signed is not None else []),
        ("Objective of the empty model", quantity(fit.null_objective)),
        ("Largest gap on the path / objective of the empty model", small(float(np.max(fit.relative_gaps)))),
        ("Tolerance asked for", small(fit.tol)),
        ("Reached", f"at {int(np.count_nonzero(fit.converged)):,} of {count(len(fit), 'value')}"),
    ]
    return facts


def _exchanges(fit: Any) -> list[tuple[str, int, int, int]]:
    found = [] if fit.exchanges is None else fit.exchanges[:, 1:].tolist()
    return [(words, *own) for words, own in zip(fit.exchange_words, found, strict=True)]
