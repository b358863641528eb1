r"""Tasks: from the data as people have it to one flat sample space.

Three forms come in: rows stacked with a ``task`` label each, a list of matrices with a list of targets, one
matrix shared by all tasks with the targets as columns of Y. One form goes on: the entries of y, the weights
and, later, residuals and dual points are one flat vector of length N, in which task t is the slice
``offsets[t]:offsets[t + 1]``. A label that is not observed, a row of weight 0 and a row held out in
cross-validation are one and the same thing: a row whose weight is 0. Nothing is ever copied for them.

.. math:: \bar n = \frac1T \sum_{t,i} s_{ti}, \qquad s_{ti} = \text{sample weight, 0 if } y_{ti}
   \text{ is not observed}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn import get_config

from .design import as_storage

Form = Literal["stacked", "list", "shared", "single"]

# What the kernels read as it lies in memory; everything else becomes float64.
KEPT_TYPES = (np.float64, np.float32, np.int8, np.uint8)

# Entries looked at together when X is searched for NaN: the block stays in the processor's cache.
BLOCK_ENTRIES = 1 << 18

# A memory map of another type than the kept ones is converted only while the copy is small.
LARGEST_CONVERTED_MAP = 1 << 28


# --- the matrix ----------------------------------------------------------------------------------------


# Matrices of at least so many entries are not searched for NaN when they are read.
SEARCHED_ENTRIES = 1 << 22


def is_task_list(X: Any) -> bool:
    """Whether X is a list of tasks: a list (or tuple) whose items are 2-D. A list of rows is one matrix."""
    if not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    shape = getattr(first, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], list | tuple | np.ndarray)


def read_matrix(X: Any, name: str = "X", *, min_rows: int = 1, search: bool = True) -> Any:
    """X as a 2-D array or CSR/CSC matrix of a kept type, without NaN or infinity; a copy only if it must be.

    Parameters
    ----------
    X : array, data frame, scipy sparse matrix or array, memory map, or a list of rows
        float64, float32, int8 and uint8 stay what they are, bool is read as uint8; others become float64.
    name : str
        What to call it in error messages.
    min_rows : int
        Fewer rows are an error.
    search : bool
        Look for NaN and infinity here; otherwise whoever reads X next does (`refuse_not_finite`).

    Notes
    -----
    The search for NaN and infinity is one pass over X; ``sklearn.config_context(assume_finite=True)`` leaves it out.
    """
    if scipy.sparse.issparse(X) or _is_sparse_frame(X):
        matrix = _read_sparse(X, name)
    else:
        matrix = _read_dense(X, name)
    n_rows, n_features = matrix.shape
    if n_rows < min_rows:
        raise ValueError(
            f"{name} has {n_rows} sample(s) (shape={matrix.shape}) while a minimum of {min_rows} is required."
        )
    if n_features < 1:
        raise ValueError(f"{name} has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    if search and not get_config()["assume_finite"]:
        refuse_not_finite(matrix, name)
    return matrix


def refuse_not_finite(matrix: Any, name: str) -> None:
    """Raise a ValueError that names the first NaN or infinity of a matrix, if there is one."""
    if matrix.dtype.kind != "f":
        return
    bad = _first_not_finite(matrix.data if scipy.sparse.issparse(matrix) else matrix)
    if bad is not None:
        _raise_not_finite(matrix, bad, name)


def _read_dense(X: Any, name: str) -> np.ndarray:
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(f"{name} is a masked array: fill its masked entries or drop their rows.")
    if type(X) is np.ndarray or isinstance(X, np.memmap):
        matrix = X
    else:
        try:
            matrix = np.asarray(X)
        except ValueError as error:
            raise ValueError(
                f"{name} is neither a matrix nor a list of matrices: {error}. "
                "A list of tasks has 2-D items, one per task."
            ) from error
    if matrix.ndim != 2:
        hint = (
            "Pass list(X) to give one matrix per task."
            if matrix.ndim == 3
            else "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
        raise ValueError(f"Expected 2D array, got {matrix.ndim}D array instead for {name}. {hint}")
    dtype = matrix.dtype
    if dtype.type in KEPT_TYPES and dtype.isnative:
        return matrix
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}.")
    if dtype.kind == "b":
        return matrix.view(np.uint8)
    if isinstance(matrix, np.memmap) and matrix.size > LARGEST_CONVERTED_MAP:
        raise ValueError(
            f"{name} is a memory map of dtype {dtype}, which would have to be copied: "
            "write it as float64, float32, int8 or uint8."
        )
    return matrix.astype(np.float64)


def _is_sparse_frame(X: Any) -> bool:
    """A pandas data frame all of whose columns are sparse with zeros left out (told without importing pandas)."""
    types = getattr(X, "dtypes", None)
    if types is None or not hasattr(X, "sparse") or not hasattr(types, "__iter__"):
        return False
    return all(type(dtype).__name__ == "SparseDtype" and dtype.fill_value == 0 for dtype in types)


def _read_sparse(X: Any, name: str) -> Any:
    matrix = X if scipy.sparse.issparse(X) else X.sparse.to_coo()
    if len(matrix.shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(matrix.shape)}D sparse array instead for {name}.")
    if matrix.format not in ("csr", "csc"):
        matrix = matrix.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix is never modified
        matrix.sum_duplicates()
    dtype = matrix.dtype
    if dtype.type in KEPT_TYPES and dtype.isnative:
        return matrix
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}.")
    return matrix.astype(np.uint8 if dtype.kind == "b" else np.float64)


def _first_not_finite(entries: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first entry (in storage order) that is NaN or infinite, or None.

    One pass in blocks along the slowest axis. A sum shows NaN and infinity without an array of flags; it may also
    overflow without either, so only a block whose sum is not finite is looked at entry by entry.
    """
    slow = int(np.argmax(np.abs(entries.strides))) if entries.ndim > 1 else 0
    length = entries.shape[slow]
    step = max(1, BLOCK_ENTRIES * length // max(1, entries.size))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, length, step):
            block = entries[(slice(None),) * slow + (slice(start, start + step),)]
            if np.isfinite(np.add.reduce(block, axis=None)):
                continue
            bad = np.argwhere(~np.isfinite(block))
            if len(bad):
                index = [int(i) for i in bad[0]]
                index[slow] += start
                return tuple(index)
    return None


def _raise_not_finite(matrix: Any, index: tuple[int, ...], name: str) -> None:
    if scipy.sparse.issparse(matrix):
        value, (entry,) = matrix.data[index], index
        major, minor = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1, int(matrix.indices[entry])
        row, feature = (major, minor) if matrix.format == "csr" else (minor, major)
    else:
        value, (row, feature) = matrix[index], index
    kind = "NaN" if np.isnan(value) else "infinity (inf)"
    raise ValueError(
        f"Input {name} contains {kind}: row {row}, feature {feature}. "
        "Impute it (for example sklearn.impute.SimpleImputer) or drop the row."
    )


# --- labels and weights --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskLabels:
    """Targets and weights in the flat sample space.

    Attributes
    ----------
    form : {"stacked", "list", "shared", "single"}
        How the data came; "single" is a 1-D y without ``task``.
    tasks : ndarray of shape (T,)
        Task labels in the order of ``coef_``.
    offsets : int64 ndarray of shape (T + 1,)
    y : ndarray of shape (N,)
        Targets: float64 (0 where not observed), or -1 / +1 for classes.
    weights : float64 ndarray of shape (N,)
        ``sample_weight``, 0 where the label is not observed; task weights are not in it.
    order : int64 ndarray or None
        Permutation that sorts stacked rows by task; None where they are sorted already.
    n_rows : int
        Rows of X: N, or N / T for a shared matrix.
    classes : ndarray of two labels, list of such pairs (one per task), or None
    """

    form: Form
    tasks: np.ndarray
    offsets: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    order: np.ndarray | None
    n_rows: int
    classes: Any = None

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def shared(self) -> bool:
        return self.form == "shared"

    @property
    def n_bar(self) -> float:
        """Total weight of the observed labels / number of tasks."""
        return float(np.add.reduce(self.weights)) / self.n_tasks

    @property
    def weight_per_task(self) -> np.ndarray:
        return np.add.reduceat(self.weights, self.offsets[:-1])

    @property
    def task_of_sample(self) -> np.ndarray:
        """Index of the task of every entry of the flat sample space."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))

    def flatten(self, values: Any) -> np.ndarray:
        """Values in the form of y (an array, or a list of arrays), as a flat vector."""
        if self.form == "list":
            return np.concatenate([np.asarray(part) for part in values])
        if self.shared:
            return np.asarray(values).ravel(order="F")
        return values if self.order is None else values[self.order]

    def flatten_rows(self, values: np.ndarray) -> np.ndarray:
        """One value per row of X, rows in the order they were given, as a flat vector."""
        if self.shared:
            return np.tile(values, self.n_tasks)
        return values if self.order is None else values[self.order]

    def per_task(self) -> Iterator[slice]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield slice(start, stop)


@dataclass(frozen=True)
class TaskData(TaskLabels):
    """Labels, weights and the matrix they belong to: all that a problem is made of.

    Attributes
    ----------
    storage : storage of `tasksieve.design`
        X, stored once whatever the number of tasks.
    n_features : int
    task_weights : float64 ndarray of shape (T,)
    unsearched : list of (matrix, name)
        Large matrices in which NaN and infinity have not been looked for: the norms of their columns will tell.
    """

    storage: Any = None
    n_features: int = 0
    task_weights: Any = None
    task_weights_rule: Any = None
    unsearched: Any = ()

    def refuse_not_finite(self) -> None:
        """Raise a ValueError that names the first NaN or infinity of X, if there is one."""
        for matrix, name in self.unsearched:
            refuse_not_finite(matrix, name)

    @property
    def sample_weights(self) -> np.ndarray:
        """Weights of the loss: sample weight times task weight."""
        if self.task_weights_rule is None:
            return self.weights
        return self.weights * np.repeat(self.task_weights, np.diff(self.offsets))

    def with_weights(self, weights: np.ndarray) -> TaskData:
        """The same data under other sample weights: how folds and masks are made, without a copy of X."""
        changed = replace(self, weights=weights)
        return replace(changed, task_weights=_task_weights(self.task_weights_rule, changed))


def read_tasks(
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    task_weights: Any = None,
    targets: Literal["values", "classes"] = "values",
) -> TaskData:
    """Read X, y, task and weights in any form of the contract.

    Parameters
    ----------
    X : matrix, or list of matrices (one per task)
    y : array of shape (n,) or (n, T), or list of 1-D arrays
        NaN (None, NA) is a label that is not observed.
    task : array of shape (n,), optional
        One label per row of a stacked X.
    sample_weight : scalar, or array or list in the form of y, optional
    task_weights : array, dict or "balanced", optional
    targets : {"values", "classes"}
        Numbers, or labels of two classes to be read as -1 / +1.
    """
    # The norms of the columns show NaN and infinity too, and are needed anyway: a large matrix is not read twice.
    unsearched: list[tuple[Any, str]] = []
    if is_task_list(X):
        matrix, rows = _read_list(X, unsearched)
    else:
        matrix = _read_once(X, "X", unsearched)
        rows = matrix.shape[0]
    labels = read_labels(rows, y, task, sample_weight, targets=targets)
    return TaskData(
        **vars(labels),
        storage=as_storage(matrix, row_order=labels.order),
        n_features=(matrix[0] if isinstance(matrix, list) else matrix).shape[1],
        task_weights=_task_weights(task_weights, labels),
        task_weights_rule=task_weights,
        unsearched=unsearched,
    )


def _read_once(X: Any, name: str, unsearched: list[tuple[Any, str]]) -> Any:
    """`read_matrix`, leaving the search for NaN in a large matrix to whoever measures its columns."""
    large = int(np.prod(getattr(X, "shape", (0,)))) >= SEARCHED_ENTRIES
    matrix = read_matrix(X, name, search=not large)
    if large and not get_config()["assume_finite"]:
        unsearched.append((matrix, name))
    return matrix


def _read_list(X: Sequence[Any], unsearched: list[tuple[Any, str]]) -> tuple[list[Any], list[int]]:
    matrices = [_read_once(item, f"X[{t}]", unsearched) for t, item in enumerate(X)]
    n_features = matrices[0].shape[1]
    for t, matrix in enumerate(matrices):
        if matrix.shape[1] != n_features:
            raise ValueError(
                f"X[{t}] has {matrix.shape[1]} features, X[0] has {n_features}: "
                "all tasks need the same features in the same order."
            )
    sparse = [scipy.sparse.issparse(matrix) for matrix in matrices]
    if any(sparse) and not all(sparse):
        matrices = [scipy.sparse.csc_array(matrix) for matrix in matrices]
    if len({matrix.dtype for matrix in matrices}) > 1:
        matrices = [matrix.astype(np.float64) for matrix in matrices]
    return matrices, [matrix.shape[0] for matrix in matrices]


def read_labels(
    rows: int | Sequence[int],
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    targets: Literal["values", "classes", "labels"] = "values",
    allow_empty: bool = False,
) -> TaskLabels:
    """Read y, task and sample weights for one matrix of ``rows`` rows, or for a list of matrices.

    The parameters are those of `read_tasks`; ``rows`` is an integer, or a list of integers, one per task;
    ``targets="labels"`` leaves class labels as they are; ``allow_empty`` accepts tasks without observed labels,
    which may be scored, but not fitted.
    """
    if y is None:
        raise ValueError("tasksieve requires y to be passed, but the target y is None.")
    form: Form
    order = None
    if not isinstance(rows, int):
        form = "list"
        raw, weights, offsets = _read_label_list(rows, y, task, sample_weight)
        tasks = np.arange(len(rows))
        n_rows = int(offsets[-1])
    else:
        n_rows = rows
        raw = _as_array(y)
        if raw.shape[0] != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
                f"y has {raw.shape[0]}."
            )
        if raw.ndim == 2 and task is not None and raw.shape[1] == 1:
            raw = raw[:, 0]
        if raw.ndim == 1:
            form = "single" if task is None else "stacked"
            tasks, order, offsets = _read_task(task, n_rows)
            weights = _read_weights(sample_weight, raw.shape)
            if order is not None:
                raw = raw[order]
                weights = weights if weights is None else weights[order]
        else:
            form = "shared"
            n_tasks = raw.shape[1]
            if task is not None:
                raise ValueError(
                    f"task was given with a y of {n_tasks} columns. Either drop task (the columns of y are the "
                    "tasks), or stack the rows: X = np.vstack([X] * T), y = Y.ravel(order='F'), "
                    "task = np.repeat(np.arange(T), len(Y)); NaN marks a label that is not observed."
                )
            if n_tasks == 0:
                raise ValueError("y has no columns: it needs one per task.")
            weights = _read_weights(sample_weight, raw.shape)
            tasks, offsets = np.arange(n_tasks), n_rows * np.arange(n_tasks + 1, dtype=np.int64)
            raw = raw.ravel(order="F")
            weights = weights if weights is None else weights.ravel(order="F")

    def where(i: int) -> str:
        """The place of a flat index in the words of the one who passed y."""
        t = int(np.searchsorted(offsets, i, side="right")) - 1
        if form == "list":
            return f"y[{t}], row {i - offsets[t]}"
        if form == "shared":
            return f"row {i - offsets[t]}, task {t}"
        return f"row {i if order is None else order[i]}"

    values, observed = _read_values(raw, where) if targets == "values" else _read_classes(raw, where)
    if observed is None:
        weights = np.ones(len(values)) if weights is None else weights
    else:
        weights = observed.astype(np.float64) if weights is None else weights * observed
    labels = TaskLabels(form, tasks, offsets, values, weights, order, n_rows)
    if not allow_empty and (observed is not None or sample_weight is not None):
        _check_every_task_has_rows(labels, sample_weight is not None)
    if targets == "classes":
        classes, signs = _encode_classes(labels)
        labels = replace(labels, classes=classes, y=signs)
    return labels


def _as_array(y: Any) -> np.ndarray:
    if scipy.sparse.issparse(y):
        raise ValueError("y is sparse: pass a dense array (NaN marks labels that are not observed).")
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y is a list of arrays of different lengths, but X is one matrix. "
            "With one matrix per task, X is a list of matrices."
        ) from error
    if array.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array or an array of shape (n, T), got an array of shape {array.shape}.")
    return array


def _read_label_list(
    rows: Sequence[int], y: Any, task: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    if task is not None:
        raise ValueError("task was given with a list of matrices: there, item t of X and of y is task t. Drop task.")
    parts = _matching_list(rows, y, "y")
    offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and kinds & set("OUS"):  # numbers beside strings stay what they are
        parts = [part.astype(object) for part in parts]
    weights = sample_weight
    if sample_weight is not None and not np.isscalar(sample_weight):
        weights = np.concatenate(_matching_list(rows, sample_weight, "sample_weight"))
    return np.concatenate(parts), _read_weights(weights, (int(offsets[-1]),)), offsets


def _matching_list(rows: Sequence[int], values: Any, name: str) -> list[np.ndarray]:
    if not isinstance(values, list | tuple) or len(values) != len(rows):
        given = f"a list of {len(values)}" if isinstance(values, list | tuple) else type(values).__name__
        raise ValueError(
            f"X is a list of {len(rows)} matrices, so {name} must be a list of {len(rows)} 1-D arrays; got {given}."
        )
    parts = []
    for t, (n_rows, value) in enumerate(zip(rows, values, strict=True)):
        part = _as_array(value)
        if part.ndim == 2 and part.shape[1] == 1:
            part = part[:, 0]
        if part.ndim != 1:
            raise ValueError(f"{name}[{t}] must be 1-D: one number per row of X[{t}]; got shape {part.shape}.")
        if len(part) != n_rows:
            raise ValueError(f"{name}[{t}] has {len(part)} entries, but X[{t}] has {n_rows} rows.")
        parts.append(part)
    return parts


def _read_task(task: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Sorted task labels, the permutation that sorts the rows (None: sorted), the offsets."""
    if task is None:
        return np.zeros(1, dtype=np.int64), None, np.array([0, n_rows], dtype=np.int64)
    labels = task_array(task, n_rows)
    if n_rows and labels.dtype.kind in "biuUS" and np.all(labels[1:] >= labels[:-1]):  # sorted, as most data are
        starts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
        return labels[starts], None, np.append(starts, n_rows).astype(np.int64, copy=False)
    try:
        tasks, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "task mixes labels that cannot be sorted (numbers and strings, say): use one kind, for example "
            "[str(t) for t in task]."
        ) from error
    offsets = np.zeros(len(tasks) + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=len(tasks)), out=offsets[1:])
    if np.all(codes[1:] >= codes[:-1]):
        return tasks, None, offsets
    return tasks, np.argsort(codes, kind="stable"), offsets


