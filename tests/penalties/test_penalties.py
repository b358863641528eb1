"""Penalties: value, dual gauge and prox against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import gauge_rows, row_penalty

from tasksieve.penalties import L11, L21, RowPenalty, SparseGroup, row_norms

KINDS = {
    "group": {"group": 1.0, "l1": 0.0},
    "group and ridge": {"group": 0.7, "l1": 0.0, "ridge": 0.9},
    "l1": {"group": 0.0, "l1": 0.6},
    "sparse group": {"group": 0.5, "l1": 0.3},
    "sparse group and ridge": {"group": 0.5, "l1": 0.3, "ridge": 1.3},
}


def penalty(rng, count, group, l1, ridge=0.0, positive=False):
    spread = rng.uniform(0.5, 2.0, count)
    spread[-1] = 0.0  # an unpenalised row
    return row_penalty(group * spread, l1 * spread, ridge, positive)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_value(rng, kind):
    w = rng.standard_normal((8, 3))
    p = penalty(rng, 8, **kind)
    norm = sum(p.group[j] * np.linalg.norm(w[j]) + p.l1[j] * np.abs(w[j]).sum() for j in range(8))
    assert p.value(w) == pytest.approx(norm)
    assert p.total(w) == pytest.approx(norm + 0.5 * p.ridge * np.sum(w * w))
    assert p.total(np.zeros((8, 3))) == 0.0
    some = np.array([5, 2])
    assert p.restrict(some).total(w[some]) == pytest.approx(
        sum(p.group[j] * np.linalg.norm(w[j]) + p.l1[j] * np.abs(w[j]).sum() for j in some)
        + 0.5 * p.ridge * np.sum(w[some] ** 2)
    )
    np.testing.assert_allclose(row_norms(w), np.linalg.norm(w, axis=1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("tasks", [1, 4])
def test_gauges_are_the_dual_norms(rng, tasks, kind, positive):
    """gauge(M) = max <M, W>/norm(W): no W exceeds it, and it is where the dual ball ends."""
    p = penalty(rng, 12, **kind, positive=positive)
    m = 3.0 * rng.standard_normal((12, tasks))
    m[0] = 0.0
    m[1] = -np.abs(m[1])
    gauges = p.row_gauges(m)
    assert gauges[0] == 0.0
    assert gauges[-1] == 0.0  # unpenalised
    if positive:
        assert gauges[1] == 0.0
    np.testing.assert_allclose(gauges, gauge_rows(m, p.group, p.l1, positive), rtol=1e-9, atol=1e-12)
    for _ in range(200):
        w = rng.standard_normal((12, tasks)) * (rng.random((12, tasks)) < 0.7)
        w = np.abs(w) if positive else w
        size = p.group * np.linalg.norm(w, axis=1) + p.l1 * np.abs(w).sum(axis=1)
        assert np.all(np.sum(m * w, axis=1)[:-1] <= gauges[:-1] * size[:-1] * (1 + 1e-12) + 1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_prox(rng, step, kind, positive):
    """No neighbour of the prox has a smaller value of what it minimises, and rows below the threshold are zero."""
    p = penalty(rng, 20, **kind, positive=positive)
    point = 2.0 * rng.standard_normal((20, 4))
    point[0] = 0.0
    near = p.proximal(point, step)
    assert not near[0].any()
    assert not (positive and (near < 0).any())
    plain = np.maximum(point[-1], 0.0) if positive else point[-1]
    np.testing.assert_allclose(
        near[-1], plain / (1.0 + step * p.ridge)
    )  # only the ridge acts on the last row

    def value(v):
        return 0.5 * np.sum((v - point) ** 2) + step * p.total(v)

    best = value(near)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(60):
            other = near + size * rng.standard_normal(near.shape) * (rng.random(near.shape) < 0.3)
            other = np.maximum(other, 0.0) if positive else other
            assert value(other) >= best - 1e-12 * best
    # where the gauge of the point stays below the step, the row vanishes
    inside = p.row_gauges(point) < step * (1 - 1e-12)
    penalised = p.group + p.l1 > 0
    assert not near[inside & penalised].any()
    assert np.all(near[~inside & penalised].any(axis=1))


def test_strengths_multiply_every_part(rng):
    weights = rng.uniform(0.5, 2.0, 6)
    for shape, group, l1, positive in (
        (L21(), 1.0, 0.0, False),
        (L11(), 0.0, 1.0, False),
        (SparseGroup(0.3, 0.8), 0.8, 0.3, True),
        (SparseGroup(np.full(6, 0.3)), 1.0, 0.3, False),
    ):
        at = shape.on(weights, 3, positive=positive, ridge_ratio=0.4, fixed_ridge=0.5).at(2.5)
        np.testing.assert_allclose(at.group, 2.5 * group * weights)
        np.testing.assert_allclose(at.l1, 2.5 * l1 * weights)
        assert at.ridge == pytest.approx(1.5)
        assert at.has_entries == (l1 > 0)
        assert at.positive == positive
        half = at.times(0.5)
        np.testing.assert_allclose(half.group, 0.5 * at.group)
        assert half.ridge == at.ridge


def test_of_one_task_both_norms_are_the_same(rng):
    weights = rng.uniform(0.5, 2.0, 6)
    one = SparseGroup(0.3, 0.8).on(weights, 1)
    w = rng.standard_normal((6, 1))
    assert one.value(w) == pytest.approx(1.1 * weights @ np.abs(w).ravel())
    assert not one.has_entries


@pytest.mark.parametrize("missing", ["value", "gauges", "prox", "reach"])
def test_a_penalty_that_does_not_say_enough_is_refused(missing):
    """Without a gauge's reach there is no bound on features never looked at: nothing may be certified."""
    methods = {name: lambda self, *_: 0.0 for name in ("value", "gauges", "prox", "reach") if name != missing}
    with pytest.raises(ValueError, match=f"does not define `{missing}`"):
        type("Mine", (RowPenalty,), methods)().on(np.ones(3), 2)
