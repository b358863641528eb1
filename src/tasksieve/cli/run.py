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
from ..report.page import need_jinja
from ..report.words import count
from ..runs import ModelKind, RunError, RunFolder
from ..runs.folder import CERTIFICATE, DATA, MISSING_VALUES, PIECES, PROOF, UNPROVED
from ..tables import write_table
from .config import check_config, decide_config
from .defaults import add_default, add_parameters, said_by_default
from .estimators import make_estimator
from .exit_codes import INTERRUPTED, NOT_CONVERGED, OK, TERMINATED, State, UsageError, say
from .files import expand_tables
from .folders import begin, choose_folder, end, held
from .messages import in_words
from .options import OPTIONS, TABLE, Asked, command_line, given_of
from .progress import Display, caught_warnings, working
from .report import REPORT, write_run_report
from .source import Source
from .sources import source_kind


@dataclass
class Job:
    """A run that is under way."""

    folder: RunFolder
    config: dict[str, Any]  # what is computed
    call: Asked  # how this call goes about it
    kind: ModelKind
    estimator: Any  # that was asked for
    source: Source
    display: Display
    seconds: dict[str, float]  # by part of the work
    warned: list[str] = field(default_factory=list)  # what the library has warned of, in words
    unproved: str = ""  # why there is no file of a certificate, where there is none

    @property
    def problem(self) -> Any:
        return self.source.problem

    @property
    def seconds_worked(self) -> float:
        return sum(seconds for part, seconds in self.seconds.items() if part != "read")

    def data_line(self, model: Any, seconds: float, n_covariates: int = 0) -> str:
        """Which model was fitted to how much, and how long that took."""
        problem, beside = self.problem, f", {count(n_covariates, 'covariate')}" if n_covariates else ""
        return (
            f"{type(model).__name__}: {count(problem.n_used, 'row')}, {count(len(problem.tasks), 'task')}, "
            f"{count(problem.n_features - n_covariates, 'feature')}{beside}; {seconds:.2f} s"
        )

    @contextmanager
    def working_on(self, part: str) -> Iterator[list[Warning]]:
        """Long work: watched, its finished pieces kept, its warnings shown when it ends."""
        started = time.perf_counter()
        store = LoggedPieces(self.folder, self.display)
        with caught_warnings() as said, watch(self.display.show), checkpoint(store):
            yield said
        self.seconds[part] = time.perf_counter() - started
        self.display.close()
        self._note_warnings(said)

    @contextmanager
    def noting_warnings(self) -> Iterator[None]:
        """Short work whose warnings are shown when it ends."""
        with caught_warnings() as said:
            yield
        self._note_warnings(said)

    def _note_warnings(self, said: list[Warning]) -> None:
        for warning in said:
            words = warning_in_words(warning, self.problem.encoding.feature_names)
            if words not in self.warned:
                self.warned.append(words)
                State.warned.add(in_words(warning))
                self.display.note(f"warning: {words}")

    def lacks_proof(self, why: str) -> None:
        """There is no file of a certificate: the run says so in its log, its files and its last lines."""
        self.unproved = why
        state_unproved(self.folder, why)

    def tell_data(self, **more: Any) -> None:
        """Add to what is known of the data."""
        data = self.folder.read_json(DATA)
        self.folder.write_json(DATA, {**data, "notes": [*self.problem.notes, *self.warned], **more})

    def end(self, summary: Callable[[], Sequence[str]], code: int = OK) -> int:
        """All results are written: the run is complete. A few lines on stdout say what came of it."""
        timing = {**self.seconds, "threads": self.config["threads"]}
        last = end(self.folder, self.call, self.display, timing, f"finished in {self.seconds_worked:.2f} s")
        unproved = unproved_lines(self.unproved)
        if not self.call.quiet:
            print("\n".join([*summary(), *last, *unproved]), flush=True)
        elif unproved:  # not even --quiet leaves it unsaid
            say("\n".join(unproved))
        return code

    def interrupted(self, words: str) -> int:
        """Stopped by the user, with something to show; the run stays unfinished."""
        self.display.log(f"interrupted: {words}")
        say(f"tasksieve: interrupted; {words}")
        return TERMINATED if State.terminated else INTERRUPTED


def state_unproved(folder: RunFolder, why: str) -> None:
    """Write down why a run has a gap and no file that proves it."""
    folder.log(f"no {PROOF}: {why}")
    folder.write_json(CERTIFICATE, {**folder.read_json(CERTIFICATE), UNPROVED: why})


