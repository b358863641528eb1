"""What Group OWL does that L2,1 does not: groups of correlated features, found as groups."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import tasksieve as ts

GROUPS, SIZE, OTHERS = 3, 5, 45
COLORS = ("#2a6fbb", "#d98032", "#4c9a52")


def correlated_data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three hidden causes, each seen through five nearly equal columns; 45 columns of noise; four tasks share X."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((80, GROUPS))
    seen = np.repeat(causes, SIZE, axis=1) + 0.1 * rng.standard_normal((80, GROUPS * SIZE))
    X = np.hstack([seen, rng.standard_normal((80, OTHERS))])
    Y = causes @ rng.standard_normal((GROUPS, 4)) + 0.8 * rng.standard_normal((80, 4))
    return X, Y


def owl_figure() -> Figure:
    """Row norms under both penalties, each at a fifth of its alpha_max, and how often each column is chosen."""
    X, Y = correlated_data()
    figure, axes = plt.subplots(2, 2, figsize=(10, 4.8), sharex=True, sharey="row", layout="constrained")
    for k, model in enumerate((ts.MultiTaskLasso(), ts.MultiTaskOWL())):
        model.set_params(alpha=0.2 * model.alpha_max(X, Y)).fit(X, Y)
        draw_norms(axes[0, k], np.linalg.norm(model.coef_, axis=0))
        axes[0, k].set_title(type(model).__name__, fontsize=10)
        draw_norms(axes[1, k], selection_rates(model))
        axes[1, k].set_xlabel("feature")
    axes[0, 0].set_ylabel("row norm")
    axes[1, 0].set_ylabel("chosen in 50 resamplings")
    return figure


def selection_rates(model: ts.MultiTaskLasso | ts.MultiTaskOWL, resamplings: int = 50) -> np.ndarray:
    """How often each feature is chosen from half of the rows."""
    X, Y = correlated_data()
    rng = np.random.default_rng(1)
    rows = [rng.choice(len(X), len(X) // 2, replace=False) for _ in range(resamplings)]
    return np.mean([model.fit(X[half], Y[half]).get_support() for half in rows], axis=0)


def draw_norms(axis: plt.Axes, values: np.ndarray) -> None:
    """Bars, the groups in their colours."""
    colors = [COLORS[j // SIZE] if j < GROUPS * SIZE else "#999999" for j in range(len(values))]
    axis.bar(np.arange(len(values)), values, color=colors)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    owl_figure()
    plt.show()
