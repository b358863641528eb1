"""What a report shows of a particular loss or penalty: parts of the coefficients, groups of features, rates, classes.

Each table is asked of the fitted model by what it has, not by its name: a model of one's own that has
``selected_groups_`` gets its table of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from ..penalties.groups import read_feature_groups
from .content import Array, ExtraTable
from .rows import has_class_rows
from .words import count

_MOST_ROWS, _MOST_TASKS, _MOST_INSIDE = 50, 8, 30


def member_tables(model: Any, features: Sequence[Any], tasks: Sequence[Any]) -> list[ExtraTable]:
    """Tables of a fitted model beside that of its features; `features` and `tasks` are names."""
    names = np.asarray([str(name) for name in features], dtype=object)
    labels = [str(name) for name in tasks]
    tables: list[ExtraTable] = []
    if has_class_rows(model):
        return _classes(model, names, labels)
    if len(labels) != len(model.coef_):
        return tables
    if hasattr(model, "shared_coef_"):
        tables += [
            _part(model.shared_coef_, names, labels, "What tasks share", "The shared part of the coefficients"),
            _part(model.specific_coef_, names, labels, "What single tasks add", "The task-specific part"),
        ]
    if hasattr(model, "selected_groups_"):
        tables += _groups(model, names)
    coef = np.asarray(model.coef_)
    if get_tags(model).target_tags.positive_only:
        tables.append(_ratios(coef, names, labels, "Rate ratios", "the expected value"))
    if hasattr(model, "baseline_hazard_"):
        tables.append(_ratios(coef, names, labels, "Hazard ratios", "the hazard of an event at any time"))
    if hasattr(model, "loss_weights_"):  # unlike outcomes
        tables += _unlike_ratios(model, coef, names, labels)
    elif hasattr(model, "thresholds_"):
        higher = "the odds of a higher class, wherever classes are split"
        tables.append(_ratios(coef, names, labels, "Odds ratios", higher))
    if hasattr(model, "thresholds_"):
        tables += _thresholds(model, labels)
    if hasattr(model, "loss_weights_"):
        tables.append(_loss_weights(model, labels))
    return tables


def _number(value: float) -> str:
    return "0" if value == 0.0 else f"{value:.4g}".replace("-", "−")


def _strongest(coef: Array) -> Array:
    """Features in use, those with the longest rows first."""
    sizes = np.linalg.norm(coef, axis=0)
    order = np.argsort(-sizes, kind="stable")
    return order[sizes[order] > 0.0]


def _by_task(
    coef: Array, names: Array, labels: list[str], title: str, note: str, style: Callable[[float], str] = _number
) -> ExtraTable:
    order, shown = _strongest(coef), labels[:_MOST_TASKS]
    if len(labels) > _MOST_TASKS:
        note += f" The first {_MOST_TASKS} of {len(labels)} tasks are shown."
    if len(order) > _MOST_ROWS:
        note += f" {len(order) - _MOST_ROWS:,} more are left out."
    rows = [[str(names[j]), *(style(value) for value in coef[: len(shown), j])] for j in order[:_MOST_ROWS]]
    return ExtraTable(title, note, ["Feature", *shown], rows)


def _part(part: Array, names: Array, labels: list[str], title: str, what: str) -> ExtraTable:
    used = count(int(np.count_nonzero(part.any(axis=0))), "feature")
    note = f"{what}: {used}. Both parts together are the coefficients above."
    return _by_task(part, names, labels, title, note)


def _groups(model: Any, names: Array) -> list[ExtraTable]:
    coef = np.asarray(model.coef_)
    labels = getattr(model, "feature_groups", getattr(getattr(model, "penalty", None), "labels", None))
    if labels is None:
        return []
    groups, code = read_feature_groups(labels)
    members: dict[str, list[int]] = {}
    for j in np.flatnonzero(coef.any(axis=0)).tolist():
        members.setdefault(str(groups[code[j]]), []).append(j)
    sizes = {group: float(np.linalg.norm(coef[:, own])) for group, own in members.items()}
    rows, inside = [], []
    for group in sorted(members, key=lambda name: -sizes[name])[:_MOST_ROWS]:
        own = sorted(members[group], key=lambda j: -float(np.linalg.norm(coef[:, j])))
        rows.append([group, _number(sizes[group]), f"{len(own):,}"])
        inside.append([(str(names[j]), _number(float(np.linalg.norm(coef[:, j])))) for j in own[:_MOST_INSIDE]])
    note = f"{count(len(members), 'group')} in use, strongest first; open one to see its features and their strengths."
    return [ExtraTable("Selected groups", note, ["Group", "Strength", "Features in use"], rows, inside)]


def _ratios(coef: Array, names: Array, labels: list[str], title: str, what: str) -> ExtraTable:
    note = (
        f"What one unit more of a feature multiplies {what} by, other features held: the exponential of its "
        "coefficient. 1 is no effect."
    )
    return _by_task(coef, names, labels, title, note, lambda value: _number(float(np.exp(value))))


#: what the exponential of a coefficient is, by the kind of labels, and what it multiplies
_KINDS = {
    "counts": ("rate ratio", "the expected value"),
    "positive": ("ratio of means", "the expected value"),
    "survival": ("hazard ratio", "the hazard of an event at any time"),
    "signs": ("odds ratio", "the odds of the class “{later}”"),
    "ordered": ("odds ratio", "the odds of a higher class"),
}


def _later(model: Any, t: int) -> str:
    """The second of two classes."""
    return "" if model.classes_[t] is None else str(model.classes_[t][-1])


def _unlike_ratios(model: Any, coef: Array, names: Array, labels: list[str]) -> list[ExtraTable]:
    """Exponentials of the coefficients of those tasks in which they mean something, side by side."""
    found = [
        (t, _KINDS[loss.labels][0], _KINDS[loss.labels][1].format(later=_later(model, t)))
        for t, loss in enumerate(model.losses_)
        if loss.labels in _KINDS and (loss.labels != "signs" or loss.probabilities)
    ]
    if not found:
        return []
    rows = [t for t, _, _ in found]
    what = "; ".join(dict.fromkeys(f"{word}: {multiplied}" for _, word, multiplied in found))
    note = (
        "What one unit more of a feature multiplies, other features held: the exponential of its coefficient. 1 is no "
        f"effect. {what[0].upper()}{what[1:]}."
    )
    if len(rows) < len(labels):
        note += " Other tasks have effects that add up: their coefficients are above."
    heads = [f"{labels[t]}, {word}" for t, word, _ in found]
    return [_by_task(coef[rows], names, heads, "Ratios", note, lambda value: _number(float(np.exp(value))))]


def _thresholds(model: Any, labels: list[str]) -> list[ExtraTable]:
    """Between neighbouring classes, of tasks that have thresholds."""
    each = [model.classes_] * len(labels) if not isinstance(model.classes_, list) else model.classes_
    rows = []
    for task, classes, thresholds in zip(labels, each, model.thresholds_, strict=True):
        if thresholds is None:
            continue
        between = [f"{low} | {high}" for low, high in pairwise(np.asarray(classes).tolist())]
        rows += [
            [task, name, _number(float(value))] for name, value in zip(between, thresholds, strict=False)
        ]
    if not rows:
        return []
    note = "A row is of a class up to k with the odds exp(threshold − score)."
    if any("inf" in row[2] for row in rows):
        note += " Infinite: the task has no row beyond."
    return [ExtraTable("Thresholds between classes", note, ["Task", "Between", "Threshold"], rows)]


def _loss_weights(model: Any, labels: list[str]) -> ExtraTable:
    """What the loss of each task counts."""
    rows = [
        [task, loss.label, _number(float(weight)), _number(float(scale))]
        for task, loss, weight, scale in zip(
            labels, model.losses_, model.loss_weights_, model.target_scales_, strict=True
        )
    ]
    note = (
        "The objective is the sum of the tasks' losses times these weights, on labels divided by their scale. By "
        "default a weight is one over the root mean square of the residuals without features, so that features which "
        "are noise enter all tasks at the same penalty strength, whatever the units; a larger weight lets a task "
        "decide more."
    )
    return ExtraTable("Loss of each task", note, ["Task", "Loss", "Weight", "Labels divided by"], rows)


def _classes(model: Any, names: Array, labels: list[str]) -> list[ExtraTable]:
    """A table for each class, with the coefficients of the tasks that have it."""
    by_class: dict[str, list[tuple[str, Array]]] = {}
    coefs = model.coef_ if isinstance(model.coef_, list) else list(np.swapaxes(model.coef_, 0, 1))
    classes = model.classes_ if isinstance(model.classes_, list) else [model.classes_] * len(coefs)
    for task, own, rows in zip(labels, classes, coefs, strict=True):
        for name, row in zip(own.tolist(), rows, strict=True):
            by_class.setdefault(str(name), []).append((task, row))
    return [
        _by_task(
            np.stack([row for _, row in parts]),
            names,
            [task for task, _ in parts],
            f"Class “{name}”",
            "Coefficients of its score; the class with the largest score is predicted.",
        )
        for name, parts in by_class.items()
    ]
