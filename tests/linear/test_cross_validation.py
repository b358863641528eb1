"""Cross-validation along the path equals cross-validation by hand; folds are split within tasks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLassoCV as ScikitMultiTaskLassoCV
from sklearn.model_selection import GroupKFold, KFold, LeavePOut, ShuffleSplit, StratifiedKFold

import tasksieve as ts
from tasksieve.linear import held_out, row_folds
from tasksieve.tasks import data as task_data


@pytest.fixture
def regression(rng):
    task = rng.permutation(np.repeat(["a", "b", "c"], [20, 33, 27]))
    X = rng.standard_normal((80, 10))
    W = np.zeros((3, 10))
    W[:, :2] = rng.standard_normal((3, 2))
    y = 1.0 + np.einsum("ij,ij->i", X, W[np.searchsorted(["a", "b", "c"], task)]) + 0.5 * rng.standard_normal(80)
    return X, y, task


GRID = np.geomspace(1.0, 0.02, 7)


def by_hand(model, X, y, task, folds, loss):
    """Refit for every fold and every value; mean over tasks of the mean held-out loss."""
    scores = np.zeros((len(GRID), len(folds)))
    for k, alpha in enumerate(GRID):
        for f, (train, test) in enumerate(folds):
            fitted = model.set_params(alpha=alpha).fit(X[train], y[train], task=task[train])
            losses = loss(fitted, X[test], y[test], task[test])
            scores[k, f] = np.mean([losses[task[test] == t].mean() for t in np.unique(task[test])])
    return scores


def squared(fitted, X, y, task):
    return (y - fitted.predict(X, task=task)) ** 2


def logistic(fitted, X, y, task):
    sign = np.where(y == fitted.classes_[1], 1.0, -1.0)
    return np.logaddexp(0.0, -sign * fitted.decision_function(X, task=task))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("CV", "Model", "options"),
    [
        (ts.MultiTaskLassoCV, ts.MultiTaskLasso, {}),
        (ts.MultiTaskLassoCV, ts.MultiTaskLasso, {"task_weights": "balanced", "standardize": True}),
        (ts.MultiTaskLassoCV, ts.MultiTaskLasso, {"fit_intercept": False, "positive": True}),
        (ts.MultiTaskElasticNetCV, ts.MultiTaskElasticNet, {"l1_ratio": 0.7}),
        (ts.MultiTaskLogisticRegressionCV, ts.MultiTaskLogisticRegression, {"feature_weights": [0.5] * 5 + [2] * 5}),
    ],
)
def test_scores_are_those_of_refitting(CV, Model, options, regression):
    X, y, task = regression
    classes = Model is ts.MultiTaskLogisticRegression
    y = np.where(y > 1, "yes", "no") if classes else y
    folds = list(ts.TaskKFold(3, shuffle=False).split(X, groups=task))
    fitted = CV(GRID, cv=ts.TaskKFold(3, shuffle=False), tol=1e-10, fold_tol=1e-10, **options).fit(X, y, task=task)
    expected = by_hand(Model(tol=1e-10, **options), X, y, task, folds, logistic if classes else squared)
    np.testing.assert_allclose(fitted.cv_scores_, expected, atol=1e-5)
    k = np.argmin(expected.mean(axis=1))
    assert fitted.alpha_ == GRID[k]
    np.testing.assert_array_equal(fitted.alphas_, GRID)
    final = Model(fitted.alpha_, tol=1e-10, **options).fit(X, y, task=task)
    np.testing.assert_allclose(fitted.coef_, final.coef_, atol=1e-4)
    np.testing.assert_allclose(fitted.path_.coef(k).toarray(), fitted.coef_)
    assert fitted.objective_ == pytest.approx(final.objective_, rel=1e-8)
    assert fitted.dual_gap_ == fitted.path_.dual_gaps[k]


def test_shared_matrix_equals_scikit_learn(rng):
    X = rng.standard_normal((50, 8))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + 0.5 * rng.standard_normal((50, 3))
    ours = ts.MultiTaskLassoCV(GRID, tol=1e-11, fold_tol=1e-11).fit(X, Y)
    theirs = ScikitMultiTaskLassoCV(alphas=GRID, cv=KFold(5), tol=1e-10, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(ours.cv_scores_, theirs.mse_path_, rtol=1e-5)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


def test_forms_and_storages_give_the_same_scores(regression, tmp_path):
    X, y, task = regression
    order = np.argsort(task, kind="stable")
    X, y, task = X[order].astype(np.float32), y[order], task[order]
    model = ts.MultiTaskLassoCV(GRID, tol=1e-10, fold_tol=1e-10)
    expected = model.fit(X, y, task=task).cv_scores_
    parts = [X[task == t] for t in "abc"], [y[task == t] for t in "abc"]
    mapped = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=X.shape)
    mapped[:] = X
    for args, kwargs in (
        (parts, {}),
        ((scipy.sparse.csr_array(X), y), {"task": task}),
        ((mapped, y), {"task": task}),
        ((X.astype(np.float64), y), {"task": task}),
        ((np.vstack([X, X[:9]]), np.r_[y, np.full(9, np.nan)]), {"task": np.r_[task, task[:9]]}),
    ):
        np.testing.assert_allclose(model.fit(*args, **kwargs).cv_scores_, expected, atol=1e-6)


def test_packing_a_few_columns_at_a_time_changes_nothing(regression, monkeypatch):
    X, y, task = regression
    expected = ts.MultiTaskLassoCV(GRID).fit(X, y, task=task).cv_scores_
    monkeypatch.setattr(held_out, "PACKED_ENTRIES", 3 * 80)
    np.testing.assert_allclose(ts.MultiTaskLassoCV(GRID).fit(X, y, task=task).cv_scores_, expected, rtol=1e-12)


def test_default_grid(regression):
    X, y, task = regression
    model = ts.MultiTaskLassoCV(n_alphas=9, eps=0.05).fit(X, y, task=task)
    top = ts.MultiTaskLasso().alpha_max(X, y, task=task)
    np.testing.assert_allclose(model.alphas_, top * np.geomspace(1, 0.05, 9))
    assert ts.MultiTaskLassoCV(4).fit(X, y, task=task).cv_scores_.shape == (4, 5)
    assert ts.MultiTaskLassoCV(n_alphas=3).get_params()["eps"] == 1e-2
    assert ts.MultiTaskLassoCV().n_alphas == 100


def test_one_standard_error_rule(regression):
    X, y, task = regression
    best = ts.MultiTaskLassoCV(GRID).fit(X, y, task=task)
    plain = ts.MultiTaskLassoCV(GRID, selection_rule="1se").fit(X, y, task=task)
    means = best.cv_scores_.mean(axis=1)
    k = np.argmin(means)
    limit = means[k] + best.cv_scores_[k].std(ddof=1) / np.sqrt(5)
    assert plain.alpha_ == GRID[np.flatnonzero(means <= limit)[0]]
    assert plain.alpha_ >= best.alpha_
    with pytest.raises(ValueError, match="selection_rule"):
        ts.MultiTaskLassoCV(GRID, selection_rule="2se").fit(X, y, task=task)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_parallel_folds_give_the_same_scores(n_jobs, regression):
    X, y, task = regression
    one = ts.MultiTaskLassoCV(GRID, tol=1e-9, fold_tol=1e-9).fit(X, y, task=task)
    many = ts.MultiTaskLassoCV(GRID, tol=1e-9, fold_tol=1e-9, n_jobs=n_jobs).fit(X, y, task=task)
    np.testing.assert_allclose(many.cv_scores_, one.cv_scores_, rtol=1e-6)
    assert many.alpha_ == one.alpha_


def test_folds_share_one_storage(regression, monkeypatch):
    X, y, task = regression
    seen = []
    original = task_data.Design

    def spy(storage, *args, **kwargs):
        seen.append(storage)
        return original(storage, *args, **kwargs)

    monkeypatch.setattr(task_data, "Design", spy)
    ts.MultiTaskLassoCV(GRID[:2], n_jobs=2, screening="gap").fit(X, y, task=task)
    whole = [storage for storage in seen if storage.n_features == X.shape[1]]  # null models have no features
    assert len(whole) == 6
    assert all(storage is whole[0] for storage in whole)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("form", ["tasks", "shared", "one", "weights", "unpenalised", "groups"])
def test_folds_from_moments_score_as_folds_on_their_rows(regression, monkeypatch, form, standardize):
    """Sums over rows that are made once give the curves that each fold's own rows give."""
    X, y, task = regression
    rng = np.random.default_rng(0)
    model = ts.MultiTaskLassoCV(n_alphas=12, fold_tol=1e-9, standardize=standardize)
    arguments = {"y": y, "task": task}
    if form == "shared":
        arguments = {"y": np.column_stack([y, y[::-1], np.roll(y, 3)])}
    elif form == "one":
        arguments = {"y": y}
    elif form == "weights":
        arguments["sample_weight"] = rng.uniform(0.0, 2.0, len(y)) * (rng.random(len(y)) < 0.9)
    elif form == "unpenalised":
        model.set_params(feature_weights=np.where(np.arange(X.shape[1]) == 2, 0.0, 1.0))
    elif form == "groups":
        arguments["groups"] = np.arange(len(y)) // 3
    walked = []
    plain = row_folds.RowFolds.with_others

    def spy(*given):
        walk = plain(*given)
        walked.append(walk is not None)
        return walk

    monkeypatch.setattr(row_folds.RowFolds, "with_others", spy)
    found = clone(model).fit(X, **arguments)
    engine = clone(model).set_params(screening="gap").fit(X, **arguments)
    assert walked == [True] * 5 + [False] * 5
    np.testing.assert_allclose(found.cv_scores_, engine.cv_scores_, rtol=2e-4)
    assert found.alpha_ == engine.alpha_
    np.testing.assert_allclose(found.alphas_, engine.alphas_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_a_column_that_is_large_only_where_it_is_held_out(rng):
    """A difference of sums would find it constant in the training rows."""
    X = rng.standard_normal((50, 4))
    X[:10, 0] = 1e6 * rng.standard_normal(10)
    X[10:, 0] = 1e-3 * rng.standard_normal(40)
    y = 1e3 * X[:, 0] * (np.arange(50) >= 10) + 0.1 * rng.standard_normal(50)
    folds = [(np.arange(10, 50), np.arange(10)), (np.arange(0, 40), np.arange(40, 50))]
    model = ts.MultiTaskLassoCV([1e-4, 1e-5], cv=folds, fold_tol=1e-6, max_iter=100_000)
    found = clone(model).fit(X, y)
    engine = clone(model).set_params(screening="gap").fit(X, y)
    np.testing.assert_allclose(found.cv_scores_, engine.cv_scores_, rtol=1e-2)


def test_l1_ratios(regression):
    X, y, task = regression
    ratios = [0.1, 0.5, 1.0]
    model = ts.MultiTaskElasticNetCV(n_alphas=6, l1_ratio=ratios).fit(X, y, task=task)
    assert model.cv_scores_.shape == (3, 6, 5)
    assert model.alphas_.shape == (3, 6)
    best, k = np.unravel_index(np.argmin(model.cv_scores_.mean(axis=2)), (3, 6))
    assert model.l1_ratio_ == ratios[best]
    assert model.alpha_ == model.alphas_[best, k]
    alone = ts.MultiTaskElasticNetCV(n_alphas=6, l1_ratio=ratios[best]).fit(X, y, task=task)
    assert alone.cv_scores_.shape == (6, 5)
    assert alone.l1_ratio_ == ratios[best]
    np.testing.assert_allclose(alone.cv_scores_, model.cv_scores_[best], rtol=1e-6)
    np.testing.assert_allclose(alone.coef_, model.coef_, atol=1e-5)
    for wrong in ([], [0.0, 0.5]):
        with pytest.raises(ValueError, match="l1_ratio"):
            ts.MultiTaskElasticNetCV(l1_ratio=wrong).fit(X, y, task=task)


def test_any_splitter(regression):
    X, y, task = regression
    folds = [(np.arange(0, 50), np.arange(50, 80)), (np.arange(30, 80), np.arange(0, 30))]
    given = ts.MultiTaskLassoCV(GRID, cv=folds).fit(X, y, task=task)
    assert given.cv_scores_.shape == (7, 2)
    again = ts.MultiTaskLassoCV(GRID, cv=iter(folds)).fit(X, y, task=task)
    np.testing.assert_array_equal(again.cv_scores_, given.cv_scores_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for splitter in (KFold(3), ShuffleSplit(2, random_state=0), ts.TaskKFold(4, shuffle=True, random_state=1)):
            model = ts.MultiTaskLassoCV(GRID, cv=splitter).fit(X, y, task=task)
            assert model.cv_scores_.shape == (7, splitter.get_n_splits(X))
    stratified = StratifiedKFold(3, shuffle=True, random_state=0)
    ts.MultiTaskLogisticRegressionCV(GRID, cv=stratified).fit(X, y > 1, task=task)
    parts = [X[task == t] for t in "abc"], [y[task == t] > 1 for t in "abc"]
    ts.MultiTaskLogisticRegressionCV(GRID, cv=stratified).fit(*parts)


def test_rows_drawn_twice_count_twice(regression):
    X, y, task = regression
    train, test = np.r_[np.arange(60), np.arange(60)[::2]], np.arange(60, 80)
    drawn = ts.MultiTaskLassoCV(GRID, cv=[(train, test)], tol=1e-10, fold_tol=1e-10).fit(X, y, task=task)
    loss = by_hand(ts.MultiTaskLasso(tol=1e-10), X, y, task, [(train, test)], squared)
    np.testing.assert_allclose(drawn.cv_scores_, loss, atol=1e-6)


def test_bad_folds_are_named(regression):
    X, y, task = regression
    with pytest.raises(ValueError, match=r"cv: fold 0 leaves task '[abc]' without an observed row"):
        ts.MultiTaskLassoCV(cv=GroupKFold(3)).fit(X, y, task=task)
    rest = np.arange(1, 80)
    with pytest.raises(ValueError, match="cv: fold 0 holds out no observed row"):
        ts.MultiTaskLassoCV(cv=[(rest, [0])]).fit(X, np.where(np.arange(80) == 0, np.nan, y), task=task)
    with pytest.raises(ValueError, match="cv gave no folds"):
        ts.MultiTaskLassoCV(cv=[]).fit(X, y, task=task)
    with pytest.raises(ValueError, match="n_splits"):
        ts.MultiTaskLassoCV(cv=1).fit(X, y, task=task)


@pytest.mark.filterwarnings("ignore:MultiTaskLasso did not reach")  # nor does the model in one iteration
def test_open_solutions_are_counted(regression):
    X, y, task = regression
    with pytest.warns(ConvergenceWarning, match="solutions in the folds did not reach"):
        ts.MultiTaskLassoCV(GRID, tol=1e-2, fold_tol=1e-14, max_iter=1).fit(X, y, task=task)


def stop_at(label, done):
    """Ctrl-C when so much of a piece of work is done."""

    def stop(progress):
        if label in progress.label and progress.done == done:
            raise KeyboardInterrupt

    return ts.watch(stop)


def test_interrupt_stops_the_cross_validation(regression):
    X, y, task = regression
    with pytest.raises(KeyboardInterrupt), stop_at("fold", 3):
        ts.MultiTaskLassoCV(GRID).fit(X, y, task=task)


def test_verbose_names_the_folds(regression, capsys):
    X, y, task = regression
    ts.MultiTaskLassoCV(GRID, verbose=1).fit(X, y, task=task)
    lines = capsys.readouterr().err
    assert "MultiTaskLassoCV, fold 1: value 7 of 7" in lines
    assert "MultiTaskLassoCV, all rows" in lines


# --- the splitter --------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 4), min_size=8, max_size=60),
    st.integers(2, 5),
    st.booleans(),
)
def test_folds_are_balanced_within_tasks(labels, n_splits, shuffle):
    task = np.array(labels)
    splitter = ts.TaskKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    lonely = np.isin(task, [t for t in range(5) if np.sum(task == t) == 1])
    if np.sum(~lonely) < n_splits:
        with pytest.raises(ValueError, match="too many"):
            list(splitter.split(np.zeros((len(task), 1)), groups=task))
        return
    folds = list(splitter.split(np.zeros((len(task), 1)), groups=task))
    held_out = np.concatenate([test for _, test in folds])
    assert sorted(held_out) == np.flatnonzero(~lonely).tolist()
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(task)))
        assert set(task[train]) == set(labels)  # every task can be learned
        for t in set(labels):
            n = np.sum(task == t)
            if n > 1:
                assert n // n_splits <= np.sum(task[test] == t) <= -(-n // n_splits)


