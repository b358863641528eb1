"""A run folder as the content of a report, whatever left it: a fit, a path, a stream, findings alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..fitted.covariates import covariates_of
from ..report.content import FitQuality, ReportContent, without_columns
from ..report.covariates import covariate_tables, selection_facts
from ..report.from_model import mean_facts, quality_tables, standardised_fact, used_words
from ..report.proof import carry
from ..report.rows import coefficient_rows, row_labels, rows_are_classes
from ..report.unseen import beside_null, unseen_quality
from ..report.words import count, few
from ..tables.stack import FILE_TASK
from ..verify import Unreadable
from .code import code_samples
from .findings import read_findings
from .folder import CERTIFICATE, CONFIG, DATA, PROOF, STREAM, VARIANTS, RunError, RunFolder
from .genome import read_genome
from .methods import methods
from .model_file import SavedModel, load_model
from .registry import MODELS
from .results import COLUMN_WORDS, NULL, TRAINING_ROWS, SavedPath, read_columns, read_member_tables, read_path
from .stream_run import stream_content
from .trust_content import as_written, data_facts, findings_content, run_facts

ALONE = ("stability", "compare")  # commands that leave findings, and no model


def run_content(folder: RunFolder, *, max_bytes: float | None = None) -> ReportContent:
    """Everything a report shows of a run; ``max_bytes`` as in `load_model`."""
    if (folder / STREAM).is_file():
        return stream_content(folder)
    if folder.read_json(CONFIG).get("command") in ALONE:
        return findings_content(folder)
    return report_content(folder, max_bytes=max_bytes)


def report_content(folder: RunFolder, *, max_bytes: float | None = None) -> ReportContent:
    """Everything a report shows, read from the files of a fit or a path whose results are written."""
    saved = load_model(folder, max_bytes=max_bytes)
    data, certificate = folder.read_json(DATA), folder.read_json(CERTIFICATE)
    config = folder.read_json(CONFIG)
    path = read_path(folder) if (folder / "path.npz").is_file() else None
    model = saved.estimator
    labels = row_labels(model, saved.targets)
    rows, intercept = coefficient_rows(model)
    coef = scipy.sparse.csr_array(rows)
    (trust, _), covariates = read_findings(folder), covariates_of(model, coef.shape[1])
    unseen = unseen_quality(getattr(model, "cv_quality_", None), trust.sharing, _task_names(saved))
    several = isinstance(model.coef_, list) or model.coef_.ndim == 3
    content = ReportContent(
        title=f"What predicts {few(saved.targets, 3)}?",
        asked=_asked(saved, data, config, len(covariates)),
        answered="",
        tasks=np.array(labels, dtype=str),
        features=np.array(saved.feature_names, dtype=str),
        coef=coef,
        intercept=intercept,
        certificate=certificate,
        facts=[*_facts(saved, data, path, config), *run_facts(folder, data)],
        **as_written(folder),
        row_noun="class" if rows_are_classes(model, saved.targets) else "score" if several else "task",
        tables=read_member_tables(folder),
        trust=trust,
        selects=hasattr(model, "get_support"),
        covariates=covariates,
        shared=len(saved.targets) > 1,
        code=code_samples(folder, saved, config),
    )
    content.methods, content.citations = methods(folder)
    answered = _answered(content, path, config, unseen)
    content.answered = " ".join(part for part in (trust.headline(saved.feature_names), answered) if part)
    content.facts = [*content.facts, *selection_facts(content)]
    training = _quality(folder, covariates)
    every = [*([] if training is None else [training]), *unseen]
    content.quality = [part for part in every if len(part.values) == len(labels)]
    content.by_task = [part for part in every if len(part.values) != len(labels)]  # rows of coefficients are classes
    content.facts = [*content.facts, *mean_facts(content.by_task)]
    if content.by_task and hasattr(model, "tasks_"):
        content.tables = [*quality_tables(content.by_task, _task_names(saved)), *content.tables]
    content.tables = [*covariate_tables(content), *content.tables]
    if path is not None:
        content.alphas, content.path_coefs = path.alphas, path.coefs
        content.n_selected, content.rejection_ratios = selected_along(path, covariates), path.rejection_ratios
        content.relative_gaps, content.seconds = path.relative_gaps, path.seconds
        content.chosen = _chosen(saved, path)
    if (folder / PROOF).is_file():
        try:
            value = 0 if path is None else content.chosen
            carry(content, folder / PROOF, value, f"tasksieve verify {folder.path.name}")
        except (Unreadable, IndexError) as error:
            raise RunError(f"{folder / PROOF} is not that of this run: {error}") from None
    else:
        content.no_proof, content.proof_command = "its run has none, and log.txt there says why", ""
    if (folder / VARIANTS).is_file():
        content.genome = read_genome(folder, data)
    if (folder / "cv_scores.csv").is_file():
        content.cv_scores = np.column_stack(list(read_columns(folder, "cv_scores.csv").values()))
        content.cv_measure = str(data.get("cv_measure", "held-out loss"))
    return content


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
    model = f" The model is {type(saved.estimator).__name__}: {MODELS[saved.kind].about}."
    if config.get("command") == "path":
        how = " It was solved for a whole sequence of penalty strengths, without choosing one."
    elif config.get("cv"):
        rule = "with the smallest loss" if config.get("selection_rule", "min") == "min" else (
            "with the fewest features whose loss is within one standard error of the smallest"
        )  # fmt: skip
        how = f" Its penalty strength was chosen by {config['cv']}-fold cross-validation, {rule}."
    else:
        how = ""
    scales = ""
    if getattr(saved.estimator, "standardize", False):
        scales = (
            " While fitting, columns were standardised within each task, so that the penalty does not depend on their "
            "units; coefficients are in the units of the table."
        )
    return f"{subject} {rows:,} rows of {data['name']} were used.{model}{how}{scales}"


def _task_names(saved: SavedModel) -> list[str]:
    """The names of the model's tasks, in its order."""
    return saved.targets if len(saved.targets) > 1 else [str(label) for label in getattr(saved.estimator, "tasks_", ())]


