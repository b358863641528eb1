"""The main job on data that comes with the library; `make demo` runs it.

1. Real data: ten digits, each against the rest, on images of its own. Which pixels matter for all ten?
2. Synthetic data, Wang & Ye's first design: 50 tasks of 50 rows, 5,000 features, a path of 100 values.

A summary is printed; the report with pictures is one HTML file that needs nothing else.

    python examples/demo.py --out demo-report
"""

from __future__ import annotations

import argparse
import base64
import io
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from demo_report import Section, page
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-report"), help="folder of the report")
    parser.add_argument("--features", type=int, default=5_000, help="features of the synthetic problem")
    arguments = parser.parse_args()

    print(f"tasksieve {ts.__version__}\n")
    sections = [digits(), synthetic(arguments.features)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = arguments.out / "report.html"
    report.write_text(page(sections), encoding="utf-8")
    print(f"Report with pictures and tables: {report}")


# --- 1. real data ----------------------------------------------------------------------------------------


def digits() -> Section:
    """Cross-validated logistic regression on the digits, checked on images that were kept apart."""
    X, y, task, _ = ts.datasets.load_digits_tasks(n_each=80)
    apart = np.random.default_rng(0).random(len(y)) < 0.25
    # an image can serve in several tasks; what any of them learns from is no test for the others
    learnt = {image.tobytes() for image in X[~apart]}
    fresh = apart & np.array([image.tobytes() not in learnt for image in X])

    model = ts.MultiTaskLogisticRegressionCV(n_alphas=40, eps=0.005, cv=5, selection_rule="1se")
    start = time.perf_counter()
    model.fit(X[~apart], y[~apart], task=task[~apart])
    seconds = time.perf_counter() - start

    strength = np.linalg.norm(model.coef_, axis=0)
    chosen = np.flatnonzero(strength)
    accuracy = model.score(X[fresh], y[fresh], task=task[fresh])
    relative_gap = model.dual_gap_ / model.path_.null_objective

    facts = [
        ("images used to learn / to test", f"{np.sum(~apart)} / {np.sum(fresh)}"),
        ("tasks, pixels", f"{len(model.tasks_)}, {X.shape[1]}"),
        ("alpha chosen (one-standard-error rule, 5 folds)", f"{model.alpha_:.4g}"),
        ("pixels selected", f"{len(chosen)} of {X.shape[1]}"),
        ("accuracy on the test images, mean over tasks", f"{accuracy:.1%}"),
        ("objective", f"{model.objective_:.6f}"),
        ("at most this far above the optimum (duality gap)", f"{model.dual_gap_:.1e}"),
        ("the same, relative to the empty model", f"{relative_gap:.1e}"),
        ("paths solved (5 folds and all rows), values each", f"6, {len(model.alphas_)}"),
        ("seconds, everything", f"{seconds:.2f}"),
    ]
    tell("Ten handwritten digits, each against the rest (real images, one matrix per task)", facts)

    ranked = chosen[np.argsort(-strength[chosen])][:15]
    largest = np.argmax(np.abs(model.coef_[:, ranked]), axis=0)
    table = [("pixel (row, column)", "strength", "matters most for digit", "its coefficient there")]
    for feature, t in zip(ranked, largest, strict=True):
        table.append(
            (
                f"({feature // 8}, {feature % 8})",
                f"{strength[feature]:.3f}",
                str(model.tasks_[t]),
                f"{model.coef_[t, feature]:+.3f}",
            )
        )
    return Section(
        title="Which pixels tell ten digits apart?",
        asked="Ten tasks: is this image a given digit, or some other? Each task has images of its own. Which "
        "of the 64 pixels are needed, when all tasks must make do with the same ones?",
        answered=f"{len(chosen)} pixels. With these, {accuracy:.1%} of the images that were not used for "
        "learning are told apart correctly (mean over the ten tasks). No other coefficients could lower the "
        f"objective by more than {model.dual_gap_:.1e}: that is the certificate, computed from the data.",
        facts=facts,
        figure=embedded(digits_figure(model, strength)),
        caption="Left: loss on held-out folds by alpha; the line marks the chosen value. Middle: strength "
        "of each pixel over all tasks; white pixels are not used. Right: coefficients of each task.",
        table_title="Strongest pixels",
        table=table,
    )


def digits_figure(model: Any, strength: np.ndarray) -> Figure:
    figure = plt.figure(figsize=(9.5, 2.9), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.15, 0.9, 1.6])

    axes = left.subplots()
    mean = model.cv_scores_.mean(axis=1)
    spread = model.cv_scores_.std(axis=1, ddof=1) / np.sqrt(model.cv_scores_.shape[1])
    axes.fill_between(model.alphas_, mean - spread, mean + spread, color=BLUE, alpha=0.2, lw=0)
    axes.plot(model.alphas_, mean, color=BLUE)
    axes.axvline(model.alpha_, color=ORANGE, lw=1)
    axes.set(xscale="log", xlabel="alpha", title="loss on held-out folds")
    axes.invert_xaxis()

    axes = middle.subplots()
    shown = np.where(strength > 0, strength, np.nan).reshape(8, 8)
    middle.colorbar(axes.imshow(shown, cmap="viridis"), ax=axes, shrink=0.8)
    axes.set(title="pixel strength")
    frame(axes)

    limit = np.abs(model.coef_).max()
    for t, axes in enumerate(right.subplots(2, 5).ravel()):
        axes.imshow(model.coef_[t].reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set_title(str(model.tasks_[t]), fontsize=8, loc="center")
        frame(axes)
    return figure


def frame(axes: Any) -> None:
    """An image: no ticks, a thin line all around."""
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5)


