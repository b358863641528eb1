"""Questions in, sums out, whatever carries them: how large numbers are, units for each question, larger ones again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from .answer import Answer, Misfit, Words, from_words, norm_bounds
from .errors import FederatedError
from .packing import Array
from .question import Question
from .units import Sizes, Units

_MOST_TRIES = 40


class Summing(ABC):
    """Asks sites that send integers.

    The first exchange asks how large the sites' numbers are, so that later ones have units; questions of kind "null",
    whose words are long enough for numbers of most sizes, are part of it already. Where numbers do not fit their units
    after all, or have too few digits in those of a "null" question, these are asked again in others.

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
        self.sizes = self.sizes or self._first(())[0]
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
        asked = tuple(question.digest() for question in questions)
        if self.sizes is None:
            self.sizes, found = self._first(questions)
            self._begin(questions, asked, found, units)
        elif self._asked != asked:
            self._begin(questions, asked, {}, units)
        sizes = self.first()
        questions = [_in_known_units(question) for question in questions]
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

    def _begin(
        self,
        questions: Sequence[Question],
        asked: tuple[bytes, ...],
        found: dict[int, Answer],
        units: Sequence[Units] | None,
    ) -> None:
        sizes, self._asked, self._found = self.first(), asked, found
        usual = (sizes.units(question.features, question.s, question.reach) for question in questions)
        self._units = list(usual if units is None else units)

    def _first(self, questions: Sequence[Question]) -> tuple[Sizes, dict[int, Answer]]:
        """How large numbers are, and the answers to questions of kind "null" that are precise enough."""
        question, units, wide = Question(kind="sizes"), Units.for_sizes(self.n_sites), Units.for_null(self.n_sites)
        early = [k for k, asked in enumerate(questions) if asked.kind == "null"]
        first, *others = self.exchange([question, *(questions[k] for k in early)], [units, *(wide for _ in early)])
        counts = from_words(first, question, units, self.n_features).sizes
        assert counts is not None
        sizes = Sizes.from_histogram(self.n_sites, counts)
        found = {}
        for k, words in zip(early, others, strict=True):
            with suppress(Misfit):
                answer = from_words(words, questions[k], wide, self.n_features)
                self.check(questions[k], wide, answer)
                if sizes.shows(wide):
                    found[k] = answer
        return sizes, found

    def _take(self, k: int, question: Question, words: Words) -> None:
        try:
            answer = from_words(words, question, self._units[k], self.n_features)
        except Misfit as misfit:
            for group in misfit.groups:
                self._units[k] = self._units[k].larger(group)
            return
        self.check(question, self._units[k], answer)
        self._found[k] = answer


def _in_known_units(question: Question) -> Question:
    """A question for words of the usual length."""
    if question.kind != "null":
        return question
    return replace(question, kind="point", hessian=False)
