"""Progress of long computations, reported to callbacks.

Everything that takes long gets its callback from `reporter`: it calls those of all `watch` blocks around the call, and
with ``verbose`` one more that prints lines. The library shows progress through nothing else.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeVar

_Fit = TypeVar("_Fit", bound=Callable[..., Any])
_watchers: ContextVar[tuple[Callable[[Progress], Any], ...]] = ContextVar("tasksieve_watchers", default=())


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is.

    Attributes
    ----------
    label : str
        Whose work: the estimator, and which of its fits ("MultiTaskLassoCV, fold 2").
    unit : str
        What is counted: "value" (of alpha), "pass", "step", "row", "half" (of the rows).
    done : int
    total : int or None
        None where it is not known beforehand.
    detail : str
        More in words ("12 features selected"), or nothing.
    seconds : float
        Since this piece of work began.
    left : float, optional
        An estimate of the seconds that it will still take; None where there is none.
    """

    label: str
    unit: str
    done: int
    total: int | None = None
    detail: str = ""
    seconds: float = 0.0
    left: float | None = None

    def __str__(self) -> str:
        total = "" if self.total is None else f" of {self.total}"
        detail = f", {self.detail}" if self.detail else ""
        left = f", {self.left_in_words}" if self.left_in_words else ""
        return f"{self.label}: {self.unit} {self.done}{total}{detail}, {self.seconds:.1f} s{left}"

    @property
    def left_in_words(self) -> str:
        """The estimate of the time left, or nothing."""
        if not self.left:
            return ""
        for unit, size in (("h", 3600.0), ("min", 60.0)):
            if self.left >= 1.5 * size:
                return f"about {self.left / size:.0f} {unit} left"
        return f"about {max(self.left, 1.0):.0f} s left"


@contextmanager
def holding(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """A context variable has this value within the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def watch(callback: Callable[[Progress], Any]) -> Iterator[None]:
    """Call a function with the progress of the fits within a ``with`` block.

    Parameters
    ----------
    callback : callable
        Called with a `Progress` after each value of a path, each pass, each chunk or half of the rows, in whichever
        thread does the work (folds may have threads of their own), but never twice at the same time. What it raises
        ends the fit; KeyboardInterrupt does what Ctrl-C does: a path keeps the values solved so far. Fits in other
        processes are not reported.

    See Also
    --------
    checkpoint : keep the finished folds of a cross-validation.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> with ts.watch(lambda progress: print(progress.label, progress.done, progress.total, progress.detail)):
    ...     path = ts.MultiTaskLasso().path(X, y, task=task, alphas=[10.0, 0.1])
    MultiTaskLasso 1 2 0 features selected
    MultiTaskLasso 2 2 1 features selected
    """
    if not callable(callback):
        raise TypeError(f"callback must be callable with one argument, a Progress; got {callback!r}.")
    lock = threading.RLock()

    def one_at_a_time(progress: Progress) -> None:
        with lock:
            callback(progress)

    with holding(_watchers, (*_watchers.get(), one_at_a_time)):
        yield


def reporter(label: str, unit: str, verbose: Any = False) -> Callable[..., None] | None:
    """The callback for a piece of work that begins now: ``report(done, total=None, detail="", left=None)``; None if it
    is neither watched nor printed: with `verbose` about a line a second, with 2 and more all of them."""
    watchers = _watchers.get() + ((Lines(1.0 if verbose == 1 else 0.0),) if verbose else ())
    if not watchers:
        return None
    began = time.monotonic()

    def report(done: int, total: int | None = None, detail: str = "", left: float | None = None) -> None:
        progress = Progress(label, unit, done, total, detail, time.monotonic() - began, left)
        for watcher in watchers:
            watcher(progress)

    return report


class Lines:
    """A watcher that prints lines on stderr: not more than one in so many seconds, but always the last (if `last`)."""

    def __init__(self, every: float = 1.0, last: bool = True) -> None:
        self.every = every
        self.last = last
        self._printed_at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._printed_at >= self.every or (self.last and progress.done == progress.total):
            self._printed_at = now
            print(progress, file=sys.stderr, flush=True)


def unwatched() -> AbstractContextManager[None]:
    """Fits within the block report no progress: the caller that repeats them reports that of the whole."""
    return holding(_watchers, ())


def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sees, in any thread that runs it, the `watch` and `checkpoint` blocks around this call."""
    context = copy_context()

    def run(*args: Any, **options: Any) -> Any:
        return context.copy().run(function, *args, **options)

    return run


def tells_callbacks(fit: _Fit) -> _Fit:
    """A method ``fit`` that tells scikit-learn's callbacks, if there are any, of its beginning, its progress and its
    end (`callbacks`)."""

    @wraps(fit)
    def telling(self: Any, *args: Any, **options: Any) -> Any:
        if not hasattr(self, "_skl_callbacks"):
            return fit(self, *args, **options)
        from .callbacks import fit_told

        return fit_told(self, watch, partial(fit, self, *args, **options))

    return telling  # type: ignore[return-value]
