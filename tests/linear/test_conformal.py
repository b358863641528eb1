"""Prediction intervals and sets: against definitions written out, against MAPIE, and their coverage."""

from __future__ import annotations

import pickle
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold, RepeatedKFold

import tasksieve as ts
from tasksieve.fitted.conformal import Calibration, class_scores, rank, rows_needed

Array = np.ndarray[Any, Any]


def problem(
    sizes: tuple[int, ...] = (40, 30, 50), d: int = 12, seed: int = 0, noise: float = 1.0
) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    task = np.repeat(np.array(list("abcdefghij"))[: len(sizes)], sizes)
    X = random.standard_normal((len(task), d))
    coef = np.zeros((len(sizes), d))
    coef[:, :3] = 1.0 + random.random((len(sizes), 3))
    codes = np.repeat(np.arange(len(sizes)), sizes)
    y = np.einsum("nd,nd->n", X, coef[codes]) + noise * random.standard_normal(len(task))
    return X, y, task


def fold_models(model: Any, X: Array, y: Array, task: Array, fold: Array, make: Any) -> list[Any]:
    """A model of the rows outside each fold, fitted anew."""
    return [make().fit(X[fold != f], y[fold != f], task=task[fold != f]) for f in range(1, int(fold.max()) + 1)]


def kth(values: Any, k: int) -> float:
    values = sorted(values)
    return -np.inf if k < 1 else np.inf if k > len(values) else values[k - 1]


def test_intervals_are_those_of_the_definition() -> None:
    X, y, task = problem()
    options = {"tol": 1e-12, "max_iter": 100_000}
    model = ts.MultiTaskLassoCV(n_alphas=8, cv=4, keep_folds=True, fold_tol=1e-12, **options).fit(X, y, task=task)
    fold = model.cv_fold_.astype(int)
    repeated = fold_models(model, X, y, task, fold, lambda: ts.MultiTaskLasso(model.alpha_, **options))
    new, names = X[:9] + 0.1, np.array(list("abcabcabc"))
    found = model.predict_interval(new, task=names, coverage=0.8)
    for x, name, (low, high) in zip(new, names, found, strict=True):
        own = np.flatnonzero(task == name)
        n, lows, highs = len(own), [], []
        for i in own:
            fitted = repeated[fold[i] - 1]
            off = abs(y[i] - fitted.predict(X[i : i + 1], task=[name])[0])
            centre = fitted.predict(x[None], task=[name])[0]
            lows.append(centre - off)
            highs.append(centre + off)
        assert low == pytest.approx(kth(lows, floor(0.2 * (n + 1) + 1e-9)), abs=1e-5)
        assert high == pytest.approx(kth(highs, ceil(0.8 * (n + 1) - 1e-9)), abs=1e-5)
    every = model.predict_interval(new, coverage=0.8)
    assert every.shape == (9, 3, 2)
    np.testing.assert_allclose(every[np.arange(9), [0, 1, 2] * 3], found, rtol=1e-12)
    by_name = model.predict_interval({"b": new[1::3]}, coverage=0.8)
    np.testing.assert_allclose(by_name["b"], found[1::3], rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_interval(new, task=names, coverage=0.8), found)


