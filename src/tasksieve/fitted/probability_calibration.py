"""Whether probabilities are shares: how often a class is there among rows that are said to have it so often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, ndtri
from sklearn.utils.validation import check_is_fitted

from ..docstrings import described_by
from ..messages import ParameterError, value_error
from ..tasks import TaskData
from ..tasks.named import refuse_patterns, takes_named_tasks
from .arguments import check_level, check_number
from .columns import Columns
from .documented import DATA

Array = np.ndarray[Any, Any]

FITTED, CORRECTED = "as fitted", "corrected back"
_ROWS_OF_BIN = 10  # the fewest that make a share
_STEPS, _FAR = 100, 1e4  # of Newton's method; slopes beyond are those of classes that a line separates


@dataclass(frozen=True, repr=False)
class CalibrationLines(Columns):
    """A row for each task, class and weighting: two numbers for its curve.

    Attributes
    ----------
    task, label, weighting : arrays
    n_rows : array of int
    expected, observed : arrays of float
        Mean probability, and share of the rows of that class.
    intercept, intercept_error : arrays of float
        What has to be added to the log-odds so that these agree ("calibration in the large"): 0 is right, below 0 the
        probabilities are too large.
    slope, slope_error : arrays of float
        Coefficient of the log-odds in a logistic regression of their own: 1 is right, above 1 probabilities differ too
        little (as after a penalty), below 1 too much. NaN where all are alike or separate the classes.
    """

    task: Array
    label: Array
    weighting: Array
    n_rows: Array
    expected: Array
    observed: Array
    intercept: Array
    intercept_error: Array
    slope: Array
    slope_error: Array


@dataclass(frozen=True, repr=False)
class ProbabilityCalibration(Columns):
    """What `probability_calibration` has found: columns of a table with a row for each bin of each curve.

    Attributes
    ----------
    task, label : arrays
        Of two classes the second one, of more each against the rest.
    weighting : array of str
        "as fitted", or "corrected back": without what ``class_weight`` has done.
    n_rows : array of int
    predicted, observed : arrays of float
        Mean probability in the bin, and share of its rows that are of the class.
    lower, upper : arrays of float
        Wilson's interval of the share.
    lines : CalibrationLines
        Intercept and slope of each curve.
    level : float
        Of the intervals.
    new_rows : bool
        Whether the model had not seen the rows; otherwise probabilities are out of fold.
    """

    task: Array
    label: Array
    weighting: Array
    n_rows: Array
    predicted: Array
    observed: Array
    lower: Array
    upper: Array
    lines: CalibrationLines
    level: float
    new_rows: bool

    _beside: ClassVar[tuple[str, ...]] = ("lines", "level", "new_rows")

    def __repr__(self) -> str:
        lines = self.lines
        each = ", ".join(
            f"{lines.task[k]}: slope {lines.slope[k]:.2f}, in the large {lines.intercept[k]:+.2f} "
            f"({lines.weighting[k]})"
            for k in range(min(4, len(lines.task)))
        )
        return f"ProbabilityCalibration({each}{', ...' * (len(lines.task) > 4)})"


@takes_named_tasks
@described_by(DATA)
def probability_calibration(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    n_bins: int = 10,
    level: float = 0.9,
    new_rows: bool = False,
    sample_weight: Any = None,
    offset: Any = None,
) -> ProbabilityCalibration:
    r"""Calibration curves of a classifier's probabilities, task by task, with and without its class weights.

    Rows are cut into bins by their probability p; in each, its mean is set beside the share of rows of the class. A
    model with ``class_weight`` has the probabilities of a population in which class c counts :math:`\omega_c` times.
    *Corrected back* they are those of the rows,

    .. math:: p'_c = \frac{p_c / \omega_c}{\sum_k p_k / \omega_k},

    which with two classes takes :math:`\log(\omega_1 / \omega_0)` off the intercept and leaves coefficients alone.

    Parameters
    ----------
    model : fitted classifier with probabilities
        Logistic, multinomial or ordinal. For the rows of its fit, one with cross-validation.
    n_bins : int, default=10
        Of equal numbers of rows; fewer where that leaves fewer than 10 rows a bin, or probabilities are alike.
    level : float, default=0.9
        Of the intervals.
    new_rows : bool, default=False
        Whether the model has not seen these rows. By default they are those that it was fitted to, and probabilities
        are out of fold (``cv_predictions_``).

    Returns
    -------
    ProbabilityCalibration
        A table with a row for each bin; its `lines` have intercept and slope of each curve.

    Notes
    -----
    Standard errors of intercepts and slopes are robust (HC0) and those of rows that are predicted by a model that does
    not depend on them; like the intervals they leave out that the models of folds are alike. Correcting back is Bayes'
    rule, and as right as the weighted model: it mends the level and not a wrong slope.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression"; Elkan (2001), "The foundations of
    cost-sensitive learning"; Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 5))
    >>> y = (X[:, 0] - 1.5 + rng.logistic(size=400) > 0).astype(int)
    >>> model = ts.MultiTaskLogisticRegressionCV(class_weight="balanced", n_alphas=10).fit(X, y)
    >>> lines = ts.probability_calibration(model, X, y).lines
    >>> lines.weighting.tolist(), lines.expected.round(2).tolist(), lines.observed.round(2).tolist()
    (['as fitted', 'corrected back'], [0.45, 0.19], [0.19, 0.19])
    """
    check_level(level)
    check_number(n_bins, "n_bins", low=1, closed=True, integer=True)
    if getattr(model, "_targets", None) != "classes" or not hasattr(model, "predict_proba"):
        words = (
            f"has no probabilities of classes ({type(model).__name__}): give a logistic or ordinal classifier"
        )
        raise ParameterError("model", words)
    check_is_fitted(model, "coef_")
    refuse_patterns(X, "probability_calibration")
    if not new_rows and not hasattr(model, "cv_predictions_"):
        raise value_error(
            "model: a model is too sure of the rows that it has learned from. Give one with cross-validation "
            "({cv}), whose predictions are out of fold, or rows that it has not seen with new_rows=True.",
            cv=type(model).__name__ + "CV",
        )
    data = model._read_with(X, y, task, sample_weight, offset)
    if new_rows:
        more = {} if offset is None else {"offset": offset}
        answers = model.predict_proba(X, **({} if task is None else {"task": task}), **more)
    else:
        answers = model.cv_predictions_
    chances, codes = _flat(data, answers), data.class_codes
    assert codes is not None
    weights = data.weights if data.class_factors is None else data.weights / data.class_factors
    bins: list[tuple[Any, ...]] = []
    lines: list[tuple[Any, ...]] = []
    for t, part in enumerate(data.per_task()):
        names = np.asarray(data.classes_of(t)).tolist()
        own = chances[part][:, : len(names)]
        live = (weights[part] > 0.0) & np.isfinite(own).all(axis=1)
        if not live.any():
            continue
        p, s, code = own[live], weights[part][live], codes[part][live]
        curves = [(FITTED, p)]
        if getattr(model, "class_weight", None) is not None:
            factors = _factors(model, data, t, part, names, new_rows)
            if factors is not None:
                back = p / factors
                curves.append((CORRECTED, back / back.sum(axis=1, keepdims=True)))
        name = data.tasks[t : t + 1].tolist()[0]
        for k in range(1, 2) if len(names) == 2 else range(len(names)):
            hit = (code == k).astype(np.float64)
            for weighting, each in curves:
                key = (name, names[k], weighting)
                bins += [key + found for found in _bins(each[:, k], hit, s, n_bins, level)]
                lines.append(
                    (*key, len(hit), s @ each[:, k] / s.sum(), s @ hit / s.sum(), *_line(each[:, k], hit, s))
                )
    task_, label, weightings, n_rows, predicted, observed, lower, upper = _columns(bins, 8)
    return ProbabilityCalibration(
        task_, label, weightings, n_rows, predicted, observed, lower, upper, CalibrationLines(*_columns(lines, 10)),
        float(level), new_rows,
    )  # fmt: skip


def _columns(rows: list[tuple[Any, ...]], width: int) -> list[Array]:
    """Columns of rows; names stay the objects that they are."""
    found = []
    for k in range(width):
        values = [row[k] for row in rows]
        column = np.empty(len(values), dtype=object) if k < 2 else np.asarray(values)
        column[:] = values
        found.append(column)
    return found


def _flat(data: TaskData, answers: Any) -> Array:
    """Probabilities by sample, task after task; 0 for classes that a task has not."""
    parts = answers if isinstance(answers, list) else [answers]
    count = sum(int(np.prod(np.shape(part)[:-1])) for part in parts)
    if count != len(data.y):
        raise ValueError(
            f"X has other rows ({len(data.y)} labels) than the model was fitted to ({count}): give new_rows=True for "
            "rows that it has not seen."
        )
    if not isinstance(answers, list):
        return np.stack([data.flatten(answers[..., k]) for k in range(answers.shape[-1])], axis=1)
    width = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


def _factors(
    model: Any, data: TaskData, t: int, part: slice, names: list[Any], new_rows: bool
) -> Array | None:
    """What the classes of a task counted in the fit; None where that is not known, or a class did not count."""
    rule = model.class_weight
    if not isinstance(rule, str):
        found = np.array([float(rule.get(name, 1.0)) for name in names])
        return found if np.all(found > 0.0) else None
    if new_rows:
        raise value_error(
            "{class_weight}='balanced' counts classes by their numbers in the rows of the fit, which new rows do not "
            "know: calibrate a model with cross-validation on those, or fit it with the weights of classes by name."
        )
    found, codes = np.ones(len(names)), data.class_codes
    assert codes is not None
    live = data.weights[part] > 0.0
    found[codes[part][live]] = data.class_factors[part][live]
    return found


def _bins(p: Array, hit: Array, s: Array, n_bins: int, level: float) -> list[tuple[Any, ...]]:
    """Rows, mean probability, share and its interval, of bins with equal numbers of rows."""
    count = max(1, min(n_bins, len(p) // _ROWS_OF_BIN))
    cuts = np.quantile(p, np.arange(1, count) / count)
    bin_of = np.searchsorted(cuts, p)
    z, found = -float(ndtri(0.5 * (1.0 - level))), []
    for b in np.unique(bin_of):
        own = bin_of == b
        weight = s[own]
        share, size = weight @ hit[own] / weight.sum(), weight.sum() ** 2 / (weight @ weight)
        middle = (share + z * z / (2.0 * size)) / (1.0 + z * z / size)
        half = z / (1.0 + z * z / size) * np.sqrt(share * (1.0 - share) / size + z * z / (4.0 * size * size))
        low, high = max(0.0, middle - half), min(1.0, middle + half)
        found.append((int(own.sum()), weight @ p[own] / weight.sum(), share, low, high))
    return found


def _line(p: Array, hit: Array, s: Array) -> tuple[float, float, float, float]:
    """Intercept beside the log-odds, its error, and slope of the log-odds, its error."""
    least = np.finfo(np.float64).eps
    odds = logit(np.clip(p, least, 1.0 - least))
    ones = np.ones((len(odds), 1))
    level = _regression(ones, odds, hit, s)
    slope = (
        _regression(np.column_stack([ones, odds]), np.zeros(len(odds)), hit, s)
        if np.ptp(odds) > 1e-9
        else None
    )
    return (*((np.nan, np.nan) if level is None else level), *((np.nan, np.nan) if slope is None else slope))


def _regression(Z: Array, known: Array, hit: Array, s: Array) -> tuple[float, float] | None:
    """The last coefficient of a logistic regression and its robust error; None where it has no minimum."""
    if not 0.0 < s @ hit < s.sum():
        return None

    def loss(beta: Array) -> float:
        z = known + Z @ beta
        return float(s @ (np.logaddexp(0.0, z) - hit * z))

    beta = np.zeros(Z.shape[1])
    for _ in range(_STEPS):
        p = expit(known + Z @ beta)
        slope, bend = Z.T @ (s * (hit - p)), (Z.T * (s * p * (1.0 - p))) @ Z
        if not np.linalg.cond(bend) < 1e14:
            return None
        step, here = np.linalg.solve(bend, slope), loss(beta)
        while loss(beta + step) > here + 1e-12 * abs(here) and np.max(np.abs(step)) > 1e-12:
            step *= 0.5
        beta = beta + step
        if np.max(np.abs(step)) <= 1e-10 * max(1.0, float(np.max(np.abs(beta)))):
            break
    if np.max(np.abs(beta)) > _FAR:
        return None
    p = expit(known + Z @ beta)
    bread = np.linalg.inv((Z.T * (s * p * (1.0 - p))) @ Z)
    meat = (Z.T * np.square(s * (hit - p))) @ Z
    return float(beta[-1]), float(np.sqrt((bread @ meat @ bread)[-1, -1]))
