"""Splitting rows within tasks, and scores averaged over tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from ..tasks import count_rows, outcomes_in_order, read_labels, read_offset, row_labels
from ..tasks.task_column import column_of_tasks, task_column
from ..user_warnings import warn
from .arguments import check_number
from .fold_assignment import random_numbers
from .held_out import RESPONSES
from .measures import mean_over_tasks
from .parameters import check_common


class TaskKFold(BaseEstimator):
    r"""K folds within each task: every task is split on its own, so that every task is in every training part.

    With :math:`n_t` rows of task t, each fold holds out :math:`\lfloor n_t / K \rfloor` or
    :math:`\lceil n_t / K \rceil` of them. The odd rows are assigned round robin over the tasks, so that the folds
    are of equal size also where tasks are small.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds K, at least 2.
    shuffle : bool, optional
        Shuffle the rows of each task first; otherwise a fold is a stretch of consecutive rows. Without it there is a
        FutureWarning: False so far, in version 0.5 rows will be shuffled, and stratified by class.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.
    task : str or int, optional
        The column of X that holds the task of each row, for tools that pass neither ``groups`` nor ``task``.

    Notes
    -----
    A task with a single row is never held out: nothing would be left to learn it from. Without ``groups`` all rows
    are one task and the folds are those of `sklearn.model_selection.KFold`. Under metadata routing the splitter asks
    for ``task`` and for ``groups``, so ``GridSearchCV(model, grid, cv=folds).fit(X, y, task=task)`` is enough.

    Examples
    --------
    >>> import numpy as np
    >>> from tasksieve import TaskKFold
    >>> task = np.array(["a", "b", "a", "b", "a", "b", "a", "b"])
    >>> for train, test in TaskKFold(2, shuffle=False).split(np.zeros((8, 1)), groups=task):
    ...     print(test, task[test])
    [0 1 2 3] ['a' 'b' 'a' 'b']
    [4 5 6 7] ['a' 'b' 'a' 'b']
    """

    # what `split` asks of a meta-estimator under metadata routing; either name will do
    __metadata_request__split = {"groups": True, "task": True}  # noqa: RUF012

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool | None = None, random_state: Any = None, task: str | int | None = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.task = task

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, *, task: Any = None) -> int:
        """Number of folds.

        Parameters
        ----------
        X, y, groups, task
            Not used.

        Returns
        -------
        int
        """
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, task: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row indices of the training and the held-out part of each fold.

        Parameters
        ----------
        X : matrix of n rows, or list of matrices
            The items of a list are the tasks; indices are those of the stacked rows.
        y : ignored
        groups : array of shape (n,), optional
            The task of each row.
        task : array of shape (n,), optional
            Another name for ``groups``.

        Yields
        ------
        train, test : int ndarray
            Rows in increasing order.
        """
        check_number(self.n_splits, "n_splits", low=2, closed=True, integer=True)
        check_common(self)
        if self.shuffle is None:
            warn(
                "TaskKFold without shuffle= holds out stretches of consecutive rows. From version 0.5 on it will "
                "shuffle the rows of each task, stratified by class: pass shuffle=False or shuffle=True.",
                FutureWarning,
            )
        labels = groups if groups is not None else task
        if labels is None and self.task is not None:
            labels = task_column(X, self.task)
        n_rows = count_rows(X)
        if isinstance(n_rows, list):
            labels = np.repeat(np.arange(len(n_rows)), n_rows)
            n_rows = len(labels)
        fold = self._fold_of_row(np.zeros(n_rows) if labels is None else row_labels(labels, n_rows, "task"))
        for k in range(self.n_splits):
            held_out = fold == k
            if not held_out.any():
                raise ValueError(
                    f"n_splits={self.n_splits} is too many for n_samples={n_rows} in these tasks: "
                    "a fold would be empty."
                )
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def _fold_of_row(self, labels: np.ndarray) -> np.ndarray:
        """Fold in which each row is held out; -1 for rows that never are."""
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        order = np.argsort(codes, kind="stable")
        random = random_numbers(self.random_state) if self.shuffle else None
        fold = np.full(len(codes), -1)
        first = 0  # the fold that gets the first odd row of the next task
        for rows in np.split(order, np.cumsum(counts)[:-1]):
            if len(rows) < 2:
                continue
            if random is not None:
                rows = random.permutation(rows)
            each, odd = divmod(len(rows), self.n_splits)
            sizes = np.full(self.n_splits, each)
            sizes[(first + np.arange(odd)) % self.n_splits] += 1
            fold[rows] = np.repeat(np.arange(self.n_splits), sizes)
            first = (first + odd) % self.n_splits
        return fold


