"""Where nothing can be proved the error says what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve import verify


def small(**params: Any) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    y = X[:, 0] + rng.standard_normal(20)
    return ts.MultiTaskLasso(alpha=0.1, **params).fit(X, y), X, y


def test_a_loss_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = small()
    values = verify.Clipped.values

    def infinite(self: Any, z: Any, k: int) -> Any:
        return values(self, z, k) + verify.Box(np.array([np.inf]))

    monkeypatch.setattr(verify.Clipped, "values", infinite)
    with pytest.raises(ValueError, match="there is no certificate: the loss of task 0 at these coefficients"):
        model.certificate(X, y)


def test_what_cannot_be_decided_is_no_exception_of_the_verifier(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = small()

    def undecided(self: Any, z: Any, k: int) -> Any:
        raise verify.Undecided("sums that may be 0")

    monkeypatch.setattr(verify.Clipped, "values", undecided)
    with pytest.raises(ValueError, match=r"^there is no certificate: sums that may be 0\.$"):
        model.certificate(X, y)


@pytest.mark.filterwarnings("ignore")
def test_without_a_dual_value_zero_still_proves_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = small()
    gains = verify.Clipped.gains

    def nothing_but_zero(self: Any, natural: Any, v: Any, c: Any) -> Any:
        found = gains(self, natural, v, c)
        return found if not v.hi.any() else found - verify.Box(np.array([np.inf]))

    monkeypatch.setattr(verify.Clipped, "gains", nothing_but_zero)
    with pytest.warns(UserWarning, match="proves a gap of"):
        certificate = model.certificate(X, y)
    assert certificate.verify(X, y).proved
    assert certificate.gaps[0] >= 0.9 * certificate.objectives[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("weights", [False, True])
def test_ordered_classes_far_apart(seed: int, weights: bool) -> None:
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((12, 2)) for _ in range(2)]
    y = [np.digitize(x[:, 0] + rng.standard_normal(12), [-0.5, 0.5]) for x in X]
    given: dict[str, Any] = {"offset": [rng.choice([-700.0, 700.0], 12) for _ in X]}
    if weights:
        given["sample_weight"] = [10.0 ** rng.uniform(-8, 8, 12) for _ in X]
    model = ts.MultiTaskOrdinal(alpha=0.01).fit(X, y, **given)
    certificate = model.certificate(X, y, **given)
    assert certificate.verify(X, y, **given).proved
    assert certificate.gaps[0] <= 2.0 * model.dual_gap_ + 1e-9 * certificate.objectives[0]
