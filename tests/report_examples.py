"""Contents of reports for the tests: any number of features, tasks and values."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tasksieve.report import FitQuality, ReportContent


def example_content(
    n_selected: int = 12, n_tasks: int = 4, n_values: int = 10, n_features: int | None = None, seed: int = 0
) -> ReportContent:
    """A made-up path on which feature after feature enters; feature j of the selected ones is stronger than j + 1."""
    rng = np.random.default_rng(seed)
    n_features = n_features or 2 * n_selected + 3
    columns = np.sort(rng.choice(n_features, n_selected, replace=False))
    rows = rng.uniform(0.5, 1.0, (n_tasks, n_selected)) * rng.choice([-1.0, 1.0], (n_tasks, n_selected))
    rows *= np.linspace(2.0, 0.5, n_selected)
    entry = (
        np.linspace(1, max(1, n_values - 1), n_selected).astype(int) if n_values > 1 else np.zeros(n_selected)
    )
    coefs = []
    for k in range(n_values):
        present = np.flatnonzero(entry <= k)
        values = rows[:, present] * (k + 1) / n_values
        coef = scipy.sparse.lil_array((n_tasks, n_features)) if n_tasks * n_selected < 5_000 else None
        if coef is not None:
            coef[:, columns[present]] = values
            coefs.append(coef.tocsr())
        else:
            position = (np.repeat(np.arange(n_tasks), len(present)), np.tile(columns[present], n_tasks))
            coefs.append(scipy.sparse.csr_array((values.ravel(), position), shape=(n_tasks, n_features)))
    content = ReportContent(
        title="Example",
        asked="Which features matter?",
        answered="These.",
        tasks=np.array([f"site {t:03d}" for t in range(n_tasks)], dtype=object),
        features=np.array([f"gene_{j:05d}" for j in range(n_features)], dtype=object),
        coef=coefs[-1],
        intercept=rng.standard_normal(n_tasks),
        certificate={
            "objective": 0.5,
            "dual_gap": 1e-7,
            "relative_gap": 2e-7,
            "tol": 1e-6,
            "null_objective": 0.5,
            "converged": True,
        },
        facts=[("Model", "MultiTaskLasso")],
        reproduce="tasksieve fit table.csv",
        versions={"tasksieve": "0.1.0"},
        quality=[
            FitQuality(
                "R² on the training rows", rng.uniform(0.2, 1.0, n_tasks), np.arange(10, 10 + n_tasks)
            )
        ],
    )
    if n_values > 1:
        content.alphas = np.geomspace(1.0, 0.01, n_values)
        content.path_coefs = coefs
        content.n_selected = np.array([int(np.sum(entry <= k)) for k in range(n_values)])
        content.rejection_ratios = np.linspace(1.0, 0.5, n_values)
        content.relative_gaps = np.geomspace(1e-9, 9e-7, n_values)
        content.seconds = np.full(n_values, 0.01)
        curve = 1.0 + (np.arange(n_values) - 0.7 * n_values) ** 2 / n_values**2
        content.cv_scores = curve[:, None] + 0.01 * rng.standard_normal((n_values, 5))
        content.cv_measure = "Squared error on held-out rows"
        content.chosen = n_values - 1
    return content
