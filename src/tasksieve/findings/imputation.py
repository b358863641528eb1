"""Multiple imputation: the completed tables of each task are tasks, so that one selection serves all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..fitted.allowed import check_switch
from ..fitted.arguments import check_number, feature_names
from ..fitted.documented import DATA, ROWS
from ..fitted.fold_assignment import read_seed
from ..fitted.model import FeatureSelector
from ..fitted.predictions import available_if
from ..fitted.state import LinearState
from ..messages import ParameterError
from ..tasks import is_task_list, like, read_matrix, read_task_graph, row_labels
from ..tasks.named import takes_named_tasks
from ..tasks.task_column import column_of_tasks
from ..user_warnings import warn
from .path_model import check_linear, path_model
from .rubin import PooledEstimates, pool

Array = np.ndarray[Any, Any]

__all__ = ["MultipleImputation"]


class MultipleImputation(MetaEstimatorMixin, FeatureSelector):
    r"""A model of several completed tables of the same rows: a feature is in for all of them, or out for all.

    .. math:: \min_W\ \frac1m \sum_{a=1}^m \sum_t F_t\bigl(X_t^{(a)} w_t^{(a)} + b_t^{(a)}\bigr)
              + \frac{\alpha}{\sqrt m} \sum_j \lVert W_j \rVert, \qquad W_j \in \mathbb R^{mT}

    with :math:`X^{(a)}` the a-th imputation of X and F the loss of the model. With equal imputations it is the problem
    of one table, at the same ``alpha``. The answer is certified for the completed tables; what imputation leaves
    unknown is not in the certificate.

    Parameters
    ----------
    model : estimator
        Of one table, with a penalty on the norms of rows of coefficients: `MultiTaskLasso`,
        `MultiTaskLogisticRegression`, `MultiTaskCox`, `MultiTaskGroupLasso`, `MultiTaskOWL`, ..., or its ``...CV``
        sibling, whose folds then keep the imputations of a row together.
    imputer : transformer, optional
        Of scikit-learn: `sklearn.impute.IterativeImputer` with ``sample_posterior=True``, for example. It is cloned for
        each imputation, with a ``random_state`` of its own where it has that parameter. None: `fit_completed` takes
        tables that were completed elsewhere, by mice for example.
    m : int, default=10
        Number of imputations.
    within_tasks : bool, default=True
        Impute the rows of each task by themselves, or all rows together.
    random_state : int, default=0
        Seed of the imputations.

    Attributes
    ----------
    coef_, intercept_
        Means over the imputations (Rubin), in the form of the model's.
    imputed_coef_ : ndarray of shape (m, T, d)
        Coefficients of each imputation; with more than two classes a list of m in the form of ``coef_``.
    tasks_ : ndarray of shape (T,)
    model_ : estimator
        The model of all imputations; its tasks are numbers, t m + a.
    alpha_ : float
        Strength, in the units of one table.
    objective_, dual_gap_ : float
        Of the objective above.
    tables_ : list of m ndarrays of shape (n, d)
        The completed rows.
    imputers_ : list
        Fitted, by imputation and task; empty after `fit_completed`.
    missing_ : ndarray of shape (d,)
        Values of each column that were missing.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X is a data frame.

    Notes
    -----
    The imputer sees X only, since rows to predict have no y. Tables imputed with the outcome (as mice does) are better
    for inference; pass them to `fit_completed`.

    References
    ----------
    Chen and Wang (2013), "Variable selection for multiply-imputed data with application to dioxin exposure study";
    Rubin (1987), "Multiple imputation for nonresponse in surveys".

    See Also
    --------
    FillMissing : one table, filled with means.
    by_pattern : columns that are missing in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> from sklearn.experimental import enable_iterative_imputer
    >>> from sklearn.impute import IterativeImputer
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(2.0, 2.0), n_rows=60)
    >>> X[::7, 1] = np.nan
    >>> imputer = IterativeImputer(sample_posterior=True, max_iter=3)
    >>> model = ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.5), imputer, m=3).fit(X, y, task=task)
    >>> model.imputed_coef_.shape, model.get_support(indices=True)
    ((3, 2, 8), array([0]))
    """

    coef_: Any
    intercept_: Any
    tasks_: Array
    model_: Any
    tables_: list[Array]
    imputers_: list[dict[Any, Any]]

    def __init__(
        self, model: Any, imputer: Any = None, m: int = 10, *, within_tasks: bool = True, random_state: Any = 0
    ) -> None:
        self.model = model
        self.imputer = imputer
        self.m = m
        self.within_tasks = within_tasks
        self.random_state = random_state

    # --- fitting -----------------------------------------------------------------------------------------------------

    @takes_named_tasks
    @described_by(DATA, returns="self")
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Impute, and fit all imputations together."""
        check_number(self.m, "m", low=1, closed=True, integer=True)
        check_switch(self.within_tasks, "within_tasks")
        if self.imputer is None:
            raise ParameterError("imputer", "is None: give one, or tables that are complete to fit_completed")
        if isinstance(self.imputer, type) or not hasattr(self.imputer, "transform"):
            raise ParameterError("imputer", "must be a transformer, KNNImputer() for example", self.imputer)
        rows = _Rows(self.model, X, y, task, sample_weight, groups)
        whole = with_holes(rows.X)
        self.missing_ = np.isnan(whole).sum(axis=0)
        self.imputers_, tables = [], []
        for seed in seeds_of(self.random_state, int(self.m)):
            table, own = self.complete(whole, task=rows.imputed_in, seed=seed)
            self.imputers_.append(own)
            tables.append(table)
        if self.m > 1 and self.missing_.any() and all(np.array_equal(tables[0], other) for other in tables[1:]):
            warn(
                f"All {self.m} imputations are the same: {type(self.imputer).__name__} draws nothing at random, and "
                "the model is that of one table. IterativeImputer(sample_posterior=True) draws.",
            )
        return self._fit(tables, rows, X)

    def complete(self, rows: Array, *, task: Array, seed: int) -> tuple[Array, dict[Any, Any]]:
        """One imputation of some rows, learned from them alone: the completed rows, and the imputers by task.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        task : int ndarray of shape (n,)
        seed : int

        Returns
        -------
        ndarray, dict
        """
        blocks = task if self.within_tasks else np.zeros(len(rows), dtype=np.int64)
        own, table = dict[Any, Any](), np.empty_like(rows)
        for block in np.unique(blocks).tolist():
            some = blocks == block
            own[block] = _seeded(self.imputer, seed).fit(rows[some])
            table[some] = self._completed(own[block], rows[some])
        return table, own

    @described_by(DATA, returns="self")
    def fit_completed(
        self,
        tables: Sequence[Any],
        y: Any = None,
        *,
        task: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit tables that were completed elsewhere.

        Parameters
        ----------
        tables : sequence of m matrices of shape (n, d)
            Imputations of the same rows, in the same order.
        """
        if not len(tables):
            raise ValueError("tables is empty: give one or more completed tables.")
        rows = _Rows(self.model, tables[0], y, task, sample_weight, groups)
        found = [np.asarray(read_matrix(table, f"tables[{a}]"), dtype=np.float64) for a, table in enumerate(tables)]
        for a, table in enumerate(found):
            if table.shape != found[0].shape:
                raise ValueError(f"tables[{a}] has shape {table.shape}, tables[0] has shape {found[0].shape}.")
        self.imputers_, self.missing_ = [], np.zeros(found[0].shape[1], dtype=np.int64)
        return self._fit(found, rows, tables[0])

    def _fit(self, tables: list[Array], rows: _Rows, X: Any) -> Self:
        m = len(tables)
        _refuse_penalty(self.model, tables[0].shape[1], m)
        inner = _for_imputations(self.model, rows.tasks, m)
        options = {"groups": np.tile(rows.groups, m)} if hasattr(inner, "cv") else {}
        weights = None if rows.weights is None else np.tile(rows.weights, m)
        stacked = np.concatenate([table[rows.row] for table in tables])
        codes = np.concatenate([rows.block * m + a for a in range(m)])
        y = np.concatenate([rows.y] * m)
        self._fitted_to = stacked, y, codes, weights
        self.model_ = inner.fit(stacked, y, task=codes, sample_weight=weights, **options)
        self.tables_ = tables
        self._single, self._by_task, self.tasks_ = rows.single, len(np.unique(rows.imputed_in)) > 1, rows.tasks
        self._set_feature_names(tables[0].shape[1], feature_names(X))
        self._states = [_state_of(self.model_, rows.tasks, rows.single, a, m) for a in range(m)]
        coefs, constants = [own.coef for own in self._states], [own.intercept for own in self._states]
        self.coef_, self.intercept_ = _mean(coefs), _mean(constants)
        self.imputed_coef_ = coefs if isinstance(coefs[0], list) or coefs[0].ndim == 3 else np.stack(coefs)
        self.__dict__.pop("classes_", None)
        self.__dict__.pop("thresholds_", None)
        if self._states[0].classes is not None:
            self.classes_ = self._states[0].classes
        if self._states[0].thresholds is not None:
            self.thresholds_ = _mean([own.thresholds for own in self._states])
        self.objective_, self.dual_gap_ = self.model_.objective_ / m, self.model_.dual_gap_ / m
        self.null_objective_ = self.model_.null_objective_ / m if hasattr(self.model_, "null_objective_") else np.nan
        self.alpha_ = float(getattr(self.model_, "alpha_", getattr(self.model_, "alpha", np.nan))) / np.sqrt(m)
        return self

    def certificate(self) -> Any:
        """The proof of the fit, about the completed tables: rows of all imputations stacked, a task for each task and
        imputation.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self, "model_")
        X, y, codes, weights = self._fitted_to
        return self.model_.certificate(X, y, task=codes, sample_weight=weights)

    def refit(self, features: Any = None, *, level: float = 0.9) -> PooledEstimates:
        """Fit features without a penalty to each completed table, and pool by Rubin's rules.

        Parameters
        ----------
        features : sequence of names or numbers, optional
            Features that were named beforehand, or selected on other rows: their intervals are intervals. By default
            those that this fit has selected: then there are estimates, and no intervals, since the same rows have
            chosen them.
        level : float, default=0.9

        Returns
        -------
        PooledEstimates
        """
        check_is_fitted(self, "model_")
        chosen = self._get_support_mask().nonzero()[0] if features is None else self._numbers(features)
        X, y, codes, weights = self._fitted_to
        found = pool(self.model_, (X, y, codes, weights), chosen, self.tasks_, len(self.tables_), level)
        names = getattr(self, "feature_names_in_", None)
        return found.told(names, after_selection=features is None)

    def _numbers(self, features: Any) -> Array:
        names = getattr(self, "feature_names_in_", None)
        known = {} if names is None else {name: j for j, name in enumerate(names.tolist())}
        found = []
        for feature in np.atleast_1d(np.asarray(features, dtype=object)).tolist():
            number = known.get(feature, feature)
            if isinstance(number, str) or not 0 <= number < self.n_features_in_:
                raise ParameterError("features", "names no feature of the fit", feature)
            found.append(int(number))
        return np.unique(found).astype(np.int64)

    # --- answers -----------------------------------------------------------------------------------------------------

    @takes_named_tasks
    @described_by(ROWS)
    def predict(self, X: Any, *, task: Any = None) -> Any:
        """Predict numbers or classes from the mean over the imputations of the linear predictors.

        Missing values of X are completed by each of the imputers. With losses of counts and of positive numbers, it is
        the exponential of that mean.

        Returns
        -------
        ndarray of shape (n,) or (n, T)
        """
        state = self._learned()
        found = state.answers(self._scores(X, task, state), task, False)
        return like(X, self._loss.link(found) if self._targets == "values" else found)

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    @takes_named_tasks
    @described_by(ROWS)
    def predict_proba(self, X: Any, *, task: Any = None) -> Any:
        """Probabilities of the classes, at the mean of the linear predictors.

        Returns
        -------
        ndarray
            In the form of the model's ``predict_proba``.
        """
        state = self._learned()
        return like(X, state.probabilities(self._scores(X, task, state), task))

    @takes_named_tasks
    @described_by(DATA)
    def score(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None) -> float:
        """Mean over tasks of the measure of the model: R², D², accuracy or concordance.

        Returns
        -------
        float
        """
        return float(self._task_score(X, y, task, sample_weight))

    def _scores(self, X: Any, task: Any, state: LinearState | None = None, offset: Any = None) -> Any:
        if is_task_list(X):
            raise ValueError("X is a list of tasks: stack its rows, and give task.")
        self._check_features(X)
        rows = with_holes(X)
        if not np.isnan(rows).any():
            return (state or self._learned()).scores(rows, task)
        if not self.imputers_:
            raise ValueError(
                "X has missing values, and the tables of the fit were completed elsewhere: complete these rows, too."
            )
        block = np.zeros(len(rows), dtype=np.int64)
        if self.within_tasks and self._by_task:
            if task is None:
                raise ValueError("task is needed: missing values are imputed within tasks.")
            place = {label: t for t, label in enumerate(self.tasks_.tolist())}
            labels = row_labels(task, len(rows), "task").tolist()
            block = np.array([place.get(label, -1) for label in labels], dtype=np.int64)
        scores = []
        for own, imputers in zip(self._states, self.imputers_, strict=True):
            completed = np.zeros_like(rows)
            for code in np.unique(block[block >= 0]).tolist():
                some = block == code
                completed[some] = self._completed(imputers[code], rows[some])
            scores.append(own.scores(completed, task))
        return _mean(scores)

    def _completed(self, imputer: Any, rows: Array) -> Array:
        found = np.asarray(imputer.transform(rows), dtype=np.float64)
        if found.shape != rows.shape or np.isnan(found).any():
            raise ValueError(
                f"imputer: {type(imputer).__name__} has made a table of shape {found.shape} of one of shape "
                f"{rows.shape}, or left values missing. Columns without a value in a task are dropped by "
                "scikit-learn's imputers: leave them out, or use by_pattern, or within_tasks=False."
            )
        return found

    def _get_support_mask(self) -> Array:
        check_is_fitted(self, "model_")
        return np.asarray(self.model_._get_support_mask())

    @property
    def _targets(self) -> Any:  # type: ignore[override]
        return self.model._targets

    @property
    def _loss(self) -> Any:
        return self.model._loss

    @property
    def _joint(self) -> bool:  # type: ignore[override]
        return bool(self.model._joint)

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        own = self.model.__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            own.estimator_type, own.classifier_tags, own.regressor_tags,
        )  # fmt: skip
        tags.target_tags, tags.input_tags.allow_nan = own.target_tags, True
        return tags


