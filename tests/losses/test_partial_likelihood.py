"""The partial likelihood at given scores, against its definition written out."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.losses.partial_likelihood import PartialLikelihood
from tasksieve.outcomes import encode


def written_out(y: np.ndarray, s: np.ndarray, z: np.ndarray, ties: str) -> tuple[float, np.ndarray]:
    """F less its saturated value, and the increments of the hazard, event time by event time."""
    value, increments = 0.0, []
    for stratum in np.unique(y["stratum"]):
        own = (y["stratum"] == stratum) & (s > 0.0)
        for time in np.unique(y["time"][own & y["event"]]):
            risk = own & (y["entry"] < time) & (time <= y["time"])
            dead = own & y["event"] & (y["time"] == time)
            d, m = s[dead].sum(), int(dead.sum()) if ties == "efron" else 1
            value -= d * np.log(d) + s[dead] @ z[dead]
            increments.append(0.0)
            for k in range(m):
                share = k / m
                total = (s * np.exp(z))[risk].sum() - share * (s * np.exp(z))[dead].sum()
                value += d / m * (np.log(total) - np.log(1.0 - share))
                increments[-1] += d / m / total
    return value, np.array(increments)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("seed", range(12))
def test_values_derivatives_and_hazards(seed: int, ties: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    time = np.ceil(rng.exponential(5.0, n) * 2) / 2 + 0.5
    event = rng.random(n) < 0.6
    event[0] = True
    entry = time * rng.random(n) * 0.9 if seed % 3 == 0 else None
    strata = rng.integers(0, 3, n) if seed % 2 else None
    y = encode(ts.survival(time, event, entry, strata))[0]
    s = rng.uniform(0.2, 2.0, n)
    s[rng.random(n) < 0.2], s[0] = 0.0, 1.0
    Z = rng.standard_normal((n, 3))
    found = PartialLikelihood(y, s, ties)
    rows = found.contributions(Z)
    for k, z in enumerate(Z.T):
        value, increments = written_out(y, s, z, ties)
        assert rows[:, k].sum() == pytest.approx(value, rel=1e-13, abs=1e-13)
        assert np.exp(found.log_hazards(z)) == pytest.approx(increments, rel=1e-12)
    i, step = int(np.flatnonzero(s > 0)[-1]), 1e-6
    up, down = s.copy(), s.copy()
    up[i], down[i] = s[i] * np.exp(step), s[i] * np.exp(-step)
    above, below = (PartialLikelihood(y, own, ties).contributions(Z).sum(axis=0) for own in (up, down))
    assert rows[i] == pytest.approx((above - below) / (2.0 * step), abs=1e-7)  # what a row adds is a derivative


@pytest.mark.parametrize("entries", [False, True])
def test_scores_far_apart(entries: bool) -> None:
    """Beyond the range of exponentials the largest score at risk is all that counts."""
    time = np.array([1.0, 2.0, 3.0, 4.0])
    y = encode(ts.survival(time, [1, 1, 1, 1], entry=time - 2.0 if entries else None))[0]
    z = np.array([0.0, 2000.0, -2000.0, -4000.0])
    rows = PartialLikelihood(y, np.ones(4)).contributions(z[:, None])
    assert rows.sum() == pytest.approx(2000.0)  # the first of them dies though the second is at risk
    logs = PartialLikelihood(y, np.ones(4)).log_hazards(z)
    assert logs == pytest.approx([-2000.0, -2000.0, 2000.0, 4000.0])


def test_no_events() -> None:
    y = encode(ts.survival([1.0, 2.0], [0, 0]))[0]
    found = PartialLikelihood(y, np.ones(2))
    assert not found.contributions(np.ones((2, 3))).any()
    assert not len(found.log_hazards(np.ones(2)))
