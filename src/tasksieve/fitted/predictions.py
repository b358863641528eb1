"""The types of what estimators answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from sklearn.utils import metaestimators

#: An array; but a list for a list of tasks, a tensor for a tensor, a dask array for a dask array.
Predictions: TypeAlias = "np.ndarray[Any, Any] | Any"

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """scikit-learn's decorator of methods that not every model has; here they keep their type."""
    return cast("Callable[[Method], Method]", metaestimators.available_if(check))
