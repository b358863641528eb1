"""What a user can call, and what the reference documents of it: read from the running package.

`python tests/public_surface.py` writes both listings anew, on purpose: see `test_signatures.py`.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
SIGNATURES = Path(__file__).parent / "signatures.txt"
DOCUMENTED = Path(__file__).parent / "documented_names.txt"
PARTS = (
    "checks",
    "datasets",
    "genotypes",
    "graph",
    "linear",
    "losses",
    "online",
    "penalties",
    "report",
    "screening",
    "storages",
    "svm",
)
SECTIONS = ("Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Methods")


def listed() -> list[str]:
    """The names that have a page in docs/api.md, without `tasksieve.`."""
    pages = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names, module = [], ""
    for line in pages.splitlines():
        if found := re.match(r"\.\. currentmodule:: tasksieve\.?([\w.]*)", line):
            module = f"{found[1]}." if found[1] else ""
        elif found := re.fullmatch(r"   ([A-Za-z_.]+)", line):
            names.append(module + found[1])
    return names


def public_names() -> list[str]:
    """`MultiTaskLasso`, `losses.Huber`, ...: names of the package, of its parts, and of the pages."""
    top = [name for name in import_module("tasksieve").__all__ if not name.startswith("__")]
    parts = [f"{part}.{name}" for part in PARTS for name in import_module(f"tasksieve.{part}").__all__]
    return list(dict.fromkeys([*top, *listed(), *parts]))


def find(name: str) -> Any:
    thing: Any = import_module("tasksieve")
    path = "tasksieve"
    for piece in name.split("."):
        path = f"{path}.{piece}"
        try:
            thing = getattr(thing, piece)
        except AttributeError:
            thing = import_module(path)
    return thing


def ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("tasksieve")


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods, properties and fields that a class of this package, or one below it, defines."""
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if name.startswith("_") or owner is None or not ours(owner):
            continue
        thing = vars(owner)[name]
        bare = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
        if inspect.isfunction(bare) or hasattr(bare, "fget") or hasattr(bare, "func") or hasattr(bare, "__wrapped__"):
            yield name, getattr(cls, name) if inspect.isfunction(bare) else thing


class Alias(NamedTuple):
    """Another name of a thing that is listed already."""

    of: str


def public_things() -> Iterator[tuple[str, Any]]:
    """Every public callable and its public methods, each under its first name; then other names of the same thing."""
    seen: dict[int, str] = {}
    for name in public_names():
        thing = find(name)
        if inspect.ismodule(thing):
            continue
        if (first := seen.get(id(thing))) is not None:
            yield name, Alias(first)
            continue
        if not isinstance(thing, str | int | float | tuple | None):
            seen[id(thing)] = name
        yield name, thing
        if isinstance(thing, type) and ours(thing):
            yield from ((f"{name}.{member}", value) for member, value in members(thing))


def default(value: Any) -> str:
    """A default as it is written, the same in every process."""
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__qualname__)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def signature(thing: Any) -> str:
    """`(X, y, *, alpha=1.0)`: names, kinds and defaults, no annotations; empty for what is not called."""
    if isinstance(thing, enum.EnumType):
        return " = " + ", ".join(str(member.value) for member in thing)
    if isinstance(thing, type) and issubclass(thing, Exception) and "__init__" not in vars(thing):
        return " (exception)"
    if not callable(thing):
        return " (attribute)" if hasattr(thing, "fget") or hasattr(thing, "func") else f": {type(thing).__name__}"
    found = inspect.signature(thing)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in found.parameters.values()]
    written = [
        parameter if parameter.default is parameter.empty else parameter.replace(default=Written(parameter.default))
        for parameter in bare
    ]
    return str(found.replace(parameters=written, return_annotation=found.empty))


class Written:
    """A default whose `repr` is `default(value)`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return default(self.value)


def signatures() -> list[str]:
    lines = []
    for name, thing in public_things():
        lines.append(f"{name} is {thing.of}" if isinstance(thing, Alias) else name + signature(thing))
    return sorted(lines)


def documented(text: str) -> dict[str, list[str]]:
    """The names under each section of a numpydoc text: `alpha, beta : float` are two, an entry of a type alone is `-`.

    >>> documented('''Short.
    ...
    ... Parameters
    ... ----------
    ... X, y : array
    ...     Data.
    ... **options
    ...
    ... Returns
    ... -------
    ... float
    ...     A number.
    ... ''')
    {'Parameters': ['X', 'y', '**options'], 'Returns': ['-']}
    """
    found: dict[str, list[str]] = {}
    lines = inspect.cleandoc(text).splitlines()
    section = ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below.strip()) == {"-"} and len(below.strip()) >= 3:
            section = line.strip()
        elif section in SECTIONS and line and not line[0].isspace() and set(line) != {"-"}:
            names, colon, _ = line.partition(" :")
            if section in ("Returns", "Yields") and not colon:
                names = "-"
            elif section in ("Raises", "Methods"):
                names = names.partition("(")[0]
            found.setdefault(section, []).extend(name.strip() for name in names.split(",") if name.strip())
    return found


def documentation() -> dict[tuple[str, str], list[str]]:
    """By name and section: what the reference documents. An undocumented member has no entry."""
    table: dict[tuple[str, str], list[str]] = {}
    for name, thing in public_things():
        if not isinstance(thing, Alias) and (text := inspect.getdoc(thing)):
            table[name, "Text"] = []
            table.update({(name, section): names for section, names in documented(text).items()})
    return table


def read_documented() -> dict[tuple[str, str], list[str]]:
    table = {}
    for line in DOCUMENTED.read_text(encoding="utf-8").splitlines():
        head, _, names = line.partition(": ")
        name, _, section = head.rstrip(":").partition(" ")
        table[name, section] = [word for word in names.split(", ") if word]
    return table


def write() -> None:
    SIGNATURES.write_text("\n".join(signatures()) + "\n", encoding="utf-8")
    lines = [f"{name} {section}: {', '.join(names)}".rstrip() for (name, section), names in documentation().items()]
    DOCUMENTED.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
