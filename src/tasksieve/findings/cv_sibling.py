"""The cross-validated sibling of an estimator, and what it is for one task alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.base import clone

from ..fitted.choosing import CrossValidated
from ..fitted.folds import ShuffledFolds, read_cv
from .path_model import name_of


def cv_sibling(model: Any, caller: str) -> Any:
    """A model that chooses its own strength: the model itself, or its ``...CV`` sibling with the same parameters."""
    if isinstance(model, CrossValidated):
        return clone(model)
    kind = type(model)
    siblings = [] if isinstance(model, type) else [found for found in _kinds() if found._estimator is kind]
    if not siblings:
        name = name_of(model)
        what = f"an instance of it: {name}()" if isinstance(model, type) else "MultiTaskLasso() or MultiTaskLassoCV()"
        raise ValueError(
            f"model: {name} has no sibling that chooses its strength by cross-validation, which {caller} repeats in "
            f"every fold. Give an estimator that has one, or the sibling itself ({what}, for example)."
        )
    sibling = siblings[0]
    own, known = model.get_params(deep=False), sibling().get_params(deep=False)
    return sibling(**{name: value for name, value in own.items() if name in known and name not in ("C", "alpha")})


def _kinds() -> Iterator[Any]:
    """The cross-validated models that there are; a sibling's own class comes before those derived from it."""
    waiting: list[Any] = [CrossValidated]
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        if hasattr(kind, "_estimator"):
            yield kind


def inner_folds(model: Any, caller: str) -> int:
    """Number of folds that a cross-validated model chooses by."""
    cv = read_cv(model.cv)
    if isinstance(cv, int | ShuffledFolds):
        return cv if isinstance(cv, int) else cv.n_splits
    raise ValueError(
        f"model: its cv is {cv!r}, but {caller} makes the folds inside its own folds itself: give a whole number >= 2."
    )


def with_classes(model: Any, labels: Any) -> Any:
    """A copy of the model whose class weights name none but these labels."""
    own = getattr(model, "class_weight", None)
    if not isinstance(own, Mapping):
        return clone(model)
    return clone(model).set_params(class_weight={label: own[label] for label in own if label in labels})
