"""Grading: what can be proved about coefficients that any program has produced."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
import scipy.sparse

from ..complex_numbers import refuse_complex
from ..fitted.arguments import check_number
from ..foreign import GivenData, StatedProblem, fitted_elsewhere, stated_by
from ..losses import Cox, Loss, Mixed, Ordinal, as_loss
from ..losses.base import null_value
from ..messages import value_error
from ..penalties import RowPenalty
from ..proof.claims import ClaimedSolution, certify
from ..tasks.named import pattern_rows
from .certified import Statement
from .classifier import MultiTaskClassifier
from .cox import MultiTaskCox
from .generic import MultiTaskRegressor
from .graded import Grade, GradedCase, GradePath
from .mixed import MultiTaskMixed
from .ordinal import MultiTaskOrdinal

Array = np.ndarray[Any, Any]


class _Options(TypedDict, total=False):
    """What `grade` takes beside data and strength, for type checkers."""

    loss: str | Loss
    penalty: str | RowPenalty
    ridge: float
    offset: Any
    fit_intercept: bool | Literal["given"]
    standardize: bool
    positive: bool
    feature_weights: Any
    task_weights: Any
    class_weight: Any
    thresholds: Any
    task_graph: Any
    graph_strength: float
    solve: bool
    tol: float


@overload
def grade(
    coef: Any,
    intercept: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    alpha: float,
    **options: Unpack[_Options],
) -> Grade: ...


@overload
def grade(
    coef: Any,
    intercept: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    alpha: Sequence[float] | Array,
    **options: Unpack[_Options],
) -> GradePath: ...


@overload
def grade(
    coef: Any,
    intercept: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    problem: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    offset: Any = None,
    solve: bool = True,
    tol: float = 1e-9,
) -> Any: ...


def grade(
    coef: Any,
    intercept: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    problem: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    loss: str | Loss = "squared",
    penalty: str | RowPenalty = "l21",
    alpha: float | Sequence[float] | Array | None = None,
    ridge: float = 0.0,
    offset: Any = None,
    fit_intercept: bool | Literal["given"] = True,
    standardize: bool = False,
    positive: bool = False,
    feature_weights: Any = None,
    task_weights: Any = None,
    class_weight: Any = None,
    thresholds: Any = None,
    task_graph: Any = None,
    graph_strength: float = 1.0,
    solve: bool = True,
    tol: float = 1e-9,
) -> Grade | GradePath:
    r"""Grade coefficients that any program has produced: how far from the optimum, which zeros are right.

    .. math::

        P(W, b) = \frac1{\bar n} \sum_i s_i\, f(y_i, x_i \cdot w_{t(i)} + b_{t(i)} + o_i) + \alpha\, \Omega(W)
        + \frac{\rho}{2} \lVert W \rVert_F^2

    with :math:`\bar n` the mean number of rows of a task, the objective of `MultiTaskRegressor` and
    `MultiTaskClassifier`. A dual point proves that nothing is lower than so much; it comes from their coefficients
    and, unless ``solve=False``, from our own solution, whichever is better.

    Parameters
    ----------
    coef : array or sparse matrix of shape (T, d), or (d,) for one task; or a fitted estimator
        In the order of the sorted task labels. More than two classes: as ``coef_`` of `MultiTaskClassifier`. Of a path
        (K, T, d) or (K, d), with K strengths. A fitted estimator of scikit-learn, celer, skglm, skein-glm or
        scikit-survival is read by its attributes: ``grade(estimator, X, y)``.
    intercept : array of shape (T,), float, or None
        None: zero. Of a path with K entries.
    X, y, task, sample_weight, offset
        The data, in any form that `MultiTaskRegressor.fit` takes.
    problem : str, optional
        The program that has stated the problem, in place of our own words below: "glmnet", "glmstar", "sklearn",
        "scikit-survival", "skglm", "celer", "skein-glm", "adelie", "lifelines", "statsmodels" or "pyspark". y has our
        form: labels of classes, `survival`.
    parameters : dict, optional
        With `problem`: that program's own parameters under its names, ``{"family": "binomial", "lambda": 0.1}``,
        ``{"estimator": "Lasso", "alpha": 0.1}``; several strengths are those of a path. What changes only how it
        computes (tolerances, numbers of steps) may be among them; what is not known is refused.
    loss : str or Loss, default="squared"
        "squared", "huber", "quantile", "expectile", "log_cosh", "poisson", "negative_binomial", "gamma", "tweedie",
        "square-root", "logistic", "squared_hinge", "smoothed_hinge", also with options, "huber:delta=0.5"; "cox", with
        y as `MultiTaskCox` takes it; "ordinal", with `thresholds`.
    penalty : str or RowPenalty, default="l21"
        "l21", "l11", "sparse_group", "linf", "dirty", "owl", or one of `tasksieve.penalties`.
    alpha : float, or array of shape (K,)
        Strength of the penalty; several are those of a path, which is solved and proved in shared readings of X.
    ridge : float, default=0.0
        :math:`\rho`
    fit_intercept : bool or "given", default=True
        "given": the intercepts are held at their values, and only the coefficients are judged.
    standardize, positive, feature_weights, task_weights, class_weight, task_graph, graph_strength
        As in `MultiTaskRegressor` and `MultiTaskClassifier`. Cox's loss has no intercept.
    thresholds : array of shape (T, K - 1), optional
        Of loss="ordinal": as ``thresholds_`` of `MultiTaskOrdinal`.
    solve : bool, default=True
        Also solve the problem: for a better dual point, and to say how far our solution is below theirs.
    tol : float, default=1e-9
        Of that solution, relative to the objective at zero.

    Returns
    -------
    Grade, or GradePath where there are several strengths

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> from sklearn.linear_model import MultiTaskLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 100))
    >>> Y = X[:, :3] @ rng.standard_normal((3, 4)) + 0.5 * rng.standard_normal((50, 4))
    >>> theirs = MultiTaskLasso(alpha=0.1).fit(X, Y)
    >>> found = ts.grade(theirs.coef_, theirs.intercept_, X, Y, alpha=0.1)
    >>> 0.0 < found.excess <= found.dual_gap < 1e-2
    True
    >>> int(found.proven_zero.sum()) > 50, int(found.wrong_zero.sum())
    (True, 0)
    >>> ts.grade(theirs, X, Y).dual_gap == found.dual_gap
    True
    >>> found.polish().relative_gap < 1e-9
    True
    """
    if isinstance(coef, str | Path):
        raise ValueError(
            f"coef is the name of a file, {str(coef)!r}: files of objects (.pkl, .joblib, .rds) are not opened, since "
            "reading them may run what is in them. Give coefficients as an array, or as CSV to `tasksieve grade`."
        )
    model = fitted_elsewhere(coef)
    if model is not None:
        given = [part for part in (intercept, X, y) if part is not None]
        if problem is not None or parameters is not None or len(given) != 2:
            raise ValueError("A fitted model is graded as grade(model, X, y): it says itself what its problem is.")
        X, y = given
        coef, intercept, problem, parameters = model.coef, model.intercept, model.problem, model.parameters
    if X is None or y is None:
        raise ValueError("X and y are needed: the data that the coefficients were fitted to.")
    check_number(tol, "tol", low=0, closed=False)
    stated = None
    options: dict[str, Any] = {
        "loss": loss, "penalty": penalty, "ridge": ridge, "fit_intercept": fit_intercept, "standardize": standardize,
        "positive": positive, "feature_weights": feature_weights, "task_weights": task_weights,
        "class_weight": class_weight, "task_graph": task_graph, "graph_strength": graph_strength,
    }  # fmt: skip
    if problem is not None:
        other = [name for name, value in _UNSTATED.items() if not _stands(options[name], value)]
        if alpha is not None or task is not None or other:
            raise ValueError(
                "A problem in the words of another program has its own loss, penalty, strength and options, and no "
                "tasks: give them as parameters of that program."
            )
        coef = _array(coef)
        stated, X, coef, intercept = _stated(problem, parameters, coef, intercept, X, y, sample_weight, offset)
        options |= {"loss": "squared", **stated.options}
        alpha = stated.alphas
    strengths = _strengths(alpha)
    single = strengths.ndim == 0
    if not single and len(coef) != len(strengths):
        raise ValueError(f"coef holds {len(coef)} values of a path, but there are {len(strengths)} strengths.")
    X, task = pattern_rows(X, task)
    held = options["fit_intercept"] == "given"
    if held:
        options["fit_intercept"] = False
        if not single:
            raise ValueError("Held intercepts are for one value: those of each value of a path make another problem.")
        offset, intercept = _held(intercept, offset, X, y, task), None
    case = _Case(options, tol, (X, y, task, sample_weight, offset), stated)
    points = [(coef, intercept, thresholds)]
    if not single:
        points = [(coef[k], _each(intercept, k), _each(thresholds, k)) for k in range(len(strengths))]
    grades = case.graded(np.atleast_1d(strengths), points, solve, problem)
    return grades[0] if single else GradePath(grades, grades[0].certificate)


#: what grade's own words must be where another program's are given
_UNSTATED: dict[str, Any] = {
    "loss": "squared", "penalty": "l21", "ridge": 0.0, "fit_intercept": True, "standardize": False, "positive": False,
    "feature_weights": None, "task_weights": None, "class_weight": None, "task_graph": None, "graph_strength": 1.0,
}  # fmt: skip


def _stands(given: Any, usual: Any) -> bool:
    """Whether an option is as it is by default."""
    return given is usual or (np.isscalar(given) and bool(given == usual))


def _array(coef: Any) -> Array:
    refuse_complex(coef, "coef")
    if scipy.sparse.issparse(coef):
        coef = coef.toarray()
    return np.asarray(coef, dtype=np.float64)


def _strengths(alpha: Any) -> Array:
    if alpha is None:
        raise ValueError("alpha is needed: the strength of the penalty (or several, those of a path).")
    if np.ndim(alpha) == 0:
        alpha = alpha.item() if isinstance(alpha, np.ndarray) else alpha
        check_number(alpha, "alpha", low=0, closed=False)
        return np.asarray(float(alpha))
    found = np.asarray(alpha, dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise ValueError(f"alpha must be a number, or several of shape (K,); got the shape {found.shape}.")
    for value in found.tolist():
        check_number(value, "alpha", low=0, closed=False)
    return found


def _each(values: Any, k: int) -> Any:
    """What belongs to a value of a path: nothing, or entry k."""
    return None if values is None else values[k]


def _stated(
    problem: str,
    parameters: Mapping[str, Any] | None,
    coef: Array,
    intercept: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any,
) -> tuple[StatedProblem, Any, Array, Any]:
    """The problem of another program in our words, with X, coefficients and intercepts of ours."""
    if isinstance(X, list | tuple | dict):
        raise ValueError("A problem of another program is for one matrix X: these know no tasks but columns of y.")
    width = X.shape[1] if len(getattr(X, "shape", ())) == 2 else np.asarray(X).shape[1]
    if coef.ndim == 0 or coef.shape[-1] != width:
        raise ValueError(
            f"coef has shape {coef.shape}, but X has {width} features: they are along its last axis (transpose what "
            "has a row for each feature)."
        )
    data = GivenData(X, y, int(width), sample_weight, offset, is_path=coef.ndim > 1)
    stated = stated_by(problem, parameters, data)
    if stated.alphas.ndim and coef.ndim < 2:
        raise ValueError("parameters give several strengths: a path has coef of shape (K, ...), one row for each.")
    constants = np.zeros(coef.shape[:-1]) if intercept is None else np.asarray(intercept, dtype=np.float64)
    if stated.constant is not None and constants.size == int(np.prod(coef.shape[:-1])):
        constants = constants.reshape(coef.shape[:-1])
    coef, constants = stated.inward(coef, constants)
    return stated, stated.design(data), coef, None if intercept is None else constants


def _held(intercept: Any, offset: Any, X: Any, y: Any, task: Any) -> Any:
    """An offset, in the form of y, that holds intercepts at given values."""
    if intercept is None:
        return offset
    values = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    if values.ndim != 1:
        raise ValueError("Held intercepts are one of each task, not those of several classes.")
    if isinstance(y, list | tuple) and len(y) and np.ndim(y[0]):
        known = [0.0] * len(y) if offset is None or np.ndim(offset) == 0 else offset
        beside = offset if offset is not None and np.ndim(offset) == 0 else 0.0
        each = zip(y, np.broadcast_to(values, (len(y),)), known, strict=True)
        return [b + np.zeros(np.shape(part)) + np.asarray(own) + beside for part, b, own in each]
    shape = np.shape(y)
    beside = 0.0 if offset is None else np.asarray(offset, dtype=np.float64)
    if len(shape) == 2:
        return np.broadcast_to(values, (shape[1],)) + np.zeros(shape) + beside
    if task is None:
        return values[0] + np.zeros(shape) + beside
    labels, codes = np.unique(np.asarray(task), return_inverse=True)
    return np.broadcast_to(values, (len(labels),))[codes] + beside


def _model_of(options: dict[str, Any], tol: float, ridge_ratio: float) -> Any:
    """The model whose problem it is, without a strength."""
    given = {**options, "alpha": 1.0, "tol": tol}
    loss, penalty, class_weight = (given.pop(name) for name in ("loss", "penalty", "class_weight"))
    stated = as_loss(loss)
    classes = stated.of_classes()
    if class_weight is not None and not classes:
        raise value_error("{class_weight} is for losses of classes; this one is of numbers.")
    model: Any
    if isinstance(stated, Cox):
        del given["fit_intercept"]
        model = MultiTaskCox(ties=stated.ties, penalty=penalty, **given)
    elif isinstance(stated, Ordinal):
        del given["fit_intercept"]
        model = MultiTaskOrdinal(penalty=penalty, class_weight=class_weight, **given)
    elif isinstance(stated, Mixed):
        weights = list(stated.weights)
        model = MultiTaskMixed(list(stated.losses), penalty, loss_weights=weights, target_scales=1, **given)
    elif classes:
        model = MultiTaskClassifier(loss, penalty, class_weight=class_weight, **given)
    else:
        model = MultiTaskRegressor(loss, penalty, **given)
    model._check_parameters()
    if ridge_ratio:
        model._ridge_ratio = ridge_ratio
    return model


class _Case:
    """A problem on data, with any coefficients."""

    def __init__(
        self, options: dict[str, Any], tol: float, given: tuple[Any, ...], stated: StatedProblem | None
    ) -> None:
        self.stated, self.given, self.options = stated, given, options
        self.model = _model_of(options, tol, 0.0 if stated is None else stated.ridge_ratio)
        self.statement = Statement(self.model, *given)

    def graded(
        self, alphas: Array, points: Sequence[tuple[Any, Any, Any]], solve: bool, problem: str | None
    ) -> list[Grade]:
        """The grades of coefficients, intercepts and thresholds at some strengths."""
        statement, model, K = self.statement, self.model, len(alphas)
        positive, intercept = self.options["positive"], self.options["fit_intercept"]
        answers, inside = [], []
        for alpha, (coef, constants, thresholds) in zip(alphas.tolist(), points, strict=True):
            rows, constants = _read(coef, constants, statement, intercept, positive)
            features = np.flatnonzero(rows.any(axis=1))
            steps = _read_thresholds(thresholds, constants, statement)
            answers.append(statement.answer(alpha, features, rows[features], constants, thresholds=steps))
            inside.append(rows)
        if solve:
            for k, own in enumerate(self._solved(alphas)):
                answers[k].beside = K + k
                answers.append(own)
        header = statement.header()
        header["about"] = {"graded_by": "tasksieve", **({} if problem is None else {"problem": problem})}
        with warnings.catch_warnings():
            # The coefficients claim no gap that the certificate could fall short of.
            warnings.filterwarnings("ignore", message=".*the certificate proves a gap of")
            proof = certify(header, statement.arrays, statement.tasks, answers, lambda k: iter(()))
        null = float(np.ldexp(null_value(statement.problem.loss), statement.problem.units.f))
        null /= model._unit(statement.data)
        shape = np.shape(points[0][0]) if not isinstance(points[0][0], list) else None
        case = GradedCase(
            model, self.given, alphas, np.array(inside), lambda *found: self._outward(shape, *found), null
        )
        return [self._grade(k, proof, case, inside[k], solve) for k in range(K)]

    def _solved(self, alphas: Array) -> list[ClaimedSolution]:
        """Our own answers, in the order of the strengths."""
        order = np.argsort(-alphas, kind="stable")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            points = self.model._solve(self.statement.data, self.statement.problem, alphas[order]).points
        found: dict[int, ClaimedSolution] = {}
        unit = self.model._unit(self.statement.data)
        for k, point in zip(order.tolist(), points, strict=True):
            found[k] = self.statement.answer(
                float(alphas[k]),
                point.features,
                point.rows,
                point.intercept,
                float(point.dual_gap) / unit,
                thresholds=point.thresholds,
            )
        return [found[k] for k in range(len(alphas))]

    def _outward(self, shape: Any, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Coefficients of the model in the form and units of those given."""
        if shape is not None and not isinstance(coef, list):
            coef = np.reshape(coef, shape)
            intercept = np.reshape(intercept, shape[:-1])
        return (coef, intercept) if self.stated is None else self.stated.outward(coef, intercept)

    def _grade(self, k: int, proof: Any, case: GradedCase, rows: Array, solve: bool) -> Grade:
        """What the certificate says about one value."""
        K = len(case.alphas)
        zero, nonzero = proof.proven_zero(k), proof.proven_nonzero(k)
        if solve:
            zero, nonzero = zero | proof.proven_zero(K + k), nonzero | proof.proven_nonzero(K + k)
        selected = np.asarray(rows.any(axis=1))
        if self.stated is not None and self.stated.constant is not None:
            zero, nonzero, selected = zero[:-1], nonzero[:-1], selected[:-1]
        objective, gap = float(proof.objectives[k]), float(proof.gaps[k])
        lowest = float(proof.objectives[K + k]) if solve else None
        X = self.given[0]
        return Grade(
            objective=objective,
            dual_gap=gap,
            relative_gap=gap / case.null if case.null > 0.0 else gap,
            best_objective=lowest,
            excess=None if lowest is None else objective - lowest,
            proven_zero=zero,
            proven_nonzero=nonzero,
            wrong_zero=nonzero & ~selected,
            wrong_nonzero=zero & selected,
            selected=selected,
            certificate=proof,
            feature_names=getattr(X, "columns", None) if not isinstance(X, list) else None,
            null_objective=case.null,
            value=k,
            alpha=float(case.alphas[k]),
            note="" if self.stated is None else self.stated.note,
            _case=case,
        )


