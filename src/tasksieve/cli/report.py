"""``tasksieve report``: build report.html of a run once more; and its writing at the end of a fit."""

from __future__ import annotations

import math

from .. import report
from ..runs import RunFolder
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


def write_run_report(folder: RunFolder, display: Display, max_bytes: float | None = math.inf) -> None:
    """Write ``report.html`` of a finished run; by default of a model of any size, as it was just made."""
    with working("writing the report", display.quiet):
        report.write_report(run_content(folder, max_bytes=max_bytes), folder / REPORT)
        folder.finish()
    display.log("report.html written")


def run_report(asked: Asked) -> int:
    folder = RunFolder(asked.run)
    folder.verify(READ)
    with folder:
        write_run_report(folder, Display(asked.quiet, folder), gibibytes(asked.max_memory))
    if not asked.quiet:
        print(folder / REPORT)
    return OK
