"""The findings of a run as a report shows them: beside a model, or alone."""

from __future__ import annotations

import os
import shlex
from typing import Any

import numpy as np
import scipy.sparse

from ..report.content import ReportContent
from ..report.words import few
from .findings import read_findings
from .folder import CONFIG, DATA, VERSIONS, RunFolder
from .methods import methods
from .registry import MODELS

SPENT = {
    "read": "seconds to read the table",
    "fit": "seconds to fit",
    "permutations": "seconds for the permutations",
    "stability": "seconds for the halves",
    "intervals": "seconds for the intervals",
    "comparison": "seconds to compare",
}


def as_written(folder: RunFolder) -> dict[str, Any]:
    """What every report takes from the files of its run as it is."""
    data = folder.read_json(DATA)
    return {
        "reproduce": without_folders(str(data.get("reproduce", ""))),
        "versions": {str(name): str(value) for name, value in folder.read_json(VERSIONS).items()},
        "warnings": [str(note) for note in data.get("notes", [])],
    }


def without_folders(command: str) -> str:
    """A command with files by their names alone: a report is shown around, and folders tell of people and projects. Of
    files that have the same name, what their folders have in common is left out."""
    words = shlex.split(command)
    if not any(map(os.path.isabs, words)):
        return command
    out = len(words) - 1 if words[-2:-1] == ["--out"] else len(words)
    files = [word for word in words[:out] if os.path.isabs(word)]
    shared = os.path.commonpath([os.path.dirname(file) for file in files]) if files else ""
    names = [os.path.basename(file) for file in files]
    if len(set(names)) < len(names):
        short = {file: os.path.relpath(file, shared) for file in files}
    else:
        short = dict(zip(files, names, strict=True))
    if out < len(words):
        short[words[out]] = os.path.basename(words[out].rstrip(os.sep))
    return shlex.join(short.get(word, word) for word in words)


def missing_facts(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Values of features that were missing, and what became of them."""
    lost = data.get("missing")
    if not lost:
        return []
    about = "; the certificate is about the completed data" if str(lost["treatment"]).startswith("filled") else ""
    words = f"{lost['values']:,} in {lost['columns']:,} columns, at most {lost['most']}: {lost['treatment']}{about}"
    return [("missing values", words)]


def data_facts(data: dict[str, Any], n_covariates: int = 0) -> list[tuple[str, str]]:
    return [
        ("table", str(data["name"])),
        ("rows used", f"{data['rows']:,} of {data['table_rows']:,}"),
        *missing_facts(data),
        ("tasks", f"{data['tasks']:,}"),
        ("features", f"{int(data['features']) - n_covariates:,}"),
    ]


def run_facts(folder: RunFolder, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Seconds, part by part, and the digest of the data."""
    timing = folder.read_json("timing.json")
    spent = [(title, f"{float(timing[name]):.2f}") for name, title in SPENT.items() if name in timing]
    return [*spent, ("data digest (sha256)", str(data["sha256"])[:16] + "...")]


def findings_content(folder: RunFolder) -> ReportContent:
    """Everything a report shows of a run of ``stability`` or ``compare``, which leaves no model."""
    config, data = folder.read_json(CONFIG), folder.read_json(DATA)
    (trust, names), (paragraph, citations) = read_findings(folder), methods(folder)
    shown = few(config.get("target", []), 3)
    tasks, d = int(data["tasks"]), int(data["features"])
    kind = MODELS[str(config["model"])]
    if config.get("command") == "compare":
        title = f"Does sharing help to predict {shown}?"
        asked = f"Do {tasks:,} tasks predict “{shown}” better together, from {d:,} features, than each alone?"
    else:
        title = f"Which features of {shown} would be found again?"
        where = f" in {tasks:,} tasks" if tasks > 1 else ""
        again = f"Which of {d:,} features would be selected again to predict “{shown}”{where}"
        asked = f"{again}, on other rows like these?"
    asked += f" {int(data['rows']):,} rows of {data['name']} were used. The model is {kind.name}: {kind.what}."
    return ReportContent(
        title=title,
        asked=asked,
        answered=trust.headline(names) if trust.sharing is None else trust.sharing.headline(),
        tasks=np.zeros(0, dtype=str),
        features=np.array(names, dtype=str),
        coef=scipy.sparse.csr_array((0, len(names))),
        intercept=np.zeros(0),
        certificate={},
        facts=[*data_facts(data), ("model", kind.name), *run_facts(folder, data)],
        **as_written(folder),
        trust=trust,
        methods=paragraph,
        citations=citations,
        fitted=False,
    )
