"""What a command has left, as a structured answer of bounded size."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...fitted.shown import DOCUMENTATION
from ...report.content import ReportContent, mean_of
from ...report.packing import comparable, row_norms
from ...runs import RunError, RunFolder
from ...runs.content import run_content
from ...runs.findings import read_findings
from ...runs.folder import CONFIG, STABILITY
from ..in_json import plain
from ..report import READ, REPORT
from .arguments import Call
from .confined import ConfinedFolder
from .tools import MOST_FEATURES, Tool, in_arguments

LONGEST = 4000  # characters of a word of an answer
MOST_ITEMS = MOST_FEATURES  # of a list
MOST_TASKS = 30  # whose coefficients are listed
LARGEST = 200_000  # characters of an answer
# Signs that turn text around or steer terminals: nothing that a name of a column needs.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

PAGES = {
    "certificate": "What the certificate proves",
    "howto/check-it-yourself": "Check it yourself",
    "howto/files": "How tables are read",
    "howto/grading": "Grade any program's answer",
    "howto/report": "The report",
    "howto/sharing": "Does sharing help?",
    "howto/trust": "Findings one can trust",
}
TERMS = {
    "duality gap": "No other coefficients have an objective that is lower by more than this. It is computed from the "
    "data and can be checked by others; it says that the optimisation was done right, not that the finding is no "
    "chance.",
    "alpha": "Strength of the penalty: the larger, the fewer features are used.",
    "strength": "Length of a feature's coefficients over all tasks, per standard deviation of its column where columns "
    "were standardised.",
    "out of fold": "On rows that the model had not seen. Where alpha was tuned on the same rows, it is a little "
    "optimistic.",
    "null model": "Intercepts (and covariates) only: what is achieved without any feature.",
    "stable": "Selected on so many random halves of the rows that, on average, at most the stated number of such "
    "features are there by chance.",
    "permutation test": "The share of shuffled labels with which something at least as strong was found: small where "
    "there is more in the data than chance.",
}


def answer(tool: Tool, asked: Call, said: str, notes: str, folder: ConfinedFolder) -> dict[str, Any]:
    """The answer of a tool whose command has ended well."""
    words = said.strip()
    if tool.name in ("inspect_table", "grade", "verify"):
        found = json.loads(said)
        words = str(found.get("words") or found.get("what", ""))
        if tool.name == "inspect_table":
            found = {"what": f"{found['path']}: {found['what']}", "tables": found["tables"]}
            words = found["what"]
        elif tool.name == "verify":
            found = {
                "proved": found["proved"],
                "values": found.get("values", []),
                "needs": found.get("needs", []),
            }
    else:
        run, limit = RunFolder(asked.run), asked.limit
        found = {"run": os.path.relpath(run.path, folder.path)}
        found["report"] = os.path.join(found["run"], REPORT) if (run / REPORT).is_file() else ""
        if tool.name == "explain_report":
            run.verify(READ)
        if tool.name in ("fit", "explain_report"):
            content = run_content(run)
            found |= fitted(content, run, limit) if tool.name == "fit" else explained(content, run, limit)
            words = words or content.answered
        else:
            found |= stable(run, limit) if tool.name == "stability" else compared(run)
    known = [
        line.partition(": ")[2] for line in notes.splitlines() if line.startswith(("note: ", "warning: "))
    ]
    shown = {**found, "words": in_arguments(words), "notes": [in_arguments(note) for note in known]}
    shown["links"] = [{"title": PAGES[page], "url": f"{DOCUMENTATION}{page}.html"} for page in tool.pages]
    shown["next"] = following(tool, shown)
    return within(bounded(plain(shown), folder))


# --- what is in the runs ---------------------------------------------------------------------------------------------


def features(content: ReportContent, limit: int) -> list[dict[str, Any]]:
    """The strongest features, and their coefficients in each task."""
    if not content.fitted:
        return []
    sizes = row_norms(comparable(content, content.coef))
    used = np.setdiff1d(np.flatnonzero(sizes), content.covariates)
    order = used[np.argsort(-sizes[used], kind="stable")][:limit]
    tasks = [str(task) for task in content.tasks][:MOST_TASKS]
    columns = content.coef.tocsc()[:, order].toarray()
    return [
        {
            "feature": str(content.features[j]),
            "strength": float(sizes[j]),
            "tasks_in_use": int(np.count_nonzero(columns[:, k])),
            "coefficients": {task: float(columns[t, k]) for t, task in enumerate(tasks)},
        }
        for k, j in enumerate(order.tolist())
    ]


def fitted(content: ReportContent, run: RunFolder, limit: int) -> dict[str, Any]:
    """A fit: which model, its features, its proof, its scores."""
    stated = {
        "objective": None,
        "dual_gap": None,
        "relative_gap": None,
        "converged": False,
        **content.certificate,
    }
    keys = ("objective", "dual_gap", "relative_gap", "converged")
    return {
        "alpha": strength(content, run),
        "n_features": int(content.coef.shape[1] - len(content.covariates)),
        "n_selected": int(content.n_selected_features),
        "tasks": [str(task) for task in content.tasks],
        "features": features(content, limit),
        "certificate": {key: stated[key] for key in keys},
        "quality": qualities(content),
    }


def strength(content: ReportContent, run: RunFolder) -> float | None:
    """The alpha of the model, all digits of it."""
    if content.alphas is not None and len(content.alphas):
        return float(content.alphas[content.chosen])
    stated = run.read_json("model.json").get("params", {}).get("alpha")
    return float(stated) if isinstance(stated, int | float) and not isinstance(stated, bool) else None


def qualities(content: ReportContent) -> list[dict[str, Any]]:
    """How well rows are predicted, those not seen first; means over tasks, beside those of the null model."""
    parts = sorted([*content.by_task, *content.quality], key=lambda part: not part.unseen)
    return [
        {
            "measure": part.measure,
            "mean": float(mean_of(part)),
            "null": None if part.null_overall is None else float(part.null_overall),
            "unseen": part.unseen,
            "caveat": part.caveat,
        }
        for part in parts
    ]


def stable(run: RunFolder, limit: int) -> dict[str, Any]:
    """What would be found again, and whether anything matters."""
    trust, names = read_findings(run)
    test, found = trust.permutation, trust.stability
    if found is None:
        raise RunError(f"{run.path} has no {STABILITY}; stability writes one")
    shares = found.probabilities
    order = np.lexsort((-shares, ~found.stable))[:limit]
    return {
        "pvalue": None if test is None else float(test.pvalue),
        "shuffles": 0 if test is None else int(test.n_permutations),
        "threshold": float(found.threshold),
        "expected_false": float(found.bound),
        "n_features": len(names),
        "stable": [names[j] for j in np.flatnonzero(found.stable).tolist()],
        "features": [
            {"feature": names[j], "selection_probability": float(shares[j]), "stable": bool(found.stable[j])}
            for j in order.tolist()
        ],
    }


def compared(run: RunFolder) -> dict[str, Any]:
    """Whether sharing helps, by task and for all."""
    stated = run.read_json("comparison.json")
    columns = stated["columns"]
    rows = [{key: columns[key][k] for key in columns} for k in range(len(columns["task"]))]
    return {
        "loss": str(stated["loss"]),
        "tasks": rows[:-1],
        "overall": rows[-1],
        "note": str(stated.get("note", "")),
    }


def explained(content: ReportContent, run: RunFolder, limit: int) -> dict[str, Any]:
    """The words of a report."""
    words = " ".join([content.answered, *_sentences(run)])
    return {
        "asked": content.asked,
        "answered": content.answered,
        "facts": [{"fact": str(name), "value": str(value)} for name, value in content.facts],
        "methods": content.methods,
        "citations": [str(one) for one in content.citations],
        "warnings": [str(one) for one in content.warnings],
        "features": features(content, limit),
        "terms": [
            {"term": term, "meaning": meaning}
            for term, meaning in TERMS.items()
            if _concerns(term, words, run)
        ],
        "findings": _sentences(run),
    }


def _sentences(run: RunFolder) -> list[str]:
    trust, _ = read_findings(run)
    said = [trust.permutation.summary()] if trust.permutation is not None else []
    said += [trust.stability.sentence(), trust.stability.guarantee()] if trust.stability is not None else []
    said += [trust.intervals.summary()] if trust.intervals is not None else []
    return said + ([trust.sharing.sentence()] if trust.sharing is not None else [])


def _concerns(term: str, words: str, run: RunFolder) -> bool:
    """Whether a term says something about this run: those of findings where there are any, the others of models."""
    own = {"stable": "stab", "permutation test": "permut"}
    if term in own:
        return own[term] in words.lower()
    return run.read_json(CONFIG).get("command") not in ("stability", "compare") or term in words


# --- what to do next -------------------------------------------------------------------------------------------------


def following(tool: Tool, found: Mapping[str, Any]) -> list[dict[str, str]]:
    """The documented order: look, fit, check, ask what is chance."""
    if tool.name == "inspect_table":
        return [
            {
                "tool": "fit",
                "why": "fit a model: name the target column, and the task column or one file for each task",
            }
        ]
    if tool.name == "fit":
        steps = [{"tool": "verify", "why": "have the data prove what the run claims"},
                 {"tool": "stability", "why": "which features would be found again, and is there more than chance?"},
                 {"tool": "compare", "why": "does sharing features between the tasks help?"}]  # fmt: skip
        if not found["certificate"]["converged"]:
            steps.insert(
                0,
                {"tool": "fit", "why": "the gap is larger than tol asks for: raise max_iter, with overwrite"},
            )
        return steps
    if tool.name in ("stability", "compare"):
        return [{"tool": "explain_report", "why": "what this run says, in words for people"}]
    if tool.name == "verify":
        if found["proved"]:
            return [
                {
                    "tool": "stability",
                    "why": "a proof is about optimality; whether features are chance is asked here",
                }
            ]
        return [{"tool": "fit", "why": "the data are not those of the run, or it was changed: fit again"}]
    if tool.name == "grade" and (found["wrong_nonzero"] or found["wrong_zero"]):
        return [
            {"tool": "fit", "why": "features are provably wrong: solve the same problem, with the same alpha"}
        ]
    return []


# --- bounds ----------------------------------------------------------------------------------------------------------


def bounded(content: Any, folder: ConfinedFolder) -> Any:
    """The same, with lists and words of bounded length, without steering signs, and without the place of the folder."""
    if isinstance(content, str):
        words = _STEERING.sub("\ufffd", folder.said(content))
        return words if len(words) <= LONGEST else f"{words[:LONGEST]}... ({len(words):,} characters)"
    if isinstance(content, dict):
        kept = list(content.items())[:MOST_ITEMS]
        found = {bounded(key, folder)[:200]: bounded(value, folder) for key, value in kept}
        return found | ({"more": len(content) - MOST_ITEMS} if len(content) > MOST_ITEMS else {})
    if isinstance(content, list):
        return [bounded(one, folder) for one in content[:MOST_ITEMS]]
    return content


def within(found: dict[str, Any]) -> dict[str, Any]:
    """An answer that is not too long for a conversation: its longest lists are cut until it is not."""
    while len(json.dumps(found, ensure_ascii=False)) > LARGEST:
        lists = [
            (len(json.dumps(value)), key)
            for key, value in found.items()
            if isinstance(value, list | dict) and len(value) > 1
        ]
        if not lists:
            break
        _, key = max(lists)
        value = found[key]
        half = len(value) // 2
        found[key] = value[:half] if isinstance(value, list) else dict(list(value.items())[:half])
        note = f"{key}: cut to fit an answer; the run has all of it"
        found["notes"] = [*(one for one in found["notes"] if one != note), note]
    return found
