r"""A new task from a fitted model, without the rows of the old tasks.

Every way is one convex problem in the coefficients w of the new task,

    min_{w,b}  1/n sum_i s_i f(y_i, x_i . w + b) + alpha sum_j u_j |w_j - c_j|,

with a centre c and weights u that the old coefficients give. With w = c + v it is an ordinary fit of v whose offset is
x . c: solvers and certificates are those of any fit with an offset.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from ..fitted.arguments import check_choice
from ..fitted.choosing import for_one_task
from ..fitted.fold_assignment import read_seed
from ..fitted.folds import DEFAULT, FoldRules, Folds, ShuffledFolds, make_folds, read_cv
from ..fitted.model import TaskLinearModel
from ..fitted.predictions import Predictions
from ..losses import Loss
from ..messages import ParameterError, estimator_name, value_error
from ..tasks import TaskData, is_task_list, label_array, read_feature_weights, to_numpy
from ..tasks.task_column import column_of_tasks
from ..user_warnings import warn

Array = np.ndarray[Any, Any]
How = Literal["auto", "alone", "weights", "offset", "distance"]

HOWS = ("auto", "alone", "weights", "offset", "distance")
SHARES = (3.0, 30.0)  # how much less the feature with the largest old row costs, less 1
NEAREST_SHARE = 3.0  # the same for the largest old coefficient of one old task
KEPT = (0.25, 0.5, 0.75)  # ptLasso's alpha: 1 is the task alone, 0 the old prediction with its features
REPEATS = 3  # of the nested comparison, each with folds of its own; what rows lose is averaged
CONFIRMED, CLEAR = 1.0, 2.0  # standard errors by which old tasks must win, and above which it is not repeated
LEAST_ROWS = 3  # of a fold's training rows, for each fold
FEWEST, FEWEST_GROUPS = 4, 3  # rows and groups: some are held out, and others choose by folds


@dataclass(frozen=True)
class Way:
    """How old coefficients enter the fit of a new task.

    - `how`, `strength`: By their names; the strength is the factor of weights, ptLasso's alpha, or the old task that
      alone is used.
    - `weights` (d,): u, those of the features in the penalty.
    - `centre` (d,), `constant`: c, and the intercept that goes with it.
    - `known` (n,): x . c + constant of the new rows.
    """

    how: str
    strength: Any
    weights: Array
    centre: Array
    constant: float
    known: Array


@dataclass(frozen=True)
class OldTasks:
    """What a new task may use of a fitted model.

    - `coef` (T, d), `intercept` (T,), `tasks`: Of the old tasks.
    - `sizes` (T, d): Of the coefficients, in the units of the penalty; 0 where they are not penalised.
    - `weights` (d,): Weights of the features in the old penalty.
    - `scores` (n, T): What the old tasks predict for the new rows.
    - `centred`: Whether coefficients may be penalised by their distance to others (not where they must be >= 0).
    """

    coef: Array
    intercept: Array
    tasks: Array
    sizes: Array
    weights: Array
    scores: Array
    centred: bool

    def ways(self, how: str, nearest: int) -> list[Way]:
        """The task alone first, then all that `how` allows; `nearest` is the old task whose predictions are best."""
        zero, none = np.zeros_like(self.weights), np.zeros(len(self.scores))
        found = [Way("alone", None, self.weights, zero, 0.0, none)]
        norms = np.linalg.norm(self.sizes, axis=0)
        if not norms.any():  # nothing was selected
            return found
        name = self.tasks.tolist()[nearest]
        mean, constant = self.coef.mean(axis=0), float(self.intercept.mean())
        middle = self.scores.mean(axis=1)
        if how in ("auto", "weights"):
            kinds: list[tuple[Any, Array]] = [(k, k * norms / norms.max()) for k in SHARES]
            own = self.sizes[nearest]
            if len(self.tasks) > 1 and own.any():  # what other old tasks need may be of no use
                kinds.append((name, NEAREST_SHARE * own / own.max()))
            found += [Way("weights", k, self.weights / (1.0 + less), zero, 0.0, none) for k, less in kinds]
        if how in ("auto", "offset") and self.centred:
            for a in KEPT:
                weights = self.weights * np.where(norms > 0.0, 1.0, 1.0 / a)
                found.append(Way("offset", a, weights, (1 - a) * mean, (1 - a) * constant, (1 - a) * middle))
        if how in ("auto", "distance") and self.centred:
            found.append(Way("distance", "mean", self.weights, mean, constant, middle))
            if len(self.tasks) > 1:
                found.append(
                    Way("distance", name, self.weights, self.coef[nearest], float(self.intercept[nearest]),
                        self.scores[:, nearest])
                )  # fmt: skip
        return found


@dataclass(frozen=True)
class NewTask:
    """A task that was fitted with the help of older ones, or alone where that was better: `fit_new_task` makes it.

    Attributes
    ----------
    name : label
        Of the task.
    how : {"alone", "weights", "offset", "distance"}
        The way that was used.
    strength : float or label
        Of the weights (how much less the feature with the largest old row costs, less 1; or the old task whose own
        coefficients make them), ptLasso's alpha of the offset, or the old task whose distance is penalised ("mean":
        their mean).
    model : fitted model
        Of the problem that was solved, with its duality gap: of the difference to `centre`.
    centre : ndarray of shape (d,)
        c, the coefficients whose distance is penalised; zeros where there are none.
    constant : float
        The intercept that goes with them.
    coef_ : ndarray of shape (1, d)
        Coefficients of the task.
    intercept_ : ndarray of shape (1,)
    tried : list of dict
        Every way and strength, the task alone first: "how", "strength", the held-out "loss" by the folds that chose
        among them, "coef" and "intercept" on all rows.
    gain : float
        By what share the loss of held-out rows was smaller than that of the task alone, nested: every choice was made
        without them. Negative: the old tasks did harm.
    gain_error : float
        Its standard error.
    fell_back : bool
        Whether another way had the smallest loss, but nested rows did not confirm it.
    reason : str
        Why this way, in words.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=[1.0, 1.0, 1.0, 1.0], n_rows=40)
    >>> old, new = task != task[-1], task == task[-1]
    >>> model = ts.MultiTaskLassoCV(n_alphas=20, eps=0.05).fit(X[old], y[old], task=task[old])
    >>> found = model.fit_new_task(X[new][:12], y[new][:12], name="new")
    >>> found.predict(X[new]).shape
    (40,)
    >>> bool(found.model.dual_gap_ < 1e-5)
    True
    """

    name: Any
    how: str
    strength: Any
    model: Any
    centre: Array
    constant: float
    tried: list[dict[str, Any]]
    gain: float
    gain_error: float
    fell_back: bool
    reason: str

    @property
    def coef_(self) -> Array:
        return np.asarray(self.model.coef_ + self.centre)

    @property
    def intercept_(self) -> Array:
        return np.asarray(self.model.intercept_ + self.constant)

    def _fitted(self) -> Any:
        """The model with the task's own coefficients, which predicts without what is known of old ones."""
        own = copy(self.model)
        own.coef_, own.intercept_ = self.coef_, self.intercept_
        own.tasks_, own._needs_offset = label_array([self.name]), False
        return own

    def predict(self, X: Any, *, offset: Any = None) -> Predictions:
        """Predict numbers or classes of rows of this task.

        Parameters
        ----------
        X : matrix of shape (n, d)
        offset : float or array of shape (n,), optional

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._fitted().predict(X, offset=offset)

    def predict_proba(self, X: Any, *, offset: Any = None) -> Predictions:
        """Probabilities of the classes (logistic loss).

        Parameters
        ----------
        X : matrix of shape (n, d)
        offset : float or array of shape (n,), optional

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self._fitted().predict_proba(X, offset=offset)

    def score(self, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None) -> float:
        """R², D² or accuracy, as `score` of the model.

        Parameters
        ----------
        X : matrix of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        offset : float or array of shape (n,), optional

        Returns
        -------
        float
        """
        return float(self._fitted().score(X, y, sample_weight=sample_weight, offset=offset))

    def certificate(self, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = 0.0) -> Any:
        """The proof of the fit, about the difference to `centre`, whose predictions are its offset.

        Parameters
        ----------
        X, y, sample_weight, offset
            The data of the fit.

        Returns
        -------
        Certificate
        """
        return self.model.certificate(X, y, sample_weight=sample_weight, offset=self.offset(X, offset=offset))

    def offset(self, X: Any, *, offset: Any = 0.0) -> Any:
        """What `model` is given as the offset of rows.

        Parameters
        ----------
        X : matrix of shape (n, d)
        offset : float or array of shape (n,), optional
            What is known beside the old tasks.

        Returns
        -------
        ndarray of shape (n,), or None where the task was fitted alone and nothing is known
        """
        if not self.model._needs_offset:
            return None
        old = copy(self.model)
        old.coef_, old.intercept_ = self.centre[None], np.array([self.constant])
        return np.asarray(old._scores(X, None, offset=offset))

    def __str__(self) -> str:
        return f"task {self.name!r}: {self.reason}"


