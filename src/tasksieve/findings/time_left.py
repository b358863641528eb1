"""How long work of several kinds will still take, by what its pieces have taken so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


class TimeLeft:
    """An estimate of seconds, for display only; pieces of one kind take about as long as each other."""

    def __init__(self, kinds: Sequence[str], at_once: int = 1) -> None:
        self._waiting, self._at_once = Counter(kinds), at_once
        self._spent = dict.fromkeys(kinds, 0.0)
        self._finished = Counter[str]()
        self._under_way: dict[str, tuple[float, float]] = {}

    def finish(self, kind: str, seconds: float | None) -> None:
        """A piece is done; None: it had been done before, which says nothing about the others."""
        self._waiting[kind] -= 1
        self._under_way.pop(kind, None)
        if seconds is not None:
            self._spent[kind] += seconds
            self._finished[kind] += 1

    def go_on(self, kind: str, share: float, seconds: float) -> None:
        """A share of a piece is done."""
        self._under_way[kind] = share, seconds

    def estimate(self) -> float | None:
        """Seconds left; None as long as no piece is finished or under way."""
        each = {kind: self._spent[kind] / count for kind, count in self._finished.items()}
        for kind, (share, seconds) in self._under_way.items():
            each.setdefault(kind, seconds / share)
        if not each:
            return None if self._waiting.total() else 0.0
        usual = sum(each.values()) / len(each)  # of kinds without a finished piece
        left = sum(count * each.get(kind, usual) for kind, count in self._waiting.items())
        left -= sum(min(share, 1.0) * each[kind] for kind, (share, _) in self._under_way.items())
        return max(left, 0.0) / self._at_once
