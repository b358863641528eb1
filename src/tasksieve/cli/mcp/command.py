"""``tasksieve mcp``: serve the tools on standard input and output."""

from __future__ import annotations

from pathlib import Path

from ...optional import require
from ..exit_codes import OK, UsageError
from ..options import Asked
from .limits import Limits

INSTALL = "'tasksieve[mcp]'"


def run_mcp(asked: Asked) -> int:
    """Serve until the other side closes standard input."""
    require("mcp", "tasksieve mcp needs the official SDK of the Model Context Protocol,", INSTALL)
    limits = read_limits(asked)
    from .server import serve

    serve(limits)
    return OK


def read_limits(asked: Asked) -> Limits:
    """The limits of the options; what means nothing is refused."""
    folder = Path(asked.folder)
    if not folder.is_dir():
        raise UsageError(f"--folder: there is no folder {asked.folder}; name the one with the tables")
    found = folder.resolve()
    if found == Path(found.anchor) or found == Path.home().resolve():
        raise UsageError(
            f"--folder: {found} is all of the disk, or of your home; name a folder with the tables alone"
        )
    for flag, value in (
        ("seconds", asked.seconds),
        ("max-memory", asked.max_memory),
        ("max-file", asked.max_file),
    ):
        if not value > 0:
            raise UsageError(f"--{flag}: must be positive, got {value:g}")
    for flag, value in (("max-cells", asked.max_cells), ("threads", asked.threads or 1)):
        if value < 1:
            raise UsageError(f"--{flag}: at least 1, got {value}")
    most_bytes = asked.max_file * 2.0**30
    return Limits(
        folder=str(found),
        seconds=asked.seconds,
        most_memory=asked.max_memory * 2.0**30,
        most_bytes=most_bytes,
        most_written=most_bytes,
        most_cells=asked.max_cells,
        threads=asked.threads,
    )
