"""Parameters that several estimators have: each is described once, in `PARAMETERS`.

From this table come the defaults of constructors, the checks (`check_common`), the entries of docstrings
(`fitted.documented`) and what the command line says of them. A constructor names its own parameters and takes the
common ones as ``**options``, whose names and types are those of a `typing.TypedDict` below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypedDict

from ..docstrings import Entry, written
from . import allowed
from .allowed import check_switch
from .arguments import check_jobs

_PLAIN = (str, bool, int, float, type(None))  # immutable: no copy is needed


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that several estimators have.

    - `kind`: Its type in the words of the documentation.
    - `text`: What it is for.
    - `check`: ``check(value, name)`` raises where the value is not allowed.
    - `option`: The option of the command line, where it is not ``--name``.
    - `help`: What the command line says of it, where that is not ``text``.
    """

    name: str
    kind: str
    default: Any
    text: str
    check: Callable[[Any, str], None] | None = None
    option: str | None = None
    help: str | None = None

    def with_sentence(self, text: str) -> Parameter:
        """The same parameter with a further sentence."""
        return replace(self, text=f"{self.text} {text}")

    def entry(self, default: Any) -> Entry:
        """Its entry in a docstring, with the default of a signature."""
        kind = self.kind
        if "default=" not in kind:
            kind += ", optional" if default is None else f", default={_shown(default)}"
        return written(self.name, kind, self.text)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value).replace("e-0", "e-")


def table(*parameters: Parameter) -> dict[str, Parameter]:
    """Parameters by name, in the order of signatures."""
    return {parameter.name: parameter for parameter in parameters}


_WITHOUT_EFFECT = "For compatibility with scikit-learn; without effect"

#: of models with a penalty strength, in the order of signatures
PARAMETERS = table(
    Parameter(
        "alpha",
        "float",
        1.0,
        "Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected.",
    ),
    Parameter(
        "ridge",
        "float",
        0.0,
        "Strength of the ridge beside the penalty, >= 0.",
    ),
    Parameter(
        "task_graph",
        '"chain", array or sparse matrix of shape (T, T), or networkx graph',
        None,
        "A: symmetric weights >= 0 of the edges between tasks, whose coefficients become similar. Rows are in the "
        "order of ``tasks_``; the nodes of a networkx graph are the labels of tasks, all of them and no others. "
        '"chain": each task beside the next in ``tasks_``, as for time points.',
    ),
    Parameter(
        "graph_strength",
        "float",
        1.0,
        r":math:`\gamma` >= 0. Like the ridge it does not grow with alpha; features that are never penalised are not "
        "coupled.",
    ),
    Parameter(
        "class_weight",
        'dict or "balanced"',
        None,
        "Factors of the sample weights, by label (1 for those not named), or such that within each task every class "
        "counts alike.",
        allowed.check_class_weight,
    ),
    Parameter(
        "alphas",
        "array or int",
        None,
        "Values to compare; an integer is another way to give ``n_alphas``.",
        allowed.check_alphas,
    ),
    Parameter(
        "n_alphas",
        "int",
        100,
        "Number of values, geometrically from ``alpha_max`` to ``eps`` times that.",
        allowed.check_count,
    ),
    Parameter(
        "eps",
        "float",
        1e-2,
        "The smallest value / ``alpha_max``.",
        allowed.check_share,
    ),
    Parameter(
        "cv",
        "int, splitter or iterable of (train, test) row indices, default=5",
        None,
        "An integer: that many folds, shuffled within each task (and class); rows of one of the ``groups`` of `fit` "
        "stay together. Splitters that take groups get those, or else the tasks. Rows are counted in the order given "
        "(lists: stacked).",
    ),
    Parameter(
        "scoring",
        "str or callable",
        None,
        "Name of a scikit-learn scorer, or ``scorer(estimator, X, y)``, greater is better. It judges the held-out rows "
        "of each task, and tasks count alike, but for those where it is not defined. By default the loss.",
        allowed.check_scorer,
    ),
    Parameter(
        "selection_rule",
        '{"min", "1se"}',
        "min",
        "The smallest mean loss, or the largest alpha within one standard error of it.",
        allowed.check_selection_rule,
    ),
    Parameter(
        "fold_tol",
        "float",
        None,
        "Relative gap that folds are solved to; by default the larger of ``tol`` and 1e-4. The final path keeps "
        "``tol``.",
        allowed.check_tolerance,
    ),
    Parameter(
        "early_stopping",
        "bool",
        False,
        "All folds stop at the same value, when their mean loss has stayed above its minimum for 15 values in a row. "
        "Values given in ``alphas`` are all solved.",
        check_switch,
    ),
    Parameter(
        "fit_intercept",
        "bool",
        True,
        "One intercept per task (and class), not penalised.",
        check_switch,
    ),
    Parameter(
        "positive",
        "bool",
        False,
        "Only coefficients >= 0.",
        check_switch,
    ),
    Parameter(
        "standardize",
        "bool",
        False,
        "Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` is in the "
        "units of X all the same.",
        check_switch,
    ),
    Parameter(
        "feature_weights",
        "array of shape (d,)",
        None,
        r":math:`u_j \ge 0`, the weights of the features in the penalty; 0 means never penalised.",
        allowed.check_feature_weights,
    ),
    Parameter(
        "task_weights",
        'array of shape (T,), dict or "balanced"',
        None,
        r":math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or :math:`\bar n / n_t`, "
        "so that every task counts once.",
        allowed.check_task_weights,
    ),
    Parameter(
        "tol",
        "float",
        1e-6,
        "Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.",
        allowed.check_tolerance,
    ),
    Parameter(
        "max_iter",
        "int",
        10_000,
        "Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.",
        allowed.check_count,
    ),
    Parameter(
        "screening",
        '{"auto", "dpc", "midpoint", "gap", None}',
        "auto",
        "Safe rule that discards features before and while solving; None: no screening.",
    ),
    Parameter(
        "warm_start",
        "bool",
        False,
        "Start from the solution of the last `fit`.",
        check_switch,
    ),
    Parameter(
        "n_jobs",
        "int",
        None,
        "Threads of the kernels; by default all processors available (see ``TASKSIEVE_NUM_THREADS``).",
        check_jobs,
        option="--threads",
    ),
    Parameter(
        "device",
        "str or torch.device",
        None,
        'Where X is worked on, "cuda" for example: it is moved there once a fit (`on_device` moves it once for many). '
        "By default X stays where it is, a tensor on its device.",
        allowed.check_device_name,
    ),
    Parameter(
        "verbose",
        "int",
        0,
        "Report progress on stderr, about once a second; with 2, a line for each value with its cost.",
        allowed.check_verbose,
    ),
    Parameter(
        "copy_X",
        "bool",
        True,
        f"{_WITHOUT_EFFECT}: X is never modified.",
        check_switch,
    ),
    Parameter(
        "selection",
        '{"cyclic", "random"}',
        "cyclic",
        f"{_WITHOUT_EFFECT}: the solver is deterministic.",
        allowed.check_selection,
    ),
    Parameter(
        "random_state",
        "int, RandomState, Generator or None, default=None",
        None,
        f"{_WITHOUT_EFFECT}: the solver is deterministic.",
        allowed.check_seed,
        option="--seed",
    ),
)

