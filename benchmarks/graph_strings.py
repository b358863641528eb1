"""One million DNA windows of four related organisms, trained without storing their features.

    python benchmarks/graph_strings.py

The paper's splice-site data are not to be had; synthetic windows stand in: 141 random bases, in positives a consensus
sequence around the middle whose letters are kept with probability by position. The consensus evolves along a tree of
four organisms; one window in five is positive. Degree 8, 2^22 columns, gap 1e-2, as in the paper's Figure 3 over the
training size.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from _common import Report, arguments, say, seconds_cell
from _memory import MemoryWatch, peak_resident, status
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

import tasksieve as ts
from tasksieve.datasets import evolve_consensus, make_dna_windows
from tasksieve.graph import tree_graph

TREE = "((worm:1,fly:1):1,(cress:1,rice:1):1);"


def windows(n: int, consensus: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, task, _ = make_dna_windows(n, consensus=consensus, random_state=seed)
    assert task is not None
    return X, y, task


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    sizes = [1_000, 4_000] if args.quick else args.sizes
    report = Report("graph_strings", args)
    graph, _ = tree_graph(TREE)
    consensus = evolve_consensus(random_state=args.seed)
    X_test, y_test, task_test = windows(2_000 if args.quick else 40_000, consensus, args.seed + 1)
    rows = []
    for n in sizes:
        X, y, task = windows(n, consensus, args.seed + 2)
        cells: list[Any] = [f"{n:,}"]
        for kind in ("graph", "pooled", "independent"):
            model = ts.GraphSVC(
                graph if kind == "graph" else None,
                C=3.0,
                hasher=ts.WeightedDegreeHasher(8),
                tol=1e-2,
                n_jobs=args.threads,
            )
            train, test = (
                (task, task_test) if kind != "pooled" else (np.zeros_like(task), np.zeros_like(task_test))
            )
            held = status("RssAnon")
            with MemoryWatch() as watch:
                start = time.perf_counter()
                model.fit(X, y, task=train)
                seconds = time.perf_counter() - start
            if kind == "graph":
                peak = peak_resident() / 2**20
                gap = model.dual_gap_ / (3.0 * n)
                added = (watch.peak - held) / 2**20
                cells += [seconds_cell(seconds), model.n_iter_, f"{gap:.1e}", f"{peak:.0f}", f"{added:.0f}"]
            scores = model.decision_function(X_test, task=test)
            del model
            each = [average_precision_score(y_test[task_test == t], scores[task_test == t]) for t in range(4)]
            cells.append(f"{np.mean(each):.4f}")
            say(n, kind, f"{seconds:.1f} s", cells[-1])
        rows.append(cells)
        report.raw(rows=rows)
    if not args.quick:
        peak = float(rows[-1][4])
        report.headline(
            f"{sizes[-1]:,} DNA windows, 4 organisms: peak memory",
            "a few hundred MB",
            f"{peak:.0f} MB",
            peak < 600,
        )
    report.table(
        "Synthetic DNA windows, 4 organisms, degree 8, 2^22 columns",
        ["n", "seconds", "epochs", "gap", "peak MB", "fit adds MB", "AUPRC graph", "pooled", "independent"],
        rows,
        "Seconds, epochs, gap and memory are those of the graph model. Peak: of the whole process, with Python and "
        "its libraries, the making of the windows (141 bytes each) and the test set. The next column: what the fit "
        "itself adds to that.",
    )
    report.finish()


if __name__ == "__main__":
    main()
