"""What losses are tried on: labels of every kind, and small designs with weights, intercepts, unpenalised features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from ..design import Design, RepeatedStorage, as_storage
from ..losses import DataLoss, Evaluation, Loss
from ..outcomes import SURVIVAL
from .claims import claim

Array = np.ndarray[Any, Any]

LABELS = ("values", "signs", "counts", "positive", "one-hot", "survival", "ordered")
#: a kind of labels, or a function that draws them
Labels = str | Callable[[np.random.Generator, int], Array]
#: cases that are fitted at the end
FITTED = ("weights, some of them 0", "three classes, weights, some of them 0")


def labels_of(kind: Labels, rng: np.random.Generator, n: int) -> Array:
    """n labels of a kind: numbers, +-1, counts, codes of classes, positive numbers; or those that a function draws."""
    if callable(kind):
        drawn = np.array(kind(rng, n))
        if drawn.dtype == SURVIVAL and drawn.shape == (n,):
            return drawn
        drawn = drawn.astype(np.float64)
        if drawn.shape != (n,) or not np.isfinite(drawn).all():
            raise ValueError(f"labels(rng, {n}) must give {n} finite numbers; got an array of shape {drawn.shape}.")
        return drawn
    if kind == "signs":
        return np.where(rng.random(n) < 0.6, 1.0, -1.0)
    if kind == "counts":
        return rng.poisson(1.5, n).astype(np.float64)
    if kind == "survival":
        return survival_labels(rng, n)
    if kind == "ordered":
        return rng.integers(0, 4, n).astype(np.float64)
    if kind == "positive":
        return rng.gamma(1.5, 1.0, n)
    return 2.0 * rng.standard_normal(n)


def survival_labels(rng: np.random.Generator, n: int) -> Array:
    """Times with ties, in two strata; some rows are at risk later than from the beginning. The first two rows of every
    ten end with an event."""
    y = np.empty(n, dtype=SURVIVAL)
    y["time"] = rng.integers(1, 8, n)
    y["event"] = (rng.random(n) < 0.6) | (np.arange(n) % 10 < 2)
    y["entry"] = np.where(rng.random(n) < 0.2, y["time"] - rng.integers(1, 5, n) - 0.5, -np.inf)
    y["stratum"] = rng.integers(0, 2, n)
    return y


@dataclass
class DataCase:
    """A loss on data, and in `words` what is special about them; `plain` is the loss without the `offset` it adds."""

    words: str
    loss: DataLoss
    design: Design
    x: Array
    y: Array
    rng: np.random.Generator
    offset: Array | None = None
    plain: DataLoss | None = None

    def claim(self, holds: Any, words: str, **numbers: Any) -> None:
        """`claim`, with what is special about the data."""
        claim(holds, words, data=self.words, **numbers)

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
        for column, shift, values in zip(columns, design.nuisance_shifts, nuisance, strict=False):
            raw = raw + (column - design.per_sample(shift)) * design.per_sample(values)
        return np.asarray(raw)

    def stored(self, z: Array, nuisance: Array) -> Evaluation:
        """The loss at these predictions, and at the thresholds that it finds in the nuisance, if any."""
        raw, thresholds = self.raw(z, nuisance), self.loss.thresholds(nuisance)
        return self.loss.at_scores(raw) if thresholds is None else self.loss.at_thresholds(raw, thresholds)

    def value(
        self, z: Array, nuisance: Array, added: Array | float = 0.0, loss: DataLoss | None = None
    ) -> float:
        """The value there, of this loss or another, with something added to the predictions."""
        loss = self.loss if loss is None else loss
        raw, thresholds = self.raw(z, nuisance) + added, loss.thresholds(nuisance)
        return loss.value_at(raw) if thresholds is None else loss.at_thresholds(raw, thresholds).value


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
    # a user-defined loss need not take an offset
    takes_offset = "offset" in signature(loss.on).parameters
    if labels == "one-hot":
        yield from _one_hot_cases(loss, rng, takes_offset)
        return
    for words, options in OPTIONS.items():
        made = dict(options)
        one_class, with_offset = made.pop("one_class", False), made.pop("offset", False)
        if (one_class and labels not in ("signs", "counts")) or (with_offset and not takes_offset):
            continue
        if labels == "ordered" and not made.get("fit_intercept", True):
            continue  # thresholds take up any constant
        design, x = _design(rng, **made)
        y = labels_of(labels, rng, design.n_samples)
        if one_class:
            y[design.offsets[1] : design.offsets[2]] = 1.0 if labels == "signs" else 0.0
        yield _case(words, loss, design, x, y, rng, with_offset)


def _case(
    words: str, loss: Loss, design: Design, x: Array, y: Array, rng: np.random.Generator, with_offset: bool = False
) -> DataCase:
    plain = loss.on(design, y)
    if not with_offset:
        return DataCase(words, plain, design, x, y, rng)
    offset = 1.5 * rng.standard_normal(design.n_samples) + 1.0
    return DataCase(words, loss.on(design, y, offset), design, x, y, rng, offset, plain)


def _weights(rng: np.random.Generator, n: int) -> Array:
    """Some of them 0."""
    weights = rng.uniform(0.3, 2.0, n)
    weights[rng.random(n) < 0.1] = 0.0
    return weights


def _design(
    rng: np.random.Generator, shared: bool = False, weighted: bool = False, single_rows: bool = False, **options: Any
) -> tuple[Design, Array]:
    rows, features = 30, 5
    x = rng.standard_normal((rows, features))
    if shared:
        offsets = rows * np.arange(4)
    else:
        offsets = np.arange(rows + 1) if single_rows else np.array([0, 8, 19, rows])
    weights = _weights(rng, int(offsets[-1])) if weighted else None
    return Design(as_storage(x), offsets, shared=shared, weights=weights, n_threads=1, **options), x


def _one_hot_cases(loss: Loss, rng: np.random.Generator, takes_offset: bool) -> Iterator[DataCase]:
    rows = 24
    for words, classes, intercept, weighted in (
        ("two classes, no intercept", 2, False, False),
        ("three classes, intercepts", 3, True, False),
        ("three classes, weights, some of them 0", 3, True, True),
        ("four classes, no intercept, weights", 4, False, True),
    ):
        weights = np.tile(_weights(rng, rows), classes) if weighted else None
        x = rng.standard_normal((rows, 5))
        options: dict[str, Any] = {"weights": weights, "fit_intercept": intercept}
        design = Design(as_storage(x), rows * np.arange(classes + 1), shared=True, n_threads=1, **options)
        y = np.eye(classes)[rng.permutation(np.arange(rows) % classes)].T.ravel()
        yield _case(words, loss, design, x, y, rng)
    if takes_offset:
        yield _case("an offset", loss, design, x, y, rng, with_offset=True)
    yield _several_tasks(loss, rng)


def _several_tasks(loss: Loss, rng: np.random.Generator) -> DataCase:
    """Tasks of 2, 4 and 3 classes, each with rows and weights of its own; the last has no row of one class."""
    offsets, counts = np.array([0, 9, 20, 30]), np.array([2, 4, 3])
    x = rng.standard_normal((30, 5))
    storage = RepeatedStorage(as_storage(x), offsets, counts)
    own = _weights(rng, 30)
    parts, weights = [], []
    for count, start, stop in zip(counts, offsets[:-1], offsets[1:], strict=True):
        codes = rng.permutation(np.arange(stop - start) % (count - (stop == 30)))
        parts.append(np.eye(count)[codes].T.ravel())
        weights.append(np.tile(own[start:stop], count))
    design = Design(
        storage, storage.offsets, weights=np.concatenate(weights), n_threads=1, blocks=np.append(0, np.cumsum(counts))
    )
    return _case("several tasks of several classes", loss, design, x, np.concatenate(parts), rng)
