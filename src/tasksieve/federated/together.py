"""Several problems on the same sites in the same rounds: all rows, folds, halves; and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..messages import value_error
from .answer import Answer
from .path import FederatedPath
from .question import Question

Array = np.ndarray[Any, Any]
#: questions of one round to the sums of their answers: the whole protocol
Ask = Callable[[list[Question]], Sequence[Answer]]


def follow(paths: Sequence[FederatedPath], ask: Ask, progress: Callable[[int], None] | None = None) -> int:
    """Follow paths to their ends; the number of rounds that it took.

    Parameters
    ----------
    paths : sequence of FederatedPath
        A leader stands before those that take from it.
    ask : callable
    progress : callable, optional
        Called after each round with its number.
    """
    asked = [path.first() for path in paths]
    takers: list[Callable[[Sequence[Answer]], None]] = [path.begin for path in paths]
    rounds = 0
    while any(asked):
        answers = ask([question for questions in asked for question in questions])
        start = 0
        for questions, take in zip(asked, takers, strict=True):
            if questions:
                take(answers[start : start + len(questions)])
            start += len(questions)
        rounds += 1
        if progress is not None:
            progress(rounds)
        asked, takers = [path.questions() for path in paths], [path.take for path in paths]
    return rounds


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of folds, from sums over sites.

    Attributes
    ----------
    scores : array of shape (n_values, n_folds)
        Loss of the held-out rows: the mean over tasks of that of each task, which is the score of the estimators'
        cross-validation.
    null_scores : array of shape (n_folds,)
        The same of the model without features.
    n_tasks : array of shape (n_folds,)
        How many tasks have held-out rows with a score.
    """

    scores: Array
    null_scores: Array
    n_tasks: Array

    def best(self, rule: str = "min") -> int:
        """The value with the least mean score, or ("1se") the first whose mean is within a standard error of that."""
        means = self.scores.mean(axis=1)
        least = int(np.argmin(means))
        if rule == "min" or self.scores.shape[1] < 2:
            return least
        error = float(self.scores[least].std(ddof=1)) / np.sqrt(self.scores.shape[1])
        return int(np.flatnonzero(means <= means[least] + error)[0])


def held_out(folds: Sequence[FederatedPath]) -> HeldOut:
    """How well the folds' solutions predict the rows that were left out of them."""
    sums = np.array([[value.held_out for value in fold.values] for fold in folds])  # (folds, values, 4)
    tasks = sums[:, :, 2]
    if not np.all(tasks > 0.0):
        raise value_error("{cv}: a fold holds out no row that could be judged: use fewer folds.")
    return HeldOut((sums[:, :, 0] / tasks).T, sums[:, 0, 1] / tasks[:, 0], np.rint(tasks[:, 0]).astype(np.int64))


def entries(path: FederatedPath, q: int) -> tuple[Array, Array]:
    """The first q features that a path uses, in the order in which it does (of one value the strongest first), and the
    strengths at which they enter: what a half contributes to stability selection."""
    seen: dict[int, float] = {}
    for value in path.values:
        for j in value.features[np.argsort(-value.row_norms, kind="stable")].tolist():
            seen.setdefault(j, value.lam)
        if len(seen) >= q:
            break
    return np.array(list(seen)[:q], dtype=np.int64), np.array(list(seen.values())[:q])


def selection_frequencies(halves: Sequence[FederatedPath], q: int) -> Array:
    """The part of the halves in which a feature is among the first q."""
    counts = np.zeros(halves[0].n_features)
    for half in halves:
        counts[entries(half, q)[0]] += 1.0
    return counts / len(halves)
