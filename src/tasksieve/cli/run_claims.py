"""What the files of a run say about its answer, compared with its certificate: a proof is none of another model."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import verify as verifier
from ..proof.forms import Strengths, label_words, stated_problem
from ..report.rows import coefficient_rows, row_labels
from ..runs import RunError, RunFolder, load_model
from ..runs.folder import CERTIFICATE, PROOF
from ..runs.model_file import SavedModel
from ..runs.results import SavedPath, read_path
from ..tables.frames import need
from ..tables.recipe import column_recipes

# How much more than the fit's own gap a certificate may leave open, and still be about the same answer: the two count
# rounding in different ways, and a certificate that of sums over all rows of a task.
TWICE, ROUNDING, ROUNDING_OF_ROWS = 2.0, 1e-11, 32.0 * 2.0**-53
# Of labels that a model explains entirely, rounding is all that is left: in each residual this part of the largest one.
ROUNDING_OF_LABELS, LOST_SQUARE = 2.0**-48, 1e-150
PARTS = ("shared", "intercept", "standardize", "positive", "loss", "penalty", "task_weights", "class_weights")
LABELS = ("tasks", "classes")
ARRAYS = ("feature_weights", "l1", "group_of", "group_weights", "sorted_weights", "edges")


def compare_run(
    folder: RunFolder, cert: verifier.Certificate, rows: dict[str, Any], names: Sequence[str] | None, value: int | None
) -> list[str]:
    """Refuse a run whose files say something else than its certificate; gives what they say beyond it, in words.

    - `rows`: X, y, task, ...: the data, as they will be given to the verifier.
    - `names`: The features that the data have, where the certificate does not say which column each is.
    - `value`: The value of the path that is the run's model, where the certificate says so.
    """
    saved = load_model(folder)
    _compare_names(folder, cert, saved, names)
    own_alpha, strengths = _compare_problem(folder, cert, saved, rows)
    alpha, ridge = strengths(own_alpha)
    coef, intercept = (np.asarray(part) for part in coefficient_rows(saved.estimator))
    order = _task_after_task(saved.estimator, len(coef))
    if value is None:
        value = _value_at(folder, cert, alpha)
    _compare_point(folder, cert, value, coef[order], intercept[order], alpha, ridge)
    stated, of_model = folder.read_json(CERTIFICATE), folder.read_json("model.json")
    left = _rounding_of_labels(cert, rows["y"])
    _compare_numbers(folder, CERTIFICATE, cert, value, stated.get("objective"), stated.get("dual_gap"), left)
    for name in ("objective", "dual_gap", "null_objective"):
        if of_model.get(name, stated.get(name)) != stated.get(name):
            raise _refuse(folder, f"{name} is {stated.get(name)} in {CERTIFICATE}, {of_model[name]} in model.json")
    _compare_relative_gap(folder, stated)
    _compare_tables(folder, saved, coef, intercept)
    if not (folder / "path.npz").is_file():
        return []
    path = read_path(folder)
    _compare_path_table(folder, path)
    if cert.n_values > 1:
        _compare_path(folder, cert, path, order, strengths, left)
        return []
    _compare_chosen(folder, path, own_alpha, coef, intercept)
    return [f"of path.npz the chosen value alone is proved, {len(path.alphas) - 1} others are not"]


def _refuse(folder: RunFolder, what: str) -> RunError:
    return RunError(f"{folder.path}: {what}")


def _compare_names(
    folder: RunFolder, cert: verifier.Certificate, saved: SavedModel, names: Sequence[str] | None
) -> None:
    own = saved.feature_names
    if cert.header.get("features") != own:
        raise _refuse(folder, f"the features of model.npz are not those of {PROOF}")
    if names is not None and list(names) != own:
        raise _refuse(folder, "the names of the features are not those of the columns of the data")
    table = cert.header.get("table")
    if table is not None:
        for name, column, said in zip(own, column_recipes(saved.encoding), table["columns"], strict=True):
            if any(said.get(key) != word for key, word in column.items()):
                raise _refuse(folder, f"feature {name!r} of model.json is column {said['source']!r} in {PROOF}")
    double = [name for name, count in Counter(own).items() if count > 1]
    if double:
        raise _refuse(folder, f"{double[0]!r} is the name of several features")


def _compare_problem(
    folder: RunFolder, cert: verifier.Certificate, saved: SavedModel, rows: dict[str, Any]
) -> tuple[float, Strengths]:
    """Loss, penalty, weights, ... of the saved model on the data; gives its alpha, and the strengths of the format."""
    try:
        header, arrays, alpha, strengths = stated_problem(saved.estimator, rows)
    except ValueError as error:
        raise _refuse(folder, f"the saved model does not go with the data: {error}") from None
    for name in PARTS:
        if not _same(header[name], cert[name]):
            raise _refuse(folder, f"{name} of the model is {header[name]}, in {PROOF} {cert[name]}")
    for name in LABELS:
        if label_words(header[name]) != label_words(cert[name]):
            raise _refuse(folder, f"the {name} of the data are {header[name]}, in {PROOF} {cert[name]}")
    if not math.isclose(header["unit"], cert["unit"], rel_tol=1e-12):
        raise _refuse(folder, f"the unit of the objective is {header['unit']}, in {PROOF} {cert['unit']}")
    if label_words(saved.estimator.tasks_.tolist()) != label_words(cert["tasks"]):
        raise _refuse(folder, f"the tasks of model.json are not those of {PROOF}")
    for name in ARRAYS:
        mine, theirs = (part.get(name, np.empty(0)) for part in (arrays, cert.arrays))
        if not np.array_equal(mine, theirs):
            raise _refuse(folder, f"{name} of the model are not those of {PROOF}")
    return alpha, strengths


def _same(mine: Any, theirs: Any) -> bool:
    """Equal, where a parameter that is not given has its default; numbers up to the rounding of their text."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        defaults = {"epsilon": 0.0, "group": 1.0, "l1": 0.0}
        keys = {key for key in {*mine, *theirs} if mine.get(key) is not None or theirs.get(key) is not None}
        return all(_same(mine.get(key, defaults.get(key)), theirs.get(key, defaults.get(key))) for key in keys)
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(mine, bool) or isinstance(theirs, bool):  # True is a free intercept, 1.0 a penalised one
        return mine is theirs
    numbers = all(isinstance(one, int | float) for one in (mine, theirs))
    return math.isclose(mine, theirs, rel_tol=1e-12) if numbers else bool(mine == theirs)


