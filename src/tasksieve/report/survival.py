"""What a report shows of risk groups: curves for the page, and a table for readers without the script."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ..fitted.risk_groups import RiskGroup, RiskGroups
from .content import ExtraTable, with_error
from .words import numbers, quantity

MOST_TASKS = 40


def risk_note(found: RiskGroups) -> str:
    """How rows were ranked, and how the curves are to be read."""
    ranked = (
        "Rows are ranked, within their task, by models that had not learned from them."
        if found.held_out
        else "Rows are ranked, within their task, by the model that has learned from them: the groups are further "
        "apart than those of new rows would be."
    )
    return (
        f"{ranked} Solid: the observed share without an event (Kaplan-Meier). Dashed: the share that the model expects "
        "of the same rows; where both agree, it is calibrated."
    )


def risk_table(found: RiskGroups) -> ExtraTable:
    """Rows, events, and rows at risk at the marks; observed and expected shares at the median time of events."""
    middle = found.marks[len(found.marks) // 2] if found.middle is None else found.middle  # None: of earlier runs
    at = quantity(middle)
    columns = ["Task, third of risk", "Rows", "Events", f"Observed at {at}", f"Expected at {at}"]
    columns += [f"At risk at {quantity(mark)}" for mark in found.marks]
    rows = [
        [
            f"{task}, {group.name}",
            f"{group.n_rows:,}",
            f"{group.n_events:,}",
            share(group, group.observed, middle),
            share(group, group.expected, middle),
            *(f"{count:,}" for count in group.at_risk.tolist()),
        ]
        for task, groups in list(zip(found.tasks, found.groups, strict=True))[:MOST_TASKS]
        for group in groups
    ]
    left = len(found.tasks) - MOST_TASKS
    note = f"Shares without an event at {at}, observed (Kaplan-Meier) and expected by the model; rows at risk."
    return ExtraTable(
        "Thirds of risk, in numbers",
        note + (f" {left} more tasks are left out." if left > 0 else ""),
        columns,
        rows,
    )


def calibration_table(found: RiskGroups) -> list[ExtraTable]:
    """The slope of the ranks of each task, where it is known."""
    if not len(found.slopes):
        return []
    rows = [
        [
            str(task),
            f"{sum(group.n_events for group in groups):,}",
            with_error(slope, error) if np.isfinite(slope) else "–",
        ]
        for task, groups, slope, error in zip(
            found.tasks, found.groups, found.slopes, found.slope_errors, strict=True
        )
    ][:MOST_TASKS]
    note = (
        "The coefficient of the predicted log hazard in a Cox model of the same rows, ± its standard error. 1: "
        "calibrated; above 1: risks differ more than predicted, as is usual after a penalty (ts.refit undoes it); "
        "below 1: less, the model follows its training rows too closely."
    )
    note += (
        " Predictions are by models that had not learned from the rows."
        if found.held_out
        else " The rows are those that the model has learned from: on new ones the slope is smaller."
    )
    return [ExtraTable("Calibration of each task", note, ["Task", "Events", "Calibration slope"], rows)]


def share(group: RiskGroup, values: np.ndarray, at: float) -> str:
    """A curve at a time."""
    k = int(np.searchsorted(group.times, at, side="right"))
    value = 1.0 if k == 0 else float(values[k - 1])
    return f"{value:.0%}" if np.isfinite(value) else "–"


def risk_data(found: RiskGroups) -> dict[str, Any]:
    """For the page's script."""
    return {
        "note": risk_note(found),
        "tasks": list(found.tasks),
        "marks": numbers(found.marks),
        "groups": [
            [
                {
                    "name": group.name,
                    "rows": group.n_rows,
                    "events": group.n_events,
                    "times": numbers(group.times),
                    "observed": numbers(group.observed),
                    "expected": numbers(group.expected),
                    "atRisk": group.at_risk.tolist(),
                }
                for group in groups
            ]
            for groups in found.groups
        ],
    }


def as_written(found: RiskGroups) -> dict[str, Any]:
    """For a file of a run."""
    written = asdict(found)
    written["marks"] = found.marks.tolist()
    for name in ("slopes", "slope_errors"):
        written[name] = [float(value) if np.isfinite(value) else None for value in written[name]]
    for groups in written["groups"]:
        for group in groups:
            group.update(
                {
                    name: np.asarray(group[name]).tolist()
                    for name in ("times", "observed", "expected", "at_risk")
                }
            )
    return written


def as_read(written: dict[str, Any]) -> RiskGroups:
    """From such a file."""
    groups = [
        [RiskGroup(**{name: _array(value) for name, value in group.items()}) for group in own]
        for own in written["groups"]
    ]
    slopes, errors = (
        [np.nan if value is None else float(value) for value in written.get(name, ())]
        for name in ("slopes", "slope_errors")
    )
    middle = written.get("middle")
    marks, held_out = np.array(written["marks"]), bool(written["held_out"])
    return RiskGroups(written["tasks"], marks, held_out, groups, middle, slopes, errors)


def _array(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return np.array([np.nan if item is None else item for item in value])
