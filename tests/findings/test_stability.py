"""Stability selection: what it counts, what it depends on, interruption and resumption."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import lasso_path
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import tasksieve as ts
from tasksieve.findings.half_paths import grid_of
from tasksieve.findings.halves import draw_halves
from tasksieve.tasks import TaskData, read_tasks


def problem(n: int = 30, n_tasks: int = 3, d: int = 60, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features 0 and 1 matter in all tasks."""
    rng = np.random.default_rng(seed)
    X, task = rng.standard_normal((n * n_tasks, d)), np.repeat(np.arange(n_tasks), n)
    y = X[:, 0] * (1 + task) - X[:, 1] + rng.standard_normal(n * n_tasks)
    return X, y, task


def select(model: Any = None, **options: Any) -> ts.StabilitySelection:
    return ts.StabilitySelection(ts.MultiTaskLasso() if model is None else model, **{"n_pairs": 6, **options})


@pytest.fixture(scope="module")
def fitted() -> ts.StabilitySelection:
    X, y, task = problem()
    return select().fit(X, y, task=task)


def test_what_is_found(fitted: ts.StabilitySelection) -> None:
    shares = fitted.selection_probabilities_
    assert shares.shape == (60,)
    np.testing.assert_array_equal(fitted.get_support(), shares >= fitted.threshold_)
    np.testing.assert_array_equal(fitted.get_support(indices=True), [0, 1])
    assert shares.sum() == pytest.approx(fitted.q_)  # every half has come to q features
    assert fitted.pfer_bound_ == fitted.pfer_bounds_["unimodal"] == ts.pfer_bound(60, fitted.q_, 0.75, 6)
    assert fitted.n_selectable_ == 60
    assert fitted.n_pairs_ == 6
    assert not fitted.interrupted_
    assert fitted.halves_ == "6 pairs of complementary halves of rows, within tasks, seed 0"


def test_halves_are_followed_as_a_path_on_their_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One task: scikit-learn's path on a copy of the rows of each half, value by value, has the same order of entry."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 40))
    y = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.standard_normal(80)
    q = 8
    monkeypatch.setattr("tasksieve.findings.stability.fold_tolerance", lambda tol, _: tol)
    stable = ts.StabilitySelection(ts.MultiTaskLasso(tol=1e-10), n_pairs=5, q=q, assumption="none").fit(X, y)
    data = read_tasks(X, y)
    halves = draw_halves(data, 5, 0)
    for h, entries in enumerate(stable._entries):
        rows = halves.weights(h, data.weights) > 0
        assert rows.sum() == 40
        own, labels = X[rows] - X[rows].mean(axis=0), y[rows] - y[rows].mean()
        alphas = np.unique(entries.alphas)[::-1]
        assert alphas[0] < np.max(np.abs(own.T @ labels)) / 40
        _, coefs, _ = lasso_path(own, labels, alphas=alphas, tol=1e-12, max_iter=100_000)
        first = np.where(coefs.any(axis=1), np.argmax(coefs != 0, axis=1), len(alphas))
        strength = [abs(row[k]) if k < len(alphas) else 0.0 for row, k in zip(coefs, first, strict=True)]
        order = np.lexsort((-np.array(strength), first))[:q]
        np.testing.assert_array_equal(entries.numbers, order)
        np.testing.assert_array_equal(entries.alphas, alphas[first[order]])


def test_the_path_by_alpha(fitted: ts.StabilitySelection) -> None:
    path = fitted.stability_path_.toarray()
    assert path.shape == (len(fitted.alphas_), 60)
    used = [entries.numbers[entries.alphas >= fitted.alphas_[20]] for entries in fitted._entries]
    np.testing.assert_allclose(path[20], np.mean([np.isin(np.arange(60), own) for own in used], axis=0))
    assert np.all(np.diff(fitted.alphas_) < 0)
    assert np.all(np.diff(path, axis=0) >= 0)
    assert not path[0].any()
    np.testing.assert_allclose(path[-1], fitted.selection_probabilities_)


