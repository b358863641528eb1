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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import DATASETS, prepare
from environments import NotInstalled, python_of, rscript
from judge import alpha_max, grade, objective, problem_of, read_answer
from programs import PROGRAMS, SHARES, Convention, Program

CELLS = Path(os.environ.get("TASKSIEVE_AUDIT_CELLS", Path(__file__).resolve().parent / "cells"))
WORKERS = Path(__file__).resolve().parent / "workers"
SAME = 1e-8  # the tightest answer of a program must be this close to our optimum, or its problem is another one
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
    """Every program with every data set and loss that it has."""
    return [
        Cell(program, one.name, loss)
        for one in DATASETS.values()
        for loss in one.losses
        for program, found in PROGRAMS.items()
        if loss in found.losses
    ]


def write_whole(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    os.replace(part, file)


def make(cell: Cell, here: str | None = None) -> dict[str, Any]:
    """Run, judge and write one cell. `here`: a Python that has the program, in place of its own environment."""
    program, data = PROGRAMS[cell.program], prepare(cell.dataset, cell.loss)
    convention = program.losses[cell.loss]
    n, outputs = len(data.X), _outputs(cell.loss, data.y)
    largest = alpha_max(convention, problem_of(convention, cell.loss, data.X, data.y, 1.0))
    alphas = [share * largest / convention.alpha(1.0, n, outputs) for share in SHARES]
    ladder = [10.0**k for k in program.rungs]
    recommended = program.recommended.get(cell.loss)
    tolerances = [None, *([] if recommended is None else [recommended]), *ladder]
    began = time.time()
    runs = run_worker(program, cell.loss, data.X, data.y, alphas, tolerances, here)
    content: dict[str, Any] = {
        "program": cell.program, "dataset": cell.dataset, "loss": cell.loss, "digest": data.digest,
        "notes": list(data.notes), "rows": n, "columns": data.X.shape[1], "outputs": outputs,
        "versions": runs[0]["versions"] if runs else {},
    }  # fmt: skip
    if not runs or not runs[0]["answers"]:
        said = runs[0].get("error", "no answer") if runs else f"no answer within {program.limit:g} s"
        content |= {"status": "no answer", "why": said}
    else:
        content |= judge(cell, program, convention, data.X, data.y, runs)
    content["minutes"] = (time.time() - began) / 60
    write_whole(cell.file, json.dumps(content, indent=1) + "\n")
    return content


def judge(
    cell: Cell, program: Program, convention: Convention, X: Array, y: Array, runs: list[dict[str, Any]]
) -> dict[str, Any]:
    """Grades at every strength: as shipped, as recommended, at the tightest tolerance; and the ladder between."""
    n, outputs = len(X), _outputs(cell.loss, y)
    recommended = program.recommended.get(cell.loss)
    strengths = []
    for s, share in enumerate(SHARES):
        graded: dict[str, Any] = {}
        theirs = runs[0]["answers"][s]["alpha"]
        problem = problem_of(convention, cell.loss, X, y, convention.alpha(theirs, n, outputs))
        ladder = []
        for run in runs:
            if len(run["answers"]) <= s or not np.isfinite(run["answers"][s]["coef"]).all():
                continue
            answer = run["answers"][s]
            # a path's own grid may end elsewhere at another tolerance: only the same strength is compared
            if abs(answer["alpha"] / theirs - 1.0) > 1e-9:
                continue
            coef, intercept = read_answer(convention, answer["coef"], answer["intercept"])
            if not graded:
                numbers, found = grade(problem, coef, intercept)
                graded["default"] = numbers | {"seconds": run["seconds"], "warned": run["warned"]}
                floor, null = numbers["objective"] - numbers["excess_upper"] * numbers["null"], numbers["null"]
                best = found.best_objective
                same = objective(problem, coef, intercept)
                if abs(same - numbers["objective"]) > 1e-10 * (abs(same) + null):
                    raise AssertionError(f"{cell.key}: plain NumPy finds {same!r}, grade {numbers['objective']!r}")
                file = cell.certificate(share)
                file.parent.mkdir(parents=True, exist_ok=True)
                found.certificate.save(file)
                continue
            value = objective(problem, coef, intercept)
            excess = (value - best) / null, (value - floor) / null
            if run["tolerance"] == recommended and "recommended" not in graded:
                graded["recommended"] = grade(problem, coef, intercept)[0] | {"tolerance": recommended}
                continue
            ladder.append([run["tolerance"], max(0.0, excess[0]), max(0.0, excess[1]), int(coef.any(axis=0).sum())])
            tightest = coef, intercept, run["tolerance"]
        if ladder:
            coef, intercept, tol = tightest
            graded["tightest"] = grade(problem, coef, intercept)[0] | {"tolerance": tol}
        best_of = min([one["excess_upper"] for one in graded.values()] + [rung[2] for rung in ladder])
        strengths.append(
            {
                "share": share, "alpha": problem.options["alpha"], "columns": problem.X.shape[1], **graded, "ladder": ladder,
                "closest": best_of, "certificate": hashlib.sha256(cell.certificate(share).read_bytes()).hexdigest(),
            }
        )  # fmt: skip
    same = all(one["closest"] <= SAME for one in strengths)
    return {"status": "same problem" if same else "undecided", "strengths": strengths, "needed": needed(strengths)}


def needed(strengths: list[dict[str, Any]]) -> float | None:
    """The largest power of ten of the tolerance from which on every answer, at both strengths, is good enough."""
    found = None
    ladders = [{rung[0]: rung[2] for rung in one["ladder"]} for one in strengths]
    for tol in sorted(set.intersection(*(set(one) for one in ladders)) if ladders else []):
        if any(one[tol] > GOOD for one in ladders):
            break
        found = tol
    return found


def _outputs(loss: str, y: Array) -> int:
    return y.shape[1] if loss == "grouped" else len(np.unique(y)) if loss == "multinomial" else 1


def run_worker(
    program: Program, loss: str, X: Array, y: Array, alphas: list[float], tolerances: list[float | None],
    here: str | None = None,
) -> list[dict[str, Any]]:
    """Answers of one program in its environment, tolerance by tolerance, until its time is up."""
    script = WORKERS / program.worker
    with tempfile.TemporaryDirectory(prefix="tasksieve-audit-") as name:
        folder = Path(name)
        if program.worker.endswith(".R"):
            first = rscript("glmnet")
            np.asarray(X, dtype=float).ravel(order="F").tofile(folder / "X.bin")
            np.asarray(y, dtype=float).ravel(order="F").tofile(folder / "y.bin")
            lines = [loss, f"{X.shape[0]} {X.shape[1]} {1 if y.ndim == 1 else y.shape[1]}"]
            lines += [" ".join(map(repr, SHARES)), " ".join(repr(t or 0) for t in tolerances)]
            (folder / "job.txt").write_text("\n".join(lines) + "\n")
        else:
            first = here or str(python_of(program.environment or program.name))
            np.save(folder / "X.npy", np.asfortranarray(X))
            np.save(folder / "y.npy", y)
            asked = {"loss": loss, "shares": list(SHARES), "alphas": alphas, "tolerances": tolerances}
            (folder / "job.json").write_text(json.dumps(asked))
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        said = folder / "said"
        with said.open("w") as output:
            process = subprocess.Popen(
                [first, str(script), name], env=os.environ | quiet, stdout=output, stderr=output
            )
            try:
                process.wait(program.limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        runs = []
        for k in range(len(tolerances)):
            if not (folder / f"answer-{k}.json").exists():
                break
            run = json.loads((folder / f"answer-{k}.json").read_text())
            for s, answer in enumerate(run["answers"]):
                coef = np.fromfile(folder / f"coef-{k}-{s}.bin")
                answer["coef"] = coef.reshape(-1, X.shape[1])
            runs.append(run)
        if not runs and process.returncode > 0:
            last = said.read_text().strip().splitlines()[-1:] or ["it has ended without a word"]
            runs = [{"versions": {}, "answers": [], "error": last[0][:300]}]
        return runs


