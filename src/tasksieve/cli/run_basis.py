"""Make again what the predictions of a run must depend on, from its data, its certificate and what was asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .. import verify as verifier
from ..fitted.baseline_hazard import BaselineHazard
from ..fitted.restore import get_state
from ..linear.base import PathEstimator
from ..linear.held_out import Solved
from ..linear.remade import Remade, remade
from ..proof.forms import label_words
from ..runs.model_file import STATE, SavedModel
from ..svm.remade import known_of_rows
from ..tables import Encoding
from ..tables.basis import PredictionBasis, basis_facts
from ..tasks import Fills, Patterns
from .config import estimator_parameters
from .files import task_column
from .options import BY_KEY, COMPARED, flag, read_numbers
from .results import basis_facts_of
from .source import Source

Array = np.ndarray[Any, Any]

# Means, and logarithms of increments of a hazard, are sums in an order that versions may choose.
ROUNDING_OF_MEANS, ROUNDING_OF_LOGARITHMS = 1e-13, 1e-9
ROUNDING_OF_SCALES = 1e-12  # of residuals of the null model, which are found by Newton's method
# Parameters that change what a prediction is and not what was solved: runs of the command line have none of them.
UNUSED = ("task", "hasher")


@dataclass(frozen=True)
class Expected:
    """The basis that a run must have.

    - `scale`: The deviations of the columns in each task, where they were standardised.
    - `largest`: Of each feature its largest number, where means fill holes: their rounding is a part of it.
    """

    basis: PredictionBasis
    scale: Array | None
    largest: Array | None


def expected_basis(
    saved: SavedModel, cert: verifier.Certificate, k: int, source: Source, asked: dict[str, Any]
) -> Expected:
    """From value k of the certificate and the data as they are read now, `source`, perhaps from other files than those
    that were asked for."""
    model, problem, config = saved.estimator, source.problem, source.config
    rows = {"X": source.matrix, "y": problem.y, **problem.row_arguments(groups=False)}
    scale = None
    if isinstance(model, PathEstimator):
        found = remade(model, rows, lambda data: _solution(cert, k, data))
        known, scale = _of_fit(saved, found), getattr(found.model, "scale_", None)
    else:
        known = {"coef": coefficients(cert, k), "intercept": np.array(cert.arrays["intercept"][k])}
        known |= known_of_rows(model, rows)
    if config["command"] != "fit":  # a value of a path has no rows of its own
        known["baseline_hazard"] = None
    state: dict[str, Any] = {name: known.get(name) for name in STATE}
    said = basis_facts(basis_facts_of(asked, source.kind, model, problem))
    basis = PredictionBasis(
        encoding=problem.encoding, fill=problem.fill, targets=list(problem.targets), task=task_column(config),
        model=source.kind.name, estimator=source.kind.estimator(problem.classes).__name__,
        params=asked_parameters(config, saved.basis.params), **state, **said,
    )  # fmt: skip
    return Expected(basis, scale, _largest(problem.X) if problem.fill is not None else None)


def _solution(cert: verifier.Certificate, k: int, data: Any) -> Solved:
    """Value k as a solver leaves it."""
    coef = coefficients(cert, k)
    features = np.flatnonzero(coef.any(axis=0))
    rows = np.ascontiguousarray(coef.T[features])
    thresholds = stored_thresholds(cert, k, data.classes)
    return Solved(features, rows, np.array(cert.arrays["intercept"][k]), thresholds)


def coefficients(cert: verifier.Certificate, k: int) -> Array:
    """Those of value k of a certificate, a row for each task, or for each class of each task."""
    arrays, here = cert.arrays, slice(*cert.arrays["start"][k : k + 2])
    found = np.zeros((len(cert.outputs), cert.n_features))
    found[arrays["output"][here], arrays["feature"][here]] = arrays["coef"][here]
    return found


def thresholds_of(cert: verifier.Certificate, k: int, classes: Any) -> list[Array | None]:
    """Between the classes that a model knows, by task: around one without rows, which the certificate does not have,
    two are equal, or infinite."""
    found: list[Array | None] = []
    stated, first = cert.arrays.get("thresholds"), 0
    for t in range(len(cert.tasks)):
        if cert.loss(t)["name"] != "ordinal":
            found.append(None)
            continue
        own = stated[k, first : first + cert.n_thresholds(t)] if stated is not None else np.empty(0)
        first += cert.n_thresholds(t)
        have, known = set(label_words(cert.classes(t))), label_words(_labels_of(classes, t))
        below = np.cumsum([word in have for word in known])[:-1]
        found.append(np.concatenate([[-np.inf], own, [np.inf]])[below])
    return found


def stored_thresholds(cert: verifier.Certificate, k: int, classes: Any) -> Array | None:
    """The same as solvers have them, (K - 1, T); infinite beyond the last class of a task."""
    found = thresholds_of(cert, k, classes)
    known = [own for own in found if own is not None]
    if not known:
        return None
    out = np.full((max(map(len, known)), len(found)), np.inf)
    for t, own in enumerate(found):
        if own is not None:
            out[: len(own), t] = own
    return out


def _labels_of(classes: Any, t: int) -> list[Any]:
    own = classes[t] if isinstance(classes, list) else classes
    return [] if own is None else np.asarray(own).tolist()


def _of_fit(saved: SavedModel, found: Remade) -> dict[str, Any]:
    """Facts that a fit knows of its rows and its solution."""
    known, mine = get_state(found.model), saved.basis.fills
    known["fills"] = found.data.fills(mine.features) if mine is not None and found.data.has_fills else None
    return known


def _largest(X: Any) -> Array:
    return np.zeros(X.shape[1]) if issparse(X) or not len(X) else np.abs(X).max(axis=0)


def asked_parameters(config: dict[str, Any], mine: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a model, where a configuration says something else that instead: what the problem depends on is
    compared with the certificate."""
    found = dict(mine) | {name: None for name in UNUSED if name in mine}
    given = estimator_parameters({key: own for key, own in config.items() if key not in (*COMPARED, "alpha")})
    found |= {name: own for name, own in given.items() if name in mine}
    for key in COMPARED:
        name = BY_KEY[key].name
        if config.get(key) is not None and name in mine:
            numbers = read_numbers(config[key], flag(key))
            found[name] = mine[name] if mine[name] in numbers else numbers[0]
    return found


