"""Findings for the tests of reports and runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tasksieve.findings.permutation import PermutationTest
from tasksieve.report import ReportContent
from tasksieve.report.findings import StabilityFinding
from tasksieve.report.sharing import SharingFinding
from tasksieve.report.trust import Trust


def example_stability(n_features: int, stable: Sequence[int]) -> StabilityFinding:
    """Of 100 halves; stable features are in nearly all of them, the others in some."""
    shares = np.linspace(0.4, 0.1, n_features)
    shares[list(stable)] = 0.97
    marks = np.zeros(n_features, dtype=bool)
    marks[list(stable)] = True
    growth = np.linspace(0.0, 1.0, 6)[:, None]
    return StabilityFinding(
        probabilities=shares,
        stable=marks,
        threshold=0.75,
        n_pairs=50,
        q=3,
        n_candidates=n_features,
        assumption="unimodal",
        bound=0.459,
        bounds={"none": 1.8, "unimodal": 0.459, "r-concave": math.nan},
        path=growth * shares,
        alphas=np.geomspace(1.0, 0.1, 6),
        path_features=np.arange(n_features),
        halves="50 pairs of complementary halves of rows, within tasks, seed 0",
    )


def example_sharing(difference: float, pvalue: float) -> SharingFinding:
    losses = {"shared": 1.0, "own": 1.5, "pooled": 1.2, "mean": 2.0}
    numbers: dict[str, np.ndarray] = {"rows": np.array([30.0, 20.0, 50.0])}
    for name, loss in losses.items():
        numbers[f"loss_{name}"] = np.array([loss - 0.1, loss + 0.1, loss])
        numbers[f"score_{name}"] = 1.0 - numbers[f"loss_{name}"] / 2.2
    numbers["difference"] = np.array([-0.6, -0.4, difference])
    numbers["low"], numbers["high"] = numbers["difference"] - 0.2, numbers["difference"] + 0.2
    numbers["pvalue"] = np.array([0.01, 0.4, pvalue])
    numbers["adjusted"] = np.array([0.02, 0.4, math.nan])
    tasks = ["north", "south"]
    return SharingFinding(tasks, list(losses), numbers, "squared error", "R²", 0.9, "5 folds", note="A note.")


def example_trust(content: ReportContent) -> Trust:
    """Everything that can be found about a content."""
    n_features = content.coef.shape[1]
    return Trust(
        PermutationTest(2.5, np.linspace(1.0, 2.0, 99), 0.01, False, "the labels within tasks"),
        example_stability(n_features, stable=[0, 1]),
        example_sharing(-0.5, 0.01),
    )
