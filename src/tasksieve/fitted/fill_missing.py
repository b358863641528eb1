"""Missing values of X filled by means that are remembered, with indicators if wished: a transformer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..messages import ParameterError, value_error
from ..row_names import row_name
from ..tasks import is_task_list, read_matrix, row_labels
from ..tasks.frames import frame_columns, frame_of, is_frame
from ..tasks.labels import sorted_labels
from ..tasks.task_column import split_task_column, task_column
from ..tasks.task_means import fill_holes, task_sums
from .arguments import check_choice, feature_names
from .documented import DATA

Array = np.ndarray[Any, Any]

HOW = ("task-mean", "mean", "indicator")
_NAMED = 5  # columns in a message


class FillMissing(TransformerMixin, BaseEstimator):
    r"""Fill missing values of X, the same way in every later call.

    .. math:: \tilde x_{ij} = \begin{cases} x_{ij} & \text{observed} \\ \bar x_{t(i)\,j} & \text{missing} \end{cases}

    with :math:`\bar x_{tj}` the mean of the observed values of column j in the rows of task t that `fit` was given.

    Parameters
    ----------
    how : {"task-mean", "mean", "indicator"}, default="task-mean"
        Means of each task; means over all rows, which mix the tasks; or those of each task and, for every column in
        which a value was missing, one more column that is 1 where it was. ``feature_groups_`` puts both into one
        group, for `MultiTaskGroupLasso`: the value and its absence are selected together.
    task : str or int, optional
        The column of X that holds the task of each row, which is passed through. By default tasks are given apart.

    Attributes
    ----------
    means_ : ndarray of shape (T, d)
        What is filled in (of "mean", in all tasks the same).
    tasks_ : ndarray of shape (T,)
    missing_ : ndarray of shape (T, d)
        How many values were missing.
    indicators_ : ndarray of int
        Columns that have an indicator.
    feature_groups_ : ndarray of shape (number of features,)
        The group of each feature of the output, the number of its column in X.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X is a data frame; without the column of tasks.

    Notes
    -----
    A certificate is about the completed data: what imputation leaves unknown is not in it. In a pipeline inside
    `sklearn.model_selection.GridSearchCV` means are those of the training rows of each fold. Where all values of a
    column are missing in a task there is no mean: `by_pattern` treats that column as one that the task does not have.

    See Also
    --------
    by_pattern : columns that are missing in blocks.
    MultipleImputation : one selection for several imputations.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = np.array([[1.0, 5.0], [np.nan, 7.0], [3.0, np.nan], [10.0, 1.0]])
    >>> fill = ts.FillMissing().fit(X, task=["a", "a", "a", "b"])
    >>> fill.transform(X, task=["a", "a", "a", "b"])
    array([[ 1.,  5.],
           [ 2.,  7.],
           [ 3.,  6.],
           [10.,  1.]])
    """

    means_: Array
    tasks_: Array

    def __init__(
        self, how: Literal["task-mean", "mean", "indicator"] = "task-mean", *, task: str | int | None = None
    ) -> None:
        self.how = how
        self.task = task

    @described_by(DATA, returns="self")
    def fit(self, X: Any, y: Any = None, *, task: Any = None) -> FillMissing:
        """Find the means."""
        check_choice(self.how, "how", HOW)
        rows, labels = self._read(X, task)
        self.tasks_, code = sorted_labels(labels, "task")
        n_tasks = len(self.tasks_)
        totals, seen = task_sums(rows, code, n_tasks)
        self.missing_ = np.bincount(code, minlength=n_tasks)[:, None] - seen
        if self.how == "mean":
            totals, seen = totals.sum(axis=0, keepdims=True), seen.sum(axis=0, keepdims=True)
        names = feature_names(self._features(X))
        self._refuse_empty(seen, names)
        self.means_ = np.broadcast_to(totals / seen, (n_tasks, rows.shape[1])).copy()
        holed = self.missing_.any(axis=0)
        self.indicators_ = np.flatnonzero(holed) if self.how == "indicator" else np.empty(0, dtype=np.int64)
        self.feature_groups_ = np.concatenate([np.arange(rows.shape[1]), self.indicators_])
        self.n_features_in_ = rows.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        return self

    def transform(self, X: Any, *, task: Any = None) -> Any:
        """Fill in, and put indicators behind.

        Parameters
        ----------
        X : matrix of shape (n, d), or data frame
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.

        Returns
        -------
        ndarray, or a data frame of the kind of X
        """
        check_is_fitted(self, "means_")
        rows, labels = self._read(X, task)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} features, but FillMissing was fitted to {self.n_features_in_}.")
        names = feature_names(self._features(X))
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and not np.array_equal(names, known):
            j = int(np.argmax(names != known))
            raise ValueError(f"X: column {j} is {names[j]!r}, but {known[j]!r} in the data of fit.")
        code = self._codes(labels)
        missing = np.isnan(rows)
        filled = fill_holes(rows, self.means_, code)
        new = missing & ~np.isin(np.arange(rows.shape[1]), self.indicators_)
        if self.how == "indicator" and new.any():
            i, j = np.argwhere(new)[0].tolist()
            raise value_error(
                "X: {column} is missing in {row}, and had no missing value in the data of fit: its absence has no "
                "indicator there. Fill it first, or fit with rows that lack it.",
                column=self._column(j, names), row=row_name(i),
            )  # fmt: skip
        out = np.column_stack([filled, missing[:, self.indicators_].astype(np.float64)])
        return self._like(X, out)

    @described_by(DATA)
    def fit_transform(self, X: Any, y: Any = None, *, task: Any = None) -> Any:
        """`fit` and `transform` of the same rows.

        Returns
        -------
        ndarray, or a data frame of the kind of X
        """
        return self.fit(X, y, task=task).transform(X, task=task)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features of the output: those of X, and "missing(...)" of indicators.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X where it has none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "means_")
        names = getattr(self, "feature_names_in_", input_features)
        names = [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names)
        return np.array([*names, *(f"missing({names[j]})" for j in self.indicators_)], dtype=object)

    def _features(self, X: Any) -> Any:
        """X without the column of tasks."""
        return X if self.task is None else split_task_column(X, self.task)[0]

    def _read(self, X: Any, task: Any) -> tuple[Array, Array]:
        """Rows with their holes, and tasks."""
        if is_task_list(X):
            raise ValueError("X is a list of tasks: stack its rows, and give task.")
        if self.task is not None:
            X, task = split_task_column(X, self.task, task)
        matrix = read_matrix(X, search=False)
        if scipy.sparse.issparse(matrix):
            raise ValueError("X is sparse: what it leaves out is 0, not missing. Pass an array.")
        rows = np.asarray(matrix, dtype=np.float64)
        labels = np.zeros(len(rows), dtype=np.int64) if task is None else row_labels(task, len(rows), "task")
        if np.isinf(rows).any():
            i, j = np.argwhere(np.isinf(rows))[0].tolist()
            raise ValueError(f"X holds infinity in {row_name(i)}, column {j}: only NaN is a missing value.")
        return rows, labels

    def _codes(self, labels: Array) -> Array:
        place = {label: t for t, label in enumerate(self.tasks_.tolist())}
        for i, label in enumerate(labels.tolist()):
            if label not in place:
                raise ValueError(f"task {label!r} in {row_name(i)} is unknown: it has no means. Known are the tasks "
                                 f"of fit, see tasks_.")  # fmt: skip
        return np.array([place[label] for label in labels.tolist()], dtype=np.int64)

    def _column(self, j: int, names: Array | None) -> str:
        return f"column {j}" if names is None else f"column {names[j]!r}"

    def _refuse_empty(self, seen: Array, names: Array | None) -> None:
        empty = np.argwhere(seen == 0)
        if not len(empty):
            return
        t, j = empty[0].tolist()
        where = "" if self.how == "mean" or len(self.tasks_) == 1 else f" of task {self.tasks_.tolist()[t]!r}"
        more = f", and so it is {len(empty) - 1} more time(s)" if len(empty) > 1 else ""
        raise ParameterError(
            "how",
            f"needs a mean, and all values of {self._column(j, names)}{where} are missing{more}. Leave such columns "
            "out, or make tasks of what is present with by_pattern",
            self.how,
        )

    def _like(self, X: Any, out: Array) -> Any:
        """In the kind of X, with the column of tasks where it had one."""
        if not is_frame(X):
            if self.task is None:
                return out
            tasks = np.asarray(task_column(X, self.task))
            place = int(self.task) % (out.shape[1] + 1)
            return np.insert(out if tasks.dtype.kind in "fiub" else out.astype(object), place, tasks, axis=1)
        import narwhals

        names, columns = self.get_feature_names_out().tolist(), dict[str, Any]()
        frame = frame_of(X)
        kept = dict(zip(names, out.T, strict=True))
        for name in frame_columns(X) or []:
            columns[name] = kept.pop(name) if name in kept else frame[name].to_numpy()
        columns.update(kept)
        found = narwhals.from_dict(columns, backend=frame.implementation)
        native = found.to_native()
        if hasattr(native, "index") and hasattr(X, "index"):
            native.index = X.index
        return native
