"""Grading: what can be proved about coefficients that any program has produced."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ..complex_numbers import refuse_complex
from ..fitted.arguments import check_number
from ..losses import Cox, Loss, Mixed, Ordinal, as_loss
from ..messages import value_error
from ..penalties import RowPenalty
from ..proof.certificate import Certificate
from ..proof.claims import certify
from ..tasks.named import pattern_rows
from .certified import Statement
from .classifier import MultiTaskClassifier
from .cox import MultiTaskCox
from .generic import MultiTaskRegressor
from .mixed import MultiTaskMixed
from .ordinal import MultiTaskOrdinal

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grade:
    r"""What is proved about given coefficients.

    .. math:: P(W, b) - \min P \le \texttt{dual\_gap}

    Made by `grade`.

    Attributes
    ----------
    objective : float
        P at the coefficients.
    dual_gap : float
        They are at most so much above the optimum: a proof, however they were computed.
    relative_gap : float
        ``dual_gap`` / the objective at zero coefficients with the best intercepts.
    best_objective : float or None
        Of our own solution; None if ``solve=False``.
    excess : float or None
        How far our solution is below theirs: ``objective - best_objective``.
    proven_zero, proven_nonzero : bool ndarrays of shape (d,)
        Features that are zero in every solution, and in none, by whichever of the two pairs of points proves it.
    wrong_zero, wrong_nonzero : bool ndarrays of shape (d,)
        Their zeros that are not zero in any solution; their non-zeros that are zero in every solution.
    selected : bool ndarray of shape (d,)
        Their non-zeros.
    certificate : Certificate
        The proof, for others to check.
    feature_names : ndarray of str or None
    """

    objective: float
    dual_gap: float
    relative_gap: float
    best_objective: float | None
    excess: float | None
    proven_zero: Array
    proven_nonzero: Array
    wrong_zero: Array
    wrong_nonzero: Array
    selected: Array
    certificate: Certificate
    feature_names: Array | None = None

    def summary(self) -> str:
        """The same in a few lines of words."""
        zero = ~self.selected
        lines = [
            f"objective {self.objective:.10g}, proved to be at most {self.dual_gap:.3g} above the optimum "
            f"({self.relative_gap:.2g} of the objective at zero)",
        ]
        if self.excess is not None:
            lines.append(f"our solution is lower by {self.excess:.3g}")
        right = int(np.sum(self.selected & self.proven_nonzero)), int(np.sum(zero & self.proven_zero))
        lines += [
            f"{int(self.selected.sum())} features are not zero: {right[0]} provably right, "
            f"{int(self.wrong_nonzero.sum())} provably wrong{self._named(self.wrong_nonzero)}",
            f"{int(zero.sum())} features are zero: {right[1]} provably right, "
            f"{int(self.wrong_zero.sum())} provably wrong{self._named(self.wrong_zero)}",
        ]
        return "\n".join(lines)

    def _named(self, which: Array) -> str:
        positions = np.flatnonzero(which)
        if not len(positions):
            return ""
        names = [str(j) if self.feature_names is None else str(self.feature_names[j]) for j in positions[:5]]
        return f" ({', '.join(names)}{', ...' if len(positions) > 5 else ''})"


def grade(
    coef: Any,
    intercept: Any,
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    loss: str | Loss = "squared",
    penalty: str | RowPenalty = "l21",
    alpha: float,
    ridge: float = 0.0,
    offset: Any = None,
    fit_intercept: bool = True,
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
) -> Grade:
    r"""Grade coefficients that any program has produced: how far from the optimum, which zeros are right.

    .. math::

        P(W, b) = \frac1{\bar n} \sum_i s_i\, f(y_i, x_i \cdot w_{t(i)} + b_{t(i)} + o_i) + \alpha\, \Omega(W)
        + \frac{\rho}{2} \lVert W \rVert_F^2

    with :math:`\bar n` the mean number of rows of a task, the objective of `MultiTaskRegressor` and
    `MultiTaskClassifier`. A dual point proves that nothing is lower than so much; it comes from their coefficients
    and, unless ``solve=False``, from our own solution, whichever is better.

    Parameters
    ----------
    coef : array or sparse matrix of shape (T, d), or (d,) for one task
        In the order of the sorted task labels. More than two classes: as ``coef_`` of `MultiTaskClassifier`.
    intercept : array of shape (T,), float, or None
        None: zero.
    X, y, task, sample_weight, offset
        The data, in any form that `MultiTaskRegressor.fit` takes.
    loss : str or Loss, default="squared"
        "squared", "huber", "quantile", "expectile", "log_cosh", "poisson", "negative_binomial", "gamma", "tweedie",
        "square-root", "logistic", "squared_hinge", "smoothed_hinge", also with options, "huber:delta=0.5"; "cox", with
        y as `MultiTaskCox` takes it; "ordinal", with `thresholds`.
    penalty : str or RowPenalty, default="l21"
        "l21", "l11", "sparse_group", "linf", "dirty", "owl", or one of `tasksieve.penalties`.
    alpha : float
        Strength of the penalty.
    ridge : float, default=0.0
        :math:`\rho`
    fit_intercept, standardize, positive, feature_weights, task_weights, class_weight, task_graph, graph_strength
        As in `MultiTaskRegressor` and `MultiTaskClassifier`. Cox's loss has no intercept.
    thresholds : array of shape (T, K - 1), optional
        Of loss="ordinal": as ``thresholds_`` of `MultiTaskOrdinal`.
    solve : bool, default=True
        Also solve the problem: for a better dual point, and to say how far our solution is below theirs.
    tol : float, default=1e-9
        Of that solution, relative to the objective at zero.

    Returns
    -------
    Grade

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
    """
    check_number(alpha, "alpha", low=0, closed=False)
    check_number(tol, "tol", low=0, closed=False)
    options: dict[str, Any] = {
        "alpha": float(alpha), "ridge": ridge, "fit_intercept": fit_intercept, "standardize": standardize,
        "positive": positive, "feature_weights": feature_weights, "task_weights": task_weights,
        "task_graph": task_graph, "graph_strength": graph_strength, "tol": tol,
    }  # fmt: skip
    stated = as_loss(loss)
    classes = stated.of_classes()
    if class_weight is not None and not classes:
        raise value_error("{class_weight} is for losses of classes; this one is of numbers.")
    model: Any
    if isinstance(stated, Cox):
        del options["fit_intercept"]
        model = MultiTaskCox(ties=stated.ties, penalty=penalty, **options)
    elif isinstance(stated, Ordinal):
        del options["fit_intercept"]
        model = MultiTaskOrdinal(penalty=penalty, class_weight=class_weight, **options)
    elif isinstance(stated, Mixed):
        weights = list(stated.weights)
        model = MultiTaskMixed(list(stated.losses), penalty, loss_weights=weights, target_scales=1, **options)
    elif classes:
        model = MultiTaskClassifier(loss, penalty, class_weight=class_weight, **options)
    else:
        model = MultiTaskRegressor(loss, penalty, **options)
    model._check_parameters()
    X, task = pattern_rows(X, task)
    statement = Statement(model, X, y, task, sample_weight, offset)
    rows, constants = _read(coef, intercept, statement, fit_intercept, positive)
    features = np.flatnonzero(rows.any(axis=1))
    steps = _read_thresholds(thresholds, constants, statement)
    answers = [statement.answer(float(alpha), features, rows[features], constants, thresholds=steps)]
    best = None
    if solve:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            point = model._solve(statement.data, statement.problem, np.array([float(alpha)])).points[0]
        best = statement.answer(
            float(alpha), point.features, point.rows, point.intercept, thresholds=point.thresholds
        )
        answers.append(best)
        answers[0].goal = 0.0  # theirs with our dual point as well
    ours = [] if best is None else [best.dual]
    header = {**statement.header(), "about": {"graded_by": "tasksieve"}}
    with warnings.catch_warnings():
        # The coefficients claim no gap that the certificate could fall short of.
        warnings.filterwarnings("ignore", message=".*the certificate proves a gap of")
        proof = certify(header, statement.arrays, statement.tasks, answers, lambda k: iter(ours))
    zero, nonzero = proof.proven_zero(0), proof.proven_nonzero(0)
    for value in range(1, len(answers)):
        zero, nonzero = zero | proof.proven_zero(value), nonzero | proof.proven_nonzero(value)
    selected = np.asarray(rows.any(axis=1))
    problem = statement.problem
    null = float(np.ldexp(problem.loss.null.value, problem.units.f)) / model._unit(statement.data)
    found, gap = float(proof.objectives[0]), float(proof.gaps[0])
    lowest = None if best is None else float(proof.objectives[1])
    return Grade(
        objective=found,
        dual_gap=gap,
        relative_gap=gap / null if null > 0.0 else gap,
        best_objective=lowest,
        excess=None if lowest is None else found - lowest,
        proven_zero=zero,
        proven_nonzero=nonzero,
        wrong_zero=nonzero & ~selected,
        wrong_nonzero=zero & selected,
        selected=selected,
        certificate=proof,
        feature_names=getattr(X, "columns", None) if not isinstance(X, list) else None,
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
