"""Cross-validation of the machines over C and the strength of the graph."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.model_selection import LeaveOneGroupOut, PredefinedSplit, ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

import tasksieve as ts
from tasksieve.graph import complete_graph

CLASSES = ("hinge", "squared_hinge", "logistic")
NUMBERS = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")
CS, STRENGTHS = [0.01, 0.1, 1.0], [0.1, 2.0]


def draw(rng, n_tasks=3, n=120, d=4, numbers=False):
    X, task = rng.standard_normal((n, d)), rng.integers(n_tasks, size=n)
    W = rng.standard_normal(d) + 0.5 * rng.standard_normal((n_tasks, d))
    z = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.standard_normal(n)
    return X, z if numbers else np.where(z > 0, 1, -1), task


def own_loss(loss, y, z, epsilon=0.1):
    r = np.abs(z - y)
    return {
        "hinge": np.maximum(0, 1 - y * z),
        "squared_hinge": np.maximum(0, 1 - y * z) ** 2,
        "logistic": np.logaddexp(0, -y * z),
        "epsilon_insensitive": np.maximum(0, r - epsilon),
        "squared_epsilon_insensitive": np.maximum(0, r - epsilon) ** 2,
        "squared": r**2,
    }[loss]


def by_hand(model, folds, X, y, task, weights, score):
    """strengths x Cs x folds of a score, from fits of their own to copies of the training rows."""
    found = np.empty((len(model.graph_strengths), len(model.Cs), len(folds)))
    for s, strength in enumerate(model.graph_strengths):
        for k, C in enumerate(model.Cs):
            for f, (train, test) in enumerate(folds):
                one = model._model(C=C, graph_strength=strength, tol=model.fold_tol)
                one.fit(X[train], y[train], task=task[train], sample_weight=weights[train])
                found[s, k, f] = np.mean(
                    [score(one, test[task[test] == t], t) for t in np.unique(task[test])]
                )
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_folds_are_those_of_a_loop_by_hand(loss, rng):
    X, y, task = draw(rng, numbers=loss in NUMBERS)
    weights = rng.uniform(0.5, 2.0, size=len(y))
    folds = list(ts.TaskKFold(3, shuffle=True, random_state=0).split(X, groups=task))
    Model = ts.GraphSVRCV if loss in NUMBERS else ts.GraphSVCCV
    options = {"graph_strengths": STRENGTHS, "Cs": CS, "cv": folds, "fold_tol": 1e-9, "loss": loss}
    model = Model(complete_graph(3), max_iter=100_000, **options)
    model.fit(X, y, task=task, sample_weight=weights)

    def score(one, rows, t):
        ask = one.predict if loss in NUMBERS else one.decision_function
        z = ask(X[rows], task=np.full(len(rows), t))
        return np.average(own_loss(loss, y[rows], z), weights=weights[rows])

    expected = by_hand(model, folds, X, y, task, weights, score)
    assert model.cv_scores_.shape == (2, 3, 3)
    np.testing.assert_allclose(model.cv_scores_, expected, rtol=1e-3, atol=1e-4)
    s, k = np.unravel_index(np.argmin(model.cv_scores_.mean(axis=2)), (2, 3))
    assert (model.graph_strength_, model.C_) == (STRENGTHS[s], CS[k])
    # refitted on all rows, certified
    plain = model._model(C=model.C_, graph_strength=model.graph_strength_)
    plain.fit(X, y, task=task, sample_weight=weights)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.dual_gap_ == plain.dual_gap_ <= 1e-6 * plain.null_objective_
    # out of fold, in the order of y
    for train, test in folds:
        one = model._model(C=model.C_, graph_strength=model.graph_strength_, tol=1e-9)
        one.fit(X[train], y[train], task=task[train], sample_weight=weights[train])
        ask = {"logistic": "predict_proba"}.get(loss, "predict" if loss in NUMBERS else "decision_function")
        np.testing.assert_allclose(
            model.cv_predictions_[test], getattr(one, ask)(X[test], task=task[test]), rtol=1e-3, atol=1e-3
        )


def test_scorers(rng):
    X, y, task = draw(rng)
    folds = list(ts.TaskKFold(3, shuffle=True, random_state=0).split(X, groups=task))
    model = ts.GraphSVCCV(
        complete_graph(3), graph_strengths=STRENGTHS, Cs=CS, cv=folds, fold_tol=1e-9, scoring="accuracy"
    )

    def score(one, rows, t):
        return accuracy_score(y[rows], one.predict(X[rows], task=np.full(len(rows), t)))

    expected = by_hand(model, folds, X, y, task, np.ones(len(y)), score)
    named = clone(model).fit(X, y, task=task)
    np.testing.assert_allclose(named.cv_scores_, expected)
    best = np.unravel_index(np.argmax(expected.mean(axis=2)), (2, 3))
    assert (named.graph_strength_, named.C_) == (STRENGTHS[best[0]], CS[best[1]])
    assert named.cv_measure == "held-out accuracy (greater is better)"
    for scoring in (ts.task_scorer(accuracy_score), lambda one, X, y: np.mean(one.predict(X) == y)):
        other = clone(model).set_params(scoring=scoring).fit(X, y, task=task)
        np.testing.assert_allclose(other.cv_scores_, expected)
    ranked = clone(model).set_params(scoring="roc_auc", cv=3).fit(X, y, task=task)
    assert np.all((ranked.cv_scores_ > 0.5) & (ranked.cv_scores_ <= 1))
    X, y, task = draw(rng, numbers=True)
    numbers = ts.GraphSVRCV(complete_graph(3), Cs=CS, cv=3, scoring="neg_mean_absolute_error").fit(X, y, task=task)
    absolute = [
        np.mean([mean_absolute_error(y[task == t], numbers.cv_predictions_[task == t]) for t in range(3)])
    ]
    assert -numbers.cv_scores_.mean(axis=2).max() == pytest.approx(absolute[0], rel=0.1)
    with pytest.raises(ValueError, match="'scoring'"):
        ts.GraphSVCCV(scoring=3).fit(X, y > 0, task=task)


def test_default_folds(rng):
    X, y, task = draw(rng)
    model = ts.GraphSVCCV(complete_graph(3), Cs=3, tol=1e-4).fit(X, y, task=task)
    assert model.cv_scores_.shape == (3, 3, 5)
    assert model.cv_folds_ == "5 folds, shuffled within tasks, stratified by class, seed 0"
    assert model.graph_strengths_.tolist() == [0.1, 1.0, 10.0]
    assert model.cv_measure == "held-out hinge loss"
    linear = ts.MultiTaskLogisticRegressionCV(n_alphas=2, cv=5).fit(X, y, task=task)
    assert model.cv_folds_ == linear.cv_folds_
    other = clone(model).set_params(random_state=1).fit(X, y, task=task)
    assert other.cv_folds_.endswith("seed 1")
    assert not np.array_equal(other.cv_scores_, model.cv_scores_)
    again = clone(model).set_params(n_jobs=2).fit(X, y, task=task)
    np.testing.assert_allclose(again.cv_scores_, model.cv_scores_, rtol=1e-12)
    alone = ts.GraphSVCCV(Cs=2, cv=2).fit(X, y, task=task)
    assert alone.graph_strength_ == 0.0
    assert alone.cv_scores_.shape == (1, 2, 2)


def test_groups_are_held_out_together(rng):
    X, y, task = draw(rng)
    family = rng.integers(30, size=len(y))
    model = ts.GraphSVCCV(complete_graph(3), Cs=2, cv=3, tol=1e-4).fit(X, y, task=task, groups=family)
    assert f"{len(np.unique(family))} whole groups" in model.cv_folds_
    assert not np.isnan(model.cv_predictions_).any()


def test_whole_tasks_may_be_held_out_on_a_graph(rng):
    X, y, task = draw(rng)
    model = ts.GraphSVCCV(complete_graph(3), Cs=CS, graph_strengths=[0.0, 5.0], cv=LeaveOneGroupOut())
    model.fit(X, y, task=task)
    # without the graph nothing is known of a task that is held out: the loss at W = 0 is 1
    np.testing.assert_allclose(model.cv_scores_[0], 1.0)
    assert model.graph_strength_ == 5.0
    assert model.cv_scores_[1].min() < 0.8
    with pytest.raises(ValueError, match="leaves task 0 without"):
        ts.GraphSVCCV(Cs=CS, cv=LeaveOneGroupOut()).fit(X, y, task=task)


def test_one_standard_error(rng):
    X, y, task = draw(rng)
    options = {"Cs": 8, "graph_strengths": [1.0], "tol": 1e-4}
    least = ts.GraphSVCCV(complete_graph(3), **options).fit(X, y, task=task)
    rule = ts.GraphSVCCV(complete_graph(3), selection_rule="1se", **options).fit(X, y, task=task)
    np.testing.assert_array_equal(rule.cv_scores_, least.cv_scores_)
    means = rule.cv_scores_[0].mean(axis=1)
    k = int(np.argmin(means))
    bound = means[k] + rule.cv_scores_[0, k].std(ddof=1) / np.sqrt(5)
    assert rule.C_ == rule.Cs_[np.flatnonzero(means <= bound)[0]] < least.C_


def test_several_classes(rng):
    X, _, task = draw(rng, n=150)
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = ts.GraphSVCCV(complete_graph(3), loss="logistic", Cs=3, cv=3, tol=1e-4).fit(X, y, task=task)
    assert model.coef_.shape == (3, 3, 4)
    assert model.cv_predictions_.shape == (150, 3)
    np.testing.assert_allclose(model.cv_predictions_.sum(axis=1), 1.0)
    assert np.mean(model.classes_[np.argmax(model.cv_predictions_, axis=1)] == y) > 0.7
    # stratified: every fold has its share of every class of every task
    assert "stratified" in model.cv_folds_
    scored = clone(model).set_params(scoring="accuracy", loss="hinge").fit(X, y, task=task)
    assert scored.cv_scores_.max() > 0.8


def test_pairs_of_classes(rng):
    X, y, task = draw(rng, n_tasks=2)
    names = np.where(task == 0, np.where(y > 0, 1, 0), np.where(y > 0, 9, 7))
    model = ts.GraphSVCCV(complete_graph(2), Cs=CS, cv=3, scoring="accuracy").fit(X, names, task=task)
    plain = ts.GraphSVCCV(complete_graph(2), Cs=CS, cv=3, scoring="accuracy").fit(X, y, task=task)
    np.testing.assert_allclose(model.cv_scores_, plain.cv_scores_)
    assert [pair.tolist() for pair in model.classes_] == [[0, 1], [7, 9]]


def test_class_weights_are_those_of_the_training_rows(rng):
    X, y, task = draw(rng)
    keep = (y > 0) | (rng.random(len(y)) < 0.4)
    X, y, task = X[keep], y[keep], task[keep]
    folds = list(ts.TaskKFold(2, shuffle=False).split(X, groups=task))
    options = {"Cs": CS, "graph_strengths": STRENGTHS, "fold_tol": 1e-9, "class_weight": "balanced"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.OrderWarning)
        model = ts.GraphSVCCV(complete_graph(3), cv=folds, **options).fit(X, y, task=task)

    def score(one, rows, t):
        train = next(train for train, test in folds if rows[0] in test)
        weights = np.where(y[rows] > 0, 1 / np.mean(y[train] > 0), 1 / np.mean(y[train] < 0))
        losses = own_loss("hinge", y[rows], one.decision_function(X[rows], task=np.full(len(rows), t)))
        return np.average(losses, weights=weights)

    expected = by_hand(model, folds, X, y, task, np.ones(len(y)), score)
    np.testing.assert_allclose(model.cv_scores_, expected, rtol=1e-3)


def test_forms(rng):
    X, y, task = draw(rng, numbers=True)
    options = {"Cs": CS, "cv": 3, "loss": "squared", "fold_tol": 1e-10}
    names = np.array(["z", "m", "a"])  # not in the order of the labels
    stacked = ts.GraphSVRCV(complete_graph(3), graph_tasks=names, **options)
    stacked.fit(scipy.sparse.csr_matrix(X), y, task=names[task])
    order = [2, 1, 0]
    parts = [X[task == t] for t in order], [y[task == t] for t in order]
    listed = ts.GraphSVRCV(complete_graph(3), **options).fit(*parts)
    np.testing.assert_allclose(listed.cv_scores_, stacked.cv_scores_, rtol=1e-3)
    assert [len(part) for part in listed.cv_predictions_] == [len(part) for part in parts[1]]
    for t, part in zip(order, listed.cv_predictions_, strict=True):
        np.testing.assert_allclose(part, stacked.cv_predictions_[task == t], atol=1e-3)
    wide = np.full((len(y), 3), np.nan)
    wide[np.arange(len(y)), task] = y
    shared = ts.GraphSVRCV(complete_graph(3), **options).fit(X, wide)
    assert shared.cv_predictions_.shape == wide.shape
    np.testing.assert_array_equal(np.isnan(shared.cv_predictions_), np.isnan(wide))
    signs = ts.GraphSVCCV(complete_graph(3), Cs=CS, cv=3, loss="logistic").fit(parts[0], [z > 0 for z in parts[1]])
    assert signs.cv_predictions_[0].shape == (len(parts[1][0]), 2)


def test_rows_never_or_twice_held_out(rng):
    X, y, task = draw(rng, numbers=True)
    some = np.where(np.arange(len(y)) < 20, -1, np.arange(len(y)) % 3)
    model = ts.GraphSVRCV(complete_graph(3), Cs=CS, cv=PredefinedSplit(some), loss="squared").fit(X, y, task=task)
    np.testing.assert_array_equal(np.isnan(model.cv_predictions_), some < 0)
    often = ts.GraphSVRCV(complete_graph(3), Cs=CS, cv=ShuffleSplit(6, test_size=0.3, random_state=0), loss="squared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.OrderWarning)
        often.fit(X, y, task=task)
    splits = list(ShuffleSplit(6, test_size=0.3, random_state=0).split(X))
    row = next(i for i in range(len(y)) if sum(i in test for _, test in splits) == 2)
    each = [
        often._model(C=often.C_, graph_strength=often.graph_strength_).fit(X[a], y[a], task=task[a]).predict(
            X[[row]], task=task[[row]]
        )[0]
        for a, b in splits
        if row in b
    ]
    assert often.cv_predictions_[row] == pytest.approx(np.mean(each), abs=0.02)


def test_strings(rng):
    strings = rng.choice(list("ACGT"), size=(90, 12))
    strings[::2, 4] = "G"
    words = np.array(["".join(row) for row in strings])
    site, where = np.arange(90) % 2 == 0, rng.integers(3, size=90)
    hasher = ts.WeightedDegreeHasher(degree=3, n_features=2**10)
    options = {"Cs": 3, "graph_strengths": [1.0], "cv": 3, "tol": 1e-4}
    hashed = ts.GraphSVCCV(complete_graph(3), hasher=hasher, **options).fit(words, site, task=where)
    stored = ts.GraphSVCCV(complete_graph(3), **options).fit(hasher.fit(words).transform(words), site, task=where)
    np.testing.assert_allclose(hashed.Cs_, stored.Cs_, rtol=0.05)
    np.testing.assert_allclose(hashed.cv_scores_, stored.cv_scores_, rtol=0.1)
    assert hashed.predict(words, task=where).shape == site.shape
    scored = clone(hashed).set_params(scoring="accuracy").fit(words, site, task=where)
    assert scored.cv_scores_.max() > 0.7


def test_progress_and_interruption(rng):
    X, y, task = draw(rng)
    heard = []
    model = ts.GraphSVCCV(complete_graph(3), Cs=CS, graph_strengths=STRENGTHS, cv=2, tol=1e-3)
    with ts.watch(heard.append):
        model.fit(X, y, task=task)
    folds = [one for one in heard if "fold" in one.label]
    assert {one.label for one in folds} == {"GraphSVCCV, fold 1", "GraphSVCCV, fold 2"}
    assert [one.done for one in folds if one.label.endswith("1")] == [1, 2, 3, 4, 5, 6]
    assert {one.total for one in folds} == {6}
    assert heard[-1].label == "GraphSVCCV, all rows"
    before = model.coef_.copy()

    def stop(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    with ts.watch(stop), pytest.raises(KeyboardInterrupt):
        model.set_params(Cs=[5.0, 6.0]).fit(X, y, task=task)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.C_ in CS


def test_unfinished_folds_are_counted(rng):
    X, y, task = draw(rng)
    model = ts.GraphSVCCV(complete_graph(3), Cs=[1.0, 100.0], graph_strengths=[1.0], cv=2, max_iter=1, solver="dual")
    with pytest.warns(ConvergenceWarning) as told:
        model.fit(X, y, task=task)
    assert any("of 4 solutions in the folds did not reach fold_tol=0.0001" in str(one.message) for one in told)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Cs": [-1.0]}, "'Cs'"),
        ({"Cs": 0}, "'Cs'"),
        ({"graph_strengths": []}, "'graph_strengths'"),
        ({"graph": None, "graph_strengths": [1.0]}, "graph is None"),
        ({"selection_rule": "best"}, "'selection_rule'"),
        ({"fold_tol": -1.0}, "'fold_tol'"),
        ({"cv": 1}, "'cv'"),
        ({"loss": "squared"}, "'loss'"),
        ({"random_state": -1}, "'random_state'"),
    ],
)
def test_bad_parameters(changed, message, rng):
    X, y, task = draw(rng)
    with pytest.raises(ValueError, match=message):
        ts.GraphSVCCV(complete_graph(3)).set_params(**changed).fit(X, y, task=task)


def test_copies(rng):
    X, y, task = draw(rng)
    model = ts.GraphSVCCV(complete_graph(3), Cs=2, cv=2, tol=1e-3).fit(X, y, task=task)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X, task=task), model.predict(X, task=task))
    assert not hasattr(clone(model), "C_")
    assert not hasattr(model, "path")
    assert not hasattr(model, "predict_proba")


EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is in one fold, a row twice may be in two",
    "check_sample_weight_equivalence_on_sparse_data": "a row of weight 2 is in one fold, a row twice may be in two",
}


@pytest.mark.slow
@parametrize_with_checks(
    [ts.GraphSVCCV(Cs=3, cv=2, tol=1e-4), ts.GraphSVRCV(Cs=3, cv=2, tol=1e-4, loss="squared")],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
