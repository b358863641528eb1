"""Debiased coefficients: intervals from all rows, for features that were named beforehand or for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from ..design.memory import free_memory
from ..docstrings import described_by
from ..fitted.arguments import check_choice, check_level, feature_names
from ..fitted.documented import DATA
from ..fitted.new_rows import RowArguments
from ..losses import Huber, Loss, RowLoss
from ..messages import ParameterError, either, value_error
from ..tasks import TaskData, is_task_list, read_groups, some_of
from ..tasks.named import refuse_patterns, takes_named_tasks
from ..user_warnings import warn
from .columns import Estimates
from .degrees_of_freedom import FittedTask, degrees_of_freedom
from .multiplicity import benjamini_yekutieli, holm
from .nodewise import NodewiseTask
from .path_model import check_linear
from .refit import match_tasks
from .row_tests import independent_rows, related_rows
from .sandwich import sandwich
from .split import refuse_loss
from .studentised import half_width, two_sided
from .unpenalised import NoFit, fit_task

Array = np.ndarray[Any, Any]

_AT_ONCE = 512  # features whose score vectors are held together
_PART = 0.1  # of a standard error: the bias beside which `tolerated_error` stands


@dataclass(frozen=True, repr=False)
class DebiasedInference(Estimates):
    """What `debiased_inference` has found: columns of a table with a row for each feature and task.

    Attributes
    ----------
    feature : array
        Its name, or its number.
    task : array
    estimate, std_error, lower, upper, pvalue : arrays of float
        Of the coefficient, in the units of X and y. NaN where a feature does not vary in a task, and errors NaN where
        the model uses as many degrees of freedom as the task has rows.
    row_pvalue : array of float
        Of the feature in all tasks together.
    row_holm, row_by : arrays of float
        The same, adjusted for the number of features: by Holm, and by Benjamini and Yekutieli. Of "selected" features
        for the number of all features.
    bias_factor : array of float
        Proved upper bound of eta: what an L1 error of the model of 1 can add to the estimate, to first order.
    tolerated_error : array of float
        The L1 error of the model at which that could reach a tenth of the standard error, ``std_error / (10 eta)``: no
        bound of the bias, since the error of the model is not known.
    penalty : array of float
        Strength of the Lasso that gave the score vector, in correlations.
    level : float
        Of the intervals.
    n_tests : int
        Features that the adjusted p-values count.
    errors : str
        How standard errors were made.
    """

    row_pvalue: Array
    row_holm: Array
    row_by: Array
    bias_factor: Array
    tolerated_error: Array
    penalty: Array
    level: float
    n_tests: int
    errors: str

    _beside: ClassVar[tuple[str, ...]] = ("level", "n_tests", "errors")

    def __repr__(self) -> str:
        return f"DebiasedInference({self._counted()}, level={self.level:g})"

    def summary(self) -> str:
        """The finding in plain words."""
        if not len(self):
            return "There is no feature to estimate: the model has selected none."
        features, first = np.unique(self.feature, return_index=True)
        clear = int(np.count_nonzero(self.row_holm[first] <= 0.05))
        return (
            f"{len(features)} feature(s) were estimated without the shrinkage, {clear} of them matter in some task "
            f"(p <= 0.05 after Holm's correction for {self.n_tests} features). Each interval covers its coefficient "
            f"with a probability of about {self.level:.0%} if the model's error is small beside tolerated_error; of "
            "intervals picked because they look large, fewer do."
        )


@takes_named_tasks
@described_by(DATA)
def debiased_inference(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    features: Any = "selected",
    level: float = 0.95,
    sample_weight: Any = None,
    offset: Any = None,
    groups: Any = None,
    errors: str = "robust",
    nodewise_penalty: Any = None,
) -> DebiasedInference:
    r"""Intervals and tests of single coefficients from the rows that a model was fitted to (the desparsified Lasso).

    .. math::

        \hat b_{tj} = w_{tj} + \sum_i a_i\, p_i, \qquad p_i = -f'(y_i, x_i \cdot w_t + b_t + o_i), \qquad
        a_i = \frac{s_i v_i}{\sum_l s_l c_l v_l x_{lj}}

    with w the model's coefficients (of other losses than least squares recalibrated: with the slope and the intercept
    that fit task t best), p minus the slopes of its loss at the rows of task t (for least squares the
    residuals), c the loss's curvature there, s the weights of rows, and v what a Lasso of feature j on all other
    features, in the metric s c, leaves of it. Each task has its own rows and its own Lassos. A coefficient that the
    penalty has shrunk, or set to zero, is corrected by what the residuals still say about its feature alone. What the
    other coefficients' errors do to that is small where the L1 error of the model is small beside ``tolerated_error``,
    which theory promises for sparse truths (clearly fewer features than :math:`\sqrt{n_t} / \log d`) and which no data
    can prove.

    Parameters
    ----------
    model : fitted linear estimator
        Least squares (squared and square-root loss), log-cosh and expectile losses, logistic, Poisson, negative
        binomial, gamma and Tweedie regression. Fitted to these rows.
    features : "selected", "all", or list of names or numbers, default="selected"
        "selected" are those with a coefficient in any task; every one is estimated in all tasks.
    level : float, default=0.95
        Of the intervals.
    groups : array of shape (n,), or list of such, optional
        Families, patients: errors are those of whole groups of rows.
    errors : {"robust", "constant"}, default="robust"
        "robust": :math:`\frac{n}{n - k'} \sum_i \frac{(a_i e_i)^2}{1 - \ell_i}`, e the residuals after a step along v
        that leaves :math:`\sum_i a_i e_i = 0`, :math:`\ell_i` the share of row i in what is known of the coefficient,
        k' the degrees of freedom that the rest of the model uses in the task; with ``groups`` of sums over groups.
        Student's distribution with the degrees of freedom of Bell and McCaffrey: about a third of n where v is normal,
        few where few rows (groups) carry the feature. "constant": noise of one variance (of 1 / s with weights), for
        least squares only, :math:`\sum_i p_i^2 / (n - k)`. Student's distribution with n - k degrees of freedom, at
        most the number of groups less 1; a coefficient that the model has left at zero is in its own residuals, and has
        the t test with one degree of freedom less of a fit that has its feature, too.
    nodewise_penalty : float, or array of shape (d,) or (T, d), optional
        Strengths of the Lassos, of columns of length 1 (so between 0 and 1). By default each is chosen by the rule of
        Zhang and Zhang: from :math:`\sqrt{2 \log d / n}` downwards as long as the standard error grows by a quarter at
        most and the bias factor falls by a fiftieth at least.

    Returns
    -------
    DebiasedInference
        A table, with a row for each feature and task: feature, task, estimate, std_error, lower, upper, pvalue,
        row_pvalue, row_holm, row_by, bias_factor, tolerated_error, penalty; `DebiasedInference.to_frame` and
        `DebiasedInference.summary`.

    Warns
    -----
    UserWarning
        Of tasks in which the model uses as many degrees of freedom as there are rows: they have no standard errors.

    Notes
    -----
    For least squares :math:`\hat b_{tj}` misses the true coefficient by noise, :math:`\sum_i a_i \varepsilon_i`, and by
    at most ``bias_factor`` times the model's L1 error: :math:`\sum_k \sigma_k |w_{tk} - w^*_{tk}|` over features of
    standard deviations :math:`\sigma_k`, plus the error of the intercept at the mean row. ``bias_factor`` is
    computed from the a as they are, and raised by all rounding. With other losses there are terms of second order
    beside it, and the L1 error is that of the recalibrated model.

    Degrees of freedom are the divergence of the fitted values, :math:`\sum_i \partial \hat y_i / \partial y_i` (Stein
    1981): a coefficient of a row that the L2,1 norm has shrunk is less than one. The coefficient itself counts as one
    in its own robust error, whether the model has it or not. What shrinkage leaves of *other* features in the residuals
    stays there: errors are a little too large for it (Reid, Tibshirani and Friedman 2016). Where the penalty is not of
    that family (L2,1, L1,1, sparse group), or tied to a graph of tasks, coefficients are counted, which is never less.
    A model with a ridge is taken for one without.

    A penalty makes predictions of a logistic or Poisson model too flat, and their curvature, which is the information
    about a large effect, too large. So each task's linear predictor gets the slope (the calibration slope of Cox 1958)
    and intercept that fit its rows best; the slope counts as one degree of freedom. A task whose slope would be
    infinite (separated classes) stays as it is.

    The row test compares squared normal scores with chi-squared where tasks have no rows (groups) in common, and is
    Hotelling's, by the F distribution, where they have.

    An interval is about its coefficient beside *all* other features. It is marginal: of intervals that are
    looked at because the model has selected their features, somewhat fewer cover. ``row_holm`` and ``row_by`` count all
    features for that reason. See `split_inference` for intervals that hold given the selection.

    References
    ----------
    Zhang and Zhang (2014), "Confidence intervals for low dimensional parameters in high dimensional linear models"; van
    de Geer, Bühlmann, Ritov and Dezeure (2014), "On asymptotically optimal confidence regions and tests for
    high-dimensional models"; Javanmard and Montanari (2014), "Confidence intervals and hypothesis testing for
    high-dimensional regression"; Stein (1981), "Estimation of the mean of a multivariate normal distribution"; Bell and
    McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage samples"; Imbens and
    Kolesár (2016), "Robust standard errors in small samples: some practical advice"; Reid, Tibshirani and Friedman
    (2016), "A study of error variance estimation in Lasso regression"; Cox (1958), "Two further applications of a model
    for binary regression"; Benjamini and Yekutieli (2001), "The control of the false discovery rate in multiple testing
    under dependency".

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(2.0, 2.0), noise=1.0, n_rows=60)
    >>> model = ts.MultiTaskLasso(alpha=0.5).fit(X, y, task=task)
    >>> found = ts.debiased_inference(model, X, y, task=task, features=[0])
    >>> found.estimate.round(2), found.lower.round(2), found.upper.round(2)
    (array([2.08, 2.36]), array([1.76, 2.03]), array([2.4, 2.7]))
    """
    check_linear(model, "has no coefficients to debias; give a fitted linear model.")
    check_is_fitted(model, "coef_")
    check_level(level)
    check_choice(errors, "errors", ("robust", "constant"))
    refuse_patterns(X, "debiased_inference")
    for item in X if is_task_list(X) else [X]:
        model._check_features(item)
    data = model._read_with(X, y, task, sample_weight, offset)
    if data.n_features != model.n_features_in_:
        raise ValueError(f"X has {data.n_features} features, but the model was fitted to {model.n_features_in_}.")
    loss = model._loss_of(data)
    _refuse(loss, errors)
    names = getattr(model, "feature_names_in_", feature_names(X))
    state, places = model._learned(), match_tasks(model, data)
    coef, intercept = state.rows[places], np.asarray(state.constants, dtype=np.float64)[places]
    chosen = read_features(features, data.n_features, names, coef)
    penalties = read_penalty(nodewise_penalty, data.n_tasks, data.n_features)
    unit = data.flatten_rows(np.arange(data.n_rows) if groups is None else read_groups(groups, data)[1])
    scales = model.scale_[places] if hasattr(model, "scale_") else None
    tasks = list(_tasks(model, data, loss, coef, intercept, scales, unit, errors))
    refused = [data.tasks.tolist()[t] for t, own in enumerate(tasks) if not own.has_errors]
    if refused:
        warn(
            f"{len(refused)} task(s) have no standard errors ({some_of(refused)}): the model uses as many degrees "
            "of freedom there as there are rows (or groups), so that their residuals say nothing about the noise. A "
            "larger alpha uses fewer.",
        )
    parts = [
        _estimated(tasks, chosen[low : low + _AT_ONCE], penalties) for low in range(0, len(chosen), _AT_ONCE)
    ] or [_estimated(tasks, chosen, penalties)]
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    width = half_width(level, table["freedom"], _internal(tasks, chosen)) * table["error"]
    with np.errstate(divide="ignore", invalid="ignore"):
        tolerated = _PART * table["error"] / table["eta"]
    n_tests = len(chosen) if not isinstance(features, str) else data.n_features
    row = table["row_pvalue"]
    estimate = table["estimate"]
    return DebiasedInference(
        feature=np.repeat(chosen if names is None else np.asarray(names)[chosen], data.n_tasks),
        task=np.tile(data.tasks, len(chosen)),
        estimate=estimate.ravel(),
        std_error=table["error"].ravel(),
        lower=(estimate - width).ravel(),
        upper=(estimate + width).ravel(),
        pvalue=table["pvalue"].ravel(),
        row_pvalue=np.repeat(row, data.n_tasks),
        row_holm=np.repeat(holm(row, n_tests), data.n_tasks),
        row_by=np.repeat(benjamini_yekutieli(row, n_tests), data.n_tasks),
        bias_factor=table["eta"].ravel(),
        tolerated_error=tolerated.ravel(),
        penalty=table["penalty"].ravel(),
        level=float(level),
        n_tests=n_tests,
        errors=errors if groups is None else f"{errors}, of groups of rows",
    )


def plan_debiased(model: Any, X: Any, y: Any, **rows: Unpack[RowArguments]) -> None:
    """Refuse what can be refused before the model is fitted."""
    task, sample_weight, offset = map(rows.get, ("task", "sample_weight", "offset"))
    check_linear(model, "has no coefficients to debias; give a linear model.")
    refuse_patterns(X, "debiased_inference")
    _refuse(model._loss_of(model._read_with(X, y, task, sample_weight, offset)), "robust")


def _refuse(loss: Loss, errors: str) -> None:
    """Refuse a loss whose coefficients cannot be debiased, or has no constant variance."""
    refuse_loss(loss, either("model: debiased_inference knows errors", "standard errors are known"))
    if isinstance(loss, Huber):
        raise value_error(
            "{known} of Huber's loss: it has no curvature at rows that are far off. Take the log-cosh loss, which has, "
            "or split_inference.",
            known=either("model: debiased_inference knows no errors", "no debiased errors are known"),
        )
    if errors == "constant" and isinstance(loss, RowLoss):
        raise ParameterError("errors", f"must be 'robust' with the {loss.label}, whose variances differ", errors)


def read_features(features: Any, count: int, names: Any, coef: Array) -> Array:
    """Numbers of the features that are meant, each once, in their order."""
    if isinstance(features, str):
        check_choice(features, "features", ("selected", "all"))
        return np.flatnonzero(coef.any(axis=0)) if features == "selected" else np.arange(count)
    if not isinstance(features, Iterable):
        raise ParameterError("features", "must be 'selected', 'all' or a list of names or numbers", features)
    known = {} if names is None else {name: j for j, name in enumerate(np.asarray(names).tolist())}
    found = []
    for name in np.asarray(list(features), dtype=object).tolist():
        if name in known and isinstance(name, str):
            found.append(known[name])
        elif isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < count:
            found.append(int(name))
        else:
            have = f"numbers from 0 to {count - 1}" if not known else f"names such as {some_of(list(known)[:2])}"
            raise ParameterError("features", f"has no feature {name!r}: there are {have}", name)
    return np.unique(np.array(found, dtype=np.int64))


def read_penalty(penalty: Any, n_tasks: int, n_features: int) -> Array | None:
    """Strengths by task and feature, or None for the rule's."""
    if penalty is None:
        return None
    try:
        given = np.asarray(penalty, dtype=np.float64)
        found = np.broadcast_to(given, (n_tasks, n_features))
    except (TypeError, ValueError):
        shapes = f"a number, or of shape ({n_features},) or ({n_tasks}, {n_features})"
        raise ParameterError("nodewise_penalty", f"must be {shapes}", penalty) from None
    if not np.all((found > 0.0) & np.isfinite(found)):
        raise ParameterError("nodewise_penalty", "must be above 0", penalty)
    return found


