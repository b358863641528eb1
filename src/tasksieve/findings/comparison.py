"""What a comparison of models has found: losses and scores by task, differences, tests, words, pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtr, stdtrit

from ..docstrings import described_by
from ..fitted.columns import Columns
from ..fitted.quality import ALL, HeldOutQuality
from ..optional import data_frame
from ..plotting import AXES, DRAWN_ON, dumbbells
from ..tasks import some_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

Array = np.ndarray[Any, Any]

WORDS = {
    "shared": "the shared model",
    "pretrained": "models of tasks that start from one for all rows",
    "own": "one model per task",
    "pooled": "one model for all rows",
    "mean": "the task's mean",
}
FREQUENCIES = "the task's class frequencies"
HAZARDS = "the task's baseline hazard"


@dataclass(frozen=True)
class Differences:
    """Mean loss of the shared model minus that of a rival: below 0, sharing is better.

    Attributes
    ----------
    values, errors : arrays of shape (T,)
        By task, and standard errors (widened, as those of `HeldOutQuality`).
    pvalues : array of shape (T,)
        Of a paired t test, two-sided.
    adjusted : array of shape (T,)
        The same after Holm's adjustment for the number of tasks.
    overall, overall_error, overall_pvalue : float
        Of the mean over tasks.
    freedom : array of shape (T + 1,)
        Degrees of freedom, of the mean last.
    """

    values: Array
    errors: Array
    pvalues: Array
    adjusted: Array
    overall: float
    overall_error: float
    overall_pvalue: float
    freedom: Array

    @classmethod
    def of(cls, values: Array, errors: Array, overall_error: float, freedom: Array) -> Differences:
        overall = float(np.nanmean(values))
        every = np.append(values, overall)
        pvalues = t_test(every, np.append(errors, overall_error), freedom)
        return cls(
            values, errors, pvalues[:-1], holm(pvalues[:-1]), overall, overall_error, float(pvalues[-1]), freedom
        )

    def intervals(self, level: float) -> tuple[Array, Array]:
        """Of the tasks and, last, of their mean: two arrays of shape (T + 1,)."""
        half = stdtrit(self.freedom, 0.5 + 0.5 * level) * np.append(self.errors, self.overall_error)
        middle = np.append(self.values, self.overall)
        return middle - half, middle + half


def t_test(values: Array, errors: Array, freedom: Array) -> Array:
    """Two-sided p-values of no difference; 1 where there is none at all, NaN where it is not known."""
    ratio = np.divide(np.abs(values), errors, out=np.where(errors == 0.0, np.inf, np.nan), where=errors > 0.0)
    found = np.minimum(2.0 * stdtr(freedom, -ratio), 1.0)
    return np.where(values == 0.0, 1.0, found)


def holm(pvalues: Array) -> Array:
    """Holm's (1979) step-down adjustment; NaN stays out of it."""
    adjusted, known = np.full(len(pvalues), np.nan), np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    steps = pvalues[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


@dataclass(frozen=True, repr=False)
class Comparison(Columns):
    """What `compare` has found.

    Attributes
    ----------
    tasks : array of shape (T,)
    models : tuple of str
        "shared", "pretrained" (where it was asked for), "own", "pooled" (where it takes part), "mean".
    quality : dict of HeldOutQuality
        Of each model on rows that it had not seen, strength chosen without them: ``quality["own"].values``. Beside each
        of them is the null model of the shared one: intercepts and unpenalised features.
    differences : dict of Differences
        The shared model's mean loss minus that of each other: ``differences["own"].adjusted``.
    loss : str
        What losses are; smaller is better.
    score : str
        The measure beside it, R², D² or accuracy; greater is better.
    level : float
        Of the intervals.
    folds : str
        How the folds were made, in words.
    interrupted : bool
        Whether it was stopped: then the figures are about the rows of the folds that were finished.
    n_finished, n_folds : int
        Outer folds finished, and asked for.
    """

    tasks: Array
    models: tuple[str, ...]
    quality: dict[str, HeldOutQuality]
    differences: dict[str, Differences]
    loss: str
    score: str
    level: float
    folds: str
    n_finished: int
    n_folds: int
    classes: bool = False

    @property
    def interrupted(self) -> bool:
        return self.n_finished < self.n_folds

    @property
    def note(self) -> str:
        """What the figures are about, in words."""
        one = self.quality["shared"]
        stopped = ""
        if self.interrupted:
            stopped = f"Interrupted: only the rows of {self.n_finished} of {self.n_folds} folds count. "
        return (
            f"{stopped}Nested cross-validation ({self.folds}): no row that judges a model took part in choosing or "
            f"fitting it. Losses and {self.level:.0%} intervals are about models that learn from "
            f"{self.n_folds - 1}/{self.n_folds} of the rows; standard errors are widened by {one.widening:.2f}, since "
            "the folds share most of these."
        )

    def __repr__(self) -> str:
        losses = ", ".join(f"{name} {self._loss(name):.4g}" for name in self.models)
        versus = self.differences["own"]
        return (
            f"Comparison({len(self.tasks)} tasks, mean {self.loss}: {losses}; shared - own = {versus.overall:.3g}, "
            f"p = {versus.overall_pvalue:.2g}{', interrupted' if self.interrupted else ''})"
        )

    def _loss(self, name: str) -> float:
        return float(self.quality[name].overall[-1])

    def _words(self, name: str) -> str:
        if name == "mean" and self.score == "concordance":
            return HAZARDS
        return FREQUENCIES if name == "mean" and self.classes else WORDS[name]

    def summary(self) -> str:
        """The finding in plain words."""
        versus, doubt = self.differences["own"], 1.0 - self.level
        low, high = (float(end[-1]) for end in versus.intervals(self.level))
        if versus.overall_pvalue <= doubt:
            verdict = "Sharing helps" if versus.overall < 0 else "Sharing does harm"
        else:
            verdict = "Whether sharing helps cannot be decided from these rows"
        figures = f"{self._loss('shared'):.4g} with the shared model, {self._loss('own'):.4g} with one model per task"
        sure = versus.adjusted <= doubt
        better, worse = sure & (versus.values < 0), sure & (versus.values > 0)
        count = len(self.tasks)
        lines = [
            f"{verdict}. Mean {self.loss} over {count} tasks, on rows that no model had seen: {figures}; a difference "
            f"of {versus.overall:.3g} ({self.level:.0%} interval {low:.3g} to {high:.3g}, "
            f"p = {versus.overall_pvalue:.2g}).",
            f"Task by task, the shared model has the smaller loss in {np.count_nonzero(versus.values < 0)} of {count}. "
            f"After Holm's adjustment (p <= {doubt:.2g}) it is surely better in {self._named(better)}, and surely "
            f"worse in {self._named(worse)}.",
        ]
        others = [name for name in self.models if name not in ("shared", "own")]
        beside = "; ".join(f"{self._loss(name):.4g} with {self._words(name)}" for name in others)
        lines.append(f"Beside that: {beside}.")
        if "pooled" in others:
            apart = self.differences["pooled"]
            if apart.overall > 0 and apart.overall_pvalue <= doubt:
                lines.append(
                    f"One model for all rows does better still (p = {apart.overall_pvalue:.2g}): the tasks hardly "
                    "differ."
                )
        if self._loss("shared") >= self._loss("mean"):
            lines.append(f"The shared model is no better than {self._words('mean')}: features explain nothing here.")
        return "\n".join([*lines, self.note])

    def _named(self, chosen: Array) -> str:
        names = self.tasks[chosen].tolist()
        return f"{len(names)} ({some_of(names)})" if names else "none"

    def to_frame(self, kind: str = "tasks") -> DataFrame:
        """The figures as a pandas data frame.

        Parameters
        ----------
        kind : {"tasks", "models"}
            "tasks": one row per task, and a last one, "all tasks", of their means: task, rows, ``loss_...`` and
            ``score_...`` of each model, then the difference of the losses of the shared model and of one model per
            task: difference, low, high, pvalue, adjusted (Holm; not for the last row); score_error, of the shared
            model; of the null model null_loss and null_score; and what the shared model adds to the latter, increment,
            with increment_error.
            "models": one row for each task, model and measure: task, rows, model, measure, value, error, low, high,
            null_value, null_error, increment, increment_error.

        Returns
        -------
        pandas.DataFrame
        """
        return data_frame(self, self.to_dict(kind), labels=["task"])

    def to_dict(self, kind: str = "tasks") -> dict[str, list[Any]]:
        """The columns of `to_frame` as lists; ``found["pvalue"]`` is a column of "tasks".

        Parameters
        ----------
        kind : {"tasks", "models"}

        Returns
        -------
        dict of lists
        """
        columns: dict[str, list[Any]]
        if kind == "models":
            columns = {}
            for name in self.models:
                part = self.quality[name].to_dict(self.level)
                for key, values in {"model": [name] * len(part["task"]), **part}.items():
                    columns.setdefault(key, []).extend(values)
            first = ("task", "rows", "model")
            return {key: columns[key] for key in (*first, *(key for key in columns if key not in first))}
        if kind != "tasks":
            raise ValueError(f"kind must be 'tasks' or 'models'; got {kind!r}.")
        versus, rows = self.differences["own"], self.quality["shared"].n_rows
        low, high = versus.intervals(self.level)
        columns = {"task": [*self.tasks.tolist(), ALL], "rows": [*rows.tolist(), int(rows.sum())]}
        for position, word in ((-1, "loss"), (0, "score")):
            for name in self.models:
                own = self.quality[name]
                columns[f"{word}_{name}"] = [*own.values[:, position].tolist(), float(own.overall[position])]
        columns |= {
            "difference": [*versus.values.tolist(), versus.overall],
            "low": low.tolist(),
            "high": high.tolist(),
            "pvalue": [*versus.pvalues.tolist(), versus.overall_pvalue],
            "adjusted": [*versus.adjusted.tolist(), float("nan")],
        }
        shared, width = self.quality["shared"].to_dict(self.level), len(self.quality["shared"].measures)
        columns["score_error"] = shared["error"][::width]
        columns["null_loss"] = shared["null_value"][width - 1 :: width]
        columns["null_score"] = shared["null_value"][::width]
        return columns | {name: shared[name][::width] for name in ("increment", "increment_error")}

    @described_by(AXES, returns=DRAWN_ON)
    def plot(self, ax: Any = None, *, most: int = 40) -> Axes:
        """Draw the score of each task with the shared model and with its own, tasks that gain most on top.

        Parameters
        ----------
        most : int, default=40
            Tasks drawn: those with the largest differences; the title says how many there are.
        """
        return dumbbells(self, ax, most)
