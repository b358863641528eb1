"""What the server was started for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Where the tools are, and what a call may take."""

    folder: str
    seconds: float
    most_memory: float  # bytes
    most_bytes: float  # of a file that is read
    most_written: float  # bytes of a file that is written
    most_cells: int
    threads: int | None