def task_array(task: Any, n_rows: int) -> np.ndarray:
    """``task`` as a 1-D array with one label per row and none missing."""
    labels = np.asarray(task)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n_rows:
        raise ValueError(
            f"task must have one label per row of X: X has {n_rows} rows, task has shape {labels.shape}."
        )
    missing = _missing(labels)
    if missing is not None:
        row = int(np.argmax(missing))
        raise ValueError(f"task has no label in row {row}: every row belongs to a task. Label it or drop it.")
    return labels


def task_codes(task: Any, tasks: np.ndarray, n_rows: int) -> np.ndarray:
    """Position in ``tasks`` of the label of each row; a label not met in `fit` is an error."""
    labels = task_array(task, n_rows)
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    try:
        known, inverse = np.unique(labels, return_inverse=True)
    except TypeError:
        known, inverse = labels, np.arange(n_rows)
    place = {label: t for t, label in enumerate(tasks.tolist())}
    codes = np.array([place.get(label, -1) for label in known.tolist()], dtype=np.int64)
    if np.any(codes < 0):
        row = int(np.argmax(codes[inverse] < 0))
        shown = ", ".join(repr(label) for label in tasks[:5].tolist()) + (", ..." if len(tasks) > 5 else "")
        raise ValueError(
            f"task {labels[row : row + 1].tolist()[0]!r} in row {row} is unknown: the model was fitted on the "
            f"{len(tasks)} task(s) {shown} (see tasks_)."
        )
    return codes[inverse]


