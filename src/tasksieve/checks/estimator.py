"""One battery for every estimator of several tasks: batch, cross-validated, on a graph, online."""

from __future__ import annotations

import pickle
import re
import tempfile
import warnings
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from .claims import claim
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
                check(trial)


class Trial:
    """An estimator, data for it, and its first fit, which the checks compare with."""

    def __init__(self, estimator: Any, rows: Rows, quick: bool) -> None:
        self.estimator, self.rows, self.quick = estimator, rows, quick
        self._first: Any = None

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    def new(self, **params: Any) -> Any:
        """An unfitted copy, to be solved well."""
        model = clone(self.estimator)
        known = model.get_params(deep=False)
        if "tol" in known:
            params = {"tol": TIGHT, **params}
        return model.set_params(**params)

    @property
    def first(self) -> Any:
        """Fitted to the rows as they are."""
        if self._first is None:
            self._first = self.new().fit(self.rows.X, self.rows.y, **self.rows.arguments)
        return self._first

    def answers(self, model: Any, X: Any = None, **arguments: Any) -> Any:
        """Predictions, or where classes are predicted the scores behind them."""
        ask = model.decision_function if hasattr(model, "decision_function") else model.predict
        if X is None:
            X, arguments = self.rows.X, self.rows.arguments
        return ask(X, **arguments)

    def same(self, check: str, words: str, model: Any, tolerance: float = SAME, **where: Any) -> None:
        """The model answers as the first one does."""
        expected, found = self.answers(self.first), self.answers(model)
        claim(
            np.shape(found) == np.shape(expected),
            check,
            f"{self.name}: {words} The shape differs.",
            found=np.shape(found),
            expected=np.shape(expected),
            **where,
        )
        difference = float(np.max(np.abs(found - expected)))
        claim(
            difference <= tolerance * (1.0 + float(np.max(np.abs(expected)))),
            check,
            f"{self.name}: {words}",
            largest_difference=difference,
            **where,
        )


def parameters(trial: Trial) -> None:
    """The constructor only stores."""
    model = trial.estimator
    params = model.get_params(deep=False)
    copy = clone(model)
    for name, value in copy.get_params(deep=False).items():
        same = _same_parameter(value, params[name])
        claim(same, "parameters", f"{trial.name}: clone changes the parameter {name!r}.", was=params[name], now=value)
    again = type(model)(**params)
    for name, value in params.items():
        claim(
            getattr(again, name) is value,
            "parameters",
            f"{trial.name}: the constructor must store {name!r} as it is given, and nothing else.",
            given=value,
            stored=getattr(again, name),
        )
    claim(
        copy.set_params(**params) is copy,
        "parameters",
        f"{trial.name}: set_params must return the model.",
    )
    claim(trial.name in repr(model), "parameters", f"{trial.name}: repr must name the class.", repr=repr(model))
    fitted = sorted(name for name in vars(again) if name.endswith("_") and not name.startswith("_"))
    claim(not fitted, "parameters", f"{trial.name}: fitted attributes before fit.", attributes=fitted)


def _same_parameter(one: Any, other: Any) -> bool:
    """The same thing, or two that are made alike."""
    if one is other or repr(one) == repr(other):
        return True
    return type(one) is type(other) and hasattr(one, "__dict__") and repr(vars(one)) == repr(vars(other))


