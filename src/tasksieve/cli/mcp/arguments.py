"""From the arguments of a call to the words of a command; whatever is wrong with them is refused in words."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from ..options import Option
from .confined import ConfinedFolder, Refused
from .tools import FEATURES, MOST, MOST_FEATURES, NUMERIC, Tool

LONGEST_WORD, MOST_WORDS = 500, 2000  # characters of a word, and words of a list
LARGEST = 2.0**53


@dataclass(frozen=True)
class Call:
    """A call whose arguments are good."""

    words: list[str]  # of the command that does it
    limit: int  # features that the answer lists
    tables: list[str]  # files that it names
    run: str  # the folder of its run; empty where it has none


def read_call(tool: Tool, given: Any, folder: ConfinedFolder) -> Call:
    """What a call asks for; a refusal in words where something is wrong with it."""
    if not isinstance(given, Mapping):
        raise Refused(
            f'{tool.name}: arguments are an object, {{"{tool.required[0]}": ...}}; got {_kind(given)}'
        )
    options = tool.options() if tool.command else {"run": Option("run", str, None, argument=True)}
    known = [*options, *(["limit"] if tool.lists else [])]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name)[:50], known, 1)
            like = f" (did you mean {near[0]!r}?)" if near else ""
            raise Refused(f"{tool.name} has no argument {str(name)[:50]!r}{like}; it has {', '.join(known)}")
    for name in tool.required:
        if given.get(name) in (None, "", []):
            raise Refused(f"{tool.name}: {name} is missing; {_example(tool, name)}")
    limit = given.get("limit", FEATURES)
    if not _is_whole(limit) or not 1 <= limit <= MOST_FEATURES:
        raise Refused(f"limit: a whole number from 1 to {MOST_FEATURES}; got {_short(limit)}")
    words: list[str] = []
    positions: list[str] = []
    paths: dict[str, list[str]] = {place: [] for place in ("table", "tables", "run", "output")}
    for name, option in options.items():
        value = given.get(name)
        if value is None:
            continue
        checked = _checked(name, value, option, tool, folder)
        if name in tool.places:
            paths[tool.places[name]] += checked
        if option.argument:
            positions += checked
        else:
            words += _typed(option, checked)
    (run,) = [*paths["run"], *paths["output"]] or [""]
    command = [*tool.command.split(), *tool.fixed, *words, "--", *positions]
    return Call(command, int(limit), [*paths["table"], *paths["tables"]], run)


def _typed(option: Option, checked: list[str]) -> list[str]:
    """An option in one word, so that no value is ever taken for another option."""
    if option.kind is bool:
        yes, _, no = option.flags[0].partition("/")
        return [yes if checked == ["yes"] else no] if checked == ["yes"] or no else []
    return [f"{option.long}={value}" for value in checked]


def _checked(name: str, value: Any, option: Option, tool: Tool, folder: ConfinedFolder) -> list[str]:
    """An argument as words, or a refusal that says what it may be."""
    place = tool.places.get(name)
    if place is not None:
        paths = _word_list(name, value) if place == "tables" else [_word(name, value)]
        if not paths:
            raise Refused(f"{name}: a file of the folder; got an empty list")
        take = {"run": folder.run, "output": folder.output}.get(place, folder.table)
        found = [take(path, name) for path in paths]
        if len(set(found)) < len(found):
            raise Refused(f"{name}: a file is named twice")
        return found
    kind = option.kind
    if name in NUMERIC and kind is str:
        value = repr(value) if _is_number(value) else _word(name, value)
        if name == "alphas" and value.strip().isdecimal() and float(value) > MOST[name]:
            raise Refused(f"{name}: at most {MOST[name]:,.0f} values; got {value[:30]}")
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise Refused(f"{name}: one of {', '.join(map(str, get_args(kind)))}; got {_short(value)}")
        return [str(value)]
    if kind == list[str]:
        return _word_list(name, value)
    if kind is bool:
        if not isinstance(value, bool):
            raise Refused(f"{name}: true or false; got {_short(value)}")
        return ["yes" if value else "no"]
    if kind is int:
        if not _is_whole(value) or abs(value) > MOST.get(name, LARGEST):
            raise Refused(
                f"{name}: a whole number of at most {MOST.get(name, LARGEST):,.0f}; got {_short(value)}"
            )
        return [str(int(value))]
    if kind is float:
        if not _is_number(value):
            raise Refused(f"{name}: a finite number; got {_short(value)}")
        return [repr(float(value))]
    return [_word(name, value)]


def _word_list(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [_word(name, value)]
    if not isinstance(value, list) or len(value) > MOST_WORDS:
        got = f"a list of {len(value):,}" if isinstance(value, list) else _short(value)
        raise Refused(f"{name}: a word, or a list of at most {MOST_WORDS:,} words; got {got}")
    return [_word(name, one) for one in value]


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Refused(f"{name}: a word, in quotes; got {_short(value)}")
    longest = 2 * LONGEST_WORD
    if len(value) > longest:
        raise Refused(f"{name}: a word of at most {longest} characters; got {len(value):,}")
    if any((ord(sign) < 32 and sign != "\t") or 0xD800 <= ord(sign) < 0xE000 for sign in value):
        raise Refused(f"{name}: a word without control characters; rename what is called so")
    return value


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    )


def _is_whole(value: Any) -> bool:
    return _is_number(value) and float(value).is_integer() and abs(value) <= LARGEST


def _example(tool: Tool, name: str) -> str:
    examples = {"table": "name a file of the folder: \"trial.csv\"", "out": "name a folder for the run: \"runs/first\"",
                "run": "name a run folder, as fit has left it: \"runs/first\"",
                "coefficients": "name a table with the columns feature and coefficient",
                "alpha": "the strength of the penalty with which the coefficients were found"}  # fmt: skip
    return examples.get(name, f"{tool.name} needs it")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a word", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")


def _short(value: Any) -> str:
    """A value for a message, however large it is."""
    if isinstance(value, str):
        return repr(value[:50]) + ("..." if len(value) > 50 else "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            f"{value:.6g}" if isinstance(value, float) or abs(value) < LARGEST else "a number of many digits"
        )
    return _kind(value)