def _missing(values: np.ndarray) -> np.ndarray | None:
    """Mask of missing entries (NaN, None, NA, NaT), or None where there are none."""
    if values.dtype.kind in "fc":
        mask = np.isnan(values)
    elif values.dtype.kind in "mM":
        mask = np.isnat(values)
    elif values.dtype.kind == "O":
        mask = np.fromiter(
            (v is None or type(v).__name__ == "NAType" or v != v for v in values.ravel()), bool, values.size
        ).reshape(values.shape)
    else:
        return None
    return mask if mask.any() else None


def _read_values(raw: np.ndarray, where: Callable[[int], str]) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets as float64, and the mask of those observed (None: all)."""
    if raw.dtype.kind == "c":
        raise ValueError("Complex data not supported: y is complex.")
    missing = _missing(raw)
    values = raw
    if missing is not None:
        values = raw.copy()
        values[missing] = 0
    try:
        values = values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from error
    if not np.isfinite(np.add.reduce(values)):
        infinite = np.isinf(values)
        if infinite.any():
            raise ValueError(
                f"Input y contains infinity (inf): {where(int(np.argmax(infinite)))}. "
                "Correct it, or set it to NaN if it is not observed."
            )
    return values, None if missing is None else ~missing


def _read_classes(raw: np.ndarray, where: Callable[[int], str]) -> tuple[np.ndarray, np.ndarray | None]:
    """Class labels as they are, and the mask of those observed (None: all)."""
    if raw.dtype.kind == "f" and np.isinf(raw).any():
        row = where(int(np.argmax(np.isinf(raw))))
        raise ValueError(f"Input y contains infinity (inf): {row}. Correct it, or set it to NaN if not observed.")
    missing = _missing(raw)
    return raw, None if missing is None else ~missing


def _read_weights(sample_weight: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """Weights as float64 in the shape of y, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(shape, float(weights))
    if weights.shape == (shape[0], 1) and len(shape) == 1:
        weights = weights[:, 0]
    elif weights.shape == shape[:1] and len(shape) == 2:
        weights = np.repeat(weights[:, None], shape[1], axis=1)
    if weights.shape != shape:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {shape}: one weight per label in y"
            + (f", or one per row, {shape[:1]}." if len(shape) == 2 else ".")
        )
    wrong = ~(weights >= 0) | np.isinf(weights)  # NaN compares false
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            f"sample_weight must be finite and >= 0, got {weights[row]} in row {row}. 0 leaves a row out."
        )
    return weights


