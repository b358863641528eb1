"""Models on held-out rows: their scores, the losses of these, and predictions out of fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils.metaestimators import available_if

from ..fitted.assess import HeldOutRows, assess, units_of, widening
from ..fitted.folds import Folds
from ..fitted.held_out import read_scorer, score_or_nan
from ..fitted.measures import Measure
from ..fitted.quality import HeldOutQuality
from ..losses import Loss
from ..messages import value_error
from ..tasks import TaskData

# Entries of X packed at a time to predict held-out rows.
PACKED_ENTRIES = 1 << 25

Scores = tuple[list[np.ndarray], dict[int, np.ndarray]]


class Judge:
    """How held-out rows are scored: by the loss's own measure, or by a scorer (``scorer(estimator, X, y)``, greater is
    better) or its name in scikit-learn."""

    def __init__(self, loss: Loss, scoring: Any = None) -> None:
        self._loss, self._scoring = loss, scoring
        self._scorer = None if scoring is None else read_scorer(scoring)

    def losses(self, data: TaskData, weights: np.ndarray, points: Sequence[Any]) -> np.ndarray:
        """The mean over tasks at each point of a path (K,), smaller is better; a score comes with a minus. Rows count
        that have a positive weight; tasks without any, or whose score is not defined, are left out."""
        found = self.by_task(data, weights, points)
        known = ~np.isnan(found)
        if self._scorer is not None and not known.any(axis=0).all():
            raise value_error(
                "{scoring=!r} is not defined for the held-out rows of any task in a fold (one class only, or too "
                "few rows): use fewer folds, or another score.",
                scoring=self._scoring,
            )
        means: np.ndarray = sum(np.where(known, found, 0.0)) / known.sum(axis=0)
        return means if self._scorer is None else -means

    def by_task(
        self, data: TaskData, weights: np.ndarray, points: Sequence[Any], found: Scores | None = None
    ) -> np.ndarray:
        """Losses or scores of each task at each point (T, K); NaN where there are none; `found`: `path_scores`."""
        chosen, scores = path_scores(data, weights, points) if found is None else found
        out, codes = np.full((data.n_tasks, len(points)), np.nan), data.class_codes
        for t, z in scores.items():
            flat = data.offsets[t] + chosen[t]
            if self._scorer is None:
                own = np.average(self._loss.deviance(data.y[flat][:, None], z), axis=0, weights=weights[flat])
                out[t] = np.sqrt(own) if self._loss.rooted else own
                continue
            s = weights[flat] if data.class_factors is None else weights[flat] / data.class_factors[flat]
            y = data.y[flat] if codes is None else data.classes_of(t)[codes[flat]]
            rows = np.arange(len(flat))[:, None]
            if not isinstance(self._scorer, _BaseScorer):  # it may use X in any way
                rows = data.take(np.arange(data.n_features))[chosen[t] if data.shared else flat]
            kind = ReadyRegressor if data.classes is None else ReadyClassifier
            for k, point in enumerate(points):
                model = kind(data, t, self._loss, point, rows, z[:, k])
                out[t, k] = score_or_nan(self._scorer, model, rows, y, None if np.all(s == s[0]) else s)
        return out


# --- a model for scorers ---------------------------------------------------------------------------------------------


class _Ready(BaseEstimator):
    """One task of a model at one value of its path: what a scorer sees. Predictions of the held-out rows are ready."""

    def __init__(self, data: TaskData, t: int, loss: Loss, point: Any, rows: np.ndarray, z: np.ndarray) -> None:
        self._loss, self._point, self._rows, self._z = loss, point, rows, z
        self._own = coefficient_columns(data)[t]
        self.n_features_in_ = data.n_features

    def _scores(self, X: Any) -> np.ndarray:
        if X is self._rows:
            return self._z
        columns = np.asarray(X)[:, self._point.features]
        return np.asarray(columns @ self._point.rows[:, self._own] + self._point.intercept[self._own])


class ReadyRegressor(RegressorMixin, _Ready):
    """Numbers."""

    def predict(self, X: Any) -> np.ndarray:
        return self._loss.link(self._scores(X))


def _has_probabilities(model: Any) -> bool:
    return bool(model._loss.probabilities)


class ReadyClassifier(ClassifierMixin, _Ready):
    """Classes."""

    def __init__(self, data: TaskData, t: int, *arguments: Any) -> None:
        super().__init__(data, t, *arguments)
        self.classes_ = data.classes_of(t)
        self._several = data.class_counts is not None

    def decision_function(self, X: Any) -> np.ndarray:
        z = self._scores(X)
        return z[:, 1] - z[:, 0] if self._several and z.shape[1] == 2 else z

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        return probabilities(self._scores(X), self._several)

    def predict(self, X: Any) -> np.ndarray:
        z = self._scores(X)
        return np.asarray(self.classes_[np.argmax(z, axis=1) if self._several else (z > 0).astype(np.intp)])


def probabilities(z: np.ndarray, several: bool) -> np.ndarray:
    """Of the classes on a last axis, from log-odds."""
    return np.asarray(softmax(z, axis=-1)) if several else np.stack([expit(-z), expit(z)], axis=-1)


# --- scores of held-out rows -----------------------------------------------------------------------------------------


def coefficient_columns(data: TaskData) -> list[Any]:
    """The columns of coefficients of each task: one, or one for each of its classes."""
    if data.class_counts is None:
        return list(range(data.n_tasks))
    return [slice(*pair) for pair in pairwise([0, *np.cumsum(data.class_counts).tolist()])]


def path_scores(data: TaskData, weights: np.ndarray, points: Sequence[Any]) -> Scores:
    """Rows of each task with a positive weight, and for tasks that have any their predictions at each point (rows x K).

    More than two classes: a last axis for those of the task. The columns of all features selected anywhere on the path
    are read once, a bounded number at a time.
    """
    chosen = [np.flatnonzero(weights[part] > 0) for part in data.per_task()]
    kept = [t for t, rows in enumerate(chosen) if len(rows)]
    support = np.unique(np.concatenate([point.features for point in points]))
    intercepts = np.stack([point.intercept for point in points])
    width, own = intercepts.shape[1], coefficient_columns(data)
    scores = {t: np.repeat(intercepts[None, :, own[t]], len(chosen[t]), axis=0) for t in kept}
    if data.known is not None:
        for t in kept:
            if data.class_counts is None:
                scores[t] += data.known[data.offsets[t] + chosen[t]][:, None]
            else:  # of one task: classes x rows
                scores[t] += data.known.reshape(-1, data.n_rows).T[chosen[t], None, :]
    # tasks that share a matrix and the rows they are scored on share one product
    together = data.shared and all(np.array_equal(chosen[t], chosen[kept[0]]) for t in kept)
    step = max(1, PACKED_ENTRIES // max(1, data.n_rows, len(points) * width))
    for start in range(0, len(support), step):
        features = support[start : start + step]
        columns = data.take(features)
        coef = np.zeros((len(features), len(points), width))
        for k, point in enumerate(points):
            positions = np.minimum(np.searchsorted(features, point.features), len(features) - 1)
            inside = features[positions] == point.features
            coef[positions[inside], k] = point.rows[inside]
        if together:
            found = columns[chosen[kept[0]]] @ coef.reshape(len(features), -1)
            found = found.reshape(len(found), len(points), width)
        for t in kept:
            if together:
                scores[t] += found[:, :, own[t]]
                continue
            first = 0 if data.shared else data.offsets[t]
            part = coef[:, :, own[t]]
            found = columns[first + chosen[t]] @ part.reshape(len(features), -1)
            scores[t] += found.reshape(len(found), *part.shape[1:])
    return chosen, scores


# --- what is kept of a fold's path ------------------------------------------------------------------------------------


@dataclass
class Solved:
    """Features, their rows of coefficients, and intercepts: all that predictions need of a value."""

    features: np.ndarray
    rows: np.ndarray
    intercept: np.ndarray


def pack_points(points: Sequence[Any]) -> dict[str, np.ndarray]:
    """Values of a path as arrays."""
    return {
        "features": np.concatenate([point.features for point in points]).astype(np.int64),
        "rows": np.concatenate([point.rows for point in points]),
        "ends": np.cumsum([len(point.features) for point in points]),
        "intercept": np.stack([point.intercept for point in points]),
    }


def unpack_point(arrays: dict[str, np.ndarray], k: int) -> Solved:
    """Value k of them."""
    low, high = arrays["ends"][k - 1] if k else 0, arrays["ends"][k]
    return Solved(arrays["features"][low:high], arrays["rows"][low:high], arrays["intercept"][k])


# --- predictions out of fold -----------------------------------------------------------------------------------------


class OutOfFold:
    """Predictions of all rows by models that did not see them, fold after fold, and how good they are: responses, of
    classes probabilities where the loss has them, else decision values."""

    def __init__(self, data: TaskData, loss: Loss, measure: Measure) -> None:
        self._data, self._loss = data, loss
        self._rows, self._null = (HeldOutRows(len(data.y), measure, data.class_codes) for _ in range(2))
        self._several, self._two = data.class_counts is not None, data.classes is not None
        width = 1
        if data.class_counts is not None:
            width = int(np.max(data.class_counts))
        elif self._two and loss.probabilities:
            width = 2
        self._sums, self._counts = np.zeros((len(data.y), width)), np.zeros(len(data.y))

    def add(self, of_rows: Scores) -> None:
        """The `path_scores` of the rows that a fold holds out, at two points: the model's, and its null model's."""
        chosen, scores = of_rows
        for t, z in scores.items():
            flat = self._data.offsets[t] + chosen[t]
            found = self._answers(z[:, 0])
            self._judge(self._rows, flat, z[:, 0], found)
            self._judge(self._null, flat, z[:, 1], self._answers(z[:, 1]))
            self._sums[flat, : found.shape[1]] += found
            self._counts[flat] += 1.0

    def _answers(self, z: np.ndarray) -> np.ndarray:
        """What scores predict, a column for each class that has one."""
        if self._two and self._loss.probabilities:
            z = probabilities(z, self._several)
        elif not self._two:
            z = self._loss.link(z)
        return z.reshape(len(z), -1)

    def _judge(self, rows: HeldOutRows, flat: np.ndarray, z: np.ndarray, answers: np.ndarray) -> None:
        y, measure, codes = self._data.y[flat], rows.measure, rows.codes
        if codes is not None:
            judged = codes[flat] == (np.argmax(z, axis=1) if self._several else z > 0)
        else:
            assert measure.row_losses is not None
            judged = measure.row_losses(y, z if measure.of_scores else self._loss.link(z))
        loss = self._loss.deviance(y[:, None], z[:, None])[:, 0]
        rows.add(flat, loss, judged, answers if self._two else None)

    def quality(self, groups: Any, folds: Folds, n_tried: int, n_covariates: int) -> HeldOutQuality:
        """How good they are, beside null models of so many covariates; class weights do not count."""
        data = self._data
        weights = data.weights if data.class_factors is None else data.weights / data.class_factors
        return assess(
            data,
            self._rows,
            weights=weights,
            loss=self._loss.label,
            rooted=self._loss.rooted,
            null=self._null,
            null_covariates=n_covariates,
            units=units_of(data, groups),
            factor=widening([test for _, test in folds.weights], [train for train, _ in folds.weights]),
            unit="rows" if groups is None else "groups",
            folds=folds.words,
            n_tried=n_tried,
        )

    def result(self) -> Any:
        """In the order and the form of y, NaN for rows that were never held out; classes on a last axis."""
        data, counts = self._data, self._counts[:, None]
        flat = np.divide(self._sums, counts, out=np.full(self._sums.shape, np.nan), where=counts > 0.0)
        if isinstance(data.classes, list) and self._several:  # different classes: a list by task
            given = data.unflatten(flat)
            tasks = [given[t] for t in range(data.n_tasks)] if data.form == "list" else self._by_task(given)
            return [part[:, : len(own)] for part, own in zip(tasks, data.classes, strict=True)]
        return data.unflatten(flat[:, 0] if flat.shape[1] == 1 else flat)

    def _by_task(self, given: np.ndarray) -> list[np.ndarray]:
        """Rows of each task, in the order they were given."""
        data = self._data
        if data.shared:
            return [given[:, t] for t in range(data.n_tasks)]
        task = np.empty(len(given), dtype=np.int64)
        task[slice(None) if data.order is None else data.order] = data.task_of_sample
        return [given[task == t] for t in range(data.n_tasks)]
