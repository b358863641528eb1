"""Questions in, sums over sites out, through any transport: the whole protocol above transports.

The first exchange asks how large the sites' numbers are, so that later ones have units. Where numbers do not fit their
units after all, those questions are asked again in larger ones. With a folder, every exchange is kept there, and a
coordinator that was stopped goes on from it: the same questions have the same bytes, and are not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from ..atomic import remove_parts, write_bytes
from .answer import Answer, Misfit, Words, counts, from_words
from .errors import FederatedError
from .keys import Agreement, PrivateKeys, roster
from .messages import seal_round, unseal_words
from .node import MESSAGE
from .question import Question, Round
from .units import NORM_POWER, Sizes, Units

_MOST_TRIES = 40


class Exchanging(Protocol):
    """What carries messages; every `Transport` does."""

    def exchange(self, message: bytes) -> Mapping[str, bytes]: ...


@dataclass
class Traffic:
    """What was exchanged.

    Attributes
    ----------
    rounds : int
        Exchanges with all sites, those from a log included.
    questions : int
    down, up : int
        Bytes to each site, and from the site that has sent most.
    reused : int
        Exchanges that were in the log already.
    """

    rounds: int = 0
    questions: int = 0
    down: int = 0
    up: int = 0
    reused: int = 0


class Asking:
    """Ask all sites of a plan.

    Parameters
    ----------
    plan : Agreement
        `Plan`.
    keys : PrivateKeys
        Of the coordinator.
    transport : Transport
    folder : path, optional
        Where exchanges are kept, for going on after a stop. The folder of another run is refused.
    """

    def __init__(
        self, plan: Agreement, keys: PrivateKeys, transport: Exchanging, folder: str | Path | None = None
    ) -> None:
        own = keys.public()
        if own.line() != plan.coordinator.strip():
            raise FederatedError("keys", "the plan has other keys for its coordinator than those given here")
        self.plan, self.keys, self.transport, self.sites = plan, keys, transport, roster(plan)
        self.traffic = Traffic()
        self.sizes: Sizes | None = None
        #: the rounds with strict parts: message and replies by site, for the statement of a certificate
        self.strict: list[tuple[bytes, dict[str, bytes]]] = []
        self._folder = None if folder is None else Path(folder)
        self._larger: dict[str, int] = {}
        self._found: tuple[tuple[bytes, ...], dict[int, Answer]] = (), {}
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            remove_parts(self._folder)

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """The sums of all sites' answers, in the order of the questions.

        Parameters
        ----------
        questions : sequence of Question

        Returns
        -------
        list of Answer
        """
        for question in questions:
            question.check(self.plan.n_features)
        if self.sizes is None:
            self._first()
        key = tuple(question.digest() for question in questions)
        if self._found[0] != key:  # else a site was silent when these were asked: go on with what is missing
            self._found = key, {}
        found = self._found[1]
        for _ in range(_MOST_TRIES):
            open_ = [k for k in range(len(questions)) if k not in found]
            if not open_:
                break
            units = [self._units(questions[k]) for k in open_]
            words = self._exchange([questions[k] for k in open_], units)
            unfit = set()
            for k, own, word in zip(open_, units, words, strict=True):
                try:
                    found[k] = from_words(word, questions[k], own, self.plan.n_features)
                except Misfit as misfit:
                    unfit |= set(misfit.groups)
                else:
                    self._check(questions[k], own, found[k])
            for group in unfit:
                self._larger[group] = self._larger.get(group, 0) + 1
        else:
            raise FederatedError("range", "the sites' numbers are too large for any unit")
        answers = [found[k] for k in range(len(questions))]
        self._learn(answers)
        self._found = (), {}
        return answers

    def _first(self) -> None:
        question, units = Question(kind="sizes", hessian=False), Units.for_sizes(len(self.sites))
        (words,) = self._exchange([question], [units])
        counted = from_words(words, question, units, self.plan.n_features).sizes
        assert counted is not None
        self.sizes = Sizes.from_histogram(len(self.sites), counted)

    def _units(self, question: Question) -> Units:
        assert self.sizes is not None
        if question.kind == "sizes":
            return Units.for_sizes(len(self.sites))
        units = self.sizes.units(question.features, question.s, question.reach)
        for group, times in self._larger.items():
            for _ in range(times):
                units = units.larger(group)
        return units

    def _learn(self, answers: Sequence[Answer]) -> None:
        """Norms of columns give second derivatives units of their own."""
        assert self.sizes is not None
        for answer in answers:
            if answer.norms is not None and self.sizes.norms is None:
                self.sizes = replace(self.sizes, norms=answer.norms ** (1.0 / NORM_POWER))

    def _check(self, question: Question, units: Units, answer: Answer) -> None:
        """What holds of any data: phi = loss + 1/2 sum s z, and for the squared loss y'r - r'r = sum s z."""
        if question.kind != "point":
            return
        assert answer.z is not None
        moved = float(question.s @ answer.z)
        rounding = units.sites * (4.0 * 2.0**units.sums + float(question.s.sum()) * 2.0**units.squares)
        near = rounding + 1e-7 * (abs(answer.phi) + abs(answer.loss) + moved)
        holds = abs(answer.phi - answer.loss - 0.5 * moved) <= near
        if getattr(self.plan, "loss", "") == "squared" and question.l1 == 0.0:
            holds &= abs(answer.yr - answer.rr - moved) <= near + 1e-7 * (abs(answer.yr) + answer.rr)
        if not holds:
            raise FederatedError("identity", "the sums contradict each other: one of the sites computes otherwise")

    def _exchange(self, questions: Sequence[Question], units: Sequence[Units]) -> list[Words]:
        """The summed words of each question."""
        asked = Round(self.traffic.rounds, self.plan.digest, tuple(questions), tuple(units))
        message = seal_round(asked, self.keys)
        replies = self._logged(asked, message)
        if replies is None:
            replies = dict(self.transport.exchange(message))
            total = self._total(asked, replies)  # nothing is kept that is not what was asked for
            self._keep(asked, replies)
        else:
            total = self._total(asked, replies)
            self.traffic.reused += 1
        self.traffic.rounds += 1
        self.traffic.questions += len(questions)
        self.traffic.down += len(message)
        self.traffic.up += max(map(len, replies.values()))
        if any(question.kind == "part" for question in questions):
            self.strict.append((message, replies))
        return total

    def _total(self, asked: Round, replies: Mapping[str, bytes]) -> list[Words]:
        missing, unknown = sorted(set(self.sites) - set(replies)), sorted(set(replies) - set(self.sites))
        if missing or unknown:
            raise FederatedError("replies", f"replies are missing of {missing}, and came from {unknown} unasked")
        words = {site: unseal_words(reply, asked, site, self.sites[site]) for site, reply in replies.items()}
        return total_words(asked, words, self.plan.n_features)

    def _logged(self, asked: Round, message: bytes) -> dict[str, bytes] | None:
        """The replies to a round that were kept; None where it must be asked."""
        if self._folder is None:
            return None
        place = self._folder / f"round-{asked.number:04d}{MESSAGE}"
        if not place.exists():
            write_bytes(place, message)
            return None
        if place.read_bytes() != message:
            raise FederatedError("resume", f"{self._folder} is of another run: it has other questions in {place.name}")
        files = {site: self._reply(asked, site) for site in self.sites}
        if not all(file.exists() for file in files.values()):
            return None
        replies = {site: file.read_bytes() for site, file in files.items()}
        try:
            self._total(asked, replies)
        except FederatedError:  # damaged on the disk: sites give the same answers again
            return None
        return replies

    def _keep(self, asked: Round, replies: Mapping[str, bytes]) -> None:
        if self._folder is not None:
            for site, reply in replies.items():
                write_bytes(self._reply(asked, site), reply)

    def _reply(self, asked: Round, site: str) -> Path:
        assert self._folder is not None
        return self._folder / f"reply-{asked.number:04d}-{site}{MESSAGE}"


def total_words(asked: Round, replies: Mapping[str, Words], n_features: int) -> list[Words]:
    """The sums of all sites' words, one for each question of a round."""
    sizes = [counts(question, n_features) for question in asked.questions]
    expected = tuple(map(sum, zip(*sizes, strict=True)))
    for site, words in replies.items():
        if (len(words.long), len(words.short)) != expected:
            raise FederatedError("answer", f"{site} has not sent the number of words that was asked for")
    first, *others = (replies[site] for site in sorted(replies))
    total = first
    for words in others:
        total = total + words
    long, short = (np.cumsum([0, *(size[k] for size in sizes)]) for k in range(2))
    return [
        Words(total.long[long[k] : long[k + 1]], total.short[short[k] : short[k + 1]]) for k in range(len(sizes))
    ]
