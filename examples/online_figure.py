"""The support of an online model settling over a stream; `make figures` draws it into docs/_static.

python examples/online_figure.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import tasksieve as ts

FOLDER = Path(__file__).parent.parent / "docs" / "_static"


def support_settling() -> Figure:
    """Ten tasks in uneven proportion, 200 features of which 10 matter; the last iterate at every checkpoint."""
    rng = np.random.default_rng(0)
    n_rows, n_features, n_tasks, n_true = 200_000, 200, 10, 10
    shares = np.geomspace(1.0, 0.1, n_tasks)
    coefficients = rng.standard_normal((n_features, n_tasks)) * (np.arange(n_features) < n_true)[:, None]
    marks = np.unique(np.geomspace(100, n_rows, 60).astype(int))
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    X = rng.standard_normal((n_rows, n_features))
    task = rng.choice(n_tasks, n_rows, p=shares / shares.sum())
    y = np.einsum("ij,ji->i", X[:, :n_true], coefficients[:n_true, task]) + rng.standard_normal(n_rows)
    batch = ts.MultiTaskLasso(0.6, task_weights="balanced").fit(X[-20_000:], y[-20_000:], task=task[-20_000:])
    for gamma, colour in ((300.0, "tab:orange"), (1000.0, "tab:blue"), (4000.0, "tab:green")):
        model = ts.OnlineMultiTaskRegressor(0.6, gamma=gamma, average=False)
        used, wrong, start = [], [], 0
        for stop in marks:
            model.partial_fit(X[start:stop], y[start:stop], task=task[start:stop])
            start = stop
            chosen = model.get_support()
            used.append(chosen.sum())
            wrong.append(np.count_nonzero(chosen != batch.get_support()))
        axes[0].semilogx(marks, used, color=colour, label=f"gamma = {gamma:g}")
        axes[1].semilogx(marks, wrong, color=colour)
    axes[0].axhline(batch.get_support().sum(), color="black", lw=0.8, ls=":", label="batch optimum")
    axes[0].set(xlabel="rows seen", ylabel="features in the last iterate")
    axes[1].set(xlabel="rows seen", ylabel="features that differ from the batch optimum")
    axes[0].legend()
    return figure


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    support_settling().savefig(FOLDER / "online.png", dpi=110, metadata={"Software": None})
    print(FOLDER / "online.png")
