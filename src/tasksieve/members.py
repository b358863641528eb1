"""Losses and penalties by name: one line for each, and those that other packages add.

A member's words stand on its class: `label`, `formula`, and of a loss the `labels` it takes; its options are those of
its constructor. Here is only where the class is, so that names are known before anything is loaded: the command line
lists them without NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeVar

Member = TypeVar("Member")

#: between a name and the options of its constructor, "tweedie:power=1.3"
SEPARATOR = ":"


#: classes of losses and penalties of others that passed their battery of `tasksieve.checks` in this process
_passed: set[type] = set()


def note_passed(member: object) -> None:
    """Remember that the class of a member has passed its battery."""
    _passed.add(type(member))


def is_vouched(member: object) -> bool:
    """Return whether a member is of this package, whose tests run the batteries, or has passed its own here."""
    kind = type(member)
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0] or kind in _passed


def base_name(text: str) -> str:
    """A name without its options."""
    return text.partition(SEPARATOR)[0]


@dataclass(frozen=True)
class Entry:
    """Where a member is: its class, or ``"module:Class"`` until it is loaded; and whether `MultiTaskRegressor`,
    `MultiTaskClassifier` and `grade` take it by its name: if not, it is part of other models."""

    source: str | type
    offered: bool = True


class Registry(MutableMapping[str, type[Member]]):
    """Classes by name: the package's own, those of other packages' entry points, and those of `register`.

    Parameters
    ----------
    word : str
        What a member is, "loss".
    group : str
        Of the entry points: their names are those of the members, their objects the classes.
    base : str
        What members are derived from, as ``"module:Class"``.
    entries : dict of str to Entry
    """

    def __init__(self, word: str, group: str, base: str, entries: dict[str, Entry]) -> None:
        self.word, self.group, self._base = word, group, base
        self._entries, self._own = dict(entries), frozenset(entries)
        self._searched = False

    def _search(self) -> None:
        """Read the entry points of installed packages: once, and only where the names known so far are not enough."""
        if not self._searched:
            from importlib.metadata import entry_points  # slow to load

            self._searched = True
            for point in entry_points(group=self.group):
                self._entries.setdefault(point.name, Entry(point.value))

    def __getitem__(self, name: str) -> type[Member]:
        name = base_name(name)
        if name not in self._entries:
            self._search()
        entry = self._entries[name]
        if isinstance(entry.source, str):
            entry = replace(entry, source=self._checked(name, _load(entry.source), entry.offered))
            self._entries[name] = entry
        return entry.source  # type: ignore[return-value]

    def __contains__(self, name: object) -> bool:
        name = base_name(name) if isinstance(name, str) else name
        if name not in self._entries:
            self._search()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __setitem__(self, name: str, kind: type[Member]) -> None:
        if SEPARATOR in name:
            raise ValueError(f"A name cannot hold {SEPARATOR!r}, behind which options stand; got {name!r}.")
        known = self._entries.get(name)
        if name in self._own or (known is not None and _path(known.source) != _path(kind)):
            raise ValueError(f"There is a {self.word} {name!r} already: choose another name.")
        self._entries[name] = Entry(self._checked(name, kind, True))

    def __delitem__(self, name: str) -> None:
        if name in self._own:
            raise ValueError(f"The {self.word} {name!r} is part of tasksieve and cannot be removed.")
        del self._entries[name]

    def name_of(self, kind: type) -> str | None:
        """The name of a class, if it has one."""
        return next((name for name, known in self._entries.items() if _path(known.source) == _path(kind)), None)

    def offers(self, name: object) -> bool:
        """Whether the generic estimators take a member by this name."""
        return isinstance(name, str) and name in self and self._entries[base_name(name)].offered

    def offered(self) -> tuple[str, ...]:
        """The names that the generic estimators take."""
        return tuple(name for name in self if self._entries[name].offered)

    def register(self, name: str) -> Callable[[type[Member]], type[Member]]:
        """A decorator that gives a class its name."""

        def keep(kind: type[Member]) -> type[Member]:
            self[name] = kind
            return kind

        return keep

    def make(self, member: Any) -> Member:
        """A member as it is, or that of a name or class, with its defaults; or of a name with options,
        ``"huber:delta=0.7"``."""
        base = _load(self._base)
        if isinstance(member, base):
            return member
        if isinstance(member, str) and member in self:
            return self[member](**self.options_of(member))
        if isinstance(member, type) and issubclass(member, base):
            return member()
        words = f"{self.word} must be one of {sorted(self)} or a {self.group}.{base.__name__}"
        raise ValueError(f"{words}; got {member!r}")

    def options_of(self, text: str) -> dict[str, Any]:
        """The options behind a name, as the constructor takes them."""
        name, _, rest = text.partition(SEPARATOR)
        if not rest:  # as mostly: a fit asks at every value
            return {}
        known = {option.name: option.default for option in options(self[name])}
        found: dict[str, Any] = {}
        for part in filter(None, rest.split(",")):
            key, given, value = (word.strip() for word in part.partition("="))
            if key not in known or not given:
                listed = ", ".join(known) or "none"
                raise ValueError(f"{self.word} {text!r}: {key!r} is no option of {name}; its options are: {listed}.")
            try:
                found[key] = _read(value, known[key])
            except (KeyError, ValueError):
                raise ValueError(f"{self.word} {text!r}: {key} cannot be {value!r}.") from None
        return found

    def _checked(self, name: str, kind: Any, offered: bool) -> type[Member]:
        base = _load(self._base)
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise TypeError(f"The {self.word} {name!r} must be a class derived from {base.__name__}; got {kind!r}.")
        needed = [option.name for option in options(kind) if option.default is option.empty]
        if offered and needed:
            raise TypeError(f"The {self.word} {name!r} needs a default for {needed[0]!r}: names have no arguments.")
        return kind


def options(kind: type) -> list[inspect.Parameter]:
    """The parameters of a member's constructor."""
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [option for option in inspect.signature(kind).parameters.values() if option.kind not in variable]


