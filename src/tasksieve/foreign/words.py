"""The parameters of another program under its own names: each is read once, and none is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_NONE = object()


class Words:
    """Parameters of a program, as they were given.

    - `program`: What it is called in messages.
    - `given`: Names and values; a parameter may have several names.
    - `solver`: Names that change how a program computes, not what: tolerances, numbers of steps, threads.
    """

    def __init__(self, program: str, given: Mapping[str, Any] | None, solver: Iterable[str] = ()) -> None:
        self.program, self._given = program, dict(given or {})
        for name in solver:
            self._given.pop(name, None)

    def error(self, words: str) -> ValueError:
        return ValueError(f'problem="{self.program}": {words}')

    def has(self, *names: str) -> bool:
        return any(self._given.get(name) is not None for name in names)

    def take(self, *names: str, default: Any = _NONE) -> Any:
        """A parameter by the first of its names; None is what is not given."""
        found = [name for name in names if self._given.get(name) is not None]
        if len(found) > 1:
            raise self.error(f"{found[0]} and {found[1]} are the same; give one of them in parameters.")
        value = self._given[found[0]] if found else default
        for name in names:
            self._given.pop(name, None)
        if value is _NONE:
            raise self.error(f"parameters must hold {names[0]!r}.")
        return value

    def put(self, name: str, value: Any) -> None:
        """A parameter in the form in which it is read next."""
        self._given[name] = value

    def number(self, *names: str, default: Any = _NONE, low: float = 0.0, high: float = np.inf) -> float:
        value = self.take(*names, default=default)
        if isinstance(value, bool) or not np.isscalar(value) or not _is_number(value):
            raise self.error(f"{names[0]} must be a number; got {value!r}.")
        if not low <= float(value) <= high:
            raise self.error(f"{names[0]} must lie between {low:g} and {high:g}; got {value!r}.")
        return float(value)

    def strengths(self, *names: str, default: Any = _NONE) -> Array:
        """One strength, of shape (), or those of a path, of shape (K,)."""
        value = self.take(*names, default=default)
        try:
            found = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise self.error(f"{names[0]} must be a number, or one for each value of a path; got {value!r}.") from None
        if found.ndim > 1 or not (np.isfinite(found).all() and (found > 0.0).all()) or not found.size:
            raise self.error(f"{names[0]} must be a number > 0, or one for each value of a path; got {value!r}.")
        return found

    def flag(self, name: str, default: bool) -> bool:
        value = self.take(name, default=default)
        if not isinstance(value, bool | np.bool_) and value not in (0, 1):
            raise self.error(f"{name} must be True or False; got {value!r}.")
        return bool(value)

    def choice(self, *names: str, of: Iterable[str], default: Any = _NONE) -> str:
        value, known = self.take(*names, default=default), tuple(of)
        if not isinstance(value, str) or value not in known:
            raise self.error(f"{names[0]} must be one of {', '.join(map(repr, known))}; got {value!r}.")
        return value

    def vector(self, *names: str, size: int, low: float = 0.0) -> Array | None:
        """A number for each feature (or group), None where it is not given."""
        value = self.take(*names, default=None)
        if value is None:
            return None
        found = np.asarray(value, dtype=np.float64)
        if found.shape != (size,):
            raise self.error(f"{names[0]} must have {size} entries; got the shape {found.shape}.")
        if np.isnan(found).any() or (found < low).any():
            raise self.error(f"{names[0]} must not be below {low:g}.")
        return found

    def refuse(self, name: str, why: str, unless: Any = None) -> None:
        """What is another problem, unless it is given as it is by default."""
        value = self._given.pop(name, None)
        if value is None or (np.isscalar(value) and value == unless):
            return
        raise self.error(f"{name}={value!r}: {why}")

    def finish(self) -> None:
        """Refuse what was not read."""
        left = [name for name, value in self._given.items() if value is not None]
        if left:
            raise self.error(
                f"parameters holds {', '.join(map(repr, left))}, which is not known for this model: what it means for "
                "the problem is not known, and it is not ignored."
            )


def _is_number(value: Any) -> bool:
    try:
        return not np.isnan(float(value))
    except (TypeError, ValueError):
        return False


def pick(table: Mapping[str, Any], words: Words, *names: str, default: Any = _NONE) -> tuple[str, Any]:
    """The entry of a table that a parameter names, with that name."""
    name = words.choice(*names, of=table, default=default)
    return name, table[name]
