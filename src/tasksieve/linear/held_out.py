"""Models on held-out rows: their scores, the losses of these, and predictions out of fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.metrics._scorer import _BaseScorer

from .._kernels import kernels
from ..fitted.assess import OutOfFold
from ..fitted.held_out import (
    OneTask,
    OneTaskClassifier,
    OneTaskRegressor,
    SurvivalScorer,
    read_scorer,
    score_or_nan,
)
from ..fitted.measures import Measure
from ..fitted.state import class_probabilities
from ..losses import Loss, Ordinal
from ..messages import value_error
from ..tasks import TaskData

# Entries of X packed at a time to predict held-out rows.
PACKED_ENTRIES = 1 << 25

# Held-out rows of a task, on average: so few that products with what is not zero are quicker than whole ones.
_FEW_ROWS = 16

Scores = tuple[list[np.ndarray], dict[int, np.ndarray]]


def mean_held_out(data: TaskData, loss: Loss, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray | None:
    """`held_out_sizes`, refused where no fold holds out anything that could be judged."""
    found = held_out_sizes(data, loss, [test for _, test in folds])
    if found is not None and np.isnan(found).all():
        raise value_error("{cv}: no fold holds out an event: use folds that do.")
    return found


def held_out_sizes(data: TaskData, loss: Loss, tests: Sequence[np.ndarray]) -> np.ndarray | None:
    """By task: how much a fold holds out, on average, of a loss that does not judge rows one by one, NaN where no fold
    does; None of others.

    The deviance of a fold is divided by it, so that the mean over folds is the sum of their deviances over all that was
    held out.
    """
    if loss.by_row or not tests:
        return None
    held = np.zeros(data.n_tasks)
    for test in tests:
        held += [loss.held_out_size(data.y[part], test[part]) for part in data.per_task()]
    return np.where(held > 0.0, held, np.nan) / len(tests)


class Judge:
    """How held-out rows are scored: by the loss's own measure, or by a scorer (``scorer(estimator, X, y)``, greater is
    better) or its name in scikit-learn; `sizes` are those of `mean_held_out`."""

    def __init__(self, loss: Loss, scoring: Any = None, sizes: np.ndarray | None = None) -> None:
        self._loss, self._scoring, self._sizes = loss, scoring, sizes
        self._scorer = None if scoring is None else read_scorer(scoring, getattr(loss, "ties", None))

    def losses(self, data: TaskData, train: np.ndarray, test: np.ndarray, points: Sequence[Any]) -> np.ndarray:
        """The mean over tasks at each point of a path (K,), smaller is better; a score comes with a minus. Rows count
        that have a positive weight in `test`; tasks without any, or whose score is not defined, are left out. Those of
        `train` were learned from."""
        found = self.by_task(data, train, test, points)
        known = ~np.isnan(found)
        if self._scorer is not None and not known.any(axis=0).all():
            raise value_error(
                "{scoring=!r} is not defined for the held-out rows of any task in a fold (one class only, or too "
                "few rows): use fewer folds, or another score.",
                scoring=self._scoring,
            )
        means: np.ndarray = sum(np.where(known, found, 0.0)) / known.sum(axis=0)
        return means if self._scorer is None else -means

    def scores(self, data: TaskData, train: np.ndarray, test: np.ndarray, points: Sequence[Any]) -> Scores:
        """`path_scores` of the rows that a judgement needs: those held out, or all."""
        return path_scores(data, test if self._loss.by_row else train + test, points)

    def by_task(
        self,
        data: TaskData,
        train: np.ndarray,
        test: np.ndarray,
        points: Sequence[Any],
        found: Scores | None = None,
    ) -> np.ndarray:
        """Losses or scores of each task at each point (T, K); NaN where there are none; `found`: `scores`."""
        chosen, scores = self.scores(data, train, test, points) if found is None else found
        weights = test
        out, codes = np.full((data.n_tasks, len(points)), np.nan), data.class_codes
        for t, z in scores.items():
            flat = data.offsets[t] + chosen[t]
            if not self._loss.by_row:
                if self._scorer is None:
                    out[t] = self._beside(data, t, flat, z, train, test)
                    continue
                held = test[flat] > 0.0
                flat, z = flat[held], z[held]
                if not len(flat):
                    continue
            if self._scorer is None:
                own = np.average(self._loss.deviance(data.y[flat][:, None], z), axis=0, weights=weights[flat])
                out[t] = np.sqrt(own) if self._loss.rooted else own
                continue
            s = weights[flat] if data.class_factors is None else weights[flat] / data.class_factors[flat]
            y = data.y[flat] if codes is None else data.classes_of(t)[codes[flat]]
            rows = np.arange(len(flat))[:, None]
            if not isinstance(self._scorer, _BaseScorer | SurvivalScorer):  # it may use X in any way
                rows = data.take(np.arange(data.n_features))[flat - data.offsets[t] if data.shared else flat]
            for k, point in enumerate(points):
                model = _one_task(data, t, self._loss, point, rows, z[:, k])
                model.n_features_in_ = data.n_features
                out[t, k] = score_or_nan(self._scorer, model, rows, y, None if np.all(s == s[0]) else s)
        return out

    def _beside(
        self, data: TaskData, t: int, flat: np.ndarray, z: np.ndarray, train: np.ndarray, test: np.ndarray
    ) -> np.ndarray:
        """The deviance of a task's held-out rows beside those learned from, in units of what folds hold out."""
        if self._sizes is None or not np.any(test[flat] > 0.0):
            return np.full(z.shape[1], np.nan)
        own = self._loss.held_out(data.y[flat], z, train[flat], test[flat])
        return np.asarray(own.sum(axis=0) / self._sizes[t])