def _check_every_task_has_rows(labels: TaskLabels, weighted: bool) -> None:
    empty = np.flatnonzero(labels.weight_per_task <= 0)
    if len(empty):
        name = labels.tasks[empty[:1]].tolist()[0]
        reason = "missing in y or has zero sample_weight" if weighted else "missing (NaN) in y"
        raise ValueError(
            f"task {name!r} has no rows: each of its labels is {reason}. "
            "Leave the task out, or give it at least one observed label."
        )


def _encode_classes(labels: TaskLabels) -> tuple[Any, np.ndarray]:
    """Classes and signs: +1 for the larger label of all tasks or, where tasks differ, of each task."""
    present = labels.weights > 0
    y = labels.y
    try:
        classes = np.unique(y[present])
    except TypeError:  # labels of different tasks that cannot be compared
        classes = None
    if classes is not None and len(classes) == 1:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}): a classifier needs two classes.")
    if classes is not None and len(classes) == 2:
        return classes, np.where(present, np.where(y == classes[1], 1.0, -1.0), 0.0)

    if y.dtype.kind == "f" and np.any(y[present] != np.floor(y[present])):
        raise ValueError("Unknown label type: continuous. y holds real numbers, a classifier needs classes.")
    pairs, signs = [], np.zeros(len(y))
    for t, part in enumerate(labels.per_task()):
        pair = np.unique(y[part][present[part]])
        if len(pair) != 2:
            name = labels.tasks[t : t + 1].tolist()[0]
            total = "several" if classes is None else len(classes)
            raise ValueError(
                f"Only binary classification is supported. Task {name!r} has {len(pair)} class(es) of the "
                f"{total} in y; where tasks have different pairs of classes, each needs exactly two."
            )
        pairs.append(pair)
        signs[part] = np.where(present[part], np.where(y[part] == pair[1], 1.0, -1.0), 0.0)
    return pairs, signs