def test_change_is_a_new_fit_without_fitting() -> None:
    X, y, task = problem(seed=1)
    wide = select(q=12, assumption="none").fit(X, y, task=task)
    narrow = wide.change(q=5, threshold=0.8, assumption="r-concave")
    again = select(q=5, threshold=0.8, assumption="r-concave").fit(X, y, task=task)
    # values of alpha are chosen for q, so that the order of those that enter at one value may differ
    assert np.max(np.abs(narrow.selection_probabilities_ - again.selection_probabilities_)) <= 0.25
    assert (narrow.q_, narrow.threshold_, narrow.pfer_bounds_) == (5, again.threshold_, again.pfer_bounds_)
    assert narrow.selection_probabilities_.sum() == pytest.approx(5)
    np.testing.assert_array_equal(narrow.get_support(), narrow.selection_probabilities_ >= 10 / 12)
    assert wide.q_ == 12
    assert wide.selection_probabilities_.sum() == pytest.approx(12)
    # back again
    np.testing.assert_array_equal(
        narrow.change(q=12, threshold=0.75, assumption="none").selection_probabilities_, wide.selection_probabilities_
    )


def test_change_completes_the_levels(fitted: ts.StabilitySelection) -> None:
    assert fitted.change(threshold=0.9).q_ == fitted.q_
    assert fitted.change(threshold=0.9).threshold_ == 11 / 12
    assert fitted.change(assumption="none").pfer_bound_ == fitted.pfer_bounds_["none"]
    tight = fitted.change(pfer=0.5)
    assert tight.q_ == fitted.q_
    assert tight.threshold_ > fitted.threshold_
    assert tight.pfer_bound_ <= 0.5
    both = fitted.change(pfer=0.2, threshold=0.75)
    assert both.q_ < fitted.q_
    assert both.pfer_bound_ <= 0.2 < ts.pfer_bound(60, both.q_ + 1, 0.75, 6)
    assert fitted.change(pfer=50.0, threshold=0.75).q_ == fitted.q_  # no further than the halves were followed
    with pytest.raises(ValueError, match="needs a new fit"):
        fitted.change(q=fitted.q_ + 1)
    with pytest.raises(ValueError, match="'threshold'"):
        fitted.change(threshold=0.5)
    with pytest.raises(ValueError, match="do not go together"):
        fitted.change(threshold=0.75, q=fitted.q_, pfer=0.01)


# -- what the result depends on ---------------------------------------------------------------------------------------


def same(one: ts.StabilitySelection, other: ts.StabilitySelection) -> None:
    np.testing.assert_array_equal(one.selection_probabilities_, other.selection_probabilities_)
    np.testing.assert_allclose(one.alphas_, other.alphas_, rtol=1e-9)
    for mine, yours in itertools.zip_longest(one._entries, other._entries):
        np.testing.assert_array_equal(mine.numbers, yours.numbers)


def test_row_order_task_names_and_form(fitted: ts.StabilitySelection) -> None:
    X, y, task = problem()
    mixed = np.random.default_rng(1).permutation(len(y))
    same(fitted, select().fit(X[mixed], y[mixed], task=task[mixed]))
    same(fitted, select().fit(X, y, task=np.array(["z", "a", "m"])[task]))
    parts = [task == t for t in range(3)]
    same(fitted, select().fit([X[part] for part in parts], [y[part] for part in parts]))
    same(fitted, select().fit(scipy.sparse.csc_array(X), y, task=task))
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(60)])
    named = select().fit(frame, pandas.Series(y), task=pandas.Series(task))
    same(fitted, named)
    assert list(named.get_feature_names_out()) == ["gene 0", "gene 1"]
    padded = np.concatenate([y, [np.nan, 3.0]])
    weight = np.append(np.ones(len(y)), [1.0, 0.0])
    more = select().fit(np.vstack([X, X[:2]]), padded, task=np.append(task, [0, 1]), sample_weight=weight)
    same(fitted, more)


