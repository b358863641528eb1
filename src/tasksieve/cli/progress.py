"""Progress: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..fitted.progress import Lines, Progress
from ..report.words import plural
from ..runs.folder import RunFolder
from .exit_codes import say

# Nothing is shown of what takes less than this many seconds, and no line comes sooner after the last.
PATIENCE = 1.0
BETWEEN_LINES = 5.0


class Display:
    """Reports the progress of a run to the user, unless that is to be quiet, and to its log."""

    def __init__(self, quiet: bool, folder: RunFolder) -> None:
        self.quiet = quiet
        self.folder = folder
        self._began = time.monotonic()
        self._line = Lines(BETWEEN_LINES, last=False)
        self._bar: Any = None
        self._lines: dict[str, Any] = {}

    def log(self, message: str) -> None:
        self.folder.log(message)

    def note(self, message: str) -> None:
        """A line for the log and, unless quiet, for the user."""
        self.log(message)
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False)
        elif not self.quiet:
            say(message)

    def show(self, progress: Progress) -> None:
        """What `watch` calls: a bar on a terminal, a line now and then elsewhere."""
        if self.quiet or time.monotonic() - self._began < PATIENCE:
            return
        if not sys.stderr.isatty():
            self._line(progress)
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        if self._bar is None:
            self._bar = Bars(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[detail]}", style="dim"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        label, total = progress.label, progress.total
        if label not in self._lines:
            self._lines[label] = self._bar.add_task(label, total=total, detail="")
        speed = progress.done / max(progress.seconds, 1e-9)
        detail = progress.detail or f"{speed:,.0f} {plural(progress.unit)} a second"
        detail += f", {progress.left_in_words}" if progress.left_in_words else ""
        self._bar.update(self._lines[label], completed=progress.done, total=total, detail=detail)
        if progress.done == total:
            self._bar.remove_task(self._lines.pop(label))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._lines.clear()


@contextmanager
def working(label: str, quiet: bool) -> Iterator[None]:
    """During work without countable steps: a line that moves, on a terminal, after a moment."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.status import Status

    status = Status(label, console=Console(stderr=True))
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


@contextmanager
def caught_warnings() -> Iterator[list[Warning]]:
    """The library's warnings as a list, known at the end, instead of lines on stderr."""
    said: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    idle = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning)
    said += [warning.message for warning in caught if not isinstance(warning.message, (str, *idle))]
