"""Rubin's rules: estimates of several completed tables as one, with the uncertainty of the imputation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.stats import t as student

from ..fitted.arguments import check_level
from .columns import Estimates
from .refit import fit_support
from .split import estimate_task, refuse_loss

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class PooledEstimates(Estimates):
    """Coefficients without a penalty, pooled over imputations: columns of a table with a row for each feature and task.

    Attributes
    ----------
    feature, task : arrays
    estimate : array of float
        Mean over the imputations.
    std_error : array of float
        Root of the mean variance within the imputations plus 1 + 1/m times that between them. NaN after selection.
    lower, upper, pvalue : arrays of float
        By Student's distribution with ``df`` degrees of freedom. NaN after selection.
    df : array of float
        Of Barnard and Rubin.
    missing_information : array of float
        Share of the variance that is due to missing values.
    level : float
    note : str
        What the numbers are about.
    """

    df: Array
    missing_information: Array
    level: float
    note: str

    _beside: ClassVar[tuple[str, ...]] = ("level", "note")

    def __repr__(self) -> str:
        return f"PooledEstimates({self._counted()}): {self.note}"

    def told(self, names: Array | None, *, after_selection: bool) -> PooledEstimates:
        """The same with names of features; without intervals where the same rows have selected them."""
        found = self if names is None else replace(self, feature=names[self.feature])
        if not after_selection:
            return found
        unknown = np.full(len(self), np.nan)
        note = (
            "the features were selected on the same rows, so that there are estimates and no intervals. Name features "
            "beforehand, or select them on other rows"
        )
        return replace(found, std_error=unknown, lower=unknown, upper=unknown, pvalue=unknown, note=note)


def pool(model: Any, data: tuple[Any, ...], features: Array, tasks: Array, m: int, level: float) -> PooledEstimates:
    """Pool the unpenalised fits of some features to tables whose tasks are t m + a.

    With Q the estimates and U their variances, the pooled variance is ``mean(U) + (1 + 1/m) var(Q)``; the degrees of
    freedom are those of Barnard and Rubin (1999), which are never more than those of complete data.
    """
    check_level(level)
    X, y, codes, weights = data
    read = model._read_with(X, y, codes, weights, None)
    refuse_loss(model._loss_of(read))
    supports = [features] * read.n_tasks
    fits = fit_support(model, read, supports, range(read.n_tasks))
    place = {int(label): k for k, label in enumerate(read.tasks.tolist())}
    unit = np.arange(len(read.y))
    columns: dict[str, list[Array]] = {name: [] for name in ("feature", "task", "q", "u", "b", "nu")}
    for t in range(len(tasks)):
        own = [
            estimate_task(model, place[t * m + a], features, fits[place[t * m + a]], read, unit) for a in range(m)
        ]
        estimates = np.stack([one.coef for one in own])
        columns["q"].append(estimates.mean(axis=0))
        columns["u"].append(np.mean([np.square(one.errors) for one in own], axis=0))
        columns["b"].append(estimates.var(axis=0, ddof=1) if m > 1 else np.zeros(len(features)))
        columns["nu"].append(np.mean([one.df for one in own], axis=0))
        columns["feature"].append(features)
        columns["task"].append(np.full(len(features), t))
    flat = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in columns.items()}
    order = np.lexsort((flat["task"], flat["feature"]))
    flat = {name: column[order] for name, column in flat.items()}
    between = (1.0 + 1.0 / m) * flat["b"]
    variance = flat["u"] + between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(variance > 0.0, between / variance, 0.0)
        complete = flat["nu"]
        observed = (complete + 1.0) / (complete + 3.0) * complete * (1.0 - share)
        df = np.where(share > 0.0, 1.0 / (np.square(share) / max(m - 1, 1) + 1.0 / observed), complete)
        error = np.sqrt(variance)
        width = student.isf(0.5 * (1.0 - level), df) * error
        pvalue = 2.0 * student.sf(np.abs(flat["q"]) / error, df)
    return PooledEstimates(
        flat["feature"].astype(np.int64), tasks[flat["task"].astype(np.int64)], flat["q"], error, flat["q"] - width,
        flat["q"] + width, pvalue, df, share, float(level),
        f"{m} imputations pooled by Rubin's rules, intervals of {level:.0%} for features named beforehand",
    )  # fmt: skip
