"""Exit codes, and how errors become them."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import typer

OK = 0
USER_ERROR = 1
USAGE = 2
NOT_CONVERGED = 3
CANNOT_WRITE = 4
INTERNAL = 70
INTERRUPTED = 130
TERMINATED = 143


class UsageError(ValueError):
    """Options that do not go together, or that the model does not have."""


class State:
    """What the error handler must know about this process."""

    debug = False
    terminated = False


def say(message: str) -> None:
    """A message for the user, on stderr, without markup."""
    print(message, file=sys.stderr, flush=True)


def tell_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning of the library, in the words of the command line; in which file it arose is nobody's business."""
    from .spoken import spoken

    say(f"tasksieve: warning: {spoken(str(message))}")


def on_terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does, so that what is finished is kept in order."""
    State.terminated = True
    raise KeyboardInterrupt


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose errors end in a message and an exit code, never in a traceback (but with ``--debug``)."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        State.debug = State.debug or bool(os.environ.get("TASKSIEVE_DEBUG"))
        State.terminated = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_terminate)
        with warnings.catch_warnings():
            warnings.showwarning = tell_warning
            try:
                code = command(*args, **options)
            except typer.Exit:
                raise
            except BaseException as error:
                code = exit_code(error)
        raise typer.Exit(code or OK)

    return run


def in_words(error: Exception) -> str:
    """What the library says in Python, as options; what is said about files is in the user's words already."""
    from ..runs.folder import RunError
    from ..tables import TableError
    from .spoken import spoken, with_rows

    own = isinstance(error, TableError | RunError | ImportError)
    return with_rows(str(error)) if own else spoken(str(error))


def exit_code(error: BaseException) -> int:
    """Say what has happened, and with which code to leave."""
    if State.debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, KeyboardInterrupt):
        say("tasksieve: interrupted; what is finished is kept, --resume goes on from there")
        return TERMINATED if State.terminated else INTERRUPTED
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone: not worth a word
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (so that closing the old one cannot complain again)
        return OK
    if isinstance(error, UsageError):
        say(f"tasksieve: {error}")
        return USAGE
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG):
            say(
                f"tasksieve: cannot write: {error.strerror}; what is finished is kept; make room, then --resume"
            )
            return CANNOT_WRITE
        place = f": {error.filename}" if error.filename else ""
        say(f"tasksieve: {error.strerror or error}{place}")
        return USER_ERROR
    if isinstance(error, MemoryError):
        say(f"tasksieve: not enough memory: {error or 'no more is given'}; fit and path take --chunk-rows 100000")
        return USER_ERROR
    from ..design import ClusterError

    if isinstance(error, ValueError | ImportError | ClusterError):
        say(f"tasksieve: {in_words(error)}")
        return USER_ERROR
    if isinstance(error, Exception):
        say(
            f"tasksieve: internal error, {type(error).__name__}: {error}\nThis is a bug; --debug shows where."
        )
        return INTERNAL
    raise error
