"""Many rows of few features in blocks of rows: they stay where they are, and their sums are gathered."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tasksieve as ts

da = pytest.importorskip("dask.array")


def tall(seed: int = 0, n: int = 4000, d: int = 12) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, task = rng.standard_normal((n, d)) + 5.0, rng.choice(["a", "b", "c"], n)
    w = np.zeros((3, d))
    w[:, :4] = rng.standard_normal((3, 4))
    y = np.einsum("ij,ij->i", X, w[np.searchsorted(["a", "b", "c"], task)]) + rng.standard_normal(n)
    return X, y, task


@pytest.mark.parametrize("model", [ts.MultiTaskLasso(alpha=0.2), ts.MultiTaskElasticNet(alpha=0.2, l1_ratio=0.5)])
def test_the_same_model_and_nothing_cut_anew(client: Any, model: Any) -> None:
    X, y, task = tall()
    told: list[str] = []
    with warnings.catch_warnings(), ts.watch(lambda progress: told.append(progress.detail)):
        warnings.simplefilter("error")
        there = type(model)(**model.get_params()).fit(
            da.from_array(X, chunks=(700, 12)), y, task=task
        )
    assert "rows stay where they are" in told[0]
    here = model.fit(X, y, task=task)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)
    assert there.dual_gap_ <= 1e-6 * there.null_objective_


def test_folds_in_one_reading(client: Any) -> None:
    X, y, task = tall(1)
    there = ts.MultiTaskLassoCV(cv=4, n_alphas=20).fit(da.from_array(X, chunks=(900, 12)), y, task=task)
    here = ts.MultiTaskLassoCV(cv=4, n_alphas=20).fit(X, y, task=task)
    assert there.passes_ <= 2
    np.testing.assert_allclose(there.cv_scores_, here.cv_scores_, rtol=1e-3)
    np.testing.assert_allclose(there.alpha_, here.alpha_)
    np.testing.assert_allclose(there.cv_predictions_, here.cv_predictions_, atol=0.05)


def test_one_matrix_for_all_tasks(client: Any) -> None:
    X, y, _ = tall(2)
    Y = np.stack([y, y[::-1]], axis=1)
    there = ts.MultiTaskLasso(alpha=0.3).fit(da.from_array(X, chunks=(1500, 12)), Y)
    np.testing.assert_allclose(there.coef_, ts.MultiTaskLasso(alpha=0.3).fit(X, Y).coef_, atol=1e-5)


def test_tasks_far_from_the_first_rows(client: Any) -> None:
    """The means of the first block are no good: the rows are read once more."""
    X, y, task = tall(3)
    order = np.argsort(task, kind="stable")
    X, y, task = X[order], y[order], task[order]
    X[task == "c"] += 1e6
    there = ts.MultiTaskLasso(alpha=0.2).fit(da.from_array(X, chunks=(500, 12)), y, task=task)
    np.testing.assert_allclose(there.coef_, ts.MultiTaskLasso(alpha=0.2).fit(X, y, task=task).coef_, atol=1e-4)
