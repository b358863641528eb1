"""A million rows scored by exported files: SQL in DuckDB and in SQLite, and plain Python row by row.

    python benchmarks/export.py

A logistic model of five tasks with 20 features, and the same for a model of numbers. The table lies in memory; results
are written to a new table, or summed (Python). Seconds are those of the processor, on one thread, without reading the
rows; predictions are compared with those of `predict`.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, say

import tasksieve as ts

FEATURES, TASKS = 20, 5
NAMES = [f"x{j}" for j in range(FEATURES)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    args = parser.parse_args()
    n_rows = 10_000 if args.quick else args.rows
    rng = np.random.default_rng(args.seed)
    X, task = rng.standard_normal((n_rows, FEATURES)), rng.integers(0, TASKS, n_rows)
    known, groups = X[:2000], task[:2000]
    z = known @ rng.standard_normal(FEATURES) + rng.logistic(0.0, 1.0, len(known))
    models = {
        "numbers": ts.MultiTaskLasso(alpha=0.01).fit(known, z, task=groups),
        "two classes, probabilities": ts.MultiTaskLogisticRegression(alpha=0.001).fit(known, z > 0.0, task=groups),
    }
    report, lines, slowest = Report("export", args), [], 0.0
    for title, model in models.items():
        right = model.predict(X, task=task)
        with tempfile.TemporaryDirectory(prefix="tasksieve-export-") as folder:
            statement = ts.export(model, Path(folder) / "m.sql", task="task").read_text().partition("\n")[2]
            scorer: dict[str, Any] = {}
            exec(ts.export(model, Path(folder) / "m.py").read_text(), scorer)
        for name, score in (("DuckDB", in_duckdb), ("SQLite", in_sqlite), ("Python", in_python)):
            seconds, found = score(X, task, statement.rstrip().rstrip(";"), scorer["predict"])
            assert np.allclose(np.asarray(found, dtype=float), right.astype(float), rtol=1e-12, atol=1e-12), name
            used = int(np.count_nonzero(model.coef_)) / TASKS
            lines.append([title, f"{used:.0f}", name, f"{seconds:.1f}", f"{1e6 * seconds / n_rows:.2f}"])
            say(lines[-1])
            slowest = max(slowest, 1e6 * seconds / n_rows if name == "Python" else 0.0)
    report.table(
        f"{n_rows:,} rows scored by exported files",
        ["model", "features of a task", "where", "seconds", "microseconds a row"],
        lines,
    )
    report.headline("one row in plain Python", "100 µs", f"{slowest:.0f} µs", slowest <= 100.0)
    report.finish()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def in_duckdb(X: np.ndarray, task: np.ndarray, statement: str, _: Any) -> tuple[float, Any]:
    import duckdb
    import pandas

    base = duckdb.connect()
    base.execute("SET threads = 1")
    base.register("given", pandas.DataFrame(X, columns=NAMES).assign(task=task))
    base.execute('CREATE TABLE "rows" AS SELECT * FROM given')
    seconds, _ = timed(lambda: base.execute(f"CREATE TABLE scored AS {statement}"))
    return seconds, base.execute("SELECT prediction FROM scored").fetchnumpy()["prediction"]


def in_sqlite(X: np.ndarray, task: np.ndarray, statement: str, _: Any) -> tuple[float, Any]:
    base = sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE rows ({', '.join(f'{name} REAL' for name in NAMES)}, task INTEGER)")
    rows = zip(*X.T.tolist(), task.tolist(), strict=True)
    base.executemany(f"INSERT INTO rows VALUES (?{', ?' * FEATURES})", rows)
    seconds, _ = timed(lambda: base.execute(f"CREATE TABLE scored AS {statement}"))
    return seconds, [value for (value,) in base.execute("SELECT prediction FROM scored")]


def in_python(X: np.ndarray, task: np.ndarray, _: str, predict: Any) -> tuple[float, Any]:
    found: list[Any] = []
    seconds = 0.0
    for first in range(0, len(X), 100_000):  # dictionaries of all rows would fill the memory
        some = slice(first, first + 100_000)
        rows = [dict(zip(NAMES, row, strict=True)) for row in X[some].tolist()]
        own = task[some].tolist()
        spent, answers = timed(lambda rows=rows, own=own: [predict(row, t) for row, t in zip(rows, own, strict=True)])
        seconds, found = seconds + spent, found + answers
    return seconds, found


if __name__ == "__main__":
    main()
