"""Regressions by another loss than the squared one: what labels may be, what is predicted, how it is scored."""

from __future__ import annotations

from typing import Any

from ..fitted.arguments import refuse_negative, warn_no_counts
from ..fitted.model import TaskLinearModel
from ..fitted.predicting import TaskRegression
from ..tasks import TaskData, is_task_list, map_rows


class LinkedRegression(TaskRegression, TaskLinearModel):
    """A regression that leaves it to its loss what numbers mean."""

    fit_intercept: bool

    def _read(self, *arguments: Any, **options: Any) -> TaskData:
        data = super()._read(*arguments, **options)
        if self._loss.labels == "counts":
            refuse_negative(data)
            if self.fit_intercept:
                warn_no_counts(data)
        return data

    def _predict(self, X: Any, task: Any, state: Any = None, offset: Any = None) -> Any:
        scores = super()._predict(X, task, state, offset)
        link = self._loss.link
        if is_task_list(X):
            return [link(part) for part in scores]
        return map_rows(lambda rows, _: link(rows), scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._loss.labels == "counts"
        return tags
