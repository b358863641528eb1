"""What a site has answered: each message as it came, and lines that show when they were cut or edited.

A line says that a round was asked, before anything is computed, and another what was answered, before it leaves. Each
carries a code (HMAC, with a key of the site) of itself and of the line before it, and a second file holds how many
lines there are and the code of the last: a line that was changed, put in, taken out or cut off is noticed. What is not
noticed is an old copy of the whole folder.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..atomic import write_bytes
from .errors import FederatedError
from .keys import PrivateKeys
from .question import Round

MESSAGE = ".message"
_LINES, _HEAD, _LOCK = "answered.jsonl", "answered.head", "answered.lock"


class AnswerLog:
    """The log of a site.

    Parameters
    ----------
    folder : path
    keys : PrivateKeys
        Of the site; they seal the lines.
    begin : bool, default=True
        Whether a log that is not there is begun; False: that it is missing is refused.
    """

    def __init__(self, folder: str | Path, keys: PrivateKeys, *, begin: bool = True) -> None:
        self.folder, self._key = Path(folder), keys.own_secret("log")
        self._lines, self._head = self.folder / _LINES, self.folder / _HEAD
        if begin:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.locked():
                if not self._head.exists() and not self._lines.exists() and not any(self.folder.glob("*" + MESSAGE)):
                    self._write_head(0, self._first)
        if not self._head.exists():
            raise self._damaged("its head is missing")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process writes meanwhile; the operating system lets go when this one ends, however it ends."""
        with open(self.folder / _LOCK, "ab") as file:
            try:
                _lock(file)
            except OSError as error:
                raise FederatedError("log", f"the log of this site cannot be locked ({error.strerror})") from None
            yield

    def rounds(self, plan: bytes) -> dict[str, dict[str, Any]]:
        """Digest of each round that was asked, and what was noted of it; ``answer`` is None where none has left.

        - `plan`: Digest of the plan. A log of another one is refused: differences between the sums of two plans could
          be the numbers of one site.
        """
        found: dict[str, dict[str, Any]] = {}
        for entry in self._read()[0]:
            if "answer" in entry:
                found[entry["round"]]["answer"] = entry["answer"]
            elif entry["plan"] != plan.hex():
                raise FederatedError("plan", "this site has answered another plan: a new plan needs a new site folder")
            else:
                found[entry["round"]] = {**entry, "answer": None}
        return found

    def message(self, entry: dict[str, Any]) -> bytes:
        """A message as it came."""
        try:
            message = (self.folder / entry["file"]).read_bytes()
        except OSError:
            raise self._damaged(f"{entry['file']} is missing") from None
        if hashlib.sha256(message).hexdigest() != entry["message"]:
            raise self._damaged(f"{entry['file']} has changed")
        return message

    def ask(self, message: bytes, asked: Round, parts: Sequence[str]) -> None:
        """Note a round before it is answered. Call it with `locked`."""
        digest = hashlib.sha256(message).hexdigest()
        name = f"{asked.number:04d}-{digest[:16]}{MESSAGE}"
        write_bytes(self.folder / name, message)
        entry = {
            "number": asked.number, "plan": asked.plan.hex(), "round": asked.digest().hex(), "questions": list(parts),
            "message": digest, "file": name, "scales": asked.scales_digest(),
        }  # fmt: skip
        self._write_head(*self._append(entry))

    def answer(self, asked: Round, answer: str) -> None:
        """Note the digest of an answer before it leaves; another one to the same round is refused."""
        with self.locked():
            digest = asked.digest().hex()
            noted = self.rounds(asked.plan).get(digest)
            if noted is None:
                raise self._damaged("the round that is answered is missing")
            known = noted["answer"]
            if known is None:
                self._append({"round": digest, "answer": answer})  # the head follows with the next question
            elif known != answer:  # one mask on two different answers would show their difference
                raise FederatedError("answer-changed", "this site would now answer these questions otherwise")

    # -- lines ---------------------------------------------------------------------------------------------------------

    @property
    def _first(self) -> bytes:
        return hmac.digest(self._key, b"begin", "sha256")

    def _seal(self, before: bytes, entry: dict[str, Any]) -> bytes:
        return hmac.digest(self._key, before + json.dumps(entry, sort_keys=True).encode(), "sha256")

    def _read(self) -> tuple[list[dict[str, Any]], bytes]:
        """All entries, and the seal of the last."""
        try:
            head = json.loads(self._head.read_bytes())  # first: lines that come meanwhile are more than it says
            count, at = int(head["lines"]), bytes.fromhex(head["seal"])
        except (OSError, ValueError, KeyError, TypeError):
            raise self._damaged(f"{_HEAD} cannot be read") from None
        # what does not end with a line end was cut off while it was written, so nothing has left the site for it
        lines = self._lines.read_bytes().split(b"\n")[:-1] if self._lines.exists() else []
        entries: list[dict[str, Any]] = []
        seals = [self._first]
        for number, line in enumerate(lines, 1):
            try:
                given = json.loads(line)
                entry, seal = dict(given["entry"]), bytes.fromhex(given["seal"])
            except (ValueError, KeyError, TypeError):
                raise self._damaged(f"line {number} cannot be read") from None
            seals.append(self._seal(seals[-1], entry))
            if not hmac.compare_digest(seal, seals[-1]):
                raise self._damaged(f"line {number} was not written by this site, or not in this place")
            entries.append(entry)
        if not 0 <= count <= len(lines) or seals[count] != at:
            raise self._damaged(f"it has {len(lines)} lines, and had {count}")
        return entries, seals[-1]

    def _append(self, entry: dict[str, Any]) -> tuple[int, bytes]:
        entries, seal = self._read()
        seal = self._seal(seal, entry)
        with open(self._lines, "ab+") as file:
            if file.tell() and not _ends_line(file):
                whole = self._lines.read_bytes()
                os.truncate(self._lines, whole.rfind(b"\n") + 1)
                file.seek(0, os.SEEK_END)
            file.write(json.dumps({"entry": entry, "seal": seal.hex()}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return len(entries) + 1, seal

    def _write_head(self, lines: int, seal: bytes) -> None:
        write_bytes(self._head, json.dumps({"lines": lines, "seal": seal.hex()}).encode())

    def _damaged(self, how: str) -> FederatedError:
        return FederatedError("log", f"the log of this site has been damaged: {how}")


def _ends_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _lock(file: Any) -> None:
    """Wait for an exclusive lock; closing the file gives it back."""
    if os.name == "nt":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
