"""The pictures of the README and the documentation, from real runs; `make figures` runs it.

python examples/make_figures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from benchmark_figure import benchmark_figure
from calibrated_figure import calibrated_figure
from genotypes_figure import genotypes_figure
from graph_figure import graph_figure
from matplotlib.figure import Figure
from online_figure import support_settling
from owl_figure import owl_figure
from path_figure import path_figure
from report_figure import screenshot
from trust import trust_figure

import tasksieve as ts

FOLDER = Path(__file__).parent.parent / "docs" / "_static"


def main() -> None:
    save(certified_path(), "path.png")
    save(support_settling(), "online.png")
    save(graph_figure(), "graph.png")
    screenshot(FOLDER / "report.png")
    genotypes_figure(FOLDER / "genotypes.png")
    save(calibrated_figure(), "calibrated.png")
    save(owl_figure(), "owl.png")
    save(benchmark_figure(), "benchmark.png")
    save(trust_figure(), "trust.png")


def certified_path() -> Figure:
    """50 tasks of 50 rows with matrices of their own; 25 of 5,000 features matter in all of them."""
    rng = np.random.default_rng(0)
    n_tasks, n_rows, n_features, n_true = 50, 50, 5_000, 25
    X = np.asfortranarray(rng.standard_normal((n_tasks * n_rows, n_features)))
    task = np.repeat(np.arange(n_tasks), n_rows)
    coefficients = rng.standard_normal((n_tasks, n_true))
    y = np.einsum("ij,ij->i", X[:, :n_true], coefficients[task]) + 2.0 * rng.standard_normal(len(task))
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=100, eps=0.05)
    return path_figure(path, truth=np.arange(n_features) < n_true)


def save(figure: Figure | None, name: str) -> None:
    if figure is None:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    # no date and no version inside, so that the same run gives the same file
    figure.savefig(FOLDER / name, dpi=110, metadata={"Software": None})
    plt.close(figure)
    print(FOLDER / name)


if __name__ == "__main__":
    main()
