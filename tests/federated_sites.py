"""Sites of a few rows, their keys and plan, for tests of messages."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasksieve.federated.answer import GRID, Answer, answer_of_sizes
from tasksieve.federated.asking import Asking
from tasksieve.federated.keys import PrivateKeys
from tasksieve.federated.node import SiteNode
from tasksieve.federated.question import Question
from tasksieve.federated.units import NORM_POWER


@dataclass
class SmallPlan:
    """What messages need to know of a plan."""

    sites: dict[str, str]
    coordinator: str
    n_features: int
    masked: bool = True
    loss: str = "squared"
    title: str = ""

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).digest()


@dataclass
class RowsOfSite:
    """One task with the squared loss and nothing free, in plain formulas: u = (1 + X S X')^-1 y."""

    X: np.ndarray
    y: np.ndarray
    asked: list[Question] = field(default_factory=list)

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        X, y, s, A = self.X, self.y, question.s, question.features
        norms = Answer(norms=np.linalg.norm(X, axis=0) ** NORM_POWER)
        if question.kind == "norms":
            return norms
        if question.kind == "sizes":
            return answer_of_sizes(self.answer(Question()), norms)
        M = np.linalg.inv(np.eye(len(y)) + (X[:, A] * s) @ X[:, A].T)
        u = M @ y
        c = X.T @ u
        loss, moved = 0.5 * float(u @ u), float(s @ c[A] ** 2)
        dual = np.array([k * (u @ y) - 0.5 * k * k * (u @ u) for k in GRID])
        if question.kind == "part":
            return Answer(loss=loss, dual=dual, w2=(s * c[A]) ** 2, c2=c**2)
        XC = X[:, A] * c[A]
        L = slice(None) if question.levels is None else question.levels
        hessian = XC.T @ M @ XC if question.hessian else None
        sums = loss + 0.5 * moved, loss, float(u @ y), float(u @ u)
        return Answer(*sums, dual, c[A] ** 2, hessian, c[L] ** 2, np.zeros(4))

    def pieces(self) -> list[bytes]:
        return [self.X.tobytes(), self.y.tobytes()]


def rows(seed: int, n: int = 8, d: int = 6, scale: float = 1.0) -> RowsOfSite:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return RowsOfSite(X, scale * (X[:, 0] + rng.normal(size=n)))


def fixed_keys(name: str) -> PrivateKeys:
    """The same keys in every run."""
    return PrivateKeys(*(hashlib.sha256(f"{name} {part}".encode()).digest() for part in ("sign", "exchange", "salt")))


@dataclass
class Federation:
    """Sites of this process, and a transport that calls them; `tamper` may change what arrives."""

    local: dict[str, RowsOfSite]
    folder: Path
    masked: bool = True
    keys: dict[str, PrivateKeys] = field(default_factory=dict)
    calls: int = 0

    def __post_init__(self) -> None:
        for name in (*self.local, "coordinator"):
            self.keys.setdefault(name, fixed_keys(name))
        data = {name: self.keys[name].data_digest(site.pieces()) for name, site in self.local.items()}
        self.plan = SmallPlan(
            {name: self.keys[name].public(data[name]).line() for name in self.local},
            self.keys["coordinator"].public().line(),
            next(iter(self.local.values())).X.shape[1],
            self.masked,
        )
        self.nodes = {name: self.node(name) for name in self.local}

    def node(self, name: str, **more) -> SiteNode:
        data = self.keys[name].data_digest(self.local[name].pieces())
        plan = more.pop("plan", self.plan)
        return SiteNode(name, self.keys[name], plan, self.local[name], data, self.folder / name, **more)

    def exchange(self, message: bytes) -> dict[str, bytes]:
        self.calls += 1
        return {name: node.reply(message) for name, node in self.nodes.items()}

    def asking(self, folder: Path | None = None) -> Asking:
        return Asking(self.plan, self.keys["coordinator"], self, folder)


def federation(folder: Path, n_sites: int = 3, **more) -> Federation:
    names = ["north", "east", "south", "west", "centre"][:n_sites]
    return Federation({name: rows(k) for k, name in enumerate(names)}, folder, **more)
