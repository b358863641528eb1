"""How estimators show themselves in a notebook: scikit-learn's diagram, a link to their page, and their certificate."""

from __future__ import annotations

import math
import os
from html import escape
from typing import Any, ClassVar

import numpy as np

from .choosing import GREATER, two_rules
from .covariates import covariates_of

#: Where the documentation is, ending in a slash: the address planned for it, or that of a copy of one's own; empty: no
#: links. Each class has a page there (docs/api).
DOCUMENTATION = os.environ.get("TASKSIEVE_DOCUMENTATION", "https://tasksieve.readthedocs.io/")

_STYLE = "margin:.5em 0;border-collapse:collapse;font-size:.9em"
_CELL = "padding:.15em .8em .15em 0;text-align:left;border-bottom:1px solid currentColor"


class Shown:
    """Mixed into estimators, before `sklearn.base.BaseEstimator`."""

    _doc_link_module: ClassVar[str] = "tasksieve"
    _doc_link_template: ClassVar[str] = "{address}"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        address = f"{DOCUMENTATION}api/generated/tasksieve.{type(self).__name__}.html" if DOCUMENTATION else ""
        return {"address": escape(address)}

    def _repr_html_inner(self) -> str:
        shown: str = super()._repr_html_inner()  # type: ignore[misc]
        return shown + certificate_html(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += certificate_html(self)
        return bundle


def certificate_html(model: Any) -> str:
    """What is proved of a fitted model, as a table; nothing where nothing is."""
    rows = certificate_rows(model)
    if not rows:
        return ""
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    caption = f"Certificate of {type(model).__name__}"
    return (
        f'<table class="tasksieve-certificate" style="{_STYLE}">'
        f'<caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>'
        f"<tbody>{body}</tbody></table>"
    )


def certificate_rows(model: Any) -> list[tuple[str, str]]:
    """(what, how much) of a fitted model that has a duality gap."""
    known = vars(model)
    if "dual_gap_" not in known or "coef_" not in known:
        return []
    gap, null = float(np.max(known["dual_gap_"])), known.get("null_objective_")
    rows = [("objective", f"{float(np.sum(known['objective_'])):.6g}")] if "objective_" in known else []
    rows.append(("duality gap: at most so far from the optimum", f"{gap:.3g}"))
    tol = getattr(model, "tol", None)
    if null is not None and tol is not None and float(np.max(null)) > 0.0:
        goal = float(tol) * float(np.max(null))
        reached = "reached" if gap <= goal * (1.0 + 1e-12) else "not reached"
        rows.append((f"goal: tol = {tol:g} of the objective at W = 0", f"{goal:.3g}, {reached}"))
    elif null is not None and tol is not None:
        rows.append(("objective at W = 0", "0: the empty model explains y"))
    if hasattr(model, "get_support"):
        support = model.get_support()
        covariates = covariates_of(model, len(support))
        support = np.delete(support, covariates)
        rows += selected_rows(known, int(np.count_nonzero(support)), len(support))
        if len(covariates):
            rows.append(("covariates, not penalised", f"{len(covariates):,}"))
    if "alpha_" in known and math.isfinite(known["alpha_"]):
        rows.append(("alpha chosen", f"{known['alpha_']:.6g}"))
    rows.append(("tasks", f"{len(known['tasks_']):,}"))
    return rows


def selected_rows(known: dict[str, Any], n_selected: int, n_features: int) -> list[tuple[str, str]]:
    """Count the features in use: where scores have chosen among the values of a path, at one standard error and at
    the best score, and which of both predicts."""
    of = f"{n_selected:,} of {n_features:,}"
    if "path_scores_" not in known or "path_" not in known:
        return [("features selected", of)]
    path = known["path_"]
    best, careful = two_rules(known["path_scores_"], GREATER if known.get("scoring") is not None else "")
    predicts = careful if known["alpha_"] == path.alphas[careful] else best
    rows = []
    for k, where in ((careful, "at one standard error"), (best, "at the best score, which keeps noise")):
        if k == predicts:
            rows.append((f"features {where}; predictions use them", of))
        else:
            how = '; selection_rule="1se" predicts with them' if k == careful else ""
            rows.append((f"features {where}{how}", f"{path.n_selected[k]:,} of {n_features:,}"))
    return [*rows, ("which would be found again", "ts.StabilitySelection says")]
