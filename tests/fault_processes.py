"""A federated run of four processes, three sites and a coordinator, and what can happen to them and to their files."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from federated_sites import Federation, RowsOfSite, fixed_keys
from transport_helpers import https_coordinator, https_site

from tasksieve.atomic import write_bytes
from tasksieve.federated.asking import Asking
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.folders import Folders, SiteFolder
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.messages import seal_round, unseal_round
from tasksieve.federated.path import FederatedPath
from tasksieve.federated.together import follow
from tasksieve.federated.transport import is_answer, respond
from tasksieve.tasks import read_tasks

NAMES = ("north", "east", "south")
COORDINATOR = "coordinator"
FEATURES = 9
LIMIT = 600.0  # seconds after which a run hangs, on a busy machine as well
_FORK = multiprocessing.get_context("fork")


@dataclass
class RowsWithLocalProblem(RowsOfSite):
    """A site that answers as sites do."""

    @cached_property
    def local(self) -> LocalProblem:
        return LocalProblem(read_tasks([self.X], [self.y]), "squared")

    def answer(self, question):
        return self.local.answer(question)


def federation(folder: Path, changed: str = "") -> Federation:
    """The sites; the rows of one may be changed after the plan was made."""
    sites = {}
    for k, name in enumerate(NAMES):
        rng = np.random.default_rng(k)
        X = rng.normal(size=(14, FEATURES))
        sites[name] = RowsWithLocalProblem(X, X[:, 0] - X[:, 4] + rng.normal(size=14))
    found = Federation(sites, folder)
    if changed:
        site = found.local[changed]
        found.local[changed] = RowsWithLocalProblem(site.X, site.y + np.eye(1, len(site.y), 3)[0])
        found.nodes[changed] = found.node(changed)
    return found


def followed(asking: Asking, values: int = 5) -> bytes:
    """The bits of a certified path: every question depends on all answers before it."""
    path = FederatedPath(FEATURES, n_values=values, eps=0.3)
    follow([path], asking.ask)
    assert np.all(path.gaps <= 1e-6 * path.null_loss)
    found = [path.lams, path.objectives, path.gaps, *(path.row_norms(k) for k in range(values))]
    return hashlib.sha256(b"".join(part.tobytes() for part in found)).digest()


@dataclass
class Run:
    """Processes and files of a run.

    - `addresses`: Of sites that are asked over HTTPS; empty: through folders.
    """

    place: Path
    rng: np.random.Generator
    addresses: dict[str, int] = field(default_factory=dict)
    files: dict[str, tuple[Path, Path]] = field(default_factory=dict)
    changed: str = ""
    patience: float = 30.0
    processes: dict[str, multiprocessing.process.BaseProcess] = field(default_factory=dict)
    rests: dict[str, float] = field(default_factory=dict)
    happened: int = 0  # faults so far
    undo: list[Callable[[], object]] = field(default_factory=list)  # what removes the cause of a refusal

    # -- processes -------------------------------------------------------------------------------------------------

    def folder(self, name: str) -> Path:
        return self.place / "folders" / name

    def start(self, name: str) -> None:
        target = self._coordinate if name == COORDINATOR else self._serve
        process = _FORK.Process(target=target, args=() if name == COORDINATOR else (name,), daemon=True)
        process.start()
        self.processes[name] = process

    def kill(self, name: str) -> None:
        """As by a power cut; it comes back after a while."""
        process = self.processes.get(name)
        if process is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        self.rests[name] = time.monotonic() + self.rng.uniform(0.0, 0.1)

    def rest(self, name: str) -> None:
        """It stands still for a while, in the midst of whatever it does."""
        process = self.processes.get(name)
        if process is not None and process.is_alive():
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0.0, 0.2))
            os.kill(process.pid, signal.SIGCONT)

    def _serve(self, name: str) -> None:
        slow = np.random.default_rng(os.getpid())
        try:
            sites = federation(self.place / "logs", self.changed)
        except FederatedError as error:  # its rows are not those of the plan: it does not start
            write_bytes(self.place / f"ended-{name}", str(error).encode())
            return

        def reply(message: bytes) -> bytes:
            time.sleep(slow.uniform(0.0, 0.03))
            return sites.nodes[name].reply(message)

        if self.addresses:
            own, trusted = self.files[name], self.files[COORDINATOR][0]
            https_site(reply, own, trusted, port=self.addresses[name]).serve()
        else:
            SiteFolder(self.folder(name), name).serve(reply, pause=0.004)

    def _coordinate(self) -> None:
        if self.addresses:
            addresses = {name: f"https://localhost:{port}" for name, port in self.addresses.items()}
            transport = https_coordinator(addresses, self.files, self.patience)
        else:
            folders = {name: self.folder(name) for name in NAMES}
            transport = Folders(folders, patience=self.patience, pause=0.004)
        sites = federation(self.place / "logs-of-nobody")
        try:
            asking = Asking(sites.plan, sites.keys[COORDINATOR], transport, self.place / "kept")
            write_bytes(self.place / "result", followed(asking))
        except FederatedError as error:
            write_bytes(self.place / "refused", str(error).encode())

    def until_the_end(self, faults) -> tuple[str, bytes]:
        """Start all, let `faults` happen, and restart whoever ends too early.

        - `faults`: Pairs of a moment, in files that the coordinator has kept so far (four a round), and a call.
        """
        begun = time.monotonic()
        for name in (*NAMES, COORDINATOR):
            if name != COORDINATOR:
                self.folder(name).mkdir(parents=True, exist_ok=True)
            self.start(name)
        waiting = sorted(faults, key=lambda fault: fault[0])
        try:
            while time.monotonic() - begun < LIMIT:
                if waiting and len(list(self.place.glob("kept/*.message"))) >= waiting[0][0]:
                    time.sleep(self.rng.uniform(0.0, 0.03))
                    waiting.pop(0)[1]()
                    self.happened += 1
                for kind in ("result", "refused"):
                    if (self.place / kind).exists():
                        return kind, (self.place / kind).read_bytes()
                for name, process in list(self.processes.items()):
                    ended = (self.place / f"ended-{name}").exists()
                    if not process.is_alive() and not ended and time.monotonic() >= self.rests.get(name, 0.0):
                        self.start(name)
                time.sleep(0.003)
            raise AssertionError(f"no end after {LIMIT} seconds")
        finally:
            for process in self.processes.values():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                process.join()

    # -- files -----------------------------------------------------------------------------------------------------

    def any_file(self, pattern: str) -> Path | None:
        found = sorted(self.place.glob(pattern))
        return found[self.rng.integers(len(found))] if found else None

    def lose(self) -> None:
        if file := self.any_file("folders/*/*.message"):
            file.unlink(missing_ok=True)

    def cut(self) -> None:
        """In place, as by a copy that was interrupted."""
        file = self.any_file("folders/*/*.message")
        with suppress(FileNotFoundError):
            if file:
                os.truncate(file, int(self.rng.integers(file.stat().st_size)))

    def change(self) -> None:
        file = self.any_file("folders/*/*.message")
        with suppress(FileNotFoundError):
            content = bytearray(file.read_bytes() if file else b"")
            if content:
                content[self.rng.integers(len(content))] ^= int(self.rng.integers(1, 256))
                file.write_bytes(content)

    def twice(self) -> None:
        """A file arrives again, under another number."""
        file = self.any_file("folders/*/*.message")
        with suppress(FileNotFoundError):
            if file:
                kind, _, digest = file.name.split("-")
                write_bytes(file.with_name(f"{kind}-{self.rng.integers(50, 99):04d}-{digest}"), file.read_bytes())

    def confuse(self) -> None:
        """An answer lies where another one should."""
        file, other = self.any_file("folders/*/answer*"), self.any_file("folders/*/answer*")
        with suppress(FileNotFoundError):
            if file and other:
                file.write_bytes(other.read_bytes())

    def spoil_kept(self) -> None:
        """A message that the coordinator has kept, its own or a reply, is cut, and the coordinator stops."""
        if file := self.any_file("kept/*.message"):
            os.truncate(file, int(self.rng.integers(file.stat().st_size)))
            self.kill(COORDINATOR)

    def spoil_log(self) -> None:
        """A site stops while it writes a line of its log."""
        name = self._one()
        self.kill(name)
        with suppress(FileNotFoundError), open(self.place / "logs" / name / "answered.jsonl", "ab") as file:
            file.write(b'{"entry": {"number": 3, "plan"')

    # -- what somebody does on purpose -----------------------------------------------------------------------------

    @contextmanager
    def _before(self, name: str):
        """A question to a site that it has not answered; the site stands still meanwhile. None: there is none."""
        process, end = self.processes[name], time.monotonic() + 0.5
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
        try:
            while not (waiting := SiteFolder(self.folder(name)).waiting()) and time.monotonic() < end:
                time.sleep(0.005)
            yield waiting[0] if waiting else None
        finally:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)

    def _say(self, name: str, reply: Callable[[bytes], bytes]) -> None:
        """Put a whole response before that of a site, with the digests that transports look at."""
        with self._before(name) as question:
            if question is not None:
                response = respond(reply, question.read_bytes())
                kind = "answer" if is_answer(response) else "refusal"
                write_bytes(question.with_name(kind + question.name.removeprefix("question")), response)

    def _one(self) -> str:
        return NAMES[self.rng.integers(len(NAMES))]

    def _replies(self, name: str) -> list[bytes]:
        """What a site has said so far."""
        return [file.read_bytes() for file in self.place.glob(f"kept/reply-*-{name}.message")]

    def forge(self) -> None:
        """An answer with another number in it."""
        name = self._one()

        def reply(message: bytes) -> bytes:
            content = bytearray(federation(self.place / "logs-of-nobody").nodes[name].reply(message))
            content[self.rng.integers(len(content))] ^= 1
            return bytes(content)

        self._say(name, reply)

    def sign_by_another(self) -> None:
        """The words of a site, signed by a key of somebody else."""
        name = self._one()

        def reply(message: bytes) -> bytes:
            true = federation(self.place / "logs-of-nobody").nodes[name].reply(message)
            return fixed_keys("nobody").sign(b"tasksieve signed message 1\n" + true[64:]) + true[64:]

        self._say(name, reply)

    def other_version(self) -> None:
        """The words of a site in another version of the protocol, signed by the site."""
        name = self._one()

        def reply(message: bytes) -> bytes:
            true = federation(self.place / "logs-of-nobody").nodes[name].reply(message)
            body = true[64:].replace(b'"protocol":1', b'"protocol":2')
            return fixed_keys(name).sign(b"tasksieve signed message 1\n" + body) + body

        self._say(name, reply)

    def cut_log(self) -> None:
        """The last rounds are taken out of the log of a site, as if they had never been answered."""
        name = self._one()
        self.kill(name)
        lines = self.place / "logs" / name / "answered.jsonl"
        with suppress(FileNotFoundError):
            whole = lines.read_bytes()
            if len(kept := whole.splitlines(keepends=True)) > 2:
                lines.write_bytes(b"".join(kept[:-2]))
                self.undo.append(lambda: lines.write_bytes(whole))

    def replay(self) -> None:
        """An earlier answer of the site itself."""
        name = self._one()
        if said := self._replies(name):
            self._say(name, lambda _: said[self.rng.integers(len(said))])

    def other_site(self) -> None:
        """The answer of another site to the same question."""
        name = self._one()
        other = NAMES[(NAMES.index(name) + 1) % 3]
        self._say(name, federation(self.place / "logs-of-nobody").nodes[other].reply)

    def refuse(self) -> None:
        """A refusal that the site has not written."""

        def reply(message: bytes) -> bytes:
            raise FederatedError("forged-rule", "not said by the site")

        self._say(self._one(), reply)

    def ask_by_another(self) -> None:
        """A question of somebody who is not the coordinator."""
        name = self._one()
        with self._before(name) as question:
            if question is not None:
                asked = unseal_round(question.read_bytes(), federation(self.place / "logs-of-nobody").plan)
                forged = seal_round(replace(asked, number=77), fixed_keys("nobody"))
                digest = hashlib.sha256(forged).hexdigest()[:32]
                write_bytes(self.folder(name) / f"question-0077-{digest}.message", forged)

    def change_rows(self) -> None:
        """One row of a site is corrected, and the site restarted."""
        self.changed = NAMES[self.rng.integers(len(NAMES))]
        self.kill(self.changed)
        self.start(self.changed)
