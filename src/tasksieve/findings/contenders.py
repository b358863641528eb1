"""Four ways to predict the rows of several tasks: a shared model, a model for each task, one for all rows, a constant.

All have the same training rows, and choose their strength by the same folds of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from ..fitted.choosing import for_one_task
from ..fitted.covariates import covariates_of
from ..fitted.measures import Measure, measure_of
from ..fitted.model import TaskLinearModel
from ..linear.cross_validation import PathEstimatorCV
from ..linear.null_model import fit_null
from ..linear.pretraining import Pretraining
from ..losses import Loss
from ..messages import either, value_error
from ..svm.problem import LOSSES
from ..tasks import TaskLabels, kind_of, stack_rows, to_numpy
from .cv_sibling import with_classes
from .own_models import OwnModels

Array = np.ndarray[Any, Any]

SHARED, PRETRAINED, OWN, POOLED, MEAN = "shared", "pretrained", "own", "pooled", "mean"
LEAST = 1e-15  # lower bound of probabilities, so that the log loss is finite
STACKED_BYTES = 1 << 31  # of a matrix that is repeated for each task


class Contenders:
    """The models, and the rows on which they are scored; with `pooled` one model for all rows takes part, and with
    `shares` models that start from such a one (`Pretraining`)."""

    def __init__(
        self, model: Any, X: Any, y: Any, task: Any, labels: TaskLabels, pooled: bool, shares: Any = None
    ) -> None:
        self._model, self._X, self._y, self._task, self._labels = model, X, to_numpy(y), to_numpy(task), labels
        #: survival is judged fold by fold, from scores of all rows
        self.survival = labels.y.dtype.names is not None
        self._alone = for_one_task(model)
        self.measure: Measure = measure_of(model)
        self._ruler = Ruler(model, labels)
        self.loss = self._ruler.name
        self._parts = self._cut()
        self._own_models = OwnModels.made(self._alone, self._parts, labels)
        self.n_covariates = 0
        if getattr(model, "feature_weights", None) is not None:
            self.n_covariates = len(covariates_of(model, int(self._parts[0][0].shape[1])))
        self._shares = shares
        absent = {POOLED: not pooled, PRETRAINED: shares is None}
        self.names = tuple(
            name for name in (SHARED, PRETRAINED, OWN, POOLED, MEAN) if not absent.get(name, False)
        )
        self._stacked = self._stack() if pooled else None

    def on(self, X: Any) -> Contenders:
        """The same with another X of the same rows."""
        return Contenders(self._model, X, self._y, self._task, self._labels, POOLED in self.names, self._shares)

    def fit(
        self, name: str, weights: Array, fold: Array, callback: Callable[[int], None] | None = None
    ) -> dict[str, Array]:
        """How well a contender predicts all rows, given its training rows: of each the loss, and what the measure sums,
        "judged" (its own loss, or whether the class was met); of the shared model the same of its null model, too.

        Of survival: the scores of all rows, "scores".

        - `weights` (array of shape (N,)): 0 for rows that it must not see.
        - `fold` (int array of shape (N,)): By which it chooses its strength; -1: never held out.
        - `callback`: Called with how many tasks are done, where each has a model of its own.
        """
        labels, model, null = self._labels, None, None
        if name == OWN:

            def own(t: int) -> Any:
                (X, y), part = self._parts[t], parts[t]
                seen = y[weights[part] > 0.0].tolist() if labels.classes is not None else ()
                alone = with_classes(self._alone, set(seen)).set_params(cv=_splits(fold[part]))
                alone.fit(X, y, sample_weight=weights[part])
                if callback is not None:
                    callback(t + 1)
                return alone

            parts = list(labels.per_task())
            together = None if self._own_models is None else self._own_models.fit(weights, fold)
            if together is None:
                return self._judge(own, weights)
            if callback is not None:
                callback(labels.n_tasks)
            return self._judge(together.__getitem__, weights)
        if name == POOLED:
            assert self._stacked is not None
            model = clone(self._alone).set_params(cv=_splits(fold))
            model.fit(*self._stacked, sample_weight=weights)
        if name not in (SHARED, PRETRAINED):
            return self._judge(lambda t: model, weights)
        groups, by_row = labels.unflatten(fold), labels.unflatten(weights)
        of_row = np.concatenate(groups) if labels.form == "list" else groups
        model = clone(self._model).set_params(cv=_splits(of_row.max(axis=1) if labels.shared else of_row))
        if name == PRETRAINED:
            model = Pretraining(model, shares=self._shares)
        model.fit(self._X, self._y, task=self._task, sample_weight=by_row)
        if name == PRETRAINED:
            return self._judge(lambda t: model, weights)
        if isinstance(self._model, PathEstimatorCV):  # a machine on a graph penalises intercepts, too
            null = fit_null(self._model._model(), self._X, self._y, task=self._task, sample_weight=by_row)
        beside = self._judge(lambda t: null, weights)
        return self._judge(lambda t: model, weights) | {f"null_{name}": own for name, own in beside.items()}

    def _judge(self, model_of: Callable[[int], Any], weights: Array) -> dict[str, Array]:
        """All rows by the model of their task; where that is None, by the task's constant."""
        if self.survival:
            return {"scores": self._scores(model_of)}
        loss, judged = np.full((2, len(self._labels.y)), np.nan)
        for t, part in enumerate(self._labels.per_task()):
            model = model_of(t)
            if model is None:
                loss[part], judged[part] = self._ruler.constant(t, weights[part])
            else:
                loss[part], judged[part] = self._ruler.judge(model, t, self._parts[t][0])
        return {"loss": loss, "judged": judged}

    def _scores(self, model_of: Callable[[int], Any]) -> Array:
        """Of all rows by the model of their task; 0 where that is None: the baseline hazard alone."""
        found = np.zeros(len(self._labels.y))
        for t, part in enumerate(self._labels.per_task()):
            model, X = model_of(t), self._parts[t][0]
            if model is not None:
                several, name = len(model.tasks_) > 1, self._labels.tasks[t : t + 1]
                found[part] = np.asarray(model._scores(X, np.repeat(name, X.shape[0]) if several else None))
        return found

    def _cut(self) -> list[tuple[Any, Any]]:
        """X and y of each task."""
        labels, X, y = self._labels, self._X, self._y
        if self.survival:
            y = labels.unflatten(labels.y)
        if labels.form == "list":
            return [(X[t], np.asarray(y[t]).ravel()) for t in range(labels.n_tasks)]
        if labels.shared:
            columns = np.asarray(y)
            return [(X, columns[:, t]) for t in range(labels.n_tasks)]
        order = np.arange(labels.n_rows) if labels.order is None else labels.order
        flat = np.asarray(y).ravel()
        rows = [order[part] for part in labels.per_task()]
        kind = kind_of(X)
        return [(kind.take_rows(X, own), flat[own]) for own in rows]

    def _stack(self) -> tuple[Any, Array]:
        """All rows, task after task."""
        first = self._parts[0][0]
        if self._labels.shared and getattr(first, "nbytes", 0) * self._labels.n_tasks > STACKED_BYTES:
            raise value_error(
                "{X}: one model for all rows needs the shared matrix {n_tasks} times, which is more than {size} "
                "GiB{how}",
                n_tasks=self._labels.n_tasks,
                size=STACKED_BYTES >> 30,
                how=either(": leave that model out with pooled=False.", "."),
            )
        blocks = [part for part, _ in self._parts]
        labels = [np.asarray(own) for _, own in self._parts]
        if self.survival:  # each task has a baseline hazard of its own: it is a stratum, or several
            n_strata = 1 if self._labels.strata is None else len(self._labels.strata)
            labels = [own.copy() for own in labels]
            for t, own in enumerate(labels):
                own["stratum"] += t * n_strata
        return stack_rows(blocks), np.concatenate(labels)