@dataclass(frozen=True)
class _Task:
    """One task: its columns in the metric of the loss, and what its rows say."""

    design: NodewiseTask
    coef: Array
    fitted: FittedTask
    units: Array  # of all tasks, sorted: those of its rows
    member: csr_array | None  # rows x units, where a unit has several rows
    freedom: float  # of the residuals
    noise: Array | None  # variance of each row's slope, where it is constant

    @property
    def has_errors(self) -> bool:
        """Whether residuals are left: robust errors take one more degree of freedom for the coefficient itself."""
        return self.freedom >= (2.0 if self.noise is None else 1.0) and len(self.units) > 1

    def errors(self, a: Array, targets: Array) -> tuple[Array, Array, Array]:
        """Variances and degrees of freedom (targets,), and parts of the estimates (targets, units) whose products with
        those of another task are their covariance but for the scale."""
        own, count = self.fitted, len(self.units)
        n = len(own.rows)
        if self.noise is not None:
            each = a * own.slope
            freedom = np.full(len(a), min(self.freedom, count - 1.0))
            return np.square(a) @ self.noise, freedom, each if self.member is None else each @ self.member
        parts, freedom = sandwich(a, own.slope, own.curvature, own.weights, self.member)
        left = np.maximum(self.freedom - (self.coef[targets] == 0.0), 1.0)  # a feature left at zero is one more
        factor = n / (left + 1.0)  # the rest of the model; the coefficient's own degree is in the parts
        if self.member is not None:
            factor *= count / max(count - 1, 1) * (n - 1) / n
        return factor * np.sum(np.square(parts), axis=1), freedom * left / max(n - 1, 1), parts