class _Rows:
    """The rows of a call: stacked, whatever the form.

    - `row`: Of each stacked row its place in X (all targets of one shared matrix have the same rows).
    - `block`: The number of its task.
    - `imputed_in`: Of each row of X that of the task that it is imputed in; a shared matrix is imputed as one.
    """

    def __init__(self, model: Any, X: Any, y: Any, task: Any, sample_weight: Any, groups: Any) -> None:
        check_linear(model, "has no penalty on rows of coefficients; give a linear model such as MultiTaskLasso().")
        column = column_of_tasks(model)
        if column is not None:
            raise ParameterError(
                "model",
                f"reads tasks from column {column!r} of X, all columns of which would be imputed: give it without "
                f"task={column!r}, X without that column, and the tasks apart, fit(X, y, task=...)",
            )
        if is_task_list(X):
            if task is not None:
                raise ValueError("task was given with a list of tasks, whose items are the tasks. Drop task.")
            sizes = [item.shape[0] for item in X]
            task = np.repeat(np.arange(len(X)), sizes)
            y = np.concatenate([np.asarray(own) for own in y])
            if isinstance(sample_weight, list | tuple):
                sample_weight = np.concatenate([np.asarray(own) for own in sample_weight])
            X = np.concatenate([with_holes(item) for item in X])
        self.X = X
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        self.single = False
        if task is None and np.ndim(y) == 2 and np.asarray(y).dtype.names is None and model._targets != "survival":
            Y = np.asarray(y)
            self.tasks = np.arange(Y.shape[1])
            self.row, self.block = np.tile(np.arange(n_rows), Y.shape[1]), np.repeat(self.tasks, n_rows)
            self.y, self.imputed_in = Y.T.ravel(), np.zeros(n_rows, dtype=np.int64)
            weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            spread = weights is None or weights.ndim < 2
            self.weights = (
                None if weights is None else np.tile(weights, Y.shape[1]) if spread else weights.T.ravel()
            )
        else:
            self.single = task is None
            labels = np.zeros(n_rows, dtype=np.int64) if task is None else row_labels(task, n_rows, "task")
            self.tasks, self.block = np.unique(labels, return_inverse=True)
            self.row, self.imputed_in = np.arange(n_rows), self.block
            self.y = y if isinstance(y, np.ndarray) else np.asarray(y)
            self.weights = None if sample_weight is None else np.broadcast_to(sample_weight, n_rows).astype(np.float64)
        if len(self.y) != len(self.row):
            raise ValueError(f"y has {len(self.y)} entries, X has {n_rows} rows.")
        own = np.arange(n_rows) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        self.groups = own[self.row]


