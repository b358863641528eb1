"""What the batteries have found in the package, each in the smallest form."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import Design, as_storage
from tasksieve.losses import Logistic, Multinomial, SmoothedHinge, SquaredHinge


def test_multinomial_intercepts_far_from_zero(rng):
    """Newton's method went on to larger gradients, was taken for finished, and the residual was no dual point."""
    design = Design(as_storage(rng.standard_normal((24, 2))), 24 * np.arange(4), shared=True, n_threads=1)
    y = np.eye(3)[np.arange(24) % 3].T.ravel()
    loss = Multinomial().on(design, y)
    for size in (1.0, 3.0, 5.0, 10.0, 30.0) * 10:
        z = design.project(size * rng.standard_normal(72))
        at = loss.evaluate(z)
        np.testing.assert_allclose(design.task_sums(at.residual), 0.0, atol=1e-9)


@pytest.mark.parametrize("loss", [SmoothedHinge(), SquaredHinge(), Logistic()], ids=lambda loss: loss.label)
def test_saturated_rows_stay_where_they_are(loss):
    """Rounding in the projection took rows at a bound out of the domain, and the whole task went with them.

    Where unpenalised features explain everything at W = 0, even to zero.
    """
    for seed in (3, 4, 8, 11, 92):
        rng = np.random.default_rng(seed)
        x, weights = rng.standard_normal((12, 3)), rng.uniform(0.3, 2.0, 12)
        y = np.where(rng.random(12) < 0.6, 1.0, -1.0)
        free = np.array([0, 1])
        design = Design(as_storage(x), np.array([0, 12]), weights=weights, unpenalised=free, n_threads=1)
        on_data = loss.on(design, y)
        for _ in range(10):
            at = on_data.evaluate(design.project(rng.standard_normal(12)))
            assert on_data.terms(at, 1.0) <= 1e-8 * max(at.value, 1.0)


def test_labels_that_are_a_column_of_a_wider_array(rng):
    """Without an intercept nothing had copied them, and the kernels want vectors in one piece."""
    X, Y = rng.standard_normal((30, 3)), rng.standard_normal((30, 2))
    for model in (ts.MultiTaskLasso(0.1, fit_intercept=False), ts.MultiTaskOWL(0.1, fit_intercept=False)):
        expected = model.fit(X, Y[:, 0].copy()).coef_
        np.testing.assert_array_equal(model.fit(X, Y[:, 0]).coef_, expected)


def test_an_online_model_is_fitted_twice(rng):
    """Codes of tasks from the first fit were used in the second."""
    X, task = rng.standard_normal((30, 3)), np.repeat([2, 0, 1], 10)
    model = ts.OnlineMultiTaskRegressor(0.05, gamma=20.0, shuffle=False)
    first = model.fit(X, X[:, 0], task=task).coef_
    np.testing.assert_array_equal(model.fit(X, X[:, 0], task=task).coef_, first)


class Quantile(ts.losses.RowLoss):
    """The rounded pinball without a `curvature` of its own."""

    smoothness = 2.0

    def slope(self, y, z):
        return np.clip((y - z) / 0.5, -0.3, 0.7)

    def value(self, y, z):
        p = self.slope(y, z)
        return p * (y - z) - 0.25 * p * p

    def conjugate(self, y, p):
        return 0.25 * p * p - p * y

    def domain(self, y):
        return -0.3, 0.7


def test_losses_that_do_not_say_their_curvature():
    """With the smoothness in its place, 100 steps of Newton's method did not find the best intercept."""
    ts.checks.check_loss(Quantile)
