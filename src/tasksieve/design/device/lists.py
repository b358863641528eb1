"""Features that reach a level: all that has to leave a device of what is as long as there are features."""

from __future__ import annotations

from typing import Any

import torch

from . import triton_kernels


def reaching(lengths: Any, lost: Any, group: Any, reach: Any, levels: Any, room: int) -> Any:
    """Per problem p: features whose ``lengths[p] / group + lost[p] reach`` is at least ``levels[p]``.

    Returns (P, 3, room + 1): how many there are first, then features, these numbers, and their `reach`. In any order;
    where there are more than `room`, some are left out.
    """
    if triton_kernels.usable(lengths):
        return triton_kernels.reaching(lengths, lost, group, reach, levels, room)
    found = lengths / group + lost[:, None] * reach
    out = torch.zeros((len(lengths), 3, room + 1), dtype=torch.float64, device=lengths.device)
    for own, hit, into in zip(found, found >= levels[:, None], out, strict=True):
        features = hit.nonzero()[:, 0]
        into[0, 0] = len(features)
        features = features[:room]
        into[:, 1 : len(features) + 1] = torch.stack([features.to(own.dtype), own[features], reach[features]])
    return out
