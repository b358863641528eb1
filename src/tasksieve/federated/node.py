"""A site among others: checks who asks and what, answers, turns numbers into words, masks and signs them.

An answer is a function of data and round: asked again, a site gives the same bytes. What it is asked is written down
before it is answered (`answer_log`), each message as it came, so that the rules count it and everything can be gone
through again. Refusals are signed, too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .answer import Answer, Words, size, to_words
from .answer_log import AnswerLog
from .errors import SITE_ERROR, FederatedError
from .keys import Agreement, PrivateKeys, roster
from .masks import largest_only, masked, no_dual_hidden, unfit_hidden
from .messages import message_digest, seal_refusal, seal_words, unseal_round
from .question import Question, Round
from .transport import LONGEST

_LOG = logging.getLogger("tasksieve.federated")


class Answering(Protocol):
    """What answers at a site; `LocalProblem` does. Where a plan has pooled standardisation it also has a method
    ``scaled(scales)``, which gives what answers with columns divided by these."""

    def answer(self, question: Question) -> Answer: ...


class SiteNode:
    """What a site runs for one plan.

    Parameters
    ----------
    name : str
        Of this site in the plan.
    keys : PrivateKeys
    plan : Agreement
        That this site has agreed to; `Plan`.
    local : Answering
        Answers questions from the rows; `LocalProblem`.
    data : bytes
        Salted digest of the rows that `local` answers from, by `PrivateKeys.data_digest`.
    log : path
        Folder for what was answered; made where it is missing.
    allow : callable, optional
        ``allow(questions, answered)`` refuses, with a `FederatedError` that names a rule, what this site does not
        answer; `answered` counts the different questions before, those that it failed to answer among them.
    """

    def __init__(
        self,
        name: str,
        keys: PrivateKeys,
        plan: Agreement,
        local: Answering,
        data: bytes,
        log: str | Path,
        *,
        allow: Callable[[Sequence[Question], int], None] | None = None,
    ) -> None:
        sites = roster(plan)
        if name not in sites:
            raise FederatedError("plan", f"the plan has no site {name}")
        own = keys.public(data)
        if (own.signing, own.exchange) != (sites[name].signing, sites[name].exchange):
            raise FederatedError("keys", f"the plan has other keys for {name} than those of this site")
        if own.data != sites[name].data:
            raise FederatedError("data", "the rows of this site are no longer those that the plan was made with")
        self.name, self.keys, self.plan, self.local, self.allow = name, keys, plan, local, allow
        self.log = AnswerLog(log, keys)
        self._secrets = keys.secrets(name, sites) if plan.masked else {}
        if plan.masked and len(self._secrets) < 2:
            raise FederatedError("min-sites", "masks need three sites: of two, each would see the other's numbers")
        self._lock = threading.Lock()

    def reply(self, message: bytes) -> bytes:
        """The answer to a message of the coordinator, signed and, unless the plan says open, masked.

        Whatever stands against it is raised as a `FederatedError` with a refusal that this site has signed. The words
        of errors that are not meant for the coordinator, which may be about rows, go to the log of this process.
        """
        try:
            with self._lock:
                return self._reply(message)
        except FederatedError as refused:
            error = refused
        except Exception:
            _LOG.exception("A message could not be answered; the coordinator is told no more than that.")
            error = FederatedError(*SITE_ERROR)
        error.signed = seal_refusal(error, message, self.name, self.keys)
        raise error from None

    def _reply(self, message: bytes) -> bytes:
        asked = unseal_round(message, self.plan)
        if sum(size(question, self.plan.n_features) for question in asked.questions) > LONGEST:
            raise FederatedError("length", "the answer to these questions would be longer than messages are")
        parts = asked.parts()
        with self.log.locked():
            before = self.log.rounds(self.plan.digest)
            self._check_scales(asked, before)
            if self.allow is not None:
                known = {part for entry in before.values() for part in entry["questions"]} - set(parts)
                self.allow(asked.questions, len(known))
            if asked.digest().hex() not in before:
                self.log.ask(message, asked, parts)
        answer = self._answer(asked)
        self.log.answer(asked, message_digest(answer))
        return answer

    def _check_scales(self, asked: Round, before: Mapping[str, Mapping[str, Any]]) -> None:
        """One set of scales for a plan: the coordinator finds them once."""
        known = {entry.get("scales", "") for entry in before.values()} - {""}
        if asked.scales is not None and known - {asked.scales_digest()}:
            raise FederatedError("scales", "columns were divided by other numbers in earlier questions of this plan")

    def replay(self) -> dict[int, bool]:
        """Go through the log: the number of each round that was answered, and whether the same answer comes out now."""
        found: dict[int, bool] = {}
        for digest, entry in self.log.rounds(self.plan.digest).items():
            if entry["answer"] is None:  # stopped, or failed, before one was there
                continue
            asked = unseal_round(self.log.message(entry), self.plan)
            same = asked.digest().hex() == digest and message_digest(self._answer(asked)) == entry["answer"]
            found[asked.number] = found.get(asked.number, True) and same
        return found

    def _answer(self, asked: Round) -> bytes:
        pieces, own = [], self.keys.own_secret()
        local: Any = self.local
        if asked.scales is not None:
            local = local.scaled(asked.scales)
        for k, (question, units) in enumerate(zip(asked.questions, asked.units, strict=True)):
            words = to_words(local.answer(question), question, units, self.plan.n_features)
            context = asked.digest() + k.to_bytes(8, "little")
            hide = largest_only if question.kind == "sizes" else unfit_hidden
            if question.kind == "point" and question.dual:
                words = no_dual_hidden(words, own, context)
            pieces.append(hide(words, own, context))
        words = joined(pieces)
        if self.plan.masked:
            words = masked(words, self.name, self._secrets, asked.digest())
        return seal_words(words, asked, self.name, self.keys)


def joined(pieces: Sequence[Words]) -> Words:
    """The words of several answers, one after the other."""
    return Words(np.concatenate([piece.long for piece in pieces]), np.concatenate([piece.short for piece in pieces]))
