"""What every format of an export says: inputs, how they become features, linear scores of tasks, and their links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Label = str | int | float | bool

#: what the scores of a task mean; see docs/howto/export.md
Link = Literal["identity", "exp", "log-hazard", "logistic", "sign", "softmax", "one-vs-rest", "argmax", "ordinal"]
#: links of classes that have probabilities
PROBABLE = ("logistic", "softmax", "one-vs-rest", "ordinal")
#: links of classes with a score for each
SEVERAL = ("softmax", "one-vs-rest", "argmax")


@dataclass(frozen=True)
class Input:
    """A column of the rows to predict.

    - `categories`: Of a column of words those that are known, another is an error; `numeric` says that all of them are
      numbers, so that 3, 3.0 and "3" are the same.
    - `way`: How dates are written where they are words or numbers, as `strptime` has it ("ISO8601": 2024-01-31).
    """

    name: str
    kind: Literal["number", "category", "date"] = "number"
    categories: tuple[str, ...] = ()
    numeric: bool = False
    way: str = ""


@dataclass(frozen=True)
class Feature:
    """A number made of one input: ``(value - centre) / scale``, with `fill` for a value that is missing.

    - `input`: Its place among the inputs.
    - `coding`: The value itself, whether it is a word, a part of a date, or whether it is missing.
    - `of`: The word, or the part.
    - `fill`: One for all tasks, or one for each; None: a missing value is an error.
    """

    name: str
    input: int
    coding: Literal["value", "equals", "part", "missing"] = "value"
    of: str | None = None
    fill: float | tuple[float, ...] | None = None
    centre: float = 0.0
    scale: float = 1.0

    def fill_of(self, task: int) -> float | None:
        return self.fill[task] if isinstance(self.fill, tuple) else self.fill


@dataclass(frozen=True)
class Score:
    """``intercept + offset + sum of coefficient * feature``; the offset is an input of its own."""

    intercept: float
    coefficients: tuple[tuple[int, float], ...]
    offset: str | None = None


@dataclass(frozen=True)
class Task:
    """One task: its scores (one, or one for each class), and what they mean."""

    name: Label | None
    link: Link
    scores: tuple[Score, ...]
    classes: tuple[Label, ...] | None = None
    thresholds: tuple[float, ...] | None = None


def number_columns(inputs: Sequence[Input], features: Sequence[Feature]) -> tuple[str, ...]:
    """Columns of numbers in the order of features; a date is given by its parts."""
    found = []
    for feature in features:
        own = inputs[feature.input]
        if own.kind == "number" or feature.coding == "part":
            found.append(own.name if own.kind == "number" else feature.name)
    return tuple(dict.fromkeys(found))


def word_columns(inputs: Sequence[Input]) -> tuple[str, ...]:
    return tuple(own.name for own in inputs if own.kind == "category")


@dataclass(frozen=True)
class Description:
    """A linear model of tasks without anything of this library.

    - `model`, `version`: Its class, and the version that wrote it.
    - `task_column`: The input that names the task of a row, where rows have one.
    - `every_number`, `every_word`: Columns of numbers (of dates their parts), and of words, used or not, that rows of
      the fit had.
    """

    model: str
    version: str
    inputs: tuple[Input, ...]
    features: tuple[Feature, ...]
    tasks: tuple[Task, ...]
    task_column: str | None = None
    every_number: tuple[str, ...] = ()
    every_word: tuple[str, ...] = ()

    @property
    def offsets(self) -> list[str]:
        """Inputs that are added to scores."""
        found = (score.offset for task in self.tasks for score in task.scores)
        return list(dict.fromkeys(name for name in found if name is not None))

    @property
    def columns(self) -> list[str]:
        """Names of all inputs."""
        task = [] if self.task_column is None else [self.task_column]
        return [*task, *self.offsets, *(given.name for given in self.inputs)]

    @property
    def alike(self) -> bool:
        """Whether the scores of all tasks mean the same, and classes are the same."""
        return len({(task.link, task.classes) for task in self.tasks}) == 1

    def values_used(self) -> Iterator[Any]:
        """Every label."""
        for task in self.tasks:
            yield task.name
            yield from task.classes or ()