def formula(kind: type | None) -> str | None:
    """What a member adds to an objective, as a line of text, if its own class says it: a class derived from it may have
    another formula."""
    return None if kind is None else vars(kind).get("formula")


def _read(text: str, default: Any) -> Any:
    """The value of an option, of the type of its default."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        return {"True": True, "False": False}[text]
    number = float(text)
    return int(number) if isinstance(default, int) and number.is_integer() else number


def _load(source: str) -> Any:
    module, _, name = source.partition(":")
    return getattr(import_module(module), name)


def _path(kind: str | type) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}"


LOSSES: Registry[Any] = Registry(
    "loss",
    "tasksieve.losses",
    "tasksieve.losses.base:Loss",
    {
        "squared": Entry("tasksieve.losses.squared:Squared"),
        "huber": Entry("tasksieve.losses.clipped:Huber"),
        "quantile": Entry("tasksieve.losses.clipped:Quantile"),
        "expectile": Entry("tasksieve.losses.expectile:Expectile"),
        "log_cosh": Entry("tasksieve.losses.log_cosh:LogCosh"),
        "poisson": Entry("tasksieve.losses.poisson:Poisson"),
        "negative_binomial": Entry("tasksieve.losses.negative_binomial:NegativeBinomial"),
        "gamma": Entry("tasksieve.losses.gamma_loss:Gamma"),
        "tweedie": Entry("tasksieve.losses.tweedie:Tweedie"),
        "ordinal": Entry("tasksieve.losses.ordinal:Ordinal", offered=False),
        "square-root": Entry("tasksieve.losses.square_root:SquareRoot"),
        "logistic": Entry("tasksieve.losses.logistic:Logistic"),
        "squared_hinge": Entry("tasksieve.losses.hinge:SquaredHinge"),
        "smoothed_hinge": Entry("tasksieve.losses.hinge:SmoothedHinge"),
        "multinomial": Entry("tasksieve.losses.multinomial:Multinomial", offered=False),
        "cox": Entry("tasksieve.losses.cox:Cox", offered=False),
        "hinge": Entry("tasksieve.losses.hinge:Hinge", offered=False),
        "epsilon_insensitive": Entry("tasksieve.losses.epsilon_insensitive:EpsilonInsensitive", offered=False),
        "squared_epsilon_insensitive": Entry(
            "tasksieve.losses.epsilon_insensitive:SquaredEpsilonInsensitive", offered=False
        ),
    },
)

PENALTIES: Registry[Any] = Registry(
    "penalty",
    "tasksieve.penalties",
    "tasksieve.penalties.base:RowPenalty",
    {
        "l21": Entry("tasksieve.penalties.sparse_group:L21"),
        "l11": Entry("tasksieve.penalties.sparse_group:L11"),
        "sparse_group": Entry("tasksieve.penalties.sparse_group:SparseGroup"),
        "linf": Entry("tasksieve.penalties.linf:LInf"),
        "dirty": Entry("tasksieve.penalties.dirty:Dirty"),
        "owl": Entry("tasksieve.penalties.sorted:Sorted"),
        "groups": Entry("tasksieve.penalties.groups:Groups", offered=False),
    },
)
