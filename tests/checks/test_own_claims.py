"""Members of one's own: what is said of their gaps, what the batteries say first, and what `fit` refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.losses import RowLoss
from tasksieve.penalties import L21, RowPenalty

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 8))
y = X[:, 0] - X[:, 1] + RNG.standard_normal(60)
IF_LOSS = r"true bound .* the optimum if the loss is convex and its conjugate right \(ts\.checks\); raise"


class StudentT(RowLoss):
    """Minus the log-density of Student's t with 3 degrees of freedom: not convex beyond |y - z| = sqrt(3)."""

    smoothness = 4.0 / 3.0

    def value(self, y: Any, z: Any) -> Any:
        return 2.0 * np.log1p(np.square(y - z) / 3.0)

    def slope(self, y: Any, z: Any) -> Any:
        return 4.0 * (y - z) / (3.0 + np.square(y - z))

    def conjugate(self, y: Any, p: Any) -> Any:
        return 0.5 * p * p / self.smoothness - p * y

    def domain(self, y: Any) -> Any:
        return np.full(np.shape(y), -np.inf), np.full(np.shape(y), np.inf)


class OwnSquared(ts.losses.Squared):
    """The squared loss by another hand."""


def _said(model: Any) -> str:
    with pytest.warns(ConvergenceWarning) as said:
        model.fit(X, y)
    return "\n".join(str(one.message) for one in said)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_gap_of_a_loss_that_nobody_checked_says_what_it_rests_on() -> None:
    import re

    assert re.search(IF_LOSS, _said(ts.MultiTaskRegressor(StudentT(), alpha=0.01, max_iter=1, tol=1e-12)))
    assert " if " not in _said(ts.MultiTaskRegressor("huber", alpha=0.01, max_iter=1, tol=1e-12)).partition("raise")[0]


def test_a_class_that_has_passed_is_believed() -> None:
    class Own(ts.losses.Huber):
        pass

    model = ts.MultiTaskRegressor(Own(), alpha=0.01, max_iter=1, tol=1e-12)
    assert "if the loss is convex" in _said(model)
    ts.checks.check_loss(Own, draws=2)
    assert "if the loss is convex" not in _said(model)


def test_a_loss_that_is_not_convex_is_said_to_be_that_first() -> None:
    """At the worst place, and there it is: the second derivative is negative beyond sqrt(3), most so at 3 = |y - z|."""
    with pytest.raises(AssertionError, match=r"^L1: value is not convex at z = (-?[\d.]+)") as said:
        ts.checks.check_loss(StudentT)
    words = str(said.value)
    z, label = float(words.split("z = ")[1].split(":")[0]), float(words.split("y = ")[1].split(";")[0])
    assert abs(label - z) > np.sqrt(3.0)


class Increasing(RowPenalty):
    """An L2,1 norm that charges falls between neighbouring tasks twice: it sees signs."""

    label, formula = "rows", "α Σ_j"

    def _norms(self, rows: Any) -> Any:
        return np.linalg.norm(rows, axis=1) + np.maximum(rows[:, :-1] - rows[:, 1:], 0.0).sum(axis=1)

    def value(self, rows: Any) -> float:
        return float(self.weights @ self._norms(rows))

    def gauges(self, products: Any) -> Any:
        return np.linalg.norm(products, axis=1) / self.weights

    def prox(self, rows: Any, step: float) -> Any:
        sizes = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows * np.maximum(1.0 - step * self.weights[:, None] / np.maximum(sizes, 1e-300), 0.0)

    def reach(self, centre: Any, norms: Any, radius: float) -> Any:
        return (np.linalg.norm(centre, axis=1) + radius * norms.max(axis=1)) / self.weights


def test_a_penalty_that_sees_signs_is_refused_unless_it_says_so() -> None:
    Y = np.stack([y, -y, y**2], axis=1)
    for fit in (ts.MultiTaskRegressor(penalty=Increasing(), alpha=0.1).fit,
                ts.MultiTaskRegressor(penalty=Increasing()).path,
                ts.MultiTaskRegressorCV(penalty=Increasing(), n_alphas=3).fit):  # fmt: skip
        with pytest.raises(ts.ParameterError, match=r"Increasing is no norm: value\(-W\) is .* where value\(W\) is"):
            fit(X, Y)

    class Said(Increasing):
        signed = True

    assert ts.MultiTaskRegressor(penalty=Said(), alpha=0.1).fit(X, Y).coef_.shape == (3, 8)
    one = ts.MultiTaskRegressor(penalty=Increasing(), alpha=0.1).fit(X, y)  # one task has no neighbours
    assert one.coef_.shape == (1, 8)


def test_a_penalty_of_ones_own_that_does_not_is_fitted() -> None:
    class Own(L21):
        pass

    ours = ts.MultiTaskRegressor(penalty="l21", alpha=0.1).fit(X, y)
    own = ts.MultiTaskRegressor(penalty=Own(), alpha=0.1).fit(X, y)
    np.testing.assert_allclose(own.coef_, ours.coef_, atol=1e-6)
    said = _said(ts.MultiTaskRegressor(penalty=Own(), alpha=0.001, max_iter=1, tol=1e-13))
    assert "if the penalty is a norm and its gauges are right (ts.checks)" in said