def fit_repeats(trial: Trial) -> None:
    """What fit returns, leaves alone, and repeats."""
    rows = trial.rows
    given = {"X": rows.X.copy(), "y": rows.y.copy()} | {k: v.copy() for k, v in rows.arguments.items()}
    kept = {key: value.copy() for key, value in given.items()}
    for value in given.values():
        value.flags.writeable = False
    model = trial.new()
    try:
        claim(model.fit(**given) is model, "fit", f"{trial.name}: fit must return the model.")
    except ValueError as error:
        claim("read-only" not in str(error), "fit", f"{trial.name}: fit writes to what it is given.", error=str(error))
        raise
    for key, value in given.items():
        claim(np.array_equal(value, kept[key]), "fit", f"{trial.name}: fit changes {key}.")
    trial.same("fit", "the same data must give the same model.", model, 1e-12)
    again = trial.answers(model)
    trial.same("fit", "a second fit of the same model must give the same answer.", model.fit(**kept), 1e-12)
    claim(np.array_equal(trial.answers(model), again), "fit", f"{trial.name}: predictions differ between two fits.")
    for key, value in trial.estimator.get_params(deep=False).items():
        if key != "tol":
            same = _same_parameter(getattr(model, key), value)
            claim(same, "fit", f"{trial.name}: fit changes the parameter {key!r}.", was=value, now=getattr(model, key))
    d = rows.X.shape[1]
    claim(
        model.coef_.shape[-1] == d and model.n_features_in_ == d,
        "fit",
        f"{trial.name}: coef_ must have a column for each feature, and n_features_in_ count them.",
        shape=model.coef_.shape,
        n_features_in_=model.n_features_in_,
    )
    if rows.task is not None:
        claim(
            sorted(model.tasks_.tolist()) == list(range(TASKS)) and model.coef_.shape[-2] == TASKS,
            "fit",
            f"{trial.name}: tasks_ must hold the labels of the tasks, coef_ a row for each.",
            tasks=model.tasks_,
            shape=model.coef_.shape,
        )


def copies(trial: Trial) -> None:
    """Pickled and read again."""
    model = pickle.loads(pickle.dumps(trial.first))
    claim(
        np.array_equal(trial.answers(model), trial.answers(trial.first)),
        "pickle",
        f"{trial.name}: a pickled model must predict what the model predicts.",
    )
    claim(repr(model) == repr(trial.first), "pickle", f"{trial.name}: a pickled model has other parameters.")


def not_fitted(trial: Trial) -> None:
    """`predict` before `fit`."""
    try:
        trial.new().predict(trial.rows.X)
    except NotFittedError:
        return
    claim(False, "not_fitted", f"{trial.name}: predict before fit must raise scikit-learn's NotFittedError.")


def storage_types(trial: Trial) -> None:
    """Types, orders and containers of X, and y and task that are columns of a wider array."""
    rows = trial.rows
    wide = {key: np.repeat(value[:, None], 2, axis=1)[:, 0] for key, value in rows.arguments.items()}
    strided = trial.new().fit(rows.X, np.repeat(rows.y[:, None], 2, axis=1)[:, 0], **wide)
    trial.same("storages", "y and task as columns of wider arrays must give the same model.", strided)
    with tempfile.TemporaryDirectory() as folder:
        for kind, X in storages(rows.X, Path(folder), trial.quick).items():
            model = trial.new().fit(X, rows.y, **rows.arguments)
            trial.same("storages", f"X as {kind} must give the same model.", model)
            found = trial.answers(model, X, **rows.arguments)
            own = trial.answers(model)
            claim(
                np.allclose(found, own, rtol=1e-5, atol=1e-5),
                "storages",
                f"{trial.name}: predictions for X as {kind} must be those for X.",
                largest_difference=float(np.max(np.abs(found - own))),
            )
            del X, model  # a mapped file must be closed before it is removed


def several_tasks(trial: Trial) -> None:
    """Tasks are apart: each row is answered by its own."""
    rows, model = trial.rows, trial.first
    assert rows.task is not None
    every, own = trial.answers(model, rows.X), trial.answers(model)
    claim(
        every.shape == (len(rows.y), TASKS) and own.shape == (len(rows.y),),
        "tasks",
        f"{trial.name}: without task a prediction is of shape (rows, tasks), with it (rows,).",
        without=every.shape,
        within=own.shape,
    )
    positions = np.array([model.tasks_.tolist().index(t) for t in rows.task])
    claim(
        np.allclose(every[np.arange(len(own)), positions], own, atol=1e-9),
        "tasks",
        f"{trial.name}: a row's prediction with task must be that of its task's column without.",
    )
    parts, labels = (_in_order_of(model, items) for items in rows.as_list())
    answers = trial.answers(model, parts)
    claim(isinstance(answers, list) and len(answers) == TASKS, "tasks", f"{trial.name}: a list in, a list out.")
    for t, found in zip(model.tasks_.tolist(), answers, strict=True):
        claim(
            np.allclose(found, own[rows.task == t], atol=1e-9),
            "tasks",
            f"{trial.name}: predictions of a list must be those of its rows.",
            task=t,
        )
    score = model.score(rows.X, rows.y, **rows.arguments)
    good = isinstance(score, float) and score <= 1.0
    claim(good, "tasks", f"{trial.name}: score must be a number <= 1.", score=score)
    wide = np.stack(_in_order_of(model, list(rows.as_columns().T)), axis=1)
    others = np.array([model.score(parts, labels), model.score(rows.X, wide)])
    claim(
        np.allclose(others, score, atol=1e-9),
        "tasks",
        f"{trial.name}: score must be the same for every form of rows.",
        stacked=score,
        list_and_columns=others,
    )


