"""audit/results.json from the cells: what the page is made of, and small enough for version control.

    python audit/results.py

Certificates and data stay where they are; their digests are kept. Of cells that are not in audit/cells/, because
only some rows were run again, what the file said before is kept.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from cells import CELLS, GOOD, SAME, all_cells, write_whole
from datasets import COLUMNS, DATASETS, ROWS
from programs import NOT_RUN, PROGRAMS, SHARES

HERE = Path(__file__).resolve().parent
FILE = HERE / "results.json"


def main() -> None:
    before = json.loads(FILE.read_text()) if FILE.exists() else {"cells": [], "programs": {}, "datasets": {}}
    known = {(one["program"], one["dataset"], one["loss"]): one for one in before["cells"]}
    cells = [json.loads(cell.file.read_text()) | {"cell": cell} for cell in all_cells() if cell.file.exists()]
    made = {tuple(one["cell"]) for one in cells}
    confirmed = {
        (one["program"], one["loss"])
        for one in [*cells, *(one for cell, one in known.items() if cell not in made)]
        if any(own["closest"] <= SAME for own in one.get("strengths", []))
    }
    fresh = {tuple(one["cell"]): _cell(one, confirmed) for one in cells}
    kept = [found for cell in all_cells() if (found := fresh.get(cell, known.get(cell))) is not None]
    versions = {name: one["versions"] for name, one in before["programs"].items()}
    versions |= {one["program"]: one["versions"] for one in cells if one["versions"]}
    clarabel = CELLS / "clarabel.json"
    content = {
        "date": time.strftime("%Y-%m-%d"),
        "rules": {"shares": list(SHARES), "rows": ROWS, "columns": COLUMNS, "same": SAME, "good": GOOD},
        "programs": {
            name: {
                "versions": versions[name], "tolerance": one.tolerance, "default": one.default,
                "defaults": one.defaults, "meaning": one.meaning, "recommended": one.recommended,
                "recommended_where": one.recommended_where, "exact_zeros": one.exact_zeros,
            }
            for name, one in PROGRAMS.items()
            if name in versions
        },
        "not_run": NOT_RUN,
        "datasets": {
            one.name: {
                "source": one.source, "copied": one.copied,
                **_dataset([c for c in cells if c["dataset"] == one.name], before["datasets"].get(one.name)),
            }
            for one in DATASETS.values()
            if any(c["dataset"] == one.name for c in kept)
        },
        "cells": kept,
        "clarabel": _rounded(json.loads(clarabel.read_text())) if clarabel.exists() else before.get("clarabel", []),
    }  # fmt: skip
    write_whole(FILE, json.dumps(content, indent=1) + "\n")
    print(f"{len(kept)} cells in {FILE}")


def _dataset(cells: list[dict[str, Any]], before: dict[str, Any] | None) -> dict[str, Any]:
    """Sizes, digests and marks by loss. Numbers that have changed would make cells of another run another problem."""
    found = before or {"sizes": {}, "digests": {}, "notes": []}
    for one in cells:
        loss, digest = one["loss"], one["digest"]
        if found["digests"].setdefault(loss, digest) != digest:
            raise SystemExit(f"{one['dataset']} ({loss}) has changed: run all of its cells again")
        found["sizes"][loss] = [one["rows"], one["columns"]]
        found["notes"] = sorted({*found["notes"], *one["notes"]})
    return {key: found[key] for key in ("sizes", "notes", "digests")}


def _cell(one: dict[str, Any], confirmed: set[tuple[str, str]]) -> dict[str, Any]:
    """One cell without what can be had from its file: status, numbers at both strengths, digests, checks."""
    cell = one["cell"]
    kept = {
        "program": one["program"],
        "dataset": one["dataset"],
        "loss": one["loss"],
        "status": one["status"],
        "graded": one["graded"],
    }
    if "strengths" not in one:
        return kept | {"why": one["why"]}
    if one["status"] != "same problem" and (one["program"], one["loss"]) not in confirmed:
        kept["status"] = "undecided"
    check = cell.file.with_suffix(".check.json")
    checks = json.loads(check.read_text()) if check.exists() else {}
    kept["needed"] = one["needed"]
    kept["strengths"] = []
    for own in one["strengths"]:
        checked = checks.get(f"{own['share']:g}", {})
        if checked.get("digest") != own["certificate"]:
            checked = {}
        default = {key: value for key, value in own["default"].items() if key != "warned"}
        kept["strengths"].append(
            {
                "share": own["share"], "alpha": own["alpha"], "default": default, "warned": own["default"]["warned"],
                "recommended": own.get("recommended"), "ladder": own["ladder"], "closest": own["closest"],
                "certificate": own["certificate"], "floating": checked.get("floating"), "exact": checked.get("exact"),
            }
        )  # fmt: skip
    return _rounded(kept)


def _rounded(value: Any) -> Any:
    """Six digits are enough to read, and let small files stay small."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
