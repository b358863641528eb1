"""``tasksieve fit`` and ``tasksieve path``: from a table to a run folder."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from ..design import thread_count
from ..fitted.arguments import check_parameters
from ..fitted.checkpoint import FolderStore, checkpoint
from ..fitted.progress import watch
from ..fitted.scales import ScaleWarning
from ..report.from_model import task_quality
from ..report.packing import count
from ..runs import MODELS, ModelKind, RunError, RunFolder, SavedModel, save_model
from ..runs.folder import CONFIG, DATA, PIECES, file_digest
from ..runs.results import (
    coefficient_rows,
    row_labels,
    write_coefficients,
    write_member_tables,
    write_path,
    write_quality,
    write_scores,
)
from ..tables import Table, TableProblem, prepare, read_table
from ..tables.chunked import ChunkedProblem
from .chunked import decide_chunks, quality_of, read_chunked
from .defaults import (
    CONFIG_FORMAT,
    DEFAULTS,
    PARAMETER_DEFAULTS,
    STRENGTH,
    add_default,
    add_folds,
    add_parameters,
    explicit,
    said_by_default,
    without_defaults,
)
from .exits import INTERRUPTED, NOT_CONVERGED, OK, TERMINATED, State, UsageError, say
from .feature_groups import GROUP_WORDS, read_feature_groups
from .folders import begin, choose_folder, held, refuse_other_options
from .folds import check_folds, fold_parameters
from .graph_file import GRAPH_WORDS, read_graph_file, read_task_graph
from .options import (
    BY_KEY,
    COMPARED,
    PARAMETER,
    command_line,
    read_alpha,
    read_alphas,
    read_numbers,
    split_given,
)
from .progress import Display, caught_warnings, working
from .report import REPORT, report_writer, write_run_report

Problem = TableProblem | ChunkedProblem


@dataclass
class Fitted:
    """What an estimator has found, in the terms of a run folder."""

    model: Any  # of one value: the estimator to predict with
    path: Any = None
    chosen: int = -1
    cv_scores: np.ndarray | None = None
    cv_measure: str = ""
    cv_folds: str = ""
    converged: bool = True


class LoggedFolds(FolderStore):
    """Finished folds of a run, and what the log says about them."""

    def __init__(self, folder: RunFolder, display: Display) -> None:
        super().__init__(folder / PIECES)
        self.display = display

    def recall(self, name: str) -> dict[str, np.ndarray] | None:
        found = super().recall(name)
        if found is not None:
            self.display.log(f"{name}: taken from the interrupted run")
        return found

    def keep(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        super().keep(name, arrays)
        self.display.log(f"{name}: finished")


def run_fit(command: str, table: str | None, given: dict[str, Any]) -> int:
    """The body of both commands."""
    asked, call = split_given(given)
    State.debug = bool(call.get("debug"))
    if table is not None:
        asked["table"] = table
    if "out" not in call:
        raise UsageError("--out: name a folder for the run")
    resume, overwrite = bool(call.get("resume")), bool(call.get("overwrite"))
    folder = choose_folder(call["out"], resume, overwrite)
    config = decide_config(command, asked, call.get("config"), folder if resume and folder.begun else None)
    quiet = bool(call.get("quiet"))
    if resume and folder.finished:
        return resume_finished(folder, bool(call.get("report", True)), quiet)
    if call.get("report", True):
        report_writer()  # find out now, not after hours
    kind = check_config(config)
    os.environ["TASKSIEVE_NUM_THREADS"] = str(config["threads"])

    began = time.perf_counter()
    chunked = decide_chunks(config, kind)
    problem: Problem
    with working(f"reading {os.path.basename(config['table'])}{' in chunks' if chunked else ''}", quiet):
        if chunked:
            problem, classes = read_chunked(config), False
        else:
            content = read_table(config["table"], config.get("format"), config.get("separator"))
            problem, classes = prepare_problem(kind, config, content)
            del content
        digest = data_digest(config)
    seconds_to_read = time.perf_counter() - began
    estimator = make_estimator(config, kind, problem, classes)
    add_parameters(config, estimator)
    with held(folder, overwrite, quiet, PIECES) as display:
        resumed = resume and folder.begun
        if resumed:
            refuse_other_data(folder, digest)
        reproduce = command_line(config, str(folder.path), lambda key: said_by_default(config, key))
        begin(folder, config, ("resumed: " if resumed else "begun: ") + reproduce, display)
        describe_data(folder, config, problem, digest, reproduce)
        for note in problem.notes:
            display.note(f"note: {note}")
        return solve(folder, config, kind, estimator, problem, seconds_to_read, call, display)


def resume_finished(folder: RunFolder, report: bool, quiet: bool) -> int:
    """Nothing is left to do, unless the report is missing."""
    folder.verify()
    if report and not (folder / REPORT).is_file():
        report_writer()
        with folder:
            write_run_report(folder, Display(quiet, folder))
    if not quiet:
        say(f"{folder.path} is finished; nothing to resume")
    return OK if folder.read_json("certificate.json").get("converged") else NOT_CONVERGED


# --- configuration -----------------------------------------------------------------------------------------------


def decide_config(
    command: str, asked: dict[str, Any], config_file: str | None, resumed: RunFolder | None
) -> dict[str, Any]:
    """Options given, over those of ``--config``, over the defaults; a resumed run must have been asked the same."""
    base: dict[str, Any] = {"by_default": []}
    if config_file is not None:
        base = read_config(RunFolder(Path(config_file).parent), Path(config_file).name)
        base = without_defaults(base, asked, command)
    old = None
    if resumed is not None:
        old = base = read_config(resumed, CONFIG)
    config = {**base, **asked, "command": command, "config_format": CONFIG_FORMAT}
    if "loss" in asked or "penalty" in asked:
        add_default(config, "model", "any")
    for key, value in DEFAULTS.items():
        add_default(config, key, value)
    config.setdefault("threads", thread_count())
    if "table" not in config:
        raise UsageError("name the table to read")
    config["table"] = os.path.abspath(config["table"])
    if old is not None:
        given = [*asked, "command"]  # an older version may have written less than it meant
        refuse_other_options({key: old.get(key) for key in given}, {key: config[key] for key in given}, {"table"})
    return config


def read_config(folder: RunFolder, name: str) -> dict[str, Any]:
    """A configuration from a file, checked as if it had been typed."""
    config = folder.read_json(name)
    for key, value in config.items():
        if key in ("table", "command"):
            good = isinstance(value, str)
        elif key == "config_format":
            good = _is_of(value, int)
        elif key == "by_default":
            good = _is_of(value, list[str]) and set(value) <= set(config) & set(BY_KEY)
        elif key not in BY_KEY or BY_KEY[key].role == "run":
            raise RunError(f"{folder / name}: unknown option {key!r}")
        else:
            good = _is_of(value, BY_KEY[key].kind)
        if not good:
            raise RunError(f"{folder / name}: {key!r} cannot be {str(value)[:60]!r}")
    return explicit(config, MODELS[config.get("model", DEFAULTS["model"])], str(folder / name))


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
    for key in config:
        if key in BY_KEY and config["command"] not in BY_KEY[key].commands:
            raise UsageError(f"{BY_KEY[key].long}: is not for tasksieve {config['command']}")
    add_folds(config, kind)
    if not kind.has_path:
        for key in STRENGTH:
            if key in config:
                raise UsageError(
                    f"{BY_KEY[key].long}: --model {kind.name} has no path; give --{kind.strength}"
                )
    if "alpha" in config:
        for key in STRENGTH:
            if key in config:
                raise UsageError(f"--alpha gives one value; {BY_KEY[key].long} is for choosing among several")
    for key in ("graph", "task_graph", "feature_groups"):
        if config.get(key) is not None and key not in kind.parameters():
            raise UsageError(f"{BY_KEY[key].long}: --model {kind.name} has no such option")
    if "feature_groups" in kind.parameters() and config.get("feature_groups") is None:
        raise UsageError("--feature-groups: name a file with the columns feature and group, or 'column'")
    if config.get("offset") is not None and kind.strength != "alpha":
        raise UsageError(f"--offset: --model {kind.name} knows none")
    if config.get("cv") is not None and config["cv"] < 2:
        raise UsageError(f"--cv: at least 2 folds, got {config['cv']}")
    if config["threads"] < 1:
        raise UsageError(f"--threads: at least 1, got {config['threads']}")
    if config["max_categories"] < 1:
        raise UsageError(f"--max-categories: at least 1, got {config['max_categories']}")
    known = kind.parameters()
    for key, value in PARAMETER_DEFAULTS.items():
        if PARAMETER.get(key, key) in known:
            add_default(config, key, value)
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
    check_folds(config)
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
    """One digest for the table and the files beside it."""
    digest = file_digest(Path(config["table"]))
    for key, words in (("graph", GRAPH_WORDS), ("task_graph", GRAPH_WORDS), ("feature_groups", GROUP_WORDS)):
        named = config.get(key)
        if named is not None and named not in words:
            digest = hashlib.sha256((digest + file_digest(Path(named))).encode()).hexdigest()
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
        offset=config.get("offset"),
        groups=config.get("row_groups"),
        id=config.get("id"),
        features=config.get("features", ()),
        drop=config.get("drop", ()),
        keep=config["keep"],
        categorical=config.get("categorical", ()),
        date_parts=config["date_parts"],
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


def describe_data(
    folder: RunFolder, config: dict[str, Any], problem: Problem, digest: str, reproduce: str
) -> None:
    """Write what is known of the data before the fit."""
    data: dict[str, Any] = {
        "name": os.path.basename(config["table"]),
        "sha256": digest,
        "table_rows": problem.n_rows,
        "rows": problem.n_used,
        "features": problem.n_features,
        "tasks": len(problem.tasks),
        "notes": list(problem.notes),
        "reproduce": reproduce,
    }
    folder.write_json(DATA, data)


# --- solving -----------------------------------------------------------------------------------------------------


def make_estimator(config: dict[str, Any], kind: ModelKind, problem: Problem, classes: bool) -> Any:
    """The estimator that was asked for; an error, before any folder is touched, where it cannot be."""
    params, cv = estimator_parameters(config), bool(config.get("cv"))
    if config.get("graph") is not None:
        params.update(read_graph_file(config["graph"], problem.tasks))
    if config.get("task_graph") is not None:
        params["task_graph"] = read_task_graph(config["task_graph"], problem.tasks)
    if config.get("feature_groups") is not None:
        params["feature_groups"] = read_feature_groups(config["feature_groups"], problem.encoding)
    if cv:
        known = kind.parameters(cv=True)
        params.update(read_grid(config))
        for key in params:
            if key not in known:
                raise UsageError(
                    f"--{key.replace('_', '-')}: --model {kind.name} has no such option with --cv"
                )
        params.update(fold_parameters(config))
    estimator = kind.estimator(classes, cv)(**params)
    check_parameters(estimator)
    return estimator


def read_grid(config: dict[str, Any]) -> dict[str, Any]:
    """Values of alpha as `path` and the cross-validation take them."""
    n_alphas, alphas = read_alphas(config.get("alphas"))
    grid: dict[str, Any] = {"alphas": alphas} if alphas else {"n_alphas": n_alphas} if n_alphas else {}
    if "eps" in config:
        grid["eps"] = config["eps"]
    return grid


def solve(
    folder: RunFolder,
    config: dict[str, Any],
    kind: ModelKind,
    estimator: Any,
    problem: Problem,
    seconds_to_read: float,
    call: dict[str, Any],
    display: Display,
) -> int:
    started = time.perf_counter()
    with caught_warnings() as said, watch(display.show), checkpoint(LoggedFolds(folder, display)):
        fitted = fit_estimator(config, kind, estimator, problem)
    seconds = time.perf_counter() - started
    display.close()
    if fitted.path is not None and fitted.path.interrupted:
        return keep_interrupted(folder, fitted.path, display)
    if fitted.path is None:
        fitted.converged = not any(isinstance(warning, ConvergenceWarning) for warning in said)
    warned = [in_words(warning, problem.encoding.feature_names) for warning in said]
    for words in warned:
        display.note(f"warning: {words}")
    data = folder.read_json(DATA)
    data["notes"] = [*problem.notes, *warned]
    if fitted.cv_scores is not None:
        data["cv_measure"] = fitted.cv_measure
        data["cv_folds"] = fitted.cv_folds
    folder.write_json(DATA, data)
    with working("writing results", bool(call.get("quiet"))):
        write_results(folder, config, kind, problem, fitted)
    folder.write_json("timing.json", {"read": seconds_to_read, "fit": seconds, "threads": config["threads"]})
    folder.finish()
    if call.get("report", True):
        write_run_report(folder, display)
    display.log(f"finished in {seconds:.2f} s")
    if not call.get("quiet"):
        summary(folder, kind, fitted, problem, seconds)
    return OK if fitted.converged else NOT_CONVERGED


def in_words(warning: Warning, names: Sequence[str]) -> str:
    """A warning of the library in the words of the command line."""
    if not isinstance(warning, ScaleWarning):
        return str(warning)
    return (
        f"columns differ in scale: {names[warning.largest]!r} varies {warning.ratio:.2g} times as much as "
        f"{names[warning.smallest]!r}, and features of small scale are selected last; without --as-is units do not "
        "matter"
    )


def fit_estimator(config: dict[str, Any], kind: ModelKind, model: Any, problem: Problem) -> Fitted:
    summed = isinstance(problem, ChunkedProblem)
    data = [problem.moments] if isinstance(problem, ChunkedProblem) else [problem.X, problem.y]
    rows = {} if isinstance(problem, ChunkedProblem) else row_arguments(problem)
    if config["command"] == "path":
        path = (model.path_moments if summed else model.path)(*data, **rows, **read_grid(config))
        return Fitted(
            path.model(-1) if len(path) else None, path, len(path) - 1, converged=bool(path.converged.all())
        )
    (model.fit_moments if summed else model.fit)(*data, **rows)
    if config.get("cv"):
        path, k = model.path_, int(np.flatnonzero(model.path_.alphas == model.alpha_)[0])
        return Fitted(
            path.model(k), path, k, model.path_scores_, model.cv_measure, model.cv_folds_, bool(path.converged[k])
        )
    if kind.has_path and isinstance(model.alpha, str):  # a word for a number: keep the number
        model.set_params(alpha=float(model.alpha_))
    return Fitted(model)


def row_arguments(problem: TableProblem) -> dict[str, Any]:
    """What `fit` is told of the rows beside X and y."""
    rows = {
        "task": problem.task,
        "sample_weight": problem.sample_weight,
        "groups": problem.groups,
        "offset": problem.offset,
    }
    return {name: values for name, values in rows.items() if values is not None}


def keep_interrupted(folder: RunFolder, path: Any, display: Display) -> int:
    """A path that was stopped: the values solved so far are written, the run stays unfinished."""
    if len(path):
        write_path(folder, path)
    display.log(f"interrupted after {len(path)} values")
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
    problem: Problem,
    fitted: Fitted,
) -> None:
    model = fitted.model
    names = problem.encoding.feature_names
    labels = row_labels(model, problem.targets)
    write_coefficients(folder, *coefficient_rows(model), labels, names)
    if fitted.path is not None:
        write_path(folder, fitted.path)
    if fitted.cv_scores is not None:
        write_scores(folder, fitted.path.alphas, fitted.cv_scores)
    null = model.null_objective_
    folder.write_json(
        "certificate.json",
        {
            "objective": float(model.objective_),
            "dual_gap": float(model.dual_gap_),
            "relative_gap": float(model.dual_gap_ / null) if null > 0 else 0.0,
            "tol": float(model.tol),
            "null_objective": float(null),
            "converged": bool(fitted.converged),
        },
    )
    if isinstance(problem, ChunkedProblem):
        quality = quality_of(model, problem)
    else:
        quality = task_quality(
            model,
            problem.X,
            problem.y,
            problem.task,
            problem.sample_weight,
            offset=problem.offset,
            where="the rows learnt from",
        )
    tasks = labels if len(labels) == len(quality.rows) else [str(label) for label in model.tasks_.tolist()]
    write_quality(folder, quality, tasks)
    told = problem.targets if len(problem.targets) > 1 else [str(label) for label in getattr(model, "tasks_", [])]
    write_member_tables(folder, model, names, told)
    facts = {"chosen": fitted.chosen, "choice": config["command"] == "fit"}
    facts |= {key: config.get(key) for key in ("id", "offset")}
    save_model(
        folder,
        SavedModel(
            model, kind.name, problem.encoding, problem.fill, problem.targets, config.get("task"), facts
        ),
    )


SCALES = {
    True: "columns standardised while fitting (not with --as-is); coefficients are in the units of the table",
    False: "columns as they are, not standardised",
}


def comparable_strengths(model: Any, coef: np.ndarray, problem: Problem) -> np.ndarray:
    """Lengths of the features' coefficients, where the fit has standardised per standard deviation of the column."""
    strength = np.linalg.norm(coef, axis=0)
    if getattr(model, "standardize", False):
        chosen = np.flatnonzero(strength)
        if isinstance(problem, ChunkedProblem):
            strength[chosen] *= problem.moments.deviations()[chosen]
        else:
            strength[chosen] *= deviations(problem.X[:, chosen])
    return strength


