"""What losses are tried on: labels of every kind, and small designs with weights, intercepts, unpenalised features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from ..design import Design, RepeatedStorage, as_storage
from ..losses import DataLoss, Loss

Array = np.ndarray[Any, Any]

LABELS = ("values", "signs", "counts", "one-hot")
#: a kind of labels, or a function that draws them
Labels = str | Callable[[np.random.Generator, int], Array]
#: cases that are fitted at the end
FITTED = ("weights, some of them 0", "three classes, weights, some of them 0")


def labels_of(kind: Labels, rng: np.random.Generator, n: int) -> Array:
    """n labels of a kind: numbers, +-1, or counts; or those that a function draws."""
    if callable(kind):
        drawn = np.array(kind(rng, n), dtype=np.float64)
        if drawn.shape != (n,) or not np.isfinite(drawn).all():
            raise ValueError(f"labels(rng, {n}) must give {n} finite numbers; got an array of shape {drawn.shape}.")
        return drawn
    if kind == "signs":
        return np.where(rng.random(n) < 0.6, 1.0, -1.0)
    if kind == "counts":
        return rng.poisson(1.5, n).astype(np.float64)
    return 2.0 * rng.standard_normal(n)


@dataclass
class DataCase:
    """A loss on data.

    - `words`: What is special about the data.
    - `offset`: What the loss adds to every prediction; `plain` is the loss without it.
    """

    words: str
    loss: DataLoss
    design: Design
    x: Array
    y: Array
    rng: np.random.Generator
    offset: Array | None = None
    plain: DataLoss | None = None

    @property
    def weights(self) -> Array:
        return np.ones(self.design.n_samples) if self.design.weights is None else self.design.weights

    @property
    def root(self) -> Array:
        return np.sqrt(self.weights)

    def point(self, size: float = 1.0) -> Array:
        """A z~ = X~ W that the engine may evaluate: free of nuisance parts, 0 where rows are absent."""
        z = size * self.rng.standard_normal(self.design.n_samples)
        z[self.weights == 0.0] = 0.0
        return np.asarray(self.design.project(z))

    def raw(self, z: Array, nuisance: Array) -> Array:
        """Predictions in the units of y, less the loss's shift: z~ without weights, and what the nuisance columns add.

        These are worked out here, from the raw columns and what the design says it subtracted from them.
        """
        root, design = self.root, self.design
        raw = np.divide(z, root, out=np.zeros_like(z), where=root > 0.0)
        columns = [np.ones(len(raw))] if design.fit_intercept else []
        for j in design.unpenalised:
            columns.append(np.tile(self.x[:, j], design.n_tasks) if design.shared else self.x[:, j])
        for column, shift, values in zip(columns, design.nuisance_shifts, nuisance, strict=True):
            raw = raw + (column - design.per_sample(shift)) * design.per_sample(values)
        return np.asarray(raw)


OPTIONS: dict[str, dict[str, Any]] = {
    "no intercept": {"fit_intercept": False},
    "intercepts": {},
    "weights, some of them 0": {"weighted": True},
    "unpenalised features": {"unpenalised": np.array([1, 3]), "weighted": True},
    "one matrix for all tasks": {"shared": True, "weighted": True},
    "a task of one class": {"one_class": True},
    "tasks of one row": {"fit_intercept": False, "single_rows": True, "weighted": True},
    "an offset": {"weighted": True, "offset": True},
    "an offset, unpenalised features": {"unpenalised": np.array([1, 3]), "offset": True},
}


def data_cases(loss: Loss, labels: Labels, seed: int) -> Iterator[DataCase]:
    """The loss on every kind of data that its labels allow."""
    rng = np.random.default_rng(seed)
    if labels == "one-hot":
        yield from _one_hot_cases(loss, rng)
        return
    for words, options in OPTIONS.items():
        if options.get("one_class") and labels not in ("signs", "counts"):
            continue
        if options.get("offset") and not takes_offset(loss):
            continue
        design, x = _design(rng, **{key: options[key] for key in options if key not in ("one_class", "offset")})
        y = labels_of(labels, rng, design.n_samples)
        if options.get("one_class"):
            y[design.offsets[1] : design.offsets[2]] = 1.0 if labels == "signs" else 0.0
        if options.get("offset"):
            yield _with_offset(words, loss, design, x, y, rng)
        else:
            yield DataCase(words, loss.on(design, y), design, x, y, rng)


def takes_offset(loss: Loss) -> bool:
    """Whether the loss takes one: a user-defined one need not."""
    return "offset" in signature(loss.on).parameters


def _with_offset(
    words: str, loss: Loss, design: Design, x: Array, y: Array, rng: np.random.Generator
) -> DataCase:
    offset = 1.5 * rng.standard_normal(design.n_samples) + 1.0
    return DataCase(words, loss.on(design, y, offset), design, x, y, rng, offset, loss.on(design, y))


def _design(
    rng: np.random.Generator,
    shared: bool = False,
    weighted: bool = False,
    single_rows: bool = False,
    **options: Any,
) -> tuple[Design, Array]:
    rows, features = 30, 5
    x = rng.standard_normal((rows, features))
    if shared:
        offsets = rows * np.arange(4)
    else:
        offsets = np.arange(rows + 1) if single_rows else np.array([0, 8, 19, rows])
    weights = None
    if weighted:
        weights = rng.uniform(0.3, 2.0, int(offsets[-1]))
        weights[rng.random(len(weights)) < 0.1] = 0.0
    return Design(as_storage(x), offsets, shared=shared, weights=weights, n_threads=1, **options), x


def _one_hot_cases(loss: Loss, rng: np.random.Generator) -> Iterator[DataCase]:
    rows = 24
    for words, classes, intercept, weighted in (
        ("two classes, no intercept", 2, False, False),
        ("three classes, intercepts", 3, True, False),
        ("three classes, weights, some of them 0", 3, True, True),
        ("four classes, no intercept, weights", 4, False, True),
    ):
        weights = None
        if weighted:
            own = rng.uniform(0.3, 2.0, rows)
            own[rng.random(rows) < 0.1] = 0.0
            weights = np.tile(own, classes)
        x = rng.standard_normal((rows, 5))
        design = Design(
            as_storage(x),
            rows * np.arange(classes + 1),
            shared=True,
            weights=weights,
            fit_intercept=intercept,
            n_threads=1,
        )
        y = np.eye(classes)[rng.permutation(np.arange(rows) % classes)].T.ravel()
        yield DataCase(words, loss.on(design, y), design, x, y, rng)
    if takes_offset(loss):
        yield _with_offset("an offset", loss, design, x, y, rng)
    yield _several_tasks(loss, rng)


def _several_tasks(loss: Loss, rng: np.random.Generator) -> DataCase:
    """Tasks of 2, 4 and 3 classes, each with rows and weights of its own; the last has no row of one class."""
    offsets, counts = np.array([0, 9, 20, 30]), np.array([2, 4, 3])
    x = rng.standard_normal((30, 5))
    storage = RepeatedStorage(as_storage(x), offsets, counts)
    own = rng.uniform(0.3, 2.0, 30)
    own[rng.random(30) < 0.1] = 0.0
    parts, weights = [], []
    for count, start, stop in zip(counts, offsets[:-1], offsets[1:], strict=True):
        codes = rng.permutation(np.arange(stop - start) % (count - (stop == 30)))
        parts.append(np.eye(count)[codes].T.ravel())
        weights.append(np.tile(own[start:stop], count))
    design = Design(
        storage, storage.offsets, weights=np.concatenate(weights), n_threads=1, blocks=np.append(0, np.cumsum(counts))
    )
    y = np.concatenate(parts)
    return DataCase("several tasks of several classes", loss.on(design, y), design, x, y, rng)
