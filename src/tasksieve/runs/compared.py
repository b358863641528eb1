"""Several runs beside each other: what was asked otherwise, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..report.content import ReportContent, mean_of
from ..report.packing import comparable, row_norms
from .content import run_content
from .folder import CONFIG, DATA, RunError, RunFolder

# Of a configuration, what says nothing about the question.
IGNORED = ("by_default", "config_format", "ids", "threads")
LARGEST = 10  # differences of coefficients that are listed


@dataclass
class ComparedRun:
    """One run, by the name of its folder."""

    name: str
    content: ReportContent
    config: dict[str, Any]
    data: dict[str, Any]

    @property
    def strengths(self) -> dict[str, float]:
        """Length of the coefficients of each penalised feature in use, in units that can be compared."""
        sizes = row_norms(comparable(self.content, self.content.penalised_coef))
        return {str(self.content.features[j]): float(sizes[j]) for j in np.flatnonzero(sizes)}

    @property
    def scores(self) -> dict[str, float]:
        """The headline, by task (or class)."""
        quality = self.content.headline
        if quality is None or len(quality.values) != len(self.content.tasks):
            return {}
        return {str(task): float(v) for task, v in zip(self.content.tasks, quality.values, strict=True)}


def read_runs(paths: Sequence[str], max_bytes: float | None = None) -> list[ComparedRun]:
    """Finished runs with a model, named by their folders; `max_bytes` as in `load_model`."""
    found = []
    for name, path in zip(run_names(paths), paths, strict=True):
        folder = RunFolder(path)
        folder.verify()
        content = run_content(folder, max_bytes=max_bytes)
        if not content.fitted:
            raise RunError(f"{path} holds findings and no model: only runs of fit, path and stream can be compared")
        found.append(ComparedRun(name, content, folder.read_json(CONFIG), folder.read_json(DATA)))
    return found


def run_names(paths: Sequence[str]) -> list[str]:
    """The names of the folders, with as much of their paths as makes them differ."""
    whole = [Path(path).resolve().parts for path in paths]
    if len(set(whole)) != len(whole):
        raise RunError("the same run is named twice")
    for n in range(1, max(map(len, whole)) + 1):
        names = ["/".join(parts[-n:]) for parts in whole]
        if len(set(names)) == len(names):
            return names
    raise AssertionError("different paths have different names")


def compare_runs(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """What differs between runs, ready for JSON.

    - returns: ``runs`` (one line of numbers each), ``same_data`` (None where a stream does not say), ``settings``
      (those that differ, with the value of each run), ``features`` (``in_all``, ``only`` in one run, ``strengths`` of
      each), ``coefficients`` (each run against the first) and ``tasks`` (scores).
    """
    strengths = [run.strengths for run in runs]
    holders = Counter(name for own in strengths for name in own)
    digests = [run.data.get("sha256") for run in runs]
    every = list(dict.fromkeys(name for own in strengths for name in sorted(own, key=lambda name: -own[name])))
    largest = [max(own.values(), default=1.0) for own in strengths]
    every.sort(key=lambda name: -max(own.get(name, 0.0) / most for own, most in zip(strengths, largest, strict=True)))
    return {
        "runs": [_line(run) for run in runs],
        "same_data": None if None in digests else len(set(digests)) == 1,
        "settings": _settings(runs),
        "features": {
            "in_all": [name for name in every if holders[name] == len(runs)],
            "only": {
                run.name: [name for name in every if holders[name] == 1 and name in own]
                for run, own in zip(runs, strengths, strict=True)
            },
            "strengths": [
                {"feature": name, "strengths": [own.get(name, 0.0) for own in strengths]} for name in every
            ],
        },
        "coefficients": [_against(runs[0], run) for run in runs[1:]],
        "tasks": _tasks(runs),
    }


def _line(run: ComparedRun) -> dict[str, Any]:
    content, certificate = run.content, run.content.certificate
    quality, facts = content.headline, dict(content.facts)
    strength = "C" if not content.selects else "alpha"
    value = facts.get(strength, np.nan) if content.alphas is None else content.alphas[content.chosen]
    return {
        "run": run.name,
        "model": facts.get("model", ""),
        "strength": strength,
        "value": _number(float(value)),
        "table": str(run.data.get("name", "")),
        "rows": int(run.data.get("rows", 0)),
        "tasks": len(content.tasks),
        "features": int(content.coef.shape[1]) - len(content.covariates),
        "selected": len(run.strengths) if content.selects else None,
        "objective": _number(certificate.get("objective")),
        "dual_gap": _number(certificate.get("dual_gap")),
        "relative_gap": _number(certificate.get("relative_gap")),
        "converged": bool(certificate["converged"]) if "converged" in certificate else None,
        "measure": None if quality is None else quality.measure,
        "score": None if quality is None else _number(mean_of(quality)),
        "score_error": None if quality is None or quality.overall is None else _number(quality.overall[1]),
        "tasksieve": content.versions.get("tasksieve", ""),
    }


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _settings(runs: Sequence[ComparedRun]) -> list[dict[str, Any]]:
    """Settings that are not the same in all runs, but for defaults that the others do not have."""
    asked = [asked_of(run.config) for run in runs]
    defaults = [set(run.config.get("by_default") or ()) for run in runs]
    found = []
    for key in sorted({key for own in asked for key in own} - set(IGNORED)):
        values = [own.get(key) for own in asked]
        given = [value for value in values if value is not None]
        unasked = all(key in own for own, value in zip(defaults, values, strict=True) if value is not None)
        if any(value != values[0] for value in values) and not (unasked and all(value == given[0] for value in given)):
            found.append({"setting": key, "values": values})
    return found


def asked_of(config: dict[str, Any]) -> dict[str, Any]:
    """What was asked, one value a setting: those of a stream's model lie deeper, and a list of one is that one."""
    params = config.get("params")
    params = params if isinstance(params, dict) else {}
    deeper = {"scheme" if key == "missing" else key: value for key, value in params.items()}
    whole = {**{key: value for key, value in config.items() if key != "params"}, **deeper}
    single = {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in whole.items()}
    return {key: None if value == [] else value for key, value in single.items()}