def test_quantiles_and_spreads_by_the_definition() -> None:
    X, y, task = problem()
    same = {"n_alphas": 3, "cv": 3, "keep_folds": True, "eps": 0.2}
    low = ts.MultiTaskQuantileCV(q=0.1, **same).fit(X, y, task=task)
    high = ts.MultiTaskQuantileCV(q=0.9, **same).fit(X, y, task=task)
    centre = ts.MultiTaskLassoCV(**same).fit(X, y, task=task)
    sizes = np.abs(y - centre.cv_predictions_) + 1e-3
    spread = ts.MultiTaskRegressorCV(loss="gamma", **same).fit(X, sizes, task=task)
    fold = low.cv_fold_.astype(int)
    assert all(np.array_equal(fold, other.cv_fold_) for other in (high, centre, spread))

    def answers(model: Any, rows: Array, name: str) -> Array:
        """Of each fold's model: folds x rows."""
        return np.stack(model._fold_answers(rows, np.repeat(name, len(rows)), None, model._kept, False))

    new = X[:5] + 0.2
    for name in "abc":
        own = np.flatnonzero(task == name)
        n, names, of = len(own), np.repeat(name, 5), fold[own] - 1
        k, places = ceil(0.9 * (n + 1) - 1e-9), np.arange(n)
        scores = np.maximum(
            answers(low, X[own], name)[of, places] - y[own], y[own] - answers(high, X[own], name)[of, places]
        )
        found = low.predict_interval(new, task=names, upper=high)
        ends = [[kth(sign * (sign * answers(model, new, name)[of, j] + scores), k if sign > 0 else n + 1 - k)
                 for model, sign in ((low, -1), (high, 1))] for j in range(5)]  # fmt: skip
        np.testing.assert_allclose(found, ends, rtol=1e-12)
        middle, unit = answers(centre, X[own], name)[of, places], answers(spread, X[own], name)[of, places]
        scores = np.abs(y[own] - middle) / unit
        found = centre.predict_interval(new, task=names, spread=spread)
        ends = [[kth(answers(centre, new, name)[of, j] + sign * scores * answers(spread, new, name)[of, j],
                     k if sign > 0 else n + 1 - k) for sign in (-1, 1)] for j in range(5)]  # fmt: skip
        np.testing.assert_allclose(found, ends, rtol=1e-12)


@pytest.mark.parametrize("score", ["probability", "cumulative"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_are_those_of_the_definition(n_classes: int, score: Any) -> None:
    X, y, task = problem()
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [0.0] if n_classes == 2 else [-1.0, 1.5])]
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=5, eps=0.1, cv=3, keep_folds=True).fit(X, labels, task=task)
    fold, classes = model.cv_fold_.astype(int), model.classes_.tolist()
    new, names = X[:6] + 0.3, np.array(list("abcabc"))
    found = model.predict_set(new, task=names, coverage=0.75, score=score)
    assert found.shape == (6, n_classes)
    assert found.dtype == bool
    chances = model._fold_answers(new, names, None, model._kept, True)

    def badness(shares: Array, c: int) -> float:
        return -shares[c] if score == "probability" else sum(share for share in shares if share >= shares[c])

    for j, name in enumerate(names):
        own = np.flatnonzero(task == name)
        held = [badness(model.cv_predictions_[i], classes.index(labels[i])) for i in own]
        for c in range(n_classes):
            worse = sum(s < badness(chances[fold[i] - 1][j], c) for s, i in zip(held, own, strict=True))
            assert found[j, c] == (worse < 0.75 * (len(own) + 1))


def test_sets_of_other_kinds_of_classes() -> None:
    X, y, task = problem()
    grades = np.digitize(y, [-1.0, 1.0])
    ordered = ts.MultiTaskOrdinalCV(n_alphas=5, eps=0.1, cv=3, keep_folds=True).fit(X, grades, task=task)
    inside = ordered.predict_set(X, task=task)[np.arange(len(y)), grades]
    assert inside.mean() > 0.85
    signs = np.where(y > 0, "yes", "no")
    hinge = ts.MultiTaskClassifierCV("squared_hinge", n_alphas=5, eps=0.1, cv=3, keep_folds=True)
    hinge.fit(X, signs, task=task)
    found = hinge.predict_set(X, task=task)
    assert found[np.arange(len(y)), (signs == "yes").astype(int)].mean() > 0.85
    with pytest.raises(AttributeError, match="predict_proba needs"):
        hinge.predict_set(X, task=task, score="cumulative")
    own = np.where(task == "a", signs, np.array(["x", "y", "z"])[grades])  # each task has its own classes
    model = ts.MultiTaskClassifierCV(n_alphas=5, eps=0.1, cv=3, keep_folds=True).fit(X, own, task=task)
    parts = model.predict_set(X, task=task)
    assert [part.shape for part in parts] == [(40, 2), (30, 3), (50, 3)]


