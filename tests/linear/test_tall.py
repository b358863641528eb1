"""Tall data: read once in blocks of rows, never copied, or at once where they are few; and the same models as from the
rows themselves."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_numbers import wide
from helpers import named_rows
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.design import sums
from tasksieve.linear import path_solver
from tasksieve.linear import sums as model_sums
from tasksieve.path import policy
from tasksieve.tasks import read_tasks
from tasksieve.tasks.source import RowSource


def make(n: int = 600, d: int = 9, tasks: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 3.0 * rng.standard_normal(d)
    task = rng.integers(0, tasks, n)
    W = rng.standard_normal((tasks, d)) * (np.arange(d) < 4)
    return X, np.einsum("ij,ij->i", X, W[task]) + rng.standard_normal(n) + task, task


@pytest.fixture(params=["blocks", "at once"])
def gathered(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[Any]:
    """Everything is tall here, and read in small blocks, or at once; requests for columns are recorded."""
    monkeypatch.setattr(policy, "SMALL_BYTES", -1 if request.param == "blocks" else 1 << 30)
    monkeypatch.setattr(policy, "ROWS_A_FEATURE_SMALL", 0.0)
    asked: list[Any] = []
    whole = RowSource.make_storage
    monkeypatch.setattr(RowSource, "make_storage", lambda self: asked.append(self) or whole(self))
    monkeypatch.setattr(policy, "TALL_BYTES", 0)
    monkeypatch.setattr(policy, "ROWS_A_FEATURE_TALL", 0.0)
    monkeypatch.setattr(sums, "BLOCK_BYTES", 8 * 11 * 64)
    return asked


def ordinarily(monkeypatch: pytest.MonkeyPatch, run: Any) -> Any:
    """The same by the way of the engine."""
    with monkeypatch.context() as context:
        context.setattr(policy, "TALL_BYTES", np.inf)
        context.setattr(policy, "SMALL_BYTES", -1)
        return run()


def same_paths(one: ts.RegularizationPath, other: ts.RegularizationPath, tol: float = 1e-6) -> None:
    np.testing.assert_allclose(one.alphas, other.alphas, rtol=1e-9)
    np.testing.assert_allclose(one.null_objective, other.null_objective, rtol=1e-9)
    assert one.converged.all()
    assert np.all(one.relative_gaps <= tol)
    # each objective is within its gap of the same optimum
    assert np.all(np.abs(one.objectives - other.objectives) <= one.dual_gaps + other.dual_gaps)
    for k in range(len(one)):
        size = np.abs(other.coef(k)).max() + 1e-3
        assert np.abs(one.coef(k) - other.coef(k)).max() <= 0.02 * size
        np.testing.assert_allclose(one.intercept(k), other.intercept(k), atol=0.1)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "standardize": {"standardize": True},
    "no intercept": {"fit_intercept": False},
    "unpenalised": {"feature_weights": np.r_[0.0, np.ones(7), 2.0]},
    "positive": {"positive": True},
    "balanced": {"task_weights": "balanced"},
    "everything": {"standardize": True, "task_weights": "balanced", "feature_weights": np.r_[np.ones(8), 0.0]},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_paths_of_arrays(monkeypatch: pytest.MonkeyPatch, gathered: list[Any], name: str, order: str) -> None:
    X, y, task = make()
    X = np.asarray(X, order=order)  # type: ignore[call-overload]
    model = ts.MultiTaskLasso(tol=1e-8, **OPTIONS[name])
    path = model.path(X, y, task=task, n_alphas=8)
    assert not gathered
    assert path.passes == 1.0
    same_paths(path, ordinarily(monkeypatch, lambda: model.path(X, y, task=task, n_alphas=8)), 1e-8)


@pytest.mark.parametrize("kind", [np.float32, np.int8])
def test_small_types_are_read_as_they_are(monkeypatch: pytest.MonkeyPatch, gathered: list[Any], kind: type) -> None:
    X, y, task = make()
    X = X.astype(kind)
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=6)
    assert not gathered
    same_paths(path, ordinarily(monkeypatch, lambda: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=6)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gathered: list[Any], order: str) -> None:
    X, y, task = make()
    mapped: Any = np.memmap(tmp_path / "x", np.float64, "w+", 0, X.shape, order)  # type: ignore[call-overload]
    mapped[:] = X
    path = ts.MultiTaskLasso().path(mapped, y, task=task, n_alphas=6)
    assert not gathered
    same_paths(path, ordinarily(monkeypatch, lambda: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=6)))


def test_lists_and_sample_weights(monkeypatch: pytest.MonkeyPatch, gathered: list[Any]) -> None:
    X, y, task = make()
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    weights[::5] = 0.0
    lists = [[values[task == t] for t in range(4)] for values in (X, y, weights)]
    path = ts.MultiTaskLasso().path(lists[0], lists[1], sample_weight=lists[2], n_alphas=6)
    assert not gathered
    stacked = ts.MultiTaskLasso().path(X, y, task=task, sample_weight=weights, n_alphas=6)
    same_paths(path, stacked)
    rows = {"task": task, "sample_weight": weights}
    same_paths(path, ordinarily(monkeypatch, lambda: ts.MultiTaskLasso().path(X, y, **rows, n_alphas=6)))


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("task_weights", [None, np.array([1.0, 2.0, 0.5])])
def test_shared_matrices(
    monkeypatch: pytest.MonkeyPatch, gathered: list[Any], hidden: bool, task_weights: Any
) -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((400, 9)) + 2.0, rng.standard_normal((400, 3)) + 5.0
    Y += X[:, :3] @ rng.standard_normal((3, 3))
    if hidden:
        Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    model = ts.MultiTaskElasticNet(l1_ratio=0.8, task_weights=task_weights)
    path = model.path(X, Y, n_alphas=6)
    assert not gathered
    same_paths(path, ordinarily(monkeypatch, lambda: model.path(X, Y, n_alphas=6)))


def test_fit_sets_what_fit_sets(monkeypatch: pytest.MonkeyPatch, gathered: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    X, y, task = make()
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(9)])

    def fitted() -> Any:
        return ts.MultiTaskSparseGroupLasso(0.1, l1=0.3, standardize=True).fit(frame, y, task=task)

    one = fitted()
    assert not gathered
    other = ordinarily(monkeypatch, fitted)
    assert vars(one).keys() == vars(other).keys()
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-12)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=2e-3)
    assert abs(one.objective_ - other.objective_) <= one.dual_gap_ + other.dual_gap_
    largest = ordinarily(monkeypatch, lambda: one.alpha_max(frame, y, task=task))
    np.testing.assert_allclose(one.alpha_max(frame, y, task=task), largest)


def test_scales_are_warned_of_where_the_user_asks(gathered: list[Any]) -> None:
    X, y, task = make()
    X[:, 3] *= 1e4
    moments = ts.TaskMoments(n_folds=3).add(X, y, task=task)
    for ask in (
        lambda: ts.MultiTaskLasso().path(X, y, task=task, n_alphas=3),
        lambda: ts.MultiTaskLasso().fit(X, y, task=task),
        lambda: ts.MultiTaskLassoCV(n_alphas=3).fit(X, y, task=task),
        lambda: ts.MultiTaskLasso().path_moments(moments, n_alphas=3),
        lambda: ts.MultiTaskLasso().fit_moments(moments),
        lambda: ts.MultiTaskLassoCV(n_alphas=3).fit_moments(moments),
    ):
        with pytest.warns(ts.ScaleWarning, match="feature 3") as caught:
            ask()
        assert [warning.filename for warning in caught] == [__file__]
    assert not gathered


def test_nan_is_named(gathered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from tasksieve.tasks import data

    monkeypatch.setattr(data, "SEARCHED_ENTRIES", 0)
    X, y, task = make()
    X[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 18"):
        ts.MultiTaskLasso().path(X, y, task=task)


def test_extreme_units_and_dependent_columns_go_the_ordinary_way(gathered: list[Any]) -> None:
    X, y, task = make()
    path = ts.MultiTaskLasso().path(X * 1e150, y, task=task, n_alphas=4)
    assert len(gathered)
    assert path.converged.all()
    gathered.clear()
    X[:, 1] = X[:, 0]
    path = ts.MultiTaskLasso(feature_weights=np.r_[0.0, 0.0, np.ones(7)]).path(X, y, task=task, n_alphas=3)
    assert len(gathered)
    assert path.converged.all()


def test_drift_is_read_twice(monkeypatch: pytest.MonkeyPatch, gathered: list[Any]) -> None:
    """Shifts come from first rows that are unlike all others: the means found are better."""
    X, y, task = make(2000)
    X[:4, 4] += 1e6
    monkeypatch.setattr(sums, "BLOCK_BYTES", 8 * 11 * 4)
    monkeypatch.setattr(policy, "SMALL_BYTES", -1)
    path = ts.MultiTaskLasso(standardize=True).path(X, y, task=task, n_alphas=4)
    assert path.passes == 2.0
    assert np.all(path.relative_gaps <= 1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["plain", "standardize", "balanced", "positive"])
def test_what_takes_too_long_goes_on_with_residuals(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The first values from sums of products, the rest by the engine, from where they have ended."""
    X, y, task = make()
    X[:, 4:] = X[:, :5] + 0.02 * X[:, 4:]
    model = ts.MultiTaskLasso(**OPTIONS[name])
    grid = model.path(X, y, task=task, n_alphas=12).alphas
    monkeypatch.setattr(model_sums, "PATIENCE", 4)
    on_sums: list[Any] = []
    values = path_solver.SumSolver.values

    def noted(self: Any, alphas: Any) -> Any:
        found = values(self, alphas)
        on_sums.extend(found)
        return found

    monkeypatch.setattr(path_solver.SumSolver, "values", noted)
    path = model.path(X, y, task=task, alphas=grid)
    assert 0 < len(on_sums) < len(grid)
    assert path.choice.kind == "rows"
    assert "sums came to their end" in path.choice.reason
    assert len(path) == len(grid)
    same_paths(path, ordinarily(monkeypatch, lambda: model.path(X, y, task=task, alphas=grid)))
    fitted = model.set_params(alpha=float(grid[-1])).fit(X, y, task=task)
    assert fitted.dual_gap_ <= 1e-6 * fitted.null_objective_
    assert abs(fitted.objective_ - path.objectives[-1]) <= fitted.dual_gap_ + path.dual_gaps[-1]


