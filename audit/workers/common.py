"""What the workers share: reading jobs, and writing their answers.

A worker is started by `cells.py` in the environment of its program, and told folders: `job.json`, `X.npy`, `y.npy`. It
writes the coefficients, then `answer.json`, then `done`, and waits for the next.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Job:
    """What is asked: a problem, two strengths (as shares of the smallest strength whose solution is zero, and in units
    of the mean loss), and a tolerance.

    `tolerance` is None where everything is as shipped; else only the tolerance is changed, and, if `patient`, `steps`
    given to the limits on iterations: `limit`, or the program's own `patience`.
    """

    loss: str
    X: Any
    y: Any
    shares: list[float]
    alphas: list[float]
    tolerance: float | None
    patient: bool
    limit: int | None = None
    patience: int = 1_000_000

    @property
    def steps(self) -> int:
        return self.patience if self.limit is None else self.limit

    def options(
        self, tolerance: str = "tol", limits: Sequence[str] = ("max_iter",), **more: Any
    ) -> dict[str, Any]:
        """Options of a program that are no part of the problem: none at its defaults."""
        if self.tolerance is None:
            return more
        if not self.patient:
            return {tolerance: self.tolerance, **more}
        return {tolerance: self.tolerance, **dict.fromkeys(limits, self.steps), **more}


@dataclass
class Answer:
    """Coefficients (outputs, features), intercepts (outputs,) and the strength that the program says they have."""

    coef: Any
    intercept: Any
    alpha: float


def nearest(job: Job, grid: Any) -> list[int]:
    """Where a program's own path is nearest to what is asked: as shipped to the shares of its first strength, or
    its end if it has stopped before; at other tolerances to the strengths that it had then."""
    grid = np.asarray(grid, dtype=float)
    wanted = [share * grid[0] for share in job.shares] if job.tolerance is None else job.alphas
    return [int(np.argmin(np.abs(np.log(grid / one)))) for one in wanted]


def serve(fit: Callable[[Job], list[Answer]], *packages: str) -> None:
    """Answer the jobs in the folders that are named on standard input, a line each."""
    versions = {"Python": platform.python_version()} | {name: metadata.version(name) for name in packages}
    for line in sys.stdin:
        folder = Path(line.strip())
        _answer(fit, folder, versions)
        (folder / "done").touch()


def _answer(fit: Callable[[Job], list[Answer]], folder: Path, versions: dict[str, str]) -> None:
    asked = json.loads((folder / "job.json").read_text())
    X, y, tolerance = np.load(folder / "X.npy"), np.load(folder / "y.npy"), asked["tolerance"]
    job = Job(
        asked["loss"], X, y, asked["shares"], asked["alphas"], tolerance, asked["patient"], asked.get("limit")
    )
    written: dict[str, Any] = {"tolerance": tolerance, "versions": versions, "answers": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            answers = fit(job)
        except Exception as error:  # what a program says when it gives up is part of the audit
            answers, written["error"] = [], f"{type(error).__name__}: {error}"[:300]
        written["seconds"] = time.process_time() - start
    told = {one.category.__name__: str(one.message) for one in caught}
    written["warned"] = sorted(name for name, words in told.items() if "onverge" in name + words)
    for s, answer in enumerate(answers):
        np.asarray(np.atleast_2d(answer.coef), dtype=np.float64).tofile(folder / f"coef-{s}.bin")
        intercept = np.atleast_1d(np.asarray(answer.intercept, dtype=float)).tolist()
        written["answers"].append({"alpha": float(answer.alpha), "intercept": intercept})
    part = folder / "answer.part"
    part.write_text(json.dumps(written))
    os.replace(part, folder / "answer.json")
