"""A penalty, a loss and a storage of one's own in one fit. Nothing of tasksieve is edited.

The k-support norm over row norms, the gamma loss, and products of columns.

    python examples/own_members.py
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import xlogy

import tasksieve as ts


class KSupport(ts.penalties.RowPenalty):
    """The k-support norm of the row norms (Argyriou, Foygel and Srebro 2012): features are selected k at a time.

    Its dual norm is the Euclidean norm of the k largest row norms, so feasibility is a matter of all rows together.
    """

    label = "k-support"
    separable = False

    def __init__(self, k=3):
        self.k = k

    def on(self, weights, n_tasks, **options):
        if np.any(np.asarray(weights) != 1.0):
            raise ValueError("a k-support norm has no weights of features")
        return super().on(weights, n_tasks, **options)

    # -- the core ---------------------------------------------------------------------------------------------------

    def value(self, rows):
        sizes = np.sort(ts.penalties.row_norms(rows))[::-1]
        if not len(sizes):
            return 0.0
        k = min(self.k, len(sizes))
        tails = np.append(np.cumsum(sizes[::-1])[::-1], 0.0)
        # sqrt(sum of the first squares + (sum of the others)^2/(r + 1)), with the r of Argyriou et al., prop. 2.1
        for r in range(k):
            tail = tails[k - r - 1] / (r + 1)
            if (r == k - 1 or sizes[k - r - 2] > tail) and tail >= sizes[k - r - 1]:
                break
        head = sizes[: k - r - 1]
        return float(self.weights[0] * np.sqrt(head @ head + tail * tail * (r + 1)))

    def gauges(self, products):
        return ts.penalties.row_norms(products) / self.weights

    def reach(self, centre, norms, radius):
        return (ts.penalties.row_norms(centre) + radius * np.max(norms, axis=1, initial=0.0)) / self.weights

    def prox(self, rows, step):
        """Less the projection on the dual ball, which scales the largest, ties the middle and leaves the smallest."""
        sizes = ts.penalties.row_norms(rows)
        limit = step * float(self.weights[0]) if len(sizes) else np.inf
        if self._largest(sizes) <= limit:
            return np.zeros_like(rows)

        def projected(mu):
            """``max(g/(1 + mu), min(g, theta))`` with ``sum clip(g/theta - 1, 0, mu) = k mu``.

            That sum is linear in 1/theta between corners.
            """
            live = sizes[sizes > 0.0]
            if len(live) <= self.k:
                return sizes / (1.0 + mu)
            corners, bends = np.concatenate([1.0 / live, (1.0 + mu) / live]), np.concatenate([live, -live])
            order = np.argsort(corners, kind="stable")
            corners, rates = corners[order], np.cumsum(bends[order])
            levels = np.append(0.0, np.cumsum(rates[:-1] * np.diff(corners)))
            inverse = np.interp(self.k * mu, levels, corners)
            return np.maximum(sizes / (1.0 + mu), np.minimum(sizes, 1.0 / inverse))

        high = 1.0
        while self._largest(projected(high)) > limit:
            high *= 2.0
        near = projected(brentq(lambda mu: self._largest(projected(mu)) - limit, 0.0, high, xtol=1e-300, rtol=1e-15))
        near = np.where(sizes - near <= 1e-14 * sizes, sizes, near)
        return rows * np.divide(sizes - near, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)[:, None]

    def _largest(self, sizes):
        """The Euclidean norm of the k largest."""
        return float(np.linalg.norm(np.sort(sizes)[::-1][: self.k]))

    # -- feasibility joins the rows -----------------------------------------------------------------------------------

    def polar(self, gauges):
        return self._largest(gauges)

    def certified(self, upper, known):
        """Every bound counts, also one below 1."""
        return upper

    def inactive(self, upper):
        """A row that is not zero is among the k largest, whose norm is 1."""
        others = float(np.sum(np.sort(np.square(upper))[::-1][: self.k - 1]))
        return np.sqrt(others + np.square(upper)) < 1.0 - 1e-9

    def open(self, upper, known):
        """Only bounded, and among the k largest bounds, unless the known ones reach as far by themselves."""
        largest = np.argsort(-upper, kind="stable")[: self.k]
        if self.polar(upper) <= self.polar(np.where(known, upper, 0.0)) * (1.0 + 1e-10):
            return largest[:0]
        return np.sort(largest[~known[largest]])

    def leading(self, gauges):
        order = np.argsort(-gauges, kind="stable")
        return order[: 2 * self.k] if self.polar(gauges) > 1.0 else order[:0]

    def promising(self, levels, last, lam):
        return np.sort(self.leading(levels / lam))


class Gamma(ts.losses.RowLoss):
    """``z + y exp(-z)``: half the gamma deviance of labels y > 0 with means exp(z), up to a constant.

    With ``t = log y - z`` that is ``exp(t) - 1 - t``, which is 0 for a perfect fit, plus ``1 + log y``.
    """

    label = "gamma deviance"
    smoothness = np.inf  # slopes grow as fast as the loss
    differentiable = True

    def value(self, y, z):
        with np.errstate(over="ignore"):
            t = np.log(y) - z
            return np.expm1(t) - t

    def slope(self, y, z):
        with np.errstate(over="ignore"):
            return np.expm1(np.log(y) - z)

    def conjugate(self, y, p):
        q = np.maximum(1.0 + p, 0.0)
        return xlogy(q, q) - p - p * np.log(y)

    def domain(self, y):
        return -1.0, np.inf

    def curvature(self, y, z):
        with np.errstate(over="ignore"):
            return np.exp(np.log(y) - z)

    def constant(self, y):
        return 1.0 + np.log(y)

    def rooms(self, y, p):
        """1 + p is a ratio of means: down to zero, and up to twice what it is."""
        return 1.0 + p, 1.0 + p

    def intercepts(self, y, z, weights, design, guess):
        """Where slopes sum to zero: sum of s (y exp(-z - b) - 1) = 0 in every task."""
        with np.errstate(over="ignore"):
            return np.log(design.task_sums(weights * y * np.exp(-z)) / design.task_sums(weights))

    def link(self, z):
        return np.exp(z)

    def deviance(self, y, z):
        return 2.0 * self.value(y, z)


class Products(ts.Storage):
    """Columns of a matrix, then the products of all pairs of them; only the matrix is kept."""

    def __init__(self, x):
        self.x = np.asarray(x, dtype=np.float64)
        none = np.full(x.shape[1], -1)
        first, second = np.triu_indices(x.shape[1], 1)
        self.pairs = np.column_stack([np.append(np.arange(x.shape[1]), first), np.append(none, second)])
        self.n_rows, self.n_features = len(x), len(self.pairs)

    def take(self, features):
        first, second = self.pairs[features].T
        return self.x[:, first] * np.where(second >= 0, self.x[:, second], 1.0)

    def dense(self):
        return self.take(np.arange(self.n_features))


def positive_labels(rng, n):
    return rng.gamma(2.0, 1.0, n)


def make_data(seed=0, rows=40, columns=6):
    """Three tasks, whose labels depend on two columns and on the product of two others."""
    rng = np.random.default_rng(seed)
    x, task = rng.uniform(-1.0, 1.0, (3 * rows, columns)), np.repeat(["a", "b", "c"], rows)
    score = x[:, 0] - 0.8 * x[:, 1] + 1.5 * x[:, 2] * x[:, 3]
    return x, np.exp(score) * rng.gamma(5.0, 0.2, 3 * rows), task


if __name__ == "__main__":
    x, y, task = make_data()
    X = Products(x)
    ts.checks.check_penalty(KSupport(2))
    ts.checks.check_loss(Gamma(), labels=positive_labels)
    ts.checks.check_storage(X, X.dense())

    model = ts.MultiTaskRegressor(Gamma(), KSupport(3))
    model.set_params(alpha=0.3 * model.alpha_max(X, y, task=task)).fit(X, y, task=task)
    print("features (columns, -1: alone):", X.pairs[model.get_support(indices=True)].tolist())
    print(f"objective {model.objective_:.6f}, at most {model.dual_gap_:.1e} above the optimum")
    print("means predicted for the first rows:", model.predict(X, task=task)[:3].round(2))
