"""Small runs of every kind of model, with all that a run folder can hold: tables, and the words that fit them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from plink_files import draw_counts, write_plink

from tasksieve.tables import write_arrays

N_ROWS = 48
LETTERS = ("a", "b", "c", "d")


def rows_of_table(n: int = N_ROWS, seed: int = 0) -> dict[str, list[Any]]:
    """Columns of words, numbers and dates; outcomes of every kind depend on a and b."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(LETTERS)))
    score = X[:, 0] - 0.7 * X[:, 1] + 0.3 * rng.standard_normal(n)
    pick = lambda words: [words[k] for k in rng.integers(len(words), size=n).tolist()]  # noqa: E731
    first = date(2020, 1, 1)
    return {
        "who": [("n", "s")[i % 2] for i in range(n)],
        "city": pick(("Bonn", "Bonn", "Oslo")),
        "colour": pick(("red", "green", "blue")),
        "when": [str(first + timedelta(days=int(day))) for day in rng.integers(900, size=n)],
        **{name: [f"{value:.4f}" for value in X[:, j]] for j, name in enumerate(LETTERS)},
        "y": [f"{value:.4f}" for value in 2.0 * score],
        "z": [f"{value:.4f}" for value in score + X[:, 2]],
        "state": ["sick" if value > 0.1 else "well" for value in score],
        "flag": ["1" if value > -0.2 else "0" for value in score],
        "grade": [("low", "mid", "high")[int(np.searchsorted((-0.6, 0.6), value))] for value in score],
        "species": [("ape", "bee", "cat")[int(np.argmax(row))] for row in X[:, :3] + rng.normal(0, 0.5, (n, 3))],
        "count": [str(int(k)) for k in rng.poisson(np.exp(0.5 + 0.4 * X[:, 0]))],
        "size": [f"{value:.4f}" for value in np.exp(0.4 * score)],
        "o": [f"{value:.3f}" for value in 0.2 * rng.standard_normal(n)],
        "w": [str(1 + int(k)) for k in rng.integers(3, size=n)],
        "time": [f"{value:.4f}" for value in np.exp(-0.6 * score + 0.2 * rng.standard_normal(n))],
        "event": [str(int(k)) for k in rng.random(n) < 0.75],
        "ward": pick(("I", "II")),
    }


