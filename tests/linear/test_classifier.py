"""Classification with any penalty: more than two classes per task, against independent solvers."""

from __future__ import annotations

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from exact_numbers import wide
from helpers import named_rows
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import tasksieve as ts
from tasksieve.design import Design, RepeatedStorage, as_storage
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import L11, L21, LInf, SparseGroup

PENALTIES = {
    "l21": ("l21", lambda rows: cp.sum(cp.norm(rows, axis=1))),
    "l11": ("l11", lambda rows: cp.sum(cp.abs(rows))),
    "sparse group": (
        SparseGroup(0.3, 0.8),
        lambda rows: 0.8 * cp.sum(cp.norm(rows, axis=1)) + 0.3 * cp.sum(cp.abs(rows)),
    ),
}


def problem(rng, counts=(3, 3, 4), rows=16, d=8):
    """Rows of tasks with so many classes each, all of which occur, in no order; labels are numbers."""
    tasks = len(counts)
    task = np.repeat(np.arange(tasks), rows)
    x = rng.standard_normal((tasks * rows, d))
    y = np.concatenate([rng.permutation(np.arange(rows) % count) for count in counts])
    x[:, 0] += 1.5 * (y == 0) * np.where(task == 0, 1, -1)
    x[:, 1] += y
    order = rng.permutation(len(y))
    return x[order], y[order], task[order]


