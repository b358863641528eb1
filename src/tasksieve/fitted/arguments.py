"""Arguments of the estimators, checked and read; warnings about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from ..design import thread_count
from ..messages import ParameterError, value_error
from ..row_names import row_name
from ..tasks import TaskData, TaskLabels, first_matrix, refuse_masked_or_complex, some_of
from ..user_warnings import warn


def kernel_threads(n_jobs: int | None = None) -> int:
    """Threads for the kernels: ``n_jobs`` as in scikit-learn, but by default all that are available."""
    available = thread_count()
    if n_jobs is None:
        return available
    check_jobs(n_jobs, "n_jobs")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


def feature_names(X: Any) -> np.ndarray | None:
    """Column names of X, or of the first of a list of matrices, where it has them, as scikit-learn reads them."""
    X = first_matrix(X)
    if isinstance(X, np.ndarray | list) or scipy.sparse.issparse(X):
        return None
    own = getattr(X, "feature_names", None)  # of genotypes, whose names are no columns of a frame
    if own is not None:
        return np.asarray(own)
    probe = BaseEstimator()
    validate_data(probe, X, reset=True, skip_check_array=True)
    return getattr(probe, "feature_names_in_", None)


def refuse_other_names(X: Any, fitted: np.ndarray | None) -> bool:
    """Whether X knows the names of its features itself; a ValueError where they are others than those fitted."""
    own = getattr(X, "feature_names", None)
    if own is None or fitted is None:
        return own is not None
    if len(own) == len(fitted) and not np.array_equal(own, fitted):
        j = int(np.argmax(np.asarray(own) != fitted))
        raise ValueError(
            f"X: feature {j} is {own[j]!r}, but {fitted[j]!r} in the data that the model was fitted to. Read the "
            "genotypes with like=, the variants of those data: their order and their alleles."
        )
    return True


def check_number(
    value: Any, name: str, *, low: float, closed: bool, high: float = np.inf, integer: bool = False
) -> None:
    """Refuse a parameter that is not a number between low (itself allowed if ``closed``) and high."""
    numeric = isinstance(value, Integral if integer else Real) and value is not True and value is not False
    if not numeric or not low <= value <= high or value == np.inf or (value == low and not closed):
        bound = f"{'>=' if closed else '>'} {low:g}" + (f" and <= {high:g}" if high < np.inf else "")
        raise ParameterError(name, f"must be {'an integer' if integer else 'a number'} {bound}", value)


def check_level(level: Any) -> None:
    """Refuse what is no level of an interval."""
    check_number(level, "level", low=0, closed=False)
    if level >= 1:
        raise ParameterError("level", "must be below 1, 0.9 say", level)


def check_jobs(value: Any, name: str) -> None:
    """Refuse what is no number of threads or processes, as scikit-learn counts them."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value == 0:
        raise ParameterError(name, "must be None or a whole number other than 0 (-1: all processors)", value)


def check_choice(value: Any, name: str, allowed: Iterable[Any]) -> None:
    """Refuse a parameter that is none of the values allowed."""
    try:
        known = value in set(allowed)
    except TypeError:  # an array, a list: nothing that is a choice
        known = False
    if not known:
        raise ParameterError(name, f"must be one of {', '.join(map(repr, allowed))}", value)


def read_several(value: Any, name: str) -> list[Any]:
    """One value, or several to compare, as a list; each is checked by its caller."""
    if isinstance(value, Real | str) or not isinstance(value, Iterable):
        return [value]
    values = list(value)
    if not values:
        raise ParameterError(name, "is an empty list: give a number, or several to compare")
    return values


def refuse_l1_length(l1: Any, n_features: int) -> None:
    """Refuse factors of an l1 penalty that are not as many as the features."""
    if np.ndim(l1) and len(l1) != n_features:
        raise ValueError(
            f"l1 has {len(l1)} entries, but there are {n_features} features: one per feature, or a number."
        )


def default_grid(alpha_max: float, n_alphas: int, eps: float) -> np.ndarray:
    """Geometric grid of ``n_alphas`` values from ``alpha_max`` down to ``eps * alpha_max``."""
    check_number(n_alphas, "n_alphas", low=1, closed=True, integer=True)
    check_number(eps, "eps", low=0, closed=False, high=1.0)
    if alpha_max <= 0:  # nothing to explain: every value gives zero coefficients
        alpha_max = 1.0
    grid = alpha_max * np.geomspace(1.0, eps, n_alphas)
    grid[0] = alpha_max
    return grid


def given_grid(alphas: Any) -> np.ndarray:
    """The user's values, decreasing."""
    grid = sorted_numbers(alphas, "alphas")
    if not len(grid) or grid[0] <= 0:
        raise value_error("{alphas} must be one or more positive numbers.")
    return grid[::-1].copy()


