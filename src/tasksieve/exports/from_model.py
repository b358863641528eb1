"""The description of a fitted model: its linear scores, what they mean, and the columns that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..fitted.fill_missing import FillMissing
from ..fitted.model import FittedModel
from ..fitted.solved_values import SolvedValues
from ..fitted.state import LinearState
from ..linear.owl import ManyClasses
from ..losses import Loss
from ..losses.mean_divergence import MeanDivergence
from ..messages import either, estimator_name, value_error
from ..versions import versions
from .columns import Columns
from .description import Description, Label, Link, Score, Task, number_columns, word_columns

Array = np.ndarray[Any, Any]


def describe(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    task: str | None = None,
    offset: str | None = None,
    columns: Columns | None = None,
) -> Description:
    """The description of a fitted estimator, or of a pipeline that ends with one.

    - `feature_names`: Where the model knows none.
    - `task`, `offset`: Inputs that hold the task and the offset of a row.
    - `columns`: Where features come from, if that is known already.
    """
    steps: list[Any] = []
    if isinstance(model, Pipeline):
        steps, model = [step for _, step in model.steps[:-1]], model.steps[-1][1]
    state = _state(model)
    names = list(_labels(state.tasks))
    if columns is None:
        columns = _from_steps(model, steps, names, feature_names)
    n_features = int(state.rows.shape[1])
    if len(columns.features) != n_features:
        raise value_error(
            "{feature_names} are {n}, but the model has {d} features.", n=len(columns.features), d=n_features
        )
    own_task = getattr(model, "task", None)
    task = task or columns.task or (own_task if isinstance(own_task, str) else None)
    offset = offset or columns.offset or ("offset" if state.needs_offset else None)
    if offset is not None and not getattr(model, "_takes_offset", False):
        raise value_error("{offset}: {model} takes none.", model=estimator_name(model))
    columns = columns.filled_genotypes(state.fills)
    chosen = _in_use(state)
    inputs, features = columns.used(chosen)
    tasks = _tasks(model, state, columns.names or names, state.rows[:, chosen], offset)
    if task is not None and (state.single or isinstance(model, ManyClasses)):
        raise value_error("{task}: {model} was fitted without tasks.", model=estimator_name(model))
    every = number_columns(columns.inputs, columns.features), word_columns(columns.inputs)
    found = Description(type(model).__name__, versions()["tasksieve"], inputs, features, tuple(tasks), task, *every)
    _check_names(found)
    return found


def features_in_use(model: Any) -> Array:
    """The features that some task uses, which a description has."""
    return _in_use(_state(model))


def _in_use(state: LinearState) -> Array:
    return np.flatnonzero(np.any(state.rows != 0.0, axis=0))


def _state(model: Any) -> LinearState:
    """The linear state of a model; an error that says why there is none, or why a file cannot hold it."""
    name = estimator_name(model)
    if isinstance(model, SolvedValues):
        how = either(", path.model(k)")
        raise value_error("{model} has many models: export one of them{how}.", model=name, how=how)
    if not isinstance(model, FittedModel):
        raise value_error("{model} is no estimator of tasksieve that could be exported.", model=name)
    if not hasattr(model, "predict"):
        raise value_error("{model} selects features and predicts nothing: export a model of them.", model=name)
    if getattr(model, "hasher", None) is not None:
        raise value_error(
            "{model} with a hasher scores strings by their k-mers: there are no columns to write.", model=name
        )
    if getattr(model, "hash_features", None) is not None:
        raise value_error(
            "{model} with {hash_features} keeps no names, so that there are no columns to write.", model=name
        )
    check_is_fitted(model)
    if getattr(model, "patterns_", None) is not None:
        raise value_error(
            "{model} was fitted to patterns of present columns: which coefficients a row gets depends on all that it "
            "has and lacks, and no file says that.",
            model=name,
        )
    state = model._learned()
    if np.iscomplexobj(state.rows):
        raise value_error("{model}: complex coefficients have no place in a file.", model=name)
    return state


def _from_steps(model: Any, steps: Sequence[Any], tasks: list[Any], given: Sequence[str] | None) -> Columns:
    """The columns of X, and what the steps of a pipeline make of them."""
    first = steps[0] if steps else model
    names = getattr(first, "feature_names_in_", None)
    n_first = getattr(first, "n_features_in_", model.n_features_in_)
    words = getattr(model, "feature_index_", None) if not steps and names is None else None
    if given is not None:
        found = Columns.plain([str(name) for name in given])
    elif words:  # features that rows, as dictionaries, have brought: one that a row lacks is 0
        by_place = {place: str(name) for name, place in words.items()}
        found = Columns.plain([by_place.get(j, f"x{j}") for j in range(model.n_features_in_)])
        found = found.filled(np.zeros(model.n_features_in_))
    else:
        found = Columns.plain([f"x{j}" for j in range(n_first)] if names is None else [str(name) for name in names])
    scaled = False
    for step in steps:
        if isinstance(step, str) or step is None:  # "passthrough"
            continue
        if type(step) is FillMissing and not scaled:
            found = found.with_filling(step, tasks)
        elif type(step) is StandardScaler and not scaled:
            check_is_fitted(step)
            found, scaled = found.with_scaling(step.mean_, step.scale_), True
        else:
            raise value_error(
                "{step} in the pipeline cannot be exported: known are FillMissing, and StandardScaler behind it.",
                step=type(step).__name__,
            )
    return found


# --- what scores mean -------------------------------------------------------------------------------------------


def _tasks(model: Any, state: LinearState, names: list[Any], rows: Array, offset: str | None) -> list[Task]:
    if isinstance(model, ManyClasses):  # rows are the classes of one task
        labels = _labels(model.classes_)
        each = [None if offset is None else f"{offset} ({label})" for label in labels]
        scores = tuple(_score(*of) for of in zip(rows, state.constants.tolist(), each, strict=True))
        return [Task(None, "softmax", scores, labels)]
    counts = state.class_counts
    cuts = np.cumsum([0, *counts])
    found = []
    for t, name in enumerate(names):
        part = slice(int(cuts[t]), int(cuts[t + 1]))
        several = isinstance(state.coef, list) or state.coef.ndim == 3
        link, classes, thresholds = _meaning(model, state, t, several)
        constants = state.constants[part].tolist()
        scores = tuple(_score(row, constant, offset) for row, constant in zip(rows[part], constants, strict=True))
        found.append(Task(None if state.single and len(names) == 1 else name, link, scores, classes, thresholds))
    return found


def _meaning(
    model: Any, state: LinearState, t: int, several: bool
) -> tuple[Link, tuple[Label, ...] | None, tuple[float, ...] | None]:
    """Link, classes and thresholds of a task."""
    mixed = hasattr(model, "losses_")
    loss: Any = model.losses_[t] if mixed else None
    if model._targets == "survival" or (mixed and loss.labels == "survival"):
        return "log-hazard", None, None
    if (model.classes_[t] is None) if mixed else model._targets == "values":
        return _link(loss or model._loss), None, None
    every = model.classes_ if mixed else state.classes
    classes = every[t] if isinstance(every, list) else every
    if classes is None:  # of a task without rows, among tasks with different classes: its scores are all there is
        return "identity", None, None
    labels = _labels(classes)
    if len(labels) < 2:
        raise value_error("{model} knows one class only, {only!r}: there is nothing to predict.",
                          model=estimator_name(model), only=labels[0])  # fmt: skip
    thresholds = model.thresholds_ if mixed else state.thresholds
    if thresholds is not None and thresholds[t] is not None:
        return "ordinal", labels, tuple(map(float, thresholds[t]))
    probable = loss.probabilities if loss is not None else hasattr(model, "predict_proba")
    if not several:
        return "logistic" if probable else "sign", labels, None
    return ("argmax" if not probable else "softmax" if state.joint else "one-vs-rest"), labels, None


def _link(loss: Loss) -> Link:
    """What numbers mean: themselves, or logarithms of means."""
    own = type(loss).link
    if own is Loss.link:
        return "identity"
    if own is MeanDivergence.link:
        return "exp"
    raise value_error("the loss {loss} has a link of its own, which no file can hold.", loss=type(loss).__name__)


def _score(row: Array, constant: float, offset: str | None) -> Score:
    places = np.flatnonzero(row)
    pairs = zip(places.tolist(), row[places].tolist(), strict=True)
    return Score(float(constant), tuple((j, float(w)) for j, w in pairs), offset)


def _labels(labels: Any) -> tuple[Label, ...]:
    """As Python has them: no scalars of NumPy, which arrays of objects may hold."""
    each = np.asarray(labels).tolist()
    return tuple(label.item() if isinstance(label, np.generic) else label for label in each)


def _check_names(found: Description) -> None:
    """Refuse labels that files cannot hold, and inputs that cannot be told apart."""
    for label in found.values_used():
        if not isinstance(label, str | int | float | bool | None):
            raise value_error(
                "tasks and classes in a file are words or numbers; got {label!r}.", label=label
            )
    columns, seen = found.columns, set[str]()
    for name in columns:
        if name in seen:
            raise value_error("two inputs are called {name!r}: name them apart.", name=name)
        seen.add(name)
