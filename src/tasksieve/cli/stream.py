"""``tasksieve stream``: online models, from a file or standard input, in bounded memory."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import online
from ..fitted.arguments import check_parameters
from ..fitted.progress import watch
from ..report.words import count
from ..runs import RunError, RunFolder
from ..runs.folder import CONFIG, DATA, MANIFEST, STREAM
from ..runs.results import write_coefficients
from ..runs.stream_history import Looks
from ..runs.stream_run import ESTIMATORS, MEASURES, load_online
from ..tables import TableError, table_format
from ..tables.chunks import STREAMED, ChunkReader
from .exit_codes import OK, UsageError
from .folders import begin, choose_folder, held, refuse_other_options
from .messages import in_words
from .progress import Display, caught_warnings
from .report import REPORT, report_writer, write_run_report


def run_stream(config: dict[str, Any], params: dict[str, Any], call: dict[str, Any]) -> int:
    """Learn from a table once through; a checkpoint in the run folder is the state, and at the end the model.

    - `config`: The options of the run.
    - `params`: Parameters of the online model.
    - `call`: out, resume, overwrite, quiet, checkpoint_every, max_rows, report.
    """
    resume = call["resume"]
    folder = choose_folder(call["out"], resume, call["overwrite"])
    if call["checkpoint_every"] < 1:
        raise UsageError(f"--checkpoint-every: at least 1, got {call['checkpoint_every']}")
    if params["gamma"] is None:
        params["gamma"] = gamma_of(folder) if resume else "auto"
    if call["report"]:
        report_writer()  # find out now, not after hours
    reader = open_reader(config)
    model = getattr(online, ESTIMATORS[config["model"]])(**params)
    check_parameters(model)
    whole = {"command": "stream", **config, "params": params}
    with held(folder, call["overwrite"], call["quiet"], STREAM) as display:
        if resume and folder.begun:
            refuse_other_options(folder.read_json(CONFIG), whole, {"table", "chunk_rows"})
            if folder.finished and call["max_rows"] is None and config["table"] == "-":
                raise RunError(
                    f"{folder.path} is finished, and standard input does not show whether there is more"
                )
        (folder / MANIFEST).unlink(missing_ok=True)
        return learn(folder, whole, model, reader, call, display)


def read_gamma(text: str | None) -> Any:
    """A number, "auto", or None where the option was not given."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--gamma: a number, or auto; got {text!r}") from None


def gamma_of(folder: RunFolder) -> Any:
    """The gamma of a run that is resumed without naming one: its own, which was 1 by default in version 0.1."""
    if not folder.begun:
        return "auto"
    params = folder.read_json(CONFIG).get("params")
    return params.get("gamma", "auto") if isinstance(params, dict) else "auto"


def command_line(config: dict[str, Any], out: str) -> str:
    """The command that gives the same model."""
    words = ["tasksieve", "stream", str(config["table"]), "--model", config["model"]]
    for name in ("format", "separator", "target", "task", "weights", "n_features"):
        if config.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(config[name])]
    for name in config.get("features") or ():
        words += ["--features", name]
    if config["missing"] != "error":
        words += ["--missing", config["missing"]]
    names = {"missing": "scheme"}
    for name, value in config["params"].items():
        if name == "fit_intercept":
            words += [] if value else ["--no-intercept"]
        else:
            words += [f"--{names.get(name, name)}", str(value)]
    return shlex.join([*words, "--out", out])


def open_reader(config: dict[str, Any]) -> ChunkReader:
    table = config["table"]
    if table == "-":
        source: Any = sys.stdin.buffer
        format = config["format"] or "csv"
        if format != "csv":
            raise UsageError("standard input is read as CSV")
    else:
        if Path(table).is_dir():
            raise UsageError(
                f"{table} is a folder: a stream learns in the order of the rows, and task after task is a bad order; "
                "give it one table, with a column for the task (--task)"
            )
        source, format = table, config["format"] or table_format(table)
        if not Path(table).is_file():
            raise TableError(f"there is no file {table}")
    if format not in STREAMED:
        raise UsageError(f"--format: a stream reads {', '.join(STREAMED)}; {table} is {format}")
    if config["chunk_rows"] < 1:
        raise UsageError(f"--chunk-rows: at least 1, got {config['chunk_rows']}")
    return ChunkReader(
        source,
        "standard input" if table == "-" else table,
        format,
        config["target"],
        config["task"],
        config["weights"],
        config["features"] or (),
        config["separator"],
        config["missing"],
        config["model"] == "classifier",
        config["chunk_rows"],
        config["n_features"],
    )


def learn(
    folder: RunFolder,
    config: dict[str, Any],
    model: Any,
    reader: ChunkReader,
    call: dict[str, Any],
    display: Display,
) -> int:
    resumed = folder.begun and (folder / STREAM).is_file()
    begin(folder, config, "resumed" if resumed else "begun", display)
    if resumed:
        load_online(folder)  # a spoilt checkpoint must not be taken for a state
    began = time.perf_counter()
    total = Path(config["table"]).stat().st_size if config["table"] != "-" else None

    looks = Looks(folder, model)
    with caught_warnings() as said, watch(display.show):
        model.fit_stream(
            looks.cut(reader),
            format="iterable",
            checkpoint=folder / STREAM,
            checkpoint_every=call["checkpoint_every"],
            max_rows=call["max_rows"],
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
    notes = [f"{reader.n_dropped} rows left out for missing values"] if reader.n_dropped else []
    for note in notes:
        display.note(f"note: {note}")
    labels = (
        [str(label) for label in model.tasks_.tolist()] if config["task"] else [config["target"] or "label"]
    )
    write_coefficients(folder, model.coef_, model.intercept_, labels, reader.feature_names)
    folder.write_json(
        DATA,
        {
            "name": os.path.basename(config["table"]),
            "bytes": total,
            "rows": int(model.n_rows_seen_),
            "features": int(model.n_features_in_),
            "feature_names": reader.feature_names,
            "tasks": len(labels),
            "libsvm": reader.format == "libsvm",
            "notes": [*notes, *map(in_words, said)],
            "reproduce": command_line(config, str(folder.path)),
        },
    )
    folder.write_json("timing.json", {"fit": seconds})
    folder.finish()
    if call["report"]:
        write_run_report(folder, display)
    display.log(
        f"finished: {model.n_rows_seen_} rows in {seconds:.2f} s; progressive loss {model.progressive_loss_:.6g}"
    )
    if not call["quiet"]:
        selected = int(np.count_nonzero(np.any(model.coef_, axis=0)))
        seen = model.progress()
        known = seen.score[np.isfinite(seen.score)]
        quality = f"{MEASURES[config['model']]}: {known.mean():.3f}" + (
            " (mean over tasks)" if len(labels) > 1 else ""
        )
        print(
            f"{type(model).__name__}: {count(model.n_rows_seen_, 'row')}, {count(len(labels), 'task')}; "
            f"{selected:,} of {count(model.n_features_in_, 'feature')} selected; {seconds:.1f} s\n"
            f"mean loss of rows before they were learned: {seen.loss:.4g}; gamma {model.gamma_:.4g}\n"
            f"{quality + chr(10) if known.size else ''}"
            f"everything is in {folder.path}{os.sep}"
            + (f"\nto read: {folder / REPORT}" if (folder / REPORT).is_file() else ""),
            flush=True,
        )
    return OK
