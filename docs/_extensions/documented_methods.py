"""Which methods a class's reference page has: an estimator all of its own, another class those meant for users."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import reduce
from importlib import import_module

from sklearn.base import BaseEstimator

FOR_USERS = {
    "tasksieve.FoldStore": ["recall", "keep"],
    "tasksieve.Genotypes": ["with_people", "with_variants", "with_covariates", "counts", "calls", "take"],
    "tasksieve.GraphPath": ["certificate", "coef", "intercept", "model", "predict", "to_frame"],
    "tasksieve.HeldOutQuality": [
        "increments", "overall_increments", "optimistic", "caveat", "note", "null_words", "left_out_words", "intervals",
        "to_frame", "to_dict",
    ],
    "tasksieve.RegularizationPath": [
        "certificate", "coef", "intercept", "features", "model", "predict", "to_frame", "plot",
    ],
    "tasksieve.Storage": ["take", "products"],
    "tasksieve.TaskKFold": ["split", "get_n_splits"],
    "tasksieve.TaskMoments": ["add", "r2", "deviations", "recentred", "well_centred"],
    "tasksieve.design.Design": ["norms", "correlate", "take"],
    "tasksieve.design.RowVectors": ["sums"],
    "tasksieve.findings.comparison.Comparison": ["summary", "to_frame", "to_dict", "plot", "note"],
    "tasksieve.findings.comparison.Differences": ["intervals"],
    "tasksieve.findings.permutation.PermutationTest": ["summary"],
    "tasksieve.findings.split.SplitInference": ["to_frame", "summary"],
    "tasksieve.linear.grading.Grade": ["summary"],
    "tasksieve.losses.DataLoss": ["evaluate", "value_at", "terms", "best_scale", "ball", "sphere"],
    "tasksieve.losses.Loss": ["on", "deviance", "link", "unit", "row_weights"],
    "tasksieve.losses.RowLoss": [
        "value", "slope", "conjugate", "domain", "curvature", "second", "excess", "link", "deviance",
    ],
    "tasksieve.penalties.RowPenalty": [
        "value", "gauges", "prox", "reach", "polar", "zero_entries", "steepest", "thresholds", "row_form", "block_form",
        "split", "whole", "pieces",
    ],
    "tasksieve.problem_file.SavedProblem": ["fit"],
    "tasksieve.proof.Certificate": ["proven_zero", "proven_nonzero", "verify", "save", "to_bytes"],
    "tasksieve.runs.RunFolder": ["verify"],
    "tasksieve.screening.Rule": ["supports", "ball", "sequential", "dynamic"],
}  # fmt: skip


def found(name: str) -> object:
    """The object of a dotted name: the longest part that is a module, and attributes from there."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module)
    raise LookupError(name)


@dataclass(frozen=True)
class DocumentedMethods:
    """A function of the templates that Sphinx can keep with its configuration: equal ones need no new build."""

    def __call__(self, name: str) -> list[str]:
        return methods(name)


def methods(name: str) -> list[str]:
    thing = found(name)
    if name in FOR_USERS:
        return FOR_USERS[name]
    if not (inspect.isclass(thing) and issubclass(thing, BaseEstimator)):
        return []
    owners: dict[str, type] = {}
    for owner in thing.__mro__:
        for attribute in vars(owner):
            owners.setdefault(attribute, owner)
    own = [
        attribute
        for attribute, owner in owners.items()
        if not attribute.startswith(("_", "set_"))
        and owner.__module__.startswith("tasksieve.")
        and callable(getattr(thing, attribute, None))
        and inspect.getdoc(getattr(thing, attribute))
    ]
    return sorted(own, key=lambda attribute: (attribute != "fit", attribute))
