"""A run folder as the content of a report, whatever left it: a fit, a path, a stream, findings alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.covariates import covariates_of
from ..fitted.quality import concordance_words
from ..report.choice import used_by_rules
from ..report.content import ExtraTable, FitQuality, ReportContent, count_selected
from ..report.covariates import selection_facts
from ..report.methods import RULES
from ..report.model_content import (
    answer,
    compared_table,
    model_content,
    proof_words,
    show_path,
    standardised_fact,
)
from ..report.proof import carry
from ..report.rows import task_names
from ..report.standardised import scales_of
from ..report.survival import calibration_table, risk_table
from ..report.unseen import beside_null, unseen_quality
from ..report.words import count, few
from ..tables.row_columns import groups_column
from ..tables.stack import FILE_TASK
from ..verify import Unreadable
from .code import code_samples
from .findings import read_findings
from .folder import CERTIFICATE, CONFIG, DATA, PROOF, STREAM, UNPROVED, VARIANTS, RunError, RunFolder
from .genome import read_genome
from .methods import methods
from .model_file import SavedModel, load_model
from .registry import MODELS
from .results import (
    COLUMN_WORDS,
    CV_SCORES,
    NULL,
    PAIRS,
    TRAINING_ROWS,
    SavedPath,
    read_columns,
    read_member_tables,
    read_path,
    read_risk_groups,
)
from .stream_run import stream_content
from .trust_content import as_written, data_facts, findings_content, run_facts

AT_ONE_ERROR = "features at one standard error"
ALONE = ("stability", "compare")  # commands that leave findings, and no model


def run_content(folder: RunFolder, *, max_bytes: float | None = None) -> ReportContent:
    """Everything a report shows of a run; ``max_bytes`` as in `load_model`."""
    if (folder / STREAM).is_file():
        return stream_content(folder)
    if folder.read_json(CONFIG).get("command") in ALONE:
        return findings_content(folder)
    return report_content(folder, max_bytes=max_bytes)


def report_content(folder: RunFolder, *, max_bytes: float | None = None) -> ReportContent:
    """The same of a fit or a path."""
    saved = load_model(folder, max_bytes=max_bytes)
    data, config = folder.read_json(DATA), folder.read_json(CONFIG)
    path = read_path(folder) if (folder / "path.npz").is_file() else None
    model, tasks = saved.estimator, task_names(saved.estimator, saved.targets)
    (trust, _), (paragraph, citations) = read_findings(folder), methods(folder)
    unseen = unseen_quality(getattr(model, "cv_quality_", None), trust.sharing, tasks)
    stated = folder.read_json(CERTIFICATE)
    unproved = str(stated.pop(UNPROVED, "its run has none, and log.txt there says why"))
    content = model_content(
        model,
        saved.targets,
        tasks,
        saved.feature_names,
        [*_training_quality(folder, saved), *unseen],
        [*_compared(data), *read_member_tables(folder)],
        title=f"What predicts {few(saved.targets, 3)}?",
        asked="",
        answered="",
        certificate=stated,
        facts=[*_facts(saved, data, path, config), *run_facts(folder, data)],
        **as_written(folder),
        trust=trust,
        shared=len(saved.targets) > 1,
        methods=paragraph,
        citations=citations,
        code=code_samples(folder, saved, config),
        rule_command="--rule 1se",
        stability_command=stability_command(config),
    )
    if not (folder / PROOF).is_file():
        content.no_proof, content.proof_command = unproved, ""
    content.facts = [*content.facts, *selection_facts(content)]
    content.risk = read_risk_groups(folder)
    if content.risk is not None:
        content.tables = [*content.tables, risk_table(content.risk), *calibration_table(content.risk)]
    if path is not None:
        show_path(content, path, path.coefs, model)
        # runs of version 0.2 have counted covariates, too
        content.n_selected = np.array([count_selected(coef, content.covariates) for coef in path.coefs])
        content.chosen = _chosen(saved, path)
    if saved.scales is not None:
        content.column_scales = scales_of(model, *saved.scales, content.coef.shape[1])
    if (folder / CV_SCORES).is_file():
        content.cv_scores = np.column_stack(list(read_columns(folder, CV_SCORES).values()))
        content.cv_measure = str(data.get("cv_measure", "held-out loss"))
    rules = used_by_rules(content)
    if rules is not None:
        content.facts = [*content.facts, (AT_ONE_ERROR, f"{rules[1]:,}")]
    content.asked = _asked(saved, data, config, len(content.covariates))
    along = content.n_selected if config.get("command") == "path" else None
    content.answered = answer(content, unseen[:1]) if along is None else _answered_along(content, along)
    if (folder / PROOF).is_file():
        try:
            value = 0 if path is None else content.chosen
            carry(content, folder / PROOF, value, f"tasksieve verify {folder.path.name}")
        except (Unreadable, IndexError) as error:
            raise RunError(f"{folder / PROOF} is not that of this run: {error}") from None
    if (folder / VARIANTS).is_file():
        content.genome = read_genome(folder, data)
    return content


def stability_command(config: dict[str, Any]) -> str:
    """Name what asks which features of a fit would be found again; empty where it cannot be asked."""
    asks = config.get("command") == "fit" and MODELS[str(config["model"])].has_path and config.get("offset") is None
    return "--stability" if asks else ""


def _compared(data: dict[str, Any]) -> list[ExtraTable]:
    found = data.get("cv_compared")
    return [] if found is None else [compared_table(found, str(data.get("cv_measure", "held-out loss")))]


def _chosen(saved: SavedModel, path: SavedPath) -> int:
    k = saved.facts.get("chosen", -1)
    if not isinstance(k, int) or not -len(path.alphas) <= k < len(path.alphas):
        raise RunError("the chosen value is not on the path")
    return k % len(path.alphas)


def _asked(saved: SavedModel, data: dict[str, Any], config: dict[str, Any], n_covariates: int) -> str:
    n_tasks, d, rows = int(data["tasks"]), int(data["features"]) - n_covariates, int(data["rows"])
    several, selects = len(saved.targets) > 1, hasattr(saved.estimator, "get_support")
    origin = f" (column “{saved.task}”)" if saved.task else ""
    origin = " (a file each)" if saved.task == FILE_TASK else origin
    inside = f" in {n_tasks} tasks{origin}" if n_tasks > 1 else ""
    if not selects:
        subject = (
            f"How well do {d:,} features predict “{saved.targets[0]}”{inside}, when every task has a machine of its "
            "own that is drawn towards those of its neighbours on a graph?"
        )
    elif several:
        subject = (
            f"Which of {d:,} features are needed to predict {len(saved.targets)} targets ({few(saved.targets, 5)}) "
            "together? All tasks share one table: each target is a task, and they have the rows and features in common."
        )
    else:
        subject = f"Which of {d:,} features are needed to predict “{saved.targets[0]}”{inside}"
        subject += " together" if n_tasks > 1 else ""
        subject += f", beyond {count(n_covariates, 'covariate')}?" if n_covariates else "?"
    model = f" The model is {type(saved.estimator).__name__}: {MODELS[saved.kind].what}."
    if config.get("command") == "transfer":
        how = (
            f" They are those of a new task, “{config['name']}”; what is known of other tasks comes from the model of "
            f"{config['run']}, without their rows."
        )
    elif config.get("command") == "path":
        how = " It was solved for a whole sequence of penalty strengths, without choosing one."
    elif config.get("cv"):
        rule = RULES[str(config.get("selection_rule", "min"))]
        how = f" Its penalty strength was chosen by {config['cv']}-fold cross-validation ({rule})."
    else:
        how = ""
    scales = ""
    if getattr(saved.estimator, "standardize", False):
        scales = (
            " While fitting, columns were standardised within each task, so that the penalty does not depend on their "
            "units; coefficients are in the units of the table."
        )
    return f"{subject} {rows:,} rows of {data['name']} were used.{model}{how}{scales}"


def _answered_along(content: ReportContent, n_selected: np.ndarray) -> str:
    n_covariates = len(content.covariates)
    beside = f", and {count(n_covariates, 'covariate')} in each" if n_covariates else ""
    of = f"of {content.coef.shape[1] - n_covariates:,} features"
    return (
        f"{len(n_selected)} models, from {n_selected.min()} to {n_selected.max()} {of}"
        f"{beside}. Shown first is the last one, with {count(content.n_selected_features, 'feature')}. "
        f"{proof_words(content.certificate, content.unproved)}"
    )


def _facts(
    saved: SavedModel, data: dict[str, Any], path: SavedPath | None, config: dict[str, Any]
) -> list[tuple[str, str]]:
    kind, model = MODELS[saved.kind], saved.estimator
    facts = [
        *data_facts(data, len(covariates_of(model, int(data["features"])))),
        ("model", f"{kind.name} ({type(model).__name__})"),
        (kind.strength, f"{getattr(model, kind.strength):.6g}"),
    ]
    if hasattr(model, "standardize"):
        name, how = standardised_fact(model)
        facts.append((name.lower(), how))
    if path is not None:
        facts.append(("values of alpha", f"{len(path.alphas)}, {path.alphas[0]:.4g} to {path.alphas[-1]:.4g}"))
    if config.get("cv"):
        folds = str(data.get("cv_folds") or f"{config['cv']} folds")
        if (groups := groups_column(config.get("row_groups"))) is not None:
            folds += f" (column “{groups}”)"
        facts.append(("cross-validation", f"{folds}, rule “{config.get('selection_rule') or 'min'}”"))
    return facts


def _training_quality(folder: RunFolder, saved: SavedModel) -> list[FitQuality]:
    if not (folder / "quality.csv").is_file():
        return []
    columns = read_columns(folder, "quality.csv")
    null = columns.pop(NULL, None)  # runs of version 0.2 have none
    pairs = columns.pop(PAIRS, None)  # of survival alone, and not of earlier runs
    if len(columns) != 2:
        raise RunError(f"{folder / 'quality.csv'} is not readable: it has {len(columns)} columns of numbers")
    (_, rows), (measure, values) = columns.items()
    part = FitQuality(measure.replace(COLUMN_WORDS, TRAINING_ROWS), values, rows)
    if pairs is not None:
        part.pairs = pairs.astype(np.int64)
        part.note = concordance_words(part.pairs)
    covariates = covariates_of(saved.estimator, len(saved.feature_names))
    return [part if null is None else beside_null(part, null, covariates)]
