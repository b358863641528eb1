"""What is predicted where that is not a target column: survival outcomes (``--time``, ``--event``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..runs import MODELS, ModelKind, RunError, SavedModel
from ..tables import SurvivalColumns
from .exit_codes import UsageError
from .options import flag, refuse

#: options that name a column of a survival outcome
SURVIVAL = ("time", "event", "entry", "strata")
# NAME=COLUMN, or COLUMN; of an event also COLUMN==VALUE
_WORD = re.compile(r"(?:([^=]+)=(?!=))?(.+?)(?:==(.+))?", re.DOTALL)

# by the name of an outcome (None: it was left out): the column, and what stands for an event
Named = dict[str | None, tuple[str, str | None]]


def meant_model(asked: Mapping[str, Any]) -> str | None:
    """The model that options about outcomes are for, where none is named."""
    return "cox" if "time" in asked or "event" in asked else None


def target_names(config: Mapping[str, Any], kind: ModelKind) -> list[str] | None:
    """What the outcomes of a model are called that has no target columns; options about outcomes are refused where the
    model does not have them."""
    if kind.targets != "survival":
        refuse((key for key in SURVIVAL if key in config), "is for --model cox")
        return None
    instead = f"--model {kind.name} has --time and --event in its place"
    refuse((key for key in ("target",) if _given(config, key)), instead)
    return list(survival_of(config))


def _given(config: Mapping[str, Any], key: str) -> bool:
    return bool(config.get(key)) and key not in config.get("by_default", ())


def survival_of(config: Mapping[str, Any]) -> dict[str, SurvivalColumns]:
    """The columns of the survival outcomes of a configuration, by their names."""
    return read_survival(config, None) if MODELS[config.get("model", "lasso")].targets == "survival" else {}


def saved_survival(saved: SavedModel) -> dict[str, SurvivalColumns]:
    """The columns of the survival outcomes of a saved model, by their names."""
    found = saved.facts.get("survival") or {}
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
) -> dict[str, SurvivalColumns]:
    """``--time``, ``--event``, ``--entry`` and ``--strata`` by the names of outcomes.

    - `names`: The outcomes; None: those that the options name, and without a name one that is called by its event.
    - `known`: Columns that are meant where nothing is said.
    """
    given = {key: _by_name(asked.get(key) or (), key) for key in SURVIVAL}
    known = known or {}
    if names is None:
        names = _names_of(given)
    for key, own in given.items():
        for name in own:
            if name is not None and name not in names:
                raise UsageError(f"{flag(key)}: there is no outcome {name!r}; there are {', '.join(map(repr, names))}")
    found = {name: _columns(name, given, len(names), known.get(name)) for name in names}
    without = [name for name, own in found.items() if own.strata is None]
    if without and len(without) < len(found):
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
    name: str, given: Mapping[str, Named], n_outcomes: int, known: SurvivalColumns | None
) -> SurvivalColumns:
    found: dict[str, Any] = {} if known is None else asdict(known)
    for key in SURVIVAL:
        own = given[key].get(name)
        if own is None and (n_outcomes == 1 or key in ("entry", "strata")):  # one of all outcomes
            own = given[key].get(None)
        if own is None:
            if key in ("time", "event") and key not in found:
                raise UsageError(f"{flag(key)}: name the column of outcome {name!r}, {flag(key)} {name}=COLUMN")
            continue
        found[key] = own[0]
        if key == "event":
            found["value"] = own[1]
    return SurvivalColumns(**found)