def write_csv(file: Path, columns: dict[str, list[Any]], *names: str) -> Path:
    """Some of the columns."""
    with open(file, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(zip(*(columns[name] for name in names), strict=True))
    return file


def with_holes(columns: dict[str, list[Any]], **rows: list[int]) -> dict[str, list[Any]]:
    """Without values of some columns in some rows."""
    return columns | {name: ["" if i in own else value for i, value in enumerate(columns[name])]
                      for name, own in rows.items()}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A run: its table (the columns beside the features), the words of the fit, and how it is asked for predictions."""

    columns: tuple[str, ...]
    words: tuple[str, ...]
    features: tuple[str, ...] = ("city", "a", "b", "c")
    holes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    asked: tuple[str, ...] = ()  # of predict, beside the table
    made: Callable[[Path], list[Any]] | None = None  # writes other data, and gives what names them
    command: str = "fit"

    def write(self, folder: Path) -> list[Any]:
        """The data, and the words that name them."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.made is not None:
            return self.made(folder)
        columns = with_holes(rows_of_table(), **{name: list(rows) for name, rows in self.holes})
        return [write_csv(folder / "data.csv", columns, *self.columns, *self.features)]

    def fit(self, folder: Path) -> list[Any]:
        """The command that leaves the run in ``folder/run``."""
        end = ("--out", folder / "run", "--no-report", "--quiet", "--threads", "1")
        return [self.command, *self.write(folder), *self.words, *end]


def two_files(folder: Path) -> list[Any]:
    """A file for each task, of which one lacks a column."""
    columns = rows_of_table()
    for k, (name, own) in enumerate((("north", ("y", "city", "a", "b", "c")), ("south", ("y", "city", "a", "b")))):
        half = {key: values[k::2] for key, values in columns.items()}
        write_csv(folder / f"{name}.csv", half, *own)
    return [folder / "north.csv", folder / "south.csv"]


def matrix(folder: Path) -> list[Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    write_arrays(folder / "data.npz", {"X": X, "y": X[:, 0] - X[:, 1], "task": np.arange(40) % 2})
    return [folder / "data.npz"]


def targets_of_matrix(folder: Path) -> list[Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    write_arrays(folder / "data.npz", {"X": X, "y": X[:, :2] + 0.1 * rng.standard_normal((40, 2))})
    return [folder / "data.npz"]


def grouped(folder: Path) -> list[Any]:
    """Beside the table a file of groups."""
    columns = rows_of_table()
    (folder / "groups.csv").write_text("feature,group\na,one\nb,one\nc,two\ncity=Oslo,two\n")
    return [write_csv(folder / "data.csv", columns, "who", "y", "city", "a", "b", "c"),
            "--feature-groups", folder / "groups.csv"]  # fmt: skip


def genotypes(folder: Path) -> list[Any]:
    """People with calls, some missing, a phenotype and a covariate."""
    rng = np.random.default_rng(0)
    calls = draw_counts(rng, 40, 12, missing=0.05)
    write_plink(folder / "toy", calls)
    known = np.nan_to_num(calls)
    y = known[:, 0] - known[:, 3] + 0.3 * rng.standard_normal(40)
    lines = [f"f{i} i{i} {value:.4f} {20 + i % 7}" for i, value in enumerate(y.tolist())]
    (folder / "toy.pheno").write_text("\n".join(["FID IID trait age", *lines]) + "\n")
    return ["--bfile", folder / "toy", "--pheno", folder / "toy.pheno", "--covar", folder / "toy.pheno",
            "--covar-name", "age", "--pheno-name", "trait"]  # fmt: skip


ALPHA = ("--alpha", "0.1")
Y = ("--target", "y", "--task", "who")
TIMES = ("--time", "time", "--event", "event")
HOLES = (("a", (3, 8)), ("c", (5,)))
KINDS: dict[str, Kind] = {
    "lasso": Kind(("who", "y"), (*Y, *ALPHA), ("city", "colour", "a", "b", "c")),
    "one task": Kind(("y",), ("--target", "y", *ALPHA)),
    "mean": Kind(("who", "y"), (*Y, *ALPHA, "--missing", "mean"), holes=HOLES, asked=("--missing", "mean")),
    "task-mean": Kind(
        ("who", "y"), (*Y, *ALPHA, "--missing", "task-mean"), holes=HOLES, asked=("--missing", "task-mean")
    ),
    "indicator": Kind(
        ("who", "y"), (*Y, *ALPHA, "--missing", "indicator"), holes=HOLES, asked=("--missing", "indicator")
    ),
    "patterns": Kind(
        ("who", "y"), (*Y, *ALPHA, "--missing", "patterns"), holes=(("c", tuple(range(16))),),
        asked=("--unseen", "nearest"),
    ),
    "offset and weights": Kind(("who", "y", "o", "w"), (*Y, *ALPHA, "--offset", "o", "--weights", "w")),
    "cross-validated": Kind(("who", "y"), (*Y, "--alphas", "5", "--cv", "3", "--keep-folds", "tuned")),
    "path": Kind(("who", "y"), (*Y, "--alphas", "4"), command="path"),
    "dates": Kind(("who", "y"), (*Y, *ALPHA, "--date-parts"), ("when", "a", "b")),
    "several targets": Kind(("y", "z"), ("--target", "y", "--target", "z", *ALPHA)),
    "elastic-net": Kind(("who", "y"), (*Y, *ALPHA, "--model", "elastic-net")),
    "huber": Kind(("who", "y"), (*Y, *ALPHA, "--model", "huber")),
    "quantile": Kind(("who", "y"), (*Y, *ALPHA, "--model", "quantile")),
    "poisson": Kind(
        ("who", "count", "o"), ("--target", "count", "--task", "who", *ALPHA, "--model", "poisson", "--offset", "o")
    ),
    "gamma": Kind(
        ("who", "size"), ("--target", "size", "--task", "who", *ALPHA, "--model", "any", "--loss", "gamma")
    ),
    "calibrated": Kind(("who", "y"), (*Y, *ALPHA, "--model", "calibrated")),
    "owl": Kind(("who", "y"), (*Y, *ALPHA, "--model", "owl")),
    "sparse-group": Kind(("who", "y"), (*Y, *ALPHA, "--model", "sparse-group")),
    "group-lasso": Kind((), (*Y, *ALPHA, "--model", "group-lasso"), made=grouped),
    "graph-svm": Kind(("who", "y"), (*Y, "--model", "graph-svm", "--graph", "complete")),
    "graph-svm of classes": Kind(
        ("who", "state"), ("--target", "state", "--task", "who", "--model", "graph-svm", "--graph", "complete")
    ),
    "logistic": Kind(
        ("who", "state"), ("--target", "state", "--task", "who", *ALPHA, "--model", "logistic"),
        asked=("--probabilities",),
    ),
    "logistic of numbers": Kind(
        ("who", "flag"), ("--target", "flag", "--task", "who", *ALPHA, "--model", "logistic", "--offset", "a"),
        asked=("--probabilities",),
    ),
    "multinomial": Kind(
        ("who", "species"), ("--target", "species", "--task", "who", *ALPHA, "--model", "logistic"),
        asked=("--probabilities",),
    ),
    "multinomial-owl": Kind(
        ("species",), ("--target", "species", *ALPHA, "--model", "multinomial-owl"), asked=("--probabilities",)
    ),
    "ordinal": Kind(
        ("who", "grade"),
        ("--target", "grade", "--task", "who", *ALPHA, "--model", "ordinal", "--categories", "low,mid,high"),
        asked=("--probabilities",),
    ),
    "cox": Kind(
        ("who", "time", "event", "ward"), (*TIMES, "--task", "who", *ALPHA, "--model", "cox", "--strata", "ward"),
        asked=("--times", "0.5,1.0"),
    ),
    "cox of one task": Kind(
        ("time", "event"), (*TIMES, *ALPHA, "--model", "cox"), asked=("--times", "0.5,1.0")
    ),
    "mixed": Kind(
        ("y", "grade", "state", "time", "event"),
        ("--model", "mixed", "--outcome", "y=value", "--outcome", "grade=ordered", "--outcome", "state=binary",
         "--outcome", "death=survival", "--time", "death=time", "--event", "death=event",
         "--categories", "grade=low,mid,high", *ALPHA),
        asked=("--probabilities",),
    ),
    "files": Kind(
        (), ("--target", "y", *ALPHA, "--columns", "union"), made=two_files
    ),
    "matrix": Kind((), ("--target", "y", "--task", "task", *ALPHA), made=matrix),
    "targets of a matrix": Kind((), ("--target", "y", *ALPHA), made=targets_of_matrix),
    "genotypes": Kind((), ALPHA, made=genotypes),
}  # fmt: skip