def optimum(x, y, task, classes, penalty, alpha, *, weights=None, ridge=0.0, intercept=True, task_weights=None):
    """The optimal value of the public objective, by a cone solver; `classes` are those of each task."""
    s = np.ones(len(y)) if weights is None else weights
    v = np.ones(len(classes)) if task_weights is None else task_weights
    w = [cp.Variable((x.shape[1], len(own))) for own in classes]
    b = [cp.Variable(len(own)) for own in classes]
    total = 0
    for t, own in enumerate(classes):
        rows = np.flatnonzero((task == t) & (s > 0))
        z = x[rows] @ w[t] + (np.ones((len(rows), 1)) @ b[t][None, :] if intercept else 0)
        picked = cp.sum(cp.multiply(z, (y[rows][:, None] == np.asarray(own)).astype(float)), axis=1)
        total += v[t] * cp.sum(cp.multiply(s[rows], cp.log_sum_exp(z, axis=1) - picked))
    everything = cp.hstack(w)
    objective = total / (s.sum() / len(classes)) + alpha * PENALTIES[penalty][1](everything)
    objective += ridge / 2 * cp.sum_squares(everything)
    return float(cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL"))


def check(model, best, tol):
    """As good as the oracle, and no better than it by more than its accuracy: the gap is no lie."""
    assert model.dual_gap_ <= tol * model.null_objective_
    assert model.objective_ <= best + 1e-7 * model.null_objective_
    assert model.objective_ - model.dual_gap_ <= best + 1e-7 * model.null_objective_


@pytest.mark.sampled(3)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("options", ["plain", "weights", "ridge", "no intercept"])
def test_own_matrices_against_the_oracle(rng, penalty, options):
    x, y, task = problem(rng)
    given = {
        "plain": {},
        "weights": {"sample_weight": rng.uniform(0.3, 2.0, len(y)) * (rng.random(len(y)) < 0.9)},
        "ridge": {"ridge": 0.2},
        "no intercept": {"fit_intercept": False},
    }[options]
    s = given.pop("sample_weight", None)
    model = ts.MultiTaskClassifier(penalty=PENALTIES[penalty][0], alpha=0.1, tol=1e-8, **given)
    model.fit(x, y, task=task, sample_weight=s)
    assert isinstance(model.classes_, np.ndarray) or s is not None  # weights of 0 may leave no task with all four
    classes = [list(own) for own in model.classes_] if isinstance(model.classes_, list) else [model.classes_] * 3
    best = optimum(
        x, y, task, classes, penalty, 0.1, weights=s, ridge=given.get("ridge", 0.0),
        intercept=given.get("fit_intercept", True),
    )  # fmt: skip
    check(model, best, 1e-8)


@pytest.fixture(autouse=True)
def absent_classes_are_meant():
    """Tasks of these data lack classes, and say so; the tests of that warning ask for it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ task.s. have no rows of some class")
        yield


def test_different_classes_against_the_oracle(rng):
    x, y, task = problem(rng, (2, 3, 4))
    y = y + 10 * task
    model = ts.MultiTaskClassifier(alpha=0.08, tol=1e-8, task_weights={0: 2.0}).fit(x, y, task=task)
    assert [own.tolist() for own in model.classes_] == [[0, 1], [10, 11, 12], [20, 21, 22, 23]]
    assert [w.shape for w in model.coef_] == [(2, 8), (3, 8), (4, 8)]
    assert [b.shape for b in model.intercept_] == [(2,), (3,), (4,)]
    best = optimum(x, y, task, model.classes_, "l21", 0.08, task_weights=[2.0, 1.0, 1.0])
    check(model, best, 1e-8)
    # lists by task, labels in the order of the rows
    assert [p.shape for p in model.predict_proba(x)] == [(48, 2), (48, 3), (48, 4)]
    by_task = model.predict_proba(x, task=task)
    assert [p.shape for p in by_task] == [(16, 2), (16, 3), (16, 4)]
    np.testing.assert_allclose(np.concatenate([p.sum(axis=1) for p in by_task]), 1.0)
    found = model.predict(x, task=task)
    assert found.shape == (48,)
    assert model.predict(x).shape == (48, 3)
    assert model.score(x, y, task=task) == pytest.approx(
        np.mean([np.mean(found[task == t] == y[task == t]) for t in range(3)])
    )
    for t, scores in enumerate(model.decision_function(x, task=task)):
        np.testing.assert_array_equal(found[task == t], model.classes_[t][scores.argmax(axis=1)])
    parts = [x[task == t] for t in range(3)]
    for t, part in enumerate(model.predict(parts)):
        np.testing.assert_array_equal(part, found[task == t])
    assert model.get_support().tolist() == np.any(np.vstack(model.coef_), axis=0).tolist()
    assert model.transform(x).shape[1] == model.get_support().sum()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_one_matrix_for_all_tasks_against_the_oracle(rng, penalty):
    x, tasks = rng.standard_normal((24, 6)), 2
    labels = np.stack([np.argmax(x[:, :3] + rng.gumbel(size=(24, 3)), axis=1) for _ in range(tasks)], axis=1)
    labels[:3] = np.arange(3)[:, None]
    y = labels.astype(float)
    y[3, 1] = y[7, 0] = np.nan
    model = ts.MultiTaskClassifier(penalty=PENALTIES[penalty][0], alpha=0.05, tol=1e-8).fit(x, y)
    assert model.coef_.shape == (3, 2, 6)
    assert model.intercept_.shape == (3, 2)
    stacked = np.vstack([x, x])[~np.isnan(y.T.ravel())]
    seen = ~np.isnan(y.T.ravel())
    flat, task = y.T.ravel()[seen], np.repeat([0, 1], 24)[seen]
    check(model, optimum(stacked, flat, task, [np.arange(3)] * 2, penalty, 0.05), 1e-8)
    again = ts.MultiTaskClassifier(penalty=PENALTIES[penalty][0], alpha=0.05, tol=1e-8).fit(stacked, flat, task=task)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-3)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-7)


@pytest.mark.parametrize(("penalty", "factor"), [("l21", np.sqrt(2.0)), ("l11", 1.0), ("linf", 2.0)])
def test_two_classes_are_the_logistic_loss_at_another_strength(rng, penalty, factor):
    """Two columns of scores may be shifted alike, and the best shift makes one the other's negative."""
    x, y, task = problem(rng, (2, 2, 2), d=12)
    alpha = 0.1 if penalty == "linf" else 0.05
    binary = ts.MultiTaskClassifier(penalty=penalty, alpha=alpha, tol=1e-10).fit(x, y, task=task)
    order = np.argsort(task, kind="stable")
    storage = RepeatedStorage(as_storage(x[order]), 16 * np.arange(4), np.full(3, 2))
    one_hot = np.concatenate([(np.arange(2)[:, None] == y[order][16 * t : 16 * t + 16]).ravel() for t in range(3)])
    design = Design(storage, storage.offsets, blocks=np.array([0, 2, 4, 6]))
    member = {"l21": L21(), "l11": L11(), "linf": LInf()}[penalty]
    pairs = Problem(design, one_hot.astype(float), loss="multinomial", penalty=member)
    [point] = solve_path(pairs, np.array([factor * alpha * 16]), tol=1e-9, max_iter=10_000).points
    assert binary.coef_.any()
    assert point.objective / 16 == pytest.approx(binary.objective_, rel=1e-7)
    if penalty == "l21":
        w = np.zeros((6, 12))
        w[:, point.features] = point.rows.T
        np.testing.assert_allclose(w[1::2] - w[::2], binary.coef_, atol=1e-4)


def test_scikit_learn_is_a_peer(rng):
    x, y, _ = problem(rng, (4,), rows=60, d=10)
    alpha = 0.03
    model = ts.MultiTaskClassifier(penalty="l11", alpha=alpha, tol=1e-10).fit(x, y)
    assert model.coef_.shape == (4, 1, 10)
    assert model.intercept_.shape == (4, 1)
    peer = LogisticRegression(l1_ratio=1.0, solver="saga", C=1 / (60 * alpha), tol=1e-9, max_iter=100_000)
    peer.fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), peer.predict_proba(x), atol=2e-4)
    # with l1 a common shift of all classes may be free, so that coefficients need not be unique: the objective is
    loss = log_loss(y, peer.predict_proba(x)) + alpha * np.abs(peer.coef_).sum()
    assert model.objective_ == pytest.approx(loss, rel=1e-6)
    np.testing.assert_array_equal(model.predict(x), peer.predict(x))


