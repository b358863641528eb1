"""A report's content from a fitted model or a regularisation path: one line for people who work in Python."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..fitted.measures import kind_of_targets, pairs_by_task, scores_by_task
from ..fitted.path import RegularizationPath
from ..fitted.quality import concordance_words
from ..fitted.risk_groups import risk_groups
from ..tasks.named import is_named, pattern_rows, stack_named, takes_named_tasks
from ..tasks.task_column import TaskColumn, column_of_tasks, split_task_column
from ..verify import Mismatch
from ..versions import versions
from .choice import used_by_rules
from .content import CodeSample, FitQuality, ReportContent
from .from_findings import named_intervals, trust_of
from .members import member_tables
from .methods import RULES, fit_words, model_sentence, paper, software
from .model_content import (
    answer,
    compared_table,
    compared_values,
    model_content,
    show_path,
    standardised_fact,
)
from .probabilities import held_out_calibration, named_calibration, probability_table
from .proof import carry
from .rows import coefficient_rows, multinomial
from .standardised import scales_of, used_columns
from .survival import calibration_table, risk_table
from .trust import Trust
from .unseen import unseen_quality
from .words import capital, count, small


def content_from_model(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    along: RegularizationPath | None = None,
    held_out: tuple[Any, ...] | None = None,
    n_alphas: int = 50,
    permutation: Any = None,
    stability: Any = None,
    comparison: Any = None,
    intervals: Any = None,
    feature_names: Sequence[Any] | None = None,
    task_names: Sequence[Any] | None = None,
    title: str | None = None,
    asked: str | None = None,
    answered: str | None = None,
    facts: Sequence[tuple[str, str]] = (),
    reproduce: str | None = None,
) -> ReportContent:
    """What a report says about a fitted model.

    Parameters
    ----------
    model : fitted estimator of this library, with or without cross-validation, or a RegularizationPath
        Of a path the last model is shown (``path.alphas[-1]``).
    X, y, task, sample_weight : optional
        The rows that the model was fitted to, in any form that `fit` takes. With them the report shows how well each
        task is fitted, for a model with a fixed ``alpha`` the path that leads to it, and carries the certificate,
        which the page can check by itself, with what it proves of every feature.
    offset : optional
        That of the fit, where it had one.
    along : RegularizationPath, optional
        A path of the model on the same data, where you have one. By default that of the cross-validation, or
        ``n_alphas`` values from `alpha_max` down to the model's alpha, computed here.
    held_out : tuple (X, y) or (X, y, task), optional
        Rows that were not used to fit: how well each task is predicted.
    n_alphas : int, default=50
        0: no path is computed.
    permutation : PermutationTest, optional
        What `permutation_test` has found: does anything matter?
    stability : fitted StabilitySelection, optional
        Which features would be found again?
    comparison : Comparison, optional
        What `compare` has found: does sharing help?
    intervals : SplitInference or DebiasedInference, optional
        What `split_inference` or `debiased_inference` has found: how large are the effects?
    feature_names, task_names : sequences, optional
        By default the model's ``feature_names_in_`` (or x0, x1, ...) and ``tasks_``.
    title, asked, answered : str, optional
        Words in place of the automatic ones.
    facts : sequence of (name, value)
        More lines for the table of facts.
    reproduce : str, optional
        The code that gives the same answer; by default the lines that make, fit and report this model.

    Returns
    -------
    ReportContent

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.load_digits_tasks(20)
    >>> model = ts.MultiTaskLogisticRegression(alpha=0.3).fit(X, y, task=task)
    >>> content = ts.report.content_from_model(model, X, y, task=task, n_alphas=5)
    >>> content.coef.shape, len(content.alphas), content.quality[0].measure
    ((10, 64), 5, 'Accuracy on the training rows')
    """
    if isinstance(model, RegularizationPath):
        content = _content_of_path(model, feature_names, task_names)
    else:
        rows = {"task": task, "sample_weight": sample_weight, "offset": offset}
        kind = kind_of_targets(model)
        column = column_of_tasks(model)
        if column is not None and X is not None:
            X, rows["task"] = split_task_column(X, column, task)
        elif is_named(X):
            rows = stack_named(X, y, **rows, survival=kind == "survival", mixed=kind == "mixed")
            X, y = rows.pop("X"), rows.pop("y")
        X, rows["task"] = pattern_rows(X, rows["task"], model)
        rows = {name: values for name, values in rows.items() if values is not None}
        trust = trust_of(permutation, stability, comparison, intervals)
        content = _content_of_model(model, X, y, rows, along, held_out, n_alphas, trust, feature_names, task_names)
    words = {"title": title or None, "asked": asked, "answered": answered, "reproduce": reproduce}
    given: dict[str, Any] = {name: text for name, text in words.items() if text is not None}
    return replace(content, facts=[*content.facts, *facts], **given)


def _content_of_model(
    model: Any,
    X: Any,
    y: Any,
    given: dict[str, Any],
    along: RegularizationPath | None,
    held_out: tuple[Any, ...] | None,
    n_alphas: int,
    trust: Trust,
    feature_names: Sequence[Any] | None,
    task_names: Sequence[Any] | None,
) -> ReportContent:
    """`given`: task, weights and offset of the rows, as far as they are there."""
    if getattr(model, "coef_", None) is None:
        raise ValueError(f"{type(model).__name__} is not fitted: call fit before writing a report.")
    if (X is None) != (y is None):
        raise ValueError("X and y come together: pass both, or neither.")
    n_rows, n_features = coefficient_rows(model)[0].shape
    by_class = multinomial(model)
    noun = "class" if by_class else "task"
    own = model.classes_ if by_class else getattr(model, "tasks_", np.arange(n_rows))
    tasks = _names(task_names, own, len(own), "task_names")
    features = _names(feature_names, getattr(model, "feature_names_in_", None), n_features, "feature_names")
    if trust.intervals is not None:
        trust.intervals = named_intervals(trust.intervals, features, dict(zip(own.tolist(), tasks, strict=True)))
    path = along if along is not None else getattr(model, "path_", None)
    if path is None and X is not None and n_alphas and hasattr(model, "alpha_max"):
        path = _path_to(model, X, y, n_alphas, given)
    chosen = -1
    if path is not None:
        alpha = float(getattr(model, "alpha_", getattr(model, "alpha", path.alphas[-1])))
        chosen = int(np.argmin(np.abs(np.log(path.alphas / alpha))))

    quality = []
    if X is not None:
        quality.append(task_quality(model, X, y, **given, where="the training rows"))
    if held_out is not None:
        others = dict(zip(("X", "y", "task"), held_out, strict=False))
        quality.append(replace(task_quality(model, **others, where="held-out rows"), unseen=True))
    named = [str(name) for name in getattr(model, "tasks_", ())]
    quality += unseen_quality(getattr(model, "cv_quality_", None), trust.sharing, named)

    apart = _given_apart(given)
    shared = shares_rows(X, y, given.get("task"))
    scores = getattr(model, "path_scores_", None) if path is getattr(model, "path_", None) else None
    compared = compared_values(model)
    content = model_content(
        model,
        tasks,
        tasks,
        features,
        quality,
        [
            *([] if compared is None else [compared_table(compared, model.cv_measure)]),
            *([] if by_class else member_tables(model, features, tasks)),
        ],
        title=f"{type(model).__name__}: {count(n_features, 'feature')}, {count(len(own), noun)}",
        asked="",
        answered="",
        certificate=_certificate(model, path),
        facts=_facts(model, quality, shared),
        reproduce=_code(model, "task" in apart),
        versions=versions(),
        cv_scores=scores,
        cv_measure="" if scores is None else model.cv_measure,
        chosen=chosen,
        trust=trust,
        shared=shared,
        code=_samples(model, "task" in apart),
        stability_command=_stability_command(model, given),
    )
    if by_class:
        content.tasks = np.array(tasks, dtype=object)
    if path is not None and len(path):
        _add_path(content, path, model)
    _standardise(content, model)
    if X is not None and kind_of_targets(model) in ("survival", "mixed"):
        content.risk = risk_groups(model, X, y, **given)
        more = [] if content.risk is None else [risk_table(content.risk), *calibration_table(content.risk)]
        content.tables = [*content.tables, *more]
    if X is not None and (found := held_out_calibration(model, X, y, **given)) is not None:
        if not by_class:
            found = named_calibration(found, dict(zip(own.tolist(), tasks, strict=True)))
        content.tables = [*content.tables, probability_table(found)]
    content.methods, content.citations = _methods(model, content)
    _prove(content, model, X, y, given)
    content.asked = _asked(model, content)
    content.answered = answer(content, _told(content))
    return content


def _told(content: ReportContent) -> list[FitQuality]:
    """What the answer says of the quality: on rows kept apart, and out of fold, the first measure of each; on the
    training rows where there are no others."""
    every = [*content.quality, *content.by_task]
    apart = [part for part in every if part.unseen and part.overall is None]
    folds = [part for part in every if part.unseen and part.overall is not None]
    return [*apart, *folds[:1]] or every


@takes_named_tasks
def task_quality(
    model: Any,
    X: Any,
    y: Any,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    where: str = "these rows",
) -> FitQuality:
    """R², D² or accuracy of a fitted model, task by task; NaN for a task with too few labels to say.

    For a multinomial model class by class: the share of its rows that are recognised.

    Parameters
    ----------
    model : fitted estimator
    X, y, task, sample_weight, offset
        Rows in any form that `fit` takes.
    where : str
        Which rows they are, for the name of the measure.

    Returns
    -------
    FitQuality
        In the order of ``tasks_``, or of ``classes_``.
    """
    if multinomial(model):
        right = np.asarray(model.predict(X)) == np.asarray(y)
        members = [np.asarray(y) == label for label in model.classes_]
        return FitQuality(
            f"Share recognised on {where}",
            np.array([right[rows].mean() if rows.any() else np.nan for rows in members]),
            np.array([np.count_nonzero(rows) for rows in members]),
        )
    name, values, counts = scores_by_task(model, X, y, task=task, sample_weight=sample_weight, offset=offset)
    pairs = pairs_by_task(model, X, y, task=task, sample_weight=sample_weight)
    note = "" if pairs is None else concordance_words(pairs)
    return FitQuality(f"{capital(name)} on {where}", values, counts, note=note, pairs=pairs)


# --- parts of the content --------------------------------------------------------------------------------------------


def _content_of_path(
    path: RegularizationPath, feature_names: Sequence[Any] | None, task_names: Sequence[Any] | None
) -> ReportContent:
    if not len(path):
        raise ValueError("the path holds no solved value: there is nothing to report.")
    n_tasks, n_features = len(path.tasks), path.n_features
    worst = float(np.max(path.relative_gaps))
    content = ReportContent(
        title=f"A path of {len(path)} models: {count(n_features, 'feature')}, {count(n_tasks, 'task')}",
        asked=f"Which of the {count(n_features, 'feature')} enter as the penalty is lowered, when "
        f"{count(n_tasks, 'task')} must make do with the same ones?",
        answered=f"{len(path)} models, from no feature to {count(int(path.n_selected[-1]), 'feature')}. The worst of "
        f"them is within {small(worst)} of its optimum, relative to the empty model.",
        tasks=np.array(_names(task_names, path.tasks, n_tasks, "task_names"), dtype=object),
        features=np.array(_names(feature_names, path.feature_names, n_features, "feature_names"), dtype=object),
        coef=path.coef(-1),
        intercept=path.intercept(-1),
        certificate={
            "objective": float(path.objectives[-1]),
            "dual_gap": float(path.dual_gaps[-1]),
            "relative_gap": float(path.relative_gaps[-1]),
            "null_objective": path.null_objective,
            "converged": bool(path.converged[-1]),
        },
        versions=versions(),
        no_proof="a path keeps no data",
        proof_command="path.certificate(X, y, ...).verify(X, y, ...)",
    )
    last = path.model(-1)
    _add_path(content, path, last)
    _standardise(content, last)
    return content


def _prove(content: ReportContent, model: Any, X: Any, y: Any, given: dict[str, Any]) -> None:
    """The certificate of the model on its data, or why there is none."""
    words = "".join(f", {name}={name}" for name in _given_apart(given))
    selects = "need" in signature(getattr(model, "certificate", _prove)).parameters
    asked, more = ({"need": True}, ", need=True") if selects else ({}, "")
    content.proof_command = f"model.certificate(X, y{words}{more}).verify(X, y{words})"
    if X is None:
        content.no_proof = "the data were not given with the model"
        return
    if not hasattr(model, "certificate"):
        content.no_proof, content.proof_command = f"{type(model).__name__} writes none", ""
        return
    try:
        found = model.certificate(X, y, **given, **asked)
    except (ValueError, TypeError, MemoryError, Mismatch) as error:
        content.no_proof, content.proof_command = (str(error) or "not enough memory").rstrip("."), ""
        return
    carry(content, found.to_bytes(), 0, content.proof_command)


def _given_apart(given: Mapping[str, Any]) -> list[str]:
    """What is said of the rows beside X and y: not the tasks, where they are a column of X."""
    return [name for name, values in given.items() if not isinstance(values, TaskColumn)]


def _add_path(content: ReportContent, path: RegularizationPath, model: Any) -> None:
    """The models along a path, facts about them, and what to be warned of."""
    coefs = [path.coef(k) for k in range(len(path))]
    coefs[content.chosen] = content.coef  # the same up to the tolerance; the model's own is shown
    show_path(content, path, coefs, model)
    content.facts = [
        *content.facts,
        ("Values on the path", f"{len(path)}"),
        ("Time for the path", f"{path.seconds.sum():.2f} s"),
        ("Full reads of the data", f"{path.passes:.1f}"),
    ]
    interrupted = ["The path was interrupted: it ends at the last value solved."] if path.interrupted else []
    n_open = int(np.count_nonzero(~path.converged))
    left = f"{n_open} of the {len(path)} values did not reach the tolerance; their gaps, shown below, are true."
    content.warnings = [*interrupted, left] if n_open else interrupted


def _standardise(content: ReportContent, model: Any) -> None:
    """Rank features per standard deviation, where the fit has standardised."""
    if hasattr(model, "scale_"):
        used = used_columns([content.coef, *content.path_coefs])
        content.column_scales = scales_of(model, used, model.scale_[:, used], content.coef.shape[1])


def _path_to(model: Any, X: Any, y: Any, n_alphas: int, given: dict[str, Any]) -> Any:
    """The path from the empty model down to the model's own alpha."""
    largest = model.alpha_max(X, y, **given)
    alone = n_alphas == 1 or largest <= model.alpha
    grid = np.array([model.alpha]) if alone else np.geomspace(largest, model.alpha, n_alphas)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report itself says which values did not converge
        return model.path(X, y, **given, alphas=grid)


