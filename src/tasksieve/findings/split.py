"""Select on one half of the rows, estimate on the other: intervals and tests that are honest after selection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.stats import chi2, norm
from scipy.stats import t as student
from sklearn.base import clone

from ..docstrings import described_by
from ..fitted.arguments import check_choice, check_level, feature_names
from ..fitted.documented import DATA
from ..fitted.new_rows import RowArguments
from ..losses import Loss, RowLoss
from ..messages import either, setting, value_error
from ..tasks import TaskData, placed
from ..tasks.named import takes_named_tasks
from .columns import Estimates
from .halves import Halves, SmallTasks, draw_halves
from .path_model import check_linear
from .refit import fit_support
from .unpenalised import TaskFit

Array = np.ndarray[Any, Any]

_RANK = 1e-10  # singular values below this part of the largest are none
_LEAST_P = 1e-300


@dataclass(frozen=True, repr=False)
class SplitInference(Estimates):
    """What `split_inference` has found: columns of a table with a row for each selected coefficient.

    Attributes
    ----------
    feature : array
        Its name, or its number.
    task : array
    estimate, std_error, lower, upper, pvalue : arrays of float
        Of the coefficient, in the units of X and y.
    row_pvalue : array of float
        Of the feature in all tasks together: the sum of the tasks' squared normal scores against chi-squared with as
        many degrees of freedom (if tasks share rows or groups: by its first two moments, estimated).
    level : float
        Of the intervals.
    halves : str
        How the rows were halved.
    """

    row_pvalue: Array
    level: float
    halves: str

    _beside: ClassVar[tuple[str, ...]] = ("level", "halves")

    def __repr__(self) -> str:
        return f"SplitInference({self._counted()}, level={self.level:g})"

    def summary(self) -> str:
        """The finding in plain words."""
        if not len(self):
            return "Nothing was selected on the one half of the rows: there is nothing to estimate on the other."
        features, first = np.unique(self.feature, return_index=True)
        clear = int(np.count_nonzero(self.row_pvalue[first] * len(features) <= 0.05))
        return (
            f"{len(features)} feature(s) were selected on one half of the rows. On the other half, which did not "
            f"select them, {clear} of these matter in some task (p <= 0.05 after Bonferroni's correction). "
            f"Intervals cover the coefficients of these features with a probability of about {self.level:.0%} each."
        )


@takes_named_tasks
@described_by(DATA)
def split_inference(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    level: float = 0.9,
    random_state: Any = 0,
    sample_weight: Any = None,
    offset: Any = None,
    groups: Any = None,
    small_tasks: SmallTasks = "error",
) -> SplitInference:
    r"""Intervals and tests for the features that a model selects, from rows that did not select them.

    The rows are halved within tasks. The model is fitted to one half (a ``...CV`` model chooses its alpha there), and
    on the other half each task is fitted without a penalty on the features S that it has selected,

    .. math::

        \min_{w, b}\ \sum_i s_i f(y_i, x_{iS} \cdot w + b + o_i),

    with f the loss of the model: least squares, Huber's, the log-cosh or the expectile loss, logistic, Poisson,
    negative binomial, gamma or Tweedie regression. Standard errors are robust
    (HC2: :math:`H^{-1} \bigl(\sum_i s_i^2 f_i'^2 x_i x_i^\top/(1 - h_i)\bigr) H^{-1}`, and Student's
    distribution with the degrees of freedom of Bell and McCaffrey), so that neither equal variances nor a true model
    are assumed: an interval is about the best linear combination of the selected features.

    Parameters
    ----------
    model : linear estimator
        It is cloned; whether it is fitted does not matter.
    level : float, default=0.9
        Of the intervals: each covers its coefficient with about this probability.
    random_state : int, default=0
        Seed of the halves. Another seed has other halves, and selects other features.
    groups : array of shape (n,), or list of such, optional
        Families, patients: rows of a group are in the same half, and errors are those of whole groups (CR2).
    small_tasks : {"error", "drop"}, default="error"
        What to do with a task that has too few rows: a half of it needs more than two rows beyond its features, and
        classes that these do not separate.

    Returns
    -------
    SplitInference
        A table, with a row for each selected coefficient: feature, task, estimate, std_error, lower, upper, pvalue,
        row_pvalue; `SplitInference.to_frame` and `SplitInference.summary`. NaN where rows of a task do not determine a
        coefficient, or its error.

    Notes
    -----
    Half of the rows select less than all of them would, and the other half estimates less well than all of them would:
    that is the price. Intervals from the rows that selected the features would be too short. P-values are for each
    coefficient by itself, not corrected for their number. With a ``...CV`` model the folds inside the first half depend
    on the order of the rows.

    References
    ----------
    Cox (1975), "A note on data-splitting for the evaluation of significance levels"; Bell and McCaffrey (2002), "Bias
    reduction in standard errors for linear regression with multi-stage samples".

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(2.0, 2.0), noise=1.0, n_rows=60)
    >>> table = ts.split_inference(ts.MultiTaskLasso(alpha=0.5), X, y, task=task)
    >>> table.feature[:2], table.task[:2], table.lower[:2].round(2), table.upper[:2].round(2)
    (array([0, 0]), array(['a', 'b'], dtype='<U1'), array([1.88, 1.64]), array([2.76, 2.36]))
    """
    check_level(level)
    matrices = placed(X, model)  # once, for both halves
    rows: RowArguments = {"task": task, "sample_weight": sample_weight, "offset": offset, "groups": groups}
    data, halves = plan_split(model, matrices, y, random_state, small_tasks, **rows)
    selecting, estimating = (halves.weights(half, data.weights) for half in (0, 1))
    # tasks that cannot be halved may help to select
    selecting = np.where(halves.unit < 0, data.weights, selecting)
    options: dict[str, Any] = {} if offset is None else {"offset": offset}
    if groups is not None and hasattr(model, "cv"):
        options["groups"] = groups
    factors = 1.0 if data.class_factors is None else data.class_factors  # which class_weight will put there again
    chosen = clone(model).fit(matrices, y, task=task, sample_weight=data.unflatten(selecting / factors), **options)
    supports = [np.flatnonzero(own) for own in chosen._learned().rows]
    kept = _large_enough(data, estimating, supports, small_tasks)
    half = data.with_weights(estimating)
    fits = fit_support(model, half, supports, kept, skip=small_tasks == "drop")
    found = [estimate_task(model, t, supports[t], fit, half, halves.unit) for t, fit in fits.items()]
    columns = _columns(found, float(level))
    names = feature_names(X)
    if names is not None:
        columns["feature"] = names[columns["feature"]]
    columns["task"] = data.tasks[columns["task"]]
    return SplitInference(**columns, level=float(level), halves=halves.words)


def plan_split(
    model: Any, X: Any, y: Any, random_state: Any, small_tasks: SmallTasks = "error", **rows: Unpack[RowArguments]
) -> tuple[TaskData, Halves]:
    """The rows and their halves; here is refused what can be refused before anything is fitted."""
    task, sample_weight, offset, groups = map(rows.get, ("task", "sample_weight", "offset", "groups"))
    check_choice(small_tasks, "small_tasks", ("error", "drop"))
    check_linear(model, "does not select features by a penalty; give a linear model such as MultiTaskLasso().")
    data = model._read_with(X, y, task, sample_weight, offset)
    refuse_loss(model._loss_of(data))
    return data, draw_halves(data, 1, random_state, groups=groups, small_tasks=small_tasks)


def refuse_loss(loss: Loss, known: Any = None) -> None:
    """Refuse a loss whose estimates have no errors here; `known` begins the sentence."""
    if loss.estimates:
        return
    what = "more than two classes" if loss.labels == "one-hot" else f"the {loss.label}"
    raise value_error(
        "{known} of least squares, of Huber's, log-cosh and expectile losses, and of logistic, Poisson, negative "
        "binomial, gamma and Tweedie regression, not of {what}. Take a model with one of these losses.",
        known=known or either("model: split_inference knows errors", "standard errors are known"),
        what=what,
    )


def _large_enough(data: TaskData, weights: Array, supports: list[Array], small_tasks: str) -> list[int]:
    """Tasks with rows enough for their features."""
    rows = [int(np.count_nonzero(weights[part] > 0.0)) for part in data.per_task()]
    small = [t for t, own in enumerate(supports) if rows[t] <= len(own) + 2]
    if small and small_tasks == "error":
        names = data.tasks.tolist()
        words = [f"{names[t]!r} has {rows[t]} for {len(supports[t])} features" for t in small[:3]]
        more = f" and {len(small) - 3} more task(s)" if small[3:] else ""
        raise value_error(
            "The half that estimates needs more than |S| + 2 rows in each task: task {words}{more}. Select fewer "
            "features (a larger {alpha}), or leave such tasks out with {drop}.",
            words=", ".join(words),
            more=more,
            drop=setting("small_tasks", "'drop'"),
        )
    return [t for t in range(data.n_tasks) if t not in small]


@dataclass(frozen=True)
class _Estimates:
    """One task: features, estimates, degrees of freedom, and the influence of each unit on each estimate."""

    task: int
    features: Array
    coef: Array
    df: Array
    units: Array
    influence: Array  # features x units

    @cached_property
    def errors(self) -> Array:
        return np.sqrt(np.sum(np.square(self.influence), axis=1))

    @cached_property
    def pvalues(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(2.0 * student.sf(np.abs(self.coef / self.errors), self.df))


def estimate_task(model: Any, t: int, features: Array, fit: TaskFit, half: TaskData, unit: Array) -> _Estimates:
    """Estimates of one task, with robust errors; rows of one unit belong together."""
    flat = np.arange(half.offsets[t], half.offsets[t + 1])
    flat = flat[half.weights[flat] > 0.0]
    units, position = np.unique(unit[flat], return_inverse=True)
    loss, y, weights = model._loss_of(half), half.y[flat], half.weights[flat]
    influence, df, settled = _sandwich(loss, fit, y, weights, position, model.fit_intercept)
    df = np.minimum(df, max(len(units) - 1, 1))
    coef = np.where(settled, fit.coef, np.nan)
    return _Estimates(t, features, coef, df, units, np.where(settled[:, None], influence, np.nan))


def _sandwich(
    loss: Loss, fit: TaskFit, y: Array, weights: Array, unit: Array, fit_intercept: bool
) -> tuple[Array, Array, Array]:
    """HC2, or CR2 where units have several rows: errors are unbiased where the loss has the variances right, and
    consistent where it has not.

    With rows scaled so that H = X'X, residuals are ``e = (I - U U') noise`` for a basis U of the columns, and those of
    a unit g become ``(I - U_g U_g')^(-1/2) e_g``. The degrees of freedom (Bell and McCaffrey 2002) are those of a
    multiple of chi-squared with the first two moments of the estimated variance; they need no more than U.

    Returned are what each unit adds to each coefficient (features x units), the degrees of freedom, and which
    coefficients the rows determine, with an error.
    """
    columns, scores = fit.columns, fit.scores
    slope, curvature, variance = y - scores, np.ones(len(y)), np.ones(len(y))
    if isinstance(loss, RowLoss):
        slope, second = loss.slope(y, scores), loss.second(y, scores)
        curvature = loss.curvature(y, scores) if second is None else second
        known = loss.information(y, scores)
        if known is not None:  # the loss has a formula for the variance
            curvature = variance = known
    count, n_units = columns.shape[1], int(unit.max()) + 1
    centred = columns - columns.mean(axis=0) if fit_intercept else columns
    full = np.column_stack([centred, np.ones(len(y))]) if fit_intercept else centred
    sizes = np.linalg.norm(full, axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    full = full / sizes
    left, values, right = np.linalg.svd(np.sqrt(weights * curvature)[:, None] * full, full_matrices=False)
    used = values > _RANK * values.max(initial=0.0)
    left = left[:, used]
    inverse = right[used].T / np.square(values[used]) @ right[used]
    root = np.sqrt(weights * variance)
    pull = ((inverse @ full.T) * root / sizes[:, None])[:count]
    settled = (np.abs(right[~used]) < 1e-6).all(axis=0)[:count]
    grown, lost = _grown(pull, left, unit)
    settled &= lost <= 1e-8 * np.sum(np.square(pull), axis=1)
    parts, df, influence = grown * (weights * slope / root), np.empty(count), np.empty((count, n_units))
    for j in range(count):
        influence[j] = np.bincount(unit, parts[j], n_units)
        lengths = np.bincount(unit, np.square(grown[j]), n_units)
        shadows = np.zeros((n_units, left.shape[1]))
        np.add.at(shadows, unit, grown[j][:, None] * left)
        explained = np.sum(np.square(shadows), axis=1)
        spread = lengths @ (lengths - 2.0 * explained) + np.sum(np.square(shadows.T @ shadows))
        df[j] = max((lengths - explained).sum() ** 2 / spread, 1.0) if spread > 0.0 else 1.0
    return influence, df, settled


def _grown(pull: Array, left: Array, unit: Array) -> tuple[Array, Array]:
    """``(I - U_g U_g')^(-1/2) pull_g`` for every unit; and how much of each row of `pull` lies where nothing is left of
    the residuals, so that they determine no error."""
    sizes, lost = np.bincount(unit), np.zeros(len(pull))
    free = 1.0 - np.sum(np.square(left), axis=1)
    alone = sizes[unit] == 1
    exact = alone & (free < _RANK)
    lost += np.sum(np.square(pull[:, exact]), axis=1)
    grown = pull / np.sqrt(np.where(free < _RANK, 1.0, free))
    for g in np.flatnonzero(sizes > 1):
        rows = np.flatnonzero(unit == g)
        part = left[rows]
        values, vectors = np.linalg.eigh(np.eye(len(rows)) - part @ part.T)
        along = pull[:, rows] @ vectors
        inside = values > _RANK
        lost += np.sum(np.square(along[:, ~inside]), axis=1)
        grown[:, rows] = (along[:, inside] / np.sqrt(values[inside])) @ vectors[:, inside].T
    return grown, lost


def _columns(found: list[_Estimates], level: float) -> dict[str, Array]:
    """The table, features in their order, tasks within them."""

    def joined(parts: list[Array], dtype: Any = np.float64) -> Array:
        return np.concatenate([np.empty(0, dtype), *parts])  # also of no task

    feature = joined([own.features for own in found], np.int64)
    task = joined([np.full(len(own.features), own.task) for own in found], np.int64)
    estimate = joined([own.coef for own in found])
    width = joined([student.isf(0.5 * (1.0 - level), own.df) * own.errors for own in found])
    rows = {j: _row_test(j, found) for j in np.unique(feature).tolist()}
    table = {
        "feature": feature,
        "task": task,
        "estimate": estimate,
        "std_error": joined([own.errors for own in found]),
        "lower": estimate - width,
        "upper": estimate + width,
        "pvalue": joined([own.pvalues for own in found]),
        "row_pvalue": np.array([rows[j] for j in feature.tolist()], dtype=np.float64),
    }
    order = np.lexsort((task, feature))
    return {name: column[order] for name, column in table.items()}


def _row_test(feature: int, found: list[_Estimates]) -> float:
    """Whether a feature matters in any task: p-value of the sum of squared normal scores of the tasks."""
    scores, influences = [], []
    for own in found:
        for k in np.flatnonzero(own.features == feature):
            p = own.pvalues[k]
            if np.isfinite(p):
                scores.append(float(norm.isf(0.5 * max(p, _LEAST_P))))
                influences.append((own.units, own.influence[k] / own.errors[k]))
    if not scores:
        return float("nan")
    total, spread = float(np.sum(np.square(scores))), 1.0
    units, position = np.unique(np.concatenate([units for units, _ in influences]), return_inverse=True)
    if len(units) < len(position):  # tasks have rows or groups in common: their scores are related
        rows = np.zeros((len(scores), len(units)))
        cuts = np.cumsum([len(own) for own, _ in influences])[:-1]
        for own_row, part, (_, influence) in zip(rows, np.split(position, cuts), influences, strict=True):
            own_row[part] = influence
        # scores of correlations R: a sum of mean m and variance 2 tr(R^2), as that of a multiple of chi-squared
        spread = float(np.sum(np.square(rows @ rows.T))) / len(scores)
    return float(chi2.sf(total / spread, len(scores) / spread))
