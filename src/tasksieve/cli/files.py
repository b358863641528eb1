"""Tables that are several files, named one by one, by a glob or by their folder: each is a task, or part of a table."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..report.words import few
from ..runs import MODELS, SavedModel
from ..runs.folder import CONFIG, VERSIONS, file_digest
from ..tables import Table, TableError, read_sheets, read_table, table_format
from ..tables.frames import ENDINGS, REMEDIES
from ..tables.packed import PACKED
from ..tables.row_columns import RowColumns
from ..tables.stack import FILE_TASK, Stacked, Wanted, stack
from .exit_codes import UsageError
from .options import Asked
from .outcomes import labels_by_task, survival_of
from .related import judged_ids, named_groups

PART = "{}"  # of a pattern: the part of a file's name that names the task
GLOB = set("*?[")

# What is said of every file alike.
READING = ("format", "separator", "encoding", "decimal", "value_labels")

Tables = str | list[str]


# --- which files -------------------------------------------------------------------------------------------------


def expand_tables(
    words: Sequence[str],
    format: str | None = None,
    skip: Sequence[str] | None = None,
    left_out: list[str] | None = None,
) -> Tables:
    """Absolute paths of the tables that files, folders (all tables in them, by their endings) and globs mean; a string
    where that is one file, named as such.

    - `skip`: Names or globs of what a folder may hold beside tables; `left_out` gets their names.
    """
    found: list[str] = []
    gone: list[str] = [] if left_out is None else left_out
    for word in words:
        if os.path.isdir(word) and not word.rstrip("/").endswith(".zarr"):
            own = _tables_in(word, format, skip or (), gone)
        elif not os.path.exists(word) and GLOB & set(word):
            own = sorted(path for path in glob.glob(word, recursive=True) if os.path.isfile(path))
            if not own:
                raise TableError(f"no file matches {word!r}")
            others = [path for path in own if not _is_table(os.path.basename(path), format)]
            skipped = [path for path in others if _matches(os.path.basename(path), skip or ())]
            gone += [os.path.basename(path) for path in skipped]
            own = [path for path in own if path not in skipped]
        elif len(words) == 1:
            if skip:
                sheets = " (--sheet names the sheets to read)" * word.lower().endswith((".xlsx", ".xlsm", ".ods"))
                raise UsageError(f"--skip: is for what a folder or a glob holds, and {word} is one file{sheets}")
            return os.path.abspath(word)
        else:
            own = [word]
        found += [os.path.abspath(path) for path in own]
    twice = sorted({path for path in found if found.count(path) > 1})
    if twice:
        raise TableError(f"{twice[0]} is named twice")
    return found


def _tables_in(folder: str, format: str | None, skip: Sequence[str], left_out: list[str]) -> list[str]:
    """The tables of a folder. Whatever else it holds must be named: a site may be missing."""
    entries = [one for one in sorted(os.scandir(folder), key=lambda one: one.name) if not _is_hidden(one.name)]
    own = [one.path for one in entries if one.is_file() and _is_table(one.name, format)]
    others = [one.name + ("" if one.is_file() else "/") for one in entries if one.path not in own]
    unnamed = [name for name in others if not _matches(name.rstrip("/"), skip)]
    if {CONFIG, VERSIONS} <= set(others):
        raise TableError(f"{folder} is the folder of a run; what is needed here is a table, the one of the run perhaps")
    if not own:
        held = f" ({few(others, 10)})" if others else ""
        raise TableError(f"the folder {folder} holds no table{held}; known endings are {', '.join(ENDINGS)}")
    if unnamed:
        remedies = {name: REMEDIES.get(os.path.splitext(name)[1].lower(), "") for name in unnamed}
        shown = [f"{name} ({words})" if words else name for name, words in remedies.items()]
        raise TableError(
            f"the folder {folder} holds what is no table: {', '.join(shown)}. --skip leaves such files out (all, or "
            "with names or globs those)"
        )
    left_out += others
    return own


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _is_hidden(name: str) -> bool:
    """Hidden files, and those by which office programs mark a file as open."""
    return name.startswith((".", "~$"))


def _is_table(name: str, format: str | None) -> bool:
    if _is_hidden(name):
        return False
    ending = Path(_unpacked(name)).suffix.lower()
    return format is not None or ending in ENDINGS or (not ending and name.lower().endswith(".zip"))


def _unpacked(name: str) -> str:
    stem, ending = os.path.splitext(name)
    return stem if ending.lower() in PACKED else name


def title(tables: Tables) -> str:
    """What the data are called."""
    if isinstance(tables, str):
        return os.path.basename(tables)
    return f"{len(tables)} files: {few(map(os.path.basename, tables), 3)}"


def tables_digest(tables: Tables) -> str:
    """One digest for all files, whatever their order."""
    if isinstance(tables, str):
        return file_digest(Path(tables))
    every = sorted((os.path.basename(path), file_digest(Path(path))) for path in tables)
    return hashlib.sha256(repr(every).encode()).hexdigest()


# --- which tasks -------------------------------------------------------------------------------------------------


def several_sheets(config: dict[str, Any]) -> bool:
    """Whether several sheets of a workbook are asked for: each is then what a file would be."""
    sheets = config.get("sheet") or []
    return len(sheets) > 1 or any(GLOB & set(name) for name in sheets)


def several_files(config: dict[str, Any]) -> bool:
    """Whether the table is several files, or sheets."""
    return isinstance(config.get("table"), list) or several_sheets(config)


def file_tasks(config: dict[str, Any]) -> bool:
    """Whether each file, or sheet, is a task."""
    return several_files(config) and config.get("task") is None


def task_column(config: dict[str, Any]) -> str | None:
    """The column with the task of each row."""
    return FILE_TASK if file_tasks(config) else config.get("task")


def name_tasks(files: Sequence[str], given: Sequence[str] | None = None) -> list[str]:
    """What the files' tasks are called: as one pattern with {} in the place of the task's name says, or a name for each
    file; by default the file's name without its ending."""
    if not given:
        names = [_stem(path) for path in files]
    elif len(given) == 1 and PART in given[0]:
        names = [_part(path, given[0]) for path in files]
    elif len(given) == len(files):
        names = list(given)
    else:
        raise UsageError(
            f"--task-name: {len(given)} name(s) for {len(files)} file(s); give a name for each, in the order of the "
            f"files, or one pattern such as 'run_{PART}.csv'"
        )
    for k, name in enumerate(names):
        if name in names[:k]:
            raise UsageError(
                f"two files are task {name!r}: {files[names.index(name)]} and {files[k]}. --task-name tells them "
                f"apart: a pattern with {PART} for the part of the path that names the task ('{PART}/data.csv'), or a "
                "name for each file"
            )
    return names


