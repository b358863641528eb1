"""Data on which other programs are run to their tightest tolerance, and a grade of what they answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts

#: relative gap at which an answer is of the same problem
SAME = 1e-8


class Rows:
    """Columns on different scales, off their means; labels of every kind; ties among times."""

    def __init__(self, n: int = 60, d: int = 12, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.d = n, d
        self.X = rng.standard_normal((n, d)) * np.linspace(0.5, 3.0, d) + 1.0
        self.y = self.X[:, 0] - self.X[:, 1] + rng.standard_normal(n) + 3.0
        self.Y = np.column_stack([self.y, self.X[:, 2] + 2.0 * rng.standard_normal(n)])
        self.two = (self.y > np.median(self.y)).astype(int)
        self.three = np.digitize(self.y, np.quantile(self.y, [0.3, 0.7]))
        self.weights = rng.uniform(0.5, 2.0, n)
        self.offset = 0.3 * rng.standard_normal(n)
        self.time = np.ceil(3.0 * np.exp(0.5 * (self.X[:, 1] - self.X[:, 0])) * rng.exponential(size=n))
        self.event = rng.uniform(size=n) < 0.7
        self.factors = np.linspace(0.5, 2.0, d)

    @property
    def survival(self) -> Any:
        return ts.survival(self.time, self.event)


def same(found: Any) -> None:
    """The answer is optimal, and nothing beyond rounding is proved to be wrong with it."""
    grades = found if isinstance(found, list | tuple) or hasattr(found, "grades") else [found]
    for one in grades:
        assert one.relative_gap < SAME
        assert one.relative_excess[0] < SAME
        assert not one.wrong_zero.any()


@cache
def peer_python(module: str) -> str:
    """A Python that has a module: this one, or that of the environment variable TASKSIEVE_PEERS (for programs that need
    older dependencies); else the test is skipped."""
    for python in filter(None, (sys.executable, os.environ.get("TASKSIEVE_PEERS"))):
        if not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode:
            return python
    pytest.skip(f"{module} is not installed, neither here nor in the Python of TASKSIEVE_PEERS")


def ask_peer(module: str, script: str, folder: Path, **given: Any) -> dict[str, Any]:
    """Run a script there: it finds arrays in `given`, and leaves arrays in `found`."""
    python = peer_python(module)
    np.savez(folder / "given.npz", **given)
    whole = (
        "import numpy as np, sys\nfrom pathlib import Path\nwhere = Path(sys.argv[1])\n"
        f"given, found = dict(np.load(where / 'given.npz')), {{}}\n{script}\nnp.savez(where / 'found.npz', **found)\n"
    )
    (folder / "script.py").write_text(whole)
    subprocess.run([python, str(folder / "script.py"), str(folder)], check=True, capture_output=True)
    with np.load(folder / "found.npz") as file:
        return dict(file)


@cache
def have_r(package: str) -> bool:
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", f'quit(status = !requireNamespace("{package}", quietly = TRUE))']
    return not subprocess.run(command, capture_output=True, check=False).returncode
