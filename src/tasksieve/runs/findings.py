"""Findings in a run folder: permutations, stability, comparisons; written for people and read back without trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..findings.permutation import PermutationTest
from ..fitted.quality import ALL
from ..report.findings import ASSUMPTIONS, StabilityFinding
from ..report.sharing import SharingFinding
from ..tables import TableError, read_arrays, write_arrays, write_table
from .arrays import pack_names, pack_rows, unpack_names, unpack_rows
from .folder import COMPARISON, PERMUTATION, STABILITY, RunError, RunFolder

# --- does anything matter? ---------------------------------------------------------------------------------------


def write_permutation(folder: RunFolder, found: PermutationTest) -> None:
    """``permutation.json``."""
    folder.write_json(
        PERMUTATION,
        {
            "statistic": found.statistic,
            "pvalue": found.pvalue,
            "moved": found.moved,
            "approximate": found.approximate,
            "null": [float(value) for value in found.null],
        },
    )


def read_permutation(folder: RunFolder) -> PermutationTest | None:
    """That of a run, if it has one."""
    if not (folder / PERMUTATION).is_file():
        return None
    content = folder.read_json(PERMUTATION)
    try:
        null = np.array([float(value) for value in content["null"]])
        found = PermutationTest(
            float(content["statistic"]),
            null,
            float(content["pvalue"]),
            bool(content["approximate"]),
            str(content["moved"]),
        )
        if not np.all(np.isfinite([*null, found.statistic])) or not 0.0 < found.pvalue <= 1.0:
            raise ValueError("numbers")
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / PERMUTATION} is not readable: {error}") from None
    return found


# --- which features would be found again? ------------------------------------------------------------------------


def write_stability(folder: RunFolder, found: StabilityFinding, names: Sequence[str]) -> None:
    """``stability.csv`` (every feature, those found most often first), ``stability.json`` and ``stability.npz``."""
    shares = found.probabilities
    order = np.argsort(-np.where(np.isnan(shares), -1.0, shares), kind="stable").tolist()
    columns: dict[str, Any] = {"feature": [names[j] for j in order]}
    if found.groups is not None:
        columns["group"] = [found.groups[j] for j in order]
    columns["selection_probability"] = [None if math.isnan(share) else share for share in shares[order].tolist()]
    columns["stable"] = ["yes" if mark else "no" for mark in found.stable[order].tolist()]
    write_table(folder / "stability.csv", columns)
    packed, ends = pack_names(list(names))
    write_arrays(
        folder / "stability.npz",
        {
            "probabilities": shares,
            "stable": found.stable.astype(np.uint8),
            "alphas": found.alphas,
            "path_features": found.path_features,
            "feature_names": packed,
            "feature_ends": ends,
            **pack_rows(scipy.sparse.csr_array(found.path)),
        },
    )
    folder.write_json(
        STABILITY,
        {
            "threshold": found.threshold,
            "n_pairs": found.n_pairs,
            "q": found.q,
            "n_candidates": found.n_candidates,
            "assumption": found.assumption,
            "bound": _or_none(found.bound),
            "bounds": {name: _or_none(bound) for name, bound in found.bounds.items()},
            "halves": found.halves,
            "dropped_tasks": list(found.dropped),
            "noun": found.noun,
        },
    )


def _or_none(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def read_stability(folder: RunFolder) -> tuple[StabilityFinding, list[str]] | None:
    """That of a run and the names of all features, if it has one."""
    if not (folder / STABILITY).is_file():
        return None
    content = folder.read_json(STABILITY)
    try:
        arrays = read_arrays(folder / "stability.npz", stored=True)
        return _stability(content, arrays)
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError, TableError) as error:
        raise RunError(f"{folder / STABILITY} is not readable: {type(error).__name__}: {str(error)[:200]}") from None


def _stability(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[StabilityFinding, list[str]]:
    names = unpack_names(arrays["feature_names"], arrays["feature_ends"])
    shares, stable, alphas = arrays["probabilities"], arrays["stable"] != 0, arrays["alphas"]
    features = arrays["path_features"]
    if shares.shape != (len(names),) or stable.shape != shares.shape or shares.dtype != np.float64:
        raise ValueError("number of features")
    if alphas.ndim != 1 or alphas.dtype != np.float64 or not np.all(alphas > 0) or not np.all(np.isfinite(alphas)):
        raise ValueError("values of alpha")
    if features.ndim != 1 or features.dtype != np.int64 or np.any(features < 0) or np.any(features >= len(names)):
        raise ValueError("features of the path")
    if np.any((shares < 0) | (shares > 1)):
        raise ValueError("shares of the halves")
    if not isinstance(content["halves"], str) or content["noun"] not in ("feature", "group"):
        raise ValueError("words")
    if content["assumption"] not in ASSUMPTIONS or not set(content["bounds"]) <= set(ASSUMPTIONS):
        raise ValueError("assumption")
    path = unpack_rows(arrays, (len(alphas), len(features))).toarray()
    bounds = {name: math.nan if bound is None else float(bound) for name, bound in content["bounds"].items()}
    found = StabilityFinding(
        probabilities=shares,
        stable=stable,
        threshold=float(content["threshold"]),
        n_pairs=int(content["n_pairs"]),
        q=int(content["q"]),
        n_candidates=int(content["n_candidates"]),
        assumption=content["assumption"],
        halves=content["halves"],
        noun=content["noun"],
        bound=math.nan if content["bound"] is None else float(content["bound"]),
        bounds=bounds,
        path=path,
        alphas=alphas,
        path_features=features,
        dropped=[str(label) for label in content["dropped_tasks"]],
    )
    return found, names


# --- does sharing help? ------------------------------------------------------------------------------------------


def write_comparison(folder: RunFolder, found: SharingFinding) -> None:
    """``comparison.csv`` (one line for each task, those of their mean last) and ``comparison.json``."""
    columns: dict[str, list[Any]] = {"task": [*found.tasks, ALL]}
    for name, values in found.numbers.items():
        columns[name] = [None if math.isnan(value) else value for value in values.tolist()]
    columns["rows"] = [int(count) for count in columns["rows"]]
    write_table(folder / "comparison.csv", columns)
    folder.write_json(
        COMPARISON,
        {
            "loss": found.loss,
            "score": found.score,
            "level": found.level,
            "folds": found.folds,
            "classes": found.classes,
            "models": list(found.models),
            "note": found.note,
            "columns": columns,
        },
    )


def read_comparison(folder: RunFolder) -> SharingFinding | None:
    """That of a run, if it has one."""
    if not (folder / COMPARISON).is_file():
        return None
    content = folder.read_json(COMPARISON)
    try:
        columns = content["columns"]
        tasks = [str(name) for name in columns["task"]]
        numbers = {
            name: np.array([math.nan if value is None else float(value) for value in values])
            for name, values in columns.items()
            if name != "task"
        }
        if len(tasks) < 2 or any(len(values) != len(tasks) for values in numbers.values()):
            raise ValueError("lengths")
        return SharingFinding(
            tasks=tasks[:-1],
            models=[str(name) for name in content["models"]],
            numbers=numbers,
            loss=str(content["loss"]),
            score=str(content["score"]),
            level=float(content["level"]),
            folds=str(content["folds"]),
            classes=bool(content["classes"]),
            note=str(content["note"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / COMPARISON} is not readable: {type(error).__name__}: {error}") from None
