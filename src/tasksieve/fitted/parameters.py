"""A constructor stores its parameters and does nothing else."""

from __future__ import annotations

from typing import Any


def keep_parameters(estimator: Any, arguments: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, under their own names."""
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