def sorted_numbers(values: Any, name: str) -> np.ndarray:
    """Finite numbers, increasing; none where a value is anything else."""
    refuse_masked_or_complex(values, name, ("value",))
    try:
        found = np.sort(np.asarray(values, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        return np.empty(0)
    return found if np.all(np.isfinite(found)) else np.empty(0)


def check_parameters(estimator: Any) -> None:
    """Raise what ``fit`` would raise about the parameters of an estimator, without data."""
    for check in ("_check_alpha", "_check_parameters"):
        if hasattr(estimator, check):
            getattr(estimator, check)()


def warn_one_class(data: TaskData) -> None:
    """Name the tasks with one class only: with an intercept, their loss has no finite minimiser."""
    present = data.weights > 0
    if data.ordered:
        _warn_one_ordered(data, present)
        return
    if data.class_counts is not None:
        _warn_absent(data, present)
        return
    negative = np.logical_or.reduceat((data.y < 0) & present, data.offsets[:-1])
    positive = np.logical_or.reduceat((data.y > 0) & present, data.offsets[:-1])
    names = data.tasks[~(negative & positive)].tolist()
    if names:
        warn(
            f"{len(names)} task(s) have rows of one class only ({some_of(names)}): their best intercept would be "
            "infinite and is kept finite.",
        )


def _warn_one_ordered(data: TaskData, present: np.ndarray) -> None:
    """The same for ordered classes, of which a task may lack any but the last two."""
    parts = zip(data.tasks.tolist(), data.per_task(), strict=True)
    names = [name for name, part in parts if len(np.unique(data.y[part][present[part]])) < 2]
    if names:
        warn(
            f"{len(names)} task(s) have rows of one class only ({some_of(names)}): they do not affect the model, their "
            "coefficients are 0 and that class is predicted.",
        )


def _warn_absent(data: TaskData, present: np.ndarray) -> None:
    """The same for classes, of more than two, that a task does not have."""
    names = []
    for t, part in enumerate(data.per_task()):
        found = np.unique(data.y[part][present[part]]).astype(np.intp)
        classes = data.classes_of(t)
        if len(found) < max(len(classes), 2):
            absent = np.delete(classes, found).tolist()
            lacks = f" lacks {absent[0]!r}" if absent else " has one only"
            names.append(f"task {data.tasks.tolist()[t]!r}{lacks}")
    if names:
        warn(
            f"{len(names)} task(s) have no rows of some class ({', '.join(names[:3])}{', ...' if names[3:] else ''}): "
            "its best intercept there would be infinite and is kept finite, its probability next to 0.",
        )


#: kinds of labels that not all numbers are -> what is wrong with them, what must hold, what to do
_LABELS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str, str]] = {
    "counts": (lambda y: y < 0.0, "counts must not be negative", "choose another loss"),
    "positive": (
        lambda y: y <= 0.0, "labels of the gamma loss must be positive", "choose the loss 'tweedie', which allows 0",
    ),
}  # fmt: skip


def refuse_labels(labels: TaskLabels, kind: str) -> None:
    """Refuse labels that are not of a loss's kind, by row and task."""
    if kind not in _LABELS:
        return
    is_wrong, rule, advice = _LABELS[kind]
    wrong = np.flatnonzero(is_wrong(labels.y) & (labels.weights > 0.0))
    if not len(wrong):
        return
    i = int(wrong[0])
    t = int(np.searchsorted(labels.offsets, i, side="right")) - 1
    row = i if labels.order is None else int(labels.order[i])
    if labels.form in ("list", "shared"):
        row = i - int(labels.offsets[t])
    task = "" if labels.form == "single" else f" of task {labels.tasks.tolist()[t]!r}"
    raise value_error(
        "{y}: {rule}; {row}{of_task} is {label:g}. Leave such rows out (NaN is a label that is not observed), or "
        "{advice}.",
        rule=rule,
        row=row_name(row),
        of_task=task,
        label=labels.y[i],
        advice=advice,
    )


def warn_no_counts(data: TaskData) -> None:
    """Name the tasks that count nothing: with an intercept, their loss has no minimiser."""
    totals = np.add.reduceat(data.weights * data.y, data.offsets[:-1])
    names = data.tasks[totals == 0.0].tolist()
    if names:
        warn(
            f"{len(names)} task(s) count nothing ({some_of(names)}): their best intercept would be minus infinity and "
            "is kept finite, their rate is practically 0, and they do not affect which features are selected.",
        )


def warn_column(y: Any) -> None:
    """scikit-learn's warning about a y of one column, which classifiers there take for a mistake."""
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected. It is read as one task of a shared matrix, "
            "and predictions have one column, too.",
            DataConversionWarning,
        )
