"""Sums over rows beside Gram matrices: compiled and NumPy twins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tasksieve._kernels import compiled, kernels, reference

pytestmark = pytest.mark.skipif(not compiled, reason="no compiled kernels")


def data(rng: Any, matrices: int, n_tasks: int, features: int, n_nuisance: int) -> tuple[Any, ...]:
    cuts = np.sort(rng.integers(0, 2100, matrices - 1))
    offsets = np.concatenate([[0], cuts, [2100]]).astype(np.int64)
    x = np.asfortranarray(rng.standard_normal((2100, features)))
    y = np.asfortranarray(rng.standard_normal((2100, n_tasks if matrices == 1 else 1)))
    return x, y, rng.standard_normal((n_nuisance, 2100)), offsets


def sums(module: Any, x: Any, y: Any, z: Any, offsets: Any, matrices: int, n_tasks: int, threads: int) -> list[Any]:
    d, k = x.shape[1], len(z)
    shapes = [(n_tasks, d), (n_tasks,), (matrices, k, d), (matrices, k, k), (n_tasks, k)]
    found = [np.full(shape, 0.5) for shape in shapes]
    module.add_products(x, y, z, offsets, threads, *found)
    gram = np.zeros((matrices, kernels.panel_cells(d)))
    kernels.add_grams(x, offsets, threads, gram)
    return [gram, *found]


@pytest.mark.parametrize(("matrices", "n_tasks"), [(1, 1), (1, 3), (1, 11), (4, 4)])
@pytest.mark.parametrize("n_nuisance", [0, 1, 6])
def test_products(matrices: int, n_tasks: int, n_nuisance: int) -> None:
    given = data(np.random.default_rng(matrices + n_tasks), matrices, n_tasks, 13, n_nuisance)
    ours, twice = (sums(kernels, *given, matrices, n_tasks, threads) for threads in (1, 2))
    for mine, again, theirs in zip(ours, twice, sums(reference, *given, matrices, n_tasks, 1), strict=True):
        np.testing.assert_array_equal(mine, again)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize(("matrices", "n_tasks"), [(1, 3), (3, 3)])
@pytest.mark.parametrize("n_nuisance", [0, 1, 2])
def test_take_out_constant(matrices: int, n_tasks: int, n_nuisance: int) -> None:
    given = data(np.random.default_rng(7), matrices, n_tasks, 70, n_nuisance)
    results = []
    for module in (kernels, reference):
        gram, cross, labels, beside, nuisance, explained = sums(kernels, *given, matrices, n_tasks, 1)
        if n_nuisance == 1:
            nuisance[-1] = 0.0  # a task without rows
        out = [np.zeros_like(beside), np.zeros_like(explained), np.empty((matrices, 70)), np.empty(n_tasks)]
        out.append(np.empty(beside.shape[:2]))
        moments = gram, cross, labels, beside, nuisance, explained
        assert module.take_out_constant(*moments, 2.0**100, 1, *out)
        results.append([gram, cross, labels, *out])
        for bad in (1e-70, 1e70, np.nan):
            labels[:] = bad
            assert not module.take_out_constant(*moments, 2.0**100, 1, *out)
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(("n_nuisance", "intercept"), [(0, False), (1, False), (1, True)])
def test_storing_loss(n_nuisance: int, intercept: bool) -> None:
    """The twins agree, and the bound is at least the formula in exact arithmetic."""
    rng = np.random.default_rng(3)
    counts, facts = np.array([0, 4, 9]), rng.standard_normal((4, 3, 2))
    facts[1] *= 1e-12
    facts[2:] = np.abs(facts[2:])
    sizes, totals = np.abs(rng.standard_normal(2)), np.array([100.0, 80.0])
    results = []
    for module in (kernels, reference):
        out = np.empty(3), np.empty(3)
        module.storing_loss(counts, facts, sizes, totals, 1e-13, n_nuisance, intercept, *out)
        results.append(out)
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    unit = Fraction(1, 2**53)
    for v in range(3):
        exact = Fraction(0)
        for t in range(2):
            _, rest, total, reach = (Fraction(float(fact[v, t])) for fact in facts)
            terms = Fraction(1e-13) + (25 + 2 * n_nuisance) * unit
            away = n_nuisance * 2 * terms * (Fraction(float(sizes[t])) + reach)
            if intercept:
                root = Fraction(float(np.sqrt(totals[t]))) * (1 - unit)
                away += root * (abs(rest) * (1 + 2 * unit) + ((2 * (int(counts[v]) + 2) + 8) * unit) ** 2 * total)
            exact += away * away / 2
        assert float(exact) <= results[0][1][v]
