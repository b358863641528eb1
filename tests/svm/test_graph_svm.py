"""Graph-regularised machines against independent solvers, and the promises of the two estimators."""

from __future__ import annotations

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import tasksieve as ts
from tasksieve._kernels import compiled, kernels
from tasksieve.graph import (
    complete_graph,
    distance_graph,
    nearest_neighbor_graph,
    task_similarity,
    tree_graph,
)

CLASSES = ("hinge", "squared_hinge", "logistic")
NUMBERS = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")


def graph_of(kind: str, n_tasks: int, rng: np.random.Generator) -> np.ndarray | None:
    if kind == "none":
        return None
    if kind == "complete":
        return complete_graph(n_tasks, 2.0)
    if kind == "path":
        return (
            np.diag(np.ones(n_tasks - 1), 1) + np.diag(np.ones(n_tasks - 1), -1)
            if n_tasks > 1
            else np.zeros((1, 1))
        )
    weights = np.triu(
        rng.random((n_tasks, n_tasks)) * (rng.random((n_tasks, n_tasks)) < 0.4), 1
    )  # disconnected, too
    return 3.0 * (weights + weights.T)


def draw(n_tasks: int, rng: np.random.Generator, regression: bool, n: int = 60, d: int = 4):
    n = max(n, 4 * n_tasks)
    task = np.concatenate([np.arange(n_tasks), rng.integers(n_tasks, size=n - n_tasks)])
    X = rng.standard_normal((n, d))
    W = rng.standard_normal(d) + 0.5 * rng.standard_normal((n_tasks, d))
    z = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.standard_normal(n)
    return X, z if regression else np.where(z > 0, 1, -1), task


def laplacian(graph: np.ndarray | None, n_tasks: int, strength: float) -> np.ndarray:
    if graph is None:
        return np.zeros((n_tasks, n_tasks))
    return strength * (np.diag(graph.sum(axis=1)) - graph)


def objective(X, y, task, W, b, loss, C, L, scaling=1.0, epsilon=0.1, weights=None):
    """The objective of the contract in plain NumPy."""
    s = np.ones(len(y)) if weights is None else weights
    z = np.einsum("ij,ij->i", X, W[task]) + b[task]
    full = np.hstack([W, b[:, None] / scaling])
    r = np.abs(z - y)
    value = {
        "hinge": np.maximum(0, 1 - y * z),
        "squared_hinge": np.maximum(0, 1 - y * z) ** 2,
        "logistic": np.logaddexp(0, -y * z),
        "epsilon_insensitive": np.maximum(0, r - epsilon),
        "squared_epsilon_insensitive": np.maximum(0, r - epsilon) ** 2,
        "squared": r**2,
    }[loss]
    return 0.5 * np.sum(full**2) + 0.5 * np.sum(L * (full @ full.T)) + C * np.sum(s * value)


def interior_point(X, y, task, loss, C, L, epsilon=0.1):
    """The optimum by Clarabel, with a constant feature of size 1."""
    n_tasks, d = len(L), X.shape[1] + 1
    Z = np.hstack([X, np.ones((len(X), 1))])
    W = cp.Variable((n_tasks, d))
    root = np.linalg.cholesky(np.eye(n_tasks) + L).T
    z = cp.sum(cp.multiply(Z, W[task]), axis=1)
    m, r = cp.multiply(y, z), z - y
    value = {
        "hinge": lambda: cp.sum(cp.pos(1 - m)),
        "squared_hinge": lambda: cp.sum_squares(cp.pos(1 - m)),
        "logistic": lambda: cp.sum(cp.logistic(-m)),
        "epsilon_insensitive": lambda: cp.sum(cp.pos(cp.abs(r) - epsilon)),
        "squared_epsilon_insensitive": lambda: cp.sum_squares(cp.pos(cp.abs(r) - epsilon)),
        "squared": lambda: cp.sum_squares(r),
    }[loss]()
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root @ W) + C * value))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value


