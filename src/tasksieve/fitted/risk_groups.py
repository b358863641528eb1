"""Rows of a survival model by thirds of their predicted risk: observed survival, and that which the model expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .baseline_hazard import BaselineHazard
from .cox_moments import unpenalised_cox

Array = np.ndarray[Any, Any]

NAMES = ("low risk", "middle risk", "high risk")
LEAST = 12  # rows of a task: fewer make no three groups
MOST_POINTS = 150  # of a curve: more are not seen
N_MARKS = 6  # times at which rows at risk are counted, 0 among them


@dataclass(frozen=True)
class RiskGroup:
    """A third of the rows of a task.

    - `observed`, `expected`: The share without an event from each of `times` on: Kaplan and Meier's estimate, and the
      mean of the model's survival functions.
    - `at_risk`: Rows under observation at each of the marks.
    """

    name: str
    n_rows: int
    n_events: int
    times: Array
    observed: Array
    expected: Array
    at_risk: Array


@dataclass(frozen=True)
class RiskGroups:
    """Of all tasks that have rows enough.

    - `held_out`: Whether rows were ranked by models that had not learned from them.
    - `groups`: Of each of `tasks`, low risk first.
    - `middle`: The median of the times of events: where observed and expected shares are compared.
    - `slopes`, `slope_errors`: Of each task: the coefficient of the ranks in a Cox model of their own, and its standard
      error. 1: differences between ranks are those of log hazards; above it they are too small, below too large.
    """

    tasks: Sequence[str]
    marks: Array
    held_out: bool
    groups: Sequence[Sequence[RiskGroup]]
    middle: float | None = None
    slopes: Sequence[float] = ()
    slope_errors: Sequence[float] = ()


def risk_groups(
    model: Any, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, offset: Any = None
) -> RiskGroups | None:
    """Of the rows that a model was fitted to; None where no task has rows enough, or the model ranks none.

    Thirds are formed within tasks, by predictions out of fold where the model has some.
    """
    if not _has_survival(model):
        return None
    data = model._read_with(X, y, task, sample_weight, offset)
    mixed = data.kinds is not None
    scores = data.flatten(model._scores(X, task, offset=offset))
    ranks, held_out = scores, hasattr(model, "cv_predictions_")
    if held_out:
        ranks = data.flatten(model.cv_predictions_)
    used = (data.weights > 0.0) & np.isfinite(ranks)
    if data.kinds is not None:
        used &= np.array([kind == "survival" for kind in data.kinds])[data.task_of_sample]
    events = data.y["time"][used & data.y["event"]]
    if not len(events):
        return None
    marks, middle = nice_marks(float(np.quantile(data.y["time"][used], 0.98))), float(np.median(events))
    tasks, found, slopes = [], [], []
    for t, part in enumerate(data.per_task()):
        rows = part.start + np.flatnonzero(used[part])
        ends = np.quantile(ranks[rows], [1.0 / 3.0, 2.0 / 3.0]) if len(rows) >= LEAST else np.zeros(2)
        if not ends[0] < ends[1]:
            continue
        ties = model.losses_[t].ties if mixed else model.ties
        hazard = BaselineHazard.of(data, scores, ties) if mixed else model.baseline_hazard_
        slopes.append(calibration_slope(data.y[rows], ranks[rows], data.weights[rows], ties))
        third = np.searchsorted(ends, ranks[rows], side="left")
        of_task = []
        for g, name in enumerate(NAMES):
            own = rows[third == g]
            labels, weights = data.y[own], data.weights[own]
            times, observed = kaplan_meier(labels, weights)
            curves = hazard.curves(
                scores[own], np.full(len(own), t), labels["stratum"], times, survival=True
            )
            expected = _means(curves, weights)
            at_risk = np.count_nonzero(
                (labels["entry"] < marks[:, None]) & (labels["time"] >= marks[:, None]), axis=1
            )
            n_events = int(np.count_nonzero(labels["event"]))
            of_task.append(RiskGroup(name, len(own), n_events, times, observed, expected, at_risk))
        tasks.append(str(data.tasks[t : t + 1].tolist()[0]))
        found.append(of_task)
    if not tasks:
        return None
    each, errors = zip(*slopes, strict=True)
    return RiskGroups(tasks, marks, held_out, found, middle, list(each), list(errors))


def _has_survival(model: Any) -> bool:
    if model._targets == "mixed":
        return any(loss.labels == "survival" for loss in model.losses_)
    return hasattr(model, "baseline_hazard_")


def calibration_slope(y: Array, scores: Array, weights: Array, ties: str) -> tuple[float, float]:
    """The coefficient of scores in a Cox model that has nothing else, within strata, and its standard error; NaN where
    it is not finite."""
    found = unpenalised_cox(scores[:, None], y, weights, ties=ties)
    if found is None:
        return float("nan"), float("nan")
    return float(found[0][0]), float(1.0 / np.sqrt(found[1].variances.sum()))


def kaplan_meier(y: Array, weights: Array, thin: bool = True) -> tuple[Array, Array]:
    """Event times, at most `MOST_POINTS` of them if `thin`, and the share without an event from each on."""
    times, which = np.unique(y["time"][y["event"]], return_inverse=True)
    died = np.bincount(which, weights[y["event"]], len(times))
    present = _from_on(y["time"], weights, times) - _from_on(y["entry"], weights, times)
    share = np.cumprod(np.maximum(1.0 - died / present, 0.0))
    if thin and len(times) > MOST_POINTS:
        kept = np.unique(np.linspace(0, len(times) - 1, MOST_POINTS).round().astype(np.intp))
        times, share = times[kept], share[kept]
    return times, share


def _from_on(values: Array, weights: Array, times: Array) -> Array:
    """Weight of the rows whose value is at least each of some times."""
    order = np.argsort(values)
    after = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    return after[np.searchsorted(values[order], times, side="left")]


def nice_marks(last: float) -> Array:
    """About `N_MARKS` round times from 0 up to one."""
    if not last > 0.0:
        return np.zeros(1)
    raw = last / (N_MARKS - 1)
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * power >= 0.7 * raw)
    return step * np.arange(int(last / step) + 1)


def _means(curves: Array, weights: Array) -> Array:
    """Weighted means of the rows whose curve reaches so far."""
    known = np.isfinite(curves)
    total = weights @ known
    sums = weights @ np.where(known, curves, 0.0)
    return np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0.0)