def _task_weights(rule: Any, labels: TaskLabels) -> np.ndarray:
    """v_t: an array in the order of the tasks, a dict by label (others 1), or "balanced" = n_bar / n_t."""
    n_tasks = labels.n_tasks
    if rule is None:
        return np.ones(n_tasks)
    if isinstance(rule, str):
        if rule != "balanced":
            raise ValueError(f"task_weights must be an array, a dict or 'balanced', got {rule!r}.")
        per_task = labels.weight_per_task
        return labels.n_bar / np.where(per_task > 0, per_task, labels.n_bar)
    if isinstance(rule, Mapping):
        names = labels.tasks.tolist()
        unknown = [name for name in rule if name not in names]
        if unknown:
            raise ValueError(f"task_weights names the task {unknown[0]!r}, which is not in the data.")
        weights = np.array([float(rule.get(name, 1.0)) for name in names])
    else:
        weights = np.asarray(rule, dtype=np.float64)
        if weights.shape != (n_tasks,):
            raise ValueError(
                f"task_weights has shape {weights.shape}, but there are {n_tasks} tasks: one weight per task, "
                "in the order of tasks_."
            )
    wrong = ~(weights > 0) | np.isinf(weights)
    if wrong.any():
        t = int(np.argmax(wrong))
        name = labels.tasks[t : t + 1].tolist()[0]
        raise ValueError(
            f"task_weights must be finite and positive, got {weights[t]} for task {name!r}. "
            "To leave a task out, leave out its rows."
        )
    return weights


