"""``tasksieve fit`` and ``tasksieve path``: from a table to a run folder."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..atomic import write_bytes
from ..design import thread_count
from ..runs import MODELS, ModelKind, RunError, RunFolder, SavedModel, save_model
from ..runs.folder import CONFIG, DATA, PIECES, VERSIONS, file_digest
from ..runs.pieces import Pieces
from ..runs.results import (
    csv_bytes,
    fit_quality,
    row_labels,
    versions,
    write_coefficients,
    write_path,
    write_scores,
)
from ..tables import Table, TableProblem, prepare, read_table
from .exits import INTERRUPTED, NOT_CONVERGED, OK, TERMINATED, State, UsageError, say
from .graph_file import read_graph_file
from .options import (
    BY_KEY,
    COMPARED,
    DEFAULTS,
    PARAMETER,
    command_line,
    read_alpha,
    read_alphas,
    read_numbers,
    split_given,
)
from .progress import Progress, caught_warnings, counted, working
from .report import REPORT, report_writer, write_run_report


@dataclass
class Fitted:
    """What an estimator has found, in the terms of a run folder."""

    model: Any  # of one value: the estimator to predict with
    path: Any
    chosen: int
    alphas: np.ndarray | None
    cv_scores: np.ndarray | None
    null_objective: float
    converged: bool


def run_fit(command: str, table: str | None, given: dict[str, Any]) -> int:
    """The body of both commands."""
    asked, call = split_given(given)
    State.debug = bool(call.get("debug"))
    if table is not None:
        asked["table"] = table
    if "out" not in call:
        raise UsageError("--out: name a folder for the run")
    folder = RunFolder(call["out"])
    resume, overwrite = bool(call.get("resume")), bool(call.get("overwrite"))
    if resume and overwrite:
        raise UsageError("--resume and --overwrite: one or the other")
    folder.refuse_strangers()
    if folder.path.exists() and any(folder.path.iterdir()) and not (resume or overwrite):
        raise RunError(f"{folder.path} exists: --resume goes on with it, --overwrite starts anew")
    config = decide_config(command, asked, call.get("config"), folder if resume and folder.begun else None)
    quiet = bool(call.get("quiet"))
    if resume and folder.finished:
        return resume_finished(folder, bool(call.get("report", True)), quiet)
    if call.get("report", True):
        report_writer()  # find out now, not after hours
    kind = check_config(config)
    os.environ["TASKSIEVE_NUM_THREADS"] = str(config["threads"])

    began = time.perf_counter()
    with working(f"reading {os.path.basename(config['table'])}", quiet):
        content = read_table(config["table"], config.get("format"), config.get("separator"))
        digest = data_digest(config)
        problem, classes = prepare_problem(kind, config, content)
    seconds_to_read = time.perf_counter() - began
    fresh = not folder.path.exists()
    with folder:
        if overwrite:
            folder.clear()
        if resume and folder.begun:
            refuse_other_data(folder, digest)
        progress = Progress(quiet, folder)
        try:
            begin(folder, config, kind, content, problem, digest, resume, progress)
            del content
            return solve(folder, config, kind, problem, classes, digest, seconds_to_read, call, progress)
        except (ValueError, ImportError):
            if fresh and not (folder / PIECES).exists() and not folder.finished:
                folder.remove()  # a mistake in the input: nothing was computed, nothing need be resumed
            raise
        finally:
            progress.close()


def resume_finished(folder: RunFolder, report: bool, quiet: bool) -> int:
    """Nothing is left to do, unless the report is missing."""
    folder.verify()
    if report and not (folder / REPORT).is_file():
        report_writer()
        with folder:
            write_run_report(folder, Progress(quiet, folder))
    if not quiet:
        say(f"{folder.path} is finished; nothing to resume")
    return OK if folder.read_json("certificate.json").get("converged") else NOT_CONVERGED


# --- configuration -----------------------------------------------------------------------------------------------


def decide_config(
    command: str, asked: dict[str, Any], config_file: str | None, resumed: RunFolder | None
) -> dict[str, Any]:
    """Options given, over those of ``--config``, over the defaults; a resumed run must have been asked the same."""
    base = dict(DEFAULTS)
    if config_file is not None:
        base.update(read_config(RunFolder(Path(config_file).parent), Path(config_file).name))
    old = None
    if resumed is not None:
        old = read_config(resumed, CONFIG)
        base = dict(old)
    config = {**base, **asked, "command": command}
    config.setdefault("threads", thread_count())
    if "alpha" in asked and "cv" not in asked and "cv" in base and old is None:
        del config["cv"]  # a strength given here replaces the cross-validation of --config
    if "table" not in config:
        raise UsageError("name the table to read")
    config["table"] = os.path.abspath(config["table"])
    if old is not None:
        differing = sorted(key for key in {*config, *old} - {"table"} if config.get(key) != old.get(key))
        if differing:
            words = ", ".join(
                f"{BY_KEY[key].long if key in BY_KEY else key} (was {old.get(key)!r}, is {config.get(key)!r})"
                for key in differing
            )
            raise RunError(f"--resume: the run was begun with other options: {words}")
    return config


def read_config(folder: RunFolder, name: str) -> dict[str, Any]:
    """A configuration from a file, checked as if it had been typed."""
    config = folder.read_json(name)
    for key, value in config.items():
        if key in ("table", "command"):
            good = isinstance(value, str)
        elif key not in BY_KEY or BY_KEY[key].role == "run":
            raise RunError(f"{folder / name}: unknown option {key!r}")
        else:
            good = _is_of(value, BY_KEY[key].kind)
        if not good:
            raise RunError(f"{folder / name}: {key!r} cannot be {str(value)[:60]!r}")
    return config


def _is_of(value: Any, kind: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is bool or kind is str:
        return isinstance(value, kind)
    return value in get_args(kind)


def check_config(config: dict[str, Any]) -> ModelKind:
    """Refuse options that the model does not have, and options that do not go together."""
    kind = MODELS[config["model"]]
    if not config.get("target"):
        raise UsageError("--target: name the column to predict")
    if config["command"] == "path" and not kind.has_path:
        raise UsageError(f"--model {kind.name} has no path; use fit with --{kind.strength}")
    if not kind.tasks and config.get("task"):
        raise UsageError(
            f"--task: --model {kind.name} has no tasks; its rows of coefficients are the classes"
        )
    if not kind.tasks and len(config["target"]) > 1:
        raise UsageError(f"--target: --model {kind.name} takes one target")
    if config["command"] == "fit" and kind.has_path and "alpha" not in config:
        config.setdefault("cv", 5)
    if not kind.has_path:
        for key in ("cv", "alphas", "eps", "selection_rule"):
            if key in config:
                raise UsageError(
                    f"{BY_KEY[key].long}: --model {kind.name} has no path; give --{kind.strength}"
                )
    if "alpha" in config:
        for key in ("cv", "alphas", "eps", "selection_rule"):
            if key in config:
                raise UsageError(f"--alpha gives one value; {BY_KEY[key].long} is for choosing among several")
    if config.get("graph") is not None and "graph_strength" not in kind.parameters():
        raise UsageError(f"--graph: --model {kind.name} has no graph")
    if config.get("cv") is not None and config["cv"] < 2:
        raise UsageError(f"--cv: at least 2 folds, got {config['cv']}")
    if config["threads"] < 1:
        raise UsageError(f"--threads: at least 1, got {config['threads']}")
    if config["max_categories"] < 1:
        raise UsageError(f"--max-categories: at least 1, got {config['max_categories']}")
    known = kind.parameters()
    for key in config:
        if key in BY_KEY and BY_KEY[key].role == "param" and PARAMETER.get(key, key) not in known:
            flags = sorted(
                option.long
                for option in BY_KEY.values()
                if option.role == "param" and PARAMETER.get(option.key, option.key) in known
            )
            raise UsageError(
                f"{BY_KEY[key].long}: --model {kind.name} has no such option; it has {', '.join(flags)}"
            )
    if kind.strength == "C" and "alpha" in config:
        raise UsageError(f"--alpha: --model {kind.name} has --C")
    read_alphas(config.get("alphas"))
    estimator_parameters(config)
    return kind


def estimator_parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator as the configuration has them."""
    params: dict[str, Any] = {}
    for key, value in config.items():
        if key not in BY_KEY or BY_KEY[key].role != "param":
            continue
        if key in COMPARED:
            value = read_numbers(value, BY_KEY[key].long)
            if isinstance(value, list) and "cv" not in config:
                raise UsageError(f"{BY_KEY[key].long}: several values are for --cv to choose from")
        elif key == "alpha":
            value = read_alpha(value, config["model"])
        elif key == "screening" and value == "none":
            value = None
        params[PARAMETER.get(key, key)] = value
    return params


