"""Exit codes, errors of usage, and messages on stderr."""

from __future__ import annotations

import sys
from typing import ClassVar

OK = 0
USER_ERROR = 1
USAGE = 2
NOT_CONVERGED = 3
CANNOT_WRITE = 4
SITES_SILENT = 5
INTERNAL = 70
INTERRUPTED = 130
TERMINATED = 143


class UsageError(ValueError):
    """Options that do not go together, or that the model does not have."""


class State:
    """What the error handler must know about this process."""

    debug = False
    terminated = False
    warned: ClassVar[set[str]] = set()  # words of warnings that have been shown


def say(message: str) -> None:
    """A message for the user, on stderr, without markup."""
    print(message, file=sys.stderr, flush=True)
