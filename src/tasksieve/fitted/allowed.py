"""What the parameters that estimators have in common may be: a check for each, which `tasksieve.parameters` names.

None is allowed without a check where it is the default. Parameters whose meaning depends on the model are checked by
it, with `arguments`, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from ..complex_numbers import refuse_complex
from ..design.device.machine import read_device
from ..messages import ParameterError
from ..tasks import refuse_masked_or_complex
from ..tasks.task_column import check_column as check_column  # it is named in the table, too
from .arguments import check_choice, check_number
from .arguments import check_jobs as check_jobs  # it is named in the table, too
from .fold_assignment import read_seed
from .held_out import read_scorer


def check_switch(value: Any, name: str) -> None:
    """Refuse what is neither True nor False: other values would be taken for one of them in silence."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, "must be True or False", value)


def check_kept(value: Any, name: str) -> None:
    """Refuse what is not allowed for the models of folds."""
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, str) and value == "nested"):
        raise ParameterError(name, "must be True, False or 'nested'", value)


def check_numbers(value: Any, name: str, words: str) -> None:
    """Refuse an array whose entries are no numbers; how many there must be, and of which size, the data will say."""
    refuse_complex(value, name)
    try:
        np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(name, f"must be {words}", value) from None


def check_verbose(value: Any, name: str) -> None:
    if not isinstance(value, bool | np.bool_):
        check_number(value, name, low=0, closed=True, integer=True)


def check_alphas(value: Any, name: str) -> None:
    if isinstance(value, Integral):
        check_count(value, name)
    else:
        check_numbers(value, name, "None, a number of values, or the values themselves, numbers > 0")


def check_task_weights(value: Any, name: str) -> None:
    words = "None, 'balanced', a dict of task and number, or an array of one number > 0 for each task"
    if isinstance(value, Mapping):
        check_numbers(list(value.values()), name, words)
    elif not (isinstance(value, str) and value == "balanced"):
        check_numbers(value, name, words)


def check_class_weight(value: Any, name: str) -> None:
    words = "None, 'balanced', or a dict of class and number"
    if isinstance(value, Mapping):
        check_numbers(list(value.values()), name, words)
    elif not (isinstance(value, str) and value == "balanced"):
        raise ParameterError(name, f"must be {words}", value)


def check_seed(value: Any, name: str) -> None:
    if not isinstance(value, np.random.RandomState | np.random.Generator):  # drawing changes them
        read_seed(value)


def check_device(value: Any, name: str) -> None:
    """Refuse a device that is not there."""
    if not isinstance(value, str) and not hasattr(value, "type"):  # tested without torch, which may not be installed
        raise ParameterError(name, "must be None or name a device, such as 'cuda'", value)
    read_device(value)


def check_l1(value: Any, name: str) -> None:
    """Refuse factors of an l1 penalty that are not a number >= 0, nor one for each feature."""
    refuse_masked_or_complex(value, name, ("feature",))
    if np.ndim(value) == 0:
        check_number(value, name, low=0, closed=True)
        return
    try:
        factors = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        factors = np.full((1, 1), np.nan)
    if factors.ndim != 1 or not np.all(np.isfinite(factors)) or np.any(factors < 0):
        raise ParameterError(name, "must be a number >= 0, or one such number per feature")


def check_scorer(value: Any, name: str) -> None:
    read_scorer(value)


def check_name(value: Any, name: str) -> None:
    try:
        hash(value)
    except TypeError:
        raise ParameterError(name, "must be the name of a feature, a word say", value) from None


def check_hasher(value: Any, name: str) -> None:
    if not hasattr(value, "source"):
        raise ParameterError(name, "must be None or a WeightedDegreeHasher", value)


check_feature_weights = partial(check_numbers, words="None, or an array of one number >= 0 for each feature")
check_positive = partial(check_number, low=0, closed=False)
check_not_negative = partial(check_number, low=0, closed=True)
check_share = partial(check_number, low=0, closed=False, high=1.0)
check_count = partial(check_number, low=1, closed=True, integer=True)
check_selection = partial(check_choice, allowed=("cyclic", "random"))
check_selection_rule = partial(check_choice, allowed=("min", "1se"))