def with_holes(X: Any) -> Array:
    """Rows as numbers, NaN where a value is missing."""
    matrix = read_matrix(X, search=False, min_rows=0)
    if not isinstance(matrix, np.ndarray):
        raise ValueError(f"X: imputation needs an array or a data frame, not {type(X).__name__}.")
    return np.array(matrix, dtype=np.float64)


def seeds_of(random_state: Any, count: int) -> list[int]:
    """Seeds of imputations."""
    drawn = np.random.SeedSequence(read_seed(random_state)).generate_state(count)
    return [int(seed % (1 << 31)) for seed in drawn.tolist()]


def _seeded(imputer: Any, seed: int) -> Any:
    found = clone(imputer)
    own = {name: seed for name in found.get_params() if name == "random_state" or name.endswith("__random_state")}
    return found.set_params(**own)


def _for_imputations(model: Any, tasks: Array, m: int) -> Any:
    """The model of all imputations: strengths are those of (1/m) F + (alpha / sqrt(m)) N, and what is said by task is
    said of each imputation of the task."""
    found, given = clone(model), model.get_params(deep=False)
    root, changed = float(np.sqrt(m)), dict[str, Any]()
    if "alpha" in given:
        if not isinstance(given["alpha"], int | float):
            raise ParameterError("alpha", "must be a number where several imputations share it", given["alpha"])
        changed["alpha"] = given["alpha"] * root
    alphas = given.get("alphas")
    if alphas is not None and np.ndim(alphas):
        changed["alphas"] = np.asarray(alphas, dtype=np.float64) * root
    place = {label: t for t, label in enumerate(tasks.tolist())}
    for name in ("task_weights", "losses", "loss_weights"):
        own = given.get(name)
        if isinstance(own, Mapping):
            changed[name] = {place[label] * m + a: deepcopy(one) for label, one in own.items() for a in range(m)}
        elif own is not None and not isinstance(own, str):
            changed[name] = np.repeat(np.asarray(own), m)
    if given.get("task_graph") is not None:
        changed["task_graph"] = np.kron(read_task_graph(given["task_graph"], tasks), np.eye(m))
    if "task" in given:
        changed["task"] = None
    return found.set_params(**changed)


