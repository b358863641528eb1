"""Ordered classes: which they are, in which order, and the code of each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..messages import Message, ParameterError, value_error
from ..user_warnings import warn
from .labels import label_array, observed_classes
from .sample_space import TaskLabels

_ORDERS = "orders of classes"  # what they are called in the metadata of a dtype


def known_order(y: Any) -> list[Any] | None:
    """The order of the classes that y itself knows: of ordered categoricals of pandas and enums of polars, the same in
    all items of a list; None where it knows none."""
    if isinstance(y, list | tuple) and y and all(hasattr(item, "dtype") for item in y):
        orders = [known_order(item) for item in y]
        if any(order is not None and order != orders[0] for order in orders[1:]):
            raise value_error("{y}: the tasks have ordered categories of different order: pass {categories}.")
        return orders[0]
    if hasattr(y, "columns") and hasattr(y, "iloc"):  # a data frame, a column a task
        return known_order([y.iloc[:, t] for t in range(y.shape[1])]) if y.shape[1] else None
    kind: Any = getattr(y, "dtype", None)
    if type(kind).__name__ == "Enum" and hasattr(kind, "categories"):  # polars
        return list(kind.categories.to_list())
    return kind.categories.tolist() if getattr(kind, "ordered", None) is True else None


def orders_by_task(y: Any, tasks: np.ndarray) -> list[list[Any] | None]:
    """The order of the classes of each task that y itself knows: an item for each task, or rows of all tasks."""
    names = tasks.tolist()
    if isinstance(y, list) and len(y) == len(names):
        return [known_order(item) for item in y]
    carried = (getattr(getattr(y, "dtype", None), "metadata", None) or {}).get(_ORDERS, {})
    common = known_order(y)
    return [carried.get(name, common) for name in names]


def with_orders(y: np.ndarray, orders: Mapping[Any, list[Any] | None]) -> np.ndarray:
    """Stacked labels that know the order of the classes of some tasks: in their dtype, which rows that are taken out
    of them keep."""
    known = {task: order for task, order in orders.items() if order is not None}
    return y.astype(np.dtype(object, metadata={_ORDERS: known})) if known else y


def encode_ordered(labels: TaskLabels, categories: Any) -> TaskLabels:
    """Labels with the codes 0, 1, .. of their classes, in the order of `categories`; None: sorted over all tasks.
    A dict gives each task its own."""
    present = labels.weights > 0.0
    codes = np.zeros(len(labels.y))
    if categories is None:
        classes = observed_classes(labels)
        if classes is None:
            raise value_error("{y} mixes labels that cannot be sorted: pass {categories}, their order.")
        if classes.dtype.kind in "OUS" and len(classes) > 2:
            words = " < ".join(map(str, classes.tolist()[:20])) + (" < ..." if len(classes) > 20 else "")
            warn(
                Message(
                    "Labels are words and stand in the order of the alphabet: {words}. If they mean another order, "
                    "pass {categories}, lowest first.",
                    words=words,
                )
            )
        codes[present] = np.searchsorted(classes, labels.y[present])
        return replace(labels, classes=classes, y=codes, ordered=True)
    names = labels.tasks.tolist()
    several = isinstance(categories, Mapping)
    if several:
        absent = [name for name in names if name not in categories]
        if absent:
            raise ParameterError("categories", f"is a dict without task {absent[0]!r}: it needs the classes of each")
    own = [_read(categories[name]) for name in names] if several else []
    common = None if several else _read(categories)
    for t, part in enumerate(labels.per_task()):
        order = own[t] if common is None else common
        place = {label: k for k, label in enumerate(order)}
        for i in np.flatnonzero(present[part]) + part.start:
            label = labels.y[i : i + 1].tolist()[0]
            if label not in place:
                raise value_error(
                    "{y}: {label!r} in {where} is not among the {categories} {known}.",
                    label=label,
                    where=labels.where(int(i)),
                    known=str(order),
                )
            codes[i] = place[label]
    if np.all(codes[present] == codes[present][:1]) and (common is not None or labels.n_tasks == 1):
        raise value_error("{y} has one class only: a model of ordered classes needs two.")
    by_task = [label_array(order) for order in own]
    return replace(labels, classes=by_task if common is None else label_array(common), y=codes, ordered=True)


def _read(categories: Any) -> list[Any]:
    """An order as a list, lowest first."""
    if isinstance(categories, str) or not isinstance(categories, Sequence | np.ndarray) or np.ndim(categories) != 1:
        raise ParameterError("categories", "must list the classes from the lowest to the highest", categories)
    order = categories.tolist() if isinstance(categories, np.ndarray) else list(categories)
    if len(order) < 2 or len(set(order)) != len(order):
        raise ParameterError("categories", "must hold two different classes or more, each once", categories)
    return order
