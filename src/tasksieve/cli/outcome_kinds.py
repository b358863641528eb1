"""Outcomes of unlike kinds, and the order of classes: ``--outcome``, ``--categories``, ``--loss-weights``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..losses.mixed import stands_beside_others
from ..members import LOSSES
from ..runs import ModelKind
from ..tables import TableProblem
from ..tables.table import few
from ..tasks.refusals import is_number
from .exit_codes import UsageError
from .options import flag, refuse

#: words for kinds of outcomes, and the losses that are meant
KINDS = {"value": "squared", "binary": "logistic", "count": "poisson", "ordered": "ordinal", "survival": "cox"}
# By the name of an outcome; None: of all that are not named.
Named = dict[str | None, str]
#: options of models with a loss for each task
OF_MIXED = ("outcome", "loss_weights", "target_scales")


def refuse_kinds(config: Mapping[str, Any], kind: ModelKind) -> None:
    """Options about kinds of outcomes are refused where the model has none."""
    if kind.targets != "mixed":
        refuse((key for key in OF_MIXED if key in config), "is for --model mixed")
    if "categories" not in kind.parameters():
        refuse((key for key in ("categories",) if key in config), "is for --model ordinal and --model mixed")


def losses_of(config: Mapping[str, Any]) -> Named:
    """``--outcome``: the losses of outcomes by their names."""
    found: Named = {}
    for word in config.get("outcome", ()):
        name, kind = _split(word)
        if name in found:
            which = "without a name" if name is None else f"for {name!r}"
            raise UsageError(f"--outcome: two kinds {which}: {found[name]} and {kind}")
        found[name] = _loss(kind)
    if not found:
        raise UsageError(f"--outcome: say of each outcome what it is, NAME=KIND; kinds are {_offered()}")
    return found


def _split(word: str) -> tuple[str | None, str]:
    """NAME=KIND, or a KIND alone, whose options may hold "=" as well."""
    head = word.partition(":")[0].strip()
    if head in KINDS or head in LOSSES:
        return None, word.strip()
    name, equals, kind = (part.strip() for part in word.partition("="))
    if not equals or not name or not kind:
        example = f"--outcome {name or 'NAME'}=count"
        raise UsageError(f"--outcome: NAME=KIND, {example} for example, or one KIND for all; got {word!r}. Kinds are "
                         f"{_offered()}")  # fmt: skip
    return name, kind


def _loss(kind: str) -> str:
    """The loss of a kind, which may have options: ``tweedie:power=1.3``."""
    name, colon, options = kind.partition(":")
    loss = f"{KINDS.get(name, name)}{colon}{options}"
    if loss not in LOSSES or not stands_beside_others(loss):
        why = LOSSES[loss].alone if loss in LOSSES else ""
        raise UsageError(f"--outcome: {name!r} is no kind of outcome among others{f' ({why})' if why else ''}; kinds "
                         f"are {_offered()}")  # fmt: skip
    try:
        LOSSES.make(loss)
    except ValueError as error:
        raise UsageError(f"--outcome: {error}") from None
    return loss


def _offered() -> str:
    words = ", ".join(KINDS)
    return f"{words}; or a loss: {', '.join(name for name in LOSSES if stands_beside_others(name))}"


def loss_of(losses: Named, name: str, what: str) -> str:
    """The loss of an outcome."""
    found = losses.get(name, losses.get(None))
    if found is None:
        raise UsageError(f"--outcome: {what} {name!r} has no kind; --outcome '{name}=KIND' says it")
    return found


# --- parameters of the estimators ------------------------------------------------------------------------------------


def outcome_parameters(config: Mapping[str, Any], kind: ModelKind, problem: TableProblem) -> dict[str, Any]:
    """Losses, weights and orders of classes as the estimators take them: by the labels of tasks."""
    tasks = _tasks(problem)
    found: dict[str, Any] = {}
    ordered = list(tasks)
    if kind.targets == "mixed":
        losses = losses_of(config)
        what = "target" if problem.several else "task"
        _refuse_unknown(losses, tasks, "outcome", what)
        found["losses"] = {label: loss_of(losses, name, what) for name, label in tasks.items()}
        ordered = [name for name, label in tasks.items() if LOSSES[found["losses"][label]].labels == "ordered"]
        for key in ("loss_weights", "target_scales"):
            if key in config:
                found[key] = _numbers(config[key], key, tasks)
    if "categories" in config:
        found["categories"] = _orders(config["categories"], tasks, ordered, problem, kind)
    elif "categories" in kind.parameters() and (known := _known_orders(tasks, ordered, problem, kind)):
        found["categories"] = known
    return found


def _known_orders(
    tasks: Mapping[str, Any], ordered: Sequence[str], problem: TableProblem, kind: ModelKind
) -> Any:
    """Orders of classes that the table itself knows (value labels of numbers, ordered categories), and a note of each.
    Where a target has none, the model says in which order it takes the words."""
    if not problem.several:
        found = dict(problem.orders) if kind.targets != "mixed" else {}
    else:
        found = {name: problem.orders[name] for name in ordered if name in problem.orders}
        if kind.targets != "mixed" and len(found) < len(ordered):
            return None
    for name, order in found.items():
        told = f"classes of {name!r} in the order that the table gives them: {' < '.join(order)}"
        if told not in problem.notes:
            problem.notes.append(told)
    if problem.several:
        return {tasks[name]: order for name, order in found.items()}
    return next(iter(found.values()), None)


def _tasks(problem: TableProblem) -> dict[str, Any]:
    """The labels of tasks by their names: targets, where each is a task."""
    labels = problem.tasks.tolist()
    names = problem.targets if problem.several else [str(label) for label in labels]
    return dict(zip(names, labels, strict=True))


def _refuse_unknown(given: Iterable[str | None], tasks: Mapping[str, Any], key: str, what: str) -> None:
    for name in given:
        if name is not None and name not in tasks:
            raise UsageError(f"{flag(key)}: there is no {what} {name!r}; there are {few(list(map(repr, tasks)), 8)}")


def by_name(words: Sequence[str], key: str, form: str) -> Named:
    """NAME=VALUE, or a VALUE for all."""
    found: Named = {}
    for word in words:
        name, equals, value = (part.strip() for part in word.rpartition("="))
        if (equals and not name) or not value:
            raise UsageError(f"{flag(key)}: {form}, or NAME={form}; got {word!r}")
        if (name or None) in found:
            raise UsageError(f"{flag(key)}: given twice {f'for {name!r}' if name else 'without a name'}")
        found[name or None] = value
    return found


def _numbers(words: Sequence[str], key: str, tasks: Mapping[str, Any]) -> Any:
    """A positive number for each task that is named, or one for all."""
    found = by_name(words, key, "NUMBER")
    _refuse_unknown(found, tasks, key, "task")
    numbers = {}
    for name, word in found.items():
        if not is_number(word) or not 0.0 < float(word) < math.inf:
            raise UsageError(f"{flag(key)}: a number above 0; got {word!r}")
        numbers[name] = float(word)
    if numbers.keys() == {None}:
        return numbers[None]
    return {label: numbers.get(name, numbers.get(None)) for name, label in tasks.items() if {name, None} & {*numbers}}


def _orders(
    words: Sequence[str], tasks: Mapping[str, Any], ordered: Sequence[str], problem: TableProblem, kind: ModelKind
) -> Any:
    """Classes from the lowest to the highest, of all tasks or by task."""
    found = by_name(words, "categories", "LOWEST,..,HIGHEST")
    _refuse_unknown(found, tasks, "categories", "task")
    for name in found:
        if name is not None and name not in ordered:
            raise UsageError(f"--categories: the outcome of {name!r} has no ordered classes")
    if not ordered:
        raise UsageError("--categories: no outcome has ordered classes (--outcome NAME=ordered)")
    if kind.targets != "mixed" and found.keys() == {None}:
        return _classes(found[None], problem, None)
    return {
        tasks[name]: _classes(found.get(name, found.get(None, "")), problem, name)
        for name in ordered
        if {name, None} & {*found}
    }


def _classes(text: str, problem: TableProblem, name: str | None) -> list[Any]:
    """Classes as the labels are: numbers, where the observed ones are."""
    words = [word.strip() for word in text.split(",")]
    if len(words) < 2 or not all(words) or len(set(words)) < len(words):
        raise UsageError(f"--categories: two different classes or more, lowest first, commas between; got {text!r}")
    if any(isinstance(label, str) for label in _observed(problem, name)):
        return words
    numbers = [float(word) if is_number(word) else math.nan for word in words]
    if not all(map(math.isfinite, numbers)):
        raise UsageError(f"--categories: the labels are numbers; got {text!r}")
    return [int(number) if number.is_integer() else number for number in numbers]


def _observed(problem: TableProblem, name: str | None) -> list[Any]:
    """Labels of a task, or of all."""
    y = problem.y
    if isinstance(y, dict):
        return list(np.asarray(y[name]).tolist()) if name is not None else []
    if name is not None and problem.several:
        y = y[:, problem.targets.index(name)]
    elif name is not None and problem.task is not None:
        y = y[np.array([str(label) == name for label in problem.task.tolist()])]
    return list(y.ravel().tolist())