def _refuse_penalty(model: Any, n_features: int, m: int) -> None:
    """Refuse penalties of which m equal copies do not cost sqrt(m) times one: their alpha would mean something else."""
    own = path_model(model, "MultipleImputation")
    described = own._penalty()
    penalty = described.get("penalty")
    fits = not described.get("ridge_ratio")
    if penalty is not None:
        rows = np.random.default_rng(0).standard_normal((n_features, 1))
        one, copies = (penalty.on(np.ones(n_features), count).value(np.repeat(rows, count, axis=1)) for count in (1, m))
        fits &= bool(abs(copies - np.sqrt(m) * one) <= 1e-9 * copies)
    if not fits:
        raise ValueError(
            f"model: the penalty of {type(model).__name__} is not made of norms of rows alone, so that alpha would "
            "change its meaning with the number of imputations. Give a model with the L2,1 norm, with groups of "
            "features, or with sorted norms (MultiTaskRegressor(ridge=...) for a ridge beside it)."
        )


def _state_of(model: Any, tasks: Array, single: bool, a: int, m: int) -> LinearState:
    """What imputation a says of the tasks."""
    whole = model._learned()
    firsts = np.concatenate([[0], np.cumsum(whole.class_counts)])
    codes = np.asarray(whole.tasks).tolist()
    places = [codes.index(t * m + a) for t in range(len(tasks))]
    rows, constants = whole.rows, whole.constants
    blocks = [rows[firsts[k] : firsts[k + 1]] for k in places]
    numbers = [constants[firsts[k] : firsts[k + 1]] for k in places]
    coef: Any = blocks
    intercept: Any = numbers
    if not isinstance(whole.coef, list):
        several = whole.coef.ndim == 3
        coef = np.stack(blocks, axis=1) if several else np.concatenate(blocks)
        intercept = np.stack(numbers, axis=1) if several else np.concatenate(numbers)
    classes, thresholds = whole.classes, whole.thresholds
    if isinstance(classes, list):
        classes = [classes[k] for k in places]
    if thresholds is not None:
        thresholds = [thresholds[k] for k in places]
        thresholds = thresholds if isinstance(whole.thresholds, list) else np.stack(thresholds)
    owner = "MultipleImputation"
    return LinearState(coef, intercept, tasks, classes, single, owner, whole.joint, False, None, thresholds)


def _mean(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [np.mean([own[t] for own in parts], axis=0) for t in range(len(parts[0]))]
    return np.mean(parts, axis=0)
