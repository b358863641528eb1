"""What is replayed to a shard that begins again: all that has changed the others since the last compaction.

A shard is its columns, the anchors that are still held, the rows it has rejected, and all messages after that.
Now and then the shards report which rows they have rejected; earlier messages are dropped then.
"""

from __future__ import annotations

from typing import Any

from .messages import PenaltyName, Question

_LONG = 24  # questions after which it is worth writing down where the shards are


class Replay:
    """The questions that bring a new shard to where all are."""

    def __init__(self) -> None:
        self.anchors: list[Question] = []
        self._first: Question | None = None  # norms are measured in the first reading of all
        self._begun: Question | None = None
        self._metric: Question | None = None  # measured by the reading that came next: any reading measures the same
        self._base: list[Question] = []
        self._since: list[Question] = []

    def add(self, question: Question) -> None:
        """Something has changed the shards."""
        verb = question.verb
        if verb == "keep_penalty":
            return
        if verb == "also_measure":
            self._metric = question
            self._since.append(question)
            return
        if self._first is None:
            self._first = question
        if verb in ("remember", "measure_all"):
            self.anchors.append(Question("remember", question.common[:3]))
        elif verb == "forget":
            del self.anchors[question.common[0]]
        elif verb == "begin":
            self._begun = question
            self._compact([])
            return
        self._since.append(question)
        if self._begun is None and verb in ("forget", "noted_bound", "measure"):
            self._compact([question] if verb == "noted_bound" else [])

    def compact(self, masks: dict[int, tuple[Any, ...]]) -> None:
        """The rows that are rejected are known: nothing else matters but the anchors."""
        self._compact([Question("restore", (), masks)])

    def _compact(self, rest: list[Question]) -> None:
        first = [] if self._first is None or self._first.verb != "measure" else [self._first]
        begun = [] if self._begun is None else [self._begun]
        metric = [] if self._metric is None else [self._metric]
        self._base, self._since = [*first, *metric, *self.anchors, *begun, *rest], []

    @property
    def long(self) -> bool:
        return len(self._since) > _LONG

    def questions(self) -> list[Question]:
        return [*self._base, *self._since]

    def tokens(self) -> set[int]:
        """Penalties that are named in them."""
        names = [part for question in self.questions() for part in question.common if isinstance(part, PenaltyName)]
        return {name.token for name in names}
