"""Coefficients as a file that plink2 --score takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .matrix import Genotypes

Array = np.ndarray[Any, Any]


def score_lines(X: Genotypes, coef: Array, tasks: Array) -> Iterator[str]:
    """A header and a line for each variant with a coefficient: identifier, effect allele, and one score a task.

    plink2 --score FILE 1 2 header-read cols=+scoresums --score-col-nums 3-N adds up copies times coefficients;
    intercepts and covariates are not in it, and missing calls are means of the people scored.

    Parameters
    ----------
    X : Genotypes
        The data of the fit.
    coef : array of shape (T, d)
    tasks : array of shape (T,)
    """
    variants = X.variant_table
    own = coef[:, X.n_covariates :]
    yield "\t".join(["ID", "A1", *(str(task) for task in tasks)]) + "\n"
    for j in np.flatnonzero(own.any(axis=0)):
        numbers = [repr(float(value)) for value in own[:, j]]
        yield "\t".join([variants["id"][j], variants["effect_allele"][j], *numbers]) + "\n"
