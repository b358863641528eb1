"""Pictures of fitted models with matplotlib, which is needed only here (``pip install 'tasksieve[plot]'``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .optional import require

NAME_LENGTH = 24
NAMED_FEATURES = 12  # more names than this cannot be read beside curves
NAMED_TASKS = 40  # more names than this cannot be read under a map

#: entries of docstrings: where a method draws, and what it returns
AXES = """
ax : matplotlib axes, optional
    Where to draw; a new figure by default.
"""
DRAWN_ON = "matplotlib axes"


def axes_or_new(ax: Any, owner: object, method: str, most: int = 1, **options: Any) -> Any:
    """Those given, else axes in a new figure, or an error that says what to install."""
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most!r}.")
    if ax is not None:
        return ax
    plt = require("matplotlib.pyplot", f"{type(owner).__name__}.{method} needs", "'tasksieve[plot]'")
    return plt.subplots(layout="constrained", **options)[1]


def _title(ax: Any, text: str) -> None:
    ax.set_title(text, loc="left", fontsize="medium")


def _by_alpha(ax: Any, **labels: Any) -> None:
    """Along a path: from the empty model to the fullest."""
    ax.set(xscale="log", xlabel="alpha", **labels)
    if not ax.xaxis_inverted():
        ax.invert_xaxis()


def coefficient_map(
    owner: Any, coef: np.ndarray, tasks: np.ndarray, names: np.ndarray | None, ax: Any, most: int
) -> Any:
    """Heat map of selected features (rows, strongest on top) by task (columns): red negative, blue positive."""
    if np.ndim(coef) != 2:
        raise ValueError(
            f"coef_ has {np.ndim(coef)} dimensions: a map shows one coefficient per task and feature. Draw the "
            "classes one by one."
        )
    strength = np.linalg.norm(coef, axis=0)
    selected = np.flatnonzero(strength)
    shown = selected[np.argsort(-strength[selected], kind="stable")][:most]
    size = 3.0 + min(9.0, 0.35 * len(tasks)), 1.6 + 0.2 * max(3, len(shown))
    ax = axes_or_new(ax, owner, "plot_coefficients", most, figsize=size)
    title = f"{len(selected):,} of {coef.shape[1]:,} features selected"
    if len(shown) < len(selected):
        title += f", the strongest {len(shown)} shown"
    _title(ax, title)
    if not len(shown):
        ax.set(xticks=[], yticks=[])
        return ax
    largest = np.abs(coef[:, shown]).max()
    image = ax.imshow(
        coef[:, shown].T, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label="coefficient")
    labels = [f"x{j}" if names is None else _cut(names[j]) for j in shown]
    ax.set_yticks(range(len(shown)), labels, fontsize="small")
    if len(tasks) <= NAMED_TASKS:
        ax.set_xticks(range(len(tasks)), [_cut(task) for task in tasks], rotation=90, fontsize="small")
    ax.set_xlabel("task")
    return ax


def score_curve(model: Any, ax: Any) -> Any:
    """Mean over the folds of a held-out measure, one standard error around it, and the chosen alpha."""
    ax = axes_or_new(ax, model, "plot_scores", figsize=(6, 4))
    alphas, scores = model.path_.alphas, model.path_scores_
    n_folds = scores.shape[1]
    mean = scores.mean(axis=1)
    if n_folds > 1:
        error = scores.std(axis=1, ddof=1) / np.sqrt(n_folds)
        ax.fill_between(
            alphas, mean - error, mean + error, alpha=0.2, linewidth=0, label="one standard error"
        )
    ax.plot(alphas, mean, label=f"mean of {n_folds} folds")
    ax.axvline(model.alpha_, color="C1", linestyle="--", label=f"chosen: {model.alpha_:.3g}")
    _by_alpha(ax, ylabel=model.cv_measure)
    ax.legend(frameon=False)
    return ax


def stability_curves(found: Any, ax: Any, most: int) -> Any:
    """Share of the halves that have used each feature by alpha: stable ones in colour, the others grey."""
    ax = axes_or_new(ax, found, "plot", most, figsize=(7, 4))
    alphas, shares, stable = found.alphas_, found.stability_path_, found.get_support()
    names = getattr(found, "feature_names_in_", None)
    last = shares[[-1]].toarray()[0]
    used = np.flatnonzero(last)
    used = used[np.lexsort((-last[used], ~stable[used]))]
    shown = used[: max(most, int(np.count_nonzero(stable)))]
    lines = shares[:, shown].toarray()
    others = ~stable[shown]
    if others.any():
        ax.plot(alphas, lines[:, others], color="0.75", linewidth=0.8)
    sure = np.flatnonzero(~others)
    for k in sure:
        label = None if len(sure) > NAMED_FEATURES else f"x{shown[k]}" if names is None else _cut(names[shown[k]])
        ax.plot(alphas, lines[:, k], linewidth=1.5, label=label)
    ax.axhline(found.threshold_, color="0.2", linestyle="--", linewidth=1)
    _title(ax, f"{np.count_nonzero(stable):,} of {len(stable):,} features stable")
    _by_alpha(ax, ylabel="share of the halves", ylim=(-0.02, 1.02))
    if 0 < len(sure) <= NAMED_FEATURES:
        ax.legend(frameon=False, fontsize="small")
    return ax


DUMBBELLS = {"shared": ("o", "C0"), "own": ("o", "C1"), "pooled": ("|", "C2"), "mean": ("|", "0.6")}


def dumbbells(found: Any, ax: Any, most: int) -> Any:
    """Scores of each task (a line) by model, the shared one joined to the task's own; bold where they surely differ."""
    tasks, scores = found.tasks, {name: found.quality[name].values[:, 0] for name in found.models}
    sure = found.differences["own"].adjusted <= 1.0 - found.level
    gain = scores["shared"] - scores["own"]
    known = np.flatnonzero(~np.isnan(gain))
    shown = known[np.argsort(-np.abs(gain[known]), kind="stable")][:most]
    shown = shown[np.argsort(gain[shown], kind="stable")]  # the largest gain on top
    ax = axes_or_new(ax, found, "plot", most, figsize=(7, 1.6 + 0.25 * max(3, len(shown))))
    positions = np.arange(len(shown))
    for position, t in zip(positions, shown.tolist(), strict=True):
        width = 3.0 if sure[t] else 1.0
        ax.plot([scores["own"][t], scores["shared"][t]], [position, position], color="0.7", linewidth=width, zorder=1)
    for name, values in scores.items():
        marker, color = DUMBBELLS[name]
        ax.scatter(values[shown], positions, marker=marker, color=color, label=found._words(name), zorder=2)
    title = f"{np.count_nonzero(gain > 0)} of {len(tasks)} tasks gain by sharing"
    if len(shown) < len(tasks):
        title += f"; {len(shown)} shown"
    _title(ax, title)
    ax.set_yticks(positions, [_cut(tasks[t]) for t in shown], fontsize="small")
    ax.set_xlabel(f"{found.score} on unseen rows")
    below = -0.6 / ax.figure.get_size_inches()[1]  # of the labels of the axis
    ax.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, below), ncols=4)
    return ax


def _cut(name: Any) -> str:
    text = str(name)
    return text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"