def test_everyday_fits_need_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are noticed without an option: sums of products are taken at once, no column is read."""
    asked: list[Any] = []
    whole = RowSource.make_storage
    monkeypatch.setattr(RowSource, "make_storage", lambda self: asked.append(self) or whole(self))
    X, y, task = make()
    for given in ({"y": y}, {"y": y, "task": task}, {"y": np.stack([y, -y], axis=1)}):
        model = ts.MultiTaskLasso(0.1).fit(X, **given)
        assert model.dual_gap_ <= 1e-6 * model.null_objective_
        assert model.path(X, **given, n_alphas=5).passes == 1.0
    assert not asked
    ts.MultiTaskLasso(0.1).fit(X[:12], y[:12])  # few rows beside the features
    assert asked


def test_what_cannot_be_proved_goes_back_to_residuals(gathered: list[Any]) -> None:
    X, y, task = make()
    with pytest.warns(ConvergenceWarning):
        path = ts.MultiTaskLasso(tol=1e-14).path(X, y, task=task, n_alphas=3, eps=0.5)
    assert len(gathered)
    assert np.all(path.relative_gaps <= 1e-12)


CV: dict[str, dict[str, Any]] = {
    "plain": {},
    "standardize": {"standardize": True, "random_state": 3},
    "balanced": {"task_weights": "balanced", "cv": 4},
    "given": {"cv": ts.TaskKFold(3, shuffle=False), "selection_rule": "1se"},
    "no intercept": {"fit_intercept": False},
    "early": {"early_stopping": True, "n_alphas": 60, "eps": 1e-5},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CV)
@pytest.mark.parametrize("form", ["stacked", "shared", "hidden"])
@pytest.mark.filterwarnings("ignore::tasksieve.OrderWarning")
def test_cross_validation_of_arrays(
    monkeypatch: pytest.MonkeyPatch, gathered: list[Any], name: str, form: str
) -> None:
    """One reading for all folds: the same scores, alpha and model."""
    X, y, task = make(500, 6, 3)
    given: dict[str, Any] = {"task": task}
    if form != "stacked":
        y, given = np.stack([y, y[::-1] + 2.0 * X[:, 0]], axis=1), {}
        if form == "hidden":
            y[::7, 1] = np.nan
    options = {"n_alphas": 12, "fold_tol": 1e-9, "tol": 1e-9} | CV[name]

    def fitted() -> Any:
        return ts.MultiTaskLassoCV(**options).fit(X, y, **given)

    one = fitted()
    assert not gathered
    assert one.passes_ == 1.0
    other = ordinarily(monkeypatch, fitted)
    assert one.n_scored_ == other.n_scored_
    np.testing.assert_allclose(one.cv_scores_, other.cv_scores_, rtol=1e-5)
    np.testing.assert_allclose(one.alpha_, other.alpha_, rtol=1e-9)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)
    assert one.cv_folds_ == other.cv_folds_
    assert vars(one).keys() == vars(other).keys()
    assert len(one.path_) == len(other.path_)


def test_folds_that_overlap_and_checkpoints_go_the_ordinary_way(gathered: list[Any], tmp_path: Path) -> None:
    X, y, task = make()
    rows = np.random.default_rng(0).permutation(600)
    splits = [(rows[200:], rows[:200]), (rows[:300], rows[300:]), (rows[100:], rows[:100])]
    ts.MultiTaskLassoCV(n_alphas=5, cv=splits).fit(X, y, task=task)
    assert len(gathered)
    gathered.clear()
    with ts.checkpoint(tmp_path):
        ts.MultiTaskLassoCV(n_alphas=5).fit(X, y, task=task)
    assert len(gathered)


def test_held_out_errors_without_digits_are_taken_from_the_rows(gathered: list[Any]) -> None:
    """Labels without noise: what is left of them is rounding."""
    X, _, task = make(300, 4, 2)
    y = X @ np.array([1.0, 2.0, 0.0, 0.0])
    model = ts.MultiTaskLassoCV(n_alphas=30, eps=1e-9, tol=1e-16, fold_tol=1e-16, max_iter=50)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, task=task)
    assert len(gathered)


def test_memory_beside_x() -> None:
    """Counted bytes: nothing of the size of X is allocated for a path on rows that lie in any order."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120_000, 60))
    task, y = rng.integers(0, 50, len(X)), X[:, 0] + rng.standard_normal(len(X))
    ts.MultiTaskLasso().path(X[:500], y[:500], task=task[:500], n_alphas=2)
    tracemalloc.start()
    try:
        path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # vectors over the rows, the Gram matrices, and blocks of a size that does not grow with the rows
    assert peak <= 0.2 * X.nbytes + 3 * sums.BLOCK_BYTES
    assert path.converged.all()


