"""``tasksieve report``: build report.html of a run once more; and its writing at the end of a fit."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from ..report.content import ReportContent
from ..runs import RunError, RunFolder
from ..runs.content import run_content
from ..runs.folder import CERTIFICATE, COMPARISON, DATA, HISTORY, PERMUTATION, STABILITY, STREAM, TABLES
from .exit_codes import OK
from .options import Asked, gibibytes
from .progress import Display, working

REPORT = "report.html"
# Files that a report is made of.
READ = (
    "model.json", "model.npz", "path.npz", "cv_scores.csv", CERTIFICATE, DATA, PERMUTATION, STABILITY, "stability.npz",
    COMPARISON, TABLES, STREAM, HISTORY,
)  # fmt: skip


def report_writer() -> Callable[[ReportContent, Path], object]:
    """The function that writes a report; an error where this installation cannot."""
    try:
        from .. import report

        import_module("jinja2")
        writer: Callable[[ReportContent, Path], object] = report.write_report
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"this installation cannot write reports ({error}): pip install 'tasksieve[report]', or use --no-report"
        ) from error
    return writer


def write_run_report(folder: RunFolder, display: Display, max_bytes: float | None = math.inf) -> None:
    """Write ``report.html`` into a run folder, atomically; by default of a model of any size, as it was just made."""
    write_report = report_writer()
    with (
        working("writing the report", display.quiet),
        tempfile.TemporaryDirectory(prefix="tasksieve-report-") as scratch,
    ):
        page = Path(scratch) / REPORT
        write_report(run_content(folder, max_bytes=max_bytes), page)
        folder.replace(REPORT, page.read_bytes())
    display.log("report.html written")


def run_report(asked: Asked) -> int:
    folder = RunFolder(asked.run)
    if not folder.path.is_dir():
        raise RunError(f"there is no run folder {folder.path}")
    folder.verify(READ)
    with folder:
        write_run_report(folder, Display(asked.quiet, folder), gibibytes(asked.max_memory))
    if not asked.quiet:
        print(folder / REPORT)
    return OK
