"""Run folders as the commands begin, resume and finish them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..runs import RunError, RunFolder
from ..runs.folder import CONFIG, VERSIONS
from ..versions import versions
from .exit_codes import UsageError, say
from .options import BY_KEY, Asked, flag
from .progress import Display
from .report import REPORT, write_run_report


def choose_folder(call: Asked) -> RunFolder:
    """The folder of a run (``--out``, ``--resume``, ``--overwrite``), refused where it holds anything else."""
    folder = RunFolder(call.out)
    if call.resume and call.overwrite:
        raise UsageError("--resume and --overwrite: one or the other")
    folder.refuse_other_files()
    if folder.path.exists() and any(folder.path.iterdir()) and not (call.resume or call.overwrite):
        raise RunError(f"{folder.path} exists: --resume continues it, --overwrite starts anew")
    return folder


def refuse_other_options(old: dict[str, Any], new: dict[str, Any], free: set[str]) -> None:
    """A run that is resumed must have been asked the same, but for the options in ``free``."""
    differing = sorted(key for key in {*old, *new} - free if old.get(key) != new.get(key))
    if differing:
        words = ", ".join(
            f"{flag(key) if key in BY_KEY else key} (was {old.get(key)!r}, is {new.get(key)!r})"
            for key in differing
        )
        raise RunError(f"--resume: the run was begun with other options: {words}")


@contextmanager
def held(folder: RunFolder, call: Asked, *work: str) -> Iterator[Display]:
    """Hold a folder while a command works in it. A mistake in the input that comes before there is any of the `work`,
    files by their names, leaves no folder."""
    fresh = not folder.path.exists()
    with folder:
        if call.overwrite:
            folder.clear()
        display = Display(call.quiet, folder)
        try:
            yield display
        except (ValueError, ImportError):
            if fresh and not any((folder / name).exists() for name in work) and not folder.finished:
                folder.remove()
            raise
        finally:
            display.close()
        if folder.log_failed:
            say(f"tasksieve: {folder / 'log.txt'} could not be written completely")


def begin(folder: RunFolder, config: dict[str, Any], said: str, display: Display) -> None:
    """Write what is known before the work: the configuration comes first, so that --resume can find it."""
    folder.write_json(CONFIG, config)
    folder.write_json(VERSIONS, versions())
    display.log(said)


def end(folder: RunFolder, call: Asked, display: Display, timing: dict[str, Any], said: str) -> list[str]:
    """All results are written: the run is complete. Its report, its log; gives the last lines of the summary."""
    folder.write_json("timing.json", timing)
    folder.finish()
    if call.report:
        write_run_report(folder, display)
    display.log(said)
    read = [f"to read: {folder / REPORT}"] if (folder / REPORT).is_file() else []
    return [f"everything is in {folder.path}{os.sep}", *read]
