"""A fitted model as arrays and JSON: loading it runs no code and trusts no size."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ..fitted.baseline_hazard import BaselineHazard
from ..fitted.restore import get_state, set_state
from ..path.status import Status
from ..report.rows import coefficient_rows
from ..tables import Encoding, write_arrays
from ..tables.basis import PredictionBasis, basis_facts
from ..tables.filling import FILLED
from ..tables.saved import label_from, plain_label, rebuild, require_finite, require_room
from ..tasks import Fills, Patterns, label_array
from .arrays import (
    pack_names,
    pack_rows,
    pack_thresholds,
    require,
    unpack_names,
    unpack_rows,
    unpack_thresholds,
)
from .folder import RunError, RunFolder
from .quality_file import plain_quality, quality_from
from .registry import MODELS

FORMAT = 1
NUMBERS = ("objective", "dual_gap", "null_objective")
# Of a baseline hazard.
BASELINE = ("task", "stratum", "time", "log_increment", "end")
# Parameters that are arrays go into the npz file.
ARRAY_PARAMETERS = ("graph", "task_graph", "feature_weights", "weights", "l1", "loss_weights", "target_scales")
# What cross-validation has found: by the model's tasks, and by those that patterns of present columns are parts of.
QUALITIES = ("cv_quality", "cv_quality_by_task")
# What a model of unlike outcomes has found of each task.
BALANCE = ("loss_weights", "target_scales")
# Of the basis of predictions, what is part of the state of a fitted model.
STATE = (
    "coef", "intercept", "thresholds", "tasks", "classes", "single", "needs_offset", *BALANCE, "fills", "patterns",
    "baseline_hazard",
)  # fmt: skip


@dataclass
class SavedModel:
    """A model and what is needed to use it on a table.

    Attributes
    ----------
    estimator : a fitted estimator of `tasksieve`
    kind : str
        Its name on the command line.
    encoding : Encoding
        How columns become features.
    fill : array of shape (d,), or (T, d), optional
        What missing values are replaced by, in each task the same or not.
    targets : list of str
        Names of the target columns.
    task : str, optional
        Name of the task column.
    facts : dict
        Fields of the basis of predictions that are known by the names of columns and files, and the place of the chosen
        value on the path.
    null : fitted estimator, optional
        The null model of the same rows: intercepts and covariates only. Runs of version 0.2 have none.
    scales : (features, array of shape (T, features)), optional
        Of a fit that has standardised: columns of features in use anywhere on its path, and their standard deviations
        in each task. Runs of version 0.2 have none.
    """

    estimator: Any
    kind: str
    encoding: Encoding
    fill: np.ndarray | None
    targets: list[str]
    task: str | None
    facts: dict[str, Any] = field(default_factory=dict)
    null: Any = None
    scales: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def feature_names(self) -> list[str]:
        return self.encoding.feature_names

    @property
    def said(self) -> dict[str, Any]:
        """Fields of the basis of predictions that are names of columns and files: all of them, known or not."""
        return basis_facts(self.facts)

    @property
    def basis(self) -> PredictionBasis:
        """All that predictions depend on."""
        model, state = self.estimator, get_state(self.estimator)
        found: dict[str, Any] = {name: state.get(name) for name in STATE} | self.said
        found |= {name: bool(found[name]) for name in ("single", "needs_offset")}
        params = {
            name: value for name, value in model.get_params(deep=False).items() if not name.startswith("copy_")
        }
        return PredictionBasis(
            encoding=self.encoding, fill=self.fill, targets=self.targets, task=self.task, model=self.kind,
            estimator=type(model).__name__, params=params, **found,
        )  # fmt: skip

    @property
    def filling(self) -> dict[str, Any]:
        """What `prepare_rows` must know to fill holes as the fit did."""
        tasks = self.estimator.tasks_ if self.fill is not None and self.fill.ndim == 2 else None
        return {"fill": self.fill, "filled": self.said["missing"] or "mean", "tasks": tasks}


def save_model(folder: RunFolder, saved: SavedModel) -> None:
    """Write ``model.npz`` and ``model.json`` into a run folder."""
    content, arrays = packed_model(saved)
    write_arrays(folder / "model.npz", arrays)
    folder.write_json("model.json", content)


def packed_model(saved: SavedModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Content of ``model.json`` and ``model.npz``: the basis of predictions, and what was found beside it."""
    model, basis, state = saved.estimator, saved.basis, get_state(saved.estimator)
    arrays: dict[str, np.ndarray] = {}
    params = dict(basis.params)
    for name in ARRAY_PARAMETERS:
        if name in params and np.ndim(params[name]):
            arrays[f"param_{name}"] = np.asarray(params.pop(name))
    params = {name: _plain_parameter(value) for name, value in params.items()}
    rows, constants = coefficient_rows(model)
    shape = rows.shape if isinstance(basis.coef, list) else basis.coef.shape  # a list: each task has its own classes
    arrays |= pack_rows(scipy.sparse.csr_array(rows))
    arrays["coef_shape"] = np.array(shape)
    arrays["intercept"] = np.asarray(constants, dtype=np.float64).reshape(shape[:-1])
    arrays["feature_names"], arrays["feature_ends"] = pack_names(basis.encoding.feature_names)
    if basis.fill is not None:
        arrays["fill"] = basis.fill
    if basis.fills is not None:  # what stands for missing genotypes
        arrays["fills_features"], arrays["fills_means"] = basis.fills.features, basis.fills.means
    patterns, hazard = basis.patterns, basis.baseline_hazard
    if patterns is not None:  # columns that tasks have
        arrays["present"] = np.packbits(patterns.present, axis=1)
    if hazard is not None:
        arrays |= {f"baseline_{name}": getattr(hazard, name) for name in BASELINE}
    if basis.thresholds is not None:
        arrays["thresholds"], arrays["threshold_counts"] = pack_thresholds(basis.thresholds)
    balance = {name: getattr(basis, name) for name in BALANCE}
    arrays |= {name: np.asarray(own, dtype=np.float64) for name, own in balance.items() if own is not None}
    if saved.scales is not None:
        arrays["scale_features"], arrays["scale_values"] = saved.scales
    if saved.null is not None:
        rows, constants = coefficient_rows(saved.null)
        features = np.flatnonzero(rows.any(axis=0))
        arrays |= {"null_features": features, "null_coef": rows[:, features], "null_intercept": constants}
        if "thresholds" in arrays:
            arrays["null_thresholds"], _ = pack_thresholds(saved.null.thresholds_)
    return {
        "format": FORMAT,
        "model": basis.model,
        "class": basis.estimator,
        "params": params,
        "tasks": None if basis.tasks is None else _plain(basis.tasks),
        "classes": _plain_classes(basis.classes),
        "rows_by_class": isinstance(basis.coef, list),
        "single": basis.single,
        **({"needs_offset": True} if basis.needs_offset else {}),
        **({} if patterns is None else {"pattern_of": None if patterns.of is None else _plain(patterns.of)}),
        **({} if hazard is None or hazard.strata is None else {"strata": _plain(hazard.strata)}),
        **{name: float(state[name]) for name in NUMBERS if name in state},
        "n_iter": int(state["n_iter"]),
        **({"status": str(state["status"])} if "status" in state else {}),
        **{name: plain_quality(state[name]) for name in QUALITIES if name in state},
        "encoding": basis.encoding.to_json(),
        "targets": basis.targets,
        "task": basis.task,
        "facts": saved.facts,
    }, arrays