def _value_at(folder: RunFolder, cert: verifier.Certificate, alpha: float) -> int:
    """The value with the strength of the model."""
    here = np.flatnonzero(np.isclose(cert.arrays["alpha"], alpha, rtol=1e-9, atol=0.0))
    if cert["penalty"]["name"] == "none":
        here = np.arange(cert.n_values)
    if len(here) != 1:
        raise _refuse(folder, f"{PROOF} has {len(here)} values with the model's strength {alpha:g}")
    return int(here[0])


def _compare_point(
    folder: RunFolder,
    cert: verifier.Certificate,
    k: int,
    coef: np.ndarray,
    intercept: np.ndarray,
    alpha: float,
    ridge: float,
) -> None:
    """Coefficients and strengths of one value."""
    arrays = cert.arrays
    for name, mine in (("alpha", alpha), ("ridge", ridge)):
        if not math.isclose(mine, arrays[name][k], rel_tol=1e-12):
            raise _refuse(folder, f"{name} of the model is {mine}, in {PROOF} {arrays[name][k]}")
    found = np.zeros((len(cert.outputs), cert.n_features))
    here = slice(*arrays["start"][k : k + 2])
    found[arrays["output"][here], arrays["feature"][here]] = arrays["coef"][here]
    if not (np.array_equal(coef, found) and np.array_equal(intercept, arrays["intercept"][k])):
        raise _refuse(folder, f"the coefficients are not those of {PROOF}")


def _rounding_of_labels(cert: verifier.Certificate, y: Any) -> float:
    """What the rounding of labels may leave of an objective: its square where small residuals are squared."""
    parts = [np.asarray(part) for part in (y if isinstance(y, list) else [y])]
    sizes = [float(np.nanmax(np.abs(part), initial=0.0)) for part in parts if part.dtype.kind in "biuf"]
    left = ROUNDING_OF_LABELS * max(sizes, default=1.0)
    return max(left * left if cert["loss"].get("mu") == 1.0 else left, LOST_SQUARE)


def _compare_numbers(
    folder: RunFolder, name: str, cert: verifier.Certificate, k: int, objective: Any, gap: Any, left: float
) -> None:
    proved, open_ = float(cert.arrays["objective"][k]), float(cert.arrays["gap"][k])
    rounding = (ROUNDING + ROUNDING_OF_ROWS * max(cert["rows"])) * abs(proved) + left
    if not _is_number(objective) or not abs(objective - proved) <= open_ + rounding:
        raise _refuse(folder, f"{name} has objective {objective}, {PROOF} has {proved}")
    if not _is_number(gap) or not open_ <= TWICE * gap + rounding:
        raise _refuse(folder, f"{name} has the duality gap {gap}, {PROOF} proves {open_} only")


