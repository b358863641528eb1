"""Have the verifier prove the certificates of cells: all in floating point, the smaller half in fractions, too.

    python audit/check.py                 # what has not been checked yet
    python audit/check.py --only glmnet/diabetes/squared --exact

`verify.py` is loaded as the file that it is, with nothing of the library around it. What it says is kept in
audit/cells/*.check.json.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from cells import Cell, made_cells, matches, write_whole
from datasets import prepare
from programs import PROGRAMS, SHARES

VERIFIER = Path(__file__).resolve().parent.parent / "src" / "tasksieve" / "verify.py"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="PROGRAM/DATASET/LOSS")
    parser.add_argument("--exact", action="store_true", help="in fractions, whatever the size")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="begin no further exact check after so long"
    )
    args = parser.parse_args(words)
    cells = [
        cell for cell in made_cells() if args.only is None or any(matches(cell, one) for one in args.only)
    ]
    sizes = {cell: _size(cell) for cell in cells}
    middle = np.median(list(sizes.values())) if sizes else 0.0
    verifier, began = load_verifier(), time.monotonic()
    for cell in sorted(cells, key=lambda cell: sizes[cell]):
        exact = args.exact or (sizes[cell] <= middle and (time.monotonic() - began) / 60 < args.minutes)
        check(cell, verifier, exact)


def load_verifier() -> ModuleType:
    """verify.py by its path: not as a part of the package."""
    spec = importlib.util.spec_from_file_location("verifier_alone", VERIFIER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def certified_data(cell: Cell) -> tuple[Any, Any]:
    """X and y as the certificates of a cell are about them."""
    data = prepare(cell.dataset, cell.loss)
    X, y = data.X, data.y
    if PROGRAMS[cell.program].losses[cell.loss].constant_penalised:
        X = np.column_stack([X, np.ones(len(X))])
    if cell.loss == "cox":
        labels = np.zeros(len(y), dtype=[("event", bool), ("time", float)])
        labels["event"], labels["time"] = y[:, 1] == 1.0, y[:, 0]
        y = labels
    return np.ascontiguousarray(X), y


def check(cell: Cell, verifier: ModuleType, exact: bool) -> dict[str, Any]:
    """What the verifier says of both strengths of a cell."""
    file = cell.file.with_suffix(".check.json")
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    X, y = certified_data(cell)
    for share in SHARES:
        certificate = cell.certificate(share)
        digest = hashlib.sha256(certificate.read_bytes()).hexdigest()
        found = known.get(f"{share:g}", {})
        if found.get("digest") != digest:
            found = {"digest": digest}
        for name in ["floating", *(["exact"] if exact else [])]:
            if name not in found:
                start = time.process_time()
                verdict = verifier.verify(str(certificate), X, y, exact=name == "exact")
                found[name], found[f"{name}_seconds"] = bool(verdict.proved), time.process_time() - start
                if not verdict.proved:
                    print(f"{cell.key}: {verdict.words}", file=sys.stderr, flush=True)
        known[f"{share:g}"] = found
    write_whole(file, json.dumps(known, indent=1) + "\n")
    return known


def _size(cell: Cell) -> int:
    content = json.loads(cell.file.read_text())
    return int(content["rows"] * content["columns"])


if __name__ == "__main__":
    main()
