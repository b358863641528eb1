"""A penalty of one's own: L1,inf, where the tasks share the *size* of a coefficient. Nothing of tasksieve is edited.

    python examples/own_penalty.py
"""

import numpy as np

import tasksieve as ts


class LInf(ts.penalties.RowPenalty):
    """sum_j u_j max_t |W_jt|."""

    label = "L1,inf"

    def value(self, rows):
        return float(self.weights @ np.abs(rows).max(axis=1, initial=0.0))

    def gauges(self, products):
        """The dual norm of the largest entry is the sum of all entries."""
        return np.abs(products).sum(axis=1) / self.weights

    def reach(self, centre, norms, radius):
        """The sum of centre + norms * v grows fastest along v = norms: exact."""
        return (centre.sum(axis=1) + radius * ts.penalties.row_norms(norms)) / self.weights

    def prox(self, rows, step):
        """Entries are cut at the height nu where what is cut off sums to the strength: one sort a row."""
        sizes = np.sort(np.abs(rows), axis=1)[:, ::-1]
        counts = np.arange(1, rows.shape[1] + 1)
        heights = (np.cumsum(sizes, axis=1) - step * self.weights[:, None]) / counts
        following = np.hstack([sizes[:, 1:], np.zeros((len(rows), 1))])
        first = np.argmax(heights >= following, axis=1)
        nu = np.maximum(heights[np.arange(len(rows)), first], 0.0)[:, None]
        return np.clip(rows, -nu, nu)


if __name__ == "__main__":
    ts.checks.check_penalty(LInf())  # names the property that fails, if one does

    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((120, 600)), np.repeat(["a", "b", "c"], 40)
    signs = np.select([task == "a", task == "b"], [1.0, -1.0], 1.0)
    y = signs * (X[:, 0] + X[:, 1]) + 0.3 * rng.standard_normal(120)

    model = ts.MultiTaskRegressor(penalty=LInf(), alpha=0.4).fit(X, y, task=task)
    chosen = model.get_support(indices=True)
    print("features", chosen, "with coefficients of one size in all tasks:")
    print(model.coef_[:, chosen].round(3))
    print(f"objective {model.objective_:.6f}, at most {model.dual_gap_:.1e} above the optimum")

    path = ts.MultiTaskRegressor(penalty=LInf()).path(X, y, task=task, n_alphas=30, eps=0.1)
    print(f"path: worst relative gap {path.relative_gaps.max():.1e}, {path.passes:.1f} passes over X")