# --- 2. synthetic data -----------------------------------------------------------------------------------


def synthetic(n_features: int) -> Section:
    """The whole certified path on Wang & Ye's Synthetic 1."""
    X, y, task, support = ts.datasets.make_wang_synthetic(1, n_features=n_features, random_state=0)
    n_tasks = len(np.unique(task))
    start = time.perf_counter()
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=100, eps=0.01)
    seconds = time.perf_counter() - start

    worst = path.relative_gaps.max()

    facts = [
        ("tasks x rows x features", f"{n_tasks} x {len(y) // n_tasks} x {n_features:,}"),
        ("values of alpha, from the largest useful one to a hundredth of it", f"{len(path.alphas)}"),
        ("seconds, the whole path", f"{seconds:.2f}"),
        ("largest relative duality gap on the path", f"{worst:.1e}"),
        ("features in use at the end", f"{path.n_selected[-1]} of {n_features:,}"),
        ("rejection ratio, mean over the path", f"{path.rejection_ratios.mean():.2f}"),
        ("full passes over the data", f"{path.passes:.1f}"),
    ]
    tell("Wang & Ye's Synthetic 1: a whole regularisation path with one matrix per task", facts)

    table: list[Sequence[str]] = [
        (
            "alpha / alpha_max",
            "features in use",
            "rejection ratio",
            "relative gap",
            "seconds",
        )
    ]
    for k in np.linspace(1, len(path.alphas) - 1, 12).round().astype(int):
        table.append(
            (
                f"{path.alphas[k] / path.alphas[0]:.3f}",
                str(path.n_selected[k]),
                f"{path.rejection_ratios[k]:.3f}",
                f"{path.relative_gaps[k]:.1e}",
                f"{path.seconds[k]:.3f}",
            )
        )
    return Section(
        title=f"A path of 100 models over {n_features:,} features",
        asked=f"{n_tasks} related regressions with {len(y) // n_tasks} rows each, every one with its own "
        f"matrix of {n_features:,} features. Which features enter as the penalty is lowered, and is each of "
        f"the hundred answers right? ({len(support)} features truly matter, more than so few rows can tell "
        "apart: the design, from Wang & Ye (2015), is made to try solvers.)",
        answered=f"All 100 models took {seconds:.1f} seconds and {path.passes:.1f} reads of the data. The "
        f"worst of them is within {worst:.1e} of its optimum (relative to the empty model), "
        f"proved for all {n_features:,} features, not only for those in use.",
        facts=facts,
        figure=embedded(path_figure(path)),
        caption="Left: strength of the 120 strongest features along the path. "
        "Middle: features in use, and the share of unused ones that the safe rule removed before solving. "
        "Right: duality gap of each model; the line is the tolerance asked for.",
        table_title="Along the path",
        table=table,
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
    middle.yaxis.label.set_color(BLUE)
    ratio = middle.twinx()
    ratio.plot(scale, path.rejection_ratios, color=ORANGE, lw=1)
    ratio.set(ylim=(0, 1.02), ylabel="rejection ratio")
    ratio.yaxis.label.set_color(ORANGE)

    right.semilogy(scale, np.maximum(path.relative_gaps, 1e-17), ".", color=BLUE, ms=4)
    right.axhline(tol, color=ORANGE, lw=1)
    right.set(title="relative duality gap")
    for axes in (left, middle, right):
        axes.set(xscale="log", xlabel="alpha / alpha_max")
        axes.invert_xaxis()
    return figure


# --- output ----------------------------------------------------------------------------------------------


def tell(title: str, facts: Iterable[tuple[str, str]]) -> None:
    print(title)
    for name, value in facts:
        print(f"  {name:<68} {value}")
    print()


def embedded(figure: Figure) -> str:
    """The figure as a data URI, so that the report is one file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


if __name__ == "__main__":
    main()
