"""X in a cluster: dask arrays and Zarr stores, whose columns stay with the workers of the active Dask client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..design.device.machine import in_words
from ..messages import Message, either
from ..user_warnings import warn
from .readable import LazyMatrix
from .source import Source, register

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 64 << 20  # of columns that were cut anew
_SEARCHED_BYTES = 64 << 20  # looked through together for NaN


class ClusterMatrix:
    """A matrix of two dimensions that is not here, as `read_matrix` returns it; `lazy` is the same as a dask array."""

    ndim = 2

    def __init__(self, array: Any, name: str = "X") -> None:
        from ..design.cluster.needs import needed

        if len(array.shape) != 2:
            raise ValueError(f"Expected 2D array, got {len(array.shape)}D array instead for {name}.")
        self.dtype = np.dtype(array.dtype)
        if self.dtype.kind not in "fiub":
            raise ValueError(f"{name} has dtype {self.dtype}: a dask or Zarr array must hold numbers.")
        if any(not np.isfinite(size) for size in array.shape):
            raise ValueError(
                f"{name} is a dask array whose number of rows or features is not known: call compute_chunk_sizes()."
            )
        self.array, self.name = array, name
        self.shape = int(array.shape[0]), int(array.shape[1])
        if is_zarr(array):
            self.lazy = needed("dask.array", "A Zarr store as X").from_array(array, chunks=array.chunks)
        else:
            self.lazy = array

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self.lazy[key])

    def linear_scores(self, coef: Array, intercept: Array, codes: Array | None) -> Any:
        """As of `scores.linear_scores`: a dask array, computed lazily."""
        support = np.flatnonzero(coef.any(axis=0))
        return by_rows(partial(_block_scores, coef[:, support], intercept), self.lazy[:, support], codes)

    def astype(self, dtype: Any) -> ClusterMatrix:
        """Workers bring all tasks to one type when they read them."""
        return self

    def as_columns(self, parts: Sequence[ClusterMatrix], order: Array | None) -> Any:
        """The columns of this matrix, or of several on top of each other, rows in task order."""
        from ..design.cluster import ClusterStorage
        from ..design.cluster.sources import stacked

        return ClusterStorage(stacked([part.source() for part in parts]), order)

    def source(self) -> Any:
        """Where workers read columns from; cut anew, with a warning, where blocks hold parts of them only."""
        from ..design.cluster import DaskSource, ZarrSource

        rows, features = self.lazy.numblocks
        if is_zarr(self.array) and (rows == 1 or features >= 16):
            return ZarrSource(self.array)
        if rows == 1:
            return DaskSource(self.array)
        step = max(1, _BLOCK_BYTES // (self.dtype.itemsize * max(self.shape[0], 1)))
        warn(
            Message(
                "{matrix} is cut into {rows} blocks of rows, and columns are needed: it is cut anew by features, which "
                "moves {size} once. Store it in blocks of features that hold all rows{how} to save that.",
                matrix=self.name,
                rows=rows,
                size=in_words(self.nbytes),
                how=either(f", {self.name}.rechunk((-1, {step})),"),
            ),
            UserWarning,
        )
        return DaskSource(self.lazy.rechunk((-1, step)))


def _block_scores(coef: Array, intercept: Array, rows: Array, codes: Any) -> Array:
    from .scores import linear_scores

    return linear_scores(rows, coef, intercept, codes)


def is_dask(X: Any) -> bool:
    """Whether X is a dask array, found without importing dask."""
    return type(X).__module__.startswith("dask.array")


def is_zarr(X: Any) -> bool:
    """Whether X is a Zarr array, found without importing zarr."""
    return type(X).__module__.startswith("zarr.") and hasattr(X, "chunks")


def by_rows(function: Callable[..., Array], array: Any, beside: Any = None) -> Any:
    """``function(rows, beside)`` of every block of rows of a dask array, computed lazily. `beside` is None, an array
    with an entry for each row, which is cut alike, or something for all of them."""
    import dask.array as da
    from dask import delayed

    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    cut = np.ndim(beside) == 1 and len(beside) == array.shape[0]
    like = function(np.zeros((1, *array.shape[1:]), array.dtype), beside[:1] if cut and len(beside) else beside)
    task, found, first = delayed(function), [], 0
    for size, block in zip(array.chunks[0], array.to_delayed().ravel().tolist(), strict=True):
        own = beside[first : first + size] if cut else beside
        found.append(da.from_delayed(task(block, own), (size, *like.shape[1:]), like.dtype))
        first += size
    return da.concatenate(found)


def map_rows(function: Callable[..., Any], scores: Any, beside: Any = None) -> Any:
    """``function(scores, beside)``; of a dask array that of each block of rows, when it is computed."""
    return by_rows(function, scores, beside) if is_dask(scores) else function(scores, beside)


@register
class ClusterSource(Source):
    """A dask or Zarr array, whose columns stay with the workers of the active Dask client."""

    location = "cluster"
    searched = False

    @classmethod
    def accepts(cls, X: Any) -> bool:
        return isinstance(X, ClusterMatrix) or is_dask(X) or is_zarr(X)

    @classmethod
    def read(cls, X: Any, name: str) -> ClusterSource:
        return cls(X if isinstance(X, ClusterMatrix) else ClusterMatrix(X, name))

    def readable(self) -> LazyMatrix:
        return LazyMatrix(self.matrix.lazy)

    @property
    def n_row_blocks(self) -> int:
        rows, features = self.matrix.lazy.numblocks
        return int(rows) if rows >= features else 0

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Looked for in a block of columns at a time."""
        matrix = self.matrix
        step = max(1, _SEARCHED_BYTES // (matrix.dtype.itemsize * max(matrix.shape[0], 1)))
        for low in range(0, matrix.shape[1] if matrix.dtype.kind == "f" else 0, step):
            block = matrix[:, low : low + step]
            bad = np.argwhere(~np.isfinite(block))
            if len(bad):
                row, feature = bad[0].tolist()
                return row, low + feature, float(block[row, feature])
        return None


def open_zarr(path: Any, name: str | None = None) -> Any:
    """Open a Zarr array, to be passed as X: its columns are read by the workers of the active Dask client.

    The model is fitted where the data are: each worker of the client holds a range of the features, and what crosses
    the network is of the size of the samples. Store X in blocks of features that hold all rows (``chunks=(n, k)``).

    Parameters
    ----------
    path : str or path
        Of the store, where all workers reach it: a folder on a shared file system, or an address that fsspec knows.
    name : str, optional
        Of the array, where the store is a group; by default "X".

    Returns
    -------
    zarr.Array

    See Also
    --------
    MultiTaskLasso.fit : and all other batch estimators; a list of Zarr arrays is one matrix per task.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X = ts.open_zarr("genotypes.zarr")                          # doctest: +SKIP
    >>> model = ts.MultiTaskLasso(alpha=0.1).fit(X, y, task=task)   # doctest: +SKIP
    """
    from ..design.cluster.needs import needed

    zarr = needed("zarr", "open_zarr")
    try:
        found = zarr.open(path, mode="r")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: there is no Zarr store.") from error
    if is_zarr(found):
        if name is not None:
            raise ValueError(f"{path} is an array, not a group with an array {name!r}: leave name out.")
        return found
    wanted = "X" if name is None else name
    if wanted not in found:
        raise ValueError(f"{path} is a group without an array {wanted!r}; it has {', '.join(sorted(found.keys()))}.")
    return found[wanted]
