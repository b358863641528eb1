"""``tasksieve fit`` and ``tasksieve path``: from a table to a model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..fitted.restore import set_state
from ..problem_file import save_problem
from ..report.model_content import compared_values
from ..runs.methods import write_methods
from ..runs.results import write_path
from .config import read_grid
from .exit_codes import NOT_CONVERGED, OK, UsageError, say
from .findings import check_findings, find
from .findings import summary as findings_summary
from .options import Asked
from .progress import working
from .proof_file import write_proof
from .results import Fitted, summary, write_results
from .run import Job, carry_out
from .trust import findings_asked
from .variants import write_variants


def run_fit(asked: Asked) -> int:
    """The body of both commands."""
    return carry_out(asked, solve)


def solve(job: Job) -> int:
    """Fit, and write everything about the fit."""
    if job.call.save_problem:
        if job.source.not_saved:
            raise UsageError(f"--save-problem: {job.source.not_saved}")
        arguments = job.problem.row_arguments(groups=False)
        save_problem(job.call.save_problem, job.estimator, job.problem.X, job.problem.y, **arguments)
    check_findings(job)
    with job.working_on("fit") as said:
        fitted = fit_estimator(job)
    if fitted.path is not None and fitted.path.interrupted:
        return keep_interrupted(job, fitted.path)
    if fitted.path is None:
        fitted.converged = not any(isinstance(warning, ConvergenceWarning) for warning in said)
    known: dict[str, Any] = {}
    if fitted.cv is not None:
        known = {"cv_measure": fitted.cv.cv_measure, "cv_folds": fitted.cv.cv_folds_}
        known["cv_compared"] = compared_values(fitted.cv)
    job.tell_data(**known)
    with working("writing results", job.call.quiet):
        write_results(job, fitted)
        write_variants(job, fitted, None)
    with working("writing the certificate", job.call.quiet):
        write_proof(job, fitted)
    if findings_asked(job.config):
        code = find_beside(job, fitted)
        if code is not None:
            return code
    with working("writing results", job.call.quiet):
        write_methods(job.folder)
    code = OK if fitted.converged else NOT_CONVERGED
    return job.end(lambda: [*summary(job, fitted), *findings_summary(job.folder)], code)


def find_beside(job: Job, fitted: Fitted) -> int | None:
    """Findings about a model that is written already; the code to leave with where the user has stopped them."""
    try:
        found = find(job, fitted.model)
    except Exception:
        say(
            f"tasksieve: the model is in {job.folder.path}{os.sep}; --resume tries again what comes now, and without "
            "--stability, --intervals and --compare ends the run with the model alone"
        )
        raise
    if isinstance(found, int):
        return found
    with working("writing results", job.call.quiet):
        job.tell_data()
        if found.stability is not None:
            write_variants(job, fitted, found.stability.probabilities)
    return None


def fit_estimator(job: Job) -> Fitted:
    """What the estimator finds in the data."""
    model = job.estimator
    if job.config["command"] == "path":
        path = job.source.path(model, read_grid(job.config))
        last = path.model(-1) if len(path) else None
        return Fitted(last, path, len(path) - 1, converged=bool(path.converged.all()))
    job.source.fit(model)
    if job.config.get("cv"):
        path, k = model.path_, int(np.flatnonzero(model.path_.alphas == model.alpha_)[0])
        named = ("cv_quality", "cv_quality_by_task")
        chosen = set_state(path.model(k), **{n: getattr(model, f"{n}_") for n in named if hasattr(model, f"{n}_")})
        if hasattr(model, "baseline_hazard_"):  # of the rows, which a value of the path no longer has
            set_state(chosen, baseline_hazard=model.baseline_hazard_)
        return Fitted(chosen, path, k, model, bool(path.converged[k]))
    if job.kind.has_path and isinstance(model.alpha, str):  # a word for a number: keep the number
        model.set_params(alpha=float(model.alpha_))
    return Fitted(model)


def keep_interrupted(job: Job, path: Any) -> int:
    """A path that was stopped: the values solved so far are written."""
    if len(path):
        write_path(job.folder, path)
    return job.interrupted(
        f"the {len(path)} values solved so far are in {job.folder / 'path.csv'}, --resume solves the whole path"
    )
