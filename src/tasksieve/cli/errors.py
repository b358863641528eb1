"""How errors and warnings end: in a message, and errors in an exit code."""

from __future__ import annotations

import errno
import functools
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import typer

from . import exit_codes
from .exit_codes import State, UsageError, say
from .lacking import is_lack_of_memory, memory_words


def tell_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning of the library, with options for parameters, and without the file in which it arose."""
    from .messages import in_words

    words = in_words(message)
    if words not in State.warned:  # the log of a run has said the others
        say(f"tasksieve: warning: {words}")


def on_terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does, so that what is finished is kept in order."""
    State.terminated = True
    raise KeyboardInterrupt


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose errors end in a message and an exit code, never in a traceback (but with ``--debug``)."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        State.debug = bool(options.get("debug") or os.environ.get("TASKSIEVE_DEBUG"))
        State.terminated = False
        State.warned.clear()
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
        raise typer.Exit(code or exit_codes.OK)

    return run


def with_rows(message: str) -> str:
    """A message about a table that says, once, how its rows are counted.

    Examples
    --------
    >>> with_rows("t.csv: row 3, column 'a' is missing.")
    "t.csv: row 3, column 'a' is missing. (Row 1 is the first row of data, the header is not counted.)"
    """
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", message)
    if "row 1 is the first" in message.lower() or not re.search(r"\brow \d", unquoted):
        return message
    return f"{message} (Row 1 is the first row of data, the header is not counted.)"


def exit_code(error: BaseException) -> int:
    """Say what has happened, and with which code to leave."""
    if State.debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, KeyboardInterrupt):
        say("tasksieve: interrupted; what is finished is kept, --resume continues from there")
        return exit_codes.TERMINATED if State.terminated else exit_codes.INTERRUPTED
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone: not worth a word
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (so that closing the old one cannot complain again)
        return exit_codes.OK
    try:
        words, code = error_in_words(error)
    except MemoryError as more:  # there is not enough for words about another error, either
        words, code = memory_words(more), exit_codes.USER_ERROR
    say(f"tasksieve: {words}")
    return code


def error_in_words(error: BaseException) -> tuple[str, int]:
    """What went wrong, and with which code to leave."""
    if isinstance(error, UsageError):
        return str(error), exit_codes.USAGE
    if is_lack_of_memory(error):
        return memory_words(error), exit_codes.USER_ERROR
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG):
            words = f"cannot write: {error.strerror}; what is finished is kept; make room, then --resume"
            return words, exit_codes.CANNOT_WRITE
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), exit_codes.USER_ERROR
    from ..design import ClusterError
    from ..federated.errors import FederatedError

    if isinstance(error, FederatedError):
        return f"refused by the rule {error}", exit_codes.USER_ERROR
    if isinstance(error, ValueError | ImportError | ClusterError):
        from ..runs.folder import RunError
        from ..tables import TableError
        from .messages import in_words

        own = isinstance(error, TableError | RunError)
        return with_rows(str(error)) if own else in_words(error), exit_codes.USER_ERROR
    if isinstance(error, Exception):
        words = f"internal error, {type(error).__name__}: {error}\nThis is a bug; --debug shows where."
        return words, exit_codes.INTERNAL
    raise error
