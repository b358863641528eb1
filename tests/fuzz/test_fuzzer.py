"""The judge itself: it is exact, its descent finds optima, and it catches planted lies. A fuzzer that cannot fail is
worth nothing."""

from __future__ import annotations

import decimal
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_numbers import as_fraction, wide

from fuzz import library
from fuzz.cases import KINDS, NAMES, STORAGES, Case, make_case
from fuzz.evaluate import Plain
from fuzz.judge import Judge, Tally, examine
from fuzz.library import Stored


def find(name: str, kind: str, good: Any = lambda case: True) -> Case:
    """The first such case."""
    numbers = range(NAMES.index(name), 12_000, len(NAMES))
    cases = (make_case(3, n) for n in numbers if KINDS[name][n // len(NAMES) % len(KINDS[name])] == kind)
    return next(case for case in cases if good(case))


# --- exact -----------------------------------------------------------------------------------------------------------


def test_objectives_to_fifty_digits(rng: np.random.Generator) -> None:
    x, w, b = rng.standard_normal((12, 3)) + np.array([1e12, 0.0, 3.0]), np.array([[0.5, -2.0, 0.0]]), -5e11
    s = rng.uniform(0.1, 10, 12)
    noise = rng.standard_normal(12)
    none, group = wide(np.zeros(3)), wide([0.1, 0.7, 1.0])
    with decimal.localcontext() as context:
        context.prec = 50
        d = [[decimal.Decimal(v) for v in row] for row in x]
        z = [
            sum(a * decimal.Decimal(c) for a, c in zip(row, w[0], strict=True)) + decimal.Decimal(b)
            for row in d
        ]
        weights = [decimal.Decimal(v) for v in s]
        size = sum(
            decimal.Decimal(g) * abs(decimal.Decimal(c)) for g, c in zip([0.1, 0.7, 1.0], w[0], strict=True)
        )
        squares = [q * (a - decimal.Decimal(t)) ** 2 for q, a, t in zip(weights, z, noise, strict=True)]
        signs = np.where(noise > 0, 1.0, -1.0)
        losses = [
            q * (1 + (-decimal.Decimal(t) * a).exp()).ln() for q, a, t in zip(weights, z, signs, strict=True)
        ]
        truth = {"squared": sum(squares) / 2, "square-root": sum(squares).sqrt(), "logistic": sum(losses)}
        for loss, expected in truth.items():
            y = signs if loss == "logistic" else noise
            plain = Plain([x], [y], [wide(s)], loss, wide(1.0), group, none)
            found = as_fraction(plain.objective(w, np.array([b])))
            wanted = Fraction(expected + size)
            assert abs(found - wanted) <= 1e-35 * wanted, loss


def test_multinomial_of_two_classes_is_logistic(rng: np.random.Generator) -> None:
    x, w, y = rng.standard_normal((15, 4)), rng.standard_normal(4), np.sign(rng.standard_normal(15))
    s, none = wide(np.ones(15)), wide(np.zeros(4))
    two = Plain([x] * 2, [(y > 0).astype(float)] * 2, [s] * 2, "multinomial", wide(1.0), none, none)
    one = Plain([x], [y], [s], "logistic", wide(1.0), none, none)
    both = two.objective(np.stack([0 * w, w]), np.array([0.0, 0.3]))
    single = one.objective(w[None], np.array([0.3]))
    assert abs(both - single) <= 1e-35 * single


# --- the descent -----------------------------------------------------------------------------------------------------


def test_one_coefficient_in_closed_form(rng: np.random.Generator) -> None:
    x = rng.standard_normal((30, 1)) + 1e6
    y = 3.0 * (x[:, 0] - 1e6) + rng.standard_normal(30) + 1e9
    strength = wide(0.25)
    plain = Plain(
        [x],
        [y],
        [wide(np.ones(30))],
        "squared",
        wide(1.0) / 30,
        strength * np.ones(1),
        0 * wide([0]),
    )
    judge = Judge(plain)
    judge.look_at(np.zeros((1, 1)), np.array([1e9]))
    a, t = wide(x[:, 0]) - wide(x[:, 0]).mean(), wide(y) - wide(y).mean()
    w = (a @ t / 30 - strength) / (a @ a / 30)
    best = np.sum((t - w * a) ** 2) / 60 + strength * w
    assert abs(judge.low - best) <= 1e-20 * best


SMOOTH = [name for name in NAMES if not name.startswith("graph") and name != "multinomial_owl"]


@pytest.mark.parametrize("name", SMOOTH)
def test_descent_ends_at_the_optimum(name: str) -> None:
    """From nothing, without the library: two different starts end at the same value."""
    case = find(name, "plain", lambda case: not case.params.get("positive"))
    judge = Judge(case.plain(0.3 * case.alpha))
    shape = (judge.plain.n_tasks, judge.plain.n_features)
    low = []
    for size in (0.0, 1e-2):
        point = judge.descent.start(np.full(shape, size), np.zeros(shape[0]))
        low.append(judge.descent.lowest(point, rounds=60)[1])
    assert low[0] < judge.null
    assert abs(low[0] - low[1]) <= 1e-9 * judge.null


# --- planted lies ----------------------------------------------------------------------------------------------------

COARSE = 1e-13  # of the null: where storing costs more than this, nothing but the offset can be the reason


class Honest:
    """The best numbers that float64 can store, found without the library, and the truth about them."""

    def __init__(self, case: Case) -> None:
        self.case, self.judge = case, Judge(case.plain(case.alpha))
        descent = self.judge.descent
        shape = (self.judge.plain.n_tasks, self.judge.plain.n_features)
        start = descent.start(np.zeros(shape), descent.null()[3])
        best, _ = descent.lowest(start, rounds=30)
        self.coef, self.intercept = descent.rounded(best)
        self.value = self.judge.look_at(self.coef, self.intercept)
        self.truth = self.value - self.judge.low

    @property
    def claim(self) -> Stored:
        gap = float(self.truth * (1 + 1e-6)) + 1e-15 * float(self.judge.null)
        return Stored(self.coef, self.intercept, float(self.value), gap, None, self.case.alpha)

    def found(self, claim: Stored, tol: float = 1e-6) -> set[str]:
        return {check for check, _ in self.judge.check(claim, tol)}


def coarse(case: Case) -> bool:
    """Storing the intercepts costs more than rounding does."""
    if not case.params["fit_intercept"] or case.path:
        return False
    honest = Honest(case)
    return bool(honest.truth > COARSE * honest.judge.null)


def variants(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(scope="module", params=["lasso", "calibrated", *variants("elastic_net", "sparse_group", "l1", "owl")])
def honest(request: pytest.FixtureRequest) -> Honest:
    return Honest(find(request.param, "offset", coarse))


def test_the_truth_is_no_violation(honest: Honest) -> None:
    assert honest.found(honest.claim) == set()


def test_half_the_gap(honest: Honest) -> None:
    assert "gap" in honest.found(replace(honest.claim, dual_gap=0.5 * honest.claim.dual_gap))


def test_a_floor_that_knows_nothing_of_the_offset(honest: Honest) -> None:
    floor = 1e-14 * float(honest.judge.null)
    assert "gap" in honest.found(replace(honest.claim, dual_gap=floor))


def test_the_objective_of_another_intercept(honest: Honest) -> None:
    """That of the unrounded one, and, the other way round, a value too large whose bound is too high."""
    assert "objective" in honest.found(replace(honest.claim, objective=float(honest.judge.low)))
    high = float(honest.value + 2 * honest.truth)
    assert {"objective", "bound"} <= honest.found(replace(honest.claim, objective=high))


def test_an_old_gap_for_new_numbers(honest: Honest) -> None:
    step = np.spacing(honest.intercept) * 4
    moved = honest.intercept + step
    value = float(honest.judge.plain.objective(honest.coef, moved))
    assert "gap" in honest.found(replace(honest.claim, intercept=moved, objective=value))


@pytest.mark.parametrize("gap", [np.nan, np.inf, -1e-300])
def test_no_gap_at_all(honest: Honest, gap: float) -> None:
    assert honest.found(replace(honest.claim, dual_gap=gap)) == {"finite"}


def test_convergence_that_is_none(honest: Honest) -> None:
    claim = replace(honest.claim, dual_gap=2 * honest.claim.dual_gap)
    tol = honest.claim.dual_gap / float(honest.judge.null)
    assert honest.found(replace(claim, converged=False), tol) == set()
    assert honest.found(replace(claim, converged=True), 3 * tol) == set()
    assert honest.found(replace(claim, converged=True), tol) == {"tol"}


def test_worse_than_nothing(honest: Honest) -> None:
    plain = honest.judge.plain
    coef = -honest.coef if not plain.positive else 100.0 * honest.coef
    value = float(plain.objective(coef, honest.intercept))
    claim = replace(honest.claim, coef=coef, objective=value, dual_gap=value)
    expected = {"null"} if np.any(coef) else set()
    assert honest.found(replace(claim, converged=False)) == expected


def test_a_free_column_that_was_forgotten() -> None:
    """The least that can be wrong with an unpenalised column of large mean: its coefficient is left at 0."""

    def good(case: Case) -> bool:
        return case.params["fit_intercept"] and case.storage != "int8" and not case.path

    honest = Honest(find("lasso", "free", good))
    assert honest.found(honest.claim) == set()
    coef = np.where(honest.judge.plain.free, 0.0, honest.coef)
    value = float(honest.judge.plain.objective(coef, honest.intercept))
    assert "gap" in honest.found(replace(honest.claim, coef=coef, objective=value))


# --- all of it together ---------------------------------------------------------------------------------------------


def calm(name: str) -> Case:
    return find(
        name, "plain", lambda case: not case.path and case.tol >= 1e-6 and case.params["fit_intercept"]
    )


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("calibrated", "multinomial_owl")]


@pytest.mark.parametrize("name", ["lasso", "logistic", "owl", "graph_svc", *SLOW])
def test_examine_finds_what_a_model_claims(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, fit = calm(name), library.fit

    def violations(**lies: Any) -> set[str]:
        def lying(*args: Any, **changes: Any) -> tuple[Any, Stored]:
            model, claim = fit(*args, **changes)
            if "tol" not in changes:  # the tighter solve stays what it is
                claim = replace(claim, **{key: change(getattr(claim, key)) for key, change in lies.items()})
            return model, claim

        monkeypatch.setattr(library, "fit", lying)
        tally = Tally()
        examine(replace(case, tol=1e-2, number=case.number | 1), tally)
        assert tally.fits == 1
        return {violation.check for violation in tally.violations}

    assert violations() == set()
    assert "objective" in violations(objective=lambda value: value * (1 + 1e-9))
    assert "gap" in violations(
        intercept=lambda b: b + 0.5 * (-1) ** np.arange(len(b)), dual_gap=lambda gap: 1e-9 * gap
    )
    assert "tol" in violations(dual_gap=lambda gap: gap + 1e6)
    assert "finite" in violations(coef=lambda w: w + np.nan)


def test_refusals_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(error: Exception, may_refuse: bool) -> Tally:
        def fails(*args: Any, **changes: Any) -> Any:
            raise error

        monkeypatch.setattr(library, "fit", fails)
        tally = Tally()
        examine(replace(calm("lasso"), may_refuse=may_refuse), tally)
        return tally

    named = ValueError("sample_weight is too small: multiply it by a constant.")
    assert found(named, may_refuse=True).refused == 1
    assert not found(named, may_refuse=True).violations
    for error, may_refuse, check in (
        (named, False, "error"),
        (ValueError("array must not contain infs"), True, "error"),
        (ZeroDivisionError("division by zero"), True, "error"),
        (library.Endless("no answer"), True, "endless"),
    ):
        assert [violation.check for violation in found(error, may_refuse).violations] == [check]


def test_a_call_that_hangs_is_ended() -> None:
    with pytest.raises(library.Endless), library.guarded(1):
        while True:
            pass


def test_cases_repeat() -> None:
    one, two = make_case(4, 17), make_case(4, 17)
    assert str(one) == str(two)
    assert all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(one.x + one.y, two.x + two.y, strict=True)
    )


def test_every_estimator_meets_every_form_and_every_trouble() -> None:
    from fuzz.cases import schedule
    from fuzz.plan import ALL

    met = {schedule(number) for number in ALL}
    for name, kinds in KINDS.items():
        assert {kind for estimator, kind, _ in met if estimator == name} == set(kinds)
        forms = {form for estimator, _, form in met if estimator == name}
        left_out = {"own", "F map"} if name.startswith("graph") else set()
        left_out |= {"list", "shared"} if name == "multinomial_owl" else set()
        assert forms == set(STORAGES) - left_out
    assert len(ALL) >= 2000
