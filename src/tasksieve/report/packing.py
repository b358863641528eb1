"""The numbers of a report, packed for the browser and bounded in size.

Coefficients travel as 16-bit integers with one scale per feature (so each is exact to about 1/32,767 of the feature's
largest), strengths likewise; zero is kept for what is exactly zero. What does not fit the bounds is left out, the
weakest first, and said so in ``left_out``.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .content import ReportContent, count_selected, stability_of, without_columns
from .intervals import interval_data
from .need import need_data
from .survival import risk_data
from .trust import Trust
from .words import capital, number, numbers, plural

# Together they keep a report below 20 MB whatever the model.
MAX_COEFFICIENTS = 3_000_000  # of the model shown: features x tasks
MAX_PATH_COEFFICIENTS = 1_000_000  # of the models along the path
MAX_STRENGTHS = 2_000_000  # features x values of alpha
MAX_SCALES = 1_000_000  # features x tasks
MAX_FEATURES = 20_000
MAX_TASKS = 2_000
NAME_LENGTH = 120
MAX_CURVES = 60  # of the stability path
LISTED, MAX_LISTED = 25, 2_000  # features beside it: so many at least, stable or not; so many at most

LARGEST = 32_767


@dataclass
class Packed:
    """What the page needs."""

    data: dict[str, Any]  # ready for JSON: no NaN, no arrays
    order: np.ndarray  # columns of the features kept: those of the model shown first, strongest first
    strengths: np.ndarray  # of each of them in the model shown
    coefficients: np.ndarray  # (selected and kept, tasks kept)
    sizes: np.ndarray  # the same in units that can be compared
    tasks: np.ndarray  # rows of the tasks kept
    left_out: list[str]  # sentences about what did not fit


def pack(content: ReportContent) -> Packed:
    """Choose what to show and pack it."""
    left_out: list[str] = []
    coef, sizes = in_scales(content.penalised_coef, content.row_scales), comparable(content, content.penalised_coef)
    n_tasks, n_features = coef.shape
    tasks = _kept_tasks(sizes, content.row_noun, left_out)
    strength = row_norms(sizes)
    n_selected = int(np.count_nonzero(strength))

    columns, along = _strengths_along_path(content, strength)
    ever = len(columns)
    position = np.lexsort((columns, -along.max(axis=0, initial=0.0), -strength[columns]))
    room = min(MAX_FEATURES, MAX_STRENGTHS // len(along))
    kept_selected = min(n_selected, room, MAX_COEFFICIENTS // max(1, len(tasks)))
    kept = kept_selected if kept_selected < n_selected else min(ever, room)
    if kept_selected < n_selected:
        left_out.append(
            f"Of the {n_selected:,} selected features the {kept_selected:,} strongest are in this file; all are in "
            "the model."
        )
    elif kept < ever:
        left_out.append(
            f"Of the {ever - n_selected:,} features that are selected only elsewhere on the path, the "
            f"{kept - n_selected:,} strongest are in this file."
        )
    order, along = columns[position[:kept]], along[:, position[:kept]]

    chosen, stability = dense_rows(coef, order[:kept_selected], tasks), stability_of(content)
    data: dict[str, Any] = {
        "tasks": shorten(content.tasks[tasks]),
        "features": shorten(content.features[order]),
        "absent": _absent(content, order, tasks),
        "rowNoun": content.row_noun,
        "selects": content.selects,
        "nFeatures": n_features - len(content.covariates),
        "nColumns": n_features,
        "covariates": _covariate_rows(content, tasks),
        "nTasks": n_tasks,
        "columnScales": _column_scales(content, order, tasks),
        "rowScales": None if content.row_scales is None else np.asarray(content.row_scales)[tasks].tolist(),
        "nSelected": n_selected,
        "nKept": kept_selected,
        "quality": [
            {
                "measure": capital(quality.measure),
                "values": numbers(np.asarray(quality.values)[tasks]),
                "rows": numbers(np.asarray(quality.rows)[tasks]),
                "errors": None if quality.errors is None else numbers(np.asarray(quality.errors)[tasks]),
                "null": None if quality.null is None else numbers(np.asarray(quality.null)[tasks]),
                "loss": quality.loss,
                "unseen": quality.unseen,
            }
            for quality in content.quality
        ],
        "headline": content.shown,
        "intercept": numbers(np.asarray(content.intercept, dtype=float)[tasks]),
        "tolerance": number(content.certificate.get("tol")),
        "stable": None if stability is None else numbers(stability.probabilities[order]),
        "proven": proven_marks(content, order),
        "needs": need_data(content, order),
        "needsCarried": content.needs_carried,
        "trust": None if content.trust is None else trust_data(content.trust, content.features),
        "stream": None if content.stream is None else content.stream.data(shorten(content.features.tolist())),
        "path": None,
        "coefficients": None,
        "pathCoefficients": None,
        "strengths": _packed_rows(along.T),
        "risk": None if content.risk is None else risk_data(content.risk),
        "genome": None if content.genome is None else content.genome.data(content.features[order]),
    }
    every = None
    if content.alphas is not None and len(content.alphas) > 1:
        data["path"] = _path_data(content)
        every = _path_coefficients(content, along, order, tasks, left_out)
    if every is not None:
        data["pathCoefficients"] = every
    else:
        data["coefficients"] = _packed_rows(chosen)
    shown = chosen if content.column_scales is None else dense_rows(sizes, order[:kept_selected], tasks)
    return Packed(data, order, strength[order], chosen, shown, tasks, left_out)


def _absent(content: ReportContent, features: np.ndarray, tasks: np.ndarray) -> list[list[int]] | None:
    """For each feature the places of tasks in which it was not measured."""
    if content.present is None:
        return None
    return [np.flatnonzero(~content.present[tasks, j]).tolist() for j in features.tolist()]


def proven_marks(content: ReportContent, features: np.ndarray) -> list[int] | None:
    """1: not zero in any solution, 2: one of several is not, -1: zero in every solution, 0: not decided."""
    if content.proven_zero is None or content.proven_nonzero is None:
        return None
    marks = content.proven_nonzero[features].astype(int) - content.proven_zero[features].astype(int)
    several = np.concatenate([np.empty(0, dtype=np.int64), *(own for own, _ in content.needs if len(own) > 1)])
    marks[(marks == 0) & np.isin(features, several)] = 2
    return [int(mark) for mark in marks]


def in_scales(coef: Any, scales: np.ndarray | None) -> scipy.sparse.csr_array:
    """Coefficients divided by the scale of their row, where rows have one."""
    if scales is None:
        return scipy.sparse.csr_array(coef)
    return scipy.sparse.csr_array(coef / np.asarray(scales, dtype=np.float64)[:, None])


def comparable(content: ReportContent, coef: Any) -> scipy.sparse.csr_array:
    """Coefficients in units that can be compared between rows, and between features where the fit has standardised."""
    scaled = in_scales(coef, content.row_scales)
    return scaled if content.column_scales is None else scipy.sparse.csr_array(scaled.multiply(content.column_scales))


def _column_scales(content: ReportContent, features: np.ndarray, tasks: np.ndarray) -> dict[str, str] | None:
    """What coefficients of features are multiplied by to be compared: in each task, or where that is too much, on
    average."""
    if content.column_scales is None:
        return None
    rows = dense_rows(content.column_scales, features, tasks)
    if rows.size > MAX_SCALES:
        rows = np.sqrt(np.mean(np.square(rows), axis=1, keepdims=True))
    return _packed_rows(rows)


def row_norms(coef: scipy.sparse.csr_array) -> np.ndarray:
    """Euclidean norm over the tasks of each feature's coefficients, of shape (d,)."""
    squares = np.bincount(coef.indices, weights=coef.data.astype(np.float64) ** 2, minlength=coef.shape[1])
    return np.sqrt(squares)


