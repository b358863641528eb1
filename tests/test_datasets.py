"""The generators make what they say: shapes, orders, moments; the same seed gives the same data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tasksieve import datasets


def offset_correlation(X: np.ndarray, lag: int) -> float:
    """Mean correlation of features `lag` apart, over the features that vary."""
    Z = X.astype(float) - X.mean(axis=0)
    norm = np.linalg.norm(Z, axis=0)
    Z = Z[:, norm > 0] / norm[norm > 0]
    return float(np.mean(np.sum(Z[:, lag:] * Z[:, :-lag], axis=0)))


@pytest.mark.parametrize(("kind", "neighbour", "second"), [(1, 0.0, 0.0), (2, 0.5, 0.25)])
def test_wang_synthetic(kind: int, neighbour: float, second: float) -> None:
    X, y, task, support = datasets.make_wang_synthetic(
        kind, n_tasks=20, n_rows=25, n_features=200, random_state=3
    )
    assert X.shape == (500, 200)
    assert X.flags.f_contiguous
    assert X.dtype == np.float64
    assert task is not None
    np.testing.assert_array_equal(task, np.repeat(np.arange(20), 25))
    assert support.size == 20
    assert np.all(np.diff(support) > 0)
    assert abs(X.mean()) < 0.02
    assert abs(X.std() - 1) < 0.02
    assert abs(offset_correlation(X, 1) - neighbour) < 0.02
    assert abs(offset_correlation(X, 2) - second) < 0.02
    for t in range(20):  # each task is its true features plus noise of size 0.01
        rows = task == t
        coef, *_ = np.linalg.lstsq(X[rows][:, support], y[rows], rcond=None)
        rest = y[rows] - X[rows][:, support] @ coef
        assert np.sqrt(rest @ rest / (25 - 20)) < 0.03
        assert 0.3 < coef.std() < 2


def test_wang_synthetic_does_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    one = datasets.make_wang_synthetic(2, 4, 6, 90, random_state=0)
    monkeypatch.setattr(datasets, "BLOCK_ENTRIES", 50)
    two = datasets.make_wang_synthetic(2, 4, 6, 90, random_state=0)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_allclose(one.y, two.y, rtol=1e-12)


def test_wang_synthetic_refuses_other_kinds() -> None:
    with pytest.raises(ValueError, match="kind=3"):
        datasets.make_wang_synthetic(3, n_features=20)


def test_same_seed_same_data() -> None:
    for make in (
        lambda seed: datasets.make_wang_synthetic(1, 3, 4, 20, seed),
        lambda seed: datasets.make_shared_regression(10, 20, 3, 2, random_state=seed),
        lambda seed: datasets.make_task_classification(3, 8, 20, 2, seed),
        lambda seed: datasets.make_genotypes(2, 5, 60, 3, random_state=seed),
    ):
        first, second, other = make(1), make(1), make(2)
        np.testing.assert_array_equal(first.X, second.X)
        np.testing.assert_array_equal(first.y, second.y)
        assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_shared_regression(correlation: float) -> None:
    X, Y, task, support = datasets.make_shared_regression(300, 400, 7, 5, 3.0, correlation, 1)
    assert task is None
    assert Y.shape == (300, 7)
    assert X.flags.f_contiguous
    assert abs(offset_correlation(X, 1) - correlation) < 0.02
    signal = X[:, support] @ np.linalg.lstsq(X[:, support], Y, rcond=None)[0]
    assert abs(np.linalg.norm(signal) / np.linalg.norm(Y - signal) - 3.0) < 0.2


def test_task_classification_has_both_classes() -> None:
    for n_rows in (2, 3, 50):
        X, y, task, _ = datasets.make_task_classification(40, n_rows, 30, 5, random_state=n_rows)
        assert X.shape == (40 * n_rows, 30)
        assert task is not None
        for t in range(40):
            assert set(y[task == t]) == {-1.0, 1.0}


def test_genotypes() -> None:
    X, y, task, support = datasets.make_genotypes(10, 40, 2000, random_state=5)
    assert X.shape == (400, 2000)
    assert X.dtype == np.int8
    assert X.flags.f_contiguous
    assert set(np.unique(X)) == {0, 1, 2}
    assert support.size == 20
    assert y.shape == task.shape == (400,)  # type: ignore[union-attr]
    frequency = X.mean(axis=0) / 2
    assert np.quantile(frequency, 0.01) > 0.02
    assert np.quantile(frequency, 0.99) < 0.56
    assert 0.12 < np.median(frequency) < 0.2  # 1/f between 0.05 and 0.5: median 0.158
    heterozygous = np.mean(X == 1, axis=0)  # Hardy-Weinberg: 2 f (1 - f)
    assert abs(np.mean(heterozygous - 2 * frequency * (1 - frequency))) < 0.01
    near, far, unlinked = (offset_correlation(X, lag) for lag in (1, 10, 1000))
    assert near > far > 0.05
    assert near > 0.4
    assert abs(unlinked) < 0.02


def test_one_vs_rest_tasks() -> None:
    labels = np.repeat([3, 5, 9], [10, 4, 30])
    X = np.arange(44.0)[:, None] + np.zeros((1, 3))
    dense = datasets.one_vs_rest_tasks(X, labels, n_each=6, random_state=0)
    assert dense.task is not None
    for t, label in enumerate([3, 5, 9]):
        rows = dense.task == t
        origin = dense.X[rows, 0].astype(int)
        assert len(set(origin)) == rows.sum()
        np.testing.assert_array_equal(labels[origin] == label, dense.y[rows] > 0)
        assert (dense.y[rows] > 0).sum() == (4 if label == 5 else 6)
    other = datasets.one_vs_rest_tasks(sparse.csr_matrix(X), labels, n_each=6, random_state=0)
    assert other.X.format == "csc"
    np.testing.assert_array_equal(other.X.toarray(), dense.X)


def test_digits_tasks() -> None:
    X, y, task, support = datasets.load_digits_tasks(n_each=20)
    assert X.shape == (400, 64)
    assert X.flags.f_contiguous
    assert y.sum() == 0
    assert support.size == 0
    np.testing.assert_array_equal(np.bincount(task), 40)  # type: ignore[arg-type]


def test_data_folder_names_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("TASKSIEVE_DATA", str(tmp_path))
    assert datasets.data_folder() == tmp_path
    monkeypatch.setenv("TASKSIEVE_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match="TASKSIEVE_DATA"):
        datasets.data_folder()
    monkeypatch.delenv("TASKSIEVE_DATA")
    monkeypatch.setattr(datasets, "__file__", str(tmp_path / "lib" / "datasets.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="TASKSIEVE_DATA"):
        datasets.data_folder()


def test_data_folder_beside_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    inner = tmp_path / "checkout" / "benchmarks"
    inner.mkdir(parents=True)
    (tmp_path / "checkout" / "pyproject.toml").write_text("")
    (tmp_path / "shared" / "datasets").mkdir(parents=True)
    monkeypatch.delenv("TASKSIEVE_DATA", raising=False)
    monkeypatch.chdir(inner)
    assert datasets.data_folder() == tmp_path / "shared" / "datasets"
