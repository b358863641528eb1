r"""Breslow's baseline hazard, task by task and stratum by stratum, and the step functions that are made of it.

.. math:: H_0(t) = \sum_{t_g \le t} \lambda_g, \qquad \lambda_g = \frac{d_g}{\sum_{k \in R_g} s_k e^{z_k}}, \qquad
    S(t \mid x) = \exp(-H_0(t)\, e^{x \cdot w})

(Efron's ties: :math:`\lambda_g = \frac{d_g}{m_g} \sum_{l < m_g} 1/(S_g - \frac{l}{m_g} Q_g)`.) Logarithms are kept, so
that scores may be of any size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..losses.partial_likelihood import PartialLikelihood
from ..optional import data_frame
from ..row_names import row_name
from ..tasks import TaskLabels, some_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class StepFunction:
    """A function of time that changes at event times only, and is known as long as rows were observed.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Event times, increasing.
    y : ndarray of shape (m,)
        Values from these times on.
    start : float
        The value before the first of them.
    end : float
        The last time at which a row was observed: beyond it the function is NaN.
    """

    x: Array
    y: Array
    start: float
    end: float

    def __call__(self, times: Any) -> Array:
        """Values at some times: an array, or a number for a number."""
        at = np.asarray(times, dtype=np.float64)
        found = np.append(self.start, self.y)[np.searchsorted(self.x, at, side="right")]
        return np.where(at <= self.end, found, np.nan)[()]


@dataclass(frozen=True)
class BaselineHazard:
    """Increments of the hazard of a row whose score is 0, at the event times of each task and stratum.

    Attributes
    ----------
    tasks : ndarray of shape (T,)
    strata : ndarray, or None
        Names of the strata; None where there are none.
    task, stratum : int ndarrays of shape (G,)
        Positions in these, of each event time.
    time : ndarray of shape (G,)
        Increasing within a task and stratum.
    log_increment : ndarray of shape (G,)
        Logarithms of the increments.
    end : ndarray of shape (T, number of strata)
        The last time at which a row was observed; NaN where there is none.
    """

    tasks: Array
    strata: Array | None
    task: Array = field(repr=False)
    stratum: Array = field(repr=False)
    time: Array = field(repr=False)
    log_increment: Array = field(repr=False)
    end: Array = field(repr=False)

    @classmethod
    def of(cls, labels: TaskLabels, scores: Array, ties: str) -> BaselineHazard:
        """From the labels of a fit, and the scores of its rows (with offsets, without intercepts)."""
        task, stratum, time, increment = [], [], [], []
        ends = np.full((labels.n_tasks, 1 if labels.strata is None else len(labels.strata)), np.nan)
        for t, part in enumerate(labels.per_task()):
            y, weights = labels.y[part], labels.weights[part]
            own = PartialLikelihood(y, weights, ties)
            time.append(own.times)
            stratum.append(own.strata)
            task.append(np.full(len(own.times), t))
            increment.append(own.log_hazards(scores[part]))
            for code in np.unique(y["stratum"][weights > 0.0]).tolist():
                ends[t, code] = y["time"][(weights > 0.0) & (y["stratum"] == code)].max()
        tasks, strata, times, logs = (np.concatenate(parts) for parts in (task, stratum, time, increment))
        return cls(labels.tasks, labels.strata, tasks, strata, times, logs, ends)

    def __call__(self, task: Any = None, stratum: Any = None) -> StepFunction:
        """The cumulative hazard of a task (and stratum) at score 0.

        Parameters
        ----------
        task : label
            May be left out where there is one.
        stratum : label
            Where there are strata.

        Returns
        -------
        StepFunction
        """
        t = 0 if task is None and len(self.tasks) == 1 else _place(task, self.tasks, "task")
        k = 0 if self.strata is None and stratum is None else _place(stratum, self.strata, "stratum")
        times, logs = self.cell(t, k)
        return StepFunction(times, np.exp(logs), 0.0, float(self.end[t, k]))

    def cell(self, t: int, k: int) -> tuple[Array, Array]:
        """Event times of a task and a stratum, by their positions, and logarithms of the cumulative hazard there."""
        here = (self.task == t) & (self.stratum == k)
        return self.time[here], np.logaddexp.accumulate(self.log_increment[here]) if here.any() else np.zeros(
            0
        )

    def stratum_codes(self, strata: Any, n_rows: int) -> Array:
        """Positions of the strata of some rows; None where a model without strata is asked."""
        if self.strata is None:
            if strata is not None:
                raise ValueError("strata was given, but the model was fitted without strata: leave it out.")
            return np.zeros(n_rows, dtype=np.int64)
        if strata is None:
            raise ValueError(
                f"The model was fitted with strata ({some_of(self.strata.tolist())}), each of which has a baseline "
                "hazard of its own: pass strata, that of each row."
            )
        labels = np.asarray(strata)
        labels = np.full(n_rows, labels[()]) if labels.ndim == 0 else labels
        if labels.shape != (n_rows,):
            raise ValueError(
                f"strata must have one label per row of X: {n_rows} rows, strata has {labels.shape}."
            )
        place = {label: k for k, label in enumerate(self.strata.tolist())}
        codes = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)
        if np.any(codes < 0):
            i = int(np.argmax(codes < 0))
            raise ValueError(
                f"stratum {labels.tolist()[i]!r} in {row_name(i)} is unknown: the model was fitted with "
                f"{some_of(self.strata.tolist())}."
            )
        return codes

    def curves(self, scores: Array, task: Array, stratum: Array, times: Any, survival: bool) -> Array:
        """Cumulative hazards, or probabilities to survive, of rows by their scores and the positions of their task and
        stratum: step functions (n,) where `times` is None, else values at these (n, K)."""
        known = None if times is None else np.asarray(times, dtype=np.float64)
        out: Any = np.empty(len(scores), dtype=object) if known is None else np.empty((len(scores), known.size))
        cells, inverse = np.unique(np.stack([task, stratum], axis=1), axis=0, return_inverse=True)
        for number, (t, k) in enumerate(cells.tolist()):
            rows = np.flatnonzero(inverse.ravel() == number)
            end = float(self.end[t, k])
            if np.isnan(end):
                of = "" if self.strata is None else f"stratum {self.strata.tolist()[k]!r} of "
                raise ValueError(
                    f"{of}task {self.tasks.tolist()[t]!r}, to which {row_name(rows[0])} belongs, had no rows in the "
                    "fit: its baseline hazard is not known."
                )
            x, logs = self.cell(t, k)
            if known is None:
                for i in rows.tolist():
                    values = _values(logs + scores[i], survival)
                    out[i] = StepFunction(x, values, 1.0 if survival else 0.0, end)
                continue
            logs = np.append(-np.inf, logs)[np.searchsorted(x, known.ravel(), side="right")]
            values = _values(scores[rows, None] + logs, survival)
            out[rows] = np.where(known.ravel() <= end, values, np.nan)
        return out

    def to_frame(self) -> Any:
        """A pandas data frame: task, stratum (where there are any), time, increment, cumulative."""
        cumulative = np.empty(len(self.time))
        for t, k in np.unique(np.stack([self.task, self.stratum], axis=1), axis=0).tolist():
            cumulative[(self.task == t) & (self.stratum == k)] = self.cell(t, k)[1]
        columns: dict[str, Any] = {"task": self.tasks[self.task]}
        if self.strata is not None:
            columns["stratum"] = self.strata[self.stratum]
        columns |= {
            "time": self.time,
            "increment": np.exp(self.log_increment),
            "cumulative": np.exp(cumulative),
        }
        return data_frame(self, columns)


def _values(logs: Array, survival: bool) -> Array:
    with np.errstate(over="ignore"):
        hazard = np.exp(logs)
    return np.exp(-hazard) if survival else hazard


def _place(label: Any, labels: Array | None, name: str) -> int:
    known = [] if labels is None else labels.tolist()
    if label not in known:
        raise ValueError(f"{name} {label!r} is unknown; the model has {some_of(known) if known else 'none'}.")
    return int(known.index(label))
