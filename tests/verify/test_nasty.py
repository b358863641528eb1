"""Data on which plain sums say anything at all: bounds stay true, and stay close to the exact ones."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hand_cases import SQUARED, make_case
from hand_certificates import Case, pack

import tasksieve as ts
from tasksieve.verify import Box, Exact, Floating, Verdict, _half, down, up, verify

Array = np.ndarray[Any, Any]


def both(case: Case, claims_from_exact: bool = True) -> tuple[Verdict, Verdict]:
    """Verdicts on claims that the exact verifier says are true, with a thousandth to spare.

    (The plain formulas of `hand_certificates` are of no use here.)"""
    header, arrays = case.content()
    if claims_from_exact:
        value = verify(pack(header, arrays), **case.data(), exact=True).values[0]
        slack = 1e-3 * value.gap + 1e-11 * max(abs(value.objective), abs(value.dual_value))
        arrays.update(
            gap=np.array([value.gap + 2 * slack]),
            dual_value=np.array([value.dual_value - slack]),
            objective=np.array([value.objective]),
        )
    raw = pack(header, arrays)
    floating, exact = verify(raw, **case.data()), verify(raw, **case.data(), exact=True)
    assert exact.proved, exact.words
    assert floating.proved, floating.words
    assert floating.values[0].gap >= exact.values[0].gap
    wrong = pack(header, {**arrays, "gap": np.array([exact.values[0].gap * (1 - 1e-9)])})
    assert not verify(wrong, **case.data()).proved
    assert not verify(wrong, **case.data(), exact=True).proved
    return floating, exact


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson", "square-root"])
def test_columns_and_labels_far_from_zero(loss: str) -> None:
    both(make_case(loss, "l21", 5, far=1e12, rows=9, d=5, tol=1e-3))
    both(make_case(loss, "l21", 5, far=1e6, rows=9, d=5, standardize=True, offset=True, free=True))


@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_units(scale: float) -> None:
    for options in ({}, {"standardize": True, "free": True}):
        floating, _ = both(make_case("squared", "l21", 6, scale=scale, rows=9, d=5, **options))
        assert floating.values[0].gap < 1e-6 * floating.values[0].objective
    both(make_case("logistic", "sparse_group", 6, scale=scale, rows=9, d=5))


def fitted(x: list[Array], y: list[Array], **options: Any) -> Case:
    weights = options.pop("feature_weights", None)
    model = ts.MultiTaskLasso(alpha=0.1, feature_weights=weights, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
    mean = sum(map(len, y)) / len(y)
    arrays = {} if weights is None else {"feature_weights": weights}
    return Case(x, y, model.coef_.T.copy(), model.intercept_, SQUARED, {"name": "rows"}, 0.1, unit=mean, arrays=arrays,
                standardize=options.get("standardize", False))  # fmt: skip


def test_equal_constant_and_free_columns() -> None:
    """Columns twice, constant columns (in one task, in all), standardised; free columns that depend on each other."""
    rng = np.random.default_rng(3)
    x = [rng.standard_normal((12, 8)) for _ in range(2)]
    for block in x:
        block[:, 1] = block[:, 0]
        block[:, 2] = 7.3
    x[0][:, 3] = -1e9
    x[1][:, 3] = 0.0
    y = [block[:, 0] + 0.3 * rng.standard_normal(12) for block in x]
    both(fitted(x, y))
    both(fitted(x, y, standardize=True))
    both(fitted(x, y, feature_weights=np.where(np.isin(np.arange(8), [0, 1, 2, 3, 5]), 0.0, 1.0)))


def test_free_columns_that_depend_on_each_other() -> None:
    """Three indicators that add up to the constant: integers find that the equations are singular."""
    rng = np.random.default_rng(4)
    x = [np.hstack([np.eye(3)[rng.permutation(np.arange(12) % 3)], rng.standard_normal((12, 4))]) for _ in range(2)]
    y = [block[:, 3] + block[:, 0] + 0.3 * rng.standard_normal(12) for block in x]
    case = fitted(x, y, feature_weights=np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]))
    both(case)


def test_a_vector_without_a_projection_counts_as_zero() -> None:
    """All rows of a task at their bounds: nothing can be moved, and the sum is not 0."""
    case = make_case("huber", "l21", 4, rows=8, d=4)
    header, arrays = case.content()
    dual = arrays["dual"].copy()
    n = len(case.y[0])
    dual[0, :n] = np.where(np.arange(n) < 3, -1.35, 1.35)
    for exact in (False, True):
        verdict = verify(pack(header, {**arrays, "dual": dual}), **case.data(), exact=exact)
        assert "task 0: its vector has no projection orthogonal to what costs nothing" in verdict.words
        dual[0, 0] = 1.36
        verdict = verify(pack(header, {**arrays, "dual": dual}), **case.data(), exact=exact)
        assert "task 0: its vector" in verdict.words
        dual[0, 0] = -1.35


def holds(found: Box, truth: Box) -> None:
    for low, high, exact in zip(np.ravel(found.lo), np.ravel(found.hi), np.ravel(truth.lo), strict=True):
        assert Fraction(float(low)) <= exact <= Fraction(float(high))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_sums_hold_the_truth(seed: int, quick: bool) -> None:
    """Products, scores, spreads and single operations against fractions, on numbers of wild sizes that cancel."""
    rng = np.random.default_rng(seed)
    floats, exact = Floating(quick), Exact(64)
    size = 10.0 ** rng.integers(-90, 90)
    x = (rng.standard_normal((30, 4)) * 10.0 ** rng.integers(-3, 3, 4) + 10.0 ** rng.integers(0, 12)) * size
    v = rng.standard_normal((30, 3)) * 10.0 ** rng.integers(-100, 100, 3)
    w = rng.standard_normal((4, 3)) / size
    with np.errstate(all="ignore"):
        holds(floats.products(x, Box(v), False), exact.products(x, exact.numbers(v), False))
        holds(floats.refined(x, Box(v), False), exact.products(x, exact.numbers(v), False))
        back = -(x[::-1] @ w)
        holds(floats.scores(x, w, [back]), exact.scores(x, w, [back]))
        holds(floats.scores(x, w, []), exact.scores(x, w, []))
        holds(Box(x, up(x)).sum(1), Box(exact.numbers(x).lo.sum(axis=1)))
        s = rng.uniform(0.1, 3.0, 30) * (rng.random(30) < 0.8)
        for centred in (True, False):
            holds(floats.spreads(x, Box(s), centred), exact.spreads(x, exact.numbers(s), centred))
        flat = x[:, 0] - x[0, 1]
        a, b = floats.numbers(flat), floats.numbers(v[:, 0])
        p, q = exact.numbers(flat), exact.numbers(v[:, 0])
        holds(a + b, p + q)
        holds(a * b - b, p * q - q)
        holds((a * b).square() / b.square(), (p * q).square() / q.square())
        holds((a * b).total(), (p * q).total())
        holds(abs(a - b).positive().at_most(abs(b)), abs(p - q).positive().at_most(abs(q)))
    # orthogonal to constants: a shift changes nothing
    v = rng.integers(-5, 6, (30, 2)).astype(float)
    v[-1] = -v[:-1].sum(axis=0)
    narrow = floats.products(x, Box(v), True)
    holds(narrow, exact.products(x, exact.numbers(v), True))
    assert np.all(narrow.hi - narrow.lo <= 1e-12 * np.abs(x - x.mean(axis=0)).max(axis=0)[:, None] * 30 * 200)


def test_functions_hold_the_truth() -> None:
    floats, exact = Floating(), Exact(128)
    x = np.concatenate([np.geomspace(1e-300, 1e300, 60), 1.0 + 1e-10 * np.arange(9), [1.0]])
    for name in ("sqrt", "log", "log1p"):
        found, truth = getattr(floats, name)(Box(x)), getattr(exact, name)(exact.numbers(x))
        assert all(Fraction(float(a)) <= b for a, b in zip(found.lo, truth.hi, strict=True))
        assert all(Fraction(float(a)) >= b for a, b in zip(found.hi, truth.lo, strict=True))
    z = np.linspace(-740.0, 700.0, 99)
    found, truth = floats.exp(Box(z)), exact.exp(exact.numbers(z))
    assert all(Fraction(float(a)) <= b for a, b in zip(found.lo, truth.hi, strict=True))
    assert all(Fraction(float(a)) >= b for a, b in zip(found.hi, truth.lo, strict=True))


def test_half_of_the_smallest_numbers() -> None:
    for number in (5e-324, 1e-310, 2.0**-1000, 0.3):
        for arith in (Floating(), Exact(160)):
            half = _half(arith, number)
            low, high = (end if arith.exact else Fraction(float(end)) for end in (half.lo, half.hi))
            assert low <= Fraction(number) / 2 <= high


def test_steps_outwards() -> None:
    rng = np.random.default_rng(0)
    powers = np.ldexp(1.0, np.arange(-1074, 1023))
    wild = np.ldexp(rng.uniform(0.5, 1.0, 20_000), rng.integers(-1073, 1023, 20_000))
    x = np.concatenate([powers, np.nextafter(powers, 0.0), wild, [0.0, np.finfo(float).max]])
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        above, step = up(x), np.nextafter(x, np.inf)
        assert (above >= step).all()
        assert (above <= np.nextafter(step, np.inf)).all()
        ordinary = np.abs(x) > 2.0**-1020
        np.testing.assert_array_equal(above[ordinary], step[ordinary])
        np.testing.assert_array_equal(down(x), -up(-x))
        assert not (up(np.float64(-np.inf)) < 0.0)
        assert up(np.float64(np.inf)) == np.inf
