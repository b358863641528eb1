"""How well rows were predicted that a model had not learned from: numbers by task, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = "all tasks"  # what the mean over tasks is called in frames


@dataclass(frozen=True)
class HeldOutQuality:
    r"""Quality on held-out rows, task by task and overall, with standard errors.

    Attributes
    ----------
    tasks : ndarray of shape (T,)
    measures : tuple of str
        What is told, the headline first: "R²" or "D²" and the model's loss; "accuracy", "AUC" and the loss of classes.
        Of losses smaller is better, of the others greater.
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
        it is more than 1 the figures are slightly too good, and `optimistic` is True.

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
    AUC compares scores of all folds; of several classes it is the mean of each against the rest.
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

    @property
    def optimistic(self) -> bool:
        """Whether the rows that judge have also chosen alpha."""
        return self.n_tried > 1

    @property
    def note(self) -> str:
        """Where the figures come from, in words."""
        made = f"Out of fold ({self.folds})." if self.folds else "Out of fold."
        if not self.optimistic:
            return f"{made} One model was tried: nothing was chosen by the rows that judge it."
        return (
            f"{made} The model was chosen among {self.n_tried:,} by the same rows, so that the figures are slightly "
            "too good; ts.compare nests the choice inside folds of its own, and is free of that."
        )

    def intervals(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Approximate intervals of the tasks and, in a last row, of their mean: two arrays of shape (T + 1, M).

        Parameters
        ----------
        level : float, default=0.9
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        freedom = np.maximum(np.append(self.n_units, self.n_all_units) - 1.0, 1.0)
        half = stdtrit(freedom, 0.5 + 0.5 * level)[:, None] * np.vstack([self.errors, self.overall_errors])
        middle = np.vstack([self.values, self.overall])
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
            With columns task, rows, measure, value, error, low, high.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("HeldOutQuality.to_frame needs pandas: pip install pandas") from error
        columns = self.to_dict(level)
        return pandas.DataFrame({**columns, "task": pandas.Series(columns["task"], dtype=object)})

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
        return {
            "task": [name for name in names for _ in range(width)],
            "rows": np.repeat(np.append(self.n_rows, self.n_rows.sum()), width).tolist(),
            "measure": list(self.measures) * len(names),
            "value": np.vstack([self.values, self.overall]).ravel().tolist(),
            "error": np.vstack([self.errors, self.overall_errors]).ravel().tolist(),
            "low": low.ravel().tolist(),
            "high": high.ravel().tolist(),
        }

    def __repr__(self) -> str:
        figures = [
            f"{name} {value:.3g} ± {error:.2g}"
            for name, value, error in zip(self.measures, self.overall, self.overall_errors, strict=True)
        ]
        count = f"{int(self.n_rows.sum()):,} rows of {len(self.tasks):,} task{'s' * (len(self.tasks) != 1)}"
        return f"{', '.join(figures)} (mean over tasks ± standard error; {count}).\n{self.note}"
