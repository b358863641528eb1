"""What a report shows of risk groups: curves for the page, and a table for readers without the script."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ..fitted.risk_groups import RiskGroup, RiskGroups
from .content import ExtraTable
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
    """Rows, events, and rows at risk at the marks; observed and expected shares at the middle one."""
    middle = found.marks[len(found.marks) // 2]
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
    note = "Shares without an event, and rows under observation."
    return ExtraTable(
        "Thirds of risk, in numbers",
        note + (f" {left} more tasks are left out." if left > 0 else ""),
        columns,
        rows,
    )


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
    return RiskGroups(written["tasks"], np.array(written["marks"]), bool(written["held_out"]), groups)


def _array(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return np.array([np.nan if item is None else item for item in value])
