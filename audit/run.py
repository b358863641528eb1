"""The audit: how far from optimal are the answers of programs for sparse models?

    python audit/run.py                              # everything; what is there already is not run again
    python audit/run.py --only glmnet/diabetes/squared
    python audit/run.py --only skglm --only /lung    # a program; a data set (or a loss: //cox) with all programs
    python audit/run.py --longer                     # what stayed away from the optimum, with ten times the time
    python audit/run.py --list                       # cells, and which of them are there

Each cell (program / data set / loss) is one file in audit/cells/, written whole or not at all, so that a run may be
stopped at any time. `--again` makes cells anew that are there. Then `check.py`, `recompute.py`, `results.py` and
`page.py`, see audit/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from cells import Cell, Worker, all_cells, make, matches
from environments import NotInstalled


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="PROGRAM/DATASET/LOSS",
        help="several may be given, in the order to run",
    )
    parser.add_argument("--again", action="store_true", help="make cells anew that are there")
    parser.add_argument(
        "--longer",
        action="store_true",
        help="those that stayed away from the optimum, with ten times the time",
    )
    parser.add_argument(
        "--here",
        action="store_true",
        help="run the programs in this Python, not in environments of their own",
    )
    parser.add_argument("--list", action="store_true", help="only say what would run")
    args = parser.parse_args(words)
    cells = list(
        dict.fromkeys(cell for one in args.only or [""] for cell in all_cells() if matches(cell, one))
    )
    if not cells:
        parser.error("no such cell; python audit/run.py --list names them")
    if args.list:
        for cell in cells:
            print("there " if cell.file.exists() else "      ", cell.key)
        return
    if args.longer:
        todo = [cell for cell in cells if cell.file.exists() and _status(cell) == "not reached"]
    else:
        todo = [cell for cell in cells if args.again or not cell.file.exists()]
    say(f"{len(cells)} cells, {len(cells) - len(todo)} of them there already")
    absent: dict[str, str] = {}
    began, done = time.time(), 0
    for left, cell in zip(range(len(todo), 0, -1), todo, strict=True):
        if cell.program in absent:
            continue
        hours = (
            f"{(time.time() - began) / done * left / 3600:.2f} hours left"
            if done
            else "hours left: not known yet"
        )
        try:
            content = make(cell, sys.executable if args.here else None, 10.0 if args.longer else 1.0)
        except NotInstalled as error:
            absent[cell.program] = str(error)
            say(f"{cell.program} is not run: {error}")
            continue
        except AssertionError as error:  # not written: somebody has to look at it
            say(f"{cell.key}: NOT WRITTEN: {error}")
            continue
        done += 1
        say(f"{cell.key}: {_in_short(content)}; {left - 1} to go, {hours}")
    Worker.stop()
    for name, why in absent.items():
        say(f"not run: {name}: {why}")


def _status(cell: Cell) -> str:
    return str(json.loads(cell.file.read_text())["status"])


def _in_short(content: dict) -> str:
    if "strengths" not in content:
        return f"{content['status']}: {content['why']}"
    worst = max(content["strengths"], key=lambda one: one["default"]["excess_lower"])["default"]
    return (
        f"{content['status']}, as shipped at least {worst['excess_lower']:.1e} above the optimum, at most "
        f"{worst['excess_upper']:.1e}, {worst['wrong_zero']} + {worst['wrong_nonzero']} features wrong; "
        f"tolerance needed {content['needed']}"
    )


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