# --- data --------------------------------------------------------------------------------------------------------


def data_digest(config: dict[str, Any]) -> str:
    """One digest for the table and the graph."""
    digest = file_digest(Path(config["table"]))
    graph = config.get("graph")
    if graph not in (None, "none", "complete"):
        digest = hashlib.sha256((digest + file_digest(Path(graph))).encode()).hexdigest()
    return digest


def prepare_problem(kind: ModelKind, config: dict[str, Any], table: Table) -> tuple[TableProblem, bool]:
    words = any(
        name in table.columns and table.columns[name].kind == "text"
        for name in table.match(config["target"], "--target", list(table.columns))
    )
    classes = kind.wants_classes(config.get("loss"), words)
    problem = prepare(
        table,
        target=config["target"],
        task=config.get("task"),
        weights=config.get("weights"),
        features=config.get("features", ()),
        categorical=config.get("categorical", ()),
        missing=config["missing"],
        max_categories=config["max_categories"],
        classes=classes,
    )
    return problem, classes


def refuse_other_data(folder: RunFolder, digest: str) -> None:
    if (folder / DATA).is_file() and folder.read_json(DATA).get("sha256") != digest:
        raise RunError(
            "--resume: the table (or the graph) has changed since the run was begun; --overwrite starts anew"
        )