def _one_task(data: TaskData, t: int, loss: Loss, point: Any, rows: np.ndarray, z: np.ndarray) -> OneTask:
    """A task of a model at one value of its path, for scorers; the scores of the held-out rows are known."""
    own = coefficient_columns(data)[t]

    def scores(X: Any) -> np.ndarray:
        if X is rows:
            return z
        columns = np.asarray(X)[:, point.features]
        return np.asarray(columns @ point.rows[:, own] + point.intercept[own])

    if data.classes is None:
        return OneTaskRegressor({"predict": lambda X: loss.link(scores(X))})
    if data.ordered:
        return _one_ordered_task(data.classes_of(t), lambda X: X is rows, z, scores, point.thresholds[:, t])
    classes, several = data.classes_of(t), data.class_counts is not None

    def predict(X: Any) -> np.ndarray:
        found = scores(X)
        return np.asarray(classes[np.argmax(found, axis=1) if several else (found > 0).astype(np.intp)])

    def decide(X: Any) -> np.ndarray:
        found = scores(X)
        return found[:, 1] - found[:, 0] if several and found.shape[1] == 2 else found

    answers = {"predict": predict, "decision_function": decide}
    if loss.probabilities:
        answers["predict_proba"] = lambda X: class_probabilities(scores(X), several)
    return OneTaskClassifier(answers, classes)


def _one_ordered_task(
    classes: np.ndarray,
    known: Callable[[Any], bool],
    z: np.ndarray,
    scores: Callable[[Any], np.ndarray],
    own: np.ndarray,
) -> OneTask:
    """A task of ordered classes; z are thresholds less the scores of rows that are `known`, `own` its thresholds."""

    def shares(X: Any) -> np.ndarray:
        margins = z if known(X) else own - scores(X)[:, None]
        found = Ordinal().class_probabilities(margins)
        return np.pad(found, ((0, 0), (0, max(len(classes) - found.shape[1], 0))))[:, : len(classes)]

    return OneTaskClassifier(
        {"predict": lambda X: classes[np.argmax(shares(X), axis=1)], "predict_proba": shares}, classes
    )


# --- scores of held-out rows -----------------------------------------------------------------------------------------


def coefficient_columns(data: TaskData) -> list[Any]:
    """The columns of coefficients of each task: one, or one for each of its classes."""
    if data.class_counts is None:
        return list(range(data.n_tasks))
    return [slice(*pair) for pair in pairwise([0, *np.cumsum(data.class_counts).tolist()])]


