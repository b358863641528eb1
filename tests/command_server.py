"""Runs `tasksieve` commands, each in a process of its own that can be killed, without importing everything anew.

The server has imported the library once and forks for every command. A line of JSON on standard input is a command and
when it is to be killed; the answer is how it has ended. The moment is no matter of time: a command counts what it asks
of the file system (between two such requests nothing on the disk can change) and is killed at the one it is told.
"""

from __future__ import annotations

import glob
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Audit events (of Python itself) before something on the disk is opened, made, renamed or removed.
REQUESTS = {"open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "tempfile.mkstemp"}


class CommandServer:
    """The tests' side."""

    def __init__(self, **environment: str) -> None:
        self.requests = 0  # of the last command
        self.server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TASKSIEVE_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment},
        )

    def run(self, *words: Any, kill_at: int | None = None, kill_when: Path | None = None) -> int:
        """The exit code of a command; -9 where it was killed, at a request or when a file (a glob) has appeared."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        order = {
            "words": [str(word) for word in words],
            "at": kill_at,
            "when": kill_when and str(kill_when),
        }
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        code, self.requests = json.loads(self.server.stdout.readline())
        return int(code)

    def close(self) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait()


# --- the server ----------------------------------------------------------------------------------------------


def serve() -> None:
    from typer.main import get_command

    import tasksieve
    from tasksieve.cli import extras, fit, predict, stream  # noqa: F401  (imported once, here)
    from tasksieve.cli.app import app
    from tasksieve.tables.frames import need

    for name in ("pandas", "pyarrow.parquet", "joblib", "threadpoolctl"):
        need(name)
    assert all(hasattr(tasksieve, name) for name in tasksieve.__all__)
    command = get_command(app)
    count = mmap.mmap(-1, 8)  # shared with the children
    for line in sys.stdin:
        order = json.loads(line)
        count[:] = struct.pack("q", 0)
        child = os.fork()
        if child == 0:
            sys.addaudithook(Killer(count, order["at"], order["when"]))
            run(command, order["words"])
        status = os.waitpid(child, 0)[1]
        print(json.dumps([os.waitstatus_to_exitcode(status), *struct.unpack("q", count[:])]), flush=True)


class Killer:
    """Counts the requests of this process and kills it at one of them."""

    def __init__(self, count: mmap.mmap, at: int | None, when: str | None) -> None:
        self.count, self.at, self.when = count, at, when

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in REQUESTS:
            return
        (done,) = struct.unpack("q", self.count[:])
        self.count[:] = struct.pack("q", done + 1)
        if done == self.at or (self.when and glob.glob(self.when)):
            os.kill(os.getpid(), signal.SIGKILL)


def run(command: Any, words: Sequence[str]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 70
    try:
        command(words, prog_name="tasksieve")
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
