"""Features that reach a level: all that has to leave a device of what is as long as there are features."""

from __future__ import annotations

from typing import Any

import torch

from . import triton_kernels


def reaching(lengths: Any, lost: Any, group: Any, reach: Any, levels: Any, room: int) -> Any:
    """Per problem p: features whose ``lengths[p] / group + lost[p] reach`` is at least ``levels[p]``.

    Returns (P, 3, room + 1): how many there are first, then features, ascending, these numbers, and their `reach`;
    where there are more than `room`, some are left out.
    """
    if triton_kernels.usable(lengths):
        return _ascending(triton_kernels.reaching(lengths, lost, group, reach, levels, room))
    found = lengths / group + lost[:, None] * reach
    out = torch.zeros((len(lengths), 3, room + 1), dtype=torch.float64, device=lengths.device)
    for own, hit, into in zip(found, found >= levels[:, None], out, strict=True):
        features = hit.nonzero()[:, 0]
        into[0, 0] = len(features)
        features = features[:room]
        into[:, 1 : len(features) + 1] = torch.stack([features.to(own.dtype), own[features], reach[features]])
    return out


def _ascending(found: Any) -> Any:
    """What a kernel has listed in any order, by features."""
    listed, count = found[:, :, 1:], found[:, 0, 0]
    inside = torch.arange(listed.shape[2], device=found.device) < count[:, None]
    features, order = torch.where(inside, listed[:, 0], torch.inf).sort(dim=1)
    rest = listed[:, 1:].gather(2, order[:, None].expand(-1, 2, -1))
    return torch.cat([found[:, :, :1], torch.cat([features[:, None], rest], dim=1)], dim=2)