def load_model(folder: RunFolder, *, max_bytes: float | None = None) -> SavedModel:
    """Read the model of a run folder.

    Parameters
    ----------
    folder : RunFolder
    max_bytes : float, optional
        How much memory its coefficients may take. They are stored sparse and become dense, so that a small file can
        ask for much; by default 256 MiB, or a hundred times the bytes of the file where that is more.

    Returns
    -------
    SavedModel

    Raises
    ------
    RunError
        For files that are missing, broken, or not what they claim to be. The class of the estimator is one of a fixed
        list, its parameters are numbers and words, its arrays are finite numbers: there is nothing to execute.
    """
    content = folder.read_json("model.json")
    path = folder / "model.npz"
    try:
        return rebuild(path, lambda arrays: _rebuild(content, arrays, path, max_bytes))
    except FileNotFoundError:
        raise RunError(f"there is no file {path}") from None
    except ValueError as error:
        raise RunError(str(error)) from None


def _rebuild(
    content: dict[str, Any], arrays: dict[str, np.ndarray], path: Path, max_bytes: float | None
) -> SavedModel:
    require(content["format"] == FORMAT, f"format {content['format']!r}; this version reads {FORMAT}")
    kind = MODELS[content["model"]]
    require(content["class"] in kind.estimators, f"class {content['class']!r} is not a {kind.name} model")
    estimator = kind.estimator(content["class"] == kind.estimators[-1])
    params = read_parameters(content)
    params.update({name: arrays[f"param_{name}"] for name in ARRAY_PARAMETERS if f"param_{name}" in arrays})
    model = estimator(**params)
    shape = tuple(int(n) for n in arrays["coef_shape"])
    names = unpack_names(arrays["feature_names"], arrays["feature_ends"])
    intercept: Any = arrays["intercept"]
    fit = len(shape) in (2, 3) and min(shape) >= 0 and shape[-1] == len(names) and intercept.shape == shape[:-1]
    require(fit, "shape of the coefficients")
    require(intercept.dtype == np.float64, "type of the intercepts")
    require_finite("the intercepts", intercept)
    require_room(8 * math.prod(shape), path, max_bytes)
    rows = unpack_rows(arrays, (math.prod(shape[:-1]), shape[-1]))
    require_finite("the coefficients", rows.data)
    state: dict[str, Any] = {name: float(content[name]) for name in NUMBERS if name in content}
    if content["tasks"] is not None:
        state["tasks"] = _labels(content["tasks"])
    if content["classes"] is not None:
        state["classes"] = _classes_from(content["classes"])
    if "fills_features" in arrays:
        state["fills"] = _fills_from(arrays["fills_features"], arrays["fills_means"], len(names))
    if "baseline_time" in arrays:
        state["baseline_hazard"] = _baseline_from(arrays, state["tasks"], content.get("strata"))
    if "present" in arrays:
        state["patterns"] = _patterns_from(arrays["present"], state["tasks"], content["pattern_of"], len(names))
    if "status" in content:  # runs of version 0.2 have none
        state["status"] = Status(content["status"])
    state |= {name: quality_from(content[name]) for name in QUALITIES if name in content}
    if "thresholds" in arrays:
        steps = arrays["threshold_counts"]
        require(steps.shape == (len(state["tasks"]),), "tasks with thresholds")
        state["thresholds"] = unpack_thresholds(arrays["thresholds"], steps, state["classes"])
    state |= {name: _balance_from(arrays[name], name, state["tasks"]) for name in BALANCE if name in arrays}
    coef: Any = rows.toarray().reshape(shape)
    n_rows = len(state["tasks" if "tasks" in state and kind.tasks else "classes"])
    own = state.get("classes")
    counts = [0 if labels is None else len(labels) for labels in own] if isinstance(own, list) else []
    fits = len(counts) == n_rows and shape[-2] == sum(counts)
    if content.get("rows_by_class", fits):  # older files do not say so
        require(fits, "number of classes")
        cuts = np.cumsum(counts)[:-1]
        coef, intercept = np.split(coef, cuts), np.split(intercept, cuts)
    else:
        require(n_rows == shape[-2], "number of tasks")
    fill = arrays.get("fill")
    if fill is not None:
        own = (len(state["tasks"]), len(names)) if fill.ndim == 2 and "tasks" in state else (len(names),)
        require(fill.shape == own and fill.dtype == np.float64, "means to fill in")
        require((content["facts"].get("missing") or "mean") in FILLED, "how values were filled in")
        require_finite("the means to fill in", fill)
    targets, task = content["targets"], content["task"]
    require(all(isinstance(name, str) for name in targets) and isinstance(task, str | None), "names of columns")
    found: dict[str, Any] = {name: state.pop(name, None) for name in STATE} | basis_facts(content["facts"])
    found |= {"coef": coef, "intercept": intercept, "single": bool(content["single"])}
    found["needs_offset"] = bool(content.get("needs_offset", False))
    basis = PredictionBasis(
        encoding=Encoding.from_json(content["encoding"], names), fill=fill, targets=targets, task=task,
        model=kind.name, estimator=content["class"], params=params, **found,
    )  # fmt: skip
    known = {name: getattr(basis, name) for name in STATE}
    set_state(
        model,
        n_features=len(names),
        feature_names=np.array(names, dtype=object),
        fitted_to_arrays=True,
        n_iter=int(content["n_iter"]),
        **{name: own for name, own in known.items() if own is not None},
        **state,
    )
    null = _null_from(arrays, model) if "null_intercept" in arrays else None
    scales = None
    if "scale_features" in arrays:
        n_tasks = 0 if basis.tasks is None else len(basis.tasks)
        scales = _scales_from(arrays["scale_features"], arrays["scale_values"], n_tasks, len(names))
    facts = dict(content["facts"])
    return SavedModel(model, kind.name, basis.encoding, fill, targets, task, facts, null, scales)