def unproved_lines(why: str) -> list[str]:
    """Last words of a run without a file of a certificate; nothing of others."""
    if not why:
        return []
    return [f"NO CERTIFICATE: {why}", f"its gap is the solver's own number: without {PROOF} nobody else can check it"]


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


def carry_out(asked: Asked, work: Callable[[Job], int]) -> int:
    """Read what is asked and the table, begin the run (or resume it), and do the work, which gives the exit code."""
    options = given_of(asked, [TABLE, *OPTIONS], "config", "param")
    given = {key: value for key, value in options.items() if value is not None and value != []}
    call = Asked(**given_of(asked, OPTIONS, "run"))
    left_out: list[str] = []
    if "table" in given:
        given["table"] = expand_tables(given["table"], given.get("format"), call.skip, left_out)
    if call.out is None:
        raise UsageError("--out: name a folder for the run")
    folder = choose_folder(call)
    resumed = call.resume and folder.begun
    config = decide_config(asked.command, given, call.config, folder if resumed else None)
    if resumed and folder.finished:
        return resume_finished(folder, call)
    if call.report:
        need_jinja()  # find out now, not after hours
    kind = check_config(config)
    os.environ["TASKSIEVE_NUM_THREADS"] = str(config["threads"])
    with source_kind(config).connected(call.cluster):
        began = time.perf_counter()
        source = source_kind(config).open(config, kind, call.save_problem is not None)
        with working(f"reading {source.title}{'' if source.has_rows else ' in chunks'}", call.quiet):
            source = source.read()
            digest = source.digest()
        if left_out:
            source.problem.notes.insert(0, f"files that are not read (--skip): {', '.join(left_out)}")
        seconds = {"read": time.perf_counter() - began}
        for key, value in source.decided.items():
            add_default(config, key, value)
        estimator = make_estimator(config, kind, source)
        add_parameters(config, estimator)
        with held(folder, call, PIECES, CERTIFICATE) as display:
            job = Job(folder, config, call, kind, estimator, source, display, seconds)
            describe(job, digest, resumed)
            return work(job)


def describe(job: Job, digest: str, resumed: bool) -> None:
    """Write what is known before the work, and of the data; those of a run that is resumed must be the same."""
    folder, config, source, problem = job.folder, job.config, job.source, job.problem
    if resumed and (folder / DATA).is_file() and folder.read_json(DATA).get("sha256") != digest:
        raise RunError(
            "--resume: the table (or the graph) has changed since the run was begun; --overwrite starts anew"
        )
    reproduce = command_line(config, OPTIONS, str(folder.path), lambda key: said_by_default(config, key))
    begin(folder, config, ("resumed: " if resumed else "begun: ") + reproduce, job.display)
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
    if counts := getattr(problem, "missing", None):
        write_table(folder / MISSING_VALUES, counts)
        data["missing"] = {"values": sum(counts["missing"]), "columns": len(set(counts["column"]))}
        data["missing"] |= {"treatment": counts["treatment"][0], "most": worst_missing(counts)}
    folder.write_json(DATA, data)
    for note in [*source.notes, *problem.notes]:
        job.display.note(f"note: {note}")


def worst_missing(counts: dict[str, list[Any]]) -> str:
    """The column and task that lack the largest share of their values, in words."""
    k = max(range(len(counts["column"])), key=lambda k: counts["missing"][k] / counts["rows"][k])
    task = f" in task {counts['task'][k]!r}" if counts["task"][k] else ""
    return f"{counts['missing'][k]:,} of {counts['rows'][k]:,} values of {counts['column'][k]!r}{task}"


def resume_finished(folder: RunFolder, call: Asked) -> int:
    """Nothing is left to do, unless the report is missing."""
    folder.verify()
    if call.report and not (folder / REPORT).is_file():
        with folder:
            write_run_report(folder, Display(call.quiet, folder))
    if not call.quiet:
        say(f"{folder.path} is finished; nothing to resume")
    if not (folder / CERTIFICATE).is_file():  # findings alone
        return OK
    stated = folder.read_json(CERTIFICATE)
    for line in unproved_lines(str(stated.get(UNPROVED, "")))[:1]:
        say(line)
    return OK if stated.get("converged") else NOT_CONVERGED
