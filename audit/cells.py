"""One cell: a program, a data set and a loss, at its defaults, at recommended and at tightened tolerances.

A cell is a file that is written whole or not at all; what it needs from an earlier step is another such file.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from datasets import DATASETS, prepare
from environments import python_of, rscript
from judge import alpha_max, grade, objective, problem_of
from programs import PROGRAMS, SHARES, Program

CELLS = Path(os.environ.get("TASKSIEVE_AUDIT_CELLS", Path(__file__).resolve().parent / "cells"))
WORKERS = Path(__file__).resolve().parent / "workers"
SAME = (
    1e-8  # the tightest answer of a program must be this close to our optimum, or its problem is another one
)
ROUNDING = 1e-13  # of our float64 objective beside the certified ones, relative to the objective at zero
GOOD = 1e-6  # excess that the largest power of ten of its tolerance must reach
Array = np.ndarray[Any, Any]


class Cell(NamedTuple):
    program: str
    dataset: str
    loss: str

    @property
    def key(self) -> str:
        return "/".join(self)

    @property
    def file(self) -> Path:
        return CELLS / f"{'.'.join(self)}.json"

    def certificate(self, share: float) -> Path:
        return CELLS / "certificates" / f"{'.'.join(self)}.{share:g}.npz"


def all_cells() -> list[Cell]:
    """Every program with every data set and loss that it has, program after program."""
    return [
        Cell(name, one.name, loss)
        for name, program in PROGRAMS.items()
        for one in DATASETS.values()
        for loss in one.losses
        if loss in program.losses
    ]


def made_cells() -> list[Cell]:
    """Those that are there, and have an answer."""
    return [
        cell
        for cell in all_cells()
        if cell.file.exists() and "strengths" in json.loads(cell.file.read_text())
    ]


def matches(cell: Cell, only: str) -> bool:
    """Whether a cell is meant by PROGRAM/DATASET/LOSS, of which parts may be left empty."""
    wanted = [*only.split("/"), "", ""]
    return all(want in ("", part) for want, part in zip(wanted, cell, strict=False))


def write_whole(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    os.replace(part, file)


def make(cell: Cell, here: str | None = None, longer: float = 1.0) -> dict[str, Any]:
    """Run, judge and write one cell. `here`: a Python that has the program, in place of its own environment. `longer`:
    how many times the usual time the program is given."""
    program, data = PROGRAMS[cell.program], prepare(cell.dataset, cell.loss)
    program = replace(program, budget=longer * program.budget, limit=longer * program.limit)
    began = time.time()
    content: dict[str, Any] = {
        "program": cell.program, "dataset": cell.dataset, "loss": cell.loss, "digest": data.digest,
        "notes": list(data.notes), "rows": len(data.X), "columns": data.X.shape[1], "versions": {}, "graded": _commit(),
    }  # fmt: skip
    asking = Asking(cell, program, data.X, data.y, here)
    first = asking.run(None)
    content["versions"] = first["versions"]
    if len(first["answers"]) < len(SHARES) or not all(
        np.isfinite(one["coef"]).all() for one in first["answers"]
    ):
        content |= {"status": "no answer", "why": first.get("error", "coefficients that are not finite")}
    else:
        content |= walk(
            cell,
            program,
            [Judged(cell, program, data.X, data.y, s, first) for s in range(len(SHARES))],
            asking,
        )
    content["minutes"] = (time.time() - began) / 60
    write_whole(cell.file, json.dumps(content, indent=1) + "\n")
    return content


def walk(cell: Cell, program: Program, judged: list[Judged], asking: Asking) -> dict[str, Any]:
    """From the tolerance as shipped to looser ones while the answer is good enough, or to tighter ones until it is;
    then to ever tighter ones, until the answer is so good that the problem must be the same."""

    def excess(tolerance: float) -> float:
        run = asking.run(tolerance)
        return max(one.add(run, "ladder") for one in judged)

    start, rungs = round(np.log10(program.default_of(cell.loss))), list(program.rungs)
    shipped = max(one.found["default"]["excess_upper"] for one in judged)
    best, needed = shipped, None
    tried = start
    if shipped <= GOOD:
        needed = 10.0**start
        for k in [k for k in reversed(rungs) if k > start]:
            value = excess(10.0**k)
            best = min(best, value)
            if value > GOOD or asking.spent > program.budget:
                break
            needed = 10.0**k
    else:
        for k in [k for k in rungs if k < start]:
            value, tried = excess(10.0**k), k
            best = min(best, value)
            if value <= GOOD:
                needed = 10.0**k
                break
            if asking.spent > program.budget:
                break
    for k in [k for k in rungs if k < tried][1::2]:
        if best <= SAME or asking.spent > 2 * program.budget:
            break
        best = min(best, excess(10.0**k))
    recommended = program.recommended.get(cell.loss)
    if recommended is not None:
        run = asking.run(recommended, patience=False)
        for one in judged:
            one.add(run, "recommended")
    same = all(one.closest <= SAME for one in judged)
    return {
        "status": "same problem" if same else "not reached",
        "strengths": [one.written() for one in judged],
        "needed": needed,
    }


def _commit() -> str:
    """The last commit of the library that grades."""
    words = ["git", "-C", str(WORKERS), "log", "-1", "--format=%h", "--", ":/src"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


class Judged:
    """One strength of a cell: the certified optimum, and the answers beside it."""

    def __init__(
        self, cell: Cell, program: Program, X: Array, y: Array, s: int, first: dict[str, Any]
    ) -> None:
        self.s, self.cell, self.convention = s, cell, program.losses[cell.loss]
        answer = first["answers"][s]
        self.problem = problem_of(self.convention, cell.loss, X, y, answer["alpha"])
        numbers, grade_ = grade(self.problem, *self._read(answer))
        self.null, self.best = numbers["null"], grade_.best_objective
        self.floor = numbers["objective"] - numbers["excess_upper"] * self.null
        self.zero, self.nonzero = grade_.proven_zero[: X.shape[1]], grade_.proven_nonzero[: X.shape[1]]
        plain = objective(self.problem, *self._read(answer))
        if abs(plain - numbers["objective"]) > 1e-10 * (abs(plain) + self.null):
            raise AssertionError(f"{cell.key}: plain NumPy finds {plain!r}, grade {numbers['objective']!r}")
        self.found: dict[str, Any] = {
            "default": numbers | {"seconds": first["seconds"], "warned": first["warned"]},
            "ladder": [],
        }
        file = cell.certificate(SHARES[s])
        file.parent.mkdir(parents=True, exist_ok=True)
        grade_.certificate.save(file)

    def _read(self, answer: dict[str, Any]) -> tuple[Array, Array | None]:
        free = self.convention.fit_intercept or self.convention.constant_penalised
        return answer["coef"], np.asarray(answer["intercept"]) if free else None

    def add(self, run: dict[str, Any], where: str) -> float:
        """Judge one more answer; its excess at most, infinite where there is none at this strength."""
        if len(run["answers"]) <= self.s or not np.isfinite(run["answers"][self.s]["coef"]).all():
            return np.inf
        answer = run["answers"][self.s]
        if abs(answer["alpha"] / self.problem.theirs - 1.0) > 1e-9:
            return np.inf  # a path that has ended elsewhere: another problem
        coef, intercept = self._read(answer)
        value, chosen = objective(self.problem, coef, intercept), coef.any(axis=0)
        rung = {
            "tolerance": run["tolerance"],
            "excess_lower": max(0.0, (value - self.best) / self.null - ROUNDING),
            "excess_upper": max(0.0, (value - self.floor) / self.null + ROUNDING),
            "selected": int(chosen.sum()),
            "wrong_zero": int(np.sum(self.nonzero & ~chosen)),
            "wrong_nonzero": int(np.sum(self.zero & chosen)),
            "seconds": run["seconds"],
        }
        if where == "ladder":
            self.found["ladder"].append(rung)
        else:
            self.found[where] = rung
        return float(rung["excess_upper"])

    @property
    def closest(self) -> float:
        others = [self.found[name] for name in ("default", "recommended") if name in self.found]
        return float(min(one["excess_upper"] for one in [*others, *self.found["ladder"]]))

    def written(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.cell.certificate(SHARES[self.s]).read_bytes()).hexdigest()
        return {
            "share": SHARES[self.s], "theirs": self.problem.theirs, "alpha": self.problem.alpha, **self.found,
            "closest": self.closest, "certificate": digest,
        }  # fmt: skip


class Asking:
    """A program asked for one problem, one tolerance after another."""

    def __init__(self, cell: Cell, program: Program, X: Array, y: Array, here: str | None) -> None:
        self.cell, self.program, self.X, self.y, self.here = cell, program, X, y, here
        one = problem_of(program.losses[cell.loss], cell.loss, X, y, 1.0)
        self.alphas = [share * alpha_max(one) / one.alpha for share in SHARES]
        self.spent = 0.0  # processor seconds after the first answer, which may have been compiled

    def run(self, tolerance: float | None, patience: bool = True, limit: int | None = None) -> dict[str, Any]:
        """Its answer at both strengths. `patience`: with the limits on its iterations out of the way, or at `limit`."""
        X, y = self.X, self.y
        with tempfile.TemporaryDirectory(prefix="tasksieve-audit-") as name:
            folder = Path(name)
            if self.program.worker.endswith(".R"):
                np.asarray(X, dtype=float).ravel(order="F").tofile(folder / "X.bin")
                np.asarray(y, dtype=float).ravel(order="F").tofile(folder / "y.bin")
                lines = [self.cell.loss, f"{X.shape[0]} {X.shape[1]} {1 if y.ndim == 1 else y.shape[1]}"]
                lines += [" ".join(map(repr, SHARES)), repr(tolerance or 0), str(int(patience))]
                lines += [" ".join(map(repr, self.alphas))]
                (folder / "job.txt").write_text("\n".join(lines) + "\n")
            else:
                np.save(folder / "X.npy", np.asfortranarray(X))
                np.save(folder / "y.npy", y)
                asked = {"loss": self.cell.loss, "shares": list(SHARES), "alphas": self.alphas}
                (folder / "job.json").write_text(
                    json.dumps(asked | {"tolerance": tolerance, "patient": patience, "limit": limit})
                )
            said = Worker.of(self.program, self.here).answer(folder, self.program.limit)
            if not (folder / "answer.json").exists():
                self.spent = np.inf
                return {"tolerance": tolerance, "versions": {}, "answers": [], "error": said[:300]}
            run: dict[str, Any] = json.loads((folder / "answer.json").read_text())
            for s, answer in enumerate(run["answers"]):
                answer["coef"] = np.fromfile(folder / f"coef-{s}.bin").reshape(-1, X.shape[1])
        if tolerance is None:
            self.alphas = [answer["alpha"] for answer in run["answers"]]  # of its own path
        else:
            self.spent += run["seconds"]
        return run


class Worker:
    """A program waiting for jobs in its environment; one at a time, and ended when another program's turn comes."""

    now: ClassVar[Worker | None] = None

    def __init__(self, program: Program, here: str | None) -> None:
        self.name, script = program.name, WORKERS / program.worker
        if program.worker.endswith(".R"):
            first = rscript("glmnet")
        else:
            first = here or str(python_of(program.environment or program.name))
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by stop)
        self.process = subprocess.Popen(
            [first, str(script)],
            env=os.environ | quiet,
            stdin=subprocess.PIPE,
            stdout=self.said,
            stderr=self.said,
            text=True,
        )

    @classmethod
    def of(cls, program: Program, here: str | None) -> Worker:
        if cls.now is None or cls.now.name != program.name or cls.now.process.poll() is not None:
            cls.stop()
            cls.now = cls(program, here)
        return cls.now

    @classmethod
    def stop(cls) -> None:
        if cls.now is not None:
            cls.now.process.kill()
            cls.now.process.wait()
            cls.now.said.close()
            cls.now = None

    def answer(self, folder: Path, limit: float) -> str:
        """Wait for the job's end, or for the limit; what a program said last if it has ended by itself."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        until = time.monotonic() + limit
        while not (folder / "done").exists():
            if self.process.poll() is not None:
                self.said.seek(0)
                return (self.said.read().strip().splitlines() or ["it has ended without a word"])[-1]
            if time.monotonic() > until:
                self.stop()
                return f"no answer within {limit:g} s"
            time.sleep(0.05)
        return ""
