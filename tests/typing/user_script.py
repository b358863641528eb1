"""A script as a user writes it, the README's code and what follows from it: checked by `make lint`, never run.

`mypy --strict` sees the library as an installed package here: only its types count. `reveal` says what they are.
"""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import tasksieve as ts

Array = np.ndarray[Any, Any]


def first_lines(folder: Path) -> None:
    """The README."""
    X, y, task, _ = ts.datasets.make_wang_synthetic(n_features=1_000, n_tasks=10, random_state=0)

    model = ts.MultiTaskLasso(alpha=1.0).fit(X, y, task=task)
    assert_type(model, ts.MultiTaskLasso)
    print(model.get_support(), model.objective_, model.dual_gap_)

    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=20, eps=0.1)
    assert_type(path, ts.RegularizationPath)
    print(path.n_selected, path.rejection_ratios, path.dual_gaps)

    chosen = ts.MultiTaskLassoCV(n_alphas=20, eps=0.1, cv=3).fit(X, y, task=task)
    assert_type(chosen, ts.MultiTaskLassoCV)
    assert_type(chosen.alpha_, float)
    written = ts.write_report(chosen, folder / "report.html", X=X, y=y, task=task)
    assert_type(written, Path)


def forms(X: NDArray[np.float64], y: NDArray[np.float64], task: list[str]) -> float:
    """One matrix with tasks, a list of matrices, one matrix and several targets."""
    stacked = ts.MultiTaskElasticNet(alpha=0.1, l1_ratio=0.9).fit(X, y, task=task)
    listed = ts.MultiTaskElasticNet(0.1).fit([X, X], [y, y])
    shared = ts.MultiTaskElasticNet(0.1).fit(X, np.stack([y, y], axis=1))
    for model in (stacked, listed, shared):
        assert_type(model, ts.MultiTaskElasticNet)
    rows = stacked.predict(X, task=task)
    both = listed.predict([X, X])
    small = stacked.transform(X)
    print(rows.shape, len(both), small.shape)
    assert_type(stacked.score(X, y, task=task), float)
    return stacked.score(X, y, task=task)


def classes(X: Array, labels: list[str], task: Array) -> Array:
    """Classes, probabilities, one's own penalty."""
    model = ts.MultiTaskLogisticRegression(alpha=0.05, class_weight="balanced").fit(X, labels, task=task)
    assert_type(model, ts.MultiTaskLogisticRegression)
    chances = model.predict_proba(X, task=task)
    print(chances[:, 1].mean(), model.decision_function(X, task=task).max())
    pair = ts.MultiTaskClassifier("squared_hinge", ts.penalties.SparseGroup(0.2), alpha=0.1)
    any_pair = pair.fit(X, labels, task=task)
    assert_type(any_pair, ts.MultiTaskClassifier)
    return np.asarray(any_pair.predict(X, task=task))


def findings(X: Array, y: Array, task: Array) -> list[int]:
    """What would be found again."""
    stable = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=20).fit(X, y, task=task)
    assert_type(stable, ts.StabilitySelection)
    print(stable.pfer_bound_, stable.to_frame().head())
    test = ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=100)
    print(test.pvalue < 0.05)
    return [int(j) for j in np.flatnonzero(stable.get_support())]


def online(rows: list[tuple[dict[str, float], float, str]]) -> ts.OnlineMultiTaskRegressor:
    """One row at a time, and chunks."""
    model = ts.OnlineMultiTaskRegressor(alpha=0.01)
    for x, y, task in rows:
        assert_type(model.learn_one(x, y, task=task), None)
    again = model.partial_fit(np.zeros((2, 3)), np.zeros(2))
    assert_type(again, ts.OnlineMultiTaskRegressor)
    return again


def graphs(X: Array, y: Array, task: Array) -> None:
    """Machines on a graph of tasks."""
    graph = ts.graph.complete_graph(3)
    machine = ts.GraphSVR(graph, C=10.0).fit(X, y, task=task)
    assert_type(machine, ts.GraphSVR)
    chosen = ts.GraphSVRCV(graph).fit(X, y, task=task)
    assert_type(chosen, ts.GraphSVRCV)
    print(machine.predict(X, task=task).shape, chosen.C_)