def path_scores(data: TaskData, weights: np.ndarray, points: Sequence[Any]) -> Scores:
    """Rows of each task with a positive weight, and for tasks that have any their predictions at each point (rows x K).

    More than two classes: a last axis for those of the task; ordered ones: for the thresholds less the prediction. The
    columns of all features selected anywhere on the path
    are read once, a bounded number at a time.
    """
    chosen = [np.flatnonzero(weights[part] > 0) for part in data.per_task()]
    kept = [t for t, rows in enumerate(chosen) if len(rows)]
    support = used_features(points, data.n_features)
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
    few = data.class_counts is None and not together and sum(map(len, chosen)) <= _FEW_ROWS * len(kept)
    step = max(1, PACKED_ENTRIES // max(1, data.n_rows, len(points) * width))
    for start in range(0, len(support), step):
        features = support[start : start + step]
        columns = data.take(features)
        if few:
            held = np.concatenate([(0 if data.shared else data.offsets[t]) + chosen[t] for t in kept])
            ends = np.cumsum([0, *(len(rows) for rows in chosen)])
            found = _flat_scores(columns.T.take(held, axis=1).T, ends, points, features)
            for t in kept:
                scores[t] += found[:, ends[t] : ends[t + 1]].T
            continue
        coef = np.zeros((width, len(points), len(features)))  # those of a task lie together
        of, positions, values = _entries(points, features)
        coef[:, of, positions] = values.T
        if together:
            rows = columns[chosen[kept[0]]]
        for t in kept:
            if not together:
                rows = columns[(0 if data.shared else data.offsets[t]) + chosen[t]]
            part = coef[own[t]]
            scores[t] += rows @ part.T if part.ndim == 2 else np.moveaxis(rows @ part.swapaxes(1, 2), 0, -1)
    if len(points) and getattr(points[0], "thresholds", None) is not None:
        thresholds = np.stack([point.thresholds for point in points])
        for t in kept:
            if not np.isnan(thresholds[:, :, t]).any():  # the task has thresholds
                scores[t] = thresholds[:, :, t] - scores[t][:, :, None]
    return chosen, scores


def _flat_scores(x: np.ndarray, ends: np.ndarray, points: Sequence[Any], features: np.ndarray) -> np.ndarray:
    """Products of the rows of each task, one task after the other, with the coefficients of some features at each
    point, (K, rows): for so few rows it is quicker to go from point to point than to fill in all the zeros."""
    out = np.empty((len(points), len(x)))
    of, positions, rows = _entries(points, features)
    cuts = np.searchsorted(of, np.arange(len(points) + 1)).tolist()
    for (low, high), into in zip(pairwise(cuts), out, strict=True):
        kernels.combine(x, ends, False, positions[low:high], rows[low:high], 1, into)
    return out


def used_features(points: Sequence[Any], n_features: int) -> np.ndarray:
    """Features that are not zero at some point, ascending."""
    used = np.zeros(n_features, dtype=bool)
    for point in points:
        used[point.features] = True
    return np.flatnonzero(used)


def _entries(points: Sequence[Any], features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of all points: which point, which of some features, and its row of coefficients."""
    of = np.repeat(np.arange(len(points)), [len(point.features) for point in points])
    wanted, rows = np.concatenate([point.features for point in points]), np.concatenate([p.rows for p in points])
    positions = np.minimum(np.searchsorted(features, wanted), len(features) - 1)
    inside = features[positions] == wanted
    return (of, positions, rows) if inside.all() else (of[inside], positions[inside], rows[inside])


# --- what is kept of a fold's path ------------------------------------------------------------------------------------


@dataclass
class Solved:
    """Features, their rows of coefficients, intercepts and thresholds: all that predictions need of a value."""

    features: np.ndarray
    rows: np.ndarray
    intercept: np.ndarray
    thresholds: np.ndarray | None = None


def pack_points(points: Sequence[Any]) -> dict[str, np.ndarray]:
    """Values of a path as arrays."""
    found = {
        "features": np.concatenate([point.features for point in points]).astype(np.int64),
        "rows": np.concatenate([point.rows for point in points]),
        "ends": np.cumsum([len(point.features) for point in points]),
        "intercept": np.stack([point.intercept for point in points]),
    }
    if len(points) and getattr(points[0], "thresholds", None) is not None:
        found["thresholds"] = np.stack([point.thresholds for point in points])
    return found


def unpack_point(arrays: dict[str, np.ndarray], k: int) -> Solved:
    """Value k of them."""
    low, high = arrays["ends"][k - 1] if k else 0, arrays["ends"][k]
    thresholds = arrays["thresholds"][k] if "thresholds" in arrays else None
    return Solved(arrays["features"][low:high], arrays["rows"][low:high], arrays["intercept"][k], thresholds)


# --- predictions out of fold -----------------------------------------------------------------------------------------


def out_of_fold(data: TaskData, loss: Loss, measure: Measure) -> OutOfFold:
    """Numbers are responses. Classes have probabilities where the loss has them, else decision values."""
    width = 1
    if data.class_counts is not None:
        width = int(np.max(data.class_counts))
    elif data.ordered:
        width = max(len(data.classes_of(t)) for t in range(data.n_tasks))
    elif data.classes is not None and loss.probabilities:
        width = 2

    def answers(z: np.ndarray) -> np.ndarray:
        if data.classes is None:
            return loss.link(z)
        if isinstance(loss, Ordinal):
            shares = loss.class_probabilities(z)
            return np.pad(shares, ((0, 0), (0, width - shares.shape[1])))
        return class_probabilities(z, data.class_counts is not None) if loss.probabilities else z

    def losses(flat: np.ndarray, z: np.ndarray) -> np.ndarray:
        return loss.deviance(data.y[flat][:, None], z[:, None])[:, 0]

    decide = (lambda z: np.argmax(answers(z), axis=1)) if data.ordered else None
    return OutOfFold(data, measure, data.class_codes, losses=losses, answers=answers, decide=decide, width=width)


def in_form_of_y(data: TaskData, flat: np.ndarray) -> Any:
    """Answers in the order and the form of y, classes on a last axis; a list by task where these differ."""
    given = data.unflatten(flat)
    if (data.class_counts is None and not data.ordered) or not isinstance(data.classes, list):
        return given
    if data.shared:
        given = [given[:, t] for t in range(data.n_tasks)]
    elif data.form != "list":  # rows of each task, in the order they were given
        task = data.unflatten(data.task_of_sample)
        given = [given[task == t] for t in range(data.n_tasks)]
    return [part[:, : len(own)] for part, own in zip(given, data.classes, strict=True)]