def _certificate(model: Any, path: RegularizationPath | None) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for name, attribute in (("objective", "objective_"), ("dual_gap", "dual_gap_"), ("tol", "tol")):
        value = getattr(model, attribute, None)
        if value is not None:
            found[name] = float(value)
    null = getattr(model, "null_objective_", None if path is None else path.null_objective)
    if null is not None and "dual_gap" in found:
        found["null_objective"] = float(null)
        found["relative_gap"] = found["dual_gap"] / null if null > 0 else 0.0
        if "tol" in found:
            found["converged"] = found["relative_gap"] <= found["tol"]
    return found


def _facts(model: Any, quality: Sequence[FitQuality], shared: bool) -> list[tuple[str, str]]:
    facts = [("Model", type(model).__name__)]
    if quality:
        rows = quality[0].rows
        if shared:
            facts.append(("Rows, shared by all tasks", f"{int(rows.max()):,} with a label"))
        else:
            facts.append(("Rows with a label", f"{int(rows.sum()):,}"))
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    if alpha is not None:
        facts.append(("Penalty strength alpha", f"{alpha:.4g}"))
    if hasattr(model, "standardize"):
        facts.append(standardised_fact(model))
    if hasattr(model, "cv_folds_"):
        facts.append(("How it was chosen", f"{model.cv_folds_}; {RULES[model.selection_rule]}"))
    return facts


