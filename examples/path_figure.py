"""A path in three panels: strengths, features in use, duality gaps."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import tasksieve as ts

INK, MUTED, BLUE, ORANGE = "#1d2433", "#6b7385", "#2563a8", "#c8641b"
plt.rcParams.update(
    {
        "font.size": 9,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
    }
)


def path_figure(path: ts.RegularizationPath, truth: np.ndarray | None = None, tol: float = 1e-6) -> Figure:
    """Three panels; features that are not in `truth` are drawn in orange."""
    scale = path.alphas / path.alphas[0]
    strengths = np.array([np.sqrt(path.coef(k).power(2).sum(axis=0)).ravel() for k in range(len(scale))])
    used = np.flatnonzero(strengths.any(axis=0))
    used = used[np.argsort(-strengths[-1, used])][:120]

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.5, 2.9), layout="constrained")
    for feature in used[::-1]:
        true = truth is None or truth[feature]
        left.plot(scale, strengths[:, feature], color=BLUE if true else ORANGE, lw=0.6, alpha=0.6)
    left.set(title="strength of a feature", ylim=0)

    middle.plot(scale, path.n_selected, color=BLUE)
    middle.set(title="features in use")

    right.semilogy(scale, np.maximum(path.relative_gaps, 1e-17), ".", color=BLUE, ms=4)
    right.axhline(tol, color=ORANGE, lw=1)
    right.set(title="relative duality gap")
    for axes in (left, middle, right):
        axes.set(xscale="log", xlabel="alpha / alpha_max")
        axes.invert_xaxis()
    return figure