def _in_order_of(model: Any, items: list[Any]) -> list[Any]:
    """What belongs to tasks 0, 1, ..., as a model orders its tasks."""
    return [items[t] for t in model.tasks_.tolist()]


def forms(trial: Trial) -> None:
    """A list of matrices, one for each task."""
    parts = trial.rows.as_list()
    trial.same("forms", "a list of matrices must give the same model as stacked rows.", trial.new().fit(*parts))


def row_order(trial: Trial) -> None:
    """Rows in another order."""
    other = trial.rows.some(np.random.default_rng(1).permutation(len(trial.rows.y)))
    trial.same(
        "row_order", "the order of rows must not matter.", trial.new().fit(other.X, other.y, **other.arguments)
    )


def columns(trial: Trial) -> None:
    """A column of labels for each task."""
    trial.same(
        "columns",
        "one matrix and a column of labels for each task (NaN: not observed) must give the same model.",
        trial.new().fit(trial.rows.X, trial.rows.as_columns()),
    )


def missing_labels(trial: Trial) -> None:
    """NaN is a label that is not there."""
    rows = trial.rows
    kept = np.random.default_rng(2).random(len(rows.y)) < 0.85
    fewer = rows.some(kept)
    expected = trial.new().fit(fewer.X, fewer.y, **fewer.arguments)
    y = np.where(kept, rows.y, np.nan)
    _alike(trial, "missing_labels", "a NaN label must be a row that is not there.", expected, y=y)


def zero_weights(trial: Trial) -> None:
    """A weight of 0 is a row that is not there; weights of 1 are none."""
    rows = trial.rows
    trial.same(
        "zero_weights",
        "weights of 1 must be as good as none.",
        trial.new().fit(rows.X, rows.y, sample_weight=np.ones(len(rows.y)), **rows.arguments),
    )
    kept = np.random.default_rng(3).random(len(rows.y)) < 0.85
    fewer = rows.some(kept)
    expected = trial.new().fit(fewer.X, fewer.y, **fewer.arguments)
    _alike(
        trial,
        "zero_weights",
        "a row of weight 0 must be a row that is not there.",
        expected,
        sample_weight=kept.astype(np.float64),
    )


def _alike(trial: Trial, check: str, words: str, expected: Any, **changed: Any) -> None:
    rows = trial.rows
    model = trial.new().fit(**{"X": rows.X, "y": rows.y, **rows.arguments, **changed})
    difference = float(np.max(np.abs(trial.answers(model) - trial.answers(expected))))
    claim(
        difference <= SAME * (1.0 + float(np.max(np.abs(trial.answers(expected))))),
        check,
        f"{trial.name}: {words}",
        largest_difference=difference,
    )


def offset(trial: Trial) -> None:
    """What is known beforehand is added, neither forgotten nor learned again."""
    if "offset" not in signature(trial.estimator.fit).parameters:
        return
    rows = trial.rows

    def centred(answers: Array) -> Array:  # scores of many classes are known up to a number that all have in common
        return answers - np.mean(answers, axis=1, keepdims=True) if answers.ndim == 2 else answers

    expected = centred(trial.answers(trial.first))
    known = {0.0: "an offset of 0 must be as good as none."}
    if getattr(trial.estimator, "fit_intercept", False):
        known[1.5] = "a constant offset must leave predictions (offset included) as they are: intercepts take it up."
    for value, words in known.items():
        model = trial.new().fit(rows.X, rows.y, offset=value, **rows.arguments)
        found = centred(trial.answers(model, rows.X, offset=value, **rows.arguments))
        difference = float(np.max(np.abs(found - expected)))
        claim(
            difference <= SAME * (1.0 + float(np.max(np.abs(expected)))),
            "offset",
            f"{trial.name}: {words}",
            largest_difference=difference,
        )
        given = {"X": rows.X, **rows.arguments}
        _refused(trial, "a prediction without the offset that fit had", "offset", model.predict, given, "offset")


