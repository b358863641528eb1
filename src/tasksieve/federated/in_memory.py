"""Sites in one process: the same questions and the same integers as between machines, without messages.

For simulations and tests. Nothing is masked, since nothing leaves the process; masks change no sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from .answer import Words, size, to_words
from .local import LocalProblem
from .question import Question
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

    def exchange(self, questions: Sequence[Question], units: Sequence[Units]) -> list[Words]:
        """The sums of the sites' words."""
        self.rounds += 1
        self.questions += len(questions)
        return [self._sum(question, own) for question, own in zip(questions, units, strict=True)]

    def _sum(self, question: Question, units: Units) -> Words:
        self.up += size(question, self.n_features)
        self.down += sum(array.nbytes for array in question.packed()[1].values()) + units.hessian.nbytes
        first, *others = (to_words(site.answer(question), question, units, self.n_features) for site in self.sites)
        for words in others:
            first = first + words
        return first
