"""Questions and answers as files, one folder for each site: for shared drives, SFTP, USB sticks and e-mail.

``question-0007-<digest>.message`` is from the coordinator, ``answer-0007-<digest>.message`` or ``refusal-...`` from the
site; number and digest are those of the question. Files may arrive in any order, late, twice or in part: a question is
whole when its bytes have the digest of its name, an answer when it says so itself (`transport.reply_in`), and what is
not whole is waited for. Both sides write files whole or not at all. What is there is not asked again, so a coordinator
that was stopped goes on where it was, and a folder is the log of all that has left a site.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..atomic import PART, write_bytes
from ..messages import ParameterError
from .errors import SiteSilent
from .transport import LONGEST, DamagedResponse, Reply, SiteRefused, is_answer, reply_in, respond

_LAST = 10**9 - 2  # names have nine digits at most, whatever somebody has put into a folder
_QUESTION = re.compile(r"question-(\d{4,9})-([0-9a-f]{32})\.message")


def _digest(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()[:32]


def _read(path: Path) -> bytes | None:
    """What a file holds; None where it is no plain file of reasonable size, or goes away meanwhile."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= LONGEST else None
    except OSError:
        return None


def _remove_parts(folder: Path, *kinds: str) -> None:
    """Unfinished files that a killed process of this side has left; the other side may be writing its own just now."""
    for kind in kinds:
        for file in folder.glob(f".{kind}-*{PART}"):
            file.unlink(missing_ok=True)


def _sibling(question: Path, kind: str) -> Path:
    return question.with_name(kind + question.name.removeprefix("question"))


class Folders:
    """The coordinator's side: a transport through one folder for each site.

    Parameters
    ----------
    folders : mapping of str to path
        The folder of each site by its name; missing ones are made.
    patience : float, default=600
        Seconds until an exchange ends with `SiteSilent`. With 0 it writes the questions, takes what is there, and ends:
        for files that people carry. The same message given again goes on from there.
    pause : float, default=0.2
        Seconds between two looks into the folders.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.mkdtemp()
    >>> transport = Folders({"north": f"{place}/north"}, patience=0)
    >>> transport.exchange(b"two words")
    Traceback (most recent call last):
        ...
    tasksieve.federated.errors.SiteSilent: site-silent: no reply from north
    >>> SiteFolder(f"{place}/north", "north").answer(bytes.upper)
    ['answer-0001-...message']
    >>> transport.exchange(b"two words")
    {'north': b'TWO WORDS'}
    """

    def __init__(
        self, folders: Mapping[str, str | Path], *, patience: float = 600.0, pause: float = 0.2
    ) -> None:
        self.folders = {site: Path(folder) for site, folder in folders.items()}
        if len({folder.resolve() for folder in self.folders.values()}) < len(self.folders):
            raise ParameterError("folders", "must be another one for each site", list(map(str, folders.values())))
        self.patience, self.pause = patience, pause
        for folder in self.folders.values():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_parts(folder, "question")

    def exchange(self, message: bytes) -> Mapping[str, bytes]:
        """The replies of all sites to a message."""
        end = time.monotonic() + self.patience
        name = self._name(message)
        replies: dict[str, bytes] = {}
        while True:
            for site, folder in self.folders.items():
                if site not in replies and (reply := _arrived(folder / name, site, message)) is not None:
                    replies[site] = reply
                elif site not in replies and _read(folder / name) != message:
                    folder.mkdir(exist_ok=True)
                    write_bytes(folder / name, message)
            missing = self.folders.keys() - replies.keys()
            left = end - time.monotonic()
            if not missing:
                return {site: replies[site] for site in self.folders}
            if left <= 0.0:
                raise SiteSilent(missing)
            time.sleep(min(self.pause, left))

    def _name(self, message: bytes) -> str:
        """The name that a question has in one of the folders, or the next one."""
        last, digest = 0, _digest(message)
        for folder in self.folders.values():
            for path in folder.iterdir():
                if found := _QUESTION.fullmatch(path.name.replace("answer-", "question-", 1)):
                    if found[2] == digest:
                        return found[0]
                    last = max(last, min(int(found[1]), _LAST))
        return f"question-{last + 1:04d}-{digest}.message"


def _arrived(question: Path, site: str, message: bytes) -> bytes | None:
    """A reply that lies in a folder; an answer counts before a refusal, which a site may take back."""
    refusal: SiteRefused | None = None
    for kind in ("answer", "refusal"):
        try:
            return reply_in(_read(_sibling(question, kind)) or b"", site, message)
        except DamagedResponse:
            continue
        except SiteRefused as refused:
            refusal = refused
    if refusal is not None:
        raise refusal
    return None


class SiteFolder:
    """A site's side of its folder: which questions wait, and the answers to them.

    Parameters
    ----------
    folder : path
    site : str, optional
        The name of the site. With it, answers that come into the folder of another site are not taken for that site's.

    Examples
    --------
    See `Folders`.
    """

    def __init__(self, folder: str | Path, site: str = "") -> None:
        self.folder, self.site = Path(folder), site
        self._settled: dict[str, tuple[object, str]] = {}

    def questions(self) -> list[Path]:
        """All question files, in their order."""
        found = [(path, _QUESTION.fullmatch(path.name)) for path in self.folder.iterdir()]
        numbered = sorted((int(name[1]), path) for path, name in found if name)
        return [path for _, path in numbered]

    def waiting(self) -> list[Path]:
        """Questions that have arrived whole and have neither an answer nor a refusal, in their order."""
        return [path for path in self.questions() if self.state(path) == "waiting"]

    def unanswered(self) -> list[Path]:
        """Questions that wait and questions that were refused, in their order."""
        return [path for path in self.questions() if self.state(path) in ("waiting", "refused")]

    def state(self, question: Path) -> str:
        """``"answered"``, ``"refused"``, ``"waiting"``; ``"incomplete"`` where the bytes are not those that the name
        promises: still on their way, or changed."""
        files = (question, _sibling(question, "answer"), _sibling(question, "refusal"))
        stamp = tuple(map(_stamp, files))
        known = self._settled.get(question.name)
        if known is not None and known[0] == stamp:
            return known[1]
        found, message = _QUESTION.fullmatch(question.name), _read(question)
        if found is None or message is None or _digest(message) != found[2]:
            return "incomplete"
        try:
            if _arrived(question, self.site, message) is None:
                return "waiting"
            state = "answered"
        except SiteRefused:
            state = "refused"
        self._settled[question.name] = stamp, state  # long answers are not read again at each look
        return state

    def answer(self, reply: Reply, questions: Iterable[Path] | None = None) -> list[str]:
        """Answer questions, by default those that wait; a question that was refused may be answered after all.

        Returns
        -------
        names : list of str
            The files that were written, answers and refusals.
        """
        written = []
        for question in self.waiting() if questions is None else questions:
            message = _read(question)
            if message is None:  # taken away meanwhile
                continue
            response = respond(reply, message, self.site)
            path = _sibling(question, "answer" if is_answer(response) else "refusal")
            write_bytes(path, response)
            if is_answer(response):
                _sibling(question, "refusal").unlink(missing_ok=True)
            written.append(path.name)
        return written

    def serve(self, reply: Reply, *, pause: float = 0.2, stop: threading.Event | None = None) -> None:
        """Answer what arrives until `stop` is set, or for ever."""
        stop = threading.Event() if stop is None else stop
        _remove_parts(self.folder, "answer", "refusal")
        while not stop.is_set():
            self.answer(reply)
            stop.wait(pause)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
