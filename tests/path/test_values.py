"""Values as columns: what a sequence of values would be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tasksieve.path.values import Values


def make(free: int = 0) -> Values:
    """Three values of two tasks with 0, 2 and 1 rows, one of which is zero."""
    columns = {
        "lam": np.array([3.0, 2.0, 1.0]),
        "objective": np.array([9.0, 8.0, 7.0]),
        "dual_gap": np.array([0.0, 0.1, 0.2]),
        "n_iter": np.array([0, 4, 5]),
        "n_rejected": np.array([6, 5, 0]),
        "seconds": np.array([0.5, 0.25, 0.125]),
        "converged": np.array([True, True, False]),
    }
    rows = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    own = np.arange(1.0, 3 * free * 2 + 1).reshape(3, free, 2)
    if free:
        own[1] = 0.0
    ends, features, intercept = np.array([0, 2, 3]), np.array([4, 7, 4]), np.arange(6.0).reshape(3, 2)
    return Values(columns, ends, features, rows, intercept, np.arange(free), own)


@pytest.mark.parametrize("free", [0, 2])
def test_each_is_a_value(free):
    values = make(free)
    assert len(values) == 3
    found = list(values)
    assert [value.lam for value in found] == [3.0, 2.0, 1.0]
    assert [value.features.tolist() for value in found] == [[*own, *range(free)] for own in ([], [4, 7], [4])]
    assert [len(value.rows) for value in found] == [free, 2 + free, 1 + free]
    assert found[1].rows[0].tolist() == [1.0, 2.0]
    assert found[2].intercept.tolist() == [4.0, 5.0]
    assert (found[1].n_iter, found[1].n_rejected, found[1].converged, found[2].converged) == (4, 5, True, False)
    assert type(found[1].n_iter) is int
    assert type(found[1].dual_gap) is float
    assert values[-1].lam == values[2].lam == 1.0
    assert [value.lam for value in values[1:]] == [2.0, 1.0]
    for k in (3, -4):
        with pytest.raises(IndexError):
            values[k]


@pytest.mark.parametrize(("free", "live"), [(0, [0, 1, 1]), (2, [2, 1, 3])])
def test_rows_that_are_not_zero(free, live):
    values = make(free)
    assert values.live_rows().tolist() == live
    assert [int(value.rows.any(axis=1).sum()) for value in values] == live


def test_columns_and_the_first():
    values = make(2)
    assert values.column("dual_gap").tolist() == [0.0, 0.1, 0.2]
    assert values.column("n_rejected_entries").tolist() == [0, 0, 0]
    assert len(values.first(0)) == 0
    first = values.first(2)
    assert [value.lam for value in first] == [3.0, 2.0]
    np.testing.assert_array_equal(first[1].rows, values[1].rows)
    assert [value.objective for value in pickle.loads(pickle.dumps(values))] == [9.0, 8.0, 7.0]
