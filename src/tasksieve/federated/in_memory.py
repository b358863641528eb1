"""Sites in one process: the same questions and the same integers as between machines, without messages.

For `simulate`, for tests and benchmarks. Nothing is masked, since nothing leaves the process; masks change no sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from .answer import Words, size, to_words
from .asking import Traffic
from .local import LocalProblem
from .question import KINDS, Question
from .sums import Summing
from .units import Units


class SitesInMemory(Summing):
    """Asks the sites of this process.

    Parameters
    ----------
    sites : sequence of LocalProblem

    Attributes
    ----------
    rounds, questions : int
        Exchanges so far, the first one about sizes included, and questions in them.
    up, down : int
        Bytes of answers and of questions, for one site; envelopes and signatures come on top.
    """

    def __init__(self, sites: Sequence[LocalProblem]) -> None:
        super().__init__(len(sites), sites[0].n_features)
        self.sites = list(sites)
        self.rounds = self.questions = self.up = self.down = 0
        self._exchanges: list[tuple[int, int, int, int]] = []

    @property
    def traffic(self) -> Traffic:
        """What would have been exchanged."""
        return Traffic(self.rounds, self.questions, self.down, self.up, exchanges=list(self._exchanges))

    def exchange(self, questions: Sequence[Question], units: Sequence[Units]) -> list[Words]:
        """The sums of the sites' words."""
        self.rounds += 1
        self.questions += len(questions)
        before = self.down, self.up
        self.down += 0 if self.scales is None else self.scales.nbytes
        found = [self._sum(question, own) for question, own in zip(questions, units, strict=True)]
        kind = KINDS.index(questions[0].kind)
        self._exchanges.append((kind, len(questions), self.down - before[0], self.up - before[1]))
        return found

    def _sum(self, question: Question, units: Units) -> Words:
        self.up += size(question, self.n_features)
        self.down += sum(array.nbytes for array in question.packed()[1].values()) + units.hessian.nbytes
        sites = self.sites if self.scales is None else [site.scaled(self.scales) for site in self.sites]
        first, *others = (to_words(site.answer(question), question, units, self.n_features) for site in sites)
        for words in others:
            first = first + words
        return first