def set_rows(model: Any, rows: np.ndarray, constants: np.ndarray, **state: Any) -> Any:
    """Give a model other coefficients, all rows of them, in the form of its own."""
    if isinstance(model.coef_, list):
        cuts = np.cumsum([len(own) for own in model.coef_])[:-1]
        return set_state(model, coef=np.split(rows, cuts), intercept=np.split(constants, cuts), **state)
    coef, intercept = rows.reshape(model.coef_.shape), constants.reshape(np.shape(model.intercept_))
    return set_state(model, coef=coef, intercept=intercept, **state)


def _null_from(arrays: dict[str, np.ndarray], model: Any) -> Any:
    """The null model, in the form of the model: most of its coefficients are 0."""
    own, _ = coefficient_rows(model)
    features, rows, constants = arrays["null_features"], arrays["null_coef"], arrays["null_intercept"]
    numbers = rows.dtype == constants.dtype == np.float64
    require(numbers and features.dtype.kind == "i", "type of the null model")
    require(rows.shape == (len(own), len(features)) and constants.shape == (len(own),), "shape of the null model")
    require(np.all((features >= 0) & (features < own.shape[1])), "features of the null model")
    require_finite("the null model", rows)
    require_finite("the null model", constants)
    found = np.zeros(own.shape)
    found[:, features] = rows
    more = {}
    if "null_thresholds" in arrays:
        counts = arrays["threshold_counts"]
        more["thresholds"] = unpack_thresholds(arrays["null_thresholds"], counts, model.classes_)
    return set_rows(copy(model), found, constants, **more)


