"""What penalties are tried on: random rows of all sizes, with zeros, and sets in which rows of correlations lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..penalties import RowPenalty
from .claims import claim

Array = np.ndarray[Any, Any]

STEPS = 40  # uphill, in the search for the worst point of a range


@dataclass
class Case:
    """A penalty on some features, and rows to try it on.

    - `free`: As it was given, without features.
    - `penalty`: On the features, at unit strength.
    - `rows` (array of shape (d, T)): W, a third of it zero; non-negative where the penalty says so.
    - `products` (array of shape (d, T)): C, correlations.
    - `weights` (array of shape (d,)): Feature weights that it was put on the features with.
    """

    free: RowPenalty
    penalty: RowPenalty
    weights: Array
    rows: Array
    products: Array
    rng: np.random.Generator

    def claim(self, holds: Any, words: str, **numbers: Any) -> None:
        """`claim`, with what every message reports of the case."""
        facts: dict[str, Any] = {"features x tasks": self.rows.shape, "weights": self.penalty.weights}
        if self.penalty.positive:
            facts["positive"] = True
        if self.penalty.ridge:
            facts["ridge"] = self.penalty.ridge
        claim(holds, words, **numbers, **facts)

    @cached_property
    def first(self) -> Array:
        """For each row the first row of its block."""
        return first_of_blocks(self.penalty, len(self.rows))

    @cached_property
    def blocks(self) -> list[Array]:
        """The rows of each block."""
        return [np.flatnonzero(self.first == j) for j in np.unique(self.first)]

    def polar(self, products: Array) -> float:
        return self.penalty.polar(self.penalty.row_gauges(products))


def first_of_blocks(penalty: RowPenalty, n_features: int) -> Array:
    """For each feature the first one of its block; a penalty that is not on features yet knows its blocks, too."""
    return np.array([penalty.whole(np.array([j]))[0] for j in range(n_features)], dtype=np.int64)


def bind(penalty: RowPenalty, weights: Array, n_tasks: int, **options: Any) -> RowPenalty:
    """The penalty on features; where feasibility joins the rows, features have no weights of their own."""
    return penalty.on(weights if penalty.separable else np.ones_like(weights), n_tasks, **options)


def cases(penalty: RowPenalty, draws: int, n_features: int | None, seed: int) -> Iterator[Case]:
    """Random cases; every third with W >= 0, every fourth with a ridge."""
    rng = np.random.default_rng(seed)
    for draw in range(draws):
        d = int(rng.integers(2, 7)) if n_features is None else n_features
        tasks = 1 + draw % 5
        positive = draw % 3 == 2
        options = {"ridge_ratio": 0.4, "fixed_ridge": 0.3} if draw % 4 == 3 else {}
        weights = rng.uniform(0.4, 2.0, d)[first_of_blocks(penalty, d)]
        bound = bind(penalty, weights, tasks, positive=positive, **options)
        rows = rng.standard_normal((d, tasks)) * rng.choice([0.1, 1.0, 10.0]) * (rng.random((d, tasks)) < 0.67)
        products = rng.standard_normal((d, tasks)) * rng.choice([0.1, 1.0, 10.0])
        products[rng.random((d, tasks)) < 0.1] = 0.0
        products[0, 0] = np.abs(products[0, 0]) + 0.01
        yield Case(penalty, bound, weights, np.abs(rows) if positive else rows, products, rng)


@dataclass
class Range:
    """``{centre + e + norms * v : |e| <= errors, ||v|| <= radius}``, row by row."""

    centre: Array
    errors: Array
    norms: Array
    radius: float

    def worst(self, penalty: RowPenalty, rng: np.random.Generator, first: Array) -> tuple[Array, Array]:
        """The largest gauge of each row that was found in the range, and the rows that have it; rows of a block (those
        with the same `first`) move together.

        Points that go wrong first: the whole step on one task, in the direction of the norms or of the centre, and
        from the best of these on uphill by random moves.
        """
        d, tasks = self.centre.shape
        towards = np.where(self.centre >= 0.0, 1.0, -1.0)
        if penalty.positive:
            towards = np.ones_like(towards)
        starts = [np.zeros((d, tasks)), self.norms, np.abs(self.centre) * self.norms, np.ones((d, tasks))]
        starts += [np.tile(np.eye(tasks)[t], (d, 1)) for t in range(tasks)]
        starts += list(np.abs(rng.standard_normal((6, d, tasks))))
        best = np.full(d, -np.inf)
        move = np.zeros((d, tasks))
        for k in range(len(starts) + STEPS):
            if k < len(starts):
                trial = starts[k]
            else:
                trial = np.abs(move + self.radius * rng.choice([0.03, 0.3]) * rng.standard_normal((d, tasks)))
            trial = trial[first]
            sizes = np.linalg.norm(trial, axis=1, keepdims=True)
            trial = trial * np.divide(self.radius, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
            gauges = penalty.row_gauges(self.centre + towards * (self.errors + self.norms * trial))
            better = gauges > best
            best[better], move[better] = gauges[better], trial[better]
        return best, self.centre + towards * (self.errors + self.norms * move)


def ranges(case: Case) -> Iterator[Range]:
    """Small and large ranges around the correlations of a case; norms that are equal in all tasks come as a view."""
    rng, (d, tasks) = case.rng, case.products.shape
    for k in range(4):
        norms = rng.uniform(0.0, 1.5, (d, tasks)) * (rng.random((d, tasks)) < 0.85)
        if k == 3:
            norms = np.broadcast_to(norms[:, :1], (d, tasks))
        errors = rng.uniform(0.0, 0.3, (d, tasks)) if k % 2 else np.zeros((d, tasks))
        radius = float(rng.choice([0.05, 0.5, 3.0])) if k else 0.0
        yield Range(case.products, errors, norms, radius)
