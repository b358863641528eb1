"""The models of the folds that a fit has kept, for prediction intervals: ``folds.npz``."""

from __future__ import annotations

from typing import Any

import numpy as np

import tasksieve

from ..fitted.conformal import KeptFolds
from ..fitted.restore import DataFacts, get_state, set_state
from ..linear.conformal import keep_folds, kept_folds
from ..linear.held_out import pack_points, unpack_point
from ..tables import write_arrays
from ..tables.saved import rebuild, require_finite, require_room
from ..tasks import Fills
from .arrays import require
from .folder import FOLDS, RunError, RunFolder
from .model_file import SavedModel

FORMS = ("single", "stacked", "list", "shared")
_OF_ROWS = ("task", "fold", "y", "answers")
_OF_TASKS = ("weight_per_task", "task_weights")


def write_folds(folder: RunFolder, model: Any) -> None:
    """What a cross-validated model has kept of its folds, if it has kept them."""
    kept = kept_folds(model)
    if kept is None:
        return
    facts = kept.facts
    arrays = pack_points(kept.points) | {f"held_{name}": getattr(kept, name) for name in _OF_ROWS}
    arrays |= {name: np.asarray(getattr(facts, name), dtype=np.float64) for name in _OF_TASKS}
    arrays["n_bar"] = np.array(float(facts.n_bar))
    arrays["form"] = np.array(FORMS.index(facts.form))
    if facts.class_counts is not None:
        arrays["class_counts"] = np.asarray(facts.class_counts, dtype=np.int64)
    if facts.known_fills is not None:
        arrays["fills_features"], arrays["fills_means"] = facts.known_fills.features, facts.known_fills.means
    write_arrays(folder / FOLDS, arrays)


def load_folds(folder: RunFolder, saved: SavedModel, *, max_bytes: float | None = None) -> Any:
    """The run's model as one with cross-validation, which has prediction intervals; nothing is executed.

    Raises
    ------
    RunError
        Where the run has kept no folds, or the file is not what it claims to be.
    """
    path = folder / FOLDS
    if not path.is_file():
        raise RunError(
            f"{folder.path} has not kept the models of its folds, which intervals are made of: "
            "tasksieve fit --cv 5 --keep-folds tuned does"
        )
    require_room(8 * np.size(saved.estimator.intercept_) * saved.estimator.n_features_in_, path, max_bytes)
    try:
        return rebuild(path, lambda arrays: _rebuild(arrays, saved))
    except ValueError as error:
        raise RunError(str(error)) from None


def _rebuild(arrays: dict[str, np.ndarray], saved: SavedModel) -> Any:
    single = saved.estimator
    kind = getattr(tasksieve, f"{type(single).__name__}CV")
    known = single.get_params(deep=False)
    model = kind(**{name: known[name] for name in kind().get_params(deep=False) if name in known})
    state = get_state(single)
    set_state(model, **state)
    n_tasks, n_features = len(state["tasks"]), int(state["n_features"])
    rows, features, ends, intercept = (arrays[name] for name in ("rows", "features", "ends", "intercept"))
    require(ends.ndim == 1 and ends.dtype == np.int64 and len(ends) > 0, "folds")
    require(
        bool(np.all(np.diff(ends, prepend=0) >= 0)) and ends[-1] == len(features) == len(rows),
        "features of folds",
    )
    inside = features.dtype == np.int64 and bool(np.all((features >= 0) & (features < n_features)))
    require(features.ndim == 1 and inside, "numbers of features")
    counts = arrays.get("class_counts")
    if counts is not None:
        require(
            counts.dtype == np.int64 and counts.shape == (n_tasks,) and bool(np.all(counts >= 1)), "classes"
        )
    wide = n_tasks if counts is None else int(counts.sum())
    require(
        rows.shape == (len(features), wide) and intercept.shape == (len(ends), wide),
        "shape of the coefficients",
    )
    task, fold, y, answers = (arrays[f"held_{name}"] for name in _OF_ROWS)
    require(task.ndim == 1 and len(task) == len(fold) == len(y) == len(answers), "rows held out")
    require(task.dtype.kind == fold.dtype.kind == "i", "tasks and folds of rows")
    require(
        bool(np.all((task >= 0) & (task < n_tasks) & (fold >= 0) & (fold < len(ends)))),
        "tasks and folds of rows",
    )
    for name in ("rows", "intercept", "thresholds", "held_y", "held_answers", *_OF_TASKS, "n_bar"):
        if name in arrays:
            require(arrays[name].dtype.kind in "fi", f"type of {name}")
            require_finite(name, arrays[name])
    for name in _OF_TASKS:
        require(arrays[name].shape == (n_tasks,), name)
    form = int(arrays["form"])
    require(0 <= form < len(FORMS), "form of the rows")
    fills = None
    if "fills_features" in arrays:
        fills = Fills(arrays["fills_features"].astype(np.int64), arrays["fills_means"].astype(np.float64))
    facts = DataFacts(
        n_tasks=n_tasks,
        n_features=n_features,
        tasks=state["tasks"],
        n_bar=float(arrays["n_bar"]),
        form=FORMS[form],
        classes=state.get("classes"),
        **{name: arrays[name] for name in _OF_TASKS},
        class_counts=counts,
        has_offset=bool(state.get("needs_offset", False)),
        known_fills=fills,
        patterns=state.get("patterns"),
    )
    points = [unpack_point(arrays, k) for k in range(len(ends))]
    return keep_folds(model, KeptFolds(points, facts, task, fold, y, answers))
