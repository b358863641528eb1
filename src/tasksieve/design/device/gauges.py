"""Gauges and their bounds for many rows at once on a device, for penalties that are thresholds (`thresholds`)."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

_HALVINGS = 60  # of the bracket of a gauge that is a root


class Thresholds:
    """``||soft(m, l1)|| < group`` of a penalty that has `thresholds`, beside the columns."""

    def __init__(self, penalty: Any, device: torch.device) -> None:
        group, l1 = penalty.thresholds()
        self.group = _moved(group, device)
        self.l1 = None if l1 is None else _moved(l1, device)
        self.positive = penalty.positive

    def part(self, rows: Any) -> Thresholds:
        """The same for some rows."""
        smaller = copy(self)
        smaller.group = self.group if self.group.numel() == 1 else self.group[rows]
        smaller.l1 = self.l1 if self.l1 is None or self.l1.numel() == 1 else self.l1[rows]
        return smaller

    def sizes(self, products: torch.Tensor) -> torch.Tensor:
        """What counts of each entry: with W >= 0 only what is positive."""
        return products.clamp(min=0.0) if self.positive else products.abs()

    def gauges(self, sizes: torch.Tensor) -> torch.Tensor:
        """Gauge of each row of sizes; 0 where it is not penalised."""
        if self.l1 is None:
            return _quotient(torch.linalg.vector_norm(sizes, dim=1), self.group)
        # the smallest v with ||soft(m, v l1)|| <= v group, between max |m| / (l1 + group) and min of both quotients
        largest = sizes.amax(dim=1)
        low = _quotient(largest, self.l1 + self.group)
        high = torch.minimum(
            _quotient(largest, self.l1, torch.inf),
            _quotient(torch.linalg.vector_norm(sizes, dim=1), self.group, torch.inf),
        )
        high = torch.where(torch.isfinite(high), high, low)  # not penalised at all
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            rest = (sizes - (middle * self.l1)[:, None]).clamp(min=0.0)
            outside = torch.linalg.vector_norm(rest, dim=1) > middle * self.group
            low, high = torch.where(outside, middle, low), torch.where(outside, high, middle)
        return high

    def reaches(
        self,
        centre: torch.Tensor,
        norms: torch.Tensor,
        remainder: torch.Tensor,
        spectral: float,
        radius: float,
        error: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """An estimate of each gauge, and its bound over a ball and a remainder: `anchored_ratios` of the kernels.
        `error`: what the remainder moves each row by, where other norms count for it."""
        shared = norms.shape[1] == 1
        kappa = norms.amax(dim=1)
        if error is None:
            error = kappa * spectral if shared else torch.linalg.vector_norm(norms * remainder, dim=1)
        b = centre.clamp(min=0.0) if self.positive else centre
        sizes = b.abs()
        largest = sizes.amax(dim=1)
        reach = error + kappa * radius
        if self.l1 is None:
            norm = torch.linalg.vector_norm(b, dim=1)
            bound = norm + reach
            if radius > 0.0 and not self.positive and not shared:
                sharper = ball_maximum(norms, b, kappa, radius).sqrt() + error
                bound = torch.minimum(bound, sharper)
            return _quotient(norm, self.group), _quotient(bound, self.group)
        norm = torch.linalg.vector_norm((sizes - self.l1[:, None]).clamp(min=0.0), dim=1)
        bound = torch.where(largest <= self.l1, (largest + reach - self.l1).clamp(min=0.0), norm + reach)
        entries = self.group <= 0.0  # single entries alone have a threshold
        estimate = torch.where(entries, _quotient(largest, self.l1), _quotient(norm, self.group))
        upper = torch.where(entries, _quotient(largest + reach, self.l1), _quotient(bound, self.group))
        return estimate, upper


def ball_maximum(a: torch.Tensor, b: torch.Tensor, kappa: torch.Tensor, radius: float) -> torch.Tensor:
    """Upper bound of ``max_{||u|| <= D} sum_t (a_t u_t + b_t)^2`` for every row (mathematics 2.4).

    ``U(mu) = mu D^2 + sum_t mu b_t^2 / (mu - a_t^2)`` bounds it for every ``mu > kappa^2``: two of Newton's steps from
    inside the bracket of the root, each of which gives a bound; the least counts.
    """
    squares, products = a * a, a * b
    b2, ab = (b * b).sum(dim=1), torch.linalg.vector_norm(products, dim=1)
    k2 = kappa * kappa
    top = torch.linalg.vector_norm(torch.where(a >= kappa[:, None], b, torch.zeros_like(b)), dim=1)
    low, high = k2 + kappa * top / radius, k2 + ab / radius
    mu = torch.minimum(torch.maximum(_quotient(ab * ab, b2) + ab / radius, low), high)
    best = (b2.sqrt() + kappa * radius) ** 2
    for _ in range(2):
        sound = mu > k2 * (1.0 + 1e-13)
        gap = torch.where(sound[:, None], mu[:, None] - squares, torch.ones_like(squares))
        u = products / gap
        value = mu * radius**2 + (mu[:, None] * b * b / gap).sum(dim=1)
        best = torch.where(sound, torch.minimum(best, value), best)
        length = torch.linalg.vector_norm(u, dim=1)
        slope = (u * u / gap).sum(dim=1)
        step = mu + _quotient(length * length, slope) * (length - radius) / radius
        half = 0.5 * (mu + torch.where(length > radius, high, low))
        mu = torch.where((low < step) & (step < high), step, half)
    return torch.where(b2 == 0.0, (kappa * radius) ** 2, best)


def _moved(values: Array, device: torch.device) -> torch.Tensor:
    """Numbers on a device: a single one where all are the same."""
    if len(values) and (values == values[0]).all():
        values = values[:1]
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64)).to(device)


def _quotient(above: torch.Tensor, below: torch.Tensor, otherwise: float = 0.0) -> torch.Tensor:
    """Quotients; something else where there is nothing to divide by."""
    return torch.where(below > 0.0, above / torch.where(below > 0.0, below, torch.ones_like(below)), otherwise)