def test_a_storage_is_made_when_it_is_needed() -> None:
    X, y, task = make()
    data = read_tasks(X, y, task)
    assert "storage" not in vars(data.source)
    assert data.with_weights(data.weights).make_storage() is data.make_storage()


# -- sums that the user makes ------------------------------------------------------------------------------------------


def chunks(n: int, *cuts: int) -> list[slice]:
    ends = [0, *cuts, n]
    return [slice(low, high) for low, high in zip(ends[:-1], ends[1:], strict=True)]


def added(X: Any, y: Any, task: Any, cuts: tuple[int, ...] = (100, 130), **options: Any) -> ts.TaskMoments:
    moments = ts.TaskMoments(**options)
    for part in chunks(len(y), *cuts):
        moments.add(X[part], y[part], task=None if task is None else task[part])
    return moments


@pytest.mark.parametrize("name", OPTIONS)
def test_moments_give_the_same_path(name: str) -> None:
    X, y, task = make()
    model = ts.MultiTaskLasso(tol=1e-8, **OPTIONS[name])
    moments = added(X, y, task, fit_intercept=model.fit_intercept)
    same_paths(model.path_moments(moments, n_alphas=8), model.path(X, y, task=task, n_alphas=8), 1e-8)


def test_moments_give_the_same_fit() -> None:
    X, y, task = make()
    names = np.array(["a", "bcd", "e", "f"])
    for alpha in (0.1, 1e6):
        one = ts.MultiTaskElasticNet(alpha).fit_moments(added(X, y, names[task]))
        other = ts.MultiTaskElasticNet(alpha).fit(X, y, task=names[task])
        assert one.tasks_.tolist() == other.tasks_.tolist()
        assert abs(one.objective_ - other.objective_) <= one.dual_gap_ + other.dual_gap_
        np.testing.assert_allclose(one.coef_, other.coef_, atol=2e-3)
        np.testing.assert_allclose(one.predict(X, task=names[task]), other.predict(X, task=names[task]), atol=0.05)
        moments = added(X, y, names[task])
        left = y - one.predict(X, task=names[task])
        expected = [1.0 - np.sum(left[task == t] ** 2) / (np.var(y[task == t]) * np.sum(task == t)) for t in range(4)]
        np.testing.assert_allclose(moments.r2(one), expected, atol=1e-9)
        np.testing.assert_allclose(moments.deviations(), X.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("hidden", ["none", "late", "early"])
def test_moments_of_a_shared_matrix(hidden: str) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((300, 7)) + 1.0, rng.standard_normal((300, 2)) + 5.0
    Y += X[:, :2] @ rng.standard_normal((2, 2))
    if hidden != "none":
        Y[10 if hidden == "early" else 250, 1] = np.nan
    model = ts.MultiTaskLasso()
    same_paths(model.path_moments(added(X, Y, None), n_alphas=6), model.path(X, Y, n_alphas=6))


def test_chunks_change_nothing_but_roundings() -> None:
    X, y, task = make(240)
    first, second = added(X, y, task, (), n_folds=3), added(X, y, task, (1, 2, 50, 199), n_folds=3)
    for one, other in zip(first.parts(), second.parts(), strict=True):
        np.testing.assert_allclose(one.totals, other.totals)
        if one.totals.any():
            np.testing.assert_allclose(one.means()[0], other.means()[0], atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_cross_validation_from_moments(shared: bool) -> None:
    """The same scores, alpha and model as from the rows with the same folds."""
    X, y, task = make(300, 6, 3)
    rng = np.random.default_rng(0)
    if shared:
        y, task = np.stack([y, y[::-1] + X[:, 0]], axis=1), None  # type: ignore[assignment]
    fold = rng.integers(-1, 4, 300)
    moments = ts.TaskMoments(n_folds=4)
    for part in chunks(300, 77, 200):
        moments.add(X[part], y[part], task=None if task is None else task[part], fold=fold[part])
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(4)]
    options = {"n_alphas": 15, "tol": 1e-9, "fold_tol": 1e-9, "task_weights": "balanced"}
    one = ts.MultiTaskElasticNetCV(l1_ratio=[0.5, 0.9], **options).fit_moments(moments)
    other = ts.MultiTaskElasticNetCV(l1_ratio=[0.5, 0.9], cv=splits, **options).fit(X, y, task=task)
    np.testing.assert_allclose(one.cv_scores_, other.cv_scores_, rtol=1e-4)
    assert one.l1_ratio_ == other.l1_ratio_
    np.testing.assert_allclose(one.alpha_, other.alpha_, rtol=1e-9)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)
    of_rows = {"cv_fold_", "cv_predictions_", "cv_task_scores_"}
    assert vars(one).keys() == vars(other).keys() - of_rows
    assert one.cv_folds_ == "4 folds as given"


