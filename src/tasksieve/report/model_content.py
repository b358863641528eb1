"""What every report shows of a fitted model, whether it is in memory or in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..fitted.covariates import covariates_of
from ..screening import PublishedDPC
from ..tasks import Patterns
from .choice import leading_words
from .content import ExtraTable, FitQuality, ReportContent, mean_of
from .covariates import covariate_tables
from .rows import coefficient_rows, row_labels, row_noun
from .standardised import by_row
from .unseen import out_of_fold, own_measures
from .words import are, capital, count, number, quantity


def model_content(
    model: Any,
    names: Sequence[str],
    tasks: Sequence[str],
    features: Sequence[str],
    quality: Sequence[FitQuality],
    tables: Sequence[ExtraTable],
    **words: Any,
) -> ReportContent:
    """The model's rows of coefficients with their names, its quality and its tables.

    - `names`: Of the targets, or of the tasks: as in `row_labels`.
    - `tasks`: Names of the tasks, in the model's order.
    - `tables`: Those that its loss and its penalty add.
    - `words`: The other attributes of the content.
    """
    coef, intercept = coefficient_rows(model)
    patterns = getattr(model, "patterns_", None)
    if patterns is not None and not patterns.complete:
        words["present"] = by_row(model, patterns.present)
        tables = [*tables, pattern_table(patterns, tasks)]
    content = ReportContent(
        tasks=np.array(row_labels(model, names), dtype=object),
        features=np.array(features, dtype=object),
        coef=scipy.sparse.csr_array(coef),
        intercept=intercept,
        quality=[part for part in quality if len(part.values) == len(coef)],
        by_task=[part for part in quality if len(part.values) != len(coef)],
        row_noun=row_noun(model, names),
        selects=hasattr(model, "get_support"),
        covariates=covariates_of(model, coef.shape[1]),
        row_scales=getattr(model, "target_scales_", None),
        **words,
    )
    content.facts = [
        *content.facts,
        *((part.measure, f"{mean_of(part):.3f} (mean over tasks)") for part in content.by_task),
    ]
    beside = own_measures(getattr(model, "cv_quality_", None), tasks)
    whole = getattr(model, "cv_quality_by_task_", None)
    if whole is not None:
        for table in quality_tables(out_of_fold(whole), [str(own) for own in whole.tasks.tolist()]):
            table.note = f"All patterns of a task together. {table.note}"
            beside = [*beside, table]
    content.tables = [*covariate_tables(content), *quality_tables(content.by_task, tasks), *beside, *tables]
    return content


def pattern_table(patterns: Patterns, tasks: Sequence[str]) -> ExtraTable:
    """What each task has of the columns."""
    rows = []
    for k, name in enumerate(tasks):
        given = patterns.family(k)
        n_present = int(patterns.present[k].sum())
        rows.append([str(name), "–" if given is None else str(given), f"{n_present:,}",
                     f"{patterns.n_features - n_present:,}"])  # fmt: skip
    note = (
        "Rows of a task in which the same columns are present are a task of their own. A feature that was not measured "
        "in it has no coefficient there, which is not the same as one that is zero."
    )
    return ExtraTable("Patterns of present columns", note, ["Pattern", "Task", "Measured", "Not measured"], rows)


def compared_values(model: Any) -> dict[str, Any] | None:
    """Values of a second parameter that cross-validation has compared, as a run writes them down; None where there was
    one, or none."""
    found = getattr(model, "cv_compared_", None)
    if found is None or len(found["score"]) < 2:
        return None
    name, strength, *_ = found
    columns = {key: [number(value) for value in found[key]] for key in (strength, "score", "error")}
    chosen = float(getattr(model, f"{name}_"))
    return {"name": name, "values": found[name].tolist(), "chosen": chosen, "strength": strength, **columns}


def compared_table(compared: Mapping[str, Any], measure: str) -> ExtraTable:
    """What held-out rows say of each value that was compared."""
    name, strength, rows = str(compared["name"]), str(compared["strength"]), []
    each = (compared[key] for key in ("values", strength, "score", "error"))
    for value, at, score, error in zip(*each, strict=True):
        chosen = "yes" if value == compared["chosen"] else "no"
        within = "" if error is None else f" ± {quantity(error)}"
        rows.append([f"{value:.4g}", quantity(at), f"{quantity(score)}{within}", chosen])
    note = (
        f"All values of {name} are judged on the same folds. {strength} is the one that would be chosen with each, "
        f"{measure} the mean over the folds there, ± one standard error."
    )
    return ExtraTable(f"Values of {name} that were compared", note, [name, strength, capital(measure), "Chosen"], rows)


def show_path(content: ReportContent, path: Any, coefs: Sequence[scipy.sparse.csr_array], estimator: Any) -> None:
    """The models along a path, whose numbers have the same names in memory and in a run. Rejection ratios are shown of
    a rule that is run at every value: what other paths happen to prove before solving says nothing about the model."""
    content.path_coefs = coefs
    for name in ("alphas", "n_selected", "relative_gaps", "seconds"):
        setattr(content, name, getattr(path, name))
    if getattr(estimator, "screening", None) == PublishedDPC.name:
        content.rejection_ratios = path.rejection_ratios


def quality_tables(parts: Sequence[FitQuality], tasks: Sequence[str]) -> list[ExtraTable]:
    """A table of the tasks, where the rows of coefficients are something else."""
    parts = [part for part in parts if len(part.values) == len(tasks)]
    if not parts:
        return []
    parts = sorted(parts, key=lambda part: not part.unseen)
    rows = []
    for t, name in enumerate(tasks):
        cells = [f"{int(parts[0].rows[t]):,}"]
        for part in parts:
            error = "" if part.errors is None or not np.isfinite(part.errors[t]) else f" ± {part.errors[t]:.2g}"
            cells.append(quantity(part.values[t]) + error)
            if part.null is not None:
                cells.append(quantity(part.null[t]))
        rows.append([str(name), *cells])
    title = "How well each task is predicted" if parts[0].unseen else "How well each task is fitted"
    note = f"{parts[0].note} ± is one standard error." if parts[0].note else ""
    columns = ["Task", "Rows"]
    for part in parts:
        columns += [part.measure] if part.null is None else [part.measure, f"{part.measure}: null model"]
    return [ExtraTable(title, note, columns, rows)]


def standardised_fact(model: Any) -> tuple[str, str]:
    """Whether the penalty has seen columns in their units, for the list of facts."""
    how = "yes, within tasks; coefficients are in the units of the data" if model.standardize else "no"
    return "Columns standardised while fitting", how


def answer(content: ReportContent, quality: Sequence[FitQuality]) -> str:
    """Sentences about the findings, features in use by the more careful rule first, how well rows are predicted,
    and what is proved: of a model whose path and scores are there already."""
    found = "" if content.trust is None else content.trust.headline(content.features.tolist())
    known = [f"{part.measure}: {part.figures()}." for part in quality if np.any(np.isfinite(part.values))]
    proved = proof_words(content.certificate, content.unproved)
    sentences = [found, leading_words(content, used_words(content)), *known, proved]
    return " ".join(sentence for sentence in sentences if sentence)


def used_words(content: ReportContent) -> str:
    """How many features a model has selected, as a sentence; covariates are in it without being selected."""
    n_selected, n_covariates = content.n_selected_features, len(content.covariates)
    if not content.selects:
        every = f"{content.coef.shape[1]:,}"
        return f"All {every} features have a weight: this model weighs features, it does not select them."
    of = count(content.coef.shape[1] - n_covariates, "feature")
    beside = f", beside {count(n_covariates, 'covariate')} that {are(n_covariates)} not penalised"
    beside = beside if n_covariates else ""
    if n_selected == 0:
        does = "has the covariates alone" if n_covariates else "predicts the same for all rows of a task"
        return (
            f"None of {of} is used{beside}: at this penalty strength the best model is the null model, which {does}."
        )
    return f"{n_selected:,} of {of} {are(n_selected)} used{beside}."


UNPROVED = "that is the solver's own number, for there is no certificate to check"


def proof_words(certificate: Mapping[str, float], unproved: bool = False) -> str:
    """Say what the duality gap proves; nothing where there is none. `unproved`: it is the solver's own, with
    no certificate for others to check."""
    if "objective" not in certificate or "dual_gap" not in certificate:
        return ""
    whose = "that is the certificate, computed from the data"
    first = "No" if unproved else "What is proved: no"
    said = (
        f"{first} other coefficients of this kind have a smaller penalised loss than "
        f"{certificate['objective']:.6g} by more than {certificate['dual_gap']:.2g}: {UNPROVED if unproved else whose}."
    )
    if certificate.get("converged", True):
        return said
    return f"{said} This is more than was asked for: the solver stopped before it reached the tolerance."
