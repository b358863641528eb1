"""``tasksieve fit`` and ``tasksieve path``: from a table to a run folder."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..fitted.checkpoint import FolderStore, checkpoint
from ..fitted.progress import watch
from ..fitted.restore import set_state
from ..fitted.scales import ScaleWarning
from ..runs import ModelKind, RunFolder
from ..runs.folder import DATA, PIECES
from ..runs.results import write_path
from ..tables import read_table
from ..tables.chunked import ChunkedProblem
from .chunked import decide_chunks, read_chunked
from .config import check_config, decide_config, read_grid
from .data import Problem, data_digest, describe_data, prepare_problem, refuse_other_data, row_arguments
from .defaults import add_parameters, said_by_default
from .estimators import make_estimator
from .exits import INTERRUPTED, NOT_CONVERGED, OK, TERMINATED, State, UsageError, say
from .folders import begin, choose_folder, held
from .options import command_line, split_given
from .progress import Display, caught_warnings, working
from .report import REPORT, report_writer, write_run_report
from .results import Fitted, summary, write_results


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
    if fitted.cv is not None:
        data["cv_measure"] = fitted.cv.cv_measure
        data["cv_folds"] = fitted.cv.cv_folds_
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
        chosen = set_state(path.model(k), cv_quality=model.cv_quality_)
        return Fitted(chosen, path, k, model, bool(path.converged[k]))
    if kind.has_path and isinstance(model.alpha, str):  # a word for a number: keep the number
        model.set_params(alpha=float(model.alpha_))
    return Fitted(model)


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