def test_early_stopping_from_moments() -> None:
    X, y, task = make(200, 8, 2, seed=3)
    fold = np.random.default_rng(1).integers(0, 3, 200)
    moments = ts.TaskMoments(n_folds=3).add(X, y, task=task, fold=fold)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    options = {"n_alphas": 60, "eps": 1e-5, "early_stopping": True, "fold_tol": 1e-9}
    one = ts.MultiTaskLassoCV(**options).fit_moments(moments)
    other = ts.MultiTaskLassoCV(cv=splits, **options).fit(X, y, task=task)
    assert one.n_scored_ == other.n_scored_ < 60
    np.testing.assert_allclose(one.alpha_, other.alpha_)
    np.testing.assert_allclose(one.cv_scores_, other.cv_scores_, rtol=1e-5)
    assert len(one.path_) == one.n_scored_


def test_assigned_folds() -> None:
    X, y, task = make(400, 4, 3)
    moments = added(X, y, task, n_folds=5)
    counts = np.array([part.totals for part in moments.parts()])
    assert np.all(counts[-1] == 0)  # none is kept from being held out
    assert np.ptp(counts[:-1], axis=0).max() <= 1
    assert "seed 0" in ts.MultiTaskLassoCV(n_alphas=4).fit_moments(moments).cv_folds_


