"""What belongs to the samples: tasks, weights, intercepts. Everything here is of the size of the rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._kernels import kernels

Array = np.ndarray[Any, Any]

# An unpenalised column of which less is left beside the others is a combination of them: its coefficient is fixed at 0.
_DEPENDENT = 1e-8


@dataclass(frozen=True)
class Dependence:
    """An unpenalised column of a task that is nearly, but not exactly, a combination of those before it."""

    task: int
    column: int  # counted among the unpenalised features
    left: float  # how much of it is not


def centred(
    raw: Array,
    offsets: Array,
    shared: bool,
    root: Array,
    fit_intercept: bool,
    n_threads: int,
    basis: Array | None = None,
    out: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Columns less about their means (with an intercept), times the roots of the weights, less what a basis explains.

    Returns them, their squares and shifts, (columns, tasks), and their loadings on the basis, (basis, columns, tasks).
    """
    count, n_tasks, n_samples = raw.shape[1], len(offsets) - 1, int(offsets[-1])
    basis = np.empty((0, n_samples)) if basis is None else basis
    out = np.empty((n_samples, count), order="F") if out is None else out
    squares, shifts = np.empty((count, n_tasks)), np.empty((count, n_tasks))
    loadings = np.empty((len(basis) * count, n_tasks))
    threads = n_threads if raw.size > 100_000 else 1
    kernels.centre(raw, offsets, shared, root, basis, fit_intercept, threads, out, squares, shifts, loadings)
    return out, squares, shifts, loadings.reshape(len(basis), count, n_tasks)