def _stem(path: str) -> str:
    return os.path.splitext(_unpacked(os.path.basename(path)))[0]


def _part(path: str, pattern: str) -> str:
    if pattern.count(PART) != 1:
        raise UsageError(f"--task-name: {PART} once, for the part that names the task; got {pattern!r}")
    signs = {PART: "(.+)", "*": ".*", "?": "."}
    regex = "".join(signs.get(part) or re.escape(part) for part in re.split(r"(\{\}|\*|\?)", pattern))
    tail = Path(path).parts[-(pattern.count("/") + 1) :]
    for last in (tail[-1], _stem(path)):
        found = re.fullmatch(regex, "/".join([*tail[:-1], last]))
        if found:
            return found[1]
    raise UsageError(f"--task-name: {path} does not match {pattern!r}")


# --- reading -----------------------------------------------------------------------------------------------------


def check_files(config: dict[str, Any]) -> None:
    """Refuse options of several files where there is one, or where they do not go together."""
    for key, flag in (("task_name", "--task-name"), ("columns", "--columns")):
        if key in config and not several_files(config):
            raise UsageError(f"{flag}: is for several files (one for each task), a glob or a folder")
    if "task_name" in config and config.get("task") is not None:
        raise UsageError("--task-name and --task: the task is in the file's name, or in a column")
    if isinstance(config["table"], list):
        if several_sheets(config):
            raise UsageError("--sheet: several sheets of one workbook, or one sheet of several workbooks; not both")
        if any(path.endswith(".zarr") for path in config["table"]):
            raise UsageError("a Zarr store is one table: give it alone")
        if file_tasks(config):
            name_tasks(config["table"], config.get("task_name"))


def read_parts(tables: Tables, config: dict[str, Any]) -> tuple[list[Table], list[str]]:
    """The tables of files, or of the sheets of a workbook, and what these are called."""
    said = {key: config[key] for key in READING if config.get(key) is not None}
    if several_sheets(config):
        if isinstance(tables, list):
            raise UsageError("--sheet: several sheets of one workbook, or one sheet of several workbooks; not both")
        found = read_sheets(tables, config["sheet"], **said)
        return list(found.values()), list(found)
    files = [tables] if isinstance(tables, str) else tables
    [sheet] = config.get("sheet") or [None]
    return [read_table(path, sheet=sheet, **said) for path in files], files