def _tasks(
    model: Any,
    data: TaskData,
    loss: Loss,
    coef: Array,
    intercept: Array,
    scales: Array | None,
    unit: Array,
    errors: str,
) -> Iterator[_Task]:
    """The tasks; those that have the same rows in the same metric have the same design."""
    needed, free = 16.0 * data.n_rows * data.n_features, free_memory()
    if needed > free:
        raise ValueError(
            f"debiased_inference holds all columns of X as numbers of 8 bytes, twice: {needed / 2**30:,.1f} GiB, and "
            f"{free / 2**30:,.1f} GiB are free. Take fewer columns (those that a first fit on other rows has selected, "
            "say), or split_inference, which needs the selected ones only."
        )
    features = np.arange(data.n_features)
    columns = np.asarray(data.take(features), dtype=np.float64)
    if not np.all(np.isfinite(columns)):
        data.refuse_not_finite()
    fitted = list(_fitted(data, loss, columns, coef, intercept))
    estimator = getattr(getattr(model, "path_", None), "_estimator", model)  # of a cross-validation the one it chose
    used = degrees_of_freedom(estimator, data, loss, coef, scales, columns, fitted)
    if isinstance(loss, RowLoss):
        coef, intercept = _recalibrated(data, loss, columns, coef, intercept, fitted, model.fit_intercept)
        fitted = list(_fitted(data, loss, columns, coef, intercept))
        used = np.minimum(used + 1.0, np.count_nonzero(coef, axis=1))  # the slope is one more
    used += float(model.fit_intercept)
    designs: dict[bytes, NodewiseTask] = {}
    for own, coefficients, taken in zip(fitted, coef, used.tolist(), strict=True):
        key = b"".join(part.tobytes() for part in (own.rows, own.weights, own.curvature))
        if key not in designs:
            if not data.shared:
                designs.clear()
            designs[key] = NodewiseTask(columns[own.rows], own.weights, own.curvature, model.fit_intercept)
        units, position = np.unique(unit[own.samples], return_inverse=True)
        n = len(own.rows)
        member = None
        if len(units) < n:
            member = csr_array((np.ones(n), (np.arange(n), position)), shape=(n, len(units)))
        noise = None
        if errors == "constant":
            noise = float(own.weights @ np.square(own.slope)) / max(n - taken, 1.0) / own.weights
        yield _Task(designs[key], coefficients, own, units, member, n - taken, noise)


