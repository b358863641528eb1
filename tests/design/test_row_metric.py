"""Norms under a row metric against plain NumPy, for every storage and option, and the bounds that use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import HAVE_TORCH
from helpers import Case, every_storage, random_case, random_weights

import tasksieve as ts
from tasksieve.design import Cover, Design, Region, as_storage
from tasksieve.design.anchored import Anchored, AnchorStore
from tasksieve.path.row_metric import MeasuredMetric

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"fit_intercept": False},
    "intercept": {},
    "intercept, weights": {"weighted": True},
    "unpenalised": {"unpenalised": np.array([2, 7])},
    "unpenalised alone": {"fit_intercept": False, "unpenalised": np.array([5]), "weighted": True},
    "standardize": {"standardize": True},
    "everything": {"standardize": True, "unpenalised": np.array([0, 3]), "weighted": True},
}


def build(rng: np.random.Generator, shared: bool, weighted: bool = False, **options: Any) -> Case:
    case = random_case(rng, tasks=3, rows=9, features=11, shared=shared, kind="integers", **options)
    case.matrix[:, 4] = 0.0  # an empty column
    case.matrix[:, 6] = 3.0  # a constant one
    return case.but(weights=random_weights(rng, case)) if weighted else case


def some_metric(rng: np.random.Generator, case: Case) -> np.ndarray:
    metric = rng.lognormal(sigma=1.5, size=int(case.offsets[-1]))
    metric[rng.random(len(metric)) < 0.15] = 0.0
    return metric


def plain_norms(case: Case, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m, c and the norms of raw columns under the ordinary weights, all (features, tasks)."""
    found = np.zeros((3, case.n_features, case.n_tasks))
    scales = case.scales()
    for t, (rows, x) in enumerate(zip(case.rows, case.blocks, strict=True)):
        k, s = metric[rows], case.s[rows]
        z = [np.ones(len(x))] if case.fit_intercept else []
        z = np.array([*z, *x[:, case.unpenalised].T]).reshape(-1, len(x)).T
        if z.shape[1]:
            root = np.sqrt(k * s)[:, None]
            b = np.linalg.lstsq(root * z, root * x, rcond=1e-10)[0]
            rest = x - z @ b
        else:
            rest = x
        for row, of in ((0, (k * s) @ np.square(rest)), (1, s @ np.square(rest)), (2, s @ np.square(x))):
            found[row, :, t] = np.sqrt(of) / scales[:, t]
    return found[0], found[1], found[2]


def measured(design: Design, metric: np.ndarray) -> Design:
    """Measured beside the first products, or beside later ones: the same."""
    design.shard.also_measure(metric)
    passes = design.passes
    design.correlate(np.ones(design.n_samples))
    assert design.passes >= passes + 1.0
    return design


def check(case: Case, design: Design, metric: np.ndarray, later: bool = False) -> None:
    if later:
        design.correlate(np.ones(design.n_samples))
    measured(design, metric)
    least, shifted, whole = plain_norms(case, metric)
    ordinary = design.norms()
    penalised = np.setdiff1d(np.arange(case.n_features), case.unpenalised)
    for alpha, beta in ((0.0, 1.0), (0.3, 0.0), (0.7, 1.3)):
        cover = Cover(np.full(case.n_tasks, alpha), np.full(case.n_tasks, beta))
        found = np.asarray(design.shard.metric_norms(cover))
        assert found.shape == (case.n_features, case.n_tasks)
        expected = np.sqrt(alpha * shifted**2 + beta * least**2)
        # columns of which rounding, or a few heavy rows, leave nothing have a bound by the ordinary norm instead
        good = (shifted <= 50.0 * ordinary) & (expected > 1e-5 * whole)
        assert good[penalised].mean() > 0.6
        np.testing.assert_allclose(found[good], expected[good], rtol=2e-6)
        assert np.all(found[penalised] >= expected[penalised] * (1.0 - 1e-9) - 1e-7 * whole[penalised])
        top = np.sqrt(alpha + beta * np.maximum.reduceat(metric, case.offsets[:-1]))
        assert np.all(found <= np.maximum(100.0 * ordinary * top, 1e-6) * (1.0 + 1e-6) + 1e-13 * whole.max())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_norms_of_every_option(options: str, shared: bool) -> None:
    rng = np.random.default_rng(5)
    case = build(rng, shared, **OPTIONS[options])
    metric = some_metric(rng, case)
    check(case, case.design(), metric)
    check(case, case.design(), metric, later=True)


