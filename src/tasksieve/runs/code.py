"""A run as lines to copy: fit the same model in Python, predict with it in Python and in R."""

from __future__ import annotations

import json
import os
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from ..report.content import CodeSample
from ..report.rows import has_class_rows, row_labels, rows_are_classes
from ..tables.row_columns import groups_column
from ..tables.stack import FILE_TASK
from ..tasks.sample_space import CLASSES
from .folder import STREAM, RunFolder
from .model_file import SavedModel

# Arguments of `prepare` about the columns of a table, as the command line names them.
COLUMNS = (
    "task", "weights", "offset", "id", "features", "drop", "keep", "categorical", "reference", "date_parts", "missing",
    "exclude_task", "exclude_class", "min_rows", "pattern_rows",
)  # fmt: skip
# Rows that do not come from one table of text or numbers.
ELSEWHERE = ("bfile", "pfile", "vcf_zarr", "bgen", "zarr", "cluster")
# Arguments of `read_table`, as the command line names them.
READING = ("format", "separator", "encoding", "decimal", "value_labels")
# Columns that every file must have beside the targets, as the command line names them.
BESIDE = ("task", "weights", "offset", "row_groups", "id")
STACKING = "from tasksieve.tables.stack import Wanted, stack\n"
UNSEEN = "new.csv"  # a table to predict


def code_samples(folder: RunFolder, saved: SavedModel, config: dict[str, Any]) -> list[CodeSample]:
    """What can be copied from the report of a run; nothing that would not run."""
    if any(config.get(name) for name in ELSEWHERE) or "table" not in config:
        return []
    if _several(saved, config) and not _stackable(saved):
        return []
    config = {**config, "row_groups": groups_column(config.get("row_groups"))}
    samples = [_python_predict(folder, saved)]
    if not (folder / STREAM).is_file():
        samples.insert(0, _python_fit(folder, saved, config))
    patterns = hasattr(saved.estimator, "patterns_")
    # what R would have to make, or find, first
    if saved.facts.get("missing") != "indicator" and not patterns and saved.task != FILE_TASK:
        samples.append(_r_predict(folder, saved))
    return samples


def _sheets(saved: SavedModel, config: dict[str, Any]) -> bool:
    return bool(saved.facts.get("sheets")) or len(config.get("sheet") or ()) > 1


def _several(saved: SavedModel, config: dict[str, Any]) -> bool:
    """Whether the table was several files, or sheets."""
    return not isinstance(config["table"], str) or _sheets(saved, config)


def _stackable(saved: SavedModel) -> bool:
    """Whether several files can be read in a few lines: not with labels of unlike kinds, and not where files are tasks
    in a run that does not say which (of version 0.2)."""
    unlike = hasattr(saved.estimator, "losses_") or saved.facts.get("survival")
    return not unlike and (saved.task != FILE_TASK or "file_tasks" in saved.facts)


def _read_several(saved: SavedModel, config: dict[str, Any], form: list[str]) -> str:
    """Lines that read several files, or sheets, under each other."""
    needed = [("--target", name) for name in saved.targets]
    needed += [(f"--{key.replace('_', '-')}", config[key]) for key in BESIDE if config.get(key)]
    columns = {key: config[key] for key in ("features", "drop", "keep") if config.get(key)}
    columns |= {"rule": config["columns"]} if config.get("columns") else {}
    columns |= _judged(config)
    wanted = ", ".join([repr(needed), *(f"{name}={value!r}" for name, value in columns.items())])
    names = saved.facts.get("file_tasks")
    if _sheets(saved, config):
        reading = ", ".join([repr(os.path.basename(config["table"])), repr(config["sheet"]), *form])
        first, parts, named = f"sheets = read_sheets({reading})\n", "list(sheets.values())", "list(sheets)"
    else:
        files = [os.path.basename(path) for path in config["table"]]
        if len(set(files)) < len(files):
            files = [os.path.relpath(path, os.path.commonpath(config["table"])) for path in config["table"]]
        sheet = [f"sheet={name!r}" for name in config.get("sheet") or ()]
        first = f"parts = [read_table({', '.join(['file', *form, *sheet])}) for file in {files!r}]\n"
        parts, named = "parts", ""
    tasks = "None" if saved.task != FILE_TASK else repr(names) if names else named
    return f"{first}table = stack({parts}, {tasks}, Wanted({wanted})).table\n"


