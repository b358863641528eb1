"""What the files of a run say about its answer, compared with its certificate: a proof is none of another model."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
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
from ..tables.table import column_names
from ..tasks import by_pattern

# How much more than the fit's own gap a certificate may leave open, and still be about the same answer: the two count
# rounding in different ways, and a certificate that of sums over all rows of a task.
TWICE, ROUNDING, ROUNDING_OF_ROWS = 2.0, 1e-11, 32.0 * 2.0**-53
# Of labels that a model explains entirely, rounding is all that is left: in each residual this part of the largest one.
ROUNDING_OF_LABELS, LOST_SQUARE = 2.0**-48, 1e-150
PARTS = ("shared", "intercept", "standardize", "positive", "loss", "penalty", "task_weights", "class_weights")
LABELS = ("tasks", "classes")
ARRAYS = ("feature_weights", "l1", "group_of", "group_weights", "sorted_weights", "edges", "absent", "absent_start")


def compare_run(
    folder: RunFolder, cert: verifier.Certificate, rows: dict[str, Any], names: Sequence[str] | None, value: int | None
) -> list[str]:
    """Refuse a run whose files say something else than its certificate; gives what they say beyond it, in words.

    - `rows`: X, y, task, ...: the data, as they will be given to the verifier.
    - `names`: The features that the data have, where the certificate does not say which column each is.
    - `value`: The value of the path that is the run's model, where the certificate says so.
    """
    saved = load_model(folder)
    coef, intercept = (np.asarray(part) for part in coefficient_rows(saved.estimator))
    claims = _Claims(folder, cert, saved, coef, intercept, _rounding_of_labels(cert, rows["y"]))
    claims.compare_names(names)
    own_alpha, strengths = claims.compare_problem(rows)
    value = claims.value_at(strengths(own_alpha)[0]) if value is None else value
    claims.compare_point(value, coef, intercept, *strengths(own_alpha))
    claims.compare_thresholds(value, getattr(saved.estimator, "thresholds_", None))
    claims.compare_numbers(value)
    claims.compare_tables()
    if not (folder / "path.npz").is_file():
        return []
    path = read_path(folder)
    claims.compare_path_table(path)
    if cert.n_values > 1:
        claims.compare_path(path, strengths)
        return []
    claims.compare_chosen(path, own_alpha)
    return [f"of path.npz the chosen value alone is proved, {len(path.alphas) - 1} others are not"]


def compare_recipes(stated: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuse a certificate about other people, variants, phenotypes or covariates than those of the run's options."""
    for name in found:
        mine, theirs = (part.get(name) for part in (found, stated))
        if name == "variants":  # chromosomes may be spelt in another way
            mine, theirs = ([one.split(" ")[1:] for one in part or ()] for part in (mine, theirs))
        if mine != theirs:
            raise RunError(f"{name} of {PROOF} are not those that the options of the run name")


