"""How many features that do not matter do rules keep? Five tasks of 40 rows, 3 features of 60 that matter.

    python benchmarks/rules_and_noise.py

The best score and one standard error of the same cross-validation, and stability selection at its defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import Report, arguments, library, say

TASKS, FEATURES, MATTER = 5, 60, 3


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, default=40, help="of a task")
    args = parser.parse_args()
    if args.quick:
        args.draws = 1
    report, ts = Report("rules_and_noise", args), library()
    assert ts is not None
    lines = []
    for draw in range(args.draws):
        X, y, task = problem(args.rows, args.seed + draw)
        found: dict[str, Any] = {
            "best score": ts.MultiTaskLassoCV(standardize=True),
            "one standard error": ts.MultiTaskLassoCV(standardize=True, selection_rule="1se"),
            "stability selection": ts.StabilitySelection(ts.MultiTaskLasso(standardize=True), random_state=0),
        }
        sets = [np.flatnonzero(model.fit(X, y, task=task).get_support()) for model in found.values()]
        lines.append([draw, *(f"{np.sum(own < MATTER)} and {np.sum(own >= MATTER)}" for own in sets)])
        say(f"draw {draw}: {lines[-1][1:]}")
    report.table("Features that matter, and that do not", ["draw", *found], lines)
    report.finish()


def problem(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and task; the first features matter, with effects of 0.5 to 1 and noise of 1."""
    rng = np.random.default_rng(seed)
    W = np.zeros((TASKS, FEATURES))
    W[:, :MATTER] = rng.uniform(0.5, 1.0, (TASKS, MATTER)) * rng.choice([-1, 1], (1, MATTER))
    X, task = rng.standard_normal((TASKS * n_rows, FEATURES)), np.repeat(np.arange(TASKS), n_rows)
    return X, np.einsum("ij,ij->i", X, W[task]) + rng.standard_normal(len(X)), task


if __name__ == "__main__":
    main()
