"""Several files as one table: rows under rows, columns matched by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import numpy as np

from .encode import as_words
from .ids import Ids, of_rows, why_id
from .table import NAMED_CELLS, NAMED_FILES, Array, Column, StackedFiles, Table, TableError, few, glob
from .wide import STEP, WideColumns

Rule = Literal["same", "intersection", "union"]

# The column that says which file, and so which task, a row is from.
FILE_TASK = "file name"


@dataclass(frozen=True)
class Wanted:
    """Columns that are requested, by name or glob.

    - `needed` (list of (flag, name or glob)): Columns that every file must have: the target, weights, ...
    - `some` (list of (flag, name)): Columns that a file may lack, whose rows then have no value: labels of other tasks.
    - `features`: Columns to learn from; by default all that are nothing else.
    - `drop`: Columns to ignore.
    - `rule` ({"same", "intersection", "union"}): What becomes of a feature that some files lack: an error, left out, or
      no feature of these files' rows.
    - `fitted`: The features are those of a fitted model: all of them are needed, but for those that a task may lack.
    - `lacking` (dict of task to names): Features that a task had not when the model was fitted.
    - `keep`: Columns to learn from although they look like an id: that files have them or not is about features then.
    - `ids`: As `FeatureChoice` has it.
    """

    needed: Sequence[tuple[str, str]] = ()
    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    rule: Rule = "same"
    fitted: bool = False
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    some: Sequence[tuple[str, str]] = ()
    keep: Sequence[str] = ()
    ids: Ids = "names"


@dataclass
class Stacked:
    """Several files as one table; `lacking` has the features that are not in the file of a task."""

    table: Table
    lacking: dict[str, list[str]]
    notes: list[str]


def stack(tables: Sequence[Table], tasks: Sequence[str] | None, wanted: Wanted) -> Stacked:
    """Put tables under each other; files that differ in their columns are a `TableError` that says which lacks what.
    `tasks`, one for each table, become the column `FILE_TASK`."""
    files = _file_names([table.source for table in tables])
    for table in tables:
        if table.matrix is not None:
            raise TableError(
                f"{table.source} holds a matrix: several files are put together by the names of their columns, as CSV, "
                "Parquet and Arrow have them"
            )
        if tasks is not None and FILE_TASK in table.columns:
            raise TableError(
                f"{table.source} has a column {FILE_TASK!r}, as the task of each row is to be called: rename it, or "
                f"name the column with the task: --task"
            )
    tables = _with_empty(tables, wanted.some)
    roles = _roles(tables, files, [*wanted.needed, *wanted.some])
    features = [_features(table, roles, wanted) for table in tables]
    named, some_have = _called_ids(tables, wanted)
    for own in features:
        for name in some_have:
            own.pop(name, None)
    if wanted.fitted:
        kept, lacking = _fitted(features, files, tasks, wanted)
    else:
        kept, lacking = _agree(tables[0], features, files, wanted)
    sizes = [table.n_rows for table in tables]
    source = StackedFiles(files, sizes, [table.source for table in tables])
    roles = list(dict.fromkeys([*roles, *(name for name in named if name not in kept)]))
    more = _dropped(tables, wanted.drop, {*roles, *kept}, int(np.sum(sizes)))
    if tasks is not None:
        more[FILE_TASK] = Column("text", np.repeat(np.array(tasks, dtype=object), sizes))
    absent = {name: [name not in own for own in features] for names in lacking.values() for name in names}
    names = _in_order(tables, [*roles, *kept])
    join = partial(_joined, tables, files, absent)
    wide = [table.columns for table in tables if isinstance(table.columns, WideColumns)]
    columns: Mapping[str, Column] = (
        _wide(wide, names, absent, more, join)
        if len(wide) == len(tables)
        else {**{name: join(name) for name in names}, **more}
    )
    masks = {name: np.repeat(np.array(holes), sizes) for name, holes in absent.items()}
    by_task = {} if tasks is None else {tasks[k]: names for k, names in lacking.items()}
    read = [note for table in tables for note in table.notes]
    notes = [] if wanted.fitted else [*read, *_notes(features, kept, lacking, files, wanted.rule)]
    if some_have and not wanted.fitted:
        notes.append(
            f"columns {_quoted(some_have)} are left out: they look like ids by their names, and not all files have "
            "them; --keep NAME takes one as a feature"
        )
    return Stacked(Table(source, int(np.sum(sizes)), columns, absent=masks, notes=read), by_task, notes)


def _with_empty(tables: Sequence[Table], some: Sequence[tuple[str, str]]) -> list[Table]:
    """Tables in which columns that only others have are empty."""
    names = dict.fromkeys(name for _, name in some if any(name in table.columns for table in tables))
    found = []
    for table in tables:
        empty = Column("number", np.full(table.n_rows, np.nan))
        more = {name: empty for name in names if name not in table.columns}
        found.append(replace(table, columns={**table.columns, **more}) if more else table)
    return found


def _file_names(sources: Sequence[str]) -> list[str]:
    """Names of files for messages: as short as keeps them distinct."""
    short = [Path(source).name for source in sources]
    return short if len(set(short)) == len(short) else list(sources)


def _matches(patterns: Iterable[str], names: Mapping[str, Any]) -> dict[str, None]:
    """Names that are given or match a glob, each once."""
    found = ([pattern] if pattern in names else glob(pattern, names) for pattern in patterns)
    return dict.fromkeys(name for own in found for name in own)


def _roles(tables: Sequence[Table], files: Sequence[str], needed: Sequence[tuple[str, str]]) -> list[str]:
    found: dict[str, None] = {}
    for flag, pattern in needed:
        own = [_matches([pattern], table.columns) for table in tables]
        every = dict.fromkeys(name for names in own for name in names)
        if not every:
            tables[0].match([pattern], flag, list(tables[0].columns))  # raises, naming what there is instead
        for name in every:
            without = [file for file, names in zip(files, own, strict=True) if name not in names]
            if without:
                having = [table for table, names in zip(tables, own, strict=True) if name in names]
                part, remedy = "file", "leave the file out"
                if all("sheet" in table.recognised for table in having):
                    sheets = " ".join(f"--sheet {quote(table.recognised['sheet'])}" for table in having[:2])
                    part, remedy = "sheet", f"name the sheets to read, {sheets} ..."
                raise TableError(
                    f"{flag}: column {name!r} is not in {_few(without)}; every {part} needs it (it is in "
                    f"{len(files) - len(without)} of {len(files)}): rename the column there, or {remedy}"
                )
        found.update(every)
    return list(found)


def _features(table: Table, roles: Sequence[str], wanted: Wanted) -> dict[str, None]:
    names = _matches(wanted.features, table.columns) if wanted.features else table.columns
    out = {*roles, *_matches(wanted.drop, table.columns)}
    return dict.fromkeys(name for name in names if name not in out)


def _called_ids(tables: Sequence[Table], wanted: Wanted) -> tuple[list[str], list[str]]:
    """Columns that are called ids and are not asked for as features: those of all files, which may say that rows are
    related, and those of some, which are nothing."""
    if wanted.ids == "values":
        return [], []
    found = dict.fromkeys(name for table in tables for name in of_rows(table.columns))
    asked = {*wanted.features, *_matches([*wanted.keep, *wanted.drop], found)}
    asked |= {pattern for _, pattern in [*wanted.needed, *wanted.some]}
    every, some = list[str](), list[str]()
    for name in (name for name in found if name not in asked):
        own = [table.columns[name] for table in tables if name in table.columns]
        if all(why_id(name, column) is not None for column in own):
            (every if len(own) == len(tables) else some).append(name)
    return every, some


def _fitted(
    features: Sequence[dict[str, None]], files: Sequence[str], tasks: Sequence[str] | None, wanted: Wanted
) -> tuple[list[str], dict[int, list[str]]]:
    """The features of a model, and of each file those that it lacks, which its task must have lacked before."""
    lacking, lines = {}, []
    for k, own in enumerate(features):
        allowed = [] if tasks is None else list(wanted.lacking.get(tasks[k], ()))
        for name in allowed:  # which the file may have by now, but not the model
            own.pop(name, None)
        lacking[k] = [name for name in wanted.features if name not in own]
        missing = [name for name in lacking[k] if name not in allowed]
        lines += [f"{files[k]} lacks {_quoted(missing)}"] if missing else []
    if lines:
        raise TableError(
            f"the model was fitted to columns that are not there: {'; '.join(lines[:10])}"
            + (f"; and {len(lines) - 10} more files" if len(lines) > 10 else "")
        )
    return list(dict.fromkeys(wanted.features)), {k: names for k, names in lacking.items() if names}


def _agree(
    table: Table, features: Sequence[dict[str, None]], files: Sequence[str], wanted: Wanted
) -> tuple[list[str], dict[int, list[str]]]:
    """Features that are kept, and of each file those of them that it lacks."""
    every = dict.fromkeys(name for own in features for name in own)
    for pattern in wanted.features:
        if not _matches([pattern], every):
            table.match([pattern], "--features", list(every))  # raises that there is none
    shared = [name for name in every if all(name in own for own in features)]
    if len(shared) == len(every):
        return shared, {}
    if wanted.rule == "intersection":
        if not shared:
            raise TableError(f"--columns intersection: no feature column is in all of {_few(files)}")
        return shared, {}
    if wanted.rule == "same":
        raise TableError(_mismatches(features, every, shared, files))
    lacking = {k: [name for name in every if name not in own] for k, own in enumerate(features)}
    return list(every), {k: names for k, names in lacking.items() if names}


def _mismatches(
    features: Sequence[dict[str, None]], every: Iterable[str], shared: Sequence[str], files: Sequence[str]
) -> str:
    """What is wrong in each file, against the columns that most of them have."""
    counts = {name: sum(name in own for own in features) for name in every}
    usual = [name for name, count in counts.items() if 2 * count >= len(files)]
    lines = []
    for file, own in zip(files, features, strict=True):
        lacks = [name for name in usual if name not in own]
        more = [name for name in own if 2 * counts[name] < len(files)]
        words = [f"lacks {_quoted(lacks)}"] if lacks else []
        words += [f"has {_quoted(more)}, which most others have not"] if more else []
        if words:
            lines.append(f"  {file} {' and '.join(words)}{_spelled_otherwise(lacks, more)}")
    shown = lines[:10] + ([f"  and {len(lines) - 10} more files"] if len(lines) > 10 else [])
    remedy = (
        f"--columns intersection learns from the {len(shared)} columns that all files have; --columns union from all "
        f"{len(counts)}, and a column that a file lacks is then no feature of its rows; --drop leaves columns out"
    )
    return "\n".join(["the files have different columns:", *shown, remedy])


def _spelled_otherwise(lacks: Sequence[str], more: Sequence[str]) -> str:
    """A column that is missing and one too many may be the same one; names that differ in a number are two."""
    if len(lacks) > 20 or len(more) > 20:
        return ""
    for name in more:
        for meant in get_close_matches(name, lacks, 1, 0.8):
            if re.sub(r"\d", "", name) != re.sub(r"\d", "", meant):
                return f" (is {name!r} a slip for {meant!r}?)"
    return ""


def _in_order(tables: Sequence[Table], names: Sequence[str]) -> list[str]:
    """As the first file has them, then what it lacks."""
    wanted = set(names)
    first = [name for name in tables[0].columns if name in wanted]
    known = set(first)
    return first + [name for name in names if name not in known]


# --- columns under columns -----------------------------------------------------------------------------------------


def _wide(
    wide: Sequence[WideColumns],
    names: list[str],
    absent: Mapping[str, Sequence[bool]],
    more: Mapping[str, Column],
    join: Callable[[str], Column],
) -> WideColumns:
    """Blocks under blocks; columns that are words anywhere are joined one by one, and `more` are there already."""
    words = {name for part in wide for name in part.others}
    apart = np.array([name in words for name in names])
    kind = np.result_type(*[part.block.dtype for part in wide])
    n_rows, n_columns = sum(len(part.block) for part in wide), len(names) + len(more)
    block, whole, start = np.empty((n_rows, n_columns), dtype=kind, order="F"), np.ones(n_columns, dtype=bool), 0
    for t, part in enumerate(wide):
        positions, end = part.positions(names), start + len(part.block)
        positions[[k for k, name in enumerate(names) if name in absent and absent[name][t]] if absent else []] = -1
        for low in range(0, len(names), STEP):
            here, own = slice(low, min(low + STEP, len(names))), positions[low : low + STEP]
            block[start:end, here] = np.where(own >= 0, part.block[:, np.maximum(own, 0)], 0)
            whole[here] &= (own < 0) | part.whole[np.maximum(own, 0)]
        start = end
    others = {names[k]: join(names[k]) for k in np.flatnonzero(apart).tolist()}
    whole[: len(names)] &= ~apart
    whole[len(names) :] = False
    return WideColumns([*names, *more], block, whole, {**others, **more})


def _joined(tables: Sequence[Table], files: Sequence[str], absent: Mapping[str, Sequence[bool]], name: str) -> Column:
    lacks = absent.get(name, [False] * len(tables))
    parts = [None if lacks[k] else table.columns[name] for k, table in enumerate(tables)]
    known = [(k, part) for k, part in enumerate(parts) if part is not None]
    # nothing at all is read as numbers, all of them missing: that says nothing about the kind
    informative = [(k, part) for k, part in known if part.kind != "number" or not part.missing.all()] or known
    kinds = dict.fromkeys(part.kind for _, part in informative) or {"number": None}
    if len(kinds) > 1 and set(kinds) != {"number", "text"}:
        said = "; ".join(
            f"{_KINDS[kind]} in {_few([files[k] for k, part in informative if part.kind == kind])}" for kind in kinds
        )
        raise TableError(f"column {name!r} holds different things: {said}. Make it the same everywhere, or --drop it")
    kind = "text" if "text" in kinds else next(iter(kinds))
    values = [_values(part, kind, table.n_rows) for part, table in zip(parts, tables, strict=True)]
    refused = next((f"{part.refusal} ({files[k]})" for k, part in known if part.refusal), "")
    codes = [table.columns[name].numbers if name in table.columns else None for table in tables]
    numbers = [own for own in codes if own is not None]
    together = np.concatenate(numbers) if len(numbers) == len(tables) else None
    orders = {part.ordered for _, part in known}
    ordered = orders.pop() if len(orders) == 1 else ()
    return Column(kind, np.concatenate(values), None, refused, together, ordered)


_KINDS = {"number": "numbers", "text": "words", "date": "dates", "other": "something else"}


def _values(part: Column | None, kind: str, size: int) -> Array:
    """The values of one file as those of the kind of all files; zero, or nothing, where it has no such column."""
    if kind == "number":
        return np.zeros(size, dtype=np.int8) if part is None else part.values
    if kind == "other" and part is not None:
        return part.values.astype(object)
    if part is None or (part.kind != kind and part.missing.all()):
        if kind == "date":
            return np.full(size, "NaT", dtype="datetime64[us]")
        return np.full(size, None, dtype=object)
    if kind == "text":
        return np.array(as_words(part), dtype=object)
    return part.values


def _dropped(tables: Sequence[Table], drop: Sequence[str], known: set[str], n_rows: int) -> dict[str, Column]:
    """Dropped columns as zeros that take no memory, so that their names are known."""
    names = dict.fromkeys(name for table in tables for name in _matches(drop, table.columns))
    nothing = Column("number", np.broadcast_to(np.float64(0.0), (n_rows,)))
    return {name: nothing for name in names if name not in known}


# --- words -----------------------------------------------------------------------------------------------------------


def _quoted(names: Iterable[str]) -> str:
    return few([repr(name) for name in names])


def _few(files: Sequence[str]) -> str:
    return few(files, NAMED_FILES)


def _notes(
    features: Sequence[dict[str, None]], kept: Sequence[str], lacking: Mapping[int, Sequence[str]],
    files: Sequence[str], rule: Rule,
) -> list[str]:  # fmt: skip
    notes = []
    every = dict.fromkeys(name for own in features for name in own)
    if rule == "intersection" and len(every) > len(kept):
        known = set(kept)
        out = [name for name in every if name not in known]
        notes.append(f"{len(out)} column(s) that not all files have are left out: {_quoted(out)}")
    for k, names in list(lacking.items())[: 2 * NAMED_CELLS]:
        notes.append(
            f"{files[k]} lacks {len(names)} of {len(kept)} columns, which are no features of its rows (zero there): "
            f"{_quoted(names)}"
        )
    if len(lacking) > 2 * NAMED_CELLS:
        notes.append(f"{len(lacking) - 2 * NAMED_CELLS} more files lack columns, too")
    return notes
