"""Variants that carry too little information: no calls, one allele only, too rare, too often missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.arguments import check_number
from ..messages import value_error
from .matrix import Genotypes, task_order

Array = np.ndarray[Any, Any]


def frequencies(counts: Array) -> Array:
    """Frequency of the effect allele among calls, given numbers of two copies, one copy, missing, called."""
    called = counts[..., 3]
    copies = 2.0 * counts[..., 0] + counts[..., 1]
    return np.divide(copies, 2.0 * called, out=np.full(called.shape, np.nan), where=called > 0)


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
    given = {name: value for name, value in limits.items() if value is not None}
    for name, value in given.items():
        check_number(value, name, low=0, closed=True, high=1)
    if task is None and ("task_geno" in given or "task_maf" in given):
        raise value_error("{task_geno} and {task_maf} need {task}, the task of each person (or several cohorts).")
    _, offsets = task_order(X.n_rows, task)
    sizes = np.diff(offsets)
    left: list[Array] = []
    counted: dict[str, int] = {}
    for own, counts in X.count_blocks(task=task):
        stay = np.ones(len(own), dtype=bool)
        by_task = np.concatenate([counts, (sizes[:, None] - counts[..., 2:])], axis=-1)
        for words, bad in _too_little(by_task, sizes, given).items():
            counted[words] = counted.get(words, 0) + int(np.count_nonzero(bad & stay))
            stay &= ~bad
        left.append(own[stay])
    dropped = {**X.dropped, **{words: count for words, count in counted.items() if count or words.endswith(")")}}
    kept = np.concatenate(left)
    if not len(kept):
        shown = ", ".join(f"{count:,} {words}" for words, count in dropped.items() if count)
        raise ValueError(f"no variant is left: {shown}.")
    return X.with_variants(kept, dropped)


def _too_little(by_task: Array, sizes: Array, limits: dict[str, float]) -> dict[str, Array]:
    """Flags of variants by what is wrong, given their calls in each task: two copies, one copy, missing, called."""
    whole = by_task.sum(axis=1)
    common = _rarer(frequencies(whole))
    found = {"variants without a call": whole[:, 3] == 0, "variants with one allele only": common == 0.0}
    if "geno" in limits:
        found["variants with missing calls (geno)"] = whole[:, 2] > limits["geno"] * sizes.sum()
    if "task_geno" in limits:
        many = by_task[:, :, 2] > limits["task_geno"] * sizes
        found["variants with missing calls in a task (task_geno)"] = many.any(axis=1)
    if "maf" in limits:
        found["variants too rare (maf)"] = common < limits["maf"]
    if "task_maf" in limits:
        enough = _rarer(frequencies(by_task)) >= limits["task_maf"]
        found["variants too rare in a task (task_maf)"] = ~enough.all(axis=1)
    return found


def _rarer(frequency: Array) -> Array:
    return np.minimum(frequency, 1.0 - frequency)
