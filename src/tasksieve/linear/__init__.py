"""Linear models of several tasks."""

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
