"""Learning from single rows, dicts or arrays, and predicting them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.murmurhash import murmurhash3_32

from ..tasks.labels import is_fraction
from .base import OnlineLinearModel


class SingleRows(OnlineLinearModel):
    """What `learn_one` and `predict_one` of the online models share."""

    def _has_met(self, code: int, y: Any) -> bool:
        """Whether a task has met a label: all numbers are known."""
        return True

    def _target(self, code: int, y: Any) -> float:
        return y

    def _learn_row(self, x: Any, y: Any, task: Any, w: float) -> None:
        """Learn from a row; y is None where it is not observed."""
        if not 0 <= w < np.inf:
            raise ValueError(f"w must be finite and >= 0, got {w!r}.")
        with self._guard:
            task, x = self._task_and_row(x, task)
            goes_on = hasattr(self, "_learner") and self._single == (task is None)
            code = self._code_of(task) if goes_on else None
            if code is not None and self._has_met(code, y):
                self._learn_one(x, y, code, w)
                return
            self._check_one(x)
            with self._all_or_nothing():
                self._learn_one(x, y, self._place_one(x, task), w)

    def _task_and_row(self, x: Any, task: Any) -> tuple[Any, Any]:
        """The task's label, and the row without it where ``task_feature`` names its place in the row."""
        if self.task_feature is None:
            return task, x
        if not isinstance(x, dict) or self.task_feature not in x:
            raise ValueError(f"x holds no {self.task_feature!r}, which 'task_feature' names as the task.")
        return x[self.task_feature], {name: value for name, value in x.items() if name != self.task_feature}

    def _code_of(self, task: Any) -> int | None:
        return self._codes.get(0 if task is None else task)

    def _check_one(self, x: Any) -> None:
        """Refuse a first row of anything before it has changed anything."""
        values = x
        if isinstance(x, dict):
            hashed = self.hash_features is not None
            values = [value for value in x.values() if not (hashed and isinstance(value, str))]
        row = np.asarray(values, dtype=np.float64)
        if row.ndim != 1:
            raise ValueError(f"x must be a dict or a 1-D array; got {row.ndim} dimensions.")
        _refuse_not_finite(row)

    def _place_one(self, x: Any, task: Any) -> int:
        """The code of the task of a row with which the model, or the task, begins."""
        if not hasattr(self, "_learner"):
            length = None if isinstance(x, dict) else len(x)
            self._begin(length)
            self.n_features_in_ = self.hash_features or 0 if length is None else length
            self._learner.resize(self.n_features_in_, 0)
            self._set_l1()
        if task is None and self._labels and not self._single:
            raise ValueError("The model has learned rows with task labels: pass task.")
        if is_fraction(task):
            raise ValueError(f"task is {task}, no word and no whole number: is this the outcome, y?")
        self._single = task is None
        return self._join(0 if task is None else task)

    def _hashed(self, x: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Signed values and places of hashed names, as scikit-learn's FeatureHasher has them."""
        assert self.hash_features is not None
        index = np.empty(len(x), dtype=np.int64)
        values = np.empty(len(x))
        for k, (name, value) in enumerate(x.items()):
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            code = murmurhash3_32(name if isinstance(name, str) else str(name), 0)
            index[k] = abs(code) % self.hash_features
            values[k] = value if code >= 0 else -value
        _refuse_not_finite(values)
        return values, index

    def _learn_one(self, x: Any, y: Any, code: int, w: float) -> None:
        if w == 0 or y is None:
            return
        y, learner = self._target(code, y), self._learner
        self._cache.clear()
        if not isinstance(x, dict):
            if type(x) is not np.ndarray or x.dtype != np.float64:
                x = np.array(x, dtype=np.float64)
            ok = learner.learn_array(x, y, code, w)
        elif self.hash_features is not None:
            values, index = self._hashed(x)
            ends = np.array([0, len(index)])
            ok = learner.learn_sparse(values, index, ends, np.array([y]), np.array([code]), np.array([w])) == 1
        else:
            ok = learner.learn_dict(x, self._vocabulary, y, code, w)
            self.n_features_in_ = learner.features
        if not ok:
            raise ValueError(f"The row {self._refusal()}")

    def _score_one(self, x: Any, task: Any) -> float:
        """x . w + b; 0 for a task, or a model, that has learned nothing. The caller has the lock."""
        task, x = self._task_and_row(x, task)
        code = self._code_of(task) if hasattr(self, "_learner") else None
        if code is None:
            return 0.0
        if not isinstance(x, dict):
            return float(self._learner.score_array(np.array(x, dtype=np.float64), code))
        if self.hash_features is not None:
            return float(self._learner.score_sparse(*self._hashed(x), code))
        return float(self._learner.score_dict(x, self._vocabulary, code))


def _refuse_not_finite(values: np.ndarray) -> None:
    if not np.all(np.isfinite(values)):
        raise ValueError("x contains NaN or infinity")
