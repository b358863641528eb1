"""From a table to a run folder: what the commands that leave one have in common."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..fitted.checkpoint import FolderStore, checkpoint
from ..fitted.progress import watch
from ..fitted.scales import ScaleWarning
from ..runs import ModelKind, RunError, RunFolder
from ..runs.folder import CERTIFICATE, DATA, PIECES
from .config import check_config, decide_config
from .defaults import add_default, add_parameters, said_by_default
from .estimators import make_estimator
from .exit_codes import INTERRUPTED, NOT_CONVERGED, OK, TERMINATED, State, UsageError, say
from .files import expand_tables
from .folders import begin, choose_folder, held
from .messages import in_words
from .options import command_line, split_given
from .progress import Display, caught_warnings, working
from .report import REPORT, report_writer, write_run_report
from .source import Source
from .sources import source_kind


@dataclass
class Job:
    """A run that is under way.

    - `config`, `call`: What is computed, and how this call goes about it.
    - `estimator`: the estimator that was asked for
    - `seconds`: dict of part to seconds
    - `warned`: What the library has warned of, in words.
    """

    folder: RunFolder
    config: dict[str, Any]
    call: dict[str, Any]
    kind: ModelKind
    estimator: Any
    source: Source
    display: Display
    seconds: dict[str, float] = field(default_factory=dict)
    warned: list[str] = field(default_factory=list)

    @property
    def problem(self) -> Any:
        return self.source.problem

    @property
    def quiet(self) -> bool:
        return bool(self.call.get("quiet"))

    @contextmanager
    def working_on(self, part: str) -> Iterator[list[Warning]]:
        """Long work: watched, its finished pieces kept, its warnings shown when it ends."""
        started = time.perf_counter()
        store = LoggedPieces(self.folder, self.display)
        with caught_warnings() as said, watch(self.display.show), checkpoint(store):
            yield said
        self.seconds[part] = time.perf_counter() - started
        self.display.close()
        for warning in said:
            words = warning_in_words(warning, self.problem.encoding.feature_names)
            if words not in self.warned:
                self.warned.append(words)
                self.display.note(f"warning: {words}")

    def tell_data(self, **more: Any) -> None:
        """Add to what is known of the data."""
        data = self.folder.read_json(DATA)
        self.folder.write_json(DATA, {**data, "notes": [*self.problem.notes, *self.warned], **more})

    def end(self, summary: Callable[[], Sequence[str]], code: int = OK) -> int:
        """All results are written: the run is complete. Its report, its log, and a few lines on stdout."""
        self.folder.write_json("timing.json", {**self.seconds, "threads": self.config["threads"]})
        self.folder.finish()
        if self.call.get("report", True):
            write_run_report(self.folder, self.display)
        spent = sum(seconds for part, seconds in self.seconds.items() if part != "read")
        self.display.log(f"finished in {spent:.2f} s")
        if not self.quiet:
            lines = [*summary(), f"everything is in {self.folder.path}{os.sep}"]
            if (self.folder / REPORT).is_file():
                lines.append(f"to read: {self.folder / REPORT}")
            print("\n".join(lines), flush=True)
        return code

    def interrupted(self, words: str) -> int:
        """Stopped by the user, with something to show; the run stays unfinished."""
        self.display.log(f"interrupted: {words}")
        say(f"tasksieve: interrupted; {words}")
        return TERMINATED if State.terminated else INTERRUPTED


class LoggedPieces(FolderStore):
    """Finished folds and halves of a run, and what the log says about them."""

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


def warning_in_words(warning: Warning, names: Sequence[str]) -> str:
    """A warning of the library, with options for parameters and columns by their names."""
    if not isinstance(warning, ScaleWarning):
        return in_words(warning)
    return (
        f"columns differ in scale: {names[warning.largest]!r} varies {warning.ratio:.2g} times as much as "
        f"{names[warning.smallest]!r}, and features of small scale are selected last; without --as-is units do not "
        "matter"
    )


def carry_out(command: str, tables: list[str], given: dict[str, Any], work: Callable[[Job], int]) -> int:
    """Read what is asked and the table, begin the run (or resume it), and do the work.

    - `tables`: Files, a glob or a folder. Not needed where ``--config`` or ``--resume`` names it.
    - `given`: Options as they were typed.
    - `work`: Computes, writes the results, and says with which code to leave.
    """
    asked, call = split_given(given)
    if tables:
        asked["table"] = expand_tables(tables, asked.get("format"))
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

    with source_kind(config).connected(call.get("cluster")):
        return read_and_work(config, call, kind, folder, work)


def read_and_work(
    config: dict[str, Any], call: dict[str, Any], kind: ModelKind, folder: RunFolder, work: Callable[[Job], int]
) -> int:
    """Read the data, begin the run (or resume it), and do the work."""
    resume, overwrite, quiet = (bool(call.get(name)) for name in ("resume", "overwrite", "quiet"))
    began = time.perf_counter()
    source = source_kind(config).open(config, kind, bool(call.get("save_problem")))
    with working(f"reading {source.title}{'' if source.has_rows else ' in chunks'}", quiet):
        source = source.read()
        digest = source.digest()
    seconds = {"read": time.perf_counter() - began}
    for key, value in source.decided.items():
        add_default(config, key, value)
    estimator = make_estimator(config, kind, source)
    add_parameters(config, estimator)
    with held(folder, overwrite, quiet, PIECES, CERTIFICATE) as display:
        resumed = resume and folder.begun
        if resumed:
            refuse_other_data(folder, digest)
        reproduce = command_line(config, str(folder.path), lambda key: said_by_default(config, key))
        begin(folder, config, ("resumed: " if resumed else "begun: ") + reproduce, display)
        describe_data(folder, source, digest, reproduce)
        for note in [*source.notes, *source.problem.notes]:
            display.note(f"note: {note}")
        return work(Job(folder, config, call, kind, estimator, source, display, seconds))


def refuse_other_data(folder: RunFolder, digest: str) -> None:
    if (folder / DATA).is_file() and folder.read_json(DATA).get("sha256") != digest:
        raise RunError(
            "--resume: the table (or the graph) has changed since the run was begun; --overwrite starts anew"
        )


def describe_data(folder: RunFolder, source: Source, digest: str, reproduce: str) -> None:
    """Write what is known of the data before the fit."""
    problem = source.problem
    data: dict[str, Any] = {
        "name": source.title,
        "sha256": digest,
        "table_rows": problem.n_rows,
        "rows": problem.n_used,
        "features": problem.n_features,
        "tasks": len(problem.tasks),
        "notes": list(problem.notes),
        "reproduce": reproduce,
    }
    folder.write_json(DATA, data)


def resume_finished(folder: RunFolder, report: bool, quiet: bool) -> int:
    """Nothing is left to do, unless the report is missing."""
    folder.verify()
    if report and not (folder / REPORT).is_file():
        report_writer()
        with folder:
            write_run_report(folder, Display(quiet, folder))
    if not quiet:
        say(f"{folder.path} is finished; nothing to resume")
    if not (folder / CERTIFICATE).is_file():  # findings alone
        return OK
    return OK if folder.read_json(CERTIFICATE).get("converged") else NOT_CONVERGED