def read_feature_weights(feature_weights: Any, n_features: int) -> np.ndarray | None:
    """u_j >= 0, one per feature, or None for all 1."""
    if feature_weights is None:
        return None
    weights = np.asarray(feature_weights, dtype=np.float64)
    if weights.shape != (n_features,):
        raise ValueError(
            f"feature_weights has shape {weights.shape}, but X has {n_features} features: one weight per feature."
        )
    wrong = ~(weights >= 0) | np.isinf(weights)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"feature_weights must be finite and >= 0, got {weights[j]} for feature {j}. "
            "0 means never penalised; to leave a feature out, drop its column."
        )
    return weights


# --- predictions ---------------------------------------------------------------------------------------

# Rows times selected features packed at a time for a prediction.
PACKED_ENTRIES = 1 << 23


def linear_scores(
    matrix: Any, coef: np.ndarray, intercept: np.ndarray, codes: np.ndarray | None = None
) -> np.ndarray:
    """x_i . w_t + b_t for every row and task, or, given the task of each row, for that one.

    Only the columns of features with a non-zero coefficient are read, in blocks of rows.

    Parameters
    ----------
    matrix : ndarray or CSR/CSC matrix of shape (n, d), as `read_matrix` returns it
    coef : ndarray of shape (T, d)
    intercept : ndarray of shape (T,)
    codes : int ndarray of shape (n,), optional
        Row of ``coef`` that each row of ``matrix`` belongs to.

    Returns
    -------
    ndarray of shape (n, T), or (n,) with ``codes``
    """
    support = np.flatnonzero(coef.any(axis=0))
    packed = coef[:, support]
    n_rows = matrix.shape[0]
    scores = np.empty((n_rows, len(coef)) if codes is None else n_rows)
    sparse = scipy.sparse.issparse(matrix)
    whole = not sparse and len(support) == matrix.shape[1]
    step = n_rows if sparse else max(1, PACKED_ENTRIES // max(1, len(support)))
    for start in range(0, n_rows, max(1, step)):
        rows = slice(start, start + step)
        part = matrix if sparse else matrix[rows]
        columns = part if whole else part[:, support]
        if columns.dtype != np.float64:
            columns = columns.astype(np.float64)
        if codes is None:
            scores[rows] = columns @ packed.T
        else:
            scores[rows] = _scores_by_task(columns, packed, codes[rows])
    scores += intercept if codes is None else intercept[codes]
    return scores


def _scores_by_task(columns: Any, coef: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """x_i . w_codes[i], task by task, so that no row meets a task other than its own."""
    scores = np.empty(len(codes))
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    columns = columns.tocsr() if scipy.sparse.issparse(columns) else columns
    for rows in np.split(order, bounds):
        if len(rows):
            scores[rows] = columns[rows] @ coef[codes[rows[0]]]
    return scores
