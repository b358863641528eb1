"""What a fit has found: written into its run folder, and summarised in a few lines."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..fitted.choosing import two_rules
from ..fitted.covariates import covariates_of
from ..fitted.measures import kind_of_targets
from ..fitted.path import fills_along
from ..fitted.quality import HeldOutQuality
from ..fitted.restore import set_state
from ..fitted.risk_groups import risk_groups
from ..linear.base import PathEstimator
from ..report.model_content import compared_values
from ..report.probabilities import held_out_calibration, named_calibration, probability_table
from ..report.rows import coefficient_rows, row_labels, row_noun, task_names
from ..report.standardised import by_row, used_columns
from ..report.unseen import beside_null, out_of_fold, unseen_quality
from ..report.words import count, few, plural
from ..runs import ModelKind, SavedModel, save_model
from ..runs.content import stability_command
from ..runs.findings import read_comparison
from ..runs.folder import CALIBRATION, CERTIFICATE, QUALITY_BY_TASK
from ..runs.kept_folds import write_folds
from ..runs.out_of_fold import quality_columns, quality_labels, write_out_of_fold
from ..runs.results import (
    write_coefficients,
    write_member_tables,
    write_path,
    write_quality,
    write_risk_groups,
    write_scores,
)
from ..tables import write_table
from .files import PART, file_tasks, name_tasks, several_sheets, task_column
from .options import flag
from .outcomes import has_tasks, labels_by_task, survival_of
from .run import Job
from .trust import asks_stability


@dataclass
class Fitted:
    """What an estimator has found, in the terms of a run folder."""

    model: Any  # of one value: the estimator to predict with
    path: Any = None
    chosen: int = -1
    cv: Any = None  # the cross-validated estimator that has chosen it
    converged: bool = True


def write_results(job: Job, fitted: Fitted) -> None:
    folder, config, source, problem, model = job.folder, job.config, job.source, job.problem, fitted.model
    names = problem.encoding.feature_names
    labels = row_labels(model, problem.targets)
    covariates = covariates_of(model, len(names))
    write_coefficients(folder, *coefficient_rows(model), labels, names, covariates)
    write_features(job, model)
    if fitted.path is not None:
        write_path(folder, fitted.path)
    if fitted.cv is not None:
        write_scores(folder, fitted.path.alphas, fitted.cv.path_scores_)
        held_out = fitted.cv.cv_quality_
        named, unlike = quality_labels(held_out, problem.targets), job.kind.targets == "mixed"
        write_table(folder / "cv_quality.csv", quality_columns(held_out, named, defined=unlike))
        if hasattr(fitted.cv, "cv_quality_by_task_"):
            by_task = fitted.cv.cv_quality_by_task_
            write_table(folder / QUALITY_BY_TASK, quality_columns(by_task, quality_labels(by_task, problem.targets)))
        write_folds(folder, fitted.cv)
        if source.has_rows:
            write_out_of_fold(folder, fitted.cv, problem)
    empty = model.null_objective_
    folder.write_json(
        CERTIFICATE,
        {
            "objective": float(model.objective_),
            "dual_gap": float(model.dual_gap_),
            "relative_gap": float(model.dual_gap_ / empty) if empty > 0 else 0.0,
            "tol": float(model.tol),
            "null_objective": float(empty),
            "converged": bool(fitted.converged),
        },
    )
    # machines on a graph penalise their intercepts, too: they have no null model
    null = source.null_model(model) if isinstance(model, PathEstimator) else None
    quality = source.quality(model)
    if null is not None:
        quality = beside_null(quality, source.quality(null).values, covariates)
    write_quality(folder, quality, labels if len(labels) == len(quality.rows) else task_names(model, ()))
    curves = None
    if fitted.cv is not None and source.has_rows:
        curves = held_out_calibration(fitted.cv, problem.X, problem.y, **problem.row_arguments(groups=False))
    if curves is not None:
        known = dict(zip(model.tasks_.tolist(), task_names(model, problem.targets), strict=True))
        curves = named_calibration(curves, known)
        write_table(folder / CALIBRATION, curves.to_dict())
    tables = [] if curves is None else [probability_table(curves)]
    write_member_tables(folder, model, names, task_names(model, problem.targets), tables)
    if source.has_rows and kind_of_targets(model) in ("survival", "mixed"):
        ranking = model if fitted.cv is None else fitted.cv
        write_risk_groups(
            folder, risk_groups(ranking, problem.X, problem.y, **problem.row_arguments(groups=False))
        )
    facts = {"chosen": fitted.chosen, **basis_facts_of(config, job.kind, model, problem)}
    if fitted.path is not None and (fills := fills_along(fitted.path)) is not None:
        set_state(model, fills=fills)  # of all values: predict --alpha needs them
    how = (problem.encoding, problem.fill, problem.targets, task_column(config))
    scales = None
    if hasattr(model, "scale_"):
        along = [] if fitted.path is None else [fitted.path.coef(k) for k in range(len(fitted.path))]
        used = used_columns([coefficient_rows(model)[0], *along])
        scales = used, np.ascontiguousarray(model.scale_[:, used])
    save_model(folder, SavedModel(model, job.kind.name, *how, facts, null, scales))


def basis_facts_of(config: dict[str, Any], kind: ModelKind, model: Any, problem: Any) -> dict[str, Any]:
    """Collect what predictions depend on and the names of columns and files say, given what was asked and the table."""
    n_covariates = len(covariates_of(model, problem.n_features))
    facts: dict[str, Any] = {"choice": config["command"] == "fit"}
    facts |= {key: config.get(key) for key in ("id", "offset")}
    facts |= {"missing": config["missing"]} if problem.fill is not None else {}
    facts |= {"covariates": n_covariates} if n_covariates else {}
    facts |= outcome_facts(config, kind, model)
    if file_tasks(config):
        given = config.get("task_name", [])
        facts |= {"files": True, "task_name": given[0] if len(given) == 1 and PART in given[0] else None}
        facts |= {"lacking": problem.lacking, "sheets": several_sheets(config)}
        facts["file_tasks"] = given or None if several_sheets(config) else name_tasks(config["table"], given)
    if config.get("value_labels") is False:
        facts["value_labels"] = False
    return facts


def outcome_facts(config: dict[str, Any], kind: ModelKind, model: Any) -> dict[str, Any]:
    """Which columns the labels are in, where that is more than the targets say."""
    survival: dict[str, Any] = {**survival_of(config)}
    facts: dict[str, Any] = {}
    if kind.targets == "mixed" and has_tasks(config):
        where = labels_by_task(config)
        facts["label"] = where.column
        losses = zip(model.tasks_.tolist(), model.losses_, strict=True)
        survival = {str(label): where.survival_of(str(label)) for label, loss in losses if loss.labels == "survival"}
    if survival:
        facts["survival"] = {name: asdict(own) for name, own in survival.items()}
    return facts


def unseen_lines(job: Job, quality: HeldOutQuality) -> list[str]:
    """How well rows are predicted that the model had not seen, nested numbers first, beside the null model."""
    parts = unseen_quality(quality, read_comparison(job.folder), quality_labels(quality, job.problem.targets))
    lines = []
    said: set[str] = set()
    for part in parts:
        once = replace(part, caveat="") if part.caveat in said else part
        lines.append(f"{part.measure.replace(' out of fold', ' on rows held out')}: {once.figures()}")
        said.add(part.caveat)
    known = [part.null_words for part in parts if part.null_words]
    skipped = [quality.left_out_words] if quality.left_out_words else []
    counted = [quality.pairs_words] if quality.pairs_words else []
    return [*lines, *counted, *known[:1], *skipped]


SCALES = {
    True: "columns standardised while fitting (not with --as-is); coefficients are in the units of the table",
    False: "columns as they are, not standardised",
}


def comparable_strengths(model: Any) -> np.ndarray:
    """Lengths of the features' coefficients over all tasks, where the fit has standardised per standard deviation."""
    coef, _ = coefficient_rows(model)
    return np.linalg.norm(coef * by_row(model, model.scale_) if hasattr(model, "scale_") else coef, axis=0)


