"""What the library has found about findings, in the terms of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from .findings import StabilityFinding
from .sharing import SharingFinding
from .trust import Trust

# Of the features on the stability path so many are kept, those selected most often: more cannot be distinguished.
MOST_CURVES = 200


def trust_of(permutation: Any, stability: Any, comparison: Any, intervals: Any) -> Trust:
    """A `PermutationTest`, a fitted `StabilitySelection`, a `Comparison` and a `SplitInference` for a report, as far as
    they are there."""
    found = None if stability is None else stability_finding(stability)
    return Trust(permutation, found, None if comparison is None else sharing_finding(comparison), intervals)


def named_intervals(found: Any, features: Sequence[str], tasks: Mapping[Any, str]) -> Any:
    """A `SplitInference` with the names of features that are numbers there, and of tasks by their labels."""
    numbers = np.issubdtype(found.feature.dtype, np.integer)
    names = [str(features[j]) if numbers else str(j) for j in found.feature.tolist()]
    labels = [str(tasks.get(label, label)) for label in found.task.tolist()]
    return replace(found, feature=np.array(names, dtype=object), task=np.array(labels, dtype=object))


def stability_finding(found: Any) -> StabilityFinding:
    """Of a fitted `StabilitySelection`."""
    if not hasattr(found, "selection_probabilities_"):
        raise ValueError("stability is not fitted: call fit of the StabilitySelection before writing a report.")
    shares = np.asarray(found.selection_probabilities_, dtype=np.float64)
    stable = np.asarray(found.get_support())
    order = np.argsort(-np.nan_to_num(shares), kind="stable")
    kept = np.sort(order[: max(MOST_CURVES, int(np.count_nonzero(stable)))])
    kept = kept[np.nan_to_num(shares[kept]) > 0.0]
    grouped = hasattr(found, "groups_")
    return StabilityFinding(
        probabilities=shares,
        stable=stable,
        threshold=float(found.threshold_),
        n_pairs=int(found.n_pairs_),
        q=int(found.q_),
        n_candidates=int(found.n_selectable_),
        assumption=str(found.assumption),
        bound=float(found.pfer_bound_),
        bounds={name: float(bound) for name, bound in found.pfer_bounds_.items()},
        path=scipy.sparse.csr_array(found.stability_path_)[:, kept].toarray(),
        alphas=np.asarray(found.alphas_, dtype=np.float64),
        path_features=kept.astype(np.int64),
        halves=str(found.halves_),
        noun="group" if grouped else "feature",
        dropped=[str(label) for label in found.dropped_tasks_],
        groups=[str(name) for name in found.groups_] if grouped else None,
    )


def sharing_finding(found: Any, tasks: Sequence[str] | None = None) -> SharingFinding:
    """Of a `Comparison`; ``tasks`` are names in place of its labels."""
    columns = found.to_dict()
    names = [str(name) for name in (columns["task"][:-1] if tasks is None else tasks)]
    told = {name: getattr(found, name) for name in ("models", "loss", "score", "level", "folds", "classes", "note")}
    numbers = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items() if name != "task"}
    return SharingFinding(names, numbers=numbers, **told)