def test_one_task_is_k_fold():
    for n in (10, 13):
        ours = list(ts.TaskKFold(4, shuffle=False).split(np.zeros((n, 1))))
        for (train, test), (other_train, other_test) in zip(ours, KFold(4).split(np.zeros((n, 1))), strict=True):
            np.testing.assert_array_equal(train, other_train)
            np.testing.assert_array_equal(test, other_test)


def test_splitter_of_lists_and_shuffling():
    X = [np.zeros((4, 1)), np.zeros((6, 1))]
    folds = list(ts.TaskKFold(2, shuffle=False).split(X))
    with pytest.warns(FutureWarning, match="From version 0.5 on it will shuffle"):
        unsaid = list(ts.TaskKFold(2).split(X))
    assert all(np.array_equal(one, other) for one, other in zip(unsaid[0], folds[0], strict=True))
    assert [test.tolist() for _, test in folds] == [[0, 1, 4, 5, 6], [2, 3, 7, 8, 9]]
    assert ts.TaskKFold(3, shuffle=False).get_n_splits() == 3
    one, same, other = (
        [test.tolist() for _, test in ts.TaskKFold(2, shuffle=True, random_state=s).split(np.zeros((40, 1)))]
        for s in (0, 0, 1)
    )
    assert one == same != other
    assert repr(ts.TaskKFold(3, shuffle=True)) == "TaskKFold(n_splits=3, shuffle=True)"
    with pytest.raises(ValueError, match="task must have one label per row"):
        next(ts.TaskKFold(2, shuffle=False).split(np.zeros((5, 1)), groups=[0, 1]))
    assert LeavePOut(1).get_n_splits(np.zeros((3, 1))) == 3


