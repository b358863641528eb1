"""Rows that come in chunks, kept as sums: what the squared loss needs to know of any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..design import one_blas_thread, thread_count
from ..design.memory import free_memory
from ..design.sums import Gathered, RowSums, SharedSums
from ..messages import ParameterError
from ..row_names import row_name
from .fold_assigner import FoldAssigner
from .gather import GatheredFolds, SumPlan, add_rows, same_for_all
from .labels import label_array, read_labels, refuse_empty_tasks, sorted_labels
from .matrix import read_matrix
from .sample_space import Form, TaskLabels
from .source import is_task_list
from .tensors import to_host

Array = np.ndarray[Any, Any]

_MOST_MEMORY = 0.5  # of what is free: for the sums of all tasks and folds
NEVER = -1  # the fold of rows that are never held out


class TaskMoments:
    r"""Sums of products over the rows of tasks, gathered chunk by chunk.

    .. math:: \sum_i s_i \tilde x_i \tilde x_i^\top,\quad \sum_i s_i \tilde x_i \tilde y_i,\quad
        \sum_i s_i \tilde y_i^2,\quad \sum_i s_i \tilde x_i,\quad \sum_i s_i \tilde y_i,\quad \sum_i s_i

    for each task (and fold), with :math:`\tilde x`, :math:`\tilde y` the rows less about their means in the first
    chunk. They are all that the squared loss depends on: `MultiTaskLasso`, `MultiTaskElasticNet`,
    `MultiTaskSparseGroupLasso` and their ``CV`` siblings find the same models in them (``fit_moments``,
    ``path_moments``), with the same certificates, as in the rows. Memory depends on tasks, folds and features, not on
    rows.

    Parameters
    ----------
    n_folds : int, optional
        Folds for the cross-validation of a ``CV`` model, at least 2. By default there are none.
    fit_intercept : bool, default=True
        False: sums of the columns as they are, for models with ``fit_intercept=False``.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, optional
        Threads; by default all processors available.

    Attributes
    ----------
    tasks_ : ndarray of shape (T,)
        Labels of the tasks so far, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X is a data frame.
    rows_per_task_ : int ndarray of shape (T,)
        Rows with a label and a positive weight.

    See Also
    --------
    MultiTaskLasso : its `fit` gathers such sums by itself where arrays or memory maps are tall.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> moments = ts.TaskMoments(n_folds=5)
    >>> for chunk in range(10):
    ...     X, task = rng.standard_normal((100, 8)), rng.choice(["a", "b"], 100)
    ...     y = X[:, 0] * np.where(task == "a", 2.0, -1.0) + 0.1 * rng.standard_normal(100)
    ...     moments = moments.add(X, y, task=task)
    >>> moments
    TaskMoments of 1,000 rows, 2 tasks, 8 features, 5 folds
    >>> model = ts.MultiTaskLassoCV(n_alphas=20, selection_rule="1se").fit_moments(moments)
    >>> model.get_support(indices=True)
    array([0])
    >>> model.dual_gap_ <= 1e-6 * model.null_objective_
    True
    >>> moments.r2(model).round(2)
    array([1.  , 0.99])
    """

    def __init__(
        self,
        n_folds: int | None = None,
        *,
        fit_intercept: bool = True,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        if n_folds is not None and (isinstance(n_folds, bool) or int(n_folds) != n_folds or n_folds < 2):
            raise ParameterError("n_folds", "must be None or an integer >= 2", n_folds)
        self.n_folds, self.fit_intercept = n_folds, fit_intercept
        self.random_state, self.n_jobs = random_state, n_jobs
        #: how the folds were made, in words
        self.folds_in_words = ""
        self.form: Form | None = None
        self._labels: list[Any] = []
        self._position: dict[Any, int] = {}
        self._sums: RowSums | SharedSums | None = None
        self._dealers: dict[int, FoldAssigner] = {}
        self._known: tuple[Array, Array] | None = None

    def __repr__(self) -> str:
        if self._sums is None:
            return "TaskMoments of 0 rows"
        folds = "" if self.n_folds is None else f", {self.n_folds} folds"
        return (
            f"TaskMoments of {int(self.rows_per_task_.sum()):,} rows, {len(self._labels)} tasks, "
            f"{self.n_features_in_} features{folds}"
        )

    # -- rows in ------------------------------------------------------------------------------------------------------

    def add(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, fold: Any = None) -> TaskMoments:
        """Add rows.

        Parameters
        ----------
        X : matrix of shape (n, d)
            An array, a scipy sparse matrix, a memory map or a data frame; the same features in every chunk.
        y : array of shape (n,) or (n, T)
            Targets; NaN is a label that is not observed. Two-dimensional: all T tasks share the rows.
        task : array of shape (n,), optional
            The task of each row: words or whole numbers; tasks may come later. Without it a 1-D y is one task.
        sample_weight : array in the form of y, or of shape (n,), or float, optional
            Weights >= 0; 0 leaves a row out.
        fold : int array in the form of y, or of shape (n,), optional
            The fold in which each row is held out, from 0; -1: in none. By default the rows of each task are
            assigned at random, ``n_folds`` of them at a time to one fold each.

        Returns
        -------
        self
        """
        if is_task_list(X):
            raise ValueError("X is a list of matrices: add one after the other, with task the label of each.")
        names = _names(X)
        matrix = read_matrix(to_host(X))
        labels = read_labels(matrix.shape[0], y, task, sample_weight, allow_empty=True)
        self._check(matrix, labels, names)
        folds = self._read_folds(fold, labels)
        rows = matrix.tocsr() if scipy.sparse.issparse(matrix) else matrix
        with one_blas_thread():
            if labels.shared:
                self._add_shared(rows, labels, folds)
            else:
                self._add_stacked(rows, labels, folds)
        return self

    def add_columns(
        self,
        columns: Sequence[Array],
        y: Array,
        codes: Array,
        labels: Sequence[Any] | None,
        *,
        sample_weight: Array | None = None,
        fold: Array | None = None,
    ) -> None:
        """Rows of a table that were validated: columns each on its own, all finite, labels that are known, and tasks by
        their positions among `labels`; without these there is one task."""
        form: Form = "single" if labels is None else "stacked"
        known = [0] if labels is None else list(labels)
        if self.form is None:
            self.form, self.n_features_in_ = form, len(columns)
        present = np.flatnonzero(np.bincount(codes, minlength=len(known))).tolist()
        self._place_tasks([known[k] for k in present])
        positions = np.zeros(len(known), dtype=np.int64)
        positions[present] = [self._position[known[k]] for k in present]
        own = positions[codes]
        if fold is not None:
            assert self.n_folds is not None
            fold = np.where(fold == NEVER, self.n_folds, fold)
        with one_blas_thread():
            self._stacked().add(columns, y, own, fold, sample_weight)

    def _check(self, matrix: Any, labels: TaskLabels, names: Array | None) -> None:
        if self.form is None:
            self.form, self.n_features_in_ = labels.form, int(matrix.shape[1])
            if names is not None:
                self.feature_names_in_ = names
        if matrix.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {matrix.shape[1]} features, the rows before had {self.n_features_in_}.")
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and not np.array_equal(names, known):
            j = int(np.argmax(names != known))
            raise ValueError(f"X: feature {j} is called {names[j]!r}, in the rows before {known[j]!r}: keep the order.")
        if labels.form != self.form:
            raise ValueError(f"y and task are in the form {labels.form!r}, in the rows before in {self.form!r}.")
        if labels.shared and self._labels and len(self._labels) != labels.n_tasks:
            raise ValueError(f"y has {labels.n_tasks} columns, in the rows before {len(self._labels)}.")
        self._place_tasks(labels.tasks.tolist())

    def _place_tasks(self, labels: Sequence[Any]) -> None:
        """Places for tasks that are new, if there is memory for their sums."""
        new = [label for label in labels if label not in self._position]
        if not new:
            return
        matrices = len(self._labels) + len(new)
        needed = 8.0 * matrices * self._cells * (self.n_features_in_ + 66.0) ** 2
        if needed > _MOST_MEMORY * free_memory():
            raise ValueError(
                f"The sums of {matrices} tasks, {self.n_features_in_} features and {self._cells} fold(s) take "
                f"{needed / 2**30:.1f} GiB: use fewer folds or fewer features, or fit the rows themselves."
            )
        for label in new:
            self._position[label] = len(self._labels)
            self._labels.append(label)

    @property
    def _cells(self) -> int:
        """Folds, and one cell more for rows that are never held out."""
        return 1 if self.n_folds is None else self.n_folds + 1

    def _read_folds(self, fold: Any, labels: TaskLabels) -> Array | None:
        """The cells of rows as they were given, (n,) or (n, T)."""
        if fold is None:
            return None
        if self.n_folds is None:
            raise ValueError("fold was given, but there are no folds: say how many, TaskMoments(n_folds=5).")
        found = np.asarray(fold)
        whole = found.dtype.kind in "iu" and found.ndim in (1, 2) and len(found) == labels.n_rows
        if not whole or (found.ndim == 2 and found.shape[1] != labels.n_tasks):
            raise ValueError(f"fold must be whole numbers in the form of y, one a row; got shape {found.shape}.")
        wrong = (found < NEVER) | (found >= self.n_folds)
        if wrong.any():
            row = int(np.argwhere(wrong)[0][0])
            raise ValueError(
                f"fold is {found[row]} in {row_name(row)}: give 0 to {self.n_folds - 1}, or -1 for never held out."
            )
        self.folds_in_words = self.folds_in_words or f"{self.n_folds} folds as given"
        return np.where(found == NEVER, self.n_folds, found).astype(np.int64)

    def _add_stacked(self, rows: Any, labels: TaskLabels, folds: Array | None) -> None:
        index = np.array([self._position[label] for label in labels.tasks.tolist()], dtype=np.int64)
        tasks, y, weights = map(labels.unflatten, (index[labels.task_of_sample], labels.y, labels.weights))
        if folds is not None and folds.ndim == 2:
            folds = folds[:, 0]
        if folds is None and self.n_folds is not None:
            folds = self._assign_folds(tasks, weights > 0.0)
        self._stacked().add(_dense(rows), y, tasks, folds, weights)

    def _add_shared(self, rows: Any, labels: TaskLabels, folds: Array | None) -> None:
        n_tasks, n_rows = labels.n_tasks, labels.n_rows
        weights, y = labels.weights.reshape(n_tasks, -1), labels.y.reshape(n_tasks, -1)
        if folds is None and self.n_folds is not None:
            folds = self._assign_folds(np.zeros(n_rows, dtype=np.int64), weights.max(axis=0) > 0.0)
        alike = same_for_all(weights) and (folds is None or folds.ndim == 1)
        if folds is not None and folds.ndim == 1:
            folds = np.broadcast_to(folds[:, None], (n_rows, n_tasks))
        x = _dense(rows)
        if alike and not isinstance(self._sums, RowSums):
            live = slice(None) if (weights[0] > 0.0).all() else np.flatnonzero(weights[0] > 0.0)
            own = None if folds is None else folds[live]
            self._sums = self._sums or self._begun(together=True)
            add_rows(self._sums, x[live], y.T[live], None, own, weights.T[live])
        else:
            add_rows(self._stacked(), x, y.T, None, folds, weights.T)

    def _begun(self, together: bool) -> RowSums | SharedSums:
        """Sums of no rows yet, of one matrix for all tasks or of one a task."""
        known, n_tasks = self._known, len(self._labels)
        if known is not None:
            known, n_tasks = (known[0].mean(axis=0)[None] if together else known[0], known[1]), len(known[1])
        plan = SumPlan(self.n_features_in_, n_tasks, self._cells, self.fit_intercept, together, known)
        return plan.begun(thread_count() if self.n_jobs is None else max(1, self.n_jobs))

    def _stacked(self) -> RowSums:
        """Sums with a matrix a task; those of one matrix for all are taken over."""
        if not isinstance(self._sums, RowSums):
            before, sums = self._sums, self._begun(together=False)
            assert isinstance(sums, RowSums)
            if before is not None:
                sums.take_over(before.n_tasks, before.parts, before.shifts, before.label_shifts, before.counts)
            self._sums = sums
        return self._sums

    def _assign_folds(self, tasks: Array, observed: Array) -> Array:
        """Random folds, whatever the chunks: every `n_folds` rows of a task go to one fold each."""
        assert self.n_folds is not None
        self.folds_in_words = f"{self.n_folds} folds, assigned within tasks as rows came, seed {self.random_state}"
        found = np.zeros(len(tasks), dtype=np.int64)
        for t in np.unique(tasks[observed]).tolist():
            if t not in self._dealers:
                self._dealers[t] = FoldAssigner(self.n_folds, [self.random_state, t])
            own = np.flatnonzero((tasks == t) & observed)
            found[own] = self._dealers[t].next(len(own))
        return found

    # -- what they amount to ------------------------------------------------------------------------------------------

    @property
    def _order(self) -> Array:
        if self.form == "shared":
            return np.arange(len(self._labels))
        return np.argsort(sorted_labels(label_array(self._labels), "task")[1])

    @property
    def tasks_(self) -> Array:
        return label_array([self._labels[t] for t in self._order.tolist()])

    @property
    def rows_per_task_(self) -> Array:
        return self.rows_per_fold().sum(axis=1)

    @property
    def largest_block(self) -> int:
        """The most rows that were copied at a time."""
        return self._filled().largest_block

    def rows_per_fold(self) -> Array:
        """Rows of tasks in folds, and of those never held out."""
        sums = self._filled()
        if isinstance(sums, SharedSums):
            return np.broadcast_to(sums.counts, (sums.n_tasks, self._cells))
        return sums.counts[self._order]

    def _filled(self) -> RowSums | SharedSums:
        if self._sums is None:
            raise ValueError("These moments hold no rows yet: add some with `add`.")
        if isinstance(self._sums, RowSums):
            self._sums.grow(len(self._labels))
        return self._sums

    def parts(self) -> list[Gathered]:
        """What each fold amounts to, rows that are never held out last; one part where there are no folds."""
        sums = self._filled()
        if isinstance(sums, SharedSums):
            return [sums.gathered(fold) for fold in range(self._cells)]
        return [sums.gathered(fold, self._order) for fold in range(self._cells)]

    def whole(self) -> Gathered:
        """What all rows amount to."""
        whole = GatheredFolds.of(self.parts()).whole
        refuse_empty_tasks(self.tasks_.tolist(), self.rows_per_task_)
        return whole

    @property
    def well_centred(self) -> bool:
        """Whether the first rows were like the others: if not, `recentred` sums have more digits."""
        return not self.fit_intercept or self.whole().well_centred

    def recentred(self) -> TaskMoments:
        """An empty one for the same rows, to be added once more: about the means of all of them.

        Returns
        -------
        TaskMoments
        """
        other = TaskMoments(
            self.n_folds, fit_intercept=self.fit_intercept, random_state=self.random_state, n_jobs=self.n_jobs
        )
        shifts, labels = self.whole().means()
        order = self._order
        other._labels = [self._labels[t] for t in order.tolist()]
        other._position = {label: t for t, label in enumerate(other._labels)}
        other._known = shifts, labels
        return other

    def r2(self, model: Any) -> Array:
        """Coefficients of determination of a fitted model on these rows.

        Parameters
        ----------
        model : fitted linear model with ``coef_``, ``intercept_`` and ``tasks_``

        Returns
        -------
        ndarray of shape (T,)
            NaN for tasks with fewer than two rows.
        """
        if not np.array_equal(np.asarray(model.tasks_), self.tasks_):
            raise ValueError(f"The model has the tasks {model.tasks_!r}, these moments {self.tasks_!r}.")
        whole = self.whole()
        left, _ = whole.residual_squares(model.coef_[None], model.intercept_[None])
        _, labels, _, by_means = whole.squares()
        spread = labels - by_means
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(spread > 0.0, 1.0 - left[0] / spread, np.where(left[0] > 0.0, 0.0, 1.0))
        return np.where(self.rows_per_task_ < 2, np.nan, found)

    def deviations(self) -> Array:
        """Standard deviations of the columns over all rows, tasks taken together.

        Returns
        -------
        ndarray of shape (d,)
        """
        whole = self.whole()
        columns, _, by_means, _ = whole.squares()
        means, weights = whole.means()[0], whole.totals[: len(columns)]
        centre = np.average(means, axis=0, weights=weights)
        between = weights @ np.square(means - centre)
        return np.sqrt((np.maximum(columns - by_means, 0.0).sum(axis=0) + between) / weights.sum())


def _dense(rows: Any) -> Array:
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)


def _names(X: Any) -> Array | None:
    """Column names of a data frame, found without importing pandas."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return np.array(names, dtype=object) if all(isinstance(name, str) for name in names) else None
