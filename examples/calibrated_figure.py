"""What calibration does: one noisy task, and how far each model shrinks the other tasks because of it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import tasksieve as ts

N_TASKS, N_ROWS, N_FEATURES, N_TRUE = 6, 60, 100, 5
FACTORS = (1.0, 10.0)
BLUE, RED, GREY = "#2a6fbb", "#c0392b", "0.75"


def calibrated_figure() -> Figure:
    """Where cross-validation puts alpha, and the error of each task, before and after task 0 gets noisy."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N_TASKS * N_ROWS, N_FEATURES))
    task = np.repeat(np.arange(N_TASKS), N_ROWS)
    W = np.zeros((N_TASKS, N_FEATURES))
    W[:, :N_TRUE] = rng.standard_normal((N_TASKS, N_TRUE))
    noise = rng.standard_normal(len(task))
    models = {
        "least squares": (ts.MultiTaskLassoCV, "MultiTaskLasso"),
        "calibrated": (ts.CalibratedMultiTaskLassoCV, "CalibratedMultiTaskLasso"),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9, 5), width_ratios=[1.3, 1], layout="constrained")
    for row, (name, (Model, title)) in zip(axes, models.items(), strict=True):
        for factor, colour in zip(FACTORS, (BLUE, RED), strict=True):
            y = np.einsum("ij,ij->i", X, W[task]) + np.where(task == 0, factor, 1.0) * noise
            model = Model(n_alphas=50, eps=0.02).fit(X, y, task=task)
            scores = model.cv_scores_.mean(axis=1)
            # the grid in units of the first run's, so that a shift can be seen
            row[0].plot(model.alphas_, scores / scores.min(), color=colour, label=f"noise of task 0 x {factor:g}")
            row[0].axvline(model.alpha_, color=colour, lw=1, ls="--")
            error = np.sqrt(np.sum((model.coef_ - W) ** 2, axis=1))
            position = np.arange(N_TASKS) + (0.2 if factor > 1 else -0.2)
            row[1].bar(position, error, 0.4, color=colour)
        row[0].set(xscale="log", ylim=(0.97, 1.6), ylabel="held-out loss / its minimum")
        row[0].set_title(f"{title}: which alpha?", fontsize=10)
        row[0].invert_xaxis()
        row[1].set(ylabel=r"$\|w_t - w_t^*\|$", ylim=(0, 2.2))
        row[1].set_title(f"{name}: error of each task", fontsize=10)
    axes[0, 0].legend(fontsize=8, loc="upper left")
    axes[1, 0].set_xlabel(r"$\alpha$ (dashed: chosen by cross-validation)")
    axes[1, 1].set_xlabel("task")
    return figure
