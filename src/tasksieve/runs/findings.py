"""Findings in a run folder: permutations, stability, intervals, comparisons; read back without trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from ..findings.debiased import DebiasedInference
from ..findings.permutation import PermutationTest
from ..findings.split import SplitInference
from ..fitted.quality import ALL
from ..report.findings import ASSUMPTIONS, StabilityFinding
from ..report.sharing import SharingFinding
from ..report.trust import Trust
from ..tables import TableError, read_arrays, write_arrays, write_table
from .arrays import (
    finite_numbers,
    numbers_from,
    pack_names,
    pack_rows,
    plain_numbers,
    require,
    unpack_names,
    unpack_rows,
)
from .folder import COMPARISON, INTERVALS, PERMUTATION, STABILITY, RunError, RunFolder

T = TypeVar("T")


def _number(value: Any) -> float:
    return float(numbers_from([value])[0])


def _words(values: Any) -> list[str]:
    return [str(value) for value in values]


def _bounds(values: Any) -> dict[str, float]:
    return {name: _number(values[name]) for name in values}


# What the JSON files hold, and how it is read back.
Fields = Mapping[str, Callable[[Any], Any]]
OF_PERMUTATION: Fields = {"statistic": float, "pvalue": float, "moved": str, "approximate": bool, "null": numbers_from}
OF_STABILITY: Fields = {
    "threshold": float, "n_pairs": int, "q": int, "n_candidates": int, "assumption": str, "bound": _number,
    "bounds": _bounds, "halves": str, "noun": str,
}  # fmt: skip
OF_COMPARISON: Fields = {
    "loss": str, "score": str, "level": float, "folds": str, "classes": bool, "models": _words, "note": str,
}  # fmt: skip
OF_INTERVALS: Fields = {"level": float, "halves": str}
OF_DEBIASED: Fields = {"level": float, "n_tests": int, "errors": str}


def _read(folder: RunFolder, name: str, build: Callable[[dict[str, Any]], T]) -> T | None:
    """What was found, if the run has looked for it."""
    if not (folder / name).is_file():
        return None
    content = folder.read_json(name)
    try:
        return build(content)
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError, TableError) as error:
        raise RunError(f"{folder / name} is not readable: {type(error).__name__}: {str(error)[:200]}") from None


def _fields(content: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    return {name: read(content[name]) for name, read in fields.items()}


def write_findings(folder: RunFolder, found: Trust, names: Sequence[str]) -> None:
    """All that was found; ``names`` are those of all features."""
    if found.permutation is not None:
        write_permutation(folder, found.permutation)
    if found.stability is not None:
        write_stability(folder, found.stability, names)
    if found.intervals is not None:
        write_intervals(folder, found.intervals)
    if found.sharing is not None:
        write_comparison(folder, found.sharing)


def read_findings(folder: RunFolder) -> tuple[Trust, list[str]]:
    """All that a run has found about its findings, and the names of all features where stability is part of it."""
    stability, names = read_stability(folder) or (None, [])
    return Trust(read_permutation(folder), stability, read_comparison(folder), read_intervals(folder)), names


# --- does anything matter? ---------------------------------------------------------------------------------------


def write_permutation(folder: RunFolder, found: PermutationTest) -> None:
    """``permutation.json``."""
    folder.write_json(PERMUTATION, {name: getattr(found, name) for name in OF_PERMUTATION} | {"null": [*found.null]})


def read_permutation(folder: RunFolder) -> PermutationTest | None:
    return _read(folder, PERMUTATION, _permutation)


def _permutation(content: dict[str, Any]) -> PermutationTest:
    found = PermutationTest(**_fields(content, OF_PERMUTATION))
    require(np.all(np.isfinite([*found.null, found.statistic])) and 0.0 < found.pvalue <= 1.0, "numbers")
    return found


# --- which features would be found again? ------------------------------------------------------------------------


def write_stability(folder: RunFolder, found: StabilityFinding, names: Sequence[str]) -> None:
    """``stability.csv`` (every feature, those found most often first), ``stability.json`` and ``stability.npz``."""
    shares = found.probabilities
    order = np.argsort(-np.where(np.isnan(shares), -1.0, shares), kind="stable").tolist()
    columns: dict[str, Any] = {"feature": [names[j] for j in order]}
    if found.groups is not None:
        columns["group"] = [found.groups[j] for j in order]
    columns["selection_probability"] = plain_numbers(shares[order])
    columns["stable"] = ["yes" if mark else "no" for mark in found.stable[order].tolist()]
    write_table(folder / "stability.csv", columns)
    packed, ends = pack_names(list(names))
    arrays = {
        "probabilities": shares,
        "stable": found.stable.astype(np.uint8),
        "alphas": found.alphas,
        "path_features": found.path_features,
        "feature_names": packed,
        "feature_ends": ends,
        **pack_rows(scipy.sparse.csr_array(found.path)),
    }
    write_arrays(folder / "stability.npz", arrays)
    content = {name: getattr(found, name) for name in OF_STABILITY}
    content["bound"], *bounds = finite_numbers([found.bound, *found.bounds.values()])
    content["bounds"] = dict(zip(found.bounds, bounds, strict=True))
    folder.write_json(STABILITY, {**content, "dropped_tasks": list(found.dropped)})


def read_stability(folder: RunFolder) -> tuple[StabilityFinding, list[str]] | None:
    """That of a run and the names of all features, if it has one."""
    return _read(
        folder, STABILITY, lambda content: _stability(content, read_arrays(folder / "stability.npz", stored=True))
    )


def _stability(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[StabilityFinding, list[str]]:
    names = unpack_names(arrays["feature_names"], arrays["feature_ends"])
    shares, stable, alphas = arrays["probabilities"], arrays["stable"] != 0, arrays["alphas"]
    features = arrays["path_features"]
    whole = shares.shape == stable.shape == (len(names),) and shares.dtype == np.float64
    require(whole, "number of features")
    values = alphas.ndim == 1 and alphas.dtype == np.float64
    require(values and np.all((alphas > 0) & np.isfinite(alphas)), "values of alpha")
    places = features.ndim == 1 and features.dtype == np.int64
    require(places and np.all((features >= 0) & (features < len(names))), "features of the path")
    require(not np.any((shares < 0) | (shares > 1)), "shares of the halves")
    require(isinstance(content["halves"], str) and content["noun"] in ("feature", "group"), "words")
    require({content["assumption"], *content["bounds"]} <= set(ASSUMPTIONS), "assumption")
    path = unpack_rows(arrays, (len(alphas), len(features))).toarray()
    found = StabilityFinding(
        shares,
        stable,
        path=path,
        alphas=alphas,
        path_features=features,
        dropped=_words(content["dropped_tasks"]),
        **_fields(content, OF_STABILITY),
    )
    return found, names


# --- how large are the effects? ----------------------------------------------------------------------------------


def write_intervals(folder: RunFolder, found: SplitInference | DebiasedInference) -> None:
    """``intervals.csv`` (one line for each coefficient) and ``intervals.json``."""
    columns = {name: plain_numbers(values) for name, values in found.to_dict().items()}
    write_table(folder / "intervals.csv", columns)
    beside = OF_DEBIASED if isinstance(found, DebiasedInference) else OF_INTERVALS
    folder.write_json(INTERVALS, {**{name: getattr(found, name) for name in beside}, "columns": columns})


def read_intervals(folder: RunFolder) -> SplitInference | DebiasedInference | None:
    return _read(folder, INTERVALS, _intervals)


def _intervals(content: dict[str, Any]) -> SplitInference | DebiasedInference:
    columns = dict(content["columns"])
    names = {name: np.array(_words(columns.pop(name)), dtype=object) for name in ("feature", "task")}
    found: dict[str, Any] = {**names, **{name: numbers_from(values) for name, values in columns.items()}}
    require(len({len(values) for values in found.values()}) == 1, "lengths")
    if "n_tests" in content:
        return DebiasedInference(**found, **_fields(content, OF_DEBIASED))
    return SplitInference(**found, **_fields(content, OF_INTERVALS))


# --- does sharing help? ------------------------------------------------------------------------------------------


def write_comparison(folder: RunFolder, found: SharingFinding) -> None:
    """``comparison.csv`` (one line for each task, those of their mean last) and ``comparison.json``."""
    columns: dict[str, list[Any]] = {"task": [*found.tasks, ALL]}
    columns |= {name: plain_numbers(values) for name, values in found.numbers.items()}
    columns["rows"] = [int(count) for count in columns["rows"]]
    write_table(folder / "comparison.csv", columns)
    content = {name: getattr(found, name) for name in OF_COMPARISON}
    folder.write_json(COMPARISON, {**content, "models": list(found.models), "columns": columns})


def read_comparison(folder: RunFolder) -> SharingFinding | None:
    return _read(folder, COMPARISON, _comparison)


def _comparison(content: dict[str, Any]) -> SharingFinding:
    columns = dict(content["columns"])
    tasks = _words(columns.pop("task"))
    numbers = {name: numbers_from(values) for name, values in columns.items()}
    require(len(tasks) > 1 and all(len(values) == len(tasks) for values in numbers.values()), "lengths")
    return SharingFinding(tasks[:-1], numbers=numbers, **_fields(content, OF_COMPARISON))