@pytest.mark.parametrize("shared", [False, True])
def test_norms_of_every_storage(shared: bool, tmp_path: Any) -> None:
    rng = np.random.default_rng(6)
    case = build(rng, shared, weighted=True)
    metric = some_metric(rng, case)
    for name, storage in every_storage(case, tmp_path, rng).items():
        try:
            check(case, case.design(storage), metric)
        except AssertionError as error:  # pragma: no cover
            raise AssertionError(name) from error


@pytest.mark.skipif(not HAVE_TORCH, reason="needs torch")
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("options", ["intercept, weights", "everything", "plain"])
def test_norms_on_a_device(options: str, shared: bool) -> None:
    from tasksieve.design.device.storage import DeviceStorage

    rng = np.random.default_rng(7)
    case = build(rng, shared, **OPTIONS[options])
    metric = some_metric(rng, case)
    storage = as_storage(ts.on_device(case.matrix, "cpu"))
    assert isinstance(storage, DeviceStorage)
    check(case, case.design(storage), metric, later=True)


def test_a_later_measurement_takes_the_place_of_the_first() -> None:
    rng = np.random.default_rng(8)
    case = build(rng, False)
    design = case.design()
    for _ in range(3):
        check(case, design, some_metric(rng, case))


def test_rows_without_a_metric_leave_the_norms() -> None:
    rng = np.random.default_rng(9)
    case = build(rng, False)
    metric = np.ones(int(case.offsets[-1]))
    metric[case.rows[0].start] = 0.0
    before = np.asarray(measured(case.design(), metric).shard.metric_norms(Cover(np.zeros(3), np.ones(3))))
    case.matrix[case.rows[0].start] = 1e3
    after = np.asarray(measured(case.design(), metric).shard.metric_norms(Cover(np.zeros(3), np.ones(3))))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_covers_hold_in_every_row_and_are_nearly_the_best(weighted: bool) -> None:
    rng = np.random.default_rng(10)
    for seed in range(16):
        case = random_case(rng, tasks=3, rows=30, features=4, shared=False)
        if weighted:
            case = case.but(weights=random_weights(rng, case))
        design = case.design()
        known = MeasuredMetric(design)
        base = rng.lognormal(sigma=1.0, size=design.n_samples)
        base[rng.random(len(base)) < 0.1] = 0.0
        known.before_reading(base)
        metric = base * rng.uniform(0.5, 2.0, len(base)) + rng.choice([0.0, 0.01, 1.0])
        if seed % 4 == 0:
            metric = base.copy()
        found = known.cover(metric)
        if found is None:
            assert seed % 4
            continue
        alpha, beta = found
        live = design.weights > 0.0 if weighted else np.ones(design.n_samples, dtype=bool)
        right = design.per_sample(alpha) + design.per_sample(beta) * base
        assert np.all(metric[live] <= right[live])
        s = np.where(live, case.s, 0.0)
        mean = design.task_sums(s * base) / design.task_sums(s)
        for t, rows in enumerate(case.rows):  # no other cover of a fine grid is much better
            k, m = np.where(live, metric, 0.0)[rows], base[rows]
            grid = np.linspace(0.0, 60.0, 2001)
            best = np.min(np.maximum(np.max(k - grid[:, None] * m, axis=1), 0.0) + grid * mean[t])
            assert alpha[t] + beta[t] * mean[t] <= 1.08 * best + 1e-12