def _read_thresholds(thresholds: Any, constants: Array, statement: Statement) -> Array | None:
    """Thresholds between ordered classes as a solution has them, (K - 1, T); None where classes have no order."""
    data = statement.data
    if not data.ordered:
        if thresholds is not None:
            raise ValueError("thresholds are for the ordinal loss.")
        return None
    if constants.any():
        raise ValueError("intercept must be 0 (or None) with the ordinal loss: the thresholds take up any constant.")
    count = len(data.classes_of(0)) - 1
    steps = None if thresholds is None else np.atleast_2d(np.asarray(thresholds, dtype=np.float64))
    if steps is None or steps.shape != (data.n_tasks, count):
        raise ValueError(
            f"thresholds must have the shape {(data.n_tasks, count)}: a row for each task, between the {count + 1} "
            f"classes; got {None if steps is None else steps.shape}."
        )
    if np.isnan(steps).any() or np.any(steps[:, 1:] < steps[:, :-1]):
        raise ValueError("thresholds must not fall within a task, and none may be NaN.")
    return steps.T


def _read(coef: Any, intercept: Any, statement: Statement, fit_intercept: bool, positive: bool) -> tuple[Array, Array]:
    """Rows of coefficients (d, Q) and intercepts (Q,), task after task."""
    data, outputs = statement.data, statement.problem.design.n_tasks
    refuse_complex(coef, "coef")
    refuse_complex(intercept, "intercept")
    if scipy.sparse.issparse(coef):
        coef = coef.toarray()
    if isinstance(coef, list) and len(coef) and np.ndim(coef[0]) == 2:  # of tasks with classes of their own
        coef = np.concatenate([np.asarray(own, dtype=np.float64) for own in coef])
        intercept = None if intercept is None else np.concatenate([np.ravel(own) for own in intercept])
    rows = np.asarray(coef, dtype=np.float64)
    constants = np.zeros(outputs) if intercept is None else np.asarray(intercept, dtype=np.float64)
    if rows.ndim == 3:  # class after class
        rows = rows.swapaxes(0, 1).reshape(-1, rows.shape[-1])
        constants = constants.T.ravel() if constants.ndim == 2 else constants
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.shape != (outputs, data.n_features):
        names = ", ".join(repr(label) for label in data.tasks.tolist()[:5]) + ", ..." * (data.n_tasks > 5)
        raise ValueError(
            f"coef has shape {np.shape(coef)}, but there are {outputs} rows of coefficients (tasks {names}) and "
            f"{data.n_features} features: shape {(outputs, data.n_features)}."
        )
    constants = np.full(outputs, float(constants)) if constants.ndim == 0 else constants.ravel()
    if constants.shape != (outputs,):
        raise ValueError(f"intercept has {len(constants)} entries, but there are {outputs} rows of coefficients.")
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise ValueError(f"coef[{bad[0][0]}, {bad[0][1]}] is {rows[tuple(bad[0])]}: coefficients must be finite.")
    if not np.isfinite(constants).all():
        raise ValueError(f"intercept[{int(np.argmin(np.isfinite(constants)))}] is not finite.")
    if positive and (rows < 0.0).any():
        t, j = np.argwhere(rows < 0.0)[0]
        found = f"coef[{t}, {j}] is {rows[t, j]:g}"
        raise value_error("{found}, but {positive=} allows none below 0.", found=found, positive=True)
    if not fit_intercept and constants.any():
        raise value_error("intercept must be 0 (or None) with {fit_intercept=}.", fit_intercept=False)
    return np.ascontiguousarray(rows.T), constants