def _judged(config: dict[str, Any]) -> dict[str, str]:
    """Rule that ids are known by, where that is not as it is today; runs of version 0.2 do not say."""
    return {"ids": "values"} if config.get("ids", "values") == "values" else {}


def _python_fit(folder: RunFolder, saved: SavedModel, config: dict[str, Any]) -> CodeSample:
    model = saved.estimator
    words: dict[str, Any] = {"target": saved.targets}
    words |= {name: config[name] for name in COLUMNS if config.get(name) not in (None, [], False, "error")}
    words |= _judged(config)
    if saved.task == FILE_TASK:
        words["task"] = FILE_TASK
    if config.get("row_groups"):
        words["groups"] = config["row_groups"]
    if is_classifier(model):
        words["classes"] = True
    unlike = hasattr(model, "losses_")
    if unlike and saved.task is None:
        kinds = zip(saved.targets, model.losses_, strict=True)
        words["classes"] = [name for name, loss in kinds if loss.labels in CLASSES]
    arguments = ", ".join(f"{name}={value!r}" for name, value in words.items())
    survival, imported = saved.facts.get("survival"), ""
    if survival:
        imported = "SurvivalColumns, "
        each = ", ".join(f"{name!r}: SurvivalColumns({_given(own)})" for name, own in survival.items())
        survival = f"survival={{{each}}}"
        arguments += "" if unlike and saved.task is not None else f", {survival}"
    if unlike and saved.task is not None:
        imported = f"LabelsByTask, {imported}"
        by_task = {str(task): loss.labels for task, loss in zip(model.tasks_.tolist(), model.losses_, strict=True)}
        beside = f", {survival}" if survival else ""
        arguments += f", by_task=LabelsByTask({saved.facts.get('label')!r}, {by_task!r}{beside})"
    rows = {"task": "task", "weights": "sample_weight", "offset": "offset"}
    fit = "".join(f", {name}=data.{name}" for key, name in rows.items() if words.get(key))
    form = [f"{name}={config[name]!r}" for name in READING if config.get(name) is not None]
    first, reader, stacking, beside = "", "read_table", "", "table"
    if _several(saved, config):
        first, table = _read_several(saved, config, form), "table"
        reader = "read_sheets" if _sheets(saved, config) else reader
        stacking, beside = STACKING, "tables"
    else:
        form += [f"sheet={name!r}" for name in config.get("sheet") or ()]
        table = f"read_table({', '.join([repr(os.path.basename(config['table'])), *form])})"
    given, load = _changed(model), ""
    if given is None:
        made = f"clone(load_model(RunFolder({folder.path.name!r})).estimator)"
        load = "from sklearn.base import clone\nfrom tasksieve.runs import RunFolder, load_model\n"
    else:
        made = f"ts.{type(model).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
        load = "import tasksieve as ts\n"
    chosen = " The strength is the one that cross-validation chose." if config.get("cv") else ""
    return CodeSample(
        "Fit the same model",
        "Python",
        f"{load}from tasksieve.tables import {imported}prepare, {reader}\n{stacking}\n"
        f"{first}data = prepare({table}, {arguments})\n"
        f"model = {made}\n"
        f"model.fit(data.X, data.y{fit})\n"
        "print(model.objective_, model.dual_gap_)\n",
        f"Run it beside the {beside}. It gives the same coefficients up to the tolerance, with a certificate of its "
        f"own.{chosen}",
    )


def _given(words: dict[str, Any]) -> str:
    return ", ".join(f"{name}={word!r}" for name, word in words.items() if word is not None)