# --- comparing -----------------------------------------------------------------------------------------------------


def differences(mine: PredictionBasis, expected: Expected) -> list[tuple[str, Any, Any]]:
    """Fields that differ by more than rounding, and what they are and should be."""
    found = []
    for name in (one.name for one in fields(PredictionBasis)):
        own, other = getattr(mine, name), getattr(expected.basis, name)
        same = alike(own, other)
        if name == "fill" and not same and own is not None and other is not None and own.shape == other.shape:
            largest = np.abs(other) if expected.largest is None else expected.largest
            same = _close(own, other, ROUNDING_OF_MEANS * np.maximum(largest, np.abs(other)))
        if name in ("loss_weights", "target_scales") and not same and np.shape(own) == np.shape(other) != ():
            same = _close(own, other, ROUNDING_OF_SCALES * np.abs(other))
        if not same:
            found.append((name, own, other))
    return found


def alike(mine: Any, theirs: Any) -> bool:
    """Equal, the kinds of labels too; means and logarithms up to rounding."""
    if isinstance(mine, Encoding) and isinstance(theirs, Encoding):
        return _columns(mine) == _columns(theirs)
    if isinstance(mine, Fills) and isinstance(theirs, Fills):
        same = np.array_equal(mine.features, theirs.features) and mine.means.shape == theirs.means.shape
        return same and _close(mine.means, theirs.means, ROUNDING_OF_MEANS)
    if isinstance(mine, Patterns) and isinstance(theirs, Patterns):
        same = alike(mine.names, theirs.names) and alike(mine.of, theirs.of)
        return same and np.array_equal(mine.present, theirs.present)
    if isinstance(mine, BaselineHazard) and isinstance(theirs, BaselineHazard):
        names = ("tasks", "strata", "task", "stratum", "time")
        same = all(alike(getattr(mine, name), getattr(theirs, name)) for name in names)
        same = same and np.array_equal(mine.end, theirs.end, equal_nan=True)
        return same and _close(mine.log_increment, theirs.log_increment, ROUNDING_OF_LOGARITHMS)
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(alike(mine[key], theirs[key]) for key in mine)
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        if np.shape(mine) != np.shape(theirs):
            return False
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        if mine.dtype.kind == theirs.dtype.kind == "f":
            return bool(np.array_equal(mine, theirs, equal_nan=True))
        mine, theirs = mine.tolist(), theirs.tolist()
    if isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        return len(mine) == len(theirs) and all(map(alike, mine, theirs))
    if isinstance(mine, float) and isinstance(theirs, int | float) and not isinstance(theirs, bool):
        return mine == theirs or (math.isnan(mine) and math.isnan(theirs))
    mine, theirs = (one.item() if isinstance(one, np.generic) else one for one in (mine, theirs))
    return type(mine) is type(theirs) and bool(mine == theirs)


def _close(mine: Array, theirs: Array, error: Any) -> bool:
    """Equal but for an error, NaN where the other is."""
    near = np.abs(mine - theirs) <= error
    return bool(np.all(near | (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))))


def _columns(encoding: Encoding) -> Any:
    """Columns and their codings, however they are kept."""
    return encoding.matrix_names, list(encoding.columns)
