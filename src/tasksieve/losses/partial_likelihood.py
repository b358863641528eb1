r"""Cox's partial likelihood at given scores, many columns of them at a time: held-out scores and baseline hazards.

With :math:`w_k = s_k e^{z_k}`, event times :math:`t_g` of a stratum, :math:`D_g` the deaths there (m of them, of weight
d), :math:`S_g` and :math:`Q_g` the sums of w over the risk set and over the deaths, and :math:`f_l = l/m`,

.. math:: F(z) = \sum_g \frac{d_g}{m_g} \sum_{l < m_g} \log(S_g - f_l Q_g) - \sum_k s_k \delta_k z_k

(Efron; Breslow: all :math:`f_l = 0`). Less its saturated value it is homogeneous of degree one in the weights: it is
the sum of its derivatives in their logarithms, what each row adds to it (Euler's theorem).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .risk_sets import RiskSets, risk_sets

Array = np.ndarray[Any, Any]

# Scores that are evaluated at a time.
_ENTRIES = 1 << 20


class PartialLikelihood:
    """Risk sets of the rows of one task, to be used for any number of scores.

    - `y`: `outcomes.SURVIVAL`, of shape (n,).
    - `weights`: Rows of weight 0 are absent.
    - `ties` ({"efron", "breslow"})
    """

    def __init__(self, y: Array, weights: Array, ties: str = "efron") -> None:
        found = risk_sets(y, weights, np.array([0, len(y)]), ties == "efron")
        self._sets = found[0] if found else None  # one task has risk sets of one kind
        #: of each event time: the weight of the events, its stratum, and the time
        self.events: Array = np.zeros(0)
        self.times: Array = np.zeros(0)
        self.strata: Array = np.zeros(0, dtype=np.int64)
        if self._sets is not None:
            self.events = self._sets.events_at
            first = self._sets.deaths[np.unique(self._sets.group, return_index=True)[1]]
            of = y[self._sets.rows[first]]
            self.strata, self.times = of["stratum"].astype(np.int64), of["time"].copy()

    @property
    def total(self) -> float:
        """Weight of all events."""
        return float(np.sum(self.events))

    def contributions(self, z: Array) -> Array:
        """What each row adds to F less its saturated value, for columns of scores (n, K): half a deviance."""
        n_rows, count = z.shape
        out = np.zeros((count, n_rows))
        if self._sets is None:
            return out.T
        step = max(_ENTRIES // n_rows, 1)
        for start in range(0, count, step):
            own, into = z[:, start : start + step].T, out[start : start + step].reshape(-1)
            sets = self._sets.repeated(len(own), n_rows)
            into[sets.rows] = _by_row(sets, own.ravel()[sets.rows])
        return out.T

    def deviance(self, z: Array) -> Array:
        """Twice F less its saturated value, for columns of scores (n, K)."""
        return 2.0 * np.sum(self.contributions(z), axis=0)

    def log_hazards(self, z: Array) -> Array:
        """Logarithms of the increments of the baseline hazard at the event times, for scores (n,)."""
        if self._sets is None:
            return np.zeros(0)
        return self._sets.log_hazards(self._sets.at(z[self._sets.rows]))


def _by_row(sets: RiskSets, z: Array) -> Array:
    """What each row of risk sets adds to F less its saturated value at scores z."""
    at = sets.at(z)
    found, deaths = at.mean.copy(), sets.deaths
    above = (sets.mean_logs(at) - sets.saturated_logs())[sets.group]
    found[deaths] += sets.events[deaths] * (above - z[deaths] - 1.0)
    return found


def held_out_contributions(y: Array, z: Array, train: Array, test: Array, ties: str) -> Array:
    """What each row of a task adds to the deviance of a fold at scores (n, K).

    The deviance of all rows less that of those learned from, both at the scores of a model that has learned from the
    latter (Verweij and van Houwelingen 1993).
    """
    whole, learned = PartialLikelihood(y, train + test, ties), PartialLikelihood(y, train, ties)
    return 2.0 * (whole.contributions(z) - learned.contributions(z))
