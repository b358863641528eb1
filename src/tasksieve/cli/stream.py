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
from ..report.packing import count
from ..runs import RunError, RunFolder, SavedModel
from ..runs.folder import CONFIG, DATA, MANIFEST, STREAM
from ..runs.results import write_coefficients
from ..tables import Encoding, TableError, read_arrays, table_format
from ..tables.chunks import STREAMED, ChunkReader
from .exits import OK, State, UsageError
from .folders import begin, choose_folder, held, refuse_other_options
from .progress import Display, caught_warnings

ESTIMATORS = {"regressor": "OnlineMultiTaskRegressor", "classifier": "OnlineMultiTaskClassifier"}


def run_stream(config: dict[str, Any], params: dict[str, Any], call: dict[str, Any]) -> int:
    """Learn from a table once through; a checkpoint in the run folder is the state, and at the end the model.

    Parameters
    ----------
    config : dict
        What is learned from what.
    params : dict
        Parameters of the online model.
    call : dict
        out, resume, overwrite, quiet, checkpoint_every, max_rows.
    """
    resume = call["resume"]
    folder = choose_folder(call["out"], resume, call["overwrite"])
    if call["checkpoint_every"] < 1:
        raise UsageError(f"--checkpoint-every: at least 1, got {call['checkpoint_every']}")
    reader = open_reader(config)
    model = getattr(online, ESTIMATORS[config["model"]])(**params)
    check_parameters(model)
    whole = {"command": "stream", **config, "params": params}
    with held(folder, call["overwrite"], call["quiet"], STREAM) as display:
        if resume and folder.begun:
            refuse_other_options(folder.read_json(CONFIG), whole, {"table", "chunk_rows"})
            if folder.finished and call["max_rows"] is None and config["table"] == "-":
                raise RunError(
                    f"{folder.path} is finished, and standard input cannot tell whether there is more"
                )
        (folder / MANIFEST).unlink(missing_ok=True)
        return learn(folder, whole, model, reader, call, display)


def open_reader(config: dict[str, Any]) -> ChunkReader:
    table = config["table"]
    if table == "-":
        source: Any = sys.stdin.buffer
        format = config["format"] or "csv"
        if format != "csv":
            raise UsageError("standard input is read as CSV")
    else:
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

    with caught_warnings() as said, watch(display.show):
        model.fit_stream(
            reader,
            format="iterable",
            checkpoint=folder / STREAM,
            checkpoint_every=call["checkpoint_every"],
            max_rows=call["max_rows"],
        )
    display.close()
    seconds = time.perf_counter() - began
    if not hasattr(model, "n_rows_seen_"):
        raise TableError(f"{reader.name} has no rows")
    if not (folder / STREAM).is_file():
        model.save(folder / STREAM)
    for warning in said:
        display.note(f"warning: {warning}")
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
            "notes": [*notes, *map(str, said)],
        },
    )
    folder.write_json("timing.json", {"fit": seconds})
    folder.finish()
    display.log(f"finished: {model.n_rows_seen_} rows in {seconds:.2f} s")
    if not call["quiet"]:
        selected = int(np.count_nonzero(np.any(model.coef_, axis=0)))
        print(
            f"{type(model).__name__}: {count(model.n_rows_seen_, 'row')}, {count(len(labels), 'task')}; "
            f"{selected:,} of {count(model.n_features_in_, 'feature')} selected; {seconds:.1f} s\n"
            f"everything is in {folder.path}{os.sep}",
            flush=True,
        )
    return OK


def load_online(folder: RunFolder) -> Any:
    """The online model of a run folder; a file that is not one is a `RunError`."""
    config = folder.read_json(CONFIG)
    name = ESTIMATORS.get(str(config.get("model")))
    if name is None:
        raise RunError(f"{folder / CONFIG} is not that of a stream")
    try:
        read_arrays(folder / STREAM, stored=True)  # sizes and types, before anything is made of them
        return getattr(online, name).load(folder / STREAM)
    except OSError:
        raise
    except Exception as error:  # whatever a spoilt state makes of the loader
        if State.debug:
            raise
        raise RunError(
            f"{folder / STREAM} holds no usable model: {type(error).__name__}: {str(error)[:200]}"
        ) from None


def load_stream(folder: RunFolder) -> SavedModel:
    """The model of a stream, to predict with."""
    config, data = folder.read_json(CONFIG), folder.read_json(DATA)
    model = load_online(folder)
    names = data.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RunError(f"{folder / DATA} is not that of a stream")
    if len(names) != model.n_features_in_:
        raise RunError(f"{folder / DATA} names {len(names)} features, the model has {model.n_features_in_}")
    encoding = Encoding([], names) if data.get("libsvm") else Encoding([(name, None) for name in names])
    return SavedModel(
        model, "stream", encoding, None, [str(config.get("target") or "label")], config.get("task")
    )
