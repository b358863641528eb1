"""Storages made of other matrices: they pass the battery, and fits on them are those on the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import tasksieve as ts
from tasksieve.checks import check_storage
from tasksieve.design import as_storage
from tasksieve.storages import Beside, Interactions, OneHot, Scaled


def made(rng):
    """name -> (storage, the same as an array)"""
    x = rng.standard_normal((30, 5))
    counts = sparse.csc_array(rng.poisson(0.4, (30, 3)).astype(np.int8))
    words = rng.choice(["u", "v", "w"], 30)
    factors, shifts = rng.uniform(0.5, 2.0, 5), rng.standard_normal(5)
    indicators = (words[:, None] == np.array(["u", "v", "w"])).astype(np.float64)
    products = np.stack([x[:, j] * x[:, k] for j in range(5) for k in range(j + 1, 5)], axis=1)
    both = np.array([factors[j] * factors[k] for j in range(5) for k in range(j + 1, 5)])
    some = np.array([[3, 1], [2, 2], [0, 4]])
    return {
        "beside": (Beside(x, counts, OneHot(words)), np.hstack([x, counts.toarray(), indicators])),
        "scaled": (Scaled(x, factors, shifts), (x - shifts) * factors),
        "scaled sparse": (Scaled(counts, [1.0, 2.0, 0.5]), counts.toarray() * [1.0, 2.0, 0.5]),
        "one-hot": (OneHot(words), indicators),
        "one-hot with a reference": (OneHot(words, ["w", "u"]), indicators[:, [2, 0]]),
        "all interactions": (Interactions(x), products),
        "some interactions": (Interactions(x, some), x[:, some[:, 0]] * x[:, some[:, 1]]),
        "interactions of a storage": (
            Interactions(Beside(x[:, :1], OneHot(words))),
            np.hstack([x[:, :1] * indicators, np.zeros((30, 3))]),
        ),
        "all of them": (
            Beside(Scaled(x, factors), Interactions(Scaled(x, factors))),
            np.hstack([x * factors, products * both]),
        ),
    }


NAMES = list(made(np.random.default_rng(0)))


@pytest.mark.parametrize("name", NAMES)
def test_composed_storages_pass_the_checks(name, rng):
    storage, dense = made(rng)[name]
    check_storage(storage, dense)
    check_storage(as_storage(storage), dense)
    order = rng.permutation(30)
    check_storage(as_storage(storage, order, np.array([0, 12, 30])), dense[order])


@pytest.mark.parametrize("name", NAMES)
def test_fits_are_those_of_the_dense_matrix(name, rng):
    storage, dense = made(rng)[name]
    task, y = rng.integers(0, 2, 30), dense[:, 0] - dense[:, 1] + 0.2 * rng.standard_normal(30)
    model = ts.MultiTaskLasso(tol=1e-12)
    model.set_params(alpha=0.2 * model.alpha_max(dense, y, task=task))
    expected = model.fit(dense, y, task=task).coef_
    predicted = model.predict(dense, task=task)
    assert expected.any()
    np.testing.assert_allclose(model.fit(storage, y, task=task).coef_, expected, atol=1e-7)
    assert model.dual_gap_ <= 1e-12 * model.null_objective_
    np.testing.assert_allclose(model.predict(storage, task=task), predicted, atol=1e-6)


def test_a_search_on_a_composed_storage(rng):
    x = rng.standard_normal((60, 6))
    y = x[:, 0] * x[:, 1] + 0.2 * rng.standard_normal(60)
    X = Beside(x, Interactions(x))
    search = ts.MultiTaskLassoCV(n_alphas=8, eps=0.05, cv=3).fit(X, y)
    chosen = search.get_support(indices=True)
    assert 6 in chosen  # the first pair
    assert Interactions(x).pairs(chosen[chosen >= 6] - 6)[0].tolist() == [0, 1]


def test_what_cannot_be_composed(rng):
    x = rng.standard_normal((4, 3))
    for call, words in (
        (lambda: Beside(), "at least one"),
        (lambda: Beside(x, x[:2]), "4, 2 rows"),
        (lambda: Beside(x, x[:, 0]), r"part 2 has shape \(4,\)"),
        (lambda: Scaled(x, [1.0]), "factors must be 3 finite numbers"),
        (lambda: Scaled(x, shifts=[1.0, np.nan, 0.0]), "shifts must be"),
        (lambda: OneHot([["a"]]), "one category for each row"),
        (lambda: OneHot(["a"], ["a", "a"]), "named twice"),
        (lambda: Interactions(x, [[0, 3]]), "it has 3, from 0"),
        (lambda: Interactions(x, [0, 1]), r"shape \(n_pairs, 2\)"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
