"""Findings in a run folder: permutations, stability, comparisons; written for people and read back without trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..report.findings import ASSUMPTIONS, PermutationFinding, StabilityFinding
from ..report.sharing import SharingFinding
from ..tables import TableError, read_arrays, write_arrays, write_table
from .arrays import pack_names, pack_rows, unpack_names, unpack_rows
from .folder import COMPARISON, PERMUTATION, STABILITY, RunError, RunFolder

# Of the features on the stability path so many are kept, those selected most often: more cannot be told apart.
MOST_CURVES = 200


# --- does anything matter? ---------------------------------------------------------------------------------------


def write_permutation(folder: RunFolder, found: Any) -> None:
    """``permutation.json``, of a `PermutationTest`."""
    folder.write_json(
        PERMUTATION,
        {
            "statistic": float(found.statistic),
            "pvalue": float(found.pvalue),
            "moved": str(found.moved),
            "approximate": bool(found.approximate),
            "null": [float(value) for value in found.null],
        },
    )


def read_permutation(folder: RunFolder) -> PermutationFinding | None:
    """That of a run, if it has one."""
    if not (folder / PERMUTATION).is_file():
        return None
    content = folder.read_json(PERMUTATION)
    try:
        null = np.array([float(value) for value in content["null"]])
        found = PermutationFinding(
            float(content["statistic"]),
            null,
            float(content["pvalue"]),
            str(content["moved"]),
            bool(content["approximate"]),
        )
        if not np.all(np.isfinite([*null, found.statistic])) or not 0.0 < found.pvalue <= 1.0:
            raise ValueError("numbers")
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / PERMUTATION} is not readable: {error}") from None
    return found


# --- which features would be found again? ------------------------------------------------------------------------


def write_stability(folder: RunFolder, found: Any, names: Sequence[str]) -> None:
    """``stability.csv`` (every feature), ``stability.json`` and ``stability.npz``, of a `StabilitySelection`."""
    shares = np.asarray(found.selection_probabilities_, dtype=np.float64)
    stable = np.asarray(found.get_support())
    order = np.lexsort((np.arange(len(shares)), -np.where(np.isnan(shares), -1.0, shares)))
    columns: dict[str, Any] = {"feature": [names[j] for j in order.tolist()]}
    if hasattr(found, "groups_"):
        columns["group"] = [str(found.groups_[j]) for j in order.tolist()]
    columns["selection_probability"] = [None if math.isnan(share) else share for share in shares[order].tolist()]
    columns["stable"] = ["yes" if mark else "no" for mark in stable[order].tolist()]
    write_table(folder / "stability.csv", columns)
    kept = np.sort(order[: max(MOST_CURVES, int(np.count_nonzero(stable)))])
    kept = kept[np.nan_to_num(shares[kept]) > 0.0]
    path = scipy.sparse.csr_array(found.stability_path_)[:, kept]
    packed, ends = pack_names(list(names))
    write_arrays(
        folder / "stability.npz",
        {
            "probabilities": shares,
            "stable": stable.astype(np.uint8),
            "alphas": np.asarray(found.alphas_, dtype=np.float64),
            "path_features": kept.astype(np.int64),
            "feature_names": packed,
            "feature_ends": ends,
            **pack_rows(path),
        },
    )
    folder.write_json(
        STABILITY,
        {
            "threshold": float(found.threshold_),
            "n_pairs": int(found.n_pairs_),
            "q": int(found.q_),
            "n_candidates": int(found.n_selectable_),
            "assumption": str(found.assumption),
            "bound": _or_none(found.pfer_bound_),
            "bounds": {name: _or_none(bound) for name, bound in found.pfer_bounds_.items()},
            "halves": str(found.halves_),
            "dropped_tasks": [str(label) for label in found.dropped_tasks_],
            "noun": "group" if hasattr(found, "groups_") else "feature",
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


def write_comparison(folder: RunFolder, found: Any, names: Sequence[str]) -> None:
    """``comparison.csv`` (one line for each task, those of their mean last) and ``comparison.json``."""
    columns = {
        name: [None if isinstance(value, float) and math.isnan(value) else value for value in values]
        for name, values in found.to_dict().items()
    }
    columns["task"] = [*names, columns["task"][-1]]
    write_table(folder / "comparison.csv", columns)
    facts = {
        "loss": str(found.loss),
        "score": str(found.score),
        "level": float(found.level),
        "folds": str(found.folds),
        "n_folds": int(found.n_folds),
        "classes": bool(found.classes),
    }
    folder.write_json(
        COMPARISON, {**facts, "models": list(found.models), "note": str(found.note), "columns": columns}
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