# 6 losses x 4 graphs x T = 1, 2, 3, 29: 96 problems
@pytest.mark.sampled(6)
@pytest.mark.parametrize("n_tasks", [1, 2, 3, 29])
@pytest.mark.parametrize("kind", ["none", "complete", "path", "random"])
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_interior_point(loss, kind, n_tasks, rng):
    X, y, task = draw(n_tasks, rng, loss in NUMBERS)
    graph, strength, C = graph_of(kind, n_tasks, rng), 0.7, 0.8
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(graph, graph_strength=strength, C=C, loss=loss, tol=1e-9, max_iter=500_000).fit(
        X, y, task=task
    )
    L = laplacian(graph, n_tasks, strength)
    ours = objective(X, y, task, model.coef_, model.intercept_, loss, C, L)
    assert model.objective_ == pytest.approx(ours, rel=1e-10)
    optimum = interior_point(X, y, task, loss, C, L)
    assert ours == pytest.approx(optimum, rel=1e-7, abs=1e-7)
    assert ours - optimum <= model.dual_gap_ + 1e-7 * ours


@pytest.mark.parametrize("n_tasks", [1, 2, 3, 29])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_kernel_machine(C, n_tasks, rng):
    """The same decision function as scikit-learn's SVC on M[s, t] <x, z>: its bias is not ours, so both have none."""
    X, y, task = draw(n_tasks, rng, False)
    graph = complete_graph(n_tasks, 2.0)
    model = ts.GraphSVC(graph, C=C, fit_intercept=False, tol=1e-10).fit(X, y, task=task)
    M = task_similarity(graph)
    # every row also mirrored, (-x, -y): by symmetry the best bias is 0, and w is unique
    K = M[np.ix_(task, task)] * (X @ X.T)
    kernel = SVC(C=C / 2, kernel="precomputed", tol=1e-10).fit(np.block([[K, -K], [-K, K]]), np.append(y, -y))
    theirs = kernel.decision_function(np.hstack([K, -K])) - kernel.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X, task=task), theirs, atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_one_task_is_liblinear(loss, C, rng):
    X, y, _ = draw(1, rng, False, n=300, d=10)
    ours = ts.GraphSVC(C=C, loss=loss, tol=1e-9).fit(X, y)
    theirs = LinearSVC(C=C, loss=loss, dual=True, tol=1e-10, max_iter=1_000_000).fit(X, y)
    zero = np.zeros((1, 1))
    at = objective(X, y, np.zeros(300, int), theirs.coef_, theirs.intercept_, loss, C, zero)
    assert ours.objective_ == pytest.approx(at, rel=1e-7)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_one_task_is_liblinear_regression(loss, rng):
    X, y, _ = draw(1, rng, True, n=300, d=10)
    ours = ts.GraphSVR(C=0.5, loss=loss, tol=1e-9).fit(X, y)
    theirs = LinearSVR(C=0.5, loss=loss, epsilon=0.1, dual=True, tol=1e-10, max_iter=1_000_000).fit(X, y)
    at = objective(
        X,
        y,
        np.zeros(300, int),
        theirs.coef_[None],
        np.atleast_1d(theirs.intercept_),
        loss,
        0.5,
        np.zeros((1, 1)),
    )
    assert ours.objective_ == pytest.approx(at, rel=1e-7)


# --- two solvers, one answer -----------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
@pytest.mark.parametrize("n_tasks", [1, 3])
def test_newton_and_descent_agree(loss, n_tasks, rng):
    X, y, task = draw(n_tasks, rng, loss in NUMBERS, n=3000, d=5)
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(complete_graph(n_tasks), C=0.3, loss=loss, tol=1e-5)
    newton = clone(model).set_params(solver="newton").fit(X, y, task=task)
    dual = clone(model).set_params(solver="dual").fit(X, y, task=task)
    assert (newton.solver_, dual.solver_) == ("newton", "dual")
    assert abs(newton.objective_ - dual.objective_) <= newton.dual_gap_ + dual.dual_gap_
    np.testing.assert_allclose(newton.coef_, dual.coef_, atol=0.05 * np.abs(dual.coef_).max())


def test_automatic_choice(rng):
    X, y, _ = draw(1, rng, False, n=4000, d=3)
    assert ts.GraphSVC(tol=1e-4).fit(X, y).solver_ == "newton"
    assert ts.GraphSVC(tol=1e-4).fit(scipy.sparse.csr_array(X), y).solver_ == "dual"


