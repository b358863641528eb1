"""Rows that count several times are read once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from tasksieve.design import RepeatedStorage, Storage, as_storage
from tasksieve.design.storage import ProductRequest

OFFSETS, TIMES = np.array([0, 4, 9, 12]), np.array([2, 1, 3])


class Counting(Storage):
    """Counts how often its columns are asked for."""

    def __init__(self, x):
        self.x, self.asked = x, 0
        self.n_rows, self.n_features = x.shape

    def take(self, features):
        self.asked += len(features)
        return self.x[:, features]


@pytest.mark.parametrize("kind", ["dense", "sparse", "own"])
def test_products_are_those_of_the_repeated_matrix(rng, kind):
    x = rng.standard_normal((12, 7))
    given = {"dense": x, "sparse": scipy.sparse.csc_array(x), "own": Counting(x)}[kind]
    storage = RepeatedStorage(as_storage(given), OFFSETS, TIMES)
    rows = np.concatenate([np.tile(np.arange(OFFSETS[t], OFFSETS[t + 1]), TIMES[t]) for t in range(3)])
    whole = x[rows]
    assert storage.offsets.tolist() == [0, 4, 8, 13, 16, 19, 22]
    assert (storage.n_rows, storage.n_features) == whole.shape
    np.testing.assert_array_equal(storage.take(np.array([3, 1])), whole[:, [3, 1]])
    vector, weights = rng.standard_normal(22), rng.random(12)[rows]
    some = np.array([5, 0, 2])
    asked = [
        ProductRequest(vector, storage.offsets),
        ProductRequest(weights, storage.offsets, squares=True),
        ProductRequest(vector, storage.offsets, columns=some),
        ProductRequest(vector, np.array([0, 5, 22])),
        ProductRequest(np.tile(vector, 2), np.array([0, 22, 44]), shared=True),
    ]
    for a, found in zip(asked, storage.read(asked, 1).products, strict=True):
        columns = whole if a.columns is None else whole[:, a.columns]
        columns = columns**2 if a.squares else columns
        for part, (start, stop) in enumerate(zip(a.offsets[:-1], a.offsets[1:], strict=True)):
            here = columns if a.shared else columns[start:stop]
            np.testing.assert_allclose(found[:, part], here.T @ a.vector[start:stop], atol=1e-12)


def test_one_reading_serves_all_copies(rng):
    own = Counting(rng.standard_normal((12, 7)))
    storage = RepeatedStorage(as_storage(own), OFFSETS, TIMES)
    _, spent = storage.read([ProductRequest(rng.standard_normal(22), storage.offsets)], 1)
    assert spent == 1.0
    assert own.asked == 7