def begin(
    folder: RunFolder,
    config: dict[str, Any],
    kind: ModelKind,
    table: Table,
    problem: TableProblem,
    digest: str,
    resume: bool,
    progress: Progress,
) -> None:
    """Write what is known before the fit: the configuration comes first, so that --resume can find it."""
    resumed = resume and folder.begun
    folder.write_json(CONFIG, config)
    folder.write_json(VERSIONS, versions())
    n_tasks = problem.y.shape[1] if problem.y.ndim == 2 else 1
    if problem.task is not None:
        n_tasks = len(np.unique(problem.task))
    data: dict[str, Any] = {
        "name": os.path.basename(table.source),
        "sha256": digest,
        "table_rows": problem.n_rows,
        "rows": int(problem.X.shape[0]),
        "features": int(problem.X.shape[1]),
        "tasks": int(n_tasks),
        "notes": list(problem.notes),
        "reproduce": command_line(config, str(folder.path)),
    }
    folder.write_json(DATA, data)
    progress.log(("resumed: " if resumed else "begun: ") + data["reproduce"])
    for note in problem.notes:
        progress.note(f"note: {note}")


# --- solving -----------------------------------------------------------------------------------------------------


def piece_key(config: dict[str, Any], digest: str) -> str:
    """What a finished fold depends on."""
    found = versions()
    same = {key: value for key, value in config.items() if key != "table"}
    parts = [
        same,
        digest,
        {name: found[name] for name in ("tasksieve", "numpy", "scipy", "scikit-learn", "kernels")},
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def solve(
    folder: RunFolder,
    config: dict[str, Any],
    kind: ModelKind,
    problem: TableProblem,
    classes: bool,
    digest: str,
    seconds_to_read: float,
    call: dict[str, Any],
    progress: Progress,
) -> int:
    params = estimator_parameters(config)
    if config.get("graph") is not None:
        params.update(read_graph_file(config["graph"], problem.task, problem.y))
    pieces = Pieces(folder, piece_key(config, digest), progress.log)
    started = time.perf_counter()
    with caught_warnings() as said:
        fitted = fit_estimator(config, kind, params, problem, classes, pieces, progress)
    seconds = time.perf_counter() - started
    progress.close()
    if fitted.path is not None and getattr(fitted.path, "interrupted", False):
        return keep_interrupted(folder, fitted.path, progress)
    for text in said:
        progress.note(f"warning: {text}")
    data = folder.read_json(DATA)
    data["notes"] = [*problem.notes, *said]
    if fitted.cv_scores is not None:
        data["cv_measure"] = "held-out " + ("loss" if classes else "squared error") + ", mean over tasks"
    folder.write_json(DATA, data)
    with working("writing results", bool(call.get("quiet"))):
        write_results(folder, config, kind, problem, classes, fitted)
    folder.write_json("timing.json", {"read": seconds_to_read, "fit": seconds, "threads": config["threads"]})
    folder.finish()
    if call.get("report", True):
        write_run_report(folder, progress)
    progress.log(f"finished in {seconds:.2f} s")
    if not call.get("quiet"):
        summary(folder, kind, fitted, problem, seconds)
    if folder.log_failed:
        say(f"tasksieve: {folder / 'log.txt'} could not be written completely")
    return OK if fitted.converged else NOT_CONVERGED


def fit_estimator(
    config: dict[str, Any],
    kind: ModelKind,
    params: dict[str, Any],
    problem: TableProblem,
    classes: bool,
    pieces: Pieces,
    progress: Progress,
) -> Fitted:
    X, y = problem.X, problem.y
    rows: dict[str, Any] = {}
    if problem.task is not None:
        rows["task"] = problem.task
    if problem.sample_weight is not None:
        rows["sample_weight"] = problem.sample_weight
    n_alphas, alphas = read_alphas(config.get("alphas"))
    grid: dict[str, Any] = {"alphas": alphas} if alphas else {"n_alphas": n_alphas} if n_alphas else {}
    if "eps" in config:
        grid["eps"] = config["eps"]
    if config.get("cv"):
        known = kind.parameters(cv=True)
        more = {"cv": config["cv"], **grid}
        if "selection_rule" in config:
            more["selection_rule"] = config["selection_rule"]
        for key in [*params, *more]:
            if key not in known:
                raise UsageError(
                    f"--{key.replace('_', '-')}: --model {kind.name} has no such option with --cv"
                )
        model = kind.estimator(classes, cv=True)(**params, **more)
        model._store, model._watcher = pieces, progress.watch
        model.fit(X, y, **rows)
        path, k = model.path_, int(np.flatnonzero(model.path_.alphas == model.alpha_)[0])
        changed = {name: getattr(model, f"{name}_") for name in COMPARED if hasattr(model, f"{name}_")}
        scores = model.cv_scores_
        if scores.ndim == 3:  # one table of scores for each value compared: that of the one chosen
            name = next(name for name in COMPARED if isinstance(params.get(name), list))
            scores = scores[params[name].index(changed[name])]
        return Fitted(
            as_single(kind.estimator(classes)(**{**params, **changed, "alpha": model.alpha_}), model),
            path,
            k,
            path.alphas,
            scores,
            path.null_objective,
            bool(path.converged[k]),
        )
    model = kind.estimator(classes)(**params)
    if kind.has_path:
        model._watcher = progress.watch
    if config["command"] == "path":
        path = model.path(X, y, **rows, **grid)
        single = kind.estimator(classes)(**{**params, "alpha": float(path.alphas[-1])}) if len(path) else None
        if single is not None and not path.interrupted:
            from_path(single, path, len(path) - 1, y, problem.task, classes)
        return Fitted(
            single,
            path,
            len(path) - 1,
            path.alphas,
            None,
            path.null_objective,
            bool(len(path) and path.converged.all()),
        )
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **rows)
    for warning in caught:  # on to whoever listens outside
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if kind.has_path and isinstance(model.alpha, str):  # a word for a number: keep the number
        model.set_params(alpha=float(model.alpha_))
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Fitted(model, None, -1, None, None, float(getattr(model, "_null_objective", np.nan)), converged)


