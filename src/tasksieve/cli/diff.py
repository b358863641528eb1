"""``tasksieve diff``: several runs beside each other, in the terminal, as JSON, or as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report.compared import Line, run_rows, write_compared
from ..report.page import need_jinja
from ..report.words import count
from ..runs.compared import ComparedRun, compare_runs, read_runs
from .exit_codes import OK, UsageError
from .in_json import in_json
from .options import BY_KEY, Asked, flag, gibibytes
from .written import aligned

NAMED = 12  # features that are named in a line
TASKS = 30  # tasks that have a line
SAME = {
    True: "the data are the same",
    False: "the DATA DIFFER",
    None: "whether the data are the same is not known",
}


def run_diff(asked: Asked) -> int:
    """Compare two or more runs."""
    page = asked.html
    if len(asked.runs) < 2:
        raise UsageError("diff: name two or more runs")
    if page is not None:
        if Path(page).suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"--html: a file that ends with .html, got {page}")
        if not Path(page).absolute().parent.is_dir():
            raise UsageError(f"--html: there is no folder {Path(page).absolute().parent}")
        need_jinja()
    runs = read_runs(asked.runs, gibibytes(asked.max_memory))
    found = compare_runs(runs)
    for line in found["settings"]:
        line["setting"] = option_name(line["setting"])
    if asked.json:
        print(in_json(found))
    elif not asked.quiet:
        print("\n".join(comparison_lines(runs, found)))
    if page is not None:
        write_compared(found, [run.content for run in runs], page)
        if not asked.quiet and not asked.json:
            print(f"to read: {page}")
    return OK


def option_name(key: str) -> str:
    return flag(key) if key in BY_KEY else key.replace("_", "-")


def comparison_lines(runs: Sequence[ComparedRun], found: dict[str, Any]) -> list[str]:
    """Tables for people."""
    names = [run.name for run in runs]
    lines = aligned([["", *names], *([name, *cells] for name, cells in summary_rows(found))])
    lines.append(SAME[found["same_data"]])
    lines += ["", "settings that differ"]
    if found["settings"]:
        rows = [[row["setting"], *(setting(value) for value in row["values"])] for row in found["settings"]]
        lines += aligned([["", *names], *rows])
    else:
        lines.append("none")
    lines += ["", *feature_lines(found, names)]
    lines += ["", *coefficient_lines(found)]
    if len(found["tasks"]) > 1 or any(v is not None for row in found["tasks"] for v in row["scores"]):
        lines += ["", *score_lines(found, names)]
    return lines


def summary_rows(found: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The same numbers of every run, under each other."""
    lines: list[Line] = [
        ("model", "model", str),
        ("/".join(sorted({run["strength"] for run in found["runs"]})), "value", "{:.6g}".format),
        ("table", "table", str),
        ("rows", "rows", "{:,}".format),
        ("tasks", "tasks", "{:,}".format),
        ("features", "features", "{:,}".format),
        ("features selected", "selected", "{:,}".format),
        ("objective", "objective", "{:.6g}".format),
        ("gap, at most", "dual_gap", "{:.2g}".format),
        ("gap / empty model's objective", "relative_gap", "{:.2g}".format),
        ("converged", "converged", lambda reached: "yes" if reached else "NO"),
    ]
    return run_rows(found["runs"], lines, figure, "-")


def figure(score: float) -> str:
    """A score: what is only rounding about zero is zero."""
    return "0" if abs(score) < 1e-9 else f"{score:.4g}"


def setting(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def listed(names: Sequence[str], most: int, n: int) -> str:
    """The first of n names."""
    return ", ".join(names[:most]) + (f", and {n - most:,} more" if n > most else "")


def feature_lines(found: dict[str, Any], names: Sequence[str]) -> list[str]:
    features = found["features"]
    both = "both" if len(names) == 2 else f"all {len(names)}"
    held = {f"in {both}": features["in_all"], **{f"only in {name}": features["only"][name] for name in names}}
    return [
        f"features in use: {len(features['strengths']):,} in any run, {len(features['in_all']):,} in {both}",
        *(f"  {where}: {listed(own, NAMED, len(own))}" for where, own in held.items() if own),
    ]


def coefficient_lines(found: dict[str, Any]) -> list[str]:
    lines = ["coefficients"]
    for pair in found["coefficients"]:
        if pair["largest_difference"] is None:
            lines.append(f"  {pair['run']} and {pair['against']} have no task and feature in common")
            continue
        alike = "" if pair["correlation"] is None else f", correlation {pair['correlation']:.4f}"
        lines.append(
            f"  {pair['run']} against {pair['against']}: largest difference {pair['largest_difference']:.3g}, "
            f"mean {pair['mean_difference']:.3g}{alike}, {count(pair['opposite_signs'], 'opposite sign')} "
            f"({count(pair['tasks'], 'task')} x {count(pair['features'], 'feature')} in use)"
        )
        if pair["largest"]:
            one, other = pair["against"], pair["run"]
            rows = [["feature", "task", one, other]]
            for row in pair["largest"]:
                rows.append([row["feature"], row["task"], f"{row[one]:.4g}", f"{row[other]:.4g}"])
            lines += [f"    {line}" for line in aligned(rows, left=2)]
    return lines


def score_lines(found: dict[str, Any], names: Sequence[str]) -> list[str]:
    tasks = found["tasks"]
    rows = [[row["task"], *("-" if v is None else figure(v) for v in row["scores"])] for row in tasks[:TASKS]]
    measures = list(dict.fromkeys(run["measure"] for run in found["runs"] if run["measure"]))
    more = [f"and {len(tasks) - TASKS:,} more tasks (--json has all)"] if len(tasks) > TASKS else []
    return [f"by task: {'; '.join(measures)}", *aligned([["", *names], *rows]), *more]
