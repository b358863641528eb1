"""Matrices as they were given, read as a verifier reads them: columns, rows, a digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .. import verify
from ..design import Storage

Array = np.ndarray[Any, Any]

_ENTRIES = 1 << 24  # of a block of rows in memory


class StoredMatrix(verify.Matrix):
    """A storage: it gives columns only. The digest runs over rows, so that a storage larger than a block of memory is
    read once for each block of rows."""

    def __init__(self, storage: Storage, rows: Array | None = None) -> None:
        self._storage, self._rows = storage, rows
        self.shape = (int(storage.n_rows) if rows is None else len(rows), int(storage.n_features))

    def columns(self, features: Any) -> Array:
        if isinstance(features, slice):
            features = np.arange(*features.indices(self.shape[1]))
        found = np.asarray(self._storage.take(np.asarray(features)), dtype=np.float64)
        return found if self._rows is None else found[self._rows]

    def take_rows(self, rows: Array) -> StoredMatrix:
        return StoredMatrix(self._storage, rows if self._rows is None else self._rows[rows])

    def digest(self) -> str:
        n, d = self.shape
        height = max(1, _ENTRIES // max(d, 1))
        width = max(1, _ENTRIES // max(n, 1))
        starts = range(0, d, width)
        return digest_of(
            np.hstack([self.columns(slice(first, first + width))[low : low + height] for first in starts])
            for low in range(0, n, height)
        )


class LazyMatrix(verify.Matrix):
    """A dask array: columns are computed when they are needed, and for the digest, which runs over rows, all blocks are
    cut anew in one reading and come one after another."""

    def __init__(self, lazy: Any) -> None:
        self._lazy, self._found = lazy, ""
        self.shape = (int(lazy.shape[0]), int(lazy.shape[1]))

    def columns(self, features: Any) -> Array:
        return np.asarray(self._lazy[:, features], dtype=np.float64)

    def take_rows(self, rows: Array) -> LazyMatrix:
        return self if len(rows) == self.shape[0] and np.all(np.diff(rows) == 1) else LazyMatrix(self._lazy[rows])

    def digest(self) -> str:
        if not self._found:
            self._found = digest_of(self._blocks())
        return self._found

    def _blocks(self) -> Iterator[Array]:
        from distributed import get_client

        rows = self._lazy.rechunk((max(1, _ENTRIES // max(self.shape[1], 1)), -1))
        pending = get_client().compute(rows.to_delayed().ravel().tolist())
        while pending:
            future = pending.pop(0)
            yield np.asarray(future.result())
            future.release()


def digest_of(blocks: Iterable[Array]) -> str:
    """Of blocks of rows, as the format has it."""
    found = verify.hashlib.sha256()
    for block in blocks:
        found.update((np.ascontiguousarray(block, dtype="<f8") + 0.0).tobytes())
    return found.hexdigest()


def by_task(sources: list[Any], labels: Any, kept: Array) -> list[verify.Matrix]:
    """A matrix for each task (the same for all where it is shared), rows as the format lists them.

    - `sources` (list of `tasks.source.Source`): One a task, or a single one, whose rows `labels` puts into task order.
    - `kept`: Entries of the flat sample space that count. Rows of a shared matrix all stay.
    """
    read, matrices = [source.readable() for source in sources], [source.matrix for source in sources]
    if labels.shared:
        return read * labels.n_tasks
    found = []
    if len(read) == 1 and hasattr(matrices[0], "readable"):
        codes = np.empty(read[0].shape[0], dtype=np.int64)
        for t, part in enumerate(labels.per_task()):
            codes[part if labels.order is None else labels.order[part]] = t
        tasks = matrices[0].readable(codes)
    for t, part in enumerate(labels.per_task()):
        rows = np.flatnonzero(kept[part])
        if len(read) > 1:
            found.append(_some_rows(matrices[t], read[t], rows))
        elif hasattr(matrices[0], "readable"):  # genotypes: a missing call is the mean of its task
            rows = rows + part.start
            found.append(tasks.take_rows(rows if labels.order is None else labels.order[rows]))
        elif hasattr(matrices[0], "patterns"):  # zeros in the place of what is absent
            rows = rows + part.start
            found.append(StoredMatrix(matrices[0][rows if labels.order is None else labels.order[rows]]))
        else:
            rows = rows + part.start
            found.append(_some_rows(matrices[0], read[0], rows if labels.order is None else labels.order[rows]))
    return found


def _some_rows(matrix: Any, read: verify.Matrix, rows: Array) -> verify.Matrix:
    """A stretch of an array is not copied."""
    if isinstance(matrix, np.ndarray) and len(rows) and np.all(np.diff(rows) == 1):
        return verify.Matrix(matrix[rows[0] : rows[-1] + 1])
    return read.take_rows(rows)
