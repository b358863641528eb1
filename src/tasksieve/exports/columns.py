"""Where the features of a model come from: columns as they are, the recipe of a table, the steps of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..fitted.fill_missing import FillMissing
from ..messages import value_error
from ..tables.dates import DateParts
from ..tables.encode import Absence, Encoding
from ..tables.number_words import LEADING_ZEROS
from ..tasks import Fills
from ..tasks.refusals import is_number
from .description import Feature, Input

Array = np.ndarray[Any, Any]


@dataclass
class Columns:
    """The features of a model in their order, each from an input."""

    inputs: list[Input]
    features: list[Feature]
    task: str | None = None
    offset: str | None = None
    names: list[Any] = field(default_factory=list)  # of tasks, where they are not those of the model

    @classmethod
    def plain(cls, names: Sequence[str]) -> Columns:
        """Numbers as they are."""
        inputs = [Input(name) for name in names]
        return cls(inputs, [Feature(name, j) for j, name in enumerate(names)])

    @classmethod
    def of_table(
        cls, encoding: Encoding, fill: Array | None = None, missing: str | None = None, **others: Any
    ) -> Columns:
        """The recipe of a table.

        - `fill`, `missing`: What the fit has put in for missing values, (d,) or (T, d), and its word for that: with
          "indicator", columns that lacked no value in the fit may lack none now.
        """
        if encoding.matrix_names is not None:
            return replace(cls.plain(encoding.matrix_names).filled(fill), **others)
        inputs: list[Input] = []
        features: list[Feature] = []
        place: dict[str, int] = {}
        for name, coding in encoding.columns:
            if name not in place:
                place[name] = len(inputs)
                inputs.append(_input(name, coding))
            here = place[name]
            if coding is None:
                features.append(Feature(name, here))
            elif isinstance(coding, Absence):
                features.append(Feature(coding.features(name)[0], here, "missing"))
            elif isinstance(coding, DateParts):
                parts = zip(coding.features(name), coding.parts, strict=True)
                features += [Feature(title, here, "part", part) for title, part in parts]
            else:
                words = zip(coding.features(name), coding.indicators, strict=True)
                features += [Feature(title, here, "equals", word) for title, word in words]
        known = {name for name, coding in encoding.columns if isinstance(coding, Absence)}
        holed = None if missing != "indicator" else np.array([inputs[own.input].name in known for own in features])
        return replace(cls(inputs, features).filled(fill, holed), **others)

    def filled(self, fill: Array | None, only: Array | None = None) -> Columns:
        """With the means (d,) or (T, d) for what is missing, NaN for none; of some features `only`."""
        if fill is None:
            return self
        features = []
        for j, feature in enumerate(self.features):
            own = np.atleast_1d(fill[..., j])
            if feature.coding != "missing" and (only is None or only[j]) and not np.isnan(own).any():
                same = bool(np.all(own == own[0]))
                feature = replace(feature, fill=float(own[0]) if same else tuple(map(float, own)))
            features.append(feature)
        return replace(self, features=features)

    def filled_genotypes(self, fills: Fills | None) -> Columns:
        """With the means of missing genotypes, task by task."""
        if fills is None:
            return self
        return self.filled(fills.of(np.arange(len(self.features))).T)

    def with_filling(self, step: FillMissing, tasks: Sequence[Any]) -> Columns:
        """Behind a `FillMissing`."""
        if step.task is not None:
            self = replace(self, task=str(step.task) if isinstance(step.task, str) else "task")
        place = {label: t for t, label in enumerate(step.tasks_.tolist())}
        means = step.means_[:1]
        if len(step.tasks_) > 1:
            absent = [task for task in tasks if task not in place]
            if absent:
                raise value_error("FillMissing has no means of the task {task!r}.", task=absent[0])
            means = step.means_[[place[task] for task in tasks]]
        only = None
        if step.how == "indicator":
            only = np.isin(np.arange(len(self.features)), step.indicators_)
        found = self.filled(means, only)
        beside = [
            Feature(f"missing({self.features[j].name})", self.features[j].input, "missing")
            for j in step.indicators_.tolist()
        ]
        return replace(found, features=[*found.features, *beside])

    def with_scaling(self, centre: Array | None, scale: Array | None) -> Columns:
        """Behind a `StandardScaler`."""
        centres = np.zeros(len(self.features)) if centre is None else centre
        scales = np.ones(len(self.features)) if scale is None else scale
        both = zip(self.features, centres.tolist(), scales.tolist(), strict=True)
        return replace(self, features=[replace(own, centre=c, scale=s) for own, c, s in both])

    def used(self, features: Array) -> tuple[tuple[Input, ...], tuple[Feature, ...]]:
        """Some of the features, in their order, and the inputs that these need."""
        chosen = [self.features[j] for j in features.tolist()]
        inputs = sorted({own.input for own in chosen})
        place = {k: i for i, k in enumerate(inputs)}
        return tuple(self.inputs[k] for k in inputs), tuple(replace(own, input=place[own.input]) for own in chosen)


def _input(name: str, coding: Any) -> Input:
    if coding is None or isinstance(coding, Absence):
        return Input(name)
    if isinstance(coding, DateParts):
        return Input(name, "date", way=coding.way)
    numeric = all(map(is_number, coding.words)) and not any(map(LEADING_ZEROS.fullmatch, coding.words))
    return Input(name, "category", coding.words, numeric)
