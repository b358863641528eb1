"""gamma="auto": the rule, what it is worth, and rows that nothing can be learned from."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.base import clone

import tasksieve as ts
from tasksieve._kernels import kernels, reference

RULES = ("per-task", "importance", "rounds")
PENALTIES = ("l21", "l11", "l1+l21")


def stream(seed=0, n=1500, d=6, n_tasks=3, scale=1.0):
    rng = np.random.default_rng(seed)
    X, task = rng.standard_normal((n, d)), rng.integers(0, n_tasks, n)
    y = X[:, 0] * (1.0 + task) - X[:, 1] + 0.3 * rng.standard_normal(n)
    return scale * X, y, task


def memory(model):
    """Everything that was learned, to the bit (not how it lies in memory, nor norms that can be computed anew)."""
    state = model._learner.state()
    state = {name: array.tobytes() for name, array in state.items() if name != "sizes"} | {
        "shape": state["shape"][:4].tobytes()
    }
    classes = vars(model._classes) if hasattr(model, "_classes") else None
    return state, model._labels[:], dict(model._vocabulary), model.n_features_in_, copy.deepcopy(classes)


# --- the rule ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_gamma_is_the_rule_written_down(kind):
    X, y, task = stream(n=200)
    X[7] = 0.0  # counts for nothing
    X[50] *= 1e6  # counts four times the mean
    weights = np.random.default_rng(1).choice([0.5, 1.0, 4.0], 200)
    model, curvature = ts.OnlineMultiTaskRegressor(0.05), 1.0
    if kind == "classifier":
        model, curvature, y = ts.OnlineMultiTaskClassifier(0.05), 0.25, y > 0
    total, count, most, weight = 0.0, 0, 0.0, np.zeros(3)
    for i in range(200):
        one = slice(i, i + 1)
        model.partial_fit(X[one], y[one], task=task[one], sample_weight=weights[one])
        weight[task[i]] += weights[i]
        size = np.linalg.norm(X[i]) * ((i + 1) * weights[i] / weight[task[i]]) ** 0.25
        if size > 0:
            total += min(size, 4.0 * total / count) if count else size
            count += 1
            most = max(most, 0.5 * curvature * (total / (count + 30)) ** 2)
        assert model.gamma_ == pytest.approx(most, rel=1e-12)
    model.set_params(gamma=7.0)
    assert model.gamma_ == 7.0
    model.set_params(gamma="auto")  # goes on from there: it never falls
    assert model.gamma_ == 7.0


@pytest.mark.parametrize("rule", [0, 1])
@pytest.mark.parametrize(("loss", "curvature"), [(0, 1.0), (1, 0.25), (2, 1.0)])
def test_no_row_overshoots_its_target(rule, loss, curvature):
    """What a row adds to the sums moves its own prediction by at most its gradient / the curvature."""
    X, y, task = stream(n=300, n_tasks=4)
    y = y if loss == 0 else np.sign(y)
    X[200::10] *= 30.0
    learner = kernels.DualAveraging()
    learner.configure(1, rule, loss, 0.0, np.nan, 0.0, 0.0, True, False, 0.0)  # no penalty
    learner.resize(6, 4)
    shortened = []
    for x, value, q in zip(X, y, task.tolist(), strict=True):
        before, z = learner.state(), learner.score_array(x, q)
        assert learner.learn_array(x, value, q, 1.0)
        after, t = learner.state(), learner.steps
        mean = 1.0 / after["weight"][q] if rule == 0 else 1.0 / t
        sums = (after["sums"] - before["sums"]).reshape(4, 6)[q]
        offset = (after["offset_sums"][q] - before["offset_sums"][q]) / after["automatic"][7]
        moved = math.sqrt(t) * mean * (x @ sums / learner.gamma + offset)
        whole = {0: z - value, 1: -value * float(expit(-value * z)), 2: -value * (value * z < 1)}[loss]
        assert abs(moved) <= abs(whole) / curvature * (1.0 + 1e-9) + 1e-12
        shortened.append(abs(moved) > 0.999 * abs(whole) / curvature > 0.0)
    assert sum(shortened[:10]) >= (10 if loss == 0 else 5)
    ordinary = [k for k in range(200, 300) if k % 10]
    assert sum(shortened[k] for k in ordinary) < 30
    assert loss or sum(shortened[200::10]) >= 8  # classes of large rows are mostly right already


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", ["dense", "sparse", "dicts"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_chunks_change_nothing_in_auto(form, rule, penalty):
    X, y, task = stream(n=300)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    X[100] *= 1e3
    params = {"penalty": penalty, "missing": rule, "l1": 0.3, "enhanced": 0.01 if penalty == "l21" else 0.0}
    whole, parts = ts.OnlineMultiTaskRegressor(0.05, **params), ts.OnlineMultiTaskRegressor(0.05, **params)
    if form == "dicts":
        for i in range(300):
            row = {f"x{j}": X[i, j] for j in np.flatnonzero(X[i]).tolist()}
            whole.learn_one(row, y[i], task=int(task[i]))
            parts.learn_one(row, y[i], task=int(task[i]))
            if i % 37 == 0:
                parts = copy.deepcopy(parts)
    else:
        matrix = X if form == "dense" else scipy.sparse.csr_array(X)
        whole.partial_fit(matrix, y, task=task)
        for start in range(0, 300, 7):
            some = slice(start, start + 7)
            parts.partial_fit(matrix[some], y[some], task=task[some])
    one, other = (model._learner.state() for model in (whole, parts))
    for name in one:
        if name not in ("shape", "sizes"):  # whether norms are kept is no part of what was learned
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    assert np.any(whole.coef_)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [0, 1, 2])
@pytest.mark.parametrize("rule", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0, 1, 2])
def test_compiled_equals_twin_in_auto(loss, rule, penalty):
    X, y, task = stream(n=150)
    y = y if loss == 0 else np.sign(y)
    X[60] *= 1e4
    weights = np.random.default_rng(2).choice([0.5, 1.0, 2.0], 150)
    found = []
    for module in (kernels, reference):
        learner = module.DualAveraging()
        learner.configure(penalty, rule, loss, 0.05, np.nan, 0.01, 0.002, True, True, 0.2)
        learner.resize(6, 3)
        assert learner.learn_dense(X[:70], y[:70], task[:70], weights[:70]) == 70
        rows = scipy.sparse.csr_array(X[70:])
        assert learner.learn_sparse(rows.data, rows.indices, rows.indptr, y[70:], task[70:], weights[70:]) == 80
        coef = np.empty((3, 6))
        learner.coefficients(coef)
        state = learner.state()
        seen = [state[name] for name in ("automatic", "seen_weight", "seen_loss", "seen_hits", "seen_mean",
                                         "seen_spread", "seen_curve", "sums", "total")]  # fmt: skip
        found.append((coef, np.array(learner.gamma), *seen))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


# --- what it is worth ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("rule", RULES)
def test_units_do_not_matter(scale, rule):
    X, y, task = stream(n=3000)
    model = ts.OnlineMultiTaskRegressor(0.02 * scale, missing=rule).partial_fit(scale * X, y, task=task)
    assert model.score(scale * X, y, task=task) > 0.9
    assert np.flatnonzero(model.get_support()).tolist()[:2] == [0, 1]


def test_the_stream_that_diverged_is_learned():
    """d = 30 unscaled features, 20 tasks: gamma = 1 gave predictions without bound."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 30)) * 10.0 ** rng.uniform(-1, 1, 30)
    task = rng.integers(0, 20, 4000)
    y = X[:, 0] / X[:, 0].std() + 0.2 * rng.standard_normal(4000)
    with pytest.raises(ValueError, match="gamma='auto'"):
        ts.OnlineMultiTaskRegressor(0.01, gamma=1.0).partial_fit(X, y, task=task)
    model = ts.OnlineMultiTaskRegressor(0.01).partial_fit(X, y, task=task)
    assert model.score(X, y, task=task) > 0.5
    assert np.abs(model.predict(X, task=task)).max() < 100


