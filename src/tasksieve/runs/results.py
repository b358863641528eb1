"""What a fit leaves in its run folder, and how it is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ..fitted.risk_groups import RiskGroups
from ..path.status import Status, statuses_of
from ..report.content import ExtraTable, FitQuality
from ..report.members import member_tables
from ..report.rows import multinomial
from ..report.survival import as_read, as_written
from ..tables import TableError, read_arrays, read_table, write_arrays, write_table
from .arrays import pack_rows, pack_thresholds, require, unpack_rows, unpack_thresholds
from .folder import RISK, TABLES, RunError, RunFolder

PATH_ARRAYS = (
    "alphas", "objectives", "dual_gaps", "relative_gaps", "n_selected", "rejection_ratios", "seconds", "n_iter",
    "converged",
)  # fmt: skip
CV_SCORES = "cv_scores.csv"  # of each value of the path, fold by fold
NULL = "null_value"  # the column of the null model beside a measure
PAIRS = "pairs"  # that a concordance is made of
# ``quality.csv`` keeps the words of version 0.2 in the name of its column: programs read it
TRAINING_ROWS, COLUMN_WORDS = "the training rows", "the rows learnt from"


# --- tables ------------------------------------------------------------------------------------------------------


def write_member_tables(
    folder: RunFolder, model: Any, names: Sequence[str], tasks: Sequence[str], more: Sequence[ExtraTable] = ()
) -> None:
    """Tables that a loss or a penalty adds, and more: written now, since a saved model knows less."""
    write_tables(folder, [*([] if multinomial(model) else member_tables(model, names, tasks)), *more])


def write_tables(folder: RunFolder, tables: Sequence[ExtraTable]) -> None:
    """``tables.json``, where there are any: of a report, beside those of every model."""
    if tables:
        folder.write_json(TABLES, {"tables": [asdict(table) for table in tables]})


def read_member_tables(folder: RunFolder) -> list[ExtraTable]:
    """Those of a run, if it has any."""
    if not (folder / TABLES).is_file():
        return []
    try:
        return [_member_table(table) for table in folder.read_json(TABLES)["tables"]]
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / TABLES} is not readable: {error}") from None


def _member_table(table: dict[str, Any]) -> ExtraTable:
    inside = table["inside"]
    if inside is not None:
        inside = [[(str(name), str(value)) for name, value in row] for row in inside]
    columns, rows = [str(name) for name in table["columns"]], [[str(cell) for cell in row] for row in table["rows"]]
    return ExtraTable(str(table["title"]), str(table["note"]), columns, rows, inside)


def write_risk_groups(folder: RunFolder, found: RiskGroups | None) -> None:
    """``risk_groups.json``, if there are any."""
    if found is not None:
        folder.write_json(RISK, as_written(found))


def read_risk_groups(folder: RunFolder) -> RiskGroups | None:
    """Those of a run, if it has any."""
    if not (folder / RISK).is_file():
        return None
    try:
        return as_read(folder.read_json(RISK))
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / RISK} is not readable: {error}") from None


def write_coefficients(
    folder: RunFolder,
    coef: Any,
    intercept: np.ndarray,
    labels: Sequence[str],
    names: Sequence[str],
    covariates: Sequence[int] | np.ndarray = (),
) -> None:
    """All non-zero coefficients, one per line: ``coefficients.csv`` and ``.parquet``; and ``intercepts.csv``. Where
    there are covariates a last column says of each whether it is one."""
    entries = scipy.sparse.coo_array(coef)
    order = np.lexsort((entries.col, entries.row))
    tasks = [labels[t] for t in entries.row[order].tolist()]
    features = [names[j] for j in entries.col[order].tolist()]
    columns: dict[str, Any] = {"task": tasks, "feature": features}
    columns["coefficient"] = entries.data[order].astype(np.float64)
    if len(covariates):
        columns["covariate"] = ["yes" if mark else "no" for mark in np.isin(entries.col[order], covariates).tolist()]
    for ending in ("csv", "parquet"):
        write_table(folder / f"coefficients.{ending}", columns)
    write_table(folder / "intercepts.csv", {"task": list(labels), "intercept": np.ravel(intercept)})


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
    status: np.ndarray
    null_objective: float
    coefs: list[scipy.sparse.csr_array]
    intercepts: np.ndarray
    flat_thresholds: np.ndarray | None = None  # as `pack_thresholds` has them, a row for each value
    threshold_counts: np.ndarray | None = None

    def thresholds(self, k: int, classes: Any) -> Any:
        """Between the ordered classes of a model, at value k; None where it has none."""
        if self.flat_thresholds is None or self.threshold_counts is None:
            return None
        return unpack_thresholds(self.flat_thresholds[k], self.threshold_counts, classes)


def write_path(folder: RunFolder, path: Any) -> None:
    """``path.npz`` (everything) and ``path.csv`` (one line per value)."""
    coefs = scipy.sparse.vstack([path.coef(k) for k in range(len(path))], format="csr")
    arrays = {name: np.asarray(getattr(path, name)) for name in PATH_ARRAYS}
    arrays["null_objective"] = np.array(float(path.null_objective))
    arrays.update(pack_rows(coefs))
    arrays["coef_shape"] = np.array(path.coef(0).shape)
    arrays["intercepts"] = np.stack([path.intercept(k) for k in range(len(path))])
    arrays["status"] = np.asarray(path.status)
    if hasattr(path.model(0), "thresholds_"):
        packed = [pack_thresholds(path.model(k).thresholds_) for k in range(len(path))]
        arrays["thresholds"], arrays["threshold_counts"] = np.stack([own for own, _ in packed]), packed[0][1]
    write_table(folder / "path.csv", {name: arrays[name] for name in (*PATH_ARRAYS, "status")})
    write_arrays(folder / "path.npz", arrays)


def read_path(folder: RunFolder) -> SavedPath:
    try:
        arrays = read_arrays(folder / "path.npz", stored=True)
        n_tasks, n_features = (int(n) for n in arrays["coef_shape"])
        n_values = len(arrays["alphas"])
        # runs of version 0.2 have no status
        values = {"status": statuses_of(arrays["converged"]), **arrays}
        require(all(values[name].shape == (n_values,) for name in (*PATH_ARRAYS, "status")), "lengths")
        require(values["intercepts"].shape == (n_values, n_tasks), "intercepts")
        stacked, flat = unpack_rows(arrays, (n_values * n_tasks, n_features)), arrays.get("thresholds")
        require(flat is None or (flat.ndim == 2 and len(flat) == n_values), "thresholds")
        return SavedPath(
            **{name: values[name] for name in (*PATH_ARRAYS, "intercepts")},
            status=np.array([str(Status(word)) for word in values["status"].tolist()], dtype=str),
            null_objective=float(values["null_objective"]),
            coefs=[stacked[k * n_tasks : (k + 1) * n_tasks] for k in range(n_values)],
            flat_thresholds=flat,
            threshold_counts=None if flat is None else arrays["threshold_counts"],
        )
    except TableError as error:
        raise RunError(str(error)) from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise RunError(f"{folder / 'path.npz'} holds no path: {why}") from None


# --- scores, quality, certificate --------------------------------------------------------------------------------


def write_scores(folder: RunFolder, alphas: np.ndarray, scores: np.ndarray) -> None:
    folds = {f"fold {f}": own for f, own in enumerate(scores.T, start=1)}
    write_table(folder / CV_SCORES, {"alpha": alphas, **folds})


def write_quality(folder: RunFolder, quality: FitQuality, tasks: Sequence[str]) -> None:
    measure = quality.measure.replace(TRAINING_ROWS, COLUMN_WORDS)
    columns = {"task": list(tasks), "rows": quality.rows, measure: quality.values}
    if quality.null is not None:
        columns[NULL] = quality.null
    if quality.pairs is not None:
        columns[PAIRS] = quality.pairs
    write_table(folder / "quality.csv", columns)


def read_columns(folder: RunFolder, name: str) -> dict[str, np.ndarray]:
    """The numbers of a CSV file of a run, but for its first column."""
    try:
        table = read_table(folder / name, "csv")
    except TableError as error:
        raise RunError(str(error)) from None
    columns = dict(list(table.columns.items())[1:])
    words = [column for column, content in columns.items() if content.kind != "number"]
    if words or not columns:
        raise RunError(f"{folder / name} is not readable: numbers are missing {words}")
    return {column: content.values for column, content in columns.items()}
