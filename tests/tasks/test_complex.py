"""Complex numbers are refused, by the name of the argument, wherever numbers are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tasksieve as ts

rng = np.random.default_rng(0)
N, D = 40, 6
X, TASK = rng.standard_normal((N, D)), np.repeat([0, 1], N // 2)
Y = X[:, 0] + rng.standard_normal(N)
CLASSES, COUNTS = (Y > 0).astype(int), rng.poisson(2, N)
GRAPH = np.array([[0.0, 1.0], [1.0, 0.0]])
ONES, FLAT = np.ones(N) + 1j, np.ones(N) + 0j  # without an imaginary part they are complex all the same
LISTS = [X[:20], X[20:]], [Y[:20], Y[20:]]
FORMULA = {"loss": "squared", "penalty": "l21", "alpha": 0.1}


def lasso(**options: Any) -> ts.MultiTaskLasso:
    return ts.MultiTaskLasso(0.1, **options)


def fitted(**options: Any) -> ts.MultiTaskLasso:
    return lasso().fit(X, Y, task=TASK, **options)


Call = Callable[[np.ndarray], Any]
CALLS: dict[str, dict[str, Call]] = {
    "X": {
        "dense": lambda c: lasso().fit(X * c[:, None], Y, task=TASK),
        "objects": lambda c: lasso().fit((X * c[:, None]).astype(object), Y, task=TASK),
        "rows": lambda c: lasso().fit((X * c[:, None]).tolist(), Y, task=TASK),
        "sparse": lambda c: lasso().fit(scipy.sparse.csr_matrix(X * c[:, None]), Y, task=TASK),
        "predict": lambda c: fitted().predict(X * c[:, None], task=TASK),
        "online": lambda c: ts.OnlineMultiTaskRegressor().partial_fit(X * c[:, None], Y, task=TASK),
        "graph": lambda c: ts.GraphSVR(graph=GRAPH).fit(X * c[:, None], Y, task=TASK),
        "moments": lambda c: ts.TaskMoments().add(X * c[:, None], Y, task=TASK),
    },
    "y": {
        "stacked": lambda c: lasso().fit(X, Y * c, task=TASK),
        "objects": lambda c: lasso().fit(X, (Y * c).astype(object), task=TASK),
        "shared": lambda c: lasso().fit(X, np.column_stack([Y * c, Y])),
        "list": lambda c: lasso().fit(LISTS[0], [Y[:20] * c[:20], Y[20:]]),
        "classes": lambda c: ts.MultiTaskLogisticRegression(0.01).fit(X, CLASSES * c, task=TASK),
        "multinomial": lambda c: ts.MultinomialOWL(0.01).fit(X, CLASSES * c),
        "counts": lambda c: ts.MultiTaskPoisson(alpha=0.1).fit(X, COUNTS * c, task=TASK),
        "score": lambda c: fitted().score(X, Y * c, task=TASK),
        "certificate": lambda c: fitted().certificate(X, Y * c, task=TASK),
        "online": lambda c: ts.OnlineMultiTaskRegressor().partial_fit(X, Y * c, task=TASK),
        "online classes": lambda c: (
            ts.OnlineMultiTaskClassifier().partial_fit(X, CLASSES * c, task=TASK, classes=[0, 1])
        ),
        "graph": lambda c: ts.GraphSVR(graph=GRAPH).fit(X, Y * c, task=TASK),
    },
    "sample_weight": {
        "stacked": lambda c: lasso().fit(X, Y, task=TASK, sample_weight=c),
        "list": lambda c: lasso().fit(*LISTS, sample_weight=[c[:20], c[20:]]),
        "shared": lambda c: lasso().fit(X, np.column_stack([Y, Y]), sample_weight=np.column_stack([c, c])),
        "number": lambda c: lasso().fit(X, Y, task=TASK, sample_weight=c[:1].tolist()[0]),
        "cv": lambda c: ts.MultiTaskLassoCV(n_alphas=4, cv=3).fit(X, Y, task=TASK, sample_weight=c),
        "classifier": lambda c: ts.MultiTaskClassifier(alpha=0.01).fit(X, CLASSES, task=TASK, sample_weight=c),
        "multinomial": lambda c: ts.MultinomialOWL(0.01).fit(X, CLASSES, sample_weight=c),
        "score": lambda c: fitted().score(X, Y, task=TASK, sample_weight=c),
        "alpha_max": lambda c: lasso().alpha_max(X, Y, task=TASK, sample_weight=c),
        "online": lambda c: ts.OnlineMultiTaskRegressor().partial_fit(X, Y, task=TASK, sample_weight=c),
        "graph": lambda c: ts.GraphSVC(graph=GRAPH).fit(X, CLASSES, task=TASK, sample_weight=c),
        "moments": lambda c: ts.TaskMoments().add(X, Y, task=TASK, sample_weight=c),
        "permutations": lambda c: ts.permutation_test(lasso(), X, Y, task=TASK, sample_weight=c, n_permutations=5),
        "compare": lambda c: ts.compare(lasso(), X, Y, task=TASK, sample_weight=c, cv=3),
    },
    "offset": {
        "stacked": lambda c: lasso().fit(X, Y, task=TASK, offset=c),
        "list": lambda c: lasso().fit(*LISTS, offset=[c[:20], c[20:]]),
        "predict": lambda c: fitted(offset=np.zeros(N)).predict(X, task=TASK, offset=c),
    },
    "task_weights": {
        "array": lambda c: lasso(task_weights=c[:2]).fit(X, Y, task=TASK),
        "dict": lambda c: lasso(task_weights={0: c[0], 1: 1.0}).fit(X, Y, task=TASK),
    },
    "feature_weights": {
        "array": lambda c: lasso(feature_weights=c[:D]).fit(X, Y, task=TASK),
        "list": lambda c: lasso(feature_weights=list(c[:D])).fit(X, Y, task=TASK),
    },
    "class_weight": {
        "dict": lambda c: (
            ts.MultiTaskLogisticRegression(0.01, class_weight={0: c[0], 1: 1.0}).fit(X, CLASSES, task=TASK)
        )
    },
    "alphas": {"path": lambda c: lasso().path(X, Y, task=TASK, alphas=[c[0]])},
    "l1": {"array": lambda c: ts.MultiTaskSparseGroupLasso(0.1, l1=c[:D]).fit(X, Y, task=TASK)},
    "weights": {
        "owl": lambda c: ts.MultiTaskOWL(0.1, weights=c[:D]).fit(X, Y, task=TASK),
        "sorted": lambda c: ts.MultiTaskRegressor(penalty=ts.penalties.Sorted(c[:D])).fit(X, Y, task=TASK),
        "groups": lambda c: ts.MultiTaskRegressor(
            penalty=ts.penalties.Groups([0, 0, 1, 1, 2, 2], weights=c[:3]), alpha=0.1
        ).fit(X, Y, task=TASK),
    },
    "graph": {
        "dense": lambda c: ts.GraphSVC(graph=GRAPH * c[0]).fit(X, CLASSES, task=TASK),
        "sparse": lambda c: ts.GraphSVC(graph=scipy.sparse.csr_matrix(GRAPH * c[0])).fit(X, CLASSES, task=TASK),
    },
    "task_graph": {"dense": lambda c: ts.MultiTaskRegressor(task_graph=GRAPH * c[0]).fit(X, Y, task=TASK)},
    "coef": {"grade": lambda c: ts.grade(np.zeros((2, D)) * c[0], None, X, Y, task=TASK, **FORMULA)},
    "intercept": {"grade": lambda c: ts.grade(np.zeros((2, D)), np.zeros(2) * c[0], X, Y, task=TASK, **FORMULA)},
    "task": {"fit": lambda c: lasso().fit(X, Y, task=TASK * c)},
}
EVERY = [pytest.param(name, call, id=f"{name}-{form}") for name, calls in CALLS.items() for form, call in calls.items()]


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("error::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("values", [ONES, FLAT], ids=["imaginary", "real part alone"])
@pytest.mark.parametrize(("name", "call"), EVERY)
def test_complex_numbers_are_refused_by_name(name: str, call: Call, values: np.ndarray) -> None:
    with pytest.raises(ValueError, match=rf"Complex data not supported: (Groups' ')?{name}\b"):
        call(values)


def test_real_numbers_pass() -> None:
    """The same calls, with numbers that are none."""
    for name in ("X", "y", "sample_weight", "offset", "task_weights", "feature_weights", "l1", "graph"):
        for call in CALLS[name].values():
            call(np.ones(N))


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="Complex data not supported: sample_weight"):
        lasso().fit(X, Y, task=TASK, sample_weight=torch.ones(N, dtype=torch.complex128))
    with pytest.raises(ValueError, match="Complex data not supported: X"):
        lasso().fit(torch.as_tensor(X).to(torch.complex128), Y, task=TASK)


# --- X of three dimensions --------------------------------------------------------------------------------------------


def test_advice_for_three_dimensions() -> None:
    """What the message advises works: rows are trials in two of its three ways."""
    trials = rng.standard_normal((N, 3, 4))  # trials x sensors x times
    labels = trials[:, 1, 2] + 0.1 * rng.standard_normal(N)
    with pytest.raises(ValueError, match="3D array instead for X") as error:
        lasso().fit(trials, labels)
    names = {"X": trials, "len": len, "range": range, "list": list, "__builtins__": {}}
    for advice, shape in (
        ("X.reshape(len(X), -1)", (N, 12)),
        ("[X[:, :, k] for k in range(X.shape[2])]", (4, N, 3)),
        ("list(X)", (N, 3, 4)),
    ):
        assert advice in str(error.value)
        assert np.shape(eval(advice, names)) == shape
    flat = lasso().fit(trials.reshape(N, -1), labels)
    assert np.argmax(np.abs(flat.coef_[0])) == 1 * 4 + 2
    by_time = lasso().fit([trials[:, :, k] for k in range(4)], [labels] * 4)
    assert by_time.coef_.shape == (4, 3)
    assert np.argmax(np.abs(by_time.coef_).max(axis=1)) == 2
