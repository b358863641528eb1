"""``python -m tests.fuzz``: judge some fits, print each violation with the call that repeats it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does: what all tests share lies there
os.environ.setdefault("TASKSIEVE_NUM_THREADS", "1")

from .cases import KINDS, NAMES, STORAGES, make_case
from .judge import Tally, examine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    kinds = sorted({kind for names in KINDS.values() for kind in names})
    parser.add_argument("--only", help=f"one of {', '.join((*NAMES, *kinds, *STORAGES))}")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    options = parser.parse_args()
    tally, number = Tally(), options.start
    while tally.fits < (1 if options.case is not None else options.fits):
        case = make_case(options.seed, number if options.case is None else options.case)
        number += 1
        if options.case is None and options.only not in (None, case.name, case.kind, case.storage):
            continue
        before = len(tally.violations)
        examine(case, tally)
        if options.verbose or options.case is not None:
            print(case)
        for violation in tally.violations[before:]:
            print(violation, flush=True)
    print(tally)
    return int(bool(tally.violations))


if __name__ == "__main__":
    sys.exit(main())
