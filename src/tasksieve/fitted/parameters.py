"""A constructor stores its parameters and does nothing else."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

_PLAIN = (str, bool, int, float, type(None))  # what nobody can change behind our back



def keep_parameters(estimator: Any, arguments: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, under their own names."""
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def unfitted(estimator: Any) -> Any:
    """A copy with the same parameters and nothing fitted: `sklearn.base.clone`, for our own models, without its search.

    Every path keeps one, and a path may take no longer than a few milliseconds.
    """
    arguments = {name: getattr(estimator, name) for name in _names(type(estimator))}  # type: ignore[arg-type]
    return type(estimator)(
        **{name: value if isinstance(value, _PLAIN) else deepcopy(value) for name, value in arguments.items()}
    )


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(kind._get_param_names())