def _answered(
    content: ReportContent, path: SavedPath | None, config: dict[str, Any], unseen: list[FitQuality]
) -> str:
    d, n_covariates, certificate = content.coef.shape[1], len(content.covariates), content.certificate
    gap = float(certificate["dual_gap"])
    proof = (
        f"No other coefficients could lower the objective ({float(certificate['objective']):.6g}) by more than "
        f"{gap:.2g}: that is the certificate, computed from the data"
    )
    if not certificate["converged"]:
        proof += ". This is more than was asked for: the solver stopped before it reached the tolerance"
    n_selected = content.n_selected_features
    if config.get("command") == "path" and path is not None:
        counts = selected_along(path, content.covariates)
        beside = f", and {count(n_covariates, 'covariate')} in each" if n_covariates else ""
        of = f"of {d - n_covariates:,} features{beside}"
        first = f"{len(path.alphas)} models, from {counts.min()} to {counts.max()} {of}."
        return f"{first} Shown first is the last one, with {count(n_selected, 'feature')}. {proof}."
    used = used_words(n_selected, d, content.selects, n_covariates)
    known = bool(unseen) and bool(np.isfinite(unseen[0].values).any())
    predicts = [f"{unseen[0].measure}: {unseen[0].figures()}."] if known else []
    return " ".join([used, *predicts, f"{proof}."])


def selected_along(path: SavedPath, covariates: np.ndarray) -> np.ndarray:
    """Penalised features at each value: runs of version 0.2 have counted covariates, too."""
    coefs = [without_columns(coef, covariates) for coef in path.coefs]
    return np.array([len(np.unique(coef.indices[coef.data != 0])) for coef in coefs])


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
        if config.get("row_groups"):
            folds += f" (column “{config['row_groups']}”)"
        facts.append(("cross-validation", f"{folds}, rule “{config.get('selection_rule') or 'min'}”"))
    return facts


def _quality(folder: RunFolder, covariates: np.ndarray) -> FitQuality | None:
    if not (folder / "quality.csv").is_file():
        return None
    columns = read_columns(folder, "quality.csv")
    null = columns.pop(NULL, None)  # runs of version 0.2 have none
    if len(columns) != 2:
        raise RunError(f"{folder / 'quality.csv'} is not readable: it has {len(columns)} columns of numbers")
    (_, rows), (measure, values) = columns.items()
    part = FitQuality(measure.replace(COLUMN_WORDS, TRAINING_ROWS), values, rows)
    return part if null is None else beside_null(part, null, covariates)
