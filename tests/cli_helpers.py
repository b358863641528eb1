"""What the tests of the command line share: running it in this process, tables to run it on, a stand-in report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from holes import holes, page_holes
from typer.main import get_command

from tasksieve.cli.app import app


@dataclass
class Result:
    code: int
    out: str
    err: str


@cache
def command() -> Any:
    """The commands with their options, built once: that takes half the time of a small fit."""
    return get_command(app)


class CommandLine:
    """Runs `tasksieve ...` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: Any, code: int | None = 0) -> Result:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            command()([str(word) for word in words], prog_name="tasksieve")
        out, err = self.capsys.readouterr()
        result = Result(int(end.value.code or 0), out, err)
        assert "Traceback" not in err, err
        if code is not None:
            assert result.code == code, f"exit code {result.code}\n{out}\n{err}"
        if result.code == 0 and words[0] in LEAVE_RUNS and not {"--help", "-h"} & set(words):
            assert not (found := run_holes(words, out)), found
        return result


LEAVE_RUNS = ("fit", "path", "stability", "compare", "transfer", "stream")


def run_holes(words: tuple[Any, ...], out: str) -> list[str]:
    """Holes in what a command has printed, and in the paragraph and the page of the run that it has left."""
    found = [hole for line in out.splitlines() for hole in holes(line)]
    flags = [k for k, word in enumerate(words[:-1]) if word in ("-o", "--out")]
    folder = Path(str(words[flags[-1] + 1])) if flags else Path()
    if flags and (folder / "methods.txt").is_file():
        found += [hole for line in (folder / "methods.txt").read_text("utf-8").splitlines() for hole in holes(line)]
    if flags and (folder / "report.html").is_file():
        found += page_holes((folder / "report.html").read_text("utf-8"))
    return found


def regression_csv(file: Path, n: int = 90, d: int = 6, seed: int = 0) -> Path:
    """Three regions; column a matters everywhere, b in the north, and so does the city."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    region, city = rng.choice(["north", "south", "east"], n), rng.choice(["Bonn", "Oslo"], n)
    y = 2 * X[:, 0] - (region == "north") * X[:, 1] + 3.0 * (city == "Oslo") + 0.1 * rng.standard_normal(n)
    names = [chr(ord("a") + j) if j < 20 else f"v{j}" for j in range(d)]
    lines = [",".join(["region", "city", *names, "y"])]
    for i in range(n):
        lines.append(",".join([region[i], city[i], *(f"{value:.6f}" for value in X[i]), f"{y[i]:.6f}"]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def classification_csv(file: Path, n: int = 120, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    X, site = rng.standard_normal((n, 4)), rng.choice([1, 2], n)
    sick = np.where(X[:, 0] * site + 0.3 * rng.standard_normal(n) > 0, "sick", "well")
    lines = ["site,a,b,c,d,state"]
    for i in range(n):
        lines.append(",".join([str(site[i]), *(f"{value:.6f}" for value in X[i]), sick[i]]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
