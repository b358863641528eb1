"""Cox's dual value where a covariate nearly orders the events: it is found, and never above the truth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from cox_reference import Reference

import tasksieve as ts
from tasksieve import verify
from tasksieve.outcomes import SURVIVAL

Array = np.ndarray[Any, Any]


def near_order(seed: int, n: int, noise: float = 0.1, ties: bool = False, late: bool = False, strata: int = 1) -> Any:
    """Rows of which the first column nearly orders the events, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=[("entry", float), ("time", float), ("event", bool), ("strata", int)])
    y["time"] = rng.exponential(1.0, n)
    if ties:
        y["time"] = np.ceil(4.0 * y["time"])
    y["event"], y["entry"] = rng.random(n) < 0.75, -np.inf
    if late:
        y["entry"] = np.where(rng.random(n) < 0.5, y["time"] - rng.exponential(0.7, n), -np.inf)
    y["strata"] = rng.integers(0, strata, n)
    X = rng.standard_normal((n, 4))
    X[:, 0] = -np.log(y["time"]) + noise * X[:, 0]
    return X, y


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({"n": 40}, {"alpha": 0.05}),
    "exactly in order": ({"n": 25, "noise": 0.0}, {"alpha": 1e-3}),
    "ties": ({"n": 40, "ties": True}, {"alpha": 1e-3}),
    "ties of Breslow": ({"n": 40, "ties": True}, {"alpha": 1e-4, "ties": "breslow"}),
    "strata": ({"n": 36, "strata": 3}, {"alpha": 2e-4}),
    "late entry": ({"n": 24, "late": True}, {"alpha": 0.02}),
    "late entry, strata": ({"n": 30, "late": True, "strata": 2, "ties": True}, {"alpha": 0.02, "ties": "breslow"}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_covariate_that_nearly_orders_the_events_leaves_a_certificate(case: str, weighted: bool) -> None:
    made, params = CASES[case]
    X, y = (list(part) for part in zip(*(near_order(seed, **made) for seed in (0, 1)), strict=True))
    rng = np.random.default_rng(5)
    given = {"sample_weight": [10.0 ** rng.uniform(-2, 2, len(own)) for own in y]} if weighted else {}
    model = ts.MultiTaskCox(**params).fit(X, y, **given)
    certificate = model.certificate(X, y, **given)
    assert certificate.verify(X, y, **given).proved
    assert certificate.gaps[0] <= 2.0 * model.dual_gap_ + 1e-9 * certificate.objectives[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("late", [False, True])
def test_exact_arithmetic_proves_it_too(late: bool) -> None:
    X, y = near_order(3, 14, late=late)
    model = ts.MultiTaskCox(alpha=0.02).fit([X], [y])
    certificate = model.certificate([X], [y])
    assert certificate.verify([X], [y], exact=True).proved


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("alpha", [0.3, 0.01])
def test_offsets_of_700_and_weights_of_1e8(alpha: float) -> None:
    X, y = near_order(7, 30)
    rng = np.random.default_rng(7)
    given = {"offset": [rng.choice([-700.0, 700.0], 30)], "sample_weight": [10.0 ** rng.uniform(-8, 8, 30)]}
    model = ts.MultiTaskCox(alpha=alpha).fit([X], [y], **given)
    assert model.certificate([X], [y], **given).verify([X], [y], **given).proved


# --- the dual value itself ----------------------------------------------------------------------------------


def loss_of(y: Array, s: Array, ties: str, exact: bool = False) -> verify.Cox:
    """The verifier's loss of one task, made of a certificate of something trivial."""
    X = np.random.default_rng(0).standard_normal((len(y), 2))
    model = ts.MultiTaskCox(alpha=10.0, ties=ties).fit([X], [y], sample_weight=[s])
    certificate = model.certificate([X], [y], sample_weight=[s])
    stated = verify.read_certificate(certificate.to_bytes())
    tasks = verify.arrange(stated, [X], [y], None, [s], None)
    found = verify.Problem(stated, tasks, verify.Exact(160) if exact else verify.Floating()).losses[0]
    assert isinstance(found, verify.Cox)
    return found


def conjugate(y: Array, s: Array, ties: str, theta: Array) -> tuple[Array, Any]:
    """Expected events at some scores, each by the weight of its row, and F* of minus their residual, in 60 digits."""
    own = np.zeros(len(y), SURVIVAL)
    for name in ("entry", "time", "event"):
        own[name] = y[name]
    own["stratum"] = y["strata"]
    with mp.workdps(60):
        reference = Reference(own, s, ties == "efron")
        value, mean, _ = reference.exact([mp.mpf(t) for t in theta])
        pairs = zip(reference.events, mean, theta, strict=True)
        return np.array([float(m) for m in mean]), -mp.fsum((mp.mpf(e) - m) * t for e, m, t in pairs) - value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("made", [{}, {"ties": True}, {"late": True}, {"late": True, "ties": True}, {"strata": 2}])
def test_the_cost_of_a_dual_point_is_that_of_its_definition(made: dict[str, Any], ties: str) -> None:
    rng = np.random.default_rng(11)
    for number in range(3):
        X, y = near_order(number, 16, **made)
        s = 10.0 ** rng.uniform(-1, 1, 16)
        loss = loss_of(y, s, ties)
        theta = (6.0, 2.0, 9.0)[number] * X[:, 0]
        mean, truth = conjugate(y, s, ties, theta)
        with np.errstate(all="ignore"):
            found = loss._cost(verify.Box(mean / s))
        assert found is not None
        scale = float(loss.deaths.total().hi)
        assert -1e-12 * scale <= float(found.hi) - float(truth) <= 1e-9 * scale  # the means are rounded


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("size", [1.0, 30.0, 700.0])
def test_the_loss_of_scores_far_apart(late: bool, size: float) -> None:
    X, y = near_order(4, 20, late=late, ties=True)
    rng = np.random.default_rng(4)
    theta, s = size * X[:, 0] + rng.standard_normal(20), 10.0 ** rng.uniform(-8, 8, 20)
    loss = loss_of(y, s, "efron")
    own = np.zeros(20, SURVIVAL)
    for name in ("entry", "time", "event"):
        own[name] = y[name]
    with mp.workdps(60), np.errstate(all="ignore"):
        truth = Reference(own, s, True).exact([mp.mpf(t) for t in theta])[0]
        found = loss.values(verify.Box(theta[:, None]), 0)
    scale = max(float(np.sum(s * np.abs(theta))), 1.0)
    assert found.lo[0] - 1e-14 * scale <= float(truth) <= found.hi[0] + 1e-14 * scale
    assert float(found.hi[0] - found.lo[0]) <= 1e-9 * scale


@pytest.mark.filterwarnings("ignore")
def test_sums_in_pieces_are_sums_over_the_rows_at_risk() -> None:
    _, y = near_order(2, 30, late=True, ties=True, strata=2)
    for ties in ("efron", "breslow"):
        loss = loss_of(y, np.ones(30), ties)
        rng = np.random.default_rng(0)
        x, increments = rng.random(30), rng.random(len(loss.group))
        at_risk = loss._at_risk_in(np.arange(len(loss.group)))
        for loss.in_pieces in (False, True):
            np.testing.assert_allclose(loss._at_risk(verify.Box(x)).hi, at_risk @ x, rtol=1e-12)
            hazards = loss._hazards(verify.Box(increments)).lo[loss.alive]
            np.testing.assert_allclose(hazards, (increments @ at_risk)[loss.alive], rtol=1e-12)


def test_equations_of_weak_links_are_solved_to_the_last_digits() -> None:
    rng = np.random.default_rng(1)
    links = 10.0 ** rng.uniform(-20.0, 0.0, (7, 7))
    links = links + links.T
    rest = rng.integers(-5, 6, 7).astype(float)
    rest[-1] -= rest.sum()
    found = verify._without_subtraction(links, rest)
    for i in range(7):
        flows = [Fraction(links[i, j]) * (Fraction(found[i]) - Fraction(found[j])) for j in range(7) if j != i]
        assert abs(float(sum(flows) - Fraction(rest[i]))) <= 1e-13 * float(sum(map(abs, flows)))


@pytest.mark.filterwarnings("ignore")
def test_no_vector_near_the_edge_proves_more_than_there_is() -> None:
    """Dual points between that of the model and others, of problems whose parts are as small as rounding."""
    proved = 0
    for seed in range(4):
        X, y = near_order(seed, 14, noise=0.02, late=seed % 2 == 1)
        model = ts.MultiTaskCox(alpha=1e-3, tol=1e-10).fit([X], [y])
        certificate = model.certificate([X], [y])
        least = certificate.objectives[0]  # no dual value is above it
        rng, kept = np.random.default_rng(seed), certificate.arrays["dual"].copy()
        for _ in range(8):
            share = 10.0 ** rng.uniform(-16, -1)
            certificate.arrays["dual"][:] = kept * (1.0 + share * rng.standard_normal(kept.shape))
            certificate.arrays["dual_value"][0] = -np.inf
            stated = verify.Certificate(certificate.header, dict(certificate.arrays))
            tasks = verify.arrange(stated, [X], [y], None, None, None)
            problem = verify.Problem(stated, tasks, verify.Floating())
            checker = verify.Checker(problem)
            with np.errstate(all="ignore"):
                for k, point, reading in verify.read_values(checker, [0], False, lambda words: None):
                    dual = checker.check(k, point, reading).dual_value
            assert not dual > least * (1.0 + 1e-12)
            proved += dual > 0.5 * least
    assert proved > 3
