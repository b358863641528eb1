"""Every estimator gives the same answer for every form of input and every storage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tasksieve as ts

MODELS = {
    "lasso": ts.MultiTaskLasso(0.2, tol=1e-11),
    "elastic net": ts.MultiTaskElasticNet(0.3, l1_ratio=0.6, tol=1e-11),
    "calibrated": ts.CalibratedMultiTaskLasso(0.3, tol=1e-11),
    "calibrated, ridge": ts.CalibratedMultiTaskLasso(0.2, l2=0.1, tol=1e-11),
    "logistic": ts.MultiTaskLogisticRegression(0.05, tol=1e-11),
    "lasso, cross-validated": ts.MultiTaskLassoCV(n_alphas=6, eps=0.1, cv=3, tol=1e-11),
    "calibrated, cross-validated": ts.CalibratedMultiTaskLassoCV(n_alphas=6, eps=0.1, cv=3, tol=1e-11),
    "logistic, cross-validated": ts.MultiTaskLogisticRegressionCV(n_alphas=6, eps=0.1, cv=3, tol=1e-11),
    "standardised": ts.MultiTaskLasso(0.2, standardize=True, tol=1e-11),
    "no intercept": ts.MultiTaskLasso(0.2, fit_intercept=False, tol=1e-11),
    "feature weights": ts.MultiTaskLasso(0.2, feature_weights=[0, 0, *[1] * 4, *[2] * 4], tol=1e-11),
}


@pytest.fixture
def problem(rng):
    """Small counts, which every storage type holds exactly; rows out of task order."""
    task = rng.permutation(np.repeat([0, 1, 2], [15, 24, 21]))
    X = rng.integers(0, 5, size=(60, 10)).astype(np.float64)
    W = np.zeros((3, 10))
    W[:, [0, 4, 7]] = rng.standard_normal((3, 3))
    y = np.einsum("ij,ij->i", X, W[task]) + 0.3 * rng.standard_normal(60) + 1.0
    return X, y, task


def labels_of(name, y, task):
    """Numbers, or for a classifier whether they are above the median of their task."""
    if "logistic" not in name:
        return y
    medians = np.array([np.median(y[task == t]) for t in range(3)])
    return (y > medians[task]).astype(int)


def storages(X, folder):
    for order in "CF":
        for dtype in (np.float64, np.float32, np.int8, np.uint8):
            yield f"{np.dtype(dtype).name} {order}", np.array(X, dtype=dtype, order=order)
    yield "int64", X.astype(np.int64)
    yield "list of rows", X.tolist()
    yield "strided", np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    for form in ("csr", "csc", "coo", "lil"):
        yield f"{form} array", scipy.sparse.csr_array(X).asformat(form)
    yield "csr matrix int8", scipy.sparse.csr_matrix(X.astype(np.int8))
    yield "csc array float32", scipy.sparse.csc_array(X.astype(np.float32))
    yield "data frame", pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    yield "data frame int8", pd.DataFrame(X.astype(np.int8), columns=[f"x{j}" for j in range(X.shape[1])])
    for order in "CF":
        for dtype in (np.float64, np.float32, np.int8):
            path = folder / f"{np.dtype(dtype).name}{order}"
            mapped = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
            mapped[:] = X
            mapped.flush()
            yield f"memory map {path.name}", np.memmap(path, dtype=dtype, mode="r", shape=X.shape, order=order)


def assert_same(model, other, tolerance=1e-6):
    np.testing.assert_allclose(other.coef_, model.coef_, atol=tolerance)
    np.testing.assert_allclose(other.intercept_, model.intercept_, atol=tolerance)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-9)


def fitted(name, *args, **kwargs):
    from sklearn.base import clone

    return clone(MODELS[name]).fit(*args, **kwargs)


CHOSEN_SLOWLY = ("calibrated, cross-validated", "logistic, cross-validated")
BY_NAME = [pytest.param(name, marks=pytest.mark.slow if name in CHOSEN_SLOWLY else ()) for name in MODELS]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BY_NAME)
def test_every_storage(name, problem, tmp_path):
    X, y, task = problem
    y = labels_of(name, y, task)
    model = fitted(name, X, y, task=task)
    expected = model.predict(X, task=task)
    assert model.get_support().any()
    for kind, matrix in storages(X, tmp_path):
        other = fitted(name, matrix, y, task=task)
        try:
            assert_same(model, other)
            if "logistic" in name:
                np.testing.assert_array_equal(other.predict(matrix, task=task), expected)
            else:
                np.testing.assert_allclose(other.predict(matrix, task=task), expected, atol=1e-5)
        except AssertionError as error:
            raise AssertionError(f"{kind}: {error}") from error
        assert hasattr(other, "feature_names_in_") == kind.startswith("data frame")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in MODELS if "cross" not in name])
def test_every_form_of_tasks(name, problem, tmp_path):
    X, y, task = problem
    y = labels_of(name, y, task)
    model = fitted(name, X, y, task=task)
    order = np.argsort(task, kind="stable")
    parts = [X[task == t] for t in range(3)], [y[task == t] for t in range(3)]
    # one matrix, a column per task, only its own rows observed: the same problem as a shared matrix
    Y = np.full((60, 3), np.nan)
    Y[np.arange(60), task] = y
    # the same rows twice, the second time without label
    holes = np.r_[y.astype(float), np.full(60, np.nan)]
    names = np.array(["u", "v", "w"])[task]
    forms = {
        "sorted": ((X[order], y[order]), {"task": task[order]}),
        "string labels": ((X, y), {"task": names}),
        "object labels": ((X, y), {"task": names.astype(object)}),
        "list": (parts, {}),
        "list of tuples": ((tuple(parts[0]), tuple(parts[1])), {}),
        "list, int8": (([part.astype(np.int8) for part in parts[0]], parts[1]), {}),
        "list, mixed types": (([parts[0][0], parts[0][1].astype(np.float32), parts[0][2]], parts[1]), {}),
        "list, sparse": (([scipy.sparse.csr_array(part) for part in parts[0]], parts[1]), {}),
        "list, mixed sparse": (([scipy.sparse.csc_array(parts[0][0]), *parts[0][1:]], parts[1]), {}),
        "list of frames": (([pd.DataFrame(part).rename(columns=str) for part in parts[0]], parts[1]), {}),
        "shared with missing labels": ((X, Y), {}),
        "shared, sparse": ((scipy.sparse.csr_array(X), Y), {}),
        "shared, int8": ((X.astype(np.int8), Y), {}),
        "missing labels": ((np.vstack([X, X[::-1]]), holes), {"task": np.r_[task, task]}),
        "weights": (
            (np.vstack([X, X]), np.r_[y, y]),
            {"task": np.r_[task, task], "sample_weight": np.r_[np.ones(60), np.zeros(60)]},
        ),
        "shared with weights": (
            (X, np.tile(y[:, None], 3)),
            {"sample_weight": (task[:, None] == np.arange(3)).astype(float)},
        ),
    }
    for kind, (args, kwargs) in forms.items():
        other = fitted(name, *args, **kwargs)
        try:
            assert_same(model, other)
        except AssertionError as error:
            raise AssertionError(f"{kind}: {error}") from error
        expected = ["u", "v", "w"] if "labels" in kind and "missing" not in kind else [0, 1, 2]
        assert other.tasks_.tolist() == expected


def test_weights_are_repetitions(problem):
    X, y, task = problem
    counts = np.arange(60) % 3
    for name in ("lasso", "elastic net", "logistic", "standardised"):
        labels = labels_of(name, y, task)
        weighted = fitted(name, X, labels, task=task, sample_weight=counts)
        repeated = fitted(
            name, np.repeat(X, counts, axis=0), np.repeat(labels, counts), task=np.repeat(task, counts)
        )
        assert_same(weighted, repeated, 1e-5)


def test_lists_of_memory_maps(problem, tmp_path):
    X, y, task = problem
    maps = []
    for t in range(3):
        part = X[task == t]
        mapped = np.memmap(tmp_path / str(t), dtype=np.float32, mode="w+", shape=part.shape, order="CFC"[t])
        mapped[:] = part
        maps.append(mapped)
    assert_same(
        fitted("lasso", X, y, task=task), fitted("lasso", maps, [y[task == t] for t in range(3)])
    )


def test_data_frames_name_the_features(problem):
    X, y, task = problem
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    model = fitted("lasso", frame, pd.Series(y), task=pd.Series(task))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in np.flatnonzero(model.get_support())]
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    parts = [frame[task == t] for t in range(3)]
    labels = [y[task == t] for t in range(3)]
    assert fitted("lasso", parts, labels).feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        fitted("lasso", [parts[0], parts[1][frame.columns[::-1]], parts[2]], labels)
    model.fit(X, y, task=task)
    assert not hasattr(model, "feature_names_in_")


def test_x_is_never_modified(problem):
    X, y, task = problem
    for order in "CF":
        matrix = np.array(X, order=order)
        matrix.flags.writeable = False
        for name in MODELS:
            fitted(name, matrix, labels_of(name, y, task), task=task)
        np.testing.assert_array_equal(matrix, X)
    sparse = scipy.sparse.csc_array(X)
    before = sparse.copy()
    fitted("lasso", sparse, y, task=task)
    assert (sparse != before).nnz == 0
