"""A site among others: checks who asks and what, answers, turns numbers into words, masks and signs them.

An answer is a function of data and round: asked again, a site gives the same bytes. What it has answered is written
down before it leaves, each message as it came, so that the rules count it and everything can be gone through again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..atomic import write_bytes
from .answer import Answer, Words, to_words
from .errors import FederatedError
from .keys import Agreement, PrivateKeys, roster
from .masks import largest_only, masked, unfit_hidden
from .messages import message_digest, seal_words, unseal_round
from .question import Question, Round

MESSAGE = ".message"
_LINES = "answered.jsonl"


class Answering(Protocol):
    """What answers at a site; `LocalProblem` does."""

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
        answer; `answered` counts the different questions before.
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
        self.log = AnswerLog(log)
        self._secrets = keys.secrets(name, sites) if plan.masked else {}
        if plan.masked and len(self._secrets) < 2:
            raise FederatedError("min-sites", "masks need three sites: of two, each would see the other's numbers")
        self._lock = threading.Lock()

    def reply(self, message: bytes) -> bytes:
        """The answer to a message of the coordinator, signed and, unless the plan says open, masked."""
        with self._lock:
            asked = unseal_round(message, self.plan)
            before = self.log.rounds(self.plan.digest)
            parts = asked.parts()
            if self.allow is not None:
                known = {part for entry in before.values() for part in entry["questions"]} - set(parts)
                self.allow(asked.questions, len(known))
            answer = self._answer(asked)
            digest = message_digest(answer)
            logged = before.get(asked.digest().hex())
            if logged is None:
                self.log.add(message, asked, parts, digest)
            elif logged["answer"] != digest:
                # one mask on two different answers would show their difference
                raise FederatedError("answer-changed", "this site would now answer these questions otherwise")
            return answer

    def replay(self) -> dict[int, bool]:
        """Go through the log: the number of each round, and whether the same answer comes out now."""
        found: dict[int, bool] = {}
        for digest, entry in self.log.rounds(self.plan.digest).items():
            asked = unseal_round(self.log.message(entry), self.plan)
            same = asked.digest().hex() == digest and message_digest(self._answer(asked)) == entry["answer"]
            found[asked.number] = found.get(asked.number, True) and same
        return found

    def _answer(self, asked: Round) -> bytes:
        pieces, own = [], self.keys.own_secret()
        for k, (question, units) in enumerate(zip(asked.questions, asked.units, strict=True)):
            words = to_words(self.local.answer(question), question, units, self.plan.n_features)
            context = asked.digest() + k.to_bytes(8, "little")
            hide = largest_only if question.kind == "sizes" else unfit_hidden
            pieces.append(hide(words, own, context))
        words = joined(pieces)
        if self.plan.masked:
            words = masked(words, self.name, self._secrets, asked.digest())
        return seal_words(words, asked, self.name, self.keys)


def joined(pieces: Sequence[Words]) -> Words:
    """The words of several answers, one after the other."""
    return Words(np.concatenate([piece.long for piece in pieces]), np.concatenate([piece.short for piece in pieces]))


class AnswerLog:
    """What a site has answered: a folder with each message as it came, and a line of JSON for each.

    - `folder`: Made where it is missing.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lines = self.folder / _LINES

    def rounds(self, plan: bytes) -> dict[str, dict[str, Any]]:
        """Digest of each round of a plan that was answered, and what was noted of it."""
        if not self._lines.exists():
            return {}
        found = {}
        for line in self._lines.read_bytes().split(b"\n")[:-1]:
            # what does not end with a line end was cut off while it was written, so nothing has left the site for it
            try:
                entry = json.loads(line)
                if entry["plan"] == plan.hex():
                    found[entry["round"]] = entry
            except (ValueError, KeyError, TypeError):
                raise FederatedError("log", f"the log of this site has been damaged: {self._lines}") from None
        return found

    def message(self, entry: dict[str, Any]) -> bytes:
        """A message as it came."""
        return (self.folder / entry["message"]).read_bytes()

    def add(self, message: bytes, asked: Round, parts: Sequence[str], answer: str) -> None:
        """Note a round before its answer leaves."""
        name = f"{asked.number:04d}-{hashlib.sha256(message).hexdigest()[:16]}{MESSAGE}"
        write_bytes(self.folder / name, message)
        entry = {
            "number": asked.number, "plan": asked.plan.hex(), "round": asked.digest().hex(), "questions": list(parts),
            "answer": answer, "message": name,
        }  # fmt: skip
        with open(self._lines, "ab+") as file:
            content = json.dumps(entry).encode() + b"\n"
            if file.tell() and not _ends_line(file):
                self._drop_unfinished()
                file.seek(0, os.SEEK_END)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _drop_unfinished(self) -> None:
        whole = self._lines.read_bytes()
        os.truncate(self._lines, whole.rfind(b"\n") + 1)


def _ends_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")