# --- parameters ---------------------------------------------------------------------------------------


def _plain_parameter(value: Any) -> Any:
    """A parameter as JSON can hold it: labels, and what is given by task (weights, names of losses, ordered classes),
    with their types."""
    if isinstance(value, np.ndarray | list | tuple):
        return {"labels": [plain_label(item) for item in value]}
    if isinstance(value, dict):
        pairs = [(plain_label(label), own) for label, own in value.items()]
        if all(isinstance(own, np.ndarray | list | tuple) for own in value.values()):
            return {"lists": [[label, [plain_label(item) for item in own]] for label, own in pairs]}
        if all(isinstance(own, str) for own in value.values()):
            return {"words": [[label, own] for label, own in pairs]}
        return {"weights": [[label, float(own)] for label, own in pairs]}
    return value.item() if isinstance(value, np.generic) else value


def read_parameters(content: dict[str, Any]) -> dict[str, Any]:
    """The parameters of ``model.json``, but for those that are arrays."""
    return {name: _parameter_from(value, name) for name, value in content["params"].items()}


def _parameter_from(value: Any, name: str) -> Any:
    """The parameter that `_plain_parameter` has written."""
    if not isinstance(value, dict):
        require(isinstance(value, bool | int | float | str | None), f"parameter {name!r}")
        return value
    if "lists" in value:
        return {label_from(label): [label_from(item) for item in own] for label, own in value["lists"]}
    if "words" in value:
        require(all(isinstance(own, str) for _, own in value["words"]), f"parameter {name!r}")
        return {label_from(label): own for label, own in value["words"]}
    if "weights" in value:
        return {label_from(label): float(weight) for label, weight in value["weights"]}
    return [label_from(item) for item in value["labels"]]


