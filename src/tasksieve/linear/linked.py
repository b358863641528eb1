"""Regressions by another loss than the squared one: what labels may be, what is predicted, how it is scored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.arguments import refuse_negative, warn_no_counts
from ..fitted.model import TaskLinearModel
from ..fitted.scoring import d2, mean_over_tasks
from ..tasks import TaskData, is_task_list, observed_offset
from .offsets import TaskRegression


class LinkedRegression(TaskRegression, TaskLinearModel):
    """A regression that leaves it to its loss what numbers mean."""

    fit_intercept: bool

    def _read(self, *arguments: Any, **options: Any) -> TaskData:
        data = super()._read(*arguments, **options)
        if self._member.labels == "counts":
            refuse_negative(data)
            if self.fit_intercept:
                warn_no_counts(data)
        return data

    def _predict(self, X: Any, task: Any, state: Any = None, offset: Any = None) -> Any:
        scores = super()._predict(X, task, state, offset)
        link = self._member.link
        return [link(part) for part in scores] if is_task_list(X) else link(scores)

    def _task_score(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any = None) -> float:
        """Mean over tasks of R², or of D² where the loss has a best constant."""
        loss, state = self._member, self._learned()
        labels = self._read_test_labels(X, y, task, sample_weight, state)
        if loss.best_constant(np.ones(1), np.ones(1)) is None:
            return super()._task_score(X, y, task, sample_weight, offset)
        known = None if offset is None else observed_offset(offset, labels)
        scores = labels.flatten(self._scores(X, task, state, known))

        def metric(own: np.ndarray, z: np.ndarray, weights: np.ndarray) -> float:
            return d2(own, z, weights, loss)

        return mean_over_tasks(labels, scores, metric, least=2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._member.labels == "counts"
        return tags