def read_content(config: dict[str, Any]) -> Stacked:
    """The table of a configuration, whatever it consists of."""
    tables, parts = read_parts(config["table"], config)
    if not several_files(config):
        return Stacked(tables[0], {}, list(tables[0].notes))
    survival, unlike = survival_of(config), MODELS[config.get("model", "lasso")].targets == "mixed"
    some = [(option, name) for name, option in labels_by_task(config).columns.items()] if unlike else []
    needed = [] if unlike else [("--target", pattern) for pattern in config["target"] if pattern not in survival]
    needed += [pair for own in survival.values() for pair in own.flags.items()]
    for key in ("task", "weights", "offset", "id"):
        if config.get(key) is not None:
            needed.append((f"--{key}", config[key]))
    if (groups := named_groups(config)) is not None:
        needed.append(("--row-groups", groups))
    columns = config.get("features", ()), config.get("drop", ()), config.get("columns", "same")
    wanted = Wanted(needed, *columns, some=some, keep=config.get("keep", ()), ids=judged_ids(config))
    names = _task_names(parts, config.get("task_name"), several_sheets(config)) if file_tasks(config) else None
    found = stack(tables, names, wanted)
    if unlike:
        return found
    targets = RowColumns.of(found.table, config["target"], survival=survival).targets
    if names is not None and len(targets) > 1:
        parts_are = "sheets" if several_sheets(config) else "files"
        raise UsageError(
            f"--target: each of the {len(tables)} {parts_are} is a task, and so would be each of the targets "
            f"{', '.join(targets[:3])}: name one, or the column with the task of each row (--task)"
        )
    return found


def _task_names(parts: Sequence[str], given: Sequence[str] | None, sheets: bool) -> list[str]:
    """What the tasks of files, or of sheets, are called."""
    if not sheets:
        return name_tasks(parts, given)
    if given and len(given) != len(parts):
        raise UsageError(f"--task-name: {len(given)} name(s) for {len(parts)} sheets; give each a name, in their order")
    return list(given or parts)


def read_new_rows(
    asked: Asked,
    saved: SavedModel,
    needed: Sequence[tuple[str, str]],
    all_tasks: bool = False,
    some: Sequence[tuple[str, str]] = (),
) -> Table:
    """Rows for a model that is already fitted. Every file must have the columns that are `needed` (flag, name) beside
    the features, and may have `some`; with `all_tasks` rows belong to no task."""
    task, names = asked.task, asked.task_name
    found = expand_tables(asked.table, asked.format, asked.skip)
    by_file = bool(saved.said["files"]) and task is None and not all_tasks
    if names and not by_file:
        raise UsageError("--task-name: is for a model whose tasks were files, without --task and --all-tasks")
    config = {key: getattr(asked, key) for key in (*READING, "sheet")}
    if config["value_labels"] is None and _has_labels(found, asked.format):
        config["value_labels"] = saved.said["value_labels"]
    several = isinstance(found, list) or several_sheets(config)
    tables, parts = read_parts(found, config)
    if not several and not by_file:
        return tables[0]
    tasks = None
    if by_file:
        pattern, sheet = saved.said["task_name"], config["sheet"] or []
        if not several_sheets(config) and saved.said["sheets"] and len(sheet) == 1 and len(parts) == 1:
            tasks = list(names or sheet)
        else:
            patterns = names or ([pattern] if isinstance(pattern, str) else None)
            tasks = _task_names(parts, patterns, several_sheets(config))
        _refuse_unknown_tasks(parts, tasks, saved)
    columns = [name for name in (None if by_file else task or saved.task, asked.id or saved.said["id"]) if name]
    beside = [("--id", name) for name in columns if all(name in table.columns for table in tables)]
    lacking = saved.said["lacking"]
    sources = list(dict.fromkeys(saved.encoding.sources))
    lacking = lacking if isinstance(lacking, dict) else {}
    wanted = Wanted([*needed, *beside], sources, fitted=True, lacking=lacking, some=some)
    return stack(tables, tasks, wanted).table


def _has_labels(tables: Tables, format: str | None) -> bool:
    files = [tables] if isinstance(tables, str) else tables
    return all((format or table_format(path)) in ("stata", "spss") for path in files)


def _refuse_unknown_tasks(files: Sequence[str], tasks: Sequence[str], saved: SavedModel) -> None:
    patterns = getattr(saved.estimator, "patterns_", None)
    labels = saved.estimator.tasks_ if patterns is None or patterns.of is None else np.unique(patterns.of)
    known = [str(label) for label in labels.tolist()]
    for path, name in zip(files, tasks, strict=True):
        if name not in known:
            raise UsageError(
                f"{path}: the model has no task {name!r} (the name of the file); it has {few(map(repr, known), 8)}. "
                "--task-name says which task a file is, --task names a column with the tasks of its rows"
            )