def test_every_form_and_storage(rng, tmp_path):
    x, y, task = problem(rng)
    options = {"alpha": 0.1, "tol": 1e-9}
    model = ts.MultiTaskClassifier(**options).fit(x, y, task=task)
    p = model.predict_proba(x, task=task)
    parts = [x[task == t] for t in range(3)]
    listed = ts.MultiTaskClassifier(**options).fit(parts, [y[task == t] for t in range(3)])
    np.testing.assert_allclose(listed.coef_, model.coef_, atol=1e-9)
    for t, own in enumerate(listed.predict_proba(parts)):
        np.testing.assert_allclose(own, p[task == t], atol=1e-6)
    np.save(tmp_path / "x.npy", x)
    given = {
        "sparse": scipy.sparse.csr_array(x),
        "float32": x.astype(np.float32),
        "rows of a file": np.load(tmp_path / "x.npy", mmap_mode="r"),
        "huge": x * 2.0**200,
    }
    for name, other in given.items():
        found = ts.MultiTaskClassifier(**{**options, "alpha": 0.1 * (2.0**200 if name == "huge" else 1.0)})
        found.fit(other, y, task=task)
        np.testing.assert_allclose(found.predict_proba(other, task=task), p, atol=1e-4 if name == "float32" else 1e-5)


def test_options_of_the_engine(rng):
    x, y, task = problem(rng, d=30)
    model = ts.MultiTaskClassifier(alpha=0.12, tol=1e-9).fit(x, y, task=task)
    for options in ({"screening": None}, {"screening": "gap"}):
        other = ts.MultiTaskClassifier(alpha=0.12, tol=1e-9, **options).fit(x, y, task=task)
        np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-4)
    assert model.alpha_max(x, y, task=task) > 0.12
    at_top = ts.MultiTaskClassifier(alpha=model.alpha_max(x, y, task=task)).fit(x, y, task=task)
    assert not at_top.coef_.any()
    scaled = ts.MultiTaskClassifier(alpha=0.12, standardize=True).fit(x * 100.0, y, task=task)
    assert scaled.scale_.shape == (3, 30)
    np.testing.assert_allclose(scaled.scale_[1], 100.0 * x[task == 1].std(axis=0))
    warm = clone(model).set_params(warm_start=True).fit(x, y, task=task)
    warm.fit(x, y, task=task)
    assert warm.dual_gap_ <= 1e-9 * warm.null_objective_
    positive = ts.MultiTaskClassifier(alpha=0.12, positive=True).fit(x, y, task=task)
    assert positive.coef_.min() >= 0.0
    with pytest.raises(ValueError, match="never penalised"):
        ts.MultiTaskClassifier(feature_weights=np.arange(30)).fit(x, y, task=task)
    rejected = model.path(x, y, task=task, n_alphas=8, eps=0.2).rejection_ratios
    assert rejected[1] > 0.5  # screening is at work


