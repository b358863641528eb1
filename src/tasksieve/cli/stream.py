"""``tasksieve stream``: online models, from a file or standard input, in bounded memory."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import online
from ..fitted.arguments import check_parameters
from ..fitted.progress import watch
from ..report.page import need_jinja
from ..report.words import count
from ..runs import RunError, RunFolder
from ..runs.folder import CONFIG, DATA, MANIFEST, STREAM
from ..runs.inspected import NOT_PROVED
from ..runs.results import write_coefficients
from ..runs.stream_history import Looks
from ..runs.stream_run import ESTIMATORS, MEASURES, load_online
from ..tables import TableError, table_format
from ..tables.chunks import STREAMED, ChunkReader
from . import commands
from .exit_codes import OK, UsageError
from .folders import begin, choose_folder, end, held, refuse_other_options
from .messages import in_words
from .options import Asked, command_line, given_of, refuse
from .progress import Display, caught_warnings


def run_stream(asked: Asked) -> int:
    """Learn from a table once through; a checkpoint in the run folder is the state, and at the end the model."""
    why = "a stream learns numbers or two classes, row by row; other outcomes need all rows: tasksieve fit"
    refuse((key for key in commands.NOT_STREAMED if getattr(asked, key)), why)
    gamma, folder = read_gamma(asked.gamma), choose_folder(asked)
    if asked.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every: at least 1, got {asked.checkpoint_every}")
    config = given_of(asked, commands.STREAM, "config")
    config["table"] = asked.table if asked.table == "-" else os.path.abspath(asked.table)
    config["features"], config["keep"] = asked.features or None, asked.keep or []
    params = given_of(asked, commands.STREAM, "param")
    params["gamma"] = gamma
    begun = folder.read_json(CONFIG) if asked.resume and folder.begun else {}
    if begun and "keep" not in begun and not asked.keep:  # earlier versions learned from whatever looked like an id
        begun["keep"] = config["keep"] = ["*"]
    if gamma is None:  # a run that is resumed has its own, which was 1 by default in version 0.1
        old = begun.get("params")
        params["gamma"] = old.get("gamma", "auto") if isinstance(old, dict) else "auto"
    if asked.report:
        need_jinja()  # find out now, not after hours
    reader = open_reader(config)
    given = {name: value for name, value in params.items() if value is not None}
    given["missing"] = given.pop("scheme")
    model = getattr(online, ESTIMATORS[config["model"]])(**given)
    check_parameters(model)
    whole = {"command": "stream", **config, "params": given}
    with held(folder, asked, STREAM) as display:
        if asked.resume and folder.begun:
            refuse_other_options(begun, whole, {"table", "chunk_rows"})
            if folder.finished and asked.max_rows is None and config["table"] == "-":
                raise RunError(
                    f"{folder.path} is finished, and standard input does not show whether there is more"
                )
        (folder / MANIFEST).unlink(missing_ok=True)
        resumed = folder.begun and (folder / STREAM).is_file()
        begin(folder, whole, "resumed" if resumed else "begun", display)
        if resumed:
            load_online(folder)  # a spoilt checkpoint must not be taken for a state
        typed = {"command": "stream", **config, **params}
        reproduce = command_line(typed, commands.STREAM, str(folder.path), lambda key: key == "chunk_rows")
        learn(folder, config, model, reader, asked, display, reproduce)
    return OK


def read_gamma(text: str | None) -> Any:
    """A number, "auto", or None where the option was not given."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--gamma: a number, or auto; got {text!r}") from None


def open_reader(config: dict[str, Any]) -> ChunkReader:
    table = config["table"]
    source: Any = table
    if table == "-":
        source, format = sys.stdin.buffer, config["format"] or "csv"
        if format != "csv":
            raise UsageError("standard input is read as CSV")
    else:
        if Path(table).is_dir():
            raise UsageError(
                f"{table} is a folder: a stream learns in the order of the rows, and task after task is a bad order; "
                "give it one table, with a column for the task (--task)"
            )
        format = config["format"] or table_format(table)
        if not Path(table).is_file():
            raise TableError(f"there is no file {table}")
    if format not in STREAMED:
        raise UsageError(f"--format: a stream reads {', '.join(STREAMED)}; {table} is {format}")
    if config["chunk_rows"] < 1:
        raise UsageError(f"--chunk-rows: at least 1, got {config['chunk_rows']}")
    name = "standard input" if table == "-" else table
    same = ("target", "task", "weights", "keep", "separator", "encoding", "decimal", "missing", "chunk_rows")
    more = {key: config[key] for key in (*same, "n_features")}
    return ChunkReader(
        source, name, format, features=config["features"] or (), classes=config["model"] == "classifier", **more
    )


def learn(
    folder: RunFolder,
    config: dict[str, Any],
    model: Any,
    reader: ChunkReader,
    call: Asked,
    display: Display,
    reproduce: str,
) -> None:
    """All rows, once; then everything about the model."""
    began = time.perf_counter()
    total = Path(config["table"]).stat().st_size if config["table"] != "-" else None
    looks = Looks(folder, model)
    with caught_warnings() as said, watch(display.show):
        model.fit_stream(
            looks.cut(reader),
            format="iterable",
            checkpoint=folder / STREAM,
            checkpoint_every=call.checkpoint_every,
            max_rows=call.max_rows,
            progress=looks.look,
        )
    display.close()
    seconds = time.perf_counter() - began
    if not hasattr(model, "n_rows_seen_"):
        raise TableError(f"{reader.name} has no rows")
    if not (folder / STREAM).is_file():
        model.save(folder / STREAM)
    looks.end()
    for warning in said:
        display.note(f"warning: {in_words(warning)}")
    notes = [*reader.notes, *([f"{reader.n_dropped} rows left out for missing values"] if reader.n_dropped else [])]
    for note in notes:
        display.note(f"note: {note}")
    target = [config["target"] or "label"]
    labels = [str(label) for label in model.tasks_.tolist()] if config["task"] else target
    write_coefficients(folder, model.coef_, model.intercept_, labels, reader.feature_names)
    data = {
        "name": os.path.basename(config["table"]),
        "bytes": total,
        "rows": int(model.n_rows_seen_),
        "features": int(model.n_features_in_),
        "feature_names": reader.feature_names,
        "tasks": len(labels),
        "libsvm": reader.format == "libsvm",
        "notes": [*notes, *map(in_words, said)],
        "reproduce": reproduce,
    }
    folder.write_json(DATA, data)
    rows, loss = model.n_rows_seen_, model.progressive_loss_
    words = f"finished: {rows} rows in {seconds:.2f} s; progressive loss {loss:.6g}"
    last = end(folder, call, display, {"fit": seconds}, words)
    if call.quiet:
        return
    selected = int(np.count_nonzero(np.any(model.coef_, axis=0)))
    seen = model.progress()
    known = seen.score[np.isfinite(seen.score)]
    over = " (mean over tasks)" if len(labels) > 1 else ""
    lines = [
        f"{type(model).__name__}: {count(rows, 'row')}, {count(len(labels), 'task')}; "
        f"{selected:,} of {count(model.n_features_in_, 'feature')} selected; {seconds:.1f} s",
        f"mean loss of rows before they were learned: {seen.loss:.4g}; gamma {model.gamma_:.4g}",
        *([f"{MEASURES[config['model']]}: {known.mean():.3f}{over}"] if known.size else []),
    ]
    print("\n".join([*lines, *last, f"NO CERTIFICATE: {NOT_PROVED}"]), flush=True)
