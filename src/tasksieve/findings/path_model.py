"""The model whose path a finding follows."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


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
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise ValueError(
            f"model: {name} has no path of penalty strengths; {caller} needs an estimator with `path` and `alpha_max`, "
            f"{'an instance of it: ' + name + '()' if hasattr(model, 'alpha_max') else 'MultiTaskLasso() for example'}."
        )
    return model
