"""Whether probabilities of classes are shares: a line for each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..fitted.probability_calibration import ProbabilityCalibration, probability_calibration
from ..tasks import PatternedMatrix
from .content import ExtraTable, with_error

MOST = 200  # lines in a page


def held_out_calibration(model: Any, X: Any, y: Any, **rows: Any) -> ProbabilityCalibration | None:
    """Of the rows that a model was fitted to; None where it has no probabilities out of fold, or rows lack columns."""
    known = is_classifier(model) and hasattr(model, "predict_proba") and hasattr(model, "cv_predictions_")
    known = known and hasattr(model, "path_")  # machines on a graph have none, and no calibration
    if not known or isinstance(X, PatternedMatrix):
        return None
    rows.pop("groups", None)
    return probability_calibration(model, X, y, **rows)


def probability_table(found: ProbabilityCalibration) -> ExtraTable:
    """Intercepts and slopes of a `probability_calibration`."""
    lines = found.lines
    several, weighted = len(set(lines.label.tolist())) > 1, len(set(lines.weighting.tolist())) > 1
    columns = [
        "Task",
        *["Class"] * several,
        *["Probabilities"] * weighted,
        "Rows",
        "Mean",
        "Share",
        "In the large",
    ]
    rows = [
        [
            str(lines.task[k]),
            *[str(lines.label[k])] * several,
            *[str(lines.weighting[k])] * weighted,
            f"{int(lines.n_rows[k]):,}",
            f"{lines.expected[k]:.3f}",
            f"{lines.observed[k]:.3f}",
            *(_cell(lines[name][k], lines[f"{name}_error"][k]) for name in ("intercept", "slope")),
        ]
        for k in range(min(MOST, len(lines.n_rows)))
    ]
    label = "" if several or not len(lines.label) else f" of {lines.label[0]}"
    note = (
        f"Mean probability{label} of models that had not learned from the rows, and the share of rows that are of the "
        "class. In the large: what has to be added to the log-odds for these to agree, ± standard error (0 is right). "
        "Slope: the coefficient of the log-odds in a logistic regression (1 is right; above, as is usual after a "
        "penalty, probabilities differ too little; below, too much)."
    )
    if weighted:
        note += " Corrected back: without what the weights of classes have done to the intercept."
    left = len(lines.n_rows) - MOST
    note += f" {left:,} more lines are left out." if left > 0 else ""
    return ExtraTable("Calibration of the probabilities", note, [*columns, "Slope"], rows)


def named_calibration(found: ProbabilityCalibration, names: Mapping[Any, str]) -> ProbabilityCalibration:
    """With the names of tasks that people know them by."""
    task, lines = (np.array([names.get(t, str(t)) for t in each.task.tolist()], dtype=object) for each in
                   (found, found.lines))  # fmt: skip
    return replace(found, task=task, lines=replace(found.lines, task=lines))


def _cell(value: float, error: float) -> str:
    return with_error(float(value), float(error)) if np.isfinite(value) else "–"
