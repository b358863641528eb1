"""Run folders as the commands begin, resume and finish them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..runs import RunError, RunFolder
from ..runs.folder import CONFIG, VERSIONS
from ..versions import versions
from .exit_codes import UsageError, say
from .options import BY_KEY
from .progress import Display


def gibibytes(max_memory: float | None) -> float | None:
    """``--max-memory`` in bytes."""
    if max_memory is None:
        return None
    if not max_memory > 0:
        raise UsageError(f"--max-memory: must be positive, got {max_memory:g}")
    return max_memory * 2.0**30


def choose_folder(out: str, resume: bool, overwrite: bool) -> RunFolder:
    """The folder of a run, refused where it holds anything that was not meant to be touched."""
    folder = RunFolder(out)
    if resume and overwrite:
        raise UsageError("--resume and --overwrite: one or the other")
    folder.refuse_other_files()
    if folder.path.exists() and any(folder.path.iterdir()) and not (resume or overwrite):
        raise RunError(f"{folder.path} exists: --resume continues it, --overwrite starts anew")
    return folder


def refuse_other_options(old: dict[str, Any], new: dict[str, Any], free: set[str]) -> None:
    """A run that is resumed must have been asked the same, but for the options in ``free``."""
    differing = sorted(key for key in {*old, *new} - free if old.get(key) != new.get(key))
    if differing:
        words = ", ".join(
            f"{BY_KEY[key].long if key in BY_KEY else key} (was {old.get(key)!r}, is {new.get(key)!r})"
            for key in differing
        )
        raise RunError(f"--resume: the run was begun with other options: {words}")


@contextmanager
def held(folder: RunFolder, overwrite: bool, quiet: bool, *work: str) -> Iterator[Display]:
    """Hold a folder while a command works in it.

    - `work`: Names of what holds work: a mistake in the input that comes before there is any leaves no folder.
    """
    fresh = not folder.path.exists()
    with folder:
        if overwrite:
            folder.clear()
        display = Display(quiet, folder)
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
