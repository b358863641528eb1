"""What a run folder or a file holds, in words and numbers, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import online
from ..report.content import ReportContent, mean_of
from ..report.methods import DIFFERENCE, objective_words
from ..report.packing import comparable, row_norms
from ..verify import Certificate, Unreadable, read_certificate
from .compared import IGNORED, asked_of
from .content import AT_ONE_ERROR, run_content
from .folder import (
    CONFIG,
    DATA,
    MANIFEST,
    PROOF,
    STREAM,
    TRANSFER,
    VERSIONS,
    RunError,
    RunFolder,
    file_digest,
)
from .model_file import read_parameters
from .stream_run import ESTIMATORS

STRONGEST = 100  # features that are listed
DATA_WORDS = {
    "name": "table",
    "table_rows": "rows of the table",
    "rows": "rows used",
    "features": "features",
    "tasks": "tasks",
    "bytes": "bytes",
    "sha256": "digest (sha256)",
}
MODEL_FACTS = ("model", "alpha", "C", "gamma", "values of alpha", "cross-validation", AT_ONE_ERROR)
NOT_PROVED = "an online model is an iterate, not a proved optimum"
NO_PROOF = f"none: {NOT_PROVED}"
CERTIFICATE_WORDS = {
    "objective": "objective",
    "dual_gap": "gap, at most",
    "relative_gap": "gap / empty model's objective",
    "tol": "tolerance asked for",
    "converged": "reached",
}


def inspect_path(path: str, max_bytes: float | None = None) -> dict[str, Any]:
    """What is at a path: a run folder, a certificate, or a saved online model; `max_bytes` as in `load_model`."""
    position = Path(path)
    if position.is_dir():
        return inspect_run(RunFolder(position), max_bytes)
    if not position.is_file():
        raise RunError(f"there is no run folder or file {path}")
    try:
        return inspect_certificate(position)
    except Unreadable as why:
        found = inspect_online(position)
        if found is None:
            beside = " (name its folder instead)" if (position.parent / CONFIG).is_file() else ""
            raise RunError(
                f"{path} is neither a run folder, nor a certificate ({why}), nor a saved online model{beside}"
            ) from None
        return found


def inspect_run(folder: RunFolder, max_bytes: float | None) -> dict[str, Any]:
    """A run folder, finished or not."""
    if not folder.begun:
        raise RunError(f"{folder.path} is no run folder: it has no {CONFIG}")
    config, files = folder.read_json(CONFIG), list_files(folder)
    state = "finished" if folder.finished else "not finished; the same command with --resume continues it"
    what = f"a run of tasksieve {config.get('command', 'fit')}, {state}"
    found: dict[str, Any] = {"path": str(folder.path), "what": what, "finished": folder.finished}
    if folder.finished and all(file["state"] not in ("CHANGED", "MISSING") for file in files):
        found |= describe(run_content(folder, max_bytes=max_bytes), folder)
    if (folder / DATA).is_file():
        data = folder.read_json(DATA)
        found["data"] = {title: data[name] for name, title in DATA_WORDS.items() if name in data}
        if data.get("notes"):
            found["data"]["notes"] = "; ".join(str(note) for note in data["notes"])
    hidden = {*IGNORED, "command", *(config.get("by_default") or ())}
    asked = asked_of(config).items()
    found["settings"] = {key: value for key, value in asked if key not in hidden and value is not None}
    found["files"] = files
    if (folder / VERSIONS).is_file():
        found["versions"] = {str(name): str(value) for name, value in folder.read_json(VERSIONS).items()}
    return found


def describe(content: ReportContent, folder: RunFolder) -> dict[str, Any]:
    """The model of a finished run, its features, its certificate and its scores."""
    facts = {"model": "", **dict(content.facts)}
    model = {name: facts[name] for name in MODEL_FACTS if name in facts}
    found: dict[str, Any] = {"model": model}
    if not content.fitted:
        return found
    if (folder / "model.json").is_file():
        saved = folder.read_json("model.json")
        difference = DIFFERENCE if (folder / TRANSFER).is_file() else ""
        model["minimises"] = objective_words(str(saved["class"]), read_parameters(saved)) + difference
    names = [str(name) for name in content.features]
    sizes = row_norms(comparable(content, content.coef))
    found["selected"] = selected(sizes, names, content.covariates, content.selects)
    found["selected"]["per"] = "unit" if content.column_scales is None else "standard deviation"
    found["certificate"] = {"proof": NO_PROOF}
    if content.certificate:
        stated, proved = content.certificate, (folder / PROOF).is_file()
        found["certificate"] = {
            title: stated[name] for name, title in CERTIFICATE_WORDS.items() if name in stated
        }
        words = f"in {PROOF}; check it with tasksieve verify" if proved else f"none: {content.no_proof}"
        found["certificate"]["proof"] = words
    quality: dict[str, float | None] = {}
    for part in sorted([*content.by_task, *content.quality], key=lambda part: not part.unseen):
        mean = mean_of(part)
        quality[part.measure + (f" ({part.caveat})" if part.caveat else "")] = (
            None if np.isnan(mean) else mean
        )
        if part.null_overall is not None:
            quality[f"{part.measure}, {part.null_words}"] = part.null_overall
    return {**found, "quality": quality} if quality else found


def selected(
    sizes: np.ndarray, names: Sequence[str], covariates: np.ndarray, selects: bool = True
) -> dict[str, Any]:
    """Penalised features in use, the strongest first, and the covariates beside them."""
    order = np.argsort(-sizes, kind="stable")
    used = order[(sizes[order] > 0) & ~np.isin(order, covariates)].tolist()
    listed = {"strongest": used[:STRONGEST], "covariates": covariates.tolist()}
    strengths = {
        title: [{"feature": names[j], "strength": float(sizes[j])} for j in own]
        for title, own in listed.items()
    }
    return {"number": len(used), "of": len(sizes) - len(covariates), "selects": selects, **strengths}


def list_files(folder: RunFolder) -> list[dict[str, Any]]:
    """Every file of the folder, and whether it is what the manifest says."""
    stated: dict[str, Any] = {}
    if folder.finished:
        content = folder.read_json(MANIFEST).get("files")
        stated = content if isinstance(content, dict) else {}
    names = {
        entry.name for entry in folder.path.iterdir() if entry.is_file() and not entry.name.startswith(".")
    }
    found = []
    for name in sorted(names | set(stated)):
        if name not in names:
            found.append({"file": name, "bytes": 0, "state": "MISSING"})
            continue
        entry = stated.get(name)
        if not isinstance(entry, dict):
            state = "" if name in (MANIFEST, "log.txt") else "not in the manifest"
        else:
            state = "as written" if file_digest(folder.path / name) == entry.get("sha256") else "CHANGED"
        found.append({"file": name, "bytes": (folder.path / name).stat().st_size, "state": state})
    return found


def chosen_value(stated: Certificate) -> int | None:
    """The value of a path that its certificate says was chosen."""
    about = stated.header.get("about")
    chosen = about.get("chosen") if isinstance(about, dict) else None
    if not isinstance(chosen, int) or isinstance(chosen, bool):
        return None
    return chosen % stated.n_values if -stated.n_values <= chosen < stated.n_values else None


def inspect_certificate(path: Path) -> dict[str, Any]:
    """A certificate file by itself: what it claims, not whether that is true."""
    stated = read_certificate(path)
    header, arrays, chosen = stated.header, stated.arrays, chosen_value(stated)
    about = header["about"] if isinstance(header.get("about"), dict) else {}
    k = stated.n_values - 1 if chosen is None else chosen
    one = slice(*arrays["start"][k : k + 2].tolist())
    squares = np.zeros(int(header.get("n_features", 0)))
    np.add.at(squares, arrays["feature"][one], arrays["coef"][one] ** 2)
    listed = header.get("features")
    named = isinstance(listed, list) and len(listed) == len(squares)
    names = (
        [str(name) for name in listed or ()] if named else [f"column {j + 1}" for j in range(len(squares))]
    )
    weights = np.asarray(arrays.get("feature_weights", np.ones(len(squares))))
    rows = [int(n) for n in header.get("rows", [])]
    digests = header["digests"] if isinstance(header.get("digests"), dict) else {}
    return {
        "path": str(path),
        "what": "a certificate; tasksieve verify says whether the data prove it",
        "model": {
            "model": str(about.get("model", "-")),
            "loss": _words(header.get("loss")),
            "penalty": _words(header.get("penalty")),
            "alpha": float(arrays["alpha"][k]),
            "values of alpha": stated.n_values,
        },
        "data": {
            "table": str(about.get("table", "-")),
            "tasks": len(rows),
            "rows": sum(rows),
            "features": int(header.get("n_features", 0)),
            "all tasks share one X": bool(header.get("shared")),
        },
        "certificate": {"objective": float(arrays["objective"][k]), "gap, at most": float(arrays["gap"][k])},
        "selected": selected(np.sqrt(squares), names, np.flatnonzero(weights == 0.0)),
        "digests": {
            f"{kind} of {task}": str(value)
            for kind, own in digests.items()
            if isinstance(own, list)
            for task, value in zip(header.get("tasks") or range(len(own)), own, strict=False)
        },
    }


def inspect_online(path: Path) -> dict[str, Any] | None:
    """A saved online model by itself; None where it is not one."""
    for name in ESTIMATORS.values():
        try:
            model = getattr(online, name).load(path)
        except ValueError:
            continue
        sizes = np.linalg.norm(model.coef_, axis=0)
        own = getattr(model, "feature_names_in_", None)
        names = [f"column {j + 1}" for j in range(len(sizes))] if own is None else [str(one) for one in own]
        more = f" of a run: inspect {path.parent} says more" if path.name == STREAM else ""
        return {
            "path": str(path),
            "what": f"a saved online model{more}",
            "model": {
                "model": name,
                "minimises, each step": objective_words(name, model.get_params(deep=False)),
                "alpha": float(model.alpha),
                "gamma": float(model.gamma_),
            },
            "data": {
                "rows learned": int(model.n_rows_seen_),
                "tasks": len(model.tasks_),
                "features": int(model.n_features_in_),
            },
            "selected": selected(sizes, names, np.empty(0, dtype=np.int64)),
            "quality": {"mean loss of rows before they were learned": float(model.progressive_loss_)},
            "certificate": {"proof": NO_PROOF},
        }
    return None


def _words(member: Any) -> str:
    """A loss or penalty of a certificate's header."""
    if not isinstance(member, dict):
        return "-"
    numbers = {
        key: value for key, value in member.items() if isinstance(value, int | float) and value is not True
    }
    more = ", ".join(f"{key} {value:g}" for key, value in numbers.items() if value is not False)
    return f"{member.get('name')}" + (f" ({more})" if more else "")