@dataclass
class _Claims:
    """A certificate and the model of a run, whose files must say the same."""

    folder: RunFolder
    cert: verifier.Certificate
    saved: SavedModel
    coef: np.ndarray  # of the model, a row for each task or class
    intercept: np.ndarray
    left: float  # what the rounding of labels may leave of an objective

    def require(self, good: bool, otherwise: str) -> None:
        if not good:
            raise RunError(f"{self.folder.path}: {otherwise}")

    def compare_names(self, names: Sequence[str] | None) -> None:
        own = self.saved.feature_names
        self.require(self.cert.header.get("features") == own, f"the features of model.npz are not those of {PROOF}")
        known = names is None or list(names) == own
        self.require(known, "the names of the features are not those of the columns of the data")
        table = self.cert.header.get("table")
        if table is not None:
            for name, column, said in zip(own, column_recipes(self.saved.encoding), table["columns"], strict=True):
                said = {**said, "source": column_names([said["source"], ""])[0]}
                same = all(said.get(key) == word for key, word in column.items())
                self.require(same, f"feature {name!r} of model.json is column {said['source']!r} in {PROOF}")
        for name, count in Counter(own).most_common(1):
            self.require(count == 1, f"{name!r} is the name of several features")

    def compare_problem(self, rows: dict[str, Any]) -> tuple[float, Strengths]:
        """Loss, penalty, weights, ... of the saved model on the data; gives its alpha, and the format's strengths."""
        cert, model = self.cert, self.saved.estimator
        try:
            header, arrays, alpha, strengths = stated_problem(model, _in_patterns(model, rows))
        except ValueError as error:
            raise RunError(f"{self.folder.path}: the saved model does not go with the data: {error}") from None
        for name in PARTS:
            self.require(
                _same(header[name], cert[name]), f"{name} of the model is {header[name]}, in {PROOF} {cert[name]}"
            )
        for name in LABELS:
            same = label_words(header[name]) == label_words(cert[name])
            self.require(same, f"the {name} of the data are {header[name]}, in {PROOF} {cert[name]}")
        same = math.isclose(header["unit"], cert["unit"], rel_tol=1e-12)
        self.require(same, f"the unit of the objective is {header['unit']}, in {PROOF} {cert['unit']}")
        same = label_words(model.tasks_.tolist()) == label_words(cert["tasks"])
        self.require(same, f"the tasks of model.json are not those of {PROOF}")
        for name in ARRAYS:
            mine, theirs = (part.get(name, np.empty(0)) for part in (arrays, cert.arrays))
            self.require(np.array_equal(mine, theirs), f"{name} of the model are not those of {PROOF}")
        return alpha, strengths

    def value_at(self, alpha: float) -> int:
        """The value with the strength of the model."""
        here = np.flatnonzero(np.isclose(self.cert.arrays["alpha"], alpha, rtol=1e-9, atol=0.0))
        if self.cert["penalty"]["name"] == "none":
            here = np.arange(self.cert.n_values)
        self.require(len(here) == 1, f"{PROOF} has {len(here)} values with the model's strength {alpha:g}")
        return int(here[0])

    def compare_point(self, k: int, coef: np.ndarray, intercept: np.ndarray, alpha: float, ridge: float) -> None:
        """Coefficients and strengths of one value."""
        arrays, order = self.cert.arrays, _task_after_task(self.saved.estimator, len(coef))
        for name, mine in (("alpha", alpha), ("ridge", ridge)):
            same = math.isclose(mine, arrays[name][k], rel_tol=1e-12)
            self.require(same, f"{name} of the model is {mine}, in {PROOF} {arrays[name][k]}")
        found = np.zeros((len(self.cert.outputs), self.cert.n_features))
        here = slice(*arrays["start"][k : k + 2])
        found[arrays["output"][here], arrays["feature"][here]] = arrays["coef"][here]
        same = np.array_equal(coef[order], found) and np.array_equal(intercept[order], arrays["intercept"][k])
        self.require(same, f"the coefficients are not those of {PROOF}")

    def compare_thresholds(self, k: int, by_task: Any) -> None:
        """Between ordered classes. Around a class that a task does not have two of the model are equal, or infinite."""
        stated = self.cert.arrays.get("thresholds")
        mine = [] if by_task is None else [np.asarray(own, dtype=np.float64) for own in by_task if own is not None]
        found = np.concatenate([np.empty(0), *(np.unique(own[np.isfinite(own)]) for own in mine)])
        same = np.array_equal(found, np.empty(0) if stated is None else stated[k])
        self.require(same, f"the thresholds are not those of {PROOF}")

    def compare_numbers(self, k: int) -> None:
        """Objective and gap of the chosen value, in all files that state them."""
        stated, of_model = self.folder.read_json(CERTIFICATE), self.folder.read_json("model.json")
        self.compare_gap(CERTIFICATE, k, stated.get("objective"), stated.get("dual_gap"))
        for name in ("objective", "dual_gap", "null_objective"):
            mine, other = stated.get(name), of_model.get(name, stated.get(name))
            self.require(other == mine, f"{name} is {mine} in {CERTIFICATE}, {other} in model.json")
        gap, relative, null = (stated.get(name) for name in ("dual_gap", "relative_gap", "null_objective"))
        if relative is None and null is None:
            return
        sound = all(map(_is_number, (gap, relative, null)))
        wanted = float(gap or 0) if null else 0.0  # y that the empty model explains: 0 by convention
        sound = sound and math.isclose(float(relative or 0) * float(null or 1), wanted, rel_tol=1e-9)
        self.require(sound, f"{CERTIFICATE} has a relative gap of {relative}, {gap} of {null} is something else")

    def compare_gap(self, name: str, k: int, objective: Any, gap: Any) -> None:
        proved, open_ = float(self.cert.arrays["objective"][k]), float(self.cert.arrays["gap"][k])
        rounding = (ROUNDING + ROUNDING_OF_ROWS * max(self.cert["rows"])) * abs(proved) + self.left
        close = _is_number(objective) and abs(objective - proved) <= open_ + rounding
        self.require(close, f"{name} has objective {objective}, {PROOF} has {proved}")
        close = _is_number(gap) and open_ <= TWICE * gap + rounding
        self.require(close, f"{name} has the duality gap {gap}, {PROOF} proves {open_} only")

    def compare_tables(self) -> None:
        """coefficients.csv, coefficients.parquet and intercepts.csv, which people read."""
        labels, names = row_labels(self.saved.estimator, self.saved.targets), self.saved.feature_names
        rows, positions = (index.tolist() for index in np.nonzero(self.coef))
        wanted = {(labels[t], names[j]): self.coef[t, j] for t, j in zip(rows, positions, strict=True)}
        constants = {(label,): value for label, value in zip(labels, self.intercept.tolist(), strict=True)}
        for name, number, expected in (
            ("coefficients.csv", "coefficient", wanted),
            ("coefficients.parquet", "coefficient", wanted),
            ("intercepts.csv", "intercept", constants),
        ):
            lines = self.numbers_of(name, [number], ["task", "feature"][: 1 + (expected is wanted)])
            if lines is not None:
                same = len(dict(lines)) == len(lines) and {key: own for key, (own,) in lines} == expected
                self.require(same, f"{name} does not hold the coefficients of the model")

    def numbers_of(
        self, name: str, numbers: Sequence[str], key: Sequence[str] = ()
    ) -> list[tuple[tuple[Any, ...], tuple[float, ...]]] | None:
        """Columns of a table of the run, row by row: those of the key, and those that are numbers."""
        if not (self.folder / name).is_file():
            return None
        try:
            return [
                (tuple(line[part] for part in key), tuple(float(line[part]) for part in numbers))
                for line in _lines(self.folder, name)
            ]
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise RunError(f"{self.folder.path}: {name} cannot be read: {error}") from None

    def compare_path_table(self, path: SavedPath) -> None:
        """path.csv, which people read, says what path.npz does; and both of gaps and their sizes the same."""
        relative = path.relative_gaps * (path.null_objective or 1.0)
        same = np.allclose(relative, path.dual_gaps, rtol=1e-9, atol=0.0)
        self.require(same, "the relative gaps of path.npz are not its gaps over the objective of the empty model")
        names = ("alphas", "objectives", "dual_gaps", "relative_gaps", "n_selected")
        lines = self.numbers_of("path.csv", names)
        if lines is None:
            return
        for column, name in zip(np.array([own for _, own in lines]).T, names, strict=True):
            same = np.array_equal(column, np.asarray(getattr(path, name), dtype=np.float64))
            self.require(same, f"{name} of path.csv are not those of path.npz")

    def compare_chosen(self, path: SavedPath, alpha: float) -> None:
        """The value of path.npz that is the model's."""
        here = np.flatnonzero(np.isclose(path.alphas, alpha, rtol=1e-12, atol=0.0))
        self.require(len(here) == 1, f"path.npz has {len(here)} values with the model's alpha {alpha:g}")
        coef, intercept = path.coefs[here[0]].toarray(), path.intercepts[here[0]]
        same = np.array_equal(coef, self.coef) and np.array_equal(intercept, self.intercept)
        self.require(same, "path.npz has other coefficients than the model at its alpha")
        model = self.saved.estimator
        mine, theirs = (
            [None] if own is None else [None if part is None else part.tolist() for part in own]
            for own in (getattr(model, "thresholds_", None), path.thresholds(here[0], getattr(model, "classes_", None)))
        )
        self.require(mine == theirs, "path.npz has other thresholds than the model at its alpha")

    def compare_path(self, path: SavedPath, strengths: Strengths) -> None:
        """All values of path.npz."""
        n = self.cert.n_values
        self.require(len(path.alphas) == n, f"path.npz has {len(path.alphas)} values, {PROOF} has {n}")
        for k, alpha in enumerate(path.alphas.tolist()):
            self.compare_point(k, path.coefs[k].toarray(), path.intercepts[k], *strengths(alpha))
            self.compare_thresholds(k, path.thresholds(k, getattr(self.saved.estimator, "classes_", None)))
            self.compare_gap("path.npz", k, float(path.objectives[k]), float(path.dual_gaps[k]))


