"""Harrell's concordance, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.fitted.concordance import compare_pairs, concordance
from tasksieve.outcomes import encode


@pytest.mark.parametrize("seed", range(30))
def test_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    time = np.round(rng.exponential(5.0, n), 1 if seed % 2 else 3) + 0.1
    event = rng.random(n) < 0.6
    entry = time - rng.uniform(0.05, 4.0, n) if seed % 3 == 0 else None
    strata = rng.integers(0, 3, n) if seed % 4 else None
    y = encode(ts.survival(time, event, entry, strata))[0]
    s = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.5, 2.0, n)) if seed % 5 else np.ones(n)
    z = np.round(rng.standard_normal(n), 1)
    first, second = np.indices((n, n))
    outlives = (y["time"][first] < y["time"][second]) | (
        (y["time"][first] == y["time"][second]) & ~y["event"][second]
    )
    comparable = (
        y["event"][first]
        & outlives
        & (y["entry"][second] < y["time"][first])
        & (y["stratum"][first] == y["stratum"][second])
    )
    pairs = np.where(comparable, s[first] * s[second], 0.0)
    right = pairs * ((z[first] > z[second]) + 0.5 * (z[first] == z[second]))
    found = compare_pairs(y, z, s, y["stratum"])
    assert found.earlier == pytest.approx(pairs.sum(axis=1), abs=1e-12)
    assert found.later == pytest.approx(pairs.sum(axis=0), abs=1e-12)
    assert found.earlier_right == pytest.approx(right.sum(axis=1), abs=1e-12)
    assert found.later_right == pytest.approx(right.sum(axis=0), abs=1e-12)
    if pairs.sum() > 0.0:
        assert concordance(y, z, s) == pytest.approx(right.sum() / pairs.sum())
        assert concordance(y, -z, s) == pytest.approx(1.0 - concordance(y, z, s))
    else:
        assert np.isnan(concordance(y, z, s))


def test_against_scikit_survival() -> None:
    metrics = pytest.importorskip("sksurv.metrics", reason="scikit-survival is not installed")
    rng = np.random.default_rng(0)
    time, event, z = np.round(rng.exponential(3.0, 200), 1) + 0.1, rng.random(200) < 0.5, rng.standard_normal(200)
    theirs = metrics.concordance_index_censored(event, time, z)[0]
    assert concordance(encode(ts.survival(time, event))[0], z, np.ones(200)) == pytest.approx(theirs, abs=1e-14)
