"""Sites in one process: the same questions and the same integers as between machines, without messages.

For simulations and tests. Nothing is masked, since nothing leaves the process; masks change no sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .answer import Answer, Misfit, Words, from_words, size, to_words
from .local import LocalProblem
from .path import norm_bounds
from .question import Question
from .units import Sizes, Units


class SitesInMemory:
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
        self.sites = list(sites)
        self._n_features = self.sites[0].n_features
        self._sizes: Sizes | None = None
        self.rounds = self.questions = self.up = self.down = 0

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """The sums of all sites' answers. What did not fit its integers is asked again, in larger units."""
        if self._sizes is None:
            counts = self._exchange([Question(kind="sizes")], [Units.for_sizes(len(self.sites))])[0]
            assert isinstance(counts, Answer) and counts.sizes is not None
            self._sizes = Sizes.from_histogram(len(self.sites), counts.sizes)
        units = [self._sizes.units(q.features, q.s, q.reach) for q in questions]
        found: list[Answer | Misfit] = self._exchange(questions, units)
        while again := [i for i, answer in enumerate(found) if isinstance(answer, Misfit)]:
            for i in again:
                answer = found[i]
                assert isinstance(answer, Misfit)
                for group in answer.groups:
                    units[i] = units[i].larger(group)
            larger = self._exchange([questions[i] for i in again], [units[i] for i in again])
            for i, answer in zip(again, larger, strict=True):
                found[i] = answer
        answers = [answer for answer in found if isinstance(answer, Answer)]
        for question, answer in zip(questions, answers, strict=True):
            if question.kind == "norms" and question.problem == "all":
                self._sizes = replace(self._sizes, norms=norm_bounds(answer))
        return answers

    def _exchange(self, questions: Sequence[Question], units: Sequence[Units]) -> list[Answer | Misfit]:
        self.rounds += 1
        self.questions += len(questions)
        return [self._sum(question, unit) for question, unit in zip(questions, units, strict=True)]

    def _sum(self, question: Question, units: Units) -> Answer | Misfit:
        d = self._n_features
        self.up += size(question, d)
        self.down += sum(array.nbytes for array in question.packed()[1].values()) + units.hessian.nbytes
        words: Words | None = None
        for site in self.sites:
            own = to_words(site.answer(question), question, units, d)
            words = own if words is None else words + own
        assert words is not None
        try:
            return from_words(words, question, units, d)
        except Misfit as misfit:
            return misfit
