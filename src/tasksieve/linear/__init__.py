"""Linear models of several tasks."""

from .calibrated import CalibratedMultiTaskLasso, CalibratedMultiTaskLassoCV
from .classifier import MultiTaskClassifier, MultiTaskClassifierCV
from .elastic_net import MultiTaskElasticNet, MultiTaskElasticNetCV
from .generic import MultiTaskRegressor, MultiTaskRegressorCV
from .lasso import MultiTaskLasso, MultiTaskLassoCV
from .logistic import MultiTaskLogisticRegression, MultiTaskLogisticRegressionCV
from .owl import MultinomialOWL, MultinomialOWLCV, MultiTaskOWL, MultiTaskOWLCV
from .sparse_group import MultiTaskSparseGroupLasso, MultiTaskSparseGroupLassoCV

__all__ = [
    "CalibratedMultiTaskLasso",
    "CalibratedMultiTaskLassoCV",
    "MultiTaskClassifier",
    "MultiTaskClassifierCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
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
