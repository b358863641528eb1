r"""Cox's model of a few columns without a penalty, one task: Newton's method, and what the columns do at event times.

With the deaths of an event time (m of them, of weight d) and the covariates x at risk there, each weighted by
:math:`s_k e^{z_k}`, means and covariances are averaged over Efron's m steps, in the l-th of which a death counts
:math:`1 - l/m`:

.. math:: U = \sum_g \Bigl(\sum_{k \in D_g} s_k x_k - d_g \bar x_g\Bigr), \qquad I = \sum_g d_g V_g
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses.partial_likelihood import PartialLikelihood
from ..losses.risk_sets import risk_sets

Array = np.ndarray[Any, Any]

_STEPS = 50
_HALVINGS = 30
_CLOSE = 1e-12


@dataclass(frozen=True)
class EventMoments:
    """What covariates do at the event times of all strata.

    - `times` (G,), `weights` (G,): Event times, and the weight of the deaths there.
    - `residuals` (G, p): Of the deaths of each time, less what was expected of those at risk: Schoenfeld's residuals.
    - `variances` (G, p, p): Covariance of the covariates at risk, times the weight of the deaths.
    """

    times: Array
    weights: Array
    residuals: Array
    variances: Array


def event_moments(x: Array, y: Array, weights: Array, scores: Array, ties: str) -> EventMoments | None:
    """Of rows of one task; those of weight 0 are absent. None without events, and where scores lie too far apart."""
    found = risk_sets(y, weights, np.array([0, len(y)]), ties == "efron")
    if not found:
        return None
    (sets,) = found  # of one task they are of one kind
    at = sets.at(scores[sets.rows])
    if at.weights is None:
        return None
    rows, p = x[sets.rows], x.shape[1]
    rows = rows - np.average(rows, axis=0, weights=at.mean)  # so that variances lose nothing by their means
    means = [sets.means(at, column) for column in rows.T]
    mean = np.stack([sets.averaged(*own) for own in means], axis=1)
    variances = np.empty((sets.n_groups, p, p))
    for a in range(p):
        for b in range(a + 1):
            both = zip(sets.means(at, rows[:, a] * rows[:, b]), means[a], means[b], strict=True)
            apart = sets.averaged(*(product - first * second for product, first, second in both))
            variances[:, a, b] = variances[:, b, a] = apart
    deaths, size = sets.deaths, sets.events[sets.deaths]
    died = np.stack([np.bincount(sets.group, size * column[deaths], sets.n_groups) for column in rows.T], axis=1)
    times = np.empty(sets.n_groups)
    times[sets.group] = y["time"][sets.rows[deaths]]
    d = sets.events_at
    return EventMoments(times, d, died - d[:, None] * mean, d[:, None, None] * variances)


def unpenalised_cox(
    x: Array, y: Array, weights: Array, offset: Array | None = None, ties: str = "efron"
) -> tuple[Array, EventMoments] | None:
    """Coefficients of the columns of x and the moments there, by Newton's method with halved steps; None where the
    likelihood has no maximum (separated or dependent columns)."""
    known = np.zeros(len(y)) if offset is None else offset
    likelihood = PartialLikelihood(y, weights, ties)
    coef = np.zeros(x.shape[1])
    value = float(likelihood.deviance((known + x @ coef)[:, None])[0])
    for _ in range(_STEPS):
        found = event_moments(x, y, weights, known + x @ coef, ties)
        if found is None:
            return None
        score, information = found.residuals.sum(axis=0), found.variances.sum(axis=0)
        try:
            step = np.linalg.solve(information, score)
        except np.linalg.LinAlgError:
            return None
        decrement = float(score @ step)
        if not np.isfinite(decrement) or decrement < 0.0:
            return None
        if decrement <= _CLOSE * (1.0 + abs(value)):  # the error of the step after this one is its square
            coef = coef + step
            last = event_moments(x, y, weights, known + x @ coef, ties)
            return None if last is None else (coef, last)
        for _ in range(_HALVINGS):
            trial = float(likelihood.deviance((known + x @ (coef + step))[:, None])[0])
            if trial <= value:
                break
            step = 0.5 * step
        else:
            return coef, found  # rounding: there is nothing left to gain
        coef, value = coef + step, trial
        if np.max(np.abs(x @ coef), initial=0.0) > 500.0:
            return None
    return None
