"""The library under test: a case becomes a call, a fitted model becomes the numbers that it stores."""

from __future__ import annotations

import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.path import walks

from .cases import CLASSIFIERS, Case

Array = np.ndarray[Any, Any]

ESTIMATORS = {
    "lasso": ts.MultiTaskLasso,
    "elastic_net": ts.MultiTaskElasticNet,
    "sparse_group": ts.MultiTaskSparseGroupLasso,
    "l1": ts.MultiTaskSparseGroupLasso,
    "logistic": ts.MultiTaskLogisticRegression,
    "sparse_group_logistic": ts.MultiTaskSparseGroupLasso,
    "calibrated": ts.CalibratedMultiTaskLasso,
    "owl": ts.MultiTaskOWL,
    "multinomial_owl": ts.MultinomialOWL,
    "regressor": ts.MultiTaskRegressor,
    "graph_svc": ts.GraphSVC,
    "graph_svr": ts.GraphSVR,
}


@dataclass
class Stored:
    """What a model claims, and about which numbers (None: it claims something about numbers it was given)."""

    coef: Array
    intercept: Array
    objective: float
    dual_gap: float
    converged: bool | None
    alpha: float


class Endless(Exception):
    """A call that did not come back."""


class Columns(ts.Storage):
    """A storage of the user's own: columns, and nothing but columns."""

    def __init__(self, x: Array) -> None:
        self.x = x
        self.n_rows, self.n_features = x.shape

    def take(self, features: Array) -> Array:
        return self.x[:, features]

    def rows(self, index: Array) -> Array:
        return self.x[index]


@contextmanager
def given(case: Case) -> Iterator[dict[str, Any]]:
    """The arguments of `fit`."""
    with tempfile.TemporaryDirectory() as folder:
        yield _arguments(case, Path(folder))


def _arguments(case: Case, folder: Path) -> dict[str, Any]:
    y = [_labels(case, part) for part in case.y]
    if case.storage == "shared":
        weights = None if case.s is None else np.stack(case.s, axis=1)
        return _without_none(X=case.x[0], y=np.stack(y, axis=1), sample_weight=weights)
    if case.storage == "list":
        return _without_none(X=case.x, y=y, sample_weight=case.s)
    x, flat = np.concatenate(case.x), np.concatenate(y)
    s = None if case.s is None else np.concatenate(case.s)
    task = np.repeat(np.array(case.labels), [len(block) for block in case.x])
    if case.storage in ("unsorted", "C map", "CSR", "own", "int8"):
        order = np.random.default_rng([case.seed, case.number, 1]).permutation(len(x))
        x, flat, task = x[order], flat[order], task[order]
        s = None if s is None else s[order]
    several = len(case.x) > 1
    return _without_none(X=_stored(case, x, folder), y=flat, task=task if several else None, sample_weight=s)


def _without_none(**arguments: Any) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not None}


def _labels(case: Case, y: Array) -> Array:
    """Classes as text for the odd cases; NaN stays what it is."""
    named = case.name in CLASSIFIERS and case.number % 2 and np.all(np.isfinite(np.concatenate(case.y)))
    return np.where(y > 0, "yes", "no") if named else y


def _stored(case: Case, x: Array, folder: Path) -> Any:
    kind = case.storage
    if kind == "F":
        return np.asfortranarray(x)
    if kind == "float32":
        return x.astype(np.float32)
    if kind == "int8":
        return x.astype(np.int8)
    if kind in ("CSR", "CSC"):
        return scipy.sparse.csr_array(x) if kind == "CSR" else scipy.sparse.csc_array(x)
    if kind in ("C map", "F map"):
        path, order = folder / "x.dat", kind[0]
        made = np.memmap(path, dtype=np.float64, mode="w+", shape=x.shape, order=order)
        made[...] = x
        made.flush()
        return np.memmap(path, dtype=np.float64, mode="r", shape=x.shape, order=order)
    if kind == "frame":
        return pandas.DataFrame(x, columns=[f"column {j}" for j in range(x.shape[1])])
    if kind == "own":
        return Columns(x)
    return np.ascontiguousarray(x)


def estimator(case: Case, **changes: Any) -> Any:
    strength = "C" if case.name.startswith("graph") else "alpha"
    params = {
        strength: case.alpha,
        "tol": case.tol,
        "max_iter": case.max_iter,
        "n_jobs": 1,
        **case.params,
        **changes,
    }
    return ESTIMATORS[case.name](**params)


@contextmanager
def guarded(seconds: int) -> Iterator[list[Any]]:
    """Warnings caught; a call that hangs is ended. The alarm handler that was set before is restored."""

    def ring(*_: Any) -> None:
        raise Endless(f"no answer after {seconds} s")

    old = signal.signal(signal.SIGALRM, ring)
    theirs, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            yield caught
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        signal.setitimer(signal.ITIMER_REAL, theirs)


@contextmanager
def way_of(case: Case, anew: bool) -> Iterator[None]:
    """Single strengths of small problems are the engine's: half of the cases, first fits only, go the Gram way."""
    plain = walks.choose_for_problem
    if not anew and np.frexp(case.alpha)[0] < 0.75:
        walks.choose_for_problem = lambda facts: plain(replace(facts, n_values=100))  # type: ignore[assignment]
    try:
        yield
    finally:
        walks.choose_for_problem = plain  # type: ignore[assignment]


def fit(case: Case, arguments: dict[str, Any], seconds: int = 60, **changes: Any) -> tuple[Any, Stored]:
    """The model, and what it claims."""
    with guarded(seconds) as caught, way_of(case, bool(changes)):
        model = estimator(case, **changes).fit(**arguments)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    return model, Stored(coef, intercept, model.objective_, model.dual_gap_, not warned, case.alpha)


def path(case: Case, arguments: dict[str, Any], seconds: int = 120) -> list[Stored]:
    """What a path claims, point by point."""
    if case.name.startswith("graph"):
        with guarded(seconds):
            walked = estimator(case).path(**arguments, Cs=list(case.path))
        return [
            Stored(
                np.atleast_2d(walked.coef(k)), walked.intercept(k), float(walked.objectives[k]),
                float(walked.dual_gaps[k]), bool(walked.converged[k]), float(walked.Cs[k]),
            )
            for k in range(len(walked))
        ]  # fmt: skip
    with guarded(seconds):
        found = estimator(case).path(**arguments, alphas=list(case.path))
    return [
        Stored(
            found.coef(k).toarray(), np.asarray(found.intercept(k)), float(found.objectives[k]),
            float(found.dual_gaps[k]), bool(found.converged[k]), float(found.alphas[k]),
        )
        for k in range(len(found))
    ]  # fmt: skip


def prove(case: Case, arguments: dict[str, Any], coef: Array, intercept: Array) -> Stored:
    """What is proved about numbers that no fit has stored."""
    with guarded(60):
        model = estimator(case)
        data = model._read(*(arguments.get(key) for key in ("X", "y", "task", "sample_weight")))
        proof, unit = model._proof_of(data, coef, intercept), model._unit(data)
    return Stored(coef, intercept, proof.objective / unit, proof.dual_gap / unit, None, case.alpha)
