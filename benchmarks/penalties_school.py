"""What tasks share, on the School data: one path of every penalty, alpha by cross-validation, pupils left out.

    python benchmarks/penalties_school.py            # 5 splits, some minutes
    python benchmarks/penalties_school.py --quick

139 schools, 27 columns that code 8 categories (year, band of verbal reasoning, ...), which are the groups. A third of
each school's pupils is for training, the others for testing; explained variance is 1 - mean squared error / variance of
the test scores, all schools together.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from _common import Report, arguments, say

import tasksieve as ts

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("TASKSIEVE_DATA", ROOT.parent / "shared" / "datasets"))


def split(task, rng):
    """Rows for training, a third of every task."""
    train = np.zeros(len(task), dtype=bool)
    for label in np.unique(task):
        rows = rng.permutation(np.flatnonzero(task == label))
        train[rows[: max(4, len(rows) // 3)]] = True
    return train


def main() -> None:
    args = arguments(__doc__).parse_args()
    report = Report("penalties_school", args)
    data = ts.datasets.fetch_school(FOLDER, download=False)
    X, y, task = data.X, data.y, data.task
    categories = np.array([name.rsplit("-", 1)[0] for name in data.feature_names])
    penalties = {
        "L2,1": "l21",
        "L1,1": "l11",
        "sparse group": ts.penalties.SparseGroup(1.0, 1.0),
        "L1,inf": "linf",
        "dirty": "dirty",
        "groups": ts.penalties.Groups(categories),
        "groups, rows inside": ts.penalties.Groups(categories, "rows"),
    }
    splits, values = (1, 5) if args.quick else (5, 30)
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in penalties}
    for seed in range(splits):
        train = split(task, np.random.default_rng(seed))
        for name, penalty in penalties.items():
            say(f"split {seed}: {name}")
            model = ts.MultiTaskRegressorCV(penalty=penalty, n_alphas=values, eps=0.02, cv=3, tol=1e-5)
            model.fit(X[train], y[train], task=task[train])
            error = y[~train] - model.predict(X[~train], task=task[~train])
            features = np.count_nonzero(model.get_support())
            kinds = len(np.unique(categories[model.get_support()]))
            density = np.count_nonzero(model.coef_) / model.coef_.size
            explained = 1.0 - np.mean(error**2) / np.var(y[~train])
            found[name].append((explained, features, kinds, density))
    rows = []
    for name, lines in found.items():
        mean, spread = np.mean(lines, axis=0), np.std(lines, axis=0)
        rows.append(
            [
                name,
                f"{100 * mean[0]:.1f} ± {100 * spread[0]:.1f} %",
                f"{mean[1]:.1f}",
                f"{mean[2]:.1f}",
                f"{100 * mean[3]:.0f} %",
            ]
        )
    report.table(
        "School data, held-out pupils",
        ["penalty", "explained variance", "columns of 27", "categories of 8", "coefficients not zero"],
        rows,
        note=f"Mean over {splits} splits, ± deviation between them.",
    )
    report.finish()


if __name__ == "__main__":
    main()
