"""Anchored correlations on a device: `AnchorStore` in torch, nothing of it features x tasks ever leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ..anchored import FLOAT32_SMALL, UPWARDS, Anchored, row_reaches
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

    def store(self, products: torch.Tensor) -> None:
        unit = _unit_of(products)
        self._products.append((products / unit).to(torch.float32))
        self._units.append(unit)

    def drop(self, m: int) -> None:
        del self._products[m], self._units[m]

    def bound(
        self, vector: Anchored, penalty: Any, radius: float = 0.0, stretch: Array | None = None, note: bool = False
    ) -> tuple[Array, Array]:
        """See `AnchorStore.bound`; `note` is of no use here, where bounds are cheap."""
        norms, remainder = self._norms, vector.remainder
        wide = norms.shape[1] > 1
        if stretch is not None and not wide:
            radius = radius * float(np.max(stretch))
        elif stretch is not None:
            remainder = remainder / stretch
        # in units of the norms, as they are stored
        spectral, radius = vector.spectral * self._unit, radius * self._unit
        beside = torch.from_numpy(np.ascontiguousarray(remainder * self._unit)).to(self._device)
        stretched = None if stretch is None or not wide else torch.from_numpy(np.asarray(stretch)).to(self._device)
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
            sizes = norms[index].to(torch.float64)
            if stretched is not None:
                sizes = (sizes * stretched * UPWARDS).clamp(min=FLOAT32_SMALL)
            centre = torch.zeros((len(sizes), self._tasks), dtype=torch.float64, device=self._device)
            for products, own in zip(self._products, coef, strict=True):
                centre += own * products[index]
            if limits is not None:
                estimate[index], upper[index] = limits.part(index).reaches(centre, sizes, beside, spectral, radius)
                continue
            own, here, lengths = penalty.restrict(everything[part]), centre.cpu().numpy(), sizes.cpu().numpy()
            found = row_reaches(own, here, lengths, remainder * self._unit, spectral, radius)
            estimate[index], upper[index] = (torch.from_numpy(values).to(self._device) for values in found)
        both = torch.stack([estimate, upper]).cpu().numpy()
        return both[0], both[1]

    def ball_bound(
        self, first: Anchored, centre: Anchored, coefs: tuple[float, float], penalty: Any, radius: float
    ) -> Array:
        """See `AnchorStore.ball_bound`: here the anchors are simply looked at again."""
        return self.bound(centre, penalty, radius)[1]