def test_a_shared_matrix_in_two_forms() -> None:
    """The rows of a shared matrix are units, as groups over stacked rows are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 40))
    Y = X[:, :1] + rng.standard_normal((30, 3))
    task, groups = np.repeat([0, 1, 2], 30), np.tile(np.arange(30), 3)
    same(select().fit(X, Y), select().fit(np.vstack([X] * 3), Y.ravel(order="F"), task=task, groups=groups))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads(dtype: Any) -> None:
    X, y, task = problem(d=300)
    one, two = (select(n_jobs=jobs).fit(X.astype(dtype), y, task=task) for jobs in (1, 3))
    same(one, two)
    np.testing.assert_array_equal(one.alphas_, two.alphas_)


def test_the_seed() -> None:
    X, y, task = problem()
    one, two = (select(random_state=seed).fit(X, y, task=task) for seed in (0, 1))
    assert not np.array_equal(one.selection_probabilities_, two.selection_probabilities_)
    same(one, select(random_state=None).fit(X, y, task=task))


def test_task_weights_follow_their_tasks() -> None:
    X, y, task = problem()
    model = ts.MultiTaskLasso(task_weights={0: 1.0, 1: 5.0, 2: 0.2})
    names = np.array(["z", "a", "m"])
    renamed = ts.MultiTaskLasso(task_weights={"z": 1.0, "a": 5.0, "m": 0.2})
    same(select(model).fit(X, y, task=task), select(renamed).fit(X, y, task=names[task]))


# -- every estimator --------------------------------------------------------------------------------------------------

REGRESSIONS = {
    "elastic net": ts.MultiTaskElasticNet(),
    "standardized": ts.MultiTaskLasso(standardize=True),
    "positive": ts.MultiTaskLasso(positive=True),
    "sparse group": ts.MultiTaskSparseGroupLasso(),
    "calibrated": ts.CalibratedMultiTaskLasso(),
    "owl": ts.MultiTaskOWL(),
    "slope": ts.MultiTaskOWL(weights="slope"),
    "huber": ts.MultiTaskHuber(),
    "quantile": ts.MultiTaskQuantile(),
    "linf": ts.MultiTaskRegressor(penalty="linf"),
    "dirty": ts.MultiTaskRegressor(penalty="dirty"),
    "chain": ts.MultiTaskRegressor(task_graph="chain"),
    "square root": ts.MultiTaskRegressor(loss="square-root", penalty="l11"),
    "no rule": ts.MultiTaskLasso(screening=None),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(name: str) -> None:
    X, y, task = problem(n=24, d=30)
    stable = select(REGRESSIONS[name], n_pairs=4, q=4, assumption="none").fit(X, y, task=task)
    assert stable.selection_probabilities_[0] == 1.0
    assert max(len(entries.numbers) for entries in stable._entries) == 4


@pytest.mark.slow
def test_classifications() -> None:
    X, y, task = problem(n=40, d=30)
    classes, three = np.where(y > 0, "yes", "no"), np.digitize(y, [-1.5, 1.5])
    options = {"n_pairs": 4, "q": 4, "assumption": "none"}
    for model in (ts.MultiTaskLogisticRegression(), ts.MultiTaskClassifier(loss="squared_hinge")):
        assert select(model, **options).fit(X, classes, task=task).selection_probabilities_[0] == 1.0
    found = select(ts.MultiTaskLogisticRegression(), **options).fit(X, three, task=task)
    assert found.selection_probabilities_[0] == 1.0
    assert select(ts.MultinomialOWL(), **options).fit(X, three).selection_probabilities_[0] == 1.0
    balanced = ts.MultiTaskLogisticRegression(class_weight="balanced")
    assert select(balanced, **options).fit(X, y > 2, task=task).selection_probabilities_[0] == 1.0
    counts = np.floor(np.exp(0.4 * y))
    assert select(ts.MultiTaskPoisson(), **options).fit(X, counts, task=task).selection_probabilities_[0] == 1.0


CUT = ("stacked", "shared", "classes", "survival", "dropped", "task weights")


@pytest.mark.parametrize("kind", CUT)
def test_rows_of_the_other_half_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half is followed on its rows alone; with those of the other half at weight 0 it is the same problem."""
    monkeypatch.setattr("tasksieve.findings.stability.fold_tolerance", lambda tol, _: tol)
    X, y, task = problem(n=24, d=30)
    model: Any = ts.MultiTaskLasso(tol=1e-9)
    options: dict[str, Any] = {"n_pairs": 2, "q": 4, "assumption": "none"}
    fit: dict[str, Any] = {"task": task}
    if kind == "stacked":
        fit["sample_weight"] = np.random.default_rng(1).integers(0, 4, len(y))
    elif kind == "shared":
        y, fit = np.column_stack([y, X[:, 0] - X[:, 2]]), {}
        y[::7, 1] = np.nan
    elif kind == "classes":
        model, y = ts.MultiTaskLogisticRegression(tol=1e-9), np.digitize(y, [-1.5, 1.5])
    elif kind == "survival":
        model, y = ts.MultiTaskCox(tol=1e-9), ts.survival(np.exp(0.3 * y), np.arange(len(y)) % 3 > 0)
    elif kind == "dropped":
        X, y, fit = np.vstack([X, X[:1]]), np.append(y, 1.0), {"task": np.append(task, 9)}
        options["small_tasks"] = "drop"
    else:
        model = ts.MultiTaskLasso(tol=1e-9, task_weights=[1.0, 2.0, 0.5])
    cut = select(model, **options).fit(X, y, **fit)
    monkeypatch.setattr(TaskData, "without_absent_rows", lambda self: self)
    whole = select(model, **options).fit(X, y, **fit)
    for mine, other in zip(cut._entries, whole._entries, strict=True):
        np.testing.assert_array_equal(mine.numbers, other.numbers)
        np.testing.assert_allclose(mine.alphas, other.alphas, rtol=1e-9)


