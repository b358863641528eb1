"""Matrices on a device, put on top of each other: which storage serves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..storage.base import ColumnStorage
from .machine import refuse_too_large

Array = np.ndarray[Any, Any]


def on_device_storage(parts: Sequence[Any], row_order: Array | None) -> ColumnStorage:
    """The storage of matrices that lie on one device or stream through it; rows in task order."""
    devices = [str(getattr(part, "device", "the host")) for part in parts]
    for t, own in enumerate(devices):
        if own != devices[0]:
            raise ValueError(
                f"X[{t}] is on {own}, X[0] on {devices[0]}: all matrices of a list must be on one device. Move them "
                "with tasksieve.on_device(X, device)."
            )
    if all(hasattr(part, "tensor") for part in parts):
        from .shard import DeviceStorage  # with the shard that its columns live in

        columns = parts[0].columns if len(parts) == 1 and row_order is None else None
        if columns is not None:  # used where it lies
            return DeviceStorage(columns, parts[0].n_rows)
        device = parts[0].device
        if device.type == "cuda":
            refuse_too_large(
                sum(part.nbytes for part in parts),
                device,
                "X: a copy with features one after the other, rows sorted by task,",
                "Sort the rows by task and hand them to tasksieve.on_device as one NumPy array: no copy of that is "
                "made, and what does not fit streams.",
            )
        return DeviceStorage.of([part.tensor for part in parts], row_order, device)
    from .streamed import StreamedStorage

    # where one matrix of a list streams, all do
    return StreamedStorage([part.streamed() for part in parts], row_order)
