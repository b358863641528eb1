"""Exported models, run by what they are written for: each gives a prediction and the probabilities of every row."""

from __future__ import annotations

import json
import math
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas

Answer = tuple[list[Any], list[dict[Any, float] | None]]


def _value(feature: dict[str, Any], numeric: bool, t: int, row: dict[str, Any]) -> float:
    value = row.get(feature["input"])
    absent = value is None or value != value
    if feature["coding"] == "missing":
        found = float(absent)
    elif absent:
        fill = feature["fill"]
        found = fill[t] if isinstance(fill, list) else fill
    elif feature["coding"] == "equals":
        found = float(float(value) == float(feature["word"]) if numeric else str(value) == feature["word"])
    else:
        assert feature["coding"] == "value"
        found = float(value)
    return (found - feature.get("centre", 0.0)) / feature.get("scale", 1.0)


def _sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else math.exp(z)


def by_json(file: Path, rows: list[dict[str, Any]], tasks: list[Any]) -> Answer:
    """By the words of docs/howto/export.md alone."""
    content = json.loads(file.read_text(encoding="utf-8"))
    numeric = {own["name"]: own.get("numeric", False) for own in content["inputs"]}
    predictions: list[Any] = []
    chances: list[Any] = []
    names = [own["name"] for own in content["tasks"]]
    for row, task in zip(rows, tasks, strict=True):
        t = 0 if len(names) == 1 else names.index(task)
        own = content["tasks"][t]
        scores = []
        for score in own["scores"]:
            z = score["intercept"] + (0.0 if score["offset"] is None else row[score["offset"]])
            for j, weight in zip(score["features"], score["coefficients"], strict=True):
                feature = content["features"][j]
                z += weight * _value(feature, numeric[feature["input"]], t, row)
            scores.append(z)
        link, p = own["link"], None
        if link == "logistic":
            p = [_sigmoid(-scores[0]), _sigmoid(scores[0])]
        elif link == "softmax":
            each = [math.exp(z - max(scores)) for z in scores]
            p = [value / sum(each) for value in each]
        elif link == "one-vs-rest":
            each = [_sigmoid(z) for z in scores]
            p = [value / sum(each) for value in each]
        elif link == "ordinal":
            ends = [-math.inf, *map(float, own["thresholds"]), math.inf]
            below = [0.0 if end == -math.inf else _sigmoid(end - scores[0]) for end in ends]
            p = [high - low for low, high in zip(below[:-1], below[1:], strict=True)]
        if link in ("logistic", "sign"):
            predictions.append(own["classes"][scores[0] > 0.0])
        elif "classes" in own:
            best = p if link == "ordinal" else scores
            predictions.append(own["classes"][best.index(max(best))])
        else:
            predictions.append(math.exp(scores[0]) if link == "exp" else scores[0])
        chances.append(None if p is None else dict(zip(own["classes"], p, strict=True)))
    return predictions, chances


def by_python(file: Path, rows: list[dict[str, Any]], tasks: list[Any]) -> Answer:
    """The file itself, with nothing to import from."""
    text = file.read_text(encoding="ascii")
    scorer: dict[str, Any] = {"__builtins__": {**vars(__import__("builtins")), "__import__": None}}
    exec(compile(text, str(file), "exec"), scorer)
    pairs = list(zip(rows, tasks, strict=True))
    chances: list[Any] = [None] * len(rows)
    for i, (row, task) in enumerate(pairs if "predict_proba" in scorer else []):
        try:
            chances[i] = scorer["predict_proba"](row, task)
        except ValueError as error:  # among tasks of unlike outcomes
            if "no probabilities" not in str(error):
                raise
    return [scorer["predict"](row, task) for row, task in pairs], chances


def by_sqlite(file: Path, rows: list[dict[str, Any]], tasks: list[Any], table: str = "rows") -> Answer:
    connection = sqlite3.connect(":memory:")
    columns = list(rows[0])
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    connection.execute(f'CREATE TABLE "{table}" ({names})')
    marks = ", ".join("?" * len(columns))
    connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [tuple(row.values()) for row in rows])
    return _of_table(connection.execute(file.read_text(encoding="utf-8")), len(columns), tasks)


@cache  # to open one takes longer than all that is asked of it
def _duckdb() -> Any:
    import duckdb

    return duckdb.connect()


def by_duckdb(file: Path, rows: list[dict[str, Any]], tasks: list[Any], table: str = "rows") -> Answer:
    frame, connection = pandas.DataFrame(rows), _duckdb()
    connection.register("given", frame)
    connection.execute(f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM given')
    return _of_table(connection.execute(file.read_text(encoding="utf-8")), len(frame.columns), tasks)


def _of_table(result: Any, n_columns: int, tasks: list[Any]) -> Answer:
    """Predictions and probabilities in columns that are named for them, with the task in parentheses where each has
    its own."""
    titles = [column[0] for column in result.description][n_columns:]
    predictions: list[Any] = []
    chances: list[Any] = []
    for row, task in zip(result.fetchall(), tasks, strict=True):
        own = dict(zip(titles, row[n_columns:], strict=True))
        suffix = "" if "prediction" in own else f" ({task})"
        predictions.append(own[f"prediction{suffix}"])
        begin = "probability of "
        found = {t[len(begin) : len(t) - len(suffix)]: p for t, p in own.items() if t.startswith(begin)
                 and t.endswith(suffix)}  # fmt: skip
        chances.append(found or None)
    return predictions, chances


def by_onnx(file: Path, rows: list[dict[str, Any]], tasks: list[Any]) -> Answer:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    facts = json.loads(session.get_modelmeta().custom_metadata_map["tasksieve"])
    given: dict[str, Any] = {}
    for own in session.get_inputs():
        if own.name == "task":
            given["task"] = np.array(tasks, dtype=np.int64 if own.type == "tensor(int64)" else object)
        elif own.name == "words":
            words = [["" if row[name] is None else str(row[name]) for name in facts["words"]] for row in rows]
            given["words"] = np.array(words, dtype=object)
        else:
            columns = facts[own.name]
            values = [[np.nan if row[name] is None else row[name] for name in columns] for row in rows]
            given[own.name] = np.array(values, dtype=np.float32)
    found = dict(zip([own.name for own in session.get_outputs()], session.run(None, given), strict=True))
    predictions: list[Any] = []
    chances: list[Any] = []
    names = [own["name"] for own in facts["tasks"]]
    for i, task in enumerate(tasks):
        t = 0 if len(names) == 1 else names.index(task)
        suffix = "" if "prediction" in found else f"_{t}"
        answer, p = found[f"prediction{suffix}"], found.get(f"probabilities{suffix}")
        every = answer.ndim == 2
        predictions.append((answer[i, t] if every else answer[i]).item() if answer.dtype != object
                           else answer[i, t] if every else answer[i])  # fmt: skip
        own = None if p is None else (p[i, t] if p.ndim == 3 else p[i]).tolist()
        chances.append(None if own is None else dict(zip(facts["tasks"][t]["classes"], own, strict=True)))
    return predictions, chances