def test_coarse_start_of_newton(rng):
    """Enough rows that Newton starts from a subsample; also when tasks are not sorted."""
    X, y, task = draw(2, rng, False, n=60_000, d=3)
    model = ts.GraphSVC(complete_graph(2), tol=1e-5).fit(X, y, task=task)
    assert model.solver_ == "newton"
    assert model.dual_gap_ <= 1e-5 * len(y)
    L = laplacian(complete_graph(2), 2, 1.0)
    assert model.objective_ == pytest.approx(
        objective(X, y, task, model.coef_, model.intercept_, "hinge", 1.0, L), rel=1e-10
    )


# --- every storage and input form ------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8])
@pytest.mark.parametrize("storage", ["C", "F", "csr", "csr64", "csc", "csr_array"])
def test_storages(storage, dtype, rng):
    X, _, task = draw(3, rng, False, n=80)
    X = np.abs(np.round(3 * X)).astype(dtype)
    y = np.where(X[:, 0].astype(float) + 0.5 * task > X[:, 1], 1, -1)
    model = ts.GraphSVC(complete_graph(3), tol=1e-9)
    expected = clone(model).fit(X.astype(np.float64), y, task=task)
    stored = {
        "C": lambda: X,
        "F": lambda: np.asfortranarray(X),
        "csr": lambda: scipy.sparse.csr_matrix(X),
        "csr64": lambda: _long(scipy.sparse.csr_matrix(X)),
        "csc": lambda: scipy.sparse.csc_matrix(X),
        "csr_array": lambda: scipy.sparse.csr_array(X),
    }[storage]()
    found = clone(model).fit(stored, y, task=task)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    np.testing.assert_allclose(
        found.decision_function(stored, task=task), expected.decision_function(X, task=task), atol=1e-3
    )


