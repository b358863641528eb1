"""``tasksieve fit`` and ``tasksieve path``: from a table to a model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..fitted.restore import set_state
from ..problem_file import save_problem
from ..runs import ModelKind
from ..runs.methods import write_methods
from ..runs.results import write_path
from .config import read_grid
from .exit_codes import NOT_CONVERGED, OK, UsageError, say
from .findings import check_findings, find, write_findings
from .findings import summary as findings_summary
from .progress import working
from .proof_file import write_proof
from .results import Fitted, summary, write_results
from .run import Job, carry_out
from .source import Source
from .trust import asks_comparison, asks_stability
from .variants import write_variants


def run_fit(command: str, tables: list[str], given: dict[str, Any]) -> int:
    """The body of both commands."""
    return carry_out(command, tables, given, solve)


def solve(job: Job) -> int:
    """Fit, and write everything about the fit."""
    if job.call.get("save_problem"):
        keep_problem(job, job.call["save_problem"])
    check_findings(job)
    with job.working_on("fit") as said:
        fitted = fit_estimator(job.config, job.kind, job.estimator, job.source)
    if fitted.path is not None and fitted.path.interrupted:
        return keep_interrupted(job, fitted.path)
    if fitted.path is None:
        fitted.converged = not any(isinstance(warning, ConvergenceWarning) for warning in said)
    known = {} if fitted.cv is None else {"cv_measure": fitted.cv.cv_measure, "cv_folds": fitted.cv.cv_folds_}
    job.tell_data(**known)
    with working("writing results", job.quiet):
        write_results(job.folder, job.config, job.kind, job.source, fitted)
        write_variants(job, fitted, None)
    with working("writing the certificate", job.quiet):
        write_proof(job, fitted)
    if asks_stability(job.config) or asks_comparison(job.config):
        code = find_beside(job, fitted)
        if code is not None:
            return code
    with working("writing results", job.quiet):
        write_methods(job.folder)

    def summary_lines() -> list[str]:
        own = summary(job.folder, job.kind, fitted, job.source, job.seconds["fit"])
        return [*own, *findings_summary(job.folder)]

    return job.end(summary_lines, OK if fitted.converged else NOT_CONVERGED)


def find_beside(job: Job, fitted: Fitted) -> int | None:
    """Findings about a model that is written already; the code to leave with where the user has stopped them."""
    try:
        found = find(job, fitted.model)
    except Exception:
        say(
            f"tasksieve: the model is in {job.folder.path}{os.sep}; --resume tries again what comes now, and without "
            "--stability and --compare ends the run with the model alone"
        )
        raise
    if isinstance(found, int):
        return found
    with working("writing results", job.quiet):
        job.tell_data()
        write_findings(job, found)
        if found.stability is not None:
            write_variants(job, fitted, found.stability.probabilities)
    return None


def keep_problem(job: Job, path: str) -> None:
    """The problem as one file."""
    if job.source.not_saved:
        raise UsageError(f"--save-problem: {job.source.not_saved}")
    save_problem(path, job.estimator, job.problem.X, job.problem.y, **job.problem.row_arguments(groups=False))


def fit_estimator(config: dict[str, Any], kind: ModelKind, model: Any, source: Source) -> Fitted:
    """What the estimator finds in the data."""
    if config["command"] == "path":
        path = source.path(model, read_grid(config))
        return Fitted(
            path.model(-1) if len(path) else None, path, len(path) - 1, converged=bool(path.converged.all())
        )
    source.fit(model)
    if config.get("cv"):
        path, k = model.path_, int(np.flatnonzero(model.path_.alphas == model.alpha_)[0])
        chosen = set_state(path.model(k), cv_quality=model.cv_quality_)
        return Fitted(chosen, path, k, model, bool(path.converged[k]))
    if kind.has_path and isinstance(model.alpha, str):  # a word for a number: keep the number
        model.set_params(alpha=float(model.alpha_))
    return Fitted(model)


def keep_interrupted(job: Job, path: Any) -> int:
    """A path that was stopped: the values solved so far are written."""
    if len(path):
        write_path(job.folder, path)
    return job.interrupted(
        f"the {len(path)} values solved so far are in {job.folder / 'path.csv'}, --resume solves the whole path"
    )