def bad_input(trial: Trial) -> None:
    """Mistakes are refused, and named."""
    rows = trial.rows
    X, y, more = rows.X, rows.y, rows.arguments
    broken = X.copy()
    broken[3, 2] = np.nan
    weights = np.ones(len(y))
    weights[1] = -1.0
    mistakes: list[tuple[str, str, dict[str, Any]]] = [
        ("NaN in X", "X", {"X": broken}),
        ("infinity in X", "X", {"X": np.where(np.isnan(broken), np.inf, X)}),
        ("a y that is too short", "y", {"y": y[:-1]}),
        ("infinity in y", "y", {"y": np.r_[y[:-1], np.inf]}),
        ("a negative sample_weight", "sample_weight", {"sample_weight": weights}),
        ("a sample_weight that is too short", "sample_weight", {"sample_weight": weights[2:]}),
        ("one-dimensional X", "X", {"X": X[:, 0]}),
    ]
    if rows.task is not None:
        mistakes.append(("a task that is too short", "task", {"task": rows.task[:-1]}))
    for words, argument, changed in mistakes:
        _refused(trial, words, argument, trial.new().fit, {"X": X, "y": y, **more, **changed})
    model = trial.first
    _refused(trial, "rows to predict with a feature too few", "X", model.predict, {"X": X[:, :-1], **more})
    if rows.task is not None:
        _refused(
            trial, "rows to predict of an unknown task", "task", model.predict, {"X": X[:2], "task": np.array([0, 99])}
        )


def bad_parameters(trial: Trial) -> None:
    """Parameters are checked by fit, and named in errors."""
    rows = trial.rows
    for name in ("alpha", "C", "tol", "max_iter", "gamma"):
        if name in trial.estimator.get_params(deep=False):
            model = trial.new(**{name: -1})
            given = {"X": rows.X, "y": rows.y, **rows.arguments}
            _refused(trial, f"{name}=-1", name, model.fit, given, "bad_parameters")


def _refused(
    trial: Trial, words: str, argument: str, ask: Callable[..., Any], given: dict[str, Any], check: str = "bad_input"
) -> None:
    try:
        ask(**given)
    except ValueError as error:
        named = re.search(rf"(?<![A-Za-z_]){re.escape(argument)}(?![A-Za-z])", str(error))
        claim(
            named is not None,
            check,
            f"{trial.name}: the ValueError for {words} must name the argument {argument!r}.",
            message=str(error),
        )
        return
    claim(False, check, f"{trial.name}: {words} must raise a ValueError.")


def support(trial: Trial) -> None:
    """Selected features are those with a coefficient."""
    model, X = trial.first, trial.rows.X
    if not hasattr(model, "get_support"):
        return
    mask = model.get_support()
    used = np.any(model.coef_.reshape(-1, X.shape[1]), axis=0)
    claim(
        np.array_equal(mask, used),
        "support",
        f"{trial.name}: get_support must name the features that have a coefficient.",
        support=mask,
        used=used,
    )
    claim(mask.any(), "support", f"{trial.name}: nothing is selected on data that two features explain.")
    claim(
        np.array_equal(model.transform(X), X[:, mask]),
        "support",
        f"{trial.name}: transform must keep the columns of the selected features.",
    )


def gap(trial: Trial) -> None:
    """The duality gap is a true bound."""
    rows = trial.rows
    model = trial.first
    if not hasattr(model, "dual_gap_"):
        return
    loose = trial.new(tol=LOOSE).fit(rows.X, rows.y, **rows.arguments)
    for one in (model, loose):
        claim(
            np.isfinite(one.dual_gap_) and one.dual_gap_ >= 0.0,
            "gap",
            f"{trial.name}: dual_gap_ must be finite and not negative.",
            dual_gap_=one.dual_gap_,
        )
    chosen = ("alpha_", "C_", "graph_strength_")
    if any(getattr(loose, name, None) != getattr(model, name, None) for name in chosen):
        return  # another problem: cross-validation has chosen other values
    better = loose.objective_ - model.objective_
    claim(
        better <= loose.dual_gap_ + 1e-10 * (1.0 + abs(model.objective_)),
        "gap",
        f"{trial.name}: a tighter fit is better by more than dual_gap_: the gap is no bound.",
        better_by=better,
        dual_gap_=loose.dual_gap_,
    )


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