def _fitted(data: TaskData, loss: Loss, columns: Array, coef: Array, intercept: Array) -> Iterator[FittedTask]:
    """Slopes and curvatures of the rows that count."""
    for t, flat in enumerate(data.per_task()):
        live = np.flatnonzero(data.weights[flat] > 0.0)
        rows = live if data.shared else live + flat.start
        scores = columns[rows] @ coef[t] + intercept[t] + (0.0 if data.known is None else data.known[flat][live])
        y = data.y[flat][live]
        slope, curvature = y - scores, np.ones(len(y))
        if isinstance(loss, RowLoss):
            slope, curvature = loss.slope(y, scores), _curvature(loss, y, scores)
        yield FittedTask(rows, live + flat.start, data.weights[flat][live], slope, curvature)


def _recalibrated(
    data: TaskData,
    loss: RowLoss,
    columns: Array,
    coef: Array,
    intercept: Array,
    tasks: list[FittedTask],
    fit_intercept: bool,
) -> tuple[Array, Array]:
    """Coefficients and intercepts with the slope that fits each task best; as they are where none does."""
    coef, intercept = coef.copy(), intercept.copy()
    for t, own in enumerate(tasks):
        if not coef[t].any():
            continue
        known = None if data.known is None else data.known[own.samples]
        scores = (columns[own.rows] @ coef[t])[:, None]
        try:
            fit = fit_task(loss, scores, data.y[own.samples], own.weights, known, fit_intercept=fit_intercept)
        except NoFit:
            continue
        coef[t] *= fit.coef[0]
        intercept[t] = fit.intercept
    return coef, intercept


