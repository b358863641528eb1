"""``tasksieve stability``, ``tasksieve compare``, and the same beside a fit: how far findings can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone

import tasksieve

from ..findings.compare import plan_comparison
from ..findings.debiased import plan_debiased
from ..findings.split import plan_split
from ..report.from_findings import named_intervals, sharing_finding, stability_finding
from ..report.intervals import by_evidence
from ..report.rows import row_labels
from ..report.trust import Trust
from ..report.words import few
from ..runs.findings import read_findings, write_findings
from ..runs.folder import COMPARISON, INTERVALS, PERMUTATION, STABILITY, RunFolder
from ..runs.methods import write_methods
from ..tasks import some_of
from .estimators import make_estimator
from .exit_codes import UsageError
from .messages import in_words
from .options import Asked
from .progress import working
from .run import Job, carry_out
from .trust import asks_comparison, asks_intervals, asks_stability

STRONGEST = 10  # stable features that are named
EFFECTS, OF_TASKS = 5, 3  # features with intervals that are printed, and of how many tasks


def run_findings(asked: Asked) -> int:
    """The body of both commands."""
    return carry_out(asked, look_into)


def look_into(job: Job) -> int:
    """Findings alone: a run without a model."""
    found = find(job, job.estimator)
    if isinstance(found, int):
        return found
    with working("writing results", job.call.quiet):
        job.tell_data()
        write_methods(job.folder)
    return job.end(lambda: [job.data_line(job.estimator, job.seconds_worked), *summary(job.folder)])


def find(job: Job, model: Any) -> Trust | int:
    """All that was asked for about the findings of a model (as it was asked for, or the one that a fit has chosen), or
    the code to leave with where the user has stopped it; what was found is written."""
    found, config, problem, stopped = Trust(), job.config, job.problem, ""
    if asks_stability(config):
        plain, rows = clone(model), problem.row_arguments()
        if config["permutations"]:
            drawn = {"n_permutations": config["permutations"], "random_state": config["seed"]}
            with job.working_on("permutations"):
                found.permutation = tasksieve.permutation_test(plain, problem.X, problem.y, **rows, **drawn)
        selection = tasksieve.StabilitySelection(
            plain,
            n_pairs=config["pairs"],
            threshold=config.get("threshold"),
            pfer=config.get("pfer"),
            q=config.get("per_half"),
            assumption=config["assumption"],
            small_tasks=config["small_tasks"],
            random_state=config["seed"],
            n_jobs=config["threads"],
        )
        with job.working_on("stability"):
            selection.fit(problem.with_holes, problem.y, **rows)
        found.stability = stability_finding(selection)
        if selection.interrupted_:
            counted = f"the {selection.n_pairs_} pairs of halves finished so far are counted"
            stopped = f"{counted} in {job.folder / 'stability.csv'}"
    if asks_intervals(config) and not stopped:
        # with --cv the half that selects chooses its strength, too: that of all rows has seen the other half
        rows = {**problem.row_arguments(), "level": config["level"]}
        intervals: Any
        with job.working_on("intervals"):
            if config.get("interval_method") == "debiased":
                features = features_asked(job)
                intervals = tasksieve.debiased_inference(model, problem.X, problem.y, features=features, **rows)
            else:
                intervals = tasksieve.split_inference(job.estimator, problem.X, problem.y, **rows, **halved(config))
        tasks = dict(zip(model.tasks_.tolist(), row_labels(model, problem.targets), strict=True))
        found.intervals = named_intervals(intervals, problem.encoding.feature_names, tasks)
    if asks_comparison(config) and not stopped:
        shared, given, options = compared(job)
        with job.working_on("comparison"):
            comparison = tasksieve.compare(shared, *given, **options)
        found.sharing = sharing_finding(comparison, problem.targets if len(problem.targets) > 1 else None)
        if comparison.interrupted:
            outer = f"{comparison.n_finished} of {comparison.n_folds} outer folds"
            stopped = f"what the {outer} finished so far say is in {job.folder / 'comparison.csv'}"
    write_findings(job.folder, found, problem.encoding.feature_names)
    return job.interrupted(f"{stopped}, --resume continues") if stopped else found


def check_findings(job: Job) -> None:
    """Refuse now what would be refused after the fit; files of findings no longer asked for go."""
    if not asks_stability(job.config):
        job.folder.remove_files(PERMUTATION, STABILITY, "stability.npz", "stability.csv")
    if asks_intervals(job.config):
        rows, debiased = job.problem.row_arguments(), job.config.get("interval_method") == "debiased"
        if debiased:
            features_asked(job)
        with named_refusal("--intervals"):
            if debiased:
                plan_debiased(job.estimator, job.problem.X, job.problem.y, **rows)
            else:
                plan_split(job.estimator, job.problem.X, job.problem.y, **rows, **halved(job.config))
    else:
        job.folder.remove_files(INTERVALS, "intervals.csv")
    if asks_comparison(job.config):
        model, given, options = compared(job)
        with named_refusal("--compare"):
            plan_comparison(model, *given, **options)
    else:
        job.folder.remove_files(COMPARISON, "comparison.csv")


@contextmanager
def named_refusal(flag: str) -> Iterator[None]:
    """What the library refuses, as an error of an option."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{flag}: {in_words(error)}") from error


