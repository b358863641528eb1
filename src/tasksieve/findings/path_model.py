"""What a finding asks of a model: that it is linear, or has a path."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def name_of(model: Any) -> str:
    """The name of an estimator's class, or of a class that was given in place of an estimator."""
    return str((model if isinstance(model, type) else type(model)).__name__)


def check_linear(model: Any, reason: str) -> None:
    """Refuse, for a reason, what is not a linear model with a loss."""
    if isinstance(model, type) or not (hasattr(model, "_read_with") and hasattr(model, "_loss_of")):
        raise ValueError(f"model: {name_of(model)} {reason}")


def path_model(model: Any, caller: str) -> Any:
    """A model with `path`, `alpha_max` and a problem of its own: of a ``...CV`` model the one that it repeats."""
    if hasattr(model, "_candidates"):
        found = model._candidates()
        if len(found) == 1:
            return found[0]
        try:
            check_is_fitted(model, "path_")
        except ValueError:
            raise ValueError(
                f"model: {type(model).__name__} compares {len(found)} models, and {caller} is about one. Fit it first, "
                f"or give {type(found[0]).__name__} with the values that you mean."
            ) from None
        return model.path_._estimator
    if isinstance(model, type) or not (hasattr(model, "_problem") and hasattr(model, "alpha_max")):
        name = name_of(model)
        raise ValueError(
            f"model: {name} has no path of penalty strengths; {caller} needs an estimator with `path` and `alpha_max`, "
            f"{'an instance of it: ' + name + '()' if hasattr(model, 'alpha_max') else 'MultiTaskLasso() for example'}."
        )
    return model
