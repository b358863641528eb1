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
import scipy.sparse
from scipy.special import gammaln, logsumexp

Array = np.ndarray[Any, Any]

# Sums of exponentials are taken as they are while scores differ by less.
_NARROW = 500.0
# A sum over the rows at risk that is less than this share of the sum of all who enter it is taken anew.
_CANCELLED = 1e-3


class PartialLikelihood:
    """Risk sets of the rows of one task, to be used for any number of scores.

    - `y`: `outcomes.SURVIVAL`, of shape (n,).
    - `weights`: Rows of weight 0 are absent.
    - `ties` ({"efron", "breslow"})
    """

    def __init__(self, y: Array, weights: Array, ties: str = "efron") -> None:
        self.n_rows, live = len(y), np.flatnonzero(weights > 0.0)
        y, self._s = y[live], np.asarray(weights[live], dtype=np.float64)
        stratum, event = y["stratum"].astype(np.int64), y["event"]
        keys = np.empty(int(event.sum()), dtype=[("stratum", np.int64), ("time", np.float64)])
        keys["stratum"], keys["time"] = stratum[event], y["time"][event]
        cells, group = np.unique(keys, return_inverse=True)
        #: of each event time: its stratum, and the time
        self.strata, self.times = cells["stratum"], cells["time"]
        self._lo, self._hi = (
            _position(self.strata, self.times, stratum, y[name]) for name in ("entry", "time")
        )
        first = np.searchsorted(self.strata, stratum)
        self._lo = np.maximum(self._lo, first)
        at_risk = self._hi > self._lo
        self.rows, self._lo, self._hi = live[at_risk], self._lo[at_risk], self._hi[at_risk]
        self._s, self._stratum, event = self._s[at_risk], stratum[at_risk], event[at_risk]
        self.deaths = np.flatnonzero(event)
        self._group, n_groups = group, len(cells)
        self._e = np.where(event, self._s, 0.0)
        #: weight of the events at each time
        self.events = np.bincount(group, weights=self._s[self.deaths], minlength=n_groups)
        self._count = np.bincount(group, minlength=n_groups)
        self._efron = ties == "efron" and bool(np.any(self._count > 1))
        copies = self._count if self._efron else np.ones(n_groups, dtype=np.int64)
        self._of_copy = np.repeat(np.arange(n_groups), copies)
        starts = np.cumsum(copies) - copies
        self._starts = starts
        self._share = ((np.arange(len(self._of_copy)) - starts[self._of_copy]) / copies[self._of_copy])[
            :, None
        ]
        self._mean = self.events / copies
        #: per unit of an event's weight: the logarithm in the saturated value
        log_events = np.log(self.events) if n_groups else np.zeros(0)
        m = copies.astype(np.float64)
        self._saturated = log_events + (gammaln(m + 1.0) - m * np.log(m)) / m
        self._truncated = bool(np.any(self._lo > first[at_risk]))
        self._cuts = np.append(np.flatnonzero(np.diff(self.strata, prepend=-1)), n_groups)

    @property
    def total(self) -> float:
        """Weight of all events."""
        return float(np.sum(self.events))

    def contributions(self, z: Array) -> Array:
        """What each row adds to F less its saturated value, for columns of scores (n, K): half a deviance."""
        out = np.zeros(z.shape)
        if not len(self.rows):
            return out
        own = z[self.rows]
        logs, found, _ = self._evaluated(own)
        found[self.deaths] += self._e[self.deaths, None] * (
            (logs - self._saturated[:, None])[self._group] - own[self.deaths] - 1.0
        )
        out[self.rows] = found
        return out

    def deviance(self, z: Array) -> Array:
        """Twice F less its saturated value, for columns of scores (n, K)."""
        return 2.0 * np.sum(self.contributions(z), axis=0)

    def log_hazards(self, z: Array) -> Array:
        """Logarithms of the increments of the baseline hazard at the event times, for scores (n,)."""
        if not len(self.rows):
            return np.zeros(0)
        return self._evaluated(z[self.rows][:, None])[2][:, 0]

    def _evaluated(self, z: Array) -> tuple[Array, Array, Array]:
        """By event time the mean logarithm of the sums at risk; by row the fitted mean; by event time the logarithm of
        the hazard's increment."""
        level = z.max(axis=0)
        if not np.all(level - z.min(axis=0) < _NARROW):
            return self._wide(z)
        w = self._s[:, None] * np.exp(z - level)
        sums, of_deaths = self._at_risk(w), self._of_deaths(w)
        den = sums[self._of_copy] - self._share * of_deaths[self._of_copy]
        logs = (
            np.add.reduceat(np.log(den), self._starts) / np.diff(np.append(self._starts, len(den)))[:, None]
        )
        hazard = self._mean[:, None] * np.add.reduceat(1.0 / den, self._starts)
        cumulative = self._cumulated(hazard)
        until = cumulative[self._hi - 1]
        if self._efron:
            of_death = self._mean[:, None] * np.add.reduceat((1.0 - self._share) / den, self._starts)
            until[self.deaths] += (of_death - hazard)[self._group]
        if self._truncated:
            late = np.flatnonzero(self._lo > np.searchsorted(self.strata, self._stratum))
            until[late] -= cumulative[self._lo[late] - 1]
        return logs + level, w * until, np.log(hazard) - level

    def _wide(self, z: Array) -> tuple[Array, Array, Array]:
        """The same by logarithms, one event time after the other: exponentials would vanish beside the largest."""
        log_w = np.log(self._s)[:, None] + z
        logs, hazard = (np.empty((len(self.times), z.shape[1])) for _ in range(2))
        means = np.zeros(z.shape)
        for g in range(len(self.times)):
            members = (self._lo <= g) & (self._hi > g)
            dying = np.zeros(len(z), dtype=bool)
            dying[self.deaths[self._group == g]] = True
            each = []
            for share in self._share[self._of_copy == g, 0].tolist():
                terms = log_w[members] + np.where(dying, np.log1p(-share), 0.0)[members, None]
                each.append(logsumexp(terms, axis=0))
                means[members] += self._mean[g] * np.exp(terms - each[-1])
            stacked = np.array(each)
            logs[g] = stacked.mean(axis=0)
            hazard[g] = np.log(self._mean[g]) + logsumexp(-stacked, axis=0)
        return logs, means, hazard

    def _of_deaths(self, w: Array) -> Array:
        if not self._efron:
            return np.zeros((len(self.times), w.shape[1]))
        return self._summed(self._group, self.deaths, w)

    def _summed(self, group: Array, rows: Array, w: Array) -> Array:
        """Rows of w added up by group."""
        where = (np.ones(len(rows)), (group, rows))
        return np.asarray(scipy.sparse.csr_array(where, shape=(len(self.times), len(w))) @ w)

    def _at_risk(self, w: Array) -> Array:
        everyone = np.arange(len(w))
        sums = self._from_behind(self._summed(self._hi - 1, everyone, w))
        if not self._truncated:
            return sums
        late = np.flatnonzero(self._lo > np.searchsorted(self.strata, self._stratum))
        left = sums - self._from_behind(self._summed(self._lo[late] - 1, late, w))
        for g in np.flatnonzero(np.any(left < _CANCELLED * sums, axis=1)).tolist():
            left[g] = w[(self._lo <= g) & (self._hi > g)].sum(axis=0)
        return left

    def _from_behind(self, sums: Array) -> Array:
        """Cumulated within strata, the last event time first."""
        for first, last in zip(self._cuts[:-1].tolist(), self._cuts[1:].tolist(), strict=True):
            sums[first:last] = np.cumsum(sums[first:last][::-1], axis=0)[::-1]
        return sums

    def _cumulated(self, hazard: Array) -> Array:
        out = np.empty_like(hazard)
        for first, last in zip(self._cuts[:-1].tolist(), self._cuts[1:].tolist(), strict=True):
            out[first:last] = np.cumsum(hazard[first:last], axis=0)
        return out


def _position(strata: Array, times: Array, stratum: Array, time: Array) -> Array:
    """How many event times lie before those of some rows or at them, those of earlier strata among them."""
    levels = np.unique(times)
    width = len(levels) + 1
    keys = strata * width + np.searchsorted(levels, times, side="right")
    return np.searchsorted(keys, stratum * width + np.searchsorted(levels, time, side="right"), side="right")


def held_out_contributions(y: Array, z: Array, train: Array, test: Array, ties: str) -> Array:
    """What each row of a task adds to the deviance of a fold at scores (n, K).

    The deviance of all rows less that of those learned from, both at the scores of a model that has learned from the
    latter (Verweij and van Houwelingen 1993).
    """
    whole, learned = PartialLikelihood(y, train + test, ties), PartialLikelihood(y, train, ties)
    return 2.0 * (whole.contributions(z) - learned.contributions(z))
