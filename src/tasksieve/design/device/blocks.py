"""Products of a block of columns on a device, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..storage.base import Asked


def on_the_device(asked: Sequence[Asked], device: Any) -> list[Any]:
    """The vectors there."""
    import torch

    return [torch.tensor(a.vector, dtype=torch.float64, device=device) for a in asked]


def block_products(block: Any, asked: Sequence[Asked], vectors: Sequence[Any]) -> list[Any]:
    """`ColumnStorage.products` for several vectors, as tensors (columns, tasks).

    - `block` (tensor of shape (columns, rows)): Of any of the kept types; it is not changed.
    - `asked`: Their ``columns`` are ignored: those of the block are used.
    - `vectors`: Theirs, on the device.
    """
    import torch

    x = block.to(torch.float64)
    squared = x * x if any(a.squares for a in asked) else None  # never in place: x may be the user's own
    found = []
    for a, vector in zip(asked, vectors, strict=True):
        own = squared if a.squares else x
        assert own is not None
        tasks = len(a.offsets) - 1
        if a.shared:
            found.append(own @ vector.reshape(tasks, -1).T)
            continue
        out = torch.zeros((len(own), tasks), dtype=torch.float64, device=own.device)
        for t, (start, stop) in enumerate(pairwise(np.asarray(a.offsets).tolist())):
            if stop > start:
                out[:, t] = own[:, start:stop] @ vector[start:stop]
        found.append(out)
    return found