def _names(given: Sequence[Any] | None, default: Any, n: int, argument: str) -> list[str]:
    found = default if given is None else given
    names = [f"x{j}" for j in range(n)] if found is None else [str(name) for name in found]
    if len(names) != n:
        raise ValueError(f"{argument} holds {len(names)} names, but there are {n}.")
    return names


def _asked(model: Any, content: ReportContent) -> str:
    n_rows, n_features = content.coef.shape
    features = count(n_features, "feature")
    if content.row_noun == "class":
        return f"{n_rows} classes: which of the {features} tell them apart?"
    targets = kind_of_targets(model)
    if targets == "mixed" and n_rows > 1:
        return (
            f"{n_rows} outcomes, each with a loss that fits it: which of the {features} matter, when all outcomes must "
            "make do with the same ones?"
        )
    kind = "survival model" if targets == "survival" else "classification" if is_classifier(model) else "regression"
    if not content.selects:
        return (
            f"{count(n_rows, f'related {kind}')} on {features}: what does each feature weigh, when every task has a "
            "machine of its own that is drawn towards those of its neighbours on a graph?"
        )
    if content.shared and n_rows > 1:
        return (
            f"{count(n_rows, 'target')} of the same rows, each of them a {kind} from the same matrix of {features}: "
            "which features matter, when all targets must make do with the same ones?"
        )
    if n_rows == 1:
        return f"One {kind}: which of its {features} matter?"
    return (
        f"{count(n_rows, f'related {kind}')}: which of the {features} matter, when all tasks must make do with the "
        "same ones?"
    )