def test_a_path_of_classes(rng):
    x, y, task = problem(rng, (3, 3))
    path = ts.MultiTaskClassifier().path(x, y, task=task, n_alphas=5, eps=0.1)
    assert path.coef(4).shape == (6, 8)
    assert path.intercept(4).shape == (6,)
    model = path.model(4)
    assert model.coef_.shape == (3, 2, 8)
    np.testing.assert_array_equal(path.coef(4).toarray().reshape(3, 2, 8), model.coef_)
    np.testing.assert_array_equal(path.intercept(4).reshape(3, 2), model.intercept_)
    np.testing.assert_allclose(path.predict(x, 4, task=task), model.decision_function(x, task=task), rtol=1e-10)
    frame = path.to_frame("coefficients")
    assert list(frame) == ["alpha", "task", "class", "feature", "coefficient"]
    last = frame[frame.alpha == path.alphas[4]]
    assert last.coefficient.to_numpy() == pytest.approx(path.coef(4).data)


# --- certificates ----------------------------------------------------------------------------------------------------


def long_objective(model, x, y, task, s, alpha, penalty):
    """The public objective of the stored numbers, in more digits."""
    x, total = wide(x), wide(0.0)
    rows = []
    for t in range(len(model.tasks_)):
        classes = model.classes_[t] if isinstance(model.classes_, list) else model.classes_
        w, b = (part[t] if isinstance(part, list) else part[:, t] for part in (model.coef_, model.intercept_))
        own = (task == t) & (s > 0)
        z = x[own] @ wide(w.T) + b
        top = z.max(axis=1)
        log_sums = np.log(np.exp(z - top[:, None]).sum(axis=1)) + top
        total += np.sum(s[own] * (log_sums - z[np.arange(len(z)), np.searchsorted(classes, y[own])]))
        rows.append(w)
    w = wide(np.vstack(rows))
    norm = np.abs(w).sum() if penalty == "l11" else np.sqrt((w * w).sum(axis=0)).sum()
    return total / (wide(s).sum() / len(model.tasks_)) + alpha * norm


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(24))
def test_gaps_are_true_on_nasty_data(seed):
    rng = np.random.default_rng(seed)
    counts = tuple(rng.integers(2, 5, 1 + seed % 3))
    counts = (3, *counts[1:])
    x, y, task = problem(rng, counts, rows=int(rng.integers(9, 20)), d=12)
    x *= 10.0 ** rng.integers(-3, 4, 12) if seed % 2 else 1.0
    x += 1e6 * (seed % 4 == 3) * (np.arange(12) == 5)
    x[:, 7], x[:, 8] = x[:, 6], 0.0
    y = y + 10 * task if seed % 3 else y
    s = rng.uniform(0.0, 2.0, len(y)) * (rng.random(len(y)) < 0.8) if seed % 4 else np.ones(len(y))
    penalty = "l11" if seed % 5 == 0 else "l21"
    options = {"penalty": penalty, "fit_intercept": bool(seed % 7), "standardize": False}
    loose = ts.MultiTaskClassifier(tol=1e-2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loose.alpha = loose.alpha_max(x, y, task=task, sample_weight=s) * 10.0 ** -rng.uniform(0.1, 2.0)
        loose.fit(x, y, task=task, sample_weight=s)
        tight = clone(loose).set_params(tol=1e-7, max_iter=3000).fit(x, y, task=task, sample_weight=s)
    found = long_objective(loose, x, y, task, s, loose.alpha, penalty)
    best = long_objective(tight, x, y, task, s, loose.alpha, penalty)
    assert float(abs(found - loose.objective_)) <= loose.dual_gap_ + 1e-12 * loose.null_objective_
    assert float(found - loose.dual_gap_) <= float(best)
    assert tight.dual_gap_ <= loose.dual_gap_ * (1 + 1e-9)
    assert loose.objective_ - loose.dual_gap_ <= tight.objective_


# --- classes that are missing ----------------------------------------------------------------------------------------


def test_a_task_without_some_class(rng):
    x, y, task = problem(rng, (3, 3, 3))
    y = np.where((task == 1) & (y == 2), 0, y)
    with pytest.warns(UserWarning, match="task 1 lacks 2"):
        model = ts.MultiTaskClassifier(alpha=0.05).fit(x, y, task=task)
    assert model.coef_.shape == (3, 3, 8)
    assert not model.coef_[2, 1].any()
    p = model.predict_proba(x, task=task)
    assert p[task == 1, 2].max() < 1e-10
    assert model.dual_gap_ <= 1e-6 * model.null_objective_
    best = optimum(x, y, task, [[0, 1, 2], [0, 1], [0, 1, 2]], "l21", 0.05)
    check(model, best, 1e-6)


def test_a_task_of_one_class(rng):
    x, y, task = problem(rng, (3, 3, 3))
    y = np.where(task == 1, 2, y)
    with pytest.warns(UserWarning, match="task 1 lacks 0"):
        model = ts.MultiTaskClassifier(alpha=0.05).fit(x, y, task=task)
    assert set(model.predict(x, task=task)[task == 1]) == {2}
    with pytest.warns(UserWarning, match="task 1 has one only"):
        apart = ts.MultiTaskClassifier(alpha=0.05).fit(x, y + 10 * task, task=task)
    assert set(apart.predict(x, task=task)[task == 1]) == {12}
    assert apart.predict_proba(x)[1].shape == (48, 1)
    np.testing.assert_allclose(apart.objective_, model.objective_, rtol=1e-5)


def test_weights_of_zero_remove_a_class(rng):
    x, y, task = problem(rng, (3, 3))
    s = np.where(y == 2, 0.0, 1.0)
    two = ts.MultiTaskClassifier(alpha=0.05).fit(x, y, task=task, sample_weight=s)
    assert two.classes_.tolist() == [0, 1]
    assert two.coef_.shape == (2, 8)
    missing = np.where(y == 2, np.nan, y)
    np.testing.assert_array_equal(ts.MultiTaskClassifier(alpha=0.05).fit(x, missing, task=task).coef_, two.coef_)


def test_only_the_logistic_loss_has_more_than_two_classes(rng):
    class LeastSquares(ts.losses.RowLoss):
        label, labels, smoothness = "squared loss of signs", "signs", 1.0

        def value(self, y, z):
            return 0.5 * (y - z) ** 2

        def slope(self, y, z):
            return y - z

        def conjugate(self, y, p):
            return 0.5 * p * p - p * y

    x, y, task = problem(rng, (2, 2))
    model = ts.MultiTaskClassifier(LeastSquares(), alpha=0.05).fit(x, y, task=task)
    assert model.classes_.tolist() == [0, 1]
    assert set(model.predict(x, task=task)) <= {0, 1}
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="Only binary classification"):
        ts.MultiTaskClassifier(LeastSquares(), alpha=0.05).fit(**named_rows(*problem(rng)))
    with pytest.raises(ValueError, match="a loss of signs"):
        ts.MultiTaskClassifier(ts.losses.Squared()).fit(x, y, task=task)
    with pytest.raises(ValueError, match="The 'loss' parameter must be one of 'logistic'"):
        ts.MultiTaskClassifier("squared").fit(x, y, task=task)
    with pytest.raises(ValueError, match="'ridge'"):
        ts.MultiTaskLogisticRegression(ridge=-1.0).fit(x, y, task=task)


