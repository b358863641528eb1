"""What a fit leaves in its run folder, and how it is read back."""

from __future__ import annotations

import csv
import io
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse

from .._kernels import compiled
from ..atomic import write_atomically, write_bytes
from ..linear.base import accuracy, r2
from ..report.from_model import multinomial
from ..tables import TableError, read_arrays
from .arrays import pack_rows, unpack_rows
from .folder import RunError, RunFolder

PATH_ARRAYS = (
    "alphas",
    "objectives",
    "dual_gaps",
    "relative_gaps",
    "n_selected",
    "rejection_ratios",
    "seconds",
    "n_iter",
    "converged",
)


def versions() -> dict[str, str]:
    """Versions of everything that can change an answer."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in ("tasksieve", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    if found["tasksieve"] == "not installed":  # run from a checkout
        from tasksieve import __version__

        found["tasksieve"] = __version__
    found["kernels"] = "compiled" if compiled else "reference"
    return found


# --- tables ------------------------------------------------------------------------------------------------------


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A CSV file; floats are written so that they can be read back exactly."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def rows_are_classes(model: Any, targets: Sequence[str]) -> bool:
    """Whether each row of coefficients belongs to a class, and to no task or target of its own."""
    n_tasks = len(targets) if len(targets) > 1 else len(getattr(model, "tasks_", ()))
    if model.coef_.ndim == 3:
        return n_tasks == 1
    return len(model.coef_) > 1 and (n_tasks != len(model.coef_) or multinomial(model))


def row_labels(model: Any, targets: Sequence[str]) -> list[str]:
    """A name for each row of coefficients: tasks, targets, or classes (and tasks)."""
    if rows_are_classes(model, targets):
        return [str(label) for label in model.classes_.tolist()]
    names = list(targets)
    if len(targets) == 1 and int(np.prod(model.coef_.shape[:-1])) > 1:
        names = [str(label) for label in model.tasks_.tolist()]
    if model.coef_.ndim == 3:
        return [f"{label} / {name}" for label in model.classes_.tolist() for name in names]
    return names


def write_coefficients(
    folder: RunFolder, coef: Any, intercept: np.ndarray, labels: Sequence[str], names: Sequence[str]
) -> None:
    """All non-zero coefficients, one per line: ``coefficients.csv`` and ``.parquet``; and ``intercepts.csv``."""
    entries = scipy.sparse.coo_array(coef)
    order = np.lexsort((entries.col, entries.row))
    tasks = [labels[t] for t in entries.row[order].tolist()]
    features = [names[j] for j in entries.col[order].tolist()]
    values = entries.data[order].astype(np.float64)
    header = ("task", "feature", "coefficient")
    write_bytes(
        folder / "coefficients.csv", csv_bytes(header, zip(tasks, features, values.tolist(), strict=True))
    )
    write_parquet(folder, "coefficients.parquet", dict(zip(header, (tasks, features, values), strict=True)))
    write_bytes(
        folder / "intercepts.csv",
        csv_bytes(("task", "intercept"), zip(labels, np.ravel(intercept).tolist(), strict=True)),
    )


def write_parquet(folder: RunFolder, name: str, columns: dict[str, Any]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise TableError(f"writing {name} needs pyarrow: pip install 'tasksieve[files]'") from error
    types = {"coefficient": pyarrow.float64()}
    table = pyarrow.table(
        {key: pyarrow.array(values, type=types.get(key, pyarrow.string())) for key, values in columns.items()}
    )
    write_atomically(folder / name, lambda file: parquet.write_table(table, file))


# --- paths -------------------------------------------------------------------------------------------------------


@dataclass
class SavedPath:
    """A path read back: arrays of length K, and coefficients."""

    alphas: np.ndarray
    objectives: np.ndarray
    dual_gaps: np.ndarray
    relative_gaps: np.ndarray
    n_selected: np.ndarray
    rejection_ratios: np.ndarray
    seconds: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    null_objective: float
    coefs: list[scipy.sparse.csr_array]
    intercepts: np.ndarray


def write_path(folder: RunFolder, path: Any) -> None:
    """``path.npz`` (everything) and ``path.csv`` (one line per value)."""
    coefs = scipy.sparse.vstack([path.coef(k) for k in range(len(path))], format="csr")
    arrays = {name: np.asarray(getattr(path, name)) for name in PATH_ARRAYS}
    arrays["null_objective"] = np.array(float(path.null_objective))
    arrays.update(pack_rows(coefs))
    arrays["coef_shape"] = np.array(path.coef(0).shape)
    arrays["intercepts"] = np.stack([path.intercept(k) for k in range(len(path))])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    rows = zip(*(arrays[name].tolist() for name in PATH_ARRAYS), strict=True)
    write_bytes(folder / "path.csv", csv_bytes(PATH_ARRAYS, rows))
    write_bytes(folder / "path.npz", buffer.getvalue())


def read_path(folder: RunFolder) -> SavedPath:
    try:
        arrays = read_arrays(folder / "path.npz", stored=True)
    except TableError as error:
        raise RunError(str(error)) from None
    try:
        n_tasks, n_features = (int(n) for n in arrays["coef_shape"])
        n_values = len(arrays["alphas"])
        if any(arrays[name].shape != (n_values,) for name in PATH_ARRAYS):
            raise ValueError("lengths")
        stacked = unpack_rows(arrays, (n_values * n_tasks, n_features))
        if arrays["intercepts"].shape != (n_values, n_tasks):
            raise ValueError("intercepts")
        coefs = [stacked[k * n_tasks : (k + 1) * n_tasks] for k in range(n_values)]
        values = {name: arrays[name] for name in PATH_ARRAYS}
        return SavedPath(
            **values,
            null_objective=float(arrays["null_objective"]),
            coefs=coefs,
            intercepts=arrays["intercepts"],
        )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise RunError(
            f"{folder / 'path.npz'} holds no path: {type(error).__name__}: {str(error)[:200]}"
        ) from None


# --- scores, quality, certificate --------------------------------------------------------------------------------


def write_scores(folder: RunFolder, alphas: np.ndarray, scores: np.ndarray) -> None:
    header = ("alpha", *(f"fold {f + 1}" for f in range(scores.shape[1])))
    rows = np.column_stack([alphas, scores]).tolist()
    write_bytes(folder / "cv_scores.csv", csv_bytes(header, rows))


def read_numbers(folder: RunFolder, name: str, skip: int = 0) -> np.ndarray:
    """The numbers of a CSV file of a run, without its first columns."""
    lines = read_lines(folder, name)
    try:
        return np.array([[float(cell) for cell in line[skip:]] for line in lines[1:]], dtype=np.float64)
    except ValueError as error:
        raise RunError(f"{folder / name} is not readable: {error}") from None


def read_lines(folder: RunFolder, name: str) -> list[list[str]]:
    try:
        csv.field_size_limit(sys.maxsize)
        with open(folder / name, encoding="utf-8", newline="") as file:
            return list(csv.reader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise RunError(f"{folder / name} is not readable: {error}") from None


def fit_quality(
    model: Any, X: Any, y: np.ndarray, task: Any, weights: Any, classes: bool
) -> list[tuple[int, float]]:
    """Labels, and R² or accuracy on the rows of the fit, of each task (the whole, where there are no tasks)."""
    predicted = model.predict(X) if task is None else model.predict(X, task=task)
    metric = accuracy if classes else r2
    weight = np.ones(len(y)) if weights is None else weights
    if y.ndim == 2:
        parts = [(y[:, t], predicted[:, t], weight) for t in range(y.shape[1])]
    elif task is None:
        parts = [(y, predicted, weight)]
    else:
        places = [np.flatnonzero(task == label) for label in model.tasks_]
        parts = [(y[rows], predicted[rows], weight[rows]) for rows in places]
    quality = []
    for labels, guesses, own in parts:
        seen = (own > 0) & ~_missing(labels)
        value = float("nan")
        if np.count_nonzero(seen) >= (1 if classes else 2):
            value = metric(labels[seen], guesses[seen], own[seen])
        quality.append((int(np.count_nonzero(seen)), value))
    return quality


def _missing(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype == object:
        return np.array([label is None or label != label for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)
