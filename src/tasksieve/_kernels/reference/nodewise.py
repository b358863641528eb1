"""NumPy twin of `nodewise.cpp`: Lassos of columns on all others."""

from __future__ import annotations

import numpy as np

_EXCEEDS, _SETTLED, _NOTHING_LEFT, _INDEPENDENT = 1.0 + 1e-11, 1e-11, 1e-10, 1e-9
_WORTHWHILE = 0.98  # of the eta before: a value that leaves more is the last
_MOST_ROUNDS = 5000


def nodewise(x, targets, start, values, ratio, target, growth, tolerance, rounds, threads, z, strengths):
    """Residuals of nodewise Lassos into the rows of z: of the strength that the rule of Zhang and Zhang chooses."""
    z[...], strengths[:] = 0.0, start
    for i, (j, lam) in enumerate(zip(targets.tolist(), start.tolist(), strict=True)):
        if not np.any(x[:, j]):
            continue
        coef, best, least, last = np.zeros(x.shape[1]), np.inf, None, np.inf
        for _ in range(values):
            coef = _lasso(x, j, lam, coef, tolerance)
            residual = x[:, j] - x @ coef
            products, length = x.T @ residual, np.linalg.norm(residual)
            if not (length > _NOTHING_LEFT and products[j] > 0.0):
                break
            eta, tau = np.abs(np.delete(products, j)).max(initial=0.0) / length, length / products[j]
            least = tau if least is None and eta <= target else least
            if least is not None and tau > growth * least:
                break
            if eta < best:
                best, z[i], strengths[i] = eta, residual, lam
            if least is not None and eta > _WORTHWHILE * last and np.any(coef):
                break
            last, lam = eta, lam * ratio


def _lasso(x, j, lam, start, tolerance):
    """Coefficients of ``min 1/2 ||x_j - X g||^2 + lam ||g||_1``, g_j = 0: the sign of each that is not zero is kept on
    the way to the minimum with these signs, the one that would change it first leaves."""
    coef, signs = start.copy(), np.sign(start)
    refused: set[int] = set()
    for _ in range(_MOST_ROUNDS):
        active = np.flatnonzero(signs)
        h = x.T @ (x[:, j] - x @ coef)
        open_ = h[active] - lam * signs[active]
        if np.all(np.abs(open_) <= _SETTLED * lam):  # at the minimum of these: the largest of the others comes in
            size = np.abs(h)
            size[[j, *active.tolist(), *refused]] = 0.0
            k = int(np.argmax(size))
            if size[k] <= max(_EXCEEDS, 1.0 + tolerance) * lam:
                break
            block = x[:, active]
            inside = np.linalg.lstsq(block, x[:, k], rcond=None)[0]
            if np.sum(np.square(x[:, k] - block @ inside)) <= _INDEPENDENT:
                refused.add(k)
                continue
            signs[k] = np.sign(h[k])
            active = np.flatnonzero(signs)
            open_ = h[active] - lam * signs[active]
        step = np.linalg.solve(x[:, active].T @ x[:, active], open_)
        crossing = (coef[active] + step) * signs[active] <= 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(crossing, np.maximum(-coef[active] / step, 0.0), 1.0)
        part = min(1.0, float(np.nanmin(parts, initial=1.0)))
        coef[active] += part * step
        left = active[crossing & (parts <= part)]
        coef[left] = signs[left] = 0.0
        refused = refused if not len(left) else set()
    return coef