def write_features(job: Job, model: Any) -> None:
    """``features.csv``: features in use, strongest first; the name of the column says in which units."""
    (coef, _), strength = coefficient_rows(model), comparable_strengths(model)
    used = np.setdiff1d(np.flatnonzero(strength), covariates_of(model, len(strength)))
    order = used[np.argsort(-strength[used], kind="stable")]
    names, unit = job.problem.encoding.feature_names, "standard_deviation" if hasattr(model, "scale_") else "unit"
    columns: dict[str, Any] = {"feature": [names[j] for j in order.tolist()], f"strength_per_{unit}": strength[order]}
    noun = plural(row_noun(model, job.problem.targets))
    write_table(job.folder / "features.csv", {**columns, f"{noun}_in_use": np.count_nonzero(coef[:, order], axis=0)})


def set_lines(job: Job, fitted: Fitted) -> list[str]:
    """Which features one standard error leaves, how many the best score keeps, what says which are stable, and which of
    them predict."""
    model, names = fitted.model, job.problem.encoding.feature_names
    if not hasattr(model, "get_support") or job.config["command"] != "fit":
        return []
    asks = stability_command(job.config)
    stable = [f"stable: not asked; {asks} says which would be found again"] if asks else []
    stable = [] if asks_stability(job.config) else stable
    if fitted.cv is None:
        return [f"no scores: {job.kind.strength} was given, not chosen by cross-validation", *stable]
    best, careful = two_rules(fitted.cv.path_scores_, fitted.cv.cv_measure)
    sets = []
    for k in (best, careful):
        own = set_state(copy(model), coef=fitted.path.model(k).coef_)
        strength = comparable_strengths(own)
        used = np.setdiff1d(np.flatnonzero(strength), covariates_of(model, len(strength)))
        sets.append([names[j] for j in used[np.argsort(-strength[used], kind="stable")]])
    n_best, n_careful = (count(len(used), "feature") for used in sets)
    named = f" ({few(sets[1], 10)})" if sets[1] else ""
    keeps = "; the best score keeps noise" if best == careful or len(sets[0]) > len(sets[1]) else ""
    if best == careful:
        lines = [f"at the best score, and at one standard error: {n_best}{named}; predictions use them{keeps}"]
    elif fitted.chosen == careful:
        lines = [f"at one standard error: {n_careful}{named}; predictions use them"]
        lines += [f"at the best score: {n_best}{keeps}"]
    else:
        lines = [
            f"at one standard error: {n_careful}{named}; {flag('selection_rule')} 1se predicts with them",
            f"at the best score: {n_best}; predictions use them{keeps}",
        ]
    return [*lines, *stable]


