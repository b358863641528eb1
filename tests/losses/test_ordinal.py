"""The ordinal loss on data: its value, its thresholds, its dual points and its gap, against forty digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exact_numbers import wide

from tasksieve.design import Design, as_storage
from tasksieve.losses import Evaluation, Logistic, Ordinal
from tasksieve.losses.ordinal import interval_probabilities
from tasksieve.losses.thresholds import Margins, ThresholdNewton, width_cost
from tasksieve.path import Problem, solve_path

LENGTHS = np.array([14, 22, 17])


def loss_of(rng, classes=4, free=0, weighted=True, offset=False, absent=False):
    offsets = np.append(0, np.cumsum(LENGTHS))
    x = rng.standard_normal((offsets[-1], 6)) + rng.standard_normal(6)
    y = np.concatenate([rng.permutation(np.arange(n) % classes) for n in LENGTHS]).astype(float)
    if absent:
        first, last = slice(0, LENGTHS[0]), slice(offsets[1], offsets[2])
        y[first] = np.where(y[first] == 1, 2, y[first])  # a class inside
        y[last] = np.clip(y[last], 1, 2)  # both ends
    weights = rng.uniform(0.2, 2.0, len(y)) * (rng.random(len(y)) < 0.9) if weighted else None
    design = Design(as_storage(x), offsets, weights=weights, unpenalised=np.arange(free))
    known = rng.standard_normal(len(y)) if offset else None
    design.x = x
    return Ordinal().on(design, y, known), design, y, known


def scores_of(rng, design, size):
    return design.project(size * rng.standard_normal(design.n_samples) * design.samples.root)


def weights_of(design):
    return np.ones(design.n_samples) if design.weights is None else design.weights


def raw_of(design, z, known, nuisance):
    root = design.samples.root
    raw = np.divide(z, root, out=np.zeros_like(z), where=root > 0) + (0.0 if known is None else known)
    for column, values in zip(design.nuisance_columns, nuisance, strict=False):
        raw = raw + column * design.per_sample(values)
    return raw


def likelihood(design, y, raw, thresholds):
    """Minus its logarithm, from the probabilities themselves; `raw` has the offset in it."""
    total, s = wide(0.0), weights_of(design)
    for t in range(design.n_tasks):
        for i in range(design.offsets[t], design.offsets[t + 1]):
            k, z = int(y[i]), wide(raw[i])
            if s[i] == 0.0:
                continue
            low = -np.inf if k == 0 else thresholds[k - 1, t]
            high = thresholds[k, t] if k < len(thresholds) else np.inf
            shares = [
                wide(float(th > 0)) if np.isinf(th) else 1 / (1 + np.exp(z - wide(th))) for th in (low, high)
            ]
            total -= s[i] * np.log(shares[1] - shares[0])
    return total


def conjugate(loss, over, under):
    """F*(-u) in forty digits at p and q, forces by cumulative sums; the sum of u is taken to be 0."""

    def phi(x):
        return x * np.log(x) if x > 0 else wide(0.0)

    design, classes, s = loss.design, loss._classes, wide(weights_of(loss.design))
    p, q, total = wide(over), wide(under), wide(0.0)
    for i in range(design.n_samples):
        total += s[i] * (phi(p[i]) + phi(1 - p[i]) + phi(q[i]) + phi(1 - q[i]))
    for t in range(design.n_tasks):
        rows = np.arange(design.offsets[t], design.offsets[t + 1])
        place = classes.cell[rows] - t * classes.shape[1]
        for k in range(1, classes.counts[t] - 1):
            force = (s * p)[rows[place < k]].sum() - (s * q)[rows[place <= k]].sum()
            mass = s[rows[place == k]].sum()
            assert force >= 0
            total += mass * (phi(force / mass) - phi(1 + force / mass))
    return total


CASES = {
    "four classes": {},
    "two classes": {"classes": 2},
    "many classes": {"classes": 9, "weighted": False},
    "offset": {"offset": True},
    "unpenalised": {"free": 2, "offset": True},
    "classes that tasks lack": {"absent": True},
}


@pytest.mark.parametrize("case", CASES)
def test_value_gradient_and_thresholds(rng, case):
    loss, design, y, known = loss_of(rng, **CASES[case])
    for size in (0.0, 1.0, 4.0):
        z = scores_of(rng, design, size)
        at = loss.evaluate(z)
        raw = raw_of(design, z, None, at.nuisance)  # `at_thresholds` adds the offset
        thresholds = loss.thresholds(at.nuisance)
        there = raw if known is None else raw + known
        assert at.value == pytest.approx(float(likelihood(design, y, there, thresholds)), rel=1e-13)
        stored = loss.at_thresholds(raw, thresholds)
        assert stored.value == pytest.approx(at.value, rel=1e-13)
        np.testing.assert_allclose(stored.residual, at.residual, atol=1e-12)
        v = scores_of(rng, design, 1.0)
        change = loss.evaluate(z + 1e-5 * v, at.nuisance).value - loss.evaluate(z - 1e-5 * v, at.nuisance).value
        assert -change / 2e-5 == pytest.approx(float(at.residual @ v), abs=1e-7 * (1 + np.abs(at.residual) @ np.abs(v)))
        assert np.abs(design.samples.orthogonality(at.residual)[0]).max() < 1e-12
        for _ in range(5):  # no thresholds are better
            moved = np.sort(thresholds + 1e-3 * rng.standard_normal(thresholds.shape), axis=0)
            if case != "classes that tasks lack":
                assert loss.at_thresholds(raw, moved).value >= at.value * (1 - 1e-14)
        # from a start that is far off, the same
        far = at.nuisance.copy()
        far[design.n_nuisance :] += np.linspace(3.0, 9.0, len(far) - design.n_nuisance)[:, None]
        assert loss.evaluate(z, far).value == pytest.approx(at.value, rel=1e-13)


def test_two_classes_are_the_logistic_loss(rng):
    loss, design, y, known = loss_of(rng, classes=2, offset=True, free=1)
    logistic = Logistic().on(design, 2.0 * y - 1.0, known)
    assert loss.null.value == pytest.approx(logistic.null.value, rel=1e-14)
    for size in (0.5, 3.0):
        z = scores_of(rng, design, size)
        own, other = loss.evaluate(z), logistic.evaluate(z)
        assert own.value == pytest.approx(other.value, rel=1e-13)
        np.testing.assert_allclose(own.residual, other.residual, atol=1e-12)
        live = weights_of(design) > 0.0
        np.testing.assert_allclose(own.curvature[live], other.curvature[live], atol=1e-12)
        np.testing.assert_allclose(loss.thresholds(own.nuisance)[0], -other.nuisance[0], atol=1e-10)
        for c in (0.0, 0.3, 0.95, 1.0):
            assert loss.terms(own, c) == pytest.approx(logistic.terms(other, c), rel=1e-10, abs=1e-12)


def test_null_residuals_are_ridits(rng):
    loss, design, y, _ = loss_of(rng)
    s = weights_of(design)
    for t in range(design.n_tasks):
        rows = slice(design.offsets[t], design.offsets[t + 1])
        below = np.array([s[rows] @ (y[rows] < k) for k in y[rows]]) / s[rows].sum()
        upto = np.array([s[rows] @ (y[rows] <= k) for k in y[rows]]) / s[rows].sum()
        np.testing.assert_allclose(loss.null.residual[rows], np.sqrt(s[rows]) * (below + upto - 1.0), atol=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_gap_is_that_of_the_conjugate(rng, case):
    """Terms, and their bound with rounding, against forty digits: never below, and not far above."""
    loss, design, y, known = loss_of(rng, **CASES[case])
    for size, c in ((0.5, 1.0), (1.0, 0.999999), (2.0, 0.9), (1.0, 0.4), (3.0, 0.0)):
        z = scores_of(rng, design, size)
        at = loss.settled(loss.evaluate(z))
        raw, thresholds = raw_of(design, z, None, at.nuisance), loss.thresholds(at.nuisance)
        point: Margins = at.margin
        u = weights_of(design) * wide(c) * (wide(point.under) - wide(point.over))
        there = raw if known is None else raw + known
        value = likelihood(design, y, there, thresholds)
        exact = value + conjugate(loss, c * point.over, c * point.under) + u @ wide(there)
        exact = float(exact)
        bound = loss.young(loss.at_thresholds(raw, thresholds), np.zeros(design.n_tasks), at, c)
        assert bound >= exact
        assert bound <= exact * (1.0 + 1e-9) + 2e-11 * loss.null.value
        assert loss.terms(at, c) == pytest.approx(exact, abs=1e-12 * loss.null.value)


@pytest.mark.parametrize("free", [0, 2])
def test_weak_duality_at_any_thresholds(rng, free):
    """Dual points of thresholds that are far from the best: no value of the loss lies below what they prove."""
    negative = 0
    for _ in range(20):
        loss, design, _, _ = loss_of(rng, classes=5, free=free)
        z = scores_of(rng, design, rng.choice([0.3, 1.0, 4.0]))
        at = loss.evaluate(z)
        moved = at.nuisance[design.n_nuisance :] + rng.choice([0.01, 0.3, 1.0]) * rng.standard_normal((4, 3))
        raw = raw_of(design, z, None, at.nuisance)
        point = Margins.at(loss._classes, raw, *loss._classes.bounds(np.sort(moved, axis=0).T))
        negative += bool(np.any(loss._forces(point.over, point.under)[0] < 0.0))
        value = float(loss._newton.value_of(point).sum())
        point = loss._with_positive_forces(point)
        there = Evaluation(value, loss._root * (point.under - point.over), at.nuisance, at.curvature, point)
        settled, c = loss.settled(there), rng.uniform(0.2, 1.0)
        dual = value + c * settled.residual @ z - loss.young(there, np.zeros(3), settled, c)
        for size in (0.01, 1.0, 5.0):
            other = z + scores_of(rng, design, size)
            best = loss.evaluate(other)
            leak = np.linalg.norm(other) * np.linalg.norm(settled.leak)
            assert best.value >= dual - c * settled.residual @ other - leak - 1e-12 * loss.null.value
        assert np.all(settled.margin.force >= 0.0)
        assert np.all(settled.margin.force - settled.margin.slack >= 0.0)
    assert negative > 3


def test_negative_forces_are_mixed_with_a_point_that_has_none(rng):
    """As little of it as makes them positive, not a force set to 0: then the point would not be in the domain."""
    loss, design, _, _ = loss_of(rng, classes=4)
    point = loss.evaluate(scores_of(rng, design, 1.0)).margin
    bad = replace(point, under=np.minimum(1.0, 1.5 * point.under))
    assert np.any(loss._forces(bad.over, bad.under)[0] < 0.0)
    mended = loss._with_positive_forces(bad)
    force, slack = loss._forces(mended.over, mended.under)
    middle = loss._classes.middle
    assert np.all(force[middle] > slack[middle])
    np.testing.assert_array_equal(force, mended.force)


def test_metric_bounds_both_halves(rng):
    """Sum (r - u*)^2/(2k) <= P(W) - P*, with the optimum of a small problem solved well."""
    for seed in range(6):
        own = np.random.default_rng(seed)
        _, design, y, _ = loss_of(own, classes=4, free=seed % 2)
        problem = Problem(design, y, loss="ordinal")
        lam = 0.3 * problem.lambda_max()
        points = [solve_path(problem, [lam], tol=tol).points[0] for tol in (1e-13, 0.1)]
        images = []
        for point in points:
            kept = problem.penalty.penalised[point.features]
            z = np.zeros(design.n_samples)
            for j, row in zip(point.features[kept], point.rows[kept], strict=True):
                column = design.project(design.samples.weighted(design.x[:, j]))
                z += column * design.per_sample(row)
            images.append(z)
        best, rough = (problem.loss.evaluate(z) for z in images)
        k = problem.loss.metric(rough, 1.0, 0.0)
        apart = np.divide(np.square(rough.residual - best.residual), 2.0 * k, out=np.zeros_like(k), where=k > 0)
        assert apart.sum() <= points[1].objective - points[0].objective + 1e-9
        assert np.all(np.isin(k, [0.0, 0.25, 0.5]))
        assert np.all(rough.residual[k == 0.0] == 0.0)


def test_one_class_leaves_the_loss(rng):
    offsets = np.array([0, 8, 16])
    y = np.concatenate([rng.permutation(np.arange(8) % 3), np.full(8, 1)]).astype(float)
    x = rng.standard_normal((16, 3))
    loss = Ordinal().on(Design(as_storage(x), offsets), y)
    alone = Ordinal().on(Design(as_storage(x[:8]), offsets[:2]), y[:8])
    assert loss.null.value == pytest.approx(alone.null.value, rel=1e-14)
    assert not loss.null.residual[8:].any()
    assert loss.thresholds(loss.null.nuisance)[:, 1].tolist() == [-np.inf, np.inf]


def test_separated_scores_and_far_starts(rng):
    """Nothing overflows where every row is beyond doubt, and zero is the dual point then."""
    loss, design, y, _ = loss_of(rng, classes=3, weighted=False)
    z = design.project(1e4 * (y - 1.0))
    at = loss.settled(loss.evaluate(z))
    assert 0.0 <= at.value < 1e-10
    assert np.isfinite(at.residual).all()
    assert loss.young(at, np.zeros(3), at, 1.0) < 1e-9
    assert np.isfinite(loss.evaluate(-z).value)


def test_labels_and_intercepts_that_make_no_sense(rng):
    design = Design(as_storage(rng.standard_normal((6, 2))), np.array([0, 6]))
    with pytest.raises(ValueError, match="codes 0, 1"):
        Ordinal().on(design, np.array([0.0, 1.0, 0.5, 1.0, 2.0, 0.0]))
    design = Design(as_storage(rng.standard_normal((6, 2))), np.array([0, 6]), fit_intercept=False)
    with pytest.raises(ValueError, match="fit_intercept"):
        Ordinal().on(design, np.zeros(6))


def test_deviance_of_classes_that_a_fit_has_not_seen():
    z = np.array([[-np.inf, 0.3, 0.3]])
    shares = [0.0, 1 / (1 + np.exp(-0.3)), 0.0, 1 / (1 + np.exp(0.3))]
    assert Ordinal().class_probabilities(z)[0] == pytest.approx(shares)
    assert Ordinal().deviance(np.array([0]), z)[0] == pytest.approx(2 * 52 * np.log(2))
    assert Ordinal().deviance(np.array([3]), z)[0] == pytest.approx(2 * np.log1p(np.exp(0.3)))


def test_probabilities_in_the_tails():
    lower, upper = np.array([30.0, -800.0, 40.0, -1e-9]), np.array([31.0, -799.0, np.inf, 1e-9])
    found = interval_probabilities(lower, upper)
    exact = [float(1 / (1 + np.exp(wide(-b))) - 1 / (1 + np.exp(wide(-a)))) if np.isfinite(b) else
             float(1 / (1 + np.exp(wide(a)))) for a, b in zip(lower, upper, strict=True)]  # fmt: skip
    np.testing.assert_allclose(found, exact, rtol=1e-7)


# --- mutants: what the checks above must see -------------------------------------------------------------------------


def gap_violations(rng, loss, design, tries=40):
    """How often a dual point proves more than the loss is."""
    found = 0
    for _ in range(tries):
        z, c = scores_of(rng, design, rng.choice([0.5, 2.0])), rng.uniform(0.2, 0.9)
        at = loss.settled(loss.evaluate(z))
        dual = at.value + c * at.residual @ z - loss.terms(at, c)
        for size in (0.3, 1.0):
            other = z + scores_of(rng, design, size)
            found += loss.evaluate(other, at.nuisance).value < dual - c * at.residual @ other - 1e-9
        # the smallest value of the loss less its tangent: where the scaled residual is the gradient
        best, here = z.copy(), at
        for _ in range(40):
            here = loss.evaluate(best, here.nuisance)
            best = best + (here.residual - c * at.residual) / 0.25
        found += here.value < dual - c * at.residual @ best - 1e-9
    return found


def test_mutant_without_the_threshold_term_is_seen(rng):
    loss, design, _, _ = loss_of(rng, classes=4)
    assert gap_violations(rng, loss, design, 3) == 0
    whole = loss.terms
    loss.terms = lambda at, c: whole(at, c) - (1.0 - c) * float(np.sum(at.margin.force))
    assert gap_violations(rng, loss, design, 3) > 0


def test_mutant_with_a_smaller_metric_is_seen():
    """The dual optimum of a small problem is in the ellipsoid, and not in one of 0.3 times the metric."""
    outside = {1.0: 0, 0.3: 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        loss, design, _, _ = loss_of(rng, classes=4)
        z = scores_of(rng, design, 1.0)
        other = z + scores_of(rng, design, rng.choice([0.5, 2.0]))
        here, there = loss.evaluate(z), loss.evaluate(other)
        # Bregman's distance: what both halves of the gap are made of
        distance = here.value - there.value + there.residual @ (z - other)
        k = loss.metric(here, 1.0, 0.0)
        apart = np.divide(np.square(here.residual - there.residual), 2.0 * k, out=np.zeros_like(k), where=k > 0).sum()
        for factor in outside:
            outside[factor] += apart / factor > distance + 1e-9
    assert outside[1.0] == 0
    assert outside[0.3] > 0


def test_newton_needs_few_steps(rng):
    """A warm start is found again at once."""
    loss, design, _, _ = loss_of(rng, classes=5)
    z = scores_of(rng, design, 2.0)
    at = loss.evaluate(z)
    seen, whole = [], ThresholdNewton._derivatives
    newton = loss._newton
    newton._derivatives = lambda margins: seen.append(1) or whole(newton, margins)
    again = loss.evaluate(z, at.nuisance)
    assert len(seen) <= 2
    assert again.value == pytest.approx(at.value, rel=1e-14)
    seen.clear()
    loss.evaluate(z)
    assert len(seen) <= 12


def test_cost_of_a_width():
    np.testing.assert_allclose(width_cost(np.array([np.inf, 0.0, np.log(2.0)])), [0.0, np.inf, np.log(2.0)])
