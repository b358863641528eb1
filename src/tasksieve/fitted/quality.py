"""How well rows were predicted that a model had not learned from: numbers by task, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from ..optional import data_frame
from .concordance import FEW_PAIRS

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = "all tasks"  # what the mean over tasks is called in frames
GREATER = ("R²", "D²", "accuracy", "AUC", "concordance")  # measures of which greater is better


@dataclass(frozen=True)
class HeldOutQuality:
    r"""Quality on held-out rows, task by task and overall, with standard errors.

    Attributes
    ----------
    tasks : ndarray of shape (T,)
    measures : tuple of str
        Reported, the headline first: "R²" or "D²" and the model's loss; "accuracy", "AUC" and the loss of classes;
        "concordance", "D²" and the deviance for each event of survival. Ordered classes have a "mean absolute error",
        too: how many classes the most probable one is off. Of losses and errors smaller is better, of the others
        greater.
    values : ndarray of shape (T, M)
        Of each task; NaN where a measure is not defined: no row held out, constant labels, one class only.
    errors : ndarray of shape (T, M)
        Standard errors; NaN where there are fewer than two units.
    overall, overall_errors : ndarray of shape (M,)
        Means over the tasks that have a value, and their standard errors.
    n_rows : int ndarray of shape (T,)
        Labels that were held out.
    n_units : int ndarray of shape (T,)
        Independent units among them: rows, or whole ``groups``; folds, where only their sums are known.
    n_all_units : int
        Of all tasks together: a row of a matrix shared by all tasks is one unit, and so is a group.
    unit : {"rows", "groups", "folds"}
    widening : float
        What standard errors were multiplied by, because the models of the folds share most of their rows.
    folds : str
        How the folds were made, in words.
    n_tried : int
        Models that the held-out rows were used to choose among: values of alpha, times those of other parameters. Where
        it is more than 1 the figures are too good, and `optimistic` is True.
    tuned : str
        What they have chosen: "alpha", "C".
    one_class_folds : int ndarray of shape (T,), or None
        Of classes: folds of each task that held out one class only, and so have no part in AUC.
    pairs : int ndarray of shape (T,), or None
        Of survival: how many comparable pairs the concordance of each task is made of.
    fold_pairs : int ndarray of shape (T,), or None
        How many of them are of one fold and stratum. Of a task that has fewer than 1,000 such pairs, the concordance is
        over all pairs of a stratum: each row is judged by the model that had not learned from it, whatever its fold.
    null_values, null_errors : ndarrays of shape (T, M), or None
        The same measures of the null model, which has the intercepts and the unpenalised features only. It is fitted to
        the training rows of each fold, as the model is. None where it is not known.
    null_overall, null_overall_errors : ndarrays of shape (M,), or None
        Its means over tasks.
    null_covariates : int
        Unpenalised features of the null model.
    increment_errors, overall_increment_errors : ndarrays of shape (T, M) and (M,), or None
        Standard errors of `increments` and `overall_increments`: of differences on the same rows.

    Notes
    -----
    A measure is a function of weighted means over rows. A standard error adds the squares of what units contribute to
    its first-order change (the infinitesimal jackknife; for AUC that is DeLong's), and is then widened,

    .. math:: \widehat{\mathrm{se}}^2 = \Bigl(1 + \frac{K}{K - 1}\Bigr) \frac{G}{G - 1} \sum_{g = 1}^G
        \Bigl(\sum_{i \in g} c_i\Bigr)^2, \qquad
        c_i = \frac{s_i (\ell_i - L)}{\sum_k s_k} \ \text{for a mean loss } L.

    The first factor (Nadeau and Bengio 2003) is there because the models of K folds share most of the rows that they
    learn from: without it intervals of 90 % cover less (``benchmarks/compare_coverage.py``).
    The figures are about models that learn from (K - 1) / K of the rows.
    AUC is the weighted share of pairs, one row of each class, that scores put in the right order. Pairs are formed
    within a fold and a task, since scores of different models are not on one scale: a model that knows the frequencies
    of its training rows alone has 1/2, as it should. A fold with one class only has no pairs; it is left out and
    counted. Of several classes it is the mean of each against the rest. R² and D² compare with the best constant of all
    held-out rows of a task, which no model knows: so the null model's are mostly a little below 0.
    Of survival, concordance is Harrell's, with pairs formed within a fold, a task and a stratum (`fold_pairs`). The
    deviance of a fold
    is that of all rows less that of the rows learned from, and D² is one minus its ratio to that of a model without
    features; terms of rows are derivatives in the logarithms of their weights, which is what a standard error needs.
    """

    tasks: np.ndarray
    measures: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray
    overall: np.ndarray
    overall_errors: np.ndarray
    n_rows: np.ndarray
    n_units: np.ndarray
    n_all_units: int
    widening: float = 1.0
    unit: str = "rows"
    folds: str = ""
    n_tried: int = 1
    tuned: str = "alpha"
    one_class_folds: np.ndarray | None = None
    pairs: np.ndarray | None = None
    fold_pairs: np.ndarray | None = None
    null_values: np.ndarray | None = None
    null_errors: np.ndarray | None = None
    null_overall: np.ndarray | None = None
    null_overall_errors: np.ndarray | None = None
    null_covariates: int = 0
    increment_errors: np.ndarray | None = None
    overall_increment_errors: np.ndarray | None = None

    @property
    def optimistic(self) -> bool:
        """Whether the rows that judge have also chosen alpha."""
        return self.n_tried > 1

    @property
    def caveat(self) -> str:
        """What stands beside figures that are too good; nothing where they are not."""
        return f"optimistic: {self.tuned} was tuned on these rows" if self.optimistic else ""

    @property
    def increments(self) -> np.ndarray | None:
        """What the penalised features add: ``values - null_values``. Of losses below 0 is better."""
        return None if self.null_values is None else self.values - self.null_values

    @property
    def overall_increments(self) -> np.ndarray | None:
        """Means over the tasks in which both are known."""
        increments = self.increments
        if increments is None:
            return None
        known = np.isfinite(increments)
        sums = np.where(known, increments, 0.0).sum(axis=0)
        return np.divide(sums, known.sum(axis=0), out=np.full(len(sums), np.nan), where=known.any(axis=0))

    @property
    def null_words(self) -> str:
        """What the null model is."""
        constants = "intercepts"
        if "concordance" in self.measures:  # the headline of survival models, one of several where outcomes are unlike
            alone = self.measures[0] == "concordance"
            constants = "baseline hazards" if alone else "intercepts, thresholds, baseline hazards"
        return null_model_words(self.null_covariates, constants)

    @property
    def left_out_words(self) -> str:
        """How many folds have no part in AUC, as a sentence; nothing where all have."""
        if self.one_class_folds is None or not self.one_class_folds.any():
            return ""
        n, tasks = int(self.one_class_folds.sum()), int(np.count_nonzero(self.one_class_folds))
        among = f" (in {tasks:,} of {len(self.tasks):,} tasks)" if len(self.tasks) > 1 else ""
        many = "s" * (n != 1)
        return f"AUC leaves out {n:,} fold{many}{among} whose held-out rows are of one class."

    @property
    def pairs_words(self) -> str:
        """Number of pairs of the concordance, in sentences, with a warning where they are few; nothing of other
        measures."""
        return "" if self.pairs is None else concordance_words(self.pairs, self.fold_pairs)

    @property
    def note(self) -> str:
        """Where the figures come from, in words."""
        made = f"Out of fold ({self.folds})." if self.folds else "Out of fold."
        if "AUC" in self.measures:
            made += " AUC compares rows of the same fold and task."
        if "concordance" in self.measures:
            made += " Concordance compares rows of the same fold, task and stratum."
            made = f"{made} {self.pairs_words}".rstrip()
        made = f"{made} {self.left_out_words}".rstrip()
        if not self.optimistic:
            return f"{made} One model was tried: nothing was chosen by the rows that judge it."
        return (
            f"{made} The figures are {self.caveat}, among {self.n_tried:,} models; ts.compare nests the choice inside "
            "folds of its own, and is free of that."
        )

    def intervals(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Approximate intervals of the tasks and, in a last row, of their mean: two arrays of shape (T + 1, M).

        Parameters
        ----------
        level : float, default=0.9
        """
        errors = np.vstack([self.errors, self.overall_errors])
        return self._around(np.vstack([self.values, self.overall]), errors, level)

    def increment_intervals(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray] | None:
        """The same of `increments`: what the penalised features add to intercepts and covariates. None where the null
        model is not known. They are intervals of differences on the same rows, and narrower than the two of the models
        would suggest.

        Parameters
        ----------
        level : float, default=0.9
        """
        if self.increments is None or self.overall_increments is None:
            return None
        assert self.increment_errors is not None
        assert self.overall_increment_errors is not None
        errors = np.vstack([self.increment_errors, self.overall_increment_errors])
        return self._around(np.vstack([self.increments, self.overall_increments]), errors, level)

    def _around(self, middle: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        freedom = np.maximum(np.append(self.n_units, self.n_all_units) - 1.0, 1.0)
        half = stdtrit(freedom, 0.5 + 0.5 * level)[:, None] * errors
        return middle - half, middle + half

    def to_frame(self, level: float = 0.9) -> DataFrame:
        """A pandas data frame: one row for each task and measure, then one for their mean over tasks ("all tasks").

        Parameters
        ----------
        level : float, default=0.9
            Of the intervals, low to high.

        Returns
        -------
        pandas.DataFrame
            With columns task, rows, measure, value, error, low, high; of survival pairs (that a concordance is made
            of); where the null model is known, null_value,
            null_error, increment (value - null_value), increment_error, increment_low and increment_high.
        """
        return data_frame(self, self.to_dict(level), labels=["task"])

    def to_dict(self, level: float = 0.9) -> dict[str, list[Any]]:
        """The columns of `to_frame` as lists.

        Parameters
        ----------
        level : float, default=0.9

        Returns
        -------
        dict of lists
        """
        low, high = self.intervals(level)
        names, width = [*self.tasks.tolist(), ALL], len(self.measures)
        columns: dict[str, list[Any]] = {
            "task": [name for name in names for _ in range(width)],
            "rows": np.repeat(np.append(self.n_rows, self.n_rows.sum()), width).tolist(),
            "measure": list(self.measures) * len(names),
            **self._pairs_column(),
            "value": np.vstack([self.values, self.overall]).ravel().tolist(),
            "error": np.vstack([self.errors, self.overall_errors]).ravel().tolist(),
            "low": low.ravel().tolist(),
            "high": high.ravel().tolist(),
        }
        if self.null_values is not None:
            beside: dict[str, Any] = {
                "null_value": (self.null_values, self.null_overall),
                "null_error": (self.null_errors, self.null_overall_errors),
                "increment": (self.increments, self.overall_increments),
                "increment_error": (self.increment_errors, self.overall_increment_errors),
            }
            columns |= {name: np.vstack(both).ravel().tolist() for name, both in beside.items()}
        gains = self.increment_intervals(level)
        if gains is not None:
            columns |= {"increment_low": gains[0].ravel().tolist(), "increment_high": gains[1].ravel().tolist()}
        return columns

    def _pairs_column(self) -> dict[str, list[Any]]:
        """Pairs of each task and in all, beside concordance."""
        if self.pairs is None:
            return {}
        here = [name == "concordance" for name in self.measures]
        numbers = [*self.pairs.tolist(), int(self.pairs.sum())]
        return {"pairs": [number if own else None for number in numbers for own in here]}

    def __repr__(self) -> str:
        def figures(values: np.ndarray, errors: np.ndarray) -> str:
            each = zip(self.measures, values, errors, strict=True)
            return ", ".join(f"{name} {value:.3g} ± {error:.2g}" for name, value, error in each)

        count = f"{int(self.n_rows.sum()):,} rows of {len(self.tasks):,} task{'s' * (len(self.tasks) != 1)}"
        lines = [f"{figures(self.overall, self.overall_errors)} (mean over tasks ± standard error; {count})."]
        if self.null_overall is not None and self.null_overall_errors is not None:
            lines.append(f"The {self.null_words}: {figures(self.null_overall, self.null_overall_errors)}.")
        return "\n".join([*lines, self.note])


def concordance_words(pairs: np.ndarray, fold_pairs: np.ndarray | None = None) -> str:
    """Count the pairs that the concordance of each task is made of, and how many of these are within folds."""
    if not (known := pairs > 0).any():
        return ""
    own, several = pairs[known], np.count_nonzero(known) > 1
    said = f"Concordance is of {_from_to(own)} pairs{' a task' if several else ''}"
    within = own if fold_pairs is None else fold_pairs[known]
    if (across := within < own).any():
        some = f" in {np.count_nonzero(across):,} of {len(own):,} tasks" if several else ""
        said += f", over all folds{some}: within folds and strata there are only {_from_to(within[across])}"
    few = own[own < FEW_PAIRS]
    if not len(few):
        return f"{said}."
    some = f" in {len(few):,} of {len(own):,} tasks" if several else ""
    return f"{said}. Fewer than {FEW_PAIRS:,}{some}: a few rows decide it."


def _from_to(numbers: np.ndarray) -> str:
    least, most = int(numbers.min()), int(numbers.max())
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def null_model_words(n_covariates: int, constants: str = "intercepts") -> str:
    """What the null model is made of."""
    if not n_covariates:
        return f"null model ({constants} only)"
    many = "s" * (n_covariates != 1)
    return f"null model ({constants} and {n_covariates:,} covariate{many})"
