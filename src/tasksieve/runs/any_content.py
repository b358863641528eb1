"""The content of a run's report, whatever left it: a fit, a path, a stream, findings alone."""

from __future__ import annotations

from ..report.content import ReportContent
from .content import report_content
from .folder import CONFIG, STREAM, RunFolder
from .stream_run import stream_content
from .trust_content import findings_content

ALONE = ("stability", "compare")  # commands that leave findings, and no model


def run_content(folder: RunFolder, *, max_bytes: float | None = None) -> ReportContent:
    """Everything a report shows of a run; ``max_bytes`` as in `load_model`."""
    if (folder / STREAM).is_file():
        return stream_content(folder)
    if folder.read_json(CONFIG).get("command") in ALONE:
        return findings_content(folder)
    return report_content(folder, max_bytes=max_bytes)
