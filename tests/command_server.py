"""Runs `tasksieve` commands, each in a process of its own that can be killed, without importing everything anew.

The server has imported the library once and forks for every command. A line of JSON on standard input is a command and
when to kill it; the answer is how it has ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class CommandServer:
    """The tests' side."""

    def __init__(self, **environment: str) -> None:
        self.server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TASKSIEVE_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment},
        )

    def run(self, *words: Any, kill_after: float | None = None, kill_when: Path | None = None) -> int:
        """The exit code of a command; -9 where it was killed, after some seconds or when a file has appeared."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        order = {
            "words": [str(word) for word in words],
            "after": kill_after,
            "when": kill_when and str(kill_when),
        }
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def close(self) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait(timeout=60)


def serve() -> None:
    import tasksieve
    from tasksieve.cli import extras, fit, predict, stream  # noqa: F401  (imported once, here)
    from tasksieve.cli.app import app
    from tasksieve.tables.read import need

    for name in ("pandas", "pyarrow.parquet", "joblib", "threadpoolctl"):
        need(name)
    assert all(hasattr(tasksieve, name) for name in tasksieve.__all__)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            run(app, order["words"])
        # Only here may it be killed: until it is waited for, its number is its own.
        if order["after"] is not None or order["when"] is not None:
            status = watch(child, order["after"] or 120.0, order["when"])
        else:
            status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)


def watch(child: int, seconds: float, file: str | None) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (file and os.path.exists(file)):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def run(app: Any, words: Sequence[str]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 70
    try:
        app(words, prog_name="tasksieve")
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