def _in_patterns(model: Any, rows: dict[str, Any]) -> dict[str, Any]:
    """The data as a model of patterns has them: rows with holes in the patterns that it knows."""
    known = getattr(model, "patterns_", None)
    if known is None or hasattr(rows["X"], "patterns"):
        return rows
    X = by_pattern(rows["X"], rows.get("task"), unseen="nearest").as_fitted(known, None)
    return {**rows, "X": X, "task": X.task}


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


def _rounding_of_labels(cert: verifier.Certificate, y: Any) -> float:
    """What the rounding of labels may leave of an objective: its square where small residuals are squared."""
    parts = [np.asarray(part) for part in (y if isinstance(y, list) else [y])]
    sizes = [float(np.nanmax(np.abs(part), initial=0.0)) for part in parts if part.dtype.kind in "biuf"]
    left = ROUNDING_OF_LABELS * max(sizes, default=1.0)
    return max(left * left if cert["loss"].get("mu") == 1.0 else left, LOST_SQUARE)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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


def _task_after_task(model: Any, n_rows: int) -> np.ndarray:
    """Places of the certificate's outputs among the rows of coefficients, which are class after class."""
    if isinstance(model.coef_, list) or np.ndim(model.coef_) == 2:
        return np.arange(n_rows)
    return np.arange(n_rows).reshape(model.coef_.shape[0], -1).T.ravel()