FITTED = (
    "coef_",
    "intercept_",
    "tasks_",
    "classes_",
    "objective_",
    "dual_gap_",
    "n_iter_",
    "n_features_in_",
    "_single",
)


def as_single(single: Any, fitted: Any) -> Any:
    """The model of one strength, with what the cross-validated one has found."""
    for name in FITTED:
        if hasattr(fitted, name):
            setattr(single, name, getattr(fitted, name))
    return single


def from_path(single: Any, path: Any, k: int, y: np.ndarray, task: Any, classes: bool) -> None:
    """Make an estimator the solution at one value of a path."""
    single.coef_, single.intercept_ = path.coef(k).toarray(), path.intercept(k)
    single.tasks_, single.n_features_in_ = path.tasks, path.n_features
    single._single = y.ndim == 1 and task is None and len(single.coef_) == 1
    single.objective_, single.dual_gap_ = float(path.objectives[k]), float(path.dual_gaps[k])
    single.n_iter_ = max(1, int(path.n_iter[k]))
    if classes:
        single.classes_ = classes_of(y, task, path.tasks)


def classes_of(y: np.ndarray, task: Any, tasks: np.ndarray) -> Any:
    """Class labels as the estimators define them: sorted over all tasks, or a pair for each task."""
    flat = y.ravel()
    seen = flat[[label is not None and label == label for label in flat.tolist()]]
    labels = np.unique(seen.astype(str) if seen.dtype == object else seen)
    if len(labels) <= 2 or (task is None and y.ndim == 1):
        return labels
    parts = [y[:, t] for t in range(y.shape[1])] if y.ndim == 2 else [y[task == label] for label in tasks]
    return [classes_of(part, None, tasks) for part in parts]


