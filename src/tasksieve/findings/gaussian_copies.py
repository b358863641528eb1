"""Copies of features that are related to each other as the originals are, but not to y (model-X knockoffs).

For rows of a task with mean mu and covariance S, and any diagonal D with ``2 S - D`` positive,

    x~ | x  ~  N( x - D S^-1 (x - mu),  2 D - D S^-1 D )

makes (x, x~) a normal vector in which any feature may change places with its copy (Candes, Fan, Janson and Lv 2018).
Here S is a correlation matrix common to all tasks between the standard deviations of each task, or the user's
covariance; D is the largest multiple of the variances that is possible ("equicorrelated").
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigvalsh
from sklearn.covariance import ledoit_wolf

from ..messages import ParameterError
from .canonical import Canonical

Array = np.ndarray[Any, Any]

ROWS_A_FEATURE = 2  # beside the means: with fewer, a covariance of so many features is mostly shrinkage
MOST_FEATURES = 10_000  # square matrices of these are inverted
_INSIDE = 1.0 - 1e-6  # of the largest D: so that what is left has a root
_CONSTANT = 1e-12


class GaussianCopies:
    """Random copies of the features of all tasks."""

    def __init__(self, columns: Array, covariance: Any, order: Canonical) -> None:
        self._columns, self._order = columns, order
        count = columns.shape[1]
        if count > MOST_FEATURES:
            raise ValueError(
                f"X has {count} features, and copies need matrices of {count} x {count} numbers: more than "
                f"{MOST_FEATURES} are not for KnockoffSelection. Choose fewer beforehand, without looking at y."
            )
        self._blocks = [columns[rows] for rows in order.rows]
        self._means = [block.mean(axis=0) for block in self._blocks]
        if isinstance(covariance, str):
            if covariance != "shrunk":
                raise ParameterError("covariance", "must be 'shrunk' or an array", covariance)
            self._sizes = [_deviations(block) for block in self._blocks]
            root = self._pooled(count)
        else:
            given = read_covariance(covariance, count)
            deviations = np.sqrt(np.diag(given))
            self._sizes = [deviations] * len(self._blocks)
            root = given / np.outer(deviations, deviations)
        self._inverse = cho_factor(root, lower=True)
        least = float(eigvalsh(root, subset_by_index=[0, 0])[0])
        #: part of each variance that a copy does not share with its original
        self.difference = _INSIDE * min(1.0, 2.0 * least)
        s = self.difference
        rest = 2.0 * s * np.eye(count) - s**2 * cho_solve(self._inverse, np.eye(count))
        values, vectors = np.linalg.eigh(rest)
        self._root = vectors * np.sqrt(np.maximum(values, 0.0))

    def _pooled(self, count: int) -> Array:
        """The correlations within tasks, shrunk as Ledoit and Wolf (2004) have it."""
        free = sum(len(block) - 1 for block in self._blocks)
        if free < ROWS_A_FEATURE * count:
            raise ValueError(
                f"covariance='shrunk': {sum(map(len, self._blocks))} rows in {len(self._blocks)} task(s) do not "
                f"determine the covariance of {count} features; it takes {ROWS_A_FEATURE} rows a feature, "
                f"{ROWS_A_FEATURE * count} beside one for each task. Choose fewer features beforehand, without "
                "looking at y, or give covariance=."
            )
        scaled = []
        for block, mean, size in zip(self._blocks, self._means, self._sizes, strict=True):
            scaled.append(np.where(size > 0.0, (block - mean) / np.where(size > 0.0, size, 1.0), 0.0))
        found, _ = ledoit_wolf(np.concatenate(scaled), assume_centered=True)
        deviations = np.sqrt(np.maximum(np.diag(found), 1e-300))
        return np.asarray(found / np.outer(deviations, deviations))

    def draw(self, seed: int, number: int) -> Array:
        """Copies of all rows; of rows that are not observed the rows themselves."""
        copies = self._columns.copy()
        for k, (rows, block) in enumerate(zip(self._order.rows, self._blocks, strict=True)):
            mean, size = self._means[k], self._sizes[k]
            scaled = (block - mean) / np.where(size > 0.0, size, 1.0)
            noise = self._order.stream(seed, k, more=(number,)).standard_normal(block.shape) @ self._root.T
            moved = scaled - self.difference * cho_solve(self._inverse, scaled.T).T + noise
            copies[rows] = mean + size * moved
        return copies


def read_covariance(covariance: Any, count: int) -> Array:
    """The user's covariance of the features, refused where it is none."""
    try:
        found = np.array(covariance, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("covariance", f"must be 'shrunk' or an array of numbers: {error}") from error
    if found.shape != (count, count):
        raise ValueError(f"covariance has shape {found.shape}, but X has {count} features: give ({count}, {count}).")
    if not np.all(np.isfinite(found)) or not np.allclose(found, found.T, rtol=1e-8, atol=0.0):
        raise ValueError("covariance must be a symmetric matrix of finite numbers.")
    deviations = np.sqrt(np.maximum(np.diag(found), 0.0))
    if not np.all(deviations > 0.0):
        raise ValueError(f"covariance: the variance of feature {int(np.argmin(np.diag(found)))} is not positive.")
    least = float(eigvalsh(found / np.outer(deviations, deviations), subset_by_index=[0, 0])[0])
    if least < 1e-8:
        raise ValueError(
            f"covariance is not positive definite (the smallest eigenvalue of its correlations is {least:.1e}): shrink "
            "it towards its diagonal, or leave out features that others determine."
        )
    return found


def _deviations(block: Array) -> Array:
    """Standard deviations; 0 where a column is constant: its copy is the same."""
    if len(block) < 2:
        return np.zeros(block.shape[1])
    found = block.std(axis=0, ddof=1)  # or else copies would be shorter than their originals
    return np.where(found > _CONSTANT * np.abs(block).max(axis=0, initial=0.0), found, 0.0)
