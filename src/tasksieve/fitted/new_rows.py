"""How well a fitted model predicts held-out rows: a test set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from ..tasks import TaskLabels, count_rows, outcomes_in_order, read_labels, read_offset, to_numpy
from .assess import STEPS, Cells, Column, Part, Ranked, auc, explained, units_of
from .covariates import covariates_of
from .measures import measure_of, places_of_tasks
from .mixed_quality import MixedOutOfFold
from .quality import HeldOutQuality
from .survival_quality import quality_columns

# Lower bound of probabilities, so that one wrong row does not make the log loss infinite.
SMALLEST = 1e-15


class RowArguments(TypedDict, total=False):
    """What `fit` takes of rows beside X and y; rows that share a label of `groups` count as one in standard errors."""

    task: Any
    sample_weight: Any
    offset: Any
    groups: Any


def quality_on(
    model: Any, X: Any, y: Any, *, null: Any = None, given_tasks: bool = False, **rows: Unpack[RowArguments]
) -> HeldOutQuality:
    """R² (or D²) and the mean loss of each task, or accuracy, AUC and log loss, or concordance, D² and the deviance for
    each event, with standard errors.

    Nothing is chosen by these rows, provided that they are new to the model, which cannot be checked here.

    - `X`, `y`: Rows in any form that `fit` takes.
    - `null`: The null model of the rows that the model was fitted to.
    - `given_tasks`: Of a model of patterns of present columns, for the tasks that these are parts of.
    - returns: in the order of ``tasks_``, also of tasks without rows.
    """
    task, weights, offset, groups = map(rows.get, ("task", "sample_weight", "offset", "groups"))
    if model._targets == "mixed":
        return _of_unlike(model, null, X, y, task, weights, offset, groups)
    y = outcomes_in_order(y, model.tasks_)
    labels = read_labels(count_rows(X), y, task, weights, targets=model._raw_targets, allow_empty=True)
    options = {name: given for name, given in (("task", task), ("offset", offset)) if given is not None}
    if labels.form == "single" and np.ndim(predicted := model.predict(X, **options)) == 2:
        raise ValueError(f"The model has {np.shape(predicted)[1]} tasks: pass task, the task of each row.")
    # one task needs no name, and the classes of a multinomial model are none
    tasks = labels.tasks if labels.form == "single" else np.asarray(model.tasks_)
    code = places_of_tasks(labels, tasks)[labels.task_of_sample]
    patterns = getattr(model, "patterns_", None)
    if given_tasks and patterns is not None and patterns.of is not None:
        if isinstance(getattr(model, "classes_", None), list):
            raise ValueError("the patterns have classes of their own: there is no quality of the tasks as given.")
        tasks, family = patterns.families()
        code = family[code]
    used = np.flatnonzero(labels.weights > 0.0)
    used = used[np.argsort(code[used], kind="stable")]
    cells = Cells(code[used], labels.weights[used], units_of(labels, groups)[used], len(tasks))
    measure = measure_of(model)

    def columns(model: Any) -> list[Column]:
        if model._targets == "survival":
            scores = labels.flatten(model._scores(X, task, offset=offset))[used]
            known = None if offset is None else read_offset(offset, labels)[used]
            within = labels.task_of_sample[used]  # hazards of different patterns have no scale in common
            return quality_columns(labels.y[used], scores, known, labels.weights[used], cells, model._loss, within)
        if measure.constant_losses is None:
            return _of_classes(model, X, options, labels, used, cells)
        answer = model._scores(X, task, offset=offset) if measure.of_scores else model.predict(X, **options)
        assert measure.row_losses is not None
        losses = measure.row_losses(labels.y[used], labels.flatten(answer)[used])
        name = model._loss.label if measure.of_scores else "squared error"
        return [(measure.name, explained(cells, measure, labels.y[used], losses)), (name, cells.mean(losses))]

    beside, n_covariates = None, 0
    if null is not None:
        beside, n_covariates = columns(null), len(covariates_of(null, int(null.n_features_in_)))
    unit = "rows" if groups is None else "groups"
    return cells.quality(tasks, columns(model), beside, unit=unit, null_covariates=n_covariates)


def _of_unlike(
    model: Any, null: Any, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any, groups: Any
) -> HeldOutQuality:
    """Each task in its own measures, and the deviance explained of all."""
    labels = model._read_test_labels(X, y, task, sample_weight)
    offsets = None if offset is None else read_offset(offset, labels)
    labels = replace(labels, known=offsets)
    known = None if offsets is None else labels.unflatten(offsets)
    places = places_of_tasks(labels, model.tasks_)
    losses, scales = [model.losses_[t] for t in places.tolist()], model.target_scales_[places]
    both = [model, model if null is None else null]
    flat = [labels.flatten(own._scores(X, task, own._learned(), known)) for own in both]
    scores = {
        k: (
            np.arange(part.start, part.stop),
            np.stack([own._judged(t, z[part]) for own, z in zip(both, flat, strict=True)], axis=1),
        )
        for k, (t, part) in enumerate(zip(places.tolist(), labels.per_task(), strict=True))
    }
    judged = MixedOutOfFold(labels, losses, scales, lambda t, z: np.zeros(len(z)))
    judged.add_fold(scores, np.zeros(len(labels.weights)), labels.weights)
    n_covariates = 0 if null is None else len(covariates_of(null, int(null.n_features_in_)))
    facts = {"unit": "rows" if groups is None else "groups", "null_covariates": n_covariates}
    units = units_of(labels, groups)
    return judged.of_new_rows(units=units, weights=labels.weights, has_null=null is not None, **facts)


def _of_classes(
    model: Any, X: Any, options: dict[str, Any], labels: TaskLabels, rows: np.ndarray, cells: Cells
) -> list[Column]:
    """Accuracy; AUC where there are scores; of ordered classes how many a prediction is off; log loss where scores are
    probabilities."""
    y = labels.y[rows]
    predicted = labels.flatten(np.asarray(to_numpy(model.predict(X, **options))))[rows]
    columns = [("accuracy", cells.mean((y == predicted).astype(np.float64)))]
    steps: list[Column] = []
    if hasattr(model, "thresholds_"):
        off = np.abs(_codes(model.classes_, y, cells.task) - _codes(model.classes_, predicted, cells.task))
        steps.append((STEPS, cells.mean(off.astype(np.float64))))
    probable = hasattr(model, "predict_proba")
    answer = to_numpy(model.predict_proba(X, **options) if probable else model.decision_function(X, **options))
    if isinstance(answer, list):  # different classes, and more than two: nothing to compare
        return [*columns, *steps]
    answer = np.asarray(answer)
    many = answer.ndim > (2 if labels.shared else 1)
    scores = [answer[..., k] for k in range(answer.shape[-1])] if many else [answer]
    ranks = np.stack([labels.flatten(column)[rows] for column in scores], axis=1)
    codes = _codes(model.classes_, y, cells.task)
    area = auc(cells, codes, Ranked(np.arange(len(codes)), np.zeros(len(codes), dtype=np.int64), ranks))
    columns.append(("AUC", Part(area.values, area.changes)))  # one model, no folds
    columns += steps
    if probable:
        chances = ranks if many else np.stack([1.0 - ranks[:, 0], ranks[:, 0]], axis=1)
        chance = chances[np.arange(len(codes)), codes]
        columns.append(("log loss", cells.mean(-np.log(np.maximum(chance, SMALLEST)))))
    return columns


def _codes(classes: Any, y: np.ndarray, task: np.ndarray) -> np.ndarray:
    """The place of each label among the classes, its task's own where tasks have their own."""
    of_task = classes if isinstance(classes, list) else None
    codes = np.zeros(len(y), dtype=np.int64)
    for t in np.unique(task).tolist():
        own = classes if of_task is None else of_task[t]
        position = {label: k for k, label in enumerate(own.tolist())}
        here = np.flatnonzero(task == t)
        unknown = [label for label in y[here].tolist() if label not in position]
        if unknown:
            known = list(position)
            raise ValueError(f"y holds the class {unknown[0]!r}, which the model was not fitted with ({known}).")
        codes[here] = [position[label] for label in y[here].tolist()]
    return codes
