"""X on a device: a matrix that any estimator takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.own import Storage
from .machine import refuse_too_large

Array = np.ndarray[Any, Any]

_PACKED_ENTRIES = 1 << 23  # rows times features turned to double precision at a time


class OnDevice(Storage):
    """What `on_device` gives: a matrix whose products are made on a device."""

    device: Any

    @property
    def nbytes(self) -> int:
        return int(self.n_rows * self.n_features * np.dtype(self.dtype).itemsize)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_rows} x {self.n_features}, {np.dtype(self.dtype)}, on {self.device})"

    @staticmethod
    def as_columns(parts: list[Any], row_order: Array | None) -> Any:
        """The storage of such matrices, on one device or streaming through it, on top of each other; rows in task
        order."""
        devices = [str(getattr(part, "device", "the host")) for part in parts]
        for t, own in enumerate(devices):
            if own != devices[0]:
                raise ValueError(
                    f"X[{t}] is on {own}, X[0] on {devices[0]}: all matrices of a list must be on one device. Move "
                    "them with tasksieve.on_device(X, device)."
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

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Row, feature and value of the first NaN or infinity, or None."""
        raise NotImplementedError

    def rows(self, index: Array) -> OnDevice:
        """Some rows."""
        raise NotImplementedError

    def linear_scores(self, coef: Array, intercept: Array, codes: Array | None) -> Array:
        """See `tasksieve.tasks.linear_scores`."""
        support = np.flatnonzero(coef.any(axis=0))
        beside = intercept if codes is None else intercept[codes]
        return self.scores(support, coef[:, support], codes) + beside

    def scores(self, features: Array, coef: Array, codes: Array | None) -> Array:
        """Products of some columns with coefficients, (tasks, features): (rows, tasks), or with the task of each row
        (rows,)."""
        raise NotImplementedError


class DeviceMatrix(OnDevice):
    """A tensor of shape (rows, features), float64, float32, int8 or uint8; it is never changed.

    - `columns`: The same numbers, where they lie feature by feature as a `DeviceStorage` has them.
    """

    def __init__(self, tensor: Any, columns: Any = None) -> None:
        self.tensor, self.columns, self.device = tensor, columns, tensor.device
        self.n_rows, self.n_features = (int(size) for size in tensor.shape)
        self.dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))

    def astype(self, dtype: Any) -> DeviceMatrix:
        """In another of the kept types."""
        import torch

        return DeviceMatrix(self.tensor.to(getattr(torch, np.dtype(dtype).name)))

    def streamed(self) -> StreamedMatrix:
        """The same numbers in this process's memory."""
        return StreamedMatrix(self.tensor.cpu().numpy(), self.device, float("inf"))

    def rows(self, index: Array) -> DeviceMatrix:
        return DeviceMatrix(self.tensor[self._there(index)])

    def take(self, features: Array) -> Array:
        return np.asarray(self.tensor[:, self._there(features)].double().cpu().numpy())

    def first_not_finite(self) -> tuple[int, int, float] | None:
        if not self.tensor.is_floating_point():
            return None
        step = max(1, _PACKED_ENTRIES // max(self.n_features, 1))
        for low in range(0, self.n_rows, step):
            bad = ~self.tensor[low : low + step].isfinite()
            if bool(bad.any()):
                row, feature = (int(i) for i in bad.nonzero()[0].tolist())
                return low + row, feature, float(self.tensor[low + row, feature])
        return None

    def scores(self, features: Array, coef: Array, codes: Array | None) -> Array:
        weights = self._there(coef, np.float64)
        out = np.empty((self.n_rows, len(coef)) if codes is None else self.n_rows)
        step = max(1, _PACKED_ENTRIES // max(1, len(features)))
        chosen = self._there(features)
        for low in range(0, self.n_rows, step):
            x = self.tensor[low : low + step][:, chosen].double()
            if codes is None:
                found = x @ weights.T
            else:
                found = (x * weights[self._there(codes[low : low + step])]).sum(dim=1)
            out[low : low + step] = found.cpu().numpy()
        return out

    def _there(self, values: Array, dtype: Any = np.int64) -> Any:
        import torch

        return torch.as_tensor(np.array(values, dtype=dtype), device=self.device)


class StreamedMatrix(OnDevice):
    """An array, in memory or mapped from a file, that is larger than the room (in bytes) that it has on a device."""

    def __init__(self, array: Array, device: Any, room: float) -> None:
        self.array, self.device, self.room = array, device, room
        self.n_rows, self.n_features = array.shape
        self.dtype = array.dtype

    def take(self, features: Array) -> Array:
        return np.asarray(self.array[:, features], dtype=np.float64)

    def streamed(self) -> StreamedMatrix:
        return self

    def rows(self, index: Array) -> StreamedMatrix:
        return StreamedMatrix(np.asarray(self.array[index]), self.device, self.room)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        for row, values in enumerate(self.array if self.dtype.kind == "f" else ()):
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                return row, int(bad[0]), float(values[bad[0]])
        return None

    def scores(self, features: Array, coef: Array, codes: Array | None) -> Array:
        columns = self.take(features)
        return columns @ coef.T if codes is None else np.einsum("ij,ij->i", columns, coef[codes])
