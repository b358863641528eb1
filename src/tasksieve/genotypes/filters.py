"""Variants that carry too little information: no calls, one allele only, too rare, too often missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..messages import value_error
from .matrix import Genotypes, task_order

Array = np.ndarray[Any, Any]


def check_part(value: Any, name: str) -> float:
    """A part of a whole."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be a number from 0 to 1; got {value!r}.")
    return float(value)


def frequencies(counts: Array) -> Array:
    """Frequency of the effect allele among calls, given numbers of two copies, one copy, missing, called."""
    called = counts[..., 3]
    copies = 2.0 * counts[..., 0] + counts[..., 1]
    return np.divide(copies, 2.0 * called, out=np.full(called.shape, np.nan), where=called > 0)


def with_called(counts: Array, sizes: Array) -> Array:
    """Counts of the kernel, and the number of calls beside them."""
    return np.concatenate([counts, (sizes[..., None] - counts[..., 2:])], axis=-1)


def filter_variants(
    X: Genotypes,
    *,
    geno: float | None = None,
    maf: float | None = None,
    task: Any = None,
    task_geno: float | None = None,
    task_maf: float | None = None,
) -> Genotypes:
    """The variants that are left; `dropped` says how many are not, each by the first reason.

    Parameters
    ----------
    X : Genotypes
    geno, maf : float, optional
        Largest part of missing calls, smallest frequency of the rarer allele, over all people.
    task : array of labels, optional
    task_geno, task_maf : float, optional
        The same in each task.
    """
    limits = {"geno": geno, "maf": maf, "task_geno": task_geno, "task_maf": task_maf}
    given = {name: check_part(value, name) for name, value in limits.items() if value is not None}
    if task is None and ("task_geno" in given or "task_maf" in given):
        raise value_error("{task_geno} and {task_maf} need {task}, the task of each person (or several cohorts).")
    _, offsets = task_order(X.n_rows, task)
    sizes = np.diff(offsets)
    reason = np.zeros(X.n_variants, dtype=np.int8)
    reasons = (
        "",
        "variants without a call",
        "variants with one allele only",
        "variants with missing calls (geno)",
        "variants with missing calls in a task (task_geno)",
        "variants too rare (maf)",
        "variants too rare in a task (task_maf)",
    )
    for own, counts in X.count_blocks(task):
        by_task = with_called(counts, sizes)
        whole = by_task.sum(axis=1)
        common = _rarer(frequencies(whole))
        found: list[Any] = [np.zeros(len(own), dtype=bool) for _ in reasons]
        found[1] = whole[:, 3] == 0
        found[2] = common == 0.0
        if "geno" in given:
            found[3] = whole[:, 2] > given["geno"] * X.n_rows
        if "task_geno" in given:
            found[4] = (by_task[:, :, 2] > given["task_geno"] * sizes).any(axis=1)
        if "maf" in given:
            found[5] = common < given["maf"]
        if "task_maf" in given:
            rare = _rarer(frequencies(by_task))
            found[6] = ~(rare >= given["task_maf"]).all(axis=1)
        for code in range(len(reasons) - 1, 0, -1):
            reason[own[found[code]]] = code
    dropped = dict(X.dropped)
    for code, words in enumerate(reasons[1:], start=1):
        if (count := int(np.count_nonzero(reason == code))) or words.rpartition("(")[2].rstrip(")") in given:
            dropped[words] = count
    left = np.flatnonzero(reason == 0)
    if not len(left):
        shown = ", ".join(f"{count:,} {words}" for words, count in dropped.items() if count)
        raise ValueError(f"no variant is left: {shown}.")
    return X.with_variants(left, dropped)


def _rarer(frequency: Array) -> Array:
    return np.minimum(frequency, 1.0 - frequency)
