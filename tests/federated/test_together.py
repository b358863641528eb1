"""Folds and halves in the rounds of the path of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from federated.sites import pooled_path, simulated, sites_of

import tasksieve as ts
from tasksieve.federated.path import FederatedPath, Value
from tasksieve.federated.together import HeldOut, entries, follow, held_out, selection_frequencies


def test_folds_score_as_models_of_their_rows() -> None:
    tasks = simulated(sizes=(30, 24, 36))
    fold = [np.arange(len(y)) % 3 for _, y in tasks]
    problems = [{f"fold {f}": np.where(own == f, 0.0, 1.0) for f in range(3)} for own in fold]
    whole = FederatedPath(40, n_values=6, eps=0.2)
    folds = [FederatedPath(40, problem=f"fold {f}", tol=1e-7, held_out=True, leader=whole) for f in range(3)]
    alone = FederatedPath(40, n_values=6, eps=0.2)
    rounds_alone = follow([alone], sites_of(tasks).ask)
    seen: list[int] = []
    rounds = follow([whole, *folds], sites_of(tasks, problems=problems).ask, seen.append)
    assert rounds <= rounds_alone + 4
    assert seen == list(range(1, rounds + 1))
    assert np.array_equal(whole.lams, alone.lams)
    scores = held_out(folds)
    assert scores.n_tasks.tolist() == [3, 3, 3]
    for f in range(3):
        train = [(X[own != f], y[own != f]) for (X, y), own in zip(tasks, fold, strict=True)]
        pooled = pooled_path(ts.MultiTaskLasso(tol=1e-10), train, whole.lams)
        for k in range(6):
            model = pooled.model(k)
            errors = [
                y[own == f] - model.predict(X[own == f], task=np.full(np.sum(own == f), t))
                for t, ((X, y), own) in enumerate(zip(tasks, fold, strict=True))
            ]
            assert scores.scores[k, f] == pytest.approx(np.mean([np.mean(own**2) for own in errors]), rel=2e-3)
        null = [y[own == f] - y[own != f].mean() for (_, y), own in zip(tasks, fold, strict=True)]
        assert scores.null_scores[f] == pytest.approx(np.mean([np.mean(own**2) for own in null]), rel=1e-9)


def test_folds_wait_for_strengths_that_are_searched_for() -> None:
    tasks = simulated()
    problems = [{"fold 0": np.where(np.arange(len(y)) % 4, 1.0, 0.0)} for _, y in tasks]
    whole = FederatedPath(40, n_values=4, eps=0.4, l1_ratio=0.5)
    fold = FederatedPath(40, problem="fold 0", l1_ratio=0.5, leader=whole)
    follow([whole, fold], sites_of(tasks, problems=problems).ask)
    assert np.array_equal(whole.lams, fold.lams)
    assert whole.converged.all()
    assert fold.converged.all()


def test_halves_have_strengths_of_their_own() -> None:
    tasks = simulated(used=3)
    rng = np.random.default_rng(0)
    names = [f"half {h}" for h in range(4)]
    problems: list[dict[str, np.ndarray]] = []
    for _, y in tasks:
        orders = [rng.permutation(len(y)) for _ in range(2)]
        parts = [half for order in orders for half in (order < len(y) // 2, order >= len(y) // 2)]
        problems.append({name: part.astype(float) for name, part in zip(names, parts, strict=True)})
    whole = FederatedPath(40, lams=[40.0])
    options = {"n_values": 6, "eps": 0.1, "leader": whole, "own_values": True, "tol": 1e-4}
    halves = [FederatedPath(40, problem=name, **options) for name in names]
    follow([whole, *halves], sites_of(tasks, problems=problems).ask)
    assert len({half.lams[0] for half in halves}) == 4
    assert all(half.converged.all() for half in halves)
    frequencies = selection_frequencies(halves, 3)
    assert frequencies.sum() == pytest.approx(3.0)
    assert set(np.flatnonzero(frequencies >= 0.75).tolist()) <= {0, 1, 2}
    assert np.max(frequencies) == 1.0


def test_entries_are_in_the_order_of_the_path() -> None:
    path = FederatedPath(9)
    for lam, features, norms in ((3.0, [], []), (2.0, [4, 7], [0.1, 0.5]), (1.0, [1, 4, 5], [0.2, 0.3, 0.4])):
        value = Value(lam, 0.0, np.ones(9, bool), features=np.array(features, int), row_norms=np.array(norms))
        path.values.append(value)
    numbers, lams = entries(path, 3)
    assert numbers.tolist() == [7, 4, 5]
    assert lams.tolist() == [2.0, 2.0, 1.0]
    assert entries(path, 9)[0].tolist() == [7, 4, 5, 1]


def test_the_best_value_by_either_rule() -> None:
    scores = np.array([[5.0, 5.2, 4.8], [2.0, 2.6, 1.7], [1.9, 2.4, 1.8], [2.1, 2.5, 2.0]])
    found = HeldOut(scores, np.ones(3), np.ones(3))
    assert found.best() == 2
    assert found.best("1se") == 1


def test_folds_without_held_out_rows_are_refused() -> None:
    path = FederatedPath(4)
    path.values.append(Value(1.0, 0.0, np.ones(4, bool)))
    with pytest.raises(ValueError, match="holds out no row"):
        held_out([path])
