"""``tasksieve transfer``: a new task from a run's model and a TABLE of its own rows, as a run folder."""

from __future__ import annotations

import os
import shlex
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..fitted.arguments import kernel_threads
from ..fitted.covariates import covariates_of
from ..fitted.restore import get_state, set_state
from ..linear.transfer import NewTask
from ..report.content import ExtraTable
from ..report.from_model import task_quality
from ..report.page import need_jinja
from ..report.rows import coefficient_rows, task_names
from ..report.words import count, few, quantity
from ..runs import RunError, RunFolder, SavedModel, save_model
from ..runs.folder import CERTIFICATE, CONFIG, DATA, TRANSFER, VERSIONS
from ..runs.registry import MODELS
from ..runs.results import write_coefficients, write_quality, write_tables
from ..tables.filling import FILLED
from ..tables.problem import TableProblem
from ..tables.row_columns import RowColumns, groups_column
from ..versions import versions
from .evaluate import read_rows
from .exit_codes import NOT_CONVERGED, OK, UsageError, say
from .files import tables_digest
from .new_rows import NewRows, read_table_rows
from .options import Asked
from .outcomes import is_mixed, saved_survival
from .predict import chosen_model
from .progress import Display, working
from .related import group_related
from .report import write_run_report
from .run import state_unproved, unproved_lines

# `NewTask.certificate` is about a model with what is known of the rows as offset, which the run does not keep.
NO_PROOF = "a new task's model is proved in Python alone, by NewTask.certificate"


def run_transfer(asked: Asked) -> int:
    """Fit the task, say how, and leave its model."""
    source, folder = RunFolder(asked.run), RunFolder(asked.out)
    if asked.report:
        need_jinja()
    saved = chosen_model(source, asked)
    refuse(saved, asked)
    folder.refuse_other_files()
    if folder.path.exists() and any(folder.path.iterdir()) and not asked.overwrite:
        raise RunError(f"{folder.path} exists: --overwrite starts anew")
    columns = RowColumns(
        asked.target or saved.targets, None, asked.weights, saved.said["offset"], groups_column(asked.row_groups)
    )
    roles = {"--target": columns.targets[0], "--weights": columns.weights, "--offset": columns.offset,
             "--row-groups": columns.groups}  # fmt: skip
    with working("reading", asked.quiet):
        needed = [(flag, name) for flag, name in roles.items() if name]
        asked.task = asked.task_name = None  # all rows are of one task
        asked.unseen = "error"
        new = read_table_rows(asked, saved, needed, all_tasks=True)
        problem = read_rows(saved, new, columns)
        if asked.row_groups is None:
            group_related({"cv": asked.cv}, problem)
        new.notes += problem.notes
    began = time.perf_counter()
    with working("fitting", asked.quiet), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        model, options = with_folds(saved, asked), problem.row_arguments()
        found = model.fit_new_task(problem.X, problem.y, name=asked.name, how=asked.how, **options)
    seconds = time.perf_counter() - began
    notes = list(dict.fromkeys(str(one.message) for one in told if issubclass(one.category, UserWarning)))
    with folder:
        folder.clear()
        write_run(folder, saved, new, problem, found, asked, [*new.notes, *notes], seconds)
        folder.finish()
        if asked.report:
            write_run_report(folder, Display(asked.quiet, folder))
    converged = bool(found.model.status_ == "converged")
    if not asked.quiet:
        for note in [*new.notes, *notes]:
            say(f"note: {note}")
        print("\n".join(summary(found, problem, saved.feature_names)), flush=True)
        print("\n".join([f"everything is in {folder.path}{os.sep}", *unproved_lines(NO_PROOF)]), flush=True)
    return OK if converged else NOT_CONVERGED


def refuse(saved: SavedModel, asked: Asked) -> None:
    """What `fit_new_task` cannot do with the model of a run."""
    kind = MODELS.get(saved.kind)
    if kind is None or not kind.has_path:
        raise UsageError(
            f"transfer: a model of {saved.kind!r} has no penalty whose weights could be those of a new task"
        )
    if is_mixed(saved) or saved_survival(saved):
        raise UsageError("transfer: is for numbers and for two classes")
    if len(saved.targets) > 1:
        raise UsageError(
            "transfer: the tasks of the run are targets of the same rows; from Python fit_new_task takes them"
        )
    if asked.target and len(asked.target) != 1:
        raise UsageError("--target: a new task has one column that is predicted")
    if saved.fill is not None and saved.fill.ndim == 2 and asked.missing in FILLED:
        raise UsageError(
            f"--missing {asked.missing}: the run has filled values with means of its own tasks; use drop"
        )


def with_folds(saved: SavedModel, asked: Asked) -> Any:
    """The model of the run, as one that chooses its strength by cross-validation: those can fit a new task."""
    plain = saved.estimator
    kind = MODELS[saved.kind].estimator(is_classifier(plain), cv=True)
    known = kind().get_params(deep=False)
    given = {name: value for name, value in plain.get_params(deep=False).items() if name in known}
    model = kind(**{**given, "cv": asked.cv, "random_state": asked.seed})
    set_state(model, **{name: value for name, value in get_state(plain).items() if name != "choice"})
    if saved.scales is not None:
        features, scales = saved.scales
        model.scale_ = np.ones(coefficient_rows(plain)[0].shape)
        model.scale_[:, features] = scales
    return model


