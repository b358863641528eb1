"""What to do with an X that is no matrix."""

from __future__ import annotations


def refuse_dimensions(ndim: int, name: str, kind: str = "array") -> None:
    """Raise a ValueError for an X of other than two dimensions; of three, what is right depends on what they are."""
    hint = f"Reshape your data: {name}.reshape(-1, 1) for one feature, {name}.reshape(1, -1) for one row."
    if ndim == 3:
        hint = (
            f"If its first axis is tasks (tasks x rows x features), pass list({name}). If it is rows (trials x sensors "
            f"x times), {name}.reshape(len({name}), -1) has a feature for each sensor and time; times as tasks are "
            f"[{name}[:, :, k] for k in range({name}.shape[2])], with a list of as many y."
        )
    raise ValueError(f"Expected 2D array, got {ndim}D {kind} instead for {name}. {hint}")
