"""Columns that lie on a device: a torch tensor, feature by feature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from ..storage.base import ColumnStorage, ProductRequest, Reading, read_grouped
from . import digits
from .digits import ALIGNED
from .passes import segment_products, shared_products

Array = np.ndarray[Any, Any]

KEPT_TYPES = (torch.float64, torch.float32, torch.int8, torch.uint8)
_BLOCK_BYTES = 256 << 20  # moved at a time


class DeviceStorage(ColumnStorage):
    """One column after another, rows in task order, each padded to whole groups of 16 entries; never written to."""

    costly_reads = False

    def __init__(self, x: torch.Tensor, n_rows: int) -> None:
        self.x, self.n_rows, self.n_features = x, n_rows, int(x.shape[0])
        self.device = x.device
        self.dtype = np.dtype(str(x.dtype).removeprefix("torch."))
        self._offsets: tuple[bytes, torch.Tensor] | None = None
        if self.device.type == "cuda":
            self._written = torch.cuda.Event()
            self._written.record(torch.cuda.current_stream(self.device))

    @classmethod
    def of(cls, parts: Sequence[torch.Tensor], row_order: Array | None, device: torch.device) -> DeviceStorage:
        """Matrices on any device, (rows, features) each, stacked on top of each other, rows in task order then: a
        copy, unless a single one lies there feature by feature already."""
        kind = parts[0].dtype
        for part in parts[1:]:
            kind = torch.promote_types(kind, part.dtype)
        if kind not in KEPT_TYPES:  # other numbers, and int8 beside uint8
            kind = torch.float64
        n_rows, n_features = sum(len(part) for part in parts), int(parts[0].shape[1])
        if len(parts) == 1 and row_order is None and parts[0].device == device and kind == parts[0].dtype:
            columns = parts[0].T
            if columns.is_contiguous() and n_rows % ALIGNED == 0 and columns.data_ptr() % ALIGNED == 0:
                return cls(columns, n_rows)
        out = torch.zeros((n_features, -(-n_rows // ALIGNED) * ALIGNED), dtype=kind, device=device)
        order = None if row_order is None else torch.from_numpy(np.ascontiguousarray(row_order)).to(device)
        step = max(1, _BLOCK_BYTES // (kind.itemsize * max(n_rows, 1)))
        for low in range(0, n_features, step):
            columns = slice(low, min(low + step, n_features))
            blocks = [part[:, columns].to(device=device, dtype=kind) for part in parts]
            block = torch.cat(blocks) if len(blocks) > 1 else blocks[0]
            out[columns, :n_rows] = (block if order is None else block[order]).T
        return cls(out, n_rows)

    @property
    def nbytes(self) -> int:
        return self.x.numel() * self.x.itemsize

    def on(self, array: Array) -> torch.Tensor:
        """A copy of an array beside the columns."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, non_blocking=True)

    def multiply(
        self,
        vectors: Sequence[Array],
        offsets: Array,
        shared: bool,
        columns: Array | None = None,
        squares: bool = False,
    ) -> list[torch.Tensor]:
        """`products` of several vectors that cut the rows alike, in one reading; they stay on the device."""
        chosen = None if columns is None else self.on(np.asarray(columns, dtype=np.int64))
        tasks = len(offsets) - 1
        stacked = self.on(np.stack(vectors))
        if shared and tasks > 1:
            wide = shared_products(self.x, self.n_rows, stacked.reshape(-1, self.n_rows), chosen, squares)
            return [wide[:, k * tasks : (k + 1) * tasks] for k in range(len(vectors))]
        found = segment_products(self.x, self.n_rows, stacked, offsets, self._cut(offsets), chosen, squares)
        return list(found.unbind(0))

    def lengths(self, vector: Array, offsets: Array) -> torch.Tensor:
        """Lengths over the tasks of the products of all columns with a vector of stacked rows."""
        cut = self._cut(offsets)
        return segment_products(self.x, self.n_rows, self.on(vector)[None], offsets, cut, lengths=True)[0]

    def lengths_of(
        self, vectors: torch.Tensor, offsets: Array, scale: torch.Tensor | None = None, cut: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same of several vectors on the device, (V, n_rows), in one reading: (V, n_features); and (V,): what they
        may be off beside rounding, times the longest part of a column in a task. Columns are divided by `scale`,
        (features, tasks or 1); `cut` are the offsets, on the device."""
        cut = self._cut(offsets) if cut is None else cut
        nothing = torch.zeros(len(vectors), dtype=torch.float64, device=self.device)
        if scale is not None:
            found = segment_products(self.x, self.n_rows, vectors, offsets, cut)
            return torch.linalg.vector_norm(found / scale, dim=2), nothing
        if digits.usable(self.x, offsets, len(vectors)):
            return digits.lengths(self.x, vectors, offsets, cut)
        return segment_products(self.x, self.n_rows, vectors, offsets, cut, lengths=True), nothing

    def lengths_of_shared(self, vectors: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        """The same where all tasks share the rows: of vectors (V, tasks, n_rows)."""
        out = torch.empty((len(vectors), self.n_features), dtype=torch.float64, device=self.device)
        flat = vectors.flatten(0, 1)
        step = max(1, _BLOCK_BYTES // (8 * max(len(flat), self.n_rows)))
        for low in range(0, self.n_features, step):
            part = slice(low, low + step)
            found = shared_products(self.x[part], self.n_rows, flat, None, False).reshape(-1, *vectors.shape[:2])
            found = found if scale is None else found / scale[part, None]
            out[:, part] = torch.linalg.vector_norm(found, dim=2).T
        return out

    def _cut(self, offsets: Array) -> torch.Tensor:
        """Offsets on the device; the last ones are kept."""
        key = offsets.tobytes()
        if self._offsets is None or self._offsets[0] != key:
            self._offsets = key, self.on(np.asarray(offsets, dtype=np.int64))
        return self._offsets[1]

    def read(self, asked: Sequence[ProductRequest], threads: int) -> Reading:
        found, spent = self.read_there(asked)
        return Reading([part.cpu().numpy() for part in found], spent)

    def read_there(self, asked: Sequence[ProductRequest]) -> Reading:
        """The same, but products stay on the device."""

        def together(own: list[ProductRequest]) -> list[torch.Tensor]:
            a = own[0]
            return self.multiply([one.vector for one in own], a.offsets, a.shared, a.columns, a.squares)

        return read_grouped(asked, self.n_features, together)

    def gather(self, features: Array) -> torch.Tensor:
        """Raw columns on the device, (len(features), n_rows), float64."""
        return self.x[self.on(np.asarray(features, dtype=np.int64)), : self.n_rows].to(torch.float64)

    def take(self, features: Array) -> Array:
        # a transposed contiguous block is the Fortran order that is needed
        if self.device.type != "cuda":
            return self.gather(features).numpy().T
        aside = _aside(self.device)  # not after whatever the device has to do for a solver, but after X is there
        aside.wait_event(self._written)
        with torch.cuda.stream(aside):
            columns = self.x[self.on(np.asarray(features, dtype=np.int64)), : self.n_rows]
            return columns.cpu().numpy().astype(np.float64, copy=False).T  # small numbers travel as such


@cache
def _aside(device: torch.device) -> Any:
    return torch.cuda.Stream(device)
