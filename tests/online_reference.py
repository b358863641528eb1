"""Algorithm 1 of Yang, King & Lyu (2010), as printed: slow, whole matrices, one mean after another.

Nothing of the package is used here. `rounds` is the paper's loop; `rows` is the same with one row per step and the two
rules for tasks that are absent from a step.
"""

from __future__ import annotations

import numpy as np


def subgradient(loss: str, w, b: float, x, y: float):
    z = float(x @ w + b)
    if loss == "squared":
        g = z - y
    elif loss == "logistic":
        g = -y / (1.0 + np.exp(y * z))
    else:
        g = -y if y * z < 1.0 else 0.0
    return g * x, g


def next_weights(
    mean, penalty: str, lam: float, r, gamma: float, t: int, ridge: float = 0.0, rho: float = 0.0
):
    """Equations (9) to (12), row by row; `mean` is d x Q."""
    out = np.zeros_like(mean)
    lam = lam + gamma * rho / np.sqrt(t)
    step = 1.0 / (ridge + gamma / np.sqrt(t))
    r = np.broadcast_to(r, len(mean))
    for j in range(len(mean)):
        if penalty == "l11":  # (9)
            for q in range(mean.shape[1]):
                g = mean[j, q]
                out[j, q] = -step * max(abs(g) - lam, 0.0) * np.sign(g)
            continue
        u = mean[j].copy()
        if penalty == "l1+l21":  # (12)
            u = np.maximum(np.abs(u) - lam * r[j], 0.0) * np.sign(u)
        size = np.sqrt(np.sum(u * u))
        if size > 0:  # (10), (11); zero where the mean is zero
            out[j] = -step * max(1.0 - lam / size, 0.0) * u
    return out


def rounds(
    instances, d, Q, *, loss, penalty, lam, r=0.0, gamma=1.0, ridge=0.0, rho=0.0, intercept=True, stops=()
):
    """`instances`: a list of rounds, each {task: (x, y)}. Returns {t: (W_{t+1}, b, mean of W_1..W_t)}."""
    W, b = np.zeros((d, Q)), np.zeros(Q)
    mean, mean_b = np.zeros((d, Q)), np.zeros(Q)
    average, found = np.zeros((d, Q)), {}
    for t, current in enumerate(instances, start=1):
        average += (W - average) / t
        G, g_b = np.zeros((d, Q)), np.zeros(Q)
        for q, (x, y) in current.items():
            G[:, q], g_b[q] = subgradient(loss, W[:, q], b[q], x, y)
        mean = (t - 1) / t * mean + G / t
        mean_b = (t - 1) / t * mean_b + g_b / t
        W = next_weights(mean, penalty, lam, r, gamma, t, ridge, rho)
        b = -np.sqrt(t) / gamma * mean_b if intercept else b
        if t in stops:
            found[t] = W.copy(), b.copy(), average.copy()
    return found


def rows(
    instances,
    d,
    Q,
    *,
    rule,
    loss,
    penalty,
    lam,
    r=0.0,
    gamma=1.0,
    ridge=0.0,
    rho=0.0,
    intercept=True,
    stops=(),
):
    """`instances`: a list of (task, x, y, weight); one row per step."""
    W, b = np.zeros((d, Q)), np.zeros(Q)
    mean, mean_b = np.zeros((d, Q)), np.zeros(Q)
    seen, average, found = np.zeros(Q), np.zeros((d, Q)), {}
    for t, (q, x, y, s) in enumerate(instances, start=1):
        average += (W - average) / t
        g, g_b = subgradient(loss, W[:, q], b[q], x, y)
        seen[q] += s
        if rule == "per-task":  # the mean over the task's own rows
            mean[:, q] += s * (g - mean[:, q]) / seen[q]
            mean_b[q] += s * (g_b - mean_b[q]) / seen[q]
        else:  # importance: the mean over all steps of gradients divided by the task's share of the rows so far
            mean, mean_b = (t - 1) / t * mean, (t - 1) / t * mean_b
            share = seen[q] / t
            mean[:, q] += s * g / share / t
            mean_b[q] += s * g_b / share / t
        W = next_weights(mean, penalty, lam, r, gamma, t, ridge, rho)
        b = -np.sqrt(t) / gamma * mean_b if intercept else b
        if t in stops:
            found[t] = W.copy(), b.copy(), average.copy()
    return found
