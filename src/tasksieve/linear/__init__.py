"""Linear models of several tasks."""

from .elastic_net import MultiTaskElasticNet, MultiTaskElasticNetCV
from .lasso import MultiTaskLasso, MultiTaskLassoCV
from .logistic import MultiTaskLogisticRegression, MultiTaskLogisticRegressionCV
from .sparse_group import MultiTaskSparseGroupLasso, MultiTaskSparseGroupLassoCV

__all__ = [
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "MultiTaskLogisticRegression",
    "MultiTaskLogisticRegressionCV",
    "MultiTaskSparseGroupLasso",
    "MultiTaskSparseGroupLassoCV",
]