class Transferring(TaskLinearModel):
    """A cross-validated model that can be asked for a further task."""

    cv: Any
    random_state: Any
    feature_weights: Any
    positive: Any

    def fit_new_task(
        self,
        X: Any,
        y: Any,
        *,
        name: Any,
        how: How = "auto",
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
    ) -> NewTask:
        r"""Fit a new task, with what the old tasks have in common where that helps; their rows are not needed.

        .. math::

            \min_{w, b}\ \frac1n \sum_i s_i f(y_i, x_i \cdot w + b + o_i) + \alpha \sum_j u_j |w_j - c_j|

        with the loss f of the model, and one of

        - "alone": c = 0, and the model's own weights u: nothing of the old tasks.
        - "weights": c = 0, and :math:`u_j` the smaller, the larger row j of the old coefficients is, or the
          coefficient of the one old task that predicts the new rows best.
        - "offset": :math:`c = (1 - a) \bar w`, a part of the mean of the old tasks, and :math:`u_j = 1/a` for features
          that no old task has, the second step of ptLasso [1]_.
        - "distance": c is that mean, or that one old task (Trans-Lasso [2]_).

        The way, its strength and alpha are those of the smallest held-out loss of the new rows.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of the new task, with the features of the model.
        y : array of shape (n,)
        name : label
            Of the new task.
        how : {"auto", "alone", "weights", "offset", "distance"}, default="auto"
            "auto": any of them, but alone unless nested held-out rows confirm that the old tasks help: their gain must
            exceed its standard error (see Notes); ``reason`` and a warning say so. Another one is used as it is asked
            for, and a warning says where it did harm.
        sample_weight : array of shape (n,), optional
        groups : array of shape (n,), optional
            Rows of one group are held out together.
        offset : float or array of shape (n,), optional

        Returns
        -------
        NewTask
            It predicts, and says how it was found, with its duality gap. The model itself is not changed.

        Notes
        -----
        Rows of outer folds are held out, everything is chosen by cross-validation of the others, and the loss on the
        rows held out is compared with that of the task alone, row by row. The gain is the mean difference, with the
        standard error of a mean over rows (of sums over groups, where there are any). Up to 0 the task is fitted alone,
        above two standard errors the old tasks are used; between these the comparison is repeated with other folds,
        three times at most, each row's losses are averaged, and in the end one standard error decides. Rows of 30 to 50
        leave no room for a test at 5 %, which would leave many old tasks that help; where they do harm the gain is not
        near 0 but below it.

        References
        ----------
        .. [1] E. Craig et al., "Pretraining and the lasso", 2024.
        .. [2] S. Li, T. T. Cai, H. Li, "Transfer learning for high-dimensional linear regression", JRSS B, 2022.
        """
        check_choice(how, "how", HOWS)
        self._refuse_transfer(X, name, how)
        base = self._for_new_task()
        data: TaskData = base._read_with(X, y, None, sample_weight, offset)
        if data.n_tasks != 1:
            raise value_error("{y} must be of shape (n,): one label for each row of the new task.")
        if data.classes is not None and not np.array_equal(data.classes, self.classes_):
            raise value_error("{y} must have the two classes of the old tasks.")
        n_rows = int(np.count_nonzero(data.weights))
        if n_rows < FEWEST:
            raise value_error(
                f"A new task needs {FEWEST} rows with labels at least, and there are {n_rows}: "
                "predict(unknown_task='mean') predicts rows of a task by the mean of those that are known."
            )
        n_groups = _count_groups(groups, data.weights)
        if n_groups is not None and n_groups < FEWEST_GROUPS:
            raise value_error(
                f"{{groups}} has {n_groups} label(s) with observed rows, and {FEWEST_GROUPS} are needed: one is held "
                "out, and the others choose by folds of their own."
            )
        n_folds = max(
            2, min(base.cv.n_splits, n_rows // LEAST_ROWS, n_rows if n_groups is None else n_groups)
        )
        base.cv = ShuffledFolds(n_folds)
        search = _Search(base, X, y, data, self._old_tasks(X, data), how, groups, offset is not None)
        ways, fits, losses = search.fits(data.weights)
        best = int(np.argmin(losses if how == "auto" or len(losses) == 1 else [np.inf, *losses[1:]]))
        gain, error, enough = (0.0, 0.0, False) if len(ways) == 1 else search.nested(n_folds)
        used = best if how != "auto" or enough else 0
        words = _reason(ways[used], how, best, gain, error, len(ways))
        if how == "auto" and best and not used:
            warn(f"Task {name!r} was fitted alone: {words}.", UserWarning)
        elif how not in ("auto", "alone") and gain < 0.0:
            warn(f"Task {name!r}: {words}. how='auto' would not use it.", UserWarning)
        tried = [
            {"how": way.how, "strength": way.strength, "loss": loss, "coef": fit.coef_[0] + way.centre,
             "intercept": float(fit.intercept_[0] + way.constant)}
            for way, fit, loss in zip(ways, fits, losses, strict=True)
        ]  # fmt: skip
        way = ways[used]
        return NewTask(
            name, way.how, way.strength, fits[used], way.centre, way.constant, tried, gain, error,
            how == "auto" and best > 0 and used == 0, words,
        )  # fmt: skip

    def _refuse_transfer(self, X: Any, name: Any, how: str) -> None:
        state = self._learned()
        loss = self._fitted_loss
        if not hasattr(self, "feature_weights") or not hasattr(self, "keep_folds"):
            raise value_error(
                "{model} has no feature weights: it cannot fit a new task.", model=estimator_name(self)
            )
        if (
            self._targets not in ("values", "classes")
            or not loss.by_row
            or loss.labels in ("one-hot", "ordered")
        ):
            raise value_error("fit_new_task is for numbers and for two classes, of a loss of single rows.")
        if isinstance(getattr(self, "classes_", None), list):
            raise value_error("fit_new_task: the old tasks have different classes.")
        if getattr(self, "patterns_", None) is not None:
            raise value_error(
                "fit_new_task: old tasks that lack features (by_pattern) cannot be carried over."
            )
        if is_task_list(X) or isinstance(X, dict):
            raise value_error("{X} must be the matrix of one task.")
        if name is None or np.ndim(name):
            raise ParameterError("name", "must be a label: a word or a number", name)
        if name in state.tasks.tolist():
            raise ParameterError("name", "is one of the old tasks: give the new one another", name)
        if self.positive and how in ("offset", "distance"):
            raise ParameterError(
                "how", "is about differences, and coefficients are to be >= 0: use 'weights'", how
            )

    def _for_new_task(self) -> Any:
        """The same kind of model, of one task."""
        base = for_one_task(self)
        cv = read_cv(self.cv)
        n_folds = cv if isinstance(cv, int) else cv.n_splits if isinstance(cv, ShuffledFolds) else DEFAULT
        changed = {"task_weights": None, "task": None, "scoring": None, "keep_folds": False, "verbose": 0}
        known = base.get_params(deep=False)
        base.set_params(**{key: value for key, value in changed.items() if key in known})
        base.cv = ShuffledFolds(n_folds)
        return base

    def _old_tasks(self, X: Any, data: TaskData) -> OldTasks:
        state = self._learned()
        if column_of_tasks(self) is not None and data.n_features == state.rows.shape[1] + 1:
            raise value_error("{X} has a column of tasks, which rows of one task do not need: leave it out.")
        scores = np.asarray(self._scores(X, None, state, 0.0 if state.needs_offset else None))
        scale = getattr(self, "scale_", None)
        rows = state.rows if scale is None else state.rows * scale
        weights = read_feature_weights(self.feature_weights, data.n_features)
        weights = np.ones(data.n_features) if weights is None else weights
        sizes = np.where(weights > 0.0, np.abs(rows), 0.0)
        scores = scores.reshape(len(scores), -1)
        return OldTasks(
            state.rows, state.constants, state.tasks, sizes, weights, scores, centred=not self.positive
        )


class _Search:
    """The ways to fit a new task, by cross-validation of its rows."""

    def __init__(
        self, base: Any, X: Any, y: Any, data: TaskData, old: OldTasks, how: str, groups: Any, given: bool
    ) -> None:
        self._base, self._X, self._y, self._data = base, X, y, data
        self._old, self._how, self._groups = old, how, groups
        self._known = data.known if given and data.known is not None else None
        self._loss: Loss = base._loss_of(data)

    def fits(self, weights: Array) -> tuple[list[Way], list[Any], list[float]]:
        """The ways, their models on rows with a weight, and their held-out losses: at all strengths by the same
        folds."""
        ways = self._old.ways(self._how, self._nearest(weights))
        fits = [self._fit(way, weights) for way in ways]
        return ways, fits, [held_out_loss(model) for model in fits]

    def nested(self, n_folds: int) -> tuple[float, float, bool]:
        """By what share the loss of held-out rows is smaller than that of the task alone, its standard error, and
        whether that is enough to rely on; ways are chosen without these rows."""
        weights, total = self._data.weights, np.zeros((2, len(self._data.y)))
        share = weights / weights.sum()
        for repeat in range(1, REPEATS + 1):
            total += self._losses(n_folds, repeat)
            alone, best = total / repeat
            level, gained = float(share @ alone), float(share @ (alone - best))
            error = float(np.sqrt(np.sum(np.square(self._by_group(share * (alone - best - gained))))))
            if gained <= 0.0 or gained > CLEAR * error:
                break
        enough = gained > 0.0 and gained > CONFIRMED * error
        return gained / level if level > 0.0 else 0.0, error / level if level > 0.0 else 0.0, enough

    def _by_group(self, values: Array) -> Array:
        """Sums over groups of rows, which vary together; single rows where there are none."""
        if self._groups is None:
            return values
        _, codes = np.unique(to_numpy(self._groups), return_inverse=True)
        return np.bincount(codes, values)

    def _losses(self, n_folds: int, repeat: int) -> Array:
        """What each row loses where it is held out: with the task alone, and with the way chosen without it."""
        data = self._data
        # other folds than those that choose
        rules = FoldRules((read_seed(self._base.random_state) + repeat) % 2**32)
        found = np.zeros((2, len(data.y)))
        for train, test in make_folds(ShuffledFolds(n_folds), self._y, data, self._groups, rules).weights:
            training, held = data.with_weights(train), np.flatnonzero(test > 0.0)
            n_groups = _count_groups(self._groups, train)
            within = ShuffledFolds(n_folds if n_groups is None else min(n_folds, n_groups))
            inner = make_folds(within, self._y, training, self._groups, FoldRules(self._base.random_state))
            ways = self._old.ways(self._how, self._nearest(train))
            fits = [self._fit_by(way, training, inner) for way in ways]
            losses = [held_out_loss(model) for model in fits]
            k = int(np.argmin(losses if self._how == "auto" else [np.inf, *losses[1:]]))
            for out, j in zip(found, (0, k), strict=True):
                z = fits[j]._scores(self._X, None, offset=self._offset(ways[j]))
                out[held] = self._loss.deviance(data.y[held], np.asarray(z)[held])
        return found

    def _offset(self, way: Way) -> Array | None:
        """What is known of every row; None where that is nothing."""
        if way.how in ("alone", "weights"):
            return self._known
        return way.known if self._known is None else way.known + self._known

    def _fit(self, way: Way, weights: Array) -> Any:
        if self._data.class_factors is not None:  # the model multiplies by them
            weights = weights / self._data.class_factors
        return self._model(way).fit(
            self._X, self._y, sample_weight=weights, groups=self._groups, offset=self._offset(way)
        )

    def _fit_by(self, way: Way, data: TaskData, folds: Folds) -> Any:
        """The same of data that are read already, without what is told of held-out rows."""
        model, data = self._model(way), replace(data, known=self._offset(way))
        model._choose_on(model._candidates(), data, folds, None)
        model._set_features(self._X, data)
        return model

    def _model(self, way: Way) -> Any:
        plain = np.all(way.weights == 1.0)
        return clone(self._base).set_params(feature_weights=None if plain else way.weights)

    def _nearest(self, weights: Array) -> int:
        """The old task whose predictions of these rows are best, but for a constant where the loss allows one."""
        seen = np.flatnonzero(weights > 0.0)
        y, share = self._data.y[seen], weights[seen] / weights[seen].sum()
        z = self._old.scores[seen] + (0.0 if self._known is None else self._known[seen, None])
        if self._loss.translates:
            z = z + share @ (y[:, None] - z)
        return int(np.argmin(share @ self._loss.deviance(y[:, None], z)))


def _count_groups(groups: Any, weights: Array) -> int | None:
    """Of rows with a weight; None where there are no groups."""
    return None if groups is None else len(set(to_numpy(groups)[weights > 0.0].tolist()))


def held_out_loss(model: Any) -> float:
    """The held-out loss of a cross-validated model at the strength that was chosen."""
    k = int(np.flatnonzero(model.path_.alphas == model.alpha_)[0])
    return float(np.mean(model.path_scores_[k]))


def _reason(way: Way, how: str, best: int, gain: float, error: float, n_ways: int) -> str:
    """Why a way was used, in words."""
    measured = f"{abs(gain):.1%} {'less' if gain >= 0.0 else 'more'} loss than alone on nested held-out rows"
    beside = f"{measured} (standard error {error:.1%})"
    if n_ways == 1:
        return "it was asked for alone" if how == "alone" else "the old tasks have nothing that could be used"
    if way.how == "alone":
        if best == 0:
            found = "no use of the old tasks had a smaller held-out loss"
            return found if error == 0.0 else f"{found}; those chosen in the nested comparison had {beside}"
        found = "the old tasks promised less loss, which nested rows did not confirm"
        return (
            f"{found}: {beside}" if error > 0.0 else f"{found}: without these rows the task alone was chosen"
        )
    strength = f" ({way.strength:g})" if isinstance(way.strength, float) else f" ({way.strength!r})"
    verdict = "the old tasks do harm" if gain < 0.0 else "the old tasks help"
    return f"{way.how}{strength}: {verdict}, {beside}"