def _changed(model: Any) -> dict[str, Any] | None:
    """Parameters that are not the defaults, where all of them can be written down."""
    defaults = {name: p.default for name, p in signature(type(model).__init__).parameters.items() if name != "self"}
    found = {}
    for name, value in model.get_params(deep=False).items():
        default = defaults.get(name)
        if value is default or name in ("random_state", "n_jobs", "verbose", "device"):
            continue
        if not _written_down(value):
            return None  # arrays: graphs, weights
        if value != default:
            found[name] = value
    return found


def _written_down(value: Any) -> bool:
    """Whether a value is what Python prints for it: a number or a word, or a few of them."""
    if isinstance(value, dict):
        return all(map(_written_down, [*value, *value.values()]))
    return all(map(_written_down, value)) if type(value) is list else isinstance(value, bool | int | float | str | None)


def _python_predict(folder: RunFolder, saved: SavedModel) -> CodeSample:
    columns = {"task": saved.task, "offset": saved.facts.get("offset")}
    arguments = ", ".join(f"{name}={value!r}" for name, value in columns.items() if value)
    task = ", task=task" if saved.task else ""
    offset = ", offset=offset" if saved.facts.get("offset") else ""
    names, load = "RunFolder, load_model\n", "load_model"
    if (folder / STREAM).is_file():
        names, load = "RunFolder\nfrom tasksieve.runs.stream_run import load_stream\n", "load_stream"
    how = saved.filling["filled"]
    fill = f", missing={how!r}, **saved.filling" if saved.fill is not None else ""
    if hasattr(saved.estimator, "patterns_"):
        fill, task = ", patterns=saved.estimator.patterns_", ""  # X knows the pattern of each row
    comma = ", " if arguments else ""
    table, stacking, note = f"read_table({UNSEEN!r})", "", ""
    if saved.task == FILE_TASK:
        own = str((saved.facts.get("file_tasks") or saved.estimator.tasks_.tolist())[0])
        wanted = "Wanted((), saved.encoding.sources, fitted=True, lacking=saved.facts['lacking'])"
        table, stacking = f"stack([{table}], [{own!r}], {wanted}).table", STACKING
        note = f" and rows of the task {own!r}"
    return CodeSample(
        "Predict new rows",
        "Python",
        f"from tasksieve.runs import {names}from tasksieve.tables import prepare_rows, read_table\n{stacking}\n"
        f"saved = {load}(RunFolder({folder.path.name!r}))\n"
        f"table = {table}\n"
        f"X, task, offset, rows = prepare_rows(table, saved.encoding{comma}{arguments}{fill})\n"
        f"predictions = saved.estimator.predict(X{task}{offset})\n",
        f"Run it beside the folder {folder.path.name}; {UNSEEN} is a table with the columns of the fit{note}.",
    )


