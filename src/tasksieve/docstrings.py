"""Docstrings that are completed at run time: what several classes or functions share is written once, in a table.

A docstring in the source holds what is its own. `complete` adds the entries of parameters that it does not describe,
in the order of the signature, so that ``help()``, notebooks and the reference show all of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from textwrap import wrap
from typing import Any, TypeVar

Entry = list[str]  # lines: "name : type", and the indented text
F = TypeVar("F", bound=Callable[..., Any])

_TITLE = re.compile(r"^(\S[^\n]*)\n-{3,}$", re.MULTILINE)
_WIDTH = 116
_ORDER = (
    ["", "Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"]
    + ["See Also", "Notes", "References", "Examples"]
)


def sections(text: str) -> dict[str, str]:
    """The parts of a numpydoc text by title, in their order; what stands before the first has the title ""."""
    titles = list(_TITLE.finditer(text))
    ends = [*(title.start() for title in titles), len(text)]
    found = {"": text[: ends[0]].strip("\n")}
    found.update(
        {title[1]: text[title.end() : end].strip("\n") for title, end in zip(titles, ends[1:], strict=True)}
    )
    return found


def joined(parts: Mapping[str, str]) -> str:
    """The text of `sections`."""
    written = [f"{title}\n{'-' * len(title)}\n{text}" if title else text for title, text in parts.items() if text]
    return "\n\n".join(written) + "\n"


def entries(text: str) -> dict[str, Entry]:
    """The entries of a section by name; one that describes several names at once is there under each of them."""
    found: dict[str, Entry] = {}
    entry: Entry = []
    for line in text.strip("\n").splitlines():
        if line and not line[0].isspace():
            entry = [line]
            found.update({name.strip(): entry for name in line.partition(" :")[0].split(",")})
        elif entry:
            entry.append(line)
    return found


def written(name: str, kind: str, text: str) -> Entry:
    """An entry, its text broken into lines."""
    return [f"{name} : {kind}", *(f"    {line}" for line in lines(text, _WIDTH - 4))]


def lines(text: str, width: int = _WIDTH) -> list[str]:
    """A paragraph broken into lines."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def listed(found: Iterable[Entry]) -> str:
    """Entries as a section; one of several names is written once."""
    unique = {id(entry): entry for entry in found}
    return "\n".join("\n".join(entry).rstrip() for entry in unique.values())


def merged(own: Mapping[str, Entry], shared: Mapping[str, Entry]) -> dict[str, Entry]:
    """Own entries in place of shared ones of the same name; others follow the own entry that they follow in ``own``."""
    names, position = list(shared), 0
    for name in own:
        if name in shared:
            position = names.index(name) + 1
        else:
            names.insert(position, name)
            position += 1
    return {name: own.get(name) or shared[name] for name in names}


def with_sections(text: str, new: Mapping[str, str]) -> str:
    """A text with sections added, or replaced, in numpydoc's order."""
    parts = {**sections(text), **new}
    return joined({title: parts[title] for title in sorted(parts, key=_ORDER.index)})


def described_by(*tables: str, returns: str = "", raises: str = "") -> Callable[[F], F]:
    """Decorate a function: parameters that its docstring does not describe are taken from the first table with them.

    A table is numpydoc text, the content of a section. So are ``returns`` and ``raises``, for a docstring without
    such sections.

    Examples
    --------
    >>> from tasksieve.docstrings import described_by
    >>> @described_by("X : array\\n    Rows.\\ny : array\\n    Targets.")
    ... def fit(X, y, scale=1.0):
    ...     '''Fit.
    ...
    ...     Parameters
    ...     ----------
    ...     scale : float
    ...         Own.
    ...     '''
    >>> print(fit.__doc__)
    Fit.
    <BLANKLINE>
    Parameters
    ----------
    X : array
        Rows.
    y : array
        Targets.
    scale : float
        Own.
    <BLANKLINE>
    """

    def complete(function: F) -> F:
        if function.__doc__ is None:  # python -OO
            return function
        text = inspect.cleandoc(function.__doc__)
        names = inspect.signature(function).parameters
        found = entries(sections(text).get("Parameters", ""))
        for table in tables:
            found = {**_parsed(table), **found}
        chosen = [found[name] for name in names if name in found]
        new = {"Parameters": listed(chosen)}
        for title, content in (("Returns", returns), ("Raises", raises)):
            if content and title not in sections(text):
                new[title] = content.strip("\n")
        function.__doc__ = with_sections(text, new)
        return function

    return complete


def takes_options_of(source: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a function that hands its ``**options`` on to another: its signature shows that one's keywords."""
    keywords = [given for given in inspect.signature(source).parameters.values() if given.kind is given.KEYWORD_ONLY]

    def complete(function: F) -> F:
        bare = inspect.signature(function)
        own = [given for given in bare.parameters.values() if given.kind is not given.VAR_KEYWORD]
        function.__signature__ = bare.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
        return function

    return complete


@cache
def _parsed(table: str) -> dict[str, Entry]:
    return entries(table)


class LazyText:
    """The ``__doc__`` of a class, made when it is first read."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make: Callable[[], str] | None = make
        self._text = ""

    def __get__(self, instance: object, owner: type) -> str:
        if self._make is not None:
            self._text, self._make = self._make(), None
        return self._text
