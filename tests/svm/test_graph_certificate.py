"""Graph models certify the numbers that they store, with all rounding, and are never worse than W = 0."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact_numbers import EPS, dot, soft_plus, wide
from fuzz.judge import run
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.graph.graphs import similarity_of
from tasksieve.svm.finish import _lowest_part
from tasksieve.svm.row_terms import feasible, row_terms

SVC = ("hinge", "squared_hinge", "logistic")
SVR = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")
EPSILON = 0.1
fractions = np.frompyfunc(Fraction, 1, 1)


def loss_values(name, z, y, numbers=wide):
    """From the definitions, in `numbers`: `wide`, or `fractions` where there is nothing but arithmetic."""
    z, y, epsilon = numbers(z), numbers(y), numbers(0.0 if name == "squared" else EPSILON)
    if name in ("hinge", "squared_hinge"):
        return np.maximum(1 - y * z, 0) ** (2 if name == "squared_hinge" else 1)
    if name == "logistic":
        return soft_plus(-y * z)
    over = np.maximum(np.abs(z - y) - epsilon, 0)
    return over if name == "epsilon_insensitive" else over**2


def conjugates(name, y, c, beta, numbers=wide):
    """``c l*(-beta / c)``, likewise."""
    y, c, beta, epsilon = numbers(y), numbers(c), numbers(beta), numbers(0.0 if name == "squared" else EPSILON)
    a = y * beta
    if name == "hinge":
        return -a
    if name == "squared_hinge":
        return -a + a**2 / (4 * c)
    if name == "logistic":
        p, rest = a / c, (c - a) / c
        entropy = p * np.log(wide(np.where(p > 0, p, 1))) + rest * np.log(wide(np.where(rest > 0, rest, 1)))
        return c * entropy
    quadratic = 0 if name == "epsilon_insensitive" else beta**2 / (4 * c)
    return epsilon * np.abs(beta) - beta * y + quadratic


def objective(coef, intercept, loss, parts, graph, C, scaling=1.0, strength=1.0):
    """Of stored numbers in forty digits; `parts`: x, y, s of each task."""
    used = np.flatnonzero(np.any(coef, axis=0))
    w = np.column_stack([wide(coef[:, used]), wide(intercept) / scaling])
    total = np.sum(w * w) / 2
    for t, other in combinations(range(len(graph)), 2):
        total += wide(strength) * graph[t][other] * np.sum((w[t] - w[other]) ** 2) / 2
    for t, (x, y, s) in enumerate(parts):
        z = dot(x[:, used], coef[t, used]) + intercept[t]
        total += C * np.sum(wide(s) * loss_values(loss, z, y))
    return total


def model_of(loss, *args, **kwargs):
    return (ts.GraphSVC if loss in SVC else ts.GraphSVR)(*args, loss=loss, **kwargs)


def quiet(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", SVC + SVR)
def test_terms_of_rows_are_upper_bounds(loss, rng):
    n = 4000
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0) if loss in SVC else rng.standard_normal(n)
    c = 10.0 ** rng.uniform(-8, 8, n)
    z = y + rng.standard_normal(n) * 10.0 ** rng.uniform(-16, 3, n)
    e = np.abs(z) * 10.0 ** rng.uniform(-17, -6, n)
    share = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), rng.random(n) ** rng.uniform(0.1, 40, n))
    if loss == "logistic":  # near the best one, too
        share = np.where(rng.random(n) < 0.5, (1 + 1e-9) / (1 + np.exp(np.minimum(y * z, 700))), share)
    beta = c * share * (y if loss in SVC else rng.choice([-1.0, 1.0], n))
    if loss.startswith("squared"):
        beta = np.where(rng.random(n) < 0.5, -2 * c * (z - y) * (1 + 1e-13), 3 * beta)
    beta = feasible(loss, y, c, beta)
    epsilon = 0.0 if loss == "squared" else 0.1
    found = row_terms(loss, epsilon, z, e, y, c, beta)
    numbers = wide if loss == "logistic" else fractions  # without any rounding but for logarithms
    price = conjugates(loss, y, c, beta, numbers)
    for sign in (0, -1, 1):  # what the score may be
        truth = numbers(z) + sign * numbers(e)
        value = loss_values(loss, truth, y, numbers)
        bent, line = numbers(c) * value, numbers(beta) * truth
        own = 64 * EPS * (bent + np.abs(price) + np.abs(line)) if loss == "logistic" else 0
        assert np.all(numbers(found.term) >= bent + price + line - own)
        assert np.all(np.abs(numbers(found.loss) - value) <= numbers(found.error))
    assert np.all(found.term >= 0)


def test_terms_of_rows_are_tight_at_the_optimum(rng):
    """Rounding adds units of rounding, not more."""
    z, c = rng.standard_normal(1000), np.ones(1000)
    y = np.where(rng.random(1000) < 0.5, -1.0, 1.0)
    nothing = np.zeros(1000)
    for loss, beta in (
        ("hinge", y * (y * z < 1)),
        ("squared_hinge", 2 * y * np.maximum(1 - y * z, 0)),
        ("logistic", y / (1 + np.exp(y * z))),
        ("epsilon_insensitive", -np.sign(z - y) * (np.abs(z - y) > 0.1)),
        ("squared", -2 * (z - y)),
    ):
        epsilon = 0.1 if loss == "epsilon_insensitive" else 0.0
        found = row_terms(loss, epsilon, z, nothing, y, c, feasible(loss, y, c, beta))
        assert np.max(found.term) <= 1e-14


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", [82, 142, 250, 310, 430, 646, 35, 143, 107, 323])
def test_what_the_fuzzer_found(number, monkeypatch):
    """Worse than W = 0 (starved, columns, units), numbers that are none (extreme), gaps without rounding (columns)."""
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")
    tally = run(13, [number])
    assert not tally.violations, "\n".join(map(str, tally.violations))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("storage", ["C", "CSR", "float32"])
@pytest.mark.parametrize("loss", SVC + SVR)
def test_objective_and_gap_of_the_stored_numbers(loss, storage, rng):
    """Offsets, weights over twelve powers of ten and a rounded intercept: a tighter fit is not below the bound."""
    x = [rng.standard_normal((25, 4)) + np.array([0, 1e4, 0, 3]) for _ in range(3)]
    if storage == "float32":
        x = [block.astype(np.float32).astype(float) for block in x]
    s = [10.0 ** rng.uniform(-6, 6, 25) for _ in x]
    y = [block[:, 0] + 0.3 * rng.standard_normal(25) for block in x]
    y = [np.where(part > 0, 1.0, -1.0) if loss in SVC else part + 7.3 for part in y]
    graph = np.array([[0, 0.7, 0], [0.7, 0, 1.3], [0, 1.3, 0]])
    stacked = np.concatenate(x)
    given = {"C": stacked, "CSR": sparse.csr_array(stacked), "float32": stacked.astype(np.float32)}[storage]
    fits = [
        quiet(
            model_of(loss, graph, graph_strength=0.3, C=0.37, intercept_scaling=3.0, tol=tol, max_iter=3000),
            given, np.concatenate(y), task=np.repeat([0, 1, 2], 25), sample_weight=np.concatenate(s),
        )
        for tol in (1e-4, 1e-9)
    ]  # fmt: skip
    parts = list(zip(x, y, s, strict=True))
    values = [
        objective(m.coef_, m.intercept_, loss, parts, graph, 0.37, scaling=3.0, strength=0.3) for m in fits
    ]
    for m, value in zip(fits, values, strict=True):
        slack = 4 * np.spacing(m.objective_)
        assert abs(m.objective_ - value) <= min(m.dual_gap_, 1e-12 * m.null_objective_) + slack
        assert value - min(values) <= m.dual_gap_
        assert m.objective_ - m.dual_gap_ <= min(values) + slack
        assert m.dual_gap_ > 1e-15 * m.objective_  # there is always some rounding
        assert value <= m.null_objective_ * (1 + 1e-4)


def test_one_against_the_rest(rng):
    x, code = rng.standard_normal((90, 5)), rng.integers(0, 3, 90)
    x[:, 0] += code
    task, graph = np.repeat([0, 1], 45), np.array([[0, 1.0], [1.0, 0]])
    m = ts.GraphSVC(graph, C=2.0, loss="squared_hinge", tol=1e-9).fit(x, code, task=task)
    truth = sum(
        objective(
            m.coef_[k], m.intercept_[k], "squared_hinge",
            [(x[task == t], np.where(code[task == t] == k, 1.0, -1.0), np.ones(45)) for t in (0, 1)], graph, 2.0,
        )
        for k in range(3)
    )  # fmt: skip
    assert abs(m.objective_ - truth) <= m.dual_gap_ <= 1e-9 * m.null_objective_


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_strings(loss, rng):
    text = np.array([bytes(rng.choice(list(b"ACGT"), 12).tolist()) for _ in range(60)])
    y, task = np.where([t[3] == 65 for t in text], 1.0, -1.0), np.repeat([0, 1], 30)
    graph = np.array([[0, 1.0], [1.0, 0]])
    # few places in the table: features meet in one
    hasher = ts.WeightedDegreeHasher(degree=4, n_features=256)
    m = quiet(ts.GraphSVC(graph, loss=loss, hasher=hasher, tol=1e-7), text, y, task=task)
    x = m.hasher_.transform(text).toarray()
    parts = [(x[task == t], y[task == t], np.ones(30)) for t in (0, 1)]
    value = objective(m.coef_, m.intercept_, loss, parts, graph, 1.0)
    tight = quiet(ts.GraphSVC(graph, loss=loss, tol=1e-11), x, y, task=task)
    low = objective(tight.coef_, tight.intercept_, loss, parts, graph, 1.0)
    assert abs(m.objective_ - value) <= 1e-13 * m.null_objective_
    assert value - low <= m.dual_gap_
    assert m.objective_ - m.dual_gap_ <= low


@pytest.mark.sampled(4)
@pytest.mark.parametrize("max_iter", [1, 3000])
@pytest.mark.parametrize("loss", SVC + SVR)
def test_tables_too_large_to_be_measured(loss, max_iter, rng):
    """W is known to be M V(beta) there, or multiples of both."""
    x = sparse.random(40, 9000, density=0.01, format="csr", random_state=0)
    y = np.where(rng.random(40) < 0.5, -1.0, 1.0) if loss in SVC else rng.standard_normal(40)
    task, graph = np.repeat([0, 1], 20), np.array([[0, 2.0], [2.0, 0]])
    m = quiet(model_of(loss, graph, C=50.0, tol=1e-9, max_iter=max_iter), x, y, task=task)
    tight = quiet(model_of(loss, graph, C=50.0, tol=1e-11), x, y, task=task)
    dense = x.toarray()
    parts = [(dense[task == t], y[task == t], np.ones(20)) for t in (0, 1)]
    value, low = (objective(one.coef_, one.intercept_, loss, parts, graph, 50.0) for one in (m, tight))
    assert abs(m.objective_ - value) <= 1e-13 * m.null_objective_
    assert value - low <= m.dual_gap_
    assert m.objective_ - m.dual_gap_ <= low
    assert value <= m.null_objective_ * (1 + 1e-9)
    if max_iter > 1:
        assert m.dual_gap_ <= 1e-9 * m.null_objective_


@pytest.mark.parametrize("loss", SVC + SVR)
@pytest.mark.parametrize("solver", ["auto", "dual"])
def test_starved_models_are_not_worse_than_nothing(loss, solver, rng):
    x, task = rng.standard_normal((40, 5)) * [1, 1e4, 1, 1, 1e-2] + [0, 1e6, 0, 0, 0], np.repeat([0, 1], 20)
    y = np.where(x[:, 0] > 0, 1.0, -1.0) if loss in SVC else x[:, 0]
    m = model_of(loss, [[0, 1], [1, 0]], C=5.0, max_iter=1, tol=1e-10, solver=solver)
    with pytest.warns(ConvergenceWarning):
        m.fit(x, y, task=task)
    assert m.objective_ <= m.null_objective_
    assert m.dual_gap_ <= m.null_objective_ * (1 + 1e-12)


def test_starved_strings_are_not_worse_than_nothing(rng):
    text = np.array([bytes(rng.choice(list(b"ACGT"), 20).tolist()) for _ in range(80)])
    y = np.where([t[3] == 65 for t in text], 1.0, -1.0)
    hasher = ts.WeightedDegreeHasher(degree=3, n_features=1024)
    m = ts.GraphSVC(hasher=hasher, C=1e4, max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        m.fit(text, y)
    assert m.objective_ <= m.null_objective_
    assert m.dual_gap_ <= m.null_objective_ * (1 + 1e-12)


def test_rounding_in_the_way_is_said(rng):
    """No advice to raise max_iter where that would not help."""
    x = rng.standard_normal((50, 3))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    with pytest.warns(ConvergenceWarning, match="rounding of double precision"):
        m = ts.GraphSVC(loss="logistic", tol=1e-15, max_iter=5000).fit(x, y)
    assert 1e-15 * m.null_objective_ < m.dual_gap_ < 1e-12 * m.null_objective_


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": 1e200}, "X is beyond"),
        ({"X": 1e153}, "X is about 1e.15"),
        ({"y": 1e155}, "y is about 1e.15"),
        ({"y": 1e-160}, "y is about 1e-160"),
        ({"sample_weight": 1e300}, "sample_weight is about 1e.30"),
        ({"sample_weight": 1e-300}, "sample_weight is about 1e-29"),
        ({"C": 1e300, "sample_weight": 1e100}, "C = 1e.300 times sample_weight"),
        ({"C": 1e-300, "sample_weight": 1e-100}, "C = 1e-300 times sample_weight"),
        ({"intercept_scaling": 1e200}, "intercept_scaling"),
        ({"graph_strength": 1e308}, "graph_strength"),
    ],
)
def test_numbers_beyond_double_precision_are_refused(change, words, rng):
    x, task = rng.standard_normal((30, 3)), np.repeat([0, 1], 15)
    y = x[:, 0] + 0.1
    m = ts.GraphSVR(
        [[0, 3.0], [3.0, 0]], loss="squared",
        **{key: change[key] for key in ("C", "intercept_scaling", "graph_strength") if key in change},
    )  # fmt: skip
    with pytest.raises(ValueError, match=words):
        m.fit(
            x * change.get("X", 1.0), y * change.get("y", 1.0), task=task,
            sample_weight=np.full(30, change.get("sample_weight", 1.0)),
        )  # fmt: skip


@pytest.mark.parametrize("factor", [1e-200, 1e-60, 1e60])
@pytest.mark.parametrize("loss", SVC + SVR)
def test_other_units_give_finite_certificates(loss, factor, rng):
    x = rng.standard_normal((30, 3))
    y = np.where(x[:, 0] > 0, 1.0, -1.0) if loss in SVC else x[:, 0]
    m = quiet(model_of(loss, tol=1e-6), x * factor, y)
    assert np.isfinite(m.objective_)
    assert 0 <= m.dual_gap_ <= m.null_objective_ * (1 + 1e-12)
    assert np.all(np.isfinite(m.coef_))


@pytest.mark.parametrize("strength", [1e4, 1e8, 1e14])
def test_strong_couplings(strength, rng):
    """The inverse of I + L has few digits left there: what it is off is in the gap."""
    x, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    m = quiet(ts.GraphSVR([[0, 1], [1, 0]], graph_strength=strength), x, y, task=np.repeat([0, 1], 20))
    assert 0 < m.dual_gap_ <= m.null_objective_ * (1 + 1e-12)


def test_the_inverse_of_a_graph_that_cannot_be_inverted():
    with pytest.raises(ValueError, match="graph_strength"):
        similarity_of(np.array([[0, 1e308], [1e308, 0]]), 10.0)


def test_best_multiple():
    assert _lowest_part(lambda t: (t - 0.3) ** 2, 0.09) == pytest.approx(0.3, abs=1e-6)
    assert _lowest_part(lambda t: (1e20 * t - 1) ** 2, 1.0) == pytest.approx(1e-20, rel=1e-6)
    assert _lowest_part(lambda t: 1.0 + t, 1.0) == 0.0
    assert _lowest_part(lambda t: np.nan, 1.0) == 0.0
    assert _lowest_part(lambda t: -t, 0.0) == pytest.approx(1.0)
