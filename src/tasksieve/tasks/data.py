"""Labels, weights and the matrix they belong to: all that a problem is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn import get_config

from ..design import Storage
from .fills import Fills
from .labels import read_labels
from .matrix import is_task_list, read_matrix, read_task_list, refuse_not_finite
from .sample_space import TaskLabels
from .source import RowSource
from .tensors import refuse_mixed
from .weights import read_task_weights

# Matrices of at least so many entries are not searched for NaN when they are read.
SEARCHED_ENTRIES = 1 << 22


class _Storage:
    """A field that holds a storage, or a source that makes one when somebody asks."""

    def __get__(self, data: Any, owner: type) -> Any:
        found = None if data is None else self.given(data)
        return found.storage if isinstance(found, RowSource) else found

    def __set__(self, data: Any, value: Any) -> None:
        vars(data)["_storage"] = value

    @staticmethod
    def given(data: Any) -> Any:
        """What was put in."""
        return vars(data)["_storage"]


@dataclass(frozen=True)
class TaskData(TaskLabels):
    """Labels, weights and the matrix they belong to: all that a problem is made of.

    Attributes
    ----------
    storage : storage of `tasksieve.design`, or RowSource
        X, stored once whatever the number of tasks; that of a source is made when it is first asked for.
    n_features : int
    task_weights : float64 ndarray of shape (T,)
    unsearched : list of (matrix, name)
        Large matrices in which NaN and infinity have not been looked for: the norms of their columns will tell.
    class_factors : float64 ndarray of shape (N,), or None
        What ``class_weight`` has multiplied the sample weights by.
    """

    storage: Any = _Storage()
    n_features: int = 0
    task_weights: Any = None
    task_weights_rule: Any = None
    unsearched: Any = ()
    class_factors: Any = None

    @cached_property
    def n_bar(self) -> float:
        return super().n_bar  # asked for several times a fit

    @property
    def source(self) -> RowSource | None:
        """X as it was given, where that is known."""
        given = _Storage.given(self)
        return given if isinstance(given, RowSource) else None

    def take(self, features: np.ndarray) -> np.ndarray:
        """Some columns, rows in task order; those of rows that nobody has made a storage of are cut out as they lie."""
        source = self.source
        return self.storage.take(features) if source is None or source.stored else source.cut(features)

    @property
    def has_fills(self) -> bool:
        """Whether calls can be missing (`read_plink`)."""
        source = self.source
        return source is not None and isinstance(source.matrices[0], Storage) and hasattr(self.storage, "fills")

    def fills(self, *features: np.ndarray) -> Fills | None:
        """What stands for missing calls of the features in these arrays, where calls can be missing."""
        if not self.has_fills:
            return None
        chosen = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *features]))
        means = self.storage.fills(chosen)
        return Fills(chosen, np.broadcast_to(means, (len(chosen), self.n_tasks)).copy())

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

    def with_offset(self, known: np.ndarray) -> TaskData:
        """The same data, so much known of every prediction beforehand."""
        return replace(self, known=known, storage=_Storage.given(self))

    def with_weights(self, weights: np.ndarray) -> TaskData:
        """The same data under other sample weights: how folds and masks are made, without a copy of X."""
        changed = replace(self, weights=weights, storage=_Storage.given(self))
        task_weights = read_task_weights(self.task_weights_rule, changed)
        return replace(changed, task_weights=task_weights, storage=_Storage.given(self))


def read_tasks(
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    task_weights: Any = None,
    targets: Literal["values", "classes", "many classes"] = "values",
) -> TaskData:
    """Read X, y, task and weights in any form of the contract.

    Parameters
    ----------
    X : matrix, or list of matrices (one per task)
        Tensors stay on their device; all else that is a tensor is brought to NumPy, once.
    y : array of shape (n,) or (n, T), or list of 1-D arrays
        NaN (None, NA) is a label that is not observed.
    task : array of shape (n,), optional
        One label per row of a stacked X.
    sample_weight : scalar, or array or list in the form of y, optional
    task_weights : array, dict or "balanced", optional
    targets : {"values", "classes", "many classes"}
        Numbers, labels of two classes to be read as -1 / +1, or of any number of classes.
    """
    # The norms of the columns show NaN and infinity too, and are needed anyway: a large matrix is not read twice.
    unsearched: list[tuple[Any, str]] = []
    if is_task_list(X):
        matrix, rows = _read_list(X, unsearched)
    else:
        matrix = _read_once(X, "X", unsearched)
        rows = matrix.shape[0]
    labels = read_labels(rows, y, task, sample_weight, targets=targets)
    source = RowSource(matrix, labels.order, None if labels.shared else labels.offsets)
    return TaskData(
        **vars(labels),
        storage=source,
        n_features=source.n_features,
        task_weights=read_task_weights(task_weights, labels),
        task_weights_rule=task_weights,
        unsearched=unsearched,
    )


def _read_once(X: Any, name: str, unsearched: list[tuple[Any, str]]) -> Any:
    """`read_matrix`, leaving the search for NaN in a large matrix to whoever measures its columns."""
    large = isinstance(X, Storage) or int(np.prod(getattr(X, "shape", (0,)))) >= SEARCHED_ENTRIES
    matrix = read_matrix(X, name, search=not large)
    large = large or getattr(matrix, "elsewhere", False)
    if large and not get_config()["assume_finite"] and not getattr(matrix, "finite", False):
        unsearched.append((matrix, name))
    return matrix


def _read_list(X: Sequence[Any], unsearched: list[tuple[Any, str]]) -> tuple[list[Any], list[int]]:
    matrices = read_task_list(X, lambda item, name: _read_once(item, name, unsearched))
    refuse_mixed(matrices)
    sparse = [scipy.sparse.issparse(matrix) for matrix in matrices]
    if any(sparse) and not all(sparse):
        matrices = [scipy.sparse.csc_array(matrix) for matrix in matrices]
    if len({matrix.dtype for matrix in matrices}) > 1:
        matrices = [matrix.astype(np.float64) for matrix in matrices]
    return matrices, [matrix.shape[0] for matrix in matrices]
