r"""How many degrees of freedom a fit has used up in each task: the divergence of its fitted values.

A coefficient of a selected row follows the labels less than one of least squares does, because the penalty of its row
bends. With :math:`W_j` the row of feature j, :math:`u_j = W_j / \lVert W_j \rVert` and :math:`\gamma_j` its strength,

.. math::

    c_j = \frac{\gamma_j}{\lVert W_j \rVert}, \qquad H = \operatorname{diag}_t(G_t) + \operatorname{diag}_j(c_j) -
    \sum_j c_j u_j u_j', \qquad \operatorname{df}_t = \operatorname{tr}\,[H^{-1}]_{tt}\, G_t ,

H being the second derivative of the objective on the coefficients that are not zero, and :math:`G_t = X_t' Q_t X_t`
that of the loss of task t (centred, where there are intercepts). For least squares this is
:math:`\sum_i \partial \hat y_i / \partial y_i` over the rows of the task, Stein's unbiased degrees of freedom; where a
row has one task, or is penalised by the L1,1 norm, a coefficient counts as one, as in the Lasso (Zou, Hastie and
Tibshirani 2007; for groups Vaiter et al. 2012). The last term has the rank of the number of features: with
:math:`A_t = (G_t + \operatorname{diag} c)^{-1}` and :math:`D_t = \operatorname{diag}_j(u_{jt})`,

.. math::

    [H^{-1}]_{tt} = A_t + A_t D_t \bigl(\operatorname{diag} c^{-1} - \sum_s D_s A_s D_s\bigr)^{-1} D_t A_t .

The strength is read from the correlations of the optimum, :math:`g_j = \gamma_j u_j` (less what an L1 norm has of
them), so that units of any kind agree. A ridge is in them too: its curvature along :math:`u_j` is left out, so that
coefficients count as more than they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import Loss
from ..penalties import L21, SparseGroup
from ..penalties.sparse_group import is_sparse_group
from ..tasks import TaskData

Array = np.ndarray[Any, Any]

_ENTRIES = 1 << 26  # of all Gram matrices together: with more, coefficients are counted


@dataclass(frozen=True)
class FittedTask:
    """What a task's rows say at the model."""

    rows: Array  # of X
    samples: Array  # the same, as places in the data
    weights: Array
    slope: Array
    curvature: Array


def degrees_of_freedom(
    model: Any,
    data: TaskData,
    loss: Loss,
    coef: Array,
    scales: Array | None,
    columns: Array,
    tasks: list[FittedTask],
) -> Array:
    """Of each task, without its intercept: at most the number of its coefficients, which is taken where the penalty is
    none of the sparse group family, or the fit is not unique.

    `scales` are the standard deviations in which coefficients were penalised (tasks, features).
    """
    counted = np.count_nonzero(coef, axis=1).astype(np.float64)
    penalty, used = _penalty(model, data), np.flatnonzero(coef.any(axis=0))
    if penalty is None or len(tasks) == 1 or not penalty.group_ratio or len(tasks) * len(used) ** 2 > _ENTRIES:
        return counted
    rows = coef[:, used] if scales is None else coef[:, used] * scales[:, used]
    grams, pulls = np.empty((len(tasks), len(used), len(used))), np.empty((len(tasks), len(used)))
    weights = model._row_weights(data)
    for t, own in enumerate(tasks):
        x, s = columns[np.ix_(own.rows, used)], weights[own.samples]
        if scales is not None:
            x /= scales[t, used]
        metric = s * own.curvature
        if model.fit_intercept:
            x -= metric @ x / metric.sum()
        pulls[t], grams[t] = (s * own.slope) @ x, (x.T * metric) @ x
        if loss.rooted:  # the length of the residual
            length = np.sqrt(s @ np.square(own.slope))
            if not length > 0.0:
                return counted
            pulls[t] /= length
            grams[t] = (grams[t] - np.outer(pulls[t], pulls[t])) / length
    sizes = np.linalg.norm(rows, axis=0)
    directions = rows / sizes
    entries = np.asarray(penalty.l1_ratio, dtype=np.float64)
    entries = entries[used] if entries.ndim else entries
    along = np.maximum(np.sum(pulls * directions, axis=0), 0.0)
    strengths = along / (1.0 + entries / penalty.group_ratio * np.abs(directions).sum(axis=0))
    found = _traces(grams, directions, strengths / sizes)
    return counted if found is None else np.clip(found, 0.0, counted)


def _penalty(model: Any, data: TaskData) -> SparseGroup | None:
    """The model's, where its curvature is known."""
    if not hasattr(model, "_penalty") or data.balance is not None:
        return None
    if getattr(model, "task_graph", None) is not None and model.graph_strength > 0.0:
        return None
    penalty = model._penalty().get("penalty") or L21()
    return penalty if is_sparse_group(penalty) else None


def _traces(grams: Array, directions: Array, bends: Array) -> Array | None:
    """``tr [H^-1]_tt G_t`` of Gram matrices (tasks, k, k), directions of rows (tasks, k) and c (k,)."""
    live, bent = directions != 0.0, bends > 0.0
    inverses = np.empty_like(grams)
    try:
        for t, gram in enumerate(grams):
            free = live[t]
            gram *= np.outer(free, free)
            inverses[t] = np.linalg.inv(gram + np.diag(np.where(free, bends, 1.0)))
        couplings = np.einsum("tj,tjk,tk->jk", directions, inverses, directions)
        middle = np.diag(1.0 / bends[bent]) - couplings[np.ix_(bent, bent)]
        np.linalg.cholesky(middle)  # H is positive definite, or the fit is not unique
        middle = np.linalg.inv(middle)
    except np.linalg.LinAlgError:
        return None
    found = np.empty(len(grams))
    for t, (gram, inverse) in enumerate(zip(grams, inverses, strict=True)):
        inner = inverse @ gram
        around = (directions[t][:, None] * (inner @ inverse) * directions[t])[np.ix_(bent, bent)]
        found[t] = np.trace(inner) + np.sum(middle * around.T)
    return found if np.all(np.isfinite(found)) else None