def test_forms_of_rows_and_of_one_task() -> None:
    X, y, task = problem((40, 40))
    listed = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True).fit([X[:40], X[40:]], [y[:40], y[40:]])
    parts = listed.predict_interval([X[:3], X[40:45]])
    assert [part.shape for part in parts] == [(3, 2), (5, 2)]
    stacked = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True).fit(X, y, task=task)
    np.testing.assert_allclose(stacked.predict_interval(X[40:45], task=task[40:45]), parts[1], rtol=1e-9)
    assert stacked.predict_interval(X[:0], task=task[:0]).shape == (0, 2)
    one = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True).fit(X[:40], y[:40])
    assert one.predict_interval(X[:7]).shape == (7, 2)
    shared = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True).fit(X[:40], np.stack([y[:40], y[40:]], axis=1))
    assert shared.predict_interval(X[:7]).shape == (7, 2, 2)
    column = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True, task=0)
    codes = (task == "b").astype(float)[:, None]
    column.fit(np.hstack([codes, X]), y)
    np.testing.assert_allclose(
        column.predict_interval(np.hstack([codes, X])[:9]), stacked.predict_interval(X[:9], task=task[:9]), rtol=1e-9
    )


def test_counts_have_the_variance_of_their_loss_and_no_bound_below_zero() -> None:
    X, y, task = problem()
    random = np.random.default_rng(1)
    counts = random.poisson(np.exp(0.5 * np.clip(y, -3, 3)))
    model = ts.MultiTaskPoissonCV(n_alphas=6, eps=0.1, cv=4, keep_folds=True).fit(X, counts, task=task)
    plain = model.predict_interval(X, task=task)
    scaled = model.predict_interval(X, task=task, spread="variance")
    assert plain.min() == 0.0
    widths = np.diff(scaled, axis=1)[:, 0]
    assert np.corrcoef(widths, np.sqrt(model.predict(X, task=task)))[0, 1] > 0.95
    assert np.mean((counts >= scaled[:, 0]) & (counts <= scaled[:, 1])) > 0.85
    lasso = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True).fit(X, y, task=task)
    with pytest.raises(ts.ParameterError, match="implies none"):
        lasso.predict_interval(X, task=task, spread="variance")


def test_offsets_and_weights_reach_the_models_of_folds() -> None:
    X, y, task = problem()
    random = np.random.default_rng(2)
    offset, weights = random.standard_normal(len(y)), random.integers(0, 3, len(y)).astype(float)
    model = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True)
    model.fit(X, y + offset, task=task, sample_weight=weights, offset=offset)
    assert len(model._kept.y) == np.count_nonzero(weights)
    shifted = model.predict_interval(X[:5], task=task[:5], offset=2.0)
    np.testing.assert_allclose(shifted - 2.0, model.predict_interval(X[:5], task=task[:5], offset=0.0), rtol=1e-9)
    with pytest.raises(ValueError, match="pass offset="):
        model.predict_interval(X[:5], task=task[:5])


def test_small_tasks_borrow_only_on_request() -> None:
    X, y, task = problem((40, 6, *[30] * 8))
    model = ts.MultiTaskLassoCV(n_alphas=5, cv=3, keep_folds=True).fit(X, y, task=task)
    with pytest.warns(UserWarning, match=r"1 task\(s\) have fewer held-out rows than the 9 .*'b': 6.*borrow=True"):
        alone = model.predict_interval(X[:4])
    assert np.isinf(alone[:, 1]).all()
    assert np.isfinite(np.delete(alone, 1, axis=1)).all()
    borrowed = model.predict_interval(X[:4], borrow=True)
    assert np.isfinite(borrowed).all()
    assert np.array_equal(np.delete(borrowed, 1, axis=1), np.delete(alone, 1, axis=1))
    kept = model._kept
    scores = np.abs(kept.y - kept.answers)
    counts = {t: np.count_nonzero(kept.task == t) + (t == 1) for t in range(10)}
    centres = np.stack(model._fold_answers(X[:4], np.repeat("b", 4), None, kept, False))
    for j in range(4):  # by hand: the first value at which nine tenths of the tasks' mass lie
        values = sorted((centres[kept.fold[i], j] + scores[i], i) for i in range(len(scores)))
        mass = np.cumsum([1.0 / (10 * counts[kept.task[i]]) for _, i in values])
        assert borrowed[j, 1, 1] == pytest.approx(values[int(np.argmax(mass >= 0.9 - 1e-12))][0], rel=1e-12)
    assert not np.array_equal(model.predict_interval(X[:4], borrow=35)[:, 2], alone[:, 2])  # task c has 30 rows


