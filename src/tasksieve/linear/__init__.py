"""Linear models of several tasks.

A model is loaded when it is first used: each brings its documentation, its checks and its requests for metadata.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calibrated import CalibratedMultiTaskLasso, CalibratedMultiTaskLassoCV
    from .classifier import (
        MultiTaskClassifier,
        MultiTaskClassifierCV,
        MultiTaskLogisticRegression,
        MultiTaskLogisticRegressionCV,
    )
    from .cox import MultiTaskCox, MultiTaskCoxCV
    from .generic import MultiTaskRegressor, MultiTaskRegressorCV
    from .group_lasso import MultiTaskGroupLasso, MultiTaskGroupLassoCV
    from .lasso import MultiTaskElasticNet, MultiTaskElasticNetCV, MultiTaskLasso, MultiTaskLassoCV
    from .mixed import MultiTaskMixed, MultiTaskMixedCV
    from .ordinal import MultiTaskOrdinal, MultiTaskOrdinalCV
    from .owl import MultinomialOWL, MultinomialOWLCV, MultiTaskOWL, MultiTaskOWLCV
    from .regressions import (
        MultiTaskHuber,
        MultiTaskHuberCV,
        MultiTaskPoisson,
        MultiTaskPoissonCV,
        MultiTaskQuantile,
        MultiTaskQuantileCV,
    )
    from .sparse_group import MultiTaskSparseGroupLasso, MultiTaskSparseGroupLassoCV

# The file of each model; beside it is the one with CV behind its name, which chooses alpha.
_HOME = {
    "CalibratedMultiTaskLasso": "calibrated",
    "MultiTaskClassifier": "classifier",
    "MultiTaskCox": "cox",
    "MultiTaskElasticNet": "lasso",
    "MultiTaskGroupLasso": "group_lasso",
    "MultiTaskHuber": "regressions",
    "MultiTaskLasso": "lasso",
    "MultiTaskLogisticRegression": "classifier",
    "MultiTaskMixed": "mixed",
    "MultiTaskOWL": "owl",
    "MultiTaskOrdinal": "ordinal",
    "MultiTaskPoisson": "regressions",
    "MultiTaskQuantile": "regressions",
    "MultiTaskRegressor": "generic",
    "MultiTaskSparseGroupLasso": "sparse_group",
    "MultinomialOWL": "owl",
}

__all__ = [
    "CalibratedMultiTaskLasso",
    "CalibratedMultiTaskLassoCV",
    "MultiTaskClassifier",
    "MultiTaskClassifierCV",
    "MultiTaskCox",
    "MultiTaskCoxCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskGroupLasso",
    "MultiTaskGroupLassoCV",
    "MultiTaskHuber",
    "MultiTaskHuberCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "MultiTaskLogisticRegression",
    "MultiTaskLogisticRegressionCV",
    "MultiTaskMixed",
    "MultiTaskMixedCV",
    "MultiTaskOWL",
    "MultiTaskOWLCV",
    "MultiTaskOrdinal",
    "MultiTaskOrdinalCV",
    "MultiTaskPoisson",
    "MultiTaskPoissonCV",
    "MultiTaskQuantile",
    "MultiTaskQuantileCV",
    "MultiTaskRegressor",
    "MultiTaskRegressorCV",
    "MultiTaskSparseGroupLasso",
    "MultiTaskSparseGroupLassoCV",
    "MultinomialOWL",
    "MultinomialOWLCV",
]
__dir__ = __all__.copy  # TAB shows these alone


if not TYPE_CHECKING:  # who checks types knows the names from above, and a name that is none by its absence

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name.removesuffix('CV')]}"), name)
        globals()[name] = value
        return value
