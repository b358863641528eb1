"""Groups of features as other programs write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..penalties import Groups
from .words import Words

Array = np.ndarray[Any, Any]


def labels_of_blocks(words: Words, groups: Any, n_features: int) -> Array:
    """The group of each feature: of blocks of one size, of blocks of given sizes, or of lists of features."""
    found = np.full(n_features, -1, dtype=np.int64)
    if np.isscalar(groups):
        size = int(np.asarray(groups).item())
        if size < 1 or n_features % size:
            raise words.error(f"groups={groups!r} does not cut {n_features} features into blocks of one size.")
        return np.repeat(np.arange(n_features // size), size)
    items = list(groups)
    if all(np.ndim(item) == 0 for item in items):
        sizes = np.asarray(items, dtype=np.int64)
        if sizes.sum() != n_features:
            raise words.error(f"groups holds sizes of blocks whose sum is {sizes.sum()}, for {n_features} features.")
        return np.repeat(np.arange(len(sizes)), sizes)
    for g, members in enumerate(items):
        found[np.asarray(members, dtype=np.int64)] = g
    if (found < 0).any() or sum(map(len, items)) != n_features:
        raise words.error(f"groups must hold each of the {n_features} features once.")
    return found


def labels_of_starts(words: Words, starts: Any, n_features: int) -> Array:
    """The group of each feature, from the first feature of each group."""
    first = np.asarray(starts, dtype=np.int64)
    if not len(first) or first[0] != 0 or (np.diff(first) <= 0).any() or first[-1] >= n_features:
        raise words.error("groups holds the first feature of each group, rising from 0.")
    return np.repeat(np.arange(len(first)), np.diff([*first.tolist(), n_features]))


def group_lasso(words: Words, n_features: int) -> tuple[Groups, Array | None]:
    """The penalty of celer's and skglm's GroupLasso, ``sum_g v_g ||w_g||``, and v where it is given."""
    labels = labels_of_blocks(words, words.take("groups"), n_features)
    return Groups(labels, weights=None), words.vector("weights", size=int(labels.max()) + 1)
