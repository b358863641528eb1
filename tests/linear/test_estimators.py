"""The estimators: objective and gap are what they say, options do what they say, paths are sequences of fits."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tasksieve as ts
from tasksieve.fitted.arguments import kernel_threads
from tasksieve.linear import path_solver

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def regression(rng):
    """X, y, task: four ragged tasks, rows out of order, three true features of twelve."""
    task = rng.permutation(np.repeat(["a", "b", "c", "d"], [20, 35, 10, 27]))
    X = rng.standard_normal((len(task), 12))
    W = np.zeros((4, 12))
    W[:, :3] = rng.standard_normal((4, 3))
    codes = np.searchsorted(["a", "b", "c", "d"], task)
    y = 3.0 + np.einsum("ij,ij->i", X, W[codes]) + 0.3 * rng.standard_normal(len(task))
    return X, y, task


@pytest.fixture
def classification(regression):
    X, y, task = regression
    return X, np.where(y > 3.0, "yes", "no"), task


def objective(model, X, y, task, alpha, sample_weight=None):
    """The objective of the contract, written out."""
    s = np.ones(len(y)) if sample_weight is None else sample_weight
    n_bar = s.sum() / len(model.tasks_)
    v = dict.fromkeys(model.tasks_, 1.0)
    if model.task_weights is not None:
        v = {t: n_bar / s[task == t].sum() for t in model.tasks_}
    u = np.ones(X.shape[1]) if model.feature_weights is None else np.asarray(model.feature_weights)
    value = 0.0
    for t, w, b in zip(model.tasks_, model.coef_, model.intercept_, strict=True):
        rows = task == t
        z = X[rows] @ w + b
        if isinstance(model, ts.MultiTaskLogisticRegression):
            sign = np.where(y[rows] == model.classes_[1], 1.0, -1.0)
            value += v[t] * np.sum(s[rows] * np.logaddexp(0, -sign * z)) / n_bar
        elif isinstance(model, ts.CalibratedMultiTaskLasso):
            value += v[t] * np.sqrt(np.sum(s[rows] * (y[rows] - z) ** 2) / n_bar)
        else:
            value += v[t] * np.sum(s[rows] * (y[rows] - z) ** 2) / (2 * n_bar)
    scale = np.stack([X[task == t].std(axis=0) for t in model.tasks_]) if model.standardize else 1.0
    W = model.coef_ * scale
    ratio = getattr(model, "l1_ratio", 1.0)
    return (
        value
        + alpha * ratio * np.sum(u * np.linalg.norm(W, axis=0))
        + alpha * (1 - ratio) / 2 * np.sum(W[:, u > 0] ** 2)
    )


OPTIONS = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "positive": {"positive": True},
    "standardize": {"standardize": True},
    "feature weights": {"feature_weights": np.linspace(0.2, 3.0, 12)},
    "unpenalised": {"feature_weights": np.r_[np.zeros(2), np.ones(10)]},
    "balanced": {"task_weights": "balanced"},
    "everything": {
        "positive": True,
        "task_weights": "balanced",
        "feature_weights": np.linspace(0.2, 3.0, 12),
    },
}
MODELS = {
    "lasso": (ts.MultiTaskLasso, 0.15),
    "elastic net": (ts.MultiTaskElasticNet, 0.2),
    "logistic": (ts.MultiTaskLogisticRegression, 0.04),
    "calibrated": (ts.CalibratedMultiTaskLasso, 0.3),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("name", MODELS)
def test_objective_and_gap_are_true(name, options, weighted, regression, classification, rng):
    Model, alpha = MODELS[name]
    X, y, task = classification if name == "logistic" else regression
    weights = rng.uniform(0.5, 2.0, size=len(y)) if weighted and "standardize" not in options else None
    best = Model(alpha, tol=1e-11, **options).fit(X, y, task=task, sample_weight=weights)
    assert best.objective_ == pytest.approx(objective(best, X, y, task, alpha, weights), rel=1e-9)
    assert best.get_support().any()
    if options.get("positive"):
        penalised = np.asarray(options.get("feature_weights", np.ones(12))) > 0
        assert best.coef_[:, penalised].min() >= 0
    if options.get("fit_intercept") is False:
        assert not best.intercept_.any()
    for tol in (1e-1, 1e-3):
        loose = Model(alpha, tol=tol, **options).fit(X, y, task=task, sample_weight=weights)
        assert loose.objective_ - loose.dual_gap_ <= best.objective_ + 1e-12
        assert loose.objective_ >= best.objective_ - best.dual_gap_ - 1e-12
    # nothing near is better
    for _ in range(20):
        near = clone(best)
        near.__dict__.update({k: v for k, v in vars(best).items() if k.endswith("_")})
        step = 1e-3 * rng.standard_normal(best.coef_.shape)
        near.coef_ = np.maximum(best.coef_ + step, 0) if options.get("positive") else best.coef_ + step
        assert objective(near, X, y, task, alpha, weights) >= best.objective_ - 1e-9


@pytest.mark.parametrize("name", MODELS)
def test_alpha_max_is_the_smallest_alpha_without_features(name, regression, classification):
    Model, _ = MODELS[name]
    X, y, task = classification if name == "logistic" else regression
    for options in ({}, {"fit_intercept": False}, {"positive": True}, {"feature_weights": np.linspace(0.5, 2, 12)}):
        top = Model(**options).alpha_max(X, y, task=task)
        assert not Model(top, **options).fit(X, y, task=task).coef_.any()
        assert Model(0.999 * top, tol=1e-9, **options).fit(X, y, task=task).coef_.any()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_path_is_a_sequence_of_fits(name, regression, classification):
    Model, _ = MODELS[name]
    X, y, task = classification if name == "logistic" else regression
    model = Model(tol=1e-10)
    path = model.path(X, y, task=task, n_alphas=8, eps=0.05)
    assert not hasattr(model, "coef_")
    assert len(path) == 8
    assert not path.interrupted
    top = model.alpha_max(X, y, task=task)
    np.testing.assert_allclose(path.alphas, top * np.geomspace(1, 0.05, 8), rtol=1e-12)
    assert path.alphas[0] == top
    assert path.n_selected[0] == 0
    for k, alpha in enumerate(path.alphas):
        fitted = Model(alpha, tol=1e-10).fit(X, y, task=task)
        coef = path.coef(k)
        assert scipy.sparse.issparse(coef)
        assert coef.shape == (4, 12)
        np.testing.assert_allclose(coef.toarray(), fitted.coef_, atol=2e-4)
        np.testing.assert_allclose(path.intercept(k), fitted.intercept_, atol=2e-4)
        assert path.objectives[k] == pytest.approx(fitted.objective_, abs=1e-9)
        np.testing.assert_array_equal(np.sort(path.features(k)), np.flatnonzero(coef.toarray().any(axis=0)))
        assert path.n_selected[k] == len(path.features(k))
        np.testing.assert_allclose(
            path.predict(X, k, task=task), X_times(coef.toarray(), path.intercept(k), X, task), atol=1e-10
        )
    assert np.all(path.relative_gaps <= 1e-10)
    assert np.all((path.rejection_ratios >= 0) & (path.rejection_ratios <= 1))
    assert path.passes > 0
    for values in (path.alphas, path.dual_gaps, path.n_selected, path.rejection_ratios, path.seconds, path.n_iter):
        assert values.shape == (8,)


def X_times(coef, intercept, X, task):
    codes = np.searchsorted(np.unique(task), task)
    return np.einsum("ij,ij->i", X, coef[codes]) + intercept[codes]


def test_given_alphas_are_solved_in_decreasing_order(regression):
    X, y, task = regression
    path = ts.MultiTaskLasso().path(X, y, task=task, alphas=[0.1, 0.4, 0.2])
    assert path.alphas.tolist() == [0.4, 0.2, 0.1]
    np.testing.assert_allclose(
        path.coef(1).toarray(), ts.MultiTaskLasso(0.2, tol=1e-9).fit(X, y, task=task).coef_, atol=1e-2
    )
    for wrong in ([], [0.0, 1.0], [-1.0], [np.nan]):
        with pytest.raises(ValueError, match="alphas"):
            ts.MultiTaskLasso().path(X, y, task=task, alphas=wrong)


@pytest.mark.parametrize("screening", ["auto", "dpc", "dpc-published", "gap", None])
def test_screening_does_not_change_the_solution(screening, regression):
    X, y, task = regression
    expected = ts.MultiTaskLasso(0.1, tol=1e-10).fit(X, y, task=task)
    model = ts.MultiTaskLasso(0.1, tol=1e-10, screening=screening)
    np.testing.assert_allclose(model.fit(X, y, task=task).coef_, expected.coef_, atol=1e-5)
    path = model.path(X, y, task=task, n_alphas=20)
    truth = ts.MultiTaskLasso(tol=1e-10).path(X, y, task=task, n_alphas=20)
    np.testing.assert_allclose(path.objectives, truth.objectives, rtol=1e-9)
    if screening is None:
        assert not path.rejection_ratios[path.n_selected < 12].any()


def test_unpenalised_features_are_in_from_the_start(regression):
    X, y, task = regression
    weights = np.ones(12)
    weights[[4, 7]] = 0
    model = ts.MultiTaskLasso(feature_weights=weights)
    path = model.path(X, y, task=task, n_alphas=5)
    np.testing.assert_array_equal(path.coef(0).toarray().any(axis=0), weights == 0)
    assert path.n_selected[0] == 0  # covariates are not selected


def test_nothing_to_explain():
    X, y = np.random.default_rng(0).standard_normal((10, 3)), np.full(10, 2.5)
    model = ts.MultiTaskLasso(0.1).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(2.5)
    assert model.objective_ == pytest.approx(0, abs=1e-20)
    path = ts.MultiTaskLasso().path(X, y, n_alphas=4)
    assert path.n_selected.tolist() == [0] * 4
    assert np.all(np.diff(path.alphas) < 0)


# --- the forms of predict ----------------------------------------------------------------------------------


def test_predict_forms(regression):
    X, y, task = regression
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    every = model.predict(X)
    assert every.shape == (len(y), 4)
    own = model.predict(X, task=task)
    np.testing.assert_allclose(own, every[np.arange(len(y)), np.searchsorted(model.tasks_, task)])
    parts = model.predict([X[task == t] for t in model.tasks_])
    assert isinstance(parts, list)
    np.testing.assert_allclose(np.concatenate(parts), np.concatenate([own[task == t] for t in model.tasks_]))
    assert [len(part) for part in model.predict([X[:0], X[:1], X[:0], X[:2]])] == [0, 1, 0, 2]
    assert model.predict(X[:0]).shape == (0, 4)
    assert model.predict(X[:0], task=[]).shape == (0,)
    assert model.predict(X[:3].tolist()).shape == (3, 4)
    for matrix in (X.astype(np.float32), np.asfortranarray(X), scipy.sparse.csr_matrix(X), scipy.sparse.coo_array(X)):
        np.testing.assert_allclose(model.predict(matrix, task=task), own, atol=1e-5)


def test_one_task_predicts_one_dimension(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    single = ts.MultiTaskLasso(0.01).fit(X, y)
    assert single.coef_.shape == (1, 4)
    assert single.intercept_.shape == (1,)
    assert single.predict(X).shape == (30,)
    assert single.predict(X, task=np.zeros(30, dtype=int)).shape == (30,)
    column = ts.MultiTaskLasso(0.01).fit(X, y[:, None])
    assert column.predict(X).shape == (30, 1)
    np.testing.assert_array_equal(column.coef_, single.coef_)
    labelled = ts.MultiTaskLasso(0.01).fit(X, y, task=["only"] * 30)
    assert labelled.predict(X).shape == (30, 1)
    assert labelled.predict(X, task=["only"] * 30).shape == (30,)


def test_predict_refuses(regression):
    X, y, task = regression
    model = ts.MultiTaskLasso(0.1)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"task 'z' in row 1 .*is unknown"):
        model.predict(X[:1], task=["z"])
    with pytest.raises(ValueError, match="X has 3 features, but MultiTaskLasso is expecting 12"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="list of 2 matrices, but the model has 4 tasks"):
        model.predict([X, X])
    with pytest.raises(ValueError, match="task was given with a list"):
        model.predict([X] * 4, task=task)
    with pytest.raises(ValueError, match=r"row 3 .*\[:, 5\]"):
        bad = X.copy()
        bad[2, 5] = np.nan
        model.predict(bad)


def test_score_is_the_mean_over_tasks(regression):
    from sklearn.metrics import r2_score

    X, y, task = regression
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    prediction = model.predict(X, task=task)
    expected = np.mean([r2_score(y[task == t], prediction[task == t]) for t in "abcd"])
    assert model.score(X, y, task=task) == pytest.approx(expected)
    parts = [X[task == t] for t in "abcd"], [y[task == t] for t in "abcd"]
    assert model.score(*parts) == pytest.approx(expected)
    holes = np.where(np.arange(len(y)) % 3 == 0, np.nan, y)
    weights = (np.arange(len(y)) % 3 != 0).astype(float)
    masked = model.score(X, holes, task=task)
    assert masked == pytest.approx(model.score(X, y, task=task, sample_weight=weights))
    assert masked != pytest.approx(expected)
    some = np.isin(task, ["a", "c"])
    assert np.isfinite(model.score(X[some], y[some], task=task[some]))
    with pytest.raises(ValueError, match="pass task"):
        model.score(X, y)
    Y = np.stack([y, -y], axis=1)
    shared = ts.MultiTaskLasso(0.1).fit(X, Y)
    assert shared.score(X, Y) == pytest.approx(r2_score(Y, shared.predict(X)))
    with pytest.raises(ValueError, match="y has 1 tasks, the model has 2"):
        shared.score(X, Y[:, :1])


def test_transform_keeps_selected_columns(regression):
    X, y, task = regression
    model = ts.MultiTaskLasso(0.3).fit(X, y, task=task)
    support = model.get_support()
    np.testing.assert_array_equal(support, model.coef_.any(axis=0))
    np.testing.assert_array_equal(model.transform(X), X[:, support])
    assert [part.shape for part in model.transform([X[:3], X[:2]])] == [(3, support.sum()), (2, support.sum())]
    np.testing.assert_array_equal(model.inverse_transform(X[:, support])[:, support], X[:, support])
    nothing = ts.MultiTaskLasso(1e6).fit(X, y, task=task)
    with pytest.warns(UserWarning, match="No features"):
        assert nothing.transform(X).shape == (len(y), 0)
    assert nothing.inverse_transform(np.zeros((2, 0))).shape == (2, 12)


# --- classes -----------------------------------------------------------------------------------------------


def test_classification_forms(classification):
    X, y, task = classification
    model = ts.MultiTaskLogisticRegression(0.02).fit(X, y, task=task)
    assert model.classes_.tolist() == ["no", "yes"]
    n = len(y)
    codes = np.searchsorted(model.tasks_, task)
    scores = model.decision_function(X)
    assert scores.shape == (n, 4)
    np.testing.assert_allclose(model.decision_function(X, task=task), scores[np.arange(n), codes])
    assert model.predict_proba(X).shape == (n, 4, 2)
    proba = model.predict_proba(X, task=task)
    assert proba.shape == (n, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-scores[np.arange(n), codes])))
    np.testing.assert_array_equal(model.predict(X, task=task), np.where(proba[:, 1] > 0.5, "yes", "no"))
    assert model.predict(X).shape == (n, 4)
    parts = [X[task == t] for t in "abcd"]
    assert [part.shape for part in model.predict_proba(parts)] == [(len(part), 2) for part in parts]
    np.testing.assert_array_equal(model.predict(parts)[2], model.predict(X, task=task)[task == "c"])
    accuracy = np.mean([np.mean(model.predict(X, task=task)[task == t] == y[task == t]) for t in "abcd"])
    assert model.score(X, y, task=task) == pytest.approx(accuracy)
    assert accuracy > 0.8
    single = ts.MultiTaskLogisticRegression(0.02).fit(X, y)
    assert single.predict(X).shape == (n,)
    assert single.predict_proba(X).shape == (n, 2)


def test_shared_matrix_with_several_binary_labels(rng):
    X = rng.standard_normal((60, 5))
    Y = (X[:, :3] + 0.2 * rng.standard_normal((60, 3)) > 0).astype(int)
    model = ts.MultiTaskLogisticRegression(0.05).fit(X, Y)
    assert model.predict(X).shape == (60, 3)
    assert model.predict(X).dtype == Y.dtype
    assert model.score(X, Y) > 0.8


def test_tasks_with_different_pairs_of_classes(classification):
    X, y, task = classification
    mixed = np.where(task == "a", np.where(y == "yes", "up", "down"), y)
    model = ts.MultiTaskLogisticRegression(0.02).fit(X, mixed, task=task)
    same = ts.MultiTaskLogisticRegression(0.02).fit(X, y, task=task)
    assert [pair.tolist() for pair in model.classes_] == [["down", "up"]] + [["no", "yes"]] * 3
    np.testing.assert_array_equal(model.coef_, same.coef_)
    predicted = model.predict(X, task=task)
    assert set(predicted[task == "a"]) <= {"down", "up"}
    assert set(predicted[task != "a"]) <= {"no", "yes"}
    assert set(model.predict(X)[:, 0]) <= {"down", "up"}
    np.testing.assert_array_equal(model.predict([X] * 4)[0], model.predict(X)[:, 0])
    assert model.score(X, mixed, task=task) == pytest.approx(same.score(X, y, task=task))


def test_task_with_one_class_warns_and_stays_finite(classification):
    X, y, task = classification
    y = np.where(task == "b", "yes", y)
    model = ts.MultiTaskLogisticRegression(0.02, tol=1e-9)
    with pytest.warns(UserWarning, match=r"one class only \('b'\)"):
        model.fit(X, y, task=task)
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))
    assert model.dual_gap_ <= 1e-8
    assert set(model.predict(X[task == "b"], task=task[task == "b"])) == {"yes"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ts.MultiTaskLogisticRegression(0.02, fit_intercept=False).fit(X, y, task=task)


# --- options of the solver ---------------------------------------------------------------------------------


def test_no_convergence_is_said_with_the_gap(regression):
    X, y, task = regression
    model = ts.MultiTaskLasso(0.01, tol=1e-14, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"in 1 iterations \(max_iter=1\): dual gap .*relative gap"):
        model.fit(X, y, task=task)
    best = ts.MultiTaskLasso(0.01, tol=1e-10).fit(X, y, task=task)
    assert model.objective_ - model.dual_gap_ <= best.objective_
    with pytest.warns(ConvergenceWarning, match=r"at \d+ of 5 values"):
        path = model.path(X, y, task=task, n_alphas=5)
    assert not path.converged.all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"feature_weights": [0] + [1] * 11}])
def test_warm_start(name, options, regression, classification):
    Model, alpha = MODELS[name]
    X, y, task = classification if name == "logistic" else regression
    model = Model(alpha, warm_start=True, tol=1e-9, **options).fit(X, y, task=task)
    coef, first = model.coef_.copy(), model.n_iter_
    model.fit(X, y, task=task)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-4)
    assert model.n_iter_ <= first
    model.set_params(alpha=0.5 * alpha).fit(X, y, task=task)
    np.testing.assert_allclose(
        model.coef_, Model(0.5 * alpha, tol=1e-9, **options).fit(X, y, task=task).coef_, atol=1e-3
    )
    other = task != "d"
    model.fit(X[other], y[other], task=task[other])  # another shape: start afresh
    assert model.coef_.shape == (3, 12)


def test_verbose_reports_on_stderr(regression, capsys):
    X, y, task = regression
    ts.MultiTaskLasso(verbose=1).path(X, y, task=task, n_alphas=5)
    captured = capsys.readouterr()
    assert "MultiTaskLasso: value 5 of 5" in captured.err
    assert captured.out == ""
    ts.MultiTaskLasso().path(X, y, task=task, n_alphas=5)
    assert capsys.readouterr().err == ""


def test_interrupt_leaves_a_usable_path(regression):
    X, y, task = regression

    def stop(progress):
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match=r"interrupted: 4 of 20 values"), ts.watch(stop):
        path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=20)
    assert path.interrupted
    assert len(path) == len(path.alphas) == len(path.dual_gaps) == 4
    assert "interrupted" in repr(path)
    whole = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=20)
    np.testing.assert_array_equal(path.coef(3).toarray(), whole.coef(3).toarray())
    assert len(path.to_frame()) == 4


def test_interrupt_before_anything_is_solved(regression, monkeypatch):
    X, y, task = regression

    def interrupted(*_):
        raise KeyboardInterrupt

    for solver in (path_solver.SumSolver, path_solver.RowSolver):
        monkeypatch.setattr(solver, "values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ts.MultiTaskLasso(0.1).fit(X, y, task=task)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "'alpha' parameter must be a number > 0"),
        ({"alpha": -1.0}, "'alpha'"),
        ({"alpha": "a"}, "'alpha'"),
        ({"alpha": np.nan}, "'alpha'"),
        ({"alpha": np.inf}, "'alpha'"),
        ({"tol": -1e-3}, "'tol'"),
        ({"max_iter": 0}, "'max_iter' parameter must be an integer >= 1"),
        ({"max_iter": 1.5}, "'max_iter'"),
        ({"screening": "strong"}, "'screening' parameter must be one of 'auto', 'dpc'"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"l1_ratio": 0.0}, "'l1_ratio' parameter must be a number > 0 and <= 1"),
        ({"l1_ratio": 1.5}, "'l1_ratio'"),
        ({"feature_weights": [1.0]}, "feature_weights has shape"),
        ({"task_weights": [1.0]}, "task_weights has shape"),
    ],
)
def test_bad_parameters_are_refused_by_fit(parameters, message, regression):
    X, y, task = regression
    model = ts.MultiTaskElasticNet(**parameters)  # the constructor only stores
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, task=task)


def test_positive_refuses_features_without_penalty():
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20.0)
    with pytest.raises(ValueError, match="cannot be combined with feature_weights of 0"):
        ts.MultiTaskLasso(positive=True, feature_weights=[0.0, 1.0, 1.0]).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_large_matrices_are_searched_through_their_norms(bad):
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((500, 9000)))
    y, task = X[:, 0].copy(), np.arange(500) % 2
    X[3, 77] = bad
    for options in ({}, {"feature_weights": np.r_[0.0, np.ones(8999)]}):
        with pytest.raises(ValueError, match=r"row 4 .*\[:, 77\]"):
            ts.MultiTaskLasso(**options).path(X, y, task=task)
    with pytest.raises(ValueError, match=r"X\[1\] contains .* row 4 .*\[:, 77\]"):
        ts.MultiTaskLasso().fit([X[4:], X], [y[4:], y])
    X[3, 77] = 1e200
    with pytest.raises(ValueError, match="feature 0 are smaller than the largest of X"):
        ts.MultiTaskLasso().fit(X, y, task=task)


def test_everything_but_the_first_parameter_is_keyword_only():
    for Model in (ts.MultiTaskLasso, ts.MultiTaskElasticNet, ts.MultiTaskLogisticRegression, ts.MultiTaskLassoCV):
        Model(0.5)
        with pytest.raises(TypeError):
            Model(0.5, True)


def test_threads_do_not_change_the_answer(regression, monkeypatch):
    X, y, task = regression
    one = ts.MultiTaskLasso(0.1, n_jobs=1, tol=1e-10).fit(X, y, task=task)
    again = ts.MultiTaskLasso(0.1, n_jobs=1, tol=1e-10).fit(X, y, task=task)
    assert one.coef_.tobytes() == again.coef_.tobytes()
    for n_jobs in (2, -1):
        many = ts.MultiTaskLasso(0.1, n_jobs=n_jobs, tol=1e-10).fit(X, y, task=task)
        np.testing.assert_allclose(many.coef_, one.coef_, atol=1e-6)
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "3")
    assert [kernel_threads(n) for n in (None, 1, 2, -1, -2)] == [3, 1, 2, 3, 2]


def test_pickle_and_clone(regression):
    X, y, task = regression
    model = ts.MultiTaskLasso(0.1, feature_weights=np.ones(12)).fit(X, y, task=task)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X, task=task), model.predict(X, task=task))
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(path)).coef(2).toarray(), path.coef(2).toarray())
    assert not hasattr(clone(model), "coef_")


# --- the path as a table and a picture ---------------------------------------------------------------------


def test_path_to_frame(regression):
    import pandas as pd

    X, y, task = regression
    names = [f"gene{j}" for j in range(12)]
    path = ts.MultiTaskLasso().path(pd.DataFrame(X, columns=names), y, task=task, n_alphas=6)
    frame = path.to_frame()
    assert len(frame) == 6
    np.testing.assert_array_equal(frame["alpha"], path.alphas)
    for column in ("objective", "dual_gap", "n_selected", "rejection_ratio", "seconds", "n_iter"):
        assert column in frame
    entries = path.to_frame("coefficients")
    assert list(entries.columns) == ["alpha", "task", "feature", "coefficient"]
    last = entries[entries["alpha"] == path.alphas[-1]].pivot(index="task", columns="feature", values="coefficient")
    expected = pd.DataFrame(path.coef(5).toarray(), index=path.tasks, columns=names)
    np.testing.assert_array_equal(last.to_numpy(), expected[last.columns].to_numpy())
    with pytest.raises(ValueError, match="kind"):
        path.to_frame("wide")


def test_path_to_frame_without_pandas(regression, monkeypatch):
    X, y, task = regression
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=3)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        path.to_frame()
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="plot needs matplotlib"):
        path.plot()


def test_path_plot(regression):
    import matplotlib.pyplot as plt

    X, y, task = regression
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=6)
    axes = path.plot()
    assert len(axes) == 4
    assert [ax.get_ylabel() for ax in axes] == [
        "coefficient row norms",
        "selected features",
        "rejection ratio",
        "dual gap",
    ]
    left, right = axes[0].get_xlim()
    assert left > right
    assert path.plot(axes=axes) is not None
    with pytest.raises(ValueError, match="four axes"):
        path.plot(axes=axes[:2])
    plt.close("all")


def test_path_predict_of_a_list(regression):
    X, y, task = regression
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=4)
    parts = path.predict([X[task == t] for t in "abcd"], 3)
    np.testing.assert_allclose(parts[1], path.predict(X, 3, task=task)[task == "b"])
    assert path.predict(X, -1).shape == (len(y), 4)
    with pytest.raises(ValueError, match="4 tasks"):
        path.predict([X], 0)


# --- one value of a path as an estimator -----------------------------------------------------------------------


def numbers_and_classes(rng):
    X, task = rng.standard_normal((90, 6)), np.tile(["a", "b", "c"], 30)
    y = X[:, 0] * (1.0 + (task == "b")) + 0.3 * rng.standard_normal(90)
    return X, y, np.where(y > 0, "high", "low"), task


ON_A_PATH = [
    (ts.MultiTaskLasso(), "values"),
    (ts.MultiTaskElasticNet(l1_ratio=0.7), "values"),
    (ts.CalibratedMultiTaskLasso("universal"), "values"),
    (ts.MultiTaskOWL(), "values"),
    (ts.MultiTaskSparseGroupLasso(l1=0.2), "values"),
    (ts.MultiTaskSparseGroupLasso(loss="logistic"), "classes"),
    (ts.MultiTaskLogisticRegression(), "classes"),
    (ts.MultinomialOWL(), "multinomial"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("model", "targets"), ON_A_PATH, ids=lambda item: getattr(item, "__class__", str).__name__)
def test_the_model_of_a_value_is_the_fit_of_that_value(model, targets, rng):
    X, y, words, task = numbers_and_classes(rng)
    rows = {} if targets == "multinomial" else {"task": task}
    labels = {"values": y, "classes": words, "multinomial": task}[targets]
    path = model.path(X, labels, **rows, n_alphas=6)
    for k in (3, -1):
        found = path.model(k)
        assert type(found) is type(model)
        assert found.alpha == path.alphas[k]
        expected = clone(model).set_params(alpha=path.alphas[k]).fit(X, labels, **rows)
        assert set(vars(found)) == set(vars(expected))
        np.testing.assert_array_equal(found.coef_, path.coef(k).toarray())
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=3e-3)
        assert found.objective_ == path.objectives[k]
        assert found.dual_gap_ == path.dual_gaps[k]
        assert found.null_objective_ == pytest.approx(expected.null_objective_)
        again = pickle.loads(pickle.dumps(path)).model(k)
        np.testing.assert_array_equal(again.predict(X, **rows), found.predict(X, **rows))
        assert found.score(X, labels, **rows) == pytest.approx(expected.score(X, labels, **rows), abs=0.05)
        if targets != "values":
            np.testing.assert_array_equal(found.classes_, expected.classes_)


def test_the_model_of_a_value_in_every_form(rng):
    X, y, words, task = numbers_and_classes(rng)
    alone = ts.MultiTaskLasso().path(X, y, alphas=[0.1]).model(0)
    assert alone.predict(X).shape == (90,)
    shared = ts.MultiTaskLasso().path(X, np.column_stack([y, -y]), alphas=[0.1]).model(0)
    assert shared.predict(X).shape == (90, 2)
    listed = ts.MultiTaskLasso().path([X[:40], X[40:]], [y[:40], y[40:]], alphas=[0.1]).model(0)
    assert [len(part) for part in listed.predict([X[:40], X[40:]])] == [40, 50]
    pairs = np.char.add(words.astype(str), task)
    model = ts.MultiTaskLogisticRegression().path(X, pairs, task=task, alphas=[0.01]).model(0)
    assert set(model.predict(X, task=task)) == set(pairs)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("uvwxyz"))
    named = ts.MultiTaskLasso().path(frame, y, task=task, alphas=[0.1]).model(0)
    assert named.feature_names_in_.tolist() == list("uvwxyz")
    named.predict(frame, task=task)
    with pytest.raises(IndexError):
        ts.MultiTaskLasso().path(X, y, alphas=[0.1]).model(1)


def test_the_chosen_model_of_a_cross_validation(rng):
    X, y, _, task = numbers_and_classes(rng)
    for cv in (ts.MultiTaskElasticNetCV(n_alphas=5, l1_ratio=[0.5, 0.9]), ts.CalibratedMultiTaskLassoCV(n_alphas=5)):
        cv.fit(X, y, task=task)
        model = cv.path_.model(int(np.flatnonzero(cv.path_.alphas == cv.alpha_)[0]))
        np.testing.assert_array_equal(model.coef_, cv.coef_)
        assert model.dual_gap_ == cv.dual_gap_
        assert model.null_objective_ == cv.null_objective_
        assert getattr(model, "l1_ratio", None) == getattr(cv, "l1_ratio_", None)


def test_a_path_without_an_estimator_has_no_models(rng):
    X, y, _, task = numbers_and_classes(rng)
    made = ts.MultiTaskLasso().path(X, y, task=task, alphas=[0.1])
    bare = ts.RegularizationPath(made._points, alphas=made.alphas, unit=1.0, tasks=made.tasks, n_features=6)
    with pytest.raises(ValueError, match="not made by an estimator"):
        bare.model(0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("model", "targets"), ON_A_PATH[:7], ids=lambda item: getattr(item, "__class__", str).__name__)
def test_the_objective_of_the_empty_model_is_in_its_own_units(model, targets, weighted, rng):
    """`null_objective_` is ``objective_`` where nothing is selected, whatever the engine divides by."""
    X, y, words, task = numbers_and_classes(rng)
    labels = y if targets == "values" else words
    weight = np.linspace(0.5, 2.0, 90) if weighted else None
    alpha = 1.001 * model.alpha_max(X, labels, task=task, sample_weight=weight)
    fitted = clone(model).set_params(alpha=alpha).fit(X, labels, task=task, sample_weight=weight)
    assert not fitted.coef_.any()
    assert fitted.null_objective_ == pytest.approx(fitted.objective_)
