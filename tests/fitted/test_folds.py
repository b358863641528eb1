"""The folds of the contract: shuffled within tasks, stratified by class, whole groups together; order is warned of."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, StratifiedGroupKFold, TimeSeriesSplit

import tasksieve as ts
from tasksieve.fitted.fold_assignment import assign_groups, assign_rows, assign_task_rows, read_seed
from tasksieve.fitted.folds import ConsecutiveFolds, FoldRules, make_folds
from tasksieve.tasks import read_labels


def fold_of(cv, rows, y, task=None, *, groups=None, targets="values", **options):
    """Fold of each observed label in the flat sample space, -1 where it is never held out."""
    labels = read_labels(rows, y, task, targets=targets)
    folds = make_folds(cv, y, labels, groups, FoldRules(**options))
    found = np.full(len(labels.y), -1)
    for f, (train, test) in enumerate(folds.weights):
        assert not np.any((train > 0) & (test > 0))
        found[test > 0] = f
    return found


# --- assignment ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(2, 200), st.integers(0, 5))
def test_tasks_get_the_same_folds_alone_and_together(sizes, n_folds, seed):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    together = assign_rows(offsets, np.zeros(offsets[-1], dtype=int), np.ones(offsets[-1], dtype=bool), n_folds, seed)
    alone = [assign_task_rows(size, t, n_folds, seed) for t, size in enumerate(sizes)]
    assert np.concatenate(alone).tolist() == together.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=80),
    st.integers(2, 6),
    st.integers(0, 5),
)
def test_folds_are_balanced_within_classes_and_tasks(rows, n_folds, seed):
    rows = sorted(rows, key=lambda row: row[0])
    task, kind, seen = (np.array(column) for column in zip(*rows, strict=True))
    offsets = np.searchsorted(task, np.arange(5))
    fold = assign_rows(offsets, kind, seen, n_folds, seed)
    assert np.all(fold[~seen] == -1)
    for t in range(4):
        own = seen & (task == t)
        for k in range(3):
            part = fold[own & (kind == k)]
            if len(part) < 2:
                assert np.all(part == -1)  # nothing would be left to learn it from
                continue
            counts = np.bincount(part, minlength=n_folds)
            assert counts.max() - counts.min() <= 1
            assert np.all(part >= 0)
        counts = np.bincount(fold[own & (fold >= 0)], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


def test_the_fold_of_a_row_depends_on_its_task_alone():
    rng = np.random.default_rng(0)
    sizes = [13, 30, 8]
    task, y = np.repeat([0, 1, 2], sizes), rng.standard_normal(51)
    first = fold_of(4, 51, y, task)
    assert sorted(np.bincount(first[:13])) == [3, 3, 3, 4]
    # other rows, and more of them, in other tasks
    other = fold_of(4, 60, rng.standard_normal(60), np.r_[task, np.full(9, 2)])
    np.testing.assert_array_equal(other[:43], first[:43])
    # the place in `tasks_` counts, not the label
    np.testing.assert_array_equal(fold_of(4, 51, y, np.array(["a", "b", "c"])[task]), first)
    # rows of several tasks mixed: the order within each is what counts
    mixed = rng.permutation(task)
    again = fold_of(4, 51, y, mixed)  # flat: sorted by task
    np.testing.assert_array_equal(again, first)
    # unobserved rows are not there
    holes = np.insert(y, [0, 5, 20], np.nan)
    with_holes = fold_of(4, 54, holes, np.insert(task, [0, 5, 20], [0, 0, 1]))
    np.testing.assert_array_equal(with_holes[~np.isnan(holes)], first)
    # and so are the forms
    parts = np.split(y, np.cumsum(sizes)[:-1])
    np.testing.assert_array_equal(fold_of(4, sizes, parts), first)
    wide = np.full((51, 3), np.nan)
    wide[np.arange(51), task] = y
    np.testing.assert_array_equal(fold_of(4, 51, wide).reshape(3, -1).T[np.arange(51), task], first)
    assert np.any(fold_of(4, 51, y, task, random_state=1) != first)
    np.testing.assert_array_equal(fold_of(4, 51, y, task, random_state=0), first)
    assert np.any(np.diff(np.flatnonzero(first[:13] == 0)) > 1)  # shuffled


def test_folds_do_not_change_with_versions():
    """Frozen: a seed that is written down gives these folds for ever."""
    assert fold_of(3, 8, np.arange(8.0), random_state=7).tolist() == [1, 0, 0, 2, 1, 2, 0, 1]
    groups = assign_groups(np.zeros(8, dtype=int), np.array([0, 0, 1, 1, 2, 3, 4, 5]), 3, 7)
    assert groups.tolist() == [0, 1, 2, 0, 1, 2]


@given(st.data(), st.integers(2, 4), st.integers(0, 3))
def test_groups_stay_whole_and_folds_are_even(data, n_folds, seed):
    n = data.draw(st.integers(10, 60))
    groups = np.array(data.draw(st.lists(st.integers(0, 14), min_size=n, max_size=n)))
    strata = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    groups = np.unique(groups, return_inverse=True)[1]
    strata = np.unique(strata, return_inverse=True)[1]
    fold = assign_groups(strata, groups, n_folds, seed)
    assert len(fold) == groups.max() + 1
    needed = {int(groups[strata == s][0]) for s in range(strata.max() + 1) if len(set(groups[strata == s])) == 1}
    assert {g for g in range(len(fold)) if fold[g] == -1} == needed
    free = len(fold) - len(needed)
    assert len(set(fold[fold >= 0])) == min(free, n_folds)
    for s in range(strata.max() + 1):  # every class of every task can be learned in every fold
        for f in range(n_folds):
            assert free < n_folds or np.any(fold[groups[strata == s]] != f)


def test_groups_of_one_size_are_even_to_the_row():
    groups = np.repeat(np.arange(20), 3)
    strata = np.tile([0, 0, 1], 20)
    fold = assign_groups(strata, groups, 5, 0)[groups]
    assert np.bincount(fold).tolist() == [12] * 5
    assert np.bincount(fold[strata == 1]).tolist() == [4] * 5
    rng = np.random.default_rng(1)
    task, sizes = rng.integers(0, 4, 400), rng.integers(1, 9, 200)
    groups = np.repeat(np.arange(200), sizes)[:400]
    fold = assign_groups(task[: len(groups)], groups, 5, 0)[groups]
    for t in range(4):
        counts = np.bincount(fold[task[: len(groups)] == t], minlength=5)
        assert counts.max() - counts.min() <= 4


def test_groups_are_whole_across_tasks_and_their_rows_order_does_not_matter():
    rng = np.random.default_rng(0)
    task, groups, y = rng.integers(0, 3, 90), rng.integers(0, 25, 90), rng.standard_normal(90)
    order = np.argsort(task, kind="stable")
    found = np.empty(90, dtype=int)
    found[order] = fold_of(5, 90, y, task, groups=groups)
    for g in range(25):
        assert len(set(found[groups == g])) == 1
    mix = rng.permutation(90)
    again = np.empty(90, dtype=int)
    again[np.argsort(task[mix], kind="stable")] = fold_of(5, 90, y[mix], task[mix], groups=groups[mix])
    np.testing.assert_array_equal(again, found[mix])
    np.testing.assert_array_equal(fold_of(5, 90, y, task, groups=[f"family {g:02}" for g in groups]), found[order])
    parts = [np.flatnonzero(task == t) for t in range(3)]
    sizes = [len(rows) for rows in parts]
    labels = [y[rows] for rows in parts]
    for listed in ([groups[rows] for rows in parts], np.concatenate([groups[rows] for rows in parts])):
        np.testing.assert_array_equal(fold_of(5, sizes, labels, groups=listed), found[order])
    shared = fold_of(5, 90, np.stack([y, -y], axis=1), groups=groups, like_scikit_learn=True).reshape(2, -1)
    np.testing.assert_array_equal(shared[0], shared[1])
    assert len(set(shared[0][groups == 3])) == 1


def test_seeds():
    assert read_seed(None) == 0
    assert read_seed(np.int64(5)) == 5
    state = np.random.RandomState(0)
    assert read_seed(state) != read_seed(state)
    assert read_seed(np.random.default_rng(0)) == read_seed(np.random.default_rng(0))
    for wrong in (-1, 2**32, 1.5, "a", True):
        with pytest.raises(ValueError, match="random_state"):
            ts.MultiTaskLassoCV(n_alphas=2, random_state=wrong).fit(np.eye(9), np.arange(9.0))


# --- models ----------------------------------------------------------------------------------------------------------

FEW = {"n_alphas": 3, "eps": 0.3, "cv": 3}
MODELS = [
    ts.MultiTaskLassoCV(**FEW),
    ts.MultiTaskElasticNetCV(**FEW),
    ts.MultiTaskSparseGroupLassoCV(**FEW),
    ts.MultiTaskSparseGroupLassoCV(loss="logistic", **FEW),
    ts.MultiTaskLogisticRegressionCV(**FEW),
    ts.CalibratedMultiTaskLassoCV(**FEW),
    ts.MultiTaskOWLCV(**FEW),
    ts.MultinomialOWLCV(**FEW),
    ts.MultiTaskRegressorCV(**FEW),
]


def arguments(model, y, task):
    """Classes where they are needed, no tasks where there are none."""
    target = (y > np.median(y)).astype(int) if hasattr(model, "predict_proba") else y
    return target, {} if isinstance(model, ts.MultinomialOWLCV) else {"task": task}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__} {model.get_params().get('loss')}")
def test_every_model_takes_seed_and_groups(model, rng):
    X, task, groups = rng.standard_normal((60, 4)), np.arange(60) % 2, np.arange(60) // 4
    y, more = arguments(model, X[:, 0] + 0.5 * rng.standard_normal(60), task)
    one = model.fit(X, y, **more).cv_scores_
    assert "3 folds, shuffled within tasks" in model.cv_folds_
    assert ("stratified by class" in model.cv_folds_) == hasattr(model, "predict_proba")
    np.testing.assert_array_equal(model.set_params(random_state=0).fit(X, y, **more).cv_scores_, one)
    assert np.any(model.set_params(random_state=1).fit(X, y, **more).cv_scores_ != one)
    assert model.cv_folds_.endswith("seed 1")
    whole = model.set_params(random_state=None).fit(X, y, **more, groups=groups)
    assert whole.cv_folds_.startswith("3 folds of 15 whole groups")
    with pytest.raises(ValueError, match=r"groups has 2 different label\(s\).*cv=3"):
        model.fit(X, y, **more, groups=groups > 7)
    for wrong, words in (
        (groups[:-1], r"groups must have one label per row of X: X has 60 rows, groups has shape \(59,\)"),
        (np.where(groups == 2, np.nan, groups), "groups has no label in row 9 .*: every row belongs to a group"),
        (np.ma.masked_equal(groups, 2), "groups is masked in row 9"),
        (np.array([1, "a"] * 30, dtype=object), "groups mixes labels that cannot be sorted"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, **more, groups=wrong)


def test_tasks_of_one_group_are_named(rng):
    X, task = rng.standard_normal((40, 3)), np.repeat([0, 1], [30, 10])
    groups = np.where(task == 1, 99, np.arange(40) // 3)
    with pytest.warns(UserWarning, match=r"groups: 1 task\(s\) are never held out \(1\).*task 1: 99"):
        ts.MultiTaskLassoCV(**FEW).fit(X, X[:, 0], task=task, groups=groups)
    with pytest.raises(ValueError, match="groups: only 0 of 4 groups can be held out"):
        ts.MultiTaskLassoCV(**FEW).fit(X, X[:, 0], task=np.arange(40) % 4, groups=np.arange(40) % 4)


def test_scikit_learns_folds_only_where_its_models_are_named(rng):
    X = rng.standard_normal((40, 3))
    Y = X[:, :2] + rng.standard_normal((40, 2))
    lasso = ts.MultiTaskLassoCV([0.1], cv=4).fit(X, Y)
    assert lasso.cv_folds_ == "4 folds of consecutive rows"
    rows = ts.MultiTaskLassoCV([0.1], cv=KFold(4)).fit(X, Y)
    np.testing.assert_array_equal(rows.cv_scores_, lasso.cv_scores_)
    assert rows.cv_folds_ == "4 folds by KFold"
    for other in (
        ts.MultiTaskRegressorCV(alphas=[0.1], cv=4).fit(X, Y),
        ts.MultiTaskLassoCV([0.1], cv=4).fit(X, Y, groups=np.arange(40)),
        ts.MultiTaskElasticNetCV([0.1], cv=4, l1_ratio=1.0).fit(
            np.vstack([X, X]), Y.ravel(order="F"), task=np.repeat([0, 1], 40)
        ),
    ):
        assert "shuffled" in other.cv_folds_
        assert np.any(np.abs(other.cv_scores_ - lasso.cv_scores_) > 1e-6)


def test_splitters_that_take_groups_get_them(rng):
    X, task = rng.standard_normal((60, 3)), np.arange(60) % 2
    groups = np.arange(60) // 6
    y = X[:, 0] + rng.standard_normal(60)
    given = []

    class Own:
        def split(self, X, y=None, groups=None):
            given.append(groups)
            yield np.arange(30), np.arange(30, 60)

    model = ts.MultiTaskLassoCV([0.1], cv=Own()).fit(X, y, task=task)
    ts.MultiTaskLassoCV([0.1], cv=Own()).fit(X, y, task=task, groups=groups)
    assert model.cv_folds_ == "1 folds by Own"
    np.testing.assert_array_equal(given[0], task)
    np.testing.assert_array_equal(given[1], groups)
    by_group = ts.MultiTaskLassoCV([0.1], cv=GroupKFold(3)).fit(X, y, task=task, groups=groups)
    folds = list(GroupKFold(3).split(X, y, groups))
    listed = ts.MultiTaskLassoCV([0.1], cv=folds).fit(X, y, task=task)
    np.testing.assert_array_equal(by_group.cv_scores_, listed.cv_scores_)
    ts.MultiTaskLogisticRegressionCV([0.1], cv=StratifiedGroupKFold(3)).fit(X, y > 0, task=task, groups=groups)
    for cv, words in ((ts.TaskKFold(3, shuffle=False), "TaskKFold"), (KFold(3), "KFold"), (folds, "a list of folds")):
        with pytest.raises(ValueError, match=f"groups was given, but cv is {words}, which does not take groups"):
            ts.MultiTaskLassoCV([0.1], cv=cv).fit(X, y, task=task, groups=groups)


# --- folds that are no folds -----------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("task", [np.repeat([0, 1], 20), np.arange(40) % 2], ids=["sorted", "mixed"])
@pytest.mark.parametrize("model", MODELS[:2] + MODELS[4:8], ids=lambda model: type(model).__name__)
def test_wrong_folds_are_named(model, task, rng):
    X = rng.standard_normal((40, 3))
    y, more = arguments(model, X[:, 0] + rng.standard_normal(40), task)
    good = np.arange(0, 40, 2), np.arange(1, 40, 2)
    mask = np.arange(40) < 20
    for fold, words in (
        ((np.arange(50), good[1]), "cv: fold 1: train has the index 40, but the indices of the 40 rows .* are 0 to 39"),
        ((good[0], [3, -1]), "cv: fold 1: test has the index -1"),
        ((mask, ~mask), r"cv: fold 1: train is a mask; pass row indices, np.flatnonzero\(train\)"),
        ((good[0], []), "cv: fold 1: test is empty"),
        (([], good[1]), "cv: fold 1: train is empty"),
        ((good[0], [1.0, 2.0]), "cv: fold 1: test must hold row indices, whole numbers"),
        ((good[0], ["a"]), "cv: fold 1: test must hold row indices"),
        ((good[0], [[1, 2]]), "cv: fold 1: test must be a 1-D array"),
        ((good[0], [[1], [2, 3]]), "cv: fold 1: test must be a 1-D array"),
        ((good[0],), r"cv: fold 1 must be a pair of row indices, \(train, test\)"),
        (5, r"cv: fold 1 must be a pair"),
    ):
        with pytest.raises(ValueError, match=words):
            model.__class__(**{**model.get_params(), "cv": [good, fold]}).fit(X, y, **more)
    for cv in (1, 0, True, 2.5, "abc", object()):
        with pytest.raises(ValueError, match="The 'cv' parameter must be an integer >= 2"):
            model.__class__(**{**model.get_params(), "cv": cv}).fit(X, y, **more)


def test_too_many_folds():
    with pytest.raises(ValueError, match="cv=5 is too many folds for n_samples=4 in 1 task"):
        ts.MultiTaskHuberCV([0.1]).fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError, match="too many for n_samples=4"):
        ts.MultiTaskLassoCV([0.1]).fit(np.eye(4), np.eye(4)[:, :2])


# --- consecutive rows ------------------------------------------------------------------------------------------------


def test_consecutive_rows_of_each_class_of_each_task():
    """The folds of whole numbers in version 0.1, worked out by hand."""
    cv, task = ConsecutiveFolds(2), np.array([1, 0, 1, 0, 1, 0, 1, 0])
    y = np.array([1, 0, 1, 0, 0, 1, 0, 1])
    found = fold_of(cv, 8, y, task, targets="classes")  # flat: task 0 is rows 1, 3, 5, 7
    assert found.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert make_folds(cv, y, read_labels(8, y, task, targets="classes")).words == (
        "2 folds of consecutive rows within tasks, stratified by class"
    )
    assert fold_of(cv, 8, y.astype(float), task).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    holes = np.where(np.arange(8) == 1, np.nan, np.arange(8.0))  # an unobserved row moves no other
    assert fold_of(cv, 8, holes, task).tolist() == [-1, 0, 0, 1, 0, 0, 1, 1]
    wide = np.stack([y, y], axis=1).astype(float)
    assert fold_of(cv, 8, wide).tolist() == [0, 0, 0, 0, 1, 1, 1, 1] * 2
    assert make_folds(cv, wide, read_labels(8, wide)).words == "2 folds of consecutive rows"
    kinds = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    assert fold_of(cv, 8, kinds, targets="many classes").tolist() == [0, 0, 1, 1, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="cv is ConsecutiveFolds, which does not take groups"):
        fold_of(cv, 8, y.astype(float), task, groups=np.arange(8))


# --- order effects ---------------------------------------------------------------------------------------------------


def slow_labels(rng, n, memory=0.9):
    """Labels that change little from row to row."""
    steps = rng.standard_normal(n)
    for before, now in pairwise(range(n)):
        steps[now] += memory * steps[before]
    return steps


def test_order_is_warned_of_where_it_matters(rng):
    X, task = rng.standard_normal((120, 3)), np.arange(120) % 2
    y = slow_labels(rng, 120)
    Y = np.stack([slow_labels(rng, 120), rng.standard_normal(120)], axis=1)
    stretches = [(np.arange(40, 120), np.arange(40)), (np.arange(80), np.arange(80, 120))]
    for model, (rows, more), words in (
        (ts.MultiTaskLassoCV([0.1], cv=KFold(4)), ((X, y), {"task": task}), r"2 task\(s\) \(0, 1; lag-1"),
        (ts.MultiTaskLassoCV([0.1], cv=ts.TaskKFold(4, shuffle=False)), ((X, y), {"task": task}), r"2 task\(s\)"),
        (ts.MultiTaskLassoCV([0.1], cv=stretches), ((X, y), {}), r"1 task\(s\)"),
        (ts.MultiTaskLassoCV([0.1]), ((X, Y), {}), r"1 task\(s\) \(0; lag-1"),
        (ts.MultiTaskLogisticRegressionCV([0.1], cv=KFold(3)), ((X, y > 0), {}), r"1 task\(s\)"),
        (ts.MultinomialOWLCV([0.1], cv=KFold(3)), ((X, np.digitize(y, [-1, 1])), {}), r"1 task\(s\)"),
        (ts.MultiTaskLassoCV([0.1], cv=TimeSeriesSplit(3)), ((X, y), {}), "as it should be"),
    ):
        with pytest.warns(ts.OrderWarning, match=words):
            model.fit(*rows, **more)
    groups = np.arange(120) // 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ts.MultiTaskLassoCV([0.1]).fit(X, y, task=task)  # shuffled
        ts.MultiTaskLassoCV([0.1], cv=KFold(4, shuffle=True, random_state=0)).fit(X, y, task=task)
        ts.MultiTaskLassoCV([0.1], cv=KFold(4)).fit(X, rng.permutation(y), task=task)  # no order in y
        ts.MultiTaskLassoCV([0.1], cv=KFold(4)).fit(X, np.tile([1.0, -1.0], 60))  # alternating: every fold has all
        ts.MultiTaskLassoCV([0.1], cv=LeaveOneGroupOut()).fit(X, y, groups=groups)  # known, and told
        ts.MultiTaskLassoCV([0.1], cv=KFold(120)).fit(X, y)  # one row at a time
        ts.MultiTaskLassoCV([0.1], cv=KFold(4)).fit(X, np.ones(120))


def test_order_is_seldom_warned_of_by_chance(rng):
    """Four standard errors: of 400 tasks whose rows are in no order, none is beyond them with this seed."""
    y, task = rng.standard_normal(400 * 30), np.repeat(np.arange(400), 30)
    labels = read_labels(len(y), y, task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_folds(ts.TaskKFold(5, shuffle=False), y, labels)


# --- what it is for --------------------------------------------------------------------------------------------------


def test_rows_sorted_by_class_give_a_sensible_model(rng):
    """Folds of consecutive rows of such a file hold out what was never learned: nothing was selected."""
    n, d = 150, 12
    kind = np.repeat([0, 1, 2, 3, 4], n // 5)
    X = rng.standard_normal((n, d))
    X[:, :5] += 1.2 * np.eye(5)[kind]
    Y = np.eye(5, dtype=int)[kind]  # each class against the rest
    grid = {"n_alphas": 8, "eps": 0.05}
    model = ts.MultiTaskLogisticRegressionCV(**grid).fit(X, Y)
    mixed = rng.permutation(n)
    shuffled = ts.MultiTaskLogisticRegressionCV(**grid).fit(X[mixed], Y[mixed])
    best, other = (m.cv_scores_.mean(axis=1).min() for m in (model, shuffled))
    assert best == pytest.approx(other, rel=0.1)
    assert model.get_support()[:5].all()
    assert best < 0.9 * model.cv_scores_.mean(axis=1)[0]
    with pytest.warns(ts.OrderWarning):
        stretches = ts.MultiTaskLogisticRegressionCV(**grid, cv=KFold(5)).fit(X, Y)
    assert not stretches.get_support().any()


def test_families_are_predicted_from_other_families(rng):
    """Relatives share genes and surroundings: with one of them in training, the noise of a family looks like signal."""
    n_families, size, d = 60, 5, 120
    family = np.repeat(np.arange(n_families), size)
    X = rng.standard_normal((n_families, d))[family] + 0.1 * rng.standard_normal((n_families * size, d))
    y = X[:, 0] + rng.standard_normal(n_families)[family] + 0.1 * rng.standard_normal(len(family))
    new = rng.standard_normal((4000, d))
    truth = new[:, 0] + rng.standard_normal(4000)
    grid = {"alphas": np.geomspace(2.0, 0.02, 12), "cv": 5, "selection_rule": "1se"}
    promised, found, selected = {}, {}, {}
    for name, groups in (("blind", None), ("whole", family)):
        model = ts.MultiTaskLassoCV(**grid).fit(X, y, task=np.zeros(len(y)), groups=groups)
        k = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
        promised[name] = model.cv_scores_[k].mean()
        found[name] = np.mean((truth - model.predict(new)[:, 0]) ** 2)
        selected[name] = int(model.get_support().sum())
    assert promised["blind"] < 0.1 * found["blind"]
    assert 0.6 < promised["whole"] / found["whole"] < 1.6
    assert found["whole"] < found["blind"]
    assert selected["whole"] < 10 < 30 < selected["blind"]
