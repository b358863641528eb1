"""Linear models of several tasks."""

from .calibrated import CalibratedMultiTaskLasso, CalibratedMultiTaskLassoCV
from .classifier import MultiTaskClassifier, MultiTaskClassifierCV
from .elastic_net import MultiTaskElasticNet, MultiTaskElasticNetCV
from .generic import MultiTaskRegressor, MultiTaskRegressorCV
from .group_lasso import MultiTaskGroupLasso, MultiTaskGroupLassoCV
from .huber import MultiTaskHuber, MultiTaskHuberCV
from .lasso import MultiTaskLasso, MultiTaskLassoCV
from .logistic import MultiTaskLogisticRegression, MultiTaskLogisticRegressionCV
from .owl import MultinomialOWL, MultinomialOWLCV, MultiTaskOWL, MultiTaskOWLCV
from .poisson import MultiTaskPoisson, MultiTaskPoissonCV
from .quantile import MultiTaskQuantile, MultiTaskQuantileCV
from .sparse_group import MultiTaskSparseGroupLasso, MultiTaskSparseGroupLassoCV

__all__ = [
    "CalibratedMultiTaskLasso",
    "CalibratedMultiTaskLassoCV",
    "MultiTaskClassifier",
    "MultiTaskClassifierCV",
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
    "MultiTaskOWL",
    "MultiTaskOWLCV",
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
