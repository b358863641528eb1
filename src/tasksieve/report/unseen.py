"""How well rows are predicted that the model had not seen, as a report shows it: nested first, where that was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..fitted.assess import STEPS
from ..fitted.quality import GREATER, HeldOutQuality, null_model_words
from .content import ExtraTable, FitQuality, with_error
from .sharing import SharingFinding
from .words import capital


def unseen_quality(
    quality: HeldOutQuality | None, sharing: SharingFinding | None, tasks: Sequence[str]
) -> list[FitQuality]:
    """All that is known of held-out rows, from cross-validation and, first, from a nested one, by names of tasks."""
    found = [] if quality is None else out_of_fold(quality)
    if sharing is not None and sorted(sharing.tasks) == sorted(map(str, tasks)):
        found.insert(0, nested(sharing, quality, tasks))
    return found


def out_of_fold(quality: HeldOutQuality) -> list[FitQuality]:
    """What cross-validation says of rows that were held out."""
    note = "Out of fold: every row is predicted by a model that has not learned from it."
    if unlike(quality):
        note += " D² is the part of the deviance that is explained, which can be compared; a table above has each task "
        note += "in its own measures."
    elif "AUC" in quality.measures:
        note += " AUC is the share of pairs, a row of each class, that are in order; pairs are of one fold and task."
        note += f" {quality.left_out_words}" if quality.left_out_words else ""
    if quality.optimistic:
        note += (
            f" The numbers are {quality.caveat}, among {quality.n_tried:,} models; a test table (tasksieve evaluate) "
            "or nested folds (tasksieve compare) are free of that."
        )
    note += _null_note(quality.null_words if quality.null_values is not None else "")
    note += f" {quality.pairs_words}" if quality.pairs_words else ""
    found = []
    for m, name in enumerate(quality.measures[:1] if unlike(quality) else quality.measures):
        part = FitQuality(
            f"{capital(name)} out of fold",
            quality.values[:, m],
            quality.n_rows,
            quality.errors[:, m],
            (float(quality.overall[m]), float(quality.overall_errors[m])),
            True,
            note,
            quality.caveat,
            loss=name not in GREATER,
            pairs=quality.pairs if name == "concordance" else None,
        )
        if quality.null_values is not None:
            assert quality.null_overall is not None
            assert quality.overall_increments is not None
            assert quality.overall_increment_errors is not None
            part.null, part.null_overall = quality.null_values[:, m], float(quality.null_overall[m])
            part.increment = float(quality.overall_increments[m]), float(quality.overall_increment_errors[m])
            part.null_words = quality.null_words
        found.append(part)
    return found


def unlike(quality: HeldOutQuality) -> bool:
    """Whether tasks have measures of their own: those of one are not defined for others."""
    return quality.measures[0] == "D²" and len(quality.measures) > 2


def own_measures(quality: HeldOutQuality | None, tasks: Sequence[str]) -> list[ExtraTable]:
    """Tasks of unlike outcomes, each in the measures that it has."""
    if quality is None or not unlike(quality):
        return []
    rows = []
    for t, task in enumerate(tasks):
        for m, name in enumerate(quality.measures):
            if np.isfinite(quality.values[t, m]):
                null = np.nan if quality.null_values is None else quality.null_values[t, m]
                found = with_error(float(quality.values[t, m]), float(quality.errors[t, m]))
                cells = [found, with_error(float(null)) if np.isfinite(null) else "–"]
                rows.append([str(task), name, *(cell.replace("-", "−") for cell in cells)])
    note = (
        "Out of fold; ± is one standard error. Deviances and squared errors are in the units of the task's labels and "
        "are not compared between tasks; D², the part of the deviance explained, is. Of deviances, losses and errors "
        "smaller is better, of the others greater."
    )
    note += " Mean absolute error: how many classes a prediction is off." if STEPS in quality.measures else ""
    columns = ["Task", "Measure", "Value", "Null model"]
    return [ExtraTable("Each task in its own measures", note, columns, rows)]


def beside_null(part: FitQuality, null: np.ndarray, covariates: np.ndarray) -> FitQuality:
    """A measure with that of the null model beside it, task by task."""
    gain = part.values - null
    known = gain[np.isfinite(gain)]
    if not known.size:
        return part
    overall = float(np.mean(null[np.isfinite(null)])), (float(known.mean()), float("nan"))
    words = null_model_words(len(covariates))
    return replace(part, null=null, null_overall=overall[0], null_words=words, increment=overall[1])


def nested(sharing: SharingFinding, quality: HeldOutQuality | None, tasks: Sequence[str]) -> FitQuality:
    """The score of the shared model on rows that had no part in choosing its alpha; tasks are in the model's order."""
    tuned = "alpha" if quality is None else quality.tuned
    position = {name: t for t, name in enumerate(sharing.tasks)}
    order, numbers, at = [position[str(name)] for name in tasks], sharing.numbers, sharing.overall
    found = FitQuality(
        f"{capital(sharing.score)} on rows held out, nested",
        numbers["score_shared"][order],
        numbers["rows"][order].astype(np.int64),
        overall=(at["score_shared"], at.get("score_error", np.nan)),
        unseen=True,
        note=f"Nested cross-validation ({sharing.folds}): no row that judges a model took part in choosing it.",
        caveat=f"{tuned} was chosen without these rows",
    )
    if "null_score" in numbers:  # runs of version 0.2 have no null model
        found.errors = numbers["score_error"][order]
        found.null, found.null_overall = numbers["null_score"][order], at["null_score"]
        found.increment = at["increment"], at["increment_error"]
        found.null_words = "null model" if quality is None else quality.null_words
    if quality is not None and quality.optimistic:
        found.note += f" Numbers “out of fold” are {quality.caveat}."
    found.note += _null_note(found.null_words)
    return found


def _null_note(words: str) -> str:
    return f" In small figures: the {words}, fitted to the same training rows." if words else ""
