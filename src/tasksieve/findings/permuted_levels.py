"""alpha_max of many permutations of the labels, by products of X with blocks of permuted residuals.

The residual of W = 0 moves with the labels: a loss is a sum over rows, or a norm of them, and the best intercept is the
same for the same labels in another order. So nothing is fitted again; what is left are products with the columns, and
the penalty's gauges of these. They are taken in tiles that stay in the processor's cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import one_blas_thread
from ..design.storage.base import BLOCK_BYTES
from ..fitted.arguments import kernel_threads
from ..path.problem import Problem
from ..tasks import TaskData

Array = np.ndarray[Any, Any]

_CHUNK_BYTES = 256 << 20  # of permuted residuals that are held at a time
_FEATURES, _PERMUTATIONS = 256, 256  # a tile


@dataclass(frozen=True)
class _Segment:
    """A column of coefficients: the rows of X that it is about, and where they lie in flat vectors."""

    rows: slice
    flat: slice


class PermutedLevels:
    """The smallest strength with an empty solution, for labels in other orders."""

    def __init__(self, data: TaskData, problem: Problem, n_jobs: int | None = None) -> None:
        self._data, self._problem, self._design = data, problem, problem.design
        self._threads = kernel_threads(n_jobs)
        self._segments = _segments(data, problem)
        self._covariates = len(self._design.unpenalised) > 0
        residual, samples = problem.loss.null.residual, self._design.samples
        # Weights move with the labels, so that products with raw columns are what counts; but not where covariates
        # have to be taken off again.
        self._vector = residual if self._covariates else samples.weighted(residual)
        self._moving = _weights_move(self._segments, samples.root_weights, self._design.shared)
        self._scale = self._design.scale if not self._covariates else None
        self._lock = threading.Lock()

    def __call__(self, draw: Callable[[int], Array], count: int, callback: Any = None) -> Array:
        """Levels of so many permutations; ``draw(k)`` gives the next k, each as the row whose label comes to a row."""
        penalty = self._problem.penalty
        held = 8 * (self._design.n_samples + self._data.n_rows + (0 if penalty.separable else len(penalty.weights)))
        chunk = int(np.clip(_CHUNK_BYTES // max(held, 1), 1, count))
        levels = np.empty(count)
        with one_blas_thread():
            for low in range(0, count, chunk):
                part = slice(low, min(low + chunk, count))
                levels[part] = self._chunk(draw(part.stop - low))
                if callback is not None:
                    callback(part.stop, count)
        return levels

    def _chunk(self, sources: Array) -> Array:
        permuted = [self._moved(self._vector, segment, sources) for segment in self._segments]
        if self._covariates:
            self._take_off(permuted)
        weights = None
        if self._moving and self._scale is not None:
            square = np.square(self._design.samples.root)
            weights = [self._moved(square, segment, sources) for segment in self._segments]
        if self._design.sparse and not self._covariates and weights is None:
            return self._one_by_one(permuted)
        penalty, count = self._problem.penalty, len(sources)
        pieces = penalty.pieces(self._width())
        together = None if penalty.separable else np.zeros((len(penalty.weights), count))

        def work(block: Any) -> Array:
            return self._piece(block, len(pieces) == 1, permuted, weights, together)

        with ThreadPoolExecutor(min(self._threads, len(pieces))) as pool:
            found = np.zeros(count)
            for part in pool.map(work, pieces):
                np.maximum(found, part, out=found)
        return found if together is None else np.array([penalty.polar(gauges) for gauges in together.T])

    def _width(self) -> int:
        """Columns to read at a time: more of them where reads are costly, as a row of a file has many."""
        fitting = BLOCK_BYTES // (8 * max(self._data.n_rows, 1)) if self._data.make_storage().costly_reads else 0
        return max(_FEATURES, fitting)

    def _moved(self, vector: Array, segment: _Segment, sources: Array) -> Array:
        """A segment of a flat vector after each permutation: (rows, permutations)."""
        return vector[segment.flat][sources[:, segment.rows] - segment.rows.start].T

    def _take_off(self, permuted: list[Array]) -> None:
        """Projects residuals off intercept and covariates again, and gives them back their length: the more covariates
        there are, the more of a permuted residual they would explain by chance."""
        samples = self._design.samples
        for segment, block in zip(self._segments, permuted, strict=True):
            size = np.linalg.norm(self._vector[segment.flat])
            block[samples.root[segment.flat] == 0.0] = 0.0
            for _ in range(2):
                for column in samples.basis[:, segment.flat]:
                    block -= np.outer(column, column @ block)
            left = np.linalg.norm(block, axis=0)
            block *= np.divide(size, left, out=np.zeros_like(left), where=left > 1e-10 * size)

    def _columns(self, features: Array) -> list[Array]:
        """Columns by segment, (features, rows)."""
        if self._covariates:
            with self._lock:
                found = self._design.take(features).columns
            uniform = self._design.uniform
            return [np.ascontiguousarray(found[own.rows if uniform else own.flat].T) for own in self._segments]
        with self._lock:  # a custom storage need not be thread-safe
            raw = np.array(self._data.take(features), dtype=np.float64)
        if self._problem.units.x:
            raw = np.ldexp(raw, -self._problem.units.x)
        blocks: dict[int, Array] = {}
        for own in self._segments:
            if own.rows.start not in blocks:  # classes, and tasks with one matrix, have the same rows
                part = raw[own.rows]
                if self._design.fit_intercept:  # residuals add up to nothing: this costs no digits, and may save some
                    part = part - part.mean(axis=0)
                blocks[own.rows.start] = np.ascontiguousarray(part.T)
        return [blocks[own.rows.start] for own in self._segments]

    def _piece(
        self, block: Any, whole: bool, permuted: list[Array], weights: list[Array] | None, together: Array | None
    ) -> Array:
        """Levels as far as some of the features decide them."""
        penalty = self._problem.penalty
        features = np.arange(len(penalty.weights))[block]
        own = penalty if whole else penalty.restrict(features)
        columns = self._columns(features)
        scale = None if self._scale is None else self._scale[features]
        thresholds = own.thresholds()
        best = np.zeros(permuted[0].shape[1])
        for low in range(0, len(best), _PERMUTATIONS):
            part = slice(low, min(low + _PERMUTATIONS, len(best)))
            deviations = None if scale is None else [own[:, None] for own in scale.T]
            if weights is not None:
                moved = [block[:, part] for block in weights]
                deviations = [self._deviations(x, s) for x, s in zip(columns, moved, strict=True)]
            products = _products(columns, [block[:, part] for block in permuted], deviations)
            if thresholds is not None and thresholds[1] is None:
                gauges = _norms(products, thresholds[0], own.positive)
                if together is None:
                    best[part] = np.maximum.reduce(gauges, axis=0, initial=0.0)
            else:
                rows = np.ascontiguousarray(np.stack([block.copy() for block in products]).transpose(2, 1, 0))
                gauges = np.stack([own.row_gauges(row) for row in rows], axis=1)
                if together is None:
                    best[part] = [own.polar(column) for column in gauges.T]
            if together is not None:
                together[features, part] = gauges
        return best

    def _deviations(self, columns: Array, weights: Array) -> Array:
        """Standard deviations of columns under weights that moved with the labels."""
        total = weights.sum(axis=0)
        total = np.where(total > 0.0, total, 1.0)
        spread = np.square(columns) @ weights / total
        if self._design.fit_intercept:
            spread -= np.square(columns @ weights / total)
        found = np.sqrt(np.maximum(spread, 0.0))
        return np.where(found > 0.0, found, 1.0)

    def _one_by_one(self, permuted: list[Array]) -> Array:
        """The same for a sparse matrix, whose columns are used where they lie."""
        design, penalty = self._design, self._problem.penalty
        storage, levels = design.shard.storage, np.empty(permuted[0].shape[1])
        for p in range(len(levels)):
            vector = np.concatenate([block[:, p] for block in permuted])
            products = storage.products(vector, design.offsets, design.shared, None, False, self._threads)
            if self._scale is not None:
                products /= self._scale
            levels[p] = penalty.polar(penalty.row_gauges(products))
        return levels


def _products(
    columns: list[Array], permuted: list[Array], deviations: list[Array] | None
) -> Iterator[Array]:
    """Products of some columns with some permuted residuals, segment by segment, each in the place of the last."""
    out = np.empty((len(columns[0]), permuted[0].shape[1]))
    for k, (own, block) in enumerate(zip(columns, permuted, strict=True)):
        np.matmul(own, block, out=out)
        if deviations is not None:
            out /= deviations[k]
        yield out


def _norms(products: Iterator[Array], group: Array, positive: bool) -> Array:
    """Euclidean norms of the rows of products over their strengths: (features, permutations)."""
    total: Any = 0.0
    for own in products:
        if positive:
            np.maximum(own, 0.0, out=own)
        total += np.square(own, out=own)
    inverse = np.divide(1.0, group, out=np.zeros(len(group)), where=group > 0.0)
    return np.sqrt(total) * inverse[:, None]


def _segments(data: TaskData, problem: Problem) -> list[_Segment]:
    offsets = problem.design.offsets.tolist()
    flat = [slice(*pair) for pair in zip(offsets[:-1], offsets[1:], strict=True)]
    if problem.design.shared:
        return [_Segment(slice(0, data.n_rows), own) for own in flat]
    tasks = list(data.per_task())
    counts = np.ones(data.n_tasks, dtype=np.int64) if data.class_counts is None else data.class_counts
    rows = [own for own, times in zip(tasks, counts, strict=True) for _ in range(int(times))]
    return [_Segment(slice(int(own.start), int(own.stop)), position) for own, position in zip(rows, flat, strict=True)]


def _weights_move(segments: list[_Segment], root: Array | None, shared: bool) -> bool:
    """Whether labels that change places take other weights along; rows that are not observed stay where they are."""
    if root is None:
        return False
    parts = [root[own.flat][None] for own in segments]
    if shared:
        parts = [np.concatenate(parts)]
    live = [part[:, part.any(axis=0)] for part in parts]
    return any(bool((part != part[:, :1]).any()) for part in live)
