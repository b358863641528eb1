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


def event_moments(x: Array, y: Array, weights: Array, scores: Array, ties: str) -> EventMoments:
    """Of rows of one task; those of weight 0 are absent."""
    live = weights > 0.0
    x, y, weights, scores = x[live], y[live], weights[live], scores[live]
    times, deaths, residuals, variances = [], [], [], []
    for stratum in np.unique(y["stratum"]).tolist():
        own = y["stratum"] == stratum
        rows, labels, s, z = x[own], y[own], weights[own], scores[own]
        for time in np.unique(labels["time"][labels["event"]]).tolist():
            at_risk = (labels["entry"] < time) & (labels["time"] >= time)
            died = labels["event"][at_risk] & (labels["time"][at_risk] == time)
            here, size, height = rows[at_risk], s[at_risk], z[at_risk]
            w = size * np.exp(height - height.max())
            m = int(np.count_nonzero(died)) if ties == "efron" else 1
            total, mean, spread = float(size[died].sum()), np.zeros(x.shape[1]), np.zeros((x.shape[1],) * 2)
            for step in range(m):
                share = w * (1.0 - step / m * died)
                share = share / share.sum()
                centre = share @ here
                apart = here - centre
                mean += centre / m
                spread += (apart * share[:, None]).T @ apart / m
            times.append(time)
            deaths.append(total)
            residuals.append(size[died] @ here[died] - total * mean)
            variances.append(total * spread)
    p = x.shape[1]
    return EventMoments(
        np.array(times), np.array(deaths), np.reshape(residuals, (-1, p)), np.reshape(variances, (-1, p, p))
    )


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
            return coef, event_moments(x, y, weights, known + x @ coef, ties)
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
