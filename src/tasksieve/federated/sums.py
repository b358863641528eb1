"""Questions in, sums out, whatever carries them: how large numbers are, units for each question, larger ones again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from .answer import Answer, Misfit, Words, from_words, norm_bounds
from .errors import FederatedError
from .packing import Array
from .question import Question
from .units import Sizes, Units

_MOST_TRIES = 40


class Summing(ABC):
    """Asks sites that send integers.

    The first exchange asks how large the sites' numbers are, so that later ones have units. Where numbers do not fit
    their units after all, those questions are asked again in larger ones.

    Parameters
    ----------
    n_sites, n_features : int
    """

    def __init__(self, n_sites: int, n_features: int) -> None:
        self.n_sites, self.n_features = n_sites, n_features
        self.sizes: Sizes | None = None
        #: with pooled standardisation, once they are known: what sites divide columns by
        self.scales: Array | None = None
        self._asked: tuple[bytes, ...] = ()
        self._units: list[Units] = []
        self._found: dict[int, Answer] = {}

    @abstractmethod
    def exchange(self, questions: Sequence[Question], units: Sequence[Units]) -> list[Words]:
        """The sums of the sites' words, for each question."""

    def check(self, question: Question, units: Units, answer: Answer) -> None:  # noqa: B027
        """Refuse sums that cannot be right; nothing is known here that could be checked."""

    def first(self) -> Sizes:
        """How large the sites' numbers are: asked for once."""
        self.sizes = self.sizes or self._first()
        return self.sizes

    def finish_scales(self, scales: Array, norm: int) -> None:
        """From now on sites divide their columns by these; then none is longer than 2^norm."""
        self.scales, self.sizes = scales, replace(self.first(), norm=norm)

    def ask(self, questions: Sequence[Question], units: Sequence[Units] | None = None) -> list[Answer]:
        """The sums of all sites' answers, in the order of the questions.

        Asked again after an exchange has failed, the same questions go on where they were.

        Parameters
        ----------
        questions : sequence of Question
        units : sequence of Units, optional
            The first to try; by default those that follow from sizes.

        Returns
        -------
        list of Answer
        """
        for question in questions:
            question.check(self.n_features)
        sizes = self.first()
        asked = tuple(question.digest() for question in questions)
        if self._asked != asked:
            self._asked, self._found = asked, {}
            usual = (sizes.units(question.features, question.s, question.reach) for question in questions)
            self._units = list(usual if units is None else units)
        for _ in range(_MOST_TRIES):
            rest = [k for k in range(len(questions)) if k not in self._found]
            if not rest:
                break
            words = self.exchange([questions[k] for k in rest], [self._units[k] for k in rest])
            for k, own in zip(rest, words, strict=True):
                self._take(k, questions[k], own)
        else:
            raise FederatedError("range", "the sites' numbers are too large for any unit")
        answers = [self._found[k] for k in range(len(questions))]
        self._asked = ()
        for question, answer in zip(questions, answers, strict=True):
            if question.kind == "norms" and question.problem == "all":  # units for second derivatives of each feature
                self.sizes = replace(sizes, norms=norm_bounds(answer))
        return answers

    def _first(self) -> Sizes:
        question, units = Question(kind="sizes"), Units.for_sizes(self.n_sites)
        (words,) = self.exchange([question], [units])
        counts = from_words(words, question, units, self.n_features).sizes
        assert counts is not None
        return Sizes.from_histogram(self.n_sites, counts)

    def _take(self, k: int, question: Question, words: Words) -> None:
        try:
            answer = from_words(words, question, self._units[k], self.n_features)
        except Misfit as misfit:
            for group in misfit.groups:
                self._units[k] = self._units[k].larger(group)
            return
        self.check(question, self._units[k], answer)
        self._found[k] = answer
