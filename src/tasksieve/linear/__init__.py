"""Linear models of several tasks."""

from .calibrated import CalibratedMultiTaskLasso, CalibratedMultiTaskLassoCV
from .elastic_net import MultiTaskElasticNet, MultiTaskElasticNetCV
from .generic import MultiTaskRegressor, MultiTaskRegressorCV
from .group_lasso import MultiTaskGroupLasso, MultiTaskGroupLassoCV
from .lasso import MultiTaskLasso, MultiTaskLassoCV
from .logistic import MultiTaskLogisticRegression, MultiTaskLogisticRegressionCV
from .owl import MultinomialOWL, MultinomialOWLCV, MultiTaskOWL, MultiTaskOWLCV
from .sparse_group import MultiTaskSparseGroupLasso, MultiTaskSparseGroupLassoCV

__all__ = [
    "CalibratedMultiTaskLasso",
    "CalibratedMultiTaskLassoCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskGroupLasso",
    "MultiTaskGroupLassoCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "MultiTaskLogisticRegression",
    "MultiTaskLogisticRegressionCV",
    "MultiTaskOWL",
    "MultiTaskOWLCV",
    "MultiTaskRegressor",
    "MultiTaskRegressorCV",
    "MultiTaskSparseGroupLasso",
    "MultiTaskSparseGroupLassoCV",
    "MultinomialOWL",
    "MultinomialOWLCV",
]
