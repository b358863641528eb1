"""A value of a path, and many at once as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from .status import Status

Array = np.ndarray[Any, Any]


@dataclass
class Value:
    """One value of the path, in sum units; rows are coefficients of the raw columns.

    - `n_rejected`, `n_rejected_dynamic`: Rows rejected before and during the solve.
    - `n_rejected_entries`: Coefficients of the rows solved for, proven zero before the last solve.
    - `residual_norms`: Of each task, where the loss is made of them.
    - `clusters`: Features with tied row norms, where the penalty ties them.
    - `steps`: What the solver saw.
    - `limit`: Not converged, and no more iterations would help: what limits it.
    - `unmet`: How it ended, where not converged.
    - `algorithm`: Which algorithm solved it.
    - `n_rounds`, `n_working`, `n_open`: Solves on a working set, the size of the last one, and features whose bounds
      were left open, so that their columns were read.
    - `passes`: Over the data, in equivalents.
    - `thresholds` (array of shape (m, n_tasks)): What the loss compares scores with, where it does.
    - `dual`: The dual point of the gap, where the loss is made of norms: a task that is fitted exactly has a residual
      of 0, which says nothing about it.
    """

    lam: float
    features: Array
    rows: Array
    intercept: Array
    objective: float
    dual_gap: float
    n_iter: int
    n_rejected: int
    n_rejected_dynamic: int
    seconds: float
    converged: bool
    n_rejected_entries: int = 0
    residual_norms: Array | None = None
    clusters: list[Array] | None = None
    steps: list[tuple[int, int, float]] = field(default_factory=list)
    limit: str | None = None
    unmet: Status = Status.ITERATIONS
    algorithm: str = "sums over rows"
    n_rounds: int = 1
    n_working: int = 0
    n_open: int = 0
    passes: float = 0.0
    dual: Array | None = None
    thresholds: Array | None = None

    @property
    def status(self) -> Status:
        """How the solution ended."""
        return Status.CONVERGED if self.converged else self.unmet


class Values(Sequence[Value]):
    """Values that were found together: each becomes a `Value` when it is accessed.

    The path of a small problem is a hundred of them, and making so many objects would take as long as solving it.

    - `columns` (dict of str to array): Attributes of the values by their names: one number each.
    - `ends`: Where the features of each value end.
    - `features`, `rows`: Of all values, one after another.
    - `free`, `free_rows` (arrays, (k,) and (values, k, n_tasks)): Features that every value has beside these.
    """

    def __init__(
        self,
        columns: dict[str, Array],
        ends: Array,
        features: Array,
        rows: Array,
        intercept: Array,
        free: Array,
        free_rows: Array,
    ) -> None:
        self._columns, self._ends = columns, ends
        self._features, self._rows, self._intercept = features, rows, intercept
        self._free, self._free_rows = free, free_rows

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, k: int) -> Value: ...

    @overload
    def __getitem__(self, k: slice) -> list[Value]: ...

    def __getitem__(self, k: int | slice) -> Value | list[Value]:
        if isinstance(k, slice):
            return [self._value(position) for position in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(f"value {k} of {len(self)}")
        return self._value(int(k) % len(self))

    def _value(self, k: int) -> Value:
        own = slice(int(self._ends[k - 1]) if k else 0, int(self._ends[k]))
        features, rows = self._features[own], self._rows[own]
        if len(self._free):
            features = np.concatenate([features, self._free])
            rows = np.vstack([rows, self._free_rows[k]])
        numbers: dict[str, Any] = {name: column[k].item() for name, column in self._columns.items()}
        return Value(features=features, rows=rows, intercept=self._intercept[k], n_rejected_dynamic=0, **numbers)

    def first(self, count: int) -> Values:
        """The first of them."""
        columns = {name: column[:count] for name, column in self._columns.items()}
        ends = self._ends[:count]
        last = int(ends[-1]) if count else 0
        return Values(
            columns, ends, self._features[:last], self._rows[:last], self._intercept[:count], self._free,
            self._free_rows[:count],
        )  # fmt: skip

    def column(self, name: str) -> Array:
        """An attribute of all values."""
        found = self._columns.get(name)
        return np.zeros(len(self), dtype=np.int64) if found is None else found

    def live_rows(self) -> Array:
        """How many rows of each value are not zero."""
        live = self._rows.any(axis=1)
        ends = self._ends if live.all() else np.concatenate([[0], live.cumsum()])[self._ends]
        found = ends.copy()
        found[1:] -= ends[:-1]
        return found + np.count_nonzero(self._free_rows.any(axis=2), axis=1) if len(self._free) else found
