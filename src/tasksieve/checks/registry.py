"""Everything the package has, ready to be checked: losses and penalties by their names, the others one by one.

Each dictionary has a name for every instance; a class may have several. The tests find
public classes that are missing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .. import linear, losses, online, penalties, solvers, svm
from ..design import (
    BesideStorage,
    DenseStorage,
    MappedRowStorage,
    PlinkStorage,
    RepeatedStorage,
    SparseStorage,
    StepStorage,
    Storage,
)
from ..design.storage import Beside, Interactions, OwnStorage, Scaled, ScaledStorage, SharedReading
from ..design.storage.present import ColumnGroup, PresentStorage
from ..graph import complete_graph
from ..losses import (
    Expectile,
    Gamma,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Poisson,
    Quantile,
    Squared,
    SquareRoot,
    Tweedie,
)
from ..penalties import L21, Dirty, Groups, LInf, RowPenalty, Sorted, SparseGroup

Array = np.ndarray[Any, Any]

#: every penalty that has a name, other packages' too, and some with other parameters
PENALTIES: dict[str, RowPenalty] = {
    **{name: penalties.BY_NAME[name]() for name in penalties.BY_NAME.offered()},
    "sparse_group": SparseGroup(0.2),
    "sparse group, mostly entries": SparseGroup(1.0, 0.3),
    "dirty, near L1,1": Dirty(1.35),
    "groups": Groups([0, 0, 1, 2, 2, 2]),
    "groups, not side by side": Groups(["a", "b", "a", "c", "b", "a", "d"], weights=None),
    "groups, rows inside": Groups([0, 0, 1, 1, 1, 2], "rows"),
    "groups, entries inside": Groups({"x": [0, 3], "y": [1, 2, 4]}, "entries", mix=0.3, weights={"x": 1.0, "y": 2.0}),
    "sorted, SLOPE": Sorted("slope", fdr=0.3),
    "sorted, Bao's test": Sorted(test="bao"),
}

LOSSES: dict[str, Loss] = {
    **{name: kind() for name, kind in losses.BY_NAME.items()},
    "Huber, narrow": Huber(0.2),
    "quantile, one-sided": Quantile(0.9, 0.5),
    "expectile, one-sided": Expectile(0.9),
    "negative binomial, small": NegativeBinomial(0.2),
    "Tweedie, near gamma": Tweedie(1.9),
}


class Columns(Storage):
    """A user-defined storage: columns in a list."""

    def __init__(self, x: Array) -> None:
        self.columns = [column.copy() for column in x.T]
        self.n_rows, self.n_features = x.shape

    def take(self, features: Array) -> Array:
        if len(features) == 0:
            return np.empty((self.n_rows, 0))
        return np.stack([self.columns[j] for j in features], axis=1)


def packed(x: Array) -> Array:
    """Counts 0, 1 and 2 as PLINK's bytes, a variant in each row."""
    codes = np.zeros((x.shape[1], 4 * ((len(x) + 3) // 4)), dtype=np.uint8)
    codes[:, : len(x)] = np.array([3, 2, 0], dtype=np.uint8)[x.T.astype(np.intp)]
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)
    return np.bitwise_or.reduce(codes.reshape(x.shape[1], (len(x) + 3) // 4, 4) << shifts, axis=2)


def _in_groups(x: Array) -> PresentStorage:
    """Columns in two groups. All rows have both: where some lack a group there are several tasks, and these checks ask
    for products that tasks share."""
    every = np.arange(len(x))
    groups = [np.arange(first, x.shape[1], 2) for first in (0, 1)]
    parts = [ColumnGroup(features, every, np.asfortranarray(x[:, features])) for features in groups]
    return PresentStorage(parts, len(x), x.shape[1], np.float64)


#: name -> (how it is made from an array, what the array holds)
STORAGES: dict[str, tuple[Callable[[Array], Any], str]] = {
    "dense": (lambda x: DenseStorage(np.asfortranarray(x)), "numbers"),
    "dense, float32": (lambda x: DenseStorage(np.asfortranarray(x, dtype=np.float32)), "numbers"),
    "dense, int8": (lambda x: DenseStorage(np.asfortranarray(x, dtype=np.int8)), "counts"),
    "dense, uint8": (lambda x: DenseStorage(np.asfortranarray(x, dtype=np.uint8)), "counts"),
    "in other units": (lambda x: ScaledStorage(DenseStorage(np.asfortranarray(np.ldexp(x, 900))), 900), "numbers"),
    "sparse": (lambda x: SparseStorage(sparse.csc_array(x)), "numbers"),
    "sparse, int8": (lambda x: SparseStorage(sparse.csc_array(x.astype(np.int8))), "counts"),
    "shared": (lambda x: SharedReading(DenseStorage(np.asfortranarray(x))).reader(), "numbers"),
    "shared, sparse": (lambda x: SharedReading(SparseStorage(sparse.csc_array(x))).reader(), "numbers"),
    "rows": (lambda x: MappedRowStorage([x], None), "numbers"),
    "rows in two blocks": (lambda x: MappedRowStorage([x[: len(x) // 2], x[len(x) // 2 :]], None), "numbers"),
    "rows out of order": (lambda x: MappedRowStorage([x[::-1]], np.arange(len(x))[::-1].copy()), "numbers"),
    "repeated": (
        lambda x: RepeatedStorage(DenseStorage(np.asfortranarray(x)), np.array([0, len(x)]), np.array([1])),
        "numbers",
    ),
    "2 bits": (lambda x: PlinkStorage(packed(x), len(x), np.array([0, len(x)])), "counts"),
    "2 bits, two tasks": (
        lambda x: PlinkStorage(packed(x), len(x), np.array([0, len(x) // 2, len(x)]), np.arange(x.shape[1])),
        "counts",
    ),
    "8 bits": (lambda x: StepStorage(np.asfortranarray(64 * x, dtype=np.uint8), 2.0**-6, x[:1].T), "counts"),
    "16 bits": (lambda x: StepStorage(np.asfortranarray(16384 * x, dtype=np.uint16), 2.0**-14, x[:1].T), "counts"),
    "side by side": (
        lambda x: BesideStorage(
            [
                DenseStorage(np.asfortranarray(x[:, :2])),
                PlinkStorage(packed(x[:, 2:]), len(x), np.array([0, len(x)])),
            ]
        ),
        "counts",
    ),
    "in groups of columns": (_in_groups, "numbers"),
    "user-defined": (Columns, "numbers"),
    "user-defined, as shards see it": (lambda x: OwnStorage(Columns(x)), "numbers"),
    "composed, side by side": (lambda x: Beside(x[:, :1], sparse.csc_array(x[:, 1:])), "numbers"),
    "composed, scaled": (lambda x: Scaled(2.0 * x + 1.0, np.full(x.shape[1], 0.5), np.ones(x.shape[1])), "numbers"),
    "composed, as shards see it": (lambda x: Scaled(x).in_task_order(None, np.array([0, len(x)])), "numbers"),
    "products of columns": (
        lambda x: Interactions(
            np.column_stack([x, np.ones(len(x))]), [[j, x.shape[1]] for j in range(x.shape[1])]
        ),
        "numbers",
    ),
}

#: name -> (solver, a loss and a penalty that it is for); a solver is made from the columns or from nothing
SOLVERS: dict[str, tuple[type[Any], Loss, RowPenalty]] = {
    "accelerated": (solvers.Accelerated, Squared(), L21()),
    "accelerated, logistic": (solvers.Accelerated, Logistic(), SparseGroup(0.2)),
    "accelerated, sorted": (solvers.Accelerated, Squared(), Sorted()),
    "accelerated, Poisson": (solvers.Accelerated, Poisson(), Sorted()),
    "proximal point, Huber": (solvers.ClippedPoint, Huber(0.02), L21()),
    "proximal point, quantile": (solvers.ClippedPoint, Quantile(0.8, 0.003), SparseGroup(0.2)),
    "dual Newton": (solvers.DualNewton, SquareRoot(), LInf()),
    "dual Newton, quantile": (solvers.DualNewton, Quantile(0.8, 0.003), Dirty()),
    "dual Newton, sorted": (solvers.DualNewton, SquareRoot(), Sorted()),
    "coordinate descent": (solvers.CoordinateDescent, Squared(), L21()),
    "coordinate descent, sparse group": (solvers.CoordinateDescent, Squared(), SparseGroup(0.2)),
    "coordinate descent, L1,inf": (solvers.CoordinateDescent, Squared(), LInf()),
    "coordinate descent, dirty": (solvers.CoordinateDescent, Squared(), Dirty()),
    "coordinate descent, groups": (solvers.CoordinateDescent, Squared(), Groups([0, 1, 0, 2, 2, 2])),
    "coordinate descent, groups with rows": (solvers.CoordinateDescent, Squared(), Groups([0, 1, 0, 2, 2, 2], "rows")),
    "variational Newton": (solvers.VariationalNewton, Squared(), L21()),
    "proximal Newton": (solvers.ProximalNewton, Logistic(), L21()),
    "proximal Newton, sparse group": (solvers.ProximalNewton, Logistic(), SparseGroup(0.2)),
    "proximal Newton, L1,inf": (solvers.ProximalNewton, Logistic(), LInf()),
    "proximal Newton, dirty": (solvers.ProximalNewton, Logistic(), Dirty()),
    "proximal Newton, groups": (solvers.ProximalNewton, Logistic(), Groups([0, 1, 0, 2, 2, 2], "entries")),
    "proximal Newton, Huber": (solvers.ProximalNewton, Huber(0.5), L21()),
    "proximal Newton, quantile": (solvers.ProximalNewton, Quantile(0.8, 0.3), SparseGroup(0.2)),
    "proximal Newton, Poisson": (solvers.ProximalNewton, Poisson(), L21()),
    "proximal Newton, gamma": (solvers.ProximalNewton, Gamma(), L21()),
    "proximal Newton, Tweedie": (solvers.ProximalNewton, Tweedie(), SparseGroup(0.2)),
    "proximal Newton, expectile": (solvers.ProximalNewton, Expectile(0.8), L21()),
    "manifold Newton": (solvers.ManifoldNewton, Squared(), Sorted()),
    "manifold Newton, Poisson": (solvers.ManifoldNewton, Poisson(), Sorted()),
    "proximal point": (solvers.ProximalPoint, SquareRoot(), LInf()),
    "proximal point, sorted": (solvers.ProximalPoint, SquareRoot(), Sorted()),
    "sorted FISTA": (solvers.SortedFista, Squared(), Sorted()),
    "stochastic gradient": (solvers.StochasticGradient, Squared(), Sorted()),
}

_FEW: dict[str, Any] = {"n_alphas": 4, "eps": 0.05, "cv": 3}
_FEW_PAIRS: dict[str, Any] = {"graph_strengths": [0.5, 5.0], "Cs": 3, "cv": 2}

ESTIMATORS: dict[str, Any] = {
    "lasso": linear.MultiTaskLasso(0.1),
    "lasso, no intercept": linear.MultiTaskLasso(0.1, fit_intercept=False),
    "lasso, standardised": linear.MultiTaskLasso(0.1, standardize=True),
    "elastic net": linear.MultiTaskElasticNet(0.1),
    "sparse group lasso": linear.MultiTaskSparseGroupLasso(0.1, l1=0.2),
    "sparse group lasso, logistic": linear.MultiTaskSparseGroupLasso(0.02, l1=0.2, loss="logistic"),
    "group lasso": linear.MultiTaskGroupLasso(0.1),
    "group lasso, entries inside": linear.MultiTaskGroupLasso(0.1, inside="entries"),
    "logistic regression": linear.MultiTaskLogisticRegression(0.02),
    "calibrated lasso": linear.CalibratedMultiTaskLasso(0.1),
    "calibrated lasso, ridge": linear.CalibratedMultiTaskLasso(0.1, l2=0.1),
    "OWL": linear.MultiTaskOWL(0.1),
    "OWL, no intercept": linear.MultiTaskOWL(0.1, fit_intercept=False),
    "multinomial OWL": linear.MultinomialOWL(0.02),
    "any members": linear.MultiTaskRegressor(alpha=0.1),
    "any classifier": linear.MultiTaskClassifier(alpha=0.02),
    "any classifier, sparse group and ridge": linear.MultiTaskClassifier(
        "logistic", SparseGroup(0.2), alpha=0.02, ridge=0.1, class_weight="balanced"
    ),
    "any members, sparse group and ridge": linear.MultiTaskRegressor("squared", SparseGroup(0.2), alpha=0.1, ridge=0.1),
    "any members, square-root": linear.MultiTaskRegressor("square-root", alpha=0.1),
    "any members, task graph": linear.MultiTaskRegressor(alpha=0.1, task_graph="chain", graph_strength=0.5),
    "any members, entries and task graph": linear.MultiTaskRegressor(
        penalty="l11", alpha=0.1, task_graph="chain", ridge=0.1
    ),
    "any members, sorted": linear.MultiTaskRegressor(penalty="owl", alpha=0.1),
    "any members, L1,inf": linear.MultiTaskRegressor(penalty="linf", alpha=0.1),
    "any members, dirty": linear.MultiTaskRegressor(penalty="dirty", alpha=0.1, ridge=0.1),
    "any members, gamma": linear.MultiTaskRegressor("gamma", alpha=0.02),
    "any members, Tweedie and ridge": linear.MultiTaskRegressor("tweedie:power=1.3", alpha=0.02, ridge=0.1),
    "any members, quantile and l11": linear.MultiTaskRegressor(Quantile(0.7, 0.5), "l11", alpha=0.05),
    "mixed losses": linear.MultiTaskMixed(["squared", "huber", "squared"], alpha=0.1),
    "mixed losses, entries and task graph": linear.MultiTaskMixed(
        "huber", "l11", alpha=0.1, task_graph="chain", ridge=0.1, loss_weights=1
    ),
    "mixed losses, cross-validated": linear.MultiTaskMixedCV("huber", **_FEW),
    "Huber regression": linear.MultiTaskHuber(0.1),
    "quantile regression": linear.MultiTaskQuantile(0.05, smoothing=0.5),
    "Poisson regression": linear.MultiTaskPoisson(0.1),
    "ordinal regression": linear.MultiTaskOrdinal(0.05),
    "ordinal regression, entries and task graph": linear.MultiTaskOrdinal(
        0.02, penalty="l11", task_graph="chain", ridge=0.1
    ),
    "ordinal regression, cross-validated": linear.MultiTaskOrdinalCV(**_FEW),
    "Cox regression": linear.MultiTaskCox(0.05),
    "Cox regression, Breslow, entries and task graph": linear.MultiTaskCox(
        0.05, ties="breslow", penalty="l11", task_graph="chain", ridge=0.1
    ),
    "Cox regression, cross-validated": linear.MultiTaskCoxCV(**_FEW),
    "lasso, cross-validated": linear.MultiTaskLassoCV(**_FEW),
    "elastic net, cross-validated": linear.MultiTaskElasticNetCV(**_FEW),
    "sparse group lasso, cross-validated": linear.MultiTaskSparseGroupLassoCV(l1=0.2, **_FEW),
    "group lasso, cross-validated": linear.MultiTaskGroupLassoCV(**_FEW),
    "logistic regression, cross-validated": linear.MultiTaskLogisticRegressionCV(**_FEW),
    "calibrated lasso, cross-validated": linear.CalibratedMultiTaskLassoCV(**_FEW),
    "OWL, cross-validated": linear.MultiTaskOWLCV(**_FEW),
    "multinomial OWL, cross-validated": linear.MultinomialOWLCV(n_alphas=3, eps=0.2, cv=2),
    "any members, cross-validated": linear.MultiTaskRegressorCV(**_FEW),
    "Huber regression, cross-validated": linear.MultiTaskHuberCV(**_FEW),
    "quantile regression, cross-validated": linear.MultiTaskQuantileCV(smoothing=0.5, **_FEW),
    "Poisson regression, cross-validated": linear.MultiTaskPoissonCV(**_FEW),
    "any classifier, cross-validated": linear.MultiTaskClassifierCV(**_FEW),
    "online regression": online.OnlineMultiTaskRegressor(0.05, gamma=20.0, shuffle=False),
    "online classification": online.OnlineMultiTaskClassifier(0.01, gamma=5.0, shuffle=False),
    "graph SVM": svm.GraphSVC(complete_graph(3)),
    "graph SVM, logistic": svm.GraphSVC(complete_graph(3), loss="logistic", C=0.3),
    "graph regression": svm.GraphSVR(complete_graph(3), C=0.1),
    "tasks without a graph": svm.GraphSVR(C=0.1, loss="squared"),
    "graph SVM, cross-validated": svm.GraphSVCCV(complete_graph(3), **_FEW_PAIRS),
    "graph SVM, logistic, cross-validated": svm.GraphSVCCV(complete_graph(3), loss="logistic", **_FEW_PAIRS),
    "graph regression, cross-validated": svm.GraphSVRCV(complete_graph(3), loss="squared", **_FEW_PAIRS),
}