class Samples:
    """The flat sample space of all tasks, and what nuisance columns explain in it.

    With row weights ``s`` (``q = sqrt(s)``) and, in each task, nuisance columns ``Z_t`` (the constant, if there is an
    intercept, and the unpenalised features), ``U_t`` is an orthonormal basis of ``diag(q_t) Z_t``. Vectors over samples
    are flat, task after task (`offsets`); for one matrix shared by all tasks, task ``t`` owns the entries
    ``t n .. (t+1) n``.

    With an intercept the unpenalised features are shifted by (about) their means before anything else is done with
    them: a feature with a large mean, a time stamp say, is an ordinary one then. The intercept takes the shift up.

    - `offsets` (array of int, shape (n_tasks + 1,)): Where each task starts in a flat vector.
    - `shared`: All tasks use all rows of the data.
    - `weights`: Flat row weights; 0 = the row is absent from that task.
    - `unpenalised` (array of shape (rows of the data, k)): Raw columns that are never penalised.
    - `nuisance_columns` (list of flat arrays): ``Z``: the constant, then the shifted unpenalised features.
    - `nuisance_shifts` (array of shape (n_nuisance, n_tasks)): What was subtracted from them.
    - `basis` (array of shape (n_basis, n_samples)): ``U``: flat rows, orthonormal within each task (zero where a task
      has fewer).
    - `weighted_nuisance` (array of shape (n_nuisance, n_samples)): ``diag(q) Z``.
    - `from_basis` (array of shape (n_tasks, n_nuisance, n_basis)): Turns coefficients of U into those of Z.
    - `nuisance_sizes` (array of shape (n_nuisance, n_tasks)): Norms of ``diag(q) Z``; infinite where a column has no
      coefficient in a task.
    - `independence` (array of shape (n_tasks,)): At most the smallest singular value of these columns, each of length
      1.
    - `dependent`: Unpenalised columns whose coefficient is fixed at 0, because others nearly explain them.
    """

    def __init__(
        self,
        offsets: Array,
        shared: bool,
        weights: Array | None,
        fit_intercept: bool,
        unpenalised: Array,
    ) -> None:
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.shared = shared
        self.fit_intercept = fit_intercept
        self.n_tasks = len(self.offsets) - 1
        self.n_samples = int(self.offsets[-1])
        self._starts = self.offsets[:-1]
        self.lengths = self.offsets[1:] - self._starts
        if self.lengths.min() <= 0:
            raise ValueError("every task needs at least one row (a row may have weight 0)")
        #: terms of a task's longest sum
        self.depth = int(self.lengths.max())
        self.weights = weights
        self.root_weights = None if weights is None or (weights == 1.0).all() else np.sqrt(weights)
        #: the same as an array in any case
        self.root = np.ones(self.n_samples) if self.root_weights is None else self.root_weights
        #: every task sees the very same columns, weights included
        self.uniform = shared and bool(np.all(self.root.reshape(self.n_tasks, -1) == self.root[: self.depth]))
        raw = [np.tile(column, self.n_tasks) if shared else np.ascontiguousarray(column) for column in unpenalised.T]
        constant = [np.ones(self.n_samples)] if fit_intercept else []
        self.nuisance_shifts = np.zeros((len(constant) + len(raw), self.n_tasks))
        self.nuisance_columns = list(constant)
        for column, shift in zip(raw, self.nuisance_shifts[len(constant) :], strict=True):
            shift[:] = self.means(column)
            self.nuisance_columns.append(column - self.per_sample(shift))
        self._weigh_nuisance(constant + raw)

    def _weigh_nuisance(self, raw: list[Array]) -> None:
        """What follows from the weights for the nuisance columns; `raw` are these before they were shifted."""
        #: norms of the weighted constant, by task
        self.root_totals = self.task_norms(self.root)
        self.dependent: list[Dependence] = []
        self.nuisance_sizes = np.full(self.nuisance_shifts.shape, np.inf)
        self.independence = np.ones(self.n_tasks)
        self.basis, self.from_basis = self._nuisance_basis(raw)
        weighted = [self.weighted(column) for column in self.nuisance_columns]
        self.weighted_nuisance = np.array(weighted).reshape(-1, self.n_samples)
        self._inverse_sizes = 1.0 / self.nuisance_sizes  # 0 where a column has no coefficient
        self._used_rounding = (8.0 * 2.0**-53) * (self._inverse_sizes > 0.0)
        #: norms of the weighted nuisance columns
        self.nuisance_lengths = self.task_norms(self.weighted_nuisance)

    def reweighted(self, metric: Array) -> Samples:
        """The same samples and nuisance columns with other weights of the rows: `metric` times those that they have."""
        other = copy(self)
        other.weights = metric if self.weights is None else metric * self.weights
        other.root = other.root_weights = np.sqrt(other.weights)
        other.uniform = False
        other._weigh_nuisance(other.nuisance_columns)
        return other

    @property
    def n_nuisance(self) -> int:
        return len(self.nuisance_columns)

    def part(self, tasks: Array, factors: Array | None = None) -> Samples:
        """The same of some tasks, the row weights of each multiplied by a factor: the basis stays what it is."""
        found, rows = copy(self), self.rows_of(tasks)
        root = np.ones(len(tasks)) if factors is None else np.sqrt(factors)
        found.n_tasks, found.lengths = len(tasks), self.lengths[tasks]
        found.offsets = np.concatenate([[0], np.cumsum(found.lengths)]).astype(np.int64)
        found._starts, found.n_samples = found.offsets[:-1], int(found.offsets[-1])
        found.depth = int(found.lengths.max())
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        found.weights = weights[rows] if factors is None else weights[rows] * found.per_sample(factors)
        found.root_weights = None if (found.weights == 1.0).all() else np.sqrt(found.weights)
        found.root = np.ones(found.n_samples) if found.root_weights is None else found.root_weights
        found.uniform = self.uniform and bool(np.all(root == root[0]))
        found.nuisance_shifts = np.ascontiguousarray(self.nuisance_shifts[:, tasks])
        found.nuisance_columns = [column[rows] for column in self.nuisance_columns]
        found.root_totals = self.root_totals[tasks] * root
        places = {t: k for k, t in enumerate(tasks.tolist())}
        found.dependent = [replace(one, task=places[one.task]) for one in self.dependent if one.task in places]
        found.nuisance_sizes = np.ascontiguousarray(self.nuisance_sizes[:, tasks] * root)
        found.independence = self.independence[tasks]
        found.basis = np.take(self.basis, rows, axis=1)
        found.from_basis = np.ascontiguousarray(self.from_basis[tasks] / root[:, None, None])
        weighted = [found.weighted(column) for column in found.nuisance_columns]
        found.weighted_nuisance = np.array(weighted).reshape(-1, found.n_samples)
        found._inverse_sizes = 1.0 / found.nuisance_sizes
        found._used_rounding = np.ascontiguousarray(self._used_rounding[:, tasks])
        found.nuisance_lengths = self.nuisance_lengths[:, tasks] * root
        return found

    def rows_of(self, tasks: Array) -> Array:
        """Where the samples of some tasks are in a flat vector."""
        return np.concatenate([np.arange(self.offsets[t], self.offsets[t + 1]) for t in tasks.tolist()])

    def task_sums(self, vector: Array) -> Array:
        """Sums of a flat vector, or of several, over each task."""
        if self.n_tasks == 1:
            return np.asarray(np.add.reduce(vector, axis=-1, keepdims=True))
        return np.asarray(np.add.reduceat(vector, self._starts, axis=-1))

    def task_norms(self, vector: Array) -> Array:
        """Norms of a flat vector, or of several, in each task."""
        return np.sqrt(self.task_sums(np.square(vector)))

    def exact_products(self, first: Array, second: Array) -> Array:
        """Inner products of two flat vectors in each task, or of one with several, as if summed in twice the
        precision."""
        if second.ndim == 1:
            return self.exact_cut(first, second, self.offsets)
        count = len(second)
        found = self.exact_cut(np.tile(first, count), second.ravel(), self._one_after_another(count))
        return found.reshape(count, self.n_tasks)

    @staticmethod
    def exact_cut(first: Array, second: Array, offsets: Array) -> Array:
        """The same for vectors of any length, cut at these offsets."""
        out, rest = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1)
        kernels.exact_products(np.ascontiguousarray(first), np.ascontiguousarray(second), offsets, out, rest)
        return out

    def orthogonality(self, vector: Array) -> tuple[Array, Array]:
        """By nuisance column and task: how far a flat vector, or each of several, is from orthogonal, at most, for a
        column of length 1; and the vector's norms by task."""
        several, cuts = vector.shape[:-1], self.offsets
        columns = [self.weighted_nuisance, self._inverse_sizes, self._used_rounding]
        if several:
            count = len(vector)
            columns, cuts = [np.tile(column, count) for column in columns], self._one_after_another(count)
        found, lengths = np.empty(columns[1].shape), np.empty(columns[1].shape[1])
        kernels.measure_against(columns[0], vector.ravel(), cuts, *columns[1:], found, lengths)
        return found.reshape(-1, *several, self.n_tasks), lengths.reshape(*several, self.n_tasks)

    def _one_after_another(self, count: int) -> Array:
        """Where tasks end in so many flat vectors, one after another."""
        starts = self.offsets[:-1] + self.n_samples * np.arange(count)[:, None]
        return np.append(starts.ravel(), count * self.n_samples)

    def means(self, vector: Array) -> Array:
        """About the weighted mean of a flat vector in each task, within its range; 0 without an intercept. Whatever is
        constant in a task is exactly zero once this is subtracted."""
        if not self.fit_intercept:
            return np.zeros(self.n_tasks)
        column = np.asfortranarray(vector[:, None], dtype=np.float64)
        return centred(column, self.offsets, False, self.root, True, 1)[2][0]

    def per_sample(self, values: Array) -> Array:
        """One value per task, or several rows of these, repeated over the task's samples."""
        return values.repeat(self.lengths, axis=-1)

    def project(self, vector: Array) -> Array:
        """``(I - U U') vector``: the part of a flat vector that nuisance columns cannot explain."""
        if self.uniform and self.n_tasks > 1:  # the same basis for all tasks: products of small matrices
            block = vector.reshape(self.n_tasks, -1)
            for column in self.basis[:, : block.shape[1]]:
                block = block - np.outer(block @ column, column)
            return block.ravel()
        for column in self.basis:
            vector = vector - column * self.per_sample(self.task_sums(column * vector))
        return vector

    def weighted(self, vector: Array) -> Array:
        """``diag(q) vector``."""
        return vector if self.root_weights is None else self.root_weights * vector

    def nuisance_fit(self, vector: Array) -> Array:
        """Weighted least-squares coefficients of a raw flat vector on the nuisance columns: (n_nuisance, n_tasks)."""
        weighted = self.weighted(vector)
        return self.coefficients(self.task_sums(self.basis * weighted))

    def coefficients(self, loadings: Array) -> Array:
        """Coefficients of the nuisance columns, (n_nuisance, ..., n_tasks), from those of the basis."""
        if self.from_basis.shape[1:] == (1, 1):
            return np.asarray(self.from_basis[:, 0, 0] * loadings)
        return np.asarray(np.einsum("tzb,b...t->z...t", self.from_basis, loadings))

    def _nuisance_basis(self, raw: list[Array]) -> tuple[Array, Array]:
        """Flat rows ``U``, orthonormal within each task, and the matrices (tasks, n_nuisance, n_basis) that turn
        coefficients of U into those of the nuisance columns.

        Gram and Schmidt's method, each column twice, in the order of the columns: one that depends on those before it
        has no place in the basis, and the coefficient 0.
        """
        count = self.n_nuisance
        if count == 1 and self.fit_intercept:
            totals = self.root_totals
            inverse = np.divide(1.0, totals, out=np.zeros(self.n_tasks), where=totals > 0.0)
            self.nuisance_sizes[0] = np.where(totals > 0.0, totals, np.inf)
            return (self.root * self.per_sample(inverse))[None, :], inverse[:, None, None]
        basis, backwards = np.zeros((count, self.n_samples)), np.zeros((self.n_tasks, count, count))
        for t in range(self.n_tasks):
            rows = slice(self.offsets[t], self.offsets[t + 1])
            kept: list[int] = []
            upper = np.zeros((count, count))  # diag(q) Z = U upper, on the kept columns
            for z, column in enumerate(self.nuisance_columns):
                rest = column[rows] if self.root_weights is None else self.root_weights[rows] * column[rows]
                size = float(np.linalg.norm(rest))
                if size == 0.0:
                    continue  # constant in this task: the intercept covers it
                rest, parts = rest / size, np.zeros(count)
                for _ in range(2):
                    for b in range(len(kept)):
                        inner = float(basis[b, rows] @ rest)
                        rest = rest - inner * basis[b, rows]
                        parts[b] += inner
                left = float(np.linalg.norm(rest))
                if left <= _DEPENDENT:
                    if not self._exactly(raw, z, rows, kept):
                        self.dependent.append(Dependence(t, z - int(self.fit_intercept), left))
                    continue
                basis[len(kept), rows] = rest / left
                parts[len(kept)] = left
                upper[:, len(kept)] = size * parts
                self.nuisance_sizes[z, t] = size
                kept.append(z)
            positions = np.arange(len(kept))
            inverse = np.linalg.inv(upper[np.ix_(positions, positions)]) if kept else np.empty((0, 0))
            backwards[t][np.ix_(np.array(kept, dtype=np.int64), positions)] = inverse
            if len(kept) > 1:  # the triangular factor of columns of length 1 has their singular values
                factor = upper[np.ix_(positions, positions)] / self.nuisance_sizes[kept, t]
                least = float(np.linalg.svd(factor, compute_uv=False)[-1])
                slack = 8.0 * (len(kept) + 1) * (int(self.lengths[t]) + 8) * np.finfo(np.float64).eps
                self.independence[t] = max(least - slack, 0.0)
        used = int(np.max(np.count_nonzero(backwards.any(axis=1), axis=1), initial=0))
        return basis[:used].copy(), backwards[:, :, :used].copy()

    def _exactly(self, raw: list[Array], z: int, rows: slice, kept: list[int]) -> bool:
        """Whether a raw column is a sum of whole multiples of others, as dummy variables are: nothing is lost then."""
        others = np.stack([raw[k][rows] for k in kept], axis=1)
        live = slice(None) if self.root_weights is None else self.root_weights[rows] > 0.0
        found, *_ = np.linalg.lstsq(others[live], raw[z][rows][live], rcond=None)
        return bool(np.all(others[live] @ np.round(found) == raw[z][rows][live]))