def mostly_empty(rng: np.random.Generator, n: int = 60, d: int = 97) -> np.ndarray:
    """Rows with a few runs of numbers, as images have them: what the kernels pack."""
    X = rng.standard_normal((n, d))
    X[np.repeat(rng.random((n, d // 8 + 1)) < 0.8, 8, axis=1)[:, :d]] = 0.0
    X[5] = 0.0
    return X


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_packed_rows_against_interior_point(loss, rng):
    X, task = mostly_empty(rng), rng.integers(3, size=60)
    z = X @ rng.standard_normal(97) + 0.3 * rng.standard_normal(60)
    y = z if loss in NUMBERS else np.where(z > 0, 1, -1)
    assert not compiled or kernels.dense_rows(X, 1).packed
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(complete_graph(3), C=0.8, loss=loss, tol=1e-9, max_iter=500_000, solver="dual")
    model.fit(X, y, task=task)
    L = laplacian(complete_graph(3), 3, 1.0)
    ours = objective(X, y, task, model.coef_, model.intercept_, loss, 0.8, L)
    assert model.objective_ == pytest.approx(ours, rel=1e-10)
    optimum = interior_point(X, y, task, loss, 0.8, L)
    assert ours == pytest.approx(optimum, rel=1e-7, abs=1e-7)
    assert model.n_visits_ > 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8])
def test_packed_rows_are_the_rows(dtype, rng):
    X, task = np.abs(np.round(3 * mostly_empty(rng))).astype(dtype), rng.integers(3, size=60)
    y = np.where(X.astype(float).sum(axis=1) > np.median(X.astype(float).sum(axis=1)), 1, -1)
    model = ts.GraphSVC(complete_graph(3), tol=1e-9)
    dense, csr = clone(model).fit(X, y, task=task), clone(model).fit(scipy.sparse.csr_matrix(X), y, task=task)
    assert dense.objective_ == pytest.approx(csr.objective_, rel=1e-8)
    np.testing.assert_allclose(dense.coef_, csr.coef_, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("form", ["dense", "packed", "csr", "list"])
def test_not_finite(form, value, rng):
    X = mostly_empty(rng) if form != "dense" else rng.standard_normal((60, 4))
    y, task = np.where(rng.random(60) < 0.5, 1, -1), np.repeat([0, 1], 30)
    X[37, 2] = value
    given = {"csr": scipy.sparse.csr_matrix(X), "list": [X[:30], X[30:]]}.get(form, X)
    where = "row 8" if form == "list" else "row 38"
    with pytest.raises(ValueError, match=where):
        if form == "list":
            ts.GraphSVC().fit(given, [y[:30], y[30:]])
        else:
            ts.GraphSVC().fit(given, y, task=task)


def _long(matrix):
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def test_input_forms(rng):
    X, y, task = draw(3, rng, False)
    order = np.argsort(task, kind="stable")
    graph = graph_of("path", 3, rng)
    model = ts.GraphSVC(graph, tol=1e-9)
    stacked = clone(model).fit(X, y, task=task)
    parts = [X[task == t] for t in range(3)], [y[task == t] for t in range(3)]
    listed = clone(model).fit(*parts)
    np.testing.assert_allclose(listed.coef_, stacked.coef_, atol=1e-4)
    np.testing.assert_allclose(np.concatenate(listed.dual_coef_), stacked.dual_coef_[order], atol=1e-3)
    predicted = listed.predict(parts[0])
    np.testing.assert_array_equal(np.concatenate(predicted), stacked.predict(X, task=task)[order])
    shared = np.full((len(y), 3), np.nan)
    shared[np.arange(len(y)), task] = y
    wide = clone(model).fit(X, shared)
    np.testing.assert_allclose(wide.coef_, stacked.coef_, atol=1e-4)
    assert wide.dual_coef_.shape == (len(y), 3)
    np.testing.assert_allclose(wide.dual_coef_[np.arange(len(y)), task], stacked.dual_coef_, atol=1e-3)
    np.testing.assert_array_equal(wide.support_, stacked.support_)
    assert stacked.predict(X).shape == (len(y), 3)
    assert (
        stacked.score(X, y, task=task)
        == pytest.approx(listed.score(*parts))
        == pytest.approx(wide.score(X, shared))
    )


def test_dual_coefficients_make_the_model(rng):
    X, y, task = draw(3, rng, False)
    graph = complete_graph(3)
    model = ts.GraphSVC(graph, tol=1e-10).fit(X, y, task=task)
    V = np.stack([model.dual_coef_[task == t] @ X[task == t] for t in range(3)])
    np.testing.assert_allclose(task_similarity(graph) @ V, model.coef_, atol=1e-8)
    assert np.all(y * model.dual_coef_ >= 0)
    assert np.all(np.abs(model.dual_coef_) <= 1.0)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.dual_coef_))


def test_sample_weight_is_repetition(rng):
    X, y, task = draw(2, rng, False)
    times = rng.integers(0, 3, size=len(y))
    graph = complete_graph(2)
    weighted = ts.GraphSVC(graph, tol=1e-9).fit(X, y, task=task, sample_weight=times)
    repeated = ts.GraphSVC(graph, tol=1e-9).fit(X.repeat(times, 0), y.repeat(times), task=task.repeat(times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)


def test_class_weight(rng):
    X, y, task = draw(2, rng, False)
    weights = np.where(y > 0, 3.0, 0.5)
    one = ts.GraphSVC(class_weight={1: 3.0, -1: 0.5}, tol=1e-9).fit(X, y, task=task)
    other = ts.GraphSVC(tol=1e-9).fit(X, y, task=task, sample_weight=weights)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    balanced = ts.GraphSVC(class_weight="balanced", tol=1e-9).fit(X, y, task=task)
    share = np.where(y > 0, len(y) / (2 * np.sum(y > 0)), len(y) / (2 * np.sum(y < 0)))
    same = ts.GraphSVC(tol=1e-9).fit(X, y, task=task, sample_weight=share)
    assert balanced.objective_ == pytest.approx(same.objective_, rel=1e-8)
    with pytest.raises(ValueError, match="class_weight names the class 5"):
        ts.GraphSVC(class_weight={5: 1.0}).fit(X, y, task=task)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_warm_start_over_a_grid(loss, rng):
    X, y, task = draw(3, rng, loss in NUMBERS, n=200)
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(complete_graph(3), loss=loss, solver="dual", warm_start=True, tol=1e-7)
    for C in (0.01, 0.1, 1.0, 0.5):
        model.set_params(C=C).fit(X, y, task=task)
        cold = clone(model).set_params(warm_start=False).fit(X, y, task=task)
        assert abs(model.objective_ - cold.objective_) <= model.dual_gap_ + cold.dual_gap_
    first = model.n_iter_
    assert model.fit(X, y, task=task).n_iter_ <= max(first, 2)


# --- classes ---------------------------------------------------------------------------------------------------


def test_more_than_two_classes(rng):
    X, _, task = draw(2, rng, False, n=150)
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.1 * task[:, None], axis=1)]
    model = ts.GraphSVC(complete_graph(2), loss="logistic", C=5.0).fit(X, y, task=task)
    assert model.coef_.shape == (3, 2, 4)
    assert model.intercept_.shape == (3, 2)
    assert model.decision_function(X, task=task).shape == (150, 3)
    assert model.decision_function(X).shape == (150, 2, 3)
    p = model.predict_proba(X, task=task)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(X, y, task=task) > 0.9
    one = ts.GraphSVC(complete_graph(2), loss="logistic", C=5.0).fit(X, y == "b", task=task)
    np.testing.assert_allclose(model.coef_[1], one.coef_, atol=1e-2)
    assert model.dual_coef_.shape == (3, 150)