def deviations(X: Any) -> np.ndarray:
    """Standard deviations of columns."""
    if not scipy.sparse.issparse(X):
        return np.std(X, axis=0, dtype=np.float64)
    means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    squares = np.asarray(X.astype(np.float64).power(2).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(squares - means**2, 0.0))


def summary(
    folder: RunFolder, kind: ModelKind, fitted: Fitted, problem: Problem, seconds: float
) -> None:
    """A few lines on stdout."""
    model = fitted.model
    coef, _ = coefficient_rows(model)
    strength = comparable_strengths(model, coef, problem)
    chosen = np.flatnonzero(strength)
    names = problem.encoding.feature_names
    n_tasks = folder.read_json(DATA)["tasks"]
    lines = [
        f"{type(model).__name__}: {count(problem.n_used, 'row')}, {count(n_tasks, 'task')}, "
        f"{count(coef.shape[1], 'feature')}; {seconds:.2f} s",
        f"{kind.strength} = {getattr(model, kind.strength):.6g}: {count(len(chosen), 'feature')} selected",
    ]
    if fitted.path is not None and fitted.cv_scores is None:
        lines[1] = (
            f"{count(len(fitted.path), 'value')} of alpha, "
            f"up to {count(int(fitted.path.n_selected.max()), 'feature')} selected"
        )
    if hasattr(model, "standardize"):
        lines.append(SCALES[model.standardize])
    strongest = chosen[np.argsort(-strength[chosen], kind="stable")][:10]
    if len(strongest):
        shown = ", ".join(names[j] for j in strongest) + (", ..." if len(chosen) > len(strongest) else "")
        lines.append(f"strongest: {shown}")
    null = model.null_objective_
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
