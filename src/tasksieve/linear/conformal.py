"""Prediction intervals and sets of classes from the models of the folds that a cross-validation has kept."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..fitted.arguments import check_choice, check_number
from ..fitted.conformal import (
    Calibration,
    KeptFolds,
    class_scores,
    deviation,
    fold_of_samples,
    rank,
    rows_needed,
    tasks_of,
)
from ..fitted.documented import ROWS
from ..fitted.folds import Folds
from ..fitted.model import TaskLinearModel
from ..fitted.predicting import gives_probabilities
from ..fitted.predictions import Predictions, available_if
from ..fitted.restore import DataFacts
from ..losses import Loss
from ..messages import ParameterError, value_error
from ..tasks import TaskData, like, task_codes
from ..tasks.named import pattern_rows, takes_named_tasks
from ..user_warnings import warn
from .held_out import Solved, path_scores
from .null_model import as_null

Array = np.ndarray[Any, Any]

_COVERAGE = """
coverage : float, default=0.9
    1 - a, the share of new rows that is aimed at, task by task. What is guaranteed is 1 - 2a, and about 1 - a is what
    is seen: see the page on prediction intervals.
borrow : bool or int, default=False
    Tasks with fewer held-out rows than this number (True: than `coverage` needs, 9 for 0.9) are calibrated by the rows
    of all tasks, of which each counts alike: the coverage is then one on average over tasks, not of that task. By
    default bounds that a task's own rows do not give are infinite.
"""


def kept_folds(model: Any) -> KeptFolds | None:
    """The models of the folds that a model has kept, if it has."""
    found: KeptFolds | None = getattr(model, "_kept", None)
    return found


def keep_folds(model: Any, kept: KeptFolds) -> Any:
    """The model, with models of folds that were kept elsewhere."""
    model._kept = kept
    return model


def predicts_numbers(model: Any) -> bool:
    """Whether there can be intervals."""
    if model._targets != "values" or not hasattr(model, "keep_folds"):
        raise AttributeError(f"{type(model).__name__} predicts no numbers: there are no prediction intervals.")
    return True


def predicts_classes(model: Any) -> bool:
    """Whether there can be sets."""
    if model._targets != "classes" or not hasattr(model, "keep_folds"):
        raise AttributeError(f"{type(model).__name__} predicts no classes of tasks: there are no sets of them.")
    return True


def _stacked(where: Any, answers: list[Any]) -> Array:
    """What each fold's model answers for a task."""
    return np.stack([each[where] for each in answers])


