"""Several runs on one page: tables and pictures side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .content import ReportContent
from .packing import shorten
from .page import fill, write_page
from .words import capital, count, numbers, plural, quantity, score, small

SCRIPT = ("helpers", "axes", "saving", "compared")
MOST_FEATURES = 60  # in the table; more are counted
MOST_TASKS = 60
Line = tuple[str, str, Callable[[Any], str]]  # of a table: its title, the key of a run, and how that is written
MOST_POINTS = 4_000  # of a scatter of coefficients


def write_compared(found: Mapping[str, Any], contents: Sequence[ReportContent], path: str | os.PathLike[str]) -> Path:
    """Write the comparison of runs, `runs.compared.compare_runs`, as one HTML file, whole or not at all."""
    names = shorten([run["run"] for run in found["runs"]])
    features, tasks = found["features"]["strengths"], found["tasks"]
    data = {
        "runs": names,
        "curves": [_curve(content) for content in contents],
        "features": [
            {"name": shorten([row["feature"]])[0], "strengths": numbers(row["strengths"])}
            for row in features[:MOST_FEATURES]
        ],
        "tasks": [
            {"name": shorten([row["task"]])[0], "scores": [None if v is None else float(v) for v in row["scores"]]}
            for row in tasks[:MOST_TASKS]
        ],
        "measure": "; ".join(dict.fromkeys(run["measure"] for run in found["runs"] if run["measure"])),
        "scatters": [_scatter(contents[0], content) for content in contents[1:]],
    }
    page = fill(
        "compared.html",
        SCRIPT,
        found=found,
        names=names,
        rows=_rows(found),
        data=data,
        more_features=len(features) - MOST_FEATURES,
        more_tasks=len(tasks) - MOST_TASKS,
        features=features[:MOST_FEATURES],
        tasks=tasks[:MOST_TASKS],
        measure=data["measure"],
        count=count,
        plural=plural,
    )
    return write_page(page, path)


def _rows(found: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The lines of the first table."""
    lines: list[Line] = [
        ("Model", "model", str),
        ("Strength of the penalty (C: of the loss)", "value", quantity),
        ("Table", "table", str),
        ("Rows", "rows", "{:,}".format),
        ("Tasks", "tasks", "{:,}".format),
        ("Features", "features", "{:,}".format),
        ("Features selected", "selected", "{:,}".format),
        ("Objective", "objective", quantity),
        ("Duality gap (distance to the best, at most)", "dual_gap", small),
        ("Gap / objective of the empty model", "relative_gap", small),
        ("Tolerance reached", "converged", lambda reached: "yes" if reached else "no"),
    ]
    return run_rows(found["runs"], lines, score, "–")


def run_rows(
    runs: Sequence[Mapping[str, Any]], lines: Sequence[Line], style: Callable[[float], str], none: str
) -> list[tuple[str, list[str]]]:
    """The same numbers of every run under each other: those of the lines, each measure of quality that any run has with
    its standard error, and the version."""

    def texts(key: str, style: Callable[[Any], str]) -> list[str]:
        return [none if run[key] is None else style(run[key]) for run in runs]

    rows = [(title, texts(key, own)) for title, key, own in lines]
    for measure in dict.fromkeys(run["measure"] for run in runs if run["measure"]):
        cells = []
        for run in runs:
            own = run["measure"] == measure and run["score"] is not None
            spread = f" ± {run['score_error']:.2g}" if own and run["score_error"] is not None else ""
            cells.append(f"{style(run['score'])}{spread}" if own else none)
        rows.append((measure, cells))
    return [*rows, ("tasksieve", texts("tasksieve", str))]


def _curve(content: ReportContent) -> dict[str, Any] | None:
    """The held-out loss along the path, where there was cross-validation."""
    if content.alphas is None or content.cv_scores is None or len(content.alphas) < 2:
        return None
    scores = np.asarray(content.cv_scores, dtype=np.float64)
    return {
        "shares": numbers(content.alphas / np.max(content.alphas)),
        "mean": numbers(scores.mean(axis=1)),
        "chosen": int(content.chosen % len(content.alphas)),
        "measure": capital(content.cv_measure),
    }


def _scatter(first: ReportContent, other: ReportContent) -> list[list[float]]:
    """Coefficients of the same task and feature in two runs, where one is not zero; the largest, if they are many."""
    points: dict[tuple[str, str], list[float]] = {}
    for k, content in enumerate((first, other)):
        entries = content.coef.tocoo()
        for t, j, value in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True):
            points.setdefault((str(content.tasks[t]), str(content.features[j])), [0.0, 0.0])[k] = value
    tasks = set(map(str, first.tasks)) & set(map(str, other.tasks))
    features = set(map(str, first.features)) & set(map(str, other.features))
    kept = [pair for (task, name), pair in points.items() if task in tasks and name in features and any(pair)]
    kept.sort(key=lambda pair: -max(abs(pair[0]), abs(pair[1])))
    return [[float(f"{value:.6g}") for value in pair] for pair in kept[:MOST_POINTS]]
