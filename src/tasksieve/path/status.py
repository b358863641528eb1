"""How the solution of a value ended."""

from __future__ import annotations

from enum import StrEnum

import numpy as np


class Status(StrEnum):
    """How the solution of a value ended. A member is its own name as a string: ``path.status == "converged"``.

    Whatever the status, the duality gap is a true bound. A path that was interrupted holds the values that were
    finished, each with its own status, and says so in ``path.interrupted``.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = np.random.default_rng(0).standard_normal((30, 4))
    >>> ts.MultiTaskLasso(alpha=0.1).fit(X, X[:, 0]).status_
    <Status.CONVERGED: 'converged'>
    >>> [str(status) for status in ts.Status]
    ['converged', 'iterations', 'stalled', 'rounding', 'no_optimum']
    """

    #: the gap is at most `tol`
    CONVERGED = "converged"
    #: ``max_iter`` was spent: more iterations would go on
    ITERATIONS = "iterations"
    #: the solver found no step that makes the gap smaller, though iterations were left
    STALLED = "stalled"
    #: double precision, or the numbers as they are stored, resolve no smaller gap
    ROUNDING = "rounding"
    #: there is no finite optimum, as where unpenalised features separate the classes
    NO_OPTIMUM = "no_optimum"


def statuses_of(converged: np.ndarray) -> np.ndarray:
    """Of values that end by their tolerance or by their iterations."""
    return np.where(converged, str(Status.CONVERGED), str(Status.ITERATIONS))
