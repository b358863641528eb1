"""Questions in, sums over sites out, through any transport: the whole protocol above transports.

With a folder, every exchange is kept there, and a coordinator that was stopped goes on from it: the same questions have
the same bytes, and are not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from ..atomic import remove_parts, write_bytes
from .answer import Answer, Words, counts, misfits
from .answer_log import MESSAGE
from .errors import FederatedError
from .keys import Agreement, PrivateKeys, roster
from .messages import COORDINATOR, seal_round, unseal, unseal_refusal, unseal_words
from .question import KINDS, Question, Round
from .sums import Summing
from .transport import SiteRefused, printable
from .units import Units


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
    exchanges : list of (int, int, int, int)
        Of each: the kind of its first question, as a place in `question.KINDS`, how many questions, bytes to each site
        and from the site that has sent most.
    """

    rounds: int = 0
    questions: int = 0
    down: int = 0
    up: int = 0
    reused: int = 0
    exchanges: list[tuple[int, int, int, int]] = field(default_factory=list)


class Asking(Summing):
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
        super().__init__(len(plan.sites), plan.n_features)
        self.traffic = Traffic()
        #: the rounds with strict parts that fit: message and replies by site, for the statement of a certificate
        self.strict: list[tuple[bytes, dict[str, bytes]]] = []
        self._folder = None if folder is None else Path(folder)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            remove_parts(self._folder)

    def check(self, question: Question, units: Units, answer: Answer) -> None:
        """What holds of any data: phi = loss + 1/2 sum s z, and for the squared loss y'r - r'r = sum s z."""
        if question.kind not in ("null", "point"):
            return
        assert answer.z is not None
        moved = float(question.s @ answer.z)
        rounding = units.sites * (4.0 * 2.0**units.sums + float(question.s.sum()) * 2.0**units.squares)
        near = rounding + 1e-7 * (abs(answer.phi) + abs(answer.loss) + moved)
        holds = abs(answer.phi - answer.loss - 0.5 * moved) <= near
        squared = getattr(self.plan, "loss", "") == "squared" and not getattr(self.plan, "mixed", False)
        if squared and question.l1 == 0.0:
            holds &= abs(answer.yr - answer.rr - moved) <= near + 1e-7 * (abs(answer.yr) + answer.rr)
        if not holds:
            raise FederatedError("identity", "the sums contradict each other: one of the sites computes otherwise")

    def exchange(self, questions: Sequence[Question], units: Sequence[Units]) -> list[Words]:
        """The sums of the sites' words, from the log where they were kept."""
        asked = Round(self.traffic.rounds, self.plan.digest, tuple(questions), tuple(units), self.scales)
        message = seal_round(asked, self.keys)
        replies = self._logged(asked, message)
        if replies is None:
            replies = self._sent(message)
            total = self._total(asked, replies)  # nothing is kept that is not what was asked for
            self._keep(asked, replies)
        else:
            total = self._total(asked, replies)
            self.traffic.reused += 1
        up = max(map(len, replies.values()))
        self.traffic.exchanges.append((KINDS.index(questions[0].kind), len(questions), len(message), up))
        self.traffic.rounds += 1
        self.traffic.questions += len(questions)
        self.traffic.down += len(message)
        self.traffic.up += up
        fits = [not misfits(words).any() for words in total]
        if any(question.kind == "part" and fit for question, fit in zip(questions, fits, strict=True)):
            self.strict.append((message, replies))
        return total

    def _sent(self, message: bytes) -> dict[str, bytes]:
        """The replies of all sites; a refusal counts if the site has signed it."""
        try:
            return dict(self.transport.exchange(message))
        except SiteRefused as refused:
            site, said, keys = refused.site, refused, self.sites.get(refused.site)
        words = f"a refusal in the name of site {site} is not signed by it, so it may be somebody else's: {said.said}"
        if keys is None:
            raise FederatedError("signature", words)
        try:
            rule, reason = unseal_refusal(said.signed, message, site, keys)
        except FederatedError as error:
            raise FederatedError(error.rule if error.rule == "version" else "signature", words) from None
        raise SiteRefused(site, printable(rule), printable(reason), said.signed)

    def _total(self, asked: Round, replies: Mapping[str, bytes]) -> list[Words]:
        missing, unknown = sorted(set(self.sites) - set(replies)), sorted(set(replies) - set(self.sites))
        if missing or unknown:
            raise FederatedError("replies", f"replies are missing of {missing}, and came from {unknown} unasked")
        words = {site: unseal_words(reply, asked, site, self.sites[site]) for site, reply in replies.items()}
        return total_words(asked, words, self.n_features)

    def _logged(self, asked: Round, message: bytes) -> dict[str, bytes] | None:
        """The replies to a round that were kept; None where it must be asked."""
        if self._folder is None:
            return None
        place = self._folder / f"round-{asked.number:04d}{MESSAGE}"
        if not place.exists():
            write_bytes(place, message)
            return None
        if (kept := place.read_bytes()) != message:
            try:
                unseal(kept, "round", COORDINATOR, self.keys.public())
            except FederatedError:  # damaged on the disk; replies say themselves which questions they answer
                write_bytes(place, message)
            else:
                words = f"{self._folder} is of another run: it has other questions in {place.name}"
                raise FederatedError("resume", words)
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
