"""A process that has imported the library and forks for every call, so that each has a process of its own at once.

The server writes lines of JSON: what is asked, or ``{"stop": signal}`` while a child works. It gets lines back: those
of the child (``{"progress": words}``, ``{"answer": ...}``, ``{"error": words}``), and ``{"ended": status}`` when it is
gone, however. One child at a time. Where the server goes, so do this process and its child.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from .lines import CHUNK, Lines, tell


def serve() -> None:
    """Import everything, then wait for jobs."""
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no line for the server
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    from .work import import_all, run

    import_all()
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    lines = Lines(0)
    tell(out, {"ready": True})
    for job in lines:
        if "stop" in job:
            continue
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run(job, out)  # never comes back
        tell(out, {"ended": wait(child, lines, awake)})


def wait(child: int, lines: Lines, awake: int) -> int:
    """The status of a child that has ended, by itself or because the server has said so or is gone."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select([awake, *([lines.source] if lines.open else [])], [], [])
        if awake in ready:
            os.read(awake, CHUNK)
        if lines.source in ready:
            lines.read()
            if not lines.open:
                os.kill(child, signal.SIGKILL)
            while (line := lines.take()) is not None:
                if line.get("stop") in (signal.SIGTERM, signal.SIGKILL):
                    os.kill(child, line["stop"])


if __name__ == "__main__":
    serve()
    sys.exit(0)
