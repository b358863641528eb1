"""Several pieces of work that go in step: they wait where they need the same data, and one reading serves all.

A piece of work (the path of a fold, of half the rows, of permuted labels) runs in a thread of its own, as a coroutine
would: it goes on until it makes a request that is better served in a batch (`Lockstep.ask`) or must not run further
ahead of the others (`Lockstep.wait_until`). Requests are served all at once, when no piece can go on. So a piece of
work is written as if it were alone, it gets the numbers it would get alone, and which requests form a batch depends on
the work, never on a clock or on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Literal

_WAKE = 0.5  # seconds after which the waiting caller looks whether it was interrupted: not every system wakes it


class _Stopped(BaseException):
    """Another piece of work has failed, or the caller was interrupted: this one ends here."""


@dataclass(eq=False)
class _Piece:
    """One piece of work and what it waits for."""

    turn: threading.Condition  # of its own, so that no other piece is woken
    state: Literal["ready", "running", "asking", "serving", "waiting", "done"] = "ready"
    request: Any = None
    answer: Any = None
    until: Callable[[], bool] = bool
    result: Any = None
    error: BaseException | None = None


class Lockstep:
    """Pieces of work that step together, `slots` at the same time; ``serve(requests)`` gives an answer for each."""

    def __init__(self, slots: int = 1, serve: Callable[[list[Any]], list[Any]] | None = None) -> None:
        self._slots, self._serve = max(1, slots), serve
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # for the caller of `run`
        self._pieces: list[_Piece] = []
        self._here = threading.local()
        self._stopped = False

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """What each piece of work returns. An exception in one, or an interruption, ends the others at their next
        request or wait, and is raised here."""
        self._pieces, self._stopped = [_Piece(threading.Condition(self._lock)) for _ in works], False
        for piece, work in zip(self._pieces, works, strict=True):
            # each sees the context variables of the caller
            threading.Thread(target=copy_context().run, args=(self._live, piece, work), daemon=True).start()
        try:
            self._finish()
        except BaseException:
            with self._lock:
                self._stop()
            self._finish()
            raise
        for piece in self._pieces:
            if piece.error is not None:
                raise piece.error
        return [piece.result for piece in self._pieces]

    def ask(self, request: Any) -> Any:
        """The answer to a request, when no piece can go on without one; at once outside `run`."""
        assert self._serve is not None
        piece = getattr(self._here, "piece", None)
        if piece is None:
            return self._serve([request])[0]
        with self._changed:
            piece.request, piece.state = request, "asking"
            self._serve_requests()
        if self._turn(piece) == "serving":  # no other piece runs meanwhile
            batch = [other for other in self._pieces if other.state in ("asking", "serving")]
            answers = self._serve([other.request for other in batch])
            with self._changed:
                for other, answer in zip(batch, answers, strict=True):
                    other.state, other.answer = "ready", answer
                self._serve_requests()
            self._turn(piece)
        answer, piece.answer, piece.request = piece.answer, None, None
        return answer

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Go on when ``ready()``, which others bring about and which stays true."""
        piece = getattr(self._here, "piece", None)
        if piece is None:
            return
        with self._changed:
            piece.until, piece.state = ready, "waiting"
            self._serve_requests()
        self._turn(piece)

    def _live(self, piece: _Piece, work: Callable[[], Any]) -> None:
        self._here.piece = piece
        try:
            with self._changed:
                self._serve_requests()
            self._turn(piece)
            piece.result = work()
        except _Stopped:
            pass
        except BaseException as error:
            piece.error = error
        with self._changed:
            piece.state = "done"
            self._changed.notify_all()
            if piece.error is not None:
                self._stop()
            self._serve_requests()

    def _turn(self, piece: _Piece) -> str:
        """Wait until a piece may run, or has to serve."""
        with self._changed:
            while piece.state not in ("running", "serving") and not self._stopped:
                piece.turn.wait()
            if self._stopped:
                raise _Stopped
            return piece.state

    def _serve_requests(self) -> None:
        """Choose the pieces that run next, after something has changed; the lock is held."""
        for piece in self._pieces:
            if piece.state == "waiting" and piece.until():
                piece.state = "ready"
        active = sum(piece.state in ("running", "serving") for piece in self._pieces)
        for piece in self._pieces:
            if piece.state == "ready" and active < self._slots:
                piece.state, active = "running", active + 1
                piece.turn.notify()
        if not active:
            for piece in self._pieces:
                if piece.state == "asking":
                    piece.state = "serving"
                    piece.turn.notify()
                    break

    def _stop(self) -> None:
        """All end at their next request or wait; the lock is held."""
        self._stopped = True
        for piece in self._pieces:
            piece.turn.notify()

    def _finish(self) -> None:
        """Wait until all pieces are done."""
        with self._changed:
            while any(piece.state != "done" for piece in self._pieces):
                self._changed.wait(_WAKE)
