"""Labels that depend on the order of rows, and folds that do, too: a warning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..messages import Message, either
from ..tasks import TaskLabels, some_of
from ..user_warnings import warn

# Standard errors beyond which a lag-1 autocorrelation is taken to be no chance effect.
STANDARD_ERRORS = 4.0


class OrderWarning(UserWarning):
    """Rows are in an order that the labels show, and each fold is a stretch of consecutive rows.

    Where rows are sorted by class, by family or by day, such a fold is unlike the rows that it is predicted from, and
    held-out losses say little about new rows. It is given when the lag-1 autocorrelation of y along the observed rows
    of a task is beyond 4 standard errors (:math:`r_1 > 4 / \\sqrt n`).
    """


def autocorrelation(values: np.ndarray) -> float:
    """Lag-1 autocorrelation of the rows of an array of shape (n, m), pooled over its columns; 0 if all are equal."""
    centred = values - values.mean(axis=0)
    total = float(np.sum(centred**2))
    return float(np.sum(centred[1:] * centred[:-1])) / total if total > 0 else 0.0


def warn_of_order(labels: TaskLabels, held_out: Sequence[np.ndarray]) -> None:
    """Give an `OrderWarning` where it is due."""
    values = (labels.y if labels.y.dtype.names is None else labels.y["time"])[:, None]
    if labels.class_counts is not None:  # an indicator of each class
        values = (values == np.arange(int(np.max(labels.class_counts)))).astype(np.float64)
    found, strongest = [], 0.0
    for task, part in zip(labels.tasks.tolist(), labels.per_task(), strict=True):
        rows = part.start + np.flatnonzero(labels.weights[part] > 0)
        if len(rows) <= STANDARD_ERRORS**2:  # beyond so many errors would be beyond 1
            continue
        errors = autocorrelation(values[rows]) * np.sqrt(len(rows))
        if errors > STANDARD_ERRORS and _consecutive([np.flatnonzero(held[rows]) for held in held_out]):
            found.append(task)
            strongest = max(strongest, float(errors))
    if found:
        warn(
            Message(
                "{y} depends on the order of the rows in {n} task(s) ({some}; lag-1 autocorrelation up to "
                "{strongest:.0f} standard errors), and each fold is a stretch of consecutive rows, unlike those that "
                "it is predicted from: the losses may be far from those of new rows. Shuffle the rows or the folds"
                "{how}, or pass {groups} where related rows lie together. Where later rows are to be predicted from "
                "earlier ones, this is as it should be.",
                n=len(found),
                some=some_of(found),
                strongest=strongest,
                how=either(f" (KFold({len(held_out)}, shuffle=True))"),
            ),
            OrderWarning,
        )


def _consecutive(positions: list[np.ndarray]) -> bool:
    """Whether each fold of two rows or more is one stretch; False where none has so many."""
    several = [position for position in positions if len(position) > 1]
    return bool(several) and all(position[-1] - position[0] == len(position) - 1 for position in several)