def test_nested_folds_choose_alpha_without_the_rows_held_out() -> None:
    X, y, task = problem()
    nested = ts.MultiTaskLassoCV(n_alphas=8, cv=3, keep_folds="nested").fit(X, y, task=task)
    plain = ts.MultiTaskLassoCV(n_alphas=8, cv=3, keep_folds=True).fit(X, y, task=task)
    assert nested.alpha_ == plain.alpha_
    assert np.array_equal(nested.cv_predictions_, plain.cv_predictions_)
    changed = y.copy()
    held = nested.cv_fold_ == 1
    changed[held] += 100.0 * np.arange(np.count_nonzero(held))  # the first fold's model does not see them
    other = ts.MultiTaskLassoCV(n_alphas=8, cv=3, keep_folds="nested").fit(X, changed, task=task)
    for name in ("features", "rows", "intercept"):
        assert np.array_equal(getattr(other._kept.points[0], name), getattr(nested._kept.points[0], name))
    tuned = ts.MultiTaskLassoCV(n_alphas=8, cv=3, keep_folds=True).fit(X, changed, task=task)
    assert not np.array_equal(tuned._kept.points[0].features, plain._kept.points[0].features)


def test_refusals() -> None:
    X, y, task = problem()
    model = ts.MultiTaskLassoCV(n_alphas=5, cv=4).fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"predict_interval needs the models of the folds.*keep_folds=True"):
        model.predict_interval(X, task=task)
    kept = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True).fit(X, y, task=task)
    for coverage in (0.0, 1.0, "0.9", 90):
        with pytest.raises(ts.ParameterError, match="coverage"):
            kept.predict_interval(X, task=task, coverage=coverage)  # type: ignore[arg-type]
    with pytest.raises(ts.ParameterError, match="borrow"):
        kept.predict_interval(X, task=task, borrow=-1)
    other = ts.MultiTaskLassoCV(n_alphas=5, cv=4, keep_folds=True, random_state=1).fit(X, y, task=task)
    for name in ("upper", "spread"):
        with pytest.raises(ts.ParameterError, match=f"{name}.*same folds"):
            kept.predict_interval(X, task=task, **{name: other})
        with pytest.raises(ts.ParameterError, match=f"{name}.*keep_folds=True"):
            kept.predict_interval(X, task=task, **{name: model})
    with pytest.raises(ts.ParameterError, match="not positive"):
        kept.predict_interval(X, task=task, spread=kept)
    with pytest.raises(AttributeError, match="has no attribute"):
        _ = kept.predict_set
    with pytest.raises(ts.ParameterError, match="keep_folds"):
        ts.MultiTaskLassoCV(keep_folds="all").fit(X, y, task=task)  # type: ignore[arg-type]
    twice = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    with pytest.raises(ValueError, match="hold out no row twice"):
        ts.MultiTaskLassoCV(n_alphas=5, cv=twice, keep_folds=True).fit(X, y, task=task)
    refit = kept.set_params(keep_folds=False).fit(X, y, task=task)
    with pytest.raises(ValueError, match="needs the models"):
        refit.predict_interval(X, task=task)
    with pytest.raises(ValueError, match="unknown"):
        other.predict_interval(X[:1], task=["z"])
    mixed = ts.MultiTaskMixedCV({"a": "squared", "b": "squared", "c": "huber"}, keep_folds=True)
    with pytest.raises(ts.ParameterError, match=r"keep_folds.*unlike"):
        mixed.fit(X, y, task=task)
    moments = ts.TaskMoments(n_folds=3).add(X, y, task=task)
    with pytest.raises(ts.ParameterError, match=r"keep_folds.*needs rows"):
        ts.MultiTaskLassoCV(keep_folds=True).fit_moments(moments)
    assert not hasattr(ts.MultiTaskCoxCV(), "keep_folds")
    assert not hasattr(ts.MultiTaskCoxCV(), "predict_interval")


