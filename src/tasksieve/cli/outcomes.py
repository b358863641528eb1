"""What is predicted: target columns, survival outcomes (``--time``, ``--event``), outcomes of unlike kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..members import LOSSES
from ..runs import MODELS, ModelKind, RunError, SavedModel
from ..tables import LabelsByTask, SurvivalColumns
from ..tasks.sample_space import CLASSES
from .exit_codes import UsageError
from .options import flag, refuse
from .outcome_kinds import loss_of, losses_of, refuse_kinds

#: options that name a column of a survival outcome
SURVIVAL = ("time", "event", "entry", "strata")
# NAME=COLUMN, or COLUMN; of an event also COLUMN==VALUE
_WORD = re.compile(r"(?:([^=]+)=(?!=))?(.+?)(?:==(.+))?", re.DOTALL)

# by the name of an outcome (None: it was left out): the column, and what stands for an event
Named = dict[str | None, tuple[str, str | None]]


def meant_model(asked: Mapping[str, Any]) -> str | None:
    """The model that options about outcomes are for, where none is named."""
    if "outcome" in asked:
        return "mixed"
    return "cox" if "time" in asked or "event" in asked else None


def target_names(config: Mapping[str, Any], kind: ModelKind) -> list[str] | None:
    """What the outcomes of a model are called that has no target columns; options about outcomes are refused where the
    model does not have them."""
    refuse_kinds(config, kind)
    if kind.targets == "mixed":
        return _mixed_names(config)
    if kind.targets != "survival":
        refuse((key for key in SURVIVAL if key in config), "is for --model cox and for survival outcomes (--outcome)")
        return None
    instead = f"--model {kind.name} has --time and --event in its place"
    refuse((key for key in ("target",) if _given(config, key)), instead)
    return list(survival_of(config))


def _given(config: Mapping[str, Any], key: str) -> bool:
    return bool(config.get(key)) and key not in config.get("by_default", ())


def survival_of(config: Mapping[str, Any]) -> dict[str, SurvivalColumns]:
    """The columns of the survival outcomes of a configuration, by their names; those of tasks in stacked rows are in
    `labels_by_task`."""
    targets = MODELS[config.get("model", "lasso")].targets
    if targets == "survival":
        return read_survival(config, None)
    return _mixed_survival(config) if targets == "mixed" and not has_tasks(config) else {}


# --- outcomes of unlike kinds ------------------------------------------------------------------------------------


def has_tasks(config: Mapping[str, Any]) -> bool:
    """Whether rows belong to tasks, by a column or by their file; else each target is one."""
    return isinstance(config.get("table"), list) or config.get("task") is not None


def _mixed_names(config: Mapping[str, Any]) -> list[str]:
    """Targets of a mixed model. Of stacked rows the one column of labels, or the event where there is none."""
    losses, given = losses_of(config), list(config.get("target", ())) if _given(config, "target") else []
    if has_tasks(config):
        if len(given) > 1:
            raise UsageError("--target: rows belong to tasks; name the one column with the labels of all")
        columns = labels_by_task(config).columns
        return given or [next(name for name, flag in columns.items() if flag == "--event")]
    survival = survival_of(config)
    names = list(dict.fromkeys([*given, *(name for name in losses if name is not None), *survival]))
    if not names:
        raise UsageError("--outcome: name the outcomes, NAME=KIND, or their columns: --target")
    return names


def labels_by_task(config: Mapping[str, Any]) -> LabelsByTask:
    """Where the labels of the tasks of stacked rows are."""
    losses = losses_of(config)
    kinds = {name: str(LOSSES[loss].labels) for name, loss in losses.items()}
    survival: Any = _mixed_survival(config)
    given = config.get("target", ()) if _given(config, "target") else ()
    if not given and set(kinds.values()) - {"survival"}:
        raise UsageError("--target: name the column with the labels")
    return LabelsByTask(given[0] if given else None, kinds, survival)


def _mixed_survival(config: Mapping[str, Any]) -> Any:
    """The columns of the survival outcomes of a mixed model; in stacked rows None stands for all that are not named,
    and columns without a name are those of all."""
    losses, stacked = losses_of(config), has_tasks(config)
    names: list[Any] = [name for name, loss in losses.items() if LOSSES[loss].labels == "survival"]
    if not names:
        why = "is for survival outcomes: --outcome NAME=survival"
        refuse((key for key in SURVIVAL if key in config), why)
        return {}
    if None in names and not stacked:
        given = _by_name(config.get("event") or (), "event")
        named = [name for name in given if name is not None and name not in losses]
        names = [name for name in names if name is not None] + named
        if not names:
            return read_survival(config, None)
    return read_survival(config, names, mixed=True, common=stacked)


def mixed_labels(config: Mapping[str, Any], targets: Sequence[str]) -> dict[str, Any]:
    """What `prepare` must know of the labels of a mixed model, given its targets."""
    if has_tasks(config):
        return {"by_task": labels_by_task(config)}
    losses, survival = losses_of(config), survival_of(config)
    kinds = {name: LOSSES[loss_of(losses, name, "target")].labels for name in targets}
    return {"survival": survival, "classes": frozenset(name for name, kind in kinds.items() if kind in CLASSES)}


def is_mixed(saved: SavedModel) -> bool:
    """Whether a saved model has a loss for each task; online models are no kind of those of fit."""
    return saved.kind in MODELS and MODELS[saved.kind].targets == "mixed"


def saved_labels_by_task(saved: SavedModel) -> LabelsByTask | None:
    """Where the labels of the tasks of stacked rows were when a mixed model was fitted."""
    if not is_mixed(saved) or saved.task is None:
        return None
    model, column = saved.estimator, saved.said["label"]
    if not isinstance(column, str | None):
        raise RunError("model.json does not say which column holds the labels")
    names = (str(label) for label in model.tasks_.tolist())
    kinds: Any = {name: loss.labels for name, loss in zip(names, model.losses_, strict=True)}
    survival: Any = saved_survival(saved)
    return LabelsByTask(column, kinds, survival)


def saved_survival(saved: SavedModel) -> dict[str, SurvivalColumns]:
    """The columns of the survival outcomes of a saved model, by their names."""
    found = saved.said["survival"] or {}
    try:
        columns = {str(name): SurvivalColumns(**own) for name, own in found.items()}
        sound = all(isinstance(word, str | None) for own in columns.values() for word in vars(own).values())
    except (AttributeError, TypeError):
        sound = False
    if not sound:
        raise RunError("model.json does not say which columns are times and events")
    return columns


# --- columns of survival outcomes --------------------------------------------------------------------------------


def read_survival(
    asked: Mapping[str, Any],
    names: Sequence[str] | None,
    known: Mapping[str, SurvivalColumns] | None = None,
    *,
    mixed: bool = False,
    common: bool = False,
) -> dict[str, SurvivalColumns]:
    """``--time``, ``--event``, ``--entry`` and ``--strata`` by the names of outcomes.

    - `names`: The outcomes; None: those that the options name, and without a name one that is called by its event.
    - `known`: Columns that are meant where nothing is said.
    - `mixed`: Among outcomes of other kinds, so that strata need not be those of all.
    - `common`: Columns without a name are those of all outcomes.
    """
    given = {key: _by_name(asked.get(key) or (), key) for key in SURVIVAL}
    known = known or {}
    if names is None:
        names = _names_of(given)
    for key, own in given.items():
        for name in own:
            if name is not None and name not in names:
                what = "survival outcome" if mixed else "outcome"
                raise UsageError(f"{flag(key)}: there is no {what} {name!r}; there are {', '.join(map(repr, names))}")
    common = common or len(names) == 1
    found = {name: _columns(name, given, common, known.get(name)) for name in names}
    without = [name for name, own in found.items() if own.strata is None]
    if not mixed and without and len(without) < len(found):
        raise UsageError(
            f"--strata: outcome {without[0]!r} has none, others have; --strata COLUMN without a name is for all of them"
        )
    return found


def _by_name(words: Sequence[str], key: str) -> Named:
    found: Named = {}
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None or (match[3] is not None and key != "event"):
            raise UsageError(f"{flag(key)}: COLUMN, or NAME=COLUMN where there are several outcomes; got {word!r}")
        name, column, value = match.groups()
        if name in found:
            named = "without a name" if name is None else f"of outcome {name!r}"
            raise UsageError(
                f"{flag(key)}: two columns {named}; several outcomes have names: {flag(key)} death=COLUMN "
                f"{flag(key)} relapse=COLUMN"
            )
        found[name] = column, value
    return found


def _names_of(given: Mapping[str, Named]) -> list[str]:
    for key, words in (
        ("time", "name the column with the times of events or of censoring"),
        ("event", "name the column that says whether a time is that of an event (1) or of censoring (0)"),
    ):
        if not given[key]:
            raise UsageError(f"{flag(key)}: {words}")
    named = dict.fromkeys([*given["time"], *given["event"]])
    if named.keys() == {None}:
        return [given["event"][None][0]]
    if None in named:
        key = "time" if None in given["time"] else "event"
        raise UsageError(f"{flag(key)}: say of which outcome, {flag(key)} NAME={given[key][None][0]}")
    return [name for name in named if name is not None]


def _columns(
    name: str | None, given: Mapping[str, Named], common: bool, known: SurvivalColumns | None
) -> SurvivalColumns:
    found: dict[str, Any] = {} if known is None else asdict(known)
    for key in SURVIVAL:
        own = given[key].get(name)
        if own is None and (common or key in ("entry", "strata")):  # one of all outcomes
            own = given[key].get(None)
        if own is None:
            if key in ("time", "event") and key not in found:
                if name is None:
                    raise UsageError(f"{flag(key)}: name the column of survival outcomes, {flag(key)} COLUMN")
                raise UsageError(f"{flag(key)}: name the column of outcome {name!r}, {flag(key)} {name}=COLUMN")
            continue
        found[key] = own[0]
        if key == "event":
            found["value"] = own[1]
    return SurvivalColumns(**found)