def _r_predict(folder: RunFolder, saved: SavedModel) -> CodeSample:
    """Base R alone, from coefficients.csv and intercepts.csv."""
    model = saved.estimator
    several = has_class_rows(model)
    offset = saved.facts.get("offset")
    lines = [
        f"run <- {quoted(folder.path.name)}",
        'coefficients <- read.csv(file.path(run, "coefficients.csv"), encoding = "UTF-8", na.strings = character(0),',
        '                         colClasses = c("character", "character", "numeric"))',
        'intercepts <- read.csv(file.path(run, "intercepts.csv"), colClasses = c("character", "numeric"),',
        '                       encoding = "UTF-8", na.strings = character(0))',
        f'new <- read.csv({quoted(UNSEEN)}, check.names = FALSE, encoding = "UTF-8")',
        "",
        "# a feature called column=word is 1 where the column holds the word, else 0",
        "feature <- function(name) {",
        "  if (name %in% names(new)) return(as.numeric(new[[name]]))",
        '  column <- Filter(function(column) startsWith(name, paste0(column, "=")), names(new))[1]',
        '  if (is.na(column)) stop("the table has no column ", name)',
        "  as.numeric(as.character(new[[column]]) == substring(name, nchar(column) + 2))",
        "}",
        "score <- function(task) {",
        "  own <- coefficients[coefficients$task == task, ]",
        "  total <- rep(intercepts$intercept[intercepts$task == task], nrow(new))",
        "  for (i in seq_len(nrow(own))) total <- total + own$coefficient[i] * feature(own$feature[i])",
        f"  total{f' + new[[{quoted(str(offset))}]]' if offset else ''}",
        "}",
    ]
    note = "Base R only. Missing values stay missing."
    if saved.task and not several:
        lines += [
            "result <- rep(NA_real_, nrow(new))",
            f"for (task in unique(as.character(new[[{quoted(saved.task)}]]))) {{",
            f"  rows <- which(as.character(new[[{quoted(saved.task)}]]) == task)",
            "  result[rows] <- score(task)[rows]",
            "}",
        ]
    else:
        lines += ["result <- do.call(cbind, setNames(lapply(intercepts$task, score), intercepts$task))"]
    classes = getattr(model, "classes_", None)
    if hasattr(model, "thresholds_"):
        lines += _r_answers(saved)
    elif rows_are_classes(model, saved.targets):
        lines += ['prediction <- colnames(result)[max.col(result, ties.method = "first")]']
    elif several:
        note += " For each task the class with the largest score is predicted."
    elif classes is not None and not isinstance(classes, list):
        low, high = (quoted(str(label)) for label in classes.tolist()[:2])
        lines += [f"prediction <- ifelse(result > 0, {high}, {low})"]
    elif classes is not None:
        note += " A score above 0 is the second class of its task."
    elif get_tags(model).target_tags.positive_only:
        lines += ["prediction <- exp(result)"]
    else:
        lines += ["prediction <- result"]
    return CodeSample("Predict new rows", "R", "\n".join(lines) + "\n", note)


def _r_answers(saved: SavedModel) -> list[str]:
    """Lines of R that make predictions of scores where tasks have ordered classes, or outcomes of unlike kinds."""
    model, names = saved.estimator, row_labels(saved.estimator, saved.targets)
    each = model.classes_ if isinstance(model.classes_, list) else [model.classes_] * len(names)
    pairs = enumerate(zip(names, each, strict=True))
    answers = [f"  {quoted(name)} = {_r_answer(model, t, classes)}" for t, (name, classes) in pairs]
    lines = [
        "# of ordered classes the most probable one: a class lies between two thresholds",
        "most_probable <- function(score, thresholds, classes) {",
        "  vapply(score, function(z) {",
        "    if (is.na(z)) NA_character_ else classes[which.max(diff(c(0, plogis(thresholds - z), 1)))]",
        '  }, "")',
        "}",
        "answers <- list(",
        *(f"{line}," for line in answers[:-1]),
        *answers[-1:],
        ")",
    ]
    if saved.task is None:
        return [
            *lines,
            "prediction <- data.frame(lapply(setNames(names(answers), names(answers)),",
            "                                function(task) answers[[task]](result[, task])), check.names = FALSE)",
        ]
    return [
        *lines,
        "prediction <- rep(NA_character_, nrow(new))",
        "for (task in names(answers)) {",
        f"  rows <- which(as.character(new[[{quoted(saved.task)}]]) == task)",
        "  prediction[rows] <- as.character(answers[[task]](result[rows]))",
        "}",
    ]


def _r_answer(model: Any, t: int, classes: Any) -> str:
    """A function of R: what scores of a task mean."""
    thresholds = model.thresholds_[t]
    if thresholds is not None:
        cuts = ", ".join(repr(cut).replace("inf", "Inf") for cut in thresholds.tolist())
        words = ", ".join(quoted(label) for label in classes.tolist())
        return f"function(score) most_probable(score, c({cuts}), c({words}))"
    if classes is not None:
        return f"function(score) ifelse(score > 0, {quoted(classes[1])}, {quoted(classes[0])})"
    log = np.allclose(model.losses_[t].link(np.array([0.0, 1.0])), np.exp([0.0, 1.0]))
    return "function(score) exp(score)" if log else "function(score) score"


def quoted(text: str) -> str:
    """A string of R: its escapes are those of JSON."""
    return json.dumps(str(text), ensure_ascii=False)
