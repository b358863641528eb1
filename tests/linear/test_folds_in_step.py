"""Folds in step: the numbers of folds solved alone, few readings of X, and early stopping by the mean curve."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.linear import fold_paths, row_folds
from tasksieve.linear.early_stopping import MeanCurve
from tasksieve.path import policy

ATTRIBUTES = ("cv_scores_", "alpha_", "alphas_", "coef_", "intercept_", "dual_gap_", "objective_")


def problem(rng, shape=(60, 300), tasks=3, dtype=np.float64, noise=0.5):
    X = rng.standard_normal(shape).astype(dtype)
    task = np.sort(rng.integers(0, tasks, shape[0]))
    task[:tasks] = np.arange(tasks)
    task.sort()
    W = np.zeros((tasks, shape[1]))
    W[:, :4] = rng.standard_normal((tasks, 4))
    y = 1.0 + np.einsum("ij,ij->i", X, W[task]) + noise * rng.standard_normal(shape[0])
    return X, y, task


def mapped(tmp_path, X, order="F"):
    found = np.memmap(tmp_path / f"x{order}", dtype=X.dtype, mode="w+", shape=X.shape, order=order)
    found[:] = X
    return found


class Columns(ts.Storage):
    """Columns of an array that lies elsewhere."""

    def __init__(self, x):
        self.x, (self.n_rows, self.n_features) = x, x.shape

    def take(self, features):
        return self.x[:, features]


def alone(monkeypatch, model, *args, **rows):
    """What the model is if every fold is solved on its own."""
    with monkeypatch.context() as patched:
        patched.setattr(row_folds, "walks_share_readings", lambda *sizes: False)
        model.fit(*args, **rows)
    return {name: np.copy(getattr(model, name)) for name in ATTRIBUTES}, model.passes_


def assert_same(model, expected, exactly=True):
    for name, value in expected.items():
        if exactly:
            np.testing.assert_array_equal(getattr(model, name), value, err_msg=name)
        else:
            np.testing.assert_allclose(getattr(model, name), value, rtol=1e-8, atol=1e-8, err_msg=name)


MODELS = {
    "lasso": ts.MultiTaskLassoCV(n_alphas=20, cv=3),
    "standardized": ts.MultiTaskLassoCV(n_alphas=12, cv=3, standardize=True, n_jobs=2),
    "free": ts.MultiTaskLassoCV(n_alphas=12, cv=3, feature_weights=[0.0] * 2 + [1.0] * 298),
    "ratios": ts.MultiTaskElasticNetCV(n_alphas=8, cv=3, l1_ratio=[0.5, 0.9]),
    "calibrated": ts.CalibratedMultiTaskLassoCV(n_alphas=8, cv=3),
    "owl": ts.MultiTaskOWLCV(n_alphas=6, cv=3),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", ["F", "C"])
@pytest.mark.parametrize("kind", MODELS)
def test_the_numbers_of_folds_solved_alone(rng, tmp_path, monkeypatch, kind, order):
    X, y, task = problem(rng, dtype=np.float32 if kind == "lasso" else np.float64)
    x, model = mapped(tmp_path, X, order), MODELS[kind]
    expected, passes = alone(monkeypatch, model, x, y, task=task)
    model.fit(x, y, task=task)
    # products of a few columns of a file stored by rows are summed in another order
    assert_same(model, expected, exactly=order == "F")
    assert model.passes_ < 0.6 * passes
    assert model.path_.passes < model.passes_


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["shared", "own", "sparse", "list"])
def test_other_forms_and_storages(rng, tmp_path, monkeypatch, form):
    X, y, task = problem(rng)
    model = ts.MultiTaskLassoCV(n_alphas=12, cv=3)
    rows = {"task": task}
    if form == "shared":
        data = (mapped(tmp_path, X, "C"), X[:, :3] @ rng.standard_normal((3, 4)) + rng.standard_normal((60, 4)))
        rows = {}
    elif form == "own":
        data = (Columns(X), y)
    elif form == "sparse":
        data = (scipy.sparse.csr_array(np.where(np.abs(X) < 1.0, 0.0, X)), y)
        monkeypatch.setattr("tasksieve.design.storage.sparse.LARGE", 0)
    else:
        data = ([mapped(tmp_path, X[task == t], "FC"[t % 2]) for t in range(2)], [y[task == t] for t in range(2)])
        rows = {}
    expected, passes = alone(monkeypatch, model, *data, **rows)
    model.fit(*data, **rows)
    assert_same(model, expected, exactly=form == "sparse")
    assert model.passes_ < 0.7 * passes


def test_a_file_is_read_a_few_times(rng, tmp_path, monkeypatch):
    """Five folds and the path over all rows, a hundred values each."""
    X, y, task = problem(rng, (60, 1200), 2)
    x = mapped(tmp_path, X)
    model = ts.MultiTaskLassoCV()
    expected, passes = alone(monkeypatch, model, x, y, task=task)
    model.fit(x, y, task=task)
    assert_same(model, expected)
    assert model.passes_ <= 25
    assert model.passes_ < passes / 3


def test_data_in_memory_are_not_walked_in_step(rng, monkeypatch):
    X, y, task = problem(rng)
    monkeypatch.setattr(fold_paths, "Lockstep", None)
    before = threading.active_count()
    ts.MultiTaskLassoCV(n_alphas=5, cv=3).fit(X, y, task=task)
    assert threading.active_count() == before


def test_folds_whose_anchors_would_fill_memory_are_walked_alone(rng, tmp_path, monkeypatch):
    X, y, task = problem(rng)
    monkeypatch.setattr(policy, "SHARED_BYTES", 0)
    monkeypatch.setattr(fold_paths, "Lockstep", None)
    ts.MultiTaskLassoCV(n_alphas=3, cv=3).fit(mapped(tmp_path, X), y, task=task)


def test_progress_of_all_is_heard_and_an_interrupt_ends_all(rng, tmp_path):
    X, y, task = problem(rng)
    x, heard = mapped(tmp_path, X), []
    with ts.watch(lambda progress: heard.append((progress.label, progress.done))):
        ts.MultiTaskLassoCV(n_alphas=5, cv=2).fit(x, y, task=task)
    for piece in ("fold 1", "fold 2", "all rows"):
        assert [done for label, done in heard if label.endswith(piece)] == [1, 2, 3, 4, 5]

    def stop(progress):
        if progress.label.endswith("fold 2") and progress.done == 3:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), ts.watch(stop):
        ts.MultiTaskLassoCV(n_alphas=50, cv=3).fit(x, y, task=task)
    assert threading.active_count() == before


def test_a_fold_that_fails_says_so(rng, tmp_path):
    X, y, task = problem(rng)
    X[5, 7] = np.nan
    with pytest.raises(ValueError, match="X"):
        ts.MultiTaskLassoCV(n_alphas=5, cv=2).fit(mapped(tmp_path, X), y, task=task)


def test_a_checkpoint_has_folds_finished_one_by_one(rng, tmp_path):
    X, y, task = problem(rng)
    x, model = mapped(tmp_path, X), ts.MultiTaskLassoCV(n_alphas=10, cv=3)
    model.fit(x, y, task=task)
    whole = {name: np.copy(getattr(model, name)) for name in ATTRIBUTES}
    solved = []

    def listen(progress):
        if progress.label.endswith("fold 3") and progress.done == 2 and not solved.count("again"):
            raise KeyboardInterrupt
        if progress.done == progress.total:
            solved.append(progress.label.partition(", ")[2])

    with ts.watch(listen), ts.checkpoint(tmp_path / "kept"):
        with pytest.raises(KeyboardInterrupt):
            model.fit(x, y, task=task)
        assert solved == ["fold 1", "fold 2"]
        solved.append("again")
        model.fit(x, y, task=task)
    assert solved[3:] == ["fold 3", "all rows"]
    assert_same(model, whole)


# --- the accuracy of folds ---------------------------------------------------------------------------------------


def test_folds_are_solved_less_accurately(rng):
    X, y, task = problem(rng, (60, 40))
    model = ts.MultiTaskLassoCV(n_alphas=10, cv=3)
    default = model.fit(X, y, task=task)
    scores, coef = default.cv_scores_, default.coef_
    said = ts.MultiTaskLassoCV(n_alphas=10, cv=3, fold_tol=1e-4).fit(X, y, task=task)
    np.testing.assert_array_equal(said.cv_scores_, scores)
    exact = ts.MultiTaskLassoCV(n_alphas=10, cv=3, fold_tol=1e-10).fit(X, y, task=task)
    assert 0.0 < np.abs(exact.cv_scores_ - scores).max() < 0.01 * scores.max()
    np.testing.assert_array_equal(exact.coef_, coef)  # the final fit keeps tol
    loose = ts.MultiTaskLassoCV(n_alphas=10, cv=3, tol=1e-2).fit(X, y, task=task)
    same = ts.MultiTaskLassoCV(n_alphas=10, cv=3, tol=1e-2, fold_tol=1e-2).fit(X, y, task=task)
    np.testing.assert_array_equal(loose.cv_scores_, same.cv_scores_)


@pytest.mark.parametrize(("name", "value"), [("fold_tol", -1.0), ("fold_tol", "1e-4"), ("early_stopping", 15)])
def test_wrong_options_are_named(rng, name, value):
    X, y, task = problem(rng, (20, 5))
    with pytest.raises(ValueError, match=name):
        ts.MultiTaskLassoCV(**{name: value}).fit(X, y, task=task)


# --- early stopping ----------------------------------------------------------------------------------------------

STOPPED = {
    "lasso": ts.MultiTaskLassoCV(n_alphas=45, cv=2),
    "jobs": ts.MultiTaskLassoCV(n_alphas=45, cv=2, n_jobs=2),
    "elastic": ts.MultiTaskElasticNetCV(n_alphas=45, cv=2),
    "sparse group": ts.MultiTaskSparseGroupLassoCV(n_alphas=45, cv=2),
    "calibrated": ts.CalibratedMultiTaskLassoCV(n_alphas=45, cv=2),
    "generic": ts.MultiTaskRegressorCV(n_alphas=45, cv=2),
}


def noisy(rng):
    """Data whose best model is a sparse one."""
    return problem(rng, (40, 30), noise=3.0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("storage", ["memory", "file"])
@pytest.mark.parametrize("kind", STOPPED)
def test_all_folds_stop_at_the_same_value(rng, tmp_path, kind, storage):
    X, y, task = noisy(rng)
    x = mapped(tmp_path, X) if storage == "file" else X
    model = STOPPED[kind].set_params(early_stopping=False)
    model.fit(x, y, task=task)
    full, alpha, grid, coef = model.cv_scores_.copy(), model.alpha_, model.alphas_, model.coef_
    assert model.n_scored_ == len(grid)
    model.set_params(early_stopping=True).fit(x, y, task=task)
    n = model.n_scored_
    assert n < len(grid)
    np.testing.assert_array_equal(model.alphas_, grid)
    assert model.cv_scores_.shape == full.shape
    np.testing.assert_allclose(model.cv_scores_[:n], full[:n], rtol=1e-12)
    assert np.isnan(model.cv_scores_[n:]).all()
    means = full.mean(axis=1)
    assert n - 1 - np.argmin(means[:n]) == 15
    assert model.alpha_ == alpha
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.path_.alphas, grid[:n])
    np.testing.assert_array_equal(model.path_scores_, model.cv_scores_[:n])


def test_several_candidates_have_their_own_stops(rng):
    X, y, task = noisy(rng)
    model = ts.MultiTaskElasticNetCV(
        n_alphas=45, cv=2, l1_ratio=[0.5, 1.0], early_stopping=True, selection_rule="1se"
    ).fit(X, y, task=task)
    assert model.cv_scores_.shape == (2, 45, 2)
    scored = np.count_nonzero(~np.isnan(model.cv_scores_).any(axis=2), axis=1)
    assert np.all(scored < 45)
    assert len(model.path_) == model.n_scored_ in scored


def test_values_of_the_user_are_all_solved(rng):
    X, y, task = noisy(rng)
    number = ts.MultiTaskLassoCV(45, cv=2, early_stopping=True).fit(X, y, task=task)
    assert number.n_scored_ < 45  # so many values, but not the user's
    model = ts.MultiTaskLassoCV(number.alphas_, cv=2, early_stopping=True).fit(X, y, task=task)
    assert model.n_scored_ == 45
    assert not np.isnan(model.cv_scores_).any()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_stopped_folds_are_kept(rng, tmp_path, n_jobs):
    X, y, task = noisy(rng)
    model = ts.MultiTaskLassoCV(n_alphas=45, cv=3, early_stopping=True, n_jobs=n_jobs)
    with ts.checkpoint(tmp_path / "kept"):
        model.fit(X, y, task=task)
    first = {name: np.copy(getattr(model, name)) for name in (*ATTRIBUTES, "n_scored_")}
    labels = set()
    for lost in (0, 2):
        for file in sorted((tmp_path / "kept").iterdir())[:lost]:
            file.unlink()
        labels.clear()
        with ts.checkpoint(tmp_path / "kept"), ts.watch(lambda progress: labels.add(progress.label)):
            model.fit(X, y, task=task)
        assert len(labels) == 1 + lost  # all rows, and the folds that were lost
        assert_same(model, first)
    with ts.checkpoint(tmp_path / "kept"), ts.watch(lambda progress: labels.add(progress.label)):
        model.set_params(early_stopping=False).fit(X, y, task=task)  # not those folds
    assert len(labels) == 4


def test_interrupts_end_folds_in_step(rng):
    X, y, task = noisy(rng)

    def stop(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ts.watch(stop):
        ts.MultiTaskLassoCV(early_stopping=True).fit(X, y, task=task)


def test_the_mean_curve():
    curve = MeanCurve(10, 2, patience=3)
    curve.add(0, 0, np.array([5.0, 4.0, 4.5, 9.0, 9.0, 9.0, 9.0]))
    assert not curve.ended(9)
    assert curve.near(2, 3)
    assert not curve.near(3, 3)  # the other fold has nothing yet
    curve.add(1, 0, np.array([5.0, 4.0, 3.5]))  # the minimum of the mean is at 1 and again at 2
    assert curve.n_scored == 10
    curve.add(1, 3, np.array([3.0, 3.0]))
    assert curve.n_scored == 10
    curve.add(1, 5, np.array([3.0]))  # the third above it
    assert curve.n_scored == 6
    assert curve.ended(6)
    assert not curve.ended(5)
    assert curve.near(9, 0)  # nothing to wait for
    flat = MeanCurve(40, 1, patience=3)
    flat.add(0, 0, np.ones(40))  # never above its minimum
    assert flat.n_scored == 40


def test_a_remembered_curve_ends_where_it_ended():
    curve = MeanCurve(8, 2, patience=3)
    scores = np.array([3.0, 2.0, 2.5, 2.6, 2.7, np.nan, np.nan, np.nan])
    curve.add_remembered(0, scores)
    assert curve.n_scored == 5
    assert curve.near(4, 5)
    curve.add(1, 0, scores[:5])
    assert curve.n_scored == 5