#: of their siblings that choose by cross-validation
CROSS_VALIDATED = PARAMETERS | table(
    PARAMETERS["class_weight"].with_sentence("They count in the held-out loss, too, but not in ``scoring``."),
    Parameter(
        "n_jobs",
        "int",
        None,
        "Folds solved side by side, in threads that share X; by default one at a time, with all processors.",
        check_jobs,
        option="--threads",
    ),
    Parameter(
        "random_state",
        "int, RandomState, Generator or None, default=None",
        None,
        "Seed of the shuffled folds; None is 0. The fold of a row depends on it, on its task's place in ``tasks_`` and "
        "on its place among that task's observed rows.",
        allowed.check_seed,
        option="--seed",
    ),
)

# Parameters of few models, or with a text of their own in each: checked by the same names.
_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "hasher": allowed.check_hasher,
    "shuffle": check_switch,
    "task_feature": allowed.check_name,
}


class SolverOptions(TypedDict, total=False):
    """Options of every linear model with a penalty strength."""

    fit_intercept: bool
    standardize: bool
    tol: float
    max_iter: int
    screening: str | None
    n_jobs: int | None
    device: Any
    verbose: int


class FoldOptions(TypedDict, total=False):
    """Options of a cross-validation along a path."""

    n_alphas: int
    eps: float
    cv: Any
    scoring: Any
    selection_rule: Literal["min", "1se"]
    fold_tol: float | None
    early_stopping: bool
    random_state: Any


class TaskOptions(TypedDict, total=False):
    """Of models of several tasks."""

    positive: bool
    task_weights: Any


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


class PathCVOptions(FoldOptions, SolverOptions, TaskOptions, FeatureWeights, total=False):
    """Several tasks, the strength by cross-validation."""


class LassoOptions(PathOptions, ScikitLearnOptions, total=False):
    """The same, and what scikit-learn's namesake takes."""

    random_state: Any


class LassoCVOptions(PathCVOptions, ScikitLearnOptions, total=False):
    """The same, and what scikit-learn's namesake takes."""


def keep_parameters(estimator: Any, arguments: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, under their own names.

    Common parameters that were not given get their defaults (the class is `documented`).
    """
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

    Every path keeps one, and a path may take no longer than a few milliseconds.
    """
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
    return tuple((name, check) for name in _names(kind) if (check := common.get(name)) is not None)  # type: ignore[arg-type]


def check_common(estimator: Any) -> None:
    """Refuse, by name, parameters of an estimator that are not what their names stand for everywhere."""
    for name, check in _checks(type(estimator)):  # type: ignore[arg-type]
        check(getattr(estimator, name), name)
