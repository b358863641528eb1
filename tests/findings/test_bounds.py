"""Bounds on false selections: tables, saved values of R's stabs, brute force over r-concave laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.findings.bounds import ASSUMPTIONS, complete_levels, halves_of, largest_tail

# (p, q, threshold): none, unimodal, r-concave; 50 pairs
TABLE = {
    (1000, 50, 0.60): (12.500000, 6.578947, 2.605334),
    (1000, 50, 0.75): (5.000000, 2.551020, 0.647846),
    (1000, 50, 0.90): (3.125000, 1.078431, 0.170496),
    (200, 7, 0.60): (1.225000, 0.644737, 0.248408),
    (200, 7, 0.75): (0.490000, 0.250000, 0.061593),
    (5000, 70, 0.75): (1.960000, 1.000000, 0.235846),
    (5000, 70, 0.90): (1.225000, 0.422745, 0.061942),
}


@pytest.mark.parametrize("case", TABLE)
def test_table(case: tuple[int, int, float]) -> None:
    for assumption, expected in zip(ASSUMPTIONS, TABLE[case], strict=True):
        assert ts.pfer_bound(*case, assumption=assumption) == pytest.approx(expected, abs=1e-6)


def test_saved_values_of_stabs() -> None:
    """Of version 0.7-1 for p = 200, 50 pairs and an error rate of 0.2."""
    concave, unimodal = {"assumption": "r-concave"}, {"assumption": "unimodal"}
    assert complete_levels(200, 50, threshold=0.6, pfer=0.2, **concave).q == 6
    assert complete_levels(200, 50, q=7, pfer=0.2, **concave).threshold == 0.62
    assert complete_levels(200, 50, threshold=0.6, pfer=0.2, **unimodal).q == 3
    assert complete_levels(200, 50, q=7, pfer=0.2, **unimodal).threshold == 0.81


def test_stronger_assumptions_have_smaller_bounds() -> None:
    for p, q in [(30, 3), (200, 7), (1000, 100)]:
        for n_pairs in (5, 50):
            for m in range(n_pairs + 2, 2 * n_pairs + 1, 4):
                none, unimodal, concave = (
                    ts.pfer_bound(p, q, m / (2 * n_pairs), n_pairs, assumption=name) for name in ASSUMPTIONS
                )
                assert concave <= unimodal * (1 + 1e-12) <= none * (1 + 1e-12)


def test_bounds_grow_with_q_and_fall_with_the_threshold() -> None:
    for name in ASSUMPTIONS:
        by_q = [ts.pfer_bound(300, q, 0.7, assumption=name) for q in range(1, 60, 7)]
        by_threshold = [ts.pfer_bound(300, 20, share, assumption=name) for share in np.arange(0.55, 1.001, 0.05)]
        assert np.all(np.diff(by_q) > 0)
        assert np.all(np.diff(by_threshold) < 0)


def mean_to(target: float, convex: np.ndarray, r: float) -> np.ndarray:
    """The law (a + convex)^(1/r) with this mean; more a, more even."""
    low, high = -40.0, 40.0
    positions = np.arange(len(convex))
    for _ in range(70):
        middle = 0.5 * (low + high)
        law = np.power(np.exp(middle) + convex, 1.0 / r)
        law /= law.sum()
        low, high = (low, middle) if law @ positions > target else (middle, high)
    return law


@pytest.mark.parametrize(("r", "expected"), [(-0.5, 0.0714248), (-0.25, 0.0565395)])
def test_no_r_concave_law_has_a_larger_tail(r: float, expected: float) -> None:
    """law^r is convex: any increasing slopes. The best of a random search comes near the maximum, and never over it."""
    size, rate, tail = 8, 0.1, 4
    largest = largest_tail(rate, tail, size, r)
    assert largest == pytest.approx(expected, abs=1e-7)
    rng = np.random.default_rng(0)
    best, slopes = 0.0, np.ones(size)
    for step in range(800):
        tried = slopes * np.exp(rng.normal(0.0, 1.0 / (1 + step // 80), size) * (rng.random(size) < 0.4))
        tried[-1] *= 10.0 ** rng.integers(0, 5)  # the support may end
        steep = np.maximum.accumulate(tried)
        found = mean_to(rate * size, np.concatenate([[0.0], np.cumsum(steep)]), r)[tail:].sum()
        if found > best:
            best, slopes = found, steep / steep[0]
    assert 0.97 * largest < best <= largest * (1 + 1e-9)


def test_thresholds_are_shares_of_the_halves() -> None:
    assert halves_of(0.55, 50) == 55  # 0.55 * 100 is 55.00000000000001
    assert halves_of(0.551, 50) == 56
    assert ts.pfer_bound(200, 7, 0.745) == ts.pfer_bound(200, 7, 0.75)


def test_none_or_one_given() -> None:
    levels = complete_levels(5000, 50)
    assert (levels.q, levels.threshold, levels.bound) == (70, 0.75, 1.0)
    assert complete_levels(200, 50).q == 14
    assert complete_levels(200, 50, q=7).threshold == 0.75
    assert complete_levels(200, 50, q=7).bound == ts.pfer_bound(200, 7, 0.75)
    assert complete_levels(200, 50, pfer=0.5).threshold == 0.75
    assert complete_levels(200, 50, threshold=0.9).bound <= 1.0
    assert complete_levels(200, 50, threshold=0.9).q == complete_levels(200, 50, threshold=0.9, pfer=1.0).q


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_two_give_the_third_and_not_one_more(assumption: str) -> None:
    levels = complete_levels(500, 20, threshold=0.7, pfer=1.5, assumption=assumption)
    assert levels.bound <= 1.5 < ts.pfer_bound(500, levels.q + 1, 0.7, 20, assumption)
    found = complete_levels(500, 20, q=levels.q, pfer=1.5, assumption=assumption)
    assert found.bound <= 1.5
    assert found.threshold <= 0.7
    assert found.halves == 21 or not ts.pfer_bound(500, levels.q, (found.halves - 1) / 40, 20, assumption) <= 1.5
    assert complete_levels(500, 20, q=levels.q, threshold=0.7, pfer=1.5, assumption=assumption) == levels


def test_an_impossible_triple_says_which_way_to_move() -> None:
    with pytest.raises(ValueError, match=r"2\.551 false.*Lower q, raise the threshold, or raise pfer to at least"):
        complete_levels(1000, 50, q=50, threshold=0.75, pfer=1.0)
    with pytest.raises(ValueError, match=r"already q=1.*Raise pfer to at least.*or raise the threshold"):
        complete_levels(100, 50, threshold=0.6, pfer=1e-3)
    with pytest.raises(ValueError, match=r"threshold 1.*Lower q, or raise pfer"):
        complete_levels(100, 50, q=40, pfer=1e-3)
    with pytest.raises(ValueError, match=r"at least 0\.52\. Raise it, lower q, or use assumption='none'"):
        complete_levels(100, 50, q=5, threshold=0.51)
    with pytest.raises(ValueError, match=r"q may be at most 57"):
        complete_levels(100, 50, q=60, pfer=50.0)
    with pytest.raises(ValueError, match=r"at least 2 pairs"):
        complete_levels(100, 1, threshold=1.0)
    with pytest.raises(ValueError, match="above q / 100"):
        complete_levels(100, 50, q=80, threshold=0.75, assumption="r-concave")


def test_bounds_that_do_not_exist_are_not_numbers() -> None:
    with pytest.raises(ValueError, match=r"n_pairs=1: it needs at least 2 pairs. Raise n_pairs, or use .*'none'"):
        ts.pfer_bound(100, 5, 0.9, n_pairs=1)
    assert ts.pfer_bound(100, 5, 0.9, n_pairs=1, assumption="none") == 5**2 / (100 * (2 * 1.0 - 1))
    assert math.isnan(ts.pfer_bound(100, 60, 0.75))
    assert math.isnan(ts.pfer_bound(100, 5, 0.51))
    assert math.isnan(ts.pfer_bound(100, 80, 0.75, assumption="r-concave"))
    assert math.isnan(complete_levels(100, 50, q=60, threshold=0.75, assumption="none").bounds["unimodal"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((100, 100, 0.75), "'q' parameter must be smaller than the number"),
        ((100, 0, 0.75), "'q'"),
        ((100, 5, 0.5), "'threshold' parameter must be above 1/2"),
        ((100, 5, 1.2), "'threshold'"),
        ((100, 5, 0.75, 0), "'n_pairs'"),
        ((1, 1, 0.75), "'n_features'"),
        ((100, 5, 0.75, 50, "normal"), "'assumption'"),
    ],
)
def test_bad_input(arguments: tuple, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ts.pfer_bound(*arguments)
