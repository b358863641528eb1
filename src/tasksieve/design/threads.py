"""How many threads the kernels use, and how they keep out of BLAS's way."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def thread_count() -> int:
    """Kernel threads: ``TASKSIEVE_NUM_THREADS`` if set, else the processors this process may run on."""
    wanted = os.environ.get("TASKSIEVE_NUM_THREADS")
    if wanted:
        try:
            count = int(wanted)
        except ValueError:
            count = 0
        if count < 1:
            raise ValueError(f"TASKSIEVE_NUM_THREADS must be a positive integer, got {wanted!r}")
        return count
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system has processor masks
        return os.cpu_count() or 1


class _BlasLimit:
    """One BLAS thread while anybody is inside.

    The kernels split the work themselves and call BLAS from each of their threads; BLAS's own threads would spin
    on the same cores. The limit is global, so it is counted: the last one out restores what the first one found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: Any = None
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            if self._controller is None:
                from threadpoolctl import ThreadpoolController

                self._controller = ThreadpoolController().select(user_api="blas")
            self._limit = self._controller.limit(limits=1)
            self._limit.__enter__()

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.__exit__(None, None, None)


_blas_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which every BLAS call runs on the calling thread alone."""
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()