def write_run(
    folder: RunFolder,
    saved: SavedModel,
    new: NewRows,
    problem: TableProblem,
    found: NewTask,
    asked: Asked,
    notes: list[str],
    seconds: float,
) -> None:
    """The new task's model, and how it came about."""
    model, names, target = alone(saved, found), saved.feature_names, problem.targets[0]
    folder.write_json(CONFIG, {"command": "transfer", "run": RunFolder(asked.run).path.name, "name": asked.name,
                               "how": asked.how, "cv": asked.cv, "seed": asked.seed})  # fmt: skip
    folder.write_json(VERSIONS, versions())
    counted = {"table_rows": problem.n_rows, "rows": problem.n_used, "features": len(names), "tasks": 1}
    words = shlex.join(["tasksieve", *sys.argv[1:]])
    folder.write_json(DATA, {"name": new.title, "sha256": tables_digest(new.files), "notes": notes, **counted,
                             "reproduce": words})  # fmt: skip
    empty = float(found.model.null_objective_)
    folder.write_json(
        CERTIFICATE,
        {
            "objective": float(found.model.objective_), "dual_gap": float(found.model.dual_gap_),
            "relative_gap": float(found.model.dual_gap_ / empty) if empty > 0 else 0.0, "tol": float(model.tol),
            "null_objective": empty, "converged": bool(found.model.status_ == "converged"),
        },
    )  # fmt: skip
    state_unproved(folder, NO_PROOF)
    folder.write_json(TRANSFER, facts_of(found))
    covariates = covariates_of(model, len(names))
    write_coefficients(folder, *coefficient_rows(model), [asked.name], names, covariates)
    write_tables(folder, [ways_table(found)])
    kept = ("id", "offset", "missing", "covariates", "value_labels")
    facts: dict[str, Any] = {"chosen": -1, **{key: saved.facts[key] for key in kept if key in saved.facts}}
    fill = saved.fill if saved.fill is not None and saved.fill.ndim == 1 else None
    save_model(folder, SavedModel(model, saved.kind, saved.encoding, fill, [target], None, facts))
    given = problem.row_arguments(groups=False)
    quality = task_quality(model, problem.X, problem.y, **given, where="the training rows")
    write_quality(folder, quality, task_names(model, ()))
    folder.write_json("timing.json", {"fit": seconds, "threads": kernel_threads()})


def alone(saved: SavedModel, found: NewTask) -> Any:
    """A model of the new task alone, with its own coefficients: it predicts rows that have no column of tasks."""
    plain, fit = saved.estimator, found.model
    params = {**plain.get_params(deep=False), "alpha": float(fit.alpha_)}
    for name in ("task_weights", "task_graph"):
        if name in params:
            params[name] = None
    model = type(plain)(**params)
    kept = ("n_features", "feature_names", "fitted_to_arrays", "classes", "fills")
    state = {name: value for name, value in get_state(plain).items() if name in kept}
    return set_state(
        model, **state, coef=found.coef_, intercept=found.intercept_, tasks=np.array([found.name], dtype=object),
        single=True, needs_offset=bool(saved.said["offset"]), objective=float(fit.objective_),
        dual_gap=float(fit.dual_gap_), null_objective=float(fit.null_objective_), n_iter=int(fit.n_iter_),
        status=fit.status_,
    )  # fmt: skip


def facts_of(found: NewTask) -> dict[str, Any]:
    """How the task was fitted, as JSON."""
    tried = [{"how": one["how"], "strength": plain_strength(one["strength"]), "loss": float(one["loss"])}
             for one in found.tried]  # fmt: skip
    return {
        "name": found.name, "how": found.how, "strength": plain_strength(found.strength), "reason": found.reason,
        "gain": float(found.gain), "gain_error": float(found.gain_error), "fell_back": bool(found.fell_back),
        "tried": tried,
    }  # fmt: skip


def plain_strength(value: Any) -> Any:
    return value if value is None or isinstance(value, float) else str(value)


def ways_table(found: NewTask) -> ExtraTable:
    """The ways that were tried, for the report."""
    rows = []
    for one in found.tried:
        strength = plain_strength(one["strength"])
        words = "–" if strength is None else f"{strength:g}" if isinstance(strength, float) else strength
        chosen = "yes" if (one["how"], strength) == (found.how, plain_strength(found.strength)) else "no"
        rows.append([one["how"], words, quantity(one["loss"]), f"{np.count_nonzero(one['coef']):,}", chosen])
    reason = found.reason[:1].upper() + found.reason[1:]
    note = (
        f"{reason}. alone: nothing of the old tasks. weights: features that these use cost less, the largest by the "
        "strength and 1; or those of the one that is named. offset: starts from 1 less the strength times their mean, "
        "other features cost more. distance: the penalty is of the distance to their mean or to one of them. Losses "
        "are those of rows held out by the folds that chose among the ways; gains are nested."
    )
    return ExtraTable(
        "How the new task was fitted", note, ["Way", "Strength", "Held-out loss", "Features", "Used"], rows
    )


def summary(found: NewTask, problem: TableProblem, names: list[str]) -> list[str]:
    """A few lines for people."""
    coef = found.coef_[0]
    used = np.flatnonzero(coef)
    strongest = used[np.argsort(-np.abs(coef[used]), kind="stable")]
    lines = [
        f"task {found.name}: {count(problem.n_used, 'row')}, {count(len(used), 'feature')} in use",
        found.reason,
    ]
    if len(used):
        lines.append(f"strongest: {few((names[j] for j in strongest), 10)}")
    fit = found.model
    return [*lines, f"objective {fit.objective_:.6g}, at most {fit.dual_gap_:.1e} above the optimum"]