# --- the other classifiers -------------------------------------------------------------------------------------------


def test_faces_of_the_same_model(rng):
    x, y, task = problem(rng)
    model = ts.MultiTaskClassifier(alpha=0.1, ridge=0.1).fit(x, y, task=task)
    face = ts.MultiTaskLogisticRegression(alpha=0.1, ridge=0.1).fit(x, y, task=task)
    np.testing.assert_array_equal(model.coef_, face.coef_)
    sparse = ts.MultiTaskClassifier(penalty=SparseGroup(0.5), alpha=0.1).fit(x, y, task=task)
    other = ts.MultiTaskSparseGroupLasso(alpha=0.1, l1=0.5, loss="logistic").fit(x, y, task=task)
    np.testing.assert_array_equal(sparse.coef_, other.coef_)
    assert other.predict_proba(x, task=task).shape == (48, 4)
    zeros = other.zero_coefficients(x, y, task=task)
    assert not other.coef_.swapaxes(0, 1).reshape(-1, 8)[zeros].any()
    apart = ts.MultiTaskSparseGroupLasso(alpha=0.1, l1=0.5, loss="logistic").fit(x, y + 10 * task, task=task)
    zeros = apart.zero_coefficients(x, y + 10 * task, task=task)
    assert zeros.any()
    assert not np.vstack(apart.coef_)[zeros].any()
    with pytest.raises(ValueError, match="the classes that the model was fitted to"):
        apart.zero_coefficients(x, np.where(y == 3, 0, y) + 10 * task, task=task)
    owl = ts.MultiTaskClassifier(penalty="owl", alpha=0.1, tol=1e-8).fit(x, y)
    peer = ts.MultinomialOWL(alpha=0.1, tol=1e-8).fit(x, y)
    np.testing.assert_array_equal(owl.coef_[:, 0], peer.coef_)