def ratio(penalty: Any, row: np.ndarray) -> float:
    """How close a row comes to its threshold, as bounds say it: by its gauge, or with single entries by what these
    leave."""
    thresholds = penalty.thresholds()
    if thresholds is None or thresholds[1] is None or thresholds[0][0] == 0.0:
        return float(penalty.row_gauges(row[None, :])[0])
    return float(np.linalg.norm(np.maximum(np.abs(row) - thresholds[1][0], 0.0)) / thresholds[0][0])


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(
    "penalty", [ts.penalties.L21(), ts.penalties.L11(), ts.penalties.SparseGroup(0.4, 1.0), ts.penalties.LInf()]
)
def test_bounds_hold_over_the_ball_and_the_remainder(penalty: Any, width: int) -> None:
    """Whatever vector of the ball, and whatever remainder: no gauge is above its bound, here or on a device."""
    rng = np.random.default_rng(11)
    count, tasks, rows, radius = 40, 4, 12, 0.8
    x = rng.standard_normal((count, 1 if width == 1 else tasks, rows)).repeat(tasks if width == 1 else 1, axis=1)
    metric = rng.lognormal(size=(tasks, rows))
    bound_penalty = penalty.on(rng.uniform(2.0, 9.0, count), tasks).at(1.3)
    norms = np.ascontiguousarray(np.sqrt(np.square(x).sum(axis=2))[:, :width])
    under = np.einsum("jti,ti->jt", np.square(x), metric)
    beta, alpha = rng.uniform(1.0, 1.3, tasks), rng.uniform(0.0, 0.2, tasks)
    anchor = rng.standard_normal((tasks, rows))
    store = AnchorStore(norms, tasks, 1)
    store.store(np.einsum("jti,ti->jt", x, anchor))
    squares = np.square(x).sum(axis=2)
    store.keep_metric(under.copy(), squares.copy())
    stretch = np.sqrt(metric.max(axis=1) * 1.5)
    slack = rng.uniform(0.01, 0.1, tasks)
    centre = Anchored(np.ones((1, tasks)), slack, float(np.linalg.norm(slack)))
    wide = store.bound(centre, bound_penalty, Region(radius, stretch))[1].copy()
    upper = store.bound(centre, bound_penalty, Region(radius, stretch, Cover(alpha, beta)))[1].copy()
    assert upper.mean() < wide.mean()
    if HAVE_TORCH:
        import torch

        from tasksieve.design.device.anchor_store import DeviceAnchorStore

        there = DeviceAnchorStore(torch.from_numpy(norms), tasks)
        there.store(torch.from_numpy(np.einsum("jti,ti->jt", x, anchor)))
        there.keep_metric(torch.from_numpy(under), torch.from_numpy(squares))
        found = there.bound(centre, bound_penalty, Region(radius, stretch, Cover(alpha, beta)))[1]
        assert np.all(found <= upper * (1.0 + 1e-5))
        upper = np.minimum(upper, found)
    covered = metric * beta[:, None] + alpha[:, None]
    for j in range(count):
        for _ in range(20):
            share = np.abs(rng.standard_normal(tasks))
            if rng.random() < 0.5:
                share *= np.eye(tasks)[rng.integers(tasks)]
            share /= np.linalg.norm(share)
            sign = np.sign(np.einsum("ti,ti->t", x[j], anchor))
            way = covered * x[j]  # the worst direction of each task under the metric that is covered
            size = np.sqrt(np.einsum("ti,ti->t", way * way, 1.0 / covered))
            e = radius * (share * sign / size)[:, None] * way
            off = slack / np.sqrt(tasks if width == 1 else 1) * sign
            off = off[:, None] * x[j] / np.linalg.norm(x[j], axis=1)[:, None]
            row = np.einsum("ti,ti->t", x[j], anchor + e + off)
            assert ratio(bound_penalty.restrict(np.array([j])), row) <= upper[j] * (1.0 + 1e-9)
