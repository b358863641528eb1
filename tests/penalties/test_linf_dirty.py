"""L1,inf and the dirty model: their parts, their limits, and exact row updates."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.penalties import L11, L21, Dirty, LInf
from tasksieve.solvers import Needs


@pytest.fixture
def data(rng):
    x, task = rng.standard_normal((120, 40)), np.repeat(np.arange(4), 30)
    y = x[:, 0] - x[:, 1] + 2.0 * x[:, 2] * (task == 1) + 0.3 * rng.standard_normal(120)
    return x, y, task


def test_parts_add_up_and_are_the_best(rng):
    penalty = Dirty(1.4).on(np.ones(50), 5)
    rows = rng.standard_normal((50, 5)) * (rng.random((50, 5)) < 0.7) * np.geomspace(1e-6, 1e6, 50)[:, None]
    parts = Dirty(1.4).split(rows)
    shared, specific = parts["shared"], parts["specific"]
    np.testing.assert_allclose(shared + specific, rows, rtol=1e-15)
    assert np.all(shared * rows >= 0.0)
    assert np.all(specific * rows >= 0.0)
    value = 1.4 * np.linalg.norm(shared, axis=1).sum() + np.abs(specific).sum()
    assert penalty.value(rows) == pytest.approx(value, rel=1e-14)
    for _ in range(200):  # no other parts are cheaper
        sizes = rng.choice([0.01, 0.3]) * np.abs(rows).max(axis=1, keepdims=True)
        moved = shared + sizes * rng.standard_normal((50, 5))
        other = 1.4 * np.linalg.norm(moved, axis=1) + np.abs(rows - moved).sum(axis=1)
        own = 1.4 * np.linalg.norm(shared, axis=1) + np.abs(specific).sum(axis=1)
        assert np.all(other >= own * (1.0 - 1e-12))


@pytest.mark.parametrize(("shared", "other", "factor"), [(0.8, L21(), 0.8), (1.0, L21(), 1.0), (2.0, L11(), 1.0)])
def test_ends_of_the_dirty_model(rng, data, shared, other, factor):
    """g <= l is g L2,1, g >= sqrt(T) l is l L1,1: in every method, and fitted; with a warning."""
    x, y, task = data
    with pytest.warns(UserWarning, match=r"Dirty\(shared=.* is .* times L"):
        dirty = Dirty(shared).on(np.ones(20), 4)
    usual = other.on(np.full(20, factor), 4)
    rows = rng.standard_normal((20, 4)) * (rng.random((20, 4)) < 0.7)
    assert dirty.value(rows) == pytest.approx(usual.value(rows), rel=1e-13)
    np.testing.assert_allclose(dirty.gauges(rows), usual.gauges(rows), rtol=1e-13)
    np.testing.assert_allclose(dirty.prox(rows, 0.3), usual.prox(rows, 0.3), atol=1e-13)
    with pytest.warns(UserWarning, match="Dirty"):
        one = ts.MultiTaskRegressor(penalty=Dirty(shared), alpha=0.1, tol=1e-11).fit(x, y, task=task)
    two = ts.MultiTaskRegressor(penalty=other, alpha=0.1 * factor, tol=1e-11).fit(x, y, task=task)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-9)
    empty = one.specific_coef_ if isinstance(other, type(L21())) else one.shared_coef_
    assert not empty.any()


@pytest.mark.parametrize("penalty", [LInf(), Dirty()], ids=repr)
def test_of_one_task_all_norms_are_the_same(data, penalty):
    x, y, _ = data
    one = ts.MultiTaskRegressor(penalty=penalty, alpha=0.1, tol=1e-11).fit(x, y)
    two = ts.MultiTaskLasso(alpha=0.1, tol=1e-11).fit(x, y)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)


def test_strengths_at_which_nothing_is_left(data):
    """max <= 2-norm <= sqrt(T) max: the strengths are in that order."""
    x, y, task = data
    found = [ts.MultiTaskRegressor(penalty=name).alpha_max(x, y, task=task) for name in ("l21", "linf")]
    assert found[0] <= found[1] <= 2.0 * found[0]


def test_fitted_parts(data):
    x, y, task = data
    model = ts.MultiTaskRegressor(penalty="dirty", alpha=0.2).fit(x, y, task=task)
    np.testing.assert_allclose(model.shared_coef_ + model.specific_coef_, model.coef_, rtol=1e-14)
    assert np.flatnonzero(np.abs(model.shared_coef_).max(axis=0) > 0.3).tolist() == [0, 1]
    assert np.argwhere(np.abs(model.specific_coef_) > 0.5).tolist() == [[1, 2]]
    path = ts.MultiTaskRegressor(penalty=Dirty(1.2)).path(x, y, task=task, n_alphas=5, eps=0.1)
    assert path.model(4).shared_coef_.shape == (4, 40)
    chosen = ts.MultiTaskRegressorCV(penalty="dirty", n_alphas=4, eps=0.1, cv=3).fit(x, y, task=task)
    np.testing.assert_allclose(chosen.shared_coef_ + chosen.specific_coef_, chosen.coef_, rtol=1e-14)
    other = ts.MultiTaskRegressor(alpha=0.2).fit(x, y, task=task)
    assert not hasattr(other, "shared_coef_")
    with pytest.raises(AttributeError, match="penalty='dirty'"):
        _ = other.specific_coef_


def test_parts_of_standardised_columns(data):
    """Parts are those of the columns that the penalty sees."""
    x, y, task = data
    x = x * np.geomspace(0.1, 10.0, 40)
    model = ts.MultiTaskRegressor(penalty="dirty", alpha=0.2, standardize=True).fit(x, y, task=task)
    parts = Dirty().split((model.coef_ * model.scale_).T)
    np.testing.assert_allclose(model.shared_coef_ * model.scale_, parts["shared"].T, rtol=1e-12)
    np.testing.assert_allclose(model.shared_coef_ + model.specific_coef_, model.coef_, rtol=1e-13)


@pytest.mark.parametrize("bad", [{"shared": 0.0}, {"specific": -1.0}, {"shared": np.nan}, {"specific": "much"}])
def test_costs_must_be_positive(data, bad):
    x, y, task = data
    with pytest.raises(ValueError, match=f"Dirty's '{next(iter(bad))}' must be a positive number"):
        ts.MultiTaskRegressor(penalty=Dirty(**bad)).fit(x, y, task=task)


def test_newton_in_row_norms_is_refused(data):
    for penalty in (LInf(), Dirty()):
        assert "group penalty" in Needs(plain=True).unmet(None, penalty.on(np.ones(3), 4))


@pytest.mark.parametrize("penalty", ["linf", "dirty"])
def test_every_home_of_x(rng, tmp_path, penalty):
    """Dense, sparse, single precision, shared, on disk: the same model."""
    import scipy.sparse

    x = (rng.standard_normal((60, 300)) * (rng.random((60, 300)) < 0.3)).astype(np.float32)
    task = np.repeat([0, 1, 2], 20)
    y = x[:, 0] - x[:, 1] + 0.3 * rng.standard_normal(60)
    model = ts.MultiTaskRegressor(penalty=penalty, tol=1e-9)
    options = {"n_alphas": 6, "eps": 0.2}
    wanted = model.path(x.astype(np.float64), y, task=task, **options)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    blocks = [x[task == t] for t in range(3)]
    for matrix, target, own in (
        (x, y, {"task": task}),
        (scipy.sparse.csr_array(x), y, {"task": task}),
        (mapped, y, {"task": task}),
        (blocks, [y[task == t] for t in range(3)], {}),
    ):
        found = model.path(matrix, target, **own, **options)
        np.testing.assert_allclose(found.objectives, wanted.objectives, rtol=1e-8)
        assert found.converged.all()
    together = rng.standard_normal((60, 3)) + x[:, :1]
    shared = model.path(x, together, **options)
    stacked = model.path(np.vstack([x] * 3), together.T.ravel(), task=np.repeat([0, 1, 2], 60), **options)
    np.testing.assert_allclose(shared.objectives, stacked.objectives, rtol=1e-8)