@pytest.mark.parametrize("inside", [None, "rows"])
def test_groups_of_features_are_what_is_counted(inside: Any) -> None:
    X, y, task = problem(d=60)
    labels = np.array(["abcdefghijklmnopqrst"[j // 3] for j in range(60)])
    model = ts.MultiTaskGroupLasso(feature_groups=labels, inside=inside)
    stable = select(model, q=4, assumption="none").fit(X, y, task=task)
    assert stable.n_selectable_ == 20
    assert stable.pfer_bound_ == ts.pfer_bound(20, 4, 0.75, 6, "none")
    np.testing.assert_array_equal(stable.change(threshold=1.0).get_support(indices=True), [0, 1, 2])
    by_group = stable.selection_probabilities_.reshape(20, 3)
    np.testing.assert_array_equal(by_group, by_group[:, :1] @ np.ones((1, 3)))
    assert by_group[:, 0].sum() == pytest.approx(4)
    frame = stable.to_frame()
    assert list(frame.columns) == ["feature", "group", "selection_probability", "stable"]
    assert list(frame["group"][:3]) == ["a", "a", "a"]


def test_unpenalised_features_are_not_counted() -> None:
    X, y, task = problem()
    weights = np.ones(60)
    weights[[0, 7]] = 0.0
    stable = select(ts.MultiTaskLasso(feature_weights=weights), q=5, assumption="none").fit(X, y, task=task)
    assert stable.n_selectable_ == 58
    assert np.all(np.isnan(stable.selection_probabilities_[[0, 7]]))
    assert np.nansum(stable.selection_probabilities_) == pytest.approx(5)
    np.testing.assert_array_equal(stable.get_support(indices=True), [1])
    assert len(stable.to_frame()) == 58
    assert np.all(stable.stability_path_[:, [0, 7]].toarray() == 0)


def test_nothing_to_find() -> None:
    X, _, task = problem()
    stable = select().fit(X, np.ones(len(X)), task=task)
    assert not stable.selection_probabilities_.any()
    assert not stable.get_support().any()
    assert stable.stability_path_.shape == (1, 60)


def test_a_path_that_ends_before_q() -> None:
    """Ten rows a half are explained by nine features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 40))
    stable = select(q=15, assumption="none").fit(X, X[:, 0] + 0.1 * rng.standard_normal(20))
    assert max(len(entries.numbers) for entries in stable._entries) <= 15
    assert stable.selection_probabilities_[0] == 1.0


# -- progress, interruption, resumption -------------------------------------------------------------------------------


def test_progress() -> None:
    X, y, task = problem()
    heard: list[ts.Progress] = []
    with ts.watch(heard.append):
        select(n_jobs=2).fit(X, y, task=task)
    assert [progress.done for progress in heard] == list(range(1, 13))
    assert {(told.label, told.unit, told.total) for told in heard} == {("StabilitySelection", "half", 12)}


def test_an_interruption_leaves_the_pairs_finished() -> None:
    X, y, task = problem()

    def stop(progress: ts.Progress) -> None:
        if progress.done == 15:
            raise KeyboardInterrupt

    whole = select(n_pairs=10, q=6, assumption="none").fit(X, y, task=task)
    stopped = select(n_pairs=10, q=6, assumption="none", n_jobs=1)
    with ts.watch(stop), pytest.warns(UserWarning, match=r"interrupted: \d of 10 pairs are finished"):
        stopped.fit(X, y, task=task)
    done = stopped.n_pairs_
    assert stopped.interrupted_
    assert 5 <= done < 8  # 15 halves
    assert stopped.pfer_bound_ == ts.pfer_bound(60, 6, 0.75, done, "none")
    assert stopped.threshold_ == np.ceil(0.75 * 2 * done) / (2 * done)
    for mine, yours in zip(stopped._entries[:10], whole._entries[:10], strict=True):
        np.testing.assert_array_equal(mine.numbers, yours.numbers)
    assert stopped.selection_probabilities_.sum() == pytest.approx(6)
    assert stopped.change(threshold=0.9).n_pairs_ == done


def test_an_interruption_before_a_pair_is_finished() -> None:
    X, y, task = problem()

    def stop(_: ts.Progress) -> None:
        raise KeyboardInterrupt

    with ts.watch(stop), pytest.raises(KeyboardInterrupt):
        select(n_jobs=1).fit(X, y, task=task)


def test_finished_halves_are_kept(tmp_path: Path) -> None:
    X, y, task = problem()
    whole = select(n_pairs=10).fit(X, y, task=task)

    def stop(progress: ts.Progress) -> None:
        if progress.done == 12:
            raise KeyboardInterrupt

    with ts.checkpoint(tmp_path), ts.watch(stop), pytest.warns(UserWarning, match="interrupted"):
        select(n_pairs=10, n_jobs=1).fit(X, y, task=task)
    kept = set(tmp_path.iterdir())
    assert len(kept) >= 12
    before = {file: file.stat().st_mtime_ns for file in kept}
    with ts.checkpoint(tmp_path):
        again = select(n_pairs=10).fit(X, y, task=task)
    same(whole, again)
    assert before == {file: file.stat().st_mtime_ns for file in kept}
    assert len(set(tmp_path.iterdir())) == 20
    with ts.checkpoint(tmp_path):  # another seed has other halves
        select(n_pairs=2, random_state=1, q=5, assumption="none").fit(X, y, task=task)
    assert len(set(tmp_path.iterdir())) == 24


@pytest.mark.slow
def test_readings_of_a_file_do_not_grow_with_the_number_of_halves(tmp_path: Path) -> None:
    X, y, task = problem(d=400)
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=X.shape, order="F")
    mapped[:] = X
    options = {"q": 8, "assumption": "none"}
    few, many = (select(n_pairs=n, **options).fit(mapped, y, task=task) for n in (5, 50))
    assert many.passes_ <= few.passes_ + 2
    assert many.passes_ < 15
    in_memory = select(n_pairs=5, **options).fit(X, y, task=task)
    same(few, in_memory)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (ts.MultiTaskLassoCV(), r"MultiTaskLassoCV chooses alpha.*Pass the model that it repeats, MultiTaskLasso"),
        (ts.GraphSVC(np.zeros((3, 3))), r"GraphSVC.*nothing to count.*task_graph"),
        (ts.OnlineMultiTaskRegressor(), "OnlineMultiTaskRegressor has no path"),
        (ts.MultiTaskLasso, r"pass MultiTaskLasso\(\)"),
        (None, "NoneType has no path"),
    ],
)
def test_estimators_without_a_path_of_features(estimator: Any, words: str) -> None:
    X, y, task = problem()
    with pytest.raises(ValueError, match=words):
        ts.StabilitySelection(estimator).fit(X, y, task=task)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"q": 60}, "'q' parameter must be smaller than the number of penalised features"),
        ({"q": 0}, "'q'"),
        ({"threshold": 0.5}, "'threshold' parameter must be above 1/2"),
        ({"threshold": 1.1}, "'threshold'"),
        ({"pfer": 0.0}, "'pfer'"),
        ({"n_pairs": 0}, "'n_pairs'"),
        ({"assumption": "normal"}, "'assumption'"),
        ({"small_tasks": "keep"}, "'small_tasks'"),
        ({"random_state": -1}, "'random_state'"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"q": 20, "threshold": 0.75, "pfer": 1.0}, "do not go together"),
        ({"estimator": ts.MultiTaskLasso(tol=-1.0)}, "'tol'"),
    ],
)
def test_bad_parameters(options: dict[str, Any], words: str) -> None:
    X, y, task = problem()
    with pytest.raises(ValueError, match=words):
        select().set_params(**options).fit(X, y, task=task)


def test_tasks_that_cannot_be_halved() -> None:
    X, y, task = problem()
    X, y, task = np.vstack([X, X[:1]]), np.append(y, 1.0), np.append(task, 9)
    with pytest.raises(ValueError, match=r"Task 9 has one row.*small_tasks='drop'"):
        select().fit(X, y, task=task)
    less = select(small_tasks="drop").fit(X, y, task=task)
    assert less.dropped_tasks_ == [9]
    without = select().fit(X[:-1], y[:-1], task=task[:-1])
    np.testing.assert_array_equal(less.selection_probabilities_, without.selection_probabilities_)
    with pytest.raises(ValueError, match="one group"):
        select().fit(X, y, task=task, groups=np.where(task == 1, 1000, np.arange(len(y))))


def test_one_feature() -> None:
    with pytest.raises(ValueError, match="nothing to select from"):
        select().fit(np.arange(20.0)[:, None], np.arange(20.0))


# -- as an estimator --------------------------------------------------------------------------------------------------


REPEATED = "what is halved are rows: a row of weight 2 is one, its equal twice are two"


def weights_count_rows(_: Any) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": REPEATED,
        "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    }


@pytest.mark.sampled(6)
@parametrize_with_checks(
    [ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=2, assumption="none")],
    expected_failed_checks=weights_count_rows,
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [ts.StabilitySelection(ts.MultiTaskLogisticRegression(), n_pairs=2, assumption="none")],
    expected_failed_checks=weights_count_rows,
)
def test_scikit_learn_checks_of_classes(estimator: Any, check: Any) -> None:
    check(estimator)


def test_not_fitted() -> None:
    for ask in ("get_support", "to_frame", "plot", "change"):
        with pytest.raises(NotFittedError):
            getattr(select(), ask)()


def test_selector(fitted: ts.StabilitySelection) -> None:
    X, y, _ = problem()
    np.testing.assert_array_equal(fitted.transform(X), X[:, :2])
    assert [part.shape for part in fitted.transform([X[:5], X[5:7]])] == [(5, 2), (2, 2)]
    assert clone(fitted).n_pairs == 6
    same(pickle.loads(pickle.dumps(fitted)), fitted)
    pipeline = make_pipeline(select(), ts.MultiTaskLasso(0.1)).fit(X[:, :20], y)
    assert pipeline[-1].n_features_in_ == pipeline[0].get_support().sum() > 0
    assert repr(select()) == "StabilitySelection(estimator=MultiTaskLasso(), n_pairs=6)"


def test_frame(fitted: ts.StabilitySelection) -> None:
    frame = fitted.to_frame()
    assert list(frame.columns) == ["feature", "selection_probability", "stable"]
    assert len(frame) == 60
    assert frame["selection_probability"].is_monotonic_decreasing
    stable = fitted.get_support(indices=True).tolist()
    assert set(frame["feature"][frame["stable"]]) == set(stable)
    assert {0, 1} <= set(stable)


def test_picture(fitted: ts.StabilitySelection) -> None:
    pytest.importorskip("matplotlib").use("agg")
    ax = fitted.plot()
    stable = fitted.get_support(indices=True).tolist()
    assert ax.get_title(loc="left") == f"{len(stable)} of 60 features stable"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"x{j}" for j in stable]
    assert ax.xaxis_inverted()
    with pytest.raises(ValueError, match="most"):
        fitted.plot(most=0)


def test_values_of_alpha() -> None:
    levels = np.exp(-np.arange(50) / 10.0)
    alphas = grid_of(2.0, levels, 13)
    steps = -np.diff(np.log(alphas))
    assert alphas[0] == pytest.approx(2.0 * np.exp(-0.3))
    np.testing.assert_allclose(steps[:3], 0.3)  # four steps to the thirteenth level
    assert np.all(np.diff(steps[3:]) > 0)
    assert 2e-3 * 0.99 < alphas[-1] < 1e-2
    assert len(grid_of(1.0, np.zeros(5), 3)) > 0
    assert len(grid_of(1.0, np.ones(2), 3)) > 0


# -- how many are false -----------------------------------------------------------------------------------------------


def false_selections(n_data: int, n_pairs: int, d: int = 200, n_tasks: int = 5, n: int = 120) -> dict[str, np.ndarray]:
    """Stable features of data without any signal, neighbouring features correlated by 1/2."""
    counts: dict[str, list[int]] = {"unimodal": [], "r-concave": []}
    for seed in range(n_data):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_tasks * n, d))
        for j in range(1, d):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        y, task = rng.standard_normal(n_tasks * n), np.repeat(np.arange(n_tasks), n)
        for assumption, found in counts.items():
            stable = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs, assumption=assumption).fit(X, y, task=task)
            found.append(int(stable.get_support().sum()))
            assert stable.pfer_bound_ <= 1.0
    return {name: np.array(found) for name, found in counts.items()}


def test_few_are_false_where_nothing_matters() -> None:
    found = false_selections(5, 8, d=100, n_tasks=3, n=30)
    for counts in found.values():
        assert counts.mean() <= 1.0


@pytest.mark.slow
def test_no_more_are_false_than_the_bound_says() -> None:
    """30 data sets of pure noise, 25 pairs: the mean and two standard errors stay below the bound."""
    for counts in false_selections(30, 25).values():
        assert counts.mean() + 2 * counts.std(ddof=1) / np.sqrt(len(counts)) <= 1.0
