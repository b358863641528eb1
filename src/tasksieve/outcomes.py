"""Survival outcomes: until when a row was observed, whether that was an event, since when, and in which stratum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .complex_numbers import refuse_complex
from .messages import value_error
from .row_names import row_name

Array = np.ndarray[Any, Any]

#: survival labels in the flat sample space: entry is -inf where there is none, strata are numbered from 0
SURVIVAL = np.dtype([("event", np.bool_), ("time", np.float64), ("entry", np.float64), ("stratum", np.int64)])

_FIELDS = ("event", "time", "entry", "stratum")
_FORMS = (
    "ts.survival(time, event), a structured array whose first field is the event (scikit-survival), two columns (time, "
    "event), or a tuple of two arrays (time, event)"
)


def survival(time: Any, event: Any, entry: Any = None, strata: Any = None) -> Array:
    r"""Labels of a survival model: the time of an event, or of the last observation without one (censoring).

    A row is at risk of an event at t where :math:`\text{entry} < t \le \text{time}`.

    Parameters
    ----------
    time : array of shape (n,)
        Time of the event or of censoring, >= 0. Times that are equal are ties: round them beforehand if need be. NaN
        is a label that is not observed.
    event : array of shape (n,)
        True or 1 where ``time`` is that of an event, False or 0 where it is censored. NaN: not observed.
    entry : array of shape (n,), optional
        Time from which on a row is under observation (left truncation, delayed entry), before ``time``; -inf: from the
        start.
    strata : array of shape (n,), optional
        Any labels: each stratum has a baseline hazard of its own, and only rows of one stratum are compared.

    Returns
    -------
    structured ndarray of shape (n,)
        With the fields "event", "time" and, where given, "entry" and "stratum". It can be indexed by rows, so that
        scikit-learn's splitters work; without entry and strata scikit-survival reads it as well.

    See Also
    --------
    MultiTaskCox : takes it as y.

    Examples
    --------
    >>> import tasksieve as ts
    >>> y = ts.survival([5.0, 3.0, 8.0], [1, 0, 1])
    >>> y["time"][y["event"]]
    array([5., 8.])
    >>> ts.survival([5.0, 3.0], [2, 1])
    Traceback (most recent call last):
    ValueError: event holds 1 and 2, as R's survival writes status (2 is an event): pass event == 2.
    """
    return _checked(time, event, entry, strata, "")


def is_structured(y: Any) -> bool:
    """Whether labels are a structured array."""
    return getattr(getattr(y, "dtype", None), "names", None) is not None


def is_outcome(y: Any) -> bool:
    """Whether a value is, by its form, one survival outcome: so a list of such is one of several."""
    if isinstance(y, tuple):
        return len(y) == 2 and all(np.ndim(part) == 1 for part in y)
    if is_structured(y):
        return bool(np.ndim(y) == 1)
    return hasattr(y, "columns") or (isinstance(y, np.ndarray) and y.ndim == 2)


def read_outcome(y: Any, name: str = "y") -> Array:
    """One outcome in any of its forms, as `survival` makes it; `name` is what to call it in messages."""
    prefix = f"{name}: "
    if isinstance(y, tuple) and len(y) == 2 and all(np.ndim(part) == 1 for part in y):
        return _checked(y[0], y[1], None, None, prefix)
    columns = getattr(y, "columns", None)
    if columns is not None:
        return _of_fields([str(own) for own in columns], [y[own] for own in columns], name, time_first=True)
    if is_structured(y):
        mask = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else None
        y = np.ma.getdata(y) if mask is not None else np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"{name} has shape {y.shape}: the labels of one outcome are 1-D.")
        names = list(y.dtype.names)
        fields = [y[own] if mask is None else np.ma.array(y[own], mask=mask[own]) for own in names]
        return _of_fields(names, fields, name, time_first=False)
    hidden = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else None
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{name} is no survival outcome ({error}). It may be {_FORMS}.") from error
    refuse_complex(array, name)
    if array.ndim == 1:
        raise ValueError(
            f"{name} has one number per row; a survival model needs a time and whether it is that of an event. It may "
            f"be {_FORMS}."
        )
    if array.ndim != 2 or array.shape[1] != 2:
        more = (
            ""
            if array.shape[1:] != (3,)
            else " Entry times are given by ts.survival(time, event, entry=...)."
        )
        raise ValueError(f"{name} has shape {array.shape}: {_FORMS}.{more}")
    time, event = array[:, 0], array[:, 1]
    _refuse_swapped(time, event, name)
    if hidden is not None:
        time = np.ma.array(time, mask=hidden.any(axis=1))
    return _checked(time, event, None, None, prefix)


def stack(parts: Sequence[Array], names: Sequence[str]) -> Array:
    """Outcomes of `read_outcome` on top of each other."""
    entered = any("entry" in part.dtype.names for part in parts)
    stratified = ["stratum" in part.dtype.names for part in parts]
    if any(stratified) and not all(stratified):
        some, none = names[stratified.index(True)], names[stratified.index(False)]
        raise ValueError(
            f"{some} has strata, {none} has none: give every row one; the same for all rows of a task is like none."
        )
    found: dict[str, Array] = {
        name: np.concatenate([part[name] for part in parts]) for name in ("event", "time")
    }
    if entered:
        own = [
            part["entry"] if "entry" in part.dtype.names else np.full(len(part), -np.inf) for part in parts
        ]
        found["entry"] = np.concatenate(own)
    if all(stratified):
        strata = [part["stratum"] for part in parts]
        kinds = {part.dtype.kind for part in strata}
        if len(kinds) > 1 and kinds & set("OUS"):  # numbers beside words stay what they are
            strata = [part.astype(object) for part in strata]
        found["stratum"] = np.concatenate(strata)
    return _joined(found)


def encode(y: Array) -> tuple[Array, Array | None, Array | None]:
    """Outcomes of `read_outcome` as `SURVIVAL`, the mask of those observed (None: all), names of the strata (None:
    there are none)."""
    found = np.zeros(len(y), dtype=SURVIVAL)
    missing = np.isnan(y["time"])
    found["event"], found["time"] = y["event"], np.where(missing, 0.0, y["time"])
    found["entry"], strata = -np.inf, None
    if "entry" in y.dtype.names:
        found["entry"] = np.where(missing, -np.inf, y["entry"])
    if "stratum" in y.dtype.names:
        try:
            strata, found["stratum"] = np.unique(y["stratum"], return_inverse=True)
        except TypeError as error:
            raise value_error(
                "{y}: strata mix labels that cannot be sorted (numbers and words, say): use one kind."
            ) from error
    return found, ~missing if missing.any() else None, strata


def columns(y: Array) -> list[Array]:
    """Labels as columns of numbers: themselves, or the fields of survival labels."""
    return [y] if y.dtype.names is None else [y[name].astype(np.float64) for name in y.dtype.names]


# --- one outcome, checked ---------------------------------------------------------------------------------------------


def _of_fields(names: list[str], fields: list[Any], name: str, *, time_first: bool) -> Array:
    """From named columns: by the names event, time, entry, stratum; else two of them by their type or order."""
    known = {"strata": "stratum", "status": "event"} if "event" not in names else {"strata": "stratum"}
    found = {known.get(own.lower(), own.lower()): field for own, field in zip(names, fields, strict=True)}
    if {"event", "time"} <= set(found) and len(found) == len(names):
        strange = [own for own in found if own not in _FIELDS]
        if strange:
            raise ValueError(
                f"{name} has the column {strange[0]!r} beside event and time: survival labels have event, time, entry, "
                "stratum. Leave it out."
            )
        return _checked(found["time"], found["event"], found.get("entry"), found.get("stratum"), f"{name}: ")
    if len(names) != 2:
        raise ValueError(f"{name} has the columns {', '.join(names)}: name them event, time, entry, stratum.")
    boolean = [np.asarray(field).dtype.kind == "b" for field in fields]
    if boolean[0] != boolean[1]:
        time_first = boolean[1]
    time, event = fields if time_first else fields[::-1]
    _refuse_swapped(time, event, name)
    return _checked(time, event, None, None, f"{name}: ")


def _refuse_swapped(time: Any, event: Any, name: str) -> None:
    """Refuse two columns where the one of times holds 0 and 1, and that of events anything."""
    try:
        times, events = (np.asarray(part, dtype=np.float64) for part in (time, event))
    except (TypeError, ValueError):
        return
    zero_one = [bool(np.all((part == 0.0) | (part == 1.0) | np.isnan(part))) for part in (times, events)]
    if zero_one[0] and not zero_one[1] and not np.all((events == 1.0) | (events == 2.0) | np.isnan(events)):
        raise ValueError(
            f"{name}: the columns are time and event, in this order, and here they look swapped: the first holds 0 and "
            "1 only. Pass ts.survival(time, event)."
        )


def _checked(time: Any, event: Any, entry: Any, strata: Any, prefix: str) -> Array:
    times, events = _numbers(time, "time", prefix), _events(event, prefix)
    if len(events) != len(times):
        raise ValueError(f"{prefix}time has {len(times)} entries, event has {len(events)}.")
    missing = np.isnan(times) | np.isnan(events)
    _refuse(np.isinf(times) & ~missing, times, prefix, "time is {value} in {row}: times must be finite.")
    _refuse(
        (times < 0.0) & ~missing, times, prefix,
        "time is {value} in {row}: times must not be negative. Only their order matters: add a constant to all of them "
        "(and to entry).",
    )  # fmt: skip
    found = {"event": ~missing & (events == 1.0), "time": np.where(missing, np.nan, times)}
    if entry is not None:
        entries = _numbers(entry, "entry", prefix)
        if len(entries) != len(times):
            raise ValueError(f"{prefix}time has {len(times)} entries, entry has {len(entries)}.")
        _refuse(
            np.isnan(entries) & ~missing, entries, prefix,
            "entry has no value in {row}: give -inf (or 0) where a row is under observation from the start.",
        )  # fmt: skip
        late = ~(entries < times) & ~missing
        if late.any():
            i = int(np.argmax(late))
            raise ValueError(
                f"{prefix}entry is {entries[i]:g} in {row_name(i)}, and time is {times[i]:g}: a row is observed from "
                "entry on, which must be before time."
            )
        found["entry"] = np.where(missing, -np.inf, entries)
    if strata is not None:
        found["stratum"] = _strata(strata, len(times), prefix)
    return _joined(found)


def _joined(fields: dict[str, Array]) -> Array:
    out = np.empty(len(fields["time"]), dtype=[(name, own.dtype) for name, own in fields.items()])
    for name, own in fields.items():
        out[name] = own
    return out


def _refuse(wrong: Array, values: Array, prefix: str, words: str) -> None:
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(prefix + words.format(value=f"{values[i]:g}", row=row_name(i)))


def is_absent(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NA, NaT, masked."""
    return (
        value is None
        or value is np.ma.masked
        or type(value).__name__ in ("NAType", "NaTType")
        or value != value
    )


