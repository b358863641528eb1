"""Gamma, Tweedie, negative binomial, log-cosh and expectile losses: against hundreds of digits, limits, options."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import gamma as gamma_distribution
from scipy.stats import nbinom

import tasksieve as ts
from tasksieve.losses import Expectile, Gamma, LogCosh, NegativeBinomial, Poisson, Tweedie
from tasksieve.losses.base import UNIT
from tasksieve.losses.divergence import divergence, relative_divergence, remainder
from tasksieve.losses.mean_divergence import MeanDivergenceOnData

LOSSES: dict[str, Any] = {
    "poisson": Poisson(),
    "gamma": Gamma(),
    "tweedie": Tweedie(1.5),
    "tweedie, near Poisson": Tweedie(1.02),
    "tweedie, near gamma": Tweedie(1.95),
    "negative binomial": NegativeBinomial(1.7),
    "negative binomial, tiny": NegativeBinomial(1e-4),
    "negative binomial, huge": NegativeBinomial(1e9),
    "log-cosh": LogCosh(),
    "expectile": Expectile(0.9),
}
DIGITS = 900  # e^700 beside e^-700 has to keep its digits
SCORES = (-300.0, -40.0, -3.0, -1e-3, 0.0, 1e-9, 0.7, 5.0, 30.0, 200.0)


def xlogx(x: Any) -> Any:
    return x * mpmath.log(x) if x > 0 else mpf(0)


def exact_value(loss: Any, y: Any, z: Any) -> Any:
    """f(y, z) as the documentation has it, with no constant added."""
    if isinstance(loss, Poisson):
        return mpmath.exp(z) - y * z
    if isinstance(loss, Gamma):
        return y * mpmath.exp(-z) + z
    if isinstance(loss, Tweedie):
        k, rest = mpf(loss.power) - 1, 2 - mpf(loss.power)
        return y * mpmath.exp(-k * z) / k + mpmath.exp(rest * z) / rest
    if isinstance(loss, NegativeBinomial):
        return (y + mpf(loss.size)) * mpmath.log(1 + mpmath.exp(z) / mpf(loss.size)) - y * z
    if isinstance(loss, LogCosh):
        return mpmath.log(mpmath.cosh(y - z))
    w = mpf(loss.level) if y > z else 1 - mpf(loss.level)
    return w * (y - z) ** 2 / 2


def exact_conjugate(loss: Any, y: Any, p: Any) -> Any:
    """sup_z -p z - f(y, z); of the Tweedie loss at the root of its derivative."""
    if isinstance(loss, Poisson):
        return xlogx(y - p) - (y - p)
    if isinstance(loss, Gamma):
        return xlogx(1 + p) - (1 + p) - (1 + p) * mpmath.log(y)
    if isinstance(loss, NegativeBinomial):
        size = mpf(loss.size)
        return xlogx(y - p) + xlogx(size + p) - xlogx(y + size) + (y - p) * mpmath.log(size)
    if isinstance(loss, LogCosh):
        return (xlogx(1 + p) + xlogx(1 - p)) / 2 - p * y
    if isinstance(loss, Expectile):
        w = mpf(loss.level) if p > 0 else 1 - mpf(loss.level)
        return p * p / (2 * w) - p * y
    k, rest = mpf(loss.power) - 1, 2 - mpf(loss.power)
    if y == 0:
        return (xlogx(-p) + p) / rest
    low, high = mpf(-10000), mpf(10000)
    for _ in range(60):  # a bracket, then Newton's method
        middle = (low + high) / 2
        up = y * mpmath.exp(-k * middle) - mpmath.exp(rest * middle) > p
        low, high = (middle, high) if up else (low, middle)
    z = (low + high) / 2
    for _ in range(8):
        a, b = y * mpmath.exp(-k * z), mpmath.exp(rest * z)
        z += (a - b - p) / (k * a + rest * b)
    return -p * z - exact_value(loss, y, z)


def exact_excess(loss: Any, y: float, z: float, p: float) -> Any:
    with mpmath.workdps(DIGITS):
        y_, z_, p_ = mpf(y), mpf(z), mpf(p)
        return exact_value(loss, y_, z_) + exact_conjugate(loss, y_, p_) + p_ * z_


def cases(loss: Any) -> list[tuple[float, float, float]]:
    """Labels, predictions, and slopes of other predictions, scaled; and the ends of the domain."""
    labels = {"positive": (1e-30, 0.02, 1.0, 7.0, 1e6), "counts": (0.0, 1e-12, 0.3, 2.0, 1e6)}
    found = []
    for y, z, other in itertools.product(labels.get(loss.labels, (-3.0, 1e-9, 2.0, 400.0)), SCORES, SCORES):
        with np.errstate(over="ignore"):
            slope = float(loss.slope(np.array([y]), np.array([other]))[0])
        low, high = (float(np.ravel(end)[0]) for end in loss.domain(np.array([y])))
        for scale in (0.0, 0.3, 1.0 - 1e-7, 1.0) if other == z else (0.6,):
            found.append((y, z, min(max(scale * slope, low), high)))
        if other == z:
            found += [(y, z, end) for end in (low, high) if np.isfinite(end)]
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LOSSES)
def test_excess_is_never_below_the_truth(name: str) -> None:
    """What a row adds to a certificate, with its rounding: at least the truth, and hardly more."""
    loss, rng = LOSSES[name], np.random.default_rng(0)
    chosen = cases(loss)
    chosen = [chosen[k] for k in rng.permutation(len(chosen))[:90]]
    y, z, p = (np.array(column) for column in zip(*chosen, strict=True))
    with np.errstate(over="ignore"):
        found, sizes = loss.excess(y, z, p)
    assert np.all(found >= 0.0)
    checked = 0
    for k, (yk, zk, pk) in enumerate(chosen):
        if not (np.isfinite(found[k]) and np.isfinite(sizes[k])):
            continue
        truth = exact_excess(loss, yk, zk, pk)
        assert mpf(found[k]) + 16 * UNIT * mpf(sizes[k]) >= truth, (yk, zk, pk)
        assert mpf(found[k]) <= truth * (1 + mpf(1e-12)) + 16 * UNIT * mpf(sizes[k]), (yk, zk, pk)
        checked += 1
    assert checked >= 80


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_constants(name: str) -> None:
    """Value and constant together are the formula of the documentation; value alone is 0 for a perfect fit."""
    loss = LOSSES[name]
    y = np.array([0.02, 0.5, 3.0, 250.0])
    z = np.array([0.3, -2.0, 1.1, 4.0])
    found = loss.value(y, z) + loss.constant(y)
    with mpmath.workdps(DIGITS):
        expected = [float(exact_value(loss, mpf(a), mpf(b))) for a, b in zip(y, z, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    perfect = y if isinstance(loss, LogCosh | Expectile) else np.log(y)
    np.testing.assert_allclose(loss.value(y, perfect), 0.0, atol=1e-12)
    near = loss.value(y, perfect + 1e-6)
    assert np.all(near > 0.0)
    second = loss.second(y, perfect + 1e-6)  # None where the curvature is it
    np.testing.assert_allclose(near, 0.5e-12 * (loss.curvature(y, perfect) if second is None else second), rtol=1e-3)


def test_small_residuals_of_log_cosh_keep_their_digits() -> None:
    """Labels in small units: what is left of a gap is relative to them."""
    r = 1e-8 * np.array([1.0, -2.0, 3.0])
    found, sizes = LogCosh().excess(r, np.zeros(3), 0.5 * np.tanh(r))
    np.testing.assert_allclose(found, 0.125 * r * r, rtol=1e-6)
    assert np.all(sizes < 1e-14)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_a_large_size_costs_no_digits(size: float) -> None:
    """The counted part is small beside the size: rounding is relative to it all the same."""
    y, z, loss = np.array([0.0, 3.0]), np.array([0.5, 1.0]), NegativeBinomial(size)
    found, sizes = loss.excess(y, z, (1.0 - 1e-6) * loss.slope(y, z))
    assert np.all(16 * UNIT * sizes < 1e-3 * found)


def test_remainders_by_series() -> None:
    t = np.concatenate([10.0 ** np.arange(-300, 0, 7.0), [0.0999, 0.1001, 0.5, 3.0]])
    for signed in (t, -t):
        with mpmath.workdps(700):
            exact = [float(mpmath.exp(mpf(x)) - 1 - mpf(x)) for x in signed]
            relative = [float((1 + mpf(x)) * mpmath.log(1 + mpf(x)) - mpf(x)) for x in np.maximum(signed, -0.9)]
        np.testing.assert_allclose(remainder(signed), exact, rtol=5e-15, atol=0.0)
        np.testing.assert_allclose(relative_divergence(np.maximum(signed, -0.9)), relative, rtol=5e-14, atol=0.0)
    assert divergence(np.array([0.0, 2.0]), np.array([-np.inf, np.log(2.0)])).tolist() == [0.0, 0.0]


class TestDistributions:
    """Deviances are those of the distributions; limits are other losses."""

    def test_gamma(self) -> None:
        y, z = np.array([0.3, 2.0, 11.0]), np.array([0.1, -1.0, 2.0])
        ratio = 2.0 * (gamma_distribution.logpdf(y, 1.0, scale=y) - gamma_distribution.logpdf(y, 1.0, scale=np.exp(z)))
        np.testing.assert_allclose(Gamma().deviance(y, z), ratio, rtol=1e-12)
        np.testing.assert_allclose(Gamma().deviance(1e9 * y, z + np.log(1e9)), ratio, rtol=1e-12)

    @pytest.mark.parametrize("size", [0.3, 1.0, 20.0])
    def test_negative_binomial(self, size: float) -> None:
        y, z = np.array([0.0, 1.0, 5.0, 80.0]), np.array([0.1, -1.0, 2.0, 3.0])

        def log_mass(mean: np.ndarray) -> np.ndarray:
            return nbinom.logpmf(y, size, size / (size + mean))

        found = NegativeBinomial(size).deviance(y, z)
        np.testing.assert_allclose(found, 2.0 * (log_mass(y) - log_mass(np.exp(z))), rtol=1e-9, atol=1e-12)

    def test_limits(self) -> None:
        y, z = np.array([0.4, 1.0, 5.0]), np.array([0.1, -1.0, 2.0])
        np.testing.assert_allclose(NegativeBinomial(1e9).deviance(y, z), Poisson().deviance(y, z), rtol=1e-7)
        np.testing.assert_allclose(Tweedie(1.0 + 1e-7).deviance(y, z), Poisson().deviance(y, z), rtol=1e-5)
        np.testing.assert_allclose(Tweedie(2.0 - 1e-7).deviance(y, z), Gamma().deviance(y, z), rtol=1e-5)
        np.testing.assert_allclose(Expectile(0.5).deviance(y, z), 0.5 * (y - z) ** 2, rtol=1e-14)

    def test_the_best_constants_are_best(self) -> None:
        rng = np.random.default_rng(3)
        y, s = rng.gamma(0.8, 2.0, 60), rng.uniform(0.1, 2.0, 60)
        for name, loss in LOSSES.items():
            best = loss.best_constant(y, s)
            if best is None:
                assert name == "log-cosh"
                continue
            slope = loss.slope(y, np.full(60, best))
            assert abs(s @ slope) <= 1e-12 * (s @ np.abs(slope)), name


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tweedie(1.0), "'poisson'"),
        (lambda: Tweedie(2.5), "power must be a number between 1 and 2; got 2.5"),
        (lambda: NegativeBinomial(0.0), "size must be a positive number"),
        (lambda: NegativeBinomial(np.inf), "size must be a positive number"),
        (lambda: Expectile(0.0), "level must be a number between 0 and 1"),
        (lambda: ts.losses.as_loss("huber:delta=1,delta"), "'delta' is no option of huber"),
        (lambda: ts.losses.as_loss("log_cosh:scale=2"), "its options are: none"),
        (lambda: ts.losses.register("a:b")(Gamma), "A name cannot hold ':'"),
    ],
)
def test_parameters_out_of_range(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_options_behind_a_name() -> None:
    assert ts.losses.as_loss("quantile:q=0.9,smoothing=0.5") == ts.losses.Quantile(0.9, 0.5)
    assert ts.losses.as_loss("tweedie: power = 1.25") == Tweedie(1.25)
    assert ts.penalties.as_penalty("sparse_group:l1=0.3").parameters()["l1"] == 0.3
    assert ts.penalties.as_penalty("owl:weights=slope,fdr=0.2").parameters()["fdr"] == 0.2


@pytest.mark.parametrize("loss", [Gamma, Tweedie, NegativeBinomial])
def test_a_metric_that_is_too_small_is_seen(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By L8 of `check_loss`: the ball of a gap would not hold a dual point that it allows."""
    right = MeanDivergenceOnData.metric
    monkeypatch.setattr(MeanDivergenceOnData, "metric", lambda self, at, scale, gap: 0.4 * right(self, at, scale, gap))
    with pytest.raises(AssertionError, match="L8"):
        ts.checks.check_loss(loss, draws=1)
