"""One battery for every estimator of several tasks: batch, cross-validated, on a graph, online."""

from __future__ import annotations

import pickle
import re
import tempfile
import warnings
from collections.abc import Callable
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from .claims import claim, unchanged
from .estimator_data import TASKS, Rows, rows_for, storages

Array = np.ndarray[Any, Any]

OF_TASKS = ("tasks", "forms", "row_order", "columns")  # checks that need several tasks
TIGHT, LOOSE = 1e-9, 1e-2
SAME = 1e-4  # answers of two fits to TIGHT, relative to their size


def check_estimator(estimator: Any, *, quick: bool = False) -> None:
    """Check that an estimator of several tasks behaves as all of them do.

    scikit-learn's own checks know nothing of tasks; these are about what they leave open. The checks, by the names
    that an estimator may skip:

    - ``parameters``: the constructor only stores, `clone`, `get_params`, `set_params`, `repr`;
    - ``fit``: returns the model, leaves its arguments alone, gives the same answer twice; coefficients and tasks have
      their shapes;
    - ``pickle``: a copy gives the same answers;
    - ``not_fitted``: scikit-learn's NotFittedError before `fit`;
    - ``storages``: float32, integers, sparse matrices, memory maps and memory orders give the same model, and so do
      labels that are a column of a wider array;
    - ``tasks``: each row is answered by its own task, in every form that `predict` and `score` take; an estimator that
      knows no tasks skips it, and all other checks then use one;
    - ``forms``: a list of matrices gives the same model as stacked rows;
    - ``row_order``: so do rows in another order;
    - ``columns``: so does one matrix with a column of labels for each task;
    - ``missing_labels``: a NaN label is a row that is not there;
    - ``zero_weights``: so is a row of weight 0, and weights of 1 are no weights;
    - ``offset``, where `fit` takes one: an offset of 0 is none, a constant one is taken up by the intercepts, and a
      model that was fitted with one does not predict without;
    - ``bad_input``: a ValueError that names the argument;
    - ``bad_parameters``: a ValueError of `fit` that names the parameter;
    - ``support``: `get_support` and `transform` follow the coefficients;
    - ``gap``: ``dual_gap_`` is not negative, and a tighter fit is not better by more than it.

    Parameters
    ----------
    estimator : estimator
        An instance; it is cloned, never fitted. A class says what it skips, and why, in ``_skip_checks``, a dict of
        names and reasons.
    quick : bool, default=False
        Fewer storages.

    Raises
    ------
    AssertionError
        Its message begins with the name of the check.
    ValueError
        Where ``_skip_checks`` has a name that is no check.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.checks.check_estimator(ts.MultiTaskLasso(0.1), quick=True)
    """
    skipped = dict(getattr(estimator, "_skip_checks", {}))
    for name, reason in skipped.items():
        if name not in CHECKS:
            raise ValueError(
                f"{type(estimator).__name__}._skip_checks names {name!r}, which is no check: {', '.join(CHECKS)}."
            )
        if not (isinstance(reason, str) and reason):
            raise ValueError(f"{type(estimator).__name__}._skip_checks[{name!r}] must say why.")
    trial = Trial(estimator, rows_for(estimator, "tasks" not in skipped), quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, check in CHECKS.items():
            if name not in skipped and not (trial.rows.task is None and name in OF_TASKS):
                trial.check = name
                check(trial)


class Trial:
    """An estimator, data for it, and its first fit, which the checks compare with; `check` is the one under way."""

    check: str

    def __init__(self, estimator: Any, rows: Rows, quick: bool) -> None:
        self.estimator, self.rows, self.quick = estimator, rows, quick

    def claim(self, holds: Any, words: str, **numbers: Any) -> None:
        """`claim`, with the names of the check and of the estimator."""
        claim(holds, f"{self.check}: {type(self.estimator).__name__}: {words}", **numbers)

    def new(self, **params: Any) -> Any:
        """An unfitted copy, to be solved well."""
        model = clone(self.estimator)
        if "tol" in model.get_params(deep=False):
            params = {"tol": TIGHT, **params}
        return model.set_params(**params)

    def fitted(self, rows: Rows | None = None, /, **changed: Any) -> Any:
        """A new copy, fitted to rows (by default those of the trial), with some arguments of `fit` changed."""
        return self.new().fit(**{**(self.rows if rows is None else rows).given, **changed})

    @cached_property
    def first(self) -> Any:
        """Fitted to the rows as they are."""
        return self.fitted()

    def answers(self, model: Any, X: Any = None, **arguments: Any) -> Any:
        """Predictions, or where classes are predicted the scores behind them; of ordered classes, whose scores are
        nothing without the thresholds, the probability of the last one."""
        ask = model.decision_function if hasattr(model, "decision_function") else model.predict
        if X is None:
            X, arguments = self.rows.X, self.rows.arguments
        if hasattr(model, "thresholds_") and model._targets == "classes":
            shares = model.predict_proba(X, **arguments)
            return [part[..., -1] for part in shares] if isinstance(shares, list) else shares[..., -1]
        return ask(X, **arguments)

    def same(self, words: str, model: Any, tolerance: float = SAME) -> None:
        """The model answers as the first one does."""
        self.alike(words, self.answers(model), self.answers(self.first), tolerance)

    def alike(self, words: str, found: Any, expected: Any, tolerance: float = SAME) -> None:
        shapes = np.shape(found), np.shape(expected)
        self.claim(shapes[0] == shapes[1], f"{words} The shape differs.", found=shapes[0], expected=shapes[1])
        difference = float(np.max(np.abs(found - expected)))
        near = difference <= tolerance * (1.0 + float(np.max(np.abs(expected))))
        self.claim(near, words, largest_difference=difference)


def parameters(trial: Trial) -> None:
    """The constructor only stores."""
    model = trial.estimator
    params = model.get_params(deep=False)
    copy = clone(model)
    for name, value in copy.get_params(deep=False).items():
        same = _same_parameter(value, params[name])
        trial.claim(same, f"clone changes the parameter {name!r}.", was=params[name], now=value)
    again = type(model)(**params)
    for name, value in params.items():
        words, stored = f"the constructor must store {name!r} as it is given, and nothing else.", getattr(again, name)
        trial.claim(stored is value, words, given=value, stored=stored)
    trial.claim(copy.set_params(**params) is copy, "set_params must return the model.")
    trial.claim(type(model).__name__ in repr(model), "repr must name the class.", repr=repr(model))
    fitted = sorted(name for name in vars(again) if name.endswith("_") and not name.startswith("_"))
    trial.claim(not fitted, "fitted attributes before fit.", attributes=fitted)


def _same_parameter(one: Any, other: Any) -> bool:
    """The same thing, or two that are made alike."""
    if one is other or repr(one) == repr(other):
        return True
    return type(one) is type(other) and hasattr(one, "__dict__") and repr(vars(one)) == repr(vars(other))


def fit_repeats(trial: Trial) -> None:
    """What fit returns, leaves alone, and repeats."""
    rows, model = trial.rows, trial.new()
    with unchanged(f"fit: {type(model).__name__}", "fit", **rows.given):
        trial.claim(model.fit(**rows.given) is model, "fit must return the model.")
    trial.same("the same data must give the same model.", model, 1e-12)
    again = trial.answers(model)
    trial.same("a second fit of the same model must give the same answer.", model.fit(**rows.given), 1e-12)
    trial.claim(np.array_equal(trial.answers(model), again), "predictions differ between two fits.")
    for key, value in trial.estimator.get_params(deep=False).items():
        if key != "tol":
            now = getattr(model, key)
            trial.claim(_same_parameter(now, value), f"fit changes the parameter {key!r}.", was=value, now=now)
    d, shape = rows.X.shape[1], model.coef_.shape
    words = "coef_ must have a column for each feature, and n_features_in_ count them."
    counted = shape[-1] == d and model.n_features_in_ == d
    trial.claim(counted, words, shape=shape, n_features_in_=model.n_features_in_)
    if rows.task is not None:
        words = "tasks_ must hold the labels of the tasks, coef_ a row for each."
        held = sorted(model.tasks_.tolist()) == list(range(TASKS)) and shape[-2] == TASKS
        trial.claim(held, words, tasks=model.tasks_, shape=shape)


def copies(trial: Trial) -> None:
    """Pickled and read again."""
    model = pickle.loads(pickle.dumps(trial.first))
    same = np.array_equal(trial.answers(model), trial.answers(trial.first))
    trial.claim(same, "a pickled model must predict what the model predicts.")
    trial.claim(repr(model) == repr(trial.first), "a pickled model has other parameters.")


def not_fitted(trial: Trial) -> None:
    """`predict` before `fit`."""
    try:
        trial.new().predict(trial.rows.X)
    except NotFittedError:
        return
    trial.claim(False, "predict before fit must raise scikit-learn's NotFittedError.")


def storage_types(trial: Trial) -> None:
    """Types, orders and containers of X, and y and task that are columns of a wider array."""
    rows = trial.rows
    wide = {key: np.repeat(value[:, None], 2, axis=1)[:, 0] for key, value in {"y": rows.y, **rows.arguments}.items()}
    trial.same("y and task as columns of wider arrays must give the same model.", trial.fitted(**wide))
    with tempfile.TemporaryDirectory() as folder:
        for kind, X in storages(rows.X, Path(folder), trial.quick).items():
            model = trial.fitted(X=X)
            trial.same(f"X as {kind} must give the same model.", model)
            found, own = trial.answers(model, X, **rows.arguments), trial.answers(model)
            near = np.allclose(found, own, rtol=1e-5, atol=1e-5)
            words = f"predictions for X as {kind} must be those for X."
            trial.claim(near, words, largest_difference=np.max(np.abs(found - own)))
            del X, model  # a mapped file must be closed before it is removed


def several_tasks(trial: Trial) -> None:
    """Tasks are apart: each row is answered by its own."""
    rows, model = trial.rows, trial.first
    assert rows.task is not None
    every, own = trial.answers(model, rows.X), trial.answers(model)
    words = "without task a prediction is of shape (rows, tasks), with it (rows,)."
    shaped = every.shape == (len(rows.y), TASKS) and own.shape == (len(rows.y),)
    trial.claim(shaped, words, without=every.shape, within=own.shape)
    positions = np.array([model.tasks_.tolist().index(t) for t in rows.task])
    words = "a row's prediction with task must be that of its task's column without."
    trial.claim(np.allclose(every[np.arange(len(own)), positions], own, atol=1e-9), words)
    parts, labels = (_in_order_of(model, items) for items in rows.as_list())
    answers = trial.answers(model, parts)
    trial.claim(isinstance(answers, list) and len(answers) == TASKS, "a list in, a list out.")
    for t, found in zip(model.tasks_.tolist(), answers, strict=True):
        same = np.allclose(found, own[rows.task == t], atol=1e-9)
        trial.claim(same, "predictions of a list must be those of its rows.", task=t)
    score = model.score(rows.X, rows.y, **rows.arguments)
    trial.claim(isinstance(score, float) and score <= 1.0, "score must be a number <= 1.", score=score)
    wide = np.stack(_in_order_of(model, list(rows.as_columns().T)), axis=1)
    others = np.array([model.score(parts, labels), model.score(rows.X, wide)])
    words = "score must be the same for every form of rows."
    trial.claim(np.allclose(others, score, atol=1e-9), words, stacked=score, list_and_columns=others)


def _in_order_of(model: Any, items: list[Any]) -> list[Any]:
    """What belongs to tasks 0, 1, ..., as a model orders its tasks."""
    return [items[t] for t in model.tasks_.tolist()]


def forms(trial: Trial) -> None:
    """A list of matrices, one for each task."""
    parts = trial.rows.as_list()
    trial.same("a list of matrices must give the same model as stacked rows.", trial.new().fit(*parts))


def row_order(trial: Trial) -> None:
    """Rows in another order."""
    other = trial.rows.some(np.random.default_rng(1).permutation(len(trial.rows.y)))
    trial.same("the order of rows must not matter.", trial.fitted(other))


def columns(trial: Trial) -> None:
    """A column of labels for each task."""
    model = trial.new().fit(trial.rows.X, trial.rows.as_columns())
    trial.same("one matrix and a column of labels for each task (NaN: not observed) must give the same model.", model)


def missing_labels(trial: Trial) -> None:
    """NaN is a label that is not there."""
    kept = np.random.default_rng(2).random(len(trial.rows.y)) < 0.85
    found = trial.fitted(y=trial.rows.without_labels(kept))
    _without_rows(trial, "a NaN label must be a row that is not there.", found, kept)


def zero_weights(trial: Trial) -> None:
    """A weight of 0 is a row that is not there; weights of 1 are none."""
    ones = np.ones(len(trial.rows.y))
    trial.same("weights of 1 must be as good as none.", trial.fitted(sample_weight=ones))
    kept = np.random.default_rng(3).random(len(trial.rows.y)) < 0.85
    found = trial.fitted(sample_weight=kept.astype(np.float64))
    _without_rows(trial, "a row of weight 0 must be a row that is not there.", found, kept)


def _without_rows(trial: Trial, words: str, model: Any, kept: Array) -> None:
    """The model answers as one that was fitted to the rows that are kept."""
    trial.alike(words, trial.answers(model), trial.answers(trial.fitted(trial.rows.some(kept))))


def offset(trial: Trial) -> None:
    """What is known beforehand is added, neither forgotten nor learned again."""
    if "offset" not in signature(trial.estimator.fit).parameters:
        return
    rows = trial.rows

    def centred(answers: Array) -> Array:  # scores of many classes are known up to a number that all have in common
        return answers - np.mean(answers, axis=1, keepdims=True) if answers.ndim == 2 else answers

    expected = centred(trial.answers(trial.first))
    known = {0.0: "an offset of 0 must be as good as none."}
    hazards = getattr(trial.estimator, "_targets", None) == "survival"  # to which a constant makes no difference
    if getattr(trial.estimator, "fit_intercept", False) and not hazards:
        known[1.5] = "a constant offset must leave predictions (offset included) as they are: intercepts take it up."
    for value, words in known.items():
        model = trial.fitted(offset=value)
        found = centred(trial.answers(model, rows.X, offset=value, **rows.arguments))
        trial.alike(words, found, expected)
        given = {"X": rows.X, **rows.arguments}
        _refused(trial, "a prediction without the offset that fit had", "offset", model.predict, given)


def bad_input(trial: Trial) -> None:
    """Mistakes are refused, and named."""
    rows = trial.rows
    X, y, more = rows.X, rows.y, rows.arguments
    broken = X.copy()
    broken[3, 2] = np.nan
    weights = np.ones(len(y))
    weights[1] = -1.0
    mistakes: list[tuple[str, str, Any]] = [
        ("NaN in X", "X", broken),
        ("infinity in X", "X", np.where(np.isnan(broken), np.inf, X)),
        ("a y that is too short", "y", y[:-1]),
        ("infinity in y", "y", rows.with_infinity()),
        ("a negative sample_weight", "sample_weight", weights),
        ("a sample_weight that is too short", "sample_weight", weights[2:]),
        ("one-dimensional X", "X", X[:, 0]),
    ]
    if rows.task is not None:
        mistakes.append(("a task that is too short", "task", rows.task[:-1]))
    for words, argument, mistaken in mistakes:
        _refused(trial, words, argument, trial.new().fit, {**rows.given, argument: mistaken})
    predict = trial.first.predict
    _refused(trial, "rows to predict with a feature too few", "X", predict, {"X": X[:, :-1], **more})
    if rows.task is not None:
        unknown = {"X": X[:2], "task": np.array([0, 99])}
        _refused(trial, "rows to predict of an unknown task", "task", predict, unknown)


def bad_parameters(trial: Trial) -> None:
    """Parameters are checked by fit, and named in errors."""
    for name in ("alpha", "C", "tol", "max_iter", "gamma"):
        if name in trial.estimator.get_params(deep=False):
            _refused(trial, f"{name}=-1", name, trial.new(**{name: -1}).fit, trial.rows.given)


def _refused(trial: Trial, words: str, argument: str, ask: Callable[..., Any], given: dict[str, Any]) -> None:
    try:
        ask(**given)
    except ValueError as error:
        named = re.search(rf"(?<![A-Za-z_]){re.escape(argument)}(?![A-Za-z])", str(error))
        words = f"the ValueError for {words} must name the argument {argument!r}."
        trial.claim(named is not None, words, message=str(error))
        return
    trial.claim(False, f"{words} must raise a ValueError.")


def support(trial: Trial) -> None:
    """Selected features are those with a coefficient."""
    model, X = trial.first, trial.rows.X
    if not hasattr(model, "get_support"):
        return
    mask = model.get_support()
    used = np.any(model.coef_.reshape(-1, X.shape[1]), axis=0)
    words = "get_support must name the features that have a coefficient."
    trial.claim(np.array_equal(mask, used), words, support=mask, used=used)
    trial.claim(mask.any(), "nothing is selected on data that two features explain.")
    words = "transform must keep the columns of the selected features."
    trial.claim(np.array_equal(model.transform(X), X[:, mask]), words)


def gap(trial: Trial) -> None:
    """The duality gap is a true bound."""
    model = trial.first
    if not hasattr(model, "dual_gap_"):
        return
    loose = trial.new(tol=LOOSE).fit(**trial.rows.given)
    for found in (model.dual_gap_, loose.dual_gap_):
        finite = np.isfinite(found) and found >= 0.0
        trial.claim(finite, "dual_gap_ must be finite and not negative.", dual_gap_=found)
    chosen = ("alpha_", "C_", "graph_strength_")
    if any(getattr(loose, name, None) != getattr(model, name, None) for name in chosen):
        return  # another problem: cross-validation has chosen other values
    better = loose.objective_ - model.objective_
    words = "a tighter fit is better by more than dual_gap_: the gap is no bound."
    bounded = better <= loose.dual_gap_ + 1e-10 * (1.0 + abs(model.objective_))
    trial.claim(bounded, words, better_by=better, dual_gap_=loose.dual_gap_)


CHECKS: dict[str, Callable[[Trial], None]] = {
    "parameters": parameters,
    "fit": fit_repeats,
    "pickle": copies,
    "not_fitted": not_fitted,
    "storages": storage_types,
    "tasks": several_tasks,
    "forms": forms,
    "row_order": row_order,
    "columns": columns,
    "missing_labels": missing_labels,
    "zero_weights": zero_weights,
    "offset": offset,
    "bad_input": bad_input,
    "bad_parameters": bad_parameters,
    "support": support,
    "gap": gap,
}
