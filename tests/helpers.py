"""What several test files need: random problems, an explicit dense form of every design, independent certificates.

Nothing here uses the package's own arithmetic: designs are centred and scaled in forty digits, objectives and duality
gaps are written down from their definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from exact_numbers import dot, soft_plus, wide
from scipy import sparse

from tasksieve.design import Design, as_storage
from tasksieve.path.problem import Problem
from tasksieve.penalties import SparseGroup

Array = np.ndarray[Any, Any]


def orthonormal(nuisance: Array) -> list[Array]:
    """An orthonormal basis of the columns: Gram-Schmidt in forty digits."""
    basis: list[Array] = []
    for column in wide(nuisance).T:
        before = np.sqrt(column @ column)
        for unit in basis:
            column = column - unit * (unit @ column)
        size = np.sqrt(column @ column)
        if size > 1e-10 * before:
            basis.append(column / size)
    return basis


def project_off(columns: Array, nuisance: Array) -> Array:
    """``(I - U U') columns`` with U an orthonormal basis of `nuisance`, in forty digits."""
    x = wide(columns)
    for unit in orthonormal(nuisance):
        x = x - np.outer(unit, unit @ x)
    return x


@dataclass
class Case:
    """A multi-task problem in plain form: raw dense blocks, flat labels and weights, and every option.

    `matrix` is the raw data: rows stacked by task, or the one matrix that all tasks share.
    """

    matrix: Array
    offsets: Array
    y: Array
    shared: bool = False
    weights: Array | None = None
    fit_intercept: bool = True
    unpenalised: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    standardize: bool = False
    loss: str = "squared"
    feature_weights: Array | None = None
    l1: Any = 0.0
    group: float = 1.0
    ridge_ratio: float = 0.0
    positive: bool = False

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def blocks(self) -> list[Array]:
        if self.shared:
            return [self.matrix] * self.n_tasks
        return [self.matrix[rows] for rows in self.rows]

    @property
    def rows(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    @property
    def s(self) -> Array:
        return np.ones(int(self.offsets[-1])) if self.weights is None else self.weights

    @property
    def penalty_weights(self) -> Array:
        u = (
            np.ones(self.n_features)
            if self.feature_weights is None
            else np.array(self.feature_weights, dtype=float)
        )
        u[self.unpenalised] = 0.0
        return u

    def but(self, **changes: Any) -> Case:
        return replace(self, **changes)

    # -- the package's view ---------------------------------------------------------------------------------------

    def design(self, storage: Any = None, **options: Any) -> Design:
        if storage is None:
            storage = as_storage(np.asfortranarray(self.matrix))
        return Design(
            storage,
            self.offsets,
            shared=self.shared,
            weights=self.weights,
            fit_intercept=self.fit_intercept,
            unpenalised=self.unpenalised,
            standardize=self.standardize,
            **options,
        )

    def problem(self, storage: Any = None, **options: Any) -> Problem:
        return Problem(
            self.design(storage, **options),
            self.y,
            loss=self.loss,
            feature_weights=self.feature_weights,
            penalty=SparseGroup(self.l1, self.group),
            ridge_ratio=self.ridge_ratio,
            positive=self.positive,
        )

    # -- the explicit view ----------------------------------------------------------------------------------------

    def nuisance(self, t: int) -> Array:
        """Raw nuisance columns of a task."""
        block = self.blocks[t]
        columns = [np.ones((len(block), 1))] if self.fit_intercept else []
        return wide(np.hstack([*columns, block[:, self.unpenalised], np.empty((len(block), 0))]))

    def scales(self) -> Array:
        """Weighted standard deviations (n_features, n_tasks), 1 where nothing is left of a column."""
        scale = np.ones((self.n_features, self.n_tasks))
        if self.standardize:
            for t, rows in enumerate(self.rows):
                q = np.sqrt(wide(self.s[rows]))[:, None]
                raw, total = q * self.blocks[t], np.sum(wide(self.s[rows]))
                x = project_off(raw, q) if self.fit_intercept else raw
                deviation = np.sqrt(np.sum(x * x, axis=0) / total) if total > 0 else np.zeros(self.n_features)
                live = deviation > 1e-13 * np.sqrt(np.sum(raw * raw, axis=0) / max(total, 1e-300))
                scale[live, t] = deviation[live]
        return scale

    def unscaled(self) -> list[Array]:
        found = []
        for t, rows in enumerate(self.rows):
            q = np.sqrt(wide(self.s[rows]))[:, None]
            found.append(project_off(q * self.blocks[t], q * self.nuisance(t)))
        return found

    def tilde(self) -> list[Array]:
        """``X~_t``, explicitly, in forty digits."""
        scale = self.scales()
        return [x / scale[:, t] for t, x in enumerate(self.unscaled())]


def row_penalty(
    group: Array, l1: Array | float = 0.0, ridge: float = 0.0, positive: bool = False, tasks: int = 2
) -> SparseGroup:
    """``sum_j group_j ||W_j||_2 + l1_j ||W_j||_1 + ridge/2 ||W||^2`` for given strengths of every row."""
    group = np.asarray(group, dtype=float)
    l1 = np.broadcast_to(np.asarray(l1, dtype=float), group.shape)
    options = {"positive": positive, "fixed_ridge": ridge}
    if not group.any():
        return SparseGroup(1.0, 0.0).on(l1, tasks, **options)
    ratio = np.divide(l1, group, out=np.zeros_like(group), where=group > 0.0)
    return SparseGroup(ratio, 1.0).on(group, tasks, **options)


# --- random problems -------------------------------------------------------------------------------------------------


def random_case(
    rng: np.random.Generator,
    *,
    tasks: int = 3,
    rows: int = 9,
    features: int = 12,
    shared: bool = False,
    kind: str = "normal",
    active: float = 0.3,
    noise: float = 0.3,
    **options: Any,
) -> Case:
    """A case with uneven tasks; `kind` "integers" stays within every storage type."""
    lengths = [rows] * tasks if shared else [max(1, rows + int(rng.integers(-3, 4))) for _ in range(tasks)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    height = rows if shared else int(offsets[-1])
    if kind == "integers":
        matrix = rng.integers(0, 6, size=(height, features)).astype(np.float64)
    else:
        matrix = rng.standard_normal((height, features))
    coef = rng.standard_normal((features, tasks)) * (rng.random((features, 1)) < active)
    case = Case(matrix, offsets, np.empty(0), shared=shared, **options)
    scale = matrix.std(axis=0) + 1e-9
    fitted = [(block - matrix.mean(axis=0)) / scale @ coef[:, t] for t, block in enumerate(case.blocks)]
    y = np.concatenate(fitted) + noise * rng.standard_normal(int(offsets[-1])) + 0.5
    if case.loss == "logistic":
        y = np.where(y > np.median(y), 1.0, -1.0)
        for own in case.rows:  # both classes in every task
            y[own.start], y[own.stop - 1] = 1.0, -1.0
    return case.but(y=y)


def random_weights(
    rng: np.random.Generator, case: Case, missing: float = 0.2, task_missing: bool = False
) -> Array:
    """Row weights with zeros (absent rows); every task keeps two rows unless one is to be lost altogether."""
    s = rng.uniform(0.3, 2.0, len(case.y)) * (rng.random(len(case.y)) >= missing)
    for rows in case.rows:
        s[rows.start] = s[rows.stop - 1] = 1.0
    if task_missing:
        s[case.rows[-1]] = 0.0
    return s


# --- objectives and certificates from their definitions --------------------------------------------------------------


def dense_coefficients(case: Case, point: Any) -> Array:
    """W (n_features, n_tasks) of a path's point, in original units."""
    w = np.zeros((case.n_features, case.n_tasks))
    w[point.features] = point.rows
    return w


def gauge_rows(m: Array, group: Array, l1: Array, positive: bool) -> Array:
    """Smallest q with ``||soft(m_j, q l1_j)|| <= q group_j`` for each row, by bisection; 0 where unpenalised."""
    size = np.maximum(m, 0.0) if positive else np.abs(m)
    total = group + l1
    high = np.divide(np.linalg.norm(size, axis=1), total, out=np.zeros(len(m)), where=total > 0)
    plain = np.divide(np.linalg.norm(size, axis=1), group, out=np.zeros(len(m)), where=group > 0)
    if not np.any(l1):
        return plain
    # group + l1 >= the dual norm's reach along an axis: a safe upper end is max(norm/(group + l1), ...) times sqrt(T)
    high = high * np.sqrt(m.shape[1]) + 1e-300
    low = np.zeros(len(m))
    for _ in range(200):
        middle = 0.5 * (low + high)
        rest = np.linalg.norm(np.maximum(size - (middle * l1)[:, None], 0.0), axis=1)
        over = rest > middle * group
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.where(total > 0, high, 0.0)


class Judge:
    """Objectives and duality gaps of a case, recomputed from raw data, coefficients and intercepts alone."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.scales = case.scales()
        # A residual without a nuisance part does not see shifts of columns where there are intercepts.
        shifts = [x.mean(axis=0) if case.fit_intercept else 0.0 for x in case.blocks]
        self._columns = [(x - m) / c for x, m, c in zip(case.blocks, shifts, self.scales.T, strict=True)]
        self._root = np.sqrt(wide(case.s))
        weights = case.penalty_weights
        self._weights, self._penalised = weights, (weights > 0)[:, None]
        self._bases = [orthonormal(self._root[rows][:, None] * case.nuisance(t)) for t, rows in enumerate(case.rows)]
        self._target = self._projected(self._root * case.y)

    def _projected(self, flat: Array) -> Array:
        parts = []
        for rows, basis in zip(self.case.rows, self._bases, strict=True):
            part = flat[rows]
            for unit in basis:
                part = part - unit * (unit @ part)
            parts.append(part)
        return np.concatenate(parts)

    def predict(self, w: Array, intercept: Array) -> Array:
        return predictions(self.case, w, intercept)

    def objective(self, lam: float, w: Array, intercept: Array) -> float:
        """The objective in sum units."""
        return float(self._objective(lam, w, self.predict(w, intercept)))

    def _objective(self, lam: float, w: Array, z: Array) -> Any:
        case = self.case
        if case.loss == "squared":
            value = 0.5 * np.sum(case.s * (case.y - z) ** 2)
        else:
            value = np.sum(case.s * soft_plus(-case.y * z))
        v, u = w * self.scales, self._weights
        value += lam * np.sum(u * (case.group * np.linalg.norm(v, axis=1) + case.l1 * np.abs(v).sum(axis=1)))
        return value + 0.5 * lam * case.ridge_ratio * np.sum(np.where(self._penalised, v, 0.0) ** 2)

    def products(self, z: Array) -> tuple[Array, Array]:
        """The residual in the weighted geometry, freed of its nuisance part, and its correlations (features, tasks).

        The residual has forty digits. Columns have lost their offsets, so that float64 products are as good as any.
        """
        case = self.case
        slope = case.y - z if case.loss == "squared" else case.y / (1.0 + np.exp(case.y * z))
        residual = self._projected(self._root * slope)
        weighted = (self._root * residual).astype(float)
        columns = zip(self._columns, case.rows, strict=True)
        return residual, np.stack([x.T @ weighted[rows] for x, rows in columns], axis=1)

    def gauges(self, lam: float, w: Array, intercept: Array) -> Array:
        """How close each feature comes to its threshold: at most 1 for all at the optimum, 1 for active ones."""
        _, m = self.products(self.predict(w, intercept))
        return self._gauges(lam, w, m)

    def _gauges(self, lam: float, w: Array, m: Array) -> Array:
        case = self.case
        shifted = np.where(self._penalised, m - lam * case.ridge_ratio * w * self.scales, 0.0).astype(float)
        return gauge_rows(
            shifted, lam * case.group * self._weights, lam * case.l1 * self._weights, case.positive
        )

    def gap(self, lam: float, w: Array, intercept: Array) -> float:
        return self.objective_and_gap(lam, w, intercept)[1]

    def objective_and_gap(self, lam: float, w: Array, intercept: Array) -> tuple[float, float]:
        """The duality gap is that with the best multiple of the residual as the dual point, over all features.

        With a ridge the dual point has one more block, ``-sqrt(ridge) W``, which is scaled along.
        """
        case = self.case
        z = self.predict(w, intercept)
        residual, m = self.products(z)
        polar = float(np.max(self._gauges(lam, w, m), initial=0.0))
        limit = 1.0 / polar if polar > 0 else np.inf
        v = np.where(self._penalised, w * self.scales, 0.0)
        ridge_square = lam * case.ridge_ratio * np.sum(v * v)
        primal = self._objective(lam, w, z)
        if case.loss == "squared":
            square, inner = residual @ residual + ridge_square, self._target @ residual
            c = max(0.0, min(float(inner / square), limit)) if square > 0 else 0.0
            return float(primal), float(primal - (c * inner - 0.5 * c * c * square))
        c = min(1.0, limit)
        p = c * np.divide(residual, self._root, out=0 * residual, where=self._root > 0) * case.y
        if p.min() < -1e-9 or p.max() > 1 + 1e-9:
            return float(primal), np.inf  # outside the domain: no dual point
        p = wide(np.clip(p, 0.0, 1.0))
        inside = (p > 0) & (p < 1)
        entropy = 0 * p
        entropy[inside] = -p[inside] * np.log(p[inside]) - (1 - p[inside]) * np.log1p(-p[inside])
        return float(primal), float(primal - (case.s @ entropy - 0.5 * c * c * ridge_square))


def predictions(case: Case, w: Array, intercept: Array) -> Array:
    """Predictions, flat, in forty digits."""
    used = np.flatnonzero(w.any(axis=1))
    parts = [dot(x[:, used], w[used, t]) + intercept[t] for t, x in enumerate(case.blocks)]
    return np.concatenate(parts)


def objective(case: Case, lam: float, w: Array, intercept: Array) -> float:
    """The objective in sum units, from raw data and coefficients in original units."""
    return Judge(case).objective(lam, w, intercept)


# --- storages --------------------------------------------------------------------------------------------------------


def memory_map(folder: Any, x: Array, name: str, order: str) -> Any:
    """The array in a file, mapped read-only."""
    path = folder / f"{name}.dat"
    created = np.memmap(path, dtype=x.dtype, mode="w+", shape=x.shape, order=order)
    created[...] = x
    created.flush()
    return np.memmap(path, dtype=x.dtype, mode="r", shape=x.shape, order=order)


def named_rows(X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> dict[str, Any]:
    """Rows as the arguments of `fit`, by name; what is None is left out."""
    rows = {"X": X, "y": y, "task": task, "sample_weight": sample_weight}
    return {name: value for name, value in rows.items() if value is not None}


def read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


def every_storage(case: Case, folder: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Storages of the same numbers (small non-negative integers), each from the user's form of the data."""
    x = case.matrix
    cuts = [0, len(x) // 3, len(x) // 2, len(x)] if case.shared else list(case.offsets)
    parts = [x[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    shuffled = rng.permutation(len(x))
    order = np.argsort(shuffled)  # shuffled data x[shuffled] sorted back
    forms: dict[str, Any] = {
        "float64 F": np.asfortranarray(x),
        "float64 C": np.ascontiguousarray(x),
        "float64 strided": np.repeat(x, 2, axis=1)[:, ::2],
        "float32 F": np.asfortranarray(x, dtype=np.float32),
        "float32 C": np.ascontiguousarray(x, dtype=np.float32),
        "int8": np.asfortranarray(x, dtype=np.int8),
        "uint8": np.asfortranarray(x, dtype=np.uint8),
        "int64": x.astype(np.int64),
        "float16": x.astype(np.float16),
        "big-endian": np.asfortranarray(x).astype(">f8"),
        "F memory map": memory_map(folder, x, "f", "F"),
        "F memory map, int8": memory_map(folder, x.astype(np.int8), "f8", "F"),
        "C memory map": memory_map(folder, x, "c", "C"),
        "C memory map, float32": memory_map(folder, x.astype(np.float32), "c4", "C"),
        "C memory map, uint8": memory_map(folder, x.astype(np.uint8), "c1", "C"),
        "C memory map, int16": memory_map(folder, x.astype(np.int16), "c2", "C"),
    }
    for dtype in (np.float64, np.float32, np.int8, np.uint8, np.int64, np.bool_):
        if dtype is not np.bool_ or x.max() <= 1:
            forms[f"CSC {np.dtype(dtype).name}"] = sparse.csc_array(x.astype(dtype))
            forms[f"CSR {np.dtype(dtype).name}"] = sparse.csr_matrix(x.astype(dtype))
    forms["COO with duplicates"] = sparse.coo_array(
        (np.repeat(x[x != 0] / 2, 2), (np.repeat(np.nonzero(x)[0], 2), np.repeat(np.nonzero(x)[1], 2))),
        shape=x.shape,
    )
    wide = sparse.csc_array(x)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms["CSC, 64-bit indices"] = wide
    unsorted = sparse.csc_array((wide.data.copy(), wide.indices.copy(), wide.indptr.copy()), shape=x.shape)
    for j in range(x.shape[1]):
        span = slice(unsorted.indptr[j], unsorted.indptr[j + 1])
        unsorted.indices[span], unsorted.data[span] = unsorted.indices[span][::-1], unsorted.data[span][::-1]
    unsorted.has_sorted_indices = False
    forms["CSC, unsorted"] = unsorted
    storages = {name: as_storage(form) for name, form in forms.items()}
    storages["list of arrays"] = as_storage(parts)
    storages["list of int8 and uint8"] = as_storage(
        [p.astype((np.int8, np.uint8)[k % 2]) for k, p in enumerate(parts)]
    )
    storages["list of int8 and float32"] = as_storage(
        [p.astype((np.int8, np.float32)[k % 2]) for k, p in enumerate(parts)]
    )
    storages["list of memory maps"] = as_storage(
        [memory_map(folder, p, f"part{k}", "FC"[k % 2]) for k, p in enumerate(parts)]
    )
    storages["list of sparse"] = as_storage([sparse.csr_array(p) for p in parts])
    storages["list of sparse and dense"] = as_storage([sparse.csr_array(parts[0]), *parts[1:]])
    storages["unsorted array"] = as_storage(x[shuffled], row_order=order)
    storages["unsorted int8"] = as_storage(np.asfortranarray(x[shuffled], dtype=np.int8), row_order=order)
    storages["unsorted sparse"] = as_storage(sparse.csc_array(x[shuffled]), row_order=order)
    storages["unsorted C memory map"] = as_storage(
        memory_map(folder, x[shuffled], "su", "C"), row_order=order
    )
    storages["unsorted F memory map"] = as_storage(
        memory_map(folder, x[shuffled], "fu", "F"), row_order=order
    )
    return storages