def test_a_task_that_joins_late_leaves_the_others_alone():
    X, y, task = stream(n=6000, n_tasks=2)
    alone = ts.OnlineMultiTaskRegressor(0.02).partial_fit(X, y, task=task)
    model = clone(alone).partial_fit(X, y, task=task)
    late = np.full(300, 9)
    model.partial_fit(X[:300], -y[:300], task=late)
    known = model.predict(X, task=task)
    assert 1.0 - np.mean((known - y) ** 2) / np.var(y) > 0.9
    assert 1.0 - np.mean((model.predict(X[:300], task=late) + y[:300]) ** 2) / np.var(y[:300]) > 0.5


# --- progressive loss ----------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gamma", ["auto", 30.0])
def test_progressive_loss_is_that_of_rows_before_they_are_learned(rule, gamma):
    X, y, task = stream(n=100)
    weights = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], 100)
    model = ts.OnlineMultiTaskRegressor(0.05, gamma=gamma, missing=rule)
    losses, open_round = [], {}
    for i in range(100):
        q = int(task[i])
        if weights[i] > 0:
            if rule == "rounds":  # rows of a round are predicted at its start
                if q in open_round:
                    open_round = {}
                if not open_round:
                    start = copy.deepcopy(model)
                open_round[q] = True
            else:
                start = model
            known = hasattr(start, "_learner") and q in start._codes
            z = start.predict_one(X[i], task=q) if known else 0.0
            losses.append((weights[i], 0.5 * (z - y[i]) ** 2, q))
        model.partial_fit(X[i : i + 1], y[i : i + 1], task=task[i : i + 1], sample_weight=weights[i : i + 1])
    w, value, q = np.array(losses).T
    assert model.progressive_loss_ == pytest.approx(w @ value / w.sum(), rel=1e-9)
    progress = model.progress()
    for k, label in enumerate(progress.tasks.tolist()):
        own = q == label
        shown = y[(task == label) & (weights > 0)]
        spread = w[own] @ (shown - np.average(shown, weights=w[own])) ** 2
        assert progress.task_loss[k] == pytest.approx(w[own] @ value[own] / w[own].sum(), rel=1e-9)
        assert progress.score[k] == pytest.approx(1.0 - 2.0 * (w[own] @ value[own]) / spread, rel=1e-9)
    assert progress.rows.tolist() == [1, 2, 4, 8, 16, 32, 64]
    for rows, loss in zip(progress.rows.tolist(), progress.losses, strict=True):
        assert loss == pytest.approx(w[:rows] @ value[:rows] / w[:rows].sum(), rel=1e-9)


