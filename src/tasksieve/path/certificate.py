"""What is certified are the numbers that a model stores: one place computes them and their objective, for every model.

The engine certifies a pair in the geometry of its design: weighted, centred, scaled columns. What a user holds are
coefficients of raw columns and intercepts. The loss is evaluated once more at the predictions of these, and what they
fall short of the pair's own value belongs to the gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..design import Design
from ..losses import DataLoss
from ..penalties import RowPenalty

Array = np.ndarray[Any, Any]


def shift(columns: Any, places: Array, rows: Array) -> Array:
    """What coefficients of raw columns explain of the nuisance columns, which the design's columns were freed of.

    Parameters
    ----------
    columns : PackedColumns or SparseColumns
    places, rows : arrays
        Where the penalised features lie in the columns, and their coefficients in the units of the data.

    Returns
    -------
    array of shape (n_nuisance, n_tasks)
    """
    return np.einsum("zjt,jt->zt", columns.loadings(places), rows)


def stored_objective(
    loss: DataLoss, penalty: RowPenalty, columns: Any, places: Array, rows: Array, nuisance: Array
) -> float:
    """The objective in sum units of coefficients and nuisance coefficients as they are stored.

    Parameters
    ----------
    penalty : RowPenalty
        Of the rows.
    places, rows : arrays
        Where the penalised features lie in the columns, and their coefficients in the units of the design's columns.
    nuisance : array of shape (n_nuisance, n_tasks)
        Stored coefficients of intercept and unpenalised features, with the `shift` of the rows added.
    """
    return loss.value_at(scores(loss.design, columns, places, rows, nuisance)) + penalty.total(rows)


def scores(design: Design, columns: Any, places: Array, rows: Array, nuisance: Array) -> Array:
    """``x . w_t + b_t`` in the units of y, flat; parameters as in `stored_objective`."""
    found = columns.combine(places, rows)
    root = design.root_weights
    if root is not None:
        found = np.divide(found, root, out=np.zeros_like(found), where=root > 0)
    for column, coefficient in zip(design.nuisance_columns, nuisance, strict=True):
        found = found + column * design.per_sample(coefficient)
    return np.asarray(found)
