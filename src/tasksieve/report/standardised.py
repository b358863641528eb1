"""Coefficients per standard deviation, of a fit that has standardised its columns: in them features are comparable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse

PER_DEVIATION = " per standard deviation"


def by_row(model: Any, of_tasks: np.ndarray) -> np.ndarray:
    """What is known of each task, for each row of coefficients: those of `coefficient_rows`."""
    if isinstance(model.coef_, list):
        return np.repeat(of_tasks, [len(own) for own in model.coef_], axis=0)
    n_classes = 1 if model.coef_.ndim == 2 else len(model.coef_)
    return np.tile(of_tasks, (n_classes, 1))


def used_columns(coefs: Iterable[scipy.sparse.csr_array]) -> np.ndarray:
    """Columns that are not zero in some of the matrices."""
    used = [np.unique(coef.indices[coef.data != 0]) for coef in map(scipy.sparse.csr_array, coefs)]
    return np.unique(np.concatenate([*used, np.empty(0, dtype=np.int64)])).astype(np.int64)


def scales_of(model: Any, features: np.ndarray, deviations: np.ndarray, n_features: int) -> scipy.sparse.csr_array:
    """Deviations of some features in each task, as a matrix in the shape of all rows of coefficients."""
    rows = by_row(model, deviations)
    of_row, of_column = np.indices(rows.shape)
    places = of_row.ravel(), features[of_column.ravel()]
    return scipy.sparse.csr_array((rows.ravel(), places), shape=(len(rows), n_features))
