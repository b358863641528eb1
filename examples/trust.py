"""A finding, and what it is worth: liver transcripts and markers of 60 mice; `make figures` draws the picture.

    python examples/trust.py

The data (Lan et al., PLoS Genetics 2, 2006): 145 markers, 83 transcripts of one cluster, one matrix for all tasks. They
are read from ``mice_eqtl.npz`` in the folder named by TASKSIEVE_DATA, by default ``../shared/datasets``.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import tasksieve as ts

ROOT = Path(__file__).parent.parent
FILE = Path(os.environ.get("TASKSIEVE_DATA", ROOT.parent / "shared" / "datasets")) / "mice_eqtl.npz"


def mice() -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Markers, transcripts and the markers' names; None where the file is not there."""
    if not FILE.is_file():
        print("mice_eqtl.npz was not found: set TASKSIEVE_DATA to its folder. Skipped.")
        return None
    with np.load(FILE) as archive:
        return archive["X"].astype(float), archive["Y"], archive["feature_names"]


def main() -> None:
    data = mice()
    if data is None:
        return
    X, Y, names = data
    chosen = ts.MultiTaskLassoCV().fit(X, Y)
    print(f"Cross-validation selects {len(chosen.get_support(indices=True))} of {X.shape[1]} markers.")
    print(chosen.cv_quality_, "\n")
    print(ts.permutation_test(ts.MultiTaskLasso(), X, Y).summary(), "\n")
    stable = ts.StabilitySelection(ts.MultiTaskLasso()).fit(X, Y)
    bound = f"{stable.pfer_bound_:.2f} false ones expected at most"
    print(f"Stable: {names[stable.get_support()].tolist()} ({bound})")
    for j in np.argsort(-stable.selection_probabilities_, kind="stable")[:8]:
        mark = "selected" if chosen.get_support()[j] else ""
        print(f"  {names[j]:12s} in {stable.selection_probabilities_[j]:4.0%} of the halves  {mark}")


def trust_figure() -> Figure | None:
    """The stability path of the markers."""
    data = mice()
    if data is None:
        return None
    X, Y, _ = data
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    ts.StabilitySelection(ts.MultiTaskLasso()).fit(X, Y).plot(axes)
    return figure


if __name__ == "__main__":
    main()
