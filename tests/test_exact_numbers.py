"""The oracles' own arithmetic, against fractions and decimals of the standard library."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_numbers import EPS, as_fraction, dot, finite, soft_plus, wide


def decimals(function: Any, value: float) -> Fraction:
    with decimal.localcontext() as context:
        context.prec = 80
        return Fraction(function(decimal.Decimal(value)))


def test_numbers_are_those_given() -> None:
    given = np.array([0.1, -1e300, 5e-324, 0.0, 3.0])
    assert [as_fraction(number) for number in wide(given)] == [Fraction(value) for value in given]
    np.testing.assert_array_equal(wide(given).astype(float), given)
    np.testing.assert_array_equal(finite(wide([np.inf, np.nan, 1.0])), [False, False, True])
    assert EPS < 1e-39


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_products_are_rounded_once(rng: np.random.Generator, scale: float) -> None:
    x = rng.standard_normal((20, 6)) * 10.0 ** rng.integers(-20, 20, 6) * scale
    x[3], x[4, 2] = 0.0, -0.0
    w = np.append(rng.standard_normal(5) / scale, 0.0)
    w[4] = -float(x[0, :4] @ w[:4]) / x[0, 4]  # cancels in the first row nearly
    for row, found in zip(x, dot(x, w), strict=True):
        truth = sum((Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True)), Fraction(0))
        assert abs(as_fraction(found) - truth) <= EPS * abs(truth)
    assert dot(np.zeros((2, 0)), np.zeros(0)).tolist() == [0, 0]


@pytest.mark.parametrize("value", [1e-300, 3e-9, 0.7, 40.0, 700.0])
def test_functions(value: float) -> None:
    x = wide([value])
    truths = [
        (np.exp(x), decimals(lambda d: d.exp(), value)),
        (np.log(x), decimals(lambda d: d.ln(), value)),
        (np.sqrt(x), decimals(lambda d: d.sqrt(), value)),
        (soft_plus(x), decimals(lambda d: (1 + d.exp()).ln(), value)),
    ]
    if value > 1e-30:  # 80 decimals do not see 1e-300 beside 1
        truths += [
            (np.log1p(x), decimals(lambda d: (1 + d).ln(), value)),
            (np.expm1(x), decimals(lambda d: d.exp() - 1, value)),
        ]
    for found, truth in truths:
        assert abs(as_fraction(found[0]) - truth) <= 8 * EPS * abs(truth)
