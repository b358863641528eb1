"""Are hazards proportional? A score test of effects that change with time, feature by feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..fitted.arguments import check_choice
from ..fitted.columns import Columns
from ..fitted.cox_moments import EventMoments, unpenalised_cox
from ..fitted.documented import DATA
from ..fitted.risk_groups import kaplan_meier
from ..messages import either, value_error
from ..tasks import is_task_list, some_of
from ..tasks.named import takes_named_tasks
from ..user_warnings import warn
from .refit import match_tasks

Array = np.ndarray[Any, Any]

ALL = "all features"  # the test of all features of a task at once


@dataclass(frozen=True)
class ProportionalHazardsTest(Columns):
    """What `proportional_hazards_test` has found: columns of a table with a row for each selected feature of a task,
    and one for all of them together.

    Attributes
    ----------
    task, feature : arrays
        Names; the test of all features of a task at once is called "all features".
    statistic : array of float
        Chi-squared.
    freedom : array of int
        Its degrees of freedom.
    pvalue : array of float
    transform : str
        The function of time.
    """

    task: Array
    feature: Array
    statistic: Array
    freedom: Array
    pvalue: Array
    transform: str

    _beside: ClassVar[tuple[str, ...]] = ("transform",)
    _labels: ClassVar[tuple[str, ...]] = ("task", "feature")

    def __len__(self) -> int:
        return len(self.feature)

    def __repr__(self) -> str:
        alone = self.feature != ALL
        least = f", smallest p-value {self.pvalue[alone].min():.2g}" if alone.any() else ""
        n_tasks = len(set(self.task.tolist()))
        return f"ProportionalHazardsTest({np.count_nonzero(alone)} effect(s) in {n_tasks} task(s){least})"


@takes_named_tasks
@described_by(DATA)
def proportional_hazards_test(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    transform: str = "km",
) -> ProportionalHazardsTest:
    r"""Test whether effects of the selected features of a survival model change with time.

    .. math:: h(\tau \mid x) = h_t(\tau) \exp\Bigl(\sum_j \bigl(w_j + \theta_j\, g(\tau)\bigr) x_j\Bigr), \qquad
        H_0: \theta = 0

    task by task: the score test of Grambsch and Therneau, as `cox.zph` of R has it, of features that the model has
    selected, refitted without the penalty. A small p-value says that a feature has no one hazard ratio for all of
    follow-up.

    Parameters
    ----------
    model : fitted MultiTaskCox or MultiTaskCoxCV
        Its ``coef_`` say which features are used, task by task.
    transform : {"km", "identity", "log"}, default="km"
        g: one minus the Kaplan-Meier estimate just before the event (robust against late events), the time itself,
        or its logarithm.

    Returns
    -------
    ProportionalHazardsTest
        ``found["pvalue"]``, ``found.to_frame()``.

    Warns
    -----
    UserWarning
        Of tasks whose features have no finite fit without a penalty: their rows are NaN.

    Notes
    -----
    With Schoenfeld's residuals :math:`r_g` and the covariances :math:`V_g` of those at risk at the event times,
    and g centred over events,

    .. math:: \chi^2 = U^\top (C - B A^{-1} B)^{-1} U, \qquad U = \sum_g g_g r_g, \quad A = \sum_g V_g, \quad
        B = \sum_g g_g V_g, \quad C = \sum_g g_g^2 V_g

    and for one feature the j-th entries of U and of the diagonal. The features were selected by the same rows, which
    the p-values do not know; selection is by the size of effects and not by whether they change.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 8))
    >>> time = rng.weibull(np.where(X[:, 0] > 0.0, 2.5, 0.7)) * np.exp(-0.7 * X[:, 1])  # crossing hazards in feature 0
    >>> y = ts.survival(time, np.ones(300))
    >>> model = ts.MultiTaskCox(alpha=0.05).fit(X, y)
    >>> found = ts.proportional_hazards_test(model, X, y)
    >>> [str(name) for name in found["feature"][found["pvalue"] < 0.01]]
    ['x0', 'all features']
    """
    if getattr(model, "_targets", None) != "survival":
        raise value_error(
            "{name} has no hazards: give a fitted {wanted}.",
            name=type(model).__name__,
            wanted=either("MultiTaskCox or MultiTaskCoxCV", "--model cox"),
        )
    check_is_fitted(model, "coef_")
    check_choice(transform, "transform", tuple(_TRANSFORMS))
    for item in X if is_task_list(X) else [X]:
        model._check_features(item)
    data = model._read_with(X, y, task, sample_weight, offset)
    places = match_tasks(model, data)
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(data.n_features)] if names is None else [str(name) for name in names]
    tasks, features, no_fit = list[Any](), list[str](), list[Any]()
    statistics, freedom = list[float](), list[int]()
    for t, (place, part) in enumerate(zip(places, data.per_task(), strict=True)):
        label = data.tasks.tolist()[t]
        own = np.flatnonzero(np.asarray(model.coef_)[place])
        if not len(own):
            continue
        rows = np.arange(data.n_rows) if data.shared else np.arange(part.start, part.stop)
        labels, weights = data.y[part], data.weights[part]
        known = None if data.known is None else data.known[part]
        fit = unpenalised_cox(np.asarray(data.take(own))[rows], labels, weights, known, model.ties)
        if fit is None:
            no_fit.append(label)
        found = np.full(len(own) + 1, np.nan) if fit is None else _statistics(fit[1], labels, weights, transform)
        tasks += [label] * len(found)
        features += [*(names[j] for j in own.tolist()), ALL]
        statistics += found.tolist()
        freedom += [*[1] * len(own), len(own)]
    if no_fit:
        warn(
            f"{len(no_fit)} task(s) have no finite fit without a penalty ({some_of(no_fit)}): too few events for their "
            "features, or features that are combinations of others. A larger alpha selects fewer.",
        )
    chi = np.array(statistics)
    kinds = np.array(freedom, dtype=np.int64)
    labels = np.array(tasks, dtype=data.tasks.dtype) if tasks else data.tasks[:0]
    return ProportionalHazardsTest(labels, np.array(features, dtype=object), chi, kinds, chi2.sf(chi, kinds), transform)


def _statistics(found: EventMoments, y: Array, weights: Array, transform: str) -> Array:
    """Of each feature, and of all."""
    g = _TRANSFORMS[transform](found.times, y[weights > 0.0])
    g = g - np.average(g, weights=found.weights)
    score = g @ found.residuals
    plain, crossed, squared = (np.einsum("g,gij->ij", own, found.variances) for own in (np.ones_like(g), g, g * g))
    variance = squared - crossed @ np.linalg.solve(plain, crossed)
    each = np.divide(score**2, np.diag(variance), out=np.full(len(score), np.nan), where=np.diag(variance) > 0.0)
    return np.append(each, score @ np.linalg.lstsq(variance, score, rcond=None)[0])


def _before_events(times: Array, y: Array) -> Array:
    """One minus the Kaplan-Meier estimate of all strata just before each time."""
    at, shares = kaplan_meier(y, np.ones(len(y)), thin=False)
    return 1.0 - np.append(1.0, shares)[np.searchsorted(at, times, side="left")]


def _logarithms(times: Array, y: Array) -> Array:
    if not np.all(times > 0.0):
        raise ValueError("Logarithms of times need event times above 0; use 'km' or 'identity'.")
    return np.log(times)


_TRANSFORMS: dict[str, Callable[[Array, Array], Array]] = {
    "km": _before_events,
    "identity": lambda times, y: times,
    "log": _logarithms,
}
