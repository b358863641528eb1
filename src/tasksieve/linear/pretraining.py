"""Pretraining: one model of all rows, then a model of each task that starts from it, as in ptLasso."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags

from ..docstrings import described_by
from ..fitted.choosing import for_one_task
from ..fitted.conformal import fold_of_samples
from ..fitted.documented import DATA, ROWS
from ..fitted.folds import FoldRules, make_folds
from ..fitted.model import TaskLinearModel
from ..fitted.predicting import PredictingMeans, gives_probabilities
from ..fitted.predictions import Predictions, available_if
from ..losses import Loss
from ..messages import ParameterError, value_error
from ..tasks import TaskData, is_task_list, kind_of, like, map_rows, read_feature_weights, stack_rows
from ..tasks.named import refuse_patterns, takes_named_tasks
from .cross_validation import PathEstimatorCV
from .null_model import NullModel
from .transfer import held_out_loss

Array = np.ndarray[Any, Any]


def _has_probabilities(model: Any) -> bool:
    if model._targets != "classes":
        raise AttributeError("predict_proba is for classes.")
    return gives_probabilities(model.estimator)


class Pretraining(MetaEstimatorMixin, PredictingMeans, TaskLinearModel):
    r"""Pretrained models of several tasks: one model of all rows, then one for each task, the two steps of ptLasso.

    .. math::

        \hat\beta &= \arg\min_{\beta, m}\ \frac1n \sum_i s_i f(y_i, x_i \cdot \beta + m + o_{t(i)})
        + \alpha_0 \lVert \beta \rVert_1 \\
        \hat w_t &= \arg\min_{w, b}\ \frac1{n_t} \sum_i s_i f(y_i, x_i \cdot w + b)
        + \alpha_t \sum_j u_j |w_j - (1 - a) \hat\beta_j|, \qquad
        u_j = \begin{cases} 1 & \hat\beta_j \ne 0 \\ 1/a & \hat\beta_j = 0 \end{cases}

    with o the best constant of each task. a = 1 is a model of each task alone; the smaller a, the nearer are all to the
    model of all rows. In the second step a row's product with :math:`\hat\beta` is that of the fold which held it out.
    Every fit is one convex problem with its duality gap.

    Parameters
    ----------
    estimator : model with cross-validation
        What is fitted in both steps: `MultiTaskLassoCV`, `MultiTaskLogisticRegressionCV`, `MultiTaskPoissonCV`, ...
    shares : sequence of float, default=(0.1, 0.25, 0.5, 0.75, 1.0)
        Values of a, of which the one with the smallest held-out loss, mean over tasks, is taken.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
    intercept_ : ndarray of shape (T,)
    tasks_ : ndarray of shape (T,)
    share_ : float
        The value of a chosen.
    cv_scores_ : ndarray of shape (number of shares, T)
        Held-out losses.
    first_ : fitted model
        Of all rows.
    models_ : list of fitted models
        Of the differences of each task to (1 - a) times the coefficients of ``first_``, with their gaps.
    n_features_in_ : int

    See Also
    --------
    compare : ``compare(Pretraining(model), ...)`` has the joint model, the pretrained ones, and each task alone.

    References
    ----------
    E. Craig, M. Pilanci, T. Le Menestrel, B. Narasimhan, M. Rivas, R. Dehghannasiri, J. Salzman, J. Taylor, R.
    Tibshirani, "Pretraining and the lasso", 2024.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[1.0, 1.2, 0.8])
    >>> model = ts.Pretraining(ts.MultiTaskLassoCV(n_alphas=20, eps=0.05, cv=3)).fit(X, y, task=task)
    >>> model.coef_.shape, model.share_ in model.shares
    ((3, 8), True)
    >>> model.score(X, y, task=task) > 0.8
    True
    """

    def __init__(self, estimator: Any, *, shares: Any = (0.1, 0.25, 0.5, 0.75, 1.0)) -> None:
        self.estimator = estimator
        self.shares = shares

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        loss: Loss = self.estimator._loss
        return loss

    @property
    def _targets(self) -> Any:  # type: ignore[override]
        return self.estimator._targets

    def _check_parameters(self) -> None:
        model = self.estimator
        if not isinstance(model, PathEstimatorCV) or not hasattr(model, "keep_folds"):
            raise ParameterError("estimator", "must be a linear model of tasks with cross-validation", model)
        if not hasattr(model, "feature_weights"):
            raise ParameterError("estimator", "must have feature weights", model)
        model._check_parameters()
        loss = model._loss
        if not loss.by_row or loss.labels in ("ordered", "mixed"):
            raise ParameterError("estimator", "must be of numbers, or of two classes", model)
        words = "must be numbers above 0, up to 1"
        try:
            values = np.asarray(self.shares, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("shares", words, self.shares) from None
        if values.ndim != 1 or not len(values) or np.any(~(values > 0.0) | (values > 1.0)):
            raise ParameterError("shares", words, self.shares)

    @takes_named_tasks
    @described_by(DATA, returns="self")
    def fit(
        self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit the model of all rows, then those of the tasks."""
        refuse_patterns(X, "Pretraining")
        self._check_parameters()
        model = self.estimator
        data: TaskData = model._read_with(X, y, task, sample_weight, None)
        if data.class_counts is not None or isinstance(data.classes, list):
            raise value_error("Pretraining is for two classes, the same in all tasks.")
        if data.n_tasks < 2:
            raise value_error("Pretraining is about several tasks, and there is one: pass {task}.")
        folds = make_folds(model.cv, y, data, groups, FoldRules(model.random_state)).weights
        fold = fold_of_samples(data, folds)
        if fold is None:
            raise value_error("{cv} must hold out no row twice, and learn from all others.")
        parts, codes = self._parts(X, data), data.class_codes
        labels = data.y if codes is None else data.classes[codes]
        weights = data.weights if data.class_factors is None else data.weights / data.class_factors
        base = for_one_task(model)
        changed = {"task_weights": None, "task": None, "scoring": None, "keep_folds": True}
        base.set_params(**{name: value for name, value in changed.items() if name in base.get_params(deep=False)})
        constants = NullModel(model._model(), data).fit(data.weights).intercept
        self.first_ = for_one_task(base).set_params(cv=_splits(fold, len(folds)))
        rows = stack_rows(parts)
        self.first_.fit(rows, labels, sample_weight=weights, offset=np.repeat(constants, np.diff(data.offsets)))
        known, beta = self._known(rows, fold), self.first_.coef_[0]
        own = read_feature_weights(model.feature_weights, data.n_features)
        own = np.ones(data.n_features) if own is None else own
        base.set_params(keep_folds=False)
        fits, losses = [], np.empty((len(self.shares), data.n_tasks))
        for k, a in enumerate(self.shares):
            costs = own if a == 1.0 else own * np.where(beta != 0.0, 1.0, 1.0 / a)
            fits.append([
                for_one_task(base).set_params(cv=_splits(fold[part], len(folds)), feature_weights=costs).fit(
                    parts[t], labels[part], sample_weight=weights[part],
                    offset=None if a == 1.0 else (1.0 - a) * known[part],
                ) for t, part in enumerate(data.per_task())
            ])  # fmt: skip
            losses[k] = [held_out_loss(found) for found in fits[-1]]
        best = int(np.argmin(losses.mean(axis=1)))
        self.share_, self.cv_scores_, self.models_ = float(self.shares[best]), losses, fits[best]
        self.coef_ = np.concatenate([found.coef_ for found in self.models_]) + (1.0 - self.share_) * beta
        self.intercept_ = np.concatenate([found.intercept_ for found in self.models_])
        self.tasks_, self._single = data.tasks, False
        if data.classes is not None:
            self.classes_ = data.classes
        self._set_features(X, data)
        return self

    def _parts(self, X: Any, data: TaskData) -> list[Any]:
        """The rows of each task."""
        if is_task_list(X):
            return list(X)
        if data.shared:
            return [X] * data.n_tasks
        order = np.arange(data.n_rows) if data.order is None else data.order
        return [kind_of(X).take_rows(X, order[part]) for part in data.per_task()]

    def _known(self, rows: Any, fold: Array) -> Array:
        """Products of all rows with the coefficients of the first step, of rows held out with those of their fold."""
        model = self.first_
        found = np.asarray(model._scores(rows, None, offset=0.0)) - model.intercept_[0]
        for f, point in enumerate(model._kept.points):
            held = np.flatnonzero(fold == f)
            chosen = kind_of(rows).take_rows(rows, held)
            coef = np.zeros((1, model.n_features_in_))
            coef[:, point.features] = point.rows.T
            found[held] = np.asarray(model._score_rows(model._read_matrix(chosen), coef, np.zeros(1), None))[:, 0]
        return found

    def _predict(self, X: Any, task: Any, state: Any = None, offset: Any = None) -> Any:
        scores = super()._predict(X, task, state, offset)
        if self._targets == "classes":
            return scores
        link = self._loss.link
        return [link(part) for part in scores] if is_task_list(X) else map_rows(lambda rows, _: link(rows), scores)

    @available_if(_has_probabilities)
    @takes_named_tasks
    @described_by(ROWS)
    def predict_proba(self, X: Any, *, task: Any = None, offset: Any = None) -> Predictions:
        """Probabilities of the two classes (logistic loss).

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
        """
        state = self._learned()
        return like(X, state.probabilities(self._scores(X, task, state, offset), task))

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            own.estimator_type, own.classifier_tags, own.regressor_tags,
        )  # fmt: skip
        return tags


def _splits(fold: Array, n_folds: int) -> list[tuple[Array, Array]]:
    """Pairs of row numbers; folds that hold out nothing are left out, and rows of no fold are always learned from."""
    held = [f for f in range(n_folds) if np.any(fold == f)]
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in held]