def keep_interrupted(folder: RunFolder, path: Any, progress: Progress) -> int:
    """A path that was stopped: the values solved so far are written, the run stays unfinished."""
    if len(path):
        write_path(folder, path)
    progress.log(f"interrupted after {len(path)} values")
    say(
        f"tasksieve: interrupted; the {len(path)} values solved so far are in {folder / 'path.csv'}, "
        "--resume solves the whole path"
    )
    return TERMINATED if State.terminated else INTERRUPTED


# --- results -----------------------------------------------------------------------------------------------------


def write_results(
    folder: RunFolder,
    config: dict[str, Any],
    kind: ModelKind,
    problem: TableProblem,
    classes: bool,
    fitted: Fitted,
) -> None:
    model = fitted.model
    names = problem.encoding.feature_names
    labels = row_labels(model, problem.targets)
    coef = model.coef_.reshape(-1, model.coef_.shape[-1])
    write_coefficients(folder, coef, model.intercept_, labels, names)
    if fitted.path is not None:
        write_path(folder, fitted.path)
    if fitted.cv_scores is not None and fitted.alphas is not None:
        write_scores(folder, fitted.alphas, fitted.cv_scores)
    null = fitted.null_objective
    relative = model.dual_gap_ / null if null > 0 else float("nan") if null != null else 0.0
    folder.write_json(
        "certificate.json",
        {
            "objective": float(model.objective_),
            "dual_gap": float(model.dual_gap_),
            "relative_gap": float(relative),
            "tol": float(model.tol),
            "null_objective": float(null),
            "converged": bool(fitted.converged),
        },
    )
    quality = fit_quality(model, problem.X, problem.y, problem.task, problem.sample_weight, classes)
    measure = "accuracy on the training rows" if classes else "R² on the training rows"
    tasks = labels if len(labels) == len(quality) else [str(label) for label in getattr(model, "tasks_", [])]
    tasks = tasks if len(tasks) == len(quality) else [problem.targets[0]]
    write_bytes(
        folder / "quality.csv",
        csv_bytes(
            ("task", "rows", measure),
            [(name, n, value) for name, (n, value) in zip(tasks, quality, strict=True)],
        ),
    )
    facts = {"chosen": fitted.chosen, "choice": config["command"] == "fit", "classes": classes}
    save_model(
        folder,
        SavedModel(
            model, kind.name, problem.encoding, problem.fill, problem.targets, config.get("task"), facts
        ),
    )


def summary(
    folder: RunFolder, kind: ModelKind, fitted: Fitted, problem: TableProblem, seconds: float
) -> None:
    """A few lines on stdout."""
    model = fitted.model
    coef = model.coef_.reshape(-1, model.coef_.shape[-1])
    strength = np.linalg.norm(coef, axis=0)
    chosen = np.flatnonzero(strength)
    names = problem.encoding.feature_names
    n_tasks = folder.read_json(DATA)["tasks"]
    lines = [
        f"{type(model).__name__}: {counted(problem.X.shape[0], 'row')}, {counted(n_tasks, 'task')}, "
        f"{counted(coef.shape[1], 'feature')}; {seconds:.2f} s",
        f"{kind.strength} = {getattr(model, kind.strength):.6g}: {counted(len(chosen), 'feature')} selected",
    ]
    if fitted.path is not None and fitted.cv_scores is None:
        lines[1] = (
            f"{counted(len(fitted.path), 'value')} of alpha, "
            f"up to {counted(int(fitted.path.n_selected.max()), 'feature')} selected"
        )
    strongest = chosen[np.argsort(-strength[chosen], kind="stable")][:10]
    if len(strongest):
        shown = ", ".join(names[j] for j in strongest) + (", ..." if len(chosen) > len(strongest) else "")
        lines.append(f"strongest: {shown}")
    null = fitted.null_objective
    relative = f" ({model.dual_gap_ / null:.1e} of the empty model's)" if null > 0 else ""
    lines.append(
        f"objective {model.objective_:.6g}, at most {model.dual_gap_:.1e} above the optimum{relative}"
    )
    if not fitted.converged:
        lines.append("NOT CONVERGED: the gap above is true, but larger than --tol asks for")
    lines.append(f"everything is in {folder.path}{os.sep}")
    if (folder / REPORT).is_file():
        lines.append(f"to read: {folder / REPORT}")
    print("\n".join(lines), flush=True)