def test_clones_and_pickles(rng):
    x, y, task = problem(rng, (2, 3, 4))
    model = ts.MultiTaskClassifier(penalty=SparseGroup(0.2), alpha=0.1, class_weight="balanced")
    model.fit(x, y + 10 * task, task=task)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x, task=task), model.predict(x, task=task))
    assert clone(model).get_params()["class_weight"] == "balanced"


# --- class weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(2, 2), (3, 3)])
def test_class_weights_are_sample_weights(rng, counts):
    x, y, task = problem(rng, counts)
    y[np.flatnonzero((task == 0) & (y == 1))[2:]] = 0  # not many of them
    s = rng.uniform(0.5, 2.0, len(y))
    names = np.array(["a", "b", "c"])
    for kind in (ts.MultiTaskClassifier, ts.MultiTaskLogisticRegression):
        model = kind(alpha=0.03, class_weight={"b": 3.0}).fit(x, names[y], task=task, sample_weight=s)
        same = kind(alpha=0.03).fit(x, names[y], task=task, sample_weight=s * np.where(y == 1, 3.0, 1.0))
        np.testing.assert_array_equal(model.coef_, same.coef_)
    balanced = np.empty(len(y))
    for t in (0, 1):
        for k in range(counts[t]):
            own = (task == t) & (y == k)
            balanced[own] = s[task == t].sum() / (counts[t] * s[own].sum())
    model = ts.MultiTaskClassifier(alpha=0.03, class_weight="balanced").fit(x, y, task=task, sample_weight=s)
    same = ts.MultiTaskClassifier(alpha=0.03).fit(x, y, task=task, sample_weight=s * balanced)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-6)
    peer = ts.MultinomialOWL(alpha=0.03, class_weight={0: 2.0}).fit(x, y)
    same = ts.MultinomialOWL(alpha=0.03).fit(x, y, sample_weight=np.where(y == 0, 2.0, 1.0))
    np.testing.assert_array_equal(peer.coef_, same.coef_)


