"""Does sharing help? Nested cross-validation against the same by hand, invariances, words, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import t as student
from scipy.stats import ttest_1samp
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

import tasksieve as ts
from tasksieve.findings.comparison import holm, t_test
from tasksieve.findings.cv_sibling import cv_sibling
from tasksieve.findings.nested_folds import NestedFolds
from tasksieve.fitted.choosing import for_one_task
from tasksieve.tasks import read_tasks

LASSO = ts.MultiTaskLassoCV(n_alphas=5, eps=0.1, cv=3, tol=1e-12)  # own models are found in two ways
NAMES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(20150)
    X, task = rng.standard_normal((90, 8)), np.tile(NAMES, 30)
    y = X[:, 0] - X[:, 1] + np.where(task == "c", 3.0, 0.0) + 0.7 * rng.standard_normal(90)
    return X, y, task


@pytest.fixture(scope="module")
def found(rows):
    X, y, task = rows
    return ts.compare(LASSO, X, y, task=task, cv=3)


def folds_of(X, y, task, **options):
    data = read_tasks(X, y, task)
    nest = NestedFolds(data, options.get("groups"), 0)
    outer = nest.assign(np.ones(len(data.y), dtype=bool), 3, 0)
    inner = [nest.assign(outer != f, 3, 1, f) for f in range(3)]
    back = np.arange(len(data.y)) if data.order is None else np.argsort(data.order)
    return outer[back], [part[back] for part in inner]


def splits(fold):
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]


def test_against_the_same_by_hand(rows, found):
    X, y, task = rows
    outer, inner = folds_of(X, y, task)
    assert np.bincount(outer).tolist() == [30, 30, 30]
    losses = {name: np.empty(90) for name in ("shared", "own", "pooled", "mean")}
    for f in range(3):
        held, learn = outer == f, outer != f
        w = learn.astype(float)
        options = {"n_alphas": 5, "eps": 0.1, "tol": 1e-12}
        shared = ts.MultiTaskLassoCV(cv=splits(inner[f]), **options).fit(X, y, task=task, sample_weight=w)
        losses["shared"][held] = (y - shared.predict(X, task=task))[held] ** 2
        pooled = ts.MultiTaskLassoCV(cv=splits(inner[f]), **options).fit(X, y, sample_weight=w)
        losses["pooled"][held] = (y - pooled.predict(X))[held] ** 2
        for name in NAMES:
            own = task == name
            model = ts.MultiTaskLassoCV(cv=splits(inner[f][own]), **options).fit(X[own], y[own], sample_weight=w[own])
            both = own & held
            losses["own"][both] = (y[both] - model.predict(X[both])) ** 2
            losses["mean"][both] = (y[both] - y[own & learn].mean()) ** 2
    for name, loss in losses.items():
        own = [loss[task == t].mean() for t in NAMES]
        np.testing.assert_allclose(found.quality[name].values[:, 1], own, rtol=1e-8)
        base = [np.var(y[task == t]) for t in NAMES]
        np.testing.assert_allclose(found.quality[name].values[:, 0], 1 - np.array(own) / base, rtol=1e-8)
    difference = losses["shared"] - losses["own"]
    versus = found.differences["own"]
    np.testing.assert_allclose(versus.values, [difference[task == t].mean() for t in NAMES], rtol=1e-6)
    widened = [difference[task == t].std(ddof=1) / np.sqrt(30) * np.sqrt(1 + 3 / 2) for t in NAMES]
    np.testing.assert_allclose(versus.errors, widened, rtol=1e-6)
    plain = ttest_1samp(difference[task == "a"], 0.0)
    assert versus.pvalues[0] > plain.pvalue
    np.testing.assert_allclose(versus.overall_error, np.sqrt(np.sum(versus.errors**2)) / 3)
    assert found.score == "R²"
    assert found.loss == "squared error"


@pytest.mark.parametrize("free", [(), (0, 4)])
def test_the_null_model_stands_beside(rows, found, free):
    X, y, task = rows
    if free:
        weights = np.where(np.isin(np.arange(X.shape[1]), free), 0.0, 1.0)
        model = ts.MultiTaskLassoCV(n_alphas=5, eps=0.1, cv=3, feature_weights=weights)
        found = ts.compare(model, X, y, task=task, cv=3)
    outer, _ = folds_of(X, y, task)
    columns = X[:, list(free)] if free else np.zeros((90, 1))
    guess = np.empty(90)
    for name in NAMES:
        for f in range(3):
            train, test = (task == name) & (outer != f), (task == name) & (outer == f)
            guess[test] = LinearRegression().fit(columns[train], y[train]).predict(columns[test])
    shared = found.quality["shared"]
    own = [[r2_score(y[task == t], guess[task == t]), np.mean((y - guess)[task == t] ** 2)] for t in NAMES]
    np.testing.assert_allclose(shared.null_values, own, rtol=1e-8)
    assert shared.null_covariates == len(free)
    np.testing.assert_allclose(found["null_loss"][:-1], np.array(own)[:, 1])
    np.testing.assert_allclose(found["null_score"][-1], np.mean(own, axis=0)[0])
    np.testing.assert_allclose(found["increment"], np.subtract(found["score_shared"], found["null_score"]))


def test_nothing_counts_but_rows_and_seed(rows, found, rng):
    X, y, task = rows

    def same(other, order=slice(None)):
        for name in found.models:
            np.testing.assert_allclose(other.quality[name].values[order], found.quality[name].values, rtol=1e-5)
        mine, its = found.differences["own"].adjusted, other.differences["own"].adjusted
        np.testing.assert_allclose(its[order], mine, rtol=1e-4)

    mixed = rng.permutation(90)
    renamed = np.array(["z", "m", "k"])[np.searchsorted(NAMES, task)]
    same(ts.compare(LASSO, X[mixed], y[mixed], task=renamed[mixed], cv=3), [2, 1, 0])
    listed = [X[task == t] for t in NAMES], [y[task == t] for t in NAMES]
    same(ts.compare(LASSO, *listed, cv=3, n_jobs=2))
    # a row without a label is absent
    more = scipy.sparse.csr_array(np.vstack([X, X[:1]])), np.append(y, np.nan)
    same(ts.compare(LASSO, *more, task=np.append(task, "a"), cv=3))
    other = ts.compare(LASSO, X, y, task=task, cv=3, random_state=1)
    assert not np.allclose(other.quality["shared"].values, found.quality["shared"].values)


def test_frames_of_pandas(rows, found):
    pandas = pytest.importorskip("pandas")
    X, y, task = rows
    given = pandas.DataFrame(X, columns=list("abcdefgh")), pandas.Series(y)
    frame = ts.compare(LASSO, *given, task=pandas.Series(task), cv=3).to_frame()
    assert frame["task"].tolist() == ["a", "b", "c", "all tasks"]
    np.testing.assert_allclose(frame["loss_shared"], found.to_frame()["loss_shared"])
    np.testing.assert_allclose(frame["difference"], frame["loss_shared"] - frame["loss_own"])
    assert (frame["low"] < frame["difference"]).all()
    assert frame["rows"].tolist() == [30, 30, 30, 90]
    long = found.to_frame("models")
    assert len(long) == 4 * 4 * 2
    assert long["model"].unique().tolist() == ["shared", "own", "pooled", "mean"]
    with pytest.raises(ValueError, match="'tasks' or 'models'"):
        found.to_frame("rows")


def test_a_shared_matrix_is_held_out_by_rows(rng):
    X = rng.standard_normal((60, 6))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((60, 3))
    Y[5, 1] = np.nan
    found = ts.compare(ts.MultiTaskElasticNetCV(n_alphas=5, cv=3), X, Y, cv=3)
    assert found.quality["own"].n_all_units == 60
    assert found.quality["own"].n_rows.tolist() == [60, 59, 60]
    family = np.arange(60) // 4
    grouped = ts.compare(ts.MultiTaskElasticNetCV(n_alphas=5, cv=3), X, Y, groups=family, cv=3)
    assert grouped.quality["own"].n_all_units == 15
    assert "whole groups" in grouped.folds


def test_folds_know_no_names_and_no_order(rng):
    X = np.round(rng.standard_normal((40, 3)))  # many rows are alike in some columns
    Y = np.round(rng.standard_normal((40, 2)))
    Y[3, 0] = np.nan
    family = rng.integers(0, 12, 40)
    mixed = rng.permutation(40)

    def folds(X, Y, groups):
        nest = NestedFolds(read_tasks(X, Y), groups, 5)
        outer = nest.assign(np.ones(80, dtype=bool), 4, 0).reshape(2, 40)
        inner = nest.assign(outer.ravel() != 1, 3, 1, 1).reshape(2, 40)
        return outer.max(axis=0), inner.max(axis=0)

    for groups, other in ((None, None), (family, np.array(list("lkjihgfedcba"))[family][mixed])):
        for one, two in zip(folds(X, Y, groups), folds(X[mixed], Y[mixed], other), strict=True):
            np.testing.assert_array_equal(one[mixed], two)


def test_groups_are_never_cut(rows):
    X, y, task = rows
    family = np.arange(90) // 6
    outer, inner = folds_of(X, y, task, groups=family)
    for fold in (outer, *inner):
        assert all(len(np.unique(fold[family == g])) == 1 for g in range(15))
    assert all(np.all(part[outer == f] == -1) for f, part in enumerate(inner))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("model", "classes", "loss"),
    [
        (ts.MultiTaskLogisticRegressionCV(n_alphas=3, eps=0.2, cv=2, tol=1e-3), 2, "log loss"),
        (ts.MultiTaskClassifierCV(n_alphas=3, eps=0.3, cv=2, tol=1e-3), 3, "log loss"),
        (ts.MultiTaskClassifierCV("squared_hinge", n_alphas=3, eps=0.2, cv=2, tol=1e-3), 2, "squared hinge loss"),
        (ts.GraphSVCCV(np.ones((3, 3)) - np.eye(3), Cs=2, cv=3), 2, "hinge loss"),
        (ts.GraphSVCCV(loss="logistic", Cs=[0.01, 0.1, 1.0], cv=3), 3, "log loss"),
        (ts.GraphSVCCV(Cs=2, cv=3), 3, "share of rows missed"),
    ],
)
def test_classes(rows, model, classes, loss):
    X, y, task = rows
    y = y - np.where(task == "c", 3.0, 0.0)
    label = np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))]
    found = ts.compare(model, X, label, task=task, cv=3)
    assert found.loss == loss
    assert found.score == "Accuracy"
    shared, mean = found.quality["shared"], found.quality["mean"]
    assert shared.overall[0] > mean.overall[0] + 0.05
    assert shared.overall[-1] < mean.overall[-1]
    assert "class frequencies" in found.summary()
    if loss == "log loss":
        assert mean.overall[-1] == pytest.approx(np.log(classes), abs=0.1)


def test_pairs_of_classes_are_not_pooled(rows):
    X, y, task = rows
    label = np.char.add(np.where(y > np.where(task == "c", 3.0, 0.0), "high", "low"), task)
    found = ts.compare(ts.MultiTaskLogisticRegressionCV(n_alphas=3, eps=0.2, cv=2, tol=1e-3), X, label, task=task, cv=3)
    assert found.models == ("shared", "own", "mean")
    assert found.quality["own"].overall[0] > 0.6


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskPoissonCV(n_alphas=2, eps=0.1, cv=2, tol=1e-3),
        ts.MultiTaskQuantileCV(n_alphas=2, eps=0.3, cv=2, tol=1e-2),
        ts.CalibratedMultiTaskLassoCV(n_alphas=2, eps=0.2, cv=2, tol=1e-3),
        ts.MultiTaskGroupLassoCV(feature_groups=np.arange(8) // 2, n_alphas=3, cv=3),
        ts.MultiTaskOWLCV(n_alphas=3, cv=3),
        ts.MultiTaskRegressorCV("huber", "linf", n_alphas=2, eps=0.2, task_graph="chain", cv=2, tol=1e-3),
        ts.GraphSVRCV(np.ones((3, 3)) - np.eye(3), Cs=3, cv=3, loss="squared"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models(rows, rng, model):
    X, y, task = rows
    if isinstance(model, ts.MultiTaskPoissonCV):
        y = rng.poisson(np.exp(1.0 + X[:, 0])).astype(float)
    found = ts.compare(model, X, y, task=task, cv=3)
    assert found.score == ("D²" if isinstance(model, (ts.MultiTaskPoissonCV, ts.MultiTaskQuantileCV)) else "R²")
    assert found.quality["mean"].overall[0] < 0.05
    assert found.quality["shared"].overall[-1] < found.quality["mean"].overall[-1]


def test_strings(rng):
    text = ["".join(letters) for letters in rng.choice(list("ACGT"), (90, 8))]
    label = np.array([word[2] == "A" or word[5] == "C" for word in text])
    model = ts.GraphSVCCV(hasher=ts.WeightedDegreeHasher(degree=2, n_features=2**8), Cs=2, cv=2)
    found = ts.compare(model, text, label, task=np.arange(90) % 3, cv=3)
    assert found.quality["pooled"].overall[0] > 0.8


def test_siblings():
    found = cv_sibling(ts.MultiTaskElasticNet(alpha=3.0, l1_ratio=0.3, tol=1e-3, task_weights={"a": 2.0}), "compare")
    assert type(found) is ts.MultiTaskElasticNetCV
    assert (found.l1_ratio, found.tol) == (0.3, 1e-3)
    assert for_one_task(found).task_weights is None
    machine = cv_sibling(ts.GraphSVR(np.eye(2), C=3.0, graph_strength=2.0), "compare")
    assert type(machine) is ts.GraphSVRCV
    assert for_one_task(machine).graph is None
    for name in ts.__all__:
        if name.endswith("CV"):
            assert type(cv_sibling(getattr(ts, name[:-2])(), "compare")) is getattr(ts, name)


def test_words_and_pictures(rows, found):
    X, y, task = rows
    assert not found.interrupted
    assert repr(found).startswith("Comparison(3 tasks, mean squared error: shared ")
    said = found.summary()
    assert "3 folds of rows within tasks, 3 inside each, seed 0" in said
    assert f"{found.quality['shared'].overall[1]:.4g} with the shared model" in said
    assert "models that learn from 2/3 of the rows" in said
    alike = ts.compare(LASSO, X, y - np.where(task == "c", 3.0, 0.0), task=task, cv=3)
    assert ("One model for all rows does better still" in alike.summary()) == (
        alike.differences["pooled"].overall_pvalue <= 0.1
    )
    assert alike.quality["pooled"].overall[1] < alike.quality["shared"].overall[1]
    noise = np.random.default_rng(2).standard_normal(90)
    nothing = ts.compare(LASSO, X, noise, task=task, cv=3).summary()
    assert nothing.startswith("Whether sharing helps cannot be decided")
    assert "features explain nothing here" in nothing
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = found.plot()
    assert axes.get_xlabel() == "R² on unseen rows"
    assert sorted(label.get_text() for label in axes.get_yticklabels()) == ["a", "b", "c"]
    assert len(found.plot(most=2).get_yticklabels()) == 2
    matplotlib.pyplot.close("all")


def test_tests_of_nothing():
    p = t_test(np.array([0.0, 1.0, np.nan, 1.0]), np.array([0.0, 0.0, 1.0, np.nan]), np.full(4, 9.0))
    np.testing.assert_array_equal(p, [1.0, 0.0, np.nan, np.nan])
    np.testing.assert_allclose(t_test(np.ones(1), np.full(1, 0.5), np.full(1, 9.0)), 2 * student.sf(2.0, 9))


def test_class_weights_of_classes_that_are_there(rows):
    X, y, task = rows
    label = np.where(y > np.median(y), "high", "low")
    label[task == "a"] = np.where(y > 0, "right", "left")[task == "a"]
    weights = {"high": 2.0, "left": 1.5}
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=2, eps=0.3, cv=2, tol=1e-3, class_weight=weights)
    assert ts.compare(model, X, label, task=task, cv=3).models == ("shared", "own", "mean")


def test_holm():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, np.nan, 0.03, 0.5])), [0.04, 0.09, np.nan, 0.09, 0.5])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_and_interruption(rows, n_jobs):
    X, y, task = rows
    heard = []

    def stop(progress):
        heard.append(progress)
        if progress.done == 9:
            raise KeyboardInterrupt

    with ts.watch(stop):
        found = ts.compare(LASSO, X, y, task=task, cv=3, n_jobs=n_jobs)
    assert {(progress.label, progress.total) for progress in heard} == {("compare", 12)}
    assert {progress.done for progress in heard} - {0} == set(range(1, 10))
    assert all(progress.left is not None and progress.left > 0.0 for progress in heard)  # since a piece was done
    assert any(progress.detail == "fold 1 of 3, own, task 2 of 3" for progress in heard)
    assert found.interrupted
    assert (found.n_finished, found.n_folds) == (2, 3)
    assert found.quality["own"].n_rows.tolist() == [20, 20, 20]
    assert "Interrupted: only the rows of 2 of 3 folds count." in found.summary()

    def at_once(progress):
        raise KeyboardInterrupt

    with ts.watch(at_once), pytest.raises(KeyboardInterrupt):
        ts.compare(LASSO, X, y, task=task, cv=3, n_jobs=n_jobs)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_finished_fits_are_kept(rows, found, tmp_path, n_jobs):
    """What was judged before an interruption is not fitted again, and the answer is that of one go."""
    X, y, task = rows
    heard = []

    def stop(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    with ts.watch(stop), ts.checkpoint(tmp_path), pytest.raises(KeyboardInterrupt):
        ts.compare(LASSO, X, y, task=task, cv=3, n_jobs=n_jobs)
    kept = {file.name for file in tmp_path.iterdir()}
    assert all(name.startswith("compare-") for name in kept)  # whole fits, none of their folds
    assert len(kept) >= 5
    with ts.watch(heard.append), ts.checkpoint(tmp_path):
        again = ts.compare(LASSO, X, y, task=task, cv=3, n_jobs=n_jobs)
    assert len(list(tmp_path.iterdir())) == 12
    own = {f for f in range(3) if any(name.startswith(f"compare-{f + 1}-own-") for name in kept)}
    assert 0 in own
    fitted = {progress.detail.split(", ")[0] for progress in heard if ", own, task" in progress.detail}
    assert fitted == {f"fold {f + 1} of 3" for f in set(range(3)) - own}
    assert heard[-1].left == 0.0
    np.testing.assert_allclose(again.to_frame().drop(columns="task"), found.to_frame().drop(columns="task"), rtol=1e-9)
    with ts.checkpoint(tmp_path):  # other data are other fits
        ts.compare(LASSO, X, 2.0 * y, task=task, cv=3, n_jobs=n_jobs)
    assert len(list(tmp_path.iterdir())) == 24


def test_more_folds_than_rows_of_a_task():
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((60, 5)), np.repeat(NAMES, 20)
    y = X[:, 0] + rng.standard_normal(60)
    with pytest.raises(ValueError, match=r"'a' has 20 rows .*and so have 2 more: .*: too few for 41 outer folds"):
        ts.compare(LASSO, X, y, task=task, cv=41)
    groups = np.tile(np.repeat(np.arange(4), 5), 3)
    with pytest.raises(ValueError, match="'a' has 4 groups"):
        ts.compare(LASSO, X, y, task=task, groups=groups, cv=5)


def test_refusals(rows):
    X, y, task = rows
    with pytest.raises(ValueError, match="has no sibling that chooses its strength"):
        ts.compare(ts.OnlineMultiTaskRegressor(), X, y, task=task)
    with pytest.raises(ValueError, match="an instance of it: MultiTaskLasso"):
        ts.compare(ts.MultiTaskLasso, X, y, task=task)
    with pytest.raises(ValueError, match="makes the folds inside its own folds itself"):
        ts.compare(ts.MultiTaskLassoCV(cv=ts.TaskKFold(3, shuffle=False)), X, y, task=task)
    with pytest.raises(ValueError, match="'cv' parameter must be an integer >= 3"):
        ts.compare(LASSO, X, y, task=task, cv=2)
    with pytest.raises(ValueError, match="'level' parameter"):
        ts.compare(LASSO, X, y, task=task, level=90)
    with pytest.raises(ValueError, match="several tasks, and there is one"):
        ts.compare(LASSO, X, y)
    few = np.where(np.arange(90) < 4, "d", task)
    few[:2] = "e"
    with pytest.raises(ValueError, match=r"Task 'd' has 2 rows that count \(and so have 1 more: 'e'\): too few for 5"):
        ts.compare(LASSO, X, y, task=few)
    label = np.where(task == "b", "yes", np.where(y > 0, "yes", "no"))
    with pytest.raises(ValueError, match="Task 'b' has rows of one class only"):
        ts.compare(ts.MultiTaskLogisticRegressionCV(n_alphas=3), X, label, task=task)
    with pytest.raises(ValueError, match="Task 'a' has 1 groups that count"):
        ts.compare(LASSO, X, y, task=task, groups=np.where(task == "a", 90, np.arange(90)))
