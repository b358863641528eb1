"""Coefficients without the shrinkage: the selected features fitted once more, without the penalty."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..fitted.arguments import check_number
from ..fitted.documented import DATA
from ..fitted.restore import set_state
from ..linear.held_out import Solved
from ..tasks import TaskData, is_task_list, some_of
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .path_model import check_linear
from .unpenalised import NoFit, TaskFit, fit_task

Array = np.ndarray[Any, Any]


@takes_named_tasks
@described_by(DATA)
def refit(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    ridge: float = 0.0,
) -> Any:
    r"""Fit the features that a model has selected once more, without its penalty.

    .. math::

        \min_{w_t, b_t}\ \frac{1}{n_t} \sum_i s_i f(y_i, x_i \cdot w_t + b_t + o_i)
        + \frac{\text{ridge}}{2} \lVert w_t \rVert^2, \qquad w_{tj} = 0 \text{ where the model has } 0

    for each task t, with f the loss of the model and :math:`n_t` the total weight of the task's rows. A penalty shrinks
    what it selects; these are point estimates without that. They are *not* honest about how the features were found:
    on the rows that selected them, effects look larger than they are, and intervals made from them would be too short.
    For intervals see `split_inference` and `debiased_inference`. The rows are those that the model was fitted to, or
    others of the same tasks.

    Parameters
    ----------
    model : fitted linear estimator
        Its ``coef_`` say which features are used, task by task.
    ridge : float, default=0.0
        Strength of a ridge, for least squares (the squared and the square-root loss). The model's own ridge and graph
        of tasks are not used.

    Returns
    -------
    estimator
        Of the model's kind, fitted: ``coef_``, ``intercept_``, `predict`, `score`. It has no certificate.

    Warns
    -----
    UserWarning
        Where a task's coefficients are not unique (more features than rows): those of the smallest norm are given,
        columns being scaled to the same length.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(2.0, 2.0))
    >>> model = ts.MultiTaskLasso(alpha=0.5).fit(X, y, task=task)
    >>> model.coef_[:, 0].round(2), ts.refit(model, X, y, task=task).coef_[:, 0].round(2)
    (array([1.5 , 1.42]), array([2.01, 1.98]))
    """
    check_linear(model, "selects nothing that could be refitted; give a fitted linear model.")
    check_is_fitted(model, "coef_")
    check_number(ridge, "ridge", low=0, closed=True)
    state = model._learned()
    if model._several:
        raise ValueError(
            "model: with more than two classes there is no refit, the multinomial loss without a penalty has no unique "
            "fit. Give a model of two classes."
        )
    for item in X if is_task_list(X) else [X]:
        model._check_features(item)
    data = model._read_with(X, y, task, sample_weight, offset)
    if data.n_features != model.n_features_in_:
        raise ValueError(f"X has {data.n_features} features, but the model was fitted to {model.n_features_in_}.")
    task_index = match_tasks(model, data)
    positive = bool(getattr(model, "positive", False))
    supports = [np.flatnonzero(state.rows[t]) for t in task_index]
    tasks = list(range(data.n_tasks))
    if data.ordered:  # a task with one class has no coefficients
        parts = [data.y[part][data.weights[part] > 0.0] for part in data.per_task()]
        tasks = [t for t, codes in enumerate(parts) if np.any(codes != codes[0])]
    fits = fit_support(model, data, supports, tasks, ridge=float(ridge), positive=positive)
    coef, intercept = np.zeros_like(state.rows), np.zeros(len(state.rows))
    for k, found in fits.items():
        coef[task_index[k], supports[k]], intercept[task_index[k]] = found.coef, found.intercept
    names = [data.tasks.tolist()[k] for k, found in fits.items() if not found.unique]
    if names:
        warn(
            f"{len(names)} task(s) have no unique fit ({some_of(names)}): some of the features are combinations of "
            "others there, or as many as rows. The coefficients of the smallest norm are given; a larger alpha, or "
            "ridge, makes them unique.",
        )
    thresholds: Any = None
    if data.kinds is not None:
        thresholds = [None] * len(task_index)
        for k, found in fits.items():
            if found.thresholds is not None:
                missing = len(data.classes_of(k)) - 1 - len(found.thresholds)
                thresholds[task_index[k]] = np.append(found.thresholds, np.full(missing, np.inf))
    elif data.ordered:
        thresholds = _thresholds(data, {k: found.thresholds for k, found in fits.items()}, task_index)
    return _like(model, coef, intercept, data, thresholds)


def _thresholds(data: TaskData, own: dict[int, Any], task_index: list[int]) -> Any:
    """Thresholds of tasks in the form and the order of the model's, from those of each fit: of a task with one class
    minus infinity up to it, then infinity."""
    found: list[Array] = [np.empty(0)] * len(task_index)
    for k, part in enumerate(data.per_task()):
        count = len(data.classes_of(k)) - 1
        given = own.get(k)
        if given is None:
            codes = data.y[part][data.weights[part] > 0.0]
            given = np.where(np.arange(count) < codes[0], -np.inf, np.inf)
        found[task_index[k]] = np.append(given, np.full(max(count - len(given), 0), np.inf))[:count]
    return found if isinstance(data.classes, list) else np.stack(found)


def match_tasks(model: Any, data: TaskData) -> list[int]:
    """The place in ``model.tasks_`` of each task of the data; they must be the same ones."""
    theirs, own = model.tasks_.tolist(), data.tasks.tolist()
    strange, absent = [name for name in own if name not in theirs], [name for name in theirs if name not in own]
    if strange:
        raise ValueError(f"task: the model does not know {some_of(strange)}; it was fitted to {some_of(theirs)}.")
    if absent:
        raise ValueError(f"task: {some_of(absent)} of the model have no rows here; give rows of all its tasks.")
    if data.classes is not None:
        known = model.classes_ if isinstance(model.classes_, list) else [model.classes_] * len(theirs)
        for k, name in enumerate(own):
            if not np.array_equal(data.classes_of(k), known[theirs.index(name)]):
                raise ValueError(f"y: the classes of task {name!r} are not those that the model was fitted to.")
    return [theirs.index(name) for name in own]


def fit_support(
    model: Any,
    data: TaskData,
    supports: list[Array],
    tasks: Iterable[int],
    *,
    ridge: float = 0.0,
    positive: bool = False,
    skip: bool = False,
) -> dict[int, TaskFit]:
    """Some tasks, each on features of its own, by the loss of the model. Tasks that have no finite fit are left out
    (`skip`) or refused."""
    union = np.unique(np.concatenate([*supports, np.empty(0, dtype=np.int64)])).astype(np.int64)
    columns = data.take(union) if len(union) else np.empty((data.n_rows, 0))
    if not np.all(np.isfinite(columns)):
        data.refuse_not_finite()
    found, parts = {}, list(data.per_task())
    for t in tasks:
        flat, own = parts[t], supports[t]
        live = np.flatnonzero(data.weights[flat] > 0.0)
        rows = live if data.shared else live + flat.start
        positions = np.searchsorted(union, own)
        loss = model._loss_of(data).of_task(t)
        scale = 1.0 if data.balance is None else float(data.balance.scales[t])
        y = (data.y if loss.labels == "survival" else data.values)[flat][live]
        known = None if data.known is None else data.known[flat][live]
        try:
            found[t] = fit_task(
                loss,
                columns[np.ix_(rows, positions)],
                y if scale == 1.0 else y / scale,
                data.weights[flat][live],
                known if known is None or scale == 1.0 else known / scale,
                fit_intercept=model.fit_intercept,
                ridge=ridge,
                positive=positive,
            ).times(scale)
        except NoFit as error:
            if skip:
                continue
            name = data.tasks.tolist()[t]
            raise ValueError(
                f"task {name!r} ({len(own)} features, {len(live)} rows): {error}. Select fewer features, or leave the "
                "task out."
            ) from None
    return found


def _like(model: Any, coef: Array, intercept: Array, data: TaskData, thresholds: Any = None) -> Any:
    """A fitted estimator of the model's kind with other coefficients."""
    other = clone(model)
    set_state(
        other,
        coef=coef,
        intercept=intercept,
        tasks=model.tasks_,
        single=model._single,
        needs_offset=data.has_offset,
        n_features=model.n_features_in_,
    )
    if thresholds is not None:
        other.thresholds_ = thresholds
    for name in ("classes_", "feature_names_in_", "scale_", "alpha_", "loss_weights_", "target_scales_"):
        if hasattr(model, name):
            setattr(other, name, getattr(model, name))
    if hasattr(other, "_set_baseline"):
        own = coef[[model.tasks_.tolist().index(name) for name in data.tasks.tolist()]]
        features = np.flatnonzero(own.any(axis=0))
        other._set_baseline(data, Solved(features, np.ascontiguousarray(own[:, features].T), np.zeros(len(own))))
    return other
