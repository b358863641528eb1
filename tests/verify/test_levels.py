"""What one pass over the data says of all rows, without their products: never below the truth, which fractions know.

That a flaw would show is shown by verifiers into which flaws are put on purpose."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flawed_verifier import flawed
from hand_cases import penalty_of
from hand_certificates import Case

from tasksieve import verify as verifier

Array = np.ndarray[Any, Any]

SQUARED = {"name": "clipped", "mu": 1.0, "low": None, "high": None, "labels": "numbers"}
PENALTIES = ("l21", "l11", "sparse_group", "linf", "dirty", "owl", "groups", "groups-rows", "groups-entries")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"fit_intercept": False},
    {"weights": True, "standardize": True},
    {"positive": True, "fit_intercept": False},
    {"shared": True, "weights": True},
    {"shared": True, "standardize": True, "fit_intercept": False},
]
COLUMNS = 16


def wild_columns(rng: Any, n: int, far: bool) -> Array:
    """Ordinary ones; far from 0 by 500 deviations and, if `far`, by 1e8 and more; large and small; zero; few digits."""
    x = rng.standard_normal((n, COLUMNS))
    x[:, 3] += 500.0
    x[:, 4] -= 500.0
    if far:
        x[:, 5] += 1e8
        x[:, 6] = 1e13 + rng.integers(-3, 4, n)
        x[:, 11] = 7.3
    x[:, 7] *= 1e100
    x[:, 8] *= 1e-100
    x[:, 9] *= 1e-200
    x[:, 10] *= 1e200
    x[:, 12] = 0.0
    x[:, 13] = rng.integers(0, 3, n)
    x[:, 14] = 5e-324 * rng.integers(0, 9, n)
    return x


def wild_case(penalty: str, seed: int, options: dict[str, Any]) -> tuple[Case, list[Array]]:
    """A problem without coefficients, and dual vectors of five values: with sums of about 0 or not, small, large, 0."""
    rng = np.random.default_rng(seed)
    shared, counts = bool(options.get("shared")), [6, 9, 4]
    if shared:
        counts = [7, 7, 7]
    x = [wild_columns(rng, n, seed % 2 == 0) for n in counts]
    if seed % 3:
        x = [np.asfortranarray(block) for block in x]
    x = [x[0]] * 3 if shared else x
    _, words, arrays = penalty_of(penalty, COLUMNS, rng)
    if penalty in ("l21", "l11", "sparse_group", "linf", "dirty"):
        arrays["feature_weights"] = rng.uniform(0.2, 1.5, COLUMNS)
    weight = [rng.uniform(0.5, 2.0, n) for n in counts] if options.get("weights") else None
    case = Case(
        x, [rng.standard_normal(n) for n in counts], np.zeros((COLUMNS, 3)), np.zeros(3), SQUARED, words, 0.7,
        unit=5.0, arrays=arrays, weight=weight, shared=shared, standardize=bool(options.get("standardize")),
        positive=bool(options.get("positive")), fit_intercept=options.get("fit_intercept", True),
    )  # fmt: skip
    duals = []
    for k, size in enumerate((1.0, 1.0, 1e-30, 1e20, 0.0)):
        parts = [rng.standard_normal(n) * size for n in counts]
        parts[k % 3] = parts[k % 3] * 1e-9
        duals.append(np.concatenate([p - p.mean() if k != 1 else p for p in parts]))
    return case, duals


def read(module: Any, case: Case, duals: list[Array], arith: Any) -> tuple[Any, list[Any]]:
    """A checker in an arithmetic, and its readings."""
    count, nothing = len(duals), np.zeros(0, dtype=np.int64)
    arrays = {name: np.zeros(count) for name in ("ridge", "objective", "dual_value", "gap")}
    arrays |= {"alpha": np.full(count, case.alpha), "intercept": np.zeros((count, 3)), "dual": np.array(duals)}
    arrays |= {"start": np.zeros(count + 1, dtype=np.int64), "feature": nothing, "output": nothing, "coef": np.zeros(0)}
    cert = module.Certificate(case.header(), {**arrays, **case.arrays})
    data = {"task": None, **case.data()}
    tasks = module.arrange(cert, **data)
    checker = module.Checker(module.Problem(cert, tasks, arith))
    return checker, list(module.read_values(checker, range(count), True, lambda words: None))


def true_levels(checker: Any, k: int, reading: Any) -> list[Any]:
    """Squares of the levels of rows (of `split`, the larger one)."""
    penalty, nothing = checker.penalty, checker.penalty.features[:0]
    size = checker._sizes(k, reading, nothing, None)
    rows, one, g = np.arange(len(size)), Fraction(1), penalty.g.lo
    if penalty.name == "sorted":
        return list((size * size).sum(axis=1))
    levels = penalty.levels(size, rows, one)
    if penalty.name == "largest":
        return list(levels * levels)
    entries = (size / penalty.weights.lo[:, None]).max(axis=1)
    if g == 0:
        return list((entries / penalty.l_rows.lo) ** 2)
    found = levels / (g * g)
    return list(np.maximum(found, (entries / penalty.l.lo) ** 2) if penalty.name == "split" else found)


def below_the_truth(module: Any, penalty: str, seed: int, options: dict[str, Any], tight: bool = False) -> list[str]:
    """Levels and norms that are too small: of floating point and of whole numbers, where these are used."""
    case, duals = wild_case(penalty, seed, options)
    found = []
    with np.errstate(all="ignore"):
        quick = read(module, case, duals, module.Floating(quick=True))[1]
        whole = read(module, case, duals, module.Exact(64, quick=True))[1]
        exact, true = read(verifier, case, duals, verifier.Exact(64))
        for k, (_, _, theirs) in enumerate(true):
            squares = true_levels(exact, k, theirs)
            near, all_near = () if case.positive else (0, 1, 2, 13), (0, 1, 2, 3, 5, 13)
            for ours, off in ((quick[k][2], 1e-6), (whole[k][2], 1e-3)):
                if ours.levels is None:
                    continue
                for j, (level, square) in enumerate(zip(ours.levels.tolist(), squares, strict=True)):
                    if level < np.inf and Fraction(level) ** 2 < square:
                        found.append(f"value {k}, level of column {j}")
                    shifted = k == 0 and case.fit_intercept and ours is quick[k][2]
                    if tight and k < 2 and j in (all_near if shifted else near) and penalty in ("l21", "linf"):
                        assert Fraction(level) ** 2 <= square * Fraction(1 + off) + Fraction(off * off), (k, j)
                for j, (norm, truth) in enumerate(zip(ours.norms.tolist(), theirs.norms, strict=True)):
                    if norm < np.inf and Fraction(norm) < truth:
                        found.append(f"norm of column {j}")
    return found


@pytest.mark.parametrize("penalty", PENALTIES)
def test_levels_are_never_below_the_truth(penalty: str) -> None:
    place = PENALTIES.index(penalty)
    for options in OPTIONS[place % 3 :: 3]:
        for seed in (place, place + 1):
            assert below_the_truth(verifier, penalty, seed, options, tight=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_levels_are_never_below_the_truth(seed: int) -> None:
    for penalty in PENALTIES:
        for options in OPTIONS:
            assert below_the_truth(verifier, penalty, 10 + seed, options) == []


FLAWS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "the order of summation is forgotten": (
        "l21", {"fit_intercept": False}, "(gamma(n + 16) * size + width * wide)", "(width * wide)",
    ),
    "errors of products are forgotten": ("l21", {"fit_intercept": False}, "((total + off)[held]", "(total[held]"),
    "errors of products are forgotten in sums": (
        "linf", {"fit_intercept": False}, "off = np.sqrt(squares)[:, problem.task_of] @ reach", "off = 0.0 * total",
    ),
    "errors of products are forgotten in the largest entry": (
        "l11", {"fit_intercept": False}, "own + sizes * reach[outputs]", "own + 0.0 * reach[outputs]",
    ),
    "weights of features are forgotten": ("l21", {}, '"squares", [u * g], None', '"squares", [0.0 * u + 2.0], None'),
    "vectors are scaled, strengths are not": ("l21", {}, "np.ldexp(strength, -power)", "strength"),
    "entries are cut by too much": ("sparse_group", {}, "np.where(off > 2.0**-1000, off, 0.0)", "2.0 * off"),
    "standard deviations are forgotten": (
        "l21", {"weights": True, "standardize": True}, "inverse = up(1.0 / scales.lo[block])",
        "inverse = 0.0 * scales.lo[block] + 1e-3",
    ),
    "squares that underflow count as 0": (
        "l21", {"fit_intercept": False}, "unsure[odd[i]] |= x.any(axis=0)", "pass",
    ),
    "norms about a computed mean": ("l21", {}, "(rest + square * (4.0 * g))", "rest"),
    "digits that are cut off are forgotten": (
        "l21", {}, "m = np.abs(turned @ w) + total[:, None] + (np.abs(w).sum(axis=0) + n)", "m = np.abs(turned @ w)",
    ),
    "norms of digits": ("l21", {}, "_root_up(square) + math.isqrt(n) + 1", "_root_up(square) - 2"),
    "one row stands for its group": (
        "groups", {}, "np.bincount(self.units, x * x, count)", "np.full(count, x.min() ** 2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAWS)
def test_a_flaw_shows(name: str) -> None:
    penalty, options, old, new = FLAWS[name]
    module = flawed((old, new))
    assert any(below_the_truth(module, penalty, seed, options) for seed in range(8))


# --- products in more than the precision ---------------------------------------------------------------------


def sliced_holds(module: Any, seed: int) -> bool:
    """Sums that cancel to what rounding leaves, against fractions."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([1, 3, 40, 1100]))
    x, w = rng.standard_normal((4, k)) * 10.0 ** rng.integers(-9, 9), rng.standard_normal((k, 3))
    x[0] *= 10.0 ** rng.integers(-30, 30)
    back = -(x @ w)
    truth = verifier.Exact(64).scores(x, w, [back])
    with np.errstate(all="ignore"):
        found = module._added([module._sliced(x, w, [back])])[0]
    each = zip(found.lo.ravel(), found.hi.ravel(), truth.lo.ravel(), strict=True)
    assert (found.hi - found.lo <= 1e-18 * np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(w, axis=0)).all()
    return all(Fraction(float(low)) <= exact <= Fraction(float(high)) for low, high, exact in each)


def test_sliced_products_hold_the_truth() -> None:
    assert all(sliced_holds(verifier, seed) for seed in range(40))
    for old, new in (
        ("off * gamma(k + 16)", "0.0 * off"),
        ("(53 - math.ceil(math.log2(max(k, 2)))) // 2", "32"),
        ("            parts.append(xl @ ws)\n", ""),
    ):
        module = flawed((old, new))
        assert not all(sliced_holds(module, seed) for seed in range(40)), old


def test_numbers_too_large_or_small_are_not_sliced() -> None:
    for power in (-450, 450):
        assert verifier._sliced(np.ldexp(np.ones((2, 3)), power), np.ones((3, 2)), []) is None
    assert verifier._sliced(np.full((2, 3), np.nan), np.ones((3, 2)), []) is None
