"""Parameters of estimators in constructors and checks, by the tables of `tasksieve.parameters`.

A constructor names its own parameters and takes the common ones as ``**options``, whose names and types are those of a
`typing.TypedDict` below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Literal, TypedDict

from ..parameters import PARAMETERS
from . import allowed

_PLAIN = (str, bool, int, float, type(None))  # immutable: no copy is needed


# Parameters with a text of their own in each model: checked by the same names.
_CHECKS = {"hasher": "hasher", "shuffle": "switch", "task_feature": "name"}
_OPTIONAL = {"hasher", "shuffle", *(name for name, found in PARAMETERS.items() if found.default is None)}


class BareSolverOptions(TypedDict, total=False):
    """Options of every linear model with a penalty strength, whether it has intercepts or not."""

    standardize: bool
    tol: float
    max_iter: int
    screening: str | None
    n_jobs: int | None
    device: Any
    verbose: int


class SolverOptions(BareSolverOptions, total=False):
    """The same of models with intercepts."""

    fit_intercept: bool


class ChoiceOptions(TypedDict, total=False):
    """How values are chosen by held-out rows."""

    cv: Any
    scoring: Any
    selection_rule: Literal["min", "1se"]
    fold_tol: float | None


class FoldOptions(ChoiceOptions, total=False):
    """Options of a cross-validation along a path."""

    n_alphas: int
    eps: float
    early_stopping: bool
    random_state: Any


class KeptFoldOptions(FoldOptions, total=False):
    """The same of models whose predictions can be calibrated by the rows held out."""

    keep_folds: bool | Literal["nested"]


class TaskOptions(TypedDict, total=False):
    """Of models of several tasks."""

    positive: bool
    task_weights: Any
    task: str | int | None


class FeatureWeights(TypedDict, total=False):
    """Of penalties that do not rank the features."""

    feature_weights: Any


class ScikitLearnOptions(TypedDict, total=False):
    """Of models with a namesake in scikit-learn; without effect."""

    copy_X: bool
    selection: str


class PathOptions(SolverOptions, TaskOptions, FeatureWeights, total=False):
    """Several tasks, one strength."""

    warm_start: bool


class PathCVOptions(KeptFoldOptions, SolverOptions, TaskOptions, FeatureWeights, total=False):
    """Several tasks, the strength by cross-validation."""


class LassoOptions(PathOptions, ScikitLearnOptions, total=False):
    """The same, and what scikit-learn's namesake takes."""

    random_state: Any


class LassoCVOptions(PathCVOptions, ScikitLearnOptions, total=False):
    """The same, and what scikit-learn's namesake takes."""


def keep_parameters(estimator: Any, arguments: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, under their own names; common parameters that were not
    given get their defaults (the class is `documented`)."""
    options = arguments.get("options")
    for name, value in arguments.items():
        if name not in ("self", "__class__", "options"):
            setattr(estimator, name, value)
    if options is None:
        return
    defaults: Mapping[str, Any] = estimator._option_defaults
    for name in options:
        if name not in defaults:
            kind = type(estimator).__name__
            raise TypeError(f"{kind}.__init__() got an unexpected keyword argument {name!r}")
    for name, default in defaults.items():
        setattr(estimator, name, options.get(name, default))


def unfitted(estimator: Any) -> Any:
    """A copy with the same parameters and nothing fitted: `sklearn.base.clone`, for our own models, without its search.
    Every path keeps one, and a path may take no longer than a few milliseconds."""
    arguments = {name: getattr(estimator, name) for name in _names(type(estimator))}  # type: ignore[arg-type]
    return type(estimator)(
        **{name: value if isinstance(value, _PLAIN) else deepcopy(value) for name, value in arguments.items()}
    )


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


@cache
def _checks(kind: type[Any]) -> tuple[tuple[str, Callable[[Any, str], None]], ...]:
    common = {name: found.check for name, found in PARAMETERS.items()} | _CHECKS
    common.pop(getattr(kind, "_compared", None) or "", None)  # several values: each model checks its own
    named = [(name, common.get(name)) for name in _names(kind)]  # type: ignore[arg-type]
    return tuple((name, getattr(allowed, f"check_{check}")) for name, check in named if check is not None)


def check_common(estimator: Any) -> None:
    """Refuse, by name, parameters of an estimator that are not what their names stand for everywhere."""
    for name, check in _checks(type(estimator)):  # type: ignore[arg-type]
        value = getattr(estimator, name)
        if value is not None or name not in _OPTIONAL:
            check(value, name)
