"""For every program and loss its tightest answer on one small data set, by the same workers and words as the audit.

    python audit/conversions.py                # those that are not there yet
    python audit/conversions.py --only skglm   # a program again

Kept in audit/conversions.json: a test grades all of them without the programs. Each must be optimal to `SAME`, or
its problem is another one than the one that it is graded in.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cells import SAME, Asking, Cell, Worker, matches, write_whole
from environments import NotInstalled
from judge import problem_of
from programs import PROGRAMS, SHARES

FILE = Path(__file__).resolve().parent / "conversions.json"
Array = np.ndarray[Any, Any]


def small(loss: str) -> tuple[Array, Array]:
    """Sixty rows of eight columns, in the form of the prepared data sets; ties among times."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) + 0.5 * rng.standard_normal((60, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = X[:, 0] - 0.7 * X[:, 1] + 0.5 * rng.standard_normal(60)
    if loss == "squared":
        y = score + 3.0
    elif loss == "grouped":
        y = np.column_stack([score + 3.0, X[:, 2] + rng.standard_normal(60)])
    elif loss == "logistic":
        y = (score > 0.3).astype(int)
    elif loss == "multinomial":
        y = np.digitize(score, [-0.5, 0.7])
    elif loss == "poisson":
        y = rng.poisson(np.exp(0.5 * score)).astype(float)
    else:
        y = np.column_stack([np.ceil(9.0 * rng.exponential(np.exp(-0.5 * score))), rng.random(60) < 0.7])
    return np.asfortranarray(X), y


def excess(cell: Cell, X: Array, y: Array, answer: dict[str, Any]) -> float:
    """How far above the optimum at most, of the objective at zero."""
    convention = PROGRAMS[cell.program].losses[cell.loss]
    free = convention.fit_intercept or convention.constant_penalised
    intercept = np.asarray(answer["intercept"]) if free else None
    problem = problem_of(convention, cell.loss, X, y, answer["alpha"])
    return float(problem.grade(np.asarray(answer["coef"]), intercept).relative_excess[1])


def tightest(cell: Cell) -> dict[str, Any]:
    """Tolerances one after another, until the answer is so good that the problem must be the same."""
    X, y = small(cell.loss)
    program = PROGRAMS[cell.program]
    asking = Asking(cell, program, X, y, None)
    first, best = asking.run(None), {"excess": np.inf}
    if len(first["answers"]) < len(SHARES):
        raise NotInstalled(f"no answer: {first.get('error')}")
    for k in [k for k in program.rungs if k <= -6]:
        run = asking.run(10.0**k)
        if run["answers"]:
            answer = run["answers"][0]
            found = excess(cell, X, y, answer)
            if found < best["excess"]:
                best = {
                    "program": cell.program, "loss": cell.loss, "versions": run["versions"], "tolerance": 10.0**k,
                    "alpha": answer["alpha"], "coef": answer["coef"].tolist(), "intercept": answer["intercept"],
                    "excess": found,
                }  # fmt: skip
        if best["excess"] <= 0.1 * SAME or asking.spent > 4 * program.budget:
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="PROGRAM//LOSS")
    only = parser.parse_args().only
    found = (
        {(one["program"], one["loss"]): one for one in json.loads(FILE.read_text())} if FILE.exists() else {}
    )
    pairs = [Cell(name, "", loss) for name, program in PROGRAMS.items() for loss in program.losses]
    for cell in pairs:
        pair = cell.program, cell.loss
        if not any(matches(cell, one) for one in only) if only else pair in found:
            continue
        try:
            found[pair] = tightest(cell)
        except NotInstalled as error:
            print(f"{cell.program}, {cell.loss}: {error}", file=sys.stderr)
            continue
        print(f"{cell.program}, {cell.loss}: {found[pair]['excess']:.1e}", file=sys.stderr, flush=True)
        kept = [found[one.program, one.loss] for one in pairs if (one.program, one.loss) in found]
        write_whole(FILE, json.dumps(kept) + "\n")
    Worker.stop()


if __name__ == "__main__":
    main()
