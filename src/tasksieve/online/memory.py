"""What the kernel of the online models remembers, as arrays: what older versions did not write, and what must hold."""

from __future__ import annotations

import numpy as np

# Arrays of one number per task that version 0.1 did not keep.
SEEN = ("seen_weight", "seen_loss", "seen_hits", "seen_mean", "seen_spread")
NEEDED = (
    *("shape", "sums", "total", "sizes", "l1", "weight", "offset_sums", "offset_total"),
    *("round_task", "round_start", "round_index", "round_gradient", "round_value"),
)
# Integers among the arrays.
INTEGERS = ("shape", "round_task", "round_start", "round_index")


def completed(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A state of any version as this one has it. Rows that an older version has learned count for nothing in the
    progressive loss and in ``gamma="auto"``; predictions of any size are accepted, as its targets are not known."""
    n_tasks = len(state.get("weight", ()))
    older = {name: np.zeros(n_tasks) for name in SEEN}
    return {
        **older,
        "seen_curve": np.zeros(0),
        "automatic": np.array([0.0] * 8 + [np.inf]),
        **state,
    }


def check_memory(state: dict[str, np.ndarray]) -> None:
    """Refuse arrays that no learner can have left: types, sizes, NaN and infinities."""
    for name in NEEDED:
        if name not in state:
            raise ValueError(f"array {name!r} is missing")
    for name, array in state.items():
        wanted = np.int64 if name in INTEGERS else np.float64
        if array.dtype != wanted or array.ndim != 1:
            raise ValueError(f"array {name!r} must be one-dimensional, of type {np.dtype(wanted)}")
        finite = np.isfinite(array[:-1] if name == "automatic" else array)
        if not np.all(finite):
            raise ValueError(f"array {name!r} holds NaN or infinity at position {int(np.argmin(finite))}")
    for name in ("weight", "sizes", "l1", "automatic", *SEEN[:3], SEEN[4]):
        if np.any(state[name] < 0) or np.any(np.isnan(state[name])):
            raise ValueError(f"array {name!r} holds numbers that are not >= 0")
    if len(state["shape"]) != 7:
        raise ValueError("array 'shape' must have 7 entries")
    n_features, n_tasks = (int(n) for n in state["shape"][:2])
    fits = len(state["sizes"]) == len(state["l1"]) == n_features and len(state["weight"]) == n_tasks
    if not fits or len(state["sums"]) != n_features * n_tasks or len(state["total"]) not in (0, n_features * n_tasks):
        raise ValueError(f"{n_features} features and {n_tasks} tasks are declared, which the arrays do not bear out")
