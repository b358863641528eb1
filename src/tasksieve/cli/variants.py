"""What a fit of genotypes has found, variant by variant: ``variants.csv``, and ``score.tsv`` for plink2 --score."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..genotypes import score_lines
from ..report.rows import coefficient_rows, row_labels
from ..runs.arrays import plain_numbers
from ..runs.folder import SCORE, VARIANTS
from ..tables import write_table
from .results import Fitted
from .run import Job

Array = np.ndarray[Any, Any]


def write_variants(job: Job, fitted: Fitted, probabilities: Array | None) -> None:
    """Of a fit of genotypes: every variant that any value of the path uses, in the order of the genome, and with what
    probability a half of the people selects it."""
    problem = job.problem
    if not job.source.genotypes:
        return
    X, model = problem.X, fitted.model
    coef, _ = coefficient_rows(model)
    labels = row_labels(model, problem.targets)
    q = X.n_covariates
    ever, entered = _entered(fitted, scipy.sparse.csc_array(coef))
    ever, entered = ever[ever >= q], entered[ever >= q]
    table = X.variant_table.take(ever - q)
    columns: dict[str, Any] = {"feature": X.feature_names[ever].tolist()}
    for name in ("chr", "pos", "id", "effect_allele", "other_allele"):
        columns[name] = table[name].tolist()
    tasks = [""] if problem.task is None else [f"_{label}" for label in np.unique(problem.task)]
    counts = X.counts(ever - q, task=problem.task)
    sizes = np.array([X.n_rows]) if problem.task is None else np.unique(problem.task, return_counts=True)[1]
    for t, suffix in enumerate(tasks):
        called = sizes[t] - counts[:, t, 2]
        copies = 2.0 * counts[:, t, 0] + counts[:, t, 1]
        frequency = np.divide(copies, 2.0 * called, out=np.full(len(ever), np.nan), where=called > 0)
        columns[f"frequency{suffix}"] = plain_numbers(frequency)
        columns[f"call_rate{suffix}"] = (called / sizes[t]).tolist()
    for label, row in zip(labels, coef, strict=True):
        columns["coefficient" if len(labels) == 1 else f"coefficient_{label}"] = row[ever].tolist()
    if fitted.path is not None:
        columns["first_alpha"] = entered.tolist()
    if probabilities is not None:
        columns["stability"] = plain_numbers(probabilities[ever])
    write_table(job.folder / VARIANTS, columns)
    job.folder.replace(SCORE, "".join(score_lines(X, coef, np.array(labels, dtype=object))).encode())
    job.tell_data(genome=chromosomes(X), dropped=X.dropped)


def _entered(fitted: Fitted, coef: Any) -> tuple[Array, Array]:
    """Features that any value uses, and the largest alpha at which each of them is used."""
    if fitted.path is None:
        used = np.flatnonzero(np.diff(coef.indptr))
        return used, np.full(len(used), np.nan)
    first: dict[int, float] = {}
    for k, alpha in enumerate(fitted.path.alphas.tolist()):
        for j in fitted.path.features(k).tolist():
            first.setdefault(j, alpha)
    ever = np.array(sorted(first), dtype=np.int64)
    return ever, np.array([first[j] for j in ever.tolist()])


def chromosomes(X: Any) -> list[list[Any]]:
    """Name, first and last position of each chromosome, in the order of the file."""
    table = X.variant_table
    names = table["chr"]
    found = []
    for name in dict.fromkeys(names.tolist()):
        own = table["pos"][names == name]
        found.append([name, int(own.min()), int(own.max())])
    return found