def summary(job: Job, fitted: Fitted) -> list[str]:
    """A few lines for stdout."""
    model, problem, source = fitted.model, job.problem, job.source
    strength = comparable_strengths(model)
    covariates = covariates_of(model, len(strength))
    chosen = np.setdiff1d(np.flatnonzero(strength), covariates)
    names = problem.encoding.feature_names
    selects = hasattr(model, "get_support")
    used = f"{count(len(chosen), 'feature')} selected" if selects else "every feature has a weight"
    values = f"{job.kind.strength} = {getattr(model, job.kind.strength):.6g}"
    compared = None if fitted.cv is None else compared_values(fitted.cv)
    if compared is not None:
        among = ", ".join(f"{value:.4g}" for value in compared["values"])
        values += f", {flag(compared['name'])} {compared['chosen']:.4g} (of {among})"
    lines = [job.data_line(model, job.seconds["fit"], len(covariates)), *set_lines(job, fitted), f"{values}: {used}"]
    if fitted.path is not None and fitted.cv is None:
        lines[-1] = (
            f"{count(len(fitted.path), 'value')} of alpha, "
            f"up to {count(int(fitted.path.n_selected.max()), 'feature')} selected"
        )
    if hasattr(model, "standardize"):
        lines.append(SCALES[model.standardize])
    if len(chosen):
        strongest = chosen[np.argsort(-strength[chosen], kind="stable")]
        lines.append(f"strongest: {few((names[j] for j in strongest), 10)}")
    if len(covariates):
        lines.append(f"covariates, not penalised: {few((names[j] for j in covariates), 10)}")
    if fitted.cv is not None:
        lines += unseen_lines(job, fitted.cv.cv_quality_)
        if hasattr(fitted.cv, "cv_quality_by_task_"):
            whole = out_of_fold(fitted.cv.cv_quality_by_task_)[0]
            lines.append(f"{whole.measure} of the tasks that the patterns are parts of: {whole.figures()}")
    null = model.null_objective_
    relative = f" ({model.dual_gap_ / null:.1e} of the empty model's)" if null > 0 else ": the empty model explains y"
    lines.append(
        f"objective {model.objective_:.6g}, at most {model.dual_gap_:.1e} above the optimum{relative}: no other "
        "coefficients of this kind have a smaller penalised loss by more than that"
    )
    if not fitted.converged:
        lines.append(f"NOT CONVERGED: the gap above is true, but larger than --tol asks for{source.advice}")
    return lines
