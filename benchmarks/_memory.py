"""Memory of a process of its own: peak resident size, and peak anonymous size (file pages do not count)."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any


def status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {field}: this measurement needs Linux")


def peak_resident() -> int:
    """Peak resident size of this process so far, in bytes; its file pages count too."""
    return status("VmHWM")  # getrusage's peak would be inherited from the process that started this one


class MemoryWatch:
    """Peak anonymous memory while it is open, read every few milliseconds by a thread."""

    def __init__(self, every: float = 0.005) -> None:
        self.every = every
        self.peak = 0

    def __enter__(self) -> MemoryWatch:
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, status("RssAnon"))
            if self.done.wait(self.every):
                return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.done.set()
        self.thread.join()
        self.peak = max(self.peak, status("RssAnon"))


def in_child(file: str, work: Callable[[], dict[str, Any]]) -> None:
    """Child's side: do the work, leave the answer in `file`."""
    Path(file).write_text(json.dumps(work()))


def child_answer(script: str, options: Sequence[str]) -> dict[str, Any]:
    """Parent's side: run the script once more with `--child`, and read what it left."""
    with tempfile.TemporaryDirectory(prefix="tasksieve-child-") as folder:
        file = str(Path(folder) / "answer.json")
        subprocess.run([sys.executable, script, *options, "--child", file], check=True)
        answer: dict[str, Any] = json.loads(Path(file).read_text())
        return answer


def watched(command: Sequence[str], limit: int | None = None, every: float = 0.01) -> dict[str, Any]:
    """Run a command: exit code, wall seconds, peak resident and anonymous bytes, and the end of what it said.

    `limit`: bytes of private memory that it may have (RLIMIT_DATA); beyond, its allocations fail.
    """

    def restrict() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, preexec_fn=restrict)
        peaks = {"VmHWM": 0, "RssAnon": 0}
        while process.poll() is None:
            for field in peaks:
                peaks[field] = max(peaks[field], _field_of(process.pid, field))
            time.sleep(every)
        seconds = time.perf_counter() - began
        said.seek(0)
        words = said.read().decode(errors="replace").strip()[-500:]
    return {
        "code": process.returncode,
        "seconds": seconds,
        "resident": peaks["VmHWM"],
        "anonymous": peaks["RssAnon"],
        "words": words,
    }


def _field_of(pid: int, field: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
    except OSError:  # it has just ended
        pass
    return 0
