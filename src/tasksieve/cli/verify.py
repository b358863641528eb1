"""``tasksieve verify``: whether the data prove what a run claims."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import verify as verifier
from ..report.rows import coefficient_rows
from ..runs import RunError, RunFolder, load_model
from ..runs.folder import CERTIFICATE, CONFIG, PROOF, STREAM
from ..tables import TableError
from ..tables.frames import PACKED
from .cluster import is_store, read_store
from .config import check_config
from .data import read_problem, row_arguments
from .exits import OK, say
from .files import Tables, expand_tables
from .progress import working

NOT_PROVED, UNREADABLE = 1, 2


def run_verify(run: str, data: str | None, value: int | None, every: bool, exact: bool, quiet: bool) -> int:
    """Exit codes: 0 proved, 1 not proved, 2 could not be read."""
    try:
        return _verify(run, data, value, every, exact, quiet)
    except (verifier.Unreadable, TableError, OSError) as error:
        say(f"tasksieve: cannot be read: {error}")
        return UNREADABLE
    except (verifier.Mismatch, RunError) as error:
        print(f"not proved:\n{error}")
        return NOT_PROVED


def _verify(run: str, data: str | None, value: int | None, every: bool, exact: bool, quiet: bool) -> int:
    path = Path(run)
    folder = RunFolder(path) if path.is_dir() else None
    if folder is not None:
        if not (folder / PROOF).is_file():
            why = "online models have none" if (folder / STREAM).is_file() else "its log.txt says why"
            raise verifier.Unreadable(f"{path} has no {PROOF} ({why})")
        path = folder / PROOF
    cert = verifier.read_certificate(path)
    if value is None and not every:
        value = _chosen(cert)
    if folder is not None:
        folder.verify()
        _compare(folder, cert, value)
    config = {} if folder is None else folder.read_json(CONFIG)
    table = config.get("table") if data is None else expand_tables([data])
    if table is None:
        raise verifier.Unreadable(f"{run} is a certificate alone: name the file of data with --data")
    with working("reading", quiet):
        rows = _read(cert, table, config)
    with working("verifying", quiet):
        verdict = verifier.verify(
            cert, rows.pop("X"), rows.pop("y"), value=value, exact=exact,
            progress=None if quiet else _Lines(), **rows,
        )  # fmt: skip
    if not quiet or not verdict:
        print(verdict.words)
    return OK if verdict.proved else NOT_PROVED


def _chosen(cert: verifier.Certificate) -> int | None:
    about = cert.header.get("about")
    chosen = about.get("chosen") if isinstance(about, dict) else None
    if not isinstance(chosen, int) or isinstance(chosen, bool):
        return None
    return chosen if -cert.n_values <= chosen < cert.n_values else None


def _compare(folder: RunFolder, cert: verifier.Certificate, value: int | None) -> None:
    """Refuse a run whose model or numbers are not those of its certificate."""
    chosen = _chosen(cert)
    if chosen is None:
        return
    saved = load_model(folder)
    coef, intercept = coefficient_rows(saved.estimator)
    arrays, k = cert.arrays, chosen % cert.n_values
    coef, intercept = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef), np.ravel(intercept)
    same = coef.shape == (len(cert.outputs), cert.n_features)
    if same:
        order = _task_after_task(saved.estimator, len(coef))
        here = slice(*arrays["start"][k : k + 2])
        rows = np.zeros(coef.shape)
        rows[arrays["output"][here], arrays["feature"][here]] = arrays["coef"][here]
        same = np.array_equal(coef[order], rows) and np.array_equal(intercept[order], arrays["intercept"][k])
    if not same:
        raise RunError(f"the coefficients of {folder.path} are not those of its {PROOF}")
    told, proved, gap = folder.read_json(CERTIFICATE).get("objective"), arrays["objective"][k], arrays["gap"][k]
    if not isinstance(told, int | float) or not abs(told - proved) <= gap + 1e-9 * abs(told):
        raise RunError(f"{folder / CERTIFICATE} has objective {told}, {PROOF} has {proved}")


def _task_after_task(model: Any, n_rows: int) -> np.ndarray:
    """Places of the certificate's outputs among the rows of coefficients, which are class after class."""
    if isinstance(model.coef_, list) or np.ndim(model.coef_) == 2:
        return np.arange(n_rows)
    return np.arange(n_rows).reshape(model.coef_.shape[0], -1).T.ravel()


def _read(cert: verifier.Certificate, table: Tables, config: dict[str, Any]) -> dict[str, Any]:
    """X, y, task, ...: by the verifier's own reader where the certificate says how, else as the fit has read them."""
    if isinstance(table, list) or isinstance(config.get("table"), list):
        several = isinstance(config.get("table"), list)
        if not several or isinstance(table, str):
            wanted = "one file for each task: a folder, or a glob" if several else "one file"
            raise verifier.Unreadable(f"--data: the run was fitted to {wanted}")
        return _as_fitted({**config, "table": table})
    packed = Path(table).suffix.lower() in PACKED
    if cert.header.get("table") is not None and not packed:
        return verifier.read_table(cert, table)
    named = {"target": ["y"], "task": "task", "weights": "sample_weight", "offset": "offset"}
    plain = all(config.get(key) in (None, name) for key, name in named.items())
    if table.endswith(".npz") and plain:
        found = verifier.read_arrays(table)
        kept = {key for key, used in (("task", "task"), ("sample_weight", "weights"), ("offset", "offset"))
                if not config or config.get(used) is not None}  # fmt: skip
        if config.get("missing", "error") == "error" and found["X"].ndim == 2:
            return {name: values for name, values in found.items() if name in ("X", "y") or name in kept}
    if not config:
        raise verifier.Unreadable("the certificate does not say how a table is read: give the run, or an npz file")
    return _as_fitted({**config, "table": table, "format": config.get("format") if table == config["table"] else None})


def _as_fitted(config: dict[str, Any]) -> dict[str, Any]:
    kind, store = check_config(config), is_store(config)
    problem, _ = read_store(config, kind) if store else read_problem(kind, config)
    found = {name: values for name, values in row_arguments(problem).items() if name != "groups"}
    return {"X": np.asarray(problem.X.array[...]) if store else problem.X, "y": problem.y, **found}


class _Lines:
    """Tells stderr how far a long check is."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, words: str) -> None:
        if time.monotonic() - self._last > 5.0:
            self._last = time.monotonic()
            say(f"verifying: {words}")
