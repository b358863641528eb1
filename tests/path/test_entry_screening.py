"""Single coefficients of the sparse group penalty: proven zero on the way, left out of the solve, and rightly so."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from helpers import dense_coefficients, random_case

import tasksieve as ts
from tasksieve._kernels import kernels, reference
from tasksieve.path.sieve import Sieve
from tasksieve.path.solve import solve_path
from tasksieve.screening import DPC

TRUTH = {"squared": 1e-12, "logistic": 1e-10}  # relative gap of the solutions that decide
GAPS = (0.3, 1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
PENALTIES = (
    {"l1": 0.4},
    {"l1": 1.5},
    {"l1": 1.0, "group": 0.0},
    {"l1": 1.0, "positive": True},
    {"l1": 0.7, "ridge_ratio": 0.1},
)


@pytest.fixture(autouse=True)
def engine_alone(monkeypatch):
    """The engine screens; small problems would go the Gram way, which does not."""
    monkeypatch.setenv("TASKSIEVE_PATH_SOLVER", "rows")


def draw(rng, k):
    """A small problem; every third one has columns that are equal, empty or of other sizes."""
    options = dict(PENALTIES[k % len(PENALTIES)])
    if k % 4 == 3 and "ridge_ratio" not in options:
        options["loss"] = "logistic"
    case = random_case(
        rng,
        tasks=int(rng.integers(2, 6)),
        rows=int(rng.integers(5, 15)),
        features=int(rng.integers(5, 25)),
        shared=k % 7 == 4,
        **options,
    )
    if k % 3 == 0:
        X = np.array(case.matrix)
        X[:, 1] = X[:, 0]
        X[:, 2] = 0.0
        X[:, 3] *= 10.0 ** rng.integers(-3, 4)
        case = case.but(matrix=X)
    return case


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_no_entry_test_is_wrong(rng, monkeypatch, count):
    """Every mask of these paths, at pairs of every accuracy, against solutions that are far more accurate."""
    masks = []
    plain = Sieve.zero_entries

    def spied(self, iterate, lam, penalty):
        mask = plain(self, iterate, lam, penalty)
        masks.append((lam, iterate.dual.features, mask))
        return mask

    monkeypatch.setattr(Sieve, "zero_entries", spied)
    seen = Counter()
    for k in range(count):
        case = draw(rng, k)
        lams = case.problem().lambda_max() * np.geomspace(1.0, 0.1, 6)
        exact = {
            point.lam: dense_coefficients(case, point)
            for point in solve_path(case.problem(), lams, tol=TRUTH[case.loss], screening=None).points
        }
        masks.clear()
        tol = GAPS[k // 2 % len(GAPS)]
        solve_path(case.problem(), lams, tol=tol, screening="gap" if k % 2 else "auto")
        for lam, features, mask in masks:
            truth = exact[lam][features]
            assert np.all(np.abs(truth[mask]) <= 1e-7 * np.abs(exact[lam]).max(initial=0.0))
            seen[tol] += int(np.count_nonzero(mask))
    assert all(seen[tol] > count / 6 for tol in GAPS[2:]), seen


@pytest.mark.sampled(4)
@pytest.mark.parametrize("options", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_answer_is_the_same(rng, monkeypatch, options, loss):
    if loss == "logistic" and "ridge_ratio" in options:
        pytest.skip("the ridge is for the squared loss here")
    case = random_case(rng, tasks=6, rows=30, features=120, active=0.1, loss=loss, **options)
    lams = case.problem().lambda_max() * np.geomspace(1.0, 0.2, 12 if loss == "squared" else 40)
    found = solve_path(case.problem(), lams, tol=1e-10)
    assert sum(point.n_rejected_entries for point in found.points) > 0
    assert all(point.converged for point in found.points)
    monkeypatch.setattr(Sieve, "zero_entries", lambda self, pair, *_: np.zeros(pair.dual.rows.shape, dtype=bool))
    without = solve_path(case.problem(), lams, tol=1e-10)
    assert not any(point.n_rejected_entries for point in without.points)
    for one, other in zip(found.points, without.points, strict=True):
        assert abs(one.objective - other.objective) <= max(one.dual_gap, other.dual_gap)
        np.testing.assert_allclose(
            dense_coefficients(case, one), dense_coefficients(case, other), rtol=0, atol=2e-4
        )


def test_counters(rng):
    case = random_case(rng, tasks=6, rows=30, features=120, active=0.1, l1=1.0)
    rule = DPC()
    lams = case.problem().lambda_max() * np.geomspace(1.0, 0.15, 12)
    points = solve_path(case.problem(), lams, tol=1e-8, screening=rule).points
    assert points[0].n_rejected_entries == 0
    assert sum(rule.entry_counts) >= sum(point.n_rejected_entries for point in points) > 0
    for point in points:
        zeros = dense_coefficients(case, point) == 0.0
        assert point.n_rejected_entries <= np.count_nonzero(zeros)
    X, task = rng.standard_normal((120, 30)), np.repeat(np.arange(4), 30)
    y = X[:, 0] * (task < 2) + X[:, 1] * (task > 2) + 0.3 * rng.standard_normal(120)
    model = ts.MultiTaskSparseGroupLasso(l1=1.0, screening="gap")
    path = model.path(X, y, task=task, n_alphas=10, eps=0.1)
    assert path.rejected_entries.shape == (10,)
    assert path.rejected_entries.sum() > 0
    assert not model.set_params(screening=None).path(X, y, task=task, n_alphas=10).rejected_entries.any()


@pytest.mark.parametrize("with_gram", [False, True])
@pytest.mark.parametrize("module", [kernels, reference], ids=["compiled", "twin"])
def test_a_squared_norm_of_zero_leaves_a_column_out(rng, module, with_gram):
    """As if the column were empty in that task."""
    tasks, rows, count = 3, 12, 7
    offsets = np.arange(0, rows * tasks + 1, rows)
    x = np.asfortranarray(rng.standard_normal((rows * tasks, count)))
    zero = rng.random((count, tasks)) < 0.4
    emptied = x.copy(order="F")
    for t in range(tasks):
        emptied[offsets[t] : offsets[t + 1], zero[:, t]] = 0.0
    y = rng.standard_normal(rows * tasks)
    found = []
    for columns in (x, emptied):
        blocks = [columns[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        squares = np.array([(block**2).sum(axis=0) for block in blocks]).T.copy()
        squares[zero] = 0.0
        w, state, gram, products = np.zeros((count, tasks)), y.copy(), None, None
        if with_gram:
            gram = np.stack([block.T @ block for block in blocks])
            products = np.array([block.T @ y[a : a + rows] for block, a in zip(blocks, offsets, strict=False)])
            state = np.empty(products.size)
        _, gap, objective = module.coordinate_descent(
            columns,
            offsets,
            False,
            np.arange(count),
            squares,
            np.full(count, 0.8),
            np.full(count, 0.5),
            0.1,
            False,
            w,
            state,
            2000,
            1e-12,
            gram,
            products,
            float(y @ y),
        )
        assert gap <= 1e-12
        assert not w[zero].any()
        found.append((w, objective))
    assert found[0][0].any()
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-6)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-10)