def test_class_weights_of_scikit_learn(rng):
    x, y, _ = problem(rng, (3,), rows=60, d=5)
    y[(y == 2) & (np.cumsum(y == 2) > 5)] = 0
    model = ts.MultiTaskClassifier(penalty="l11", alpha=0.05, class_weight="balanced", tol=1e-10).fit(x, y)
    peer = LogisticRegression(
        l1_ratio=1.0, solver="saga", C=1 / (60 * 0.05), class_weight="balanced", tol=1e-9, max_iter=100_000
    ).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x), peer.predict_proba(x), atol=2e-4)


def test_bad_class_weights(rng):
    x, y, task = problem(rng, (2, 2))
    bad = [("even", "must be None"), ({7: 1.0}, "names the class 7"), ({0: -1.0}, "for class 0"), ([1], "dict")]
    for rule, words in bad:
        with pytest.raises(ValueError, match=words):
            ts.MultiTaskClassifier(class_weight=rule).fit(x, y, task=task)
    with pytest.raises(ValueError, match="leaves task 0 without rows"):
        ts.MultiTaskClassifier(class_weight={0: 0.0, 1: 0}).fit(x, y, task=task)


# --- cross-validation ------------------------------------------------------------------------------------------------


def test_held_out_log_loss(rng):
    x, y, task = problem(rng, (3, 3), rows=30)
    model = ts.MultiTaskClassifierCV(alphas=[0.3, 0.1, 0.03], cv=3).fit(x, y, task=task)
    assert model.cv_measure == "held-out multinomial logistic loss"
    assert "stratified by class" in model.cv_folds_
    from tasksieve.fitted.folds import make_folds

    data = model._read(x, y, task, None)
    folds = make_folds(3, y, data).weights
    for f, (train, test) in enumerate(folds):
        back = np.empty(len(y), dtype=int)
        back[data.order if data.order is not None else slice(None)] = np.arange(len(y))
        learn, held = train[back] > 0, test[back] > 0
        assert min(np.bincount(y[held & (task == 0)])) >= 3  # stratified
        for k, alpha in enumerate(model.alphas_):
            own = ts.MultiTaskClassifier(alpha=alpha).fit(x[learn], y[learn], task=task[learn])
            losses = [
                log_loss(y[held & (task == t)], own.predict_proba(x[held & (task == t)], task=task[held & (task == t)]))
                for t in (0, 1)
            ]
            assert model.cv_scores_[k, f] == pytest.approx(np.mean(losses), abs=1e-3)


def test_a_class_that_is_in_one_fold_only(rng):
    x, y, task = problem(rng, (3, 3), rows=20)
    y[(y == 2) & (task == 0)] = 1
    y[np.flatnonzero(task == 0)[0]] = 2  # the only row of its class
    model = ts.MultiTaskClassifierCV(n_alphas=4, eps=0.2, cv=3).fit(x, y, task=task)
    assert np.isfinite(model.cv_scores_).all()
    assert model.coef_.shape == (3, 2, 8)
    folds = [(np.flatnonzero(np.arange(40) % 2 == f), np.flatnonzero(np.arange(40) % 2 != f)) for f in (0, 1)]
    given = ts.MultiTaskClassifierCV(n_alphas=4, eps=0.2, cv=folds).fit(x, y, task=task)
    assert np.isfinite(given.cv_scores_).all()


def test_parts_and_groups_of_many_classes(rng):
    x, y, task = problem(rng)
    for labels in (y, y + 10 * task):
        for standardize in (False, True):
            dirty = ts.MultiTaskClassifier(penalty="dirty", alpha=0.1, standardize=standardize)
            dirty.fit(x, labels, task=task)
            for t in range(3):
                whole, shared, own = (
                    part[t] if isinstance(part, list) else part[:, t]
                    for part in (dirty.coef_, dirty.shared_coef_, dirty.specific_coef_)
                )
                np.testing.assert_allclose(shared + own, whole, atol=1e-12)
        pairs = ts.penalties.Groups(np.arange(8) // 2)
        grouped = ts.MultiTaskClassifier(penalty=pairs, alpha=0.2).fit(x, labels, task=task)
        assert grouped.selected_groups_.tolist() == np.unique(grouped.get_support(indices=True) // 2).tolist()
