"""The properties of a loss without which a certificate proves nothing."""

from __future__ import annotations

import numpy as np

from ..docstrings import described_by
from ..losses import Loss, RowLoss, as_loss
from ..members import note_passed
from .claims import FAILURE, SEED
from .data_loss import CHECKS
from .loss_cases import FITTED, LABELS, Labels, data_cases
from .row_loss import check_rows
from .small_fit import fit_loss


@described_by(SEED, raises=FAILURE)
def check_loss(
    loss: Loss | type[Loss] | str,
    *,
    labels: Labels | None = None,
    on_data: bool | None = None,
    draws: int = 12,
    seed: int = 0,
) -> None:
    """Check that a loss is what its certificates need it to be.

    A `RowLoss` is checked row by row, and every loss on small data: with and without intercepts, weights, unpenalised
    features, one matrix for all tasks. What is checked:

    - L0: shapes and types; arguments are left alone; rows without weight do not count;
    - L1: rows are convex in z, which is looked at first; slope and residual are minus the gradient;
    - L2: ``value(z) + conjugate(p) + p z = 0`` at ``p = slope(z)``;
    - L3: ``value(z) + conjugate(p) + p z >= 0`` for all z and p, the conjugate being infinite outside its domain;
    - L4: `terms` is ``F(z) + F*(-c r) + <c r, z>``, and 0 at c = 1;
    - L5: slopes move as slowly as `smoothness` says; curvatures lie between the second derivative and that;
    - L6: intercepts and unpenalised coefficients are at their best, residuals orthogonal to them, `value_at` agrees;
    - L7: `best_scale` stays within its limit and within the domain;
    - L8: `ball` holds every dual point that a gap does not exclude;
    - L9: with an offset (where `Loss.on` takes one) the loss is what it is at predictions that have it added;
    - L10: a small fit with the L2,1 norm has the answer of plain proximal gradient, and its gap is a bound.

    Parameters
    ----------
    loss : Loss
        An instance, a class whose constructor needs no arguments, or a name.
    labels : {"values", "signs", "counts", "positive", "one-hot", "survival", "ordered"} or callable, optional
        What y looks like: any numbers, -1 and +1, numbers from 0, numbers above 0, a column for each class, times to an
        event, or codes of ordered classes; or ``labels(rng, n)`` draws n labels that the loss accepts, from a
        `numpy.random.Generator`. By default what the loss says (`Loss.labels`).
    on_data : bool, optional
        Whether to check the loss on data. By default unless it is a `RowLoss` with kinks: those serve models without
        intercepts that are to be minimised out.
    draws : int, default=12
        Random draws of rows.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.checks.check_loss(ts.losses.Poisson)
    >>> ts.checks.check_loss(ts.losses.Poisson, labels=lambda rng, n: rng.exponential(2.0, n))
    >>> class TooSmooth(ts.losses.Logistic):
    ...     smoothness = 0.2
    >>> ts.checks.check_loss(TooSmooth)
    Traceback (most recent call last):
        ...
    AssertionError: L5: ...
    """
    made = as_loss(loss)
    kind = made.labels if labels is None else labels
    if not callable(kind) and kind not in LABELS:
        raise ValueError(f"labels must be one of {', '.join(map(repr, LABELS))}, or a function; got {kind!r}.")
    suitable = True
    if isinstance(made, RowLoss):
        check_rows(made, kind, draws, seed)
        suitable = made.differentiable or bool(np.isfinite(made.smoothness))
    for case in data_cases(made, kind, seed) if (suitable if on_data is None else on_data) else ():
        for z in map(case.point, (0.0, 0.5, 3.0)):
            for check in CHECKS:
                check(case, z)
        if case.words in FITTED and kind != "ordered":  # the reference knows intercepts, no thresholds
            fit_loss(made, case)
    note_passed(made)
