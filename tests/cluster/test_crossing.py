"""What crosses between client and workers: columns once for all fits, one message for fits in step, no vector over
features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cluster.examples import stacked

import tasksieve as ts
from tasksieve.design.cluster import fleet

da = pytest.importorskip("dask.array")


def arrays(found: Any) -> Iterator[np.ndarray]:
    """All arrays in what is said."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, dict):
        for part in found.values():
            yield from arrays(part)
    elif isinstance(found, list | tuple):
        for part in found:
            yield from arrays(part)


class Counted:
    """Fleets and what crosses, from the moment it is made; `longest` are arrays in answers beside columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fleets: list[Any] = []
        self.longest, self.columns, self.asked = 0, list[int](), 0
        begin, heard, send = fleet.Fleet.__init__, fleet.Fleet._heard, fleet.Fleet._send

        def begun(own: Any, *arguments: Any) -> None:
            begin(own, *arguments)
            self.fleets.append(own)

        def hear(own: Any, shard: int, answer: Any, *others: Any) -> None:
            self.longest = max([self.longest, *(array.size for array in arrays(answer.found))])
            for features, columns in answer.columns:
                assert columns.dtype == own.source.dtype
                self.columns += (features + own.starts[shard]).tolist()
            heard(own, shard, answer, *others)

        def sent(own: Any, parts: Any) -> Any:
            every = [question for part in parts for question in part.questions]
            own_parts = [found for question in every for found in (question.own or {}).values()]
            said = [*(question.common for question in every), *own_parts]
            self.asked = max([self.asked, *(array.size for array in arrays(said))])
            return send(own, parts)

        for name, function in (("__init__", begun), ("_heard", hear), ("_send", sent)):
            monkeypatch.setattr(fleet.Fleet, name, function)

    @property
    def trips(self) -> int:
        return sum(own.traffic.trips for own in self.fleets)


WIDE = 2400  # features, in four ranges


def wide(seed: int, kind: str = "values") -> tuple[Any, Any, Any, Any]:
    X, y, task = stacked(seed, n_tasks=2, d=WIDE, kind=kind)
    X = X.astype(np.float32)
    return X, da.from_array(X, chunks=(-1, WIDE // 4)), y, task


PATHS = {
    "lasso": (ts.MultiTaskLasso(), "values"),
    "ridge": (ts.MultiTaskElasticNet(l1_ratio=0.6), "values"),
    "logistic, ridge": (ts.MultiTaskLogisticRegression(ridge=0.01), "classes"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PATHS)
def test_a_path(client: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model, kind = PATHS[name]
    _, given, y, task = wide(31, kind)
    counted = Counted(monkeypatch)
    path = model.path(given, y, task=task, n_alphas=8, eps=0.3)
    assert (path.status == "converged").all()
    assert max(counted.longest, counted.asked) < WIDE // 4
    assert len(counted.columns) == len(set(counted.columns)) > 0
    assert counted.trips <= 20


def test_folds(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In step: about the trips and the columns of one path, and the scores of folds one by one."""
    _, given, y, task = wide(32)
    model = ts.MultiTaskLassoCV(cv=3, n_alphas=8, eps=0.3)
    counted = Counted(monkeypatch)
    together = model.fit(given, y, task=task)
    assert max(counted.longest, counted.asked) < WIDE // 4
    assert len(counted.columns) == len(set(counted.columns)) > 0
    assert counted.trips <= 25
    in_step, scores, passes = counted.trips, together.cv_scores_.copy(), together.passes_
    monkeypatch.setattr("tasksieve.linear.row_folds.walks_share_readings", lambda *_: False)
    alone = model.fit(given, y, task=task)
    assert np.array_equal(alone.cv_scores_, scores)
    assert counted.trips - in_step > 2 * in_step
    assert passes < 0.8 * alone.passes_


def test_halves(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, given, y, task = wide(33)
    options = {"n_pairs": 3, "q": 4, "assumption": "none", "random_state": 0}
    here = ts.StabilitySelection(ts.MultiTaskLasso(), **options).fit(X, y, task=task)
    counted = Counted(monkeypatch)
    there = ts.StabilitySelection(ts.MultiTaskLasso(), **options).fit(given, y, task=task)
    np.testing.assert_array_equal(there.selection_probabilities_, here.selection_probabilities_)
    assert max(counted.longest, counted.asked) < WIDE // 4
    assert len(counted.columns) == len(set(counted.columns)) > 0
    assert counted.trips <= 25