def test_pairs_of_classes(rng):
    X, y, task = draw(2, rng, False)
    names = np.where(task == 0, np.where(y > 0, 1, 0), np.where(y > 0, 9, 7))
    model = ts.GraphSVC(complete_graph(2), tol=1e-8).fit(X, names, task=task)
    plain = ts.GraphSVC(complete_graph(2), tol=1e-8).fit(X, y, task=task)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    assert [pair.tolist() for pair in model.classes_] == [[0, 1], [7, 9]]
    assert set(model.predict(X[task == 1], task=task[task == 1])) <= {7, 9}
    wider = ts.GraphSVC(complete_graph(3)).fit(X, names, task=task)
    with pytest.raises(ValueError, match="its classes are not known"):
        wider.predict(X, task=np.full(len(y), 2))
    assert wider.decision_function(X, task=np.full(len(y), 2)).shape == y.shape


def test_probabilities(rng):
    X, y, task = draw(3, rng, False)
    model = ts.GraphSVC(complete_graph(3), loss="logistic").fit(X, y, task=task)
    p = model.predict_proba(X, task=task)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-model.decision_function(X, task=task))))
    assert model.predict_proba(X).shape == (len(y), 3, 2)
    assert not hasattr(ts.GraphSVC(), "predict_proba")


# --- graphs ----------------------------------------------------------------------------------------------------


def test_task_without_rows_is_predicted_by_its_neighbours(rng):
    X, y, task = draw(2, rng, False)
    labels = np.array(["a", "c"])[task]
    graph = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])  # a - b - c
    model = ts.GraphSVC(graph, graph_tasks=["a", "b", "c"], tol=1e-10).fit(X, y, task=labels)
    assert model.tasks_.tolist() == ["a", "b", "c"]
    assert model.coef_.shape == (3, 4)
    # (I + L) W = V, and v_b = 0: 3 w_b = w_a + w_c
    np.testing.assert_allclose(3 * model.coef_[1], model.coef_[0] + model.coef_[2], atol=1e-8)
    assert model.predict(X, task=np.full(len(y), "b")).shape == y.shape


def test_order_of_the_graph(rng):
    X, y, task = draw(3, rng, False)
    graph = graph_of("path", 3, rng)
    names = np.array(["z", "m", "a"])
    model = ts.GraphSVC(graph, graph_tasks=names, tol=1e-9).fit(X, y, task=names[task])
    plain = ts.GraphSVC(graph, tol=1e-9).fit(X, y, task=task)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    assert model.tasks_.tolist() == names.tolist()
    np.testing.assert_array_equal(model.predict(X, task=names[task]), plain.predict(X, task=task))