def _splits(fold: Array) -> list[tuple[Array, Array]]:
    """Pairs of row numbers; folds that hold out nothing are left out."""
    folds = [f for f in np.unique(fold).tolist() if f >= 0]
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in folds]


# --- what a row costs ------------------------------------------------------------------------------------------------


class Ruler:
    """The loss of every row, the same for all contenders.

    Numbers: the model's own loss. Classes: minus the logarithm of the probability of the true one, where the model
    gives probabilities; else the model's loss of two classes; of more, whether the class was missed.
    """

    def __init__(self, model: Any, labels: TaskLabels) -> None:
        self._labels, self._measure, self._loss = labels, measure_of(model), _loss_of(model)
        self._codes, self._parts = labels.class_codes, list(labels.per_task())
        self._probable = self._codes is not None and hasattr(model, "predict_proba")
        self._missed = not self._probable and labels.class_counts is not None
        self.name = self._loss.label
        if self._probable:
            self.name = "log loss"
        elif self._missed:
            self.name = "share of rows missed"
        elif self._loss.rooted:
            self.name = "squared error"

    def judge(self, model: Any, t: int, X: Any) -> tuple[Array, Array]:
        """Loss and what the measure sums, of a task's rows."""
        labels, part, position = self._labels, self._parts[t], 0
        y, options = labels.y[part], dict[str, Any]()
        if len(model.tasks_) > 1:
            position = model.tasks_.tolist().index(labels.tasks.tolist()[t])  # a graph has an order of its own
            options = {"task": np.repeat(model.tasks_[position : position + 1], len(y))}
        if self._codes is None:
            z = np.asarray(model._scores(X, options.get("task")))
            return self._of_numbers(part, z, z if self._measure.of_scores else self._loss.link(z))
        names = labels.classes_of(t)[self._codes[part]]
        met = np.asarray(to_numpy(model.predict(X, **options))) == names
        if self._missed:
            return 1.0 - met, met
        if self._probable:
            p, classes = to_numpy(model.predict_proba(X, **options)), model.classes_
            p, classes = (own[position] if isinstance(own, list) else own for own in (p, classes))
            return -np.log(np.maximum(_of_true(p, classes, names), LEAST)), met
        z = np.asarray(model._scores(X, options.get("task")))
        return self._loss.deviance(y, z), met

    def constant(self, t: int, weights: Array) -> tuple[Array, Array]:
        """The same of the task's mean, or of its frequencies of classes, learned from rows with a weight."""
        part, seen = self._parts[t], weights > 0.0
        y = self._labels.y[part]
        if self._codes is None:
            best = self._loss.best_constant(y[seen], weights[seen])
            mean = np.average(y[seen], weights=weights[seen])
            z = np.full(len(y), mean if best is None else best)
            return self._of_numbers(part, z, z)
        codes = self._codes[part]
        share = np.bincount(codes[seen], weights=weights[seen], minlength=int(codes.max()) + 1) / weights.sum()
        met = codes == int(np.argmax(share))
        if self._missed:
            return 1.0 - met, met
        if self._probable:
            return -np.log(np.maximum(share[codes], LEAST)), met
        side = 1.0 if share[-1] > 0.5 else -1.0
        return self._loss.deviance(y, np.full(len(y), side)), met

    def _of_numbers(self, part: slice, z: Array, predicted: Array) -> tuple[Array, Array]:
        """0 for rows without a label: what stands in its place need not be one."""
        assert self._measure.row_losses is not None
        y, seen = self._labels.y[part], self._labels.weights[part] > 0.0
        loss, judged = np.zeros(len(z)), np.zeros(len(z))
        loss[seen] = self._loss.deviance(y[seen], z[seen])
        judged[seen] = self._measure.row_losses(y[seen], predicted[seen])
        return loss, judged


def _of_true(p: Array, classes: Array, names: Array) -> Array:
    """Probabilities of the true classes; 0 for a class that a model has never seen."""
    position = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    column = np.array([position.get(name, -1) for name in names.tolist()])
    found = p[np.arange(len(column)), np.maximum(column, 0)]
    return np.where(column >= 0, found, 0.0)


def _loss_of(model: Any) -> Loss:
    """The loss by which a model chooses, of two classes where it is about classes."""
    if isinstance(model, TaskLinearModel):
        return model._loss
    name, epsilon = model.loss, float(getattr(model, "epsilon", 0.0))  # of a machine on a graph
    return LOSSES[name][1](epsilon)