def _against(first: ComparedRun, other: ComparedRun) -> dict[str, Any]:
    """Coefficients of two runs, of the tasks and features that both have."""
    tasks = [str(task) for task in first.content.tasks if task in set(map(str, other.content.tasks))]
    features = sorted({*first.strengths, *other.strengths})
    both = set(map(str, first.content.features)) & set(map(str, other.content.features))
    features = [name for name in features if name in both]
    found: dict[str, Any] = {"run": other.name, "against": first.name, "tasks": len(tasks), "features": len(features)}
    a, b = (_dense(run.content, tasks, features) for run in (first, other))
    gap = np.abs(a - b)
    found["largest_difference"] = float(gap.max()) if gap.size else None
    found["mean_difference"] = float(gap.mean()) if gap.size else None
    found["opposite_signs"] = int(np.count_nonzero(a * b < 0))
    varies = gap.size > 1 and np.ptp(a) > 0 and np.ptp(b) > 0
    found["correlation"] = float(np.corrcoef(a.ravel(), b.ravel())[0, 1]) if varies else None
    order = np.argsort(-gap.ravel(), kind="stable")[:LARGEST]
    found["largest"] = [
        {
            "task": tasks[k // len(features)],
            "feature": features[k % len(features)],
            first.name: float(a.ravel()[k]),
            other.name: float(b.ravel()[k]),
        }
        for k in order.tolist()
        if gap.ravel()[k] > 0
    ]
    return found


def _dense(content: ReportContent, tasks: Sequence[str], features: Sequence[str]) -> np.ndarray:
    rows = {str(name): t for t, name in enumerate(content.tasks)}
    columns = {str(name): j for j, name in enumerate(content.features)}
    chosen = np.array([columns[name] for name in features], dtype=np.int64)
    return content.coef.tocsr()[[rows[name] for name in tasks]][:, chosen].toarray()


def _tasks(runs: Sequence[ComparedRun]) -> list[dict[str, Any]]:
    scores = [run.scores for run in runs]
    names = list(dict.fromkeys(name for own in scores for name in own))
    return [{"task": name, "scores": [_number(own.get(name, np.nan)) for own in scores]} for name in names]
