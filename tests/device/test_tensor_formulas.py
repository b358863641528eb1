"""Formulas in tensors are those of the losses in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts

torch = pytest.importorskip("torch")

LOSSES = {
    "logistic": ts.losses.Logistic(),
    "poisson": ts.losses.Poisson(),
    "huber": ts.losses.Huber(),
    "quantile": ts.losses.Quantile(),
    "squared hinge": ts.losses.SquaredHinge(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_formulas(name: str) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(0)
    z = np.concatenate([3.0 * rng.standard_normal(200), [-40.0, 40.0]])
    y = {"signs": np.sign(rng.standard_normal(202)), "counts": rng.poisson(2.0, 202)}.get(
        loss.labels, 3.0 * rng.standard_normal(202)
    )
    y = np.asarray(y, dtype=float)
    low, high = (np.broadcast_to(end, y.shape).copy() for end in loss.domain(y))
    formula: Any = loss.tensor_formula
    mu = 1.0 / loss.smoothness if np.isfinite(loss.smoothness) else 1.0
    given = [torch.from_numpy(part) for part in (y, z, low, high)]
    value = formula.value(*given, torch.tensor(mu, dtype=torch.float64)).numpy()
    slope, second = (part.numpy() for part in formula.slopes(*given, torch.tensor(mu, dtype=torch.float64)))
    constant = loss.value(y, z) - value  # values may leave out what does not depend on z
    np.testing.assert_allclose(constant, loss.constant(y) * -1.0 if name == "poisson" else 0.0, atol=1e-6, rtol=1e-9)
    np.testing.assert_allclose(slope, loss.slope(y, z), rtol=1e-12, atol=1e-13)
    step = 1e-5
    inside = np.abs(np.abs(z) - 40.0) > 1.0
    bent = (loss.slope(y, z - step) - loss.slope(y, z + step)) / (2.0 * step)
    kinks = np.abs((y - z) / mu - low) < 1e-4, np.abs((y - z) / mu - high) < 1e-4
    inside &= ~(kinks[0] | kinks[1])
    np.testing.assert_allclose(second[inside], bent[inside], rtol=1e-5, atol=1e-6)


def test_a_loss_that_changes_another_has_no_formula_until_it_gives_one() -> None:
    class Steeper(ts.losses.Logistic):
        def value(self, y: Any, z: Any) -> Any:
            return 2.0 * super().value(y, z)

    class Named(ts.losses.Logistic):
        label = "another name"

    assert Steeper().tensor_formula is None
    assert Named().tensor_formula is ts.losses.Logistic().tensor_formula is not None