class TaskScorer:
    """Scorer that averages a metric over tasks; made by `task_scorer`.

    - `metric`, `sign`, `response_method`, `options`: See `task_scorer`.
    """

    def __init__(self, metric: Callable[..., float], sign: int, response_method: str, options: dict[str, Any]) -> None:
        self.metric = metric
        self.sign = sign
        self.response_method = response_method
        self.options = options
        self._requests: dict[str, Any] = {"task": True, "sample_weight": None, "offset": None}

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> float:
        """Mean over tasks of the metric, larger is better.

        - `X`, `y`, `task`, `sample_weight`, `offset`: Rows in any form that the estimator's ``fit`` takes. Missing
          labels and rows of weight 0 are left out.
        """
        given = {} if task is None else {"task": task}
        column = column_of_tasks(estimator) if task is None else None
        if column is not None:  # the estimator finds it there, too
            task = task_column(X, column)
        if hasattr(estimator, "tasks_"):
            y = outcomes_in_order(y, np.asarray(estimator.tasks_))
        labels = read_labels(count_rows(X), y, task, sample_weight, targets="labels", allow_empty=True)
        if offset is not None:
            given["offset"] = labels.unflatten(read_offset(offset, labels))  # 0 where no label is observed
        predictions = getattr(estimator, self.response_method)(X, **given)
        if self.response_method == "predict_proba":  # of the larger class
            predictions = [p[..., 1] for p in predictions] if isinstance(predictions, list) else predictions[..., 1]

        def metric(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> float:
            weighted = {} if sample_weight is None else {"sample_weight": weights}
            return self.metric(y, predicted, **weighted, **self.options)

        return self.sign * mean_over_tasks(labels, labels.flatten(predictions), metric, least=1)

    def set_score_request(self, *, task: Any = True, sample_weight: Any = None, offset: Any = None) -> TaskScorer:
        """Say which metadata a meta-estimator should pass, as scikit-learn's scorers do.

        - `task`, `sample_weight`, `offset` (bool, str or None): True: pass it; False: do not; None: an error if it is
          given; str: pass what goes by that name.
        - returns: itself.
        """
        self._requests = {"task": task, "sample_weight": sample_weight, "offset": offset}
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """The metadata that this scorer asks for."""
        request = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric))
        return f"task_scorer({name}, greater_is_better={self.sign > 0}, response_method={self.response_method!r})"


def task_scorer(
    metric: Callable[..., float] | str,
    *,
    greater_is_better: bool = True,
    response_method: str = "predict",
    **options: Any,
) -> TaskScorer:
    r"""Make a scorer that takes ``task`` and averages a metric over tasks.

    .. math:: \text{score} = \pm \frac1T \sum_t \text{metric}(y_t, \hat y_t)

    Parameters
    ----------
    metric : callable or str
        ``metric(y_true, y_predicted, **options)`` for one task, such as those of `sklearn.metrics`. It gets
        ``sample_weight`` too where weights are given. Or the name of a scorer of scikit-learn ("r2", "roc_auc",
        "neg_mean_absolute_error"), which says the other parameters.
    greater_is_better : bool, default=True
        False for a loss: the score is then its negative.
    response_method : {"predict", "predict_proba", "decision_function"}, default="predict"
        What is given to the metric; of "predict_proba" the probability of the larger class.
    **options
        More arguments of the metric.

    Returns
    -------
    TaskScorer
        ``scorer(estimator, X, y, *, task=None, sample_weight=None, offset=None)``. Under metadata routing it asks for
        ``task``; of an estimator that reads tasks from a column of X it knows the column.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> from sklearn.metrics import mean_absolute_error
    >>> X, task = np.eye(4), np.array([0, 0, 1, 1])
    >>> model = ts.MultiTaskLasso(alpha=10.0).fit(X, [1.0, 3.0, 0.0, 4.0], task=task)
    >>> scorer = ts.task_scorer(mean_absolute_error, greater_is_better=False)
    >>> round(scorer(model, X, [1.0, 3.0, 0.0, 4.0], task=task), 6)
    -1.5
    >>> ts.task_scorer("neg_mean_absolute_error")
    task_scorer(mean_absolute_error, greater_is_better=False, response_method='predict')
    """
    if isinstance(metric, str):
        from sklearn.metrics import get_scorer

        known: Any = get_scorer(metric)
        asked = known._response_method
        response_method = asked if isinstance(asked, str) else next(name for name in asked if name in RESPONSES)
        return TaskScorer(known._score_func, known._sign, response_method, {**known._kwargs, **options})
    if response_method not in RESPONSES:
        raise ValueError(f"response_method must be one of {RESPONSES}, got {response_method!r}.")
    return TaskScorer(metric, 1 if greater_is_better else -1, response_method, options)