def test_ranks_read_numbers_as_they_are_written() -> None:
    assert [rank(0.9, n) for n in (8, 9, 19, 99)] == [9, 9, 18, 90]
    assert rank(0.7, 9) == 7  # 0.7 * 10 is 7.000000000000001 in other orders of rounding
    assert [rows_needed(level) for level in (0.5, 0.9, 0.95, 0.99)] == [1, 9, 19, 99]
    assert (class_scores(np.array([[0.2, 0.5, 0.3]]), True, cumulative=True) == [[1.0, 0.5, 0.8]]).all()
    far = Calibration(np.arange(1.0, 10.0), np.zeros(9, dtype=int))
    assert far.intervals(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), 0.9).tolist() == [[-9.0, 9.0]]


class OfFolds(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The model that a cross-validation has kept of the fold with these training rows."""

    def __init__(self, points: Any = None, X: Any = None, fold: Any = None) -> None:
        self.points, self.X, self.fold = points, X, fold

    def fit(self, X: Array, y: Array) -> OfFolds:
        rows = {row.tobytes() for row in X}
        held = {int(f) for row, f in zip(self.X, self.fold, strict=True) if row.tobytes() not in rows}
        self.point_ = self.points[held.pop() - 1 if held else 0]
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: Array) -> Array:
        return np.asarray(X[:, self.point_.features] @ self.point_.rows[:, 0] + self.point_.intercept[0])


@pytest.mark.parametrize(("n_rows", "coverage"), [(60, 0.9), (57, 0.8), (101, 0.95)])
def test_one_task_has_the_interval_of_mapie(n_rows: int, coverage: float) -> None:
    regression = pytest.importorskip(
        "mapie.regression", reason="MAPIE is not installed: pip install mapie, to compare intervals with its"
    )
    X, y, _ = problem((n_rows,))
    cv = KFold(5, shuffle=True, random_state=3)
    model = ts.MultiTaskLassoCV(n_alphas=8, cv=cv, keep_folds=True).fit(X, y)
    base = OfFolds(model._kept.points, X, model.cv_fold_)
    new = np.random.default_rng(5).standard_normal((50, X.shape[1]))
    theirs = regression.CrossConformalRegressor(base, confidence_level=coverage, method="plus", cv=cv)
    theirs.fit_conformalize(X, y)
    _, bounds = theirs.predict_interval(new)
    np.testing.assert_allclose(model.predict_interval(new, coverage=coverage), bounds[:, :, 0], rtol=0, atol=1e-10)


def covered(keep: Any, seed: int, n_alphas: int = 15) -> float:
    """Share of 300 new rows of three tasks that are inside."""
    X, y, task = problem((130, 130, 130), seed=seed)
    fitting = np.concatenate([np.arange(130 * t, 130 * t + 30) for t in range(3)])
    fresh = np.setdiff1d(np.arange(390), fitting)
    model = ts.MultiTaskLassoCV(n_alphas=n_alphas, cv=5, keep_folds=keep)
    model.fit(X[fitting], y[fitting], task=task[fitting])
    low, high = model.predict_interval(X[fresh], task=task[fresh]).T
    return float(np.mean((low <= y[fresh]) & (y[fresh] <= high)))


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, "nested"])
def test_coverage(keep: Any) -> None:
    found = [covered(keep, seed) for seed in range(60)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) >= 0.9 - 2.0 * error
    assert np.mean(found) <= 0.96  # and not by being wide
