"""A loss of one's own: Huber's, squared for small residuals and linear for large ones. Nothing of tasksieve is edited.

    python examples/own_loss.py
"""

import numpy as np

import tasksieve as ts


class Huber(ts.losses.RowLoss):
    """f(y, z) = r^2/2 for |r| <= delta, else delta |r| - delta^2/2, with r = y - z."""

    label = "Huber loss"
    smoothness = 1.0
    translates = True  # only y - z counts: large offsets of y cost no digits

    def __init__(self, delta=1.35):
        self.delta = delta

    def value(self, y, z):
        size = np.abs(y - z)
        return np.where(size <= self.delta, 0.5 * size**2, self.delta * size - 0.5 * self.delta**2)

    def slope(self, y, z):
        """Minus the derivative in z."""
        return np.clip(y - z, -self.delta, self.delta)

    def conjugate(self, y, p):
        """f*(-p) where |p| <= delta."""
        return 0.5 * p**2 - p * y

    def domain(self, y):
        return -self.delta, self.delta

    def curvature(self, y, z):
        """delta/|r| beyond delta: a quadratic with it stays above the loss."""
        return np.minimum(1.0, self.delta / np.maximum(np.abs(y - z), 1e-300))


if __name__ == "__main__":
    ts.checks.check_loss(Huber())  # names the property that fails, if one does

    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((120, 600)), np.repeat(["a", "b", "c"], 40)
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(120)
    y[::12] += 30.0  # some measurements went wrong

    for loss in ("squared", Huber(delta=1.0)):
        model = ts.MultiTaskRegressor(loss=loss)
        model.set_params(alpha=0.4 * model.alpha_max(X, y, task=task)).fit(X, y, task=task)
        name = loss if isinstance(loss, str) else "huber"
        print(f"{name:8s}: {model.get_support().sum():3d} features, gap {model.dual_gap_:.1e}, first two", end=" ")
        print(model.coef_.mean(axis=0)[:2].round(2))

    search = ts.MultiTaskRegressorCV(loss=Huber(delta=1.0), n_alphas=20, eps=0.3).fit(X, y, task=task)
    print(f"chosen by {search.cv_measure}: alpha = {search.alpha_:.3f},", search.get_support().sum(), "features")