# --- labels ---------------------------------------------------------------------------------------------


def _plain(labels: np.ndarray) -> list[Any]:
    return [plain_label(label) for label in labels.tolist()]


def _labels(plain: list[Any]) -> np.ndarray:
    return label_array([label_from(label) for label in plain])


def _plain_classes(classes: Any) -> Any:
    if classes is None:
        return None
    if isinstance(classes, list):  # those of each task
        return {"pairs": [None if own is None else _plain(own) for own in classes]}
    return {"all": _plain(classes)}


def _classes_from(content: dict[str, Any]) -> Any:
    if "pairs" in content:
        return [None if own is None else _labels(own) for own in content["pairs"]]
    return _labels(content["all"])


def _balance_from(values: np.ndarray, name: str, tasks: np.ndarray) -> np.ndarray:
    """A positive number for each task."""
    words = name.replace("_", " ")
    require(values.shape == (len(tasks),) and values.dtype == np.float64, f"shape of the {words}")
    require_finite(f"the {words}", values)
    require(np.all(values > 0.0), f"{words} above 0")
    return values


def _baseline_from(arrays: dict[str, np.ndarray], tasks: np.ndarray, strata: list[Any] | None) -> BaselineHazard:
    """A baseline hazard whose positions and times are what they should be."""
    task, stratum, time, log_increment, end = (arrays[f"baseline_{name}"] for name in BASELINE)
    names = None if strata is None else _labels(strata)
    shape = len(tasks), 1 if names is None else len(names)
    require(end.shape == shape and end.dtype == np.float64, "ends of the baseline hazard")
    same = task.shape == stratum.shape == time.shape == log_increment.shape == (len(time),)
    kinds = task.dtype.kind == stratum.dtype.kind == "i" and time.dtype == log_increment.dtype == np.float64
    require(same and kinds, "arrays of the baseline hazard")
    inside = np.all((task >= 0) & (task < shape[0]) & (stratum >= 0) & (stratum < shape[1]))
    require(inside, "tasks and strata of the baseline hazard")
    require_finite("the baseline hazard", time)
    require_finite("the baseline hazard", log_increment)
    cell = task * shape[1] + stratum
    rising = np.all((np.diff(cell) > 0) | ((np.diff(cell) == 0) & (np.diff(time) > 0.0)))
    require(rising, "times of the baseline hazard")
    return BaselineHazard(tasks, names, task.astype(np.int64), stratum.astype(np.int64), time, log_increment, end)


def _scales_from(
    features: np.ndarray, values: np.ndarray, n_tasks: int, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    good = features.ndim == 1 and features.dtype == np.int64 and values.dtype == np.float64
    require(good and values.shape == (n_tasks, len(features)), "shape of the standard deviations")
    require(np.all(np.diff(features, prepend=-1, append=n_features) > 0), "features of the standard deviations")
    require_finite("the standard deviations", values)
    require(np.all(values >= 0.0), "standard deviations below 0")
    return features, values


def _patterns_from(packed: np.ndarray, tasks: np.ndarray, of: list[Any] | None, n_features: int) -> Patterns:
    good = packed.dtype == np.uint8 and packed.shape == (len(tasks), -(-n_features // 8))
    require(good and (of is None or len(of) == len(tasks)), "patterns of present columns")
    present = np.unpackbits(packed, axis=1, count=n_features).astype(bool)
    return Patterns(tasks, None if of is None else _labels(of), present)


def _fills_from(features: np.ndarray, means: np.ndarray, n_features: int) -> Fills:
    good = features.ndim == 1 and means.ndim == 2 and len(features) == len(means) and features.dtype.kind == "i"
    rising = good and np.all(np.diff(features, prepend=-1, append=n_features) > 0)
    require(rising, "means of missing genotypes")
    return Fills(features.astype(np.int64), means.astype(np.float64))
