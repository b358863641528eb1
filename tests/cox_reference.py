"""Cox's partial likelihood from its definition, every risk set in full: for floats, sixty digits and cvxpy."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np

from tasksieve.outcomes import SURVIVAL


def draw(rng, n, entry=False, strata=1, ties=True, events=0.6):
    """Labels of n rows."""
    y = np.zeros(n, SURVIVAL)
    y["time"] = rng.integers(1, max(3, n // 2), n) if ties else rng.exponential(1.0, n)
    y["event"] = rng.random(n) < events
    y["entry"] = -np.inf
    if entry:
        late = y["time"] - rng.integers(1, 6, n) - 0.5 * rng.integers(0, 2, n)
        y["entry"] = np.where(rng.random(n) < 0.5, late, -np.inf)
    y["stratum"] = rng.integers(0, strata, n)
    return y


class Reference:
    """The risk sets of one task: a weight, the rows, and what each row's weight is multiplied by, for every death."""

    @mp.workdps(80)
    def __init__(self, y, s, efron):
        self.events = np.where(y["event"], s, 0.0)
        self.members: list[tuple[float, Any, Any]] = []
        self._exact: list[tuple[Any, Any, list[Any]]] = []
        self._own: list[Any] = []
        self.largest = np.zeros(len(y))
        for stratum in np.unique(y["stratum"]):
            own = (y["stratum"] == stratum) & (s > 0)
            for time in np.unique(y["time"][own & y["event"]]):
                risk = np.flatnonzero(own & (y["entry"] < time) & (y["time"] >= time))
                dies = y["event"][risk] & (y["time"][risk] == time)
                count, weight = int(dies.sum()), float(s[risk][dies].sum())
                self.largest[risk] += weight
                for k in range(count if efron else 1):
                    share, part = (weight / count, 1.0 - k / count) if efron else (weight, 1.0)
                    self.members.append((share, risk, s[risk] * np.where(dies, part, 1.0)))
                    whole = mp.fsum(mp.mpf(one) for one in s[risk][dies])
                    shrunk = mp.mpf(count - k) / count if efron else mp.mpf(1)
                    exact = [mp.mpf(one) * (shrunk if dead else 1) for one, dead in zip(s[risk], dies, strict=True)]
                    self._exact.append((whole / count if efron else whole, risk, exact))
                    self._own.append(shrunk * whole)

    # -- floats
    def value(self, z):
        total = -float(self.events @ z)
        for share, risk, factors in self.members:
            top = z[risk].max()
            total += share * (top + np.log(factors @ np.exp(z[risk] - top)))
        return total

    def derivatives(self, z):
        """Expected events, and the second derivative."""
        mean, hessian = np.zeros(len(z)), np.zeros((len(z), len(z)))
        for share, risk, factors in self.members:
            p = factors * np.exp(z[risk] - z[risk].max())
            p /= p.sum()
            mean[risk] += share * p
            hessian[np.ix_(risk, risk)] += share * (np.diag(p) - np.outer(p, p))
        return mean, hessian

    # -- sixty digits
    def exact(self, z):
        """Value, expected events and second derivative."""
        n = len(z)
        value = -mp.fsum(mp.mpf(e) * v for e, v in zip(self.events, z, strict=True))
        mean, hessian = [mp.mpf(0)] * n, mp.zeros(n)
        for share, risk, factors in self._exact:
            top = max(z[k] for k in risk)
            p = [f * mp.exp(z[k] - top) for k, f in zip(risk, factors, strict=True)]
            total = mp.fsum(p)
            value += share * (top + mp.log(total))
            p = [one / total for one in p]
            for a, i in enumerate(risk):
                mean[i] += share * p[a]
                hessian[i, i] += share * p[a]
                for b, j in enumerate(risk):
                    hessian[i, j] -= share * p[a] * p[b]
        return value, mean, hessian

    def young(self, z, dual, scale):
        """``F(z) + F*(-u) + <u, z>`` for u = scale (e - M(dual)): theta with e - M(theta) = u is searched for."""
        z, theta, n = [mp.mpf(v) for v in z], [mp.mpf(v) for v in dual], len(z)
        _, base, _ = self.exact(theta)
        goal = [(1 - mp.mpf(scale)) * mp.mpf(e) + mp.mpf(scale) * m for e, m in zip(self.events, base, strict=True)]
        if scale == 0.0:
            return self.exact(z)[0] - mp.mpf(self.saturated())
        theta = [t + (mp.log(g / m) if g > 0 else 0) for t, g, m in zip(theta, goal, base, strict=True)]
        for _ in range(60):
            value, mean, hessian = self.exact(theta)
            missing = mp.matrix([g - m for g, m in zip(goal, mean, strict=True)])
            if max(abs(one) for one in missing) < mp.mpf(10) ** -40:
                break
            for i in range(n):
                hessian[i, i] += mp.mpf(10) ** -45 if hessian[i, i] > 0 else 1
            step = mp.lu_solve(hessian, missing)
            longest = max(abs(one) for one in step)
            theta = [t + one * min(1, 2 / longest) for t, one in zip(theta, step, strict=True)]
        else:
            raise AssertionError("the dual point was not found")
        products = ((mp.mpf(e) - g) * (a - t) for e, g, a, t in zip(self.events, goal, z, theta, strict=True))
        return self.exact(z)[0] - value + mp.fsum(products)

    def saturated(self):
        """The smallest value: deaths alone count."""
        return mp.fsum(share * mp.log(own) for (share, _, _), own in zip(self._exact, self._own, strict=True))

    # -- cvxpy
    def program(self, z, cp):
        total = 0
        for share, risk, factors in self.members:
            total = total + share * cp.log_sum_exp(z[risk] + np.log(factors))
        return total - self.events @ z
