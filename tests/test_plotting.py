"""Pictures: what is drawn, where, and what is said without matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

import tasksieve as ts

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10))
    task = np.repeat(["a", "b"], 40)
    return X, 3 * X[:, 7] * np.where(task == "a", 1, -1) + X[:, 2] + 0.1 * rng.standard_normal(80), task


def test_coefficients_are_drawn_strongest_first(data: tuple[np.ndarray, ...]) -> None:
    X, y, task = data
    model = ts.MultiTaskLasso(alpha=0.2).fit(X, y, task=task)
    axes = model.plot_coefficients()
    image = axes.images[0]
    np.testing.assert_array_equal(image.get_array()[:2], model.coef_[:, [7, 2]].T)
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["x7", "x2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    low, high = image.get_clim()
    assert low == -high == -np.abs(model.coef_).max()
    assert "of 10 features selected" in axes.get_title(loc="left")


def test_many_features_are_cut_and_none_is_no_error(data: tuple[np.ndarray, ...]) -> None:
    X, y, task = data
    model = ts.MultiTaskLasso(alpha=1e-3).fit(X, y, task=task)
    axes = model.plot_coefficients(most=3)
    assert axes.images[0].get_array().shape == (3, 2)
    assert "the strongest 3 shown" in axes.get_title(loc="left")
    empty = ts.MultiTaskLasso(alpha=1e3).fit(X, y, task=task).plot_coefficients()
    assert "0 of 10" in empty.get_title(loc="left")
    with pytest.raises(ValueError, match="most"):
        model.plot_coefficients(most=0)


def test_given_axes_and_names_are_used(data: tuple[np.ndarray, ...]) -> None:
    pandas = pytest.importorskip("pandas")
    X, y, task = data
    frame = pandas.DataFrame(
        X, columns=[f"gene {j}" for j in range(9)] + ["a name that is far too long to be read"]
    )
    _, (left, right) = plt.subplots(1, 2)
    model = ts.MultiTaskLassoCV(n_alphas=6, eps=0.05, cv=3).fit(frame, y, task=task)
    assert model.plot_coefficients(left) is left
    assert left.get_yticklabels()[0].get_text() == "gene 7"
    assert model.plot_scores(right) is right
    line = right.lines[0]
    np.testing.assert_allclose(line.get_ydata(), model.cv_scores_.mean(axis=1))
    assert right.lines[1].get_xdata()[0] == model.alpha_
    assert right.get_ylabel() == "held-out squared error"
    assert right.xaxis_inverted()


def test_classifiers_have_scores_and_maps(data: tuple[np.ndarray, ...]) -> None:
    X, y, task = data
    model = ts.MultiTaskLogisticRegressionCV(n_alphas=4, eps=0.1, cv=2).fit(X, y > 0, task=task)
    assert model.plot_scores().get_ylabel() == "held-out logistic loss"
    assert model.plot_coefficients().images


def test_not_fitted(data: tuple[np.ndarray, ...]) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ts.MultiTaskLasso().plot_coefficients()
    with pytest.raises(NotFittedError):
        ts.MultiTaskLassoCV().plot_scores()


def test_without_matplotlib(data: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = data
    model = ts.MultiTaskLassoCV(n_alphas=4, eps=0.1, cv=2).fit(X, y, task=task)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(
        ImportError, match=r"MultiTaskLassoCV.plot_coefficients needs matplotlib: pip install"
    ):
        model.plot_coefficients()
    with pytest.raises(ImportError, match=r"plot_scores needs matplotlib"):
        model.plot_scores()