def test_drift_and_recentred_moments() -> None:
    X, y, task = make(3000)
    X[:1, 2] += 1e9
    moments = added(X, y, task, (1, 40), n_folds=2)
    assert not moments.well_centred
    again = moments.recentred()
    for part in chunks(3000, 1, 40):
        again.add(X[part], y[part], task=task[part])
    assert again.well_centred
    path = ts.MultiTaskLasso(standardize=True).path_moments(again, n_alphas=4)
    assert np.all(path.relative_gaps <= 1e-6)


def test_too_few_digits_are_said_and_the_gap_is_true() -> None:
    X, y, task = make(500)
    X[:, 2] += 1e9
    moments = ts.TaskMoments()
    moments.add(np.zeros((4, 9)), np.zeros(4), task=np.arange(4))  # shifts of 0: squares of 1e18 drown what varies
    moments.add(X, y, task=task)
    model = ts.MultiTaskLasso(alpha=0.01, feature_weights=np.r_[1.0, 1.0, 2.0, np.ones(6)])
    with pytest.warns(ConvergenceWarning, match="digits"):
        model.fit_moments(moments)
    rows = np.vstack([np.zeros((4, 9)), X]), np.r_[np.zeros(4), y], np.r_[np.arange(4), task]
    weights = model.feature_weights
    exact = ts.MultiTaskLasso(alpha=0.01, feature_weights=weights).fit(**named_rows(*rows))
    fitted = np.sum(wide(rows[0]) * wide(model.coef_)[rows[2]], axis=1) + model.intercept_[rows[2]]
    left = rows[1] - fitted
    objective = float(left @ left) / (2 * 504 / 4) + 0.01 * weights @ np.linalg.norm(model.coef_, axis=0)
    assert objective - exact.objective_ <= model.dual_gap_


