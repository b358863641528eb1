"""``tasksieve stability``, ``tasksieve compare``, and the same beside a fit: how far findings can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

import tasksieve

from ..findings.compare import plan_comparison
from ..findings.permutation import PermutationTest
from ..report.findings import StabilityFinding
from ..report.from_findings import sharing_finding, stability_finding
from ..report.sharing import SharingFinding
from ..report.words import count
from ..runs.findings import (
    read_comparison,
    read_permutation,
    read_stability,
    write_comparison,
    write_permutation,
    write_stability,
)
from ..runs.folder import COMPARISON, DATA, PERMUTATION, STABILITY, RunFolder
from ..runs.methods import write_methods
from .estimators import make_estimator
from .messages import in_words
from .progress import working
from .run import Job, carry_out
from .source import Source
from .trust import asks_comparison, asks_stability

STRONGEST = 10  # stable features that are named


@dataclass
class Findings:
    """What was found; None where it was not asked for."""

    permutation: PermutationTest | None = None
    stability: StabilityFinding | None = None
    sharing: SharingFinding | None = None


def run_findings(command: str, tables: list[str], given: dict[str, Any]) -> int:
    """The body of both commands."""
    return carry_out(command, tables, given, look_into)


def look_into(job: Job) -> int:
    """Findings alone: a run without a model."""
    found = find(job, job.estimator)
    if isinstance(found, int):
        return found
    with working("writing results", job.quiet):
        job.tell_data()
        write_findings(job, found)
        write_methods(job.folder)
    return job.end(lambda: [data_line(job), *summary(job.folder)])


def find(job: Job, model: Any) -> Findings | int:
    """All that was asked for about the findings of a model, or the code to leave with where the user has stopped it.

    - `model`: As it was asked for, or the one that a fit has chosen.
    """
    found, config = Findings(), job.config
    if asks_stability(config):
        plain = clone(model)
        if config["permutations"]:
            with job.working_on("permutations"):
                found.permutation = permute(plain, job.source, config)
        with job.working_on("stability"):
            selection = halve(plain, job.source, config)
        found.stability = stability_finding(selection)
        if selection.interrupted_:
            write_findings(job, found)
            return job.interrupted(
                f"the {selection.n_pairs_} pairs of halves finished so far are counted in "
                f"{job.folder / 'stability.csv'}, --resume continues"
            )
    if asks_comparison(config):
        with job.working_on("comparison"):
            comparison = share(job)
        targets = job.problem.targets
        found.sharing = sharing_finding(comparison, targets if len(targets) > 1 else None)
        if comparison.interrupted:
            write_findings(job, found)
            return job.interrupted(
                f"what the {comparison.n_finished} of {comparison.n_folds} outer folds finished so far say is in "
                f"{job.folder / 'comparison.csv'}, --resume continues"
            )
    return found


def check_findings(job: Job) -> None:
    """Refuse now what a comparison would refuse after the fit; files of findings no longer asked for go."""
    if not asks_stability(job.config):
        job.folder.remove_files(PERMUTATION, STABILITY, "stability.npz", "stability.csv")
    if not asks_comparison(job.config):
        job.folder.remove_files(COMPARISON, "comparison.csv")
        return
    model, rows, options = compared(job)
    try:
        plan_comparison(model, *rows, **options)
    except ValueError as error:
        raise ValueError(f"--compare: {in_words(error)}") from error


def permute(model: Any, source: Source, config: dict[str, Any]) -> Any:
    return tasksieve.permutation_test(
        model,
        source.problem.X,
        source.problem.y,
        **source.problem.row_arguments(),
        n_permutations=config["permutations"],
        random_state=config["seed"],
    )


def halve(model: Any, source: Source, config: dict[str, Any]) -> Any:
    selection = tasksieve.StabilitySelection(
        model,
        n_pairs=config["pairs"],
        threshold=config.get("threshold"),
        pfer=config.get("pfer"),
        q=config.get("per_half"),
        assumption=config["assumption"],
        small_tasks=config["small_tasks"],
        random_state=config["seed"],
        n_jobs=config["threads"],
    )
    return selection.fit(source.problem.X, source.problem.y, **source.problem.row_arguments())


def share(job: Job) -> Any:
    """The comparison."""
    model, rows, options = compared(job)
    return tasksieve.compare(model, *rows, **options)


def compared(job: Job) -> tuple[Any, tuple[Any, Any], dict[str, Any]]:
    """What is compared: a model that chooses its strength by ``--cv`` folds, X and y, and the options of `compare`."""
    problem, config = job.problem, job.config
    model = make_estimator({**config, "command": "compare"}, job.kind, job.source)
    folds = {"cv": config["outer_folds"], "level": config["level"], "random_state": config["seed"]}
    return model, (problem.X, problem.y), {**problem.row_arguments(), **folds}


# --- results -----------------------------------------------------------------------------------------------------


def write_findings(job: Job, found: Findings) -> None:
    if found.permutation is not None:
        write_permutation(job.folder, found.permutation)
    if found.stability is not None:
        write_stability(job.folder, found.stability, job.problem.encoding.feature_names)
    if found.sharing is not None:
        write_comparison(job.folder, found.sharing)


def data_line(job: Job) -> str:
    problem, tasks = job.problem, job.folder.read_json(DATA)["tasks"]
    seconds = sum(spent for part, spent in job.seconds.items() if part != "read")
    return (
        f"{type(job.estimator).__name__}: {count(problem.n_used, 'row')}, {count(tasks, 'task')}, "
        f"{count(problem.n_features, 'feature')}; {seconds:.2f} s"
    )


def summary(folder: RunFolder) -> list[str]:
    """The findings of a run in a few lines."""
    lines = []
    permutation, stability, sharing = read_permutation(folder), read_stability(folder), read_comparison(folder)
    if permutation is not None:
        lines.append(permutation.summary())
    if stability is not None:
        finding, names = stability
        lines.append(finding.sentence())
        if finding.n_stable:
            lines += [stable_line(finding.probabilities, finding.stable, names), finding.guarantee()]
    if sharing is not None:
        lines.append(sharing.sentence())
    return lines


def stable_line(shares: np.ndarray, stable: np.ndarray, names: Sequence[str]) -> str:
    chosen = np.flatnonzero(stable)
    order = chosen[np.argsort(-shares[chosen], kind="stable")]
    shown = ", ".join(f"{names[j]} ({shares[j]:.0%})" for j in order[:STRONGEST])
    return f"stable: {shown}" + (", ..." if len(order) > STRONGEST else "")