def _one_dimension(values: Any, name: str, prefix: str) -> Array:
    """A 1-D array; objects where entries are masked or missing, with None in their place."""
    refuse_complex(values, name)
    array = np.asarray(values)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        raise ValueError(f"{prefix}{name} must be 1-D, one entry per row; got shape {array.shape}.")
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        array = array.astype(object)
        array[np.ma.getmaskarray(values).ravel()] = None
    return array


def _numbers(values: Any, name: str, prefix: str) -> Array:
    """float64, NaN where entries are missing."""
    array = _one_dimension(values, name, prefix)
    if array.dtype.kind in "mM":
        kind = "dates" if array.dtype.kind == "M" else "durations"
        raise ValueError(f"{prefix}{name} holds {kind}: turn them into numbers, days since some day say.")
    if array.dtype.kind in "OUS":
        found = np.empty(len(array))
        for i, value in enumerate(array.tolist()):
            try:
                found[i] = np.nan if is_absent(value) else float(value)
            except (TypeError, ValueError):
                raise ValueError(f"{prefix}{name} must hold numbers: {row_name(i)} is {value!r}.") from None
        return found
    return array.astype(np.float64)


def _events(values: Any, prefix: str) -> Array:
    """0 and 1, NaN where entries are missing."""
    array = _one_dimension(values, "event", prefix)
    if array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(v, str) for v in array.tolist())
    ):
        raise ValueError(
            f"{prefix}event must be True or False, or 1 and 0: {row_name(0)} is {array.tolist()[0]!r}. Say which word "
            "is an event: event == 'dead', for example."
        )
    found = _numbers(array, "event", prefix)
    wrong = ~((found == 0.0) | (found == 1.0) | np.isnan(found))
    if not wrong.any():
        return found
    if np.all((found == 1.0) | (found == 2.0) | np.isnan(found)):
        raise ValueError(
            f"{prefix}event holds 1 and 2, as R's survival writes status (2 is an event): pass event == 2."
        )
    i = int(np.argmax(wrong))
    more = ""
    if np.all(np.isnan(found) | (found == np.floor(found))) and np.all(np.isnan(found) | (found >= 0.0)):
        more = (
            " Several kinds of events (competing risks) are no part of the model: with event == 1 the others count as "
            "censored."
        )
    raise ValueError(f"{prefix}event must be True or False, or 1 and 0: {row_name(i)} is {found[i]:g}.{more}")


def _strata(values: Any, n_rows: int, prefix: str) -> Array:
    array = _one_dimension(values, "strata", prefix)
    if len(array) != n_rows:
        raise ValueError(f"{prefix}time has {n_rows} entries, strata has {len(array)}.")
    if array.dtype.kind in "fO":
        absent = [i for i, value in enumerate(array.tolist()) if is_absent(value)]
        if absent:
            raise ValueError(
                f"{prefix}strata has no label in {row_name(absent[0])}: every row belongs to a stratum."
            )
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array.tolist()):
        return array.astype(str)
    return array