def test_networkx_and_sparse_graphs(rng):
    networkx = pytest.importorskip("networkx")
    X, y, task = draw(3, rng, False)
    graph = networkx.Graph()
    graph.add_edge("c", "a", weight=2.0)
    graph.add_edge("a", "b")
    model = ts.GraphSVC(graph).fit(X, y, task=np.array(["a", "b", "c"])[task])
    assert model.tasks_.tolist() == ["c", "a", "b"]
    weights = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    for form in (weights, scipy.sparse.csr_array(weights), weights.tolist()):
        same = ts.GraphSVC(form, graph_tasks=["c", "a", "b"]).fit(X, y, task=np.array(["a", "b", "c"])[task])
        np.testing.assert_allclose(same.coef_, model.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="directed"):
        ts.GraphSVC(networkx.DiGraph([("a", "b")])).fit(X, y, task=task)


def test_limits_of_the_strength(rng):
    X, y, task = draw(3, rng, False)
    alone = ts.GraphSVC(tol=1e-9).fit(X, y, task=task)
    for t in range(3):
        one = ts.GraphSVC(tol=1e-9).fit(X[task == t], y[task == t])
        np.testing.assert_allclose(alone.coef_[t], one.coef_[0], atol=1e-4)
    free = ts.GraphSVC(complete_graph(3), graph_strength=0.0, tol=1e-9).fit(X, y, task=task)
    np.testing.assert_allclose(free.coef_, alone.coef_, atol=1e-4)
    tied = ts.GraphSVC(complete_graph(3), graph_strength=1e6, tol=1e-9).fit(X, y, task=task)
    np.testing.assert_allclose(tied.coef_, tied.coef_[[0, 0, 0]], atol=1e-3)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([[0, 1], [2, 0]], "not symmetric"),
        ([[0, -1], [-1, 0]], "negative weight"),
        ([[0, 1, 0], [1, 0, 1]], "square"),
        ([[0, np.nan], [np.nan, 0]], "NaN"),
        (np.zeros((1, 1)), "graph has 1 rows, but the data have 2 tasks"),
        ("edges", "T x T array"),
    ],
)
def test_bad_graphs(graph, message, rng):
    X, y, task = draw(2, rng, False)
    with pytest.raises(ValueError, match=message):
        ts.GraphSVC(graph).fit(X, y, task=task)


