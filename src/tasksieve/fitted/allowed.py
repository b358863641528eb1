"""What the parameters that estimators have in common may be: one table, by name.

Parameters of single models (``delta``, ``l1_ratio``, ...) are checked by these, in the same words (`arguments`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np

from ..complex_numbers import refuse_complex
from .arguments import check_choice, check_device, check_jobs, check_number
from .deal import read_seed
from .held_out import read_scorer


def check_switch(value: Any, name: str) -> None:
    """Refuse what is neither True nor False: other values would be taken for one of them in silence."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"The {name!r} parameter must be True or False; got {value!r}.")


def check_numbers(value: Any, name: str, words: str) -> None:
    """Refuse an array whose entries are no numbers; how many there must be, and of which size, the data will say."""
    refuse_complex(value, name)
    try:
        np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"The {name!r} parameter must be {words}; got {value!r}.") from None


def _verbose(value: Any, name: str) -> None:
    if not isinstance(value, bool | np.bool_):
        check_number(value, name, low=0, closed=True, integer=True)


def _alphas(value: Any, name: str) -> None:
    if value is None:
        return
    if isinstance(value, Integral):
        check_number(value, name, low=1, closed=True, integer=True)
        return
    check_numbers(value, name, "None, a number of values, or the values themselves, numbers > 0")


def _feature_weights(value: Any, name: str) -> None:
    if value is not None:
        check_numbers(value, name, "None, or an array of one number >= 0 for each feature")


def _task_weights(value: Any, name: str) -> None:
    words = "None, 'balanced', a dict of task and number, or an array of one number > 0 for each task"
    if isinstance(value, Mapping):
        check_numbers(list(value.values()), name, words)
    elif value is not None and not (isinstance(value, str) and value == "balanced"):
        check_numbers(value, name, words)


def _class_weight(value: Any, name: str) -> None:
    words = "None, 'balanced', or a dict of class and number"
    if isinstance(value, Mapping):
        check_numbers(list(value.values()), name, words)
    elif value is not None and not (isinstance(value, str) and value == "balanced"):
        raise ValueError(f"The {name!r} parameter must be {words}; got {value!r}.")


def _seed(value: Any, name: str) -> None:
    if not isinstance(value, np.random.RandomState | np.random.Generator):  # asking one would change its next answer
        read_seed(value)


def _device(value: Any, name: str) -> None:
    check_device(value)


def _scorer(value: Any, name: str) -> None:
    read_scorer(value)


def _name(value: Any, name: str) -> None:
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"The {name!r} parameter must be the name of a feature, a word say; got {value!r}.") from None


def _hasher(value: Any, name: str) -> None:
    if value is not None and not hasattr(value, "source"):
        raise ValueError(f"The {name!r} parameter must be None or a WeightedDegreeHasher; got {value!r}.")


RULES: dict[str, Callable[[Any, str], None]] = {
    "alphas": _alphas,
    "class_weight": _class_weight,
    "copy_X": check_switch,
    "device": _device,
    "early_stopping": check_switch,
    "eps": lambda value, name: check_number(value, name, low=0, closed=False, high=1.0),
    "feature_weights": _feature_weights,
    "fit_intercept": check_switch,
    "fold_tol": lambda value, name: None if value is None else check_number(value, name, low=0, closed=True),
    "hasher": _hasher,
    "max_iter": lambda value, name: check_number(value, name, low=1, closed=True, integer=True),
    "n_alphas": lambda value, name: check_number(value, name, low=1, closed=True, integer=True),
    "n_jobs": check_jobs,
    "positive": check_switch,
    "random_state": _seed,
    "scoring": _scorer,
    "selection": lambda value, name: check_choice(value, name, ("cyclic", "random")),
    "selection_rule": lambda value, name: check_choice(value, name, ("min", "1se")),
    "shuffle": check_switch,
    "standardize": check_switch,
    "task_weights": _task_weights,
    "task_feature": _name,
    "tol": lambda value, name: check_number(value, name, low=0, closed=True),
    "verbose": _verbose,
    "warm_start": check_switch,
}


@cache
def _checked(kind: type[Any]) -> tuple[str, ...]:
    return tuple(name for name in kind._get_param_names() if name in RULES)


def check_common(estimator: Any) -> None:
    """Refuse, by name, parameters of an estimator that are not what their names stand for everywhere."""
    for name in _checked(type(estimator)):  # type: ignore[arg-type]
        RULES[name](getattr(estimator, name), name)
