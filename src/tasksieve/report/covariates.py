"""Covariates apart from what was selected: their coefficients in a table of their own."""

from __future__ import annotations

import numpy as np

from .content import ExtraTable, ReportContent
from .words import few, plural, quantity

MOST_COLUMNS = 8  # rows of coefficients that are shown side by side
NAMED = 10  # in the list of facts


def selection_facts(content: ReportContent) -> list[tuple[str, str]]:
    """How many features were selected, and the covariates beside them, for the list of facts."""
    if not content.selects:
        return []
    facts = [("features selected", f"{content.n_selected_features:,}")]
    if len(content.covariates):
        names = few(content.features[content.covariates].tolist(), NAMED)
        facts.append(("covariates, not penalised", f"{len(content.covariates):,}: {names}"))
    return facts


def covariate_tables(content: ReportContent) -> list[ExtraTable]:
    """The coefficients of covariates, where there are any: task by task, those of many tasks inside each line."""
    if not len(content.covariates):
        return []
    coef = content.coef[:, content.covariates].toarray()
    rows = [str(name) for name in content.tasks]
    names = [str(content.features[j]) for j in content.covariates.tolist()]
    note = (
        "These features are never penalised: they are in every model, the null model included, and being here is no "
        "finding. The quality of the model is given beyond them."
    )
    if len(rows) <= MOST_COLUMNS:
        pairs = zip(names, coef.T, strict=True)
        cells = [[name, *(quantity(value, sign=True) for value in own)] for name, own in pairs]
        return [ExtraTable("Covariates", note, ["Covariate", *rows], cells)]
    sizes = np.linalg.norm(coef, axis=0)
    inside = [
        [(row, quantity(value, sign=True)) for row, value in zip(rows, own, strict=True)] for own in coef.T
    ]
    columns = ["Covariate", f"Strength over all {plural(content.row_noun)}"]
    lines = [[name, quantity(size)] for name, size in zip(names, sizes, strict=True)]
    return [ExtraTable("Covariates", note, columns, lines, inside)]