def test_other_errors(rng):
    X, y, task = draw(2, rng, False)
    for model, message in (
        (ts.GraphSVC(C=0), "'C'"),
        (ts.GraphSVC(loss="squared"), "'loss'"),
        (ts.GraphSVC(solver="primal"), "'solver'"),
        (ts.GraphSVC(graph_strength=-1), "'graph_strength'"),
        (ts.GraphSVC(graph_tasks=[0, 1]), "graph is None"),
        (ts.GraphSVC(np.zeros((2, 2)), graph_tasks=[0, 0]), "graph_tasks"),
        (ts.GraphSVC(np.zeros((2, 2)), graph_tasks=["a", "b"]), "task 0 is not on the graph"),
        (ts.GraphSVC(intercept_scaling=0), "'intercept_scaling'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, task=task)
    with pytest.raises(ValueError, match="'epsilon'"):
        ts.GraphSVR(epsilon=-1).fit(X, y, task=task)
    with pytest.raises(ValueError, match="unknown"):
        ts.GraphSVC().fit(X, y, task=task).predict(X, task=task + 5)


def test_helpers():
    graph, names = tree_graph("((a:1,b:1)ab:2,(c:1,d:3):1);")
    assert names == ["a", "b", "c", "d"]
    assert graph[0, 1] == 1 / 2
    assert graph[0, 3] == 1 / 7
    whole, nodes = tree_graph("((a:1,b:1)ab:2,c:4);", inner=True)
    assert nodes == ["inner 0", "ab", "a", "b", "c"]
    assert whole[0, 1] == 0.5
    assert whole[1, 2] == 1.0
    assert whole[2, 3] == 0.0
    by_parents, leaves = tree_graph([-1, 0, 0, 1, 1])
    assert leaves == [2, 3, 4]
    assert by_parents[1, 2] == 1 / 2
    assert by_parents[0, 1] == 1 / 3
    named, _ = tree_graph({"a": "r", "b": "r", "r": None})
    assert named.tolist() == [[0, 0.5], [0.5, 0]]
    near = nearest_neighbor_graph([[0.0], [1.0], [10.0]], 1)
    assert near.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    far = distance_graph([[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]])
    assert far[0, 2] == 0.0
    assert far[0, 1] == pytest.approx(np.exp(-1))
    M = task_similarity(graph, 2.0)
    np.testing.assert_allclose(M.sum(axis=1), 1.0)
    assert M.min() >= 0
    for bad in ("((a,b);", "(a,b)", "(a,a);", "(a:x,b);", "(,b);", "a,b;"):
        with pytest.raises(ValueError, match="tree"):
            tree_graph(bad)
    for parents in ([0, 1], [1, 0], [-1, -1], [-1, 7]):
        with pytest.raises(ValueError):
            tree_graph(parents)


# --- certificates ----------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("max_iter", [1, 2, 5])
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_gap_is_true_without_convergence(loss, max_iter, rng):
    X, y, task = draw(3, rng, loss in NUMBERS)
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(complete_graph(3), C=20.0, loss=loss, solver="dual", tol=1e-12, max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match="did not reach"):
        model.fit(X, y, task=task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exact = clone(model).set_params(max_iter=100_000, tol=1e-10).fit(X, y, task=task)
    assert model.objective_ - exact.objective_ <= model.dual_gap_ * (1 + 1e-9)
    assert model.dual_gap_ > 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_degenerate_rows(scale, rng):
    """Zero rows, repeated rows, a constant feature; one-row tasks."""
    X, y, task = draw(3, rng, False)
    X[:10] = 0
    X[10:20] = X[20:30]
    X *= scale
    task[0], task[1:] = 2, task[1:] % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ts.GraphSVC(complete_graph(3), tol=1e-6, fit_intercept=False).fit(X, y, task=task)
    L = laplacian(complete_graph(3), 3, 1.0)
    assert np.isfinite(model.coef_).all()
    assert model.objective_ == pytest.approx(objective(X, y, task, model.coef_, np.zeros(3), "hinge", 1.0, L))
    if scale <= 1:
        assert model.dual_gap_ <= 1e-6 * len(y)


def test_same_input_same_bytes(rng):
    X, y, task = draw(3, rng, False)
    model = ts.GraphSVC(complete_graph(3), solver="dual")
    one, other = clone(model).fit(X, y, task=task), clone(model).set_params(n_jobs=1).fit(X, y, task=task)
    assert one.coef_.tobytes() == other.coef_.tobytes()
    third = clone(model).set_params(random_state=5).fit(X, y, task=task)
    assert third.coef_.tobytes() != one.coef_.tobytes()


# --- scikit-learn ----------------------------------------------------------------------------------------------


# name of the check -> why it cannot pass
PRECISION = (
    "compares predictions to 1e-7; a gap of 1e-6 leaves more than that (see test_sample_weight_is_repetition)"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": PRECISION,
    "check_sample_weight_equivalence_on_sparse_data": PRECISION,
}


@pytest.mark.sampled(6)
@parametrize_with_checks(
    [ts.GraphSVC(), ts.GraphSVR()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [ts.GraphSVC(loss="logistic", tol=1e-4), ts.GraphSVR(loss="squared", C=10.0)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_checks_of_other_losses(estimator, check):
    check(estimator)


def test_search_and_pickle(rng):
    import sklearn

    X, y, task = draw(3, rng, False)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            ts.GraphSVC(complete_graph(3), tol=1e-4).set_fit_request(task=True).set_score_request(task=True)
        )
        folds = ts.TaskKFold(3, shuffle=False)
        search = GridSearchCV(model, {"C": [1e-4, 1.0], "graph_strength": [0.1, 10.0]}, cv=folds)
        search.fit(X, y, task=task)
    assert search.best_params_["C"] == 1.0
    fitted = clone(model).fit(X, y, task=task)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X, task=task), fitted.predict(X, task=task))