def test_constant_labels() -> None:
    X, _, task = make()
    model = ts.MultiTaskLasso(0.1).fit_moments(added(X, 0.1 * (task + 1.0), task))
    assert not model.coef_.any()
    assert np.array_equal(model.intercept_, 0.1 * (np.arange(4) + 1.0))
    assert model.dual_gap_ == 0.0


def test_refusals() -> None:
    X, y, task = make(60, 4, 2)
    moments = added(X, y, task, ())
    with pytest.raises(ValueError, match="no folds"):
        ts.MultiTaskLassoCV().fit_moments(moments)
    with pytest.raises(ValueError, match="logistic"):
        ts.MultiTaskSparseGroupLasso(loss="logistic").fit_moments(moments)
    with pytest.raises(ValueError, match="fit_intercept"):
        ts.MultiTaskLasso(fit_intercept=False).fit_moments(moments)
    with pytest.raises(ValueError, match="cv is 7"):
        ts.MultiTaskLassoCV(cv=7).fit_moments(added(X, y, task, (), n_folds=3))
    with pytest.raises(ValueError, match="random_state"):
        ts.MultiTaskLassoCV(random_state=7).fit_moments(added(X, y, task, (), n_folds=3))
    with pytest.raises(ValueError, match="hold no rows"):
        ts.MultiTaskLasso().fit_moments(ts.TaskMoments())
    with pytest.raises(TypeError, match="TaskMoments"):
        ts.MultiTaskLasso().fit_moments(X)
    with pytest.raises(ValueError, match="3 features"):
        moments.add(X[:, :3], y, task=task)
    with pytest.raises(ValueError, match="form"):
        moments.add(X, y)
    with pytest.raises(ValueError, match="n_folds"):
        moments.add(X, y, task=task, fold=task)
    with pytest.raises(ValueError, match="fold is 2 in row 3"):
        ts.TaskMoments(2).add(X, y, task=task, fold=np.arange(60))
    with pytest.raises(ValueError, match="one after the other"):
        moments.add([X, X], [y, y])
    with pytest.raises(ValueError, match="n_folds"):
        ts.TaskMoments(1)
    with pytest.raises(ValueError, match="combinations"):
        X[:, 1] = X[:, 0]
        ts.MultiTaskLasso(feature_weights=[0, 0, 1, 1]).fit_moments(added(X, y, task, ()))
    with pytest.raises(ValueError, match="screening"):
        ts.MultiTaskLasso(screening=None).fit_moments(moments)
    with pytest.raises(ValueError, match="range of double"):
        ts.MultiTaskLasso().fit_moments(added(X * 1e160, y, task, ()))
    with pytest.raises(ValueError, match="l1 has 3"):
        ts.MultiTaskSparseGroupLasso(l1=[1.0, 1.0, 1.0]).fit_moments(moments)