class ConformalPredictions(TaskLinearModel):
    """Intervals and sets of a cross-validated model, calibrated by the rows that its folds held out."""

    #: of models that have the parameter
    keep_folds: Any
    _out_of_fold: Callable[..., Any]
    _kept: KeptFolds | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "keep_folds" in self._get_param_names():
            self.__dict__.setdefault("keep_folds", False)  # saved by a version without it

    def _check_kept(self) -> None:
        if self._targets not in ("values", "classes"):
            words = "must be False: tasks of unlike outcomes have no intervals"
            raise ParameterError("keep_folds", words, self.keep_folds)

    def _fold_of_samples(self, data: TaskData, folds: Folds) -> Array:
        """The fold of each sample; a refusal of folds by which nothing can be calibrated."""
        fold = fold_of_samples(data, folds.weights)
        if fold is None:
            raise value_error(
                "{keep_folds} needs folds that hold out no row twice, and learn from all others: this {cv} does not."
            )
        return fold

    def _keep_folds(self, data: TaskData, folds: Folds, points: list[Solved], loss: Loss) -> None:
        """Keep the models of the folds, and what they predict for the rows that each held out."""
        fold, answers = self._fold_of_samples(data, folds), self._out_of_fold(data, loss)
        for f, ((_, test), point) in enumerate(zip(folds.weights, points, strict=True)):
            chosen, scores = path_scores(data, test, [point])
            for t, z in scores.items():
                answers.add(data.offsets[t] + chosen[t], z[:, 0], z[:, 0], f)
        held = np.flatnonzero(fold < len(points))
        codes = data.class_codes
        labels = data.y if codes is None else codes
        facts = DataFacts.of(data, (point.features for point in points))
        self._kept = KeptFolds(
            points, facts, data.task_of_sample[held], fold[held], labels[held], answers.means()[held]
        )

    def _kept_folds(self, name: str) -> KeptFolds:
        check_is_fitted(self, "coef_")
        if self._kept is None:
            raise value_error(
                "{name} needs the models of the folds: fit {model} with {keep_folds}=True.",
                name=name,
                model=type(self).__name__,
            )
        return self._kept

    def _fold_answers(self, X: Any, task: Any, offset: Any, kept: KeptFolds, probable: bool) -> list[Any]:
        """What the model of each fold says of some rows: numbers, decision values, or probabilities."""
        found = []
        for point in kept.points:
            model: Any = as_null(copy(self), kept.facts, point)
            if self._targets == "values":
                answer = model._predict(X, task, offset=offset)
            else:
                state = model._learned()
                answer = model._scores(X, task, state, offset)
                answer = state.probabilities(answer, task) if probable else answer
            found.append([np.asarray(part) for part in answer] if isinstance(answer, list) else np.asarray(answer))
        return found

    def _by_task(
        self, answers: list[Any], task: Any, kept: KeptFolds, answer: Callable[[int, Callable[[Any], Array]], Array]
    ) -> Any:
        """``answer(t, pick)`` of each task, in the form of the first of `answers`; ``pick(answers)`` are those of the
        task, fold after fold."""
        first, single = answers[0], bool(self._single)
        listed = isinstance(first, list)
        codes = None if task is None or listed else task_codes(task, self.tasks_, len(first))
        out: Any = [None] * len(first) if listed else None
        for t, where in tasks_of(kept.facts.n_tasks, listed, single, codes):
            found = answer(t, partial(_stacked, where))
            if listed:
                out[where] = found
                continue
            if out is None:
                n_axes = 1 if codes is not None or single else 2
                out = np.empty((*first.shape[:n_axes], found.shape[-1]), dtype=found.dtype)
            out[where] = found
        if out is None:  # no rows
            out = answer(0, partial(_stacked, slice(None)))
        return out

    def _least(self, borrow: Any, coverage: float, kept: KeptFolds) -> int:
        """Rows that a task needs to be calibrated on its own; a warning where it has too few for a bound."""
        check_number(coverage, "coverage", low=0, closed=False)
        if coverage >= 1:
            raise ParameterError("coverage", "must be below 1, 0.9 say", coverage)
        if not isinstance(borrow, bool | np.bool_ | Integral) or borrow < 0:
            raise ParameterError("borrow", "must be True, False, or a number of rows", borrow)
        if not isinstance(borrow, bool | np.bool_):
            return int(borrow)
        if borrow:
            return rows_needed(coverage)
        counts = np.bincount(kept.task, minlength=kept.facts.n_tasks)
        few = [t for t, n in enumerate(counts.tolist()) if rank(coverage, n) > n]
        if few:
            warn(
                f"{len(few)} task(s) have fewer held-out rows than the {rows_needed(coverage)} that a coverage of "
                f"{coverage:g} needs ({self.tasks_.tolist()[few[0]]!r}: {counts[few[0]]}): their predictions are not "
                "bounded. Ask for less, or for borrow=True.",
                UserWarning,
            )
        return 0

    @available_if(predicts_numbers)
    @takes_named_tasks
    @described_by(ROWS + _COVERAGE)
    def predict_interval(
        self,
        X: Any,
        *,
        task: Any = None,
        coverage: float = 0.9,
        upper: Any = None,
        spread: Any = None,
        borrow: bool | int = False,
        offset: Any = None,
    ) -> Predictions:
        r"""Prediction intervals by CV+, calibrated by the held-out rows of each task.

        .. math::

            \Bigl[ q^-_i \bigl\{ \hat\mu_{-k(i)}(x) - R_i\, \hat\sigma_{-k(i)}(x) \bigr\},\
            q^+_i \bigl\{ \hat\mu_{-k(i)}(x) + R_i\, \hat\sigma_{-k(i)}(x) \bigr\} \Bigr], \qquad
            R_i = \frac{|y_i - \hat\mu_{-k(i)}(x_i)|}{\hat\sigma_{-k(i)}(x_i)}

        over the n held-out rows i of the task of x, each with the model of the fold k(i) that held it out:
        :math:`q^+` is the :math:`\lceil (1 - a)(n + 1) \rceil`-th smallest of them, :math:`q^-` the
        :math:`\lfloor a (n + 1) \rfloor`-th, and :math:`\hat\sigma` = 1 without `spread`. The model is fitted with
        ``keep_folds``.

        Parameters
        ----------
        upper : fitted model, optional
            Of a higher quantile, this one being of a lower (`MultiTaskQuantileCV`), fitted to the same rows with the
            same folds, kept: the interval is from this model's prediction to that one's, widened or narrowed by the
            same rank of :math:`\max(\hat\mu^{low}(x_i) - y_i,\ y_i - \hat\mu^{up}(x_i))`.
        spread : "variance" or fitted model, optional
            :math:`\hat\sigma`: the root of the variance that the loss implies (Poisson, negative binomial, gamma and
            Tweedie), or a model of the sizes of residuals, ``abs(y - model.cv_predictions_)``, say, with positive
            predictions, fitted to the same rows with the same folds, kept.

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
            Lower and upper bounds; infinite where a task has too few held-out rows, and a warning says so. Counts
            and positive numbers have no bound below 0.
        """
        kept = self._kept_folds("predict_interval")
        least = self._least(borrow, coverage, kept)
        X, task = pattern_rows(X, task, self)
        low = self._fold_answers(X, task, offset, kept, False)
        high, above = low, kept
        if upper is not None:
            above = self._beside(upper, "upper", kept)
            high = upper._fold_answers(X, task, offset, above, False)
            if not np.array_equal(above.y, kept.y):
                raise ParameterError("upper", "must be fitted to the same labels")
        unit, own = self._spread(spread, X, task, offset, kept, low)
        scores = np.maximum(kept.answers - kept.y, kept.y - above.answers) / own

        def bounds(t: int, pick: Callable[[Any], Array]) -> Array:
            calibration: Calibration = kept.of_task(scores, t, least)
            lows = pick(low)
            units = np.ones_like(lows) if unit is None else pick(unit)
            return calibration.intervals(lows, lows if high is low else pick(high), units, coverage)

        found = self._by_task(low, task, kept, bounds)
        if self._loss.labels in ("counts", "positive"):
            found = [np.maximum(part, 0.0) for part in found] if isinstance(found, list) else np.maximum(found, 0.0)
        return like(X, found)

    def _beside(self, model: Any, name: str, kept: KeptFolds) -> KeptFolds:
        """The folds of a second model of the same rows."""
        other: KeptFolds | None = getattr(model, "_kept", None)
        if other is None or getattr(model, "_targets", None) != "values":
            raise ParameterError(name, "must be a regression with cross-validation, fitted with keep_folds=True")
        if not kept.like(other):
            raise ParameterError(
                name, "must be fitted to the same rows with the same folds: the same cv, random_state and task"
            )
        return other

    def _spread(
        self, spread: Any, X: Any, task: Any, offset: Any, kept: KeptFolds, answers: list[Any]
    ) -> tuple[list[Any] | None, Any]:
        """The unit of scores: of new rows in the form of `answers`, None where it is 1, and of those held out."""
        if spread is None:
            return None, 1.0
        if isinstance(spread, str) and spread == "variance":
            loss = self._loss
            own = deviation(loss, kept.answers)
            if own is None:
                words = f"is 'variance', and the {loss.label} implies none: give a model of the sizes of residuals"
                raise ParameterError("spread", words)
            return [
                [deviation(loss, part) for part in each] if isinstance(each, list) else deviation(loss, each)
                for each in answers
            ], own
        other = self._beside(spread, "spread", kept)
        given = offset if getattr(spread, "_needs_offset", False) else None
        unit = spread._fold_answers(X, task, given, other, False)
        smallest = min((part.min(initial=np.inf) for each in unit for part in ([each] if isinstance(each, np.ndarray)
                        else each)), default=np.inf)  # fmt: skip
        if min(smallest, float(other.answers.min(initial=np.inf))) <= 0.0:
            raise ParameterError(
                "spread", "predicts sizes that are not positive: use a loss of positive numbers, 'gamma' say"
            )
        return unit, other.answers

    @available_if(predicts_classes)
    @takes_named_tasks
    @described_by(ROWS + _COVERAGE)
    def predict_set(
        self,
        X: Any,
        *,
        task: Any = None,
        coverage: float = 0.9,
        score: Literal["probability", "cumulative"] = "probability",
        borrow: bool | int = False,
        offset: Any = None,
    ) -> Predictions:
        r"""Sets of classes by CV+, calibrated by the held-out rows of each task.

        .. math::

            \Bigl\{ c : \#\bigl\{ i : S_i < s_{-k(i)}(x, c) \bigr\} < (1 - a)(n + 1) \Bigr\}, \qquad
            S_i = s_{-k(i)}(x_i, y_i)

        over the n held-out rows i of the task of x, each with the model of the fold k(i) that held it out; s(x, c) is
        large where class c conforms badly. The model is fitted with ``keep_folds``.

        Parameters
        ----------
        score : {"probability", "cumulative"}, default="probability"
            s: minus the probability of the class, which gives the smallest sets (minus its decision value where the
            loss has no probabilities), or the sum of all probabilities that are no smaller, which is fairer to rows
            that are hard to tell.

        Returns
        -------
        bool ndarray of shape (n, K) with ``task``, (n, T, K) without; a list of (n_t, K) for a list
            Whether each class is in the set; the last axis follows ``classes_``. A set may be empty, where no class
            conforms, and has all classes where a task has too few held-out rows. Different classes per task: a list by
            task, as `predict_proba`.
        """
        kept = self._kept_folds("predict_set")
        check_choice(score, "score", ("probability", "cumulative"))
        least = self._least(borrow, coverage, kept)
        X, task = pattern_rows(X, task, self)
        probable = kept.answers.ndim == 2
        if score == "cumulative" and not probable:
            gives_probabilities(self)
        answers = self._fold_answers(X, task, offset, kept, probable)
        cumulative = score == "cumulative"
        calibrating = class_scores(kept.answers, probable, cumulative)[np.arange(len(kept.y)), kept.y]

        def conforming(t: int, pick: Callable[[Any], Array]) -> Array:
            calibration: Calibration = kept.of_task(calibrating, t, least)
            return calibration.sets(class_scores(pick(answers), probable, cumulative), coverage)

        return like(X, self._by_task(answers, task, kept, conforming))

