"""A slow, plain solver for many small problems at once: the truth that the screening tests are held against.

    min_W 1/2 sum_t ‖y_t - X_t w_t‖² + lam sum_j u_j (l1_j ‖W_j‖₁ + group ‖W_j‖₂) + ridge/2 ‖W‖²,  perhaps W >= 0,

by cyclic coordinate descent over rows, each row minimised exactly (mathematics 2.7), stopped on the duality gap.
The first axis of an array is the problem: X (B, T, n, d), y (B, T, n), W (B, d, T); short tasks have zero rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tasksieve.screening import Cut, DualState, steepest_row


@dataclass
class Batch:
    """B problems of one shape; lam (B,), weights and l1 (B, d)."""

    X: np.ndarray
    y: np.ndarray
    lam: np.ndarray
    weights: np.ndarray
    l1: np.ndarray
    group: float = 1.0
    ridge_ratio: float = 0.0
    positive: bool = False

    def __len__(self):
        return len(self.y)

    def pick(self, index):
        parts = (self.X[index], self.y[index], self.lam[index], self.weights[index], self.l1[index])
        return Batch(*parts, self.group, self.ridge_ratio, self.positive)

    def at(self, lam):
        return replace(self, lam=np.asarray(lam, dtype=float))

    @property
    def ridge(self):
        return self.lam * self.ridge_ratio

    def residual(self, W):
        return self.y - np.einsum("btnd,bdt->btn", self.X, W, optimize=True)

    def correlations(self, r):
        return np.einsum("btnd,btn->bdt", self.X, r, optimize=True)

    def soft(self, m, tau):
        shrunk = (m if self.positive else np.abs(m)) - tau
        return np.copysign(np.maximum(shrunk, 0.0), m)

    def penalty(self, W):
        per_row = self.l1 * np.abs(W).sum(axis=2) + self.group * np.linalg.norm(W, axis=2)
        return self.lam * (self.weights * per_row).sum(axis=1)

    def polar(self, M):
        """Smallest q with ‖soft(m_j, q l1_j u_j lam)‖ <= q group u_j lam for all j, from above, by bisection."""
        unit = self.lam[:, None] * self.weights
        if not self.l1.any():
            M = np.maximum(M, 0.0) if self.positive else M
            return (np.linalg.norm(M, axis=2) / (self.group * unit)).max(axis=1)
        low = np.zeros(len(M))
        high = (np.linalg.norm(M, axis=2) / (unit * (self.group + self.l1))).max(axis=1)
        for _ in range(60):
            q = 0.5 * (low + high)
            inside = np.linalg.norm(self.soft(M, (q[:, None] * unit * self.l1)[:, :, None]), axis=2)
            feasible = (inside <= q[:, None] * unit * self.group).all(axis=1)
            high, low = np.where(feasible, q, high), np.where(feasible, low, q)
        return high

    def lam_max(self):
        return self.at(np.ones(len(self))).polar(self.correlations(self.y))

    def gap(self, W, r):
        """Duality gap of W and the best multiple of its residual, and that multiple."""
        ridge = self.ridge[:, None, None] * W
        square = (r * r).sum(axis=(1, 2)) + (ridge * W).sum(axis=(1, 2))
        along = ((self.y - r) * r).sum(axis=(1, 2)) - (ridge * W).sum(axis=(1, 2))
        q = self.polar(self.correlations(r) - ridge)
        best = (self.y * r).sum(axis=(1, 2)) / np.maximum(square, 1e-300)
        scale = np.clip(best, 0.0, 1.0 / np.maximum(q, 1e-300))
        gap = 0.5 * (1.0 - scale) ** 2 * square + np.maximum(self.penalty(W) - scale * along, 0.0)
        return gap, scale


def row_update(c, h, lam):
    """argmin_w sum_t h_t/2 w_t² - c_t w_t + lam ‖w‖ for each problem: c, h (B, T), lam (B,)."""
    length = np.linalg.norm(c, axis=1)
    active = length > lam
    if not active.any():
        return np.zeros_like(c)
    c2, ha, la = c[active] ** 2, h[active], lam[active][:, None]
    nu = ((length[active][:, None] - la) / ha.max(axis=1, keepdims=True)).clip(min=1e-300)
    for _ in range(30):
        shrunk = ha * nu + la
        term = c2 / shrunk**2
        total = term.sum(axis=1, keepdims=True)
        step = (total**-0.5 - 1.0) * total**1.5 / (term * ha / shrunk).sum(axis=1, keepdims=True)
        nu = nu - step
        if (np.abs(step) <= 1e-14 * nu).all():
            break
    w = np.zeros_like(c)
    w[active] = c[active] * nu / (ha * nu + la)
    return w


def solve(batch, tol, W=None, max_sweeps=20_000, check=5):
    """Sweep each problem until its gap is at most tol * 1/2 ‖y‖² (tol: scalar or one per problem).

    Returns W, residuals, relative gaps.
    """
    n_problems, n_tasks, _, d = batch.X.shape
    out = np.zeros((n_problems, d, n_tasks)) if W is None else W.copy()
    null = np.maximum(0.5 * (batch.y**2).sum(axis=(1, 2)), 1e-300)
    tol = np.broadcast_to(np.asarray(tol, dtype=float), n_problems)
    gaps = batch.gap(out, batch.residual(out))[0] / null
    left = np.flatnonzero(gaps > tol)
    part = None
    for sweep in range(max_sweeps):
        if left.size == 0:
            break
        if part is None:
            part = batch.pick(left)
            columns = np.ascontiguousarray(part.X.transpose(3, 0, 1, 2))
            h = (columns**2).sum(axis=3)
            total = h + part.ridge[:, None]
            unit = part.lam[:, None] * part.weights
            W = out[left]
            r = part.residual(W)
        for j in range(d):
            old = W[:, j]
            c = np.einsum("btn,btn->bt", columns[j], r) + h[j] * old
            c = part.soft(c, (unit[:, j] * part.l1[:, j])[:, None])
            if part.group > 0.0:
                new = row_update(c, total[j], part.group * unit[:, j])
            else:
                new = np.divide(c, total[j], out=np.zeros_like(c), where=total[j] > 0.0)
            r -= (new - old)[:, :, None] * columns[j]
            W[:, j] = new
        if sweep % check == check - 1 or sweep < 2:
            r = part.residual(W)
            gap = part.gap(W, r)[0] / null[left]
            out[left], gaps[left] = W, gap
            done = gap <= tol[left]
            if done.any():
                left, part = left[~done], None
    return out, batch.residual(out), gaps


def dual_state(batch, i, W, residual, **more):
    """What the engine hands to a rule, for problem i of a batch."""
    X, r = batch.X[i], residual[i]
    norms = np.sqrt(np.einsum("tnd,tnd->dt", X, X))
    features = np.flatnonzero(W[i].any(axis=1))
    return DualState(
        y=batch.y[i].ravel(),
        residual=r.ravel(),
        correlations=np.einsum("tnd,tn->dt", X, r),
        norms=norms,
        lam=float(batch.lam[i]),
        y_correlations=np.einsum("tnd,tn->dt", X, batch.y[i]),
        features=features,
        rows=W[i][features],
        feature_weights=batch.weights[i],
        l1=batch.l1[i],
        group=batch.group,
        positive=batch.positive,
        ridge_ratio=batch.ridge_ratio,
        **more,
    )


def first_cut(batch, i):
    """The row that pulls hardest on y, as a cut for W = 0."""
    X, y = batch.X[i], batch.y[i]
    weights = batch.weights[i]
    correlations = np.einsum("tnd,tn->dt", X, y)
    features, rows = steepest_row(correlations, batch.group * weights, batch.l1[i] * weights, batch.positive)
    image = np.einsum("tnd,dt->tn", X[..., features], rows)
    return Cut(features, rows, image.ravel(), np.einsum("tnd,tn->dt", X, image))