# --- what the scores are -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ts.MultiTaskLassoCV(), "held-out squared error"),
        (ts.MultiTaskElasticNetCV(), "held-out squared error"),
        (ts.MultiTaskOWLCV(), "held-out squared error"),
        (ts.CalibratedMultiTaskLassoCV(), "held-out root mean squared error"),
        (ts.MultiTaskLogisticRegressionCV(), "held-out logistic loss"),
        (ts.MultiTaskSparseGroupLassoCV(), "held-out squared error"),
        (ts.MultiTaskSparseGroupLassoCV(loss="logistic"), "held-out logistic loss"),
        (ts.MultinomialOWLCV(), "held-out multinomial logistic loss"),
    ],
)
def test_scores_are_named_by_the_model(model, words):
    assert model.cv_measure == words


def test_the_calibrated_score_is_what_its_name_says(regression):
    X, y, task = regression
    folds = list(ts.TaskKFold(3, shuffle=False).split(X, groups=task))
    model = ts.CalibratedMultiTaskLassoCV([0.3], cv=folds).fit(X, y, task=task)
    for f, (train, test) in enumerate(folds):
        one = ts.CalibratedMultiTaskLasso(0.3).fit(X[train], y[train], task=task[train])
        squares = np.square(y[test] - one.predict(X[test], task=task[test]))
        roots = [np.sqrt(squares[task[test] == label].mean()) for label in one.tasks_]
        assert model.cv_scores_[0, f] == pytest.approx(np.mean(roots), rel=1e-3)