def halved(config: dict[str, Any]) -> dict[str, Any]:
    """How the rows of intervals are halved."""
    return {"random_state": config["seed"], "small_tasks": config["small_tasks"]}


def features_asked(job: Job) -> Any:
    """Features of debiased intervals: a word, or numbers of those that were named."""
    asked = str(job.config.get("interval_features", "selected"))
    if asked in ("selected", "all"):
        return asked
    known = {str(name): j for j, name in enumerate(job.problem.encoding.feature_names)}
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"--interval-features: there is no feature {name!r}; {some_of(list(known))} are there")
    return [known[name] for name in names]


def compared(job: Job) -> tuple[Any, tuple[Any, Any], dict[str, Any]]:
    """What is compared: a model that chooses its strength by ``--cv`` folds, X and y, and the options of `compare`."""
    problem, config = job.problem, job.config
    model = make_estimator({**config, "command": "compare"}, job.kind, job.source)
    folds = {"cv": config["outer_folds"], "level": config["level"], "random_state": config["seed"]}
    return model, (problem.with_holes, problem.y), {**problem.row_arguments(), **folds}


# --- results -----------------------------------------------------------------------------------------------------


def strongest_effects(found: Any) -> list[str]:
    """Features with the smallest p-values, and their intervals."""
    lines: dict[str, list[str]] = {}
    for k in by_evidence(found).tolist():
        name, at = str(found.feature[k]), found.estimate[k]
        own = lines.setdefault(f"{name} (p = {found.row_pvalue[k]:.2g})", [])
        own.append(f"{found.task[k]} {at:.3g} ({found.lower[k]:.3g} to {found.upper[k]:.3g})")
    return [f"{name}: {few(own, OF_TASKS)}" for name, own in [*lines.items()][:EFFECTS]]


def summary(folder: RunFolder) -> list[str]:
    """The findings of a run in a few lines."""
    (found, names), lines = read_findings(folder), []
    if found.permutation is not None:
        lines.append(found.permutation.summary())
    if found.stability is not None:
        lines.append(found.stability.sentence())
        if found.stability.n_stable:
            chosen, shares = np.flatnonzero(found.stability.stable), found.stability.probabilities
            order = chosen[np.argsort(-shares[chosen], kind="stable")]
            shown = few((f"{names[j]} ({shares[j]:.0%})" for j in order), STRONGEST)
            lines += [f"stable: {shown}", found.stability.guarantee()]
    if found.intervals is not None:
        lines += [found.intervals.summary(), *strongest_effects(found.intervals)]
    if found.sharing is not None:
        lines.append(found.sharing.sentence())
    return lines