def test_progressive_accuracy():
    X, y, task = stream(n=400)
    labels = np.where(y > 0, "up", "down")
    model, right = ts.OnlineMultiTaskClassifier(0.01), []
    for i in range(400):
        known = model.predict_one(X[i], task=int(task[i])) if i > 10 else None
        right.append(known == labels[i])
        model.learn_one(X[i], labels[i], task=int(task[i]))
    share = np.average(model.progress().score, weights=model.progress().weight)
    assert abs(share - np.mean(right)) < 0.03
    assert share > 0.8


# --- rows that nothing can be learned from -------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["regressor", "classifier"])
@pytest.mark.parametrize("gamma", ["auto", 20.0])
@pytest.mark.parametrize("rule", RULES)
def test_an_absurd_row_changes_nothing(rule, gamma, kind):
    X, y, task = stream(n=200)
    if kind == "classifier":
        model, y = ts.OnlineMultiTaskClassifier(0.01, gamma=gamma, missing=rule), np.where(y > 0, 1, 0)
    else:
        model = ts.OnlineMultiTaskRegressor(0.01, gamma=gamma, missing=rule)
    model.partial_fit(X, y, task=task)
    before = memory(model)
    for position in range(6):
        row = X[0].copy()
        row[position] = 1e160
        for label in (0, 1, 2, 77):
            with pytest.raises(ValueError, match="was not learned"):
                model.learn_one(row, y[0].item(), task=label)
            assert memory(model) == before
            with pytest.raises(ValueError, match=r"Row 1 .*was not learned"):
                model.partial_fit(row[None], y[:1], task=[label])
            assert memory(model) == before
            with pytest.raises(ValueError, match=r"Row 1 .*was not learned"):
                model.partial_fit(scipy.sparse.csr_array(row[None]), y[:1], task=[label])
            assert memory(model) == before
    # rows before it in a chunk are learned, tasks after it have not joined
    chunk = np.vstack([X[:5], row, X[5:8]])
    labels = np.array([0, 1, 2, 0, 50, 1, 60, 0, 1])
    with pytest.raises(ValueError, match=r"Row 6 .*was not learned"):
        model.partial_fit(chunk, y[:9], task=labels)
    twin = ts.OnlineMultiTaskRegressor if kind == "regressor" else ts.OnlineMultiTaskClassifier
    expected = twin(0.01, gamma=gamma, missing=rule).partial_fit(X, y, task=task)
    expected.partial_fit(X[:5], y[:5], task=labels[:5])
    assert model.tasks_.tolist() == expected.tasks_.tolist()
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-12)
    assert model.n_rows_seen_ == 205
    assert model.score(X, y, task=task) > 0.3