def _curvature(loss: RowLoss, y: Array, scores: Array) -> Array:
    """The second derivative that is expected at the scores, or that is there."""
    known = loss.information(y, scores)
    second = loss.second(y, scores) if known is None else known
    return np.asarray(loss.curvature(y, scores) if second is None else second, dtype=np.float64)


def _estimated(tasks: list[_Task], targets: Array, penalties: Array | None) -> dict[str, Array]:
    """Estimates, errors, eta and strengths (features, tasks), and p-values of rows, of a few features."""
    shape = (len(targets), len(tasks))
    found = {name: np.full(shape, np.nan) for name in ("estimate", "error", "freedom", "eta", "penalty")}
    everybody = np.unique(np.concatenate([own.units for own in tasks]))
    related = len(everybody) < sum(len(own.units) for own in tasks)
    influence = np.zeros((len(tasks), len(targets), len(everybody) if related else 0))
    solved: dict[tuple[int, bytes], tuple[Array, Array, Array]] = {}
    for t, own in enumerate(tasks):
        penalty = None if penalties is None else np.ascontiguousarray(penalties[t][targets])
        key = (id(own.design), b"" if penalty is None else penalty.tobytes())
        if key not in solved:
            a, strengths = own.design.rows(targets, penalty)
            solved[key] = a, strengths, own.design.bias_factors(targets, a)
        a, found["penalty"][:, t], found["eta"][:, t] = solved[key]
        varies = a.any(axis=1)
        found["estimate"][:, t] = np.where(varies, own.coef[targets] + a @ own.fitted.slope, np.nan)
        variance, found["freedom"][:, t], parts = own.errors(a, targets)
        found["error"][:, t] = np.where(varies & own.has_errors, np.sqrt(variance), np.nan)
        if related:
            influence[t][:, np.searchsorted(everybody, own.units)] = parts
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = found["estimate"] / found["error"]
    found["pvalue"] = two_sided(ratios, found["freedom"], _internal(tasks, targets))
    if not related:
        return {**found, "row_pvalue": independent_rows(found["pvalue"])}
    products = np.einsum("tju,sju->jts", influence, influence, optimize=True)
    sizes = np.sqrt(np.einsum("jtt->jt", products))
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = found["error"] / sizes
    covariances = products * scale[:, :, None] * scale[:, None, :]
    return {**found, "row_pvalue": related_rows(found["estimate"], covariances, found["freedom"])}


def _internal(tasks: list[_Task], targets: Array) -> Array:
    """Coefficients (features, tasks) that are in their own errors: sums of the residuals of a common noise."""
    return np.array([(own.coef[targets] == 0.0) & (own.noise is not None) for own in tasks]).T
