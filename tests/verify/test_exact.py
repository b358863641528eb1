"""Exact arithmetic: enclosures hold, floating point agrees, what is wrong in the twelfth digit is refused."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hand_cases import LOSSES, PENALTIES, make_case
from hand_certificates import Case, pack

from tasksieve.verify import Exact, Verdict, verify

OPTIONS = ("weights", "task_weights", "class_weights", "ridge", "graph", "standardize", "offset", "free", "positive")
OPTIONS += ("feature_weights", "shared")


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(1000 + seed)
    options = {name: bool(rng.random() < 0.35) for name in OPTIONS}
    loss, penalty = LOSSES[seed % len(LOSSES)], PENALTIES[(seed // len(LOSSES) + seed) % len(PENALTIES)]
    tol = 10.0 ** -rng.integers(2, 9)
    n_tasks = int(rng.integers(1, 4))
    options["intercept"] = bool(rng.random() < 0.7)
    case = make_case(loss, penalty, seed, rows=7, d=5, n_tasks=n_tasks, tol=tol, **options)
    case.coef = np.where(case.coef != 0.0, case.coef * (1.0 + 1e-4 * rng.standard_normal(case.coef.shape)), 0.0)
    return case


def agree(seed: int) -> None:
    """The same verdict on a claim a little above what is true, and on one a little below; bounds are close."""
    case = random_case(seed)
    raw = case.save(margin=1e-9)
    floating, exact = verify(raw, **case.data()), verify(raw, **case.data(), exact=True)
    assert floating.proved, floating.words
    assert exact.proved, exact.words
    a, b = floating.values[0], exact.values[0]
    size = max(abs(b.objective), abs(b.dual_value), 1.0)
    assert b.objective <= a.objective <= b.objective + 1e-11 * size
    assert b.dual_value - 1e-11 * size <= a.dual_value <= b.dual_value
    # beside a ridge more may be proved than was asked for: what can be is told to a claim that cannot
    least = verify(case.save(margin=1e-9, gap=np.array([0.0])), **case.data(), exact=True).values[0].gap
    assert least <= b.gap
    if least > 1e-10 * size:
        tight = case.save(margin=1e-9, gap=np.array([least * (1 - 1e-6) - 1e-11 * size]))
        assert not verify(tight, **case.data()).proved
        assert not verify(tight, **case.data(), exact=True).proved


@pytest.mark.parametrize("seed", range(len(LOSSES)))
def test_floating_and_exact_agree(seed: int) -> None:
    agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_floating_and_exact_agree_on_two_hundred(seed: int) -> None:
    agree(seed)


def tightest(case: Case) -> tuple[Verdict, float]:
    verdict = verify(case.save(margin=1e-3), **case.data(), exact=True)
    return verdict, verdict.values[0].gap


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "square-root"])
def test_a_claim_tightened_by_one_part_in_a_trillion_is_refused(loss: str) -> None:
    case = make_case(loss, "l21", 11, rows=8, d=5)
    case.coef = case.coef * 1.01
    verdict, gap = tightest(case)
    assert verdict.proved
    assert gap > 0.0
    value = verdict.values[0]
    header, arrays = case.content(1e-3)
    true = {
        "gap": np.array([gap * (1 + 1e-12)]),
        "dual_value": np.array([value.dual_value - 1e-12 * abs(value.dual_value)]),
        "objective": np.array([value.dual_value + 0.5 * gap]),
    }
    assert verify(pack(header, {**arrays, **true}), **case.data(), exact=True).proved
    false = {"gap": gap * (1 - 1e-12), "dual_value": value.dual_value + 1e-12 * abs(value.dual_value)}
    for name, number in false.items():
        wrong = {**arrays, **true, name: np.array([number])}
        assert not verify(pack(header, wrong), **case.data(), exact=True).proved
        assert not verify(pack(header, wrong), **case.data()).proved


def test_nothing_to_explain_has_a_gap_of_zero() -> None:
    """Constant labels: P = D = 0, and exact arithmetic proves a gap of exactly 0."""
    case = make_case("squared", "l21", 1, rows=8, d=5)
    case.y = [np.full(len(y), 3.7) for y in case.y]
    case.coef, case.intercept = np.zeros_like(case.coef), np.full(2, 3.7)
    nothing = {name: np.zeros(1) for name in ("gap", "objective", "dual_value")}
    header, arrays = case.content(0.0)
    arrays["dual"] = np.zeros_like(arrays["dual"])
    raw = pack(header, {**arrays, **nothing})
    assert verify(raw, **case.data(), exact=True).proved


@pytest.mark.parametrize("bits", [64, 160])
def test_enclosures_hold_and_are_narrow(bits: int) -> None:
    exact = Exact(bits)
    rng = np.random.default_rng(bits)
    numbers = [*(rng.standard_normal(40) * 20), *(1.0 + 1e-9 * rng.standard_normal(10)), 1e-300, 1e300, 710.0, -3000.0]

    def decimal(q: Fraction) -> Decimal:
        return Decimal(q.numerator) / Decimal(q.denominator)

    with localcontext() as context:
        context.prec = 120
        for number in numbers:
            q = Fraction(float(number))
            if abs(q) < 5000:
                low, high = exact._exp(q)
                truth = decimal(q).exp()
                assert decimal(low) <= truth <= decimal(high)
                assert decimal(high - low) <= truth * Decimal(2) ** (32 - bits)
            low, high = exact._log(abs(q))
            assert decimal(low) <= decimal(abs(q)).ln() <= decimal(high)
            assert high - low < Fraction(1, 1 << (bits - 20))
            low, high = exact._sqrt(abs(q))
            assert low * low <= abs(q) <= high * high
            assert high - low <= low * Fraction(1, 1 << (bits - 20))
    assert exact._sqrt(Fraction(9, 4)) == (Fraction(3, 2), Fraction(3, 2))
    assert exact._log(Fraction(1)) == (0, 0)
    assert exact._exp(Fraction(0)) == (1, 1)


def test_where_rounding_may_be_the_reason_floats_say_so() -> None:
    """The dual value to the last bit: fractions prove it, floats refuse and name the way out."""
    case = make_case("logistic", "l21", 11, rows=8, d=5)
    value = tightest(case)[0].values[0]
    raw = case.save(margin=1e-3, dual_value=np.array([value.dual_value]))
    assert verify(raw, **case.data(), exact=True).proved
    refused = verify(raw, **case.data())
    assert not refused.proved
    assert refused.failures[-1].endswith("exact arithmetic (--exact) decides")
    far = verify(case.save(margin=1e-3, dual_value=np.array([value.dual_value + 1e-3])), **case.data())
    assert not any("--exact" in words for words in far.failures)


def test_progress_is_told() -> None:
    case = make_case("squared", "l21", 1, rows=6, d=3)
    told: list[str] = []
    assert verify(case.save(), **case.data(), exact=True, progress=told.append).proved
    assert told == ["3 of 3 features", "1 of 1 values"]