def test_a_refused_row_brings_no_names_and_no_classes():
    rng = np.random.default_rng(0)
    model = ts.OnlineMultiTaskClassifier(0.01)
    model.learn_one({"a": 1.0, "b": 2.0}, "x", task="s")
    before = memory(model)
    for row, label, task in (
        ({"a": 1.0, "new": 1e160}, "x", "s"),
        ({"a": 1e160}, "y", "s"),
        ({"c": 1e160}, "y", "t"),
        ({"c": np.nan}, "y", "t"),
        ({"a": 1.0, "d": "word"}, "x", "s"),
        ({"a": 1.0}, 0.5, "s"),
        ({"a": 1.0}, np.inf, "s"),
        ({"a": 1.0}, 3, "s"),  # cannot be ordered with words
    ):
        with pytest.raises((ValueError, TypeError)):
            model.learn_one(row, label, task=task)
        assert memory(model) == before
    for weight in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="w must be finite"):
            model.learn_one({"a": 1.0}, "x", task="s", w=weight)
    assert memory(model) == before
    fresh = ts.OnlineMultiTaskRegressor()
    for x, value in (({"a": np.inf}, 1.0), ({"a": 1.0}, np.inf), ({"a": 1e200}, 1.0), (rng.random((2, 2)), 1.0)):
        with pytest.raises(ValueError, match=r"infin|not learned|1-D"):
            fresh.learn_one(x, value)
        assert not hasattr(fresh, "_learner")
    hashed = ts.OnlineMultiTaskRegressor(hash_features=16)
    with pytest.raises(ValueError, match="not learned"):
        hashed.learn_one({"a": 1e170, "word": "w"}, 1.0)
    assert not hasattr(hashed, "_learner")
    hashed.learn_one({"a": 1.0, "word": "w"}, 1.0)
    assert hashed.n_rows_seen_ == 1


def test_a_failed_fit_leaves_the_model_that_was_there():
    X, y, task = stream(n=100)
    for warm in (False, True):
        model = ts.OnlineMultiTaskRegressor(0.05, warm_start=warm, random_state=0, max_iter=2).fit(X, y, task=task)
        before = memory(model)
        worse = X.copy()
        worse[50, 2] = 1e180
        with pytest.raises(ValueError, match="was not learned"):
            model.fit(worse, y, task=task)
        assert memory(model) == before
        model.fit(X, y, task=task)


def test_large_rows_are_learned_without_harm():
    """A row 1e100 times larger than the others is no error in auto, and has no more weight than it may."""
    X, y, task = stream(n=2000)
    quiet = ts.OnlineMultiTaskRegressor(0.02).partial_fit(X, y, task=task)
    for size in (1e3, 1e6):
        other = X.copy()
        other[300] *= size
        model = ts.OnlineMultiTaskRegressor(0.02).partial_fit(other, y, task=task)
        assert model.score(X, y, task=task) > quiet.score(X, y, task=task) - 0.05


def test_divergence_keeps_the_state_before_the_row():
    X, y, task = stream(n=500)
    model = ts.OnlineMultiTaskRegressor(0.01, gamma=1e-3)
    with pytest.raises(ValueError, match=r"Row \d+ .*was not learned.*raise gamma") as caught:
        model.partial_fit(X, y, task=task)
    row = int(str(caught.value).split()[1]) - 1  # those before it are learned
    assert model.n_rows_seen_ == row
    expected = ts.OnlineMultiTaskRegressor(0.01, gamma=1e-3).partial_fit(X[:row], y[:row], task=task[:row])
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.all(np.isfinite(model.coef_))