def shares_rows(X: Any, y: Any, task: Any) -> bool:
    """Whether all tasks share one X: a list has a matrix for each, and stacked rows have a task each."""
    if X is None or task is not None or isinstance(X, list | tuple | dict) or isinstance(y, list | tuple | dict):
        return False
    return len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1


def _methods(model: Any, content: ReportContent) -> tuple[str, list[str]]:
    """A paragraph for an article, and what to cite."""
    name, params, version = type(model).__name__, model.get_params(deep=False), content.versions.get("tasksieve", "")
    compared = compared_values(model)
    if compared is not None:
        params[compared["name"]] = compared["chosen"]
    if hasattr(model, "losses_") and not isinstance(model.losses, Mapping):  # unlike outcomes without names
        params["losses"] = dict(zip(content.tasks.tolist(), model.losses_, strict=True))
    where = count(len(content.tasks), content.row_noun)
    if content.quality and content.row_noun == "task":
        rows = content.quality[0].rows
        total = count(int(rows.max() if content.shared else rows.sum()), "row")
        where = f"{total} shared by {where}" if content.shared else f"{where} with {total} in all"
    size = len(content.tasks), content.coef.shape[1], len(content.covariates)
    said = model_sentence(name, params, version, where, size, getattr(model, "standardize", False))
    strength = "alpha" if hasattr(model, "alpha") or hasattr(model, "alpha_") else "C"
    value = getattr(model, f"{strength}_", getattr(model, strength, None))
    if isinstance(value, int | float | np.number):
        chosen = (model.cv_folds_, model.selection_rule) if hasattr(model, "cv_folds_") else None
        gap = content.certificate.get("relative_gap")
        said += f" {fit_words(strength, float(value), gap, chosen, compared, used_by_rules(content))}"
    return said, [software(version), paper(name)]


def _stability_command(model: Any, given: dict[str, Any]) -> str:
    """Name what asks which features would be found again: of a model along whose path they enter."""
    asks = "offset" not in given and (hasattr(model, "alpha_max") or hasattr(model, "path_"))
    return "ts.StabilitySelection" if asks else ""


def _samples(model: Any, with_task: bool) -> list[CodeSample]:
    task = ", task=task" if with_task else ""
    lines = [f"predictions = model.predict(X{task})"]
    if hasattr(model, "predict_proba"):
        lines.append(f"probabilities = model.predict_proba(X{task})")
    return [CodeSample("Predict new rows", "Python", "\n".join(lines) + "\n", "With the model fitted as below.")]


def _code(model: Any, with_task: bool) -> str:
    task = ", task=task" if with_task else ""
    return (
        f"import tasksieve as ts\n\nmodel = ts.{model!r}\n"
        f"model.fit(X, y{task})\n"
        f'ts.write_report(model, "report.html", X=X, y=y{task})'
    )
