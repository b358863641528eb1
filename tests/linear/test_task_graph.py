"""`task_graph` of the estimators: the forms it comes in, its limits, its refusals, cross-validation."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from scipy import sparse

import tasksieve as ts

NAMES = np.array(["a", "b", "c", "d"])


@pytest.fixture
def data(rng):
    n, d = 30, 9
    task = np.repeat(NAMES, n)
    x = rng.standard_normal((len(task), d))
    w = np.zeros((4, d))
    w[:, :3] = rng.standard_normal((1, 3)) + 0.4 * rng.standard_normal((4, 3))
    codes = np.searchsorted(NAMES, task)
    return x, np.einsum("ij,ij->i", x, w[codes]) + codes + 0.3 * rng.standard_normal(len(x)), task


CHAIN = np.eye(4, k=1) + np.eye(4, k=-1)


def fitted(data, **options):
    x, y, task = data
    return ts.MultiTaskRegressor(**{"alpha": 0.1, "tol": 1e-10, **options}).fit(x, y, task=task)


def test_all_forms_of_a_graph_are_one(data, rng):
    named = networkx.Graph()
    named.add_nodes_from(["d", "b", "a", "c"])  # in an order of its own
    named.add_edges_from([("a", "b"), ("c", "b"), ("c", "d")])
    one = fitted(data, task_graph="chain", graph_strength=0.7)
    for graph in (CHAIN, sparse.csr_array(CHAIN), named):
        assert np.array_equal(fitted(data, task_graph=graph, graph_strength=0.7).coef_, one.coef_)
    order = rng.permutation(len(data[0]))
    shuffled = fitted([part[order] for part in data], task_graph="chain", graph_strength=0.7)
    np.testing.assert_allclose(shuffled.coef_, one.coef_, atol=1e-6)
    listed = ts.MultiTaskRegressor(alpha=0.1, tol=1e-10, task_graph=CHAIN, graph_strength=0.7).fit(
        [data[0][data[2] == name] for name in NAMES], [data[1][data[2] == name] for name in NAMES]
    )
    np.testing.assert_allclose(listed.coef_, one.coef_, atol=1e-7)


def test_the_objective_is_as_written(data):
    x, y, task = data
    model = fitted(data, task_graph=2.0 * CHAIN, graph_strength=0.3, ridge=0.2)
    codes = np.searchsorted(NAMES, task)
    residual = y - np.einsum("ij,ij->i", x, model.coef_[codes]) - model.intercept_[codes]
    value = 0.5 * residual @ residual / 30 + 0.1 * np.linalg.norm(model.coef_, axis=0).sum()
    value += 0.1 * np.sum(model.coef_**2) + 0.5 * 0.3 * 2.0 * np.sum(np.diff(model.coef_, axis=0) ** 2)
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    assert model.dual_gap_ <= 1e-10 * model.null_objective_


def test_no_strength_and_no_edges_are_no_graph(data):
    plain = fitted(data).coef_
    assert np.array_equal(fitted(data, task_graph="chain", graph_strength=0.0).coef_, plain)
    np.testing.assert_allclose(fitted(data, task_graph=0.0 * CHAIN).coef_, plain, atol=1e-7)


@pytest.mark.parametrize(("penalty", "factor"), [("l21", 2.0), ("l11", 4.0), ("sparse_group", None)])
def test_a_very_strong_graph_is_the_pooled_model(data, penalty, factor):
    """Tasks tied together, each with its own intercept: alpha sqrt(T) for L2,1, alpha T for L1,1 (n-bar: rows / T)."""
    x, y, task = data
    model = fitted(data, penalty=penalty, task_graph="chain", graph_strength=1e8, tol=1e-6)
    assert model.dual_gap_ <= 1e-6 * model.null_objective_
    assert np.ptp(model.coef_, axis=0).max() <= 1e-6
    factor = factor if factor is not None else 2.0 * 1.0 + 4.0 * 0.01
    centred, of = np.array(x), np.array(y)
    for name in NAMES:
        centred[task == name] -= x[task == name].mean(axis=0)
        of[task == name] -= y[task == name].mean()
    # 1/(2 n-bar) sum ... + alpha factor |w|: of one task n-bar is four times as large
    pooled = ts.MultiTaskLasso(alpha=0.1 * factor / 4, tol=1e-10, fit_intercept=False).fit(centred, of)
    np.testing.assert_allclose(model.coef_, np.tile(pooled.coef_, (4, 1)), atol=2e-4)


def test_classification_losses_take_it(data):
    x, y, task = data
    signs = np.sign(y - 1.5)
    for strength, spread in ((0.01, None), (1e5, 1e-3)):
        model = ts.MultiTaskRegressor(
            ts.losses.Logistic(), alpha=0.02, task_graph="chain", graph_strength=strength
        ).fit(x, signs, task=task)
        assert model.dual_gap_ <= 1e-6 * model.null_objective_
        if spread is not None:
            assert np.ptp(model.coef_, axis=0).max() <= spread


def test_standardised_and_scaled_data_have_the_same_graph(data):
    x, y, task = data
    options = {"task_graph": "chain", "graph_strength": 0.5}
    one = fitted((x, y, task), **options)
    # a power of two in the units of X and y, as extreme as it may be
    two = ts.MultiTaskRegressor(alpha=float(np.ldexp(0.1, -120 + 60)), tol=1e-10, task_graph="chain")
    two.set_params(graph_strength=float(np.ldexp(0.5, -240)))
    two.fit(np.ldexp(x, -120), np.ldexp(y, 60), task=task)
    np.testing.assert_allclose(np.ldexp(two.coef_, -180), one.coef_, rtol=1e-6, atol=1e-9)
    three = fitted((x * np.linspace(1.0, 3.0, 9), y, task), standardize=True, **options)
    four = fitted((x, y, task), standardize=True, **options)
    np.testing.assert_allclose(three.coef_ * np.linspace(1.0, 3.0, 9), four.coef_, atol=1e-6)
    assert three.dual_gap_ <= 1e-10 * three.null_objective_


def test_tall_data_and_paths_know_of_it(data, monkeypatch):
    """Neither the Gram way nor sums over rows take the place of the engine where there is a graph."""
    from tasksieve.path import policy

    x, y, task = data
    model = ts.MultiTaskRegressor(task_graph="chain", graph_strength=5.0, tol=1e-9)
    path = model.path(x, y, task=task, n_alphas=6, eps=0.05)
    monkeypatch.setattr(policy, "TALL_BYTES", 0)
    again = model.path(x, y, task=task, n_alphas=6, eps=0.05)
    assert np.array_equal(path.objectives, again.objectives)
    own = ts.MultiTaskRegressor(alpha=path.alphas[4], task_graph="chain", graph_strength=5.0, tol=1e-9)
    assert abs(own.fit(x, y, task=task).objective_ - path.objectives[4]) <= own.dual_gap_ + path.dual_gaps[4]
    assert path.converged.all()


def test_cross_validation_prefers_the_graph_where_it_is_right(rng):
    n, d, tasks = 12, 20, 6
    x, task = rng.standard_normal((n * tasks, d)), np.repeat(np.arange(tasks), n)
    slow = np.linspace(1.0, 2.0, tasks)  # a coefficient that changes slowly
    y = x[:, 0] * slow[task] + x[:, 1] + rng.standard_normal(len(x))
    scores = []
    for strength in (0.0, 1.0):
        model = ts.MultiTaskRegressorCV(n_alphas=8, eps=0.05, task_graph="chain", graph_strength=strength)
        model.fit(x, y, task=task)
        scores.append(model.cv_scores_.mean(axis=1).min())
        assert model.dual_gap_ <= 1e-6 * model.null_objective_
    assert scores[1] < scores[0]


@pytest.mark.parametrize(("strengths", "rule"), [((0.0, 0.5, 20.0), "min"), ((20.0, 0.0, 0.5), "1se")])
def test_several_strengths_are_the_best_of_separate_fits(rng, strengths, rule):
    """Chosen with alpha on the same folds, whichever comes first: sums over rows serve the strength 0 alone."""
    x, task = rng.standard_normal((72, 15)), np.repeat(np.arange(6), 12)
    y = x[:, 0] * np.linspace(-1.0, 2.0, 6)[task] + x[:, 1] + rng.standard_normal(72)
    options = {"n_alphas": 6, "eps": 0.1, "task_graph": "chain", "selection_rule": rule, "random_state": 3}
    model = ts.MultiTaskRegressorCV(**options, graph_strength=strengths).fit(x, y, task=task)
    alone = [ts.MultiTaskRegressorCV(**options, graph_strength=value).fit(x, y, task=task) for value in strengths]
    for m, own in enumerate(alone):
        np.testing.assert_allclose(model.alphas_[m], own.alphas_, rtol=1e-12)
        np.testing.assert_allclose(model.cv_scores_[m], own.cv_scores_, rtol=1e-3)  # to the tolerance of folds
        assert own.graph_strength_ == strengths[m]
        assert model.cv_compared_["alpha"][m] == own.alpha_
        assert model.cv_compared_["score"][m] == model.cv_scores_[m][own.alphas_ == own.alpha_].mean()
    best = int(np.argmin([own.cv_scores_.mean(axis=1).min() for own in alone]))
    assert strengths[best] == 0.5  # a graph that is right, but not for ever
    assert model.graph_strength_ == model.cv_compared_["graph_strength"][best] == 0.5
    assert model.alpha_ == alone[best].alpha_
    np.testing.assert_allclose(model.coef_, alone[best].coef_, atol=1e-4)
    assert model.cv_quality_.n_tried == 18
    assert model.certificate(x, y, task=task).verify(x, y, task=task).proved


def test_strengths_are_compared_by_every_model_with_a_graph(rng):
    x, task = rng.standard_normal((80, 6)), np.repeat(np.arange(4), 20)
    risk = x[:, 0] * np.array([1.0, 1.2, 1.4, 1.6])[task]
    labels = np.digitize(risk + rng.logistic(size=80), [-1.0, 1.0])
    y = {
        ts.MultiTaskClassifierCV: labels > 0,
        ts.MultiTaskOrdinalCV: labels,
        ts.MultiTaskCoxCV: ts.survival(np.exp(-risk), event=rng.random(80) < 0.7),
        ts.MultiTaskMixedCV: risk + rng.standard_normal(80),
    }
    for kind, own in y.items():
        options = {"n_alphas": 3, "eps": 0.3, "cv": 3, "task_graph": "chain"}
        model = kind(**options, graph_strength=np.array([0.01, 3.0]), early_stopping=True).fit(x, own, task=task)
        alone = [kind(**options, graph_strength=value).fit(x, own, task=task) for value in (0.01, 3.0)]
        means = [one.cv_scores_.mean(axis=1).min() for one in alone]
        np.testing.assert_allclose(model.cv_compared_["score"], means, rtol=1e-3)
        assert model.graph_strength_ == (0.01, 3.0)[int(np.argmin(means))]
        assert model.alpha_ == alone[int(np.argmin(means))].alpha_


def test_strengths_to_compare_need_a_graph(rng):
    x, y, task = rng.standard_normal((12, 2)), rng.standard_normal(12), np.repeat(list("ab"), 6)
    with pytest.raises(ValueError, match="graph_strength has several values, but there is no graph: give task_graph"):
        ts.MultiTaskRegressorCV(graph_strength=[0.1, 1.0]).fit(x, y, task=task)
    for wrong in ([], [0.1, -1.0], ["much"]):
        with pytest.raises(ValueError, match="graph_strength"):
            ts.MultiTaskRegressorCV(task_graph="chain", graph_strength=wrong).fit(x, y, task=task)
    several = ts.MultiTaskRegressorCV(task_graph="chain", graph_strength=[0.1, 1.0], n_alphas=3, cv=2)
    found = ts.compare(several, x, y, task=task, cv=3)  # a model of one task has no graph
    assert found.n_folds == 3


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (np.triu(CHAIN), "task_graph is not symmetric"),
        (-CHAIN, "task_graph has the negative weight -1 in row 1, column 2"),
        (CHAIN[:3], "task_graph must be square"),
        (CHAIN[:3, :3], "task_graph has 3 rows, but the data have 4 tasks"),
        (np.where(CHAIN, np.nan, 0.0), "NaN"),
        ("ring", "task_graph must be 'chain'"),
        (networkx.path_graph(4), "task 'a' is not on task_graph, whose tasks are 0, 1"),
        (networkx.path_graph(list("abcde")), "task_graph has the node 'e', which has no rows"),
        (networkx.path_graph(list("abcd"), networkx.DiGraph), "task_graph is directed"),
    ],
)
def test_what_is_no_graph_of_the_tasks_is_refused(data, graph, words):
    with pytest.raises(ValueError, match=words):
        fitted(data, task_graph=graph)


def test_strengths_are_checked(data):
    for strength in (-1.0, np.nan):
        with pytest.raises(ValueError, match="graph_strength"):
            fitted(data, task_graph="chain", graph_strength=strength)
    for penalty in ("l21", "owl"):
        model = fitted(data, loss="square-root", penalty=penalty, task_graph="chain", tol=1e-5)
        assert model.dual_gap_ <= 1e-5 * model.null_objective_
