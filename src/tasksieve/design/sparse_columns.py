"""Columns of a sparse matrix for a solver, used where they lie: nothing is packed, nothing becomes dense."""

from __future__ import annotations

from typing import Any

import numpy as np

from .design import Design

Array = np.ndarray[Any, Any]


class SparseColumns:
    """What `PackedColumns` offers, on sparse storage: weights, centring and scaling are applied to the vectors."""

    def __init__(self, design: Design) -> None:
        if not design.sparse:
            raise ValueError("SparseColumns needs sparse storage, and columns that are not mostly offset")
        self._shard = design.shard
        self.design = design
        self.offsets = design.offsets
        self.n_tasks = design.n_tasks
        self._x = self._shard.storage.x
        self._chosen = np.empty(0, dtype=np.int64)
        self._block: Any = None

    def positions(self, features: Array) -> Array:
        return np.asarray(features, dtype=np.int64)

    def shifts(self, positions: Array) -> Array:
        """What was subtracted from the raw columns: nothing, they stay sparse."""
        return np.zeros((len(positions), self.n_tasks))

    def loadings(self, positions: Array) -> Array:
        """Coefficients of the columns on the nuisance basis: (n_basis, len(positions), n_tasks)."""
        if not len(self.design.nuisance_basis):
            return np.empty((0, len(positions), self.n_tasks))
        found = self._shard.basis_loadings(positions)
        return found / self._shard.scale(positions) if self._shard.standardize else found

    def sizes(self, positions: Array) -> Array:
        """Upper bounds of the columns' norms before anything was projected out of them: (len(positions), n_tasks)."""
        squares = np.square(self.design.norms(positions)) + np.sum(np.square(self.loadings(positions)), axis=0)
        return np.sqrt(squares)

    def correlate(self, r: Array, positions: Array) -> Array:
        """``X~' r`` on some columns: (len(positions), n_tasks)."""
        passes = self._shard.passes  # these columns are the solver's: no pass over the data is counted
        out = self._shard.correlate(r, positions)
        self._shard.passes = passes
        return out

    def norms_under(self, metric: Array, positions: Array) -> Array | None:
        """As of `ColumnBlock`: not known here, where columns are not formed."""
        return None

    def combine(self, positions: Array, rows: Array) -> Array:
        """``X~ W`` as a flat vector, for the given rows of W."""
        design = self.design
        block = self.block(positions)
        rows = design.original_units(positions, rows)
        if design.shared or design.n_tasks == 1:
            flat = np.ascontiguousarray((block @ np.ascontiguousarray(rows)).T).ravel()
        else:
            task_of = np.repeat(np.arange(design.n_tasks), np.diff(design.offsets))
            column = np.repeat(np.arange(len(positions)), np.diff(block.indptr))
            terms = block.data * rows[column, task_of[block.indices]]
            flat = np.bincount(block.indices, weights=terms, minlength=design.n_samples)
        if design.root_weights is not None:
            flat = design.root_weights * flat
        return design.project(flat)

    def block(self, positions: Array) -> Any:
        """The raw columns, compressed; the last ones are cached."""
        if self._block is None or not np.array_equal(self._chosen, positions):
            self._chosen = np.array(positions)
            self._block = self._x[:, positions].astype(np.float64)
        return self._block
