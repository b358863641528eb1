"""Anchored correlations on a device: `AnchorStore` in torch, nothing of it features x tasks ever leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ..anchored import FLOAT32_SMALL, UPWARDS, Anchored, row_reaches
from ..row_metric import POINT, Cover, Region
from .gauges import Thresholds

Array = np.ndarray[Any, Any]

_BLOCK_ENTRIES = 1 << 25  # features x tasks looked at together
_HOST_BLOCK = 4096  # features at a time where a penalty is evaluated in NumPy


def _unit_of(values: torch.Tensor) -> float:
    """A power of two near the largest of these numbers."""
    largest = float(values.abs().max()) if values.numel() else 0.0
    return 2.0 ** min(max(math.frexp(largest)[1], -1000), 1000) if math.isfinite(largest) else 1.0


class DeviceAnchorStore:
    """Products of the anchors with the features of a shard, in single precision; norms as of `AnchorStore`."""

    def __init__(self, norms: torch.Tensor, n_tasks: int) -> None:
        self._tasks, self._device = n_tasks, norms.device
        self._unit = _unit_of(norms)
        self._norms = (norms * (UPWARDS / self._unit)).to(torch.float32).clamp(min=FLOAT32_SMALL)
        self._products: list[torch.Tensor] = []
        self._units: list[float] = []
        self._metric: tuple[torch.Tensor, torch.Tensor] | None = None  # m and c of `row_metric`, in their own units
        self._metric_unit = 1.0

    def store(self, products: torch.Tensor) -> None:
        unit = _unit_of(products)
        self._products.append((products / unit).to(torch.float32))
        self._units.append(unit)

    def drop(self, m: int) -> None:
        del self._products[m], self._units[m]

    def keep_metric(self, least: torch.Tensor, shifted: torch.Tensor) -> None:
        """See `AnchorStore.keep_metric`."""
        self._metric_unit = _unit_of(least.sqrt())
        self._metric = (
            (least.sqrt() * (UPWARDS / self._metric_unit)).to(torch.float32).clamp(min=FLOAT32_SMALL),
            (shifted.sqrt() * (UPWARDS / self._unit)).to(torch.float32).clamp(min=FLOAT32_SMALL),
        )

    def metric_norms(self, cover: Cover) -> torch.Tensor:
        """See `AnchorStore.metric_norms`."""
        return self._under(cover, slice(None)) * self._unit

    def _under(self, cover: Cover, index: Any) -> torch.Tensor:
        """The same of some features, in units of the norms."""
        assert self._metric is not None
        least, shifted = (part[index].to(torch.float64) for part in self._metric)
        first = torch.from_numpy(np.sqrt(cover.beta) * (self._metric_unit / self._unit)).to(self._device)
        second = torch.from_numpy(np.sqrt(cover.alpha)).to(self._device)
        return ((least * first).square() + (shifted * second).square()).sqrt() * UPWARDS

    def bound(
        self, vector: Anchored, penalty: Any, region: Region = POINT, note: bool = False
    ) -> tuple[Array, Array]:
        """See `AnchorStore.bound`; `note` is of no use here, where bounds are cheap."""
        norms, remainder = self._norms, vector.remainder
        radius, stretch, cover = region
        wide = norms.shape[1] > 1
        if stretch is not None and cover is None:
            radius, remainder = (radius, remainder / stretch) if wide else (radius * float(np.max(stretch)), remainder)
        # in units of the norms, as they are stored
        spectral, radius = vector.spectral * self._unit, radius * self._unit
        beside = torch.from_numpy(np.ascontiguousarray(remainder * self._unit)).to(self._device)
        narrow = cover is None and not wide
        stretched = None if stretch is None or narrow else torch.from_numpy(np.asarray(stretch)).to(self._device)
        coef = torch.from_numpy(vector.coef * np.array(self._units)[:, None]).to(self._device)
        count = len(norms)
        estimate = torch.zeros(count, dtype=torch.float64, device=self._device)
        upper = torch.zeros_like(estimate)
        limits = None if penalty.thresholds() is None else Thresholds(penalty, self._device)
        step = max(1, _BLOCK_ENTRIES // self._tasks) if limits is not None else _HOST_BLOCK
        everything = np.arange(count)
        pieces = [slice(low, min(low + step, count)) for low in range(0, count, step)]
        for part in pieces if limits is not None else penalty.pieces(step):
            index = part if isinstance(part, slice) else torch.from_numpy(np.asarray(part)).to(self._device)
            sizes = ordinary = norms[index].to(torch.float64)
            if stretched is not None:
                sizes = (sizes * stretched * UPWARDS).clamp(min=FLOAT32_SMALL)
            if cover is not None:
                under = self._under(cover, index)
                sizes = under if stretched is None else torch.minimum(sizes, under)
            centre = torch.zeros((len(sizes), self._tasks), dtype=torch.float64, device=self._device)
            for products, own in zip(self._products, coef, strict=True):
                centre += own * products[index]
            if limits is not None:
                error = None if cover is None else _errors(ordinary, beside, spectral)
                here = limits.part(index)
                estimate[index], upper[index] = here.reaches(centre, sizes, beside, spectral, radius, error)
                continue
            rows, correlations, lengths = penalty.restrict(everything[part]), centre.cpu().numpy(), sizes.cpu().numpy()
            off = None if cover is None else ordinary.cpu().numpy() * (remainder * self._unit)
            found = row_reaches(rows, correlations, lengths, remainder * self._unit, spectral, radius, off)
            estimate[index], upper[index] = (torch.from_numpy(values).to(self._device) for values in found)
        both = torch.stack([estimate, upper]).cpu().numpy()
        return both[0], both[1]

    def ball_bound(
        self, first: Anchored, centre: Anchored, coefs: tuple[float, float], penalty: Any, radius: float
    ) -> Array:
        """See `AnchorStore.ball_bound`: here the anchors are simply looked at again."""
        return self.bound(centre, penalty, Region(radius))[1]


def _errors(norms: torch.Tensor, remainder: torch.Tensor, spectral: float) -> torch.Tensor:
    """How far the remainder of a vector moves the correlations of each feature."""
    if norms.shape[1] == 1:
        return norms[:, 0] * spectral
    return torch.linalg.vector_norm(norms * remainder, dim=1)
