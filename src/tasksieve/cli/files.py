"""Tables that are several files, named one by one, by a glob or by their folder: each is a task, or part of a table."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report.words import few
from ..runs import MODELS, SavedModel
from ..runs.folder import file_digest
from ..tables import Table, TableError, read_table
from ..tables.frames import ENDINGS, PACKED
from ..tables.row_columns import RowColumns
from ..tables.stack import FILE_TASK, Stacked, Wanted, stack
from .exit_codes import UsageError
from .options import Asked
from .outcomes import labels_by_task, survival_of

PART = "{}"  # of a pattern: the part of a file's name that names the task
GLOB = set("*?[")

Tables = str | list[str]


# --- which files -------------------------------------------------------------------------------------------------


def expand_tables(words: Sequence[str], format: str | None = None) -> Tables:
    """Absolute paths of the tables that files, folders (all tables in them, by their endings) and globs mean; a string
    where that is one file, named as such."""
    found: list[str] = []
    for word in words:
        if os.path.isdir(word) and not word.rstrip("/").endswith(".zarr"):
            own = sorted(entry.path for entry in os.scandir(word) if entry.is_file() and _is_table(entry.name, format))
            if not own:
                raise TableError(f"the folder {word} holds no table; known endings are {', '.join(ENDINGS)}")
        elif not os.path.exists(word) and GLOB & set(word):
            own = sorted(path for path in glob.glob(word, recursive=True) if os.path.isfile(path))
            if not own:
                raise TableError(f"no file matches {word!r}")
        elif len(words) == 1:
            return os.path.abspath(word)
        else:
            own = [word]
        found += [os.path.abspath(path) for path in own]
    twice = sorted({path for path in found if found.count(path) > 1})
    if twice:
        raise TableError(f"{twice[0]} is named twice")
    return found


def _is_table(name: str, format: str | None) -> bool:
    if name.startswith("."):
        return False
    return format is not None or Path(_unpacked(name)).suffix.lower() in ENDINGS


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


def file_tasks(config: dict[str, Any]) -> bool:
    """Whether each file is a task."""
    return isinstance(config.get("table"), list) and config.get("task") is None


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
        if key in config and not isinstance(config["table"], list):
            raise UsageError(f"{flag}: is for several files (one for each task), a glob or a folder")
    if "task_name" in config and config.get("task") is not None:
        raise UsageError("--task-name and --task: the task is in the file's name, or in a column")
    if isinstance(config["table"], list):
        if any(path.endswith(".zarr") for path in config["table"]):
            raise UsageError("a Zarr store is one table: give it alone")
        if file_tasks(config):
            name_tasks(config["table"], config.get("task_name"))


def read_content(config: dict[str, Any]) -> Stacked:
    """The table of a configuration, whatever it consists of."""
    format, separator = config.get("format"), config.get("separator")
    if isinstance(config["table"], str):
        return Stacked(read_table(config["table"], format, separator), {}, [])
    tables = [read_table(path, format, separator) for path in config["table"]]
    survival, unlike = survival_of(config), MODELS[config.get("model", "lasso")].targets == "mixed"
    some = [(option, name) for name, option in labels_by_task(config).columns.items()] if unlike else []
    needed = [] if unlike else [("--target", pattern) for pattern in config["target"] if pattern not in survival]
    needed += [pair for own in survival.values() for pair in own.flags.items()]
    for key in ("task", "weights", "offset", "row_groups", "id"):
        if config.get(key) is not None:
            needed.append((f"--{key.replace('_', '-')}", config[key]))
    columns = config.get("features", ()), config.get("drop", ()), config.get("columns", "same")
    wanted = Wanted(needed, *columns, some=some)
    names = name_tasks(config["table"], config.get("task_name")) if file_tasks(config) else None
    found = stack(tables, names, wanted)
    if unlike:
        return found
    targets = RowColumns.of(found.table, config["target"], survival=survival).targets
    if names is not None and len(targets) > 1:
        raise UsageError(
            f"--target: each of the {len(tables)} files is a task, and so would be each of the targets "
            f"{', '.join(targets[:3])}: name one, or the column with the task of each row (--task)"
        )
    return found


def read_new_rows(
    asked: Asked,
    saved: SavedModel,
    needed: Sequence[tuple[str, str]],
    all_tasks: bool = False,
    some: Sequence[tuple[str, str]] = (),
) -> Table:
    """Rows for a model that is already fitted. Every file must have the columns that are `needed` (flag, name) beside
    the features, and may have `some`; with `all_tasks` rows belong to no task."""
    task, names, format, separator = asked.task, asked.task_name, asked.format, asked.separator
    found = expand_tables(asked.table, format)
    by_file = bool(saved.facts.get("files")) and task is None and not all_tasks
    if names and not by_file:
        raise UsageError("--task-name: is for a model whose tasks were files, without --task and --all-tasks")
    if isinstance(found, str) and not by_file:
        return read_table(found, format, separator)
    files = [found] if isinstance(found, str) else found
    tasks = None
    if by_file:
        pattern = saved.facts.get("task_name")
        tasks = name_tasks(files, names or ([pattern] if isinstance(pattern, str) else None))
        _refuse_unknown_tasks(files, tasks, saved)
    tables = [read_table(path, format, separator) for path in files]
    columns = [name for name in (None if by_file else task or saved.task, asked.id or saved.facts.get("id")) if name]
    beside = [("--id", name) for name in columns if all(name in table.columns for table in tables)]
    lacking = saved.facts.get("lacking")
    sources = list(dict.fromkeys(saved.encoding.sources))
    lacking = lacking if isinstance(lacking, dict) else {}
    wanted = Wanted([*needed, *beside], sources, fitted=True, lacking=lacking, some=some)
    return stack(tables, tasks, wanted).table


def _refuse_unknown_tasks(files: Sequence[str], tasks: Sequence[str], saved: SavedModel) -> None:
    known = [str(label) for label in saved.estimator.tasks_.tolist()]
    for path, name in zip(files, tasks, strict=True):
        if name not in known:
            raise UsageError(
                f"{path}: the model has no task {name!r} (the name of the file); it has {few(map(repr, known), 8)}. "
                "--task-name says which task a file is, --task names a column with the tasks of its rows"
            )
