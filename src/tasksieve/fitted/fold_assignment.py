r"""Fold assignment: rows shuffled within tasks, stratified by class, whole groups together.

Without groups, the fold of a row depends on the seed, on its task's place among the tasks and on that task's observed
rows alone: not on other tasks, nor on rows without a label, nor on the form in which the data came.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..messages import ParameterError

NEVER = -1  # the fold of rows that are never held out: nothing would be left to learn from


def read_seed(random_state: Any) -> int:
    """``random_state`` as the seed of the folds; None is 0, a generator gives one."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    if type(random_state) is not bool and isinstance(random_state, Integral):
        seed = int(random_state)
        if 0 <= seed < 2**32:
            return seed
    raise ParameterError(
        "random_state", "must be None, an integer from 0 to 2**32 - 1, or a generator of random numbers", random_state
    )


def random_numbers(random_state: Any) -> Any:
    """``random_state`` as what draws numbers, as in scikit-learn: None is the generator that all share."""
    if random_state is None or isinstance(random_state, np.random.Generator | np.random.RandomState):
        return check_random_state(None) if random_state is None else random_state
    return np.random.RandomState(read_seed(random_state))


def assign_rows(
    offsets: np.ndarray,
    classes: np.ndarray,
    observed: np.ndarray,
    n_folds: int,
    seed: int,
    within: np.ndarray | None = None,
) -> np.ndarray:
    """The fold in which each row is held out.

    Each class of each task is spread over the folds as evenly as it can be, and so is each task. A row that is the only
    one of its class in its task is never held out.

    - `offsets` (int array of shape (T + 1,)): Task t has the rows ``offsets[t]:offsets[t + 1]``.
    - `classes` (int array of shape (N,)): From 0; all 0 where targets are numbers.
    - `observed`: bool array of shape (N,)
    - `within`: Parts of the classes that are spread evenly, too, as far as their sizes allow.
    """
    fold = np.full(len(observed), NEVER)
    for t, (start, stop) in enumerate(pairwise(offsets.tolist())):
        rows = start + np.flatnonzero(observed[start:stop])
        # RandomState: its numbers are the same in every version of NumPy
        rows = np.random.RandomState([seed, t]).permutation(rows)
        if within is not None:
            rows = rows[np.argsort(within[rows], kind="stable")]
        rows = rows[np.argsort(classes[rows], kind="stable")]
        rows = rows[np.bincount(classes[rows])[classes[rows]] > 1]
        # the fold that begins: tasks of one size take turns
        fold[rows] = (t * len(rows) + np.arange(len(rows))) % n_folds
    return fold


def assign_task_rows(n_rows: int, position: int, n_folds: int, seed: int) -> np.ndarray:
    """The folds of `assign_rows` for the observed rows of one task without classes, in as few bytes as they need."""
    kind = np.int8 if n_folds <= 127 else np.int32
    fold = np.full(n_rows, NEVER, dtype=kind)
    if n_rows > 1:
        rows = np.random.RandomState([seed, position]).permutation(np.arange(n_rows, dtype=np.int32))
        step = 1 << 20
        for low in range(0, n_rows, step):
            part = rows[low : low + step]
            fold[part] = (position * n_rows + np.arange(low, low + len(part))) % n_folds
    return fold


def assign_groups(strata: np.ndarray, groups: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold in which each group is held out.

    The largest come first, those of one size in random order; each goes to the fold that has the smallest
    share of its strata so far, or of two such to the one with fewer rows. A group that holds all rows of a stratum
    is never held out.

    - `strata` (int array of shape (n,)): From 0: the task, or the class of a task, of each observed row.
    - `groups` (int array of shape (n,)): From 0: the group of each observed row.
    - returns int array, one entry for each group.
    """
    n_strata = int(strata.max()) + 1
    pairs, counts = np.unique(groups.astype(np.int64) * n_strata + strata, return_counts=True)
    of_group, of_stratum = pairs // n_strata, pairs % n_strata
    n_groups = int(groups.max()) + 1
    fold = np.full(n_groups, NEVER)
    alone = np.bincount(of_stratum, minlength=n_strata) == 1
    needed = np.unique(of_group[alone[of_stratum]])
    share = counts / np.bincount(strata, minlength=n_strata)[of_stratum]
    sizes = np.bincount(groups, minlength=n_groups)
    ties = np.random.RandomState([seed]).permutation(n_groups)
    starts = np.searchsorted(of_group, np.arange(n_groups + 1))
    held, rows_held = np.zeros((n_folds, n_strata)), np.zeros(n_folds, dtype=np.int64)
    free = np.ones(n_groups, dtype=bool)
    free[needed] = False
    for g in np.lexsort((ties, -sizes)).tolist():
        if free[g] and sizes[g]:
            part = slice(starts[g], starts[g + 1])
            own = of_stratum[part]
            f = np.lexsort((rows_held, held[:, own] @ counts[part]))[0]
            held[f, own] += share[part]
            rows_held[f] += sizes[g]
            fold[g] = f
    return fold
