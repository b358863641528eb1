"""How many threads the kernels use, and how they keep out of BLAS's way."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import AbstractContextManager
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
    """One BLAS thread while any caller is inside.

    The kernels split the work themselves and call BLAS from each of their threads; BLAS's own threads would spin
    on the same cores. The limit is global, so callers are counted: the last one out restores what the first one found.
    Any thread may come first, and threadpoolctl lets one thread only change the limit: control is taken and released.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._libraries: Any = None
        self._torch = False
        self._found: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            torch = "torch" in sys.modules  # which brings a BLAS of its own, whenever it comes
            if self._libraries is None or torch != self._torch:
                from threadpoolctl import ThreadpoolController

                self._torch = torch
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._found = [library.get_num_threads() for library in self._libraries]
            self._set([1] * len(self._found))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._set(self._found)

    def _set(self, wanted: list[int]) -> None:
        for library, found, count in zip(self._libraries, self._found, wanted, strict=True):
            if found == 1:  # it never was another
                continue
            library.set_num_threads(count)
            release = getattr(library, "clear_controlling_thread", None)  # threadpoolctl 3.7 and later
            if release is None:
                continue
            if library.get_num_threads() != count:
                release(force=True)
                library.set_num_threads(count)
            release()


_blas_limit = _BlasLimit()


def one_blas_thread() -> AbstractContextManager[None]:
    """Context in which every BLAS call runs on the calling thread alone."""
    return _blas_limit
