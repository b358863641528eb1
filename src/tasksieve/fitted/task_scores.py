"""How well a fitted model does, task by task."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tasks import count_rows, read_labels
from .measures import measure_of


def scores_by_task(
    model: Any, X: Any, y: Any, task: Any = None, sample_weight: Any = None, offset: Any = None
) -> tuple[str, np.ndarray, np.ndarray]:
    """Name of the measure (R², D², accuracy), its values and the number of labels, in the order of ``tasks_``.

    NaN for a task with too few labels to say.
    """
    measure = measure_of(model)
    labels = read_labels(count_rows(X), y, task, sample_weight, targets=model._raw_targets, allow_empty=True)
    options = {} if task is None else {"task": task}
    if offset is not None:
        options["offset"] = offset
    answer = model._scores(X, task, offset=offset) if measure.of_scores else model.predict(X, **options)
    predicted = labels.flatten(answer)
    known = getattr(model, "tasks_", labels.tasks)
    # stacked rows may hold fewer tasks than the model; lists and shared matrices have all, in order
    position = {label: t for t, label in enumerate(known.tolist())} if labels.form == "stacked" else None
    values, counts = np.full(len(known), np.nan), np.zeros(len(known), dtype=np.int64)
    for t, part in enumerate(labels.per_task()):
        at = t if position is None else position[labels.tasks[t].item()]
        seen = labels.weights[part] > 0
        counts[at] = np.count_nonzero(seen)
        if counts[at] >= measure.least:
            values[at] = measure.metric(labels.y[part][seen], predicted[part][seen], labels.weights[part][seen])
    return measure.name, values, counts
