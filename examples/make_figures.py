"""The pictures of the README and the documentation, from real runs; `make figures` runs it.

python examples/make_figures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from demo import path_figure
from matplotlib.figure import Figure

import tasksieve as ts

FOLDER = Path(__file__).parent.parent / "docs" / "_static"


def main() -> None:
    save(certified_path(), "path.png")


def certified_path() -> Figure:
    """Wang & Ye's Synthetic 1 with 5,000 features: what enters, what is screened, what is proved."""
    X, y, task, support = ts.datasets.make_wang_synthetic(1, n_features=5_000, random_state=0)
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=100, eps=0.01)
    truth = np.zeros(X.shape[1], dtype=bool)
    truth[support] = True
    return path_figure(path, truth)


def save(figure: Figure, name: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    # no date and no version inside, so that the same run gives the same file
    figure.savefig(FOLDER / name, dpi=110, metadata={"Software": None})
    plt.close(figure)
    print(FOLDER / name)


if __name__ == "__main__":
    main()
