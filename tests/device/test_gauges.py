"""Gauges and bounds on a device are the penalties' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES

import tasksieve as ts
from tasksieve.design import Region
from tasksieve.design.anchored import Anchored, AnchorStore

PENALTIES = {
    "L21": ts.penalties.L21(),
    "L11": ts.penalties.L11(),
    "sparse group": ts.penalties.SparseGroup(0.4, 1.0),
    "LInf": ts.penalties.LInf(),
    "groups": ts.penalties.Groups(np.repeat(np.arange(20), 3)),
}


def bound_to(name: str, positive: bool, d: int, tasks: int) -> Any:
    weights = np.random.default_rng(1).uniform(0.5, 2.0, d)
    weights[5:7] = 0.0
    if name == "groups":
        weights = np.repeat(weights[::3], 3)
    return PENALTIES[name].on(weights, tasks, positive=positive).at(0.7)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("name", ["L21", "L11", "sparse group"])
def test_gauges(name: str, positive: bool, device: str) -> None:
    import torch

    from tasksieve.design.device.gauges import Thresholds

    penalty = bound_to(name, positive, 60, 4)
    products = np.random.default_rng(2).standard_normal((60, 4)) * np.geomspace(1e-3, 1e3, 60)[:, None]
    products[11] = 0.0
    limits = Thresholds(penalty, torch.device(device))
    found = limits.gauges(limits.sizes(torch.from_numpy(products).to(device))).cpu().numpy()
    np.testing.assert_allclose(found, penalty.row_gauges(products), rtol=1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("radius", [0.0, 0.3])
@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("name", PENALTIES)
def test_bounds_are_those_of_the_shelf_here(name: str, width: int, stretched: bool, radius: float, device: str) -> None:
    """As the kernels have them, but that a ball's bound may be sharper where the kernels need not know."""
    import torch

    from tasksieve.design.device.anchor_store import DeviceAnchorStore

    rng = np.random.default_rng(3)
    norms = rng.uniform(0.1, 2.0, (60, width))
    here, there = AnchorStore(norms, 4, 1), DeviceAnchorStore(torch.from_numpy(norms).to(device), 4)
    for _ in range(3):
        products = rng.standard_normal((60, 4))
        here.store(products)
        there.store(torch.from_numpy(products).to(device))
    here.drop(1)
    there.drop(1)
    vector = Anchored(rng.standard_normal((2, 4)), rng.uniform(0.0, 0.1, 4), 0.15)
    stretch = rng.uniform(0.5, 1.5, 4) if stretched else None
    penalty = bound_to(name, False, 60, 4)
    wanted = here.bound(vector, penalty, Region(radius, stretch))
    found = there.bound(vector, penalty, Region(radius, stretch))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)
    assert np.all(found[1] <= wanted[1] * (1.0 + 1e-6))
    decided = wanted[1] >= 1.0 if radius and name == "L21" else np.ones(60, dtype=bool)
    sharp = found[1][~decided]
    assert np.all(sharp <= 1.0 + 1e-6)
    if not radius or name != "L21":
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)
    # no bound is below what some vector of the ball attains
    if radius and width == 4 and name == "L21":
        centre = sum(c * p for c, p in zip(vector.coef, _kept(rng, here), strict=True))
        steps = rng.standard_normal((200, 4))
        steps *= radius / np.linalg.norm(steps, axis=1)[:, None] * (1.0 if stretch is None else stretch)
        for step in steps:
            assert np.all(penalty.row_gauges(centre + norms * step) <= found[1] * (1.0 + 1e-6))


def _kept(rng: Any, anchor_store: AnchorStore) -> list[np.ndarray]:
    """The anchors as they are stored."""
    units = anchor_store._units[:, 0]
    return [own.astype(float) * unit for own, unit in zip(anchor_store._products, units, strict=True)]
