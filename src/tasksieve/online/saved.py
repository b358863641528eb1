"""The whole state of an online model as plain arrays, and back without trust."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..tables.saved import label_from, plain_label
from .classes import ClassRegister
from .memory import check_memory, completed

FORMAT = 2
READ = (1, 2)  # 1: version 0.1


def to_arrays(model: Any) -> dict[str, np.ndarray]:
    """The whole state as arrays by name, one of them a JSON text. The caller has the lock."""
    params = model.get_params(deep=False)
    arrays = {f"state_{name}": value for name, value in model._learner.state().items()}
    if np.ndim(params["l1"]):
        arrays["l1"] = np.asarray(params.pop("l1"), dtype=np.float64)
    if params["random_state"] is not None and not isinstance(params["random_state"], int):
        params["random_state"] = None  # only `fit` draws at random
    meta: dict[str, Any] = {
        "format": FORMAT,
        "class": type(model).__name__,
        "params": {
            name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()
        },
        "labels": [plain_label(label) for label in model._labels],
        "vocabulary": [plain_label(name) for name in model._vocabulary],
        "places": list(model._vocabulary.values()),
        "single": model._single,
        "averages": model._averages,
        "n_features": int(model.n_features_in_),
        "named": hasattr(model, "feature_names_in_"),
        "stream_rows": model._stream_rows,
        "n_iter": getattr(model, "n_iter_", None),
    }
    register = getattr(model, "_classes", None)
    if register is not None:
        meta["classes"] = {
            "all": [plain_label(label) for label in register.all],
            "of_task": [[plain_label(label) for label in known] for known in register.of_task],
            "signs": [[[plain_label(k), v] for k, v in signs.items()] for signs in register.signs],
        }
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    return arrays


def from_arrays(cls: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The model that `to_arrays` has taken apart; a ValueError where the arrays are no such model."""
    if "meta" not in arrays or arrays["meta"].dtype != np.uint8:
        raise ValueError("it is not a saved online model")
    meta = _fields(json.loads(arrays["meta"].tobytes()), "the description")
    if meta["format"] not in READ:
        raise ValueError(f"format {meta['format']!r}; this version reads {', '.join(map(str, READ))}")
    if meta["class"] != cls.__name__:
        raise ValueError(f"it holds a {str(meta['class'])[:60]}, not a {cls.__name__}")
    model = cls(**_params(cls, meta, arrays))
    model._begin(None)
    model._averages = _typed(meta, "averages", bool)
    model._configure()
    state = {name.removeprefix("state_"): array for name, array in arrays.items() if name.startswith("state_")}
    state = completed(state)
    check_memory(state)
    model._learner.restore(state)
    n_features, n_tasks = model._learner.features, model._learner.tasks
    labels = [label_from(plain) for plain in meta["labels"]]
    if len(labels) != n_tasks or len(set(labels)) != n_tasks:
        raise ValueError(f"{len(labels)} task labels for {n_tasks} tasks, or the same twice")
    for label in labels:
        model._join(label)
    _read_names(model, meta, n_features)
    model._single = _typed(meta, "single", bool)
    model._stream_rows = _typed(meta, "stream_rows", int)
    if meta["n_iter"] is not None:
        model.n_iter_ = _typed(meta, "n_iter", int)
    if hasattr(model, "_classes"):
        model._classes = _register(meta["classes"], n_tasks)
    return model


def _params(cls: Any, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    params = dict(_fields(meta["params"], "the parameters"))
    unknown = sorted(set(params) - set(cls().get_params(deep=False)))
    if unknown:
        raise ValueError(f"parameter {unknown[0][:60]!r} is unknown")
    for name, value in params.items():
        if not isinstance(value, bool | int | float | str | None):
            raise ValueError(f"parameter {name!r} is neither a number nor a word")
    if "l1" in arrays:
        params["l1"] = arrays["l1"]
    return params


def _read_names(model: Any, meta: dict[str, Any], n_features: int) -> None:
    if _typed(meta, "n_features", int) != n_features:
        raise ValueError(f"{meta['n_features']} features declared, {n_features} in the arrays")
    names = [label_from(plain) for plain in meta["vocabulary"]]
    positions = meta["places"]
    if len(positions) != len(names) or len(set(names)) != len(names):
        raise ValueError("names of the features: some have no place, or are there twice")
    if not all(type(position) is int and 0 <= position < n_features for position in positions):
        raise ValueError(f"names of the features: a place is not among the {n_features} features")
    model._vocabulary = dict(zip(names, positions, strict=True))
    model.n_features_in_ = n_features
    if _typed(meta, "named", bool):
        if len(names) < n_features:
            raise ValueError(f"{len(names)} names for {n_features} features")
        model.feature_names_in_ = np.array(names[:n_features], dtype=object)


def _register(content: Any, n_tasks: int) -> ClassRegister:
    known = _fields(content, "the classes")
    register = ClassRegister()
    register.all = [label_from(plain) for plain in known["all"]]
    register.of_task = [[label_from(plain) for plain in pair] for pair in known["of_task"]]
    register.signs = [{label_from(k): float(v) for k, v in signs} for signs in known["signs"]]
    if len(register.of_task) > n_tasks or len(register.signs) != len(register.of_task):
        raise ValueError("classes of more tasks than there are")
    for pair, signs in zip(register.of_task, register.signs, strict=True):
        if len(pair) > 2 or not set(pair) <= set(register.all) or not set(pair) <= set(signs):
            raise ValueError("classes of a task: more than two, or unknown ones")
        if not set(signs.values()) <= {-1.0, 1.0}:
            raise ValueError("signs of classes that are neither -1 nor 1")
    return register


def _fields(content: Any, name: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{name} is no JSON object")
    return content


def _typed(meta: dict[str, Any], name: str, kind: type) -> Any:
    if type(meta[name]) is not kind or meta[name] < 0:
        words = "true or false" if kind is bool else "a whole number >= 0"
        raise ValueError(f"{name!r} is {str(meta[name])[:60]!r}, not {words}")
    return meta[name]
