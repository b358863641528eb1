"""Problems on which first-order steps and coordinate descent crawl: tasks fitted exactly, labels that saturate.

Few rows and small strengths, so that the square-root loss has tasks without a residual, whose dual point is inside the
unit ball; judged by a cone solver (cvxpy with Clarabel).
"""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import numpy as np
import pytest

import tasksieve as ts

from . import test_pairs as pairs

cp = pytest.importorskip("cvxpy")

TOL = 1e-9
FEW_ROWS = 5


def fitted(loss: str, penalty: str, part: str, n_rows: int, share: float, monkeypatch: Any) -> tuple[Any, Any, bool]:
    monkeypatch.setattr(pairs, "N", n_rows)
    seed = zlib.crc32(f"{loss} {penalty} {part}".encode())
    problem, positive = pairs.Problem(loss, seed), seed % 4 == 0
    model = pairs.model_of(loss, penalty, part, positive=positive).set_params(tol=TOL)
    rows = {"task": problem.task, "sample_weight": problem.weights}
    if problem.offset is not None:
        rows["offset"] = problem.offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, which is judged here, and of classes that few rows lack
        alpha = share * model.alpha_max(problem.x, problem.y, **rows)
        model.set_params(alpha=alpha).fit(problem.x, problem.y, **rows)
    return model, problem, positive


@pytest.mark.sampled(4)
@pytest.mark.parametrize("penalty", pairs.PENALTIES)
def test_tasks_without_a_residual(penalty: str, monkeypatch: Any) -> None:
    model, problem, positive = fitted("square-root", penalty, "plain", FEW_ROWS, 0.05, monkeypatch)
    assert model.status_ == "converged"
    assert model.dual_gap_ <= TOL * model.null_objective_
    best = problem.oracle(penalty, {}, model.alpha, positive)
    assert abs(model.objective_ - best) <= 3e-6 * model.null_objective_
    assert model.objective_ - model.dual_gap_ <= best + 2e-6 * model.null_objective_


@pytest.mark.parametrize("seed", range(3))
def test_dirty_coefficients_of_one_sign(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((8, 3)), rng.standard_normal((8, 3))
    model = ts.MultiTaskRegressor("square-root", ts.penalties.Dirty(1.3, 1.0), positive=True, tol=TOL)
    model.set_params(alpha=0.01 * model.alpha_max(x, y)).fit(x, y)
    assert model.status_ == "converged"


@pytest.mark.parametrize("penalty", ["owl", "linf"])
def test_a_task_of_another_size(penalty: str) -> None:
    """Labels multiplied by a thousand in one task, and columns of different sizes."""
    rng = np.random.default_rng(50)
    x = [rng.standard_normal((10, 12)) * 10.0 ** rng.uniform(-1.0, 1.0, 12) for _ in range(3)]
    y = [rng.standard_normal(10) * size for size in (1000.0, 1.0, 1.0)]
    model = ts.MultiTaskRegressor("square-root", penalty, tol=TOL)
    model.set_params(alpha=0.02 * model.alpha_max(x, y)).fit(x, y)
    assert model.status_ == "converged"


@pytest.mark.filterwarnings("ignore:The columns of X differ in scale")
@pytest.mark.parametrize("loss", [ts.losses.Huber(0.5), ts.losses.Quantile(0.5, 0.1)])
def test_labels_that_saturate(loss: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((27, 4)) * np.array([1.0, 30.0, 0.1, 3.0])
    y = x[:, :2] @ rng.standard_normal((2, 4)) + rng.standard_t(1.5, (27, 4))
    model = ts.MultiTaskRegressor(loss, "owl", tol=TOL)
    model.set_params(alpha=0.01 * model.alpha_max(x, y)).fit(x, y)
    assert model.status_ == "converged"


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "share"), [(pairs.N, 0.25), (FEW_ROWS, 0.05)])
def test_all_triples_converge(n_rows: int, share: float, monkeypatch: Any) -> None:
    """All 243, at 1e-9; whatever does not is named with its status."""
    open_ = {}
    for triple in pairs.PAIRS:
        model, _, _ = fitted(*triple, n_rows, share, monkeypatch)
        if model.status_ != "converged":
            open_[" x ".join(triple)] = f"{model.status_}, {model.dual_gap_ / model.null_objective_:.1e}"
    assert not open_
