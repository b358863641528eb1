"""Nodewise Lassos: the compiled kernel, its twin, scikit-learn, and the optimality conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_helpers import needs_kernels
from sklearn.linear_model import Lasso

from tasksieve._kernels import kernels, reference

Array = np.ndarray[Any, Any]


def columns(n: int, d: int, seed: int = 0, related: float = 0.5) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x[:, 1:] += related * x[:, :-1]
    x[:, d // 2] = 0.0
    lengths = np.linalg.norm(x, axis=0)
    return np.asfortranarray(x / np.where(lengths > 0.0, lengths, 1.0))


def solved(
    x: Array, start: float | Array, *, module: Any = kernels, values: int = 1, target: float = 0.0, threads: int = 1
) -> tuple[Array, Array]:
    d = x.shape[1]
    z, strengths = np.full((d, len(x)), np.nan), np.full(d, np.nan)
    begin = np.ascontiguousarray(np.broadcast_to(np.asarray(start, dtype=np.float64), (d,)))
    module.nodewise(x, np.arange(d), begin, values, 0.8, target, 1.25, 1e-9, 50, threads, z, strengths)
    return z, strengths


@pytest.mark.parametrize(("n", "d", "lam"), [(30, 40, 0.3), (30, 40, 0.03), (60, 20, 0.05), (12, 90, 0.2)])
def test_scikit_learn_finds_the_same(n: int, d: int, lam: float) -> None:
    x = columns(n, d)
    found, strengths = solved(x, lam)
    assert np.all(strengths == lam)
    for j in range(d):
        others = np.delete(np.arange(d), j)
        lasso = Lasso(alpha=lam / n, fit_intercept=False, tol=1e-13, max_iter=1_000_000).fit(x[:, others], x[:, j])
        np.testing.assert_allclose(found[j], x[:, j] - x[:, others] @ lasso.coef_, atol=2e-7)


@needs_kernels
@pytest.mark.parametrize(("n", "d"), [(15, 25), (40, 12)])
@pytest.mark.parametrize("values", [1, 8])
def test_the_twin_finds_the_same(n: int, d: int, values: int) -> None:
    x = columns(n, d, seed=3)
    start = 0.2 if values == 1 else 0.6
    ours, strengths = solved(x, start, values=values, target=0.5)
    theirs, same = solved(x, start, values=values, target=0.5, module=reference)
    np.testing.assert_allclose(strengths, same, rtol=1e-12)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("module", [kernels, reference])
def test_copies_and_near_copies_are_no_trouble(module: Any) -> None:
    x = columns(20, 16, seed=1)
    x[:, 3], x[:, 5] = x[:, 2], -x[:, 2]
    x[:, 7] = x[:, 6] + 1e-7 * x[:, 0]
    x /= np.where(np.linalg.norm(x, axis=0) > 0.0, np.linalg.norm(x, axis=0), 1.0)
    found, _ = solved(np.asfortranarray(x), 0.1, module=module)
    products = found @ x
    np.fill_diagonal(products, 0.0)
    assert np.abs(products).max() <= 0.1 * (1.0 + 1e-6)
    assert np.all(found[8] == 0.0)  # its column is zero
    np.testing.assert_allclose(found[2], 0.1 * x[:, 2], atol=1e-9)  # all of it but what the penalty leaves


def test_the_rule_allows_a_quarter_more_noise() -> None:
    n, d = 40, 60
    x, target = columns(n, d, seed=5), float(np.sqrt(2.0 * np.log(60) / 40))
    found, strengths = solved(x, target, values=16, target=target)

    def factors(z: Array) -> tuple[Array, Array]:
        products, lengths = z @ x, np.linalg.norm(z, axis=1)
        along = np.diag(products).copy()
        np.fill_diagonal(products, 0.0)
        lengths[d // 2] = along[d // 2] = 1.0
        return np.abs(products).max(axis=1) / lengths, lengths / along

    first, last = np.full(d, np.nan), np.full(d, np.inf)
    reached, done = np.zeros((2, d), dtype=bool)
    kept = [factors(found)]
    for k in range(16):
        eta, tau = factors(solved(x, target * 0.8**k)[0])
        new = ~reached & (eta <= target * (1.0 + 1e-9))
        first[new], reached = tau[new], reached | new
        allowed = reached & ~done & (tau <= 1.25 * first * (1.0 - 1e-9))
        done |= reached & (((eta > 0.98 * last) & (eta < last)) | ~allowed)  # the last value that is worth it
        last = eta
        assert np.all(kept[0][0][allowed] <= eta[allowed] * (1.0 + 1e-8))  # no smaller bias was to be had
    live = np.arange(d) != d // 2
    assert reached[live].all()
    assert len(np.unique(strengths[live])) > 1
    assert np.all(kept[0][1][live] <= 1.25 * first[live] * (1.0 + 1e-9))


@needs_kernels
def test_threads_change_nothing() -> None:
    x = columns(25, 300, seed=2)
    one, two = (solved(x, 0.5, values=6, target=0.6, threads=threads) for threads in (1, 3))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])


@needs_kernels
def test_wrong_arrays_are_refused() -> None:
    x, z, s = columns(10, 5), np.empty((1, 10)), np.empty(1)
    options = (1, 0.8, 0.0, 1.25, 1e-9, 50, 1)
    for targets, start in (([5], [0.1]), ([0], [0.0]), ([0], [np.inf]), ([0], [0.1, 0.2])):
        with pytest.raises((ValueError, IndexError)):
            kernels.nodewise(x, np.array(targets), np.array(start), *options, z, s)
    with pytest.raises(ValueError, match="targets x rows"):
        kernels.nodewise(x, np.array([0]), np.array([0.1]), *options, np.empty((1, 9)), s)
