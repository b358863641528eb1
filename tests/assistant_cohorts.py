"""The folder of the ten tasks: three cohorts with genes in common, and tables beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.linear_model import MultiTaskLasso

SHARED, OWN = ("gene_03", "gene_07", "gene_12"), "gene_20"  # that matter in all cohorts, and in the first only
N_GENES, COHORTS = 40, {"cohort_a": 60, "cohort_b": 50, "cohort_c": 70}
GENES = [f"gene_{j:02d}" for j in range(N_GENES)]


def write_table(file: Path, columns: dict[str, np.ndarray]) -> None:
    """A CSV file with all digits of the numbers."""
    rows = zip(*columns.values(), strict=True)
    words = [",".join(one if isinstance(one, str) else repr(float(one)) for one in row) for row in rows]
    file.write_text("\n".join([",".join(columns), *words]) + "\n", encoding="utf-8")


def read_matrix(file: Path, *others: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Genes of a table, and its other columns: by NumPy alone."""
    head = file.read_text(encoding="utf-8").splitlines()[0].split(",")
    text = np.genfromtxt(file, delimiter=",", skip_header=1, dtype=str)
    X = text[:, [head.index(gene) for gene in GENES]].astype(float)
    return X, {name: text[:, head.index(name)] for name in others}


def write_cohorts(folder: Path, seed: int = 0) -> None:
    """All tables of the ten tasks."""
    rng = np.random.default_rng(seed)
    for name, n in COHORTS.items():
        X = rng.standard_normal((n, N_GENES))
        strengths = rng.uniform(0.8, 1.2, 3) * np.where(rng.random(3) < 0.5, -1.0, 1.0)
        signal = X[:, [GENES.index(gene) for gene in SHARED]] @ strengths
        signal += X[:, GENES.index(OWN)] * (name == "cohort_a")
        response = 3.0 + signal + 0.5 * rng.standard_normal(n)
        columns = dict(zip(GENES, X.T, strict=True))
        write_table(folder / f"{name}.csv", {"response": response, **columns})
        if name == "cohort_a":
            sick = np.where(signal + 0.7 * rng.standard_normal(n) > 0, "sick", "well")
            write_table(folder / "diagnosis.csv", {**columns, "state": sick})
            write_table(folder / "noise.csv", {"response": rng.standard_normal(n), **columns})
            changed = response.copy()
            changed[7] += 0.01
            write_table(folder / "cohort_a_edited.csv", {"response": changed, **columns})
    X = rng.standard_normal((80, N_GENES))
    weights = np.zeros((3, N_GENES))
    weights[:, [2, 9, 15]] = rng.uniform(0.5, 1.5, (3, 3))
    Y = X @ weights.T + 0.5 * rng.standard_normal((80, 3))
    outcomes = [f"outcome_{t}" for t in range(3)]
    write_table(
        folder / "outcomes.csv",
        {**dict(zip(GENES, X.T, strict=True)), **dict(zip(outcomes, Y.T, strict=True))},
    )
    theirs = MultiTaskLasso(alpha=0.1, tol=0.05).fit(X, Y)  # stopped early
    found = {"feature": np.array([*GENES, "(Intercept)"])}
    for t, name in enumerate(outcomes):
        found[name] = np.array([*theirs.coef_[t], theirs.intercept_[t]])
    write_table(folder / "sklearn_coefficients.csv", found)