def dense_rows(coef: scipy.sparse.csr_array, features: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """Coefficients of some features and tasks, of shape (features, tasks)."""
    part = coef if len(tasks) == coef.shape[0] else coef[tasks]
    return np.ascontiguousarray(part[:, features].toarray().T, dtype=np.float64)


def shorten(names: Sequence[Any]) -> list[str]:
    """Names as text, long ones cut."""
    texts = [str(name) for name in names]
    return [text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…" for text in texts]


def _covariate_rows(content: ReportContent, tasks: np.ndarray) -> list[list[Any]]:
    """Column and coefficients of each covariate: what the page compares with the certificate beside what it shows."""
    rows = dense_rows(scipy.sparse.csr_array(content.coef), content.covariates, tasks)
    return [[int(j), numbers(row)] for j, row in zip(content.covariates, rows, strict=True)]


def _kept_tasks(coef: scipy.sparse.csr_array, noun: str, left_out: list[str]) -> np.ndarray:
    n_tasks = coef.shape[0]
    if n_tasks <= MAX_TASKS:
        return np.arange(n_tasks)
    squares = np.asarray(coef.power(2).sum(axis=1)).ravel()
    left_out.append(
        f"Of the {n_tasks:,} {plural(noun)} the {MAX_TASKS:,} with the largest coefficients are in this "
        "file; strengths count all."
    )
    return np.sort(np.argsort(-squares, kind="stable")[:MAX_TASKS])


def _strengths_along_path(content: ReportContent, strength: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the features selected anywhere, and their strengths at every value, (K, columns); K = 1: no path."""
    if content.alphas is None or len(content.alphas) <= 1:
        columns = np.flatnonzero(strength)
        return columns, strength[None, columns]
    scaled = [comparable(content, coef) for coef in content.path_coefs]
    path = [row_norms(without_columns(coef, content.covariates)) for coef in scaled]
    columns = np.flatnonzero(np.logical_or.reduce([norms > 0 for norms in path]) | (strength > 0))
    return columns, np.array([norms[columns] for norms in path])


def _packed_rows(rows: np.ndarray) -> dict[str, str]:
    """Rows as 16-bit integers in units of their own largest entry / 32,767; only exact zeros become 0."""
    scale = np.abs(rows).max(axis=1, initial=0.0) / LARGEST
    return {"scale": _encoded(scale.astype("<f4")), "values": _encoded(_in_units(rows, scale))}


def _in_units(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    whole = np.rint(np.divide(rows, scale[:, None], out=np.zeros_like(rows), where=scale[:, None] > 0))
    return np.where((whole == 0) & (rows != 0), np.sign(rows), whole).astype("<i2")


def _encoded(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def trust_data(trust: Trust, features: np.ndarray) -> dict[str, Any]:
    """Pictures of the findings: the null distribution, how features become stable, and effects."""
    found: dict[str, Any] = {"permutation": None, "stability": None, "intervals": None}
    if trust.intervals is not None:
        found["intervals"] = interval_data(trust.intervals)
    if trust.permutation is not None:
        permutation = trust.permutation
        found["permutation"] = {"statistic": number(permutation.statistic), "null": numbers(permutation.null)}
    if trust.stability is not None:
        stability = trust.stability
        shares = np.nan_to_num(stability.probabilities)
        order = np.argsort(-shares[stability.path_features], kind="stable")[:MAX_CURVES]
        shown = stability.path_features[order]
        ranked = np.argsort(-shares, kind="stable")
        listed = ranked[: max(LISTED, stability.n_stable)][:MAX_LISTED]
        listed = listed[(shares[listed] > 0.0) | stability.stable[listed]]
        found["stability"] = {
            "threshold": number(stability.threshold),
            "alphas": numbers(stability.alphas),
            "names": shorten(features[shown]),
            "stable": [bool(mark) for mark in stability.stable[shown]],
            "curves": [numbers(stability.path[:, j]) for j in order],
            "list": [
                {"name": name, "share": number(shares[j]), "stable": bool(stability.stable[j])}
                for name, j in zip(shorten(features[listed]), listed.tolist(), strict=True)
            ],
        }
    return found


def _path_data(content: ReportContent) -> dict[str, Any]:
    assert content.alphas is not None
    n_values = len(content.alphas)
    counts = content.n_selected
    if counts is None:
        counts = np.array([count_selected(coef, content.covariates) for coef in content.path_coefs])
    path: dict[str, Any] = {
        "alphas": numbers(content.alphas),
        "chosen": content.chosen % n_values,
        "nSelected": [int(count) for count in counts],
        "rejection": None if content.rejection_ratios is None else numbers(content.rejection_ratios),
        "gaps": None if content.relative_gaps is None else numbers(content.relative_gaps),
        "cv": None,
    }
    if content.cv_scores is not None:
        scores = np.asarray(content.cv_scores, dtype=np.float64)
        folds = scores.shape[1]
        spread = scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(n_values)
        path["cv"] = {
            "measure": capital(content.cv_measure),
            "folds": folds,
            "mean": numbers(scores.mean(axis=1)),
            "error": numbers(spread),
        }
    return path


def _path_coefficients(
    content: ReportContent,
    strengths: np.ndarray,
    order: np.ndarray,
    tasks: np.ndarray,
    left_out: list[str],
) -> dict[str, str] | None:
    """All coefficients along the path where they fit: for each value, the rows of its features in order. One scale per
    feature, its largest coefficient anywhere on the path."""
    total = int(np.count_nonzero(strengths)) * len(tasks)
    if total > MAX_PATH_COEFFICIENTS:
        left_out.append(
            f"The coefficients of each {content.row_noun} are in this file for the chosen model only (those of the "
            f"whole path are {total:,} numbers); along the path it holds the strength of every feature."
        )
        return None
    scale = np.zeros(len(order))
    parts = []
    for k, matrix in enumerate(content.path_coefs):
        present = np.flatnonzero(strengths[k])
        rows = dense_rows(in_scales(matrix, content.row_scales), order[present], tasks)
        scale[present] = np.maximum(scale[present], np.abs(rows).max(axis=1, initial=0.0))
        parts.append((present, rows))
    scale /= LARGEST
    blocks = [_in_units(rows, scale[present]).ravel() for present, rows in parts]
    return {"scale": _encoded(scale.astype("<f4")), "values": _encoded(np.concatenate(blocks))}