def _compare_relative_gap(folder: RunFolder, stated: dict[str, Any]) -> None:
    gap, relative, null = (stated.get(name) for name in ("dual_gap", "relative_gap", "null_objective"))
    if relative is None and null is None:
        return
    sound = all(map(_is_number, (gap, relative, null)))
    wanted = float(gap or 0) if null else 0.0  # y that the empty model explains: 0 by convention
    if not sound or not math.isclose(float(relative or 0) * float(null or 1), wanted, rel_tol=1e-9):
        raise _refuse(folder, f"{CERTIFICATE} has a relative gap of {relative}, {gap} of {null} is something else")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _compare_tables(folder: RunFolder, saved: SavedModel, coef: np.ndarray, intercept: np.ndarray) -> None:
    """coefficients.csv, coefficients.parquet and intercepts.csv, which people read."""
    labels, names = row_labels(saved.estimator, saved.targets), saved.feature_names
    rows, positions = np.nonzero(coef)
    wanted = {(labels[t], names[j]): coef[t, j] for t, j in zip(rows.tolist(), positions.tolist(), strict=True)}
    constants = {(label,): value for label, value in zip(labels, intercept.tolist(), strict=True)}
    for name, key, number, expected in (
        ("coefficients.csv", ("task", "feature"), "coefficient", wanted),
        ("coefficients.parquet", ("task", "feature"), "coefficient", wanted),
        ("intercepts.csv", ("task",), "intercept", constants),
    ):
        if not (folder / name).is_file():
            continue
        try:
            lines = [(tuple(line[part] for part in key), float(line[number])) for line in _lines(folder, name)]
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise _refuse(folder, f"{name} cannot be read: {error}") from None
        if len(dict(lines)) != len(lines) or dict(lines) != expected:
            raise _refuse(folder, f"{name} does not hold the coefficients of the model")


def _lines(folder: RunFolder, name: str) -> list[dict[str, Any]]:
    """The rows of a table of a run."""
    if name.endswith(".parquet"):
        parquet, errors = need("pyarrow.parquet"), need("pyarrow").ArrowException
        try:
            return list(parquet.read_table(folder / name).to_pylist())
        except (errors, OSError) as error:
            raise ValueError(error) from None
    with open(folder / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _compare_path_table(folder: RunFolder, path: SavedPath) -> None:
    """path.csv, which people read, says what path.npz does; and both of gaps and their sizes the same."""
    if not np.allclose(path.relative_gaps * (path.null_objective or 1.0), path.dual_gaps, rtol=1e-9, atol=0.0):
        raise _refuse(folder, "the relative gaps of path.npz are not its gaps over the objective of the empty model")
    if not (folder / "path.csv").is_file():
        return
    names = ("alphas", "objectives", "dual_gaps", "relative_gaps", "n_selected")
    try:
        stated = np.array([[float(line[name]) for name in names] for line in _lines(folder, "path.csv")])
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise _refuse(folder, f"path.csv cannot be read: {error}") from None
    for column, name in zip(stated.T, names, strict=True):
        if not np.array_equal(column, np.asarray(getattr(path, name), dtype=np.float64)):
            raise _refuse(folder, f"{name} of path.csv are not those of path.npz")


def _compare_chosen(
    folder: RunFolder, path: SavedPath, alpha: float, coef: np.ndarray, intercept: np.ndarray
) -> None:
    """The value of path.npz that is the model's."""
    here = np.flatnonzero(np.isclose(path.alphas, alpha, rtol=1e-12, atol=0.0))
    if len(here) != 1:
        raise _refuse(folder, f"path.npz has {len(here)} values with the model's alpha {alpha:g}")
    k = int(here[0])
    if not (np.array_equal(path.coefs[k].toarray(), coef) and np.array_equal(path.intercepts[k], intercept)):
        raise _refuse(folder, "path.npz has other coefficients than the model at its alpha")


def _compare_path(
    folder: RunFolder,
    cert: verifier.Certificate,
    path: SavedPath,
    order: np.ndarray,
    strengths: Strengths,
    left: float,
) -> None:
    """All values of path.npz."""
    if len(path.alphas) != cert.n_values:
        raise _refuse(folder, f"path.npz has {len(path.alphas)} values, {PROOF} has {cert.n_values}")
    for k in range(cert.n_values):
        coef = path.coefs[k].toarray()[order]
        _compare_point(folder, cert, k, coef, path.intercepts[k][order], *strengths(float(path.alphas[k])))
        _compare_numbers(folder, "path.npz", cert, k, float(path.objectives[k]), float(path.dual_gaps[k]), left)


def _task_after_task(model: Any, n_rows: int) -> np.ndarray:
    """Places of the certificate's outputs among the rows of coefficients, which are class after class."""
    if isinstance(model.coef_, list) or np.ndim(model.coef_) == 2:
        return np.arange(n_rows)
    return np.arange(n_rows).reshape(model.coef_.shape[0], -1).T.ravel()
