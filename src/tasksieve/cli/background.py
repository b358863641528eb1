"""Work beside other work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class InBackground(Generic[T]):
    """A function that runs in a daemon thread; the process can end without it."""

    _found: T

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._work()
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """What it returns, or its exception."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found
