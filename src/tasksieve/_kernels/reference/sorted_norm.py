"""NumPy twins of the kernels of the sorted norm (`sorted_norm.cpp`)."""

from __future__ import annotations

import numpy as np

from .losses import softmax


def _norms(rows, positive):
    rows = np.maximum(rows, 0.0) if positive else rows
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))


def pool_adjacent(values):
    """The non-increasing sequence nearest to `values`: neighbours in the wrong order are replaced by their mean."""
    sums: list[float] = []
    sizes: list[int] = []
    for value in values:
        total, size = float(value), 1
        while sums and sums[-1] * size <= total * sizes[-1]:
            total, size = total + sums.pop(), size + sizes.pop()
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.array(sums) / np.array(sizes), sizes) if sums else np.empty(0)


class SortedNorm:
    """``sum_k weights_k ||W||_[k]``, the rows of W sorted by decreasing norm."""

    def prox(self, rows, weights, step, positive, out):
        """``argmin_V 1/2 ||V - rows||^2 + step sum_k weights_k ||V||_[k]`` (mathematics, section 4)."""
        rows = np.maximum(rows, 0.0) if positive else np.array(rows)
        norms = _norms(rows, False)
        order = np.argsort(-norms, kind="stable")
        levels = np.maximum(pool_adjacent(norms[order] - step * weights[: len(norms)]), 0.0)
        factor = np.zeros(len(norms))
        np.divide(levels, norms[order], out=levels, where=norms[order] > 0.0)
        factor[order] = np.where(norms[order] > 0.0, levels, 0.0)
        out[...] = rows * factor[:, None]

    def polar(self, rows, weights, positive):
        """``max_k cumsum(sorted norms)_k / cumsum(weights)_k``: the dual norm."""
        norms = np.sort(_norms(rows, positive))[::-1]
        return float(np.max(np.cumsum(norms) / np.cumsum(weights[: len(norms)]), initial=0.0))

    def value(self, rows, weights):
        norms = np.sort(_norms(rows, False))[::-1]
        return float(norms @ weights[: len(norms)])


class SortedFista:
    """Least squares with a sorted norm: accelerated proximal gradient, restarts, a curvature that follows the data.

    Correlations ``C(W) = X'(y - X W)`` are affine in W, so those of the extrapolated point cost nothing, and the gap
    of every iterate is at hand.
    """

    def __init__(self):
        self._norm = SortedNorm()

    def solve(
        self, x, offsets, shared, target, gram, y_products, y_squared, weights, positive, w, dual_w, tol, max_iter,
        check_every, curvature, threads,
    ):  # fmt: skip
        def correlate(rows):
            if gram is not None:
                products = y_products - gram @ rows
                return 0.5 * max(y_squared - float(np.vdot(rows, y_products + products)), 0.0), products
            if shared:
                residual = target - (x @ rows).ravel(order="F")
                products = x.T @ residual.reshape(rows.shape[1], -1).T
            else:
                spans = [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
                residual = target - np.concatenate([x[s] @ rows[:, t] for t, s in enumerate(spans)])
                products = np.stack([x[s].T @ residual[s] for s in spans], axis=1)
            return 0.5 * float(residual @ residual), products

        norm, count = self._norm, len(w)
        rows = w.copy()
        loss, products = correlate(rows)
        previous, previous_products = rows, products
        momentum, beta, best_dual, floor = 1.0, 0.0, -np.inf, 1e-3 * curvature
        iterations, gap = 0, np.inf
        while True:
            last = iterations >= max_iter
            if last or (iterations > 0 and iterations % check_every == 0):
                penalty, inner = norm.value(rows, weights), float(np.vdot(rows, products))
                polar = norm.polar(products, weights, positive)
                limit = 1.0 / (polar * (1.0 + 1e-12)) if polar > 0.0 else 1.0
                free = (2.0 * loss + inner) / (2.0 * loss) if loss > 0.0 else 0.0
                scale = max(min(free, limit), 0.0)
                gap = (1.0 - scale) ** 2 * loss + max(penalty - scale * inner, 0.0)
                if loss + penalty - gap > best_dual:
                    best_dual = loss + penalty - gap
                    dual_w[...] = rows
                else:
                    gap = loss + penalty - best_dual
                if gap <= tol or last:
                    break
            point = rows + beta * (rows - previous)
            point_products = products + beta * (products - previous_products)
            for _ in range(41):
                following = np.empty_like(rows)
                norm.prox(
                    point + point_products / curvature, weights[:count], 1.0 / curvature, positive, following
                )
                value, following_products = correlate(following)
                move = following - point
                length = float(np.vdot(move, move))
                secant = float(np.vdot(move, point_products - following_products))
                if secant <= curvature * length * (1.0 + 1e-9) or length == 0.0:
                    break
                curvature = max(1.02 * secant / length, 1.05 * curvature)
            curvature = max(0.985 * curvature, floor)
            if float(np.vdot(point - following, following - rows)) > 0.0:
                momentum, beta = 1.0, 0.0
            else:
                grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
                momentum, beta = grown, (momentum - 1.0) / grown
            previous, previous_products = rows, products
            rows, products, loss = following, following_products, value
            iterations += 1
        w[...] = rows
        return iterations, gap, curvature


class SortedSvrg:
    """One epoch of prox-SVRG for a *sum* of losses (Bao et al. 2025, Algorithm 2).

    ``v = (n / l) (grad F_I(W) - grad F_I(W_ref)) + grad F(W_ref)``: the paper's factor 1/l estimates the correction of
    the mean, not of the sum (mathematics, section 6).
    """

    def __init__(self):
        self._norm = SortedNorm()

    def epoch(
        self, dense, data, indices, indptr, centre, task_of, multinomial, root, weights, positive, intercept, w, b,
        reference_z, gradient, reference_b, b_gradient, batches, step,
    ):  # fmt: skip
        count, tasks = w.shape
        n = len(dense) if dense is not None else len(indptr) - 1
        scale = n / batches.shape[1]
        start = b.copy() if reference_b is b else reference_b
        for batch in batches:
            q = np.ones(len(batch)) if root is None else root[batch]
            if dense is not None:
                x = dense[batch]
            else:
                x = np.zeros((len(batch), count))
                for k, i in enumerate(batch):
                    np.add.at(x[k], indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]])
                if centre is not None:
                    x = x - centre
                x = q[:, None] * x
            live = q > 0.0
            x, q, batch = x[live], q[live], batch[live]
            change = np.zeros((count, tasks))
            b_change = np.zeros(tasks)
            z = x @ w
            if task_of is not None:
                own = z[np.arange(len(batch)), task_of[batch]] - reference_z[batch, 0]
                np.add.at(change.T, task_of[batch], own[:, None] * x)
            elif multinomial:
                now = softmax(z / q[:, None] + (b if intercept else 0.0))
                then = softmax(reference_z[batch] / q[:, None] + (start if intercept else 0.0))
                change = x.T @ (q[:, None] * (now - then))
                b_change = np.sum(np.square(q)[:, None] * (now - then), axis=0)
            else:
                change = x.T @ (z - reference_z[batch])
            point = w - step * (gradient + scale * change)
            if intercept:
                b -= step * (b_gradient + scale * b_change)
            self._norm.prox(point, weights, step, positive, w)
