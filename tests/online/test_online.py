"""Online learning against Algorithm 1 as printed, in every form that rows can come in."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import online_reference
import pytest
import scipy.sparse
from sklearn.base import clone

import tasksieve as ts
from tasksieve._kernels import kernels, reference

PENALTIES = ("l21", "l11", "l1+l21")
LOSSES = ("squared", "logistic", "hinge")
STOPS = (1, 10, 100, 1000)


def model_for(loss, **params):
    if loss == "squared":
        return ts.OnlineMultiTaskRegressor(**params)
    return ts.OnlineMultiTaskClassifier(loss=loss, **params)


def data(rng, n, d=7, Q=3, loss="squared", density=1.0, proportions=None):
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    task = rng.choice(Q, n, p=proportions)
    task[:Q] = np.arange(Q)  # first seen in order, so that columns agree with the reference
    W = rng.standard_normal((d, Q)) * (np.arange(d) < 3)[:, None]
    y = np.einsum("ij,ji->i", X, W[:, task]) + 0.3 * rng.standard_normal(n) + 0.2
    return X, (y if loss == "squared" else np.where(y > 0, 1.0, -1.0)), task


def strengths(penalty):
    return {"l21": 0.15, "l11": 0.1, "l1+l21": 0.1}[penalty]


# --- the paper's setting: rounds of one row per task ---------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_rounds_equal_algorithm_1(penalty, loss, form, rng):
    d, Q, n = 7, 3, 1000
    X = rng.standard_normal((n * Q, d)) * (rng.random((n * Q, d)) < (1.0 if form == "dense" else 0.4))
    task = np.tile(np.arange(Q), n)
    W = rng.standard_normal((d, Q)) * (np.arange(d) < 3)[:, None]
    y = np.einsum("ij,ji->i", X, W[:, task]) + 0.3 * rng.standard_normal(n * Q)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    r = np.linspace(0.0, 0.8, d)
    instances = [{q: (X[t * Q + q], y[t * Q + q]) for q in range(Q)} for t in range(n)]
    lam = strengths(penalty)
    truth = online_reference.rounds(
        instances, d, Q, loss=loss, penalty=penalty, lam=lam, r=r, gamma=12.0, stops=STOPS
    )
    model = model_for(loss, alpha=lam, penalty=penalty, l1=r, gamma=12.0, missing="rounds", average=True)
    matrix = X if form == "dense" else scipy.sparse.csr_array(X)
    done = 0
    for stop in STOPS:
        while done < stop * Q:
            size = min(int(rng.integers(1, 70)), stop * Q - done)
            rows = slice(done, done + size)
            model.partial_fit(matrix[rows], y[rows], task=task[rows])
            done += size
        expected, intercept, average = truth[stop]
        np.testing.assert_allclose(model.coef_.T, expected, atol=1e-10)
        np.testing.assert_allclose(model.intercept_, intercept, atol=1e-10)
        np.testing.assert_allclose(model.averaged_coef_.T, average, atol=1e-10)
    assert np.count_nonzero(expected) > 0
    assert penalty != "l11" or np.count_nonzero(expected) < expected.size


def test_open_round_is_shown_as_if_it_ended(rng):
    X, y, _ = data(rng, 30)
    task = np.tile([0, 1, 2], 10)
    one = ts.OnlineMultiTaskRegressor(0.1, gamma=10.0, missing="rounds").partial_fit(
        X[:14], y[:14], task=task[:14]
    )
    instances = [{q: (X[3 * t + q], y[3 * t + q]) for q in range(3) if 3 * t + q < 14} for t in range(5)]
    truth = online_reference.rounds(
        instances, 7, 3, loss="squared", penalty="l21", lam=0.1, gamma=10.0, stops=(5,)
    )[5]
    np.testing.assert_allclose(one.coef_.T, truth[0], atol=1e-12)
    np.testing.assert_allclose(one.averaged_coef_.T, truth[2], atol=1e-12)
    assert one.t_ == 4
    np.testing.assert_allclose(one.predict_one(X[20], task=1), X[20] @ one.coef_[1] + one.intercept_[1])
    one.partial_fit(X[14:], y[14:], task=task[14:])  # the showing has changed nothing
    whole = ts.OnlineMultiTaskRegressor(0.1, gamma=10.0, missing="rounds").partial_fit(X, y, task=task)
    assert np.array_equal(one.coef_, whole.coef_)


# --- tasks in any order and proportion ------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.parametrize("options", [{}, {"ridge": 0.3, "rho": 0.002}], ids=["plain", "ridge and enhanced"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rule", ["per-task", "importance"])
def test_rows_equal_the_literal_recursion(rule, penalty, loss, form, options, rng):
    X, y, task = data(
        rng, 1000, loss=loss, density=1.0 if form == "dense" else 0.4, proportions=[0.7, 0.25, 0.05]
    )
    weights = rng.choice([1.0, 0.5, 2.0], 1000)
    lam, r = strengths(penalty), 0.4
    instances = list(zip(task, X, y, weights, strict=True))
    truth = online_reference.rows(
        instances,
        7,
        3,
        rule=rule,
        loss=loss,
        penalty=penalty,
        lam=lam,
        r=r,
        gamma=40.0,
        stops=STOPS,
        **options,
    )
    names = {"ridge": "l2", "rho": "enhanced"}
    model = model_for(
        loss,
        alpha=lam,
        penalty=penalty,
        l1=r,
        gamma=40.0,
        missing=rule,
        average=True,
        **{names[k]: v for k, v in options.items()},
    )
    matrix = X if form == "dense" else scipy.sparse.csr_array(X)
    for start, stop in zip((0, *STOPS), STOPS, strict=False):
        rows = slice(start, stop)
        model.partial_fit(matrix[rows], y[rows], task=task[rows], sample_weight=weights[rows])
        expected, intercept, average = truth[stop]
        seen = len(model.tasks_)
        np.testing.assert_allclose(model.coef_.T, expected[:, :seen], atol=1e-10)
        np.testing.assert_allclose(model.intercept_, intercept[:seen], atol=1e-10)
        np.testing.assert_allclose(model.averaged_coef_.T, average[:, :seen], atol=1e-10)
    assert np.any(expected != 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", ["per-task", "importance", "rounds"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "frame"])
def test_chunks_change_nothing(form, penalty, rule, rng):
    import pandas as pd

    X, y, task = data(rng, 400, density=0.5)
    matrix = {
        "dense": X,
        "sparse": scipy.sparse.csr_matrix(X),
        "float32": X.astype(np.float32),
        "frame": pd.DataFrame(X, columns=list("abcdefg")),
    }[form]
    whole = ts.OnlineMultiTaskRegressor(0.1, penalty=penalty, l1=0.3, gamma=20.0, missing=rule)
    whole.partial_fit(matrix, y, task=task)
    for sizes in ([1] * 400, rng.multinomial(400, np.ones(23) / 23)):
        model = clone(whole)
        start = 0
        for size in sizes:
            if size:
                rows = slice(start, start + size)
                part = matrix.iloc[rows] if form == "frame" else matrix[rows]
                model.partial_fit(part, y[rows], task=task[rows])
                start += size
        assert np.array_equal(model.coef_, whole.coef_)  # bit for bit
        assert np.array_equal(model.intercept_, whole.intercept_)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rule", ["per-task", "importance", "rounds"])
def test_lazy_equals_dense_after_many_sparse_rows(rule, penalty, rng):
    n, d, Q = 100_000, 30, 5
    X = scipy.sparse.csr_array(rng.random((n, d)) * (rng.random((n, d)) < 0.1))
    task = rng.integers(0, Q, n)
    y = np.asarray(X.toarray() @ rng.standard_normal(d)) + 0.1 * rng.standard_normal(n)
    params = {"alpha": 0.01, "penalty": penalty, "l1": 0.3, "gamma": 5.0, "missing": rule, "average": False}
    lazy = ts.OnlineMultiTaskRegressor(**params).partial_fit(X, y, task=task)
    dense = ts.OnlineMultiTaskRegressor(**params).partial_fit(X.toarray(), y, task=task)
    np.testing.assert_allclose(lazy.coef_, dense.coef_, atol=1e-8)
    assert np.any(dense.coef_ != 0)


def test_sparse_and_dense_rows_may_alternate(rng):
    X, y, task = data(rng, 300, density=0.4)
    for rule in ("per-task", "importance", "rounds"):
        whole = ts.OnlineMultiTaskRegressor(0.1, gamma=20.0, missing=rule).partial_fit(X, y, task=task)
        mixed = clone(whole)
        for k in range(10):
            rows = slice(30 * k, 30 * k + 30)
            mixed.partial_fit(scipy.sparse.csc_array(X[rows]) if k % 2 else X[rows], y[rows], task=task[rows])
        np.testing.assert_allclose(mixed.coef_, whole.coef_, atol=1e-12)


# --- tasks, classes and features that join later --------------------------------------------------------------------


def test_tasks_join_mid_stream(rng):
    X, y, _ = data(rng, 600)
    task = np.array(["a"] * 200 + ["b"] * 200 + ["c"] * 200)
    task[450:500] = "a"
    instances = [("abc".index(t), x, v, 1.0) for t, x, v in zip(task, X, y, strict=True)]
    truth = online_reference.rows(
        instances, 7, 3, rule="per-task", loss="squared", penalty="l21", lam=0.1, gamma=40.0, stops=(600,)
    )[600]
    for matrix in (X, scipy.sparse.csr_array(X)):
        model = ts.OnlineMultiTaskRegressor(0.1, gamma=40.0)
        for k in range(6):
            rows = slice(100 * k, 100 * k + 100)
            model.partial_fit(matrix[rows], y[rows], task=task[rows])
        assert model.tasks_.tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(model.coef_.T, truth[0], atol=1e-10)


def test_many_tasks_join_one_by_one(rng):
    X = rng.standard_normal((300, 4))
    task = np.arange(300) // 3  # a hundred tasks
    y = X[:, 0] + 0.1 * rng.standard_normal(300)
    for matrix in (X, scipy.sparse.csr_array(X)):
        by_one = ts.OnlineMultiTaskRegressor(0.01, gamma=50.0)
        for i in range(300):
            by_one.partial_fit(matrix[i : i + 1], y[i : i + 1], task=task[i : i + 1])
        at_once = ts.OnlineMultiTaskRegressor(0.01, gamma=50.0).partial_fit(matrix, y, task=task)
        assert np.array_equal(by_one.coef_, at_once.coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_joins_mid_stream(loss, rng):
    X, y, task = data(rng, 200, loss="logistic")
    y = np.where(y > 0, "m", "q")
    order = np.argsort(y, kind="stable")  # all of "m" first
    for first in (order, order[::-1]):
        whole = ts.OnlineMultiTaskClassifier(0.05, loss=loss, gamma=20.0)
        whole.partial_fit(X[first], y[first], task=task[first], classes=["m", "q"])
        model = ts.OnlineMultiTaskClassifier(0.05, loss=loss, gamma=20.0)
        for rows in np.split(first, 20):
            model.partial_fit(X[rows], y[rows], task=task[rows])
        assert model.classes_.tolist() == ["m", "q"]
        assert model.tasks_.tolist() == whole.tasks_.tolist()
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-12)
        assert set(model.predict(X, task=task)) <= {"m", "q"}


def test_only_one_class_so_far(rng):
    X, _, task = data(rng, 20)
    model = ts.OnlineMultiTaskClassifier().partial_fit(X, ["no"] * 20, task=task)
    assert model.predict(X, task=task).tolist() == ["no"] * 20
    assert model.predict_one(X[0], task=0) == "no"
    with pytest.raises(ValueError, match="one class"):
        ts.OnlineMultiTaskClassifier().fit(X, ["no"] * 20, task=task)


def test_tasks_with_pairs_of_their_own(rng):
    X, y, task = data(rng, 300, loss="logistic", Q=2)
    names = np.where(task == 0, np.where(y > 0, "cat", "ant"), np.where(y > 0, "zoo", "yak"))
    plain = ts.OnlineMultiTaskClassifier(0.02, gamma=20.0).partial_fit(X, y, task=task)
    model = ts.OnlineMultiTaskClassifier(0.02, gamma=20.0)
    for i in range(0, 300, 3):
        model.partial_fit(X[i : i + 3], names[i : i + 3], task=task[i : i + 3])
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-12)
    assert [pair.tolist() for pair in model.classes_] == [["ant", "cat"], ["yak", "zoo"]]
    predicted = model.predict(X, task=task)
    assert set(predicted[task == 1]) <= {"yak", "zoo"}
    with pytest.raises(ValueError, match="binary"):
        model.partial_fit(X[:1], ["dog"], task=[0])


def test_missing_labels_and_zero_weights_are_absent_rows(rng):
    X, y, task = data(rng, 100)
    gone = rng.random(100) < 0.3
    gone[:3] = False
    holes = np.where(gone, np.nan, y)
    expected = ts.OnlineMultiTaskRegressor(0.1, gamma=20.0).partial_fit(X[~gone], y[~gone], task=task[~gone])
    for model in (
        ts.OnlineMultiTaskRegressor(0.1, gamma=20.0).partial_fit(X, holes, task=task),
        ts.OnlineMultiTaskRegressor(0.1, gamma=20.0).partial_fit(X, y, task=task, sample_weight=1.0 - gone),
    ):
        assert np.array_equal(model.coef_, expected.coef_)
        assert model.n_rows_seen_ == np.count_nonzero(~gone)


def test_all_forms_of_input_agree(rng):
    X = rng.standard_normal((40, 5))
    Y = X[:, :2] @ rng.standard_normal((2, 3))
    Y[3, 1] = np.nan
    params = {"alpha": 0.1, "gamma": 20.0}
    shared = ts.OnlineMultiTaskRegressor(**params).partial_fit(X, Y)
    seen = ~np.isnan(Y)
    i, t = np.nonzero(seen)
    stacked = ts.OnlineMultiTaskRegressor(**params).partial_fit(X[i], Y[i, t], task=t)
    assert np.array_equal(shared.coef_, stacked.coef_)
    assert shared.predict(X).shape == (40, 3)
    listed = ts.OnlineMultiTaskRegressor(**params).partial_fit([X[:10], X[10:]], [Y[:10, 0], Y[10:, 0]])
    same = ts.OnlineMultiTaskRegressor(**params).partial_fit(X, Y[:, 0], task=np.repeat([0, 1], [10, 30]))
    assert np.array_equal(listed.coef_, same.coef_)
    single = ts.OnlineMultiTaskRegressor(**params).partial_fit(X, Y[:, 0])
    assert single.predict(X).shape == (40,)


# --- fit ----------------------------------------------------------------------------------------------------------


def test_fit_is_reproducible_and_warm_starts(rng):
    X, y, task = data(rng, 200)
    model = ts.OnlineMultiTaskRegressor(0.1, gamma=30.0, max_iter=4, random_state=3)
    first = model.fit(X, y, task=task).coef_
    assert np.array_equal(first, clone(model).fit(X, y, task=task).coef_)
    assert np.array_equal(first, model.fit(X, y, task=task).coef_)
    assert not np.array_equal(first, clone(model).set_params(random_state=4).fit(X, y, task=task).coef_)
    assert model.t_ == 800
    assert model.n_iter_ == 4
    warm = clone(model).set_params(warm_start=True).fit(X, y, task=task).fit(X, y, task=task)
    assert warm.t_ == 1600
    plain = clone(model).set_params(shuffle=False, max_iter=2).fit(X, y, task=task)
    by_hand = clone(model)
    for _ in range(2):
        by_hand.partial_fit(X, y, task=task)
    assert np.array_equal(plain.coef_, by_hand.coef_)


def test_fit_makes_rounds_of_all_tasks(rng):
    X, y, _ = data(rng, 60)
    task = np.repeat(["u", "v", "w"], 20)
    model = ts.OnlineMultiTaskRegressor(0.1, gamma=30.0, missing="rounds", max_iter=5, random_state=0)
    model.fit(X, y, task=task)
    assert model.t_ == 5 * 20 - 1  # the last round is open until a task comes again
    assert model.n_rows_seen_ == 300


@pytest.mark.sampled(3)
@pytest.mark.parametrize("proportions", [None, (0.70, 0.25, 0.05)], ids=["even", "uneven"])
@pytest.mark.parametrize("rule", ["per-task", "importance"])
def test_the_average_reaches_the_certified_optimum(rule, proportions, rng):
    """Within 0.5 % of the batch optimum with task_weights="balanced", after many passes over stationary rows."""
    X, y, task = data(rng, 1500, d=10, proportions=proportions)
    batch = ts.MultiTaskLasso(0.3, task_weights="balanced", fit_intercept=False, tol=1e-9).fit(
        X, y, task=task
    )
    model = ts.OnlineMultiTaskRegressor(
        0.3, gamma=25.0, missing=rule, fit_intercept=False, max_iter=600, random_state=0
    ).fit(X, y, task=task)
    found = model.certify(X, y, task=task, weights="averaged", needed=False)
    assert found.objective <= 1.005 * batch.objective_
    assert found.objective >= batch.objective_ - batch.dual_gap_
    assert found.dual_gap >= found.objective - batch.objective_ - 1e-12


# --- the twin, errors, copies ---------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0, 1, 2])
@pytest.mark.parametrize("loss", [0, 1, 2])
def test_compiled_equals_twin(rule, penalty, loss, rng):
    X, y, task = data(rng, 200, loss="squared" if loss == 0 else "logistic", density=0.6)
    found = []
    for module in (kernels, reference):
        learner = module.DualAveraging()
        learner.configure(penalty, rule, loss, 0.1, 15.0, 0.01, 0.02, True, True, 0.2)
        learner.resize(7, 3)
        rows = scipy.sparse.csr_array(X[:100])
        assert learner.learn_sparse(rows.data, rows.indices, rows.indptr, y[:100], task[:100], None) == 100
        learner.flip(1)
        learner.resize(8, 4)
        wide = np.hstack([X[100:], np.ones((100, 1))])
        assert learner.learn_dense(wide, y[100:], task[100:], np.ones(100)) == 100
        coef, intercept = np.empty((4, 8)), np.empty(4)
        learner.coefficients(coef)
        learner.intercepts(intercept)
        state = learner.state()
        again = module.DualAveraging()
        again.configure(penalty, rule, loss, 0.1, 15.0, 0.01, 0.02, True, True, 0.2)
        again.restore(state)
        assert again.learn_array(wide[0], y[0], 2, 1.0)
        assert learner.learn_array(wide[0], y[0], 2, 1.0)
        assert again.score_array(wide[1], 0) == learner.score_array(wide[1], 0)
        found.append((coef, intercept, state["total"], state["sums"], learner.score_array(wide[1], 0)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


@pytest.mark.skipif(kernels is reference, reason="NumPy looks after its own indices")
@pytest.mark.parametrize(
    ("name", "position", "value"),
    [
        ("shape", 6, 6),
        ("shape", 6, 10**6),
        ("shape", 0, 9),
        ("shape", 1, -1),
        ("shape", 2, -1),
        ("round_task", 0, 3),
    ]
    + [("round_index", 0, 7), ("round_index", 1, -1), ("round_start", 0, 10**6)],
)
def test_a_state_that_leads_outside_is_refused(name, position, value, rng):
    X, y, task = data(rng, 30, density=0.6)
    learner = kernels.DualAveraging()
    learner.configure(0, 2, 0, 0.1, 15.0, 0.01, 0.0, True, False, 0.2)
    learner.resize(7, 3)
    learner.learn_sparse(*_parts(scipy.sparse.csr_array(X)), y, task, None)
    state = learner.state()
    learner.restore(state)
    state[name][position] = value
    with pytest.raises(ValueError, match="broken state"):
        learner.restore(state)


@pytest.mark.skipif(kernels is reference, reason="NumPy looks after its own indices")
@pytest.mark.parametrize("spoil", [(1, 0, 7), (1, 3, -1), (2, 0, 1), (2, 3, 10**6), (2, -1, 10**6)])
def test_sparse_rows_that_lead_outside_are_refused(spoil, rng):
    X, y, task = data(rng, 30, density=0.6)
    learner = kernels.DualAveraging()
    learner.configure(0, 0, 0, 0.1, 15.0, 0.01, 0.0, True, False, 0.2)
    learner.resize(7, 3)
    parts = _parts(scipy.sparse.csr_array(X))
    which, position, value = spoil
    parts[which][position] = value
    with pytest.raises(ValueError, match="sparse"):
        learner.learn_sparse(*parts, y, task, None)
    assert learner.learn_plain_sparse(*parts, y, task, np.arange(3)) == -1
    assert learner.steps == 0
    with pytest.raises(ValueError, match="task out of range"):
        learner.flip(3)


def _parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr


def test_copies_go_on_bit_for_bit(rng):
    X, y, task = data(rng, 200)
    for rule in ("per-task", "importance", "rounds"):
        params = {
            "alpha": 0.1,
            "gamma": 20.0,
            "missing": rule,
            "penalty": "l1+l21",
            "l1": np.linspace(0, 1, 7),
        }
        whole = ts.OnlineMultiTaskRegressor(**params).partial_fit(X, y, task=task)
        half = ts.OnlineMultiTaskRegressor(**params).partial_fit(X[:101], y[:101], task=task[:101])
        for twin in (pickle.loads(pickle.dumps(half)), copy.deepcopy(half)):
            twin.partial_fit(X[101:], y[101:], task=task[101:])
            assert np.array_equal(twin.coef_, whole.coef_)
            assert np.array_equal(twin.averaged_coef_, whole.averaged_coef_)


def test_divergence_is_reported(rng):
    X, y, task = data(rng, 5000)
    with pytest.raises(ValueError, match="raise gamma"):
        ts.OnlineMultiTaskRegressor(0.1, gamma=1e-9).partial_fit(1e3 * X, y, task=task)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"penalty": "l2"}, "penalty"),
        ({"missing": "zero"}, "missing"),
        ({"loss": "hinge"}, "loss"),
        ({"gamma": 0.0}, "gamma"),
        ({"alpha": -1.0}, "alpha"),
        ({"l1": -0.1}, "l1"),
        ({"average": "yes"}, "average"),
        ({"penalty": "l1+l21", "l1": [0.1, 0.2]}, "l1 has 2 entries"),
    ],
)
def test_bad_parameters(params, match, rng):
    X, y, task = data(rng, 20)
    with pytest.raises(ValueError, match=match):
        ts.OnlineMultiTaskRegressor(**params).partial_fit(X, y, task=task)


def test_bad_rows(rng):
    X, y, task = data(rng, 20)
    model = ts.OnlineMultiTaskRegressor().partial_fit(X, y, task=task)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((1, 7), np.nan), [1.0], task=[0])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5], y, task=task)
    with pytest.raises(ValueError, match="pass task"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="unknown"):
        model.predict(X, task=np.full(20, 9))
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(X, np.full(20, np.inf), task=task)
    with pytest.raises(AttributeError, match="average=True"):
        ts.OnlineMultiTaskRegressor(average=False).partial_fit(X, y, task=task).averaged_coef_  # noqa: B018


@pytest.mark.parametrize("penalty", ["l21", "l1+l21"])
@pytest.mark.parametrize("missing", ["per-task", "importance"])
@pytest.mark.parametrize("sparse", [False, True])
def test_plain_chunks_learn_what_others_do(penalty, missing, sparse):
    """Chunks that the kernel reads as they are, and the same ones in forms that have to be read first."""
    rng = np.random.default_rng(0)
    X, y, task = rng.standard_normal((300, 11)), rng.standard_normal(300), rng.integers(0, 5, 300)
    X[rng.random(X.shape) < 0.6] = 0.0
    rows = scipy.sparse.csr_array(X) if sparse else X
    alpha = 0.15 if penalty == "l21" else 0.08
    params = {"penalty": penalty, "missing": missing, "gamma": 30.0, "average": False}
    plain = ts.OnlineMultiTaskRegressor(alpha, **params).partial_fit(rows, y, task=task)
    read = ts.OnlineMultiTaskRegressor(alpha, **params).partial_fit(rows, y, task=task)
    for _ in range(3):
        assert plain._learn_plain(rows, y, task)
        read.partial_fit(rows, y, task=task, sample_weight=np.ones(300))
    np.testing.assert_array_equal(plain.coef_, read.coef_)
    assert np.any(plain.coef_)
    assert not np.all(plain.coef_)
    before = plain.coef_.copy()
    broken = y.copy()
    broken[7] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        plain.partial_fit(rows, broken, task=task)
    with pytest.raises(ValueError, match="features"):
        plain.partial_fit(rows[:, :5], y, task=task)
    np.testing.assert_array_equal(plain.coef_, before)
    plain.partial_fit(rows, y, task=task + 1)  # a task joins
    assert plain.coef_.shape[0] == 6


def test_bounds_of_norms_change_nothing():
    """A model restored from its state has no bounds yet: it goes on bit for bit all the same."""
    rng = np.random.default_rng(1)
    X = scipy.sparse.csr_array(rng.random((4000, 200)) * (rng.random((4000, 200)) < 0.05))
    y, task = rng.standard_normal(4000), rng.integers(0, 7, 4000)
    for penalty in ("l21", "l1+l21"):
        for missing in ("per-task", "importance"):
            model = ts.OnlineMultiTaskRegressor(
                0.02 if penalty == "l21" else 0.01,
                penalty=penalty,
                missing=missing,
                gamma=10.0,
                average=False,
            )
            model.partial_fit(X[:2000], y[:2000], task=task[:2000])
            for start in range(2000, 4000, 500):
                again = pickle.loads(pickle.dumps(model))
                part = slice(start, start + 500)
                for learner in (model, again):
                    learner.partial_fit(X[part], y[part], task=task[part])
                np.testing.assert_array_equal(model.coef_, again.coef_)
            used = np.count_nonzero(np.any(model.coef_ != 0.0, axis=0))
            assert 0 < used < 200


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0, 1, 2])
@pytest.mark.parametrize("integer", [np.int32, np.int64])
def test_sparse_rows_of_any_length_and_order(rule, penalty, integer, rng):
    """Rows without entries, longer or shorter than the one before, features in no order and more than once."""
    d, T, n = 60, 6, 300
    lengths = rng.integers(0, 30, n)
    indptr = np.append(0, np.cumsum(lengths)).astype(integer)
    indices = rng.integers(0, d, indptr[-1]).astype(integer)
    data, y, task = rng.standard_normal(indptr[-1]), rng.standard_normal(n), rng.integers(0, T, n)
    l1 = rng.uniform(0.0, 0.2, d)
    alpha = (0.07 if penalty == 1 else 0.2) / (2.0 if rule == 2 else 1.0)
    found = []
    for module in (kernels, reference):
        learner = module.DualAveraging()
        learner.configure(penalty, rule, 0, alpha, 50.0, 0.0, 0.0, True, False, 0.1)
        learner.resize(d, T)
        learner.set_l1(l1)
        for first, last in ((0, 1), (1, 100), (100, n)):
            span = slice(indptr[first], indptr[last])
            rows = indptr[first : last + 1] - indptr[first]
            part = slice(first, last)
            learner.learn_sparse(data[span], indices[span], rows, y[part], task[part], None)
        out = np.empty((T, d))
        learner.coefficients(out)
        scores = [
            learner.score_sparse(data[a:b], indices[a:b].astype(np.int64), int(t))
            for a, b, t in zip(indptr[:20], indptr[1:21], task[:20], strict=True)
        ]
        found.append((out, np.array(scores)))
    assert 0 < np.count_nonzero(found[1][0]) < d * T
    for compiled, twin in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, twin, rtol=0, atol=1e-10)
